//! What an expression is to whoever asks: the name of its kernel, and how that goes through its elements.

use std::fmt;

use super::{Fused, Operand, What};
use crate::expr::Node;
use crate::function::FunctionName;
use crate::space::{Access, Inner};

/// The longest name of a kernel.
const LONGEST: usize = 60;

/// Expressions of more nodes are told by the names of what they compute alone.
const MANY: usize = 64;

/// What an expression becomes when it is computed: what [`Expr::explain`](crate::Expr::explain) gives. Its `Display` tells it
/// in lines.
///
/// ```
/// use kiln::array::Explanation;
/// use kiln::prelude::*;
///
/// # fn main() -> kiln::Result<()> {
/// let arrays = Arrays::new(&Jit::new()?);
/// let explained: Explanation = arrays.ones::<f32>(3)?.sqrt().explain()?;
/// assert_eq!(explained.kernel(), "eval_sqrt");
/// assert!(explained.to_string().contains("sqrt(in0)"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Explanation {
    kernel: String,
    text: String,
}

impl Explanation {
    /// The name of the kernel, in traces, profilers and errors: what it does, and the operations in the order in which
    /// the expression names them.
    pub fn kernel(&self) -> &str {
        &self.kernel
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What a function is called in names and texts.
fn called(name: Option<&FunctionName>) -> &str {
    match name {
        // What is behind a space is its parameters.
        Some(FunctionName::Operation(name)) => name.split(' ').next().unwrap_or(name),
        Some(FunctionName::Neighbor(near)) => near.name(),
        Some(FunctionName::Closure(_)) | None => "fn",
    }
}

impl Fused<'_> {
    /// The name of the expression's kernel, which does `what` with it.
    pub(crate) fn name(&self, what: &str) -> String {
        let (mut name, mut left) = (what.to_owned(), vec![self.node]);
        while let Some(node) = left.pop() {
            let Node::Apply {
                name: function,
                args,
                ..
            } = node
            else {
                continue;
            };
            let word = called(function.as_ref());
            if name.len() + word.len() > LONGEST {
                name.push_str("_etc");
                break;
            }
            name.push('_');
            name.extend(word.chars().map(|c| match c.is_ascii_alphanumeric() {
                true => c,
                false => '_',
            }));
            left.extend(args.iter().rev().map(|arg| &**arg));
        }
        name
    }

    /// What the kernel is and does, for results of this type.
    pub(crate) fn explained(&self, element: &str, nodes: usize) -> Explanation {
        let kernel = self.name("eval");
        let element = short(element);
        let mut lines = vec![
            format!(
                "one kernel, `{kernel}`, one launch: {} of {element}",
                self.shape
            ),
            format!("  {}", self.as_calls(nodes)),
        ];
        for (n, operand) in self.operands.iter().enumerate() {
            lines.push(format!("  {}: {}", named(n, operand), told(operand)));
        }
        lines.push(format!("  {}", self.way()));
        let text = lines.join("\n");
        Explanation { kernel, text }
    }

    /// How the kernel goes through the elements.
    fn way(&self) -> String {
        let dims = &self.groups[0].dims;
        let dims = match dims.len() {
            0 | 1 => "one dimension is left of those of the arrays".to_owned(),
            n => format!("{n} dimensions are left of those of the arrays"),
        };
        let bits = if self.wide { 64 } else { 32 };
        let of_row = if self.by_rows { self.adjacent } else { 1 };
        let each = match (self.by_rows, self.items * self.rows * of_row) {
            (true, 1) => ", blocks go along rows".to_owned(),
            (true, items) => format!(", blocks go along rows, a thread has {items} elements"),
            (false, 1) => ", a thread has one element".to_owned(),
            (false, items) => format!(", a thread has {items} elements"),
        };
        format!("{dims}, indices have {bits} bits{each}")
    }

    /// The expression as calls of functions.
    fn as_calls(&self, nodes: usize) -> String {
        if nodes > MANY {
            return format!("{nodes} operations and operands");
        }
        let (mut texts, mut left) = (Vec::new(), vec![(self.node, false)]);
        let mut order = self.order.iter();
        while let Some((node, done)) = left.pop() {
            match (node, done) {
                (Node::Apply { args, .. }, false) => {
                    left.push((node, true));
                    left.extend(args.iter().rev().map(|arg| (&**arg, false)));
                }
                (Node::Apply { name, args, .. }, true) => {
                    let args = texts.split_off(texts.len() - args.len());
                    texts.push(format!("{}({})", called(name.as_ref()), args.join(", ")));
                }
                _ => {
                    let n = order.next().copied().unwrap_or_default();
                    texts.push(named(n, &self.operands[n]));
                }
            }
        }
        texts.concat()
    }
}

/// What an operand is called: arrays as the kernel's parameters are.
fn named(n: usize, operand: &Operand<'_>) -> String {
    match operand.what {
        What::Buffer(_) | What::Whole(_) => format!("in{n}"),
        What::Place => format!("i{n}"),
        What::Number(_) => format!("n{n}"),
    }
}

/// A type without the path to it.
fn short(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

fn told(operand: &Operand<'_>) -> String {
    let what = match operand.what {
        What::Number(input) => return format!("a number, {}", short(input.element_name())),
        What::Whole(input) => {
            return format!(
                "an array of {}, read where the function says",
                short(input.element_name())
            );
        }
        What::Buffer(input) => format!("an array of {}", short(input.element_name())),
        What::Place => "indices, which no memory has".to_owned(),
    };
    let how = match operand.access {
        Access::Linear => "one after the other",
        Access::One => "one element for all",
        Access::Own => "those that the result goes to",
        Access::Scalar | Access::Whole => "a value",
        Access::Coordinate(_) => "those along one dimension",
        Access::Strided([Inner::Unit, _]) => "by distances, neighbours side by side",
        Access::Strided([Inner::Still, _]) => "by distances, neighbours are one element",
        Access::Strided([Inner::Same, _]) => "one element of a larger buffer for all",
        Access::Strided([Inner::Any, _]) => "by distances, neighbours apart",
    };
    format!("{what}, {how}")
}
