//! Flags that are not waited for: a thread writes data and raises its flag, once; others look at the flag
//! and, if they see it raised, at the data. Who sees what differs from run to run. What is kept does not:
//! a flag was not seen, or the data behind it was right.

use kiln_jit_core::ir::{
    AtomicOp, BinaryOp, CompareOp, Constant, InstData, Module, Ordering, Scalar, Scope, Type,
    UnaryOp, Value,
};

use super::launch::Plan;
use super::memory::{Access, Base, Place, SCOPES, WIDE_SCOPES};
use super::{Generator, Variable};
use crate::random::Random;

/// The most scalars in what is handed over.
const MAX_SCALARS: usize = 6;

/// What is planned of mail.
#[derive(Copy, Clone, Debug)]
pub(super) struct MailPlan {
    element: Type,
    flag: Type,
    /// The parameters with data and flags of all threads; else both are in shared memory.
    params: Option<[usize; 2]>,
    /// The parameter that counts what is wrong.
    wrong: usize,
    /// Whether threads look at flags of their block only.
    of_block: bool,
    /// Whether data is read and written atomically.
    atomic: bool,
}

/// Data and flags of threads.
#[derive(Copy, Clone, Debug)]
pub(super) struct Mail {
    plan: MailPlan,
    data: Place,
    flags: Place,
    wrong: Place,
    /// Where the thread's own data and flag are.
    own: Value,
    /// Where those of its block begin, and how many may be looked at from there.
    first: Option<Value>,
    count: u64,
    /// What a raised flag holds.
    mark: i128,
    /// Counts what is wrong in the thread.
    tally: Variable,
    sent: bool,
}

impl Plan {
    /// Memory for mail.
    pub(super) fn mail(&mut self, random: &mut Random, module: &mut Module) -> MailPlan {
        let any = self.types.any(random);
        let element = match scalars(module, any) {
            n if n <= MAX_SCALARS => any,
            _ => self.types.scalar(random),
        };
        let flag = random.of(&[Type::U32, Type::I32, Type::U64, Type::I64]);
        let total = self.total();
        let params = random.chance(70).then(|| {
            let data = self.apart(random, module, "mail", (element, total), false);
            [
                data,
                self.apart(random, module, "flags", (flag, total), true),
            ]
        });
        let wrong = self.apart(random, module, "wrong", (Type::U32, 1), true);
        MailPlan {
            element,
            flag,
            params,
            wrong,
            of_block: params.is_none() || random.chance(40),
            atomic: element.as_scalar().is_some() && random.chance(25),
        }
    }
}

/// How many scalars a value of a type has in it.
fn scalars(module: &Module, ty: Type) -> usize {
    match ty.as_scalar() {
        Some(_) => 1,
        None => {
            let parts = super::part_types(module, ty).into_iter();
            parts.map(|part| scalars(module, part)).sum()
        }
    }
}

impl Generator {
    /// The memory of mail, with no flag raised, before threads can end.
    pub(super) fn declare_mail(&mut self, thread: Value, global: Value) {
        let Some(plan) = self.plan.mail else { return };
        let (threads, total) = (self.plan.threads(), self.plan.total());
        let places = match plan.params {
            Some(params) => params.map(|param| self.place_apart(param)),
            None => [plan.element, plan.flag].map(|ty| self.static_shared(ty, threads)),
        };
        if plan.params.is_none() {
            let zero = self.raw(InstData::Const(Constant::Zero), plan.flag);
            let own = Place {
                access: Access::Own(thread),
                ..places[1]
            };
            self.store_own(&own, zero);
            self.act(InstData::Barrier);
        }
        let (own, first, count) = match (plan.params, plan.of_block) {
            (None, _) => (thread, None, threads),
            (Some(_), false) => (global, None, total),
            (Some(_), true) => {
                let first = self.raw_binary(BinaryOp::Sub, global, thread);
                (global, Some(first), threads)
            }
        };
        let tally = self.declare_var("wrong", Type::U32, false, true);
        let zero = self.int(Type::U32, 0);
        self.act(InstData::VarSet(tally.var, zero));
        self.frame.mail = Some(Mail {
            plan,
            data: places[0],
            flags: places[1],
            wrong: self.place_apart(plan.wrong),
            own,
            first,
            count,
            mark: self.random.of(&[1, 1, 7, 0x7FFF_FFFF]),
            tally,
            sent: false,
        });
    }

