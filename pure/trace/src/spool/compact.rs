//! Chunks on disk after the launcher took them out: each record as its difference to the one
//! before, about 12 bytes instead of 64, so that a long run does not fill the disk.
//!
//! A frame: magic `IODR`, length of the body, process index, chunk index, tag, record count
//! (six u32), then the body. A record of the body: a u16 with a bit for each field that differs
//! from the prediction, then those fields as LEB128 of the zigzag difference. The prediction of
//! `start` is the record before's `end`, of `end` this `start` plus the last duration, of `offset`
//! the end of the last transfer, of all others the last value.
//!
//! Another kind of frame keeps the head of a process that ended, so that its file can go: magic
//! `IOPH`, length of the body, then the first bytes of the head. A frame that is cut short ends
//! the file.

use super::{CHUNK_RECORDS, Record, read_u32};
use iolab_vocab::varint;

const FRAME_MAGIC: u32 = u32::from_le_bytes(*b"IODR");
const PROCESS_MAGIC: u32 = u32::from_le_bytes(*b"IOPH");
const HEAD_BYTES: usize = 24;
const FIELDS: usize = 10;

/// The records of one use of one chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DrainedChunk {
    /// Index of the process file in the run.
    pub process: u32,
    /// Chunk within the file.
    pub chunk: u32,
    /// Tag of this use.
    pub tag: u32,
    /// The records that were valid.
    pub records: Vec<Record>,
}

/// A frame of a `drained` file, looked at but not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained<'a> {
    /// Records of a chunk.
    Chunk {
        /// Index of the process file in the run.
        process: u32,
        /// Chunk within the file.
        chunk: u32,
        /// Tag of this use.
        tag: u32,
        /// How many.
        count: u32,
    },
    /// The head of a process that ended, without the zeros at its end.
    Head(&'a [u8]),
}

impl Drained<'_> {
    /// The first frame and the bytes after it; `None` at the end or where the file is cut.
    pub fn peek(bytes: &[u8]) -> Option<(Drained<'_>, &[u8])> {
        let body = read_u32(bytes, 4) as usize;
        match read_u32(bytes, 0) {
            FRAME_MAGIC => {
                let rest = bytes.get(HEAD_BYTES.checked_add(body)?..)?;
                let [process, chunk, tag, count] = [8, 12, 16, 20].map(|at| read_u32(bytes, at));
                Some((Drained::Chunk { process, chunk, tag, count }, rest))
            }
            PROCESS_MAGIC => {
                let head = bytes.get(8..8usize.checked_add(body)?)?;
                Some((Drained::Head(head), &bytes[8 + body..]))
            }
            _ => None,
        }
    }
}

/// Appends the head of a process that ended.
pub fn encode_head(head: &[u8], out: &mut Vec<u8>) {
    let length = head.iter().rposition(|&byte| byte != 0).map_or(0, |at| at + 1);
    out.extend(PROCESS_MAGIC.to_le_bytes());
    out.extend((length as u32).to_le_bytes());
    out.extend(&head[..length]);
}

/// Takes the next frame off the front of a `drained` file: the records of a chunk, or `None` inside
/// for a frame of another kind or one whose body is damaged. `None` outside at the end.
pub fn take_drained(bytes: &mut &[u8]) -> Option<Option<DrainedChunk>> {
    let (_, rest) = Drained::peek(bytes)?;
    let frame = &bytes[..bytes.len() - rest.len()];
    *bytes = rest;
    Some(decode_frame(frame))
}

fn fields(record: &Record) -> [u64; FIELDS] {
    [
        record.start,
        record.end,
        record.offset as u64,
        record.length as u64,
        record.argument as u64,
        record.result as u64,
        u64::from(record.number),
        record.fd as u64,
        u64::from(record.function),
        u64::from(record.thread),
    ]
}

fn predicted(last: &Record, start: u64) -> [u64; FIELDS] {
    let mut all = fields(last);
    all[0] = last.end;
    all[1] = start.wrapping_add(last.end.wrapping_sub(last.start));
    if last.offset >= 0 {
        all[2] = (last.offset as u64).wrapping_add(last.length as u64);
    }
    all
}

fn put_record(record: &Record, last: &Record, out: &mut Vec<u8>) {
    let (now, then) = (fields(record), predicted(last, record.start));
    let mask_at = out.len();
    out.extend([0, 0]);
    let mut mask = 0u16;
    for index in 0..FIELDS {
        if now[index] != then[index] {
            mask |= 1 << index;
            let difference = now[index].wrapping_sub(then[index]);
            varint::put(varint::zigzag(difference as i64), out);
        }
    }
    out[mask_at..mask_at + 2].copy_from_slice(&mask.to_le_bytes());
}

fn take_record(bytes: &mut &[u8], last: &Record, tag: u32) -> Option<Record> {
    let (mask, rest) = bytes.split_at_checked(2)?;
    let mask = u16::from_le_bytes([mask[0], mask[1]]);
    *bytes = rest;
    let mut start = last.end;
    if mask & 1 != 0 {
        start = start.wrapping_add_signed(varint::unzigzag(varint::take(bytes)?));
    }
    let mut now = predicted(last, start);
    now[0] = start;
    for (index, field) in now.iter_mut().enumerate().skip(1) {
        if mask & 1 << index != 0 {
            *field = field.wrapping_add_signed(varint::unzigzag(varint::take(bytes)?));
        }
    }
    Some(Record {
        start: now[0],
        end: now[1],
        offset: now[2] as i64,
        length: now[3] as i64,
        argument: now[4] as i64,
        result: now[5] as i64,
        number: now[6] as u32,
        fd: now[7] as i32,
        function: now[8] as u16,
        thread: now[9] as u16,
        tag,
    })
}

