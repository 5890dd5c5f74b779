//! What a thread does before it ends by a fault.

use std::collections::HashMap;

use super::copy::reached;
use super::cursor::Cursor;
use crate::fault::fault_insts;
use crate::{
    ArrayLen, Check, CompareOp, FuncId, FunctionKind, Inst, Module, Type, UnaryOp, Value,
    debug_as_text, error_text,
};

/// A function cannot be called before faults.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", error_text!(
    "`{function}` is called before a fault with (site: u32, index: u64, length: u64) and gives nothing, and it \
     is {is}; give it these parameters and no result"
))]
pub struct NoFaultFunction {
    /// The function's name.
    pub function: String,
    /// What the function is instead.
    pub is: String,
}

debug_as_text!(NoFaultFunction);

impl Module {
    /// Has every thread that is about to fault call a device function before: one whose index is out of bounds
    /// at a checked access, or for which a checked assumption or an assertion does not hold, which then ends it as it does
    /// otherwise. What the function itself and what it calls do is left as it is.
    ///
    /// The function takes the number of the access among the module's [fault
    /// sites](crate::fault::fault_sites()), the index that was asked for, sign-extended if its type is signed,
    /// and the number of elements there are: `(site: u32, index: u64, length: u64)`; of assumptions and
    /// assertions index and length are 0. The module is a specialized
    /// one; accesses that are added afterwards in the functions that there are change the numbers of those behind
    /// them.
    ///
    /// ```
    /// # let text = "module m specialized
    /// # kernel @k(%0 x: slice<generic, mut u32>, %1 i: i32) {
    /// #   %2: ptr<generic, mut u32> = slice_index %0, %1
    /// # }
    /// # device @report(%0 site: u32, %1 index: u64, %2 length: u64) {
    /// # }
    /// # ";
    /// # let mut module = kiln_ir::parse(text, &|_| None).unwrap();
    /// let report = module.function_named("report").unwrap();
    /// module.call_before_faults(report).unwrap();
    /// assert!(kiln_ir::verify(&module).is_ok());
    /// assert!(module.to_string().contains("call @report("));
    /// ```
    ///
    /// # Errors
    /// [`NoFaultFunction`] for a function that takes or gives something else; nothing is changed then.
    ///
    /// # Panics
    /// If the module has no such function.
    pub fn call_before_faults(&mut self, function: FuncId) -> Result<(), NoFaultFunction> {
        self.check_fault_function(function)?;
        let mut sites: HashMap<(FuncId, Inst), u32> = HashMap::new();
        for (place, number) in fault_insts(self).into_iter().zip(0..) {
            sites.insert(place, number);
        }
        let own = reached(self, function);
        for id in self.functions.keys().filter(|id| !own.contains(id)) {
            let mut at = Cursor::new(self, id);
            while let Some(inst) = at.next_inst() {
                let Some(&site) = sites.get(&(id, inst)) else {
                    continue;
                };
                if let Some(check) = at.data().check() {
                    call_if_out_of_bounds(&mut at, check, function, site);
                } else if let Some(cond) = at.data().assumption().map(|assumed| assumed.cond) {
                    call_unless(&mut at, cond, function, site);
                }
            }
        }
        Ok(())
    }

    fn check_fault_function(&self, function: FuncId) -> Result<(), NoFaultFunction> {
        let data = &self.functions[function];
        let params: Vec<Type> = data.params.iter().map(|p| data.type_of(p.value)).collect();
        let fits = params == [Type::U32, Type::U64, Type::U64] && data.result == Type::UNIT;
        if fits && data.kind == FunctionKind::Device {
            return Ok(());
        }
        let params: Vec<String> = params.iter().map(|ty| self.types.display(*ty)).collect();
        let result = self.types.display(data.result);
        let kind = match data.kind {
            FunctionKind::Kernel => "a kernel",
            FunctionKind::Device => "a device function",
        };
        Err(NoFaultFunction {
            function: data.name.clone(),
            is: format!("{kind} of ({}) that gives {result}", params.join(", ")),
        })
    }
}

/// Calls the function if the check before which the cursor stands will fail.
fn call_if_out_of_bounds(at: &mut Cursor<'_>, check: Check, function: FuncId, site: u32) {
    let index = match at.type_of(check.index) {
        Type::U64 => check.index,
        _ => at.ins().cast(check.index, Type::U64),
    };
    let length = length_of(at, check.base);
    let outside = at.ins().compare(CompareOp::Ge, index, length);
    let then = at.ins().if_(outside);
    let site = at.ins_at_end(then).constant(site);
    at.ins_at_end(then).call(function, &[site, index, length]);
}

/// Calls the function if the assumption before which the cursor stands does not hold.
fn call_unless(at: &mut Cursor<'_>, cond: Value, function: FuncId, site: u32) {
    let fails = at.ins().unary(UnaryOp::Not, cond);
    let then = at.ins().if_(fails);
    let site = at.ins_at_end(then).constant(site);
    let none = at.ins_at_end(then).constant(0u64);
    at.ins_at_end(then).call(function, &[site, none, none]);
}

/// How many elements a slice has, or the array or vector behind a pointer.
fn length_of(at: &mut Cursor<'_>, base: Value) -> Value {
    let types = at.types();
    let array = types.as_pointer(at.type_of(base));
    match array.and_then(|(array, ..)| types.as_indexed(array)) {
        Some((_, ArrayLen::Known(length))) => at.ins().constant(length),
        // Of no specialized module; the verifier tells.
        Some((_, ArrayLen::Param(_))) => at.ins().constant(u64::MAX),
        None => at.ins().slice_len(base, Type::U64),
    }
}
