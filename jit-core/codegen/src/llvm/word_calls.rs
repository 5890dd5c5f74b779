//! Calls of one function of the host, in place of what only another machine has: what they stand for is a
//! number, operands and result are words, and of 128 bits two words. The second word of a result is then where the
//! first operand was.

use inkwell::AddressSpace;
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::llvm_sys::core::LLVMReplaceAllUsesWith;
use inkwell::module::{Linkage, Module};
use inkwell::types::{BasicTypeEnum, IntType};
use inkwell::values::{
    AsValueRef as _, BasicValueEnum, CallSiteValue, FunctionValue, InstructionValue, IntValue,
    PointerValue,
};

use super::bindings::{Wrap, build_gep};
use super::error::BackendError;

/// Writes the calls.
pub(crate) struct WordCalls<'ctx> {
    context: &'ctx Context,
    builder: Builder<'ctx>,
    function: FunctionValue<'ctx>,
}

fn refused(what: impl Into<String>) -> BackendError {
    BackendError::new("lower", what)
}

fn is_two_words(ty: IntType<'_>) -> bool {
    ty.get_bit_width() == 128
}

impl<'ctx> WordCalls<'ctx> {
    /// Declares the function that is called: `fn(number, operands) -> result`, in words.
    pub(crate) fn new(context: &'ctx Context, module: &Module<'ctx>, name: &str) -> Self {
        let word = context.i64_type();
        let pointer = context.ptr_type(AddressSpace::default());
        let ty = word.fn_type(&[word.into(), pointer.into()], false);
        WordCalls {
            context,
            builder: context.create_builder(),
            function: module.add_function(name, ty, Some(Linkage::External)),
        }
    }

    /// Calls it before an instruction, without operands.
    ///
    /// # Errors
    /// If LLVM refuses.
    pub(crate) fn before(
        &self,
        instruction: InstructionValue<'ctx>,
        number: usize,
    ) -> Result<(), BackendError> {
        self.builder.position_before(&instruction);
        self.call(number, self.no_words()).map(|_| ())
    }

