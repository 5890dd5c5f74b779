//! Random kernels, changed at random, go through code generation: what the verifier accepts is compiled
//! for GPUs and for this CPU, or refused with a reason. LLVM ends the process on much of what its own
//! verifier accepts, so this test ends, too, if the tables that keep it away have a hole.
//!
//! Nothing is run: a changed kernel may read and write anywhere.

#[path = "../../../jit-core/tests/mutation/mod.rs"]
mod mutation;

use kiln_jit_core::compile::{NoObserver, compile};
use kiln_jit_core::error::{CompileError, Error};
use kiln_jit_core::hook::HookSet;
use kiln_jit_core::ir::verify;
use kiln_jit_core::job::{CompileJob, CompileOptions, OptLevel};
use kiln_jit_core::legal::NotLegal;
use kiln_jit_core::target::{CpuTarget, PtxTarget, Target};
use kiln_random::{Budget, generate};
use mutation::{Random, mutate};

/// How many changed modules are compiled.
const COMPILED: u64 = 400;

#[test]
fn mutated_kernels_are_compiled_or_refused() {
    let mut random = Random::seeded();
    let hooks = HookSet::new();
    let budget = Budget {
        instructions: 25,
        ..Budget::default()
    };
    let (mut tried, mut accepted, mut refused) = (0, 0, 0);
    while accepted < COMPILED {
        let case = generate(tried % 100, &budget);
        tried += 1;
        let mut module = case.module.clone();
        for _ in 0..=random.below(4) {
            mutate(&mut random, &mut module);
        }
        // What changed nothing is compiled elsewhere.
        if verify(&module).is_err() || module.to_string() == case.module.to_string() {
            continue;
        }
        accepted += 1;
        let target = PtxTarget::for_sm([75, 80, 90, 120][accepted as usize % 4]);
        let options = CompileOptions::default()
            .opt_level([OptLevel::O0, OptLevel::O1, OptLevel::O3][accepted as usize % 3]);
        let job = CompileJob::new(module.clone(), Target::Ptx(target), options);
        match compile(job, &hooks, &NoObserver) {
            Ok(compiled) => assert!(compiled.code.ptx().is_some(), "{module}"),
            // Beyond the target, or with types that are still open.
            Err(Error::Compile(
                CompileError::Illegal(_) | CompileError::NotLegal(NotLegal::Phase { .. }),
            )) => refused += 1,
            Err(error) => panic!("{error}\n{module}"),
        }
        let target = Target::Cpu(CpuTarget {
            block: Some(case.block),
            lanes: Some(32),
            ..CpuTarget::host()
        });
        let options = CompileOptions::default()
            .contract(false)
            .opt_level(OptLevel::O1);
        // What the CPU cannot have, such as calls that cannot be inlined, is an error.
        let _ = compile(
            CompileJob::new(module, target, options),
            &hooks,
            &NoObserver,
        );
    }
    println!("{tried} modules, {accepted} verify, {refused} refused for GPUs");
    assert!(
        refused < COMPILED / 2,
        "{refused} are refused: too little is compiled"
    );
}
