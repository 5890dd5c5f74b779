//! Where code decides by an operation, a scalar or a type, and leaves those open that it does not name.
//!
//! A `match` with an arm for all others, `matches!`, `if let`, `let .. else` and `==` on one of these
//! enums go on compiling when a variant is added, and answer for it unasked. The compiler leads through
//! what names every variant, or asks `ir` a question that does. Neither clippy's
//! `wildcard_enum_match_arm` nor `match_wildcard_for_single_variants` sees `matches!`, tuples and
//! what is behind `Some`.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, Pat, Path, Token};

/// The enums that grow.
pub(crate) const GROWING: [&str; 6] = [
    "InstData", "UnaryOp", "BinaryOp", "AtomicOp", "Scalar", "TypeData",
];

/// Where variants are left open for a reason: the file, the enum, and in how many places.
pub(crate) const ALLOWED: &[(&str, &str, usize)] = &[
    // What an operation or a type is, is said in these, which all others ask.
    ("jit-core/ir/src/control.rs", "InstData", 13),
    ("jit-core/ir/src/facts.rs", "InstData", 4),
    ("jit-core/ir/src/operands.rs", "InstData", 6),
    ("jit-core/ir/src/types.rs", "TypeData", 9),
    ("jit-core/ir/src/types/layout.rs", "TypeData", 1),
    // There are GPUs that add 16-bit floats in one step, and none that do anything else to these.
    ("jit-core/ir/src/inst.rs", "AtomicOp", 1),
    ("jit-core/ir/src/inst.rs", "Scalar", 1),
    // Whether a value is a constant: all else is none.
    ("jit-core/compiler/src/build/mod.rs", "InstData", 1),
    // Whether something is assumed: all else is not.
    ("jit-core/codegen/src/gpu/intrinsic.rs", "InstData", 1),
    // What is not named is not known before threads run, and cannot be asserted.
    ("jit-core/ir/src/assertion.rs", "InstData", 1),
    ("jit-core/interp/src/fold.rs", "InstData", 1),
    // What has an index that is checked, `check` says; no loop but `for` says how it is unrolled.
    ("jit-core/compiler/src/choices.rs", "InstData", 2),
    ("jit-core/codegen/src/llvm/unrolled.rs", "InstData", 1),
    // What is no sum is added up as it is, and is the same as nothing else; what has no range may be anything.
    ("jit-core/compiler/src/promised.rs", "InstData", 4),
    ("jit-core/compiler/src/promised.rs", "BinaryOp", 2),
    ("hooks/src/bounds_checks/ranges.rs", "InstData", 5),
    ("hooks/src/bounds_checks/ranges.rs", "UnaryOp", 1),
    ("hooks/src/bounds_checks/ranges.rs", "BinaryOp", 1),
    // An address that is made in another way than by these, and an access that is another one, is refused, as nothing
    // is known of it; a number that is no sum is any number.
    ("directives/src/uniform.rs", "InstData", 1),
    ("directives/src/accesses.rs", "InstData", 2),
    ("directives/src/affine.rs", "InstData", 5),
    ("directives/src/affine.rs", "UnaryOp", 2),
    ("directives/src/affine.rs", "BinaryOp", 4),
    ("directives/src/emit.rs", "BinaryOp", 2),
    // What is not computed of constants by these stays as it is, and an index that is found in another way is checked.
    ("directives/src/emit.rs", "InstData", 1),
    ("directives/src/stage.rs", "InstData", 3),
    // A slice that is made in another way is another slice.
    ("directives/src/lengths.rs", "InstData", 2),
    // The store that loops end with, and indexings that are proved.
    ("directives/src/compute.rs", "InstData", 3),
    ("directives/src/bounds.rs", "InstData", 2),
    // Addresses of elements are these two.
    ("directives/src/meeting.rs", "InstData", 1),
    // What writes to memory of the thread's own is a store; only a `for` is distributed and transformed.
    ("directives/src/private.rs", "InstData", 1),
    ("directives/src/apply.rs", "InstData", 3),
    ("directives/src/section.rs", "InstData", 1),
    // An array of the block is what a shared address gives, and is assigned by a store; one whose elements are not seen to be
    // alike one thread writes.
    ("directives/src/arrays.rs", "InstData", 6),
    ("directives/src/arrays.rs", "TypeData", 2),
    ("directives/src/reuse.rs", "InstData", 3),
    // What is read otherwise than by these is read from the slice, where the same elements are.
    ("directives/src/constant.rs", "InstData", 4),
    ("directives/src/edge.rs", "InstData", 2),
    // So does a `for` alone have a bound that may be the smaller one of two.
    ("directives/src/transform.rs", "InstData", 3),
    ("directives/src/transform.rs", "BinaryOp", 1),
    // A comparison that is not seen to have one result is asked.
    ("directives/src/peel.rs", "InstData", 4),
    // A slice is used by these alone; other uses are refused. A running value is combined by operations that are named.
    ("directives/src/privatize.rs", "InstData", 3),
    ("directives/src/scan.rs", "InstData", 1),
    ("directives/src/scan.rs", "BinaryOp", 1),
    // A reduction is a load, an operation and a store, by the operations that atomics have; all else is refused.
    ("directives/src/reduce.rs", "InstData", 4),
    ("directives/src/reduce.rs", "BinaryOp", 1),
    // Of such a statement, the atomic operation that it has become and the index of its element; others stay in their loops.
    ("directives/src/combine.rs", "InstData", 8),
    // Addresses of elements are the two that it names; the others read or set parts of a `for`.
    ("directives/src/jam.rs", "InstData", 4),
    // A rule names what it lets pass; the rest is an error.
    ("jit-core/ir/src/verify/aggregates.rs", "TypeData", 1),
    ("jit-core/ir/src/verify/arithmetic.rs", "TypeData", 1),
    ("jit-core/ir/src/verify/arithmetic.rs", "BinaryOp", 1),
    ("jit-core/ir/src/verify/arithmetic.rs", "Scalar", 1),
    ("jit-core/ir/src/verify/table.rs", "Scalar", 1),
    ("jit-core/ir/src/verify/body.rs", "InstData", 4),
    ("jit-core/ir/src/verify/calls.rs", "TypeData", 1),
    ("jit-core/ir/src/verify/calls.rs", "InstData", 1),
    ("jit-core/ir/src/verify/entities.rs", "InstData", 2),
    ("jit-core/ir/src/verify/rules.rs", "TypeData", 1),
    // A type fits a pattern or does not.
    ("jit-core/ir/src/intrinsic/pattern.rs", "TypeData", 2),
    // The `else` of an `if`, and the index of a `for`, have lines and names of their own in the text.
    ("jit-core/ir/src/parse/function.rs", "InstData", 2),
    ("jit-core/ir/src/print/names.rs", "InstData", 1),
    // An operand of a type that is not named is refused, by an error that names those that are.
    ("jit-core/interp/src/flatten.rs", "TypeData", 1),
    ("jit-core/compiler/src/build/declare.rs", "TypeData", 1),
    ("jit-core/compiler/src/build/literal.rs", "TypeData", 1),
    ("jit-core/compiler/src/build/mod.rs", "TypeData", 1),
    ("jit-core/compiler/src/build/value.rs", "TypeData", 3),
    ("jit-core/compiler/src/front/binding.rs", "TypeData", 1),
    ("jit-core/compiler/src/specialize/bind.rs", "TypeData", 3),
    // Two types are compared part by part; those of two kinds differ.
    ("jit-core/compiler/src/build/call.rs", "TypeData", 2),
    ("jit-core/compiler/src/contract.rs", "TypeData", 1),
    // Fields, elements and `*` of Rust: what a value that is not named does is an error of the builder.
    ("jit-core/compiler/src/front/operand.rs", "TypeData", 7),
    // They look again at the one instruction that they have written.
    ("jit-core/compiler/src/build/control.rs", "InstData", 1),
    ("jit-core/compiler/src/build/described.rs", "InstData", 1),
    ("jit-core/compiler/src/build/slot.rs", "InstData", 2),
    // What it does not know gives a value that nobody has to recover.
    ("jit-core/compiler/src/build/recovery.rs", "InstData", 1),
    // What names no type, constant, row or function is the same in every instance, and in another module; what
    // takes no slice has none to be widened.
    ("jit-core/ir/src/rewrite/copy.rs", "InstData", 1),
    ("jit-core/compiler/src/definition/digest.rs", "InstData", 1),
    (
        "jit-core/compiler/src/specialize/instance.rs",
        "InstData",
        3,
    ),
    (
        "jit-core/compiler/src/specialize/instance.rs",
        "TypeData",
        1,
    ),
    ("jit-core/compiler/src/specialize/wide.rs", "InstData", 1),
    // A call hands on what its callee needs; what reads a value goes.
    ("jit-core/compiler/src/hidden.rs", "InstData", 3),
    // Operations that have a body; the rest stays.
    ("jit-core/compiler/src/expand.rs", "InstData", 2),
    ("jit-core/compiler/src/expand.rs", "BinaryOp", 1),
    // What is no arithmetic of sums, or no test of a counter, leaves the loop as it is.
    ("hooks/src/bounds_checks/counter.rs", "InstData", 4),
    ("hooks/src/bounds_checks/counter.rs", "UnaryOp", 1),
    ("hooks/src/bounds_checks/counter.rs", "BinaryOp", 1),
    ("hooks/src/bounds_checks/carried.rs", "InstData", 2),
    ("hooks/src/bounds_checks/carried.rs", "BinaryOp", 1),
    ("hooks/src/bounds_checks/sum.rs", "InstData", 2),
    ("hooks/src/bounds_checks/sum.rs", "UnaryOp", 1),
    ("hooks/src/bounds_checks/sum.rs", "BinaryOp", 1),
    // What is no loop with a counter, no index, no address and no arithmetic is written out for nobody.
    (
        "jit-core/codegen/src/gpu/lower/own_arrays.rs",
        "InstData",
        4,
    ),
    // Only an if has a condition under which a variable is set; what loops ask is not known when they are unrolled.
    ("hooks/src/bounds_checks/versions.rs", "InstData", 1),
    // Of what is not named no ends are known, and the access keeps its check.
    ("hooks/src/bounds_checks/lanes.rs", "InstData", 7),
    ("hooks/src/bounds_checks/lanes.rs", "BinaryOp", 4),
    ("hooks/src/bounds_checks/spans.rs", "InstData", 4),
    ("hooks/src/bounds_checks/spans.rs", "BinaryOp", 4),
    // An index that is made in another way is not clamped, and is read by what it is.
    ("hooks/src/bounds_checks/clamped.rs", "InstData", 5),
    ("hooks/src/bounds_checks/clamped.rs", "BinaryOp", 2),
    ("jit-core/codegen/src/cpu/vector/clamped.rs", "InstData", 3),
    ("jit-core/codegen/src/cpu/vector/clamped.rs", "BinaryOp", 5),
    ("hooks/src/bounds_checks/conditions.rs", "InstData", 6),
    ("hooks/src/bounds_checks/conditions.rs", "UnaryOp", 1),
    ("hooks/src/bounds_checks/conditions.rs", "BinaryOp", 3),
    ("hooks/src/bounds_checks/chosen.rs", "InstData", 2),
    ("hooks/src/bounds_checks/chosen.rs", "BinaryOp", 6),
    // An index that is made in another way may be any number, and the loop keeps its checks.
    ("hooks/src/bounds_checks/gathers.rs", "InstData", 1),
    ("hooks/src/bounds_checks/gathers.rs", "BinaryOp", 2),
    // What is no plain load stays where it is.
    ("hooks/src/bounds_checks/held.rs", "InstData", 1),
    // Arithmetic of constants that is not named gives no number that is known.
    ("hooks/src/bounds_checks/before.rs", "InstData", 1),
    ("hooks/src/bounds_checks/before.rs", "BinaryOp", 1),
    // A slice that is made in another way has no length that is known.
    ("hooks/src/bounds_checks/proof.rs", "InstData", 1),
    // Memory that something else is done with stays memory.
    ("hooks/src/bounds_checks/references.rs", "InstData", 5),
    // A choice by a condition is `select`'s alone, beside those of control flow.
    ("jit-core/codegen/src/provenance.rs", "InstData", 1),
    // The private memory and the variables of a kernel.
    ("hooks/src/bounds_checks/whole.rs", "InstData", 3),
    ("hooks/src/bounds_checks/code.rs", "InstData", 1),
    // What a run does not know ends it.
    ("hooks/src/bounds_checks/runs.rs", "InstData", 1),
    // An address that comes from what is not named may point anywhere.
    ("hooks/src/address_spaces.rs", "InstData", 6),
    ("hooks/src/address_spaces.rs", "TypeData", 3),
    // What a call says that it calls is changed where a call was found.
    ("hooks/src/address_spaces/copies.rs", "InstData", 1),
    // What is not named is no copy that is only read, and stays where it is.
    ("hooks/src/in_place.rs", "InstData", 5),
    ("hooks/src/in_place.rs", "Scalar", 1),
    ("hooks/src/in_place.rs", "TypeData", 1),
    // The form of one condition; where another stands, lanes are told apart by masks.
    ("jit-core/codegen/src/cpu/vector/single.rs", "InstData", 1),
    // Which operations keep blocks apart besides what their facts say; loops and calls, of which all else is none.
    ("jit-core/codegen/src/cpu/vector/beside.rs", "InstData", 3),
    ("jit-core/codegen/src/cpu/vector/single.rs", "BinaryOp", 1),
    // A loop of a form that is not known is not taken for one that ends soon.
    ("jit-core/codegen/src/simt/dwindle.rs", "InstData", 2),
    ("jit-core/codegen/src/simt/dwindle.rs", "UnaryOp", 1),
    ("jit-core/codegen/src/simt/dwindle.rs", "BinaryOp", 1),
    // Lanes of an operator that is not named have no form of their own; it is named where its code is made.
    ("jit-core/codegen/src/cpu/vector/arith.rs", "UnaryOp", 1),
    ("jit-core/codegen/src/cpu/vector/arith.rs", "BinaryOp", 1),
    // An exchange is what does not combine two numbers; those that do are named where they are combined.
    ("jit-core/codegen/src/cpu/vector/atomic.rs", "AtomicOp", 2),
    // A row of the macro's says of which scalars it is.
    ("device-stdlib/src/intrinsic.rs", "Scalar", 1),
    ("jit-core/compiler/src/value/vector.rs", "Scalar", 1),
    // What is no vector has a row of its own, which says what it takes.
    ("device-stdlib/src/cache.rs", "TypeData", 1),
    // What is no vector is added as a number, of which the atomic says itself which there are.
    ("device-stdlib/src/plain/atomic_vector.rs", "TypeData", 1),
];

