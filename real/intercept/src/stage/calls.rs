//! The program's calls on a staged descriptor. Results are those of the kernel (`-errno` for a
//! failure); `None` means that the descriptor is not staged and the caller makes the call itself.

use super::joining::{self, Joined};
use super::machine::Machine;
use super::memory::{self, Direction, Memory};
use super::table::{self, Description, File, Staged};
use super::{caution, kernel, life, shared, visit};
use iolab_policy::insitu::{At, Call, Errno, Interest, Outcome, Whence, rules};
use iolab_trace::Function;
use libc::iovec;
use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering::Relaxed;

/// A call of one of the five hot functions on a staged descriptor, by its arguments.
///
/// # Safety
/// As for [`transfer`].
#[inline(always)]
pub(crate) unsafe fn answer(function: Function, a: [usize; 4]) -> Option<isize> {
    let (fd, buffer, length, offset) = (a[0] as c_int, a[1] as *mut c_void, a[2], a[3] as i64);
    // SAFETY: the caller's promise, for every arm.
    unsafe {
        match function {
            Function::WRITE => transfer::<true, false>(fd, buffer, length, 0),
            Function::PWRITE => transfer::<true, true>(fd, buffer, length, offset),
            Function::READ => transfer::<false, false>(fd, buffer, length, 0),
            Function::PREAD => transfer::<false, true>(fd, buffer, length, offset),
            _ => seek(fd, a[1] as i64, a[2] as c_int),
        }
    }
}

/// `write`, `pwrite` (`AT`), `read` and `pread`. A call that nobody hears costs the look at a word.
///
/// # Safety
/// `buffer` may be any address; nobody else may use good memory there meanwhile (writes: change it).
#[inline(always)]
unsafe fn transfer<const OUT: bool, const AT: bool>(
    fd: c_int,
    buffer: *mut c_void,
    length: usize,
    offset: i64,
) -> Option<isize> {
    let kind = const {
        match (OUT, AT) {
            (true, true) => Interest::WRITE_AT,
            (true, false) => Interest::WRITE,
            (false, true) => Interest::READ_AT,
            (false, false) => Interest::READ,
        }
    };
    let Some(description) = table::description(fd) else {
        return foreign(fd, if OUT { Direction::Out } else { Direction::In });
    };
    if description.file().is_some_and(|file| !file.hears(kind)) {
        return None;
    }
    // SAFETY: the caller's promise.
    unsafe { hosted::<OUT, AT>(description, buffer, length, offset) }
}

/// A transfer that strategies hear: by the short way, if it passes or is taken in whole.
///
/// # Safety
/// As for [`transfer`].
#[inline(never)]
unsafe fn hosted<const OUT: bool, const AT: bool>(
    description: &'static Description,
    buffer: *mut c_void,
    length: usize,
    offset: i64,
) -> Option<isize> {
    let staged = description.staged()?;
    let at = place(AT.then_some(offset))?;
    if AT && is_far(offset) {
        return left_to_kernel(staged);
    }
    let segments = [iovec { iov_base: buffer, iov_len: length.min(kernel::TRANSFER_BYTES_MAX) }];
    let memory = Memory::new(&segments);
    let length = segments[0].iov_len;
    let what = match OUT {
        true => Call::Write { at, length: length as u64 },
        false => Call::Read { at, length: length as u64 },
    };
    let file = staged.file;
    if !file.enter() {
        return too_early(staged, what, memory);
    }
    // SAFETY: inside the lock; the reference ends here.
    if let Some(machine) = unsafe { file.machine() } {
        if machine.passes(&what) {
            machine.passed(&what);
            visit::leave(file);
            return None;
        }
        if OUT
            && machine.copies()
            && !caution::is_cautious()
            && memory.is_good(Direction::Out, &mut machine.known)
            && machine.absorb(staged.handle, at, &memory, length)
        {
            visit::leave(file);
            return Some(length as isize);
        }
        if !OUT
            && file.keeps()
            && !shared::must_pass()
            && memory.is_good(Direction::In, &mut machine.known)
            && machine.serve(staged.handle, at, &memory, length)
        {
            visit::leave(file);
            return Some(length as isize);
        }
    }
    finish(staged, what, memory)
}

/// The short way of a call that has come in, where nothing speaks against it.
#[inline]
fn short(staged: Staged, call: &Call, memory: &Memory) -> Option<isize> {
    let is_seen = !staged.file.keeps() || !shared::must_pass();
    if caution::is_cautious() || caution::must_give_up() || !is_seen {
        return None;
    }
    // SAFETY: inside the lock; the reference ends here.
    let machine = unsafe { staged.file.machine() }?;
    let is_ours = !machine.was_trespassed() && machine.descriptor(staged.handle).is_some();
    if is_ours { machine.call_short(staged.handle, call, memory) } else { None }
}

/// `readv`, `writev`, `preadv`, `pwritev`.
///
/// # Safety
/// `vector` and what it points to may be any address.
pub(crate) unsafe fn vector(
    direction: Direction,
    fd: c_int,
    vector: *const iovec,
    count: c_int,
    offset: Option<i64>,
) -> Option<isize> {
    let Some(staged) = table::lookup(fd) else { return foreign(fd, direction) };
    // SAFETY: by this function's contract.
    match unsafe { memory::segments(vector, count) } {
        Ok(segments) => transfer_all(staged, direction, offset, Memory::new(segments)),
        Err(errno) => Some(-errno as isize),
    }
}

