//! Files and mappings of the recorder: the control page of the run and this process's spool.
//!
//! Descriptors are closed at once, so that a program that closes all it can find harms nothing;
//! to grow, the file is opened again by its name. Room is allocated before it is used: a full
//! disk makes the recorder stop and count, and never the program fail.

use super::chunks::leave;
use super::{clock, lost};
use crate::mode::Mode;
use crate::{path, process, system, thread};
use iolab_trace::spool::{
    CHUNK_BYTES, CONTROL_BYTES, CONTROL_MAGIC, Lost, PROCESS_MAGIC, SPOOL_VERSION, control,
    process as head, state,
};
use std::ffi::c_char;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Numbers where there is no run to be unique in (strategies without recording).
pub(super) static LOCAL_NUMBER: AtomicU32 = AtomicU32::new(1);

static CONTROL: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static SPOOL: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static FAILED: AtomicBool = AtomicBool::new(false);
static KEY: AtomicU32 = AtomicU32::new(u32::MAX);
static ARGUMENTS: AtomicPtr<*const c_char> = AtomicPtr::new(std::ptr::null_mut());
static ARGUMENT_COUNT: AtomicUsize = AtomicUsize::new(0);
static RANK: AtomicU32 = AtomicU32::new(u32::MAX);
static DIRECTORY: Text = Text::new();
static FILE: Text = Text::new();

/// A path in static memory, ended by NUL.
struct Text {
    bytes: [AtomicU64; Text::WORDS],
    length: AtomicUsize,
}

impl Text {
    const WORDS: usize = 544;

    const fn new() -> Text {
        Text { bytes: [const { AtomicU64::new(0) }; Text::WORDS], length: AtomicUsize::new(0) }
    }

    fn clear(&self) {
        self.length.store(0, Ordering::Relaxed);
    }

    /// Appends, and ends with a NUL that the next append overwrites.
    fn push(&self, text: &[u8]) {
        let length = self.length.load(Ordering::Relaxed);
        if length + text.len() < Text::WORDS * 8 {
            // SAFETY: within the array; only start and a child's set-up write it.
            unsafe {
                let to = self.bytes.as_ptr().cast::<u8>().cast_mut().add(length);
                std::ptr::copy_nonoverlapping(text.as_ptr(), to, text.len());
                to.add(text.len()).write(0);
            }
            self.length.store(length + text.len(), Ordering::Relaxed);
        }
    }

    fn push_decimal(&self, number: u32) {
        let mut digits = [0; 10];
        let count = path::write_decimal(number, &mut digits);
        self.push(&digits[..count]);
    }

    fn text(&self) -> &[u8] {
        // SAFETY: the first `length` bytes were written.
        unsafe {
            std::slice::from_raw_parts(
                self.bytes.as_ptr().cast(),
                self.length.load(Ordering::Relaxed),
            )
        }
    }

    fn address(&self) -> usize {
        self.bytes.as_ptr() as usize
    }
}

/// A word of the control page, if there is a run.
pub(super) fn control_word(at: usize) -> Option<&'static AtomicU32> {
    let control = CONTROL.load(Ordering::Relaxed);
    // SAFETY: the page stays mapped; the offsets are inside it.
    (!control.is_null()).then(|| unsafe { &*(control.add(at) as *const AtomicU32) })
}

/// A counter of the control page.
pub(super) fn control_counter(at: usize) -> Option<&'static AtomicU64> {
    let control = CONTROL.load(Ordering::Relaxed);
    // SAFETY: as above.
    (!control.is_null()).then(|| unsafe { &*(control.add(at) as *const AtomicU64) })
}

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
            Err(reason) => lost(reason),
        }
    }
    head()
}