/// In how many places a file may leave variants of an enum open.
pub(crate) fn allowed(path: &str, name: &str) -> usize {
    let mut listed = ALLOWED.iter();
    let entry = listed.find(|(file, of, _)| (*file, *of) == (path, name));
    entry.map_or(0, |(.., count)| *count)
}

/// The lines where a file leaves variants of growing enums open, each with the enum. A file that is not
/// Rust for itself has none.
pub(crate) fn guesses(text: &str) -> Vec<(usize, &'static str)> {
    let Ok(file) = syn::parse_file(text) else {
        return Vec::new();
    };
    let mut finder = Finder::default();
    finder.visit_file(&file);
    finder.found
}

#[derive(Default)]
struct Finder {
    found: Vec<(usize, &'static str)>,
}

impl Finder {
    /// Notes the enums that patterns decide by, where others of their variants come to a pattern that
    /// takes all.
    fn note(&mut self, line: usize, patterns: &[&Pat], takes_others: bool) {
        for name in GROWING {
            let mut decided = Vec::new();
            for pattern in patterns {
                places(pattern, name, &mut Vec::new(), &mut decided);
            }
            let open = |place: &Place| takes_others || patterns.iter().any(|p| takes_all(p, place));
            if decided.iter().any(open) {
                self.found.push((line, name));
            }
        }
    }

