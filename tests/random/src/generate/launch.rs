//! The plan of a case: its launch, its parameters with their data, and the kernel's frame.

use kiln_jit_core::ir::{
    AddressSpace, AtomicOp, BinaryOp, Constant, Function, FunctionKind, GlobalData, GlobalId,
    InstData, LaunchBounds, Location, Module, Passing, Scalar, Type, TypeData, Value,
};

use super::control::Returns;
use super::gather::{ArrivalsPlan, ChainPlan};
use super::lanes::SlotsPlan;
use super::mail::MailPlan;
use super::memory::{Access, Base, Place};
use super::types::{self, Types};
use super::warp::Members;
use super::{Budget, Frame, Generator};
use crate::case::{Arg, Case};
use crate::random::Random;

/// How large one shared array is; there are up to three, and a block has 48 KiB everywhere (CUDA
/// guide, "Technical Specifications per Compute Capability").
const MAX_TILE_BYTES: u64 = 12 << 10;

/// What a parameter is for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// A slice that is only read, of this many elements.
    Input(u64),
    /// A slice in which each thread has one place, by this permutation.
    Output(Permutation),
    /// A slice with an array for each block, in which its threads exchange values as in shared
    /// memory: the type and the number of the array's elements.
    Tile(Type, u64),
    /// A slice of so many elements that atomics of one operation work on.
    Accumulator(AtomicOp, u64),
    /// A slice that belongs to one way of talking, and that no other statement touches.
    Apart,
    /// A value.
    Value,
    /// A struct behind a read-only pointer.
    Struct,
}

/// A one-to-one map of thread indices below some count to places below some length.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Permutation {
    /// The index itself.
    Identity,
    /// The last first.
    Reverse(u64),
    /// Exclusive or with a number; the length is a power of two.
    Xor(u64, u64),
    /// Times an odd number plus another, modulo a power of two.
    Odd(u64, u64, u64),
    /// Plus a number, modulo the count.
    Rotate(u64, u64),
}

impl Permutation {
    /// A permutation of `count` indices.
    pub(super) fn new(random: &mut Random, count: u64) -> Permutation {
        let power = count.next_power_of_two();
        let any = random.below(power as usize) as u64;
        match random.below(6) {
            0 => Permutation::Reverse(count),
            1 => Permutation::Xor(any, power),
            2 => Permutation::Odd(any | 1, random.below(power as usize) as u64, power),
            3 => Permutation::Rotate(any % count, count),
            _ => Permutation::Identity,
        }
    }

    /// How many places there must be for `count` indices.
    pub(super) fn places(self, count: u64) -> u64 {
        match self {
            Permutation::Xor(_, power) | Permutation::Odd(_, _, power) => power,
            _ => count,
        }
    }
}

/// A parameter with its data.
#[derive(Clone, Debug)]
pub(super) struct ParamPlan {
    pub(super) name: String,
    pub(super) ty: Type,
    pub(super) role: Role,
    pub(super) passing: Passing,
    arg: Arg,
    noalias: bool,
}

/// What is decided before code is generated.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) types: Types,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) params: Vec<ParamPlan>,
    buffers: Vec<Vec<u8>>,
    pub(super) globals: Vec<GlobalId>,
    /// The element types and the lengths of static shared memory.
    pub(super) shared: Vec<(Type, u64)>,
    /// The element type and the length of dynamic shared memory.
    pub(super) dynamic: Option<(Type, u64)>,
    /// Whether there are operations of a warp.
    pub(super) warps: bool,
    /// Whether atomic loads and stores stand where plain ones would do.
    pub(super) atomics: bool,
    /// Memory for lanes of a warp.
    pub(super) slots: Vec<SlotsPlan>,
    pub(super) mail: Option<MailPlan>,
    pub(super) arrivals: Option<ArrivalsPlan>,
    pub(super) chain: Option<ChainPlan>,
}

