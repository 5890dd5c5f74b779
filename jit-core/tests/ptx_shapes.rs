//! Values and control flow of every shape, through to `ptxas`; and what is refused for its size.

use crate::kernels::*;
use kiln_jit_core::ir::{
    AddressSpace, BinaryOp, CompareOp, Constant, FunctionKind, GlobalData, InstData, Module,
    Passing, Scalar, SharedData, StructData, Type, TypeData, Unroll, Value,
};
use kiln_jit_core::job::{CompileOptions, OptLevel};

/// Compiles at every level and assembles.
fn assemble_at_every_level(m: &Module) {
    for opt_level in OptLevel::ALL {
        let options = CompileOptions::default().opt_level(opt_level);
        for sm in [75, 90] {
            let ptx = compile_with(m.clone(), sm, &options);
            assemble(
                &ptx.unwrap_or_else(|e| panic!("{opt_level:?} sm_{sm}: {e}")),
                sm,
            );
        }
    }
}

/// A struct that holds what has two forms: a bool, slices of both widths, a vector of 32 bytes.
fn everything(m: &mut Module) -> (Type, Vec<Type>) {
    let narrow = m.types.slice(Type::F32, AddressSpace::Global, false);
    let wide = m.types.intern(TypeData::Slice {
        element: Type::U8,
        space: AddressSpace::Generic,
        mutable: true,
        wide: true,
    });
    let vector = m.types.vector(Scalar::F32, 8);
    let flags = m.types.array(Type::BOOL, 3);
    let pointer = m.types.pointer(Type::F16, AddressSpace::Global, true);
    let fields = vec![Type::BOOL, narrow, vector, flags, wide, pointer, Type::BF16];
    let named = (0..).zip(&fields);
    let ty = m.types.intern_struct(StructData::new(
        "Everything".into(),
        named.map(|(i, ty)| (format!("f{i}"), *ty)).collect(),
    ));
    (ty, fields)
}

/// Takes a struct apart and puts it together again, through a variable, a device function, local
/// memory and a selection.
#[test]
fn aggregates_keep_their_parts() {
    let mut m = legal_module("aggregates");
    let (ty, fields) = everything(&mut m);
    let device_ptr = m.types.pointer(ty, AddressSpace::Global, true);
    let local_ptr = m.types.pointer(ty, AddressSpace::Local, true);

    let mut callee = Body::new("swap", FunctionKind::Device);
    let whole = callee.param("whole", ty);
    callee.f.result = ty;
    let parts: Vec<Value> = (0..)
        .zip(&fields)
        .map(|(index, &part)| {
            let aggregate = whole;
            callee.value(InstData::Extract { aggregate, index }, part)
        })
        .collect();
    let not = InstData::Unary {
        op: kiln_jit_core::ir::UnaryOp::Not,
        arg: parts[0],
    };
    let flipped = callee.value(not, Type::BOOL);
    let parts = parts.into_iter().collect();
    let again = callee.value(InstData::Construct { parts }, ty);
    let changed = callee.value(
        InstData::Insert {
            aggregate: again,
            index: 0,
            value: flipped,
        },
        ty,
    );
    callee.stmt(InstData::Return {
        value: Some(changed),
    });
    let swap = m.functions.push(callee.f);

    let mut pick = Body::new("pick", FunctionKind::Device);
    let whole = pick.param("whole", ty);
    pick.f.result = fields[4];
    let index = 4;
    let aggregate = whole;
    let part = pick.value(InstData::Extract { aggregate, index }, fields[4]);
    pick.stmt(InstData::Return { value: Some(part) });
    let pick = m.functions.push(pick.f);

    let mut b = Body::kernel("aggregates");
    let memory = b.param("memory", device_ptr);
    let cond = b.param("cond", Type::BOOL);
    let vector = b.param("vector", fields[2]);
    let call = |b: &mut Body, callee, arg, ty| {
        let args = [arg].into_iter().collect();
        let (type_args, const_args) = (Vec::new(), Vec::new());
        b.value(
            InstData::Call {
                callee,
                type_args,
                const_args,
                args,
            },
            ty,
        )
    };
    let first = b.load(memory, ty);
    let swapped = call(&mut b, swap, first, ty);
    let var = b.var(ty);
    let slice_var = b.var(fields[4]);
    b.stmt(InstData::VarSet(var, swapped));
    let slice = call(&mut b, pick, swapped, fields[4]);
    b.if_(cond, |b| b.stmt(InstData::VarSet(slice_var, slice)));
    let slice = b.value(InstData::VarGet(slice_var), fields[4]);
    let now = b.value(InstData::VarGet(var), ty);
    let mut chosen = b.value(
        InstData::Select {
            cond,
            if_true: now,
            if_false: first,
        },
        ty,
    );
    for (index, value) in [(2, vector), (4, slice)] {
        let aggregate = chosen;
        chosen = b.value(
            InstData::Insert {
                aggregate,
                index,
                value,
            },
            ty,
        );
    }
    let local = b.value(InstData::LocalAlloc, local_ptr);
    b.store(local, chosen);
    let chosen = b.load(local, ty);
    b.store(memory, chosen);
    let slices = b.value(
        InstData::Select {
            cond,
            if_true: slice,
            if_false: slice,
        },
        fields[4],
    );
    let len = b.value(InstData::SliceLen { slice: slices }, Type::U64);
    let at = b.at(&mut m, slices, len);
    let zero = b.value(InstData::Const(Constant::Zero), Type::U8);
    b.store(at, zero);
    m.functions.push(b.f);
    assemble_at_every_level(&m);
}

