//! Types of a case, constants of a type, and random bytes of a type.

use half::{bf16, f16};
use kiln_jit_core::ir::{
    ArrayLen, Constant, InstData, Module, Scalar, StructData, Type, TypeData, Value,
};

use super::{Budget, Generator};
use crate::random::Random;

/// The integer types.
pub(super) const INTS: [Scalar; 8] = [
    Scalar::I8,
    Scalar::I16,
    Scalar::I32,
    Scalar::I64,
    Scalar::U8,
    Scalar::U16,
    Scalar::U32,
    Scalar::U64,
];

/// How large aggregates are, so that an array of one for each thread fits into shared memory.
const MAX_AGGREGATE_BYTES: u64 = 64;

/// The types that a case works with.
#[derive(Clone, Debug)]
pub(super) struct Types {
    /// All scalar types of the budget.
    scalars: Vec<Type>,
    /// Those that this case uses most; few, so that values meet.
    favourites: Vec<Type>,
    /// Structs, arrays and vectors.
    pub(super) aggregates: Vec<Type>,
    /// The 16 bytes that change in one step, if the case has that.
    pair: Option<Type>,
}

impl Types {
    /// A choice of types, entered into the module.
    pub(super) fn new(random: &mut Random, module: &mut Module, budget: &Budget) -> Types {
        let scalars: Vec<Type> = Scalar::ALL
            .into_iter()
            .filter(|s| budget.halves || !s.is_half())
            .map(Type::scalar)
            .collect();
        let mut favourites = vec![random.of(&[Type::U32, Type::I32]), Type::BOOL];
        for _ in 0..random.within(2, 4) {
            let ty = random.of(&scalars);
            favourites.push(ty);
        }
        let mut types = Types {
            scalars,
            favourites,
            aggregates: Vec::new(),
            pair: None,
        };
        if budget.aggregates {
            for n in 0..random.within(0, 3) {
                let ty = types.aggregate(random, module, n);
                let size = module.types.layout(ty).map_or(0, |l| l.size);
                if size <= MAX_AGGREGATE_BYTES {
                    types.aggregates.push(ty);
                }
            }
        }
        if budget.pairs > 0 && random.chance(budget.pairs) {
            types.pair = Some(module.types.vector(Scalar::U64, 2));
            types.aggregates.extend(types.pair);
        }
        types
    }

    fn aggregate(&self, random: &mut Random, module: &mut Module, number: usize) -> Type {
        match random.below(4) {
            0 => {
                let element = loop {
                    let ty = self.scalar(random);
                    if ty != Type::BOOL {
                        break ty.as_scalar().unwrap_or(Scalar::F32);
                    }
                };
                let lanes = random.of(&[2, 4]);
                module.types.vector(element, lanes)
            }
            1 => {
                let element = self.any(random);
                module.types.array(element, random.within(2, 4) as u64)
            }
            _ => {
                let fields = (0..random.within(1, 4))
                    .map(|i| (format!("f{i}"), self.any(random)))
                    .collect();
                let name = format!("S{number}");
                // Some are aligned to more than their fields are.
                let align = [1, 1, 16, 8][number % 4];
                module.types.intern_struct(StructData {
                    align,
                    ..StructData::new(name, fields)
                })
            }
        }
    }

    /// A scalar type.
    pub(super) fn scalar(&self, random: &mut Random) -> Type {
        if random.chance(75) {
            random.of(&self.favourites)
        } else {
            random.of(&self.scalars)
        }
    }

    /// A scalar type or, less often, an aggregate.
    pub(super) fn any(&self, random: &mut Random) -> Type {
        if let Some(pair) = self.pair
            && random.chance(45)
        {
            return pair;
        }
        if !self.aggregates.is_empty() && random.chance(25) {
            random.of(&self.aggregates)
        } else {
            self.scalar(random)
        }
    }

    /// An integer type.
    pub(super) fn int(&self, random: &mut Random) -> Type {
        let ty = self.scalar(random);
        if ty.is_int() {
            ty
        } else {
            Type::scalar(random.of(&INTS))
        }
    }
}

/// An integer of a type that is likely to be a special case of something.
pub(super) fn interesting_int(random: &mut Random, scalar: Scalar) -> i128 {
    let bits = scalar.bits();
    let (low, high) = if scalar.is_signed_int() {
        (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
    } else {
        (0, (1i128 << bits) - 1)
    };
    let n = match random.below(10) {
        0 => low,
        1 => high,
        2 => -1,
        3 => i128::from(bits),
        4 => i128::from(bits) + 1,
        5 => low + 1,
        6 => 1i128 << random.below(bits as usize),
        7 => i128::from(random.bits() as i64),
        _ => random.below(10) as i128,
    };
    n.clamp(low, high)
}

/// A float that is likely to be a special case of something. Never a signaling NaN.
pub(super) fn interesting_float(random: &mut Random) -> f64 {
    let list = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        2.5,
        -1.5,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        65504.0,
        65520.0,
        3.0e38,
        -3.5e38,
        1.0e-40,
        6.0e-8,
        f64::MAX,
        f64::MIN_POSITIVE,
        2147483648.0,
        -2147483649.0,
        4294967296.0,
        9.3e18,
        1.9e19,
        255.5,
        -129.0,
        1.0 / 3.0,
    ];
    if random.chance(40) {
        random.of(&list)
    } else {
        (random.below(4001) as f64 - 2000.0) / random.of(&[1.0, 8.0, 10.0, 64.0])
    }
}

