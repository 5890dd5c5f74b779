//! Definitions: named kernels and device functions whose bodies can be replaced at run time.
//!
//! A [`Definition`] is an identity, the address of its `Arc`; what it says at the moment is a
//! [`Body`]. Every redefinition raises the definition's version. A [`Snapshot`] is a kernel with
//! all it calls, taken at one moment: its *age* is the sum of the versions, so whether it is still
//! current takes a few atomic loads, and its *fingerprint* covers content only, so going back to
//! an earlier body gives an earlier fingerprint and finds what was compiled for it.

mod digest;
mod module;
mod overlay;
mod signature;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::RwLock;

use crate::ir::{Entity, FuncId, Function, Module, debug_as_text, error_text};

pub use digest::Fingerprint;
pub(crate) use digest::row_digest;
pub use module::ModuleError;
pub use overlay::Overlays;
pub use signature::SignatureChanged;
pub(crate) use signature::{display_signature, same_signature};

/// How often anything was redefined in this process, and one more. While it stays, every definition says what it did.
static REDEFINITIONS: AtomicU64 = AtomicU64::new(1);

/// What a definition says: one function, and what its calls refer to.
#[derive(Clone, Debug)]
pub struct Body {
    /// The function with its body, and a declaration for each function it calls, in the generic
    /// phase.
    pub module: Module,
    /// The function.
    pub function: FuncId,
    /// Which definition each declaration stands for.
    pub callees: Vec<(FuncId, Arc<Definition>)>,
    /// The content of `module`; the callees' bodies are not part of it.
    pub fingerprint: Fingerprint,
}

impl Body {
    /// A body with its fingerprint. `function` and the first parts of `callees` are functions of
    /// `module`.
    pub fn new(module: Module, function: FuncId, callees: Vec<(FuncId, Arc<Definition>)>) -> Body {
        let fingerprint = digest::content_digest(&module);
        Body {
            module,
            function,
            callees,
            fingerprint,
        }
    }

    /// The function this body is of.
    pub fn function(&self) -> &Function {
        &self.module.functions[self.function]
    }
}

/// A kernel or device function whose body can be replaced. Two definitions are the same when
/// their `Arc`s are ([`Arc::ptr_eq`]).
pub struct Definition {
    name: String,
    body: RwLock<Arc<Body>>,
    /// Changes only while `body` is locked for writing.
    version: AtomicU64,
}

impl Definition {
    /// A definition with its first body, named like the function.
    pub fn new(body: Body) -> Arc<Self> {
        Arc::new(Self {
            name: body.function().name.clone(),
            body: RwLock::new(Arc::new(body)),
            version: AtomicU64::new(0),
        })
    }

    /// The definition's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Replaces the body; snapshots taken before are no longer current.
    ///
    /// # Errors
    ///
    /// A device function must keep its signature, because its callers were built against it, and
    /// a definition stays what it is, kernel or device function. Names of parameters may change.
    pub fn redefine(&self, body: Body) -> Result<(), SignatureChanged> {
        let mut current = self.body.write();
        signature::check_redefinition(&self.name, &current, &body)?;
        let previous = std::mem::replace(&mut *current, Arc::new(body));
        self.version.fetch_add(1, Ordering::Release);
        REDEFINITIONS.fetch_add(1, Ordering::Release);
        drop(current);
        // Outside the lock: the last owner of a body may be the last owner of other definitions.
        drop(previous);
        Ok(())
    }

    /// Whether what calls this could call a function with that body.
    ///
    /// # Errors
    /// The two signatures.
    pub(crate) fn accepts(&self, body: &Body) -> Result<(), SignatureChanged> {
        signature::check_redefinition(&self.name, &self.body(), body)
    }

    /// The body at this moment.
    pub fn body(&self) -> Arc<Body> {
        self.body.read().clone()
    }

    /// How often it has been redefined.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// A body and the version it belongs to.
    fn read(&self) -> (Arc<Body>, u64) {
        let body = self.body.read();
        (body.clone(), self.version())
    }
}

impl fmt::Debug for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Definition({}, version {})", self.name, self.version())
    }
}

