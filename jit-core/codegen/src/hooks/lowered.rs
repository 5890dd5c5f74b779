//! What a hook has made of an operation, and whether that is what the operation gives.

use std::fmt;

use inkwell::types::BasicTypeEnum;
use inkwell::values::{
    ArrayValue, BasicValueEnum, FloatValue, IntValue, PointerValue, StructValue, VectorValue,
};

use kiln_ir::{Scalar, Type};

use super::operation::scalar_type;
use super::{OperationError, OperationLowering};

/// What a hook has made of an operation. Values of inkwell's are turned into it by `into`, and so is what
/// [`OperationLowering::call_intrinsic`] and [`OperationLowering::call_asm`] give.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum LoweredOperation<'ctx> {
    /// The operation's result: one value of LLVM's, of the type that [`OperationLowering::llvm_result_type`] says.
    Value(BasicValueEnum<'ctx>),
    /// The operation's result, which is a slice.
    Slice {
        /// The address of the first element.
        address: PointerValue<'ctx>,
        /// How many there are, an integer of 32 bits, or of 64 in a wide slice.
        length: IntValue<'ctx>,
    },
    /// The operation gives nothing, as a store does, and the hook has built what it does.
    Done,
}

macro_rules! values {
    ($($value:ident)*) => {
        $(
            impl<'ctx> From<$value<'ctx>> for LoweredOperation<'ctx> {
                fn from(value: $value<'ctx>) -> Self {
                    LoweredOperation::Value(value.into())
                }
            }
        )*
    };
}

values! { BasicValueEnum ArrayValue FloatValue IntValue PointerValue StructValue VectorValue }

impl<'ctx> From<(PointerValue<'ctx>, IntValue<'ctx>)> for LoweredOperation<'ctx> {
    /// A slice's address and length.
    fn from((address, length): (PointerValue<'ctx>, IntValue<'ctx>)) -> Self {
        LoweredOperation::Slice { address, length }
    }
}

impl<'ctx> From<Option<BasicValueEnum<'ctx>>> for LoweredOperation<'ctx> {
    /// What a call has given: a value, or nothing, and then it is done.
    fn from(called: Option<BasicValueEnum<'ctx>>) -> Self {
        called.map_or(LoweredOperation::Done, LoweredOperation::Value)
    }
}

/// The LLVM types of what an operation gives, as errors say them.
#[derive(Copy, Clone, PartialEq)]
enum Form<'ctx> {
    Value(BasicTypeEnum<'ctx>),
    Slice(BasicTypeEnum<'ctx>, BasicTypeEnum<'ctx>),
    Nothing,
}

impl fmt::Display for Form<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |ty: &BasicTypeEnum<'_>| ty.print_to_string().to_string_lossy().into_owned();
        match self {
            Form::Value(ty) => write!(f, "a value of LLVM's type `{}`", text(ty)),
            Form::Slice(address, length) => write!(
                f,
                "a slice of an address of LLVM's type `{}` and a length of `{}`",
                text(address),
                text(length)
            ),
            Form::Nothing => f.write_str("nothing"),
        }
    }
}

impl Form<'_> {
    /// What a hook is to give.
    fn advice(self) -> &'static str {
        match self {
            Form::Value(_) => {
                "a value of that type, which `OperationLowering::llvm_result_type` says"
            }
            Form::Slice(..) => "a `LoweredOperation::Slice` of these",
            Form::Nothing => "`LoweredOperation::Done`",
        }
    }
}

impl<'ctx> LoweredOperation<'ctx> {
    fn form(self) -> Form<'ctx> {
        match self {
            LoweredOperation::Value(value) => Form::Value(value.get_type()),
            LoweredOperation::Slice { address, length } => {
                Form::Slice(address.get_type().into(), length.get_type().into())
            }
            LoweredOperation::Done => Form::Nothing,
        }
    }
}

impl<'ctx> OperationLowering<'_, 'ctx> {
    /// Whether what a hook has made of the operation is what the operation gives.
    ///
    /// # Errors
    /// [`OperationError::WrongValue`].
    pub fn check_result(&self, lowered: LoweredOperation<'ctx>) -> Result<(), OperationError> {
        let (given, wanted) = (lowered.form(), self.result_form()?);
        if given == wanted {
            return Ok(());
        }
        Err(OperationError::WrongValue {
            function: self.function.name.clone(),
            given: given.to_string(),
            wanted: wanted.to_string(),
            advice: wanted.advice(),
        })
    }

    fn result_form(&self) -> Result<Form<'ctx>, OperationError> {
        let ty = self.result_type();
        if ty == Type::UNIT {
            return Ok(Form::Nothing);
        }
        let Some((elements, wide)) = self.module.types.as_slice(ty) else {
            return Ok(Form::Value(self.llvm_type(ty)?));
        };
        let length = if wide { Scalar::U64 } else { Scalar::U32 };
        let address = self.place.pointer(elements.space).into();
        Ok(Form::Slice(address, scalar_type(self.context, length)))
    }
}
