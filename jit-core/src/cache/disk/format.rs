//! The form of an entry: a header, a digest of all that follows and of the header, and fields behind their lengths.
//!
//! ```text
//! "kiln-jit"  version: u32  length of the body: u64  BLAKE3 of the version, the length and the body
//! body:       key           what made it             what launches need to know   rows put in   code, if there is any
//! ```
//! Any bytes are read without a panic, and what is not whole, of another version or of another key is `None`.

use std::path::PathBuf;

/// How an entry begins.
const MAGIC: &[u8; 8] = b"kiln-jit";

/// The version of the form.
const VERSION: u32 = 1;

/// Bytes before the body.
const HEADER: usize = 8 + 4 + 8 + 32;

/// What an entry is kept under: everything that decides what is in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct EntryKey {
    /// The fields, each name and value behind its length, so that no two lists are the same bytes.
    fields: Vec<u8>,
}

impl EntryKey {
    pub(super) fn new<'a>(fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> EntryKey {
        let mut key = Vec::new();
        for (name, value) in fields {
            put(name.as_bytes(), &mut key);
            put(value.as_bytes(), &mut key);
        }
        EntryKey { fields: key }
    }

    /// The name of its files, without what tells them apart: the digest of the key.
    pub(super) fn file_name(&self) -> String {
        blake3::hash(&self.fields).to_hex().to_string()
    }
}

/// The libLLVM that made code, as far as a change of it shows without opening it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct MadeBy {
    /// The file.
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    /// When the file was changed, in nanoseconds.
    pub(super) changed: u128,
}

/// What is kept of a kernel.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Entry {
    /// What launches need to know of it.
    pub(super) info: Vec<u8>,
    /// What the key says of the rows of intrinsics that hooks have put in.
    pub(super) put_in: Vec<u8>,
    pub(super) code: Option<Vec<u8>>,
    /// What made the code; `None` where no library did.
    pub(super) made_by: Option<MadeBy>,
}

impl Entry {
    /// The bytes of a file.
    pub(super) fn write(&self, key: &EntryKey) -> Vec<u8> {
        let mut body = Vec::new();
        put(&key.fields, &mut body);
        body.push(self.made_by.is_some().into());
        if let Some(MadeBy {
            path,
            bytes,
            changed,
        }) = &self.made_by
        {
            put(path.as_os_str().as_encoded_bytes(), &mut body);
            body.extend(bytes.to_le_bytes());
            body.extend(changed.to_le_bytes());
        }
        put(&self.info, &mut body);
        put(&self.put_in, &mut body);
        body.push(self.code.is_some().into());
        if let Some(code) = &self.code {
            put(code, &mut body);
        }
        let mut file = Vec::with_capacity(HEADER + body.len());
        file.extend(MAGIC);
        file.extend(VERSION.to_le_bytes());
        file.extend((body.len() as u64).to_le_bytes());
        file.extend(digest(VERSION, &body));
        file.extend(body);
        file
    }

    /// What is in a file, if it is one of this form and this key.
    pub(super) fn read(mut file: &[u8], key: &EntryKey) -> Option<Entry> {
        let from = &mut file;
        let magic: &[u8; 8] = chunk(from)?;
        let version = u32::from_le_bytes(*chunk(from)?);
        let length = u64::from_le_bytes(*chunk(from)?);
        let expected: &[u8; 32] = chunk(from)?;
        let is_whole = magic == MAGIC && version == VERSION && from.len() as u64 == length;
        if !is_whole || digest(version, from) != *expected || take(from)? != key.fields {
            return None;
        }
        let made_by = match flag(from)? {
            true => Some(MadeBy {
                path: path(take(from)?)?,
                bytes: u64::from_le_bytes(*chunk(from)?),
                changed: u128::from_le_bytes(*chunk(from)?),
            }),
            false => None,
        };
        let info = take(from)?.to_vec();
        let put_in = take(from)?.to_vec();
        let code = match flag(from)? {
            true => Some(take(from)?.to_vec()),
            false => None,
        };
        from.is_empty().then_some(Entry {
            info,
            put_in,
            code,
            made_by,
        })
    }
}