/// A function calls itself, directly or through others.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", error_text!(
    "`{}` calls itself: {}; a device function cannot be recursive, write a loop instead",
    self.cycle.first().map_or("", |step| &step.0),
    self.display_cycle()
))]
pub struct RecursionError {
    /// The functions of the cycle, each with the place where it is defined; each calls the next,
    /// and the last calls the first.
    pub cycle: Vec<(String, String)>,
}

debug_as_text!(RecursionError);

impl RecursionError {
    fn display_cycle(&self) -> String {
        let mut text = String::new();
        for (name, location) in &self.cycle {
            text.push_str(&format!("`{name}` ({location}) calls "));
        }
        text.push_str(&format!(
            "`{}`",
            self.cycle.first().map_or("", |step| &step.0)
        ));
        text
    }
}

/// A definition and everything it calls, as they were at one moment.
#[derive(Debug)]
pub struct Snapshot {
    /// The kernel.
    pub root: Arc<Definition>,
    /// Every definition reached from the root, once, with its body: the root first, then callees
    /// in the order in which a walk in depth meets them.
    pub bodies: Vec<(Arc<Definition>, Arc<Body>)>,
    /// Of each body, where in `bodies` its callees are, in their order.
    calls: Vec<Vec<usize>>,
    /// The sum of all versions.
    pub age: u64,
    /// Which snapshot of this process it is.
    number: u64,
    /// The content of all bodies, their names and which calls which.
    pub fingerprint: Fingerprint,
}

impl Snapshot {
    /// The current state of `root` and everything it calls.
    ///
    /// # Errors
    ///
    /// [`RecursionError`] when a function calls itself, directly or through others.
    pub fn of(root: &Arc<Definition>) -> Result<Arc<Snapshot>, RecursionError> {
        Snapshot::with(root, &Overlays::default())
    }

    /// [`Snapshot::of`] with some functions in the place of others.
    ///
    /// # Errors
    ///
    /// As [`Snapshot::of`], where a function that stands in the place of another one is what calls itself, too.
    pub(crate) fn with(
        root: &Arc<Definition>,
        overlays: &Overlays,
    ) -> Result<Arc<Snapshot>, RecursionError> {
        loop {
            let collected = Collector::collect(root, overlays);
            // Versions only rise: if none has changed since it was read, all the bodies were
            // current together at the moment the last one was read.
            let seen = collected.bodies.iter().zip(&collected.versions);
            if seen.clone().any(|((d, _), seen)| d.version() != *seen) {
                std::thread::yield_now();
                continue;
            }
            if let Some(error) = collected.recursion {
                return Err(error);
            }
            let fingerprint = link_fingerprint(&collected.bodies, &collected.calls);
            return Ok(Arc::new(Snapshot {
                root: root.clone(),
                age: collected.versions.iter().sum(),
                number: next_number(&SNAPSHOTS),
                bodies: collected.bodies,
                calls: collected.calls,
                fingerprint,
            }));
        }
    }

    /// Where in `bodies` the function is that a call of a declaration goes to, in the body at a position. `None`: no
    /// definition stands behind it.
    pub(crate) fn callee(&self, caller: usize, declaration: FuncId) -> Option<usize> {
        let callees = &self.bodies[caller].1.callees;
        let place = callees.iter().position(|(id, _)| *id == declaration)?;
        self.calls[caller].get(place).copied()
    }

    /// Whether no definition of the snapshot has been redefined since it was taken. One atomic
    /// load a definition; no lock, no allocation.
    pub fn is_current(&self) -> bool {
        // Versions only rise, so the sums are equal only if all versions are.
        let age: u64 = self.bodies.iter().map(|(d, _)| d.version()).sum();
        age == self.age
    }
}

/// How many kernels there have been in this process, and how many snapshots.
static KERNELS: AtomicU64 = AtomicU64::new(0);
static SNAPSHOTS: AtomicU64 = AtomicU64::new(0);

/// The number of one more.
fn next_number(of: &AtomicU64) -> u64 {
    of.fetch_add(1, Ordering::Relaxed)
}

