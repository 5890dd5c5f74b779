//! Cache hints: reads and writes that say how memory is used again, and prefetches (CUDA guide, "Load Functions Using
//! Cache Hints" and its neighbours; PTX ISA, "Cache Operators", "prefetch").
//!
//! They are plain accesses of other speed: what they read and write, and what orders them, is as without the hint. On
//! a CPU they are plain accesses, and a prefetch does nothing.
//!
//! | function | CUDA | PTX | for |
//! |---|---|---|---|
//! | [`load_streaming`] | `__ldcs` | `ld.cs` | what is read once: first to go from the caches |
//! | [`load_cached_global`] | `__ldcg` | `ld.cg` | what other blocks have use of: in L2 alone |
//! | [`store_streaming`] | `__stcs` | `st.cs` | what is written once and read much later |
//! | [`store_cached_global`] | `__stcg` | `st.cg` | what other blocks read next: in L2 alone |
//! | [`store_write_through`] | `__stwt` | `st.wt` | what the host or another device reads |
//! | [`prefetch`], [`prefetch_l1`] | | `prefetch.L2`, `prefetch.L1` | what is read a little later |
//!
//! They take a reference, `&x[i]`, to a number of 32 or 64 bits or a vector ([`Hinted`]).
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn scale(x: &[F32x4], y: &mut [F32x4], by: f32) {
//!     let i = global_id().x;
//!     if i + 64 < x.len() {
//!         prefetch(&x[i + 64]);
//!     }
//!     if i < x.len() {
//!         store_streaming(&mut y[i], load_streaming(&x[i]) * by);
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let x = jit.upload(&[F32x4::splat(3.0); 100])?;
//! let mut y = jit.upload(&[F32x4::ZERO; 100])?;
//! scale.launch(&jit, (2, 64), &x, &mut y, 0.5)?;
//! assert_eq!(y.to_vec()?, [F32x4::splat(1.5); 100]);
//! # Ok(())
//! # }
//! ```
//!
//! The other hints:
//!
//! ```
//! use kiln::prelude::*;
//!
//! #[kernel]
//! fn pass_on(x: &[u32], y: &mut [u32], z: &mut [f64]) {
//!     let i = global_id().x;
//!     prefetch_l1(&x[0]);
//!     if i < x.len() {
//!         store_cached_global(&mut y[i], load_cached_global(&x[i]) + 1);
//!         store_write_through(&mut z[i], 0.5);
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let (x, mut y, mut z) = (jit.upload(&[4, 5])?, jit.zeros(2)?, jit.zeros(2)?);
//! pass_on.launch(&jit, (1, 32), &x, &mut y, &mut z)?;
//! assert_eq!((y.to_vec()?, z.to_vec()?), (vec![5, 6], vec![0.5, 0.5]));
//! # Ok(())
//! # }
//! ```

use kiln_jit_core::build::{IntoVal as _, Val};
use kiln_jit_core::front::macros::{Front, Operand};
use kiln_jit_core::ir::{
    AddressSpace, Cell, Effects, Family, IntrinsicDef, Meaning, Module, Scalar, TypeData,
    TypePattern, Uniformity, parse,
};
use kiln_jit_core::value::{DeviceType, F32x2, F32x4, F64x2, I32x4, U32x4};

use crate::plain::functions;

/// What is read and written with a hint: numbers of 32 and 64 bits, and vectors.
#[diagnostic::on_unimplemented(
    message = "there are no accesses of `{Self}` with a cache hint",
    label = "not a number of 32 or 64 bits, and no vector",
    note = "write the access without the hint, or one for each number of it"
)]
pub trait Hinted: DeviceType {}

macro_rules! hinted {
    ($($t:ty)*) => {$(
        #[diagnostic::do_not_recommend]
        impl Hinted for $t {}
    )*};
}
hinted! { i32 u32 f32 i64 u64 f64 usize isize F32x2 F32x4 F64x2 I32x4 U32x4 }