impl Plan {
    pub(super) fn new(random: &mut Random, module: &mut Module, budget: &Budget) -> Plan {
        let types = Types::new(random, module, budget);
        let (grid, block) = shape(random, budget);
        let mut plan = Plan {
            types,
            grid,
            block,
            params: Vec::new(),
            buffers: Vec::new(),
            globals: Vec::new(),
            shared: Vec::new(),
            dynamic: None,
            warps: random.chance(budget.warps),
            atomics: random.chance(budget.talk.atomics),
            slots: Vec::new(),
            mail: None,
            arrivals: None,
            chain: None,
        };
        plan.outputs(random, module);
        plan.inputs(random, module);
        plan.values(random, module);
        plan.tables(random, module);
        if random.chance(budget.talk.tiles) {
            plan.tiles(random, module);
        }
        plan.talk(random, module, budget);
        for _ in 0..random.weighted(&[(50, 0), (35, 1), (15, 2)]) {
            let tile = plan.tile(random, module);
            plan.shared.push(tile);
        }
        if random.chance(25) {
            let ty = plan.types.scalar(random);
            let len = shared_len(random, plan.threads());
            plan.dynamic = Some((ty, len));
        }
        plan
    }

    /// The type and the number of elements of an array for a block.
    pub(super) fn tile(&self, random: &mut Random, module: &Module) -> (Type, u64) {
        let ty = self.types.any(random);
        let len = shared_len(random, self.threads());
        let size = module.types.layout(ty).map_or(0, |l| l.size);
        match size * len <= MAX_TILE_BYTES {
            true => (ty, len),
            false => (self.types.scalar(random), len),
        }
    }

    /// The ways in which threads talk that have memory of their own.
    fn talk(&mut self, random: &mut Random, module: &mut Module, budget: &Budget) {
        let talk = budget.talk;
        if self.warps && random.chance(talk.lanes) {
            for _ in 0..random.within(1, 2) {
                let slots = self.slots(random, module);
                self.slots.push(slots);
            }
        }
        if random.chance(talk.mail) {
            self.mail = Some(self.mail(random, module));
        }
        if random.chance(talk.arrivals) {
            self.arrivals = Some(self.arrivals(random, module));
        }
        if self.blocks() > 1 && random.chance(talk.chains) {
            self.chain = Some(self.chain(random, module));
        }
    }

    /// A slice that belongs to one way of talking; its parameter's position.
    pub(super) fn apart(
        &mut self,
        random: &mut Random,
        module: &mut Module,
        name: &str,
        (element, len): (Type, u64),
        zero: bool,
    ) -> usize {
        let role = Role::Apart;
        self.slice(random, module, name.to_owned(), (element, role, len));
        if zero && let Some(bytes) = self.buffers.last_mut() {
            bytes.fill(0);
        }
        self.params.len() - 1
    }

    /// Global memory in which the threads of a block exchange values.
    fn tiles(&mut self, random: &mut Random, module: &mut Module) {
        let blocks = self.blocks();
        for n in 0..random.weighted(&[(3, 1), (1, 2)]) {
            let (element, len) = self.tile(random, module);
            let array = module.types.array(element, len);
            let role = Role::Tile(element, len);
            self.slice(random, module, format!("tile{n}"), (array, role, blocks));
        }
    }

    /// Threads of a block.
    pub(super) fn threads(&self) -> u64 {
        self.block.iter().map(|&n| u64::from(n)).product()
    }

    /// Blocks of the launch.
    pub(super) fn blocks(&self) -> u64 {
        self.grid.iter().map(|&n| u64::from(n)).product()
    }

    /// Threads of the launch.
    pub(super) fn total(&self) -> u64 {
        self.threads() * self.blocks()
    }

    fn buffer(&mut self, random: &mut Random, module: &Module, ty: Type, len: u64) -> Arg {
        let mut bytes = Vec::new();
        for _ in 0..len {
            bytes.extend(types::bytes(random, module, ty));
        }
        self.buffers.push(bytes);
        Arg::Buffer(self.buffers.len() - 1)
    }

