//! The text of every error a user can cause: what, where, how to fix.
//!
//! `UPDATE_EXPECT=1 cargo xtask test` rewrites the expected texts; the diff is part of the review.

use expect_test::{Expect, expect};
use kiln::core::args;
use kiln::core::hook::{Hook, HookSet};
use kiln::core::ir::InstData;
use kiln::core::runtime::CpuOptions;
use kiln::core::target::{CustomTarget, PtxTarget, Target};
use kiln::prelude::*;
use kiln::{Error, Result};

/// Compares an error's text, with line and column numbers replaced so that moving a test does not
/// change it.
fn check<T>(result: Result<T>, want: Expect) {
    let error = match result {
        Ok(_) => panic!("there is no error"),
        Err(error) => error,
    };
    let mut text = String::new();
    for line in error.to_string().lines() {
        text += line.trim_end();
        text += "\n";
    }
    want.assert_eq(&without_positions(&text));
}

/// Replaces `errors.rs:12:34` by `errors.rs:L:C`.
fn without_positions(text: &str) -> String {
    let mut parts = text.split("errors.rs:");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ':');
        let ends_in_colon = part[..part.len() - rest.len()].ends_with(':');
        out += "errors.rs:L";
        out += if ends_in_colon { ":" } else { "" };
        out += rest;
    }
    out
}

/// Launches run in the interpreter, which survives every mistake and finds most of them.
fn jit() -> Jit {
    Jit::on(Device::cpu_with(CpuOptions::default().interpret(true)))
}

fn fill() -> Kernel {
    Kernel::build("fill", |k| {
        let out = k.slice_mut("out", Type::U32);
        let i = k.global_id().x();
        k.if_(i.lt(out.len()), || out.at(i).set(1));
    })
    .expect("it is right")
}

