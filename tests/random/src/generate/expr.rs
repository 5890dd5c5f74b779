//! Values: every operation on them, at every type.

use kiln_jit_core::ir::{
    BinaryOp, CompareOp, Constant, InstData, IntrinsicDef, Scalar, Type, TypeData, UnaryOp,
    Uniformity, Value,
};

use super::Generator;
use super::types::INTS;

/// What an expression is made by.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Way {
    Leaf,
    Unary,
    Binary,
    Compare,
    Select,
    Cast,
    Bitcast,
    Part,
    Math,
    Load,
    Variable,
    Call,
    Position,
}

const BOOL_WAYS: [(usize, Way); 7] = [
    (3, Way::Leaf),
    (2, Way::Unary),
    (3, Way::Binary),
    (9, Way::Compare),
    (2, Way::Select),
    (1, Way::Cast),
    (2, Way::Load),
];
const INT_WAYS: [(usize, Way); 12] = [
    (4, Way::Leaf),
    (2, Way::Unary),
    (14, Way::Binary),
    (3, Way::Select),
    (5, Way::Cast),
    (2, Way::Bitcast),
    (2, Way::Part),
    (4, Way::Load),
    (3, Way::Variable),
    (3, Way::Call),
    (2, Way::Position),
    (1, Way::Leaf),
];
const FLOAT_WAYS: [(usize, Way); 11] = [
    (4, Way::Leaf),
    (2, Way::Unary),
    (10, Way::Binary),
    (2, Way::Select),
    (4, Way::Cast),
    (2, Way::Bitcast),
    (2, Way::Part),
    (5, Way::Math),
    (4, Way::Load),
    (3, Way::Variable),
    (2, Way::Call),
];

impl Generator {
    // What other files build with.

    /// An operation on two values of one type, for all to use.
    pub(super) fn binary(&mut self, op: BinaryOp, a: Value, b: Value) -> Value {
        let value = self.raw_binary(op, a, b);
        self.frame.pool.push(value);
        value
    }

    /// An operation on two values of one type.
    pub(super) fn raw_binary(&mut self, op: BinaryOp, a: Value, b: Value) -> Value {
        let ty = self.frame.ty(a);
        self.raw(InstData::Binary { op, args: [a, b] }, ty)
    }

    /// A comparison.
    pub(super) fn compare(&mut self, op: CompareOp, a: Value, b: Value) -> Value {
        self.raw(InstData::Compare { op, args: [a, b] }, Type::BOOL)
    }

    /// A part of a struct, array or vector.
    pub(super) fn extract(&mut self, aggregate: Value, index: u32) -> Value {
        let ty = self.parts(self.frame.ty(aggregate))[index as usize];
        self.raw(InstData::Extract { aggregate, index }, ty)
    }

    /// Where the thread is, by the name of the intrinsic.
    pub(super) fn position(&mut self, name: &str) -> Value {
        self.intrinsic(name, &[], Type::U32)
    }

    fn intrinsic(&mut self, name: &str, args: &[Value], ty: Type) -> Value {
        let row: &'static IntrinsicDef =
            kiln_device_stdlib::find(name).expect("the library has the row");
        let id = self.module.intrinsic(row);
        let args = args.iter().copied().collect();
        let value = self.emit(InstData::Intrinsic { id, args }, ty);
        if row.uniformity == Uniformity::Lane {
            self.frame.set_uniform(value, false);
        }
        value
    }

    // Expressions.