const WORD: TypePattern = TypePattern::OneOf(&[
    Scalar::I32,
    Scalar::U32,
    Scalar::F32,
    Scalar::I64,
    Scalar::U64,
    Scalar::F64,
]);
const PAIR: TypePattern = TypePattern::Vector(&TypePattern::OneOf(&[Scalar::F32, Scalar::F64]), 2);
const QUAD: TypePattern = TypePattern::Vector(
    &TypePattern::OneOf(&[Scalar::F32, Scalar::I32, Scalar::U32]),
    4,
);

/// A reference into any memory.
pub(crate) const fn place(to: &'static TypePattern, mutable: bool) -> TypePattern {
    TypePattern::Pointer {
        to,
        space: AddressSpace::Generic,
        mutable,
    }
}

/// The pattern of a vector of what the place has.
const CHOSEN_PAIR: TypePattern = TypePattern::Vector(&TypePattern::Chosen, 2);
const CHOSEN_QUAD: TypePattern = TypePattern::Vector(&TypePattern::Chosen, 4);

/// The function that reads a place; `lanes` is behind the type of a vector's lane, `x4`.
fn read(scalar: Scalar, lanes: &str) -> Option<Module> {
    let ty = format!("{}{lanes}", scalar.name());
    let text = format!(
        "module read generic
        device @read(%0 place: ptr<generic, {ty}>) -> {ty} {{
          %1: {ty} = load %0
          return %1
        }}"
    );
    parse(&text, &|_| None).ok()
}

/// The function that writes a place.
fn write(scalar: Scalar, lanes: &str) -> Option<Module> {
    let ty = format!("{}{lanes}", scalar.name());
    let text = format!(
        "module write generic
        device @write(%0 place: ptr<generic, mut {ty}>, %1 value: {ty}) {{
          store %0, %1
          return
        }}"
    );
    parse(&text, &|_| None).ok()
}

/// The function that does nothing with a place.
fn nothing(scalar: Scalar, lanes: &str) -> Option<Module> {
    let ty = format!("{}{lanes}", scalar.name());
    let text = format!(
        "module nothing generic
        device @nothing(%0 place: ptr<generic, {ty}>) {{
          return
        }}"
    );
    parse(&text, &|_| None).ok()
}

pub(crate) const fn row(
    name: &'static str,
    params: &'static [TypePattern],
    result: TypePattern,
    body: fn(Scalar) -> Option<Module>,
    cells: &'static [Cell],
) -> IntrinsicDef {
    IntrinsicDef::new(name, params, result, Meaning::Body(body))
        .with_uniformity(Uniformity::Lane)
        .with_effects(Effects::Memory)
        .with_cells(cells)
}

/// The cells of a row: a scalar, the assembly and its registers.
macro_rules! cells {
    ($op:literal: $($scalar:ident $operands:literal $registers:literal;)*) => {
        &[$(Cell::asm(
            Family::PTX,
            Some(Scalar::$scalar),
            concat!($op, $operands, ";"),
            concat!($registers, ",~{memory}"),
        )),*]
    };
}

