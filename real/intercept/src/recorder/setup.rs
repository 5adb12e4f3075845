//! Files and mappings of the recorder: this process's spool, and where the control page is mapped.
//!
//! Descriptors are closed at once, so that a program that closes all it can find harms nothing;
//! to grow, the file is opened again by its name. Room is allocated before it is used: a full
//! disk makes the recorder stop and count, and never the program fail.

use super::text::Text;
use super::{apart, clock, page, unattended};
use crate::mode::Mode;
use crate::{process, system, thread};
use iolab_trace::launchers::LAUNCHERS;
use iolab_trace::spool::{
    CHUNK_BYTES, CONTROL_BYTES, CONTROL_MAGIC, Lost, PROCESS_MAGIC, SPOOL_VERSION, control, layer,
    process as head, state,
};
use std::ffi::c_char;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

static SPOOL: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static FAILED: AtomicBool = AtomicBool::new(false);
static KEY: AtomicU32 = AtomicU32::new(u32::MAX);
static ARGUMENTS: AtomicPtr<*const c_char> = AtomicPtr::new(std::ptr::null_mut());
static ARGUMENT_COUNT: AtomicUsize = AtomicUsize::new(0);
static RANK: AtomicU32 = AtomicU32::new(u32::MAX);
static SIZE: AtomicU32 = AtomicU32::new(0);
static DIRECTORY: Text = Text::new();
static FILE: Text = Text::new();
static SPARE: Text = Text::new();

/// This process's spool, if it was set up.
pub(super) fn head() -> Option<*const u8> {
    let spool = SPOOL.load(Ordering::Acquire);
    (!spool.is_null()).then_some(spool.cast_const())
}

/// This process's spool, made now if there is none yet.
pub(super) fn spool() -> Option<*const u8> {
    if head().is_none() && !FAILED.swap(true, Ordering::AcqRel) {
        match make() {
            Ok(()) => FAILED.store(false, Ordering::Relaxed),
            Err(reason) => page::lost(reason),
        }
    }
    head()
}

/// Reads the settings and makes the spool; `leave` is called at the end of each thread that has
/// recorded. The answer is what is to be recorded.
pub(super) fn start(
    count: i32,
    arguments: *const *const c_char,
    variable: &dyn Fn(&[u8]) -> Option<&'static [u8]>,
    leave: extern "C" fn(*mut libc::c_void),
) -> Mode {
    match (variable(b"IOLAB_SPOOL"), variable(unattended::VARIABLE)) {
        (Some(directory), _) => DIRECTORY.push(directory),
        (None, Some(parent)) if !parent.is_empty() => {
            if let Err(problem) = unattended::find(&DIRECTORY, parent, variable) {
                problem.say();
                DIRECTORY.clear();
                return Mode::NOTHING;
            }
        }
        _ => return Mode::NOTHING,
    }
    ARGUMENTS.store(arguments.cast_mut(), Ordering::Relaxed);
    ARGUMENT_COUNT.store(count.max(0) as usize, Ordering::Relaxed);
    let (rank, size) = place_in_job(variable);
    RANK.store(rank, Ordering::Relaxed);
    SIZE.store(size, Ordering::Relaxed);
    if !open_control() {
        // A recording that is over expects nothing of a process that outlives it.
        if is_there() {
            system::say(
                b"iolab: not recorded: this process may not reach the recording (another user?)\n",
            );
        }
        return Mode::NOTHING;
    }
    make_key(leave);
    clock::choose(page::word(control::CLOCK).is_some_and(|w| w.load(Ordering::Relaxed) == 0));
    spool();
    layers()
}

/// Notes in the run that a program is not recorded, since it lives under a filter. By calls the loader
/// makes as well.
pub(crate) fn note_filtered(variable: &dyn Fn(&[u8]) -> Option<&'static [u8]>) {
    if let Some(directory) = variable(b"IOLAB_SPOOL") {
        DIRECTORY.push(directory);
        if open_control() {
            page::unseen(iolab_trace::spool::Unseen::Filtered);
        }
    }
}

