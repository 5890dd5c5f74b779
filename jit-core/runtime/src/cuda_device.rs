//! The CUDA device: the runtime's [`Backend`] over the driver layer in [`super::cuda`].

use std::any::Any;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::time::Duration;

use once_cell::sync::OnceCell;

use kiln_ir::abi::{DeviceAddress, LaunchArgs};
use kiln_ir::code::{Code, CompiledKernel, KernelInfo, PtxCode};
use kiln_ir::launch::{LaunchConfig, LaunchLimits};
use kiln_ir::target::{PtxTarget, Target};

use super::cuda::{CudaContext, CudaEvent, CudaFunction, CudaStream, DriverError, StreamHandle};
use super::cuda_graph::DeviceGraph;
use super::cuda_kernels::{LoadedKernels, Named};
use super::cuda_stream::BesideStream;
use super::device::{
    Backend, DeviceId, DeviceInfo, DeviceKind, LoadedCode, Marker, MemoryStats, Occupancy, Reset,
};
use crate::adopted::{AdoptedFunction, LentFunction, LentStream};
use crate::code_facts::CodeFacts;
use crate::error::{DeviceError, Result};
use crate::graph::{BackendGraph, Step};
use crate::rows::{Laid, Rows};
use crate::stream::{BackendStream, HostCall, StreamOptions};

/// Static and dynamic shared memory a block gets without opting in, in bytes (CUDA guide,
/// "Compute Capabilities").
const SHARED_WITHOUT_OPT_IN: u32 = 48 << 10;

/// A CUDA device's primary context. Launches go to the default stream, and to streams beside it.
pub(super) struct CudaDevice {
    info: DeviceInfo,
    context: Arc<CudaContext>,
    stream: CudaStream,
    /// What streams beside it wait for it by.
    event: OnceCell<Arc<CudaEvent>>,
    kernels: Arc<LoadedKernels>,
}

impl CudaDevice {
    /// The device of a context.
    pub(super) fn of(context: Arc<CudaContext>, ordinal: u32, resets: u32) -> Arc<dyn Backend> {
        let device = context.info();
        let limits = LaunchLimits {
            block_threads: device.max_threads_per_block,
            block: device.max_block,
            grid: device.max_grid,
            shared_bytes: device.shared_bytes_per_block_optin,
            param_bytes: param_limit(context.driver().version(), device.sm()),
        };
        let info = DeviceInfo {
            id: match (context.adopted(), resets) {
                (Some(number), _) => DeviceId::CudaContext(number),
                (None, 0) => DeviceId::Cuda(ordinal),
                (None, _) => DeviceId::CudaAgain(ordinal, resets),
            },
            kind: DeviceKind::Cuda,
            name: device.name.clone(),
            multiprocessors: device.multiprocessors,
            memory_bytes: device.total_memory,
            target: Target::Ptx(target(device.sm(), context.driver().max_ptx_version())),
            limits,
        };
        let stream = context.default_stream();
        Arc::new(CudaDevice {
            info,
            context,
            stream,
            event: OnceCell::new(),
            kernels: Arc::default(),
        })
    }

    /// The device of this kind that a backend is.
    fn of_backend(backend: &dyn Backend) -> Option<&CudaDevice> {
        backend.as_any()?.downcast_ref()
    }

    /// What streams beside the device's own wait for it by.
    fn event(&self) -> Result<&Arc<CudaEvent>> {
        let create = || Ok(Arc::new(self.context.create_order_event()?));
        self.event.get_or_try_init(create)
    }
}

const FOREIGN: DeviceError =
    DeviceError::Internal("a CUDA device was to copy to a device of another backend");

/// Bytes of a kernel's parameters: 4096, or 32764 from CUDA 12.1 on sm_70 and later (CUDA guide,
/// "`__global__` Function Parameters").
fn param_limit(driver_version: u32, sm: u32) -> u32 {
    if driver_version >= 12_010 && sm >= 70 {
        32_764
    } else {
        4096
    }
}

