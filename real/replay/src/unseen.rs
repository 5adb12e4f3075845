//! Names that come and go by calls that the trace does not have: a socket's `bind`, `mkfifo`, `mknod`, and whatever
//! processes do that were not recorded (static, of another user, outside of the run).
//!
//! A call that found a name which the calls before it had left missing shows that somebody made it, and one that did
//! not find a name which was there, that somebody removed it. Right before that call the replay makes or removes the
//! name, so that the calls of the trace find what they found. Where the trace's order of overlapping calls is
//! only a guess this does no harm: what is there already is not made, what is gone is not removed.

use crate::initial::{creates, directory_of, flags_asked, found, lacks_directory};
use crate::paths::Paths;
use iolab_policy::insitu::guest::open_flags::{DIRECTORY, TEMPORARY};
use iolab_trace::{Class, Event, Function, Trace};
use std::collections::{BTreeMap, BTreeSet};

/// What somebody else does right before a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The name comes: a file of that many bytes.
    FileComes { bytes: u64 },
    /// The name comes: a directory.
    DirectoryComes,
    /// The directory that the name is in comes.
    ParentComes,
    /// The name goes.
    Goes,
}

/// What is known of a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Name {
    #[default]
    Unknown,
    Missing,
    Here,
    /// Somebody else has made it, and nobody has opened it.
    Unopened,
    /// A symbolic link, which may lead nowhere.
    Link,
}

/// By row of the trace: what happens right before it.
pub(crate) fn changes(trace: &Trace, order: &[usize]) -> BTreeMap<usize, Change> {
    let mut names = Names::new(trace);
    let mut changes = BTreeMap::new();
    for &row in order {
        let event = &trace.events[row];
        let index = event.file.index().filter(|&index| index < names.known.len());
        if let Some(index) = index.filter(|_| is_by_name(event)) {
            changes.extend(names.change_before(event, index).map(|change| (row, change)));
            names.follow(event, index);
        }
    }
    changes
}

/// Calls that say whether a name is there; the others go by a descriptor.
fn is_by_name(event: &Event) -> bool {
    match event.function.class() {
        Class::Open => {
            event.function != Function::INHERITED && flags_asked(event) & TEMPORARY != TEMPORARY
        }
        Class::Stat | Class::Truncate => event.fd < 0,
        Class::Rename
        | Class::Unlink
        | Class::MakeDirectory
        | Class::RemoveDirectory
        | Class::ListDirectory => true,
        _ => false,
    }
}

struct Names<'a> {
    /// By file of the trace.
    known: Vec<Name>,
    /// Directories that calls would have needed.
    lacking: BTreeSet<&'a str>,
    paths: Paths<'a>,
    trace: &'a Trace,
}

impl<'a> Names<'a> {
    fn new(trace: &'a Trace) -> Names<'a> {
        let known = vec![Name::Unknown; trace.header.files.len()];
        Names { known, lacking: BTreeSet::new(), paths: Paths::new(trace), trace }
    }

    fn change_before(&self, event: &Event, file: usize) -> Option<Change> {
        let class = event.function.class();
        let is_directory = matches!(class, Class::RemoveDirectory | Class::ListDirectory)
            || class == Class::Open && flags_asked(event) & DIRECTORY != 0;
        let bytes = if class == Class::Open { event.length.max(0) as u64 } else { 0 };
        match (found(event), self.known[file]) {
            (Some(true), Name::Missing) if is_directory => Some(Change::DirectoryComes),
            (Some(true), Name::Missing) => Some(Change::FileComes { bytes }),
            (Some(true), Name::Unopened) if bytes > 0 => Some(Change::FileComes { bytes }),
            // Which of the two names of a renaming was missing is not told.
            (Some(false), Name::Here | Name::Unopened) if class != Class::Rename => {
                Some(Change::Goes)
            }
            _ if makes_it(event) && self.has_no_directory(file) => Some(Change::ParentComes),
            _ => None,
        }
    }

    fn follow(&mut self, event: &Event, file: usize) {
        let class = event.function.class();
        let known = self.known[file];
        if lacks_directory(event) {
            self.lacking.extend(self.directory(file));
        }
        if event.result < 0 {
            match found(event) {
                Some(false) if known != Name::Link && class != Class::Rename => self.goes(file),
                Some(true) if known == Name::Missing => self.known[file] = Name::Unopened,
                _ => {}
            }
            return;
        }
        match class {
            Class::Unlink | Class::RemoveDirectory => self.goes(file),
            Class::Rename if event.function.exchanges() => {
                let second = event.second_file().index();
                if let Some(second) = second.filter(|&second| second < self.known.len()) {
                    let is_here = |name| match name {
                        Name::Link | Name::Unopened => name,
                        _ => Name::Here,
                    };
                    let (known, other) = (is_here(known), is_here(self.known[second]));
                    self.goes(file);
                    self.goes(second);
                    (self.known[file], self.known[second]) = (other, known);
                }
            }
            Class::Rename => {
                let second = event.second_file().index();
                if let Some(second) = second.filter(|&second| second < self.known.len()) {
                    // What comes along is there, and need not be made.
                    self.goes(second);
                    self.known[second] = match known {
                        _ if event.function.is_symbolic() => Name::Link,
                        Name::Link | Name::Unopened => known,
                        _ => Name::Here,
                    };
                }
                match event.function.keeps_name() {
                    true if found(event).is_some() && known == Name::Missing => {
                        self.known[file] = Name::Unopened;
                    }
                    true => {}
                    false => self.goes(file),
                }
            }
            Class::MakeDirectory => {
                self.goes(file);
                self.known[file] = Name::Here;
                self.lacking.remove(self.trace.header.files[file].path.as_str());
            }
            Class::Stat if known == Name::Missing => self.known[file] = Name::Unopened,
            Class::Stat if known == Name::Unopened => {}
            _ if known == Name::Link => {}
            _ => self.known[file] = Name::Here,
        }
        if makes_it(event) {
            if let Some(directory) = self.directory(file) {
                self.lacking.remove(directory);
            }
            if let Some(parent) = self.parent(file) {
                self.known[parent] = Name::Here;
            }
        }
    }

    /// The name is missing, and so is all below it.
    fn goes(&mut self, file: usize) {
        self.known[file] = Name::Missing;
        for below in self.paths.below(&self.trace.header.files[file].path) {
            self.known[below] = Name::Missing;
        }
    }

    fn has_no_directory(&self, file: usize) -> bool {
        let is_missing = |parent: usize| self.known[parent] == Name::Missing;
        self.directory(file).is_some_and(|it| self.lacking.contains(it))
            || self.parent(file).is_some_and(is_missing)
    }

    /// The directory that a name is in, if calls name it.
    fn parent(&self, file: usize) -> Option<usize> {
        self.paths.file(self.directory(file)?)
    }

    fn directory(&self, file: usize) -> Option<&'a str> {
        directory_of(&self.trace.header.files[file].path)
    }
}

