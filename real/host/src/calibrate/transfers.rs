//! Costs of writes and reads by size: overwrite, append, cached read, cold read.
//!
//! The cost of a page touched for the first time is what an append costs beyond an overwrite of
//! the same size. Below a page, growing the file and touching pages are told apart by a least
//! squares line over sizes: a growth is paid by every call, a page by every 4096 bytes.

use super::bench::{Bench, rounded};
use super::stopwatch::{Counting, Effort, Sample, sample};
use iolab_device::CostTable;
use iolab_device::local::{PAGE_BYTES, ReadCosts, WriteCosts};
use iolab_vocab::{Random, Seed};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Measured sizes: dense where costs bend (a page, the largest run of pages handed out at once).
const SIZES: [u64; 14] = [
    64, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131_072, 262_144, 1_048_576,
    4_194_304,
];
const BATCHES: u64 = 9;
/// A batch moves at most about this much, and makes at most `BATCH_CALLS` calls.
const BATCH_BYTES: u64 = 12 << 20;
const BATCH_CALLS: u64 = 3000;

fn effort(size: u64) -> Effort {
    Effort::new(BATCHES, (BATCH_BYTES / size).clamp(3, BATCH_CALLS))
}

pub(super) fn writes(bench: &mut Bench) -> io::Result<WriteCosts> {
    (bench.progress)("writes into cached pages");
    let path = bench.path("data");
    let overwrites = by_size(|size| overwrite(&path, size))?;
    (bench.progress)("appends");
    let appends = by_size(|size| append(&path, size))?;
    let overwrite = bench.note_table("write.overwrite", &overwrites);
    let (extend_ns, fresh_page) = split_appends(&overwrite, &appends);
    let spread = appends.iter().map(|(_, sample)| sample.spread).fold(0.0, f64::max);
    bench.note("write.extend_ns", Sample { cost_ns: extend_ns, spread });
    let pages: Vec<(u64, Sample)> =
        fresh_page.iter().map(|&(size, cost_ns)| (size, Sample { cost_ns, spread })).collect();
    let fresh_page = bench.note_table("write.fresh_page", &pages);
    let folio = folios(bench, &path, &overwrite)?;
    Ok(WriteCosts { overwrite, extend_ns: rounded(extend_ns), fresh_page, folio })
}

/// What small writes into a file cost more when large ones made it.
fn folios(bench: &mut Bench, path: &Path, overwrite: &CostTable) -> io::Result<CostTable> {
    const FILE_BYTES: u64 = 4 << 20;
    const CALLS: u64 = 1000;
    let mut samples = Vec::new();
    for made_of in [16_384, 65_536, 262_144, 1_048_576, FILE_BYTES] {
        let file = File::create(path)?;
        let buffer = vec![1; made_of as usize];
        (0..FILE_BYTES / made_of).try_for_each(|n| file.write_all_at(&buffer, n * made_of))?;
        let mut random = Random::new(Seed(made_of));
        let whole = sample(Counting::Call, Effort::new(5, CALLS), |stopwatch, calls| {
            let offsets: Vec<u64> = (0..calls).map(|_| random.below(FILE_BYTES - 256)).collect();
            stopwatch.start();
            offsets.iter().try_for_each(|offset| file.write_all_at(&buffer[..256], *offset))?;
            stopwatch.stop();
            Ok(calls)
        })?;
        std::fs::remove_file(path)?;
        let cost_ns = (whole.cost_ns - overwrite.at(256)).max(0.0);
        samples.push((made_of, Sample { cost_ns, ..whole }));
    }
    Ok(bench.note_table("write.folio", &samples))
}

pub(super) fn reads(bench: &mut Bench) -> io::Result<ReadCosts> {
    (bench.progress)("reads");
    let path = bench.path("data");
    std::fs::write(&path, vec![7; 2 * *SIZES.last().expect("not empty") as usize])?;
    let cached = by_size(|size| cached_read(&path, size))?;
    let cold = if can_be_cold(&path)? { by_size(|size| cold_read(&path, size)).ok() } else { None };
    std::fs::remove_file(&path)?;
    let cached = bench.note_table("read.cached", &cached);
    let cold = cold.map(|cold| bench.note_table("read.cold", &cold));
    Ok(ReadCosts { cached, cold })
}

/// Whether a file leaves the cache when asked to: on tmpfs it does not, and no read is cold.
fn can_be_cold(path: &Path) -> io::Result<bool> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    file.sync_all()?;
    drop_from_cache(&file);
    // SAFETY: nobody else knows the file; only whether its pages are in memory is asked.
    let map = unsafe { memmap2::Mmap::map(&file)? };
    let mut resident = vec![0_u8; map.len().div_ceil(PAGE_BYTES as usize)];
    // SAFETY: the range is that of a map that lives on, and the answer has a byte for each of its
    // pages, which are as large as PAGE_BYTES or larger.
    let told =
        unsafe { libc::mincore(map.as_ptr().cast_mut().cast(), map.len(), resident.as_mut_ptr()) };
    let here = resident.iter().filter(|&&page| page & 1 == 1).count();
    Ok(told == 0 && here < resident.len() / 2)
}

