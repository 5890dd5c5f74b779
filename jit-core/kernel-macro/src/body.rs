//! Statements: `let`, items, and expressions as statements.

use std::collections::{HashMap, HashSet};

use kiln_description::{Code, Op, When};
use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Block, Expr, Item, Local, Pat, Stmt, Type};

use crate::arguments::Bounds;
use crate::arguments::Said;
use crate::attributes::Inline;
use crate::dispatch::Dispatched;
use crate::flow::Frame;
use crate::function::{Kind, root};
use crate::names::{Meaning, Names};
use crate::pool::Pool;
use crate::position::{Source, Start};
use crate::refusal::{NAME_OF_KERNEL, Refusals};
use crate::scan::{self, Methods, Mutable, addressed};
use crate::signature::Signature;
use crate::types::{has_references, is_open};

/// Translates one body.
pub(crate) struct Translator<'a> {
    pub(crate) kind: Kind,
    /// The function's name, to see direct recursion. A method is not called by its name alone.
    pub(crate) name: Option<Ident>,
    pub(crate) refusals: &'a mut Refusals,
    /// Loops and labelled blocks around what is translated, outermost first.
    pub(crate) frames: Vec<Frame>,
    /// What names mean here.
    pub(crate) names: Names,
    /// What the description refers to.
    pub(crate) pool: Pool,
    /// Whether what is translated is the body of a closure.
    pub(crate) in_closure: bool,
    /// Whether the function is described in place of its calls.
    pub(crate) is_inlined: bool,
    /// The variables that are `mut`.
    pub(crate) mutable: Mutable,
    source: Source,
    /// The methods that are called.
    pub(crate) methods: Methods,
    addressed: HashMap<String, When>,
    type_params: Vec<Ident>,
    /// The type parameters that have functions by traits of the user's.
    pub(crate) dispatched: Vec<Dispatched>,
    /// The type of what the function returns.
    pub(crate) result: Option<Type>,
    /// The types that a bound of the kernel's launch is about, as they are written.
    pub(crate) declared: HashSet<String>,
    consts: Vec<(Ident, Type)>,
    locals: u32,
    closures: u32,
    depth: usize,
}

/// How deep expressions may nest: the translator recurses, and so does rustc.
const MAX_DEPTH: usize = 128;

/// The types that a bound of the launch is about, if there is a launch.
fn declared(kind: Kind, signature: &Signature) -> HashSet<String> {
    let types = match kind {
        Kind::Kernel => crate::launch::declared_types(signature),
        Kind::Device => Vec::new(),
    };
    types
        .into_iter()
        .map(|ty| ty.to_token_stream().to_string())
        .collect()
}

/// Where the value of an expression goes.
#[derive(Clone)]
pub(crate) enum Destination {
    /// Nowhere.
    Discard,
    /// Into the slot with this number.
    Slot(u32),
}

impl<'a> Translator<'a> {
    pub(crate) fn new(
        kind: Kind,
        signature: &Signature,
        body: &Block,
        refusals: &'a mut Refusals,
    ) -> Self {
        let mut mutable = Mutable::default();
        mutable.visit_block(body);
        for param in &signature.params {
            mutable.visit_pat(&param.pattern);
        }
        let mut pool = Pool::default();
        let mut variables = scan::Variables::default();
        variables.visit_block(body);
        for param in &signature.params {
            variables.visit_param(&param.pattern, param.is_closure);
        }
        let closures = variables.closures;
        let entry = |of: &Ident, call: &syn::ExprMethodCall, takes_closures| {
            crate::call::method_entry(of, call, takes_closures, &signature.dispatched)
        };
        let methods = Methods::of(body, &closures, &mut pool, entry);
        let params = signature.params.iter().map(|p| &p.pattern);
        Translator {
            addressed: addressed(body, params, &methods),
            methods,
            mutable,
            kind,
            name: signature.is_free.then(|| signature.name.clone()),
            refusals,
            frames: Vec::new(),
            names: Names::default(),
            pool,
            source: Source::new(&signature.name),
            in_closure: false,
            is_inlined: signature.is_inlined(),
            type_params: signature
                .types
                .iter()
                .map(|(name, _)| name.clone())
                .collect(),
            dispatched: signature.dispatched.clone(),
            result: signature.result.clone(),
            declared: declared(kind, signature),
            consts: signature.consts.clone(),
            locals: 0,
            closures: 0,
            depth: 0,
        }
    }

