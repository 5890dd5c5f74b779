//! The kernel cache: from a launch's signature to code that is loaded and ready.
//!
//! Three maps. The launch map goes from what a launch is (kernel content, const arguments, argument
//! signatures) to a
//! specialized kernel with its code, for each shape of block where code depends on it; a hit is one
//! look-up, allocates nothing and touches no IR. The code map goes from the digest of everything that
//! decides the code to a [`CompiledKernel`]; it is asked only when the launch map has no code, so that a
//! kernel that goes back to an earlier body, or two host types with one IR type, find their code again.
//! The legal map does the same for what all shapes of block have in common. What no map has is looked for on
//! disk (`disk`) before it is compiled.
//!
//! Before the maps is what each thread launched before (`ready.rs`), which is where launches look first. It holds on to
//! code as the launch map does, and is the smaller of the two: what it has not is in the map.
//!
//! What they hold has a bound (`bound.rs`). Loaded code is that of all `Jit`s of a device which would make the same
//! (`shared.rs`).
//!
//! In each whoever comes first compiles, whoever comes meanwhile waits for the same result, and no map guard is held
//! while compiling (`flight.rs`). A failed compilation leaves nothing, so an error is not cached, but for those that cost
//! the process a thread (`failed.rs`).

mod bound;
pub(crate) mod disk;
mod failed;
mod flight;
mod key;
mod launched;
#[cfg(test)]
mod model;
mod ready;
mod shared;
mod sync;

use std::cell::Cell;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use once_cell::sync::OnceCell;
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxBuildHasher;

use kiln_compiler::args::words::Places;
use kiln_compiler::code::{CompiledKernel, KernelInfo};
use kiln_compiler::definition::Snapshot;
use kiln_compiler::error::Result;
use kiln_compiler::job::{KernelIdentity, LegalJob};
use kiln_compiler::launch::{Dim3, LaunchConfig, LaunchLimits, OneDimension, is_possible};
use kiln_compiler::runtime::LoadedCode;
use kiln_compiler::specialize::Specialization;

use bound::{Bound, Use};
pub use disk::{CacheFolder, DiskCache};
pub(crate) use failed::FailedCompiles;
use flight::Flights;
pub use key::{CacheKey, FieldChange, RecompileReport};
use launched::{AsLaunched, LaunchKey};
pub(crate) use launched::{Consts, KeptSignatures, Launched, Passing, Signatures};
use ready::Ready;
pub(crate) use ready::{Hit, PackedLaunch, ReadyLaunch};
use shared::SharedTable;

/// Where the code came from that launches of a kernel have.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub enum CodeOrigin {
    /// Compiled in this process.
    Compiled,
    /// In memory already, as code that this `Jit` has made before and has under another signature, or had let go.
    Memory,
    /// Kept on disk by a process before ([`Jit::disk_cache`](crate::jit::Jit::disk_cache)).
    Disk,
    /// In a folder that has come with the program
    /// ([`JitBuilder::shipped`](crate::jit::JitBuilder::shipped)).
    Shipped,
    /// Another `Jit` of the device had it ([`JitOptions::share_code`](crate::jit::JitOptions::share_code)).
    Shared,
}

/// Code ready to launch on one device, which several `Jit`s may have.
pub(crate) struct LoadedCodeOf {
    pub(crate) compiled: Arc<CompiledKernel>,
    pub(crate) code: Box<dyn LoadedCode>,
    /// The cache that it was made for.
    pub(crate) by: MadeFor,
    /// Where the cache that it was made for has it from.
    pub(crate) origin: CodeOrigin,
}

/// A cache, known while something was made for it.
#[derive(Clone)]
pub(crate) struct MadeFor(Weak<AtomicU64>);

/// The code that the `Jit`s of a device share, by the digest of all that decides it.
pub(crate) type SharedCode = SharedTable<[u8; 32], LoadedCodeOf>;

/// Code ready to launch, as one `Jit` has it.
pub(crate) struct LoadedKernel {
    pub(crate) compiled: Arc<CompiledKernel>,
    shared: Arc<LoadedCodeOf>,
    /// Where this `Jit` has it from.
    origin: CodeOrigin,
    places: Option<Places>,
    room: OneDimension,
    used: Use,
}

impl LoadedKernel {
    /// What the device launches.
    #[inline]
    pub(crate) fn code(&self) -> &dyn LoadedCode {
        &*self.shared.code
    }

    /// Where arguments are written, if all are slices and values of at most 16 bytes.
    #[inline]
    pub(crate) fn places(&self) -> Option<&Places> {
        self.places.as_ref()
    }

