//! Numbers out of bytes: mostly small, sometimes at the end of their range, so that few changed bytes
//! make another meaning and not another layout.

/// Reads bytes front to back; past the end everything is 0.
pub(crate) struct Numbers<'a>(pub(crate) &'a [u8]);

impl Numbers<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&first, rest)) => {
                self.0 = rest;
                first
            }
            None => 0,
        }
    }

    pub(crate) fn wide(&mut self) -> i64 {
        i64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    /// Small from -8 on, a power of two or its neighbour, or any.
    pub(crate) fn number(&mut self) -> i64 {
        match self.byte() {
            small @ 0..200 => i64::from(small) - 8,
            kind @ 200..250 => {
                let power = 1i64.wrapping_shl(u32::from(self.byte() % 64));
                power.wrapping_add(i64::from(kind % 3) - 1)
            }
            250..253 => i64::from_le_bytes([self.byte(), self.byte(), self.byte(), 0, 0, 0, 0, 0]),
            _ => self.wide(),
        }
    }
}
