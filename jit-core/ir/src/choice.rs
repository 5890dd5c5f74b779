//! What a function chooses of what is usually left to the compilation: what an index out of bounds does,
//! how exact floats are, how many registers a thread may have.
//!
//! The choices of a kernel hold for all that it calls. The compiler writes them out before the first hook
//! rewrites the module: bounds become accesses, flags become [`InstNode::fast`](crate::InstNode::fast).

use std::fmt;
use std::ops::BitOr;

use crate::Unroll;

/// What an access does whose index is out of bounds.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum Bounds {
    /// The access ends its thread and leaves a fault record, and so does an assumption that does not hold.
    #[default]
    Checked,
    /// The access is of the last element. Where there is none it ends its thread, as an access of the first one. Assumptions are checked.
    Clamped,
    /// The access is undefined behaviour, and so is an assumption that does not hold.
    Unchecked,
}

/// What floating-point arithmetic may do besides rounding each result, a set of flags. Each is a permission:
/// where a machine gains nothing by it, results stay as they are.
///
/// ```
/// use kiln_ir::FastMath;
///
/// let flags = FastMath::CONTRACT | FastMath::APPROXIMATE;
/// assert!(flags.has(FastMath::CONTRACT) && !flags.has(FastMath::REASSOCIATE));
/// assert_eq!(flags.to_string(), "contract, approximate");
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct FastMath(u8);

impl FastMath {
    /// None of them.
    pub const NONE: FastMath = FastMath(0);
    /// A multiplication and an addition of its result may be one operation, which rounds once.
    pub const CONTRACT: FastMath = FastMath(1);
    /// Operations may be done in another order, as if `+` and `*` were associative and zeros had no sign.
    pub const REASSOCIATE: FastMath = FastMath(2);
    /// Divisions, square roots and functions of `f32` may be approximations.
    pub const APPROXIMATE: FastMath = FastMath(4);
    /// Numbers of `f32` that are not normal may be taken for zero, and results, too, in a kernel and all that it
    /// calls.
    pub const FLUSH: FastMath = FastMath(8);
    /// All that an expression can have: [`CONTRACT`](FastMath::CONTRACT),
    /// [`REASSOCIATE`](FastMath::REASSOCIATE) and [`APPROXIMATE`](FastMath::APPROXIMATE).
    pub const FAST: FastMath = FastMath(7);

    /// Each flag with its name.
    pub const NAMES: [(&'static str, FastMath); 4] = [
        ("contract", FastMath::CONTRACT),
        ("reassociate", FastMath::REASSOCIATE),
        ("approximate", FastMath::APPROXIMATE),
        ("flush", FastMath::FLUSH),
    ];

    /// The flag of a name.
    pub fn named(name: &str) -> Option<FastMath> {
        let row = FastMath::NAMES.iter().find(|(known, _)| *known == name);
        row.map(|(_, flag)| *flag)
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether all of these are there.
    pub const fn has(self, flags: FastMath) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// The flags among these that an expression can have.
    #[must_use]
    pub const fn of_expressions(self) -> FastMath {
        FastMath(self.0 & FastMath::FAST.0)
    }

    /// The flags as a number, which [`FastMath::from_bits`] takes.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The flags of a number; bits that are none are left out.
    pub const fn from_bits(bits: u8) -> FastMath {
        FastMath(bits & 15)
    }
}

impl BitOr for FastMath {
    type Output = FastMath;

    fn bitor(self, other: FastMath) -> FastMath {
        FastMath(self.0 | other.0)
    }
}

impl fmt::Display for FastMath {
    /// The names, as in the text form: `contract, approximate`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = FastMath::NAMES.iter().filter(|(_, flag)| self.has(*flag));
        let names: Vec<&str> = names.map(|(name, _)| *name).collect();
        f.write_str(&names.join(", "))
    }
}

/// What a function chooses.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Choices {
    /// What an index out of bounds does, in a kernel and all that it calls; where it does not say, the compile
    /// options do.
    pub bounds: Option<Bounds>,
    /// What the function's floats may do; a kernel's hold for all that it calls.
    pub fast: FastMath,
    /// How many registers a thread of a kernel may have; 0: as many as it takes.
    pub max_registers: u32,
    /// How loops of a kernel and of all that it calls are unrolled that do not say it themselves; where that is
    /// [`Unroll::Auto`], the compile options say.
    pub unroll: Unroll,
    /// Up to which cost the optimizer inlines functions in a kernel that do not say it themselves; where that is `None`,
    /// the compile options say.
    pub inline_threshold: Option<u32>,
}
