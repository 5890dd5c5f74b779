//! The form in which code is kept outside the process: what its calls stand for as lines of text, then the
//! object file.

use std::str::SplitWhitespace;
use std::sync::Arc;

use super::{Change, Element, OnHostCode, Operation, RowCall, Site};
use crate::code::KeptCode;
use crate::keywords::Keyword as _;
use crate::{AtomicOp, IntrinsicDef, Scalar};

/// The word of [`Change::CompareAndSwap`].
const COMPARE_AND_SWAP: &str = "compare_and_swap";

/// The words of the operations that have no parts.
const PLAIN: [(&str, Operation); 7] = [
    ("nothing", Operation::Nothing),
    ("exit", Operation::Exit),
    ("barrier", Operation::Barrier),
    ("grid", Operation::Grid),
    ("dynamic_shared_bytes", Operation::DynamicSharedBytes),
    ("turn", Operation::Turn),
    ("accessed", Operation::Accessed),
];

impl OnHostCode {
    /// The form in which it is kept.
    pub(super) fn kept(&self) -> KeptCode {
        let mut rows = Vec::new();
        let (shared, stack) = (self.static_shared, self.stack_bytes);
        let mut text = format!("{shared} {stack} {}\n", self.sites.len());
        for site in self.sites.iter() {
            let operation = written(&site.operation, &mut rows);
            text.push_str(&format!("{} {operation}\n", site.arguments));
        }
        let bytes = [text.as_bytes(), &self.object].concat();
        KeptCode { bytes, rows }
    }

    /// The code again; `None` if it is no such form.
    pub fn read(kept: &KeptCode) -> Option<OnHostCode> {
        let mut rest = kept.bytes.as_slice();
        let mut line = || {
            let end = rest.iter().position(|byte| *byte == b'\n')?;
            let line = std::str::from_utf8(&rest[..end]).ok()?;
            rest = &rest[end + 1..];
            Some(line.split_whitespace())
        };
        let mut head = line()?;
        let (static_shared, stack_bytes) = (number(&mut head)?, number(&mut head)?);
        let sites = (0..number(&mut head)?).map(|number| site(number, &mut line()?, &kept.rows));
        let sites = sites.collect::<Option<Arc<[Site]>>>()?;
        Some(OnHostCode {
            object: rest.to_vec(),
            sites,
            static_shared,
            stack_bytes,
        })
    }
}

fn written(operation: &Operation, rows: &mut Vec<&'static IntrinsicDef>) -> String {
    match operation {
        Operation::Thread(axis) => format!("thread {axis}"),
        Operation::Block(axis) => format!("block {axis}"),
        Operation::LowBits(bits) => format!("low_bits {bits}"),
        Operation::ToFloat { signed, bits } => format!("to_float {signed} {bits}"),
        Operation::Row(call) => {
            let known = rows.iter().position(|row| std::ptr::eq(*row, call.row));
            let row = known.unwrap_or_else(|| {
                rows.push(call.row);
                rows.len() - 1
            });
            let types = [call.scalar].into_iter().chain(call.params.iter().copied());
            let types = types.map(|scalar| format!(" {}", scalar.name()));
            format!("row {row}{}", types.collect::<String>())
        }
        Operation::Atomic(change, Element { class, bits }) => {
            let change = match change {
                Change::CompareAndSwap => COMPARE_AND_SWAP,
                Change::Modify(op) => op.keyword(),
            };
            format!("atomic {change} {class}{bits}")
        }
        Operation::Nothing
        | Operation::Exit
        | Operation::Barrier
        | Operation::Grid
        | Operation::DynamicSharedBytes
        | Operation::Turn
        | Operation::Accessed => {
            let mut plain = PLAIN.into_iter().filter(|(_, plain)| plain == operation);
            plain.next().map_or("?", |(word, _)| word).to_owned()
        }
    }
}