    fn note_macro(&mut self, mac: &syn::Macro) {
        let line = mac.span().start().line;
        let matches = |input: syn::parse::ParseStream<'_>| {
            input.parse::<Expr>()?;
            input.parse::<Token![,]>()?;
            let pattern = Pat::parse_multi_with_leading_vert(input)?;
            input.parse::<TokenStream>()?;
            Ok(pattern)
        };
        if mac.path.is_ident("matches") {
            if let Ok(pattern) = matches.parse2(mac.tokens.clone()) {
                self.note(line, &[&pattern], true);
            }
        } else if let Ok(arguments) =
            Punctuated::<Expr, Token![,]>::parse_terminated.parse2(mac.tokens.clone())
        {
            arguments
                .iter()
                .for_each(|argument| self.visit_expr(argument));
        } else if let Some(name) = open_match(mac.tokens.clone()) {
            self.found.push((line, name));
        }
    }
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_expr_match(&mut self, node: &'ast syn::ExprMatch) {
        let patterns: Vec<&Pat> = node.arms.iter().map(|arm| &arm.pat).collect();
        self.note(node.match_token.span.start().line, &patterns, false);
        visit::visit_expr_match(self, node);
    }

    fn visit_expr_let(&mut self, node: &'ast syn::ExprLet) {
        self.note(node.let_token.span.start().line, &[&node.pat], true);
        visit::visit_expr_let(self, node);
    }

