//! What inkwell gives back as an `Option`: one place where each can be missing.

use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::intrinsics::Intrinsic;
use inkwell::module::Module;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{
    AggregateValueEnum, BasicMetadataValueEnum, BasicValueEnum, CallSiteValue, FunctionValue,
};

use kiln_ir::IntrinsicDef;

use super::error::BackendError;

/// An LLVM intrinsic; `overloads` are the types that select it if it is overloaded. Rows of intrinsics
/// name any, so there may be none.
///
/// # Errors
/// Of stage `lower`, if LLVM does not have it for these types.
pub(crate) fn declared<'ctx>(
    module: &Module<'ctx>,
    name: &str,
    overloads: &[BasicTypeEnum<'ctx>],
) -> Result<FunctionValue<'ctx>, BackendError> {
    let declaration =
        Intrinsic::find(name).and_then(|intrinsic| intrinsic.get_declaration(module, overloads));
    declaration.ok_or_else(|| {
        let message = format!("LLVM 22 has no intrinsic `{name}` for these types");
        BackendError::new("lower", message)
    })
}

/// Calls what gives a value; `name` is for the error.
///
/// # Errors
/// Of stage `lower`, if it gives none.
pub(crate) fn value_of<'ctx>(
    call: CallSiteValue<'ctx>,
    name: &str,
) -> Result<BasicValueEnum<'ctx>, BackendError> {
    let value = call.try_as_basic_value().basic();
    value.ok_or_else(|| BackendError::new("lower", format!("`{name}` gives no value")))
}

/// What a cell gives, of the type that its row's result has. A cell names what LLVM or an assembler has,
/// and no proof says what that gives.
///
/// # Errors
/// Of stage `lower`, if it gives nothing, or a value of another type.
pub(crate) fn given_by_cell<'ctx>(
    row: &IntrinsicDef,
    given: Option<BasicValueEnum<'ctx>>,
    wanted: BasicTypeEnum<'ctx>,
) -> Result<BasicValueEnum<'ctx>, BackendError> {
    let text = |ty: BasicTypeEnum<'ctx>| ty.print_to_string().to_string_lossy().into_owned();
    let what = match given {
        Some(value) if value.get_type() == wanted => return Ok(value),
        Some(value) => format!("a value of LLVM's type `{}`", text(value.get_type())),
        None => "no value".to_owned(),
    };
    let message = format!(
        "a cell of the intrinsic `{}` gives {what}, and the row's result is of LLVM's type `{}`; give \
         the cell another name or template, or leave it out",
        row.name,
        text(wanted),
    );
    Err(BackendError::new("lower", message))
}

/// The arguments of a call as inkwell wants them.
pub(crate) fn call_arguments<'ctx>(
    args: &[BasicValueEnum<'ctx>],
) -> Vec<BasicMetadataValueEnum<'ctx>> {
    args.iter().map(|&arg| arg.into()).collect()
}

/// The block that a builder writes to. Builders are put into one before they are handed on.
///
/// # Errors
/// Of stage `lower`, if there is none.
pub(crate) fn current_block<'ctx>(
    builder: &Builder<'ctx>,
) -> Result<BasicBlock<'ctx>, BackendError> {
    let missing = || BackendError::new("lower", "code is built outside of all blocks");
    builder.get_insert_block().ok_or_else(missing)
}

/// The parameters of a function that was made with so many.
#[track_caller]
pub(crate) fn parameters<'ctx, const N: usize>(
    function: FunctionValue<'ctx>,
) -> [BasicValueEnum<'ctx>; N] {
    let parameters = function.get_params();
    match parameters.try_into() {
        Ok(parameters) => parameters,
        Err(others) => panic!("a function of {N} parameters has {}", others.len()),
    }
}

/// A struct or an array as inkwell takes it apart.
#[track_caller]
pub(crate) fn aggregate(value: BasicValueEnum<'_>) -> AggregateValueEnum<'_> {
    match value {
        BasicValueEnum::StructValue(value) => value.into(),
        BasicValueEnum::ArrayValue(value) => value.into(),
        BasicValueEnum::IntValue(_)
        | BasicValueEnum::FloatValue(_)
        | BasicValueEnum::PointerValue(_)
        | BasicValueEnum::VectorValue(_)
        | BasicValueEnum::ScalableVectorValue(_) => panic!("{value:?} is no struct and no array"),
    }
}