/// A load of a number, of a vector of two and of four.
macro_rules! load {
    ($name:literal $op:literal) => {
        [
            row(
                concat!("cache.", $name),
                &[place(&WORD, false)],
                TypePattern::Chosen,
                |scalar| read(scalar, ""),
                cells! { $op:
                    I32 ".b32 $0, [$1]" "=r,l";
                    U32 ".b32 $0, [$1]" "=r,l";
                    F32 ".b32 $0, [$1]" "=f,l";
                    I64 ".b64 $0, [$1]" "=l,l";
                    U64 ".b64 $0, [$1]" "=l,l";
                    F64 ".b64 $0, [$1]" "=d,l";
                },
            ),
            row(
                concat!("cache.", $name, "_pair"),
                &[place(&PAIR, false)],
                CHOSEN_PAIR,
                |scalar| read(scalar, "x2"),
                cells! { $op:
                    F32 ".v2.b32 {$0, $1}, [$2]" "=f,=f,l";
                    F64 ".v2.b64 {$0, $1}, [$2]" "=d,=d,l";
                },
            ),
            row(
                concat!("cache.", $name, "_quad"),
                &[place(&QUAD, false)],
                CHOSEN_QUAD,
                |scalar| read(scalar, "x4"),
                cells! { $op:
                    F32 ".v4.b32 {$0, $1, $2, $3}, [$4]" "=f,=f,=f,=f,l";
                    I32 ".v4.b32 {$0, $1, $2, $3}, [$4]" "=r,=r,=r,=r,l";
                    U32 ".v4.b32 {$0, $1, $2, $3}, [$4]" "=r,=r,=r,=r,l";
                },
            ),
        ]
    };
}

/// A store of a number, of a vector of two and of four.
macro_rules! store {
    ($name:literal $op:literal) => {
        [
            row(
                concat!("cache.", $name),
                &[place(&WORD, true), TypePattern::Chosen],
                TypePattern::Unit,
                |scalar| write(scalar, ""),
                cells! { $op:
                    I32 ".b32 [$0], $1" "l,r";
                    U32 ".b32 [$0], $1" "l,r";
                    F32 ".b32 [$0], $1" "l,f";
                    I64 ".b64 [$0], $1" "l,l";
                    U64 ".b64 [$0], $1" "l,l";
                    F64 ".b64 [$0], $1" "l,d";
                },
            ),
            row(
                concat!("cache.", $name, "_pair"),
                &[place(&PAIR, true), CHOSEN_PAIR],
                TypePattern::Unit,
                |scalar| write(scalar, "x2"),
                cells! { $op:
                    F32 ".v2.b32 [$0], {$1, $2}" "l,f,f";
                    F64 ".v2.b64 [$0], {$1, $2}" "l,d,d";
                },
            ),
            row(
                concat!("cache.", $name, "_quad"),
                &[place(&QUAD, true), CHOSEN_QUAD],
                TypePattern::Unit,
                |scalar| write(scalar, "x4"),
                cells! { $op:
                    F32 ".v4.b32 [$0], {$1, $2, $3, $4}" "l,f,f,f,f";
                    I32 ".v4.b32 [$0], {$1, $2, $3, $4}" "l,r,r,r,r";
                    U32 ".v4.b32 [$0], {$1, $2, $3, $4}" "l,r,r,r,r";
                },
            ),
        ]
    };
}

/// A prefetch of the memory of a number, of a vector of two and of four.
macro_rules! prefetch {
    ($name:literal $op:literal) => {[
        row(
            concat!("cache.", $name),
            &[place(&WORD, false)],
            TypePattern::Unit,
            |scalar| nothing(scalar, ""),
            cells! { $op:
                I32 " [$0]" "l"; U32 " [$0]" "l"; F32 " [$0]" "l"; I64 " [$0]" "l"; U64 " [$0]" "l"; F64 " [$0]" "l";
            },
        ),
        row(
            concat!("cache.", $name, "_pair"),
            &[place(&PAIR, false)],
            TypePattern::Unit,
            |scalar| nothing(scalar, "x2"),
            cells! { $op: F32 " [$0]" "l"; F64 " [$0]" "l"; },
        ),
        row(
            concat!("cache.", $name, "_quad"),
            &[place(&QUAD, false)],
            TypePattern::Unit,
            |scalar| nothing(scalar, "x4"),
            cells! { $op: F32 " [$0]" "l"; I32 " [$0]" "l"; U32 " [$0]" "l"; },
        ),
    ]};
}

/// The rows of an operation: of numbers, of vectors of two and of four.
type Rows = [IntrinsicDef; 3];

