//! Takes full chunks out of the spools while the program runs and gives them back, so that a few
//! warm chunks per thread do for a run of any length.
//!
//! A full chunk is drained when all its slots are valid: a thread may have taken a slot and be
//! interrupted before it wrote it. When a process is gone, the rest of its file is drained too
//! and the file removed, so that a script of thousands of short commands leaves no thousands of
//! files. With a ring, nothing is drained; the oldest files of processes that are gone make room.

use super::control::Control;
use super::error::{RecordingError, at};
use super::settings::Settings;
use iolab_trace::spool::{
    CHUNK_BYTES, CHUNK_RECORDS, Lost, PROCESS_MAGIC, RECORD_BYTES, Record, chunk, control,
    encode_drained, encode_head, process as head, read_u32, state,
};
use memmap2::{MmapOptions, MmapRaw};
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::time::Duration;

/// Pause after a step that found something, and after one that did not.
const BUSY: Duration = Duration::from_millis(1);
const IDLE: Duration = Duration::from_millis(8);
/// Every so many steps the drain looks which processes are gone.
const STEPS_PER_LOOK: u32 = 16;
/// A full chunk with a slot that stays empty for so many steps has lost its writer.
const PATIENCE: u32 = 200;

/// Whether a path in the spool directory is that of a process file.
pub(super) fn is_process_file(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("process-"))
}

/// A process file, mapped as large as it may become; only what is used of it has room behind it.
struct Spool {
    path: PathBuf,
    map: MmapRaw,
    impatience: u32,
}

impl Spool {
    /// Opens a file once its head is complete.
    fn open(path: &Path) -> io::Result<Option<Spool>> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let length = file.metadata()?.len();
        // Read, not looked at in the mapping: that could ask for room where there is none.
        let mut magic = [0; 8];
        if length < CHUNK_BYTES as u64
            || file.read_exact_at(&mut magic, 0).is_err()
            || u64::from_le_bytes(magic) != PROCESS_MAGIC
        {
            return Ok(None);
        }
        let map = MmapOptions::new().len(length as usize).map_raw(&file)?;
        Ok(Some(Spool { path: path.to_owned(), map, impatience: 0 }))
    }

    fn word(&self, at: usize) -> u32 {
        // SAFETY: inside the head, which is allocated.
        unsafe { &*(self.map.as_ptr().add(at) as *const AtomicU32) }.load(Ordering::Acquire)
    }

    fn chunks(&self) -> usize {
        let room = self.map.len() / CHUNK_BYTES - 1;
        (self.word(head::CHUNKS) as usize).min(head::CHUNKS_MAX).min(room)
    }

    fn state(&self, index: usize) -> &AtomicU8 {
        // SAFETY: inside the head, which is allocated.
        unsafe { &*(self.map.as_ptr().add(head::STATES + index) as *const AtomicU8) }
    }

    /// The bytes of a chunk whose state says that it was allocated.
    fn chunk(&self, index: usize) -> &[u8] {
        // SAFETY: allocated before its state was set. Slots of a full chunk are written once by
        // their owners; a torn record has no valid tag yet.
        unsafe {
            let start = self.map.as_ptr().add((index + 1) * CHUNK_BYTES);
            std::slice::from_raw_parts(start, CHUNK_BYTES)
        }
    }

    fn head(&self) -> &[u8] {
        // SAFETY: the head is allocated.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr(), head::STATES) }
    }

    fn is_gone(&self) -> bool {
        let pid = self.word(head::PID) as i32;
        // SAFETY: signal 0 only asks whether the process exists.
        let asked = unsafe { libc::kill(pid, 0) };
        asked != 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
    }
}

fn is_complete(chunk: &[u8]) -> bool {
    let tag = read_u32(chunk, chunk::TAG);
    (1..=CHUNK_RECORDS).all(|slot| read_u32(chunk, slot * RECORD_BYTES + 60) == tag)
}

/// A chunk of which only the names are valid.
fn names_only(chunk: &[u8]) -> Vec<u8> {
    let mut names = chunk.to_vec();
    let tag = read_u32(chunk, chunk::TAG);
    for slot in 1..=CHUNK_RECORDS {
        let is_name = Record::read(chunk, slot, tag).is_some_and(|record| record.is_text());
        if !is_name {
            names[slot * RECORD_BYTES + 60..][..4].fill(0);
        }
    }
    names
}

pub(super) struct Drain {
    directory: PathBuf,
    file: File,
    good_bytes: u64,
    failed: bool,
    ring: bool,
    seen_processes: u32,
    waiting: bool,
    known: BTreeSet<PathBuf>,
    live: Vec<Spool>,
    gone: Vec<Spool>,
    steps: u32,
    buffer: Vec<u8>,
}

