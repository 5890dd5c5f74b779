//! Running ops: blocks in order, threads of a block in turn from barrier to barrier.

use kiln_ir::fault::FaultRecord;
use kiln_ir::named_barrier::{NamedBarriers, Ticket};
use kiln_ir::row_panic::RowPanic;
use kiln_ir::stop::Stop;
use kiln_ir::{Ordering, ThreadPosition, WARP_LANES};

use super::check::{AtomicAccess, Checker, Off, On, Touch, Watched};
use super::flatten::Program;
use super::memory::{Arena, Memory, Refused, WORD_PAIR, many};
use super::named;
use super::ops::{Op, OpIndex, Reg, number};
use super::warp::{self, Lane};
use super::{InterpretError, InterpretLaunch};
use crate::checks::{Access, Checks, Finding};

/// What uninitialized shared memory is filled with, so that relying on it shows.
pub(super) const UNINITIALIZED: u8 = 0xAA;

/// A thread between two turns.
#[derive(Copy, Clone, Default)]
pub(super) struct Thread {
    pub(super) pc: OpIndex,
    pub(super) ended: bool,
    iterations: u64,
    /// What the thread waits for; nothing while it can run on.
    pub(super) waits: Option<Pause>,
}

/// Why a thread's turn is over.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Pause {
    Barrier,
    /// One thread of each block.
    Grid,
    /// The operation of its warp that it is at.
    Warp,
    /// The other lanes of its warp, to come to a named barrier.
    Named,
    /// The named barrier that its warp has come to.
    Arrived(Ticket),
    Ended,
}

/// What goes wrong in a thread, before it is known where.
pub(super) enum Trouble {
    Access(Refused, u64, u8),
    StepLimit,
    /// An unchecked one that does not hold.
    Assumption,
    Stopped,
    RowPanic(RowPanic),
    /// Nothing that the warp waits at can be executed, because of this.
    Warp(String),
    Found(Box<Finding>),
}

/// The memory of a launch that ops address by offset.
struct Bases {
    shared: u64,
    dynamic: u64,
    dynamic_bytes: u64,
    local: u64,
    constants: u64,
    params: u64,
}

/// Executes one launch.
pub(super) struct Runner<'a, C> {
    pub(super) program: &'a Program,
    pub(super) launch: &'a InterpretLaunch<'a>,
    pub(super) checker: C,
    step_limit: Option<u64>,
    memory: Memory,
    bases: Bases,
    /// The named barriers of the block that runs.
    pub(super) named: NamedBarriers,
    stop: &'a Stop,
    pub(super) fault: Option<FaultRecord>,
}

/// The memory of the block that runs.
pub(super) struct BlockMemory {
    pub(super) shared: Arena,
    pub(super) local: Arena,
}

/// How far a block has come.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Reached {
    End,
    /// A wait for all of the grid.
    Grid,
}

/// Runs a launch.
///
/// # Safety
/// As [`super::InterpretedKernel::run`].
pub(super) unsafe fn run(
    program: &Program,
    launch: &InterpretLaunch<'_>,
    device: &[(u64, u64)],
    checks: &Checks,
    stop: &Stop,
) -> Result<Option<FaultRecord>, InterpretError> {
    let threads = launch.block.iter().map(|&n| n as usize).product::<usize>();
    let dynamic = program.shared_bytes.next_multiple_of(16);
    let shared = Arena::new(
        dynamic as usize + launch.dynamic_shared as usize,
        UNINITIALIZED,
    )?;
    let local = Arena::new(program.local_bytes as usize * threads, 0)?;
    let constants = Arena::from_bytes(&program.constants)?;
    let params = Arena::from_bytes(launch.params)?;
    let own = [
        shared.range(),
        local.range(),
        constants.range(),
        params.range(),
    ];
    // SAFETY: the arenas live until the end of this function and nobody else has them; the caller
    // gives device memory that lives during the launch and that only kernels access meanwhile.
    let memory = unsafe { Memory::new(device.iter().copied().chain(own)) };
    let bases = Bases {
        shared: shared.range().0,
        dynamic: shared.range().0 + u64::from(dynamic),
        dynamic_bytes: launch.dynamic_shared.into(),
        local: local.range().0,
        constants: constants.range().0,
        params: params.range().0,
    };
    let watched = Watched {
        shared: shared.range(),
        dynamic: bases.dynamic,
        local: local.range(),
        device,
    };
    let own = BlockMemory { shared, local };
    if checks.is_none() {
        return Runner::new(program, launch, memory, bases, Off, stop).grid(own);
    }
    let checker = On::new(program, launch, checks, &watched)?;
    let mut runner = Runner::new(program, launch, memory, bases, checker, stop);
    runner.step_limit = checks.iterations().or(launch.step_limit);
    runner.grid(own)
}

