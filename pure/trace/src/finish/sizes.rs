//! How large files are, followed in the order of time.
//!
//! Rows come by their starts, but an open tells the size that its file had at some moment before it returned. Writes that were under
//! way then may be in it or not: an append that began earlier and waited for the file's lock lands behind it. So what an
//! open tells counts from its end on, and where it is less than what is known, only if that is more than the writes
//! under way explain. Appends never share a byte; without this those of several threads would.

use iolab_vocab::{FileId, Nanos};
use std::ops::Range;

/// Sizes of all files.
pub(super) struct Sizes {
    files: Vec<Size>,
}

#[derive(Clone, Debug, Default)]
struct Size {
    bytes: i64,
    /// What opens under way tell, with the time they take.
    told: Vec<(Range<Nanos>, i64)>,
    /// By how much writes made it larger, until when they were under way.
    growth: Vec<(Nanos, i64)>,
}

impl Sizes {
    pub(super) fn new(file_count: usize) -> Sizes {
        Sizes { files: vec![Size::default(); file_count] }
    }

    /// The size at a time.
    pub(super) fn at(&mut self, file: FileId, now: Nanos) -> i64 {
        self.file(file).map_or(0, |size| size.at(now))
    }

    /// A call made it that size.
    pub(super) fn set(&mut self, file: FileId, bytes: i64) {
        if let Some(size) = self.file(file) {
            *size = Size { bytes: bytes.max(0), ..Size::default() };
        }
    }

    /// An open that took that long tells the size.
    pub(super) fn tell(&mut self, file: FileId, open: Range<Nanos>, bytes: i64) {
        if let Some(size) = self.file(file) {
            size.told.push((open, bytes.max(0)));
        }
    }

    /// A call of that time wrote, or gave room, up to `end`.
    pub(super) fn reach(&mut self, file: FileId, call: Range<Nanos>, end: i64) {
        let Some(size) = self.file(file) else { return };
        let grown = end.saturating_sub(size.at(call.start));
        if grown <= 0 {
            return;
        }
        if size.told.is_empty() {
            size.growth.retain(|(until, _)| *until > call.start);
        }
        size.bytes = end;
        size.growth.push((call.end, grown));
    }

    fn file(&mut self, file: FileId) -> Option<&mut Size> {
        self.files.get_mut(file.index()?)
    }
}

impl Size {
    fn at(&mut self, now: Nanos) -> i64 {
        while let Some(next) = self.told.iter().position(|(open, _)| open.end <= now) {
            let (open, told) = self.told.remove(next);
            let under_way = self.growth.iter().filter(|(until, _)| *until > open.start);
            let unseen = under_way.map(|(_, grown)| grown).fold(0_i64, |a, b| a.saturating_add(*b));
            if told > self.bytes || self.bytes - told > unseen {
                self.bytes = told;
            }
        }
        self.bytes
    }
}
