//! The environment of a program that is about to be started: with the library where it can live.
//!
//! A program of another C library or another processor is started without, a dynamic sanitizer in front of
//! ours. Everything else gets the environment it was given, after one look at its file. The stage is told
//! before a program starts that will not load the library.

use crate::call::{ABSENT, Call};
use crate::mode::{self, Mode};
use crate::stage::{self, tally};
use crate::{path, recorder, system};
use iolab_trace::program::{self, Foreseen, Missed, Program, must_be_first};
use iolab_trace::spool::Unseen;
use std::sync::atomic::{AtomicBool, Ordering};

/// Scripts that start scripts, looked through.
const SCRIPTS: u32 = 4;
const VARIABLE: &[u8] = b"LD_PRELOAD=";
const LIBRARIES: [&[u8]; 4] =
    [b"libiolab_intercept.so", b"libiolab_mpi.so", b"libiolab_hdf5.so", b"libiolab_netcdf.so"];

/// One line in a process is enough; a recording says it at its end.
static SAID: AtomicBool = AtomicBool::new(false);

/// A call with another environment, which goes when the program was not started.
pub(super) struct Adapted {
    call: Call,
    map: usize,
    length: usize,
}

impl Adapted {
    pub(super) fn call(&self) -> &Call {
        &self.call
    }
}

impl Drop for Adapted {
    fn drop(&mut self) {
        // SAFETY: our own mapping; nobody looks into it after the call.
        unsafe { system::raw3(libc::SYS_munmap, self.map, self.length, 0) };
    }
}

/// The shell of `system` and `popen`.
const SHELL: &[u8] = b"/bin/sh";

/// For an exec of that program, whose argument `at` is the environment.
///
/// # Safety
/// The arguments are the guest's own.
pub(super) unsafe fn of_exec(call: &Call, program: &[u8], at: usize) -> Option<Adapted> {
    if mode::get() == Mode::NOTHING {
        return None;
    }
    // SAFETY: the caller's promise.
    unsafe { adapt(call, program, call.raw[at], at) }
}

/// For a `posix_spawn`, or a command of the shell.
///
/// # Safety
/// The arguments are the guest's own.
pub(super) unsafe fn of_spawn(call: &Call) -> Option<Adapted> {
    if mode::get() == Mode::NOTHING {
        return None;
    }
    // SAFETY: the caller's promise; libc hands on its own variable.
    unsafe {
        if call.environment == ABSENT {
            started(SHELL, given(own_environment()).is_some());
            return None;
        }
        if call.path == ABSENT || call.path == 0 {
            return None;
        }
        adapt(call, path::text(call.path), call.environment, 5)
    }
}

/// The environment a program gets that is not given another one.
pub(super) fn own_environment() -> usize {
    unsafe extern "C" {
        static environ: *const usize;
    }
    // SAFETY: libc's own variable.
    unsafe { environ as usize }
}

/// What a recording is to know of a program before it is started with that environment.
///
/// # Safety
/// The environment is the guest's own.
pub(super) unsafe fn foreseen(file: &[u8], environment: usize) -> Foreseen {
    if !mode::get().has(Mode::RECORD_POSIX) {
        return Foreseen::Unknown;
    }
    // SAFETY: the caller's promise.
    let is_given = unsafe { given(environment) }.is_some();
    let seen = seen(file, SCRIPTS);
    match (missed(&seen, is_given), seen.kind) {
        (Some(why), _) => Foreseen::Misses(why),
        (None, Program::Unknown) => Foreseen::Unknown,
        (None, _) => Foreseen::Loads,
    }
}

/// Why a program will not load the library, if that can be seen.
fn missed(seen: &Seen, is_given: bool) -> Option<Missed> {
    match seen.kind {
        Program::Unknown => None,
        Program::Static => Some(Missed::Static),
        Program::Foreign => Some(Missed::ForeignLibc),
        Program::OtherMachine => Some(Missed::OtherMachine),
        _ if seen.has_other_rights => Some(Missed::SetUser),
        _ => (!is_given).then_some(Missed::Environment),
    }
}

/// What kind of program is about to be started. Who wants to know hears of one that will not load the library.
fn started(program: &[u8], is_given: bool) -> Option<Program> {
    if !is_given && !tally::is_wanted() && !stage::is_any_fast() {
        return None;
    }
    let seen = seen(program, SCRIPTS);
    let missed = missed(&seen, is_given);
    if let Some(why) = missed {
        tally::miss(program, why);
    }
    if missed.is_some() || !is_given {
        stage::before_stranger();
    }
    Some(seen.kind)
}

unsafe fn adapt(call: &Call, program: &[u8], environment: usize, at: usize) -> Option<Adapted> {
    // SAFETY: the caller's promise.
    let found = unsafe { given(environment) };
    let kind = started(program, found.is_some())?;
    let (count, index, value) = found?;
    let has_runtime = words(value).any(must_be_first);
    let first = match &kind {
        Program::Foreign => without(
            Unseen::ForeignLibc,
            b"iolab: a program of another C library runs without iolab's library\n",
        ),
        Program::OtherMachine => without(
            Unseen::OtherMachine,
            b"iolab: a program of 32 bits or for another processor runs without iolab's library\n",
        ),
        Program::After(runtime) => Some(runtime.bytes()),
        _ if has_runtime => None,
        _ => return None,
    };
    let with_ours = !matches!(kind, Program::Foreign | Program::OtherMachine);
    let room = (count + 1) * 8 + VARIABLE.len() + value.len() + first.map_or(0, <[u8]>::len) + 4;
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
    // SAFETY: fresh memory, filled within its room.
    unsafe {
        let map = system::raw(libc::SYS_mmap, [0, room, protection, flags, usize::MAX, 0]);
        if (-4095..0).contains(&map) {
            return None;
        }
        let map = map as usize;
        std::ptr::copy_nonoverlapping(environment as *const usize, map as *mut usize, count + 1);
        let text = (map + (count + 1) * 8) as *mut u8;
        let mut length = 0;
        let mut put = |bytes: &[u8]| {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), text.add(length), bytes.len());
            length += bytes.len();
        };
        put(VARIABLE);
        if let Some(first) = first {
            put(first);
            put(b":");
        }
        for word in words(value) {
            // A runtime in front of the library was put there for a program before this one.
            if !must_be_first(word) && (with_ours || !is_ours(word)) {
                put(word);
                put(b":");
            }
        }
        put(&[0]);
        *(map as *mut usize).add(index) = text as usize;
        let mut changed = *call;
        changed.raw[at] = map;
        Some(Adapted { call: changed, map, length: room })
    }
}

