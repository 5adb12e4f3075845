//! A recording: the spool directory of a run, from its start to the trace.
//!
//! [`Recording::begin`] makes the directory and its control page; the command runs with the
//! variables of [`Recording::environment`]; meanwhile the recording, being a [`Watcher`], drains full
//! chunks; [`Recording::end`] makes the trace. After a crash of the launcher, [`recover`] does the
//! last step alone.

mod asking;
mod clock_source;
mod control;
mod drain;
mod error;
mod machine;
mod place;
mod settings;
mod teller;
mod unattended;

pub use clock_source::ClockSource;
pub use error::RecordingError;
pub(crate) use machine::boot;
pub use machine::host;
pub use settings::{Settings, StreamCalls};
pub use teller::Teller;
pub use unattended::{is_unattended, part_of, unattended_in};

use crate::launch::Watcher;
use crate::limits;
use control::Control;
use drain::Drain;
use error::at;
use iolab_trace::Trace;
use iolab_trace::finish::{Launch, Side, Spools, finish};
use iolab_trace::spool::{CHUNK_BYTES, control as page, process as head};
use memmap2::{Mmap, MmapOptions};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A recording that goes on.
pub struct Recording {
    directory: PathBuf,
    control: Control,
    drain: Drain,
    launch: Launch,
}

impl Recording {
    /// Makes the spool directory for a run of `command`.
    pub fn begin(
        settings: &Settings,
        command: &[OsString],
        strategies: &[String],
    ) -> Result<Recording, RecordingError> {
        limits::lift();
        let directory = match (&settings.directory, place::in_memory()) {
            (Some(parent), _) => place::make(parent),
            (None, Some(memory)) => {
                place::make(memory).and_then(|it| place::drain_to_disk(&it).map(|()| it))
            }
            (None, None) => place::make(&std::env::temp_dir()),
        }?;
        let begun = Recording::in_directory(&directory, settings, command, strategies);
        if begun.is_err() {
            place::remove(&directory);
        }
        begun
    }

    fn in_directory(
        directory: &Path,
        settings: &Settings,
        command: &[OsString],
        strategies: &[String],
    ) -> Result<Recording, RecordingError> {
        let control = Control::create(&directory.join("control"), settings)?;
        let mut drain = Drain::create(directory, settings)?;
        drain.keep_spares(&control);
        let launch = machine::launch(command, strategies);
        let recording = Recording { directory: directory.to_owned(), control, drain, launch };
        recording.save_launch()?;
        Ok(recording)
    }

    /// From now on its calls are told by mounts over these directories; see [`Teller`].
    ///
    /// # Errors
    /// When that cannot be written down.
    pub fn note_mounts(&mut self, directories: &[PathBuf]) -> Result<(), RecordingError> {
        let names = directories.iter().map(|it| it.to_string_lossy().into_owned());
        self.launch.mounted_over = names.collect();
        self.save_launch()
    }

    /// The directory, for a message to a person.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Raw records that were taken out of the program's memory so far, in bytes.
    pub fn raw_bytes(&self) -> u64 {
        self.control.counter(page::DRAINED).load(Ordering::Relaxed)
    }

    /// Variables the command must have.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        vec![("IOLAB_SPOOL".into(), self.directory.clone().into_os_string())]
    }

    /// Makes the trace of the program's own calls and removes the directory.
    pub fn end(self) -> Result<Trace, RecordingError> {
        let trace = self.finished(Side::Program)?;
        self.discard();
        Ok(trace)
    }

    /// The trace of one side as it stands; the directory stays.
    pub fn finished(&self, side: Side) -> Result<Trace, RecordingError> {
        self.control.calibrate();
        let mut trace = finish_directory(&self.directory, side)?;
        let outlived =
            trace.header.processes.iter().filter(|it| it.ending == "cut" && lives(it.pid));
        if let count @ 1.. = outlived.count() {
            let text = "that outlived the recording, from its end on";
            trace.header.losses.unseen.push(format!("{count} processes {text}"));
        }
        Ok(trace)
    }

    /// Removes the directory and all in it.
    pub fn discard(self) {
        // Processes that outlive it need not go on.
        self.control.word(page::STOP).store(1, Ordering::Release);
        place::remove(&self.directory);
    }

    fn save_launch(&self) -> Result<(), RecordingError> {
        let path = self.directory.join("launch.json");
        let text = serde_json::to_vec(&self.launch).unwrap_or_default();
        let file =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path);
        file.and_then(|mut file| file.write_all(&text)).map_err(at(&path))
    }
}

