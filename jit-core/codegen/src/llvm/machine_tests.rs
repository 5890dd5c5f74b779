//! Tests of `machine` and `session`: modules written by hand as LLVM assembly, compiled for real.
//!
//! They need the pinned toolchain's libLLVM and no GPU.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::Module;

use super::*;
use crate::gpu::{HIDDEN_ADDRESS, keep_directives};
use crate::llvm::error::{BackendError, CompileThreadError};
use crate::llvm::optimize::{OptLevel, has_packs};
use crate::llvm::session::{Session, compile_within, link_bitcode, on_compile_thread};

/// `p[i] = x * p[i] + 1` for thread `i`.
const SCALE: &str = r#"
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
define ptx_kernel void @scale(ptr addrspace(1) %p, float %x) {
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %at = getelementptr inbounds float, ptr addrspace(1) %p, i32 %i
  %old = load float, ptr addrspace(1) %at, align 4
  %scaled = fmul contract float %old, %x
  %new = fadd contract float %scaled, 1.0
  store float %new, ptr addrspace(1) %at, align 4
  ret void
}
"#;

/// `p[0] = f(x)` for an intrinsic `f` of f32.
fn calls(intrinsic: &str) -> String {
    format!(
        "declare float @{intrinsic}(float)
         define ptx_kernel void @k(ptr addrspace(1) %p, float %x) {{
           %y = call float @{intrinsic}(float %x)
           store float %y, ptr addrspace(1) %p
           ret void
         }}"
    )
}

fn parse<'ctx>(context: &'ctx Context, text: &str) -> Module<'ctx> {
    let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "test");
    context
        .create_module_from_ir(buffer)
        .expect("the test's module parses")
}

fn ptx(text: &str, sm: u32, version: u32) -> Result<String, CompileThreadError> {
    let text = text.to_owned();
    let compile = move || -> Result<String, BackendError> {
        let context = Context::create();
        let session = Session::new(&context);
        let machine = Machine::nvptx(sm, version)?;
        let module = parse(&context, &text);
        machine.prepare(&module);
        session.verify(&module)?;
        machine.run_passes(&session, &module, &OptLevel::O3.ptx_pipeline(true))?;
        machine.emit_assembly(&session, &module)
    };
    on_compile_thread("k", compile).map(|result| result.expect("LLVM compiles it"))
}

/// What running `pipeline` over an empty module gives.
fn passes(pipeline: impl Into<String>) -> Result<(), BackendError> {
    let pipeline = pipeline.into();
    let run = move || {
        let context = Context::create();
        let session = Session::new(&context);
        let machine = Machine::nvptx(90, 83)?;
        let module = context.create_module("empty");
        machine.prepare(&module);
        machine.run_passes(&session, &module, &pipeline)
    };
    on_compile_thread("empty", run).expect("the thread ends by itself")
}

/// As `docs/upstream` has it the case ends LLVM; as Kiln lowers such a load it does not.
#[test]
fn an_atomic_load_of_unwritten_memory_is_compiled_if_its_address_is_hidden() {
    let case = include_str!("../../../../docs/upstream/atomic_of_unwritten.ll");
    let (template, constraints) = HIDDEN_ADDRESS;
    let hide = format!(
        "%hidden = call ptr addrspace(1) asm \"{template}\", \"{constraints}\"(ptr addrspace(1) %in)"
    );
    let load = |from: &str| format!("%v = load atomic i32, ptr addrspace(1) {from} ");
    let hidden = case.replace(&load("%in"), &format!("{hide}\n  {}", load("%hidden")));
    assert_ne!(hidden, case);
    let ptx = ptx(&hidden, 90, 80).expect("it is compiled");
    assert!(
        ptx.contains("ld.acquire.gpu.global") || ptx.contains("ld.global.acquire"),
        "{ptx}"
    );
    assert!(!ptx.contains(".nc"), "{ptx}");
}

