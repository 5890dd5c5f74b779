//! What the code that `#[offload]` writes refers to: what of slices is on the device, and launches of regions.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use kiln_jit_core::args::Arg;
use kiln_jit_core::build::DeviceFn;
use kiln_jit_core::error::Result;
use kiln_jit_core::front::macros::DescribedFn;
use kiln_jit_core::jit::Jit;
use kiln_jit_core::runtime::Buffer;
use kiln_jit_core::target::{MAX_PARAM_BYTES, Target};
use kiln_jit_core::value::KernelType;
use parking_lot::Mutex;

pub use kiln_jit_core::args::IntoArg;

use crate::affine::Known;
use crate::constant::{Chosen, Constant, placed};
use crate::data::Section;
use crate::error::DirectiveError;
use crate::guidance::Guidance;
use crate::kernel::Scheduled;
use crate::program::Program;
use crate::schedule::{LoopSchedule, Schedule, Slices};
use crate::touched::{Elements, Touched, touched};

/// What a call of an `#[offload]` function has copied and launched, or would.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Copies to the device.
    pub uploads: usize,
    /// How many bytes these were.
    pub uploaded_bytes: usize,
    /// Copies to the host.
    pub downloads: usize,
    /// How many bytes these were.
    pub downloaded_bytes: usize,
    /// The schedules of the kernels, in the order of their launches.
    pub launches: Vec<Arc<Schedule>>,
    /// The kernels, in the order of their launches.
    pub kernels: Vec<Arc<Scheduled>>,
    /// What the schedules cost, in the order of the launches.
    pub guidance: Vec<Arc<Guidance>>,
}

/// A call of an `#[offload]` function.
#[derive(Debug)]
pub struct Offload<'j> {
    /// None: nothing is copied or launched, but only told.
    jit: Option<&'j Jit>,
    /// What kernels are for, and which device.
    machine: Machine,
    pub(crate) report: Report,
}

impl<'j> Offload<'j> {
    /// A call on a device.
    pub fn new(jit: &'j Jit) -> Offload<'j> {
        Offload {
            jit: Some(jit),
            machine: Machine::of(jit),
            report: Report::default(),
        }
    }

    /// A call that copies and launches nothing, on a device, or on a GPU that there need not be.
    pub fn planned(jit: Option<&Jit>) -> Offload<'static> {
        let any = Machine {
            param_bytes: MAX_PARAM_BYTES.into(),
            stages: true,
        };
        Offload {
            jit: None,
            machine: jit.map_or(any, Machine::of),
            report: Report::default(),
        }
    }

    /// What kernels are for.
    pub fn machine(&self) -> Machine {
        self.machine
    }

    /// Launches a region, with the constants that it has by value, and waits for it unless it is `nowait`.
    pub fn launch<'a>(
        &mut self,
        scheduled: &Ready,
        mut args: Vec<Arg<'a>>,
        constants: impl IntoIterator<Item = Option<Arg<'a>>>,
        nowait: bool,
    ) -> Result<()> {
        let (kernel, schedule) = (&scheduled.scheduled, &scheduled.schedule);
        self.report.launches.push(schedule.clone());
        self.report.kernels.push(kernel.clone());
        self.report.guidance.push(scheduled.guidance.clone());
        let Some(jit) = self.jit else {
            return Ok(());
        };
        args.extend(kernel.extents().iter().map(|&extent| extent.into_arg()));
        args.extend(constants.into_iter().flatten());
        jit.launch(kernel.kernel(), kernel.grid(), kernel.block(), &args)?;
        match nowait {
            true => Ok(()),
            false => jit.synchronize(),
        }
    }

    /// What was copied and launched, once all of it is done.
    pub fn report(&mut self) -> Result<Report> {
        if let Some(jit) = self.jit {
            jit.synchronize()?;
        }
        Ok(std::mem::take(&mut self.report))
    }
}

/// What kernels are to heed of the machine that they are for.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Machine {
    /// How many bytes the parameters of a launch may have.
    param_bytes: u64,
    /// Whether shared memory is nearer than the slices. A CPU has caches for both.
    stages: bool,
}

impl Machine {
    fn of(jit: &Jit) -> Machine {
        let of_target = match jit.target() {
            // What every GPU has room for.
            Target::Custom(_) => 4096,
            target => target.max_param_bytes(),
        };
        Machine {
            param_bytes: of_target.min(jit.device().info().limits.param_bytes).into(),
            stages: !matches!(jit.target(), Target::Cpu(_)),
        }
    }
}

