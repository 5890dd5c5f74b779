//! Loading PTX, with what the driver's JIT compiler had to say, and the functions inside.
//!
//! A module keeps its context alive and a function keeps its module alive, so a handle never
//! outlives what it points into. Functions are loaded and their attributes read at once: with lazy
//! loading (CUDA C++ Programming Guide, "Lazy Loading") an error would otherwise appear at the
//! first launch.

use std::ffi::{CStr, CString, c_int, c_uint, c_void};
use std::fmt;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use cudarc::driver::sys::{self, CUfunction_attribute as Attribute, CUjit_option as JitOption};
use kiln_ir::abi::ParamSlot;

use super::context::CudaContext;
use super::error::DriverError;
use super::recent::NameNumber;
use crate::stream::outside_of_calls;

/// Bytes kept of the JIT's error log and of its information log.
const LOG_BYTES: usize = 64 * 1024;

/// A loaded module. Unloaded when the last handle to it is dropped.
pub struct CudaModule {
    context: Arc<CudaContext>,
    /// Null for that of other code's function, which unloads it.
    handle: sys::CUmodule,
    kernel: Arc<str>,
    info_log: String,
}

// SAFETY: a module handle may be used from any thread; every use goes through the context.
unsafe impl Send for CudaModule {}
// SAFETY: as above; nothing is changed after construction.
unsafe impl Sync for CudaModule {}

impl fmt::Debug for CudaModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaModule")
            .field("kernel", &self.kernel)
            .finish_non_exhaustive()
    }
}

/// What a kernel needs, as the driver compiled it (`CUfunction_attribute`).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionAttributes {
    /// 32-bit registers of a thread.
    pub registers: u32,
    /// Local memory of a thread in bytes: spills and arrays that are not in registers.
    pub local_bytes: u32,
    /// Static shared memory of a block in bytes.
    pub static_shared_bytes: u32,
    /// Constant memory in bytes.
    pub const_bytes: u32,
    /// Most threads a block of this kernel can have on this device.
    pub max_threads_per_block: u32,
    /// Architecture the code was compiled for: 90 is sm_90.
    pub binary_version: u32,
}

/// A kernel ready to be launched.
#[derive(Clone)]
pub struct CudaFunction {
    module: Arc<CudaModule>,
    pub(super) handle: sys::CUfunction,
    pub(super) number: u32,
    name: Arc<str>,
    attributes: FunctionAttributes,
    /// Behind the module, whose end waits for what may need the name.
    _entered: Arc<NameNumber>,
}

// SAFETY: a function handle may be used from any thread; every use goes through the context.
unsafe impl Send for CudaFunction {}
// SAFETY: as above; nothing is changed after construction.
unsafe impl Sync for CudaFunction {}

impl fmt::Debug for CudaFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaFunction")
            .field("name", &self.name)
            .field("attributes", &self.attributes)
            .finish_non_exhaustive()
    }
}

/// A variable of a module in global or constant memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ModuleGlobal {
    /// The variable's device address.
    pub address: u64,
    /// The variable's size in bytes.
    pub bytes: u64,
}

impl CudaContext {
    /// Compiles PTX text with the driver's JIT and loads it. `kernel` is named in errors.
    ///
    /// # Errors
    /// [`DriverError::JitRejected`] with the log, [`DriverError::UnsupportedPtxVersion`],
    /// [`DriverError::NulByte`], [`DriverError::OutOfMemory`], [`DriverError::Poisoned`].
    pub fn load_module(
        self: &Arc<Self>,
        ptx: &[u8],
        kernel: &str,
    ) -> Result<Arc<CudaModule>, DriverError> {
        let image = terminated(ptx, kernel)?;
        self.load_image(image.as_ptr().cast(), ptx, kernel)
    }

