//! Slices in constant memory, beside the functions as they are written: what launches pass by value, what has no room, what is
//! filled again between launches, and what is refused.

use kiln::core::target::Target;
use kiln::directives::{DirectiveError, Report};
use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    weights_of_windows,
    parts_of_structs,
    sections_of_constants,
    rows_of_a_shape,
    constants_that_change,
    the_host_writes_a_constant,
    constants_without_room,
    constants_that_are_staged,
    empty_constants,
    what_is_removed_is_written,
    constant_indices_are_checked,
    constants_of_other_lengths,
    wrong_constants_are_refused,
];

fn numbers(len: usize) -> Vec<u32> {
    (0..len as u32).map(|i| i * 7 % 23 + 1).collect()
}

/// The constants of each launch.
fn constants(report: &Report) -> Vec<Vec<(&str, u64)>> {
    let kernels = report.kernels.iter();
    kernels.map(|kernel| kernel.constants()).collect()
}

/// Sums over windows, each element with a weight; a second region has the weights, too, and one that it needs not check.
#[kiln::offload]
fn windows(x: &[u32], weights: &[u32], y: &mut [u32], n: usize) {
    constant!(copyin weights);
    #[kernel(tblock(2), thread(8))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..n {
            let mut sum = 0;
            for w in 0..weights.len() {
                sum += x[i + w] * weights[w];
            }
            y[i] = sum;
        }
    }
    #[kernel(tblock(3), thread(4), nowait)]
    {
        #[loop_partition(over_tblock(CYCLIC), over_thread)]
        for i in 0..n {
            y[i] += weights[i % weights.len()];
        }
    }
    constant!(remove weights);
}

fn weights_of_windows(jit: &Jit) -> Outcome {
    for (n, width, capacity) in [
        (37, 5, 8),
        (20, 8, 8),
        (20, 9, 32),
        (0, 1, 8),
        (50, 400, 500),
    ] {
        let (x, weights) = (numbers(n + width), numbers(width));
        let (mut y, mut z) = (vec![5; n], vec![5; n]);
        let ((), report) = windows.launch_reported(jit, &x, &weights, &mut y, n)?;
        windows.sequential(&x, &weights, &mut z, n);
        assert_eq!(y, z, "{n} {width}");
        let wanted = vec![vec![("weights", capacity)]; 2];
        assert_eq!(constants(&report), wanted, "{n} {width}");
        assert_eq!(
            report.uploads, 3,
            "what regions check indices by is on the device, too"
        );
    }
    Ok(())
}

/// A kind of atom.
#[derive(Copy, Clone, KernelType)]
#[repr(C)]
struct Kind {
    weight: f64,
    pulls: [f32; 3],
}

/// Reads a part of a part, a part by an index of run time, and a whole.
#[kiln::offload]
fn atoms(kinds: &[Kind], of: &[u8], y: &mut [f64]) {
    constant!(copyin kinds);
    #[kernel(tblock(2), thread(8))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..y.len() {
            let at = of[i] as usize;
            let own = kinds[at];
            y[i] = own.weight + kinds[0].weight * (kinds[at].pulls[i % 3] + own.pulls[1]) as f64;
        }
    }
}

fn parts_of_structs(jit: &Jit) -> Outcome {
    let kind = |i: usize| Kind {
        weight: i as f64 + 0.5,
        pulls: [i as f32, 2.0 * i as f32, -1.0],
    };
    let kinds: Vec<Kind> = (0..40).map(kind).collect();
    let of: Vec<u8> = (0..100).map(|i| (i * 7 % 40) as u8).collect();
    let (mut y, mut z) = (vec![0.0; 100], vec![0.0; 100]);
    let ((), report) = atoms.launch_reported(jit, &kinds, &of, &mut y)?;
    atoms.sequential(&kinds, &of, &mut z);
    assert_eq!(y, z);
    assert_eq!(constants(&report), [[("kinds", 125)]]);
    Ok(())
}

/// Uses elements from `from` to `to` of those from 3 to 11.
#[kiln::offload]
fn of_some(x: &[u32], y: &mut [u32], from: usize, to: usize) {
    constant!(copyin x[3..12]);
    #[kernel(tblock(2), thread(4))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in (from..to).rev() {
            y[i] = 2 * x[i];
        }
    }
}