impl<'a, C: Checker> Runner<'a, C> {
    fn new(
        program: &'a Program,
        launch: &'a InterpretLaunch<'a>,
        memory: Memory,
        bases: Bases,
        checker: C,
        stop: &'a Stop,
    ) -> Self {
        Runner {
            program,
            launch,
            checker,
            step_limit: launch.step_limit,
            memory,
            bases,
            named: NamedBarriers::default(),
            stop,
            fault: None,
        }
    }

    /// All blocks, in the order of the launch.
    fn grid(mut self, mut own: BlockMemory) -> Result<Option<FaultRecord>, InterpretError> {
        let ran = match self.program.waits_for_grid {
            true => self.together(&mut own),
            false => self.one_by_one(&mut own.shared),
        };
        match ran {
            // The thread that ended early may be the cause of what was found, or waited for.
            Err(InterpretError::Finding(_) | InterpretError::DesertedGrid(_))
                if self.fault.is_some() => {}
            result => result?,
        }
        Ok(self.fault)
    }

    /// Each block to its end before the next one begins.
    fn one_by_one(&mut self, shared: &mut Arena) -> Result<(), InterpretError> {
        let (mut file, mut states) = self.threads()?;
        for (place, block) in self.blocks().enumerate() {
            if place > 0 {
                shared.refill(UNINITIALIZED);
            }
            self.start(block, &mut file, &mut states)?;
            self.go_on(block, &mut file, &mut states)?;
        }
        Ok(())
    }

    /// The registers and states of the threads of a block.
    pub(super) fn threads(&self) -> Result<(Vec<u64>, Vec<Thread>), InterpretError> {
        let threads = self.launch.block.iter().map(|&n| n as usize).product();
        let registers = self.program.registers.max(1) as usize;
        let file = many(0u64, registers * threads)?;
        Ok((file, vec![Thread::default(); threads]))
    }

    /// The blocks of the launch, in its order.
    pub(super) fn blocks(&self) -> impl Iterator<Item = [u32; 3]> + use<C> {
        let [gx, gy, gz] = self.launch.grid.map(u64::from);
        let total = gx * gy * gz;
        let order = self.launch.order.of(total);
        (0..total).map(move |place| {
            let n = order.as_ref().map_or(place, |order| order.at(place));
            let [x, y] = [n, n / gx];
            [x % gx, y % gy, y / gy].map(|n| n as u32)
        })
    }

    /// Puts the threads of a block at their beginning.
    pub(super) fn start(
        &mut self,
        block: [u32; 3],
        file: &mut [u64],
        states: &mut [Thread],
    ) -> Result<(), InterpretError> {
        let registers = self.program.registers.max(1) as usize;
        self.checker.start_block(block);
        if self.stop.is_asked() {
            let position = self.position(block, 0);
            return Err(self.error(Trouble::Stopped, 0, &position));
        }
        states.fill(Thread::default());
        self.named = NamedBarriers::default();
        for regs in file.chunks_exact_mut(registers) {
            for &(reg, offset, bytes) in &self.program.params {
                let at = offset as usize;
                let mut word = [0; 8];
                let bytes = usize::from(bytes);
                word[..bytes].copy_from_slice(&self.launch.params[at..at + bytes]);
                regs[reg as usize] = u64::from_le_bytes(word);
            }
        }
        Ok(())
    }

