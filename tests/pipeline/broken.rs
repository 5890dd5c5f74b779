//! What hooks on LLVM's level may not leave behind: each would end the process, or the launch, later.

use kiln::core::codegen::amdgpu_target;
use kiln::core::hook::{Hook, HookResult, HookSet};
use kiln::core::inkwell::module::{Linkage, Module};
use kiln::core::inkwell::types::BasicType as _;
use kiln::core::inspect::Inspection;
use kiln::core::target::{PtxTarget, Target};
use kiln::prelude::*;

/// Changes the module, before or after LLVM's passes.
struct Breaks {
    after_passes: bool,
    how: fn(&Module<'_>) -> HookResult<()>,
}

impl Breaks {
    fn hook(self) -> Hook {
        let hook = Hook::new("breaks").key("is", "broken");
        match self.after_passes {
            true => hook.finish_optimized_module(move |_, module| (self.how)(module)),
            false => hook.finish_module(move |_, module| (self.how)(module)),
        }
    }
}

#[kernel]
fn zeros(y: &mut [u32]) {
    let i = thread_idx().x;
    if i < y.len() {
        y[i] = 0;
    }
}

/// A function beside the kernel that calls `callee` with a 16-bit float.
fn call(module: &Module<'_>, callee: &str) -> HookResult<()> {
    let context = module.get_context();
    let half = context.f16_type();
    let ty = half.fn_type(&[half.into()], false);
    let callee = module.add_function(callee, ty, None);
    let caller = module.add_function("caller", ty, None);
    let builder = context.create_builder();
    builder.position_at_end(context.append_basic_block(caller, "entry"));
    let arg = caller.get_first_param().ok_or("no parameter")?;
    let result = builder.build_call(callee, &[arg.into()], "")?;
    let result = result.try_as_basic_value().basic().ok_or("no result")?;
    builder.build_return(Some(&result))?;
    Ok(())
}

/// The same that reads an Intel clock.
fn read_time(module: &Module<'_>) -> HookResult<()> {
    let context = module.get_context();
    let ty = context.i64_type().fn_type(&[], false);
    let callee = module.add_function("llvm.x86.rdtsc", ty, None);
    let caller = module.add_function("caller", ty, None);
    let builder = context.create_builder();
    builder.position_at_end(context.append_basic_block(caller, "entry"));
    let time = builder.build_call(callee, &[], "")?.try_as_basic_value();
    builder.build_return(Some(&time.basic().ok_or("no result")?))?;
    Ok(())
}

/// A function beside the kernel that holds assembly of the hook's own.
fn assemble(module: &Module<'_>) -> HookResult<()> {
    let context = module.get_context();
    let ty = context.void_type().fn_type(&[], false);
    let asm =
        context.create_inline_asm(ty, "brkpt;".into(), String::new(), true, false, None, false);
    let caller = module.add_function("caller", ty, None);
    let builder = context.create_builder();
    builder.position_at_end(context.append_basic_block(caller, "entry"));
    builder.build_indirect_call(ty, asm, &[], "")?;
    builder.build_return(None)?;
    Ok(())
}

fn lose_entry(module: &Module<'_>) -> HookResult<()> {
    let mut functions = module.get_functions();
    let entry =
        functions.find(|f| f.count_basic_blocks() > 0 && f.get_linkage() == Linkage::External);
    entry
        .ok_or("no entry")?
        .as_global_value()
        .set_name("elsewhere");
    Ok(())
}

fn error(target: Option<Target>, breaks: Breaks) -> String {
    let options = JitOptions::default().target(target);
    let jit = Jit::with(Device::cpu(), HookSet::new().with(breaks.hook()), options);
    let mut y = jit.zeros::<u32>(1).expect("memory");
    let inspected = jit.inspect_block(&zeros, 32, args!(&mut y));
    inspected.expect_err("the hook is at fault").to_string()
}

/// What is done, and what the error says of it for a GPU and for a CPU; nothing where it is right.
type Case = (
    fn(&Module<'_>) -> HookResult<()>,
    &'static str,
    &'static str,
);

const CASES: &[Case] = &[
    (
        lose_entry,
        "there is no function `zeros_",
        "there is no function `kiln_blocks` any more, where launches begin",
    ),
    (
        |module| call(module, "somewhere"),
        "it calls `somewhere`, which is not in the module",
        "it calls `somewhere`, which is not in the module",
    ),
    (
        |module| call(module, "llvm.no.such.thing"),
        "LLVM has no intrinsic `llvm.no.such.thing`",
        "LLVM has no intrinsic `llvm.no.such.thing`",
    ),
    // It crashes LLVM 22's back end for NVPTX.
    (
        |module| call(module, "llvm.exp.f16"),
        "no instruction for `llvm.exp.f16`",
        "no instruction for `llvm.exp.f16`",
    ),
    (
        assemble,
        "it holds the inline assembly `brkpt;` with the constraints ``, which no row",
        "it holds the inline assembly `brkpt;`, and this machine's code can have none",
    ),
    (
        |module| {
            module.set_inline_assembly("\t.file 1 \"x\"\n");
            Ok(())
        },
        "it has assembly beside its functions",
        "it has assembly beside its functions",
    ),
    (
        read_time,
        "`llvm.x86.rdtsc` is an intrinsic of another machine",
        "",
    ),
    (
        |module| call(module, "llvm.nvvm.ex2.approx.f16"),
        "",
        "`llvm.nvvm.ex2.approx.f16` is an intrinsic of another machine",
    ),
    (
        |module| {
            let ty = module.get_context().i32_type().array_type(4);
            module.add_global(ty.as_basic_type_enum(), None, "table");
            Ok(())
        },
        "the variable `table` has no value; give it an initializer",
        "the variable `table` has no value; give it an initializer",
    ),
];

#[test]
fn the_hook_is_named_and_the_process_lives() {
    for &(how, for_gpu, for_cpu) in CASES {
        for after_passes in [false, true] {
            for (target, want) in [(Some(ptx()), for_gpu), (None, for_cpu)] {
                if want.is_empty() {
                    continue;
                }
                let error = error(target, Breaks { after_passes, how });
                assert!(
                    error.starts_with("hook `breaks` left an LLVM module that "),
                    "{error}"
                );
                assert!(error.contains(want), "{error}\nand not\n{want}");
            }
        }
    }
}

/// Lowers an operation by assembly of its own.
#[derive(Copy, Clone)]
struct Assembles {
    template: &'static str,
    constraints: &'static str,
    vouches: bool,
}

impl Assembles {
    fn hook(self) -> Hook {
        Hook::new("assembles")
            .key("assembly", (self.template, self.constraints))
            .vouches_for_assembly(move |template, constraints| {
                self.vouches && (template, constraints) == (self.template, self.constraints)
            })
            .lower_intrinsic(move |cx, _, _| {
                let context = cx.context();
                let ty = context.i32_type().fn_type(&[], false);
                let (template, constraints) = (self.template.into(), self.constraints.into());
                let asm =
                    context.create_inline_asm(ty, template, constraints, true, false, None, false);
                let call = cx.builder().build_indirect_call(ty, asm, &[], "")?;
                Ok(Some(call.try_as_basic_value().basic().into()))
            })
    }
}

/// A kernel whose operations are lowered by assembly, after a hook that does nothing.
fn assembled(target: Target, hook: Assembles) -> kiln::Result<Inspection> {
    let options = JitOptions::default().target(target);
    let quiet = Breaks {
        after_passes: false,
        how: |_| Ok(()),
    };
    let hooks = HookSet::new().with(quiet.hook()).with(hook.hook());
    let jit = Jit::with(Device::cpu(), hooks, options);
    let mut y = jit.zeros::<u32>(1)?;
    jit.inspect_block(&zeros, 32, args!(&mut y))
}

fn ptx() -> Target {
    Target::Ptx(PtxTarget::for_sm(90))
}

#[test]
fn assembly_is_what_a_hook_answers_for() {
    let smid = |vouches| Assembles {
        template: "mov.u32 $0, %smid;",
        constraints: "=r",
        vouches,
    };
    let refused = assembled(ptx(), smid(false)).expect_err("nobody vouches");
    expect_test::expect![[r#"
        hook `assembles` left an LLVM module that cannot become code: it holds the inline assembly `mov.u32 $0, %smid;` with the constraints `=r`, which no row of the kernel has and no hook vouches for; give an `IntrinsicDef` that PTX as its cell and call it from the IR, or answer for it by `Hook::vouches_for_assembly`
          kernel: zeros, extension point: lower_intrinsic"#]]
    .assert_eq(&refused.to_string());
    let inspection = assembled(ptx(), smid(true)).expect("the hook vouches");
    let ptx = inspection.ptx().expect("PTX");
    assert!(ptx.contains("%smid;"), "{ptx}");
}

#[test]
fn a_hook_that_panics_when_it_is_asked_for_assembly_is_named() {
    let asked = Hook::new("asked").vouches_for_assembly(|_, _| panic!("no way"));
    let options = JitOptions::default().target(ptx());
    let smid = Assembles {
        template: "mov.u32 $0, %smid;",
        constraints: "=r",
        vouches: false,
    };
    let jit = Jit::with(
        Device::cpu(),
        HookSet::from(smid.hook()).with(asked),
        options,
    );
    let mut y = jit.zeros::<u32>(1).expect("memory");
    let error = jit
        .inspect(&zeros, args!(&mut y))
        .expect_err("nobody vouches");
    expect_test::expect![[r#"
        hook `assembles` left an LLVM module that cannot become code: `Hook::vouches_for_assembly` of hook `asked` panicked when it was asked for `mov.u32 $0, %smid;`: no way
          kernel: zeros, extension point: lower_intrinsic"#]].assert_eq(&error.to_string());
}

#[test]
fn assembly_for_amd_is_what_a_hook_answers_for() {
    let gfx90a = || amdgpu_target("gfx90a");
    let seven = |vouches| Assembles {
        template: "v_mov_b32 $0, 7",
        constraints: "=v",
        vouches,
    };
    let refused = assembled(gfx90a(), seven(false)).expect_err("nobody vouches");
    let refused = refused.to_string();
    assert!(
        refused
            .contains("it holds the inline assembly `v_mov_b32 $0, 7` with the constraints `=v`"),
        "{refused}"
    );
    let inspection = assembled(gfx90a(), seven(true)).expect("the hook vouches");
    let llvm = inspection.llvm().expect("LLVM made it");
    assert!(
        llvm.contains("asm sideeffect \"v_mov_b32 $0, 7\""),
        "{llvm}"
    );
}
