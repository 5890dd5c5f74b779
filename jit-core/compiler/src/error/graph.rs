//! Graphs that cannot be recorded, and replays that they do not take.

use crate::ir::{debug_as_text, error_text};
use crate::runtime::DeviceId;

/// What is wrong with a graph, or with what it is replayed with.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// A closure that has recorded nothing.
    #[error("{}", error_text!(
        "the graph is empty; record a launch, a copy or a fill in the closure, or leave the graph out"
    ))]
    Empty,
    /// A sample that stands for nothing.
    #[error("{}", error_text!(
        "nothing that the graph has recorded uses sample {}, so replays would be given an argument for nothing; pass \
         its slot to a launch, or leave the sample out",
        position + 1
    ))]
    Unused {
        /// Position of the sample, from 0.
        position: usize,
    },
    /// A buffer of the program in a recorded launch.
    #[error("{}", error_text!(
        "kernel `{kernel}`: argument {} (`{argument}`) is a buffer that the graph does not hold, and could be dropped \
         before a replay; make it a sample of `Jit::graph` and pass its slot, or give it to the graph with `keep`",
        position + 1
    ))]
    NotHeld {
        /// The kernel.
        kernel: String,
        /// Position of the argument, from 0.
        position: usize,
        /// The parameter's name.
        argument: String,
    },
    /// A slot of another graph.
    #[error("{}", error_text!("{user} is given a slot of another graph; pass slots in the closure that has them"))]
    OtherGraph {
        /// Who was given the slot.
        user: String,
    },
    /// A buffer that a launch reads and writes as two arguments.
    #[error("{}", error_text!(
        "kernel `{kernel}`: argument {} is a slot of the same buffer as argument {}, and one of them is written; pass \
         one of them, or a buffer that `keep` has given a copy",
        second + 1, first + 1
    ))]
    Aliased {
        /// The kernel.
        kernel: String,
        /// Positions of the arguments, from 0.
        first: usize,
        /// The later one.
        second: usize,
    },
    /// A buffer of another device that was given to the graph.
    #[error("{}", error_text!(
        "{user} is given a buffer of {owner} that the graph keeps, and the graph is of {device}; copy it with `to_vec` and \
         `upload` before"
    ))]
    ForeignKept {
        /// Who was given the slot.
        user: String,
        /// Where the buffer lies.
        owner: DeviceId,
        /// The graph's device.
        device: DeviceId,
    },
    /// A buffer of another length, where that was fixed.
    #[error("{}", error_text!(
        "argument {} of the replay has {given} elements, and what was recorded is for {recorded}; give it as many, or \
         record the graph anew",
        position + 1
    ))]
    Length {
        /// Position of the argument, from 0.
        position: usize,
        /// The length of the sample.
        recorded: u64,
        /// The length of the argument.
        given: u64,
    },
    /// A kernel that another `Jit` has prepared.
    #[error("{}", error_text!(
        "kernel `{kernel}` was prepared by another `Jit` than the graph's; prepare it with the `Jit` that records"
    ))]
    OtherJit {
        /// The kernel.
        kernel: String,
    },
    /// A slot in a launch that no graph records.
    #[error("{}", error_text!(
        "kernel `{kernel}`: argument {} is a slot of a graph, which stands for what replays are given; pass it to \
         `launch` of the `Recording` that the closure has",
        position + 1
    ))]
    NotRecorded {
        /// The kernel.
        kernel: String,
        /// Position of the argument, from 0.
        position: usize,
    },
    /// A kernel for which a hook gives a value at each launch.
    #[error("{}", error_text!(
        "kernel `{kernel}` has the hidden argument `{hidden}`, which {giver} gives at each launch, and a replay asks \
         nobody; launch the kernel itself, or record with a `Jit` without that hook"
    ))]
    Hidden {
        /// The kernel.
        kernel: String,
        /// The hidden argument.
        hidden: String,
        /// Who gives it.
        giver: String,
    },
    /// A `Jit` whose hooks look at launches.
    #[error("{}", error_text!(
        "hooks of this `Jit` are told of each launch (`before_launch`, `after_launch`), and a replay tells nobody; \
         record with a `Jit` without them"
    ))]
    Observed,
    /// A value to fill with that the device cannot repeat by itself.
    #[error("{}", error_text!(
        "a graph fills with what repeats every 1, 2 or 4 bytes, and this value has {bytes} bytes that do not; record a \
         launch of a kernel that writes it"
    ))]
    FillValue {
        /// The size of the value.
        bytes: usize,
    },
    /// A copy or a fill of nothing.
    #[error("{}", error_text!("the graph copies or fills a buffer of no elements; leave that out for empty buffers"))]
    NothingToDo,
    /// A copy to fewer elements.
    #[error("{}", error_text!(
        "the graph copies {from} bytes to a buffer of {to}; replay it with a larger buffer there"
    ))]
    CopyTooLarge {
        /// Bytes to be copied.
        from: usize,
        /// Bytes that there is room for.
        to: usize,
    },
    /// Another number of arguments than there were samples.
    #[error("{}", error_text!(
        "the graph was recorded with samples of {recorded} arguments, and is replayed with {given}; give one for each"
    ))]
    Count {
        /// How many samples there were.
        recorded: usize,
        /// How many arguments there are.
        given: usize,
    },
    /// An argument of another type than its sample.
    #[error("{}", error_text!(
        "argument {} of the replay is a `{given}`, and the graph was recorded with a `{recorded}`; give one of that \
         type, or record the graph anew",
        position + 1
    ))]
    Type {
        /// Position of the argument, from 0.
        position: usize,
        /// The type of the sample.
        recorded: String,
        /// The type of the argument.
        given: String,
    },
    /// An argument of which less is known than of its sample.
    #[error("{}", error_text!(
        "argument {} of the replay is not {fact}, and the graph was recorded with one that is; record the graph anew \
         with this one",
        position + 1
    ))]
    Fact {
        /// Position of the argument, from 0.
        position: usize,
        /// What the code was made for.
        fact: &'static str,
    },
    /// A buffer of another device.
    #[error("{}", error_text!(
        "argument {} of the {what} lies on {owner}, and the graph is of {device}; copy it with `to_vec` and `upload`",
        position + 1
    ))]
    ForeignBuffer {
        /// What was given the buffer: `graph` or `replay`.
        what: &'static str,
        /// Position of the argument, from 0.
        position: usize,
        /// Where the buffer lies.
        owner: DeviceId,
        /// The graph's device.
        device: DeviceId,
    },
}

debug_as_text!(GraphError);
