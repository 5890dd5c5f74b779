//! Every extension point, and what Kiln's own hooks are worth.

mod asked;
mod attributes;
mod bitcode;
mod contract;
mod entry;
#[cfg(target_os = "linux")]
mod failed;
mod hidden;
mod launches;
mod looking;
mod lowering;
mod overlays;
mod problems;
mod rows;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use kiln::Result;
use kiln::core::args::{self, IntoArg};
use kiln::core::codegen::Isas;
use kiln::core::compile::{Compiler, NoObserver};
use kiln::core::hook::{Hook, HookSet};
use kiln::core::inkwell;
use kiln::core::inkwell::values::BasicValueEnum::FloatValue;
use kiln::core::ir::{self, BinaryOp, Inline, InstData, Module, Passing, Phase, TypeData};
use kiln::core::job::{CompileJob, CompileOptions};
use kiln::core::runtime::{CpuOptions, OnHostOptions};
use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;
use suite::address_kernels;

kiln::core::kernel_type! {
    /// Passed by value.
    #[repr(C)]
    pub struct Scale {
        factor: f32,
        offset: f32,
    }
}

fn for_gpu(hooks: HookSet) -> Jit {
    let target = Some(Target::Ptx(PtxTarget::for_sm(90)));
    Jit::with(Device::cpu(), hooks, JitOptions::default().target(target))
}

/// A `Jit` for each machine of this process, by its name.
fn machines(hooks: &HookSet) -> Vec<(&'static str, Jit)> {
    let interpreted = JitOptions::default().target(Target::Interpreter);
    let on_host = OnHostOptions::default().device();
    let jit = |device, options| Jit::with(device, hooks.clone(), options);
    vec![
        ("compiled", jit(Device::cpu(), JitOptions::default())),
        ("interpreted", jit(Device::cpu(), interpreted)),
        ("gpu on host", jit(on_host, JitOptions::default())),
    ]
}

fn scale() -> Result<Kernel> {
    Kernel::build("scale", |k| {
        let x = k.slice_mut("x", Type::F32);
        let s = k.param("s", k.ty::<Scale>());
        let i = k.global_id().x();
        k.if_(i.lt(x.len()), || {
            x.at(i).set(x.at(i) * s.field("factor") + s.field("offset"))
        });
    })
}

fn scale_ptx(hooks: HookSet) -> Result<(String, String)> {
    let jit = for_gpu(hooks);
    let mut x = jit.zeros::<f32>(4)?;
    let inspection = jit.inspect(
        &scale()?,
        args!(
            &mut x,
            Scale {
                factor: 2.0,
                offset: 1.0
            }
        ),
    )?;
    Ok((inspection.ir().to_owned(), inspection.ptx()?.to_owned()))
}

#[test]
fn by_value_reads_parameters_without_a_copy() -> Result<()> {
    let (ir, ptx) = scale_ptx(kiln::hooks::standard())?;
    assert!(ir.contains("ptr<param, @Scale> by_value"), "{ir}");
    assert!(
        ptx.contains(".align 4 .b8 scale_") && ptx.contains("_param_2[8]"),
        "{ptx}"
    );
    assert!(!ptx.contains(".local"), "{ptx}");
    let (ir, ptx) = scale_ptx(kiln::hooks::standard().without("by-value"))?;
    assert!(ir.contains("ptr<generic, @Scale> by_reference"), "{ir}");
    assert!(!ptx.contains("_param_2[8]"), "{ptx}");
    Ok(())
}

#[test]
fn address_spaces_are_inferred() -> Result<()> {
    let (with, _) = scale_ptx(kiln::hooks::standard())?;
    assert!(with.contains("slice<global, mut f32>"), "{with}");
    let (without, _) = scale_ptx(kiln::hooks::standard().without("address-spaces"))?;
    assert!(without.contains("slice<generic, mut f32>"), "{without}");
    Ok(())
}

