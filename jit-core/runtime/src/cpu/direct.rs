//! Host code without a device: loaded and run on the calling thread, as the interpreter runs a module. It
//! is what tests compare with the interpreter.

use std::sync::Arc;

use kiln_ir::abi::ParamLayout;
use kiln_ir::block_order::BlockOrder;
use kiln_ir::code::{Code, CompiledKernel, KernelInfo};
use kiln_ir::fault::FaultRecord;

use super::kernel::HostKernel;
use super::run::{Failed, Run, RunSpec};
use crate::error::{DeviceError, Result};

/// A kernel that is compiled for this machine and one shape of block, loaded.
pub struct HostModule {
    kernel: Arc<HostKernel>,
    info: Arc<KernelInfo>,
    block: [u32; 3],
}

impl HostModule {
    /// Loads a kernel; `None` if its barriers lie where only the interpreter can run it.
    ///
    /// # Errors
    /// Code for another machine, or code that cannot be loaded.
    pub fn load(kernel: &CompiledKernel) -> Result<Option<HostModule>> {
        let name = &kernel.info.name;
        let code = match &kernel.code {
            Code::Host(code) => code,
            Code::Interpreted { .. } => return Ok(None),
            Code::Ptx(_) | Code::Custom(_) => {
                return Err(DeviceError::WrongTarget {
                    kernel: name.clone(),
                    target: kernel.target.to_string(),
                    device: "this machine's CPU".to_owned(),
                });
            }
        };
        Ok(Some(HostModule {
            kernel: Arc::new(HostKernel::load(name, code)?),
            info: kernel.info.clone(),
            block: code.block,
        }))
    }

    /// How arguments are passed.
    pub fn layout(&self) -> &ParamLayout {
        &self.info.layout
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
        if params.len() < self.info.layout.size as usize {
            return Err(DeviceError::Internal(
                "fewer parameters than the kernel has",
            ));
        }
        let spec = RunSpec {
            params,
            grid,
            block: self.block,
            dynamic_shared,
            kernel_tag: 0,
            order,
            together: self.info.waits_for_grid,
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