    /// A value in scope of type `ty`, the same for all threads if it has to be.
    fn known(&mut self, ty: Type, uniform: bool) -> Option<Value> {
        let frame = &self.frame;
        let fits = |v: &&Value| frame.ty(**v) == ty && (!uniform || frame.is_uniform(**v));
        let found: Vec<Value> = frame.pool.iter().filter(fits).copied().collect();
        if found.is_empty() {
            return None;
        }
        let varies = |v: &&Value| !self.frame.is_uniform(**v);
        let varying: Vec<Value> = found.iter().filter(varies).copied().collect();
        let found = match !varying.is_empty() && self.random.chance(65) {
            true => varying,
            false => found,
        };
        // The latest values are the most interesting ones.
        let from = match self.random.chance(60) {
            true => found.len().saturating_sub(4),
            false => 0,
        };
        Some(self.random.of(&found[from..]))
    }

    /// A value of type `ty` that costs little.
    pub(super) fn leaf(&mut self, ty: Type, uniform: bool) -> Value {
        if self.random.chance(80)
            && let Some(value) = self.known(ty, uniform)
        {
            return value;
        }
        let parts = self.parts(ty);
        if parts.is_empty() {
            if self.random.chance(75)
                && let Some(value) = self.cast_known(ty, uniform)
            {
                return value;
            }
            return self.constant(ty);
        }
        if self.random.chance(20) {
            return self.constant(ty);
        }
        let parts = parts
            .into_iter()
            .map(|part| self.leaf(part, uniform))
            .collect();
        self.emit(InstData::Construct { parts }, ty)
    }

    /// A value in scope of another type, converted.
    fn cast_known(&mut self, ty: Type, uniform: bool) -> Option<Value> {
        if ty == Type::BOOL {
            return None;
        }
        let from = match self.random.chance(70) {
            true => self.scalar_type(),
            false => Type::U32,
        };
        let arg = self.known(from, uniform)?;
        Some(self.emit(InstData::Cast { arg }, ty))
    }

    /// A value of type `ty` by up to `depth` levels of operations; with `uniform`, the same for all
    /// threads of the block.
    pub(super) fn expr(&mut self, ty: Type, depth: usize, uniform: bool) -> Value {
        if depth == 0 || self.frame.left <= 0 {
            return self.leaf(ty, uniform);
        }
        let value = match ty.as_scalar() {
            None => self.aggregate_expr(ty, depth, uniform),
            Some(scalar) => {
                let way = match scalar {
                    Scalar::Bool => self.random.weighted(&BOOL_WAYS),
                    s if s.is_int() => self.random.weighted(&INT_WAYS),
                    _ => self.random.weighted(&FLOAT_WAYS),
                };
                self.scalar_expr(way, scalar, depth - 1, uniform)
            }
        };
        value.unwrap_or_else(|| self.leaf(ty, uniform))
    }

    fn scalar_expr(
        &mut self,
        way: Way,
        scalar: Scalar,
        depth: usize,
        uniform: bool,
    ) -> Option<Value> {
        let ty = Type::scalar(scalar);
        if self.plan.warps
            && !uniform
            && self.random.chance(15)
            && let Some(value) = self.warp_expr(scalar, depth)
        {
            return Some(value);
        }
        Some(match way {
            Way::Leaf => return None,
            Way::Unary => {
                let op = match scalar {
                    Scalar::Bool => UnaryOp::Not,
                    s if s.is_float() => UnaryOp::Neg,
                    _ => self.random.of(&[UnaryOp::Neg, UnaryOp::Not]),
                };
                let arg = self.expr(ty, depth, uniform);
                self.emit(InstData::Unary { op, arg }, ty)
            }
            Way::Binary => self.binary_expr(scalar, depth, uniform),
            Way::Compare => self.compare_expr(depth, uniform),
            Way::Select => self.select_expr(ty, depth, uniform),
            Way::Cast => {
                let from = match scalar {
                    Scalar::Bool => Type::BOOL,
                    _ => self.scalar_type(),
                };
                let arg = self.expr(from, depth, uniform);
                self.emit(InstData::Cast { arg }, ty)
            }
            Way::Bitcast => self.bitcast_expr(scalar, depth, uniform),
            Way::Part => return self.part_expr(ty, uniform),
            Way::Math => self.math_expr(ty, depth, uniform),
            Way::Load => return self.load_of(ty, uniform),
            Way::Variable => return self.variable_of(ty, uniform),
            Way::Call if uniform => return None,
            Way::Call => return self.call_of(ty),
            Way::Position => return self.position_expr(ty, uniform),
        })
    }

