//! Requests of calls that go on: generalised ones.
//!
//! The call itself goes on by itself; MPI hears of its end when the program asks for it, in the program's own
//! thread: so nothing is needed of MPI's that every program does not have. Functions that wait for
//! requests wait for ours first, and give MPI its turns meanwhile; those that wait for one of several
//! ask MPI again and again. A request of ours that failed is told by its file's error handler, not by the one that MPI
//! has for requests.

use super::numbers::{Class, Numbers};
use super::ongoing::Ongoing;
use super::session;
use super::status::set_status;
use super::trouble::{self, Trouble};
use crate::family::Family;
use crate::profiling;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long the end of the program waits for calls whose requests it has given up.
const LAST_WAIT: Duration = Duration::from_secs(20);

/// A request of ours.
struct Request {
    ongoing: Arc<Ongoing>,
    handle: AtomicUsize,
    /// MPI has been told that it is over.
    is_complete: AtomicBool,
    /// MPI has given it back: a function has told the program of its end.
    is_freed: AtomicBool,
}

/// What there is, by handle; and those that the program has given up while they went on.
struct Table {
    live: BTreeMap<usize, Arc<Request>>,
    orphans: Vec<Arc<Request>>,
}

static TABLE: Mutex<Table> = Mutex::new(Table { live: BTreeMap::new(), orphans: Vec::new() });
/// Requests in the table: functions about MPI's own requests look no further while there are none.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn table() -> MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn change(work: impl FnOnce(&mut Table)) {
    let mut table = table();
    work(&mut table);
    COUNT.store(table.live.len() + table.orphans.len(), Ordering::Release);
}

/// Whether there are requests of ours.
pub(crate) fn are_there() -> bool {
    COUNT.load(Ordering::Acquire) > 0
}

/// How a function of MPI's has to do with the end of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completing {
    /// `MPI_Wait(request, status)`.
    Wait,
    /// `MPI_Test(request, flag, status)`.
    Test,
    /// `MPI_Waitall(count, requests, statuses)`.
    WaitAll,
    /// `MPI_Testall(count, requests, flag, statuses)`.
    TestAll,
    /// `MPI_Waitany(count, requests, index, status)`.
    WaitAny,
    /// `MPI_Testany(count, requests, index, flag, status)`.
    TestAny,
    /// `MPI_Waitsome(count, requests, ended, indices, statuses)`.
    WaitSome,
    /// `MPI_Testsome(count, requests, ended, indices, statuses)`.
    TestSome,
    /// `MPI_Request_get_status(request, flag, status)`: the request itself is the argument.
    Status,
    /// `MPI_Request_get_status_all`, `…_any`, `…_some`: as the tests, without an end.
    Statuses,
    /// `MPI_Request_free(request)`.
    Free,
    /// `MPI_Finalize()`.
    Finalize,
}

/// Writes a request of a call to an address.
///
/// # Safety
/// There must be room for a handle.
pub(super) unsafe fn make(address: usize, ongoing: Arc<Ongoing>) -> Result<(), Trouble> {
    let [query, free, cancel] = [query as *const (), free as *const (), cancel as *const ()];
    let request = Arc::new(Request {
        ongoing,
        handle: AtomicUsize::new(0),
        is_complete: AtomicBool::new(false),
        is_freed: AtomicBool::new(false),
    });
    let extra = Arc::into_raw(request.clone());
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
        drop(unsafe { Arc::from_raw(extra) });
        // The program gets no request, and may use its memory again.
        let _ = request.ongoing.wait();
        let text = format!("MPI_Grequest_start fails with code {answer}");
        return Err(Trouble::new(Class::Other, text));
    }
    // SAFETY: the request that was just made.
    let handle = unsafe { Family::here().handle_at(address) };
    request.handle.store(handle, Ordering::Relaxed);
    if request.ongoing.is_over() {
        request.complete();
    }
    change(|table| drop(table.live.insert(handle, request)));
    Ok(())
}

