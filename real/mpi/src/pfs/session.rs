//! This process's session with the instance it was started beside.

use super::group::Group;
use super::numbers::{Class, Numbers};
use super::trouble::Trouble;
use crate::family::Family;
use crate::profiling;
use iolab_pfs::Code;
use iolab_pfs::client::{Call, Done, FileNumber, Outcome};
use iolab_pfs_node::stand_ins::StandIns;
use iolab_pfs_node::{Client, Memory, NoMemory, Started};
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The directory of the instance. Without it, no file is one of ours.
const INSTANCE: &str = "IOLAB_FS";

/// Where the instance is, if there is one.
pub(super) fn directory() -> Option<&'static PathBuf> {
    static DIRECTORY: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = DIRECTORY.get_or_init(|| {
        std::env::var_os(INSTANCE).filter(|directory| !directory.is_empty()).map(PathBuf::from)
    });
    found.as_ref()
}

/// The client of this process, which begins with the first file. What kept it from beginning may be over when the next
/// one is opened.
pub(super) fn client() -> Result<&'static Client, Trouble> {
    static CLIENT: OnceLock<Client> = OnceLock::new();
    static BEGINNING: Mutex<()> = Mutex::new(());
    if let Some(client) = CLIENT.get() {
        return Ok(client);
    }
    let _turn = BEGINNING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(client) = CLIENT.get() {
        return Ok(client);
    }
    let made = match directory() {
        Some(directory) => Client::of(directory).map_err(|refusal| refusal.to_string()),
        None => Err(format!("there is no {INSTANCE}")),
    };
    let client = made.map_err(|why| Trouble::new(Class::Io, why))?;
    Ok(CLIENT.get_or_init(|| client))
}

/// The plain files that stand in for files of the run, if this is one.
pub(super) fn stand_ins() -> Option<&'static StandIns> {
    static STAND_INS: OnceLock<Option<StandIns>> = OnceLock::new();
    STAND_INS.get_or_init(|| StandIns::of(directory()?)).as_ref()
}

/// A call that moves no data.
pub(super) fn call(call: Call) -> Result<Done, Trouble> {
    Ok(client()?.call_with(call, &mut NoMemory, Some(&progress))?)
}

/// The ranks that have a file open come together; all fail if one has, which has told it himself. That nobody
/// answers, or that a rank has gone, is told by whoever meets it.
pub(super) fn agree(file: FileNumber, result: Code) -> Result<(), Trouble> {
    let call = Call::Agree { file, result };
    let Err(failure) = client()?.call_with(call, &mut NoMemory, Some(&progress)) else {
        return Ok(());
    };
    let is_met_here =
        [Code::TIMED_OUT, Code::SESSION_LOST, Code::RANK_FAILED].contains(&failure.code);
    let trouble = Trouble::from(failure);
    Err(if is_met_here { trouble } else { trouble.told() })
}

/// A call that moves data; how many bytes.
pub(super) fn access(call: Call, memory: &mut dyn Memory) -> Result<u64, Trouble> {
    bytes(client()?.call_with(call, memory, Some(&progress))?)
}

/// How many bytes a call has moved.
pub(super) fn bytes(done: Done) -> Result<u64, Trouble> {
    match done {
        Done::Bytes(bytes) => Ok(bytes),
        other => Err(strange(&other)),
    }
}

/// Begins a call that goes on by itself.
pub(super) fn start(
    call: Call,
    memory: impl Memory + Send + 'static,
) -> Result<Started<'static>, Trouble> {
    Ok(client()?.start(call, Box::new(memory))?)
}

/// Waits for one that goes on.
pub(super) fn wait(started: &Started<'_>) -> Outcome {
    started.wait(Some(&progress))
}

/// Waits a moment, for who waits for one of several things.
pub(super) fn pause() {
    if let Ok(client) = client() {
        client.pause();
    }
}

/// Lets MPI go on with what other processes wait for: whoever has begun to send a large message, and now
/// waits for their part of a collective call on a file, must not keep them from receiving it first.
fn progress() {
    let family = Family::here();
    let (source, tag) = (family.any_source as usize, family.any_tag as usize);
    let mut flag = 0i32;
    // SAFETY: the program is in a call of MPI's, and there is room for the answer; nothing is received.
    unsafe {
        let ignored = Numbers::here().ignored_status;
        profiling::iprobe(source, tag, Group::everybody(), &raw mut flag as usize, ignored);
    }
}

/// An answer to another question.
pub(super) fn strange(answer: &Done) -> Trouble {
    Trouble::new(Class::Other, format!("the file system answered {answer:?}"))
}
