//! The form in which what compilations give is kept outside the process: fields behind their lengths.
//!
//! Reading takes any bytes: what is no such form is `None`, nothing panics, and memory is asked for as bytes are
//! read, never for what a length claims. Whoever keeps the bytes sees to it that they are those that were written. The form
//! has no version of its own: it is read by the build of Kiln alone that has written it. It is written by hand, so
//! that the types of the IR stand in no serializer's contract, and each structure is taken apart by name, so that a
//! field that is added does not compile until it is written.
//!
//! Rows of intrinsics are functions of the program. They are kept by name and digest, and who reads says
//! which row of this program that is.

use std::hash::Hasher;
use std::sync::Arc;

use super::{Assembled, Code, HiddenInfo, HostCode, KernelInfo, PtxCode};
use crate::abi::{ParamKind, ParamLayout, ParamSlot};
use crate::fault::FaultSite;
use crate::keywords::Keyword as _;
use crate::printed::PrintSite;
use crate::target::Barriers;
use crate::{AddressSpace, HiddenSource, IntrinsicDef, LaunchBounds, Scalar, TypeDigest};

/// Which row of this program has a name and a digest, if one has.
pub type FindRow<'a> = &'a dyn Fn(&str, &[u8; 32]) -> Option<&'static IntrinsicDef>;

impl KernelInfo {
    /// The form in which it is kept.
    pub fn keep(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.put(&mut bytes);
        bytes
    }

    /// What was kept; `None` if it is no such form.
    pub fn read_kept(bytes: &[u8]) -> Option<KernelInfo> {
        whole(bytes, KernelInfo::take)
    }
}

impl Code {
    /// The form in which it is kept. `None`: the code is a module, which the interpreter runs, or of a form that
    /// only its [`CustomCode`](super::CustomCode) knows.
    pub fn keep(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        match self {
            Code::Ptx(ptx) => {
                0u8.put(&mut bytes);
                ptx.put(&mut bytes);
            }
            Code::Host(host) => {
                1u8.put(&mut bytes);
                put_host(host, &mut bytes);
            }
            Code::Interpreted { .. } | Code::Custom(_) => return None,
        }
        Some(bytes)
    }

    /// What was kept; `None` if it is no such form, or this program lacks a row of it.
    pub fn read_kept(bytes: &[u8], rows: FindRow<'_>) -> Option<Code> {
        whole(bytes, |from| match u8::take(from)? {
            0 => PtxCode::take(from).map(Code::Ptx),
            1 => take_host(from, rows).map(Code::Host),
            _ => None,
        })
    }
}

impl IntrinsicDef {
    /// The digest of all that [`hash_content`](IntrinsicDef::hash_content) hashes, BLAKE3.
    pub fn digest(&self) -> [u8; 32] {
        let mut digest = Digest(blake3::Hasher::new());
        self.hash_content(&mut digest);
        *digest.0.finalize().as_bytes()
    }
}

/// A digest that rows hash themselves to.
struct Digest(blake3::Hasher);

impl Hasher for Digest {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Nobody asks a digest for a number.
    fn finish(&self) -> u64 {
        0
    }
}

/// Reads all of the bytes, or nothing.
fn whole<T>(mut bytes: &[u8], take: impl FnOnce(&mut &[u8]) -> Option<T>) -> Option<T> {
    let value = take(&mut bytes)?;
    bytes.is_empty().then_some(value)
}

/// What is written as fields.
trait Kept: Sized {
    fn put(&self, to: &mut Vec<u8>);
    fn take(from: &mut &[u8]) -> Option<Self>;
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Kept for $number {
            fn put(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                let (bytes, rest) = from.split_first_chunk()?;
                *from = rest;
                Some(<$number>::from_le_bytes(*bytes))
            }
        }
    )*};
}
numbers!(u8, u32, u64, u128);