/// What of a slice of the host is on the device.
#[derive(Debug)]
pub struct Present<T: KernelType> {
    pub(crate) held: Held<T>,
    /// Whether a region has written it since it was last copied to the host.
    pub(crate) is_newer: bool,
    /// Of a slice of which not all elements are copied to the device: those that are, or that regions have written.
    pub(crate) written: Option<Vec<Elements>>,
    /// The elements that regions may use, if these are not all.
    pub(crate) allocated: Option<Section>,
    /// The elements that are in constant memory, of which no region writes any.
    pub(crate) constant: Option<Copied<T>>,
    /// Why nobody has the elements, since a region that had them in memory of blocks or threads alone.
    lost: Option<DirectiveError>,
}

/// Elements that launches pass by value.
#[derive(Debug)]
pub(crate) struct Copied<T> {
    pub(crate) chosen: Chosen,
    pub(crate) values: Vec<T>,
}

/// What holds a slice on the device.
#[derive(Debug)]
pub(crate) enum Held<T: KernelType> {
    Nothing,
    Buffer(Buffer<T>),
    /// What a buffer of so many elements would, in a call that copies nothing.
    Planned(usize),
}

impl<T: KernelType> Held<T> {
    fn known(&self) -> Known {
        match self {
            Held::Nothing => Known::Nothing,
            Held::Buffer(buffer) => Known::Length(buffer.len() as u64),
            Held::Planned(len) => Known::Length(*len as u64),
        }
    }
}

impl<T: KernelType> Default for Present<T> {
    fn default() -> Present<T> {
        Present {
            held: Held::Nothing,
            is_newer: false,
            written: None,
            allocated: None,
            constant: None,
            lost: None,
        }
    }
}

impl Ready {
    /// What the region does to a parameter.
    pub(crate) fn touched(&self, param: usize) -> &Touched {
        &self.touched[param]
    }

    /// How many elements the array has that a launch passes for a slice, if it passes one.
    pub(crate) fn capacity(&self, param: usize) -> Option<u64> {
        let mut constants = self.scheduled.constants.iter();
        let held = constants.find(|held| held.param == param)?;
        Some(held.capacity)
    }
}

impl<T: KernelType> Present<T> {
    /// Nothing.
    pub fn new() -> Present<T> {
        Present::default()
    }

    /// Lets regions write the slice before they read it: its elements are not copied to the device. What is there of it is
    /// let go, but for what regions have written since it was copied to the host, as the sequential program has that from
    /// here on.
    pub fn alloc(&mut self) {
        self.allocated = None;
        if self.lost.is_some() || !self.is_newer {
            self.begin_anew();
        }
    }

    /// Lets go what is there, whoever has written it.
    pub(crate) fn begin_anew(&mut self) {
        (self.lost, self.allocated, self.is_newer) = (None, None, false);
        self.constant = None;
        self.held = Held::Nothing;
        self.written = Some(Vec::new());
    }

    /// Copies the slice to the device, unless it is there; one of which regions write what they read has memory there.
    pub fn bring(&mut self, offload: &mut Offload<'_>, slice: &[T]) -> Result<()> {
        if self.written.is_some() {
            self.hold(offload, slice.len())?;
        } else if matches!(self.held, Held::Nothing) {
            self.held = match offload.jit {
                Some(jit) => Held::Buffer(jit.upload(slice)?),
                None => Held::Planned(slice.len()),
            };
            offload.report.uploads += 1;
            offload.report.uploaded_bytes += size_of_val(slice);
        }
        Ok(())
    }

    /// Has memory for the slice, of zeros.
    pub(crate) fn hold(&mut self, offload: &Offload<'_>, len: usize) -> Result<()> {
        if matches!(self.held, Held::Nothing) {
            self.held = match offload.jit {
                Some(jit) => Held::Buffer(jit.zeros(len)?),
                None => Held::Planned(len),
            };
        }
        Ok(())
    }

    /// Notes what a region does to the slice, which is this parameter of it; before the launch.
    ///
    /// # Errors
    /// A read of elements that were not copied to the device and that no region has written, or that blocks or iterations had alone.
    pub fn used(&mut self, ready: &Ready, param: usize, name: &str) -> Result<(), DirectiveError> {
        if let Some(lost) = lost_by(&ready.schedule, param, name) {
            self.lost = Some(lost);
            return Ok(());
        }
        self.is_kept()?;
        self.are_allocated(ready, param, name)?;
        let (Some(written), Known::Length(len)) = (&mut self.written, self.held.known()) else {
            return Ok(());
        };
        let touched = &ready.touched[param];
        for (place, elements) in &touched.reads {
            let problem = match elements {
                None => {
                    "which elements these are is not known, as their indices are no sums of the loops' counters times numbers"
                }
                Some(elements) if !written.iter().any(|all| elements.are_among(all)) => {
                    "no region before this one is known to have written all of these"
                }
                Some(_) => continue,
            };
            let (place, slice) = (place.clone(), name.to_owned());
            return Err(DirectiveError::Unwritten {
                place,
                slice,
                problem,
            });
        }
        for elements in &touched.writes {
            if !written.iter().any(|all| elements.are_among(all)) {
                written.push(elements.clone());
            }
        }
        let all = Elements::all(len);
        if written.iter().any(|some| all.are_among(some)) {
            self.written = None;
        }
        Ok(())
    }

