//! Options that programs of tests have beside those of Rust's harness: they are taken out of the command line, and the
//! harness has the rest, filters among it.

/// Whether an option is among the arguments, which then no longer have it.
pub fn takes(args: &mut Vec<String>, option: &str) -> bool {
    let count = args.len();
    args.retain(|arg| arg != option);
    args.len() < count
}