/// A pointer that a loop moves along shared memory ("gpucc", figure 4), through a variable and a
/// device function.
fn walk() -> Result<Kernel> {
    let last = DeviceFn::build("last", |f| {
        let p = f.pointer_mut("p", Type::F32);
        // SAFETY: called with pointers into the array.
        f.return_value(unsafe { p.deref() });
    })?;
    Kernel::build("walk", |k| {
        let out = k.slice_mut("out", Type::F32);
        let tile = k.shared_array("tile", Type::F32, 64);
        let i = k.thread_idx().x();
        tile.at(i).set(i.cast(Type::F32));
        k.barrier();
        let p = k.var("p", tile.as_ptr().to_generic());
        let sum = k.var("sum", 0.0f32);
        k.for_range(0u32, 64, |_| {
            sum.set(sum + k.call(&last, &[p.get()]));
            p.set(p.get().offset(1));
        });
        out.at(i).set(sum);
    })
}

#[test]
fn pointers_that_loops_move_are_tightened() -> Result<()> {
    let ptx = |hooks: HookSet| -> Result<(String, String)> {
        let jit = for_gpu(hooks);
        let mut out = jit.zeros::<f32>(64)?;
        let inspection = jit.inspect(&walk()?, args!(&mut out))?;
        Ok((inspection.ir().to_owned(), inspection.ptx()?.to_owned()))
    };
    let (ir, with) = ptx(kiln::hooks::standard())?;
    assert!(ir.contains(" p: ptr<shared, mut f32>"), "{ir}");
    assert!(
        with.contains("ld.shared") && !with.contains("\tld.b32"),
        "{with}"
    );
    let (ir, _) = ptx(kiln::hooks::standard().without("address-spaces"))?;
    assert!(ir.contains(" p: ptr<generic, mut f32>"), "{ir}");
    // The meaning is the same.
    for hooks in [kiln::hooks::standard(), HookSet::new()] {
        let jit = Jit::with(Device::cpu(), hooks, JitOptions::default());
        let mut out = jit.zeros::<f32>(64)?;
        jit.launch(&walk()?, 1, 64, args!(&mut out))?;
        assert_eq!(out.to_vec()?, [(0..64).sum::<i32>() as f32; 64]);
    }
    Ok(())
}

/// A function that LLVM does not inline, which goes a long way through the memory that it is given, called with
/// shared and with global memory.
fn in_both_memories() -> Result<Kernel> {
    let long = DeviceFn::build("long", |f| {
        f.inline(Inline::Never);
        let p = f.pointer_mut("p", Type::F32);
        for step in 0..120u32 {
            // SAFETY: called with pointers to so many numbers.
            let place = unsafe { p.offset(step % 32).deref() };
            place.set(place.get() * 0.5f32 + step as f32);
        }
    })?;
    Kernel::build("both", |k| {
        let out = k.slice_mut("out", Type::F32);
        let tile = k.shared_array("tile", Type::F32, 32);
        let i = k.thread_idx().x();
        tile.at(i).set(i.cast(Type::F32));
        k.call(&long, &[tile.as_ptr().to_generic()]);
        k.call(&long, &[out.as_ptr()]);
        out.at(i).set(out.at(i).get() + tile.at(i).get());
    })
}

/// How many accesses of PTX are to memory that it does not know.
fn generic_accesses(ptx: &str) -> usize {
    let words = ptx.split_whitespace();
    let generic = words.filter(|word| {
        let mut parts = word.split('.');
        let access = matches!(parts.next(), Some("ld" | "st"));
        access && !parts.any(|p| matches!(p, "global" | "shared" | "local" | "param" | "const"))
    });
    generic.count()
}

