//! `#[derive(KernelView)]`: a struct with slices as a type of kernels, and its twin on the host.
//!
//! Of `struct Tensor<'a> { data: &'a [f32], rows: u32 }` it writes `TensorArgs<'a>`, with a `&'a Part<f32>` and a
//! `u32`, and how this becomes arguments, a field each. What lies where in memory is nobody's business: the struct
//! is put together in the kernel.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{
    Data, DeriveInput, Field, Fields, GenericArgument, GenericParam, Generics, Lifetime, Type,
    TypeReference,
};

use crate::body::plain_name;
use crate::derive::bounded;
use crate::function::root;
use crate::launch::{value_type, with_width};
use crate::position::{before, last_of, until};
use crate::refusal::Refusals;
use crate::types::{call_of, check_type, item_of};

/// What to say about a struct whose fields have no names.
const NAMES: &str = "name the fields, `struct Tensor<'a> { data: &'a [f32], rows: u32 }`: each is an argument of its own";

/// What to say about a view that borrows nothing.
const NO_LIFETIME: &str = "a view has slices, and so the lifetime of what they borrow: `struct Tensor<'a> { data: &'a [f32] }`; \
     write `#[derive(KernelType)]` and `#[repr(C)]` on a struct without";

/// What to say about a field that is what the host has.
const OF_THE_HOST: &str = "a view is what the kernel sees: write a slice, `&'a [T]` or `&'a mut [T]`, for which the host \
     passes the buffer";

/// Expands the derive on an item.
pub(crate) fn expand(item: TokenStream) -> TokenStream {
    let input: DeriveInput = match syn::parse2(item) {
        Ok(input) => input,
        Err(error) => return error.to_compile_error(),
    };
    let mut refusals = Refusals::default();
    let view = View::read(&input, &mut refusals);
    match view {
        Some(view) if refusals.is_empty() => view.items(),
        _ => refusals.into_tokens(),
    }
}

/// The first lifetime in a type as it is written; views have one.
pub(crate) fn first_lifetime(ty: &Type) -> Option<Lifetime> {
    struct First(Option<Lifetime>);
    impl Visit<'_> for First {
        fn visit_lifetime(&mut self, lifetime: &Lifetime) {
            self.0.get_or_insert_with(|| lifetime.clone());
        }
    }
    let mut first = First(None);
    first.visit_type(ty);
    first.0
}

/// Whether a view is in a type as it is written: a path with a lifetime.
pub(crate) fn borrows_in_path(ty: &Type) -> bool {
    struct Found(bool);
    impl Visit<'_> for Found {
        fn visit_generic_argument(&mut self, argument: &GenericArgument) {
            self.0 |= matches!(argument, GenericArgument::Lifetime(_));
            syn::visit::visit_generic_argument(self, argument);
        }
    }
    let mut found = Found(false);
    found.visit_type(ty);
    found.0
}