/// What to compile for: the newest architecture Kiln knows that the device runs, in the oldest PTX
/// version that has it, which the driver must know.
fn target(sm: u32, driver_ptx: (u32, u32)) -> PtxTarget {
    let wanted = PtxTarget::for_sm(sm.min(PtxTarget::MAX_SM));
    let newest = driver_ptx.0 * 10 + driver_ptx.1;
    PtxTarget {
        ptx: wanted.ptx.min(newest),
        ..wanted
    }
}

struct Loaded {
    function: CudaFunction,
    code_bytes: usize,
    /// Behind the function, whose end waits for its launches.
    _named: Named,
}

impl LoadedCode for Loaded {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn cuda_function(&self) -> Option<&CudaFunction> {
        Some(&self.function)
    }

    fn facts(&self) -> CodeFacts {
        let attributes = self.function.attributes();
        CodeFacts {
            registers: Some(attributes.registers),
            local_bytes: Some(attributes.local_bytes),
            shared_bytes: Some(attributes.static_shared_bytes.into()),
            const_bytes: Some(attributes.const_bytes),
            block_threads: Some(attributes.max_threads_per_block),
            code_bytes: Some(self.code_bytes as u64),
            log: self.function.module().info_log().to_owned(),
            ..CodeFacts::default()
        }
    }
}

/// A function of other code's, and what keeps it.
struct Adopted {
    function: CudaFunction,
    _lent: LentFunction,
}

impl LoadedCode for Adopted {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn cuda_function(&self) -> Option<&CudaFunction> {
        Some(&self.function)
    }
}

impl Marker for CudaEvent {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Backend for CudaDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn alloc(&self, bytes: usize) -> Result<u64> {
        Ok(self
            .context
            .alloc_in_order(bytes as u64, StreamHandle::DEFAULT)?)
    }

    fn allocates_in_order(&self) -> bool {
        self.context.has_pool()
    }

    fn memory_stats(&self) -> Option<MemoryStats> {
        Some(self.context.memory_stats())
    }

    fn keep_freed(&self, bytes: u64) -> Result<()> {
        Ok(self.context.set_pool_limit(bytes)?)
    }

    fn trim(&self) -> Result<()> {
        Ok(self.context.trim_pool()?)
    }

    fn free(&self, address: u64, _bytes: usize) {
        let freed = self.context.free(address);
        if freed.is_err_and(|error| !error.is_loss()) {
            // A driver that refuses once may not do so again; it is the only time. A context that cannot free has been
            // poisoned, and its cause was or will be reported.
            let _ = self.context.free(address);
        }
    }

    fn upload(&self, address: u64, bytes: &[MaybeUninit<u8>]) -> Result<()> {
        Ok(self.context.copy_to_device(address, bytes)?)
    }

    fn download(&self, address: u64, bytes: &mut [u8]) -> Result<()> {
        Ok(self.context.copy_to_host(bytes, address)?)
    }

    fn clear(&self, address: u64, bytes: usize) -> Result<()> {
        Ok(self.context.fill_u8(address, 0, bytes as u64)?)
    }

    fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()> {
        Ok(self.stream.copy_on_device(to, from, bytes as u64)?)
    }

    fn reaches(&self, other: &dyn Backend) -> Result<bool> {
        // Whether the devices have a way of their own or the driver one through the host is the driver's.
        let driver = self.context.driver();
        let other = CudaDevice::of_backend(other).map(|other| &other.context);
        let Some(other) = other.filter(|other| ptr::eq(other.driver(), driver)) else {
            return Ok(false);
        };
        other.is_well()?;
        self.context.is_well()?;
        Ok(true)
    }

