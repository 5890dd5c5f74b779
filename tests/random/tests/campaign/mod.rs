//! A campaign whose first seed and number of kernels the environment may set, and which must find nothing.

use std::time::Duration;

use kiln_random::{Campaign, Report};

/// How long a failing case is made smaller.
const REDUCTION: Duration = Duration::from_secs(60);

fn setting(name: &str, default: u64) -> u64 {
    let Ok(text) = std::env::var(name) else {
        return default;
    };
    text.parse()
        .unwrap_or_else(|_| panic!("{name}: `{text}` is no number"))
}

/// Runs `campaign` with the seed of `KILN_FUZZ_SEED` and as many kernels as `KILN_FUZZ_COUNT` says, if
/// they are set.
///
/// # Panics
/// If a kernel differs; it is printed, reduced, with what runs it again.
pub fn find_nothing(campaign: Campaign) -> Report {
    let campaign = Campaign {
        seed: setting("KILN_FUZZ_SEED", campaign.seed),
        count: setting("KILN_FUZZ_COUNT", campaign.count),
        failures: 3,
        ..campaign
    };
    let Campaign { seed, count, .. } = campaign;
    println!("{count} kernels; KILN_FUZZ_SEED={seed} runs them again");
    let report = campaign.run();
    println!("{}{report}", report.coverage);
    for failure in &report.failures {
        let small = campaign.reduced(failure, REDUCTION);
        println!("{failure}\n{}", small.to_text());
    }
    if let Some(first) = report.failures.first() {
        let seed = first.seed;
        panic!("{report}; KILN_FUZZ_SEED={seed} KILN_FUZZ_COUNT=1 runs the first of them again");
    }
    assert_eq!(report.kernels, count);
    report
}
