//! The hook that keeps optimized modules for the device.

use std::collections::HashMap;
use std::sync::Arc;

use inkwell::module::Module as LlvmModule;
use parking_lot::Mutex;

use crate::codegen::on_host::kernel_symbol;
use crate::hook::{Changed, Hook, HookContext, HookResult};
use crate::ir::{IntrinsicDef, Module};

/// Keeps what is compiled, by the kernel's symbol, which has its tag in it. To be the last hook.
#[derive(Clone, Default)]
pub(super) struct Recorder(Arc<Recorded>);

#[derive(Default)]
struct Recorded {
    modules: Mutex<HashMap<String, Vec<u8>>>,
    rows: Mutex<Vec<&'static IntrinsicDef>>,
}

impl Recorder {
    /// The optimized module of a kernel as bitcode, and all rows seen so far.
    pub(super) fn take(&self, symbol: &str) -> Option<(Vec<u8>, Vec<&'static IntrinsicDef>)> {
        let module = self.0.modules.lock().get(symbol).cloned()?;
        Some((module, self.0.rows.lock().clone()))
    }
}

impl Hook for Recorder {
    fn name(&self) -> &'static str {
        "record-optimized-modules"
    }

    /// Reads which rows there are.
    fn lower_abi(&self, _: &HookContext<'_>, module: &mut Module) -> HookResult<Changed> {
        let mut rows = self.0.rows.lock();
        for &row in module.intrinsics.values() {
            if !rows.iter().any(|&known| std::ptr::eq(known, row)) {
                rows.push(row);
            }
        }
        Ok(Changed::No)
    }

    fn finish_optimized_module(
        &self,
        _: &HookContext<'_>,
        module: &LlvmModule<'_>,
    ) -> HookResult<()> {
        let symbol = kernel_symbol(module).ok_or("the module has no kernel")?;
        let bitcode = module.write_bitcode_to_memory().as_slice().to_vec();
        self.0.modules.lock().insert(symbol, bitcode);
        Ok(())
    }
}
