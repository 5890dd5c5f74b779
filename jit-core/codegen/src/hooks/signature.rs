//! Whether LLVM has what a hook calls, with the types that it is called with.
//!
//! LLVM's functions that declare an intrinsic take the types it is told apart by on trust, and read beyond
//! them or end the process if they are others. Its parser of text does not: it finds the intrinsic by the types of a
//! call, or says that there is none.

use inkwell::context::Context;
use inkwell::intrinsics::Intrinsic;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::Module;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValueEnum, FunctionValue};

use super::operation::OperationError;

/// The types of a call, as LLVM writes them.
pub(crate) struct CallSignature {
    result: String,
    args: Vec<String>,
}

impl CallSignature {
    /// Of a call with these arguments, for this result.
    pub(crate) fn of(result: Option<BasicTypeEnum<'_>>, args: &[BasicValueEnum<'_>]) -> Self {
        let text = |ty: BasicTypeEnum<'_>| ty.print_to_string().to_string_lossy().into_owned();
        CallSignature {
            result: result.map_or("void".to_owned(), text),
            args: args.iter().map(|arg| text(arg.get_type())).collect(),
        }
    }

    /// `float (i32, i32)`.
    fn display(&self) -> String {
        format!("{} ({})", self.result, self.args.join(", "))
    }

    /// A module with this call alone, if LLVM reads it.
    fn called<'ctx>(&self, context: &'ctx Context, callee: &str) -> Option<Module<'ctx>> {
        let args: Vec<String> = self.args.iter().map(|ty| format!("{ty} poison")).collect();
        let (result, args) = (&self.result, args.join(", "));
        let text = format!("define void @f() {{\n call {result} {callee}({args})\n ret void\n}}\n");
        let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "call");
        context.create_module_from_ir(buffer).ok()
    }
}

/// The declaration of an intrinsic that takes and gives these types.
pub(crate) fn declare_intrinsic<'ctx>(
    context: &'ctx Context,
    module: &Module<'ctx>,
    name: &str,
    signature: &CallSignature,
) -> Result<FunctionValue<'ctx>, OperationError> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_';
    let is_one = name.starts_with("llvm.") && name.chars().all(is_name);
    if !is_one || Intrinsic::find(name).is_none() {
        let name = name.to_owned();
        return Err(OperationError::NoIntrinsic { name });
    }
    let called = signature.called(context, &format!("@{name}"));
    let found = called.as_ref().and_then(|called| {
        let mut functions = called.get_functions();
        functions.find(|function| function.count_basic_blocks() == 0)
    });
    let Some(found) = found else {
        return Err(OperationError::Signature {
            name: name.to_owned(),
            call: signature.display(),
        });
    };
    let full = found.get_name().to_string_lossy().into_owned();
    let known = module.get_function(&full);
    Ok(known.unwrap_or_else(|| module.add_function(&full, found.get_type(), None)))
}
