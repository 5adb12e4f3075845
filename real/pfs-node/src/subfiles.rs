//! The device of an I/O server: a directory with one sparse file for each subfile.
//!
//! A portion that is one run of a subfile goes through `pread` and `pwrite`. One that is scattered goes
//! through a mapping of the subfile, window by window, which costs a system call only where a window is
//! new; runs that lie far apart are written one by one. Nothing behind the end of a file is touched, and
//! `fallocate` comes before a mapping is written: so a full device is an error of a call, not a signal.
//!
//! Where a sync is for the device, a descriptor through which something was written is synced before it goes:
//! with the last one the kernel may forget that it could not write.
//!
//! Bounds: [`OPEN_MAX`] descriptors, [`WINDOWS_MAX`] windows, the least recently used go.

use crate::device_sync::ToSync;
use crate::room::{self, Used};
use crate::sums::{Found, Strike, Sums, ToSum};
use iolab_pattern::{Cut, Nest};
use iolab_pfs::io_server::{Operation, Outcome, Subfile};
use iolab_pfs::{Code, Inode, Piece, Portion};
use iolab_vocab::Extent;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FallocateFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;

/// Descriptors of a server; a node has up to some dozen servers within the usual limit of 1024.
const OPEN_MAX: usize = 128;
/// Mappings of a server: 256 MiB of address space together.
const WINDOWS_MAX: usize = 64;
/// Large enough that a stripe of the usual size has few borders.
const WINDOW_BYTES: u64 = 4 << 20;
/// How many subfiles are known to have their names on the device; to sync one again does no harm.
const NAMED_MAX: usize = 1 << 16;
/// Runs that have less than one byte in so many of their span are written and read one by one: a
/// system call then costs less than the pages between them.
const SPARSE: u64 = 256;

/// The subfiles of one server.
pub(crate) struct Subfiles {
    directory: OwnedFd,
    servers: u32,
    open: BTreeMap<Subfile, Open>,
    windows: Vec<Window>,
    /// Whether the file system below can do what mappings need.
    maps: bool,
    scratch: Vec<u8>,
    /// Subfiles whose names are on the device, or on their way there.
    named: BTreeSet<Subfile>,
    /// What was written through descriptors that had to go.
    evicted: Vec<ToSync>,
    /// What tells what was written from what the device has made of it, if it is kept.
    sums: Option<Sums>,
    /// What subfiles have of the device, if anybody wants to know.
    used: Option<Used>,
    /// Counts uses, to find the least recent one.
    uses: u64,
}

struct Open {
    file: Arc<File>,
    bytes: u64,
    /// What it has of the device, as was seen last.
    taken: u64,
    /// Something was written through it, or may have been, since it was synced.
    is_written: bool,
    used: u64,
}

/// A mapped part of a subfile.
struct Window {
    subfile: Subfile,
    from: u64,
    memory: NonNull<u8>,
    allocated: Allocated,
    used: u64,
}

impl Window {
    /// Has the pages of a range of the file at hand, together instead of one at each first touch. Where a
    /// page cannot be had, as when the device cannot read it, that is an error here and no signal later.
    fn populate(&self, from: u64, to: u64) -> Result<()> {
        let from = from - from % iolab_processor::page_bytes() as u64;
        // SAFETY: pages of this mapping, before the end of the file; what they hold stays as it is.
        let populated = unsafe {
            let first = self.memory.as_ptr().add((from - self.from) as usize);
            rustix::mm::madvise(first.cast(), (to - from) as usize, Advice::LinuxPopulateWrite)
        };
        match populated {
            Err(Errno::FAULT | Errno::HWPOISON) => Err(Code::IO),
            // Kernels before 5.14 do not know it: pages then come when they are touched.
            _ => Ok(()),
        }
    }
}

/// What of a subfile has blocks on the device for certain: ranges that do not touch.
#[derive(Default)]
struct Allocated(Vec<(u64, u64)>);

