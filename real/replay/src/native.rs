//! A recorded call, carried out on the scratch files.

use crate::content::fill;
use crate::descriptors::{Description, Descriptor, Entry, Tables};
use crate::initial::{by_descriptor, creates, flags_asked};
use crate::root::{Directories, Root};
use crate::scratch::Scratch;
use iolab_policy::insitu::guest::open_flags as flags;
use iolab_processor::native_open_flags;
use iolab_trace::{APPENDS_NOT, APPENDS_ONCE, Class, Event, Function};
use rustix::fs::{self, Advice, FallocateFlags, Mode, OFlags, RenameFlags, SeekFrom};
use rustix::io::{self, Errno, ReadWriteFlags};
use std::borrow::Cow;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// It was issued: bytes, a position, 0; or its error.
    Result(Result<u64, Errno>),
    /// It was not issued, for this reason.
    Skipped(&'static str),
}

const UNKNOWN_DESCRIPTOR: Done = Done::Skipped("on a descriptor whose opening is not in the trace");
const FOREIGN: Done = Done::Skipped("on something that is no regular file");
const COPY: Done =
    Done::Skipped("of copies of a descriptor, whose making a mount is not asked for");
const NO_LINKS: Done =
    Done::Skipped("symbolic links, which this kernel cannot keep in a directory");
const OUTSIDE: Done = Done::Skipped("failed for a reason outside the files");
/// What one transfer moves at most on Linux.
const TRANSFER_BYTES_MAX: i64 = 0x7fff_f000;

/// Issues calls on the scratch tree.
pub(crate) struct Native<'a> {
    pub(crate) scratch: &'a Scratch,
    pub(crate) tables: Tables,
}

