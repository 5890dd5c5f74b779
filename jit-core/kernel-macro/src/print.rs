//! What prints: `println!("{i}: {:.2}", x)` and its kind, `dbg!(x)`.
//!
//! As assertions do (`panic.rs`), each becomes a call of its own name before a body is marked: of the values that it
//! names, and the format, in which each place says which of them it is for, `{0}: {1:.2}`. `dbg!` is a block around
//! such a call, as its value is what it prints.

use proc_macro2::{Ident, Span};
use quote::{ToTokens, quote_spanned};
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{
    Block, Expr, ExprBlock, ExprCall, ExprLit, Lit, LitStr, Macro, Stmt, Token, parse_quote_spanned,
};

use kiln_description::{Code, Op};

use crate::body::Translator;
use crate::panic::as_written;
use crate::position::before;

/// What to say about a format that is no text.
const NO_TEXT: &str = "the format is a text, as in `println!(\"{i}: {}\", x)`";

/// What to say about a width or a precision that is a value.
const FIXED: &str =
    "the width and the precision of what a kernel prints are numbers in the format, as in `{:8.3}`";

/// What a macro does that prints.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Form {
    /// `print!`, `println!`: with the end of a line or without, to the standard error output or not.
    Prints { line: bool, to_stderr: bool },
    /// `dbg!`.
    Debugs,
}

fn form(name: &Ident) -> Option<Form> {
    let prints = |line, to_stderr| Form::Prints { line, to_stderr };
    Some(match name.to_string().as_str() {
        "print" => prints(false, false),
        "println" => prints(true, false),
        "eprint" => prints(false, true),
        "eprintln" => prints(true, true),
        "dbg" => Form::Debugs,
        _ => return None,
    })
}

/// What stands for a macro that prints, if it is one, or how it is wrong.
pub(crate) fn opened(written: &Macro) -> Option<syn::Result<Expr>> {
    let name = &written.path.segments.last()?.ident;
    let form = form(name)?;
    Some(match form {
        Form::Debugs => debugs(written, name),
        Form::Prints { line, .. } => Parser::parse2(
            |input: ParseStream<'_>| Written::parse(input),
            written.tokens.clone(),
        )
        .and_then(|written| written.call(name, line)),
    })
}

