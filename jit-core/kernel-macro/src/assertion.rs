//! Static assertions: `const { assert!(N % 32 == 0, "..") }`.
//!
//! On the host such a block stands as it is, and rustc decides it for each use. In the checked copy, which rustc
//! has for `N = 1`, nothing is decided: the block holds its conditions, so that their types are known, and in the
//! description they are assertions of the function, which are decided when it is specialized.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::visit_mut::VisitMut;
use syn::{BinOp, Block, Expr, ExprBinary, ExprConst, ExprLit, Lit, LitStr, Stmt, Token, UnOp};

use kiln_description::{Code, Op};

use crate::body::Translator;
use crate::checked::{marked, marked_method};
use crate::expression::strip;
use crate::names::Meaning;
use crate::position::{Start, before};
use crate::scan::is_compound;

/// What to say about a `const` block that holds something else.
const ONLY_ASSERTIONS: &str = "a `const` block of a kernel holds assertions, `const { assert!(N % 32 == 0, \"..\") }`; \
     write a `const` item for a value";

/// What to say about a message with parts that are formatted.
const PLAIN_TEXT: &str = "the message of a static assertion is a text, in which nothing is formatted; the error of the \
     launch has the type and const arguments after it";

/// What to say about a condition that a launch cannot decide.
const NOT_DECIDED: &str = "a static assertion is decided before there are threads: by constants, const parameters and \
     operators on them; compare what threads know with `if`";

/// An assertion as it is written.
struct Assertion {
    condition: Expr,
    message: LitStr,
}

impl Parse for Assertion {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let condition: Expr = input.parse()?;
        let written = format!("assertion failed: {}", condition.to_token_stream());
        let mut message = LitStr::new(&written, condition.span());
        let comma: Option<Token![,]> = input.parse()?;
        if comma.is_some() && !input.is_empty() {
            let formatted = |_| syn::Error::new(input.span(), PLAIN_TEXT);
            let text: LitStr = input.parse().map_err(formatted)?;
            message = plain(&text, PLAIN_TEXT)?;
            let _: Option<Token![,]> = input.parse()?;
        }
        match input.is_empty() {
            true => Ok(Assertion { condition, message }),
            false => Err(syn::Error::new(input.span(), PLAIN_TEXT)),
        }
    }
}

/// A message without the doubling of braces; refused if something in it is formatted.
pub(crate) fn plain(text: &LitStr, refusal: &str) -> syn::Result<LitStr> {
    let value = text.value();
    let rest = value.replace("{{", "").replace("}}", "");
    match rest.contains(['{', '}']) {
        true => Err(syn::Error::new(text.span(), refusal)),
        false => {
            let value = value.replace("{{", "{").replace("}}", "}");
            Ok(LitStr::new(&value, text.span()))
        }
    }
}

/// The assertions of a block as it is written.
fn written(block: &Block) -> syn::Result<Vec<Assertion>> {
    let one = |statement: &Stmt| match statement {
        Stmt::Macro(call) if call.mac.path.is_ident("assert") => call.mac.parse_body(),
        Stmt::Expr(Expr::Macro(call), _) if call.mac.path.is_ident("assert") => {
            call.mac.parse_body()
        }
        other => Err(syn::Error::new_spanned(other, ONLY_ASSERTIONS)),
    };
    block.stmts.iter().map(one).collect()
}

/// Puts conditions and messages into a block in place of its assertions, behind an empty statement, which nobody
/// writes; leaves a block as it is that is to be refused.
pub(crate) fn open(block: &mut ExprConst) {
    let Ok(assertions) = written(&block.block) else {
        return;
    };
    let statement = |expr| Stmt::Expr(expr, None);
    let mut statements = vec![statement(Expr::Verbatim(TokenStream::new()))];
    for Assertion { condition, message } in assertions {
        statements.push(statement(condition));
        let (attrs, lit) = (Vec::new(), Lit::Str(message));
        statements.push(statement(Expr::Lit(ExprLit { attrs, lit })));
    }
    block.block.stmts = statements;
}