/// A constant of a scalar type.
pub(super) fn interesting_constant(random: &mut Random, scalar: Scalar) -> Constant {
    match scalar {
        Scalar::Bool => Constant::Bool(random.chance(50)),
        s if s.is_int() => Constant::Int(interesting_int(random, s)),
        _ => Constant::Float(interesting_float(random)),
    }
}

/// The bytes of a constant of a scalar type; no NaN but the quiet one.
pub(super) fn scalar_bytes(random: &mut Random, scalar: Scalar) -> Vec<u8> {
    let float = interesting_float(random);
    match scalar {
        Scalar::Bool => vec![u8::from(random.chance(50))],
        Scalar::F16 => f16::from_f64(float).to_bits().to_le_bytes().to_vec(),
        Scalar::BF16 => bf16::from_f64(float).to_bits().to_le_bytes().to_vec(),
        Scalar::F32 => (float as f32).to_bits().to_le_bytes().to_vec(),
        Scalar::F64 => float.to_bits().to_le_bytes().to_vec(),
        int => {
            let n = if random.chance(50) {
                random.bits() as i128
            } else {
                interesting_int(random, int)
            };
            n.to_le_bytes()[..int.bytes() as usize].to_vec()
        }
    }
}

/// Random bytes of a value of type `ty`, padding zero.
pub(super) fn bytes(random: &mut Random, module: &Module, ty: Type) -> Vec<u8> {
    let size = module.types.layout(ty).map_or(0, |l| l.size as usize);
    let mut out = vec![0; size];
    fill(random, module, ty, &mut out);
    out
}

fn fill(random: &mut Random, module: &Module, ty: Type, out: &mut [u8]) {
    let types = &module.types;
    match types.data(ty) {
        TypeData::Scalar(s) => out.copy_from_slice(&scalar_bytes(random, *s)),
        TypeData::Vector { element, .. } => {
            for lane in out.chunks_exact_mut(element.bytes() as usize) {
                lane.copy_from_slice(&scalar_bytes(random, *element));
            }
        }
        TypeData::Array { element, .. } => {
            let size = types.layout(*element).map_or(1, |l| l.size as usize);
            for part in out.chunks_exact_mut(size) {
                fill(random, module, *element, part);
            }
        }
        TypeData::Struct(id) => {
            let Some((_, offsets)) = types.struct_layout(*id) else {
                return;
            };
            for ((_, field), at) in types.struct_data(*id).fields.iter().zip(offsets) {
                let size = types.layout(*field).map_or(0, |l| l.size as usize);
                fill(
                    random,
                    module,
                    *field,
                    &mut out[at as usize..at as usize + size],
                );
            }
        }
        _ => {}
    }
}

impl Generator {
    pub(super) fn scalar_type(&mut self) -> Type {
        self.plan.types.scalar(&mut self.random)
    }

    pub(super) fn any_type(&mut self) -> Type {
        self.plan.types.any(&mut self.random)
    }

    pub(super) fn int_type(&mut self) -> Type {
        self.plan.types.int(&mut self.random)
    }

    /// A given integer as a constant.
    pub(super) fn int(&mut self, ty: Type, n: i128) -> Value {
        self.raw(InstData::Const(Constant::Int(n)), ty)
    }

    /// Some constant.
    pub(super) fn constant(&mut self, ty: Type) -> Value {
        let constant = match ty.as_scalar() {
            Some(scalar) if self.random.chance(90) => {
                interesting_constant(&mut self.random, scalar)
            }
            _ => Constant::Zero,
        };
        // It is not for others to use: expressions of constants alone show nothing.
        self.raw(InstData::Const(constant), ty)
    }

    /// The types of the parts of a struct, array or vector, in order; none for other types.
    pub(super) fn parts(&self, ty: Type) -> Vec<Type> {
        part_types(&self.module, ty)
    }

    /// Whether a type is or contains a float.
    pub(super) fn has_float(&self, ty: Type) -> bool {
        ty.is_float() || self.parts(ty).into_iter().any(|part| self.has_float(part))
    }
}

/// The types of the parts of a struct, array or vector, in order; none for other types.
pub(crate) fn part_types(module: &Module, ty: Type) -> Vec<Type> {
    match *module.types.data(ty) {
        TypeData::Vector { element, lanes } => vec![Type::scalar(element); usize::from(lanes)],
        TypeData::Array {
            element,
            len: ArrayLen::Known(n),
        } => vec![element; n as usize],
        TypeData::Struct(_) => {
            let fields = module.types.as_struct(ty).map(|s| &s.fields);
            fields.map_or(Vec::new(), |f| f.iter().map(|(_, ty)| *ty).collect())
        }
        _ => Vec::new(),
    }
}
