//! What runs later: the order of a device's work, by what it uses.
//!
//! A launch returns while it runs, and by then its borrows have ended. In one stream the order of launches is the
//! order of the program; between streams it would be nobody's. So each buffer records which streams have used it:
//!
//! - A *stream* is one order of a device's work. It has a place among the streams of its device, and counts what it
//!   was given, each time after the driver has taken it. So an event that is recorded once the count was read as `n`
//!   comes after the first `n` of the stream's work.
//! - A buffer has its [`Uses`]: the last that wrote it, as stream and number, and the streams that have read it since.
//! - Before work is given to a stream, the stream is made to wait for the last write of each buffer that the work
//!   reads or writes, and for the reads of each that it writes, as far as they were given to other streams and it has
//!   not waited for as much of these before. Afterwards the work is noted as the buffer's use.
//!
//! The host takes part: a copy is work of a stream, and memory is given back behind the last use.

use std::sync::atomic::AtomicU64;

/// Which streams have used a buffer since it was written last.
///
/// Whoever changes it has the buffer: a launch that writes has borrowed it as `&mut`, and those that read at the same
/// time only add themselves.
#[derive(Debug, Default)]
pub struct Uses {
    /// The stream that wrote last, in the upper 16 bits, and which of its work that was.
    _writer: AtomicU64,
    /// A bit for each stream that has read since.
    _readers: AtomicU64,
}
