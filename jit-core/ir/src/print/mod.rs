//! The printer: a module as text, complete and canonical.
//!
//! Everything of a module that has a meaning is in its text, and numbers follow the order of
//! appearance, so `parse` gives an equal module back, printing that gives the same bytes, and the
//! text can be digested as the module's content. Instructions that no region holds, and types and
//! files that nothing names, have no meaning and are left out.
//!
//! ```text
//! module scale generic
//! file 0 "examples/scale.rs"
//!
//! kernel @scale<$0 T: float>(%0 a: $0, %1 x: slice<generic, mut $0> noalias) launch_bounds(256, 1) {
//!   var var0 sum: $0
//!   %2: u32 = intrinsic thread_idx.x() !0:4:13
//!   %3: u32 = slice_len %1 !0:5:8
//!   %4: bool = lt %2, %3 !0:5:8
//!   if %4 !0:5:5 {
//!     %5: ptr<generic, mut $0> = slice_index %1, %2 !0:5:20
//!     ...
//!   }
//!   return
//! }
//! ```
//!
//! A name that is not a word is in quotes (`@"a b"`). A comment goes from `;` to the end of the
//! line, except between `[` and `]` or `<` and `>`, where `;` separates. A location is
//! `!file:line:column`, and of a body that was put in place of a call `!file:line:column in "function" !file:line:column`,
//! with the place of the call. Floats are decimals that give the same bits back, or `bits 0x...`.

mod names;
mod operation;

use std::collections::HashMap;
use std::fmt::{self, Write};

use names::{FileNumbers, StructNames};
pub(super) use names::{ValueNumbers, name, quote};

use super::keywords::Keyword;
use super::{
    ArrayLen, Choices, Constant, Entity, FastMath, FuncId, Function, FunctionKind, HiddenSource,
    Inline, Inst, InstNode, Location, Module, Passing, Region, Type, TypeData, Unroll, VerifyError,
};

/// How many levels of regions and types are printed; the verifier allows fewer.
const MAX_PRINT_DEPTH: usize = 160;

/// How many lines around an error its excerpt shows.
const EXCERPT_LINES: usize = 3;

/// What to print.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PrintOptions {
    /// Whether each instruction shows where it was built. Without, the text is easier to read and
    /// no longer complete.
    pub locations: bool,
}

impl Default for PrintOptions {
    /// Everything.
    fn default() -> Self {
        PrintOptions { locations: true }
    }
}

impl fmt::Display for Module {
    /// The complete text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print(self, PrintOptions::default()))
    }
}

/// The text of a module.
pub fn print(module: &Module, options: PrintOptions) -> String {
    let mut printer = Printer::new(module, options);
    printer.module();
    printer.text
}

/// The text of one function of a module, without the declarations it relies on; empty when the
/// module has no such function.
pub fn print_function(module: &Module, id: FuncId, options: PrintOptions) -> String {
    let mut printer = Printer::new(module, options);
    printer.function(id);
    printer.text
}

/// The functions that errors are in, each error under the line it is about, other lines left out.
pub(super) fn listing(module: &Module, errors: &[VerifyError]) -> String {
    let mut listing = String::new();
    for (id, function) in module.functions.iter() {
        let mut printer = Printer::new(module, PrintOptions { locations: false });
        for error in errors.iter().filter(|e| e.function == function.name) {
            let notes = printer.notes.entry(error.inst).or_default();
            notes.push(&error.message);
        }
        if !printer.notes.is_empty() {
            printer.function(id);
            listing += &excerpt(&printer.text);
        }
    }
    listing
}

/// The first line and those near an error; `...` for those between.
fn excerpt(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut shown = vec![false; lines.len()];
    for (i, line) in lines.iter().enumerate() {
        if i == 0 || line.trim_start().starts_with(NOTE) {
            let first = i.saturating_sub(EXCERPT_LINES);
            let last = lines.len().min(i + EXCERPT_LINES + 1);
            shown[if i == 0 { 0..1 } else { first..last }].fill(true);
        }
    }
    let mut excerpt = String::new();
    for (i, line) in lines.iter().enumerate() {
        if shown[i] {
            excerpt.extend([line, "\n"]);
        } else if i > 0 && shown[i - 1] {
            excerpt += "  ...\n";
        }
    }
    excerpt
}

/// What stands before an error in a listing; a comment of the text form.
const NOTE: &str = "; error: ";

