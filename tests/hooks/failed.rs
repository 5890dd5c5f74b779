//! Kernels that LLVM cannot go on with, because of what a hook has made of them.

use std::process::Command;

use kiln::Result;
use kiln::core::hook::{Hook, HookSet};
use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;

/// Set in the process that has to fail often.
const TASK: &str = "KILN_TEST_FAILED_COMPILES";

#[kernel]
fn add(x: &mut [i32], y: i32) {
    let i = global_id().x;
    if i < x.len() {
        x[i] += y;
    }
}

/// A hook that calls what only later GPUs have, so that LLVM finds no instruction for it.
fn too_new() -> Hook {
    Hook::new("too-new").lower_inst(|cx, inst, args| {
        let all = cx.context().i32_type().const_all_ones().into();
        match inst.data {
            kiln::core::ir::InstData::Binary { .. } if cx.result_type() == Type::I32 => {
                let i32 = cx.llvm_result_type()?;
                let name = "llvm.nvvm.redux.sync.min";
                let called = cx.call_intrinsic(name, Some(i32), &[args[0], all])?;
                Ok(Some(called.into()))
            }
            _ => Ok(None),
        }
    })
}

/// How many threads of the compiler's the process has.
fn compile_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux");
    let names = tasks.map(|task| {
        let path = task.expect("a thread").path().join("comm");
        // One that has ended meanwhile has no name.
        std::fs::read_to_string(path).unwrap_or_default()
    });
    names.filter(|name| name.trim() == "kiln compile").count()
}

fn fail_often() -> Result<()> {
    let options = JitOptions::default().target(Target::Ptx(PtxTarget::for_sm(75)));
    let jit = Jit::with(Device::cpu(), HookSet::from(too_new()), options);
    let mut x = jit.zeros::<i32>(4)?;
    let mut errors = Vec::new();
    for _ in 0..10 {
        let inspected = jit.inspect(&add, args!(&mut x, 7i32));
        errors.push(inspected.expect_err("LLVM cannot").to_string());
        let launched = jit.launch(&add, 1, 32, args!(&mut x, 7i32));
        errors.push(launched.expect_err("LLVM cannot").to_string());
    }
    assert!(
        errors[0].contains("LLVM cannot compile kernel `add`"),
        "{}",
        errors[0]
    );
    errors.dedup();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(compile_threads(), 1);
    Ok(())
}

#[test]
fn a_compile_that_llvm_ends_is_not_tried_again() {
    if std::env::var_os(TASK).is_some() {
        return fail_often().unwrap_or_else(|error| panic!("{error}"));
    }
    let name = "hooks::failed::a_compile_that_llvm_ends_is_not_tried_again";
    let program = std::env::current_exe().expect("the program of this test");
    let output = Command::new(program)
        .args([name, "--exact", "--nocapture"])
        .env(TASK, "1")
        .output()
        .expect("it can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let ran = String::from_utf8_lossy(&output.stdout);
    assert!(ran.contains("1 passed"), "{ran}");
}