    /// Refuses a use of what nobody has.
    pub(crate) fn is_kept(&self) -> Result<(), DirectiveError> {
        match &self.lost {
            Some(lost) => Err(lost.clone()),
            None => Ok(()),
        }
    }

    /// What a launch knows of the slice.
    pub fn known(&self) -> Known {
        self.held.known()
    }

    /// The argument of a region that reads the slice.
    pub fn read(&self) -> Result<Arg<'_>> {
        match &self.held {
            Held::Buffer(buffer) => Ok(buffer.into_arg()),
            // No launch takes it.
            Held::Planned(_) => Ok(0u32.into_arg()),
            Held::Nothing => Err(DirectiveError::Absent.into()),
        }
    }

    /// The argument of a region that writes the slice.
    ///
    /// # Errors
    /// A slice that is not on the device, or is in constant memory.
    pub fn written(&mut self, name: &str) -> Result<Arg<'_>> {
        if self.constant.is_some() {
            let (slice, problem) = (
                name.to_owned(),
                "a region writes the slice, and what is there does not change: say `constant!(remove ..)` of it before, or \
                 write another slice",
            );
            return Err(DirectiveError::Constant { slice, problem }.into());
        }
        self.is_newer = true;
        match &mut self.held {
            Held::Buffer(buffer) => Ok(buffer.into_arg()),
            Held::Planned(_) => Ok(0u32.into_arg()),
            Held::Nothing => Err(DirectiveError::Absent.into()),
        }
    }

    /// Copies the slice to the host, if a region has written it.
    ///
    /// # Errors
    /// What a copy meets; a slice whose elements blocks or iterations had alone.
    pub fn copy_back(&mut self, offload: &mut Offload<'_>, slice: &mut [T]) -> Result<()> {
        self.is_kept()?;
        if !self.is_newer || matches!(self.held, Held::Nothing) {
            return Ok(());
        }
        if let Some(section) = &self.allocated
            && self.is_known(section)
        {
            self.read_section(offload, (slice, section), section)?;
            self.is_newer = false;
            return Ok(());
        }
        if let Held::Buffer(buffer) = &self.held {
            let values = buffer.to_vec()?;
            match &self.written {
                None => slice.copy_from_slice(&values),
                // The host's other elements are what they were.
                Some(written) => {
                    let mut copy = |at: usize| slice[at] = values[at];
                    let each = |elements: &Elements| elements.each(values.len(), &mut copy);
                    written.iter().for_each(each);
                }
            }
        }
        offload.report.downloads += 1;
        offload.report.downloaded_bytes += size_of_val(slice);
        self.is_newer = false;
        Ok(())
    }

    /// Lets what is on the device go, as the host may write the slice.
    pub fn let_go(&mut self) {
        self.held = Held::Nothing;
        (self.written, self.allocated) = (None, None);
        self.constant = None;
    }
}

/// What a use of a slice meets behind a region under this schedule, if nobody has its elements then.
fn lost_by(schedule: &Schedule, param: usize, name: &str) -> Option<DirectiveError> {
    let has = |slices: fn(&LoopSchedule) -> Slices| {
        let mut loops = schedule.loops.iter();
        loops.any(|held| slices(held).contains(param as u32))
    };
    let (clause, memory) = if has(|held| held.computed) {
        (format!("shared(compute({name}))"), "shared memory")
    } else if has(|held| held.privatized) {
        (format!("privatize({name})"), "memory of threads")
    } else {
        return None;
    };
    Some(DirectiveError::NotKept {
        slice: name.to_owned(),
        clause,
        memory,
    })
}

/// The number that an expression of a grid is; one that is too large for one that is below 0.
pub fn extent(number: impl TryInto<u64>) -> u64 {
    number.try_into().unwrap_or(u64::MAX)
}

