//! The driver of a file's stack in a mount: what comes out at the bottom is carried out on the file
//! below. One stack for all processes that have the file open.
//!
//! Every descriptor that is closed asks to hear how its bytes fared (`FLUSH`), and nobody says whether
//! it was the description's last. So each is a `Close` to the stack, and a description that is used
//! after all is opened anew before its next call.
//!
//! What a stack would have done while no call waits for it ([`Staged::begin`]) a thread does that locks the
//! file to take it, and again when it is done; a call that has to wait for it does so with the file locked,
//! which that thread needs not meanwhile.
//!
//! Where a stack hands over in its midst, what follows is a stack of its own below it, with a lock of its own: the
//! thread drives that one while calls go on above.
//!
//! A stack that breaks down writes out what it held and is gone: the calls pass from then on.

use crate::writers::Queue;
use iolab_host::eprintln;
use iolab_policy::insitu::{
    Access, At, Call, Driver, Errno, Handle, HeldPiece, Outcome, Slot, Stack, Totals, Whence, rules,
};
use iolab_vocab::Nanos;
use rustix::fd::OwnedFd;
use rustix::fs::{Advice, FallocateFlags, OFlags, SeekFrom};
use rustix::io;
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

mod below;
mod work;

pub(crate) use below::Below;
pub(crate) use work::{Turn, UnderWay};

const EBADF: Errno = Errno(9);
const EIO: Errno = Errno(5);

/// A file under strategies.
pub(crate) struct Staged {
    /// `None` after it broke down.
    stack: Option<Stack>,
    bottom: Bottom,
    next: u32,
    /// What programs call the file, for a message.
    name: String,
    counted: Arc<Mutex<Totals>>,
    /// It waits for its turn among those that have work.
    is_queued: bool,
}

/// What a stack's commands are carried out with.
struct Bottom {
    /// A path that leads to the file, whatever its name is.
    path: String,
    staging: Vec<Vec<u8>>,
    descriptions: BTreeMap<Handle, Description>,
    began: Instant,
    /// Who gives leave to write, where not everybody may.
    writers: Option<Arc<Queue>>,
    /// The work that a thread does.
    work: Option<Arc<UnderWay>>,
    /// What stands between the stack and the file.
    below: Option<Below>,
}

/// A description some process opened.
struct Description {
    fd: Arc<OwnedFd>,
    access: Access,
    /// The stack has it open.
    is_told: bool,
}

