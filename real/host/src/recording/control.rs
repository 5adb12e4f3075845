//! The control page of a run, shared with every recorded process.

use super::clock_source::ClockSource;
use super::error::{RecordingError, at};
use super::machine;
use super::settings::{Settings, StreamCalls};
use crate::limits;
use iolab_trace::finish::FinishError;
use iolab_trace::spool::{
    CHUNK_BYTES, CONTROL_BYTES, CONTROL_MAGIC, Lost, SPOOL_VERSION, control, layer,
    process_file_bytes,
};
use memmap2::{MmapOptions, MmapRaw};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

pub(super) struct Control {
    page: MmapRaw,
    clock: ClockSource,
}

impl Control {
    pub(super) fn create(path: &Path, settings: &Settings) -> Result<Control, RecordingError> {
        let clock = settings.clock.unwrap_or_else(ClockSource::of_this_machine);
        // Written, not only made longer: the room is allocated and a full disk shows here.
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(at(path))?;
        file.write_all(&[0; CONTROL_BYTES]).map_err(at(path))?;
        let page = MmapOptions::new().len(CONTROL_BYTES).map_raw(&file).map_err(at(path))?;
        let control = Control { page, clock };
        control.fill(settings);
        Ok(control)
    }

    /// The page of a recording that goes on.
    pub(super) fn open(path: &Path) -> Result<Control, RecordingError> {
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(at(path))?;
        let none = || RecordingError::Finish(path.to_owned(), FinishError::NoControl);
        if file.metadata().map_err(at(path))?.len() < CONTROL_BYTES as u64 {
            return Err(none());
        }
        let page = MmapOptions::new().len(CONTROL_BYTES).map_raw(&file).map_err(at(path))?;
        let control = Control { page, clock: ClockSource::Monotonic };
        if control.counter(control::MAGIC).load(Ordering::Acquire) != CONTROL_MAGIC {
            return Err(none());
        }
        let clock = match control.word(control::CLOCK).load(Ordering::Relaxed) {
            0 => ClockSource::Counter,
            _ => ClockSource::Monotonic,
        };
        Ok(Control { clock, ..control })
    }

    fn fill(&self, settings: &Settings) {
        let layers = u32::from(settings.posix) << layer::POSIX
            | u32::from(settings.stdio != StreamCalls::Nothing) << layer::STDIO
            | u32::from(settings.below) << layer::BELOW
            | u32::from(settings.mpi) << layer::MPI
            | u32::from(settings.hdf5) << layer::HDF5
            | u32::from(settings.netcdf) << layer::NETCDF;
        self.word(control::VERSION).store(SPOOL_VERSION, Ordering::Relaxed);
        self.word(control::CLOCK)
            .store(u32::from(self.clock == ClockSource::Monotonic), Ordering::Relaxed);
        self.word(control::NUMBER).store(1, Ordering::Relaxed);
        self.word(control::RING).store(u32::from(settings.ring), Ordering::Relaxed);
        self.word(control::LAYERS).store(layers, Ordering::Relaxed);
        self.word(control::STREAM_ROWS).store(settings.stdio.rows(), Ordering::Relaxed);
        self.counter(control::LIMIT).store(settings.limit_bytes, Ordering::Relaxed);
        let bytes = process_bytes(settings.limit_bytes);
        self.counter(control::PROCESS_BYTES).store(bytes, Ordering::Relaxed);
        self.read_clocks(control::CALIBRATION);
        self.read_clocks(control::LATEST);
        self.counter(control::UNIX_BOUND).store(machine::unix_bound(), Ordering::Relaxed);
        self.counter(control::MAGIC).store(CONTROL_MAGIC, Ordering::Release);
    }

    pub(super) fn word(&self, at: usize) -> &AtomicU32 {
        // SAFETY: inside the page, aligned, and only ever accessed as atomics.
        unsafe { &*(self.page.as_ptr().add(at) as *const AtomicU32) }
    }

    pub(super) fn counter(&self, at: usize) -> &AtomicU64 {
        // SAFETY: as above.
        unsafe { &*(self.page.as_ptr().add(at) as *const AtomicU64) }
    }

    pub(super) fn count_lost(&self, reason: Lost, count: u64) {
        self.counter(control::LOST + reason as usize * 8).fetch_add(count, Ordering::Relaxed);
    }

    /// Reads the clocks once more: the longer the time between the first and the last reading,
    /// the better the rate of the counter is known.
    pub(super) fn calibrate(&self) {
        self.read_clocks(control::LATEST);
    }

    /// Stores the readings of the attempt in which the least time passed between them.
    fn read_clocks(&self, at: usize) {
        let attempts = (0..5).map(|_| {
            let before = self.reading();
            let (monotonic, unix) =
                (nanoseconds(libc::CLOCK_MONOTONIC), nanoseconds(libc::CLOCK_REALTIME));
            let after = self.reading();
            (after.wrapping_sub(before), before + after.wrapping_sub(before) / 2, monotonic, unix)
        });
        if let Some((_, counter, monotonic, unix)) = attempts.min() {
            for (index, value) in [counter, monotonic, unix].into_iter().enumerate() {
                self.counter(at + index * 8).store(value, Ordering::Relaxed);
            }
        }
    }

    pub(super) fn reading(&self) -> u64 {
        match self.clock {
            ClockSource::Counter => iolab_processor::counter(),
            ClockSource::Monotonic => nanoseconds(libc::CLOCK_MONOTONIC),
        }
    }
}

/// Size of a process file: room for the run's limit, as far as this process may make and map it.
fn process_bytes(limit_bytes: u64) -> u64 {
    let chunk = CHUNK_BYTES as u64;
    let most = process_file_bytes(limit_bytes);
    let space = limits::of(limits::ADDRESS_SPACE).map_or(most, |it| (it / 64).max(64 * chunk));
    let size = limits::of(limits::FILE_SIZE).unwrap_or(most);
    most.min(space).min(size) / chunk * chunk
}

fn nanoseconds(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills the structure; cannot fail for these clocks.
    unsafe { libc::clock_gettime(clock, &mut time) };
    since_zero(&time)
}

/// Nanoseconds; of a clock that was set to before 1970 none.
fn since_zero(time: &libc::timespec) -> u64 {
    let seconds = time.tv_sec.max(0) as u64;
    seconds.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_stands_before_1970_reads_none_and_ends_no_recording() {
        let at = |tv_sec, tv_nsec| since_zero(&libc::timespec { tv_sec, tv_nsec });
        assert_eq!([at(-5, 0), at(0, 7), at(2, 7)], [0, 7, 2_000_000_007]);
        assert_eq!(at(i64::MAX, 999_999_999), u64::MAX);
    }
}
