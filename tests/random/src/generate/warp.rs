//! Operations of a warp.
//!
//! The frame knows the member mask for the current place, if there is one: all lanes of that mask
//! that have not ended come by here, and no others. It is the full mask where all threads of the
//! block come by, or all of the warp; in a branch that some lanes take it is a ballot on the
//! condition, taken before the branch, or a constant where the lane's number decides. In loops that
//! lanes leave on their own there is none. An operation may also be executed by groups of these
//! lanes, each with a mask of its own from a match.
//!
//! A shuffle may read a lane that is not there, which gives anything on a GPU: the lane takes its
//! own value then.

use kiln_jit_core::ir::{
    BinaryOp, CompareOp, Constant, InstData, IntrinsicDef, Scalar, Type, UnaryOp, Value,
};

use super::Generator;

/// Operations that are not about the lanes that come by.
const REGISTERS: [&str; 7] = [
    "lane_id",
    "warp_id",
    "lanemask_lt",
    "lanemask_le",
    "lanemask_gt",
    "lanemask_ge",
    "lanemask_eq",
];

/// Reductions of 32-bit integers.
const REDUCTIONS: [&str; 6] = [
    "reduce_add",
    "reduce_min",
    "reduce_max",
    "reduce_and",
    "reduce_or",
    "reduce_xor",
];

/// The member mask of the current place.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Members {
    /// All lanes that have not ended.
    All,
    /// Those of a mask, which is a value in scope.
    Of(Value),
}

impl Generator {
    /// Calls a row of the chapter; its result differs between threads.
    pub(super) fn warp_row(&mut self, name: &str, args: &[Value], ty: Type) -> Value {
        let data = self.warp_data(name, args);
        let value = self.raw(data, ty);
        self.frame.set_uniform(value, false);
        value
    }

    pub(super) fn warp_data(&mut self, name: &str, args: &[Value]) -> InstData {
        let row: &'static IntrinsicDef =
            kiln_device_stdlib::find(&format!("warp.{name}")).expect("the library has the row");
        let id = self.module.intrinsic(row);
        let args = args.iter().copied().collect();
        InstData::Intrinsic { id, args }
    }

    /// The member mask as a value.
    pub(super) fn member_mask(&mut self, members: Members) -> Value {
        match members {
            Members::Of(mask) => mask,
            Members::All => self.int(Type::U32, i128::from(u32::MAX)),
        }
    }

    /// The member mask for an operation: at times that of a group of lanes with equal values.
    fn some_mask(&mut self, members: Members) -> Value {
        let mask = self.member_mask(members);
        if !self.random.chance(12) {
            return mask;
        }
        let key = self.key(1);
        self.warp_row("match_any", &[mask, key], Type::U32)
    }

    /// The lanes that come by here, exactly.
    pub(super) fn lanes_here(&mut self, mask: Value) -> Value {
        let yes = self.raw(InstData::Const(Constant::Bool(true)), Type::BOOL);
        self.warp_row("ballot", &[mask, yes], Type::U32)
    }

    /// A value by an operation of the warp, if there is one of this type that can be here.
    pub(super) fn warp_expr(&mut self, scalar: Scalar, depth: usize) -> Option<Value> {
        if !self.plan.warps {
            return None;
        }
        let members = self.frame.members;
        let value = match (scalar, members) {
            (Scalar::U32, _) if members.is_none() || self.random.chance(25) => {
                let name = self.random.of(&REGISTERS);
                self.warp_row(name, &[], Type::U32)
            }
            (_, None) => return None,
            (Scalar::Bool, Some(members)) => {
                let mask = self.some_mask(members);
                self.vote(mask, depth)
            }
            (Scalar::U32, Some(members)) if self.random.chance(40) => self.mask_of(members, depth),
            (Scalar::U32 | Scalar::I32, Some(members)) if self.random.chance(40) => {
                let name = self.random.of(&REDUCTIONS);
                let ty = Type::scalar(scalar);
                let value = self.expr(ty, depth, false);
                let mask = self.some_mask(members);
                self.warp_row(name, &[mask, value], ty)
            }
            (_, Some(members)) => self.shuffle(members, scalar, depth),
        };
        self.frame.pool.push(value);
        Some(value)
    }

