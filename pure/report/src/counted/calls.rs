//! Rules about which calls a program uses: those that move no data, and the layers it goes through.

use super::sums::{FileSum, Run, Weight, paths, percent, share};
use crate::findings::{Confidence, Finding, SMALL_FILE_BYTES, Severity, crowded_directory};
use crate::thousands::{grouped, of_files};
use iolab_trace::import::counted::{Module, Record, Way};
use iolab_vocab::format_bytes;

pub(super) const NAMES: &[&str] = &[
    "metadata-heavy",
    "open-close-churn",
    "stat-storm",
    "fsync-storm",
    "many-small-files",
    "no-collective-calls",
    "no-overlap",
    "shared-file-without-mpi-io",
    "streams-for-bulk-data",
    "independent-dataset-accesses",
];

/// More of the I/O time than this for metadata is too much.
const METADATA_SHARE: f64 = 0.3;
/// Drishti warns of so much in one rank; a share fits short runs too.
const METADATA_NS: u64 = 30_000_000_000;
const HABIT_CALLS: u64 = 1_000;
const NEGLIGIBLE_BYTES: u64 = 1 << 20;
/// Where calls of MPI-IO take less of the run, nothing is gained by not waiting for them.
const OVERLAP_SHARE: f64 = 0.1;

pub(super) fn judge(run: &Run<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = metadata_heavy(run).into_iter().collect();
    findings.extend(habit(run, 1, |file| file.opens, |file, opens| opens >= 10 * file.ranks(run)));
    findings.extend(habit(run, 2, |file| file.stats, |file, stats| stats >= file.calls()));
    findings.extend(habit(
        run,
        3,
        |file| file.syncs,
        |file, syncs| file.module == Module::Posix && syncs.saturating_mul(10) >= file.writes.calls,
    ));
    findings.extend(small_files(run));
    findings.extend(no_collective(run));
    findings.extend(no_overlap(run));
    findings.extend(no_mpi_io(run));
    findings.extend(streams(run));
    findings.extend(independent_datasets(run));
    findings
}

fn metadata_heavy(run: &Run<'_>) -> Option<Finding> {
    let files: Vec<&FileSum<'_>> = run.below().filter(|file| file.meta_ns > 0).collect();
    let weight = Weight::over(run, &files, |it| (it.metadata_calls(), 0, 1.0), |it| it.meta_ns);
    let all = run.below().map(FileSum::ns).fold(0, u64::saturating_add);
    let metadata = files.iter().map(|file| file.meta_ns).fold(0, u64::saturating_add);
    let is_heavy = share(metadata, all) >= METADATA_SHARE && weight.calls >= HABIT_CALLS / 10;
    if !is_heavy && metadata / u64::from(run.counted.ranks.max(1)) < METADATA_NS {
        return None;
    }
    let message = format!(
        "{} of the time in I/O goes to {} calls that move no data (opens {}, seeks {}, stats {}, syncs {})",
        percent(metadata, all),
        grouped(weight.calls),
        grouped(files.iter().map(|it| it.opens).fold(0, u64::saturating_add)),
        grouped(files.iter().map(|it| it.seeks).fold(0, u64::saturating_add)),
        grouped(files.iter().map(|it| it.stats).fold(0, u64::saturating_add)),
        grouped(files.iter().map(|it| it.syncs).fold(0, u64::saturating_add)),
    );
    let remedy = "fewer files and opens; let one rank look and tell the others";
    let files = paths(&files, |file| file.meta_ns);
    Some(weight.finding(run, (NAMES[0], Confidence::Certain), message, remedy, files))
}

/// All reads and writes of a file.
fn whole(file: &FileSum<'_>) -> (u64, u64, f64) {
    (file.calls(), file.bytes(), 1.0)
}

