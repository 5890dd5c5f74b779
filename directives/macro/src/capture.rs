//! Which variables of the function a region uses, and how.

use std::collections::BTreeMap;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Block, Error, Expr, ExprReference, Pat, PatIdent, Result, Stmt, Type};

/// A variable of the function.
#[derive(Clone)]
pub(crate) struct Variable {
    pub(crate) kind: Kind,
    /// How many variables the function declares before it.
    pub(crate) place: usize,
}

/// What a region can do with a variable.
#[derive(Clone)]
pub(crate) enum Kind {
    /// Elements of this type; whether they can be written, and whether the variable is a parameter.
    Slice {
        element: Type,
        mutable: bool,
        is_param: bool,
    },
    /// A number or a struct, which is passed by value.
    Scalar(Type),
    /// A variable whose declaration does not say the type.
    Untyped,
    /// A slice that is borrowed from another variable.
    Part,
    /// A `Vec` of an inner block, which does not live as long as the function.
    Inner,
}

/// The variables of a function that its own block declares, by name.
pub(crate) type Variables = BTreeMap<String, Variable>;

/// What the type of a variable says.
pub(crate) fn kind_of(ty: &Type, mutable: bool, is_param: bool) -> Kind {
    if let Type::Reference(reference) = ty
        && let Type::Slice(slice) = &*reference.elem
    {
        let element = (*slice.elem).clone();
        let mutable = reference.mutability.is_some();
        return Kind::Slice {
            element,
            mutable,
            is_param,
        };
    }
    if let Type::Path(path) = ty
        && let Some(last) = path.path.segments.last()
        && last.ident == "Vec"
        && let syn::PathArguments::AngleBracketed(args) = &last.arguments
        && let Some(syn::GenericArgument::Type(element)) = args.args.first()
    {
        let element = element.clone();
        return Kind::Slice {
            element,
            mutable,
            is_param,
        };
    }
    Kind::Scalar(ty.clone())
}

/// Adds the variables that the statements of a function's own block declare with their types, slices among them.
pub(crate) fn add_locals(variables: &mut Variables, block: &Block) -> Result<()> {
    for statement in &block.stmts {
        if let Stmt::Local(local) = statement
            && let Pat::Type(typed) = &local.pat
            && let Pat::Ident(name) = &*typed.pat
        {
            let kind = kind_of(&typed.ty, name.mutability.is_some(), false);
            let is_slice = |kind: &Kind| matches!(kind, Kind::Slice { .. });
            let is_reference = matches!(*typed.ty, Type::Reference(_));
            let known = variables.get(&name.ident.to_string());
            if known.is_some_and(|known| is_slice(&known.kind) || is_slice(&kind)) {
                let message = "the function has a variable of this name, and one of them is a slice: give this one another";
                return Err(Error::new_spanned(name, message));
            }
            // A part of another slice, which would be on the device twice.
            let kind = if is_slice(&kind) && is_reference {
                Kind::Part
            } else {
                kind
            };
            let place = variables.len();
            variables.insert(name.ident.to_string(), Variable { kind, place });
        }
    }
    Ok(())
}

/// Adds the variables of inner blocks, which regions may use by value. None of them has the name of a slice of the
/// function's, of which it would not be clear which one is meant.
pub(crate) fn add_inner(variables: &mut Variables, block: &Block) -> Result<()> {
    let mut inner = Inner {
        variables,
        depth: 0,
        error: None,
    };
    inner.visit_block(block);
    inner.error.map_or(Ok(()), Err)
}

struct Inner<'v> {
    variables: &'v mut Variables,
    depth: usize,
    error: Option<Error>,
}

impl Inner<'_> {
    fn add(&mut self, name: &syn::Ident, kind: Kind) {
        match self
            .variables
            .get(&name.to_string())
            .map(|known| &known.kind)
        {
            Some(Kind::Slice { .. }) => {
                let message = "the function has a slice of this name, which regions use: give this variable another one";
                self.error.get_or_insert(Error::new_spanned(name, message));
            }
            Some(Kind::Scalar(_) | Kind::Untyped | Kind::Part | Kind::Inner) => {}
            None => {
                let place = self.variables.len();
                let variable = Variable { kind, place };
                self.variables.insert(name.to_string(), variable);
            }
        }
    }
}

impl Visit<'_> for Inner<'_> {
    fn visit_block(&mut self, block: &Block) {
        self.depth += 1;
        visit::visit_block(self, block);
        self.depth -= 1;
    }

    fn visit_expr_block(&mut self, held: &syn::ExprBlock) {
        // What a region binds is its own.
        if !crate::clauses::is_kernel(&held.attrs) {
            visit::visit_expr_block(self, held);
        }
    }