impl Native<'_> {
    /// Carries `event` out, a copy with the row that says where its bytes went. The bytes of a read are in `memory`
    /// afterwards.
    pub(crate) fn carry_out(
        &self,
        event: &Event,
        to: Option<&Event>,
        memory: &mut Vec<u8>,
    ) -> Done {
        if !is_reproducible(event) {
            return OUTSIDE;
        }
        match event.function.class() {
            Class::Open => self.open(event),
            Class::Close => self.close(event),
            Class::Dup => self.dup(event),
            Class::Read | Class::Write => self.transfer(event, memory),
            Class::Seek => self.on_descriptor(event, |d| seek(d, event.offset, event.argument)),
            Class::Sync => self.sync(event),
            Class::Truncate => self.truncate(event),
            Class::Allocate => self.on_descriptor(event, |d| allocate(d, event)),
            Class::Advise => self.on_descriptor(event, |d| advise(d, event)),
            Class::Control if event.function != Function::FCNTL_SETFL => {
                Done::Skipped("that have no effect on files")
            }
            Class::Attribute => {
                Done::Skipped("of times, modes, owners and attributes, which no data depends on")
            }
            Class::Control => self.on_descriptor(event, |d| control(d, event)),
            Class::Copy => self.copy(event, to, memory),
            Class::Stat => self.stat(event),
            Class::Rename => self.rename(event),
            Class::Unlink | Class::RemoveDirectory => self.remove(event),
            Class::MakeDirectory => {
                self.by_path(event, |root, path| root.make_directory(path).map(|()| 0))
            }
            Class::ListDirectory => self.by_path(event, |root, path| {
                root.file(path, OFlags::DIRECTORY, Mode::empty()).map(|_| 0)
            }),
            Class::Process => {
                if event.function == Function::FORK {
                    self.tables.fork(event);
                }
                Done::Skipped("of processes, which are threads here")
            }
            Class::Lock => Done::Skipped("locks, which the recorded order stands for"),
            Class::Map | Class::Unmap => {
                Done::Skipped("mappings, whose stores are not in the trace")
            }
            _ => Done::Skipped("that have no effect on files"),
        }
    }

    /// Runs `call` on the real descriptor of the event, if it has one.
    fn on_descriptor(
        &self,
        event: &Event,
        call: impl FnOnce(&Descriptor) -> Result<u64, Errno>,
    ) -> Done {
        match self.tables.get(event) {
            Some(Entry::Real(descriptor)) => Done::Result(call(&descriptor)),
            Some(Entry::Foreign) => FOREIGN,
            None if event.errno() == Some(Errno::BADF.raw_os_error()) => {
                Done::Result(Err(Errno::BADF))
            }
            None => UNKNOWN_DESCRIPTOR,
        }
    }

    /// Runs `call` on the place of the event's file.
    fn by_path(
        &self,
        event: &Event,
        call: impl FnOnce(&Root, &Path) -> Result<u64, Errno>,
    ) -> Done {
        match event.file.index().and_then(|file| self.scratch.place(file)) {
            Some(place) => {
                let ends_in_slash = self.ends_in_slash(event, place);
                let said = if ends_in_slash { Cow::from(place.join("")) } else { Cow::from(place) };
                Done::Result(call(self.scratch.root(), &said))
            }
            None => FOREIGN,
        }
    }

    /// Whether the program put a slash behind the name, which asks for a directory. The trace has names without; what
    /// shows it is an error that there is for no other reason.
    fn ends_in_slash(&self, event: &Event, place: &Path) -> bool {
        let is_open = event.function.class() == Class::Open;
        let wants_directory = is_open && flags_asked(event) & flags::DIRECTORY != 0;
        let is_directory = |found: fs::Stat| fs::FileType::from_raw_mode(found.st_mode).is_dir();
        let there = || self.scratch.root().status(place);
        match event.errno().map(Errno::from_raw_os_error) {
            Some(Errno::NOTDIR) => !wants_directory && there().is_ok_and(|it| !is_directory(it)),
            Some(Errno::ISDIR) => is_open && creates(event) && !there().is_ok_and(is_directory),
            _ => false,
        }
    }

    fn open(&self, event: &Event) -> Done {
        let fd = event.result as i32;
        let inherited = event.function == Function::INHERITED;
        if inherited && let Some(entry) = self.inherited(event) {
            if let Entry::Real(open) = &entry {
                catch_up(open, event.offset);
            }
            self.tables.insert(event.process, fd, entry);
            return Done::Skipped("that only show what a process inherited");
        }
        if event.result >= 0 && event.length < 0 {
            self.tables.insert(event.process, fd, Entry::Foreign);
            return FOREIGN;
        }
        let wanted = open_flags(event);
        let mode = Mode::from_raw_mode(0o644);
        let opened = self.by_path(event, |root, path| {
            let file = root.file(path, wanted, mode)?;
            let position = if inherited { event.offset.max(0) } else { 0 };
            if position > 0 {
                fs::seek(&file, SeekFrom::Start(position as u64))?;
            }
            let append = wanted.contains(OFlags::APPEND);
            let description = Arc::new(Description::new(event.file.0, position, append));
            let entry = Entry::Real(Arc::new(Descriptor { fd: file, description }));
            self.tables.insert(event.process, fd, entry);
            Ok(event.result.max(0) as u64)
        });
        if matches!(opened, Done::Skipped(_)) && event.result >= 0 {
            self.tables.insert(event.process, fd, Entry::Foreign);
        }
        opened
    }

    /// What stands behind a descriptor that a process had from the start. A number may have been given again by a
    /// call that the trace does not have: only what the event's name leads to counts, where it leads to something.
    fn inherited(&self, event: &Event) -> Option<Entry> {
        let identity =
            |fd: BorrowedFd<'_>| fs::fstat(fd).map(|status| (status.st_dev, status.st_ino)).ok();
        let place = event.file.index().and_then(|file| self.scratch.place(file));
        let there = place.and_then(|place| {
            let found = self.scratch.root().file(place, OFlags::PATH, Mode::empty()).ok()?;
            identity(found.as_fd())
        });
        let is_meant = |entry: &Entry| match entry {
            Entry::Real(open) => there.is_none() || identity(open.fd.as_fd()) == there,
            Entry::Foreign => there.is_none() || event.length < 0,
        };
        let how = OFlags::ACCMODE | OFlags::APPEND;
        let stands_there = |open: &Descriptor| {
            there.is_some()
                && fs::tell(&open.fd).is_ok_and(|real| real as i64 == event.offset)
                && identity(open.fd.as_fd()) == there
                && fs::fcntl_getfl(&open.fd).is_ok_and(|it| it & how == open_flags(event) & how)
        };
        self.tables.inherited(event.process, event.result as i32, is_meant, stands_there)
    }

    fn close(&self, event: &Event) -> Done {
        if event.fd < 0 && event.result >= 0 {
            return COPY;
        }
        let (first, last) = event.closed_descriptors().into_inner();
        let closed = self.tables.remove(event.process, first, last);
        match (closed.first(), event.errno()) {
            (None, Some(errno)) => Done::Result(Err(Errno::from_raw_os_error(errno))),
            (None, None) if event.function != Function::CLOSE_RANGE => UNKNOWN_DESCRIPTOR,
            (Some(Entry::Foreign), _) => FOREIGN,
            _ => Done::Result(Ok(0)),
        }
    }

    fn dup(&self, event: &Event) -> Done {
        // What is there to be copied; it is the other number that the process may not have.
        if event.errno().is_some() && self.tables.get(event).is_some() {
            return OUTSIDE;
        }
        let result = event.result.max(0) as u64;
        let (Some(Entry::Foreign), true) = (self.tables.get(event), event.result >= 0) else {
            return self.on_descriptor(event, |descriptor| {
                let description = Arc::clone(&descriptor.description);
                let copy = Arc::new(Descriptor { fd: io::dup(&descriptor.fd)?, description });
                self.tables.insert(event.process, event.result as i32, Entry::Real(copy));
                Ok(result)
            });
        };
        self.tables.insert(event.process, event.result as i32, Entry::Foreign);
        FOREIGN
    }

    fn transfer(&self, event: &Event, memory: &mut Vec<u8>) -> Done {
        self.on_descriptor(event, |descriptor| {
            self.load(event, memory);
            // What the program's file system did not take, for whatever reason, is not written here, either.
            if event.function.class() == Class::Write
                && event.result >= 0
                && !is_asynchronous(event)
            {
                memory.truncate(event.result as usize);
            }
            let (class, is_positioned) = (event.function.class(), event.function.is_positioned());
            let how = how_to_append(event);
            let moved = match (class, is_positioned) {
                // At the end, which moves the position if no place was said.
                (Class::Write, _) if !how.is_empty() => in_full(memory, |rest, done| {
                    let at = match is_positioned {
                        true => event.offset.max(0) as u64 + done,
                        false => u64::MAX,
                    };
                    io::pwritev2(&descriptor.fd, &[std::io::IoSlice::new(rest)], at, how)
                }),
                (Class::Read, true) => {
                    positioned(event, |at| io::pread(&descriptor.fd, memory.as_mut_slice(), at))
                }
                (Class::Read, false) => io::read(&descriptor.fd, memory.as_mut_slice()),
                (_, true) => positioned(event, |at| {
                    in_full(memory, |rest, done| io::pwrite(&descriptor.fd, rest, at + done))
                }),
                (_, false) => in_full(memory, |rest, _| io::write(&descriptor.fd, rest)),
            };
            Ok(moved? as u64)
        })
    }

    /// Puts into `memory` what the program had there: the file's own bytes for a write.
    pub(crate) fn load(&self, event: &Event, memory: &mut Vec<u8>) {
        memory.resize(event.length.clamp(0, TRANSFER_BYTES_MAX) as usize, 0);
        if event.function.class() == Class::Write {
            self.fill(event, memory);
        }
    }

    /// Puts into `memory` the bytes that the event's file has from its offset on.
    fn fill(&self, event: &Event, memory: &mut [u8]) {
        let seed = event.file.index().map_or(0, |file| self.scratch.seed(file));
        fill(seed, event.offset.max(0) as u64, memory);
    }

    fn sync(&self, event: &Event) -> Done {
        match event.function {
            Function::FSYNC => self.on_descriptor(event, |d| fs::fsync(&d.fd).map(|()| 0)),
            Function::FDATASYNC => self.on_descriptor(event, |d| fs::fdatasync(&d.fd).map(|()| 0)),
            // Whole file systems: only the scratch tree's own is touched.
            Function::SYNC | Function::SYNCFS => {
                Done::Result(fs::syncfs(self.scratch.root()).map(|()| 0))
            }
            _ => Done::Skipped("that sync part of a file or a mapping"),
        }
    }

    fn truncate(&self, event: &Event) -> Done {
        let length = event.length.max(0) as u64;
        match event.function {
            Function::FTRUNCATE => {
                self.on_descriptor(event, |d| fs::ftruncate(&d.fd, length).map(|()| 0))
            }
            _ => self.by_path(event, |root, path| {
                let file = root.file(path, OFlags::WRONLY, Mode::empty())?;
                fs::ftruncate(&file, length).map(|()| 0)
            }),
        }
    }

    /// Where no row says where the bytes went (it moved none, or the trace is from before there were such rows), any
    /// descriptor of the process that is open on the target will do.
    fn copy(&self, event: &Event, to: Option<&Event>, memory: &mut Vec<u8>) -> Done {
        let target = match to {
            Some(to) => self.tables.get(to),
            None => {
                // The kernel copies to no descriptor that appends.
                let appends = event.errno() == Some(Errno::BADF.raw_os_error());
                self.tables.open_on(event.process, event.argument, appends).map(Entry::Real)
            }
        };
        match (self.tables.get(event), target, to) {
            (Some(Entry::Real(source)), Some(Entry::Real(target)), _) => {
                Done::Result(copied(event, to, &source, &target))
            }
            (_, Some(Entry::Real(target)), Some(to)) => {
                Done::Result(self.copied_from_elsewhere(to, &target, memory))
            }
            (Some(Entry::Real(source)), _, _) => {
                if to.is_some_and(Event::moved_source)
                    && let Ok(position) = fs::seek(&source.fd, SeekFrom::Current(event.result))
                {
                    source.description.move_to(position as i64);
                }
                Done::Skipped("that copy to something that is no file")
            }
            _ => FOREIGN,
        }
    }

    /// From a pipe or a socket: the bytes of that place in the file, as if they had been written.
    fn copied_from_elsewhere(
        &self,
        to: &Event,
        target: &Descriptor,
        memory: &mut Vec<u8>,
    ) -> Result<u64, Errno> {
        memory.resize(to.result.clamp(0, TRANSFER_BYTES_MAX) as usize, 0);
        self.fill(to, memory);
        if !to.moved_target() {
            let write = |at| in_full(memory, |rest, done| io::pwrite(&target.fd, rest, at + done));
            return positioned(to, write).map(|moved| moved as u64);
        }
        let moved = in_full(memory, |rest, _| io::write(&target.fd, rest))?;
        target.description.advance(moved as u64);
        Ok(moved as u64)
    }

    fn stat(&self, event: &Event) -> Done {
        match event.function {
            Function::FSTAT => self.on_descriptor(event, |d| fs::fstat(&d.fd).map(|_| 0)),
            _ => self.by_path(event, |root, path| root.status(path).map(|_| 0)),
        }
    }

    fn rename(&self, event: &Event) -> Done {
        let target = event.second_file().index().and_then(|file| self.scratch.place(file));
        let Some(target) = target else { return FOREIGN };
        if event.function.is_symbolic() && !self.scratch.root().may_have_links() {
            return NO_LINKS;
        }
        if by_descriptor(event) {
            return self.on_descriptor(event, |descriptor| {
                self.scratch.root().link_open(&descriptor.fd, target).map(|()| 0)
            });
        }
        self.by_path(event, |root, path| {
            match event.function {
                Function::LINK | Function::LINKAT => root.link(path, target),
                _ if event.function.is_symbolic() => root.symbolic_link(path, target),
                Function::RENAME_EXCHANGE => root.rename(path, target, RenameFlags::EXCHANGE),
                Function::RENAME_NOREPLACE => root.rename(path, target, RenameFlags::NOREPLACE),
                _ => root.rename(path, target, RenameFlags::empty()),
            }
            .map(|()| 0)
        })
    }

    fn remove(&self, event: &Event) -> Done {
        let directories = match event.function {
            Function::RMDIR => Directories::Only,
            Function::UNLINKAT | Function::REMOVE => Directories::Too,
            _ => Directories::Not,
        };
        self.by_path(event, |root, path| root.remove(path, directories).map(|()| 0))
    }
}

