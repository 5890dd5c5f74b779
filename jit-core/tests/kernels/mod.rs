//! What the PTX tests have in common: modules built by hand, and `ptxas`.
//!
//! The path of `ptxas` is in `KILN_PTXAS`. Without it the tests look at the PTX text only; the
//! project's test command sets it.

pub(crate) mod programs;

use std::io::Write as _;
use std::process::{Command, Stdio};

use kiln_jit_core::compile::{self, NoObserver};
use kiln_jit_core::error::Error;
use kiln_jit_core::hook::HookSet;
use kiln_jit_core::ir::{
    AddressSpace, Axis, BinaryOp, Cell, CompareOp, Constant, Effects, Family, Function,
    FunctionKind, InstData, IntrinsicDef, Known, Location, Meaning, Module, Phase, Region, Scalar,
    Type, TypePattern, Uniformity, Unroll, Value, Var, VarData,
};
use kiln_jit_core::job::{CompileJob, CompileOptions};
use kiln_jit_core::target::{PtxTarget, Target};

/// The architectures that everything is assembled for.
pub(crate) const ARCHITECTURES: [u32; 4] = [75, 80, 90, 120];

/// A function being built; instructions go to the end of the current region.
pub(crate) struct Body {
    /// The function.
    pub(crate) f: Function,
    region: Region,
    line: u32,
}

impl Body {
    /// An empty kernel.
    pub(crate) fn kernel(name: &str) -> Body {
        Body::new(name, FunctionKind::Kernel)
    }

    /// An empty function.
    pub(crate) fn new(name: &str, kind: FunctionKind) -> Body {
        let f = Function::new(name, kind, Location::unknown());
        let region = f.body;
        Body { f, region, line: 0 }
    }

    /// The location of what is built next: each instruction has its own line.
    pub(crate) fn location(&mut self) -> Location {
        self.line += 1;
        let mut at = Location::unknown();
        at.line = self.line;
        at.column = 5;
        at
    }

    /// A parameter.
    pub(crate) fn param(&mut self, name: &str, ty: Type) -> Value {
        self.f.add_param(name, ty, Location::unknown())
    }

    /// An instruction with a result.
    pub(crate) fn value(&mut self, data: InstData, ty: Type) -> Value {
        let at = self.location();
        self.f
            .append(self.region, data, ty, at)
            .expect("it defines a value")
    }

    /// An instruction without one.
    pub(crate) fn stmt(&mut self, data: InstData) {
        let at = self.location();
        self.f.append(self.region, data, Type::UNIT, at);
    }

    /// An integer constant.
    pub(crate) fn int(&mut self, n: i128, ty: Type) -> Value {
        self.value(InstData::Const(Constant::Int(n)), ty)
    }

    /// A binary operation.
    pub(crate) fn binary(&mut self, op: BinaryOp, a: Value, b: Value) -> Value {
        let ty = self.f.type_of(a);
        self.value(InstData::Binary { op, args: [a, b] }, ty)
    }

    /// A comparison.
    pub(crate) fn compare(&mut self, op: CompareOp, a: Value, b: Value) -> Value {
        self.value(InstData::Compare { op, args: [a, b] }, Type::BOOL)
    }

    /// A load.
    pub(crate) fn load(&mut self, ptr: Value, ty: Type) -> Value {
        let volatile = false;
        self.value(InstData::Load { ptr, volatile }, ty)
    }

    /// A store.
    pub(crate) fn store(&mut self, ptr: Value, value: Value) {
        self.stmt(InstData::Store {
            ptr,
            value,
            volatile: false,
        });
    }

    /// The checked address of a slice's element.
    pub(crate) fn at(&mut self, m: &mut Module, slice: Value, index: Value) -> Value {
        let ptr = element_pointer(m, self.f.type_of(slice));
        self.value(
            InstData::SliceIndex {
                slice,
                index,
                checked: true,
            },
            ptr,
        )
    }

    /// An intrinsic.
    pub(crate) fn call(
        &mut self,
        m: &mut Module,
        def: &'static IntrinsicDef,
        args: &[Value],
    ) -> Value {
        let types: Vec<Type> = args.iter().map(|&a| self.f.type_of(a)).collect();
        let ty = def
            .result_type(&mut m.types, &types)
            .expect("the types fit");
        let id = m.intrinsic(def);
        let args = args.iter().copied().collect();
        self.value(InstData::Intrinsic { id, args }, ty)
    }

