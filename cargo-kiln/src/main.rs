//! `cargo kiln bundle`: a program with Kiln's kernels as a folder that runs where there is no Rust.

use std::path::Path;
use std::process::ExitCode;

use kiln_bundle::Bundle;

fn main() -> ExitCode {
    // Cargo gives the name of the command first.
    let mut args = std::env::args_os().skip(1).skip_while(|arg| arg == "kiln");
    let bundle = args.next().filter(|arg| arg == "bundle");
    let bundle = match bundle {
        Some(_) => Bundle::asked(args),
        // Its message says what there is.
        None => Bundle::asked([]),
    };
    let made = bundle.and_then(|bundle| Ok((bundle.make(Path::new("."))?, bundle.out)));
    match made {
        Ok((names, out)) => {
            println!("{}: {}", out.display(), names.join(", "));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("cargo kiln: {error}");
            ExitCode::from(2)
        }
    }
}
