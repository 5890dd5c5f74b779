//! What a list of hooks may be, what becomes of hooks that go wrong, and what hooks may do to their `Jit`.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use expect_test::expect;
use kiln::core::codegen::amdgpu_target;
use kiln::core::hook::{Hook, HookPoint, HookResult, HookSet, LaunchEvent, Needs};
use kiln::core::inkwell::module::Module as LlvmModule;
use kiln::core::ir;
use kiln::core::runtime::{CpuOptions, OnHostOptions};
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
            "bounds-checks",
            "before",
            "by-value",
            "after",
            "in-place",
            "last"
        ]
    );
    let set = set
        .without("address-spaces")
        .without("bounds-checks")
        .replace(Hook::new("before").version(2));
    assert_eq!(
        names(&set),
        ["first", "before", "by-value", "after", "in-place", "last"]
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
        there is no hook `adress-spaces`; the hooks are ["address-spaces", "bounds-checks", "by-value", "in-place"]
        there is no hook `by-reference`; the hooks are ["address-spaces", "bounds-checks", "by-value", "in-place"]
        there is no hook `x`; the hooks are []
        there is no hook `mine`; the hooks are []
        hook `holds` holds values at `pass_pipeline`, which can change code, and says nothing of them for the cache key, so that code made with other values would be taken for the same; say what they are by `Hook::key`
        hook `points` holds values at `rewrite_ir`, which can change code, and says nothing of them for the cache key, so that code made with other values would be taken for the same; say what they are by `Hook::key`
        hook `signs` has `rewrite_ptx`, and compiling for this machine's CPU does not come there; take the hook out, or say by `Hook::if_supported` that it is to do there what it can
    "#]].assert_eq(&said);

    // What is interpreted comes to no point that has LLVM.
    let options = JitOptions::default().checks(Checks::all());
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

#[test]
fn no_list_has_the_key_of_another() {
    let a = || Hook::new("a");
    let lists = [
        HookSet::from(a()).with(Hook::new("b")),
        Hook::new("a v1\nb").into(),
        a().key("x", 1).into(),
        Hook::new("a v1 x=1:1\na").into(),
        Hook::new("\"a v1\\nb\"").into(),
    ];
    let keys: std::collections::BTreeSet<_> = lists.iter().map(HookSet::fingerprint).collect();
    assert_eq!(keys.len(), lists.len(), "{keys:?}");
}

#[test]
fn what_a_hook_says_of_itself_is_said_once() -> Result<()> {
    let dial = Arc::new(AtomicU32::new(3));
    let turned = dial.clone();
    let hook = Hook::new("dial")
        .key("dial", &dial)
        .rewrite_ir(move |_, module| {
            module.rewrite_each(|at| {
                if let ir::InstData::Store { .. } = at.data() {
                    let value = at.ins().constant(turned.load(Ordering::Relaxed));
                    at.set_operand(1, value);
                }
            });
            Ok(())
        });
    let jit = on_cpu(hook.into());
    assert_eq!(launch(&jit)?, [3; 4]);
    dial.store(7, Ordering::Relaxed);
    assert_eq!(launch(&jit)?, [3; 4], "the code is kept under its key");
    let mut x = jit.zeros::<u32>(4)?;
    let inspection = jit.inspect_block(&fill, 32, args!(&mut x, 7u32))?;
    let key = inspection.key().to_string();
    assert!(key.contains("dial v1 dial=1:3"), "{key}");
    Ok(())
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

/// How a hook goes wrong.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Wrong {
    Fails,
    Panics,
    /// Leaves something that is not what it may leave.
    Breaks,
}

impl Wrong {
    const ALL: [Wrong; 3] = [Wrong::Fails, Wrong::Panics, Wrong::Breaks];

    /// What a function gives that fails or panics; what breaks something goes on.
    fn come<T>(self, go_on: T) -> HookResult<T> {
        match self {
            Wrong::Fails => Err("no more".into()),
            Wrong::Panics => panic!("no way"),
            Wrong::Breaks => Ok(go_on),
        }
    }
}

/// Gives a value of the IR another type than it has.
fn break_ir(module: &mut ir::Module) {
    for (_, function) in module.functions.iter_mut() {
        for (_, value) in function.values.iter_mut() {
            if value.ty == Type::U32 {
                value.ty = Type::F64;
            }
        }
    }
}

/// Adds a variable to LLVM's module that nobody defines.
fn break_llvm(module: &LlvmModule<'_>) {
    let word = module.get_context().i32_type();
    module.add_global(word, None, "nowhere");
}

/// A hook that goes wrong at a point, and how it is told what it broke; `None` where nothing can be broken: what it
/// gives there is looked at by others, or it gives nothing.
fn wrong_at(point: HookPoint, wrong: Wrong) -> (Hook, Option<&'static str>) {
    let hook = Hook::new("wrong").key("at", (point, wrong));
    match point {
        HookPoint::ConvertArgument => (hook.convert_argument(move |_| wrong.come(None)), None),
        HookPoint::PrepareJob => (
            hook.prepare_job(move |job| {
                break_ir(&mut job.module);
                wrong.come(())
            }),
            Some("left a module that does not verify"),
        ),
        HookPoint::RewriteIr => (
            hook.rewrite_ir(move |_, module| {
                break_ir(module);
                wrong.come(())
            }),
            Some("left a module that does not verify"),
        ),
        HookPoint::FaultFunction => (
            hook.fault_function(move |_, module| wrong.come(module.functions.keys().next())),
            Some("failed: `fill` is called before a fault with"),
        ),
        HookPoint::LowerAbi => (
            hook.lower_abi(move |_, module| {
                break_ir(module);
                wrong.come(())
            }),
            Some("left a module that does not verify"),
        ),
        HookPoint::LowerInst => (
            hook.lower_inst(move |cx, _, _| {
                let half = cx.context().f16_type().const_zero();
                wrong.come(Some(half.into()))
            }),
            Some(
                "failed: an operation of function `fill` was lowered to a value of LLVM's type `half`",
            ),
        ),
        HookPoint::LowerIntrinsic => (
            hook.lower_intrinsic(move |cx, _, _| {
                let half = cx.context().f16_type().const_zero();
                wrong.come(Some(half.into()))
            }),
            Some(
                "failed: an operation of function `fill` was lowered to a value of LLVM's type `half`",
            ),
        ),
        HookPoint::FinishModule => (
            hook.finish_module(move |_, module| {
                break_llvm(module);
                wrong.come(())
            }),
            Some("left an LLVM module that cannot become code: the variable `nowhere`"),
        ),
        HookPoint::PassPipeline => (
            hook.pass_pipeline(move |_, passes| {
                "nonsense".clone_into(passes);
                wrong.come(())
            }),
            Some("changed the passes to some that LLVM does not run: `nonsense`"),
        ),
        HookPoint::FinishOptimizedModule => (
            hook.finish_optimized_module(move |_, module| {
                break_llvm(module);
                wrong.come(())
            }),
            Some("left an LLVM module that cannot become code: the variable `nowhere`"),
        ),
        HookPoint::RewritePtx => (
            hook.rewrite_ptx(move |_, ptx| {
                ptx.clear();
                wrong.come(())
            }),
            Some("left PTX that has no kernel `fill_"),
        ),
        HookPoint::Assemble => (
            hook.assemble(move |_, _| wrong.come(Some(b"machine".to_vec()))),
            Some("gave bytes that are no `cubin`"),
        ),
        HookPoint::HiddenArguments => {
            let hook = hook.rewrite_ir(|_, module| {
                let hidden = module.add_hidden("wrong", "n", Type::U32);
                module.rewrite_each(|at| {
                    at.ins().hidden(hidden);
                });
                Ok(())
            });
            let hook = hook.hidden_arguments(move |_, _| wrong.come(()));
            (hook, Some("did not give a hidden argument: `n`"))
        }
        HookPoint::AfterLoad => (hook.after_load(move |_, _| wrong.come(())), None),
        HookPoint::BeforeLaunch => (hook.before_launch(move |_| wrong.come(())), None),
        HookPoint::AfterLaunch => {
            let after = move |_: &LaunchEvent<'_>, _: &Result<()>| {
                // It has nothing to give, an error neither.
                let _ = wrong.come(());
            };
            (hook.after_launch(after), None)
        }
        point => panic!("this test knows all points, and not `{point}`"),
    }
}

