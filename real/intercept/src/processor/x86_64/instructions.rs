//! Short pieces in the midst of other code.

use crate::thread::Block;
use std::arch::{asm, global_asm, naked_asm};
use std::sync::atomic::{AtomicI64, AtomicU64};

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
            "mov {0}, qword ptr [rip + iolab_thread_block@GOTTPOFF]",
            "add {0}, qword ptr fs:[0]",
            out(reg) address,
            options(nostack, pure, readonly),
        );
    }
    address
}

/// Compare-and-exchange that is atomic towards the thread's own signal handlers only.
#[inline(always)]
pub(crate) fn exchange(word: &AtomicU64, old: u64, new: u64) -> bool {
    let mut found = old;
    // SAFETY: one instruction on a word of this thread.
    unsafe {
        asm!(
            "cmpxchg qword ptr [{word}], {new}",
            word = in(reg) word.as_ptr(),
            new = in(reg) new,
            inout("rax") found,
            options(nostack),
        );
    }
    found == old
}

/// Adds to a word, so that a signal handler of the thread comes before it or after it.
#[inline(always)]
pub(crate) fn add(word: &AtomicI64, value: i64) {
    // SAFETY: one instruction on a word that only this thread writes.
    unsafe {
        asm!(
            "add qword ptr [{word}], {value}",
            word = in(reg) word.as_ptr(),
            value = in(reg) value,
            options(nostack),
        );
    }
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
        "push rbp",
        "mov rbp, rsp",
        "mov rsp, rdi",
        "mov rdi, rdx",
        "call rsi",
        "mov rsp, rbp",
        "pop rbp",
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
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "mov rdi, r13",
            "call r12",
            "xor edi, edi",
            "mov eax, {exit}",
            "syscall",
            "2:",
            exit = const libc::SYS_exit,
            inlateout("rax") libc::SYS_clone as isize => result,
            inlateout("rdi") flags as usize => _,
            inlateout("rsi") 0_usize => _,
            inlateout("rdx") 0_usize => _,
            inlateout("r10") 0_usize => _,
            inlateout("r8") 0_usize => _,
            in("r12") function as usize,
            in("r13") argument,
            clobber_abi("C"),
        );
    }
    result
}

global_asm!(
    // (first byte, end) -> whether every page could be touched. Writing adds nothing, in one piece.
    ".hidden iolab_touch_read, iolab_touch_write, iolab_touch_end, iolab_touch_fault",
    ".globl iolab_touch_read, iolab_touch_write, iolab_touch_end, iolab_touch_fault",
    ".p2align 4",
    "iolab_touch_read:",
    "mov al, byte ptr [rdi]",
    "or rdi, 4095",
    "inc rdi",
    "cmp rdi, rsi",
    "jb iolab_touch_read",
    "mov al, 1",
    "ret",
    ".p2align 4",
    "iolab_touch_write:",
    "lock add byte ptr [rdi], 0",
    "or rdi, 4095",
    "inc rdi",
    "cmp rdi, rsi",
    "jb iolab_touch_write",
    "mov al, 1",
    "ret",
    "iolab_touch_end:",
    "iolab_touch_fault:",
    "xor eax, eax",
    "ret",
);

/// The instruction at which a signal has come, and where the thread is to go on.
pub(crate) fn program_counter(context: &mut libc::ucontext_t) -> (usize, impl FnOnce(usize)) {
    let at = &mut context.uc_mcontext.gregs[libc::REG_RIP as usize];
    (*at as usize, move |next| *at = next as i64)
}