    /// The whole description, as arguments of the function that evaluates it: its bytes, and its pool.
    pub(crate) fn function(&mut self, signature: &Signature, body: &Block) -> TokenStream {
        if let (Kind::Kernel, Some(variable)) =
            (self.kind, scan::variable_named(&signature.name, body))
        {
            self.refuse(&variable, NAME_OF_KERNEL);
        }
        let description = self.description(signature, body);
        self.data(description)
    }

    /// What the bytes say.
    pub(crate) fn description(&mut self, signature: &Signature, body: &Block) -> Code {
        let code = match self.is_inlined {
            true => self.inlined_function(signature, body),
            false => self.plain_function(signature, body),
        };
        self.with_header(&code)
    }

    /// Code as a description.
    pub(crate) fn with_header(&self, code: &Code) -> Code {
        let (file, line) = self.source.start();
        Code::header(file, line, self.locals, self.closures).code(code)
    }

    /// A description as the arguments of the function that evaluates it.
    pub(crate) fn data(&self, description: Code) -> TokenStream {
        let bytes = Literal::byte_string(&description.into_bytes());
        let pool = self.pool.tokens();
        quote!(#bytes, #pool)
    }

    fn plain_function(&mut self, signature: &Signature, body: &Block) -> Code {
        let mut parts = self.declarations(signature);
        for (i, param) in signature.params.iter().enumerate() {
            parts.push(self.param(i, &param.pattern, &param.ty));
        }
        match (&signature.result, body.stmts.split_last()) {
            (None, _) => parts.push(self.block(body, &Destination::Discard)),
            // A body that is one expression is returned as it is.
            (Some(_), Some((Stmt::Expr(last, None), before))) if !is_structured(last) => {
                self.enter_items(&body.stmts);
                parts.extend(self.statements(before, &Destination::Discard));
                let value = self.expr(last);
                parts.push(self.op(Op::ReturnValue, last.start()).code(&value));
            }
            (Some(_), _) => {
                let slot = self.fresh();
                parts.push(Code::new(Op::Slot, None).number(slot));
                parts.push(self.block(body, &Destination::Slot(slot)));
                parts.push(Code::new(Op::ReturnValue, None).code(&local(slot)));
            }
        }
        Code::block(parts)
    }

    /// What comes before parameters: type and const parameters, launch bounds.
    fn declarations(&mut self, signature: &Signature) -> Vec<Code> {
        let mut parts = Vec::new();
        for (name, bound) in &signature.types {
            let code = self
                .op(Op::DeclareType, name.span())
                .text(&name.to_string());
            parts.push(code.number(*bound as u32));
        }
        for (name, ty) in &signature.consts {
            let root = root();
            let entry = quote!(#root::Pooled::const_type::<#ty>());
            let code = self
                .op(Op::DeclareConst, name.span())
                .text(&name.to_string());
            parts.push(code.number(self.pool.entry(&entry)));
        }
        if let (Kind::Kernel, Some(bounds)) = (self.kind, &signature.bounds) {
            let code = Code::new(Op::LaunchBounds, None);
            parts.push(code.number(bounds.max_threads).number(bounds.min_blocks));
        }
        parts.extend(choices(signature));
        for (name, said) in &signature.attributes {
            let name = plain_name(name);
            parts.push(match said {
                Said::Bool(value) => Code::new(Op::SayBool, None).text(&name).flag(*value),
                Said::Int(value) => Code::new(Op::SayInt, None).text(&name).int((*value).into()),
                Said::Text(value) => Code::new(Op::SayText, None).text(&name).text(value),
            });
        }
        if signature.inline != Inline::Auto {
            let code = Code::new(Op::Inline, None);
            parts.push(code.number(signature.inline as u32));
        }
        parts
    }

    fn param(&mut self, index: usize, pattern: &Pat, ty: &Type) -> Code {
        let code = self.op(Op::Param, pattern.start());
        let ty = self.ty(ty);
        if let Pat::Ident(ident) = pattern
            && ident.by_ref.is_none()
            && ident.subpat.is_none()
        {
            let (name, mutable) = (&ident.ident, ident.mutability.is_some());
            let memory = self.addressed(name);
            let code = code.text(&plain_name(name)).code(&ty);
            return code.flag(mutable).when(&memory).number(self.variable(name));
        }
        let value = self.fresh();
        let parts = self.bind_pattern(pattern, &local(value));
        let code = code.text(&format!("parameter{index}")).code(&ty);
        let code = code.flag(false).when(&When::Never).number(value);
        Code::block(vec![code, parts])
    }

    /// An operation where a token is.
    pub(crate) fn op(&self, op: Op, span: Span) -> Code {
        Code::new(op, self.source.place(span))
    }

    /// The number of a variable that nothing else has.
    pub(crate) fn fresh(&mut self) -> u32 {
        self.locals += 1;
        self.locals - 1
    }

    /// The number of a variable that a name means from now on.
    pub(crate) fn variable(&mut self, name: &Ident) -> u32 {
        let number = self.fresh();
        self.names.bind(name, Meaning::Variable(number));
        number
    }

    /// The number of a closure.
    pub(crate) fn fresh_closure(&mut self) -> u32 {
        self.closures += 1;
        self.closures - 1
    }

    /// Translates something whose names are its own.
    pub(crate) fn scoped<R>(&mut self, translate: impl FnOnce(&mut Self) -> R) -> R {
        let (names, blocks) = (self.names.scope(), self.pool.blocks());
        let result = translate(self);
        self.names.leave_to(names);
        self.pool.leave_to(blocks);
        result
    }

    /// When a variable of a name needs an address.
    pub(crate) fn addressed(&self, name: &Ident) -> When {
        let when = self.addressed.get(&name.to_string());
        when.cloned().unwrap_or_default()
    }

    pub(crate) fn is_type_param(&self, name: &Ident) -> bool {
        self.type_params.contains(name)
    }

    /// The number of a const parameter, and its declared type; none where an item hides it.
    pub(crate) fn const_param(&self, name: &Ident) -> Option<(u32, Type)> {
        if self.names.meaning(name) == Some(Meaning::Item) {
            return None;
        }
        let at = self.consts.iter().position(|(n, _)| n == name)?;
        Some((at as u32, self.consts[at].1.clone()))
    }

    pub(crate) fn refuse(&mut self, tokens: &dyn ToTokens, message: &str) -> Code {
        self.refusals.refuse(tokens, message);
        Code::new(Op::Unit, None)
    }

    /// Runs `translate` one level deeper, unless that is too deep.
    pub(crate) fn nested(
        &mut self,
        expr: &Expr,
        translate: impl FnOnce(&mut Self) -> Code,
    ) -> Code {
        if self.depth >= MAX_DEPTH {
            return self.refuse(
                expr,
                "this is nested too deeply; give parts of it names with `let`",
            );
        }
        self.depth += 1;
        let code = translate(self);
        self.depth -= 1;
        code
    }

    /// A block, its value left at the destination.
    pub(crate) fn block(&mut self, block: &Block, to: &Destination) -> Code {
        let statements = self.scoped(|this| {
            this.enter_items(&block.stmts);
            this.statements(&block.stmts, to)
        });
        Code::block(statements)
    }

    /// Enters the items of a block, which all of it sees.
    pub(crate) fn enter_items(&mut self, statements: &[Stmt]) {
        let mut items = TokenStream::new();
        for statement in statements {
            if let Stmt::Item(item) = statement {
                self.item(item);
                item.to_tokens(&mut items);
            }
        }
        self.pool.enter_items(items);
    }

    /// Statements of a block whose items are entered.
    pub(crate) fn statements(&mut self, statements: &[Stmt], to: &Destination) -> Vec<Code> {
        let mut parts = Vec::new();
        for (i, statement) in statements.iter().enumerate() {
            let is_last = i + 1 == statements.len();
            parts.push(match statement {
                Stmt::Local(local) => self.local(local),
                Stmt::Item(_) => continue,
                Stmt::Expr(expr, None) if is_last => self.into(expr, to),
                Stmt::Expr(expr, _) => self.into(expr, &Destination::Discard),
                Stmt::Macro(call) => self.macro_call(&call.mac, None),
            });
        }
        parts
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Const(constant) => self.names.bind(&constant.ident, Meaning::Item),
            Item::Use(import) => self.imports(&import.tree),
            _ => {
                self.refuse(
                    item,
                    "only `const` and `use` items are inside a kernel; move this one out of the \
                     function",
                );
            }
        }
    }

    /// Enters the names of an import. Those of a `*` are not known; they hide no variables, as
    /// constants are written in capitals.
    fn imports(&mut self, tree: &syn::UseTree) {
        match tree {
            syn::UseTree::Path(path) => self.imports(&path.tree),
            syn::UseTree::Name(name) => self.names.bind(&name.ident, Meaning::Item),
            syn::UseTree::Rename(rename) => self.names.bind(&rename.rename, Meaning::Item),
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| self.imports(tree)),
            syn::UseTree::Glob(_) => {}
        }
    }