    fn no_words(&self) -> PointerValue<'ctx> {
        self.context.ptr_type(AddressSpace::default()).const_null()
    }

    /// Calls it in place of a call, with its operands. Gives how many they are.
    ///
    /// # Errors
    /// An operand or a result that does not fit a word.
    pub(crate) fn replace(
        &self,
        replaced: InstructionValue<'ctx>,
        number: usize,
    ) -> Result<usize, BackendError> {
        self.builder.position_before(&replaced);
        let call =
            CallSiteValue::try_from(replaced).map_err(|()| refused("a call that is none"))?;
        let mut operands = Vec::new();
        for n in 0..call.count_arguments() {
            let operand = replaced.get_operand(n).and_then(|o| o.value());
            let operand = operand.ok_or_else(|| refused("an argument that is no value"))?;
            match operand {
                BasicValueEnum::IntValue(wide) if is_two_words(wide.get_type()) => {
                    operands.extend(self.halves(wide)?);
                }
                _ => operands.push(self.to_word(operand)?),
            }
        }
        let count = operands.len();
        let words = match count {
            0 => self.no_words(),
            _ => self.room(replaced, count as u32)?,
        };
        for (n, operand) in (0..).zip(operands) {
            let offset = self.context.i64_type().const_int(8 * n, false);
            let byte = self.context.i8_type().into();
            let at = build_gep(&self.builder, byte, words, &[offset], Wrap::InBounds);
            self.builder.build_store(at, operand)?;
        }
        let result = self.call(number, words)?;
        if let Ok(ty) = BasicTypeEnum::try_from(replaced.get_type()) {
            let value = match ty {
                BasicTypeEnum::IntType(wide) if is_two_words(wide) => {
                    self.of_halves(result, words, wide)?.into()
                }
                _ => self.of_word(result, ty)?,
            };
            // SAFETY: the value is of the call's type and defined where the call is.
            unsafe { LLVMReplaceAllUsesWith(replaced.as_value_ref(), value.as_value_ref()) };
        }
        replaced.erase_from_basic_block();
        Ok(count)
    }

    /// Low and high word of a number of 128 bits.
    fn halves(&self, wide: IntValue<'ctx>) -> Result<[IntValue<'ctx>; 2], BackendError> {
        let (builder, word) = (&self.builder, self.context.i64_type());
        let up = wide.get_type().const_int(64, false);
        let high = builder.build_right_shift(wide, up, false, "")?;
        Ok([
            builder.build_int_truncate(wide, word, "")?,
            builder.build_int_truncate(high, word, "")?,
        ])
    }

    /// The number of 128 bits whose low word a call gave and whose high one it left in the first of its words.
    fn of_halves(
        &self,
        low: IntValue<'ctx>,
        words: PointerValue<'ctx>,
        ty: IntType<'ctx>,
    ) -> Result<IntValue<'ctx>, BackendError> {
        let builder = &self.builder;
        let high = builder.build_load(self.context.i64_type(), words, "")?;
        let high = builder.build_int_z_extend(high.into_int_value(), ty, "")?;
        let high = builder.build_left_shift(high, ty.const_int(64, false), "")?;
        let low = builder.build_int_z_extend(low, ty, "")?;
        Ok(builder.build_or(high, low, "")?)
    }

    fn call(
        &self,
        number: usize,
        words: PointerValue<'ctx>,
    ) -> Result<IntValue<'ctx>, BackendError> {
        let number = self.context.i64_type().const_int(number as u64, false);
        let args = [number.into(), words.into()];
        let call = self.builder.build_call(self.function, &args, "")?;
        match call.try_as_basic_value().basic() {
            Some(BasicValueEnum::IntValue(result)) => Ok(result),
            _ => Err(refused("a call without a result")),
        }
    }

    /// Room for words in the frame of the function that an instruction is in.
    fn room(
        &self,
        instruction: InstructionValue<'ctx>,
        count: u32,
    ) -> Result<PointerValue<'ctx>, BackendError> {
        let function = instruction
            .get_parent()
            .and_then(|block| block.get_parent());
        let first = function
            .and_then(|function| function.get_first_basic_block())
            .and_then(|block| block.get_first_instruction())
            .ok_or_else(|| refused("a call outside a function"))?;
        let builder = self.context.create_builder();
        builder.position_before(&first);
        let ty = self.context.i64_type().array_type(count);
        Ok(builder.build_alloca(ty, "")?)
    }

    /// A register's bits in the low bits of a word.
    fn to_word(&self, value: BasicValueEnum<'ctx>) -> Result<IntValue<'ctx>, BackendError> {
        let (builder, word) = (&self.builder, self.context.i64_type());
        let bits = match value {
            BasicValueEnum::IntValue(bits) => bits,
            BasicValueEnum::PointerValue(pointer) => {
                return Ok(builder.build_ptr_to_int(pointer, word, "")?);
            }
            BasicValueEnum::FloatValue(float) => {
                let ty = self.int(float.get_type().get_bit_width());
                match builder.build_bit_cast(float, ty, "")? {
                    BasicValueEnum::IntValue(bits) => bits,
                    _ => return Err(refused("a float without bits")),
                }
            }
            _ => return Err(refused(format!("an argument of type {}", value.get_type()))),
        };
        Ok(builder.build_int_z_extend_or_bit_cast(bits, word, "")?)
    }

    fn of_word(
        &self,
        word: IntValue<'ctx>,
        ty: BasicTypeEnum<'ctx>,
    ) -> Result<BasicValueEnum<'ctx>, BackendError> {
        let builder = &self.builder;
        Ok(match ty {
            BasicTypeEnum::IntType(ty) => {
                builder.build_int_truncate_or_bit_cast(word, ty, "")?.into()
            }
            BasicTypeEnum::FloatType(ty) => {
                let bits = self.int(ty.get_bit_width());
                let bits = builder.build_int_truncate_or_bit_cast(word, bits, "")?;
                builder.build_bit_cast(bits, ty, "")?
            }
            BasicTypeEnum::PointerType(ty) => builder.build_int_to_ptr(word, ty, "")?.into(),
            _ => return Err(refused(format!("a result of type {ty}"))),
        })
    }

    fn int(&self, bits: u32) -> IntType<'ctx> {
        match bits {
            16 => self.context.i16_type(),
            32 => self.context.i32_type(),
            _ => self.context.i64_type(),
        }
    }
}