    fn vote(&mut self, mask: Value, depth: usize) -> Value {
        if self.random.chance(10) {
            return self.is_active();
        }
        let name = self.random.of(&["any", "all", "uniform"]);
        let vote = self.expr(Type::BOOL, depth, false);
        self.warp_row(name, &[mask, vote], Type::BOOL)
    }

    /// Which lanes are active together is up to the backend; that this one is among them is not.
    fn is_active(&mut self) -> Value {
        let active = self.warp_row("active_mask", &[], Type::U32);
        let this = self.warp_row("lanemask_eq", &[], Type::U32);
        let both = self.raw_binary(BinaryOp::And, active, this);
        self.compare(CompareOp::Eq, both, this)
    }

    /// A ballot or a match.
    fn mask_of(&mut self, members: Members, depth: usize) -> Value {
        let mask = self.some_mask(members);
        let name = self
            .random
            .of(&["ballot", "ballot", "match_any", "match_all"]);
        let value = match name {
            "ballot" => self.expr(Type::BOOL, depth, false),
            _ => self.key(depth),
        };
        self.warp_row(name, &[mask, value], Type::U32)
    }

    /// A value to match, of any type.
    fn key(&mut self, depth: usize) -> Value {
        let ty = self.scalar_type();
        let value = self.expr(ty, depth, false);
        let value = self.canonical(value);
        self.coarse(value)
    }

    /// Often only the low bits of an integer, so that lanes have the same.
    fn coarse(&mut self, value: Value) -> Value {
        let ty = self.frame.ty(value);
        if !ty.is_int() || self.random.chance(30) {
            return value;
        }
        let bits = self.random.of(&[1, 3]);
        let low = self.int(ty, bits);
        self.raw_binary(BinaryOp::And, value, low)
    }

    /// The value of another lane, or the lane's own if that one does not come by.
    fn shuffle(&mut self, members: Members, scalar: Scalar, depth: usize) -> Value {
        let ty = Type::scalar(scalar);
        let value = self.expr(ty, depth, false);
        let name = self.random.of(&["idx", "up", "down", "xor"]);
        let source = match self.random.chance(50) {
            true => {
                let lanes = self.random.of(&[0, 1, 2, 3, 8, 16, 31, 33]);
                self.int(Type::U32, lanes)
            }
            false => self.expr(Type::U32, 1, false),
        };
        let width: u32 = self.random.of(&[1, 2, 4, 8, 16, 32, 32, 32]);
        let mask = self.some_mask(members);
        let here = self.lanes_here(mask);
        let read = self.lane_read(name, source, width);
        let number = self.int(Type::U32, i128::from(width));
        let args = [mask, value, source, number];
        let shuffled = self.warp_row(&format!("shuffle_{name}"), &args, ty);
        let bit = self.raw_binary(BinaryOp::Shr, here, read);
        let one = self.int(Type::U32, 1);
        let bit = self.raw_binary(BinaryOp::And, bit, one);
        let cond = self.compare(CompareOp::Eq, bit, one);
        let (if_true, if_false) = (shuffled, value);
        let choice = InstData::Select {
            cond,
            if_true,
            if_false,
        };
        self.raw(choice, ty)
    }

