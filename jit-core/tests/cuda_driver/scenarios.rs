//! What programs do with a device, played on the fake driver while each of its calls fails in turn.
//!
//! A scenario ([`list`]) is run once for each call that it makes of the driver and each of eight codes: nothing panics,
//! the error names call and code, nothing is left alive, and after a code that is not the end of the context the same
//! `Jit` does the whole scenario rightly. A sample of these runs is made; `KILN_SCENARIOS=whole` makes all, which
//! `cargo xtask soak` does, and a number makes another sample.

#[path = "scenarios/code.rs"]
mod code;
#[path = "scenarios/launches.rs"]
mod launches;
#[path = "scenarios/list.rs"]
mod list;
#[path = "scenarios/odd_drivers.rs"]
mod odd_drivers;
#[path = "scenarios/others.rs"]
mod others;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use kiln::core::cache::CacheFolder;
use kiln::core::hook::HookSet;
use kiln::core::runtime::cuda::DriverError;
use kiln::error::Error;
use kiln::prelude::*;

use super::fake::{Fake, Ledger};
use super::lost_context::RELEASES;

/// What calls return: refusals, and from 214 on what ends a context (CUDA Driver API, `CUresult`): invalid value, out
/// of memory, not initialized, no device, not supported; uncorrectable memory error, illegal address, launch failed.
const CODES: [u32; 8] = [1, 2, 3, 100, 801, 214, 700, 719];

/// Calls whose failure changes nothing that the program asked for: there is another way (the context is made current,
/// the driver is given the text), or the answer is only told (a clock, a text).
const BYPASSED: [&str; 10] = [
    "cuThreadExchangeStreamCaptureMode",
    "cuMemPoolGetAttribute",
    "cuDeviceGetAttribute",
    "cuCtxGetCurrent",
    "cuLinkCreate_v2",
    "cuLinkAddData_v2",
    "cuLinkComplete",
    "cuLinkDestroy",
    "cuGetErrorName",
    "cuGetErrorString",
];

/// Calls that load code: what was kept on disk and is refused is compiled again.
const LOADS: [&str; 4] = [
    "cuModuleLoadDataEx",
    "cuModuleGetFunction",
    "cuFuncGetAttribute",
    "cuFuncSetAttribute",
];

/// Calls whose failure a scenario is about, or that are made again in time: those for what is dropped are, when memory
/// is asked for next.
const EXPECTED: [(&str, &str); 43] = [
    ("runs_out_of_memory", "cuMemAlloc_v2"),
    ("runs_out_of_memory", "cuMemGetInfo_v2"),
    ("gives_copies_up", "cuEventQuery"),
    ("awaits_copies", "cuEventQuery"),
    ("awaits_launches", "cuEventQuery"),
    ("takes_more_streams_than_there_are", "cuStreamQuery"),
    ("is_told_faults", "cuMemsetD32Async"),
    ("is_told_faults_of_streams", "cuMemsetD32Async"),
    ("is_called_with_faults", "cuMemsetD32Async"),
    // Who frees memory orders that behind its uses.
    ("awaits_copies", "cuEventRecord"),
    ("awaits_copies", "cuStreamWaitEvent"),
    ("awaits_launches", "cuEventRecord"),
    ("awaits_launches", "cuStreamWaitEvent"),
    ("adopts_streams", "cuEventRecord"),
    ("adopts_streams", "cuStreamWaitEvent"),
    ("hands_tensors_on", "cuEventRecord"),
    ("hands_tensors_on", "cuStreamWaitEvent"),
    ("hands_tensors_on", "cuMemFreeAsync"),
    ("hands_tensors_on", "cuCtxSynchronize"),
    ("copies_later", "cuEventRecord"),
    ("copies_later", "cuStreamWaitEvent"),
    ("drops_in_odd_orders", "cuEventRecord"),
    ("drops_in_odd_orders", "cuStreamWaitEvent"),
    ("is_lent_memory", "cuEventCreate"),
    ("is_lent_memory", "cuEventRecord"),
    ("is_lent_memory", "cuStreamWaitEvent"),
    ("is_lent_memory", "cuEventSynchronize"),
    ("launches_from_threads", "cuStreamQuery"),
    ("launches_from_threads", "cuEventRecord"),
    ("launches_from_threads", "cuStreamWaitEvent"),
    ("has_two_devices", "cuCtxSetCurrent"),
    ("copies_between_devices", "cuCtxSetCurrent"),
    // Who closes a device waits for its copies.
    ("copies_between_devices", "cuCtxSynchronize"),
    // Who closes a device waits for the work behind which buffers were given up.
    ("adopts_a_context", "cuCtxSynchronize"),
    ("begins_anew", "cuCtxSynchronize"),
    ("has_two_devices", "cuCtxSynchronize"),
    ("launches_from_threads", "cuCtxSetCurrent"),
    // Who frees asks first whether he has to wait.
    ("waits_for_a_limited_time", "cuStreamQuery"),
    // Who drops code waits for the streams beside.
    ("drops_in_odd_orders", "cuCtxSynchronize"),
    ("evicts_code", "cuCtxSynchronize"),
    ("has_globals_in_streams", "cuCtxSynchronize"),
    ("keeps_buffers_in_graphs", "cuCtxSynchronize"),
    ("waits_for_a_limited_time", "cuCtxSynchronize"),
];

