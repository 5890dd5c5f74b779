//! Variables, control flow and declarations.

use kiln_description::Op;

use crate::ir::{CompareOp, ConstArg, ConstParam, Entity, FastMath, Inline, Type, Unroll};

use super::super::Operand;
use super::super::pool::Entry;
use super::super::range::Range;
use super::expression::operator;
use super::{BodyConst, Cursor};

impl<'k> Cursor<'_, '_, 'k> {
    pub(super) fn statement(&mut self, op: Op) {
        match op {
            Op::Param | Op::Bind | Op::Let | Op::Slot | Op::Declare => self.binding(op),
            Op::Assign | Op::AssignOp | Op::Discard => self.assignment(op),
            Op::Assert | Op::AssertEq | Op::Panic | Op::PanicInPlace | Op::Debug => {
                self.assertion(op);
            }
            Op::Print => {
                let (to_stderr, format) = (self.code.flag(), self.code.text());
                let values = self.list();
                self.front().print(format, &values, to_stderr);
            }
            Op::If | Op::IfElse => self.branch(op),
            Op::While | Op::Loop | Op::For | Op::ForEach | Op::ForItems => self.repetition(op),
            Op::Break | Op::Continue | Op::Return | Op::ReturnValue => self.end(op),
            _ => self.declaration(op),
        }
    }

    fn binding(&mut self, op: Op) {
        let (front, body) = (self.front(), self.body);
        match op {
            Op::Param => {
                let (name, ty) = (self.code.text(), self.ty());
                let (mutable, memory) = (self.code.flag(), self.when());
                let variable = self.code.number();
                body.set_local(variable, front.param(name, ty, mutable, memory));
            }
            Op::Bind => {
                let name = self.code.text();
                let (mutable, memory) = (self.code.flag(), self.when());
                let variable = self.code.number();
                let value = self.eval();
                body.set_local(variable, front.bind(name, value, mutable, memory));
            }
            Op::Let => {
                let variable = self.code.number();
                let value = self.eval();
                body.set_local(variable, value);
            }
            Op::Slot => {
                let variable = self.code.number();
                body.set_local(variable, front.slot());
            }
            _ => {
                let variable = self.code.number();
                let memory = self.when();
                let ty = self.code.flag().then(|| self.ty());
                body.set_local(variable, front.declare(ty.filter(|_| memory)));
            }
        }
    }

    fn assignment(&mut self, op: Op) {
        let front = self.front();
        if op == Op::Discard {
            front.discard(self.eval());
            return;
        }
        let (place, value) = self.assigned();
        match op {
            Op::AssignOp => {
                let (op, _) = self.code.op();
                front.assign(place, operator(front, op, place, value));
            }
            _ => front.assign(place, value),
        }
    }

    /// What is assigned to, and the value, each evaluated when it is to be.
    pub(super) fn assigned(&mut self) -> (Operand<'k>, Operand<'k>) {
        let (early, mut value) = (self.when(), self.region());
        let before = early.then(|| value.eval().eager());
        let place = self.eval();
        (place, before.unwrap_or_else(|| value.eval()))
    }

    fn assertion(&mut self, op: Op) {
        let (front, builder) = (self.front(), self.front().builder);
        match op {
            Op::Assert => {
                let condition = self.eval();
                builder.assert(condition, self.code.text());
            }
            Op::AssertEq => {
                let op = match self.code.flag() {
                    true => CompareOp::Ne,
                    false => CompareOp::Eq,
                };
                let (left, right) = (self.eval().eager(), self.eval().eager());
                let message = self.code.text();
                let (left, right) = (left.target(), right.target());
                // A message tells two numbers, and of what is made of parts that it is not as it is to be.
                match front.has_parts(left) {
                    true => builder.assert(front.compared(op, left, right), message),
                    false => builder.assert_compared(op, left, right, message),
                }
            }
            Op::Panic => {
                builder.panic(self.code.text());
                let result = self.code.flag().then(|| self.ty());
                front.return_never(result);
            }
            Op::PanicInPlace => builder.panic(self.code.text()),
            _ => {
                let (enabled, mut region) = (self.eval(), self.region());
                if enabled.known_bool() != Some(false) {
                    region.eval();
                }
            }
        }
    }