fn link_fingerprint(bodies: &[(Arc<Definition>, Arc<Body>)], calls: &[Vec<usize>]) -> Fingerprint {
    let mut digest = digest::Digest::new("kiln snapshot 1");
    digest.number(bodies.len() as u64);
    for ((definition, body), called) in bodies.iter().zip(calls) {
        digest.text(&definition.name);
        digest.bytes(&body.fingerprint.0);
        digest.number(body.function.index() as u64);
        digest.number(body.callees.len() as u64);
        for ((declaration, _), position) in body.callees.iter().zip(called) {
            digest.number(declaration.index() as u64);
            digest.number(*position as u64);
        }
    }
    digest.finish()
}

/// A walk in depth over definitions, with a stack of its own: call chains can be long.
struct Collector<'a> {
    overlays: &'a Overlays,
    bodies: Vec<(Arc<Definition>, Arc<Body>)>,
    calls: Vec<Vec<usize>>,
    versions: Vec<u64>,
    index: HashMap<*const Definition, usize>,
    /// Positions in `bodies` of the functions being walked, and their next callee.
    path: Vec<(usize, usize)>,
    recursion: Option<RecursionError>,
}

impl<'a> Collector<'a> {
    fn collect(root: &Arc<Definition>, overlays: &'a Overlays) -> Collector<'a> {
        let mut this = Collector {
            overlays,
            bodies: Vec::new(),
            calls: Vec::new(),
            versions: Vec::new(),
            index: HashMap::new(),
            path: Vec::new(),
            recursion: None,
        };
        this.enter(root);
        while let Some((position, next)) = this.path.last_mut() {
            let position = *position;
            let (caller, body) = this.bodies[position].clone();
            let Some((_, callee)) = body.callees.get(*next) else {
                this.path.pop();
                continue;
            };
            *next += 1;
            let callee = overlays.called(&caller, callee);
            let called = match this.index.get(&Arc::as_ptr(callee)) {
                None => this.enter(callee),
                Some(&known) => {
                    if let Some(start) = this.path.iter().position(|(p, _)| *p == known) {
                        this.recursion = Some(this.cycle_from(start));
                        return this;
                    }
                    known
                }
            };
            this.calls[position].push(called);
        }
        this
    }

    fn enter(&mut self, definition: &Arc<Definition>) -> usize {
        let (body, version) = definition.read();
        let position = self.bodies.len();
        self.index.insert(Arc::as_ptr(definition), position);
        self.bodies.push((definition.clone(), body));
        self.calls.push(Vec::new());
        self.versions.push(version);
        self.path.push((position, 0));
        position
    }

    fn cycle_from(&self, start: usize) -> RecursionError {
        let step = |&(position, _): &(usize, usize)| {
            let (definition, body) = &self.bodies[position];
            let mut location = body.module.display_location(body.function().location);
            if let Some(original) = self.overlays.original_of(definition) {
                location += &format!(", in the place of `{}`", original.name);
            }
            (definition.name.clone(), location)
        };
        RecursionError {
            cycle: self.path[start..].iter().map(step).collect(),
        }
    }
}

/// A definition with the latest snapshots taken of it: what a kernel handle holds.
#[derive(Debug)]
pub struct CurrentSnapshot {
    root: Arc<Definition>,
    latest: RwLock<Option<Arc<Snapshot>>>,
    /// With functions in the place of others. A snapshot keeps its kernel alive, so that whoever has the overlays
    /// keeps none: each goes with the kernel.
    overlaid: RwLock<Vec<OverlaidSnapshot>>,
    /// Which of this process's kernels it is.
    number: u64,
    /// [`REDEFINITIONS`] when the latest snapshot was last seen to be current; 0 before.
    seen_at: AtomicU64,
    /// The number of the snapshot that was.
    seen: AtomicU64,
}

/// What a kernel is at a moment, in two numbers of this process: as long as they stay, so does its content.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Content {
    /// Which kernel it is.
    pub kernel: u64,
    /// Which snapshot of the kernel it is.
    pub snapshot: u64,
}