/// How many of the runs a sample has: one of so many.
const STRIDE: u64 = 16;

/// A place for a folder, which goes with this, or none.
struct Place(Option<PathBuf>);

impl Place {
    fn new() -> Place {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("kiln-scenarios-{}-{n}", std::process::id());
        Place(Some(std::env::temp_dir().join(name)))
    }

    fn options(&self) -> JitOptions {
        let folder = self.0.clone().map_or(CacheFolder::Off, CacheFolder::At);
        JitOptions::default().cache(folder)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(folder) = &self.0 {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// What a scenario is played with. Code is kept in a folder, so that LLVM is asked once for a kernel.
struct World<'a> {
    fake: &'a Fake,
    place: &'a Place,
    jit: &'a Jit,
}

impl World<'_> {
    /// Another `Jit` of the same device.
    fn jit_with(&self, hooks: impl Into<HookSet>) -> Jit {
        let device = self.jit.device().clone();
        Jit::with(device, hooks.into(), self.place.options())
    }
}

type Scenario = fn(&World<'_>) -> kiln::Result<()>;

fn open(fake: &Fake, place: &Place) -> kiln::Result<Jit> {
    let driver = fake.open()?;
    let options = place.options();
    Ok(Jit::with(
        Device::cuda_of(driver, 0)?,
        kiln::hooks::standard(),
        options,
    ))
}

/// Which runs are made.
#[derive(Copy, Clone)]
struct Sample {
    seed: u64,
    stride: u64,
}

impl Sample {
    fn get() -> Sample {
        let seed = match std::env::var("KILN_SCENARIOS").as_deref() {
            Ok("whole") => return Sample { seed: 0, stride: 1 },
            Ok(seed) => seed.parse().expect("`whole` or a number"),
            Err(_) => 0,
        };
        Sample {
            seed,
            stride: STRIDE,
        }
    }

    fn has(self, run: u64) -> bool {
        // Spread, as there are eight codes for a call.
        let spread = (run + self.seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        spread.is_multiple_of(self.stride)
    }
}

/// Plays a scenario with each call failing, as far as the sample goes.
fn play(name: &str, scenario: Scenario) {
    play_at(&Place::new(), Sample::get(), name, scenario);
}

fn play_at(place: &Place, sample: Sample, name: &str, scenario: Scenario) {
    let fake = Fake::new();
    let mut calls = 0;
    // The first fills the folder; the second is as all others are.
    for _ in 0..2 {
        fresh(&fake);
        let jit = open(&fake, place).expect("it opens");
        let before = fake.calls();
        let world = World {
            fake: &fake,
            place,
            jit: &jit,
        };
        scenario(&world).unwrap_or_else(|error| panic!("{name}, without a fault: {error}"));
        drop(jit);
        calls = fake.calls() - before;
        assert_eq!(
            (fake.ledger(), fake.links()[1]),
            (Ledger::default(), 0),
            "{name}"
        );
        assert_eq!(fake.race(), None, "{name}");
    }
    let runs = (1..=calls).flat_map(|nth| CODES.map(|code| (nth, code)));
    let mut made = 0;
    for (run, (nth, code)) in runs.enumerate() {
        if sample.has(run as u64) {
            made += 1;
            Run {
                name,
                scenario,
                fake: &fake,
                place,
                nth: nth as u32,
                code,
            }
            .make();
        }
    }
    println!("{name}: {calls} calls, {made} runs, seed {}", sample.seed);
}

/// Code that no folder has: nothing stands in for a driver that does not load it.
#[test]
fn loads_code_that_is_kept_nowhere() {
    let (whole, place) = (Sample { seed: 0, stride: 1 }, Place(None));
    play_at(&place, whole, "launches_what_it_names", list::ALL[1].1);
}

/// Other code captures a stream in the global mode, in the thread that plays: no call is refused, and none ends the
/// capture.
#[test]
fn all_of_it_while_other_code_captures() {
    const THEIRS: usize = 0x77;
    let (fake, place) = (Fake::new(), Place::new());
    for (name, scenario) in list::ALL {
        fresh(&fake);
        fake.begin_capture(THEIRS, 0);
        let jit = open(&fake, &place).expect("it opens");
        let world = World {
            fake: &fake,
            place: &place,
            jit: &jit,
        };
        scenario(&world).unwrap_or_else(|error| panic!("{name}: {error}"));
        drop(jit);
        assert_eq!(fake.end_capture(THEIRS), (0, 0), "{name}");
        assert_eq!(fake.capture_mode(), 0, "{name}");
        assert_eq!(fake.ledger(), Ledger::default(), "{name}");
    }
}

/// A driver of two devices.
fn fresh(fake: &Fake) {
    fake.reset();
    fake.set(12080, 2, 0, 1 << 30);
}

/// Whether a code ends the context.
fn is_fatal(code: u32) -> bool {
    code == 214 || code >= 700 && code != 801
}

/// A scenario in which one call fails.
struct Run<'a> {
    name: &'a str,
    scenario: Scenario,
    fake: &'a Fake,
    place: &'a Place,
    nth: u32,
    code: u32,
}

impl Run<'_> {
    fn make(&self) {
        let (fake, place) = (self.fake, self.place);
        fresh(fake);
        let jit = open(fake, place).expect("it opens");
        fake.fail("*", self.nth, self.code);
        let world = World {
            fake,
            place,
            jit: &jit,
        };
        let played = catch_unwind(AssertUnwindSafe(|| (self.scenario)(&world)));
        let failed = fake.failed();
        let at = format!(
            "{}: call {} ({}) returns {}",
            self.name,
            self.nth,
            failed.as_deref().unwrap_or("while dropping"),
            self.code
        );
        let Ok(result) = played else {
            panic!("{at}: a panic");
        };
        self.judge(&at, failed.as_deref(), &result);
        if let Some(call) = &failed
            && !is_fatal(self.code)
        {
            // A fault that nobody was told is.
            let _ = jit.synchronize();
            let again = catch_unwind(AssertUnwindSafe(|| (self.scenario)(&world)));
            match again {
                Ok(Ok(())) => {}
                Ok(Err(error)) => panic!("{at}, and then, without a fault: {error}"),
                Err(_) => panic!("{at}, and then ({call}) a panic"),
            }
        }
        drop((result, jit));
        self.nothing_is_left(&at);
    }

    /// That the error is the right one.
    fn judge(&self, at: &str, failed: Option<&str>, result: &kiln::Result<()>) {
        let Some(call) = failed else {
            assert!(result.is_ok(), "{at}: {result:?}");
            return;
        };
        match result {
            Ok(()) => {
                let is_known = RELEASES.contains(&call)
                    || BYPASSED.contains(&call)
                    || self.place.0.is_some() && LOADS.contains(&call)
                    || EXPECTED.contains(&(self.name, call))
                    // What is kept is given back, and it is tried once more.
                    || ["cuMemAlloc_v2", "cuMemAllocFromPoolAsync", "cuMemHostAlloc"].contains(&call) && self.code == 2;
                assert!(is_known, "{at}, and nobody was told");
            }
            Err(error) => {
                let text = error.to_string();
                assert!(self.tells(call, &text), "{at}, which is told as: {text}");
                if is_fatal(self.code) && is_lost(error) {
                    assert!(text.contains("unusable"), "{at}: {text}");
                }
            }
        }
    }

    /// Whether a text names the call and the code.
    fn tells(&self, call: &str, text: &str) -> bool {
        let stem = call.trim_end_matches("_v2").trim_end_matches("Async");
        let names_call = text.contains(stem)
            || call == "cuModuleLoadDataEx" && text.contains("refused the code of kernel");
        let names_code = text.contains(&format!("({}:", self.code))
            || self.code == 2 && text.contains("out of device memory");
        // What the driver says once more where the first answer was no error.
        let again = is_fatal(self.code)
            && (BYPASSED.contains(&call)
                || LOADS.contains(&call)
                || EXPECTED.contains(&(self.name, call)));
        let has_no_device = self.code == 100 && text.contains("sees no device");
        names_code && (names_call || again) || has_no_device
    }

    /// That nothing is alive any more: but for what a release that failed has left, and what goes with a lost context.
    fn nothing_is_left(&self, at: &str) {
        let (ledger, links) = (self.fake.ledger(), self.fake.links()[1]);
        let failed = self.fake.failed().unwrap_or_default();
        if is_fatal(self.code) {
            return;
        }
        let kept = u64::from(RELEASES.contains(&failed.as_str()));
        assert!(ledger.total() <= kept, "{at} ({failed}): {ledger:?}");
        assert!(
            links == 0 || failed == "cuLinkDestroy",
            "{at}: {links} are being made"
        );
        assert_eq!(self.fake.race(), None, "{at}");
    }
}

/// Whether an error says that the context is lost.
fn is_lost(error: &Error) -> bool {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = source {
        if let Some(DriverError::Poisoned { .. }) = error.downcast_ref() {
            return true;
        }
        source = error.source();
    }
    false
}
