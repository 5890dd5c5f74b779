//! One operation, as a hook that lowers it sees it.

use std::fmt;

use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::module::Module as LlvmModule;
use inkwell::types::{BasicTypeEnum, PointerType};
use inkwell::values::{BasicValueEnum, FunctionValue};

use kiln_ir::{
    AddressSpace, Effects, Function, InstNode, Module, Scalar, Type, TypeData, debug_as_text,
    error_text,
};

use super::HookContext;
use super::signature::{CallSignature, declare_intrinsic};
use crate::llvm::ask::call_arguments;
use crate::llvm::error::BackendError;
use crate::options::CompileOptions;

/// One operation while it is lowered. Hooks on LLVM's level are given it.
///
/// On a GPU its code is built in the kernel itself. On a CPU a thread is a lane of vectors; there the code
/// is built for one thread, in a function that takes the operands, and run for each.
#[derive(Copy, Clone)]
pub struct OperationLowering<'a, 'ctx> {
    pub(crate) hook: HookContext<'a>,
    pub(crate) place: &'a dyn Place<'ctx>,
    pub(crate) context: &'ctx Context,
    pub(crate) builder: &'a Builder<'ctx>,
    pub(crate) llvm_module: &'a LlvmModule<'ctx>,
    pub(crate) llvm_function: FunctionValue<'ctx>,
    pub(crate) module: &'a Module,
    pub(crate) function: &'a Function,
    pub(crate) inst: &'a InstNode,
}

/// What a machine has in its own way, for what hooks build.
pub(crate) trait Place<'ctx> {
    /// The type of an address.
    fn pointer(&self, space: AddressSpace) -> PointerType<'ctx>;

    /// The type of the values of a struct or an array.
    fn aggregate(&self, ty: Type) -> Result<BasicTypeEnum<'ctx>, BackendError>;

    /// Calls inline assembly, where the machine's code may have some.
    fn assembly(
        &self,
        builder: &Builder<'ctx>,
        assembly: InlineAssembly<'_>,
        result: Option<BasicTypeEnum<'ctx>>,
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<Option<BasicValueEnum<'ctx>>, OperationError>;
}

/// Inline assembly (LLVM language reference, "Inline Assembler Expressions").
#[derive(Copy, Clone, Debug)]
pub(crate) struct InlineAssembly<'a> {
    /// The instructions; `$0` is the first operand, the result if there is one.
    pub(crate) template: &'a str,
    /// The registers of the operands, and what is overwritten.
    pub(crate) constraints: &'a str,
    /// What the assembly does besides giving a result.
    pub(crate) effects: Effects,
}

/// Code that a hook asked for and cannot have. LLVM would end the process on some of it.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OperationError {
    /// LLVM has no intrinsic of the name.
    #[error("{}", error_text!(
        "LLVM 22 has no intrinsic `{name}`; LLVM's language reference and the guides of its back ends list \
         those that there are"
    ))]
    NoIntrinsic {
        /// The name.
        name: String,
    },
    /// LLVM's intrinsic takes or gives other types.
    #[error("{}", error_text!(
        "LLVM's intrinsic `{name}` cannot be called as `{call}`; give it operands and a result of the types \
         that LLVM's language reference says"
    ))]
    Signature {
        /// The intrinsic.
        name: String,
        /// The types of the call.
        call: String,
    },
    /// Inline assembly that LLVM cannot read or that does not fit its operands.
    #[error("{}", error_text!(
        "the inline assembly `{template}` with the constraints `{constraints}` cannot be called: {why}"
    ))]
    Assembly {
        /// The instructions.
        template: String,
        /// The constraints.
        constraints: String,
        /// What is wrong, and what would be right.
        why: String,
    },
    /// The machine's code can have no inline assembly of a hook's.
    #[error("{}", error_text!(
        "code for {machine} can have no inline assembly of a hook's, and `{template}` is some; build it of \
         LLVM's instructions, or give `Ok(None)` where `hook().target` is that machine"
    ))]
    NoAssembly {
        /// The machine.
        machine: &'static str,
        /// The instructions.
        template: String,
    },
    /// A type whose values are no single value of LLVM's.
    #[error("{}", error_text!(
        "a `{ty}` is no single value of LLVM's; a slice is two, its address and its length"
    ))]
    NotOneValue {
        /// The type.
        ty: String,
    },
    /// An operation was lowered to something else than it gives.
    #[error("{}", error_text!(
        "an operation of function `{function}` was lowered to {given}, and it gives {wanted}; give {advice}"
    ))]
    WrongValue {
        /// The function of the IR.
        function: String,
        /// What was given: a value of a type, a slice, or nothing.
        given: String,
        /// What the operation gives.
        wanted: String,
        /// What is to be given.
        advice: &'static str,
    },
    /// A text with a zero in it, which LLVM would take for its end.
    #[error("{}", error_text!("there is a NUL character in {what}; leave it out"))]
    Nul {
        /// Which text.
        what: &'static str,
    },
    /// LLVM's builder refused.
    #[error("{}", error_text!("{}", .0))]
    Llvm(BackendError),
}

