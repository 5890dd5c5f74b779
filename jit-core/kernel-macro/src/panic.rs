//! Assertions and panics: `assert!(n > 0)`, `assert_eq!(a, b, "they differ")`, `panic!("..")` and their kind.
//!
//! On the host they stand as they are. The body that is checked and described has a call for each, of its name as a
//! function that nobody can write, with what it compares and its message: whoever looks through a body finds the
//! expressions in it.

use proc_macro2::{Delimiter, Ident, LineColumn, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::visit_mut::VisitMut;
use syn::{Block, Expr, ExprCall, ExprClosure, ExprLit, Lit, LitStr, Macro, Stmt, Token};

use kiln_description::{Code, Op};

use crate::assertion::plain;
use crate::body::Translator;
use crate::function::Kind;
use crate::position::before;

/// What to say about a message with parts that are formatted.
const PLAIN_TEXT: &str = "the message of an assertion or a panic in a kernel is a text, in which nothing is formatted; \
     `assert_eq!(a, b)` tells both values";

/// What there is, and whether it is left out without debug assertions.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Form {
    /// `assert!`.
    Holds,
    /// `assert_eq!`, or `assert_ne!` if the flag is set.
    Compares(bool),
    /// `panic!`, or `unreachable!`.
    Panics,
}

fn form(name: &Ident) -> Option<(Form, bool)> {
    let name = name.to_string();
    let debug = name.strip_prefix("debug_");
    let form = match debug.unwrap_or(&name) {
        "assert" => Form::Holds,
        "assert_eq" => Form::Compares(false),
        "assert_ne" => Form::Compares(true),
        "panic" | "unreachable" if debug.is_none() => Form::Panics,
        _ => return None,
    };
    Some((form, debug.is_some()))
}

/// Puts calls into a body in place of its assertions and panics; leaves one as it is that is to be refused.
pub(crate) fn open(body: &mut Block) {
    Open.visit_block_mut(body);
}

/// Puts calls into a closure, as [`open`] does into a body.
pub(crate) fn open_closure(closure: &mut ExprClosure) {
    Open.visit_expr_closure_mut(closure);
}

struct Open;

impl VisitMut for Open {
    fn visit_block_mut(&mut self, block: &mut Block) {
        let last = block.stmts.len().saturating_sub(1);
        for (i, statement) in block.stmts.iter_mut().enumerate() {
            if let Stmt::Macro(written) = statement
                && let Some(call) = in_place_of(&written.mac)
            {
                let semi = written.semi_token.or((i != last).then(Default::default));
                *statement = Stmt::Expr(call, semi);
            }
        }
        syn::visit_mut::visit_block_mut(self, block);
    }

    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        // What is asserted in a `const` block is decided before there are threads.
        if matches!(expr, Expr::Const(_)) {
            return;
        }
        if let Expr::Macro(written) = expr
            && let Some(call) = in_place_of(&written.mac)
        {
            *expr = call;
        }
        syn::visit_mut::visit_expr_mut(self, expr);
    }

    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
}

/// What stands in place of a macro that kernels have, if nothing is wrong with it.
fn in_place_of(written: &Macro) -> Option<Expr> {
    match opened(written).or_else(|| crate::print::opened(written)) {
        Some(call) => call.ok(),
        None => crate::condition::opened(written),
    }
}

/// The name of an assertion or a panic, if a macro is one.
fn name(written: &Macro) -> Option<&Ident> {
    let name = &written.path.segments.last()?.ident;
    form(name).map(|_| name)
}

/// The call for a macro that is an assertion or a panic, or how it is wrong.
fn opened(written: &Macro) -> Option<syn::Result<Expr>> {
    let name = name(written)?;
    let (form, _) = form(name)?;
    Some(arguments(written, name, form).map(|args| {
        Expr::Call(ExprCall {
            attrs: Vec::new(),
            func: Box::new(Expr::Verbatim(name.to_token_stream())),
            paren_token: syn::token::Paren(name.span()),
            args,
        })
    }))
}

/// What is compared, and the whole message behind it.
fn arguments(
    written: &Macro,
    name: &Ident,
    form: Form,
) -> syn::Result<Punctuated<Expr, Token![,]>> {
    let all = Punctuated::<Expr, Token![,]>::parse_terminated.parse2(written.tokens.clone())?;
    let mut all = all.into_iter();
    let (count, says) = match form {
        Form::Holds => (1, "assertion failed: "),
        Form::Compares(_) => (2, ""),
        Form::Panics => (0, ""),
    };
    let compared: Vec<Expr> = all.by_ref().take(count).collect();
    if compared.len() < count {
        let (s, example) = match count {
            1 => ("", "assert!(n > 0)"),
            _ => ("s", "assert_eq!(a, b)"),
        };
        let message = format!("`{name}!` takes {count} expression{s}, as in `{example}`");
        return Err(syn::Error::new(name.span(), message));
    }
    let own = match all.next() {
        None => None,
        Some(Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        })) => Some(plain(&text, PLAIN_TEXT)?.value()),
        Some(other) => return Err(syn::Error::new_spanned(other, PLAIN_TEXT)),
    };
    if let Some(formatted) = all.next() {
        return Err(syn::Error::new_spanned(formatted, PLAIN_TEXT));
    }
    let sides: Vec<String> = compared.iter().map(as_written).collect();
    let message = match (form, own, sides.as_slice()) {
        (Form::Compares(unequal), own, [left, right]) => {
            let sign = if unequal { "!=" } else { "==" };
            let own = own.map_or_else(String::new, |own| format!(": {own}"));
            format!("assertion `{left} {sign} {right}` failed{own}")
        }
        (Form::Panics, own, _) if name == "unreachable" => {
            let own = own.map_or_else(String::new, |own| format!(": {own}"));
            format!("internal error: entered unreachable code{own}")
        }
        (_, Some(own), _) => own,
        (Form::Panics, None, _) => "explicit panic".to_owned(),
        (_, None, sides) => format!("{says}{}", sides.concat()),
    };
    let message = Expr::Lit(ExprLit {
        attrs: Vec::new(),
        lit: Lit::Str(LitStr::new(&message, name.span())),
    });
    Ok(compared.into_iter().chain([message]).collect())
}

