//! Launch configuration and what can be wrong with a launch.

use std::time::Duration;

use crate::code::KernelInfo;
use crate::fault::{FaultRecord, FaultSite};
use crate::stop::{Stop, StopReason};
use crate::{AddressSpace, debug_as_text, error_text};

/// Up to three dimensions, x first; what is not given is 1.
///
/// ```
/// use kiln_ir::launch::Dim3;
///
/// let block = Dim3::from((8, 4));
/// assert_eq!(block.to_array(), [8, 4, 1]);
/// assert_eq!((block.count(), Dim3::from(32).x), (32, 32));
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
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
    pub fn count(self) -> u128 {
        u128::from(self.x) * u128::from(self.y) * u128::from(self.z)
    }
}

/// A number of blocks or of threads in one dimension, as programs have them: lengths are `usize`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a number of blocks or threads",
    label = "expected a number, or two or three",
    note = "a grid and a block are each a number, `(x, y)` or `(x, y, z)`, of `u32`, `usize`, `u64`, `i32` or `i64`"
)]
pub trait Extent: Copy {
    /// The number; what no `u32` can be, negative numbers too, is `u32::MAX`, which is more than any device
    /// can do, so that the launch is refused.
    fn extent(self) -> u32;
}

macro_rules! extents {
    ($($number:ty)*) => {$(
        #[diagnostic::do_not_recommend]
        impl Extent for $number {
            fn extent(self) -> u32 {
                u32::try_from(self).unwrap_or(u32::MAX)
            }
        }

        #[diagnostic::do_not_recommend]
        impl From<$number> for Dim3 {
            #[inline]
            fn from(x: $number) -> Self {
                (x, 1u32, 1u32).into()
            }
        }
    )*};
}
extents! { u32 usize u64 i32 i64 }

impl<X: Extent, Y: Extent> From<(X, Y)> for Dim3 {
    fn from((x, y): (X, Y)) -> Self {
        (x, y, 1u32).into()
    }
}

impl<X: Extent, Y: Extent, Z: Extent> From<(X, Y, Z)> for Dim3 {
    fn from((x, y, z): (X, Y, Z)) -> Self {
        Dim3 {
            x: x.extent(),
            y: y.extent(),
            z: z.extent(),
        }
    }
}

impl<N: Extent> From<[N; 3]> for Dim3 {
    fn from([x, y, z]: [N; 3]) -> Self {
        (x, y, z).into()
    }
}

impl std::fmt::Display for Dim3 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}x{}", self.x, self.y, self.z)
    }
}

/// The number of blocks of `block` threads that cover `n` elements, at least 1.
///
/// A grid has at most 2^31 - 1 blocks in x. If more are needed, this gives a number that is above, so
/// that the launch is refused rather than done in part: have each thread of a smaller grid take
/// several elements.
///
/// ```
/// use kiln_ir::launch::grid_for;
///
/// assert_eq!(grid_for(1000, 256), 4); // 4 * 256 threads, of which 24 have nothing to do
/// ```
pub fn grid_for(n: usize, block: u32) -> u32 {
    let blocks = n.div_ceil(block.max(1) as usize).max(1);
    u32::try_from(blocks).unwrap_or(u32::MAX)
}

