//! Random kernels, and what makes and compares them: the generator and the reducer tested on themselves, the
//! compiled CPU backend against the interpreter, with bugs planted in a copy of it, what code generation
//! makes of changed kernels, and PTX; and the command line. `cargo xtask test -p kiln-random compiled` runs one module.
//!
//! Apart is `on_host`, which runs code that is wrong on purpose; `random-functions` and `random-kernels` go to
//! a GPU.

mod campaign;
mod command_line;
mod compiled;
mod generator;
mod loops;
mod mutated;
mod planted;
mod ptx;