#[test]
fn a_function_is_compiled_for_each_memory_that_it_is_called_with() -> Result<()> {
    let ptx = |hooks: HookSet| -> Result<String> {
        let jit = for_gpu(hooks);
        let mut out = jit.zeros::<f32>(32)?;
        let inspection = jit.inspect(&in_both_memories()?, args!(&mut out))?;
        Ok(inspection.ptx()?.to_owned())
    };
    let with = ptx(kiln::hooks::standard())?;
    assert_eq!(generic_accesses(&with), 0, "{with}");
    let without = ptx(kiln::hooks::standard().without("address-spaces"))?;
    // LLVM keeps a number in a register between accesses to it.
    assert!(generic_accesses(&without) >= 32, "{without}");
    let mut results = Vec::new();
    for hooks in [kiln::hooks::standard(), HookSet::new()] {
        let jit = Jit::with(Device::cpu(), hooks, JitOptions::default());
        let mut out = jit.zeros::<f32>(32)?;
        jit.launch(&in_both_memories()?, 1, 1, args!(&mut out))?;
        results.push(out.to_vec()?);
    }
    assert_eq!(results[0], results[1]);
    Ok(())
}

/// The standard hooks, each of them left out, and none.
fn sets_of_hooks() -> Vec<HookSet> {
    let all = kiln::hooks::standard();
    let names: Vec<_> = all.iter().map(|h| h.name()).collect();
    let mut sets: Vec<HookSet> = names
        .into_iter()
        .map(|name| all.clone().without(name))
        .collect();
    sets.extend([all, HookSet::new()]);
    sets
}

#[test]
fn what_addresses_do_depends_on_no_hook() -> Result<()> {
    let interpreter = CpuOptions::default().interpret(true);
    for hooks in sets_of_hooks() {
        for device in [Device::cpu(), Device::cpu_with(interpreter.clone())] {
            let jit = Jit::with(device, hooks.clone(), JitOptions::default());
            for example in address_kernels::examples()? {
                address_kernels::check(&jit, &example)?;
            }
        }
        let jit = for_gpu(hooks);
        let (a, mut out) = (jit.zeros::<u32>(64)?, jit.zeros::<u32>(64)?);
        for example in address_kernels::examples()? {
            jit.inspect(&example.kernel, args!(&a, &a, &mut out))?
                .ptx()?;
        }
    }
    Ok(())
}

/// The number that a generic address is, is the generic address, and that of a shared one its offset.
#[test]
fn addresses_as_numbers_stay_what_they_are() -> Result<()> {
    let jit = for_gpu(kiln::hooks::standard());
    let (a, mut out) = (jit.zeros::<u32>(64)?, jit.zeros::<u32>(64)?);
    let mut compiled = |name: &str| -> Result<(String, String)> {
        let mut examples = address_kernels::examples()?.into_iter();
        let example = examples.find(|e| e.name == name).expect("there is one");
        let inspection = jit.inspect(&example.kernel, args!(&a, &a, &mut out))?;
        Ok((inspection.ir().to_owned(), inspection.ptx()?.to_owned()))
    };
    let (ir, ptx) = compiled("shared_address_as_a_number")?;
    assert!(ir.contains(": ptr<generic, mut u32> = space_cast "), "{ir}");
    assert!(ptx.contains("cvta.shared.u64"), "{ptx}");
    let (ir, _) = compiled("offset_in_shared_memory")?;
    assert!(!ir.contains("space_cast"), "{ir}");
    // A null pointer is none into shared memory, where something lies at 0.
    let (ir, _) = compiled("null_as_a_number")?;
    assert!(ir.contains(": ptr<generic, mut u32> = get "), "{ir}");
    Ok(())
}

/// Casts between two memories are no IR that the builder makes, but IR that was read can have one where it
/// is not reached.
#[test]
fn an_address_said_to_be_elsewhere_is_cast_by_way_of_generic() {
    let text = "\
module m specialized
kernel @m(%0 flag: bool, %1 out: slice<generic, mut u32>) {
  %2: ptr<generic, mut u32> = slice_ptr %1
  if %0 {
    %3: ptr<shared, mut u32> = space_cast %2
    %4: u32 = const 1
    store %3, %4
  }
}
";
    let module = ir::parse(text, &|_| None).expect("it can be read");
    let compiler = Compiler {
        hooks: &HookSet::new().with(kiln::hooks::address_spaces()),
        isas: &Isas::default(),
        observer: &NoObserver,
    };
    let options = CompileOptions::default();
    let legal = compiler.legalize(CompileJob::new(module, Target::Interpreter, options));
    let legal = legal.unwrap_or_else(|errors| panic!("{errors}")).legal;
    assert!(legal.to_string().contains("slice<global, mut u32>"));
}

