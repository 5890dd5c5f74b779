//! Describes functions to the builder from the bytes that the macros have written.
//!
//! Evaluating an operation is calling the method of [`Front`] or [`Operand`] that it stands for, at its
//! place in the user's source, with its operands evaluated before. The form is
//! [`kiln_description`]'s.
//!
//! | file | subject |
//! |---|---|
//! | `expression` | what computes |
//! | `call` | calls and closures |
//! | `items` | what a `for` goes over but ranges |
//! | `statement` | variables, control flow, declarations |
//! | `types` | types and lengths |

mod call;
mod expression;
mod items;
mod statement;
mod types;

use std::cell::{Cell, RefCell};

use kiln_description::{Header, LineColumn, Op, Reader, When};

use crate::ir::{ConstArg, Location, Type};

use super::pool::Entry;
use super::{Front, InlineCall, Operand, Pooled};
use call::LocalClosure;

/// Describes a function.
pub fn describe(front: Front<'_>, code: &'static [u8], pool: &[Pooled]) {
    Body::describe(front, code, pool, None, &[]);
}

/// Describes a function that takes closures in place of a call.
pub fn describe_inline<'k>(
    front: Front<'k>,
    call: &InlineCall<'_, 'k>,
    code: &'static [u8],
    pool: &[Pooled],
) -> Operand<'k> {
    Body::describe(front, code, pool, Some(call), &[])
}

/// Describes a call of a function of elements: its arguments are the first variables.
pub fn describe_closure<'k>(
    front: Front<'k>,
    args: &[Operand<'k>],
    code: &'static [u8],
    pool: &[Pooled],
) -> Operand<'k> {
    front.taken(Body::describe(front, code, pool, None, args))
}

/// A function while it is described.
struct Body<'d, 'k> {
    front: Front<'k>,
    header: Header<'static>,
    pool: &'d [Pooled],
    /// The call that it is described for, if it takes closures.
    call: Option<&'d InlineCall<'d, 'k>>,
    /// Variables, by number.
    locals: Vec<Cell<Operand<'k>>>,
    /// Closures, by number.
    closures: Vec<Cell<Option<LocalClosure<'d, 'k>>>>,
    /// Const parameters, in the order of their declarations.
    consts: RefCell<Vec<BodyConst>>,
}

/// A const parameter: one of the function that is built, or where a function is described in place of a call what
/// the parameter is in that.
#[derive(Copy, Clone)]
struct BodyConst {
    name: &'static str,
    /// The type that it is declared with.
    ty: Type,
    is: ConstArg,
}

impl<'d, 'k> Body<'d, 'k> {
    fn describe(
        front: Front<'k>,
        code: &'static [u8],
        pool: &'d [Pooled],
        call: Option<&'d InlineCall<'d, 'k>>,
        args: &[Operand<'k>],
    ) -> Operand<'k> {
        let mut code = Reader::new(code);
        let header = code.header();
        let body = Body {
            front,
            header,
            pool,
            call,
            locals: vec![Cell::new(front.unit()); args.len().max(header.locals as usize)],
            closures: vec![Cell::new(None); header.closures as usize],
            consts: RefCell::new(Vec::new()),
        };
        for (local, &arg) in body.locals.iter().zip(args) {
            local.set(arg);
        }
        let start = body.position(LineColumn { line: 0, column: 1 });
        front
            .builder
            .at_location(start, || Cursor { body: &body, code }.eval())
    }

    fn position(&self, place: LineColumn) -> Location {
        let line = self.header.line.saturating_add_signed(place.line);
        let builder = self.front.builder;
        builder.location(self.header.file, line, place.column)
    }

    fn entry(&self, number: u32) -> Option<Entry> {
        self.pool.get(number as usize).map(|pooled| pooled.0)
    }

    fn local(&self, number: u32) -> Operand<'k> {
        match self.locals.get(number as usize) {
            Some(local) => local.get(),
            None => self.front.unit(),
        }
    }

    fn set_local(&self, number: u32, value: Operand<'k>) {
        if let Some(local) = self.locals.get(number as usize) {
            local.set(value);
        }
    }
}

/// Where evaluation is.
#[derive(Copy, Clone)]
struct Cursor<'b, 'd, 'k> {
    body: &'b Body<'d, 'k>,
    code: Reader<'static>,
}

