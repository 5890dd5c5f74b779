//! What an editor finds at a name of the user's: what the user wrote, and nothing of a macro's.
//!
//! An editor that is asked about a name looks for it in what the macro has written, by its place in the source.
//! All that is at that place is shown; so no other name or keyword may be there.

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::{File, Item};

use crate::function::{Kind, expand};

/// What stands where the user wrote something else, and why an editor may show it.
const OTHER_WORDS: [(&str, &str); 2] = [
    // The type that it means.
    ("Self", "Pair"),
    // The bound that it means for kernels.
    ("KernelType", "DeviceType"),
];

const SOURCE: &str = r#"
#[kernel(launch_bounds(64))]
pub fn everything<T: Num, const N: usize>(
    a: T,
    mut by: f32,
    x: &[T],
    y: &mut [T],
    table: [f32; N],
    pairs: &mut [pairs::Pair],
    rows: Matrix<'_, usize>,
) {
    const LIMIT: usize = 4;
    let i = kiln::stdlib::global_id().x;
    let tile = shared!([f32; 64]);
    let (first, second) = (1.0, -2.5);
    by += first * second;
    let scale = |v: T| v * a;
    if i < y.len() && rows.data.len() > LIMIT {
        y[i] = scale(x[i]) + T::from_f64(0.5);
        tile[i] = table[0].max(by).sqrt();
        pairs[i] = Pair { left: 1.0, right: Pair::unit().total() };
        pairs[i].turn();
        y[i] = folded(x, |v| v * x[i]);
        y[i] = twice(y[i]) + twice(x[i]);
    }
    #[unroll(4)]
    for j in (0..N).rev() {
        let part = match j % 3 {
            0 => 1,
            1 | 2 if j > LIMIT => u32::max(j as u32, 7),
            _ => return,
        };
        atomic_add(&mut y[j], T::from_i32(part as i32));
    }
    let mut n = 3;
    while n > 0 {
        n -= 1;
        barrier();
    }
}

#[device_fn]
#[inline]
fn twice<T: Num>(v: T) -> T {
    let two = T::from_f64(2.0);
    v * two
}

#[device_fn]
fn held<V: KernelType>(v: &V) -> V {
    *v
}

#[device_fn]
fn folded<T: Num, F: Fn(T) -> T>(x: &[T], f: F) -> T {
    let mut sum = T::ZERO;
    for i in 0..x.len() {
        sum += f(x[i]);
    }
    sum
}

#[device_fn]
impl Pair {
    pub fn unit() -> Self {
        Self { left: 1.0, right: 0.0 }
    }

    fn total(&self) -> f32 {
        self.left + self.right.abs()
    }

    fn turn(&mut self) {
        let whole = self;
        let left = whole.left;
        whole.left = Self::unit().total();
        whole.right = left;
    }
}
"#;

const TYPES: &str = r#"
struct Pair {
    left: f32,
    right: [f32; 2],
}

struct Named(u32, Pair);
"#;

const VIEWS: &str = r#"
struct Matrix<'a, T> {
    data: &'a [T],
    columns: usize,
    inner: Inner<'a>,
}
"#;

#[test]
fn functions() {
    let file: File = syn::parse_str(SOURCE).expect("it is Rust");
    let mut written = TokenStream::new();
    for mut item in file.items {
        let attributes = match &mut item {
            Item::Fn(item) => &mut item.attrs,
            Item::Impl(item) => &mut item.attrs,
            _ => continue,
        };
        let of_kiln = attributes.remove(0);
        let kind = match of_kiln.path().is_ident("kernel") {
            true => Kind::Kernel,
            false => Kind::Device,
        };
        let arguments = match of_kiln.meta {
            syn::Meta::List(list) => list.tokens,
            _ => TokenStream::new(),
        };
        written.extend(expand(kind, arguments, quote::quote!(#item)));
    }
    check(SOURCE, written);
}

/// A type has the name of each device function. An editor that is asked about the declaration shows what is there
/// with that name, and is to show the function.
#[test]
fn a_device_function_is_declared_once() {
    for source in [
        "fn twice(v: f32) -> f32 { v + v }",
        "fn twice<F: Fn(f32) -> f32>(v: f32, f: F) -> f32 { f(v) }",
    ] {
        let tokens = source.parse().expect("it is Rust");
        let mut declared = 0;
        each_name(
            expand(Kind::Device, TokenStream::new(), tokens),
            &mut |name| {
                declared += usize::from(name == "twice" && !name.span().byte_range().is_empty());
            },
        );
        assert_eq!(declared, 1, "{source}");
    }
}

#[test]
fn a_kernel_as_an_expression() {
    const SOURCE: &str = "scale(x: &mut [f32], by: f32) { x[0] *= by.abs(); }";
    let tokens = SOURCE.parse().expect("it is Rust");
    check(SOURCE, crate::function::expand_expression(tokens));
}

#[test]
fn functions_of_elements() {
    for source in [
        "|v: f32| gelu(v.abs()) * scale + LIMIT",
        "gelu",
        "lib::gelu::<f32>",
    ] {
        let tokens = source.parse().expect("it is Rust");
        check(source, crate::elementwise::expand(tokens));
    }
}

#[test]
fn types_and_views() {
    let file: File = syn::parse_str(TYPES).expect("it is Rust");
    for item in file.items {
        check(
            TYPES,
            crate::derive::expand(quote::quote!(#[repr(C)] #item)),
        );
    }
    let enumeration = "#[repr(u16)] enum Kind { One, Two = 7 }";
    let tokens = enumeration.parse().expect("it is Rust");
    check(enumeration, crate::derive::expand(tokens));
    let tokens = VIEWS.parse().expect("it is Rust");
    check(VIEWS, crate::view::expand(tokens));
}

/// Each name that is at a place of the source is the word there.
fn check(source: &str, written: TokenStream) {
    let text = written.to_string();
    assert!(!text.contains("compile_error"), "it is refused: {text}");
    let mut misplaced = Vec::new();
    each_name(written, &mut |name| {
        let range = name.span().byte_range();
        let Some(word) = name.span().source_text().filter(|_| !range.is_empty()) else {
            return;
        };
        let name = name.to_string();
        let is_known = OTHER_WORDS.contains(&(word.as_str(), name.as_str())) // What rustc is to find out is no name.
            || name == "_";
        if word != name && !is_known {
            misplaced.push(format!(
                "`{name}` at `{word}` of {}",
                source_line(source, &word)
            ));
        }
    });
    assert!(misplaced.is_empty(), "{misplaced:#?}");
}

fn each_name(tokens: TokenStream, see: &mut dyn FnMut(Ident)) {
    for tree in tokens {
        match tree {
            TokenTree::Group(group) => each_name(group.stream(), see),
            TokenTree::Ident(name) => see(name),
            _ => {}
        }
    }
}

fn source_line<'s>(source: &'s str, word: &str) -> &'s str {
    let line = source.lines().find(|line| line.contains(word));
    line.unwrap_or_default().trim()
}
