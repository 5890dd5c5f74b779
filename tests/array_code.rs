//! How much code the kernels of arrays are for a GPU: what is first of its kind waits until all of it is assembled.
//!
//! Time is not looked at: roots and shuffles are counted, each of which is there as often as the loop that it is in.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kiln::core::compile::{Stage, StageObserver};
use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;

/// The PTX of the last kernel.
#[derive(Default)]
struct Last(Mutex<String>);

impl StageObserver for Last {
    fn stage(&self, _: &str, stage: Stage, _: Duration, text: &dyn Fn() -> String) {
        if stage == Stage::Ptx {
            *self.0.lock().expect("no panic while it is held") = text();
        }
    }
}

/// A kernel's roots, its shuffles, and whether it has code for faults.
#[derive(PartialEq, Eq, Debug)]
struct Found {
    roots: usize,
    shuffles: usize,
    faults: bool,
}

/// What is in the kernel that evaluating makes, for a GPU that is not there to launch it.
fn found<R>(
    evaluate: impl FnOnce(&Array<f32>, &Array<f32>) -> Result<R, kiln::array::ArrayError>,
) -> kiln::Result<Found> {
    let last = Arc::new(Last::default());
    let jit = Jit::builder()
        .target(Target::Ptx(PtxTarget::for_sm(90)))
        .observer(last.clone())
        .build()?;
    let arrays = Arrays::new(&jit);
    let (x, y) = (
        arrays.vector(vec![2.0f32; 300])?,
        arrays.vector(vec![3.0; 300])?,
    );
    assert!(evaluate(&x, &y).is_err(), "there is no GPU");
    let ptx = last.0.lock().expect("no panic while it is held");
    let count = |word: &str| ptx.matches(word).count();
    assert_eq!(count(".entry"), 1, "{ptx}");
    Ok(Found {
        roots: count("rsqrt.approx.ftz.f32 r"),
        shuffles: count("shfl.sync"),
        faults: ptx.contains("kiln_fault"),
    })
}

/// Four elements at once and, for the last ones, one in a loop.
#[test]
fn an_expression_is_there_once_for_each_element_of_a_thread_and_once_for_the_rest()
-> kiln::Result<()> {
    let once = |roots| Found {
        roots,
        shuffles: 0,
        faults: false,
    };
    assert_eq!(found(|x, _| x.sqrt().eval())?, once(5));
    assert_eq!(found(|x, y| (x.sqrt() * y + x).eval())?, once(5));
    assert_eq!(found(|x, y| (x.sqrt() + y.sqrt()).eval())?, once(10));
    Ok(())
}

/// As many elements at once as the weight of the expression allows, four of the rest in a loop, and the last ones; the
/// threads of a block are folded in one place.
#[test]
fn a_fold_of_all_elements_has_each_of_its_loops_once() -> kiln::Result<()> {
    let folded = |roots, shuffles| Found {
        roots,
        shuffles,
        faults: false,
    };
    assert_eq!(found(|x, _| x.sum())?, folded(0, 8));
    assert_eq!(found(|x, y| (x * y).sum())?, folded(0, 8));
    // An element and its index are shuffled.
    assert_eq!(found(|x, _| x.argmax())?, folded(0, 16));
    // Of a long expression two steps at once.
    assert_eq!(found(|x, _| x.sqrt().sum())?, folded(2 * 4 + 4 + 1, 8));
    assert_eq!(
        found(|x, y| (x.sqrt() * y).sum())?,
        folded(2 * 4 + 4 + 1, 8)
    );
    let roots = found(|x, _| (x.sqrt() + 1.0).sqrt().sum())?;
    assert_eq!(roots, folded(2 * (2 * 4 + 4 + 1), 8));
    Ok(())
}