/// Whether a call may have made its name, for which the directory above has to be there.
fn makes_it(event: &Event) -> bool {
    event.result >= 0 && creates(event)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_trace::FileEntry;
    use iolab_vocab::FileId;

    const ENOENT: i64 = -2;

    fn changes_of(rows: &[(u32, Function, i64)]) -> Vec<(usize, Change)> {
        let mut trace = Trace::default();
        let paths = ["/d", "/d/f", "/e", "/e/f"];
        trace.header.files =
            paths.map(|path| FileEntry { path: path.into(), ..FileEntry::default() }).to_vec();
        trace.events = rows
            .iter()
            .map(|&(file, function, result)| Event {
                file: FileId(file),
                argument: if function.class() == Class::Rename { 2 } else { -1 },
                result,
                ..Event::of(function)
            })
            .collect();
        let order: Vec<usize> = (0..rows.len()).collect();
        changes(&trace, &order).into_iter().collect()
    }

    #[test]
    fn a_name_comes_before_the_first_call_that_finds_what_was_missing() {
        let rows = [
            (1, Function::STAT, ENOENT),
            (1, Function::STAT, 0),
            (1, Function::UNLINK, 0),
            (1, Function::STAT, ENOENT),
        ];
        assert_eq!(changes_of(&rows), [(1, Change::FileComes { bytes: 0 })]);
    }

    #[test]
    fn a_name_goes_before_the_first_call_that_misses_what_was_there() {
        let rows =
            [(1, Function::STAT, 0), (1, Function::STAT, ENOENT), (1, Function::STAT, ENOENT)];
        assert_eq!(changes_of(&rows), [(1, Change::Goes)]);
    }

    #[test]
    fn what_is_in_a_directory_that_was_made_or_moved_there_need_not_be_known() {
        let made = [(0, Function::MKDIR, 0), (1, Function::UNLINK, 0)];
        assert_eq!(changes_of(&made), [(1, Change::FileComes { bytes: 0 })]);
        // A file that comes along is there already when its turn comes, and is not made.
        let moved = [(0, Function::RENAME, 0), (0, Function::STAT, ENOENT), (2, Function::STAT, 0)];
        assert_eq!(changes_of(&moved), []);
    }

    #[test]
    fn a_symbolic_link_may_lead_nowhere() {
        let rows = [
            (0, Function::STAT, ENOENT),
            (0, Function::SYMLINK, 0),
            (2, Function::STAT, ENOENT),
            (2, Function::UNLINK, 0),
        ];
        assert_eq!(changes_of(&rows), []);
    }

    #[test]
    fn names_that_nothing_contradicts_neither_come_nor_go() {
        let rows = [
            (1, Function::STAT, ENOENT),
            (1, Function::CREAT, 3),
            (1, Function::STAT, 0),
            (1, Function::UNLINK, 0),
            (1, Function::STAT, ENOENT),
        ];
        assert_eq!(changes_of(&rows), []);
    }

    #[test]
    fn names_that_change_places_are_both_there_afterwards() {
        let rows = [
            (0, Function::STAT, 0),
            (0, Function::RENAME_EXCHANGE, 0),
            (0, Function::STAT, 0),
            (2, Function::STAT, 0),
            (0, Function::UNLINK, 0),
            (0, Function::STAT, ENOENT),
        ];
        assert_eq!(changes_of(&rows), []);
    }
}
