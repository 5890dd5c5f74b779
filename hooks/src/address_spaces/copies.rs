//! Device functions that are called with addresses in several memories: a copy for each.
//!
//! Functions are looked at after those that call them, so that it is known of each call in which memories its
//! arguments are; calls that bring the same go to the same copy. Of a function there are at most [`MOST`],
//! the last of which takes all other calls, and at most [`SEPARATED`] functions are copied at all. So
//! there is an end to it however functions call each other: a module grows to no more than [`MOST`] times its
//! size.

use std::collections::HashMap;

use kiln_compiler::ir::{AddressSpace, FuncId, Inst, InstData, Module, Value};

use super::{Holder, Spaces, inferred, space_of};

/// How often a function is compiled at most.
const MOST: usize = 8;

/// How many functions are compiled more than once at most.
const SEPARATED: usize = 64;

/// In which memory each argument is that is a generic address for the callee.
type Memories = Vec<Option<AddressSpace>>;

/// The calls of each function.
type Calls = HashMap<FuncId, Vec<(FuncId, Inst)>>;

/// Gives calls of one function that bring addresses in different memories copies of it. What is then known
/// of all places.
pub(super) fn separate(module: &mut Module) -> Spaces {
    let mut spaces = inferred(module);
    let mut calls = Calls::new();
    for caller in module.functions.keys() {
        enter_calls(module, caller, &mut calls);
    }
    let mut left = SEPARATED;
    for callee in callers_first(module) {
        if left > 0 && separate_calls(module, callee, &spaces, &mut calls) {
            left -= 1;
            spaces = inferred(module);
        }
    }
    spaces
}

/// Separates the calls of one function by memory. Whether there are copies of the function.
fn separate_calls(module: &mut Module, callee: FuncId, spaces: &Spaces, calls: &mut Calls) -> bool {
    let mut copies: Vec<(Memories, FuncId)> = Vec::new();
    for (caller, inst) in calls.remove(&callee).unwrap_or_default() {
        let brought = memories(module, caller, inst, spaces);
        let known = copies.iter().find(|(memories, _)| *memories == brought);
        let copy = match known.or_else(|| copies.get(MOST - 1)) {
            Some((_, copy)) => *copy,
            None => {
                let copy = match copies.is_empty() {
                    true => callee,
                    false => copy_of(module, callee, calls),
                };
                copies.push((brought, copy));
                copy
            }
        };
        if let InstData::Call { callee, .. } = &mut module.functions[caller].insts[inst].data {
            *callee = copy;
        }
    }
    copies.len() > 1
}

fn copy_of(module: &mut Module, function: FuncId, calls: &mut Calls) -> FuncId {
    let name = module.functions[function].name.clone();
    let copy = module.clone_function(function, &name);
    enter_calls(module, copy, calls);
    copy
}

fn enter_calls(module: &Module, caller: FuncId, calls: &mut Calls) {
    let function = &module.functions[caller];
    function.for_each_inst(|_, inst| {
        if let Some(callee) = function.insts[inst].data.callee() {
            calls.entry(callee).or_default().push((caller, inst));
        }
    });
}

/// In which memories the arguments of a call are.
fn memories(module: &Module, caller: FuncId, inst: Inst, spaces: &Spaces) -> Memories {
    let Some((callee, args)) = module.functions[caller].insts[inst].data.call() else {
        return Memories::new();
    };
    let callee = &module.functions[callee];
    let memory = |(param, &arg): (Value, &Value)| {
        let taken = space_of(&module.types, callee.type_of(param));
        let brought = spaces.of(Holder::Value(caller, arg));
        brought.filter(|_| taken == Some(AddressSpace::Generic))
    };
    let params = callee.params.iter().map(|param| param.value);
    params.zip(args).map(memory).collect()
}