    fn slice(
        &mut self,
        random: &mut Random,
        module: &mut Module,
        name: String,
        (element, role, len): (Type, Role, u64),
    ) {
        let mutable = !matches!(role, Role::Input(_));
        let space = match random.below(20) {
            0..=5 => AddressSpace::Generic,
            _ => AddressSpace::Global,
        };
        let ty = module.types.intern(TypeData::Slice {
            element,
            space,
            mutable,
            wide: random.chance(8),
        });
        // Whoever reads a tile would see what another parameter's section writes.
        let may_alias = !matches!(role, Role::Tile(..) | Role::Apart);
        let alias = self.params.iter().position(|p| {
            may_alias
                && p.role == role
                && element_of(module, p.ty) == Some(element)
                && random.chance(40)
        });
        // Two parameters may be one buffer if each thread keeps to its place in both.
        let (arg, noalias) = match alias {
            Some(first) => {
                self.params[first].noalias &= !mutable;
                (self.params[first].arg.clone(), false)
            }
            None => {
                let noalias = !may_alias || random.chance(25);
                (self.buffer(random, module, element, len), noalias)
            }
        };
        self.params.push(ParamPlan {
            name,
            ty,
            role,
            passing: Passing::Direct,
            arg,
            noalias,
        });
    }

    fn outputs(&mut self, random: &mut Random, module: &mut Module) {
        let total = self.total();
        for n in 0..random.within(1, 3) {
            let element = match n {
                0 => random.of(&[Type::U64, Type::U32]),
                _ => self.types.any(random),
            };
            let before = self
                .params
                .last()
                .map(|p| (p.role, element_of(module, p.ty)));
            let (permutation, element) = match before {
                // As the one before, so that they can be one buffer.
                Some((Role::Output(same), Some(element))) if random.chance(25) => (same, element),
                _ => (Permutation::new(random, total), element),
            };
            let role = Role::Output(permutation);
            let len = permutation.places(total);
            self.slice(random, module, format!("out{n}"), (element, role, len));
        }
        if random.chance(35) {
            let (element, op) = atomic(random);
            let len = random.of(&[1, 2, 8, 33]);
            let role = Role::Accumulator(op, len);
            self.slice(random, module, "sum".to_owned(), (element, role, len));
        }
    }

    fn inputs(&mut self, random: &mut Random, module: &mut Module) {
        for n in 0..random.within(1, 3) {
            let element = self.types.any(random);
            let len = random.of(&[1, 4, 7, 16, 33, 64]);
            let role = Role::Input(len);
            self.slice(random, module, format!("in{n}"), (element, role, len));
        }
    }

    fn values(&mut self, random: &mut Random, module: &mut Module) {
        let total = self.total();
        let n = random.below(total as usize + 4) as u32;
        self.value("n".to_owned(), Type::U32, n.to_le_bytes().to_vec());
        for i in 0..random.within(1, 3) {
            let ty = self.types.scalar(random);
            let bytes = types::bytes(random, module, ty);
            self.value(format!("p{i}"), ty, bytes);
        }
        let aggregates: Vec<Type> = self.types.aggregates.clone();
        if aggregates.is_empty() || random.chance(60) {
            return;
        }
        let pointee = random.of(&aggregates);
        if !module.types.is_aggregate(pointee) {
            let bytes = types::bytes(random, module, pointee);
            return self.value("v".to_owned(), pointee, bytes);
        }
        let (passing, space) = random.of(&[
            (Passing::ByValue, AddressSpace::Param),
            (Passing::ByReference, AddressSpace::Global),
        ]);
        let arg = match passing {
            Passing::ByValue => Arg::Bytes(types::bytes(random, module, pointee)),
            _ => self.buffer(random, module, pointee, 1),
        };
        self.params.push(ParamPlan {
            name: "s".to_owned(),
            ty: module.types.pointer(pointee, space, false),
            role: Role::Struct,
            passing,
            arg,
            noalias: false,
        });
    }

    fn value(&mut self, name: String, ty: Type, bytes: Vec<u8>) {
        self.params.push(ParamPlan {
            name,
            ty,
            role: Role::Value,
            passing: Passing::Direct,
            arg: Arg::Bytes(bytes),
            noalias: false,
        });
    }

    /// Constants of the module.
    fn tables(&mut self, random: &mut Random, module: &mut Module) {
        if random.chance(70) {
            return;
        }
        let element = self.types.any(random);
        let ty = module.types.array(element, random.within(1, 9) as u64);
        let bytes = types::bytes(random, module, ty).into();
        let name = "table".to_owned();
        let id = module.globals.push(GlobalData { name, ty, bytes });
        self.globals.push(id);
    }
}