    /// Takes the threads of a block to their ends, or to where the block waits for the grid: those that wait for that go
    /// on at the next call.
    pub(super) fn go_on(
        &mut self,
        block: [u32; 3],
        file: &mut [u64],
        states: &mut [Thread],
    ) -> Result<Reached, InterpretError> {
        let registers = self.program.registers.max(1) as usize;
        for state in states.iter_mut() {
            state.waits = state.waits.filter(|&pause| pause != Pause::Grid);
        }
        // Each round takes every thread that has not ended to its next barrier, warp after warp.
        while states.iter().any(|t| !t.ended) {
            let lanes = file.chunks_mut(WARP_LANES * registers);
            for (n, (states, file)) in states.chunks_mut(WARP_LANES).zip(lanes).enumerate() {
                self.warp(block, (n * WARP_LANES) as u32, file, states)?;
            }
            if states.iter().any(|t| t.waits == Some(Pause::Grid)) {
                return Ok(Reached::Grid);
            }
            if self.open_named(block, states)? {
                continue;
            }
            if C::ON {
                let waiting = states.iter().enumerate().filter(|(_, t)| !t.ended);
                self.checker
                    .barrier(waiting.map(|(n, t)| (n as u32, t.pc - 1)))?;
            }
            for state in states.iter_mut() {
                state.waits = None;
            }
        }
        Ok(Reached::End)
    }

    /// Takes the threads of a warp, of which `first` is the first one, to their next barrier.
    fn warp(
        &mut self,
        block: [u32; 3],
        first: u32,
        file: &mut [u64],
        states: &mut [Thread],
    ) -> Result<(), InterpretError> {
        let registers = self.program.registers.max(1) as usize;
        loop {
            let lanes = states.iter_mut().zip(file.chunks_exact_mut(registers));
            for (n, (state, regs)) in (first..).zip(lanes) {
                if state.ended || state.waits.is_some() {
                    continue;
                }
                let position = self.position(block, n);
                match self.turn(state, regs, n.into(), &position) {
                    Ok(Pause::Ended) => state.ended = true,
                    Ok(pause) => state.waits = Some(pause),
                    Err(trouble) => return Err(self.error(trouble, state.pc, &position)),
                }
            }
            if states.iter().any(|t| t.waits == Some(Pause::Warp)) {
                self.meet(block, first, file, states)?;
            } else if !self.come_to_named(block, first, file, states)? {
                return Ok(());
            }
        }
    }

    /// Executes an operation of a warp for the lanes that meet at it, and lets them run on.
    fn meet(
        &mut self,
        block: [u32; 3],
        first: u32,
        file: &mut [u64],
        states: &mut [Thread],
    ) -> Result<(), InterpretError> {
        let (program, registers) = (self.program, self.program.registers.max(1) as usize);
        let mut lanes = [Lane::Ended; WARP_LANES];
        let regs = file.chunks_exact(registers);
        for (lane, (state, regs)) in lanes.iter_mut().zip(states.iter().zip(regs)) {
            *lane = match state.waits {
                _ if state.ended => Lane::Ended,
                Some(Pause::Warp) => {
                    let op = warp::operation(program, state.pc);
                    let mask = op.and_then(|op| op.args.first());
                    Lane::Waits(state.pc, mask.map(|&mask| regs[mask as usize] as u32))
                }
                // A thread that waits for the block has its barrier behind it.
                _ => Lane::Barrier(state.pc.saturating_sub(1)),
            };
        }
        let meeting = warp::meet(program, &lanes).map_err(|stuck| {
            let trouble = Trouble::Warp(stuck.what);
            self.error(
                trouble,
                stuck.at,
                &self.position(block, first + stuck.lane as u32),
            )
        })?;
        if let Some(op) = warp::operation(program, meeting.at) {
            let executed = RowPanic::catch(op.name, || {
                warp::execute(op, meeting, file, registers);
            });
            executed.map_err(|panic| panic.in_kernel(&program.name))?;
            if C::ON && op.orders_memory {
                self.checker.synchronize(first, meeting.lanes);
            }
        }
        for (n, state) in states.iter_mut().enumerate() {
            if meeting.lanes >> n & 1 == 1 {
                state.pc += 1;
                state.waits = None;
            }
        }
        Ok(())
    }