/// Whether `FILE` is there, or may be.
fn is_there() -> bool {
    let a = [libc::AT_FDCWD as usize, FILE.address(), 0, 0, 0, 0];
    // SAFETY: a terminated path.
    unsafe { system::raw(libc::SYS_faccessat, a) != -(libc::ENOENT as isize) }
}

fn layers() -> Mode {
    let bits = page::word(control::LAYERS).map_or(0, |word| word.load(Ordering::Relaxed));
    let mut mode = Mode::RECORD;
    let layers = [
        (layer::POSIX, Mode::RECORD_POSIX),
        (layer::STDIO, Mode::RECORD_STDIO),
        (layer::BELOW, Mode::RECORD_BELOW),
        (layer::MPI, Mode::RECORD_MPI),
        (layer::HDF5, Mode::RECORD_HDF5),
        (layer::NETCDF, Mode::RECORD_NETCDF),
    ];
    for (at, layer) in layers {
        if bits & 1 << at != 0 {
            mode = Mode(mode.0 | layer.0);
        }
    }
    mode
}

/// The rank a parallel launcher gave this process, `u32::MAX` (-1) for none, and how many it says there
/// are, 0 where it says nothing.
fn place_in_job(variable: &dyn Fn(&[u8]) -> Option<&'static [u8]>) -> (u32, u32) {
    let variable = |name: &str| variable(name.as_bytes());
    let found = LAUNCHERS.iter().find_map(|launcher| Some((launcher, variable(launcher.rank)?)));
    let Some((launcher, rank)) = found else { return (u32::MAX, 0) };
    let size = launcher.sizes.iter().find_map(|name| variable(name)).and_then(number);
    number(rank).map_or((u32::MAX, 0), |rank| (rank, size.unwrap_or(0)))
}

fn number(text: &[u8]) -> Option<u32> {
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| u32::from(byte - b'0'));
    let add = |number: u32, byte| Some(number.wrapping_mul(10).wrapping_add(digit(byte)?));
    if text.is_empty() { None } else { text.iter().try_fold(0, add) }
}

fn open_control() -> bool {
    FILE.clear();
    FILE.push(DIRECTORY.text());
    FILE.push(b"/control");
    let Some(mapped) = map_file(libc::O_RDWR, CONTROL_BYTES, 0) else { return false };
    page::set(mapped as *mut u8);
    let magic = page::counter(control::MAGIC).map_or(0, |word| word.load(Ordering::Relaxed));
    let version = page::word(control::VERSION).map_or(0, |word| word.load(Ordering::Relaxed));
    let fits = magic == CONTROL_MAGIC && version == SPOOL_VERSION;
    if !fits {
        page::set(std::ptr::null_mut());
    }
    fits
}

/// Opens `FILE`, maps `length` bytes of it (at an address, when one is given) and closes it again.
fn map_file(flags: i32, length: usize, at: usize) -> Option<usize> {
    let fd = open_file(flags)?;
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let fixed = if at == 0 { 0 } else { libc::MAP_FIXED };
    let kind = (libc::MAP_SHARED | fixed) as usize;
    // SAFETY: a new mapping, or one over address space reserved for it.
    let page = unsafe {
        let page = system::raw(libc::SYS_mmap, [at, length, protection, kind, fd, 0]);
        system::raw3(libc::SYS_close, fd, 0, 0);
        page
    };
    (!(-4095..0).contains(&page)).then_some(page as usize)
}

fn open_file(flags: i32) -> Option<usize> {
    let flags = (flags | libc::O_CLOEXEC) as usize;
    // As the loader opens files, so that a filter of system calls lets it pass; no link is followed.
    let a =
        [libc::AT_FDCWD as usize, FILE.address(), flags | libc::O_NOFOLLOW as usize, 0o600, 0, 0];
    // SAFETY: a terminated path.
    let fd = unsafe { system::raw(libc::SYS_openat, a) };
    usize::try_from(fd).ok()
}