/// The numbers of a grid, each of which is a `u32`.
pub fn grid(blocks: &[u64], threads: &[u64]) -> Result<[Vec<u32>; 2], DirectiveError> {
    let list = |dims: &[u64], what: &str| -> Result<Vec<u32>, DirectiveError> {
        let number = |&dim: &u64| u32::try_from(dim);
        let all: Result<_, _> = dims.iter().map(number).collect();
        all.map_err(|_| DirectiveError::Grid {
            dims: format!("{what}{dims:?}"),
            problem: "a dimension of the grid is a number of 32 bits that is not below 0"
                .to_owned(),
        })
    };
    Ok([list(blocks, "tblock")?, list(threads, "thread")?])
}

/// A region with its schedule, verified.
#[derive(Clone, Debug)]
pub struct Ready {
    schedule: Arc<Schedule>,
    scheduled: Arc<Scheduled>,
    /// By parameter.
    touched: Arc<Vec<Touched>>,
    guidance: Arc<Guidance>,
}

/// How many launches of a region are remembered as verified, and how many schedules.
const REMEMBERED: usize = 256;

#[derive(Debug, Default)]
struct Made {
    kernels: HashMap<For, Arc<Scheduled>>,
    /// By schedule, what is known of the arguments, and whether slices are copied to shared memory.
    verified: HashMap<(Arc<Schedule>, (Vec<Known>, Vec<Constant>, bool)), Ready>,
}

/// What a kernel is for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct For {
    schedule: Arc<Schedule>,
    /// What is known of the arguments, if the schedule stages slices.
    known: Vec<Known>,
    /// Of which loops a thread has one turn at most.
    once: Vec<bool>,
    /// Of which slices launches pass elements by value.
    constants: Vec<Constant>,
    /// Whether slices are copied to shared memory.
    stages: bool,
}

/// A region of an `#[offload]` function.
#[derive(Debug)]
pub struct Region {
    program: OnceLock<Program>,
    made: Mutex<Option<Made>>,
}

impl Region {
    /// A region that has not been launched.
    pub const fn new() -> Region {
        Region {
            program: OnceLock::new(),
            made: Mutex::new(None),
        }
    }

    /// The region on a grid, verified for a launch on a machine.
    pub fn scheduled<F: DescribedFn>(
        &self,
        [blocks, threads]: [Vec<u32>; 2],
        known: &[Known],
        (chosen, machine): (&[Option<Chosen>], Machine),
    ) -> Result<Ready> {
        let program = match self.program.get() {
            Some(program) => program,
            None => {
                let program = Program::of(&DeviceFn::of::<F>()?)?;
                self.program.get_or_init(|| program)
            }
        };
        let schedule = Arc::new(program.schedule(&blocks, &threads));
        let constants = placed(
            &program.module,
            program.function(),
            chosen,
            machine.param_bytes,
        )?;
        let asked = (known.to_vec(), constants.clone(), machine.stages);
        let launch = (schedule.clone(), asked);
        let remembered = |made: &Made| made.verified.get(&launch).cloned();
        if let Some(ready) = self.made.lock().as_ref().and_then(remembered) {
            return Ok(ready);
        }
        program.verify(&schedule, known)?;
        let asked = schedule.is_for_arguments().then_some(known);
        let key = For {
            schedule: schedule.clone(),
            known: asked.unwrap_or_default().to_vec(),
            once: program.turns_once(&schedule, known)?,
            constants,
            stages: machine.stages,
        };
        let scheduled = self.kernel(program, &key, known)?;
        let mut guidance = program.guidance(&schedule, known)?;
        // What is in constant memory costs no sectors of global memory.
        let names = scheduled.constants();
        guidance
            .accesses
            .retain(|access| names.iter().all(|(name, _)| *name != access.slice));
        let mut made = self.made.lock();
        let made = made.get_or_insert_with(Made::default);
        if made.verified.len() >= REMEMBERED {
            *made = Made::default();
        }
        let scheduled = made.kernels.entry(key).or_insert(scheduled).clone();
        let ready = Ready {
            scheduled,
            guidance: Arc::new(guidance),
            touched: Arc::new(touched(program, known)?),
            schedule,
        };
        made.verified.insert(launch, ready.clone());
        Ok(ready)
    }

    /// The kernel for such launches, which is remembered or made.
    fn kernel(&self, program: &Program, key: &For, known: &[Known]) -> Result<Arc<Scheduled>> {
        let remembered = |made: &Made| made.kernels.get(key).cloned();
        if let Some(scheduled) = self.made.lock().as_ref().and_then(remembered) {
            return Ok(scheduled);
        }
        let (schedule, constants) = (&*key.schedule, &key.constants[..]);
        Ok(Arc::new(match key.stages {
            true => program.apply_with(schedule, known, constants)?,
            false => program.apply_on_cpu(schedule, known, constants)?,
        }))
    }
}

impl Default for Region {
    fn default() -> Region {
        Region::new()
    }
}
