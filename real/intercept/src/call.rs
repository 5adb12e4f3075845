//! A call on its way through the library: its function and its arguments by name.
//!
//! The wrappers fill the fields that are arguments of their function; the rest stays [`ABSENT`].
//! All of it is inlined: of the structure only the fields that are used exist at run time, as long
//! as its address is taken nowhere but in cold code, which gets a copy.

use crate::next::Next;
use crate::processor::calls;
use crate::{errno, system, thread};
use iolab_trace::Function;
use std::sync::atomic::{AtomicU8, Ordering};

/// The value of an argument the function does not have: -1 where a record shows it.
pub(crate) const ABSENT: usize = usize::MAX;

/// By which way a call came.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// By the name of its function: it goes on to the next library that has one.
    Symbol,
    /// By number, through libc's `syscall`: it goes on to the kernel, whoever else has the function.
    Number,
}

/// How a function of libc reports its result.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Returns {
    /// A `long`; -1 and `errno` for a failure.
    Long,
    /// An `int`; -1 and `errno` for a failure.
    Int,
    /// The error number itself, 0 for success.
    Error,
    /// A pointer, null and `errno` for a failure.
    Pointer,
}

macro_rules! call {
    ($($argument:ident)*) => {
        /// One call.
        #[derive(Clone, Copy)]
        #[allow(dead_code, reason = "one field per word of the function table")]
        pub(crate) struct Call {
            pub(crate) function: Function,
            pub(crate) returns: Returns,
            pub(crate) origin: Origin,
            pub(crate) next: &'static Next,
            /// The arguments in the order of the C function, padded with zeros.
            pub(crate) raw: [usize; 6],
            $(pub(crate) $argument: usize,)*
        }

        impl Call {
            #[inline(always)]
            pub(crate) const fn new(
                function: Function, returns: Returns, next: &'static Next, raw: [usize; 6],
            ) -> Call {
                let origin = Origin::Symbol;
                Call { function, returns, origin, next, raw, $($argument: ABSENT,)* }
            }
        }
    };
}

call! {
    path flags mode directory first last fd buffer length offset capacity vector count whence
    advice new_fd minimum lock operation address protection out_fd in_fd in_offset out_offset
    version new_path new_directory child actions environment command block mode_text stream size text
}

/// Keeps an argument in the call, unless no hook ever looks at it: each field costs a store.
macro_rules! keep {
    (status $call:ident) => {};
    (mask $call:ident) => {};
    (attributes $call:ident) => {};
    (arguments $call:ident) => {};
    (line $call:ident) => {};
    (delimiter $call:ident) => {};
    (character $call:ident) => {};
    (format $call:ident) => {};
    (check $call:ident) => {};
    (owner $call:ident) => {};
    (group $call:ident) => {};
    (times $call:ident) => {};
    (attribute $call:ident) => {};
    (value $call:ident) => {};
    (words $call:ident) => {};
    (watcher $call:ident) => {};
    ($argument:ident $call:ident) => {
        $call.$argument = $argument;
    };
}
pub(crate) use keep;

/// Arguments padded to the six registers.
#[inline(always)]
pub(crate) fn padded<const N: usize>(arguments: [usize; N]) -> [usize; 6] {
    let mut all = [0; 6];
    let mut index = 0;
    while index < N && index < 6 {
        all[index] = arguments[index];
        index += 1;
    }
    all
}

/// The system call behind a function that has the same arguments in the same order.
const fn system_call(function: Function) -> Option<i64> {
    Some(match function {
        Function::OPENAT => libc::SYS_openat,
        Function::CLOSE => libc::SYS_close,
        Function::CLOSE_RANGE => libc::SYS_close_range,
        Function::READ => libc::SYS_read,
        Function::PREAD => libc::SYS_pread64,
        Function::READV => libc::SYS_readv,
        Function::PREADV => libc::SYS_preadv,
        Function::PREADV2 => libc::SYS_preadv2,
        Function::WRITE => libc::SYS_write,
        Function::PWRITE => libc::SYS_pwrite64,
        Function::WRITEV => libc::SYS_writev,
        Function::PWRITEV => libc::SYS_pwritev,
        Function::PWRITEV2 => libc::SYS_pwritev2,
        Function::LSEEK => libc::SYS_lseek,
        Function::FSYNC => libc::SYS_fsync,
        Function::FDATASYNC => libc::SYS_fdatasync,
        Function::SYNCFS => libc::SYS_syncfs,
        Function::FTRUNCATE => libc::SYS_ftruncate,
        Function::FALLOCATE => libc::SYS_fallocate,
        Function::DUP => libc::SYS_dup,
        Function::DUP3 => libc::SYS_dup3,
        Function::FLOCK => libc::SYS_flock,
        Function::MMAP => libc::SYS_mmap,
        Function::MUNMAP => libc::SYS_munmap,
        Function::MSYNC => libc::SYS_msync,
        Function::SENDFILE => libc::SYS_sendfile,
        Function::COPY_FILE_RANGE => libc::SYS_copy_file_range,
        Function::SPLICE => libc::SYS_splice,
        Function::FSTAT => libc::SYS_fstat,
        Function::STAT | Function::LSTAT | Function::FSTATAT => libc::SYS_newfstatat,
        _ => return calls::number(function),
    })
}

