//! Calls of functions, methods and macros.

use kiln_description::{Code, Len, Op, TypeOp, method_name};
use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote_spanned;
use syn::spanned::Spanned;
use syn::{Expr, ExprCall, ExprMethodCall, GenericArgument, Macro, PathArguments, Type};

use crate::body::{Translator, plain_name};
use crate::checked::{marked, marked_method};
use crate::dispatch::{Dispatched, or_of_traits};
use crate::function::{Kind, root_at};
use crate::numbers::is_one_for_all;
use crate::option::is_some;
use crate::pool::front;
use crate::position::{Start, before, last_of, until};
use crate::refusal::{host_macro, host_type, may_be_own, method};

/// The numbers of Rust, which have functions like `u32::from`.
pub(crate) const NUMBERS: &[&str] = &[
    "i8", "i16", "i32", "i64", "isize", "u8", "u16", "u32", "u64", "usize", "f32", "f64",
];

/// Whether a call is `T::default()`, which is a value of the host's where the type has no such function in kernels.
fn is_default(name: &Ident, call: &ExprCall) -> bool {
    name == "default" && call.args.is_empty()
}

/// Whether a call is `Default::default()`, of a type that rustc finds.
pub(crate) fn is_any_default(call: &ExprCall) -> bool {
    let Expr::Path(function) = crate::expression::strip(&call.func) else {
        return false;
    };
    let mut names = function.path.segments.iter().rev();
    let mut next_is = |name: &str| names.next().is_some_and(|last| last.ident == name);
    function.qself.is_none() && call.args.is_empty() && next_is("default") && next_is("Default")
}

