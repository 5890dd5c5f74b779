//! Chains of iterators, `x.iter().map(|v| v * v).sum()`, and a `for` over one: written out as the loop that they are.
//!
//! ```text
//! x.iter().filter(|v| **v > 0).map(|v| v * v).sum::<u32>()
//!
//! { let mut sum: u32 = 0; for a in x.iter() { let v = &a; if **v > 0 { let v = a; let b = v * v; sum += b; } } sum }
//! ```
//! Both copies of a body, that which rustc checks and that which is described, are made of the loop. What it goes over
//! is what any `for` of a kernel goes over ([`crate::items`]). Three expressions stand for what has a type that rustc has to find
//! first: see [`crate::stand`]. `(a..b).contains(&v)`, which begins as a chain does, is written out here, too, as two comparisons.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::VisitMut;
use syn::{Block, Expr, ExprClosure, ExprForLoop, ExprMethodCall, Pat};

use crate::expression::strip;
use crate::items::{is_range, place_in_order};
use crate::scan::returns_inside;
use crate::stand::Stand;

/// Writes the chains of a body out; leaves one as it is that kernels do not have.
pub(crate) fn open(body: &mut Block) {
    Open::default().visit_block_mut(body);
}

#[derive(Default)]
struct Open {
    /// How many names there are.
    names: u32,
    /// What adapters of the chain that is written out count in: what declares it.
    counters: Vec<TokenStream>,
    /// What each turn of its loop begins with.
    at_start: Vec<TokenStream>,
}

/// The loop that a chain is written out as, and what stands before it.
struct Looped {
    before: Vec<TokenStream>,
    each: TokenStream,
}

impl ToTokens for Looped {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        tokens.extend(self.before.iter().cloned());
        self.each.to_tokens(tokens);
    }
}

impl VisitMut for Open {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        let written_out = match &*expr {
            Expr::MethodCall(call) => self.consumed(call).or_else(|| self.contained(call)),
            Expr::ForLoop(each) => self.each(each),
            _ => None,
        };
        if let Some(tokens) = written_out
            && let Ok(block) = syn::parse2(tokens)
        {
            *expr = block;
        }
        syn::visit_mut::visit_expr_mut(self, expr);
    }

    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
}

