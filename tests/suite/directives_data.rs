//! Sections of slices that `global!` copies to devices and back: which elements, how many bytes, and what is refused.

use kiln::directives::DirectiveError;
use kiln::prelude::*;

use super::{Outcome, chapter};

chapter![
    sections_of_a_matrix,
    sections_of_planes,
    sections_over_others,
    zeros_on_the_device,
    memory_that_is_let_go,
    what_is_written_before_alloc_stays,
    elements_outside_are_refused,
    sections_that_are_not_there,
];

fn numbers(len: usize) -> Vec<u32> {
    (0..len as u32).map(|i| i * 7 % 23 + 1).collect()
}

/// The inner part of a matrix is copied there, and a part of that back.
#[kiln::offload]
fn inner(x: &[u32], y: &mut [u32], n: usize, m: usize) {
    shape!(x[n][m]);
    shape!(y[n][m]);
    global!(alloc x[1..=n - 2][..] copyin x[1..n - 1][..]);
    global!(alloc y[1..n - 1][1..m - 1]);
    #[kernel(tblock(2), thread(8))]
    {
        #[loop_partition(over_tblock)]
        for i in 1..n - 1 {
            #[loop_partition(over_thread)]
            for j in 1..m - 1 {
                y[i * m + j] = x[i * m + j - 1] + 3 * x[i * m + j + 1];
            }
        }
    }
}

fn sections_of_a_matrix(jit: &Jit) -> Outcome {
    for (n, m) in [(6, 9), (3, 3)] {
        let x = numbers(n * m);
        let (mut y, mut z) = (vec![5; n * m], vec![5; n * m]);
        let ((), report) = inner.launch_reported(jit, &x, &mut y, n, m)?;
        inner.sequential(&x, &mut z, n, m);
        assert_eq!(y, z, "{n} {m}");
        let bytes = [(n - 2) * m * 4, (n - 2) * (m - 2) * 4];
        assert_eq!([report.uploaded_bytes, report.downloaded_bytes], bytes);
        assert_eq!((report.uploads, report.downloads), (1, 1));
    }
    Ok(())
}

/// All is written in memory that need not be copied; the first half is written once more.
#[kiln::offload]
fn halves(x: &mut [u32], n: usize, half: usize) {
    global!(alloc x);
    #[kernel(tblock(2), thread(8))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..n {
            x[i] = i as u32 + 1;
        }
    }
    global!(alloc x);
    #[kernel(tblock(2), thread(8))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..half {
            x[i] = 3 * x[i];
        }
    }
}

fn what_is_written_before_alloc_stays(jit: &Jit) -> Outcome {
    for n in [0, 1, 2, 37] {
        let (mut x, mut z) = (numbers(n), numbers(n));
        let ((), report) = halves.launch_reported(jit, &mut x, n, n / 2)?;
        halves.sequential(&mut z, n, n / 2);
        assert_eq!(x, z, "{n}");
        assert_eq!(report.uploads, 0);
    }
    Ok(())
}

/// One plane of several, and one element of each of its rows behind.
#[kiln::offload]
fn plane(x: &mut [u32], count: usize, n: usize, m: usize, k: usize) {
    shape!(x[count][n][m]);
    global!(copyin x[k][..][..]);
    #[kernel(tblock(2), thread(4))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for at in k * n * m..(k + 1) * n * m {
            x[at] = 2 * x[at];
        }
    }
    global!(copyout x[k][0..n][1]);
}

fn sections_of_planes(jit: &Jit) -> Outcome {
    let (count, n, m) = (3, 4, 5);
    for k in 0..count {
        let mut x = numbers(count * n * m);
        let mut z = x.clone();
        let ((), report) = plane.launch_reported(jit, &mut x, count, n, m, k)?;
        plane.sequential(&mut z, count, n, m, k);
        assert_eq!(x, z, "{k}");
        assert_eq!(report.uploaded_bytes, n * m * 4);
        // What is asked for, and at the end all.
        assert_eq!(report.downloads, 2);
    }
    Ok(())
}

/// A part of what a region writes comes over another slice.
#[kiln::offload]
fn over(x: &[u32], y: &mut [u32], to: &mut [u32], n: usize) {
    #[kernel(tblock(2), thread(4))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in 0..n {
            y[i] = 3 * x[i];
        }
    }
    global!(copyout y[2..6], y[0] to to[n - 4..], to[1]);
    global!(copyout y);
    to[0] += y[7];
}

fn sections_over_others(jit: &Jit) -> Outcome {
    let (x, n) = (numbers(12), 12);
    let (mut y, mut to) = (vec![0; n], vec![9; n]);
    let (mut z, mut over_z) = (y.clone(), to.clone());
    let ((), report) = over.launch_reported(jit, &x, &mut y, &mut to, n)?;
    over.sequential(&x, &mut z, &mut over_z, n);
    assert_eq!((&y, &to), (&z, &over_z));
    assert_eq!(report.downloaded_bytes, (4 + 1 + n) * 4);
    Ok(())
}

