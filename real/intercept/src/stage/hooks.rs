//! What the hooks ask of the stage: every call on a followed file, every call by path, and every
//! call that makes or ends a process. The choice by function is made at compile time for the hot
//! calls; everything rare is out of line.

use super::memory::Direction;
use super::rules::{self, directory};
use super::{
    allocator, calls, caution, counted, fast_place, journal, life, opening, own, planned, settings,
    shared, table, tally,
};
use crate::call::{ABSENT, Call};
use crate::descriptor::{self, Entry};
use crate::mode::{self, Mode};
use crate::roomy;
use iolab_policy::insitu::StrategySpec;
use iolab_policy::insitu::classes::Layer;
use iolab_policy::insitu::rules::Act;
use iolab_policy::insitu::stacking::{self, Consent, Setting};
use iolab_segment::AttachError;
use iolab_trace::{Class, Function};
use std::ffi::{c_char, c_int};

/// Answers a call: a descriptor call on a followed file, a copy with one, a map, or a call by path
/// (opens included). The result is `-errno` for a failure.
///
/// # Safety
/// The arguments in the call are the guest's own.
#[inline(always)]
pub(crate) unsafe fn perform(call: &Call) -> isize {
    let (third, fourth) = match call.function {
        Function::LSEEK => (call.offset, call.whence),
        _ => (call.buffer, call.length),
    };
    // SAFETY: the caller's promise, for every arm.
    unsafe {
        let done = match call.function {
            Function::WRITE | Function::PWRITE | Function::READ | Function::PREAD => {
                calls::answer(call.function, [call.fd, third, fourth, call.offset])
            }
            Function::LSEEK => calls::answer(call.function, [call.fd, third, fourth, 0]),
            _ => return perform_rare(&{ *call }),
        };
        match done {
            Some(result) => result,
            None => {
                let result = call.perform();
                match call.function {
                    Function::WRITE | Function::PWRITE if result != fourth as isize => made_room(
                        call.function,
                        [call.fd, call.buffer, call.length, call.offset],
                        result,
                    ),
                    _ => result,
                }
            }
        }
    }
}

/// A write came to less than it should have: there may be no room in a fast place.
///
/// # Safety
/// The arguments are the guest's own: descriptor, address, length and offset.
#[cold]
#[inline(never)]
pub(crate) unsafe fn made_room(function: Function, a: [usize; 4], result: isize) -> isize {
    let [fd, from, length, offset] = a;
    if !fast_place::is_active() {
        return result;
    }
    fast_place::retried(fd as c_int, length, result, |done| {
        let (number, offset) = match function {
            Function::WRITE => (libc::SYS_write, 0),
            _ => (libc::SYS_pwrite64, offset + done),
        };
        let rest = [fd, from + done, length - done, offset, 0, 0];
        // SAFETY: a part of what the caller gave.
        unsafe { iolab_processor::system_call(number, rest) }
    })
}

#[cold]
#[inline(never)]
unsafe fn perform_rare(call: &Call) -> isize {
    // SAFETY: the caller's promise.
    let perform = || unsafe { perform_by_class(call) };
    if fast_place::is_active() { fast_place::around(call, perform) } else { perform() }
}

unsafe fn perform_by_class(call: &Call) -> isize {
    // SAFETY: the caller's promise, for every arm.
    unsafe {
        let class = call.function.class();
        let done = match class {
            Class::Read => vector(Direction::In, call),
            Class::Write => vector(Direction::Out, call),
            Class::Sync => sync(call),
            Class::Truncate | Class::Allocate => resize(call),
            Class::Dup => Some(dup(call)),
            Class::Close => Some(close(call)),
            Class::Rename | Class::Unlink => {
                let mut result = 0;
                roomy::with_room(&mut || result = change_name(call));
                Some(result)
            }
            Class::Attribute => {
                attribute(call);
                None
            }
            Class::Map => {
                rules::before(call);
                shared::mapped(call.fd as c_int);
                None
            }
            Class::Lock => {
                rules::note_lock(call.fd as c_int);
                rules::before(call);
                None
            }
            _ => {
                rules::before(call);
                None
            }
        };
        match done {
            Some(result) => result,
            None if waits(class) => call.perform_cancellable(),
            None => call.perform(),
        }
    }
}

/// Whether a thread may be cancelled while it waits in such a call.
fn waits(class: Class) -> bool {
    matches!(class, Class::Open | Class::Lock | Class::Copy)
}