impl<'k> Cursor<'_, '_, 'k> {
    fn front(&self) -> Front<'k> {
        self.body.front
    }

    /// Evaluates one operation.
    fn eval(&mut self) -> Operand<'k> {
        let (op, place) = self.code.op();
        self.at(place, |this| this.operation(op))
    }

    /// Goes on with instructions at a place, if there is one.
    fn at(
        &mut self,
        place: Option<LineColumn>,
        evaluate: impl FnOnce(&mut Self) -> Operand<'k>,
    ) -> Operand<'k> {
        match place {
            None => evaluate(self),
            Some(place) => {
                let position = self.body.position(place);
                let builder = self.front().builder;
                builder.at_location(position, || evaluate(self))
            }
        }
    }

    /// The operation that comes.
    fn next_op(&self) -> Op {
        Reader::clone(&self.code).op().0
    }

    /// Each operation in the file of its family.
    // flat match
    fn operation(&mut self, op: Op) -> Operand<'k> {
        match op {
            Op::Unit => self.front().unit(),
            Op::Block => {
                let count = self.code.count();
                (0..count).fold(self.front().unit(), |_, _| self.eval())
            }
            Op::Operator => self.own_operator(),
            Op::Call
            | Op::CallWithConsts
            | Op::CallWithAll
            | Op::Written
            | Op::CallMethod
            | Op::CallMethodInline
            | Op::CallInline
            | Op::CallInlineWithConsts
            | Op::CallClosure
            | Op::Closure
            | Op::LetClosure
            | Op::InlineBody => self.call(op),
            Op::Param
            | Op::Bind
            | Op::Let
            | Op::Slot
            | Op::Declare
            | Op::Assign
            | Op::AssignOp
            | Op::Discard
            | Op::StaticAssert
            | Op::Assert
            | Op::AssertEq
            | Op::Panic
            | Op::PanicInPlace
            | Op::Print
            | Op::Debug
            | Op::If
            | Op::IfElse
            | Op::While
            | Op::Loop
            | Op::For
            | Op::ForEach
            | Op::ForItems
            | Op::Break
            | Op::Continue
            | Op::Return
            | Op::ReturnValue
            | Op::DeclareType
            | Op::DeclareConst
            | Op::InlineConst
            | Op::LaunchBounds
            | Op::Bounds
            | Op::FastMath
            | Op::MaxRegisters
            | Op::Unroll
            | Op::InlineThreshold
            | Op::Inline
            | Op::SayBool
            | Op::SayInt
            | Op::SayText => {
                self.statement(op);
                self.front().unit()
            }
            Op::Items
            | Op::ItemCount
            | Op::Item
            | Op::CountBack
            | Op::PartCount
            | Op::PartOf
            | Op::Least => self.items(op),
            Op::HasElements | Op::ElementAt | Op::BoundElement | Op::BoundRest => self.elements(op),
            _ => self.expression(op),
        }
    }

    /// Notes that the description and its pool do not fit: a defect of the macros, and not to be built
    /// as something else.
    fn unfit(&self) -> Operand<'k> {
        self.front().refuse(
            "the description of this function does not fit what it refers to, which is a defect of \
             Kiln; report it with the function",
        )
    }

    fn list(&mut self) -> Vec<Operand<'k>> {
        (0..self.code.count()).map(|_| self.eval()).collect()
    }

    /// Whether what changes of variables ask for is to be done.
    fn when(&mut self) -> bool {
        let changes = |&method: &u32| match self.body.entry(method) {
            Some(Entry::Method(method)) => method.changes,
            _ => true,
        };
        match self.code.when() {
            When::Never => false,
            When::Always => true,
            When::Changing(methods) => methods.iter().any(changes),
        }
    }

    fn option(&mut self) -> Option<Operand<'k>> {
        self.code.flag().then(|| self.eval())
    }

    /// A cursor at a region, which this one skips.
    fn region(&mut self) -> Self {
        let region = self.code.region();
        Cursor {
            code: self.code.in_region(region),
            ..*self
        }
    }

    fn entry(&mut self) -> Option<Entry> {
        let number = self.code.number();
        self.body.entry(number)
    }
}
