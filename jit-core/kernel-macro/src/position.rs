//! Positions in the user's source.
//!
//! That of an expression is where its first token is. `Spanned` makes all tokens to find it, for each
//! expression and again for each one that it is in; [`Start`] does not.

use kiln_description::LineColumn;
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{Expr, ExprAssign, ExprBinary, ExprCall, ExprIndex, ExprMethodCall, Pat};

/// Where a function is.
pub(crate) struct Source {
    file: String,
    line: usize,
}

impl Source {
    /// Where the function with this name is.
    pub(crate) fn new(name: &Ident) -> Source {
        Source {
            file: name.span().file(),
            line: name.span().start().line,
        }
    }

    /// The file and the line of the source.
    pub(crate) fn start(&self) -> (&str, u32) {
        (&self.file, self.line as u32)
    }

    /// The place of a token. One that another macro has brought may be in another file, and is then
    /// nowhere.
    pub(crate) fn place(&self, span: Span) -> Option<LineColumn> {
        let start = span.start();
        let is_known = start.line != 0 && span.file() == self.file;
        is_known.then(|| LineColumn {
            line: start.line as i32 - self.line as i32,
            column: start.column as u32 + 1,
        })
    }
}

/// The position of the first token.
pub(crate) trait Start {
    /// The position of the first token; attributes aside.
    fn start(&self) -> Span;
}

impl Start for Expr {
    fn start(&self) -> Span {
        match self {
            Expr::Path(e) if e.qself.is_none() && e.path.leading_colon.is_none() => {
                let first = e.path.segments.first();
                first.map_or_else(|| e.span(), |segment| segment.ident.span())
            }
            Expr::Lit(e) => e.lit.span(),
            Expr::Assign(e) => e.start(),
            Expr::Binary(e) => e.start(),
            Expr::Call(e) => e.start(),
            Expr::Cast(e) => e.expr.start(),
            Expr::Field(e) => e.base.start(),
            Expr::Group(e) => e.expr.start(),
            Expr::Index(e) => e.start(),
            Expr::MethodCall(e) => e.start(),
            Expr::Paren(e) => e.paren_token.span.open(),
            Expr::Reference(e) => e.and_token.span,
            Expr::Tuple(e) => e.paren_token.span.open(),
            other => other.span(),
        }
    }
}

impl Start for Pat {
    fn start(&self) -> Span {
        match self {
            Pat::Ident(pattern) => match (&pattern.by_ref, &pattern.mutability) {
                (Some(token), _) => token.span,
                (None, Some(token)) => token.span,
                (None, None) => pattern.ident.span(),
            },
            other => other.span(),
        }
    }
}

/// Says that syntax starts as its first part does.
macro_rules! starts_as {
    ($($ty:ident $part:ident)*) => {$(
        impl Start for $ty {
            fn start(&self) -> Span {
                self.$part.start()
            }
        }
    )*};
}
starts_as! { ExprAssign left ExprBinary left ExprCall func ExprIndex expr ExprMethodCall receiver }

/// The place before a token of the user's, where what a macro writes beside it is: rustc's messages are about the
/// user's token then, and a name of the macro's is not taken for what the user wrote there by an editor, which
/// asks what is at the token. It is empty, so tokens that rustc is to underline go [`until`] the token's end.
pub(crate) fn before(span: Span) -> Span {
    edge(span, |span| span.start())
}

/// The place after a token of the user's.
pub(crate) fn after(span: Span) -> Span {
    edge(span, |span| span.end())
}

/// Tokens [`before`] one of the user's, the last of which is put after it.
pub(crate) fn until(span: Span, tokens: TokenStream) -> TokenStream {
    let mut tokens: Vec<TokenTree> = tokens.into_iter().collect();
    if let Some(last) = tokens.last_mut() {
        last.set_span(after(span));
    }
    tokens.into_iter().collect()
}

/// The last token of a piece of syntax.
pub(crate) fn last_of(syntax: &dyn ToTokens) -> Span {
    let last = syntax.to_token_stream().into_iter().last();
    last.map_or_else(Span::call_site, |tree| tree.span())
}

/// A name that the user wrote, where the macro says it once more.
pub(crate) fn again(name: &Ident) -> Ident {
    let mut name = name.clone();
    name.set_span(before(name.span()));
    name
}

fn edge(span: Span, edge: impl FnOnce(proc_macro::Span) -> proc_macro::Span) -> Span {
    match proc_macro::is_available() {
        true => edge(span.unwrap()).into(),
        // In tests of the macros themselves.
        false => Span::call_site(),
    }
}

/// The position of the last token of an expression.
pub(crate) fn end(expr: &Expr) -> Span {
    match expr {
        Expr::Lit(e) => e.lit.span(),
        Expr::MethodCall(e) => e.paren_token.span.close(),
        Expr::Struct(e) => e.brace_token.span.close(),
        other => {
            let last = other.to_token_stream().into_iter().last();
            last.map_or_else(|| other.span(), |tree| tree.span())
        }
    }
}
