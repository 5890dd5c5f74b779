//! A kernel region as a `#[device_fn]` with marks.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, Block, Error, Expr, Result, Stmt, Type, parse_quote};

use crate::capture::{Captures, Kind, Variables};
use crate::clauses::{
    Directive, Grid, Partition, Shared, Staged, Transform, directive, is_directive,
};
use crate::host::MISPLACED;
use crate::sequential::{attributes_of, is_barrier, is_global};

/// The launch that stands in the place of a region: it uses `__offload`, what of each slice is on the device, and
/// the variables of the function.
pub(crate) fn launch(
    name: &Ident,
    grid: &Grid,
    block: &Block,
    variables: &Variables,
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
        noted,
        args,
    } = passed(&captures, variables, block.span());
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
        let __scheduled = __REGION.scheduled::<#region>(__grid, &[#(#known),*])?;
        #(#noted)*
        __offload.launch(&__scheduled, ::std::vec![#(#args),*], #nowait)?;
    }})
}

/// What a region has of the function's variables.
#[derive(Default)]
struct Passed {
    params: Vec<TokenStream>,
    /// Copies to the device.
    brought: Vec<TokenStream>,
    known: Vec<TokenStream>,
    /// What is noted of slices.
    noted: Vec<TokenStream>,
    args: Vec<TokenStream>,
}

fn passed(captures: &Captures<'_>, variables: &Variables, span: Span) -> Passed {
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
                    true => quote!(#present.written()?),
                    false => quote!(#present.read()?),
                });
            }
            Kind::Scalar(ty) => {
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
    error: Option<Error>,
}

impl<'c> Marks<'c> {
    fn new(captures: &'c Captures<'c>, variables: &'c Variables) -> Marks<'c> {
        Marks {
            captures,
            variables,
            in_singular: false,
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
        Some(held.marks())
    }

    /// Whether the region writes a slice of this name.
    fn is_written(&self, slice: &Ident) -> bool {
        let name = slice.to_string();
        let used = self.captures.used.get(&name);
        let used = used.filter(|_| matches!(self.variables[&name].kind, Kind::Slice { .. }));
        used.is_some_and(|used| used.writes)
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
        match first.parse_args::<Transform>() {
            Ok(held) => Some(held.marks()),
            Err(error) => {
                self.error.get_or_insert(error);
                None
            }
        }
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

impl VisitMut for Marks<'_> {
    fn visit_stmt_mut(&mut self, statement: &mut Stmt) {
        if is_barrier(statement) {
            *statement = parse_quote!(::kiln::prelude::barrier(););
            return;
        }
        if is_global(statement) || crate::data::is_shape(statement) {
            self.refuse(statement, MISPLACED);
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
