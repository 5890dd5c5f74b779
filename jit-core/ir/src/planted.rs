//! Planted bugs: each makes code for CPUs wrong in one place, so that a test can see whether it
//! would be found. Each has to give wrong results rather than wild accesses, and has to be wrong for
//! kernels without races. They can be planted in builds with the feature `planted-bugs` only.

/// A planted bug.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "the names say what is done wrong")]
#[non_exhaustive]
pub enum Bug {
    SwapSubtraction,
    WrongSign,
    WrongDivisor,
    LessForLessOrEqual,
    SwapSelect,
    WrongExtension,
    UnsignedConversion,
    TruncatedHalf,
    UnmaskedStore,
    LostElse,
    InvertedElse,
    UnblendedAssignment,
    BreakOfInnerLoop,
    IgnoredContinue,
    ContinueAsBreak,
    ReturnOfLoop,
    LostBarrier,
    OneIterationLess,
    WrongStep,
    UnmaskedAtomic,
    LostReduction,
    WrongIdentity,
    StaleValue,
    LostVariable,
    VariableOfEndedWarp,
    PlaceOfFirstWarp,
    WrongThreadRow,
    SharedOverlap,
    WrongLocalSpread,
    LostZero,
    WrongBlockCarry,
    EndedThreadsGoOn,
    VotesOfAll,
    LanesOfOuterLevel,
    ShuffleBeyondSegment,
    ReductionOfAll,
    EdgeOfRow,
}

impl Bug {
    /// All of them.
    pub const ALL: [Bug; 37] = [
        Bug::SwapSubtraction,
        Bug::WrongSign,
        Bug::WrongDivisor,
        Bug::LessForLessOrEqual,
        Bug::SwapSelect,
        Bug::WrongExtension,
        Bug::UnsignedConversion,
        Bug::TruncatedHalf,
        Bug::UnmaskedStore,
        Bug::LostElse,
        Bug::InvertedElse,
        Bug::UnblendedAssignment,
        Bug::BreakOfInnerLoop,
        Bug::IgnoredContinue,
        Bug::ContinueAsBreak,
        Bug::ReturnOfLoop,
        Bug::LostBarrier,
        Bug::OneIterationLess,
        Bug::WrongStep,
        Bug::UnmaskedAtomic,
        Bug::LostReduction,
        Bug::WrongIdentity,
        Bug::StaleValue,
        Bug::LostVariable,
        Bug::VariableOfEndedWarp,
        Bug::PlaceOfFirstWarp,
        Bug::WrongThreadRow,
        Bug::SharedOverlap,
        Bug::WrongLocalSpread,
        Bug::LostZero,
        Bug::WrongBlockCarry,
        Bug::EndedThreadsGoOn,
        Bug::VotesOfAll,
        Bug::LanesOfOuterLevel,
        Bug::ShuffleBeyondSegment,
        Bug::ReductionOfAll,
        Bug::EdgeOfRow,
    ];

    /// The one with this name.
    pub fn named(name: &str) -> Option<Bug> {
        let mut all = Bug::ALL.into_iter();
        all.find(|bug| format!("{bug:?}") == name)
    }
}