/// A program is started without the library: nothing is put in front of what else it preloads.
fn without(what: Unseen, line: &[u8]) -> Option<&'static [u8]> {
    recorder::unseen(what);
    if !mode::get().has(Mode::RECORD) && !SAID.swap(true, Ordering::Relaxed) {
        system::say(line);
    }
    None
}

/// [`preloads`] of an environment, which is an array of terminated texts, ended by null; none is an empty one.
unsafe fn given<'a>(environment: usize) -> Option<(usize, usize, &'a [u8])> {
    if environment == 0 {
        return None;
    }
    // SAFETY: the caller's promise.
    unsafe { preloads(environment as *const usize) }
}

/// How many variables there are, and which of them preloads this library; none when nothing does.
unsafe fn preloads<'a>(environment: *const usize) -> Option<(usize, usize, &'a [u8])> {
    let mut found = None;
    let mut count = 0;
    // SAFETY: the caller's promise.
    unsafe {
        while *environment.add(count) != 0 {
            let text = std::ffi::CStr::from_ptr(*environment.add(count) as *const libc::c_char);
            if let Some(value) = text.to_bytes().strip_prefix(VARIABLE)
                && words(value).any(is_ours)
            {
                found = found.or(Some((count, value)));
            }
            count += 1;
        }
    }
    found.map(|(index, value)| (count, index, value))
}

fn words(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| matches!(byte, b':' | b' ')).filter(|word| !word.is_empty())
}

fn is_ours(word: &[u8]) -> bool {
    LIBRARIES.iter().any(|name| word.ends_with(name))
}

/// What the file of a program says.
struct Seen {
    kind: Program,
    /// The program gets rights that its starter does not have, so the loader leaves libraries out.
    has_other_rights: bool,
}

/// What kind of program it is; one without a slash is looked for as an exec does.
fn seen(program: &[u8], scripts: u32) -> Seen {
    const NOTHING: Seen = Seen { kind: Program::Unknown, has_other_rights: false };
    if program.contains(&b'/') || program.is_empty() {
        return seen_at(b"", program, scripts).unwrap_or(NOTHING);
    }
    // SAFETY: the terminated name of a variable; what is found is terminated as well.
    let list = unsafe {
        let list = libc::getenv(c"PATH".as_ptr());
        if list.is_null() { b"/bin:/usr/bin" } else { std::ffi::CStr::from_ptr(list).to_bytes() }
    };
    list.split(|&byte| byte == b':')
        .filter_map(|folder| seen_at(folder, program, scripts))
        .find(|seen| seen.kind != Program::Unknown)
        .unwrap_or(NOTHING)
}

fn seen_at(folder: &[u8], name: &[u8], scripts: u32) -> Option<Seen> {
    let file = File::open(folder, name)?;
    let kind = program::look(|offset, to| file.read(offset, to));
    let status = system::status(file.0 as i32).ok().filter(|it| it.st_mode & 0o111 != 0)?;
    drop(file);
    match kind {
        Program::Script(by) if scripts > 0 => Some(seen(by.bytes(), scripts - 1)),
        kind => Some(Seen { kind, has_other_rights: has_other_rights(&status) }),
    }
}

fn has_other_rights(status: &libc::stat) -> bool {
    // SAFETY: they take nothing and cannot fail.
    let (user, group) = unsafe {
        (
            system::raw3(libc::SYS_getuid, 0, 0, 0) as libc::uid_t,
            system::raw3(libc::SYS_getgid, 0, 0, 0) as libc::gid_t,
        )
    };
    status.st_mode & libc::S_ISUID != 0 && status.st_uid != user
        || status.st_mode & libc::S_ISGID != 0 && status.st_gid != group
}

/// A file of ours for a moment.
struct File(usize);

impl File {
    fn open(folder: &[u8], name: &[u8]) -> Option<File> {
        let mut buffer = path::Buffer::new();
        let path = buffer.terminated(folder, name)?;
        let flags = (libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK) as usize;
        let a = [libc::AT_FDCWD as usize, path, flags, 0, 0, 0];
        // SAFETY: a terminated path.
        usize::try_from(unsafe { system::raw(libc::SYS_openat, a) }).ok().map(File)
    }

    fn read(&self, offset: u64, to: &mut [u8]) -> usize {
        let a = [self.0, to.as_mut_ptr() as usize, to.len(), offset as usize, 0, 0];
        // SAFETY: a buffer of the caller's.
        unsafe { system::raw(libc::SYS_pread64, a) }.max(0) as usize
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: our own descriptor.
        unsafe { system::raw3(libc::SYS_close, self.0, 0, 0) };
    }
}
