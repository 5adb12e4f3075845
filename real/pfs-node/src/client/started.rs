//! Calls that go on beside the program.
//!
//! A thread of our own looks after the sockets while such calls are under way and nobody waits in the client, and while
//! a party that a call has waited for in vain is still to be told of that: other ranks may wait there. It
//! begins with the first of them, takes no signals, calls nothing of the program's, and sleeps while there are none. Where no
//! thread can be had, calls go on when somebody asks after them. A forked child has no part in its parent's calls.

use super::{Client, Forget, IDLE_PAUSE, Session, Turn, defect};
use crate::Memory;
use crate::clock;
use iolab_pfs::Code;
use iolab_pfs::client::{Call, CallNumber, Failure, Outcome};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Enough for a turn of the machine, which does not call itself.
const STACK_BYTES: usize = 512 << 10;

/// A call under way. Nobody hears what comes of one that is dropped.
pub struct Started<'a> {
    session: &'a Session,
    own: CallNumber,
}

impl std::fmt::Debug for Started<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Started").field("own", &self.own).finish_non_exhaustive()
    }
}

impl Client {
    /// Begins a call that goes on by itself. It keeps `memory` until it is over.
    pub fn start(
        &self,
        call: Call,
        memory: Box<dyn Memory + Send>,
    ) -> Result<Started<'_>, Failure> {
        let begun = catch_unwind(AssertUnwindSafe(|| {
            let session = self.session()?;
            session.start(call, memory).map(|own| Started { session, own })
        }));
        begun.unwrap_or_else(|_| Err(defect()))
    }

    /// Waits a moment, and no longer than until something has come of a call. For who waits for one of
    /// several calls, or for something else at the same time.
    pub fn pause(&self) {
        let paused = catch_unwind(AssertUnwindSafe(|| self.session()?.turn()));
        if !matches!(paused, Ok(Ok(()))) {
            std::thread::sleep(IDLE_PAUSE);
        }
    }
}

impl Started<'_> {
    /// What came of it, if it is over: once.
    pub fn outcome(&self) -> Option<Outcome> {
        let asked = catch_unwind(AssertUnwindSafe(|| self.asked()));
        asked.unwrap_or_else(|_| Some(Err(defect())))
    }

    /// Waits for what comes of it; `idle` as in [`Client::call_with`].
    pub fn wait(&self, idle: Option<&dyn Fn()>) -> Outcome {
        let waited = catch_unwind(AssertUnwindSafe(|| {
            self.check_process()?;
            let turn = Turn(self.session);
            let state = self.session.state()?;
            let forget = Forget { session: self.session, own: self.own };
            let outcome = self.session.answer(state, self.own, idle)?;
            std::mem::forget(forget);
            drop(turn);
            outcome
        }));
        waited.unwrap_or_else(|_| Err(defect()))
    }

    fn asked(&self) -> Option<Outcome> {
        let state = self.check_process().and_then(|()| self.session.state());
        let mut state = match state {
            Ok(state) => state,
            Err(failure) => return Some(Err(failure)),
        };
        let outcome = state.answer(self.own);
        if outcome.is_some() || state.is_watched || self.session.helper.is_there() {
            return outcome;
        }
        match self.session.watch(state, Some(&|| ())) {
            Ok(mut state) => state.answer(self.own),
            Err(failure) => Some(Err(failure)),
        }
    }

    /// A forked child must not touch what threads of its parent may have been in the middle of.
    fn check_process(&self) -> Result<(), Failure> {
        if self.session.process == rustix::process::getpid() {
            return Ok(());
        }
        let text = "the call was started by the process that this one was forked from".to_owned();
        Err(Failure { code: Code::BAD_FILE, text })
    }
}

impl Drop for Started<'_> {
    fn drop(&mut self) {
        if self.check_process().is_ok()
            && let Ok(mut state) = self.session.state.lock()
        {
            state.forget(self.own);
        }
    }
}

/// The thread that looks after calls which go on by themselves.
#[derive(Default)]
pub(super) struct Helper {
    thread: Mutex<Wanted>,
    /// Told when there is such a call, and when all is over.
    pub(super) called: Condvar,
}

#[derive(Default)]
enum Wanted {
    #[default]
    NotYet,
    There(JoinHandle<()>),
    /// There was none to be had.
    Never,
}

impl Helper {
    fn is_there(&self) -> bool {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(*thread, Wanted::There(_))
    }

    /// Waits for its end, which somebody has told it.
    pub(super) fn join(&mut self) {
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Wanted::There(thread) = std::mem::take(thread) {
            let _ = thread.join();
        }
    }
}

/// The session, for its own thread.
struct Shared(*const Session);

// SAFETY: a session may be used by all threads; it waits for this one before it goes.
unsafe impl Send for Shared {}

impl Session {
    fn start(&self, call: Call, memory: Box<dyn Memory + Send>) -> Result<CallNumber, Failure> {
        self.need_helper();
        let mut state = self.state()?;
        let own = state.start(clock::now(), call, memory);
        if state.is_watched {
            self.bell.ring();
        }
        self.helper.called.notify_one();
        Ok(own)
    }

    pub(super) fn need_helper(&self) {
        let mut thread = self.helper.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if !matches!(*thread, Wanted::NotYet) {
            return;
        }
        let shared = Shared(self);
        let work = move || {
            let Shared(session) = { shared };
            // SAFETY: the session waits for this thread before it goes.
            let session = unsafe { &*session };
            // A defect leaves the lock poisoned, which all others take for one.
            let _ = catch_unwind(AssertUnwindSafe(|| session.help()));
            session.changed.notify_all();
        };
        let builder = std::thread::Builder::new().name("iolab-fs".into()).stack_size(STACK_BYTES);
        let made = without_signals(|| builder.spawn(work));
        *thread = made.map_or(Wanted::Never, Wanted::There);
    }

    /// What the thread does, until the session ends.
    fn help(&self) {
        let Ok(mut state) = self.state() else { return };
        while !state.is_over {
            let next = match (state.goes_on(), state.is_watched) {
                (false, _) => self.helper.called.wait(state).map_err(|_| defect()),
                (true, true) => self.changed.wait(state).map_err(|_| defect()),
                (true, false) => self.watch(state, None),
            };
            let Ok(next) = next else { return };
            state = next;
        }
    }

    /// Looks after the sockets for a moment, or lets who does so do it.
    fn turn(&self) -> Result<(), Failure> {
        let _turn = Turn(self);
        let state = self.state()?;
        match state.is_watched {
            true => self.changed.wait_timeout(state, IDLE_PAUSE).map(drop).map_err(|_| defect()),
            false => self.watch(state, Some(&|| ())).map(drop),
        }
    }
}

/// Does something while this thread takes no signals, so that a thread it makes never does.
fn without_signals<T>(work: impl FnOnce() -> T) -> T {
    let mut before = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: both sets are there for the time of the calls, and `before` is filled by the one that succeeds.
    unsafe {
        let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigfillset(all.as_mut_ptr());
        let blocked = libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        let done = work();
        if blocked == 0 {
            libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut());
        }
        done
    }
}
