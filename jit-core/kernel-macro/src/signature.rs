//! The signature of a kernel or device function: parameters, generics, attribute.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{
    FnArg, GenericParam, Generics, ItemFn, Pat, ReturnType, Type, TypeParamBound, parse_quote,
};

use crate::arguments::{Bounds, Said};
use crate::attributes::Inline;
use crate::dispatch::{Dispatched, is_for_host, user_traits, with_functions};
use crate::function::{Kind, root};
use crate::option::parts_of_type;
use crate::refusal::{NAME_OF_KERNEL, Refusals};
use crate::scan::Variables;
use crate::types::check_type;

/// A parameter of the function.
pub(crate) struct Param {
    /// The parameter's name and pattern: `x`, `mut x`, `_`, or a tuple or struct to take apart.
    pub(crate) pattern: Pat,
    /// The parameter's type.
    pub(crate) ty: Type,
    /// Whether the parameter is a closure.
    pub(crate) is_closure: bool,
}

/// The largest block and how many of them at once.
pub(crate) struct LaunchBounds {
    pub(crate) max_threads: u32,
    pub(crate) min_blocks: u32,
}

/// What a type parameter can do; the numbers are those of `Op::DeclareType`.
#[derive(Copy, Clone)]
pub(crate) enum TypeBound {
    Any = 0,
    Num = 1,
    Int = 2,
    Float = 3,
}

/// A signature.
pub(crate) struct Signature {
    /// The function's name.
    pub(crate) name: Ident,
    /// The function's generics, with the bound `KernelType` replaced by what it means in a kernel.
    pub(crate) generics: Generics,
    /// Type parameters, with their bounds.
    pub(crate) types: Vec<(Ident, TypeBound)>,
    /// Const parameters that are arguments of types, for each value of which the function is described.
    pub(crate) fixed: Vec<Ident>,
    /// Type parameters with traits of the user's as bounds, for each type of which the function is described.
    pub(crate) dispatched: Vec<Dispatched>,
    /// Type parameters that are closures, with the type of a function that one could be.
    pub(crate) closures: Vec<(Ident, TokenStream)>,
    /// Const parameters and their types.
    pub(crate) consts: Vec<(Ident, Type)>,
    /// Parameters.
    pub(crate) params: Vec<Param>,
    /// The result type, if there is one.
    pub(crate) result: Option<Type>,
    /// Whether the function is called by its name, as methods are not.
    pub(crate) is_free: bool,
    /// The launch bounds of a kernel.
    pub(crate) bounds: Option<LaunchBounds>,
    /// What an index out of bounds does in a kernel.
    pub(crate) indices: Option<Bounds>,
    /// What floats may do, as bits.
    pub(crate) fast: u32,
    /// How many registers a thread of a kernel may have; 0 if nothing is said.
    pub(crate) max_registers: u32,
    /// How loops of a kernel are unrolled, as the description has it; 0 if nothing is said.
    pub(crate) unroll: u32,
    /// Up to which cost functions are inlined in a kernel.
    pub(crate) inline_threshold: Option<u32>,
    /// Attributes for hooks.
    pub(crate) attributes: Vec<(Ident, Said)>,
    /// How calls of a device function are to be inlined.
    pub(crate) inline: Inline,
}

impl Signature {
    pub(crate) fn new(
        kind: Kind,
        attribute: TokenStream,
        item: &ItemFn,
        refusals: &mut Refusals,
    ) -> Signature {
        check_modifiers(kind, item, refusals);
        let arguments = crate::arguments::read(kind, attribute, refusals);
        let mut signature = Signature {
            name: item.sig.ident.clone(),
            generics: item.sig.generics.clone(),
            types: Vec::new(),
            fixed: crate::fixed::consts(item),
            dispatched: Vec::new(),
            closures: Vec::new(),
            consts: Vec::new(),
            params: Vec::new(),
            result: result(kind, &item.sig.output, refusals),
            is_free: true,
            bounds: arguments.bounds,
            indices: arguments.indices,
            fast: arguments.fast,
            max_registers: arguments.max_registers,
            unroll: arguments.unroll,
            inline_threshold: arguments.inline_threshold,
            attributes: arguments.attributes,
            inline: crate::attributes::read(kind, &item.attrs, refusals),
        };
        signature.read_closures(kind, refusals);
        signature.read_generics(refusals);
        signature.check_dispatched(refusals);
        for input in &item.sig.inputs {
            signature.read_param(kind, input, refusals);
        }
        signature.check_fixed(kind, refusals);
        signature
    }