unsafe fn vector(direction: Direction, call: &Call) -> Option<isize> {
    let fd = call.fd as c_int;
    let positioned = call.offset != ABSENT;
    let offset = (positioned && call.offset as i64 != -1).then_some(call.offset as i64);
    let refused =
        matches!(call.function, Function::PREADV | Function::PWRITEV) && (call.offset as i64) < 0;
    if call.vector == ABSENT || refused {
        return None;
    }
    if call.flags != ABSENT && call.flags as c_int != 0 {
        rules::before(call);
        return None;
    }
    // SAFETY: the caller's promise.
    unsafe {
        calls::vector(direction, fd, call.vector as *const libc::iovec, call.count as c_int, offset)
    }
}

fn sync(call: &Call) -> Option<isize> {
    match call.function {
        Function::FSYNC => calls::sync(call.fd as c_int, false),
        Function::FDATASYNC => calls::sync(call.fd as c_int, true),
        _ => {
            rules::before(call);
            None
        }
    }
}

unsafe fn resize(call: &Call) -> Option<isize> {
    let fd = call.fd as c_int;
    match call.function {
        Function::FTRUNCATE => calls::truncate(fd, call.length as i64),
        Function::FALLOCATE => {
            calls::allocate(fd, call.mode as i32, call.offset as i64, call.length as i64)
        }
        Function::POSIX_FALLOCATE => {
            let done = calls::allocate(fd, 0, call.offset as i64, call.length as i64);
            // Where the file system cannot, libc writes zeros instead: let it.
            let refused = done == Some(-libc::EOPNOTSUPP as isize);
            if refused {
                rules::release(fd);
            }
            done.filter(|_| !refused)
        }
        // SAFETY: the guest's own call.
        _ => Some(unsafe { resize_by_path(call) }),
    }
}

/// `truncate`: whoever holds bytes of the file writes them out first, and nobody believes to know
/// how long it is until that is settled.
unsafe fn resize_by_path(call: &Call) -> isize {
    // SAFETY: the guest's own call.
    let perform = || unsafe { call.perform() };
    if call.path == ABSENT || call.path == 0 {
        return perform();
    }
    let directory = directory(call.directory);
    let Some(status) = super::kernel::status_at(directory, call.path as *const c_char, 0) else {
        return perform();
    };
    let release = || table::find(status.st_dev, status.st_ino).map_or((), life::release);
    release();
    let result = shared::while_used(&status, perform);
    // Another thread may have opened it meanwhile.
    release();
    result
}

/// A name comes or goes by which the file of a process that is killed would be found: what is held
/// goes out first, and nobody begins to hold bytes until it is done.
unsafe fn change_name(call: &Call) -> isize {
    shared::begin_move();
    if table::is_any_staged() || shared::is_any_holding() {
        rules::before(call);
        if is_directory(call) {
            life::flush_all();
            shared::look_at_all();
        }
    }
    // SAFETY: the guest's own call.
    let result = unsafe { call.perform() };
    shared::end_move();
    result
}

/// Whether a directory is moved: any of two names may be one where they are exchanged.
fn is_directory(call: &Call) -> bool {
    [(call.directory, call.path), (call.new_directory, call.new_path)].into_iter().any(
        |(directory_argument, path)| {
            if path == ABSENT || path == 0 {
                return false;
            }
            let (directory, path) = (directory(directory_argument), path as *const c_char);
            let status = super::kernel::status_at(directory, path, libc::AT_SYMLINK_NOFOLLOW);
            status.is_some_and(|it| it.st_mode & libc::S_IFMT == libc::S_IFDIR)
        },
    )
}

unsafe fn dup(call: &Call) -> isize {
    let old = call.fd as c_int;
    let replaces = matches!(call.function, Function::DUP2 | Function::DUP3);
    let new = call.new_fd as c_int;
    if own::is_own(old) || (replaces && own::is_own(new)) {
        return -(libc::EBADF as isize);
    }
    if replaces && old != new && super::kernel::is_open(old) && new >= 0 {
        opening::before_replaced(new);
    }
    // SAFETY: the guest's own call.
    let result = unsafe { call.perform() };
    if result >= 0 {
        opening::duplicated(old, result as c_int);
    }
    result
}

/// As `dup`, for a descriptor whose calls are not followed; the run may know of it all the same.
///
/// # Safety
/// The arguments in the call are the guest's own.
pub(crate) unsafe fn dup_unfollowed(call: &Call) -> isize {
    // SAFETY: the caller's promise.
    unsafe { dup(call) }
}

/// A descriptor whose calls are not followed is about to be closed.
pub(crate) fn close_unfollowed(fd: c_int) {
    shared::parted(fd);
}