/// Many calls of a kind that moves no data.
fn habit(
    run: &Run<'_>,
    rule: usize,
    count: impl Fn(&FileSum<'_>) -> u64,
    is_one: impl Fn(&FileSum<'_>, u64) -> bool,
) -> Option<Finding> {
    // Once in each rank is no habit.
    let is_habit = |file: &FileSum<'_>| count(file) > file.ranks(run);
    let files: Vec<&FileSum<'_>> =
        run.below().filter(|file| is_habit(file) && is_one(file, count(file))).collect();
    let part = |file: &FileSum<'_>| share(count(file), file.metadata_calls()).min(1.0);
    let weight = Weight::over(run, &files, |file| (count(file), 0, part(file)), |it| it.meta_ns);
    if weight.calls < HABIT_CALLS {
        return None;
    }
    let (what, remedy) = match rule {
        1 => ("opens", "open once and keep it open"),
        2 => ("queries of attributes", "ask once and remember; let one rank ask for all"),
        _ => ("syncs", "sync where a crash must not lose more, not after each write"),
    };
    let message = format!("{} {what} of {}", grouped(weight.calls), of_files(files.len() as u64));
    let files = paths(&files, count);
    Some(weight.finding(run, (NAMES[rule], Confidence::Certain), message, remedy, files))
}

fn small_files(run: &Run<'_>) -> Option<Finding> {
    // Of a large file little may be used.
    let is_short = |file: &&FileSum<'_>| {
        let end = file.reads.end.max(file.writes.end).unwrap_or(0);
        (1..SMALL_FILE_BYTES).contains(&file.bytes()) && end < SMALL_FILE_BYTES
    };
    let (directory, files) = crowded_directory(run.below().filter(is_short), |file| file.path)?;
    let weight = Weight::over(run, &files, |it| (it.opens, it.bytes(), 1.0), |it| it.meta_ns);
    let message = format!(
        "{} files of which {} on average are used, in {directory}",
        grouped(files.len() as u64),
        format_bytes(weight.bytes / files.len() as u64)
    );
    let remedy = "pack them into few files (an archive, a container format such as HDF5)";
    Some(weight.finding(run, (NAMES[4], Confidence::Likely), message, remedy, Vec::new()))
}

/// Files that all ranks use through MPI-IO, each rank for itself.
fn no_collective(run: &Run<'_>) -> Option<Finding> {
    let ways =
        |file: &FileSum<'_>| [file.reads, file.writes].into_iter().filter(Way::is_independent);
    let alone = |file: &FileSum<'_>| {
        ways(file).map(|way| way.calls - way.collective).fold(0, u64::saturating_add)
    };
    let files: Vec<&FileSum<'_>> = run
        .of_module(Module::MpiIo)
        .filter(|file| file.is_shared && file.movers > 1 && alone(file) > 0)
        .collect();
    // Bytes are counted of both together.
    let bytes = |file: &FileSum<'_>| ways(file).map(|way| way.bytes).fold(0, u64::saturating_add);
    let ns = |it: &Record| {
        let ways = [it.reads, it.writes].into_iter().filter(Way::is_independent);
        ways.map(|way| way.ns).fold(0, u64::saturating_add)
    };
    let weight = Weight::over(run, &files, |file| (alone(file), bytes(file), 1.0), ns);
    if weight.calls < HABIT_CALLS {
        return None;
    }
    let collective = files.iter().flat_map(|file| ways(file)).map(|way| way.collective);
    let collective = collective.fold(0, u64::saturating_add);
    let mean = weight.bytes / weight.calls.saturating_add(collective);
    let calls = match collective {
        0 => format!(
            "{} independent calls of MPI-IO, {} each,",
            grouped(weight.calls),
            format_bytes(mean)
        ),
        _ => format!(
            "{} independent and {} collective calls of MPI-IO, {} on average of both,",
            grouped(weight.calls),
            grouped(collective),
            format_bytes(mean)
        ),
    };
    let message = format!("{calls} go to files that all {} ranks share", run.counted.ranks);
    let remedy =
        "MPI_File_write_all and MPI_File_read_all let few ranks make large accesses for all";
    // Large ones gain little.
    let confidence = if mean < 4 << 20 { Confidence::Likely } else { Confidence::Possible };
    let files = paths(&files, alone);
    Some(weight.finding(run, (NAMES[5], confidence), message, remedy, files))
}

