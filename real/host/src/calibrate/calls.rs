//! Costs of calls that move no data, and of making data durable.

use super::bench::{Bench, rounded};
use super::stopwatch::{Counting, Effort, Sample, sample};
use iolab_device::local::{CallCosts, SyncCosts};
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

const BATCHES: u64 = 9;
/// Files made per batch; more would measure a full directory instead of a program's few files.
const FILES: usize = 24;
const MIB: usize = 1 << 20;

pub(super) fn calls(bench: &mut Bench) -> io::Result<CallCosts> {
    (bench.progress)("calls without data");
    let paths: Vec<PathBuf> = (0..FILES).map(|n| bench.path(&format!("file{n}"))).collect();
    let mut on_files = |parameter: &str, phase: Phase| -> io::Result<f64> {
        let effort = Effort::new(BATCHES, phase.most_calls());
        let sample = sample(Counting::Call, effort, |stopwatch, calls| {
            let mut bench = Files::new(&paths[..FILES.min(calls as usize)], phase)?;
            stopwatch.start();
            let calls = bench.run(phase, calls)?;
            stopwatch.stop();
            bench.remove()?;
            Ok(calls)
        })?;
        Ok(rounded(bench.note(parameter, sample)))
    };
    let open_create_ns = on_files("call.open_create_ns", Phase::Create)?;
    let open_existing_ns = on_files("call.open_existing_ns", Phase::Open)?;
    let open_missing_ns = on_files("call.open_missing_ns", Phase::OpenMissing)?;
    let close_ns = on_files("call.close_ns", Phase::Close)?;
    let stat_ns = on_files("call.stat_ns", Phase::Stat)?;
    let truncate_ns = on_files("call.truncate_ns", Phase::Truncate)?;
    let rename_ns = on_files("call.rename_ns", Phase::Rename)?;
    let unlink_ns = on_files("call.unlink_ns", Phase::Unlink)?;
    let directory_ns = on_files("call.directory_ns", Phase::Directory)?;
    let seek_ns = on_files("call.seek_ns", Phase::Seek)?;
    let least_ns = on_files("call.least_ns", Phase::Least)?;
    let release_mib_ns = release(bench, unlink_ns)?;
    Ok(CallCosts {
        least_ns,
        seek_ns,
        open_create_ns,
        open_existing_ns,
        open_missing_ns,
        close_ns,
        stat_ns,
        truncate_ns,
        release_mib_ns,
        rename_ns,
        unlink_ns,
        directory_ns,
    })
}

/// What a batch does with its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Create,
    Open,
    OpenMissing,
    Close,
    Stat,
    Truncate,
    Rename,
    Unlink,
    Directory,
    Seek,
    Least,
}

impl Phase {
    /// Of one batch.
    fn most_calls(self) -> u64 {
        match self {
            Phase::Seek | Phase::Least => 3000,
            _ => FILES as u64,
        }
    }
}

/// Files of a batch, with what the phase needs made beforehand.
struct Files<'a> {
    paths: &'a [PathBuf],
    open: Vec<File>,
}

