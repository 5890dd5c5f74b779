//! What others take to compile a kernel that they have not seen, in a process that has compiled before:
//! `benches/peers/cold.py`, with as many of them as python3 has here.

use std::process::Command;

use crate::driver;
use crate::report::{Report, median};

/// The goal for Kiln, in microseconds.
pub const GOAL: f64 = 15_000.0;

/// Kiln's figure, in microseconds, beside each of theirs.
pub fn compare(report: &mut Report, ours: f64) {
    let Ok(output) = Command::new("python3")
        .arg(driver::peers().join("cold.py"))
        .output()
    else {
        eprintln!("no python3 here, and so none of its compilers");
        return;
    };
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let mut fields = line.split('\t');
        let Some(name) = fields.next() else {
            continue;
        };
        let times: Vec<f64> = fields.filter_map(|field| field.parse().ok()).collect();
        if !times.is_empty() {
            let row = format!("a saxpy compiled, beside {name}");
            report.against(&row, ours / 1e3, "ms", name, median(&times));
        }
    }
}
