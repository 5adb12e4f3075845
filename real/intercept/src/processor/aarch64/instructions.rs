//! Short pieces in the midst of other code.

use crate::thread::Block;
use std::arch::{asm, global_asm, naked_asm};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

global_asm!(
    ".section .tbss.iolab_thread_block,\"awT\",@nobits",
    ".globl iolab_thread_block",
    ".hidden iolab_thread_block",
    ".type iolab_thread_block, @object",
    ".size iolab_thread_block, 256",
    ".p2align 6",
    "iolab_thread_block:",
    ".zero 256",
    ".text",
);

/// The calling thread's block (`crate::thread`).
#[inline(always)]
pub(crate) fn thread_block() -> *const Block {
    let address: *const Block;
    // SAFETY: reads the offset of the block from the global offset table and adds the thread pointer.
    unsafe {
        asm!(
            "adrp {0}, :gottprel:iolab_thread_block",
            "ldr {0}, [{0}, #:gottprel_lo12:iolab_thread_block]",
            "mrs {1}, tpidr_el0",
            "add {0}, {0}, {1}",
            out(reg) address,
            out(reg) _,
            options(nostack, pure, readonly, preserves_flags),
        );
    }
    address
}

/// Compare-and-exchange that need only be atomic towards the thread's own signal handlers: in no order with
/// anything, since a thread sees its own accesses in order.
#[inline(always)]
pub(crate) fn exchange(word: &AtomicU64, old: u64, new: u64) -> bool {
    word.compare_exchange(old, new, Relaxed, Relaxed).is_ok()
}

/// Adds to a word, so that a signal handler of the thread comes before it or after it.
#[inline(always)]
pub(crate) fn add(word: &AtomicI64, value: i64) {
    word.fetch_add(value, Relaxed);
}

/// Calls a function on another stack.
///
/// # Safety
/// `top` is the end of memory that is nobody else's; the function takes the argument and comes back.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn on_stack(
    top: usize,
    function: extern "C" fn(usize),
    argument: usize,
) {
    naked_asm!(
        "stp x29, x30, [sp, #-16]!",
        "mov x29, sp",
        "mov sp, x0",
        "mov x0, x2",
        "blr x1",
        "mov sp, x29",
        "ldp x29, x30, [sp], #16",
        "ret"
    )
}

/// Calls a function in a new task on this stack, below what is in use, and returns when it has ended:
/// with its number, or the error of the system.
///
/// # Safety
/// With these flags of `clone` this thread waits until the task has ended.
#[inline(never)]
pub(crate) unsafe fn in_task(flags: i32, function: extern "C" fn(usize), argument: usize) -> isize {
    let result: isize;
    // SAFETY: by this function's contract, and the task never leaves these lines.
    unsafe {
        asm!(
            "svc 0",
            "cbnz x0, 2f",
            "mov x0, x21",
            "blr x20",
            "mov x0, xzr",
            "mov x8, #{exit}",
            "svc 0",
            "2:",
            exit = const libc::SYS_exit,
            in("x8") libc::SYS_clone,
            inlateout("x0") flags as usize => result,
            in("x1") 0_usize,
            in("x2") 0_usize,
            in("x3") 0_usize,
            in("x4") 0_usize,
            in("x20") function as usize,
            in("x21") argument,
            clobber_abi("C"),
        );
    }
    result
}

global_asm!(
    // (first byte, end) -> whether every page could be touched: in steps of the smallest pages there are.
    // Writing puts back what was read, unless somebody wrote meanwhile.
    ".hidden iolab_touch_read, iolab_touch_write, iolab_touch_end, iolab_touch_fault",
    ".globl iolab_touch_read, iolab_touch_write, iolab_touch_end, iolab_touch_fault",
    ".p2align 4",
    "iolab_touch_read:",
    "ldrb w2, [x0]",
    "orr x0, x0, #4095",
    "add x0, x0, #1",
    "cmp x0, x1",
    "b.lo iolab_touch_read",
    "mov w0, #1",
    "ret",
    ".p2align 4",
    "iolab_touch_write:",
    "ldxrb w2, [x0]",
    "stxrb w3, w2, [x0]",
    "cbnz w3, iolab_touch_write",
    "orr x0, x0, #4095",
    "add x0, x0, #1",
    "cmp x0, x1",
    "b.lo iolab_touch_write",
    "mov w0, #1",
    "ret",
    "iolab_touch_end:",
    "iolab_touch_fault:",
    "mov w0, wzr",
    "ret",
);

/// The instruction at which a signal has come, and where the thread is to go on.
pub(crate) fn program_counter(context: &mut libc::ucontext_t) -> (usize, impl FnOnce(usize)) {
    let at = &mut context.uc_mcontext.pc;
    (*at as usize, move |next| *at = next as u64)
}
