//! Lifetimes that a result leaves out, by Rust's rules of elision (Rust reference, "Lifetime elision").
//!
//! The checked copy of a function is a closure, for which there are no such rules: a result borrows for a time that has a
//! name there.

use syn::visit_mut::VisitMut;
use syn::{
    FnArg, Generics, Lifetime, LifetimeParam, ReturnType, Signature, Type, TypeReference,
    WherePredicate, parse_quote,
};

/// The name that is given.
const NAME: &str = "'elided";

/// Gives the lifetimes that a function leaves out in its result the name of those of the parameter that it borrows from. If
/// no rule tells that parameter, rustc says so of the function itself.
pub(crate) fn name_elided(sig: &mut Signature) {
    let ReturnType::Type(_, output) = &mut sig.output else {
        return;
    };
    let mut count = Lifetimes::default();
    count.visit_type_mut(&mut output.clone());
    if count.elided == 0 {
        return;
    }
    let own = output.as_ref();
    let name = Lifetime::new(NAME, syn::spanned::Spanned::span(own));
    let Some(found) = source(sig, &name) else {
        return;
    };
    if found == name {
        (sig.generics.params).insert(0, LifetimeParam::new(name).into());
    }
    if let ReturnType::Type(_, output) = &mut sig.output {
        Lifetimes::naming(&found).visit_type_mut(output);
    }
}

/// Says that the other lifetimes last as long as that of a result which has none of its own: of what a parameter refers to
/// rustc knows that, but not in a closure.
pub(crate) fn outlive_result(generics: &mut Generics) {
    let is_named = |lifetime: &Lifetime| lifetime.to_string() == NAME;
    let (named, others): (Vec<Lifetime>, Vec<Lifetime>) =
        (generics.lifetimes().map(|param| param.lifetime.clone())).partition(is_named);
    for name in named {
        let bounds = (others.iter()).map(|other| parse_quote!(#other: #name));
        generics
            .make_where_clause()
            .predicates
            .extend(bounds.collect::<Vec<WherePredicate>>());
    }
}

/// The lifetime that the result has: that of `self`, or the only one of the parameters. One without a name gets this one.
fn source(sig: &mut Signature, name: &Lifetime) -> Option<Lifetime> {
    let of_receiver = sig.inputs.first_mut().and_then(|first| match first {
        FnArg::Receiver(receiver) if receiver.reference.is_some() => Some(receiver),
        _ => None,
    });
    if let Some(receiver) = of_receiver {
        let Type::Reference(of) = &mut *receiver.ty else {
            return None;
        };
        let lifetime = of.lifetime.get_or_insert_with(|| name.clone()).clone();
        if let Some((_, of)) = &mut receiver.reference {
            *of = Some(lifetime.clone());
        }
        return Some(lifetime);
    }
    let mut all = Lifetimes::default();
    for input in &sig.inputs {
        if let FnArg::Typed(param) = input {
            all.visit_type_mut(&mut param.ty.clone());
        }
    }
    match (all.elided, all.named.as_slice()) {
        (0, [only]) => Some(only.clone()),
        (1, []) => {
            for input in &mut sig.inputs {
                if let FnArg::Typed(param) = input {
                    Lifetimes::naming(name).visit_type_mut(&mut param.ty);
                }
            }
            Some(name.clone())
        }
        _ => None,
    }
}

/// Counts the lifetimes of types, or names those that are left out.
#[derive(Default)]
struct Lifetimes {
    name: Option<Lifetime>,
    elided: usize,
    named: Vec<Lifetime>,
}

impl Lifetimes {
    fn naming(name: &Lifetime) -> Lifetimes {
        Lifetimes {
            name: Some(name.clone()),
            ..Lifetimes::default()
        }
    }

    fn seen(&mut self, lifetime: &mut Lifetime) {
        match (lifetime.ident == "_", &self.name) {
            (true, Some(name)) => *lifetime = name.clone(),
            (true, None) => self.elided += 1,
            (false, _) => self.named.push(lifetime.clone()),
        }
    }
}

impl VisitMut for Lifetimes {
    fn visit_type_reference_mut(&mut self, reference: &mut TypeReference) {
        match (&mut reference.lifetime, &self.name) {
            (Some(lifetime), _) => self.seen(lifetime),
            (lifetime @ None, Some(name)) => *lifetime = Some(name.clone()),
            (None, None) => self.elided += 1,
        }
        self.visit_type_mut(&mut reference.elem);
    }

    fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
        self.seen(lifetime);
    }

    /// Closures have lifetimes of their own.
    fn visit_type_bare_fn_mut(&mut self, _: &mut syn::TypeBareFn) {}
}
