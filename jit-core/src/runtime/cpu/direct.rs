//! Host code without a device: a module compiled and run on the calling thread, as the interpreter
//! runs one. It is what tests compare with the interpreter.

use std::sync::Arc;

use super::check_lanes;
use super::compiled::{HostKernel, load, uses_warps};
use super::pool::{Failed, Run, RunSpec};
use crate::abi::ParamLayout;
use crate::block_order::BlockOrder;
use crate::codegen::{Barriers, Bug, HostJob, HostOutput, OptLevel, compile_host};
use crate::error::{Error, Result};
use crate::fault::FaultRecord;
use crate::ir::Module;
use crate::simt::BlockShape;

/// How a module is compiled for the host.
#[derive(Clone, Debug)]
pub struct HostOptions {
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Lanes of a vector: 1, 8, 16, 32 or 64. Warp operations need 32.
    pub lanes: u32,
    /// Whether a multiplication and a following addition may be fused.
    pub contract: bool,
    /// How hard LLVM tries.
    pub opt_level: OptLevel,
    /// What happens at barriers; by default what suits the kernel.
    pub barriers: Option<Barriers>,
    /// A bug to plant, in builds with the feature `planted-bugs`.
    pub bug: Option<Bug>,
}

/// A legal module compiled for this machine and one shape of block.
pub struct HostModule {
    kernel: Arc<HostKernel>,
    layout: ParamLayout,
    block: [u32; 3],
}

impl HostModule {
    /// Compiles a module of the legal phase that has passed the verifier; `None` if its barriers
    /// lie where only the interpreter can run it.
    ///
    /// # Errors
    /// There is no libLLVM, or the module is not what the verifier accepts.
    pub fn compile(module: &Arc<Module>, options: &HostOptions) -> Result<Option<HostModule>> {
        check_lanes(options.lanes)?;
        let layout = ParamLayout::of(module).ok_or_else(|| Error::NoKernel {
            module: module.name.clone(),
        })?;
        let output = compile_host(HostJob {
            module: module.clone(),
            block: BlockShape {
                threads: options.block,
                lanes: options.lanes,
            },
            contract: options.contract,
            opt_level: options.opt_level,
            barriers: options.barriers,
            warps_matter: uses_warps(module),
            bug: options.bug,
            keep_text: false,
        })?;
        let HostOutput::Code(code) = output else {
            return Ok(None);
        };
        Ok(Some(HostModule {
            kernel: Arc::new(load(&module.name, &code)?),
            layout,
            block: options.block,
        }))
    }

    /// How arguments are passed.
    pub fn layout(&self) -> &ParamLayout {
        &self.layout
    }

    /// Runs all blocks of a grid, in this order. Gives the record of the first fault, if there was one.
    ///
    /// # Errors
    /// No memory for a block, or fewer bytes of parameters than the layout has.
    ///
    /// # Safety
    /// `params` is laid out as [`HostModule::layout`] says, and the kernel accesses no memory
    /// through it but what is valid for that and accessed by nobody else meanwhile.
    pub unsafe fn run(
        &self,
        grid: [u32; 3],
        dynamic_shared: u32,
        params: &[u8],
        order: BlockOrder,
    ) -> Result<Option<FaultRecord>> {
        if params.len() < self.layout.size as usize {
            return Err(Error::Internal("fewer parameters than the kernel has"));
        }
        let params: Vec<_> = params
            .iter()
            .map(|&b| std::mem::MaybeUninit::new(b))
            .collect();
        let spec = RunSpec {
            params: &params,
            grid,
            block: self.block,
            dynamic_shared,
            kernel_tag: 0,
            order,
            limit: None,
        };
        let fault = Arc::new(parking_lot::Mutex::new(None));
        let seen = fault.clone();
        let report = move |failed| {
            if let Failed::Fault(record) = failed {
                seen.lock().get_or_insert(record);
            }
        };
        let run = Run::new(self.kernel.clone(), &spec, Box::new(report))?;
        run.alone()?;
        let record = *fault.lock();
        Ok(record)
    }
}