    fn binary_expr(&mut self, scalar: Scalar, depth: usize, uniform: bool) -> Value {
        use BinaryOp::{Add, And, Div, Max, Min, Mul, Or, Rem, Shl, Shr, Sub, Xor};
        let ty = Type::scalar(scalar);
        let op = match scalar {
            Scalar::Bool => self.random.of(&[And, Or, Xor]),
            s if s.is_float() => self.random.of(&[Add, Sub, Mul, Div, Min, Max]),
            _ => self
                .random
                .of(&[Add, Sub, Mul, Div, Rem, Min, Max, And, Or, Xor, Shl, Shr]),
        };
        let a = self.expr(ty, depth, uniform);
        let b = match self.random.chance(60) {
            true => self.expr(ty, depth, uniform),
            false => self.leaf(ty, uniform),
        };
        let b = match a == b && self.random.chance(80) {
            true => self.constant(ty),
            false => b,
        };
        if !scalar.is_float() || !matches!(op, Min | Max) {
            return self.binary(op, a, b);
        }
        // Which zero it gives is open; plus zero makes both positive and changes nothing else.
        let either = self.raw_binary(op, a, b);
        let zero = self.raw(InstData::Const(Constant::Zero), ty);
        self.binary(Add, either, zero)
    }

    fn compare_expr(&mut self, depth: usize, uniform: bool) -> Value {
        use CompareOp::{Eq, Ge, Gt, Le, Lt, Ne};
        let ty = self.scalar_type();
        let op = match ty {
            Type::BOOL => self.random.of(&[Eq, Ne]),
            _ => self.random.of(&[Eq, Ne, Lt, Le, Gt, Ge, Lt, Gt]),
        };
        let a = match self.known(ty, uniform) {
            Some(value) if self.random.chance(70) => value,
            _ => self.expr(ty, depth, uniform),
        };
        let b = match self.random.chance(60) {
            true => self.leaf(ty, uniform),
            false => self.expr(ty, depth, uniform),
        };
        let b = if a == b { self.constant(ty) } else { b };
        self.emit(InstData::Compare { op, args: [a, b] }, Type::BOOL)
    }

    fn select_expr(&mut self, ty: Type, depth: usize, uniform: bool) -> Value {
        let select = InstData::Select {
            cond: self.expr(Type::BOOL, depth, uniform),
            if_true: self.expr(ty, depth, uniform),
            if_false: self.leaf(ty, uniform),
        };
        self.emit(select, ty)
    }

    /// The bits of a value of another type of the same size.
    fn bitcast_expr(&mut self, scalar: Scalar, depth: usize, uniform: bool) -> Value {
        let ty = Type::scalar(scalar);
        let size = scalar.bytes();
        let same_size = |s: &Scalar| s.bytes() == size && *s != Scalar::Bool;
        let halves = self.budget.halves;
        let usable = |s: &Scalar| same_size(s) && (halves || !s.is_half());
        let mut sources: Vec<Type> = Scalar::ALL
            .into_iter()
            .filter(usable)
            .map(Type::scalar)
            .collect();
        let vectors = self.plan.types.aggregates.iter().copied();
        let types = &self.module.types;
        sources.extend(vectors.filter(|&v| {
            matches!(types.data(v), TypeData::Vector { .. })
                && types.layout(v).is_some_and(|l| l.size == u64::from(size))
        }));
        let from = self.random.of(&sources);
        let arg = self.expr(from, depth, uniform);
        self.bitcast(arg, ty)
    }