/// The shape of a launch.
///
/// ```
/// use kiln_ir::launch::LaunchConfig;
///
/// let config = LaunchConfig::new(100, (16, 16)).shared_bytes(4096);
/// assert_eq!((config.grid.count(), config.block.count()), (100, 256));
/// assert_eq!(LaunchConfig::from((100, 256)), LaunchConfig::new(100, 256));
/// assert!(LaunchConfig::new(4, 32).cooperative().cooperative);
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct LaunchConfig {
    /// Blocks of the grid.
    pub grid: Dim3,
    /// Threads of a block.
    pub block: Dim3,
    /// Dynamic shared memory of a block, in bytes.
    pub shared_bytes: u32,
    /// Whether all blocks have to be there at the same time.
    pub cooperative: bool,
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
            cooperative: false,
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

    /// With all blocks there at the same time, so that they can wait for each other (CUDA guide, "Cooperative Groups").
    /// A launch of more blocks than the device holds at once is refused. A CPU holds one.
    #[must_use]
    pub fn cooperative(self) -> Self {
        Self {
            cooperative: true,
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

impl LaunchLimits {
    /// A CPU device's, which are those of a GPU.
    pub const CPU: LaunchLimits = LaunchLimits {
        block_threads: 1024,
        block: [1024, 1024, 64],
        grid: [i32::MAX as u32, 65_535, 65_535],
        shared_bytes: 227 << 10,
        param_bytes: crate::target::MAX_PARAM_BYTES,
    };
}

/// A launch that cannot be.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// No blocks or no threads.
    #[error("{}", error_text!(
        "kernel `{kernel}`: the {what} is {given}, and a launch needs at least one block and one \
         thread; skip the launch when there is nothing to do"
    ))]
    Zero {
        /// The kernel.
        kernel: String,
        /// `grid` or `block`.
        what: &'static str,
        /// What was asked for.
        given: Dim3,
    },
    /// More than the device can do.
    #[error("{}", error_text!("kernel `{kernel}`: the {what} is {given}, the device's limit is {limit}; {fix}"))]
    OverLimit {
        /// The kernel.
        kernel: String,
        /// Which quantity.
        what: &'static str,
        /// What was asked for.
        given: u128,
        /// What the device can do.
        limit: u64,
        /// What to do.
        fix: &'static str,
    },
    /// More threads than the kernel promised.
    #[error("{}", error_text!(
        "kernel `{kernel}` promises at most {promised} threads a block (`launch_bounds`), and this \
         launch has {given}; use a smaller block or raise the bound"
    ))]
    OverLaunchBounds {
        /// The kernel.
        kernel: String,
        /// The threads in a block that the kernel promises at most.
        promised: u32,
        /// What was asked for.
        given: u128,
    },
    /// More blocks than a device holds at once, in a launch that needs all of them.
    #[error("{}", error_text!(
        "kernel `{kernel}`: a cooperative launch has {blocks} blocks, which have to be there at the same time, and \
         {device} holds {fitting} of {threads} threads and {shared_bytes} bytes of dynamic shared memory ({each} on \
         each of {multiprocessors} multiprocessors); launch at most {fitting}, and loop over the grid in the kernel"
    ))]
    NotAllAtOnce {
        /// The kernel.
        kernel: String,
        /// The device.
        device: String,
        /// Blocks of the launch.
        blocks: u128,
        /// Blocks that the device holds at once.
        fitting: u64,
        /// Threads of a block.
        threads: u128,
        /// Dynamic shared memory of a block.
        shared_bytes: u32,
        /// Blocks that a multiprocessor holds at once.
        each: u32,
        /// Multiprocessors.
        multiprocessors: u32,
    },
    /// A launch whose blocks need not be there at the same time, of a kernel whose blocks wait for each other.
    #[error("{}", error_text!(
        "kernel `{kernel}`: its blocks wait for all others of the grid (`this_grid().sync()`), which have to be there \
         at the same time; launch it cooperatively, `LaunchConfig::new(grid, block).cooperative()`"
    ))]
    NotCooperative {
        /// The kernel.
        kernel: String,
    },
    /// A buffer lies on another device.
    #[error("{}", error_text!(
        "kernel `{kernel}`: argument {} (`{argument}`) lies on {owner}, and the launch is on \
         {device}; copy it with `to_vec` and `upload`",
        position + 1
    ))]
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
    /// A hook asks for the kernel that it is compiling.
    #[error("{}", error_text!(
        "kernel `{kernel}` is launched or inspected by a hook while it is compiled, and would wait for itself; \
         launch another kernel there, or this one with another `Jit`"
    ))]
    WaitsForItself {
        /// The kernel.
        kernel: String,
    },
    /// A host value that no hook converts.
    #[error("{}", error_text!(
        "kernel `{kernel}`: argument {} is a host value that no hook converts; add a hook with \
         `convert_argument` for its type",
        position + 1
    ))]
    NoConversion {
        /// The kernel.
        kernel: String,
        /// Position of the argument, from 0.
        position: usize,
    },
    /// A number that the parameter's type has no room for in kernels.
    #[error("{}", error_text!(
        "kernel `{kernel}`: argument {} (`{argument}`) is {value}, and `{ty}` has 32 bits in kernels, {} to {}; \
         declare the parameter as `{wider}`, or launch over parts",
        position + 1,
        range.start(),
        range.end()
    ))]
    OutOfRange {
        /// The kernel.
        kernel: String,
        /// Position of the argument, from 0.
        position: usize,
        /// The parameter's name.
        argument: String,
        /// The number.
        value: i128,
        /// The type, `usize` or `isize`.
        ty: &'static str,
        /// The numbers that the type has in kernels.
        range: std::ops::RangeInclusive<i128>,
        /// The type that has room for it.
        wider: &'static str,
    },
    /// A prepared kernel is launched with arguments of other types than it was prepared for.
    #[error("{}", error_text!(
        "kernel `{kernel}` was prepared for other argument types ({prepared}) than it is launched \
         with ({given}); call `compile` again for these"
    ))]
    OtherSignature {
        /// The kernel.
        kernel: String,
        /// The arguments that the launch was prepared for.
        prepared: String,
        /// The arguments that the launch is given.
        given: String,
    },
    /// Other code's function is launched with arguments that are not of the sizes of its parameters.
    #[error("{}", error_text!(
        "function `{function}` has parameters of [{parameters}] bytes, and was given arguments of [{arguments}]; a buffer is \
         an address of 8 bytes, and its length an argument of its own"
    ))]
    OtherParameters {
        /// The function.
        function: String,
        /// The sizes of its parameters.
        parameters: String,
        /// The sizes of the arguments, `?` for what has none.
        arguments: String,
    },
    /// A prepared kernel is launched with an argument of which less is known than of that it was prepared for.
    #[error("{}", error_text!(
        "argument {argument} of the launch of `{kernel}` is not {fact}, and the kernel was prepared for one that is; \
         call `compile` again for these arguments, or launch the kernel itself, which finds the code for each"
    ))]
    OtherFacts {
        /// The kernel.
        kernel: String,
        /// Which argument, counted from 1.
        argument: usize,
        /// What the code was made for.
        fact: &'static str,
    },
}