#[test]
fn a_kernel_becomes_ptx() {
    let ptx = ptx(SCALE, 90, 83).unwrap();
    for part in [
        ".version 8.3",
        ".target sm_90",
        ".visible .entry scale(",
        "fma.rn.f32",
    ] {
        assert!(ptx.contains(part), "{part} is missing in\n{ptx}");
    }
}

/// `q[i] = 3 * p[i]` for bytes, in a loop.
const BYTES: &str = r#"
define ptx_kernel void @bytes(ptr addrspace(1) noalias %p, ptr addrspace(1) noalias %q, i64 %n) {
start:
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %next, %loop ]
  %from = getelementptr i8, ptr addrspace(1) %p, i64 %i
  %byte = load i8, ptr addrspace(1) %from
  %tripled = mul i8 %byte, 3
  %to = getelementptr i8, ptr addrspace(1) %q, i64 %i
  store i8 %tripled, ptr addrspace(1) %to
  %next = add nuw i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %end, !llvm.loop !0
end:
  ret void
}
!0 = distinct !{!0, !1}
"#;

/// LLVM's module after a pipeline for sm_90.
fn optimized(text: String, pipeline: impl Into<String>) -> String {
    let pipeline = pipeline.into();
    let run = move || -> Result<String, BackendError> {
        let context = Context::create();
        let session = Session::new(&context);
        let machine = Machine::nvptx(90, 83)?;
        let module = parse(&context, &text);
        machine.prepare(&module);
        machine.run_passes(&session, &module, &pipeline)?;
        Ok(module.print_to_string().to_string())
    };
    on_compile_thread("k", run)
        .expect("the thread ends by itself")
        .expect("LLVM compiles it")
}

/// Products of one number by three in a row, which strength reduction makes sums of.
const IN_A_ROW: &str = r#"
define void @row(i32 %b, i32 %s, ptr addrspace(1) %p) {
  %x = mul i32 %b, %s
  store volatile i32 %x, ptr addrspace(1) %p
  %b1 = add i32 %b, 1
  %y = mul i32 %b1, %s
  store volatile i32 %y, ptr addrspace(1) %p
  %b2 = add i32 %b, 2
  %z = mul i32 %b2, %s
  store volatile i32 %z, ptr addrspace(1) %p
  ret void
}
"#;

#[test]
fn a_quick_machine_is_the_same_machine_without_strength_reduction() {
    let run = || -> Result<[String; 2], BackendError> {
        let machine = Machine::nvptx(90, 83)?;
        let emitted = |machine: &Machine| {
            let context = Context::create();
            let session = Session::new(&context);
            let module = parse(&context, IN_A_ROW);
            machine.prepare(&module);
            machine.emit_assembly(&session, &module)
        };
        Ok([emitted(&machine)?, emitted(&machine.quick()?)?])
    };
    let texts = on_compile_thread("k", run).expect("the thread ends by itself");
    let [whole, quick] = texts.expect("LLVM compiles it");
    for text in [&whole, &quick] {
        assert!(
            text.contains(".version 8.3") && text.contains(".target sm_90"),
            "{text}"
        );
    }
    let products = |text: &str| text.matches("mul.lo.s32").count();
    assert_eq!(
        [products(&whole), products(&quick)],
        [1, 3],
        "{whole}\n{quick}"
    );
}

#[test]
fn the_loop_vectorizer_runs_where_a_loop_asks_for_it() {
    for level in OptLevel::ALL {
        let left = optimized(
            format!("{BYTES}!1 = !{{!\"loop\"}}"),
            level.ptx_pipeline(true),
        );
        assert!(!left.contains(" x i8>"), "{left}");
    }
    let asked = BYTES.to_owned() + "!1 = !{!\"llvm.loop.vectorize.enable\", i1 true}";
    let vectors = optimized(asked, OptLevel::O3.ptx_pipeline(true));
    assert!(vectors.contains(" x i8>"), "{vectors}");
}

/// A sum that one of two ways to where it is computed again has computed.
const PARTLY_REDUNDANT: &str = r#"
define i32 @partly(i32 %a, i32 %b, i1 %c, ptr %p) {
  br i1 %c, label %one, label %other
one:
  %first = add i32 %a, %b
  store i32 %first, ptr %p
  br label %last
other:
  br label %last
last:
  %again = add i32 %a, %b
  ret i32 %again
}
"#;

