//! What must have been there before the program ran, as far as its calls tell.
//!
//! The first call that depends on a file's existence decides: an open without `O_CREAT` that
//! succeeded found it, one that failed with `ENOENT` did not. Its size is that of the first open
//! that saw it untouched.

use crate::paths::Paths;
use iolab_policy::insitu::guest::open_flags as flags;
use iolab_trace::{Class, Event, Function, Trace};
use iolab_vocab::FileId;
use std::collections::{BTreeMap, BTreeSet};

const ENOENT: i64 = -2;
const EEXIST: i64 = -17;
const ENOTDIR: i64 = -20;
const EISDIR: i64 = -21;

/// One file before the program ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Initial {
    /// Whether it was there; `None` when no call depends on it.
    pub(crate) existed: Option<bool>,
    /// Its size.
    pub(crate) bytes: u64,
    /// It is a directory.
    pub(crate) directory: bool,
    /// It is a regular file, so what was looked for below it was not there.
    pub(crate) is_regular: bool,
    /// It cannot be: what would be its directory is a file.
    pub(crate) is_below_file: bool,
    /// It could not be made, because what would be its directory was not there.
    pub(crate) is_below_nothing: bool,
    /// Calls only looked for it, and it never was there.
    pub(crate) is_only_missed: bool,
    /// The size may still be learnt from the first open.
    size_open: bool,
}

impl Initial {
    fn learn(&mut self, existed: bool) {
        if self.existed.is_none() {
            self.existed = Some(existed);
            self.size_open = existed;
        }
    }

    /// What has the name now is a directory; unless a file had it before, there was one or none.
    fn learn_directory(&mut self) {
        self.directory |= !self.is_regular;
    }

    fn learn_size(&mut self, bytes: i64) {
        if std::mem::take(&mut self.size_open) {
            self.bytes = bytes.max(0) as u64;
        }
    }
}

/// The state before the first call, by file.
pub(crate) fn initial_files(trace: &Trace, order: &[usize]) -> Vec<Initial> {
    let mut files = vec![Initial::default(); trace.header.files.len()];
    let mut links = BTreeMap::new();
    let mut names = Names::default();
    let paths = Paths::new(trace);
    for &row in order {
        let event = &trace.events[row];
        if let Some(index) = event.file.index().filter(|&index| index < files.len()) {
            if lacks_directory(event) && files[index].existed.is_none() {
                let directory = directory_of(&trace.header.files[index].path);
                let is_known = directory.is_none_or(|directory| {
                    let known = |file: usize| files[file].existed;
                    paths.file(directory).and_then(known).is_some()
                        || paths.below(directory).any(|file| known(file) == Some(true))
                });
                files[index].is_below_nothing = !is_known;
            }
            observe(event, index, &mut files);
            if let Some(file) = names.lead_to(index).and_then(|at| files.get_mut(at)) {
                observe_size(event, file);
            }
            names.follow(event, index);
            if let Some(&to) = links.get(&index) {
                observe_through_link(event, &mut files[to]);
            }
            let second = event.second_file().index().filter(|&second| second < files.len());
            if let Some(link) = second.filter(|_| event.function.is_symbolic() && event.result >= 0)
            {
                links.insert(link, index);
            }
        }
    }
    let said_with_slash: Vec<usize> =
        (0..files.len()).filter(|&file| is_said_with_slash(trace, &paths, &files, file)).collect();
    for file in said_with_slash {
        files[file] =
            Initial { existed: Some(true), is_regular: true, is_below_file: false, ..files[file] };
    }
    for (file, is_there) in files.iter_mut().zip(ever_there(trace)) {
        file.is_only_missed = !is_there && file.existed == Some(false);
    }
    let directories = parents(trace, &files);
    for (entry, file) in trace.header.files.iter().zip(&mut files) {
        file.directory |= directories.contains(entry.path.as_str()) && !file.is_regular;
    }
    follow_links(trace, order, &mut files);
    files
}

/// Whether a call on a name that failed, since something on its way is no directory, meant the file of that name: it was
/// said with a slash behind it, which the trace does not have. What the name is in was a directory then.
fn is_said_with_slash(trace: &Trace, paths: &Paths<'_>, files: &[Initial], file: usize) -> bool {
    let directory = directory_of(&trace.header.files[file].path);
    let is_there = |other: usize| files[other].existed == Some(true) && !files[other].is_below_file;
    files[file].is_below_file
        && directory.is_some_and(|directory| {
            let itself = paths.file(directory).filter(|&it| files[it].directory);
            itself.is_some_and(is_there)
                || paths.below(directory).any(|other| other != file && is_there(other))
        })
}

