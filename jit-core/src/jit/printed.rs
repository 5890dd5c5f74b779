//! What kernels print: read, once a call on the host has waited, from the memory that they and the host share for it
//! (`kiln_ir::printed`), and given to whom the `Jit` was told, or to the program's own output.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use kiln_compiler::code::KernelInfo;
use kiln_compiler::ir::printed::{LOST, PrintRecord, RECORD_HEAD, RECORDS, USED, WORDS};
use kiln_compiler::runtime::{Buffer, Device, DeviceError, Marker, OrderedStream, WaitListener};

/// How many kernels that print are known by what they have left behind.
const KERNELS: usize = 256;

/// What a kernel has printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Printed<'a> {
    /// A text: a line of `println!`, with its end.
    Text {
        /// The text.
        text: &'a str,
        /// The name of the kernel.
        kernel: &'a str,
        /// The function that printed it, the kernel or one that it calls.
        function: &'a str,
        /// The line that printed it, as `file:line:column`.
        location: &'a str,
        /// Whether the text is for the standard error output: `eprintln!`, `dbg!`.
        to_stderr: bool,
    },
    /// Texts that found no room in the mebibyte that there is between two calls that wait, or whose kernel is not known any
    /// more: 256 others that print were launched meanwhile.
    Lost {
        /// How many of them.
        texts: u64,
    },
}

/// What is called with what kernels print.
pub type PrintListener = dyn Fn(Printed<'_>) + Send + Sync;

/// What the kernels of a `Jit` print.
pub(super) struct Output {
    device: Device,
    listener: Option<Arc<PrintListener>>,
    /// The memory that has the records, once a kernel that prints was launched.
    memory: Mutex<Option<Arc<Buffer<u8>>>>,
    /// The kernels that were launched last.
    kernels: Mutex<VecDeque<Arc<KernelInfo>>>,
    /// Behind the last launch that prints, if there may be records: they use one memory, so each is behind those before it.
    last: Mutex<Option<Box<dyn Marker>>>,
}

impl Output {
    pub(super) fn new(device: &Device, listener: Option<Arc<PrintListener>>) -> Arc<Output> {
        Arc::new(Output {
            device: device.clone(),
            listener,
            memory: Mutex::default(),
            kernels: Mutex::default(),
            last: Mutex::default(),
        })
    }

    /// Remembers a kernel that prints, and where.
    pub(super) fn know(self: &Arc<Output>, info: &Arc<KernelInfo>, memory: &Arc<Buffer<u8>>) {
        let mut kernels = self.kernels.lock();
        if !kernels
            .iter()
            .any(|known| known.kernel_tag == info.kernel_tag)
        {
            kernels.truncate(KERNELS - 1);
            kernels.push_front(info.clone());
        }
        drop(kernels);
        let is_first = self.memory.lock().replace(memory.clone()).is_none();
        if is_first {
            let this: Arc<dyn WaitListener> = self.clone();
            self.device.on_wait(Arc::downgrade(&this));
        }
    }

    /// Says that a kernel was launched in a stream that prints. The memory is still locked for this launch.
    pub(super) fn expect(&self, stream: &OrderedStream) {
        // Of a device that has failed nothing is read.
        *self.last.lock() = self.device.mark(stream).ok();
    }

    /// Gives out what is in the memory, behind the work that writes it.
    fn give_from(&self, memory: &Buffer<u8>) {
        // A device that has failed says so to whoever waits.
        let Ok(words) = take(&self.device, memory) else {
            return;
        };
        let kernels = self.kernels.lock().clone();
        let (mut rest, mut lost) = (&words[RECORDS..], words[LOST]);
        let mut given = Given::new(self.listener.as_deref());
        while let Some(record) = PrintRecord::first(rest) {
            rest = &rest[RECORD_HEAD + record.values.len()..];
            let tag = record.kernel_tag;
            let info = kernels.iter().find(|info| info.kernel_tag == tag);
            let site = info.and_then(|info| Some((info, info.print_sites.get(record.site)?)));
            match site {
                Some((info, site)) => given.give(Printed::Text {
                    text: &site.text(record.values),
                    kernel: &info.name,
                    function: &site.function,
                    location: &site.location,
                    to_stderr: site.to_stderr,
                }),
                None => lost += 1,
            }
        }
        if lost > 0 {
            given.give(Printed::Lost { texts: lost });
        }
    }
}

impl WaitListener for Output {
    /// Gives out what there is, if the launches are done that may print.
    fn waited(&self) {
        let backend = self.device.backend();
        let is_done = |marker: &mut Box<dyn Marker>| backend.is_reached(&**marker).unwrap_or(false);
        if self.last.lock().take_if(is_done).is_none() {
            return;
        }
        // What listens may launch kernels.
        let memory = self.memory.lock().clone();
        if let Some(memory) = memory {
            self.give_from(&memory);
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        let memory = self.memory.get_mut().take();
        if let Some(memory) = memory
            && self.last.get_mut().is_some()
            && !std::thread::panicking()
        {
            self.give_from(&memory);
        }
    }
}

/// The words of the memory that are used; none are from now on.
fn take(device: &Device, memory: &Buffer<u8>) -> Result<Vec<u64>, DeviceError> {
    let words = |bytes: &[u8]| -> Vec<u64> {
        let (each, _) = bytes.as_chunks();
        each.iter().map(|word| u64::from_ne_bytes(*word)).collect()
    };
    let used = |head: &[u8]| {
        let used = usize::try_from(words(head)[USED]).unwrap_or(WORDS);
        8 * used.min(WORDS - RECORDS)
    };
    let taken = device.read_and_clear(memory.address(), 8 * RECORDS, used, memory.uses())?;
    Ok(words(&taken))
}

/// What was given out, for whom.
struct Given<'a> {
    listener: Option<&'a PrintListener>,
    /// What is to be printed next, and where.
    text: String,
    to_stderr: bool,
}

impl<'a> Given<'a> {
    fn new(listener: Option<&'a PrintListener>) -> Given<'a> {
        Given {
            listener,
            text: String::new(),
            to_stderr: false,
        }
    }

    fn give(&mut self, printed: Printed<'_>) {
        if let Some(listener) = self.listener {
            return listener(printed);
        }
        match printed {
            Printed::Text {
                text, to_stderr, ..
            } => self.print(text, to_stderr),
            Printed::Lost { texts } => {
                let lost = format!(
                    "{texts} texts that kernels printed are lost: a mebibyte of them is kept, of 256 kernels, until a \
                     call waits for the launch\n"
                );
                self.print(&lost, true);
            }
        }
    }

    fn print(&mut self, text: &str, to_stderr: bool) {
        if self.to_stderr != to_stderr {
            self.flush();
            self.to_stderr = to_stderr;
        }
        self.text += text;
    }

    /// By the macros, so that tests capture what belongs to them.
    fn flush(&mut self) {
        let text = std::mem::take(&mut self.text);
        match (text.is_empty(), self.to_stderr) {
            (true, _) => {}
            (false, true) => eprint!("{text}"),
            (false, false) => print!("{text}"),
        }
    }
}

impl Drop for Given<'_> {
    fn drop(&mut self) {
        self.flush();
    }
}