unsafe fn close(call: &Call) -> isize {
    if call.function == Function::CLOSE_RANGE {
        let (first, last) = (call.first as u32, call.last as u32);
        if first <= last {
            opening::before_close_range(first, last);
        }
        return close_range(call);
    }
    let forget = || {
        descriptor::take(call.fd);
    };
    let mut closed = None;
    roomy::with_room(&mut || closed = opening::close(call.fd as c_int, forget));
    if let Some(result) = closed {
        return result;
    }
    descriptor::take(call.fd);
    // SAFETY: the guest's own call.
    unsafe { call.perform() }
}

/// Whether anything but its entry is known of a descriptor that is about to be closed.
#[inline]
pub(crate) fn is_known(fd: usize) -> bool {
    table::forget_foreign(fd as c_int);
    table::description(fd as c_int).is_some() || shared::is_told(fd as c_int)
}

/// `close_range` but for the stage's own descriptors.
pub(crate) fn close_range(call: &Call) -> isize {
    own::close_range(call.first as u32, call.last as u32, call.flags as u32)
}

/// Whether that is a descriptor of the stage, of which the program knows nothing.
#[inline(always)]
pub(crate) fn is_own(fd: usize) -> bool {
    own::is_own(fd as c_int)
}

/// Has whoever holds bytes of a path's file, or may do so later, hold none from now on.
fn withdraw(directory_argument: usize, path: usize) {
    if path == ABSENT || path == 0 {
        return;
    }
    let (directory, flags) = (directory(directory_argument), libc::AT_EMPTY_PATH);
    if let Some(status) = super::kernel::status_at(directory, path as *const c_char, flags) {
        match table::find(status.st_dev, status.st_ino) {
            Some(file) => life::release(file),
            None => shared::disturb(&status),
        }
    }
}

/// A file's mode, owner, times or attributes are about to be set.
pub(super) fn attribute(call: &Call) {
    if takes_write_permission(call) {
        // Whoever has to write out what a killed process held could not open it any more.
        rules::release(call.fd as c_int);
        withdraw(call.directory, call.path);
    }
    rules::before(call);
}

/// Whether a call leaves the file's owner without permission to write to it.
fn takes_write_permission(call: &Call) -> bool {
    let sets_mode =
        matches!(call.function, Function::CHMOD | Function::FCHMOD | Function::FCHMODAT);
    sets_mode && call.mode as u32 & libc::S_IWUSR == 0
}

/// A regular file was opened; `name` is its absolute path, as it was written. `is_link` says whether
/// that ends in a symbolic link.
pub(crate) fn opened(
    fd: c_int,
    entry: Entry,
    name: &[u8],
    status: Option<&libc::stat>,
    is_link: impl FnOnce() -> bool,
) {
    if settings::is_any()
        && let Some(status) = status
    {
        if opening::is_passed_by(fd, name, status) && !is_link() {
            return opening::told_only(fd, entry.flags() as c_int, status);
        }
        roomy::with_room(&mut || {
            opening::opened(fd, entry.flags() as c_int, name, entry.description(), status);
        });
    }
}

/// A regular file that was open before this library could see it is used for the first time: it
/// passes, but what is staged of the same file is kept true for it (`table::foreign`).
pub(crate) fn inherited(fd: c_int, status: &libc::stat) {
    if settings::is_any() && crate::process::owns_state() {
        opening::passes(fd, status);
    }
}

/// A file was opened by a name that is left out: other names may lead to it as well. Calls on this
/// descriptor are not seen.
pub(crate) fn passes(fd: c_int, status: &libc::stat) {
    if settings::is_any() && crate::process::owns_state() {
        opening::passes_unseen(fd, status);
    }
}

/// A vfork child, which borrows this memory, hands a description on to the program it becomes.
pub(crate) fn lent(fd: c_int) {
    rules::release(fd);
}

/// A descriptor of that number was made by a call that makes no files: what was known of it is of a
/// file that was closed unseen.
pub(crate) fn replaced_unseen(fd: c_int) {
    if settings::is_any() {
        opening::closed_unseen(fd);
    }
}

/// A file is opened by a call strategies do not follow: what it passes through is kept true.
pub(crate) fn before_unseen_open(directory: c_int, path: usize) {
    fast_place::show(directory as usize, path);
    if settings::is_any() {
        rules::on_path(Act::Release, directory as usize, path);
    }
}

/// The program has a way around the hooks from here on: what is held goes out, nothing is held any
/// more. Said once.
#[cold]
pub(crate) fn step_aside(why: &str) {
    if mode::get().has(Mode::STAGE) {
        caution::step_aside(why);
        life::release_where(|_| true);
        // What this process opens and looks at is no longer told of, so nobody may hold bytes.
        shared::go_blind();
    }
}

