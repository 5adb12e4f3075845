//! The descriptor tables of the recorded processes, with real descriptors behind the recorded
//! numbers.

use crate::images::Images;
use iolab_trace::{Event, Trace};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// An open file description, as far as the referee follows it.
#[derive(Debug, Default)]
pub(crate) struct Description {
    file: u32,
    position: Mutex<i64>,
    append: AtomicBool,
    shared: AtomicBool,
}

impl Description {
    pub(crate) fn new(file: u32, position: i64, append: bool) -> Description {
        let description = Description { file, ..Description::default() };
        description.move_to(position);
        description.set_append(append);
        description
    }

    /// Where the file position must be.
    pub(crate) fn position(&self) -> i64 {
        *self.position.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn move_to(&self, position: i64) {
        *self.position.lock().unwrap_or_else(PoisonError::into_inner) = position;
    }

    /// It has moved by what was transferred.
    pub(crate) fn advance(&self, bytes: u64) {
        *self.position.lock().unwrap_or_else(PoisonError::into_inner) += bytes as i64;
    }

    pub(crate) fn append(&self) -> bool {
        self.append.load(Ordering::Relaxed)
    }

    pub(crate) fn set_append(&self, append: bool) {
        self.append.store(append, Ordering::Relaxed);
    }

    /// Whether several processes move the position, so that the trace cannot know it exactly.
    pub(crate) fn shared(&self) -> bool {
        self.shared.load(Ordering::Relaxed)
    }
}

/// One descriptor.
#[derive(Debug)]
pub(crate) struct Descriptor {
    pub(crate) fd: OwnedFd,
    pub(crate) description: Arc<Description>,
}

/// What stands behind a recorded number.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    /// A file below the scratch directory.
    Real(Arc<Descriptor>),
    /// Something that is no regular file: a terminal, a socket, a directory.
    Foreign,
}

type Table = BTreeMap<i32, Entry>;

/// The tables of all processes.
pub(crate) struct Tables {
    tables: Vec<Mutex<Table>>,
    images: Images,
}

impl Tables {
    pub(crate) fn new(trace: &Trace, processes: usize) -> Tables {
        let tables = (0..processes).map(|_| Mutex::default()).collect();
        Tables { tables, images: Images::new(trace) }
    }

    fn table(&self, process: usize) -> std::sync::MutexGuard<'_, Table> {
        self.tables[process].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, event: &Event) -> Option<Entry> {
        self.get_fd(event.process, event.fd)
    }

    pub(crate) fn get_fd(&self, process: u32, fd: i32) -> Option<Entry> {
        self.table(process as usize).get(&fd).cloned()
    }

    pub(crate) fn insert(&self, process: u32, fd: i32, entry: Entry) {
        self.table(process as usize).insert(fd, entry);
    }

    /// Some descriptor of the process that is open on that file, if there is a choice one that appends or does not.
    pub(crate) fn open_on(
        &self,
        process: u32,
        file: i64,
        appends: bool,
    ) -> Option<Arc<Descriptor>> {
        let table = self.table(process as usize);
        let open_on_it = table.values().filter_map(|entry| match entry {
            Entry::Real(open) if i64::from(open.description.file) == file => Some(Arc::clone(open)),
            _ => None,
        });
        open_on_it.max_by_key(|open| open.description.append() == appends)
    }

    /// Takes the entries of a range of numbers out.
    pub(crate) fn remove(&self, process: u32, first: i32, last: i32) -> Vec<Entry> {
        let mut table = self.table(process as usize);
        let numbers: Vec<i32> = table.range(first..=last.max(first)).map(|(&fd, _)| fd).collect();
        numbers.into_iter().filter_map(|fd| table.remove(&fd)).collect()
    }

    /// The child sees everything its parent has open, at shared positions.
    pub(crate) fn fork(&self, fork: &Event) {
        for child in self.images.children(fork) {
            let inherited = self.table(fork.process as usize).clone();
            inherited.values().for_each(mark_shared);
            self.table(child as usize).extend(inherited);
        }
    }

    /// What stands behind a descriptor that a process had from the start: an entry of its own, or of the process
    /// it came from, if that one is meant. A spawn may have given it another number (`posix_spawn_file_actions_adddup2`,
    /// a redirection in a child that the trace does not have): then it is the one that stands where the
    /// process found it.
    pub(crate) fn inherited(
        &self,
        process: u32,
        fd: i32,
        is_meant: impl Fn(&Entry) -> bool,
        stands_there: impl Fn(&Descriptor) -> bool,
    ) -> Option<Entry> {
        if let Some(entry) = self.get_fd(process, fd).filter(&is_meant) {
            return Some(entry);
        }
        let parent = self.images.parent(process)?;
        let by_number = self.get_fd(parent, fd).filter(is_meant);
        let entry = by_number.or_else(|| {
            let stands_there = |entry: &&Entry| match entry {
                Entry::Real(open) => stands_there(open),
                Entry::Foreign => false,
            };
            self.table(parent as usize).values().find(stands_there).cloned()
        })?;
        mark_shared(&entry);
        Some(entry)
    }
}

fn mark_shared(entry: &Entry) {
    if let Entry::Real(descriptor) = entry {
        descriptor.description.shared.store(true, Ordering::Relaxed);
    }
}
