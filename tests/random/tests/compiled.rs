//! The compiled CPU backend against the interpreter: thousands of random kernels, bit by bit.
//!
//! The seeds are always the same; `KILN_FUZZ_SEED` sets another first one, `KILN_FUZZ_COUNT` how many
//! kernels there are. `cargo xtask fuzz` takes fresh seeds.

use std::path::Path;

use kiln_random::run::{HostRunner, OnHostRunner, WIDTHS, reference};
use kiln_random::{Budget, Campaign, Case, Runner, compare, generate, sound};

use crate::campaign;

/// How many kernels are compared: more than it takes to find the planted bug that is hardest to find
/// (`tests/planted.rs`), which is kernel 761. `cargo xtask soak` takes 20,000.
const KERNELS: u64 = 800;

#[test]
fn random_kernels_give_the_same_on_the_cpu() {
    let report = campaign::find_nothing(Campaign::new(0, KERNELS));
    assert_eq!(report.coverage.divergent_barriers, 0);
}

#[test]
fn kernels_that_swap_two_words_give_the_same_on_the_cpu() {
    let budget = Budget {
        pairs: 100,
        ..Budget::default()
    };
    let (first, count) = (1 << 33, 500);
    let swap = |seed: &u64| generate(*seed, &budget).module.changes_word_pairs();
    let swapping = (first..first + count).filter(swap).count();
    assert!(swapping > 30, "only {swapping} kernels swap two words");
    campaign::find_nothing(Campaign {
        budget,
        coverage: false,
        sound: true,
        ..Campaign::new(first, count)
    });
}

/// The cases of a folder give on all backends what they give in the interpreter.
fn agree(folder: &str) {
    let mut runners: Vec<Box<dyn Runner>> = vec![Box::new(OnHostRunner::default())];
    runners.extend(WIDTHS.map(|lanes| Box::new(HostRunner::new(lanes)) as Box<dyn Runner>));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).expect("the folder of cases is there") {
        let path = entry.expect("its entries can be read").path();
        if path.extension().is_none_or(|extension| extension != "kir") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a case is text");
        let case = Case::from_text(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        sound(&case).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        if let Some(mismatch) = compare(&case, &*reference(), &runners) {
            panic!("{}: {mismatch}", path.display());
        }
        count += 1;
    }
    assert!(count > 0, "there are no cases");
}

/// Kernels on which backends disagreed once.
#[test]
fn what_failed_before_works() {
    agree("tests/cases");
}

/// What only a GPU gets wrong, after LLVM's passes.
#[test]
fn what_is_wrong_on_a_gpu_is_right_here() {
    agree("../../docs/upstream");
}

#[test]
fn a_race_of_threads_of_one_warp_is_not_sound() {
    let text = include_str!("unsound/two_threads_one_place.kir");
    let case = Case::from_text(text).expect("it is a case");
    let why = sound(&case).expect_err("two threads write one place");
    assert!(why.contains("a race"), "{why}");
}