    /// Whether a launch shape is possible, of a device with these limits.
    #[inline]
    pub(crate) fn is_possible(&self, config: &LaunchConfig, limits: &LaunchLimits) -> bool {
        self.room.has(config) || is_possible(config, limits, &self.compiled.info)
    }
}

/// A kernel specialized for the arguments of launches, with its code.
pub(crate) struct Specialized {
    info: Arc<KernelInfo>,
    code: SpecializedCode,
    /// The best number of threads of a block, once it was asked for.
    pub(crate) best_block: OnceCell<u32>,
    /// Whether the cache has let it go.
    gone: AtomicBool,
}

/// Code for a shape of block, held on to only where it is one of several.
pub(crate) enum Found<'a> {
    Whole(&'a LoadedKernel),
    OfBlock(Arc<LoadedKernel>),
}

impl Deref for Found<'_> {
    type Target = LoadedKernel;

    #[inline]
    fn deref(&self) -> &LoadedKernel {
        match self {
            Found::Whole(loaded) => loaded,
            Found::OfBlock(loaded) => loaded,
        }
    }
}

enum SpecializedCode {
    /// For blocks of all shapes.
    Whole(Arc<LoadedKernel>),
    /// For blocks of one shape each, as launches have asked for them.
    ByBlock {
        unshaped: Box<Unshaped>,
        shapes: RwLock<HashMap<Dim3, Arc<OnceCell<Arc<LoadedKernel>>>, WordHash>>,
    },
}

/// What all shapes of block have in common of a specialized kernel.
pub(crate) struct Unshaped {
    pub(crate) request: Request,
    /// The key, with the rows of intrinsics that hooks have put in.
    pub(crate) key: CacheKey,
    pub(crate) info: Arc<KernelInfo>,
    /// The legal kernel, once code for a shape has to be made of it.
    pub(crate) legal: OnceCell<Arc<LegalJob>>,
}

/// What code was asked for.
pub(crate) struct Request {
    /// The kernel's name.
    pub(crate) name: String,
    /// The kernel, which this keeps alive; `None` once nothing is left to be made or looked for of it.
    pub(crate) snapshot: Option<Arc<Snapshot>>,
    pub(crate) specialization: Specialization,
    /// With the key before hooks have run.
    pub(crate) identity: Arc<KernelIdentity>,
    /// What decides the code besides its key, where code is shared.
    pub(crate) sharing: Option<String>,
}

impl Specialized {
    /// Code for blocks of all shapes.
    pub(crate) fn whole(loaded: LoadedKernel) -> Specialized {
        Specialized {
            info: loaded.compiled.info.clone(),
            code: SpecializedCode::Whole(Arc::new(loaded)),
            best_block: OnceCell::new(),
            gone: AtomicBool::new(false),
        }
    }

    /// A kernel whose code depends on the shape of blocks.
    pub(crate) fn by_block(unshaped: Unshaped) -> Specialized {
        Specialized {
            info: unshaped.info.clone(),
            code: SpecializedCode::ByBlock {
                unshaped: Box::new(unshaped),
                shapes: RwLock::default(),
            },
            best_block: OnceCell::new(),
            gone: AtomicBool::new(false),
        }
    }

    /// What is known of it whatever its code is.
    pub(crate) fn info(&self) -> &Arc<KernelInfo> {
        &self.info
    }

    /// Whether there is code for each shape of block.
    pub(crate) fn is_by_block(&self) -> bool {
        matches!(self.code, SpecializedCode::ByBlock { .. })
    }

    /// The code for blocks of all shapes.
    #[inline]
    pub(crate) fn for_all_blocks(&self) -> Option<&LoadedKernel> {
        match &self.code {
            SpecializedCode::Whole(loaded) => Some(loaded),
            SpecializedCode::ByBlock { .. } => None,
        }
    }

