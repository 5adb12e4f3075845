//! `flistxattr`, which no trace has: the attributes of a file in a fast place are the real file's, so their names
//! are as well.

use crate::call::padded;
use crate::moment::{Moment, moment};
use crate::next::Next;
use crate::{errno, stage};

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn flistxattr(fd: usize, list: usize, size: usize) -> usize {
    static NEXT: Next = Next::new(c"flistxattr");
    let at_home = || stage::attribute_names(fd as i32, list, size);
    match (moment() == Moment::Usual).then(at_home).flatten() {
        None => {
            // SAFETY: the guest's own arguments.
            unsafe { NEXT.call(padded([fd, list, size])) }
        }
        Some(result) if result < 0 => {
            errno::set(-result as i32);
            usize::MAX
        }
        Some(result) => result as usize,
    }
}
