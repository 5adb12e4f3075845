//! Reading a pack from its beginning, record by record, as far as it is whole.

use crate::contents::{Contents, Misfit};
use crate::header::{HEADER_BYTES, Header};
use crate::index;
use crate::record::{Head, RECORD_HEAD_BYTES, Record};
use iolab_vocab::Refusal;

/// Something that has bytes at offsets: a file, or memory.
pub trait Bytes {
    /// Why bytes cannot be had.
    type Error: From<Refusal>;

    /// At most `length` bytes from `offset` on; fewer only where it ends.
    ///
    /// # Errors
    /// When they cannot be read.
    fn at(&self, offset: u64, length: usize) -> Result<Vec<u8>, Self::Error>;
}

impl Bytes for [u8] {
    type Error = Refusal;

    fn at(&self, offset: u64, length: usize) -> Result<Vec<u8>, Refusal> {
        let begin = usize::try_from(offset).unwrap_or(usize::MAX).min(self.len());
        Ok(self[begin..].iter().take(length).copied().collect())
    }
}

/// How a pack ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Its run has ended it: all is there.
    Whole,
    /// Behind the last whole record there is nothing: its run goes on, or was killed.
    Open,
    /// What begins at this byte is no whole record: it is cut, or was changed.
    Damaged(u64),
}

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scanned {
    /// Who wrote it.
    pub header: Header,
    /// What the records come to, up to its end.
    pub contents: Contents,
    /// How many records there are.
    pub record_count: u64,
    /// A sync has returned for some of them.
    pub is_committed: bool,
    /// The first byte behind the last whole record.
    pub sound_bytes: u64,
    /// How it ends.
    pub end: End,
}

/// Reads every record. One that is cut or changed ends it, and is named by [`Scanned::end`].
///
/// # Errors
/// When it is no pack, or one of its records says what cannot be, such as a path out of the directory: whoever wrote that
/// was not iolab.
pub fn scan<B: Bytes + ?Sized>(pack: &B) -> Result<Scanned, B::Error> {
    let header = Header::decode(&pack.at(0, HEADER_BYTES)?)?;
    let (mut contents, mut at, mut record_count) = (Contents::default(), HEADER_BYTES as u64, 0);
    let (mut is_ended, mut is_committed) = (false, false);
    let end = loop {
        let head = pack.at(at, RECORD_HEAD_BYTES)?;
        if head.is_empty() {
            break if is_ended { End::Whole } else { End::Open };
        }
        let Some(head) = Head::decode(&head) else { break End::Damaged(at) };
        let begin = at + RECORD_HEAD_BYTES as u64;
        let body = pack.at(begin, head.length as usize)?;
        let Some(record) = Record::decode(&head, &body) else { break End::Damaged(at) };
        contents.take(&record, at, head.written_ns).map_err(|misfit| refused(at, &misfit))?;
        at = begin + u64::from(head.length);
        record_count += 1;
        is_committed |= matches!(record, Record::Commit);
        is_ended = matches!(record, Record::Index(_));
        if is_ended {
            // What shows where the index is belongs to it.
            let tail = pack.at(at, index::TAIL_BYTES)?;
            if index::decode_tail(&tail) != Some(begin - RECORD_HEAD_BYTES as u64) {
                break End::Damaged(at);
            }
            at += index::TAIL_BYTES as u64;
        }
    };
    Ok(Scanned { header, contents, record_count, is_committed, sound_bytes: at, end })
}

fn refused(at: u64, misfit: &Misfit) -> Refusal {
    Refusal::new(
        format!("the record at byte {at}: {misfit}"),
        "this pack was not written by iolab as it is; nothing of it is taken",
    )
}

/// What a pack holds: by its index where it has one, else record by record.
///
/// # Errors
/// As [`scan`].
pub fn contents_of<B: Bytes + ?Sized>(pack: &B, bytes: u64) -> Result<Scanned, B::Error> {
    match index::find(pack, bytes)? {
        Some(found) => Ok(found),
        None => scan(pack),
    }
}