/// Errors that follow from the state of files and descriptors, and come again here.
fn is_reproducible(event: &Event) -> bool {
    let Some(errno) = event.errno() else { return true };
    // The directory that a path was to count from was none.
    let counts_from = |it: &&str| matches!(*it, "directory" | "new_directory");
    let arguments = event.function.row().map_or(&[][..], |row| row.arguments);
    if errno == Errno::BADF.raw_os_error() && arguments.iter().any(counts_from) {
        return false;
    }
    let of_files =
        [Errno::NOENT, Errno::BADF, Errno::EXIST, Errno::NOTDIR, Errno::ISDIR, Errno::NOTEMPTY];
    let seek = event.function.class() == Class::Seek && errno == Errno::INVAL.raw_os_error();
    seek || of_files.iter().any(|known| known.raw_os_error() == errno)
}

fn open_flags(event: &Event) -> OFlags {
    let wanted = match event.function {
        Function::INHERITED => event.argument & (flags::ACCESS_MODE | flags::APPEND),
        // O_DIRECT needs aligned memory, which the trace says nothing about.
        _ => flags_asked(event) & !flags::DIRECT,
    };
    let known = flags::ACCESS_MODE
        | flags::CREATE
        | flags::EXCLUSIVE
        | flags::TRUNCATE
        | flags::APPEND
        | flags::DATA_SYNC
        | flags::SYNC
        | flags::DIRECTORY
        | flags::PATH
        | flags::TEMPORARY;
    OFlags::from_bits_retain(native_open_flags((wanted & known) as i32) as u32)
}