/// `lseek`.
#[inline(always)]
pub(super) fn seek(fd: c_int, offset: i64, whence: c_int) -> Option<isize> {
    let Some(description) = table::description(fd) else { return foreign(fd, Direction::In) };
    if description.file().is_some_and(|file| !file.hears(Interest::SEEK)) {
        return None;
    }
    hosted_seek(description, offset, whence)
}

/// A seek that strategies hear. Whether it passes is known by its kind, before anything is made of it.
#[inline(never)]
fn hosted_seek(description: &'static Description, offset: i64, whence: c_int) -> Option<isize> {
    const ANY: Call = Call::Seek { offset: 0, whence: Whence::Start };
    let staged = description.staged()?;
    if is_far(offset) {
        return left_to_kernel(staged);
    }
    let file = staged.file;
    if !file.enter() {
        return too_early(staged, super::machine::seek_call(offset, whence), Memory::NONE);
    }
    // SAFETY: inside the lock; the reference ends here.
    if let Some(machine) = unsafe { file.machine() }.filter(|machine| machine.passes(&ANY)) {
        machine.passed(&ANY);
        visit::leave(file);
        return None;
    }
    finish(staged, super::machine::seek_call(offset, whence), Memory::NONE)
}

/// `fsync` and `fdatasync`.
pub(crate) fn sync(fd: c_int, data_only: bool) -> Option<isize> {
    let Some(staged) = table::lookup(fd) else { return foreign(fd, Direction::In) };
    let what = Call::Sync { data_only };
    match joining::sync(fd, staged, what) {
        Joined::Not => call(staged, what, Memory::NONE),
        Joined::Over(outcome) => Some(number(outcome)),
        Joined::Below => None,
    }
}

/// `ftruncate`.
pub(crate) fn truncate(fd: c_int, length: i64) -> Option<isize> {
    let Some(staged) = table::lookup(fd) else { return foreign(fd, Direction::Out) };
    let length = u64::try_from(length).ok()?;
    call(staged, Call::Truncate { length }, Memory::NONE)
}

/// `fallocate`.
pub(crate) fn allocate(fd: c_int, mode: i32, offset: i64, length: i64) -> Option<isize> {
    let Some(staged) = table::lookup(fd) else { return foreign(fd, Direction::Out) };
    let (offset, length) = (u64::try_from(offset).ok()?, u64::try_from(length).ok()?);
    call(staged, Call::Allocate { mode, offset, length }, Memory::NONE)
}

/// As [`transfer`], for a vector.
fn transfer_all(
    staged: Staged,
    direction: Direction,
    offset: Option<i64>,
    memory: Memory,
) -> Option<isize> {
    let (at, length) = (place(offset)?, memory.length());
    if offset.is_some_and(is_far) {
        return left_to_kernel(staged);
    }
    let what = match direction {
        Direction::In => Call::Read { at, length },
        Direction::Out => Call::Write { at, length },
    };
    call(staged, what, memory)
}

/// Where a transfer goes; the kernel refuses a negative offset.
#[inline]
fn place(offset: Option<i64>) -> Option<At> {
    match offset {
        None => Some(At::Position),
        Some(offset) => u64::try_from(offset).ok().map(At::Offset),
    }
}

/// Whether the file system has to say itself if it has such a place.
#[inline]
fn is_far(offset: i64) -> bool {
    rules::is_far(offset.unsigned_abs())
}

/// What is held goes out, and the kernel answers this call and all that follow on the file.
#[cold]
#[inline(never)]
fn left_to_kernel(staged: Staged) -> Option<isize> {
    life::release(staged.file);
    None
}

/// A descriptor that is not staged may still lead to a staged file: what is held is written out
/// before it is read, and the file is released before it is written.
#[inline]
pub(super) fn foreign(fd: c_int, direction: Direction) -> Option<isize> {
    if let Some(file) = table::foreign(fd) {
        match direction {
            Direction::In => life::flush(file),
            Direction::Out => life::release(file),
        }
    }
    None
}

/// A call of the program on a staged file, from the lock to the unlock. One that changes nothing in
/// any strategy is left to the caller, outside the lock.
pub(super) fn call(staged: Staged, call: Call, memory: Memory) -> Option<isize> {
    let file = staged.file;
    if !file.hears(Interest::of(&call)) {
        return None;
    }
    if !file.enter() {
        return too_early(staged, call, memory);
    }
    // SAFETY: inside the lock; the reference ends here.
    if let Some(machine) = unsafe { file.machine() }.filter(|machine| machine.passes(&call)) {
        machine.passed(&call);
        visit::leave(file);
        return None;
    }
    finish(staged, call, memory)
}

/// The rest of a call without memory that has come in; `None` when it is left to the caller.
pub(super) fn finish_alone(staged: Staged, call: Call) -> Option<Outcome> {
    let result = finish(staged, call, Memory::NONE)?;
    Some(u64::try_from(result).map_err(|_| Errno(-result as i32)))
}

