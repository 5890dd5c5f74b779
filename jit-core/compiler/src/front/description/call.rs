//! Calls, and the closures of a function.

use std::cell::Cell;

use kiln_description::{Op, Reader, Region};

use crate::ir::{ConstArg, Location, Type};

use super::super::inline::InlineFunction;
use super::super::pool::{ElementEntry, Entry, MethodEntry};
use super::super::{Closure, InlineCall, Operand};
use super::{Body, Cursor};

/// A closure that the function can call.
#[derive(Copy, Clone)]
pub(super) enum LocalClosure<'d, 'k> {
    /// An argument of the function.
    Given(Closure<'d, 'k>),
    /// One of the function itself.
    Own(OwnClosure),
}

/// A closure that is written in the function. It is described in the scope that it was made in,
/// wherever it is called. No call of it is within another: it can only name closures before it.
#[derive(Copy, Clone)]
pub(super) struct OwnClosure {
    code: Reader<'static>,
    body: Region,
    /// The first of the variables that the closure's arguments become.
    first: u32,
    args: usize,
    scope: Option<usize>,
    at: Location,
}

impl<'d, 'k> Body<'d, 'k> {
    fn call_closure(&self, closure: LocalClosure<'d, 'k>, args: &[Operand<'k>]) -> Operand<'k> {
        let closure = match closure {
            LocalClosure::Given(closure) => return closure(args),
            LocalClosure::Own(closure) => closure,
        };
        for (number, &arg) in (closure.first..).zip(args.iter().take(closure.args)) {
            self.set_local(number, arg);
        }
        let builder = self.front.builder;
        let before = builder.enter_scope(closure.scope);
        let mut cursor = Cursor {
            body: self,
            code: closure.code.in_region(closure.body),
        };
        let result = builder.at_location(closure.at, || self.front.taken(cursor.eval()));
        builder.enter_scope(before);
        result
    }
}

impl<'d, 'k> Cursor<'_, 'd, 'k> {
    pub(super) fn call(&mut self, op: Op) -> Operand<'k> {
        let front = self.front();
        match op {
            Op::Call => {
                let entry = self.entry();
                let (types, args) = (self.types(), self.list());
                self.call_function(entry, &types, &args)
            }
            Op::CallWithConsts => {
                let (entry, types) = (self.entry(), self.types());
                let consts = self.const_args();
                let args = self.list();
                match consts {
                    Some(consts) => front
                        .builder
                        .giving(consts, || self.call_function(entry, &types, &args)),
                    None => self.unfit(),
                }
            }
            Op::CallWithAll => {
                let (entry, types) = (self.entry(), self.types());
                let args: Vec<Operand<'k>> = self.body.locals.iter().map(Cell::get).collect();
                self.call_function(entry, &types, &args)
            }
            Op::Written => {
                let text = self.code.text();
                front.builder.written(text, || self.eval())
            }
            Op::CallMethod => self.call_method(),
            Op::CallInline | Op::CallInlineWithConsts => self.call_inline(op),
            Op::CallMethodInline => self.call_method_inline(),
            Op::CallClosure => {
                let closure = self.closure();
                let args = self.list();
                match closure {
                    Some(closure) => self.body.call_closure(closure, &args),
                    None => front.refuse("this function takes more closures than the call has"),
                }
            }
            Op::InlineBody => self.inline_body(),
            _ => {
                self.closure_value(op);
                front.unit()
            }
        }
    }

    fn call_function(
        &self,
        entry: Option<Entry>,
        types: &[Type],
        args: &[Operand<'k>],
    ) -> Operand<'k> {
        match entry {
            Some(Entry::Function(call)) => call(self.front(), types, args),
            // Of a `default()` that the host has called.
            Some(entry @ (Entry::Scalar(..) | Entry::Aggregate(..))) => {
                self.front().constant(entry)
            }
            _ => self.unfit(),
        }
    }