/// What is done with each item on its way.
enum Adapter<'e> {
    Copied,
    Map(&'e Expr),
    Filter(&'e Expr),
    FilterMap(&'e Expr),
    /// The values of options.
    Flatten,
    TakeWhile(&'e Expr),
    SkipWhile(&'e Expr),
    MapWhile(&'e Expr),
    Inspect(&'e Expr),
    Enumerate,
    Take(&'e Expr),
    Skip(&'e Expr),
    /// The numbers of a range beside the items, or before them.
    Numbered {
        range: syn::ExprRange,
        before: bool,
    },
    /// What is done with either part of an item before they are a pair.
    Zip(Vec<(Adapter<'e>, Span)>, Vec<(Adapter<'e>, Span)>),
}

impl Adapter<'_> {
    /// Whether as many items come out as go in, so that what is done with them may be done behind a `zip` as well.
    fn keeps_all(&self) -> bool {
        matches!(
            self,
            Adapter::Copied
                | Adapter::Map(_)
                | Adapter::Inspect(_)
                | Adapter::Enumerate
                | Adapter::Zip(..)
        )
    }
}

/// An iterator that a `for` goes over, and what is done with its items.
struct Chain<'e> {
    source: Expr,
    /// From the source on, each where it is named.
    adapters: Vec<(Adapter<'e>, Span)>,
}

/// The chain that an expression is, if it is one.
fn chain(expr: &Expr) -> Option<Chain<'_>> {
    if is_source(expr) {
        let adapters = Vec::new();
        return Some(Chain {
            source: expr.clone(),
            adapters,
        });
    }
    let Expr::MethodCall(call) = strip(expr) else {
        return None;
    };
    if call.method == "zip" && call.args.len() == 1 {
        return zipped(call);
    }
    let adapter = adapter(call)?;
    let mut chain = chain(&call.receiver)?;
    chain.adapters.push((adapter, call.method.span()));
    Some(chain)
}

/// `x.map(f).zip(y.map(g))`: both sources in step, and what is done with the items of each.
fn zipped(call: &ExprMethodCall) -> Option<Chain<'_>> {
    if let Some(chain) = numbered(call) {
        return Some(chain);
    }
    let (left, right) = (chain(&call.receiver)?, other_of_zip(call.args.first()?)?);
    let all_stay = left.adapters.iter().chain(&right.adapters);
    if !all_stay.map(|(adapter, _)| adapter).all(Adapter::keeps_all) {
        return None;
    }
    let mut both = call.clone();
    *both.receiver = left.source;
    both.args = std::iter::once(right.source).collect();
    let source = Expr::MethodCall(both);
    is_source(&source).then(|| Chain {
        source,
        adapters: vec![(
            Adapter::Zip(left.adapters, right.adapters),
            call.method.span(),
        )],
    })
}

/// `x.iter().zip(0..)`, `(0..n).zip(x)`: the items of one side, and numbers of the other that are counted beside them.
fn numbered(call: &ExprMethodCall) -> Option<Chain<'_>> {
    let at = call.method.span();
    let (left, right) = (chain(&call.receiver)?, other_of_zip(call.args.first()?)?);
    let (mut items, numbers, before) = match (numbers(&left.source), numbers(&right.source)) {
        (_, Some(range)) => (left, (range, right.adapters), false),
        (Some(range), None) => (right, (range, left.adapters), true),
        (None, None) => return None,
    };
    let (range, adapters) = numbers;
    if !adapters.iter().all(|(adapter, _)| adapter.keeps_all()) {
        return None;
    }
    let numbered = Adapter::Numbered { range, before };
    items.adapters.push((numbered, at));
    let (first, second) = match before {
        true => (adapters, Vec::new()),
        false => (Vec::new(), adapters),
    };
    items.adapters.push((Adapter::Zip(first, second), at));
    Some(items)
}

/// The range that a source is, if numbers can be counted by it.
fn numbers(source: &Expr) -> Option<syn::ExprRange> {
    match strip(source) {
        Expr::Range(range) if range.start.is_some() => match range.limits {
            syn::RangeLimits::HalfOpen(_) => Some(range.clone()),
            syn::RangeLimits::Closed(_) => None,
        },
        _ => None,
    }
}

/// What stands in the parentheses of `zip`: a chain, or what has elements itself.
fn other_of_zip(expr: &Expr) -> Option<Chain<'_>> {
    chain(expr).or_else(|| match strip(expr) {
        Expr::MethodCall(_) => None,
        _ => Some(Chain {
            source: expr.clone(),
            adapters: Vec::new(),
        }),
    })
}

/// Whether a `for` of a kernel goes over an expression, and nothing else does: a range in parentheses, or what begins
/// with `iter` or its kind.
fn is_source(expr: &Expr) -> bool {
    is_range(strip(expr)) || place_in_order(expr).is_some()
}

fn adapter(call: &ExprMethodCall) -> Option<Adapter<'_>> {
    let function = call.args.first();
    if call.args.len() > 1 || function.is_some_and(leaves) {
        return None;
    }
    Some(match (call.method.to_string().as_str(), function) {
        ("copied" | "cloned", None) => Adapter::Copied,
        ("map", Some(function)) => Adapter::Map(function),
        ("filter", Some(function)) => Adapter::Filter(function),
        ("filter_map", Some(function)) => Adapter::FilterMap(function),
        ("flatten", None) => Adapter::Flatten,
        ("take_while", Some(function)) => Adapter::TakeWhile(function),
        ("skip_while", Some(function)) => Adapter::SkipWhile(function),
        ("map_while", Some(function)) => Adapter::MapWhile(function),
        ("enumerate", None) => Adapter::Enumerate,
        ("take", Some(count)) => Adapter::Take(count),
        ("skip", Some(count)) => Adapter::Skip(count),
        ("inspect", Some(function)) => Adapter::Inspect(function),
        _ => return None,
    })
}

/// Whether a closure returns early, which a part of a loop cannot.
fn leaves(function: &Expr) -> bool {
    matches!(strip(function), Expr::Closure(closure) if returns_inside(&closure.body))
}

impl Open {
    /// A name that no user can write.
    fn name(&mut self, at: Span) -> Ident {
        self.names += 1;
        let span = Span::mixed_site().located_at(at);
        Ident::new(&format!("__kiln_item{}", self.names), span)
    }

    /// A `for` over a chain: over its source, the body in what is done with the items.
    fn each(&mut self, each: &ExprForLoop) -> Option<TokenStream> {
        let chain = chain(&each.expr)?;
        if chain.adapters.is_empty() {
            return None;
        }
        let (attrs, label, pattern, body) = (&each.attrs, &each.label, &each.pat, &each.body);
        let span = each.for_token.span();
        let Looped { before, each } =
            self.looped(&chain, span, |_, item| quote!(let #pattern = #item; #body));
        let each = quote!(#(#attrs)* #label #each);
        Some(match before.is_empty() {
            true => each,
            false => quote!({ #(#before)* #each }),
        })
    }

    /// What a call that consumes a chain is.
    fn consumed(&mut self, call: &ExprMethodCall) -> Option<TokenStream> {
        let chain = chain(&call.receiver)?;
        if call.args.iter().any(leaves) {
            return None;
        }
        let args: Vec<&Expr> = call.args.iter().collect();
        match (call.method.to_string().as_str(), args.as_slice()) {
            ("sum", []) => Some(self.summed(&chain, call, Stand::Zero, Stand::Added)),
            ("product", []) => Some(self.summed(&chain, call, Stand::One, Stand::Multiplied)),
            ("count", []) => Some(self.counted(&chain, call)),
            ("max", []) => Some(self.extreme(&chain, call, &quote!(>))),
            ("min", []) => Some(self.extreme(&chain, call, &quote!(<=))),
            ("any", [test]) => Some(self.tested(&chain, call, test, false)),
            ("all", [test]) => Some(self.tested(&chain, call, test, true)),
            ("find", [test]) => Some(self.found(&chain, call, test)),
            ("position", [test]) => Some(self.placed(&chain, call, test)),
            ("for_each", [function]) => {
                let looped = self.looped(&chain, call.span(), |this, item| {
                    let called = this.called(function, &[item]);
                    quote!(#called;)
                });
                Some(quote!({ #looped }))
            }
            ("last", []) => Some(self.last(&chain, call)),
            ("nth", [number]) => Some(self.nth(&chain, call, number)),
            ("reduce", [function]) => Some(self.reduced(&chain, call, function)),
            ("max_by_key", [key]) => Some(self.extreme_by_key(&chain, call, key, &quote!(>))),
            ("min_by_key", [key]) => Some(self.extreme_by_key(&chain, call, key, &quote!(<=))),
            ("max_by", [compare]) => Some(self.extreme_by(&chain, call, compare, false)),
            ("min_by", [compare]) => Some(self.extreme_by(&chain, call, compare, true)),
            ("fold", [start, function]) => Some(self.folded(&chain, call, start, function)),
            _ => None,
        }
    }

    fn summed(
        &mut self,
        chain: &Chain<'_>,
        call: &ExprMethodCall,
        start: Stand,
        step: Stand,
    ) -> TokenStream {
        let at = call.method.span();
        let (sum, start, step) = (self.name(at), start.name(at), step.name(at));
        let ty = match &call.turbofish {
            Some(list) => {
                let args = &list.args;
                quote!(: #args)
            }
            None => TokenStream::new(),
        };
        let looped = self.looped(
            chain,
            at,
            |_, item| quote_spanned!(at=> #sum = #step(#sum, #item);),
        );
        quote_spanned!(at=> { let mut #sum #ty = #start; #looped #sum })
    }

    fn counted(&mut self, chain: &Chain<'_>, call: &ExprMethodCall) -> TokenStream {
        let at = call.method.span();
        let count = self.name(at);
        let looped = self.looped(chain, at, |_, _| quote_spanned!(at=> #count += 1;));
        quote_spanned!(at=> { let mut #count: usize = 0; #looped #count })
    }

    /// The largest or the smallest: of several the last, or the first, as Rust has it.
    fn extreme(
        &mut self,
        chain: &Chain<'_>,
        call: &ExprMethodCall,
        stays: &TokenStream,
    ) -> TokenStream {
        let at = call.method.span();
        let (best, other) = (self.name(at), self.name(at));
        let ordered = Stand::Ordered.name(at);
        let looped = self.looped(chain, at, |_, item| {
            quote_spanned! {at=>
                #best = Some(match #best {
                    Some(#other) => if #ordered(#other) #stays #item { #other } else { #item },
                    None => #item,
                });
            }
        });
        quote_spanned!(at=> { let mut #best = None; #looped #best })
    }

    /// `any`, or `all` if the flag is set.
    fn tested(
        &mut self,
        chain: &Chain<'_>,
        call: &ExprMethodCall,
        test: &Expr,
        all: bool,
    ) -> TokenStream {
        let at = call.method.span();
        let (answer, decided) = (self.name(at), !all);
        let not = all.then(|| quote!(!));
        let looped = self.looped(chain, at, |this, item| {
            let test = this.called(test, &[item]);
            quote_spanned!(at=> if #not #test { #answer = #decided; break; })
        });
        quote_spanned!(at=> { let mut #answer = #all; #looped #answer })
    }

    fn found(&mut self, chain: &Chain<'_>, call: &ExprMethodCall, test: &Expr) -> TokenStream {
        let at = call.method.span();
        let found = self.name(at);
        let looped = self.looped(chain, at, |this, item| {
            let test = this.asked(test, item);
            quote_spanned!(at=> if #test { #found = Some(#item); break; })
        });
        quote_spanned!(at=> { let mut #found = None; #looped #found })
    }

    fn placed(&mut self, chain: &Chain<'_>, call: &ExprMethodCall, test: &Expr) -> TokenStream {
        let at = call.method.span();
        let (place, count) = (self.name(at), self.name(at));
        let looped = self.looped(chain, at, |this, item| {
            let test = this.called(test, &[item]);
            quote_spanned!(at=> if #test { #place = Some(#count); break; } #count += 1;)
        });
        quote_spanned! {at=>
            { let mut #place = None; let mut #count: usize = 0; #looped #place }
        }
    }

    fn folded(
        &mut self,
        chain: &Chain<'_>,
        call: &ExprMethodCall,
        start: &Expr,
        function: &Expr,
    ) -> TokenStream {
        let at = call.method.span();
        let value = self.name(at);
        let looped = self.looped(chain, at, |this, item| {
            let next = this.called(function, &[&value, item]);
            quote_spanned!(at=> #value = #next;)
        });
        quote_spanned!(at=> { let mut #value = #start; #looped #value })
    }

    fn last(&mut self, chain: &Chain<'_>, call: &ExprMethodCall) -> TokenStream {
        let at = call.method.span();
        let last = self.name(at);
        let looped = self.looped(
            chain,
            at,
            |_, item| quote_spanned!(at=> #last = Some(#item);),
        );
        quote_spanned!(at=> { let mut #last = None; #looped #last })
    }

    fn nth(&mut self, chain: &Chain<'_>, call: &ExprMethodCall, number: &Expr) -> TokenStream {
        let at = call.method.span();
        let (found, left) = (self.name(at), self.name(at));
        let looped = self.looped(chain, at, |_, item| {
            quote_spanned!(at=> if #left == 0 { #found = Some(#item); break; } #left -= 1;)
        });
        quote_spanned!(at=> { let mut #found = None; let mut #left: usize = #number; #looped #found })
    }

    fn reduced(
        &mut self,
        chain: &Chain<'_>,
        call: &ExprMethodCall,
        function: &Expr,
    ) -> TokenStream {
        let at = call.method.span();
        let (value, other) = (self.name(at), self.name(at));
        let looped = self.looped(chain, at, |this, item| {
            let next = this.called(function, &[&other, item]);
            let alike = Stand::Alike.name(at);
            quote_spanned! {at=>
                let #item = #alike(#item, #value);
                #value = Some(match #value {
                    None => #item,
                    Some(#other) => #next,
                });
            }
        });
        quote_spanned!(at=> { let mut #value = None; #looped #value })
    }

    /// The item whose key is the largest or the smallest: of several the last, or the first, as Rust has it.
    fn extreme_by_key(
        &mut self,
        chain: &Chain<'_>,
        call: &ExprMethodCall,
        key: &Expr,
        stays: &TokenStream,
    ) -> TokenStream {
        let at = call.method.span();
        let [best, kept, one, own] = [(); 4].map(|()| self.name(at));
        let ordered = Stand::Ordered.name(at);
        let looped = self.looped(chain, at, |this, item| {
            let key = this.asked(key, item);
            quote_spanned! {at=>
                let #own = #key;
                let #one = match #kept {
                    Some(#one) => #ordered(#one) #stays #own,
                    None => false,
                };
                if !#one {
                    #kept = Some(#own);
                    #best = Some(#item);
                }
            }
        });
        quote_spanned! {at=>
            { let mut #kept = None; let mut #best = None; #looped #best }
        }
    }

    /// The item that is the largest or the `least` by a comparison: of several the last, or the first, as Rust has it.
    fn extreme_by(
        &mut self,
        chain: &Chain<'_>,
        call: &ExprMethodCall,
        compare: &Expr,
        least: bool,
    ) -> TokenStream {
        let at = call.method.span();
        let (best, other) = (self.name(at), self.name(at));
        let looped = self.looped(chain, at, |this, item| {
            let compared = this.asked_of(compare, &[&other, item]);
            let alike = Stand::Alike.name(at);
            let (greater, else_) = match least {
                true => (item, &other),
                false => (&other, item),
            };
            quote_spanned! {at=>
                let #item = #alike(#item, #best);
                #best = Some(match #best {
                    None => #item,
                    Some(#other) => match #compared {
                        ::core::cmp::Ordering::Greater => #greater,
                        _ => #else_,
                    },
                });
            }
        });
        quote_spanned!(at=> { let mut #best = None; #looped #best })
    }

    /// `(a..b).contains(&v)`: the comparisons that it is.
    fn contained(&mut self, call: &ExprMethodCall) -> Option<TokenStream> {
        let (Expr::Range(range), Some(item)) = (strip(&call.receiver), call.args.first()) else {
            return None;
        };
        if call.method != "contains" || call.args.len() != 1 {
            return None;
        }
        let at = call.method.span();
        let [low, high, value] = [(); 3].map(|()| self.name(at));
        let item = match strip(item) {
            Expr::Reference(reference) => (*reference.expr).clone(),
            item => syn::parse_quote!(*#item),
        };
        let bound = |name: &Ident, end: &Option<Box<Expr>>| {
            end.as_ref().map(|end| quote!(let #name = #end;))
        };
        let (lows, highs) = (bound(&low, &range.start), bound(&high, &range.end));
        let above = (lows.is_some()).then(|| quote_spanned!(at=> #low <= #value));
        let below = (highs.is_some()).then(|| match range.limits {
            syn::RangeLimits::HalfOpen(_) => quote_spanned!(at=> #value < #high),
            syn::RangeLimits::Closed(_) => quote_spanned!(at=> #value <= #high),
        });
        let both = above
            .into_iter()
            .chain(below)
            .reduce(|a, b| quote!(#a && #b));
        let both = both.unwrap_or_else(|| quote!(true));
        Some(quote_spanned!(at=> { #lows #highs let #value = #item; #both }))
    }

    /// The loop, and what is done with each item that comes to the end.
    fn looped(
        &mut self,
        chain: &Chain<'_>,
        at: Span,
        end: impl FnOnce(&mut Self, &Ident) -> TokenStream,
    ) -> Looped {
        // Without the parentheses that a method needs.
        let (item, source) = (self.name(at), strip(&chain.source));
        let around = (
            std::mem::take(&mut self.counters),
            std::mem::take(&mut self.at_start),
        );
        let mut end = Some(end);
        let body = self.through(&chain.adapters, &item, &mut |this, item| {
            end.take().map(|end| end(this, item)).unwrap_or_default()
        });
        let before = std::mem::replace(&mut self.counters, around.0);
        let at_start = std::mem::replace(&mut self.at_start, around.1);
        let token = syn::Token![for](at);
        let each = quote!(#token #item in #source { #(#at_start)* #body });
        Looped { before, each }
    }

    /// What is done with an item.
    // flat match
    fn through(
        &mut self,
        adapters: &[(Adapter<'_>, Span)],
        item: &Ident,
        end: &mut dyn FnMut(&mut Self, &Ident) -> TokenStream,
    ) -> TokenStream {
        let Some(((adapter, at), rest)) = adapters.split_first() else {
            return end(self, item);
        };
        match adapter {
            Adapter::Copied => {
                let (next, copy) = (self.name(*at), quote_spanned!(*at=> *#item));
                let rest = self.through(rest, &next, end);
                quote!(let #next = #copy; #rest)
            }
            Adapter::Map(function) => {
                let (next, mapped) = (self.name(*at), self.called(function, &[item]));
                let rest = self.through(rest, &next, end);
                quote!(let #next = #mapped; #rest)
            }
            Adapter::Filter(function) => {
                let test = self.asked(function, item);
                let rest = self.through(rest, item, end);
                quote_spanned!(*at=> if #test { #rest })
            }
            Adapter::FilterMap(function) => {
                let (next, mapped) = (self.name(*at), self.called(function, &[item]));
                let rest = self.through(rest, &next, end);
                quote_spanned!(*at=> if let Some(#next) = #mapped { #rest })
            }
            Adapter::Flatten => {
                let next = self.name(*at);
                let rest = self.through(rest, &next, end);
                quote_spanned!(*at=> if let Some(#next) = #item { #rest })
            }
            Adapter::TakeWhile(function) => {
                let test = self.asked(function, item);
                let rest = self.through(rest, item, end);
                quote_spanned!(*at=> if !#test { break; } #rest)
            }
            Adapter::SkipWhile(function) => {
                let (skipping, test) = (self.name(*at), self.asked(function, item));
                self.counters
                    .push(quote_spanned!(*at=> let mut #skipping = true;));
                let rest = self.through(rest, item, end);
                quote_spanned!(*at=> #skipping = #skipping && #test; if !#skipping { #rest })
            }
            Adapter::MapWhile(function) => {
                let (next, mapped) = (self.name(*at), self.called(function, &[item]));
                let rest = self.through(rest, &next, end);
                let value = self.name(*at);
                quote_spanned! {*at=>
                    let #next = match #mapped { Some(#value) => #value, None => break };
                    #rest
                }
            }
            Adapter::Enumerate => {
                let (next, count) = (self.name(*at), self.name(*at));
                self.counters
                    .push(quote_spanned!(*at=> let mut #count: usize = 0;));
                let rest = self.through(rest, &next, end);
                quote_spanned!(*at=> let #next = (#count, #item); #count += 1; #rest)
            }
            Adapter::Numbered { range, before } => {
                self.numbered(range, *before, *at, item, |this, next| {
                    this.through(rest, next, end)
                })
            }
            Adapter::Take(number) => {
                let left = self.name(*at);
                self.counters
                    .push(quote_spanned!(*at=> let mut #left: usize = #number;));
                // Before an item is asked for, whatever leads to the next turn.
                self.at_start
                    .push(quote_spanned!(*at=> if #left == 0 { break; }));
                let rest = self.through(rest, item, end);
                quote_spanned!(*at=> #left -= 1; #rest)
            }
            Adapter::Skip(number) => {
                let left = self.name(*at);
                self.counters
                    .push(quote_spanned!(*at=> let mut #left: usize = #number;));
                let rest = self.through(rest, item, end);
                quote_spanned!(*at=> if #left > 0 { #left -= 1; } else { #rest })
            }
            Adapter::Zip(first, second) => {
                let [next, left, right] = [(); 3].map(|()| self.name(*at));
                let pair = self.through(first, &left, &mut |this, one| {
                    this.through(second, &right, &mut |this, other| {
                        let rest = this.through(rest, &next, end);
                        quote!(let #next = (#one, #other); #rest)
                    })
                });
                quote!(let (#left, #right) = #item; #pair)
            }
            Adapter::Inspect(function) => {
                let seen = self.asked(function, item);
                let rest = self.through(rest, item, end);
                quote_spanned!(*at=> #seen; #rest)
            }
        }
    }

    /// An item beside a number that is counted: `before` it, then the numbers are the first to end.
    fn numbered(
        &mut self,
        range: &syn::ExprRange,
        before: bool,
        at: Span,
        item: &Ident,
        rest: impl FnOnce(&mut Self, &Ident) -> TokenStream,
    ) -> TokenStream {
        let [next, count, last] = [(); 3].map(|()| self.name(at));
        let (start, end) = (&range.start, &range.end);
        self.counters
            .push(quote_spanned!(at=> let mut #count = #start;));
        let ends = end.as_ref().map(|end| {
            self.counters.push(quote_spanned!(at=> let #last = #end;));
            quote_spanned!(at=> if #count >= #last { break; })
        });
        let (pair, here) = match before {
            true => {
                self.at_start.extend(ends);
                (quote!((#count, #item)), None)
            }
            false => (quote!((#item, #count)), ends),
        };
        let rest = rest(self, &next);
        quote_spanned!(at=> #here let #next = #pair; #count += 1; #rest)
    }

    /// A function of items, called.
    fn called(&mut self, function: &Expr, items: &[&Ident]) -> TokenStream {
        match strip(function) {
            Expr::Closure(closure) if closure.inputs.len() == items.len() => {
                let bound = closure.inputs.iter().zip(items);
                let bound = bound.map(|(pattern, item)| quote!(let #pattern = #item;));
                body_of(closure, quote!(#(#bound)*))
            }
            function => quote!(#function(#(#items),*)),
        }
    }

    /// A function of a reference to an item, called.
    fn asked(&mut self, function: &Expr, item: &Ident) -> TokenStream {
        self.asked_of(function, &[item])
    }

    /// A function of references to items, called. A pattern that takes the reference away again needs none.
    fn asked_of(&mut self, function: &Expr, items: &[&Ident]) -> TokenStream {
        match strip(function) {
            Expr::Closure(closure) if closure.inputs.len() == items.len() => {
                let bound = closure
                    .inputs
                    .iter()
                    .zip(items)
                    .map(|(pattern, item)| match pattern {
                        Pat::Reference(pattern) if pattern.mutability.is_none() => {
                            let pattern = &pattern.pat;
                            quote!(let #pattern = #item;)
                        }
                        pattern => quote!(let #pattern = &#item;),
                    });
                body_of(closure, quote!(#(#bound)*))
            }
            function => quote!(#function(#(&#items),*)),
        }
    }
}

/// The body of a closure behind what binds its parameters.
fn body_of(closure: &ExprClosure, bound: TokenStream) -> TokenStream {
    let body = &closure.body;
    match &closure.output {
        syn::ReturnType::Default => quote!({ #bound #body }),
        syn::ReturnType::Type(_, ty) => {
            quote!({ #bound let __kiln_result: #ty = #body; __kiln_result })
        }
    }
}
