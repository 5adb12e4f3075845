//! Opens of files of ours.
//!
//! A file that nobody has open through MPI comes home: it is a plain file from then on, which the call opens.
//! One that somebody has open is read as it is at that moment, from a copy without a name, and not written.

use crate::ours::{self, shown};
use crate::place::Place;
use crate::run::{Run, fail, run, tell, work};
use iolab_pfs::Code;
use iolab_pfs::client::Failure;
use iolab_pfs_node::{Client, plain};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{FileType, Stat};
use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A collective close is over for one rank before the other that opened for all has told it.
const CLOSING: Duration = Duration::from_secs(2);
/// The same for who can do with a copy.
const CLOSING_READ: Duration = Duration::from_millis(200);

/// How a call goes on.
enum Way {
    /// As it is: there is a plain file, or none.
    Plain,
    /// With this file instead.
    Copy(OwnedFd),
}

/// Carries out an open by `go`, with what it is given for the name, if anything. The answer is that of a call
/// that failed if there is an error number.
pub(crate) fn opened<R>(
    place: Place,
    flags: c_int,
    go: impl FnOnce(Option<&CStr>) -> R,
) -> Result<R, i32> {
    Ok(match way(place, flags)? {
        Way::Plain => go(None),
        Way::Copy(file) => {
            let name = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()));
            go(name.ok().as_deref())
        }
    })
}

/// The same for functions that answer with a descriptor.
pub(crate) fn descriptor(
    place: Place,
    flags: c_int,
    go: impl FnOnce((c_int, *const c_char), c_int) -> c_int,
) -> c_int {
    let opened = opened(place, flags, |instead| match instead {
        None => go((place.directory, place.name), flags),
        Some(name) => go((libc::AT_FDCWD, name.as_ptr()), flags & !libc::O_NOFOLLOW),
    });
    opened.unwrap_or_else(fail)
}

/// The flags that a mode of `fopen` means.
///
/// # Safety
/// The mode is a text, or null.
pub(crate) unsafe fn flags_of(mode: *const c_char) -> c_int {
    if mode.is_null() {
        return libc::O_PATH;
    }
    // SAFETY: the caller's promise.
    let mode = unsafe { CStr::from_ptr(mode) }.to_bytes();
    let options = mode.split(|&byte| byte == b',').next().unwrap_or_default();
    let way = if options.contains(&b'+') { libc::O_RDWR } else { libc::O_WRONLY };
    let exclusive = if options.contains(&b'x') { libc::O_EXCL } else { 0 };
    match options.first() {
        Some(b'w') => way | libc::O_CREAT | libc::O_TRUNC | exclusive,
        Some(b'a') => way | libc::O_CREAT | libc::O_APPEND | exclusive,
        _ if way == libc::O_RDWR => way,
        _ => libc::O_RDONLY,
    }
}

fn way(place: Place, flags: c_int) -> Result<Way, i32> {
    let Some(run) = run() else { return Ok(Way::Plain) };
    let has = |bits: c_int| flags & bits == bits;
    if has(libc::O_PATH) || has(libc::O_DIRECTORY) || has(libc::O_CREAT | libc::O_EXCL) {
        return Ok(Way::Plain);
    }
    let place = if has(libc::O_NOFOLLOW) { place.itself() } else { place };
    let Some((status, FileType::RegularFile)) = place.candidate(run) else {
        return Ok(Way::Plain);
    };
    work(|| decided(run, (place, &status), flags)).unwrap_or(Ok(Way::Plain))
}

fn decided(run: &Run, (place, status): (Place, &Stat), flags: c_int) -> Result<Way, Failure> {
    let way = flags & libc::O_ACCMODE;
    let truncates = flags & libc::O_TRUNC != 0;
    let (reads, writes) = (way != libc::O_WRONLY, way != libc::O_RDONLY || truncates);
    let Some(name) = place.chosen(run) else { return Ok(Way::Plain) };
    if !place.is_open_to(reads, writes) {
        // The kernel is about to say so.
        return Ok(Way::Plain);
    }
    let Some(client) = run.client()? else { return Ok(Way::Plain) };
    let _turn = ours::turn(run, &[&name])?;
    match is_open(&client, &name, if writes { CLOSING } else { CLOSING_READ })? {
        None => Ok(Way::Plain),
        Some(false) if truncates => {
            plain::forget(&client, &name)?;
            run.stand_ins.strike(status.st_dev, status.st_ino);
            Ok(Way::Plain)
        }
        Some(false) => plain::bring_home(&client, &name, &run.stand_ins).map(|_| Way::Plain),
        Some(true) if writes => Err(in_use(&name, "a POSIX open cannot write to it")),
        Some(true) => {
            tell_once(&name);
            plain::snapshot(&client, &name).map(Way::Copy)
        }
    }
}

/// Whether somebody has a file open, also after a while; none if it is no file of ours.
fn is_open(client: &Client, name: &[u8], patience: Duration) -> Result<Option<bool>, Failure> {
    let begun = Instant::now();
    loop {
        match ours::look(client, name)? {
            Some(found) if found.is_open && begun.elapsed() < patience => {
                std::thread::sleep(Duration::from_millis(5));
            }
            found => return Ok(found.map(|found| found.is_open)),
        }
    }
}

/// A file that comes home, whatever a call is going to do with it. Whoever asks has its turn.
pub(crate) fn come_home(run: &Run, client: &Client, name: &[u8]) -> Result<(), Failure> {
    match is_open(client, name, CLOSING)? {
        None => Ok(()),
        Some(true) => Err(in_use(name, "it cannot become a plain file")),
        Some(false) => plain::bring_home(client, name, &run.stand_ins).map(drop),
    }
}

fn in_use(name: &[u8], what: &str) -> Failure {
    let name = shown(name);
    let text = format!("{name} is open through MPI-IO: {what} before it is closed there");
    Failure { code: Code::BUSY, text }
}

/// Says once of each file that a copy is read.
fn tell_once(name: &[u8]) {
    static TOLD: Mutex<BTreeSet<Vec<u8>>> = Mutex::new(BTreeSet::new());
    if TOLD.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_vec()) {
        let name = shown(name);
        tell(&format!("{name} is open through MPI-IO: this POSIX open reads it as it is now"));
    }
}