/// What a field is.
enum Part<'a> {
    /// A slice: its elements, and the reference.
    Slice(&'a Type, &'a TypeReference),
    /// A field that is a view itself.
    View(&'a Type),
    /// A value.
    Value(&'a Type),
}

struct View<'a> {
    input: &'a DeriveInput,
    lifetime: &'a Lifetime,
    fields: Vec<(&'a Field, &'a Ident, Part<'a>)>,
}

impl<'a> View<'a> {
    fn read(input: &'a DeriveInput, refusals: &mut Refusals) -> Option<View<'a>> {
        let lifetime = lifetime(input, refusals);
        check_parameters(&input.generics, refusals);
        let fields = match &input.data {
            Data::Struct(data) => &data.fields,
            Data::Enum(data) => {
                refusals.refuse(
                    &data.enum_token,
                    "a view is a struct: kernels have no enums with fields",
                );
                return None;
            }
            Data::Union(data) => {
                refusals.refuse(
                    &data.union_token,
                    "a view is a struct: a union does not say what it holds",
                );
                return None;
            }
        };
        if let Fields::Unnamed(fields) = fields {
            refusals.refuse(fields, NAMES);
        }
        let named = fields.iter().filter_map(|field| {
            let part = part(&field.ty, refusals);
            Some((field, field.ident.as_ref()?, part?))
        });
        let fields = named.collect();
        Some(View {
            input,
            lifetime: lifetime?,
            fields,
        })
    }

    fn items(&self) -> TokenStream {
        let (twin, value, view) = (self.twin(), self.kernel_value(), self.kernel_view());
        quote!(#twin #value #view)
    }

    fn twin_name(&self) -> Ident {
        let name = &self.input.ident;
        format_ident!("{name}Args", span = before(name.span()))
    }

    /// The struct that the host passes.
    fn twin(&self) -> TokenStream {
        let (root, vis, twin) = (root(), &self.input.vis, self.twin_name());
        let name = plain_name(&self.input.ident);
        let generics = bounded(self.input, &quote!(#root::KernelType));
        let (parameters, clause) = (&generics.params, &generics.where_clause);
        let doc = format!(
            " What a kernel is passed for a [`{name}`]: a buffer for each slice, all else as it is."
        );
        let fields = self.fields.iter().map(|(field, member, part)| {
            let (vis, ty) = (&field.vis, self.host_type(part));
            let doc = format!(" What the kernel has as `{}`.", plain_name(member));
            quote!(#[doc = #doc] #vis #member: #ty)
        });
        quote! {
            #[doc = #doc]
            #[allow(dead_code, reason = "a kernel of the builder is also passed the fields one by one")]
            #vis struct #twin<#parameters> #clause { #(#fields),* }
        }
    }

    /// What the host passes for a field.
    fn host_type(&self, part: &Part<'_>) -> TokenStream {
        let (root, lifetime) = (root(), self.lifetime);
        match part {
            Part::Slice(element, reference) => {
                let (borrowed, mutability) = (&reference.lifetime, &reference.mutability);
                let element = with_width(quote!(#element));
                let buffer = quote_spanned! {before(reference.span())=>
                    &#borrowed #mutability #root::Part<#element>
                };
                until(last_of(reference), buffer)
            }
            Part::View(ty) => item_of(ty, &quote!(KernelView<#lifetime>), "Args"),
            Part::Value(ty) => value_type(ty),
        }
    }

    /// The type that the struct is in the IR.
    fn kernel_value(&self) -> TokenStream {
        let (root, name) = (root(), &self.input.ident);
        let text = plain_name(name);
        let generics = bounded(self.input, &quote!(#root::DeviceType));
        let (parameters, arguments, clause) = generics.split_for_impl();
        let fields = self.fields.iter().map(|(_, member, part)| {
            let member = plain_name(member);
            let ty = match part {
                Part::Slice(element, reference) => {
                    let mutable = reference.mutability.is_some();
                    quote_spanned!(before(element.span())=> #root::slice_type::<#element>(__kiln_types, #mutable))
                }
                Part::View(ty) | Part::Value(ty) => {
                    call_of(ty, &quote!(KernelValue), "type_in", &quote!(__kiln_types))
                }
            };
            quote!((#member, #ty))
        });
        quote! {
            #[diagnostic::do_not_recommend]
            impl #parameters #root::KernelValue for #name #arguments #clause {
                fn type_in(__kiln_types: &mut #root::TypeTable) -> #root::Type {
                    let __kiln_fields = [#(#fields),*];
                    #root::struct_type(__kiln_types, #text, &__kiln_fields)
                }
            }
        }
    }

    /// How the twin becomes an argument, and that it is what is passed.
    fn kernel_view(&self) -> TokenStream {
        let (root, name, twin, lifetime) =
            (root(), &self.input.ident, self.twin_name(), self.lifetime);
        let generics = bounded(self.input, &quote!(#root::KernelType));
        let (parameters, arguments, clause) = generics.split_for_impl();
        let fields = self.fields.iter().map(|(_, member, part)| {
            let field = plain_name(member);
            let arg = match part {
                Part::View(ty) => {
                    let value = quote_spanned!(before(ty.span())=> __kiln_args.#member);
                    let value = until(last_of(ty), value);
                    call_of(ty, &quote!(KernelView<#lifetime>), "arg", &value)
                }
                Part::Slice(ty, _) | Part::Value(ty) => {
                    let call = quote_spanned! {before(ty.span())=>
                        #root::IntoArg::into_arg(__kiln_args.#member)
                    };
                    until(last_of(ty), call)
                }
            };
            quote!((#field, #arg))
        });
        let packed = self.packed();
        quote! {
            #[diagnostic::do_not_recommend]
            impl #parameters #root::KernelView<#lifetime> for #name #arguments #clause {
                type Args = #twin #arguments;
                fn arg(__kiln_args: #twin #arguments) -> #root::Arg<#lifetime> {
                    #root::Arg::view::<Self>([#(#fields),*])
                }
                #[inline(always)]
                fn pack<'__kiln>(
                    __kiln_args: &'__kiln #twin #arguments,
                    __kiln_packing: #root::Packing,
                    __kiln_to: &mut #root::Parameters<'_, '__kiln>,
                ) -> #root::Packing {
                    #packed
                    __kiln_packing
                }
            }

            impl #parameters #root::ToKernel<#lifetime> for #twin #arguments #clause {
                type View = #name #arguments;
                fn to_kernel(self) -> Self {
                    self
                }
            }
        }
    }
}

impl View<'_> {
    /// How the fields of the twin are written to the block of a launch.
    fn packed(&self) -> TokenStream {
        let (root, lifetime) = (root(), self.lifetime);
        let fields = self.fields.iter().map(|(_, member, part)| {
            let field = plain_name(member);
            let packing = quote!(__kiln_packing.field(const { #root::field_key(#field) }));
            let args = quote!(&__kiln_args.#member, #packing, __kiln_to);
            let packed = match part {
                Part::View(ty) => call_of(ty, &quote!(KernelView<#lifetime>), "pack", &args),
                Part::Slice(..) | Part::Value(_) => quote!(#root::IntoArg::pack(#args)),
            };
            quote!(let __kiln_packing = #packed;)
        });
        fields.collect()
    }
}

/// The lifetime of what a view borrows.
fn lifetime<'a>(input: &'a DeriveInput, refusals: &mut Refusals) -> Option<&'a Lifetime> {
    let mut lifetimes = input.generics.lifetimes();
    let first = lifetimes.next().map(|param| &param.lifetime);
    if first.is_none() {
        refusals.refuse(&input.ident, NO_LIFETIME);
    }
    if let Some(second) = lifetimes.next() {
        refusals.refuse(
            second,
            "a view has one lifetime, that of the launch which it is passed to; write it on all slices",
        );
    }
    first
}

fn check_parameters(generics: &Generics, refusals: &mut Refusals) {
    for param in &generics.params {
        match param {
            GenericParam::Type(param) if !param.bounds.is_empty() => refusals.refuse(
                &param.bounds,
                "a type parameter of a view has no bound; the functions that take the view say what it can do",
            ),
            GenericParam::Const(param) => refusals.refuse(
                param,
                "const parameters are for functions and `#[derive(KernelType)]` structs; make one view for each number",
            ),
            _ => {}
        }
    }
    if let Some(clause) = &generics.where_clause {
        refusals.refuse(
            clause,
            "a type parameter of a view has no bound; the functions that take the view say what it can do",
        );
    }
}

/// What a field is, if it can be one.
fn part<'a>(ty: &'a Type, refusals: &mut Refusals) -> Option<Part<'a>> {
    match ty {
        Type::Group(group) => return part(&group.elem, refusals),
        Type::Paren(paren) => return part(&paren.elem, refusals),
        Type::Reference(reference) => match &*reference.elem {
            Type::Slice(slice) if first_lifetime(&slice.elem).is_some() => refusals.refuse(
                &slice.elem,
                "memory of a device holds no references; take a slice of values, `&'a [T]`",
            ),
            Type::Slice(slice) => {
                check_type(&slice.elem, refusals);
                return Some(Part::Slice(&slice.elem, reference));
            }
            elem if is_memory_of_a_device(elem) => refusals.refuse(ty, OF_THE_HOST),
            _ => refusals.refuse(
                ty,
                "a view has slices, `&'a [T]` or `&'a mut [T]`, and values: take one element as a slice of length \
                 1, a struct as itself, without the `&`",
            ),
        },
        Type::Tuple(_) => refusals.refuse(
            ty,
            "a view has no tuples, as its fields are arguments, which have names; give each part a field of its own",
        ),
        Type::Array(_) if first_lifetime(ty).is_some() => refusals.refuse(
            ty,
            "a view has no arrays of slices; give each slice a field of its own",
        ),
        Type::Path(path) if path.qself.is_none() && first_lifetime(ty).is_some() => {
            check_type(ty, refusals);
            return Some(Part::View(ty));
        }
        _ => {
            check_field(ty, refusals);
            return Some(Part::Value(ty));
        }
    }
    None
}

/// Refuses what no field can hold, with what a view has in its place.
fn check_field(ty: &Type, refusals: &mut Refusals) {
    match last_name(ty).as_deref() {
        Some("Vec" | "Box") => refusals.refuse(
            ty,
            "kernels have no heap; a view has a slice, `&'a [T]`, for which the host passes a `&Buffer<T>`",
        ),
        Some(_) if is_memory_of_a_device(ty) => refusals.refuse(ty, OF_THE_HOST),
        _ => check_type(ty, refusals),
    }
}

/// Whether a type is what the host has of a device's memory.
fn is_memory_of_a_device(ty: &Type) -> bool {
    matches!(last_name(ty).as_deref(), Some("Buffer" | "Array"))
}

/// The last name of a path.
fn last_name(ty: &Type) -> Option<String> {
    match ty {
        Type::Path(path) => Some(path.path.segments.last()?.ident.to_string()),
        _ => None,
    }
}