/// Where kernels are compiled, and run if there is a device.
pub(super) struct Place {
    pub(super) name: &'static str,
    device: Device,
    target: Option<Target>,
    pub(super) has: &'static [Needs],
}

pub(super) fn places() -> Vec<Place> {
    let interpret = CpuOptions::default().interpret(true);
    let place = |name, device, target, has| Place {
        name,
        device,
        target,
        has,
    };
    let ptx = Target::Ptx(PtxTarget::for_sm(90));
    let llvm = &[Needs::Nothing, Needs::Llvm];
    vec![
        place("CPU", Device::cpu(), None, llvm),
        place(
            "interpreter",
            Device::cpu_with(interpret),
            None,
            &[Needs::Nothing],
        ),
        place(
            "on this host",
            OnHostOptions::default().device(),
            None,
            llvm,
        ),
        place("AMD", Device::cpu(), Some(amdgpu_target("gfx90a")), llvm),
        place(
            "PTX",
            Device::cpu(),
            Some(ptx),
            &[Needs::Nothing, Needs::Llvm, Needs::Ptx],
        ),
    ]
}

/// The error of a kernel with a hook, and whether the device is as it was.
pub(super) fn error_of(place: &Place, hook: Hook, point: HookPoint) -> Option<String> {
    let options = JitOptions::default().target(place.target.clone());
    let jit = Jit::with(place.device.clone(), hook.into(), options);
    let mut x = jit.zeros::<u32>(4).expect("memory");
    let value = match point {
        HookPoint::ConvertArgument => kiln::core::args::host(&7u32),
        _ => kiln::core::args::IntoArg::into_arg(7u32),
    };
    let result = match place.target {
        Some(_) => jit.inspect(&fill, args!(&mut x, value)).map(drop),
        None => jit.launch(&fill, 1, 32, args!(&mut x, value)),
    };
    assert!(x.to_vec().is_ok(), "{point}: the device is as it was");
    result.err().map(|error| error.to_string())
}

