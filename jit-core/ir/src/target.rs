//! What machine code is for: everything about the target that decides the code, as data.

use std::fmt;
use std::sync::OnceLock;

use crate::Processor;

/// The target of a compilation.
///
/// It is data alone: what makes code for it is an `Isa`, and what runs that code
/// a device.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Target {
    /// An NVIDIA GPU, through PTX.
    Ptx(PtxTarget),
    /// A CPU of this machine's kind, a warp as a vector.
    Cpu(CpuTarget),
    /// This machine's CPU, through the interpreter.
    Interpreter,
    /// A machine that is told by a name; a program can bring what makes code for it, see `JitOptions::isas`.
    Custom(CustomTarget),
}

/// An NVIDIA architecture and the PTX language version to write.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct PtxTarget {
    /// Compute capability times ten: 75 is sm_75, 120 is sm_120.
    pub sm: u32,
    /// PTX ISA version times ten: 83 is `.version 8.3`.
    pub ptx: u32,
}

impl Target {
    /// The machine whose cells stand for rows that mean a function of the IR, too. Elsewhere the function
    /// itself does: code for a CPU may be left to the interpreter.
    pub fn cells_before_bodies(&self) -> Option<Processor> {
        match self {
            Target::Ptx(target) => Some(target.processor()),
            Target::Cpu(_) | Target::Interpreter | Target::Custom(_) => None,
        }
    }
}

/// The architectures that there are (PTX ISA, ".target").
const ARCHITECTURES: [u32; 11] = [75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120];

impl PtxTarget {
    /// The oldest architecture Kiln compiles for: Turing, the oldest that ptxas 13 knows.
    pub const MIN_SM: u32 = 75;

    /// The newest architecture that LLVM 22 writes for. Newer devices run its PTX.
    pub const MAX_SM: u32 = 120;

    /// The target for an architecture, in the oldest PTX version Kiln writes that knows it
    /// (PTX ISA, "Release Notes").
    pub fn for_sm(sm: u32) -> PtxTarget {
        let ptx = match sm {
            0..=89 => 78,
            90..=99 => 80,
            100..=102 => 86,
            103 => 88,
            104..=120 => 87,
            _ => 88,
        };
        PtxTarget { sm, ptx }
    }

    /// The target for an architecture that Kiln compiles for and that there is.
    pub fn known(sm: u32) -> Option<PtxTarget> {
        ARCHITECTURES.contains(&sm).then(|| PtxTarget::for_sm(sm))
    }

    /// What cells of intrinsics know it as.
    pub fn processor(self) -> Processor {
        Processor::Ptx { sm: self.sm }
    }
}

/// A CPU, and how kernels are compiled for it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct CpuTarget {
    /// Threads of a block in x, y and z, which decide the code; `None` until a launch says so.
    pub block: Option<[u32; 3]>,
    /// Lanes of a vector: 1, 8, 16, 32 or 64; by default what suits the machine and the block. Kernels
    /// with warp operations always have 32.
    pub lanes: Option<u32>,
    /// What happens at barriers; by default what suits the kernel.
    pub barriers: Option<Barriers>,
    /// What the processor has.
    pub features: CpuFeatures,
    /// Whether code is scheduled for the processor of this machine. Others with the same features run it, too; code that is
    /// made for them is scheduled for none, and is the same whichever machine makes it.
    pub scheduled_for_host: bool,
}

impl CpuTarget {
    /// This machine's processor, for blocks of any shape.
    pub fn host() -> CpuTarget {
        CpuTarget {
            features: CpuFeatures::host(),
            scheduled_for_host: true,
            ..CpuTarget::default()
        }
    }
}

/// The processor of this machine: processors of one name schedule alike. LLVM is not asked, as code is looked for before
/// that is opened.
fn host_processor() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| read_processor().unwrap_or_else(|| "unknown".to_owned()))
}

/// Who makes it, with family and model (Intel SDM 2A, `CPUID`).
#[cfg(target_arch = "x86_64")]
fn read_processor() -> Option<String> {
    use std::arch::x86_64::__cpuid;

    let maker = __cpuid(0);
    let maker: Vec<u8> = [maker.ebx, maker.edx, maker.ecx]
        .into_iter()
        .flat_map(u32::to_le_bytes)
        .collect();
    // Without the stepping.
    let model = __cpuid(1).eax & !0xf;
    Some(format!("{} {model:#x}", String::from_utf8_lossy(&maker)))
}

/// What the system says of the first core's main identification register (Arm ARM, `MIDR_EL1`).
#[cfg(not(target_arch = "x86_64"))]
fn read_processor() -> Option<String> {
    let file = "/sys/devices/system/cpu/cpu0/regs/identification/midr_el1";
    Some(std::fs::read_to_string(file).ok()?.trim().to_owned())
}

/// What happens at barriers on a CPU.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum Barriers {
    /// The kernel is cut at its barriers into segments that run warp by warp.
    #[default]
    Segments,
    /// A warp is a coroutine that waits at barriers.
    Coroutines,
}

