//! What decides the code besides the module and the target.

use kiln_ir::{Bounds, FastMath, Unroll};

use crate::llvm::optimize::OptLevel;

/// Options of a compilation: plain data, and part of the cache key.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct CompileOptions {
    /// How hard LLVM tries.
    pub opt_level: OptLevel,
    /// Whether `a * b + c` may become one fused operation with one rounding, as nvcc's default
    /// `-fmad=true` has it.
    pub contract: bool,
    /// Whether the PTX says which line of Rust each instruction comes from (`.loc`).
    pub line_info: bool,
    /// Whether a kernel that gathers may have more registers than the assembler of an NVIDIA GPU gives it.
    pub gather_registers: bool,
    /// What floats may do, in all kernels.
    pub fast: FastMath,
    /// How loops are unrolled that do not say it themselves, in kernels that do not either.
    pub unroll: Unroll,
    /// Up to which cost LLVM inlines device functions in GPU code that do not say it themselves, in kernels that do not
    /// either; `None`: as it judges.
    pub inline_threshold: Option<u32>,
    /// How many registers a thread of a GPU may have in kernels that say neither that nor how large blocks are; 0: as
    /// many as the GPU's assembler gives it.
    pub max_registers: u32,
    /// What an index out of bounds does in kernels that do not say it themselves; safe code cannot set it to
    /// [`Bounds::Unchecked`].
    bounds: Bounds,
}

impl Default for CompileOptions {
    fn default() -> Self {
        CompileOptions {
            opt_level: OptLevel::O3,
            contract: true,
            line_info: false,
            gather_registers: true,
            fast: FastMath::NONE,
            unroll: Unroll::Auto,
            inline_threshold: None,
            max_registers: 0,
            bounds: Bounds::Checked,
        }
    }
}

impl CompileOptions {
    /// Sets how hard LLVM tries.
    #[must_use]
    pub fn opt_level(self, opt_level: OptLevel) -> CompileOptions {
        CompileOptions { opt_level, ..self }
    }

    /// Sets whether `a * b + c` may become one fused operation with one rounding.
    #[must_use]
    pub fn contract(self, contract: bool) -> CompileOptions {
        CompileOptions { contract, ..self }
    }

    /// Sets whether the PTX says which line of Rust each instruction comes from (`.loc`).
    #[must_use]
    pub fn line_info(self, line_info: bool) -> CompileOptions {
        CompileOptions { line_info, ..self }
    }

    /// Sets whether a kernel for an NVIDIA GPU may have 64 registers a thread if several loads of a loop have addresses that
    /// other loads of the loop give, as in `sum += values[k] * x[columns[k]]`: more of them are under way at once, and
    /// fewer warps are there. A kernel that says something of registers itself has what it says.
    ///
    /// ```
    /// use kiln_codegen::CompileOptions;
    ///
    /// assert!(CompileOptions::default().gather_registers, "it is so unless it is switched off");
    /// let options = CompileOptions::default().gather_registers(false);
    /// assert!(!options.gather_registers);
    /// ```
    #[must_use]
    pub fn gather_registers(self, gather_registers: bool) -> CompileOptions {
        CompileOptions {
            gather_registers,
            ..self
        }
    }

    /// Sets what floats may do besides rounding each result, in all kernels.
    ///
    /// ```
    /// use kiln_codegen::CompileOptions;
    /// use kiln_ir::FastMath;
    ///
    /// let options = CompileOptions::default().fast(FastMath::FAST | FastMath::FLUSH);
    /// assert!(options.fast.has(FastMath::APPROXIMATE));
    /// ```
    #[must_use]
    pub fn fast(self, fast: FastMath) -> CompileOptions {
        CompileOptions { fast, ..self }
    }

    /// Sets how loops are unrolled that do not say it themselves, in kernels that do not either: not at all, or by a
    /// factor from 1 to 1024. On CPUs it holds for loops whose bounds are the same in all threads of a warp.
    ///
    /// ```
    /// use kiln_codegen::CompileOptions;
    /// use kiln_ir::Unroll;
    ///
    /// assert_eq!(CompileOptions::default().unroll(Unroll::Never).unroll, Unroll::Never);
    /// ```
    #[must_use]
    pub fn unroll(self, unroll: Unroll) -> CompileOptions {
        CompileOptions { unroll, ..self }
    }