/// The conditions and messages of a block that was opened.
fn opened(block: &ExprConst) -> Option<Vec<(&Expr, String)>> {
    let (mark, pairs) = block.block.stmts.split_first()?;
    let is_mark = matches!(mark, Stmt::Expr(Expr::Verbatim(tokens), None) if tokens.is_empty());
    let pairs = pairs.chunks_exact(2).filter_map(|pair| match pair {
        [
            Stmt::Expr(condition, None),
            Stmt::Expr(Expr::Lit(message), None),
        ] => match &message.lit {
            Lit::Str(message) => Some((condition, message.value())),
            _ => None,
        },
        _ => None,
    });
    is_mark.then(|| pairs.collect())
}

/// What the checked copy has of a block that was opened: conditions, of which rustc says whether each is a `bool`.
pub(crate) fn for_copy(block: &ExprConst) -> Option<Expr> {
    let conditions = opened(block)?.into_iter().map(|(condition, _)| {
        // Something is in the block: clippy takes one with nothing for a mistake.
        quote_spanned!(before(condition.start())=> if #condition { {} })
    });
    Some(Expr::Verbatim(quote!({ #(#conditions)* })))
}

impl Translator<'_> {
    /// The assertions of a `const` block.
    pub(crate) fn static_assertions(&mut self, block: &ExprConst) -> Code {
        let Some(assertions) = opened(block) else {
            if let Err(error) = written(&block.block) {
                self.refusals.add(error);
            }
            return Code::new(Op::Unit, None);
        };
        let mut parts = Vec::new();
        for (condition, message) in assertions {
            for condition in conjuncts(condition) {
                parts.push(self.static_assertion(condition, &message));
            }
        }
        Code::block(parts)
    }

    fn static_assertion(&mut self, condition: &Expr, message: &str) -> Code {
        if let Some(part) = self.undecided(condition) {
            return self.refuse(&part, NOT_DECIDED);
        }
        let mut both = condition.clone();
        BothSides.visit_expr_mut(&mut both);
        let code = self.op(Op::StaticAssert, condition.start());
        code.code(&self.expr(&both)).text(message)
    }

    /// A part of a condition that only a thread could decide.
    fn undecided(&self, expr: &Expr) -> Option<TokenStream> {
        if let Some((_, inner)) = marked(expr) {
            return self.undecided(inner);
        }
        match expr {
            Expr::Lit(_) => None,
            Expr::Paren(e) => self.undecided(&e.expr),
            Expr::Group(e) => self.undecided(&e.expr),
            Expr::Cast(e) => self.undecided(&e.expr),
            Expr::Unary(e) if !matches!(e.op, UnOp::Deref(_)) => self.undecided(&e.expr),
            Expr::Binary(e) if !is_compound(&e.op) => {
                let left = self.undecided(&e.left);
                left.or_else(|| self.undecided(&e.right))
            }
            Expr::Path(path) => {
                let meaning = path.path.get_ident().map(|name| self.names.meaning(name));
                let is_local = matches!(
                    meaning,
                    Some(Some(Meaning::Variable(_) | Meaning::Closure(_)))
                );
                is_local.then(|| path.to_token_stream())
            }
            other => Some(match marked_method(other) {
                Some((_, call)) => call.to_token_stream(),
                None => other.to_token_stream(),
            }),
        }
    }
}

/// What has to hold so that a condition does: the sides of `a && b`, each an assertion of its own.
fn conjuncts(condition: &Expr) -> Vec<&Expr> {
    match strip(condition) {
        Expr::Binary(both) if matches!(both.op, BinOp::And(_)) => {
            let mut list = conjuncts(&both.left);
            list.extend(conjuncts(&both.right));
            list
        }
        one => vec![one],
    }
}

/// Makes `&` of `&&`, and `|` of `||`: the condition is decided where nothing is run, so neither is anything left out.
struct BothSides;

impl VisitMut for BothSides {
    fn visit_expr_binary_mut(&mut self, binary: &mut ExprBinary) {
        match &binary.op {
            BinOp::And(and) => binary.op = BinOp::BitAnd(Token![&](and.spans[0])),
            BinOp::Or(or) => binary.op = BinOp::BitOr(Token![|](or.spans[0])),
            _ => {}
        }
        syn::visit_mut::visit_expr_binary_mut(self, binary);
    }
}
