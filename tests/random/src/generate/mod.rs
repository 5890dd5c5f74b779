//! The generator: from a seed to a case.
//!
//! | file | subject |
//! |---|---|
//! | `launch` | grid, block, parameters with their data, and the plan of a case |
//! | `types` | which types there are, constants and random data of a type |
//! | `expr` | values: operations, conversions, parts, calls of intrinsics |
//! | `control` | statements: branches, loops, jumps, variables |
//! | `memory` | loads, stores and atomics in all kinds of memory |
//! | `address` | addresses by a way round: in aggregates, beside none, as numbers |
//! | `shared` | barriers and sections that write shared memory |
//! | `lanes` | memory that lanes of a warp synchronize over |
//! | `mail` | flags that are not waited for, and the data behind them |
//! | `gather` | last arrivers, and waits on earlier blocks |
//! | `calls` | device functions and calls of them |
//! | `warp` | operations of a warp, and branches with member masks for them |
//!
//! The generator walks forward and emits instructions that are right where they are: it knows which
//! values are in scope, which are the same for all threads of the block (*uniform*), whether all
//! threads of the block that have not ended come by here, and which lanes of a warp do.

mod address;
mod apart;
mod calls;
mod control;
mod expr;
mod gather;
mod lanes;
mod launch;
mod mail;
mod memory;
mod shared;
mod types;
mod warp;

use kiln_jit_core::ir::{
    Function, FunctionKind, Inst, InstData, Location, Module, Phase, Region, RegionData, Type,
    Value, Var,
};

use crate::case::Case;
use crate::random::Random;
pub(crate) use types::part_types;

use calls::Callee;
use control::Returns;
use lanes::Slots;
use launch::Plan;
use mail::Mail;
use memory::Place;
use warp::Members;

/// How large cases are, and what may be in them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Budget {
    /// About how many instructions the kernel's statements have, its frame left out.
    pub instructions: usize,
    /// About how many instructions a device function has.
    pub function_instructions: usize,
    /// The most device functions.
    pub functions: usize,
    /// How deep branches and loops nest.
    pub depth: usize,
    /// The most iterations of a loop; inner loops make fewer.
    pub trips: usize,
    /// The most threads of a launch.
    pub threads: usize,
    /// Whether threads may end before others come to a barrier.
    pub early_exits: bool,
    /// Whether loads of shared memory at a uniform index decide on barriers. They are the same for
    /// all threads, which a backend finds out only when it runs.
    pub uniform_shared: bool,
    /// Whether there are types besides scalars.
    pub aggregates: bool,
    /// Whether there are `f16` and `bf16`.
    pub halves: bool,
    /// How many of 100 cases have operations of a warp.
    pub warps: usize,
    /// How many of 100 cases swap 16 bytes in one step, which NVIDIA's GPUs do from sm_90 on.
    pub pairs: usize,
    /// The ways in which threads talk through memory.
    pub talk: Talk,
}

/// The ways in which threads talk through memory, besides barriers and shared memory: for each, how many
/// of 100 cases that could have it do.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Talk {
    /// Tiles in global memory, over barriers.
    pub tiles: usize,
    /// Slots of lanes, over synchronization of the warp, where there are operations of one.
    pub lanes: usize,
    /// Atomic loads and stores of every ordering where plain ones would do.
    pub atomics: usize,
    /// Flags that are not waited for.
    pub mail: usize,
    /// Who arrives last sums up.
    pub arrivals: usize,
    /// Blocks that wait for earlier ones, where there are several.
    pub chains: usize,
}

impl Talk {
    /// None of these ways.
    pub const NONE: Talk = Talk {
        tiles: 0,
        lanes: 0,
        atomics: 0,
        mail: 0,
        arrivals: 0,
        chains: 0,
    };
}

impl Default for Talk {
    fn default() -> Self {
        Talk {
            tiles: 60,
            lanes: 50,
            atomics: 40,
            mail: 15,
            arrivals: 10,
            chains: 18,
        }
    }
}

impl Default for Budget {
    fn default() -> Self {
        Budget {
            instructions: 50,
            function_instructions: 16,
            functions: 2,
            depth: 4,
            trips: 7,
            threads: 320,
            early_exits: true,
            uniform_shared: false,
            aggregates: true,
            halves: true,
            warps: 25,
            pairs: 0,
            talk: Talk::default(),
        }
    }
}

impl Budget {
    /// For cases that are several times as large as those of the default budget.
    pub fn large() -> Budget {
        Budget {
            instructions: 200,
            function_instructions: 40,
            functions: 4,
            depth: 6,
            threads: 1100,
            ..Budget::default()
        }
    }
}

/// A case made from a seed: the same seed and budget give the same case.
///
/// # Panics
/// Never, unless the generator itself is wrong.
pub fn generate(seed: u64, budget: &Budget) -> Case {
    let mut random = Random::new(seed);
    let mut module = Module::new(format!("random_{seed}"));
    module.phase = Phase::Legal;
    let plan = Plan::new(&mut random, &mut module, budget);
    let mut generator = Generator {
        random,
        apart: Random::new(!seed),
        budget: budget.clone(),
        module,
        plan,
        callees: Vec::new(),
        frame: Frame::new(Function::new(
            "placeholder",
            FunctionKind::Device,
            Location::unknown(),
        )),
    };
    generator.device_functions();
    generator.kernel(seed)
}

