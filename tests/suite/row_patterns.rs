//! Rows of a program's own that take and give more than scalars: addresses, vectors, arrays, several
//! results.
//!
//! A GPU has a cell for each. Everywhere else, and for types without a cell, the function of the IR that
//! the row means is called.

use kiln::core::ir::{
    AddressSpace, Cell, Effects, Family, IntrinsicDef, Meaning, Module, Scalar, TypePattern,
    Uniformity, parse,
};
use kiln::core::value::F32x4;
use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    several_results,
    addresses_of_shared_memory,
    vectors_and_arrays,
    functions_of_more_than_scalars,
];

/// The row of this chapter with a name, for texts of its kernels.
pub(crate) fn find(name: &str) -> Option<&'static IntrinsicDef> {
    let rows = [&DIVIDE, &EXCHANGE, &DOT, &HALVES, &MIRROR];
    let functions = [
        divide::row(),
        swap::row(),
        weigh::row(),
        cut::row(),
        larger::row(),
    ];
    rows.into_iter()
        .chain(functions)
        .find(|row| row.name == name)
}

/// A device function for a scalar type, which is `T` in its text.
fn function(text: &str, scalar: Scalar) -> Option<Module> {
    let text = text.replace('T', scalar.name());
    parse(&text, &|_| None).ok()
}

const F32: TypePattern = TypePattern::Exact(Scalar::F32);
const WORD: TypePattern = TypePattern::OneOf(&[Scalar::U32, Scalar::F32, Scalar::U64]);