    pub(super) fn position(&self, block: [u32; 3], n: u32) -> ThreadPosition {
        let [bx, by, _] = self.launch.block;
        ThreadPosition {
            thread: [n % bx, n / bx % by, n / bx / by],
            block,
            block_dim: self.launch.block,
            grid_dim: self.launch.grid,
        }
    }

    /// Runs one thread until it waits or ends.
    // flat match
    fn turn(
        &mut self,
        state: &mut Thread,
        regs: &mut [u64],
        n: u64,
        position: &ThreadPosition,
    ) -> Result<Pause, Trouble> {
        let program = self.program;
        loop {
            let op = program.ops[state.pc as usize];
            let r = |reg: u32| regs[reg as usize];
            let touch = |access| Touch {
                pc: state.pc,
                thread: n as u32,
                access,
            };
            match op {
                Op::Const { d, bits } => regs[d as usize] = bits,
                Op::Move { d, s, n: 1 } => regs[d as usize] = r(s),
                Op::Move { d, s, n } => {
                    regs.copy_within(s as usize..(s + n) as usize, d as usize);
                }
                Op::Zero { d, n } => regs[d as usize..(d + n) as usize].fill(0),
                Op::Unary { f, d, a } => regs[d as usize] = f(r(a)),
                Op::Binary { f, d, a, b } => regs[d as usize] = f(r(a), r(b)),
                Op::Select { d, c, a, b, n } => {
                    let s = if r(c) != 0 { a } else { b } as usize;
                    regs.copy_within(s..s + usize::from(n), d as usize);
                }
                Op::Load {
                    d,
                    p,
                    offset,
                    bytes,
                } => {
                    let address = r(p).wrapping_add(offset.into());
                    let t = touch(Access::Read);
                    regs[d as usize] =
                        self.access(t, address, bytes, |m| m.read(address, bytes))?;
                }
                Op::Store {
                    p,
                    v,
                    offset,
                    bytes,
                } => {
                    let (address, value) = (r(p).wrapping_add(offset.into()), r(v));
                    let t = touch(Access::Write);
                    self.access(t, address, bytes, |m| m.write(address, bytes, value))?;
                }
                Op::Scale { d, p, i, size } => {
                    regs[d as usize] = r(p).wrapping_add(r(i).wrapping_mul(size.into()));
                }
                Op::Offset { d, p, offset } => regs[d as usize] = r(p).wrapping_add(offset),
                Op::Check { i, len, site } => {
                    if r(i) >= r(len) {
                        self.note_fault(site, r(i), r(len), position);
                        return Ok(Pause::Ended);
                    }
                }
                Op::Assume { cond, site } => {
                    if r(cond) == 0 {
                        let site = site.ok_or(Trouble::Assumption)?;
                        self.note_fault(site, 0, 0, position);
                        return Ok(Pause::Ended);
                    }
                }
                Op::Assert { cond, site, values } => {
                    if r(cond) == 0 {
                        let [left, right] = values.map(r);
                        self.note_fault(site, left, right, position);
                        return Ok(Pause::Ended);
                    }
                }
                Op::Shared { d, offset } => {
                    regs[d as usize] = self.bases.shared + u64::from(offset);
                }
                Op::DynamicShared { d, size } => {
                    regs[d as usize] = self.bases.dynamic;
                    regs[d as usize + 1] = self.bases.dynamic_bytes / u64::from(size);
                }
                Op::Local { d, offset } => {
                    let start = self.bases.local + n * u64::from(program.local_bytes);
                    regs[d as usize] = start + u64::from(offset);
                }
                Op::Clear { p, bytes } => {
                    let (address, bytes) = (r(p), u64::from(bytes));
                    let cleared = self.memory.clear(address, bytes);
                    cleared.map_err(|refused| Trouble::Access(refused, address, u8::MAX))?;
                }
                Op::Constant { d, offset } => {
                    regs[d as usize] = self.bases.constants + u64::from(offset);
                }
                Op::Param { d, offset } => {
                    regs[d as usize] = self.bases.params + u64::from(offset);
                }
                Op::Position { row, f, d } => {
                    let value = RowPanic::catch(row, || f(position));
                    regs[d as usize] = value.map_err(Trouble::RowPanic)?;
                }
                Op::Pure {
                    row,
                    f,
                    d,
                    args,
                    n,
                    scalar,
                } => {
                    let values = args.map(r);
                    let value = RowPanic::catch(row, || f(scalar, &values[..usize::from(n)]));
                    regs[d as usize] = value.map_err(Trouble::RowPanic)?;
                }
                Op::AtomicLoad {
                    d,
                    p,
                    bytes,
                    ordering,
                } => {
                    let (address, t) = (r(p), touch(Access::AtomicRead));
                    regs[d as usize] =
                        self.access(t, address, bytes, |m| m.read(address, bytes))?;
                    self.note_atomic(t, address, ordering, true);
                }
                Op::AtomicStore {
                    p,
                    v,
                    bytes,
                    ordering,
                } => {
                    let (address, value, t) = (r(p), r(v), touch(Access::AtomicWrite));
                    self.access(t, address, bytes, |m| m.write(address, bytes, value))?;
                    self.note_atomic(t, address, ordering, true);
                }
                Op::Atomic {
                    f,
                    d,
                    p,
                    v,
                    bytes,
                    ordering,
                } => {
                    let (address, value) = (r(p), r(v));
                    let t = touch(Access::Atomic);
                    regs[d as usize] = self.access(t, address, bytes, |m| {
                        let old = m.read(address, bytes)?;
                        m.write(address, bytes, f(old, value))?;
                        Ok(old)
                    })?;
                    self.note_atomic(t, address, ordering, true);
                }
                Op::Fence { ordering } => {
                    if C::ON {
                        self.checker.fence(n as u32, ordering);
                    }
                }
                Op::Cas {
                    d,
                    p,
                    expected,
                    new,
                    bytes,
                    ordering,
                } => {
                    let (address, expected, new) = (r(p), r(expected), r(new));
                    let t = touch(Access::Atomic);
                    regs[d as usize] = self.access(t, address, bytes, |m| {
                        let old = m.read(address, bytes)?;
                        if old == expected {
                            m.write(address, bytes, new)?;
                        }
                        Ok(old)
                    })?;
                    let swapped = regs[d as usize] == expected;
                    self.note_atomic(t, address, ordering, swapped);
                }
                Op::SwapWords {
                    d,
                    p,
                    expected,
                    new,
                    ordering,
                } => {
                    let pair = |reg: Reg| [r(reg), r(reg + 1)];
                    let (address, expected, new) = (r(p), expected.map(pair), pair(new));
                    let t = touch(Access::Atomic);
                    let old = self.access(t, address, WORD_PAIR, |m| {
                        m.swap_words(address, expected, new)
                    })?;
                    let d = d as usize;
                    [regs[d], regs[d + 1]] = old;
                    let swapped = expected.is_none_or(|expected| expected == old);
                    self.note_atomic(t, address, ordering, swapped);
                }
                Op::Jump { to } => {
                    if to <= state.pc {
                        self.count(state)?;
                    }
                    state.pc = to;
                    continue;
                }
                Op::Unless { c, to } => {
                    if r(c) == 0 {
                        state.pc = to;
                        continue;
                    }
                }
                Op::ForEnter { i, bounds, to } => {
                    let at = |reg| number(bounds.scalar, regs[reg as usize]);
                    let (start, end, step) = (at(i), at(bounds.end), at(bounds.step));
                    let enters = if step > 0 {
                        start < end
                    } else {
                        step < 0 && start > end
                    };
                    if !enters {
                        state.pc = to;
                        continue;
                    }
                }
                Op::ForNext { i, bounds, to } => {
                    let at = |reg| number(bounds.scalar, regs[reg as usize]);
                    let (end, step) = (at(bounds.end), at(bounds.step));
                    // In 128 bits nothing overflows; beyond the end is beyond the type, too.
                    let next = at(i) + step;
                    if if step > 0 { next < end } else { next > end } {
                        self.count(state)?;
                        let bits = bounds.scalar.bits();
                        let mask = if bits == 64 {
                            u64::MAX
                        } else {
                            (1 << bits) - 1
                        };
                        regs[i as usize] = next as u64 & mask;
                        state.pc = to;
                        continue;
                    }
                }
                Op::Barrier => {
                    state.pc += 1;
                    return Ok(Pause::Barrier);
                }
                Op::Grid => {
                    state.pc += 1;
                    return Ok(Pause::Grid);
                }
                Op::NamedBarrier { .. } => {
                    state.pc += 1;
                    return Ok(Pause::Named);
                }
                Op::Warp { .. } => return Ok(Pause::Warp),
                Op::End => return Ok(Pause::Ended),
            }
            state.pc += 1;
        }
    }