impl Translator<'_> {
    // flat match
    pub(crate) fn call(&mut self, call: &ExprCall) -> Code {
        let (of, function) = match marked(&call.func) {
            Some((of, function)) => (Some(of), function),
            None => (None, crate::expression::strip(&call.func)),
        };
        let Expr::Path(function) = function else {
            return self.refuse(
                &call.func,
                "a kernel calls functions and closures by their names; write `let f = ..;` or a \
                 `#[device_fn]` for this",
            );
        };
        if function.qself.is_some() {
            return self.refuse(
                function,
                "kernels do not call functions of traits; write a `#[device_fn]`",
            );
        }
        if let Some(name) = function.path.get_ident()
            && self.name.as_ref() == Some(name)
        {
            let message = match self.kind {
                Kind::Kernel => "a kernel cannot call itself; kernels are launched by the host",
                Kind::Device => {
                    "a device function cannot call itself, as threads have no stack to speak of; \
                     write a loop"
                }
            };
            return self.refuse(name, message);
        }
        let segments: Vec<&Ident> = function.path.segments.iter().map(|s| &s.ident).collect();
        match segments.as_slice() {
            [ty, name] if is_default(name, call) && self.is_type_param(ty) => {
                let ty = self.host_type(ty);
                self.op(Op::Zero, call.start()).code(&ty)
            }
            [ty, name] if is_default(name, call) && is_number(ty) => {
                self.constant(&quote_spanned!(function.span()=> #function()), call.start())
            }
            [ty, name] if is_conversion(name) && self.is_type_param(ty) => {
                self.conversion(Op::Convert, call, ty)
            }
            [ty, name] if is_conversion(name) && is_number(ty) => {
                self.conversion(Op::Cast, call, ty)
            }
            [ty, name] if *name == "try_from" && is_number(ty) => {
                self.refuse(name, method("try_from").unwrap_or_default())
            }
            [ty, _] if self.is_type_param(ty) || is_number(ty) => {
                self.call_of_type(call, of, function)
            }
            [ty, ..] if segments.len() > 1 && of_host(ty).is_some() => {
                let message = of_host(ty).unwrap_or_default();
                self.refuse(function, message)
            }
            [name] if self.is_closure(name) => self.call_of_closure(call, name),
            _ if is_some(&function.path) => self.some(call),
            [.., ty, _] if is_half(ty) || ty.to_string().starts_with(char::is_uppercase) => {
                self.call_of_type(call, of, function)
            }
            _ => self.call_of_function(call, of, function),
        }
    }

    /// `Complex::new(a, b)`: what rustc has found for the path in the checked copy.
    fn call_of_type(
        &mut self,
        call: &ExprCall,
        of: Option<&Ident>,
        function: &syn::ExprPath,
    ) -> Code {
        if let Some(message) = function.path.segments.iter().rev().nth(1)
            && let Some(message) = of_host(&message.ident)
        {
            return self.refuse(function, message);
        }
        if let Some(argument) = call.args.iter().find(|arg| self.closure_argument(arg)) {
            return self.refuse(argument, crate::refusal::CLOSURE_TO_METHOD);
        }
        let span = call.start();
        let mut path = function.path.clone();
        let Some(last) = path.segments.last_mut() else {
            return Code::new(Op::Unit, None);
        };
        let types = self.type_args(&last.arguments, false);
        let (name, is_default) = (number_of(&last.ident), is_default(&last.ident, call));
        last.ident = Ident::new("__kiln_named", before(last.ident.span()));
        last.arguments = PathArguments::None;
        let open = quote_spanned!(span=> _);
        let root = root_at(span);
        let found = quote_spanned!(before(span)=> #path::<#name, _>(&#of).entry());
        let first = path.segments.first().map(|first| &first.ident);
        let dispatched = (self.dispatched.iter()).filter(|of| Some(&of.name) == first);
        let found = or_of_traits(
            found,
            &name,
            false,
            &dispatched.cloned().collect::<Vec<_>>(),
        );
        let entry = match is_default {
            true => {
                let front = front();
                quote_spanned!(before(span)=> <#open as #root::HasDefault>::pooled_default(#found, #front))
            }
            false => quote_spanned!(before(span)=> <#open as #root::HasFunction>::pooled(#found)),
        };
        let entry = self.pool.entry(&entry);
        let args = self.eager_list(call.args.iter());
        self.call_entry(call, entry, &types, &args)
    }

    /// `Default::default()` of the type that rustc has found.
    pub(crate) fn any_default(&mut self, call: &ExprCall, of: &Ident) -> Code {
        let (span, front) = (call.start(), front());
        let (root, open) = (root_at(span), quote_spanned!(span=> _));
        let entry = quote_spanned! {before(span)=>
            <#open as #root::HasDefault>::pooled_default(#root::default_of(&#of).entry(), #front)
        };
        let entry = self.pool.entry(&entry);
        self.call_entry(call, entry, &[], &[])
    }

    /// The description of a call of a function, by its name, with all variables.
    pub(crate) fn call_of_all(&mut self, path: &syn::Path, types: &[Code]) -> TokenStream {
        let (root, import, callee) = (root_at(path.span()), import(path), callee(path));
        let entry = quote_spanned! {before(path.span())=>
            { #import <#callee as #root::Callable>::pooled() }
        };
        let code = self.op(Op::CallWithAll, path.span());
        let code = code.number(self.pool.entry(&entry)).list(types);
        self.data(self.with_header(&code))
    }

    /// A call of the function that an entry of the pool is.
    fn call_entry(&self, call: &ExprCall, entry: u32, types: &[Code], args: &[Code]) -> Code {
        let code = self.op(Op::Call, call.start()).number(entry);
        code.list(types).list(args)
    }

    fn call_of_function(
        &mut self,
        call: &ExprCall,
        of: Option<&Ident>,
        function: &syn::ExprPath,
    ) -> Code {
        let span = call.start();
        let mut path = function.path.clone();
        let takes_closures = call.args.iter().any(|arg| self.closure_argument(arg));
        let (mut types, mut consts) = (Vec::new(), Vec::new());
        let mut written = TokenStream::new();
        if let Some(last) = path.segments.last_mut() {
            consts = self.take_const_args(&mut last.arguments);
            types = self.type_args(&last.arguments, takes_closures);
            written = written_types(&last.arguments);
            last.arguments = PathArguments::None;
        }
        if takes_closures {
            return self.call_with_closures(call, &path, &types, &consts);
        }
        let args = self.eager_list(call.args.iter());
        let entry = callee_entry(of, &path, &written, span);
        let entry = match of.is_some() && !is_one_for_all(&path) {
            true => self.pool.entry(&entry),
            false => self.pool.entry_for(&path, || entry),
        };
        let code = match consts.is_empty() {
            true => self.call_entry(call, entry, &types, &args),
            false => {
                let code = self.op(Op::CallWithConsts, call.start()).number(entry);
                code.list(&types).consts(&consts).list(&args)
            }
        };
        match function.path.segments.last() {
            Some(last) if last.ident == "assume" => {
                let text = as_written(call);
                self.op(Op::Written, span).text(&text).code(&code)
            }
            _ => code,
        }
    }

    /// Takes the const arguments out of a list: literals, blocks, const parameters, and constants by their names in
    /// capitals.
    fn take_const_args(&mut self, arguments: &mut PathArguments) -> Vec<Len> {
        let PathArguments::AngleBracketed(arguments) = arguments else {
            return Vec::new();
        };
        let mut consts = Vec::new();
        let all = std::mem::take(&mut arguments.args);
        for argument in all {
            match self.const_argument(&argument) {
                None => arguments.args.push(argument),
                Some(value) => consts.push(self.const_value(&value)),
            }
        }
        consts
    }

    fn const_value(&mut self, value: &Expr) -> Len {
        let name = match value {
            Expr::Path(path) => path.path.get_ident(),
            _ => None,
        };
        match name.and_then(|name| self.const_param(name)) {
            Some((number, _)) => Len::Param(number),
            None => Len::Pooled(self.constant_entry(value)),
        }
    }

    /// The value of an argument that is const. A name may be that of a type; of what looks like none rustc tells if it
    /// is one.
    fn const_argument(&self, argument: &GenericArgument) -> Option<Expr> {
        match argument {
            GenericArgument::Const(Expr::Block(block)) => match block.block.stmts.as_slice() {
                [syn::Stmt::Expr(value, None)] => Some(value.clone()),
                _ => None,
            },
            GenericArgument::Const(value) => Some(value.clone()),
            GenericArgument::Type(Type::Path(path)) if path.qself.is_none() => {
                let last = path.path.segments.last()?;
                let name = last.ident.to_string();
                let in_capitals = name.len() > 1 && !name.contains(char::is_lowercase);
                let is_const = in_capitals || self.const_param(&last.ident).is_some();
                (is_const && last.arguments.is_none()).then(|| {
                    Expr::Path(syn::ExprPath {
                        attrs: Vec::new(),
                        qself: None,
                        path: path.path.clone(),
                    })
                })
            }
            _ => None,
        }
    }

    fn type_args(&mut self, arguments: &PathArguments, open: bool) -> Vec<Code> {
        let PathArguments::AngleBracketed(arguments) = arguments else {
            return Vec::new();
        };
        let mut types = Vec::new();
        for argument in &arguments.args {
            match argument {
                GenericArgument::Type(Type::Infer(_)) if open => {
                    types.push(Code::ty(TypeOp::Unit));
                }
                GenericArgument::Type(Type::Infer(token)) => {
                    self.refuse(token, "write the type here, or leave the list out");
                }
                GenericArgument::Type(ty) => types.push(self.ty(ty)),
                GenericArgument::Lifetime(_) => {}
                other => {
                    self.refuse(
                        other,
                        "const arguments are those of free functions, `f::<4>(x)`; pass the number as a value",
                    );
                }
            }
        }
        types
    }

    /// `T::from_f64(x)`, `u32::from(x)`.
    fn conversion(&mut self, op: Op, call: &ExprCall, ty: &Ident) -> Code {
        let args = self.eager_list(call.args.iter());
        let ty = self.host_type(ty);
        match args.as_slice() {
            [number] => self.op(op, call.start()).code(number).code(&ty),
            // rustc says what is wrong.
            _ => Code::new(Op::Unit, None),
        }
    }

    /// `x.cast::<T>()`.
    pub(crate) fn cast(&mut self, call: &ExprMethodCall) -> Code {
        let receiver = self.expr(&call.receiver);
        let types = call
            .turbofish
            .as_ref()
            .map(|list| self.type_args(&PathArguments::AngleBracketed(list.clone()), false));
        match types.as_deref() {
            Some([ty]) => self.op(Op::Cast, call.start()).code(&receiver).code(ty),
            _ => self.refuse(&call.method, "write the type: `x.cast::<f32>()`"),
        }
    }

    /// `x.norm(y)`: what rustc has found for the receiver in the checked copy.
    pub(crate) fn method_call(&mut self, of: &Ident, call: &ExprMethodCall) -> Code {
        let name = plain_name(&call.method);
        if let Some(message) = refused_method(call, &name) {
            return self.refuse(&call.method, message);
        }
        if let Some(part) = self.part_if_there(call, &name) {
            return part;
        }
        // The position of the call is that of its receiver, as everywhere.
        let span = call.start();
        let Some(entry) = self.methods.entry(of) else {
            return Code::new(Op::Unit, None);
        };
        let receiver = self.receiver(&call.receiver);
        if call.args.iter().any(|arg| self.closure_argument(arg)) {
            return self.method_with_closures(call, entry, receiver);
        }
        let may_change = self.methods.change_in(&call.args);
        let is_place = crate::checked::is_place(&call.receiver);
        let expected = crate::option::expected(call);
        if call.method == "expect" && expected.is_none() {
            return self.refuse(
                &call.args,
                "the message of `expect` in a kernel is a text, `expect(\"..\")`",
            );
        }
        let args = match expected {
            Some(_) => Vec::new(),
            None => self.eager_list(call.args.iter()),
        };
        let types = call
            .turbofish
            .as_ref()
            .map(|list| self.type_args(&PathArguments::AngleBracketed(list.clone()), false))
            .unwrap_or_default();
        let code = self.op(Op::CallMethod, span).number(entry);
        let code = code.flag(is_place).when(&may_change).code(&receiver);
        let code = code.list(&types).list(&args);
        match expected {
            Some(text) => self.op(Op::Written, span).text(&text).code(&code),
            None => code,
        }
    }

    /// `x.get(a..b)`, `x.get_mut(a..b)`.
    fn part_if_there(&mut self, call: &ExprMethodCall, name: &str) -> Option<Code> {
        let Expr::Range(range) = crate::expression::strip(call.args.first()?) else {
            return None;
        };
        if name != "get" && name != "get_mut" {
            return None;
        }
        let inclusive = matches!(range.limits, syn::RangeLimits::Closed(_));
        let base = self.receiver(&call.receiver);
        let (from, to) = self.ends(range);
        let code = self.op(Op::PartIf, call.start());
        let code = code.flag(name == "get_mut").flag(inclusive).code(&base);
        Some(code.option(from.as_ref()).option(to.as_ref()))
    }

    /// What a method is called on. A part of a slice is one that the method may change; rustc says if it may not.
    pub(crate) fn receiver(&mut self, receiver: &Expr) -> Code {
        if let Expr::Index(index) = crate::expression::strip(receiver)
            && let Expr::Range(range) = crate::expression::strip(&index.index)
        {
            return self.nested(receiver, |this| this.part(index, range, true));
        }
        self.expr(receiver)
    }

    /// `x.map(|v| ..)`: what takes closures is described in place of the call.
    fn method_with_closures(&mut self, call: &ExprMethodCall, entry: u32, receiver: Code) -> Code {
        let (closures, values): (Vec<&Expr>, Vec<&Expr>) =
            call.args.iter().partition(|arg| self.closure_argument(arg));
        let receiver = self.op(Op::Eager, call.start()).code(&receiver);
        let mut args = vec![receiver];
        args.extend(self.eager_list(values.into_iter()));
        let closures: Vec<Code> = closures
            .into_iter()
            .map(|c| self.closure_value(c))
            .collect();
        let code = self.op(Op::CallMethodInline, call.start()).number(entry);
        code.list(&[]).list(&args).list(&closures)
    }

    /// `shared!(T)`; other macros are refused.
    pub(crate) fn macro_call(&mut self, call: &Macro, name: Option<&Ident>) -> Code {
        let Some(last) = call.path.segments.last() else {
            return Code::new(Op::Unit, None);
        };
        if let Some(error) = crate::panic::refusal(call) {
            self.refusals.add(error);
            return Code::new(Op::Unit, None);
        }
        if last.ident != "shared" {
            return self.refuse(&call.path, host_macro(&last.ident.to_string()));
        }
        match syn::parse2::<Type>(call.tokens.clone()) {
            Ok(ty) => {
                crate::types::check_type(&ty, self.refusals);
                let text = name.map_or_else(|| "shared".to_owned(), plain_name);
                let ty = self.ty(&ty);
                self.op(Op::Shared, call.path.span()).text(&text).code(&ty)
            }
            Err(_) => self.refuse(
                &call.path,
                "`shared!` takes a type: `let tile = shared!([f32; 256]);`",
            ),
        }
    }
}

/// The entry of a pool for a function, by the type that rustc has found for it; of a call that is not marked, by its name.
fn callee_entry(
    of: Option<&Ident>,
    path: &syn::Path,
    written: &TokenStream,
    span: proc_macro2::Span,
) -> TokenStream {
    let (root, import, callee) = (root_at(span), import(path), callee(path));
    match of {
        Some(of) => {
            let name = quote_spanned!(before(span)=> <#callee>::in_kernels);
            // As long as the path is: what rustc says of it, it says of the path.
            let name = until(last_of(path), name);
            quote_spanned! {before(span)=>
                {
                    #import
                    #[allow(unused_imports, reason = "it is used where a function is one for all types")]
                    use #root::AnyFunction as _;
                    #name(&#of, #root::TypeOf::<(#written)>::OPEN)
                }
            }
        }
        // A function whose name a variable has, too, or that is called before.
        None => quote_spanned! {before(span)=>
            { #import <#callee as #root::Callable>::pooled() }
        },
    }
}

/// The types in a list, each with a comma, if all are written.
fn written_types(arguments: &PathArguments) -> TokenStream {
    let PathArguments::AngleBracketed(arguments) = arguments else {
        return TokenStream::new();
    };
    let types = arguments.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    });
    let types: Vec<&Type> = types.collect();
    match types.iter().any(|ty| crate::types::is_open(ty)) {
        true => TokenStream::new(),
        false => quote::quote!(#(#types,)*),
    }
}

/// What to say about a function of a type of the host's.
fn of_host(ty: &Ident) -> Option<&'static str> {
    let name = ty.to_string();
    host_type(&name).filter(|_| !may_be_own(&name))
}

/// Whether a name is one of a number, whatever it has been before.
pub(crate) fn is_number(name: &Ident) -> bool {
    NUMBERS.iter().any(|number| name == number)
}

/// Whether a name is one of the 16-bit floats, which are types of a crate.
pub(crate) fn is_half(name: &Ident) -> bool {
    name == "f16" || name == "bf16"
}

/// Whether a function of a number with this name makes it of another.
pub(crate) fn is_conversion(name: &Ident) -> bool {
    ["from", "from_f64", "from_i32"].iter().any(|n| name == n)
}

/// The entry of a pool for a method: what rustc has found for the receiver in the checked copy.
pub(crate) fn method_entry(
    of: &Ident,
    call: &ExprMethodCall,
    takes_closures: bool,
    dispatched: &[Dispatched],
) -> TokenStream {
    let (span, root) = (call.start(), root_at(call.start()));
    let name = number_of(&call.method);
    let open = quote_spanned!(call.method.span()=> _);
    let entry = match takes_closures {
        true => "inline_entry",
        false => "entry",
    };
    let entry = Ident::new(entry, before(span));
    let found = quote_spanned!(before(span)=> #of.named::<#name>().#entry());
    let found = match takes_closures {
        true => found,
        false => or_of_traits(found, &name, true, dispatched),
    };
    quote_spanned!(before(span)=> <#open as #root::HasMethod>::pooled(#found))
}

/// The number of a method's name, as a literal of the host.
pub(crate) fn number_of(name: &Ident) -> Literal {
    Literal::u64_suffixed(method_name(&plain_name(name)))
}

/// How the type of a function is called where it is imported.
const CALLEE: &str = "HostFunction";

/// The functions of `std::mem` that kernels have.
const HOST_FUNCTIONS: &[&str] = &["swap", "replace", "take"];

/// Imports the type of a function as [`CALLEE`]. An import of a name imports all that it means; where it
/// means no type, there is one behind it, and rustc says that this cannot be called.
pub(crate) fn import(path: &syn::Path) -> TokenStream {
    let (root, span) = (root_at(path.span()), before(path.span()));
    let name = Ident::new(CALLEE, span);
    // Nobody who asks what the user's token means is to be told of the type.
    let mut path = path.clone();
    for segment in &mut path.segments {
        segment.ident.set_span(before(segment.ident.span()));
    }
    let last = path.segments.last().map(|last| &last.ident);
    let of_host = last.filter(|last| HOST_FUNCTIONS.iter().any(|name| last == name));
    let behind = match of_host {
        Some(last) => quote_spanned!(span=> #root::host_mem::#last),
        None => quote_spanned!(span=> #root::not_for_kernels),
    };
    quote_spanned! {span=>
        use {#path as #name, #behind::*};
    }
}

/// The type that [`import`] imports, as long as the path is: what rustc says of it, it says of the path.
pub(crate) fn callee(path: &syn::Path) -> TokenStream {
    let before = before(path.span());
    let name = Ident::new(CALLEE, before);
    until(last_of(path), quote_spanned!(before=> #name<>))
}

/// What to say about a method that kernels do not have. What `x.try_into().unwrap()` is to do is said by its
/// first half.
fn refused_method(call: &ExprMethodCall, name: &str) -> Option<&'static str> {
    let own = method(name)?;
    let Some((_, inner)) = marked_method(&call.receiver) else {
        return Some(own);
    };
    let inner = plain_name(&inner.method);
    Some(match inner.starts_with("try_") {
        true => method(&inner).unwrap_or(own),
        false => own,
    })
}

/// What stands in the parentheses of a call, on one line; empty where nobody wrote it.
fn as_written(call: &ExprCall) -> String {
    let whole = call.paren_token.span.join().source_text();
    let whole = whole.unwrap_or_default();
    let words: Vec<&str> = whole.split_whitespace().collect();
    let line = words.join(" ");
    let inner = line.strip_prefix('(').and_then(|l| l.strip_suffix(')'));
    let inner = inner.unwrap_or_default().trim();
    inner.trim_end_matches(',').to_owned()
}