kiln::core::kernel_type! {
    /// More than parameters of older PTX versions can have.
    pub struct Large {
        values: [f32; 1500],
    }
}

#[test]
fn what_the_parameters_have_no_room_for_is_passed_by_reference() -> Result<()> {
    let kernel = Kernel::build("large", |k| {
        let out = k.slice_mut("out", Type::F32);
        let (large, small) = (
            k.param("large", k.ty::<Large>()),
            k.param("small", k.ty::<Scale>()),
        );
        let all = large.field("values");
        out.at(0).set(all.element(7) * small.field("factor"));
    })?;
    let args = (
        Large {
            values: std::array::from_fn(|i| i as f32),
        },
        Scale {
            factor: 2.0,
            offset: 0.0,
        },
    );
    for (sm, large) in [(75, "by_reference"), (100, "by_value")] {
        let options = JitOptions::default().target(Target::Ptx(PtxTarget::for_sm(sm)));
        let jit = Jit::with(Device::cpu(), kiln::hooks::standard(), options);
        let mut out = jit.zeros::<f32>(1)?;
        let inspection = jit.inspect(&kernel, args!(&mut out, args.0, args.1))?;
        let ir = inspection.ir();
        let passed = |name: &str| {
            ir.lines().find(|l| l.contains("kernel @")).and_then(|l| {
                l.split(", %")
                    .find(|p| p.contains(&format!(" {name}: ")))
                    .map(str::to_owned)
            })
        };
        assert!(passed("large").is_some_and(|p| p.contains(large)), "{ir}");
        assert!(
            passed("small").is_some_and(|p| p.contains("by_value")),
            "{ir}"
        );
    }
    let jit = Jit::on(Device::cpu());
    let mut out = jit.zeros::<f32>(1)?;
    jit.launch(&kernel, 1, 1, args!(&mut out, args.0, args.1))?;
    assert_eq!(out.to_vec()?, [14.0]);
    Ok(())
}

/// Does one thing to the IR, at one of the points that see it, and does not say so.
struct Meddler {
    at: At,
    meddle: fn(&mut Module),
    removes_checks: bool,
}

#[derive(Copy, Clone, PartialEq, Debug)]
enum At {
    PrepareJob,
    RewriteIr,
    LowerAbi,
}

impl Meddler {
    fn hook(self) -> Hook {
        let hook = Hook::new("meddler").key("is", "a meddler");
        let hook = match self.removes_checks {
            true => hook.may_remove_checks(),
            false => hook,
        };
        let meddle = move |module: &mut Module| {
            (self.meddle)(module);
            Ok(())
        };
        match self.at {
            At::PrepareJob => hook.prepare_job(move |job| meddle(&mut job.module)),
            At::RewriteIr => hook.rewrite_ir(move |_, module| meddle(module)),
            At::LowerAbi => hook.lower_abi(move |_, module| meddle(module)),
        }
    }
}

/// Adds 1 to each element, and something of an aggregate.
fn add_one() -> Result<Kernel> {
    Kernel::build("add_one", |k| {
        let x = k.slice_mut("x", Type::F32);
        let s = k.param("s", k.ty::<Scale>());
        let n = k.param("n", Type::U32);
        let i = k.global_id().x();
        k.if_(i.lt(n), || x.at(i).set(x.at(i) + s.field("offset")));
    })
}