/// `dbg!(a, b)`: a block that prints each and has their value.
fn debugs(written: &Macro, name: &Ident) -> syn::Result<Expr> {
    let all = Punctuated::<Expr, Token![,]>::parse_terminated.parse2(written.tokens.clone())?;
    let at = before(name.span());
    if all.is_empty() {
        return Ok(call_of(name, None, "[{@}]\n"));
    }
    let (mut stmts, mut values) = (Vec::new(), Vec::new());
    for (i, expr) in all.iter().enumerate() {
        let value = Ident::new(&format!("dbg_value{i}"), at);
        stmts.push(parse_quote_spanned!(at=> let #value = #expr;));
        values.push(value);
    }
    for (expr, value) in all.iter().zip(&values) {
        let shown = as_written(expr).replace('{', "{{").replace('}', "}}");
        let format = format!("[{{@}}] {shown} = {{0:#?}}\n");
        let call = call_of(name, Some(parse_quote_spanned!(at=> #value)), &format);
        stmts.push(Stmt::Expr(call, Some(Token![;](at))));
    }
    let value = match values.as_slice() {
        [one] => parse_quote_spanned!(at=> #one),
        several => parse_quote_spanned!(at=> (#(#several),*)),
    };
    stmts.push(Stmt::Expr(value, None));
    Ok(Expr::Block(ExprBlock {
        attrs: Vec::new(),
        label: None,
        block: Block {
            brace_token: syn::token::Brace(at),
            stmts,
        },
    }))
}

/// The call of the name of a macro.
fn call_of(name: &Ident, values: impl IntoIterator<Item = Expr>, format: &str) -> Expr {
    let format = Expr::Lit(ExprLit {
        attrs: Vec::new(),
        lit: Lit::Str(LitStr::new(format, name.span())),
    });
    Expr::Call(ExprCall {
        attrs: Vec::new(),
        func: Box::new(Expr::Verbatim(name.to_token_stream())),
        paren_token: syn::token::Paren(name.span()),
        args: values.into_iter().chain([format]).collect(),
    })
}

/// A format and its arguments.
struct Written {
    format: Option<LitStr>,
    values: Vec<(Option<Ident>, Expr)>,
}

impl Parse for Written {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut values = Vec::new();
        if input.is_empty() {
            let format = None;
            return Ok(Written { format, values });
        }
        let format: LitStr = input
            .parse()
            .map_err(|e| syn::Error::new(e.span(), NO_TEXT))?;
        while !input.is_empty() {
            let _: Token![,] = input.parse()?;
            if input.is_empty() {
                break;
            }
            let is_named =
                input.peek(syn::Ident) && input.peek2(Token![=]) && !input.peek2(Token![==]);
            let name = match is_named {
                true => {
                    let name: Ident = input.parse()?;
                    let _: Token![=] = input.parse()?;
                    Some(name)
                }
                false => None,
            };
            values.push((name, input.parse()?));
        }
        let format = Some(format);
        Ok(Written { format, values })
    }
}

impl Written {
    /// The call, whose format says by number which value each place is for.
    fn call(mut self, name: &Ident, line: bool) -> syn::Result<Expr> {
        let end = if line { "\n" } else { "" };
        let Some(format) = self.format.take() else {
            return Ok(call_of(name, [], end));
        };
        let (text, span) = (format.value(), format.span());
        let (given, mut used) = (self.values.len(), vec![false; self.values.len()]);
        let (mut numbered, mut next, mut rest) = (String::new(), 0, text.as_str());
        while let Some(at) = rest.find(['{', '}']) {
            numbered += &rest[..at];
            let (brace, behind) = (&rest[at..=at], &rest[at + 1..]);
            if let Some(behind) = behind.strip_prefix(brace) {
                numbered += &brace.repeat(2);
                rest = behind;
                continue;
            }
            let inside = if brace == "{" {
                behind.split_once('}')
            } else {
                None
            };
            let Some((inside, behind)) = inside else {
                let message = format!("there is a `{brace}` alone; `{brace}{brace}` prints one");
                return Err(syn::Error::new(span, message));
            };
            let (which, spec) = inside
                .split_once(':')
                .map_or((inside, ""), |(which, spec)| (which, spec));
            if spec.contains('$') || spec.contains(".*") {
                return Err(syn::Error::new(span, FIXED));
            }
            let number = self.number(which.trim(), &mut next, span)?;
            if let Some(used) = used.get_mut(number) {
                *used = true;
            }
            numbered += &match spec.trim_end() {
                "" => format!("{{{number}}}"),
                spec => format!("{{{number}:{spec}}}"),
            };
            rest = behind;
        }
        if let Some(unused) = used.iter().position(|used| !used) {
            let message = "the format has no place for this value";
            return Err(syn::Error::new_spanned(&self.values[unused].1, message));
        }
        if next > given {
            let message =
                format!("the format has {next} places for values in order, and there are {given}");
            return Err(syn::Error::new(span, message));
        }
        let values = self.values.into_iter().map(|(_, value)| value);
        Ok(call_of(name, values, &format!("{numbered}{rest}{end}")))
    }

    /// The number of the value of a place: the next, that of a number, or that of a name, which may be one of a variable.
    fn number(&mut self, which: &str, next: &mut usize, span: Span) -> syn::Result<usize> {
        if which.is_empty() {
            *next += 1;
            return Ok(*next - 1);
        }
        if let Ok(number) = which.parse::<usize>() {
            let message = format!("there is no value {number}");
            return match number < self.values.len() {
                true => Ok(number),
                false => Err(syn::Error::new(span, message)),
            };
        }
        let is_it = |name: &Option<Ident>| name.as_ref().is_some_and(|name| name == which);
        let known = self.values.iter().position(|(name, _)| is_it(name));
        if let Some(known) = known {
            return Ok(known);
        }
        let mut name: Ident = syn::parse_str(which)
            .map_err(|_| syn::Error::new(span, format!("`{{{which}}}` names no variable; write `{{}}` and the expression behind the format")))?;
        name.set_span(span);
        self.values
            .push((Some(name.clone()), parse_quote_spanned!(span=> #name)));
        Ok(self.values.len() - 1)
    }
}

/// The name, the values, and the format of a call that stands for a macro that prints.
fn call(call: &ExprCall) -> Option<(Ident, Vec<&Expr>, String)> {
    let (name, values, format) = crate::panic::call(call)?;
    form(&name).map(|_| (name, values, format))
}

/// What the checked copy has of one that was opened: what prints on the host, by which rustc says what can be printed.
pub(crate) fn for_copy(of: &ExprCall) -> Option<Expr> {
    let (name, values, format) = call(of)?;
    let (format, at) = (format.replace("{@}", "{{@}}"), before(name.span()));
    // Clippy would have a line printed as one, and nothing of one without text.
    let copy = match format.strip_suffix('\n') {
        Some("") => quote_spanned!(at=> ::std::println!()),
        Some(line) => {
            let line = LitStr::new(line, name.span());
            quote_spanned!(at=> ::std::println!(#line #(, #values)*))
        }
        None => {
            let part = LitStr::new(&format, name.span());
            quote_spanned!(at=> ::std::print!(#part #(, #values)*))
        }
    };
    Some(Expr::Verbatim(copy))
}

impl Translator<'_> {
    /// A call that stands for a macro that prints.
    pub(crate) fn print(&mut self, of: &ExprCall) -> Option<Code> {
        let (name, values, format) = call(of)?;
        let to_stderr = match form(&name)? {
            Form::Prints { to_stderr, .. } => to_stderr,
            Form::Debugs => true,
        };
        let values = self.eager_list(values.into_iter());
        let code = self
            .op(Op::Print, name.span())
            .flag(to_stderr)
            .text(&format);
        Some(code.list(&values))
    }
}
