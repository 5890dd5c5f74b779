//! The function with launches in the place of regions. Whatever else uses a slice comes behind a copy to the host,
//! and what may write it lets the copy on the device go.

use std::collections::BTreeSet;

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::visit::{self, Visit};
use syn::{Block, Error, Expr, Local, Result, Stmt};

use crate::capture::{Kind, Names, Variables, mentions};
use crate::clauses::{Directive, directive, is_directive, is_kernel};
use crate::data;
use crate::region;
use crate::sequential::{is_barrier, is_global};

/// Rewrites the statements of a function.
pub(crate) struct Host<'f> {
    pub(crate) name: &'f Ident,
    pub(crate) variables: &'f Variables,
    /// How many regions there were.
    pub(crate) regions: usize,
    /// The slices whose shapes are said by statements that are visible, and how many dimensions these have.
    pub(crate) shapes: Vec<(String, usize)>,
    /// The slices that are in constant memory somewhere.
    pub(crate) constants: BTreeSet<String>,
}

/// Whether tokens hold a kernel region.
fn holds_region(statement: &Stmt) -> bool {
    struct Search(bool);
    impl Visit<'_> for Search {
        fn visit_expr_block(&mut self, held: &syn::ExprBlock) {
            self.0 |= is_kernel(&held.attrs);
            visit::visit_expr_block(self, held);
        }
    }
    let mut search = Search(false);
    search.visit_stmt(statement);
    search.0
}

/// What is said of `global!` elsewhere than between the function's regions.
pub(crate) const MISPLACED: &str = "`global!` and `shape!` say what is on the device: write them between regions, as a statement of the function, or \
                         of a loop, an `if` or a block that holds regions";

/// What is said of `constant!` elsewhere.
pub(crate) const MISPLACED_CONSTANT: &str = "`constant!` says what is in constant memory when a region is launched: write it between regions, as a statement of \
                         the function, or of a loop, an `if` or a block that holds regions";

/// A directive that stands outside of regions.
struct Outside(Option<Error>);

impl Visit<'_> for Outside {
    fn visit_attribute(&mut self, attribute: &syn::Attribute) {
        if is_directive(attribute) {
            let message = "the directive stands in no kernel region: write `#[kernel(tblock(..), thread(..))] { .. }` \
                           around, on a block that is a statement of the function, or of a loop, an `if` or a block in it";
            self.0.get_or_insert(Error::new_spanned(attribute, message));
        }
    }

    fn visit_stmt(&mut self, statement: &Stmt) {
        if is_barrier(statement) {
            let message = "a barrier is for the threads of a kernel region, and stands in none";
            self.0.get_or_insert(Error::new_spanned(statement, message));
        }
        if is_global(statement) || data::is_shape(statement) {
            self.0
                .get_or_insert(Error::new_spanned(statement, MISPLACED));
        }
        if data::is_constant(statement) {
            self.0
                .get_or_insert(Error::new_spanned(statement, MISPLACED_CONSTANT));
        }
        visit::visit_stmt(self, statement);
    }

    fn visit_expr_return(&mut self, held: &syn::ExprReturn) {
        let message = "`return` before slices are copied back: let the function end at its end";
        self.0.get_or_insert(Error::new_spanned(held, message));
    }

    fn visit_expr_try(&mut self, held: &syn::ExprTry) {
        let message = "`?` before slices are copied back: let the function end at its end";
        self.0.get_or_insert(Error::new_spanned(held, message));
    }

    fn visit_expr_closure(&mut self, _: &syn::ExprClosure) {}
}

