//! The client of a process: drives the client machine in the thread that calls.
//!
//! It lives in programs that know nothing of it: it writes nothing, ends nothing, raises no signal, and an own
//! defect becomes a failed call. Threads of a program may call at the same time: one of those that wait looks
//! after the sockets for all. Only calls that go on by themselves, and what is to be told of calls that were given up, need
//! a thread (`started`). A forked child has a
//! session of its own.

mod started;
mod state;

use crate::Memory;
use crate::clock;
use crate::instance::{Description, Place};
use crate::tape;
use crate::worker::Bell;
use iolab_pfs::client::{Call, CallNumber, Failure, Outcome, Settings};
use iolab_pfs::{Code, Party, SessionId};
use iolab_vocab::{Nanos, Refusal};
use rustix::event::{PollFd, PollFlags};
use rustix::fd::BorrowedFd;
use rustix::process::Pid;
use started::Helper;
use state::{State, is_late};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a process that others wait for waits without looking after them. Short beside a step of a large
/// message between processes, long beside what looking costs.
const IDLE_PAUSE: Duration = Duration::from_micros(200);

pub use started::Started;

/// A session with the instance in a directory. One per process; any number of threads may call.
pub struct Client {
    directory: PathBuf,
    description: Description,
    /// The session of this process. A forked child finds its parent's here, and leaves it alone.
    session: AtomicPtr<Session>,
}

