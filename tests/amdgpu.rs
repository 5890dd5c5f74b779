//! Compiles every kernel of the suite for AMD's gfx90a: objects that LLVM makes, which no device here runs.
//!
//! What the machine does not have is refused with the line and a way out; `refused.txt` lists it.

mod members;
mod wave;

use std::collections::BTreeMap;

use expect_test::{expect, expect_file};
use kiln::core::codegen::amdgpu_target;
use kiln::core::compile::{NoObserver, compile};
use kiln::core::error::{CompileError, Error};
use kiln::core::hook::HookSet;
use kiln::core::ir::{Module, parse};
use kiln::core::job::{CompileJob, CompileOptions};
use kiln::prelude::*;
use kiln::stdlib::time::Time as _;
use libtest_mimic::Trial;
use suite::Outcome;

use crate::assemble::modules;
use crate::test;

/// The tests.
pub fn tests() -> Vec<Trial> {
    vec![
        test("amdgpu::kernels_of_the_suite_become_objects", objects),
        test("amdgpu::code_is_lowered_for_its_machine", lowered),
        test("amdgpu::loads_of_values_beside_generic_addresses", by_value),
        test("amdgpu::what_is_refused_has_a_line_and_a_way_out", refusal),
        test(
            "amdgpu::operations_of_members_in_each_lane",
            members::each_lane,
        ),
        test("amdgpu::only_known_processors_are_targets", processors),
    ]
}

/// How many kernels of the suite become objects, at least.
const OBJECTS: usize = 120;

fn object(module: Module) -> Result<Vec<u8>, Error> {
    let job = CompileJob::new(module, amdgpu_target("gfx90a"), CompileOptions::default());
    let compiled = compile(job, &kiln::hooks::standard(), &NoObserver)?;
    let object = compiled.code.custom::<Vec<u8>>();
    Ok(object.expect("it is an object").clone())
}

/// ELF for the machine 224, "AMD GPU" (LLVM, "User Guide for AMDGPU Backend", Header).
fn is_for_amd(object: &[u8]) -> bool {
    object.starts_with(b"\x7fELF") && object[18..20] == 224u16.to_le_bytes()
}

fn objects() -> Outcome {
    let (mut made, mut wrong) = (0, Vec::new());
    let mut refused: BTreeMap<String, String> = BTreeMap::new();
    for case in suite::cases() {
        for module in modules(&case) {
            let name = format!("{}: {}", case.path(), module.name);
            match object(module) {
                Ok(object) if is_for_amd(&object) => made += 1,
                Ok(_) => wrong.push(format!("{name} is no object for AMD's GPUs")),
                Err(Error::Compile(CompileError::Illegal(illegal))) => {
                    let reasons = illegal.list.iter().map(|i| i.message.as_str());
                    let mut reasons: Vec<&str> = reasons.collect();
                    reasons.sort_unstable();
                    reasons.dedup();
                    refused.insert(name, reasons.join("; "));
                }
                Err(other) => wrong.push(format!("{name}: {other}")),
            }
        }
    }
    let lines = refused.iter().map(|(name, why)| format!("{name}: {why}\n"));
    expect_file!["amdgpu/refused.txt"].assert_eq(&lines.collect::<String>());
    if made < OBJECTS {
        wrong.push(format!(
            "{made} kernels become objects, of at least {OBJECTS}"
        ));
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(wrong.join("\n").into()),
    }
}

