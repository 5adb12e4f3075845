//! Calls after which names mean other files: another root, another space of mounts, a mount. What a
//! process holds is found by its file's name once that process was killed, so nothing is held across.

use crate::mode;
use crate::next::Next;
use crate::{process, stage};

/// Has such a call made with nothing held across it.
pub(super) fn around(work: impl FnOnce() -> usize) -> usize {
    if mode::is_nothing_wanted() || !process::owns_state() {
        return work();
    }
    stage::before_move();
    let result = work();
    stage::after_move();
    result
}

macro_rules! moves {
    ($($name:ident by $next:ident;)*) => {$(
        static $next: Next = {
            const NAME: &str = concat!(stringify!($name), "\0");
            match std::ffi::CStr::from_bytes_with_nul(NAME.as_bytes()) {
                Ok(name) => Next::new(name),
                Err(_) => panic!("a terminated name"),
            }
        };

        /// # Safety
        /// As libc's; its arguments are registers whatever their type.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C-unwind" fn $name(
            a: usize,
            b: usize,
            c: usize,
            d: usize,
            e: usize,
        ) -> usize {
            // SAFETY: the guest's own arguments.
            around(|| unsafe { $next.call([a, b, c, d, e, 0]) })
        }
    )*};
}

moves! {
    chroot by CHROOT;
    unshare by UNSHARE;
    setns by SETNS;
    mount by MOUNT;
    umount2 by UMOUNT2;
    move_mount by MOVE_MOUNT;
    mount_setattr by MOUNT_SETATTR;
}