    #[inline]
    fn access<T>(
        &mut self,
        touch: Touch,
        address: u64,
        bytes: u8,
        f: impl FnOnce(&mut Memory) -> Result<T, Refused>,
    ) -> Result<T, Trouble> {
        let value =
            f(&mut self.memory).map_err(|refused| Trouble::Access(refused, address, bytes))?;
        if C::ON {
            let found = self.checker.access(touch, address, bytes);
            found.map_err(Trouble::Found)?;
        }
        Ok(value)
    }

    /// Tells the checker of an atomic access, which a compare-and-swap that fails only reads in.
    fn note_atomic(&mut self, touch: Touch, address: u64, ordering: Ordering, succeeds: bool) {
        if C::ON {
            let access = AtomicAccess {
                address,
                ordering,
                reads: touch.access != Access::AtomicWrite,
                writes: touch.access != Access::AtomicRead && succeeds,
            };
            self.checker.atomic(touch.thread, access);
        }
    }

    fn count(&self, state: &mut Thread) -> Result<(), Trouble> {
        state.iterations += 1;
        if self.stop.is_asked() {
            return Err(Trouble::Stopped);
        }
        match self.step_limit {
            Some(limit) if state.iterations > limit => Err(Trouble::StepLimit),
            _ => Ok(()),
        }
    }