/// The rest of a call that has come in.
fn finish(staged: Staged, call: Call, memory: Memory) -> Option<isize> {
    let result = short(staged, &call, &memory).or_else(|| inside(staged, call, memory));
    visit::leave(staged.file);
    result.or_else(|| report_failure(staged.file, call))
}

/// As `call`, with the lock held; `None` when the file is released.
fn inside(staged: Staged, call: Call, memory: Memory) -> Option<isize> {
    let file = staged.file;
    let is_seen = !file.keeps() || !shared::must_pass();
    if caution::must_give_up() || visit::was_trespassed(file) || !is_seen {
        visit::release_inside(file);
    }
    // SAFETY: inside the lock; the reference is not used after a release.
    let machine = unsafe { file.machine() }?;
    machine.descriptor(staged.handle)?;
    if let Some(direction) = direction_of(call)
        && !is_good(file, machine, direction, &memory)
    {
        return match direction {
            _ if direction == Direction::Out || file.keeps() => {
                visit::release_inside(file);
                None
            }
            _ => {
                visit::flush_inside(file);
                run(staged, call, memory)
            }
        };
    }
    run(staged, call, memory)
}

fn direction_of(call: Call) -> Option<Direction> {
    match call {
        Call::Read { .. } => Some(Direction::In),
        Call::Write { .. } => Some(Direction::Out),
        _ => None,
    }
}

/// Whether bytes may be copied without a fault. Only what is held or kept is ever copied into the
/// program's memory, and only staging memory is copied to; all else the kernel moves, and checks.
fn is_good(file: &File, machine: &mut Machine, direction: Direction, memory: &Memory) -> bool {
    !machine.copies()
        || (direction == Direction::In && !file.holds() && !file.keeps())
        || memory.is_good(direction, &mut machine.known)
}

fn run(staged: Staged, call: Call, memory: Memory) -> Option<isize> {
    if let Call::Write { length, .. } = call
        && !visit::make_room(staged.file, length)
    {
        return None;
    }
    let outcome =
        visit::guarded(staged.file, |machine| machine.call(staged.handle, call, &memory))?;
    if caution::is_cautious() || visit::is_untold(staged.file) {
        visit::flush_inside(staged.file);
    }
    Some(number(outcome))
}

fn number(outcome: Outcome) -> isize {
    match outcome {
        Ok(value) => value as isize,
        Err(Errno(errno)) => -errno as isize,
    }
}

/// After a release, a failure to write out that nobody was told of is the result of the next call
/// that can fail for it.
fn report_failure(file: &File, call: Call) -> Option<isize> {
    let tells = matches!(call, Call::Write { .. } | Call::Sync { .. } | Call::Close);
    let failure = if tells && file.is_released() { file.failure.swap(0, Relaxed) } else { 0 };
    (failure != 0).then_some(-failure as isize)
}

/// A signal handler calls while its own thread is inside. Writes and syncs wait; what must answer
/// with data or a position cannot wait and sees the file below.
#[cold]
fn too_early(staged: Staged, call: Call, memory: Memory) -> Option<isize> {
    let (bytes, answer) = match call {
        Call::Write { length, .. } => (length as usize, length as isize),
        Call::Sync { .. } | Call::Truncate { .. } => (0, 0),
        _ => return None,
    };
    if !memory.is_good(Direction::Out, &mut memory::KnownPages::new()) {
        return Some(-libc::EFAULT as isize);
    }
    // SAFETY: the pages were good just now and the place has room for `bytes`.
    let fill = |place: *mut u8| unsafe { memory.copy_out(0, place, bytes) };
    staged.file.late.keep(staged.handle, call, bytes, fill).then_some(answer)
}

/// What a descriptor's going away comes to before the system closes it.
pub(super) enum Closing {
    /// Nothing is in the way.
    Ready,
    /// What was held back could not be written out: the close fails with this result.
    Failed(isize),
    /// A signal handler closes what its own thread is using: it has to stay open.
    TooEarly,
}

/// A descriptor is about to go away: what its description holds back goes out if it is the last
/// one, and becomes visible in any case.
pub(super) fn before_close(staged: Staged) -> Closing {
    let file = staged.file;
    if !file.enter() {
        return Closing::TooEarly;
    }
    let failure = match staged.is_shared() {
        true => {
            visit::flush_inside(file);
            None
        }
        false => close_description(staged),
    };
    visit::leave(file);
    match failure.or_else(|| report_failure(file, Call::Close)) {
        Some(result) => Closing::Failed(result),
        None => Closing::Ready,
    }
}

/// The strategies' part of closing a description. Inside the lock.
fn close_description(staged: Staged) -> Option<isize> {
    let outcome = visit::guarded(staged.file, |machine| {
        if machine.descriptor(staged.handle).is_none() {
            return Ok(0);
        }
        let outcome = machine.call(staged.handle, Call::Close, &Memory::NONE);
        machine.forget(staged.handle);
        outcome
    })?;
    Some(number(outcome)).filter(|&result| result < 0)
}