fn sections_of_constants(jit: &Jit) -> Outcome {
    let x = numbers(20);
    for (from, to) in [(3, 12), (5, 6), (7, 7)] {
        let (mut y, mut z) = (vec![0; 20], vec![0; 20]);
        let ((), report) = of_some.launch_reported(jit, &x, &mut y, from, to)?;
        of_some.sequential(&x, &mut z, from, to);
        assert_eq!(y, z, "{from} {to}");
        assert_eq!(constants(&report), [[("x", 32)]]);
        assert_eq!(report.uploaded_bytes, (9 + 20) * 4);
    }
    for (from, to) in [(2, 5), (10, 13)] {
        let error = of_some.launch(jit, &x, &mut [0; 20], from, to);
        let error = error.expect_err("it is outside");
        let error = error.library::<DirectiveError>();
        let is_outside =
            matches!(error, Some(DirectiveError::Outside { slice, .. }) if slice == "x");
        assert!(is_outside, "{error:?}");
    }
    Ok(())
}

/// Reads of one plane the inner columns, row by row; what lies between rows is there, too.
#[kiln::offload]
fn inner(x: &[u32], y: &mut [u32], n: usize, m: usize) {
    shape!(x[2][n][m]);
    constant!(copyin x[1][1..n][1..m - 1]);
    #[kernel(tblock(2), thread(4))]
    {
        #[loop_partition(over_tblock)]
        for i in 1..n {
            #[loop_partition(over_thread)]
            for j in 1..m - 1 {
                y[i * m + j] = x[(n + i) * m + j];
            }
        }
    }
}

fn rows_of_a_shape(jit: &Jit) -> Outcome {
    for (n, m) in [(4, 5), (2, 3), (1, 3)] {
        let x = numbers(2 * n * m);
        let (mut y, mut z) = (vec![0; n * m], vec![0; n * m]);
        inner.launch(jit, &x, &mut y, n, m)?;
        inner.sequential(&x, &mut z, n, m);
        assert_eq!(y, z, "{n} {m}");
    }
    Ok(())
}

/// Adds portions of charges, each in constant memory while its launch runs, none of which is waited for.
#[kiln::offload]
fn portions(charges: &[u32], y: &mut [u32], portion: usize) {
    for number in 0..charges.len().div_ceil(portion) {
        let first: usize = number * portion;
        let last: usize = (first + portion).min(charges.len());
        constant!(copyin charges[first..last]);
        #[kernel(tblock(2), thread(8), nowait)]
        {
            #[loop_partition(over_tblock, over_thread)]
            for i in 0..y.len() {
                for at in first..last {
                    y[i] += charges[at] * (i + at) as u32;
                }
            }
        }
    }
}

fn constants_that_change(jit: &Jit) -> Outcome {
    let charges = numbers(103);
    let (mut y, mut z) = (vec![1; 30], vec![1; 30]);
    let ((), report) = portions.launch_reported(jit, &charges, &mut y, 20)?;
    portions.sequential(&charges, &mut z, 20);
    assert_eq!(y, z);
    let of_launches = constants(&report);
    assert_eq!(of_launches.len(), 6);
    assert_eq!(
        (&of_launches[0], &of_launches[5]),
        (&vec![("charges", 32)], &vec![("charges", 8)])
    );
    Ok(())
}

/// The host writes the slice, after which regions read what it wrote, from global memory until it is copied again.
#[kiln::offload]
fn rewritten(w: &mut [u32], y: &mut [u32], steps: u32) {
    constant!(copyin w);
    for step in 0..steps {
        #[kernel(tblock(2), thread(4))]
        {
            #[loop_partition(over_tblock, over_thread)]
            for i in 0..y.len() {
                y[i] = 3 * y[i] + w[i % w.len()];
            }
        }
        w[1] += 5;
        if step == 1 {
            constant!(copyin w);
            #[kernel(tblock(1), thread(4))]
            {
                #[loop_partition(over_tblock, over_thread)]
                for i in 0..y.len() {
                    y[i] += w[1];
                }
            }
        }
    }
}

fn the_host_writes_a_constant(jit: &Jit) -> Outcome {
    let (mut w, mut y) = (numbers(5), numbers(20));
    let (mut v, mut z) = (w.clone(), y.clone());
    let ((), report) = rewritten.launch_reported(jit, &mut w, &mut y, 4)?;
    rewritten.sequential(&mut v, &mut z, 4);
    assert_eq!((w, y), (v, z));
    let held: Vec<usize> = constants(&report).iter().map(Vec::len).collect();
    assert_eq!(held, [1, 0, 1, 1, 0]);
    Ok(())
}