    fn local(&mut self, local: &Local) -> Code {
        let (pattern, ty) = match &local.pat {
            Pat::Type(typed) => (&*typed.pat, Some(&*typed.ty)),
            pattern => (pattern, None),
        };
        if let Some(ty) = ty
            && !matches!(ty, Type::Infer(_))
        {
            self.check_annotation(ty);
        }
        let Some(init) = &local.init else {
            return self.declaration(pattern, ty);
        };
        if let Expr::Closure(closure) = crate::expression::strip(&init.expr) {
            return self.local_closure(pattern, closure);
        }
        if let (Pat::Tuple(pattern), Expr::Tuple(values), None, None) =
            (pattern, &*init.expr, ty, &init.diverge)
            && pattern.elems.len() == values.elems.len()
            && !pattern.elems.iter().any(|p| matches!(p, Pat::Rest(_)))
        {
            return self.parallel(pattern, values);
        }
        let value = match &*init.expr {
            Expr::Macro(call) => self.macro_call(&call.mac, pattern_name(pattern)),
            expr => self.expr(expr),
        };
        let value = match ty {
            Some(ty) => self.coerced(value, ty, local.span()),
            None => value,
        };
        match &init.diverge {
            Some((_, otherwise)) => self.let_else(local, pattern, &value, otherwise),
            None => self.bind_pattern(pattern, &value),
        }
    }