    /// Sets up to which cost device functions are inlined that do not say it themselves (`#[inline]`), in kernels that
    /// do not either. The cost is LLVM's, about five for an instruction. Code for CPUs has no calls.
    ///
    /// ```
    /// use kiln_codegen::CompileOptions;
    ///
    /// let options = CompileOptions::default().inline_threshold(100);
    /// assert_eq!(options.inline_threshold, Some(100));
    /// ```
    #[must_use]
    pub fn inline_threshold(self, cost: u32) -> CompileOptions {
        CompileOptions {
            inline_threshold: Some(cost),
            ..self
        }
    }

    /// Limits the registers of a thread to a number from 16 to 255, in kernels that have neither `max_registers` nor
    /// `launch_bounds`, as nvcc's `--maxrregcount` does (CUDA C++ Programming Guide, "Maximum Number of Registers per
    /// Thread"); 0 is no limit. It changes no result, and no code for CPUs, whose registers nobody shares. With another
    /// number no kernel compiles.
    ///
    /// ```
    /// use kiln_codegen::CompileOptions;
    ///
    /// assert_eq!(CompileOptions::default().max_registers(64).max_registers, 64);
    /// ```
    #[must_use]
    pub fn max_registers(self, registers: u32) -> CompileOptions {
        CompileOptions {
            max_registers: registers,
            ..self
        }
    }

    /// Has an index out of bounds be that of the last element, in kernels that do not say it themselves. An
    /// access of a slice without elements still ends its thread.
    ///
    /// ```
    /// use kiln_codegen::CompileOptions;
    /// use kiln_ir::Bounds;
    ///
    /// assert_eq!(CompileOptions::default().clamped().bounds(), Bounds::Clamped);
    /// ```
    #[must_use]
    pub fn clamped(self) -> CompileOptions {
        CompileOptions {
            bounds: Bounds::Clamped,
            ..self
        }
    }

    /// Leaves out the checks of indices, in kernels that do not say themselves what an index out of bounds does.
    ///
    /// ```
    /// use kiln_codegen::CompileOptions;
    /// use kiln_ir::Bounds;
    ///
    /// // SAFETY: the kernels that are compiled with it stay within their buffers.
    /// let options = unsafe { CompileOptions::default().unchecked() };
    /// assert_eq!(options.bounds(), Bounds::Unchecked);
    /// ```
    ///
    /// # Safety
    /// At every launch with these options, every index must be below the length it is used with, and every assumption
    /// must hold.
    #[must_use]
    pub unsafe fn unchecked(self) -> CompileOptions {
        CompileOptions {
            bounds: Bounds::Unchecked,
            ..self
        }
    }

    /// What an index out of bounds does in kernels that do not say it themselves.
    pub fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// Options that differ from these in one each, by its name: whoever adds an option says here what another value is, by which
    /// tests see that it is in the cache key.
    #[doc(hidden)]
    pub fn each_changed(&self) -> Vec<(&'static str, CompileOptions)> {
        let CompileOptions {
            opt_level,
            contract,
            line_info,
            gather_registers,
            fast,
            unroll,
            inline_threshold,
            max_registers,
            bounds,
        } = self;
        let changed = |change: &dyn Fn(&mut CompileOptions)| {
            let mut options = self.clone();
            change(&mut options);
            options
        };
        let level = match opt_level {
            OptLevel::O1 => OptLevel::O3,
            _ => OptLevel::O1,
        };
        let fast = match *fast {
            FastMath::NONE => FastMath::REASSOCIATE,
            _ => FastMath::NONE,
        };
        let unroll = match unroll {
            Unroll::Never => Unroll::Auto,
            _ => Unroll::Never,
        };
        let threshold = inline_threshold.map_or(7, |cost| cost ^ 1);
        let registers = if *max_registers == 64 { 32 } else { 64 };
        let bounds = match bounds {
            Bounds::Clamped => Bounds::Checked,
            _ => Bounds::Clamped,
        };
        vec![
            ("opt_level", changed(&|o| o.opt_level = level)),
            ("contract", changed(&|o| o.contract = !contract)),
            ("line_info", changed(&|o| o.line_info = !line_info)),
            (
                "gather_registers",
                changed(&|o| o.gather_registers = !gather_registers),
            ),
            ("fast", changed(&|o| o.fast = fast)),
            ("unroll", changed(&|o| o.unroll = unroll)),
            (
                "inline_threshold",
                changed(&|o| o.inline_threshold = Some(threshold)),
            ),
            ("max_registers", changed(&|o| o.max_registers = registers)),
            ("bounds", changed(&|o| o.bounds = bounds)),
        ]
    }
}