impl Watcher for Recording {
    fn started(&mut self, pid: u32) {
        self.launch.pid = pid;
        // The number only serves to notice a command that never loaded the library.
        let _ = self.save_launch();
    }

    fn tick(&mut self) -> Duration {
        self.control.calibrate();
        self.drain.step(&self.control)
    }
}

/// Makes the trace of what an interrupted recording left in `directory`, or one that nobody launched.
pub fn recover(directory: &Path) -> Result<Trace, RecordingError> {
    if is_unattended(directory) {
        return part_of(directory);
    }
    finish_directory(directory, Side::Program)
}

/// Removes the spool directory of a recording whose trace is safe.
pub fn remove(directory: &Path) {
    place::remove(directory);
}

fn lives(pid: u32) -> bool {
    // SAFETY: signal 0 only asks whether the process exists.
    pid != 0 && unsafe { libc::kill(pid as i32, 0) } == 0
}

/// Waits until the program of a recording is gone whose recorder is.
pub fn wait_for_guest(directory: &Path) {
    let pid = read_launch(directory).pid;
    while lives(pid) {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A file mapped for reading; `None` when it is empty.
fn map(path: &Path) -> io::Result<Option<Mmap>> {
    let file = File::open(path)?;
    if file.metadata()?.len() == 0 {
        return Ok(None);
    }
    // SAFETY: whoever still writes into the file only adds records; each is checked by its tag,
    // and nothing of what is read is trusted. Nobody makes a spool file shorter.
    unsafe { Mmap::map(&file) }.map(Some)
}

fn finish_directory(directory: &Path, side: Side) -> Result<Trace, RecordingError> {
    let need = |name: &str| {
        let path = directory.join(name);
        map(&path).map_err(at(&path))
    };
    let control = need("control")?;
    let drained = need("drained").ok().flatten();
    let told = need(teller::FILE).ok().flatten();
    let processes = process_files(directory)?;
    let spools = Spools {
        control: control.as_deref().unwrap_or_default(),
        processes: processes.iter().map(|file| &file[..]).collect(),
        drained: drained.as_deref().unwrap_or_default(),
        told: told.as_deref().unwrap_or_default(),
        launch: read_launch(directory),
    };
    finish(&spools, side).map_err(|error| RecordingError::Finish(directory.to_owned(), error))
}

fn process_files(directory: &Path) -> Result<Vec<Mmap>, RecordingError> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(at(directory))? {
        let path = entry.map_err(at(directory))?.path();
        if drain::is_process_file(&path) {
            files.extend(map_process(&path).map_err(at(&path))?);
        }
    }
    Ok(files)
}

/// A process file as far as it was used: it is made as large as it may become.
fn map_process(path: &Path) -> io::Result<Option<Mmap>> {
    let file = File::open(path)?;
    let mut chunks = [0; 4];
    let used = match file.read_exact_at(&mut chunks, head::CHUNKS as u64) {
        Ok(()) => (1 + u32::from_le_bytes(chunks) as usize) * CHUNK_BYTES,
        Err(_) => CHUNK_BYTES,
    };
    let length = (file.metadata()?.len() as usize).min(used);
    let mut magic = [0; 8];
    // Half made: its process was ended before it had recorded anything.
    let begun = file.read_exact_at(&mut magic, 0).is_ok() && magic != [0; 8];
    if length == 0 || !begun {
        return Ok(None);
    }
    // SAFETY: as in `map`.
    unsafe { MmapOptions::new().len(length).map(&file) }.map(Some)
}

/// What the launcher knew; nothing when it was cut before it could say.
fn read_launch(directory: &Path) -> Launch {
    if let Some(launch) = unattended::launch(directory) {
        return launch;
    }
    let text = fs::read(directory.join("launch.json")).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}
