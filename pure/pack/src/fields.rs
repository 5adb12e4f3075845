//! Little-endian fields of a record, taken from the bytes there are.

/// Fields that are left of a record's body.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Bytes behind their number (16 bits).
    pub(crate) fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.u16()?;
        self.take(length.into())
    }
}

/// Puts bytes behind their number (16 bits).
pub(crate) fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    let length = u16::try_from(text.len()).expect("a path of a pack is below 64 KiB");
    out.extend(length.to_le_bytes());
    out.extend(text);
}
