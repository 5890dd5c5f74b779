//! PTX of whole kernels: what the text says where it matters, and that `ptxas` takes it.
//!
//! The kernels are built by hand, with checked indexing as users have it. No GPU is needed.

use std::thread;

use crate::kernels::programs::{reduction, saxpy, tiled_matmul};
use crate::kernels::*;
use inkwell::values::BasicValueEnum;
use kiln_jit_core::codegen::kernel_entry_name;
use kiln_jit_core::compile::{self, NoObserver};
use kiln_jit_core::hook::{Hook, HookSet};
use kiln_jit_core::ir::{
    AddressSpace, AtomicOp, BinaryOp, FunctionKind, GlobalData, InstData, Module, Ordering,
    Passing, Scalar, Scope, StructData, Type, Unroll,
};
use kiln_jit_core::job::{CompileJob, CompileOptions, OptLevel};
use kiln_jit_core::target::{PtxTarget, Target};

/// The lines of the PTX that hold `what`.
fn count(ptx: &str, what: &str) -> usize {
    ptx.lines().filter(|line| line.contains(what)).count()
}

fn assert_has(ptx: &str, parts: &[&str]) {
    for part in parts {
        assert!(ptx.contains(part), "no `{part}` in\n{ptx}");
    }
}

fn assert_lacks(ptx: &str, parts: &[&str]) {
    for part in parts {
        assert!(!ptx.contains(part), "`{part}` in\n{ptx}");
    }
}

#[test]
fn saxpy_is_one_fused_multiply_add_between_global_accesses() {
    let ptx = assemble_everywhere(&saxpy(true));
    assert_has(
        &ptx,
        &[
            ".visible .entry saxpy_0000000000000000(",
            "ld.global.nc.b32",
            "fma.rn.f32",
            "st.global.b32",
        ],
    );
    let declares = |line: &&str| line.starts_with("\t.param") && line.contains("saxpy");
    let params = ptx.lines().filter(declares).count();
    assert_eq!(
        params, 6,
        "a, two slices in two slots each, the fault channel:\n{ptx}"
    );
    assert_lacks(&ptx, &[".local", "trap", "cvta"]);
}

#[test]
fn only_memory_that_nobody_writes_is_read_through_the_read_only_path() {
    let ptx = assemble_everywhere(&saxpy(false));
    assert_lacks(&ptx, &["ld.global.nc"]);
}

#[test]
fn contraction_can_be_switched_off() {
    let options = CompileOptions::default().contract(false);
    let ptx = compile_with(saxpy(true), 90, &options).unwrap();
    assert_has(&ptx, &["mul.rn.f32", "add.rn.f32"]);
    assert_lacks(&ptx, &["fma"]);
}

/// `out[i] = x * y + z` in a type.
fn multiply_add(ty: Type) -> Module {
    let mut m = legal_module("multiply_add");
    let output = slice(&mut m, ty, true);
    let mut b = Body::kernel("multiply_add");
    let out = b.param("out", output);
    let [x, y, z] = ["x", "y", "z"].map(|name| b.param(name, ty));
    let product = b.binary(BinaryOp::Mul, x, y);
    let sum = b.binary(BinaryOp::Add, product, z);
    let i = b.call(&mut m, &THREAD_IDX_X, &[]);
    let to = b.at(&mut m, out, i);
    b.store(to, sum);
    m.functions.push(b.f);
    m
}

#[test]
fn halves_round_after_each_operation_unless_contracted() {
    let options = CompileOptions::default().contract(false);
    for sm in ARCHITECTURES {
        for ty in [Type::F16, Type::BF16] {
            let separate = compile_with(multiply_add(ty), sm, &options).unwrap();
            assemble(&separate, sm);
            let operations = ["\tmul.rn.", "\tadd.rn.", "\tfma.rn."].map(|op| count(&separate, op));
            // sm_80 has one bf16 operation, fma: it multiplies and adds with neutral operands.
            let expected = match (sm, ty) {
                (80, Type::BF16) => [0, 0, 2],
                _ => [1, 1, 0],
            };
            assert_eq!(operations, expected, "{separate}");
            assemble(&compile(multiply_add(ty), sm).unwrap(), sm);
        }
    }
}

