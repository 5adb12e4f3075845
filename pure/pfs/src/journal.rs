//! Records of the metadata manager's journal; byte exact in `docs/format/pfs-disk.md`. What they lie in is
//! in `journal/segment.rs`.
//!
//! A record is one operation with all its changes, its request, and the answer that was given, so that a
//! manager in a new life gives it again. Promises: records are read up to the first that is not intact; if
//! a later one says that it was there, the medium is damaged and that is an error, else it is the torn end
//! of what was being written, and nobody was told of it.

mod segment;

pub(crate) use segment::salvaged;
pub use segment::{Journal, SEGMENT_HEADER_BYTES, SegmentHeader};

use crate::change::{Change, Pointer};
use crate::codec::{Reader, Sink, Wrong};
use crate::plant::{Plant, is_planted};
use crate::{Inode, Message, OpenNumber, Request, SessionId, wire};
use iolab_vocab::Refusal;

/// What stands in front of the body of a record.
const RECORD_HEADER_BYTES: usize = 28;
/// The largest record.
const RECORD_BYTES_MAX: usize = 1 << 20;
/// An operation of the metadata manager.
const OPERATION: u16 = 1;
/// Numbers that are counted stay below: no journal has so many.
const NUMBERS_END: u64 = 1 << 63;

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) sequence: u64,
    /// Who asked for it; nobody for what the manager did by itself.
    pub(crate) asked: Option<(SessionId, Request)>,
    /// What was answered.
    pub(crate) answer: Message,
    pub(crate) changes: Vec<Change>,
}

impl Record {
    /// Its bytes; `durable` is the sequence up to which all records are known to be written.
    pub(crate) fn encode(&self, durable: u64) -> Vec<u8> {
        let mut body = Vec::new();
        body.bool(self.asked.is_some());
        if let Some((session, request)) = self.asked {
            body.u128(session.0);
            body.u64(request.0);
        }
        let mut answer = Vec::new();
        wire::encode(&self.answer, Request(0), 0, None, &mut answer);
        body.bytes(&answer);
        body.count(self.changes.len());
        self.changes.iter().for_each(|change| encode_change(change, &mut body));
        let mut out = Vec::with_capacity(RECORD_HEADER_BYTES + body.len() + 8);
        out.u32((RECORD_HEADER_BYTES + body.len()) as u32);
        out.u32(0);
        out.u64(self.sequence);
        out.u64(durable);
        out.u16(OPERATION);
        out.u16(0);
        out.put(&body);
        let sum = sum_of(&out);
        out[4..8].copy_from_slice(&sum.to_le_bytes());
        out.resize(out.len().next_multiple_of(8), 0);
        out
    }

    /// Reads one that is intact.
    pub(crate) fn decode(record: &[u8]) -> Result<Record, Refusal> {
        let wrong = |why: Wrong| {
            Refusal::new(
                format!("a record of the journal is intact, but {why}"),
                "use the iolab that wrote it, or a newer one",
            )
        };
        let fields = Fields::of(record).ok_or_else(|| wrong("it ends too early"))?;
        Record::body(&fields).map_err(wrong)
    }

    fn body(fields: &Fields<'_>) -> Result<Record, Wrong> {
        if fields.kind != OPERATION {
            return Err("there is no such kind");
        }
        let mut read = Reader::new(fields.body);
        let asked = match read.bool()? {
            true => Some((SessionId(read.u128()?), Request(read.u64()?))),
            false => None,
        };
        let answer = decode_answer(read.bytes()?)?;
        let count = read.count(1)?;
        let changes = (0..count).map(|_| decode_change(&mut read)).collect::<Result<_, _>>()?;
        read.end()?;
        Ok(Record { sequence: fields.sequence, asked, answer, changes })
    }
}

fn decode_answer(bytes: &[u8]) -> Result<Message, Wrong> {
    let (header, fields) = bytes.split_first_chunk().ok_or("its answer ends too early")?;
    let header = wire::Header::decode(header).map_err(|_| "its answer is mangled")?;
    wire::decode(&header, fields).map_err(|_| "its answer is mangled")
}

/// The fields of an intact record.
struct Fields<'a> {
    sequence: u64,
    durable: u64,
    kind: u16,
    body: &'a [u8],
    /// With what is in front of the body, and what pads it.
    bytes: usize,
}

impl Fields<'_> {
    /// Those of the record at the start of some bytes, if there is one.
    fn of(bytes: &[u8]) -> Option<Fields<'_>> {
        let number = |at: usize| -> Option<u64> {
            Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
        };
        let (lengths, sequence, durable) = (number(0)?, number(8)?, number(16)?);
        let (length, sum) = (lengths as u32 as usize, (lengths >> 32) as u32);
        let fits = (RECORD_HEADER_BYTES..=RECORD_BYTES_MAX).contains(&length);
        let record = bytes.get(..length).filter(|_| fits)?;
        let padded = length.next_multiple_of(8);
        if sum_of(record) != sum || bytes.len() < padded || sequence >= NUMBERS_END {
            return None;
        }
        let kind = u16::from_le_bytes([record[24], record[25]]);
        Some(Fields {
            sequence,
            durable,
            kind,
            body: &record[RECORD_HEADER_BYTES..],
            bytes: padded,
        })
    }
}

