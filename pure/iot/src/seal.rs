//! Checksums over every byte of a trace file, kept in places where any Parquet reader ignores them.
//!
//! Parquet has optional checksums of page bodies only; a flipped bit in a page header or in the
//! footer sends a reader anywhere. Here the metadata key `iolab.groups` lists, per row group, the
//! offset where its bytes end and their CRC-32, and `iolab.footer` holds the CRC-32 of the footer
//! itself (computed with its own eight digits as zeros). So a damaged file is told before a byte of
//! it is interpreted. A file without both keys was written by another tool and is read unverified.

use crate::IotError;
use crc32fast::Hasher;
use std::io::Write;

/// Metadata key of the row groups' checksums: `end:crc` in hex, separated by spaces.
pub(crate) const GROUPS_KEY: &str = "iolab.groups";
/// Metadata key of the footer's checksum: eight hex digits.
pub(crate) const FOOTER_KEY: &str = "iolab.footer";
/// What stands under `FOOTER_KEY` while its checksum is computed.
pub(crate) const FOOTER_BLANK: &str = "00000000";

/// Length of the footer and the magic word after it.
const TAIL_BYTES: usize = 8;

/// Bytes of one row group, by where they end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) end: u64,
    pub(crate) crc: u32,
}

/// A sink that sums what passes through, and holds the footer back until it can be sealed.
pub(crate) struct SealingSink<W> {
    sink: W,
    written: u64,
    hasher: Hasher,
    segments: Vec<Segment>,
    footer: Option<Vec<u8>>,
}

impl<W: Write> SealingSink<W> {
    pub(crate) fn new(sink: W) -> SealingSink<W> {
        SealingSink { sink, written: 0, hasher: Hasher::new(), segments: Vec::new(), footer: None }
    }

    /// Everything since the last segment becomes one.
    pub(crate) fn end_segment(&mut self) {
        let crc = std::mem::take(&mut self.hasher).finalize();
        self.segments.push(Segment { end: self.written, crc });
    }

    /// What belongs under `GROUPS_KEY`. From here on bytes are held back as the footer.
    pub(crate) fn begin_footer(&mut self) -> String {
        self.footer = Some(Vec::new());
        let words: Vec<_> =
            self.segments.iter().map(|s| format!("{:x}:{:08x}", s.end, s.crc)).collect();
        words.join(" ")
    }

    /// Writes the footer with its checksum in it and hands the sink back.
    pub(crate) fn finish(mut self) -> Result<W, IotError> {
        let mut footer = self.footer.take().unwrap_or_default();
        if let Some(digits) = digits_position(&footer) {
            let end = footer.len() - TAIL_BYTES;
            let crc = format!("{:08x}", crc32fast::hash(&footer[..end]));
            footer[digits..digits + FOOTER_BLANK.len()].copy_from_slice(crc.as_bytes());
        }
        self.sink.write_all(&footer)?;
        self.sink.flush()?;
        Ok(self.sink)
    }
}

impl<W: Write> Write for SealingSink<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if let Some(footer) = &mut self.footer {
            footer.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        let count = self.sink.write(bytes)?;
        self.hasher.update(&bytes[..count]);
        self.written += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.sink.flush()
    }
}

/// Where the eight digits stand: after the key come the compact-Thrift header of a string field
/// (0x18) and its length (8).
fn digits_position(footer: &[u8]) -> Option<usize> {
    let mark = [FOOTER_KEY.as_bytes(), &[0x18, FOOTER_BLANK.len() as u8]].concat();
    let start = position(footer, &mark)? + mark.len();
    (start + FOOTER_BLANK.len() + TAIL_BYTES <= footer.len()).then_some(start)
}

fn position(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).rposition(|window| window == needle)
}

/// Whether one of iolab's seals is in these last bytes of a file. One flipped byte cannot hide both.
pub(crate) fn is_sealed(tail: &[u8]) -> bool {
    [GROUPS_KEY, FOOTER_KEY].iter().any(|key| position(tail, key.as_bytes()).is_some())
}

/// Checks the footer (with its length and magic word) of a sealed file.
pub(crate) fn verify_footer(footer: &[u8]) -> Result<(), IotError> {
    let damaged = || IotError::Damaged { part: "the footer".to_owned() };
    let digits = digits_position(footer).ok_or_else(damaged)?;
    let mut blanked = footer[..footer.len() - TAIL_BYTES].to_vec();
    let found = blanked[digits..digits + FOOTER_BLANK.len()].to_vec();
    blanked[digits..digits + FOOTER_BLANK.len()].copy_from_slice(FOOTER_BLANK.as_bytes());
    let wanted = format!("{:08x}", crc32fast::hash(&blanked));
    if found == wanted.as_bytes() { Ok(()) } else { Err(damaged()) }
}

/// Reads what stands under `GROUPS_KEY`.
pub(crate) fn parse_segments(text: &str) -> Result<Vec<Segment>, IotError> {
    let parse = |word: &str| {
        let (end, crc) = word.split_once(':')?;
        let end = u64::from_str_radix(end, 16).ok()?;
        Some(Segment { end, crc: u32::from_str_radix(crc, 16).ok()? })
    };
    let problem = |word| IotError::Header(format!("`{GROUPS_KEY}` has `{word}`"));
    text.split_whitespace().map(|word| parse(word).ok_or_else(|| problem(word))).collect()
}
