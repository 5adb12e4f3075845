//! The program's memory of a call on a view of data representation external32: in the file, all
//! numbers are big-endian and have the sizes that MPI lays down.
//!
//! Numbers are converted by MPI, to and from a copy of the bytes as the file has them, in the program's own
//! thread: before a write begins, and when the end of a read is told. What lies behind the end of the file is
//! left alone. MPI is given rows of its own types only: stock MPICH ends the program over others.

use super::buffer::Buffer;
use super::numbers::Class;
use super::trouble::Trouble;
use super::typemap::{self, Numbers};
use crate::profiling;
use iolab_pfs_node::Memory;
use iolab_vocab::Direction;
use std::ffi::CStr;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What MPI calls it.
pub(super) const NAME: &CStr = c"external32";
/// Numbers that MPI converts at a time: its functions count them in 32 bits.
const ROW_MAX: u64 = 1 << 20;
/// Bytes of memory that are converted at a time, if elements are not larger.
const PIECE_BYTES: u64 = 1 << 20;

/// The bytes as the file has them.
#[derive(Clone)]
pub(super) struct Packed(Arc<Mutex<Vec<u8>>>);

/// Where the program has its data, and of which numbers it is made.
pub(super) struct External {
    buffer: Buffer,
    count: u64,
    /// Numbers of an element, in the order of its type.
    numbers: Vec<Numbers>,
    /// Bytes of an element in memory and in the file.
    element: (u64, u64),
    direction: Direction,
    pub(super) packed: Packed,
}

/// Bytes in the file of one element of a type of MPI's own, if it has a form there. Found by converting one:
/// `MPI_Pack_external_size` of Open MPI says of some more than it makes.
pub(super) fn size_of(datatype: usize) -> Option<i64> {
    let (zeros, mut packed, mut position) = ([0u64; 8], [0u64; 8], 0isize);
    let (from, to) = (zeros.as_ptr() as usize, packed.as_mut_ptr() as usize);
    let (name, at) = (NAME.as_ptr() as usize, &raw mut position as usize);
    // SAFETY: no number is larger than both places.
    let answer =
        unsafe { profiling::pack_external(name, from, 1, datatype, to, size_of_val(&packed), at) };
    (answer == 0 && position >= 0).then_some(position as i64)
}

impl Packed {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl External {
    /// # Safety
    /// The program has memory for `count` elements of that datatype at the address, until the end of
    /// the call.
    pub(super) unsafe fn new(
        address: usize,
        count: u64,
        datatype: usize,
        direction: Direction,
    ) -> Result<External, Trouble> {
        typemap::check(datatype)?;
        let numbers = typemap::numbers(datatype)?;
        let sum = |bytes: fn(&Numbers) -> u64| {
            numbers.iter().map(|it| bytes(it).saturating_mul(it.count)).fold(0, u64::saturating_add)
        };
        let element = (sum(|it| it.in_memory), sum(|it| it.in_file));
        let bytes = count.checked_mul(element.1).and_then(|it| usize::try_from(it).ok());
        let Some(bytes) = bytes.filter(|&bytes| bytes <= isize::MAX as usize) else {
            return Err(Trouble::new(Class::Count, format!("a count of {count}")));
        };
        // SAFETY: the caller's promise.
        let buffer = unsafe { Buffer::new(address, count, datatype)? };
        let packed = Packed(Arc::new(Mutex::new(vec![0; bytes])));
        let external = External { buffer, count, numbers, element, direction, packed };
        if direction == Direction::Write {
            external.pack()?;
        }
        Ok(external)
    }

    /// How many bytes it has in the file.
    pub(super) fn bytes(&self) -> u64 {
        self.count * self.element.1
    }

    /// So many bytes of the file were moved: the program's memory has what was read. How many bytes of
    /// memory that is.
    pub(super) fn moved(&mut self, bytes: u64) -> Result<u64, Trouble> {
        let (in_memory, in_file) = self.element;
        if in_file == 0 {
            return Ok(0);
        }
        let end = bytes.div_ceil(in_file);
        let rest = self.row_of(bytes % in_file);
        let moved = bytes / in_file * in_memory + rest;
        if self.direction == Direction::Read {
            for piece in self.pieces(end) {
                let mut native = vec![0; ((piece.end - piece.start) * in_memory) as usize];
                self.convert(&piece, &mut native)?;
                let from = piece.start * in_memory;
                let there = (moved - from).min(native.len() as u64) as usize;
                self.buffer.scatter(from, &native[..there]);
            }
        }
        Ok(moved)
    }

    /// Bytes in memory of the whole numbers among the first bytes of an element in the file.
    fn row_of(&self, mut bytes: u64) -> u64 {
        let mut in_memory = 0;
        for row in self.numbers.iter().filter(|row| row.in_file > 0) {
            let whole = (bytes / row.in_file).min(row.count);
            in_memory += whole * row.in_memory;
            bytes -= whole * row.in_file;
            if whole < row.count {
                break;
            }
        }
        in_memory
    }