    fn visit_local(&mut self, local: &syn::Local) {
        let is_outer = self.depth == 1;
        if let Pat::Type(typed) = &local.pat
            && let Pat::Ident(name) = &*typed.pat
        {
            if !is_outer {
                let kind = match kind_of(&typed.ty, false, false) {
                    Kind::Slice { .. } => Kind::Inner,
                    kind => kind,
                };
                self.add(&name.ident, kind);
            }
        } else {
            self.visit_pat(&local.pat);
        }
        if let Some(init) = &local.init {
            self.visit_local_init(init);
        }
    }

    fn visit_pat_ident(&mut self, pattern: &PatIdent) {
        self.add(&pattern.ident, Kind::Untyped);
        visit::visit_pat_ident(self, pattern);
    }
}

/// The names that a pattern binds.
#[derive(Default)]
pub(crate) struct Names(pub(crate) Vec<String>);

impl Visit<'_> for Names {
    fn visit_pat_ident(&mut self, pattern: &PatIdent) {
        self.0.push(pattern.ident.to_string());
        visit::visit_pat_ident(self, pattern);
    }
}

/// How a region uses a variable of the function.
#[derive(Copy, Clone, Default)]
pub(crate) struct Use {
    pub(crate) writes: bool,
}

/// What a region uses of the function's variables.
pub(crate) struct Captures<'v> {
    variables: &'v Variables,
    /// The names that the region itself binds, in scopes.
    own: Vec<Vec<String>>,
    pub(crate) used: BTreeMap<String, Use>,
    error: Option<Error>,
}

impl<'v> Captures<'v> {
    /// What a region uses.
    pub(crate) fn of(block: &Block, variables: &'v Variables) -> Result<Captures<'v>> {
        let mut captures = Captures {
            variables,
            own: vec![Vec::new()],
            used: BTreeMap::new(),
            error: None,
        };
        captures.visit_block(block);
        match captures.error.take() {
            Some(error) => Err(error),
            None => Ok(captures),
        }
    }

    fn is_own(&self, name: &str) -> bool {
        self.own.iter().flatten().any(|own| own == name)
    }

    fn note(&mut self, name: &str, writes: bool, at: &dyn quote::ToTokens) {
        let Some(variable) = self.variables.get(name).filter(|_| !self.is_own(name)) else {
            return;
        };
        self.used.entry(name.to_owned()).or_default().writes |= writes;
        let message = match &variable.kind {
            Kind::Scalar(_) if writes => {
                "a region writes elements of slices, and passes scalars by value: write to an element"
            }
            Kind::Part => {
                "a region uses this slice, which is a part of another variable: use that one, with its indices"
            }
            Kind::Inner => {
                "a region uses this vector: declare it in the function's own block, so that it lives as long as what is on the device"
            }
            Kind::Untyped => {
                "a region uses this variable: say its type where it is declared, `let x: u32 = ..`"
            }
            Kind::Slice { mutable: false, .. } if writes => {
                "the slice is not mutable: declare it `&mut [..]` or `let mut`"
            }
            Kind::Scalar(_) | Kind::Slice { .. } => return,
        };
        let error = Error::new_spanned(at.to_token_stream(), message);
        self.error.get_or_insert(error);
    }

    fn bind(&mut self, pattern: &Pat) {
        let mut names = Names::default();
        names.visit_pat(pattern);
        self.own
            .last_mut()
            .into_iter()
            .for_each(|scope| scope.append(&mut names.0));
    }

    fn within(&mut self, visit: impl FnOnce(&mut Self)) {
        self.own.push(Vec::new());
        visit(self);
        self.own.pop();
    }

    /// Notes a place that is written, and what its indices use.
    fn written(&mut self, place: &Expr) {
        if let Some(name) = root_of(place) {
            self.note(&name, true, place);
        }
        self.visit_expr(place);
    }

    fn refuse(&mut self, at: &dyn quote::ToTokens, message: &str) {
        let error = Error::new_spanned(at.to_token_stream(), message);
        self.error.get_or_insert(error);
    }
}

/// The variable that a place is of: `x` of `x[i].field`.
fn root_of(place: &Expr) -> Option<String> {
    match place {
        Expr::Path(path) => path.path.get_ident().map(ToString::to_string),
        Expr::Index(held) => root_of(&held.expr),
        Expr::Field(held) => root_of(&held.base),
        Expr::Paren(held) => root_of(&held.expr),
        Expr::Unary(held) => root_of(&held.expr),
        _ => None,
    }
}

/// Whether an operator assigns.
fn assigns(op: &syn::BinOp) -> bool {
    use syn::BinOp;
    matches!(
        op,
        BinOp::AddAssign(_)
            | BinOp::SubAssign(_)
            | BinOp::MulAssign(_)
            | BinOp::DivAssign(_)
            | BinOp::RemAssign(_)
            | BinOp::BitXorAssign(_)
            | BinOp::BitAndAssign(_)
            | BinOp::BitOrAssign(_)
            | BinOp::ShlAssign(_)
            | BinOp::ShrAssign(_)
    )
}

/// Whether a token is the name of a variable, in tokens that are not parsed.
pub(crate) fn mentions(tokens: TokenStream, name: &str) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == name,
        TokenTree::Group(group) => mentions(group.stream(), name),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

impl Visit<'_> for Captures<'_> {
    fn visit_block(&mut self, block: &Block) {
        self.within(|inner| visit::visit_block(inner, block));
    }

