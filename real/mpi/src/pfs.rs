//! Files of iolab's parallel file system: calls on them are carried out here, and never reach the MPI
//! library.
//!
//! Which files: `names`. Without an instance (`IOLAB_FS`) there are none, which costs one look at a
//! variable that was kept. What rank 0 opens for all goes round by MPI once (`group`); data goes between
//! this process and the servers (`session`), as an interval of the view (`access`, `view`, `typemap`).
//!
//! A guest's rules hold: a defect of ours is an error of the call, never the end of the program. Calls
//! on files of ours are recorded as those of the library are; what the recorder asks of a file, it asks here.
//!
//! Not there: data representations that programs register, whose functions are theirs.

mod access;
mod attributes;
pub(crate) mod buffer;
mod external;
mod file;
mod fortran;
pub(crate) mod group;
pub(crate) mod hints;
mod names;
pub(crate) mod numbers;
mod ongoing;
mod open;
mod request;
mod rows;
mod session;
pub(crate) mod status;
pub(crate) mod trouble;
pub(crate) mod typemap;
mod view;

use crate::call::Call;
use crate::family::Family;
use crate::profiling;
use crate::recorder::Times;
use file::File;
use numbers::Class;
use request::Completing;
use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use trouble::Trouble;

pub(crate) use file::{fortran_of, of_fortran};
pub(crate) use rows::work;

/// What came of a call that was ours; none: it is for the MPI library.
pub(crate) type Answer = Option<Carried>;

/// A call that was carried out.
pub(crate) struct Carried {
    /// The file whose error handler hears of a failure.
    file: Option<Arc<File>>,
    result: Result<(), Trouble>,
}

/// How a function of MPI is carried out.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// On the file of the first argument.
    OnFile(fn(&File, &Call<'_>) -> Result<(), Trouble>),
    /// By itself.
    Alone(fn(&Call<'_>) -> Answer),
    /// By the MPI library, after requests of ours were seen to.
    Completes(Completing),
    /// By the MPI library: a session begins.
    Begins,
    /// The same: one ends.
    Ends,
}

/// Whether there is an instance: not looked yet, no, or yes.
static LOOKED: AtomicU8 = AtomicU8::new(0);

/// Whether files of ours are possible at all.
#[inline]
pub(crate) fn is_on() -> bool {
    match LOOKED.load(Ordering::Relaxed) {
        0 => look(),
        looked => looked == 2,
    }
}

#[cold]
fn look() -> bool {
    let is_on = session::directory().is_some();
    LOOKED.store(if is_on { 2 } else { 1 }, Ordering::Relaxed);
    is_on
}

/// Performs a function of the MPI library's; if it is about the end of requests, ours are seen to.
#[inline]
pub(crate) fn completed(
    work: Option<Work>,
    name: &CStr,
    words: &[usize],
    perform: &mut dyn FnMut(&[usize]) -> i32,
) -> i32 {
    let finished = |perform: &mut dyn FnMut(&[usize]) -> i32| match request::are_there() {
        true => request::complete(Completing::Finalize, &said(name), words, perform),
        false => perform(words),
    };
    match work {
        Some(Work::Completes(how)) if request::are_there() => {
            request::complete(how, &said(name), words, perform)
        }
        Some(Work::Begins) => {
            let answer = perform(words);
            if answer == 0 {
                profiling::session_begun();
            }
            answer
        }
        Some(Work::Ends) => finished(&mut |words| {
            profiling::session_ends();
            perform(words)
        }),
        _ => perform(words),
    }
}

/// A function's name as programs know it.
fn said(name: &CStr) -> String {
    name.to_string_lossy().trim_start_matches('P').to_owned()
}

/// Carries out a call, if it is ours; its answer.
pub(crate) fn carry_out(
    work: Work,
    name: &CStr,
    arguments: &mut [usize],
    has_large_counts: bool,
) -> Option<i32> {
    if !is_on() {
        return None;
    }
    let (times, scratch) = (Times { start: 0, end: 0 }, [0; 8]);
    let (family, noted) = (Family::here(), Vec::new());
    let call = Call { arguments, has_large_counts, family, times, noted, scratch };
    let file = match work {
        Work::OnFile(_) => Some(file::find(call.word(0))?),
        Work::Alone(_) => None,
        Work::Completes(_) | Work::Begins | Work::Ends => return None,
    };
    let carried = catch_unwind(AssertUnwindSafe(|| match work {
        Work::Alone(work) => work(&call),
        Work::Completes(_) | Work::Begins | Work::Ends => None,
        Work::OnFile(work) => {
            let file = file.clone()?;
            let result = work(&file, &call);
            Some(Carried { file: Some(file), result })
        }
    }));
    let carried = carried.unwrap_or_else(|_| {
        let result = Err(Trouble::new(Class::Other, "a defect of iolab's"));
        Some(Carried { file: file.clone(), result })
    })?;
    Some(match carried.result {
        Ok(()) => 0,
        Err(trouble) => trouble::raise(carried.file.as_deref(), &said(name), &trouble),
    })
}