    /// The code for blocks of a shape, if it is there.
    pub(crate) fn find(&self, block: Dim3) -> Option<Found<'_>> {
        match &self.code {
            SpecializedCode::Whole(loaded) => Some(Found::Whole(loaded)),
            SpecializedCode::ByBlock { shapes, .. } => {
                let loaded = shapes.read().get(&block)?.get().cloned();
                loaded.map(Found::OfBlock)
            }
        }
    }

    /// Where the kernel's code came from, for blocks of a shape if that decides it; `None` if there is none yet.
    pub(crate) fn origin(&self, block: Option<Dim3>) -> Option<CodeOrigin> {
        match (&self.code, block) {
            (SpecializedCode::Whole(loaded), _) => Some(loaded.origin),
            (_, Some(block)) => self.find(block).map(|loaded| loaded.origin),
            (_, None) => None,
        }
    }

    /// [`Specialized::find`], to be kept.
    fn find_owned(&self, block: Dim3) -> Option<Arc<LoadedKernel>> {
        match (&self.code, self.find(block)?) {
            (_, Found::OfBlock(loaded)) => Some(loaded),
            (SpecializedCode::Whole(loaded), _) => Some(loaded.clone()),
            _ => None,
        }
    }

    /// The code for blocks of a shape, made by `make` if it is not there. However many threads ask, one
    /// makes it.
    pub(crate) fn for_block(
        &self,
        block: Dim3,
        make: impl FnOnce(&Unshaped) -> Result<LoadedKernel>,
    ) -> Result<Arc<LoadedKernel>> {
        let (unshaped, shapes) = match &self.code {
            SpecializedCode::Whole(loaded) => return Ok(loaded.clone()),
            SpecializedCode::ByBlock { unshaped, shapes } => (unshaped, shapes),
        };
        let cell = shapes.write().entry(block).or_default().clone();
        let loaded = cell.get_or_try_init(|| make(unshaped).map(Arc::new))?;
        // Who lets go says so first and looks for code then.
        if self.gone.load(Ordering::SeqCst) {
            loaded.let_go();
        }
        Ok(loaded.clone())
    }
}

/// How often the cache was asked, and what it had.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct CacheStats {
    /// Launches that found their kernel ready.
    pub hits: u64,
    /// Launches that did not.
    pub misses: u64,
    /// Of those, the ones that found compiled code and only loaded it.
    pub code_hits: u64,
    /// Of those, the ones that found the code of another `Jit` of the device
    /// ([`JitOptions::share_code`](crate::jit::JitOptions::share_code)).
    pub shared_hits: u64,
    /// Compilations.
    pub compiles: u64,
    /// Kernels whose IR was specialized, rewritten by hooks and verified for code that depends on the
    /// shape of blocks: each serves the compilations for all shapes.
    pub legalizations: u64,
    /// Code that was found on disk.
    pub disk_hits: u64,
    /// Code that was found in a folder which has come with the program
    /// ([`JitBuilder::shipped`](crate::jit::JitBuilder::shipped)).
    pub shipped_hits: u64,
    /// Code that was looked for on disk and compiled.
    pub disk_misses: u64,
    /// Files that were written there.
    pub disk_writes: u64,
    /// What was there and not used, or could not be written;
    /// [`Jit::disk_cache`](crate::jit::Jit::disk_cache) tells the first.
    pub disk_refused: u64,
    /// Kernels that were let go, as those launched later have filled the memory for them
    /// ([`JitOptions::memory_bound`](crate::jit::JitOptions::memory_bound)).
    pub evictions: u64,
    /// What the kernels in memory count as, in bytes.
    pub memory_bytes: u64,
}

/// Keys are hashes and small enums, and come from the program itself: a hash that resists attack would buy nothing.
type WordHash = FxBuildHasher;

/// The cache of one [`crate::jit::Jit`].
#[derive(Default)]
pub(crate) struct KernelCache {
    launches: Flights<LaunchKey, Specialized>,
    /// What threads found there.
    ready: Ready,
    bound: Bound,
    legal: Flights<[u8; 32], LegalJob>,
    code: Flights<[u8; 32], CompiledKernel>,
    /// What LLVM could not go on with, by the digest of the key.
    pub(crate) failed: FailedCompiles,
    /// The keys each kernel was compiled under, by name, the latest last.
    history: Mutex<HashMap<String, Vec<Arc<CacheKey>>>>,
    hits: AtomicU64,
    misses: AtomicU64,
    code_hits: AtomicU64,
    shared_hits: AtomicU64,
    compiles: AtomicU64,
    legalizations: AtomicU64,
}

impl KernelCache {
    /// What this thread launched before and launches again. The hot path: no allocation, no IR.
    #[inline(always)]
    pub(crate) fn ready(&self, launch: &ReadyLaunch<'_>) -> Option<(Arc<Hit>, Passing)> {
        self.ready.get(launch)
    }

    /// What this thread launched before, for a typed launch.
    #[inline(always)]
    pub(crate) fn ready_packed(&self, launch: &PackedLaunch<'_>) -> Option<Arc<Hit>> {
        self.ready.get_packed(launch)
    }

    /// Has [`KernelCache::ready`] find the code for a launch.
    pub(crate) fn keep_ready(
        &self,
        launch: &ReadyLaunch<'_>,
        specialized: &Specialized,
        loaded: &Arc<LoadedKernel>,
    ) {
        self.ready.put(launch, specialized, loaded);
    }

