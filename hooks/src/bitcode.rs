//! Linking bitcode: functions of other compilers in kernels.
//!
//! A row calls a function by its name, [`Cell::function`](kiln_compiler::ir::Cell::function), and this hook links the
//! file that has it into the LLVM module of each GPU kernel that calls one of them. What nothing calls is left out,
//! and LLVM puts the rest into the kernel as it does with functions of the kernel's own. On a CPU and in the
//! interpreter the row is the Rust function that it was written with.
//!
//! ```
//! use kiln::core::prelude::*;
//! use kiln::prelude::*;
//!
//! kiln::intrinsic! {
//!     /// The upper half of a product.
//!     fn mul_high(x: i32, y: i32) -> i32 {
//!         ((i64::from(x) * i64::from(y)) >> 32) as i32
//!     } = row("example.mul_high").with_cells(&[Cell::function(Family::PTX, None, "__nv_mulhi")]);
//! }
//!
//! #[kernel]
//! fn scale(x: &mut [i32]) {
//!     let i = global_id().x;
//!     if i < x.len() {
//!         x[i] = mul_high(x[i], 1 << 30);
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut builder = Jit::builder();
//! // Of the CUDA toolkit: `clang -O2 -emit-llvm -c --cuda-device-only` makes one of CUDA C++.
//! if let Ok(bitcode) = std::fs::read("/usr/local/cuda/nvvm/libdevice/libdevice.10.bc") {
//!     builder = builder.hook(kiln::hooks::link_bitcode("libdevice", bitcode));
//! }
//! # let builder = Jit::builder().device(Device::cpu());
//! let jit = builder.build()?;
//! let mut x = jit.upload(&[100, -8])?;
//! scale.launch(&jit, (1, 32), &mut x)?;
//! assert_eq!(x.to_vec()?, [25, -2]);
//! # Ok(())
//! # }
//! ```
//!
//! Before, in the module of a kernel that calls the row:
//!
//! ```text
//! declare i32 @__nv_mulhi(i32, i32)
//! ```
//!
//! After:
//!
//! ```text
//! define internal i32 @__nv_mulhi(i32 %0, i32 %1) { .. }
//! ```

use kiln_compiler::hook::Hook;
use kiln_compiler::ir::CacheKey;
use kiln_compiler::ir::target::Target;

/// A hook that links a bitcode file into code for NVIDIA's GPUs which calls one of its functions. `name` is that of the
/// hook, `link-bitcode libdevice`, and of the file in errors. The file is for `nvptx64`, or for no machine, and of
/// LLVM 22 or older; inline assembly in it has to be vouched for
/// ([`Hook::vouches_for_assembly`]).
pub fn link_bitcode(name: &str, bitcode: impl Into<Vec<u8>>) -> Hook {
    let (name, bitcode) = (name.to_owned(), bitcode.into());
    // Hexadecimal digits of the bytes; the digest of that is what tells files apart.
    let text: String = bitcode.iter().map(|byte| format!("{byte:02x}")).collect();
    let digest = CacheKey::default().with("bitcode", text).digest();
    Hook::new(format!("link-bitcode {name}"))
        .key("digest", digest)
        .may_be_kept()
        .if_supported()
        .finish_module(move |cx, module| {
            let declared = module.get_functions().any(|function| {
                let name = function.get_name().to_string_lossy();
                let own = ["llvm.", "kiln_"].iter().any(|own| name.starts_with(own));
                function.count_basic_blocks() == 0 && !own
            });
            if declared && matches!(cx.target, Target::Ptx(_)) {
                cx.link_bitcode(module, &bitcode, &name)?;
            }
            Ok(())
        })
}
