//! Types: which ones kernels have, and the IR's counterpart of one as it is written.

use kiln_description::{Code, Len, Op, TypeOp};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::visit_mut::VisitMut;
use syn::{Expr, Type};

use crate::body::Translator;
use crate::function::{root, root_at};
use crate::option::parts_of_type;
use crate::pool::front;
use crate::position::{before, last_of, until};
use crate::refusal::{Refusals, host_type, may_be_own};

/// Refuses what no kernel can hold, by the way it is written.
pub(crate) fn check_type(ty: &Type, refusals: &mut Refusals) {
    match ty {
        Type::Array(array) => check_type(&array.elem, refusals),
        Type::Group(group) => check_type(&group.elem, refusals),
        Type::Paren(paren) => check_type(&paren.elem, refusals),
        Type::Tuple(tuple) => tuple.elems.iter().for_each(|ty| check_type(ty, refusals)),
        Type::Reference(reference) => match &*reference.elem {
            Type::Slice(slice) => check_type(&slice.elem, refusals),
            Type::Reference(inner) => refusals.refuse(
                inner,
                "kernels have no references to references; take the inner one",
            ),
            ty => check_type(ty, refusals),
        },
        Type::Path(path) => check_path(path, refusals),
        Type::Slice(_) => refusals.refuse(
            ty,
            "a slice has no size; take a reference to it, `&[T]` or `&mut [T]`",
        ),
        Type::ImplTrait(of) => {
            let message = match of.bounds.iter().any(crate::closure::is_closure_bound) {
                true => "name the type parameter: `fn f<F: Fn(f32) -> f32>(f: F)`",
                false => "name the type parameter: `fn f<T: Float>(x: T)`",
            };
            refusals.refuse(ty, message);
        }
        Type::TraitObject(of) if of.bounds.iter().any(crate::closure::is_closure_bound) => refusals
            .refuse(
                ty,
                "closures of kernels are inlined; take a type parameter, `F: Fn(f32) -> f32`",
            ),
        Type::TraitObject(_) => refusals.refuse(
            ty,
            "kernels have no trait objects; take a type parameter, `T: Float`",
        ),
        Type::BareFn(_) => refusals.refuse(
            ty,
            "kernels have no function pointers; call the `#[device_fn]` by its name",
        ),
        Type::Ptr(_) => refusals.refuse(
            ty,
            "kernels have references and slices, not raw pointers; take `&[T]` or `&mut [T]`",
        ),
        Type::Never(_) => refusals.refuse(ty, "`!` is the type of no value; leave it out"),
        Type::Infer(_) => refusals.refuse(ty, "write the type here"),
        _ => refusals.refuse(ty, "kernels do not have this type"),
    }
}

fn check_path(path: &syn::TypePath, refusals: &mut Refusals) {
    if path.qself.is_some() {
        refusals.refuse(
            path,
            "write the type itself: kernels have no associated types",
        );
        return;
    }
    let Some(last) = path.path.segments.last() else {
        return;
    };
    let name = last.ident.to_string();
    let is_own = may_be_own(&name) && last.arguments.is_none();
    if let Some(message) = host_type(&name).filter(|_| !is_own) {
        refusals.refuse(path, message);
    } else if name == "Self" {
        refusals.refuse(
            path,
            "name the type; `Self` is for `impl` blocks with `#[device_fn]`",
        );
    }
    if let syn::PathArguments::AngleBracketed(args) = &last.arguments {
        for arg in &args.args {
            if let syn::GenericArgument::Type(ty) = arg {
                check_type(ty, refusals);
            }
        }
    }
}

/// Whether a type has parts that are left to rustc.
pub(crate) fn is_open(ty: &Type) -> bool {
    struct Open(bool);
    impl Visit<'_> for Open {
        fn visit_type_infer(&mut self, _: &syn::TypeInfer) {
            self.0 = true;
        }
        fn visit_expr_infer(&mut self, _: &syn::ExprInfer) {
            self.0 = true;
        }
    }
    let mut open = Open(false);
    open.visit_type(ty);
    open.0
}

/// Whether there are references in a type as it is written.
pub(crate) fn has_references(ty: &Type) -> bool {
    match ty {
        Type::Reference(_) => true,
        Type::Array(array) => has_references(&array.elem),
        Type::Group(group) => has_references(&group.elem),
        Type::Paren(paren) => has_references(&paren.elem),
        Type::Tuple(tuple) => tuple.elems.iter().any(has_references),
        Type::Path(path) => {
            parts_of_type(path).is_some_and(|parts| parts.into_iter().any(has_references))
        }
        _ => false,
    }
}

/// Fills the parts that are left to rustc with anything: a value that becomes one of the type keeps its
/// own there.
struct Closed;