/// As many ranges as there are stripes of the usual size in a window, where several ranks write at once.
const RANGES_MAX: usize = 16;

impl Allocated {
    fn holds(&self, from: u64, to: u64) -> bool {
        self.0.iter().any(|&(low, high)| low <= from && to <= high)
    }

    /// Adds a range. What does not fit is forgotten: asking the system again does no harm.
    fn add(&mut self, mut from: u64, mut to: u64) {
        self.0.retain(|&(low, high)| {
            let apart = high < from || to < low;
            if !apart {
                (from, to) = (from.min(low), to.max(high));
            }
            apart
        });
        if self.0.len() >= RANGES_MAX {
            self.0.remove(0);
        }
        self.0.push((from, to));
    }
}

// SAFETY: a mapping belongs to the process; only who owns this value uses it.
unsafe impl Send for Window {}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: mapped with that length, and nobody keeps a slice of it.
        let _ = unsafe { rustix::mm::munmap(self.memory.as_ptr().cast(), WINDOW_BYTES as usize) };
    }
}

/// What of a piece lies in one window.
struct Part {
    cut: Cut,
    /// First byte of the subfile, and the one behind the last.
    from: u64,
    to: u64,
    /// Which byte of the file the first of the subfile would be, if all were one stripe.
    base: u64,
}

impl Part {
    fn is_row(&self) -> bool {
        self.cut.bytes() == self.to - self.from
    }

    fn is_sparse(&self) -> bool {
        self.cut.bytes() * SPARSE < self.to - self.from
    }
}

pub(crate) type Result<T> = std::result::Result<T, Code>;

/// The error of a system call as a code.
pub(crate) fn code(error: Errno) -> Code {
    Code(error.raw_os_error() as u16)
}

/// The parts of a piece, in the order of the view, each within one window.
fn parts<'a>(view: &'a Nest, piece: Piece) -> impl Iterator<Item = Part> + 'a {
    let base = piece.stripe.offset - piece.place;
    let place = move |y| view.at(y).expect("a piece lies in its view") - base;
    let mut at = piece.from;
    std::iter::from_fn(move || {
        (at < piece.to).then(|| {
            let from = place(at);
            let border = (from / WINDOW_BYTES + 1) * WINDOW_BYTES;
            let to = view.rank(border.saturating_add(base)).unwrap_or(piece.to).min(piece.to);
            let part = Part { cut: view.cut(at, to), from, to: place(to - 1) + 1, base };
            at = to;
            part
        })
    })
}

impl Subfiles {
    /// Those in a directory, which is made if it is not there, of one of so many servers.
    pub(crate) fn at(directory: &Path, servers: u32) -> std::io::Result<Subfiles> {
        std::fs::create_dir_all(directory)?;
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(Subfiles {
            directory: rustix::fs::open(directory, flags, Mode::empty())?,
            servers,
            open: BTreeMap::new(),
            windows: Vec::new(),
            maps: true,
            scratch: Vec::new(),
            named: BTreeSet::new(),
            evicted: Vec::new(),
            sums: None,
            used: None,
            uses: 0,
        })
    }

    /// From here on it is known what subfiles have of the device.
    pub(crate) fn count_used(&mut self, used: Used) {
        self.used = Some(used);
    }

    /// From here on pages get sums.
    pub(crate) fn keep_sums(&mut self, sums: Sums) {
        self.sums = Some(sums);
    }

    /// The sums, if they are kept.
    pub(crate) fn sums(&self) -> Option<&Sums> {
        self.sums.as_ref()
    }

    /// The file of a subfile, if it is there.
    fn file(&mut self, subfile: Subfile) -> Result<Option<Arc<File>>> {
        match self.opened(subfile, false) {
            Ok(open) => Ok(Some(open.file.clone())),
            Err(Code::NO_ENTRY) => Ok(None),
            Err(code) => Err(code),
        }
    }