/// What launching says with a hook between others.
fn with_meddler(meddler: Meddler) -> (Result<()>, Vec<f32>) {
    let hooks = HookSet::new()
        .with(kiln::hooks::address_spaces())
        .with(meddler.hook())
        .with(kiln::hooks::by_value());
    let jit = Jit::with(Device::cpu(), hooks, JitOptions::default());
    let mut x = jit
        .upload(&[1.0f32, 2.0, 3.0, 4.0])
        .expect("there is memory");
    let scale = Scale {
        factor: 0.0,
        offset: 1.0,
    };
    let launched = add_one().and_then(|k| jit.launch(&k, 1, 4, args!(&mut x, scale, 4u32)));
    (
        launched,
        x.to_vec().expect("nothing is wrong with the device"),
    )
}

/// Replaces each type of the kernel's values.
fn retype(module: &mut Module, change: impl Fn(&mut Module, Type) -> Option<Type>) {
    let kernel = module.kernel().expect("there is a kernel");
    for value in module.functions[kernel].values.keys().collect::<Vec<_>>() {
        let ty = module.functions[kernel].type_of(value);
        if let Some(ty) = change(module, ty) {
            module.functions[kernel].values[value].ty = ty;
        }
    }
}

fn doubles(module: &mut Module) {
    retype(module, |module, ty| match module.types.data(ty).clone() {
        TypeData::Scalar(ir::Scalar::F32) => Some(Type::F64),
        TypeData::Slice {
            element: Type::F32,
            space,
            mutable,
            ..
        } => Some(module.types.slice(Type::F64, space, mutable)),
        TypeData::Pointer {
            pointee: Type::F32,
            space,
            mutable,
        } => Some(module.types.pointer(Type::F64, space, mutable)),
        TypeData::Struct(id) => {
            let mut data = module.types.struct_data(id).clone();
            data.fields.iter_mut().for_each(|(_, ty)| *ty = Type::F64);
            Some(module.types.intern_struct(data))
        }
        _ => None,
    });
}

fn renamed_fields(module: &mut Module) {
    retype(module, |module, ty| match *module.types.data(ty) {
        TypeData::Struct(id) => {
            let mut data = module.types.struct_data(id).clone();
            data.fields.reverse();
            Some(module.types.intern_struct(data))
        }
        _ => None,
    });
}

fn signed(module: &mut Module) {
    let kernel = module.kernel().expect("there is a kernel");
    let n = module.functions[kernel].params[2].value;
    let function = &mut module.functions[kernel];
    let copy = function.new_inst(InstData::Cast { arg: n }, Type::U32, function.location);
    let copied = function.insts[copy].result.expect("a number");
    for (inst, node) in function.insts.iter_mut() {
        if inst != copy {
            node.data.map_operands(|v| if v == n { copied } else { v });
        }
    }
    let body = function.body;
    function.regions[body].insts.insert(0, copy);
    function.values[n].ty = Type::I64;
}

fn one_more(module: &mut Module) {
    let kernel = module.kernel().expect("there is a kernel");
    let function = &mut module.functions[kernel];
    let location = function.location;
    function.add_param("more", Type::U32, location);
}

fn one_less(module: &mut Module) {
    let kernel = module.kernel().expect("there is a kernel");
    let function = &mut module.functions[kernel];
    let n = function.params.pop().expect("there are three").value;
    let constant = InstData::Const(ir::Constant::Int(4));
    let inst = function.new_inst(constant, Type::U32, function.location);
    let four = function.insts[inst].result.expect("a number");
    for (_, node) in function.insts.iter_mut() {
        node.data.map_operands(|v| if v == n { four } else { v });
    }
    let body = function.body;
    function.regions[body].insts.insert(0, inst);
}

fn aligned(module: &mut Module) {
    let kernel = module.kernel().expect("there is a kernel");
    module.functions[kernel].params[0].facts.align = 64;
}

fn less_is_known(module: &mut Module) {
    let kernel = module.kernel().expect("there is a kernel");
    module.functions[kernel].params[0].facts.noalias = false;
}

fn next_phase(module: &mut Module) {
    module.phase = Phase::Legal;
}

fn phase_before(module: &mut Module) {
    module.phase = Phase::Specialized;
}

