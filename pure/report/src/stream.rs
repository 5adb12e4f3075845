//! What one thread did to one file, seen at one level: counters small enough for 100,000 files.

use crate::frequent::Frequent;
use crate::pattern::{Detector, Pattern};
use iolab_trace::{Class, Event, Function, open_flags};
use iolab_vocab::{Direction, Extent, Nanos};

/// A request below this is tiny: the call costs more than the moving of its bytes. Twice the 8 KiB
/// at which a write to a cached file takes double the time of an empty one on local file systems,
/// and the size up to which write-back pays.
pub(crate) const TINY_BYTES: u64 = 16 << 10;
/// Pages of the caches, and the smallest block of common file systems.
const BLOCK_BYTES: u64 = 4096;
/// A sync after less than this forces out what could have waited.
const LITTLE_BYTES: u64 = 1 << 20;
/// Calls that give a file another name and leave it the one it has.
const LINKS: [Function; 4] =
    [Function::LINK, Function::LINKAT, Function::SYMLINK, Function::SYMLINKAT];
/// How many writes back still count as just written.
const RECENT_WRITES: usize = 64;

/// At which level a stream was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Calls that reach the kernel.
    System,
    /// Calls of a library above it.
    Library,
}

/// Whose stream it is; ordered so that streams of a file, and of a process in it, lie together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StreamKey {
    pub(crate) file: u32,
    pub(crate) level: Level,
    pub(crate) process: u32,
    pub(crate) thread: u32,
}

/// Some calls: how many, how long, and where the first one is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Calls {
    pub(crate) count: u64,
    pub(crate) ns: u64,
    pub(crate) bytes: u64,
    /// Row of the first one.
    pub(crate) row: Option<u64>,
}

impl Calls {
    pub(crate) fn add(&mut self, row: u64, event: &Event) {
        let bytes = event.moved_bytes();
        self.merge(Calls { count: event.calls(), ns: event.duration().0, bytes, row: Some(row) });
    }

    /// A damaged trace may say any numbers: sums stay at the end of the range.
    pub(crate) fn merge(&mut self, other: Calls) {
        self.count = self.count.saturating_add(other.count);
        self.ns = self.ns.saturating_add(other.ns);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.row = self.row.or(other.row);
    }

    /// These and those.
    pub(crate) fn and(mut self, other: Calls) -> Calls {
        self.merge(other);
        self
    }
}

/// All reads, or all writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transfers {
    pub(crate) all: Calls,
    /// Requests below `TINY_BYTES` that begin where the one before ended.
    pub(crate) tiny_consecutive: Calls,
    /// Other requests below `TINY_BYTES`.
    pub(crate) tiny_scattered: Calls,
    /// Of a block or more, but not beginning at one, and not continuing the one before.
    pub(crate) unaligned: Calls,
    /// Asked again, and again got nothing, where the one before got nothing.
    pub(crate) repeated_empty: Calls,
    pub(crate) failed: Calls,
    pub(crate) requests: Frequent<u64, 4>,
    pub(crate) detector: Detector,
    /// Of files of the same name before this one: from the first byte touched to the last, added up.
    pub(crate) span_bytes_before: u64,
    /// The first request, if it is tiny: what it is shows the second.
    tiny_first: Calls,
    /// Where a request got nothing, if that was the last one.
    empty_at: Option<i64>,
}

impl Transfers {
    /// What follows is about another file of the same name.
    fn begin_anew(&mut self) {
        let span = self.detector.begin_anew();
        let bytes = span.map_or(0, |span| span.length);
        self.span_bytes_before = self.span_bytes_before.saturating_add(bytes);
        self.empty_at = None;
    }

