//! The run that this process belongs to.

use iolab_pfs::client::Failure;
use iolab_pfs_node::Client;
use iolab_pfs_node::chosen::Chosen;
use iolab_pfs_node::stand_ins::StandIns;
use std::cell::Cell;
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::{Duration, Instant};

/// How long servers that have ended are waited for: a run gives them successors.
const PATIENCE: Duration = Duration::from_secs(8);

/// What is known of the run.
pub(crate) struct Run {
    directory: PathBuf,
    pub(crate) stand_ins: StandIns,
    pub(crate) chosen: Chosen,
}

/// Null before start, and where there is no run.
static RUN: AtomicPtr<Run> = AtomicPtr::new(std::ptr::null_mut());

thread_local! {
    /// Whether this thread is at work here: its own calls pass, also those of a signal's handler.
    static AT_WORK: Cell<bool> = const { Cell::new(false) };
}

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

extern "C" fn start() {
    // SAFETY: nothing changes the environment while libraries start; the text is read at once.
    let directory = unsafe {
        let text = libc::getenv(c"IOLAB_FS".as_ptr());
        if text.is_null() {
            return;
        }
        Path::new(OsStr::from_bytes(CStr::from_ptr(text).to_bytes())).to_owned()
    };
    if let Some(stand_ins) = StandIns::of(&directory) {
        let run = Box::new(Run { directory, stand_ins, chosen: Chosen::here() });
        RUN.store(Box::into_raw(run), Ordering::Release);
    }
}

/// The run, as long as it has had any file.
#[inline]
pub(crate) fn run() -> Option<&'static Run> {
    // SAFETY: what is stored there lives for good.
    let run = unsafe { RUN.load(Ordering::Acquire).as_ref() };
    run.filter(|run| !run.stand_ins.is_empty())
}

/// Does work for a call of the program's, whose `errno` stays. None if that call is part of such work.
pub(crate) fn work<R>(work: impl FnOnce() -> Result<R, Failure>) -> Option<Result<R, i32>> {
    struct Kept(i32);
    impl Drop for Kept {
        fn drop(&mut self) {
            AT_WORK.set(false);
            // SAFETY: the thread's own variable.
            unsafe { *libc::__errno_location() = self.0 };
        }
    }
    if AT_WORK.replace(true) {
        return None;
    }
    // SAFETY: as above.
    let kept = Kept(unsafe { *libc::__errno_location() });
    let done = catch_unwind(AssertUnwindSafe(work));
    let done = done.unwrap_or_else(|_| {
        let text = "a defect of iolab in this process".to_owned();
        Err(Failure { code: iolab_pfs::Code::IO, text })
    });
    let told = done.map_err(|Failure { code, text }| {
        tell(&text);
        match code.0 {
            number @ 1..1000 => i32::from(number),
            _ => libc::EIO,
        }
    });
    drop(kept);
    Some(told)
}

/// Sets what a failed call says.
pub(crate) fn fail(number: i32) -> i32 {
    // SAFETY: the thread's own variable.
    unsafe { *libc::__errno_location() = number };
    -1
}

/// One line for people.
pub(crate) fn tell(text: &str) {
    iolab_pfs_node::say_in_guest(text);
}

impl Run {
    /// A session for one call. None when the run is over: then all its files are plain ones.
    pub(crate) fn client(&self) -> Result<Option<Client>, Failure> {
        let begun = Instant::now();
        loop {
            match Client::of(&self.directory) {
                Ok(client) => return Ok(Some(client)),
                Err(_) if !self.directory.exists() => return Ok(None),
                Err(refusal) if begun.elapsed() > PATIENCE => {
                    return Err(Failure { code: iolab_pfs::Code::IO, text: refusal.message });
                }
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }
}
