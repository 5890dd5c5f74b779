//! The text of each operation: its word, its operands, its flags.
//!
//! One flat match; `parse/operation.rs` is its mirror image.

use std::fmt::Write;

use super::{Body, Printer, constant_text, name, put, quote};
use crate::keywords::Keyword;
use crate::{ConstArg, FuncId, InstData, IntrinsicId, Type, Value};

impl<'m> Printer<'m> {
    // flat match
    pub(super) fn operation(&mut self, data: &InstData, body: &Body<'m>) {
        let n = |value: &Value| body.numbers.text(*value);
        match data {
            InstData::Const(constant) => put!(self, "const {}", constant_text(*constant)),
            InstData::ConstParam(param) => put!(self, "const_param {param}"),
            InstData::Unary { op, arg } => put!(self, "{} {}", op.keyword(), n(arg)),
            InstData::Binary { op, args: [a, b] } => {
                put!(self, "{} {}, {}", op.keyword(), n(a), n(b));
            }
            InstData::Compare { op, args: [a, b] } => {
                put!(self, "{} {}, {}", op.keyword(), n(a), n(b));
            }
            InstData::Select {
                cond,
                if_true,
                if_false,
            } => put!(self, "select {}, {}, {}", n(cond), n(if_true), n(if_false)),
            InstData::Cast { arg } => put!(self, "cast {}", n(arg)),
            InstData::Bitcast { arg } => put!(self, "bitcast {}", n(arg)),
            InstData::Construct { parts } => {
                self.text += "construct";
                self.list(parts, body);
            }
            InstData::Extract { aggregate, index } => {
                put!(self, "extract {}, {index}", n(aggregate));
            }
            InstData::Insert {
                aggregate,
                index,
                value,
            } => put!(self, "insert {}, {index}, {}", n(aggregate), n(value)),
            InstData::VarGet(var) => put!(self, "get {var}"),
            InstData::VarSet(var, value) => put!(self, "set {var}, {}", n(value)),
            InstData::Load { ptr, volatile } => {
                put!(self, "load {}{}", flag(*volatile, "volatile "), n(ptr));
            }
            InstData::Store {
                ptr,
                value,
                volatile,
            } => {
                let flag = flag(*volatile, "volatile ");
                put!(self, "store {flag}{}, {}", n(ptr), n(value));
            }
            InstData::PtrOffset { ptr, index } => {
                put!(self, "ptr_offset {}, {}", n(ptr), n(index));
            }
            InstData::FieldPtr { ptr, field } => put!(self, "field_ptr {}, {field}", n(ptr)),
            InstData::ElementPtr {
                ptr,
                index,
                checked,
            } => {
                let flag = flag(!checked, "unchecked ");
                put!(self, "element_ptr {flag}{}, {}", n(ptr), n(index));
            }
            InstData::SpaceCast { arg } => put!(self, "space_cast {}", n(arg)),
            InstData::SliceNew { ptr, len } => put!(self, "slice_new {}, {}", n(ptr), n(len)),
            InstData::SliceLen { slice } => put!(self, "slice_len {}", n(slice)),
            InstData::SlicePtr { slice } => put!(self, "slice_ptr {}", n(slice)),
            InstData::SliceIndex {
                slice,
                index,
                checked,
            } => {
                let flag = flag(!checked, "unchecked ");
                put!(self, "slice_index {flag}{}, {}", n(slice), n(index));
            }
            InstData::SharedAddr(var) => put!(self, "shared_addr {var}"),
            InstData::DynamicShared => self.text += "dynamic_shared",
            InstData::LocalAlloc => self.text += "local_alloc",
            InstData::GlobalAddr(id) => {
                let global = self.module.globals.get(*id);
                let global = global.map_or("?".into(), |g| name(&g.name));
                put!(self, "global_addr @{global}");
            }
            InstData::Hidden(id) => put!(self, "hidden {id}"),
            InstData::AtomicLoad {
                ptr,
                ordering,
                scope,
            } => {
                let (ordering, scope) = (ordering.keyword(), scope.keyword());
                put!(self, "atomic_load {ordering} {scope} {}", n(ptr));
            }
            InstData::AtomicStore {
                ptr,
                value,
                ordering,
                scope,
            } => {
                let (ordering, scope) = (ordering.keyword(), scope.keyword());
                put!(
                    self,
                    "atomic_store {ordering} {scope} {}, {}",
                    n(ptr),
                    n(value)
                );
            }
            InstData::AtomicRmw {
                op,
                ptr,
                value,
                ordering,
                scope,
            } => {
                let (ordering, scope) = (ordering.keyword(), scope.keyword());
                let op = op.keyword();
                put!(
                    self,
                    "atomic {op} {ordering} {scope} {}, {}",
                    n(ptr),
                    n(value)
                );
            }
            InstData::AtomicCas {
                ptr,
                expected,
                new,
                ordering,
                scope,
            } => {
                let (ordering, scope) = (ordering.keyword(), scope.keyword());
                let (ptr, expected, new) = (n(ptr), n(expected), n(new));
                put!(
                    self,
                    "atomic_cas {ordering} {scope} {ptr}, {expected}, {new}"
                );
            }
            InstData::Barrier => self.text += "barrier",
            InstData::Assume {
                cond,
                text,
                checked,
            } => {
                put!(self, "assume {}{}", flag(!checked, "unchecked "), n(cond));
                if !text.is_empty() {
                    put!(self, ", {}", quote(text));
                }
            }
            InstData::Assert {
                cond,
                message,
                values,
            } => {
                put!(self, "assert {}, {}", n(cond), quote(message));
                if let Some([left, right]) = values {
                    put!(self, ", {}, {}", n(left), n(right));
                }
            }
            InstData::Print {
                format,
                values,
                to_stderr,
            } => {
                put!(
                    self,
                    "print {}{}",
                    flag(*to_stderr, "stderr "),
                    quote(format)
                );
                for value in values {
                    put!(self, ", {}", n(value));
                }
            }
            InstData::Fence { ordering, scope } => {
                put!(self, "fence {} {}", ordering.keyword(), scope.keyword());
            }
            InstData::Call {
                callee,
                type_args,
                const_args,
                args,
            } => {
                self.callee(*callee, type_args, const_args);
                self.list(args, body);
            }
            InstData::Intrinsic { id, args } => {
                self.intrinsic(*id);
                self.list(args, body);
            }
            InstData::If { cond, .. } => put!(self, "if {}", n(cond)),
            InstData::Loop { .. } => self.text += "loop",
            InstData::For {
                index,
                start,
                end,
                step,
                unroll,
                ..
            } => {
                let ty = self.value_ty(body.function, *index);
                let (index, start, end, step) = (n(index), n(start), n(end), n(step));
                put!(self, "for {index}: {ty} in {start} .. {end} step {step}");
                self.unroll(*unroll);
            }
            InstData::Break { depth } => put!(self, "break {depth}"),
            InstData::Continue { depth } => put!(self, "continue {depth}"),
            InstData::Return { value: None } => self.text += "return",
            InstData::Return { value: Some(value) } => put!(self, "return {}", n(value)),
        }
    }

