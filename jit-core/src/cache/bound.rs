//! The bound of the memory caches: what was not launched for longest goes first.
//!
//! Code notes when it was launched last, by a clock that goes on with each kernel that is made. So a launch reads two
//! words that hardly ever change, and the order is that of launches as far as kernels were made between them. What is let go leaves
//! the maps and what threads have ready; a launch that is being made and a [`Prepared`](crate::jit::Prepared) have it
//! still, and what was loaded is unloaded by the last that drops it, which waits for work that may use it. Code that other
//! `Jit`s have as well counts for each, and stays loaded until the last has let it go.

use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Relaxed, SeqCst},
};

use parking_lot::Mutex;

use super::{
    CodeOrigin, KernelCache, LoadedCodeOf, LoadedKernel, MadeFor, Specialized, SpecializedCode,
};
use kiln_compiler::args::words::Places;
use kiln_compiler::code::{Code, CompiledKernel};
use kiln_compiler::launch::{LaunchLimits, OneDimension};

/// The bound unless a program sets one.
const DEFAULT: u64 = 512 << 20;

/// What is kept of a kernel besides its code, roughly: its key, names, places, what a driver has of it.
const BESIDES: u64 = 16 << 10;

/// How many of the latest keys of a kernel are kept once something was let go.
const LATEST_KEYS: usize = 16;

/// How much is kept, and when code was used.
pub(super) struct Bound {
    most: u64,
    clock: AtomicU64,
    /// The bytes of all code that was not let go, also of what is not in a map yet.
    held: Arc<AtomicU64>,
    evictions: AtomicU64,
    /// One lets go at a time.
    letting_go: Mutex<()>,
}

impl Default for Bound {
    fn default() -> Bound {
        Bound {
            most: DEFAULT,
            clock: AtomicU64::new(0),
            held: Arc::default(),
            evictions: AtomicU64::new(0),
            letting_go: Mutex::default(),
        }
    }
}

/// When code was launched last, and whether the cache has let it go; until then its bytes count.
pub(crate) struct Use {
    last: AtomicU64,
    gone: AtomicBool,
    bytes: u64,
    held: Arc<AtomicU64>,
}

impl Use {
    fn let_go(&self) {
        if !self.gone.swap(true, SeqCst) {
            self.held.fetch_sub(self.bytes, Relaxed);
        }
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        self.let_go();
    }
}

impl LoadedKernel {
    pub(super) fn is_gone(&self) -> bool {
        self.used.gone.load(Relaxed)
    }

    /// Notes that the cache has let it go.
    pub(super) fn let_go(&self) {
        self.used.let_go();
    }
}

impl Bound {
    pub(super) fn made_for(&self) -> MadeFor {
        MadeFor(Arc::downgrade(&self.held))
    }

    pub(super) fn held(&self) -> u64 {
        self.held.load(Relaxed)
    }

    pub(super) fn evictions(&self) -> u64 {
        self.evictions.load(Relaxed)
    }
}

/// How many bytes a kernel counts as.
fn bytes_of(kernel: &CompiledKernel) -> u64 {
    let code = match &kernel.code {
        Code::Ptx(ptx) => ptx.text.len() + ptx.assembled.as_ref().map_or(0, |a| a.image.len()),
        Code::Host(host) => host.object.len(),
        Code::Interpreted { .. } => 0,
        Code::Custom(code) => code.size(),
    };
    code as u64 + BESIDES
}

impl Specialized {
    /// Hands over the code that was made, that of each block.
    fn each_code(&self, mut of: impl FnMut(&LoadedKernel)) {
        match &self.code {
            SpecializedCode::Whole(loaded) => of(loaded),
            SpecializedCode::ByBlock { shapes, .. } => {
                let shapes: Vec<_> = shapes.read().values().cloned().collect();
                shapes
                    .iter()
                    .filter_map(|cell| cell.get())
                    .for_each(|code| of(code));
            }
        }
    }

    /// When a kernel was launched last, and the bytes that it counts as.
    fn last_use(&self) -> (u64, u64) {
        let (mut last, mut bytes) = (0, 0);
        self.each_code(|code| {
            last = last.max(code.used.last.load(Relaxed));
            bytes += code.used.bytes;
        });
        (last, bytes)
    }
}

impl KernelCache {
    /// A cache that keeps at most so many bytes.
    pub(crate) fn bounded(most: Option<u64>) -> KernelCache {
        let mut cache = KernelCache::default();
        cache.bound.most = most.unwrap_or(DEFAULT);
        cache
    }

    /// Notes that code is launched.
    #[inline]
    pub(crate) fn note_use(&self, loaded: &LoadedKernel) {
        let now = self.bound.clock.load(Relaxed);
        if loaded.used.last.load(Relaxed) != now {
            loaded.used.last.store(now, Relaxed);
        }
    }

    /// Code that is about to be put in, which is counted; lets go of other if there is too much.
    pub(crate) fn take(
        &self,
        shared: Arc<LoadedCodeOf>,
        origin: CodeOrigin,
        limits: &LaunchLimits,
    ) -> LoadedKernel {
        let bytes = bytes_of(&shared.compiled);
        let last = self.bound.clock.fetch_add(1, Relaxed) + 1;
        let held = self.bound.held.fetch_add(bytes, Relaxed) + bytes;
        if held > self.bound.most
            && let Some(_alone) = self.bound.letting_go.try_lock()
        {
            self.let_go(bytes);
        }
        LoadedKernel {
            places: Places::of(&shared.compiled.info),
            room: OneDimension::of(limits, &shared.compiled.info),
            compiled: shared.compiled.clone(),
            shared,
            origin,
            used: Use {
                last: AtomicU64::new(last),
                gone: AtomicBool::new(false),
                bytes,
                held: self.bound.held.clone(),
            },
        }
    }

    /// Keeps what was launched latest, as much as leaves a quarter of the bound and `coming` free.
    #[cold]
    fn let_go(&self, coming: u64) {
        let mut uses = Vec::new();
        self.launches.each(|kernel| uses.push(kernel.last_use()));
        uses.sort_unstable_by_key(|(last, _)| std::cmp::Reverse(*last));
        let mut room = (self.bound.most - self.bound.most / 4).saturating_sub(coming);
        let mut oldest = 0;
        for (last, bytes) in uses {
            oldest = last;
            match room.checked_sub(bytes) {
                Some(left) => room = left,
                None => break,
            }
        }
        let mut dropped = Vec::new();
        let mut room = (self.bound.most - self.bound.most / 4).saturating_sub(coming);
        let stays = |kernel: &Arc<Specialized>| {
            let (last, bytes) = kernel.last_use();
            if last < oldest || last == oldest && bytes > room {
                kernel.gone.store(true, SeqCst);
                kernel.each_code(LoadedKernel::let_go);
                dropped.push(kernel.clone());
                return false;
            }
            room = room.saturating_sub(bytes);
            true
        };
        self.launches.retain(stays);
        self.bound
            .evictions
            .fetch_add(dropped.len() as u64, Relaxed);
        // Without a lock of the maps: what was loaded is unloaded here.
        drop(dropped);
        self.ready.drop_gone();
        self.code.retain_used();
        self.legal.retain_used();
        for keys in self.history.lock().values_mut() {
            keys.drain(..keys.len().saturating_sub(LATEST_KEYS));
        }
    }
}
