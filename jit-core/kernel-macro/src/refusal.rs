//! What a kernel cannot say: errors with the span of the token and what to write instead.

use proc_macro2::TokenStream;
use quote::ToTokens;

/// The refusals of one item.
#[derive(Default)]
pub(crate) struct Refusals {
    errors: Vec<syn::Error>,
}

impl Refusals {
    /// Refuses the tokens.
    pub(crate) fn refuse(&mut self, tokens: &dyn ToTokens, message: &str) {
        let tokens = tokens.to_token_stream();
        self.errors.push(syn::Error::new_spanned(tokens, message));
    }

    /// Adds a refusal.
    pub(crate) fn add(&mut self, error: syn::Error) {
        self.errors.push(error);
    }

    /// Adds the refusals of a part.
    pub(crate) fn extend(&mut self, other: Refusals) {
        self.errors.extend(other.errors);
    }

    /// Whether nothing is refused.
    pub(crate) fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// All of them as `compile_error!`s.
    pub(crate) fn into_tokens(self) -> TokenStream {
        self.errors
            .iter()
            .map(syn::Error::to_compile_error)
            .collect()
    }
}

/// What to say about a type of the host, by its name.
pub(crate) fn host_type(name: &str) -> Option<&'static str> {
    Some(match name {
        "String" | "str" => "kernels have no strings; pass numbers, or bytes as `&[u8]`",
        "Vec" | "VecDeque" | "HashMap" | "BTreeMap" | "HashSet" => {
            "kernels have no heap; take a slice `&[T]`, or use a fixed array `[T; N]`"
        }
        "Box" | "Rc" | "Arc" | "Cow" => {
            "kernels have no heap; hold the value itself, or take a reference to it"
        }
        "char" => "kernels have no `char`; use `u8` or `u32`",
        "i128" | "u128" => "kernels have integers of at most 64 bits; use `u64`, or two of them",
        "Cell" | "RefCell" | "Mutex" | "RwLock" => {
            "kernels have no cells and locks; use `let mut`, or `atomic_add` and its kind"
        }
        _ => return None,
    })
}

/// Whether a user may well have a type of such a name, which is told from the host's by having no arguments.
pub(crate) fn may_be_own(name: &str) -> bool {
    matches!(
        name,
        "Box" | "Rc" | "Arc" | "Cow" | "Cell" | "RefCell" | "Mutex" | "RwLock"
    )
}

/// What to say about a macro, by its name.
pub(crate) fn host_macro(name: &str) -> &'static str {
    match name {
        "todo" | "unimplemented" => "write `panic!(\"..\")`, with what is not written yet",
        "write" | "writeln" => {
            "kernels have no strings; `println!` prints on the host, `print!` a part of a line"
        }
        "vec" => "kernels have no heap; use a fixed array, `[0.0; 16]`",
        "format" => "kernels have no strings; write the numbers to a `&mut [T]`",
        "asm" | "global_asm" | "naked_asm" => {
            "kernels have no inline assembly; give the instruction a name with `kiln::intrinsic!`, beside the \
             function that it is on the host, and call that"
        }
        "include_str" | "include_bytes" | "env" | "concat" | "stringify" => {
            "kernels have no strings; pass the data as a slice"
        }
        _ => {
            "macros are not expanded before `#[kernel]` sees them; write what it expands to, or call \
             a `#[device_fn]`"
        }
    }
}

/// What to say about a variable of a kernel's own name.
pub(crate) const NAME_OF_KERNEL: &str = "the kernel has this name, and is a static, whose name no variable \
     can have; name one of the two otherwise";

/// What to say about a name that is not of the kernel, where constants have others.
pub(crate) const NOT_OF_THE_KERNEL: &str = "no variable here has this name, and those of the host are not seen in \
    kernels: take it as a parameter. Name a constant in capitals or by its path; pass a function on as a closure \
    that calls it, `|x| f(x)`";

/// What to say about a closure that is passed to a method.
pub(crate) const CLOSURE_TO_METHOD: &str =
    "closures are passed to free functions; write a `#[device_fn]` outside of the `impl` block";

/// What to say about a chain of iterators that kernels do not have.
const CHAIN: &str = "a chain of iterators in a kernel goes from `iter`, or a range, to a number or a `for`: behind what a \
     `for` goes over come `map`, `filter`, `filter_map`, `flatten` of options, `take_while`, `skip_while`, `map_while`, \
     `inspect`, `copied`, `enumerate`, `take` and `skip`, and `zip` where nothing is left out before, then `sum`, `product`, `count`, `min`, \
     `max`, `min_by`, `max_by`, `min_by_key`, `max_by_key`, `any`, `all`, `find`, `position`, `fold`, `reduce`, \
     `last`, `nth` or `for_each`, whose closures return nothing early; write a `for` for what else is to be done";

/// What to say about a method that kernels do not have, where its name tells what was meant.
pub(crate) fn method(name: &str) -> Option<&'static str> {
    Some(match name {
        "iter" | "iter_mut" | "into_iter" | "chunks" | "windows" | "enumerate" | "fold"
        | "for_each" => CHAIN,
        "try_into" | "try_from" => {
            "kernels convert by `x as u32`, or end the thread where that does not fit, `x.try_into().unwrap()`. An index is a \
             `usize`, which has 32 bits in kernels: `let i = global_id().x;` needs no conversion"
        }
        "to_string" | "to_owned" | "collect" | "to_vec" | "as_str" => {
            "kernels have no heap and no strings; use a fixed array"
        }
        "clone" => "everything in a kernel is `Copy`; leave `.clone()` out",
        "borrow" | "lock" => "kernels have functions for atomics: `atomic_add(&mut x[i], 1)`",
        _ => return None,
    })
}