#[test]
fn gvn_inserts_nothing_unless_it_is_asked_to() {
    let sums = |pipeline| {
        let left = optimized(PARTLY_REDUNDANT.to_owned(), pipeline);
        let (_, last) = left.split_once("last:").expect("the block stays");
        last.contains("add i32")
    };
    assert!(sums("function(gvn<>)"), "the last block has its sum");
    assert!(!sums("function(gvn<pre>)"), "the other block has it");
}

#[test]
fn pairs_of_16_bit_floats_are_packed() {
    let pairs = r#"
define ptx_kernel void @pairs(ptr addrspace(1) %p) {
  %second = getelementptr half, ptr addrspace(1) %p, i64 1
  %a = load half, ptr addrspace(1) %p, align 4
  %b = load half, ptr addrspace(1) %second, align 2
  %c = fadd half %a, %a
  %d = fadd half %b, %b
  store half %c, ptr addrspace(1) %p, align 4
  store half %d, ptr addrspace(1) %second, align 2
  ret void
}
"#;
    let packed = optimized(pairs.to_owned(), OptLevel::O3.ptx_pipeline(true));
    assert!(packed.contains("fadd <2 x half>"), "{packed}");
    let apart = optimized(pairs.to_owned(), OptLevel::O3.ptx_pipeline(false));
    assert!(!apart.contains("fadd <2 x half>"), "{apart}");
}

#[test]
fn kernels_with_short_numbers_have_packs_and_all_for_newer_gpus() {
    let with = |ty: &str| {
        let text = format!("module m legal\nkernel @k(%0 a: {ty}) {{\n}}\n");
        kiln_ir::parse(&text, &|_| None).unwrap_or_else(|error| panic!("{error}"))
    };
    for ty in ["f16", "bf16", "i16", "u8"] {
        assert!(has_packs(90, &with(ty)), "{ty}");
    }
    for ty in ["f32", "bool", "u64"] {
        assert!(!has_packs(90, &with(ty)), "{ty}");
        assert!(has_packs(100, &with(ty)), "{ty}");
    }
}

#[test]
fn every_row_of_the_table_compiles_with_its_oldest_and_the_newest_ptx() {
    for row in PTX_VERSIONS {
        for version in [row.ptx, *PTX_ISAS.last().unwrap()] {
            let ptx = ptx(SCALE, row.sm, version).unwrap();
            let head = format!(
                ".version {}.{}\n.target sm_{}\n",
                version / 10,
                version % 10,
                row.sm
            );
            assert!(ptx.contains(&head), "{head} is missing in\n{ptx}");
        }
    }
}

#[test]
fn unknown_targets_are_refused_before_llvm_sees_them() {
    let refuse = |sm, ptx| match Machine::nvptx(sm, ptx) {
        Ok(_) => panic!("sm_{sm} with PTX {ptx} is accepted"),
        Err(error) => error.message,
    };
    assert!(refuse(130, 90).contains("sm_130 is not known"));
    assert!(refuse(90, 99).contains("does not write PTX ISA 9.9"));
    assert!(refuse(120, 86).contains("needs 8.7 or newer"));
}

#[test]
fn an_operation_llvm_cannot_select_is_an_error_and_the_process_lives() {
    for (intrinsic, word) in [("llvm.exp.f32", "fexp"), ("llvm.sin.f32", "Cannot select")] {
        match ptx(&calls(intrinsic), 90, 83) {
            Err(CompileThreadError::Fatal { kernel, message }) => {
                assert_eq!(kernel, "k");
                assert!(message.contains(word), "{message}");
            }
            other => panic!("{intrinsic}: {other:?}"),
        }
    }
    assert!(
        ptx(SCALE, 90, 83).is_ok(),
        "compiling works after a fatal error"
    );
}