/// A limit of this process, `u64::MAX` for none.
pub(super) fn limit(which: u32) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: 0 };
    // SAFETY: fills the structure it is given.
    unsafe {
        let place = &raw mut limit as usize;
        system::raw(libc::SYS_prlimit64, [0, which as usize, 0, place, 0, 0]);
    }
    limit.rlim_cur
}

/// The size every process file is given.
fn process_bytes() -> u64 {
    page::counter(control::PROCESS_BYTES).map_or(0, |word| word.load(Ordering::Relaxed))
}

/// Opens `FILE`, made in its full size, of which only what is used will have room behind it: so no
/// limit on the size of files can come between later. A process that may not make such a file takes
/// one that the launcher has made.
fn new_file() -> Result<usize, Lost> {
    if limit(libc::RLIMIT_FSIZE) < process_bytes() {
        let taken = page::word(control::SPARES_TAKEN).ok_or(Lost::Setup)?;
        let made = page::word(control::SPARES).ok_or(Lost::Setup)?.load(Ordering::Acquire);
        let number = taken.fetch_add(1, Ordering::AcqRel);
        if number >= made {
            return Err(Lost::FileSize);
        }
        SPARE.clear();
        SPARE.push(DIRECTORY.text());
        SPARE.push(b"/spare-");
        SPARE.push_decimal(number);
        // SAFETY: terminated paths.
        let moved = unsafe { system::rename(SPARE.address(), FILE.address()) };
        return if moved == 0 {
            open_file(libc::O_RDWR).ok_or(Lost::Setup)
        } else {
            Err(Lost::Setup)
        };
    }
    let fd = open_file(libc::O_RDWR | libc::O_CREAT | libc::O_EXCL).ok_or(Lost::Setup)?;
    // SAFETY: our own descriptor.
    let sized = unsafe { system::raw3(libc::SYS_ftruncate, fd, process_bytes() as usize, 0) };
    if sized == 0 {
        return Ok(fd);
    }
    // SAFETY: our own descriptor.
    unsafe { system::raw3(libc::SYS_close, fd, 0, 0) };
    Err(Lost::Disk)
}

/// Makes and maps this process's file and fills its head.
fn make() -> Result<(), Lost> {
    let index = page::word(control::PROCESSES).ok_or(Lost::Setup)?.fetch_add(1, Ordering::Relaxed);
    FILE.clear();
    FILE.push(DIRECTORY.text());
    FILE.push(b"/process-");
    FILE.push_decimal(process::number());
    FILE.push(b"-");
    FILE.push_decimal(index);
    claim(CHUNK_BYTES as u64, true)?;
    let base = apart::with_descriptor(new_mapping)?;
    populate(base, 0)?;
    fill_head(base as *mut u8, index);
    SPOOL.store(base as *mut u8, Ordering::Release);
    Ok(())
}

/// Makes `FILE` and maps it; no descriptor stays.
fn new_mapping() -> Result<usize, Lost> {
    let fd = new_file()?;
    let base = map_spool(fd);
    // SAFETY: our own descriptor.
    unsafe { system::raw3(libc::SYS_close, fd, 0, 0) };
    base.ok_or(Lost::Address)
}