#[test]
fn a_failed_check_records_the_fault_and_ends_the_thread() {
    let target = Target::Ptx(PtxTarget::for_sm(90));
    let mut job = CompileJob::new(saxpy(true), target, CompileOptions::default());
    job.kernel_tag = 0x1234_5678_9abc_def0;
    let compiled = compile::compile(job, &HookSet::new(), &NoObserver).unwrap();
    let ptx = &compiled.code.ptx().expect("PTX").text;
    assemble(ptx, 90);
    assert_has(
        ptx,
        &[
            ".entry saxpy_123456789abcdef0(",
            "kiln_fault",
            "atom.global.exch.b32",
            "1311768467463790320",
            "membar.sys",
            "exit;",
        ],
    );
}

#[test]
fn the_inner_loop_of_a_tiled_product_unrolls_and_loses_its_checks() {
    let ptx = assemble_everywhere(&tiled_matmul());
    assert_eq!(count(&ptx, "fma.rn.f32"), 16, "{ptx}");
    assert_eq!(count(&ptx, "bar.sync"), 2, "{ptx}");
    assert_has(&ptx, &["st.shared.b32", "ld.shared", ".shared .align 16"]);
    assert_lacks(&ptx, &["nounroll", ".local", "div.", "rem."]);
    // Left to check: two loads and a store in global memory, and the tile row of a thread that
    // may be the 257th of its block.
    assert_eq!(ptx.matches("call.uni kiln_fault").count(), 4, "{ptx}");
}

#[test]
fn a_reduction_uses_dynamic_shared_memory_and_one_atomic() {
    let ptx = assemble_everywhere(&reduction());
    assert_has(
        &ptx,
        &[
            ".extern .shared .align 16 .b8 dynamic_shared[]",
            "%dynamic_smem_size",
            "red.global.add.f32",
            ".maxntid 256",
            ".minnctapersm 2",
            "bar.sync",
        ],
    );
}

#[test]
fn a_struct_by_value_is_read_in_place() {
    let mut m = legal_module("byval");
    let weights = m.types.array(Type::F32, 8);
    let fields = [
        ("scale", Type::F64),
        ("flag", Type::BOOL),
        ("weights", weights),
    ];
    let config = m.types.intern_struct(StructData::new(
        "Config".into(),
        fields.map(|(n, t)| (n.to_owned(), t)).into(),
    ));
    let config_ptr = m.types.pointer(config, AddressSpace::Param, false);
    let weights_ptr = m.types.pointer(weights, AddressSpace::Param, false);
    let weight_ptr = m.types.pointer(Type::F32, AddressSpace::Param, false);
    let output = slice(&mut m, Type::F32, true);
    let mut b = Body::kernel("byval");
    let config = b.param("config", config_ptr);
    b.f.params[0].passing = Passing::ByValue;
    let out = b.param("out", output);
    let i = b.call(&mut m, &THREAD_IDX_X, &[]);
    let ptr = b.value(
        InstData::FieldPtr {
            ptr: config,
            field: 2,
        },
        weights_ptr,
    );
    let ptr = b.value(
        InstData::ElementPtr {
            ptr,
            index: i,
            checked: true,
        },
        weight_ptr,
    );
    let weight = b.load(ptr, Type::F32);
    let to = b.at(&mut m, out, i);
    b.store(to, weight);
    m.functions.push(b.f);
    let ptx = assemble_everywhere(&m);
    assert_has(
        &ptx,
        &[
            ".param .align 8 .b8 byval_0000000000000000_param_0[48]",
            "+12]",
        ],
    );
    assert_lacks(&ptx, &[".local", "cvta"]);
}