/// As `step_aside`, where a thread may be torn off in the middle of a call: nothing of the stage is
/// entered any more.
#[cold]
pub(crate) fn keep_out(why: &str) {
    if mode::get().has(Mode::STAGE) {
        step_aside(why);
        opening::before_close_range(0, u32::MAX);
        mode::remove(Mode::STAGE);
    }
}

/// `fork`, `vfork`, `exec…`, `posix_spawn`, `system` or `sync` follows: whatever is held back must
/// be below when this returns.
///
/// # Safety
/// The arguments in the call are the guest's own.
pub(crate) unsafe fn before_process(call: &Call) {
    if call.function == Function::EXEC && !crate::process::owns_state() {
        return before_exec_on_borrowed_memory();
    }
    match call.function {
        Function::SYNC => fast_place::sync_all(),
        // What libc opens for the child is not seen.
        Function::POSIX_SPAWN if call.opens_for_child() => fast_place::show_all(),
        Function::POSIX_SPAWN => fast_place::show(ABSENT, call.path),
        _ => {}
    }
    rules::before(call);
    if call.function == Function::VFORK || call.has_actions() {
        // What the child opens, cuts or looks at until it is another program is not seen.
        shared::look_at_all();
    }
}

/// A program is about to be executed by that name.
pub(crate) fn before_path(path: usize) {
    fast_place::show(ABSENT, path);
    rules::on_path(Act::Flush, ABSENT, path);
}

/// Whether files may be in a fast place of the run.
pub(crate) fn is_any_fast() -> bool {
    fast_place::is_active()
}

/// A program is about to be started that will not load the library: it looks at files below.
pub(crate) fn before_stranger() {
    fast_place::show_all();
}

/// A vfork child becomes a program. Tables and files are its parent's, who goes on with them; only
/// a description that the child has kept for the new program is made true for it.
fn before_exec_on_borrowed_memory() {
    life::release_where(life::survives_exec);
}

/// In the parent, after a fork; `result` is the child or `-errno`.
pub(crate) fn after_fork(_result: isize) {}

/// In a forked child, before it does anything.
pub(crate) fn enter_child() {
    allocator::after_fork();
    life::after_fork();
}

/// An exec failed; the program goes on, its files passing.
pub(crate) fn after_exec_failed() {}

/// A filter of system calls is about to go up: nothing is held any more from here on.
pub(crate) fn before_filter() {
    fast_place::give_up();
    caution::step_aside("the program filters its system calls (seccomp)");
    life::release_where(|_| true);
    shared::go_blind();
}

/// The size of files is limited from here on: each write has to be told whether it fits.
#[cold]
pub(crate) fn before_file_limit() {
    if mode::get().has(Mode::STAGE) {
        caution::limit_files();
        life::release_where(|file| file.entry().is_some());
    }
}

/// A part of a file is about to be locked by a descriptor whose calls are not followed.
pub(crate) fn before_unfollowed_lock(call: &Call) {
    if mode::get().has(Mode::STAGE) && call.function.class() == Class::Lock {
        rules::note_lock(call.fd as c_int);
    }
}

/// The program has no number left for a descriptor. Whether there are some now, since those of the stage's own
/// were given up.
#[cold]
pub(crate) fn give_room() -> bool {
    let mut gives = false;
    if mode::get().has(Mode::STAGE) {
        roomy::with_room(&mut || gives = opening::give_room());
    }
    gives
}

/// Names are about to mean other files to this process: another root, another space of mounts.
pub(crate) fn before_move() {
    if mode::get().has(Mode::STAGE) {
        shared::begin_move();
        life::release_where(|_| true);
        shared::look_at_all();
    }
}

/// Names mean other files now, to this process or to others.
pub(crate) fn after_move() {
    if mode::get().has(Mode::STAGE) {
        shared::moved();
        // What other threads opened meanwhile.
        life::release_where(|_| true);
        shared::end_move();
    }
}

/// The process ends by its own will: return from main, `exit`, `_exit`, `quick_exit`, `abort`.
pub(crate) fn before_exit() {
    life::end();
}

/// `freopen` is about to flush its stream and close this descriptor inside libc.
pub(crate) fn before_stream_close(fd: c_int) {
    rules::release(fd);
    opening::before_close_range(fd as u32, fd as u32);
}