/// Maps the file over address space for as many chunks as there may ever be, at a multiple of the
/// chunk size. A process whose address space is limited (`ulimit -v`) gives little of it.
fn map_spool(fd: usize) -> Option<usize> {
    let most = process_bytes() as usize;
    let share = (limit(libc::RLIMIT_AS) / 64) as usize / CHUNK_BYTES * CHUNK_BYTES;
    let wanted = most.min(share.max(16 * CHUNK_BYTES));
    [wanted, wanted.min(64 << 20), wanted.min(1 << 20)].into_iter().find_map(|length| {
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as usize;
        let space = length + CHUNK_BYTES;
        // SAFETY: reserves address space without memory behind it, and maps over it. The rest of the
        // reservation, on both sides, is given back.
        unsafe {
            let found = system::raw(libc::SYS_mmap, [0, space, 0, flags, usize::MAX, 0]);
            if (-4095..0).contains(&found) {
                return None;
            }
            let found = found as usize;
            let base = found.next_multiple_of(CHUNK_BYTES);
            let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
            let kind = (libc::MAP_SHARED | libc::MAP_FIXED) as usize;
            let mapped = system::raw(libc::SYS_mmap, [base, length, protection, kind, fd, 0]);
            if (-4095..0).contains(&mapped) {
                system::raw3(libc::SYS_munmap, found, space, 0);
                return None;
            }
            if base > found {
                system::raw3(libc::SYS_munmap, found, base - found, 0);
            }
            system::raw3(libc::SYS_munmap, base + length, found + CHUNK_BYTES - base, 0);
            // A core dump need not contain it.
            system::raw3(libc::SYS_madvise, base, length, libc::MADV_DONTDUMP as usize);
            CAPACITY.store(length / CHUNK_BYTES - 1, Ordering::Relaxed);
            Some(base)
        }
    })
}

/// `MADV_POPULATE_WRITE` of Linux 5.14.
const POPULATE_WRITE: usize = 23;

/// Has memory or disk behind a chunk of the mapping (0 is the head), so that writing to it cannot
/// fail. Needs no descriptor and no path, so that it works in a process that changed its user or its
/// root, or has no descriptor left.
fn populate(base: usize, chunk: usize) -> Result<(), Lost> {
    let at = base + chunk * CHUNK_BYTES;
    // SAFETY: advice on our own mapping.
    let done = unsafe { system::raw3(libc::SYS_madvise, at, CHUNK_BYTES, POPULATE_WRITE) };
    match done {
        0 => Ok(()),
        error if error == -(libc::EINVAL as isize) => {
            apart::with_descriptor(|| populate_by_file(chunk))
        }
        _ => Err(Lost::Disk),
    }
}

/// The same for older kernels.
fn populate_by_file(chunk: usize) -> Result<(), Lost> {
    let fd = open_file(libc::O_RDWR).ok_or(Lost::Setup)?;
    let done = allocate(fd, chunk * CHUNK_BYTES, CHUNK_BYTES);
    // SAFETY: our own descriptor.
    unsafe { system::raw3(libc::SYS_close, fd, 0, 0) };
    done
}

/// Chunks the mapping has room for.
static CAPACITY: AtomicUsize = AtomicUsize::new(0);

/// Counts bytes against the limit of the run. The head of a file is always granted: a process of
/// which nothing could be kept must at least show that it was there.
fn claim(bytes: u64, always: bool) -> Result<(), Lost> {
    let used = page::counter(control::USED).ok_or(Lost::Setup)?;
    let limit = page::counter(control::LIMIT).ok_or(Lost::Setup)?.load(Ordering::Relaxed);
    if used.fetch_add(bytes, Ordering::Relaxed) + bytes > limit && !always {
        used.fetch_sub(bytes, Ordering::Relaxed);
        return Err(Lost::Limit);
    }
    Ok(())
}

static ZEROS: [AtomicU64; CHUNK_BYTES / 8] = [const { AtomicU64::new(0) }; CHUNK_BYTES / 8];

/// Allocates room in the file, so that writing to the mapping cannot fail.
fn allocate(fd: usize, offset: usize, length: usize) -> Result<(), Lost> {
    // SAFETY: our own descriptor; the zeros are static.
    unsafe {
        match system::raw(libc::SYS_fallocate, [fd, 0, offset, length, 0, 0]) {
            0 => Ok(()),
            error
                if error == -(libc::EOPNOTSUPP as isize)
                    && limit(libc::RLIMIT_FSIZE) >= (offset + length) as u64 =>
            {
                let zeros = ZEROS.as_ptr() as usize;
                let a = [fd, zeros, length.min(CHUNK_BYTES), offset, 0, 0];
                let written = system::raw(libc::SYS_pwrite64, a);
                if written == length as isize { Ok(()) } else { Err(Lost::Disk) }
            }
            _ => Err(Lost::Disk),
        }
    }
}

