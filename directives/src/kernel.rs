//! Programs as kernels.

use kiln_jit_core::build::{DeviceFn, Kernel};
use kiln_jit_core::error::Error;
use kiln_jit_core::ir::Module;
use kiln_jit_core::launch::Dim3;

use crate::affine::Known;
use crate::apply::{Applied, Purpose, apply, apply_as};
use crate::combine::is_in;
use crate::constant::{Constant, read_by_value};
use crate::edge::Edge;
use crate::error::DirectiveError;
use crate::once::once;
use crate::program::{Program, is_region};
use crate::schedule::{Schedule, Slices};
use crate::section::Section;
use crate::stage::Staged;
use crate::transform::Transformed;

impl Program {
    /// The program of a region: a `#[device_fn]`, or one of the builder, without a result, with the marks of its
    /// directives. What it calls is put in place of the calls, and may have directives, too.
    ///
    /// # Errors
    /// A function that gives something or has parameters of types; a directive where it has no meaning.
    pub fn of(region: &DeviceFn) -> Result<Program, Error> {
        // What it calls is declared there.
        let module = region.module();
        let mut functions = module.functions.values();
        let own = functions.find(|function| !function.is_declaration);
        if let Some(function) = own.filter(|own| !is_region(own)) {
            let function = function.name.clone();
            return Err(DirectiveError::NoRegion { function }.into());
        }
        Ok(Program::of_module(region.linked()?)?)
    }

    /// The sequential program as a kernel, to be launched with one thread.
    ///
    /// # Errors
    /// A rule of the IR that the module breaks.
    pub fn sequential(&self) -> Result<Kernel, Error> {
        kernel_of(&self.sequential_module())
    }

    /// Refuses a schedule under which the kernel could give something else than the sequential program, for a launch
    /// with such arguments: threads that use one element in an order that nothing keeps, variables that one iteration
    /// hands on to another.
    ///
    /// ```
    /// use kiln::directives::{Known, Program, marks};
    /// use kiln::prelude::*;
    ///
    /// #[device_fn]
    /// fn sums(x: &mut [f32], n: usize) {
    ///     marks::partition(0, 1); // over_thread
    ///     for i in 4..n {
    ///         x[i] += x[i - 4];
    ///     }
    /// }
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let program = Program::of(&DeviceFn::of::<sums>()?)?;
    /// let known = [Known::Length(100), Known::Number(100)];
    /// // Thread `t` has iterations `t`, `t + 4` and so on, and so all that depend on each other.
    /// program.verify(&program.schedule(&[1], &[4]), &known)?;
    /// let refused = program.verify(&program.schedule(&[1], &[32]), &known);
    /// assert!(refused.unwrap_err().to_string().contains("that are 4 apart"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What is wrong, or what cannot be proved to be right; as [`Program::apply`].
    pub fn verify(&self, schedule: &Schedule, known: &[Known]) -> Result<(), DirectiveError> {
        apply(self, schedule, known)?;
        let transformed = Transformed::of(self, schedule, known)?;
        crate::private::check(&transformed.program, &transformed.schedule)?;
        // What is staged brings barriers.
        let edge = Edge::of(&transformed.program, &transformed.schedule);
        let reduced = &transformed.reduced;
        let staged = Staged::of(&transformed, &edge, known)?;
        let checked =
            crate::dependence::check(&staged.program, &transformed.schedule, known, reduced);
        // The schedule in the text is the one that was given.
        checked.map_err(|error| error.under(schedule))
    }

    /// What a schedule stages in shared memory in a launch with such arguments: which elements of each slice the threads
    /// of a block read in one turn of the loop that stages it. A slice that is read in ways that differ by more than a
    /// number has several sections.
    ///
    /// ```
    /// use kiln::directives::{Known, Program, marks};
    /// use kiln::prelude::*;
    ///
    /// #[device_fn]
    /// fn every_third(x: &[u32], y: &mut [u32]) {
    ///     marks::partition(1, 1);
    ///     marks::shared(x.len() as u32);
    ///     for i in 0..50usize {
    ///         y[i] = x[3 * i] + x[3 * i + 3];
    ///     }
    /// }
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let program = Program::of(&DeviceFn::of::<every_third>()?)?;
    /// let sections = program.sections(&program.schedule(&[4], &[8]), &[Known::Length(153)])?;
    /// assert_eq!(sections[0].to_string(), "`x` in loop 0: 9 elements, strides 3");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What cannot be staged: a slice that the region writes, indices that are not sums of the loops' counters times
    /// numbers, more elements than shared memory has room for.
    pub fn sections(
        &self,
        schedule: &Schedule,
        known: &[Known],
    ) -> Result<Vec<Section>, DirectiveError> {
        let transformed = Transformed::of(self, schedule, known)?;
        let (program, numbers) = (&transformed.program, &transformed.numbers);
        let edge = Edge::of(program, &transformed.schedule);
        let scheduled = (&transformed.schedule, &edge);
        let sections = crate::section::sections(program, scheduled, known)?;
        let numbered = sections
            .into_iter()
            .map(|section| section.in_loop_of(numbers));
        Ok(numbered.collect())
    }