/// The sum of a record, as if it had none.
fn sum_of(record: &[u8]) -> u32 {
    let sum = crc32c::crc32c_append(crc32c::crc32c(&record[..4]), &[0; 4]);
    crc32c::crc32c_append(sum, &record[8..])
}

/// The records behind a segment's header, in order, and how many bytes they are: what follows is the torn
/// end of what was being written, and is to be cut off. `first` is the sequence of the first.
fn records(bytes: &[u8], first: u64) -> Result<(Vec<&[u8]>, usize), Refusal> {
    let mut records = Vec::new();
    let (mut at, mut next) = (0, first);
    while let Some(fields) = Fields::of(&bytes[at..])
        && (fields.sequence == next || is_planted(Plant::TornRecordPassed))
    {
        records.push(&bytes[at..at + fields.bytes]);
        (at, next) = (at + fields.bytes, next + 1);
        while is_planted(Plant::TornRecordPassed)
            && at + 8 < bytes.len()
            && Fields::of(&bytes[at..]).is_none()
        {
            at += 8;
        }
    }
    // Records begin at multiples of 8.
    let later = (at..bytes.len()).step_by(8).filter_map(|at| Fields::of(&bytes[at..]));
    if later.into_iter().any(|fields| fields.durable >= next && fields.sequence > next) {
        return Refusal::refuse(
            format!(
                "record {next} of the journal is damaged: a later one says that it was written"
            ),
            "restore the directory of the metadata manager from a copy",
        );
    }
    Ok((records, at))
}

/// What is behind the intact records that follow one another from the first on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Nothing.
    Whole,
    /// Bytes of what was being written; nobody was told of it.
    Torn {
        /// How many.
        bytes: u64,
    },
    /// Records that were written are damaged; others follow.
    Damaged {
        /// The sequence of the first of them.
        first: u64,
        /// How many are missing before the last intact one.
        records: u64,
    },
}

/// All intact records behind a segment's header, damaged ones left out, and what came of the rest.
fn salvage(bytes: &[u8], first: u64) -> (Vec<&[u8]>, Ending) {
    if let Ok((records, end)) = records(bytes, first) {
        let ending = match bytes.len() - end {
            0 => Ending::Whole,
            left => Ending::Torn { bytes: left as u64 },
        };
        return (records, ending);
    }
    let (mut found, mut at, mut next) = (Vec::new(), 0, first);
    let (mut missing_first, mut missing) = (None, 0);
    while at < bytes.len() {
        match Fields::of(&bytes[at..]).filter(|fields| fields.sequence >= next) {
            Some(fields) => {
                if fields.sequence > next {
                    missing_first = missing_first.or(Some(next));
                    missing += fields.sequence - next;
                }
                found.push(&bytes[at..at + fields.bytes]);
                (at, next) = (at + fields.bytes, fields.sequence + 1);
            }
            // Records begin at multiples of 8.
            None => at += 8,
        }
    }
    let first = missing_first.unwrap_or(next);
    (found, Ending::Damaged { first, records: missing })
}

fn encode_change(change: &Change, out: &mut Vec<u8>) {
    match change {
        Change::Create { parent, name, inode, kind, mode, layout } => {
            out.u8(1);
            out.inode(*parent);
            out.bytes(name);
            out.inode(*inode);
            out.kind(*kind);
            out.u32(*mode);
            out.layout_if_any(*layout);
        }
        Change::Rename { parent, name, new_parent, new_name } => {
            out.u8(2);
            out.inode(*parent);
            out.bytes(name);
            out.inode(*new_parent);
            out.bytes(new_name);
        }
        Change::Remove { parent, name } => {
            out.u8(3);
            out.inode(*parent);
            out.bytes(name);
        }
        Change::Open { open, inode, session } => {
            out.u8(4);
            out.u64(open.0);
            out.inode(*inode);
            out.u128(session.0);
        }
        Change::Close { open } => {
            out.u8(5);
            out.u64(open.0);
        }
        Change::Discarded { inode } => {
            out.u8(6);
            out.inode(*inode);
        }
        Change::Pointer { open, pointer } => {
            out.u8(7);
            out.u64(open.0);
            out.u64(pointer.setting);
            out.u64(pointer.units);
        }
        Change::Numbers { inode, open, sequence } => {
            out.u8(8);
            out.inode(*inode);
            out.u64(open.0);
            out.u64(*sequence);
        }
    }
}

