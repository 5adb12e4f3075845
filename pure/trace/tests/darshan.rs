//! Logs of Darshan: public ones against what PyDarshan reads in them, and damaged ones.

#![allow(clippy::disallowed_methods, reason = "samples are files")]

use iolab_trace::import::counted::Module;
use iolab_trace::import::{DarshanError, darshan, darshan_counted, is_darshan, old_darshan};
use iolab_trace::{Class, Event, Function, Layer, Trace};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

fn samples() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../samples/darshan")
}

/// All logs at hand, by name.
fn logs() -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(samples()).unwrap().map(|entry| entry.unwrap().path());
    let logs = entries.filter(|path| path.extension().is_some_and(|end| end == "darshan"));
    logs.map(|path| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, fs::read(&path).unwrap())
    })
    .collect()
}

fn log(name: &str) -> Vec<u8> {
    fs::read(samples().join(name)).unwrap()
}

type Row = BTreeMap<String, String>;

/// Rows of a table by the name of the log. Cells at the end of a row may be missing.
fn table(name: &str) -> BTreeMap<String, Vec<Row>> {
    let mut reader =
        csv::ReaderBuilder::new().flexible(true).from_path(samples().join(name)).unwrap();
    let columns = reader.headers().unwrap().clone();
    let mut rows: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for record in reader.records() {
        let record = record.unwrap();
        let cells = columns.iter().map(str::to_owned).zip(record.iter().map(str::to_owned));
        let row: Row = cells.collect();
        rows.entry(row["log"].clone()).or_default().push(row);
    }
    rows
}

/// Writes, reads, bytes written, bytes read.
fn sums<'a>(events: impl Iterator<Item = &'a Event>) -> [u64; 4] {
    let mut sums = [0; 4];
    for event in events.filter(|event| event.function.class().moves_data()) {
        let way = usize::from(event.function.class() == Class::Read);
        sums[way] += 1;
        sums[2 + way] += event.moved_bytes();
    }
    sums
}

fn layer(trace: &Trace, layer: Layer) -> impl Iterator<Item = &Event> {
    trace.events.iter().filter(move |event| event.function.layer() == layer)
}

fn number(row: &Row, column: &str) -> u64 {
    match row.get(column).map_or("", String::as_str) {
        "" => 0,
        text => text.parse().unwrap(),
    }
}

#[test]
fn public_logs_have_the_accesses_that_pydarshan_reads() {
    let (totals, files) = (table("totals.csv"), table("files.csv"));
    let mut traced = 0;
    for (name, bytes) in logs() {
        let row = &totals[&name][0];
        let has_dxt = row["mods"].contains("DXT_");
        let trace = match darshan(&bytes) {
            Ok(trace) => trace,
            Err(DarshanError::CountersOnly(calls)) => {
                assert!(!has_dxt, "{name}");
                assert_eq!(
                    calls,
                    number(row, "posix_writes") + number(row, "posix_reads"),
                    "{name}"
                );
                continue;
            }
            Err(error) => panic!("{name}: {error}"),
        };
        assert!(has_dxt, "{name}");
        traced += 1;
        let wanted = [
            "dxt_posix_writes",
            "dxt_posix_reads",
            "dxt_posix_write_bytes",
            "dxt_posix_read_bytes",
        ];
        assert_eq!(
            sums(layer(&trace, Layer::Posix)),
            wanted.map(|column| number(row, column)),
            "{name}"
        );
        let [writes, reads, ..] = sums(layer(&trace, Layer::Mpiio));
        assert_eq!(
            [writes, reads],
            ["dxt_mpiio_writes", "dxt_mpiio_reads"].map(|it| number(row, it)),
            "{name}"
        );
        assert_eq!(trace.header.processes.len() as u64, number(row, "nprocs"), "{name}");
        for row in files.get(&name).into_iter().flatten() {
            let of = if row["module"] == "DXT_POSIX" { Layer::Posix } else { Layer::Mpiio };
            let place = trace.header.files.iter().position(|file| file.path == row["file"]);
            let place = place.unwrap_or_else(|| panic!("{name} has no {}", row["file"]));
            let events = layer(&trace, of).filter(|event| event.file.index() == Some(place));
            let wanted = ["writes", "reads", "bytes_written", "bytes_read"];
            assert_eq!(
                sums(events),
                wanted.map(|column| number(row, column)),
                "{name} {}",
                row["file"]
            );
        }
    }
    assert_eq!(traced, 13, "logs with single accesses");
}