/// What a slice type is made of.
pub(super) fn element_of(module: &Module, ty: Type) -> Option<Type> {
    match *module.types.data(ty) {
        TypeData::Slice { element, .. } => Some(element),
        _ => None,
    }
}

/// Grid and block.
fn shape(random: &mut Random, budget: &Budget) -> ([u32; 3], [u32; 3]) {
    const BLOCKS: [(usize, [u32; 3]); 22] = [
        (2, [1, 1, 1]),
        (4, [7, 1, 1]),
        (6, [32, 1, 1]),
        (5, [33, 1, 1]),
        (4, [48, 1, 1]),
        (5, [64, 1, 1]),
        (2, [100, 1, 1]),
        (1, [256, 1, 1]),
        (3, [5, 3, 1]),
        (2, [8, 8, 1]),
        (1, [16, 16, 1]),
        (2, [31, 2, 1]),
        (2, [1, 40, 1]),
        (2, [3, 2, 5]),
        (2, [8, 4, 2]),
        (1, [1, 1, 17]),
        (1, [4, 4, 4]),
        (3, [8, 1, 1]),
        (3, [16, 1, 1]),
        (2, [31, 1, 1]),
        (1, [1000, 1, 1]),
        (1, [32, 8, 2]),
    ];
    const GRIDS: [(usize, [u32; 3]); 6] = [
        (6, [1, 1, 1]),
        (4, [2, 1, 1]),
        (2, [3, 1, 1]),
        (1, [5, 1, 1]),
        (2, [2, 2, 1]),
        (1, [1, 2, 2]),
    ];
    loop {
        let (grid, block) = (random.weighted(&GRIDS), random.weighted(&BLOCKS));
        let total = grid
            .iter()
            .chain(&block)
            .map(|&n| n as usize)
            .product::<usize>();
        // One block of one thread fits always, so that this ends.
        if total <= budget.threads.max(1) {
            return (grid, block);
        }
    }
}

/// A length for shared memory of a block: at least one place for each thread.
fn shared_len(random: &mut Random, threads: u64) -> u64 {
    match random.below(4) {
        0 => threads.next_power_of_two(),
        1 => threads + random.below(5) as u64,
        _ => threads,
    }
}

/// A type and an operation of an accumulator.
fn atomic(random: &mut Random) -> (Type, AtomicOp) {
    let ty = random.of(&[Type::I32, Type::U32, Type::I64, Type::U64]);
    let op = random.of(&[
        AtomicOp::Add,
        AtomicOp::Min,
        AtomicOp::Max,
        AtomicOp::And,
        AtomicOp::Or,
        AtomicOp::Xor,
    ]);
    (ty, op)
}

impl Generator {
    /// The kernel, and with it the case.
    pub(super) fn kernel(mut self, seed: u64) -> Case {
        let function = Function::new("random", FunctionKind::Kernel, Location::unknown());
        self.frame = Frame::new(function);
        self.frame.uniform = true;
        self.frame.members = Some(Members::All);
        if !self.budget.early_exits {
            self.frame.returns = Returns::Together;
        }
        // The frame is not counted.
        self.frame.left = isize::MAX / 2;
        self.declare_params();
        let [thread, global] = self.linear_indices();
        self.bind_params(global);
        for _ in 0..self.random.within(1, 2) {
            self.load_statement();
        }
        self.declare_vars(true);
        self.frame.thread = Some(thread);
        self.declare_shared(thread);
        self.declare_slots(thread, global);
        self.declare_mail(thread, global);
        // Small ones and large ones.
        let (least, most) = (
            self.budget.instructions / 3,
            self.budget.instructions * 5 / 3,
        );
        let count = self.random.within(least, most) as isize;
        let gather = self
            .gathers()
            .then(|| self.random.below(count as usize) as isize);
        if let Some(before) = gather {
            // Others count on every thread, so none ends before.
            let returns = std::mem::replace(&mut self.frame.returns, Returns::Never);
            self.frame.left = before;
            while self.frame.left > 0 {
                self.statement();
            }
            self.frame.left = isize::MAX / 2;
            self.gather(thread, global);
            self.frame.returns = returns;
        }
        self.frame.left = count - gather.unwrap_or(0);
        while !self.frame.ended && self.frame.left > 0 {
            self.statement();
        }
        self.frame.left = 1 << 20;
        if !self.frame.ended {
            self.last_calls();
            self.last_mail();
            self.final_stores();
        }
        let Generator {
            random: _,
            mut module,
            plan,
            frame,
            ..
        } = self;
        module.functions.push(frame.function);
        let size = |ty| module.types.layout(ty).map_or(0, |l| l.size);
        Case {
            grid: plan.grid,
            block: plan.block,
            dynamic_shared: plan.dynamic.map_or(0, |(ty, len)| (len * size(ty)) as u32),
            args: plan.params.into_iter().map(|p| p.arg).collect(),
            buffers: plan.buffers,
            module,
            seed,
        }
    }

