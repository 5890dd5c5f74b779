//! Values that hooks give at launches.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use expect_test::expect;
use kiln::Result;
use kiln::core::hook::{Hook, HookSet};
use kiln::core::ir::{AddressSpace, AtomicOp, BinaryOp, InstData, Module, Type};
use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;

use super::{Scale, machines};

#[kernel]
fn put(x: &mut [u32], value: u32) {
    let i = global_id().x;
    if i < x.len() {
        x[i] = through(value);
    }
}

#[device_fn]
fn through(value: u32) -> u32 {
    value
}

fn put_on(jit: &Jit, value: u32) -> Result<Vec<u32>> {
    let mut x = jit.zeros::<u32>(40)?;
    put.launch(jit, (2, 32), &mut x, value)?;
    x.to_vec()
}

/// Changes what stores of `u32` write, to `op` of that and the hook's own value.
fn apply(module: &mut Module, hook: &str, op: BinaryOp) {
    let hidden = module.add_hidden(hook, "operand", Type::U32);
    module.rewrite_each(|at| {
        if let InstData::Store { value, .. } = *at.data()
            && at.type_of(value) == Type::U32
        {
            let operand = at.ins().hidden(hidden);
            let changed = at.ins().binary(op, value, operand);
            at.set_operand(1, changed);
        }
    });
}

fn adds(value: impl Fn() -> u32 + Send + Sync + 'static) -> Hook {
    Hook::new("adds")
        .rewrite_ir(|_, module| {
            apply(module, "adds", BinaryOp::Add);
            Ok(())
        })
        .hidden_arguments(move |_, hidden| hidden.set("operand", value()))
}

fn multiplies(value: u32) -> Hook {
    Hook::new("multiplies")
        .rewrite_ir(|_, module| {
            apply(module, "multiplies", BinaryOp::Mul);
            Ok(())
        })
        .hidden_arguments(move |_, hidden| hidden.set("operand", value))
}

#[test]
fn two_hooks_give_values_in_either_order() -> Result<()> {
    let standard = kiln::hooks::standard;
    let first = standard().with(adds(|| 3)).with(multiplies(5));
    let second = standard().with(multiplies(5)).with(adds(|| 3));
    // What the first makes of a value is what the second finds.
    for (hooks, want) in [(first, (7 + 3) * 5), (second, 7 * 5 + 3)] {
        for (name, jit) in machines(&hooks) {
            assert_eq!(put_on(&jit, 7)?, [want; 40], "{name}");
        }
    }
    Ok(())
}

#[test]
fn each_launch_has_the_value_of_its_moment() -> Result<()> {
    let next = Arc::new(AtomicU32::new(0));
    let given = next.clone();
    let hooks = HookSet::from(adds(move || given.fetch_add(1, Ordering::Relaxed)));
    for (name, jit) in machines(&hooks) {
        next.store(1, Ordering::Relaxed);
        assert_eq!(put_on(&jit, 10)?, [11; 40], "{name}");
        assert_eq!(put_on(&jit, 10)?, [12; 40], "{name}");
        let mut x = jit.zeros::<u32>(40)?;
        let prepared = jit.compile(&put, args!(&mut x, 10u32))?;
        for want in [13, 14] {
            prepared.launch(2, 32, args!(&mut x, 10u32))?;
            assert_eq!(x.to_vec()?, [want; 40], "{name}");
        }
        assert_eq!(
            jit.cache_stats().compiles.min(1),
            jit.cache_stats().compiles,
            "{name}"
        );
    }
    Ok(())
}

thread_local! {
    static OF_THE_THREAD: Cell<u32> = const { Cell::new(0) };
}

#[test]
fn threads_of_the_host_have_values_of_their_own() {
    for (name, jit) in machines(&adds(|| OF_THE_THREAD.get()).into()) {
        std::thread::scope(|scope| {
            for thread in 1..=4 {
                let jit = &jit;
                scope.spawn(move || {
                    OF_THE_THREAD.set(thread);
                    for value in 0..20 {
                        let found = put_on(jit, value).expect("it runs");
                        assert_eq!(found, [value + thread; 40], "{name}");
                    }
                });
            }
        });
    }
}

