//! One record: what was done to one file, or to all.

use crate::fields::{Fields, put_text};

/// Bytes in front of a record's body.
pub const RECORD_HEAD_BYTES: usize = 20;
/// The longest body, in bytes; a record that claims more is damaged.
pub const BODY_BYTES_MAX: u32 = 64 << 20;
/// The longest path, in bytes, as Linux has it.
pub const PATH_BYTES_MAX: usize = 4096;

/// A moment: seconds since 1970 (UTC) and nanoseconds of the second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    /// Seconds; before 1970 below zero.
    pub seconds: i64,
    /// Nanoseconds, below 10⁹.
    pub nanoseconds: u32,
}

/// What is known of a file beside its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Permissions and set-id bits (`07777`).
    pub mode: u32,
    /// The owner's number.
    pub user: u32,
    /// The group's number.
    pub group: u32,
    /// Last access.
    pub accessed: Time,
    /// Last change of its bytes.
    pub modified: Time,
}

/// One record. Paths are relative to the directory that the pack is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// Bytes of a file came, or its attributes changed; a file that was not there is there from now on.
    Data {
        /// The file.
        path: &'a [u8],
        /// All its attributes.
        attributes: Attributes,
        /// How long it is now; what no record has given is zeros.
        size: u64,
        /// Where `bytes` begin.
        offset: u64,
        /// Its bytes there.
        bytes: &'a [u8],
    },
    /// A file has another name; a file that had that name is gone.
    Rename {
        /// The old one.
        from: &'a [u8],
        /// The new one.
        to: &'a [u8],
    },
    /// A name is gone: it was removed, or has a real file now.
    Unlink {
        /// Which.
        path: &'a [u8],
    },
    /// All records before this one were made durable.
    Commit,
    /// A real file is about to be made in the place of this one: if it is there, it counts.
    Moving {
        /// Which.
        path: &'a [u8],
    },
    /// A directory that files lie in.
    Directory {
        /// Which.
        path: &'a [u8],
        /// Permissions and set-id bits (`07777`).
        mode: u32,
        /// The owner's number.
        user: u32,
        /// The group's number.
        group: u32,
    },
    /// The times of a directory were set by the program: they stay, whatever came before.
    Settled {
        /// Which.
        path: &'a [u8],
    },
    /// All contents once more; `index` reads it.
    Index(&'a [u8]),
}

/// What stands in front of a record's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Bytes of the body.
    pub length: u32,
    /// When it was written, in nanoseconds since 1970 (UTC).
    pub written_ns: u64,
    kind: u8,
    sum: u32,
    summed: [u8; RECORD_HEAD_BYTES - 4],
}

impl Head {
    /// Reads it; nothing if these bytes are none.
    pub fn decode(bytes: &[u8]) -> Option<Head> {
        let (summed, sum) = bytes.get(..RECORD_HEAD_BYTES)?.split_at(RECORD_HEAD_BYTES - 4);
        let mut fields = Fields(summed);
        let (length, kind) = (fields.u32()?, fields.array::<4>()?);
        let written_ns = fields.u64()?;
        let is_sound = length <= BODY_BYTES_MAX && kind[1..] == [0; 3];
        let sum = u32::from_le_bytes(sum.try_into().ok()?);
        let summed = summed.try_into().ok()?;
        is_sound.then_some(Head { length, written_ns, kind: kind[0], sum, summed })
    }
}

/// Bytes of a `Data` body in front of its path.
const DATA_BYTES: usize = 12 + 2 * 12 + 16;

impl<'a> Record<'a> {
    fn kind(&self) -> u8 {
        match self {
            Record::Data { .. } => 1,
            Record::Rename { .. } => 2,
            Record::Unlink { .. } => 3,
            Record::Commit => 4,
            Record::Moving { .. } => 5,
            Record::Directory { .. } => 6,
            Record::Settled { .. } => 7,
            Record::Index(_) => 8,
        }
    }

