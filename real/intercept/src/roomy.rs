//! A stack with room, for rare work of ours that needs more than a guest may have left: handlers on an
//! alternate stack of 8 KiB, threads of `PTHREAD_STACK_MIN`.
//!
//! Only where the guest's stack is short is another one taken, since collectors of garbage and
//! profilers look for a thread on its own. To find out takes seven system calls (half a microsecond),
//! so it is for opens and closes and not for transfers. On the stack of the first thread, which never
//! shrinks, it takes one as long as no call is deeper than those before.

use crate::processor::instructions::on_stack;
use crate::system;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What the work may take, with a guest's own signal handler on top of it.
const WANTED: usize = 24 << 10;
const PAGE: usize = 4096;
const STACK_BYTES: usize = 256 << 10;

#[repr(align(64))]
struct Stack {
    bytes: UnsafeCell<[u8; STACK_BYTES]>,
    taken: AtomicBool,
}

// SAFETY: the bytes belong to whoever set `taken`.
unsafe impl Sync for Stack {}

static STACKS: [Stack; 8] =
    [const { Stack { bytes: UnsafeCell::new([0; STACK_BYTES]), taken: AtomicBool::new(false) } };
        8];

/// In a forked child, where whoever else was on one of them is not there any more.
pub(crate) fn enter_child() {
    let here = &raw const STACKS as usize..(&raw const STACKS as usize + size_of_val(&STACKS));
    let marker = 0_u8;
    if !here.contains(&(&raw const marker as usize)) {
        STACKS.iter().for_each(|stack| stack.taken.store(false, Ordering::Relaxed));
    }
}

/// Does the work where there is room. It must come back: no unwinding, no cancellation.
pub(crate) fn with_room(work: &mut dyn FnMut()) {
    let marker = 0_u8;
    if has_room(&raw const marker as usize) {
        return work();
    }
    let Some(stack) = STACKS.iter().find(|it| !it.taken.swap(true, Ordering::Acquire)) else {
        return work();
    };
    let mut work = work;
    // SAFETY: the stack is this call's own; `run` gets what it expects.
    unsafe { on_stack(stack.bytes.get() as usize + STACK_BYTES, run, &raw mut work as usize) };
    stack.taken.store(false, Ordering::Release);
}

extern "C" fn run(work: usize) {
    // SAFETY: what `with_room` handed over, still alive on the other stack.
    unsafe { (*(work as *mut &mut dyn FnMut()))() }
}

fn has_room(here: usize) -> bool {
    // SAFETY: fills the structure it is given.
    unsafe {
        let mut stack = std::mem::zeroed::<libc::stack_t>();
        system::raw3(libc::SYS_sigaltstack, 0, &raw mut stack as usize, 0);
        if stack.ss_flags & libc::SS_ONSTACK != 0 {
            return here - stack.ss_sp as usize >= WANTED;
        }
    }
    if is_on_first_stack(here) && here - WANTED >= FIRST_STACK_LOW.load(Ordering::Relaxed) {
        return true;
    }
    // It grows when it is used, which looking for memory from aside does not.
    if is_on_first_stack(here) && system::is_checked() {
        return true;
    }
    let has_room = (1..=WANTED / PAGE).all(|page| system::is_readable((here - page * PAGE) & !7));
    if has_room && is_on_first_stack(here) {
        FIRST_STACK_LOW.fetch_min(here - WANTED, Ordering::Relaxed);
    }
    has_room
}

/// From here on up there is memory of the first thread's stack.
static FIRST_STACK_LOW: AtomicUsize = AtomicUsize::new(usize::MAX);
/// No other mapping is put that near below the first thread's stack (the kernel leaves 128 MiB).
const FIRST_STACK_BYTES: usize = 64 << 20;

/// Whether an address is of the first thread's stack: below what the kernel has put at its top.
fn is_on_first_stack(here: usize) -> bool {
    // SAFETY: looks up a word of the auxiliary vector.
    let top = unsafe { libc::getauxval(libc::AT_RANDOM) } as usize;
    here < top && top - here < FIRST_STACK_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_thread_is_on_the_first_stack() {
        // Tests run in threads of their own.
        let marker = 0_u8;
        assert!(!is_on_first_stack(&raw const marker as usize));
        // SAFETY: looks up a word.
        let top = unsafe { libc::getauxval(libc::AT_RANDOM) } as usize;
        assert!(is_on_first_stack(top - PAGE));
        assert!(has_room(&raw const marker as usize));
    }

    #[test]
    fn work_is_done_once_with_room_and_on_another_stack_without() {
        let mut count = 0;
        with_room(&mut || count += 1);
        assert_eq!(count, 1);
        let stack = &STACKS[0];
        let mut place = 0;
        let mut work: &mut dyn FnMut() = &mut || {
            let marker = 0_u8;
            place = &raw const marker as usize;
        };
        // SAFETY: nobody else uses this stack in this test.
        unsafe {
            on_stack(stack.bytes.get() as usize + STACK_BYTES, run, &raw mut work as usize);
        }
        let start = stack.bytes.get() as usize;
        assert!((start..start + STACK_BYTES).contains(&place));
    }
}