#[test]
fn an_error_diagnostic_fails_the_stage_although_llvm_reports_success() {
    // An unknown inline-assembly constraint is reported as a diagnostic, and emission goes on.
    let text = "define ptx_kernel void @k(i32 %x) {
        call void asm sideeffect \"// $0\", \"{nowhere}\"(i32 %x)
        ret void
    }";
    let compile = move || {
        let context = Context::create();
        let session = Session::new(&context);
        let machine = Machine::nvptx(90, 83).unwrap();
        let module = parse(&context, text);
        machine.prepare(&module);
        machine.emit_assembly(&session, &module)
    };
    let error = on_compile_thread("k", compile)
        .unwrap()
        .expect_err("the constraint is unknown");
    assert_eq!(error.stage, "emit");
    assert!(error.message.contains("constraint"), "{error}");
}

#[test]
fn a_panic_is_an_error() {
    let error = on_compile_thread("saxpy", || -> () { panic!("no luck with {}", 7) });
    let Err(CompileThreadError::Panic { kernel, message }) = error else {
        panic!("{error:?}")
    };
    assert_eq!(
        (kernel.as_str(), message.as_str()),
        ("saxpy", "no luck with 7")
    );
}

#[test]
fn a_compile_that_does_not_end_is_given_up() {
    let (stop, stopped) = mpsc::channel::<()>();
    let limit = Duration::from_millis(10);
    let error = compile_within(limit, 1 << 20, "saxpy", move || stopped.recv().is_ok());
    drop(stop);
    let expected = "compiling kernel `saxpy` was given up after 0.01 s";
    let error = error.expect_err("nobody says stop");
    assert!(error.to_string().starts_with(expected), "{error}");
    assert_eq!(on_compile_thread("next", || 7), Ok(7));
}

#[test]
fn the_compile_thread_has_a_large_stack() {
    // 16 MiB of live frames: eight times what a Rust thread has by default.
    fn deep(levels: u32) -> u64 {
        let frame = std::hint::black_box([levels as u8; 16 << 10]);
        if levels == 0 {
            0
        } else {
            deep(levels - 1) + u64::from(frame[0])
        }
    }
    assert!(on_compile_thread("deep", || deep(1024)).unwrap() > 0);
}

#[test]
fn a_broken_module_fails_verification_with_llvm_s_text() {
    let verify = || {
        let context = Context::create();
        let session = Session::new(&context);
        let module = context.create_module("broken");
        let function = module.add_function("f", context.void_type().fn_type(&[], false), None);
        context.append_basic_block(function, "entry");
        session.verify(&module)
    };
    let error = on_compile_thread("broken", verify)
        .unwrap()
        .expect_err("no terminator");
    assert_eq!(error.stage, "verify");
    assert!(error.message.contains("terminator"), "{error}");
}

#[test]
fn pipelines_parse_or_say_why_not() {
    for level in OptLevel::ALL {
        assert_eq!(passes(level.ptx_pipeline(true)), Ok(()));
        assert_eq!(passes(level.ptx_pipeline(false)), Ok(()));
    }
    let error = passes("default<O9>").expect_err("there is no O9");
    assert_eq!(error.stage, "optimize");
    assert!(error.message.contains("O9"), "{error}");
    assert!(passes("default<O3>\0").is_err());
}

#[test]
fn bitcode_links_and_errors_come_back() {
    let link = || {
        let context = Context::create();
        let session = Session::new(&context);
        let library = parse(&context, "define i32 @seven() { ret i32 7 }");
        let bitcode = library.write_bitcode_to_memory();
        let module = parse(
            &context,
            "declare i32 @seven() define i32 @main() { %x = call i32 @seven() ret i32 %x }",
        );
        link_bitcode(&module, bitcode.as_slice(), "sevens", None)?;
        assert!(module.get_function("seven").unwrap().count_basic_blocks() == 1);
        let garbage = link_bitcode(&module, b"no bitcode", "noise", None);
        assert!(garbage.unwrap_err().message.contains("noise"));
        // None of it was told the session.
        session.check("link")?;
        let other = parse(&context, "define i32 @seven() { ret i32 8 }");
        // The same symbol a second time.
        link_bitcode(&other, bitcode.as_slice(), "sevens", None)
    };
    let error = on_compile_thread("link", link)
        .unwrap()
        .expect_err("seven is defined twice");
    assert_eq!(error.stage, "link");
    assert!(error.message.contains("seven"), "{error}");
}

