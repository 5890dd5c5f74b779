//! What is told of hooks to who looks on.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use expect_test::expect;
use kiln::Result;
use kiln::core::compile::{HookStep, Stage, StageObserver};
use kiln::core::hook::{Hook, HookSet};
use kiln::core::inkwell::values::BasicValueEnum::FloatValue;
use kiln::core::ir::{BinaryOp, InstData};
use kiln::prelude::*;

use super::for_gpu;

#[allow(
    clippy::assign_op_pattern,
    reason = "a hook looks for the order of the operands"
)]
#[kernel]
fn scale(x: &mut [f32], by: f32) {
    let i = global_id().x;
    if i < x.len() {
        x[i] = by * x[i];
    }
}

/// Hooks that change what they are given, and one that does not, at each point.
fn hooks() -> HookSet {
    let sums = Hook::new("sums").rewrite_ir(|_, module| {
        for (_, function) in module.functions.iter_mut() {
            for (_, node) in function.insts.iter_mut() {
                let is_float = node
                    .result
                    .is_some_and(|r| function.values[r].ty == Type::F32);
                if let InstData::Binary { op, .. } = &mut node.data
                    && *op == BinaryOp::Mul
                    && is_float
                {
                    *op = BinaryOp::Add;
                }
            }
        }
        Ok(())
    });
    let differs = Hook::new("differs")
        .prepare_job(|job| {
            job.module.name.push_str("_prepared");
            Ok(())
        })
        .lower_inst(|cx, inst, args| match (&inst.data, args) {
            (
                InstData::Binary {
                    op: BinaryOp::Add, ..
                },
                &[FloatValue(a), FloatValue(b)],
            ) => Ok(Some(cx.builder().build_float_sub(a, b, "")?.into())),
            _ => Ok(None),
        })
        .finish_module(|_, module| {
            let word = module.get_context().i32_type();
            let variable = module.add_global(word, None, "before_passes");
            variable.set_initializer(&word.const_zero());
            Ok(())
        })
        .pass_pipeline(|_, passes| {
            "function(sroa<modify-cfg>)".clone_into(passes);
            Ok(())
        })
        .rewrite_ptx(|_, ptx| {
            ptx.push_str("// read\n");
            Ok(())
        })
        .if_supported();
    let looks = Hook::new("looks")
        .prepare_job(|_| Ok(()))
        .rewrite_ir(|_, _| Ok(()))
        .lower_abi(|_, _| Ok(()))
        .lower_inst(|_, _, _| Ok(None))
        .finish_optimized_module(|_, _| Ok(()));
    HookSet::from(sums).with(differs).with(looks)
}

#[test]
fn an_inspection_has_what_each_hook_left() -> Result<()> {
    for gpu in [true, false] {
        let jit = match gpu {
            true => for_gpu(hooks()),
            false => Jit::with(Device::cpu(), hooks(), JitOptions::default()),
        };
        let mut x = jit.zeros::<f32>(4)?;
        let inspection = jit.inspect_block(&scale, 32, args!(&mut x, 2.0f32))?;
        let mut told = String::new();
        for step in inspection.hooks() {
            let what = match &step.text {
                None => "changed nothing".to_owned(),
                Some(text) => {
                    assert!(step.changed, "{step:?}");
                    let signs = ["_prepared", "add", "before_passes", "sroa", "// read"];
                    let found = signs.iter().filter(|sign| text.contains(**sign));
                    format!("now with {:?}", found.collect::<Vec<_>>())
                }
            };
            told += &format!("{} at {}: {what}\n", step.hook, step.point);
        }
        match gpu {
            true => expect![[r#"
                differs at prepare_job: now with ["_prepared", "add"]
                looks at prepare_job: changed nothing
                sums at rewrite_ir: now with ["_prepared", "add"]
                looks at rewrite_ir: changed nothing
                looks at lower_abi: changed nothing
                differs at lower_inst: now with []
                looks at lower_inst: changed nothing
                differs at finish_module: now with ["_prepared", "add", "before_passes"]
                differs at pass_pipeline: now with ["sroa"]
                looks at finish_optimized_module: changed nothing
                differs at rewrite_ptx: now with ["add", "before_passes", "// read"]
            "#]]
            .assert_eq(&told),
            false => expect![[r#"
                differs at prepare_job: now with ["_prepared", "add"]
                looks at prepare_job: changed nothing
                sums at rewrite_ir: now with ["_prepared", "add"]
                looks at rewrite_ir: changed nothing
                looks at lower_abi: changed nothing
                differs at lower_inst: now with []
                looks at lower_inst: changed nothing
                differs at finish_module: now with ["add", "before_passes"]
                differs at pass_pipeline: now with ["sroa"]
                looks at finish_optimized_module: changed nothing
            "#]]
            .assert_eq(&told),
        }
        let last = inspection
            .hooks()
            .iter()
            .rev()
            .find_map(|step| step.text.as_ref());
        if gpu {
            assert_eq!(last.map(String::as_str), inspection.stage(Stage::Ptx));
        }
    }
    Ok(())
}

/// Notes hooks, and what of their texts it is given.
#[derive(Default)]
struct Notes {
    lines: Mutex<Vec<String>>,
    wants_text: bool,
}

impl StageObserver for Notes {
    fn stage(&self, _: &str, stage: Stage, _: Duration, _: &dyn Fn() -> String) {
        self.lines.lock().unwrap().push(stage.name().to_owned());
    }

    fn hook(&self, kernel: &str, step: &HookStep<'_>) {
        let text = !step.text().is_empty();
        let line = format!(
            "{kernel} {} {} {:?} {text}",
            step.hook, step.point, step.changed
        );
        self.lines.lock().unwrap().push(line);
    }

    fn wants_text(&self) -> bool {
        self.wants_text
    }
}

#[test]
fn who_looks_on_is_told_of_hooks_between_the_stages() -> Result<()> {
    for wants_text in [false, true] {
        let notes = Arc::new(Notes {
            wants_text,
            ..Notes::default()
        });
        let options = JitOptions::default().observer(notes.clone());
        let jit = Jit::with(Device::cpu(), hooks(), options);
        let mut x = jit.upload(&[1.0f32, 2.0])?;
        scale.launch(&jit, (1, 32), &mut x, 3.0)?;
        // Products became sums, and these differences.
        assert_eq!(x.to_vec()?, [2.0, 1.0]);
        let lines = notes.lines.lock().unwrap().join("\n");
        match wants_text {
            false => expect![[r#"
                scale differs prepare_job None true
                scale looks prepare_job None true
                specialized
                scale sums rewrite_ir None true
                scale looks rewrite_ir None true
                scale looks lower_abi None true
                legal
                scale differs lower_inst Some(true) false
                scale looks lower_inst Some(false) false
                scale differs finish_module None false
                llvm
                scale differs pass_pipeline None false
                scale looks finish_optimized_module None false
                optimized-llvm
                object"#]]
            .assert_eq(&lines),
            true => expect![[r#"
                scale differs prepare_job Some(true) true
                scale looks prepare_job Some(false) true
                specialized
                scale sums rewrite_ir Some(true) true
                scale looks rewrite_ir Some(false) true
                scale looks lower_abi Some(false) true
                legal
                scale differs lower_inst Some(true) false
                scale looks lower_inst Some(false) false
                scale differs finish_module Some(true) true
                llvm
                scale differs pass_pipeline Some(true) true
                scale looks finish_optimized_module Some(false) true
                optimized-llvm
                object"#]]
            .assert_eq(&lines),
        }
    }
    Ok(())
}