static LOAD_STREAMING: Rows = load! { "load_streaming" "ld.cs" };
static LOAD_CACHED_GLOBAL: Rows = load! { "load_cached_global" "ld.cg" };
static STORE_STREAMING: Rows = store! { "store_streaming" "st.cs" };
static STORE_CACHED_GLOBAL: Rows = store! { "store_cached_global" "st.cg" };
static STORE_WRITE_THROUGH: Rows = store! { "store_write_through" "st.wt" };
static PREFETCH: Rows = prefetch! { "prefetch" "prefetch.L2" };
static PREFETCH_L1: Rows = prefetch! { "prefetch_l1" "prefetch.L1" };

/// The rows of this chapter.
pub(crate) fn rows() -> impl Iterator<Item = &'static IntrinsicDef> {
    let all = [
        &LOAD_STREAMING,
        &LOAD_CACHED_GLOBAL,
        &STORE_STREAMING,
        &STORE_CACHED_GLOBAL,
        &STORE_WRITE_THROUGH,
        &PREFETCH,
        &PREFETCH_L1,
    ];
    all.into_iter().flatten()
}

/// The operation on what a reference is to.
fn hinted<'k>(
    front: Front<'k>,
    rows: &'static Rows,
    mutable: bool,
    place: Operand<'k>,
    value: Option<Operand<'k>>,
) -> Operand<'k> {
    let place = place.read();
    let Some(ty) = front.referent(place.ty()) else {
        return front.refuse("this takes a reference to a number or a vector, `&x[i]`");
    };
    let lanes = if let TypeData::Vector { lanes, .. } = front.builder().type_data(ty) {
        lanes
    } else {
        1
    };
    // Of one, two and four.
    let Some(row) = rows.get(lanes.ilog2() as usize) else {
        return front.refuse("vectors have two or four lanes here");
    };
    let place = front.passed(place, front.reference_type(ty, false, mutable));
    let value = value.map(|value| value.into_val(front.builder(), Some(ty)));
    let args: Vec<Val<'k>> = [place].into_iter().chain(value).collect();
    front.value(front.builder().intrinsic(row, &args))
}

functions! {
    /// Reads what is not read again soon (CUDA `__ldcs`).
    fn load_streaming<T: Hinted>(place: &T) -> T {
        *place
    } => |front, _, [place]| hinted(front, &LOAD_STREAMING, false, *place, None);
    /// Reads what other blocks read, too, or have written: from L2, past L1 (CUDA `__ldcg`).
    fn load_cached_global<T: Hinted>(place: &T) -> T {
        *place
    } => |front, _, [place]| hinted(front, &LOAD_CACHED_GLOBAL, false, *place, None);
    /// Writes what is not read again soon (CUDA `__stcs`).
    fn store_streaming<T: Hinted>(place: &mut T, value: T) {
        *place = value;
    } => |front, _, [place, value]| hinted(front, &STORE_STREAMING, true, *place, Some(*value));
    /// Writes what other blocks read next: to L2, past L1 (CUDA `__stcg`).
    fn store_cached_global<T: Hinted>(place: &mut T, value: T) {
        *place = value;
    } => |front, _, [place, value]| hinted(front, &STORE_CACHED_GLOBAL, true, *place, Some(*value));
    /// Writes through the caches, to memory (CUDA `__stwt`).
    fn store_write_through<T: Hinted>(place: &mut T, value: T) {
        *place = value;
    } => |front, _, [place, value]| hinted(front, &STORE_WRITE_THROUGH, true, *place, Some(*value));
    /// Has the memory around a place brought to L2, while the thread goes on.
    fn prefetch<T: Hinted>(place: &T) {
        let _ = place;
    } => |front, _, [place]| hinted(front, &PREFETCH, false, *place, None);
    /// Has the memory around a place brought to L1, while the thread goes on.
    fn prefetch_l1<T: Hinted>(place: &T) {
        let _ = place;
    } => |front, _, [place]| hinted(front, &PREFETCH_L1, false, *place, None);
}