/// Looks numbers up in two tables.
#[kiln::offload]
fn look_up(a: &[f32], b: &[f32], y: &mut [f32]) {
    constant!(copyin a, b);
    #[kernel(tblock(2), thread(16))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..y.len() {
            y[i] += a[i * 13 % a.len()] - b[i * 7 % b.len()];
        }
    }
}

fn constants_without_room(jit: &Jit) -> Outcome {
    let numbers = |len: usize| (0..len).map(|i| (i * 5 % 19) as f32).collect::<Vec<_>>();
    // As far as the arguments of a launch have room for one after the other; what has none is read from global memory.
    let of_sizes: [(usize, usize, &[(&str, u64)]); 5] = [
        (4000, 10, &[("a", 4000), ("b", 32)]),
        (4001, 10, &[("b", 32)]),
        (2100, 2000, &[("a", 4000), ("b", 2000)]),
        (3900, 4000, &[("a", 4000), ("b", 4000)]),
        (16_000, 384, &[("b", 500)]),
    ];
    for (len, other, wanted) in of_sizes {
        let (a, b) = (numbers(len), numbers(other));
        let (mut y, mut z) = (vec![1.0; 500], vec![1.0; 500]);
        let ((), report) = look_up.launch_reported(jit, &a, &b, &mut y)?;
        look_up.sequential(&a, &b, &mut z);
        assert_eq!(y, z, "{len} {other}");
        // An architecture whose launches have room for few arguments holds fewer.
        if matches!(jit.target(), Target::Cpu(_) | Target::Interpreter) {
            assert_eq!(constants(&report), [wanted], "{len} {other}");
        }
    }
    Ok(())
}

/// A constant that blocks copy to shared memory, and that iterations side by side read.
#[kiln::offload]
fn staged(w: &[u32], x: &[u32], y: &mut [u32], n: usize, m: usize) {
    constant!(copyin w);
    #[kernel(tblock(2, 2), thread(2, 4))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..n {
            #[loop_partition(over_tblock, over_thread, coarsen(2))]
            #[shared(copyin(x))]
            for j in 0..m {
                y[i * m + j] = x[i * m + j] * w[j] + w[i];
            }
        }
    }
    #[kernel(tblock(2), thread(4))]
    {
        #[loop_partition(over_tblock, over_thread)]
        #[shared(copyin(w[..]))]
        for i in 0..n {
            y[i * m] += w[(y[i * m] as usize) % w.len()];
        }
    }
}

fn constants_that_are_staged(jit: &Jit) -> Outcome {
    for (n, m) in [(5, 19), (3, 8), (1, 1)] {
        let (w, x) = (numbers(n.max(m)), numbers(n * m));
        let (mut y, mut z) = (vec![0; n * m], vec![0; n * m]);
        staged.launch(jit, &w, &x, &mut y, n, m)?;
        staged.sequential(&w, &x, &mut z, n, m);
        assert_eq!(y, z, "{n} {m}");
    }
    Ok(())
}

/// Reads a constant as far as it has elements.
#[kiln::offload]
fn as_far_as(w: &[u32], y: &mut [u32]) {
    constant!(copyin w);
    #[kernel(tblock(2), thread(4))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..y.len() {
            if i < w.len() {
                y[i] = w[i];
            }
        }
    }
}

fn empty_constants(jit: &Jit) -> Outcome {
    for len in [0, 1] {
        let (w, mut y) = (numbers(len), vec![9; 10]);
        let ((), report) = as_far_as.launch_reported(jit, &w, &mut y)?;
        assert_eq!(y[..len], w);
        assert_eq!(y[len..], [9; 10][len..]);
        assert_eq!(constants(&report)[0].len(), len);
    }
    Ok(())
}

/// A slice that is a constant of one region, which another one writes once it is none any more.
#[kiln::offload]
fn written_behind(w: &mut [u32], y: &mut [u32]) {
    constant!(copyin w);
    #[kernel(tblock(2), thread(4))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..y.len() {
            y[i] = w[i];
        }
    }
    constant!(remove w);
    #[kernel(tblock(2), thread(4))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..y.len() {
            w[i] = y[i] + 1;
        }
    }
}

