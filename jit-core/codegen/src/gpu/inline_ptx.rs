//! Calls of inline PTX, with what LLVM may take from them.

use std::cell::RefCell;
use std::collections::HashSet;

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::types::{BasicMetadataTypeEnum, BasicType as _, BasicTypeEnum};
use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum, CallSiteValue};

use kiln_ir::Effects;

use crate::llvm::error::BackendError;

/// PTX that is written into the code (LLVM language reference, "Inline Assembler Expressions").
#[derive(Copy, Clone, Debug)]
pub(super) struct InlinePtx<'a> {
    /// The instructions; `$0` is the first operand, the result if there is one.
    pub(super) template: &'a str,
    /// The registers of the operands, such as `=r,l`, and what is overwritten.
    pub(super) constraints: &'a str,
    /// What the PTX does besides giving a result.
    pub(super) effects: Effects,
}

/// The inline PTX that Kiln has written into a module: rows' cells, what lowering needs, and what hooks
/// have asked for. Each is a template with its constraints.
#[derive(Debug, Default)]
pub(super) struct WrittenPtx(RefCell<HashSet<(String, String)>>);

impl WrittenPtx {
    /// Whether this is in the module by Kiln's doing.
    pub(super) fn has(&self, template: &str, constraints: &str) -> bool {
        let known = self.0.borrow();
        known.contains(&(template.to_owned(), constraints.to_owned()))
    }

    /// Notes what is written.
    pub(super) fn note(&self, ptx: InlinePtx<'_>) {
        let mut known = self.0.borrow_mut();
        known.insert((ptx.template.to_owned(), ptx.constraints.to_owned()));
    }
}

impl InlinePtx<'_> {
    /// Calls it.
    pub(super) fn call<'ctx>(
        self,
        context: &'ctx Context,
        builder: &Builder<'ctx>,
        result: Option<BasicTypeEnum<'ctx>>,
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<CallSiteValue<'ctx>, BackendError> {
        let params: Vec<BasicMetadataTypeEnum<'ctx>> =
            args.iter().map(|arg| arg.get_type().into()).collect();
        let ty = match result {
            Some(result) => result.fn_type(&params, false),
            None => context.void_type().fn_type(&params, false),
        };
        let asm = context.create_inline_asm(
            ty,
            self.template.to_owned(),
            self.constraints.to_owned(),
            self.effects != Effects::None,
            false,
            None,
            false,
        );
        let args: Vec<BasicMetadataValueEnum<'ctx>> = args.iter().map(|&arg| arg.into()).collect();
        let call = builder.build_indirect_call(ty, asm, &args, "")?;
        for (name, value) in self.attributes() {
            let attribute = enum_attribute(context, name, value);
            call.add_attribute(AttributeLoc::Function, attribute);
        }
        Ok(call)
    }

    /// What LLVM is told (LLVM language reference, "Function Attributes"). What communicates within the
    /// warp is neither made conditional (`convergent`) nor merged with its like in another branch
    /// (`nomerge`), and unless it synchronizes, loads and stores may move across it.
    fn attributes(self) -> Vec<(&'static str, u64)> {
        let mut attributes = vec![("nounwind", 0)];
        match self.effects {
            Effects::None => attributes.push(("memory", 0)),
            Effects::Memory => {}
            Effects::Convergent => {
                attributes.extend([("convergent", 0), ("nomerge", 0)]);
                attributes.push(("memory", INACCESSIBLE_MEMORY));
            }
            Effects::Synchronizes => attributes.extend([("convergent", 0), ("nomerge", 0)]),
        }
        attributes
    }
}

/// `memory(inaccessiblemem: readwrite)`: two bits a kind of memory, this one the second.
const INACCESSIBLE_MEMORY: u64 = 0b11 << 2;

/// An attribute that LLVM knows by name.
pub(super) fn enum_attribute(context: &Context, name: &str, value: u64) -> Attribute {
    context.create_enum_attribute(Attribute::get_named_enum_kind_id(name), value)
}