/// Quotient and remainder; on a GPU of 32 bits in one go, of 64 by the function.
static DIVIDE: IntrinsicDef = IntrinsicDef::new(
    "user.divide",
    &[
        TypePattern::OneOf(&[Scalar::U32, Scalar::U64]),
        TypePattern::SameAs(0),
    ],
    TypePattern::Tuple(&[TypePattern::Chosen, TypePattern::SameAs(0)]),
    Meaning::Body(|scalar| {
        let text = "module divide generic
            struct @tuple { \"0\": T, \"1\": T }
            device @divide(%0 a: T, %1 b: T) -> @tuple {
              %2: T = div %0, %1
              %3: T = rem %0, %1
              %4: @tuple = construct(%2, %3)
              return %4
            }";
        function(text, scalar)
    }),
)
.with_cells(&[Cell::asm(
    Family::PTX,
    Some(Scalar::U32),
    "{ div.u32 $0, $2, $3; rem.u32 $1, $2, $3; }",
    "=&r,=&r,r,r",
)]);

/// Writes to shared memory, and gives what was there.
static EXCHANGE: IntrinsicDef = IntrinsicDef::new(
    "user.exchange",
    &[
        TypePattern::Pointer {
            to: &WORD,
            space: AddressSpace::Shared,
            mutable: true,
        },
        TypePattern::Chosen,
    ],
    TypePattern::Chosen,
    Meaning::Body(|scalar| {
        let text = "module exchange generic
            device @exchange(%0 place: ptr<shared, mut T>, %1 new: T) -> T {
              %2: T = load %0
              store %0, %1
              return %2
            }";
        function(text, scalar)
    }),
)
.with_uniformity(Uniformity::Lane)
.with_effects(Effects::Memory)
.with_cells(&[
    Cell::asm(
        Family::PTX,
        Some(Scalar::U32),
        "{ ld.shared.u32 $0, [$1]; st.shared.u32 [$1], $2; }",
        "=&r,l,r,~{memory}",
    ),
    Cell::asm(
        Family::PTX,
        Some(Scalar::F32),
        "{ ld.shared.f32 $0, [$1]; st.shared.f32 [$1], $2; }",
        "=&f,l,f,~{memory}",
    ),
]);

/// The inner product of vectors of three lanes, whose other one is an array.
static DOT: IntrinsicDef = IntrinsicDef::new(
    "user.dot",
    &[TypePattern::Vector(&F32, 4), TypePattern::Array(&F32, 4)],
    F32,
    Meaning::Body(|scalar| {
        let text = "module dot generic
            device @dot(%0 a: Tx4, %1 b: [T; 4]) -> T {
              %2: T = extract %0, 0
              %3: T = extract %0, 1
              %4: T = extract %0, 2
              %5: T = extract %0, 3
              %6: T = extract %1, 0
              %7: T = extract %1, 1
              %8: T = extract %1, 2
              %9: T = extract %1, 3
              %10: T = mul %2, %6
              %11: T = mul %3, %7
              %12: T = mul %4, %8
              %13: T = mul %5, %9
              %14: T = add %10, %11
              %15: T = add %12, %13
              %16: T = add %14, %15
              return %16
            }";
        function(text, scalar)
    }),
)
.with_cells(&[Cell::asm(
    Family::PTX,
    Some(Scalar::F32),
    "{ mul.f32 $0, $1, $5; fma.rn.f32 $0, $2, $6, $0; fma.rn.f32 $0, $3, $7, $0; \
     fma.rn.f32 $0, $4, $8, $0; }",
    "=&f,f,f,f,f,f,f,f,f",
)]);

/// The two halves of a word, as an array.
static HALVES: IntrinsicDef = IntrinsicDef::new(
    "user.halves",
    &[TypePattern::Exact(Scalar::U64)],
    TypePattern::Array(&TypePattern::Exact(Scalar::U32), 2),
    Meaning::Body(|_| {
        let text = "module halves generic
            device @halves(%0 word: u64) -> [u32; 2] {
              %1: u64 = const 32
              %2: u64 = shr %0, %1
              %3: u32 = cast %0
              %4: u32 = cast %2
              %5: [u32; 2] = construct(%3, %4)
              return %5
            }";
        function(text, Scalar::U64)
    }),
)
.with_cells(&[Cell::asm(
    Family::PTX,
    None,
    "mov.b64 {$0, $1}, $2;",
    "=r,=r,l",
)]);

/// Two numbers in the other order, as a vector, and whether they are in order.
static MIRROR: IntrinsicDef = IntrinsicDef::new(
    "user.mirror",
    &[F32, F32],
    TypePattern::Tuple(&[
        TypePattern::Vector(&F32, 2),
        TypePattern::Exact(Scalar::Bool),
    ]),
    Meaning::Body(|scalar| {
        let text = "module mirror generic
            struct @tuple { \"0\": Tx2, \"1\": bool }
            device @mirror(%0 a: T, %1 b: T) -> @tuple {
              %2: Tx2 = construct(%1, %0)
              %3: bool = lt %0, %1
              %4: @tuple = construct(%2, %3)
              return %4
            }";
        function(text, scalar)
    }),
)
.with_cells(&[Cell::asm(
    Family::PTX,
    None,
    "{ .reg .pred p; mov.f32 $0, $4; mov.f32 $1, $3; setp.lt.f32 p, $3, $4; \
     selp.u32 $2, 1, 0, p; }",
    "=&f,=&f,=&r,f,f",
)]);

/// Results of a row are the parts of a tuple; of 64 bits there is no cell.
fn several_results(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("results", |k| {
        let (out, x) = (k.slice_mut("out", Type::U64), k.slice("x", Type::U64));
        let i = k.global_id().x();
        let value = x.at(i).get();
        let wide = k.intrinsic(&DIVIDE, &[value, i.cast(Type::U64) + 3u64]);
        let narrow = k.intrinsic(&DIVIDE, &[value.cast(Type::U32), i + 5u32]);
        let narrow = narrow.field("0") * 1000u32 + narrow.field("1");
        let value = wide.field("0") * 100u64 + wide.field("1");
        out.at(i).set(value ^ narrow.cast(Type::U64));
    })?;
    let hx: Vec<u64> = (1..=70u64).map(|i| i * 0x1234_5678_9abc).collect();
    let want: Vec<u64> = (0u64..)
        .zip(&hx)
        .map(|(i, &x)| {
            let (wide, narrow) = (i + 3, i as u32 + 5);
            let low = x as u32;
            let narrow = (low / narrow).wrapping_mul(1000).wrapping_add(low % narrow);
            ((x / wide).wrapping_mul(100).wrapping_add(x % wide)) ^ u64::from(narrow)
        })
        .collect();
    let (mut out, x) = (jit.zeros::<u64>(70)?, jit.upload(&hx)?);
    jit.launch(&kernel, 2, 35, args!(&mut out, &x))?;
    assert_eq!(out.to_vec()?, want);
    Ok(())
}

/// Rows that write where an address says, in turn with the kernel's own accesses.
fn addresses_of_shared_memory(jit: &Jit) -> Outcome {
    const THREADS: u32 = 64;
    let kernel = Kernel::build("exchanges", |k| {
        let (out, x) = (k.slice_mut("out", Type::F32), k.slice("x", Type::F32));
        let floats = k.shared_array("floats", Type::F32, THREADS);
        let words = k.shared_array("words", Type::U32, THREADS);
        let i = k.thread_idx().x();
        floats.at(i).set(x.at(i).get());
        words.at(i).set(i * 2);
        k.barrier();
        let other = THREADS - 1 - i;
        let old = k.intrinsic(&EXCHANGE, &[floats.at(other).address(), i.cast(Type::F32)]);
        let word = k.intrinsic(&EXCHANGE, &[words.at(other).address(), i * 3]);
        k.barrier();
        let new = floats.at(i).get() * 1000.0f32 + words.at(i).get().cast(Type::F32);
        out.at(i).set(old + word.cast(Type::F32) * 0.5f32 + new);
    })?;
    let hx: Vec<f32> = (0..THREADS).map(|i| (i * i) as f32).collect();
    let want: Vec<f32> = (0..THREADS)
        .map(|i| {
            let other = THREADS - 1 - i;
            let old = (other * other) as f32 + (other * 2) as f32 * 0.5;
            old + other as f32 * 1000.0 + (other * 3) as f32
        })
        .collect();
    let (mut out, x) = (jit.zeros::<f32>(THREADS as usize)?, jit.upload(&hx)?);
    jit.launch(&kernel, 1, THREADS, args!(&mut out, &x))?;
    assert_eq!(out.to_vec()?, want);
    Ok(())
}

/// Parts of vectors and arrays are registers of their own.
fn vectors_and_arrays(jit: &Jit) -> Outcome {
    let kernel = Kernel::build("parts", |k| {
        let (out, x) = (k.slice_mut("out", Type::F32), k.slice("x", Type::F32));
        let i = k.global_id().x();
        let at = |n: u32| x.at(i * 4 + n).get();
        let (vector, array) = (k.ty::<F32x4>(), k.array(Type::F32, 4));
        let a = k.construct(vector, &[at(0), at(1), at(2), at(3)]);
        let b = k.construct(array, &[at(3), at(0), at(1), at(1)]);
        let dot = k.intrinsic(&DOT, &[a, b]);
        let word = (i.cast(Type::U64) << 33) + 7u64;
        let halves = k.intrinsic(&HALVES, &[word]);
        let halves = halves.element(0) + halves.element(1);
        let mirror = k.intrinsic(&MIRROR, &[at(1), at(2)]);
        let pair = mirror.field("0");
        let order = mirror.field("1").cast(Type::F32) * 50.0f32;
        let pair = pair.element(0) * 10.0f32 + pair.element(1);
        out.at(i).set(dot + halves.cast(Type::F32) + pair + order);
    })?;
    let hx: Vec<f32> = (0..4 * 40).map(|i| (i * 7 % 13) as f32).collect();
    let want: Vec<f32> = (0..40)
        .map(|i| {
            let x = &hx[4 * i..];
            let dot = x[0] * x[3] + x[1] * x[0] + x[2] * x[1] + x[3] * x[1];
            let order = if x[1] < x[2] { 50.0 } else { 0.0 };
            dot + (2 * i + 7) as f32 + x[2] * 10.0 + x[1] + order
        })
        .collect();
    let (mut out, x) = (jit.zeros::<f32>(40)?, jit.upload(&hx)?);
    jit.launch(&kernel, 1, 40, args!(&mut out, &x))?;
    assert_eq!(out.to_vec()?, want);
    Ok(())
}

#[device_fn]
fn rest(x: u32, y: u32) -> u32 {
    x % y
}

/// Calls another function, which comes along.
#[device_fn]
fn quotient_and_rest(x: u32, y: u32) -> (u32, u32) {
    (x / y, rest(x, y))
}

#[device_fn]
fn replaced<T: Num>(place: &mut T, new: T) -> T {
    let old = *place;
    *place = new;
    old
}

#[device_fn]
fn weighted(x: F32x4, weights: [f32; 4]) -> f32 {
    x.0[0] * weights[0] + x.0[1] * weights[1] + x.0[2] * weights[2] + x.0[3] * weights[3]
}

#[device_fn]
fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

kiln::intrinsic! {
    /// Quotient and remainder.
    fn divide(x: u32, y: u32) -> (u32, u32) = row("user.divide_words", quotient_and_rest)
        .with_cells(&[Cell::asm(
            Family::PTX,
            None,
            "{ div.u32 $0, $2, $3; rem.u32 $1, $2, $3; }",
            "=&r,=&r,r,r",
        )]);

    /// Writes to memory of any kind, and gives what was there; of floats there is no cell.
    fn swap<T: Num = [u32, f32]>(place: &mut T, new: T) -> T = row("user.swap", replaced)
        .with_uniformity(Uniformity::Lane)
        .with_effects(Effects::Memory)
        .with_cells(&[Cell::asm(
            Family::PTX,
            Some(Scalar::U32),
            "{ ld.u32 $0, [$1]; st.u32 [$1], $2; }",
            "=&r,l,r,~{memory}",
        )]);

    /// The inner product.
    fn weigh(x: F32x4, weights: [f32; 4]) -> f32 = row("user.weigh", weighted)
        .with_cells(&[Cell::asm(
            Family::PTX,
            None,
            "{ mul.f32 $0, $1, $5; fma.rn.f32 $0, $2, $6, $0; fma.rn.f32 $0, $3, $7, $0; \
             fma.rn.f32 $0, $4, $8, $0; }",
            "=&f,f,f,f,f,f,f,f,f",
        )]);

    /// The two halves of a word.
    fn cut(word: u64) -> [u32; 2] = row("user.cut", halves)
        .with_cells(&[Cell::asm(Family::PTX, None, "mov.b64 {$0, $1}, $2;", "=r,=r,l")]);

    /// The larger number.
    fn larger<T: Num = [u32, i32, f32]>(x: T, y: T) -> T {
        if y > x { y } else { x }
    } = row("user.larger").with_cells(&[
        Cell::asm(Family::PTX, Some(Scalar::U32), "max.u32 $0, $1, $2;", "=r,r,r"),
        Cell::asm(Family::PTX, Some(Scalar::I32), "max.s32 $0, $1, $2;", "=r,r,r"),
        Cell::asm(Family::PTX, Some(Scalar::F32), "max.f32 $0, $1, $2;", "=f,f,f"),
    ]);
}

/// What one thread computes, on the host as in a kernel.
#[device_fn]
fn mixed(i: usize, word: u64, x: F32x4, kept: &mut u32, float: &mut f32) -> f32 {
    let (quotient, rest) = divide(word as u32, i as u32 + 3);
    let parts = cut(word);
    let old = swap(kept, parts[0]) + swap(kept, rest);
    let before = swap(float, weigh(x, [0.5, 2.0, -1.0, 4.0]));
    let signed = larger(-(quotient as i32 % 50), parts[1] as i32 % 3 - 20);
    before + (old % 1000) as f32 + larger(*float, 1.5) + signed as f32 + larger(rest, 4) as f32
}

#[kernel]
fn patterns(out: &mut [f32], words: &[u64], x: &[F32x4]) {
    let i = global_id().x;
    let floats = shared!([f32; 32]);
    let mut kept = i as u32;
    if i < out.len() {
        floats[thread_idx().x] = 0.25;
        let float = &mut floats[thread_idx().x];
        out[i] = mixed(i, words[i], x[i], &mut kept, float);
        out[i] += swap(&mut floats[thread_idx().x], 0.0) + kept as f32;
    }
}

/// `intrinsic!` of references into several memories, vectors, arrays, tuples and a type parameter.
fn functions_of_more_than_scalars(jit: &Jit) -> Outcome {
    let words: Vec<u64> = (1..=50u64).map(|i| i * 0x0123_4567_89ab).collect();
    let vectors: Vec<F32x4> = (0..50u8)
        .map(|i| F32x4([0, 1, 2, 3].map(|n| f32::from(i % (n + 2)))))
        .collect();
    let mut want = Vec::new();
    for (i, (&word, &x)) in words.iter().zip(&vectors).enumerate() {
        let (mut kept, mut float) = (i as u32, 0.25);
        let value = mixed(i, word, x, &mut kept, &mut float);
        want.push(value + (float + kept as f32));
    }
    let (words, vectors) = (jit.upload(&words)?, jit.upload(&vectors)?);
    let mut out = jit.zeros::<f32>(50)?;
    patterns.launch(jit, (2, 32), &mut out, &words, &vectors)?;
    assert_eq!(out.to_vec()?, want);
    Ok(())
}