    /// Holds what a portion touches against its sums.
    pub(crate) fn look_at_sums(&mut self, subfile: Subfile, portion: &Portion) -> Result<Found> {
        if self.sums.is_none() {
            return Ok(Found::Intact);
        }
        let (name, file) = (self.name(subfile), self.file(subfile)?);
        match (&mut self.sums, file) {
            (Some(sums), Some(file)) => sums.look((subfile, &name), &file, &portion.extents()),
            _ => Ok(Found::Intact),
        }
    }

    /// Strikes out the sums of what is about to be changed.
    pub(crate) fn strike(
        &mut self,
        subfile: Subfile,
        changes: (&[Extent], bool),
        operation: Operation,
    ) -> Result<Strike> {
        let (name, file) = (self.name(subfile), self.file(subfile)?);
        match &mut self.sums {
            Some(sums) => sums.strike((subfile, &name), file.as_deref(), changes, operation),
            None => Ok(Strike::Done),
        }
    }

    /// What it takes to give pages of a subfile sums; nothing if there is none.
    pub(crate) fn begin_sum(
        &mut self,
        subfile: Subfile,
        pages: Extent,
        operation: Operation,
    ) -> Result<Option<ToSum>> {
        let (name, Some(data)) = (self.name(subfile), self.file(subfile)?) else {
            return Ok(None);
        };
        let is_for_device = self.sums.as_ref().is_some_and(Sums::is_for_device);
        let sync = match is_for_device {
            true => self.begin_sync(subfile, operation)?,
            false => None,
        };
        let sums = self.sums.as_mut();
        Ok(sums.map(|sums| sums.begin_sum((subfile, &name), (data, sync), pages, operation)))
    }

    /// How much room there is, and how much more it takes to write these extents of a subfile.
    pub(crate) fn room(&mut self, subfile: Subfile, extents: &[Extent]) -> Result<Outcome> {
        let used = self.used.as_ref().map_or(0, Used::bytes);
        let file = match self.opened(subfile, false) {
            _ if extents.is_empty() => None,
            Ok(open) => Some(open.file.clone()),
            Err(Code::NO_ENTRY) => None,
            Err(code) => return Err(code),
        };
        room::look(&self.directory, used, file.as_deref(), extents)
    }

    /// A subfile may have more of the device than before, or less.
    fn note_used(&mut self, subfile: Subfile) {
        if let (Some(used), Some(open)) = (&self.used, self.open.get_mut(&subfile))
            && let Ok(stat) = rustix::fs::fstat(&open.file)
        {
            let now = room::bytes_of(&stat);
            used.changed(std::mem::replace(&mut open.taken, now), now);
        }
    }

    /// Another descriptor of the directory, for a thread that removes files.
    pub(crate) fn directory(&self) -> std::io::Result<OwnedFd> {
        Ok(rustix::io::fcntl_dupfd_cloexec(&self.directory, 0)?)
    }

    /// How long a subfile is; one that is not there has no bytes.
    pub(crate) fn measure(&mut self, subfile: Subfile) -> Result<u64> {
        match self.opened(subfile, false) {
            Ok(open) => Ok(open.bytes),
            Err(Code::NO_ENTRY) => Ok(0),
            Err(code) => Err(code),
        }
    }

    /// Gives a subfile at most so many bytes, or exactly.
    pub(crate) fn resize(&mut self, subfile: Subfile, bytes: u64, extends: bool) -> Result<()> {
        let have = self.measure(subfile)?;
        if bytes == have || (bytes > have && !extends) {
            return Ok(());
        }
        if bytes < have {
            self.windows.retain(|window| window.subfile != subfile);
        }
        let open = self.opened(subfile, true)?;
        open.is_written = true;
        rustix::fs::ftruncate(&open.file, bytes).map_err(code)?;
        open.bytes = bytes;
        self.note_used(subfile);
        Ok(())
    }