    /// Loads machine code: an ELF file for this device's architecture (`cubin`). `kernel` is named in errors.
    ///
    /// # Errors
    /// As [`CudaContext::load_module`]; [`DriverError::NotMachineCode`] for what is no such file.
    pub(crate) fn load_cubin(
        self: &Arc<Self>,
        cubin: &[u8],
        kernel: &str,
    ) -> Result<Arc<CudaModule>, DriverError> {
        // The driver reads what does not begin so as a text of PTX, to its NUL.
        if !cubin.starts_with(b"\x7fELF") {
            return Err(DriverError::NotMachineCode {
                kernel: kernel.to_owned(),
            });
        }
        self.load_image(cubin.as_ptr().cast(), &[], kernel)
    }

    /// Has the driver make machine code of PTX without loading it (CUDA Driver API, "Module Management",
    /// `cuLinkComplete`). `None`: this driver does not, or refuses the text, of which loading it says more.
    pub(crate) fn assemble(&self, ptx: &[u8], kernel: &str) -> Option<Arc<[u8]>> {
        let table = self.enter().ok()?;
        let create = table.cuLinkCreate_v2?;
        let add = table.cuLinkAddData_v2?;
        let complete = table.cuLinkComplete?;
        let destroy = table.cuLinkDestroy?;
        let text = terminated(ptx, kernel).ok()?;
        let mut state: sys::CUlinkState = ptr::null_mut();
        // SAFETY: there are no options; `state` outlives the call.
        let code = unsafe { create(0, ptr::null_mut(), ptr::null_mut(), &mut state) };
        self.check("cuLinkCreate", code).ok()?;
        let link = || {
            let bytes = text.as_bytes_with_nul();
            let (kind, data) = (sys::CUjitInputType::CU_JIT_INPUT_PTX, bytes.as_ptr());
            let none = ptr::null_mut();
            // SAFETY: the state is the one that was made; the text ends with NUL and is only read; names and options
            // may be left out.
            let code = unsafe {
                let data = data.cast_mut().cast();
                add(
                    state,
                    kind,
                    data,
                    bytes.len(),
                    ptr::null(),
                    0,
                    none,
                    ptr::null_mut(),
                )
            };
            self.check("cuLinkAddData", code).ok()?;
            let (mut image, mut size) = (ptr::null_mut::<c_void>(), 0usize);
            // SAFETY: the results outlive the call.
            let code = unsafe { complete(state, &mut image, &mut size) };
            self.check("cuLinkComplete", code).ok()?;
            if image.is_null() {
                return None;
            }
            // SAFETY: the driver gives that many bytes, which are there until the state is destroyed.
            let image = unsafe { std::slice::from_raw_parts(image.cast::<u8>(), size) };
            image.starts_with(b"\x7fELF").then(|| Arc::from(image))
        };
        let image = link();
        // SAFETY: made once, destroyed once; the image was copied.
        let code = unsafe { destroy(state) };
        // What was made is as good whatever this says; a context that is lost is told by the next call.
        let _ = self.check("cuLinkDestroy", code);
        image
    }