    fn visit_expr_binary(&mut self, node: &'ast syn::ExprBinary) {
        if let BinOp::Eq(_) | BinOp::Ne(_) = node.op {
            let named = |side: &Expr| match side {
                Expr::Path(path) => GROWING.into_iter().find(|name| is_of(&path.path, name)),
                _ => None,
            };
            let line = node.op.span().start().line;
            let name = named(&node.left).or_else(|| named(&node.right));
            self.found.extend(name.map(|name| (line, name)));
        }
        visit::visit_expr_binary(self, node);
    }

    fn visit_local(&mut self, node: &'ast syn::Local) {
        if node
            .init
            .as_ref()
            .is_some_and(|init| init.diverge.is_some())
        {
            self.note(node.let_token.span.start().line, &[&node.pat], true);
        }
        visit::visit_local(self, node);
    }

    fn visit_macro(&mut self, node: &'ast syn::Macro) {
        self.note_macro(node);
    }

    fn visit_item(&mut self, node: &'ast syn::Item) {
        if !is_for_tests(node) {
            visit::visit_item(self, node);
        }
    }
}

fn is_for_tests(item: &syn::Item) -> bool {
    let attrs = match item {
        syn::Item::Mod(module) => &module.attrs,
        syn::Item::Fn(function) => &function.attrs,
        _ => return false,
    };
    attrs.iter().any(|attribute| {
        let list = attribute.meta.require_list();
        list.is_ok_and(|list| list.path.is_ident("cfg") && list.tokens.to_string() == "test")
    })
}