    /// Forgets a file, whose names somebody else removes.
    pub(crate) fn forget(&mut self, inode: Inode) {
        self.windows.retain(|window| window.subfile.inode != inode);
        self.open.retain(|subfile, _| subfile.inode != inode);
        self.named.retain(|subfile| subfile.inode != inode);
        self.sums.iter_mut().for_each(|sums| sums.forget(inode));
    }

    /// What is to be brought to the device of a subfile; nothing if there is none.
    pub(crate) fn begin_sync(
        &mut self,
        subfile: Subfile,
        operation: Operation,
    ) -> Result<Option<ToSync>> {
        match self.opened(subfile, false) {
            Ok(_) => {}
            Err(Code::NO_ENTRY) => return Ok(None),
            Err(code) => return Err(code),
        }
        let unnamed = self.named_by_now(subfile);
        let open = self.open.get_mut(&subfile).expect("it was just opened");
        open.is_written = false;
        let (operation, file) = (Some(operation), open.file.clone());
        Ok(Some(ToSync { operation, file, unnamed, struck: None }))
    }

    /// What was written through descriptors that had to go since this was asked last.
    pub(crate) fn take_evicted(&mut self) -> Vec<ToSync> {
        std::mem::take(&mut self.evicted)
    }

    /// The file whose folder is to be synced for a subfile that has not been before.
    fn named_by_now(&mut self, subfile: Subfile) -> Option<Inode> {
        if self.named.len() == NAMED_MAX {
            self.named.pop_first();
        }
        self.named.insert(subfile).then_some(subfile.inode)
    }

    /// Writes the bytes of a portion, packed in the order of the view.
    pub(crate) fn write(&mut self, subfile: Subfile, portion: &Portion, from: &[u8]) -> Result<()> {
        let written = self.write_pieces(subfile, portion, from);
        self.note_used(subfile);
        written
    }

    fn write_pieces(&mut self, subfile: Subfile, portion: &Portion, from: &[u8]) -> Result<()> {
        let mut rest = from;
        for piece in portion.pieces() {
            for part in parts(&portion.view, piece) {
                let Some((bytes, behind)) = rest.split_at_checked(part.cut.bytes() as usize) else {
                    return Err(Code::BAD_MESSAGE);
                };
                self.write_part(subfile, &part, bytes)?;
                rest = behind;
            }
        }
        if rest.is_empty() { Ok(()) } else { Err(Code::BAD_MESSAGE) }
    }

    /// Reads the bytes of a portion, packed in the order of the view, to `to`, which has room for all of
    /// them; what has no bytes is zeros.
    pub(crate) fn read(
        &mut self,
        subfile: Subfile,
        portion: &Portion,
        mut to: &mut [u8],
    ) -> Result<()> {
        for piece in portion.pieces() {
            for part in parts(&portion.view, piece) {
                let Some((own, behind)) = to.split_at_mut_checked(part.cut.bytes() as usize) else {
                    return Err(Code::INVALID);
                };
                match self.read_part(subfile, &part, own) {
                    Err(Code::NO_ENTRY) => own.fill(0),
                    read => read?,
                }
                to = behind;
            }
        }
        Ok(())
    }

    fn write_part(&mut self, subfile: Subfile, part: &Part, bytes: &[u8]) -> Result<()> {
        // Of the file, as of each subfile: no system names a byte behind that.
        if part.base.saturating_add(part.to) > i64::MAX as u64 {
            return Err(Code::TOO_LARGE);
        }
        if part.is_row() {
            return self.write_row(subfile, part.from, bytes);
        }
        if part.is_sparse() {
            let mut rest = bytes;
            for run in part.cut.runs() {
                let (row, behind) = rest.split_at(run.length as usize);
                self.write_row(subfile, run.offset - part.base, row)?;
                rest = behind;
            }
            return Ok(());
        }
        if self.maps {
            match self.mapped(subfile, part.from, part.to) {
                Ok(laid) => {
                    return part
                        .cut
                        .scatter(bytes, laid, part.base + part.from)
                        .map_err(|_| Code::BAD_MESSAGE);
                }
                Err(error) if can_do_without(error) => self.maps = false,
                Err(error) => return Err(error),
            }
        }
        self.rewrite(subfile, part, bytes)
    }