/// Reads the settings and makes the spool. The answer is what is to be recorded.
pub(crate) fn start(
    count: i32,
    arguments: *const *const c_char,
    variable: &dyn Fn(&[u8]) -> Option<&'static [u8]>,
) -> Mode {
    let Some(directory) = variable(b"IOLAB_SPOOL") else { return Mode::NOTHING };
    DIRECTORY.push(directory);
    ARGUMENTS.store(arguments.cast_mut(), Ordering::Relaxed);
    ARGUMENT_COUNT.store(count.max(0) as usize, Ordering::Relaxed);
    RANK.store(rank(variable), Ordering::Relaxed);
    if !open_control() {
        system::say(b"iolab: not recorded: the spool directory in IOLAB_SPOOL is no running one\n");
        return Mode::NOTHING;
    }
    make_key();
    clock::choose(control_word(control::CLOCK).is_some_and(|w| w.load(Ordering::Relaxed) == 0));
    spool();
    layers()
}

fn layers() -> Mode {
    let bits = control_word(control::LAYERS).map_or(0, |word| word.load(Ordering::Relaxed));
    let mut mode = Mode::RECORD;
    for (bit, layer) in [(1, Mode::RECORD_POSIX), (2, Mode::RECORD_STDIO), (4, Mode::RECORD_BELOW)]
    {
        if bits & bit != 0 {
            mode = Mode(mode.0 | layer.0);
        }
    }
    mode
}

/// The rank a parallel launcher gave this process; `u32::MAX` (-1) for none.
fn rank(variable: &dyn Fn(&[u8]) -> Option<&'static [u8]>) -> u32 {
    let names: [&[u8]; 4] = [b"PMI_RANK", b"PMIX_RANK", b"OMPI_COMM_WORLD_RANK", b"SLURM_PROCID"];
    let text = names.into_iter().find_map(variable).unwrap_or(b"");
    let mut rank = if text.is_empty() { u32::MAX } else { 0 };
    for &byte in text {
        if !byte.is_ascii_digit() {
            return u32::MAX;
        }
        rank = rank.wrapping_mul(10).wrapping_add(u32::from(byte - b'0'));
    }
    rank
}

fn open_control() -> bool {
    FILE.clear();
    FILE.push(DIRECTORY.text());
    FILE.push(b"/control");
    let Some(page) = map_file(libc::O_RDWR, CONTROL_BYTES, 0) else { return false };
    CONTROL.store(page as *mut u8, Ordering::Relaxed);
    let magic = control_counter(control::MAGIC).map_or(0, |word| word.load(Ordering::Relaxed));
    let version = control_word(control::VERSION).map_or(0, |word| word.load(Ordering::Relaxed));
    let fits = magic == CONTROL_MAGIC && version == SPOOL_VERSION;
    if !fits {
        CONTROL.store(std::ptr::null_mut(), Ordering::Relaxed);
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
    // SAFETY: a terminated path.
    let fd = unsafe { system::raw3(libc::SYS_open, FILE.address(), flags, 0o600) };
    usize::try_from(fd).ok()
}

/// Makes and maps this process's file and fills its head.
fn make() -> Result<(), Lost> {
    let index =
        control_word(control::PROCESSES).ok_or(Lost::Setup)?.fetch_add(1, Ordering::Relaxed);
    FILE.clear();
    FILE.push(DIRECTORY.text());
    FILE.push(b"/process-");
    FILE.push_decimal(process::number());
    FILE.push(b"-");
    FILE.push_decimal(index);
    claim(CHUNK_BYTES as u64, true)?;
    let fd = open_file(libc::O_RDWR | libc::O_CREAT | libc::O_EXCL).ok_or(Lost::Setup)?;
    let allocated = allocate(fd, 0, CHUNK_BYTES);
    // SAFETY: our own descriptor.
    unsafe { system::raw3(libc::SYS_close, fd, 0, 0) };
    allocated?;
    let base = map_spool().ok_or(Lost::Address)?;
    fill_head(base as *mut u8, index);
    SPOOL.store(base as *mut u8, Ordering::Release);
    Ok(())
}

/// Maps the file over address space for as many chunks as there may ever be, at a multiple of the
/// chunk size. A process with little address space gets less.
fn map_spool() -> Option<usize> {
    let limit = control_counter(control::LIMIT)?.load(Ordering::Relaxed) as usize;
    let most =
        (limit.next_multiple_of(CHUNK_BYTES) + 2 * CHUNK_BYTES).min(head::CHUNKS_MAX * CHUNK_BYTES);
    [most, most.min(64 << 20), most.min(4 << 20)].into_iter().find_map(|length| {
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as usize;
        let space = length + CHUNK_BYTES;
        // SAFETY: reserves address space without memory behind it.
        let found = unsafe { system::raw(libc::SYS_mmap, [0, space, 0, flags, usize::MAX, 0]) };
        if (-4095..0).contains(&found) {
            return None;
        }
        CAPACITY.store(length / CHUNK_BYTES - 1, Ordering::Relaxed);
        let base = (found as usize).next_multiple_of(CHUNK_BYTES);
        let mapped = map_file(libc::O_RDWR, length, base)?;
        // SAFETY: advice on our own mapping: a core dump need not contain it.
        unsafe {
            system::raw3(libc::SYS_madvise, mapped, length, libc::MADV_DONTDUMP as usize);
        }
        Some(mapped)
    })
}

/// Chunks the mapping has room for.
static CAPACITY: AtomicUsize = AtomicUsize::new(0);

/// Counts bytes against the limit of the run. The head of a file is always granted: a process of
/// which nothing could be kept must at least show that it was there.
fn claim(bytes: u64, always: bool) -> Result<(), Lost> {
    let used = control_counter(control::USED).ok_or(Lost::Setup)?;
    let limit = control_counter(control::LIMIT).ok_or(Lost::Setup)?.load(Ordering::Relaxed);
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
            error if error == -(libc::EOPNOTSUPP as isize) => {
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
            if let Some(used) = control_counter(control::USED) {
                used.fetch_sub(CHUNK_BYTES as u64, Ordering::Relaxed);
            }
            Err(reason)
        }
    }
}