#[test]
fn public_logs_count_what_pydarshan_counts() {
    let totals = table("totals.csv");
    let logs = logs();
    assert!(logs.len() >= 50);
    for (name, bytes) in logs {
        let row = &totals[&name][0];
        let counted = darshan_counted(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(u64::from(counted.ranks), number(row, "nprocs"), "{name}");
        let posix = || counted.records.iter().filter(|it| it.module == Module::Posix);
        let ours = [
            posix().map(|it| it.writes.calls).sum(),
            posix().map(|it| it.reads.calls).sum(),
            posix().map(|it| it.writes.bytes).sum(),
            posix().map(|it| it.reads.bytes).sum(),
            posix().map(|it| it.opens).sum::<u64>(),
        ];
        let theirs = [
            "posix_writes",
            "posix_reads",
            "posix_bytes_written",
            "posix_bytes_read",
            "posix_opens",
        ];
        assert_eq!(ours, theirs.map(|column| number(row, column)), "{name}");
        let modules: Vec<_> = counted.modules.iter().map(|it| it.name()).collect();
        let modules = modules.join("+").replace("+DXT_POSIX", "").replace("+DXT_MPIIO", "");
        let wanted = row["mods"].replace("+DXT_POSIX", "").replace("+DXT_MPIIO", "");
        assert_eq!(modules, wanted, "{name}");
        assert_eq!(counted.has_accesses, row["mods"].contains("DXT_"), "{name}");
        for record in &counted.records {
            for way in [&record.reads, &record.writes] {
                assert!(way.sequential >= way.consecutive, "{name}");
                assert!(way.first <= way.last, "{name}");
                assert!(way.collective <= way.calls && way.nonblocking <= way.calls, "{name}");
                if record.module == Module::Posix && way.calls > 0 {
                    assert_eq!(way.sizes.iter().sum::<u64>(), way.calls, "{name}");
                }
            }
        }
    }
}

/// A log of format 3.41 in the making.
struct Made {
    processes: i64,
    partial: u64,
    compression: u8,
    posix: Vec<Vec<u8>>,
    mpi: Vec<Vec<u8>>,
    versions: [u32; 2],
}

/// Offset, length, start, end, thread.
type Segment = (i64, i64, f64, f64, u64);

impl Made {
    fn new() -> Made {
        let (posix, mpi) = (Vec::new(), Vec::new());
        Made { processes: 4, partial: 0, compression: 0, posix, mpi, versions: [2, 3] }
    }

    /// A record of a file, with a thread for each segment where the version has them.
    fn record(rank: i64, with_thread: bool, writes: &[Segment], reads: &[Segment]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(77_u64.to_le_bytes());
        bytes.extend(rank.to_le_bytes());
        bytes.extend(0_i64.to_le_bytes());
        let mut host = [0; 64];
        host[..6].copy_from_slice(b"node07");
        bytes.extend(host);
        bytes.extend((writes.len() as i64).to_le_bytes());
        bytes.extend((reads.len() as i64).to_le_bytes());
        for &(offset, length, start, end, thread) in writes.iter().chain(reads) {
            bytes.extend(offset.to_le_bytes());
            bytes.extend(length.to_le_bytes());
            bytes.extend(start.to_le_bytes());
            bytes.extend(end.to_le_bytes());
            if with_thread {
                bytes.extend(thread.to_le_bytes());
            }
        }
        bytes
    }

    fn packed(&self, bytes: &[u8]) -> Vec<u8> {
        use std::io::Write;
        match self.compression {
            0 => {
                let mut to =
                    flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
                to.write_all(bytes).unwrap();
                to.finish().unwrap()
            }
            1 => {
                let mut to = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
                to.write_all(bytes).unwrap();
                to.finish().unwrap()
            }
            _ => bytes.to_vec(),
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut job = Vec::new();
        for word in [0, 1_600_000_000, 5, 1_600_000_009, 7, self.processes, 1] {
            job.extend(word.to_le_bytes());
        }
        job.extend([0; 1024]);
        job.extend(b"/bin/solver --fast\nlustre\t/scratch\next4\t/\n\0");
        let mut names = 77_u64.to_le_bytes().to_vec();
        names.extend(b"/scratch/out.h5\0");
        let mut log = vec![0; 1328];
        log[..4].copy_from_slice(b"3.41");
        log[8..16].copy_from_slice(&6_567_223_u64.to_le_bytes());
        log[16] = self.compression;
        log[24..32].copy_from_slice(&self.partial.to_le_bytes());
        log.extend(self.packed(&job));
        let mut place = |at: usize, region: Vec<u8>| {
            let (start, length) = (log.len() as u64, region.len() as u64);
            log[at..at + 8].copy_from_slice(&start.to_le_bytes());
            log[at + 8..at + 16].copy_from_slice(&length.to_le_bytes());
            log.extend(region);
        };
        place(32, self.packed(&names));
        // Each rank writes a stream of its own.
        let region = |records: &[Vec<u8>]| records.iter().flat_map(|it| self.packed(it)).collect();
        place(48 + 16 * 10, region(&self.posix));
        place(48 + 16 * 11, region(&self.mpi));
        for (module, version) in [10, 11].into_iter().zip(self.versions) {
            log[1072 + 4 * module..][..4].copy_from_slice(&version.to_le_bytes());
        }
        log
    }

    fn trace(&self) -> Trace {
        darshan(&self.bytes()).unwrap()
    }
}

/// Function, thread, offset and parent of each row.
fn shape(trace: &Trace) -> Vec<(Function, u32, i64, i64)> {
    trace.events.iter().map(|it| (it.function, it.thread, it.offset, it.parent)).collect()
}

#[test]
fn accesses_get_threads_opens_closes_and_what_they_lie_in() {
    use Function as F;
    let mut made = Made::new();
    // A call of MPI-IO without an offset, two accesses inside it, one of another thread meanwhile, one behind it.
    made.mpi = vec![Made::record(1, true, &[(-1, 100, 1.0, 2.0, 5)], &[])];
    let writes = [(64, 50, 1.5, 1.6, 5), (0, 50, 1.2, 1.3, 5), (500, 8, 1.9, 2.1, 6)];
    made.posix = vec![Made::record(1, true, &writes, &[(8, 8, 3.0, 3.5, 5)])];
    for compression in 0..3 {
        made.compression = compression;
        let trace = made.trace();
        let rows = [
            (F::MPI_FILE_OPEN, 0, 1, -1),
            (F::OPEN, 0, -1, -1),
            (F::MPI_FILE_WRITE, 0, 0, -1),
            (F::PWRITE, 0, 0, 2),
            (F::PWRITE, 0, 64, 2),
            (F::PREAD, 0, 8, -1),
            (F::MPI_FILE_CLOSE, 0, -1, -1),
            (F::CLOSE, 0, -1, -1),
            (F::PWRITE, 1, 500, -1),
        ];
        assert_eq!(shape(&trace), rows);
        // As a written trace is sorted, so that it reads the same.
        let key = |it: &Event| (it.process, it.thread, it.start, std::cmp::Reverse(it.end));
        assert!(trace.events.is_sorted_by_key(key));
        let header = &trace.header;
        assert_eq!(header.files[0].path, "/scratch/out.h5");
        assert_eq!(header.files[0].file_system, "lustre");
        assert_eq!((header.processes.len(), header.processes[1].host.as_str()), (4, "node07"));
        assert_eq!(header.command, ["/bin/solver", "--fast"]);
        assert_eq!(header.clock.zero_unix_ns, 1_600_000_000_000_000_005);
        assert_eq!(header.processes[0].end_ns, 9_000_000_002);
        assert!(header.losses.lost_calls.is_empty() && header.losses.unseen.is_empty());
    }
}

#[test]
fn what_cannot_be_is_counted_and_the_rest_is_kept() {
    let mut made = Made::new();
    made.partial = 1 << 10;
    let odd = [
        (0, 8, f64::NAN, 1.0, 0),
        (0, 8, -1.0, 1.0, 0),
        (0, 8, 0.0, f64::INFINITY, 0),
        (0, -8, 0.0, 1.0, 0),
        (-1, 8, 2.0, 1.0, 0),
        (i64::MAX, i64::MAX, 0.0, 1.0, 0),
    ];
    made.posix = vec![Made::record(0, true, &odd, &odd)];
    let trace = made.trace();
    assert_eq!(trace.header.losses.lost_calls.values().sum::<u64>(), 8);
    assert!(trace.header.losses.unseen[0].contains("DXT_POSIX"), "{:?}", trace.header.losses);
    assert!(trace.header.inferred.iter().any(|fact| fact.contains("2 accesses that ended")));
    assert_eq!(
        layer(&trace, Layer::Posix).filter(|it| it.function.class().moves_data()).count(),
        4
    );
    assert!(trace.events.iter().all(|event| event.start <= event.end));
}

#[test]
fn a_log_that_contradicts_itself_is_an_error_that_says_where() {
    let one = |rank, count: i64| {
        let mut record = Made::record(rank, true, &[(0, 1, 0.0, 1.0, 0)], &[]);
        record[88..96].copy_from_slice(&count.to_le_bytes());
        record
    };
    let with = |change: &dyn Fn(&mut Made)| {
        let mut made = Made::new();
        made.posix = vec![one(0, 1)];
        change(&mut made);
        darshan(&made.bytes()).unwrap_err().to_string()
    };
    assert!(with(&|made| made.posix = vec![one(4, 1)]).contains("rank 4, of 4"));
    assert!(with(&|made| made.posix = vec![one(-1, 1)]).contains("rank -1"));
    assert!(with(&|made| made.posix = vec![one(0, i64::MAX)]).contains("DXT_POSIX is cut"));
    assert!(with(&|made| made.posix = vec![one(0, -2)]).contains("-2 accesses"));
    assert!(with(&|made| made.posix[0].truncate(50)).contains("cut"));
    assert!(with(&|made| made.processes = 1 << 40).contains("processes"));
    assert!(with(&|made| made.processes = 0).contains("0 processes"));
    assert!(with(&|made| made.versions[0] = 3).contains("DXT_POSIX 3"));
    let error = |bytes: &[u8]| darshan(bytes).unwrap_err();
    assert_eq!(error(b"\x1f\x8b\x08 of Darshan 2"), DarshanError::Packed);
    assert_eq!(error(b"strace"), DarshanError::NotALog);
    let mut later = Made::new().bytes();
    later[2..4].copy_from_slice(b"50");
    assert_eq!(error(&later), DarshanError::Format("3.50".to_owned()));
    let mut outside = Made::new().bytes();
    outside[48 + 16 * 10 + 8..][..8].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(error(&outside).to_string().contains("DXT_POSIX lies at bytes"));
}

#[test]
fn a_log_of_darshan_2_is_told_by_its_version() {
    use std::io::Write;
    let packed = |version: &[u8; 8], magic: u64| {
        let mut to = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        to.write_all(version).unwrap();
        to.write_all(&magic.to_be_bytes()).unwrap();
        to.finish().unwrap()
    };
    let old = packed(b"2.06\0\0\0\0", 6_567_223);
    assert_eq!(darshan(&old).unwrap_err(), DarshanError::Old("2.06".to_owned()));
    assert!(darshan(&old).unwrap_err().to_string().contains("looks like a log of Darshan 2.06"));
    assert_eq!(old_darshan(&packed(b"2.06\0\0\0\0", 1)), None);
    assert_eq!(old_darshan(&packed(b"hello 2.", 6_567_223)), None);
    assert_eq!(old_darshan(&old[..old.len() / 2]), None);
}

#[test]
fn few_bytes_that_unpack_to_many_do_not_fill_the_memory() {
    // Zeros are records of rank 0 without accesses.
    let mut made = Made::new();
    made.posix = vec![vec![0; 104 * 100_000]; 8];
    made.posix.push(Made::record(0, true, &[(0, 1, 0.0, 1.0, 0)], &[]));
    assert_eq!(made.trace().events.len(), 3);
}

#[test]
fn logs_cut_or_changed_anywhere_are_errors_or_traces() {
    for name in [
        "mpi-io-test-x86_64-3.1.3.darshan",
        "mpi-io-test-ppc64-3.1.3.darshan",
        "sample-dxt-simple.darshan",
    ] {
        let whole = log(name);
        for length in (0..whole.len()).step_by(whole.len() / 1000 + 1) {
            assert!(darshan(&whole[..length]).is_err(), "{name} cut at {length}");
        }
        for place in (0..whole.len()).step_by(whole.len() / 1000 + 1) {
            for change in [0x01, 0x80, 0xff] {
                let mut changed = whole.clone();
                changed[place] ^= change;
                if let Ok(trace) = darshan(&changed) {
                    assert!(
                        trace.events.iter().all(|event| event.parent < trace.events.len() as i64)
                    );
                }
            }
        }
    }
    assert!(!is_darshan(b"3.41") && is_darshan(&log("mpi-io-test-x86_64-3.0.0.darshan")));
}