    fn write_row(&mut self, subfile: Subfile, mut at: u64, mut bytes: &[u8]) -> Result<()> {
        let open = self.opened(subfile, true)?;
        open.is_written = true;
        while !bytes.is_empty() {
            match rustix::io::pwrite(&open.file, bytes, at) {
                Ok(0) => return Err(Code::IO),
                Ok(count) => {
                    bytes = &bytes[count..];
                    at += count as u64;
                    open.bytes = open.bytes.max(at);
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(code(error)),
            }
        }
        Ok(())
    }

    /// Reads what is there, lays the bytes over it, and writes it: where there are no mappings.
    fn rewrite(&mut self, subfile: Subfile, part: &Part, bytes: &[u8]) -> Result<()> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.resize((part.to - part.from) as usize, 0);
        let laid = self.opened(subfile, true).and_then(|open| {
            read_row(&open.file, part.from, &mut scratch)?;
            let scattered = part.cut.scatter(bytes, &mut scratch, part.base + part.from);
            scattered.map_err(|_| Code::BAD_MESSAGE)
        });
        let written = laid.and_then(|()| self.write_row(subfile, part.from, &scratch));
        self.scratch = scratch;
        written
    }

    fn read_part(&mut self, subfile: Subfile, part: &Part, to: &mut [u8]) -> Result<()> {
        if !part.is_row()
            && let Some(laid) = self.mapped_already(subfile, part.from, part.to)
        {
            let gathered = part.cut.gather(laid, part.base + part.from, to);
            return gathered.map_err(|_| Code::BAD_MESSAGE);
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let read = self.opened(subfile, false).and_then(|open| {
            if part.is_row() {
                read_row(&open.file, part.from, to)
            } else if part.is_sparse() {
                read_runs(&open.file, part, to)
            } else {
                let bytes = (part.to - part.from) as usize;
                if scratch.len() < bytes {
                    scratch.resize(bytes, 0);
                }
                read_row(&open.file, part.from, &mut scratch[..bytes])?;
                let gathered = part.cut.gather(&scratch[..bytes], part.base + part.from, to);
                gathered.map_err(|_| Code::BAD_MESSAGE)
            }
        });
        self.scratch = scratch;
        read
    }

    /// Bytes `[from, to)` of a subfile as memory, with blocks on the device; all in one window.
    fn mapped(&mut self, subfile: Subfile, from: u64, to: u64) -> Result<&mut [u8]> {
        let start = from / WINDOW_BYTES * WINDOW_BYTES;
        let index =
            match self.windows.iter().position(|it| (it.subfile, it.from) == (subfile, start)) {
                Some(index) => index,
                None => self.map(subfile, start)?,
            };
        self.opened(subfile, true)?.is_written = true;
        self.windows[index].used = self.uses;
        if !self.windows[index].allocated.holds(from, to) {
            let open = self.opened(subfile, true)?;
            allocate(open, from, to)?;
            self.windows[index].populate(from, to)?;
            self.windows[index].allocated.add(from, to);
        }
        let window = &mut self.windows[index];
        // SAFETY: the range lies in the mapping and, allocated, before the end of the file, which only
        // `resize` moves back, after it has dropped the window; the slice borrows this device, so there is
        // no other one.
        Ok(unsafe {
            let first = window.memory.as_ptr().add((from - start) as usize);
            std::slice::from_raw_parts_mut(first, (to - from) as usize)
        })
    }

    /// Bytes `[from, to)` of a subfile as memory, if they were written through it: then nothing is left to
    /// be read, and no hole gets blocks by being looked at.
    fn mapped_already(&self, subfile: Subfile, from: u64, to: u64) -> Option<&[u8]> {
        let holds =
            |window: &&Window| window.subfile == subfile && window.allocated.holds(from, to);
        let window = self.windows.iter().find(holds)?;
        // SAFETY: as in `mapped`; the slice borrows this device, so nobody writes meanwhile.
        Some(unsafe {
            let first = window.memory.as_ptr().add((from - window.from) as usize);
            std::slice::from_raw_parts(first, (to - from) as usize)
        })
    }

    /// Maps a window. It may reach behind the end of the file.
    fn map(&mut self, subfile: Subfile, from: u64) -> Result<usize> {
        if self.windows.len() >= WINDOWS_MAX {
            let oldest = (0..self.windows.len()).min_by_key(|&index| self.windows[index].used);
            self.windows.swap_remove(oldest.expect("there are windows"));
        }
        let open = self.opened(subfile, true)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let memory = unsafe {
            let (length, anywhere) = (WINDOW_BYTES as usize, std::ptr::null_mut());
            rustix::mm::mmap(anywhere, length, access, MapFlags::SHARED, &open.file, from)
        };
        let memory = NonNull::new(memory.map_err(code)?.cast()).ok_or(Code::NO_MEMORY)?;
        self.windows.push(Window {
            subfile,
            from,
            memory,
            allocated: Allocated::default(),
            used: 0,
        });
        Ok(self.windows.len() - 1)
    }

    /// A subfile, open; made if it is not there and is to be.
    fn opened(&mut self, subfile: Subfile, creates: bool) -> Result<&mut Open> {
        self.uses += 1;
        if !self.open.contains_key(&subfile) {
            if self.open.len() >= OPEN_MAX {
                let oldest = self.open.iter().min_by_key(|(_, open)| open.used);
                let oldest = *oldest.expect("there are open ones").0;
                if let Some(Open { file, is_written: true, .. }) = self.open.remove(&oldest) {
                    let unnamed = self.named_by_now(oldest);
                    self.evicted.push(ToSync { operation: None, file, unnamed, struck: None });
                }
                self.windows.retain(|window| window.subfile != oldest);
            }
            let open = self.open_file(subfile, creates)?;
            self.open.insert(subfile, open);
        }
        let open = self.open.get_mut(&subfile).expect("it was just opened");
        open.used = self.uses;
        Ok(open)
    }

    fn open_file(&self, subfile: Subfile, creates: bool) -> Result<Open> {
        let folder = folder(subfile.inode);
        let name = format!("{folder}/{}", self.name(subfile));
        let open = |flags| {
            let mode = Mode::RUSR | Mode::WUSR;
            let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | flags;
            rustix::fs::openat(&self.directory, &*name, flags, mode)
        };
        let file = match (open(OFlags::empty()), creates) {
            (Err(Errno::NOENT), true) => {
                match rustix::fs::mkdirat(&self.directory, &*folder, Mode::RWXU) {
                    Ok(()) | Err(Errno::EXIST) => open(OFlags::CREATE),
                    Err(error) => Err(error),
                }
            }
            (opened, _) => opened,
        };
        let file = file.map_err(code)?;
        let stat = rustix::fs::fstat(&file).map_err(code)?;
        let (bytes, taken) = (stat.st_size as u64, room::bytes_of(&stat));
        Ok(Open { file: Arc::new(File::from(file)), bytes, taken, is_written: false, used: 0 })
    }

    /// The first subfile of a file on a server has the inode's name; others, their number as well.
    fn name(&self, subfile: Subfile) -> String {
        let inode = subfile.inode.0;
        match subfile.index {
            index if index < self.servers => format!("{inode:016x}"),
            index => format!("{inode:016x}.{index}"),
        }
    }
}

/// The folder of a file's subfiles.
pub(crate) fn folder(inode: Inode) -> String {
    format!("{:02x}", inode.0 & 0xff)
}

/// Removes all subfiles of a file from a server's directory; whether there may have been any. `used` is told
/// what they had.
pub(crate) fn remove(directory: impl AsFd, inode: Inode, used: Option<&Used>) -> Result<bool> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let folder = match rustix::fs::openat(directory, folder(inode), flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(false),
        opened => opened.map_err(code)?,
    };
    let stem = format!("{:016x}", inode.0);
    for entry in rustix::fs::Dir::read_from(&folder).map_err(code)? {
        let entry = entry.map_err(code)?;
        let rest = entry.file_name().to_bytes().strip_prefix(stem.as_bytes());
        if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b".")) {
            let had = used.and_then(|used| {
                let stat =
                    rustix::fs::statat(&folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW);
                Some((used, room::bytes_of(&stat.ok()?)))
            });
            match rustix::fs::unlinkat(&folder, entry.file_name(), AtFlags::empty()) {
                Ok(()) => {
                    if let Some((used, bytes)) = had {
                        used.changed(bytes, 0);
                    }
                }
                Err(Errno::NOENT) => {}
                Err(error) => return Err(code(error)),
            }
        }
    }
    Ok(true)
}

