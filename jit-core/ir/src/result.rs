//! The type of what an operation gives: asked by the verifier, by builders, and by who rewrites the IR.
//!
//! Most operations say it by their operands. [`Function::result_type`] has it from there, without a change
//! to the module's types; what builds an operation enters it in them ([`ResultType::enter`]), and what
//! checks one compares.

use smallvec::SmallVec;

use super::function::Function;
use super::inst::{ConstArg, InstData};
use super::intrinsic::IntrinsicDef;
use super::module::Module;
use super::types::{Address, AddressSpace, Type, TypeData, TypeTable};

/// What decides the type of an operation's result.
#[derive(Clone, Debug)]
pub enum ResultType<'a> {
    /// No result, and so no type.
    None,
    /// A type that the instruction says.
    Known(Type),
    /// A pointer.
    Pointer(Address),
    /// A slice.
    Slice {
        /// Of what, and where.
        of: Address,
        /// Whether the slice's length takes 64 bits.
        wide: bool,
    },
    /// The type that a device function gives, under the arguments of a call.
    Called {
        /// The type, in terms of the callee's parameters.
        ty: Type,
        /// The type arguments.
        types: &'a [Type],
        /// The const arguments.
        consts: &'a [ConstArg],
    },
    /// The type that a row says for arguments of these types.
    Row(&'static IntrinsicDef, SmallVec<[Type; 4]>),
    /// There are several, of which whoever builds it takes one.
    Chosen,
}

impl ResultType<'_> {
    /// The type, entered in `types` if it is new; unit for no result. `None` where it is to be chosen, and
    /// where a row does not take such arguments.
    pub fn enter(&self, types: &mut TypeTable) -> Option<Type> {
        Some(match *self {
            ResultType::None => Type::UNIT,
            ResultType::Known(ty) => ty,
            ResultType::Pointer(at) => types.pointer(at.pointee, at.space, at.mutable),
            ResultType::Slice { of, wide } => types.intern(TypeData::Slice {
                element: of.pointee,
                space: of.space,
                mutable: of.mutable,
                wide,
            }),
            ResultType::Called {
                ty,
                types: args,
                consts,
            } => types.substitute(ty, args, consts),
            ResultType::Row(def, ref args) => def.result_type(types, args).ok()?,
            ResultType::Chosen => return None,
        })
    }
}

impl Function {
    /// What decides the type of the result of `data`, an operation on values of this function of `module`.
    /// `None` where it does not take such operands; the verifier says why.
    // flat match
    pub fn result_type<'a>(&self, module: &Module, data: &'a InstData) -> Option<ResultType<'a>> {
        let types = &module.types;
        let address = |value| types.address(self.type_of(value));
        let pointer = |value| {
            let ty = self.type_of(value);
            types.address(ty).filter(|_| types.is_pointer(ty))
        };
        let part_of = |value, pointee| {
            pointer(value).map(|at| ResultType::Pointer(Address { pointee, ..at }))
        };
        Some(match *data {
            InstData::Const(_)
            | InstData::Cast { .. }
            | InstData::Bitcast { .. }
            | InstData::Construct { .. }
            | InstData::SpaceCast { .. }
            | InstData::SliceLen { .. }
            | InstData::DynamicShared
            | InstData::LocalAlloc => ResultType::Chosen,
            InstData::ConstParam(param) => {
                let params = &self.const_params;
                ResultType::Known(params.get(super::Entity::index(param))?.ty)
            }
            InstData::Unary { arg, .. } => ResultType::Known(self.type_of(arg)),
            InstData::Binary {
                args: [left, _], ..
            } => ResultType::Known(self.type_of(left)),
            InstData::Compare { .. } => ResultType::Known(Type::BOOL),
            InstData::Select { if_true, .. } => ResultType::Known(self.type_of(if_true)),
            InstData::Extract { aggregate, index } => {
                ResultType::Known(types.part(self.type_of(aggregate), index)?)
            }
            InstData::Insert { aggregate, .. } => ResultType::Known(self.type_of(aggregate)),
            InstData::VarGet(var) => ResultType::Known(self.vars.get(var)?.ty),
            InstData::Load { ptr, .. }
            | InstData::AtomicLoad { ptr, .. }
            | InstData::AtomicRmw { ptr, .. }
            | InstData::AtomicCas { ptr, .. } => ResultType::Known(pointer(ptr)?.pointee),
            InstData::PtrOffset { ptr, .. } => {
                pointer(ptr)?;
                ResultType::Known(self.type_of(ptr))
            }
            InstData::FieldPtr { ptr, field } => {
                let fields = &types.as_struct(pointer(ptr)?.pointee)?.fields;
                part_of(ptr, fields.get(field as usize)?.1)?
            }
            InstData::ElementPtr { ptr, .. } => {
                part_of(ptr, types.as_indexed(pointer(ptr)?.pointee)?.0)?
            }
            InstData::SliceNew { ptr, len } => ResultType::Slice {
                of: pointer(ptr)?,
                wide: self.type_of(len) == Type::U64,
            },
            InstData::SlicePtr { slice } | InstData::SliceIndex { slice, .. } => {
                types.as_slice(self.type_of(slice))?;
                ResultType::Pointer(address(slice)?)
            }
            InstData::SharedAddr(var) => ResultType::Pointer(Address {
                pointee: self.shared.get(var)?.ty,
                space: AddressSpace::Shared,
                mutable: true,
            }),
            InstData::GlobalAddr(id) => ResultType::Pointer(Address {
                pointee: module.globals.get(id)?.ty,
                space: AddressSpace::Constant,
                mutable: false,
            }),
            InstData::Hidden(id) => ResultType::Known(module.hidden.get(id)?.ty),
            InstData::Call {
                callee,
                ref type_args,
                ref const_args,
                ..
            } => match module.functions.get(callee)?.result {
                Type::UNIT => ResultType::None,
                ty => ResultType::Called {
                    ty,
                    types: type_args,
                    consts: const_args,
                },
            },
            InstData::Intrinsic { id, ref args } => {
                let types = args.iter().map(|&arg| self.type_of(arg));
                ResultType::Row(module.intrinsics.get(id)?, types.collect())
            }
            InstData::VarSet(..)
            | InstData::Store { .. }
            | InstData::AtomicStore { .. }
            | InstData::Barrier
            | InstData::Assume { .. }
            | InstData::Assert { .. }
            | InstData::Print { .. }
            | InstData::Fence { .. }
            | InstData::If { .. }
            | InstData::Loop { .. }
            | InstData::For { .. }
            | InstData::Break { .. }
            | InstData::Continue { .. }
            | InstData::Return { .. } => ResultType::None,
        })
    }
}