    fn copy_to_other(
        &self,
        stream: Option<&dyn BackendStream>,
        other: &dyn Backend,
        to: u64,
        from: u64,
        bytes: usize,
    ) -> Result<()> {
        let other = CudaDevice::of_backend(other).ok_or(FOREIGN)?;
        let bytes = bytes as u64;
        match stream {
            Some(stream) => BesideStream::of(stream)?.copy_to(&other.context, to, from, bytes),
            None => Ok(self.stream.copy_to_other(&other.context, to, from, bytes)?),
        }
    }

    fn wait_for_other(
        &self,
        stream: Option<&dyn BackendStream>,
        marker: &dyn Marker,
    ) -> Result<()> {
        let event = event_of(marker)?;
        match stream {
            Some(stream) => BesideStream::of(stream)?.wait_for_other(event),
            None => Ok(self.stream.wait_for_other(event)?),
        }
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn copy_rows(&self, to: Laid, from: Laid, rows: Rows) -> Result<()> {
        Ok(self.stream.copy_rows(to, from, rows)?)
    }

    fn upload_rows(
        &self,
        to: Laid,
        bytes: &[MaybeUninit<u8>],
        from: Laid,
        rows: Rows,
    ) -> Result<()> {
        Ok(self.stream.copy_rows_to_device(to, bytes, from, rows)?)
    }

    fn download_rows(&self, from: Laid, bytes: &mut [u8], to: Laid, rows: Rows) -> Result<()> {
        Ok(self.stream.copy_rows_to_host(from, bytes, to, rows)?)
    }

    fn adopt_memory(&self, address: u64, bytes: usize) -> Result<()> {
        match self.context.adopt_memory(address, bytes as u64) {
            // Where there can be such memory, it is known.
            Err(DriverError::InvalidAddress { .. })
                if address != 0 && address.checked_add(bytes as u64).is_some() =>
            {
                Err(DeviceError::KnownMemory { address })
            }
            adopted => Ok(adopted?),
        }
    }

    fn give_up_memory(&self, address: u64, bytes: usize) -> Result<()> {
        match bytes {
            0 => Ok(()),
            _ => Ok(self.context.give_up_memory(address)?),
        }
    }

    fn alloc_host(&self, bytes: usize) -> Result<Option<NonNull<u8>>> {
        Ok(NonNull::new(self.context.alloc_host(bytes)?))
    }

    fn free_host(&self, start: NonNull<u8>, bytes: usize) {
        // SAFETY: host memory is freed once, when it is dropped, and a copy has it until it is done.
        unsafe { self.context.free_host(start.as_ptr(), bytes) }
    }

    unsafe fn upload_later(&self, address: u64, from: NonNull<u8>, bytes: usize) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe {
            let from = from.as_ptr();
            Ok(self.stream.copy_to_device_later(address, from, bytes)?)
        }
    }

