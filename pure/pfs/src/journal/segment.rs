//! What the records of a journal lie in: a header, then the state that the journal begins with as records of
//! its own (a *checkpoint*, numbered from 1), then a record for each operation since.
//!
//! Promises: a checkpoint is read as a whole or the journal is refused, since it was on its device before it
//! took the place of what was there; so nothing of it can be the torn end of a write. A journal without
//! checkpoint is one of version 1, as those were that had none.

use super::{Ending, NUMBERS_END, records, salvage};
use crate::codec::{Reader, Sink, Wrong};
use iolab_vocab::Refusal;

const MAGIC: &[u8; 8] = b"iolabjrn";
/// The version of journals that begin with no state, and of those that do.
const VERSION_PLAIN: u16 = 1;
const VERSION_CHECKPOINT: u16 = 2;
/// What stands in front of the records of a segment.
pub const SEGMENT_HEADER_BYTES: usize = 64;

/// What a segment begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    /// The instance.
    pub instance: u128,
    /// The life of the manager that began the segment.
    pub incarnation: u64,
    /// The sequence of its first record behind the checkpoint.
    pub first: u64,
    /// Bytes of the checkpoint; 0 if the journal begins with nothing.
    pub checkpoint_bytes: u64,
}

impl SegmentHeader {
    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let has_checkpoint = self.checkpoint_bytes > 0;
        let mut out = Vec::with_capacity(SEGMENT_HEADER_BYTES);
        out.put(MAGIC);
        out.u16(if has_checkpoint { VERSION_CHECKPOINT } else { VERSION_PLAIN });
        out.u16(0);
        out.u32(u32::MAX);
        out.u128(self.instance);
        out.u64(self.incarnation);
        out.u64(self.first);
        out.u64(self.checkpoint_bytes);
        out.resize(SEGMENT_HEADER_BYTES - 4, 0);
        let sum = crc32c::crc32c(&out);
        out.u32(sum);
        out
    }

    /// Reads it from the start of a segment.
    pub fn decode(segment: &[u8]) -> Result<SegmentHeader, Refusal> {
        let wrong =
            |what: &str| Refusal::new(format!("the journal {what}"), "restore it from a copy");
        let header = segment.get(..SEGMENT_HEADER_BYTES).ok_or_else(|| wrong("has no header"))?;
        if &header[..8] != MAGIC {
            return Err(wrong("is none of this file system"));
        }
        let version = u16::from_le_bytes([header[8], header[9]]);
        if version > VERSION_CHECKPOINT {
            return Refusal::refuse(
                format!(
                    "the journal has version {version}; this iolab reads up to {VERSION_CHECKPOINT}"
                ),
                "use the iolab that wrote it, or a newer one",
            );
        }
        let (fields, sum) = header.split_at(SEGMENT_HEADER_BYTES - 4);
        if sum != crc32c::crc32c(fields).to_le_bytes() {
            return Err(wrong("has a damaged header"));
        }
        let mut read = Reader::new(&fields[16..]);
        let fields = (|| Ok((read.u128()?, read.u64()?, read.u64()?, read.u64()?)))();
        let (instance, incarnation, first, bytes) = fields.map_err(|why: Wrong| wrong(why))?;
        if first >= NUMBERS_END {
            return Err(wrong("begins with a number beyond the limits"));
        }
        let checkpoint_bytes = if version == VERSION_PLAIN { 0 } else { bytes };
        Ok(SegmentHeader { instance, incarnation, first, checkpoint_bytes })
    }
}

/// A journal as it lies on its device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Journal<'a> {
    /// What it begins with.
    pub header: SegmentHeader,
    /// Records of its checkpoint: together they make the state that it begins with.
    pub checkpoint: Vec<&'a [u8]>,
    /// The records behind it, in order.
    pub records: Vec<&'a [u8]>,
    /// How many bytes all of that is: what follows is the torn end of what was being written, and is to be cut
    /// off.
    pub bytes: usize,
}

