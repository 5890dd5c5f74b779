//! Comparisons of structs that the host has by hand: those that are not those of all fields are refused, and no others.

use std::cmp::Ordering;

use expect_test::expect;
use kiln::prelude::*;
use kiln::stdlib::macros::{bf16, f16};

/// Structs with one comparison each, and kernels that compare them: whether there is an error, beside whether there is
/// to be one.
macro_rules! structs {
    ($($name:ident $(<$($param:ident = $arg:ty),*>)? { $($field:ident: $ty:ty),* } $op:tt $refused:literal, $implementation:item)*) => {
        $(
            #[derive(Copy, Clone, KernelType)]
            #[repr(C)]
            struct $name $(<$($param),*>)? {
                $($field: $ty),*
            }
            $implementation
        )*

        #[allow(non_snake_case, reason = "they have the names of types")]
        mod kernels {
            use super::*;
            $(
                #[kernel]
                pub fn $name(out: &mut [u32], x: &[super::$name $(<$($arg),*>)?]) {
                    out[0] = u32::from(x[0] $op x[1]);
                }
            )*
        }

        /// The names of the structs, what compares them, and whether they are refused and are to be.
        fn all() -> Vec<(&'static str, bool, bool)> {
            vec![$((stringify!($name), kernels::$name.get().is_err(), $refused)),*]
        }
    };
}

structs! {
    Tolerant { x: f32, n: i32 } == true, impl PartialEq for Tolerant {
        fn eq(&self, other: &Self) -> bool {
            (self.x - other.x).abs() < 1e-6 && self.n == other.n
        }
    }
    Relative { x: f64 } == true, impl PartialEq for Relative {
        fn eq(&self, other: &Self) -> bool {
            (self.x - other.x).abs() <= 1e-12 * self.x.abs().max(other.x.abs())
        }
    }
    Ignoring { x: f32, n: i32 } == true, impl PartialEq for Ignoring {
        fn eq(&self, other: &Self) -> bool {
            self.n == other.n
        }
    }
    OfBits { x: f32 } == true, impl PartialEq for OfBits {
        fn eq(&self, other: &Self) -> bool {
            self.x.to_bits() == other.x.to_bits()
        }
    }
    OfNan { x: f64 } == true, impl PartialEq for OfNan {
        fn eq(&self, other: &Self) -> bool {
            self.x == other.x || self.x.is_nan() && other.x.is_nan()
        }
    }
    Wild { tag: u32, x: u32 } == true, impl PartialEq for Wild {
        fn eq(&self, other: &Self) -> bool {
            self.tag == other.tag && (self.x == other.x || self.x == u32::MAX || other.x == u32::MAX)
        }
    }
    Remainder { n: i32 } == true, impl PartialEq for Remainder {
        fn eq(&self, other: &Self) -> bool {
            self.n % 4 == other.n % 4
        }
    }
    Whichever { a: u8, b: u8 } == true, impl PartialEq for Whichever {
        fn eq(&self, other: &Self) -> bool {
            (self.a.min(self.b), self.a.max(self.b)) == (other.a.min(other.b), other.a.max(other.b))
        }
    }
    LastIgnored { x: [f32; 40] } == true, impl PartialEq for LastIgnored {
        fn eq(&self, other: &Self) -> bool {
            self.x[..39] == other.x[..39]
        }
    }
    Panics { n: i32 } == true, impl PartialEq for Panics {
        fn eq(&self, _: &Self) -> bool {
            panic!("there is no such comparison")
        }
    }
    Generic<T = f32> { x: T, n: i32 } == true, impl<T: PartialEq> PartialEq for Generic<T> {
        fn eq(&self, other: &Self) -> bool {
            self.x == other.x
        }
    }
    OfOne<T = i32> { x: T, n: i32 } == true, impl PartialEq for OfOne<i32> {
        fn eq(&self, other: &Self) -> bool {
            self.x == other.x
        }
    }
    Backwards { x: f32 } < true, impl PartialOrd for Backwards {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            other.x.partial_cmp(&self.x)
        }
    }
    SecondFirst { a: i32, b: i32 } < true, impl PartialOrd for SecondFirst {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some((self.b, self.a).cmp(&(other.b, other.a)))
        }
    }
    Total { x: f32 } < true, impl PartialOrd for Total {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.x.total_cmp(&other.x))
        }
    }
    ByHand { x: f32, n: i32 } == false, impl PartialEq for ByHand {
        fn eq(&self, other: &Self) -> bool {
            self.n == other.n && self.x == other.x
        }
    }
    Ordered { x: f32, n: i8 } < false, impl PartialOrd for Ordered {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            match self.x.partial_cmp(&other.x) {
                Some(Ordering::Equal) => self.n.partial_cmp(&other.n),
                order => order,
            }
        }
    }
}