impl Call {
    /// Whether a spawn has file actions.
    pub(crate) fn has_actions(&self) -> bool {
        self.actions != ABSENT && self.actions != 0
    }

    /// Whether libc opens files for the child, which no hook sees. Glibc's `posix_spawn_file_actions_t` is
    /// two numbers, the second that of the actions, and where they stand; each begins with its kind.
    pub(crate) fn opens_for_child(&self) -> bool {
        const OPENS: i32 = 2;
        const ACTION_BYTES: usize = 32;
        if !self.has_actions() {
            return false;
        }
        // SAFETY: the program's own actions, as libc made them.
        unsafe {
            let used = *((self.actions + 4) as *const i32);
            let list = *((self.actions + 8) as *const usize);
            let kind = |index: i32| *((list + index as usize * ACTION_BYTES) as *const i32);
            list != 0 && (0..used).any(|index| kind(index) == OPENS)
        }
    }

    /// Whether it goes on to a library that is not libc.
    #[inline(always)]
    fn goes_to_another_library(&self) -> bool {
        self.next.is_foreign() && self.origin == Origin::Symbol
    }

    /// Number and arguments of the system call that does this call, if one does all of it.
    #[inline(always)]
    pub(crate) fn system_call(&self) -> Option<(i64, [usize; 6])> {
        let number = system_call(self.function)?;
        if self.goes_to_another_library() {
            return None;
        }
        if self.version != ABSENT {
            return self.versioned();
        }
        // Libc's own function knows more than the system call, where it is still whole.
        if matches!(self.function, Function::STAT | Function::LSTAT | Function::FSTATAT)
            && !self.next.is_patched()
        {
            return None;
        }
        let mut a = calls::arguments(self.function, self.raw);
        if matches!(self.function, Function::STAT | Function::LSTAT) {
            // As libc does: a filter of the program's may know no other call.
            let follow = self.function == Function::STAT;
            let flags = if follow { 0 } else { libc::AT_SYMLINK_NOFOLLOW as usize };
            a = [libc::AT_FDCWD as usize, a[0], a[1], flags, 0, 0];
        }
        if matches!(self.function, Function::PREADV | Function::PWRITEV) {
            // The kernel takes the offset in two halves; on 64 bits the first holds all of it.
            a[4] = 0;
        }
        if matches!(self.function, Function::PREADV2 | Function::PWRITEV2) {
            (a[4], a[5]) = (0, self.flags);
        }
        Some((number, a))
    }

    /// As libc does that has no function `stat`: a filter of the program's may know no other call.
    fn versioned(&self) -> Option<(i64, [usize; 6])> {
        if !self.next.is_patched() || self.version as u32 > calls::STAT_VERSION_MAX {
            return None;
        }
        let [_, a, b, c, d, _] = self.raw;
        Some(match self.function {
            Function::FSTAT => (libc::SYS_fstat, [a, b, 0, 0, 0, 0]),
            Function::STAT | Function::LSTAT => {
                calls::versioned_status(self.function == Function::LSTAT, a, b)
            }
            _ => (libc::SYS_newfstatat, [a, b, c, d, 0, 0]),
        })
    }

    /// Does the call, as it is, below everything: the kernel, or libc where that does more than
    /// one system call. The result is `-errno` for a failure.
    ///
    /// # Safety
    /// The arguments are the guest's own; they are passed on unread.
    #[inline(always)]
    pub(crate) unsafe fn perform(&self) -> isize {
        match self.system_call() {
            // SAFETY: the guest's arguments, unchanged.
            Some((number, a)) => self.finished(unsafe { system::raw(number, a) }),
            // SAFETY: as above.
            None => unsafe { self.perform_next() },
        }
    }

