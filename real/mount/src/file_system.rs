//! The kernel's requests, each handed to what answers it.
//!
//! A handler that panics answers EIO, and the mount goes on: an event loop of the session must not end.

use crate::answers::{NO_TTL, guarded, shown, tell, tell_attributes, tell_entry, tell_extended};
use crate::attributes::kind;
use crate::metadata::Changes;
use crate::names::New;
use crate::open::{Grant, Hosted};
use crate::telling::{Place, Row};
use fuser::{
    AccessFlags, BsdFileFlags, CopyFileRangeFlags, FileHandle, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate,
    ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen,
    ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use iolab_trace::Function;
use rustix::fs::AtFlags;
use std::cell::RefCell;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// What the mount serves, and what asks for it.
pub(crate) struct Requests(pub(crate) Arc<Hosted>);

/// What is asked of the kernel where it can do it.
const WANTED: [InitFlags; 9] = [
    InitFlags::FUSE_ATOMIC_O_TRUNC,
    InitFlags::FUSE_AUTO_INVAL_DATA,
    InitFlags::FUSE_DO_READDIRPLUS,
    InitFlags::FUSE_READDIRPLUS_AUTO,
    InitFlags::FUSE_PARALLEL_DIROPS,
    InitFlags::FUSE_ASYNC_DIO,
    InitFlags::FUSE_DONT_MASK,
    InitFlags::FUSE_HANDLE_KILLPRIV_V2,
    InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP,
];

thread_local! {
    /// Where reads of this thread are gathered.
    static READ: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Requests {
    /// A call on a name in a directory.
    fn named(&self, function: Function, parent: INodeNo, name: &OsStr) -> Row {
        Row::of(function, Place::Name(self.0.name_in(parent.0, name)))
    }
}

/// How a change of attributes is told: the size by itself, else by what comes first.
fn changed<'a>(
    changes: &Changes,
    (inode, thread): (u64, u32),
    file: Option<u64>,
    hosted: &'a Hosted,
) -> impl FnOnce() -> Row + use<'a> {
    let (function, by_name) = changes.functions();
    let length = changes.size.map_or(-1, |size| i64::try_from(size).unwrap_or(i64::MAX));
    move || {
        let row = match file {
            Some(file) => Row::of(function, Place::Open(file)),
            None => Row::of(by_name, Place::Name(hosted.name_of(inode, thread))),
        };
        Row { length, ..row }
    }
}