impl PartialEq for Backwards {
    fn eq(&self, other: &Self) -> bool {
        self.x == other.x
    }
}

impl PartialEq for SecondFirst {
    fn eq(&self, other: &Self) -> bool {
        (self.a, self.b) == (other.a, other.b)
    }
}

impl PartialEq for Total {
    fn eq(&self, other: &Self) -> bool {
        self.x.total_cmp(&other.x).is_eq()
    }
}

impl PartialEq for Ordered {
    fn eq(&self, other: &Self) -> bool {
        self.x == other.x && self.n == other.n
    }
}

#[test]
fn comparisons_by_hand_are_refused_if_they_mean_something_else() {
    for (name, is_refused, want) in all() {
        assert_eq!(is_refused, want, "{name}");
    }
}

#[derive(Copy, Clone, Debug, PartialEq, PartialOrd, KernelType)]
#[repr(u32)]
enum Suit {
    Hearts = 3,
    Spades = 9,
}

#[derive(Copy, Clone, Debug, PartialEq, PartialOrd, KernelType)]
#[repr(C)]
struct Halves(f16, bf16);

/// All kinds of fields that a derive compares.
#[derive(Copy, Clone, Debug, PartialEq, KernelType)]
#[repr(C)]
struct Everything {
    suit: Suit,
    flag: bool,
    small: i8,
    wide: u64,
    halves: [Halves; 3],
    doubles: [[f64; 4]; 20],
}

#[derive(Copy, Clone, Debug, PartialEq, PartialOrd, KernelType)]
#[repr(C)]
struct Bounded<T: Float, U> {
    x: T,
    y: [U; 2],
}

#[kernel]
fn of_everything(out: &mut [u32], x: &[Everything], halves: &[Halves], suits: &[Suit]) {
    out[0] = u32::from(x[0] == x[1]);
    out[1] = u32::from(halves[0] < halves[1]);
    out[2] = u32::from(suits[0] == suits[1]);
}

#[kernel]
fn of_parameters<T: Float>(out: &mut [u32], x: &[Bounded<T, i16>]) {
    out[0] = u32::from(x[0] == x[1]);
}

#[test]
fn derived_comparisons_are_none_that_are_written_by_hand() {
    assert!(
        of_everything.get().is_ok(),
        "{:?}",
        of_everything.get().err()
    );
    assert!(
        of_parameters.get().is_ok(),
        "{:?}",
        of_parameters.get().err()
    );
}

#[test]
fn what_is_refused_says_how_to_mend_it() {
    let text = |error: kiln::Error| {
        let text = error.to_string();
        let (head, rest) = text.split_once("comparisons.rs:").expect("it has a place");
        let (_, rest) = rest.split_once(": ").expect("it has a text");
        format!("{head}comparisons.rs:L: {rest}")
    };
    let equality = kernels::Ignoring
        .get()
        .map(|_| ())
        .expect_err("it is refused");
    expect![[r#"
        `Ignoring` cannot be built: 1 error
          tests/macros/comparisons.rs:L: the `PartialEq` of `Ignoring` is written by hand and compares something else than all fields in their order, which kernels do; mark that `impl` with `#[device_fn]`, derive `PartialEq`, or write a method of another name"#]].assert_eq(&text(equality));
    let order = kernels::SecondFirst
        .get()
        .map(|_| ())
        .expect_err("it is refused");
    expect![[r#"
        `SecondFirst` cannot be built: 1 error
          tests/macros/comparisons.rs:L: the `PartialOrd` of `SecondFirst` is written by hand and compares something else than all fields in their order, which kernels do; mark that `impl` with `#[device_fn]`, derive `PartialOrd`, or write a method of another name"#]].assert_eq(&text(order));
}
