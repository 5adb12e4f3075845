//! Calls that make, replace or end processes.
//!
//! What strategies hold must be below before another process can look, so the stage is told
//! before; a forked child starts with a recorder of its own. Ways to make a copy of the process are
//! in `fork`.

use super::record::record_of;
use super::{naming, program};
use crate::call::{ABSENT, Call, Returns, padded};
use crate::mode::{self, Mode};
use crate::moment::{self, Moment, moment};
use crate::recorder::{self, Record};
use crate::{next, path, process, stage, system};
use iolab_trace::Function;
use iolab_trace::program::Foreseen;

pub(super) fn record(
    function: Function,
    number: u32,
    argument: i64,
    times: (u64, u64),
    result: i64,
) {
    push(of(function, number, argument, times, result));
}

fn of(function: Function, number: u32, argument: i64, times: (u64, u64), result: i64) -> Record {
    Record {
        start: times.0,
        end: times.1,
        offset: -1,
        length: -1,
        argument,
        result,
        number,
        fd: -1,
        function: function.0,
        ..Record::default()
    }
}

fn push(record: Record) {
    if mode::get().has(Mode::RECORD_POSIX) {
        recorder::push(record);
    }
}

/// Generated wrappers of this class.
///
/// # Safety
/// The arguments in the call are the guest's own.
pub(super) unsafe fn hook(call: Call) -> isize {
    // SAFETY: the guest's own call.
    unsafe {
        match call.function {
            Function::CHDIR => naming::hook(call),
            Function::FCHDIR => timed(&call),
            _ => {
                stage::before_process(&call);
                moment::lend();
                let result = started(&call);
                moment::take_back();
                result
            }
        }
    }
}

/// `posix_spawn`, `system`, `popen`: recorded with the path of what was started. Libc's child runs
/// on this memory until it executes, and may come by.
unsafe fn started(call: &Call) -> isize {
    // SAFETY: the guest's own call; libc has read the path.
    unsafe {
        let adapted = program::of_spawn(call);
        let given = adapted.as_ref().map_or(call, program::Adapted::call);
        let foreseen = match call.path != ABSENT && call.path != 0 {
            true => program::foreseen(path::text(call.path), call.environment),
            false => Foreseen::Unknown,
        };
        let start = recorder::now();
        let result = given.perform_next();
        let times = (start, recorder::now());
        if result != -(libc::EFAULT as isize) {
            // The command of `system` is no path; the shell it starts shows up by itself.
            let has_path = call.path != usize::MAX && call.path != 0;
            let number = if has_path { name(call.path) } else { 0 };
            let spawned = result == 0 && call.child != usize::MAX && call.child != 0;
            let child = if spawned { i64::from(*(call.child as *const i32)) } else { -1 };
            let failed = (-4095..0).contains(&result);
            let shown = if call.returns == Returns::Pointer && !failed { 0 } else { result };
            push(Record {
                offset: foreseen.code(),
                length: if call.has_actions() { 1 } else { -1 },
                ..of(call.function, number, child, times, shown as i64)
            });
        }
        result
    }
}

unsafe fn timed(call: &Call) -> isize {
    // SAFETY: the guest's own call.
    unsafe {
        let start = recorder::now();
        let result = call.perform_next();
        let times = (start, recorder::now());
        if mode::get().has(Mode::RECORD_POSIX) {
            recorder::push(record_of(call.function.class(), call, 0, times, result));
        }
        result
    }
}

/// `sync`: everything, so the stage is asked about everything.
///
/// # Safety
/// As [`hook`].
pub(super) unsafe fn everything(call: Call) -> isize {
    // SAFETY: takes no arguments.
    unsafe {
        stage::before_process(&call);
        timed(&call)
    }
}

unsafe fn name(text: usize) -> u32 {
    let mut buffer = path::Buffer::new();
    let number = recorder::new_number();
    // SAFETY: the caller has seen it read.
    let given = unsafe { path::text(text) };
    // A bare name is searched for in PATH; only with a slash it is a path.
    let searched = !given.contains(&b'/');
    let text = if searched { given } else { path::absolute(libc::AT_FDCWD, given, &mut buffer) };
    recorder::name(number, text);
    number
}

/// Before the program is replaced: `argument` of the event is the process that calls, which may be
/// a vfork child.
unsafe fn before_exec(call: &Call, text: usize, file: &[u8], environment: usize) {
    let moment = moment();
    if moment == Moment::Idle {
        return;
    }
    // SAFETY: an unreadable path would fail the exec; null is looked at here.
    unsafe {
        // What a child on borrowed memory hands on was released when it said so.
        if moment == Moment::Usual {
            stage::before_process(call);
        }
        stage::before_path(text);
        let number = if text == 0 { 0 } else { name(text) };
        let foreseen = program::foreseen(file, environment).code();
        let now = recorder::now();
        let pid = i64::from(system::process_number());
        push(Record { offset: foreseen, ..of(Function::EXEC, number, pid, (now, now), 0) });
    }
}