impl Filesystem for Requests {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        for wanted in WANTED {
            let _ = config.add_capabilities(wanted);
        }
        // Access lists only count where the kernel checks permissions.
        if self.0.own.is_none() {
            let _ = config.add_capabilities(InitFlags::FUSE_POSIX_ACL);
        }
        let _ = config.set_max_background(64);
        // Sources that lie on another file system's own (overlayfs in containers) are passed through
        // as well; this mount itself can then not be one of overlayfs's layers.
        let can_pass = config.add_capabilities(InitFlags::FUSE_PASSTHROUGH).is_ok();
        if can_pass && config.set_max_stack_depth(2).is_ok() {
            self.0.allow_pass_through();
        }
        Ok(())
    }

    fn destroy(&mut self) {
        let _ = guarded(|| Ok(self.0.end()));
    }

    fn lookup(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        tell_entry(&self.0, guarded(|| self.0.lookup(parent.0, name, request.pid())), reply);
    }

    fn forget(&self, _request: &Request, inode: INodeNo, times: u64) {
        self.0.forget(inode.0, times);
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        tell_attributes(&self.0, guarded(|| self.0.attributes(inode.0)), reply);
    }

    fn setattr(
        &self,
        request: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        owner: Option<u32>,
        group: Option<u32>,
        size: Option<u64>,
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _changed: Option<SystemTime>,
        file: Option<FileHandle>,
        _created: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let changes = Changes { mode, owner, group, size, accessed, modified };
        let file = file.map(|file| file.0);
        let row = changed(&changes, (inode.0, request.pid()), file, &self.0);
        let work = || self.0.change(request, inode.0, file, changes);
        let answer = guarded(|| {
            let stat = self.0.told(request, row, work)?;
            Ok((self.0.tree.get(inode.0)?, stat))
        });
        tell_attributes(&self.0, answer, reply);
    }

    fn readlink(&self, _request: &Request, inode: INodeNo, reply: ReplyData) {
        match guarded(|| self.0.read_link(inode.0)) {
            Ok(target) => reply.data(&target),
            Err(error) => reply.error(error),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        mask: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        let new = New::Node(device);
        let made = guarded(|| self.0.make(request, (parent.0, name), (mode, mask), new));
        tell_entry(&self.0, made, reply);
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        mask: u32,
        reply: ReplyEntry,
    ) {
        let make = || self.0.make(request, (parent.0, name), (mode, mask), New::Directory);
        let row = || self.named(Function::MKDIR, parent, name);
        tell_entry(&self.0, guarded(|| self.0.told(request, row, make)), reply);
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let make = || self.0.make(request, (parent.0, name), (0, 0), New::Link(target));
        let row = || {
            // What a relative link leads to counts from the directory that the link is in.
            let to = match target.is_absolute() {
                true => target.to_str().map(str::to_owned),
                false => self.0.name_in(parent.0, target.as_os_str()),
            };
            Row::of(Function::SYMLINK, Place::Names(to, self.0.name_in(parent.0, name)))
        };
        tell_entry(&self.0, guarded(|| self.0.told(request, row, make)), reply);
    }

    fn unlink(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let remove = || self.0.remove(parent.0, name, AtFlags::empty());
        let row = || self.named(Function::UNLINK, parent, name);
        tell(guarded(|| self.0.told(request, row, remove)), reply);
    }

    fn rmdir(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let remove = || self.0.remove(parent.0, name, AtFlags::REMOVEDIR);
        let row = || self.named(Function::RMDIR, parent, name);
        tell(guarded(|| self.0.told(request, row, remove)), reply);
    }

    fn rename(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let (from, to) = ((parent.0, name), (new_parent.0, new_name));
        let row = || {
            let names = (self.0.name_in(from.0, from.1), self.0.name_in(to.0, to.1));
            let function = Function::RENAME.renaming(flags.bits());
            Row::of(function, Place::Names(names.0, names.1))
        };
        let rename = || self.0.rename(from, to, flags.bits());
        tell(guarded(|| self.0.told(request, row, rename)), reply);
    }

    fn link(
        &self,
        request: &Request,
        inode: INodeNo,
        parent: INodeNo,
        name: &OsStr,
        reply: ReplyEntry,
    ) {
        let row = || {
            let names = (self.0.name_of(inode.0, request.pid()), self.0.name_in(parent.0, name));
            Row::of(Function::LINK, Place::Names(names.0, names.1))
        };
        let link = || self.0.link(request, inode.0, (parent.0, name));
        tell_entry(&self.0, guarded(|| self.0.told(request, row, link)), reply);
    }

    fn open(&self, request: &Request, inode: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let open = || self.0.open(request, inode.0, flags.0, &|fd| reply.open_backing(fd));
        let row = || {
            let place = Place::Opened(self.0.name_of(inode.0, request.pid()));
            Row { argument: flags.0.into(), ..Row::of(Function::OPEN, place) }
        };
        match guarded(|| self.0.told(request, row, open)) {
            Ok(Grant { number, flags, backing: Some(backing) }) => {
                reply.opened_passthrough(FileHandle(number), flags, &backing);
            }
            Ok(Grant { number, flags, backing: None }) => reply.opened(FileHandle(number), flags),
            Err(error) => reply.error(error),
        }
    }

    fn access(&self, _request: &Request, inode: INodeNo, mask: AccessFlags, reply: ReplyEmpty) {
        tell(guarded(|| self.0.access(inode.0, mask.bits() as u32)), reply);
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        mask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let created = guarded(|| {
            let register = |fd: rustix::fd::BorrowedFd<'_>| reply.open_backing(fd);
            let create =
                || self.0.create(request, (parent.0, name), (mode, mask), flags, &register);
            let row = || {
                let place = Place::Opened(self.0.name_in(parent.0, name));
                Row { argument: flags.into(), ..Row::of(Function::OPEN, place) }
            };
            self.0.told(request, row, create)
        });
        match created {
            Ok((inode, stat, Grant { number, flags, backing })) => {
                let (attributes, file) = (shown(&self.0, &stat, inode.number), FileHandle(number));
                let generation = Generation(0);
                match backing {
                    Some(backing) => reply.created_passthrough(
                        &NO_TTL,
                        &attributes,
                        generation,
                        file,
                        flags - FopenFlags::FOPEN_PASSTHROUGH,
                        &backing,
                    ),
                    None => reply.created(&NO_TTL, &attributes, generation, file, flags),
                }
            }
            Err(error) => reply.error(error),
        }
    }

    fn read(
        &self,
        request: &Request,
        _inode: INodeNo,
        file: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        READ.with_borrow_mut(|memory| {
            let size = size as usize;
            if memory.len() < size {
                memory.resize(size, 0);
            }
            let row = || Row::stretch(Function::PREAD, file.0, offset, size as u64);
            let read = || self.0.read(file.0, offset, &mut memory[..size]);
            match guarded(|| self.0.told(request, row, read)) {
                Ok(moved) => reply.data(&memory[..moved]),
                Err(error) => reply.error(error),
            }
        });
    }

    fn write(
        &self,
        request: &Request,
        _inode: INodeNo,
        file: FileHandle,
        offset: u64,
        data: &[u8],
        how: WriteFlags,
        flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let row = || Row::stretch(Function::PWRITE, file.0, offset, data.len() as u64);
        let write = || self.0.write(file.0, offset, data, (how, flags.0));
        match guarded(|| self.0.told(request, row, write)) {
            Ok(moved) => reply.written(moved as u32),
            Err(error) => reply.error(error),
        }
    }

    fn flush(
        &self,
        request: &Request,
        _inode: INodeNo,
        file: FileHandle,
        _owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        let row = || Row::of(Function::CLOSE, Place::Open(file.0));
        tell(guarded(|| self.0.told(request, row, || self.0.close(file.0))), reply);
    }

    fn release(
        &self,
        _request: &Request,
        _inode: INodeNo,
        file: FileHandle,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        let released = guarded(|| {
            self.0.release(file.0);
            Ok(())
        });
        tell(released, reply);
    }

    fn fsync(
        &self,
        request: &Request,
        _inode: INodeNo,
        file: FileHandle,
        data_only: bool,
        reply: ReplyEmpty,
    ) {
        let function = if data_only { Function::FDATASYNC } else { Function::FSYNC };
        let row = || Row::of(function, Place::Open(file.0));
        tell(guarded(|| self.0.told(request, row, || self.0.sync(file.0, data_only))), reply);
    }

    fn opendir(&self, request: &Request, inode: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let open = || Ok(self.0.open_directory(inode.0)? as i64);
        let row =
            || Row::of(Function::OPENDIR, Place::Name(self.0.name_of(inode.0, request.pid())));
        match guarded(|| self.0.told(request, row, open)) {
            Ok(number) => reply.opened(FileHandle(number as u64), FopenFlags::empty()),
            Err(error) => reply.error(error),
        }
    }

    fn readdir(
        &self,
        _request: &Request,
        _inode: INodeNo,
        directory: FileHandle,
        from: u64,
        mut reply: ReplyDirectory,
    ) {
        match guarded(|| self.0.lines(directory.0, from)) {
            Ok(lines) => {
                for line in lines {
                    let (inode, kind) = (INodeNo(line.inode), kind(line.kind));
                    if reply.add(inode, line.next, kind, &line.name) {
                        break;
                    }
                }
                reply.ok();
            }
            Err(error) => reply.error(error),
        }
    }

    fn readdirplus(
        &self,
        _request: &Request,
        _inode: INodeNo,
        directory: FileHandle,
        from: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let mut from = from;
        // An empty answer is the end of the directory; lines whose files are gone are not.
        loop {
            let lines = match guarded(|| self.0.lines(directory.0, from)) {
                Ok(lines) => lines,
                Err(error) => return reply.error(error),
            };
            match self.fill(directory.0, &lines, &mut reply) {
                Ok(0) if !lines.is_empty() => from = lines[lines.len() - 1].next,
                Ok(_) => return reply.ok(),
                Err(error) => return reply.error(error),
            }
        }
    }

    fn releasedir(
        &self,
        _request: &Request,
        _inode: INodeNo,
        directory: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.0.directories.remove(directory.0);
        reply.ok();
    }

    fn fsyncdir(
        &self,
        _request: &Request,
        _inode: INodeNo,
        directory: FileHandle,
        data_only: bool,
        reply: ReplyEmpty,
    ) {
        tell(guarded(|| self.0.sync_directory(directory.0, data_only)), reply);
    }

    fn statfs(&self, _request: &Request, inode: INodeNo, reply: ReplyStatfs) {
        match guarded(|| self.0.figures(inode.0)) {
            Ok(it) => reply.statfs(
                it.f_blocks,
                it.f_bfree,
                it.f_bavail,
                it.f_files,
                it.f_ffree,
                it.f_bsize as u32,
                it.f_namemax as u32,
                it.f_frsize as u32,
            ),
            Err(error) => reply.error(error),
        }
    }

    fn setxattr(
        &self,
        _request: &Request,
        inode: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        tell(guarded(|| self.0.extend(inode.0, name, value, flags)), reply);
    }

    fn getxattr(&self, _: &Request, inode: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        tell_extended(guarded(|| self.0.extended(inode.0, name, size as usize)), reply);
    }

    fn listxattr(&self, _request: &Request, inode: INodeNo, size: u32, reply: ReplyXattr) {
        tell_extended(guarded(|| self.0.extended_names(inode.0, size as usize)), reply);
    }

    fn removexattr(&self, _request: &Request, inode: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        tell(guarded(|| self.0.shorten(inode.0, name)), reply);
    }

    fn fallocate(
        &self,
        request: &Request,
        _inode: INodeNo,
        file: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let row = || Row {
            argument: mode.into(),
            ..Row::stretch(Function::FALLOCATE, file.0, offset, length)
        };
        let allocate = || self.0.allocate(file.0, mode, offset, length);
        tell(guarded(|| self.0.told(request, row, allocate)), reply);
    }

    fn lseek(
        &self,
        _request: &Request,
        _inode: INodeNo,
        file: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        match guarded(|| self.0.seek(file.0, offset, whence)) {
            Ok(found) => reply.offset(found),
            Err(error) => reply.error(error),
        }
    }

    fn copy_file_range(
        &self,
        _request: &Request,
        _inode_in: INodeNo,
        file_in: FileHandle,
        offset_in: u64,
        _inode_out: INodeNo,
        file_out: FileHandle,
        offset_out: u64,
        length: u64,
        _flags: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        let (from, to) = ((file_in.0, offset_in), (file_out.0, offset_out));
        match guarded(|| self.0.copy(from, to, length)) {
            Ok(moved) => reply.written(moved as u32),
            Err(error) => reply.error(error),
        }
    }
}