    /// Of which of the loops a thread has one group of iterations at most in a launch with such arguments; with tiles, of
    /// both loops that one becomes.
    pub(crate) fn turns_once(
        &self,
        schedule: &Schedule,
        known: &[Known],
    ) -> Result<Vec<bool>, DirectiveError> {
        let transformed = Transformed::of(self, schedule, known)?;
        let found = once(&transformed.program, &transformed.schedule, known);
        let loops = transformed.program.loops.iter();
        Ok(loops.map(|(inst, _)| found.contains(inst)).collect())
    }

    /// The kernel in which each thread of a grid executes what a schedule gives it. Whether threads then depend on
    /// each other is not asked.
    ///
    /// # Errors
    /// A schedule of another program; a grid that no device has; a loop that is distributed over a dimension that the
    /// grid does not have; a barrier that some threads would not come to; a slice that is staged whose section is not
    /// known without the arguments, for which there is [`Program::apply_for`].
    pub fn apply(&self, schedule: &Schedule) -> Result<Scheduled, Error> {
        self.apply_for(schedule, &[])
    }

    /// As [`Program::apply`], for launches with such arguments: those of a schedule that stages slices in shared memory,
    /// whose sections depend on numbers. The kernel of such a schedule ends a launch with others by an error.
    ///
    /// ```
    /// use kiln::directives::{Known, Program, marks};
    /// use kiln::prelude::*;
    ///
    /// #[device_fn]
    /// fn smooth(x: &[f32], y: &mut [f32], n: usize) {
    ///     marks::partition(1, 1); // over_tblock over_thread
    ///     marks::shared(x.len() as u32); // shared(copyin(x))
    ///     for i in 0..n {
    ///         y[i] = 0.5 * (x[i] + x[i + 1]);
    ///     }
    /// }
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let program = Program::of(&DeviceFn::of::<smooth>()?)?;
    /// let schedule = program.schedule(&[4], &[32]);
    /// let known = [Known::Length(101), Known::Length(100), Known::Number(100)];
    /// program.verify(&schedule, &known)?;
    /// let scheduled = program.apply_for(&schedule, &known)?;
    ///
    /// let jit = Jit::new()?;
    /// let (x, mut y) = (jit.upload(&[3.0f32; 101])?, jit.zeros::<f32>(100)?);
    /// let (grid, block) = (scheduled.grid(), scheduled.block());
    /// jit.launch(scheduled.kernel(), grid, block, args!(&x, &mut y, 100u32))?;
    /// assert_eq!(y.to_vec()?[99], 3.0);
    ///
    /// let (x, kernel) = (jit.upload(&[3.0f32; 51])?, scheduled.kernel());
    /// let other = jit.launch(kernel, grid, block, args!(&x, &mut y, 50u32));
    /// assert!(other.and_then(|()| jit.synchronize()).is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As those of [`Program::apply`], and what cannot be staged.
    pub fn apply_for(&self, schedule: &Schedule, known: &[Known]) -> Result<Scheduled, Error> {
        self.apply_with(schedule, known, &[])
    }

    /// As [`Program::apply_for`], with slices whose elements launches pass by value.
    pub(crate) fn apply_with(
        &self,
        schedule: &Schedule,
        known: &[Known],
        constants: &[Constant],
    ) -> Result<Scheduled, Error> {
        let applied = apply(self, schedule, known)?;
        self.with_constants(applied, constants)
    }

    /// As [`Program::apply_with`], for a CPU. Copies to shared memory are left out that barriers are not needed for; such a kernel is
    /// for these arguments alone, as one with the copies is.
    pub(crate) fn apply_on_cpu(
        &self,
        schedule: &Schedule,
        known: &[Known],
        constants: &[Constant],
    ) -> Result<Scheduled, Error> {
        let is_for_arguments = schedule.is_for_arguments();
        let purpose = Purpose {
            known,
            is_for_arguments,
            is_for_cpu: true,
        };
        let unstaged = self.without_copies(schedule);
        let verified = unstaged.filter(|unstaged| self.verify(unstaged, known).is_ok());
        let schedule = verified.as_ref().unwrap_or(schedule);
        let widened = self.widened(schedule, known)?;
        let schedule = widened.as_ref().unwrap_or(schedule);
        let applied = apply_as(self, schedule, purpose)?;
        self.with_constants(applied, constants)
    }

    /// A schedule without the copies to shared memory that save nothing where slices are as near, if there are any. What iterations side
    /// by side read in a loop that each thread goes through they read several times, and it is put together for that.
    fn without_copies(&self, schedule: &Schedule) -> Option<Schedule> {
        let function = self.function();
        let mut unstaged = schedule.clone();
        for (number, held) in unstaged.loops.iter_mut().enumerate() {
            let inner = self.loops[number].0;
            let mut around = self.loops.iter().zip(&schedule.loops);
            let is_read_again = !held.partition.is_some()
                && around
                    .any(|((outer, _), held)| held.jammed() > 1 && is_in(function, *outer, inner));
            if !is_read_again {
                (held.shared, held.whole) = (held.computed, Slices::default());
            }
        }
        (unstaged != *schedule).then_some(unstaged)
    }

