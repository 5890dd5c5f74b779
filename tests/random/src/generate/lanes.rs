//! Memory in which the lanes of a warp exchange values: each has a slot of its own, and synchronization of
//! the warp orders what lanes do there.
//!
//! All that is done with a slot is done in *sections*, by lanes of one member mask that the slot's lane is
//! in, too. A section ends with a synchronization of these lanes, after the last of them has read; so what
//! any lane does there later, in a section with any mask, comes after it.

use kiln_jit_core::ir::{BinaryOp, CompareOp, InstData, Module, Type, Value};

use super::Generator;
use super::launch::Plan;
use super::memory::Place;
use super::warp::Members;
use crate::random::Random;

/// What is planned of a slot for each thread.
#[derive(Copy, Clone, Debug)]
pub(super) struct SlotsPlan {
    element: Type,
    /// The parameter with the slots of all threads; else those of a block are in shared memory.
    param: Option<usize>,
}

/// A slot for each thread.
#[derive(Copy, Clone, Debug)]
pub(super) struct Slots {
    place: Place,
    /// The index of the thread's slot; those of its warp are beside it, in the order of lanes.
    own: Value,
}

impl Plan {
    /// Memory for the lanes of warps.
    pub(super) fn slots(&mut self, random: &mut Random, module: &mut Module) -> SlotsPlan {
        let (element, _) = self.tile(random, module);
        let total = self.total();
        let global = random.chance(65);
        let param = global.then(|| self.apart(random, module, "lanes", (element, total), false));
        SlotsPlan { element, param }
    }
}

impl Generator {
    /// The slots of lanes, each written by its own before others can look at it.
    pub(super) fn declare_slots(&mut self, thread: Value, global: Value) {
        let threads = self.plan.threads();
        for plan in self.plan.slots.clone() {
            let slots = match plan.param {
                Some(param) => Slots {
                    place: self.place_apart(param),
                    own: global,
                },
                None => {
                    let place = self.static_shared(plan.element, threads);
                    let value = self.expr(plan.element, 1, false);
                    let ptr = self.element_address(&place, thread);
                    self.store_at(&place, ptr, value);
                    Slots { place, own: thread }
                }
            };
            self.frame.slots.push(slots);
        }
        // One lane may write the slots of others.
        if self.plan.slots.iter().any(|plan| plan.param.is_none()) {
            let mask = self.member_mask(Members::All);
            self.synchronize(mask);
        }
    }

    /// Lanes of the warp write slots, synchronize, and read what others have written.
    pub(super) fn slots_statement(&mut self) {
        let Some(members) = self.frame.members else {
            return self.assign_statement();
        };
        let slots = self.random.of(&self.frame.slots);
        let mask = self.member_mask(members);
        let here = self.lanes_here(mask);
        let lane = self.warp_row("lane_id", &[], Type::U32);
        let first = self.raw_binary(BinaryOp::Sub, slots.own, lane);
        // One lane may write what all look at.
        let leads = self.random.chance(40);
        let other = match leads {
            true => {
                let at = self.random.within(0, 3) as i128;
                self.int(Type::U32, at)
            }
            false => self.any_lane(lane),
        };
        let other = self.lane_among(here, other, lane);
        let index = self.raw_binary(BinaryOp::Add, first, other);
        let ptr = self.element_address(&slots.place, index);
        // Who keeps what it has seen here gives the old value below.
        if self.random.chance(65) {
            self.synchronize(mask);
            let value = self.load_slot(&slots, ptr);
            self.mix_in(value);
            self.synchronize(mask);
        }
        if leads {
            let leader = self.is_lowest(here);
            self.if_(leader, |g| {
                let value = g.expr(slots.place.element, 2, false);
                g.store_at(&slots.place, ptr, value);
            });
        } else if self.random.chance(50) {
            self.write_slot(&slots, slots.own);
        } else {
            let cond = self.condition(1, false);
            self.if_(cond, |g| g.write_slot(&slots, slots.own));
        }
        self.synchronize(mask);
        let value = self.load_slot(&slots, ptr);
        self.mix_in(value);
        if self.random.chance(30) {
            let other = self.any_lane(lane);
            let other = self.lane_among(here, other, lane);
            let index = self.raw_binary(BinaryOp::Add, first, other);
            let ptr = self.element_address(&slots.place, index);
            let value = self.load_slot(&slots, ptr);
            self.mix_in(value);
        }
        self.synchronize(mask);
    }

    fn write_slot(&mut self, slots: &Slots, index: Value) {
        let value = self.expr(slots.place.element, 2, false);
        let ptr = self.element_address(&slots.place, index);
        self.store_at(&slots.place, ptr, value);
    }

    fn load_slot(&mut self, slots: &Slots, ptr: Value) -> Value {
        let value = self.load_at(&slots.place, ptr, false);
        self.frame.set_uniform(value, false);
        value
    }

    fn synchronize(&mut self, mask: Value) {
        let sync = self.warp_data("sync", &[mask]);
        self.act(sync);
    }

    /// The number of a lane, often of another one.
    fn any_lane(&mut self, lane: Value) -> Value {
        let [last, one] = [31, 1].map(|n| self.int(Type::U32, n));
        let other = match self.random.below(4) {
            0 => self.expr(Type::U32, 1, false),
            1 => {
                let at = self.random.below(32) as i128;
                self.int(Type::U32, at)
            }
            2 => self.raw_binary(BinaryOp::Xor, lane, one),
            _ => self.raw_binary(BinaryOp::Add, lane, one),
        };
        self.raw_binary(BinaryOp::And, other, last)
    }

    /// A lane of a mask: `other` if it is in, else `lane`, which is.
    fn lane_among(&mut self, here: Value, other: Value, lane: Value) -> Value {
        let one = self.int(Type::U32, 1);
        let bit = self.raw_binary(BinaryOp::Shr, here, other);
        let bit = self.raw_binary(BinaryOp::And, bit, one);
        let cond = self.compare(CompareOp::Eq, bit, one);
        let (if_true, if_false) = (other, lane);
        let choice = InstData::Select {
            cond,
            if_true,
            if_false,
        };
        self.raw(choice, Type::U32)
    }

    /// Whether the lane is the lowest one of a mask.
    fn is_lowest(&mut self, here: Value) -> Value {
        let below = self.warp_row("lanemask_lt", &[], Type::U32);
        let lower = self.raw_binary(BinaryOp::And, here, below);
        let zero = self.int(Type::U32, 0);
        self.compare(CompareOp::Eq, lower, zero)
    }
}