impl VisitMut for Closed {
    fn visit_type_mut(&mut self, ty: &mut Type) {
        match ty {
            Type::Infer(_) => *ty = syn::parse_quote!(i32),
            _ => syn::visit_mut::visit_type_mut(self, ty),
        }
    }
    fn visit_type_array_mut(&mut self, array: &mut syn::TypeArray) {
        self.visit_type_mut(&mut array.elem);
        if matches!(array.len, Expr::Infer(_)) {
            array.len = syn::parse_quote!(1);
        }
    }
}

/// An item that a type has by one of Kiln's traits. It is as long as the type is, for what rustc says of it.
pub(crate) fn item_of(ty: &Type, kiln_trait: &TokenStream, item: &str) -> TokenStream {
    let (root, before) = (root(), before(ty.span()));
    let item = Ident::new(item, before);
    until(
        last_of(ty),
        quote_spanned!(before=> <#ty as #root::#kiln_trait>::#item),
    )
}

/// A call of [`item_of`], which is as long as the type is, too.
pub(crate) fn call_of(
    ty: &Type,
    kiln_trait: &TokenStream,
    item: &str,
    arguments: &TokenStream,
) -> TokenStream {
    let (function, before) = (item_of(ty, kiln_trait, item), before(ty.span()));
    until(last_of(ty), quote_spanned!(before=> #function(#arguments)))
}

impl Translator<'_> {
    /// A value that is bound to a pattern with a type: its references become that type's.
    pub(crate) fn coerced(&mut self, value: Code, ty: &Type, span: Span) -> Code {
        if !has_references(ty) {
            return value;
        }
        let mut ty = ty.clone();
        Closed.visit_type_mut(&mut ty);
        let ty = self.ty(&ty);
        self.op(Op::Coerce, span).code(&value).code(&ty)
    }

    /// A type of the IR.
    pub(crate) fn ty(&mut self, ty: &Type) -> Code {
        match ty {
            Type::Group(group) => self.ty(&group.elem),
            Type::Paren(paren) => self.ty(&paren.elem),
            Type::Array(array) => {
                let (element, len) = (self.ty(&array.elem), self.len(&array.len));
                Code::ty(TypeOp::Array).code(&element).len(len)
            }
            Type::Tuple(tuple) if tuple.elems.is_empty() => Code::ty(TypeOp::Unit),
            Type::Tuple(tuple) => {
                let types: Vec<_> = tuple.elems.iter().map(|ty| self.ty(ty)).collect();
                Code::ty(TypeOp::Tuple).list(&types)
            }
            Type::Reference(reference) => {
                let mutable = reference.mutability.is_some();
                let (target, op) = match &*reference.elem {
                    Type::Slice(slice) => (self.ty(&slice.elem), TypeOp::Slice),
                    ty => (self.ty(ty), TypeOp::Reference),
                };
                Code::ty(op).flag(mutable).code(&target)
            }
            Type::Path(path) => {
                check_path(path, self.refusals);
                match parts_of_type(path).as_deref() {
                    Some([value, error]) => {
                        let (value, error) = (self.ty(value), self.ty(error));
                        Code::ty(TypeOp::Result).code(&value).code(&error)
                    }
                    Some([value]) => Code::ty(TypeOp::Option).code(&self.ty(value)),
                    _ => self.host_type(path),
                }
            }
            _ => {
                check_type(ty, self.refusals);
                Code::ty(TypeOp::Unit)
            }
        }
    }

    /// A type of the host.
    pub(crate) fn host_type(&mut self, ty: &dyn ToTokens) -> Code {
        let root = root();
        let entry = match self.declared.contains(&ty.to_token_stream().to_string()) {
            true => quote!({ use #root::Undeclared as _; #root::Declared::<#ty>::ty() }),
            false => quote!(#root::Pooled::ty::<#ty>()),
        };
        Code::ty(TypeOp::Pooled).number(self.pool.shared_entry(&entry))
    }

    /// The length of an array: a const parameter, or a constant of the host.
    pub(crate) fn len(&mut self, len: &Expr) -> Len {
        if let Expr::Path(path) = len
            && let Some(name) = path.path.get_ident()
            && let Some((number, _)) = self.const_param(name)
        {
            return Len::Param(number);
        }
        let len = quote_spanned!(before(len.span())=> (#len) as u64);
        Len::Pooled(self.constant_entry(&len))
    }

    /// A constant of the host, or a literal.
    pub(crate) fn constant_entry(&mut self, value: &dyn ToTokens) -> u32 {
        let value = value.to_token_stream();
        let span = value.span();
        let (root, front) = (root_at(span), front());
        let entry = quote_spanned!(before(span)=> #root::Named::pooled(#value, #front));
        self.pool.entry(&entry)
    }

    /// A constant that nothing refers to behind the end of the function.
    pub(crate) fn constant_alone(&mut self, value: &dyn ToTokens) -> u32 {
        let value = value.to_token_stream();
        let span = value.span();
        let (root, front) = (root_at(span), front());
        let entry = quote_spanned!(before(span)=> #root::Named::pooled_alone(#value, #front));
        self.pool.entry(&entry)
    }
}
