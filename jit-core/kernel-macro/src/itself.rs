//! `self` and `Self` where a function of a block or a trait is described by itself.

use proc_macro2::{Ident, Span};
use syn::visit_mut::VisitMut;
use syn::{
    Expr, ExprParen, ExprPath, GenericArgument, Path, PathArguments, PathSegment, Type, parse_quote,
};

use crate::position::{after, again, before};

/// The name that `self` has in a description.
const SELF: &str = "self_";

/// Says a type once more, where the user has not written it; it is as long as what stands there.
pub(crate) struct Again;

impl VisitMut for Again {
    fn visit_ident_mut(&mut self, name: &mut Ident) {
        *name = again(name);
    }

    // A name alone may be that of a number, which takes no arguments.
    fn visit_generic_argument_mut(&mut self, argument: &mut GenericArgument) {
        match argument {
            GenericArgument::Type(Type::Path(path)) if path.path.get_ident().is_some() => {
                for segment in &mut path.path.segments {
                    self.visit_ident_mut(&mut segment.ident);
                }
            }
            _ => syn::visit_mut::visit_generic_argument_mut(self, argument),
        }
    }

    fn visit_path_segment_mut(&mut self, segment: &mut PathSegment) {
        let end = after(segment.ident.span());
        syn::visit_mut::visit_path_segment_mut(self, segment);
        let is_module = ["super", "crate", "self"]
            .iter()
            .any(|name| segment.ident == name);
        if segment.arguments.is_none() && !is_module {
            segment.arguments = PathArguments::AngleBracketed(parse_quote!(<>));
        }
        if let PathArguments::AngleBracketed(arguments) = &mut segment.arguments {
            arguments.gt_token.spans = [end];
        }
    }
}

/// Writes out `Self` and `Self::Output`, and renames `self`.
pub(crate) struct WithoutSelf<'a>(pub(crate) &'a Path, pub(crate) Option<&'a Type>);

impl VisitMut for WithoutSelf<'_> {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        syn::visit_mut::visit_expr_mut(self, expr);
        if let Expr::Path(path) = &*expr
            && let Some(name) = path.path.get_ident()
            && name == "self"
        {
            let span = name.span();
            // In parentheses at its place, so that rustc sees it there, too: it tells an error once if it comes
            // twice.
            *expr = Expr::Paren(ExprParen {
                attrs: Vec::new(),
                paren_token: syn::token::Paren(span),
                expr: Box::new(Expr::Path(ExprPath {
                    attrs: Vec::new(),
                    qself: None,
                    path: self_at(span).into(),
                })),
            });
        }
    }

    fn visit_type_mut(&mut self, ty: &mut Type) {
        if let (Type::Path(path), Some(output)) = (&*ty, self.1)
            && path.qself.is_none()
            && path.path.segments.len() == 2
            && path
                .path
                .segments
                .iter()
                .map(|s| &s.ident)
                .eq(["Self", "Output"])
        {
            *ty = output.clone();
        }
        syn::visit_mut::visit_type_mut(self, ty);
    }

    fn visit_path_mut(&mut self, path: &mut Path) {
        syn::visit_mut::visit_path_mut(self, path);
        let Some(first) = path.segments.first() else {
            return;
        };
        let span = first.ident.span();
        if first.ident == "Self" && path.leading_colon.is_none() {
            let mut whole = at(self.0, span);
            whole.segments.extend(path.segments.iter().skip(1).cloned());
            *path = whole;
        }
    }

    // `self` in these is a module.
    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
}

/// The name of `self` in a description. Hygiene keeps it apart from names of the user.
pub(crate) fn self_at(span: Span) -> Ident {
    Ident::new(SELF, Span::mixed_site().located_at(before(span)))
}

/// A path whose names are at another position.
fn at(path: &Path, span: Span) -> Path {
    let mut path = path.clone();
    for segment in &mut path.segments {
        segment
            .ident
            .set_span(span.resolved_at(segment.ident.span()));
    }
    path
}
