//! Memory for bytes that are held: taken from the system as a whole, filled page by page as it is used.

use crate::pfs::buffer::Buffer;
use crate::pfs::numbers::Class;
use crate::pfs::trouble::Trouble;
use iolab_pattern::Nest;
use std::ptr::{self, NonNull};

/// A region of the process's memory.
pub(super) struct Staging {
    /// None if the system has none left.
    memory: Option<NonNull<u8>>,
    bytes: usize,
}

// SAFETY: memory of its own, which is used by who has it.
unsafe impl Send for Staging {}

impl Staging {
    /// Of so many bytes.
    pub(super) fn new(bytes: u64) -> Staging {
        let bytes = bytes as usize;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: new pages, wherever there is room.
        let memory = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
        let memory = if memory == libc::MAP_FAILED { None } else { NonNull::new(memory.cast()) };
        Staging { memory, bytes }
    }

    /// Whether there is any.
    pub(super) fn is_there(&self) -> bool {
        self.memory.is_some()
    }

    /// A part of it.
    pub(super) fn bytes(&mut self, at: u64, length: u64) -> &mut [u8] {
        let (at, length) = (at as usize, length as usize);
        let end = at.checked_add(length).filter(|end| *end <= self.bytes);
        let (Some(memory), Some(_)) = (self.memory, end) else {
            panic!("[{at}, {at} + {length}) of a staging memory of {} bytes", self.bytes);
        };
        // SAFETY: within the pages, which nobody else uses as long as this is borrowed.
        unsafe { std::slice::from_raw_parts_mut(memory.as_ptr().add(at), length) }
    }

    /// A set of its bytes, in the order of the set.
    pub(super) fn laid(&self, set: &Nest) -> Result<Buffer, Trouble> {
        let end = set.displacement() + set.root().end();
        let Some(memory) = self.memory.filter(|_| end <= self.bytes as u64) else {
            let text = format!("bytes up to {end} of a staging memory of {}", self.bytes);
            return Err(Trouble::new(Class::Other, text));
        };
        // SAFETY: within the pages, which stay as long as the file is open.
        unsafe { Buffer::of_set(memory.as_ptr(), set) }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if let Some(memory) = self.memory {
            // SAFETY: pages of ours.
            unsafe { libc::munmap(memory.as_ptr().cast(), self.bytes) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_pfs_node::Memory;

    #[test]
    fn what_was_put_somewhere_is_found_in_the_order_of_a_set() {
        let mut staging = Staging::new(1 << 13);
        staging.bytes(5000, 6).copy_from_slice(b"abcdef");
        let laid = staging.laid(&"1 x3/2 every 0 from 5001".parse().unwrap()).unwrap();
        let mut got = [0; 3];
        laid.gather(0, &mut got);
        assert_eq!(&got, b"bdf");
        assert!(staging.laid(&"10 from 8190".parse().unwrap()).is_err());
    }

    #[test]
    fn without_memory_nothing_is_there_and_the_program_goes_on() {
        let staging = Staging::new(1 << 62);
        assert!(!staging.is_there() && staging.laid(&Nest::EMPTY).is_err());
    }
}