    #[cold]
    fn note_fault(&mut self, site: u32, index: u64, length: u64, position: &ThreadPosition) {
        let kernel_tag = self.launch.kernel_tag;
        self.fault.get_or_insert(FaultRecord {
            state: 1,
            site,
            kernel_tag,
            index,
            length,
            block: position.block,
            thread: position.thread,
            padding: [0; 2],
        });
    }

    #[cold]
    pub(super) fn error(
        &self,
        trouble: Trouble,
        pc: OpIndex,
        position: &ThreadPosition,
    ) -> InterpretError {
        let kernel = self.program.name.clone();
        let line = self.program.lines[pc as usize] as usize;
        let location = self.program.locations[line].clone();
        let (block, thread) = (position.block, position.thread);
        match trouble {
            Trouble::Found(finding) => finding.into(),
            Trouble::StepLimit
                if let Some(found) = self.checker.step_limit(position.linear(), pc) =>
            {
                found.into()
            }
            Trouble::StepLimit => InterpretError::StepLimit {
                kernel,
                location,
                limit: self.step_limit.unwrap_or_default(),
            },
            Trouble::Assumption => InterpretError::Assumption {
                kernel,
                location,
                block,
                thread,
            },
            Trouble::Stopped => InterpretError::Stopped { kernel, location },
            Trouble::RowPanic(panic) => panic.in_kernel(&kernel).into(),
            Trouble::Warp(what) => InterpretError::WarpOperation {
                kernel,
                location,
                block,
                thread,
                operation: named::operation(self.program, pc),
                what,
            },
            Trouble::Access(Refused::Illegal, address, bytes) => InterpretError::IllegalAddress {
                kernel,
                location,
                block,
                thread,
                address,
                bytes: bytes.into(),
            },
            Trouble::Access(Refused::Misaligned, address, bytes) => {
                InterpretError::MisalignedAddress {
                    kernel,
                    location,
                    block,
                    thread,
                    address,
                    bytes: bytes.into(),
                }
            }
        }
    }
}