    fn declare_params(&mut self) {
        let threads = self.plan.threads() as u32;
        for param in self.plan.params.clone() {
            let function = &mut self.frame.function;
            let value = function.add_param(param.name, param.ty, Location::unknown());
            if let Some(data) = function.params.last_mut() {
                data.passing = param.passing;
                data.facts.noalias = param.noalias;
                data.facts.short = matches!(self.module.types.as_slice(param.ty), Some((_, false)));
                if param.noalias {
                    data.facts.align = self.random.of(&[0, 8, 16]);
                }
            }
            self.frame.set_uniform(value, true);
        }
        if self.random.chance(25) {
            let max_threads = self.random.of(&[threads, threads.max(256), 1024]);
            self.frame.function.launch_bounds = Some(LaunchBounds {
                max_threads,
                min_blocks: self.random.below(3) as u32,
            });
        }
    }

    /// The linear index of the thread in its block and in the launch.
    pub(super) fn linear_indices(&mut self) -> [Value; 2] {
        let (grid, block) = (self.plan.grid, self.plan.block);
        let thread = self.linear("thread_idx", "block_dim", block);
        let group = self.linear("block_idx", "grid_dim", grid);
        let threads = self.int(Type::U32, i128::from(self.plan.threads() as u32));
        let first = self.binary(BinaryOp::Mul, group, threads);
        let global = self.binary(BinaryOp::Add, first, thread);
        [thread, global]
    }

    /// `x + extent.x * (y + extent.y * z)`, with what is 0 left out.
    pub(super) fn linear(&mut self, index: &str, extent: &str, extents: [u32; 3]) -> Value {
        let names = ["x", "y", "z"];
        let used = (1..3).filter(|&d| extents[d] > 1).max().unwrap_or(0);
        let mut sum = self.position(&format!("{index}.{}", names[used]));
        for d in (0..used).rev() {
            let size = self.position(&format!("{extent}.{}", names[d]));
            let part = self.position(&format!("{index}.{}", names[d]));
            let scaled = self.binary(BinaryOp::Mul, size, sum);
            sum = self.binary(BinaryOp::Add, part, scaled);
        }
        sum
    }

    /// Makes the parameters known to the statements.
    fn bind_params(&mut self, global: Value) {
        for (i, param) in self.plan.params.clone().into_iter().enumerate() {
            let value = self.frame.function.params[i].value;
            let place = |base, element, len, access| Place {
                base,
                element,
                len,
                access,
            };
            let element = match *self.module.types.data(param.ty) {
                TypeData::Slice { element, .. } => element,
                TypeData::Pointer { pointee, .. } => pointee,
                _ => param.ty,
            };
            let slice = Base::Slice(value);
            let bound = match param.role {
                Role::Value => {
                    self.frame.pool.push(value);
                    continue;
                }
                Role::Input(len) => place(slice, element, Some(len), Access::Read),
                Role::Output(permutation) => {
                    let index = self.permuted(permutation, global);
                    place(slice, element, None, Access::Own(index))
                }
                Role::Accumulator(op, len) => {
                    place(slice, element, Some(len), Access::Accumulate(op))
                }
                // It is written first; see `declare_shared`.
                Role::Tile(..) => continue,
                Role::Apart => continue,
                Role::Struct => place(Base::One(value), element, Some(1), Access::Read),
            };
            self.frame.places.push(bound);
        }
        for id in self.plan.globals.clone() {
            let ty = self.module.globals[id].ty;
            let pointer = self.module.types.pointer(ty, AddressSpace::Constant, false);
            let address = self.raw(InstData::GlobalAddr(id), pointer);
            self.frame.set_uniform(address, true);
            let place = self.array_place(address, ty, Access::Read);
            self.frame.places.push(place);
        }
    }

