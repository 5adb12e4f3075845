//! The jump that takes the place of a function's beginning.

/// Bytes of the jump.
pub(crate) const JUMP_BYTES: usize = 12;

/// `mov rax, hook; jmp rax`.
pub(crate) fn jump_to(hook: usize) -> [u8; JUMP_BYTES] {
    let mut jump = [0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0];
    for (to, from) in jump[2..10].iter_mut().zip(hook.to_le_bytes()) {
        *to = from;
    }
    jump
}

/// Before version 2.26, a second function, which is no cancellation point, begins right behind the first
/// question of one that is: whether there are several threads.
pub(crate) fn has_inner_entry(code: &[u8; JUMP_BYTES]) -> bool {
    // `cmpl $0, somewhere; jne …`, where the flag is the file's or the thread's.
    matches!(
        code,
        [0x83, 0x3d, _, _, _, _, 0, 0x75, ..] | [0x64, 0x83, 0x3c, 0x25, _, _, _, _, 0, 0x75, ..]
    )
}

/// Has the processor execute code that was written just now: it sees to that itself.
pub(crate) fn make_visible(_: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_with_a_second_one_inside_are_told() {
        let flag_of_file = [0x83, 0x3d, 0x2d, 0x9b, 0x2d, 0, 0, 0x75, 0x10, 0xb8, 1, 0];
        let flag_of_thread = [0x64, 0x83, 0x3c, 0x25, 0x18, 0, 0, 0, 0, 0x75, 0x10, 0xb8];
        assert!(has_inner_entry(&flag_of_file) && has_inner_entry(&flag_of_thread));
    }

    #[test]
    fn functions_in_one_piece_are_told_too() {
        let of_2_31 = [0x64, 0x8b, 4, 0x25, 0x18, 0, 0, 0, 0x85, 0xc0, 0x75, 0x14];
        let without_cancellation = [0xb8, 0x20, 0, 0, 0, 0x0f, 5, 0x48, 0x3d, 1, 0xf0, 0xff];
        assert!(!has_inner_entry(&of_2_31) && !has_inner_entry(&without_cancellation));
    }
}
