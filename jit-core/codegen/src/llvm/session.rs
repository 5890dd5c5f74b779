//! One compile's time with LLVM: its thread, its diagnostics, its failures.
//!
//! LLVM was written for a compiler process of its own: it exits on an error diagnostic nobody
//! handles, recurses deeply, and ends the process on what it cannot select. This file is the one
//! door to it. [`on_compile_thread`] opens the library, gives the work a large stack, and turns a
//! panic and LLVM's fatal errors into error values; [`Session`] collects a context's diagnostics,
//! since LLVM's functions report success while an error diagnostic says otherwise.
//!
//! A fatal error must not return to LLVM (it would end the process) nor unwind through it. The
//! fatal-error handler therefore tells the waiting caller what happened and parks the compile
//! thread for good. What the thread held, its context included, is leaked: some megabytes for each
//! kernel LLVM cannot select, against the whole process. A compile that does not end is parked in the
//! same way after five minutes (`park.rs`): instruction selection can rewrite in circles. What is compiled while the
//! process ends is the subject of `ending.rs`.
//!
//! Contexts, modules and builders are not thread-safe: they are made, used and dropped inside one
//! [`on_compile_thread`] call, and only bytes and text leave it.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_void};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use inkwell::attributes::AttributeLoc;
use inkwell::context::{Context, ContextRef};
use inkwell::llvm_sys::core::{
    LLVMContextGetDiagnosticContext, LLVMContextGetDiagnosticHandler,
    LLVMContextSetDiagnosticHandler, LLVMDisposeMessage, LLVMGetDiagInfoDescription,
    LLVMGetDiagInfoSeverity,
};
use inkwell::llvm_sys::error_handling::{LLVMInstallFatalErrorHandler, LLVMResetFatalErrorHandler};
use inkwell::llvm_sys::linker::LLVMLinkModules2;
use inkwell::llvm_sys::prelude::LLVMDiagnosticInfoRef;
use inkwell::llvm_sys::{LLVMDiagnosticHandler, LLVMDiagnosticSeverity};
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::{Linkage, Module};
use inkwell::targets::{InitializationConfig, Target};

use kiln_ir::row_panic::message as panic_message;

use super::effort::set_knobs;
use super::ending::{self, NotBegun};
use super::error::{BackendError, CompileThreadError};
use super::library::library;
use super::machine::run_passes_of_no_machine;
use super::memory;
use super::park::in_hook;
use super::reflection;

/// Stack of a compile thread in bytes. LLVM recurses over types and expressions; the 2 MiB a Rust
/// thread gets overflow on deeply nested aggregates. Pages are only taken when touched.
const STACK_BYTES: usize = 64 << 20;

/// How long the work may take. Large kernels take seconds; what takes this long does not end.
const TIME_LIMIT: Duration = Duration::from_secs(300);

/// How long it is tried to stop what takes longer.
const PARKING: Duration = Duration::from_secs(2);

/// How the work on a compile thread ended.
enum Outcome<R> {
    Returned(R),
    Panicked(String),
    Fatal(String),
    Ending,
}

/// Runs `work` where LLVM may be used: the library open, its targets initialized, on a thread with
/// a 64 MiB stack. `kernel` names the work in error texts.
///
/// `work` and its result own what they hold, and `work` holds no lock while it calls LLVM: after a
/// fatal error of LLVM neither is ever dropped.
///
/// # Errors
/// [`CompileThreadError`] if LLVM is missing, the process ends, no thread can be had, `work` panics or does not end, or
/// LLVM meets a fatal error.
#[cfg(test)]
pub(crate) fn on_compile_thread<R: Send + 'static>(
    kernel: &str,
    work: impl FnOnce() -> R + Send + 'static,
) -> Result<R, CompileThreadError> {
    compile_within(TIME_LIMIT, memory::least(), kernel, work)
}

