//! A description as a text, for people.

use std::fmt::Write;

use crate::{Len, Reader, TypeOp, When};

/// The text of a description: an operation a line, what it is made of below it. After `@` is its place,
/// its line counted from that of the function.
///
/// ```
/// use kiln_description::{Code, Op, text};
///
/// let two = Code::new(Op::Local, None).number(2);
/// let code = Code::header("a.rs", 1, 3, 0).code(&Code::new(Op::Field, None).text("x").code(&two));
/// assert_eq!(text(&code.into_bytes()), "Field \"x\"\n  Local v2\n");
/// ```
pub fn text(description: &[u8]) -> String {
    let mut code = Reader::new(description);
    code.header();
    let mut out = String::new();
    operation(&mut code, 0, &mut out);
    out
}

fn operation(code: &mut Reader<'_>, depth: usize, out: &mut String) {
    let (op, place) = code.op();
    let mut line = format!("{:width$}{op:?}", "", width = 2 * depth);
    let mut below = String::new();
    for operand in op.operands().chars() {
        if let Some(shown) = inline(operand, code) {
            line.push(' ');
            line.push_str(&shown);
            continue;
        }
        let count = match operand {
            'o' => usize::from(code.flag()),
            'E' | 'S' => code.count(),
            _ => 1,
        };
        if operand == 'o' && count == 0 {
            line.push_str(" -");
        }
        for _ in 0..count {
            if operand == 'S' {
                let _ = writeln!(
                    below,
                    "{:width$}{:?}:",
                    "",
                    code.text(),
                    width = 2 * depth + 2
                );
            }
            // A region stands where it is evaluated first.
            if operand == 'r' {
                code.number();
            }
            operation(code, depth + 1, &mut below);
        }
    }
    if let Some(place) = place {
        let _ = write!(line, " @{}:{}", place.line, place.column);
    }
    let _ = write!(out, "{line}\n{below}");
}

/// An operand that is no operation.
fn inline(operand: char, code: &mut Reader<'_>) -> Option<String> {
    Some(match operand {
        'v' => format!("v{}", code.number()),
        'c' => format!("c{}", code.number()),
        'p' => format!("p{}", code.number()),
        'n' => code.number().to_string(),
        'i' => code.int().to_string(),
        'f' => code.flag().to_string(),
        'm' => when(&code.when()),
        's' => format!("{:?}", code.text()),
        'x' => format!("{:?}", code.op().0),
        'l' => len(code),
        't' => ty(code),
        'u' => match code.flag() {
            true => ty(code),
            false => "-".to_owned(),
        },
        'T' => types(code, ("<", ">")),
        'K' => {
            let each: Vec<String> = (0..code.count()).map(|_| len(code)).collect();
            format!("<{}>", each.join(", "))
        }
        'N' => {
            let each = (0..code.count()).map(|_| format!("{} {}", code.text(), code.number()));
            format!("<{}>", each.collect::<Vec<_>>().join(", "))
        }
        _ => return None,
    })
}

fn when(when: &When) -> String {
    match when {
        When::Never => "false".to_owned(),
        When::Always => "true".to_owned(),
        When::Changing(methods) => {
            let methods: Vec<String> = methods.iter().map(|m| format!("p{m}")).collect();
            format!("if({})", methods.join(" "))
        }
    }
}

fn types(code: &mut Reader<'_>, (open, close): (&str, &str)) -> String {
    let types: Vec<String> = (0..code.count()).map(|_| ty(code)).collect();
    format!("{open}{}{close}", types.join(", "))
}

fn ty(code: &mut Reader<'_>) -> String {
    match code.type_op() {
        TypeOp::Unit => "()".to_owned(),
        TypeOp::Pooled => format!("p{}", code.number()),
        TypeOp::Array => {
            let element = ty(code);
            format!("[{element}; {}]", len(code))
        }
        TypeOp::Tuple => types(code, ("(", ")")),
        TypeOp::Reference => {
            let mutable = code.flag();
            format!("{}{}", reference(mutable), ty(code))
        }
        TypeOp::Slice => {
            let mutable = code.flag();
            format!("{}[{}]", reference(mutable), ty(code))
        }
        TypeOp::Option => format!("Option<{}>", ty(code)),
        TypeOp::Result => {
            let value = ty(code);
            format!("Result<{value}, {}>", ty(code))
        }
    }
}

fn reference(mutable: bool) -> &'static str {
    if mutable { "&mut " } else { "&" }
}

fn len(code: &mut Reader<'_>) -> String {
    match code.len() {
        Len::Pooled(entry) => format!("p{entry}"),
        Len::Param(param) => format!("const {param}"),
    }
}