    unsafe fn download_later(&self, address: u64, to: NonNull<u8>, bytes: usize) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe {
            Ok(self
                .stream
                .copy_to_host_later(to.as_ptr(), address, bytes)?)
        }
    }

    fn load(&self, kernel: &CompiledKernel) -> Result<Box<dyn LoadedCode>> {
        let info = &kernel.info;
        let Code::Ptx(code) = &kernel.code else {
            let device = self.info.name.clone();
            return Err(DeviceError::WrongTarget {
                kernel: info.name.clone(),
                target: kernel.target.to_string(),
                device,
            });
        };
        let (function, code_bytes) = match &code.assembled {
            None => {
                let module = self.context.load_module(code.text.as_bytes(), &info.name)?;
                let function = module.function_of(&code.entry, &info.name)?;
                (function, code.text.len())
            }
            Some(assembled) => {
                let image = &assembled.image;
                let loaded = self.context.load_cubin(image, &info.name);
                let function =
                    loaded.and_then(|module| module.function_of(&code.entry, &info.name));
                let wrong = |error| DeviceError::Assembled {
                    hook: assembled.by.clone(),
                    kernel: info.name.clone(),
                    error,
                };
                (function.map_err(wrong)?, image.len())
            }
        };
        // What the code has, which may be more than the IR declares.
        let (limit, own) = (
            self.info.limits.shared_bytes,
            function.attributes().static_shared_bytes,
        );
        if limit > SHARED_WITHOUT_OPT_IN && own <= limit {
            function.allow_dynamic_shared(limit - own)?;
        }
        Ok(Box::new(Loaded {
            function,
            code_bytes,
            _named: self.kernels.enter(info),
        }))
    }

    fn assembler(&self) -> Option<String> {
        let (version, sm) = (self.context.driver().version(), self.context.info().sm());
        Some(format!("CUDA driver {version} for sm_{sm}"))
    }

    fn assemble(&self, kernel: &str, code: &PtxCode) -> Option<Arc<[u8]>> {
        self.context.assemble(code.text.as_bytes(), kernel)
    }

    fn launch(
        &self,
        code: &dyn LoadedCode,
        _kernel: &Arc<KernelInfo>,
        config: &LaunchConfig,
        args: &mut LaunchArgs<'_>,
        limit: Option<Duration>,
    ) -> Result<()> {
        let channel = self.context.channel_address();
        launch_in(
            &self.context,
            self.stream.handle(),
            channel,
            code,
            config,
            args,
            limit,
        )
    }

    fn synchronize(&self) -> Result<()> {
        self.context.synchronize()?;
        self.fault()
    }

    fn usable(&self) -> Result<()> {
        Ok(self.context.usable()?)
    }

    fn settle(&self) -> Result<()> {
        Ok(self.context.synchronize()?)
    }

    fn fault(&self) -> Result<()> {
        self.kernels.told(self.context.take_fault())
    }

    fn ended(&self) -> Result<()> {
        self.fault()
    }

    fn synchronize_memory(&self, _address: u64, _bytes: usize) -> Result<()> {
        self.stream.synchronize()?;
        self.fault()
    }

    unsafe fn reset(&self, resets: u32) -> Result<Reset> {
        let ordinal = self.context.info().ordinal;
        if self.context.was_reset() {
            return Ok(Reset::Before(self.context.driver(), ordinal));
        }
        // SAFETY: passed on to the caller.
        let context = unsafe { self.context.reset()? };
        Ok(Reset::Begun(CudaDevice::of(context, ordinal, resets)))
    }

    fn mark(&self) -> Result<Box<dyn Marker>> {
        mark_in(&self.context, &self.stream)
    }

    fn elapsed_ms(&self, from: &dyn Marker, to: &dyn Marker) -> Result<f64> {
        let (from, to) = (event_of(from)?, event_of(to)?);
        to.synchronize()?;
        Ok(to.elapsed_ms_since(from)?.into())
    }

    fn wait_until(&self, marker: &dyn Marker) -> Result<()> {
        Ok(event_of(marker)?.synchronize()?)
    }

    fn wait_limit(&self) -> Option<Duration> {
        self.context.wait_limit()
    }

    fn overdue(&self, limit: Duration) -> DeviceError {
        self.context.overdue("cuEventQuery", limit).into()
    }

    fn is_reached(&self, marker: &dyn Marker) -> Result<bool> {
        Ok(event_of(marker)?.is_done()?)
    }

    fn create_stream(&self, options: StreamOptions) -> Result<Option<Arc<dyn BackendStream>>> {
        let (kernels, event) = (&self.kernels, self.event()?);
        let stream = BesideStream::create(&self.context, kernels, event, options)?;
        Ok(Some(Arc::new(stream)))
    }

    fn adopt_stream(&self, stream: &LentStream) -> Result<Arc<dyn BackendStream>> {
        let (kernels, event) = (&self.kernels, self.event()?);
        let stream = BesideStream::adopt(&self.context, kernels, event, stream)?;
        Ok(Arc::new(stream))
    }

    fn adopt_function(&self, function: &LentFunction, name: &str) -> Result<AdoptedFunction> {
        // SAFETY: whoever made it has promised that it lives as long as what is kept beside.
        let adopted = unsafe { self.context.adopt_function(function.as_raw(), name)? };
        let Some(params) = adopted.parameters()? else {
            return Err(DeviceError::Backend {
                device: self.info.id.to_string(),
                message: format!(
                    "the driver does not say what parameters `{name}` has (cuFuncGetParamInfo, CUDA 12.4). \
                     Update the NVIDIA driver, or launch it by the library that has loaded it"
                ),
            });
        };
        let code = Box::new(Adopted {
            function: adopted,
            _lent: function.clone(),
        });
        Ok(AdoptedFunction { code, params })
    }

    fn raw_stream(&self) -> Option<*mut c_void> {
        Some(self.stream.handle().as_raw())
    }

    fn occupancy(&self, code: &dyn LoadedCode, threads: u32, shared: u32) -> Result<Occupancy> {
        Ok(Occupancy {
            blocks: function_of(code)?.max_active_blocks(threads, shared)?,
            multiprocessors: self.info.multiprocessors,
        })
    }

    fn best_block(&self, code: &dyn LoadedCode, shared: u32, most: u32) -> Result<Option<u32>> {
        Ok(Some(function_of(code)?.best_block(shared, most)?))
    }

    fn create_graph(
        &self,
        steps: &[Step<'_>],
        after: &[Vec<usize>],
    ) -> Result<Option<Box<dyn BackendGraph>>> {
        DeviceGraph::create(&self.context, steps, after)
    }

    fn wait_for(&self, stream: &dyn BackendStream) -> Result<()> {
        BesideStream::of(stream)?.precede(&self.stream)
    }

    fn wait(&self, marker: &dyn Marker) -> Result<()> {
        Ok(self.stream.wait(event_of(marker)?)?)
    }

    fn is_done(&self) -> Result<bool> {
        Ok(self.stream.is_done()?)
    }

    fn then(&self, call: HostCall) -> Result<()> {
        Ok(self.stream.call(call)?)
    }
}