    /// `let x;`
    fn declaration(&mut self, pattern: &Pat, ty: Option<&Type>) -> Code {
        let Pat::Ident(ident) = pattern else {
            return self.refuse(
                pattern,
                "a variable without a value has a name; give this one a value",
            );
        };
        let mut memory = self.addressed(&ident.ident);
        if ty.is_some_and(|ty| has_references(ty) && !is_open(ty)) {
            memory = When::Always;
        }
        let ty = ty.filter(|_| memory != When::Never).map(|ty| self.ty(ty));
        let code = self.op(Op::Declare, ident.ident.span());
        let variable = self.variable(&ident.ident);
        code.number(variable).when(&memory).option(ty.as_ref())
    }

    /// `let (a, b) = (x, y);` without a tuple.
    fn parallel(&mut self, pattern: &syn::PatTuple, values: &syn::ExprTuple) -> Code {
        let mut parts = Vec::new();
        let mut variables = Vec::new();
        for value in &values.elems {
            let (variable, eager) = (self.fresh(), self.op(Op::Eager, value.start()));
            let value = eager.code(&self.expr(value));
            parts.push(Code::new(Op::Let, None).number(variable).code(&value));
            variables.push(variable);
        }
        for (pattern, variable) in pattern.elems.iter().zip(variables) {
            parts.push(self.bind_pattern(pattern, &local(variable)));
        }
        Code::block(parts)
    }

