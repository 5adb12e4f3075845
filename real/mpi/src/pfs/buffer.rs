//! The program's memory of a call: `count` elements of a datatype behind an address.

use super::trouble::Trouble;
use super::typemap;
use iolab_pattern::{Nest, Shape};
use iolab_pfs_node::Memory;

/// Zeros are laid out in pieces of so many bytes.
const ZEROS: usize = 1 << 16;

/// Where the bytes of a call lie.
pub(crate) struct Buffer {
    /// The lowest byte.
    lowest: *mut u8,
    bytes: u64,
    /// How they lie from there on, if not in one row.
    laid: Option<Nest>,
}

// SAFETY: it is the program's memory, which is ours until the call is over, in whichever thread.
unsafe impl Send for Buffer {}

impl Buffer {
    /// # Safety
    /// The program has memory for `count` elements of that datatype at the address, until the end of
    /// the call.
    pub(crate) unsafe fn new(
        address: usize,
        count: u64,
        datatype: usize,
    ) -> Result<Buffer, Trouble> {
        let none = Buffer { lowest: std::ptr::null_mut(), bytes: 0, laid: None };
        if count == 0 {
            return typemap::check(datatype).map(|()| none);
        }
        let datatype = typemap::of(datatype)?;
        let (origin, laid) = datatype.buffer(count)?;
        let bytes = laid.root().size();
        if bytes == 0 {
            return Ok(none);
        }
        let lowest = address.wrapping_add_signed(origin as isize) as *mut u8;
        let is_row = matches!(laid.root().shape(), Shape::Bytes(_));
        Ok(Buffer { lowest, bytes, laid: (!is_row).then_some(laid) })
    }

    /// Bytes of ours, in the order of a set of them.
    ///
    /// # Safety
    /// There must be memory as far as the set goes, for as long as this lasts.
    pub(crate) unsafe fn of_set(memory: *mut u8, set: &Nest) -> Result<Buffer, Trouble> {
        let laid = Nest::new(0, 0, set.root().clone())?;
        let lowest = memory.wrapping_add(set.displacement() as usize);
        let is_row = matches!(laid.root().shape(), Shape::Bytes(_));
        Ok(Buffer { lowest, bytes: laid.root().size(), laid: (!is_row).then_some(laid) })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Where the bytes from `at` on are, if they lie in one row.
    pub(crate) fn place(&self, at: u64, bytes: usize) -> Option<*mut u8> {
        self.check(at, bytes);
        // SAFETY: within the program's memory.
        self.laid.is_none().then(|| unsafe { self.lowest.add(at as usize) })
    }

    fn check(&self, at: u64, bytes: usize) {
        let end = at.checked_add(bytes as u64);
        assert!(
            end.is_some_and(|end| end <= self.bytes),
            "bytes [{at}, {at} + {bytes}) of a buffer of {}",
            self.bytes
        );
    }

    /// Copies bytes of it.
    fn read(&self, at: u64, to: &mut [u8]) {
        self.check(at, to.len());
        let Some(laid) = &self.laid else {
            // SAFETY: within the program's memory, by the promise of `new`.
            unsafe { self.lowest.add(at as usize).copy_to(to.as_mut_ptr(), to.len()) };
            return;
        };
        let cut = laid.cut(at, at + to.len() as u64);
        let Some(low) = cut.chains().iter().map(|chain| chain.offset).min() else { return };
        // SAFETY: from the lowest byte of the cut to its highest, within the program's memory.
        let row = unsafe {
            std::slice::from_raw_parts(self.lowest.add(low as usize), (cut.end() - low) as usize)
        };
        cut.gather(row, low, to).expect("the cut is as long as its bytes");
    }

    /// Copies to bytes of it.
    fn write(&self, at: u64, from: &[u8]) {
        self.check(at, from.len());
        let Some(laid) = &self.laid else {
            // SAFETY: as above.
            unsafe { self.lowest.add(at as usize).copy_from(from.as_ptr(), from.len()) };
            return;
        };
        let cut = laid.cut(at, at + from.len() as u64);
        let Some(low) = cut.chains().iter().map(|chain| chain.offset).min() else { return };
        // SAFETY: as above; nobody else uses the memory of a call that reads.
        let row = unsafe {
            std::slice::from_raw_parts_mut(
                self.lowest.add(low as usize),
                (cut.end() - low) as usize,
            )
        };
        cut.scatter(from, row, low).expect("the cut is as long as its bytes");
    }
}

impl Memory for Buffer {
    fn row(&self, at: u64, bytes: usize) -> Option<&[u8]> {
        self.check(at, bytes);
        if self.laid.is_some() || bytes == 0 {
            return None;
        }
        // SAFETY: within the program's memory, which does not change during a call that writes.
        Some(unsafe { std::slice::from_raw_parts(self.lowest.add(at as usize), bytes) })
    }

    fn gather(&self, at: u64, to: &mut [u8]) {
        self.read(at, to);
    }

    fn scatter(&mut self, at: u64, from: &[u8]) {
        self.write(at, from);
    }

    fn zero(&mut self, mut at: u64, bytes: u64) {
        let zeros = vec![0; bytes.min(ZEROS as u64) as usize];
        let end = at + bytes;
        while at < end {
            let piece = (end - at).min(zeros.len() as u64) as usize;
            self.write(at, &zeros[..piece]);
            at += piece as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(memory: &mut [u8], lowest: usize, laid: &str) -> Buffer {
        let laid: Nest = laid.parse().unwrap();
        let bytes = laid.root().size();
        let lowest = memory[lowest..].as_mut_ptr();
        Buffer { lowest, bytes, laid: Some(laid) }
    }

    #[test]
    fn bytes_go_where_the_datatype_has_them_and_nowhere_else() {
        let mut memory = *b"abcdefghijklmnopqrstuvwxyz";
        let mut all = buffer(&mut memory, 1, "2 x4/5");
        let mut got = [0; 5];
        all.gather(1, &mut got);
        assert_eq!(&got, b"cghlm");
        all.scatter(3, b"123");
        all.zero(7, 1);
        assert_eq!(&memory, b"abcdefg1ijk23nopq\0stuvwxyz");
    }

    #[test]
    #[should_panic(expected = "of a buffer of 8")]
    fn what_lies_behind_a_buffer_is_never_touched() {
        let mut memory = [0; 32];
        buffer(&mut memory, 0, "2 x4/5").scatter(7, b"12");
    }
}
