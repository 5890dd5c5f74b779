//! What `==` and `<` of a struct mean on the host, which kernels have to mean as well.
//!
//! In kernels a struct is compared field by field, as `#[derive(PartialEq, PartialOrd)]` does it on the host, or by the
//! functions of an `impl` that has `#[device_fn]`. Any other `impl` a kernel knows nothing of. No program can ask rustc
//! whether an `impl` is derived, so the host's own comparison is asked: of pairs of values that differ in one field, in
//! two, or in nothing, with the values that such comparisons treat in a way of their own (zeros of both signs, NaN,
//! infinities, neighbours, the largest and the smallest). One that is derived gives what its fields give, for all of
//! them; one that gives something else is refused in kernels.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use super::{KernelType, check_values, vec_from_bytes};
use crate::front::macros::CallFn;
use crate::ir::Scalar;

/// What is known of the comparisons of a struct: the fact of its IR type.
#[derive(Debug)]
pub struct Comparison {
    /// What `#[device_fn] impl PartialEq` has.
    pub equal: Option<CallFn>,
    /// What `#[device_fn] impl PartialOrd` has.
    pub order: Option<CallFn>,
    /// The comparisons of the host; several of a generic struct, and none where nothing is known of its parameters.
    pub host: &'static [HostComparison],
}

/// The comparisons that a type has on the host, beside those of its fields.
#[derive(Debug)]
pub struct HostComparison {
    /// Whether `==` is that of all fields.
    pub is_equality_of_fields: fn() -> bool,
    /// Whether `<` is that of the first fields that differ.
    pub is_order_of_fields: fn() -> bool,
}

/// What was found of each comparison, by its place: it takes thousands of comparisons, and kernels have many.
static ASKED: Mutex<BTreeMap<(usize, bool), bool>> = Mutex::new(BTreeMap::new());

impl HostComparison {
    /// Whether `==`, or else `<`, is that of the fields.
    pub(crate) fn is_of_fields(&'static self, is_equality: bool) -> bool {
        let key = (std::ptr::from_ref(self).addr(), is_equality);
        let asked = || ASKED.lock().unwrap_or_else(PoisonError::into_inner);
        let known = asked().get(&key).copied();
        known.unwrap_or_else(|| {
            // Not under the lock, as it is the user's code.
            let found = match is_equality {
                true => (self.is_equality_of_fields)(),
                false => (self.is_order_of_fields)(),
            };
            asked().insert(key, found);
            found
        })
    }
}

/// The comparisons of a type on the host, if it has them. The constants are those of the `impl` where the type has the
/// trait, and otherwise those of [`NoEquality`] and [`NoOrder`].
pub struct OnHost<T>(PhantomData<fn() -> T>);

/// `==` of two values.
pub type EqualFn<T> = fn(&T, &T) -> bool;
/// The order of two values.
pub type OrderFn<T> = fn(&T, &T) -> Option<Ordering>;

impl<T: PartialEq> OnHost<T> {
    /// The `==` of the type.
    pub const EQUAL: Option<EqualFn<T>> = Some(T::eq);
}

impl<T: PartialOrd> OnHost<T> {
    /// The order of the type.
    pub const ORDER: Option<OrderFn<T>> = Some(T::partial_cmp);
}

/// A type without `==`.
pub trait NoEquality<T> {
    /// Nothing.
    const EQUAL: Option<EqualFn<T>> = None;
}

impl<T> NoEquality<T> for OnHost<T> {}

/// A type without an order.
pub trait NoOrder<T> {
    /// Nothing.
    const ORDER: Option<OrderFn<T>> = None;
}

impl<T> NoOrder<T> for OnHost<T> {}

/// What a type has in kernels in place of the comparisons of its fields, by the number of the function's name.
pub trait OwnComparison<const NAME: u64> {
    /// Calls it, with references to two values.
    const CALL: CallFn;
}

/// The comparisons that `#[device_fn]` gives a type, if it does.
pub struct OwnInKernels<T, const NAME: u64>(PhantomData<fn() -> T>);