/// Appends one chunk to the bytes of a `drained` file. `chunk_bytes` is the chunk as it lies in
/// memory; records that are not valid are left out.
pub fn encode_drained(process: u32, chunk: u32, tag: u32, chunk_bytes: &[u8], out: &mut Vec<u8>) {
    let slots = 1..=CHUNK_RECORDS.min(chunk_bytes.len() / super::RECORD_BYTES);
    let records = slots.filter_map(|slot| Record::read(chunk_bytes, slot, tag));
    encode_records((process, chunk, tag), records, out);
}

/// Appends records as those of one use of a chunk: process, chunk and tag. Of no other use may all three be the same.
pub fn encode_records(
    (process, chunk, tag): (u32, u32, u32),
    records: impl IntoIterator<Item = Record>,
    out: &mut Vec<u8>,
) {
    let head = out.len();
    out.resize(head + HEAD_BYTES, 0);
    let (mut last, mut count) = (Record::default(), 0u32);
    for record in records {
        put_record(&record, &last, out);
        (last, count) = (record, count + 1);
    }
    let body = (out.len() - head - HEAD_BYTES) as u32;
    for (index, word) in [FRAME_MAGIC, body, process, chunk, tag, count].into_iter().enumerate() {
        out[head + index * 4..head + index * 4 + 4].copy_from_slice(&word.to_le_bytes());
    }
}

fn decode_frame(frame: &[u8]) -> Option<DrainedChunk> {
    if read_u32(frame, 0) != FRAME_MAGIC {
        return None;
    }
    let mut rest = frame.get(HEAD_BYTES..)?;
    let [process, chunk, tag, count] = [8, 12, 16, 20].map(|at| read_u32(frame, at));
    let mut records = Vec::with_capacity(count.min(CHUNK_RECORDS as u32) as usize);
    let mut last = Record::default();
    for _ in 0..count {
        last = take_record(&mut rest, &last, tag)?;
        records.push(last);
    }
    Some(DrainedChunk { process, chunk, tag, records })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spool::{RECORD_BYTES, TEXT};
    use iolab_vocab::{Random, Seed};

    fn chunk_of(records: &[Record]) -> Vec<u8> {
        let mut bytes = vec![0; RECORD_BYTES];
        for record in records {
            bytes.extend(fields(record)[..6].iter().flat_map(|word| word.to_le_bytes()));
            bytes.extend(record.number.to_le_bytes());
            bytes.extend(record.fd.to_le_bytes());
            bytes.extend(record.function.to_le_bytes());
            bytes.extend(record.thread.to_le_bytes());
            bytes.extend(record.tag.to_le_bytes());
        }
        bytes
    }

    fn random_record(random: &mut Random) -> Record {
        Record {
            start: random.bits(),
            end: random.bits(),
            offset: random.bits() as i64,
            length: random.bits() as i64 >> random.below(64),
            argument: -1,
            result: random.bits() as i64,
            number: random.bits() as u32,
            fd: random.bits() as i32,
            function: if random.below(2) == 0 { TEXT } else { 21 },
            thread: random.bits() as u16,
            tag: 3,
        }
    }

    #[test]
    fn any_records_come_back_as_they_were() {
        let mut random = Random::new(Seed(1));
        let records: Vec<_> = (0..500).map(|_| random_record(&mut random)).collect();
        let mut out = Vec::new();
        encode_drained(4, 5, 3, &chunk_of(&records), &mut out);
        let mut rest = out.as_slice();
        let drained = take_drained(&mut rest).unwrap().unwrap();
        assert_eq!((drained.process, drained.chunk, drained.tag), (4, 5, 3));
        assert_eq!(drained.records, records);
        assert!(rest.is_empty());
    }

    #[test]
    fn the_head_of_a_process_is_kept_without_its_empty_end() {
        let mut out = Vec::new();
        encode_head(&[1, 0, 2, 0, 0], &mut out);
        assert_eq!(Drained::peek(&out), Some((Drained::Head(&[1, 0, 2]), [].as_slice())));
        assert_eq!(take_drained(&mut out.as_slice()), Some(None));
    }

    #[test]
    fn a_loop_of_writes_takes_few_bytes_and_a_cut_frame_is_no_frame() {
        let records: Vec<_> = (0..1000u64)
            .map(|i| Record {
                start: 1000 * i,
                end: 1000 * i + 900 + i % 7,
                offset: 64 * i as i64,
                length: 64,
                result: 64,
                tag: 1,
                function: 21,
                ..Record::default()
            })
            .collect();
        let mut out = Vec::new();
        encode_drained(0, 0, 1, &chunk_of(&records), &mut out);
        assert!(out.len() < 1000 * 8, "{} bytes", out.len());
        for cut in [0, 3, HEAD_BYTES, out.len() / 2, out.len() - 1] {
            assert_eq!(take_drained(&mut &out[..cut]), None);
        }
    }
}
