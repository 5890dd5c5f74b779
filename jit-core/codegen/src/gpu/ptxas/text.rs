//! PTX as text: functions, and the registers of a line.

/// The parts of a PTX text in which a register has one meaning: functions, with what is before them.
pub(super) fn functions(ptx: &str) -> impl Iterator<Item = &str> {
    ptx.split_inclusive("\n}\n")
}

/// The opcode and the operands of a line that is one instruction.
pub(super) fn instruction(line: &str) -> Option<(&str, impl Iterator<Item = &str>)> {
    let (opcode, operands) = line
        .trim()
        .strip_suffix(';')?
        .split_once(char::is_whitespace)?;
    Some((opcode, operands.split(',').map(str::trim)))
}

/// The registers that a line names, special ones among them.
pub(super) fn registers(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices('%').map(|(at, _)| {
        let name = &line[at + 1..];
        let length = name.find(|c: char| !c.is_ascii_alphanumeric());
        &line[at..=at + length.unwrap_or(name.len())]
    })
}
