//! Copies of rows that lie apart: rectangles of matrices, and boxes of several.
//!
//! A backend copies rows as it can, one after the other if it has nothing better. What is asked of it has been looked at
//! here: rows that follow each other on both sides are one, so that a copy without gaps is a copy like any other.

use std::mem::MaybeUninit;

use crate::device::Device;
use crate::error::Result;
use crate::order::{Sharing, Uses};
use crate::stream::outside_of_calls;

/// How much is copied: rows of bytes, as many in each plane.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Rows {
    /// Bytes of a row.
    pub bytes: usize,
    /// Rows of a plane.
    pub rows: usize,
    /// Planes.
    pub planes: usize,
}

/// Where rows lie.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Laid {
    /// Where the first row begins: an address of a device, or an offset in memory of the host.
    pub start: u64,
    /// Bytes from one row to the next, at least as many as a row has.
    pub pitch: usize,
    /// Bytes from one plane to the next, a multiple of those from one row to the next.
    pub plane: usize,
}

impl Laid {
    /// Where a row begins.
    fn at(&self, (plane, row): (usize, usize)) -> u64 {
        self.start + (plane * self.plane + row * self.pitch) as u64
    }
}

impl Rows {
    fn is_empty(&self) -> bool {
        self.bytes == 0 || self.rows == 0 || self.planes == 0
    }

    /// Bytes from the first of the first row to the last of the last.
    pub(crate) fn span(&self, laid: &Laid) -> usize {
        (self.planes - 1) * laid.plane + (self.rows - 1) * laid.pitch + self.bytes
    }

    /// All rows, as plane and row.
    fn each(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let rows = self.rows;
        (0..self.planes).flat_map(move |plane| (0..rows).map(move |row| (plane, row)))
    }

    /// As few rows as there can be in place of these: those that follow each other on both sides are one.
    fn joined(mut self, to: &mut Laid, from: &mut Laid) -> Rows {
        for _ in 0..2 {
            let follows = |laid: &Laid| laid.pitch == self.bytes;
            let is_one = self.rows == 1 || follows(to) && follows(from);
            if !is_one || self.rows * self.planes == 1 {
                break;
            }
            for laid in [&mut *to, &mut *from] {
                laid.pitch = laid.plane;
                laid.plane *= self.planes;
            }
            self = Rows {
                bytes: self.bytes * self.rows,
                rows: self.planes,
                planes: 1,
            };
        }
        self
    }

    /// Copies row by row.
    ///
    /// # Errors
    /// The first of `copy`, which is given where a row goes, and where it is from.
    pub(crate) fn one_by_one<E>(
        &self,
        (to, from): (Laid, Laid),
        mut copy: impl FnMut(u64, u64, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rows = self.each();
        rows.try_for_each(|row| copy(to.at(row), from.at(row), self.bytes))
    }

    /// [`Rows::one_by_one`] of bytes of the host.
    ///
    /// # Errors
    /// The first of `upload`.
    pub(crate) fn upload_one_by_one<E>(
        &self,
        to: Laid,
        (bytes, from): (&[MaybeUninit<u8>], Laid),
        mut upload: impl FnMut(u64, &[MaybeUninit<u8>]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.one_by_one((to, from), |to, from, count| {
            upload(to, &bytes[from as usize..][..count])
        })
    }

    /// [`Rows::one_by_one`] to bytes of the host.
    ///
    /// # Errors
    /// The first of `download`.
    pub(crate) fn download_one_by_one<E>(
        &self,
        from: Laid,
        (bytes, to): (&mut [u8], Laid),
        mut download: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.one_by_one((to, from), |to, from, count| {
            download(from, &mut bytes[to as usize..][..count])
        })
    }
}

impl Device {
    /// Copies rows between memory of the device: `to` behind all its uses, `from` behind the last that wrote it. Nobody
    /// waits for it here.
    ///
    /// # Errors
    /// A device that has failed.
    pub fn copy_rows(
        &self,
        (mut to, to_uses): (Laid, &Uses),
        (mut from, from_uses): (Laid, &Uses),
        rows: Rows,
    ) -> Result<()> {
        outside_of_calls()?;
        if rows.is_empty() {
            return Ok(());
        }
        let rows = rows.joined(&mut to, &mut from);
        if rows.rows == 1 {
            return self.copy((to.start, to_uses), (from.start, from_uses), rows.bytes);
        }
        let (backend, streams) = (&**self.backend(), self.streams());
        let _shared = Sharing::of([(to_uses, true), (from_uses, false)]);
        let stream = streams.writer_of(from_uses);
        let copied = || {
            streams.order(backend, stream, from_uses, false)?;
            streams.order(backend, stream, to_uses, true)?;
            let copied = match stream.work() {
                Some(work) => work.copy_rows(to, from, rows),
                None => backend.copy_rows(to, from, rows),
            };
            // One that failed may have begun.
            let number = stream.count();
            stream.note(from_uses, false, number);
            stream.note(to_uses, true, number);
            copied
        };
        self.told(copied())
    }

    /// Copies rows to the device, behind all uses of the memory there.
    ///
    /// # Errors
    /// A device that has failed.
    pub fn upload_rows(
        &self,
        (mut to, uses): (Laid, &Uses),
        (bytes, mut from): (&[MaybeUninit<u8>], Laid),
        rows: Rows,
    ) -> Result<()> {
        outside_of_calls()?;
        if rows.is_empty() {
            return Ok(());
        }
        let rows = rows.joined(&mut to, &mut from);
        let start = from.start as usize;
        if rows.rows == 1 {
            return self.upload(to.start, &bytes[start..start + rows.bytes], uses);
        }
        let bytes = &bytes[start..start + rows.span(&from)];
        from.start = 0;
        let (backend, streams) = (&**self.backend(), self.streams());
        let _shared = Sharing::of([(uses, true)]);
        let stream = streams.writer_of(uses);
        let copied = || {
            streams.order(backend, stream, uses, true)?;
            let copied = match stream.work() {
                Some(work) => work.upload_rows(to, bytes, from, rows),
                None => backend.upload_rows(to, bytes, from, rows),
            };
            stream.note(uses, true, stream.count());
            copied
        };
        self.told(copied())
    }

    /// Copies rows from the device, behind the last use that wrote the memory there, one behind the other to the host.
    ///
    /// # Errors
    /// A device that has failed.
    pub fn download_rows(
        &self,
        (mut from, uses): (Laid, &Uses),
        bytes: &mut [u8],
        rows: Rows,
    ) -> Result<()> {
        outside_of_calls()?;
        if rows.is_empty() {
            return Ok(());
        }
        let mut to = Laid {
            start: 0,
            pitch: rows.bytes,
            plane: rows.bytes * rows.rows,
        };
        let rows = rows.joined(&mut to, &mut from);
        let bytes = &mut bytes[..rows.span(&to)];
        if rows.rows == 1 {
            return self.download(from.start, bytes, uses);
        }
        let (backend, streams) = (&**self.backend(), self.streams());
        let _shared = Sharing::of([(uses, false)]);
        let stream = streams.writer_of(uses);
        let copied = match stream.work() {
            Some(work) => work.download_rows(from, bytes, to, rows),
            None => backend.download_rows(from, bytes, to, rows),
        };
        if copied.is_err() {
            // It may have begun.
            stream.note(uses, false, stream.count());
        }
        self.waited(copied)
    }
}