debug_as_text!(LaunchError);

/// A launch that was ended before its time. Its buffers hold what it wrote until then.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchStopped {
    /// Somebody called `Jit::cancel`.
    #[error("{}", error_text!(
        "kernel `{kernel}` was cancelled before it ended; its buffers hold what it wrote until then"
    ))]
    Cancelled {
        /// The kernel.
        kernel: String,
    },
    /// A launch that ran longer than `JitOptions::time_limit`.
    #[error("{}", error_text!(
        "kernel `{kernel}` ran longer than its time limit of {limit:?} and was ended; its buffers \
         hold what it wrote until then; look for a loop that does not end, or raise \
         `JitOptions::time_limit`"
    ))]
    TimeLimit {
        /// The kernel.
        kernel: String,
        /// How long it may run.
        limit: Duration,
    },
}

debug_as_text!(LaunchStopped);

/// Blocks that wait for all others of the grid, of which some have ended.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", error_text!(
    "kernel `{kernel}`: {waiting} of {blocks} blocks wait for all of the grid (`this_grid().sync()`), and the others have \
     ended; let every block come to it as often as the others, also one that has nothing to do"
))]
pub struct DesertedGrid {
    /// The kernel.
    pub kernel: String,
    /// Blocks that wait.
    pub waiting: u64,
    /// Blocks of the launch.
    pub blocks: u64,
}

