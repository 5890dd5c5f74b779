//! Options that programs of tests have beside those of Rust's harness: they are taken out of the command line, and the
//! harness has the rest, filters among it.

/// Whether an option is among the arguments, which then no longer have it.
pub fn takes(args: &mut Vec<String>, option: &str) -> bool {
    let count = args.len();
    args.retain(|arg| arg != option);
    args.len() < count
}

/// The number behind an option, where it is among the arguments, which then have neither.
///
/// # Errors
/// Something else than a number behind it, or nothing.
pub fn takes_number(args: &mut Vec<String>, option: &str) -> Result<Option<u64>, String> {
    let Some(at) = args.iter().position(|arg| arg == option) else {
        return Ok(None);
    };
    let number = args.get(at + 1).and_then(|text| text.parse().ok());
    let number = number.ok_or_else(|| format!("`{option}` takes a number"))?;
    args.drain(at..at + 2);
    Ok(Some(number))
}
