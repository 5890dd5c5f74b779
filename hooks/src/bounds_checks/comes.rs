//! Who comes to an access: whether a question about it is one that a kernel as it is meant answers with yes.
//!
//! Under a condition an index may be one that there is none of, as the condition keeps threads from it: a question about all
//! turns would fail for it alone, and the loop be as slow as it was. But what all threads of a block have the same index for is
//! there in each turn if the conditions on the way differ from thread to thread: where one is kept from it, another one is not.
//!
//! ```text
//! for j in -radius..=radius {
//!     let at = i + j;
//!     if at >= 0 && at < n {                          // differs from thread to thread
//!         sum += x[at] * weights[j + radius];         // the same weight for all: 2 * radius < weights.len()
//!     }
//! }
//! ```

use kiln_compiler::ir::Value;

use super::before::{Before, known_integer};
use super::conditions::{Decided, decisions};
use super::counter::{Counter, Counts};
use super::lanes;
use super::proof::Limit;
use super::sum::Sum;

/// Who comes to a place of a turn, unless the loop is left before.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Comes {
    /// Not known.
    Any,
    /// Some threads of a block, as all conditions on the way differ from thread to thread.
    Others,
    /// Each thread.
    Each,
}

impl Comes {
    /// Who comes to a turn of a loop that is come to, if it is known what its turns do.
    pub(super) fn if_known<T>(self, turns: Option<T>) -> Comes {
        match turns {
            Some(_) => self,
            None => Comes::Any,
        }
    }

    /// Who comes to where a condition holds, or to where it does not.
    pub(super) fn where_holds(self, before: &mut Before<'_>, (cond, holds): Decided) -> Comes {
        if holds && lanes::is_of_first(before, cond) {
            return self;
        }
        match parts_threads(before, (cond, holds)) {
            true => self.min(Comes::Others),
            false => Comes::Any,
        }
    }

    /// Whether some thread comes to an access in each turn, by what is known of its index, or the elements are there in
    /// any case.
    pub(super) fn in_each(
        self,
        before: &Before<'_>,
        counters: &[Counter],
        (index, limit): (Value, Limit),
        sum: &Sum,
    ) -> bool {
        let comes = match self {
            Comes::Any => false,
            // What no turn changes is asked once anyway.
            Comes::Others => sum.counters().next().is_some() && is_of_turn(before, index),
            Comes::Each => true,
        };
        comes || is_table(before, counters, (index, limit), sum)
    }
}

/// Whether all that decides a condition differs from thread to thread.
fn parts_threads(before: &mut Before<'_>, decided: Decided) -> bool {
    let Some(alike) = before.alike else {
        return false;
    };
    let mut all = Vec::new();
    decisions(before.function, &mut before.homes, decided, &mut all);
    !all.is_empty() && all.iter().all(|&(cond, _)| !alike.is_of_block(cond))
}

/// Whether an index is the same for all threads of a block, and no condition bounds what they have alike in a turn: then
/// there may be fewer elements than turns.
fn is_of_turn(before: &Before<'_>, index: Value) -> bool {
    let Some(alike) = before.alike else {
        return false;
    };
    let is_of_turn = |value: Value| {
        let is_number = known_integer(before.function, value).is_some();
        !is_number && alike.is_of_block(value) && before.defines(value)
    };
    let mut guards = before.guards.iter();
    alike.is_of_block(index)
        && !guards.any(|guard| is_of_turn(guard.value) || is_of_turn(guard.bound))
}

/// Whether an access is of a table that loops of known numbers of turns go through: it has as many elements, whatever a
/// turn reads of it, unless a condition says of the index or of a counter that there may be fewer.
fn is_table(
    before: &Before<'_>,
    counters: &[Counter],
    (index, limit): (Value, Limit),
    sum: &Sum,
) -> bool {
    let is_counter = |value: Value| {
        (sum.counters()).any(|counter| counters[counter].counts == Counts::Index(value))
    };
    let mut guards = before.guards.iter();
    matches!(limit, Limit::Of(_))
        && sum.is_counted_out(counters)
        && !guards.any(|guard| guard.value == index || is_counter(guard.value))
}
