//! The programs of the guide: `guide-programs NAME` runs the one that its chapter and line name.

use std::process::ExitCode;

include!(concat!(env!("OUT_DIR"), "/programs.rs"));

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    match PROGRAMS.iter().find(|program| program.0 == name) {
        Some((_, run)) => run(),
        None => {
            let names: Vec<&str> = PROGRAMS.iter().map(|program| program.0).collect();
            eprintln!(
                "no program is called `{name}`; there are {}",
                names.join(", ")
            );
            ExitCode::FAILURE
        }
    }
}
