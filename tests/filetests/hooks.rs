//! The hooks that files name: the standard ones, and for each further extension point one that does
//! little and shows.

use std::sync::Arc;

use kiln::core::codegen::OperationLowering;
use kiln::core::hook::{Changed, Hook, HookContext, HookPoint, HookResult, HookSet};
use kiln::core::inkwell::module::Module as LlvmModule;
use kiln::core::inkwell::values::BasicValueEnum::{self, FloatValue};
use kiln::core::ir::{BinaryOp, InstData, InstNode, IntrinsicDef, Module};
use kiln::core::job::CompileJob;

/// Where a hook acts.
type Named = (HookPoint, fn() -> Arc<dyn Hook>);

/// All that a file can name, with the extension point at which each acts.
pub(super) const ALL: [Named; 9] = [
    (HookPoint::PrepareJob, || Arc::new(RoundsEach)),
    (HookPoint::RewriteIr, || {
        Arc::new(kiln::hooks::AddressSpaces)
    }),
    (HookPoint::RewriteIr, || Arc::new(LosesChecks)),
    (HookPoint::LowerAbi, || Arc::new(kiln::hooks::ByValue)),
    (HookPoint::Lowering, || Arc::new(Reciprocals)),
    (HookPoint::FinishModule, || Arc::new(NotesBefore)),
    (HookPoint::PassPipeline, || Arc::new(NoPasses)),
    (HookPoint::FinishOptimizedModule, || Arc::new(NotesAfter)),
    (HookPoint::RewritePtx, || Arc::new(Signs)),
];

/// Hooks by their names, which stand between commas.
pub(super) fn named(names: &str) -> Result<HookSet, String> {
    let mut set = HookSet::new();
    for name in names.split(',').map(str::trim).filter(|n| !n.is_empty()) {
        let mut all = ALL.iter().map(|(_, make)| make());
        let hook = all.find(|hook| hook.name() == name);
        set.push(hook.ok_or_else(|| format!("there is no hook `{name}`"))?);
    }
    Ok(set)
}

/// Has no operations fused.
struct RoundsEach;

impl Hook for RoundsEach {
    fn name(&self) -> &'static str {
        "rounds-each"
    }

    fn prepare_job(&self, job: &mut CompileJob) -> HookResult<()> {
        job.options.contract = false;
        Ok(())
    }
}

/// Takes the checks from accesses and does not say so.
struct LosesChecks;

impl Hook for LosesChecks {
    fn name(&self) -> &'static str {
        "loses-checks"
    }

    fn rewrite_ir(&self, _: &HookContext<'_>, module: &mut Module) -> HookResult<Changed> {
        for (_, function) in module.functions.iter_mut() {
            for (_, node) in function.insts.iter_mut() {
                if let InstData::SliceIndex { checked, .. } = &mut node.data {
                    *checked = false;
                }
            }
        }
        Ok(Changed::Yes)
    }
}

/// Makes quotients products with reciprocals, and square roots negative.
struct Reciprocals;

impl Hook for Reciprocals {
    fn name(&self) -> &'static str {
        "reciprocals"
    }

    fn lowers_operations(&self) -> bool {
        true
    }

    fn lower_inst<'ctx>(
        &self,
        cx: &OperationLowering<'_, 'ctx>,
        inst: &InstNode,
        args: &[BasicValueEnum<'ctx>],
    ) -> HookResult<Option<BasicValueEnum<'ctx>>> {
        let quotient = matches!(
            inst.data,
            InstData::Binary {
                op: BinaryOp::Div,
                ..
            }
        );
        let (true, &[FloatValue(a), FloatValue(b)]) = (quotient, args) else {
            return Ok(None);
        };
        let one = b.get_type().const_float(1.0);
        let reciprocal = cx.builder().build_float_div(one, b, "reciprocal")?;
        let product = cx.builder().build_float_mul(a, reciprocal, "product")?;
        Ok(Some(product.into()))
    }

    fn lower_intrinsic<'ctx>(
        &self,
        cx: &OperationLowering<'_, 'ctx>,
        intrinsic: &IntrinsicDef,
        args: &[BasicValueEnum<'ctx>],
    ) -> HookResult<Option<BasicValueEnum<'ctx>>> {
        match (intrinsic.name, args) {
            ("math.sqrt", &[FloatValue(x)]) => {
                Ok(Some(cx.builder().build_float_neg(x, "negative")?.into()))
            }
            _ => Ok(None),
        }
    }
}

/// Adds a variable that says that it was there, named by `name`.
fn note(module: &LlvmModule<'_>, name: &str) {
    let word = module.get_context().i32_type();
    let variable = module.add_global(word, None, name);
    variable.set_initializer(&word.const_int(1, false));
}

/// Leaves a note before LLVM's passes.
struct NotesBefore;

impl Hook for NotesBefore {
    fn name(&self) -> &'static str {
        "notes-before"
    }

    fn finish_module(&self, _: &HookContext<'_>, module: &LlvmModule<'_>) -> HookResult<()> {
        note(module, "before_passes");
        Ok(())
    }
}

/// Lets LLVM run no passes.
struct NoPasses;

impl Hook for NoPasses {
    fn name(&self) -> &'static str {
        "no-passes"
    }

    fn pass_pipeline(&self, _: &HookContext<'_>, pipeline: &mut String) -> HookResult<()> {
        *pipeline = "verify".to_owned();
        Ok(())
    }
}

/// Leaves a note after LLVM's passes.
struct NotesAfter;

impl Hook for NotesAfter {
    fn name(&self) -> &'static str {
        "notes-after"
    }

    fn finish_optimized_module(
        &self,
        _: &HookContext<'_>,
        module: &LlvmModule<'_>,
    ) -> HookResult<()> {
        note(module, "after_passes");
        Ok(())
    }
}

/// Writes a line below the PTX.
struct Signs;

impl Hook for Signs {
    fn name(&self) -> &'static str {
        "signs"
    }

    fn rewrite_ptx(&self, _: &HookContext<'_>, ptx: &mut String) -> HookResult<()> {
        ptx.push_str("// signed\n");
        Ok(())
    }
}
