//! Stand-ins: names in a chain that is written out ([`crate::chain`]) for what has a type that rustc finds with everything
//! else.

use kiln_description::Code;
use proc_macro2::{Ident, Span};
use quote::quote_spanned;
use syn::spanned::Spanned;
use syn::{BinOp, Expr, ExprBinary, ExprCall};

use crate::body::Translator;
use crate::function::root_at;
use crate::position::before;

/// What stands for something whose type rustc finds with everything else. Each is a name that nobody can write.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum Stand {
    /// What a sum begins with.
    Zero,
    /// What a product begins with.
    One,
    /// The sum of two, of which the second may be a reference.
    Added,
    /// The product of two, of which the second may be a reference.
    Multiplied,
    /// An item of a type that has an order.
    Ordered,
    /// An item of the type that an option is of.
    Alike,
}

impl Stand {
    const ALL: [Stand; 6] = [
        Stand::Zero,
        Stand::One,
        Stand::Added,
        Stand::Multiplied,
        Stand::Ordered,
        Stand::Alike,
    ];

    fn text(self) -> &'static str {
        match self {
            Stand::Zero => "__kiln_zero",
            Stand::One => "__kiln_one",
            Stand::Added => "__kiln_added",
            Stand::Multiplied => "__kiln_multiplied",
            Stand::Ordered => "__kiln_ordered",
            Stand::Alike => "__kiln_alike",
        }
    }

    /// The stand-in itself.
    pub(crate) fn name(self, at: Span) -> Ident {
        Ident::new(self.text(), Span::mixed_site().located_at(at))
    }

    /// What an expression stands for.
    pub(crate) fn of(expr: &Expr) -> Option<Stand> {
        let Expr::Path(path) = expr else {
            return None;
        };
        let name = path.path.get_ident()?;
        Stand::ALL.into_iter().find(|stand| name == stand.text())
    }

    /// Whether a stand-in is a number.
    pub(crate) fn is_number(self) -> bool {
        matches!(self, Stand::Zero | Stand::One)
    }

    /// The expression of the host.
    pub(crate) fn on_host(self, span: Span) -> Expr {
        let root = root_at(span);
        let span = before(span);
        Expr::Verbatim(match self {
            Stand::Zero => quote_spanned!(span=> #root::sum_of_none()),
            Stand::One => quote_spanned!(span=> #root::product_of_none()),
            Stand::Added => quote_spanned!(span=> #root::added),
            Stand::Multiplied => quote_spanned!(span=> #root::multiplied),
            Stand::Ordered => quote_spanned!(span=> #root::ordered),
            Stand::Alike => quote_spanned!(span=> #root::alike),
        })
    }

    /// The number as it is written where its type is known.
    pub(crate) fn literal(self, span: Span) -> Expr {
        let value = u8::from(self == Stand::One);
        let mut literal = proc_macro2::Literal::u8_unsuffixed(value);
        literal.set_span(span);
        Expr::Lit(syn::ExprLit {
            attrs: Vec::new(),
            lit: syn::Lit::new(literal),
        })
    }
}

/// What a call stands for, if its function is a stand-in.
fn stands(call: &ExprCall) -> Option<Stand> {
    Stand::of(&call.func)
}

impl Translator<'_> {
    /// A call whose function is a stand-in.
    pub(crate) fn stand_in(&mut self, call: &ExprCall) -> Option<Code> {
        let (stand, first) = (stands(call)?, call.args.first()?);
        let span = first.span();
        let op = match stand {
            Stand::Added => BinOp::Add(syn::token::Plus(span)),
            Stand::Multiplied => BinOp::Mul(syn::token::Star(span)),
            Stand::Zero | Stand::One | Stand::Ordered | Stand::Alike => {
                return Some(self.expr(first));
            }
        };
        Some(self.expr(&Expr::Binary(ExprBinary {
            attrs: Vec::new(),
            left: Box::new(first.clone()),
            op,
            right: Box::new(call.args.get(1)?.clone()),
        })))
    }
}
