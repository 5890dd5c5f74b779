//! Loops that read elements by a variable which each turn halves, doubles, makes less or moves on. All are in bounds.

use kiln_jit_core::ir::{BinaryOp, CompareOp, InstData, Type, Unroll, Value};

use super::memory::{Access, Base, Place};
use super::{Generator, Variable};

/// What a turn makes of the variable.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Way {
    Halved,
    Doubled,
    Less(u64),
    /// Beside the index of a loop, from below on, or from above.
    Along(u64),
    Back(u64),
}

impl Generator {
    /// The places of which there is more than one element to be read, and how many are known.
    pub(super) fn walked_places(&self) -> Vec<(Place, u64)> {
        let places = self.frame.places.iter();
        let known = places.filter_map(|place| {
            let is_read = place.access == Access::Read && !matches!(place.base, Base::One(_));
            let len = place.len.filter(|len| (2..=1 << 16).contains(len))?;
            is_read.then_some((*place, len))
        });
        known.collect()
    }

    /// Reads elements of a place in a loop.
    pub(super) fn walk_statement(&mut self) {
        let places = self.walked_places();
        let (place, len) = self.random.of(&places);
        let trips = self.trips() as u64;
        let uniform = self.frame.uniform && self.random.chance(50);
        let by = self.random.within(1, 3) as u64;
        let way = self.random.of(&[
            Way::Halved,
            Way::Doubled,
            Way::Less(by),
            Way::Along(by),
            Way::Back(by),
        ]);
        let ty = self
            .random
            .of(&[Type::U32, Type::U32, Type::I32, Type::U64]);
        // As many numbers to begin with as leave no more turns than may be made, all of them in bounds.
        let starts = match way {
            Way::Halved => len.min(1 << trips.min(16)),
            Way::Doubled => len,
            Way::Less(by) => len.min(by * trips) + 1,
            Way::Along(by) | Way::Back(by) => len.saturating_sub(by * trips).max(1),
        };
        let start = self.start_below(ty, starts, uniform);
        let at = self.declare_var("at", ty, uniform, true);
        match way {
            Way::Halved | Way::Less(_) | Way::Doubled => {
                self.walk_while((&place, len), at, (way, start), uniform);
            }
            Way::Along(by) | Way::Back(by) => {
                self.walk_for((&place, len), at, (way, by, start), uniform);
            }
        }
    }

    /// A number below another one, which is not 0.
    fn start_below(&mut self, ty: Type, end: u64, uniform: bool) -> Value {
        let any = self.expr(Type::U32, 1, uniform);
        let end = self.int(Type::U32, i128::from(end));
        let arg = self.raw_binary(BinaryOp::Rem, any, end);
        match ty {
            Type::U32 => arg,
            _ => self.raw(InstData::Cast { arg }, ty),
        }
    }

    /// The variable is what ends the loop.
    fn walk_while(
        &mut self,
        (place, len): (&Place, u64),
        at: Variable,
        (way, start): (Way, Value),
        uniform: bool,
    ) {
        let one = self.int(at.ty, 1);
        let start = match way {
            Way::Doubled => self.raw_binary(BinaryOp::Max, start, one),
            _ => start,
        };
        self.act(InstData::VarSet(at.var, start));
        let is_first = self.random.chance(50);
        let body = self.branch(uniform, |g| {
            let now = g.get(at);
            let (op, limit) = match way {
                Way::Doubled => (CompareOp::Ge, g.int(at.ty, i128::from(len))),
                Way::Less(by) => (CompareOp::Lt, g.int(at.ty, i128::from(by))),
                _ => (CompareOp::Le, g.int(at.ty, 0)),
            };
            let is_over = g.compare(op, now, limit);
            let then_region = g.branch(uniform, |g| g.act(InstData::Break { depth: 0 }));
            g.act(InstData::If {
                cond: is_over,
                then_region,
                else_region: None,
            });
            let moves_first = is_first && matches!(way, Way::Less(_));
            if moves_first {
                g.step(at, way);
            }
            let index = g.get(at);
            let index = match way {
                Way::Less(by) if !moves_first => {
                    let by = g.int(at.ty, i128::from(by));
                    g.raw_binary(BinaryOp::Sub, index, by)
                }
                _ => index,
            };
            g.read_in_turn(place, index, uniform);
            if !moves_first {
                g.step(at, way);
            }
        });
        self.act(InstData::Loop { body });
    }

    /// The variable is moved on beside the index of the loop.
    fn walk_for(
        &mut self,
        (place, len): (&Place, u64),
        at: Variable,
        (way, by, start): (Way, u64, Value),
        uniform: bool,
    ) {
        let turns = (self.trips() as u64).min((len - 1) / by);
        let start = match way {
            Way::Back(_) => {
                let last = self.int(at.ty, i128::from(len - 1));
                self.raw_binary(BinaryOp::Sub, last, start)
            }
            _ => start,
        };
        self.act(InstData::VarSet(at.var, start));
        let bounds = [0, turns, 1].map(|n| self.int(Type::U32, i128::from(n)));
        let unroll = self.random.of(&[Unroll::Auto, Unroll::Never]);
        let turns = turns as usize;
        self.counted_loop(Type::U32, bounds, unroll, uniform, turns, |g, _| {
            let index = g.get(at);
            g.read_in_turn(place, index, uniform);
            g.step(at, way);
        });
    }

    /// What a turn makes of the variable.
    fn step(&mut self, at: Variable, way: Way) {
        let was = self.get(at);
        let (op, by) = match way {
            Way::Halved if self.random.chance(50) => (BinaryOp::Shr, 1),
            Way::Halved => (BinaryOp::Div, 2),
            Way::Doubled => (BinaryOp::Mul, 2),
            Way::Less(by) | Way::Back(by) => (BinaryOp::Sub, by),
            Way::Along(by) => (BinaryOp::Add, by),
        };
        let by = self.int(at.ty, i128::from(by));
        let next = self.raw_binary(op, was, by);
        self.act(InstData::VarSet(at.var, next));
    }

    /// Reads an element, and at times meets the other threads.
    fn read_in_turn(&mut self, place: &Place, index: Value, uniform: bool) {
        let ptr = self.element_address(place, index);
        let value = self.load_at(place, ptr, false);
        self.mix_in(value);
        if uniform && self.random.chance(40) {
            self.act(InstData::Barrier);
        }
    }
}