    /// As [`Call::perform`], for calls in which the thread may wait and may be cancelled.
    ///
    /// # Safety
    /// As [`Call::perform`].
    pub(crate) unsafe fn perform_cancellable(&self) -> isize {
        match self.system_call() {
            // SAFETY: the guest's arguments, unchanged.
            Some((number, a)) => self.finished(unsafe { system::cancellable(number, a) }),
            // SAFETY: as above.
            None => unsafe { self.perform_next() },
        }
    }

    /// What the function answers, from what the system call did.
    #[inline(always)]
    fn finished(&self, result: isize) -> isize {
        let has_flags = matches!(self.function, Function::PREADV2 | Function::PWRITEV2);
        match has_flags && result == -(libc::ENOSYS as isize) {
            true => self.without_flags(),
            false => calls::answer(self.function, self.raw, result),
        }
    }

    /// `preadv2` and `pwritev2` where the kernel has no such calls (before Linux 4.6), as libc does: by the
    /// calls that take no flags.
    #[cold]
    fn without_flags(&self) -> isize {
        let is_read = self.function == Function::PREADV2;
        let [fd, vector, count, offset, ..] = self.raw;
        let (number, offset) = match (is_read, offset == ABSENT) {
            (true, true) => (libc::SYS_readv, 0),
            (false, true) => (libc::SYS_writev, 0),
            (true, false) => (libc::SYS_preadv, offset),
            (false, false) => (libc::SYS_pwritev, offset),
        };
        if self.flags as i32 != 0 {
            return -(libc::EOPNOTSUPP as isize);
        }
        // As libc's own leave it.
        errno::set(libc::ENOSYS);
        // SAFETY: the guest's arguments, in the order of these calls.
        unsafe { system::cancellable(number, [fd, vector, count, offset, 0, 0]) }
    }

    /// Does the call by the next library's function.
    ///
    /// # Safety
    /// As [`Call::perform`].
    pub(crate) unsafe fn perform_next(&self) -> isize {
        if self.version != ABSENT && self.next.is_patched() {
            return -(libc::EINVAL as isize);
        }
        // SAFETY: the guest's arguments, unchanged.
        let value = unsafe {
            match self.origin {
                Origin::Number => self.next.call_libc(self.raw),
                Origin::Symbol if self.next.is_foreign() => {
                    let number = system_call(self.function);
                    thread::below(number, self.raw[0], || self.next.call(self.raw))
                }
                Origin::Symbol => self.next.call(self.raw),
            }
        };
        let failed = match self.returns {
            Returns::Error => return -(value as i32 as isize),
            Returns::Long => value == usize::MAX,
            Returns::Int => value as i32 == -1,
            Returns::Pointer => value == 0,
        };
        match self.returns {
            _ if failed => -(errno::get() as isize),
            Returns::Int => value as i32 as isize,
            _ => value as isize,
        }
    }

    /// Turns a result into what the guest expects: the value, or -1 with `errno` set.
    #[inline(always)]
    pub(crate) fn answer(&self, result: isize) -> usize {
        if self.returns == Returns::Error {
            return result.wrapping_neg() as usize;
        }
        let value = answer(result);
        if self.returns == Returns::Pointer && is_failure(result) { 0 } else { value }
    }
}

/// Whether the kernel has the calls `preadv2` and `pwritev2` (Linux 4.6).
pub(crate) fn kernel_takes_flags() -> bool {
    static KNOWN: AtomicU8 = AtomicU8::new(0);
    const YES: u8 = 1;
    const NO: u8 = 2;
    match KNOWN.load(Ordering::Relaxed) {
        0 => {
            // SAFETY: a descriptor that is none.
            let asked = unsafe { system::raw3(libc::SYS_preadv2, usize::MAX, 0, 0) };
            let has = asked != -(libc::ENOSYS as isize);
            KNOWN.store(if has { YES } else { NO }, Ordering::Relaxed);
            has
        }
        known => known == YES,
    }
}

const fn is_failure(result: isize) -> bool {
    -4095 <= result && result < 0
}

/// Turns a result into the value, or -1 with `errno` set.
#[inline(always)]
pub(crate) fn answer(result: isize) -> usize {
    if !is_failure(result) {
        return result as usize;
    }
    errno::set(-result as i32);
    usize::MAX
}
