//! Device functions and calls of them.

use kiln_jit_core::ir::{
    AddressSpace, FuncId, Function, FunctionKind, InstData, InstNode, Location, Type, TypeData,
    Value,
};

use super::control::Returns;
use super::launch::Role;
use super::memory::{Access, Base, Place};
use super::warp::Members;
use super::{Frame, Generator};

/// What a device function takes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Takes {
    /// A value.
    Data(Type),
    /// A slice, with what may be done with it.
    Slice(Type, Access),
}

/// A device function that can be called.
#[derive(Clone, Debug)]
pub(super) struct Callee {
    id: FuncId,
    takes: Vec<Takes>,
    result: Type,
    /// It has barriers: all threads of the block that have not ended must call it together.
    barriers: bool,
}

impl Generator {
    /// All device functions, each with calls of those before it.
    pub(super) fn device_functions(&mut self) {
        for number in 0..self.random.below(self.budget.functions + 1) {
            let barriers = self.random.chance(25);
            let takes = self.takes(barriers);
            let result = match self.random.chance(if barriers { 50 } else { 85 }) {
                true => self.any_type(),
                false => Type::UNIT,
            };
            let callee = self.device_function(number, takes, result, barriers);
            self.callees.push(callee);
        }
    }

    fn takes(&mut self, barriers: bool) -> Vec<Takes> {
        let mut takes: Vec<Takes> = (0..self.random.below(4))
            .map(|_| Takes::Data(self.any_type()))
            .collect();
        if self.random.chance(30) {
            let params = self.plan.params.clone();
            let param = self.random.below(params.len());
            match params[param].role {
                Role::Input(_) => takes.push(Takes::Slice(params[param].ty, Access::Read)),
                Role::Accumulator(op, _) => {
                    takes.push(Takes::Slice(params[param].ty, Access::Accumulate(op)));
                }
                _ => {}
            }
        }
        let shared = self.plan.shared.iter().copied().chain(self.plan.dynamic);
        let mut shared: Vec<(Type, AddressSpace)> =
            shared.map(|(ty, _)| (ty, AddressSpace::Shared)).collect();
        for param in &self.plan.params {
            if let (Role::Tile(element, _), TypeData::Slice { space, .. }) =
                (param.role, self.module.types.data(param.ty))
            {
                shared.push((element, *space));
            }
        }
        if !shared.is_empty() && self.random.chance(if barriers { 80 } else { 20 }) {
            let (element, space) = self.random.of(&shared);
            let ty = self.module.types.slice(element, space, true);
            takes.push(Takes::Slice(ty, Access::Read));
        }
        takes
    }

    fn device_function(
        &mut self,
        number: usize,
        takes: Vec<Takes>,
        result: Type,
        barriers: bool,
    ) -> Callee {
        let name = format!("f{number}");
        let mut function = Function::new(name, FunctionKind::Device, Location::unknown());
        function.result = result;
        self.frame = Frame::new(function);
        self.frame.uniform = barriers;
        self.frame.members = barriers.then_some(Members::All);
        if barriers {
            self.frame.returns = Returns::Together;
        }
        self.frame.left = self.budget.function_instructions as isize;
        // It is called in loops, too.
        self.frame.repeats = 2;
        for (i, &what) in takes.iter().enumerate() {
            self.bind(i, what);
        }
        if barriers {
            let block = self.plan.block;
            let thread = self.linear("thread_idx", "block_dim", block);
            self.frame.thread = Some(thread);
        }
        self.declare_vars(false);
        if barriers && self.has_shared() {
            self.section_statement();
        } else if barriers {
            self.act(InstData::Barrier);
        }
        while !self.frame.ended && self.frame.left > 0 {
            self.statement();
        }
        self.function_end();
        let placeholder = Function::new("placeholder", FunctionKind::Device, Location::unknown());
        let frame = std::mem::replace(&mut self.frame, Frame::new(placeholder));
        Callee {
            id: self.module.functions.push(frame.function),
            takes,
            result,
            barriers,
        }
    }