#[test]
fn consecutive_loads_join_when_the_alignment_is_known() {
    let build = |align: u32| {
        let mut m = legal_module("quad");
        let (input, output) = (
            slice(&mut m, Type::F32, false),
            slice(&mut m, Type::F32, true),
        );
        let ptr_type = m.types.pointer(Type::F32, AddressSpace::Global, false);
        let mut b = Body::kernel("quad");
        let from = b.param("x", input);
        b.f.params[0].facts.align = align;
        let to = b.param("out", output);
        let i = b.call(&mut m, &THREAD_IDX_X, &[]);
        let four = b.int(4, Type::U32);
        let first = b.binary(BinaryOp::Mul, i, four);
        let ptr = b.value(InstData::SlicePtr { slice: from }, ptr_type);
        let ptr = b.value(InstData::PtrOffset { ptr, index: first }, ptr_type);
        let mut sum = b.load(ptr, Type::F32);
        for k in 1..4 {
            let index = b.int(k, Type::I32);
            let ptr = b.value(InstData::PtrOffset { ptr, index }, ptr_type);
            let value = b.load(ptr, Type::F32);
            sum = b.binary(BinaryOp::Add, sum, value);
        }
        let at = b.at(&mut m, to, i);
        b.store(at, sum);
        m.functions.push(b.f);
        m
    };
    let ptx = assemble_everywhere(&build(16));
    assert_has(&ptx, &["v4.b32"]);
    let ptx = assemble_everywhere(&build(1));
    assert_lacks(&ptx, &["v4", "v2"]);
}

#[test]
fn constants_and_local_memory_lie_where_they_should() {
    let mut m = legal_module("tables");
    let table = m.types.array(Type::U32, 4);
    let bytes: Vec<u8> = [7u32, 11, 13, 17]
        .iter()
        .flat_map(|n| n.to_ne_bytes())
        .collect();
    let global = m.globals.push(GlobalData {
        name: "primes".into(),
        ty: table,
        bytes: bytes.into(),
    });
    let constant = |m: &mut Module, ty| m.types.pointer(ty, AddressSpace::Constant, false);
    let local = |m: &mut Module, ty| m.types.pointer(ty, AddressSpace::Local, true);
    let (table_c, word_c) = (constant(&mut m, table), constant(&mut m, Type::U32));
    let (table_l, word_l) = (local(&mut m, table), local(&mut m, Type::U32));
    let output = slice(&mut m, Type::U32, true);
    let mut b = Body::kernel("tables");
    let out = b.param("out", output);
    let flip = b.param("flip", Type::U32);
    let i = b.call(&mut m, &THREAD_IDX_X, &[]);
    let checked = true;
    let ptr = b.value(InstData::GlobalAddr(global), table_c);
    let ptr = b.value(
        InstData::ElementPtr {
            ptr,
            index: i,
            checked,
        },
        word_c,
    );
    let prime = b.load(ptr, Type::U32);
    let base = b.value(InstData::LocalAlloc, table_l);
    let ptr = b.value(
        InstData::ElementPtr {
            ptr: base,
            index: i,
            checked,
        },
        word_l,
    );
    b.store(ptr, prime);
    // With a constant LLVM would see that the element read is never the one written.
    let j = b.binary(BinaryOp::Xor, i, flip);
    let ptr = b.value(
        InstData::ElementPtr {
            ptr: base,
            index: j,
            checked,
        },
        word_l,
    );
    let value = b.load(ptr, Type::U32);
    let to = b.at(&mut m, out, i);
    b.store(to, value);
    m.functions.push(b.f);
    let ptx = assemble_everywhere(&m);
    assert_has(
        &ptx,
        &[
            ".const .align 4 .b8 constant_0[16]",
            "ld.const.b32",
            "st.local.b32",
        ],
    );
}

