//! Device memory for a run on the host: the buffers of a case at real addresses.
//!
//! A buffer begins where its alignment just allows it, as a slice of a larger one would, and has
//! guard bytes around it, so that a backend that assumes too much or writes beside it is found.

use kiln_jit_core::ir::Type;

use crate::case::{Arg, Case};

/// What is around a buffer.
const GUARD: u8 = 0xC5;

/// Bytes of the guard on each side of a buffer, at least: more than the lanes of a vector reach.
const GUARD_BYTES: usize = 4096;

/// The buffers of a case, for one run.
#[derive(Debug)]
pub struct DeviceMemory {
    buffers: Vec<Buffer>,
}

#[derive(Debug)]
struct Buffer {
    words: Vec<u128>,
    /// Where the buffer begins in `words`, in bytes.
    start: usize,
    len: usize,
}

impl DeviceMemory {
    /// The buffers as they are before the launch.
    pub fn new(case: &Case) -> DeviceMemory {
        let buffers = case.buffers.iter().enumerate().map(|(i, bytes)| {
            let start = GUARD_BYTES + start(case, i);
            let mut all = vec![GUARD; start];
            all.extend_from_slice(bytes);
            let end = (all.len() + GUARD_BYTES).next_multiple_of(16);
            all.resize(end, GUARD);
            let words = all.chunks_exact(16).map(|chunk| {
                let mut word = [0; 16];
                word.copy_from_slice(chunk);
                u128::from_ne_bytes(word)
            });
            Buffer {
                words: words.collect(),
                start,
                len: bytes.len(),
            }
        });
        DeviceMemory {
            buffers: buffers.collect(),
        }
    }

    /// Address and length of each buffer. The addresses are exposed: as long as this lives, they can
    /// be read and written, by those who promise to be alone.
    pub fn ranges(&mut self) -> Vec<(u64, u64)> {
        let ranges = self.buffers.iter_mut().map(|buffer| {
            let address = buffer.words.as_mut_ptr().expose_provenance() + buffer.start;
            (address as u64, buffer.len as u64)
        });
        ranges.collect()
    }

    /// The buffers as they are after the launch.
    ///
    /// # Errors
    /// Something wrote beside a buffer.
    pub fn into_buffers(self) -> Result<Vec<Vec<u8>>, String> {
        let buffers = self.buffers.into_iter().enumerate().map(|(i, buffer)| {
            let all: Vec<u8> = buffer.words.iter().flat_map(|w| w.to_ne_bytes()).collect();
            let (before, rest) = all.split_at(buffer.start);
            let (bytes, behind) = rest.split_at(buffer.len);
            match before.iter().chain(behind).all(|b| *b == GUARD) {
                true => Ok(bytes.to_vec()),
                false => Err(format!("something wrote beside buffer {i}")),
            }
        });
        buffers.collect()
    }
}

/// How far behind a multiple of 16 a buffer begins: as little aligned as its parameters allow.
fn start(case: &Case, buffer: usize) -> usize {
    let kernel = case.kernel();
    let params = kernel.params.iter().zip(&case.args).enumerate();
    let aligns = params.filter(|(_, (_, arg))| **arg == Arg::Buffer(buffer));
    let aligns = aligns.map(|(i, (param, _))| {
        let ty: Type = case.element(i);
        let natural = case.module.types.layout(ty).map_or(16, |l| l.align);
        natural.max(u64::from(param.facts.align)) as usize
    });
    aligns.max().unwrap_or(16) % 16
}
