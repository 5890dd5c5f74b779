//! The table of what the PTX target has: (operation, type, architecture).
//!
//! LLVM ends the process when it meets an operation it cannot select, so nothing outside this table
//! reaches it. Passing the IR's verifier is assumed; what is refused here is correct IR that this
//! target has no instruction for. Every cell of the table is compiled and assembled in
//! `tests/ptx_grid.rs`.

use std::fmt;

use super::intrinsic;
use crate::abi::ParamLayout;
use crate::ir::{
    AddressSpace, ArrayLen, AtomicOp, BinaryOp, Function, FunctionKind, InstData, IntrinsicDef,
    Location, Module, Passing, Phase, PtxLowering, Scalar, Type, TypeData, TypeTable, UnaryOp,
    Value,
};
use crate::target::{PtxTarget, Target};

/// The largest number of scalars in a value that is not behind a pointer. LLVM handles each as a
/// value of its own.
const MAX_VALUE_LEAVES: u64 = 4096;

/// Bytes of constants in a module (CUDA guide, "Compute Capabilities").
const MAX_CONSTANT_BYTES: u64 = 64 << 10;

/// Bytes of static shared memory in a block; more has to be dynamic (CUDA guide, the same table).
const MAX_STATIC_SHARED_BYTES: u64 = 48 << 10;

/// Something a target does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Illegal {
    /// The function it is in.
    pub function: String,
    /// The line that built it, as `file:line:column`.
    pub location: String,
    /// What it is, and how to do without.
    pub message: String,
}

impl fmt::Display for Illegal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Illegal {
            function,
            location,
            message,
        } = self;
        write!(f, "{location}: in `{function}`: {message}")
    }
}

/// Everything in a module that a target does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kernel `{module}` cannot be compiled for sm_{sm}:\n{}", lines(.list))]
pub struct IllegalOperations {
    /// The module.
    pub module: String,
    /// The architecture.
    pub sm: u32,
    /// What it holds that is not legal; not empty.
    pub list: Vec<Illegal>,
}

fn lines(list: &[Illegal]) -> String {
    let lines: Vec<String> = list.iter().map(|illegal| format!("  {illegal}")).collect();
    lines.join("\n")
}

/// Whether a verified module of [`Phase::Legal`] can be compiled for a target.
///
/// # Errors
/// All operations that cannot, each with its line and a way out.
pub fn check_legal(module: &Module, target: &PtxTarget) -> Result<(), IllegalOperations> {
    let mut list = Vec::new();
    let mut refuse = |function: &str, location: Location, message: String| {
        list.push(Illegal {
            function: function.to_owned(),
            location: module.display_location(location),
            message,
        });
    };
    for function in module.functions.values() {
        if let Some(message) = check_signature(module, function) {
            refuse(&function.name, function.location, message);
        }
        function.for_each_inst(|_, inst| {
            let node = &function.insts[inst];
            let result = node.result.map_or(Type::UNIT, |r| function.type_of(r));
            let check = Check {
                module,
                function,
                target: *target,
            };
            if let Err(message) = check.inst(&node.data, result) {
                refuse(&function.name, node.location, message);
            }
        });
    }
    let kernel = module.kernel().map(|id| &module.functions[id]);
    let (name, location) = match kernel {
        Some(kernel) => (kernel.name.as_str(), kernel.location),
        None => (module.name.as_str(), Location::unknown()),
    };
    for message in check_module(module, target) {
        refuse(name, location, message);
    }
    if list.is_empty() {
        return Ok(());
    }
    Err(IllegalOperations {
        module: module.name.clone(),
        sm: target.sm,
        list,
    })
}

