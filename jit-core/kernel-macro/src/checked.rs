//! The checked copy: the body as it was written, for rustc.
//!
//! Literals without a suffix, struct literals and functions and constants of types go through a
//! `TypeOf`, `of(__kiln_t0, 1)`, whose type rustc infers with everything else; the description asks it
//! for the type. Method calls are marked, too, `of(__kiln_m0, x.len())`; the copy has for one a block that
//! tells the types of its receiver and of its result. Operators are where an operand may be a struct: their left
//! operand is marked, `of(__kiln_o0, a) + b`, or the right one of those that assign.

use std::collections::HashSet;

use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::visit_mut::VisitMut;
use syn::{Block, Expr, ExprCall, ExprMethodCall, ExprParen, ExprPath, Lit, Pat};

use crate::call::{is_any_default, is_conversion, is_half, is_number};
use crate::conversion::{Conversion, operand_mut};
use crate::expression::{operator_method, strip};
use crate::function::{root, root_at};
use crate::items::{borrows, is_of_iterator};
use crate::numbers::{Numbers, is_one_for_all};
use crate::option::{is_none_value, is_result_function, is_some_function};
use crate::position::{Start, before, until};
use crate::scan::{Variables, is_closure, is_compound};
use crate::signature::Signature;
use crate::stand::Stand;
use crate::view::borrows_in_path;

/// How the names of `TypeOf`s begin.
const PREFIX: &str = "__kiln_t";
/// How the names of `MethodOf`s begin.
const METHOD: &str = "__kiln_m";

/// How the names of `OperandsOf`s begin.
const OPERATOR: &str = "__kiln_o";
/// How the names of `OperandsOf`s begin of an element that is written.
const WRITTEN: &str = "__kiln_ow";

/// The names of the variables of a function.
pub(crate) fn variables(body: &Block, signature: &Signature) -> HashSet<String> {
    let variables = all_variables(body, signature);
    variables.names.iter().map(ToString::to_string).collect()
}

fn all_variables(body: &Block, signature: &Signature) -> Variables {
    let mut variables = Variables::default();
    variables.visit_block(body);
    for param in &signature.params {
        variables.visit_param(&param.pattern, param.is_closure);
    }
    variables
}

/// A body whose literals tell their types.
pub(crate) struct CheckedCopy {
    body: Block,
    types: Vec<(Ident, Span)>,
    methods: Vec<(Ident, Span)>,
    operators: Vec<(Ident, Span)>,
    paths: bool,
    /// Whether types of the function's are dispatched on.
    dispatches: bool,
}

impl CheckedCopy {
    /// Marks a body.
    pub(crate) fn new(body: &Block, signature: &Signature) -> CheckedCopy {
        let mut body = body.clone();
        crate::panic::open(&mut body);
        crate::ranges::open(&mut body);
        crate::chain::open(&mut body);
        let variables = all_variables(&body, signature);
        let mut mark = Mark {
            numbers: Numbers::of(&body, signature),
            operators: Vec::new(),
            type_params: signature.type_names(),
            variables: variables.names.iter().map(ToString::to_string).collect(),
            closures: variables.closures,
            functions: HashSet::new(),
            types: Vec::new(),
            methods: Vec::new(),
            paths: false,
        };
        mark.visit_block_mut(&mut body);
        CheckedCopy {
            body,
            types: mark.types,
            methods: mark.methods,
            operators: mark.operators,
            paths: mark.paths,
            dispatches: !signature.dispatched.is_empty(),
        }
    }

    /// The body, literals marked and attributes in place.
    pub(crate) fn body(&self) -> &Block {
        &self.body
    }

