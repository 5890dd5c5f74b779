//! Functions: signature, variables, shared memory, and the tree of regions that is the body.

use super::entity::{PrimaryMap, entity};
use super::inst::{InstData, InstNode};
use super::module::HiddenParam;
use super::types::{Type, TypeTable};
use super::{Attributes, Choices, FastMath, StaticAssertion};
use super::{Location, inst::Constant};

entity! {
    /// A value: defined once, by an instruction, a parameter or a `for`.
    Value = "%";
    /// An instruction of a function.
    Inst = "inst";
    /// A list of instructions executed in order; a body or a part of one.
    Region = "region";
    /// A mutable variable of a function.
    Var = "var";
    /// A shared variable of a kernel or of a device function.
    SharedVar = "shared";
}

/// What a type argument must be.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum TypeBound {
    /// Any type with a layout.
    Any,
    /// An integer or a float.
    Num,
    /// An integer.
    Int,
    /// A float.
    Float,
}

/// A type parameter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypeParamData {
    /// The parameter's name, for errors.
    pub name: String,
    /// What the parameter can be bound to.
    pub bound: TypeBound,
}

/// A const parameter: an integer or a bool known when the function is specialized.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConstParamData {
    /// The parameter's name; a const argument of a launch is given by this name.
    pub name: String,
    /// An integer type or `bool`.
    pub ty: Type,
}

/// How a kernel receives a parameter.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum Passing {
    /// In the parameter block, as the IR type says: scalars, vectors, pointers, slices.
    #[default]
    Direct,
    /// The value lies in device memory and the parameter is its address. The IR type is a
    /// read-only pointer to the value.
    ByReference,
    /// The value lies in the parameter block. The IR type is a pointer to it, in
    /// [`super::AddressSpace::Param`].
    ByValue,
}

/// What is known about the argument beyond its type.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct ParamFacts {
    /// The address of a pointer or slice is a multiple of this many bytes (0 and 1: nothing known).
    pub align: u32,
    /// An integer is a multiple of this number (0 and 1: nothing known).
    pub divisor: u32,
    /// No other parameter reaches the memory behind this pointer or slice, unless both only read.
    pub noalias: bool,
    /// A slice has fewer than [`ParamFacts::SHORT`] elements.
    pub short: bool,
}

impl ParamFacts {
    /// 2^31: from so many elements on, two indices in bounds may be further apart than a signed integer of 32 bits says.
    pub const SHORT: u64 = 1 << 31;
}

/// A parameter.
#[derive(Clone, PartialEq, Debug)]
pub struct ParamData {
    /// The parameter's name.
    pub name: String,
    /// The parameter's value in the body.
    pub value: Value,
    /// How the parameter arrives; `Direct` except for aggregates of kernels after ABI lowering.
    pub passing: Passing,
    /// What is known about it.
    pub facts: ParamFacts,
    /// The hidden value that it is, if no argument is bound to it.
    pub hidden: Option<HiddenParam>,
    /// Where the parameter was declared.
    pub location: Location,
}

/// What is promised about launches (CUDA guide, `__launch_bounds__`).
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct LaunchBounds {
    /// The largest number of threads a block will have.
    pub max_threads: u32,
    /// The number of blocks to keep resident on a multiprocessor; 0: as it comes.
    pub min_blocks: u32,
}

/// How calls of a device function are to be inlined, where its target has calls: code for the CPU has
/// none.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum Inline {
    /// As the target's compiler decides.
    #[default]
    Auto,
    /// Rather than not (LLVM language reference, `inlinehint`).
    Hint,
    /// Always (`alwaysinline`).
    Always,
    /// Never (`noinline`).
    Never,
}

impl Inline {
    /// What asks for it in the text form.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Inline::Auto => "",
            Inline::Hint => "inline",
            Inline::Always => "inline(always)",
            Inline::Never => "inline(never)",
        }
    }
}

/// Kernels are launched by the host; device functions are called.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum FunctionKind {
    /// Launched by the host; returns nothing.
    Kernel,
    /// Called by a kernel or a device function.
    Device,
}

/// A type and where it comes from.
#[derive(Clone, PartialEq, Debug)]
pub struct ValueData {
    /// The value's type.
    pub ty: Type,
    /// What defines it.
    pub def: ValueDef,
}

/// What defines a value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ValueDef {
    /// The result of an instruction.
    Inst(Inst),
    /// A parameter, by position.
    Param(u32),
    /// The induction value of this `for`.
    Index(Inst),
}

/// A mutable variable. Reading it before it is assigned gives zero.
#[derive(Clone, PartialEq, Debug)]
pub struct VarData {
    /// The variable's name; not necessarily unique.
    pub name: String,
    /// The variable's type.
    pub ty: Type,
}

/// A statically sized shared variable, uninitialized at the start of a block.
#[derive(Clone, PartialEq, Debug)]
pub struct SharedData {
    /// The variable's name; not necessarily unique.
    pub name: String,
    /// The variable's type.
    pub ty: Type,
    /// The variable's alignment in bytes; at least that of the type.
    pub align: u32,
}

/// The instructions of a region.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RegionData {
    /// In the order of execution.
    pub insts: Vec<Inst>,
}

