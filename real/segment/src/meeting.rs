//! Two who must not miss one another: each first says what it is about to do, and looks only then whether the
//! other does. Without a full barrier in between both may find nothing, since a processor may look before
//! others see what it said: x86-64 after a plain store, AArch64 after an exchange, too.

use crate::atomic::{Ordering::SeqCst, fence};

/// To be called between saying and looking. Of two who do so, each looking for what the other says, one
/// finds it.
#[inline]
pub(crate) fn before_looking() {
    fence(SeqCst);
}