/// The functions of a module, each after those that call it.
fn callers_first(module: &Module) -> Vec<FuncId> {
    let mut callees: HashMap<FuncId, Vec<FuncId>> = HashMap::new();
    let mut waits: HashMap<FuncId, usize> = HashMap::new();
    for (id, function) in module.functions.iter() {
        let list = callees.entry(id).or_default();
        function.for_each_inst(|_, inst| list.extend(function.insts[inst].data.callee()));
        for &callee in &*list {
            *waits.entry(callee).or_default() += 1;
        }
    }
    let mut order: Vec<FuncId> = module.functions.keys().collect();
    order.retain(|id| !waits.contains_key(id));
    let mut next = 0;
    while let Some(caller) = order.get(next).copied() {
        next += 1;
        for &callee in &callees[&caller] {
            if let Some(count) = waits.get_mut(&callee) {
                *count -= 1;
                if *count == 0 {
                    order.push(callee);
                }
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use kiln_compiler::ir;

    use super::super::infer_address_spaces;
    use super::*;

    /// A kernel that calls the first of so many functions with each combination of two memories for four
    /// arguments; each calls the next with them in two orders.
    fn chain(functions: usize) -> Module {
        let mut text = String::from(
            "module m specialized\n\nkernel @k(%0 x: slice<generic, mut f32>) {\n  shared shared0 s: f32 align \
             4\n  %1: ptr<generic, mut f32> = slice_ptr %0\n  %2: ptr<shared, mut f32> = shared_addr \
             shared0\n  %3: ptr<generic, mut f32> = space_cast %2\n",
        );
        for which in 0..16usize {
            let arg = |bit: usize| if which >> bit & 1 == 0 { "%1" } else { "%3" };
            let args: Vec<&str> = (0..4).map(arg).collect();
            text += &format!("  call @f0({})\n", args.join(", "));
        }
        for number in 0..functions {
            let params = (0..4).map(|i| format!("%{i} p{i}: ptr<generic, mut f32>"));
            let params: Vec<String> = params.collect();
            text += &format!("}}\n\ndevice @f{number}({}) {{\n", params.join(", "));
            text += &match number + 1 == functions {
                true => "  %4: f32 = load %0\n  store %1, %4\n".to_owned(),
                false => {
                    let next = number + 1;
                    format!("  call @f{next}(%0, %1, %2, %3)\n  call @f{next}(%3, %2, %0, %1)\n")
                }
            };
        }
        text += "}\n";
        ir::parse(&text, &|_| None).expect("it is right")
    }

    #[test]
    fn a_function_is_copied_at_most_seven_times() {
        let mut module = chain(10);
        ir::verify(&module).expect("it is right");
        infer_address_spaces(&mut module);
        ir::verify(&module).expect("it stays right");
        assert_eq!(module.functions.len(), 1 + 10 * MOST);
    }

    /// What is called with either of two memories stays generic.
    #[test]
    fn what_is_called_in_two_memories_is_compiled_for_each() {
        let text = "\
module m specialized

kernel @k(%0 x: slice<generic, mut f32>, %1 c: bool) {
  shared shared0 tile: f32 align 4
  %2: ptr<shared, mut f32> = shared_addr shared0
  %3: ptr<generic, mut f32> = space_cast %2
  %4: ptr<generic, mut f32> = slice_ptr %0
  call @outer(%3)
  call @outer(%4)
  call @outer(%3)
  %5: ptr<generic, mut f32> = select %1, %3, %4
  call @inner(%5)
}

device @outer(%0 p: ptr<generic, mut f32>) {
  call @inner(%0)
}

device @inner(%0 p: ptr<generic, mut f32>) {
  %1: f32 = const 1
  store %0, %1
}
";
        let separated = "\
module m specialized

kernel @k(%0 x: slice<global, mut f32>, %1 c: bool) {
  shared shared0 tile: f32 align 4
  %2: ptr<shared, mut f32> = shared_addr shared0
  %3: ptr<global, mut f32> = slice_ptr %0
  call @outer(%2)
  call @outer.2(%3)
  call @outer(%2)
  %4: ptr<generic, mut f32> = space_cast %2
  %5: ptr<generic, mut f32> = space_cast %3
  %6: ptr<generic, mut f32> = select %1, %4, %5
  call @inner(%6)
}

device @outer(%0 p: ptr<shared, mut f32>) {
  call @inner.2(%0)
}

device @inner(%0 p: ptr<generic, mut f32>) {
  %1: f32 = const 1
  store %0, %1
}

device @outer.2(%0 p: ptr<global, mut f32>) {
  call @inner.3(%0)
}

device @inner.2(%0 p: ptr<shared, mut f32>) {
  %1: f32 = const 1
  store %0, %1
}

device @inner.3(%0 p: ptr<global, mut f32>) {
  %1: f32 = const 1
  store %0, %1
}
";
        let mut module = ir::parse(text, &|_| None).expect("it is right");
        infer_address_spaces(&mut module);
        ir::verify(&module).expect("it stays right");
        assert_eq!(module.to_string(), separated);
    }

    #[test]
    fn there_is_an_end_to_what_is_copied() {
        let mut module = chain(SEPARATED + 10);
        infer_address_spaces(&mut module);
        ir::verify(&module).expect("it stays right");
        assert_eq!(module.functions.len(), 1 + SEPARATED * MOST + 10);
    }
}
