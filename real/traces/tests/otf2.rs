//! Archives of OTF2, written by OTF2's own Python writer (Debian, Ubuntu: python3-otf2) and read through
//! `otf2-print` (otf2-tools).

use iolab_trace::Trace;
use iolab_traces::{Format, load};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Calls and bytes by rank and function.
type Counts = BTreeMap<(i32, String), (u64, u64)>;

/// Writes an archive of that kind and says what is in it.
fn written(kind: &str) -> (TempDir, PathBuf, Counts) {
    let place = tempfile::tempdir().unwrap();
    let archive = place.path().join("scorep-run");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/write_otf2.py");
    // The system's: its packages are those of the system.
    let mut python = Command::new("/usr/bin/python3");
    let output = python.arg(script).arg(kind).arg(&archive).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "`tools/setup/install test` installs it: {complaint}");
    let text = String::from_utf8(output.stdout).unwrap();
    let counts = text.lines().map(|line| {
        let words: Vec<_> = line.split(' ').collect();
        let number = |index: usize| words[index].parse().unwrap();
        ((words[0].parse().unwrap(), words[1].to_owned()), (number(2), number(3)))
    });
    (place, archive, counts.collect())
}

fn counted(trace: &Trace) -> Counts {
    let mut counts = Counts::new();
    for event in &trace.events {
        let count = counts.entry((event.rank, event.function.name().to_owned())).or_default();
        *count = (count.0 + 1, count.1 + event.moved_bytes());
    }
    counts
}

#[test]
fn calls_and_bytes_of_each_rank_and_function_are_those_that_were_written() {
    for kind in ["regions", "bare"] {
        let (_place, archive, counts) = written(kind);
        assert_eq!(Format::of(&archive), Some(Format::Otf2));
        let trace = load(&archive).unwrap();
        assert_eq!(counted(&trace), counts, "{kind}");
        assert!(trace.header.losses.lost_calls.is_empty(), "{kind}");
        let threads = trace.events.iter().map(|event| (event.rank, event.thread));
        let threads: std::collections::BTreeSet<_> = threads.collect();
        assert_eq!(
            threads.into_iter().collect::<Vec<_>>(),
            [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]
        );
        // The communicator of ranks 2 and 0, in this order.
        assert_eq!(trace.header.communicators, [vec![0, 1, 2], vec![2, 0]], "{kind}");
        for name in ["traces.otf2", "traces.def", "traces/0.evt"] {
            assert_eq!(load(&archive.join(name)).unwrap().events, trace.events, "{name}");
        }
    }
}

#[test]
fn the_write_inside_one_of_mpi_io_lies_in_it_and_says_where_it_is() {
    let (_place, archive, _) = written("regions");
    let trace = load(&archive).unwrap();
    let inside = trace.events.iter().filter(|event| event.parent >= 0);
    let places = inside.map(|event| {
        let outer = &trace.events[event.parent as usize];
        (outer.function.name(), outer.offset, event.function.name(), event.offset)
    });
    let expected = [0, 4096, 8192].map(|at| ("MPI_File_write_all", at, "pwrite", at));
    assert_eq!(places.collect::<Vec<_>>(), expected);
}

#[test]
fn references_that_lead_nowhere_are_told() {
    let (_place, archive, counts) = written("nowhere");
    let trace = load(&archive).unwrap();
    assert_eq!(counted(&trace), counts);
    let left_out = &trace.header.losses.left_out_calls;
    assert_eq!(left_out["operations of a kind that is not defined"], 1);
    assert_eq!(left_out["ends of operations that did not begin"], 1);
}

#[test]
fn an_archive_that_ends_early_is_read_up_to_there() {
    let (_place, archive, counts) = written("regions");
    let events = archive.join("traces/0.evt");
    let bytes = fs::read(&events).unwrap();
    let whole = counts.values().map(|count| count.0 as usize).sum();
    let mut stops = 0;
    for end in (40..bytes.len() - 40).step_by(bytes.len() / 12) {
        fs::write(&events, &bytes[..end]).unwrap();
        let trace = load(&archive).unwrap();
        assert!(trace.events.len() < whole, "{end}");
        assert!(trace.header.losses.lost_calls["events that could not be read"] > 0, "{end}");
        // Between two records it does not notice that the file ends.
        let unseen = &trace.header.losses.unseen;
        stops += usize::from(unseen.iter().any(|line| line.contains("otf2-print stopped")));
    }
    assert!(stops > 0);
}

#[test]
fn what_cannot_be_read_is_refused_by_name_with_a_way_out() {
    let refused = |path: &Path, words: &str| {
        let refusal = load(path).unwrap_err();
        assert!(refusal.message.contains(words), "{refusal}");
        assert!(refusal.message.contains(path.to_str().unwrap()), "{refusal}");
        assert!(!refusal.hint.is_empty(), "{refusal}");
    };
    let (_empty, empty, _) = written("empty");
    refused(&empty, "no event");
    let (_program, program, _) = written("program");
    refused(&program, "6 events are none of I/O or MPI");
    let (_place, archive, _) = written("regions");
    let anchor = archive.join("traces.otf2");
    let good = fs::read(&anchor).unwrap();
    fs::write(&anchor, &good[..good.len() - 20]).unwrap();
    refused(&archive, "otf2-print could not read it");
    fs::write(&anchor, "no anchor").unwrap();
    refused(&anchor, "no anchor file of OTF2");
    fs::write(&anchor, &good).unwrap();
    fs::write(archive.join("traces.def"), "").unwrap();
    refused(&archive, "otf2-print could not read it");
    fs::remove_file(&anchor).unwrap();
    refused(&archive, "without anchor");
}