/// What a process has in common with the servers.
struct Session {
    process: Pid,
    state: Mutex<State>,
    /// Told when the state has changed and when nobody looks after the sockets.
    changed: Condvar,
    /// Rung when sockets are to be looked after that the one who does does not know yet.
    bell: Bell,
    helper: Helper,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl Client {
    /// A session with the instance in `directory`, which must be served.
    pub fn of(directory: &Path) -> Result<Client, Refusal> {
        let description = Description::read(directory)?;
        let wrong = |error: std::io::Error| {
            let place = directory.display();
            Refusal::new(
                format!("nobody serves the file system in {place}: {error}"),
                format!("start it with `iolab fs up --dir {place}`"),
            )
        };
        let directory = directory.canonicalize().map_err(wrong)?;
        let place = Place::of(&directory).map_err(wrong)?;
        // Whether somebody listens; the session itself connects when it has something to ask.
        crate::link::reach(&place, Party::Metadata).map_err(|error| wrong(error.into()))?;
        let client = Client { directory, description, session: AtomicPtr::default() };
        client.session().map_err(|failure| wrong(std::io::Error::other(failure.text)))?;
        Ok(client)
    }

    /// The directory of the instance.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// I/O servers of the instance.
    pub fn servers(&self) -> u32 {
        self.description.servers
    }

    /// Carries out a call, and waits for what comes of it. A read fills `memory`, a write takes its bytes
    /// from there: byte 0 is the first of the call.
    pub fn call(&self, call: Call, memory: &mut dyn Memory) -> Outcome {
        self.call_with(call, memory, None)
    }

    /// The same for a process that others wait for meanwhile: `idle` is called again and again while this
    /// waits, so that it can serve them. A collective call may wait for them in turn.
    pub fn call_with(
        &self,
        call: Call,
        memory: &mut dyn Memory,
        idle: Option<&dyn Fn()>,
    ) -> Outcome {
        let done = catch_unwind(AssertUnwindSafe(|| self.session()?.call(call, memory, idle)));
        done.unwrap_or_else(|_| Err(defect()))
    }

    /// The session of this process.
    fn session(&self) -> Result<&Session, Failure> {
        let found = self.session.load(Ordering::Acquire);
        // SAFETY: sessions are made below and live as long as this client.
        let session = unsafe { found.as_ref() };
        match session {
            Some(session) if session.process == rustix::process::getpid() => Ok(session),
            _ => self.begin(found),
        }
    }

    /// A new session instead of `old`, which is that of a process this one was forked from. Its sockets are
    /// left as they are: another thread of the parent may have been in the middle of something.
    fn begin(&self, old: *mut Session) -> Result<&Session, Failure> {
        let wrong = |error: std::io::Error| Failure {
            code: Code(error.raw_os_error().unwrap_or(libc::EIO) as u16),
            text: format!("no session with {}: {error}", self.directory.display()),
        };
        let session = SessionId(crate::instance::random());
        let Description { servers, caches, .. } = self.description;
        let Description { placement, write_policy, schedule, durability, .. } = self.description;
        let usual = Settings::usual(servers);
        let settings = Settings { caches, placement, write_policy, schedule, durability, ..usual };
        let place = Place::of(&self.directory).map_err(wrong)?;
        let events = tape::place(&self.directory);
        let new = Box::into_raw(Box::new(Session {
            process: rustix::process::getpid(),
            state: Mutex::new(State::new(settings, session, place, events.as_deref())),
            changed: Condvar::new(),
            bell: Bell::new().map_err(wrong)?,
            helper: Helper::default(),
        }));
        let order = (Ordering::AcqRel, Ordering::Acquire);
        match self.session.compare_exchange(old, new, order.0, order.1) {
            // SAFETY: it lives as long as this client.
            Ok(_) => Ok(unsafe { &*new }),
            Err(winner) => {
                // SAFETY: nobody else has seen the one that was made here; that of the thread which was
                // faster lives as long as this client.
                unsafe {
                    drop(Box::from_raw(new));
                    Ok(&*winner)
                }
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let session = self.session.swap(ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: nobody calls any more; one of a parent process is left alone, as its lock may be held by a
        // thread that does not exist here.
        unsafe {
            if let Some(own) = session.as_ref()
                && own.process == rustix::process::getpid()
            {
                drop(Box::from_raw(session));
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Ok(mut state) = self.state.lock() {
            state.is_over = true;
        }
        self.bell.ring();
        self.changed.notify_all();
        self.helper.called.notify_all();
        self.helper.join();
    }
}

fn defect() -> Failure {
    Failure { code: Code::IO, text: "a defect of iolab in this process".to_owned() }
}

/// Looks after the sockets while nobody else does; hands that on when it ends, however it ends.
struct Turn<'a>(&'a Session);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.changed.notify_all();
    }
}

impl Session {
    fn state(&self) -> Result<MutexGuard<'_, State>, Failure> {
        let state = self.state.lock().map_err(|_| defect())?;
        if state.is_broken() { Err(defect()) } else { Ok(state) }
    }

    fn call(&self, call: Call, memory: &mut dyn Memory, idle: Option<&dyn Fn()>) -> Outcome {
        // Others that wait have to know of what comes of this turn.
        let turn = Turn(self);
        let mut state = self.state()?;
        let own = state.begin(clock::now(), call, memory);
        let forget = Forget { session: self, own };
        if state.is_watched {
            self.bell.ring();
        }
        let outcome = self.answer(state, own, idle)?;
        std::mem::forget(forget);
        drop(turn);
        if is_late(&outcome) {
            self.need_helper();
            self.helper.called.notify_one();
        }
        outcome
    }

    /// Waits for what comes of a call; an error is a defect.
    fn answer<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        own: CallNumber,
        idle: Option<&dyn Fn()>,
    ) -> Result<Outcome, Failure> {
        loop {
            if let Some(outcome) = state.answer(own) {
                return Ok(outcome);
            }
            state = match (state.is_watched, idle) {
                (false, idle) => self.watch(state, idle)?,
                (true, None) => self.changed.wait(state).map_err(|_| defect())?,
                (true, Some(idle)) => {
                    let waited = self.changed.wait_timeout(state, IDLE_PAUSE);
                    let (state, timeout) = waited.map_err(|_| defect())?;
                    match timeout.timed_out() {
                        false => state,
                        true => {
                            drop(state);
                            idle();
                            self.state()?
                        }
                    }
                }
            };
        }
    }

    /// Waits for sockets, without keeping others from calling, and then does what there is to do.
    fn watch<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        idle: Option<&dyn Fn()>,
    ) -> Result<MutexGuard<'a, State>, Failure> {
        state.is_watched = true;
        let sockets = state.sockets();
        let now = clock::now();
        let soon = idle.is_some().then(|| Nanos(now.0 + IDLE_PAUSE.as_nanos() as u64));
        let pause = clock::until(now, &[state.next_wake(), soon]);
        drop(state);
        let mut ready: Vec<_> = sockets
            .iter()
            .map(|(_, fd, flags)| {
                // SAFETY: another thread may close it meanwhile; then `poll` says so or tells of another
                // file, and what is done next asks the connection itself.
                let fd = unsafe { BorrowedFd::borrow_raw(*fd) };
                PollFd::from_borrowed_fd(fd, *flags)
            })
            .collect();
        ready.push(PollFd::new(&self.bell, PollFlags::IN));
        // An interruption by a signal is a turn in which nothing is ready.
        let found = rustix::event::poll(&mut ready, pause.as_ref());
        if found == Ok(0)
            && let Some(idle) = idle
        {
            idle();
        }
        let rung = ready.pop().is_some_and(|bell| !bell.revents().is_empty());
        if rung {
            self.bell.hear();
        }
        let flags: Vec<_> = ready.iter().map(PollFd::revents).collect();
        drop(ready);
        let mut state = self.state()?;
        state.is_watched = false;
        for ((party, _, _), flags) in sockets.iter().zip(flags) {
            if !flags.is_empty() {
                state.ready(*party);
            }
        }
        state.work(clock::now());
        self.changed.notify_all();
        Ok(state)
    }
}

/// When a call is left by a defect: nobody may use its memory any more.
struct Forget<'a> {
    session: &'a Session,
    own: CallNumber,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        let mut state = self.session.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.break_off(self.own);
    }
}