/// Writes to the text; a `String` takes everything.
macro_rules! put {
    ($printer:expr, $($arg:tt)*) => {{ let _ = write!($printer.text, $($arg)*); }};
}
use put;

struct Printer<'m> {
    module: &'m Module,
    options: PrintOptions,
    text: String,
    structs: StructNames,
    files: FileNumbers<'m>,
    /// What to write under instructions, and under the signature.
    notes: HashMap<Option<Inst>, Vec<&'m str>>,
}

/// The function being printed.
struct Body<'m> {
    function: &'m Function,
    numbers: ValueNumbers,
    seen: Vec<bool>,
}

impl<'m> Printer<'m> {
    fn new(module: &'m Module, options: PrintOptions) -> Self {
        Printer {
            module,
            options,
            text: String::new(),
            structs: StructNames::default(),
            files: FileNumbers::default(),
            notes: HashMap::new(),
        }
    }

    /// Declarations come first and are known last.
    fn module(&mut self) {
        self.globals();
        self.hidden();
        self.print_sites();
        for id in self.module.functions.keys() {
            self.text.push('\n');
            self.function(id);
        }
        let rest = std::mem::take(&mut self.text);
        self.header();
        self.text += &rest;
    }

    /// The module line and the declarations of files and structs, known once the rest is printed.
    fn header(&mut self) {
        let module = self.module;
        put!(
            self,
            "module {} {}\n",
            name(&module.name),
            module.phase.name()
        );
        for (number, path) in self.files.order.iter().enumerate() {
            put!(self, "file {number} {}\n", quote(path));
        }
        for position in 0..self.structs.order.len() {
            let (ty, given) = self.structs.order[position].clone();
            let data = module.types.as_struct(ty);
            let fields = data.map_or(&[][..], |s| &s.fields);
            let align = data.map_or(1, |s| s.align);
            let align = if align == 1 {
                String::new()
            } else {
                format!("align({align}) ")
            };
            let fields: Vec<String> = fields
                .iter()
                .map(|(field, ty)| format!("{}: {}", name(field), self.ty(*ty)))
                .collect();
            put!(
                self,
                "struct @{} {align}{{ {} }}\n",
                name(&given),
                fields.join(", ")
            );
        }
    }

    fn globals(&mut self) {
        for global in self.module.globals.values() {
            let ty = self.ty(global.ty);
            put!(self, "const @{}: {ty} = ", name(&global.name));
            self.bytes(&global.bytes);
            self.text += "\n";
        }
    }

    /// Bytes as hexadecimal digits in quotes.
    fn bytes(&mut self, bytes: &[u8]) {
        self.text += "\"";
        for byte in bytes {
            put!(self, "{byte:02x}");
        }
        self.text += "\"";
    }

    fn hidden(&mut self) {
        for (id, data) in self.module.hidden.iter() {
            let ty = self.ty(data.ty);
            put!(self, "hidden {id} {}: {ty} ", name(&data.name));
            match &data.source {
                HiddenSource::Hook(hook) => put!(self, "hook {}", name(hook)),
                HiddenSource::Global(None) => self.text += "global",
                HiddenSource::Global(Some(bytes)) => {
                    self.text += "global ";
                    self.bytes(bytes);
                }
                HiddenSource::FaultChannel => self.text += "fault_channel",
            }
            self.location(data.location);
            self.text += "\n";
        }
    }

    fn print_sites(&mut self) {
        for site in &self.module.print_sites {
            let stderr = if site.to_stderr { "stderr " } else { "" };
            let values: Vec<_> = site.values.iter().map(|scalar| scalar.name()).collect();
            let (format, values) = (quote(&site.format), values.join(", "));
            let (function, place) = (name(&site.function), quote(&site.location));
            put!(
                self,
                "prints {stderr}{format} ({values}) {function} {place}\n"
            );
        }
    }

    /// A type; a struct in it is declared if it is new.
    fn ty(&mut self, ty: Type) -> String {
        self.nested_ty(ty, 0)
    }

