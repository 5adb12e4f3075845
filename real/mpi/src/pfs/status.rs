//! Statuses of MPI's: what a call tells the program of what it moved.

use super::numbers::Numbers;
use crate::family::Family;
use crate::profiling;

/// Says in a status how many bytes were moved.
///
/// # Safety
/// It must be the program's status, or what stands for none.
pub(crate) unsafe fn set_status(status: usize, bytes: u64) {
    if status == Numbers::here().ignored_status || status == 0 {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe {
        profiling::status_set_elements(status, Family::here().byte, bytes as usize);
        profiling::status_set_cancelled(status, 0);
    }
}
