//! What is wrong with directives, where, and how to fix it.

use kiln_jit_core::error::{Error, LibraryError};
use kiln_jit_core::ir::{debug_as_text, error_text};

use crate::schedule::Schedule;

/// The text of a schedule is not of its form.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", error_text!("the schedule says `{part}` where {wanted} should stand"))]
pub struct ScheduleError {
    /// What stands there.
    pub part: String,
    /// What should.
    pub wanted: &'static str,
}

/// A directive that cannot be followed, or that would change what the program computes.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DirectiveError {
    /// A region that calls what its own text should hold.
    #[error("{}", error_text!("{place}: the region calls `{callee}`, which {problem}"))]
    Call {
        /// Where the call is.
        place: String,
        /// The function that is called.
        callee: String,
        /// What is wrong with it, and what to do.
        problem: &'static str,
    },
    /// A module that is no region: it has no function, or one that gives something.
    #[error(
        "`{function}` is no region: a region is a function without a result and without type and const parameters"
    )]
    NoRegion {
        /// The function's name.
        function: String,
    },
    /// A directive where it has no meaning.
    #[error("{}", error_text!("{place}: {problem}"))]
    Placement {
        /// Where the directive stands.
        place: String,
        /// Why the directive has no meaning there, and what to do.
        problem: String,
    },
    /// A loop that is distributed over a dimension that the grid does not have.
    #[error("{}", error_text!(
        "{place}: the loop is number {level} of its nest that is distributed over {what}, and {of} has {dims} of \
         them: give it {level} or take the clause away"
    ))]
    Level {
        /// Where the loop is.
        place: String,
        /// Which of the nested loops with such a clause it is, counted from 1.
        level: usize,
        /// Over what: the dimensions of blocks or of threads.
        what: &'static str,
        /// What has too few of them.
        of: &'static str,
        /// How many the grid has.
        dims: usize,
    },
    /// A loop that is distributed over warps, or over their lanes, of blocks that do not have whole ones.
    #[error("{}", error_text!(
        "{place}: the loop is distributed over {what}, which are of 32 neighbouring threads each, and a block has {threads} threads \
         along its last dimension: let the last number of `thread` be a multiple of 32, or write `over_thread`"
    ))]
    Warps {
        /// Where the loop is.
        place: String,
        /// Over what: warps, or lanes.
        what: &'static str,
        /// How many threads there are along the last dimension.
        threads: u32,
    },
    /// A loop that is distributed over threads over which one around it is.
    #[error("{}", error_text!(
        "{place}: the loop is distributed over {what}, and a loop around it over {by}, which are the same threads: take one of \
         the clauses away"
    ))]
    Taken {
        /// Where the loop is.
        place: String,
        /// Over what.
        what: &'static str,
        /// Over what a loop around it is.
        by: &'static str,
    },
    /// A virtual grid that no device has.
    #[error("{}", error_text!("{dims}: {problem}"))]
    Grid {
        /// The dimensions as written.
        dims: String,
        /// What is wrong with them, and what to do.
        problem: String,
    },
    /// A schedule of another program.
    #[error(
        "the schedule has {given} loops and `{program}` has {loops}; `Program::schedule` gives one that fits"
    )]
    Loops {
        /// The program's name.
        program: String,
        /// How many loops the schedule has.
        given: usize,
        /// How many the program has.
        loops: usize,
    },
    /// A barrier that some threads of a block would not come to.
    #[error("{}", error_text!("{place}: {problem}"))]
    Barrier {
        /// Where the barrier is, or what holds it.
        place: String,
        /// Why not all threads come there, and what to do.
        problem: &'static str,
    },
    /// A slice that cannot be staged in shared memory.
    #[error("{}", error_text!("{place}: `{slice}` cannot be staged in shared memory: {problem}"))]
    Shared {
        /// Where the loop is, or the access that is in the way.
        place: String,
        /// The slice.
        slice: String,
        /// Why not, and what to do.
        problem: &'static str,
    },
    /// A slice of which blocks cannot compute what they read.
    #[error("{}", error_text!("{place}: blocks cannot compute what they read of `{slice}`: {problem}"))]
    Computed {
        /// Where the loop is, or the access that is in the way.
        place: String,
        /// The slice.
        slice: String,
        /// Why not, and what to do.
        problem: &'static str,
    },
    /// A search that has found no schedule to be launched.
    #[error("{}", error_text!("none of {tried} schedules was launched; of the first one that was not: {first}"))]
    NoSchedule {
        /// How many were tried.
        tried: usize,
        /// What was wrong with the first one.
        first: String,
    },
    /// A use of elements of a slice that are not on the device.
    #[error("{}", error_text!(
        "{place}: this is not known to be within the section of `{slice}` that `global!(alloc ..)` or `constant!(copyin ..)` says: say a larger \
         one, or none"
    ))]
    Outside {
        /// Where the use is.
        place: String,
        /// The slice.
        slice: String,
    },
    /// A section of a slice that `global!` does not copy.
    #[error("{}", error_text!("a section of `{slice}` is not copied: {problem}"))]
    NotCopied {
        /// The slice.
        slice: String,
        /// Why not, and what to do.
        problem: &'static str,
    },
    /// A constant that has no room in constant memory.
    #[error("{}", error_text!(
        "`{slice}` has no room in constant memory: with it, the constants have {bytes} bytes, of at most {}: copy a smaller \
         section, or leave the slice where regions read it otherwise, by taking `constant!` away", crate::constant::MAX_BYTES
    ))]
    Constants {
        /// The slice.
        slice: String,
        /// The bytes of all constants up to this one.
        bytes: u64,
    },
    /// A slice in constant memory that a region writes, or one that is not there and is removed.
    #[error("{}", error_text!("`{slice}` and constant memory: {problem}"))]
    Constant {
        /// The slice.
        slice: String,
        /// What is wrong, and what to do.
        problem: &'static str,
    },
    /// Two sections, one of which is to be copied over the other.
    #[error("{}", error_text!(
        "a section of {from:?} elements along three dimensions is copied over one of {to:?}: let both have as many along each"
    ))]
    Extents {
        /// The planes, rows and columns that are copied.
        from: [usize; 3],
        /// The planes, rows and columns that are written over.
        to: [usize; 3],
    },
    /// A slice that has another number of elements than its shape.
    #[error("{}", error_text!("the slice has {len} elements, and its shape is {shape}: `shape!` says all that it has"))]
    Shape {
        /// The extents.
        shape: String,
        /// How many elements the slice has.
        len: usize,
    },
    /// A use of a slice whose elements blocks have computed in shared memory alone, or iterations have had of their own.
    #[error("{}", error_text!(
        "`{slice}` is used behind a region that says `{clause}`, with which its elements are nowhere but in {memory}: let it be a \
         vector of the function's own that nothing else reads, or take the clause away"
    ))]
    NotKept {
        /// The slice.
        slice: String,
        /// What the region says.
        clause: String,
        /// The memory that held its elements.
        memory: &'static str,
    },
    /// A slice that a loop does not reduce.
    #[error("{}", error_text!("{place}: `{slice}` cannot be reduced: {problem}"))]
    Reduction {
        /// Where the loop is, or the access that is in the way.
        place: String,
        /// The slice.
        slice: String,
        /// Why not, and what to do.
        problem: &'static str,
    },
    /// A loop whose running values threads do not compute together.
    #[error("{}", error_text!("{place}: the running values of the loop cannot be computed by threads together: {problem}"))]
    Scan {
        /// Where the loop is, or what in it is in the way.
        place: String,
        /// Why not, and what to do.
        problem: &'static str,
    },
    /// A slice of which iterations cannot have elements of their own.
    #[error("{}", error_text!("{place}: iterations cannot have elements of `{slice}` of their own: {problem}"))]
    Privatized {
        /// Where the loop is, or the access that is in the way.
        place: String,
        /// The slice.
        slice: String,
        /// Why not, and what to do.
        problem: &'static str,
    },
    /// A loop that cannot be transformed as it is said.
    #[error("{}", error_text!("{place}: `{clause}` cannot be done: {problem}"))]
    Transformation {
        /// Where the loop is, or what in it is in the way.
        place: String,
        /// What was to be done.
        clause: String,
        /// What is in the way, and what to do.
        problem: &'static str,
    },
    /// A variable of the thread's own that one iteration hands on to another, or to what follows.
    #[error("{}", error_text!(
        "{place}: {name} is written by iterations of the loop or part at {holder}, {apart}, and \
         is read by others or behind it: declare it within, or write to an element of a slice"
    ))]
    Carried {
        /// Where the variable is written.
        place: String,
        /// Where the loop is, or the part that one thread executes.
        holder: String,
        /// The variable.
        name: String,
        /// How iterations are executed: by different threads, or side by side by one.
        apart: &'static str,
    },
    /// Two accesses to one element whose order the schedule does not keep.
    #[error("{}", error_text!(
        "{first} and {second} use one element of `{slice}`, {order}, and under `{schedule}` {apart}: \
         {fix}"
    ))]
    Dependence {
        /// What comes first in the sequential program, and where.
        first: String,
        /// What comes second, and where.
        second: String,
        /// The slice.
        slice: String,
        /// In which iterations.
        order: String,
        /// The schedule.
        schedule: String,
        /// How iterations are executed: by different threads, or side by side by one.
        apart: &'static str,
        /// What to do.
        fix: &'static str,
    },
    /// Two accesses of which it is not known whether they use one element.
    #[error("{}", error_text!(
        "cannot prove that {first} and {second} do not depend on each other through `{slice}` when {apart}: {reason}"
    ))]
    CannotProve {
        /// What may come first, and where.
        first: String,
        /// What may come second, and where.
        second: String,
        /// The slice.
        slice: String,
        /// How iterations are executed: by different threads, or side by side by one.
        apart: &'static str,
        /// What is not known, and what to do.
        reason: &'static str,
    },
    /// An operation of which it is not known what memory it uses.
    #[error("{}", error_text!("{place}: cannot prove that threads do not depend on each other: {what}"))]
    Unknown {
        /// Where the operation is.
        place: String,
        /// What is not known.
        what: String,
    },
    /// A read of elements of a slice that were not copied to the device, and that no region is known to have written.
    #[error("{}", error_text!(
        "{place}: the read of `{slice}` is of elements that `global!(alloc {slice})` has not copied to the device, and \
         {problem}: take the slice out of the directive, or let regions write before what this one reads"
    ))]
    Unwritten {
        /// Where the read is.
        place: String,
        /// The slice.
        slice: String,
        /// What is not known, or not so.
        problem: &'static str,
    },
    /// A slice that a region uses and that is not on the device.
    #[error("a region uses a slice that is not on the device: copy it there before the launch")]
    Absent,
    /// Something that several threads would do and the sequential program does once.
    #[error("{}", error_text!(
        "{place}: {what}, and several threads execute it for one iteration of the program, as no loop around it is \
         distributed over all dimensions of the grid: put it into `singular`, or distribute a loop around it"
    ))]
    Repeated {
        /// Where the operation is.
        place: String,
        /// What the operation does.
        what: &'static str,
    },
}

debug_as_text!(ScheduleError, DirectiveError);

/// A `?` in a function that gives a `kiln::Result`; [`Error::library`] finds it again.
impl From<DirectiveError> for Error {
    fn from(error: DirectiveError) -> Error {
        LibraryError::new(error).into()
    }
}

/// A `?` in a function that gives a `kiln::Result`, as for [`DirectiveError`].
impl From<ScheduleError> for Error {
    fn from(error: ScheduleError) -> Error {
        LibraryError::new(error).into()
    }
}

impl DirectiveError {
    /// The error with this schedule in its text.
    pub(crate) fn under(mut self, under: &Schedule) -> DirectiveError {
        if let DirectiveError::Dependence { schedule, .. } = &mut self {
            *schedule = under.to_string();
        }
        self
    }
}