    /// The names of its type parameters.
    pub(crate) fn type_names(&self) -> Vec<Ident> {
        self.types.iter().map(|(name, _)| name.clone()).collect()
    }

    /// The generics of an `impl` block, read as those of a function are.
    pub(crate) fn of_impl(generics: &Generics, refusals: &mut Refusals) -> Signature {
        let mut signature = Signature {
            name: Ident::new("of_impl", proc_macro2::Span::call_site()),
            generics: generics.clone(),
            types: Vec::new(),
            fixed: Vec::new(),
            dispatched: Vec::new(),
            closures: Vec::new(),
            consts: Vec::new(),
            params: Vec::new(),
            result: None,
            is_free: false,
            bounds: None,
            indices: None,
            fast: 0,
            max_registers: 0,
            unroll: 0,
            inline_threshold: None,
            attributes: Vec::new(),
            inline: Inline::Auto,
        };
        signature.read_generics(refusals);
        signature
    }

    /// Whether the function takes closures, so that it is described in place of its calls.
    pub(crate) fn is_inlined(&self) -> bool {
        !self.closures.is_empty()
    }

    fn read_closures(&mut self, kind: Kind, refusals: &mut Refusals) {
        self.closures = crate::closure::closure_params(&self.generics);
        if let (Kind::Kernel, Some((name, _))) = (kind, self.closures.first()) {
            refusals.refuse(
                name,
                "a kernel takes values and slices; closures are made in kernels and passed to \
                 `#[device_fn]` functions",
            );
        }
        if self.is_inlined() && self.inline == Inline::Never {
            refusals.refuse(
                &self.name,
                "a device function that takes closures is a part of each function that calls it; leave \
                 `#[inline(never)]` out",
            );
        }
        if let (true, Some((name, _))) = (self.is_inlined(), self.attributes.first()) {
            refusals.refuse(
                name,
                "a device function that takes closures is a part of each function that calls it; give these \
                 the attribute",
            );
        }
        if let (true, Some(name)) = (self.is_inlined(), self.fixed.first()) {
            refusals.refuse(
                name,
                "a device function that takes closures has no number that is an argument of a type, `Stack<T, N>`; take the \
                 struct's array, `[T; N]`, or a slice of it",
            );
        }
    }

    /// Whether a type parameter is a closure.
    pub(crate) fn is_closure(&self, name: &Ident) -> bool {
        self.closures.iter().any(|(closure, _)| closure == name)
    }

    /// What a function that is described for each type cannot be besides.
    fn check_dispatched(&self, refusals: &mut Refusals) {
        if self.dispatched.is_empty() {
            return;
        }
        if let Some((closure, _)) = self.closures.first() {
            refusals.refuse(
                closure,
                "a device function with a trait of yours as a bound takes no closures; take a type that has the trait",
            );
        }
    }

    /// The numbers that calls cannot tell: rustc finds them by the types of a function's parameters and result.
    fn check_fixed(&self, kind: Kind, refusals: &mut Refusals) {
        let types = self
            .params
            .iter()
            .map(|param| &param.ty)
            .chain(&self.result);
        let told: TokenStream = types.map(ToTokens::to_token_stream).collect();
        let is_unknown = |name: &&Ident| !crate::fixed::names(told.clone(), name);
        if let (Kind::Device, Some(name)) = (kind, self.fixed.iter().find(is_unknown)) {
            refusals.refuse(
                name,
                "a number that is an argument of a type in a device function is told by the type of a parameter or of the \
                 result; take a value whose type has it",
            );
        }
    }