    /// Its bytes, written at that time (nanoseconds since 1970, UTC).
    pub fn encode(&self, written_ns: u64) -> Vec<u8> {
        let mut out = vec![0; RECORD_HEAD_BYTES];
        self.put_body(&mut out);
        let length = (out.len() - RECORD_HEAD_BYTES) as u32;
        assert!(length <= BODY_BYTES_MAX, "a record of {length} bytes");
        out[..4].copy_from_slice(&length.to_le_bytes());
        out[4] = self.kind();
        out[8..16].copy_from_slice(&written_ns.to_le_bytes());
        let sum = sum_of(&out[..RECORD_HEAD_BYTES - 4], &out[RECORD_HEAD_BYTES..]);
        out[RECORD_HEAD_BYTES - 4..RECORD_HEAD_BYTES].copy_from_slice(&sum.to_le_bytes());
        out
    }

    fn put_body(&self, out: &mut Vec<u8>) {
        match *self {
            Record::Data { path, attributes, size, offset, bytes } => {
                attributes.put(out);
                out.extend(size.to_le_bytes());
                out.extend(offset.to_le_bytes());
                put_text(out, path);
                out.extend(bytes);
            }
            Record::Rename { from, to } => {
                put_text(out, from);
                put_text(out, to);
            }
            Record::Unlink { path } | Record::Moving { path } | Record::Settled { path } => {
                put_text(out, path);
            }
            Record::Commit => {}
            Record::Directory { path, mode, user, group } => {
                for field in [mode, user, group] {
                    out.extend(field.to_le_bytes());
                }
                put_text(out, path);
            }
            Record::Index(body) => out.extend(body),
        }
    }

    /// Reads one; nothing if its sum or a field is wrong.
    pub fn decode(head: &Head, body: &'a [u8]) -> Option<Record<'a>> {
        if body.len() != head.length as usize || sum_of(&head.summed, body) != head.sum {
            return None;
        }
        let mut fields = Fields(body);
        let record = match head.kind {
            1 => {
                let attributes = Attributes::read(&mut fields)?;
                let (size, offset) = (fields.u64()?, fields.u64()?);
                let path = fields.text()?;
                let bytes = fields.take(fields.0.len())?;
                let end = offset.checked_add(bytes.len() as u64)?;
                if end > size && !bytes.is_empty() {
                    return None;
                }
                Record::Data { path, attributes, size, offset, bytes }
            }
            2 => Record::Rename { from: fields.text()?, to: fields.text()? },
            3 => Record::Unlink { path: fields.text()? },
            4 => Record::Commit,
            5 => Record::Moving { path: fields.text()? },
            6 => {
                let (mode, user, group) = (fields.u32()?, fields.u32()?, fields.u32()?);
                Record::Directory { path: fields.text()?, mode, user, group }
            }
            7 => Record::Settled { path: fields.text()? },
            8 => Record::Index(fields.take(body.len())?),
            _ => return None,
        };
        fields.0.is_empty().then_some(record)
    }

    /// Where the bytes of a `Data` record begin, counted from the record's own first byte.
    pub fn bytes_begin(path: &[u8]) -> u64 {
        (RECORD_HEAD_BYTES + DATA_BYTES + 2 + path.len()) as u64
    }
}

fn sum_of(head: &[u8], body: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(head), body)
}

impl Attributes {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        for field in [self.mode, self.user, self.group] {
            out.extend(field.to_le_bytes());
        }
        for time in [self.accessed, self.modified] {
            out.extend(time.seconds.to_le_bytes());
            out.extend(time.nanoseconds.to_le_bytes());
        }
    }

    pub(crate) fn read(fields: &mut Fields<'_>) -> Option<Attributes> {
        let (mode, user, group) = (fields.u32()?, fields.u32()?, fields.u32()?);
        let mut time = || {
            let seconds = i64::from_le_bytes(fields.array()?);
            let nanoseconds = fields.u32().filter(|&it| it < 1_000_000_000)?;
            Some(Time { seconds, nanoseconds })
        };
        let (accessed, modified) = (time()?, time()?);
        (mode <= 0o7777).then_some(Attributes { mode, user, group, accessed, modified })
    }
}