    /// A parameter, known to the statements.
    fn bind(&mut self, position: usize, what: Takes) {
        let (Takes::Data(ty) | Takes::Slice(ty, _)) = what;
        let name = format!("a{position}");
        let function = &mut self.frame.function;
        let value = function.add_param(name, ty, Location::unknown());
        self.frame.set_uniform(value, false);
        match what {
            Takes::Data(_) => self.frame.pool.push(value),
            Takes::Slice(ty, access) => {
                let TypeData::Slice { element, .. } = *self.module.types.data(ty) else {
                    return;
                };
                let len = match self.is_exchanged_slice(ty, access) {
                    true => Some(self.plan.threads()),
                    false => None,
                };
                let base = Base::Slice(value);
                self.frame.places.push(Place {
                    base,
                    element,
                    len,
                    access,
                });
            }
        }
    }

    /// The last return, or two of them.
    fn function_end(&mut self) {
        if self.frame.ended {
            return;
        }
        if self.frame.function.result == Type::UNIT && self.random.chance(50) {
            return;
        }
        if self.frame.returns == Returns::Anywhere && self.random.chance(25) {
            let cond = self.expr(Type::BOOL, 1, false);
            let then_region = self.branch(false, |g| g.leave());
            let else_region = Some(self.branch(false, |g| g.leave()));
            return self.act(InstData::If {
                cond,
                then_region,
                else_region,
            });
        }
        self.leave();
    }

    /// A call of something.
    pub(super) fn call_statement(&mut self) {
        let callees: Vec<usize> = (0..self.callees.len()).collect();
        if self.call_one_of(callees).is_none() {
            self.let_statement();
        }
    }

    /// Calls of functions that the kernel has not called yet, where that is possible.
    pub(super) fn last_calls(&mut self) {
        for callee in 0..self.callees.len() {
            let id = self.callees[callee].id;
            let calls = |node: &InstNode| matches!(node.data, InstData::Call { callee, .. } if callee == id);
            let called = self.frame.function.insts.values().any(calls);
            if !called
                && self.random.chance(80)
                && let Some(Some(value)) = self.call_one_of(vec![callee])
            {
                self.mix_in(value);
            }
        }
    }

    /// The result of a call, of type `ty`.
    pub(super) fn call_of(&mut self, ty: Type) -> Option<Value> {
        let fits = |i: &usize| self.callees[*i].result == ty;
        let callees: Vec<usize> = (0..self.callees.len()).filter(fits).collect();
        self.call_one_of(callees).flatten()
    }

    /// A call of one of these functions with its result, if one can be called here.
    fn call_one_of(&mut self, mut callees: Vec<usize>) -> Option<Option<Value>> {
        callees.retain(|&i| self.callable(&self.callees[i]));
        if callees.is_empty() || self.frame.unforeseen || self.frame.repeats > 16 {
            return None;
        }
        let callee = self.callees[self.random.of(&callees)].clone();
        let mut args = Vec::new();
        for what in callee.takes {
            let arg = match what {
                Takes::Data(ty) => self.expr(ty, 1, false),
                Takes::Slice(ty, access) => self.slice_for(ty, access)?,
            };
            args.push(arg);
        }
        let call = InstData::Call {
            callee: callee.id,
            type_args: Vec::new(),
            const_args: Vec::new(),
            args: args.into_iter().collect(),
        };
        if callee.result == Type::UNIT {
            self.act(call);
            return Some(None);
        }
        Some(Some(self.emit_varying(call, callee.result)))
    }

    /// Whether all that a function needs is here.
    fn callable(&self, callee: &Callee) -> bool {
        let slices = callee.takes.iter().all(|what| match *what {
            Takes::Data(_) => true,
            Takes::Slice(ty, access) => self.slice_for(ty, access).is_some(),
        });
        slices && (self.frame.uniform || !callee.barriers)
    }

    fn slice_for(&self, ty: Type, access: Access) -> Option<Value> {
        self.frame.places.iter().find_map(|place| match place.base {
            Base::Slice(slice) => {
                (self.frame.ty(slice) == ty && place.access == access).then_some(slice)
            }
            _ => None,
        })
    }
}