/// Waits for all that goes on on a file.
pub(super) fn settle(file: usize) {
    let table = table();
    let all = table.live.values().chain(&table.orphans);
    let of_file = all.filter(|request| request.ongoing.file.handle() == file).cloned();
    let of_file: Vec<Arc<Request>> = of_file.collect();
    drop(table);
    for request in of_file {
        let _ = request.ongoing.wait();
    }
}

impl Request {
    /// Tells MPI that it is over, once.
    fn complete(&self) {
        if !self.is_complete.swap(true, Ordering::AcqRel) {
            // SAFETY: a request of ours that MPI has not been told of.
            unsafe { profiling::grequest_complete(self.handle.load(Ordering::Relaxed)) };
        }
    }

    /// Tells MPI if it is over; whether it is.
    fn look(&self) -> bool {
        let is_over = self.ongoing.is_over();
        if is_over {
            self.complete();
        }
        is_over
    }
}

unsafe extern "C" fn query(extra: *const Request, status: usize) -> i32 {
    // SAFETY: what the request was made with.
    let result = unsafe { (*extra).ongoing.result() };
    let bytes = result.and_then(Result::ok).unwrap_or(0);
    // SAFETY: a status of MPI's.
    unsafe { set_status(status, bytes) };
    0
}

unsafe extern "C" fn free(extra: *const Request) -> i32 {
    // SAFETY: what the request was made with, for the last time.
    let request = unsafe { Arc::from_raw(extra) };
    request.is_freed.store(true, Ordering::Release);
    let handle = request.handle.load(Ordering::Relaxed);
    change(|table| {
        if table.live.get(&handle).is_some_and(|live| Arc::ptr_eq(live, &request)) {
            table.live.remove(&handle);
        }
    });
    0
}

/// Too late, always.
unsafe extern "C" fn cancel(_extra: *const Request, _is_complete: i32) -> i32 {
    0
}

/// Does what a function about the end of requests needs of those that are ours, and performs it.
pub(crate) fn complete(
    how: Completing,
    name: &str,
    words: &[usize],
    perform: &mut dyn FnMut(&[usize]) -> i32,
) -> i32 {
    tidy();
    let ours = listed(how, words);
    if ours.is_empty() && how != Completing::Finalize {
        return perform(words);
    }
    let answer = match how {
        Completing::Wait | Completing::WaitAll => {
            for (_, request) in &ours {
                let _ = request.ongoing.wait();
                request.complete();
            }
            perform(words)
        }
        Completing::WaitAny | Completing::WaitSome => one_of(how, words, &ours, perform),
        Completing::Free => {
            let orphans = ours.iter().filter(|(_, request)| !request.look());
            let orphans: Vec<_> = orphans.map(|(_, request)| request.clone()).collect();
            let answer = perform(words);
            change(|table| table.orphans.extend(orphans));
            return answer;
        }
        Completing::Finalize => {
            give_up_nothing();
            return perform(words);
        }
        _ => {
            if ours.iter().filter(|(_, request)| request.look()).count() < ours.len() {
                // Programs that ask in a loop leave the processor to who does the work.
                std::thread::yield_now();
            }
            perform(words)
        }
    };
    match answer {
        0 => told(how, name, words, &ours),
        _ => answer,
    }
}

/// Requests of ours that a function is about, and their places in its list.
fn listed(how: Completing, words: &[usize]) -> Vec<(usize, Arc<Request>)> {
    let family = Family::here();
    let word = |at: usize| words.get(at).copied().unwrap_or(0);
    let (count, array) = match how {
        Completing::Finalize => return Vec::new(),
        Completing::Status => {
            let found = table().live.get(&family.handle(word(0))).cloned();
            return found.into_iter().map(|request| (0, request)).collect();
        }
        Completing::Wait | Completing::Test | Completing::Free => (1, word(0)),
        _ => (usize::try_from(word(0) as i32).unwrap_or(0), word(1)),
    };
    if array == 0 {
        return Vec::new();
    }
    let table = table();
    // SAFETY: the program's array of as many handles, which MPI is about to read.
    let handle = |at| unsafe { family.handle_in(array, at) };
    (0..count).filter_map(|at| Some((at, table.live.get(&handle(at))?.clone()))).collect()
}

