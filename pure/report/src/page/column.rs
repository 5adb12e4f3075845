//! Columns of numbers as the bytes of the exchange format: variable-length integers, then deflate.
//!
//! A column holds differences from what a reader would guess, so most values are small or zero and
//! deflate does the rest. All values stay within ±2^52, which a browser's numbers hold exactly.

use flate2::{Compression, write::ZlibEncoder};
use iolab_vocab::varint;
use std::io::Write;

/// Largest magnitude of a stored value: differences of two of them are still exact in a double.
const LIMIT: i64 = (1 << 51) - 1;

/// Largest time: zigzagged differences of two still fit.
pub(super) fn clamp(value: i64) -> i64 {
    value.clamp(-LIMIT, LIMIT)
}

/// A column being written.
#[derive(Default)]
pub(super) struct Column {
    bytes: Vec<u8>,
}

impl Column {
    /// A column that will hold `count` values of a byte or two.
    pub(super) fn with_capacity(count: usize) -> Column {
        Column { bytes: Vec::with_capacity(count * 2) }
    }

    /// Appends one raw byte.
    pub(super) fn byte(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// Appends a number without sign, seven bits per byte, lowest first (LEB128).
    pub(super) fn unsigned(&mut self, value: u64) {
        varint::put(value, &mut self.bytes);
    }

    /// Appends a number with sign: 0, -1, 1, -2, … become 0, 1, 2, 3, …
    pub(super) fn signed(&mut self, value: i64) {
        self.unsigned(varint::zigzag(value));
    }

    /// Bytes before compression.
    pub(super) fn raw_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The compressed column (zlib, RFC 1950, which brings a checksum). Level 5: level 9 is 1 % smaller and 3 times slower.
    pub(super) fn deflate(&self) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(5));
        encoder
            .write_all(&self.bytes)
            .and_then(|()| encoder.finish())
            .expect("a Vec takes all bytes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed(value: i64) -> Vec<u8> {
        let mut column = Column::default();
        column.signed(value);
        column.bytes
    }

    #[test]
    fn small_numbers_of_either_sign_take_one_byte() {
        assert_eq!(signed(0), [0]);
        assert_eq!(signed(-1), [1]);
        assert_eq!(signed(63), [126]);
        assert_eq!(signed(-64), [127]);
        assert_eq!(signed(64), [0x80, 1]);
    }

    #[test]
    fn the_largest_difference_fits_the_whole_numbers_of_a_browser() {
        let difference = clamp(i64::MAX) - clamp(i64::MIN);
        assert!(((difference << 1) as u64) < 1 << 53);
    }
}