fn no_overlap(run: &Run<'_>) -> Option<Finding> {
    let files: Vec<&FileSum<'_>> = run.of_module(Module::MpiIo).collect();
    let nonblocking =
        files.iter().map(|it| it.reads.nonblocking.saturating_add(it.writes.nonblocking));
    if nonblocking.fold(0, u64::saturating_add) > 0 {
        return None;
    }
    let weight = Weight::over(run, &files, whole, Record::transfer_ns);
    let (calls, bytes) = (weight.calls, weight.bytes);
    let message = format!(
        "all {} reads and writes of MPI-IO ({}) are waited for",
        grouped(calls),
        format_bytes(bytes)
    );
    let remedy = "where there is something to compute meanwhile: MPI_File_iwrite, MPI_File_iread and their \
                  collective forms, or the asynchronous connector of HDF5; `iolab overlap` measures what it gains";
    let files = paths(&files, |file| file.ns());
    let mut finding = weight.finding(run, (NAMES[6], Confidence::Possible), message, remedy, files);
    // No counter says whether there is anything to compute meanwhile: it never comes before a fault.
    finding.severity = Severity::Low;
    (calls > 0 && finding.evidence.share_of_run >= OVERLAP_SHARE).then_some(finding)
}

fn no_mpi_io(run: &Run<'_>) -> Option<Finding> {
    if run.counted.modules.contains(&Module::MpiIo) || run.counted.ranks < 2 {
        return None;
    }
    let files: Vec<&FileSum<'_>> = run
        .of_module(Module::Posix)
        .filter(|file| file.is_shared && file.movers > 1 && file.bytes() >= NEGLIGIBLE_BYTES)
        .collect();
    let weight = Weight::over(run, &files, whole, Record::ns);
    if files.is_empty() {
        return None;
    }
    let message = format!(
        "{} of {} go to files that several ranks share, by POSIX alone",
        format_bytes(weight.bytes),
        format_bytes(run.below().map(FileSum::bytes).fold(0, u64::saturating_add))
    );
    let remedy = "MPI-IO, or HDF5 and PnetCDF on top of it, know what all ranks want and can make large accesses \
                  of it";
    let files = paths(&files, |file| file.bytes());
    Some(weight.finding(run, (NAMES[7], Confidence::Possible), message, remedy, files))
}

fn streams(run: &Run<'_>) -> Option<Finding> {
    let files: Vec<&FileSum<'_>> = run.of_module(Module::Stdio).collect();
    let weight = Weight::over(run, &files, whole, Record::ns);
    let all = run.below().map(FileSum::bytes).fold(0, u64::saturating_add);
    // The threshold of Drishti.
    if weight.bytes < NEGLIGIBLE_BYTES || share(weight.bytes, all) < 0.1 {
        return None;
    }
    let message = format!(
        "{} of the bytes ({}) go through streams (fread, fwrite, fprintf), {} a call",
        percent(weight.bytes, all),
        format_bytes(weight.bytes),
        format_bytes(weight.bytes / weight.calls.max(1))
    );
    let remedy = "streams copy everything through a buffer of 4 KiB or so: setvbuf makes it larger, read and write \
                  do without; for parallel programs MPI-IO";
    let files = paths(&files, |file| file.bytes());
    Some(weight.finding(run, (NAMES[8], Confidence::Likely), message, remedy, files))
}

fn independent_datasets(run: &Run<'_>) -> Option<Finding> {
    let is_collective = |file: &FileSum<'_>| file.records.iter().any(|record| record.is_collective);
    let is_alone = |file: &FileSum<'_>| match file.module {
        Module::H5Dataset => !is_collective(file),
        _ => file.collective().saturating_mul(2) < file.calls(),
    };
    let files: Vec<&FileSum<'_>> = run
        .of_module(Module::H5Dataset)
        .chain(run.of_module(Module::PnetcdfVariable))
        .filter(|file| file.is_shared && file.movers > 1 && file.calls() > 0 && is_alone(file))
        .collect();
    let weight = Weight::over(run, &files, whole, Record::ns);
    if weight.calls < HABIT_CALLS {
        return None;
    }
    let message = format!(
        "{} accesses to {} datasets or variables that ranks share, {} each, are independent",
        grouped(weight.calls),
        grouped(files.len() as u64),
        format_bytes(weight.bytes / weight.calls)
    );
    let remedy = "H5Pset_dxpl_mpio(…, H5FD_MPIO_COLLECTIVE), or the _all calls of PnetCDF";
    let files = paths(&files, |file| file.bytes());
    Some(weight.finding(run, (NAMES[9], Confidence::Likely), message, remedy, files))
}