/// `on_compile_thread` for a module, which decides how much memory LLVM is expected to take.
///
/// # Errors
/// As `on_compile_thread`, and [`CompileThreadError::Memory`].
pub fn compile_module<R: Send + 'static>(
    module: &kiln_ir::Module,
    work: impl FnOnce() -> R + Send + 'static,
) -> Result<R, CompileThreadError> {
    compile_within(TIME_LIMIT, memory::expected(module), &module.name, work)
}

/// Runs `work` on a compile thread with a time limit, once so many bytes of memory have been tried for.
pub(crate) fn compile_within<R: Send + 'static>(
    limit: Duration,
    memory: usize,
    kernel: &str,
    work: impl FnOnce() -> R + Send + 'static,
) -> Result<R, CompileThreadError> {
    memory::try_for(kernel, memory, INITIALIZED.get().is_some())?;
    library()?;
    let kernel = kernel.to_owned();
    if ending::unless_ending(initialize).is_none() {
        return Err(CompileThreadError::Ending { kernel });
    }
    let (sender, receiver) = mpsc::channel();
    let given_up = sender.clone();
    let job = move || run(&sender, work);
    let thread = thread::Builder::new()
        .name("kiln compile".to_owned())
        .stack_size(STACK_BYTES);
    let give_up = move || {
        let _ = given_up.send(Outcome::Ending);
    };
    let begun = match ending::begin(thread, job, give_up) {
        Ok(begun) => begun,
        Err(NotBegun::Ending) => return Err(CompileThreadError::Ending { kernel }),
        Err(NotBegun::Thread(error)) => {
            return Err(CompileThreadError::Thread {
                kernel,
                reason: error.to_string(),
            });
        }
    };
    let outcome = match receiver.recv_timeout(limit) {
        Ok(outcome) => outcome,
        Err(RecvTimeoutError::Timeout) => {
            let stopped = begun.park(PARKING);
            return Err(CompileThreadError::Endless {
                kernel,
                limit,
                stopped,
            });
        }
        Err(RecvTimeoutError::Disconnected) => Outcome::Panicked(NO_MESSAGE.to_owned()),
    };
    match outcome {
        // LLVM's thread-local data is gone when the caller goes on.
        Outcome::Returned(_) | Outcome::Panicked(_) => begun.join(),
        Outcome::Fatal(_) => begun.leave(),
        // The process's end has it.
        Outcome::Ending => {}
    }
    match outcome {
        Outcome::Returned(result) => Ok(result),
        Outcome::Panicked(message) => Err(CompileThreadError::Panic { kernel, message }),
        Outcome::Fatal(message) => Err(CompileThreadError::Fatal { kernel, message }),
        Outcome::Ending => Err(CompileThreadError::Ending { kernel }),
    }
}

/// What a compile thread does: the work, whose outcome it tells.
fn run<R: Send + 'static>(sender: &mpsc::Sender<Outcome<R>>, work: impl FnOnce() -> R) {
    let fatal_sender = sender.clone();
    let report = move |reason| {
        // The caller waits for the first message; if it is gone there is nobody to tell.
        let _ = fatal_sender.send(Outcome::Fatal(reason));
    };
    // Has the thread's own memory made that a signal looks at.
    in_hook(|| ());
    COMPILE.set(Some(Compile {
        report: Box::new(report),
        errors: RefCell::default(),
    }));
    let outcome = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => Outcome::Returned(result),
        Err(payload) => Outcome::Panicked(panic_message(&*payload)),
    };
    let _ = sender.send(outcome);
}

const NO_MESSAGE: &str = "(the panic has no message)";

/// What the fatal-error handler needs to know about the compile on its thread.
struct Compile {
    /// Tells the caller that LLVM cannot go on.
    report: Box<dyn Fn(String)>,
    /// Error diagnostics so far; a fatal error often follows one that says more.
    errors: RefCell<Vec<String>>,
}

thread_local! {
    /// The compile on this thread, if it is a compile thread.
    static COMPILE: RefCell<Option<Compile>> = const { RefCell::new(None) };
}

