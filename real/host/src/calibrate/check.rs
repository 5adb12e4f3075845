//! The proof of a calibration: small workloads done for real and by the model, side by side.
//!
//! None of them repeats what calibration measured: sizes lie between the measured ones, and calls
//! of different kinds follow each other as in a program.

use super::CalibrationError;
use super::stopwatch::{Counting, Effort, sample};
use iolab_device::local::{LocalFile, LocalStorage};
use iolab_vocab::{Extent, Nanos, Random, Seed};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// One workload, measured and predicted.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// What it does.
    pub workload: &'static str,
    /// What one call of it took, nanoseconds.
    pub measured_ns: f64,
    /// What the model says.
    pub predicted_ns: f64,
}

impl Check {
    /// Relative error of the prediction; positive when it is too slow.
    pub fn error(&self) -> f64 {
        self.predicted_ns / self.measured_ns - 1.0
    }
}

/// Runs every workload in `directory`.
pub fn check(storage: &LocalStorage, directory: &Path) -> Result<Vec<Check>, CalibrationError> {
    let wrong = |cause| CalibrationError {
        what: format!("cannot check in {}", directory.display()),
        cause,
    };
    let scratch = tempfile::Builder::new().prefix(".iolab-check-").tempdir_in(directory);
    let scratch = scratch.map_err(wrong)?;
    let path = scratch.path().join("data");
    let checks = [odd_appends, scattered_rewrites, short_lived_files, synced_records]
        .iter()
        .map(|workload| workload(storage, &path))
        .collect::<io::Result<Vec<Check>>>();
    checks.map_err(wrong)
}

fn mean_ns(total: impl Iterator<Item = Nanos>, calls: u64) -> f64 {
    total.map(|cost| cost.get() as f64).sum::<f64>() / calls as f64
}

fn odd_appends(storage: &LocalStorage, path: &Path) -> io::Result<Check> {
    const CALLS: u64 = 4000;
    let lengths: Vec<u64> = {
        let mut random = Random::new(Seed(1));
        (0..CALLS).map(|_| 50 + random.below(900)).collect()
    };
    let buffer = [1; 1000];
    let measured = sample(Counting::Call, Effort::new(7, CALLS), |stopwatch, calls| {
        let mut file = File::create(path)?;
        stopwatch.start();
        for length in &lengths[..calls as usize] {
            file.stream_position()?;
            file.write_all(&buffer[..*length as usize])?;
        }
        stopwatch.stop();
        fs::remove_file(path)?;
        Ok(calls)
    })?;
    let mut file = LocalFile::default();
    let costs = lengths.iter().map(|&length| {
        let extent = Extent::new(file.size_bytes, length);
        Nanos(storage.write(&mut file, extent).get() + storage.call.seek_ns as u64)
    });
    let predicted_ns = mean_ns(costs, CALLS);
    let workload = "seek, append 50 to 950 B";
    Ok(Check { workload, measured_ns: measured.cost_ns, predicted_ns })
}

fn scattered_rewrites(storage: &LocalStorage, path: &Path) -> io::Result<Check> {
    const CALLS: u64 = 3000;
    const FILE_BYTES: u64 = 4 << 20;
    let extents: Vec<Extent> = {
        let mut random = Random::new(Seed(2));
        (0..CALLS).map(|_| Extent::new(random.below(FILE_BYTES - 12_000), 3000)).collect()
    };
    fs::write(path, vec![0; FILE_BYTES as usize])?;
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let mut buffer = [1; 3000];
    let measured = sample(Counting::Call, Effort::new(7, CALLS), |stopwatch, calls| {
        stopwatch.start();
        for extent in &extents[..calls as usize] {
            file.read_exact_at(&mut buffer, extent.offset)?;
            file.write_all_at(&buffer, extent.offset)?;
        }
        stopwatch.stop();
        Ok(calls)
    })?;
    fs::remove_file(path)?;
    let mut file = LocalFile::default();
    storage.write(&mut file, Extent::new(0, FILE_BYTES));
    let costs = extents
        .iter()
        .map(|&extent| storage.read(&mut file, extent).after(storage.write(&mut file, extent)));
    let predicted_ns = mean_ns(costs, CALLS);
    let workload = "read and rewrite 3000 B anywhere in 4 MiB";
    Ok(Check { workload, measured_ns: measured.cost_ns, predicted_ns })
}

fn short_lived_files(storage: &LocalStorage, path: &Path) -> io::Result<Check> {
    const CALLS: u64 = 150;
    const FILE_BYTES: u64 = 20_000;
    let buffer = vec![1; FILE_BYTES as usize];
    let measured = sample(Counting::Call, Effort::new(7, CALLS), |stopwatch, calls| {
        stopwatch.start();
        for _ in 0..calls {
            let mut file = File::create(path)?;
            file.write_all(&buffer)?;
            drop(file);
            fs::remove_file(path)?;
        }
        stopwatch.stop();
        Ok(calls)
    })?;
    let mut file = LocalFile::default();
    let written = storage.write(&mut file, Extent::new(0, FILE_BYTES));
    let others = (storage.call.open_create_ns + storage.call.close_ns) as u64;
    let predicted_ns = (written.get() + others + storage.unlink(&mut file).get()) as f64;
    let workload = "create, write 20 kB, close, remove";
    Ok(Check { workload, measured_ns: measured.cost_ns, predicted_ns })
}

fn synced_records(storage: &LocalStorage, path: &Path) -> io::Result<Check> {
    const CALLS: u64 = 20;
    let buffer = [1; 12_000];
    let measured = sample(Counting::Wall, Effort::new(5, CALLS), |stopwatch, calls| {
        let mut file = File::create(path)?;
        stopwatch.start();
        for _ in 0..calls {
            file.write_all(&buffer)?;
            file.sync_data()?;
        }
        stopwatch.stop();
        fs::remove_file(path)?;
        Ok(calls)
    })?;
    let mut file = LocalFile::default();
    let costs = (0..CALLS).map(|call| {
        let written = storage.write(&mut file, Extent::new(call * 12_000, 12_000));
        written.after(storage.sync(&mut file))
    });
    let predicted_ns = mean_ns(costs, CALLS);
    let workload = "append 12 kB, sync";
    Ok(Check { workload, measured_ns: measured.cost_ns, predicted_ns })
}