/// The function that code of this backend is.
pub(super) fn function_of(code: &dyn LoadedCode) -> Result<&CudaFunction> {
    match code.cuda_function() {
        Some(function) => Ok(function),
        None => Err(DeviceError::Internal(
            "a kernel of another backend reached the CUDA device",
        )),
    }
}

/// Launches in a stream, whose launches tell faults in this channel. Both streams' launches are this and nothing besides.
#[inline(always)]
pub(super) fn launch_in(
    context: &CudaContext,
    stream: StreamHandle,
    channel: u64,
    code: &dyn LoadedCode,
    config: &LaunchConfig,
    args: &mut LaunchArgs<'_>,
    limit: Option<Duration>,
) -> Result<()> {
    context.set_wait_limit(limit);
    let function = function_of(code)?;
    args.put_fault_channel(DeviceAddress(channel));
    if config.cooperative {
        // SAFETY: as below.
        unsafe { context.launch_cooperative(function, config, stream, args)? };
        return Ok(());
    }
    // SAFETY: the arguments have the kernel's parameter layout. Buffers behind addresses live at least until they are
    // dropped, which is ordered behind their uses.
    unsafe { context.launch(function, config, stream, args.bytes_mut())? };
    Ok(())
}

/// Marks the end of a stream's work.
pub(super) fn mark_in(context: &Arc<CudaContext>, stream: &CudaStream) -> Result<Box<dyn Marker>> {
    let event = context.create_event()?;
    event.record(stream)?;
    Ok(Box::new(event))
}

/// The event that a mark is.
pub(super) fn event_of(marker: &dyn Marker) -> Result<&CudaEvent> {
    let event = marker.as_any().downcast_ref();
    event.ok_or(DeviceError::ForeignEvent)
}
