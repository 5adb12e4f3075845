//! The independent call that stands for a collective one: it has the same arguments, moves the same pointer, and
//! fills the same status.

use crate::exchange::Place;
use crate::next::Next;
use iolab_vocab::Direction;

/// A function of MPI's, by its address.
#[derive(Clone, Copy)]
pub(super) struct Function(usize);

/// The function that does alone what a collective one does together; none if this MPI does not have it. With large
/// counts, the usual one where there is no other: that the count fits has been seen to.
pub(super) fn function(
    direction: Direction,
    place: Place,
    has_large_counts: bool,
) -> Option<Function> {
    static READ: [Next; 2] = [Next::new(c"PMPI_File_read"), Next::new(c"PMPI_File_read_c")];
    static READ_AT: [Next; 2] =
        [Next::new(c"PMPI_File_read_at"), Next::new(c"PMPI_File_read_at_c")];
    static WRITE: [Next; 2] = [Next::new(c"PMPI_File_write"), Next::new(c"PMPI_File_write_c")];
    static WRITE_AT: [Next; 2] =
        [Next::new(c"PMPI_File_write_at"), Next::new(c"PMPI_File_write_at_c")];
    let [usual, large] = match (direction, place) {
        (Direction::Read, Place::Own) => &READ,
        (Direction::Read, Place::Explicit) => &READ_AT,
        (Direction::Write, Place::Own) => &WRITE,
        (Direction::Write, Place::Explicit) => &WRITE_AT,
    };
    let large = if has_large_counts { large.get() } else { None };
    large.or_else(|| usual.get()).map(Function)
}

/// A collective access without and with an offset.
type Five = unsafe extern "C-unwind" fn(usize, usize, usize, usize, usize) -> i32;
type Six = unsafe extern "C-unwind" fn(usize, usize, usize, usize, usize, usize) -> i32;

/// Makes the call with the arguments of the collective one.
pub(super) fn perform(Function(address): Function, words: &[usize]) -> i32 {
    // SAFETY: the guest's own arguments, for a function that takes as many of the same kinds: with an
    // offset one more than without.
    unsafe {
        match *words {
            [a, b, c, d, e] => std::mem::transmute::<usize, Five>(address)(a, b, c, d, e),
            [a, b, c, d, e, f] => std::mem::transmute::<usize, Six>(address)(a, b, c, d, e, f),
            _ => unreachable!("a collective access has five or six arguments"),
        }
    }
}