/// Which names led to something at any time, as far as calls tell.
fn ever_there(trace: &Trace) -> Vec<bool> {
    let mut is_there = vec![false; trace.header.files.len()];
    let missed = |event: &&Event| matches!(event.result, ENOENT | ENOTDIR);
    for event in trace.events.iter().filter(|event| !missed(event)) {
        for file in [event.file, event.second_file()].into_iter().filter_map(FileId::index) {
            is_there.get_mut(file).into_iter().for_each(|it| *it = true);
        }
    }
    is_there
}

/// What has something below it by a symbolic link, or by the name it was given, is a directory under its own name, too.
fn follow_links(trace: &Trace, order: &[usize], files: &mut [Initial]) {
    let links = order.iter().map(|&row| &trace.events[row]);
    let links = links.filter(|event| {
        event.function.class() == Class::Rename && !event.function.exchanges() && event.result >= 0
    });
    // A link to a link was made after that, most of the time.
    for event in links.rev() {
        let (Some(to), Some(link)) = (event.file.index(), event.second_file().index()) else {
            continue;
        };
        if files.get(link).is_some_and(|link| link.directory)
            && let Some(to) = files.get_mut(to).filter(|to| !to.is_regular)
        {
            to.directory = true;
        }
    }
}

/// Whether a call found its name there; `None` where it does not say.
pub(crate) fn found(event: &Event) -> Option<bool> {
    let has = |flag| flags_asked(event) & flag == flag;
    let class = event.function.class();
    match (class, event.result) {
        (_, ENOENT) => Some(false),
        (Class::Open, EEXIST | EISDIR) | (Class::MakeDirectory, EEXIST) => Some(true),
        (Class::Rename, EEXIST) if !event.function.is_symbolic() => Some(true),
        (_, ..0) => None,
        (Class::MakeDirectory, _) => Some(false),
        // A link may lead nowhere, and what is given a name by its descriptor may have had none.
        _ if event.function.is_symbolic() || by_descriptor(event) => None,
        (Class::Open, _) if has(flags::TEMPORARY) => Some(true),
        (Class::Open, _) if event.length < 0 => (!has(flags::CREATE)).then_some(true),
        (Class::Open, _) if has(flags::CREATE | flags::EXCLUSIVE) => Some(false),
        // An empty file that may be created here need not have been there.
        (Class::Open, _) if event.length == 0 && has(flags::CREATE) => None,
        (Class::Open, _) => Some(true),
        (Class::Stat | Class::Unlink | Class::Rename | Class::Truncate, _)
        | (Class::RemoveDirectory | Class::ListDirectory, _) => Some(true),
        _ => None,
    }
}

/// Whether a call gives a name to the file of a descriptor.
pub(crate) fn by_descriptor(event: &Event) -> bool {
    event.function == Function::LINKAT && event.fd >= 0
}

/// The directory of a name.
pub(crate) fn directory_of(path: &str) -> Option<&str> {
    path.rsplit_once('/').map(|(directory, _)| directory)
}

/// Whether a call makes its name where there is none.
pub(crate) fn creates(event: &Event) -> bool {
    match event.function.class() {
        Class::Open => flags_asked(event) & flags::CREATE != 0,
        class => class == Class::MakeDirectory,
    }
}

/// Whether a call shows that there is no directory of its name: with one it would have made it.
pub(crate) fn lacks_directory(event: &Event) -> bool {
    creates(event) && event.result == ENOENT
}

/// Whether a call shows that what would be the directory of its name is a file.
fn leads_through_file(event: &Event) -> bool {
    let class = event.function.class();
    let wants_directory = flags_asked(event) & flags::DIRECTORY != 0;
    event.result == ENOTDIR
        && match class {
            Class::Open => !wants_directory,
            Class::RemoveDirectory | Class::ListDirectory | Class::Rename => false,
            _ => true,
        }
}

/// The flags of an open; those of `creat` are in its name.
pub(crate) fn flags_asked(event: &Event) -> i64 {
    match event.function {
        Function::CREAT => 1 | flags::CREATE | flags::TRUNCATE,
        _ => event.argument,
    }
}

