//! A kernel region as a `#[device_fn]` with marks.

use std::collections::BTreeSet;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, Block, Error, Expr, Pat, Result, Stmt, Type, parse_quote};

use crate::capture::{Captures, Kind, Variables};
use crate::clauses::{
    Directive, Grid, Partition, Shared, Staged, Transform, directive, is_directive,
};
use crate::host::{MISPLACED, MISPLACED_CONSTANT};
use crate::sequential::{attributes_of, is_barrier, is_global};

/// The launch that stands in the place of a region: it uses `__offload`, what of each slice is on the device, and
/// the variables of the function.
pub(crate) fn launch(
    name: &Ident,
    grid: &Grid,
    block: &Block,
    (variables, constants): (&Variables, &BTreeSet<String>),
) -> Result<TokenStream> {
    let captures = Captures::of(block, variables)?;
    let mut marked = block.clone();
    let mut marks = Marks::new(&captures, variables);
    marks.visit_block_mut(&mut marked);
    if let Some(error) = marks.error {
        return Err(error);
    }
    let Passed {
        params,
        brought,
        known,
        chosen,
        noted,
        args,
        values,
    } = passed(&captures, (variables, constants), block.span());
    let (blocks, threads, nowait) = (&grid.blocks, &grid.threads, grid.nowait);
    let (region, statements) = (format_ident!("{name}", span = block.span()), &marked.stmts);
    Ok(quote_spanned! {block.span()=> {
        #[::kiln::device_fn]
        fn #region(#(#params),*) {
            #(#statements)*
        }
        static __REGION: ::kiln::directives::macros::Region = ::kiln::directives::macros::Region::new();
        #(#brought)*
        let __grid = ::kiln::directives::macros::grid(
            &[#(::kiln::directives::macros::extent(#blocks)),*],
            &[#(::kiln::directives::macros::extent(#threads)),*],
        )?;
        let __constants: &[::core::option::Option<::kiln::directives::macros::Chosen>] = &[#(#chosen),*];
        let __scheduled =
            __REGION.scheduled::<#region>(__grid, &[#(#known),*], (__constants, __offload.machine()))?;
        #(#noted)*
        __offload.launch(&__scheduled, ::std::vec![#(#args),*], [#(#values),*], #nowait)?;
    }})
}

/// What a region has of the function's variables.
#[derive(Default)]
struct Passed {
    params: Vec<TokenStream>,
    /// Copies to the device.
    brought: Vec<TokenStream>,
    known: Vec<TokenStream>,
    /// What of slices is in constant memory.
    chosen: Vec<TokenStream>,
    /// What is noted of slices.
    noted: Vec<TokenStream>,
    args: Vec<TokenStream>,
    /// Elements of constants.
    values: Vec<TokenStream>,
}

fn passed(
    captures: &Captures<'_>,
    (variables, constants): (&Variables, &BTreeSet<String>),
    span: Span,
) -> Passed {
    let mut passed = Passed::default();
    // In the order of the function, as whoever launches the kernel without it finds them.
    let mut used: Vec<_> = captures.used.iter().collect();
    used.sort_by_key(|(variable, _)| variables[*variable].place);
    for (variable, used) in used {
        let ident = Ident::new(variable, span);
        let present = present(variable);
        match &variables[variable.as_str()].kind {
            Kind::Slice { element, .. } => {
                let mutability = used.writes.then(|| quote!(mut));
                passed.params.push(quote!(#ident: & #mutability [#element]));
                // What is written is borrowed so, for rustc to see.
                passed
                    .brought
                    .push(quote!(#present.bring(__offload, & #mutability #ident[..])?;));
                let place = passed.known.len();
                passed.known.push(quote!(#present.known()));
                passed
                    .noted
                    .push(quote!(#present.used(&__scheduled, #place, #variable)?;));
                passed.args.push(match used.writes {
                    true => quote!(#present.written(#variable)?),
                    false => quote!(#present.read()?),
                });
                let is_constant = constants.contains(variable);
                passed.chosen.push(match is_constant {
                    true => quote!(#present.chosen()),
                    false => quote!(::core::option::Option::None),
                });
                if is_constant && !used.writes {
                    passed
                        .values
                        .push(quote!(#present.by_value(&__scheduled, #place)));
                }
            }
            Kind::Scalar(ty) => {
                passed.chosen.push(quote!(::core::option::Option::None));
                passed.params.push(quote!(#ident: #ty));
                passed.known.push(match is_integer(ty) {
                    true => quote!(::kiln::directives::Known::Number(#ident as i128)),
                    false => quote!(::kiln::directives::Known::Nothing),
                });
                passed
                    .args
                    .push(quote!(::kiln::directives::macros::IntoArg::into_arg(#ident)));
            }
            // They are refused.
            Kind::Untyped | Kind::Part | Kind::Inner => {}
        }
    }
    passed
}

/// Whether a type is written as an integer.
fn is_integer(ty: &Type) -> bool {
    let integers = [
        "i8", "i16", "i32", "i64", "isize", "u8", "u16", "u32", "u64", "usize",
    ];
    match ty {
        Type::Path(held) => integers.iter().any(|name| held.path.is_ident(name)),
        _ => false,
    }
}

/// The variable that holds what of a slice is on the device.
pub(crate) fn present(name: &str) -> Ident {
    format_ident!("__present_{}", name)
}

/// Puts marks in the place of directives.
struct Marks<'c> {
    captures: &'c Captures<'c>,
    variables: &'c Variables,
    in_singular: bool,
    /// The names of arrays of the block.
    arrays: Vec<String>,
    error: Option<Error>,
}

impl<'c> Marks<'c> {
    fn new(captures: &'c Captures<'c>, variables: &'c Variables) -> Marks<'c> {
        Marks {
            captures,
            variables,
            in_singular: false,
            arrays: Vec::new(),
            error: None,
        }
    }

    fn refuse(&mut self, at: &dyn quote::ToTokens, message: &str) {
        let error = Error::new_spanned(at.to_token_stream(), message);
        self.error.get_or_insert(error);
    }

    /// The marks of a loop's directive `shared`.
    fn shared(&mut self, expr: &Expr, attributes: &[Attribute]) -> Option<TokenStream> {
        let (first, more) = attributes.split_first()?;
        if let Some(second) = more.first() {
            self.refuse(
                second,
                "one `shared` is enough: `copyin` takes several slices",
            );
        }
        if !matches!(expr, Expr::ForLoop(_)) {
            let message =
                "`shared` is for a `for` loop: what it copies is what a turn of the loop reads";
            self.refuse(first, message);
        }
        if self.in_singular {
            let message = "`shared` within `singular`, which one thread of the block executes: take one of them away";
            self.refuse(first, message);
        }
        let held: Shared = match first.parse_args() {
            Ok(held) => held,
            Err(error) => {
                self.error.get_or_insert(error);
                return None;
            }
        };
        for Staged { slice, .. } in &held.slices {
            let name = slice.to_string();
            let used = self.captures.used.get(&name);
            let used = used.filter(|_| matches!(self.variables[&name].kind, Kind::Slice { .. }));
            match used {
                None => self.refuse(slice, "no slice of this name is read in the region"),
                Some(used) if used.writes => {
                    let message = "the region writes this slice, and what is in shared memory would be the old elements: \
                                   name slices that the region only reads";
                    self.refuse(slice, message);
                }
                Some(_) => {}
            }
        }
        for slice in &held.computed {
            if !self.is_written(slice) {
                let message = "the region writes no slice of this name: a block computes elements as loops before this one do that \
                               write them";
                self.refuse(slice, message);
            }
        }
        for slice in &held.copied_out {
            if !self.is_written(slice) {
                let message = "the region writes no slice of this name: `copyout` is for those that a turn of the loop writes";
                self.refuse(slice, message);
            }
        }
        Some(held.marks())
    }

    /// Whether the region writes a slice of this name.
    fn is_written(&self, slice: &Ident) -> bool {
        let name = slice.to_string();
        let used = self.captures.used.get(&name);
        let used = used.filter(|_| matches!(self.variables[&name].kind, Kind::Slice { .. }));
        used.is_some_and(|used| used.writes)
    }

    /// Refuses running values that are no variables of the region.
    fn scan(&mut self, partition: &Partition) {
        for variable in &partition.scan {
            if self.captures.used.contains_key(&variable.to_string()) {
                let message = "a running value is a variable of the region: declare it there, before the loop";
                self.refuse(variable, message);
            }
        }
    }

    /// Refuses to reduce what is no slice that the region writes.
    fn reduction(&mut self, partition: &Partition) {
        for slice in &partition.reduction {
            if !self.is_written(slice) {
                let message = "the region writes no slice of this name: a reduction is of elements, `sums[i] += x[i]`";
                self.refuse(slice, message);
            }
        }
    }

    /// The marks of a loop's directive `loop_transform`.
    fn transform(&mut self, expr: &Expr, attributes: &[Attribute]) -> Option<TokenStream> {
        let (first, more) = attributes.split_first()?;
        if let Some(second) = more.first() {
            let message = "one `loop_transform` is enough: one has all clauses of a loop";
            self.refuse(second, message);
        }
        if !matches!(expr, Expr::ForLoop(_)) {
            self.refuse(first, "`loop_transform` is for a `for` loop");
        }
        let held: Transform = match first.parse_args() {
            Ok(held) => held,
            Err(error) => {
                self.error.get_or_insert(error);
                return None;
            }
        };
        for slice in &held.privatized {
            if !self.is_written(slice) {
                let message = "the region writes no slice of this name: iterations have elements of their own of one that they write and \
                               then read; a variable or an array of the region is declared in the loop";
                self.refuse(slice, message);
            }
        }
        Some(held.marks())
    }

    /// The statement of an expression with directives.
    fn directives(&mut self, expr: &mut Expr) -> Option<Stmt> {
        let attributes = attributes_of(expr)?;
        let found: Vec<_> = attributes
            .iter()
            .filter(|attribute| is_directive(attribute))
            .cloned()
            .collect();
        attributes.retain(|attribute| !is_directive(attribute));
        let (shared, found): (Vec<_>, Vec<_>) = found
            .into_iter()
            .partition(|attribute| attribute.path().is_ident("shared"));
        let (transforms, found): (Vec<_>, Vec<_>) = found
            .into_iter()
            .partition(|attribute| attribute.path().is_ident("loop_transform"));
        let has_marks = !shared.is_empty() || !transforms.is_empty();
        let staged = [
            self.shared(expr, &shared),
            self.transform(expr, &transforms),
        ];
        let staged = has_marks.then(|| staged.into_iter().flatten().collect());
        let [attribute] = &found[..] else {
            if let Some(second) = found.get(1) {
                self.refuse(
                    second,
                    "one directive is enough: `loop_partition` has all clauses of a loop",
                );
            }
            let staged = staged.filter(|_| found.is_empty())?;
            visit_mut::visit_expr_mut(self, expr);
            return Some(parse_quote!({ #staged #expr }));
        };
        let directive = match directive(attribute) {
            Ok(directive) => directive?,
            Err(error) => {
                self.error.get_or_insert(error);
                return None;
            }
        };
        self.marked(directive, attribute, staged, expr)
    }

    /// The statement of an expression with a directive, and the marks of what it stages.
    fn marked(
        &mut self,
        directive: Directive,
        attribute: &Attribute,
        staged: Option<TokenStream>,
        expr: &mut Expr,
    ) -> Option<Stmt> {
        match (directive, &*expr) {
            (Directive::Kernel(_), _) => {
                self.refuse(
                    attribute,
                    "a kernel region within a kernel region: take one of them away",
                );
                None
            }
            (Directive::Partition(_), _) if self.in_singular => {
                let message = "`loop_partition` within `singular`, which one thread of the block executes: take one of \
                               them away";
                self.refuse(attribute, message);
                None
            }
            (Directive::Partition(partition), Expr::ForLoop(_)) => {
                self.reduction(&partition);
                self.scan(&partition);
                let marks = partition.marks();
                visit_mut::visit_expr_mut(self, expr);
                Some(parse_quote!({ #marks #staged #expr }))
            }
            (Directive::Partition(_), _) => {
                self.refuse(attribute, "`loop_partition` is for a `for` loop");
                None
            }
            // They have been taken out of the list.
            (Directive::Shared | Directive::Transform, _) => None,
            (Directive::Singular, Expr::Block(held)) => {
                let mut block = held.block.clone();
                let around = std::mem::replace(&mut self.in_singular, true);
                self.visit_block_mut(&mut block);
                self.in_singular = around;
                Some(parse_quote!(if ::kiln::directives::marks::singular() #block))
            }
            (Directive::Singular, _) => {
                self.refuse(attribute, "`singular` is for a block: `#[singular] { .. }`");
                None
            }
        }
    }
}

/// What is said of `#[shared]` on what is no array.
const NO_ARRAY: &str = "`#[shared]` on a variable lets it be an array of the block, in shared memory: write `#[shared] let mut tile: [f32; 64] = \
                        [0.0; 64];`";

/// Whether a statement declares an array of the block.
fn is_array(statement: &Stmt) -> bool {
    matches!(statement, Stmt::Local(local) if local.attrs.iter().any(is_directive))
}

impl Marks<'_> {
    /// The statements that declare an array of the block.
    fn array(&mut self, statement: &Stmt) -> Vec<Stmt> {
        let Stmt::Local(local) = statement else {
            return Vec::new();
        };
        let is_shared = |attribute: &&Attribute| {
            attribute.path().is_ident("shared") && attribute.meta.require_path_only().is_ok()
        };
        let mut directives = local.attrs.iter().filter(|held| is_directive(held));
        if let Some(other) = directives.find(|held| !is_shared(held)) {
            self.refuse(other, NO_ARRAY);
            return Vec::new();
        }
        if self.in_singular {
            let message = "an array of the block in `singular`, which one thread of the block executes: declare it before";
            self.refuse(local, message);
        }
        let (Pat::Type(typed), Some(init)) = (&local.pat, &local.init) else {
            self.refuse(&local.pat, NO_ARRAY);
            return Vec::new();
        };
        let (Pat::Ident(name), ty @ Type::Array(_), None) =
            (&*typed.pat, &*typed.ty, &init.diverge)
        else {
            self.refuse(typed, NO_ARRAY);
            return Vec::new();
        };
        let (name, value) = (&name.ident, &init.expr);
        self.arrays.push(name.to_string());
        let declared = quote_spanned! {local.span()=> {
            let #name = shared!(#ty);
            *#name = #value;
        }};
        syn::parse2::<Block>(declared).map_or_else(|_| Vec::new(), |block| block.stmts)
    }
}

impl VisitMut for Marks<'_> {
    fn visit_block_mut(&mut self, block: &mut Block) {
        let arrays = self.arrays.len();
        let statements = std::mem::take(&mut block.stmts);
        for statement in statements {
            match is_array(&statement) {
                true => block.stmts.extend(self.array(&statement)),
                false => block.stmts.push(statement),
            }
        }
        visit_mut::visit_block_mut(self, block);
        self.arrays.truncate(arrays);
    }

    fn visit_expr_assign_mut(&mut self, held: &mut syn::ExprAssign) {
        visit_mut::visit_expr_assign_mut(self, held);
        // The variable is a reference in the kernel.
        if let Expr::Path(path) = &*held.left
            && let Some(name) = path.path.get_ident()
            && self.arrays.iter().any(|array| name == array)
        {
            let array = &held.left;
            held.left = parse_quote!(*#array);
        }
    }

    fn visit_stmt_mut(&mut self, statement: &mut Stmt) {
        if is_barrier(statement) {
            *statement = parse_quote!(::kiln::prelude::barrier(););
            return;
        }
        if is_global(statement) || crate::data::is_shape(statement) {
            self.refuse(statement, MISPLACED);
            return;
        }
        if crate::data::is_constant(statement) {
            self.refuse(statement, MISPLACED_CONSTANT);
            return;
        }
        if let Stmt::Expr(expr, _) = statement
            && let Some(marked) = self.directives(expr)
        {
            *statement = marked;
            return;
        }
        visit_mut::visit_stmt_mut(self, statement);
    }
}