/// A device function that checks an index; `inline` would make the test pointless, so it loops.
#[test]
fn a_device_function_takes_slices_and_the_fault_channel() {
    let mut m = legal_module("calls");
    let input = slice(&mut m, Type::F32, false);
    let output = slice(&mut m, Type::F32, true);
    let mut b = Body::new("total of\0 é", FunctionKind::Device);
    let from = b.param("x", input);
    let scale = b.param("scale", Type::F32);
    b.f.result = Type::F32;
    let sum = b.var(Type::F32);
    let [zero, ten, one] = [0, 10, 1].map(|n| b.int(n, Type::I32));
    b.for_([zero, ten, one], Unroll::Never, |b, i| {
        let at = b.at(&mut m, from, i);
        let value = b.load(at, Type::F32);
        let old = b.value(InstData::VarGet(sum), Type::F32);
        let new = b.binary(BinaryOp::Add, old, value);
        b.stmt(InstData::VarSet(sum, new));
    });
    let total = b.value(InstData::VarGet(sum), Type::F32);
    let total = b.binary(BinaryOp::Mul, total, scale);
    b.stmt(InstData::Return { value: Some(total) });
    let callee = m.functions.push(b.f);
    let mut b = Body::kernel("calls");
    let from = b.param("x", input);
    let out = b.param("out", output);
    let scale = b.value(
        InstData::Const(kiln_jit_core::ir::Constant::Float(0.5)),
        Type::F32,
    );
    let total = b.value(
        InstData::Call {
            callee,
            type_args: Vec::new(),
            const_args: Vec::new(),
            args: [from, scale].into_iter().collect(),
        },
        Type::F32,
    );
    let i = b.call(&mut m, &THREAD_IDX_X, &[]);
    let to = b.at(&mut m, out, i);
    b.store(to, total);
    m.functions.push(b.f);
    for opt_level in OptLevel::ALL {
        let options = CompileOptions::default().opt_level(opt_level);
        let ptx = compile_with(m.clone(), 80, &options).unwrap();
        assemble(&ptx, 80);
        assert_eq!(
            ptx.contains("total_of____fn0"),
            opt_level == OptLevel::O0,
            "{ptx}"
        );
    }
}

#[test]
fn atomics_say_their_order_and_scope() {
    let mut m = legal_module("orders");
    let counter = m.types.pointer(Type::U32, AddressSpace::Global, true);
    let mut b = Body::kernel("orders");
    let ptr = b.param("counter", counter);
    let value = b.int(1, Type::U32);
    let orders = [
        (Ordering::Relaxed, Scope::Block),
        (Ordering::Relaxed, Scope::Device),
        (Ordering::Relaxed, Scope::System),
        (Ordering::AcquireRelease, Scope::Block),
        (Ordering::Release, Scope::Device),
        (Ordering::SequentiallyConsistent, Scope::Device),
    ];
    for (ordering, scope) in orders {
        let op = AtomicOp::Add;
        b.value(
            InstData::AtomicRmw {
                op,
                ptr,
                value,
                ordering,
                scope,
            },
            Type::U32,
        );
    }
    b.value(
        InstData::AtomicCas {
            ptr,
            expected: value,
            new: value,
            ordering: Ordering::Acquire,
            scope: Scope::Device,
        },
        Type::U32,
    );
    for scope in Scope::ALL {
        let ordering = Ordering::AcquireRelease;
        b.stmt(InstData::Fence { ordering, scope });
        let loaded = b.value(
            InstData::AtomicLoad {
                ptr,
                ordering: Ordering::Acquire,
                scope,
            },
            Type::U32,
        );
        let ordering = Ordering::SequentiallyConsistent;
        b.stmt(InstData::Fence { ordering, scope });
        // Stored, since a load whose value nothing uses becomes a fence (`codegen/gpu/ptxas/unused.rs`).
        b.stmt(InstData::AtomicStore {
            ptr,
            value: loaded,
            ordering: Ordering::Release,
            scope,
        });
    }
    m.functions.push(b.f);
    let ptx = assemble_everywhere(&m);
    assert_has(
        &ptx,
        &[
            "atom.global.add.u32",
            "atom.relaxed.sys.global.add.u32",
            "atom.acq_rel.cta.global.add.u32",
            "atom.release.gpu.global.add.u32",
            "atom.relaxed.cta.global.add.u32",
            "fence.sc.gpu;\n\t// begin inline asm\n\tatom.acquire.gpu.global.add.u32",
            "atom.acquire.gpu.global.cas.b32",
            "fence.acq_rel.cta",
            "fence.acq_rel.gpu",
            "fence.acq_rel.sys",
            "fence.sc.cta",
            "fence.sc.gpu",
            "fence.sc.sys",
            "ld.acquire.cta.global.b32",
            "ld.acquire.gpu.global.b32",
            "ld.acquire.sys.global.b32",
            "st.release.cta.global.b32",
            "st.release.gpu.global.b32",
            "st.release.sys.global.b32",
        ],
    );
}