    fn nested_ty(&mut self, ty: Type, depth: usize) -> String {
        let types = &self.module.types;
        let is_mut = |mutable: bool| if mutable { "mut " } else { "" };
        if depth > MAX_PRINT_DEPTH {
            return "?".to_owned();
        }
        match *types.data(ty) {
            TypeData::Unit | TypeData::Scalar(_) | TypeData::Vector { .. } | TypeData::Param(_) => {
                types.display(ty)
            }
            TypeData::Struct(id) => {
                format!("@{}", name(self.structs.enter(types, ty, id)))
            }
            TypeData::Array { element, len } => {
                let element = self.nested_ty(element, depth + 1);
                match len {
                    ArrayLen::Known(n) => format!("[{element}; {n}]"),
                    ArrayLen::Param(p) => format!("[{element}; {p}]"),
                }
            }
            TypeData::Pointer {
                pointee,
                space,
                mutable,
            } => {
                let pointee = self.nested_ty(pointee, depth + 1);
                format!("ptr<{}, {}{pointee}>", space.name(), is_mut(mutable))
            }
            TypeData::Slice {
                element,
                space,
                mutable,
                wide,
            } => {
                let element = self.nested_ty(element, depth + 1);
                let wide = if wide { ", wide" } else { "" };
                format!(
                    "slice<{}, {}{element}{wide}>",
                    space.name(),
                    is_mut(mutable)
                )
            }
        }
    }

    fn function(&mut self, id: FuncId) {
        let Some(function) = self.module.functions.get(id) else {
            return;
        };
        let mut body = Body {
            function,
            numbers: ValueNumbers::of(function),
            seen: vec![false; function.regions.len()],
        };
        self.signature(&body);
        if function.is_declaration {
            self.text += "\n";
            self.write_notes(None, 0);
            return;
        }
        self.text += " {\n";
        self.write_notes(None, 1);
        for (var, data) in function.vars.iter() {
            let ty = self.ty(data.ty);
            put!(self, "  var {var} {}: {ty}\n", name(&data.name));
        }
        for (var, data) in function.shared.iter() {
            let ty = self.ty(data.ty);
            let (name, align) = (name(&data.name), data.align);
            put!(self, "  shared {var} {name}: {ty} align {align}\n");
        }
        self.region(function.body, 1, &mut body);
        for assertion in &function.assertions {
            let condition = body.numbers.text(assertion.condition);
            let message = quote(&assertion.message);
            put!(self, "  static_assert {condition}, {message}");
            self.location(assertion.location);
            self.text += "\n";
        }
        self.text += "}\n";
    }

    fn signature(&mut self, body: &Body<'m>) {
        let function = body.function;
        if function.is_declaration {
            self.text += "declare ";
        }
        let kind = match function.kind {
            FunctionKind::Kernel => "kernel",
            FunctionKind::Device => "device",
        };
        put!(self, "{kind} @{}", name(&function.name));
        self.generics(function);
        self.text += "(";
        for position in 0..function.params.len() {
            if position > 0 {
                self.text += ", ";
            }
            self.param(body, position);
        }
        self.text += ")";
        if function.result != Type::UNIT {
            let result = self.ty(function.result);
            put!(self, " -> {result}");
        }
        if let Some(bounds) = function.launch_bounds {
            let (threads, blocks) = (bounds.max_threads, bounds.min_blocks);
            put!(self, " launch_bounds({threads}, {blocks})");
        }
        self.choices(function.choices);
        if function.inline != Inline::Auto {
            put!(self, " {}", function.inline.name());
        }
        if !function.attributes.is_empty() {
            put!(self, " attribute({})", function.attributes);
        }
        self.location(function.location);
    }

    fn choices(&mut self, choices: Choices) {
        if let Some(bounds) = choices.bounds {
            put!(self, " bounds({})", bounds.keyword());
        }
        self.fast(choices.fast);
        if choices.max_registers != 0 {
            put!(self, " max_registers({})", choices.max_registers);
        }
        self.unroll(choices.unroll);
        if let Some(threshold) = choices.inline_threshold {
            put!(self, " inline_threshold({threshold})");
        }
    }

    /// ` unroll(4)`, unless that is left to the optimizer.
    fn unroll(&mut self, unroll: Unroll) {
        match unroll {
            Unroll::Auto => {}
            Unroll::Never => self.text += " unroll(never)",
            Unroll::Full => self.text += " unroll(full)",
            Unroll::By(factor) => put!(self, " unroll({factor})"),
        }
    }

    fn fast(&mut self, flags: FastMath) {
        if !flags.is_empty() {
            put!(self, " fast({flags})");
        }
    }