fn add_chunk(index: usize) -> Result<(), Lost> {
    if index >= CAPACITY.load(Ordering::Relaxed) || index >= head::CHUNKS_MAX {
        return Err(Lost::Address);
    }
    let fd = open_file(libc::O_RDWR).ok_or(Lost::Setup)?;
    let done = allocate(fd, (index + 1) * CHUNK_BYTES, CHUNK_BYTES);
    // SAFETY: our own descriptor.
    unsafe { system::raw3(libc::SYS_close, fd, 0, 0) };
    done
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
    // SAFETY: takes no arguments.
    let parent = unsafe { system::raw3(libc::SYS_getppid, 0, 0, 0) } as u32;
    let words = [
        (head::VERSION, SPOOL_VERSION),
        (head::CHUNK_BYTES, CHUNK_BYTES as u32),
        (head::PID, process::number()),
        (head::PARENT, parent),
        (head::RANK, RANK.load(Ordering::Relaxed)),
        (head::INDEX, index),
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
        let (link, program) =
            (c"/proc/self/exe".as_ptr() as usize, base.add(head::PROGRAM) as usize);
        system::raw3(libc::SYS_readlink, link, program, head::PROGRAM_BYTES - 1);
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
    SPOOL.store(std::ptr::null_mut(), Ordering::Relaxed);
    FAILED.store(false, Ordering::Relaxed);
    let block = thread::block();
    block.cursor.store(0, Ordering::Relaxed);
    block.number.store(0, Ordering::Relaxed);
}

/// Whether a path leads into the spool directory.
pub(crate) fn is_own_file(path: &[u8]) -> bool {
    let directory = DIRECTORY.text();
    !directory.is_empty() && path.starts_with(directory) && path.get(directory.len()) == Some(&b'/')
}

fn make_key() {
    let mut key = 0;
    // SAFETY: early, so that the key is among those that need no memory of their own.
    if unsafe { libc::pthread_key_create(&mut key, Some(leave)) } == 0 {
        KEY.store(key, Ordering::Relaxed);
    }
}

/// Has `leave` called when the thread ends.
pub(super) fn call_at_thread_end() {
    let key = KEY.load(Ordering::Relaxed);
    if key != u32::MAX {
        // SAFETY: a key of ours; any value but null arms the destructor.
        unsafe { libc::pthread_setspecific(key, std::ptr::dangling_mut::<u8>().cast()) };
    }
}