    /// A bit cast that hides the bits of NaNs, on both sides.
    fn bitcast(&mut self, arg: Value, ty: Type) -> Value {
        let arg = self.canonical(arg);
        let bits = self.raw(InstData::Bitcast { arg }, ty);
        let value = self.canonical(bits);
        self.frame.pool.push(value);
        value
    }

    /// A part of an aggregate in scope.
    fn part_expr(&mut self, ty: Type, uniform: bool) -> Option<Value> {
        let mut wholes = self.plan.types.aggregates.clone();
        wholes.retain(|&whole| self.parts(whole).contains(&ty));
        if wholes.is_empty() {
            return None;
        }
        let whole = self.random.of(&wholes);
        let parts = self.parts(whole);
        let aggregate = self.leaf(whole, uniform);
        let fitting: Vec<usize> = (0..parts.len()).filter(|&i| parts[i] == ty).collect();
        let index = self.random.of(&fitting) as u32;
        Some(self.emit(InstData::Extract { aggregate, index }, ty))
    }

    fn math_expr(&mut self, ty: Type, depth: usize, uniform: bool) -> Value {
        let rows = ["sqrt", "abs", "floor", "ceil", "trunc", "rint", "fma"];
        let name = self.random.of(&rows);
        let mut args = vec![self.expr(ty, depth, uniform)];
        if name == "fma" {
            args.push(self.leaf(ty, uniform));
            args.push(self.leaf(ty, uniform));
        }
        self.intrinsic(&format!("math.{name}"), &args, ty)
    }

    /// Where the thread or its block is, as a `ty`.
    fn position_expr(&mut self, ty: Type, uniform: bool) -> Option<Value> {
        let groups = match uniform {
            true => &["block_idx", "block_dim", "grid_dim"][..],
            false => &[
                "thread_idx",
                "thread_idx",
                "thread_idx",
                "block_idx",
                "block_dim",
            ][..],
        };
        let group = self.random.of(groups);
        let dimension = self.random.of(&["x", "x", "x", "y", "z"]);
        let arg = self.position(&format!("{group}.{dimension}"));
        Some(match ty {
            Type::U32 => arg,
            _ => self.emit(InstData::Cast { arg }, ty),
        })
    }

    fn aggregate_expr(&mut self, ty: Type, depth: usize, uniform: bool) -> Option<Value> {
        let depth = depth - 1;
        Some(match self.random.below(10) {
            0 | 1 => {
                let parts = self.parts(ty);
                let parts = parts
                    .into_iter()
                    .map(|p| self.expr(p, depth, uniform))
                    .collect();
                self.emit(InstData::Construct { parts }, ty)
            }
            2..=4 => {
                let aggregate = self.leaf(ty, uniform);
                let parts = self.parts(ty);
                let index = self.random.below(parts.len());
                let value = self.expr(parts[index], depth, uniform);
                let index = index as u32;
                let insert = InstData::Insert {
                    aggregate,
                    index,
                    value,
                };
                self.emit(insert, ty)
            }
            5 => self.select_expr(ty, depth, uniform),
            6 => return self.variable_of(ty, uniform),
            7 => return self.load_of(ty, uniform),
            8 if !uniform => return self.call_of(ty),
            8 => return self.vector_bits(ty, uniform),
            _ => return None,
        })
    }

    /// A vector from the bits of a scalar.
    fn vector_bits(&mut self, ty: Type, uniform: bool) -> Option<Value> {
        if !matches!(self.module.types.data(ty), TypeData::Vector { .. }) {
            return None;
        }
        let size = self.module.types.layout(ty)?.size;
        let fits = |s: &&Scalar| u64::from(s.bytes()) == size;
        let from: Vec<Scalar> = INTS.iter().filter(fits).copied().collect();
        if from.is_empty() {
            return None;
        }
        let from = Type::scalar(self.random.of(&from));
        let arg = self.leaf(from, uniform);
        Some(self.bitcast(arg, ty))
    }
}
