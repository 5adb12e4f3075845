//! The operating system below a simulated program: files, descriptions and positions, and what a
//! call costs by the model of local storage.
//!
//! It carries out a call as recorded (`native`) or as a stack asks for it (`perform`), keeps what
//! follows from it, and tells the cost. What the model has no cost for (processes, mappings,
//! directories being read) keeps its recorded duration.

use iolab_device::local::{LocalFile, LocalStorage};
use iolab_policy::insitu::guest::open_flags;
use iolab_policy::insitu::{Arriving, At, Call, Errno, Outcome, Whence};
use iolab_trace::{Class, Event, Function};
use iolab_vocab::{Direction, Extent, FileId, Nanos};
use std::collections::BTreeMap;

/// Time a call takes: on a core, and waiting for the medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cost {
    pub(super) work: Nanos,
    pub(super) wait: Nanos,
}

impl Cost {
    pub(super) fn work(work: Nanos) -> Cost {
        Cost { work, wait: Nanos::ZERO }
    }

    pub(super) fn total(self) -> Nanos {
        self.work.after(self.wait)
    }

    pub(super) fn plus(self, other: Cost) -> Cost {
        Cost { work: self.work.after(other.work), wait: self.wait.after(other.wait) }
    }
}

/// Kinds of calls whose costs are off by a factor of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    SmallWrite,
    LargeWrite,
    Read,
    Sync,
    Name,
    Other,
}

impl Kind {
    pub(super) const COUNT: usize = 6;

    /// From 4 KiB on first touches of pages are most of a write.
    pub(super) fn of(class: Class, bytes: u64) -> Kind {
        match class {
            Class::Write | Class::Copy if bytes < 4096 => Kind::SmallWrite,
            Class::Write | Class::Copy => Kind::LargeWrite,
            Class::Read => Kind::Read,
            Class::Sync => Kind::Sync,
            Class::Open | Class::Rename | Class::Unlink | Class::Truncate | Class::Stat => {
                Kind::Name
            }
            Class::MakeDirectory | Class::RemoveDirectory | Class::Allocate => Kind::Name,
            _ => Kind::Other,
        }
    }
}

/// What the servers of a cluster do of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// They move data to or from a file.
    Transfer { inode: usize, direction: Direction, extent: Extent },
    /// They bring what they hold of it to their devices.
    Sync { inode: usize },
}

impl Request {
    /// The file it is about.
    pub(super) fn inode(self) -> usize {
        match self {
            Request::Transfer { inode, .. } | Request::Sync { inode } => inode,
        }
    }
}

/// An open file description.
#[derive(Clone, Copy, Debug)]
struct Description {
    inode: usize,
    position: u64,
    append: bool,
}

/// A description, by its place in the kernel's list.
pub(super) type DescriptionId = usize;

/// Files of the trace and what processes have open.
pub(super) struct Kernel<'a> {
    storage: &'a LocalStorage,
    cold: bool,
    inodes: Vec<LocalFile>,
    /// The inode each name of the trace stands for now; `None` for a name not seen yet.
    names: Vec<Option<usize>>,
    descriptions: Vec<Description>,
    /// By process: descriptors.
    descriptors: Vec<BTreeMap<i32, DescriptionId>>,
    /// What is being fetched into the page cache, of which files, and when the medium is done with it.
    arriving: Vec<(usize, Arriving)>,
    fetched_by: Nanos,
    /// Where the files are on servers: what these have to do since it was last taken.
    requests: Option<Vec<Request>>,
    /// The last call has given them something to do.
    is_served: bool,
}

