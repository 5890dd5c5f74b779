//! The function where launches begin stays one where launches can begin, whatever hooks make of LLVM's module.

use kiln::core::hook::{Hook, HookPoint, HookResult, Needs};
use kiln::core::inkwell::module::{Linkage, Module};
use kiln::core::inkwell::values::FunctionValue;

use super::contract::{Place, error_of, places};

/// LLVM's convention `fastcc`, by which no loader calls.
const FAST: u32 = 8;

/// What is done to the entry, and what the error says of it.
type Change = (for<'ctx> fn(FunctionValue<'ctx>), &'static str);

const CHANGES: &[Change] = &[
    (
        |entry| entry.as_global_value().set_name("elsewhere"),
        "there is no function `",
    ),
    (
        |entry| entry.set_linkage(Linkage::Internal),
        "cannot be seen from outside any more",
    ),
    (
        |entry| entry.set_call_conventions(FAST),
        "is no kernel any more",
    ),
];

fn change(module: &Module<'_>, how: for<'ctx> fn(FunctionValue<'ctx>)) -> HookResult<()> {
    let is_entry =
        |f: &FunctionValue<'_>| f.count_basic_blocks() > 0 && f.get_linkage() == Linkage::External;
    how(module.get_functions().find(is_entry).ok_or("no entry")?);
    Ok(())
}

/// The machines whose code LLVM makes.
fn of_llvm() -> impl Iterator<Item = Place> {
    let places = places().into_iter();
    places.filter(|place| place.has.contains(&Needs::Llvm))
}

fn expect_blamed(place: &Place, hook: Hook, point: HookPoint, want: &str) {
    let how = format!("{}, {point}, {want}", place.name);
    let error = error_of(place, hook, point).unwrap_or_else(|| panic!("{how}: the hook is wrong"));
    let begin = "hook `wrong` left an LLVM module that cannot become code: ";
    assert!(error.starts_with(begin), "{how}: {error}");
    assert!(error.contains(want), "{how}: {error}");
    assert!(error.contains("where launches begin"), "{how}: {error}");
    let end = format!("kernel: fill, extension point: {point}");
    assert!(error.ends_with(&end), "{how}: {error}");
}

#[test]
fn a_hook_that_takes_the_entry_away_is_named() {
    for place in of_llvm() {
        for &(how, want) in CHANGES {
            let hook = || Hook::new("wrong").key("is", want);
            let before = hook().finish_module(move |_, module| change(module, how));
            expect_blamed(&place, before, HookPoint::FinishModule, want);
            let after = hook().finish_optimized_module(move |_, module| change(module, how));
            expect_blamed(&place, after, HookPoint::FinishOptimizedModule, want);
        }
    }
}

#[test]
fn passes_that_take_the_entry_away_are_the_hooks_that_asked_for_them() {
    for place in of_llvm() {
        for (passes, want) in [
            ("internalize", "cannot be seen from outside any more"),
            ("internalize,globaldce", "there is no function `"),
        ] {
            let hook = Hook::new("wrong").key("passes", passes);
            let hook = hook.pass_pipeline(move |_, pipeline| {
                passes.clone_into(pipeline);
                Ok(())
            });
            expect_blamed(&place, hook, HookPoint::PassPipeline, want);
        }
    }
}