fn unchecked(module: &mut Module) {
    let kernel = module.kernel().expect("there is a kernel");
    for (_, node) in module.functions[kernel].insts.iter_mut() {
        if let InstData::SliceIndex { checked, .. } = &mut node.data {
            *checked = false;
        }
    }
}

/// The address of the aggregate as if the caller had passed it.
fn direct(module: &mut Module) {
    let kernel = module.kernel().expect("there is a kernel");
    module.functions[kernel].params[1].passing = Passing::Direct;
}

fn broken(module: &mut Module) {
    let kernel = module.kernel().expect("there is a kernel");
    module.functions[kernel].result = Type::F32;
}

#[test]
fn hooks_keep_what_arguments_mean() {
    use At::{LowerAbi, PrepareJob, RewriteIr};
    let cases: &[(&str, At, fn(&mut Module))] = &[
        ("doubles", PrepareJob, doubles),
        ("doubles", RewriteIr, doubles),
        ("renamed fields", RewriteIr, renamed_fields),
        ("signed", RewriteIr, signed),
        ("one more", RewriteIr, one_more),
        ("one more", LowerAbi, one_more),
        ("one less", PrepareJob, one_less),
        ("aligned", RewriteIr, aligned),
        ("next phase", RewriteIr, next_phase),
        ("phase before", LowerAbi, phase_before),
        ("unchecked", RewriteIr, unchecked),
        ("unchecked", LowerAbi, unchecked),
        ("direct", LowerAbi, direct),
        ("broken", RewriteIr, broken),
    ];
    let mut said = String::new();
    for &(what, at, meddle) in cases {
        let (launched, x) = with_meddler(Meddler {
            at,
            meddle,
            removes_checks: false,
        });
        let error = launched.expect_err(what).to_string();
        let lines: Vec<&str> = error.lines().take(2).collect();
        // Where this file is and what it is like is not what is tested.
        let line = lines
            .join("\n")
            .replace(&format!("{}:", file!()), "hooks.rs:");
        let text: String = line
            .split_inclusive("hooks.rs:")
            .map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ':'))
            .collect();
        said += &format!("{what}, {at:?}: {text}\n");
        assert_eq!(x, [1.0, 2.0, 3.0, 4.0], "{what}");
    }
    expect_test::expect![[r#"
        doubles, PrepareJob: hook `meddler` changed what the kernel's parameters are: parameter 1 (`x`) is a `slice<generic, mut f64>` now, and a `slice<generic, mut f32>` is passed
          a launch passes its arguments as they were bound, whatever a hook makes of the parameters; keep their number and types, and convert in the kernel's body
        doubles, RewriteIr: hook `meddler` changed what the kernel's parameters are: parameter 1 (`x`) is a `slice<generic, mut f64>` now, and a `slice<generic, mut f32>` is passed
          a launch passes its arguments as they were bound, whatever a hook makes of the parameters; keep their number and types, and convert in the kernel's body
        renamed fields, RewriteIr: hook `meddler` changed what the kernel's parameters are: parameter 2 (`s`) is a `@Scale {offset: f32, factor: f32}` now, and a `@Scale {factor: f32, offset: f32}` is passed
          a launch passes its arguments as they were bound, whatever a hook makes of the parameters; keep their number and types, and convert in the kernel's body
        signed, RewriteIr: hook `meddler` changed what the kernel's parameters are: parameter 3 (`n`) is a `i64` now, and a `u32` is passed
          a launch passes its arguments as they were bound, whatever a hook makes of the parameters; keep their number and types, and convert in the kernel's body
        one more, RewriteIr: hook `meddler` changed what the kernel's parameters are: it has 4 now, and 3 arguments are passed
          a launch passes its arguments as they were bound, whatever a hook makes of the parameters; keep their number and types, and convert in the kernel's body
        one more, LowerAbi: hook `meddler` changed what the kernel's parameters are: it has 4 now, and 3 arguments are passed
          a launch passes its arguments as they were bound, whatever a hook makes of the parameters; keep their number and types, and convert in the kernel's body
        one less, PrepareJob: hook `meddler` left a module that does not verify; this is a bug in the hook
        `add_one` breaks 1 rule of the IR
        aligned, RewriteIr: hook `meddler` changed what the kernel's parameters are: the fact `align` of parameter 1 (`x`) says more now than is known of the argument
          a launch passes its arguments as they were bound, whatever a hook makes of the parameters; keep their number and types, and convert in the kernel's body
        next phase, RewriteIr: hook `meddler` left a module that does not verify; this is a bug in the hook
        `add_one` breaks 1 rule of the IR
        phase before, LowerAbi: hook `meddler` changed the module's phase from `legal` to `specialized`; only the compiler does, so leave `Module::phase` as it is
          kernel: add_one, extension point: lower_abi
        unchecked, RewriteIr: hook `meddler` removed the bounds check of the access at hooks.rs:; a hook that has shown accesses to be in bounds says so by `Hook::may_remove_checks`
          kernel: add_one, extension point: rewrite_ir
        unchecked, LowerAbi: hook `meddler` removed the bounds check of the access at hooks.rs:; a hook that has shown accesses to be in bounds says so by `Hook::may_remove_checks`
          kernel: add_one, extension point: lower_abi
        direct, LowerAbi: hook `meddler` changed what the kernel's parameters are: parameter 2 (`s`) is a `ptr<generic, @Scale> {factor: f32, offset: f32}` now, and a `@Scale {factor: f32, offset: f32}` is passed
          a launch passes its arguments as they were bound, whatever a hook makes of the parameters; keep their number and types, and convert in the kernel's body
        broken, RewriteIr: hook `meddler` left a module that does not verify; this is a bug in the hook
        `add_one` breaks 2 rules of the IR
    "#]].assert_eq(&said);
}

#[test]
fn what_hooks_may_change_works() -> Result<()> {
    for (meddle, removes_checks) in [(less_is_known as fn(&mut Module), false), (unchecked, true)] {
        for at in [At::PrepareJob, At::RewriteIr] {
            let (launched, x) = with_meddler(Meddler {
                at,
                meddle,
                removes_checks,
            });
            launched?;
            assert_eq!(x, [2.0, 3.0, 4.0, 5.0]);
        }
    }
    Ok(())
}

/// Needs NVIDIA's tools, which `cargo xtask test` brings; without them the error says so.
#[test]
fn machine_code_can_be_read() -> Result<()> {
    let jit = for_gpu(kiln::hooks::standard());
    let mut x = jit.zeros::<f32>(4)?;
    let s = Scale {
        factor: 2.0,
        offset: 1.0,
    };
    match jit.inspect(&scale()?, args!(&mut x, s))?.sass() {
        Ok(sass) => assert!(sass.contains("FFMA") && sass.contains("STG"), "{sass}"),
        Err(error) => {
            assert!(std::env::var_os("KILN_PTXAS").is_none(), "{error}");
            assert!(error.to_string().contains("cargo xtask setup"), "{error}");
        }
    }
    Ok(())
}

#[test]
fn without_hooks_everything_works_too() -> Result<()> {
    let jit = Jit::with(Device::cpu(), HookSet::new(), JitOptions::default());
    let mut x = jit.upload(&[1.0f32, 2.0, 3.0])?;
    jit.launch(
        &scale()?,
        1,
        32,
        args!(
            &mut x,
            Scale {
                factor: 2.0,
                offset: 1.0
            }
        ),
    )?;
    assert_eq!(x.to_vec()?, [3.0, 5.0, 7.0]);
    Ok(())
}

/// A host value that is no argument by itself.
struct Meters(f32);

/// Does something visible at every extension point; counts launches that begin by 1 and that end by 10.
fn everywhere(launches: &Arc<AtomicU32>) -> Hook {
    let (began, ended) = (launches.clone(), launches.clone());
    Hook::new("everywhere")
        .version(7)
        .key("setting", "loud")
        .if_supported()
        .convert_argument(|value| Ok(value.downcast_ref::<Meters>().map(|m| m.0.into_arg())))
        .prepare_job(|job| {
            job.options.contract = false;
            Ok(())
        })
        .rewrite_ir(|_, module| {
            differences(module);
            Ok(())
        })
        .lower_inst(|cx, inst, args| {
            // A product of floats becomes a quotient.
            let is_product =
                matches!(inst.data, InstData::Binary { op, .. } if op == BinaryOp::Mul);
            match args {
                [FloatValue(a), FloatValue(b)] if is_product => {
                    Ok(Some(cx.builder().build_float_div(*a, *b, "")?.into()))
                }
                _ => Ok(None),
            }
        })
        .finish_module(|_, module| {
            note(module, "finished_before");
            Ok(())
        })
        .pass_pipeline(|_, pipeline| {
            *pipeline = "default<O1>".to_owned();
            Ok(())
        })
        .finish_optimized_module(|_, module| {
            note(module, "finished_after");
            Ok(())
        })
        .rewrite_ptx(|_, ptx| {
            *ptx += "// read by a hook\n";
            Ok(())
        })
        .before_launch(move |launch| {
            assert_eq!(launch.kernel, "mix");
            began.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
        .after_launch(move |_, result| {
            assert!(result.is_ok());
            ended.fetch_add(10, Ordering::Relaxed);
        })
}

/// Makes differences of sums.
fn differences(module: &mut Module) {
    for (_, function) in module.functions.iter_mut() {
        for (_, node) in function.insts.iter_mut() {
            if let InstData::Binary { op, .. } = &mut node.data
                && *op == BinaryOp::Add
            {
                *op = BinaryOp::Sub;
            }
        }
    }
}

fn note(module: &inkwell::module::Module<'_>, name: &str) {
    let word = module.get_context().i32_type();
    let note = module.add_global(word, None, name);
    note.set_initializer(&word.const_int(1, false));
}

fn mix() -> Result<Kernel> {
    Kernel::build("mix", |k| {
        let out = k.slice_mut("out", Type::F32);
        let (a, b) = (k.param("a", Type::F32), k.param("b", Type::F32));
        out.at(0).set((a + b) * b);
    })
}

#[test]
fn every_point_of_the_compiler_is_reached() -> Result<()> {
    let jit = for_gpu(HookSet::new().with(everywhere(&Arc::default())));
    let mut out = jit.zeros::<f32>(1)?;
    let inspection = jit.inspect(&mix()?, args!(&mut out, 1.0f32, 2.0f32))?;
    assert!(inspection.ir().contains(" = sub "), "{}", inspection.ir());
    let ptx = inspection.ptx()?;
    for part in [
        "sub.rn.f32",
        "div.rn.f32",
        "finished_before",
        "finished_after",
    ] {
        assert!(ptx.contains(part), "{part} is not in\n{ptx}");
    }
    assert!(ptx.ends_with("// read by a hook\n"));
    let hooks = inspection.key().fields().find(|(name, _)| *name == "hooks");
    assert_eq!(hooks, Some(("hooks", "everywhere v7 setting=6:\"loud\"\n")));
    Ok(())
}

#[test]
fn arguments_are_converted_and_launches_observed() -> Result<()> {
    let launches = Arc::new(AtomicU32::new(0));
    let hook = everywhere(&launches);
    let jit = Jit::with(
        Device::cpu(),
        HookSet::new().with(hook),
        JitOptions::default(),
    );
    let mut out = jit.zeros::<f32>(1)?;
    let (a, b) = (Meters(7.5), 2.0f32);
    jit.launch(&mix()?, 1, 1, args!(&mut out, args::host(&a), b))?;
    // The sum was rewritten to a difference, and the product lowered to a quotient.
    assert_eq!(out.to_vec()?, [(7.5 - 2.0) / 2.0]);
    assert_eq!(launches.load(Ordering::Relaxed), 11);
    Ok(())
}
