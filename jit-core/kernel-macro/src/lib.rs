//! `#[kernel]`, `#[device_fn]`, `#[derive(KernelType)]` and `#[derive(KernelView)]`.
//!
//! The macros write what one could write by hand with the builder. A function body becomes two
//! things, in one function of the host (`kiln_jit_core::front` has the other half and says why):
//! the *checked copy*, the body as it was written, which rustc checks and infers types for and
//! nobody calls; and the *description*, its meaning as data that the front end evaluates
//! (`kiln_description`), each operation with the position of the user's own token, so that errors at
//! run time name the user's lines. What the data refers to is in its *pool*.
//!
//! | file | subject |
//! |---|---|
//! | `function` | the items that a function becomes |
//! | `method` | `impl` blocks |
//! | `itself` | `self` and `Self` |
//! | `traits` | traits, for the bodies that they have |
//! | `signature` | parameters, generics |
//! | `arguments` | what stands in the parentheses of Kiln's attributes: launch bounds, what hooks read |
//! | `attributes` | other attributes on a function: `inline`, those for rustc |
//! | `launch` | the launch whose arguments rustc checks |
//! | `checked` | the checked copy |
//! | `numbers` | which expressions are numbers by how they are written |
//! | `scan` | which variables need an address, which expressions only compute |
//! | `body` | statements and `let` |
//! | `expression` | expressions |
//! | `call` | calls, methods, macros |
//! | `chain` | chains of iterators |
//! | `dispatch` | type parameters with a trait of the user's as their bound |
//! | `assertion` | `const` blocks: static assertions |
//! | `closure` | closures, and the functions that take them |
//! | `flow` | `if`, loops, `break`, `return` |
//! | `pattern` | `match` and patterns |
//! | `types` | types |
//! | `derive` | `#[derive(KernelType)]` |
//! | `comparison` | comparisons of structs |
//! | `view` | `#[derive(KernelView)]` |
//! | `elementwise` | `device!(..)` |
//! | `names` | what names mean |
//! | `pool` | what descriptions refer to |
//! | `position` | where in the user's source |
//! | `refusal` | what is refused, and what to write instead |
//!
//! What a kernel cannot say is refused with the span of the token and a sentence that says what to
//! write instead. The macros never panic; `fuzz` feeds them token soup.
#![forbid(unsafe_code)]

mod arguments;
mod assertion;
mod attributes;
mod body;
mod call;
mod chain;
mod checked;
mod closure;
mod comparison;
mod condition;
mod conversion;
mod derive;
mod dispatch;
mod elementwise;
mod expression;
mod fixed;
mod flow;
mod function;
#[cfg(test)]
mod fuzz;
mod items;
mod itself;
mod launch;
mod lifetimes;
mod method;
mod names;
mod numbers;
mod option;
mod panic;
mod pattern;
#[cfg(test)]
mod placed;
mod pool;
mod position;
mod print;
mod promoted;
mod ranges;
mod refusal;
mod scan;
mod signature;
mod stand;
mod traits;
mod types;
mod view;
#[cfg(test)]
mod written;

use function::Kind;
use proc_macro::TokenStream;