/// The memory of a program's call.
pub(crate) enum Memory<'a> {
    /// To be filled.
    Read(&'a mut [u8]),
    /// To be written.
    Written(&'a [u8]),
    /// None.
    Nothing,
}

impl Staged {
    /// A file that nobody has open yet; `path` leads to it, programs call it `name`. What strategies count
    /// is added to `counted` when it is over. `writers` write what it is handed, where it hands anything over.
    pub(crate) fn new(
        stack: Stack,
        path: String,
        name: String,
        counted: Arc<Mutex<Totals>>,
        writers: Option<Arc<Queue>>,
    ) -> Staged {
        let staging = stack.staging_bytes().map(|bytes| vec![0; bytes as usize]).collect();
        let descriptions = BTreeMap::new();
        let began = Instant::now();
        let (work, below) = (None, None);
        let bottom = Bottom { path, staging, descriptions, began, writers, work, below };
        Staged { stack: Some(stack), bottom, next: 0, name, counted, is_queued: false }
    }

    /// A description exists from now on.
    pub(crate) fn open(&mut self, fd: Arc<OwnedFd>, access: Access) -> Handle {
        let handle = Handle(self.next);
        self.next += 1;
        self.adopt(handle, fd, access);
        // A failure of strategies to open shows at the call that needs it.
        let _ = self.tell(handle);
        handle
    }

    fn adopt(&mut self, handle: Handle, fd: Arc<OwnedFd>, access: Access) {
        if let Some(below) = &self.bottom.below {
            below.lock().adopt(handle, fd.clone(), access);
        }
        self.bottom.descriptions.insert(handle, Description { fd, access, is_told: false });
    }

    /// A call of a program.
    pub(crate) fn call(&mut self, handle: Handle, call: Call, memory: Memory<'_>) -> Outcome {
        self.tell(handle)?;
        if call.offset().is_some_and(rules::is_far) && self.stack.is_some() {
            self.leave()?;
        }
        let description = self.bottom.descriptions.get(&handle).ok_or(EBADF)?;
        if description.access.synchronous && call.transfer_bytes() > 0 {
            // Strategies let such calls pass, below what they hold.
            self.flush();
        }
        self.drive(handle, call, memory)
    }

    /// A call on the file by nobody's description: by its name, or by the kernel's page cache.
    pub(crate) fn visit(&mut self, call: Call, memory: Memory<'_>) -> Outcome {
        let open = |flags| {
            rustix::fs::open(&self.bottom.path, flags | OFlags::CLOEXEC, rustix::fs::Mode::empty())
        };
        let fd = open(OFlags::RDWR).or_else(|_| open(OFlags::WRONLY)).map_err(errno)?;
        let access = Access { read: true, write: true, ..Access::default() };
        let handle = self.open(Arc::new(fd), access);
        let outcome = self.call(handle, call, memory);
        let closed = self.release(handle);
        outcome.and_then(|value| closed.map(|_| value))
    }

    /// What is held goes out; a failure waits for the next call that tells of one.
    pub(crate) fn flush(&mut self) {
        if self.stack.as_ref().is_some_and(|stack| stack.held_bytes() > 0)
            && let Some(handle) = self.any_told()
        {
            let _ = self.drive(handle, Call::Flush, Memory::Nothing);
        }
        if let Some(below) = &self.bottom.below {
            below.lock().flush();
        }
    }

    /// A descriptor of the description was closed.
    pub(crate) fn close(&mut self, handle: Handle) -> Outcome {
        let description = self.bottom.descriptions.get_mut(&handle).ok_or(EBADF)?;
        match std::mem::take(&mut description.is_told) {
            true => self.drive(handle, Call::Close, Memory::Nothing),
            false => Ok(0),
        }
    }

    /// The last one was.
    pub(crate) fn release(&mut self, handle: Handle) -> Outcome {
        let outcome = self.close(handle);
        self.bottom.descriptions.remove(&handle);
        match &self.bottom.below {
            Some(below) => outcome.and(below.lock().release(handle)),
            None => outcome,
        }
    }

    /// What is held goes out, and all calls pass from now on.
    pub(crate) fn retire(&mut self) {
        if let Err(Errno(number)) = self.leave() {
            let why = io::Errno::from_raw_os_error(number);
            eprintln!("iolab: warning: {}: could not be written out: {why}", self.name);
        }
    }

    /// The same, for somebody who tells of a failure.
    fn leave(&mut self) -> Result<(), Errno> {
        let told: Vec<Handle> = self.told().collect();
        let closed = told.into_iter().map(|handle| self.close(handle).map(drop));
        let outcome = closed.fold(Ok(()), Result::and);
        self.end();
        outcome
    }

    fn end(&mut self) {
        if let Some(below) = &self.bottom.below {
            below.lock().retire();
        }
        if let Some(stack) = self.stack.take() {
            let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
            counted.take(&stack, &self.name);
        }
    }

    fn told(&self) -> impl Iterator<Item = Handle> + '_ {
        let descriptions = self.bottom.descriptions.iter();
        descriptions.filter(|(_, it)| it.is_told).map(|(&handle, _)| handle)
    }

    fn any_told(&self) -> Option<Handle> {
        self.told().next()
    }

    /// Has the stack open a description it does not know, or not any more.
    fn tell(&mut self, handle: Handle) -> Result<(), Errno> {
        let description = self.bottom.descriptions.get_mut(&handle).ok_or(EBADF)?;
        if description.is_told {
            return Ok(());
        }
        if let Some(below) = &self.bottom.below {
            below.lock().flush();
        }
        let size = rustix::fs::fstat(&description.fd).map_err(errno)?.st_size;
        description.is_told = true;
        let (access, file_bytes) = (description.access, size as u64);
        self.drive(handle, Call::Open { access, file_bytes, position: 0 }, Memory::Nothing)?;
        Ok(())
    }

    fn drive(&mut self, handle: Handle, call: Call, memory: Memory<'_>) -> Outcome {
        let mut passage = Passage { bottom: &mut self.bottom, memory };
        let Some(stack) = &mut self.stack else {
            return passage.perform(handle, call, Slot::Program(0));
        };
        match catch_unwind(AssertUnwindSafe(|| stack.drive(handle, call, &mut passage))) {
            Ok(outcome) => outcome,
            Err(_) => {
                self.break_down();
                Err(EIO)
            }
        }
    }

    /// A strategy has left its own rules. What it held goes out as it says, lower stages first.
    fn break_down(&mut self) {
        let Some(stack) = self.stack.take() else { return };
        if let Some(work) = self.bottom.work.take() {
            // It writes the same bytes, and must not come after others.
            let _ = work.outcome();
        }
        if let Some(below) = &self.bottom.below {
            below.lock().retire();
        }
        let bottom = &self.bottom;
        let written = catch_unwind(AssertUnwindSafe(|| write_out(&stack, bottom)));
        let fate = match written {
            Ok(Ok(())) => "what they held is written out, and".to_owned(),
            Ok(Err(why)) => format!("what they held is lost ({why});"),
            Err(_) => "what they held is lost;".to_owned(),
        };
        eprintln!("iolab: a defect of the strategies of {}: {fate} its calls pass", self.name);
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        self.end();
    }
}