/// Reading a vector of 32 bytes and an aggregate from the parameter block, and by reference.
#[test]
fn parameters_arrive_as_the_abi_lays_them_out() {
    let mut m = legal_module("params");
    let vector = m.types.vector(Scalar::F64, 4);
    let array = m.types.array(Type::I16, 3);
    let by_reference = m.types.pointer(array, AddressSpace::Global, false);
    let element = m.types.pointer(Type::I16, AddressSpace::Global, false);
    let words = m.types.slice(Type::F64, AddressSpace::Global, true);
    let shorts = m.types.slice(Type::I16, AddressSpace::Global, true);
    let mut b = Body::kernel("params");
    b.param("flag", Type::BOOL);
    let v = b.param("v", vector);
    let r = b.param("r", by_reference);
    b.f.params[2].passing = Passing::ByReference;
    b.f.params[2].facts.noalias = true;
    let words = b.param("words", words);
    let shorts = b.param("shorts", shorts);
    let i = b.param("i", Type::I16);
    let lane = b.value(
        InstData::Extract {
            aggregate: v,
            index: 3,
        },
        Type::F64,
    );
    let to = b.at(&mut m, words, i);
    b.store(to, lane);
    let ptr = b.value(
        InstData::ElementPtr {
            ptr: r,
            index: i,
            checked: true,
        },
        element,
    );
    let short = b.load(ptr, Type::I16);
    let to = b.at(&mut m, shorts, i);
    b.store(to, short);
    m.functions.push(b.f);
    let ptx = assemble_everywhere(&m);
    for part in [
        ".param .u8 params_0000000000000000_param_0",
        ".param .align 16 .b8 params_0000000000000000_param_1[32]",
        "ld.global.nc.b16",
    ] {
        assert!(ptx.contains(part), "no `{part}` in\n{ptx}");
    }
    assert!(!ptx.contains(".local"), "{ptx}");
}

/// A signed index of the width of the length is compared with a length capped at 2^31.
#[test]
fn a_negative_index_is_out_of_bounds_of_every_slice() {
    let build = |index: Type| {
        let mut m = legal_module("negative");
        let out = slice(&mut m, Type::F32, true);
        let mut b = Body::kernel("negative");
        let out = b.param("out", out);
        let i = b.param("i", index);
        let to = b.at(&mut m, out, i);
        let zero = b.value(InstData::Const(Constant::Zero), Type::F32);
        b.store(to, zero);
        m.functions.push(b.f);
        assemble_everywhere(&m)
    };
    assert!(build(Type::I32).contains("min.u32"));
    assert!(!build(Type::U32).contains("min.u32"));
    assert!(!build(Type::I64).contains("min.u32"));
}

