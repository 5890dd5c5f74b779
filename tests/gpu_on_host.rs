//! Runs the suite on code for GPUs, as LLVM's passes for NVPTX leave it, on this machine's CPU, and
//! shows with planted mistakes that it finds what those passes make of a wrong promise.
//!
//! `KILN_SCHEDULE` sets another seed for whose turn it is among the threads of a block.

mod suite;

use std::panic::{AssertUnwindSafe, catch_unwind};

use kiln::core::hook::{Hook, HookContext, HookResult, HookSet};
use kiln::core::inkwell::attributes::{Attribute, AttributeLoc};
use kiln::core::inkwell::module::Module;
use kiln::core::inkwell::values::{
    AnyValue as _, CallSiteValue, FunctionValue, InstructionOpcode, InstructionValue,
};
use kiln::core::runtime::{GpuOnHost, OnHostOptions, Schedule};
use kiln::prelude::*;

/// Runs cases, and gives those that failed, with why.
fn failures(options: OnHostOptions, hooks: &HookSet, cases: &[suite::Case]) -> Vec<String> {
    let on_host = GpuOnHost::new(options);
    let mut failed = Vec::new();
    for (name, case) in cases {
        let hooks = on_host.hooks(hooks.clone());
        let jit = Jit::with(on_host.device(), hooks, JitOptions::default());
        let outcome = catch_unwind(AssertUnwindSafe(|| case(&jit).map_err(|e| e.to_string())));
        match outcome {
            Ok(Ok(())) => {}
            Ok(Err(error)) => failed.push(format!("{name}: {error}")),
            Err(_) => failed.push(format!("{name}: panicked")),
        }
    }
    failed
}

/// Runs the suite.
fn run(options: OnHostOptions, hooks: &HookSet) {
    let schedule = options.schedule;
    let failed = failures(options, hooks, &suite::cases());
    assert!(
        failed.is_empty(),
        "threads took turns: {schedule} (KILN_SCHEDULE)\n{}",
        failed.join("\n")
    );
}

fn seed() -> u64 {
    let Ok(text) = std::env::var("KILN_SCHEDULE") else {
        return 1;
    };
    text.parse()
        .unwrap_or_else(|_| panic!("KILN_SCHEDULE: `{text}` is no number"))
}

#[test]
fn threads_in_turn() {
    run(OnHostOptions::default(), &kiln::hooks::standard());
}

/// On the oldest architecture, which has other cells of rows, and without hooks.
#[test]
fn threads_in_any_order() {
    let options = OnHostOptions {
        sm: 75,
        schedule: Schedule::Shuffled(seed()),
    };
    run(options, &HookSet::new());
}

/// A wrong promise to LLVM, planted in the module before its passes.
#[derive(Copy, Clone, Debug)]
enum Planted {
    /// No other thread accesses what a slice is of.
    NoAlias,
    /// What a slice is of does not change.
    Invariant,
    /// Barriers and warp synchronization access no memory.
    Unordered,
}

impl Hook for Planted {
    fn name(&self) -> &'static str {
        "planted-promise"
    }

    fn finish_module(&self, _: &HookContext<'_>, module: &Module<'_>) -> HookResult<()> {
        let instructions: Vec<_> = module
            .get_functions()
            .flat_map(|f| f.get_basic_block_iter())
            .flat_map(|block| block.get_instructions())
            .collect();
        match self {
            Planted::NoAlias => no_alias(module, &instructions),
            Planted::Invariant => invariant(module, &instructions),
            Planted::Unordered => unordered(module, &instructions),
        }
        Ok(())
    }
}

fn no_alias(module: &Module<'_>, instructions: &[InstructionValue<'_>]) {
    let context = module.get_context();
    let kind = Attribute::get_named_enum_kind_id;
    let noalias = context.create_enum_attribute(kind("noalias"), 0);
    let is_kernel =
        |f: &FunctionValue<'_>| f.get_call_conventions() != 0 && f.count_basic_blocks() > 0;
    for kernel in module.get_functions().filter(is_kernel) {
        for (n, param) in (0..).zip(kernel.get_params()) {
            let at = AttributeLoc::Param(n);
            let read_only = kernel.get_enum_attribute(at, kind("readonly")).is_some();
            if param.is_pointer_value() && !read_only {
                kernel.add_attribute(at, noalias);
            }
        }
    }
    // Inline assembly without instructions is there to say that others have the address.
    for call in instructions {
        if call
            .print_to_string()
            .to_string_lossy()
            .contains("asm sideeffect \"\",")
        {
            call.erase_from_basic_block();
        }
    }
}

fn invariant(module: &Module<'_>, instructions: &[InstructionValue<'_>]) {
    let context = module.get_context();
    let node = context.metadata_node(&[]);
    let loads = instructions
        .iter()
        .filter(|i| i.get_opcode() == InstructionOpcode::Load);
    for load in loads.filter(|load| !load.get_volatile().unwrap_or(true)) {
        let text = load.print_to_string().to_string_lossy().into_owned();
        if text.contains("ptr addrspace(1)") {
            // Only a string is refused.
            let _ = load.set_metadata(node, context.get_kind_id("invariant.load"));
        }
    }
}

fn unordered(module: &Module<'_>, instructions: &[InstructionValue<'_>]) {
    let context = module.get_context();
    let kind = Attribute::get_named_enum_kind_id("memory");
    let nothing = context.create_enum_attribute(kind, 0);
    for &call in instructions {
        let text = call.print_to_string().to_string_lossy().into_owned();
        let orders = text.contains("@llvm.nvvm.barrier") || text.contains("bar.warp.sync");
        if let (true, Ok(call)) = (orders, CallSiteValue::try_from(call)) {
            call.add_attribute(AttributeLoc::Function, nothing);
        }
    }
}

/// Runs the chapter about what threads see of each other with a planted promise.
fn planted(planted: Planted, expected: &[&str]) {
    let hooks = kiln::hooks::standard().with(planted);
    let failed = failures(OnHostOptions::default(), &hooks, suite::visibility::CASES);
    println!("{}", failed.join("\n"));
    for case in expected {
        assert!(
            failed.iter().any(|f| f.starts_with(&format!("{case}:"))),
            "{planted:?} breaks `{case}`, which was not found; found were {failed:#?}"
        );
    }
}

#[test]
fn slices_that_are_taken_for_private_are_found() {
    planted(
        Planted::NoAlias,
        &[
            "over_barriers",
            "over_warp_synchronization",
            "loops_that_others_end",
            "through_variables",
            "through_functions",
        ],
    );
}

#[test]
fn slices_that_are_taken_for_constant_are_found() {
    planted(
        Planted::Invariant,
        &[
            "over_barriers",
            "over_warp_synchronization",
            "loops_that_others_end",
            "through_variables",
            "through_functions",
            "through_arrays_of_structs",
            "over_fences_and_atomics",
            "neighbours_round_by_round",
        ],
    );
}

#[test]
fn barriers_that_order_nothing_are_found() {
    planted(
        Planted::Unordered,
        &[
            "over_barriers",
            "over_warp_synchronization",
            "loops_that_others_end",
            "through_variables",
            "through_functions",
            "through_arrays_of_structs",
            "neighbours_round_by_round",
        ],
    );
}