debug_as_text!(OperationError);

impl From<OperationError> for BackendError {
    fn from(error: OperationError) -> BackendError {
        match error {
            OperationError::Llvm(error) => error,
            error => BackendError::new("lower", error.to_string()),
        }
    }
}

impl From<BackendError> for OperationError {
    fn from(error: BackendError) -> OperationError {
        OperationError::Llvm(error)
    }
}

impl fmt::Debug for OperationLowering<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperationLowering")
            .field("hook", &self.hook)
            .field("function", &self.function.name)
            .field("inst", self.inst)
            .finish_non_exhaustive()
    }
}

impl<'a, 'ctx> OperationLowering<'a, 'ctx> {
    /// What is known of the kernel: its name, what it was specialized for, its key.
    pub fn hook(&self) -> HookContext<'a> {
        self.hook
    }

    /// What machine the code is for.
    pub fn target(&self) -> &'a kiln_ir::target::Target {
        self.hook.target
    }

    /// The options.
    pub fn options(&self) -> &'a CompileOptions {
        self.hook.options
    }

    /// The LLVM context.
    pub fn context(&self) -> &'ctx Context {
        self.context
    }

    /// The builder, at the place of the operation.
    pub fn builder(&self) -> &'a Builder<'ctx> {
        self.builder
    }

    /// The LLVM module being built.
    pub fn llvm_module(&self) -> &'a LlvmModule<'ctx> {
        self.llvm_module
    }

    /// The LLVM function being built.
    pub fn llvm_function(&self) -> FunctionValue<'ctx> {
        self.llvm_function
    }

    /// The IR function being lowered; on a CPU the kernel with what it calls put in place of the calls.
    pub fn function(&self) -> &'a Function {
        self.function
    }

    /// The IR module being lowered.
    pub fn module(&self) -> &'a Module {
        self.module
    }

    /// The type of the operation's result; [`Type::UNIT`] if it gives nothing.
    pub fn result_type(&self) -> Type {
        let result = self.inst.result;
        result.map_or(Type::UNIT, |value| self.function.type_of(value))
    }

    /// The types of the operation's operands, in order.
    pub fn operand_types(&self) -> Vec<Type> {
        let mut types = Vec::new();
        let data = &self.inst.data;
        data.for_each_operand(|value| types.push(self.function.type_of(value)));
        types
    }

    /// The LLVM type that values of a type have here: that of the values that a hook is given and gives. Structs and
    /// arrays are LLVM's, of what lies in memory: in them a bool is a byte, a slice is its address and a length of 64
    /// bits, and a vector of more than 16 bytes is an array of vectors of 16.
    ///
    /// # Errors
    /// [`OperationError::NotOneValue`], as of slices, which are two values.
    pub fn llvm_type(&self, ty: Type) -> Result<BasicTypeEnum<'ctx>, OperationError> {
        match *self.module.types.data(ty) {
            TypeData::Scalar(scalar) => Ok(scalar_type(self.context, scalar)),
            TypeData::Vector { element, lanes } => {
                Ok(vector_type(scalar_type(self.context, element), lanes))
            }
            TypeData::Pointer { space, .. } => Ok(self.place.pointer(space).into()),
            TypeData::Array { .. } | TypeData::Struct(_) => Ok(self.place.aggregate(ty)?),
            TypeData::Unit | TypeData::Slice { .. } | TypeData::Param(_) => {
                Err(OperationError::NotOneValue {
                    ty: self.module.types.display(ty).to_string(),
                })
            }
        }
    }

    /// The LLVM type of the operation's result.
    ///
    /// # Errors
    /// As [`OperationLowering::llvm_type`].
    pub fn llvm_result_type(&self) -> Result<BasicTypeEnum<'ctx>, OperationError> {
        self.llvm_type(self.result_type())
    }

    /// Calls one of LLVM's intrinsics (LLVM language reference, "Intrinsic Functions"; "User Guide for NVPTX
    /// Back-end"), by its name without the types that an overloaded one is told apart by: `llvm.sqrt` for each
    /// float. Gives its value, or `None` if it is called for no result. Whether the target's back end has an
    /// instruction for it is found out when the hooks are done with the module.
    ///
    /// # Errors
    /// [`OperationError::NoIntrinsic`], [`OperationError::Signature`].
    pub fn call_intrinsic(
        &self,
        name: &str,
        result: Option<BasicTypeEnum<'ctx>>,
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<Option<BasicValueEnum<'ctx>>, OperationError> {
        let signature = CallSignature::of(result, args);
        let declared = declare_intrinsic(self.context, self.llvm_module, name, &signature)?;
        let arguments = call_arguments(args);
        let call = self.builder.build_call(declared, &arguments, "");
        Ok(call
            .map_err(BackendError::from)?
            .try_as_basic_value()
            .basic())
    }

    /// Calls inline assembly of the target's (LLVM language reference, "Inline Assembler Expressions"): on
    /// NVIDIA's GPUs PTX, with `$0` for the first operand, the result if there is one. The constraints are
    /// `h`, `r`, `l`, `f`, `d` for registers of 16, 32, 64 bits, `f32` and `f64`; an address is of 64 bits. The hook
    /// that calls it answers for it: `ptxas` and the driver take it, and `effects` says what it does besides
    /// giving a result.
    ///
    /// # Errors
    /// [`OperationError::Assembly`]; on machines whose code can have none [`OperationError::NoAssembly`].
    pub fn call_asm(
        &self,
        template: &str,
        constraints: &str,
        result: Option<BasicTypeEnum<'ctx>>,
        args: &[BasicValueEnum<'ctx>],
        effects: Effects,
    ) -> Result<Option<BasicValueEnum<'ctx>>, OperationError> {
        for (text, what) in [(template, "inline assembly"), (constraints, "constraints")] {
            if text.contains('\0') {
                return Err(OperationError::Nul { what });
            }
        }
        let assembly = InlineAssembly {
            template,
            constraints,
            effects,
        };
        self.place.assembly(self.builder, assembly, result, args)
    }
}