#[test]
fn lines_appear_when_asked_for() {
    let options = CompileOptions::default().line_info(true);
    for sm in ARCHITECTURES {
        let ptx = compile_with(saxpy(true), sm, &options).unwrap();
        assemble(&ptx, sm);
        assert_has(&ptx, &["\t.loc\t", "\t.file\t1 \"/src", "kernel.rs\""]);
        assert_lacks(&ptx, &[", debug", ".debug_"]);
    }
    let plain = compile(saxpy(true), 90).unwrap();
    assert_lacks(&plain, &[".loc", ".file"]);
}

#[test]
fn an_address_fact_and_a_divisor_fact_reach_llvm() {
    let mut m = legal_module("facts");
    let output = slice(&mut m, Type::U32, true);
    let mut b = Body::kernel("facts");
    let out = b.param("out", output);
    let n = b.param("n", Type::U32);
    b.f.params[1].facts.divisor = 16;
    let mask = b.int(15, Type::U32);
    let low = b.binary(BinaryOp::And, n, mask);
    let i = b.call(&mut m, &THREAD_IDX_X, &[]);
    let to = b.at(&mut m, out, i);
    b.store(to, low);
    m.functions.push(b.f);
    let ptx = assemble_everywhere(&m);
    assert_has(&ptx, &["], 0;"]);
    assert_lacks(&ptx, &["and.b32"]);
}

#[test]
fn loops_count_without_wrapping() {
    for (ty, step, unroll) in [
        (Type::I32, 1, Unroll::Never),
        (Type::I32, -1, Unroll::Auto),
        (Type::U32, 3, Unroll::By(2)),
        (Type::I64, -7, Unroll::Auto),
        (Type::U8, 200, Unroll::Auto),
    ] {
        for known in [true, false] {
            let mut m = legal_module("loops");
            let output = slice(&mut m, ty, true);
            let mut b = Body::kernel("loops");
            let out = b.param("out", output);
            let start = b.param("start", ty);
            let end = b.param("end", ty);
            let step = if known {
                b.int(step, ty)
            } else {
                b.param("step", ty)
            };
            b.for_([start, end, step], unroll, |b, i| {
                let to = b.at(&mut m, out, i);
                b.store(to, i);
            });
            m.functions.push(b.f);
            assemble_everywhere(&m);
        }
    }
}

#[test]
fn intrinsics_become_llvm_calls_inline_ptx_or_a_detour_through_f32() {
    let mut m = legal_module("intrinsics");
    let words = slice(&mut m, Type::U32, true);
    let halves = slice(&mut m, Type::BF16, true);
    let mut b = Body::kernel("intrinsics");
    let out = b.param("out", words);
    let half_out = b.param("half_out", halves);
    let i = b.call(&mut m, &THREAD_IDX_X, &[]);
    let one = b.int(1, Type::U32);
    let other = b.call(&mut m, &SHUFFLE, &[i, one]);
    let to = b.at(&mut m, out, i);
    b.store(to, other);
    let ptr = b.at(&mut m, half_out, i);
    let half = b.load(ptr, Type::BF16);
    let root = b.call(&mut m, &SQRT, &[half]);
    b.store(ptr, root);
    m.functions.push(b.f);
    let ptx = assemble_everywhere(&m);
    assert_has(&ptx, &["shfl.sync.down.b32", "rsqrt.approx.ftz.f32 r"]);
}