    /// A look at somebody's mail; or the thread's own is sent, if it can be only here.
    pub(super) fn mail_statement(&mut self) {
        let Some(mail) = self.frame.mail else { return };
        if !mail.sent && self.frame.repeats == 1 {
            self.frame.mail = Some(Mail { sent: true, ..mail });
            self.send(&mail);
            if self.frame.ended || self.random.chance(40) {
                return;
            }
        }
        self.look_at_mail(&mail);
    }

    /// A last look, when most have sent theirs.
    pub(super) fn last_mail(&mut self) {
        if let Some(mail) = self.frame.mail
            && self.random.chance(60)
        {
            self.look_at_mail(&mail);
        }
    }

    /// The scopes that reach who looks.
    fn mail_scopes(mail: &Mail) -> &'static [Scope] {
        match mail.plan.of_block {
            true => &SCOPES,
            false => &WIDE_SCOPES,
        }
    }

    /// Writes the thread's data, and raises its flag.
    fn send(&mut self, mail: &Mail) {
        let value = self.letter(mail.plan.element, mail.own);
        let ptr = self.element_address(&mail.data, mail.own);
        let scopes = Self::mail_scopes(mail);
        match mail.plan.atomic {
            true => {
                let (ordering, scope) = (Ordering::Relaxed, self.random.of(scopes));
                self.act(InstData::AtomicStore {
                    ptr,
                    value,
                    ordering,
                    scope,
                });
            }
            false => self.act(InstData::Store {
                ptr,
                value,
                volatile: false,
            }),
        }
        if self.random.chance(25) {
            self.statements(1);
        }
        if self.frame.ended {
            return;
        }
        let ptr = self.element_address(&mail.flags, mail.own);
        let mark = self.int(mail.plan.flag, mail.mark);
        self.release(ptr, mark, scopes);
    }

    /// Puts a value in the place of zero so that who acquires it sees all before.
    pub(super) fn release(&mut self, ptr: Value, value: Value, scopes: &[Scope]) {
        use Ordering::{AcquireRelease, Release, SequentiallyConsistent};
        let fenced = self.random.chance(40);
        if fenced {
            let ordering = self
                .random
                .of(&[Release, AcquireRelease, SequentiallyConsistent]);
            let scope = self.random.of(scopes);
            self.act(InstData::Fence { ordering, scope });
        }
        let scope = self.random.of(scopes);
        let stores = self.random.chance(60);
        let ordering = match (fenced, stores) {
            (true, _) => Ordering::Relaxed,
            (false, true) => self.random.of(&[Release, Release, SequentiallyConsistent]),
            (false, false) => self
                .random
                .of(&[Release, AcquireRelease, SequentiallyConsistent]),
        };
        if stores {
            return self.act(InstData::AtomicStore {
                ptr,
                value,
                ordering,
                scope,
            });
        }
        let ty = self.frame.ty(value);
        let data = match self.random.chance(25) {
            true => InstData::AtomicCas {
                ptr,
                expected: self.int(ty, 0),
                new: value,
                ordering,
                scope,
            },
            false => InstData::AtomicRmw {
                op: self.random.of(&[
                    AtomicOp::Exchange,
                    AtomicOp::Or,
                    AtomicOp::Add,
                    AtomicOp::Max,
                ]),
                ptr,
                value,
                ordering,
                scope,
            },
        };
        self.raw(data, ty);
    }

    /// A value that was released, or what was there before; the ordering that a fence has to add
    /// where it is used, if one has to.
    pub(super) fn acquire(&mut self, ptr: Value, ty: Type, scopes: &[Scope]) -> (Value, bool) {
        use Ordering::{Acquire, AcquireRelease, Relaxed, SequentiallyConsistent};
        let scope = self.random.of(scopes);
        let fenced = self.random.chance(40);
        if self.random.chance(75) {
            let ordering = match fenced {
                true => Relaxed,
                false => self.random.of(&[Acquire, Acquire, SequentiallyConsistent]),
            };
            let load = InstData::AtomicLoad {
                ptr,
                ordering,
                scope,
            };
            return (self.raw_varying(load, ty), fenced);
        }
        let ordering = match fenced {
            true => Relaxed,
            false => self
                .random
                .of(&[Acquire, AcquireRelease, SequentiallyConsistent]),
        };
        let change = InstData::AtomicRmw {
            op: self.random.of(&[AtomicOp::Or, AtomicOp::Add]),
            ptr,
            value: self.int(ty, 0),
            ordering,
            scope,
        };
        (self.raw_varying(change, ty), fenced)
    }

    /// A fence that makes acquires of the relaxed loads before.
    pub(super) fn acquiring_fence(&mut self, scopes: &[Scope]) {
        let ordering = self.random.of(&[
            Ordering::Acquire,
            Ordering::AcquireRelease,
            Ordering::SequentiallyConsistent,
        ]);
        let scope = self.random.of(scopes);
        self.act(InstData::Fence { ordering, scope });
    }

    /// Looks at a flag once; if it is raised, the data must be right.
    fn look_at_mail(&mut self, mail: &Mail) {
        let index = match self.random.chance(50) {
            true => self.one_before(mail),
            false => {
                let index = self.index_below(mail.count, false);
                self.cast_to(index, Type::U32)
            }
        };
        let index = match mail.first {
            Some(first) => self.raw_binary(BinaryOp::Add, first, index),
            None => index,
        };
        let scopes = Self::mail_scopes(mail);
        let ptr = self.element_address(&mail.flags, index);
        let (flag, fenced) = self.acquire(ptr, mail.plan.flag, scopes);
        let before = fenced && self.random.chance(50);
        if before {
            self.acquiring_fence(scopes);
        }
        let (op, other) = match self.random.chance(50) {
            true => (CompareOp::Eq, mail.mark),
            false => (CompareOp::Ne, 0),
        };
        let other = self.int(mail.plan.flag, other);
        let cond = self.compare(op, flag, other);
        // Nothing may follow from whether it is seen but what is wrong.
        self.if_unforeseen(cond, |g| {
            if fenced && !before {
                g.acquiring_fence(scopes);
            }
            g.check_letter(mail, index, scopes);
        });
    }

    /// The number of a thread shortly before, among those that may be looked at.
    fn one_before(&mut self, mail: &Mail) -> Value {
        let own = match mail.first {
            Some(first) => self.raw_binary(BinaryOp::Sub, mail.own, first),
            None => mail.own,
        };
        let back = self.random.within(1, 4) as u64 % mail.count;
        let [on, count] =
            [mail.count - back, mail.count].map(|n| self.int(Type::U32, i128::from(n)));
        let moved = self.raw_binary(BinaryOp::Add, own, on);
        self.raw_binary(BinaryOp::Rem, moved, count)
    }

    /// Compares the data at an index with what its sender writes, and counts a difference.
    fn check_letter(&mut self, mail: &Mail, index: Value, scopes: &[Scope]) {
        let ty = mail.plan.element;
        let ptr = self.element_address(&mail.data, index);
        let load = match mail.plan.atomic {
            true => InstData::AtomicLoad {
                ptr,
                ordering: Ordering::Relaxed,
                scope: self.random.of(scopes),
            },
            false => InstData::Load {
                ptr,
                volatile: false,
            },
        };
        let found = self.raw_varying(load, ty);
        let expected = self.letter(ty, index);
        let right = self.equal(found, expected);
        let op = UnaryOp::Not;
        let wrong = self.raw(InstData::Unary { op, arg: right }, Type::BOOL);
        if self.random.chance(50) {
            let one = self.raw(InstData::Cast { arg: wrong }, Type::U32);
            let before = self.raw_varying(InstData::VarGet(mail.tally.var), Type::U32);
            let sum = self.raw_binary(BinaryOp::Add, before, one);
            return self.act(InstData::VarSet(mail.tally.var, sum));
        }
        self.if_(wrong, |g| {
            let zero = g.int(Type::U32, 0);
            let ptr = g.element_address(&mail.wrong, zero);
            let value = g.int(Type::U32, 1);
            let count = InstData::AtomicRmw {
                op: AtomicOp::Add,
                ptr,
                value,
                ordering: Ordering::Relaxed,
                scope: Scope::Device,
            };
            g.raw_varying(count, Type::U32);
        });
    }

    /// What the thread with an index hands over: a value without NaNs that only the index decides.
    fn letter(&mut self, ty: Type, index: Value) -> Value {
        let Some(scalar) = ty.as_scalar() else {
            let parts = self.parts(ty);
            let parts = parts.into_iter().map(|part| {
                let three = self.int(Type::U32, 3);
                let index = self.raw_binary(BinaryOp::Mul, index, three);
                self.letter(part, index)
            });
            let parts = parts.collect();
            return self.raw(InstData::Construct { parts }, ty);
        };
        let factor = self.factor_of(scalar);
        let factor = self.int(Type::U32, factor);
        let one = self.int(Type::U32, 1);
        let scaled = self.raw_binary(BinaryOp::Mul, index, factor);
        let number = self.raw_binary(BinaryOp::Add, scaled, one);
        // Every float holds these exactly.
        let bits = match scalar {
            Scalar::Bool => 1,
            s if s.is_float() => 0xFF,
            _ => return self.cast_to(number, ty),
        };
        let mask = self.int(Type::U32, bits);
        let low = self.raw_binary(BinaryOp::And, number, mask);
        match scalar {
            Scalar::Bool => {
                let zero = self.int(Type::U32, 0);
                self.compare(CompareOp::Ne, low, zero)
            }
            _ => self.cast_to(low, ty),
        }
    }

    /// An odd number for a type: who sends and who looks have to agree on it.
    fn factor_of(&self, scalar: Scalar) -> i128 {
        [0x9E37_79B1, 5, 0x0101_0101, 77][scalar.bytes() as usize % 4]
    }

    fn cast_to(&mut self, arg: Value, ty: Type) -> Value {
        match self.frame.ty(arg) == ty {
            true => arg,
            false => self.raw(InstData::Cast { arg }, ty),
        }
    }

    /// Whether two values without NaNs are equal in all their parts.
    fn equal(&mut self, a: Value, b: Value) -> Value {
        let ty = self.frame.ty(a);
        if ty.as_scalar().is_some() {
            return self.compare(CompareOp::Eq, a, b);
        }
        let mut all = self.raw(InstData::Const(Constant::Bool(true)), Type::BOOL);
        for i in 0..self.parts(ty).len() as u32 {
            let (a, b) = (self.extract(a, i), self.extract(b, i));
            let same = self.equal(a, b);
            all = self.raw_binary(BinaryOp::And, all, same);
        }
        all
    }

    /// The place of a parameter that belongs to none of the other statements.
    pub(super) fn place_apart(&self, param: usize) -> Place {
        let value = self.frame.function.params[param].value;
        let element = self.slice_element(self.frame.ty(value));
        Place {
            base: Base::Slice(value),
            element,
            len: None,
            access: Access::Read,
        }
    }

    fn slice_element(&self, slice: Type) -> Type {
        super::launch::element_of(&self.module, slice).unwrap_or(slice)
    }
}
