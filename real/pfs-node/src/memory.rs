//! The program's memory of a call, as a row of bytes in the order of the view.

/// Bytes of a program that a call writes to or reads from a file.
pub trait Memory {
    /// The bytes from `at` on, if they lie in one row: then nothing is copied to send them.
    fn row(&self, at: u64, bytes: usize) -> Option<&[u8]>;

    /// Copies the bytes from `at` on to `to`.
    fn gather(&self, at: u64, to: &mut [u8]);

    /// Copies `from` to the bytes from `at` on.
    fn scatter(&mut self, at: u64, from: &[u8]);

    /// Makes `bytes` bytes from `at` on zeros.
    fn zero(&mut self, at: u64, bytes: u64);
}

/// The memory of a call that has none.
#[derive(Clone, Copy, Debug)]
pub struct NoMemory;

impl Memory for NoMemory {
    fn row(&self, _at: u64, _bytes: usize) -> Option<&[u8]> {
        None
    }

    fn gather(&self, _at: u64, _to: &mut [u8]) {}

    fn scatter(&mut self, _at: u64, _from: &[u8]) {}

    fn zero(&mut self, _at: u64, _bytes: u64) {}
}
