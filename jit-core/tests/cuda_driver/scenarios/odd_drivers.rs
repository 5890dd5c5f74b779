//! Drivers that are old or odd, errors that come with a later call, and opening a device while calls fail.

use kiln::core::runtime::cuda::{DriverError, MIN_DRIVER_VERSION};

use super::list::ALL;
use super::{BYPASSED, CODES, Place, World, fresh, is_fatal, open};
use crate::fake::{Fake, Ledger};
use crate::lost_context::RELEASES;

/// The entry points, those that a driver must have and the others.
fn entry_points() -> [Vec<&'static str>; 2] {
    let table = include_str!("../../../runtime/src/cuda/table.rs");
    let table = table.split_once("driver_table! {\n").expect("the table").1;
    let (required, optional) = table.split_once("    optional {").expect("its parts");
    let names = |text: &'static str| {
        let names = text
            .lines()
            .filter_map(|line| line.strip_prefix("        fn cu"));
        let names = names.map(|line| &line[..line.find('(').expect("arguments")]);
        names.collect::<Vec<_>>()
    };
    let (optional, _) = optional.split_once("\n    }\n").expect("its end");
    [names(required), names(optional)]
}

/// A driver that lacks one of those it must have is named with it.
#[test]
fn entry_points_that_are_missing() {
    let [required, _] = entry_points();
    assert!(required.len() > 50, "{required:?}");
    for name in required {
        let name = format!("cu{name}");
        let fake = Fake::without(&[&name]);
        match fake.open() {
            Err(DriverError::SymbolMissing { symbol, .. }) => assert_eq!(symbol, name),
            other => panic!("without `{name}`: {other:?}"),
        }
    }
}

/// Plays all on drivers that are allowed.
fn all_are_played(fake: &Fake, version: i32) {
    let place = Place::new();
    for (name, scenario) in ALL {
        fresh(fake);
        fake.set(version, 2, 0, 1 << 30);
        let jit = open(fake, &place).expect("it opens");
        let world = World {
            fake,
            place: &place,
            jit: &jit,
        };
        scenario(&world).unwrap_or_else(|error| panic!("{name}: {error}"));
        drop(jit);
        assert_eq!(fake.ledger(), Ledger::default(), "{name}");
    }
}

#[test]
fn the_oldest_driver_does_all() {
    all_are_played(&Fake::new(), MIN_DRIVER_VERSION as i32);
}

#[test]
fn a_driver_without_what_it_may_lack_does_all() {
    let [_, optional] = entry_points();
    assert!(optional.len() >= 6, "{optional:?}");
    let names: Vec<_> = optional.iter().map(|name| format!("cu{name}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    all_are_played(&Fake::without(&names), 13000);
}

/// A kernel that ends the context is told by a later call, and is named; every call after that says the same.
#[test]
fn errors_that_come_with_a_later_call() {
    let (fake, place) = (Fake::new(), Place::new());
    let mut runs = 0;
    // The fake driver ends the contexts of all devices with the one that is begun anew.
    let is_played = |(name, _): &&(&str, _)| *name != "begins_anew";
    for (name, scenario) in ALL.iter().filter(is_played) {
        for launches in 1.. {
            fresh(&fake);
            let jit = open(&fake, &place).expect("it opens");
            fake.sticky_after(launches, 700 + 19 * (launches % 2));
            let world = World {
                fake: &fake,
                place: &place,
                jit: &jit,
            };
            let played = scenario(&world);
            let at = format!("{name}, launch {launches}");
            let first = match (played, jit.synchronize()) {
                (Ok(()), Ok(())) => break,
                (Err(_), Ok(())) => panic!("{at}: an error, and the device works"),
                (_, Err(error)) => error.to_string(),
            };
            runs += 1;
            assert!(first.contains("unusable"), "{at}: {first}");
            let names_kernel = first.contains("; kernel `");
            // Of several contexts each knows its own launches.
            let several = [
                "adopts_a_context",
                "hands_tensors_on",
                "has_two_devices",
                "copies_between_devices",
            ];
            let several = several.contains(name);
            assert!(names_kernel || several, "{at}: {first}");
            let calls = fake.calls();
            let second = jit.zeros::<u32>(4).map(drop).expect_err("it stays so");
            assert_eq!(second.to_string(), first, "{at}");
            drop(jit);
            assert_eq!(fake.calls(), calls, "{at}: what is lost is left alone");
        }
    }
    assert!(runs > 50, "{runs}");
}

/// Each call that opening a device makes fails in turn; the next try opens it.
#[test]
fn opening_while_calls_fail() {
    let (fake, place) = (Fake::new(), Place::new());
    for code in CODES {
        for nth in 1.. {
            fresh(&fake);
            fake.fail("*", nth, code);
            let opened = open(&fake, &place);
            let Some(call) = fake.failed() else {
                assert!(nth > 25, "opening made {nth} calls");
                break;
            };
            let at = format!("call {nth} ({call}) returns {code}");
            let bypassed = BYPASSED.contains(&call.as_str());
            match &opened {
                Ok(_) => assert!(bypassed, "{at}, and nobody was told"),
                Err(error) => {
                    let text = error.to_string();
                    let stem = call.trim_end_matches("_v2");
                    let says = [stem, "refused a context", "sees no device", "unusable"];
                    assert!(says.iter().any(|said| text.contains(said)), "{at}: {text}");
                }
            }
            drop(opened);
            if !is_fatal(code) && !RELEASES.contains(&call.as_str()) {
                assert_eq!(fake.ledger(), Ledger::default(), "{at}");
                let jit = open(&fake, &place).unwrap_or_else(|error| panic!("{at}: {error}"));
                jit.upload(&[1u32]).expect("it works");
            }
        }
    }
}
