//! Files of a fast place (strategy `stage`) in this process: whoever opens a staged file gets its copy, and
//! what is asked about either is answered so that both are one file. Who keeps them is the launcher
//! (`real/host/src/stage`), asked over a line of the run (`iolab_segment::FastPlace`).
//!
//! Nothing is remembered here: what a descriptor leads to is asked of the system and of the run's page. So
//! descriptors that were inherited, sent or mapped need nothing, and data calls go their usual way to the copy.
//! While nothing is staged, a call by path costs one load.
//!
//! Names, links and modes are the real file's, which the system looks after. What is done by a descriptor of
//! the copy and belongs to the real file goes there ([`attributes`]); sizes and times are the copy's
//! ([`status`]). Where the keeper cannot be reached, an open of a staged file fails: its bytes would be old.

mod attributes;
mod copying;
mod opening;
mod ranges;
mod room;
mod status;

pub(crate) use opening::{Held, Opening, after_open, before_open};
pub(super) use room::retried;
pub(crate) use status::attribute_names;

use super::kernel::{self, system_call};
use super::{caution, rules};
use crate::call::{ABSENT, Call};
use iolab_policy::insitu::StrategySpec;
use iolab_segment::{
    Answer, FastPlace, Inode, Line, Question, Reply, Request, STAGE_VARIABLE, STILL, StagedFile,
};
use iolab_trace::{Class, Function};
use std::ffi::{CString, c_char, c_int};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Acquire, Ordering::Release};

/// The page of the run; null when there is none, or this process has given up.
static PLACE: AtomicPtr<FastPlace> = AtomicPtr::new(null_mut());
/// For which files.
static CHOICE: OnceLock<StrategySpec> = OnceLock::new();
/// Why files pass has been told: there is one reason.
static SAID: AtomicBool = AtomicBool::new(false);

/// Finds the page of the run; true when there is one.
pub(super) fn start(variable: &dyn Fn(&[u8]) -> Option<&'static [u8]>) -> bool {
    let path = variable(STAGE_VARIABLE.as_bytes()).and_then(|path| CString::new(path).ok());
    let Some(path) = path else { return false };
    match FastPlace::attach(&path) {
        Some(place) => {
            PLACE.store(std::ptr::from_ref(place).cast_mut(), Release);
            true
        }
        None => {
            const WHAT: &str = "the fast place of the run cannot be reached from here; files pass, \
                                and those of other processes are seen as they are at home";
            caution::say_once(&SAID, WHAT);
            false
        }
    }
}

/// New files begin in the fast place that this one chooses.
pub(super) fn choose(spec: StrategySpec) {
    if place().is_none() {
        caution::say_once(&SAID, "`stage` needs a run; start programs by `iolab run`");
        return;
    }
    let _chosen_before = CHOICE.set(spec);
}

/// The program filters its system calls from here on: nothing is asked any more. What others may look at is
/// made true before.
#[cold]
pub(super) fn give_up() {
    sync_all();
    PLACE.store(null_mut(), Release);
}

fn place() -> Option<&'static FastPlace> {
    // SAFETY: a page that is mapped for good, or null.
    unsafe { PLACE.load(Acquire).as_ref() }
}

/// Whether calls have to come by.
#[inline]
pub(super) fn is_active() -> bool {
    !PLACE.load(std::sync::atomic::Ordering::Relaxed).is_null()
}

/// The page, while any file is staged.
fn busy() -> Option<&'static FastPlace> {
    place().filter(|place| place.is_any())
}

fn inode(status: &libc::stat) -> Inode {
    (status.st_dev, status.st_ino)
}

/// The staged file whose copy a descriptor leads to.
fn copy_behind(place: &FastPlace, fd: c_int) -> Option<StagedFile> {
    let status = kernel::status(fd).filter(|it| it.st_dev == place.device())?;
    place.find(inode(&status)).filter(|file| !file.is_home)
}

/// The staged file that a path leads to.
fn behind_path(place: &FastPlace, directory: usize, path: usize) -> Option<StagedFile> {
    if path == ABSENT || path == 0 {
        return None;
    }
    let directory = rules::directory(directory);
    let status = kernel::status_at(directory, path as *const c_char, libc::AT_EMPTY_PATH)?;
    place.find(inode(&status))
}

/// Asks the keeper, with signals blocked: a handler that does not come back would leave the line open.
fn ask(
    line: &Line,
    question: Question,
    flags: c_int,
    home: Inode,
    descriptor: Option<c_int>,
    path: &[u8],
) -> Result<Reply, c_int> {
    let mask = kernel::block_signals();
    let answered = line.ask(&Request { question, flags, home }, descriptor, path);
    kernel::restore_signals(mask);
    answered
}

