//! Fingerprints: a digest of what a module says, the same in every process.
//!
//! The walk writes everything that can change the compiled code or its messages, in an order fixed
//! by the module: signatures, types by structure (numbered when first met), instructions in text order,
//! source files by path. Every list is preceded by its length, and every string is or has an end of its own, so
//! two modules cannot run into the same bytes.

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};

use crate::ir::{
    ArrayLen, Entity, Function, InstData, IntrinsicDef, Module, Region, Type, TypeData,
};

/// A digest of content (BLAKE3, 32 bytes).
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub [u8; 32]);

impl Fingerprint {
    /// The first eight bytes of the fingerprint, for hash tables.
    #[doc(hidden)]
    #[inline]
    pub fn leading_bytes(&self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|i| self.0[i]))
    }
}

impl fmt::Display for Fingerprint {
    /// 64 hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Bytes on their way to the hash, which is faster with many at once.
const BUFFERED: usize = 16 << 10;

/// A hash being fed with length-prefixed items.
pub(super) struct Digest {
    hasher: blake3::Hasher,
    buffer: Vec<u8>,
}

impl Digest {
    /// A digest that differs from those of other subjects.
    pub(super) fn new(subject: &str) -> Digest {
        let mut digest = Digest {
            hasher: blake3::Hasher::new(),
            buffer: Vec::with_capacity(1024),
        };
        digest.text(subject);
        digest
    }

    fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFERED {
            self.hasher.update(&self.buffer);
            self.buffer.clear();
        }
    }

    pub(super) fn number(&mut self, number: u64) {
        self.feed(&number.to_le_bytes());
    }

    pub(super) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.feed(bytes);
    }

    /// What a value says of itself, of plain enums, numbers, texts and entities: nothing that differs from
    /// process to process.
    fn value(&mut self, value: &impl Hash) {
        value.hash(&mut Feed(self));
    }

    pub(super) fn finish(mut self) -> Fingerprint {
        self.hasher.update(&self.buffer);
        Fingerprint(*self.hasher.finalize().as_bytes())
    }
}

/// A digest that values hash themselves to.
struct Feed<'a>(&'a mut Digest);

impl Hasher for Feed<'_> {
    fn write(&mut self, bytes: &[u8]) {
        self.0.feed(bytes);
    }

    /// Nobody asks a digest for a number before its end.
    fn finish(&self) -> u64 {
        0
    }
}

/// The digest of what a row of intrinsics says, with its version and place.
pub(crate) fn row_digest(row: &IntrinsicDef) -> Fingerprint {
    let mut digest = Digest::new("kiln row 1");
    row.hash_content(&mut Feed(&mut digest));
    digest.finish()
}

/// The fingerprint of a module, its functions' bodies and declarations included.
pub(super) fn content_digest(module: &Module) -> Fingerprint {
    let mut walk = Walk {
        digest: Digest::new("kiln module 6"),
        module,
        types: HashMap::new(),
    };
    walk.digest.number(module.phase as u64);
    walk.digest.number(module.intrinsics.len() as u64);
    for def in module.intrinsics.values() {
        def.hash_content(&mut Feed(&mut walk.digest));
    }
    walk.digest.value(&(&module.files, &module.inlined));
    walk.digest.number(module.globals.len() as u64);
    for global in module.globals.values() {
        walk.digest.text(&global.name);
        walk.ty(global.ty);
        walk.digest.bytes(&global.bytes);
    }
    walk.digest.number(module.hidden.len() as u64);
    for hidden in module.hidden.values() {
        walk.digest.text(&hidden.name);
        walk.ty(hidden.ty);
        walk.digest.value(&(&hidden.source, hidden.location));
    }
    walk.digest.number(module.functions.len() as u64);
    for function in module.functions.values() {
        walk.signature(function);
        walk.variables(function);
        walk.region(function, function.body);
        walk.assertions(function);
    }
    walk.digest.finish()
}

struct Walk<'a> {
    digest: Digest,
    module: &'a Module,
    /// Types met so far and their numbers; only looked up, never iterated.
    types: HashMap<Type, u64>,
}