debug_as_text!(DesertedGrid);

impl LaunchStopped {
    /// Why a launch was ended, if it was and the reason is not told elsewhere.
    pub fn of(stop: &Stop, kernel: &str, limit: Option<Duration>) -> Option<LaunchStopped> {
        let reason = stop.reason()?;
        let kernel = kernel.to_owned();
        match reason {
            StopReason::Cancelled => Some(LaunchStopped::Cancelled { kernel }),
            StopReason::TimeLimit => Some(LaunchStopped::TimeLimit {
                kernel,
                limit: limit.unwrap_or_default(),
            }),
            StopReason::Failed => None,
        }
    }
}

/// A thread ended because it did something it must not.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", error_text!(
    "{}: {} (block {block}, thread {thread}{inside}); the thread ended there, other threads went on; {}",
    self.who(),
    self.what(),
    self.fix()
))]
pub struct KernelFault {
    /// The kernel; empty if it is not known any more, as thousands of others were unloaded before the launch was waited
    /// for. Then nothing is known of the line either.
    pub kernel: String,
    /// The line of Rust, as `file:line:column`.
    pub location: String,
    /// The condition of an `assume` that did not hold, as it is written, or empty where it was not kept; `None` where
    /// it was something else.
    pub assumed: Option<String>,
    /// What a `panic!` or an `assert!` that did not hold says, with the values that were compared; `None` where
    /// it was something else.
    pub panic: Option<String>,
    /// The index that was out of bounds, as the kernel computed it; 0 where it was something else.
    pub index: i128,
    /// The number of elements; 0 where it was no index.
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

debug_as_text!(KernelFault);

impl KernelFault {
    /// The fault of a kernel of which nothing is known but the record.
    pub fn of_unknown(record: &FaultRecord) -> KernelFault {
        KernelFault {
            kernel: String::new(),
            location: String::new(),
            assumed: None,
            panic: None,
            index: record.index.into(),
            length: record.length,
            space: AddressSpace::Generic,
            block: record.block.into(),
            thread: record.thread.into(),
            inside: String::new(),
        }
    }

    fn is_of_unknown(&self) -> bool {
        self.kernel.is_empty()
    }

    fn who(&self) -> String {
        match self.is_of_unknown() {
            true => "a kernel that was unloaded since".to_owned(),
            false => format!("kernel `{}`, {}", self.kernel, self.location),
        }
    }

    fn what(&self) -> String {
        let (index, length) = (self.index, self.length);
        if let Some(message) = &self.panic {
            return format!("panicked: {message}");
        }
        // What the numbers of the record are, the kernel's code would say.
        if self.is_of_unknown() {
            return match (index, length) {
                (0, 0) => "it panicked, an assumption does not hold, or an element of an empty slice was asked for"
                    .to_owned(),
                _ => format!(
                    "index {index} is out of bounds for length {length}, or these are the values of an assertion"
                ),
            };
        }
        match self.assumed.as_deref() {
            None => format!(
                "index {index} is out of bounds for length {length}{}",
                in_space(self.space)
            ),
            Some("") => "an assumption does not hold".to_owned(),
            Some(condition) => format!("the assumption `{condition}` does not hold"),
        }
    }

    fn fix(&self) -> &'static str {
        if self.is_of_unknown() {
            return "wait for launches before thousands of other kernels are unloaded, and the error names the line";
        }
        match (&self.panic, &self.assumed) {
            (Some(_), _) => {
                "launch with arguments for which the kernel does not get there, or correct the kernel"
            }
            (None, None) => "check the index or guard it with `if`",
            (None, Some(_)) => "launch with arguments for which it holds, or write `if` for it",
        }
    }
}

