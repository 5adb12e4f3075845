//! Records of what one process carried out for others: the server of a mount tells of their calls, since they have no
//! library that would.
//!
//! What a process is, the system tells; but not while it executes a program, and it may be waiting for us then: it closes
//! files on the way. So a thread of its own asks, and nobody waits for it long ([`Asking`]).
//!
//! It has a file of its own beside those of libraries, `told`, of the form of `drained`: records by process, and of each
//! process its head, written anew when more of it is known. A server that is killed loses the records that its
//! memory has, some hundred by process.

use super::asking::{Asking, Found};
use super::control::Control;
use super::error::{RecordingError, at};
use super::machine;
use iolab_trace::spool::{
    CHUNK_RECORDS, Image, Lost, Record, control, encode_head, encode_records,
};
use std::collections::{BTreeSet, HashMap};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The file's name in a spool directory.
pub(super) const FILE: &str = "told";

/// Tells of calls of others in a recording's spool directory.
pub struct Teller {
    control: Control,
    asking: Asking,
    told: Mutex<Told>,
}

struct Told {
    file: File,
    good_bytes: u64,
    host: String,
    processes: Vec<Process>,
    /// By its number in the system: its process, and its number in that.
    threads: HashMap<u32, (usize, u16)>,
    buffer: Vec<u8>,
}

struct Process {
    image: Image,
    thread_count: u16,
    /// Of what was written of it.
    frame_count: u32,
    records: Vec<Record>,
}

impl Teller {
    /// In the directory of a recording that goes on.
    ///
    /// # Errors
    /// When the directory is none, or takes no file.
    pub fn of(directory: &Path) -> Result<Teller, RecordingError> {
        let control = Control::open(&directory.join("control"))?;
        let path = directory.join(FILE);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(at(&path))?;
        let told = Told {
            file,
            good_bytes: 0,
            host: machine::host(),
            processes: Vec::new(),
            threads: HashMap::new(),
            buffer: Vec::new(),
        };
        Ok(Teller { control, asking: Asking::begin(), told: Mutex::new(told) })
    }

    /// A reading of the recording's clock.
    pub fn now(&self) -> u64 {
        self.control.reading()
    }

    /// A number for a path, of which records speak; `thread` is that of the system.
    pub fn name(&self, thread: u32, path: &[u8]) -> u32 {
        let number = self.control.word(control::NUMBER).fetch_add(1, Ordering::Relaxed);
        let parts = (0..).map_while(|part| Record::of_text(number, path, part));
        self.put(thread, parts);
        number
    }

    /// A call of a thread.
    pub fn call(&self, thread: u32, record: Record) {
        self.put(thread, [record]);
    }

    /// Whether a thread has been told of.
    pub fn knows(&self, thread: u32) -> bool {
        self.lock().threads.contains_key(&thread)
    }

    /// A thread's process may be another program by now.
    pub fn look_at(&self, thread: u32) {
        let Some(found) = self.asking.about(thread) else { return };
        let mut told = self.lock();
        match told.threads.get(&thread).map(|&(at, _)| at) {
            Some(at) if told.processes[at].image.pid == found.pid => {
                let image = &mut told.processes[at].image;
                if !found.command.is_empty() && found.command != image.command {
                    (image.program, image.command) = (found.program, found.command);
                    told.put_head(at);
                }
            }
            _ => told.meet(thread, found, &self.control),
        }
    }

    /// All that was told is in the file.
    pub fn flush(&self) {
        // Without the lock: who waits for it may be who is asked about.
        let ended = self.ended();
        self.write_down(|pid| ended.contains(&pid));
    }

    /// The same when the last process has gone, or is about to.
    pub fn end(&self) {
        self.write_down(|_| true);
    }

    fn write_down(&self, has_ended: impl Fn(u32) -> bool) {
        let now = self.control.reading();
        let mut told = self.lock();
        for at in 0..told.processes.len() {
            let image = &mut told.processes[at].image;
            if image.end == 0 && has_ended(image.pid) {
                image.end = now;
                told.put_head(at);
            }
            told.put_records(at);
        }
        told.write(&self.control);
    }

