//! Addresses that begin with null, compiled for a GPU with the hooks that infer where addresses point
//! and without: LLVM's own inference ends the process on some. So the kernels are compiled in a process
//! of their own.

use std::process::Command;

use kiln::core::codegen::OptLevel;
use kiln::core::hook::{Hook, HookSet};
use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;
use suite::address_kernels;

/// The test that compiles, by its path in this program.
const COMPILING_PROCESS: &str = "safe_code::null_addresses::the_compiling_process";
/// Set in the process that compiles.
const COMPILE: &str = "KILN_TEST_COMPILE_ADDRESSES";

/// A user's pipeline that infers address spaces where Kiln's does not.
fn inferred_last() -> Hook {
    Hook::new("inferred-last").pass_pipeline(|_, passes| {
        *passes =
            "default<O2>,function(infer-address-spaces,gvn<>,infer-address-spaces)".to_owned();
        Ok(())
    })
}

fn compile(hooks: HookSet, opt_level: OptLevel) -> kiln::Result<()> {
    let mut options = JitOptions::default().target(Target::Ptx(PtxTarget::for_sm(90)));
    options.compile.opt_level = opt_level;
    let jit = Jit::with(Device::cpu(), hooks, options);
    let (a, mut out) = (jit.zeros::<u32>(64)?, jit.zeros::<u32>(64)?);
    for example in address_kernels::examples()? {
        println!("{}", example.name);
        jit.inspect(&example.kernel, args!(&a, &a, &mut out))?
            .ptx()?;
    }
    Ok(())
}

#[test]
fn the_compiling_process() -> kiln::Result<()> {
    if std::env::var_os(COMPILE).is_none() {
        return Ok(());
    }
    for opt_level in OptLevel::ALL {
        compile(HookSet::new(), opt_level)?;
    }
    compile(kiln::hooks::standard(), OptLevel::O3)?;
    compile(HookSet::new().with(inferred_last()), OptLevel::O3)
}

#[test]
fn addresses_that_begin_with_null_are_compiled() {
    let program = std::env::current_exe().expect("this program");
    let output = Command::new(program)
        .args([COMPILING_PROCESS, "--exact", "--nocapture"])
        .env(COMPILE, "1")
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let last = said.lines().last().unwrap_or_default();
    assert!(
        output.status.success() && said.contains("walk_from_null"),
        "{}, last at {last}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
}