/// Whether LLVM is open and ready.
static INITIALIZED: OnceLock<()> = OnceLock::new();

/// Registers the targets and the fatal-error handler, once in a process: LLVM's registry is global
/// and not guarded.
fn initialize() {
    INITIALIZED.get_or_init(|| {
        let config = InitializationConfig::default();
        Target::initialize_nvptx(&config);
        // Our own LLVM_InitializeNative* cannot fail; a missing native target is an error when
        // the host's target machine is made.
        let _ = Target::initialize_native(&config);
        // SAFETY: the handler has the required type and is never unloaded. LLVM keeps one handler;
        // a second copy of this crate in the process puts its own in the place of ours.
        unsafe {
            LLVMResetFatalErrorHandler();
            LLVMInstallFatalErrorHandler(Some(on_fatal_error));
        }
        set_knobs();
    });
}

/// LLVM ends the process when this returns, so on a compile thread it does not.
extern "C" fn on_fatal_error(reason: *const c_char) {
    // SAFETY: LLVM passes a NUL-terminated string that lives during the call.
    let reason = unsafe { CStr::from_ptr(reason) }
        .to_string_lossy()
        .into_owned();
    let reported = COMPILE.try_with(|compile| {
        let compile = compile.try_borrow().ok()?;
        let compile = compile.as_ref()?;
        let mut lines = compile
            .errors
            .try_borrow()
            .map(|errors| errors.clone())
            .ok()?;
        lines.push(reason.clone());
        (compile.report)(lines.join("\n"));
        Some(())
    });
    if let Ok(Some(())) = reported {
        loop {
            thread::park();
        }
    }
    use std::io::Write as _;
    let _ = writeln!(
        std::io::stderr(),
        "kiln: LLVM meets a fatal error outside a compile of this copy of kiln-jit-core and ends \
         the process: {reason}"
    );
}

/// What LLVM says about a diagnostic's weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    /// The output is not to be used.
    Error,
    /// Something is doubtful.
    Warning,
    /// What an optimization did.
    Remark,
    /// Additional words to the diagnostic before.
    Note,
}

/// Something LLVM reported about a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Diagnostic {
    /// How grave the report is.
    pub(crate) severity: Severity,
    /// LLVM's text.
    pub(crate) message: String,
}

/// Bytes of stack that the functions of a module take together, from the diagnostics that the
/// attribute `warn-stack-size` asks for: "<unknown>:0:0: stack frame size (120) exceeds limit (0) in
/// function ..". A function without one takes next to nothing.
pub(crate) fn stack_bytes(diagnostics: &[Diagnostic]) -> u64 {
    let bytes = diagnostics.iter().filter_map(|diagnostic| {
        let (_, rest) = diagnostic.message.split_once("stack frame size (")?;
        rest.split_once(')')?.0.parse::<u64>().ok()
    });
    bytes.sum()
}

/// What the handler of one context has been told.
#[derive(Default)]
struct Collector {
    diagnostics: RefCell<Vec<Diagnostic>>,
}

/// The diagnostics of one context, from the session's start to its end.
///
/// Made right after the context and kept while anything is done with it: without a handler LLVM
/// exits the process on an error diagnostic.
pub struct Session<'ctx> {
    context: &'ctx Context,
    /// Boxed: LLVM holds its address.
    collector: Box<Collector>,
    /// The context belongs to one thread, and so does the session.
    not_send: PhantomData<*mut ()>,
}

impl std::fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.diagnostics()).finish()
    }
}