    /// The places of the type parameters that stand for themselves, among all type parameters.
    pub(crate) fn plain_types(&self) -> Vec<usize> {
        let names = self.generics.type_params().enumerate();
        let plain = names.filter(|(_, param)| !self.is_dispatched(&param.ident));
        plain.map(|(number, _)| number).collect()
    }

    /// The places of the const parameters that the IR has, among all of them.
    pub(crate) fn plain_consts(&self) -> Vec<usize> {
        let names = self.generics.const_params().enumerate();
        let plain = names.filter(|(_, param)| !self.fixed.contains(&param.ident));
        plain.map(|(number, _)| number).collect()
    }

    /// Has the function described for each value of these const parameters.
    pub(crate) fn fix(&mut self, names: impl Iterator<Item = Ident>) {
        for name in names {
            if !self.fixed.contains(&name) {
                self.fixed.push(name);
            }
        }
        self.consts.retain(|(name, _)| !self.fixed.contains(name));
    }

    /// Whether the function is described for each type or number that some of its parameters stand for.
    pub(crate) fn is_of_several(&self) -> bool {
        !self.dispatched.is_empty() || !self.fixed.is_empty()
    }

    /// Whether a type parameter has traits of the user's as bounds.
    pub(crate) fn is_dispatched(&self, name: &Ident) -> bool {
        self.dispatched.iter().any(|of| of.name == *name)
    }

    /// The generics of the function that describes this one.
    pub(crate) fn described_generics(&self) -> Generics {
        with_functions(&self.generics, &self.dispatched)
    }

    /// What the `where` of a function says of its type parameters, by their names.
    fn read_clause(
        &mut self,
        refusals: &mut Refusals,
    ) -> std::collections::HashMap<Ident, (Option<TypeBound>, Vec<syn::Path>)> {
        let mut bounds_of = std::collections::HashMap::new();
        if let Some(clause) = &mut self.generics.where_clause {
            for predicate in &mut clause.predicates {
                let syn::WherePredicate::Type(predicate) = predicate else {
                    continue;
                };
                let name = match &predicate.bounded_ty {
                    Type::Path(path) if path.qself.is_none() => path.path.get_ident().cloned(),
                    _ => None,
                };
                let Some(name) = name else {
                    refusals.refuse(
                        &predicate.bounded_ty,
                        "a `where` of a kernel is about a type parameter; bound that by `Num`, \
                         `Int`, `Float` or `KernelType`",
                    );
                    continue;
                };
                if self.closures.iter().any(|(closure, _)| *closure == name) {
                    continue;
                }
                let traits = user_traits(&predicate.bounds);
                let bound = read_bounds(&mut predicate.bounds, refusals);
                bounds_of.insert(name, (bound, traits));
            }
        }
        bounds_of
    }

    fn read_generics(&mut self, refusals: &mut Refusals) {
        let mut bounds_of = self.read_clause(refusals);
        for param in &mut self.generics.params {
            match param {
                GenericParam::Lifetime(_) => {}
                GenericParam::Const(param) => {
                    if !self.fixed.contains(&param.ident) {
                        self.consts.push((param.ident.clone(), param.ty.clone()));
                    }
                    param.default = None;
                }
                GenericParam::Type(param)
                    if self.closures.iter().any(|(name, _)| *name == param.ident) => {}
                GenericParam::Type(param) => {
                    if let Some(default) = &param.default {
                        refusals.refuse(default, "a type parameter of a kernel has no default; the arguments of the launch decide");
                    }
                    let mut traits = user_traits(&param.bounds);
                    let own = read_bounds(&mut param.bounds, refusals);
                    let (other, more) = bounds_of.remove(&param.ident).unwrap_or_default();
                    traits.extend(more);
                    if !traits.is_empty() {
                        let name = param.ident.clone();
                        self.dispatched.push(Dispatched { name, traits });
                        continue;
                    }
                    match own.or(other) {
                        Some(bound) => self.types.push((param.ident.clone(), bound)),
                        None => refusals.refuse(
                            &param.ident,
                            "a type parameter of a kernel needs a bound that says what it can do: \
                             `Num`, `Int`, `Float`, or `KernelType` for a value that is only moved",
                        ),
                    }
                }
            }
        }
    }