    fn list(&mut self, values: &[Value], body: &Body<'m>) {
        let values: Vec<String> = values.iter().map(|v| body.numbers.text(*v)).collect();
        put!(self, "({})", values.join(", "));
    }

    /// `call @f`, with type arguments before and const arguments after a semicolon.
    fn callee(&mut self, callee: FuncId, types: &[Type], consts: &[ConstArg]) {
        let callee = self.module.functions.get(callee);
        let callee = callee.map_or("?".into(), |f| name(&f.name));
        put!(self, "call @{callee}");
        if types.is_empty() && consts.is_empty() {
            return;
        }
        let types: Vec<String> = types.iter().map(|ty| self.ty(*ty)).collect();
        put!(self, "<{}", types.join(", "));
        for (i, arg) in consts.iter().enumerate() {
            self.text += if i == 0 { "; " } else { ", " };
            match arg {
                ConstArg::Known(constant) => self.text += &constant_text(*constant),
                ConstArg::Param(param) => put!(self, "{param}"),
            }
        }
        self.text += ">";
    }

    fn intrinsic(&mut self, id: IntrinsicId) {
        let intrinsic = self.module.intrinsics.get(id);
        let intrinsic = intrinsic.map_or("?".into(), |def| name(def.name));
        put!(self, "intrinsic {intrinsic}");
    }
}

fn flag(on: bool, word: &'static str) -> &'static str {
    if on { word } else { "" }
}