impl<'ctx> Session<'ctx> {
    /// Starts to collect the context's diagnostics.
    pub fn new(context: &'ctx Context) -> Session<'ctx> {
        let session = Session {
            context,
            collector: Box::default(),
            not_send: PhantomData,
        };
        session.install();
        session
    }

    /// Makes this session the receiver of the context's diagnostics, as at the start. To be called
    /// after code that may have set a handler of its own: inkwell's `link_in_module` leaves one
    /// behind that points into a stack frame that is gone.
    pub fn install(&self) {
        let collector: *const Collector = &*self.collector;
        // SAFETY: the collector's address is stable (boxed) and valid until `drop` removes it from
        // the context, which outlives the session.
        unsafe {
            LLVMContextSetDiagnosticHandler(
                self.context.raw(),
                Some(collect),
                collector.cast_mut().cast(),
            );
        }
    }

    /// `Ok` if no error has been reported so far; else an error of `stage` with all of them.
    /// Errors stay: once one was reported, nothing made in this session is to be used.
    ///
    /// # Errors
    /// Every error diagnostic, one a line.
    pub fn check(&self, stage: &'static str) -> Result<(), BackendError> {
        let diagnostics = self.collector.diagnostics.borrow();
        let errors: Vec<&str> = diagnostics
            .iter()
            .filter(|diagnostic| diagnostic.severity == Severity::Error)
            .map(|diagnostic| diagnostic.message.as_str())
            .collect();
        if errors.is_empty() {
            Ok(())
        } else {
            Err(BackendError::new(stage, errors.join("\n")))
        }
    }

    /// LLVM's own rules for modules. Passing them does not mean the back end can compile it.
    ///
    /// # Errors
    /// Every broken rule, one a line.
    pub fn verify(&self, module: &Module<'_>) -> Result<(), BackendError> {
        module
            .verify()
            .map_err(|error| BackendError::new("verify", error.to_string_lossy()))?;
        self.check("verify")
    }

    /// What has been reported so far.
    pub(crate) fn diagnostics(&self) -> Vec<Diagnostic> {
        self.collector.diagnostics.borrow().clone()
    }
}

/// What a context's handler has been told while something was done with it, in place of the session's.
struct Aside<'ctx> {
    context: ContextRef<'ctx>,
    before: (LLVMDiagnosticHandler, *mut c_void),
    collector: Box<Collector>,
}

impl<'ctx> Aside<'ctx> {
    fn begin(context: ContextRef<'ctx>) -> Aside<'ctx> {
        let collector = Box::<Collector>::default();
        let to: *const Collector = &*collector;
        let raw = context.raw();
        // SAFETY: the context is alive; the collector's address is stable and valid until `drop`, which gives the
        // context back its handler.
        let before = unsafe {
            let before = (
                LLVMContextGetDiagnosticHandler(raw),
                LLVMContextGetDiagnosticContext(raw),
            );
            LLVMContextSetDiagnosticHandler(raw, Some(collect), to.cast_mut().cast());
            before
        };
        Aside {
            context,
            before,
            collector,
        }
    }

    /// The errors, one a line.
    fn errors(&self) -> String {
        let diagnostics = self.collector.diagnostics.borrow();
        let errors = diagnostics.iter().filter(|d| d.severity == Severity::Error);
        let errors: Vec<&str> = errors.map(|error| error.message.as_str()).collect();
        errors.join("\n")
    }
}

impl Drop for Aside<'_> {
    fn drop(&mut self) {
        let (handler, collector) = self.before;
        // SAFETY: the context is alive, and so is what its handler was given before.
        unsafe { LLVMContextSetDiagnosticHandler(self.context.raw(), handler, collector) }
    }
}