/// Extensions of a processor's instruction set, by the names that LLVM gives them.
///
/// Only those that code for kernels may use are looked for, so that code which was made for one
/// processor runs on another with the same ones.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct CpuFeatures(Vec<&'static str>);

macro_rules! detected {
    ($detect:ident: $($llvm:literal = $rust:tt),* $(,)?) => {
        [$(($llvm, std::arch::$detect!($rust))),*]
    };
}

impl CpuFeatures {
    /// The features of the processor that this program runs on.
    #[cfg(target_arch = "x86_64")]
    pub fn host() -> CpuFeatures {
        let known = detected!(is_x86_feature_detected:
            "sse3" = "sse3", "ssse3" = "ssse3", "sse4.1" = "sse4.1", "sse4.2" = "sse4.2",
            "popcnt" = "popcnt", "cx16" = "cmpxchg16b", "avx" = "avx", "avx2" = "avx2",
            "bmi" = "bmi1", "bmi2" = "bmi2", "f16c" = "f16c", "fma" = "fma", "lzcnt" = "lzcnt",
            "movbe" = "movbe", "avx512f" = "avx512f", "avx512bw" = "avx512bw",
            "avx512cd" = "avx512cd", "avx512dq" = "avx512dq", "avx512vl" = "avx512vl",
            "avx512ifma" = "avx512ifma", "avx512vbmi" = "avx512vbmi",
            "avx512vbmi2" = "avx512vbmi2", "avx512vnni" = "avx512vnni",
            "avx512bitalg" = "avx512bitalg", "avx512vpopcntdq" = "avx512vpopcntdq",
            "avx512bf16" = "avx512bf16", "avx512fp16" = "avx512fp16", "gfni" = "gfni",
        );
        CpuFeatures::of(&known)
    }

    /// The features of the processor that this program runs on.
    #[cfg(target_arch = "aarch64")]
    pub fn host() -> CpuFeatures {
        let known = detected!(is_aarch64_feature_detected:
            "neon" = "neon", "lse" = "lse", "fullfp16" = "fp16", "bf16" = "bf16",
            "dotprod" = "dotprod", "rdm" = "rdm",
        );
        CpuFeatures::of(&known)
    }

    /// The features of the processor that this program runs on: none are known of its kind.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub fn host() -> CpuFeatures {
        CpuFeatures::default()
    }

    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn of(known: &[(&'static str, bool)]) -> CpuFeatures {
        let there = known.iter().filter(|(_, there)| *there);
        CpuFeatures(there.map(|(name, _)| *name).collect())
    }

    /// The features of a level of x86-64 (System V ABI for that, "Processor supplement"): 2 has SSE 4.2, 3 AVX2, 4 AVX-512.
    /// `None`: there is no such level, or this machine is of another kind.
    ///
    /// ```
    /// use kiln_ir::target::CpuFeatures;
    ///
    /// if let Some(level) = CpuFeatures::x86_64_level(3) {
    ///     assert!(level.has("avx2") && !level.has("avx512f"));
    /// }
    /// ```
    pub fn x86_64_level(level: u32) -> Option<CpuFeatures> {
        const LEVELS: [&[&str]; 3] = [
            &["sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "cx16"],
            &[
                "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe",
            ],
            &["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"],
        ];
        let levels = LEVELS.get(..level.checked_sub(1)? as usize)?;
        let is_one = cfg!(target_arch = "x86_64") && !levels.is_empty();
        is_one.then(|| CpuFeatures(levels.concat()))
    }

    /// Whether a machine with these runs code for others.
    pub fn covers(&self, other: &CpuFeatures) -> bool {
        other.0.iter().all(|name| self.has(name))
    }

    /// Whether the processor has one, by LLVM's name.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(&name)
    }

    /// How many 32-bit numbers a register holds.
    pub fn lanes(&self) -> u32 {
        if self.has("avx512f") {
            16
        } else if self.has("avx2") {
            8
        } else {
            4
        }
    }

    /// Whether the processor reads and writes elements anywhere, of 4 bytes and more, at once under a mask.
    pub fn gathers(&self) -> bool {
        self.has("avx512f")
    }

    /// Whether the processor converts between `f16` and `f32` itself.
    pub fn converts_f16(&self) -> bool {
        self.has("f16c") || self.has("neon")
    }
}

/// `+a,+b`, as LLVM reads it.
impl fmt::Display for CpuFeatures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, name) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, "{comma}+{name}")?;
        }
        Ok(())
    }
}

/// A machine of which only its `Isa` and its devices know more than this.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CustomTarget {
    /// What kind of machine; by it an `Isa` is found.
    pub family: &'static str,
    /// All else that decides the code, as the `Isa` reads it.
    pub settings: String,
}