/// Where in a pattern something stands: positions in tuples and names of variants, from the outside.
type Place = Vec<String>;

/// The places of a pattern where a variant of an enum is named.
fn places(pattern: &Pat, name: &str, at: &mut Place, found: &mut Vec<Place>) {
    match pattern {
        Pat::Path(path) if is_of(&path.path, name) => found.push(at.clone()),
        Pat::TupleStruct(variant) if is_of(&variant.path, name) => found.push(at.clone()),
        Pat::Struct(variant) if is_of(&variant.path, name) => found.push(at.clone()),
        _ => {}
    }
    each_part(pattern, at, &mut |part, at| places(part, name, at, found));
}

/// Calls `f` with the parts of a pattern and where they are.
fn each_part(pattern: &Pat, at: &mut Place, f: &mut dyn FnMut(&Pat, &mut Place)) {
    match pattern {
        Pat::Or(or) => or.cases.iter().for_each(|case| f(case, at)),
        Pat::Reference(reference) => f(&reference.pat, at),
        Pat::Paren(paren) => f(&paren.pat, at),
        Pat::Ident(ident) => {
            if let Some((_, part)) = &ident.subpat {
                f(part, at);
            }
        }
        _ => {
            for (step, part) in parts(pattern) {
                at.push(step);
                f(part, at);
                at.pop();
            }
        }
    }
}

