//! Which checks of indices are left in a kernel behind the hook `bounds-checks`, as its IR says.
//!
//! An access is a place of the source. Of one that has a version without a check that version runs while all is in bounds,
//! so a check is left where each version has it. Several of a turn that are asked for at once, in that turn, are left, too.
//! An index that comes out of memory may be looked at on the way, and answered behind the loop: that is a comparison in each
//! turn. A loop of a few turns, whose number is known, is none here: it is unrolled, and an index by its counter a number. LLVM
//! takes away what a condition around an access says anyway, as `if i < y.len()`; that is not counted, as in the IR
//! the check is there.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex};

use kiln::core::hook::Hook;
use kiln::core::ir::{
    Constant, Control, FuncId, Function, Inst, Location, Module, Region, Type, VarUse,
};
use kiln::prelude::*;

use super::machine::jit_with;

/// Accesses that are checked, and whose checks are left.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Accesses that the source checks.
    accesses: usize,
    /// Those of which each turn of a loop has a check.
    in_loops: usize,
    /// Indices that a loop looks at on the way.
    on_the_way: usize,
    /// Those outside of loops, or in loops of a few turns, that have a check of their own.
    elsewhere: usize,
}

/// What the numbers of a [`Left`] are.
pub const HEAD: &str = "checked accesses, of these checked in each turn of a loop, looked at on the way, checked elsewhere";

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Left {
            accesses,
            in_loops,
            on_the_way,
            elsewhere,
        } = self;
        write!(f, "{accesses:3} {in_loops:3} {on_the_way:3} {elsewhere:3}")
    }
}

/// A place that is accessed, and the type of its address, since `x[i][j]` is two accesses.
type Place = (Location, Type);

/// The innermost loop of many turns around an access, if there is one; a loop and its second version are two.
type Around = Option<Inst>;

/// Whether a place is accessed with a check, and whether without, by the loop around it.
type Known = HashMap<(FuncId, Around), [bool; 2]>;

/// Compiles for the architecture that is compared, and counts.
pub struct Counting {
    pub jit: Jit,
    before: Arc<Mutex<usize>>,
    behind: Arc<Mutex<Left>>,
}

impl Counting {
    /// With the standard hooks, and two that look.
    pub fn new() -> kiln::Result<Counting> {
        let (before, behind) = <(Arc<Mutex<usize>>, Arc<Mutex<Left>>)>::default();
        let (accesses, left) = (before.clone(), behind.clone());
        let looks_before = Hook::new("looks-before")
            .key("changes", "nothing")
            .rewrite_ir(move |_, module| {
                *accesses.lock().expect("no panic while it is held") = checked(module);
                Ok(())
            });
        let looks_behind = Hook::new("looks-behind")
            .key("changes", "nothing")
            .rewrite_ir(move |_, module| {
                *left.lock().expect("no panic while it is held") = left_in(module);
                Ok(())
            });
        let hooks = kiln::hooks::standard()
            .before("bounds-checks", looks_before)
            .after("bounds-checks", looks_behind);
        let jit = jit_with(Default::default(), hooks)?;
        Ok(Counting {
            jit,
            before,
            behind,
        })
    }

    /// What was counted in the kernel that was compiled last.
    pub fn last(&self) -> Left {
        Left {
            accesses: *self.before.lock().expect("no panic while it is held"),
            ..*self.behind.lock().expect("no panic while it is held")
        }
    }
}

/// The accesses of a module that are checked.
fn checked(module: &Module) -> usize {
    let mut places = HashSet::new();
    each_access(module, &mut |place, is_checked, _| {
        if is_checked {
            places.insert(place);
        }
    });
    places.len()
}

/// What is left in a module.
fn left_in(module: &Module) -> Left {
    let mut places: HashMap<Place, Known> = HashMap::new();
    let on_the_way = each_access(module, &mut |place, is_checked, around| {
        let known = places.entry(place).or_default().entry(around);
        known.or_default()[usize::from(!is_checked)] = true;
    });
    let mut left = Left {
        on_the_way,
        ..Left::default()
    };
    for known in places.values() {
        let is_free = |((_, around), how): (&(FuncId, Around), &[bool; 2])| {
            // What runs straight on outside of loops has both where its checks are made at once.
            matches!((around, how), (_, [false, true]) | (None, [true, true]))
        };
        if !known.iter().any(is_free) {
            let is_in_loop = known.keys().any(|(_, around)| around.is_some());
            left.in_loops += usize::from(is_in_loop);
            left.elsewhere += usize::from(!is_in_loop);
        }
    }
    left
}

/// Calls a function with each access, whether it is checked, and the loop around it. Gives the number of indices that are
/// looked at on the way.
fn each_access(module: &Module, see: &mut impl FnMut(Place, bool, (FuncId, Around))) -> usize {
    let functions = module.functions.iter();
    functions
        .map(|(id, function)| in_region(function, function.body, (id, None), see))
        .sum()
}

fn in_region(
    function: &Function,
    region: Region,
    at: (FuncId, Around),
    see: &mut impl FnMut(Place, bool, (FuncId, Around)),
) -> usize {
    let mut on_the_way = 0;
    for &inst in &function.regions[region].insts {
        let node = &function.insts[inst];
        if let (Some((_, is_checked)), Some(address)) = (node.data.access(), node.result) {
            let place = (node.location, function.type_of(address));
            see(place, is_checked, at);
        }
        if let Some(VarUse::Set(var, _)) = node.data.var_use() {
            let is_answer = function.vars[var].name == "out_of_bounds";
            on_the_way += usize::from(is_answer && at.1.is_some());
        }
        let around = match node.data.is_loop() && !has_few_turns(function, inst) {
            true => Some(inst),
            false => at.1,
        };
        for inner in node.data.regions() {
            on_the_way += in_region(function, inner, (at.0, around), see);
        }
    }
    on_the_way
}

/// The most turns of a loop that is unrolled whatever is in it.
const FEW: i128 = 32;

/// Whether a loop is known to have few turns.
fn has_few_turns(function: &Function, the_loop: Inst) -> bool {
    let Control::For { bounds, .. } = function.insts[the_loop].data.control() else {
        return false;
    };
    let number = |value| match function.constant(value)? {
        Constant::Int(number) => Some(number),
        Constant::Zero => Some(0),
        _ => None,
    };
    let [start, end, _] = bounds.map(number);
    matches!((start, end), (Some(start), Some(end)) if (end - start).abs() < FEW)
}

#[kernel]
fn walks(x: &[f32], columns: &[u32], y: &mut [f32]) {
    let row = thread_idx().x;
    let mut sum = 0.0;
    for i in 0..columns.len() {
        sum += x[i] * x[columns[i] as usize];
    }
    y[row] = sum;
    let mut next = columns[row] as usize;
    while next != 0 {
        y[next] = sum;
        next = columns[next] as usize;
    }
}

#[test]
fn what_is_left_is_what_no_version_is_without() -> kiln::Result<()> {
    let counting = Counting::new()?;
    let jit = &counting.jit;
    let (x, columns, mut y) = (
        jit.zeros::<f32>(4)?,
        jit.zeros::<u32>(4)?,
        jit.zeros::<f32>(4)?,
    );
    jit.inspect(&walks, args!(&x, &columns, &mut y))?;
    // `x[i]` and `columns[i]` are asked for before the loop, `y[row]` and `columns[row]` at once.
    let expected = Left {
        accesses: 7,
        in_loops: 2,
        on_the_way: 1,
        elsewhere: 0,
    };
    assert_eq!(counting.last(), expected);
    Ok(())
}