    /// Loads what is at an address: PTX that ends with NUL, or an ELF file, which says itself how long it is.
    fn load_image(
        self: &Arc<Self>,
        image: *const c_void,
        ptx: &[u8],
        kernel: &str,
    ) -> Result<Arc<CudaModule>, DriverError> {
        let table = self.enter()?;
        let mut info = vec![0u8; LOG_BYTES];
        let mut errors = vec![0u8; LOG_BYTES];
        let mut options = [
            JitOption::CU_JIT_INFO_LOG_BUFFER,
            JitOption::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
            JitOption::CU_JIT_ERROR_LOG_BUFFER,
            JitOption::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
            JitOption::CU_JIT_LOG_VERBOSE,
        ];
        // Numbers are passed in place of pointers; sizes are 32 bits wide in and out.
        let mut values: [*mut c_void; 5] = [
            info.as_mut_ptr().cast(),
            ptr::without_provenance_mut(LOG_BYTES),
            errors.as_mut_ptr().cast(),
            ptr::without_provenance_mut(LOG_BYTES),
            ptr::without_provenance_mut(1),
        ];
        let mut handle: sys::CUmodule = ptr::null_mut();
        // SAFETY: the image is as the driver reads it; the option arrays have the length given, and the log
        // buffers the sizes given; all outlive the call.
        let code = unsafe {
            (table.cuModuleLoadDataEx)(
                &mut handle,
                image,
                options.len() as c_uint,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        if code != 0 {
            return Err(self.load_error(code, ptx, kernel, log_text(&errors)));
        }
        Ok(Arc::new(CudaModule {
            context: Arc::clone(self),
            handle,
            kernel: Arc::from(kernel),
            info_log: log_text(&info),
        }))
    }

    #[cold]
    fn load_error(&self, code: u32, ptx: &[u8], kernel: &str, log: String) -> DriverError {
        if code == 222 {
            return DriverError::UnsupportedPtxVersion {
                kernel: kernel.to_owned(),
                ptx_version: version_line(ptx).unwrap_or_else(|| "of no version".to_owned()),
                driver_version: self.driver.version(),
                newest: self.driver.max_ptx_version(),
                log,
            };
        }
        match self.error("cuModuleLoadDataEx", code) {
            DriverError::Other { code, .. } => DriverError::JitRejected {
                kernel: kernel.to_owned(),
                code,
                log,
            },
            other => other,
        }
    }
}

impl CudaContext {
    /// A function of a module that other code has loaded in this context, and unloads; by the name that errors call it.
    ///
    /// # Safety
    /// `function` is a `CUfunction` of this context, whose module stays loaded as long as what is returned.
    ///
    /// # Errors
    /// [`DriverError::Other`] for what the driver does not know; [`DriverError::Poisoned`].
    pub unsafe fn adopt_function(
        self: &Arc<Self>,
        function: *mut c_void,
        name: &str,
    ) -> Result<CudaFunction, DriverError> {
        let module = Arc::new(CudaModule {
            context: Arc::clone(self),
            handle: ptr::null_mut(),
            kernel: Arc::from(name),
            info_log: String::new(),
        });
        module.function_at(function.cast(), name)
    }
}

impl CudaModule {
    /// What the JIT reported while compiling: registers, spills. Often empty when the driver took
    /// the code from its own cache.
    pub fn info_log(&self) -> &str {
        &self.info_log
    }

    /// A kernel of the module.
    ///
    /// # Errors
    /// [`DriverError::SymbolNotFound`], [`DriverError::NulByte`], [`DriverError::OutOfMemory`],
    /// [`DriverError::Poisoned`].
    pub fn function(self: &Arc<Self>, name: &str) -> Result<CudaFunction, DriverError> {
        self.function_of(name, name)
    }

    /// The kernel of this symbol, by the name that errors call it.
    ///
    /// # Errors
    /// As [`CudaModule::function`].
    pub(crate) fn function_of(
        self: &Arc<Self>,
        symbol: &str,
        name: &str,
    ) -> Result<CudaFunction, DriverError> {
        let table = self.context.enter()?;
        let terminated = terminated(symbol.as_bytes(), &self.kernel)?;
        let mut handle: sys::CUfunction = ptr::null_mut();
        // SAFETY: the module is loaded, the name ends with NUL, `handle` outlives the call.
        let code =
            unsafe { (table.cuModuleGetFunction)(&mut handle, self.handle, terminated.as_ptr()) };
        if code == 500 {
            return Err(self.not_found(symbol));
        }
        self.context.check("cuModuleGetFunction", code)?;
        if let Some(load) = table.cuFuncLoad {
            // SAFETY: the function is of a loaded module.
            let code = unsafe { load(handle) };
            self.context.check("cuFuncLoad", code)?;
        }
        self.function_at(handle, name)
    }

    fn function_at(
        self: &Arc<Self>,
        handle: sys::CUfunction,
        name: &str,
    ) -> Result<CudaFunction, DriverError> {
        let name: Arc<str> = Arc::from(name);
        let entered = Arc::new(NameNumber::of(&self.context, &name));
        Ok(CudaFunction {
            module: Arc::clone(self),
            handle,
            number: entered.number,
            name,
            attributes: self.attributes(handle)?,
            _entered: entered,
        })
    }

    /// A variable of the module.
    ///
    /// # Errors
    /// [`DriverError::SymbolNotFound`], [`DriverError::NulByte`], [`DriverError::Poisoned`].
    pub fn global(&self, name: &str) -> Result<ModuleGlobal, DriverError> {
        let table = self.context.enter()?;
        let symbol = terminated(name.as_bytes(), &self.kernel)?;
        let (mut address, mut bytes) = (0, 0usize);
        // SAFETY: the module is loaded, the name ends with NUL, the results outlive the call.
        let code = unsafe {
            (table.cuModuleGetGlobal_v2)(&mut address, &mut bytes, self.handle, symbol.as_ptr())
        };
        if code == 500 {
            return Err(self.not_found(name));
        }
        self.context.check("cuModuleGetGlobal", code)?;
        Ok(ModuleGlobal {
            address,
            bytes: bytes as u64,
        })
    }

    /// Copies bytes to the start of a variable of the module, ordered in stream 0.
    ///
    /// # Errors
    /// Those of [`CudaModule::global`]; [`DriverError::InvalidAddress`] when there are more bytes
    /// than it has.
    pub fn copy_to_global(&self, name: &str, source: &[u8]) -> Result<(), DriverError> {
        let global = self.global(name)?;
        let bytes = source.len() as u64;
        if bytes > global.bytes {
            return Err(DriverError::InvalidAddress {
                call: "cuMemcpyHtoD",
                address: global.address,
                bytes,
            });
        }
        if bytes == 0 {
            return Ok(());
        }
        let table = self.context.enter()?;
        let from = source.as_ptr().cast::<c_void>();
        // SAFETY: the variable has at least this many bytes while the module is loaded.
        let code = unsafe { (table.cuMemcpyHtoD_v2)(global.address, from, source.len()) };
        self.context.check("cuMemcpyHtoD", code)
    }

    fn not_found(&self, symbol: &str) -> DriverError {
        DriverError::SymbolNotFound {
            kernel: Arc::clone(&self.kernel),
            symbol: symbol.to_owned(),
        }
    }

    fn attributes(&self, function: sys::CUfunction) -> Result<FunctionAttributes, DriverError> {
        let table = self.context.enter()?;
        let get = |attribute| {
            let mut value: c_int = 0;
            // SAFETY: the function is of this loaded module; `value` outlives the call.
            let code = unsafe { (table.cuFuncGetAttribute)(&mut value, attribute, function) };
            self.context.check("cuFuncGetAttribute", code)?;
            Ok(u32::try_from(value).unwrap_or(0))
        };
        Ok(FunctionAttributes {
            registers: get(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            local_bytes: get(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            static_shared_bytes: get(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            const_bytes: get(Attribute::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)?,
            max_threads_per_block: get(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            binary_version: get(Attribute::CU_FUNC_ATTRIBUTE_BINARY_VERSION)?,
        })
    }
}

impl Drop for CudaModule {
    fn drop(&mut self) {
        let handle = self.handle;
        if !self.context.may_free() || outside_of_calls().is_err() {
            // The driver would wait for a kernel that may never end, or for the call that this is in.
            return;
        }
        let context = &self.context;
        if !context.beside.lock().is_empty() || context.has_graphs.load(Relaxed) {
            // That the driver waits for streams beside stream 0, or for graphs, is said nowhere.
            self.context.release("cuCtxSynchronize", |table| {
                // SAFETY: the context is current.
                unsafe { (table.cuCtxSynchronize)() }
            });
        }
        if handle.is_null() {
            return;
        }
        self.context.release("cuModuleUnload", |table| {
            // SAFETY: loaded once, unloaded once; no function handle outlives the module.
            unsafe { (table.cuModuleUnload)(handle) }
        });
    }
}

impl CudaFunction {
    /// The kernel's name.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The module that it is of.
    pub(crate) fn module(&self) -> &Arc<CudaModule> {
        &self.module
    }

    /// The function as the driver knows it, for other code: a `CUfunction`. It lives as long as this object.
    pub fn as_raw(&self) -> *mut c_void {
        self.handle.cast()
    }

    /// Where each parameter lies in the block of them, in bytes (`cuFuncGetParamInfo`, CUDA 12.4). `None`: this driver
    /// does not say.
    ///
    /// # Errors
    /// [`DriverError::Other`] or [`DriverError::Poisoned`].
    pub fn parameters(&self) -> Result<Option<Vec<ParamSlot>>, DriverError> {
        let context = self.context();
        let Some(get) = context.enter()?.cuFuncGetParamInfo else {
            return Ok(None);
        };
        let mut slots = Vec::new();
        loop {
            let (mut offset, mut size) = (0usize, 0usize);
            // SAFETY: the function is of a loaded module; the results outlive the call.
            let code = unsafe { get(self.handle, slots.len(), &mut offset, &mut size) };
            // CUDA_ERROR_INVALID_VALUE: there are no more.
            if code == 1 {
                return Ok(Some(slots));
            }
            context.check("cuFuncGetParamInfo", code)?;
            slots.push(ParamSlot {
                offset: u32::try_from(offset).unwrap_or(u32::MAX),
                size: u32::try_from(size).unwrap_or(u32::MAX),
            });
        }
    }

    /// What the function needs, as compiled.
    pub fn attributes(&self) -> FunctionAttributes {
        self.attributes
    }

    /// The context it is loaded in.
    pub fn context(&self) -> &Arc<CudaContext> {
        &self.module.context
    }

    /// Allows launches with up to this much dynamic shared memory, in bytes. Needed beyond
    /// `shared_bytes_per_block`; the most is `shared_bytes_per_block_optin` less the kernel's
    /// static shared memory (CUDA C++ Programming Guide, "Shared Memory", per architecture).
    ///
    /// # Errors
    /// [`DriverError::LaunchFailed`] with the limit when it is too much;
    /// [`DriverError::Poisoned`].
    pub fn allow_dynamic_shared(&self, bytes: u32) -> Result<(), DriverError> {
        let context = self.context();
        let table = context.enter()?;
        let attribute = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let value = c_int::try_from(bytes).unwrap_or(c_int::MAX);
        // SAFETY: the function is of a loaded module.
        let code = unsafe { (table.cuFuncSetAttribute)(self.handle, attribute, value) };
        match code {
            1 => Err(self.launch_error("cuFuncSetAttribute", code, [1, 1, 1], [1, 1, 1], bytes)),
            _ => context.check("cuFuncSetAttribute", code),
        }
    }

    /// How many blocks of this many threads and bytes of dynamic shared memory fit on one
    /// multiprocessor at once (CUDA C++ Programming Guide, "Occupancy Calculator").
    ///
    /// # Errors
    /// [`DriverError::Other`] or [`DriverError::Poisoned`].
    pub fn max_active_blocks(&self, threads: u32, shared_bytes: u32) -> Result<u32, DriverError> {
        let context = self.context();
        let table = context.enter()?;
        let mut blocks: c_int = 0;
        let threads = c_int::try_from(threads).unwrap_or(c_int::MAX);
        // SAFETY: the function is of a loaded module; `blocks` outlives the call.
        let code = unsafe {
            (table.cuOccupancyMaxActiveBlocksPerMultiprocessor)(
                &mut blocks,
                self.handle,
                threads,
                shared_bytes as usize,
            )
        };
        context.check("cuOccupancyMaxActiveBlocksPerMultiprocessor", code)?;
        Ok(u32::try_from(blocks).unwrap_or(0))
    }
}

/// The bytes with a NUL at the end: the driver reads PTX and names as C strings.
fn terminated(bytes: &[u8], kernel: &str) -> Result<CString, DriverError> {
    // A NUL at the very end is what the driver wants anyway.
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    CString::new(bytes).map_err(|error| DriverError::NulByte {
        kernel: kernel.to_owned(),
        offset: error.nul_position(),
    })
}

/// A log buffer up to its NUL, without white space around it.
fn log_text(buffer: &[u8]) -> String {
    let bytes = CStr::from_bytes_until_nul(buffer).map_or(buffer, CStr::to_bytes);
    String::from_utf8_lossy(bytes).trim().to_owned()
}

/// What stands after `.version` at the start of a line.
fn version_line(ptx: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(ptx);
    let rest = text
        .lines()
        .find_map(|line| line.trim_start().strip_prefix(".version"))?;
    Some(rest.split_whitespace().next()?.to_owned())
}
