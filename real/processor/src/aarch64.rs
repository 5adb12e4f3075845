//! AArch64 (Graviton, Grace, Ampere, and others of Arm's v8 and v9).

use std::arch::asm;

/// What the counter is called.
pub const COUNTER_NAME: &str = "virtual counter";

/// The version of libc's symbols that every glibc of this processor has: the first one.
pub const LIBC_VERSION: &std::ffi::CStr = c"GLIBC_2.17";

/// No page is larger, in bytes: kernels are built for 4, 16 or 64 KiB.
pub const PAGE_BYTES_MAX: usize = 64 << 10;

/// On pages that nothing else lies on: aligned to the largest pages, and as long.
#[repr(align(65536))]
#[derive(Debug)]
pub struct WholePages<T>(pub T);

const _: () = assert!(align_of::<WholePages<u8>>() == PAGE_BYTES_MAX);

/// The number of `renameat`.
pub const SYS_RENAMEAT: i64 = 38;

/// One system call, by the instruction: no hook sees it, `errno` stays, a failure is `-errno`.
///
/// # Safety
/// As for that system call.
#[inline(always)]
pub unsafe fn system_call(number: i64, a: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the kernel's calling convention: it changes x0 only; memory effects are the default.
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a[0] => result,
            in("x1") a[1], in("x2") a[2], in("x3") a[3], in("x4") a[4], in("x5") a[5],
            options(nostack),
        );
    }
    result
}

/// The virtual counter of the generic timer, in its own units: 1 to 40 ns. The barrier keeps it from being
/// read before what stands before it.
#[inline(always)]
pub fn counter() -> u64 {
    let count: u64;
    // SAFETY: Linux lets programs read the counter.
    unsafe {
        asm!("isb", "mrs {}, cntvct_el0", out(reg) count, options(nostack, nomem, preserves_flags));
    }
    count
}

/// Whether the counter ticks at one rate in all states of the processor: the architecture demands it.
pub fn is_counter_steady(_information: &str) -> bool {
    true
}

/// The thread register: names a thread while it lives.
#[inline(always)]
pub fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: reading the register has no effect.
    unsafe {
        asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, nomem, preserves_flags));
    }
    pointer
}

/// The four flags of `open` that Arm numbered otherwise, each with its number on x86-64.
const MOVED: [(i32, i32); 4] = [
    (libc::O_DIRECTORY, 0o200_000),
    (libc::O_NOFOLLOW, 0o400_000),
    (libc::O_DIRECT, 0o40_000),
    (0o400_000, LARGE_FILE),
];

/// `O_LARGEFILE` on x86-64, which is Arm's `O_NOFOLLOW`.
const LARGE_FILE: i32 = 0o100_000;

const fn moved(flags: i32, to_trace: bool) -> i32 {
    let (mut kept, mut added, mut index) = (flags, 0, 0);
    while index < MOVED.len() {
        let (native, traced) = MOVED[index];
        let (from, to) = if to_trace { (native, traced) } else { (traced, native) };
        if flags & from != 0 {
            added |= to;
        }
        kept &= !from;
        index += 1;
    }
    kept | added
}

/// Flags of `open` as traces have them: by their numbers on x86-64.
#[inline]
pub const fn traced_open_flags(flags: i32) -> i32 {
    moved(flags, true)
}

/// Flags of `open` as the system has them, from those in a trace.
#[inline]
pub const fn native_open_flags(flags: i32) -> i32 {
    moved(flags, false)
}