/// Adds a chunk to the file; it belongs to the caller.
pub(super) fn grow(base: *const u8) -> Result<usize, Lost> {
    claim(CHUNK_BYTES as u64, false)?;
    // SAFETY: within the head.
    let chunks = unsafe { &*(base.add(head::CHUNKS) as *const AtomicU32) };
    let index = chunks.fetch_add(1, Ordering::Relaxed) as usize;
    let added = add_chunk(index);
    match added {
        Ok(()) => {
            // SAFETY: within the head; `add_chunk` checked the index.
            let state =
                unsafe { &*(base.add(head::STATES + index) as *const std::sync::atomic::AtomicU8) };
            state.store(state::OWNED, Ordering::Release);
            Ok(index)
        }
        Err(reason) => {
            if let Some(used) = page::counter(control::USED) {
                used.fetch_sub(CHUNK_BYTES as u64, Ordering::Relaxed);
            }
            Err(reason)
        }
    }
}

fn add_chunk(index: usize) -> Result<(), Lost> {
    if index >= CAPACITY.load(Ordering::Relaxed) || index >= head::CHUNKS_MAX {
        let small = process_bytes() < 16 * CHUNK_BYTES as u64;
        return Err(if small { Lost::FileSize } else { Lost::Address });
    }
    let base = head().ok_or(Lost::Setup)?;
    populate(base as usize, index + 1)
}

/// Sets a flag of the head, if there is one.
pub(super) fn set_flag(flag: u32) {
    if let Some(base) = head() {
        // SAFETY: within the head.
        unsafe { &*(base.add(head::FLAGS) as *const AtomicU32) }.fetch_or(flag, Ordering::Relaxed);
    }
}

fn fill_head(base: *mut u8, index: u32) {
    let put = |at: usize, value: u32| {
        // SAFETY: within the head, which is mapped and allocated.
        unsafe { (base.add(at) as *mut u32).write(value) }
    };
    let words = [
        (head::VERSION, SPOOL_VERSION),
        (head::CHUNK_BYTES, CHUNK_BYTES as u32),
        (head::PID, process::number()),
        (head::PARENT, process::parent()),
        (head::RANK, RANK.load(Ordering::Relaxed)),
        (head::INDEX, index),
        (head::SIZE, SIZE.load(Ordering::Relaxed)),
        (head::FLAGS, FORK_FLAGS.load(Ordering::Relaxed)),
    ];
    for (at, value) in words {
        put(at, value);
    }
    // SAFETY: three words within the head.
    clock::calibrate(|index| unsafe { &*(base.add(head::START + index * 8) as *const AtomicU64) });
    fill_texts(base);
    // SAFETY: the first word; written last, it makes the head valid.
    unsafe { &*(base.add(head::MAGIC) as *const AtomicU64) }
        .store(PROCESS_MAGIC, Ordering::Release);
}

/// Flags a process starts with: those of its parent when it is a fork of it.
static FORK_FLAGS: AtomicU32 = AtomicU32::new(0);

fn fill_texts(base: *mut u8) {
    // SAFETY: each call writes at most the room given, inside the head.
    unsafe {
        let mut names = std::mem::zeroed::<libc::utsname>();
        system::raw3(libc::SYS_uname, &raw mut names as usize, 0, 0);
        let host = names.nodename.as_ptr().cast::<u8>();
        std::ptr::copy_nonoverlapping(host, base.add(head::HOST), names.nodename.len());
        let directory = base.add(head::DIRECTORY) as usize;
        system::raw3(libc::SYS_getcwd, directory, head::DIRECTORY_BYTES - 1, 0);
        let program = base.add(head::PROGRAM) as usize;
        system::read_link(c"/proc/self/exe", program, head::PROGRAM_BYTES - 1);
        fill_command(base);
    }
}