fn digest(version: u32, body: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&version.to_le_bytes());
    hasher.update(&(body.len() as u64).to_le_bytes());
    hasher.update(body);
    *hasher.finalize().as_bytes()
}

fn put(bytes: &[u8], to: &mut Vec<u8>) {
    to.extend((bytes.len() as u64).to_le_bytes());
    to.extend(bytes);
}

fn take<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(u64::from_le_bytes(*chunk(from)?)).ok()?;
    let (bytes, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(bytes)
}

fn chunk<'a, const N: usize>(from: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (bytes, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(bytes)
}

fn flag(from: &mut &[u8]) -> Option<bool> {
    match chunk::<1>(from)? {
        [0] => Some(false),
        [1] => Some(true),
        _ => None,
    }
}

/// A path as it was written; one that is no text is another file.
fn path(bytes: &[u8]) -> Option<PathBuf> {
    Some(PathBuf::from(std::str::from_utf8(bytes).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(value: &str) -> EntryKey {
        EntryKey::new([("kernel", value), ("options", "O3")])
    }

    /// An entry of 8 KiB with its key, as a kernel of a few lines has it.
    fn entry() -> (EntryKey, Entry) {
        let entry = Entry {
            info: (0..200u8).collect(),
            put_in: b"  puts in a row".to_vec(),
            code: Some((0..8000).map(|i| (i * 7 % 251) as u8).collect()),
            made_by: Some(MadeBy {
                path: PathBuf::from("/lib/libLLVM.so"),
                bytes: 123_456_789,
                changed: 1 << 70,
            }),
        };
        (key("saxpy"), entry)
    }

    #[test]
    fn an_entry_is_read_as_it_was_written() {
        let (key, entry) = entry();
        assert_eq!(Entry::read(&entry.write(&key), &key), Some(entry));
        let small = Entry::default();
        assert_eq!(Entry::read(&small.write(&key), &key), Some(small));
    }

    #[test]
    fn no_bit_can_change() {
        let (key, entry) = entry();
        let file = entry.write(&key);
        assert!(file.len() * 8 >= 65_536, "{} bytes", file.len());
        let mut changed = file.clone();
        for bit in 0..file.len() * 8 {
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Entry::read(&changed, &key), None, "bit {bit}");
            changed[bit / 8] ^= 1 << (bit % 8);
        }
        assert_eq!(changed, file);
    }

    #[test]
    fn no_part_is_taken_for_the_whole() {
        let (key, entry) = entry();
        let file = entry.write(&key);
        for end in 0..file.len() {
            assert_eq!(Entry::read(&file[..end], &key), None, "{end} bytes");
        }
        for more in [&[0][..], &file] {
            assert_eq!(Entry::read(&[&file, more].concat(), &key), None);
        }
        assert_eq!(Entry::read(&file[1..], &key), None);
    }

    #[test]
    fn another_key_s_entry_is_none_whatever_its_name() {
        let (key, entry) = entry();
        let file = entry.write(&key);
        assert_eq!(Entry::read(&file, &self::key("sum")), None);
        // Fields do not run into each other.
        let a = EntryKey::new([("x", "ab"), ("y", "c")]);
        let b = EntryKey::new([("x", "a"), ("by", "c")]);
        assert_ne!(a, b);
        assert_ne!(a.file_name(), b.file_name());
        assert_eq!(Entry::read(&entry.write(&a), &b), None);
    }

    #[test]
    fn a_body_that_someone_else_wrote_under_a_right_digest_panics_nowhere() {
        let (key, entry) = entry();
        let file = entry.write(&key);
        let body = &file[HEADER..];
        let forge = |body: &[u8]| {
            let mut file = file[..12].to_vec();
            file.extend((body.len() as u64).to_le_bytes());
            file.extend(digest(VERSION, body));
            file.extend(body);
            Entry::read(&file, &key)
        };
        assert_eq!(forge(body), Some(entry));
        for end in 0..body.len() {
            assert_eq!(forge(&body[..end]), None);
        }
        for at in 0..body.len().min(400) {
            let mut changed = body.to_vec();
            changed[at] = 0xff;
            forge(&changed);
        }
    }
}