impl Host<'_> {
    /// The statements of a block, and the value of a block that is a function's.
    pub(crate) fn block(&mut self, block: &Block) -> Result<(TokenStream, Option<TokenStream>)> {
        let mut written = TokenStream::new();
        let mut value = None;
        let shapes = self.shapes.len();
        for (number, statement) in block.stmts.iter().enumerate() {
            match statement {
                Stmt::Expr(expr, None)
                    if number + 1 == block.stmts.len() && !holds_region(statement) =>
                {
                    self.plain(statement)?;
                    written.extend(self.copies(expr.to_token_stream(), &[]));
                    value = Some(expr.to_token_stream());
                }
                _ => written.extend(self.statement(statement)?),
            }
        }
        self.shapes.truncate(shapes);
        Ok((written, value))
    }

    /// A block that gives nothing.
    fn inner(&mut self, block: &Block) -> Result<TokenStream> {
        let (statements, value) = self.block(block)?;
        Ok(quote!({ #statements #value }))
    }

    fn statement(&mut self, statement: &Stmt) -> Result<TokenStream> {
        if is_global(statement) || data::is_constant(statement) {
            return data::global(statement, self.variables, &self.shapes);
        }
        if data::is_shape(statement) {
            let shape = data::shape(statement)?;
            self.shapes
                .push((shape.slice.to_string(), shape.dims.len()));
            let (held, checked) = (data::let_shape(&shape), data::check_shape(&shape));
            return Ok(quote!(#held #checked));
        }
        if !holds_region(statement) {
            self.plain(statement)?;
            let own = match statement {
                Stmt::Local(Local { pat, .. }) => {
                    let mut names = Names::default();
                    names.visit_pat(pat);
                    names.0
                }
                _ => Vec::new(),
            };
            let copies = self.copies(statement.to_token_stream(), &own);
            return Ok(quote!(#copies #statement));
        }
        let Stmt::Expr(expr, _) = statement else {
            let message = "a kernel region is a block that is a statement: `#[kernel(..)] { .. }`";
            return Err(Error::new_spanned(statement, message));
        };
        self.holder(expr)
    }

    /// Refuses directives in a statement without a region.
    fn plain(&self, statement: &Stmt) -> Result<()> {
        let mut outside = Outside(None);
        outside.visit_stmt(statement);
        outside.0.map_or(Ok(()), Err)
    }

    /// What is or holds a region.
    fn holder(&mut self, expr: &Expr) -> Result<TokenStream> {
        match expr {
            Expr::Block(held) if is_kernel(&held.attrs) => self.region(held),
            Expr::Block(held) => self.inner(&held.block),
            Expr::ForLoop(held) => {
                let (label, pattern, range) = (&held.label, &held.pat, &held.expr);
                let copies = self.copies(range.to_token_stream(), &[]);
                let body = self.inner(&held.body)?;
                Ok(quote!(#copies #label for #pattern in #range #body))
            }
            Expr::Loop(held) => {
                let (label, body) = (&held.label, self.inner(&held.body)?);
                Ok(quote!(#label loop #body))
            }
            Expr::While(held) => {
                let (label, cond) = (&held.label, &held.cond);
                if let Some(name) = self
                    .slices()
                    .find(|name| mentions(cond.to_token_stream(), name))
                {
                    let message = format!(
                        "the condition of a loop around a kernel region uses the slice `{name}`: compute it in the loop"
                    );
                    return Err(Error::new_spanned(cond, message));
                }
                let body = self.inner(&held.body)?;
                Ok(quote!(#label while #cond #body))
            }
            Expr::If(held) => {
                let cond = &held.cond;
                let copies = self.copies(cond.to_token_stream(), &[]);
                let then = self.inner(&held.then_branch)?;
                let otherwise = match &held.else_branch {
                    Some((_, expr)) => {
                        let inner = self.holder_or_plain(expr)?;
                        Some(quote!(else { #inner }))
                    }
                    None => None,
                };
                Ok(quote!(#copies if #cond #then #otherwise))
            }
            _ => {
                let message = "a kernel region stands in the function, or in a loop, an `if` or a block of it";
                Err(Error::new_spanned(expr, message))
            }
        }
    }

    fn holder_or_plain(&mut self, expr: &Expr) -> Result<TokenStream> {
        let statement = Stmt::Expr(expr.clone(), None);
        match holds_region(&statement) {
            true => self.holder(expr),
            false => self.statement(&statement),
        }
    }

    fn region(&mut self, held: &syn::ExprBlock) -> Result<TokenStream> {
        let mut directives = held
            .attrs
            .iter()
            .filter(|attribute| is_directive(attribute));
        let (first, second) = (directives.next(), directives.next());
        if let Some(second) = second {
            return Err(Error::new_spanned(
                second,
                "one directive is enough on a block",
            ));
        }
        let Some(attribute) = first else {
            return Err(Error::new_spanned(held, "the block is no kernel region"));
        };
        let Some(Directive::Kernel(grid)) = directive(attribute)? else {
            return Err(Error::new_spanned(
                attribute,
                "the block is no kernel region",
            ));
        };
        let name = match self.regions {
            0 => self.name.clone(),
            number => format_ident!("{}_{}", self.name, number),
        };
        self.regions += 1;
        let known = (self.variables, &self.constants);
        region::launch(&name, &grid, &held.block, known)
    }

    fn slices(&self) -> impl Iterator<Item = &String> {
        let variables = self.variables.iter();
        let slices = variables.filter(|(_, variable)| matches!(variable.kind, Kind::Slice { .. }));
        slices.map(|(name, _)| name)
    }

    /// Copies to the host before what uses slices; `own` are names that it declares itself.
    fn copies(&self, tokens: TokenStream, own: &[String]) -> TokenStream {
        let used = self
            .slices()
            .filter(|name| !own.contains(name) && mentions(tokens.clone(), name));
        used.map(|name| self.copy(name, true)).collect()
    }

    /// A copy to the host of what a region has written, and that the copy on the device may be an older one.
    pub(crate) fn copy(&self, name: &str, lets_go: bool) -> TokenStream {
        let (present, ident) = (region::present(name), Ident::new(name, self.name.span()));
        match &self.variables[name].kind {
            Kind::Slice { mutable: true, .. } => {
                let let_go = lets_go.then(|| quote!(#present.let_go();));
                quote!(#present.copy_back(__offload, &mut #ident[..])?; #let_go)
            }
            _ => TokenStream::new(),
        }
    }
}