fn write_out(stack: &Stack, bottom: &Bottom) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let mut fd = None;
    for (stage, staging) in bottom.staging.iter().enumerate().rev() {
        let mut pieces: Vec<HeldPiece> = Vec::new();
        stack.held_pieces(stage, &mut |piece| pieces.push(piece));
        for HeldPiece { extent, at } in pieces {
            if fd.is_none() {
                fd = Some(rustix::fs::open(&bottom.path, flags, rustix::fs::Mode::empty())?);
            }
            let Some(fd) = &fd else { continue };
            let mut bytes =
                staging.get(at as usize..(at + extent.length) as usize).ok_or(io::Errno::FAULT)?;
            let mut offset = extent.offset;
            while !bytes.is_empty() {
                let moved = rustix::io::retry_on_intr(|| io::pwrite(fd, bytes, offset))?;
                bytes = &bytes[moved..];
                offset += moved as u64;
            }
        }
    }
    Ok(())
}

/// A call on its way.
struct Passage<'a> {
    bottom: &'a mut Bottom,
    memory: Memory<'a>,
}

impl Passage<'_> {
    fn room(&mut self, slot: Slot, length: u64) -> Result<&mut [u8], Errno> {
        let (memory, start): (&mut [u8], u64) = match (slot, &mut self.memory) {
            (Slot::Program(byte), Memory::Read(bytes)) => (bytes, byte),
            (Slot::Staging { stage, offset }, _) => {
                (self.bottom.staging.get_mut(stage as usize).ok_or(EIO)?, offset)
            }
            _ => (&mut [], 0),
        };
        memory.get_mut(start as usize..(start + length) as usize).ok_or(EIO)
    }

    fn bytes(&self, slot: Slot, length: u64) -> Result<&[u8], Errno> {
        let (memory, start): (&[u8], u64) = match (slot, &self.memory) {
            (Slot::Program(byte), Memory::Written(bytes)) => (bytes, byte),
            (Slot::Program(byte), Memory::Read(bytes)) => (bytes, byte),
            (Slot::Staging { stage, offset }, _) => {
                (self.bottom.staging.get(stage as usize).ok_or(EIO)?, offset)
            }
            _ => (&[], 0),
        };
        memory.get(start as usize..(start + length) as usize).ok_or(EIO)
    }

    fn carry_out(&mut self, fd: &OwnedFd, call: Call, slot: Slot) -> Outcome {
        let retried = |outcome: io::Result<usize>| outcome.map(|n| n as u64).map_err(errno);
        match call {
            Call::Read { at, length } => {
                let room = self.room(slot, length)?;
                retried(io::retry_on_intr(|| match at {
                    At::Position => io::read(fd, &mut *room),
                    At::Offset(offset) => io::pread(fd, &mut *room, offset),
                }))
            }
            Call::Write { at, length } => {
                let bytes = self.bytes(slot, length)?;
                let _permit = self.bottom.writers.as_ref().map(|writers| writers.permit());
                retried(io::retry_on_intr(|| match at {
                    At::Position => io::write(fd, bytes),
                    At::Offset(offset) => io::pwrite(fd, bytes, offset),
                }))
            }
            Call::Seek { offset, whence } => seek(fd, offset, whence),
            Call::Sync { data_only } => {
                let sync =
                    |fd| if data_only { rustix::fs::fdatasync(fd) } else { rustix::fs::fsync(fd) };
                io::retry_on_intr(|| sync(fd)).map(|()| 0).map_err(errno)
            }
            Call::Truncate { length } => {
                io::retry_on_intr(|| rustix::fs::ftruncate(fd, length)).map(|()| 0).map_err(errno)
            }
            Call::Allocate { mode, offset, length } => {
                let mode = FallocateFlags::from_bits_retain(mode as u32);
                io::retry_on_intr(|| rustix::fs::fallocate(fd, mode, offset, length))
                    .map(|()| 0)
                    .map_err(errno)
            }
            Call::Advise { offset, length } => {
                let length = NonZeroU64::new(length);
                rustix::fs::fadvise(fd, offset, length, Advice::WillNeed).map(|()| 0).map_err(errno)
            }
            Call::Open { .. } | Call::Flush | Call::Settle | Call::Close => Ok(0),
        }
    }
}

