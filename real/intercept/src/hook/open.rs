//! Opens: the descriptor gets its entry in the table, the trace its path.

use super::answer::{stage_or_perform_cancellable, with_a_number};
use super::record::leave_out;
use crate::call::Call;
use crate::descriptor::{self, Entry};
use crate::mode::{self, Mode};
use crate::recorder::{self, Record};
use crate::stage::{self, Held, Opening};
use crate::{path, process, scope, sight, system};
use iolab_processor::traced_open_flags;
use iolab_trace::Function;
use iolab_trace::spool::LeftOut;

/// # Safety
/// The arguments in the call are the guest's own.
pub(super) unsafe fn hook(call: Call) -> isize {
    // SAFETY: the guest's own call.
    unsafe {
        let mode = mode::get();
        if !process::owns_state() {
            return call.perform_cancellable();
        }
        let existed = mode.has(Mode::STAGE) && stage::keeps_existing() && exists(&call);
        let start = recorder::now();
        for _ in 1..TRIES {
            let held =
                if mode.has(Mode::STAGE) { stage::before_open(&call) } else { Held::NOTHING };
            let result = with_a_number(mode, || stage_or_perform_cancellable(&call, mode));
            if let Some(result) = opened(&call, start, result, existed, held) {
                return result;
            }
        }
        let result = with_a_number(mode, || stage_or_perform_cancellable(&call, mode));
        opened(&call, start, result, existed, Held::NOTHING).unwrap_or(result)
    }
}

/// So often in a row a file is replaced between an open and the look at what it opened, at most; a name that leads to a
/// file without names (`/proc/self/fd/N`) does so each time.
const TRIES: usize = 100;

/// Whether there is a file where an open is about to go.
unsafe fn exists(call: &Call) -> bool {
    let directory = path::folder(call.directory) as usize;
    // SAFETY: the guest's own path, which only the kernel looks at.
    unsafe { system::raw3(libc::SYS_faccessat, directory, call.path, 0) == 0 }
}

/// Takes note of an open that ended; the file `existed` before if that matters. The answer is what the
/// program gets; `None` if it is to be made once more.
unsafe fn opened(
    call: &Call,
    start: u64,
    result: isize,
    existed: bool,
    held: Held,
) -> Option<isize> {
    if result == -(libc::EFAULT as isize) {
        return Some(result);
    }
    let mut buffer = path::Buffer::new();
    let directory = path::folder(call.directory);
    // SAFETY: the kernel just read the path.
    let given = unsafe { path::text(call.path) };
    let name = if result >= 0 && climbs(given) {
        path::of_descriptor(result as i32, &mut buffer)
    } else {
        path::absolute(directory, given, &mut buffer)
    };
    enter(call, start, result, name, existed, held)
}

/// Whether a path goes upwards, so that only the kernel can tell where it leads.
fn climbs(path: &[u8]) -> bool {
    path.starts_with(b"../") || path.windows(4).any(|four| four == b"/../")
}

fn enter(
    call: &Call,
    start: u64,
    mut result: isize,
    name: &[u8],
    existed: bool,
    held: Held,
) -> Option<isize> {
    let mut status = if result >= 0 { system::status(result as i32).ok() } else { None };
    let excluded = scope::left_out(name)
        .or_else(|| status.as_ref().and_then(|it| scope::kind_left_out(it.st_mode)));
    let chosen = excluded.is_none().then_some(name);
    match stage::after_open(held, result as i32, flags(call) as i32, chosen, status.as_ref()) {
        Opening::Passed => {}
        Opening::Staged(fd, copy) => {
            let size = status.map_or(-1, |it| it.st_size);
            (result, status) = (fd as isize, Some(copy));
            if excluded.is_none() {
                enter_passing(call, start, result, name, size, &copy);
                return Some(result);
            }
        }
        Opening::Gone => return None,
        Opening::Failed(errno) => {
            (result, status) = (-(errno as isize), None);
        }
    }
    if let (Some(LeftOut::Dev | LeftOut::Proc), Some(status)) = (excluded, &status)
        && scope::kind_left_out(status.st_mode).is_none()
    {
        let (mut buffer, mut other) = (path::Buffer::new(), path::Buffer::new());
        if let Some(name) = sight::led_to(result as i32, &mut buffer, &mut other) {
            enter_passing(call, start, result, name, status.st_size, status);
            return Some(result);
        }
    }
    let times = (start, recorder::now());
    if let Some(reason) = excluded {
        if result >= 0 {
            descriptor::set(result as i32, Entry::left_out(reason));
            if let Some(status) = &status {
                stage::passes(result as i32, status);
            }
        }
        leave_out(reason);
        return Some(result);
    }
    let number = recorder::new_number();
    let flags = flags(call);
    if result >= 0 {
        let entry = Entry::tracked(number, flags as u32);
        descriptor::set(result as i32, entry);
        let is_link = || flags as i32 & libc::O_NOFOLLOW == 0 && ends_in_link(call);
        let staged = staged_as(entry, status.as_ref(), existed);
        stage::opened(result as i32, staged, name, status.as_ref(), is_link);
    }
    let size = status.map_or(-1, |it| it.st_size);
    record(call, number, flags, size, times, result, name);
    Some(result)
}

/// No strategy is for what was opened: the copy of a staged file took its place, or its name is one of the system's
/// for another one.
fn enter_passing(
    call: &Call,
    start: u64,
    result: isize,
    name: &[u8],
    size: i64,
    status: &libc::stat,
) {
    let (number, flags) = (recorder::new_number(), flags(call));
    descriptor::set(result as i32, Entry::tracked(number, flags as u32));
    stage::inherited(result as i32, status);
    record(call, number, flags, size, (start, recorder::now()), result, name);
}

fn ends_in_link(call: &Call) -> bool {
    let directory = path::folder(call.directory);
    path::is_link(directory, call.path)
}

/// What the stage is told: a mapped file is one to be kept as it is, and so is one that `existed`.
fn staged_as(entry: Entry, status: Option<&libc::stat>, existed: bool) -> Entry {
    let is_kept = existed || status.is_some_and(crate::mapping::is_mapped);
    match mode::get().has(Mode::STAGE) && is_kept {
        true => Entry::tracked(entry.description(), entry.flags() | libc::O_DSYNC as u32),
        false => entry,
    }
}

#[allow(clippy::too_many_arguments, reason = "they are the fields of one record")]
fn record(
    call: &Call,
    number: u32,
    flags: i64,
    size: i64,
    times: (u64, u64),
    result: isize,
    name: &[u8],
) {
    if !mode::get().has(Mode::RECORD_POSIX) {
        return;
    }
    recorder::name(number, name);
    recorder::push(Record {
        start: times.0,
        end: times.1,
        offset: -1,
        length: size,
        argument: i64::from(traced_open_flags(flags as i32)),
        result: result as i64,
        number,
        fd: if result >= 0 { result as i32 } else { -1 },
        function: call.function.0,
        ..Record::default()
    });
}

/// The `O_…` flags of an open.
pub(super) fn flags(call: &Call) -> i64 {
    if call.function == Function::CREAT {
        return i64::from(libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC);
    }
    i64::from(call.flags as i32)
}
