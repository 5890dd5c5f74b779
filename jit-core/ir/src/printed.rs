//! What kernels print: formats as [`std::fmt`] has them, and records on their way to the host.
//!
//! `println!("{i}: {:.2}", x)` is an instruction with a [`Format`] and two values until operations become calls
//! of their functions. Then the format is a [`PrintSite`] of the module, and the thread appends a record to memory
//! that kernels and the host share (a global of the name [`GLOBAL`]), which the host makes text of:
//!
//! ```text
//! word 0  words that were asked for     words RECORDS..  records, one behind the other
//! word 1  lines that found no room
//!
//! record: site + 1 and the number of values, kernel tag, the bits of each value
//! ```
//!
//! A word is a `u64`; of two numbers in one the first is the lower half. A thread's lines are in its order, since it asks for room line by line.

mod format;

use crate::Scalar;

pub use format::{Format, FormatError, Spec};

/// The name of the global that records are in. No Rust path spells it.
pub const GLOBAL: &str = "kiln.printed";

/// How many words the global has: a mebibyte.
pub const WORDS: usize = 1 << 17;

/// Where the words that were asked for are counted.
pub const USED: usize = 0;

/// Where the lines are counted that found no room.
pub const LOST: usize = 1;

/// Where the first record is.
pub const RECORDS: usize = 2;

/// How many words a record has before its values.
pub const RECORD_HEAD: usize = 2;

/// How many values an instruction prints at most.
pub const MAX_VALUES: usize = 64;

/// A place in a kernel's code that prints.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PrintSite {
    /// The function it was written in, also where its body was put in place of a call.
    pub function: String,
    /// The line that prints, as `file:line:column`.
    pub location: String,
    /// The [`Format`], as it is read.
    pub format: String,
    /// What the values are.
    pub values: Vec<Scalar>,
    /// Whether the text is for the standard error output.
    pub to_stderr: bool,
}

/// A record, as a thread has left it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrintRecord<'a> {
    /// Which place, as an index into the kernel's print sites.
    pub site: usize,
    /// Which kernel: the tag that was compiled in.
    pub kernel_tag: u64,
    /// The bits of the values.
    pub values: &'a [u64],
}

impl<'a> PrintRecord<'a> {
    /// The record at the start of these words, if a thread has left one there.
    pub fn first(words: &'a [u64]) -> Option<PrintRecord<'a>> {
        let (&[head, kernel_tag], behind) = words.split_first_chunk::<RECORD_HEAD>()?;
        let (site, count) = (head as u32, (head >> 32) as usize);
        Some(PrintRecord {
            site: site.checked_sub(1)? as usize,
            kernel_tag,
            values: behind.get(..count)?,
        })
    }

    /// The first word of a record of a site with so many values.
    pub fn head(site: usize, values: usize) -> u64 {
        (site as u64 + 1) | (values as u64) << 32
    }
}

impl PrintSite {
    /// What a record says.
    pub fn text(&self, values: &[u64]) -> String {
        let values = self.values.iter().copied().zip(values.iter().copied());
        match Format::parse(&self.format) {
            Ok(format) => format.text(&self.location, values),
            // The verifier has refused it.
            Err(_) => self.format.clone(),
        }
    }
}

#[cfg(test)]
mod check {
    use super::*;

    #[test]
    fn records_are_read() {
        let words = [PrintRecord::head(2, 1), 7, 42, 1];
        let record = PrintRecord::first(&words).expect("there is one");
        assert_eq!((record.site, record.kernel_tag), (2, 7));
        assert_eq!(record.values, [42]);
        assert_eq!(PrintRecord::first(&[0; 9]), None);
        assert_eq!(PrintRecord::first(&words[..2]), None);
        let site = PrintSite {
            function: "k".to_owned(),
            location: "k.rs:3:4".to_owned(),
            format: "{@} {}\n".to_owned(),
            values: vec![Scalar::U32],
            to_stderr: false,
        };
        assert_eq!(site.text(record.values), "k.rs:3:4 42\n");
    }
}