unsafe fn fill_command(base: *mut u8) {
    let arguments = ARGUMENTS.load(Ordering::Relaxed);
    let mut at = 0;
    for index in 0..ARGUMENT_COUNT.load(Ordering::Relaxed) {
        // SAFETY: the loader's array of terminated texts; the head has room for what is checked.
        unsafe {
            let argument = *arguments.add(index);
            if argument.is_null() {
                return;
            }
            let length = libc::strlen(argument);
            if at + length + 2 > head::COMMAND_BYTES {
                return;
            }
            std::ptr::copy_nonoverlapping(argument.cast(), base.add(head::COMMAND + at), length);
            at += length + 1;
        }
    }
}

/// A forked child: nothing of the parent's is its own; it gets a spool when it first records.
pub(crate) fn enter_child() {
    let flags = head().map_or(0, |base| {
        // SAFETY: the parent's head is still mapped.
        unsafe { &*(base.add(head::FLAGS) as *const AtomicU32) }.load(Ordering::Relaxed)
    });
    FORK_FLAGS.store(flags & head::PATCHED | head::FORKED, Ordering::Relaxed);
    let parents = SPOOL.swap(std::ptr::null_mut(), Ordering::Relaxed);
    FAILED.store(false, Ordering::Relaxed);
    let block = thread::block();
    block.cursor.store(0, Ordering::Relaxed);
    block.number.store(0, Ordering::Relaxed);
    let is_adding = !block.end_runs();
    if !parents.is_null() {
        let length = (CAPACITY.load(Ordering::Relaxed) + 1) * CHUNK_BYTES;
        // SAFETY: the parent's spool, into which nobody writes here any more; address space may be
        // limited.
        unsafe { system::raw3(libc::SYS_munmap, parents as usize, length, 0) };
        if is_adding {
            // A signal handler forked in the middle of an addition, which is the parent's to make:
            // here it goes into memory that nobody reads.
            let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            let flags = (flags | libc::MAP_FIXED) as usize;
            let a = [parents as usize, length, protection, flags, usize::MAX, 0];
            // SAFETY: where the spool was.
            unsafe { system::raw(libc::SYS_mmap, a) };
        }
    }
}

/// The program is about to limit its address space: gives back what it does not need of its own.
pub(crate) fn before_address_limit(limit: u64) {
    let Some(base) = head() else { return };
    // SAFETY: within the head.
    let claimed = unsafe { &*(base.add(head::CHUNKS) as *const AtomicU32) }.load(Ordering::Relaxed);
    let before = CAPACITY.load(Ordering::Relaxed);
    let share = (limit / 64) as usize / CHUNK_BYTES;
    let kept = (claimed as usize + share.max(16)).min(before);
    CAPACITY.store(kept, Ordering::Relaxed);
    let start = base as usize + (kept + 1) * CHUNK_BYTES;
    // SAFETY: the unused end of our own mapping. A thread that claims a chunk there at this moment
    // finds no room and counts what it loses.
    unsafe { system::raw3(libc::SYS_munmap, start, (before - kept) * CHUNK_BYTES, 0) };
}

/// Whether a path leads into the spool directory.
pub(crate) fn is_own_file(path: &[u8]) -> bool {
    let directory = DIRECTORY.text();
    !directory.is_empty() && path.starts_with(directory) && path.get(directory.len()) == Some(&b'/')
}

fn make_key(leave: extern "C" fn(*mut libc::c_void)) {
    let mut key = 0;
    // SAFETY: early, so that the key is among those that need no memory of their own.
    if unsafe { libc::pthread_key_create(&mut key, Some(leave)) } == 0 {
        KEY.store(key, Ordering::Relaxed);
    }
}

/// Has what was given at start called when the thread ends.
pub(super) fn call_at_thread_end() {
    let key = KEY.load(Ordering::Relaxed);
    if key != u32::MAX {
        // SAFETY: a key of ours; any value but null arms the destructor.
        unsafe { libc::pthread_setspecific(key, std::ptr::dangling_mut::<u8>().cast()) };
    }
}
