//! Requests of non-blocking writes that are held: over as soon as they are made.
//!
//! Generalised requests (MPI 4.0, section 13.2), which every function that waits, tests or asks knows. All there is to
//! remember of one is how many bytes its write had, so that is its extra state, and nothing has to be kept or freed.

use crate::family::Family;
use crate::pfs::numbers::Class;
use crate::pfs::status::set_status;
use crate::pfs::trouble::Trouble;
use crate::profiling;

/// Writes to an address the request of a write of so many bytes that is over.
///
/// # Errors
/// MPI makes no request.
///
/// # Safety
/// There must be room for a handle.
pub(super) unsafe fn make_over(address: usize, bytes: u64) -> Result<(), Trouble> {
    let [query, free, cancel] = [query as *const (), free as *const (), cancel as *const ()];
    let [query, free, cancel] = [query, free, cancel].map(|function| function as usize);
    // SAFETY: functions of the types that MPI has for them, and the caller's promise.
    let made = unsafe { profiling::grequest_start(query, free, cancel, bytes as usize, address) };
    let answer = match made {
        // SAFETY: the request that was just made, which is completed once.
        0 => unsafe { profiling::grequest_complete(Family::here().handle_at(address)) },
        code => code,
    };
    match answer {
        0 => Ok(()),
        code => {
            let text = format!("MPI makes no request: it answers {code}");
            Err(Trouble::new(Class::Other, text))
        }
    }
}

/// What the program is told of its end.
unsafe extern "C" fn query(bytes: usize, status: usize) -> i32 {
    // SAFETY: a status of MPI's.
    unsafe { set_status(status, bytes as u64) };
    0
}

unsafe extern "C" fn free(_bytes: usize) -> i32 {
    0
}

/// Too late, always.
unsafe extern "C" fn cancel(_bytes: usize, _is_complete: i32) -> i32 {
    0
}
