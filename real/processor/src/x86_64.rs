//! x86-64.

use std::arch::asm;

/// What the counter is called.
pub const COUNTER_NAME: &str = "time-stamp counter";

/// The version of libc's symbols that every glibc of this processor has.
pub const LIBC_VERSION: &std::ffi::CStr = c"GLIBC_2.2.5";

/// No page is larger, in bytes.
pub const PAGE_BYTES_MAX: usize = 4 << 10;

/// On pages that nothing else lies on: aligned to the largest pages, and as long.
#[repr(align(4096))]
#[derive(Debug)]
pub struct WholePages<T>(pub T);

const _: () = assert!(align_of::<WholePages<u8>>() == PAGE_BYTES_MAX);

/// The number of `renameat`.
pub const SYS_RENAMEAT: i64 = libc::SYS_renameat;

/// One system call, by the instruction: no hook sees it, `errno` stays, a failure is `-errno`.
///
/// # Safety
/// As for that system call.
#[inline(always)]
pub unsafe fn system_call(number: i64, a: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the kernel's calling convention: it clobbers rcx, r11 and rax only; memory effects are the
    // default.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a[0], in("rsi") a[1], in("rdx") a[2],
            in("r10") a[3], in("r8") a[4], in("r9") a[5],
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// The time-stamp counter, in its own units.
#[inline(always)]
pub fn counter() -> u64 {
    // SAFETY: every x86-64 processor has the instruction.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Whether the counter ticks at one rate in all states of the processor, by the text of `/proc/cpuinfo`.
pub fn is_counter_steady(information: &str) -> bool {
    let flags = information.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    let has = |flag| flags.split_whitespace().any(|word| word == flag);
    has("constant_tsc") && has("nonstop_tsc")
}

/// The address of this thread's control block: names a thread while it lives.
#[inline(always)]
pub fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: the ABI keeps the thread control block's own address in its first word.
    unsafe {
        asm!("mov {}, fs:0", out(reg) pointer, options(nostack, readonly, preserves_flags));
    }
    pointer
}

/// Flags of `open` as traces have them: by their numbers on x86-64.
#[inline(always)]
pub const fn traced_open_flags(flags: i32) -> i32 {
    flags
}

/// Flags of `open` as the system has them, from those in a trace.
#[inline(always)]
pub const fn native_open_flags(flags: i32) -> i32 {
    flags
}