impl Drain {
    pub(super) fn create(directory: &Path, settings: &Settings) -> Result<Drain, RecordingError> {
        let path = directory.join("drained");
        Ok(Drain {
            directory: directory.to_owned(),
            file: OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&path)
                .map_err(at(&path))?,
            good_bytes: 0,
            failed: false,
            ring: settings.ring,
            seen_processes: 0,
            waiting: false,
            known: BTreeSet::new(),
            live: Vec::new(),
            gone: Vec::new(),
            steps: 0,
            buffer: Vec::new(),
        })
    }

    /// One round over all spools; the answer is how long to wait until the next.
    pub(super) fn step(&mut self, control: &Control) -> Duration {
        self.keep_spares(control);
        self.meet_newcomers(control);
        self.steps = self.steps.wrapping_add(1);
        let mut found = 0;
        if !self.ring && !self.failed {
            let mut live = std::mem::take(&mut self.live);
            found = live.iter_mut().map(|spool| self.drain_full(spool, control)).sum();
            self.live = live;
        }
        if self.steps.is_multiple_of(STEPS_PER_LOOK) {
            self.part_with_the_gone(control);
        }
        self.keep_limit(control);
        if found > 0 { BUSY } else { IDLE }
    }

    /// Has files ready for processes that may not make one as large (`ulimit -f`). They cost a name
    /// each; more of them only once somebody takes them.
    pub(super) fn keep_spares(&mut self, control: &Control) {
        let taken = control.word(control::SPARES_TAKEN).load(Ordering::Acquire);
        let wanted = taken.saturating_add(if taken == 0 { 4 } else { 64 });
        let made = control.word(control::SPARES).load(Ordering::Relaxed);
        let bytes = control.counter(control::PROCESS_BYTES).load(Ordering::Relaxed);
        for number in made..wanted {
            let path = self.directory.join(format!("spare-{number}"));
            let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
            if file.and_then(|file| file.set_len(bytes)).is_err() {
                return;
            }
            control.word(control::SPARES).store(number + 1, Ordering::Release);
        }
    }

    fn meet_newcomers(&mut self, control: &Control) {
        let count = control.word(control::PROCESSES).load(Ordering::Acquire);
        if count == self.seen_processes && !self.waiting {
            return;
        }
        self.seen_processes = count;
        self.waiting = false;
        let Ok(entries) = fs::read_dir(&self.directory) else { return };
        for path in entries.flatten().map(|entry| entry.path()).filter(|path| is_process_file(path))
        {
            if self.known.contains(&path) {
                continue;
            }
            match Spool::open(&path) {
                Ok(Some(spool)) => {
                    self.known.insert(path);
                    self.live.push(spool);
                }
                // Half made: looked at again in the next step.
                _ => self.waiting = true,
            }
        }
    }

    fn drain_full(&mut self, spool: &mut Spool, control: &Control) -> usize {
        let mut count = 0;
        for index in 0..spool.chunks() {
            if spool.state(index).load(Ordering::Acquire) != state::FULL {
                continue;
            }
            if !is_complete(spool.chunk(index)) && spool.impatience < PATIENCE {
                spool.impatience += 1;
                continue;
            }
            spool.impatience = 0;
            self.take(spool, index);
            if !self.write(control) {
                return count;
            }
            spool.state(index).store(state::FREE, Ordering::Release);
            count += 1;
        }
        count
    }

    fn take(&mut self, spool: &Spool, index: usize) {
        let bytes = spool.chunk(index);
        let tag = read_u32(bytes, chunk::TAG);
        encode_drained(spool.word(head::INDEX), index as u32, tag, bytes, &mut self.buffer);
    }

    /// Writes the buffer away, all of it or nothing.
    fn write(&mut self, control: &Control) -> bool {
        let written = self.file.write_all(&self.buffer);
        let length = self.buffer.len() as u64;
        self.buffer.clear();
        if written.is_err() {
            let _ = self.file.set_len(self.good_bytes);
            self.failed = true;
            // The records stay in the spools; nobody makes room any more.
            control.word(control::STOP).store(2, Ordering::Release);
            return false;
        }
        self.good_bytes += length;
        control.counter(control::DRAINED).store(self.good_bytes, Ordering::Relaxed);
        true
    }

    fn part_with_the_gone(&mut self, control: &Control) {
        let (gone, live) = std::mem::take(&mut self.live).into_iter().partition(Spool::is_gone);
        self.live = live;
        for spool in gone {
            if self.ring {
                self.gone.push(spool);
            } else if !self.failed {
                self.bury(&spool, control);
            }
        }
    }

    /// Keeps all a process left and removes its file.
    fn bury(&mut self, spool: &Spool, control: &Control) {
        for index in 0..spool.chunks() {
            if spool.state(index).load(Ordering::Acquire) > state::FREE {
                self.take(spool, index);
            }
        }
        encode_head(spool.head(), &mut self.buffer);
        if self.write(control) {
            self.remove(spool, control);
        }
    }

    fn remove(&mut self, spool: &Spool, control: &Control) {
        let bytes = ((1 + spool.chunks()) * CHUNK_BYTES) as u64;
        if fs::remove_file(&spool.path).is_ok() {
            control.counter(control::USED).fetch_sub(bytes, Ordering::Relaxed);
            self.known.remove(&spool.path);
        }
    }

    /// Stops the recording at its limit; a ring throws the oldest away instead.
    fn keep_limit(&mut self, control: &Control) {
        let limit = control.counter(control::LIMIT).load(Ordering::Relaxed);
        let used = |control: &Control| control.counter(control::USED).load(Ordering::Relaxed);
        if !self.ring {
            if used(control).saturating_add(self.good_bytes) > limit {
                let stop = control.word(control::STOP);
                let _ = stop.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed);
            }
            return;
        }
        while used(control) > limit / 10 * 9 && !self.gone.is_empty() {
            let spool = self.gone.remove(0);
            let chunks = (0..spool.chunks())
                .filter(|&i| spool.state(i).load(Ordering::Relaxed) > state::FREE);
            let chunks: Vec<usize> = chunks.collect();
            control.count_lost(Lost::Overwritten, (chunks.len() * CHUNK_RECORDS) as u64);
            // Names stay: processes that live may still use what was opened here.
            for index in chunks {
                let names = names_only(spool.chunk(index));
                let tag = read_u32(&names, chunk::TAG);
                let process = spool.word(head::INDEX);
                encode_drained(process, index as u32, tag, &names, &mut self.buffer);
            }
            encode_head(spool.head(), &mut self.buffer);
            if self.write(control) {
                self.remove(&spool, control);
            }
        }
    }
}
