//! Whether threads keep the order of the sequential program wherever it matters.
//!
//! Of two accesses to one element, one of which writes it, the one that comes first in the sequential program has to
//! come first in the kernel. It does if one thread executes both, as each thread goes through its iterations in their
//! order, or if both are of one block and a barrier comes between. So there is a question for each pair of accesses
//! and each way in which one execution comes before the other: in an earlier turn of a loop around both, or in the same
//! turn and earlier in the text. Each is asked as constraints on integers ([`System`]), that are exact where indices
//! and bounds are sums of loop counters with known factors.

use kiln_jit_core::ir::{Function, Inst};

use crate::accesses::{Access, Accesses, Around};
use crate::affine::{Affine, Execution, Known, Step};
use crate::arrays::array_of;
use crate::error::DirectiveError;
use crate::integer::{Linear, System};
use crate::owner::{Axis, Owners, Which, divided};
use crate::program::Program;
use crate::reduce::Reduced;
use crate::schedule::Schedule;

/// Refuses a schedule under which threads depend on each other, for one launch.
pub(crate) fn check(
    program: &Program,
    schedule: &Schedule,
    known: &[Known],
    reduced: &Reduced,
) -> Result<(), DirectiveError> {
    let accesses = Accesses::of(program, schedule)?;
    let mut check = Check::new(program, schedule, &accesses, (known, reduced));
    let function = check.function;
    for access in &accesses.all {
        if access.writes && !access.is_of_param(function) && !access.is_of_block(function) {
            return Err(DirectiveError::Unknown {
                place: program.place(function.insts[access.inst].location),
                what: "a write to memory that is no slice of the region's own parameters, or one of several".to_owned(),
            });
        }
    }
    for (number, first) in accesses.all.iter().enumerate() {
        for second in &accesses.all[number..] {
            if first.writes || second.writes {
                check.pair(first, second)?;
            }
        }
    }
    Ok(())
}

/// Refuses to let the inner one of two loops be the outer one where an iteration depends on one in an earlier turn of the
/// outer loop and a later turn of the inner one, which would come first then.
pub(crate) fn check_interchange(
    program: &Program,
    schedule: &Schedule,
    (known, reduced): (&[Known], &Reduced),
    [outer, inner]: [Inst; 2],
) -> Result<(), DirectiveError> {
    let accesses = Accesses::of(program, schedule)?;
    let mut check = Check::new(program, schedule, &accesses, (known, reduced));
    let is_within = |access: &&Access| access.loops.iter().any(|held| held.inst == inner);
    let within: Vec<&Access> = accesses.all.iter().filter(is_within).collect();
    for (number, &a) in within.iter().enumerate() {
        for &b in &within[number..] {
            if (a.writes || b.writes) && !check.is_apart(a, b) {
                check.turned_round((a, b), [outer, inner])?;
            }
        }
    }
    Ok(())
}

struct Check<'p> {
    program: &'p Program,
    schedule: &'p Schedule,
    function: &'p Function,
    accesses: &'p Accesses,
    reduced: &'p Reduced,
    affine: Affine<'p>,
}

impl<'p> Check<'p> {
    fn new(
        program: &'p Program,
        schedule: &'p Schedule,
        accesses: &'p Accesses,
        (known, reduced): (&'p [Known], &'p Reduced),
    ) -> Check<'p> {
        let function = program.function();
        Check {
            program,
            schedule,
            function,
            accesses,
            reduced,
            affine: Affine::new(function, known),
        }
    }
}

/// How an execution of `x` comes before one of `y` in the sequential program.
struct Order<'a> {
    x: &'a Access,
    y: &'a Access,
    /// The loop around both in an earlier turn of which `x` is executed, by its number among those around both; the
    /// turns of those outside of it are the same. `None`: all turns are the same.
    carried_by: Option<usize>,
    /// How many loops are around both.
    common: usize,
    /// How many places of the way to `x` and `y` are the same.
    shared_way: usize,
    /// What may not keep the order: different threads, or iterations side by side.
    apart: Apart,
}

/// How two accesses are executed, as texts of errors say it.
#[derive(Copy, Clone)]
struct Apart {
    refused: &'static str,
    not_proved: &'static str,
    /// What to do about iterations that depend on each other.
    fix: &'static str,
}