/// Writes a structure field by field.
macro_rules! structures {
    ($($name:ident { $($field:ident),* $(,)? })*) => {$(
        impl Kept for $name {
            fn put(&self, to: &mut Vec<u8>) {
                let $name { $($field),* } = self;
                $($field.put(to);)*
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                $(let $field = Kept::take(from)?;)*
                Some($name { $($field),* })
            }
        }
    )*};
}
structures! {
    KernelInfo {
        name, param_names, layout, hidden, fault_sites, print_sites, kernel_tag, launch_bounds, shared_bytes,
        waits_for_grid,
    }
    HiddenInfo { name, source, ty, element, is_address, bytes, item, location, passed }
    ParamLayout { params, visible, fault_channel, slots, size }
    ParamSlot { offset, size }
    FaultSite { function, location, signed_index, space, assumed, message, values }
    PrintSite { function, location, format, values, to_stderr }
    LaunchBounds { max_threads, min_blocks }
    PtxCode { text, entry, assembled }
    Assembled { image, by }
}

impl Kept for usize {
    fn put(&self, to: &mut Vec<u8>) {
        (*self as u64).put(to);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        usize::try_from(u64::take(from)?).ok()
    }
}

impl Kept for bool {
    fn put(&self, to: &mut Vec<u8>) {
        u8::from(*self).put(to);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        match u8::take(from)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

fn put_bytes(bytes: &[u8], to: &mut Vec<u8>) {
    bytes.len().put(to);
    to.extend_from_slice(bytes);
}

fn take_bytes<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::take(from)?;
    let (bytes, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(bytes)
}

fn take_text<'a>(from: &mut &'a [u8]) -> Option<&'a str> {
    std::str::from_utf8(take_bytes(from)?).ok()
}

impl Kept for String {
    fn put(&self, to: &mut Vec<u8>) {
        put_bytes(self.as_bytes(), to);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        take_text(from).map(str::to_owned)
    }
}

impl Kept for Arc<str> {
    fn put(&self, to: &mut Vec<u8>) {
        put_bytes(self.as_bytes(), to);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        take_text(from).map(Arc::from)
    }
}

impl Kept for Arc<[u8]> {
    fn put(&self, to: &mut Vec<u8>) {
        put_bytes(self, to);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        take_bytes(from).map(Arc::from)
    }
}

impl<T: Kept> Kept for Vec<T> {
    fn put(&self, to: &mut Vec<u8>) {
        self.len().put(to);
        self.iter().for_each(|item| item.put(to));
    }

    /// Grows with what is read: a count says nothing of how much is there.
    fn take(from: &mut &[u8]) -> Option<Self> {
        let mut items = Vec::new();
        for _ in 0..usize::take(from)? {
            items.push(T::take(from)?);
        }
        Some(items)
    }
}

impl<T: Kept> Kept for Option<T> {
    fn put(&self, to: &mut Vec<u8>) {
        self.is_some().put(to);
        self.iter().for_each(|item| item.put(to));
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        Some(match bool::take(from)? {
            true => Some(T::take(from)?),
            false => None,
        })
    }
}

impl Kept for TypeDigest {
    fn put(&self, to: &mut Vec<u8>) {
        self.to_bits().put(to);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        u128::take(from).map(TypeDigest::from_bits)
    }
}

impl Kept for AddressSpace {
    fn put(&self, to: &mut Vec<u8>) {
        put_bytes(self.keyword().as_bytes(), to);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        AddressSpace::from_keyword(take_text(from)?)
    }
}

impl Kept for Scalar {
    fn put(&self, to: &mut Vec<u8>) {
        put_bytes(self.name().as_bytes(), to);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let name = take_text(from)?;
        Scalar::ALL.into_iter().find(|scalar| scalar.name() == name)
    }
}

impl Kept for ParamKind {
    fn put(&self, to: &mut Vec<u8>) {
        match self {
            ParamKind::Value(slot) => {
                0u8.put(to);
                slot.put(to);
            }
            ParamKind::Reference { address, bytes } => {
                1u8.put(to);
                address.put(to);
                bytes.put(to);
            }
            ParamKind::Slice { address, length } => {
                2u8.put(to);
                address.put(to);
                length.put(to);
            }
        }
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        Some(match u8::take(from)? {
            0 => ParamKind::Value(Kept::take(from)?),
            1 => ParamKind::Reference {
                address: Kept::take(from)?,
                bytes: Kept::take(from)?,
            },
            2 => ParamKind::Slice {
                address: Kept::take(from)?,
                length: Kept::take(from)?,
            },
            _ => return None,
        })
    }
}

