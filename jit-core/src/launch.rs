//! Launch configuration and what can be wrong with a launch.

use crate::ir::AddressSpace;

/// Up to three dimensions, x first; what is not given is 1.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Dim3 {
    /// The fastest dimension.
    pub x: u32,
    /// The middle dimension.
    pub y: u32,
    /// The slowest dimension.
    pub z: u32,
}

impl Dim3 {
    /// Dimensions as an array, x first.
    pub fn to_array(self) -> [u32; 3] {
        [self.x, self.y, self.z]
    }

    /// The product of the dimensions.
    pub fn count(self) -> u64 {
        u64::from(self.x) * u64::from(self.y) * u64::from(self.z)
    }
}

impl From<u32> for Dim3 {
    fn from(x: u32) -> Self {
        Dim3 { x, y: 1, z: 1 }
    }
}

impl From<(u32, u32)> for Dim3 {
    fn from((x, y): (u32, u32)) -> Self {
        Dim3 { x, y, z: 1 }
    }
}

impl From<(u32, u32, u32)> for Dim3 {
    fn from((x, y, z): (u32, u32, u32)) -> Self {
        Dim3 { x, y, z }
    }
}

impl From<[u32; 3]> for Dim3 {
    fn from([x, y, z]: [u32; 3]) -> Self {
        Dim3 { x, y, z }
    }
}

impl std::fmt::Display for Dim3 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}x{}", self.x, self.y, self.z)
    }
}

/// The number of blocks of `block` threads that cover `n` elements, at least 1, at most what a
/// grid can have in x (2^31 - 1).
pub fn grid_for(n: usize, block: u32) -> u32 {
    let blocks = n.div_ceil(block.max(1) as usize).max(1);
    u32::try_from(blocks)
        .unwrap_or(u32::MAX)
        .min(i32::MAX as u32)
}

/// The shape of a launch.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct LaunchConfig {
    /// Blocks of the grid.
    pub grid: Dim3,
    /// Threads of a block.
    pub block: Dim3,
    /// Dynamic shared memory of a block, in bytes.
    pub shared_bytes: u32,
}

impl<G: Into<Dim3>, B: Into<Dim3>> From<(G, B)> for LaunchConfig {
    /// Grid and block, without dynamic shared memory.
    fn from((grid, block): (G, B)) -> Self {
        Self::new(grid, block)
    }
}

impl LaunchConfig {
    /// Without dynamic shared memory.
    pub fn new(grid: impl Into<Dim3>, block: impl Into<Dim3>) -> Self {
        Self {
            grid: grid.into(),
            block: block.into(),
            shared_bytes: 0,
        }
    }

    /// With this much dynamic shared memory a block, in bytes.
    #[must_use]
    pub fn shared_bytes(self, bytes: u32) -> Self {
        Self {
            shared_bytes: bytes,
            ..self
        }
    }
}

/// What a device can be asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LaunchLimits {
    /// Threads of a block.
    pub block_threads: u32,
    /// Threads of a block in each dimension.
    pub block: [u32; 3],
    /// Blocks of a grid in each dimension.
    pub grid: [u32; 3],
    /// Static and dynamic shared memory of a block together, in bytes.
    pub shared_bytes: u32,
    /// Bytes of the parameter block.
    pub param_bytes: u32,
}