    fn generics(&mut self, function: &Function) {
        let mut list = Vec::new();
        for (i, param) in function.type_params.iter().enumerate() {
            let bound = param.bound.keyword();
            list.push(format!("${i} {}: {bound}", name(&param.name)));
        }
        for (i, param) in function.const_params.iter().enumerate() {
            let ty = self.ty(param.ty);
            list.push(format!("#{i} {}: {ty}", name(&param.name)));
        }
        if !list.is_empty() {
            put!(self, "<{}>", list.join(", "));
        }
    }

    fn param(&mut self, body: &Body<'m>, position: usize) {
        let param = &body.function.params[position];
        let ty = self.value_ty(body.function, param.value);
        let value = body.numbers.text(param.value);
        put!(self, "{value} {}: {ty}", name(&param.name));
        if param.passing != Passing::Direct {
            put!(self, " {}", param.passing.keyword());
        }
        let facts = param.facts;
        if facts.align != 0 {
            put!(self, " align({})", facts.align);
        }
        if facts.divisor != 0 {
            put!(self, " divisor({})", facts.divisor);
        }
        if facts.noalias {
            self.text += " noalias";
        }
        if facts.short {
            self.text += " short";
        }
        if let Some(id) = param.hidden {
            put!(self, " {id}");
        }
        self.location(param.location);
    }

    fn value_ty(&mut self, function: &Function, value: super::Value) -> String {
        match function.values.get(value) {
            Some(data) => self.ty(data.ty),
            None => "?".to_owned(),
        }
    }

    fn location(&mut self, at: Location) {
        if !self.options.locations {
            return;
        }
        let mut at = at;
        loop {
            if at.is_known() {
                let file = self.files.enter(self.module, at.file);
                put!(self, " !{file}:{}:{}", at.line, at.column);
            } else if at.inlined.is_some() {
                put!(self, " !unknown");
            }
            let Some(call) = at.inlined.and_then(|id| self.module.inlined.get(id)) else {
                return;
            };
            put!(self, " in {}", quote(&call.function));
            let outer = call.at.inlined;
            if outer >= at.inlined && outer.is_some() {
                // The verifier tells.
                return;
            }
            at = call.at;
        }
    }

    fn write_notes(&mut self, inst: Option<Inst>, depth: usize) {
        for note in self.notes.get(&inst).into_iter().flatten() {
            let note = note.replace('\n', " ");
            let _ = writeln!(self.text, "{}{NOTE}{note}", "  ".repeat(depth));
        }
    }

    fn region(&mut self, region: Region, depth: usize, body: &mut Body<'m>) {
        let indent = "  ".repeat(depth);
        let Some(data) = body.function.regions.get(region) else {
            put!(self, "{indent}; {region} does not exist\n");
            return;
        };
        if depth > MAX_PRINT_DEPTH || std::mem::replace(&mut body.seen[region.index()], true) {
            put!(
                self,
                "{indent}; {region} is printed elsewhere, or nests too deep\n"
            );
            return;
        }
        for &inst in &data.insts {
            match body.function.insts.get(inst) {
                Some(node) => self.inst(inst, node, depth, body),
                None => put!(self, "{indent}; {inst} does not exist\n"),
            }
        }
    }

    fn inst(&mut self, inst: Inst, node: &'m InstNode, depth: usize, body: &mut Body<'m>) {
        let indent = "  ".repeat(depth);
        self.text += &indent;
        if let Some(result) = node.result {
            let ty = self.value_ty(body.function, result);
            put!(self, "{}: {ty} = ", body.numbers.text(result));
        }
        self.operation(&node.data, body);
        self.fast(node.fast);
        self.location(node.location);
        let regions = node.data.regions();
        self.text += if regions.is_empty() { "\n" } else { " {\n" };
        self.write_notes(Some(inst), depth);
        for (i, inner) in regions.iter().enumerate() {
            if i > 0 {
                put!(self, "{indent}}} else {{\n");
            }
            self.region(*inner, depth + 1, body);
        }
        if !regions.is_empty() {
            put!(self, "{indent}}}\n");
        }
    }
}

/// A constant. A finite float is the shortest decimal that gives the same bits back.
pub(super) fn constant_text(constant: Constant) -> String {
    match constant {
        Constant::Bool(b) => b.to_string(),
        Constant::Int(n) => n.to_string(),
        Constant::Float(x) if x.is_finite() => format!("{x:?}"),
        Constant::Float(x) => format!("bits 0x{:016x}", x.to_bits()),
        Constant::Zero => "zero".to_owned(),
    }
}