impl Kept for HiddenSource {
    fn put(&self, to: &mut Vec<u8>) {
        match self {
            HiddenSource::Hook(name) => {
                0u8.put(to);
                name.put(to);
            }
            HiddenSource::Global(initial) => {
                1u8.put(to);
                initial.put(to);
            }
            HiddenSource::FaultChannel => 2u8.put(to),
        }
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        Some(match u8::take(from)? {
            0 => HiddenSource::Hook(Kept::take(from)?),
            1 => HiddenSource::Global(Kept::take(from)?),
            2 => HiddenSource::FaultChannel,
            _ => return None,
        })
    }
}

impl Kept for Barriers {
    fn put(&self, to: &mut Vec<u8>) {
        match self {
            Barriers::Segments => 0u8.put(to),
            Barriers::Coroutines => 1u8.put(to),
        }
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        match u8::take(from)? {
            0 => Some(Barriers::Segments),
            1 => Some(Barriers::Coroutines),
            _ => None,
        }
    }
}

impl<T: Kept + Copy + Default, const N: usize> Kept for [T; N] {
    fn put(&self, to: &mut Vec<u8>) {
        self.iter().for_each(|item| item.put(to));
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let mut items = [T::default(); N];
        for item in &mut items {
            *item = T::take(from)?;
        }
        Some(items)
    }
}

fn put_host(host: &HostCode, to: &mut Vec<u8>) {
    let HostCode {
        object,
        block,
        lanes,
        barriers,
        rows,
        arena_bytes,
        blocks_a_call,
        stack_bytes,
    } = host;
    object.put(to);
    block.put(to);
    lanes.put(to);
    barriers.put(to);
    rows.len().put(to);
    for row in rows {
        put_bytes(row.name.as_bytes(), to);
        row.digest().put(to);
    }
    arena_bytes.put(to);
    blocks_a_call.put(to);
    stack_bytes.put(to);
}

