//! Recordings of machines as files, one for each party and life, if whoever serves an instance wishes so.
//!
//! `DIR/events.at` names the directory where they go, for all processes that use the instance. What a turn of a
//! driver adds is in the kernel before the driver waits again, so it outlives the process. The file is
//! opened for each turn and left alone meanwhile: in somebody else's process, descriptors may be closed by
//! anybody, and their numbers stand for other files then. A file that cannot be written ends where it is.

use iolab_pfs::recording::{Recordable, Recorded};
use iolab_policy::Machine;
use iolab_vocab::{Nanos, Refusal};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Resource;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// The link to the directory of recordings, in that of the instance.
const LINK: &str = "events.at";
/// How the name of a recording ends.
const ENDING: &str = "events";

/// Where the recordings of an instance go, if it is recorded.
pub(crate) fn place(instance: &Path) -> Option<PathBuf> {
    fs::read_link(instance.join(LINK)).ok()
}

/// From now on the instance is recorded in `directory`, which is made if it is not there, or not at all.
pub(crate) fn record(instance: &Path, directory: Option<&Path>) -> Result<(), Refusal> {
    let link = instance.join(LINK);
    match fs::remove_file(&link) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(unusable(&link, &error));
        }
        _ => {}
    }
    let Some(directory) = directory else { return Ok(()) };
    let wrong = |error: io::Error| unusable(directory, &error);
    fs::create_dir_all(directory).map_err(wrong)?;
    let absolute = directory.canonicalize().map_err(wrong)?;
    rustix::fs::access(&absolute, rustix::fs::Access::WRITE_OK).map_err(|it| wrong(it.into()))?;
    std::os::unix::fs::symlink(absolute, &link).map_err(|error| unusable(&link, &error))
}

fn unusable(path: &Path, error: &io::Error) -> Refusal {
    Refusal::new(
        format!("no events can be recorded: {}: {error}", path.display()),
        "give --events a directory where you may write",
    )
}

/// Writes whole recordings, by name, to a directory that is made.
pub fn keep(directory: &Path, recordings: &BTreeMap<String, Vec<u8>>) -> Result<(), Refusal> {
    let wrong = |error: io::Error| unusable(directory, &error);
    fs::create_dir_all(directory).map_err(wrong)?;
    for (name, recording) in recordings {
        fs::write(directory.join(format!("{name}.{ENDING}")), recording).map_err(wrong)?;
    }
    Ok(())
}

/// All recordings in a directory, by name.
pub fn recordings(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>()?;
    let paths = entries.into_iter().map(|entry| entry.path());
    let mut found: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|it| it == ENDING)).collect();
    found.sort();
    Ok(found)
}

/// A machine with the file of its recording, if it is recorded.
pub(crate) struct Taped<M> {
    machine: Recorded<M>,
    tape: Option<Tape>,
}

/// The file of a recording.
struct Tape {
    path: PathBuf,
    bytes: u64,
}

impl<M: Recordable> Taped<M> {
    /// A machine in a new life, with what it was made from; recorded in `directory` as `party`, if there is
    /// one.
    pub(crate) fn of(
        machine: M,
        origin: &M::Origin,
        directory: Option<&Path>,
        party: &str,
    ) -> Taped<M> {
        let tape = directory.map(|directory| {
            let life = crate::instance::random() as u64;
            Tape { path: directory.join(format!("{party}-{life:016x}.{ENDING}")), bytes: 0 }
        });
        Taped { machine: Recorded::of(machine, tape.as_ref().map(|_| origin)), tape }
    }

    /// A turn is over: what it has added goes to the file.
    pub(crate) fn turned(&mut self) {
        let Some(tape) = &mut self.tape else { return };
        let rows = self.machine.take();
        if !rows.is_empty() && tape.append(&rows).is_err() {
            self.tape = None;
            self.machine.silence();
        }
    }
}

impl Tape {
    /// Puts rows behind the others.
    fn append(&mut self, rows: &[u8]) -> io::Result<()> {
        self.bytes += rows.len() as u64;
        let limit = rustix::process::getrlimit(Resource::Fsize).current;
        if limit.is_some_and(|limit| self.bytes > limit) {
            // Writing further would end the process by a signal.
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::CLOEXEC;
        let file = rustix::fs::open(&self.path, flags, Mode::RUSR | Mode::WUSR)?;
        let mut rest = rows;
        while !rest.is_empty() {
            match rustix::io::write(&file, rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => rest = &rest[written..],
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl<M> Deref for Taped<M> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.machine
    }
}

impl<M: Recordable> Machine for Taped<M> {
    type Event = M::Event;
    type Action = M::Action;

    fn step(&mut self, now: Nanos, event: M::Event, out: &mut Vec<M::Action>) {
        self.machine.step(now, event, out);
    }
}