/// A hook that puts a struct of its own into the place of what is stored.
fn scales() -> Hook {
    Hook::new("scales")
        .rewrite_ir(|_, module| {
            let scale = kiln::core::specialize::HostType::of::<Scale>();
            let scale = scale.resolve(&mut module.types);
            let scale = module.add_hidden("scales", "scale", scale);
            module.rewrite_each(|at| {
                if let InstData::Store { value, .. } = *at.data() {
                    let scale = at.ins().hidden(scale);
                    let factor = at.ins().extract(scale, 0);
                    let offset = at.ins().extract(scale, 1);
                    let number = at.ins().cast(value, Type::F32);
                    let scaled = at.ins().binary(BinaryOp::Mul, number, factor);
                    let sum = at.ins().binary(BinaryOp::Add, scaled, offset);
                    let sum = at.ins().cast(sum, Type::U32);
                    at.set_operand(1, sum);
                }
            });
            Ok(())
        })
        .hidden_arguments(|_, hidden| {
            let (factor, offset) = (2.0, 0.5);
            hidden.set("scale", Scale { factor, offset })
        })
}

#[test]
fn structs_are_passed_by_reference_and_by_value() -> Result<()> {
    let by_value = kiln::hooks::standard().with(scales());
    for hooks in [by_value, scales().into()] {
        for (name, jit) in machines(&hooks) {
            assert_eq!(put_on(&jit, 7)?, [14; 40], "{name}");
        }
    }
    Ok(())
}

#[test]
fn kernels_that_read_nothing_of_a_hook_do_not_ask_it() -> Result<()> {
    let hook = Hook::new("quiet")
        .rewrite_ir(|_, module| {
            module.add_hidden("quiet", "unread", Type::U32);
            Ok(())
        })
        .hidden_arguments(|_, _| Err("nobody asks".into()));
    for (name, jit) in machines(&hook.into()) {
        assert_eq!(put_on(&jit, 7)?, [7; 40], "{name}");
    }
    Ok(())
}

#[test]
fn a_kernel_for_gpus_takes_them_behind_its_parameters() -> Result<()> {
    let options = JitOptions::default().target(Target::Ptx(PtxTarget::for_sm(90)));
    let jit = Jit::with(Device::cpu(), adds(|| 1).into(), options);
    let mut x = jit.zeros::<u32>(4)?;
    let inspection = jit.inspect(&put, args!(&mut x, 7u32))?;
    let params = inspection.ptx()?.lines();
    let params = params.filter(|line| line.contains(".param .") && !line.contains("ld."));
    let kinds: Vec<&str> = params
        .filter_map(|line| line.split_whitespace().nth(1))
        .collect();
    assert_eq!(
        kinds.len(),
        5,
        "a slice, a number, the hook's, the channel: {kinds:?}"
    );
    Ok(())
}

#[kernel]
fn copy(from: &[u32], to: &mut [u32]) {
    let i = global_id().x;
    if i < to.len() {
        to[i] = from[i];
    }
}

/// How many loads of the kernel take the path of memory that nobody writes.
fn unchanging_loads(hooks: HookSet) -> Result<usize> {
    let options = JitOptions::default().target(Target::Ptx(PtxTarget::for_sm(90)));
    let jit = Jit::with(Device::cpu(), hooks, options);
    let (from, mut to) = (jit.zeros::<u32>(4)?, jit.zeros::<u32>(4)?);
    let inspection = jit.inspect(&copy, args!(&from, &mut to))?;
    Ok(inspection.ptx()?.matches("ld.global.nc").count())
}