fn take_host(from: &mut &[u8], find: FindRow<'_>) -> Option<HostCode> {
    let object = Kept::take(from)?;
    let block = Kept::take(from)?;
    let lanes = Kept::take(from)?;
    let barriers = Kept::take(from)?;
    let mut rows = Vec::new();
    for _ in 0..usize::take(from)? {
        let name = take_text(from)?;
        rows.push(find(name, &Kept::take(from)?)?);
    }
    Some(HostCode {
        object,
        block,
        lanes,
        barriers,
        rows,
        arena_bytes: Kept::take(from)?,
        blocks_a_call: Kept::take(from)?,
        stack_bytes: Kept::take(from)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Meaning, Scalar, TypePattern};

    static ROW: IntrinsicDef = IntrinsicDef::new(
        "test.row",
        &[],
        TypePattern::Exact(Scalar::U32),
        Meaning::Pure(|_, _| 1),
    );

    static OTHER: IntrinsicDef = ROW.with_version(2);

    fn slot(offset: u32) -> ParamSlot {
        ParamSlot { offset, size: 8 }
    }

    /// One of everything.
    fn info() -> KernelInfo {
        let hidden = |source| HiddenInfo {
            name: "h".to_owned(),
            source,
            ty: "u32".to_owned(),
            element: Some(TypeDigest::from_bits(1 << 100)),
            is_address: true,
            bytes: 4,
            item: None,
            location: "a.rs:1:2".to_owned(),
            passed: Some(ParamKind::Value(slot(8))),
        };
        let site = |space| FaultSite {
            function: "f".to_owned(),
            location: "a.rs:3:4".to_owned(),
            signed_index: true,
            space,
            assumed: Some("x > 0".to_owned()),
            message: Some("assertion failed: x > 0".to_owned()),
            values: Some(Scalar::F16),
        };
        KernelInfo {
            name: "k\u{e4}".to_owned(),
            param_names: vec!["x".to_owned(), String::new()],
            layout: ParamLayout {
                params: vec![
                    ParamKind::Value(slot(0)),
                    ParamKind::Reference {
                        address: slot(8),
                        bytes: 12,
                    },
                    ParamKind::Slice {
                        address: slot(16),
                        length: slot(24),
                    },
                ],
                visible: 2,
                fault_channel: Some(slot(32)),
                slots: vec![slot(0), slot(8)],
                size: 40,
            },
            hidden: vec![
                hidden(HiddenSource::Hook("hook".to_owned())),
                hidden(HiddenSource::Global(None)),
                hidden(HiddenSource::Global(Some(Arc::from([1u8, 2])))),
                hidden(HiddenSource::FaultChannel),
            ],
            fault_sites: AddressSpace::TABLE.iter().map(|(s, _)| site(*s)).collect(),
            print_sites: vec![PrintSite {
                function: "k".to_owned(),
                location: "k.rs:1:2".to_owned(),
                format: "{}\n".to_owned(),
                values: vec![Scalar::Bool, Scalar::I64],
                to_stderr: true,
            }],
            kernel_tag: u64::MAX - 1,
            launch_bounds: Some(LaunchBounds {
                max_threads: 256,
                min_blocks: 2,
            }),
            shared_bytes: 1 << 33,
            waits_for_grid: true,
        }
    }

    fn codes() -> [Code; 2] {
        let ptx = PtxCode {
            text: Arc::from(".version 8.0"),
            entry: "e".to_owned(),
            assembled: Some(Assembled {
                image: Arc::from([0x7f, b'E']),
                by: "hook".to_owned(),
            }),
        };
        let host = HostCode {
            object: Arc::from([1u8, 2, 3]),
            block: [1, 2, 3],
            lanes: 8,
            barriers: Barriers::Coroutines,
            rows: vec![&OTHER, &ROW],
            arena_bytes: [5, 6],
            blocks_a_call: 7,
            stack_bytes: 8,
        };
        [Code::Ptx(ptx), Code::Host(host)]
    }

    fn find(name: &str, digest: &[u8; 32]) -> Option<&'static IntrinsicDef> {
        let mut rows = [&ROW, &OTHER].into_iter();
        rows.find(|row| row.name == name && row.digest() == *digest)
    }

    #[test]
    fn what_was_kept_is_read_again() {
        assert_eq!(KernelInfo::read_kept(&info().keep()), Some(info()));
        for code in codes() {
            let kept = code.keep().expect("plain data");
            let again = Code::read_kept(&kept, &find).expect("it was just kept");
            assert_eq!(format!("{again:?}"), format!("{code:?}"));
            if let Code::Host(host) = again {
                assert!(std::ptr::eq(host.rows[0], &OTHER) && std::ptr::eq(host.rows[1], &ROW));
                assert!(Code::read_kept(&kept, &|_, _| None).is_none());
            }
        }
    }

    #[test]
    fn no_bytes_panic_and_no_part_is_taken_for_the_whole() {
        let read = |bytes: &[u8]| {
            let info = KernelInfo::read_kept(bytes).is_some();
            info || Code::read_kept(bytes, &find).is_some()
        };
        let kept = codes().map(|code| code.keep().expect("plain data"));
        for kept in kept.into_iter().chain([info().keep()]) {
            for end in 0..kept.len() {
                assert!(!read(&kept[..end]), "{end} of {} bytes", kept.len());
            }
            assert!(!read(&[kept.as_slice(), &[0]].concat()));
            for at in 0..kept.len() {
                // Lengths become huge, kinds unknown, texts no UTF-8.
                for value in [0x01, 0x7f, 0xff] {
                    let mut changed = kept.clone();
                    changed[at] ^= value;
                    read(&changed);
                }
            }
        }
    }
}