impl InlineAssembly<'_> {
    /// The error that this assembly cannot be called, and why.
    pub(crate) fn refused(&self, why: impl Into<String>) -> OperationError {
        OperationError::Assembly {
            template: self.template.to_owned(),
            constraints: self.constraints.to_owned(),
            why: why.into(),
        }
    }
}

/// The type of a scalar that a hook is given.
pub(crate) fn scalar_type(context: &Context, scalar: Scalar) -> BasicTypeEnum<'_> {
    match scalar {
        Scalar::Bool => context.bool_type().into(),
        Scalar::I8 | Scalar::U8 => context.i8_type().into(),
        Scalar::I16 | Scalar::U16 => context.i16_type().into(),
        Scalar::I32 | Scalar::U32 => context.i32_type().into(),
        Scalar::I64 | Scalar::U64 => context.i64_type().into(),
        Scalar::F16 => context.f16_type().into(),
        Scalar::BF16 => context.bf16_type().into(),
        Scalar::F32 => context.f32_type().into(),
        Scalar::F64 => context.f64_type().into(),
    }
}

/// The largest alignment of a vector in memory, in bytes (CUDA guide, "Built-in Vector Types").
const VECTOR_ALIGN: u32 = 16;

/// If a vector in a struct, in an array or behind an address is an array of smaller vectors: the lanes of each.
pub(crate) fn lanes_per_piece(element: Scalar, lanes: u8) -> Option<u8> {
    let piece = (VECTOR_ALIGN / element.bytes()) as u8;
    (lanes > piece).then_some(piece)
}

fn vector_type(element: BasicTypeEnum<'_>, lanes: u8) -> BasicTypeEnum<'_> {
    match element {
        BasicTypeEnum::FloatType(float) => float.vec_type(lanes.into()).into(),
        BasicTypeEnum::IntType(int) => int.vec_type(lanes.into()).into(),
        // A vector's element is a number.
        other => other,
    }
}