#[test]
fn a_buffer_of_a_hook_may_be_an_argument_too() -> Result<()> {
    let standard = kiln::hooks::standard;
    let counts = Hook::new("counts")
        .rewrite_ir(|_, module| {
            let ty = module.types.pointer(Type::U32, AddressSpace::Global, true);
            let count = module.add_hidden("counts", "count", ty);
            module.rewrite_each(|at| {
                if let InstData::Store { .. } = at.data() {
                    let count = at.ins().hidden(count);
                    let one = at.ins().constant(1u32);
                    at.ins().atomic_rmw(AtomicOp::Add, count, one);
                }
            });
            Ok(())
        })
        .hidden_arguments(|_, _| Ok(()));
    assert_eq!(unchanging_loads(standard())?, 1);
    assert_eq!(unchanging_loads(standard().with(multiplies(3)))?, 1);
    assert_eq!(unchanging_loads(standard().with(counts))?, 0);
    Ok(())
}

/// The errors of launches with hooks.
fn errors_of(hooks: impl IntoIterator<Item = HookSet>) -> String {
    let error_of = |hooks| {
        let jit = Jit::with(Device::cpu(), hooks, JitOptions::default());
        put_on(&jit, 7).expect_err("it is wrong").to_string()
    };
    let errors: Vec<String> = hooks.into_iter().map(error_of).collect();
    errors.join("\n\n")
}

/// A hook that declares a slice of numbers and has kernels that store read it.
fn declares() -> Hook {
    Hook::new("wrong").rewrite_ir(|_, module| {
        let slice = module.types.slice(Type::U64, AddressSpace::Global, true);
        let counts = module.add_hidden("wrong", "counts", slice);
        module.rewrite_each(|at| {
            if matches!(at.data(), InstData::Store { .. }) {
                at.ins().hidden(counts);
            }
        });
        Ok(())
    })
}

