//! What a list of hooks may be, what becomes of hooks that go wrong, and what hooks may do to their `Jit`.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use expect_test::expect;
use kiln::core::hook::{Hook, HookPoint, HookSet, Needs};
use kiln::core::ir::{Module, Type};
use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;
use kiln::{Error, Result};

#[kernel]
fn fill(x: &mut [u32], value: u32) {
    let i = global_id().x;
    if i < x.len() {
        x[i] = value;
    }
}

#[kernel]
fn double(x: &mut [u32]) {
    let i = global_id().x;
    if i < x.len() {
        x[i] *= 2;
    }
}

fn on_cpu(hooks: HookSet) -> Jit {
    Jit::with(Device::cpu(), hooks, JitOptions::default())
}

fn for_gpu(hooks: HookSet) -> Jit {
    let target = Some(Target::Ptx(PtxTarget::for_sm(90)));
    let options = JitOptions {
        target,
        ..JitOptions::default()
    };
    Jit::with(Device::cpu(), hooks, options)
}

fn launch(jit: &Jit) -> Result<Vec<u32>> {
    let mut x = jit.zeros::<u32>(4)?;
    fill.launch(jit, (1, 32), &mut x, 7)?;
    x.to_vec()
}

fn names(set: &HookSet) -> Vec<&str> {
    set.iter().map(Hook::name).collect()
}

#[test]
fn a_list_says_where_each_hook_stands() -> Result<()> {
    let set = kiln::hooks::standard()
        .with(Hook::new("last"))
        .first(Hook::new("first"))
        .before("by-value", Hook::new("before"))
        .after("by-value", Hook::new("after"));
    assert_eq!(
        names(&set),
        [
            "first",
            "address-spaces",
            "before",
            "by-value",
            "after",
            "last"
        ]
    );
    let set = set
        .without("address-spaces")
        .replace(Hook::new("before").version(2));
    assert_eq!(
        names(&set),
        ["first", "before", "by-value", "after", "last"]
    );
    assert!(set.fingerprint().contains("before v2\n"), "{set:?}");
    assert_eq!(launch(&on_cpu(set))?, [7; 4]);
    Ok(())
}