    /// The declarations of the types.
    pub(crate) fn types(&self) -> TokenStream {
        let root = root();
        let receiver = (!self.methods.is_empty())
            .then(|| quote!(use #root::{MethodReceiver as _, MethodResult as _};));
        let indexed = (!self.operators.is_empty()).then(|| {
            quote! {
                #[allow(unused_imports, reason = "it is used for elements of several indices")]
                use #root::Indexed as _;
            }
        });
        let associated = self.paths.then(|| quote!(use #root::Associated as _;));
        // Where the expression is: rustc tells one error twice if it is in two places.
        let open = |(name, at): &(Ident, Span), of: &str| {
            let (root, of) = (root_at(*at), Ident::new(of, name.span()));
            let of = until(*at, quote_spanned!(name.span()=> #root::#of));
            let open = until(*at, quote_spanned!(name.span()=> #of::OPEN));
            quote_spanned!(name.span()=> let #name = #open;)
        };
        let types = self.types.iter().map(|name| open(name, "TypeOf"));
        let methods = self.methods.iter().map(|name| open(name, "MethodOf"));
        let operators = (self.operators.iter()).map(|name| open(name, "OperandsOf"));
        let asks = self.paths || !self.methods.is_empty() || !self.operators.is_empty();
        let missing = asks.then(|| {
            quote! {
                #[allow(unused_imports, reason = "it is used where there is no such method")]
                use #root::NoMethod as _;
            }
        });
        let dispatched = self.dispatches.then(|| {
            quote! {
                #[allow(unused_imports, reason = "it is used where methods are called")]
                use #root::OfOther as _;
            }
        });
        quote! {
            #missing
            #dispatched
            #indexed
            #receiver
            #associated
            #(#types)*
            #(#methods)*
            #(#operators)*
        }
    }

    /// The closure that nobody calls; `quiet` if its body is somewhere else, too.
    pub(crate) fn closure(&self, signature: &Signature, quiet: bool) -> TokenStream {
        let mut body = self.body.clone();
        // Of a number rustc says itself that it is none of `?`.
        let may_fail = |ty: &&syn::Type| matches!(ty, syn::Type::Path(path) if !path.path.get_ident().is_some_and(is_number));
        let result = signature.result.as_ref().filter(may_fail).cloned();
        ForHost { result }.visit_block_mut(&mut body);
        let (views, params): (Vec<_>, Vec<_>) =
            (signature.params.iter()).partition(|param| borrows_in_path(&param.ty));
        let params = params.iter().map(|param| {
            let (pattern, ty) = (&param.pattern, &param.ty);
            quote!(#pattern: #ty)
        });
        // A parameter of a closure borrows for any time, and what rustc infers of a function which is
        // called with it has to leave the closure; a variable borrows for as long as it has to.
        let views = views.iter().map(|param| {
            let (pattern, ty, root) = (&param.pattern, &param.ty, root());
            quote!(let #pattern: #ty = #root::passed_view();)
        });
        let views: TokenStream = views.collect();
        let body = match views.is_empty() {
            true => quote!(#body),
            false => quote!({ #views #body }),
        };
        let result = signature.result.iter();
        let quiet = match quiet {
            true => quote! {
                #[allow(warnings, clippy::all, reason = "the function itself is warned about")]
            },
            false => unfit_lints(),
        };
        quote!(#quiet let _ = |#(#params),*| #(-> #result)* #body;)
    }
}

/// Switches off the lints that recommend what kernels do not have: iterators, and methods that are
/// not of the device; that which tells of methods that Rust will have one day, whose names Kiln's are for that; and those that
/// tell of lifetimes, as those that a result leaves out are given a name.
pub(crate) fn unfit_lints() -> TokenStream {
    quote! {
        #[allow(
            unstable_name_collisions,
            clippy::needless_range_loop,
            clippy::manual_memcpy,
            clippy::manual_swap,
            clippy::manual_is_multiple_of,
            clippy::manual_div_ceil,
            clippy::manual_clamp,
            clippy::manual_range_contains,
            clippy::implicit_saturating_sub,
            clippy::explicit_counter_loop,
            clippy::excessive_precision,
            clippy::redundant_closure,
            clippy::redundant_closure_call,
            clippy::match_like_matches_macro,
            clippy::too_many_arguments,
            clippy::needless_lifetimes,
            clippy::elidable_lifetime_names,
            reason = "they recommend what kernels do not have, or tell of what they have"
        )]
    }
}

/// A body as the host runs it.
pub(crate) fn for_host(body: &Block) -> Block {
    let mut body = body.clone();
    ForHost { result: None }.visit_block_mut(&mut body);
    body
}

/// The argument of `of(__kiln_t0, argument)` and the name of its type.
pub(crate) fn marked(expr: &Expr) -> Option<(&Ident, &Expr)> {
    marked_by(PREFIX, expr)
}

/// The call in `of(__kiln_m0, x.len())` and the name of its types.
pub(crate) fn marked_method(expr: &Expr) -> Option<(&Ident, &ExprMethodCall)> {
    match marked_by(METHOD, expr) {
        Some((name, Expr::MethodCall(call))) => Some((name, call)),
        _ => None,
    }
}

/// The operand in `of(__kiln_o0, operand)` and the name of its operator's types.
pub(crate) fn marked_operand(expr: &Expr) -> Option<(&Ident, &Expr)> {
    marked_by(OPERATOR, expr)
}

fn marked_by<'e>(prefix: &str, expr: &'e Expr) -> Option<(&'e Ident, &'e Expr)> {
    let Expr::Call(call) = expr else {
        return None;
    };
    let (Expr::Paren(_), Expr::Path(name)) = (&*call.func, call.args.first()?) else {
        return None;
    };
    let name = name.path.get_ident()?;
    let is_mark = name.to_string().starts_with(prefix);
    is_mark.then_some(name).zip(call.args.get(1))
}

struct Mark {
    numbers: Numbers,
    operators: Vec<(Ident, Span)>,
    type_params: Vec<Ident>,
    /// The names of all variables, which may be closures.
    variables: HashSet<String>,
    /// The names of those that are closures.
    closures: HashSet<String>,
    /// The functions that are marked, by their paths: one is marked once.
    functions: HashSet<String>,
    types: Vec<(Ident, Span)>,
    methods: Vec<(Ident, Span)>,
    /// Whether a function of a type is called by its path.
    paths: bool,
}

impl Mark {
    fn mark(&mut self, expr: &mut Expr) {
        let at = expr.start();
        let name = format_ident!("{PREFIX}{}", self.types.len(), span = before(at));
        wrap(&name, expr);
        self.types.push((name, at));
    }

    /// Marks `Ok(x)` and `Err(x)`, of which rustc finds the type; whether it is one.
    fn mark_result(&mut self, expr: &mut Expr) -> bool {
        match expr {
            Expr::Call(call) if is_result_function(&call.func) => {
                call.args
                    .iter_mut()
                    .for_each(|arg| self.visit_expr_mut(arg));
            }
            _ => return false,
        }
        self.mark(expr);
        true
    }

    /// Marks `Default::default()`, of which rustc finds the type; whether it is one.
    fn mark_default(&mut self, expr: &mut Expr) -> bool {
        let is_it = matches!(expr, Expr::Call(call) if is_any_default(call));
        if is_it {
            self.mark(expr);
            self.paths = true;
        }
        is_it
    }

    /// Marks `x.into()`, and of the one that may fail what is unwrapped; whether it is one.
    fn mark_conversion(&mut self, expr: &mut Expr) -> bool {
        let Some(conversion) = Conversion::of(expr) else {
            return false;
        };
        if let Some(operand) = operand_mut(expr, conversion) {
            self.visit_expr_mut(operand);
            if conversion == Conversion::Into {
                self.mark(operand);
            }
        }
        self.mark(expr);
        true
    }

    fn mark_method(&mut self, expr: &mut Expr) {
        let at = expr.start();
        let name = format_ident!("{METHOD}{}", self.methods.len(), span = before(at));
        wrap(&name, expr);
        self.methods.push((name, at));
    }

    /// Whether one of the operands may have an operator of its own.
    fn may_be_own(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Binary(e) => {
                operator_method(&e.op).is_some() && !self.numbers.are(&[&e.left, &e.right])
            }
            Expr::Unary(e) => !matches!(e.op, syn::UnOp::Deref(_)) && !self.numbers.are(&[&e.expr]),
            _ => false,
        }
    }

    fn mark_operator(&mut self, expr: &mut Expr) {
        let at = expr.start();
        let operand = match expr {
            Expr::Binary(e) if is_compound(&e.op) => &mut *e.right,
            Expr::Binary(e) => &mut *e.left,
            Expr::Unary(e) => &mut *e.expr,
            _ => return,
        };
        let name = format_ident!("{OPERATOR}{}", self.operators.len(), span = before(at));
        wrap(&name, operand);
        self.operators.push((name, at));
    }

    /// Marks the indices of `a[(i, j)]`, if it is that.
    fn mark_element(&mut self, expr: &mut Expr, prefix: &str) {
        let at = expr.start();
        if let Expr::Index(e) = expr
            && let Expr::Tuple(indices) = strip(&e.index)
            && indices.elems.len() > 1
        {
            *e.index = Expr::Tuple(indices.clone());
            let name = format_ident!("{prefix}{}", self.operators.len(), span = before(at));
            wrap(&name, &mut e.index);
            self.operators.push((name, at));
        }
    }

    /// Marks the elements that an assignment or a `&mut` is to.
    fn mark_written(&mut self, expr: &mut Expr) {
        match expr {
            Expr::Assign(e) => self.mark_place(&mut e.left),
            Expr::Binary(e) if is_compound(&e.op) => self.mark_place(&mut e.left),
            Expr::Reference(e) if e.mutability.is_some() => self.mark_place(&mut e.expr),
            _ => {}
        }
    }

    fn mark_place(&mut self, place: &mut Expr) {
        match place {
            Expr::Paren(paren) => self.mark_place(&mut paren.expr),
            Expr::Group(group) => self.mark_place(&mut group.expr),
            Expr::Field(field) => self.mark_place(&mut field.base),
            Expr::Index(index) if !matches!(strip(&index.index), Expr::Tuple(_)) => {
                self.mark_place(&mut index.expr);
            }
            place => self.mark_element(place, WRITTEN),
        }
    }

    /// Whether a path is a constant whose type rustc finds.
    fn is_constant(&self, expr: &Expr) -> bool {
        let is_number = Stand::of(expr).is_some_and(Stand::is_number);
        is_number || is_none_value(expr) || self.is_of_type(expr)
    }

    /// Whether a path names something of a type, whose parameters may be left out.
    fn is_of_type(&self, expr: &Expr) -> bool {
        let Expr::Path(path) = expr else {
            return false;
        };
        let mut segments = path.path.segments.iter().rev().skip(1);
        let Some(ty) = segments.next() else {
            return false;
        };
        let is_type = is_half(&ty.ident) || ty.ident.to_string().starts_with(char::is_uppercase);
        path.qself.is_none() && is_type && !self.type_params.contains(&ty.ident)
    }

    /// Whether a path names a function by itself: no closure, and nothing of a type.
    fn is_function(&self, expr: &Expr) -> bool {
        let Expr::Path(path) = expr else {
            return false;
        };
        let mut segments = path.path.segments.iter().rev();
        let (Some(name), of) = (segments.next(), segments.next()) else {
            return false;
        };
        let is_variable = of.is_none() && self.variables.contains(&name.ident.to_string());
        let is_of =
            |ty: &syn::PathSegment| is_number(&ty.ident) || self.type_params.contains(&ty.ident);
        path.qself.is_none() && !is_variable && !of.is_some_and(is_of)
    }

    /// Whether a path names a function of a number, but one that makes it of another.
    fn is_of_number(&self, expr: &Expr) -> bool {
        let Expr::Path(ExprPath {
            qself: None, path, ..
        }) = expr
        else {
            return false;
        };
        let mut segments = path.segments.iter().map(|segment| &segment.ident);
        match (segments.next(), segments.next(), segments.next()) {
            (Some(ty), Some(name), None) => {
                (is_number(ty) || self.type_params.contains(ty)) && !is_conversion(name)
            }
            _ => false,
        }
    }

    /// Whether a function is called for the first time, if its entry in the pool does for all calls. Another may be one
    /// for each type that it is called with.
    fn is_first(&mut self, function: &Expr) -> bool {
        let Expr::Path(path) = function else {
            return false;
        };
        let path = &path.path;
        !is_one_for_all(path) || self.functions.insert(path.to_token_stream().to_string())
    }

    /// What a `for` goes over: the methods of iterators are no methods of kernels.
    fn visit_range(&mut self, expr: &mut Expr) {
        match expr {
            Expr::Paren(paren) => self.visit_range(&mut paren.expr),
            Expr::Group(group) => self.visit_range(&mut group.expr),
            Expr::MethodCall(call) if is_of_iterator(call) => {
                match borrows(call) {
                    true => self.visit_expr_mut(&mut call.receiver),
                    false => self.visit_range(&mut call.receiver),
                }
                let is_zip = call.method == "zip";
                call.args.iter_mut().for_each(|arg| match is_zip {
                    true => self.visit_range(arg),
                    false => self.visit_expr_mut(arg),
                });
            }
            other => self.visit_expr_mut(other),
        }
    }
}

/// `(of)(name, expr)` in place of `expr`. Built by hand: a macro must not panic, and parsing might.
fn wrap(name: &Ident, expr: &mut Expr) {
    let name = Expr::Path(ExprPath {
        attrs: Vec::new(),
        qself: None,
        path: name.clone().into(),
    });
    call_with("of", name, expr);
}

/// `(function)(first, expr)` in place of `expr`, as long as it is.
fn call_with(function: &str, first: Expr, expr: &mut Expr) {
    // rustc takes an expression to reach from its first token to its last: the parentheses are at the user's,
    // where the names that are not the user's must not be.
    let (start, end) = (expr.start(), crate::position::end(expr));
    let function = Ident::new(function, before(start));
    let function = until(
        start,
        quote_spanned!(before(start)=> ::kiln::macros::#function),
    );
    let argument = std::mem::replace(expr, Expr::Verbatim(TokenStream::new()));
    *expr = Expr::Call(ExprCall {
        attrs: Vec::new(),
        func: Box::new(Expr::Paren(ExprParen {
            attrs: Vec::new(),
            paren_token: syn::token::Paren(start),
            expr: Box::new(Expr::Verbatim(function)),
        })),
        paren_token: syn::token::Paren(end),
        args: [first, argument].into_iter().collect(),
    });
}

/// Whether an expression is a number without a suffix, perhaps negative.
pub(crate) fn is_open_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(lit) => match &lit.lit {
            Lit::Int(int) => int.suffix().is_empty(),
            Lit::Float(float) => float.suffix().is_empty(),
            _ => false,
        },
        Expr::Unary(unary) => matches!(unary.op, syn::UnOp::Neg(_)) && is_open_literal(&unary.expr),
        _ => false,
    }
}

impl VisitMut for Mark {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        if is_open_literal(expr) {
            self.mark(expr);
            return;
        }
        // A literal that is cast has its type from the cast.
        if let Expr::Cast(cast) = expr
            && is_open_literal(strip(&cast.expr))
        {
            return;
        }
        // The length of a repetition is a constant of the host.
        if let Expr::Repeat(repeat) = expr {
            self.visit_expr_mut(&mut repeat.expr);
            return;
        }
        if let Expr::Const(block) = expr {
            crate::assertion::open(block);
        }
        if let Expr::ForLoop(each) = expr {
            self.visit_range(&mut each.expr);
            self.visit_block_mut(&mut each.body);
            return;
        }
        if let Expr::Call(call) = expr
            && let function @ Expr::Path(_) = strip(&call.func)
        {
            *call.func = function.clone();
        }
        if self.mark_result(expr) || self.mark_default(expr) || self.mark_conversion(expr) {
            return;
        }
        if let Expr::Call(call) = expr
            && !is_some_function(&call.func)
            && Stand::of(&call.func).is_none()
            && let of_type = (self.is_of_type(&call.func) || self.is_of_number(&call.func))
            && (of_type || self.is_function(&call.func))
            // The type of a closure, and so that of the function, names what it borrows, which ends with the copy.
            && !call.args.iter().any(|arg| is_closure(arg, &self.closures))
            && (of_type || self.is_first(&call.func))
        {
            self.mark(&mut call.func);
            self.paths |= of_type;
            call.args
                .iter_mut()
                .for_each(|arg| self.visit_expr_mut(arg));
            return;
        }
        let may_be_own = self.may_be_own(expr);
        self.mark_written(expr);
        syn::visit_mut::visit_expr_mut(self, expr);
        match expr {
            Expr::Index(_) => self.mark_element(expr, OPERATOR),
            _ if may_be_own => self.mark_operator(expr),
            Expr::Struct(_) => self.mark(expr),
            Expr::Path(_) if self.is_constant(expr) => self.mark(expr),
            Expr::MethodCall(call) if !is_cast(call) => self.mark_method(expr),
            _ => {}
        }
    }

    // What is in these is no expression of the kernel.
    fn visit_pat_mut(&mut self, _: &mut Pat) {}
    fn visit_type_mut(&mut self, _: &mut syn::Type) {}
    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
    fn visit_attribute_mut(&mut self, _: &mut syn::Attribute) {}
    fn visit_path_mut(&mut self, _: &mut syn::Path) {}
    fn visit_angle_bracketed_generic_arguments_mut(
        &mut self,
        _: &mut syn::AngleBracketedGenericArguments,
    ) {
    }
}

/// Whether a method call is `x.cast::<T>()`.
pub(crate) fn is_cast(call: &ExprMethodCall) -> bool {
    call.method == "cast" && call.args.is_empty()
}

/// Whether an expression names a variable or a part of one.
pub(crate) fn is_place(expr: &Expr) -> bool {
    match expr {
        Expr::Path(_) | Expr::Field(_) | Expr::Index(_) => true,
        Expr::Unary(unary) => matches!(unary.op, syn::UnOp::Deref(_)),
        Expr::Paren(paren) => is_place(&paren.expr),
        Expr::Group(group) => is_place(&group.expr),
        _ => false,
    }
}

/// Takes out what rustc does not know: attributes of loops and `shared!`; puts in what tells the types
/// of method calls.
struct ForHost {
    /// What the function returns, in its copy: `?` gives errors as they are.
    result: Option<syn::Type>,
}

impl VisitMut for ForHost {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        if let Expr::ForLoop(each) = expr {
            each.attrs.retain(|a| !a.path().is_ident("unroll"));
        }
        if let Expr::Macro(shared) = expr
            && shared.mac.path.is_ident("shared")
        {
            let (ty, root) = (&shared.mac.tokens, root());
            *expr = Expr::Verbatim(
                quote_spanned!(before(shared.span())=> #root::shared_memory::<#ty>()),
            );
        }
        if let Expr::Const(block) = expr
            && let Some(conditions) = crate::assertion::for_copy(block)
        {
            *expr = conditions;
            return;
        }
        if let Some(stand) = Stand::of(expr) {
            *expr = stand.on_host(expr.span());
            return;
        }
        if let Expr::Call(call) = expr
            && crate::panic::is_opened(call)
        {
            syn::visit_mut::visit_expr_call_mut(self, call);
            if let Some(copy) = crate::panic::for_copy(call) {
                *expr = copy;
            }
            return;
        }
        if let (Expr::Try(e), Some(result)) = (&mut *expr, &self.result) {
            let root = root_at(e.expr.start());
            let of = Expr::Verbatim(
                quote_spanned!(before(e.expr.start())=> #root::TypeOf::<#result>::OPEN),
            );
            self.visit_expr_mut(&mut e.expr);
            call_with("question", of, &mut e.expr);
            return;
        }
        if let Some((name, call)) = marked_method(expr) {
            let block = self.typed_call(&name.clone(), call.clone());
            *expr = Expr::Verbatim(block);
            return;
        }
        if self.operator(expr) {
            return;
        }
        syn::visit_mut::visit_expr_mut(self, expr);
    }
}

impl ForHost {
    /// Tells the types of the operands of an operator that is marked; whether it is.
    fn operator(&mut self, expr: &mut Expr) -> bool {
        match expr {
            Expr::Binary(e) if is_compound(&e.op) => {
                let Some((name, right)) = marked_operand(&e.right) else {
                    return false;
                };
                let (name, right) = (name.clone(), right.clone());
                let mut place = (*e.left).clone();
                Unmarked.visit_expr_mut(&mut place);
                self.visit_expr_mut(&mut place);
                self.visit_expr_mut(&mut e.left);
                *e.right = self.operand("right", &name, right, true);
                let start = e.start();
                let told =
                    quote_spanned!(before(start)=> ::kiln::macros::assigned(&#name, &#place));
                *expr = Expr::Verbatim(quote_spanned!(start=> { #told; #expr }));
            }
            Expr::Binary(e) => {
                let Some((name, left)) = marked_operand(&e.left) else {
                    return false;
                };
                let (name, left) = (name.clone(), left.clone());
                *e.left = self.operand("left", &name, left, false);
                *e.right = self.operand("right", &name, (*e.right).clone(), false);
            }
            Expr::Unary(e) => {
                let Some((name, operand)) = marked_operand(&e.expr) else {
                    return false;
                };
                *e.expr = self.operand("only", &name.clone(), operand.clone(), false);
            }
            Expr::Index(e) => {
                let Some((name, indices)) = marked_operand(&e.index) else {
                    return false;
                };
                let (name, indices) = (name.clone(), indices.clone());
                self.visit_expr_mut(&mut e.expr);
                let method = match name.to_string().starts_with(WRITTEN) {
                    true => "__kiln_indexed_mut",
                    false => "__kiln_indexed",
                };
                let (start, base) = (e.expr.start(), &e.expr);
                let method = Ident::new(method, before(start));
                let base = quote_spanned!(start=> (*#base.#method(&#name)));
                *e.expr = Expr::Verbatim(base);
                *e.index = self.operand("right", &name, indices, true);
            }
            _ => return false,
        }
        true
    }

    /// An operand as the function that tells its type returns it.
    fn operand(&mut self, function: &str, name: &Ident, operand: Expr, is_assigned: bool) -> Expr {
        // Around an argument rustc takes for idle what an operand needs. What is assigned needs none.
        let mut operand = match operand {
            Expr::Paren(paren) if !is_assigned => *paren.expr,
            operand => operand,
        };
        self.visit_expr_mut(&mut operand);
        let types = Expr::Verbatim(quote!(&#name));
        call_with(function, types, &mut operand);
        operand
    }

    /// A method call, and its types. The receiver is named twice if it is a place, so that it stays
    /// one; the second time without what it is marked with.
    fn typed_call(&mut self, name: &Ident, mut call: ExprMethodCall) -> TokenStream {
        let (start, mut first_field) = (call.start(), Literal::usize_unsuffixed(0));
        let span = before(start);
        first_field.set_span(call.paren_token.span.close());
        let result = Ident::new("__kiln_result", span);
        let (first, again) = match is_place(&call.receiver) {
            true => {
                let mut again = (*call.receiver).clone();
                Unmarked.visit_expr_mut(&mut again);
                self.visit_expr_mut(&mut again);
                (None, quote!(#again))
            }
            false => {
                let value = Ident::new("__kiln_value", span);
                let receiver = std::mem::replace(
                    &mut *call.receiver,
                    Expr::Path(ExprPath {
                        attrs: Vec::new(),
                        qself: None,
                        path: value.clone().into(),
                    }),
                );
                let mut receiver = strip(&receiver).clone();
                self.visit_expr_mut(&mut receiver);
                (Some(quote!(let mut #value = #receiver;)), quote!(#value))
            }
        };
        syn::visit_mut::visit_expr_method_call_mut(self, &mut call);
        // The field makes it as long for rustc as the call is, and keeps what is expected of it out.
        let block = quote! {
            {
                #first
                #again.__kiln_receiver(&#name);
                let #result = #call;
                #result.__kiln_found(&#name);
                #result
            }
        };
        quote_spanned!(start=> (#block,).#first_field)
    }
}

/// Takes marks out.
struct Unmarked;

impl VisitMut for Unmarked {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        let inner = marked(expr).map(|(_, inner)| inner.clone());
        let inner = inner.or_else(|| Some(marked_operand(expr)?.1.clone()));
        let inner = inner.or_else(|| {
            let (_, call) = marked_method(expr)?;
            Some(Expr::MethodCall(call.clone()))
        });
        if let Some(inner) = inner {
            *expr = inner;
        }
        syn::visit_mut::visit_expr_mut(self, expr);
    }
}