    fn check_annotation(&mut self, ty: &Type) {
        // `[_; 4]` and `&[_]` are for rustc.
        if !is_open(ty) {
            crate::types::check_type(ty, self.refusals);
        }
    }

    /// An expression whose value goes to a destination.
    pub(crate) fn into(&mut self, expr: &Expr, to: &Destination) -> Code {
        if is_structured(expr) {
            return self.nested(expr, |this| this.structured(expr, to));
        }
        let value = self.expr(expr);
        match to {
            Destination::Slot(slot) => {
                let code = self.op(Op::Assign, expr.start()).when(&When::Never);
                code.region(&value).code(&local(*slot))
            }
            Destination::Discard => self.op(Op::Discard, expr.start()).code(&value),
        }
    }

    /// A new slot, filled by an expression, as an operand.
    pub(crate) fn through_slot(&mut self, expr: &Expr) -> Code {
        self.with_slot(|this, to| this.structured(expr, to))
    }

    /// A new slot, filled by something, as an operand.
    pub(crate) fn with_slot(&mut self, fill: impl FnOnce(&mut Self, &Destination) -> Code) -> Code {
        let slot = self.fresh();
        let declared = Code::new(Op::Slot, None).number(slot);
        let filled = fill(self, &Destination::Slot(slot));
        Code::block(vec![declared, filled, local(slot)])
    }
}

/// A variable, by its number.
pub(crate) fn local(number: u32) -> Code {
    Code::new(Op::Local, None).number(number)
}

/// Whether an expression is made of statements.
pub(crate) fn is_structured(expr: &Expr) -> bool {
    match expr {
        Expr::Paren(paren) => is_structured(&paren.expr),
        Expr::Group(group) => is_structured(&group.expr),
        Expr::Binary(binary) => crate::scan::is_compound(&binary.op),
        Expr::Call(call) => crate::panic::is_opened(call),
        _ => matches!(
            expr,
            Expr::If(_)
                | Expr::Match(_)
                | Expr::Block(_)
                | Expr::Loop(_)
                | Expr::While(_)
                | Expr::ForLoop(_)
                | Expr::Assign(_)
                | Expr::Break(_)
                | Expr::Continue(_)
                | Expr::Return(_)
        ),
    }
}

fn pattern_name(pattern: &Pat) -> Option<&Ident> {
    match pattern {
        Pat::Ident(ident) => Some(&ident.ident),
        _ => None,
    }
}

/// A name without `r#`.
pub(crate) fn plain_name(name: &Ident) -> String {
    let text = name.to_string();
    text.strip_prefix("r#").unwrap_or(&text).to_owned()
}

/// What the function chooses of what is usually left to the compilation.
fn choices(signature: &Signature) -> Vec<Code> {
    let mut parts = Vec::new();
    let mut say = |op, number| parts.push(Code::new(op, None).number(number));
    match signature.indices {
        Some(Bounds::Checked) => say(Op::Bounds, 0),
        Some(Bounds::Clamped) => say(Op::Bounds, 1),
        // The item says it, in an `unsafe` block.
        Some(Bounds::Unchecked(_)) | None => {}
    }
    if signature.fast != 0 {
        say(Op::FastMath, signature.fast);
    }
    if signature.max_registers != 0 {
        say(Op::MaxRegisters, signature.max_registers);
    }
    if signature.unroll != 0 {
        say(Op::Unroll, signature.unroll);
    }
    if let Some(cost) = signature.inline_threshold {
        say(Op::InlineThreshold, cost);
    }
    parts
}