/// A number that is counted on from.
fn counted(read: &mut Reader<'_>) -> Result<u64, Wrong> {
    match read.u64()? {
        number @ ..NUMBERS_END => Ok(number),
        _ => Err("a number is beyond the limits"),
    }
}

fn decode_change(read: &mut Reader<'_>) -> Result<Change, Wrong> {
    Ok(match read.u8()? {
        1 => Change::Create {
            parent: read.inode()?,
            name: read.bytes()?.to_vec(),
            inode: Inode(counted(read)?),
            kind: read.kind()?,
            mode: read.u32()?,
            layout: read.layout_if_any()?,
        },
        2 => Change::Rename {
            parent: read.inode()?,
            name: read.bytes()?.to_vec(),
            new_parent: read.inode()?,
            new_name: read.bytes()?.to_vec(),
        },
        3 => Change::Remove { parent: read.inode()?, name: read.bytes()?.to_vec() },
        4 => Change::Open {
            open: OpenNumber(counted(read)?),
            inode: read.inode()?,
            session: SessionId(read.u128()?),
        },
        5 => Change::Close { open: OpenNumber(read.u64()?) },
        6 => Change::Discarded { inode: read.inode()? },
        7 => Change::Pointer {
            open: OpenNumber(read.u64()?),
            pointer: Pointer { setting: read.u64()?, units: read.u64()? },
        },
        8 => Change::Numbers {
            inode: Inode(counted(read)?),
            open: OpenNumber(counted(read)?),
            sequence: counted(read)?,
        },
        _ => return Err("there is no such change"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Code, Kind, Layout};

    fn operation(sequence: u64) -> Record {
        let (parent, inode) = (Inode(1), Inode(sequence + 1));
        let layout = Some(Layout::usual(4));
        let name = format!("file {sequence}").into_bytes();
        let create = Change::Create { parent, name, inode, kind: Kind::File, mode: 0o644, layout };
        let open = Change::Open { open: OpenNumber(sequence), inode, session: SessionId(7 << 100) };
        let answer = Message::failed(Code::EXISTS, "a text");
        let asked = Some((SessionId(7 << 100), Request(sequence)));
        Record { sequence, asked, answer, changes: vec![create, open] }
    }

    /// Records 1 to `count`, each written when all before were known to be.
    fn journal(count: u64) -> Vec<u8> {
        (1..=count).flat_map(|sequence| operation(sequence).encode(sequence - 1)).collect()
    }

    #[test]
    fn what_was_written_is_read() {
        let name = |text: &str| text.as_bytes().to_vec();
        let changes = vec![
            Change::Rename {
                parent: Inode(1),
                name: name("a"),
                new_parent: Inode(2),
                new_name: name("b"),
            },
            Change::Remove { parent: Inode(3), name: Vec::new() },
            Change::Close { open: OpenNumber(u64::MAX) },
            Change::Discarded { inode: Inode(9) },
            Change::Pointer { open: OpenNumber(4), pointer: Pointer { setting: 5, units: 6 } },
            Change::Numbers { inode: Inode(7), open: OpenNumber(8), sequence: 9 },
        ];
        let record = Record { sequence: 5, asked: None, answer: Message::Done, changes };
        for record in [record, operation(3)] {
            assert_eq!(Record::decode(&record.encode(2)), Ok(record));
        }
    }

    #[test]
    fn a_torn_end_is_cut_wherever_it_tears() {
        let whole = journal(3);
        let ends: Vec<usize> = (0..=3).map(|count| journal(count).len()).collect();
        for length in 0..=whole.len() {
            let (records, bytes) = records(&whole[..length], 1).unwrap();
            let intact = ends.iter().filter(|&&end| end > 0 && end <= length).count();
            assert_eq!((records.len(), bytes), (intact, ends[intact]), "{length}");
            let read = records.iter().map(|record| Record::decode(record).unwrap().sequence);
            assert!(read.eq(1..=intact as u64));
        }
    }

    #[test]
    fn a_record_that_a_later_one_saw_must_be_there() {
        let whole = journal(3);
        let second = journal(1).len();
        for at in second..journal(2).len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x40;
            match records(&damaged, 1) {
                Err(refusal) => assert!(refusal.message.contains("record 2"), "{refusal}"),
                // What pads a record to 8 bytes says nothing.
                Ok((records, _)) => assert_eq!(records.len(), 3, "{at}"),
            }
        }
        // One that nobody saw is the end, though something intact stands behind it.
        let unseen: Vec<u8> = (1..=3).flat_map(|sequence| operation(sequence).encode(0)).collect();
        let mut torn = unseen.clone();
        torn[second + 40] ^= 1;
        assert_eq!(records(&torn, 1).unwrap().0.len(), 1);
    }
}