    fn call_method(&mut self) -> Operand<'k> {
        let front = self.front();
        let Some(Entry::Method(method)) = self.entry() else {
            return self.unfit();
        };
        let (is_place, may_change) = (self.code.flag(), self.when());
        let mut receiver = self.eval();
        if may_change {
            receiver = front.ready(method.receiver, receiver);
        }
        let (types, args) = (self.types(), self.list());
        front.on_receiver(method.receiver, receiver, is_place, |receiver| {
            let mut all = vec![receiver];
            all.extend(args);
            (method.call)(front, &types, &all)
        })
    }

    /// An operator, which is a call where an operand has it of its own.
    pub(super) fn own_operator(&mut self) -> Operand<'k> {
        match self.entry() {
            Some(Entry::Primitive) => self.eval(),
            Some(Entry::Method(method)) => {
                let (op, place) = self.code.op();
                self.at(place, |this| this.call_operator(op, method))
            }
            Some(Entry::Index(element)) => {
                let (_, place) = self.code.op();
                self.at(place, |this| this.element(element))
            }
            _ => self.unfit(),
        }
    }

    /// `base[(i, j)]` of a type that has the number of the element: the description has the indices one around the
    /// other, the last inside.
    fn element(&mut self, element: ElementEntry) -> Operand<'k> {
        for _ in 1..element.count {
            let _ = self.code.op();
        }
        let front = self.front();
        let base = self.eval().target();
        let indices = (0..element.count).map(|_| self.eval().eager());
        let mut indices: Vec<Operand<'k>> = indices.collect();
        indices.reverse();
        let place = (element.call)(front, &[], &[base.address(false), front.tuple(&indices)]);
        base.field(element.field).index(place)
    }

    fn call_operator(&mut self, op: Op, method: MethodEntry) -> Operand<'k> {
        let front = self.front();
        let mut args = Vec::new();
        let mut is_place = false;
        let receiver = match op {
            Op::AssignOp => {
                is_place = true;
                let (place, value) = self.assigned();
                // Which operator it is the entry says.
                let _ = self.code.op();
                args.push(value);
                place
            }
            Op::Neg | Op::Not => self.eval(),
            _ => {
                let left = self.eval();
                args.push(self.eval());
                left
            }
        };
        front.on_receiver(method.receiver, receiver, is_place, |receiver| {
            let all: Vec<Operand<'k>> = std::iter::once(receiver).chain(args).collect();
            (method.call)(front, &[], &all)
        })
    }

    fn call_inline(&mut self, op: Op) -> Operand<'k> {
        let (entry, types) = (self.entry(), self.types());
        let consts = match op {
            Op::CallInlineWithConsts => self.const_args(),
            _ => Some(Vec::new()),
        };
        let args = self.list();
        match consts {
            Some(consts) => self.call_with_closures(entry, &types, &consts, &args),
            None => self.unfit(),
        }
    }

    /// The const arguments of a call; none if one of them is none.
    fn const_args(&mut self) -> Option<Vec<ConstArg>> {
        let consts = (0..self.code.count()).map(|_| self.const_arg());
        let consts: Vec<Option<ConstArg>> = consts.collect();
        consts.into_iter().collect()
    }

    /// A method that takes closures, and its receiver by value.
    fn call_method_inline(&mut self) -> Operand<'k> {
        let entry = self.entry();
        let (types, mut args) = (self.types(), self.list());
        if let Some(receiver) = args.first_mut() {
            *receiver = receiver.target();
        }
        self.call_with_closures(entry, &types, &[], &args)
    }

    fn call_with_closures(
        &mut self,
        entry: Option<Entry>,
        types: &[Type],
        consts: &[ConstArg],
        args: &[Operand<'k>],
    ) -> Operand<'k> {
        let (front, body) = (self.front(), self.body);
        let closures: Vec<_> = (0..self.code.count())
            .filter_map(|_| {
                let (op, _) = self.code.op();
                self.closure_value(op)
            })
            .map(|closure| move |args: &[Operand<'k>]| body.call_closure(closure, args))
            .collect();
        let closures: Vec<Closure<'_, 'k>> = closures.iter().map(|c| c as _).collect();
        let call = InlineCall {
            types,
            consts,
            args,
            closures: &closures,
        };
        match entry {
            Some(Entry::Inline(describe)) => describe(front, &call),
            _ => self.unfit(),
        }
    }

    /// A closure by its number.
    fn closure(&mut self) -> Option<LocalClosure<'d, 'k>> {
        let number = self.code.number();
        self.body.closures.get(number as usize)?.get()
    }

    /// A closure by its number, or one that is written here.
    fn closure_value(&mut self, op: Op) -> Option<LocalClosure<'d, 'k>> {
        if op != Op::LetClosure {
            return self.closure();
        }
        let number = self.code.number();
        let closure = LocalClosure::Own(OwnClosure {
            first: self.code.number(),
            args: self.code.number() as usize,
            body: self.code.region(),
            code: self.code,
            scope: self.front().builder.scope(),
            at: self.front().builder.here(),
        });
        if let Some(local) = self.body.closures.get(number as usize) {
            local.set(Some(closure));
        }
        Some(closure)
    }

    /// The whole of a function that is described in place of a call.
    fn inline_body(&mut self) -> Operand<'k> {
        let (front, body) = (self.front(), self.body);
        let Some(call) = body.call else {
            return self.unfit();
        };
        let name = self.code.text();
        let type_params: Vec<(&str, usize)> = (0..self.code.count())
            .map(|_| (self.code.text(), self.code.number() as usize))
            .collect();
        let declared = front.declared(|| self.types());
        for (local, &closure) in body.closures.iter().zip(call.closures) {
            local.set(Some(LocalClosure::Given(closure)));
        }
        let first = self.code.number();
        let mut inner = self.region();
        let consts: Vec<&'static str> = body.consts.borrow().iter().map(|c| c.name).collect();
        let function = InlineFunction {
            name,
            types: &type_params,
            consts: &consts,
            declared: &declared,
        };
        front.inlined(&function, call, |args, numbers| {
            for (known, &number) in body.consts.borrow_mut().iter_mut().zip(numbers) {
                known.is = number;
            }
            for (number, &arg) in (first..).zip(args) {
                body.set_local(number, arg);
            }
            front.taken(inner.eval())
        })
    }
}
