//! Random kernels become PTX: code generation takes all that the generator makes. No GPU is needed.

use std::sync::Arc;

use kiln_jit_core::codegen::{CodegenOptions, LoweringHooks, NoHooks, emit_ptx};
use kiln_jit_core::target::PtxTarget;
use kiln_random::{Budget, generate, hooked, hooks_of};

#[test]
fn random_kernels_become_ptx() {
    let hooks: Arc<dyn LoweringHooks + Send + Sync> = Arc::new(NoHooks);
    for seed in 0..200 {
        let case = generate(seed, &Budget::default());
        let case = hooked(&case, &hooks_of(&case)).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let module = Arc::new(case.module);
        let sm = [75, 80, 90, 120][seed as usize % 4];
        let result = emit_ptx(
            &module,
            PtxTarget::for_sm(sm),
            &CodegenOptions::default(),
            &hooks,
        );
        let ptx = result.unwrap_or_else(|e| panic!("seed {seed}, sm_{sm}: {e}"));
        assert!(ptx.contains(".entry"), "seed {seed}");
    }
}