#[test]
fn mistakes_in_lists_are_told_by_the_first_use() {
    let held = 3;
    let pointer: fn(&mut kiln::core::ir::Module) = |_| {};
    let signs = || Hook::new("signs").rewrite_ptx(|_, _| Ok(()));
    let lowers = || Hook::new("lowers").lower_inst(|_, _, _| Ok(None));
    let mut said = String::new();
    for set in [
        kiln::hooks::standard().with(Hook::new("by-value")),
        kiln::hooks::standard().without("adress-spaces"),
        kiln::hooks::standard().before("by-reference", Hook::new("mine")),
        HookSet::new().after("x", Hook::new("mine")),
        HookSet::new().replace(Hook::new("mine")),
        Hook::new("holds")
            .pass_pipeline(move |_, passes| {
                *passes = format!("default<O{held}>");
                Ok(())
            })
            .into(),
        Hook::new("points")
            .rewrite_ir(move |_, module| {
                pointer(module);
                Ok(())
            })
            .into(),
        signs().into(),
    ] {
        let jit = on_cpu(set);
        let error = launch(&jit).expect_err("the list is wrong");
        assert!(matches!(error, Error::HookSet(_)), "{error}");
        said += &format!("{error}\n");
        let mut x = jit.zeros::<u32>(1).expect("memory");
        let inspected = jit.inspect_block(&fill, 32, args!(&mut x, 7u32));
        let again = inspected.expect_err("it still is").to_string();
        assert_eq!(again, error.to_string());
    }
    expect![[r#"
        two hooks are named `by-value`; give one of them another name, or put one in the other's place by `HookSet::replace`
        there is no hook `adress-spaces`; the hooks are ["address-spaces", "by-value"]
        there is no hook `by-reference`; the hooks are ["address-spaces", "by-value"]
        there is no hook `x`; the hooks are []
        there is no hook `mine`; the hooks are []
        hook `holds` holds values at `pass_pipeline`, which can change code, and says nothing of them for the cache key, so that code made with other values would be taken for the same; say what they are by `Hook::key`
        hook `points` holds values at `rewrite_ir`, which can change code, and says nothing of them for the cache key, so that code made with other values would be taken for the same; say what they are by `Hook::key`
        hook `signs` has `rewrite_ptx`, and compiling for this machine's CPU does not come there; take the hook out, or say by `Hook::if_supported` that it is to do there what it can
    "#]].assert_eq(&said);

    // What is interpreted comes to no point that has LLVM.
    let options = JitOptions {
        checks: Checks::all(),
        ..JitOptions::default()
    };
    let checked = |hook: Hook| Jit::with(Device::cpu(), hook.into(), options.clone());
    let error = launch(&checked(lowers())).expect_err("nothing is lowered");
    expect!["hook `lowers` has `lower_inst`, and compiling for interpreter does not come there; take the hook out, or say by `Hook::if_supported` that it is to do there what it can"].assert_eq(&error.to_string());

    for (jit, what) in [
        (on_cpu(signs().if_supported().into()), "on a CPU"),
        (checked(lowers().if_supported()), "checked"),
        (on_cpu(lowers().into()), "lowered for a CPU"),
    ] {
        assert_eq!(launch(&jit).expect(what), [7; 4], "{what}");
    }
}

/// A kernel that only the interpreter can run: lanes of a warp wait at different barriers, and it has warp
/// operations.
#[kernel]
fn interpreted(x: &mut [u32]) {
    let i = thread_idx().x;
    let sum = warp_reduce_add(FULL_MASK, i as u32);
    if i % 2 == 0 {
        barrier();
    }
    if i < x.len() {
        x[i] = sum;
    }
}

#[test]
fn a_kernel_that_llvm_makes_no_code_for_does_not_forget_its_hooks() -> Result<()> {
    let hook = || Hook::new("lowers").lower_inst(|_, _, _| Ok(None));
    let run = |jit: &Jit| -> Result<()> {
        let mut x = jit.zeros::<u32>(4)?;
        interpreted.launch(jit, (1, 64), &mut x)?;
        jit.synchronize()
    };
    run(&on_cpu(HookSet::new()))?;
    let error = run(&on_cpu(hook().into())).expect_err("its hook would do nothing");
    assert!(
        error
            .to_string()
            .starts_with("hook `lowers` has `lower_inst`, and this kernel is interpreted: "),
        "{error}"
    );
    run(&on_cpu(hook().if_supported().into()))
}

/// Has code take more stack than a thread has, so that it cannot be run.
fn takes_stack() -> Hook {
    Hook::new("takes-stack").finish_optimized_module(|_, module| {
        let entry = module
            .get_function("kiln_blocks")
            .ok_or("there is no entry")?;
        let first = entry.get_first_basic_block().ok_or("it has no body")?;
        let builder = module.get_context().create_builder();
        match first.get_first_instruction() {
            Some(instruction) => builder.position_before(&instruction),
            None => builder.position_at_end(first),
        }
        let byte = module.get_context().i8_type();
        let large = builder.build_alloca(byte.array_type(8 << 20), "large")?;
        builder
            .build_store(large, byte.const_zero())?
            .set_volatile(true)?;
        Ok(())
    })
}

#[test]
fn code_that_cannot_be_run_does_not_forget_its_hooks() -> Result<()> {
    let error = launch(&on_cpu(takes_stack().into())).expect_err("what the hook made is not run");
    let error = error.to_string();
    let want = "hook `takes-stack` has `finish_optimized_module`, and this kernel is interpreted: its code takes 83";
    assert!(error.starts_with(want), "{error}");
    assert_eq!(
        launch(&on_cpu(takes_stack().if_supported().into()))?,
        [7; 4]
    );
    Ok(())
}

/// A hook with `f` at a point; what `f` gives is an error, if it does not panic.
fn at(point: HookPoint, f: fn() -> Box<dyn std::error::Error + Send + Sync>) -> Hook {
    let hook = Hook::new("wrong").key("f", point);
    match point {
        HookPoint::ConvertArgument => hook.convert_argument(move |_| Err(f())),
        HookPoint::PrepareJob => hook.prepare_job(move |_| Err(f())),
        HookPoint::RewriteIr => hook.rewrite_ir(move |_, _| Err(f())),
        HookPoint::LowerAbi => hook.lower_abi(move |_, _| Err(f())),
        HookPoint::LowerInst => hook.lower_inst(move |_, _, _| Err(f())),
        HookPoint::LowerIntrinsic => hook.lower_intrinsic(move |_, _, _| Err(f())),
        HookPoint::FinishModule => hook.finish_module(move |_, _| Err(f())),
        HookPoint::PassPipeline => hook.pass_pipeline(move |_, _| Err(f())),
        HookPoint::FinishOptimizedModule => hook.finish_optimized_module(move |_, _| Err(f())),
        HookPoint::RewritePtx => hook.rewrite_ptx(move |_, _| Err(f())),
        HookPoint::Assemble => hook.assemble(move |_, _| Err(f())),
        HookPoint::AfterLoad => hook.after_load(move |_, _| Err(f())),
        HookPoint::BeforeLaunch => hook.before_launch(move |_| Err(f())),
        HookPoint::AfterLaunch => hook.after_launch(move |_, _| drop(f())),
        HookPoint::HiddenArguments => {
            let reads = |module: &mut Module| {
                let hidden = module.add_hidden("wrong", "n", Type::U32);
                module.rewrite_each(|at| {
                    at.ins().hidden(hidden);
                });
            };
            let hook = hook.rewrite_ir(move |_, module| {
                reads(module);
                Ok(())
            });
            hook.hidden_arguments(move |_, _| Err(f()))
        }
        _ => panic!("this test knows all points"),
    }
}

#[test]
fn a_hook_that_goes_wrong_is_named_with_its_point_on_each_target() {
    for &point in HookPoint::ALL {
        for (f, how) in [
            (
                (|| "no more".into()) as fn() -> Box<dyn std::error::Error + Send + Sync>,
                "failed: no more",
            ),
            (|| panic!("no way"), "panicked: no way"),
        ] {
            if point == HookPoint::AfterLaunch && how.starts_with("failed") {
                continue;
            }
            let at_launch = [
                HookPoint::ConvertArgument,
                HookPoint::AfterLoad,
                HookPoint::BeforeLaunch,
                HookPoint::HiddenArguments,
                HookPoint::AfterLaunch,
            ]
            .contains(&point);
            for gpu in [false, true] {
                if gpu && at_launch || !gpu && point.needs() == Needs::Ptx {
                    continue;
                }
                let jit = match gpu {
                    true => for_gpu(at(point, f).into()),
                    false => on_cpu(at(point, f).into()),
                };
                let mut x = jit.zeros::<u32>(4).expect("memory");
                let host = kiln::core::args::host(&7u32);
                let value = match point {
                    HookPoint::ConvertArgument => host,
                    _ => kiln::core::args::IntoArg::into_arg(7u32),
                };
                let result = match gpu {
                    true => jit.inspect(&fill, args!(&mut x, value)).map(drop),
                    false => jit.launch(&fill, 1, 32, args!(&mut x, value)),
                };
                let error = result.expect_err("the hook is wrong").to_string();
                let want = format!("hook `wrong` {how}");
                assert!(error.starts_with(&want), "{point}: {error}");
                let want = format!("kernel: fill, extension point: {point}");
                assert!(error.ends_with(&want), "{point}: {error}");
                assert!(x.to_vec().is_ok(), "{point}: the device is as it was");
            }
        }
    }
}

#[test]
fn a_veto_is_told_to_those_that_were_told_of_the_launch() -> Result<()> {
    let told = Arc::new(Mutex::new(Vec::new()));
    let listens = |name: &'static str| {
        let (before, after) = (told.clone(), told.clone());
        Hook::new(name)
            .before_launch(move |_| {
                before.lock().unwrap().push(format!("{name} before"));
                Ok(())
            })
            .after_launch(move |_, result| {
                let what = result.as_ref().map_or("failed", |()| "went");
                after.lock().unwrap().push(format!("{name} {what}"));
            })
    };
    let vetoes = Hook::new("vetoes").before_launch(|_| Err("the budget is spent".into()));
    let set = HookSet::new().with(listens("a")).with(listens("b"));
    let jit = on_cpu(set.clone().before("b", vetoes));
    let error = launch(&jit).expect_err("it is vetoed").to_string();
    assert!(error.starts_with("hook `vetoes` failed: the budget is spent"));
    let take = || std::mem::take(&mut *told.lock().unwrap());
    assert_eq!(take(), ["a before", "a failed"]);
    launch(&on_cpu(set.clone()))?;
    assert_eq!(take(), ["a before", "b before", "a went", "b went"]);
    let panics = Hook::new("panics").after_launch(|_, _| panic!("no way"));
    let error = launch(&on_cpu(set.before("b", panics))).expect_err("a hook is wrong");
    let error = error.to_string();
    assert!(
        error.starts_with("hook `panics` panicked: no way"),
        "{error}"
    );
    assert_eq!(take(), ["a before", "b before", "a went", "b went"]);
    Ok(())
}

/// A `Jit` that its own hook can reach.
type Own = Arc<OnceLock<Jit>>;

fn own(hook: impl FnOnce(Own) -> Hook) -> Jit {
    let own = Own::default();
    let jit = on_cpu(hook(own.clone()).into());
    own.get_or_init(|| jit).clone()
}

#[test]
fn launches_of_launch_hooks_are_not_told_to_hooks() -> Result<()> {
    let told = Arc::new(AtomicU32::new(0));
    let jit = own(|own| {
        let (told, other) = (told.clone(), own.clone());
        Hook::new("launches")
            .before_launch(move |_| {
                told.fetch_add(1, Ordering::Relaxed);
                let jit = own.get().ok_or("no `Jit`")?;
                let mut y = jit.upload(&[1u32, 2])?;
                double.launch(jit, (1, 32), &mut y)?;
                assert_eq!(y.to_vec()?, [2, 4]);
                Ok(())
            })
            .after_launch(move |_, _| {
                launch(other.get().expect("there is one")).expect("it can be launched");
            })
    });
    assert_eq!(launch(&jit)?, [7; 4]);
    assert_eq!(told.load(Ordering::Relaxed), 1);
    Ok(())
}

/// What a hook that compiles gets for launching the kernel, and another.
fn launched_while_compiled(point: HookPoint) -> (Result<Vec<u32>>, Vec<String>) {
    let said = Arc::new(Mutex::new(Vec::new()));
    let jit = own(|own| {
        let said = said.clone();
        let act = move |kernel: &str| {
            if kernel != "fill" {
                return Ok(());
            }
            let jit = own.get().ok_or("no `Jit`")?;
            let mut y = jit.upload(&[1u32, 2])?;
            double.launch(jit, (1, 32), &mut y)?;
            assert_eq!(y.to_vec()?, [2, 4]);
            let launched = launch(jit).map(drop);
            let inspected = jit.inspect_block(&fill, 32, args!(&mut y, 7u32));
            let errors = [launched, inspected.map(drop)]
                .into_iter()
                .flat_map(Result::err);
            said.lock()
                .unwrap()
                .extend(errors.map(|error| error.to_string()));
            Ok(())
        };
        let hook = Hook::new("launches").key("changes", "nothing");
        match point {
            HookPoint::RewriteIr => hook.rewrite_ir(move |cx, _| act(cx.kernel)),
            _ => hook.finish_module(move |cx, _| act(cx.kernel)),
        }
    });
    let result = launch(&jit);
    let said = std::mem::take(&mut *said.lock().unwrap());
    (result, said)
}

#[test]
fn a_hook_that_compiles_launches_other_kernels_and_never_waits_for_itself() -> Result<()> {
    for point in [HookPoint::RewriteIr, HookPoint::FinishModule] {
        let (result, said) = launched_while_compiled(point);
        assert_eq!(result?, [7; 4], "{point}");
        let text = "kernel `fill` is launched or inspected by a hook while it is compiled, and would wait for \
                    itself; launch another kernel there, or this one with another `Jit`";
        assert_eq!(said, [text, text], "{point}");
    }
    Ok(())
}