impl KernelInfo {
    /// The error for a fault record of this kernel.
    pub fn fault(&self, record: &FaultRecord) -> KernelFault {
        let site = self.fault_sites.get(record.site as usize);
        let signed = site.is_some_and(|s| s.signed_index);
        let panic = site.and_then(|site| panic_message(site, record));
        let (index, length) = match (&panic, signed) {
            (Some(_), _) => (0, 0),
            (None, true) => (i128::from(record.index as i64), record.length),
            (None, false) => (i128::from(record.index), record.length),
        };
        KernelFault {
            kernel: self.name.clone(),
            location: site.map_or_else(|| "unknown".to_owned(), |s| s.location.clone()),
            index,
            length,
            panic,
            space: site.map_or(AddressSpace::Generic, |s| s.space),
            assumed: site.and_then(|s| s.assumed.clone()),
            block: record.block.into(),
            thread: record.thread.into(),
            inside: match site {
                Some(site) if site.function != self.name => {
                    format!(", in device function `{}`", site.function)
                }
                _ => String::new(),
            },
        }
    }
}

/// What an assertion says, with the values that it tells, which the record has in place of index and length.
fn panic_message(site: &FaultSite, record: &FaultRecord) -> Option<String> {
    let message = site.message.as_deref()?;
    Some(match site.values {
        None => message.to_owned(),
        Some(scalar) => {
            let [left, right] = [record.index, record.length].map(|bits| scalar.shown(bits));
            format!("{message} (left: {left}, right: {right})")
        }
    })
}

fn in_space(space: AddressSpace) -> String {
    match space {
        AddressSpace::Generic => String::new(),
        space => format!(" in {} memory", space.name()),
    }
}

/// Checks a shape of block against a device's limits.
pub fn check_block(block: Dim3, limits: &LaunchLimits, kernel: &str) -> Result<(), LaunchError> {
    if block.count() == 0 {
        return Err(LaunchError::Zero {
            kernel: kernel.to_owned(),
            what: "block",
            given: block,
        });
    }
    let fix = "use a smaller block and a larger grid";
    let threads = ("number of threads of a block", block.count());
    within(threads, limits.block_threads, kernel, fix)?;
    let names = ["block's x", "block's y", "block's z"];
    let given = block.to_array().map(u128::from);
    for (given, limit) in names.into_iter().zip(given).zip(limits.block) {
        within(given, limit, kernel, fix)?;
    }
    Ok(())
}