    /// The kernel of a launch with its code, if they are there: no allocation, no IR.
    pub(crate) fn get(
        &self,
        launched: &Launched<'_>,
        block: Dim3,
    ) -> Option<(Arc<Specialized>, Arc<LoadedKernel>)> {
        let launched: &(dyn AsLaunched + '_) = launched;
        let specialized = self.launches.find(launched);
        self.counted(specialized.and_then(|kernel| {
            let code = kernel.find_owned(block)?;
            Some((kernel, code))
        }))
    }

    /// Where the code of a launch came from, if it is there.
    pub(crate) fn origin(
        &self,
        launched: &Launched<'_>,
        block: Option<Dim3>,
    ) -> Option<CodeOrigin> {
        let launched: &(dyn AsLaunched + '_) = launched;
        self.launches.find(launched)?.origin(block)
    }

    /// The specialized kernel of a launch, if it is there.
    pub(crate) fn find(&self, launched: &Launched<'_>) -> Option<Arc<Specialized>> {
        let launched: &(dyn AsLaunched + '_) = launched;
        self.counted(self.launches.find(launched))
    }

    fn counted<T>(&self, found: Option<T>) -> Option<T> {
        let count = if found.is_some() {
            &self.hits
        } else {
            &self.misses
        };
        count.fetch_add(1, Ordering::Relaxed);
        found
    }

    /// The specialized kernel of a launch, made by `make` if it is not there. However many threads ask, one
    /// makes it.
    pub(crate) fn get_or_specialize(
        &self,
        launched: Launched<'_>,
        make: impl FnOnce() -> Result<Specialized>,
    ) -> Result<Arc<Specialized>> {
        self.launches.get_or_make(launched.into(), make)
    }

    /// The legal kernel for `key`, made by `legalize` if it is not there.
    pub(crate) fn get_or_legalize(
        &self,
        key: &CacheKey,
        legalize: impl FnOnce() -> Result<LegalJob>,
    ) -> Result<Arc<LegalJob>> {
        self.legal.get_or_make(key.digest(), || {
            self.legalizations.fetch_add(1, Ordering::Relaxed);
            legalize()
        })
    }

    /// The code for `key`, made by `make` if it is not there, which says when it begins to compile. However
    /// many threads ask, one does. The code's own key says what hooks have put in, too.
    pub(crate) fn get_or_make(
        &self,
        kernel: &str,
        key: &CacheKey,
        make: impl FnOnce(&dyn Fn()) -> Result<CompiledKernel>,
    ) -> Result<Arc<CompiledKernel>> {
        let mut made_now = false;
        let compiled_now = Cell::new(false);
        let compiled = self.code.get_or_make(key.digest(), || {
            made_now = true;
            let compiles = || {
                compiled_now.set(true);
                self.compiles.fetch_add(1, Ordering::Relaxed);
            };
            make(&compiles)
        })?;
        if compiled_now.get() {
            self.history
                .lock()
                .entry(kernel.to_owned())
                .or_default()
                .push(Arc::new(compiled.key.clone()));
        } else if !made_now {
            self.code_hits.fetch_add(1, Ordering::Relaxed);
        }
        Ok(compiled)
    }

    /// What names this cache as the one that something is made for.
    pub(crate) fn made_for(&self) -> MadeFor {
        self.bound.made_for()
    }

    /// Counts code that was found among what the `Jit`s of the device share, and says which it is.
    pub(crate) fn note_shared(&self, by: &MadeFor) -> CodeOrigin {
        let (count, origin) = match Weak::ptr_eq(&by.0, &self.made_for().0) {
            true => (&self.code_hits, CodeOrigin::Memory),
            false => (&self.shared_hits, CodeOrigin::Shared),
        };
        count.fetch_add(1, Ordering::Relaxed);
        origin
    }

    /// Why the latest compilation of `kernel` was needed, if there was one.
    pub(crate) fn explain(&self, kernel: &str) -> Option<RecompileReport> {
        let history = self.history.lock();
        let (latest, earlier) = history.get(kernel)?.split_last()?;
        Some(key::explain(kernel, latest, earlier))
    }

    /// How often the cache was asked, and what it had.
    pub(crate) fn stats(&self) -> CacheStats {
        CacheStats {
            hits: self.hits.load(Ordering::Relaxed) + self.ready.hits(),
            misses: self.misses.load(Ordering::Relaxed),
            code_hits: self.code_hits.load(Ordering::Relaxed),
            shared_hits: self.shared_hits.load(Ordering::Relaxed),
            compiles: self.compiles.load(Ordering::Relaxed),
            legalizations: self.legalizations.load(Ordering::Relaxed),
            evictions: self.bound.evictions(),
            memory_bytes: self.bound.held(),
            ..CacheStats::default()
        }
    }
}
