//! Reading, writing and what else is done with an open file's bytes.

use crate::files::OpenFile;
use crate::open::{Hosted, strip_privileges, system};
use crate::rules;
use crate::staged::{Memory, seek};
use crate::tree::Answer;
use fuser::WriteFlags;
use iolab_policy::insitu::{At, Call, Whence};
use iolab_trace::Function;
use rustix::fd::AsFd;
use rustix::fs::{FallocateFlags, OFlags};
use rustix::io::{self, Errno};

impl Hosted {
    /// Fills `memory` as far as the file goes.
    pub(crate) fn read(&self, number: u64, offset: u64, memory: &mut [u8]) -> Answer<usize> {
        let file = self.files.get(number)?;
        let call = Call::Read { at: At::Offset(offset), length: memory.len() as u64 };
        match staged(&file, call, Memory::Read(memory)) {
            Some(moved) => moved.map(|moved| moved as usize),
            None => io::retry_on_intr(|| io::pread(&file.fd, &mut *memory, offset)),
        }
    }

    /// Writes at an offset, or to the end of the file where the description says so now.
    pub(crate) fn write(
        &self,
        number: u64,
        offset: u64,
        bytes: &[u8],
        (how, flags): (WriteFlags, i32),
    ) -> Answer<usize> {
        let file = self.files.get(number)?;
        if how.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID) {
            strip_privileges(&file.inode);
        }
        let is_mapped = how.contains(WriteFlags::FUSE_WRITE_CACHE);
        let appends = file.access.append
            && !is_mapped
            && OFlags::from_bits_retain(flags as u32).contains(OFlags::APPEND);
        let at = if appends { At::Position } else { At::Offset(offset) };
        let call = Call::Write { at, length: bytes.len() as u64 };
        if let Some(members) = &self.members {
            let length = bytes.len() as u64;
            let moved = members.write(self, &file.inode, (offset, length, appends), || {
                let anew = file.access.append && !appends;
                let opened = anew.then(|| file.inode.open(OFlags::WRONLY)).transpose()?;
                let fd = opened.as_ref().map_or(file.fd.as_fd(), |fd| fd.as_fd());
                io::retry_on_intr(|| io::pwrite(fd, bytes, offset))
            });
            if let Some(moved) = moved? {
                return Ok(moved);
            }
        }
        // Below, a description opened to append does nothing else.
        if file.access.append && !appends {
            return self.write_anew(&file, call, offset, bytes);
        }
        match staged(&file, call, Memory::Written(bytes)) {
            Some(moved) => moved.map(|moved| moved as usize),
            None => io::retry_on_intr(|| io::pwrite(&file.fd, bytes, offset)),
        }
    }

    fn write_anew(&self, file: &OpenFile, call: Call, offset: u64, bytes: &[u8]) -> Answer<usize> {
        if let Some(staged) = file.inode.opened().staged() {
            let moved = staged.visit(call, Memory::Written(bytes));
            return moved.map(|moved| moved as usize).map_err(system);
        }
        let fd = file.inode.open(OFlags::WRONLY)?;
        io::retry_on_intr(|| io::pwrite(&fd, bytes, offset))
    }

    /// Makes a file durable.
    pub(crate) fn sync(&self, number: u64, data_only: bool) -> Answer<()> {
        let file = self.files.get(number)?;
        if let Some(members) = &self.members
            && file.inode.member.as_ref().is_some_and(|member| !member.is_real())
        {
            return members.sync(self);
        }
        match staged(&file, Call::Sync { data_only }, Memory::Nothing) {
            Some(outcome) => outcome.map(|_| ()),
            None => io::retry_on_intr(|| match data_only {
                true => rustix::fs::fdatasync(&file.fd),
                false => rustix::fs::fsync(&file.fd),
            }),
        }
    }

    /// Reserves or gives back space.
    pub(crate) fn allocate(&self, number: u64, mode: i32, offset: u64, length: u64) -> Answer<()> {
        let file = self.files.get(number)?;
        // Memory knows less of it than files do.
        self.materialise(&file.inode)?;
        match staged(&file, Call::Allocate { mode, offset, length }, Memory::Nothing) {
            Some(outcome) => outcome.map(|_| ()),
            None => {
                let mode = FallocateFlags::from_bits_retain(mode as u32);
                io::retry_on_intr(|| rustix::fs::fallocate(&file.fd, mode, offset, length))
            }
        }
    }

    /// Looks for data or a hole; the kernel keeps positions itself.
    pub(crate) fn seek(&self, number: u64, offset: i64, whence: i32) -> Answer<i64> {
        let file = self.files.get(number)?;
        let whence = Whence::from_number(i64::from(whence));
        let found = match staged(&file, Call::Seek { offset, whence }, Memory::Nothing) {
            Some(outcome) => outcome?,
            None => seek(&file.fd, offset, whence).map_err(system)?,
        };
        Ok(found as i64)
    }

    /// Sets a file's size, by a description of it where there is one.
    pub(crate) fn truncate(&self, inode: u64, number: Option<u64>, length: u64) -> Answer<()> {
        let inode = self.tree.get(inode)?;
        let file = number.map(|number| self.files.get(number)).transpose()?;
        let call = Call::Truncate { length };
        if let Some(file) = file.filter(|file| file.access.write) {
            return match staged(&file, call, Memory::Nothing) {
                Some(outcome) => outcome.map(|_| ()),
                None => io::retry_on_intr(|| rustix::fs::ftruncate(&file.fd, length)),
            };
        }
        rules::before(Function::TRUNCATE, Some(&inode), None);
        if let Some(staged) = inode.opened().staged() {
            return staged.visit(call, Memory::Nothing).map(|_| ()).map_err(system);
        }
        let fd = inode.open(OFlags::WRONLY)?;
        io::retry_on_intr(|| rustix::fs::ftruncate(fd.as_fd(), length))
    }

    /// Copies within the source. Into a file under strategies the kernel copies by reads and writes,
    /// so that the stack hears them.
    pub(crate) fn copy(
        &self,
        (from, offset_in): (u64, u64),
        (to, offset_out): (u64, u64),
        length: u64,
    ) -> Answer<usize> {
        let (from, to) = (self.files.get(from)?, self.files.get(to)?);
        let is_kept = [&from, &to].iter().any(|file| file.inode.member.is_some());
        if to.handle.is_some() || to.access.append || is_kept {
            return Err(Errno::OPNOTSUPP);
        }
        rules::before(Function::COPY_FILE_RANGE, Some(&from.inode), Some(&to.inode));
        let (mut source, mut target) = (offset_in, offset_out);
        let length = usize::try_from(length).unwrap_or(usize::MAX).min(1 << 30);
        io::retry_on_intr(|| {
            rustix::fs::copy_file_range(
                &from.fd,
                Some(&mut source),
                &to.fd,
                Some(&mut target),
                length,
            )
        })
    }
}

/// The answer of the file's stack, if it has one.
fn staged(file: &OpenFile, call: Call, memory: Memory<'_>) -> Option<Answer<u64>> {
    let handle = file.handle?;
    let mut opened = file.inode.opened();
    let staged = opened.staged()?;
    let outcome = staged.call(handle, call, memory).map_err(system);
    staged.queue(&file.inode);
    Some(outcome)
}