    fn visit_local(&mut self, local: &syn::Local) {
        if let Some(init) = &local.init {
            self.visit_local_init(init);
        }
        self.bind(&local.pat);
    }

    fn visit_expr_for_loop(&mut self, held: &syn::ExprForLoop) {
        self.visit_expr(&held.expr);
        self.within(|inner| {
            inner.bind(&held.pat);
            inner.visit_block(&held.body);
        });
    }

    fn visit_expr_closure(&mut self, held: &syn::ExprClosure) {
        self.within(|inner| {
            held.inputs.iter().for_each(|input| inner.bind(input));
            inner.visit_expr(&held.body);
        });
    }

    fn visit_arm(&mut self, arm: &syn::Arm) {
        self.within(|inner| {
            inner.bind(&arm.pat);
            visit::visit_arm(inner, arm);
        });
    }

    fn visit_expr_if(&mut self, held: &syn::ExprIf) {
        self.within(|inner| visit::visit_expr_if(inner, held));
    }

    fn visit_expr_while(&mut self, held: &syn::ExprWhile) {
        self.within(|inner| visit::visit_expr_while(inner, held));
    }

    fn visit_expr_let(&mut self, held: &syn::ExprLet) {
        self.visit_expr(&held.expr);
        self.bind(&held.pat);
    }

    fn visit_expr_assign(&mut self, held: &syn::ExprAssign) {
        self.written(&held.left);
        self.visit_expr(&held.right);
    }

    fn visit_expr_binary(&mut self, held: &syn::ExprBinary) {
        match assigns(&held.op) {
            true => self.written(&held.left),
            false => self.visit_expr(&held.left),
        }
        self.visit_expr(&held.right);
    }

    fn visit_expr_reference(&mut self, held: &ExprReference) {
        match held.mutability {
            Some(_) => self.written(&held.expr),
            None => self.visit_expr(&held.expr),
        }
    }

    fn visit_expr_call(&mut self, held: &syn::ExprCall) {
        self.visit_expr(&held.func);
        for arg in &held.args {
            // A slice itself may be written by who takes it.
            let name = root_of(arg).filter(|_| matches!(arg, Expr::Path(_)));
            let kind = name
                .as_ref()
                .and_then(|name| self.variables.get(name))
                .map(|held| &held.kind);
            match kind {
                Some(Kind::Slice { mutable: true, .. }) => self.written(arg),
                _ => self.visit_expr(arg),
            }
        }
    }

    fn visit_expr_method_call(&mut self, held: &syn::ExprMethodCall) {
        let reads = ["len", "is_empty"].iter().any(|name| held.method == name);
        let name = root_of(&held.receiver);
        let kind = name
            .and_then(|name| self.variables.get(&name))
            .map(|held| &held.kind);
        match kind {
            Some(Kind::Slice { mutable: true, .. })
                if !reads && matches!(*held.receiver, Expr::Path(_)) =>
            {
                self.written(&held.receiver);
            }
            _ => self.visit_expr(&held.receiver),
        }
        held.args.iter().for_each(|arg| self.visit_expr(arg));
    }

    fn visit_expr_path(&mut self, path: &syn::ExprPath) {
        if let Some(name) = path.path.get_ident() {
            self.note(&name.to_string(), false, path);
        }
    }

    fn visit_macro(&mut self, held: &syn::Macro) {
        let names: Vec<String> = self.variables.keys().cloned().collect();
        for name in names {
            if mentions(held.tokens.clone(), &name) {
                self.note(&name, false, held);
            }
        }
    }

    fn visit_expr_return(&mut self, held: &syn::ExprReturn) {
        self.refuse(held, "`return` leaves the function from a region, which runs on a device: put what follows into an `if`");
    }

    fn visit_expr_try(&mut self, held: &syn::ExprTry) {
        self.refuse(
            held,
            "`?` leaves the function from a region, which runs on a device",
        );
    }
}