    fn read_param(&mut self, kind: Kind, input: &FnArg, refusals: &mut Refusals) {
        let FnArg::Typed(param) = input else {
            let message = match kind {
                Kind::Kernel => {
                    "a kernel is a free function; take the value as an ordinary parameter"
                }
                Kind::Device => "put `#[device_fn]` on the `impl` block that this method is in",
            };
            refusals.refuse(input, message);
            return;
        };
        let mut variables = Variables::default();
        variables.visit_pat(&param.pat);
        let same = variables
            .names
            .iter()
            .find(|variable| **variable == self.name);
        if let (Kind::Kernel, Some(variable)) = (kind, same) {
            refusals.refuse(variable, NAME_OF_KERNEL);
        }
        let is_closure = crate::closure::named(&param.ty).is_some_and(|name| self.is_closure(name));
        if !is_closure {
            check_type(&param.ty, refusals);
        }
        if let (Kind::Kernel, Type::Reference(reference)) = (kind, &*param.ty)
            && !matches!(*reference.elem, Type::Slice(_))
        {
            refusals.refuse(
                &param.ty,
                "a kernel takes a slice, `&[T]` or `&mut [T]`, or a value; take one element as a \
                 slice of length 1",
            );
        }
        if let (Kind::Kernel, Type::Tuple(_)) = (kind, &*param.ty) {
            refusals.refuse(
                &param.ty,
                "a kernel takes no tuple, as tuples have no layout; take its parts one by one, or a \
                 `#[derive(KernelType)]` struct",
            );
        }
        if let (Kind::Kernel, Type::Path(path)) = (kind, &*param.ty)
            && parts_of_type(path).is_some()
        {
            refusals.refuse(
                &param.ty,
                "a kernel takes no `Option` and no `Result`, which have no layout; take a `bool` beside the value, or a \
                 slice that may be empty",
            );
        }
        self.params.push(Param {
            pattern: (*param.pat).clone(),
            ty: (*param.ty).clone(),
            is_closure,
        });
    }