/// The parts of a tuple, a slice or a variant, each with the step to it.
fn parts(pattern: &Pat) -> Vec<(String, &Pat)> {
    match pattern {
        Pat::Tuple(tuple) => numbered("", &tuple.elems),
        Pat::Slice(slice) => numbered("", &slice.elems),
        Pat::TupleStruct(variant) => numbered(&last(&variant.path), &variant.elems),
        Pat::Struct(variant) => {
            let name = |member: &syn::Member| member.to_token_stream().to_string();
            let fields = variant.fields.iter();
            let step =
                |field: &syn::FieldPat| format!("{}.{}", last(&variant.path), name(&field.member));
            fields.map(|field| (step(field), &*field.pat)).collect()
        }
        _ => Vec::new(),
    }
}

fn numbered<'a>(of: &str, parts: &'a Punctuated<Pat, Token![,]>) -> Vec<(String, &'a Pat)> {
    let parts = parts.iter().enumerate();
    parts.map(|(n, part)| (format!("{of}.{n}"), part)).collect()
}

/// Whether a pattern takes whatever stands at a place.
fn takes_all(pattern: &Pat, place: &[String]) -> bool {
    match pattern {
        Pat::Wild(_) => true,
        Pat::Ident(ident) => match &ident.subpat {
            Some((_, part)) => takes_all(part, place),
            None => ident.ident.to_string().starts_with(char::is_lowercase),
        },
        Pat::Or(or) => or.cases.iter().any(|case| takes_all(case, place)),
        Pat::Reference(reference) => takes_all(&reference.pat, place),
        Pat::Paren(paren) => takes_all(&paren.pat, place),
        _ => {
            let Some((step, rest)) = place.split_first() else {
                return false;
            };
            let part = parts(pattern).into_iter().find(|(name, _)| name == step);
            part.is_some_and(|(_, part)| takes_all(part, rest))
        }
    }
}

/// The last name of a path.
fn last(path: &Path) -> String {
    let segment = path.segments.last();
    segment.map_or(String::new(), |segment| segment.ident.to_string())
}

fn is_of(path: &Path, name: &str) -> bool {
    let mut segments = path.segments.iter().rev().skip(1);
    segments.next().is_some_and(|segment| segment.ident == name)
}

/// The growing enum that tokens name, if they have an arm for all others: the body of a macro.
fn open_match(tokens: TokenStream) -> Option<&'static str> {
    let mut flat = Vec::new();
    flatten(tokens, &mut flat);
    let has = |wanted: &[&str]| flat.windows(wanted.len()).any(|window| window == wanted);
    let named = GROWING.into_iter().find(|name| has(&[name, ":", ":"]));
    named.filter(|_| has(&["_", "=", ">"]))
}

fn flatten(tokens: TokenStream, flat: &mut Vec<String>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => flatten(group.stream(), flat),
            other => flat.push(other.to_string()),
        }
    }
}