/// Reads the runs of a part one by one.
fn read_runs(file: &File, part: &Part, mut to: &mut [u8]) -> Result<()> {
    for run in part.cut.runs() {
        let (row, behind) = to.split_at_mut(run.length as usize);
        read_row(file, run.offset - part.base, row)?;
        to = behind;
    }
    Ok(())
}

/// Reads a row; what is behind the end of the file is zeros.
pub(crate) fn read_row(file: &File, mut at: u64, mut to: &mut [u8]) -> Result<()> {
    while !to.is_empty() {
        match rustix::io::pread(file, &mut *to, at) {
            Ok(0) => break,
            Ok(count) => {
                to = &mut to[count..];
                at += count as u64;
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(code(error)),
        }
    }
    to.fill(0);
    Ok(())
}

/// Gives a range blocks on the device; the file reaches to its end then at least.
fn allocate(open: &mut Open, from: u64, to: u64) -> Result<()> {
    loop {
        match rustix::fs::fallocate(&open.file, FallocateFlags::empty(), from, to - from) {
            Ok(()) => break,
            Err(Errno::INTR) => {}
            Err(error) => return Err(code(error)),
        }
    }
    open.bytes = open.bytes.max(to);
    Ok(())
}

/// Whether an error only says that this file system has no mappings, or no way to allocate for them.
fn can_do_without(error: Code) -> bool {
    [Errno::OPNOTSUPP, Errno::NOSYS, Errno::NODEV, Errno::INVAL].map(code).contains(&error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_pfs::Layout;
    use std::sync::Arc;

    /// A device, a portion of the only subfile of a file, and what bytes there are of it.
    fn device(view: &str, to: u64) -> (tempfile::TempDir, Subfiles, Portion) {
        let directory = tempfile::tempdir().unwrap();
        let subfiles = Subfiles::at(&directory.path().join("data"), 1).unwrap();
        let view = Arc::new(view.parse::<Nest>().unwrap());
        let layout = Layout::striped(256 << 10, 1, 0).unwrap();
        let portion = Portion { view, division: layout.into(), subfile: 0, from: 3, to };
        (directory, subfiles, portion)
    }

    const SUBFILE: Subfile = Subfile { inode: Inode(0x1234), index: 0 };

    fn read(subfiles: &mut Subfiles, portion: &Portion) -> Vec<u8> {
        let mut to = vec![1; portion.bytes() as usize];
        subfiles.read(SUBFILE, portion, &mut to).unwrap();
        to
    }

    /// Writes a portion over a background, and holds file and portion against a reference.
    fn check(view: &str, to: u64, maps: bool) {
        let (directory, mut subfiles, portion) = device(view, to);
        subfiles.maps = maps;
        let background = vec![7u8; 1000];
        subfiles.write_row(SUBFILE, 0, &background).unwrap();
        let bytes: Vec<u8> = (0..portion.bytes()).map(|y| (y * 31 % 251) as u8).collect();
        subfiles.write(SUBFILE, &portion, &bytes).unwrap();

        let mut want = background;
        for (y, &byte) in (portion.from..).zip(&bytes) {
            let x = portion.view.at(y).unwrap() as usize;
            want.resize(want.len().max(x + 1), 0);
            want[x] = byte;
        }
        let path = directory.path().join("data/34/0000000000001234");
        assert!(std::fs::read(path).unwrap() == want, "{view}");
        assert_eq!(subfiles.measure(SUBFILE), Ok(want.len() as u64));
        assert!(read(&mut subfiles, &portion) == bytes, "{view}");
    }

    #[test]
    fn rows_scattered_bytes_and_distant_ones_are_written_and_read() {
        for maps in [true, false] {
            check("1 every 1", 1 << 20, maps);
            check("1 every 1 from 4100000", 1 << 20, maps);
            check("8 every 32 from 5", 1 << 20, maps);
            check("3 every 100000 from 17", 300, maps);
            check("[0: 4, 10: 2 x3/4, 60: 33] every 101 from 3", 1 << 20, maps);
        }
    }

    #[test]
    fn a_file_is_as_long_as_its_last_byte_and_shrinks_under_its_mappings() {
        let (_directory, mut subfiles, portion) = device("8 every 32", 803);
        let bytes = vec![9; portion.bytes() as usize];
        subfiles.write(SUBFILE, &portion, &bytes).unwrap();
        assert_eq!(subfiles.measure(SUBFILE), Ok(3203));
        subfiles.resize(SUBFILE, 4000, false).unwrap();
        assert_eq!(subfiles.measure(SUBFILE), Ok(3203));
        subfiles.resize(SUBFILE, 100, false).unwrap();
        assert_eq!(subfiles.measure(SUBFILE), Ok(100));
        subfiles.write(SUBFILE, &portion, &bytes).unwrap();
        subfiles.resize(SUBFILE, 5000, true).unwrap();
        assert_eq!((read(&mut subfiles, &portion), subfiles.measure(SUBFILE)), (bytes, Ok(5000)));
    }

    #[test]
    fn ranges_with_blocks_merge_and_never_claim_what_was_not_added() {
        let mut allocated = Allocated::default();
        let mut added = [false; 400];
        for step in 0..300u64 {
            let from = step * 37 % 390;
            let to = from + 1 + step % 9;
            allocated.add(from, to);
            added[from as usize..to as usize].fill(true);
            assert!(allocated.holds(from, to) && allocated.0.len() <= RANGES_MAX);
            for &(low, high) in &allocated.0 {
                assert!(added[low as usize..high as usize].iter().all(|&it| it));
            }
        }
        allocated.add(0, 400);
        assert_eq!(allocated.0, [(0, 400)]);
    }

    #[test]
    fn a_file_goes_with_all_its_subfiles_and_no_other() {
        let (directory, mut subfiles, _) = device("1 every 1", 4);
        let others = [Subfile { inode: Inode(0x12), index: 3 }, Subfile { index: 5, ..SUBFILE }];
        for subfile in others.into_iter().chain([SUBFILE]) {
            subfiles.write_row(subfile, 0, b"x").unwrap();
        }
        subfiles.forget(SUBFILE.inode);
        remove(subfiles.directory().unwrap(), SUBFILE.inode, None).unwrap();
        let left = |folder| {
            let entries = std::fs::read_dir(directory.path().join("data").join(folder)).unwrap();
            entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!((left("34").len(), left("12")), (0, vec!["0000000000000012.3".to_owned()]));
        assert_eq!(subfiles.measure(SUBFILE), Ok(0));
        remove(subfiles.directory().unwrap(), Inode(0x99), None).unwrap();
    }
}
