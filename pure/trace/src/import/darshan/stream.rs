//! Regions of a log: streams of zlib or bzip2 behind each other, one for each rank that wrote, unpacked
//! as far as they are read, so that few bytes that unpack to many cost their time and no memory.

use super::DarshanError;
use super::log::damaged;
use std::io::{self, Read};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    Zlib,
    Bzip2,
    None,
}

/// Fixed-size fields in the byte order of the log.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) is_big: bool,
}

impl Fields<'_> {
    /// The word at a byte; 0 behind the end.
    pub(super) fn u64(&self, at: usize) -> u64 {
        let Some(word) = self.bytes.get(at..).and_then(|rest| rest.first_chunk()) else { return 0 };
        if self.is_big { u64::from_be_bytes(*word) } else { u64::from_le_bytes(*word) }
    }

    /// The same with a sign.
    pub(super) fn i64(&self, at: usize) -> i64 {
        self.u64(at) as i64
    }

    /// The same as a floating point number.
    pub(super) fn f64(&self, at: usize) -> f64 {
        f64::from_bits(self.u64(at))
    }

    /// Text up to the first NUL.
    pub(super) fn text(&self, from: usize, to: usize) -> String {
        let bytes = self.bytes.get(from..to).unwrap_or_default();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }

    /// The half word at a byte; 0 behind the end.
    pub(super) fn u32(&self, at: usize) -> u32 {
        let Some(word) = self.bytes.get(at..).and_then(|rest| rest.first_chunk()) else { return 0 };
        if self.is_big { u32::from_be_bytes(*word) } else { u32::from_le_bytes(*word) }
    }
}

/// A region, unpacked as far as it is read.
pub(super) struct Stream<'a> {
    decoder: Decoder<'a>,
    is_big: bool,
    name: &'static str,
    record: Vec<u8>,
}

enum Decoder<'a> {
    Zlib(flate2::bufread::ZlibDecoder<&'a [u8]>),
    Bzip2(bzip2::bufread::BzDecoder<&'a [u8]>),
    None(&'a [u8]),
}

impl<'a> Decoder<'a> {
    fn new(bytes: &'a [u8], compression: Compression) -> Decoder<'a> {
        match compression {
            Compression::Zlib if !bytes.is_empty() => {
                Decoder::Zlib(flate2::bufread::ZlibDecoder::new(bytes))
            }
            Compression::Bzip2 if !bytes.is_empty() => {
                Decoder::Bzip2(bzip2::bufread::BzDecoder::new(bytes))
            }
            _ => Decoder::None(bytes),
        }
    }

    /// At the end of one stream, the next one. Tells whether there is one.
    fn next(&mut self) -> bool {
        let (rest, compression) = match self {
            Decoder::Zlib(decoder) if decoder.total_in() > 0 => {
                (*decoder.get_ref(), Compression::Zlib)
            }
            Decoder::Bzip2(decoder) if decoder.total_in() > 0 => {
                (*decoder.get_ref(), Compression::Bzip2)
            }
            _ => return false,
        };
        *self = Decoder::new(rest, compression);
        !rest.is_empty()
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Decoder::Zlib(decoder) => decoder.read(into),
            Decoder::Bzip2(decoder) => decoder.read(into),
            Decoder::None(bytes) => bytes.read(into),
        }
    }
}

impl<'a> Stream<'a> {
    pub(super) fn new(
        bytes: &'a [u8],
        compression: Compression,
        is_big: bool,
        name: &'static str,
    ) -> Stream<'a> {
        Stream { decoder: Decoder::new(bytes, compression), is_big, name, record: Vec::new() }
    }

    /// The next so many bytes; none at the end.
    pub(super) fn take(&mut self, bytes: usize) -> Result<Option<Fields<'_>>, DarshanError> {
        self.record.resize(bytes, 0);
        let mut filled = 0;
        while filled < bytes {
            let read = self.decoder.read(&mut self.record[filled..]);
            match read.map_err(|error| damaged(format!("{}: {error}", self.name)))? {
                0 if self.decoder.next() => {}
                0 if filled == 0 => return Ok(None),
                0 => return Err(damaged(format!("the last record of {} is cut", self.name))),
                more => filled += more,
            }
        }
        Ok(Some(Fields { bytes: &self.record, is_big: self.is_big }))
    }

    /// The same in the middle of a record.
    pub(super) fn need(&mut self, bytes: usize) -> Result<Fields<'_>, DarshanError> {
        let name = self.name;
        let cut = || damaged(format!("the last record of {name} is cut"));
        self.take(bytes)?.ok_or_else(cut)
    }

    /// All there is, up to so many bytes.
    pub(super) fn all(&mut self, most: usize) -> Result<Vec<u8>, DarshanError> {
        let mut all = Vec::new();
        let mut piece = [0; 1 << 14];
        loop {
            let read = self.decoder.read(&mut piece);
            match read.map_err(|error| damaged(format!("{}: {error}", self.name)))? {
                0 if self.decoder.next() => {}
                0 => return Ok(all),
                more => all.extend_from_slice(&piece[..more]),
            }
            if all.len() > most {
                return Err(damaged(format!("{} is longer than {most} bytes", self.name)));
            }
        }
    }
}