/// Links a bitcode module into `module`: its functions are then internal ones of that, without what it says of
/// processors; those that nothing calls are gone. Where the code is for `sm`, what they ask NVVM is answered.
///
/// # Errors
/// Of stage `link`, if the bytes are not bitcode that this LLVM reads, are for another machine, or define what the module
/// defines, too, or declares with other types, or ask NVVM what is no constant.
pub(crate) fn link_bitcode(
    module: &Module<'_>,
    bitcode: &[u8],
    name: &str,
    sm: Option<u32>,
) -> Result<(), BackendError> {
    let refused = |why: &str| BackendError::new("link", format!("bitcode `{name}`: {why}"));
    let aside = Aside::begin(module.get_context());
    let buffer = MemoryBuffer::create_from_memory_range_copy(bitcode, "bitcode");
    let other = Module::parse_bitcode_from_buffer(&buffer, module.get_context())
        .map_err(|error| refused(&format!("{error} {}", aside.errors())))?;
    let [from, to] = [&other, module].map(|module| module.get_triple());
    let [from, to] = [&from, &to].map(|triple| triple.as_str().to_string_lossy());
    let machine = |triple: &str| triple.split('-').next().unwrap_or_default().to_owned();
    if !from.is_empty() && machine(&from) != machine(&to) {
        return Err(refused(&format!(
            "is for `{from}`, and this code is for `{to}`"
        )));
    }
    other.set_triple(&module.get_triple());
    other.set_data_layout(&module.get_data_layout());
    let linked = functions_to_link(module, &other).map_err(|why| refused(&why))?;
    let chosen = reflection::Chosen::of(module);
    // SAFETY: both modules belong to the same live context; the call consumes `other`, which
    // is therefore forgotten and not disposed again.
    let failed = unsafe { LLVMLinkModules2(module.as_mut_ptr(), other.as_mut_ptr()) } != 0;
    std::mem::forget(other);
    let errors = aside.errors();
    if failed || !errors.is_empty() {
        return Err(refused(&errors));
    }
    for function in linked.iter().filter_map(|name| module.get_function(name)) {
        function.set_linkage(Linkage::Internal);
        for key in ["target-cpu", "target-features", "tune-cpu"] {
            function.remove_string_attribute(AttributeLoc::Function, key);
        }
    }
    run_passes_of_no_machine(module, "globaldce")?;
    let Some(sm) = sm else {
        return Ok(());
    };
    reflection::answer(module, sm, &chosen, &linked).map_err(|why| refused(&why))?;
    run_passes_of_no_machine(module, "globaldce")
}

/// The names of the functions that a module defines which is to be linked into another one.
fn functions_to_link(module: &Module<'_>, other: &Module<'_>) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for function in other.get_functions() {
        if function.count_basic_blocks() == 0 {
            continue;
        }
        let name = function.get_name().to_string_lossy().into_owned();
        let known = module.get_function(&name).map(|known| known.get_type());
        if let Some(wanted) = known.filter(|&known| known != function.get_type()) {
            let [has, wants] = [function.get_type(), wanted].map(|ty| ty.print_to_string());
            let (has, wants) = (has.to_string_lossy(), wants.to_string_lossy());
            return Err(format!(
                "has the function `{name}` as `{has}`, and the kernel calls it as `{wants}`; give the row these types"
            ));
        }
        names.push(name);
    }
    Ok(names)
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        // SAFETY: the context is alive, as the session borrows it; without the handler nothing
        // points at the collector any more.
        unsafe {
            LLVMContextSetDiagnosticHandler(self.context.raw(), None, std::ptr::null_mut());
        }
    }
}