    /// The generic arguments with which the describing function is called: each type parameter
    /// stands for itself, const parameters are anything.
    pub(crate) fn instance(&self) -> TokenStream {
        let root = root();
        let mut number = 0usize;
        let args = self.generics.params.iter().filter_map(|param| match param {
            GenericParam::Lifetime(_) => None,
            GenericParam::Type(param) if self.is_closure(&param.ident) => None,
            GenericParam::Type(param) if self.is_dispatched(&param.ident) => {
                let name = &param.ident;
                Some(quote!(#name))
            }
            GenericParam::Type(_) => {
                let arg = quote!(#root::Param<#number>);
                number += 1;
                Some(arg)
            }
            GenericParam::Const(param) if self.fixed.contains(&param.ident) => {
                Some(param.ident.to_token_stream())
            }
            GenericParam::Const(param) => {
                let ty = &param.ty;
                let is_bool = matches!(ty, Type::Path(path) if path.path.is_ident("bool"));
                Some(if is_bool { quote!(false) } else { quote!(1) })
            }
        });
        let args: Vec<TokenStream> = args.collect();
        match args.is_empty() {
            true => quote!(),
            false => quote!(::<#(#args),*>),
        }
    }
}

/// The bound of the IR that bounds mean, and `KernelType` replaced.
fn read_bounds(
    bounds: &mut syn::punctuated::Punctuated<TypeParamBound, syn::Token![+]>,
    refusals: &mut Refusals,
) -> Option<TypeBound> {
    let mut found = None;
    let is_number = bounds.iter().any(|bound| {
        let name = match bound {
            TypeParamBound::Trait(bound) => bound.path.segments.last().map(|s| &s.ident),
            _ => None,
        };
        name.is_some_and(|name| ["Num", "Int", "Float"].iter().any(|number| name == number))
    });
    let traits: Vec<TokenStream> = (user_traits(&*bounds).iter())
        .map(ToTokens::to_token_stream)
        .collect();
    for bound in bounds.iter_mut() {
        let name = match &*bound {
            TypeParamBound::Trait(bound) => bound.path.segments.last().map(|s| s.ident.to_string()),
            TypeParamBound::Lifetime(_) => continue,
            _ => None,
        };
        match name.as_deref() {
            Some("Copy" | "Sized" | "Clone" | "Send" | "Sync") => {}
            // What numbers have anyway.
            Some("PartialEq" | "PartialOrd" | "Default" | "Debug" | "Display") if is_number => {}
            Some(name) if !traits.is_empty() && is_for_host(name) => {}
            Some(_) if matches!(bound, TypeParamBound::Trait(of) if is_among(&of.path, &traits)) => {}
            Some("Num") => found = found.or(Some(TypeBound::Num)),
            Some("Int") => found = Some(TypeBound::Int),
            Some("Float") => found = Some(TypeBound::Float),
            Some("KernelType" | "DeviceType") => {
                found = found.or(Some(TypeBound::Any));
                let (root, span) = (root(), bound.span());
                *bound = parse_quote!(#root::DeviceType);
                if let TypeParamBound::Trait(bound) = bound
                    && let Some(last) = bound.path.segments.last_mut()
                {
                    last.ident.set_span(span);
                }
            }
            _ => refusals.refuse(
                bound,
                "type parameters of kernels are bounded by `Num`, `Int`, `Float`, `KernelType` or, in device functions, a trait \
                 of yours; this one means nothing on a device",
            ),
        }
    }
    found
}

/// Whether a path is one of these.
fn is_among(path: &syn::Path, paths: &[TokenStream]) -> bool {
    let text = path.to_token_stream().to_string();
    paths.iter().any(|other| other.to_string() == text)
}

fn check_modifiers(kind: Kind, item: &ItemFn, refusals: &mut Refusals) {
    let sig = &item.sig;
    if let Some(token) = &sig.asyncness {
        refusals.refuse(
            token,
            "a kernel is not `async`; launches are: `jit.launch` returns before the kernel ends",
        );
    }
    if let Some(token) = &sig.unsafety {
        refusals.refuse(
            token,
            "kernels are safe; for indexing without checks write `#[kernel(unsafe(unchecked))]`",
        );
    }
    if let Some(abi) = &sig.abi {
        refusals.refuse(
            abi,
            "kernels and device functions have no ABI of their own; leave `extern` out",
        );
    }
    if let Some(token) = &sig.variadic {
        refusals.refuse(
            token,
            "a kernel has as many parameters as it names; take a slice",
        );
    }
    if let (Some(token), Kind::Kernel) = (&sig.constness, kind) {
        refusals.refuse(token, "a kernel is not `const`; a `#[device_fn]` may be");
    }
}

fn result(kind: Kind, output: &ReturnType, refusals: &mut Refusals) -> Option<Type> {
    let ReturnType::Type(_, ty) = output else {
        return None;
    };
    match &**ty {
        Type::Tuple(tuple) if tuple.elems.is_empty() => return None,
        _ if kind == Kind::Kernel => {
            refusals.refuse(
                ty,
                "a kernel returns nothing; write its results to a `&mut [T]`",
            );
        }
        Type::Never(_) => refusals.refuse(ty, "a device function ends; return nothing"),
        ty => check_type(ty, refusals),
    }
    Some((**ty).clone())
}