/// Moves the position of a descriptor, or looks for data and holes.
pub(crate) fn seek(fd: &OwnedFd, offset: i64, whence: Whence) -> Outcome {
    const EINVAL: Errno = Errno(22);
    const ENXIO: Errno = Errno(6);
    let sparse = |place: fn(u64) -> SeekFrom| u64::try_from(offset).map(place).map_err(|_| ENXIO);
    let to = match whence {
        Whence::Start => SeekFrom::Start(u64::try_from(offset).map_err(|_| EINVAL)?),
        Whence::Current => SeekFrom::Current(offset),
        Whence::End => SeekFrom::End(offset),
        Whence::Sparse(3) => sparse(SeekFrom::Data)?,
        Whence::Sparse(4) => sparse(SeekFrom::Hole)?,
        Whence::Sparse(_) => return Err(EINVAL),
    };
    rustix::fs::seek(fd, to).map_err(errno)
}

fn errno(error: io::Errno) -> Errno {
    Errno(error.raw_os_error())
}

impl Driver for Passage<'_> {
    fn now(&mut self) -> Nanos {
        Nanos(self.bottom.began.elapsed().as_nanos() as u64)
    }

    fn copy(&mut self, from: Slot, to: Slot, length: u64) {
        if let (Slot::Staging { stage: one, offset: start }, Slot::Staging { stage: two, offset }) =
            (from, to)
        {
            let (one, two) = (one as usize, two as usize);
            let (start, place, length) = (start as usize, offset as usize, length as usize);
            if one == two {
                return self.bottom.staging[one].copy_within(start..start + length, place);
            }
            let stages = self.bottom.staging.get_disjoint_mut([one, two]);
            let [source, target] = stages.expect("two stages of the stack");
            return target[place..place + length].copy_from_slice(&source[start..start + length]);
        }
        if let Slot::Staging { stage, offset } = to {
            let staging = &mut self.bottom.staging[stage as usize];
            let target = &mut staging[offset as usize..(offset + length) as usize];
            if let (Slot::Program(byte), Memory::Written(bytes)) = (from, &self.memory) {
                target.copy_from_slice(&bytes[byte as usize..(byte + length) as usize]);
            }
        } else if let (Slot::Staging { stage, offset }, Slot::Program(byte)) = (from, to)
            && let Memory::Read(bytes) = &mut self.memory
        {
            let source = &self.bottom.staging[stage as usize];
            bytes[byte as usize..(byte + length) as usize]
                .copy_from_slice(&source[offset as usize..(offset + length) as usize]);
        }
    }

    fn perform(&mut self, handle: Handle, call: Call, memory: Slot) -> Outcome {
        if let Some(below) = self.bottom.below.clone() {
            return self.hand_down(&below, handle, call, memory);
        }
        let fd = self.bottom.descriptions.get(&handle).ok_or(EBADF)?.fd.clone();
        self.carry_out(&fd, call, memory)
    }

    fn work_ended(&mut self) -> Outcome {
        self.bottom.work.take().map_or(Err(EIO), |work| work.outcome())
    }

    fn wait_until(&mut self, time: Nanos) {
        let left = time.since(self.now());
        std::thread::sleep(Duration::from_nanos(left.0));
    }
}

#[cfg(test)]
mod tests;
