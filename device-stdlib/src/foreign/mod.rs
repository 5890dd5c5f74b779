//! What kernels can call of types of other crates, each behind the feature of its crate's name.
//!
//! The functions are the crates' own: rustc checks kernels against them. What they mean in a kernel is written here as
//! it is there, by `#[device_fn(foreign)]`, which describes an `impl` block and leaves the block itself out. So a
//! kernel computes what the host does, bit by bit, where it rounds as the host does: with `CompileOptions::contract`
//! off (`a * b + c` may else be rounded once).
//!
//! | feature | types | operators | functions |
//! |---|---|---|---|
//! | `num-complex` | `Complex<T>` | `+ - * /` and `+= -= *= /=` with another and with a number, `-z`; `f32` and `f64` on the left | `new`, `i`, `conj`, `norm_sqr`, `inv`, `scale`, `unscale` |
//! | `glam` | `Vec2` `Vec3` `Vec4` `DVec2` `DVec3` `DVec4` | `+ - * /` and those that assign with another and with a scalar, `-v` | `new`, `splat`, `dot`, `length_squared`, `length`, `length_recip`, `distance_squared`, `distance`, `normalize`, `lerp`; `cross` of three, `perp_dot` of two |
//! | `glam` | `Mat2` `Mat3` `Mat4` `DMat2` `DMat3` `DMat4` | `m * v`, `m * n`, `m + n`, `m - n` | `from_cols`, `transpose` |
//!
//! Fields are there by their names, `z.re`, `v.x`, `m.x_axis`, and so are constants, `Vec3::ZERO`. What is missing has
//! other bits on other platforms (`norm` and `arg` of a complex number), or nobody has asked for it.
//! `Vec4` and `Mat2` add and divide as glam does on x86-64 with SSE2 and without the feature `scalar-math`, or as it
//! does without either; elsewhere the last bit of `dot` may differ.
//! Matrices of nalgebra have elements, `v[i]` and `m[(i, j)]`, and neither operators nor functions.

#[cfg(feature = "glam")]
mod glam;
#[cfg(feature = "num-complex")]
mod num_complex;
