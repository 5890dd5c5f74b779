//! A case as text: the module as `.kir`, with the launch in comments before it.
//!
//! ```text
//! ; seed 17
//! ; grid 2 1 1
//! ; block 32 1 1
//! ; dynamic_shared 0
//! ; buffer 0 8: 0102030405060708
//! ; arg buffer 0
//! ; arg bytes: 0a000000
//! module random_17 legal
//! ...
//! ```
//!
//! A buffer has a length in bytes, and those of its bytes that are not zero at the end; more of
//! them follow in lines that begin with `; +`.

use std::fmt::Write;

use kiln_jit_core::ir::{PrintOptions, parse, print};

use crate::case::{Arg, Case};

/// Bytes in a line.
const LINE_BYTES: usize = 64;

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().map(|b| format!("{b:02x}"));
    digits.collect()
}

fn from_hex(text: &str) -> Result<Vec<u8>, String> {
    let wrong = || format!("`{text}` are no bytes in hexadecimal");
    let digit = |c: u8| char::from(c).to_digit(16).ok_or_else(wrong);
    let pairs = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| match pair {
        [high, low] => Ok((digit(*high)? * 16 + digit(*low)?) as u8),
        _ => Err(wrong()),
    };
    pairs.map(byte).collect()
}

impl Case {
    /// The case as text, complete: [`Case::from_text`] gives it back.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write_launch(&mut text);
        text.push_str(&print(&self.module, PrintOptions::default()));
        text
    }

    fn write_launch(&self, text: &mut String) -> std::fmt::Result {
        let ([gx, gy, gz], [bx, by, bz]) = (self.grid, self.block);
        writeln!(text, "; seed {}", self.seed)?;
        writeln!(text, "; grid {gx} {gy} {gz}")?;
        writeln!(text, "; block {bx} {by} {bz}")?;
        writeln!(text, "; dynamic_shared {}", self.dynamic_shared)?;
        for (i, buffer) in self.buffers.iter().enumerate() {
            let end = buffer.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1);
            let mut lines = buffer[..end].chunks(LINE_BYTES).map(hex);
            let first = lines.next().unwrap_or_default();
            writeln!(text, "; buffer {i} {}: {first}", buffer.len())?;
            for line in lines {
                writeln!(text, "; + {line}")?;
            }
        }
        for arg in &self.args {
            match arg {
                Arg::Bytes(bytes) => writeln!(text, "; arg bytes: {}", hex(bytes))?,
                Arg::Buffer(buffer) => writeln!(text, "; arg buffer {buffer}")?,
            }
        }
        Ok(())
    }

    /// The case that a text describes.
    ///
    /// # Errors
    /// A line that is not of the form, or the first thing that is wrong with the module.
    pub fn from_text(text: &str) -> Result<Case, String> {
        let module = parse(text, &kiln_device_stdlib::find).map_err(|e| e.to_string())?;
        let case = Case {
            module,
            grid: [1; 3],
            block: [1; 3],
            dynamic_shared: 0,
            args: Vec::new(),
            buffers: Vec::new(),
            seed: 0,
        };
        let mut reader = Reader { case, filled: 0 };
        for line in text.lines() {
            let Some(line) = line.strip_prefix(';') else {
                break;
            };
            reader
                .line(line.trim())
                .map_err(|e| format!("`{line}`: {e}"))?;
        }
        let case = reader.case;
        let params = case
            .module
            .kernel()
            .map_or(0, |k| case.module.functions[k].params.len());
        if case.args.len() != params {
            let given = case.args.len();
            return Err(format!("the kernel takes {params} arguments, not {given}"));
        }
        Ok(case)
    }
}

/// A case whose launch is being read.
struct Reader {
    case: Case,
    /// How many bytes of the last buffer have been read.
    filled: usize,
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let (head, bytes) = line.split_once(':').unwrap_or((line, ""));
        let words: Vec<&str> = head.split_whitespace().collect();
        let number = |word: &str| word.parse::<u64>().map_err(|e| e.to_string());
        let case = &mut self.case;
        match words[..] {
            ["seed", n] => case.seed = number(n)?,
            ["grid", x, y, z] => case.grid = extents([x, y, z])?,
            ["block", x, y, z] => case.block = extents([x, y, z])?,
            ["dynamic_shared", n] => case.dynamic_shared = number(n)? as u32,
            ["arg", "buffer", n] => case.args.push(Arg::Buffer(number(n)? as usize)),
            ["arg", "bytes"] => case.args.push(Arg::Bytes(from_hex(bytes.trim())?)),
            ["buffer", _, len] => {
                case.buffers.push(vec![0; number(len)? as usize]);
                self.filled = 0;
                self.fill(bytes.trim())?;
            }
            ["+", more] => self.fill(more)?,
            _ => {}
        }
        Ok(())
    }

    fn fill(&mut self, text: &str) -> Result<(), String> {
        let bytes = from_hex(text)?;
        let range = self.filled..self.filled + bytes.len();
        let buffer = self.case.buffers.last_mut();
        let place = buffer.and_then(|b| b.get_mut(range));
        place
            .ok_or("more bytes than the buffer has")?
            .copy_from_slice(&bytes);
        self.filled += bytes.len();
        Ok(())
    }
}

fn extents(words: [&str; 3]) -> Result<[u32; 3], String> {
    let mut out = [1; 3];
    for (n, word) in out.iter_mut().zip(words) {
        *n = word.parse().map_err(|_| format!("`{word}` is no number"))?;
    }
    Ok(out)
}