    /// A mutable variable.
    pub(crate) fn var(&mut self, ty: Type) -> Var {
        let name = "v".to_owned();
        self.f.vars.push(VarData { name, ty })
    }

    /// Builds `inside` into a region of its own.
    pub(crate) fn region(&mut self, inside: impl FnOnce(&mut Body)) -> Region {
        let region = self.f.regions.push(Default::default());
        let outer = std::mem::replace(&mut self.region, region);
        inside(self);
        self.region = outer;
        region
    }

    /// `if cond { inside }`
    pub(crate) fn if_(&mut self, cond: Value, inside: impl FnOnce(&mut Body)) {
        let then_region = self.region(inside);
        self.stmt(InstData::If {
            cond,
            then_region,
            else_region: None,
        });
    }

    /// `for index in start..end step step { inside }`
    pub(crate) fn for_(
        &mut self,
        [start, end, step]: [Value; 3],
        unroll: Unroll,
        inside: impl FnOnce(&mut Body, Value),
    ) {
        let ty = self.f.type_of(start);
        // The induction value is bound to the `for` when that is made; until then it is used.
        let index = self.f.new_index(ty);
        let body = self.region(|b| inside(b, index));
        self.stmt(InstData::For {
            index,
            start,
            end,
            step,
            body,
            unroll,
        });
    }

    /// `blockIdx.x * blockDim.x + threadIdx.x`
    pub(crate) fn global_id(&mut self, m: &mut Module) -> Value {
        let block = self.call(m, &BLOCK_IDX_X, &[]);
        let dim = self.call(m, &BLOCK_DIM_X, &[]);
        let thread = self.call(m, &THREAD_IDX_X, &[]);
        let first = self.binary(BinaryOp::Mul, block, dim);
        self.binary(BinaryOp::Add, first, thread)
    }
}

/// The pointer type of a slice's elements.
pub(crate) fn element_pointer(m: &mut Module, slice: Type) -> Type {
    use kiln_jit_core::ir::TypeData;
    match *m.types.data(slice) {
        TypeData::Slice {
            element,
            space,
            mutable,
            ..
        } => m.types.pointer(element, space, mutable),
        _ => panic!("not a slice"),
    }
}

/// A module in the legal phase.
pub(crate) fn legal_module(name: &str) -> Module {
    let mut m = Module::new(name);
    m.phase = Phase::Legal;
    m.files = ["/src/kernel.rs".into()].into_iter().collect();
    m
}

const fn register(
    name: &'static str,
    known: Known,
    below: u64,
    cells: &'static [Cell],
) -> IntrinsicDef {
    IntrinsicDef::new(
        name,
        &[],
        TypePattern::Exact(Scalar::U32),
        Meaning::Position(|_| 0),
    )
    .known_as(known)
    .with_uniformity(Uniformity::Lane)
    .with_result_below(below)
    .with_cells(cells)
}

/// `threadIdx.x`
pub(crate) static THREAD_IDX_X: IntrinsicDef = register(
    "thread_idx.x",
    Known::ThreadIdx(Axis::X),
    1024,
    &[Cell::named(Family::PTX, "llvm.nvvm.read.ptx.sreg.tid.x")],
);
/// `blockIdx.x`
pub(crate) static BLOCK_IDX_X: IntrinsicDef = register(
    "block_idx.x",
    Known::BlockIdx(Axis::X),
    0,
    &[Cell::named(Family::PTX, "llvm.nvvm.read.ptx.sreg.ctaid.x")],
);
/// `blockDim.x`
pub(crate) static BLOCK_DIM_X: IntrinsicDef = register(
    "block_dim.x",
    Known::BlockDim(Axis::X),
    1025,
    &[Cell::named(Family::PTX, "llvm.nvvm.read.ptx.sreg.ntid.x")],
);

const FLOATS: &[Scalar] = &[Scalar::F16, Scalar::BF16, Scalar::F32, Scalar::F64];