impl Walk<'_> {
    fn ty(&mut self, ty: Type) {
        if let Some(&known) = self.types.get(&ty) {
            self.digest.number(known);
            return;
        }
        let number = self.types.len() as u64;
        self.types.insert(ty, number);
        self.digest.number(number);
        let module = self.module;
        match module.types.data(ty) {
            TypeData::Unit => self.digest.text("unit"),
            TypeData::Scalar(s) => self.digest.text(s.name()),
            TypeData::Vector { element, lanes } => {
                self.digest.text("vector");
                self.digest.text(element.name());
                self.digest.number((*lanes).into());
            }
            TypeData::Array { element, len } => {
                self.digest.text("array");
                self.digest.value(len as &ArrayLen);
                self.ty(*element);
            }
            TypeData::Struct(id) => {
                let data = module.types.struct_data(*id);
                self.digest.text("struct");
                self.digest.text(&data.name);
                self.digest.number(data.align);
                self.digest.number(data.fields.len() as u64);
                for (name, ty) in &data.fields {
                    self.digest.text(name);
                    self.ty(*ty);
                }
            }
            TypeData::Pointer {
                pointee,
                space,
                mutable,
            } => {
                self.digest.text("pointer");
                self.digest.value(&(space, mutable));
                self.ty(*pointee);
            }
            TypeData::Slice {
                element,
                space,
                mutable,
                wide,
            } => {
                self.digest.text("slice");
                self.digest.value(&(space, mutable, wide));
                self.ty(*element);
            }
            TypeData::Param(param) => {
                self.digest.text("param");
                self.digest.number(param.index() as u64);
            }
        }
    }

    fn signature(&mut self, function: &Function) {
        self.digest.text(&function.name);
        self.digest.value(&(
            function.kind,
            function.is_declaration,
            function.launch_bounds,
            function.choices,
            function.inline,
            &function.attributes,
        ));
        self.digest.number(function.type_params.len() as u64);
        for param in &function.type_params {
            self.digest.text(&param.name);
            self.digest.value(&param.bound);
        }
        self.digest.number(function.const_params.len() as u64);
        for param in &function.const_params {
            self.digest.text(&param.name);
            self.ty(param.ty);
        }
        self.digest.number(function.params.len() as u64);
        for param in &function.params {
            self.digest.text(&param.name);
            self.digest
                .value(&(param.value, param.passing, param.facts, param.hidden));
            self.ty(function.type_of(param.value));
            self.digest.value(&param.location);
        }
        self.ty(function.result);
    }

    fn variables(&mut self, function: &Function) {
        self.digest.number(function.vars.len() as u64);
        for var in function.vars.values() {
            self.digest.text(&var.name);
            self.ty(var.ty);
        }
        self.digest.number(function.shared.len() as u64);
        for shared in function.shared.values() {
            self.digest.text(&shared.name);
            self.ty(shared.ty);
            self.digest.number(shared.align.into());
        }
    }

    fn assertions(&mut self, function: &Function) {
        self.digest.number(function.assertions.len() as u64);
        for assertion in &function.assertions {
            self.digest.text(&assertion.message);
            self.digest
                .value(&(assertion.condition, assertion.location));
        }
    }

    fn region(&mut self, function: &Function, region: Region) {
        let insts = &function.regions[region].insts;
        self.digest.number(insts.len() as u64);
        for &inst in insts {
            let node = &function.insts[inst];
            self.digest.value(&(node.location, node.fast));
            self.data(function, &node.data);
            self.digest.value(&node.result);
            if let Some(result) = node.result {
                self.ty(function.type_of(result));
            }
            for inner in node.data.regions() {
                self.region(function, inner);
            }
        }
    }

    /// An operation; types that it names are said in full.
    fn data(&mut self, function: &Function, data: &InstData) {
        self.digest.value(data);
        match data {
            InstData::Call { type_args, .. } => {
                for &ty in type_args {
                    self.ty(ty);
                }
            }
            InstData::For { index, .. } => self.ty(function.type_of(*index)),
            _ => {}
        }
    }
}
