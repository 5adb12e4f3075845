//! How the reads of one description follow each other: one behind the other, backwards, or by a
//! step. Three in a row make a stream; a description whose streams ended before what was fetched for
//! them was used has to show more the next time (6, 12, …), until a stream uses what it gets. So what
//! a random reader's short streams cost stays a vanishing part of what it reads.

use iolab_vocab::Extent;

/// Reads in a row that make a stream, at first.
const PATIENCE: u32 = 3;
const PATIENCE_MAX: u32 = 1 << 16;

/// Where the next read of a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    /// Behind the last one.
    Forward,
    /// Before the last one.
    Backward,
    /// So far from the last one, from start to start.
    Strided(i64),
}

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    last: Extent,
    course: Option<Course>,
    reads: u32,
    patience: u32,
}

impl Default for Stream {
    fn default() -> Stream {
        Stream { last: Extent::new(0, 0), course: None, reads: 0, patience: PATIENCE }
    }
}

impl Stream {
    /// A read has arrived. Returns whether it left a stream.
    #[inline]
    pub(super) fn note(&mut self, extent: Extent) -> bool {
        let course = course(self.last, extent);
        self.last = extent;
        if course.is_some() && course == self.course {
            self.reads = self.reads.saturating_add(1);
            return false;
        }
        let was_stream = self.course().is_some();
        self.reads = if course.is_some() { 2 } else { 1 };
        self.course = course;
        was_stream
    }

    /// Where the last read began.
    pub(super) fn last_offset(&self) -> u64 {
        self.last.offset
    }

    /// The course, once enough reads have followed it.
    pub(super) fn course(&self) -> Option<Course> {
        self.course.filter(|_| self.reads >= self.patience)
    }

    /// What was fetched for a stream was used.
    pub(super) fn was_used(&mut self) {
        self.patience = PATIENCE;
    }

    /// What was fetched for a stream was not used.
    pub(super) fn was_wasted(&mut self) {
        self.patience = self.patience.saturating_mul(2).min(PATIENCE_MAX);
    }
}

/// The course that leads from a read to the next; `None` from nothing, and to the same place.
fn course(last: Extent, next: Extent) -> Option<Course> {
    if last.is_empty() || next.is_empty() || last.offset == next.offset {
        return None;
    }
    Some(match () {
        () if next.offset == last.end() => Course::Forward,
        () if next.end() == last.offset => Course::Backward,
        () => Course::Strided(next.offset.wrapping_sub(last.offset) as i64),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(reads: &[(u64, u64)]) -> Stream {
        let mut stream = Stream::default();
        for &(offset, length) in reads {
            stream.note(Extent::new(offset, length));
        }
        stream
    }

    #[test]
    fn three_reads_in_a_row_make_a_stream_whatever_its_course() {
        let streams: [(&[(u64, u64)], Course); 4] = [
            (&[(70, 10), (80, 5), (85, 10)], Course::Forward),
            (&[(70, 10), (60, 10), (50, 10)], Course::Backward),
            (&[(0, 10), (100, 10), (200, 7)], Course::Strided(100)),
            (&[(900, 10), (600, 10), (300, 10)], Course::Strided(-300)),
        ];
        for (reads, course) in streams {
            assert_eq!(after(&reads[..2]).course(), None, "{reads:?}");
            assert_eq!(after(reads).course(), Some(course), "{reads:?}");
        }
        assert_eq!(after(&[(0, 10), (10, 10), (30, 10)]).course(), None);
        assert_eq!(after(&[(0, 10); 5]).course(), None, "the same bytes again");
    }

    #[test]
    fn a_stream_that_ended_too_early_makes_the_next_one_wait() {
        let mut stream = after(&[(0, 10), (10, 10), (20, 10)]);
        assert!(stream.note(Extent::new(500, 10)), "it left the stream");
        stream.was_wasted();
        let reads = (1..6).map(|i| Extent::new(500 + i * 10, 10));
        let streams: Vec<bool> = reads
            .map(|extent| {
                assert!(!stream.note(extent));
                stream.course().is_some()
            })
            .collect();
        assert_eq!(streams, [false, false, false, false, true], "6 in a row");
        stream.was_used();
        assert!(stream.note(Extent::new(0, 10)));
        stream.note(Extent::new(10, 10));
        stream.note(Extent::new(20, 10));
        assert_eq!(stream.course(), Some(Course::Forward));
    }
}