fn site(
    number: usize,
    words: &mut SplitWhitespace<'_>,
    rows: &[&'static IntrinsicDef],
) -> Option<Site> {
    let arguments = words.next()?.parse().ok()?;
    let operation = operation(words, rows)?;
    words.next().is_none().then_some(Site {
        operation,
        number,
        arguments,
    })
}

fn operation(words: &mut SplitWhitespace<'_>, rows: &[&'static IntrinsicDef]) -> Option<Operation> {
    Some(match words.next()? {
        "thread" => Operation::Thread(number(words)?),
        "block" => Operation::Block(number(words)?),
        "low_bits" => Operation::LowBits(number(words)?),
        "to_float" => Operation::ToFloat {
            signed: number(words)?,
            bits: number(words)?,
        },
        "row" => {
            let row = rows.get(number::<usize>(words)?)?;
            let mut types = words.map(Scalar::from_keyword);
            Operation::Row(RowCall {
                row,
                scalar: types.next()??,
                params: types.collect::<Option<_>>()?,
            })
        }
        "atomic" => {
            let change = match words.next()? {
                COMPARE_AND_SWAP => Change::CompareAndSwap,
                op => Change::Modify(AtomicOp::from_keyword(op)?),
            };
            Operation::Atomic(change, Element::named(words.next()?)?)
        }
        plain => {
            let row = PLAIN.into_iter().find(|(word, _)| *word == plain);
            row?.1
        }
    })
}

fn number<T: std::str::FromStr>(words: &mut SplitWhitespace<'_>) -> Option<T> {
    words.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Meaning, TypePattern};

    static ROW: IntrinsicDef =
        IntrinsicDef::new("test.row", &[], TypePattern::Unit, Meaning::Pure(|_, _| 0));

    /// One of each operation.
    fn operations(row: &'static IntrinsicDef) -> Vec<Operation> {
        let element = Element {
            class: 'u',
            bits: 32,
        };
        let call = RowCall {
            row,
            scalar: Scalar::F32,
            params: vec![Scalar::F32, Scalar::Bool],
        };
        let with_parts = [
            Operation::Thread(2),
            Operation::Block(0),
            Operation::LowBits(16),
            Operation::ToFloat {
                signed: true,
                bits: 64,
            },
            Operation::Row(call),
            Operation::Atomic(Change::Modify(AtomicOp::Exchange), element),
            Operation::Atomic(Change::CompareAndSwap, element),
        ];
        let plain = PLAIN.into_iter().map(|(_, operation)| operation);
        plain.chain(with_parts).collect()
    }

    fn code() -> OnHostCode {
        let sites = (0..).zip(operations(&ROW));
        let sites = sites.map(|(number, operation)| Site {
            operation,
            number,
            arguments: number % 3,
        });
        OnHostCode {
            object: b"\x7fELF\n2 of its bytes\n".to_vec(),
            sites: sites.collect(),
            static_shared: 48,
            stack_bytes: 65_536,
        }
    }

    #[test]
    fn what_is_kept_is_read_again() {
        let code = code();
        let kept = code.kept();
        let read = OnHostCode::read(&kept).expect("it is its own form");
        assert_eq!(read.sites, code.sites);
        assert_eq!(read.object, code.object);
        assert_eq!([read.static_shared, read.stack_bytes], [48, 65_536]);
        assert_eq!(read.kept().bytes, kept.bytes);
    }

    #[test]
    fn what_is_cut_off_or_without_its_rows_is_none() {
        let kept = code().kept();
        let text = kept.bytes.len() - code().object.len();
        for end in 0..text {
            let bytes = kept.bytes[..end].to_vec();
            let rows = kept.rows.clone();
            assert!(
                OnHostCode::read(&KeptCode { bytes, rows }).is_none(),
                "{end}"
            );
        }
        let rows = Vec::new();
        assert!(OnHostCode::read(&KeptCode { rows, ..kept }).is_none());
    }
}