fn observe(event: &Event, index: usize, files: &mut [Initial]) {
    let file = &mut files[index];
    if leads_through_file(event) {
        file.is_below_file |= file.existed.is_none();
        return file.learn(false);
    }
    let class = event.function.class();
    match class {
        Class::Open => return opened(event, file),
        Class::MakeDirectory => file.learn_directory(),
        Class::RemoveDirectory | Class::ListDirectory if event.result >= 0 => {
            file.learn_directory();
        }
        // A symbolic link may lead to what is not there.
        Class::Rename if event.function.is_symbolic() || by_descriptor(event) => {}
        Class::Rename | Class::Allocate | Class::Write if event.result >= 0 => file.learn(true),
        _ => {}
    }
    found(event).into_iter().for_each(|found| file.learn(found));
    // What is taken, and what changes places with another one, was there; else it may have been replaced.
    let target = match (class, event.result) {
        (Class::Rename, EEXIST) => Some(true),
        (Class::Rename, 0..) => Some(event.function.exchanges()),
        _ => None,
    };
    if let Some(was_there) = target {
        let target = event.second_file().index().and_then(|target| files.get_mut(target));
        target.into_iter().for_each(|target| target.learn(was_there));
    }
}

/// What a call on a symbolic link tells of the file it leads to.
fn observe_through_link(event: &Event, file: &mut Initial) {
    match event.function.class() {
        Class::Open => {
            opened(event, file);
            observe_size(event, file);
        }
        Class::Truncate => found(event).into_iter().for_each(|found| file.learn(found)),
        Class::Stat if matches!(event.function, Function::STAT | Function::ACCESS) => {
            found(event).into_iter().for_each(|found| file.learn(found));
        }
        _ => {}
    }
}

fn opened(event: &Event, file: &mut Initial) {
    let has = |flag| flags_asked(event) & flag == flag;
    match found(event) {
        Some(found) => file.learn(found),
        None if event.result >= 0 => file.learn(event.length < 0),
        None => return,
    }
    match event.result {
        EISDIR => file.learn_directory(),
        result if result < 0 => {}
        // A file without a name is told by the directory that it would be in.
        _ if event.length < 0 || has(flags::TEMPORARY) => {
            if has(flags::DIRECTORY) {
                file.learn_directory();
            }
        }
        _ if event.function == Function::INHERITED => file.is_regular = true,
        _ => file.is_regular |= file.existed == Some(true) && !file.directory,
    }
}

/// What a call tells of the size of the file that its name led to in the beginning, by whatever name it is called now.
fn observe_size(event: &Event, file: &mut Initial) {
    let has = |flag| flags_asked(event) & flag == flag;
    if event.result < 0 {
        return;
    }
    match event.function.class() {
        Class::Open if event.length < 0 || has(flags::TEMPORARY) => {}
        Class::Open => {
            file.size_open &= !has(flags::TRUNCATE);
            file.learn_size(event.length);
        }
        Class::Truncate | Class::Allocate | Class::Write => file.size_open = false,
        _ => {}
    }
}

/// Which file of the beginning each name leads to, where it is not that of its own.
#[derive(Default)]
struct Names(BTreeMap<usize, Option<usize>>);

impl Names {
    fn lead_to(&self, name: usize) -> Option<usize> {
        self.0.get(&name).copied().unwrap_or(Some(name))
    }

    fn follow(&mut self, event: &Event, name: usize) {
        if event.result < 0 {
            return;
        }
        let file = self.lead_to(name);
        match (event.function.class(), event.second_file().index()) {
            (Class::Rename, Some(second)) if event.function.is_symbolic() => {
                self.0.insert(second, None);
            }
            (Class::Rename, Some(second)) => {
                let left = match event.function {
                    _ if event.function.exchanges() => self.lead_to(second),
                    _ if event.function.keeps_name() => file,
                    _ => None,
                };
                self.0.insert(name, left);
                self.0.insert(second, file);
            }
            (Class::Unlink | Class::RemoveDirectory | Class::MakeDirectory, _) => {
                self.0.insert(name, None);
            }
            _ => {}
        }
    }
}

