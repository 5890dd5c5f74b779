//! Where wide slices flow: which values of a function are wide when some arguments are.
//!
//! Builders describe slices with a 32-bit length. When an argument has 2^32 elements or more, its
//! parameter becomes a wide slice, and with it everything it reaches: variables it is assigned to,
//! results of calls that return it, address-space casts of it. The analysis runs on the generic
//! function, to a fixed point because a loop can read a variable before it is assigned.
//!
//! Slices inside of others, as fields of structs and elements of arrays, and in memory, are all wide as soon as
//! one argument is: nothing follows which of them it reaches.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use crate::definition::{Body, Snapshot};
use crate::ir::{Inst, InstData, Value, Var};

/// What became wide in one function.
#[derive(Default)]
pub(super) struct WideValues {
    /// Values.
    pub(super) values: HashSet<Value>,
    /// Variables.
    pub(super) vars: HashSet<Var>,
    /// Whether the result did.
    pub(super) result: bool,
}

/// The analysis, remembered for each function and set of wide parameters.
pub(super) struct WideFlow<'a> {
    snapshot: &'a Snapshot,
    known: HashMap<(usize, Vec<bool>), Rc<WideValues>>,
    /// Whether slices inside of others are wide.
    inside: bool,
}

impl<'a> WideFlow<'a> {
    pub(super) fn new(snapshot: &'a Snapshot) -> Self {
        Self {
            snapshot,
            known: HashMap::new(),
            inside: false,
        }
    }

    /// Makes slices inside of others wide, before anything is asked.
    pub(super) fn widen_inside(&mut self) {
        self.inside = true;
    }

    /// Whether slices inside of others are wide.
    pub(super) fn inside(&self) -> bool {
        self.inside
    }

    /// What is wide in the function of a definition when these parameters are.
    pub(super) fn of(&mut self, definition: usize, params: &[bool]) -> Rc<WideValues> {
        if !params.contains(&true) && !self.inside {
            return Rc::default();
        }
        let key = (definition, params.to_vec());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let body: &'a Body = &self.snapshot.bodies[definition].1;
        let function = body.function();
        let mut flow = WideValues::default();
        for (param, _) in function
            .params
            .iter()
            .zip(params)
            .filter(|(_, wide)| **wide)
        {
            flow.values.insert(param.value);
        }
        loop {
            let mut changed = false;
            function.for_each_inst(|_, inst| {
                changed |= self.step(definition, inst, &mut flow);
            });
            if !changed {
                break;
            }
        }
        let flow = Rc::new(flow);
        self.known.insert(key, flow.clone());
        flow
    }

    /// Carries wideness through one instruction; whether anything was new.
    fn step(&mut self, definition: usize, inst: Inst, flow: &mut WideValues) -> bool {
        let body: &'a Body = &self.snapshot.bodies[definition].1;
        let function = body.function();
        let node = &function.insts[inst];
        let values = &flow.values;
        let is_slice = |value| body.module.types.is_slice(function.type_of(value));
        let wide = match &node.data {
            InstData::VarGet(var) => flow.vars.contains(var),
            InstData::SpaceCast { arg } => values.contains(arg),
            InstData::Extract { .. } | InstData::Load { .. } => {
                self.inside && node.result.is_some_and(is_slice)
            }
            InstData::Select {
                if_true, if_false, ..
            } => values.contains(if_true) || values.contains(if_false),
            InstData::Call { callee, args, .. } => {
                let wide: Vec<bool> = args.iter().map(|arg| values.contains(arg)).collect();
                let position = self.snapshot.callee(definition, *callee);
                position.is_some_and(|position| self.of(position, &wide).result)
            }
            InstData::VarSet(var, value) => {
                return values.contains(value) && flow.vars.insert(*var);
            }
            InstData::Return { value: Some(value) } => {
                let new = values.contains(value) && !flow.result;
                flow.result |= new;
                return new;
            }
            _ => false,
        };
        wide && node.result.is_some_and(|result| flow.values.insert(result))
    }
}