    fn add(&mut self, row: u64, event: &Event) {
        self.all.add(row, event);
        if event.result < 0 {
            // Who was interrupted, or is to ask again later, has met no fault.
            const ASK_AGAIN: [i32; 2] = [4, 11];
            if !event.errno().is_some_and(|errno| ASK_AGAIN.contains(&errno)) {
                self.failed.add(row, event);
            }
            return;
        }
        if event.result == 0 {
            // Of calls that were counted, the first may be the one that notices the end.
            if self.empty_at == Some(event.offset) || event.calls() > 2 {
                self.repeated_empty.add(row, event);
            }
            self.empty_at = Some(event.offset);
            return;
        }
        self.empty_at = None;
        // Of calls that were counted, only the mean is known.
        let bytes = (event.result as u64).div_ceil(event.calls());
        self.requests.add_many(bytes, event.calls());
        let Ok(offset) = u64::try_from(event.offset) else { return };
        let extent = Extent::new(offset, event.result as u64);
        let is_first = self.all.count == event.calls();
        let consecutive = self.detector.add(extent) || (is_first && event.calls() > 1);
        let first = std::mem::take(&mut self.tiny_first);
        match (bytes < TINY_BYTES, consecutive) {
            (true, true) => {
                self.tiny_consecutive.merge(first);
                self.tiny_consecutive.add(row, event);
            }
            (true, false) if is_first => self.tiny_first.add(row, event),
            (false, false) if is_first => {}
            (true, false) => self.tiny_scattered.add(row, event),
            (false, false) if offset % BLOCK_BYTES != 0 => self.unaligned.add(row, event),
            (false, _) => {}
        }
    }
}

/// What one thread did to one file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stream {
    pub(crate) reads: Option<Box<Transfers>>,
    pub(crate) writes: Option<Box<Transfers>>,
    pub(crate) opens: Calls,
    pub(crate) creates: Calls,
    /// Opens with `O_SYNC` or `O_DSYNC`.
    pub(crate) synchronous_opens: Calls,
    /// Opens to write, or of which that is not known, with neither.
    pub(crate) cached_opens: Calls,
    /// Writes by a descriptor that the thread opened with `O_SYNC` or `O_DSYNC`.
    pub(crate) synchronous_writes: Calls,
    /// Writes by a descriptor that it did not open itself.
    pub(crate) inherited_writes: Calls,
    pub(crate) closes: Calls,
    pub(crate) seeks: Calls,
    /// Seeks to where the position was, or undone by the next seek.
    pub(crate) redundant_seeks: Calls,
    pub(crate) syncs: Calls,
    /// Syncs with less than `LITTLE_BYTES` written by the thread since the one before, and those bytes.
    pub(crate) syncs_of_little: Calls,
    /// Syncs with nothing written by the thread since the one before.
    pub(crate) syncs_of_nothing: Calls,
    pub(crate) flushes: Calls,
    pub(crate) stats: Calls,
    pub(crate) locks: Calls,
    pub(crate) unlinks: Calls,
    /// When the thread last created it, and when it last removed it.
    pub(crate) created: Option<Nanos>,
    pub(crate) removed: Option<Nanos>,
    pub(crate) others: Calls,
    /// Calls that failed because the file was not there.
    pub(crate) missing: Calls,
    /// Reads of what one of the last writes wrote.
    pub(crate) reads_of_recent: Calls,
    /// When the thread first and last used it by a descriptor.
    pub(crate) used: Option<(Nanos, Nanos)>,
    recent: Option<Box<Recent>>,
    written_since_sync: u64,
    /// It has another name now, or none: who has this name from now on is another file.
    is_gone: bool,
}

/// The last writes, oldest overwritten first.
#[derive(Clone, Debug)]
struct Recent {
    writes: [Extent; RECENT_WRITES],
    next: usize,
}

impl Stream {
    pub(crate) fn observe(&mut self, row: u64, event: &Event) {
        const ENOENT: i32 = 2;
        if event.errno() == Some(ENOENT) {
            self.missing.add(row, event);
        }
        if event.result >= 0
            && matches!(
                event.function.class(),
                Class::Open | Class::Read | Class::Write | Class::Close
            )
        {
            let (first, last) = self.used.unwrap_or((event.start, event.end));
            self.used = Some((first.min(event.start), last.max(event.end)));
        }
        match event.function.class() {
            Class::Read => self.read(row, event),
            Class::Write => self.write(row, event),
            Class::Open => self.open(row, event),
            Class::Close => self.closes.add(row, event),
            Class::Seek => self.seeks.add(row, event),
            Class::Sync => self.sync(row, event),
            Class::Flush => self.flushes.add(row, event),
            Class::Stat => self.stats.add(row, event),
            Class::Lock => self.locks.add(row, event),
            Class::Unlink => self.unlink(row, event),
            Class::Rename if event.result >= 0 && !LINKS.contains(&event.function) => {
                self.is_gone = true;
                self.others.add(row, event);
            }
            _ => self.others.add(row, event),
        }
    }

