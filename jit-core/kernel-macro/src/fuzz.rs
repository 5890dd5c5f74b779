//! Token soup and mutated kernels: whatever comes in, the macros return.

use proc_macro2::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};
use quote::ToTokens;

use crate::function::{Kind, expand};

/// xorshift64*, so that a failure can be repeated from its seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

const WORDS: &[&str] = &[
    "fn",
    "let",
    "mut",
    "if",
    "else",
    "match",
    "while",
    "loop",
    "for",
    "in",
    "break",
    "continue",
    "return",
    "as",
    "ref",
    "move",
    "async",
    "await",
    "unsafe",
    "const",
    "static",
    "struct",
    "enum",
    "impl",
    "dyn",
    "where",
    "use",
    "self",
    "Self",
    "true",
    "false",
    "_",
    "x",
    "y",
    "k",
    "T",
    "N",
    "i",
    "f32",
    "u32",
    "usize",
    "Float",
    "KernelType",
    "shared",
    "barrier",
    "global_id",
    "len",
    "sqrt",
    "rev",
    "step_by",
    "unroll",
    "launch_bounds",
    "attribute",
    "String",
    "Vec",
    "Some",
    "panic",
    "repr",
    "C",
    "of",
    "__kiln_t0",
    "__kiln_m0",
    "__kiln",
    "cast",
    "powi",
    "from",
    "ZERO",
];

const MARKS: &[char] = &[
    '+', '-', '*', '/', '%', '^', '!', '&', '|', '=', '<', '>', '@', '.', ',', ';', ':', '#', '$',
    '?', '~',
];

fn token(random: &mut Random, depth: usize) -> TokenTree {
    let span = Span::call_site();
    match random.below(10) {
        0..4 => {
            let word: &&str = random.pick(WORDS);
            Ident::new(word, span).into()
        }
        4..7 => {
            let spacing = [Spacing::Alone, Spacing::Joint][random.below(2)];
            Punct::new(*random.pick(MARKS), spacing).into()
        }
        7 => match random.below(7) {
            0 => Literal::u32_suffixed(7).into(),
            1 => Literal::f64_unsuffixed(0.5).into(),
            2 => Literal::string("soup").into(),
            3 => Literal::character('c').into(),
            4 => Literal::u128_unsuffixed(u128::MAX).into(),
            5 => Literal::byte_string(b"b").into(),
            _ => Literal::i64_unsuffixed(3).into(),
        },
        _ if depth > 4 => Ident::new("x", span).into(),
        n => {
            let delimiters = [Delimiter::Brace, Delimiter::Parenthesis, Delimiter::Bracket];
            let delimiter = match n {
                8 => Delimiter::None,
                _ => *random.pick(&delimiters),
            };
            Group::new(delimiter, soup(random, depth + 1)).into()
        }
    }
}

fn soup(random: &mut Random, depth: usize) -> TokenStream {
    (0..random.below(12))
        .map(|_| token(random, depth))
        .collect()
}

/// The tokens with something left out, doubled, exchanged or put in.
fn mutated(tokens: TokenStream, random: &mut Random) -> TokenStream {
    let mut tokens: Vec<TokenTree> = tokens.into_iter().collect();
    if tokens.is_empty() {
        return soup(random, 3);
    }
    let at = random.below(tokens.len());
    // Mostly deeper, where the code is.
    if let (TokenTree::Group(group), 0..8) = (&tokens[at], random.below(9)) {
        tokens[at] = Group::new(group.delimiter(), mutated(group.stream(), random)).into();
        return tokens.into_iter().collect();
    }
    let groups: Vec<usize> = (0..tokens.len())
        .filter(|&i| matches!(tokens[i], TokenTree::Group(_)))
        .collect();
    if let (false, 0..6) = (groups.is_empty(), random.below(9)) {
        let at = *random.pick(&groups);
        if let TokenTree::Group(group) = &tokens[at] {
            tokens[at] = Group::new(group.delimiter(), mutated(group.stream(), random)).into();
        }
        return tokens.into_iter().collect();
    }
    let other = random.below(tokens.len());
    match random.below(4) {
        0 => drop(tokens.remove(at)),
        1 => tokens.insert(at, tokens[other].clone()),
        2 => tokens.swap(at, other),
        _ => tokens[at] = token(random, 3),
    }
    tokens.into_iter().collect()
}

/// Expands the tokens in every way there is.
fn feed(tokens: &TokenStream, attribute: &TokenStream) {
    for kind in [Kind::Kernel, Kind::Device] {
        expand(kind, attribute.clone(), tokens.clone());
    }
    crate::derive::expand(tokens.clone());
    crate::view::expand(tokens.clone());
    crate::function::expand_expression(tokens.clone());
    crate::elementwise::expand(tokens.clone());
    crate::elementwise::expand(quote::quote!(|x, y| { #tokens }));
    // A function without its `fn`.
    let rest = tokens
        .clone()
        .into_iter()
        .skip_while(|t| t.to_string() != "fn");
    crate::function::expand_expression(rest.skip(1).collect());
}

#[test]
fn token_soup() {
    for seed in 1..4_000u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let attribute = match random.below(4) {
            0 => soup(&mut random, 2),
            _ => TokenStream::new(),
        };
        feed(&soup(&mut random, 0), &attribute);
        // In the body of a function, and as a type of a struct.
        let (body, types) = (soup(&mut random, 0), soup(&mut random, 2));
        feed(&quote::quote!(fn k(x: &[f32]) { #body }), &attribute);
        feed(&quote::quote!(fn k<#types>(#body) -> #types {}), &attribute);
        feed(
            &quote::quote!(impl<#types> S<#types> { fn f(&mut self) { #body } #types }),
            &attribute,
        );
        feed(
            &quote::quote!(impl S { fn f(self, #types) -> Self { x.f(#body).g(Self::h) } }),
            &attribute,
        );
        feed(
            &quote::quote!(#[repr(#body)] struct S { a: #types }),
            &attribute,
        );
    }
}

#[test]
fn mutated_kernels() {
    let texts = [
        include_str!("../../../tests/suite/rust_closures.rs"),
        include_str!("../../../tests/suite/rust_items.rs"),
        include_str!("../../../tests/suite/rust_language.rs"),
        include_str!("../../../tests/suite/rust_methods.rs"),
        include_str!("../../../tests/suite/rust_papers.rs"),
        include_str!("../../../tests/suite/rust_values.rs"),
    ];
    let parsed = |text| syn::parse_file(text).expect("the suite parses").items;
    let functions: Vec<TokenStream> = (texts.into_iter().flat_map(parsed))
        .filter(|item| {
            matches!(
                item,
                syn::Item::Fn(_) | syn::Item::Struct(_) | syn::Item::Impl(_)
            )
        })
        .map(ToTokens::into_token_stream)
        .collect();
    let mut expanded = 0;
    for seed in 1..10_000u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut tokens = random.pick(&functions).clone();
        for _ in 0..=random.below(2) {
            tokens = mutated(tokens, &mut random);
        }
        feed(&tokens, &TokenStream::new());
        expanded += usize::from(syn::parse2::<syn::Item>(tokens).is_ok());
    }
    // Otherwise nothing but the parser of syn is tested.
    assert!(expanded > 1_000, "{expanded} of 10,000 mutants are items");
}
