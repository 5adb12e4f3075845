//! The jump that takes the place of a function's beginning.

use std::arch::asm;

/// Bytes of the jump.
pub(crate) const JUMP_BYTES: usize = 20;

/// `bti c; ldr x16, =hook; br x16`. The first one lets who jumps through a register come in, where the
/// processor asks for it, and is nothing elsewhere.
pub(crate) fn jump_to(hook: usize) -> [u8; JUMP_BYTES] {
    const WORDS: [u32; 3] = [0xd503_245f, 0x5800_0050, 0xd61f_0200];
    let mut jump = [0; JUMP_BYTES];
    let words = WORDS.iter().flat_map(|word| word.to_le_bytes());
    for (to, from) in jump.iter_mut().zip(words.chain(hook.to_le_bytes())) {
        *to = from;
    }
    jump
}

/// Whether a second function begins within the first instructions of one: none does here.
pub(crate) fn has_inner_entry(_: &[u8; JUMP_BYTES]) -> bool {
    false
}

/// Has the processor execute code that was written at `address` just now, which it may have read before.
pub(crate) fn make_visible(address: usize) {
    // SAFETY: cleans and forgets cached copies of the jump, a word at a time, since no line is shorter; then
    // what was fetched already. Nothing changes.
    unsafe {
        for word in (address..address + JUMP_BYTES).step_by(4) {
            asm!("dc cvau, {}", in(reg) word, options(nostack, preserves_flags));
        }
        asm!("dsb ish", options(nostack, preserves_flags));
        for word in (address..address + JUMP_BYTES).step_by(4) {
            asm!("ic ivau, {}", in(reg) word, options(nostack, preserves_flags));
        }
        asm!("dsb ish", "isb", options(nostack, preserves_flags));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_jump_leads_to_the_hook_from_an_address_that_is_no_multiple_of_eight() {
        extern "C" fn hook() -> usize {
            4711
        }
        let read_write = (libc::PROT_READ | libc::PROT_WRITE) as usize;
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
        let bytes = iolab_processor::page_bytes();
        // SAFETY: a page of this test's own, which is made executable when it holds the jump.
        unsafe {
            let a = [0, bytes, read_write, flags, usize::MAX, 0];
            let page = iolab_processor::system_call(libc::SYS_mmap, a) as usize;
            let at = page + 4;
            let jump = jump_to(hook as *const () as usize);
            (at as *mut [u8; JUMP_BYTES]).write(jump);
            make_visible(at);
            let executable = (libc::PROT_READ | libc::PROT_EXEC) as usize;
            let a = [page, bytes, executable, 0, 0, 0];
            assert_eq!(iolab_processor::system_call(libc::SYS_mprotect, a), 0);
            let call = std::mem::transmute::<usize, extern "C" fn() -> usize>(at);
            assert_eq!(call(), 4711);
            iolab_processor::system_call(libc::SYS_munmap, [page, bytes, 0, 0, 0, 0]);
        }
    }
}