/// What a block shares is fenced where it meets; sizes come from AMD's runtime, and a value that is passed
/// by value lies in constant memory.
fn lowered() -> Outcome {
    let kernel = Kernel::build("shared", |k| {
        let out = k.slice_mut("out", Type::U32);
        let tile = k.shared_array("tile", Type::U32, 64);
        let i = k.thread_idx().x();
        tile.at(i).set(i + k.block_dim().x());
        k.barrier();
        out.at(0).atomic_add(tile.at(i).get());
    })?;
    let options = JitOptions::default().target(amdgpu_target("gfx90a"));
    let jit = Jit::with(Device::cpu(), HookSet::new(), options);
    let mut out = jit.zeros::<u32>(1)?;
    let inspection = jit.inspect(&kernel, args!(&mut out))?;
    let calls = inspection.unoptimized_llvm()?.lines().filter(|line| {
        let wanted = [
            "define amdgpu_kernel",
            "fence",
            "@llvm.amdgcn.",
            "atomicrmw",
        ];
        wanted.iter().any(|word| line.contains(word)) && !line.starts_with("declare")
    });
    // Without the tag in the kernel's symbol.
    let lines: Vec<String> = calls
        .map(|line| match line.split_once("(ptr noalias") {
            Some((_, params)) => format!("define amdgpu_kernel void @..(ptr noalias{params}"),
            None => line.trim().to_owned(),
        })
        .collect();
    expect![[r#"
        define amdgpu_kernel void @..(ptr noalias align 16 %0, i32 range(i32 0, -2147483648) %1, ptr addrspace(1) align 8 %2) #0 {
        %3 = call i32 @llvm.amdgcn.workitem.id.x()
        %6 = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
        fence syncscope("workgroup") release
        call void @llvm.amdgcn.s.barrier()
        fence syncscope("workgroup") acquire
        %18 = atomicrmw add ptr %13, i32 %17 syncscope("agent") monotonic, align 4
        %5 = atomicrmw xchg ptr addrspace(1) %4, i32 1 monotonic, align 4
        %13 = call i32 @llvm.amdgcn.workgroup.id.x()
        %15 = call i32 @llvm.amdgcn.workgroup.id.y()
        %17 = call i32 @llvm.amdgcn.workgroup.id.z()
        %19 = call i32 @llvm.amdgcn.workitem.id.x()
        %21 = call i32 @llvm.amdgcn.workitem.id.y()
        %23 = call i32 @llvm.amdgcn.workitem.id.z()
        fence release
        call void @llvm.amdgcn.endpgm()"#]]
    .assert_eq(&lines.join("\n"));
    Ok(())
}

/// Of `count` elements of a parameter, all are added up. The other parameter keeps LLVM from finding out that
/// their addresses are of constant memory.
fn sum(scalar: &str, count: usize) -> String {
    use std::fmt::Write as _;
    let mut text = format!(
        "module sum legal

struct @Unplaced {{ left: slice<generic, u16> }}
kernel @sum(%0 b: u8, %1 c: ptr<param, [{scalar}; {count}]> by_value, %2 e: ptr<param, @Unplaced> by_value, \
         %3 to: ptr<global, mut {scalar}>) {{
"
    );
    let mut total = None;
    for element in 0..count {
        let at = 4 * (element + 1);
        let _ = write!(
            text,
            "  %{at}: i64 = const {element}
  %{}: ptr<param, {scalar}> = element_ptr %1, %{at}
  %{}: {scalar} = load %{}
",
            at + 1,
            at + 2,
            at + 1
        );
        let mut value = at + 2;
        if let Some(before) = total {
            let _ = writeln!(text, "  %{}: {scalar} = add %{before}, %{value}", at + 3);
            value = at + 3;
        }
        total = Some(value);
    }
    let _ = writeln!(text, "  store %3, %{}\n}}", total.unwrap_or(0));
    text
}

/// LLVM ends the process where it makes one load of three words of them.
fn by_value() -> Outcome {
    for scalar in ["u16", "f32", "i32", "f64"] {
        for count in 1..=9 {
            let module = parse(&sum(scalar, count), &kiln::stdlib::find)?;
            assert!(is_for_amd(&object(module)?), "{count} of {scalar}");
        }
    }
    Ok(())
}

fn refusal() -> Outcome {
    let kernel = Kernel::build("slept", |k| {
        let out = k.slice_mut("out", Type::U32);
        let i = k.thread_idx().x();
        k.nanosleep(i);
        out.at(i).set(i);
    })?;
    let options = JitOptions::default().target(amdgpu_target("gfx90a"));
    let jit = Jit::with(Device::cpu(), HookSet::new(), options);
    let mut out = jit.zeros::<u32>(32)?;
    let refused = jit.launch(&kernel, 1, 32, args!(&mut out));
    let error = refused.expect_err("there is no such row").to_string();
    expect![[r#"
        kernel `slept` cannot be compiled for gfx90a:
          tests/amdgpu.rs:191:11: in `slept`: there is no `time.nanosleep` of `u32` on AMD's GPUs; its row needs a cell for them"#]].assert_eq(&error);
    Ok(())
}

/// A kernel that does nothing.
const NOTHING: &str = "module nothing specialized

kernel @nothing() {
}
";

fn processors() -> Outcome {
    let module = parse(NOTHING, &kiln::stdlib::find)?;
    let job = CompileJob::new(module, amdgpu_target("gfx1"), CompileOptions::default());
    let error = compile(job, &HookSet::new(), &NoObserver).expect_err("there is none");
    expect!["kernel `nothing`: nothing makes code for the target `amdgcn gfx1`; add what does to `JitOptions::isas`"]
    .assert_eq(&error.to_string());
    Ok(())
}