    /// The lane that a shuffle reads, unless it is out of its segment.
    fn lane_read(&mut self, name: &str, source: Value, width: u32) -> Value {
        let lane = self.warp_row("lane_id", &[], Type::U32);
        let any = match name {
            "up" => self.raw_binary(BinaryOp::Sub, lane, source),
            "down" => self.raw_binary(BinaryOp::Add, lane, source),
            "xor" => self.raw_binary(BinaryOp::Xor, lane, source),
            _ => {
                let inner = self.int(Type::U32, i128::from(width - 1));
                let outer = self.int(Type::U32, i128::from(!(width - 1)));
                let first = self.raw_binary(BinaryOp::And, lane, outer);
                let within = self.raw_binary(BinaryOp::And, source, inner);
                self.raw_binary(BinaryOp::Or, first, within)
            }
        };
        let last = self.int(Type::U32, 31);
        self.raw_binary(BinaryOp::And, any, last)
    }

    /// A statement about the warp, where there is a member mask.
    pub(super) fn warp_statement(&mut self) {
        let Some(members) = self.frame.members else {
            return self.assign_statement();
        };
        let deeper = self.frame.depth < self.budget.depth;
        match self.random.below(8) {
            0 => {
                let mask = self.member_mask(members);
                let sync = self.warp_data("sync", &[mask]);
                self.act(sync);
            }
            1..=3 if deeper => self.branch_by_ballot(members),
            4 if deeper => self.branch_by_lane(members),
            5 if deeper => self.branch_of_warp(members),
            _ => {
                let ty = self.scalar_type();
                let any = ty.as_scalar().unwrap_or(Scalar::U32);
                let scalar = self.random.of(&[any, Scalar::U32, Scalar::I32]);
                if let Some(value) = self.warp_expr(scalar, 1) {
                    self.mix_in(value);
                }
            }
        }
    }

    /// A region for some lanes of the warp, with their mask.
    fn members_branch(&mut self, members: Members) -> kiln_jit_core::ir::Region {
        self.branch(false, |g| {
            g.frame.members = Some(members);
            g.warp_statement();
            g.some_statements();
        })
    }

    /// A branch whose sides have masks by votes taken before it.
    fn branch_by_ballot(&mut self, members: Members) {
        let cond = self.condition(1, false);
        let mask = self.member_mask(members);
        let yes = self.warp_row("ballot", &[mask, cond], Type::U32);
        let no = match self.random.chance(50) {
            true => {
                let op = UnaryOp::Not;
                let not = self.raw(InstData::Unary { op, arg: cond }, Type::BOOL);
                self.warp_row("ballot", &[mask, not], Type::U32)
            }
            false => self.raw_binary(BinaryOp::Xor, mask, yes),
        };
        let then_region = self.members_branch(Members::Of(yes));
        let other = self.random.chance(60);
        let else_region = other.then(|| self.members_branch(Members::Of(no)));
        self.act(InstData::If {
            cond,
            then_region,
            else_region,
        });
    }

    /// A branch that the number of the lane decides on.
    fn branch_by_lane(&mut self, members: Members) {
        let lane = self.warp_row("lane_id", &[], Type::U32);
        let limit = self.random.of(&[1, 2, 7, 8, 16, 31]);
        let bound = self.int(Type::U32, limit);
        let cond = self.compare(CompareOp::Lt, lane, bound);
        let below = self.int(Type::U32, (1 << limit) - 1);
        let yes = match members {
            Members::All => below,
            Members::Of(mask) => self.raw_binary(BinaryOp::And, mask, below),
        };
        let all = self.member_mask(members);
        let no = self.raw_binary(BinaryOp::Xor, all, yes);
        let then_region = self.members_branch(Members::Of(yes));
        let other = self.random.chance(60);
        let else_region = other.then(|| self.members_branch(Members::Of(no)));
        self.act(InstData::If {
            cond,
            then_region,
            else_region,
        });
    }

    /// A branch that the lanes of a mask take together.
    fn branch_of_warp(&mut self, members: Members) {
        let mask = self.member_mask(members);
        let cond = self.vote(mask, 1);
        let then_region = self.members_branch(members);
        let other = self.random.chance(50);
        let else_region = other.then(|| self.members_branch(members));
        self.act(InstData::If {
            cond,
            then_region,
            else_region,
        });
    }
}