    fn with_constants(
        &self,
        mut applied: Applied,
        constants: &[Constant],
    ) -> Result<Scheduled, Error> {
        read_by_value(&mut applied.module, self.kernel, constants);
        Ok(Scheduled {
            kernel: kernel_of(&applied.module)?,
            applied,
            constants: constants.to_vec(),
        })
    }
}

/// A kernel of a module that was made of a device function's.
fn kernel_of(module: &Module) -> Result<Kernel, Error> {
    // SAFETY: what is unchecked in a device function whoever built it has promised, for each call, and the accesses
    // here are some of those of one call, with the same indices behind the same conditions. Of parameters a device
    // function says nothing.
    unsafe { Kernel::from_module(module) }
}

/// A program under a schedule, to be launched.
///
/// ```
/// use kiln::directives::{Program, marks};
/// use kiln::prelude::*;
///
/// #[device_fn]
/// fn fill(x: &mut [u32]) {
///     marks::partition(1, 1);
///     for i in 0..2usize {
///         marks::partition(1, 1);
///         for j in 0..3usize {
///             marks::partition(1, 1);
///             for k in 0..4usize {
///                 marks::partition(1, 1);
///                 for l in 0..5usize {
///                     x[((i * 3 + j) * 4 + k) * 5 + l] = l as u32;
///                 }
///             }
///         }
///     }
/// }
///
/// # fn main() -> kiln::Result<()> {
/// let program = Program::of(&DeviceFn::of::<fill>()?)?;
/// let scheduled = program.apply(&program.schedule(&[2, 1, 2, 1], &[1, 3, 2, 5]))?;
/// // More dimensions than the hardware has lie along x, and are parameters behind those of the program.
/// let extents = scheduled.extents();
/// assert_eq!(extents, [2, 1, 2, 1, 1, 3, 2, 5]);
/// assert!(scheduled.module().to_string().contains("offload.thread.3: u32"));
///
/// let jit = Jit::new()?;
/// let (mut x, mut y) = (jit.zeros::<u32>(120)?, jit.zeros::<u32>(120)?);
/// let [a, b, c, d, e, f, g, h] = [0, 1, 2, 3, 4, 5, 6, 7].map(|dim| extents[dim]);
/// let args = args!(&mut x, a, b, c, d, e, f, g, h);
/// jit.launch(scheduled.kernel(), scheduled.grid(), scheduled.block(), args)?;
/// jit.launch(&program.sequential()?, 1, 1, args!(&mut y))?;
/// assert_eq!(x.to_vec()?, y.to_vec()?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Scheduled {
    kernel: Kernel,
    applied: Applied,
    pub(crate) constants: Vec<Constant>,
}

impl Scheduled {
    /// The kernel. Its parameters are those of the program and behind them one `u32` for each of
    /// [`Scheduled::extents`], then an array for each of [`Scheduled::constants`].
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The blocks of a launch.
    pub fn grid(&self) -> Dim3 {
        self.applied.grid
    }

    /// The threads of a block.
    pub fn block(&self) -> Dim3 {
        self.applied.block
    }

    /// What a launch passes behind the arguments of the program: the extents of a grid that has more dimensions than
    /// the hardware.
    pub fn extents(&self) -> &[u32] {
        &self.applied.extents
    }

    /// The slices of which a launch passes elements by value, as `constant!(copyin ..)` says and as far as parameters have
    /// room, each with how many elements its array has: the first ones are those that are copied, and the rest is never read.
    ///
    /// ```
    /// use kiln::prelude::*;
    ///
    /// #[offload]
    /// fn weigh(weights: &[f32], x: &mut [f32]) {
    ///     constant!(copyin weights);
    ///     #[kernel(tblock(2), thread(32))]
    ///     {
    ///         #[loop_partition(over_tblock, over_thread)]
    ///         for i in 0..x.len() {
    ///             x[i] *= weights[i % weights.len()];
    ///         }
    ///     }
    /// }
    ///
    /// # fn main() -> kiln::Result<()> {
    /// let report = weigh.plan(&[0.5; 100], &mut [1.0; 64])?;
    /// assert_eq!(report.kernels[0].constants(), [("weights", 125)]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn constants(&self) -> Vec<(&str, u64)> {
        let module = &self.applied.module;
        let kernel = module.kernel().expect("it is a kernel's");
        let params = &module.functions[kernel].params;
        let named = self.constants.iter();
        named
            .map(|held| (params[held.param].name.as_str(), held.capacity))
            .collect()
    }

    /// The module of the kernel.
    pub fn module(&self) -> &Module {
        &self.applied.module
    }
}
