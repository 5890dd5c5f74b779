//! Modules built by hand, in few lines, and shown as text.
//!
//! [`Build`] is what a builder would do, without its checks: tests also need wrong modules.
//! Locations are invented (`k.rs:line:1`), one line an item, so that texts are stable.

use std::fmt::Write;
use std::sync::Arc;

use kiln_jit_core::definition::{Body, Definition, Snapshot};
use kiln_jit_core::ir::*;
use kiln_jit_core::specialize::{HostType, Specialization, SpecializeError, specialize};

pub(crate) static THREAD: IntrinsicDef = IntrinsicDef::new(
    "thread_idx.x",
    &[],
    TypePattern::Exact(Scalar::U32),
    Meaning::Position(|p| p.thread[0].into()),
)
.with_uniformity(Uniformity::Lane)
.with_result_below(1024);

/// A function being built, with what a test needs to write a body in few lines.
pub(crate) struct Build {
    pub(crate) module: Module,
    pub(crate) function: Function,
    pub(crate) callees: Vec<(FuncId, Arc<Definition>)>,
    pub(crate) region: Region,
    pub(crate) line: u32,
}

impl Build {
    pub(crate) fn new(name: &str, kind: FunctionKind) -> Build {
        let mut module = Module::new(name);
        let location = at(&mut module, 1);
        let function = Function::new(name, kind, location);
        let region = function.body;
        Build {
            module,
            function,
            callees: Vec::new(),
            region,
            line: 1,
        }
    }

    pub(crate) fn kernel(name: &str) -> Build {
        Build::new(name, FunctionKind::Kernel)
    }

    pub(crate) fn device(name: &str) -> Build {
        Build::new(name, FunctionKind::Device)
    }

    pub(crate) fn here(&mut self) -> Location {
        self.line += 1;
        at(&mut self.module, self.line)
    }

    pub(crate) fn type_param(&mut self, name: &str, bound: TypeBound) -> Type {
        let param = TypeParam::from_index(self.function.type_params.len());
        self.function.type_params.push(TypeParamData {
            name: name.into(),
            bound,
        });
        self.module.types.intern(TypeData::Param(param))
    }

    pub(crate) fn const_param(&mut self, name: &str, ty: Type) -> ConstParam {
        let param = ConstParam::from_index(self.function.const_params.len());
        self.function.const_params.push(ConstParamData {
            name: name.into(),
            ty,
        });
        param
    }

    pub(crate) fn array(&mut self, element: Type, len: ConstParam) -> Type {
        self.module.types.intern(TypeData::Array {
            element,
            len: ArrayLen::Param(len),
        })
    }

    pub(crate) fn param(&mut self, name: &str, ty: Type) -> Value {
        let location = self.here();
        self.function.add_param(name, ty, location)
    }

    pub(crate) fn slice(&mut self, name: &str, element: Type, mutable: bool) -> Value {
        let ty = self.slice_type(element, mutable);
        self.param(name, ty)
    }

    pub(crate) fn slice_type(&mut self, element: Type, mutable: bool) -> Type {
        let types = &mut self.module.types;
        types.slice(element, AddressSpace::Global, mutable)
    }

    pub(crate) fn pointer_type(&mut self, pointee: Type, mutable: bool) -> Type {
        let types = &mut self.module.types;
        types.pointer(pointee, AddressSpace::Global, mutable)
    }

    pub(crate) fn var(&mut self, name: &str, ty: Type) -> Var {
        self.function.vars.push(VarData {
            name: name.into(),
            ty,
        })
    }

    /// An instruction with a result.
    pub(crate) fn value(&mut self, data: InstData, ty: Type) -> Value {
        let location = self.here();
        let result = self.function.append(self.region, data, ty, location);
        result.expect("the instruction has a result")
    }

    /// An instruction without one.
    pub(crate) fn effect(&mut self, data: InstData) {
        let location = self.here();
        self.function
            .append(self.region, data, Type::UNIT, location);
    }

    pub(crate) fn constant(&mut self, constant: Constant, ty: Type) -> Value {
        self.value(InstData::Const(constant), ty)
    }