/// A copy within the scratch tree, of as much as the program's file system moved.
fn copied(
    event: &Event,
    to: Option<&Event>,
    source: &Descriptor,
    target: &Descriptor,
) -> Result<u64, Errno> {
    let (moves_source, moves_target) = match to {
        Some(to) => (to.moved_source(), to.moved_target()),
        None => (source.description.position() == event.offset, true),
    };
    let own = |offset: i64| offset.max(0) as u64;
    let (mut from, mut into) = (own(event.offset), own(to.map_or(0, |to| to.offset)));
    let wanted = if event.result > 0 { event.result } else { event.length };
    let wanted = wanted.clamp(0, TRANSFER_BYTES_MAX) as usize;
    let mut moved = 0;
    loop {
        let step = fs::copy_file_range(
            &source.fd,
            (!moves_source).then_some(&mut from),
            &target.fd,
            (!moves_target).then_some(&mut into),
            wanted - moved,
        )?;
        moved += step;
        if step == 0 || moved == wanted {
            break;
        }
    }
    let ends = [(moves_source, source), (moves_target, target)];
    for (_, end) in ends.into_iter().filter(|(moves, _)| *moves) {
        end.description.advance(moved as u64);
    }
    Ok(moved as u64)
}

/// What a write says of appending by itself.
fn how_to_append(event: &Event) -> ReadWriteFlags {
    let said = event.argument.max(0) & (APPENDS_ONCE | APPENDS_NOT);
    ReadWriteFlags::from_bits_retain(said as u32)
}