const BY_THREADS: Apart = Apart {
    refused: "different threads do so in any order",
    not_proved: "different threads execute them",
    fix: "leave that loop sequential, or let its iterations use elements of their own",
};

const INTERCHANGED: Apart = Apart {
    refused: "that order is turned round where the loops are interchanged",
    not_proved: "loops are interchanged",
    fix: "leave the loops as they are",
};

const SIDE_BY_SIDE: Apart = Apart {
    refused: "these are executed side by side",
    not_proved: "iterations are executed side by side",
    fix: "let fewer of its iterations be side by side, or use elements of their own",
};

/// An execution of `x`, a later one of `y`, and what holds of them.
struct Question {
    system: System,
    x: Execution,
    y: Execution,
}

/// What has to hold besides for the order to be lost.
enum Lost {
    /// Nothing.
    Always,
    /// One of these sums is 0 or more.
    If(Vec<Linear>),
    /// The order is kept.
    Never,
}

impl Check<'_> {
    fn pair(&mut self, a: &Access, b: &Access) -> Result<(), DirectiveError> {
        if self.is_apart(a, b) {
            return Ok(());
        }
        let shared_way = a.way.iter().zip(&b.way).take_while(|(a, b)| a == b).count();
        let common = a.loops.iter().zip(&b.loops);
        let common = common
            .take_while(|(a, b)| a.inst == b.inst && a.depth < shared_way)
            .count();
        for carried_by in 0..common {
            let ways = [(a, b), (b, a)];
            for (x, y) in &ways[..if a.inst == b.inst { 1 } else { 2 }] {
                let carried_by = Some(carried_by);
                self.order(&Order {
                    x,
                    y,
                    carried_by,
                    common,
                    shared_way,
                    apart: BY_THREADS,
                })?;
            }
        }
        // Two arms of an `if` are not both executed in one turn.
        let places = (a.way.get(shared_way), b.way.get(shared_way));
        if let (Some(at), Some(then)) = places
            && at.region == then.region
        {
            let (x, y, carried_by) = (a, b, None);
            self.order(&Order {
                x,
                y,
                carried_by,
                common,
                shared_way,
                apart: BY_THREADS,
            })?;
        }
        Ok(())
    }

    /// Whether two accesses are to different slices, or combine elements with values by one operation, in any order.
    fn is_apart(&self, a: &Access, b: &Access) -> bool {
        let is_known = |access: &Access| {
            access.is_of_param(self.function) || access.is_of_block(self.function)
        };
        let array = |access: &Access| array_of(self.function, access.base);
        let is_one = a.base == b.base || array(a).is_some() && array(a) == array(b);
        if !is_one && is_known(a) && is_known(b) {
            return true;
        }
        let [first, second] = [a, b].map(|access| self.reduced.get(&access.inst));
        first.is_some() && first == second
    }

    /// Refuses two accesses whose order is turned round where loops are interchanged.
    fn turned_round(
        &mut self,
        (a, b): (&Access, &Access),
        [outer, inner]: [Inst; 2],
    ) -> Result<(), DirectiveError> {
        let place = |inst: Inst| a.loops.iter().position(|held| held.inst == inst);
        let (Some(carried_by), Some(inner)) = (place(outer), place(inner)) else {
            return Ok(());
        };
        if a.loops[carried_by].schedule.independent {
            return Ok(());
        }
        let shared_way = a.way.iter().zip(&b.way).take_while(|(a, b)| a == b).count();
        let ways = [(a, b), (b, a)];
        for (x, y) in &ways[..if a.inst == b.inst { 1 } else { 2 }] {
            let order = Order {
                x,
                y,
                carried_by: Some(carried_by),
                common: inner + 1,
                shared_way,
                apart: INTERCHANGED,
            };
            let too_large =
                "its numbers are too large to be reasoned about: leave the loops as they are";
            let asked = self.question(&order).and_then(|asked| match asked {
                Some(mut asked) => {
                    let ahead = self.between(&x.loops[inner], &mut asked)?;
                    let earlier = Linear::number(-1).plus(&ahead, -1)?;
                    asked.system.at_least.push(earlier);
                    Some(asked.system.has_solution()?.then_some(asked))
                }
                None => Some(None),
            });
            match asked {
                Some(Some(asked)) => return Err(self.refusal(&order, asked)),
                Some(None) => {}
                None => return Err(self.cannot_prove(&order, too_large)),
            }
        }
        Ok(())
    }

    fn order(&mut self, order: &Order<'_>) -> Result<(), DirectiveError> {
        if let Some(number) = order.carried_by
            && order.x.loops[number].schedule.independent
        {
            return Ok(());
        }
        let too_large = "its numbers are too large to be reasoned about; choose smaller extents, or promise by \
                         `unsafe(independent)` what is so";
        let Some(question) = self.question(order) else {
            return Err(self.cannot_prove(order, too_large));
        };
        let Some(question) = question else {
            return Ok(());
        };
        for which in [Which::Block, Which::Thread] {
            match self.is_lost(order, &question, which) {
                Some(Some(asked)) => return Err(self.refusal(order, asked)),
                Some(None) => {}
                None => return Err(self.cannot_prove(order, too_large)),
            }
        }
        let side_by_side = Order {
            apart: SIDE_BY_SIDE,
            ..*order
        };
        match self.is_beside(order, question) {
            Some(Some(asked)) => Err(self.refusal(&side_by_side, asked)),
            Some(None) => Ok(()),
            None => Err(self.cannot_prove(&side_by_side, too_large)),
        }
    }

    /// The question of two executions by iterations of one group, which are executed side by side, if there are such.
    ///
    /// Nothing keeps the order of iterations of a group but a barrier between `x` and `y` in the text of one, which all
    /// of the group come to once. Whether it does elsewhere depends on which loops within they go through together.
    fn is_beside(&mut self, order: &Order<'_>, mut asked: Question) -> Option<Option<Question>> {
        let Some(number) = order.carried_by else {
            return Some(None);
        };
        let held = order.x.loops[number];
        let group = i128::from(held.schedule.jammed());
        let is_kept = order.common == number + 1 && self.barrier_within(order, order.shared_way);
        if group == 1 || is_kept {
            return Some(None);
        }
        let mut owners = Owners::new(self.schedule);
        let (affine, system) = (&mut self.affine, &mut asked.system);
        let x = owners.batch(affine, system, &mut asked.x, true, &held)?;
        let y = owners.batch(affine, system, &mut asked.y, false, &held)?;
        let (_, x) = divided(system, &x, group)?;
        let (_, y) = divided(system, &y, group)?;
        system.equal.push(x.plus(&y, -1)?);
        Some(asked.system.has_solution()?.then_some(asked))
    }

    /// Constraints that hold of an execution of `x` and a later one of `y` that use one element; `Some(None)` if there
    /// are none such.
    fn question(&mut self, order: &Order<'_>) -> Option<Option<Question>> {
        let mut question = Question {
            system: System::default(),
            x: Execution::new(),
            y: Execution::new(),
        };
        question.x.is_exact = !order.x.may_be_left_out && !order.y.may_be_left_out;
        let outer = order.carried_by.unwrap_or(order.common);
        for (number, held) in order.x.loops[..order.common].iter().enumerate() {
            let between = self.between(held, &mut question)?;
            if number < outer {
                question.system.equal.push(between);
            } else if number == outer {
                let later = between.plus(&Linear::number(-1), 1)?;
                question.system.at_least.push(later);
            }
        }
        // The other loops are in one of their turns.
        for held in &order.x.loops[order.common..] {
            let atom = self.affine.turn(held.inst);
            question
                .x
                .variable(&mut self.affine, &mut question.system, atom)?;
        }
        for held in &order.y.loops[order.common..] {
            let atom = self.affine.turn(held.inst);
            question
                .y
                .variable(&mut self.affine, &mut question.system, atom)?;
        }
        self.one_element(order, &mut question)?;
        let Question { system, x, y } = &mut question;
        x.conditions(&mut self.affine, system, (self.program, order.x))?;
        y.conditions(&mut self.affine, system, (self.program, order.y))?;
        Some(question.system.has_solution()?.then_some(question))
    }

    /// How many turns of a loop the execution of `y` comes after that of `x`.
    fn between(&mut self, held: &Around, question: &mut Question) -> Option<Linear> {
        let atom = self.affine.turn(held.inst);
        let x = question
            .x
            .variable(&mut self.affine, &mut question.system, atom)?;
        let y = question
            .y
            .variable(&mut self.affine, &mut question.system, atom)?;
        Linear::variable(y).plus(&Linear::variable(x), -1)
    }

    /// Both use one element.
    fn one_element(&mut self, order: &Order<'_>, question: &mut Question) -> Option<()> {
        let (x, y) = (order.x, order.y);
        let (Some(x_steps), Some(y_steps), true) = (&x.steps, &y.steps, x.base == y.base) else {
            question.x.is_exact = false;
            return Some(());
        };
        for (x_step, y_step) in x_steps.iter().zip(y_steps) {
            match (*x_step, *y_step) {
                (Step::Field(x), Step::Field(y)) => {
                    question.system.at_least.push(Linear::number(match x == y {
                        true => 0,
                        false => -1,
                    }))
                }
                (Step::Index { index: x, of }, Step::Index { index: y, .. }) => {
                    let (Some(x), Some(y)) = (self.affine.form(x), self.affine.form(y)) else {
                        question.x.is_exact = false;
                        continue;
                    };
                    let x = question
                        .x
                        .value(&mut self.affine, &mut question.system, &x)?;
                    let y = question
                        .y
                        .value(&mut self.affine, &mut question.system, &y)?;
                    question.system.equal.push(x.plus(&y, -1)?);
                    question.system.at_least.push(x.clone());
                    // An access elsewhere ends the launch.
                    if let Some(length) = of.and_then(|slice| self.affine.length(slice)) {
                        question
                            .system
                            .at_least
                            .push(Linear::number(length - 1).plus(&x, -1)?);
                    }
                }
                _ => question.x.is_exact = false,
            }
        }
        Some(())
    }

    /// The question of two executions by different blocks, or by different threads of which no barrier keeps the order,
    /// if there are such.
    fn is_lost(
        &mut self,
        order: &Order<'_>,
        question: &Question,
        which: Which,
    ) -> Option<Option<Question>> {
        let mut asked = Question {
            system: question.system.clone(),
            x: question.x.clone(),
            y: question.y.clone(),
        };
        if which == Which::Block && !self.matters_to_blocks(order) {
            return Some(None);
        }
        let mut owners = Owners::new(self.schedule);
        let unordered = match which {
            Which::Block => vec![Vec::new()],
            Which::Thread => self.without_barrier(order, &mut asked, &mut owners)?,
        };
        for axis in self.schedule.axes(which) {
            let apart = match self.apart(order, &mut asked, &mut owners, axis)? {
                Lost::Never => continue,
                Lost::Always => vec![None],
                Lost::If(sums) => sums.into_iter().map(Some).collect(),
            };
            for sum in &apart {
                for more in &unordered {
                    let mut system = asked.system.clone();
                    system.at_least.extend(sum.iter().chain(more).cloned());
                    if system.has_solution()? {
                        asked.system = system;
                        return Some(Some(asked));
                    }
                }
            }
        }
        Some(None)
    }

    /// Whether an order is lost when different blocks execute the two: of arrays, of which each block has its own, only where one
    /// reads what another has written, without that the array began anew between.
    fn matters_to_blocks(&self, order: &Order<'_>) -> bool {
        let Some(array) = array_of(self.function, order.x.base) else {
            return true;
        };
        let declared = self.program.arrays.get(&array);
        let mut accesses = self.accesses.all.iter();
        let declared = accesses.find(|access| Some(&access.inst) == declared);
        let around = |number: usize| {
            let inst = order.x.loops[number].inst;
            declared.is_some_and(|access| access.loops.iter().any(|held| held.inst == inst))
        };
        order.x.writes && order.y.reads && !order.carried_by.is_some_and(around)
    }

    /// When different places along an axis of the grid execute the two.
    fn apart(
        &mut self,
        order: &Order<'_>,
        asked: &mut Question,
        owners: &mut Owners<'_>,
        axis: Axis,
    ) -> Option<Lost> {
        if self.schedule.extent(axis) == 1 {
            return Some(Lost::Never);
        }
        let [x_loop, y_loop] = [order.x, order.y].map(|access| owners.loop_of(access, axis));
        let is_each_blocks = matches!(axis, Axis::Block(_)) && order.x.is_of_block(self.function);
        if is_each_blocks && x_loop.is_none() {
            return Some(Lost::Never);
        }
        let outer = order.carried_by.unwrap_or(order.common);
        let mut same_turns = order.x.loops[..outer].iter();
        if let (Some(a), Some(b)) = (x_loop, y_loop)
            && a.inst == b.inst
            && same_turns.any(|held| held.inst == a.inst)
        {
            return Some(Lost::Never);
        }
        let x = self.place(order, asked, owners, (axis, x_loop), true)?;
        let y = self.place(order, asked, owners, (axis, y_loop), false)?;
        let (Some(x), Some(y)) = (x, y) else {
            return Some(Lost::Always);
        };
        let less = |low: &Linear, high: &Linear| high.plus(low, -1)?.plus(&Linear::number(-1), 1);
        Some(Lost::If(vec![less(&x, &y)?, less(&y, &x)?]))
    }

    /// The place along an axis that executes one of the two, by the loop around it that is distributed over the axis;
    /// `Some(None)` if all places do.
    fn place(
        &mut self,
        order: &Order<'_>,
        asked: &mut Question,
        owners: &mut Owners<'_>,
        (axis, around): (Axis, Option<Around>),
        is_x: bool,
    ) -> Option<Option<Linear>> {
        let (access, execution) = match is_x {
            true => (order.x, &mut asked.x),
            false => (order.y, &mut asked.y),
        };
        let (affine, system) = (&mut self.affine, &mut asked.system);
        match around {
            Some(held) => owners
                .place(affine, system, execution, is_x, (&held, axis))
                .map(Some),
            None => Some(is_first_alone(access, axis).then(|| Linear::number(0))),
        }
    }

    /// Ways in which no barrier is between the two in one block; none if one always is.
    fn without_barrier(
        &mut self,
        order: &Order<'_>,
        asked: &mut Question,
        owners: &mut Owners<'_>,
    ) -> Option<Vec<Vec<Linear>>> {
        let within = self.barrier_within(order, order.shared_way);
        let Some(number) = order.carried_by else {
            return Some(if within { Vec::new() } else { vec![Vec::new()] });
        };
        let held = order.x.loops[number];
        let passes = self.barrier_after(order.x, held.depth + 1)
            || self.barrier_before(order.y, held.depth + 1);
        if held.schedule.partition.over_threads.is_none() {
            return Some(if passes { Vec::new() } else { vec![Vec::new()] });
        }
        // Turns of one batch are executed side by side.
        let x = owners.batch(
            &mut self.affine,
            &mut asked.system,
            &mut asked.x,
            true,
            &held,
        )?;
        let y = owners.batch(
            &mut self.affine,
            &mut asked.system,
            &mut asked.y,
            false,
            &held,
        )?;
        let mut ways = Vec::new();
        if !(within && order.common == number + 1) {
            let between = y.plus(&x, -1)?;
            ways.push(vec![between.clone(), between.times(-1)?]);
        }
        if !passes {
            ways.push(Vec::new());
        }
        Some(ways)
    }

    /// Whether a barrier is between the places where the ways to `x` and to `y` part, in one turn of all around.
    fn barrier_within(&self, order: &Order<'_>, shared_way: usize) -> bool {
        let (Some(x), Some(y)) = (order.x.way.get(shared_way), order.y.way.get(shared_way)) else {
            return false;
        };
        let barriers = self.accesses.barriers.get(&x.region);
        let between = |at: &usize| x.position < *at && *at < y.position;
        let is_before = x.region == y.region && x.position < y.position;
        is_before
            && (barriers.is_some_and(|held| held.iter().any(between))
                || self.barrier_after(order.x, shared_way + 1)
                || self.barrier_before(order.y, shared_way + 1))
    }

    /// Whether a barrier comes after an access in the regions from a place of its way on.
    fn barrier_after(&self, access: &Access, from: usize) -> bool {
        access.way.iter().skip(from).any(|held| {
            let barriers = self.accesses.barriers.get(&held.region);
            barriers.is_some_and(|barriers| barriers.iter().any(|at| *at > held.position))
        })
    }

    /// Whether a barrier comes before an access in the regions from a place of its way on.
    fn barrier_before(&self, access: &Access, from: usize) -> bool {
        access.way.iter().skip(from).any(|held| {
            let barriers = self.accesses.barriers.get(&held.region);
            barriers.is_some_and(|barriers| barriers.iter().any(|at| *at < held.position))
        })
    }

    /// An access in words.
    fn access(&self, access: &Access) -> String {
        let what = match (access.reads, access.writes) {
            (_, false) => "the read",
            (false, true) => "the write",
            (true, true) => "the atomic operation",
        };
        let at = self.function.insts[access.inst].location;
        format!("{what} at {}", self.program.place(at))
    }

    /// The name of the slice.
    fn slice(&self, access: &Access) -> String {
        if let Some(array) = array_of(self.function, access.base) {
            return self.function.shared[array].name.clone();
        }
        let mut params = self.function.params.iter();
        let param = params.find(|param| param.value == access.base);
        param
            .map_or("memory behind a pointer", |param| &param.name)
            .to_owned()
    }

    fn cannot_prove(&self, order: &Order<'_>, reason: &'static str) -> DirectiveError {
        DirectiveError::CannotProve {
            first: self.access(order.x),
            second: self.access(order.y),
            slice: self.slice(order.x),
            apart: order.apart.not_proved,
            reason,
        }
    }

    /// What is wrong, with the fewest turns between the two.
    fn refusal(&mut self, order: &Order<'_>, mut question: Question) -> DirectiveError {
        if !question.x.is_exact || !question.y.is_exact {
            return self.cannot_prove(
                order,
                "an index, a bound of a loop around or a condition around (also that of \
                 `continue`) is not of sums of the loops' counters times numbers, or the blocks' shares change from \
                 turn to turn; write it so, or promise by `unsafe(independent)` what is so",
            );
        }
        let place =
            |check: &Self, inst: Inst| check.program.place(check.function.insts[inst].location);
        let described = match order.carried_by {
            None => "in one iteration".to_owned(),
            Some(number) => {
                let held = order.x.loops[number];
                let distance = self.between(&held, &mut question);
                let distance = distance.and_then(|between| least(&question.system, &between));
                let at = place(self, held.inst);
                match distance {
                    Some(1) => format!("in iterations of the loop at {at} that follow one another"),
                    Some(turns) => {
                        format!("in iterations of the loop at {at} that are {turns} apart")
                    }
                    None => format!("in different iterations of the loop at {at}"),
                }
            }
        };
        let is_one_thread = order.carried_by.is_none();
        DirectiveError::Dependence {
            first: self.access(order.x),
            second: self.access(order.y),
            slice: self.slice(order.x),
            order: described,
            schedule: self.schedule.to_string(),
            apart: order.apart.refused,
            fix: match is_one_thread {
                true => {
                    "put a `barrier` between them if they are of one block, distribute the loops around them alike, or let one thread \
                     of each block do it by `singular`"
                }
                false => order.apart.fix,
            },
        }
    }
}

/// Whether of the places along an axis over which nothing is distributed only the first one executes an access:
/// it does what writes memory, and its thread all of `singular`.
fn is_first_alone(access: &Access, axis: Axis) -> bool {
    access.writes || access.singular && matches!(axis, Axis::Thread(_))
}

/// The least number from 1 on that a sum is in a solution.
fn least(system: &System, sum: &Linear) -> Option<i128> {
    let at_most = |most: i128| {
        let mut system = system.clone();
        system.at_least.push(Linear::number(most).plus(sum, -1)?);
        system.has_solution()
    };
    let (mut low, mut high) = (1i128, 1i128);
    while !at_most(high)? {
        low = high + 1;
        high = high.checked_mul(2).filter(|&high| high < 1 << 40)?;
    }
    while low < high {
        let middle = (low + high) / 2;
        match at_most(middle)? {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    Some(low)
}
