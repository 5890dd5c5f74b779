//! Passing aggregates by value.
//!
//! Kiln's own ABI passes a struct or an array by reference: the host copies the value to device
//! memory at every launch and the kernel reads it through a pointer. This hook passes it in the
//! parameter block instead, where every thread reads it from constant memory, and no copy or
//! allocation precedes the launch (Besard et al. 2018, section 5.2: up to 20 % on memory-bound
//! kernels).
//!
//! ```text
//! kernel @k(%0 p: ptr<generic, @Point> by_reference)    ld.param.b64 %rd1, [k_param_0];
//!   %1: @Point = load %0                                ld.b32 %r1, [%rd1];
//!
//! kernel @k(%0 p: ptr<param, @Point> by_value)          ld.param.b32 %r1, [k_param_0];
//!   %1: @Point = load %0
//! ```
//!
//! What the parameter block has no room for stays where it is.
//!
//! Switch it off with `hooks::standard().without("by-value")` to see what it is worth.

use kiln_compiler::abi::ParamLayout;
use kiln_compiler::hook::Hook;
use kiln_compiler::ir::{AddressSpace, Module, Passing, Value};

/// Passes aggregates by value. See the [module](self) documentation.
///
/// ```
/// use kiln::prelude::*;
///
/// use kiln::core::hook::HookSet;
///
/// #[derive(Copy, Clone, KernelType)]
/// #[repr(C)]
/// struct Range {
///     low: f32,
///     high: f32,
/// }
///
/// #[kernel]
/// fn clamp(x: &mut [f32], range: Range) {
///     x[0] = x[0].clamp(range.low, range.high);
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let jit = Jit::builder().hooks(HookSet::from(kiln::hooks::by_value())).build()?;
/// let mut x = jit.upload(&[7.0f32])?;
/// clamp.launch(&jit, (1, 1), &mut x, Range { low: 0.0, high: 1.0 })?;
/// assert_eq!(x.to_vec()?, [1.0]);
/// # Ok(())
/// # }
/// ```
pub fn by_value() -> Hook {
    Hook::new("by-value")
        .version(2)
        .may_be_kept()
        .lower_abi(|cx, module| {
            pass_by_value(module, cx.target.max_param_bytes());
            Ok(())
        })
}

/// Turns parameters passed by reference into parameters passed by value, where they are only
/// loaded from, as long as the parameter block has at most `max_bytes`.
fn pass_by_value(module: &mut Module, max_bytes: u32) {
    let Some(kernel) = module.kernel() else {
        return;
    };
    for position in 0..module.functions[kernel].params.len() {
        let param = &module.functions[kernel].params[position];
        let (value, passing) = (param.value, param.passing);
        let ty = module.functions[kernel].type_of(value);
        let Some((pointee, ..)) = module.types.as_pointer(ty) else {
            continue;
        };
        if passing != Passing::ByReference || !only_loaded(module, value) {
            continue;
        }
        let pointer = module.types.pointer(pointee, AddressSpace::Param, false);
        let function = &mut module.functions[kernel];
        function.values[value].ty = pointer;
        function.params[position].passing = Passing::ByValue;
        if ParamLayout::of(module).is_none_or(|layout| layout.size > max_bytes) {
            let function = &mut module.functions[kernel];
            function.values[value].ty = ty;
            function.params[position].passing = passing;
        }
    }
}

/// Whether all uses of the kernel's parameter are loads. Those of ABI lowering are; a hook before
/// this one may have added others, and such a parameter stays as it is.
fn only_loaded(module: &Module, param: Value) -> bool {
    let Some(kernel) = module.kernel() else {
        return false;
    };
    let function = &module.functions[kernel];
    let mut only = true;
    function.for_each_inst(|_, inst| {
        let data = &function.insts[inst].data;
        if data.loaded().is_none() {
            data.for_each_operand(|operand| only &= operand != param);
        }
    });
    only
}