    fn pack(&self) -> Result<(), Trouble> {
        for piece in self.pieces(self.count) {
            let mut native = vec![0; ((piece.end - piece.start) * self.element.0) as usize];
            self.buffer.gather(piece.start * self.element.0, &mut native);
            self.convert(&piece, &mut native)?;
        }
        Ok(())
    }

    /// The first so many elements, some at a time.
    fn pieces(&self, end: u64) -> Vec<Range<u64>> {
        let step = (PIECE_BYTES / self.element.0.max(1)).max(1);
        (0..end).step_by(step as usize).map(|from| from..(from + step).min(end)).collect()
    }

    /// Has MPI convert elements between their bytes as memory has them and those of the file.
    fn convert(&self, elements: &Range<u64>, native: &mut [u8]) -> Result<(), Trouble> {
        let mut packed = self.packed.bytes();
        let (mut here, mut there) = (0usize, (elements.start * self.element.1) as usize);
        let once = if self.numbers.len() == 1 { elements.end - elements.start } else { 1 };
        for _ in (elements.start..elements.end).step_by(once.max(1) as usize) {
            for row in &self.numbers {
                let mut left = row.count * once;
                while left > 0 {
                    let count = left.min(ROW_MAX);
                    let (in_memory, in_file) =
                        ((count * row.in_memory) as usize, (count * row.in_file) as usize);
                    let native = &mut native[here..here + in_memory];
                    let packed = &mut packed[there..there + in_file];
                    self.convert_row(row, count as usize, native, packed)?;
                    (here, there, left) = (here + in_memory, there + in_file, left - count);
                }
            }
        }
        Ok(())
    }

    /// Converts numbers of one type that lie one behind the other, or have the gaps in memory that MPI looks for.
    fn convert_row(
        &self,
        row: &Numbers,
        count: usize,
        native: &mut [u8],
        packed: &mut [u8],
    ) -> Result<(), Trouble> {
        if row.is_dense() {
            return self.convert_dense(row.datatype, count, native, packed);
        }
        let mut apart = vec![0; count * row.extent as usize];
        // SAFETY: as much memory as that many of its extents.
        let mut laid =
            unsafe { Buffer::new(apart.as_mut_ptr() as usize, count as u64, row.datatype)? };
        if self.direction == Direction::Write {
            laid.scatter(0, native);
        }
        self.convert_dense(row.datatype, count, &mut apart, packed)?;
        if self.direction == Direction::Read {
            laid.gather(0, native);
        }
        Ok(())
    }

    fn convert_dense(
        &self,
        datatype: usize,
        count: usize,
        native: &mut [u8],
        packed: &mut [u8],
    ) -> Result<(), Trouble> {
        let (name, mut position) = (NAME.as_ptr() as usize, 0isize);
        let (memory, file) = (native.as_mut_ptr() as usize, packed.as_mut_ptr() as usize);
        let (room, at) = (packed.len(), &raw mut position as usize);
        // SAFETY: as many numbers of that type are in both places.
        let answer = unsafe {
            match self.direction {
                Direction::Write => {
                    profiling::pack_external(name, memory, count, datatype, file, room, at)
                }
                Direction::Read => {
                    profiling::unpack_external(name, file, room, at, memory, count, datatype)
                }
            }
        };
        match answer {
            0 => Ok(()),
            code => {
                let text = format!("MPI converts no numbers to external32: code {code}");
                Err(Trouble::new(Class::Conversion, text))
            }
        }
    }
}

impl Memory for Packed {
    fn row(&self, _at: u64, _bytes: usize) -> Option<&[u8]> {
        None
    }

    fn gather(&self, at: u64, to: &mut [u8]) {
        to.copy_from_slice(&self.bytes()[at as usize..][..to.len()]);
    }

    fn scatter(&mut self, at: u64, from: &[u8]) {
        self.bytes()[at as usize..][..from.len()].copy_from_slice(from);
    }

    fn zero(&mut self, at: u64, bytes: u64) {
        self.bytes()[at as usize..][..bytes as usize].fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_within_an_element_has_its_whole_numbers() {
        let row = |count, in_memory, in_file| Numbers {
            datatype: 0,
            count,
            in_memory,
            extent: in_memory,
            in_file,
        };
        let external = External {
            // SAFETY: no bytes at all.
            buffer: unsafe { Buffer::new(0, 0, 0) }.unwrap(),
            count: 0,
            numbers: vec![row(2, 8, 4), row(1, 2, 2)],
            element: (18, 10),
            direction: Direction::Read,
            packed: Packed(Arc::default()),
        };
        let rows = [0, 3, 4, 9, 10].map(|bytes| external.row_of(bytes));
        assert_eq!(rows, [0, 0, 8, 16, 18]);
    }
}