/// A launch that cannot be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// No blocks or no threads.
    #[error(
        "kernel `{kernel}`: the {what} is {given}, and a launch needs at least one block and one \
         thread; skip the launch when there is nothing to do"
    )]
    Zero {
        /// The kernel.
        kernel: String,
        /// `grid` or `block`.
        what: &'static str,
        /// What was asked for.
        given: Dim3,
    },
    /// More than the device can do.
    #[error("kernel `{kernel}`: the {what} is {given}, the device's limit is {limit}; {fix}")]
    OverLimit {
        /// The kernel.
        kernel: String,
        /// Which quantity.
        what: &'static str,
        /// What was asked for.
        given: u64,
        /// What the device can do.
        limit: u64,
        /// What to do.
        fix: &'static str,
    },
    /// More threads than the kernel promised.
    #[error(
        "kernel `{kernel}` promises at most {promised} threads a block (`launch_bounds`), and this \
         launch has {given}; use a smaller block or raise the bound"
    )]
    OverLaunchBounds {
        /// The kernel.
        kernel: String,
        /// What it promises.
        promised: u32,
        /// What was asked for.
        given: u64,
    },
    /// A buffer lies on another device.
    #[error(
        "kernel `{kernel}`: argument {} (`{argument}`) lies on {owner}, and the launch is on \
         {device}; copy it with `to_vec` and `upload`",
        position + 1
    )]
    ForeignBuffer {
        /// The kernel.
        kernel: String,
        /// Position of the argument, from 0.
        position: usize,
        /// The parameter's name.
        argument: String,
        /// Where the buffer lies.
        owner: String,
        /// Where the launch is.
        device: String,
    },
    /// A host value that no hook converts.
    #[error(
        "kernel `{kernel}`: argument {} is a host value that no hook converts; add a hook with \
         `convert_argument` for its type",
        position + 1
    )]
    NoConversion {
        /// The kernel.
        kernel: String,
        /// Position of the argument, from 0.
        position: usize,
    },
    /// A prepared kernel is launched with arguments of other types than it was prepared for.
    #[error(
        "kernel `{kernel}` was prepared for other argument types ({prepared}) than it is launched \
         with ({given}); call `compile` again for these"
    )]
    OtherSignature {
        /// The kernel.
        kernel: String,
        /// What it was prepared for.
        prepared: String,
        /// What it is given.
        given: String,
    },
}

/// A thread ended because it did something it must not.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "kernel `{kernel}`, {location}: index {index} is out of bounds for length {length}{} \
     (block {block}, thread {thread}{inside}); the thread ended there, other threads went on; \
     check the index or guard it with `if`",
    in_space(*space)
)]
pub struct KernelFault {
    /// The kernel.
    pub kernel: String,
    /// The line of Rust, as `file:line:column`.
    pub location: String,
    /// The index, as the kernel computed it.
    pub index: i128,
    /// The number of elements.
    pub length: u64,
    /// Which memory the elements are in; generic where the kernel's code does not say.
    pub space: AddressSpace,
    /// Index of the block in the grid.
    pub block: Dim3,
    /// Index of the thread in its block.
    pub thread: Dim3,
    /// `, in device function ...`, or empty.
    pub inside: String,
}

fn in_space(space: AddressSpace) -> String {
    match space {
        AddressSpace::Generic => String::new(),
        space => format!(" in {} memory", space.name()),
    }
}

/// Checks a launch shape against a device's limits and a kernel's promises.
pub(crate) fn check_config(
    config: &LaunchConfig,
    limits: &LaunchLimits,
    kernel: &crate::job::CompiledKernel,
) -> Result<(), LaunchError> {
    let name = || kernel.name.clone();
    if config.grid.count() == 0 {
        return Err(LaunchError::Zero {
            kernel: name(),
            what: "grid",
            given: config.grid,
        });
    }
    if config.block.count() == 0 {
        return Err(LaunchError::Zero {
            kernel: name(),
            what: "block",
            given: config.block,
        });
    }
    let over = |what, given: u64, limit: u32, fix| {
        if given <= u64::from(limit) {
            return Ok(());
        }
        Err(LaunchError::OverLimit {
            kernel: name(),
            what,
            given,
            limit: limit.into(),
            fix,
        })
    };
    let smaller_block = "use a smaller block and a larger grid";
    over(
        "number of threads of a block",
        config.block.count(),
        limits.block_threads,
        smaller_block,
    )?;
    let names = ["block's x", "block's y", "block's z"];
    for ((what, given), limit) in names
        .into_iter()
        .zip(config.block.to_array())
        .zip(limits.block)
    {
        over(what, given.into(), limit, smaller_block)?;
    }
    let names = ["grid's x", "grid's y", "grid's z"];
    for ((what, given), limit) in names
        .into_iter()
        .zip(config.grid.to_array())
        .zip(limits.grid)
    {
        over(
            what,
            given.into(),
            limit,
            "use a larger block or a loop over the grid in the kernel",
        )?;
    }
    let shared = kernel.shared_bytes + u64::from(config.shared_bytes);
    let fix = "use smaller tiles, or fewer elements a block";
    over(
        "shared memory of a block in bytes",
        shared,
        limits.shared_bytes,
        fix,
    )?;
    match kernel.launch_bounds {
        Some(bounds) if config.block.count() > u64::from(bounds.max_threads) => {
            Err(LaunchError::OverLaunchBounds {
                kernel: name(),
                promised: bounds.max_threads,
                given: config.block.count(),
            })
        }
        _ => Ok(()),
    }
}
