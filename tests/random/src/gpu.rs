//! Cases on a GPU.

use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, PoisonError};

use kiln_jit_core::code::{Code, CompiledKernel};
use kiln_jit_core::codegen::OptLevel;
use kiln_jit_core::compile::{NoObserver, compile};
use kiln_jit_core::hook::HookSet;
use kiln_jit_core::job::{CompileJob, CompileOptions};
use kiln_jit_core::launch::LaunchConfig;
use kiln_jit_core::runtime::cuda::{CudaContext, DriverError};
use kiln_jit_core::target::{PtxTarget, Target};

use crate::case::Case;
use crate::hooked::hooks_of;
use crate::run::{by_value, describe, param_block};
use crate::visit::{Device, Failed};

/// A CUDA device. Kernels are compiled side by side and run one after the other, so that the one that
/// ends the context is known.
#[derive(Debug)]
pub struct Gpu {
    context: Arc<CudaContext>,
    target: PtxTarget,
    opt_level: OptLevel,
    /// Hooks after those that the seed chooses.
    hooks: HookSet,
    runs: Mutex<()>,
}

impl Gpu {
    /// Compiles for what every GPU since sm_90 runs.
    pub fn new(context: Arc<CudaContext>, opt_level: OptLevel, hooks: HookSet) -> Gpu {
        Gpu {
            context,
            target: PtxTarget::for_sm(90),
            opt_level,
            hooks,
            runs: Mutex::new(()),
        }
    }

    fn compile(&self, case: &Case, hooks: &HookSet) -> Result<CompiledKernel, String> {
        let options = CompileOptions::default()
            // Fused operations round once, which is another result.
            .contract(false)
            .opt_level(self.opt_level);
        let job = CompileJob::new(case.module.clone(), Target::Ptx(self.target), options);
        compile(job, hooks, &NoObserver).map_err(|e| e.to_string())
    }

    fn launch(&self, case: &Case, kernel: &CompiledKernel) -> Result<Vec<Vec<u8>>, String> {
        let Code::Ptx(ptx) = &kernel.code else {
            return Err("code for another target".to_owned());
        };
        let told = |e: DriverError| e.to_string();
        let context = &self.context;
        let module = context.load_module(ptx.text.as_bytes(), &kernel.info.name);
        let module = module.map_err(told)?;
        let function = module.function(&ptx.entry).map_err(told)?;
        if case.dynamic_shared > 48 << 10 {
            let allowed = function.allow_dynamic_shared(case.dynamic_shared);
            allowed.map_err(told)?;
        }
        let addresses = self.upload(case).map_err(told)?;
        let layout = &kernel.info.layout;
        let case = &by_value(case, layout);
        let mut params = param_block(case, &layout.params, layout.size, &addresses)?;
        if let Some(channel) = layout.fault_channel {
            params[channel.range()].copy_from_slice(&context.channel_address().to_ne_bytes());
        }
        let stream = context.default_stream().handle();
        let config = LaunchConfig::new(case.grid, case.block).shared_bytes(case.dynamic_shared);
        // SAFETY: the parameters are laid out as the kernel takes them, and generated kernels access
        // their buffers only, which are freed after the launch has ended.
        let launched = unsafe { context.launch(&function, &config, stream, &mut params) };
        launched.map_err(told)?;
        context.synchronize().map_err(told)?;
        let fault = context.take_fault();
        let buffers = self.download(case, &addresses).map_err(told)?;
        describe(fault)?;
        Ok(buffers)
    }

    /// The addresses of the case's buffers on the device.
    fn upload(&self, case: &Case) -> Result<Vec<u64>, DriverError> {
        let mut addresses = Vec::new();
        for bytes in &case.buffers {
            let address = self.context.alloc(bytes.len().max(16) as u64)?;
            let bytes: Vec<MaybeUninit<u8>> = bytes.iter().map(|&b| MaybeUninit::new(b)).collect();
            if !bytes.is_empty() {
                self.context.copy_to_device(address, &bytes)?;
            }
            addresses.push(address);
        }
        Ok(addresses)
    }

    /// What is in the buffers now, which are freed.
    fn download(&self, case: &Case, addresses: &[u64]) -> Result<Vec<Vec<u8>>, DriverError> {
        let mut buffers = Vec::new();
        for (bytes, &address) in case.buffers.iter().zip(addresses) {
            let mut now = vec![0u8; bytes.len()];
            if !now.is_empty() {
                self.context.copy_to_host(&mut now, address)?;
            }
            buffers.push(now);
            self.context.free(address)?;
        }
        Ok(buffers)
    }
}

impl Device for Gpu {
    fn run(&self, case: &Case) -> Result<Vec<Vec<u8>>, Failed> {
        let hooks = hooks_of(case).with_all(&self.hooks);
        let kernel = self.compile(case, &hooks).map_err(Failed::Here)?;
        let _one = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if self.context.poison_cause().is_some() {
            return Err(Failed::Gone);
        }
        self.launch(case, &kernel).map_err(|error| {
            let why = format!("{error}, hooks {hooks:?}");
            match self.context.poison_cause() {
                Some(_) => Failed::Ended(why),
                None => Failed::Here(why),
            }
        })
    }
}