    pub(crate) fn binary(&mut self, op: BinaryOp, a: Value, b: Value) -> Value {
        let ty = self.function.type_of(a);
        self.value(InstData::Binary { op, args: [a, b] }, ty)
    }

    pub(crate) fn element(&mut self, slice: Value, index: Value) -> Value {
        let ty = self.function.type_of(slice);
        let TypeData::Slice {
            element, mutable, ..
        } = *self.module.types.data(ty)
        else {
            panic!("not a slice")
        };
        let pointer = self.pointer_type(element, mutable);
        let index = InstData::SliceIndex {
            slice,
            index,
            checked: true,
        };
        self.value(index, pointer)
    }

    pub(crate) fn load(&mut self, ptr: Value) -> Value {
        let ty = self.function.type_of(ptr);
        let (pointee, _, _) = self.module.types.as_pointer(ty).expect("a pointer");
        let volatile = false;
        self.value(InstData::Load { ptr, volatile }, pointee)
    }

    pub(crate) fn store(&mut self, ptr: Value, value: Value) {
        self.effect(InstData::Store {
            ptr,
            value,
            volatile: false,
        });
    }

    pub(crate) fn ret(&mut self, value: Value) {
        self.function.result = self.function.type_of(value);
        self.effect(InstData::Return { value: Some(value) });
    }

    /// A declaration of a definition's function whose types are all scalars or generic.
    pub(crate) fn declare(&mut self, definition: &Arc<Definition>) -> FuncId {
        let body = definition.body();
        let source = body.function();
        let location = self.here();
        let mut function = Function::new(source.name.clone(), source.kind, location);
        function.is_declaration = true;
        function.type_params = source.type_params.clone();
        function.const_params = source.const_params.clone();
        for param in &source.params {
            let ty = self.import(&body.module, source.type_of(param.value));
            function.add_param(param.name.clone(), ty, location);
        }
        function.result = self.import(&body.module, source.result);
        let id = self.module.functions.push(function);
        self.callees.push((id, definition.clone()));
        id
    }

    pub(crate) fn import(&mut self, from: &Module, ty: Type) -> Type {
        let data = match from.types.data(ty).clone() {
            TypeData::Slice {
                element,
                space,
                mutable,
                wide,
            } => TypeData::Slice {
                element: self.import(from, element),
                space,
                mutable,
                wide,
            },
            TypeData::Array { element, len } => TypeData::Array {
                element: self.import(from, element),
                len,
            },
            other => other,
        };
        self.module.types.intern(data)
    }

    pub(crate) fn call(
        &mut self,
        callee: FuncId,
        type_args: &[Type],
        const_args: &[ConstArg],
        args: &[Value],
        result: Type,
    ) -> Option<Value> {
        let location = self.here();
        let data = InstData::Call {
            callee,
            type_args: type_args.to_vec(),
            const_args: const_args.to_vec(),
            args: args.iter().copied().collect(),
        };
        self.function.append(self.region, data, result, location)
    }

    pub(crate) fn body(mut self) -> Body {
        let id = self.module.functions.push(self.function);
        Body::new(self.module, id, self.callees)
    }

    pub(crate) fn define(self) -> Arc<Definition> {
        Definition::new(self.body())
    }
}

pub(crate) fn at(module: &mut Module, line: u32) -> Location {
    Location {
        file: module.file("k.rs"),
        line,
        column: 1,
        inlined: None,
    }
}

