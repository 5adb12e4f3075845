//! What was started comes to its end: waits and tests. Each request that a call ends is one record,
//! however many the call was about; a test that finds nothing is none.

use crate::call::Call;
use crate::recorder::{push, record};
use iolab_trace::Function;
use iolab_trace::spool::Record;

/// The result of a wait for what was to be cancelled.
const CANCELLED: i64 = -(libc::ECANCELED as i64);

/// The requests a call is about, before it: MPI overwrites those that end.
pub(crate) fn note_one(call: &mut Call<'_>) {
    note(call, 1, call.word(0));
}

/// As [`note_one`], for `(count, requests, …)`.
pub(crate) fn note_all(call: &mut Call<'_>) {
    note(call, call.int(0), call.word(1));
}

fn note(call: &mut Call<'_>, count: i32, array: usize) {
    let count = usize::try_from(count).unwrap_or(0);
    if array == 0 || call.with(|state| state.requests.is_empty()) {
        return;
    }
    // SAFETY: the guest's array of as many handles, which MPI is about to read.
    call.noted = (0..count).map(|at| unsafe { call.family.handle_in(array, at) }).collect();
}

/// `MPI_Wait`, `MPI_Waitall`.
pub(crate) fn ended_all(call: &mut Call<'_>) {
    ended(call, 0..call.noted.len());
}

/// `MPI_Test(request, flag, status)`.
pub(crate) fn tested_one(call: &mut Call<'_>) {
    tested(call, 1);
}

/// `MPI_Testall(count, requests, flag, statuses)`.
pub(crate) fn tested_all(call: &mut Call<'_>) {
    tested(call, 2);
}

fn tested(call: &Call<'_>, flag: usize) {
    if call.int_at(flag) != 0 {
        ended(call, 0..call.noted.len());
    }
}

/// `MPI_Waitany(count, requests, index, status)`.
pub(crate) fn ended_any(call: &mut Call<'_>) {
    ended(call, usize::try_from(call.int_at(2)));
}

/// `MPI_Testany(count, requests, index, flag, status)`.
pub(crate) fn tested_any(call: &mut Call<'_>) {
    if call.int_at(3) != 0 {
        ended(call, usize::try_from(call.int_at(2)));
    }
}

/// `MPI_Waitsome`, `MPI_Testsome` `(count, requests, ended, indices, statuses)`.
pub(crate) fn ended_some(call: &mut Call<'_>) {
    let count = usize::try_from(call.int_at(2)).unwrap_or(0).min(call.noted.len());
    let indices = call.word(3) as *const i32;
    // SAFETY: MPI has just filled as many.
    let index = |at| unsafe { indices.add(at).read_unaligned() };
    ended(call, (0..count).filter_map(|at| usize::try_from(index(at)).ok()));
}

/// `MPI_Cancel`: if it is not too late, which the end of the request would tell.
pub(crate) fn cancelled(call: &mut Call<'_>) {
    call.with(|state| {
        let numbers = call.noted.iter().filter_map(|request| state.requests.get(request)?.back());
        state.cancelled.extend(numbers);
    });
}

/// `MPI_Request_free`: nobody will wait for it.
pub(crate) fn freed(call: &mut Call<'_>) {
    for request in &call.noted {
        call.with(|state| state.persistent.remove(request));
        let ended = call.with(|state| state.end(*request));
        if let Some(row) = ended.map(|number| wait(call, number)).filter(|row| row.result != 0) {
            push(row);
        }
    }
}

/// After a call that failed: which of its requests ended is not known.
pub(crate) fn forget(call: &Call<'_>) {
    if !call.noted.is_empty() {
        call.with(|state| state.requests.retain(|request, _| !call.noted.contains(request)));
    }
}

fn ended(call: &Call<'_>, which: impl IntoIterator<Item = usize>) {
    for request in which.into_iter().filter_map(|at| call.noted.get(at)) {
        if let Some(number) = call.with(|state| state.end(*request)) {
            push(wait(call, number));
        }
    }
}

/// The record of a wait that has ended.
pub(crate) fn wait(call: &Call<'_>, number: u32) -> Record {
    let was_cancelled = call.with(|state| state.cancelled.remove(&number));
    let result = if was_cancelled { CANCELLED } else { 0 };
    Record { argument: i64::from(number), result, ..record(Function::MPI_WAIT, call.times) }
}
