//! Planted bugs: each makes the backend wrong in one place, so that a test can see whether it
//! would be found. They exist in builds with the feature `planted-bugs` only.

/// A planted bug.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "the names say what is done wrong")]
#[non_exhaustive]
pub enum Bug {
    SwapSubtraction,
    WrongSign,
    OverflowingDivision,
    LessForLessOrEqual,
    SwapSelect,
    WrongExtension,
    UnsignedConversion,
    ShortReach,
    UnmaskedStore,
    UnmaskedScatter,
    LostElse,
    InvertedElse,
    UnblendedAssignment,
    IgnoredBreak,
    IgnoredContinue,
    ContinueAsBreak,
    IgnoredReturn,
    LostBarrier,
    OneIterationLess,
    WrongStep,
    UnmaskedAtomic,
    LostReduction,
    StaleValue,
    LostVariable,
    FirstLaneStores,
    WrongThreadRow,
    FullTail,
    SharedOverlap,
    WrongLocalSpread,
    LostZero,
    SharedConversion,
    WrongBlockCarry,
    EndedThreadsGoOn,
}

impl Bug {
    /// The one with this name.
    pub fn named(name: &str) -> Option<Bug> {
        let mut all = Bug::ALL.into_iter();
        all.find(|bug| format!("{bug:?}") == name)
    }

    /// All of them.
    pub const ALL: [Bug; 33] = [
        Bug::SwapSubtraction,
        Bug::WrongSign,
        Bug::OverflowingDivision,
        Bug::LessForLessOrEqual,
        Bug::SwapSelect,
        Bug::WrongExtension,
        Bug::UnsignedConversion,
        Bug::ShortReach,
        Bug::UnmaskedStore,
        Bug::UnmaskedScatter,
        Bug::LostElse,
        Bug::InvertedElse,
        Bug::UnblendedAssignment,
        Bug::IgnoredBreak,
        Bug::IgnoredContinue,
        Bug::ContinueAsBreak,
        Bug::IgnoredReturn,
        Bug::LostBarrier,
        Bug::OneIterationLess,
        Bug::WrongStep,
        Bug::UnmaskedAtomic,
        Bug::LostReduction,
        Bug::StaleValue,
        Bug::LostVariable,
        Bug::FirstLaneStores,
        Bug::WrongThreadRow,
        Bug::FullTail,
        Bug::SharedOverlap,
        Bug::WrongLocalSpread,
        Bug::LostZero,
        Bug::SharedConversion,
        Bug::WrongBlockCarry,
        Bug::EndedThreadsGoOn,
    ];
}