/// Every path that has another one below it.
fn parents<'a>(trace: &'a Trace, files: &[Initial]) -> BTreeSet<&'a str> {
    let mut parents = BTreeSet::new();
    for (entry, file) in trace.header.files.iter().zip(files) {
        let mut path = entry.path.as_str();
        if file.is_below_file || file.is_below_nothing {
            path = directory_of(path).unwrap_or(path);
        }
        while let Some((parent, _)) = path.rsplit_once('/') {
            if parent.is_empty() || !parents.insert(parent) {
                break;
            }
            path = parent;
        }
    }
    parents
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_trace::FileEntry;

    fn after(events: &[Event]) -> Initial {
        let mut trace = Trace::default();
        trace.header.files = vec![FileEntry { path: "/d/f".into(), ..FileEntry::default() }];
        trace.events = events.iter().map(|e| Event { file: FileId(0), ..*e }).collect();
        let order: Vec<usize> = (0..events.len()).collect();
        initial_files(&trace, &order)[0]
    }

    fn open(argument: i64, length: i64, result: i64) -> Event {
        Event { argument, length, result, ..Event::of(Function::OPEN) }
    }

    #[test]
    fn a_file_that_could_be_opened_without_creating_it_was_there_with_that_size() {
        let file = after(&[open(0, 100, 3)]);
        assert_eq!((file.existed, file.bytes), (Some(true), 100));
    }

    #[test]
    fn a_file_that_was_missing_first_is_not_there_although_it_can_be_opened_later() {
        let file = after(&[open(0, -1, ENOENT), open(flags::CREATE, 0, 3), open(0, 100, 4)]);
        assert_eq!(file.existed, Some(false));
    }

    #[test]
    fn where_a_file_without_a_name_is_made_there_is_a_directory() {
        let file = after(&[open(2 | flags::TEMPORARY | flags::DIRECTORY, 0, 3)]);
        assert!(file.directory && !file.is_regular);
        assert_eq!(file.existed, Some(true));
    }

    #[test]
    fn a_looked_at_file_gets_its_size_from_the_first_open_unless_that_truncates() {
        let stat = Event::of(Function::STAT);
        assert_eq!(after(&[stat, open(1, 77, 3)]).bytes, 77);
        let emptied = after(&[stat, open(1 | flags::TRUNCATE, 0, 3), open(0, 50, 4)]);
        assert_eq!((emptied.existed, emptied.bytes), (Some(true), 0));
    }

    #[test]
    fn a_file_that_is_first_opened_by_its_new_name_had_that_size_under_the_old_one() {
        let moves = |function| {
            let mut trace = Trace::default();
            trace.header.files = ["/d/a", "/d/b"]
                .map(|path| FileEntry { path: path.into(), ..FileEntry::default() })
                .to_vec();
            let on = |file, event| Event { file: FileId(file), ..event };
            trace.events = vec![
                on(0, Event { argument: 1, ..Event::of(function) }),
                on(1, open(0, 100, 3)),
                on(0, open(flags::CREATE, 7, 4)),
            ];
            let files = initial_files(&trace, &[0, 1, 2]);
            [(files[0].existed, files[0].bytes), (files[1].existed, files[1].bytes)]
        };
        let (there, missing) = (|bytes| (Some(true), bytes), (Some(false), 0));
        assert_eq!(moves(Function::RENAME), [there(100), missing]);
        assert_eq!(moves(Function::LINK), [there(100), missing]);
        assert_eq!(moves(Function::RENAME_EXCHANGE), [there(100), there(7)]);
    }

    #[test]
    fn a_name_that_was_taken_was_there() {
        let mut trace = Trace::default();
        trace.header.files = ["/d/a", "/d/b"]
            .map(|path| FileEntry { path: path.into(), ..FileEntry::default() })
            .to_vec();
        for function in [Function::LINK, Function::RENAME_NOREPLACE] {
            let event = Event { argument: 1, result: EEXIST, ..Event::of(function) };
            trace.events = vec![Event { file: FileId(0), ..event }];
            let files = initial_files(&trace, &[0]);
            assert_eq!([files[0].existed, files[1].existed], [Some(true); 2], "{function:?}");
        }
    }

    #[test]
    fn what_has_something_below_the_name_it_is_given_is_a_directory() {
        let mut trace = Trace::default();
        trace.header.files = ["/d", "/e", "/e/f"]
            .map(|path| FileEntry { path: path.into(), ..FileEntry::default() })
            .to_vec();
        trace.events = vec![
            Event { file: FileId(0), argument: 1, ..Event::of(Function::RENAME) },
            Event { file: FileId(2), ..open(0, 100, 3) },
        ];
        let files = initial_files(&trace, &[0, 1]);
        assert!(files[0].directory && files[0].existed == Some(true));
    }
}