fn branches(b: &mut Body, cond: Value, then: InstData, otherwise: Option<InstData>) {
    let then_region = b.region(|b| b.stmt(then));
    let else_region = otherwise.map(|data| b.region(|b| b.stmt(data)));
    b.stmt(InstData::If {
        cond,
        then_region,
        else_region,
    });
}

#[test]
fn every_way_out_of_a_region() {
    let mut m = legal_module("ways");
    let out = slice(&mut m, Type::I32, true);
    let mut b = Body::kernel("ways");
    let out = b.param("out", out);
    let n = b.param("n", Type::I32);
    let [zero, one, ten] = [0, 1, 10].map(|k| b.int(k, Type::I32));
    let leave = |value| InstData::Return { value };
    b.for_([zero, n, one], Unroll::Auto, |b, i| {
        b.for_([i, n, ten], Unroll::Auto, |b, j| {
            let equal = b.compare(CompareOp::Eq, i, j);
            branches(b, equal, InstData::Continue { depth: 1 }, None);
            let greater = b.compare(CompareOp::Gt, j, ten);
            branches(b, greater, InstData::Break { depth: 1 }, None);
            let to = b.at(&mut m, out, j);
            b.store(to, i);
        });
        let body = b.region(|b| {
            let less = b.compare(CompareOp::Lt, i, ten);
            let next = InstData::Continue { depth: 1 };
            branches(b, less, InstData::Break { depth: 0 }, Some(next));
        });
        b.stmt(InstData::Loop { body });
        // A loop of which every iteration is the last.
        b.for_([zero, n, ten], Unroll::Full, |b, _| {
            b.stmt(InstData::Break { depth: 0 });
        });
    });
    let negative = b.compare(CompareOp::Lt, n, zero);
    let forever = b.region(|b| {
        let to = b.at(&mut m, out, zero);
        let value = b.load(to, Type::I32);
        let value = b.binary(BinaryOp::Add, value, one);
        b.store(to, value);
    });
    let then_region = b.region(|b| b.stmt(InstData::Loop { body: forever }));
    b.stmt(InstData::If {
        cond: negative,
        then_region,
        else_region: None,
    });
    branches(&mut b, negative, leave(None), Some(leave(None)));
    m.functions.push(b.f);
    assemble_at_every_level(&m);
}

/// The refusal of a module that has an empty kernel and what `change` adds.
fn refusal(change: impl FnOnce(&mut Module, &mut Body)) -> String {
    let mut m = legal_module("limits");
    let mut b = Body::kernel("limits");
    change(&mut m, &mut b);
    m.functions.push(b.f);
    compile(m, 80).expect_err("it is refused").to_string()
}

#[test]
fn sizes_and_places_that_a_gpu_lacks_are_refused_with_a_way_out() {
    let array = |m: &mut Module, len| m.types.array(Type::F32, len);
    let shared = refusal(|m, b| {
        let (name, ty) = ("big".into(), array(m, 12_289));
        b.f.shared.push(SharedData { name, ty, align: 4 });
    });
    assert!(shared.contains("the shared variables take 49156 bytes, of at most 49152"));
    let constant = refusal(|m, _| {
        let (name, ty) = ("big".into(), array(m, 20_000));
        let bytes = vec![0; 80_000].into();
        m.globals.push(GlobalData { name, ty, bytes });
    });
    assert!(constant.contains("the constants take 80000 bytes, of at most 65536"));
    let params = refusal(|m, b| {
        let ty = array(m, 1030);
        let ty = m.types.pointer(ty, AddressSpace::Param, false);
        b.param("big", ty);
        b.f.params[0].passing = Passing::ByValue;
    });
    assert!(params.contains("the parameters take 4120 bytes, of at most 4096"));
    let value = refusal(|m, b| {
        let ty = array(m, 5000);
        let ty = m.types.pointer(ty, AddressSpace::Global, false);
        let ptr = b.param("big", ty);
        let ty = m.types.array(Type::F32, 5000);
        b.load(ptr, ty);
    });
    assert!(value.contains("a value of type `[f32; 5000]` has 5000 numbers, of at most 4096"));
}
