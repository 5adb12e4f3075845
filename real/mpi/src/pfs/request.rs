//! Requests of calls that go on: generalised ones, which are complete when the program gets them.

use super::numbers::Class;
use super::status::set_status;
use super::trouble::Trouble;
use crate::family::Family;
use crate::profiling;

/// Writes a request that is complete to an address.
///
/// # Safety
/// There must be room for a handle.
pub(super) unsafe fn completed(address: usize, bytes: u64) -> Result<(), Trouble> {
    let [query, free, cancel] = [query as *const (), free as *const (), cancel as *const ()];
    let extra = Box::into_raw(Box::new(bytes));
    // SAFETY: functions of the types that MPI has for them; the caller's promise.
    let answer = unsafe {
        profiling::grequest_start(
            query as usize,
            free as usize,
            cancel as usize,
            extra as usize,
            address,
        )
    };
    if answer != 0 {
        // SAFETY: nobody else has it.
        drop(unsafe { Box::from_raw(extra) });
        let text = format!("MPI_Grequest_start fails with code {answer}");
        return Err(Trouble::new(Class::Other, text));
    }
    // SAFETY: the request that was just made.
    unsafe {
        let request = Family::here().handle_at(address);
        profiling::grequest_complete(request);
    }
    Ok(())
}

unsafe extern "C" fn query(extra: *mut u64, status: usize) -> i32 {
    // SAFETY: what the request was made with, and a status of MPI's.
    unsafe { set_status(status, *extra) };
    0
}

unsafe extern "C" fn free(extra: *mut u64) -> i32 {
    // SAFETY: what the request was made with, for the last time.
    drop(unsafe { Box::from_raw(extra) });
    0
}

/// Too late, always.
unsafe extern "C" fn cancel(_extra: *mut u64, _is_complete: i32) -> i32 {
    0
}