impl Files<'_> {
    fn new(paths: &[PathBuf], phase: Phase) -> io::Result<Files<'_>> {
        let mut open = Vec::with_capacity(paths.len());
        let fresh = matches!(phase, Phase::Create | Phase::OpenMissing | Phase::Directory);
        if !fresh {
            for path in paths {
                open.push(File::create(path)?);
            }
        }
        if !matches!(
            phase,
            Phase::Close | Phase::Truncate | Phase::Seek | Phase::Least | Phase::Stat
        ) {
            open.clear();
        }
        Ok(Files { paths, open })
    }

    /// Does the phase on every file, or the given number of calls on one, and tells how many calls that were.
    fn run(&mut self, phase: Phase, calls: u64) -> io::Result<u64> {
        let count = self.paths.len() as u64;
        match phase {
            Phase::Create => {
                self.each(|path, open| File::create(path).map(|file| open.push(file)))?
            }
            Phase::Open => self.each(|path, open| File::open(path).map(|file| open.push(file)))?,
            Phase::OpenMissing => self.each(|path, _| {
                File::open(path).map_or(Ok(()), |_| Err(io::ErrorKind::AlreadyExists.into()))
            })?,
            Phase::Close => self.open.clear(),
            Phase::Stat => return self.stat_both_ways(),
            Phase::Truncate => self.open.iter().try_for_each(|file| file.set_len(1000))?,
            Phase::Rename => self.each(|path, _| fs::rename(path, path.with_extension("new")))?,
            Phase::Unlink => self.each(|path, _| fs::remove_file(path))?,
            Phase::Directory => {
                self.each(|path, _| fs::create_dir(path))?;
                self.each(|path, _| fs::remove_dir(path))?;
                return Ok(2 * count);
            }
            Phase::Seek => {
                return repeated(&mut self.open[0], calls, |file, n| {
                    file.seek(SeekFrom::Start(n % 1000)).map(drop)
                });
            }
            Phase::Least => {
                return repeated(&mut self.open[0], calls, |_, _| {
                    // SAFETY: takes nothing, touches nothing, cannot fail.
                    unsafe { libc::getppid() };
                    Ok(())
                });
            }
        }
        Ok(count)
    }

    fn each(
        &mut self,
        mut action: impl FnMut(&PathBuf, &mut Vec<File>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.paths.iter().try_for_each(|path| action(path, &mut self.open))
    }

    fn stat_both_ways(&mut self) -> io::Result<u64> {
        for (path, file) in self.paths.iter().zip(&self.open) {
            fs::metadata(path)?;
            file.metadata()?;
        }
        Ok(2 * self.paths.len() as u64)
    }

    fn remove(mut self) -> io::Result<()> {
        self.open.clear();
        for path in self.paths {
            for name in [path.clone(), path.with_extension("new")] {
                match fs::remove_file(name) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

fn repeated(
    file: &mut File,
    calls: u64,
    mut call: impl FnMut(&mut File, u64) -> io::Result<()>,
) -> io::Result<u64> {
    (0..calls).try_for_each(|n| call(file, n))?;
    Ok(calls)
}

/// What removing a file of some mebibytes costs beyond removing an empty one, per mebibyte.
fn release(bench: &mut Bench, unlink_ns: f64) -> io::Result<f64> {
    const MIBS: usize = 8;
    let (path, data) = (bench.path("released"), vec![1; MIBS * MIB]);
    let whole = sample(Counting::Call, Effort::new(BATCHES, 1), |stopwatch, _| {
        fs::write(&path, &data)?;
        stopwatch.start();
        fs::remove_file(&path)?;
        stopwatch.stop();
        Ok(1)
    })?;
    let cost_ns = ((whole.cost_ns - unlink_ns) / MIBS as f64).max(0.0);
    Ok(rounded(bench.note("call.release_mib_ns", Sample { cost_ns, ..whole })))
}

pub(super) fn syncs(bench: &mut Bench) -> io::Result<SyncCosts> {
    (bench.progress)("syncs");
    let path = bench.path("synced");
    let mut file = File::create(&path)?;
    file.write_all(&vec![1; MIB])?;
    file.sync_all()?;
    let clean = sample(Counting::Wall, Effort::new(5, 50), |stopwatch, calls| {
        stopwatch.start();
        (0..calls).try_for_each(|_| file.sync_all())?;
        stopwatch.stop();
        Ok(calls)
    })?;
    let overwritten = sample(Counting::Wall, Effort::new(15, 1), |stopwatch, _| {
        file.write_all_at(&[2; 4096], 0)?;
        stopwatch.start();
        file.sync_all()?;
        stopwatch.stop();
        Ok(1)
    })?;
    let grown = [(4096, 15), (16_384, 9), (131_072, 5), (MIB, 5), (8 * MIB, 3)]
        .into_iter()
        .map(|(bytes, batches)| Ok((bytes as u64, extended(&mut file, bytes, batches)?)))
        .collect::<io::Result<Vec<_>>>()?;
    drop(file);
    fs::remove_file(&path)?;
    Ok(SyncCosts {
        clean_ns: rounded(bench.note("sync.clean_ns", clean)),
        overwrite_ns: rounded(bench.note("sync.overwrite_ns", overwritten)),
        extend: bench.note_table("sync.extend", &grown),
    })
}

/// A sync after the file grew by so many bytes.
fn extended(file: &mut File, bytes: usize, batches: u64) -> io::Result<Sample> {
    let data = vec![3; bytes];
    sample(Counting::Wall, Effort::new(batches, 1), |stopwatch, _| {
        file.write_all(&data)?;
        stopwatch.start();
        file.sync_all()?;
        stopwatch.stop();
        Ok(1)
    })
}
