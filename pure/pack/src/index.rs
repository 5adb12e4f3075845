//! The index at the end of a pack that its run has ended: all contents once more, so that a reader need not go
//! through every record.

use crate::contents::{Contents, Directory, Packed, Piece};
use crate::fields::{Fields, put_text};
use crate::header::{HEADER_BYTES, Header};
use crate::record::{Attributes, BODY_BYTES_MAX, Head, RECORD_HEAD_BYTES, Record};
use crate::scan::{Bytes, End, Scanned};

/// Bytes behind the index's record.
pub const TAIL_BYTES: usize = 20;
const MAGIC: &[u8; 8] = b"iolabidx";

/// The index of a pack of so many records, and whether a sync has returned for some of them; with its tail. It begins at `at`
/// and is written at `written_ns` (since 1970). Nothing where it would be too large.
pub fn encode(
    contents: &Contents,
    (records, is_committed): (u64, bool),
    at: u64,
    written_ns: u64,
) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    body.extend((records + 1).to_le_bytes());
    body.extend(u32::from(is_committed).to_le_bytes());
    body.extend((contents.directories.len() as u64).to_le_bytes());
    for (path, directory) in &contents.directories {
        put_text(&mut body, path);
        let (mode, user, group) = directory.made.unwrap_or_default();
        let known = u32::from(directory.made.is_some());
        let changed = u32::from(directory.changed_ns.is_some()) << 1;
        for field in [known | changed, mode, user, group] {
            body.extend(field.to_le_bytes());
        }
        body.extend(directory.changed_ns.unwrap_or(0).to_le_bytes());
    }
    body.extend((contents.files.len() as u64).to_le_bytes());
    for (path, file) in &contents.files {
        put_text(&mut body, path);
        file.attributes.put(&mut body);
        body.extend(file.size.to_le_bytes());
        body.extend(u32::from(file.is_moving).to_le_bytes());
        body.extend((file.pieces.len() as u32).to_le_bytes());
        for piece in &file.pieces {
            for field in [piece.offset, piece.at, piece.length] {
                body.extend(field.to_le_bytes());
            }
        }
        if body.len() > BODY_BYTES_MAX as usize {
            return None;
        }
    }
    let mut out = Record::Index(&body).encode(written_ns);
    out.extend(encode_tail(at));
    Some(out)
}

fn encode_tail(at: u64) -> [u8; TAIL_BYTES] {
    let mut tail = [0; TAIL_BYTES];
    tail[..8].copy_from_slice(MAGIC);
    tail[8..16].copy_from_slice(&at.to_le_bytes());
    let sum = crc32c::crc32c(&tail[..16]);
    tail[16..].copy_from_slice(&sum.to_le_bytes());
    tail
}

/// Where the index is, by what stands at the end of a pack.
pub(crate) fn decode_tail(tail: &[u8]) -> Option<u64> {
    let mut fields = Fields(tail);
    let is_one = fields.take(8)? == MAGIC;
    let (at, sum) = (fields.u64()?, fields.u32()?);
    (is_one && fields.0.is_empty() && crc32c::crc32c(&tail[..16]) == sum).then_some(at)
}

/// What the index of a pack of so many bytes says, if it has one that is whole.
///
/// # Errors
/// When the pack cannot be read.
pub fn find<B: Bytes + ?Sized>(pack: &B, bytes: u64) -> Result<Option<Scanned>, B::Error> {
    let Some(tail_at) = bytes.checked_sub(TAIL_BYTES as u64) else { return Ok(None) };
    let Some(at) = decode_tail(&pack.at(tail_at, TAIL_BYTES)?) else { return Ok(None) };
    let Some(head) = Head::decode(&pack.at(at, RECORD_HEAD_BYTES)?) else { return Ok(None) };
    let begin = at.saturating_add(RECORD_HEAD_BYTES as u64);
    if begin.checked_add(head.length.into()) != Some(tail_at) {
        return Ok(None);
    }
    let body = pack.at(begin, head.length as usize)?;
    let Some(Record::Index(body)) = Record::decode(&head, &body) else { return Ok(None) };
    let header = Header::decode(&pack.at(0, HEADER_BYTES)?)?;
    let read = decode(body, at);
    Ok(read.map(|(contents, record_count, is_committed)| Scanned {
        header,
        contents,
        record_count,
        is_committed,
        sound_bytes: bytes,
        end: End::Whole,
    }))
}

/// The contents, and how many records there are with the index; nothing where a field is wrong, a path not in its
/// one form, or a piece outside of the pack's records.
fn decode(body: &[u8], records_end: u64) -> Option<(Contents, u64, bool)> {
    let mut fields = Fields(body);
    let (records, is_committed) = (fields.u64()?, fields.u32()? != 0);
    let mut contents = Contents::default();
    for _ in 0..fields.u64()? {
        let path = fields.text()?;
        let words = [fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?];
        let changed = fields.u64()?;
        let (known, has_changed) = (words[0] & 1 != 0, words[0] & 2 != 0);
        let made = known.then_some((words[1], words[2], words[3]));
        let directory = Directory { made, changed_ns: has_changed.then_some(changed) };
        contents.directories.insert(path.to_vec(), directory);
    }
    for _ in 0..fields.u64()? {
        let path = fields.text()?;
        let attributes = Attributes::read(&mut fields)?;
        let (size, is_moving, pieces) = (fields.u64()?, fields.u32()? != 0, fields.u32()?);
        let mut file = Packed { attributes, size, pieces: Vec::new(), is_moving };
        for _ in 0..pieces {
            let piece = Piece { offset: fields.u64()?, at: fields.u64()?, length: fields.u64()? };
            let is_inside = piece.offset.checked_add(piece.length)? <= size
                && piece.at.checked_add(piece.length)? <= records_end;
            file.pieces.push(is_inside.then_some(piece)?);
        }
        contents.files.insert(path.to_vec(), file);
    }
    let is_whole = fields.0.is_empty() && contents.is_below();
    is_whole.then_some((contents, records, is_committed))
}