    /// Processes that make no calls any more and of which that is not written down.
    fn ended(&self) -> BTreeSet<u32> {
        let told = self.lock();
        let open = told.processes.iter().map(|it| &it.image).filter(|image| image.end == 0);
        let pids: Vec<u32> = open.map(|image| image.pid).collect();
        drop(told);
        let has_ended = |pid: &u32| self.asking.at_leisure(*pid).is_some_and(|it| it.has_ended);
        pids.into_iter().filter(has_ended).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, thread: u32, records: impl IntoIterator<Item = Record>) {
        let mut told = self.lock();
        if !told.threads.contains_key(&thread) {
            drop(told);
            let found = self.asking.about(thread).unwrap_or_else(|| Found::unknown(thread));
            told = self.lock();
            told.meet(thread, found, &self.control);
        }
        let Some(&(at, number)) = told.threads.get(&thread) else {
            return self.control.count_lost(Lost::Setup, 1);
        };
        let process = &mut told.processes[at];
        process.records.extend(records.into_iter().map(|it| Record { thread: number, ..it }));
        if process.records.len() >= CHUNK_RECORDS {
            told.put_records(at);
            told.write(&self.control);
        }
    }
}

impl Told {
    /// From now on a thread belongs to this process.
    fn meet(&mut self, thread: u32, found: Found, control: &Control) {
        let known = self.processes.iter().rposition(|process| process.image.pid == found.pid);
        let at = known.unwrap_or_else(|| {
            self.processes.push(Process {
                image: Image {
                    index: self.processes.len() as u32,
                    pid: found.pid,
                    parent: found.parent,
                    start: control.reading(),
                    end: 0,
                    host: self.host.clone(),
                    program: found.program,
                    command: found.command,
                },
                thread_count: 0,
                frame_count: 0,
                records: Vec::new(),
            });
            self.put_head(self.processes.len() - 1);
            self.processes.len() - 1
        });
        let process = &mut self.processes[at];
        self.threads.insert(thread, (at, process.thread_count));
        process.thread_count = process.thread_count.saturating_add(1);
    }

    fn put_head(&mut self, at: usize) {
        encode_head(&self.processes[at].image.head(), &mut self.buffer);
    }

    fn put_records(&mut self, at: usize) {
        let process = &mut self.processes[at];
        if process.records.is_empty() {
            return;
        }
        process.frame_count += 1;
        let frame = (process.image.index, 0, process.frame_count);
        encode_records(frame, process.records.drain(..), &mut self.buffer);
    }

    /// Writes the buffer away, all of it or nothing.
    fn write(&mut self, control: &Control) {
        let (limit, used) = (control.counter(control::LIMIT), control.counter(control::DRAINED));
        let length = self.buffer.len() as u64;
        let is_over = self.good_bytes.saturating_add(length) > limit.load(Ordering::Relaxed);
        let reason = match (is_over, control.word(control::STOP).load(Ordering::Relaxed)) {
            (true, _) | (_, 1) => Some(Lost::Limit),
            (_, 2) => Some(Lost::Disk),
            _ => match self.file.write_all_at(&self.buffer, self.good_bytes) {
                Ok(()) => None,
                Err(_) => Some(Lost::Disk),
            },
        };
        match reason {
            None => {
                self.good_bytes += length;
                used.store(self.good_bytes, Ordering::Relaxed);
            }
            Some(reason) => {
                let stop = if reason == Lost::Limit { 1 } else { 2 };
                control.word(control::STOP).store(stop, Ordering::Relaxed);
                control.count_lost(reason, calls(&self.buffer));
                let _ = self.file.set_len(self.good_bytes);
            }
        }
        self.buffer.clear();
    }
}

/// How many calls frames hold.
fn calls(mut frames: &[u8]) -> u64 {
    let mut count = 0;
    while let Some(frame) = iolab_trace::spool::take_drained(&mut frames) {
        let records = frame.map(|chunk| chunk.records).unwrap_or_default();
        count += records.iter().filter(|record| !record.is_text()).count() as u64;
    }
    count
}