impl<T: OwnComparison<NAME>, const NAME: u64> OwnInKernels<T, NAME> {
    /// The function.
    pub const CALL: Option<CallFn> = Some(T::CALL);
}

/// A type without a comparison of its own in kernels.
pub trait NoComparison {
    /// Nothing.
    const CALL: Option<CallFn> = None;
}

impl<T, const NAME: u64> NoComparison for OwnInKernels<T, NAME> {}

/// A type that may have `==`, for the proof that its `==` is derived.
pub struct Compared<T>(PhantomData<fn() -> T>);

impl<T> Compared<T> {
    /// The type.
    pub const NEW: Self = Compared(PhantomData);
}

/// A type with `==`: rustc looks at a pattern of it.
pub trait IsCompared {
    /// The type.
    type Of;

    /// What nobody calls.
    fn of_pattern(&self) -> Self::Of;
}

impl<T: PartialEq> IsCompared for Compared<T> {
    type Of = T;
    fn of_pattern(&self) -> T {
        unreachable!("it is there for its type")
    }
}

/// A type without `==`, of which there is nothing to prove.
pub trait IsNotCompared {
    /// What nobody calls.
    fn of_pattern(&self) {}
}

impl<T> IsNotCompared for &Compared<T> {}

/// A value that may stand in a pattern, if `==` of its type is derived.
pub trait InPattern {
    /// The value.
    const VALUE: Self;
}

impl InPattern for () {
    const VALUE: () = ();
}

/// Whether the `==` of a type, if it has one, is that of its fields.
pub fn is_equality_of_fields<T: KernelType>(
    whole: Option<EqualFn<T>>,
    fields: fn(&T, &T) -> bool,
) -> bool {
    let agrees = |whole: EqualFn<T>| {
        let pairs = pairs::<T>();
        pairs.iter().all(|(a, b)| whole(a, b) == fields(a, b))
    };
    whole.is_none_or(|whole| without_panic(|| agrees(whole)))
}

/// Whether the order of a type, if it has one, is that of its fields.
pub fn is_order_of_fields<T: KernelType>(whole: Option<OrderFn<T>>, fields: OrderFn<T>) -> bool {
    let agrees = |whole: OrderFn<T>| {
        let pairs = pairs::<T>();
        pairs.iter().all(|(a, b)| whole(a, b) == fields(a, b))
    };
    whole.is_none_or(|whole| without_panic(|| agrees(whole)))
}

/// The order of two structs from one field on, if the fields before do not decide it.
pub fn then_fields<T>(
    before: Option<Ordering>,
    order: Option<OrderFn<T>>,
    a: &T,
    b: &T,
) -> Option<Ordering> {
    match before {
        Some(Ordering::Equal) => order?(a, b),
        decided => decided,
    }
}

/// What a comparison of the user's says, if it does not panic.
fn without_panic(ask: impl FnOnce() -> bool) -> bool {
    catch_unwind(AssertUnwindSafe(ask)).unwrap_or(false)
}

/// The most scalars of a type that are varied.
const VARIED: usize = 24;

/// Pairs of values that differ in little.
fn pairs<T: KernelType>() -> Vec<(T, T)> {
    let mut scalars = Vec::new();
    T::FORM.for_each_scalar(&mut |at, scalar| scalars.push((at, scalar)));
    if scalars.len() > VARIED {
        scalars.drain(VARIED / 2..scalars.len() - VARIED / 2);
    }
    let plain = (0..10).filter_map(|number| {
        let mut bytes = vec![0; size_of::<T>()];
        T::FORM.for_each_scalar(&mut |at, scalar| put(&mut bytes, at, scalar, number));
        value_of::<T>(&bytes).map(|_| bytes)
    });
    let mut pairs = Vec::new();
    for base in plain.take(2) {
        let with = |changes: &[(usize, &[u8])]| {
            let mut bytes = base.clone();
            for (at, scalar) in changes {
                bytes[*at..at + scalar.len()].copy_from_slice(scalar);
            }
            value_of::<T>(&bytes)
        };
        for &(at, scalar) in &scalars {
            let values = edges(scalar);
            for (one, other) in values
                .iter()
                .flat_map(|one| values.iter().map(move |other| (one, other)))
            {
                pairs.extend(with(&[(at, one)]).zip(with(&[(at, other)])));
            }
        }
        for neighbours in scalars.windows(2) {
            let [(at, scalar), (next, next_scalar)] = neighbours else {
                continue;
            };
            let [low, high] = [1, 2].map(|number| number_as(*scalar, number));
            let [next_low, next_high] = [1, 2].map(|number| number_as(*next_scalar, number));
            let (one, other) = (
                with(&[(*at, &low), (*next, &next_high)]),
                with(&[(*at, &high), (*next, &next_low)]),
            );
            pairs.extend(one.zip(other));
        }
    }
    pairs
}