impl<'a> Journal<'a> {
    /// Reads one.
    pub fn read(bytes: &'a [u8]) -> Result<Journal<'a>, Refusal> {
        let header = SegmentHeader::decode(bytes)?;
        let (checkpoint, behind) = parts(bytes, header);
        let (found, end) = records(checkpoint, 1)?;
        if end as u64 != header.checkpoint_bytes {
            return Refusal::refuse(
                format!(
                    "record {} of the state that the journal begins with is damaged",
                    found.len() + 1
                ),
                "restore the directory of the metadata manager from a copy",
            );
        }
        let (records, intact) = records(behind, header.first)?;
        let bytes = SEGMENT_HEADER_BYTES + end + intact;
        Ok(Journal { header, checkpoint: found, records, bytes })
    }

    /// All records: first those of the checkpoint.
    pub fn all(&self) -> impl Iterator<Item = &'a [u8]> + '_ {
        self.checkpoint.iter().chain(&self.records).copied()
    }
}

/// All intact records of a journal, damaged ones left out, and what came of the rest.
pub(crate) fn salvaged(bytes: &[u8]) -> Result<(SegmentHeader, Vec<&[u8]>, Ending), Refusal> {
    let header = SegmentHeader::decode(bytes)?;
    let (checkpoint, behind) = parts(bytes, header);
    let (mut found, ending) = salvage(checkpoint, 1);
    let is_short = (checkpoint.len() as u64) < header.checkpoint_bytes;
    let in_checkpoint = match ending {
        Ending::Whole if !is_short => None,
        // It was whole once: what is missing at its end was not being written.
        Ending::Whole | Ending::Torn { .. } => {
            Some(Ending::Damaged { first: found.len() as u64 + 1, records: 1 })
        }
        damaged @ Ending::Damaged { .. } => Some(damaged),
    };
    let (records, ending) = salvage(behind, header.first);
    found.extend(records);
    Ok((header, found, in_checkpoint.unwrap_or(ending)))
}

/// The checkpoint of a journal, and what is behind it, as far as they are there.
fn parts(bytes: &[u8], header: SegmentHeader) -> (&[u8], &[u8]) {
    let records = &bytes[SEGMENT_HEADER_BYTES..];
    let length = usize::try_from(header.checkpoint_bytes).unwrap_or(usize::MAX);
    records.split_at(length.min(records.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Record;
    use crate::{Message, Request, SessionId};

    fn record(sequence: u64) -> Vec<u8> {
        let asked = Some((SessionId(5), Request(sequence)));
        let changes = Vec::new();
        Record { sequence, asked, answer: Message::Done, changes }.encode(sequence - 1)
    }

    /// A checkpoint of records 1 and 2, with records 7 and 8 behind it, and where each of them begins.
    fn journal() -> (Vec<u8>, [usize; 5]) {
        let parts = [1, 2, 7, 8].map(record);
        let checkpoint_bytes = (parts[0].len() + parts[1].len()) as u64;
        let mut bytes =
            SegmentHeader { instance: 3 << 90, incarnation: 4, first: 7, checkpoint_bytes }
                .encode();
        let mut starts = [bytes.len(); 5];
        for (at, part) in parts.iter().enumerate() {
            bytes.extend(part);
            starts[at + 1] = bytes.len();
        }
        (bytes, starts)
    }

    #[test]
    fn what_was_written_is_read() {
        for (version, checkpoint_bytes) in [(1, 0), (2, 1 << 33)] {
            let header =
                SegmentHeader { instance: 3 << 90, incarnation: 4, first: 1, checkpoint_bytes };
            let bytes = header.encode();
            assert_eq!((bytes.len(), bytes[8]), (SEGMENT_HEADER_BYTES, version));
            assert_eq!(SegmentHeader::decode(&bytes), Ok(header));
        }
        let (bytes, starts) = journal();
        let read = Journal::read(&bytes).unwrap();
        assert_eq!((read.checkpoint.len(), read.records.len()), (2, 2));
        assert_eq!(read.bytes, bytes.len());
        assert!(read.all().eq((0..4).map(|at| &bytes[starts[at]..starts[at + 1]])));
    }

    #[test]
    fn a_checkpoint_is_whole_or_the_journal_is_refused_and_what_is_behind_it_may_be_torn() {
        let (bytes, starts) = journal();
        for length in SEGMENT_HEADER_BYTES..bytes.len() {
            let cut = &bytes[..length];
            let (_, found, ending) = salvaged(cut).unwrap();
            let intact = starts[1..].iter().filter(|&&end| end <= length).count();
            assert_eq!(found.len(), intact, "{length}");
            match Journal::read(cut) {
                Ok(read) => {
                    assert!(length >= starts[2], "{length}");
                    assert_eq!((read.all().count(), read.bytes), (intact, starts[intact]));
                    assert!(!matches!(ending, Ending::Damaged { .. }), "{length}");
                }
                Err(refusal) => {
                    assert!(length < starts[2], "{length}: {refusal}");
                    assert!(refusal.message.contains("begins with"), "{refusal}");
                    let first = intact as u64 + 1;
                    assert_eq!(ending, Ending::Damaged { first, records: 1 });
                }
            }
        }
        // Nobody says of the last record of a checkpoint that it was there, but its header.
        let mut damaged = bytes.clone();
        damaged[starts[1] + 40] ^= 1;
        assert!(Journal::read(&damaged).is_err());
        let (_, found, ending) = salvaged(&damaged).unwrap();
        assert_eq!((found.len(), ending), (3, Ending::Damaged { first: 2, records: 1 }));
    }

    #[test]
    fn damaged_headers_and_newer_journals_are_refused_by_name() {
        let header =
            SegmentHeader { instance: 1, incarnation: 2, first: 3, checkpoint_bytes: 0 }.encode();
        for (at, what) in [(0, "none of this"), (20, "damaged header"), (63, "damaged header")] {
            let mut wrong = header.clone();
            wrong[at] ^= 1;
            let refusal = SegmentHeader::decode(&wrong).unwrap_err();
            assert!(refusal.message.contains(what), "{refusal}");
        }
        let mut newer = header.clone();
        newer[8] = 3;
        assert!(SegmentHeader::decode(&newer).unwrap_err().message.contains("version 3"));
        assert!(SegmentHeader::decode(&header[..63]).is_err());
        let far =
            SegmentHeader { instance: 1, incarnation: 2, first: 1 << 63, checkpoint_bytes: 0 };
        assert!(SegmentHeader::decode(&far.encode()).is_err());
    }
}