/// A mutable variable.
#[derive(Copy, Clone, Debug)]
struct Variable {
    var: Var,
    ty: Type,
    /// Only assigned uniform values, where all threads come by.
    uniform: bool,
    /// A counter that must not be assigned by other statements.
    reserved: bool,
}

/// A loop around the current place.
#[derive(Copy, Clone, Debug)]
struct LoopAround {
    /// Whether all threads make the same iterations, so that barriers can be inside.
    uniform: bool,
}

/// What is known while one function is generated.
struct Frame {
    function: Function,
    region: Region,
    /// Whether the current region has its last instruction.
    ended: bool,
    /// Values that can be used here.
    pool: Vec<Value>,
    /// By value: whether it is the same in all threads of the block.
    uniform_values: Vec<bool>,
    vars: Vec<Variable>,
    /// Memory that can be used here.
    places: Vec<Place>,
    loops: Vec<LoopAround>,
    /// How many regions are around the current one.
    depth: usize,
    /// Whether all threads of the block that have not ended come by here.
    uniform: bool,
    /// The lanes of the warp that come by here, if that is known.
    members: Option<Members>,
    /// Where the function may return.
    returns: Returns,
    /// The linear index of the thread in its block, where shared memory is.
    thread: Option<Value>,
    /// Memory over which lanes of a warp synchronize.
    slots: Vec<Slots>,
    /// Data behind flags that are not waited for.
    mail: Option<Mail>,
    /// Whether who comes by differs from run to run, so that nothing may be done that others could see.
    unforeseen: bool,
    /// How many times the current place may be executed by one thread.
    repeats: usize,
    /// Instructions left.
    left: isize,
}

impl Frame {
    fn new(function: Function) -> Frame {
        let region = function.body;
        Frame {
            function,
            region,
            ended: false,
            pool: Vec::new(),
            uniform_values: Vec::new(),
            vars: Vec::new(),
            places: Vec::new(),
            loops: Vec::new(),
            depth: 0,
            uniform: false,
            members: None,
            returns: Returns::Anywhere,
            thread: None,
            slots: Vec::new(),
            mail: None,
            unforeseen: false,
            repeats: 1,
            left: 0,
        }
    }

    fn is_uniform(&self, value: Value) -> bool {
        use kiln_jit_core::ir::Entity;
        self.uniform_values.get(value.index()) == Some(&true)
    }

    fn set_uniform(&mut self, value: Value, uniform: bool) {
        use kiln_jit_core::ir::Entity;
        if self.uniform_values.len() <= value.index() {
            self.uniform_values.resize(value.index() + 1, false);
        }
        self.uniform_values[value.index()] = uniform;
    }

    fn ty(&self, value: Value) -> Type {
        self.function.type_of(value)
    }
}

struct Generator {
    random: Random,
    /// Numbers for what changes no result, so that it changes nothing else of the case.
    apart: Random,
    budget: Budget,
    module: Module,
    plan: Plan,
    callees: Vec<Callee>,
    frame: Frame,
}

impl Generator {
    // Emitting.

    fn place_inst(&mut self, data: InstData, result: Type) -> Inst {
        self.frame.left -= 1;
        let fast = self.flags(&data, result);
        let function = &mut self.frame.function;
        let inst = function.new_inst(data, result, Location::unknown());
        function.insts[inst].fast = fast;
        let region = self.frame.region;
        self.frame.function.regions[region].insts.push(inst);
        inst
    }

    /// An instruction with a result that other statements must not use by chance: an address, or a
    /// float whose bits are not the same everywhere. Uniform if its operands are.
    fn raw(&mut self, data: InstData, result: Type) -> Value {
        let mut uniform = true;
        data.for_each_operand(|v| uniform &= self.frame.is_uniform(v));
        let inst = self.place_inst(data, result);
        let value = self.frame.function.insts[inst].result;
        let value = value.expect("the instruction has a result");
        self.frame.set_uniform(value, uniform);
        value
    }

    /// As [`Generator::raw`], for results that differ between threads whatever the operands are.
    fn raw_varying(&mut self, data: InstData, result: Type) -> Value {
        let value = self.raw(data, result);
        self.frame.set_uniform(value, false);
        value
    }

    /// An instruction whose result can be used by all that follows.
    fn emit(&mut self, data: InstData, result: Type) -> Value {
        let value = self.raw(data, result);
        self.frame.pool.push(value);
        value
    }

    /// As [`Generator::emit`], for results that differ between threads whatever the operands are.
    fn emit_varying(&mut self, data: InstData, result: Type) -> Value {
        let value = self.emit(data, result);
        self.frame.set_uniform(value, false);
        value
    }

    /// An instruction without a result.
    fn act(&mut self, data: InstData) {
        self.frame.ended |= data.is_terminator();
        self.place_inst(data, Type::UNIT);
    }

    /// A region with what `f` emits; what is defined in it is gone afterwards.
    fn region(&mut self, f: impl FnOnce(&mut Self)) -> Region {
        let region = self.frame.function.regions.push(RegionData::default());
        let outer = std::mem::replace(&mut self.frame.region, region);
        let ended = std::mem::replace(&mut self.frame.ended, false);
        let (values, places) = (self.frame.pool.len(), self.frame.places.len());
        let (uniform, members) = (self.frame.uniform, self.frame.members);
        self.frame.depth += 1;
        f(self);
        self.frame.depth -= 1;
        self.frame.uniform = uniform;
        self.frame.members = members;
        self.frame.pool.truncate(values);
        self.frame.places.truncate(places);
        self.frame.ended = ended;
        self.frame.region = outer;
        region
    }
}
