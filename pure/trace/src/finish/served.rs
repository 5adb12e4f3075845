//! What a mount told of open files, as the calls of processes with descriptors.
//!
//! A mount knows descriptions by a number of its own, from 1 on in each directory it serves; who shares one (by `dup`, `fork`
//! or over `exec`) it is not asked about, and it hears of every descriptor that is closed. Here descriptions
//! get numbers that differ in the whole trace, a process that uses one which another has opened gets a row that
//! says so, and a close after which its process goes on with the description is that of a copy, which has no number.

use super::sizes::Sizes;
use crate::open_flags::{CREATE, EXCLUSIVE, TRUNCATE};
use crate::{Class, Event, Function, Header};
use iolab_vocab::FileId;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn resolve(events: &mut Vec<Event>, header: &mut Header) {
    number(events);
    let copies = closes_of_copies(events);
    for row in copies {
        events[row].fd = -1;
    }
    let shared = inherit(events, header.files.len());
    if shared > 0 {
        let text = "which descriptors processes got from others, by their first use of them";
        header.inferred.push(format!("{text} ({shared})"));
    }
}

/// The description that a row is about: the number of an open is its result.
fn description(event: &mut Event) -> Option<&mut i32> {
    (event.function.class() != Class::Open && event.fd >= 0).then_some(&mut event.fd)
}

fn opened(event: &Event) -> Option<i32> {
    let opens = event.function.class() == Class::Open && event.result >= 0;
    opens.then(|| i32::try_from(event.result).ok()).flatten()
}

/// Two directories have no file in common, and one file no two descriptions of one number.
fn number(events: &mut [Event]) {
    let mut numbers: BTreeMap<(FileId, i32), i32> = BTreeMap::new();
    let mut number = |file, old| {
        let next = i32::try_from(numbers.len() + 1).unwrap_or(i32::MAX);
        *numbers.entry((file, old)).or_insert(next)
    };
    for event in events {
        let file = event.file;
        if let Some(old) = opened(event) {
            event.result = number(file, old).into();
        } else if let Some(fd) = description(event) {
            *fd = number(file, *fd);
        }
    }
}

fn closes_of_copies(events: &mut [Event]) -> Vec<usize> {
    let mut used_later = BTreeSet::new();
    let mut copies = Vec::new();
    for (row, event) in events.iter_mut().enumerate().rev() {
        let (process, function) = (event.process, event.function);
        if let Some(&mut fd) = description(event)
            && !used_later.insert((process, fd))
            && function == Function::CLOSE
        {
            copies.push(row);
        }
    }
    copies
}

/// How many rows it took.
fn inherit(events: &mut Vec<Event>, files: usize) -> usize {
    let mut sizes = Sizes::new(files);
    let mut flags = BTreeMap::new();
    let mut has = BTreeSet::new();
    let mut rows = Vec::with_capacity(events.len());
    let before = events.len();
    for mut event in events.drain(..) {
        if let Some(fd) = opened(&event) {
            has.insert((event.process, fd));
            // What the opening did is done.
            flags.insert(fd, event.argument & !(CREATE | EXCLUSIVE | TRUNCATE));
            sizes.set(event.file, event.length);
        }
        if let Some(&mut fd) = description(&mut event)
            && has.insert((event.process, fd))
            && let Some(&argument) = flags.get(&fd)
        {
            let length = sizes.at(event.file, event.start);
            rows.push(Event {
                function: Function::INHERITED,
                offset: 0,
                length,
                argument,
                result: fd.into(),
                end: event.start,
                ..event
            });
        }
        match event.function.class() {
            Class::Write if event.result > 0 => {
                let end = event.offset.saturating_add(event.result);
                sizes.reach(event.file, event.start..event.end, end);
            }
            Class::Truncate if event.result == 0 => sizes.set(event.file, event.length),
            _ => {}
        }
        rows.push(event);
    }
    *events = rows;
    events.len() - before
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_vocab::Nanos;

    const A: FileId = FileId(0);
    const B: FileId = FileId(1);

    fn row(process: u32, file: FileId, function: Function, fd: i32) -> Event {
        Event { process, file, fd, ..Event::of(function) }
    }

    fn open(process: u32, file: FileId, number: i64) -> Event {
        Event { result: number, length: 0, ..row(process, file, Function::OPEN, -1) }
    }

    fn resolved(rows: &[Event]) -> Vec<(u32, Function, i32, i64)> {
        let mut header = Header { files: vec![Default::default(); 2], ..Header::default() };
        let mut events = rows.to_vec();
        let times = (1..).map(|step| Nanos(step * 10));
        events.iter_mut().zip(times).for_each(|(event, at)| (event.start, event.end) = (at, at));
        resolve(&mut events, &mut header);
        events.iter().map(|row| (row.process, row.function, row.fd, row.result)).collect()
    }

    #[test]
    fn a_close_after_which_the_process_goes_on_is_that_of_a_copy() {
        let (close, write) = (Function::CLOSE, Function::PWRITE);
        let rows = [open(0, A, 1), row(0, A, close, 1), row(0, A, write, 1), row(0, A, close, 1)];
        let fds: Vec<i32> = resolved(&rows).iter().map(|row| row.2).collect();
        assert_eq!(fds, [-1, -1, 1, 1]);
    }

    #[test]
    fn who_uses_what_another_process_has_opened_has_inherited_it() {
        let write = Function::PWRITE;
        let rows = [open(0, A, 1), row(1, A, write, 1), row(1, A, write, 1)];
        let (inherited, open) = (Function::INHERITED, Function::OPEN);
        let wanted = [(0, open, -1, 1), (1, inherited, 1, 1), (1, write, 1, 0), (1, write, 1, 0)];
        assert_eq!(resolved(&rows), wanted);
    }

    #[test]
    fn what_was_inherited_is_not_truncated_again_and_as_long_as_it_has_become() {
        let flags = 1 | CREATE | TRUNCATE | crate::open_flags::APPEND;
        let opened = Event { argument: flags, ..open(0, A, 1) };
        let written = Event { offset: 10, result: 5, ..row(0, A, Function::PWRITE, 1) };
        let mut events = vec![opened, written, row(1, A, Function::PWRITE, 1)];
        let mut header = Header { files: vec![Default::default()], ..Header::default() };
        resolve(&mut events, &mut header);
        let inherited = events[2];
        assert_eq!(inherited.function, Function::INHERITED);
        assert_eq!(inherited.argument, 1 | crate::open_flags::APPEND);
        assert_eq!(inherited.length, 15);
        assert_eq!(header.inferred.len(), 1);
    }

    #[test]
    fn descriptions_of_two_directories_have_numbers_that_differ() {
        let write = Function::PWRITE;
        let rows = [open(0, A, 1), open(0, B, 1), row(0, A, write, 1), row(0, B, write, 1)];
        let numbers: Vec<(i32, i64)> = resolved(&rows).iter().map(|row| (row.2, row.3)).collect();
        assert_eq!(numbers, [(-1, 1), (-1, 2), (1, 0), (2, 0)]);
    }
}