/// Makes a kernel of a function: a value of its name that [`Jit::launch`] takes.
///
/// ```
/// use kiln::prelude::*;
///
/// #[kernel]
/// fn saxpy<T: Float>(a: T, x: &[T], y: &mut [T]) {
///     let i = global_id().x;
///     if i < y.len() {
///         y[i] = a * x[i] + y[i];
///     }
/// }
///
/// # fn main() -> kiln::Result<()> {
/// # let (jit, n) = (Jit::new()?, 1000);
/// # let (x, mut y) = (jit.upload(&vec![1.0f32; n])?, jit.upload(&vec![2.0f32; n])?);
/// jit.launch(&saxpy, grid_for(n, 256), 256, args!(3.0f32, &x, &mut y))?;
/// saxpy.launch(&jit, (grid_for(n, 256), 256), 3.0f32, &x, &mut y)?;
/// # assert_eq!(y.to_vec()?, vec![8.0; n]);
/// # Ok(())
/// # }
/// ```
///
/// The second launch is a method that the kernel has besides: rustc checks its arguments. A const
/// parameter that no argument determines is one of the method, `k.launch::<4>(..)`. `usize` has 32
/// bits in kernels: a launch with a number that does not fit is an error, and for a `&[usize]` it takes a buffer of
/// `u32`.
///
/// `const { assert!(N % 32 == 0, "..") }` asserts something of const parameters and constants, in a `#[device_fn]` too:
/// where it does not hold, the launch is an error with the message and its place.
///
/// `#[kernel(launch_bounds(256))]` promises that no block has more than 256 threads,
/// `launch_bounds(256, 2)` asks for two resident blocks besides. `max_registers(64)` limits the registers of a thread.
/// `unroll(4)` and `unroll(never)` are for loops that have no `#[unroll]`, `inline_threshold(100)` for functions without
/// `#[inline]`: up to which cost LLVM inlines them; code for CPUs has no use for either.
///
/// `#[kernel(clamped)]` takes an index out of bounds for that of the last element, in the kernel and all that it calls;
/// `#[kernel(checked)]` has it end the thread, whatever the compile options say. `#[kernel(unsafe(unchecked))]` leaves
/// the checks out: whoever writes it promises that at every launch every index is below the length it is used with and that what it assumes holds, and
/// lints that look for unsafe code find it.
///
/// `#[kernel(fast(contract, reassociate, approximate, flush))]` says what floats may do besides rounding each result, in
/// the kernel and all that it calls, by any of these flags, and `#[kernel(fast)]` by the first three; `#[device_fn]`
/// takes it, too, for the function itself.
///
/// ```
/// use kiln::prelude::*;
///
/// #[kernel(clamped, fast(approximate), max_registers(64))]
/// fn slope(x: &[f32], dx: f32, y: &mut [f32]) {
///     let i = global_id().x;
///     if i < y.len() {
///         y[i] = (x[i + 1] - x[i]) / dx;
///     }
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let jit = Jit::new()?;
/// let (x, mut y) = (jit.upload(&[1.0f32, 3.0, 7.0])?, jit.zeros(3)?);
/// slope.launch(&jit, (1, 32), &x, 2.0, &mut y)?;
/// assert_eq!(y.to_vec()?, [1.0, 2.0, 0.0]);
/// # Ok(())
/// # }
/// ```
///
/// `#[kernel(attribute(fast_math, unroll = 4))]`, which
/// `#[device_fn]` takes too, on functions of an `impl` block as well, says what hooks are to read: names, alone or with
/// a `bool`, an integer or a text.
///
/// [`Jit::launch`]: https://docs.rs/kiln-jit-core
#[proc_macro_attribute]
pub fn kernel(attribute: TokenStream, item: TokenStream) -> TokenStream {
    function::expand(Kind::Kernel, attribute.into(), item.into()).into()
}

/// What `kiln::kernel_expr!` expands to.
#[doc(hidden)]
#[proc_macro]
pub fn kernel_expression(tokens: TokenStream) -> TokenStream {
    function::expand_expression(tokens.into()).into()
}

/// Makes a function callable from kernels; on the host it stays the function that it is.
///
/// ```
/// use kiln::prelude::*;
///
/// #[device_fn]
/// fn lerp<T: Float>(a: T, b: T, t: T) -> T {
///     a + (b - a) * t
/// }
///
/// assert_eq!(lerp(1.0, 3.0, 0.5), 2.0);
/// ```
///
/// A parameter may be a closure. The function is then described in place of each call:
///
/// ```
/// # use kiln::prelude::*;
/// #[device_fn]
/// fn sum_of<T: Num, F: Fn(T) -> T>(x: &[T], f: F) -> T {
///     let mut sum = T::ZERO;
///     for i in 0..x.len() {
///         sum += f(x[i]);
///     }
///     sum
/// }
///
/// #[kernel]
/// fn norm(x: &[f32], out: &mut [f32]) {
///     out[0] = sum_of(x, |v| v * v).sqrt();
/// }
/// # fn main() -> kiln::Result<()> {
/// # let jit = Jit::new()?;
/// # let (x, mut out) = (jit.upload(&[3.0, 4.0])?, jit.zeros(1)?);
/// # norm.launch(&jit, (1, 1), &x, &mut out)?;
/// # assert_eq!(out.to_vec()?, [5.0]);
/// # Ok(())
/// # }
/// ```
///
/// On an `impl` block it makes all functions in it callable, as methods and by their paths. The type is
/// a `KernelType`; its parameters, if it has any, are bounded as those of functions are.
///
/// ```
/// use kiln::prelude::*;
///
/// #[derive(Copy, Clone, Debug, PartialEq, KernelType)]
/// #[repr(C)]
/// struct Complex {
///     re: f32,
///     im: f32,
/// }
///
/// #[device_fn]
/// impl Complex {
///     fn real(re: f32) -> Self {
///         Complex { re, im: 0.0 }
///     }
///     fn scale(&mut self, by: f32) {
///         self.re *= by;
///         self.im *= by;
///     }
/// }
///
/// #[kernel]
/// fn doubled(x: &[f32], z: &mut [Complex]) {
///     let i = global_id().x;
///     if i < z.len() {
///         z[i] = Complex::real(x[i]);
///         z[i].scale(2.0);
///     }
/// }
///
/// # fn main() -> kiln::Result<()> {
/// # let jit = Jit::new()?;
/// # let mut z = jit.upload(&[Complex::real(0.0)])?;
/// # doubled.launch(&jit, (1, 1), &jit.upload(&[3.0f32])?, &mut z)?;
/// # assert_eq!(z.to_vec()?, [Complex::real(6.0)]);
/// # Ok(())
/// # }
/// ```
///
/// What it computes in a kernel and on the host is the same, with these exceptions:
///
/// | | in a kernel | on the host |
/// |---|---|---|
/// | `+ - *` and `-x` of integers that overflow | wrap | wrap; panic with overflow checks, as in debug builds |
/// | `<<`, `>>` by the width or more | the amount counts modulo the width | the same; panic with overflow checks |
/// | `x / 0`, `x % 0`, `MIN / -1`, `MIN % -1` | as if the divisor were 1 | panic |
/// | an index out of bounds | ends the thread, reported at the next synchronization | panics |
/// | `usize` and lengths | 32 bits; a launch refuses an argument that needs more | 64 bits |
/// | `a * b + c` of floats | may be rounded once, unless `CompileOptions::contract` is off | rounded twice |
/// | `min`, `max` of `0.0` and `-0.0`, the bits of a NaN | either, any | either, any |
/// | `x.clamp(low, high)` with `high` below `low` | `high` | panics |
/// | `powi` | multiplications by repeated squaring | std's, or for a type parameter the same as in a kernel |
/// | `exp`, `ln`, `sin`, `powf` and what else has an error in the table of `kiln::stdlib::math` | the same bits on all devices | the platform's, some units in the last place away |
/// | what `fast(\|\| ..)` and its kind compute | may be something near it | as without |
/// | indices, barriers, warps | of the launch | there is one thread |
///
/// All else is equal: `wrapping_add` and its kind, comparisons, casts with `as` (which saturate from
/// floats), `+ - * /`, `sqrt` and `mul_add` of floats, which round correctly.
#[proc_macro_attribute]
pub fn device_fn(attribute: TokenStream, item: TokenStream) -> TokenStream {
    function::expand(Kind::Device, attribute.into(), item.into()).into()
}