/// What the module as a whole breaks.
fn check_module(module: &Module, target: &PtxTarget) -> Vec<String> {
    let mut messages = Vec::new();
    if module.phase != Phase::Legal {
        let phase = module.phase.name();
        messages.push(format!(
            "the module is in phase `{phase}`; specialize it and lower its ABI first"
        ));
    }
    let max_params = Target::Ptx(*target).max_param_bytes();
    match ParamLayout::of(module) {
        None => messages.push("there is no kernel with concrete parameters".to_owned()),
        Some(layout) if layout.size > max_params => messages.push(format!(
            "the parameters take {} bytes, of at most {max_params}; pass large values by reference",
            layout.size
        )),
        Some(_) => {}
    }
    let constants: u64 = module.globals.values().map(|g| g.bytes.len() as u64).sum();
    if constants > MAX_CONSTANT_BYTES {
        messages.push(format!(
            "the constants take {constants} bytes, of at most {MAX_CONSTANT_BYTES}; pass them as \
             a slice"
        ));
    }
    let size = |ty| module.types.layout(ty).map_or(0, |layout| layout.size);
    let shared: u64 = module
        .functions
        .values()
        .flat_map(|function| function.shared.values())
        .map(|data| size(data.ty))
        .fold(0, u64::saturating_add);
    if shared > MAX_STATIC_SHARED_BYTES {
        messages.push(format!(
            "the shared variables take {shared} bytes, of at most {MAX_STATIC_SHARED_BYTES}; use \
             dynamic shared memory"
        ));
    }
    messages
}

/// What a function's parameters and variables break.
fn check_signature(module: &Module, function: &Function) -> Option<String> {
    let types = &module.types;
    for param in &function.params {
        let ty = function.type_of(param.value);
        let space = match *types.data(ty) {
            TypeData::Pointer { space, .. } | TypeData::Slice { space, .. } => space,
            _ => AddressSpace::Generic,
        };
        let from_host = matches!(space, AddressSpace::Generic | AddressSpace::Global);
        let by_value = param.passing == Passing::ByValue;
        if function.kind == FunctionKind::Kernel && !from_host && !by_value {
            return Some(format!(
                "parameter `{}` points into {} memory, which the host cannot pass; pass global \
                 memory",
                param.name,
                space.name()
            ));
        }
    }
    let params = function.params.iter().map(|p| function.type_of(p.value));
    let vars = function.vars.values().map(|var| var.ty);
    params
        .chain(vars)
        .chain([function.result])
        .find_map(|ty| too_large(types, ty))
}

/// The number of scalars in a value.
fn leaves(types: &TypeTable, ty: Type) -> u64 {
    match *types.data(ty) {
        TypeData::Unit | TypeData::Param(_) => 0,
        TypeData::Scalar(_) | TypeData::Pointer { .. } => 1,
        TypeData::Slice { .. } => 2,
        TypeData::Vector { lanes, .. } => lanes.into(),
        TypeData::Array { element, len } => match len {
            ArrayLen::Known(len) => leaves(types, element).saturating_mul(len),
            ArrayLen::Param(_) => 0,
        },
        TypeData::Struct(id) => types
            .struct_data(id)
            .fields
            .iter()
            .map(|(_, field)| leaves(types, *field))
            .fold(0, u64::saturating_add),
    }
}

fn too_large(types: &TypeTable, ty: Type) -> Option<String> {
    let leaves = leaves(types, ty);
    (leaves > MAX_VALUE_LEAVES).then(|| {
        format!(
            "a value of type `{}` has {leaves} numbers, of at most {MAX_VALUE_LEAVES}; keep it in \
             memory and go through a pointer to its parts",
            types.display(ty)
        )
    })
}

/// The instruction checks of one function.
struct Check<'a> {
    module: &'a Module,
    function: &'a Function,
    target: PtxTarget,
}

