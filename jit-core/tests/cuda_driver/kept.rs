//! Kernels of a CUDA device that are kept on disk: the fake driver makes machine code of PTX.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use kiln_jit_core::build::Kernel;
use kiln_jit_core::cache::{CacheFolder, CodeOrigin};
use kiln_jit_core::error::Result;
use kiln_jit_core::hook::{Hook, HookSet};
use kiln_jit_core::ir::Type;
use kiln_jit_core::jit::{Jit, JitOptions};
use kiln_jit_core::runtime::Device;
use kiln_jit_core::target::{PtxTarget, Target};
use kiln_jit_core::{ahead, args};

use super::fake::Fake;

/// A place for a folder, which goes with this.
struct Place(PathBuf);

impl Place {
    fn new() -> Place {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        Place(std::env::temp_dir().join(format!("kiln-kept-gpu-{}-{n}", std::process::id())))
    }

    fn jit(&self, fake: &Fake) -> Jit {
        self.jit_with(fake, HookSet::new())
    }

    fn jit_with(&self, fake: &Fake, hooks: HookSet) -> Jit {
        let device = Device::cuda_of(fake.open().expect("a driver"), 0).expect("a device");
        let options = JitOptions::default().cache(CacheFolder::At(self.0.clone()));
        Jit::with(device, hooks, options)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn put() -> Kernel {
    let kernel = Kernel::build("put", |k| {
        let x = k.slice_mut("x", Type::U32);
        x.at(0).set(k.param("value", Type::U32));
    });
    kernel.expect("a kernel")
}

fn launch(jit: &Jit) -> Result<()> {
    let mut x = jit.zeros::<u32>(4)?;
    jit.launch(&put(), 2, 32, args!(&mut x, 7u32))
}

/// Where the code came from that launches have, as inspection and what is made ready say.
pub(super) fn origin(jit: &Jit) -> Option<CodeOrigin> {
    let mut x = jit.zeros::<u32>(4).expect("memory");
    let args = args!(&mut x, 7u32);
    let inspected = jit.inspect(&put(), args).expect("it compiles").origin();
    let ready = jit.compile(&put(), args).expect("it compiles");
    if inspected.is_some() {
        assert_eq!(ready.origin(32), inspected);
    }
    inspected
}

/// Compiles, hits on disk, writes, and what was refused.
fn stats(jit: &Jit) -> [u64; 4] {
    let stats = jit.cache_stats();
    [
        stats.compiles,
        stats.disk_hits,
        stats.disk_writes,
        stats.disk_refused,
    ]
}

#[test]
fn machine_code_that_the_driver_made_is_kept() {
    let (fake, place) = (Fake::new(), Place::new());
    let first = place.jit(&fake);
    launch(&first).expect("it is launched");
    launch(&first).expect("it is launched");
    assert_eq!(stats(&first), [1, 0, 2, 0], "{:?}", first.disk_cache());
    assert_eq!(origin(&first), Some(CodeOrigin::Compiled));
    assert_eq!(fake.links(), [1, 0]);
    let second = place.jit(&fake);
    launch(&second).expect("it is launched");
    assert_eq!(stats(&second), [0, 1, 0, 0], "{:?}", second.disk_cache());
    assert_eq!(fake.links(), [1, 0], "nothing is made again");
    assert_eq!(origin(&second), Some(CodeOrigin::Disk));
    assert_eq!(fake.last_launch()[..6], [2, 1, 1, 32, 1, 1]);
    let report = second.explain_recompile(&put());
    assert_eq!(report, None, "nothing was compiled");
}

#[test]
fn code_that_has_shipped_is_for_later_drivers_and_architectures() {
    let newer = Fake::new();
    newer.set(13000, 1, 0, 1 << 30);
    for (machine, is_exact) in [("sm_80", false), ("sm_90", true)] {
        let (shipped, kept) = (Place::new(), Place::new());
        ahead::fill(&shipped.0, &[machine.parse().expect("a machine")], |jit| {
            jit.keep(&put(), 32, args!(&mut jit.zeros::<u32>(4)?, 0u32))
        })
        .expect("it is filled");
        let jit = |fake: &Fake, cache: CacheFolder| {
            let device = Device::cuda_of(fake.open().expect("a driver"), 0).expect("a device");
            let jit = Jit::builder().device(device).cache(cache);
            jit.shipped(&shipped.0).build().expect("a `Jit`")
        };
        for fake in [&Fake::new(), &newer] {
            let jit = jit(fake, CacheFolder::Off);
            launch(&jit).expect("it is launched");
            assert_eq!(
                (jit.cache_stats().shipped_hits, stats(&jit)),
                (1, [0; 4]),
                "{machine}"
            );
            assert_eq!(origin(&jit), Some(CodeOrigin::Shipped), "{machine}");
        }
        // What the driver makes of it is kept, where it is of this machine.
        let at = || jit(&newer, CacheFolder::At(kept.0.clone()));
        let first = at();
        launch(&first).expect("it is launched");
        let written = u64::from(is_exact);
        assert_eq!(
            (first.cache_stats().shipped_hits, stats(&first)),
            (1, [0, 0, written, 0])
        );
        let second = at();
        launch(&second).expect("it is launched");
        let found = second.cache_stats();
        assert_eq!(
            (found.shipped_hits, found.disk_hits),
            (1 - written, written)
        );
        let expected = match is_exact {
            true => CodeOrigin::Disk,
            false => CodeOrigin::Shipped,
        };
        assert_eq!(origin(&second), Some(expected));
    }
    // Of what is newer than the machine nothing is used.
    let shipped = Place::new();
    ahead::fill(&shipped.0, &["sm_100".parse().expect("a machine")], |jit| {
        jit.keep(&put(), 32, args!(&mut jit.zeros::<u32>(4)?, 0u32))
    })
    .expect("it is filled");
    let device = Device::cuda_of(newer.open().expect("a driver"), 0).expect("a device");
    let jit = Jit::builder().device(device).cache(CacheFolder::Off);
    let jit = jit.shipped(&shipped.0).build().expect("a `Jit`");
    launch(&jit).expect("it is launched");
    assert_eq!(
        (jit.cache_stats().shipped_hits, stats(&jit)),
        (0, [1, 0, 0, 0])
    );
}

#[test]
fn another_driver_makes_machine_code_of_the_text_that_is_kept() {
    let (fake, place) = (Fake::new(), Place::new());
    launch(&place.jit(&fake)).expect("it is launched");
    let newer = Fake::new();
    newer.set(13000, 1, 0, 1 << 30);
    for expected in [[0, 1, 1, 0], [0, 1, 0, 0]] {
        let jit = place.jit(&newer);
        launch(&jit).expect("it is launched");
        assert_eq!(stats(&jit), expected);
        assert_eq!(newer.links(), [1, 0]);
    }
    let jit = place.jit(&fake);
    launch(&jit).expect("it is launched");
    assert_eq!(stats(&jit), [0, 1, 0, 0], "both are there");
}

#[test]
fn the_text_is_kept_where_the_driver_makes_no_machine_code() {
    for call in ["cuLinkCreate_v2", "cuLinkAddData_v2", "cuLinkComplete"] {
        let (fake, place) = (Fake::new(), Place::new());
        fake.fail(call, 1, 1);
        let first = place.jit(&fake);
        launch(&first).expect("the text is loaded");
        assert_eq!(fake.failed().as_deref(), Some(call));
        assert_eq!(stats(&first), [1, 0, 1, 0]);
        assert_eq!(fake.links()[1], 0, "{call}: what was begun is given up");
        // The next finds the text, and what the driver makes of it now is kept, too.
        let second = place.jit(&fake);
        launch(&second).expect("it is launched");
        assert_eq!(stats(&second), [0, 1, 1, 0]);
    }
}

#[test]
fn machine_code_that_is_not_loaded_is_none() {
    let (fake, place) = (Fake::new(), Place::new());
    // As soon as it was made: the text is loaded, and kept alone.
    fake.reject(209, "no kernel image is available");
    let first = place.jit(&fake);
    launch(&first).expect("the text is loaded");
    assert_eq!(stats(&first), [1, 0, 1, 1]);
    let note = first.disk_cache().note.expect("it was refused");
    assert!(note.contains("the CUDA driver"), "{note}");
    let second = place.jit(&fake);
    launch(&second).expect("it is launched");
    assert_eq!(stats(&second), [0, 1, 1, 0]);
    // Later: it is looked for once more, behind the lock. Here the second look finds it.
    fake.reject(209, "no kernel image is available");
    let third = place.jit(&fake);
    launch(&third).expect("it is launched");
    assert_eq!(stats(&third), [0, 1, 0, 1]);
}

#[test]
fn a_machine_without_a_gpu_compiles_for_one_without_libllvm() {
    let (fake, place) = (Fake::new(), Place::new());
    let target = place.jit(&fake).target().clone();
    assert_eq!(target, Target::Ptx(PtxTarget::for_sm(90)));
    let ahead = |cache| {
        let options = JitOptions::default().target(target.clone()).cache(cache);
        let jit = Jit::with(Device::cpu(), HookSet::new(), options);
        let mut x = jit.zeros::<u32>(1).expect("memory");
        let kept = jit.keep(&put(), 32, args!(&mut x, 9u32));
        (kept, stats(&jit))
    };
    let at = || CacheFolder::At(place.0.clone());
    let (kept, counts) = ahead(at());
    kept.expect("it is kept");
    assert_eq!(counts, [0, 0, 1, 0]);
    let (kept, counts) = ahead(at());
    kept.expect("it is kept already");
    assert_eq!(counts, [0, 0, 0, 0]);
    let error = ahead(CacheFolder::Off).0.expect_err("there is no folder");
    expect_test::expect![
        "kernel `put` is not kept on disk: it is switched off by `CacheFolder::Off`"
    ]
    .assert_eq(&error.to_string());
    let jit = place.jit(&fake);
    launch(&jit).expect("it is launched");
    assert_eq!(stats(&jit), [0, 1, 1, 0]);
    assert_eq!(jit.cache_stats().disk_misses, 0);
}

#[test]
fn any_call_may_fail() {
    for code in [2, 700] {
        for kept in [false, true] {
            for nth in 1.. {
                let (fake, place) = (Fake::new(), Place::new());
                if kept {
                    launch(&place.jit(&fake)).expect("it is launched");
                    fake.reset();
                }
                let jit = place.jit(&fake);
                fake.fail("*", nth, code);
                let launched = launch(&jit);
                let failed = fake.failed();
                let harmless = failed
                    .as_deref()
                    .is_none_or(|call| call.starts_with("cuLink"));
                assert!(
                    launched.is_ok() || !(harmless && code != 700),
                    "{failed:?}: {launched:?}"
                );
                drop(launched);
                drop(jit);
                // What a lost context has is gone with it.
                let not_destroyed = code == 700 || failed.as_deref() == Some("cuLinkDestroy");
                assert!(fake.links()[1] == 0 || not_destroyed, "{failed:?}");
                if failed.is_none() {
                    break;
                }
            }
        }
    }
}

#[test]
fn a_hook_s_machine_code_is_kept_if_the_hook_says_so() {
    let (fake, place) = (Fake::new(), Place::new());
    let hook = || {
        Hook::new("assembles").assemble(|_, ptx| {
            let mut image = format!("\x7fELF\n{ptx}").into_bytes();
            image.push(0);
            Ok(Some(image))
        })
    };
    let jit = place.jit_with(&fake, hook().into());
    launch(&jit).expect("it is launched");
    assert_eq!(stats(&jit), [1, 0, 0, 0]);
    let report = jit.disk_cache();
    assert!(report.folder.is_none());
    let note = report.note.expect("it says why");
    assert!(
        note.contains("`assembles`") && note.contains("may_be_kept"),
        "{note}"
    );
    for expected in [[1, 0, 1, 0], [0, 1, 0, 0]] {
        let jit = place.jit_with(&fake, hook().may_be_kept().into());
        launch(&jit).expect("it is launched");
        assert_eq!(stats(&jit), expected);
    }
    assert_eq!(fake.links(), [0, 0]);
}