/// Waits until one of several is over, ours or MPI's.
fn one_of(
    how: Completing,
    words: &[usize],
    ours: &[(usize, Arc<Request>)],
    perform: &mut dyn FnMut(&[usize]) -> i32,
) -> i32 {
    loop {
        if ours.iter().any(|(_, request)| request.look()) {
            return perform(words);
        }
        let word = |at: usize| words.get(at).copied().unwrap_or(0);
        let mut flag = 0i32;
        // SAFETY: the program's arguments, which both functions take alike, and room for the flag.
        let (answer, found) = unsafe {
            match how {
                Completing::WaitAny => {
                    let flag_at = &raw mut flag as usize;
                    let answer = profiling::test_any(word(0), word(1), word(2), flag_at, word(3));
                    (answer, flag != 0)
                }
                _ => {
                    let answer = profiling::test_some(word(0), word(1), word(2), word(3), word(4));
                    (answer, (word(2) as *const i32).read_unaligned() != 0)
                }
            }
        };
        if answer != 0 || found {
            return answer;
        }
        session::pause();
    }
}

/// Tells of those that ended with an error; the answer of the function.
fn told(how: Completing, name: &str, words: &[usize], ours: &[(usize, Arc<Request>)]) -> i32 {
    let failed: Vec<_> = ours
        .iter()
        .filter(|(_, request)| request.is_freed.load(Ordering::Acquire))
        .filter_map(|(at, request)| Some((*at, request, request.ongoing.result()?.err()?)))
        .collect();
    if failed.is_empty() {
        return 0;
    }
    let numbers = Numbers::here();
    let word = |at: usize| words.get(at).copied().unwrap_or(0);
    // SAFETY: MPI has just filled the answers of functions that end some.
    let (ended, indices) = unsafe {
        match how {
            Completing::WaitSome | Completing::TestSome => {
                let ended = (word(2) as *const i32).read_unaligned();
                (usize::try_from(ended).unwrap_or(0), Some(word(3) as *const i32))
            }
            _ => (usize::try_from(word(0) as i32).unwrap_or(0), None),
        }
    };
    let statuses = match how {
        Completing::WaitAll => Some(word(2)),
        Completing::TestAll => Some(word(3)),
        Completing::WaitSome | Completing::TestSome => Some(word(4)),
        _ => None,
    };
    let put = |at: usize, code: i32| {
        let Some(statuses) = statuses.filter(|&it| it != numbers.ignored_status && it != 0) else {
            return;
        };
        let place = statuses + at * numbers.status_bytes + numbers.status_error;
        // SAFETY: a status of the program's list.
        unsafe { (place as *mut i32).write_unaligned(code) };
    };
    (0..ended).for_each(|at| put(at, 0));
    let mut answer = 0;
    for (at, request, trouble) in failed {
        let code = trouble::raise(Some(&request.ongoing.file), name, &trouble);
        let place = match indices {
            // SAFETY: as above.
            Some(indices) => (0..ended)
                .find(|&place| unsafe { indices.add(place).read_unaligned() } == at as i32),
            None => Some(at),
        };
        if let Some(place) = place {
            put(place, code);
        }
        answer = if statuses.is_some() { numbers.error_in_status } else { code };
    }
    answer
}

/// Tells MPI of those that the program has given up, as they end.
pub(super) fn tidy() {
    if table().orphans.is_empty() {
        return;
    }
    let mut over = Vec::new();
    change(|table| {
        over = table.orphans.extract_if(.., |request| request.ongoing.is_over()).collect();
    });
    over.iter().for_each(|request| request.complete());
}

/// The program ends: what it has given up ends first.
fn give_up_nothing() {
    let until = Instant::now() + LAST_WAIT;
    loop {
        tidy();
        if table().orphans.is_empty() || Instant::now() > until {
            return;
        }
        session::pause();
    }
}