impl Check<'_> {
    fn type_of(&self, value: Value) -> Type {
        self.function.type_of(value)
    }

    fn name(&self, ty: Type) -> String {
        self.module.types.display(ty)
    }

    fn space(&self, ty: Type) -> Option<AddressSpace> {
        match *self.module.types.data(ty) {
            TypeData::Pointer { space, .. } | TypeData::Slice { space, .. } => Some(space),
            _ => None,
        }
    }

    /// The list of all instructions.
    fn inst(&self, data: &InstData, result: Type) -> Result<(), String> {
        if let Some(message) = too_large(&self.module.types, result) {
            return Err(message);
        }
        match *data {
            InstData::Unary { op, arg } => self.unary(op, self.type_of(arg)),
            InstData::Binary { op, args } => self.binary(op, self.type_of(args[0])),
            InstData::Compare { args, .. } => self.compare(self.type_of(args[0])),
            InstData::Cast { arg } => self.cast(self.type_of(arg), result),
            InstData::Bitcast { arg } => self.bitcast(self.type_of(arg), result),
            InstData::SpaceCast { arg } => self.space_cast(self.type_of(arg), result),
            InstData::Store { ptr, value, .. } => {
                if let Some(message) = too_large(&self.module.types, self.type_of(value)) {
                    return Err(message);
                }
                self.store(self.type_of(ptr))
            }
            InstData::AtomicLoad { ptr, .. } | InstData::AtomicStore { ptr, .. } => {
                self.atomic_space(self.type_of(ptr))
            }
            InstData::AtomicRmw { op, ptr, value, .. } => {
                self.atomic_rmw(op, self.type_of(value))?;
                self.atomic_space(self.type_of(ptr))
            }
            InstData::AtomicCas { ptr, new, .. } => {
                self.atomic_cas(self.type_of(new))?;
                self.atomic_space(self.type_of(ptr))
            }
            InstData::Intrinsic { id, ref args } => {
                let args: Vec<Type> = args.iter().map(|&arg| self.type_of(arg)).collect();
                self.intrinsic(self.module.intrinsics[id], &args, result)
            }
            InstData::Const(_)
            | InstData::ConstParam(_)
            | InstData::Select { .. }
            | InstData::Construct { .. }
            | InstData::Extract { .. }
            | InstData::Insert { .. }
            | InstData::VarGet(_)
            | InstData::VarSet(..)
            | InstData::Load { .. }
            | InstData::PtrOffset { .. }
            | InstData::FieldPtr { .. }
            | InstData::ElementPtr { .. }
            | InstData::SliceNew { .. }
            | InstData::SliceLen { .. }
            | InstData::SlicePtr { .. }
            | InstData::SliceIndex { .. }
            | InstData::SharedAddr(_)
            | InstData::DynamicShared
            | InstData::LocalAlloc
            | InstData::GlobalAddr(_)
            | InstData::Barrier
            | InstData::Fence { .. }
            | InstData::Call { .. }
            | InstData::If { .. }
            | InstData::Loop { .. }
            | InstData::For { .. }
            | InstData::Break { .. }
            | InstData::Continue { .. }
            | InstData::Return { .. } => Ok(()),
        }
    }

    /// The scalar that arithmetic on `ty` works on: of a scalar itself, of a vector its lanes'.
    fn lane(&self, ty: Type) -> Option<Scalar> {
        match *self.module.types.data(ty) {
            TypeData::Scalar(scalar) => Some(scalar),
            TypeData::Vector { element, .. } => Some(element),
            _ => None,
        }
    }

    fn unary(&self, op: UnaryOp, ty: Type) -> Result<(), String> {
        let legal = self.lane(ty).is_some_and(|scalar| match op {
            UnaryOp::Neg => scalar.is_int() || scalar.is_float(),
            UnaryOp::Not => scalar.is_int() || scalar == Scalar::Bool,
        });
        legal
            .then_some(())
            .ok_or_else(|| format!("there is no `{op:?}` of `{}`", self.name(ty)))
    }

    fn binary(&self, op: BinaryOp, ty: Type) -> Result<(), String> {
        let legal = self.lane(ty).is_some_and(|scalar| match op {
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::Div
            | BinaryOp::Min
            | BinaryOp::Max => scalar.is_int() || scalar.is_float(),
            BinaryOp::Rem | BinaryOp::Shl | BinaryOp::Shr => scalar.is_int(),
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => {
                scalar.is_int() || scalar == Scalar::Bool
            }
        });
        legal
            .then_some(())
            .ok_or_else(|| format!("there is no `{op:?}` of `{}`", self.name(ty)))
    }

    fn compare(&self, ty: Type) -> Result<(), String> {
        match self.module.types.data(ty) {
            TypeData::Scalar(_) | TypeData::Pointer { .. } => Ok(()),
            _ => Err(format!(
                "`{}` has no comparison; compare its parts",
                self.name(ty)
            )),
        }
    }

    fn cast(&self, from: Type, to: Type) -> Result<(), String> {
        let legal = match (from.as_scalar(), to.as_scalar()) {
            (Some(from), Some(Scalar::Bool)) => from == Scalar::Bool,
            (Some(_), Some(_)) => true,
            _ => false,
        };
        legal.then_some(()).ok_or_else(|| {
            let (from, to) = (self.name(from), self.name(to));
            format!("there is no conversion from `{from}` to `{to}`; a number is compared with 0")
        })
    }

    fn bitcast(&self, from: Type, to: Type) -> Result<(), String> {
        let types = &self.module.types;
        let flat = |ty: Type| {
            let data = types.data(ty);
            let kinds = matches!(
                data,
                TypeData::Scalar(_) | TypeData::Vector { .. } | TypeData::Pointer { .. }
            );
            kinds && ty != Type::BOOL
        };
        let size = |ty| types.layout(ty).map(|layout| layout.size);
        let spaces = match (self.space(from), self.space(to)) {
            (Some(from), Some(to)) => from == to,
            _ => true,
        };
        if flat(from) && flat(to) && size(from) == size(to) && spaces {
            return Ok(());
        }
        let (from, to) = (self.name(from), self.name(to));
        Err(format!(
            "the bits of `{from}` are not those of a `{to}`; both have to be numbers, vectors or \
             pointers of one size, pointers of one address space"
        ))
    }

    fn space_cast(&self, from: Type, to: Type) -> Result<(), String> {
        let generic = Some(AddressSpace::Generic);
        let (a, b) = (self.space(from), self.space(to));
        if a.is_some() && b.is_some() && (a == b || a == generic || b == generic) {
            return Ok(());
        }
        let (from, to) = (self.name(from), self.name(to));
        Err(format!(
            "`{from}` and `{to}` are in two address spaces, and an address of one is none of the \
             other"
        ))
    }

    fn store(&self, ptr: Type) -> Result<(), String> {
        match self.space(ptr) {
            Some(space @ (AddressSpace::Constant | AddressSpace::Param)) => {
                Err(format!("{} memory is read-only", space.name()))
            }
            _ => Ok(()),
        }
    }

    fn atomic_space(&self, ptr: Type) -> Result<(), String> {
        match self.space(ptr) {
            Some(AddressSpace::Global | AddressSpace::Shared | AddressSpace::Generic) => Ok(()),
            _ => Err(format!(
                "there are no atomics through `{}`; only in global and shared memory",
                self.name(ptr)
            )),
        }
    }

    fn atomic_rmw(&self, op: AtomicOp, ty: Type) -> Result<(), String> {
        let legal = ty.as_scalar().is_some_and(|scalar| {
            let number = scalar.bits() >= 32;
            match op {
                AtomicOp::Add | AtomicOp::Exchange => number,
                AtomicOp::Min | AtomicOp::Max | AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => {
                    number && scalar.is_int()
                }
            }
        });
        legal.then_some(()).ok_or_else(|| {
            format!(
                "there is no atomic `{op:?}` of `{}`; there are additions and exchanges of 32- and \
                 64-bit numbers, and the rest for integers of these widths",
                self.name(ty)
            )
        })
    }

    fn atomic_cas(&self, ty: Type) -> Result<(), String> {
        let legal = ty
            .as_scalar()
            .is_some_and(|scalar| scalar.is_int() && scalar.bits() >= 16);
        legal.then_some(()).ok_or_else(|| {
            format!(
                "there is no compare-and-swap of `{}`; there is one of integers of 16, 32 and 64 \
                 bits",
                self.name(ty)
            )
        })
    }

    fn intrinsic(&self, def: &IntrinsicDef, args: &[Type], result: Type) -> Result<(), String> {
        let sm = self.target.sm;
        if intrinsic::cell(def, args, result, sm).is_some() {
            return Ok(());
        }
        let ty = def.cell_type(args, result);
        let of = ty.map_or(String::new(), |ty| format!(" of `{}`", ty.name()));
        let through = |c: &&crate::ir::PtxCell| match c.lowering {
            PtxLowering::ViaF32 => Some(Scalar::F32),
            PtxLowering::Llvm { .. } | PtxLowering::Asm { .. } => ty,
        };
        let newer = def
            .ptx
            .iter()
            .filter(|cell| cell.ty.is_none() || cell.ty == ty)
            .filter_map(|cell| {
                let through = through(&cell);
                let last = def.ptx.iter().filter(|c| c.ty.is_none() || c.ty == through);
                last.map(|c| c.min_sm.max(cell.min_sm)).min()
            })
            .min();
        Err(match newer {
            Some(newer) if newer > sm => {
                format!("`{}`{of} exists from sm_{newer} on", def.name)
            }
            _ => {
                let types: Vec<&str> = def
                    .ptx
                    .iter()
                    .filter_map(|cell| cell.ty.map(Scalar::name))
                    .collect();
                format!(
                    "there is no `{}`{of} on NVIDIA GPUs; it exists for: {}",
                    def.name,
                    types.join(", ")
                )
            }
        })
    }
}
