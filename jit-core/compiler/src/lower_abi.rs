//! ABI lowering: how aggregates reach a kernel.
//!
//! The compiler's own way is by reference: the value lies in device memory, the parameter is its
//! address, and the kernel loads it where it starts. That is what CUDAnative.jl did before its
//! by-value hook (Besard et al. 2018, section 5.2); Kiln's by-value hook improves on it in the same
//! place. Scalars, vectors, pointers and slices stay direct.

use crate::ir::{AddressSpace, InstData, Module, Passing, Phase, ValueData, ValueDef};

/// Passes every aggregate parameter of the kernel by reference and raises the module to
/// [`Phase::Legal`].
///
/// ```text
/// kernel @k(%0 p: @Point) {            kernel @k(%2 p: ptr<generic, @Point> by_reference) {
///                                =>      %0: @Point = load %2
///   %1: f32 = extract %0, 0                %1: f32 = extract %0, 0
/// ```
pub fn lower_abi(module: &mut Module) {
    module.phase = Phase::Legal;
    let Some(kernel) = module.kernel() else {
        return;
    };
    let Module {
        types, functions, ..
    } = module;
    let function = &mut functions[kernel];
    let mut loads = Vec::new();
    for position in 0..function.params.len() {
        let value = function.params[position].value;
        let ty = function.type_of(value);
        if function.params[position].passing != Passing::Direct || !types.is_aggregate(ty) {
            continue;
        }
        let location = function.params[position].location;
        let pointer = types.pointer(ty, AddressSpace::Generic, false);
        let def = ValueDef::Param(position as u32);
        let address = function.values.push(ValueData { ty: pointer, def });
        let data = InstData::Load {
            ptr: address,
            volatile: false,
        };
        let inst = function.insts.push(crate::ir::InstNode {
            data,
            result: Some(value),
            fast: crate::ir::FastMath::NONE,
            location,
        });
        // The value keeps its uses; from now on the load defines it.
        function.values[value].def = ValueDef::Inst(inst);
        let param = &mut function.params[position];
        param.value = address;
        param.passing = Passing::ByReference;
        loads.push(inst);
    }
    let body = function.body;
    function.regions[body].insts.splice(0..0, loads);
}