/// The value with these bytes, if there is one.
fn value_of<T: KernelType>(bytes: &[u8]) -> Option<T> {
    if !T::ANY_BITS {
        check_values::<T>(bytes).ok()?;
    }
    let fill = |to: &mut [u8]| {
        to.copy_from_slice(bytes);
        Ok(())
    };
    vec_from_bytes(1, fill).ok()?.pop()
}

fn put(bytes: &mut [u8], at: usize, scalar: Scalar, number: u8) {
    let value = number_as(scalar, number);
    bytes[at..at + value.len()].copy_from_slice(&value);
}

/// The bytes of a small number as a scalar.
fn number_as(scalar: Scalar, number: u8) -> Vec<u8> {
    match scalar {
        Scalar::F16 => half::f16::from(number).to_ne_bytes().to_vec(),
        Scalar::BF16 => half::bf16::from(number).to_ne_bytes().to_vec(),
        Scalar::F32 => f32::from(number).to_ne_bytes().to_vec(),
        Scalar::F64 => f64::from(number).to_ne_bytes().to_vec(),
        Scalar::Bool
        | Scalar::I8
        | Scalar::I16
        | Scalar::I32
        | Scalar::I64
        | Scalar::U8
        | Scalar::U16
        | Scalar::U32
        | Scalar::U64 => bytes_of_integer(scalar, number.into()),
    }
}

fn bytes_of_integer(scalar: Scalar, number: u64) -> Vec<u8> {
    number.to_le_bytes()[..scalar.bytes() as usize].to_vec()
}

/// Values of a scalar that comparisons may treat in a way of their own, as bytes.
fn edges(scalar: Scalar) -> Vec<Vec<u8>> {
    macro_rules! floats {
        ($ty:ty, $from:expr) => {{
            let numbers = [
                0.0f32,
                -0.0,
                1.0,
                -1.0,
                2.0,
                1e-3,
                f32::INFINITY,
                f32::NEG_INFINITY,
                f32::NAN,
            ];
            let numbers = numbers.map($from).into_iter();
            let one: $ty = $from(1.0);
            let above = <$ty>::from_bits(one.to_bits() + 1);
            let all = numbers.chain([above, <$ty>::MAX, <$ty>::MIN_POSITIVE]);
            all.map(|x| x.to_ne_bytes().to_vec()).collect()
        }};
    }
    match scalar {
        Scalar::Bool => vec![vec![0], vec![1]],
        Scalar::F16 => floats!(half::f16, half::f16::from_f32),
        Scalar::BF16 => floats!(half::bf16, half::bf16::from_f32),
        Scalar::F32 => floats!(f32, f32::from),
        Scalar::F64 => floats!(f64, f64::from),
        Scalar::I8
        | Scalar::I16
        | Scalar::I32
        | Scalar::I64
        | Scalar::U8
        | Scalar::U16
        | Scalar::U32
        | Scalar::U64 => {
            let high = 1 << (scalar.bytes() * 8 - 1);
            let numbers = [0, 1, 2, 3, 4, 5, 9, u64::MAX, u64::MAX - 1, high, high - 1];
            let numbers = numbers.into_iter();
            numbers.map(|n| bytes_of_integer(scalar, n)).collect()
        }
    }
}