impl Target {
    /// How many bytes of parameters a kernel can have (PTX ISA, "Kernel Function Parameters").
    pub const fn max_param_bytes(&self) -> u32 {
        match self {
            Target::Ptx(PtxTarget { ptx: 0..81, .. }) => 4096,
            Target::Ptx(_) | Target::Cpu(_) | Target::Interpreter | Target::Custom(_) => {
                MAX_PARAM_BYTES
            }
        }
    }

    /// This target, and then those of which it runs the code as well, the best first: of GPUs the older architectures, whose
    /// PTX newer ones take, of CPUs the levels of x86-64.
    pub fn and_lesser(&self) -> impl Iterator<Item = Target> + '_ {
        let lesser: Vec<Target> = match self {
            Target::Ptx(own) => (PtxTarget::MIN_SM..own.sm)
                .rev()
                .filter_map(PtxTarget::known)
                .filter(|target| target.ptx <= own.ptx)
                .map(Target::Ptx)
                .collect(),
            Target::Cpu(own) => (2..=4)
                .rev()
                .filter_map(CpuFeatures::x86_64_level)
                .filter(|level| own.features.covers(level))
                .map(|features| CpuTarget {
                    features,
                    scheduled_for_host: false,
                    ..own.clone()
                })
                .filter(|lesser| lesser != own)
                .map(Target::Cpu)
                .collect(),
            Target::Interpreter | Target::Custom(_) => Vec::new(),
        };
        std::iter::once(self.clone()).chain(lesser)
    }

    /// Whether code is for blocks of one shape, which the target does not say yet.
    pub fn wants_block(&self) -> bool {
        matches!(self, Target::Cpu(CpuTarget { block: None, .. }))
    }

    /// The target for blocks of a shape: `self` where code does not depend on it.
    #[must_use]
    pub fn for_block(&self, block: [u32; 3]) -> Target {
        let mut target = self.clone();
        if let Target::Cpu(cpu) = &mut target {
            cpu.block.get_or_insert(block);
        }
        target
    }

    /// What decides the code, by name, the kind of machine first.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let mut settings = vec![("target", self.to_string())];
        match self {
            Target::Ptx(_) | Target::Interpreter | Target::Custom(_) => {}
            Target::Cpu(cpu) => {
                // All of it: code of another process is found by this.
                let CpuTarget {
                    block,
                    lanes,
                    barriers,
                    features,
                    scheduled_for_host,
                } = cpu;
                let scheduled_for = match scheduled_for_host {
                    true => host_processor(),
                    false => "any",
                };
                let auto = |set: Option<String>| set.unwrap_or_else(|| "auto".to_owned());
                let block = block.map(|[x, y, z]| format!("{x}x{y}x{z}"));
                settings.extend([
                    ("block", block.unwrap_or_else(|| "any".to_owned())),
                    ("lanes", auto(lanes.map(|lanes| lanes.to_string()))),
                    ("barriers", auto(barriers.map(|b| format!("{b:?}")))),
                    ("processor", features.to_string()),
                    ("scheduled for", scheduled_for.to_owned()),
                ]);
            }
        }
        settings
    }
}

/// The most bytes of parameters that any target has.
pub const MAX_PARAM_BYTES: u32 = 32_764;

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Ptx(PtxTarget { sm, ptx }) => {
                write!(f, "sm_{sm}, PTX {}.{}", ptx / 10, ptx % 10)
            }
            Target::Cpu(_) => f.write_str("this machine's CPU"),
            Target::Interpreter => f.write_str("interpreter"),
            Target::Custom(CustomTarget { family, settings }) => {
                let space = if settings.is_empty() { "" } else { " " };
                write!(f, "{family}{space}{settings}")
            }
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn the_processor_that_code_is_scheduled_for_is_in_the_key() {
        let scheduled_for = |target: &Target| {
            let mut settings = target.settings().into_iter();
            settings.find_map(|(name, value)| (name == "scheduled for").then_some(value))
        };
        let host = Target::Cpu(CpuTarget::host());
        let own = scheduled_for(&host);
        assert!(
            own.as_deref().is_some_and(|own| own.contains(" 0x")),
            "{own:?}"
        );
        // Code that others run, too, is the same on all machines that make it; it is found even if it is for all that
        // this one has.
        let level = CpuFeatures::x86_64_level(2).expect("a level");
        let is_level = CpuTarget {
            features: level.clone(),
            ..CpuTarget::host()
        };
        for target in [host, Target::Cpu(is_level)] {
            let lesser: Vec<Target> = target.and_lesser().skip(1).collect();
            let is_level =
                |target: &&Target| matches!(target, Target::Cpu(cpu) if cpu.features == level);
            assert_eq!(lesser.iter().filter(is_level).count(), 1, "{target:?}");
            for lesser in lesser {
                assert_eq!(scheduled_for(&lesser).as_deref(), Some("any"));
                assert!(lesser.and_lesser().skip(1).all(|least| least != lesser));
            }
        }
    }
}