/// A kernel or a device function.
#[derive(Clone, PartialEq, Debug)]
pub struct Function {
    /// The function's name, unique in its module.
    pub name: String,
    /// Kernel or device function.
    pub kind: FunctionKind,
    /// Whether only the signature is here; the body comes when the module is linked.
    pub is_declaration: bool,
    /// Type parameters; empty after specialization.
    pub type_params: Vec<TypeParamData>,
    /// Const parameters; empty after specialization.
    pub const_params: Vec<ConstParamData>,
    /// Parameters.
    pub params: Vec<ParamData>,
    /// The result type; unit for none.
    pub result: Type,
    /// Promises about launches.
    pub launch_bounds: Option<LaunchBounds>,
    /// What the function chooses of what is usually left to the compilation.
    pub choices: Choices,
    /// How calls of a device function are to be inlined.
    pub inline: Inline,
    /// What is said of it for hooks to read.
    pub attributes: Attributes,
    /// What must hold of type and const arguments; empty after specialization, which has checked it.
    pub assertions: Vec<StaticAssertion>,
    /// Where the function was defined.
    pub location: Location,
    /// Instructions.
    pub insts: PrimaryMap<Inst, InstNode>,
    /// Values.
    pub values: PrimaryMap<Value, ValueData>,
    /// Mutable variables.
    pub vars: PrimaryMap<Var, VarData>,
    /// Shared variables.
    pub shared: PrimaryMap<SharedVar, SharedData>,
    /// Regions.
    pub regions: PrimaryMap<Region, RegionData>,
    /// The outermost region.
    pub body: Region,
}

impl Function {
    /// A function without parameters and with an empty body.
    pub fn new(name: impl Into<String>, kind: FunctionKind, location: Location) -> Self {
        let mut regions = PrimaryMap::new();
        let body = regions.push(RegionData::default());
        Self {
            name: name.into(),
            kind,
            is_declaration: false,
            type_params: Vec::new(),
            const_params: Vec::new(),
            params: Vec::new(),
            result: Type::UNIT,
            launch_bounds: None,
            choices: Choices::default(),
            inline: Inline::Auto,
            attributes: Attributes::default(),
            assertions: Vec::new(),
            location,
            insts: PrimaryMap::new(),
            values: PrimaryMap::new(),
            vars: PrimaryMap::new(),
            shared: PrimaryMap::new(),
            regions,
            body,
        }
    }

    /// What callers have of a function in the same module: its signature.
    pub fn declaration(&self) -> Self {
        let mut declaration = Self::new(&self.name, self.kind, self.location);
        declaration.is_declaration = true;
        declaration.type_params = self.type_params.clone();
        declaration.const_params = self.const_params.clone();
        for param in &self.params {
            declaration.add_param(&param.name, self.type_of(param.value), param.location);
        }
        declaration.result = self.result;
        declaration
    }

    /// Declares a parameter and returns its value.
    pub fn add_param(&mut self, name: impl Into<String>, ty: Type, location: Location) -> Value {
        let def = ValueDef::Param(self.params.len() as u32);
        let value = self.values.push(ValueData { ty, def });
        self.params.push(ParamData {
            name: name.into(),
            value,
            passing: Passing::Direct,
            facts: ParamFacts::default(),
            hidden: None,
            location,
        });
        value
    }

    /// Creates an instruction that defines a value of type `result` (unit: none), without placing
    /// it. A `for` must already hold the induction value made by [`Function::new_index`].
    pub fn new_inst(&mut self, data: InstData, result: Type, location: Location) -> Inst {
        let inst = self.insts.next_key();
        if let Some(index) = data.index() {
            self.values[index].def = ValueDef::Index(inst);
        }
        let result = (result != Type::UNIT).then(|| {
            self.values.push(ValueData {
                ty: result,
                def: ValueDef::Inst(inst),
            })
        });
        self.insts.push(InstNode {
            data,
            result,
            fast: FastMath::NONE,
            location,
        })
    }

    /// Creates the induction value of a `for` that is about to be made by [`Function::new_inst`].
    pub fn new_index(&mut self, ty: Type) -> Value {
        let def = ValueDef::Index(self.insts.next_key());
        self.values.push(ValueData { ty, def })
    }

    /// Creates an instruction and places it at the end of `region`.
    pub fn append(
        &mut self,
        region: Region,
        data: InstData,
        result: Type,
        location: Location,
    ) -> Option<Value> {
        let inst = self.new_inst(data, result, location);
        self.regions[region].insts.push(inst);
        self.insts[inst].result
    }

    /// The parameter that is a hidden value, if the function has it as one.
    pub fn hidden_param(&self, id: HiddenParam) -> Option<&ParamData> {
        self.params.iter().find(|param| param.hidden == Some(id))
    }

    /// The type of a value.
    pub fn type_of(&self, value: Value) -> Type {
        self.values[value].ty
    }

    /// The constant that defines `value`, if one does.
    pub fn constant(&self, value: Value) -> Option<Constant> {
        match self.values.get(value)?.def {
            ValueDef::Inst(inst) => self.insts[inst].data.constant(),
            _ => None,
        }
    }

    /// Calls `f` on every instruction reachable from the body, outer before inner, in the order of
    /// the text.
    pub fn for_each_inst(&self, mut f: impl FnMut(Region, Inst)) {
        self.walk(self.body, &mut f);
    }

    /// Whether 16 bytes are exchanged or compared and swapped in one step; `types` are those of the module.
    pub fn changes_word_pairs(&self, types: &TypeTable) -> bool {
        let mut found = false;
        self.for_each_inst(|_, inst| {
            let written = self.insts[inst].data.atomic_operand();
            found |= written.is_some_and(|value| types.is_word_pair(self.type_of(value)));
        });
        found
    }

    /// Calls `f` for the instructions of a region, those of regions within it after the one that holds
    /// them.
    pub fn walk(&self, region: Region, f: &mut impl FnMut(Region, Inst)) {
        for &inst in &self.regions[region].insts {
            f(region, inst);
            for inner in self.insts[inst].data.regions() {
                self.walk(inner, f);
            }
        }
    }
}