/// The functions of a module, one instruction a line.
pub(crate) fn dump(module: &Module) -> String {
    let mut text = String::new();
    for function in module.functions.values() {
        let ty = |value| module.types.display(function.type_of(value));
        let params: Vec<_> = (function.params.iter())
            .map(|p| format!("{} {}: {}", p.value, p.name, ty(p.value)))
            .collect();
        let result = module.types.display(function.result);
        let head = format!("{}({}) -> {result}", function.name, params.join(", "));
        let _ = writeln!(text, "{:?} {head}", function.kind);
        for (id, var) in function.vars.iter() {
            let _ = writeln!(
                text,
                "  {id} {}: {}",
                var.name,
                module.types.display(var.ty)
            );
        }
        for (id, var) in function.shared.iter() {
            let ty = module.types.display(var.ty);
            let _ = writeln!(text, "  {id} {}: {ty}, align {}", var.name, var.align);
        }
        function.for_each_inst(|region, inst| {
            let node = &function.insts[inst];
            let _ = write!(text, "  {region}: ");
            if let Some(result) = node.result {
                let _ = write!(text, "{result}: {} = ", ty(result));
            }
            let data = format!("{:?}", node.data);
            let _ = writeln!(text, "{data} @{}", node.location.line);
        });
    }
    text
}

pub(crate) fn snapshot(definition: &Arc<Definition>) -> Arc<Snapshot> {
    Snapshot::of(definition).expect("no recursion")
}

pub(crate) fn on(type_args: &[HostType], const_args: &[(&str, i128)]) -> Specialization {
    Specialization {
        type_args: type_args.to_vec(),
        const_args: consts(const_args),
        params: Vec::new(),
    }
}

pub(crate) fn consts(list: &[(&str, i128)]) -> Vec<(String, i128)> {
    list.iter().map(|(n, v)| (n.to_string(), *v)).collect()
}

pub(crate) fn specialized(definition: &Arc<Definition>, spec: &Specialization) -> Module {
    let module = specialize(&snapshot(definition), spec).expect("specializes");
    assert_eq!(module.phase, Phase::Specialized);
    assert_eq!(module.kernel(), module.functions.keys().next());
    for function in module.functions.values() {
        assert!(function.type_params.is_empty() && function.const_params.is_empty());
        assert!(!function.is_declaration);
        for value in function.values.values() {
            assert!(!module.types.is_generic(value.ty));
        }
    }
    module
}

pub(crate) fn refused(definition: &Arc<Definition>, spec: &Specialization) -> SpecializeError {
    specialize(&snapshot(definition), spec).expect_err("does not specialize")
}

/// `y[i] = 2 * a * x[i] + y[i]` for `i < y.len()`.
pub(crate) fn saxpy() -> Build {
    let mut k = Build::kernel("saxpy");
    let t = k.type_param("T", TypeBound::Float);
    let a = k.param("a", t);
    let x = k.slice("x", t, false);
    let y = k.slice("y", t, true);
    let id = k.module.intrinsic(&THREAD);
    let args = ValueList::new();
    let i = k.value(InstData::Intrinsic { id, args }, Type::U32);
    let n = k.value(InstData::SliceLen { slice: y }, Type::U32);
    let args = [i, n];
    let op = CompareOp::Lt;
    let cond = k.value(InstData::Compare { op, args }, Type::BOOL);
    let then_region = k.function.regions.push(RegionData::default());
    k.effect(InstData::If {
        cond,
        then_region,
        else_region: None,
    });
    k.region = then_region;
    let two = k.constant(Constant::Int(2), t);
    let a2 = k.binary(BinaryOp::Mul, two, a);
    let px = k.element(x, i);
    let xi = k.load(px);
    let py = k.element(y, i);
    let yi = k.load(py);
    let ax = k.binary(BinaryOp::Mul, a2, xi);
    let sum = k.binary(BinaryOp::Add, ax, yi);
    k.store(py, sum);
    k
}

/// `fn twice<T: Num>(v: T) -> T { v + v }`, or with another operation.
pub(crate) fn twice(op: BinaryOp) -> Build {
    let mut f = Build::device("twice");
    let t = f.type_param("T", TypeBound::Num);
    let v = f.param("v", t);
    let sum = f.binary(op, v, v);
    f.ret(sum);
    f
}

pub(crate) fn constant_function(name: &str, value: i128) -> Build {
    let mut f = Build::device(name);
    let value = f.constant(Constant::Int(value), Type::I32);
    f.ret(value);
    f
}

/// An error's text and a line end: so it is blessed as a block, which stays as it is formatted.
pub(crate) fn shown(error: &dyn std::error::Error) -> String {
    format!("{error}\n")
}