/// The diagnostic handler: stores what LLVM says in the session's collector.
extern "C" fn collect(info: LLVMDiagnosticInfoRef, collector: *mut c_void) {
    // SAFETY: `Session::install` passed the address of a collector that lives while the handler is
    // set; LLVM calls the handler on the session's thread.
    let collector = unsafe { &*collector.cast::<Collector>().cast_const() };
    // SAFETY: `info` is valid during the call; the description is a NUL-terminated string that we
    // own and give back.
    let diagnostic = unsafe {
        let text = LLVMGetDiagInfoDescription(info);
        let message = CStr::from_ptr(text).to_string_lossy().into_owned();
        LLVMDisposeMessage(text);
        let severity = match LLVMGetDiagInfoSeverity(info) {
            LLVMDiagnosticSeverity::LLVMDSError => Severity::Error,
            LLVMDiagnosticSeverity::LLVMDSWarning => Severity::Warning,
            LLVMDiagnosticSeverity::LLVMDSRemark => Severity::Remark,
            LLVMDiagnosticSeverity::LLVMDSNote => Severity::Note,
        };
        Diagnostic { severity, message }
    };
    if diagnostic.severity == Severity::Error {
        let _ = COMPILE.try_with(|compile| {
            if let Ok(compile) = compile.try_borrow()
                && let Some(compile) = compile.as_ref()
                && let Ok(mut errors) = compile.errors.try_borrow_mut()
            {
                errors.push(diagnostic.message.clone());
            }
        });
    }
    // Nobody holds the list while LLVM runs; if it were so, losing the text beats a panic here.
    if let Ok(mut diagnostics) = collector.diagnostics.try_borrow_mut() {
        diagnostics.push(diagnostic);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// Works for LLVM until the count of its turns is set to the last number.
    fn work_forever(turns: &AtomicU64) {
        while turns.load(Ordering::Relaxed) < u64::MAX / 2 {
            let context = Context::create();
            let module = context.create_module("endless");
            let void = context.void_type().fn_type(&[], false);
            for i in 0..100 {
                let function = module.add_function(&format!("f{i}"), void, None);
                let block = context.append_basic_block(function, "entry");
                let builder = context.create_builder();
                builder.position_at_end(block);
                let _ = builder.build_return(None);
            }
            let _ = module.verify();
            turns.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn nothing_runs_on_after_a_compile_was_given_up() {
        let turns = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&turns);
        // The first turns are some milliseconds' work, on a machine that does nothing else.
        let limit = Duration::from_secs(3);
        let given_up = compile_within(limit, memory::least(), "k", move || work_forever(&counted));
        let error = given_up.expect_err("it does not end");
        assert!(
            matches!(error, CompileThreadError::Endless { stopped: true, .. }),
            "{error}"
        );
        let before = turns.load(Ordering::Relaxed);
        assert!(before > 0, "the work had not begun");
        thread::sleep(Duration::from_millis(300));
        assert_eq!(turns.load(Ordering::Relaxed), before);
        // Others compile as before.
        assert_eq!(on_compile_thread("other", || 7).expect("a result"), 7);
    }

    // SAFETY: functions of the C library that Rust links, with its signatures (setgid(2), getgid(2)).
    #[cfg(target_os = "linux")]
    unsafe extern "C" {
        fn getgid() -> u32;
        fn setgid(group: u32) -> std::ffi::c_int;
    }

    /// The C library changes the groups of a process thread by thread, and waits for each.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_parked_thread_takes_part_in_what_all_threads_do() {
        let turns = Arc::new(AtomicU64::new(0));
        let limit = Duration::from_millis(300);
        let given_up = compile_within(limit, memory::least(), "k", move || work_forever(&turns));
        given_up.expect_err("it does not end");
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            // SAFETY: the group that the process has.
            let _ = sender.send(unsafe { setgid(getgid()) });
        });
        let result = receiver.recv_timeout(Duration::from_secs(60));
        assert_eq!(result.expect("all threads answer"), 0);
    }

    /// What a hook holds is the program's. Beside it, who is given up at the same time is stopped.
    #[test]
    fn a_thread_is_not_parked_in_a_hook() {
        let [in_a_hook, beside] = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
        let counted = [&in_a_hook, &beside].map(Arc::clone);
        let limit = Duration::from_millis(300);
        let both = [(true, "hook"), (false, "beside")];
        let both = std::iter::zip(both, counted).map(|((hook, name), counted)| {
            let work = move || match hook {
                true => in_hook(|| work_forever(&counted)),
                false => work_forever(&counted),
            };
            thread::spawn(move || compile_within(limit, memory::least(), name, work))
        });
        let both: Vec<_> = both.collect();
        let stopped = both.into_iter().map(|thread| {
            let given_up = thread.join().expect("a result");
            match given_up.expect_err("it does not end") {
                CompileThreadError::Endless { stopped, .. } => stopped,
                other => panic!("{other}"),
            }
        });
        let stopped: Vec<bool> = stopped.collect();
        in_a_hook.store(u64::MAX / 2, Ordering::Relaxed);
        assert_eq!(stopped, [false, true]);
    }
}
