//! How many instructions a `#[kernel]` function becomes, beside the same kernel in CUDA C++ by nvcc:
//! PTX, and machine code (SASS) by the same `ptxas`.
//!
//! The first pair is the one of listings 8 and 9 of Besard, Foket, De Sutter (2018): the fused broadcast
//! as an array expression and as a kernel written by hand. nvcc's programs are in `benches/peers`. CUDA
//! C++ checks no bounds, so Kiln's kernels are compared without checks; with checks the twin has the
//! same ones, written by hand.
//!
//! nvcc is large, so what it makes is recorded in `nvcc/recorded.txt`. Where there is an nvcc, it is held
//! that it still does: `cargo xtask setup --nvcc`, then `UPDATE_EXPECT=1 cargo xtask test -p kiln-tests nvcc`
//! records anew. Instructions of Kiln's kernels are counted in every run; SASS needs `KILN_PTXAS` and
//! `KILN_NVDISASM`, which `cargo xtask test` sets.

mod count;
mod gpucc;
mod kernels;
mod left;
mod listing;
mod machine;
mod micro;
mod programs;
mod running_sums;
mod strangers;

use std::fmt::Write;

use count::Counts;
use expect_test::expect_file;
use kernels::{PAIRS, Pair};

/// The architectures that are compared.
const ARCHITECTURES: [u32; 2] = [80, 90];

/// What nvcc makes, as it was recorded: a line for each kernel and architecture.
const RECORDED: &str = include_str!("nvcc/recorded.txt");

/// A line of the record.
fn line(pair: &Pair, sm: u32, counts: &Counts) -> String {
    let Counts { ptx, sass } = counts;
    let sass = sass.map_or_else(|| "?".to_owned(), |n| n.to_string());
    format!("{} sm_{sm}: ptx {ptx}, sass {sass}\n", pair.twin.1)
}

/// What nvcc made of the twin of a kernel.
fn recorded(pair: &Pair, sm: u32) -> Counts {
    let start = format!("{} sm_{sm}: ptx ", pair.twin.1);
    let rest = RECORDED.lines().find_map(|l| l.strip_prefix(&start));
    let numbers = rest.and_then(|rest| rest.split_once(", sass "));
    let (ptx, sass) = numbers.unwrap_or_else(|| panic!("`{start}..` is not recorded"));
    Counts {
        ptx: ptx.parse().expect("a number is recorded"),
        sass: Some(sass.parse().expect("a number is recorded")),
    }
}

/// Whether a count is at most a number of per cent above nvcc's.
fn is_within(ours: usize, theirs: usize, percent: usize) -> bool {
    100 * ours <= (100 + percent) * theirs
}

#[test]
fn kernels_are_as_short_as_nvccs() {
    let (mut table, mut failed) = (String::new(), false);
    for pair in PAIRS {
        for sm in ARCHITECTURES {
            let ours = count::of_module(&pair.module(), sm);
            let theirs = recorded(pair, sm);
            let sass = ours.sass.zip(theirs.sass);
            let is_short = match sass {
                Some((ours, theirs)) => is_within(ours, theirs, pair.percent),
                None => is_within(ours.ptx, theirs.ptx, pair.percent),
            };
            failed |= !is_short;
            let mark = if is_short { "" } else { "  <- too many" };
            let ours = line(pair, sm, &ours);
            let _ = writeln!(
                table,
                "{} | {} | nvcc: ptx {}, sass {:?}{mark}",
                pair.name,
                ours.trim_end(),
                theirs.ptx,
                theirs.sass
            );
        }
    }
    println!("{table}");
    assert!(!failed, "more instructions than nvcc makes:\n{table}");
}

#[test]
fn nvcc_makes_what_is_recorded() {
    let mut lines: Vec<String> = Vec::new();
    for pair in PAIRS {
        for sm in ARCHITECTURES {
            let Some(counts) = count::of_nvcc(pair.twin.0, pair.twin.1, sm) else {
                println!("no nvcc, or no nvdisasm: the record is not compared with anything");
                return;
            };
            let line = line(pair, sm, &counts);
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    expect_file!["nvcc/recorded.txt"].assert_eq(&lines.concat());
}