/// `fclose`: where libc closes the descriptor unseen (it has no entry point to overwrite), the stream
/// is flushed first, then the strategies close, and libc finds nothing left to do but the close itself.
/// Answers with what the guest gets.
///
/// # Safety
/// The arguments in the call are the guest's own.
pub(crate) unsafe fn close_stream(call: &Call, fd: c_int) -> usize {
    let seen = crate::next::__close_nocancel.is_patched();
    let Some(staged) = table::lookup(fd).filter(|_| !seen) else {
        // Libc closes the descriptor by a call that comes here again.
        // SAFETY: the guest's own call.
        return unsafe { call.next.call(call.raw) };
    };
    let errno = crate::errno::get();
    // SAFETY: the guest's stream, open until it is closed below.
    unsafe { libc::fflush(call.stream as *mut libc::FILE) };
    crate::errno::set(errno);
    life::settle_all(staged.file);
    let failure = opening::close_above(fd);
    // SAFETY: the guest's own call.
    let value = unsafe { call.next.call(call.raw) };
    match failure {
        Some(failure) if value as i32 == 0 => {
            crate::errno::set(-failure as i32);
            libc::EOF as usize
        }
        _ => value,
    }
}

/// Whether these strategies may be applied together, and were asked for as they must be; `iolab run`
/// has made sure of it, who sets variables by hand may not have.
fn is_allowed(specs: &[StrategySpec], variable: &dyn Fn(&[u8]) -> Option<&'static [u8]>) -> bool {
    let said = variable(settings::CONSENT_VARIABLE.as_bytes());
    let said = said.and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default();
    match stacking::check(specs, Setting::Loaded, Consent::read(said)) {
        Ok(_) => true,
        Err(refusal) => {
            caution::give_up(&format!("IOLAB_APPLY: {}; {}", refusal.message, refusal.hint));
            false
        }
    }
}

/// Whether files that exist already are to be kept as they are.
pub(crate) fn keeps_existing() -> bool {
    settings::keeps_existing()
}

/// Finds the segment of the run, without which nothing may be held.
fn join_run(variable: &dyn Fn(&[u8]) -> Option<&'static [u8]>) -> bool {
    let why = match variable(iolab_segment::VARIABLE.as_bytes()).map(shared::attach) {
        Some(Ok(())) => return true,
        None => "IOLAB_APPLY is set without a run; start programs by `iolab run`",
        Some(Err(AttachError::Foreign)) => "the run is another user's",
        Some(Err(AttachError::Version | AttachError::Unfinished)) => {
            "the run is of another version of iolab"
        }
        Some(Err(AttachError::System(_))) => "the run's shared memory cannot be reached from here",
    };
    caution::give_up(why);
    false
}

/// Reads the stage's settings from the environment; true when strategies are to be applied, or files of the
/// run lie in a fast place.
pub(crate) fn start(variable: &dyn Fn(&[u8]) -> Option<&'static [u8]>) -> bool {
    if variable(settings::QUIET_VARIABLE.as_bytes()).is_some() {
        caution::be_quiet();
    }
    let has_fast_place = fast_place::start(variable);
    let is_needed = start_strategies(variable) || has_fast_place;
    if is_needed {
        let limits = super::kernel::limits(libc::RLIMIT_FSIZE);
        if limits.is_some_and(|limits| limits.rlim_cur != libc::RLIM_INFINITY) {
            caution::limit_files();
        }
    }
    is_needed
}

fn start_strategies(variable: &dyn Fn(&[u8]) -> Option<&'static [u8]>) -> bool {
    let Some(value) = variable(settings::VARIABLE.as_bytes()) else { return false };
    let text = std::str::from_utf8(value).ok();
    let parsed = text.and_then(|text| StrategySpec::parse_all(text).ok());
    match parsed.filter(|specs| !specs.is_empty()) {
        Some(specs) => {
            let mut specs = planned::with_plans(specs, variable);
            if specs.is_empty() || !is_allowed(&specs, variable) {
                return false;
            }
            // Stages of other layers are hosted by the libraries of those.
            specs.retain(|spec| spec.layer() == Layer::Posix);
            if specs.is_empty() {
                return false;
            }
            tally::join(variable);
            counted::join(variable);
            tally::begun();
            for spec in specs.extract_if(.., |spec| spec.place().is_some()) {
                fast_place::choose(spec);
            }
            if specs.is_empty() {
                return false;
            }
            life::catch_failures();
            if variable(journal::VARIABLE).is_some() {
                journal::keep();
            }
            let needs_run = |spec: &StrategySpec| {
                let strategy = spec.build();
                strategy.holding_bytes() > 0 || strategy.keeps_bytes()
            };
            if specs.iter().any(needs_run) && !join_run(variable) {
                return false;
            }
            settings::apply(specs);
            true
        }
        None => {
            caution::give_up("the strategies in IOLAB_APPLY cannot be read");
            false
        }
    }
}
