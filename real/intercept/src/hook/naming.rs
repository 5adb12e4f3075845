//! Calls by path: status, renames, removals, directories.

use super::answer::stage_or_perform_cancellable;
use super::record::leave_out;
use crate::call::{ABSENT, Call};
use crate::mode::{self, Mode};
use crate::recorder::{self, Record};
use crate::{path, process, scope};
use iolab_trace::Function;

/// # Safety
/// The arguments in the call are the guest's own.
pub(super) unsafe fn hook(call: Call) -> isize {
    // SAFETY: the guest's own call.
    unsafe {
        let mode = mode::get();
        let start = recorder::now();
        let result = stage_or_perform_cancellable(&call, mode);
        let times = (start, recorder::now());
        if mode.has(Mode::RECORD_POSIX) && result != -(libc::EFAULT as isize) {
            record(&call, times, result);
        }
        result
    }
}

/// Whether a path argument can be looked at after the call: there is one, and it is not null.
fn is_given(path: usize) -> bool {
    path != ABSENT && path != 0
}

unsafe fn record(call: &Call, times: (u64, u64), result: isize) {
    if !is_given(call.path) || !process::owns_state() {
        return;
    }
    // SAFETY: the kernel just read the paths.
    unsafe {
        let linked = linked_descriptor(call);
        let first = match (linked, call.function.is_symbolic()) {
            (Some(fd), _) => name_of(fd),
            // No path at all leads nowhere.
            _ if failed(result) && path::text(call.path).is_empty() => Some(0),
            // A relative path counts from another directory by now.
            _ if call.function == Function::CHDIR && !failed(result) => name_of(libc::AT_FDCWD),
            (None, true) => name_led_to(call),
            (None, false) => name(call.directory, call.path),
        };
        let Some(number) = first else { return };
        let mut argument = -1;
        if is_given(call.new_path) {
            argument = name(call.new_directory, call.new_path).map_or(-1, i64::from);
        }
        let flags = if call.flags == ABSENT { 0 } else { call.flags as u32 };
        let pointer = call.returns == crate::call::Returns::Pointer;
        recorder::push(Record {
            start: times.0,
            end: times.1,
            offset: -1,
            length: if call.buffer == ABSENT { call.length as i64 } else { -1 },
            argument,
            result: if pointer && !failed(result) { 0 } else { result as i64 },
            number,
            fd: linked.unwrap_or(-1),
            function: call.function.renaming(flags).0,
            ..Record::default()
        });
    }
}

fn failed(result: isize) -> bool {
    (-4095..0).contains(&result)
}

/// Gives a path a number in the trace; `None` (and one more left out) when it is not followed.
unsafe fn name(directory: usize, path: usize) -> Option<u32> {
    let mut buffer = path::Buffer::new();
    // SAFETY: the caller's promise.
    number(path::absolute(path::folder(directory), unsafe { path::text(path) }, &mut buffer))
}

/// The descriptor of the file that a call gives a name, where it is not told by a name: it may have none.
unsafe fn linked_descriptor(call: &Call) -> Option<i32> {
    let flags = call.flags as u32 as i32;
    if call.function != Function::LINKAT {
        return None;
    }
    // SAFETY: the caller's promise.
    let path = unsafe { path::text(call.path) };
    let needed = if path.is_empty() { libc::AT_EMPTY_PATH } else { libc::AT_SYMLINK_FOLLOW };
    path::descriptor(path::folder(call.directory), path).filter(|_| flags & needed != 0)
}

/// As [`name`], of the file that a descriptor leads to, or of the working directory (`AT_FDCWD`).
fn name_of(fd: i32) -> Option<u32> {
    let mut buffer = path::Buffer::new();
    number(path::absolute(fd, b"", &mut buffer))
}

/// As [`name`], what a symbolic link leads to: that counts from the directory the link is in.
unsafe fn name_led_to(call: &Call) -> Option<u32> {
    let (mut buffer, mut beside) = (path::Buffer::new(), path::Buffer::new());
    // SAFETY: the caller's promise.
    unsafe {
        let link = path::text(call.new_path);
        let link = path::absolute(path::folder(call.new_directory), link, &mut buffer);
        number(path::beside(link, path::text(call.path), &mut beside))
    }
}

fn number(text: &[u8]) -> Option<u32> {
    if let Some(reason) = scope::left_out(text) {
        leave_out(reason);
        return None;
    }
    let number = recorder::new_number();
    recorder::name(number, text);
    Some(number)
}