#[test]
fn the_host_has_assembly_and_an_object() {
    let compile = || -> Result<(String, Vec<u8>), BackendError> {
        let context = Context::create();
        let session = Session::new(&context);
        let machine = Machine::host(&CpuFeatures::host(), OptimizationLevel::Default)?;
        let module = parse(&context, "define i32 @seven() { ret i32 7 }");
        machine.prepare(&module);
        machine.run_passes(&session, &module, "default<O3>")?;
        let object = machine.emit_object(&session, &module)?;
        let assembly = machine.emit_assembly(&session, &module)?;
        session.check("emit")?;
        Ok((assembly, object))
    };
    let (assembly, object) = on_compile_thread("seven", compile).unwrap().unwrap();
    assert!(assembly.contains("seven"), "{assembly}");
    assert!(object.len() > 64);
}

#[test]
fn eight_threads_give_the_same_ptx() {
    let expected = Arc::new(ptx(SCALE, 90, 83).unwrap());
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let expected = expected.clone();
            thread::spawn(move || {
                for _ in 0..10 {
                    assert_eq!(ptx(SCALE, 90, 83).unwrap(), *expected);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("every thread gets the same text");
    }
}

#[test]
fn line_tables_become_loc_lines_and_nothing_else() {
    use inkwell::debug_info::{
        AsDIScope, DIFlagsConstants, DWARFEmissionKind, DWARFSourceLanguage,
    };
    let compile = || -> Result<String, BackendError> {
        let context = Context::create();
        let session = Session::new(&context);
        let machine = Machine::nvptx(90, 83)?;
        let module = context.create_module("lines");
        machine.prepare(&module);
        let version = context.i32_type().const_int(3, false);
        module.add_basic_value_flag(
            "Debug Info Version",
            inkwell::module::FlagBehavior::Warning,
            version,
        );
        let (lines, unit) = module.create_debug_info_builder(
            true,
            DWARFSourceLanguage::Rust,
            "kernel.rs",
            "/src",
            "kiln",
            true,
            "",
            0,
            "",
            DWARFEmissionKind::LineTablesOnly,
            0,
            false,
            false,
            "",
            "",
        );
        let file = unit.get_file();
        let signature =
            lines.create_subroutine_type(file, None, &[], inkwell::debug_info::DIFlags::PUBLIC);
        let flags = inkwell::debug_info::DIFlags::PUBLIC;
        let scope = lines.create_function(
            file.as_debug_info_scope(),
            "k",
            None,
            file,
            10,
            signature,
            false,
            true,
            10,
            flags,
            true,
        );
        let function = module.add_function("k", context.void_type().fn_type(&[], false), None);
        function.set_call_conventions(71);
        function.set_subprogram(scope);
        let builder = context.create_builder();
        builder.position_at_end(context.append_basic_block(function, "entry"));
        let at = lines.create_debug_location(&context, 17, 5, scope.as_debug_info_scope(), None);
        builder.set_current_debug_location(at);
        builder
            .build_return(None)
            .expect("the builder is in a block");
        lines.finalize();
        session.verify(&module)?;
        machine.run_passes(&session, &module, &OptLevel::O3.ptx_pipeline(true))?;
        machine.emit_assembly(&session, &module)
    };
    let ptx = keep_directives(on_compile_thread("k", compile).unwrap().unwrap());
    assert!(ptx.contains(".visible .entry k("), "{ptx}");
    assert!(ptx.contains(".loc\t1 17 5"), "{ptx}");
    assert!(ptx.contains(".file\t1 \"/src/kernel.rs\""), "{ptx}");
    assert!(!ptx.contains("debug"), "{ptx}");
}
