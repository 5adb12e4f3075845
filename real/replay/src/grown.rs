//! Files that others have changed: the size that an open tells is the file's at that moment.
//!
//! Processes that were not recorded write to files as well, and so do stores into mappings and what io_uring does. Right
//! before an open the replay gives its file the size that the program found, unless a call of the trace that was under way
//! may have had a part in it: then the order of the two is a guess, and the size tells nothing.

use crate::initial::flags_asked;
use iolab_policy::insitu::guest::open_flags::{TEMPORARY, TRUNCATE};
use iolab_trace::{Class, Event, Trace};
use std::collections::BTreeMap;

/// By row of the trace: the size that its file has right before it.
pub(crate) fn sizes(trace: &Trace, order: &[usize]) -> BTreeMap<usize, u64> {
    let names = Names::new(trace);
    let mut changes: BTreeMap<usize, Vec<(u64, u64)>> = BTreeMap::new();
    for event in order.iter().map(|&row| &trace.events[row]).filter(|event| changes_size(event)) {
        let files = [event.file, event.second_file()].into_iter().filter_map(|file| file.index());
        for file in files.filter_map(|file| names.of(file)) {
            changes.entry(file).or_default().push((event.start.0, event.end.0));
        }
    }
    let busy: BTreeMap<usize, Busy> =
        changes.into_iter().map(|(file, times)| (file, Busy::new(times))).collect();
    let told = |row: usize| {
        let event = &trace.events[row];
        let bytes = u64::try_from(event.length).ok().filter(|_| tells_size(event))?;
        let file = event.file.index().and_then(|file| names.of(file))?;
        let is_sure = busy.get(&file).is_none_or(|it| !it.overlaps(event.start.0, event.end.0));
        is_sure.then_some((row, bytes))
    };
    order.iter().filter_map(|&row| told(row)).collect()
}

/// Whether an open found a file with what others had left in it.
fn tells_size(event: &Event) -> bool {
    let asked = flags_asked(event);
    event.function.class() == Class::Open
        && event.result >= 0
        && asked & TRUNCATE == 0
        && asked & TEMPORARY != TEMPORARY
}

/// Whether a call may change how large the file of a name is.
fn changes_size(event: &Event) -> bool {
    let cuts = || flags_asked(event) & TRUNCATE != 0;
    match event.function.class() {
        Class::Open => cuts(),
        Class::Write
        | Class::Copy
        | Class::Truncate
        | Class::Allocate
        | Class::Rename
        | Class::Unlink => true,
        _ => false,
    }
}

/// Which files of the trace may be the same one, since one name became the other.
struct Names(Vec<usize>);

impl Names {
    fn new(trace: &Trace) -> Names {
        let mut names = Names((0..trace.header.files.len()).collect());
        for event in trace.events.iter().filter(|it| it.function.class() == Class::Rename) {
            let both = (event.file.index(), event.second_file().index());
            if let (Some(one), Some(other)) = both
                && let (Some(one), Some(other)) = (names.of(one), names.of(other))
            {
                names.0[one] = other;
            }
        }
        names
    }

    /// What stands for all names of a file.
    fn of(&self, file: usize) -> Option<usize> {
        let mut at = file;
        while *self.0.get(at)? != at {
            at = self.0[at];
        }
        Some(at)
    }
}

/// Times of calls, to find whether one of them was under way.
struct Busy {
    /// Starts in order, each with the latest end up to there.
    times: Vec<(u64, u64)>,
}

impl Busy {
    fn new(mut times: Vec<(u64, u64)>) -> Busy {
        times.sort_unstable();
        let mut latest = 0;
        for (_, end) in &mut times {
            latest = latest.max(*end);
            *end = latest;
        }
        Busy { times }
    }

    fn overlaps(&self, start: u64, end: u64) -> bool {
        let begun = self.times.partition_point(|&(other, _)| other <= end);
        begun > 0 && self.times[begun - 1].1 >= start
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_trace::{FileEntry, Function};
    use iolab_vocab::{FileId, Nanos};

    fn call(file: u32, function: Function, times: (u64, u64)) -> Event {
        let (start, end) = (Nanos(times.0), Nanos(times.1));
        Event { file: FileId(file), start, end, argument: 0, length: 10, ..Event::of(function) }
    }

    fn sizes_of(events: Vec<Event>) -> Vec<(usize, u64)> {
        let mut trace = Trace::default();
        trace.header.files = ["/a", "/b", "/c"]
            .map(|path| FileEntry { path: path.into(), ..FileEntry::default() })
            .to_vec();
        let order: Vec<usize> = (0..events.len()).collect();
        trace.events = events;
        sizes(&trace, &order).into_iter().collect()
    }

    #[test]
    fn an_open_tells_the_size_unless_it_cuts_the_file_or_a_change_was_under_way() {
        let open = |times| call(0, Function::OPEN, times);
        let write = |file, times| call(file, Function::WRITE, times);
        assert_eq!(
            sizes_of(vec![open((1, 2)), write(0, (3, 4)), open((5, 6))]),
            [(0, 10), (2, 10)]
        );
        let long = [open((5, 6)), write(0, (1, 9)), write(0, (2, 3)), open((10, 11))];
        assert_eq!(sizes_of(long.to_vec()), [(3, 10)]);
        assert_eq!(sizes_of(vec![open((1, 5)), write(1, (2, 3))]), [(0, 10)]);
        let cut = Event { argument: TRUNCATE, ..open((1, 2)) };
        assert_eq!(sizes_of(vec![cut]), []);
    }

    #[test]
    fn a_change_under_way_by_another_name_of_the_file_counts_as_well() {
        let renamed = Event { argument: 2, ..call(0, Function::RENAME, (1, 2)) };
        let write = call(0, Function::WRITE, (5, 9));
        let open = call(2, Function::OPEN, (6, 7));
        assert_eq!(sizes_of(vec![renamed, write, open]), []);
        assert_eq!(sizes_of(vec![write, open]), [(1, 10)]);
    }
}
