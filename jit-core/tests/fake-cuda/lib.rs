//! A stand-in for the CUDA driver library, for tests on machines without a GPU.
//!
//! Exports the entry points that Kiln resolves, backed by host memory, with checks that a real
//! driver makes (current context, live handles, launch limits), a plan of failures, and a ledger of
//! what is alive. The tests build it with `rustc --crate-type cdylib` and load a copy each, so every
//! test has a driver of its own. It runs no kernels: `fake_raise_fault` does what a faulting thread
//! does.
#![cfg(not(empty))]
#![allow(
    clippy::missing_safety_doc,
    reason = "the safety rules are those of the CUDA driver API"
)]
#![allow(non_snake_case, reason = "exported names are the driver's")]

mod captures;
mod control;
#[path = "../counting.rs"]
mod counting;
mod devices;
mod graphs;
mod launches;
mod memory;
mod modules;
mod occupancy;
mod order;
mod pools;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CString, c_int};
use std::sync::Mutex;

type Code = u32;
type Handle = usize;

const FATAL: &[u32] = &[
    4, 214, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 999,
];

#[derive(Default)]
struct State {
    version: c_int,
    devices: c_int,
    init_code: Code,
    total: usize,
    compute_mode: c_int,
    /// Fail the `nth` call from now whose name matches, with `code`.
    plan: Option<(String, u32, Code)>,
    failed: Option<CString>,
    calls: u64,
    /// How often each was called.
    calls_of: BTreeMap<String, u64>,
    /// After this many launches, every call returns the code.
    sticky_after: Option<(u32, Code)>,
    sticky: Code,
    /// The context that the code is of, where there are several.
    sticky_in: Handle,
    reject: Option<(Code, CString)>,
    memory: BTreeMap<u64, Vec<u64>>,
    lengths: BTreeMap<u64, usize>,
    /// The context that an allocation was made in.
    owners: BTreeMap<u64, Handle>,
    pinned: BTreeMap<usize, Vec<u64>>,
    /// Whether the device has no pools.
    without_pools: bool,
    pools: BTreeMap<Handle, pools::Pool>,
    /// The pool that an allocation is of.
    pooled: BTreeMap<u64, Handle>,
    modules: BTreeMap<Handle, String>,
    /// Machine code that is being made.
    links: BTreeMap<Handle, Vec<u8>>,
    /// How often some was made.
    linked: u64,
    functions: BTreeMap<Handle, modules::Function>,
    globals: BTreeMap<(Handle, String), Vec<u64>>,
    streams: BTreeSet<Handle>,
    events: BTreeMap<Handle, bool>,
    order: order::Order,
    captures: captures::Captures,
    graphs: graphs::Graphs,
    /// The most memory of the host that may be pinned.
    pinned_limit: Option<usize>,
    /// Copies of rows that lie apart, each by one call.
    row_copies: u64,
    /// Copies between contexts.
    peer_copies: u64,
    /// Cooperative launches, and questions for the best block.
    cooperative: u64,
    asked_for_block: u64,
    /// References to each device's primary context.
    retained: BTreeMap<c_int, u64>,
    /// How often a primary context was reset; the handles from before are nobody's.
    resets: usize,
    next: Handle,
    /// Whether a kernel runs that does not end.
    busy: bool,
    /// Whether launches take a while.
    slow: bool,
    /// Whether launches of kernels whose names have `_held` wait in the driver, and how many do.
    holds: bool,
    held: u64,
    last_launch: [u64; 8],
    /// The parameters of the last launch as they lie in its block; what is between them is 0.
    last_params: Vec<u8>,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

const CONTEXT: usize = 0xC0_0000;

thread_local! {
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

fn with<R>(body: impl FnOnce(&mut State) -> R) -> R {
    let mut guard = STATE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    body(guard.get_or_insert_with(|| State {
        version: 12080,
        devices: 1,
        total: 1 << 30,
        next: 0x1000,
        ..State::default()
    }))
}

/// A driver call: counted, failed where the plan says so, refused after a sticky error.
fn call(name: &str, needs_context: bool, body: impl FnOnce(&mut State) -> Code) -> Code {
    with(|state| {
        state.calls += 1;
        match state.calls_of.get_mut(name) {
            Some(count) => *count += 1,
            None => _ = state.calls_of.insert(name.to_owned(), 1),
        }
        if let Some((wanted, nth, code)) = &mut state.plan
            && (wanted == "*" || wanted == name)
        {
            *nth -= 1;
            if *nth == 0 {
                let code = *code;
                state.plan = None;
                state.failed = CString::new(name).ok();
                if FATAL.contains(&code) {
                    state.sticky = code;
                    state.sticky_in = if state.devices > 1 { CURRENT.get() } else { 0 };
                }
                return code;
            }
        }
        let is_lost = state.sticky != 0 && [0, CURRENT.get()].contains(&state.sticky_in);
        if needs_context && is_lost {
            return state.sticky;
        }
        if needs_context && !state.is_context(CURRENT.get()) {
            return 201;
        }
        match state.captures.refuse(name) {
            0 => body(state),
            code => code,
        }
    })
}

impl State {
    /// Ends the primary contexts, with all that is in them.
    fn begin_anew(&mut self) {
        self.resets += 1;
        self.sticky = 0;
        let lazy = self.order.lazy;
        self.order = order::Order::default();
        self.order.lazy = lazy;
        self.memory.clear();
        self.lengths.clear();
        self.owners.clear();
        self.pinned.clear();
        self.modules.clear();
        self.links.clear();
        self.functions.clear();
        self.globals.clear();
        self.streams.clear();
        self.events.clear();
    }

    /// Whether this is the primary context of a device.
    fn is_context(&self, handle: usize) -> bool {
        let first = CONTEXT + self.resets * 0x100;
        (first..first + self.devices as usize).contains(&handle)
    }

    fn handle(&mut self) -> Handle {
        self.next += 0x10;
        self.next
    }

    /// The host address of a device range that is inside one allocation or global.
    fn range(&self, address: u64, bytes: usize) -> Option<*mut u8> {
        let inside = |start: u64, length: usize| {
            address >= start
                && address - start <= length as u64
                && bytes as u64 <= length as u64 - (address - start)
        };
        let allocated = self
            .lengths
            .iter()
            .any(|(start, length)| inside(*start, *length));
        let global = self
            .globals
            .values()
            .any(|words| inside(words.as_ptr() as u64, words.len() * 8));
        (allocated || global).then_some(address as *mut u8)
    }

    fn used(&self) -> usize {
        let kept = self.pools.values().map(|pool| pool.kept);
        self.lengths.values().chain(&kept.collect::<Vec<_>>()).sum()
    }
}