#[test]
fn operands_of_two_types() {
    let result = Kernel::build("mixed", |k| {
        let (a, b) = (k.param("a", Type::F32), k.param("b", Type::F64));
        let _ = a + b;
    });
    check(
        result,
        expect![[r#"
        `mixed` cannot be built: 1 error
          tests/errors.rs:L: `add` needs two operands of one type: the left one is `f32` (built at tests/errors.rs:L), the right one is `f64` (built at tests/errors.rs:L); convert one with `.cast(..)`
    "#]],
    );
}

#[test]
fn a_value_outside_its_region() {
    let result = Kernel::build("leak", |k| {
        let out = k.slice_mut("out", Type::U32);
        let leaked = std::cell::Cell::new(None);
        k.if_(out.len().gt(3), || leaked.set(Some(out.len() * 2)));
        if let Some(value) = leaked.get() {
            out.at(0).set(value);
        }
    });
    check(
        result,
        expect![[r#"
        `leak` cannot be built: 1 error
          tests/errors.rs:L: the value built at tests/errors.rs:L belongs to the `if` at tests/errors.rs:L, which has ended; declare a variable with `var` before it, `set` it inside and use it here
    "#]],
    );
}

#[test]
fn a_condition_that_is_no_bool() {
    let result = Kernel::build("truthy", |k| {
        let n = k.param("n", Type::I32);
        k.if_(n, || {});
    });
    check(
        result,
        expect![[r#"
        `truthy` cannot be built: 1 error
          tests/errors.rs:L: the condition of `if_` needs a bool (compare with `lt`, `eq`, ...), but the value built at tests/errors.rs:L is `i32`
    "#]],
    );
}

#[test]
fn literals_that_do_not_fit() {
    let result = Kernel::build("literals", |k| {
        let n = k.param("n", Type::U8);
        let _ = n + 300;
        let _ = n + 0.5;
    });
    check(
        result,
        expect![[r#"
        `literals` cannot be built: 2 errors
          tests/errors.rs:L: the literal 300 is not a value of `u8`; it is out of range
          tests/errors.rs:L: the literal 0.5 is not a value of `u8`; write it without a point
    "#]],
    );
}

#[test]
fn a_break_without_a_loop_and_a_store_to_a_read_only_slice() {
    let result = Kernel::build("stray", |k| {
        k.break_();
        let x = k.slice("x", Type::F32);
        x.at(0).set(1.0);
    });
    check(
        result,
        expect![[r#"
        `stray` cannot be built: 2 errors
          tests/errors.rs:L: `break` is not inside a loop of `stray`
          tests/errors.rs:L: an element is read-only; declare the parameter it comes from with `slice_mut`
    "#]],
    );
}

#[test]
fn a_field_that_is_not_there() {
    let result = Kernel::build("fields", |k| {
        let point = k.struct_type("Point", &[("x", Type::F32), ("y", Type::F32)]);
        let p = k.param("p", point);
        let _ = p.field("z");
    });
    check(
        result,
        expect![[r#"
        `fields` cannot be built: 1 error
          tests/errors.rs:L: `@Point` has no field `z`; it has x, y
    "#]],
    );
}

/// What is made of the zero that an error leaves is not reported as well.
#[test]
fn one_mistake_is_reported_once() {
    let of_two = DeviceFn::build("of_two", |k| {
        let (t, n) = (k.type_param("T").float(), k.type_param("U").any());
        let _ = n;
        let x = k.param("x", t);
        k.return_value(x);
    })
    .expect("it is right");
    let kernel = Kernel::build("one_mistake", |k| {
        let (x, out) = (k.slice("x", Type::F32), k.slice_mut("out", Type::F32));
        let i = k.global_id().x();
        let y = k.call(&of_two, &[x.at(i).get()]);
        let z = k.var("z", y * 1.5f32 + x.at(i).get());
        k.if_(z.get().lt(2.0f32), || z.set(x.at(i).get()));
        let copy = k.local(Type::I32);
        copy.set(z.get());
        out.at(copy.get()).set(z.get().field("a"));
        out.at(i).set(k.call(&of_two, &[z.get()]));
    });
    check(
        kernel,
        expect![[r#"
            `one_mistake` cannot be built: 1 error
              tests/errors.rs:L: `of_two` (defined at tests/errors.rs:L) has a parameter `U` that no argument determines; give it with `call_with`
        "#]],
    );
}

/// The most bytes that the text of an error has.
const READABLE: usize = 16 << 10;

/// However deep a type and however many the mistakes, an error can be read.
#[test]
fn errors_of_huge_types_and_kernels_stay_short() {
    let nested = |depth: usize, many: usize| {
        Kernel::build("huge", |k| {
            let mut ty = Type::U32;
            for _ in 0..depth {
                ty = k.array(ty, 1);
            }
            let out = k.slice_mut("out", Type::U32);
            let local = k.local(ty);
            for _ in 0..many {
                out.at(0u32).set(local.get());
            }
            out.at(0u32).set(1);
        })
    };
    for (depth, many) in [(3_000, 1), (20, 3_000), (100_000, 0)] {
        let jit = jit();
        let result = nested(depth, many).and_then(|kernel| {
            let mut out = jit.zeros::<u32>(1)?;
            jit.launch(&kernel, 1, 1, args!(&mut out))
        });
        let text = match result {
            Ok(()) => panic!("there is no error"),
            Err(error) => error.to_string(),
        };
        assert!(
            text.len() <= READABLE,
            "{depth}, {many}: {} bytes",
            text.len()
        );
    }
    let mut struct_of_many = Vec::new();
    for i in 0..5_000 {
        struct_of_many.push((format!("field_{i}_{}", "x".repeat(1000)), Type::U32));
    }
    let wrong = Kernel::build("wide", |k| {
        let fields: Vec<_> = struct_of_many
            .iter()
            .map(|(n, ty)| (n.as_str(), *ty))
            .collect();
        let ty = k.struct_type("Wide", &fields);
        let x = k.slice("x", ty);
        let _ = x.at(0u32).field("none");
    });
    let Err(error) = wrong else {
        panic!("there is no error");
    };
    assert!(error.to_string().len() <= READABLE);
}

/// Names, and what hooks say, are as long as a program makes them; the beginning of an error and what to
/// do about it are there all the same.
#[test]
fn errors_of_huge_names_and_of_hooks_stay_short() -> Result<()> {
    let name = "n".repeat(1 << 20);
    let kernel = Kernel::build(&name, |k| {
        let out = k.slice_mut(&name, Type::U32);
        out.at(k.global_id().x()).set(1);
    })?;
    let (jit, mut out) = (jit(), jit().zeros::<u32>(4)?);
    let mut mine = jit.zeros::<u32>(4)?;
    let hooked = compiling(HookSet::new().with(Wrong::Says(name.clone()).hook()));
    let mut on_hooked = hooked.zeros::<u32>(4)?;
    let faulting = || {
        jit.launch(&kernel, 1, 8, args!(&mut jit.zeros::<u32>(4)?))?;
        jit.synchronize()
    };
    let errors = [
        (jit.launch(&kernel, 1, 1, args!()), "0 were passed"),
        (jit.launch(&kernel, 1, 1, args!(1.0f32)), "pass"),
        (jit.launch(&kernel, 0, 1, args!(&mut mine)), "nothing to do"),
        (jit.launch(&kernel, 1, 1, args!(&mut out)), "`upload`"),
        (faulting(), "guard it with `if`"),
        (
            hooked.inspect(&kernel, args!(&mut on_hooked)).map(drop),
            "extension point: rewrite_ir",
        ),
    ];
    for (result, advice) in errors {
        let text = result.expect_err("it cannot be").to_string();
        assert!(text.len() <= READABLE, "{} bytes", text.len());
        assert!(text.contains(advice), "{text}");
    }
    Ok(())
}

#[test]
fn a_type_parameter_that_nothing_determines() {
    let kernel = Kernel::build("open", |k| {
        let t = k.type_param("T").float();
        let _ = k.zero(t);
    });
    check(
        kernel.and_then(|kernel| jit().launch(&kernel, 1, 1, args!())),
        expect![[r#"
            no argument of kernel `open` (declared at tests/errors.rs:L) says what `T` is: use `T` in the type of a parameter
        "#]],
    );
}

#[test]
fn a_missing_argument() {
    check(
        jit().launch(&fill(), 1, 1, args!()),
        expect![[r#"
        kernel `fill` (declared at tests/errors.rs:L) takes 1 argument (out), 0 were passed
    "#]],
    );
}

#[test]
fn a_read_only_buffer_for_a_mutable_slice() {
    let jit = jit();
    let x = jit.zeros::<u32>(4).expect("memory");
    check(
        jit.launch(&fill(), 1, 1, args!(&x)),
        expect![[r#"
        argument 1 (`out`, declared at tests/errors.rs:L) of kernel `fill` is written by the kernel, it was passed read-only: pass `&mut`
    "#]],
    );
}

#[test]
fn an_argument_of_another_type() {
    let jit = jit();
    let mut x = jit.zeros::<f32>(4).expect("memory");
    check(
        jit.launch(&fill(), 1, 1, args!(&mut x)),
        expect![[r#"
        argument 1 (`out`, declared at tests/errors.rs:L) of kernel `fill` must be a slice of `u32`, a slice of `f32` was passed: convert it, or change the kernel
    "#]],
    );
}

#[test]
fn what_main_and_unwrap_print() {
    let error = jit()
        .launch(&fill(), 1, 1, args!())
        .expect_err("no argument");
    assert_eq!(format!("{error:?}"), error.to_string());
}

#[test]
fn an_empty_grid() {
    let jit = jit();
    let mut x = jit.zeros::<u32>(4).expect("memory");
    check(
        jit.launch(&fill(), 0, 32, args!(&mut x)),
        expect![[r#"
        kernel `fill`: the grid is 0x1x1, and a launch needs at least one block and one thread; skip the launch when there is nothing to do
    "#]],
    );
}

#[test]
fn too_many_threads() {
    let jit = jit();
    let mut x = jit.zeros::<u32>(4).expect("memory");
    check(
        jit.launch(&fill(), 1, 4096, args!(&mut x)),
        expect![[r#"
        kernel `fill`: the number of threads of a block is 4096, the device's limit is 1024; use a smaller block and a larger grid
    "#]],
    );
}

#[test]
fn too_much_shared_memory() {
    let jit = jit();
    let mut x = jit.zeros::<u32>(4).expect("memory");
    let config = LaunchConfig::new(1, 32).shared_bytes(1 << 20);
    check(
        jit.launch_with(&fill(), config, args!(&mut x)),
        expect![[r#"
        kernel `fill`: the shared memory of a block in bytes is 1048576, the device's limit is 232448; use smaller tiles, or fewer elements a block
    "#]],
    );
}

#[test]
fn more_threads_than_promised() {
    let jit = jit();
    let kernel = Kernel::build("bounded", |k| {
        k.launch_bounds(64, 0);
        let _ = k.slice_mut("out", Type::U32);
    });
    let mut x = jit.zeros::<u32>(4).expect("memory");
    let launch = |kernel: Kernel| jit.launch(&kernel, 1, 128, args!(&mut x));
    check(
        kernel.and_then(launch),
        expect![[r#"
        kernel `bounded` promises at most 64 threads a block (`launch_bounds`), and this launch has 128; use a smaller block or raise the bound
    "#]],
    );
}

#[test]
fn a_buffer_of_another_device() {
    let (jit, other) = (jit(), jit());
    let mut x = other.zeros::<u32>(4).expect("memory");
    let result = jit.launch(&fill(), 1, 32, args!(&mut x));
    let Err(Error::Launch(error)) = result else {
        panic!("{result:?}")
    };
    // Devices are numbered as they are made, and tests run in any order.
    let text: String = error
        .to_string()
        .chars()
        .filter(|c| !c.is_ascii_digit())
        .collect();
    expect!["kernel `fill`: argument  (`out`) lies on CPU device , and the launch is on CPU device ; copy it with `to_vec` and `upload`"].assert_eq(&text);
}

#[test]
fn a_host_value_that_no_hook_converts() {
    let text = String::from("not an argument");
    check(
        jit().launch(&fill(), 1, 1, &[args::host(&text)]),
        expect![[r#"
            kernel `fill`: argument 1 is a host value that no hook converts; add a hook with `convert_argument` for its type
        "#]],
    );
}

#[test]
fn an_index_out_of_bounds() {
    let jit = jit();
    let kernel = Kernel::build("reach", |k| {
        let x = k.slice_mut("x", Type::U32);
        x.at(k.global_id().x() + 3).set(1);
    })
    .expect("it is right");
    let mut x = jit.zeros::<u32>(4).expect("memory");
    jit.launch(&kernel, 2, 2, args!(&mut x)).expect("a launch");
    check(
        jit.synchronize(),
        expect![[r#"
            kernel `reach`, tests/errors.rs:L: index 4 is out of bounds for length 4 in global memory (block 0x0x0, thread 1x0x0); the thread ended there, other threads went on; check the index or guard it with `if`
        "#]],
    );
}

#[test]
fn an_unchecked_access_outside_of_memory() {
    let jit = jit();
    let kernel = Kernel::build("wild", |k| {
        let x = k.slice_mut("x", Type::U32);
        // SAFETY: none; the interpreter is to find it.
        unsafe { x.at_unchecked(1u64 << 40) }.set(1);
    })
    .expect("it is right");
    let mut x = jit.zeros::<u32>(4).expect("memory");
    let result = jit.launch(&kernel, 1, 1, args!(&mut x));
    let Err(error) = result else {
        panic!("there is no error")
    };
    let text = error.to_string();
    assert!(
        text.starts_with("kernel `wild`, tests/errors.rs:"),
        "{text}"
    );
    assert!(
        text.contains("no memory of this launch (block [0, 0, 0], thread [0, 0, 0])"),
        "{text}"
    );
}

#[test]
fn too_many_values_for_a_buffer() {
    let jit = jit();
    let mut x = jit.zeros::<u32>(4).expect("memory");
    check(
        x.write(&[1; 5]),
        expect![[r#"
        5 values do not fit a buffer of 4; allocate a larger one
    "#]],
    );
}

/// A `Jit` that compiles for a GPU that is not here, with one hook.
fn compiling(hooks: HookSet) -> Jit {
    let target = Some(Target::Ptx(PtxTarget::for_sm(75)));
    Jit::with(Device::cpu(), hooks, JitOptions::default().target(target))
}

#[test]
fn code_of_another_device() {
    let jit = compiling(kiln::hooks::standard());
    let mut x = jit.zeros::<u32>(4).expect("memory");
    check(
        jit.launch(&fill(), 1, 32, args!(&mut x)),
        expect![[r#"
            kernel `fill` was compiled for sm_75, PTX 7.8, which this machine's CPU does not run; where kernels are launched, leave `JitOptions::target` unset
        "#]],
    );
    // Nobody has set it but a hook.
    let retargets = Hook::new("retargets").prepare_job(|job| {
        job.target = Target::Ptx(PtxTarget::for_sm(90));
        Ok(())
    });
    let quiet = Hook::new("quiet").prepare_job(|_| Ok(()));
    let hooks = HookSet::from(retargets).with(quiet);
    let jit = Jit::with(Device::cpu(), hooks, JitOptions::default());
    check(
        jit.launch(&fill(), 1, 32, args!(&mut x)),
        expect![[r#"
            hook `retargets` changed the target to sm_90, PTX 8.0: kernel `fill` was compiled for sm_90, PTX 8.0, which this machine's CPU does not run; where kernels are launched, leave `JitOptions::target` unset
              leave `CompileJob::target` as it is where kernels are launched; `JitOptions::target` says what other machine's code is looked at
              kernel: fill, extension point: prepare_job
        "#]],
    );
}

/// Targets that no code is made for, or that another hook can do nothing for.
#[test]
fn targets_of_hooks_that_cannot_be() {
    let retargets = |target: fn() -> Target| {
        Hook::new("retargets")
            .key("target", target())
            .prepare_job(move |job| {
                job.target = target();
                Ok(())
            })
    };
    let unknown = || {
        Target::Custom(CustomTarget {
            family: "tape",
            settings: String::new(),
        })
    };
    let reads = Hook::new("reads").rewrite_ptx(|_, _| Ok(()));
    let mut x = Jit::on(Device::cpu()).zeros::<u32>(4).expect("memory");
    check(
        compiling(retargets(unknown).into()).inspect(&fill(), args!(&mut x)),
        expect![[r#"
            hook `retargets` changed the target to tape: kernel `fill`: nothing makes code for the target `tape`; add what does to `JitOptions::isas`
              leave `CompileJob::target` as it is where kernels are launched; `JitOptions::target` says what other machine's code is looked at
              kernel: fill, extension point: prepare_job
        "#]],
    );
    let to_interpreter = HookSet::from(retargets(|| Target::Interpreter)).with(reads);
    check(
        compiling(to_interpreter).inspect(&fill(), args!(&mut x)),
        expect![[r#"
            hook `retargets` changed the target to interpreter: hook `reads` has `rewrite_ptx`, and compiling for interpreter does not come there; take the hook out, or say by `Hook::if_supported` that it is to do there what it can
              leave `CompileJob::target` as it is where kernels are launched; `JitOptions::target` says what other machine's code is looked at
              kernel: fill, extension point: prepare_job
        "#]],
    );
}

#[test]
fn a_stage_that_is_not_there() {
    let jit = jit();
    let mut x = jit.zeros::<u32>(4).expect("memory");
    let inspection = jit.inspect(&fill(), args!(&mut x));
    check(
        inspection.and_then(|i| i.ptx().map(str::to_owned)),
        expect![[r#"
            kernel `fill` was compiled for the interpreter, which has no stage `ptx`; set `JitOptions::target` to look at another target's code
        "#]],
    );
}

#[test]
fn what_the_target_does_not_have() {
    let jit = compiling(kiln::hooks::standard());
    let kernel = Kernel::build("scoped", |k| {
        let tile = k.shared_array("tile", Type::F32, 20_000);
        tile.at(0).set(1.0);
    });
    check(
        kernel.and_then(|kernel| jit.inspect(&kernel, args!())),
        expect![[r#"
            kernel `scoped` cannot be compiled for sm_75:
              tests/errors.rs:L: in `scoped`: the shared variables take 80000 bytes, of at most 49152; use dynamic shared memory
        "#]],
    );
}

/// Does one thing wrong.
enum Wrong {
    Panics,
    Fails,
    Says(String),
    BreaksIr,
    BreaksPipeline,
    Vetoes,
}

impl Wrong {
    fn hook(self) -> Hook {
        let hook = Hook::new("wrong").key("is", "wrong");
        match self {
            Wrong::Panics => hook.rewrite_ir(|_, _| panic!("out of ideas")),
            Wrong::Fails => hook.rewrite_ir(|_, _| Err("no rewriting on Fridays".into())),
            Wrong::Says(text) => hook.rewrite_ir(move |_, _| Err(text.as_str().into())),
            Wrong::BreaksIr => hook.rewrite_ir(|_, module| {
                let kernel = module.kernel().expect("a kernel");
                let body = module.functions[kernel].body;
                let function = &mut module.functions[kernel];
                let location = function.location;
                let data = InstData::Break { depth: 0 };
                let inst = function.new_inst(data, Type::UNIT, location);
                function.regions[body].insts.insert(0, inst);
                Ok(())
            }),
            Wrong::BreaksPipeline => hook.pass_pipeline(|_, pipeline| {
                *pipeline = "default<O9>".to_owned();
                Ok(())
            }),
            Wrong::Vetoes => hook.before_launch(|_| Err("the budget is spent".into())),
        }
    }
}

fn inspect_with(wrong: Wrong) -> Result<()> {
    let jit = compiling(HookSet::new().with(wrong.hook()));
    let mut x = jit.zeros::<u32>(4)?;
    let result = jit.inspect(&fill(), args!(&mut x)).map(drop);
    assert_eq!(jit.cache_stats().compiles, 0, "nothing is cached");
    result
}

#[test]
fn a_hook_that_panics() {
    check(
        inspect_with(Wrong::Panics),
        expect![[r#"
        hook `wrong` panicked: out of ideas
          this is a bug in the hook
          kernel: fill, extension point: rewrite_ir
    "#]],
    );
}

#[test]
fn a_hook_that_fails() {
    check(
        inspect_with(Wrong::Fails),
        expect![[r#"
        hook `wrong` failed: no rewriting on Fridays
          kernel: fill, extension point: rewrite_ir
    "#]],
    );
}

#[test]
fn a_hook_that_breaks_the_module() {
    check(
        inspect_with(Wrong::BreaksIr),
        expect![[r#"
            hook `wrong` left a module that does not verify; this is a bug in the hook
            `fill` breaks 2 rules of the IR
              tests/errors.rs:L: in `fill`: it ends its region, and instructions follow
              tests/errors.rs:L: in `fill`: it names loop 1 around it, and there are 0
            kernel @fill(%0 out: slice<generic, mut u32> align(16) noalias short) {
              break 0
              ; error: it ends its region, and instructions follow
              ; error: it names loop 1 around it, and there are 0
              %1: u32 = intrinsic block_idx.x()
              %2: u32 = intrinsic block_dim.x()
              %3: u32 = mul %1, %2
              ...
              kernel: fill, extension point: rewrite_ir
        "#]],
    );
}

#[test]
fn a_hook_that_breaks_the_pipeline() {
    check(
        inspect_with(Wrong::BreaksPipeline),
        expect![[r#"
            hook `wrong` changed the passes to some that LLVM does not run: `default<O9>`: invalid optimization level 'O9'
              kernel: fill, extension point: pass_pipeline
        "#]],
    );
}

#[test]
fn a_length_that_kernels_have_no_room_for() {
    #[kernel]
    fn shift(x: &mut [f32], by: isize, n: usize) {
        x[0] = by as f32 + n as f32;
    }
    let jit = jit();
    let mut x = jit.zeros::<f32>(1).expect("it is small");
    check(
        shift.launch(&jit, (1, 1), &mut x, 0, 5_000_000_000),
        expect![[r#"
            kernel `shift`: argument 3 (`n`) is 5000000000, and `usize` has 32 bits in kernels, 0 to 4294967295; declare the parameter as `u64`, or launch over parts
        "#]],
    );
    check(
        jit.launch(&shift, 1, 1, args!(&mut x, -3_000_000_000isize, 0usize)),
        expect![[r#"
            kernel `shift`: argument 2 (`by`) is -3000000000, and `isize` has 32 bits in kernels, -2147483648 to 2147483647; declare the parameter as `i64`, or launch over parts
        "#]],
    );
    check(
        jit.launch(&shift, 1, 1, args!(1usize, 0isize, 0usize)),
        expect![[r#"
            argument 1 (`x`, declared at tests/errors.rs:L) of kernel `shift` must be a slice of `f32`, `usize` was passed: pass a device buffer
        "#]],
    );
}

#[test]
fn a_hook_that_vetoes_a_launch() {
    let jit = Jit::with(
        Device::cpu(),
        HookSet::new().with(Wrong::Vetoes.hook()),
        JitOptions::default(),
    );
    let mut x = jit.zeros::<u32>(4).expect("memory");
    check(
        jit.launch(&fill(), 1, 32, args!(&mut x)),
        expect![[r#"
        hook `wrong` failed: the budget is spent
          kernel: fill, extension point: before_launch
    "#]],
    );
}

/// The outcome of a launch of one warp whose threads hold their linear index.
fn warp(describe: impl Fn(&KernelBuilder, Val<'_>)) -> Result<()> {
    let kernel = Kernel::build("warp", |k| describe(k, k.thread_idx().x()))?;
    jit().launch(&kernel, 1, 32, args!())
}

#[test]
fn a_warp_operation_that_not_all_lanes_come_to() {
    let result = warp(|k, i| {
        k.if_(i.lt(20), || {
            k.ballot(FULL_MASK, i.lt(7));
        });
        k.warp_sync(FULL_MASK);
    });
    check(
        result,
        expect![[r#"
        kernel `warp`, tests/errors.rs:L: `warp.ballot` cannot be executed (block [0, 0, 0], thread [0, 0, 0]): its member mask is 0xffffffff, but lane 20 waits at `warp.sync` of tests/errors.rs:L; all lanes of a mask that have not ended have to come to the same operation with the same mask, so give lanes that branch apart masks of their own, from a `ballot` before the branch
    "#]],
    );
}

#[test]
fn a_warp_operation_and_a_barrier() {
    let result = warp(|k, i| {
        k.if_(i.eq(3), || k.barrier());
        k.if_(i.lt(8), || {
            k.shuffle_up(0xffu32, i, 1, 32);
        });
    });
    check(
        result,
        expect![[r#"
        kernel `warp`, tests/errors.rs:L: `warp.shuffle_up` cannot be executed (block [0, 0, 0], thread [0, 0, 0]): its member mask is 0x000000ff, but lane 3 waits at the barrier of tests/errors.rs:L; all lanes of a mask that have not ended have to come to the same operation with the same mask, so give lanes that branch apart masks of their own, from a `ballot` before the branch
    "#]],
    );
}

#[test]
fn a_warp_operation_with_two_masks() {
    let result = warp(|k, i| {
        let mask = i.lt(16).select(k.lit(Type::U32, FULL_MASK), 0xffff_ff00u32);
        k.warp_reduce_max(mask, i);
    });
    check(
        result,
        expect![[r#"
        kernel `warp`, tests/errors.rs:L: `warp.reduce_max` cannot be executed (block [0, 0, 0], thread [0, 0, 0]): its member mask is 0xffffffff, but lane 16 waits there with the member mask 0xffffff00; all lanes of a mask that have not ended have to come to the same operation with the same mask, so give lanes that branch apart masks of their own, from a `ballot` before the branch
    "#]],
    );
}

#[test]
fn a_mask_that_leaves_out_its_lane() {
    let result = warp(|k, i| {
        k.match_any(0xffu32, i);
    });
    check(
        result,
        expect![[r#"
        kernel `warp`, tests/errors.rs:L: `warp.match_any` cannot be executed (block [0, 0, 0], thread [8, 0, 0]): its member mask 0x000000ff leaves out its own lane 8; a lane can execute it only with a mask that it is in
    "#]],
    );
}

#[test]
fn widths_and_types_of_warp_operations() {
    let result = warp(|k, i| {
        k.shuffle_idx(FULL_MASK, i, 3, 12);
        k.shuffle_down(i.cast(Type::U64), i, 1, 32);
        k.ballot(FULL_MASK, i);
        k.warp_reduce_add(FULL_MASK, i.cast(Type::F32));
        k.shuffle_xor(FULL_MASK, k.dynamic_shared(Type::F32), 1, 32);
        k.shuffle_up(
            FULL_MASK,
            k.shared("many", k.array(Type::F32, 1025)).get(),
            1,
            32,
        );
    });
    check(
        result,
        expect![[r#"
            `warp` cannot be built: 6 errors
              tests/errors.rs:L: `warp.shuffle_idx` takes a width of 1, 2, 4, 8, 16 or 32 lanes, not 12
              tests/errors.rs:L: argument 1 of `warp.shuffle_down` has type u64; it takes u32
              tests/errors.rs:L: argument 2 of `warp.ballot` has type u32; it takes bool
              tests/errors.rs:L: argument 2 of `warp.reduce_add` has type f32; it takes i32 or u32
              tests/errors.rs:L: argument 2 of `warp.shuffle_xor` has type slice<shared, mut f32>; it takes any scalar, or a struct, array or vector of at most 1024 of them
              tests/errors.rs:L: argument 2 of `warp.shuffle_up` has type [f32; 1025]; it takes any scalar, or a struct, array or vector of at most 1024 of them
        "#]],
    );
}

#[kernel]
fn even(x: &mut [u32], n: usize) {
    assume(n % 2 == 0 && n <= x.len());
    x[0] = n as u32;
}

#[test]
fn an_assumption_that_does_not_hold() -> Result<()> {
    let jit = jit();
    let mut x = jit.zeros::<u32>(4)?;
    even.launch(&jit, (1, 1), &mut x, 3)?;
    check(
        jit.synchronize(),
        expect![[r#"
        kernel `even`, tests/errors.rs:L: the assumption `n % 2 == 0 && n <= x.len()` does not hold (block 0x0x0, thread 0x0x0); the thread ended there, other threads went on; launch with arguments for which it holds, or write `if` for it
    "#]],
    );
    let built = Kernel::build("built", |k| {
        k.assume(k.param("n", Type::U32).eq(0));
    })?;
    jit.launch(&built, 1, 1, args!(3u32))?;
    check(
        jit.synchronize(),
        expect![[r#"
        kernel `built`, tests/errors.rs:L: an assumption does not hold (block 0x0x0, thread 0x0x0); the thread ended there, other threads went on; launch with arguments for which it holds, or write `if` for it
    "#]],
    );
    let built = Kernel::build("asserting", |k| {
        let n = k.param("n", Type::U32);
        k.assert_ne(n, 5, "it is the number");
        k.panic("here");
    })?;
    for n in [3u32, 5] {
        jit.launch(&built, 1, 1, args!(n))?;
        let expected = [
            expect![[r#"
                kernel `asserting`, tests/errors.rs:L: panicked: here (block 0x0x0, thread 0x0x0); the thread ended there, other threads went on; launch with arguments for which the kernel does not get there, or correct the kernel
            "#]],
            expect![[r#"
                kernel `asserting`, tests/errors.rs:L: panicked: it is the number (left: 5, right: 5) (block 0x0x0, thread 0x0x0); the thread ended there, other threads went on; launch with arguments for which the kernel does not get there, or correct the kernel
            "#]],
        ];
        check(
            jit.synchronize(),
            expected.into_iter().nth(usize::from(n == 5)).unwrap(),
        );
    }
    // SAFETY: the interpreter finds out.
    let wrong = unsafe {
        Kernel::build_unchecked("wrong", |k| {
            k.assume(k.param("n", Type::U32).eq(0));
        })
    }?;
    let launched = jit.launch(&wrong, 1, 1, args!(3u32));
    check(
        launched.and_then(|()| jit.synchronize()),
        expect![[r#"
        kernel `wrong`, tests/errors.rs:L: what the kernel assumes there does not hold (block [0, 0, 0], thread [0, 0, 0]), and it is built without checks; keep to what it promises, or build it checked
    "#]],
    );
    Ok(())
}

#[test]
fn integers_whose_width_is_not_known() {
    type Method = for<'k> fn(Val<'k>) -> Val<'k>;
    let methods: [Method; 6] = [
        |x| x.saturating_mul(3),
        |x| x.overflowing_pow(2).field("0"),
        |x| x.unbounded_shl(1),
        |x| x.midpoint(1),
        |x| x.div_euclid(3),
        |x| x.isqrt(),
    ];
    for method in methods {
        let result = Kernel::build("open", |k| {
            let x = k.slice_mut("x", k.type_param("T").int());
            x.at(0u32).set(method(x.at(0u32).get()));
        });
        let text = result.expect_err("nothing says the width").to_string();
        let named = text.contains("this method is for integers whose type is known");
        assert!(named, "{text}");
    }
}
