//! Calls that make, replace or end processes.
//!
//! What strategies hold must be below before another process can look, so the stage is told
//! before; a forked child starts with a recorder of its own. `vfork` and `syscall` return twice or
//! may do so and are therefore passed on by a jump, after a look at what is asked.

use super::{naming, record_of};
use crate::call::{Call, Returns, padded};
use crate::mode::{self, Mode};
use crate::recorder::{self, Record};
use crate::{next, path, process, stage, system};
use iolab_trace::Function;
use std::arch::naked_asm;

/// Whether anything is to be done at all.
fn is_idle() -> bool {
    mode::get() == Mode::NOTHING
}

fn record(function: Function, number: u32, argument: i64, times: (u64, u64), result: i64) {
    if mode::get().has(Mode::RECORD_POSIX) {
        recorder::push(Record {
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
        });
    }
}

/// Sets up what a forked child must have of its own.
#[cold]
pub(crate) fn enter_child() {
    process::settle();
    recorder::enter_child();
    stage::enter_child();
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
                if !is_idle() && process::owns_state() {
                    stage::before_process(&call);
                }
                started(&call)
            }
        }
    }
}

/// `posix_spawn`, `system`: recorded with the path of what was started.
unsafe fn started(call: &Call) -> isize {
    // SAFETY: the guest's own call; libc has read the path.
    unsafe {
        let start = recorder::now();
        let result = call.perform_next();
        let times = (start, recorder::now());
        if !is_idle() && result != -(libc::EFAULT as isize) {
            // The command of `system` is no path; the shell it starts shows up by itself.
            let has_path = call.path != usize::MAX && call.path != 0;
            let number = if has_path { name(call.path) } else { 0 };
            let spawned = result == 0 && call.child != usize::MAX && call.child != 0;
            let child = if spawned { i64::from(*(call.child as *const i32)) } else { -1 };
            record(call.function, number, child, times, result as i64);
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
        if !is_idle() && process::owns_state() {
            stage::before_process(&call);
        }
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

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn fork() -> i32 {
    let call = Call::new(Function::FORK, Returns::Int, &next::fork, [0; 6]);
    // SAFETY: the guest's own call.
    unsafe {
        if is_idle() {
            return call.answer(call.perform_next()) as i32;
        }
        if process::owns_state() {
            stage::before_process(&call);
        }
        let start = recorder::now();
        let result = call.perform_next();
        if result == 0 {
            enter_child();
        } else {
            stage::after_fork(result);
            record(Function::FORK, 0, -1, (start, recorder::now()), result as i64);
        }
        call.answer(result) as i32
    }
}

/// Told before a `vfork`; answers with the function to go on to.
unsafe extern "C" fn before_vfork() -> usize {
    let call = Call::new(Function::VFORK, Returns::Int, &next::vfork, [0; 6]);
    if !is_idle() && process::owns_state() {
        // SAFETY: takes no arguments.
        unsafe { stage::before_process(&call) };
        let now = recorder::now();
        record(Function::VFORK, 0, -1, (now, now), 0);
    }
    next::vfork.address()
}

/// # Safety
/// As libc's.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn vfork() -> i32 {
    // The child runs on the parent's stack: nothing of ours may lie on it when the call returns.
    naked_asm!("sub rsp, 8", "call {before}", "add rsp, 8", "jmp rax", before = sym before_vfork)
}

/// Told before a call through `syscall`; answers with the function to go on to.
unsafe extern "C" fn before_syscall(number: i64) -> usize {
    if !is_idle() {
        super::data::unseen_system_call(number);
    }
    next::syscall.address()
}

/// # Safety
/// As libc's. It may be a `vfork` or a `clone` on the same stack, hence the jump.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn syscall() -> i64 {
    naked_asm!(
        "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9", "sub rsp, 8",
        "call {before}",
        "add rsp, 8", "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
        "jmp rax",
        before = sym before_syscall
    )
}

/// Before the program is replaced: `argument` of the event is the process that calls, which may be
/// a vfork child.
unsafe fn before_exec(call: &Call, text: usize) {
    if is_idle() {
        return;
    }
    // SAFETY: an unreadable path would fail the exec; null is looked at here.
    unsafe {
        stage::before_process(call);
        stage::before_path(text);
        let number = if text == 0 { 0 } else { name(text) };
        let now = recorder::now();
        record(Function::EXEC, number, i64::from(system::process_number()), (now, now), 0);
    }
}

/// After an exec that failed.
fn after_exec(call: &Call, result: isize) -> i32 {
    if !is_idle() {
        let (now, pid) = (recorder::now(), i64::from(system::process_number()));
        record(Function::EXEC, 0, pid, (now, now), result as i64);
        stage::after_exec_failed();
    }
    call.answer(result) as i32
}

/// An exec by the next library's function of these arguments.
unsafe fn exec<const N: usize>(next: &'static next::Next, a: [usize; N], text: usize) -> i32 {
    let call = Call::new(Function::EXEC, Returns::Int, next, padded(a));
    // SAFETY: the guest's own arguments.
    unsafe {
        before_exec(&call, text);
        after_exec(&call, call.perform_next())
    }
}

macro_rules! execs {
    ($($symbol:ident($($argument:ident)*) by $path:ident;)*) => {$(
        /// # Safety
        /// As libc's.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C-unwind" fn $symbol($($argument: usize),*) -> i32 {
            // SAFETY: the guest's own arguments.
            unsafe { exec(&next::$symbol, [$($argument),*], $path) }
        }
    )*};
}

execs! {
    execve(path arguments environment) by path;
    execv(path arguments) by path;
    execvp(path arguments) by path;
    execvpe(path arguments environment) by path;
    execveat(directory path arguments environment flags) by path;
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

pub(super) unsafe extern "C-unwind" fn exec_list(path: usize, arguments: usize) -> i32 {
    // SAFETY: the array lies on the caller's stack, ended by null as the caller's list is.
    unsafe { exec(&next::execv, [path, arguments], path) }
}

pub(super) unsafe extern "C-unwind" fn exec_list_search(path: usize, arguments: usize) -> i32 {
    // SAFETY: as above.
    unsafe { exec(&next::execvp, [path, arguments], path) }
}

pub(super) unsafe extern "C-unwind" fn exec_list_environment(path: usize, list: usize) -> i32 {
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
    if is_idle() || !process::owns_state() {
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
