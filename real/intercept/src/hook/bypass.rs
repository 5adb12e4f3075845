//! Ways around the hooks: rings of io_uring and contexts of libaio, whose transfers reach the kernel
//! by none of its calls on files.
//!
//! Setting one up passes; the recording says that there is one, and from then on strategies hold
//! nothing.

use crate::moment::{Moment, moment};
use crate::{next, recorder, stage};
use iolab_trace::spool::Unseen;

/// A way around the hooks is being set up.
pub(super) fn around(way: Unseen) {
    recorder::unseen(way);
    stage::step_aside(match way {
        Unseen::IoUring => "the program uses io_uring, whose transfers cannot be seen",
        _ => "the program uses libaio, whose transfers cannot be seen",
    });
}

/// Sets up a ring of io_uring or a context of libaio: transfers that pass by all hooks.
macro_rules! around {
    ($($symbol:ident($($argument:ident)*) is $way:ident;)*) => {$(
        /// # Safety
        /// As the library's.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C-unwind" fn $symbol($($argument: usize),*) -> i32 {
            if moment() == Moment::Usual {
                around(Unseen::$way);
            }
            if next::$symbol.address() == 0 {
                return -libc::ENOSYS;
            }
            // SAFETY: the guest's own arguments.
            unsafe { next::$symbol.call(crate::call::padded([$($argument),*])) as i32 }
        }
    )*};
}

around! {
    io_setup(count context) is Aio;
    io_queue_init(count context) is Aio;
    io_uring_queue_init(entries ring flags) is IoUring;
    io_uring_queue_init_params(entries ring parameters) is IoUring;
}