/// What `kiln::device!` expands to.
#[doc(hidden)]
#[proc_macro]
pub fn device_expression(tokens: TokenStream) -> TokenStream {
    elementwise::expand(tokens.into()).into()
}

/// Makes a struct with slices a type that kernels take, and see as the struct: a *view* of what the host has.
///
/// ```
/// use kiln::prelude::*;
///
/// #[derive(KernelView)]
/// struct Matrix<'a, T> {
///     data: &'a [T],
///     columns: u32,
/// }
///
/// #[device_fn]
/// impl<T: Num> Matrix<'_, T> {
///     fn at(&self, row: usize, column: usize) -> T {
///         self.data[row * self.columns as usize + column]
///     }
/// }
///
/// #[kernel]
/// fn copy_column<T: Num>(m: Matrix<'_, T>, number: u32, out: &mut [T]) {
///     let row = global_id().x;
///     if row < out.len() {
///         out[row] = m.at(row, number as usize);
///     }
/// }
///
/// struct HostMatrix {
///     data: Buffer<f32>,
///     columns: u32,
/// }
///
/// impl<'a> ToKernel<'a> for &'a HostMatrix {
///     type View = Matrix<'a, f32>;
///     fn to_kernel(self) -> MatrixArgs<'a, f32> {
///         MatrixArgs { data: &self.data, columns: self.columns }
///     }
/// }
///
/// # fn main() -> kiln::Result<()> {
/// # let jit = Jit::new()?;
/// let m = HostMatrix { data: jit.upload(&[1.0, 2.0, 3.0, 4.0])?, columns: 2 };
/// let mut out = jit.zeros(2)?;
/// copy_column.launch(&jit, (1, 32), &m, 1, &mut out)?;
/// assert_eq!(out.to_vec()?, [2.0, 4.0]);
/// jit.launch(&copy_column, 1, 32, args!(&m, 0u32, &mut out))?;
/// assert_eq!(out.to_vec()?, [1.0, 3.0]);
/// # Ok(())
/// # }
/// ```
///
/// A field is a slice, `&'a [T]` or `&'a mut [T]`, a value (a number, a fixed array, a `#[derive(KernelType)]`
/// struct), or another view. `MatrixArgs` is written for the host, with a buffer for each slice; `ToKernel` says
/// which type of the host becomes it. Each field is an argument of its own, which errors name: `m.data`.
/// In the parameters of a `#[kernel]` a view is written with its lifetime, `Matrix<'_, T>`.
#[proc_macro_derive(KernelView)]
pub fn derive_kernel_view(item: TokenStream) -> TokenStream {
    view::expand(item.into()).into()
}

/// Makes a `#[repr(C)]` struct a type that kernels can hold, or an enum without fields and with a
/// `#[repr(u8)]` to `#[repr(i64)]` one that kernels can compute with.
///
/// `#[repr(C, align(16))]` aligns each value of the struct; to 16 bytes at most, which is the most that a thread reads at once.
#[proc_macro_derive(KernelType)]
pub fn derive_kernel_type(item: TokenStream) -> TokenStream {
    derive::expand(item.into()).into()
}
