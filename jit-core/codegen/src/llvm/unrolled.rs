//! How LLVM is asked to unroll the loops that say it themselves, as far as that stays of a size that it can compile.
//!
//! LLVM does what a loop's metadata asks for whatever becomes of it: `#[unroll]` over 300,000 turns takes it minutes and
//! gigabytes. A loop that would become more than [`MOST`] instructions, with those inside of it unrolled as they ask for, is
//! therefore left as it is, and the kernel's inspection says so ([`left_as_loop`]).

use std::num::NonZeroU32;

use inkwell::context::Context;
use inkwell::values::InstructionValue;

use kiln_ir::{Constant, Function, Inst, InstData, Module, Region, Unroll, Value};

use super::bindings::{UnrollHint, set_unroll_hint};

/// The most instructions of the IR that an unrolled loop becomes.
const MOST: u64 = 32_000;

/// Has LLVM unroll a loop as it asks for. `back` is the branch from its end to its start.
pub(crate) fn hint_unroll(
    context: &Context,
    back: InstructionValue<'_>,
    (function, looping): (&Function, Inst),
) {
    let InstData::For { unroll, .. } = function.insts[looping].data else {
        return;
    };
    let hint = match unroll {
        Unroll::Auto => return,
        Unroll::Never => UnrollHint::Disable,
        _ if Unrolled::of(function, looping).is_too_large() => return,
        Unroll::Full => UnrollHint::Full,
        Unroll::By(count) => match NonZeroU32::new(count) {
            Some(count) => UnrollHint::Count(count),
            None => return,
        },
    };
    set_unroll_hint(context, back, hint);
}

/// Whether a loop asks to be unrolled by a factor.
pub(crate) fn has_factors(module: &Module) -> bool {
    let mut insts = module.functions.values().flat_map(|f| f.insts.values());
    insts.any(|node| {
        let data = &node.data;
        matches!(
            data,
            InstData::For {
                unroll: Unroll::By(_),
                ..
            }
        )
    })
}

/// Says which loop is not unrolled though it asks for it.
pub(crate) fn left_as_loop(module: &Module) -> Option<String> {
    module.functions.values().find_map(|function| {
        let insts = function.insts.iter();
        let mut asked = insts.filter(|(_, node)| {
            let data = &node.data;
            matches!(data, InstData::For { unroll: Unroll::Full | Unroll::By(_), .. })
        });
        asked.find_map(|(inst, node)| {
            let unrolled = Unrolled::of(function, inst);
            let at = module.display_location(node.location);
            let size = unrolled.size();
            unrolled.is_too_large().then(|| {
                format!(
                    "the loop at {at} is not unrolled, as it would have {size} instructions, more than {MOST}: \
                     ask for a smaller factor"
                )
            })
        })
    })
}

/// What unrolling makes of a loop.
#[derive(Copy, Clone)]
struct Unrolled {
    /// How often the body is there.
    copies: u64,
    /// The instructions of the body.
    body: u64,
}

impl Unrolled {
    /// A loop as it asks for; one that does not, or whose turns are not known, is its body.
    fn of(function: &Function, looping: Inst) -> Unrolled {
        let InstData::For {
            start,
            end,
            step,
            body,
            unroll,
            ..
        } = function.insts[looping].data
        else {
            let regions = function.insts[looping].data.regions().into_iter();
            let body = regions.map(|region| instructions(function, region));
            return Unrolled {
                copies: 1,
                body: body.fold(0, u64::saturating_add),
            };
        };
        let copies = match unroll {
            Unroll::Auto | Unroll::Never => 1,
            Unroll::By(factor) => factor.into(),
            Unroll::Full => turns(function, [start, end, step]).unwrap_or(1),
        };
        Unrolled {
            copies,
            body: instructions(function, body),
        }
    }

    fn size(self) -> u64 {
        self.copies.saturating_mul(self.body)
    }

    fn is_too_large(self) -> bool {
        self.copies > 1 && self.size() > MOST
    }
}

/// The instructions of a region, loops unrolled as they are going to be.
fn instructions(function: &Function, region: Region) -> u64 {
    let insts = function.regions[region].insts.iter();
    let sizes = insts.map(|&inst| {
        let unrolled = Unrolled::of(function, inst);
        match unrolled.is_too_large() {
            true => unrolled.body,
            false => unrolled.size(),
        }
        .saturating_add(1)
    });
    sizes.fold(0, u64::saturating_add)
}

/// How many turns a loop has, if its bounds are constants.
fn turns(function: &Function, bounds: [Value; 3]) -> Option<u64> {
    let number = |value| match function.constant(value)? {
        Constant::Int(number) => Some(number),
        Constant::Zero => Some(0),
        _ => None,
    };
    let [start, end, step] = bounds.map(number);
    let (distance, step) = (end?.checked_sub(start?)?, step?);
    let (distance, step) = match step {
        0 => return Some(0),
        _ if step < 0 => (-distance, -step),
        _ => (distance, step),
    };
    let turns = distance.max(0).checked_add(step - 1)? / step;
    u64::try_from(turns).ok()
}