fn drop_from_cache(file: &File) {
    // SAFETY: the descriptor is open for the whole call, which touches no memory.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
}

fn by_size(mut measure: impl FnMut(u64) -> io::Result<Sample>) -> io::Result<Vec<(u64, Sample)>> {
    SIZES.iter().map(|&size| Ok((size, measure(size)?))).collect()
}

fn overwrite(path: &Path, size: u64) -> io::Result<Sample> {
    let buffer = vec![1; size as usize];
    let slots = (65_536 / size).max(1);
    let file = File::create(path)?;
    (0..slots).try_for_each(|slot| file.write_all_at(&buffer, slot * size))?;
    let result = sample(Counting::Call, effort(size), |stopwatch, calls| {
        stopwatch.start();
        for call in 0..calls {
            file.write_all_at(&buffer, call % slots * size)?;
        }
        stopwatch.stop();
        Ok(calls)
    });
    std::fs::remove_file(path)?;
    result
}

pub(super) fn append(path: &Path, size: u64) -> io::Result<Sample> {
    let buffer = vec![1; size as usize];
    sample(Counting::Call, effort(size), |stopwatch, calls| {
        let mut file = File::create(path)?;
        stopwatch.start();
        for _ in 0..calls {
            file.write_all(&buffer)?;
        }
        stopwatch.stop();
        drop(file);
        std::fs::remove_file(path)?;
        Ok(calls)
    })
}

fn cached_read(path: &Path, size: u64) -> io::Result<Sample> {
    let mut buffer = vec![0; size as usize];
    let file = File::open(path)?;
    let slots = (65_536 / size).max(1);
    sample(Counting::Call, effort(size), |stopwatch, calls| {
        stopwatch.start();
        for call in 0..calls {
            file.read_exact_at(&mut buffer, call % slots * size)?;
        }
        stopwatch.stop();
        Ok(calls)
    })
}

/// Sequential reads after the file was dropped from the cache.
fn cold_read(path: &Path, size: u64) -> io::Result<Sample> {
    let mut buffer = vec![0; size as usize];
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    file.sync_all()?;
    let most = (2 * *SIZES.last().expect("not empty") / size).min(512);
    sample(Counting::Call, Effort::new(3, most), |stopwatch, calls| {
        drop_from_cache(&file);
        stopwatch.start();
        for call in 0..calls {
            file.read_exact_at(&mut buffer, call * size)?;
        }
        stopwatch.stop();
        Ok(calls)
    })
}

/// What growing costs a call, and what a fresh page costs by size of request.
fn split_appends(overwrite: &CostTable, appends: &[(u64, Sample)]) -> (f64, Vec<(u64, f64)>) {
    let beyond = |size: u64, cost: f64| cost - overwrite.at(size);
    let small: Vec<(f64, f64)> = appends
        .iter()
        .filter(|(size, _)| *size < PAGE_BYTES)
        .map(|(size, sample)| (*size as f64 / PAGE_BYTES as f64, beyond(*size, sample.cost_ns)))
        .collect();
    let (extend_ns, page_ns) = line(&small);
    let (extend_ns, page_ns) = (extend_ns.max(0.0), page_ns.max(0.0));
    let large = appends.iter().filter(|(size, _)| *size >= PAGE_BYTES).map(|(size, sample)| {
        let pages = (*size / PAGE_BYTES) as f64;
        (*size, rounded(((beyond(*size, sample.cost_ns) - extend_ns) / pages).max(0.0)))
    });
    (extend_ns, std::iter::once((PAGE_BYTES - 1, rounded(page_ns))).chain(large).collect())
}

/// Least squares line through (x, y): (value at 0, slope).
fn line(points: &[(f64, f64)]) -> (f64, f64) {
    let count = points.len() as f64;
    let (mean_x, mean_y) = (
        points.iter().map(|p| p.0).sum::<f64>() / count,
        points.iter().map(|p| p.1).sum::<f64>() / count,
    );
    let covariance: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let variance: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let slope = covariance / variance;
    (mean_y - slope * mean_x, slope)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_and_fresh_pages_are_told_apart() {
        let overwrite = CostTable::constant(100.0);
        // Growing costs 20 per call, a page 1000, from 4 KiB on 500.
        let appends: Vec<(u64, Sample)> = SIZES
            .iter()
            .map(|&size| {
                let page_ns = if size < PAGE_BYTES { 1000.0 } else { 500.0 };
                let cost_ns = 120.0 + page_ns * size as f64 / PAGE_BYTES as f64;
                (size, Sample { cost_ns, spread: 0.0 })
            })
            .collect();
        let (extend_ns, pages) = split_appends(&overwrite, &appends);
        assert!((extend_ns - 20.0).abs() < 1e-6);
        assert_eq!(pages[0], (4095, 1000.0));
        assert!(pages[1..].iter().all(|page| page.1 == 500.0));
    }
}
