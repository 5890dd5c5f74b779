//! What a launch of a benchmark is.

use kiln::core::args::Arg;
use kiln::core::front::AsKernel;
use kiln::prelude::*;

/// A launch, as Kiln and as the twin have it.
pub struct Launch<'a> {
    /// Kiln's kernel.
    pub kernel: &'a dyn AsKernel,
    /// The name of the kernel in the twin.
    pub twin: &'static str,
    /// Grid and block.
    pub config: LaunchConfig,
    /// The arguments of both; slices are pointers for the twin.
    pub args: &'a [Arg<'a>],
    /// The arguments that the twin has besides: lengths.
    pub lengths: &'a [usize],
}

/// Does something with launches.
pub trait Launcher {
    /// Does it with one.
    ///
    /// # Errors
    /// Those of the launch.
    fn launch(&mut self, launch: &Launch<'_>) -> kiln::Result<()>;
}

/// Launches Kiln's kernels.
pub struct OnJit<'a>(pub &'a Jit);

impl Launcher for OnJit<'_> {
    fn launch(&mut self, launch: &Launch<'_>) -> kiln::Result<()> {
        self.0
            .launch_with(launch.kernel, launch.config, launch.args)
    }
}

impl<L: Launcher + ?Sized> Launcher for &mut L {
    fn launch(&mut self, launch: &Launch<'_>) -> kiln::Result<()> {
        (**self).launch(launch)
    }
}