/// After an exec that failed.
fn after_exec(call: &Call, result: isize) -> i32 {
    if moment() != Moment::Idle {
        let (now, pid) = (recorder::now(), i64::from(system::process_number()));
        record(Function::EXEC, 0, pid, (now, now), result as i64);
        stage::after_exec_failed();
    }
    call.answer(result) as i32
}

/// An exec by the next library's function of these arguments, of which the third is the environment.
unsafe fn exec(next: &'static next::Next, a: [usize; 3], text: usize) -> i32 {
    let call = Call::new(Function::EXEC, Returns::Int, next, padded(a));
    // SAFETY: the guest's own arguments.
    unsafe {
        let mut buffer = path::Buffer::new();
        let file = match text {
            // Of `fexecve`, or no program's at all.
            0 => path::of_descriptor(a[0] as i32, &mut buffer),
            text => path::text(text),
        };
        before_exec(&call, text, file, a[2]);
        let adapted = program::of_exec(&call, file, 2);
        let given = adapted.as_ref().map_or(&call, program::Adapted::call);
        after_exec(&call, given.perform_next())
    }
}

macro_rules! execs {
    ($($symbol:ident($($argument:ident)*) by $path:ident as $as:ident $list:tt;)*) => {$(
        /// # Safety
        /// As libc's.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C-unwind" fn $symbol($($argument: usize),*) -> i32 {
            // SAFETY: the guest's own arguments.
            unsafe { exec(&next::$as, $list, $path) }
        }
    )*};
}

// Those without an environment hand on this process's own, as libc does.
execs! {
    execve(path arguments environment) by path as execve [path, arguments, environment];
    execv(path arguments) by path as execve [path, arguments, program::own_environment()];
    execvp(path arguments) by path as execvpe [path, arguments, program::own_environment()];
    execvpe(path arguments environment) by path as execvpe [path, arguments, environment];
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn execveat(
    directory: usize,
    path: usize,
    arguments: usize,
    environment: usize,
    flags: usize,
) -> i32 {
    let a = [directory, path, arguments, environment, flags];
    let call = Call::new(Function::EXEC, Returns::Int, &next::execveat, padded(a));
    // SAFETY: the guest's own arguments.
    unsafe {
        let mut buffer = path::Buffer::new();
        let name = if path == 0 { b"" } else { path::text(path) };
        let file = path::absolute(directory as i32, name, &mut buffer);
        before_exec(&call, path, file, environment);
        let adapted = program::of_exec(&call, file, 3);
        let given = adapted.as_ref().map_or(&call, program::Adapted::call);
        after_exec(&call, given.perform_next())
    }
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn fexecve(
    fd: i32,
    arguments: usize,
    environment: usize,
) -> i32 {
    // SAFETY: the guest's own arguments; there is no path to read.
    unsafe { exec(&next::fexecve, [fd as usize, arguments, environment], 0) }
}

pub(crate) unsafe extern "C-unwind" fn exec_list(path: usize, arguments: usize) -> i32 {
    // SAFETY: the array lies on the caller's stack, ended by null as the caller's list is.
    unsafe { exec(&next::execve, [path, arguments, program::own_environment()], path) }
}

pub(crate) unsafe extern "C-unwind" fn exec_list_search(path: usize, arguments: usize) -> i32 {
    // SAFETY: as above.
    unsafe { exec(&next::execvpe, [path, arguments, program::own_environment()], path) }
}

pub(crate) unsafe extern "C-unwind" fn exec_list_environment(path: usize, list: usize) -> i32 {
    // SAFETY: behind the null that ends the list stands the environment.
    unsafe {
        let mut end = list as *const usize;
        while *end != 0 {
            end = end.add(1);
        }
        exec(&next::execve, [path, list, *end.add(1)], path)
    }
}

/// The process is about to end by its own will.
fn ending(status: i32) {
    if moment() != Moment::Usual || !process::owns_state() {
        return;
    }
    stage::before_exit();
    let now = recorder::now();
    record(Function::EXIT, 0, i64::from(status), (now, now), 0);
    recorder::ended();
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn _exit(status: i32) -> ! {
    ending(status);
    loop {
        // SAFETY: ends the process.
        unsafe { system::raw3(libc::SYS_exit_group, status as usize, 0, 0) };
    }
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn _Exit(status: i32) -> ! {
    // SAFETY: the same function by another name.
    unsafe { _exit(status) }
}

/// # Safety
/// As libc's: the registered functions run first, ours (registered at start) last.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn quick_exit(status: i32) -> ! {
    // SAFETY: the guest's own argument.
    unsafe { next::quick_exit.call(padded([status as usize])) };
    // SAFETY: not reached where libc has the function.
    unsafe { _exit(status) }
}

pub(crate) extern "C" fn at_quick_exit() {
    ending(0);
}