#[test]
fn a_hook_that_goes_wrong_is_named_with_its_point_on_each_target() {
    let at_launch = [
        HookPoint::AfterLoad,
        HookPoint::BeforeLaunch,
        HookPoint::HiddenArguments,
        HookPoint::AfterLaunch,
    ];
    for place in places() {
        for (&point, wrong) in HookPoint::ALL
            .iter()
            .flat_map(|point| Wrong::ALL.map(|wrong| (point, wrong)))
        {
            let how = format!("{}, {point}, {wrong:?}", place.name);
            let (hook, broken) = wrong_at(point, wrong);
            let error = error_of(&place, hook, point);
            if !place.has.contains(&point.needs()) {
                let error = error.expect("it can do nothing there");
                let want = format!("hook `wrong` has `{point}`, and compiling for ");
                assert!(error.starts_with(&want), "{how}: {error}");
                continue;
            }
            let want = match wrong {
                _ if place.target.is_some() && at_launch.contains(&point) => None,
                Wrong::Fails if point == HookPoint::AfterLaunch => None,
                Wrong::Fails => Some("failed: no more"),
                Wrong::Panics => Some("panicked: no way"),
                // An argument that nobody converts is an error, and not the hook's.
                Wrong::Breaks if point == HookPoint::ConvertArgument => continue,
                Wrong::Breaks => broken,
            };
            let Some(want) = want else {
                assert_eq!(error, None, "{how}");
                continue;
            };
            let error = error.unwrap_or_else(|| panic!("{how}: the hook is wrong"));
            let want = format!("hook `wrong` {want}");
            assert!(error.starts_with(&want), "{how}: {error}");
            let want = format!("kernel: fill, extension point: {point}");
            assert!(error.ends_with(&want), "{how}: {error}");
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

#[kernel]
fn idle(_x: &[u32]) {}

#[test]
fn the_function_for_faults_is_no_name_for_a_function_of_a_hook() -> Result<()> {
    let takes = Hook::new("takes").finish_module(|_, module| {
        let context = module.get_context();
        let ty = context.void_type().fn_type(&[], false);
        let taken = module.add_function("kiln_fault", ty, None);
        let mut functions = module.get_functions();
        let kernel = functions.find(|function| function.count_basic_blocks() > 0);
        let block = kernel.and_then(|kernel| kernel.get_first_basic_block());
        let first = block.and_then(|block| block.get_first_instruction());
        let builder = context.create_builder();
        builder.position_before(&first.expect("the kernel returns"));
        let call = builder.build_call(taken, &[], "");
        call.expect("the builder is in a block");
        Ok(())
    });
    let target = Some(Target::Ptx(PtxTarget::for_sm(90)));
    let options = JitOptions::default().target(target);
    let jit = Jit::with(Device::cpu(), HookSet::from(takes), options);
    let x = jit.zeros::<u32>(4)?;
    let error = jit.inspect(&idle, args!(&x));
    let error = error.expect_err("it is Kiln's own").to_string();
    expect![[r#"
        LLVM back end, emit: a hook declares `kiln_fault` as `void ()`: that is the name of Kiln's own function; give the hook's another one"#]]
    .assert_eq(&error);
    Ok(())
}
