//! Inline PTX that reads and writes memory: `ld`, `st`, `atom`, `red` and the fences (PTX ISA, "Data
//! Movement and Conversion Instructions", "Parallel Synchronization and Communication
//! Instructions"), as statements one after the other.
//!
//! Orders and scopes are read and left out: the threads of a block take turns on one thread of the
//! host, and each sees what those before it did.

use kiln_ir::AtomicOp;
use kiln_ir::gpu_on_host::{Access, AccessKind, Element};

fn element(text: &str) -> Option<Element> {
    let class = text.chars().next().filter(|c| "sufb".contains(*c))?;
    let bits = text.get(1..)?.parse().ok()?;
    let known = matches!(bits, 8 | 16 | 32 | 64) && !(class == 'f' && bits < 32);
    known.then_some(Element { class, bits })
}

/// Orders, scopes and places, which make no difference here.
const IGNORED: &[&str] = &[
    "weak",
    "relaxed",
    "acquire",
    "release",
    "acq_rel",
    "sc",
    "volatile",
    "mmio",
    "cta",
    "cluster",
    "gpu",
    "gl",
    "sys",
    "global",
    "shared",
    "shared::cta",
    "local",
    "const",
];

/// The accesses of a template whose first `results` operands are results; `None` if it has anything
/// else in it.
pub(super) fn parse(template: &str, results: usize) -> Option<Vec<Access>> {
    let mut accesses = Vec::new();
    let statements = template.split(';').map(str::trim);
    for statement in statements.filter(|s| !s.is_empty()) {
        let (opcode, operands) = statement.split_once(' ').unwrap_or((statement, ""));
        let mut words = opcode.split('.');
        let instruction = words.next()?;
        let words: Vec<&str> = words.filter(|w| !IGNORED.contains(w)).collect();
        if matches!(instruction, "fence" | "membar") {
            match words.is_empty() && operands.is_empty() {
                true => continue,
                false => return None,
            }
        }
        accesses.push(access(instruction, &words, operands, results)?);
    }
    Some(accesses)
}

fn access(instruction: &str, words: &[&str], operands: &str, results: usize) -> Option<Access> {
    let operands: Vec<&str> = operands.split(',').map(str::trim).collect();
    let (kind, ty) = match (instruction, words) {
        ("ld", &[ty]) => (AccessKind::Load, ty),
        ("st", &[ty]) => (AccessKind::Store, ty),
        ("atom", &["cas", ty]) => (AccessKind::CompareAndSwap, ty),
        ("atom" | "red", &[op, ty]) => (AccessKind::Modify(operation(op)?), ty),
        _ => return None,
    };
    let operands = match instruction {
        "ld" | "atom" => {
            let (result, rest) = operands.split_first()?;
            (*result == "$0" && results == 1).then_some(rest)?
        }
        _ => &operands[..],
    };
    let (address, values) = operands.split_first()?;
    let argument = |text: &str| {
        let number: usize = text.strip_prefix('$')?.parse().ok()?;
        number.checked_sub(results)
    };
    let address = address.strip_prefix('[')?.strip_suffix(']')?;
    let values: Vec<usize> = values.iter().map(|v| argument(v)).collect::<Option<_>>()?;
    let wanted = match kind {
        AccessKind::Load => 0,
        AccessKind::Store | AccessKind::Modify(_) => 1,
        AccessKind::CompareAndSwap => 2,
    };
    (values.len() == wanted).then_some(())?;
    Some(Access {
        kind,
        element: element(ty)?,
        address: argument(address)?,
        values,
    })
}

fn operation(word: &str) -> Option<AtomicOp> {
    Some(match word {
        "add" => AtomicOp::Add,
        "min" => AtomicOp::Min,
        "max" => AtomicOp::Max,
        "and" => AtomicOp::And,
        "or" => AtomicOp::Or,
        "xor" => AtomicOp::Xor,
        "exch" => AtomicOp::Exchange,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_are_read() {
        let read = |template, results| parse(template, results);
        let add = Access {
            kind: AccessKind::Modify(AtomicOp::Add),
            element: Element {
                class: 'u',
                bits: 32,
            },
            address: 0,
            values: vec![1],
        };
        let atom = "atom.acq_rel.gpu.global.add.u32 $0, [$1], $2;";
        assert_eq!(read(atom, 1), Some(vec![add.clone()]));
        let red = "fence.sc.gpu; red.relaxed.cta.shared.add.u32 [$0], $1;";
        assert_eq!(read(red, 0), Some(vec![add]));
        assert_eq!(read("membar.gl;", 0), Some(vec![]));
        let cas = read("atom.relaxed.sys.cas.b64 $0, [$1], $2, $3;", 1);
        let cas = cas.and_then(|mut list| list.pop()).expect("it is known");
        assert_eq!(cas.kind, AccessKind::CompareAndSwap);
        assert_eq!(cas.values, [1, 2]);
    }

    #[test]
    fn what_is_not_known_is_not_guessed() {
        for template in [
            "atom.global.inc.u32 $0, [$1], $2;",
            "ld.global.nc.u32 $0, [$1];",
            "ld.v2.u32 {$0, $1}, [$2];",
            "ld.u32 $0, [$1+4];",
            "fence.proxy.async;",
            "atom.add.noftz.f16 $0, [$1], $2;",
            "mov.u32 $0, $1;",
        ] {
            assert_eq!(parse(template, 1), None, "{template}");
        }
        assert_eq!(parse("ld.u32 $0, [$1];", 0), None, "it has no result");
    }
}