impl<'a> Kernel<'a> {
    pub(super) fn new(
        storage: &'a LocalStorage,
        cold: bool,
        files: usize,
        processes: usize,
    ) -> Kernel<'a> {
        Kernel {
            storage,
            cold,
            inodes: Vec::new(),
            names: vec![None; files],
            descriptions: Vec::new(),
            descriptors: vec![BTreeMap::new(); processes],
            arriving: Vec::new(),
            fetched_by: Nanos::ZERO,
            requests: None,
            is_served: false,
        }
    }

    /// The same with files on servers, which carry out what moves or syncs data.
    pub(super) fn remote(storage: &'a LocalStorage, files: usize, processes: usize) -> Kernel<'a> {
        Kernel { requests: Some(Vec::new()), ..Kernel::new(storage, false, files, processes) }
    }

    /// What the servers have to do, in order.
    pub(super) fn take_requests(&mut self) -> Vec<Request> {
        self.requests.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Whether the last call was one for the servers: what it costs is not known here.
    pub(super) fn is_served(&self) -> bool {
        self.is_served
    }

    fn note(&mut self, inode: usize, direction: Direction, extent: Extent) {
        if !extent.is_empty() {
            self.request(Request::Transfer { inode, direction, extent });
        }
    }

    fn request(&mut self, request: Request) {
        if let Some(requests) = &mut self.requests {
            requests.push(request);
            self.is_served = true;
        }
    }

    /// The description a descriptor of a process stands for, if its opening was seen.
    pub(super) fn description(&self, process: u32, fd: i32) -> Option<DescriptionId> {
        self.descriptors[process as usize].get(&fd).copied()
    }

    /// How long the file of a description is.
    pub(super) fn file_bytes(&self, description: DescriptionId) -> u64 {
        self.inodes[self.descriptions[description].inode].size_bytes
    }

    /// Carries out a call as it was recorded; of a copy with the row that says where the bytes went. `None`: the
    /// model knows no cost for it.
    pub(super) fn native(&mut self, event: &Event, copy_target: Option<&Event>) -> Option<Cost> {
        self.is_served = false;
        let call = &self.storage.call;
        let ns = |cost_ns: f64| Some(Cost::work(Nanos(cost_ns.round() as u64)));
        if event.result < 0 {
            return match event.function.class() {
                Class::Open | Class::Stat => ns(call.open_missing_ns),
                Class::Process | Class::Map => None,
                _ => ns(call.least_ns),
            };
        }
        match event.function.class() {
            Class::Open => self.open(event),
            Class::Close => {
                self.close(event);
                ns(call.close_ns)
            }
            Class::Dup => {
                let table = &mut self.descriptors[event.process as usize];
                if let Some(&description) = table.get(&event.fd) {
                    table.insert(event.result as i32, description);
                }
                ns(call.least_ns)
            }
            Class::Read | Class::Write => self.transfer(event),
            Class::Seek => {
                if let Some(description) = self.description(event.process, event.fd) {
                    self.descriptions[description].position = event.result as u64;
                }
                ns(call.seek_ns)
            }
            Class::Sync => Some(self.sync(event)),
            Class::Truncate => {
                let inode = self.inode_of(event, 0);
                let length = event.length.max(0) as u64;
                Some(Cost::work(self.storage.truncate(&mut self.inodes[inode], length)))
            }
            Class::Allocate => ns(call.truncate_ns),
            Class::Stat | Class::Attribute => ns(call.stat_ns),
            Class::Rename => {
                self.rename(event);
                ns(call.rename_ns)
            }
            Class::Unlink => {
                let inode = self.inode_of(event, 0);
                let cost = self.storage.unlink(&mut self.inodes[inode]);
                if let Some(name) = event.file.index() {
                    self.names[name] = None;
                }
                Some(Cost::work(cost))
            }
            Class::MakeDirectory | Class::RemoveDirectory => ns(call.directory_ns),
            Class::Copy => self.copy(event, copy_target),
            Class::Advise | Class::Lock | Class::Control => ns(call.least_ns),
            _ => None,
        }
    }

    fn open(&mut self, event: &Event) -> Option<Cost> {
        let flags = event.argument;
        let known = event.file.index().and_then(|name| self.names[name]);
        let inode = self.inode_of(event, event.length.max(0) as u64);
        let call = &self.storage.call;
        let creates = known.is_none() && flags & open_flags::CREATE != 0 && event.length <= 0;
        let mut cost_ns = if creates { call.open_create_ns } else { call.open_existing_ns };
        if flags & open_flags::TRUNCATE != 0 && self.inodes[inode].size_bytes > 0 {
            cost_ns += self.storage.truncate(&mut self.inodes[inode], 0).get() as f64;
        }
        let inherited = event.function == Function::INHERITED;
        let position = if inherited { event.offset.max(0) as u64 } else { 0 };
        let append = flags & open_flags::APPEND != 0;
        self.descriptions.push(Description { inode, position, append });
        let fd = if inherited { event.fd } else { event.result as i32 };
        self.descriptors[event.process as usize].insert(fd, self.descriptions.len() - 1);
        match inherited {
            true => Some(Cost::default()),
            false => Some(Cost::work(Nanos(cost_ns.round() as u64))),
        }
    }

    fn close(&mut self, event: &Event) {
        let closed = event.closed_descriptors();
        self.descriptors[event.process as usize].retain(|fd, _| !closed.contains(fd));
    }

    fn transfer(&mut self, event: &Event) -> Option<Cost> {
        event.file.index()?;
        let inode = self.inode_of(event, 0);
        let extent = Extent::new(event.offset.max(0) as u64, event.result as u64);
        if !event.function.is_positioned()
            && let Some(description) = self.description(event.process, event.fd)
        {
            self.descriptions[description].position = extent.end();
        }
        let direction = match event.function.class() {
            Class::Write => Direction::Write,
            _ => Direction::Read,
        };
        self.note(inode, direction, extent);
        let file = &mut self.inodes[inode];
        Some(Cost::work(match direction {
            Direction::Write => self.storage.write(file, extent),
            Direction::Read => {
                // The file may have grown by hands the trace does not show.
                file.size_bytes = file.size_bytes.max(extent.end());
                self.storage.read(file, extent)
            }
        }))
    }

    fn copy(&mut self, event: &Event, target: Option<&Event>) -> Option<Cost> {
        let bytes = event.result as u64;
        let extent = |offset: i64| Extent::new(offset.max(0) as u64, bytes);
        let mut cost = Nanos::ZERO;
        if event.file.index().is_some() {
            let source = self.inode_of(event, 0);
            if target.is_some_and(Event::moved_source) {
                self.moved(event, bytes);
            }
            cost = self.storage.read(&mut self.inodes[source], extent(event.offset));
            self.note(source, Direction::Read, extent(event.offset));
        }
        if let Some(target) = target.filter(|target| target.file.index().is_some()) {
            let inode = self.inode_of(target, 0);
            if target.moved_target() {
                self.moved(target, bytes);
            }
            self.note(inode, Direction::Write, extent(target.offset));
            let file = &mut self.inodes[inode];
            cost = cost.after(self.storage.write(file, extent(target.offset)));
        }
        Some(Cost::work(cost))
    }

    /// The position of the row's description moves with a copy from or to it.
    fn moved(&mut self, event: &Event, bytes: u64) {
        if let Some(description) = self.description(event.process, event.fd) {
            let position = event.offset.max(0) as u64;
            self.descriptions[description].position = position + bytes;
        }
    }

    fn sync(&mut self, event: &Event) -> Cost {
        let wait = match event.function {
            Function::SYNC | Function::SYNCFS => {
                let is_dirty = |inode: &usize| self.inodes[*inode].dirty_bytes > 0;
                let dirty: Vec<usize> = (0..self.inodes.len()).filter(is_dirty).collect();
                Nanos(dirty.into_iter().map(|inode| self.sync_one(inode).get()).sum())
            }
            Function::FSYNC | Function::FDATASYNC => {
                let inode = self.inode_of(event, 0);
                self.sync_one(inode)
            }
            _ => Nanos(self.storage.sync.clean_ns as u64),
        };
        Cost { work: Nanos::ZERO, wait }
    }

    fn sync_one(&mut self, inode: usize) -> Nanos {
        self.request(Request::Sync { inode });
        self.storage.sync(&mut self.inodes[inode])
    }

    fn rename(&mut self, event: &Event) {
        let target = event.second_file().index().filter(|name| *name < self.names.len());
        if let (Some(source), Some(target)) = (event.file.index(), target) {
            if event.function.exchanges() {
                self.names.swap(source, target);
                return;
            }
            self.names[target] = self.names[source];
            if !event.function.keeps_name() {
                self.names[source] = None;
            }
        }
    }

    /// The inode of the event's descriptor if there is one, else of its name.
    fn inode_of(&mut self, event: &Event, size_bytes: u64) -> usize {
        match self.description(event.process, event.fd) {
            Some(description) if event.fd >= 0 => self.descriptions[description].inode,
            _ => self.inode(event.file, size_bytes),
        }
    }

    fn inode(&mut self, name: FileId, size_bytes: u64) -> usize {
        let known = name.index().and_then(|name| self.names[name]);
        known.unwrap_or_else(|| {
            self.inodes.push(LocalFile::existing(size_bytes, self.cold));
            let inode = self.inodes.len() - 1;
            if let Some(name) = name.index() {
                self.names[name] = Some(inode);
            }
            inode
        })
    }

    /// Has the medium fetch a range behind what it fetches already; nobody waits.
    fn fetch(&mut self, now: Nanos, inode: usize, extent: Extent) {
        let time = self.storage.fetch(&mut self.inodes[inode], extent);
        self.arriving.retain(|(_, arriving)| arriving.ends > now);
        if time > Nanos::ZERO {
            let begins = now.max(self.fetched_by);
            self.fetched_by = begins.after(time);
            let arriving = Arriving { extent, begins, ends: self.fetched_by };
            self.arriving.push((inode, arriving));
        }
    }

    /// How long a read waits for what is being fetched.
    fn arrival(&self, now: Nanos, inode: usize, extent: Extent) -> Nanos {
        let of_file = self.arriving.iter().filter(|(file, _)| *file == inode);
        let parts = of_file.map(|(_, it)| (it, it.extent.intersection(extent)));
        let times =
            parts.filter(|(_, part)| !part.is_empty()).map(|(it, part)| it.until(part.end()));
        times.max().unwrap_or(now).since(now)
    }

    /// Carries out what a stack asks for on a description.
    pub(super) fn perform(
        &mut self,
        now: Nanos,
        description: DescriptionId,
        call: Call,
    ) -> (Outcome, Cost) {
        self.is_served = false;
        let Description { inode, position, append } = self.descriptions[description];
        let file = &mut self.inodes[inode];
        let storage = self.storage;
        match call {
            Call::Read { at, length } => {
                let offset = place(at, position);
                let moved = file.size_bytes.saturating_sub(offset).min(length);
                let work = storage.read(file, Extent::new(offset, length));
                self.advance(description, at, offset + moved);
                self.note(inode, Direction::Read, Extent::new(offset, moved));
                let wait = self.arrival(now, inode, Extent::new(offset, moved));
                (Ok(moved), Cost { work, wait })
            }
            Call::Write { at, length } => {
                let offset = if append { file.size_bytes } else { place(at, position) };
                let cost = storage.write(file, Extent::new(offset, length));
                self.advance(description, at, offset + length);
                self.note(inode, Direction::Write, Extent::new(offset, length));
                (Ok(length), Cost::work(cost))
            }
            Call::Seek { offset, whence } => {
                let outcome = seek(position, file.size_bytes, offset, whence);
                if let Ok(position) = outcome {
                    self.descriptions[description].position = position;
                }
                (outcome, Cost::work(Nanos(storage.call.seek_ns.round() as u64)))
            }
            Call::Sync { .. } => (Ok(0), Cost { work: Nanos::ZERO, wait: self.sync_one(inode) }),
            Call::Truncate { length } => (Ok(0), Cost::work(storage.truncate(file, length))),
            Call::Allocate { mode, offset, length } => {
                if mode == 0 {
                    file.size_bytes = file.size_bytes.max(offset + length);
                }
                (Ok(0), Cost::work(Nanos(storage.call.truncate_ns.round() as u64)))
            }
            // Servers are told of what is read; what they read ahead is their cache's to decide.
            Call::Advise { offset, length } => {
                if self.requests.is_none() {
                    self.fetch(now, inode, Extent::new(offset, length));
                }
                (Ok(0), Cost::work(Nanos(storage.call.least_ns.round() as u64)))
            }
            Call::Open { .. } | Call::Flush | Call::Settle | Call::Close => {
                (Ok(0), Cost::default())
            }
        }
    }

    fn advance(&mut self, description: DescriptionId, at: At, position: u64) {
        if at == At::Position {
            self.descriptions[description].position = position;
        }
    }
}

fn place(at: At, position: u64) -> u64 {
    match at {
        At::Position => position,
        At::Offset(offset) => offset,
    }
}

fn seek(position: u64, size_bytes: u64, offset: i64, whence: Whence) -> Outcome {
    let base = match whence {
        Whence::Start | Whence::Sparse(_) => 0,
        Whence::Current => position,
        Whence::End => size_bytes,
    };
    const INVALID: Errno = Errno(22);
    base.checked_add_signed(offset).ok_or(INVALID)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::Platform;
    use iolab_trace::{MOVED_SOURCE, MOVED_TARGET};

    #[test]
    fn a_copy_goes_where_its_target_row_says_and_moves_what_it_began_at() {
        let platform = Platform::preset("local-ext4").unwrap();
        let storage = platform.local.as_ref().expect("it is local storage");
        let on = |function, fd, file| Event { fd, file, ..Event::of(function) };
        let open = |fd: i32| Event {
            result: fd.into(),
            length: 1000,
            argument: open_flags::CREATE,
            ..on(Function::OPEN, -1, FileId(fd as u32 - 3))
        };
        let copy = Event { offset: 5, result: 10, ..on(Function::COPY_FILE_RANGE, 3, FileId(0)) };
        let extent = |offset| Extent::new(offset, 10);
        let moved = |bits: i64| {
            let mut kernel = Kernel::remote(storage, 2, 1);
            assert!([3, 4].iter().all(|&fd| kernel.native(&open(fd), None).is_some()));
            let to = on(Function::COPY_TARGET, 4, FileId(1));
            let to = Event { offset: 700, result: 10, argument: bits, ..to };
            kernel.native(&copy, Some(&to));
            let transfer = |inode, direction, offset| Request::Transfer {
                inode,
                direction,
                extent: extent(offset),
            };
            let both = [transfer(0, Direction::Read, 5), transfer(1, Direction::Write, 700)];
            assert_eq!(kernel.take_requests(), both);
            [0, 1].map(|at: usize| kernel.descriptions[at].position)
        };
        assert_eq!(moved(0), [0, 0]);
        assert_eq!(moved(MOVED_SOURCE), [15, 0]);
        assert_eq!(moved(MOVED_SOURCE | MOVED_TARGET), [15, 710]);
    }
}