/// A square root of every float.
pub(crate) static SQRT: IntrinsicDef = IntrinsicDef::new(
    "math.sqrt",
    &[TypePattern::OneOf(FLOATS)],
    TypePattern::SameAs(0),
    Meaning::Pure(|_, args| args[0]),
)
.with_cells(&[
    llvm_cell(Scalar::F32, "llvm.sqrt"),
    llvm_cell(Scalar::F64, "llvm.sqrt"),
    Cell::via_f32(Family::PTX, Scalar::F16),
    Cell::via_f32(Family::PTX, Scalar::BF16),
]);

const fn llvm_cell(ty: Scalar, name: &'static str) -> Cell {
    Cell::overloaded(Family::PTX, ty, name)
}

/// A value of another lane, in inline PTX.
pub(crate) static SHUFFLE: IntrinsicDef = IntrinsicDef::new(
    "shuffle_down",
    &[
        TypePattern::Exact(Scalar::U32),
        TypePattern::Exact(Scalar::U32),
    ],
    TypePattern::Exact(Scalar::U32),
    Meaning::Pure(|_, args| args[0]),
)
.with_uniformity(Uniformity::Lane)
.with_effects(Effects::Convergent)
.with_cells(&[Cell::asm(
    Family::PTX,
    Some(Scalar::U32),
    "shfl.sync.down.b32 $0, $1, $2, 31, 0xffffffff;",
    "=r,r,r",
)]);

/// A hyperbolic tangent that only newer GPUs have for `f16`.
pub(crate) static TANH: IntrinsicDef = IntrinsicDef::new(
    "math.tanh_approx",
    &[TypePattern::OneOf(FLOATS)],
    TypePattern::SameAs(0),
    Meaning::Pure(|_, args| args[0]),
)
.with_cells(&[
    Cell::asm(
        Family::Ptx { min_sm: 90 },
        Some(Scalar::BF16),
        "tanh.approx.bf16 $0, $1;",
        "=h,h",
    ),
    Cell::asm(
        Family::PTX,
        Some(Scalar::F32),
        "tanh.approx.f32 $0, $1;",
        "=f,f",
    ),
]);

/// Compiles for an architecture, with its oldest PTX version and the default options.
pub(crate) fn compile(m: Module, sm: u32) -> Result<String, Error> {
    compile_with(m, sm, &CompileOptions::default())
}

/// Compiles with options.
pub(crate) fn compile_with(m: Module, sm: u32, options: &CompileOptions) -> Result<String, Error> {
    compile_hooked(m, sm, options, &HookSet::new())
}

/// Compiles with options and hooks.
pub(crate) fn compile_hooked(
    m: Module,
    sm: u32,
    options: &CompileOptions,
    hooks: &HookSet,
) -> Result<String, Error> {
    let target = Target::Ptx(PtxTarget::for_sm(sm));
    let job = CompileJob::new(m, target, options.clone());
    let compiled = compile::compile(job, hooks, &NoObserver)?;
    Ok(compiled.code.ptx().expect("PTX").text.to_string())
}

/// Fails with the PTX and what `ptxas` says, unless `ptxas` accepts the text.
pub(crate) fn assemble(ptx: &str, sm: u32) {
    let Some(ptxas) = std::env::var_os("KILN_PTXAS") else {
        return;
    };
    let mut child = Command::new(ptxas)
        .args([&format!("-arch=sm_{sm}"), "-o", "/dev/null", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("KILN_PTXAS names a program");
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin.write_all(ptx.as_bytes()).expect("ptxas reads");
    drop(stdin);
    let output = child.wait_with_output().expect("ptxas ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{ptx}\nptxas for sm_{sm}: {said}");
}

/// Compiles for all architectures and assembles; the PTX for sm_90.
pub(crate) fn assemble_everywhere(m: &Module) -> String {
    let mut shown = String::new();
    for sm in ARCHITECTURES {
        let ptx = compile(m.clone(), sm).unwrap_or_else(|error| panic!("sm_{sm}: {error}"));
        assemble(&ptx, sm);
        if sm == 90 {
            shown = ptx;
        }
    }
    shown
}

/// A slice type in global memory.
pub(crate) fn slice(m: &mut Module, element: Type, mutable: bool) -> Type {
    m.types.slice(element, AddressSpace::Global, mutable)
}