/// Asks one thing about a file; the answer is an error number, 0 for none.
fn ask_once(place: &FastPlace, question: Question, home: Inode) -> c_int {
    let mask = kernel::block_signals();
    let answered = Line::open(place)
        .and_then(|line| line.ask(&Request { question, flags: 0, home }, None, &[]));
    kernel::restore_signals(mask);
    match answered {
        Ok(reply) => reply.errno,
        Err(_) => libc::EIO,
    }
}

/// The file does not come home while the answer lives, and with `STILL` nothing is copied to it. `None` where
/// nobody answers.
fn hold(place: &FastPlace, home: Inode, flags: c_int) -> Option<Line> {
    let mask = kernel::block_signals();
    let line = Line::open(place).ok();
    kernel::restore_signals(mask);
    let line = line?;
    let answered = ask(&line, Question::Hold, flags, home, None, &[]);
    matches!(answered, Ok(Reply { answer: Answer::Done, .. })).then_some(line)
}

/// A file that is about to be changed at home is still as long as this lives; then its keeper knows what was done.
struct Still(Line);

impl Still {
    fn hold(place: &FastPlace, home: Inode) -> Option<Still> {
        hold(place, home, STILL).map(Still)
    }
}

impl Drop for Still {
    fn drop(&mut self) {
        let _gone = ask(&self.0, Question::LetGo, 0, (0, 0), None, &[]);
    }
}

/// A call that may concern a staged file; `perform` makes it as ever.
pub(super) fn around(call: &Call, perform: impl Fn() -> isize) -> isize {
    match call.function.class() {
        Class::Stat => status::answered(call, perform),
        Class::Attribute => attributes::answered(call, perform),
        Class::Sync => synced(call, perform),
        Class::Truncate if call.path != ABSENT => truncated(call, perform),
        Class::Rename => {
            let result = perform();
            if let Some(place) = busy().filter(|_| result >= 0) {
                ask_once(place, Question::Renamed, (0, 0));
            }
            result
        }
        Class::Copy => copying::answered(call, room::vector(call, perform)),
        Class::Allocate => room::vector(call, || ranges::answered(call, perform())),
        Class::Write | Class::Truncate => room::vector(call, perform),
        Class::Control if call.function == Function::FCNTL_LEASE => {
            room::leave(call.fd as c_int);
            perform()
        }
        _ => perform(),
    }
}

/// A sync means that bytes are durable at home.
fn synced(call: &Call, perform: impl Fn() -> isize) -> isize {
    let Some(place) = busy() else { return perform() };
    match call.function {
        Function::FSYNC | Function::FDATASYNC => match copy_behind(place, call.fd as c_int) {
            Some(file) => -(ask_once(place, Question::Sync, file.home) as isize),
            None => perform(),
        },
        Function::MSYNC if call.flags as c_int & libc::MS_SYNC == 0 => perform(),
        Function::MSYNC | Function::SYNCFS => {
            let (result, failure) = (perform(), ask_once(place, Question::SyncAll, (0, 0)));
            if result == 0 { -(failure as isize) } else { result }
        }
        _ => perform(),
    }
}

/// All that is staged is to be durable at home.
pub(super) fn sync_all() {
    if let Some(place) = busy() {
        ask_once(place, Question::SyncAll, (0, 0));
    }
}

/// A program is about to be started that opens files at home: they are as their copies are.
pub(super) fn show_all() {
    if let Some(place) = busy() {
        ask_once(place, Question::ShowAll, (0, 0));
    }
}

/// `truncate` by path: the copy is cut as well.
fn truncated(call: &Call, perform: impl Fn() -> isize) -> isize {
    let Some(place) = busy() else { return perform() };
    let file = behind_path(place, call.directory, call.path).filter(|file| file.is_home);
    let Some(file) = file else { return perform() };
    let _still = Still::hold(place, file.home);
    let result = perform();
    if result == 0 && place.find(file.home).is_some() {
        let copy = place.copy_of(file.home);
        // SAFETY: a terminated path.
        return unsafe { system_call!(SYS_truncate, copy.c_text().as_ptr(), call.length) };
    }
    result
}

/// A file is about to be executed, or opened by a call nobody sees: at home it is as its copy is.
pub(super) fn show(directory: usize, path: usize) {
    if let Some(place) = busy()
        && let Some(file) = behind_path(place, directory, path).filter(|file| file.is_home)
    {
        ask_once(place, Question::Show, file.home);
    }
}

/// Where the real file of a descriptor is found, if it leads to a copy: a name that people know.
pub(crate) fn name_behind(fd: c_int, buffer: &mut crate::path::Buffer) -> Option<&[u8]> {
    let place = busy()?;
    let file = copy_behind(place, fd)?;
    let link = place.home_of(&file);
    crate::path::of_link(link.c_text(), buffer)
}
