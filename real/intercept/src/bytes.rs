//! What compiled code calls to copy, fill and compare bytes: libc's functions, past whoever stands in front of them.
//!
//! By the loader's order the names would lead to a sanitizer's runtime first. That takes what this library does with
//! memory of its own for something that the program does: it knows nothing of the locks in here, so a program under the
//! thread sanitizer would be told of races in this library, and end with another exit code. So the names are
//! defined here, for this library alone (hidden), and lead on to the libraries behind it.
//!
//! Costs a jump, as the way by the loader's table would. Until [`find`] was called short functions of our own do.

use crate::next;
use crate::processor::{bytes, way_to_libc};
use std::ffi::CStr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// Where a name leads.
struct Way(AtomicPtr<()>);

impl Way {
    const fn new(first: unsafe extern "C" fn()) -> Way {
        Way(AtomicPtr::new(first as *mut ()))
    }

    fn find(&self, name: &CStr) {
        match next::symbol(name) {
            0 => {}
            address => self.0.store(address as *mut (), Relaxed),
        }
    }
}

static MEMCPY: Way = Way::new(bytes::moved);
static MEMMOVE: Way = Way::new(bytes::moved);
static MEMSET: Way = Way::new(bytes::set);
static MEMCMP: Way = Way::new(bytes::compared);
static BCMP: Way = Way::new(bytes::compared);
static STRLEN: Way = Way::new(bytes::length);
static STRNLEN: Way = Way::new(bytes::length_within);

way_to_libc!("memcpy", MEMCPY);
way_to_libc!("memmove", MEMMOVE);
way_to_libc!("memset", MEMSET);
way_to_libc!("memcmp", MEMCMP);
way_to_libc!("bcmp", BCMP);
way_to_libc!("strlen", STRLEN);
way_to_libc!("strnlen", STRNLEN);

/// Finds libc's functions; called once at start.
pub(crate) fn find() {
    MEMCPY.find(c"memcpy");
    MEMMOVE.find(c"memmove");
    MEMSET.find(c"memset");
    MEMCMP.find(c"memcmp");
    BCMP.find(c"bcmp");
    STRLEN.find(c"strlen");
    STRNLEN.find(c"strnlen");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::transmute;

    type Move = unsafe extern "C" fn(*mut u8, *const u8, usize) -> *mut u8;
    type Fill = unsafe extern "C" fn(*mut u8, i32, usize) -> *mut u8;
    type Compare = unsafe extern "C" fn(*const u8, *const u8, usize) -> i32;
    type Within = unsafe extern "C" fn(*const u8, usize) -> usize;

    const NUMBERS: [u8; 40] = {
        let mut all = [0; 40];
        let mut at = 0;
        while at < 40 {
            all[at] = at as u8 + 1;
            at += 1;
        }
        all
    };

    #[test]
    fn bytes_are_moved_whole_in_both_directions() {
        // SAFETY: the function has these arguments; all ranges lie in the array.
        unsafe {
            let moved = transmute::<unsafe extern "C" fn(), Move>(bytes::moved);
            for (from, to, length) in [(0, 8, 24), (8, 0, 24), (0, 20, 20), (5, 5, 9), (3, 4, 0)] {
                let (mut all, mut expected) = (NUMBERS, NUMBERS);
                expected.copy_within(from..from + length, to);
                let start = all.as_mut_ptr();
                assert_eq!(moved(start.add(to), start.add(from), length), start.add(to));
                assert_eq!(all, expected, "{length} bytes from {from} to {to}");
            }
        }
    }

    #[test]
    fn bytes_are_filled_compared_and_counted_as_by_libc() {
        // SAFETY: the functions have these arguments; all ranges lie in the arrays.
        unsafe {
            let set = transmute::<unsafe extern "C" fn(), Fill>(bytes::set);
            let mut all = NUMBERS;
            let start = all.as_mut_ptr();
            assert_eq!(set(start.add(2), 0x1ff, 3), start.add(2));
            assert_eq!(all[..6], [1, 2, 255, 255, 255, 6]);
            let compared = transmute::<unsafe extern "C" fn(), Compare>(bytes::compared);
            let order = |length| compared(all.as_ptr(), NUMBERS.as_ptr(), length).signum();
            assert_eq!([order(0), order(2), order(3), -order(40)], [0, 0, 1, -1]);
            assert_eq!(compared(NUMBERS.as_ptr(), all.as_ptr(), 9).signum(), -1);
            let length = transmute::<unsafe extern "C" fn(), Within>(bytes::length);
            assert_eq!(
                [length(c"".as_ptr().cast(), 0), length(c"four".as_ptr().cast(), 0)],
                [0, 4]
            );
            let within = transmute::<unsafe extern "C" fn(), Within>(bytes::length_within);
            let counted = [0, 3, 9].map(|most| within(c"four".as_ptr().cast(), most));
            assert_eq!(counted, [0, 3, 4]);
        }
    }
}