    fn branch(&mut self, op: Op) {
        let (front, cond, mut then) = (self.front(), self.eval(), self.region());
        let then = || {
            then.eval();
        };
        match op {
            Op::If => front.if_(cond, then),
            _ => {
                let mut otherwise = self.region();
                front.if_else(cond, then, || {
                    otherwise.eval();
                });
            }
        }
    }

    fn repetition(&mut self, op: Op) {
        let front = self.front();
        match op {
            Op::While => {
                let (mut cond, mut body) = (self.region(), self.region());
                front.while_(
                    || cond.eval(),
                    || {
                        body.eval();
                    },
                );
            }
            Op::Loop => {
                let mut body = self.region();
                front.loop_(|| {
                    body.eval();
                });
            }
            Op::For => self.for_(),
            Op::ForItems => self.for_items(),
            _ => {
                let variable = self.code.number();
                let (values, body) = (self.list(), self.region());
                for value in values {
                    self.body.set_local(variable, value);
                    Cursor { ..body }.eval();
                }
            }
        }
    }

    fn for_(&mut self) {
        let front = self.front();
        let (inclusive, reversed) = (self.code.flag(), self.code.flag());
        let unroll = self.unroll();
        let variable = self.code.number();
        let range = Range {
            start: self.eval().eager(),
            end: self.eval().eager(),
            inclusive,
            reversed,
            step: self.option().map(Operand::eager),
        };
        let region = self.region();
        // The body is described once, whatever the range becomes.
        front.for_(range, unroll, &mut |index| {
            self.body.set_local(variable, index);
            Cursor { ..region }.eval();
        });
    }

    fn end(&mut self, op: Op) {
        let front = self.front();
        match op {
            Op::Break => front.break_(self.code.number()),
            Op::Continue => front.continue_(self.code.number()),
            Op::Return => front.return_(),
            _ => front.return_value(self.eval()),
        }
    }

    /// How a loop is unrolled.
    pub(super) fn unroll(&mut self) -> Unroll {
        match self.code.number() {
            0 => Unroll::Auto,
            1 => Unroll::Never,
            2 => Unroll::Full,
            factor => Unroll::By(factor - 2),
        }
    }

    /// What is said of the function.
    fn declaration(&mut self, op: Op) {
        let (front, builder) = (self.front(), self.front().builder);
        match op {
            Op::DeclareType => {
                let param = builder.type_param(self.code.text());
                match self.code.number() {
                    0 => param.any(),
                    1 => param.num(),
                    2 => param.int(),
                    _ => param.float(),
                };
            }
            Op::DeclareConst | Op::InlineConst => {
                let name = self.code.text();
                let ty = match self.entry() {
                    Some(entry @ Entry::Type(_)) => front.type_of(entry),
                    _ => {
                        self.unfit();
                        Type::U64
                    }
                };
                let mut consts = self.body.consts.borrow_mut();
                let param = match op {
                    Op::DeclareConst => builder.declare_const(name, ty),
                    // What it is the call says.
                    _ => ConstParam::from_index(consts.len()),
                };
                let is = ConstArg::Param(param);
                consts.push(BodyConst { name, ty, is });
            }
            Op::StaticAssert => {
                let condition = self.eval().read();
                builder.static_assert(condition, self.code.text());
            }
            Op::Bounds => match self.code.number() {
                1 => builder.clamped(),
                _ => builder.checked(),
            },
            Op::FastMath => {
                builder.fast_math(FastMath::from_bits(self.code.number() as u8));
            }
            Op::MaxRegisters => builder.max_registers(self.code.number()),
            Op::Unroll => builder.unroll(self.unroll()),
            Op::InlineThreshold => builder.inline_threshold(self.code.number()),
            Op::Inline => builder.inline(match self.code.number() {
                1 => Inline::Hint,
                2 => Inline::Always,
                3 => Inline::Never,
                _ => Inline::Auto,
            }),
            Op::SayBool => builder.attribute(self.code.text(), self.code.flag()),
            Op::SayInt => builder.attribute(self.code.text(), self.code.int() as i64),
            Op::SayText => builder.attribute(self.code.text(), self.code.text()),
            _ => {
                let (threads, blocks) = (self.code.number(), self.code.number());
                builder.launch_bounds(threads, blocks);
            }
        }
    }
}
