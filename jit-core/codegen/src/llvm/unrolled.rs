//! How LLVM is asked to unroll the loops that say it themselves, as far as that stays of a size that it can compile.
//!
//! LLVM does what a loop's metadata asks for whatever becomes of it: `#[unroll]` over 300,000 turns takes it minutes and
//! gigabytes. A loop that would become more than [`MOST`] instructions, with those inside of it unrolled as they ask for, is
//! therefore left as it is, and the kernel's inspection says so ([`left_as_loop`]). For the CPU, where an access is one of
//! each lane, one instruction of the IR may be a hundred of LLVM's: what counts there are those ([`MOST_OF_LLVM`]).

use std::num::NonZeroU32;

use inkwell::context::Context;
use inkwell::values::InstructionValue;

use kiln_ir::{
    Constant, Control, Function, Inst, InstData, Location, Module, Region, Unroll, Value,
};

use super::bindings::{UnrollHint, set_unroll_hint};

/// The most instructions of the IR that an unrolled loop becomes.
const MOST: u64 = 32_000;

/// The most instructions of LLVM, as they are before its passes, that an unrolled loop of vector code becomes.
const MOST_OF_LLVM: u64 = 1_200;

/// A loop that is not unrolled though it asks for it.
#[derive(Copy, Clone, Debug)]
pub(crate) struct LeftAsLoop {
    at: Location,
    /// The instructions that it would have.
    size: u64,
    most: u64,
    what: &'static str,
}

impl LeftAsLoop {
    /// Says which it is, of what module, and why.
    pub(crate) fn report(self, module: &Module) -> String {
        let LeftAsLoop {
            at,
            size,
            most,
            what,
        } = self;
        let at = module.display_location(at);
        format!(
            "the loop at {at} is not unrolled, as it would have {size} {what}, more than {most}: ask for a smaller factor"
        )
    }
}

/// Has LLVM unroll a loop of vector code as it asks for, if what its body has become, in instructions of LLVM, allows it.
pub(crate) fn hint_unroll_of_vectors(
    context: &Context,
    back: InstructionValue<'_>,
    (function, looping): (&Function, Inst),
    body: u64,
) -> Option<LeftAsLoop> {
    // A loop that does not ask, or whose turns are not known, is there once.
    let copies = Unrolled::of(function, looping).copies;
    let size = copies.saturating_mul(body);
    if copies > 1 && size > MOST_OF_LLVM {
        return Some(LeftAsLoop {
            at: function.insts[looping].location,
            size,
            most: MOST_OF_LLVM,
            what: "instructions of LLVM",
        });
    }
    hint_unroll(context, back, (function, looping), None);
    None
}

/// Has LLVM unroll a loop as it asks for, or if it does not ask as `unasked` has it. `back` is the branch from its end to its
/// start.
pub(crate) fn hint_unroll(
    context: &Context,
    back: InstructionValue<'_>,
    (function, looping): (&Function, Inst),
    unasked: Option<UnrollHint>,
) {
    let hint = match asked(function, looping) {
        Unroll::Auto => match unasked {
            Some(hint) => hint,
            None => return,
        },
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

/// How an instruction asks to be unrolled, if it is a loop that can.
pub(crate) fn asked(function: &Function, inst: Inst) -> Unroll {
    match function.insts[inst].data {
        InstData::For { unroll, .. } => unroll,
        _ => Unroll::Auto,
    }
}

/// Whether a loop asks to be unrolled by a factor.
pub(crate) fn has_factors(module: &Module) -> bool {
    module.functions.values().any(|function| {
        let mut insts = function.insts.keys();
        insts.any(|inst| matches!(asked(function, inst), Unroll::By(_)))
    })
}

/// Says which loop is not unrolled though it asks for it.
pub(crate) fn left_as_loop(module: &Module) -> Option<String> {
    module.functions.values().find_map(|function| {
        let is_asked = |inst: &Inst| matches!(asked(function, *inst), Unroll::Full | Unroll::By(_));
        let mut loops = function.insts.keys().filter(is_asked);
        loops.find_map(|inst| {
            let unrolled = Unrolled::of(function, inst);
            let left = LeftAsLoop {
                at: function.insts[inst].location,
                size: unrolled.size(),
                most: MOST,
                what: "instructions",
            };
            unrolled.is_too_large().then(|| left.report(module))
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
    fn of(function: &Function, inst: Inst) -> Unrolled {
        let data = &function.insts[inst].data;
        let copies = match (asked(function, inst), data.control()) {
            (Unroll::By(factor), _) => factor.into(),
            (Unroll::Full, Control::For { bounds, .. }) => turns(function, bounds).unwrap_or(1),
            _ => 1,
        };
        let regions = data.regions().into_iter();
        let sizes = regions.map(|region| instructions(function, region));
        Unrolled {
            copies,
            body: sizes.fold(0, u64::saturating_add),
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
pub(crate) fn instructions(function: &Function, region: Region) -> u64 {
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
pub(crate) fn turns(function: &Function, bounds: [Value; 3]) -> Option<u64> {
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
