//! Little-endian fields: how messages and journal records are written and read.
//!
//! Every value has one form, so what was read is written as the same bytes again. A [`Reader`] is given
//! all bytes there are and never reserves memory for what they only claim.

use crate::{Code, Inode, Kind, Layout};

/// What is wrong with bytes that are no fields.
pub(crate) type Wrong = &'static str;

/// Where fields go.
pub(crate) trait Sink {
    /// Takes bytes as they are.
    fn put(&mut self, bytes: &[u8]);

    fn u8(&mut self, value: u8) {
        self.put(&[value]);
    }

    fn u16(&mut self, value: u16) {
        self.put(&value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.put(&value.to_le_bytes());
    }

    fn u128(&mut self, value: u128) {
        self.put(&value.to_le_bytes());
    }

    fn bool(&mut self, value: bool) {
        self.u8(value.into());
    }

    /// Bytes behind their number.
    fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.put(bytes);
    }

    /// How many items follow.
    fn count(&mut self, items: usize) {
        self.u32(u32::try_from(items).expect("lists are within the limits of a frame"));
    }

    fn inode(&mut self, inode: Inode) {
        self.u64(inode.0);
    }

    fn code(&mut self, code: Code) {
        self.u16(code.0);
    }

    fn kind(&mut self, kind: Kind) {
        self.u8(match kind {
            Kind::File => 1,
            Kind::Directory => 2,
        });
    }

    fn layout(&mut self, layout: Layout) {
        self.u64(layout.unit_bytes());
        self.u32(layout.subfiles());
        self.u32(layout.start());
    }

    fn layout_if_any(&mut self, layout: Option<Layout>) {
        self.bool(layout.is_some());
        if let Some(layout) = layout {
            self.layout(layout);
        }
    }
}

impl Sink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Counts what fields take.
#[derive(Default)]
pub(crate) struct Counted(pub(crate) u64);

impl Sink for Counted {
    fn put(&mut self, bytes: &[u8]) {
        self.0 += bytes.len() as u64;
    }
}

/// Takes fields from the front of bytes.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// Nothing may follow.
    pub(crate) fn end(self) -> Result<(), Wrong> {
        match self.rest.len() {
            0 => Ok(()),
            _ => Err("bytes follow the last field"),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Wrong> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or("it ends too early")?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Wrong> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Wrong> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Wrong> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Wrong> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn u128(&mut self) -> Result<u128, Wrong> {
        self.array().map(u128::from_le_bytes)
    }

    pub(crate) fn bool(&mut self) -> Result<bool, Wrong> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err("a truth value is neither 0 nor 1"),
        }
    }

    /// Bytes behind their number; where they are, not copied.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Wrong> {
        let length = self.u32()? as usize;
        let (taken, rest) = self.rest.split_at_checked(length).ok_or("it ends too early")?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, Wrong> {
        std::str::from_utf8(self.bytes()?).map_err(|_| "a text is not UTF-8")
    }

    /// How many items follow, of which each takes at least `bytes_min`: what is reserved for them is in
    /// proportion to what is there.
    pub(crate) fn count(&mut self, bytes_min: usize) -> Result<usize, Wrong> {
        let items = self.u32()? as usize;
        match items <= self.rest.len() / bytes_min {
            true => Ok(items),
            false => Err("it ends too early"),
        }
    }

    pub(crate) fn inode(&mut self) -> Result<Inode, Wrong> {
        self.u64().map(Inode)
    }

    pub(crate) fn code(&mut self) -> Result<Code, Wrong> {
        self.u16().map(Code)
    }

    pub(crate) fn kind(&mut self) -> Result<Kind, Wrong> {
        match self.u8()? {
            1 => Ok(Kind::File),
            2 => Ok(Kind::Directory),
            _ => Err("there is no such kind of name"),
        }
    }

    pub(crate) fn layout(&mut self) -> Result<Layout, Wrong> {
        let (unit_bytes, subfiles, start) = (self.u64()?, self.u32()?, self.u32()?);
        let layout = Layout::striped(unit_bytes, subfiles, start);
        layout.map_err(|_| "a layout is beyond the limits")
    }

    pub(crate) fn layout_if_any(&mut self) -> Result<Option<Layout>, Wrong> {
        self.bool()?.then(|| self.layout()).transpose()
    }
}
