//! Every value of an enum that comes back is one of its variants, whatever a kernel wrote there and however the host
//! reads; within a kernel, what is no variant takes some arm of a `match`.

use super::jits;
use expect_test::expect;
use kiln::core::region::Region;
use kiln::prelude::*;

/// Zero, with which memory begins, is no variant.
#[derive(KernelType, Copy, Clone, Debug, PartialEq)]
#[repr(u8)]
enum Phase {
    Solid = 3,
    Liquid = 5,
    Gas = 9,
}

#[derive(KernelType, Copy, Clone, Debug, PartialEq)]
#[repr(C)]
struct Sample {
    mass: u32,
    phase: Phase,
}

#[kernel]
fn any_byte(phases: &mut [Phase], samples: &mut [Sample], arms: &mut [u32], densities: &mut [u32]) {
    let bytes = dynamic_shared::<u8>();
    let i = thread_idx().x;
    bytes[i] = i as u8;
    barrier();
    let phase = dynamic_shared::<Phase>()[i];
    phases[i] = phase;
    samples[i].phase = phase;
    arms[i] = match phase {
        Phase::Solid => 30,
        Phase::Liquid => 50,
        Phase::Gas => 90,
    };
    if i < 10 {
        densities[i] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9][phase as usize];
    }
}

const THREADS: usize = 64;

fn error<T>(result: kiln::Result<T>) -> String {
    match result {
        Ok(_) => "values".into(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn of_memory_written_as_another_type() {
    for (name, jit) in jits() {
        let one = [Phase::Gas; THREADS];
        let mut phases = jit.upload(&one).expect("memory");
        let sample = Sample {
            mass: 7,
            phase: Phase::Solid,
        };
        let mut samples = jit.upload(&[sample; THREADS]).expect("memory");
        let mut arms = jit.zeros::<u32>(THREADS).expect("memory");
        let mut densities = jit.zeros::<u32>(10).expect("memory");
        let config = LaunchConfig::new(1, THREADS as u32).shared_bytes(THREADS as u32);
        any_byte
            .launch(
                &jit,
                config,
                &mut phases,
                &mut samples,
                &mut arms,
                &mut densities,
            )
            .expect("a launch");

        // What is a variant takes its own arm, what is none any.
        let arms = arms.to_vec().expect("numbers");
        assert_eq!([arms[3], arms[5], arms[9]], [30, 50, 90], "{name}");
        assert!(
            arms.iter().all(|arm| [30, 50, 90].contains(arm)),
            "{name}: {arms:?}"
        );
        let densities = densities.to_vec().expect("numbers");
        assert_eq!(densities, (0..10).collect::<Vec<u32>>(), "{name}");

        // All ways to read them look at them.
        let wrong = expect![
            "element 0 of a buffer of `behavior::safe_code::enums::Phase` holds no value of that type; initialize the \
             buffer with `upload`, and look for the kernel that wrote another number there"
        ];
        wrong.assert_eq(&error(phases.to_vec()));
        let mut read = one;
        wrong.assert_eq(&error(phases.read_into(0, &mut read)));
        assert_eq!(read, one, "{name}: the host's values are as they were");
        let pinned = jit.pinned(&one).expect("memory");
        wrong.assert_eq(&error(
            phases.read_later(pinned).and_then(|later| later.wait()),
        ));
        wrong.assert_eq(&error(phases.part(..2).and_then(|part| part.to_vec())));
        let two = Region::of([1, 2]);
        wrong.assert_eq(&error(
            phases.read_region(
                &Region::of([THREADS / 2, 2])
                    .part([0..1, 0..2])
                    .expect("two"),
                &mut read,
                &two,
            ),
        ));
        assert!(
            error(samples.to_vec()).contains("element 0 of a buffer"),
            "{name}"
        );
        let variants = [phases.part(3..4), phases.part(5..6), phases.part(9..10)]
            .map(|part| part.and_then(|part| part.to_vec()).expect("a variant")[0]);
        assert_eq!(
            variants,
            [Phase::Solid, Phase::Liquid, Phase::Gas],
            "{name}"
        );

        // They are not numbers either way, and memory that nobody has filled holds none.
        assert!(
            error(phases.cast_mut::<u8>()).contains("not all bits are values"),
            "{name}"
        );
        wrong.assert_eq(&error(
            jit.zeros::<Phase>(1).and_then(|zeros| zeros.to_vec()),
        ));
    }
}