/// The name, the values, and the text of a call that stands for a macro.
pub(crate) fn call(call: &ExprCall) -> Option<(Ident, Vec<&Expr>, String)> {
    let Expr::Verbatim(function) = &*call.func else {
        return None;
    };
    let name: Ident = syn::parse2(function.clone()).ok()?;
    let mut compared: Vec<&Expr> = call.args.iter().collect();
    match compared.pop()? {
        Expr::Lit(ExprLit {
            lit: Lit::Str(message),
            ..
        }) => Some((name, compared, message.value())),
        _ => None,
    }
}

/// Whether a call stands for an assertion, a panic or a macro that prints.
pub(crate) fn is_opened(of: &ExprCall) -> bool {
    matches!(&*of.func, Expr::Verbatim(_))
}

/// What the checked copy has of one that was opened: the comparison, of which rustc says whether it can be made, or
/// what gives no value.
pub(crate) fn for_copy(of: &ExprCall) -> Option<Expr> {
    let (name, compared, message) = call(of)?;
    let Some((form, _)) = form(&name) else {
        return crate::print::for_copy(of);
    };
    let at = before(name.span());
    let panic = quote_spanned!(at=> ::core::panic!("{}", #message));
    // Something is in the first block: clippy takes one with nothing for a mistake.
    let copy = match (form, compared.as_slice()) {
        (Form::Holds, [condition]) => quote_spanned!(at=> if #condition { {} } else { #panic }),
        (Form::Compares(false), [left, right]) => {
            quote_spanned!(at=> if (#left) == (#right) { {} } else { #panic })
        }
        (Form::Compares(true), [left, right]) => {
            quote_spanned!(at=> if (#left) != (#right) { {} } else { #panic })
        }
        _ => panic,
    };
    Some(Expr::Verbatim(copy))
}

/// How a macro is wrong that is an assertion, a panic, or prints.
pub(crate) fn refusal(written: &Macro) -> Option<syn::Error> {
    let opened = opened(written).or_else(|| crate::print::opened(written));
    opened?.err()
}

impl Translator<'_> {
    /// A call that stands for an assertion, a panic or a macro that prints.
    pub(crate) fn opened(&mut self, of: &ExprCall) -> Code {
        if let Some(code) = self.print(of) {
            return code;
        }
        let Some((name, compared, message)) = call(of) else {
            return Code::new(Op::Unit, None);
        };
        let Some((form, debug)) = form(&name) else {
            return Code::new(Op::Unit, None);
        };
        let span = name.span();
        let code = match (form, compared.as_slice()) {
            (Form::Compares(unequal), [_, _]) => {
                let sides = self.eager_list(compared.iter().copied());
                let code = self.op(Op::AssertEq, span).flag(unequal);
                sides.iter().fold(code, Code::code).text(&message)
            }
            (Form::Holds, [condition]) => {
                let condition = self.expr(condition);
                self.op(Op::Assert, span).code(&condition).text(&message)
            }
            _ => self.panic(&message, span),
        };
        match debug {
            false => code,
            true => {
                let enabled = self.constant(&quote!(::core::cfg!(debug_assertions)), span);
                Code::new(Op::Debug, None).code(&enabled).region(&code)
            }
        }
    }

    fn panic(&mut self, message: &str, span: Span) -> Code {
        if self.in_closure || self.is_inlined {
            return self.op(Op::PanicInPlace, span).text(message);
        }
        let result = self.result.clone().filter(|_| self.kind == Kind::Device);
        let result = result.map(|ty| self.ty(&ty));
        let code = self.op(Op::Panic, span).text(message);
        code.option(result.as_ref())
    }
}

/// An expression as it is written, on one line: a space stands where there is one.
pub(crate) fn as_written(expr: &Expr) -> String {
    let mut written = Written::default();
    written.tokens(expr.to_token_stream());
    written.text
}

/// A text made of tokens.
#[derive(Default)]
struct Written {
    text: String,
    /// Where the last token ends.
    end: Option<LineColumn>,
}

impl Written {
    fn tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => {
                    let (open, close) = match group.delimiter() {
                        Delimiter::Parenthesis => ("(", ")"),
                        Delimiter::Brace => ("{", "}"),
                        Delimiter::Bracket => ("[", "]"),
                        Delimiter::None => ("", ""),
                    };
                    // What syn makes of a group again has one position for all of it.
                    let (start, end) = (group.span_open().start(), group.span_close().end());
                    let (after, before) = (start.column + 1, end.column.saturating_sub(1));
                    self.token(
                        open,
                        start,
                        LineColumn {
                            column: after,
                            ..start
                        },
                    );
                    self.tokens(group.stream());
                    self.token(
                        close,
                        LineColumn {
                            column: before,
                            ..end
                        },
                        end,
                    );
                }
                token => {
                    let at = token.span();
                    self.token(&token.to_string(), at.start(), at.end());
                }
            }
        }
    }

    fn token(&mut self, token: &str, start: LineColumn, end: LineColumn) {
        if token.is_empty() {
            return;
        }
        if self.end.is_some_and(|end| end != start) {
            self.text.push(' ');
        }
        self.text.push_str(token);
        self.end = Some(end);
    }
}