    fn read(&mut self, row: u64, event: &Event) {
        self.reads.get_or_insert_default().add(row, event);
        let Some(extent) = extent_of(event) else { return };
        let just_written = |recent: &Recent| recent.writes.iter().any(|w| w.overlaps(extent));
        if self.recent.as_deref().is_some_and(just_written) {
            self.reads_of_recent.add(row, event);
        }
    }

    fn write(&mut self, row: u64, event: &Event) {
        self.writes.get_or_insert_default().add(row, event);
        self.written_since_sync = self.written_since_sync.saturating_add(event.moved_bytes());
        let Some(extent) = extent_of(event) else { return };
        let recent = self.recent.get_or_insert_with(|| {
            Box::new(Recent { writes: [Extent::default(); RECENT_WRITES], next: 0 })
        });
        recent.writes[recent.next] = extent;
        recent.next = (recent.next + 1) % RECENT_WRITES;
    }

    fn open(&mut self, row: u64, event: &Event) {
        // A descriptor that was there before is no open of this program.
        if event.function == Function::INHERITED || event.result < 0 {
            return;
        }
        // Whoever opens the file anew reads to its end anew.
        self.reads.iter_mut().for_each(|reads| reads.empty_at = None);
        if std::mem::take(&mut self.is_gone) {
            self.reads.iter_mut().chain(&mut self.writes).for_each(|all| all.begin_anew());
            self.recent = None;
        }
        self.opens.add(row, event);
        let has = |flag| event.argument >= 0 && event.argument & flag != 0;
        if has(open_flags::CREATE) {
            self.creates.add(row, event);
            self.created = self.created.max(Some(event.start));
        }
        if is_synchronous(event.argument) {
            self.synchronous_opens.add(row, event);
        } else if event.argument < 0 || has(open_flags::ACCESS_MODE) {
            self.cached_opens.add(row, event);
        }
    }

    /// A write by a descriptor that the thread opened with these flags, or not at all.
    pub(crate) fn wrote_by(&mut self, flags: Option<i64>, row: u64, event: &Event) {
        match flags {
            Some(flags) if is_synchronous(flags) => self.synchronous_writes.add(row, event),
            Some(_) => {}
            None => self.inherited_writes.add(row, event),
        }
    }

    fn unlink(&mut self, row: u64, event: &Event) {
        if event.result >= 0 {
            self.unlinks.add(row, event);
            self.removed = self.removed.max(Some(event.start));
            self.is_gone = true;
        }
    }

    fn sync(&mut self, row: u64, event: &Event) {
        self.syncs.add(row, event);
        match std::mem::take(&mut self.written_since_sync) {
            0 => self.syncs_of_nothing.add(row, event),
            bytes @ 1..LITTLE_BYTES => {
                self.syncs_of_little.add(row, event);
                self.syncs_of_little.bytes = self.syncs_of_little.bytes.saturating_add(bytes);
            }
            LITTLE_BYTES.. => {}
        }
    }

    /// Reads or writes, if they lie in one of these patterns.
    pub(crate) fn patterned(
        &self,
        direction: Direction,
        test: impl Fn(Pattern) -> bool,
    ) -> Option<&Transfers> {
        self.transfers(direction).filter(|transfers| test(transfers.detector.pattern()))
    }

    /// Reads or writes, all zero when there are none.
    pub(crate) fn transfers(&self, direction: Direction) -> Option<&Transfers> {
        match direction {
            Direction::Read => self.reads.as_deref(),
            Direction::Write => self.writes.as_deref(),
        }
    }
}

fn is_synchronous(flags: i64) -> bool {
    flags >= 0 && flags & open_flags::DATA_SYNC != 0
}

fn extent_of(event: &Event) -> Option<Extent> {
    let offset = u64::try_from(event.offset).ok()?;
    (event.result > 0).then(|| Extent::new(offset, event.result as u64))
}