#[derive(Debug)]
struct OverlaidSnapshot {
    /// Keeps the address, by which it is found, from being another's.
    overlays: Weak<Overlays>,
    latest: Arc<Snapshot>,
}

impl OverlaidSnapshot {
    fn is_for(&self, overlays: &Arc<Overlays>) -> bool {
        std::ptr::eq(self.overlays.as_ptr(), Arc::as_ptr(overlays))
    }
}

impl CurrentSnapshot {
    /// For this kernel; no snapshot is taken yet.
    pub fn new(root: Arc<Definition>) -> Self {
        Self {
            root,
            latest: RwLock::new(None),
            overlaid: RwLock::default(),
            number: next_number(&KERNELS),
            seen_at: AtomicU64::new(0),
            seen: AtomicU64::new(0),
        }
    }

    /// What the kernel is now, for the look-up of a launch: three loads of memory that launches only read, if nothing
    /// was redefined since the last call.
    ///
    /// # Errors
    ///
    /// As [`Snapshot::of`].
    #[inline]
    pub fn content(&self) -> Result<Content, RecursionError> {
        let seen_at = self.seen_at.load(Ordering::Acquire);
        let snapshot = match seen_at == REDEFINITIONS.load(Ordering::Acquire) {
            true => self.seen.load(Ordering::Relaxed),
            false => self.look_again()?,
        };
        Ok(Content {
            kernel: self.number,
            snapshot,
        })
    }

    /// The number of a current snapshot. It was taken after the redefinitions that are noted with it, so that whoever
    /// finds this note current has a number that is.
    #[cold]
    fn look_again(&self) -> Result<u64, RecursionError> {
        let redefinitions = REDEFINITIONS.load(Ordering::Acquire);
        let number = self.get()?.number;
        // One writes at a time, so that the two stay together.
        let _latest = self.latest.write();
        if self.seen_at.load(Ordering::Relaxed) < redefinitions {
            self.seen.store(number, Ordering::Relaxed);
            self.seen_at.store(redefinitions, Ordering::Release);
        }
        Ok(number)
    }

    /// The fingerprint of a current snapshot, without holding on to it: what the look-up of a
    /// launch needs.
    ///
    /// # Errors
    ///
    /// As [`Snapshot::of`].
    pub fn fingerprint(&self) -> Result<Fingerprint, RecursionError> {
        if let Some(latest) = &*self.latest.read()
            && latest.is_current()
        {
            return Ok(latest.fingerprint);
        }
        Ok(self.get()?.fingerprint)
    }

    /// A snapshot that is current, or was when this was called: the latest one if nothing has been
    /// redefined (a read lock, some atomic loads, no allocation), otherwise a new one.
    ///
    /// # Errors
    ///
    /// As [`Snapshot::of`].
    pub fn get(&self) -> Result<Arc<Snapshot>, RecursionError> {
        if let Some(latest) = &*self.latest.read()
            && latest.is_current()
        {
            return Ok(latest.clone());
        }
        let snapshot = Snapshot::of(&self.root)?;
        // Another thread may have stored a newer one meanwhile; then the next call takes it again.
        *self.latest.write() = Some(snapshot.clone());
        Ok(snapshot)
    }

    /// [`CurrentSnapshot::get`] with some functions in the place of others. It is kept as long as the kernel is, and
    /// somebody has the overlays.
    ///
    /// # Errors
    ///
    /// As [`Snapshot::of`], where a function that stands in the place of another one is what calls itself, too.
    pub fn get_with(&self, overlays: &Arc<Overlays>) -> Result<Arc<Snapshot>, RecursionError> {
        let is_current = |s: &&OverlaidSnapshot| s.is_for(overlays) && s.latest.is_current();
        if let Some(kept) = self.overlaid.read().iter().find(is_current) {
            return Ok(kept.latest.clone());
        }
        let latest = Snapshot::with(&self.root, overlays)?;
        let mut kept = self.overlaid.write();
        kept.retain(|s| s.overlays.strong_count() > 0 && !s.is_for(overlays));
        kept.push(OverlaidSnapshot {
            overlays: Arc::downgrade(overlays),
            latest: latest.clone(),
        });
        Ok(latest)
    }
}