    /// The place of a permutation for an index.
    pub(super) fn permuted(&mut self, permutation: Permutation, index: Value) -> Value {
        let ty = self.frame.ty(index);
        let number = |g: &mut Self, n: u64| g.int(ty, i128::from(n));
        match permutation {
            Permutation::Identity => index,
            Permutation::Reverse(count) => {
                let last = number(self, count - 1);
                self.binary(BinaryOp::Sub, last, index)
            }
            Permutation::Xor(bits, _) => {
                let bits = number(self, bits);
                self.binary(BinaryOp::Xor, index, bits)
            }
            Permutation::Odd(factor, addend, power) => {
                let (factor, addend) = (number(self, factor), number(self, addend));
                let mask = number(self, power - 1);
                let scaled = self.binary(BinaryOp::Mul, index, factor);
                let moved = self.binary(BinaryOp::Add, scaled, addend);
                self.binary(BinaryOp::And, moved, mask)
            }
            Permutation::Rotate(by, count) => {
                let (by, count) = (number(self, by), number(self, count));
                let moved = self.binary(BinaryOp::Add, index, by);
                self.binary(BinaryOp::Rem, moved, count)
            }
        }
    }

    /// Stores of what the kernel has computed, so that it can be seen: all variables, and some of
    /// the values in scope, mixed into the first output; something to the others.
    fn final_stores(&mut self) {
        let mut seen: Vec<Value> = Vec::new();
        for variable in self.frame.vars.clone() {
            let value = self.get(variable);
            seen.push(value);
        }
        for _ in 0..3 {
            let value = self.random.of(&self.frame.pool);
            seen.push(value);
        }
        let mut hash = self.raw(InstData::Const(Constant::Int(17)), Type::U64);
        let factor = self.int(Type::U64, 0x9E37_79B1);
        for value in seen {
            let bits = self.bits_of(value);
            let mixed = self.raw_binary(BinaryOp::Xor, hash, bits);
            hash = self.raw_binary(BinaryOp::Mul, mixed, factor);
        }
        self.frame.pool.push(hash);
        let outputs: Vec<Place> = self.frame.places.clone();
        let mut first = true;
        for place in outputs
            .iter()
            .filter(|p| matches!(p.access, Access::Own(_)))
        {
            let value = match place.element {
                ty if first && ty == Type::U64 => hash,
                ty if first => self.raw(InstData::Cast { arg: hash }, ty),
                ty => self.leaf(ty, false),
            };
            first = false;
            self.store_own(place, value);
        }
        if self.random.chance(50) {
            self.act(InstData::Return { value: None });
        }
    }

    /// The bits of a value, of any type, as a `u64`.
    fn bits_of(&mut self, value: Value) -> Value {
        let ty = self.frame.ty(value);
        let Some(scalar) = ty.as_scalar() else {
            let part = self.random.below(self.parts(ty).len()) as u32;
            let value = self.extract(value, part);
            return self.bits_of(value);
        };
        if !scalar.is_float() {
            return self.raw(InstData::Cast { arg: value }, Type::U64);
        }
        let value = self.canonical(value);
        let same = match scalar {
            Scalar::F64 => return self.raw(InstData::Bitcast { arg: value }, Type::U64),
            Scalar::F32 => Type::U32,
            _ => Type::U16,
        };
        let bits = self.raw(InstData::Bitcast { arg: value }, same);
        self.raw(InstData::Cast { arg: bits }, Type::U64)
    }
}