#[test]
fn what_is_not_given_as_declared_is_an_error() -> Result<()> {
    let device = Device::cpu();
    let own = Arc::new(Buffer::from_slice(&device, &[0u64])?);
    let floats = Arc::new(Buffer::from_slice(&device, &[0.0f64])?);
    let hooks = [
        declares().hidden_arguments(|_, _| Ok(())),
        declares().hidden_arguments(|_, _| Err("the budget is spent".into())),
        declares().hidden_arguments(|_, _| panic!("no way")),
        declares().hidden_arguments(|_, hidden| hidden.set("count", 7u64)),
        declares().hidden_arguments(|_, hidden| hidden.set("counts", 7u64)),
        declares().hidden_arguments(move |_, hidden| hidden.set("counts", &floats)),
        declares().hidden_arguments(move |_, hidden| hidden.set("counts", &own)),
    ];
    let errors = errors_of(hooks.map(HookSet::from));
    // Devices are numbered as they are made.
    let mut parts = errors.split("CPU device ");
    let first = parts.next().unwrap_or_default().to_owned();
    let errors = parts.fold(first, |text, part| {
        text + "CPU device #" + part.trim_start_matches(|c: char| c.is_ascii_digit())
    });
    expect![[r#"
        hook `wrong` did not give a hidden argument: `counts`, declared as `slice<global, mut u64>`, was given no value; call `HiddenArguments::set` at every launch
          kernel: put, extension point: hidden_arguments

        hook `wrong` failed: the budget is spent
          kernel: put, extension point: hidden_arguments

        hook `wrong` panicked: no way
          this is a bug in the hook
          kernel: put, extension point: hidden_arguments

        hook `wrong` failed: it has declared no `count` in this kernel; declare it by `Module::add_hidden` where it rewrites the IR
          kernel: put, extension point: hidden_arguments

        hook `wrong` failed: `counts` was declared as `slice<global, mut u64>`, and a `u64` was given; give what was declared: a value of that type, or an `Arc<Buffer<T>>` for a slice or pointer
          kernel: put, extension point: hidden_arguments

        hook `wrong` failed: `counts` was declared as `slice<global, mut u64>`, and a `&mut [f64]` was given; give what was declared: a value of that type, or an `Arc<Buffer<T>>` for a slice or pointer
          kernel: put, extension point: hidden_arguments

        hook `wrong` failed: `counts` is a buffer of CPU device #, and the launch is on CPU device #; make it there
          kernel: put, extension point: hidden_arguments"#]].assert_eq(&errors);
    Ok(())
}

#[test]
fn what_no_launch_could_give_is_an_error() {
    let for_another = declares().hidden_arguments(|_, hidden| hidden.set("counts", 7u64));
    let changes = Hook::new("changes").rewrite_ir(|_, module| {
        for (_, hidden) in module.hidden.iter_mut() {
            hidden.name = "mine".to_owned();
        }
        Ok(())
    });
    let of_another = Hook::new("thief").rewrite_ir(|_, module| {
        module.add_hidden("wrong", "counts", Type::U32);
        Ok(())
    });
    let too_late = Hook::new("late")
        .lower_abi(|_, module| {
            module.add_hidden("late", "counts", Type::U32);
            Ok(())
        })
        .hidden_arguments(|_, hidden| hidden.set("counts", 7u32));
    let errors = errors_of([
        declares().into(),
        HookSet::from(for_another).with(changes),
        of_another.into(),
        too_late.into(),
    ]);
    expect![[r#"
        hook `wrong` cannot have that hidden argument: nothing gives `counts`; give the hook a function by `Hook::hidden_arguments`
          kernel: put, extension point: rewrite_ir

        hook `changes` cannot have that hidden argument: `counts` of hook `wrong` is not what it was; declare others, by `Module::add_hidden`
          kernel: put, extension point: rewrite_ir

        hook `thief` cannot have that hidden argument: `counts` is declared for hook `wrong` to give; declare it by the hook's own name, `thief`
          kernel: put, extension point: rewrite_ir

        hook `late` cannot have that hidden argument: `counts` is declared in a legal module, where nothing can read it; declare it in `rewrite_ir`
          kernel: put, extension point: lower_abi"#]].assert_eq(&errors);
}

#[test]
fn a_launch_from_where_values_are_given_is_an_error_and_no_recursion() {
    let this = Arc::new(OnceLock::<Jit>::new());
    let jit = this.clone();
    let hook = declares().hidden_arguments(move |_, _| {
        put_on(jit.get().expect("it is there"), 1)?;
        Ok(())
    });
    let jit = Jit::with(Device::cpu(), hook.into(), JitOptions::default());
    let jit = this.get_or_init(|| jit);
    let error = put_on(jit, 7).expect_err("it asks for itself");
    expect![[r#"
        hook `wrong` failed: hook `wrong` did not give a hidden argument: `counts` is wanted by a launch from `hidden_arguments`; launch before, or kernels without hidden arguments
          kernel: put, extension point: hidden_arguments
          kernel: put, extension point: hidden_arguments"#]].assert_eq(&error.to_string());
}

#[test]
fn a_kernel_of_text_needs_the_hook_that_it_names() -> Result<()> {
    let text = "module text specialized
        hidden hidden0 operand: u32 hook adds
        kernel @text(%0 x: slice<generic, mut u32>) {
          %1: u32 = intrinsic thread_idx.x()
          %2: ptr<generic, mut u32> = slice_index %0, %1
          %3: u32 = hidden hidden0
          store %2, %3
        }";
    // SAFETY: its access is checked.
    let kernel = unsafe { Kernel::parse("text.kir", text, &kiln::stdlib::find) }?;
    let gives = Hook::new("adds").hidden_arguments(|_, hidden| hidden.set("operand", 9u32));
    let launch = |hooks| {
        let jit = Jit::with(Device::cpu(), hooks, JitOptions::default());
        let mut x = jit.zeros::<u32>(4)?;
        jit.launch(&kernel, 1, 4, args!(&mut x))?;
        x.to_vec()
    };
    assert_eq!(launch(gives.into())?, [9; 4]);
    let error = launch(HookSet::new()).expect_err("there is no such hook");
    expect![[r#"
        hook `adds` did not give a hidden argument: `operand` is for it to give, and this `Jit` has no such hook; add it to the hooks of the `Jit`
          kernel: text, extension point: hidden_arguments"#]].assert_eq(&error.to_string());
    Ok(())
}