/// Adds to zeros that nobody copies.
#[kiln::offload]
fn from_zero(x: &[u32], y: &mut [u32], n: usize) {
    global!(clear y);
    for _ in 0..2 {
        #[kernel(tblock(2), thread(4))]
        {
            #[loop_partition(over_tblock, over_thread)]
            for i in 1..n {
                y[i] += x[i];
            }
        }
    }
}

fn zeros_on_the_device(jit: &Jit) -> Outcome {
    let x = numbers(30);
    let (mut y, mut z) = (vec![7; 30], vec![7; 30]);
    let ((), report) = from_zero.launch_reported(jit, &x, &mut y, 30)?;
    from_zero.sequential(&x, &mut z, 30);
    assert_eq!(y, z);
    assert_eq!((report.uploads, report.downloads), (1, 1));
    Ok(())
}

/// Lets a slice go between two regions.
#[kiln::offload]
fn let_go(x: &mut [u32], n: usize) {
    for _ in 0..2 {
        #[kernel(tblock(2), thread(4))]
        {
            #[loop_partition(over_tblock, over_thread)]
            for i in 0..n {
                x[i] = 3 * x[i] + 1;
            }
        }
        global!(free x);
    }
}

fn memory_that_is_let_go(jit: &Jit) -> Outcome {
    let mut x = numbers(20);
    let mut z = x.clone();
    let ((), report) = let_go.launch_reported(jit, &mut x, 20)?;
    let_go.sequential(&mut z, 20);
    assert_eq!(x, z);
    assert_eq!((report.uploads, report.downloads), (2, 2));
    Ok(())
}

/// Uses elements from `from` to `to` of those from 2 to 6, of which the first four are copied.
#[kiln::offload]
fn of_some(x: &[u32], y: &mut [u32], from: usize, to: usize) {
    global!(alloc x[2..7] copyin x[2..=5]);
    #[kernel(tblock(2), thread(4))]
    {
        #[loop_partition(over_tblock, over_thread)]
        for i in from..to {
            y[i] = x[i];
        }
    }
}

fn elements_outside_are_refused(jit: &Jit) -> Outcome {
    let (x, mut y) = (numbers(10), vec![0; 10]);
    of_some.launch(jit, &x, &mut y, 3, 6)?;
    assert_eq!((y[2], &y[3..6]), (0, &x[3..6]));
    let mut refused = |from, to| {
        let error = of_some
            .launch(jit, &x, &mut y, from, to)
            .expect_err("it is outside");
        error.library::<DirectiveError>().cloned()
    };
    for (from, to) in [(1, 4), (3, 8)] {
        let error = refused(from, to);
        let is_outside =
            matches!(&error, Some(DirectiveError::Outside { slice, .. }) if slice == "x");
        assert!(is_outside, "{error:?}");
    }
    // It is there, and nobody has written it.
    let error = refused(3, 7);
    assert!(
        matches!(error, Some(DirectiveError::Unwritten { .. })),
        "{error:?}"
    );
    Ok(())
}

/// Copies sections of which something is wrong.
#[kiln::offload]
fn wrong(x: &mut [u32], y: &mut [u32], rows: usize, which: u32) {
    shape!(x[rows][4]);
    if which == 0 {
        global!(copyin x[0][..]);
        #[kernel(tblock(1), thread(4))]
        {
            #[loop_partition(over_thread)]
            for i in 0..2 {
                x[i] += 1;
            }
        }
        global!(copyin x[0][..]);
    }
    if which == 1 {
        #[kernel(tblock(1), thread(4))]
        {
            #[loop_partition(over_thread)]
            for i in 0..2 {
                x[i] += 1;
            }
        }
        global!(copyout x[0][..] to y[0..3]);
    }
    if which == 2 {
        global!(alloc x[0][..] copyin x[1][..]);
        #[kernel(tblock(1), thread(1))]
        {
            x[0] = 1;
        }
    }
    if which == 3 {
        global!(copyin x[0..=rows][..]);
        #[kernel(tblock(1), thread(1))]
        {
            x[0] = 1;
        }
    }
}

fn sections_that_are_not_there(jit: &Jit) -> Outcome {
    let refused = |rows, which| {
        let (mut x, mut y) = (numbers(12), numbers(12));
        let error = wrong.launch(jit, &mut x, &mut y, rows, which);
        error.expect_err("it is wrong").to_string()
    };
    let texts = [
        refused(3, 0),
        refused(3, 1),
        refused(3, 2),
        refused(3, 3),
        refused(4, 0),
    ];
    let wanted = [
        "a section of `x` is not copied: a region has written it since it was copied to the host: copy it out first",
        "a section of [1, 1, 4] elements along three dimensions is copied over one of [1, 1, 3]: let both have as many along each",
        "a section of `x` is not copied: these are not among the elements that `alloc` says",
        "",
        "the slice has 12 elements, and its shape is [4, 4]: `shape!` says all that it has",
    ];
    for (text, wanted) in texts.iter().zip(wanted) {
        match wanted {
            // The words are those of regions.
            "" => assert!(text.contains("0..4"), "{text}"),
            _ => assert_eq!(text, wanted),
        }
    }
    Ok(())
}