#[test]
fn an_intrinsic_that_a_gpu_lacks_is_refused_before_llvm() {
    let build = |scalar: Scalar| {
        let mut m = legal_module("tanh");
        let ty = Type::scalar(scalar);
        let output = slice(&mut m, ty, true);
        let mut b = Body::kernel("tanh");
        let out = b.param("out", output);
        let i = b.call(&mut m, &THREAD_IDX_X, &[]);
        let ptr = b.at(&mut m, out, i);
        let x = b.load(ptr, ty);
        let y = b.call(&mut m, &TANH, &[x]);
        b.store(ptr, y);
        m.functions.push(b.f);
        m
    };
    let refused = compile(build(Scalar::BF16), 80).unwrap_err().to_string();
    let expected = "kernel `tanh` cannot be compiled for sm_80:\n  \
                    /src/kernel.rs:4:5: in `tanh`: `math.tanh_approx` of `bf16` exists from sm_90 on";
    assert_eq!(refused, expected);
    assemble(&compile(build(Scalar::BF16), 90).unwrap(), 90);
    let refused = compile(build(Scalar::F64), 120).unwrap_err().to_string();
    assert!(
        refused.contains("there is no `math.tanh_approx` of `f64` on NVIDIA GPUs"),
        "{refused}"
    );
    assert!(refused.contains("it exists for: bf16, f32"), "{refused}");
}

/// Lowers every product of floats to a quotient.
fn divides() -> Hook {
    Hook::new("divides").lower_inst(|cx, inst, args| {
        let is_product = matches!(inst.data, InstData::Binary { op, .. } if op == BinaryOp::Mul);
        match args {
            [BasicValueEnum::FloatValue(a), BasicValueEnum::FloatValue(b)] if is_product => {
                Ok(Some(cx.builder().build_float_div(*a, *b, "")?.into()))
            }
            _ => Ok(None),
        }
    })
}

/// Gives a value of another type than the instruction's.
fn wrong() -> Hook {
    Hook::new("wrong").lower_inst(|cx, _, _| Ok(Some(cx.context().i8_type().const_zero().into())))
}

#[test]
fn a_hook_replaces_the_lowering_of_an_instruction() {
    let options = CompileOptions::default();
    let hooks = HookSet::new().with(divides());
    let ptx = compile_hooked(saxpy(true), 90, &options, &hooks).unwrap();
    assemble(&ptx, 90);
    assert_has(&ptx, &["div.rn.f32"]);
    let hooks = HookSet::new().with(wrong());
    let error = compile_hooked(saxpy(true), 90, &options, &hooks).unwrap_err();
    assert!(error.to_string().contains("LLVM's type `i8`"), "{error}");
}

#[test]
fn any_name_gives_a_legal_entry() {
    for name in [
        "",
        "9 lives",
        "a\0b",
        "größe::<f32>",
        "%tid",
        &"n".repeat(5000),
    ] {
        let mut m = saxpy(true);
        m.name = name.to_owned();
        let kernel = m.kernel().unwrap();
        m.functions[kernel].name = name.to_owned();
        let ptx = assemble_everywhere(&m);
        assert_has(&ptx, &[&format!(".entry {}(", kernel_entry_name(name, 0))]);
    }
}

#[test]
fn eight_threads_get_the_same_text() {
    let compile_all = || {
        [saxpy(true), tiled_matmul(), reduction()]
            .map(|m| compile(m, 90).unwrap())
            .concat()
    };
    let expected = compile_all();
    thread::scope(|scope| {
        let others: Vec<_> = (0..8).map(|_| scope.spawn(compile_all)).collect();
        for other in others {
            assert!(other.join().unwrap() == expected);
        }
    });
}
