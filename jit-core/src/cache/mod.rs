//! The kernel cache: from a launch's signature to code that is loaded and ready.
//!
//! Two maps. The launch map goes from what a launch is (kernel content, argument signatures) to a
//! loaded kernel; a hit is one look-up, allocates nothing and touches no IR. The code map goes
//! from the digest of everything that decides the code to a [`CompiledKernel`]; it is asked only
//! when the launch map misses, so that a kernel that goes back to an earlier body, or two host
//! types with one IR type, find their code again.
//!
//! Both hold `Arc<OnceCell>`: whoever comes first compiles, whoever comes meanwhile waits for the
//! same result, and no map guard is held while compiling. A failed compilation leaves the cell
//! empty, so an error is never cached.

mod key;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dashmap::DashMap;
use once_cell::sync::OnceCell;
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::args::{Arg, ArgSignature};
use crate::definition::Fingerprint;
use crate::error::Result;
use crate::job::CompiledKernel;
use crate::runtime::LoadedCode;

pub use key::{CacheKey, FieldChange, RecompileReport};

/// What a launch is, as far as its code goes.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct LaunchKey {
    pub(crate) kernel: Fingerprint,
    pub(crate) consts: u64,
    pub(crate) args: SmallVec<[ArgSignature; 8]>,
}

impl LaunchKey {
    /// The key of a launch. Unless `facts` are compiled in, launches that differ only in them are
    /// the same.
    pub(crate) fn new(kernel: Fingerprint, consts: u64, args: &[Arg<'_>], facts: bool) -> Self {
        let signature = |arg: &Arg<'_>| arg.signature.keeping_facts(facts);
        Self {
            kernel,
            consts,
            args: args.iter().map(signature).collect(),
        }
    }
}

impl Hash for LaunchKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // The fingerprint is uniform already; its first half spreads kernels over the map, and
        // equality compares all of it.
        state.write_u64(self.kernel.leading_bytes() ^ self.consts);
        for arg in &self.args {
            arg.hash(state);
        }
    }
}

/// Multiply-and-rotate over words: the keys are hashes and small enums, and come from the program
/// itself, so a hash that resists attack would buy nothing.
#[derive(Default)]
pub(crate) struct WordHasher(u64);

impl Hasher for WordHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }
    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(26) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }
    fn write_u8(&mut self, word: u8) {
        self.write_u64(word.into());
    }
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}

/// A kernel ready to launch on one device.
pub(crate) struct LoadedKernel {
    pub(crate) compiled: Arc<CompiledKernel>,
    pub(crate) code: Box<dyn LoadedCode>,
}

/// How often the cache was asked, and what it had.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct CacheStats {
    /// Launches that found their kernel ready.
    pub hits: u64,
    /// Launches that did not.
    pub misses: u64,
    /// Of those, the ones that found compiled code and only loaded it.
    pub code_hits: u64,
    /// Compilations.
    pub compiles: u64,
}

type LaunchMap =
    DashMap<LaunchKey, Arc<OnceCell<Arc<LoadedKernel>>>, BuildHasherDefault<WordHasher>>;

/// The cache of one [`crate::jit::Jit`].
#[derive(Default)]
pub(crate) struct KernelCache {
    launches: LaunchMap,
    code: DashMap<[u8; 32], Arc<OnceCell<Arc<CompiledKernel>>>>,
    /// The keys each kernel was compiled under, by name, the latest last.
    history: Mutex<HashMap<String, Vec<Arc<CacheKey>>>>,
    hits: AtomicU64,
    misses: AtomicU64,
    code_hits: AtomicU64,
    compiles: AtomicU64,
}

impl KernelCache {
    /// The loaded kernel for `key`, if it is there. The hot path: no allocation, no IR.
    pub(crate) fn get(&self, key: &LaunchKey) -> Option<Arc<LoadedKernel>> {
        let found = self.launches.get(key)?.value().get().cloned()?;
        self.hits.fetch_add(1, Ordering::Relaxed);
        Some(found)
    }

    /// The loaded kernel for `key`, loaded by `load` if it is not there. However many threads ask,
    /// one loads.
    pub(crate) fn get_or_load(
        &self,
        key: LaunchKey,
        load: impl FnOnce() -> Result<LoadedKernel>,
    ) -> Result<Arc<LoadedKernel>> {
        let cell = self.launches.entry(key).or_default().value().clone();
        self.misses.fetch_add(1, Ordering::Relaxed);
        cell.get_or_try_init(|| load().map(Arc::new)).cloned()
    }

    /// The code for `key`, compiled by `compile` if it is not there. However many threads ask, one
    /// compiles.
    pub(crate) fn get_or_compile(
        &self,
        kernel: &str,
        key: CacheKey,
        compile: impl FnOnce() -> Result<CompiledKernel>,
    ) -> Result<Arc<CompiledKernel>> {
        let cell = self.code.entry(key.digest()).or_default().value().clone();
        let mut compiled_now = false;
        let compiled = cell.get_or_try_init(|| {
            compiled_now = true;
            self.compiles.fetch_add(1, Ordering::Relaxed);
            compile().map(Arc::new)
        })?;
        if compiled_now {
            self.history
                .lock()
                .entry(kernel.to_owned())
                .or_default()
                .push(Arc::new(key));
        } else {
            self.code_hits.fetch_add(1, Ordering::Relaxed);
        }
        Ok(compiled.clone())
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
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            code_hits: self.code_hits.load(Ordering::Relaxed),
            compiles: self.compiles.load(Ordering::Relaxed),
        }
    }
}