fn what_is_removed_is_written(jit: &Jit) -> Outcome {
    let (mut w, mut y) = (numbers(12), vec![0; 10]);
    let (mut v, mut z) = (w.clone(), y.clone());
    written_behind.launch(jit, &mut w, &mut y)?;
    written_behind.sequential(&mut v, &mut z);
    assert_eq!((w, y), (v, z));
    Ok(())
}

/// Reads at the index that `at` says.
#[kiln::offload]
fn read_at(w: &[u32], at: &[u32], y: &mut [u32]) {
    constant!(copyin w);
    #[kernel(tblock(1), thread(4))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..y.len() {
            y[i] = w[at[i] as usize];
        }
    }
}

fn constant_indices_are_checked(jit: &Jit) -> Outcome {
    let w = numbers(5);
    let mut y = vec![0; 3];
    read_at.launch(jit, &w, &[4, 0, 2], &mut y)?;
    assert_eq!(y, [w[4], w[0], w[2]]);
    // The array that is passed has 8 elements.
    let error = read_at.launch(jit, &w, &[4, 5, 2], &mut y);
    let error = error.expect_err("it is out of bounds").to_string();
    assert!(error.contains("index 5") && error.contains("5"), "{error}");
    Ok(())
}

/// A kernel of a plan is for slices that are as long as the array at most, and says so.
fn constants_of_other_lengths(jit: &Jit) -> Outcome {
    let plan = as_far_as.plan(&numbers(5), &mut [0; 10])?;
    let kernel = &plan.kernels[0];
    assert_eq!(kernel.constants(), [("w", 8)]);
    let by_value: [u32; 8] = std::array::from_fn(|i| i as u32 + 1);
    let launch = |len: usize| {
        let (w, mut y) = (jit.upload(&numbers(len))?, jit.upload(&[9u32; 10])?);
        let args = args!(&w, &mut y, by_value);
        jit.launch(kernel.kernel(), kernel.grid(), kernel.block(), args)?;
        y.to_vec()
    };
    assert_eq!(launch(8)?, [1, 2, 3, 4, 5, 6, 7, 8, 9, 9]);
    let error = launch(9).expect_err("the slice is longer").to_string();
    assert!(
        error.contains("of no more elements than that has there"),
        "{error}"
    );
    Ok(())
}

/// Two constants of so many bytes together.
#[kiln::offload]
fn two(a: &[u8], b: &[u8], y: &mut [u8]) {
    constant!(copyin a, b);
    #[kernel(tblock(1), thread(4))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..y.len() {
            y[i] = a[i] & b[i];
        }
    }
}

/// Writes a slice that is in constant memory.
#[kiln::offload]
fn written_there(w: &mut [u32]) {
    constant!(copyin w);
    #[kernel(tblock(2), thread(4))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..w.len() {
            w[i] += 1;
        }
    }
}

/// Removes a slice again.
#[kiln::offload]
fn removed_twice(w: &[u32], y: &mut [u32]) {
    constant!(copyin w);
    #[kernel(tblock(2), thread(4))]
    {
        y[0] = w[0];
    }
    constant!(remove w, w);
}

fn wrong_constants_are_refused(jit: &Jit) -> Outcome {
    let of_bytes = |a: usize, b: usize| {
        let launched = two.launch(jit, &vec![7; a], &vec![3; b], &mut [0; 4]);
        launched.map_err(|error| error.to_string())
    };
    let text = |launched: kiln::Result<()>| launched.expect_err("it is wrong").to_string();
    assert_eq!(of_bytes(65_000, 536), Ok(()));
    let no_room = |slice, bytes| {
        format!(
            "`{slice}` has no room in constant memory: with it, the constants have {bytes} bytes, of at most 65536: copy a \
             smaller section, or leave the slice where regions read it otherwise, by taking `constant!` away"
        )
    };
    assert_eq!(of_bytes(65_537, 4), Err(no_room("a", 65_537)));
    assert_eq!(of_bytes(65_000, 537), Err(no_room("b", 65_537)));
    assert_eq!(
        text(removed_twice.launch(jit, &numbers(12), &mut [0; 10])),
        "`w` and constant memory: `remove` is of a slice that is not there: say `constant!(copyin ..)` of it before; one \
         that the host may have written is not there any more, either"
    );
    assert_eq!(
        text(written_there.launch(jit, &mut numbers(12))),
        "`w` and constant memory: a region writes the slice, and what is there does not change: say `constant!(remove ..)` of \
         it before, or write another slice"
    );
    Ok(())
}
