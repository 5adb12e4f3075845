//! How much room the files of a replay take.

use crate::initial::Initial;
use iolab_trace::{Class, Event, Trace};
use rustix::io::Errno;
use std::collections::BTreeMap;

/// Whether an error says that there is no room.
pub(crate) fn is_lacking(errno: i32) -> bool {
    [Errno::NOSPC, Errno::DQUOT].iter().any(|it| it.raw_os_error() == errno)
}

/// The most bytes that the files take at a time, about: what is not written takes none, and what was removed gives
/// its room back at once.
pub(crate) fn needed_bytes(trace: &Trace, order: &[usize], initial: &[Initial]) -> u64 {
    let mut room = Room::default();
    for (index, file) in initial.iter().enumerate().filter(|(_, file)| file.existed == Some(true)) {
        room.take(index, file.bytes);
    }
    for &row in order {
        room.follow(&trace.events[row]);
    }
    room.most
}

#[derive(Default)]
struct Room {
    /// By name.
    taken: BTreeMap<usize, u64>,
    now: u64,
    most: u64,
}

impl Room {
    fn follow(&mut self, event: &Event) {
        let Some(file) = event.file.index().filter(|_| event.result >= 0) else { return };
        let second = event.second_file().index();
        let moved = event.moved_bytes();
        match (event.function.class(), second) {
            (Class::Write, _) => {
                // A file that is written over takes no more than it is long.
                let end = event.offset.max(0) as u64 + moved;
                let taken = self.taken.get(&file).copied().unwrap_or(0);
                let more = taken.saturating_add(moved);
                let grown = if event.offset < 0 { more } else { end.min(more) };
                self.take(file, grown.max(taken));
            }
            (Class::Copy, Some(target)) => {
                let taken = self.taken.get(&target).copied().unwrap_or(0);
                self.take(target, taken.saturating_add(moved));
            }
            (Class::Allocate, _) => {
                let end = event.offset.max(0) as u64 + event.length.max(0) as u64;
                let taken = self.taken.get(&file).copied().unwrap_or(0);
                self.take(file, taken.max(end));
            }
            (Class::Truncate, _) => {
                let taken = self.taken.get(&file).copied().unwrap_or(0);
                self.take(file, taken.min(event.length.max(0) as u64));
            }
            (Class::Unlink, _) => self.take(file, 0),
            (Class::Rename, Some(second)) if event.function.exchanges() => {
                let both = [file, second].map(|it| self.taken.get(&it).copied().unwrap_or(0));
                self.take(file, both[1]);
                self.take(second, both[0]);
            }
            (Class::Rename, Some(second)) if !event.function.keeps_name() => {
                let taken = self.taken.get(&file).copied().unwrap_or(0);
                self.take(file, 0);
                self.take(second, taken);
            }
            _ => {}
        }
    }

    /// A name's file takes that much now.
    fn take(&mut self, file: usize, bytes: u64) {
        let before = self.taken.insert(file, bytes).unwrap_or(0);
        // What traces of others hold may be any number.
        self.now = self.now.saturating_sub(before).saturating_add(bytes);
        self.most = self.most.max(self.now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_trace::{FileEntry, Function};
    use iolab_vocab::FileId;

    #[test]
    fn room_is_that_of_the_moment_when_the_files_take_most() {
        let mut trace = Trace::default();
        trace.header.files = vec![FileEntry::default(); 2];
        let on = |file, event| Event { file: FileId(file), ..event };
        let write = |offset, length| Event {
            offset,
            length,
            result: length,
            ..Event::of(Function::PWRITE)
        };
        trace.events = vec![
            on(0, write(0, 100)),
            on(0, write(0, 100)),
            on(0, write(1 << 40, 10)),
            on(0, Event { argument: 1, ..Event::of(Function::RENAME) }),
            on(0, write(0, 1000)),
            on(1, Event::of(Function::UNLINK)),
            on(0, Event { length: 400, ..Event::of(Function::FTRUNCATE) }),
            on(1, Event { offset: 50, length: 450, ..Event::of(Function::POSIX_FALLOCATE) }),
            on(0, Event { result: -28, ..write(0, 5000) }),
        ];
        let order: Vec<usize> = (0..trace.events.len()).collect();
        let mut there = Initial::default();
        (there.existed, there.bytes) = (Some(true), 7);
        let needed = |initial: &[Initial]| needed_bytes(&trace, &order, initial);
        assert_eq!(needed(&[Initial::default(); 2]), 1110);
        // It is replaced.
        assert_eq!(needed(&[Initial::default(), there]), 1110);
        assert_eq!(needed_bytes(&trace, &order[..1], &[Initial::default(), there]), 107);
    }

    #[test]
    fn absurd_numbers_are_no_overflow() {
        let mut trace = Trace::default();
        trace.header.files = vec![FileEntry::default(); 2];
        let (file, most) = (FileId(0), i64::MAX);
        let copy = Event::of(Function::COPY_FILE_RANGE);
        let copy = Event { file, length: most, argument: 1, result: most, ..copy };
        let write = Event { file, offset: most, result: most, ..Event::of(Function::PWRITE) };
        trace.events = vec![copy, copy, copy, write, Event { offset: -1, ..write }, write];
        let order: Vec<usize> = (0..trace.events.len()).collect();
        assert_eq!(needed_bytes(&trace, &order, &[Initial::default(); 2]), u64::MAX);
    }
}