/// Checks a named quantity against its limit.
fn within(
    (what, given): (&'static str, u128),
    limit: u32,
    kernel: &str,
    fix: &'static str,
) -> Result<(), LaunchError> {
    if given <= u128::from(limit) {
        return Ok(());
    }
    Err(LaunchError::OverLimit {
        kernel: kernel.to_owned(),
        what,
        given,
        limit: limit.into(),
        fix,
    })
}

/// Checks a launch shape against a device's limits and a kernel's promises.
#[inline]
pub fn check_config(
    config: &LaunchConfig,
    limits: &LaunchLimits,
    kernel: &KernelInfo,
) -> Result<(), LaunchError> {
    match is_possible(config, limits, kernel) {
        true => Ok(()),
        false => check_each(config, limits, kernel),
    }
}

/// The launch shapes of one dimension, which most are, that a kernel has on a device: few numbers are compared with each.
#[doc(hidden)]
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct OneDimension {
    blocks: u32,
    threads: u32,
    shared_bytes: u32,
}

impl OneDimension {
    /// What a kernel has on a device with these limits.
    pub fn of(limits: &LaunchLimits, kernel: &KernelInfo) -> OneDimension {
        let promised = kernel.launch_bounds.map_or(u32::MAX, |b| b.max_threads);
        let left = u64::from(limits.shared_bytes).checked_sub(kernel.shared_bytes);
        OneDimension {
            // Where blocks wait for each other, whether the launch is cooperative is asked besides.
            blocks: left.map_or(0, |_| match kernel.waits_for_grid {
                true => 0,
                false => limits.grid[0],
            }),
            threads: limits.block_threads.min(promised).min(limits.block[0]),
            // No more than the limit.
            shared_bytes: left.unwrap_or(0) as u32,
        }
    }

    /// Whether this is one of them. 0 is no number of blocks or threads, and less 1 it is more than any limit.
    #[inline]
    pub fn has(&self, config: &LaunchConfig) -> bool {
        let (grid, block) = (config.grid, config.block);
        (grid.y ^ 1 | grid.z ^ 1 | block.y ^ 1 | block.z ^ 1 == 0)
            & (grid.x.wrapping_sub(1) < self.blocks)
            & (block.x.wrapping_sub(1) < self.threads)
            & (config.shared_bytes <= self.shared_bytes)
    }
}

/// Whether a launch shape is one that [`check_config`] has nothing against.
#[doc(hidden)]
pub fn is_possible(config: &LaunchConfig, limits: &LaunchLimits, kernel: &KernelInfo) -> bool {
    let promised = kernel.launch_bounds.map_or(u32::MAX, |b| b.max_threads);
    let threads = limits.block_threads.min(promised);
    let shared = u64::from(config.shared_bytes).saturating_add(kernel.shared_bytes);
    if shared > u64::from(limits.shared_bytes) || kernel.waits_for_grid && !config.cooperative {
        return false;
    }
    is_within(config, limits, threads)
}

/// Whether a launch has as many blocks and threads as there can be.
fn is_within(config: &LaunchConfig, limits: &LaunchLimits, threads: u32) -> bool {
    let within = |given: [u32; 3], most: [u32; 3]| {
        (given[0].wrapping_sub(1) < most[0])
            & (given[1].wrapping_sub(1) < most[1])
            & (given[2].wrapping_sub(1) < most[2])
    };
    let [x, y, z] = config.block.to_array().map(u64::from);
    // Numbers of threads that are within these bounds have a product of 64 bits.
    let fits = |most: u32| most <= 1 << 21;
    let [block_x, block_y, block_z] = limits.block;
    within(config.grid.to_array(), limits.grid)
        && within(config.block.to_array(), limits.block)
        && fits(block_x | block_y | block_z)
        && x * y * z <= u64::from(threads)
}

/// [`check_config`], one after the other.
#[cold]
fn check_each(
    config: &LaunchConfig,
    limits: &LaunchLimits,
    kernel: &KernelInfo,
) -> Result<(), LaunchError> {
    if config.grid.count() == 0 {
        return Err(LaunchError::Zero {
            kernel: kernel.name.clone(),
            what: "grid",
            given: config.grid,
        });
    }
    check_block(config.block, limits, &kernel.name)?;
    let names = ["grid's x", "grid's y", "grid's z"];
    let given = config.grid.to_array().map(u128::from);
    for (given, limit) in names.into_iter().zip(given).zip(limits.grid) {
        let fix = "use a larger block or a loop over the grid in the kernel";
        within(given, limit, &kernel.name, fix)?;
    }
    let shared = u128::from(kernel.shared_bytes) + u128::from(config.shared_bytes);
    let fix = "use smaller tiles, or fewer elements a block";
    let shared = ("shared memory of a block in bytes", shared);
    within(shared, limits.shared_bytes, &kernel.name, fix)?;
    match kernel.launch_bounds {
        Some(bounds) if config.block.count() > u128::from(bounds.max_threads) => {
            Err(LaunchError::OverLaunchBounds {
                kernel: kernel.name.clone(),
                promised: bounds.max_threads,
                given: config.block.count(),
            })
        }
        _ if kernel.waits_for_grid && !config.cooperative => Err(LaunchError::NotCooperative {
            kernel: kernel.name.clone(),
        }),
        _ => Ok(()),
    }
}