/// Whether a call returns before its transfer is done.
pub(crate) fn is_asynchronous(event: &Event) -> bool {
    matches!(event.function, Function::AIO_READ | Function::AIO_WRITE)
}

/// Writes all of it: what is written in part says only the next time why.
fn in_full(
    bytes: &[u8],
    mut write: impl FnMut(&[u8], u64) -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    let mut done = 0;
    loop {
        let moved = write(&bytes[done..], done as u64)?;
        done += moved;
        if moved == 0 || done == bytes.len() {
            return Ok(done);
        }
    }
}

fn positioned(
    event: &Event,
    call: impl FnOnce(u64) -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    u64::try_from(event.offset).map_err(|_| Errno::INVAL).and_then(call)
}

/// Others that share the position have moved it by calls that the trace does not have, or on a description that nobody
/// knew to be this one: it is where the recorder found it. A position beyond that is one of calls under way.
fn catch_up(descriptor: &Descriptor, position: i64) {
    if position > descriptor.description.position()
        && fs::seek(&descriptor.fd, SeekFrom::Start(position as u64)).is_ok()
    {
        descriptor.description.move_to(position);
    }
}

pub(crate) fn seek(descriptor: &Descriptor, offset: i64, whence: i64) -> Result<u64, Errno> {
    let absolute = || u64::try_from(offset).map_err(|_| Errno::INVAL);
    let target = match whence {
        0 => SeekFrom::Start(absolute()?),
        1 => SeekFrom::Current(offset),
        2 => SeekFrom::End(offset),
        3 => SeekFrom::Data(absolute()?),
        4 => SeekFrom::Hole(absolute()?),
        _ => return Err(Errno::INVAL),
    };
    fs::seek(&descriptor.fd, target)
}

pub(crate) fn allocate_range(
    descriptor: &Descriptor,
    mode: i64,
    offset: u64,
    length: u64,
) -> Result<u64, Errno> {
    let mode = FallocateFlags::from_bits_retain(mode as u32);
    fs::fallocate(&descriptor.fd, mode, offset, length).map(|()| 0)
}

fn allocate(descriptor: &Descriptor, event: &Event) -> Result<u64, Errno> {
    let (offset, length) = (event.offset.max(0) as u64, event.length.max(0) as u64);
    allocate_range(descriptor, event.argument.max(0), offset, length)
}

fn advise(descriptor: &Descriptor, event: &Event) -> Result<u64, Errno> {
    let advice = match event.argument {
        1 => Advice::Random,
        2 => Advice::Sequential,
        3 => Advice::WillNeed,
        4 => Advice::DontNeed,
        5 => Advice::NoReuse,
        _ => Advice::Normal,
    };
    let length = std::num::NonZero::new(event.length.max(0) as u64);
    fs::fadvise(&descriptor.fd, event.offset.max(0) as u64, length, advice).map(|()| 0)
}

fn control(descriptor: &Descriptor, event: &Event) -> Result<u64, Errno> {
    let append = event.argument & flags::APPEND != 0;
    let wanted = if append { OFlags::APPEND } else { OFlags::empty() };
    fs::fcntl_setfl(&descriptor.fd, wanted)?;
    descriptor.description.set_append(append);
    Ok(0)
}
