//! Every kind of trace on disk comes to the same `Trace`, whole and event by event.

use iolab_trace::{Event, FileEntry, Function, Header, ProcessEntry, Trace};
use iolab_traces::{Format, Source, load, parts, unfinished};
use iolab_vocab::{FileId, Nanos};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples").join(name)
}

/// A trace of one rank that wrote 100 bytes.
fn written(path: &Path, rank: i32) {
    let header = Header {
        files: vec![FileEntry { path: "/data/a".to_owned(), ..FileEntry::default() }],
        processes: vec![ProcessEntry { rank, ..ProcessEntry::default() }],
        ..Header::default()
    };
    let event = Event {
        rank,
        file: FileId(0),
        offset: 0,
        length: 100,
        result: 100,
        start: Nanos(1),
        end: Nanos(2),
        ..Event::of(Function::PWRITE)
    };
    iolab_iot::write(
        &Trace { header, events: vec![event], ..Trace::default() },
        File::create(path).unwrap(),
    )
    .unwrap();
}

#[test]
fn the_tool_is_told_from_name_or_content_and_its_trace_comes_whole_and_event_by_event_alike() {
    for (name, format) in [
        ("darshan/ior_hdf5_example.darshan", Format::Darshan),
        ("dftracer/cm1-2024-3537781.pfw.gz", Format::Dftracer),
        ("traces/hdtrace/partdiff-2009/partdiff-par.proj", Format::Hdtrace),
    ] {
        let path = sample(name);
        assert_eq!(Format::of(&path), Some(format), "{name}");
        let whole = load(&path).unwrap();
        let source = Source::open(&path).unwrap();
        let mut events = Vec::new();
        source.visit(|event| events.push(*event)).unwrap();
        assert!(!events.is_empty(), "{name}");
        assert_eq!(events, whole.events, "{name}");
        assert_eq!(source.header().files.len(), whole.header.files.len(), "{name}");
    }
}

/// Writes of several ranks, each in an HDF5 call, and opens between them.
fn nested(ranks: &[i32]) -> Trace {
    let processes = ranks.iter().map(|&rank| ProcessEntry { rank, ..ProcessEntry::default() });
    let mut trace = Trace::default();
    trace.header.processes = processes.collect();
    for (process, &rank) in ranks.iter().enumerate() {
        for number in 0..40 {
            let outer = trace.events.len() as i64;
            let row = |function, parent| {
                let (start, end) = (Nanos(number * 10), Nanos(number * 10 + 9));
                Event { rank, process: process as u32, start, end, parent, ..Event::of(function) }
            };
            trace.events.push(row(Function::H5D_WRITE, -1));
            trace.events.push(row(Function::FWRITE, outer));
            trace.events.push(row(Function::PWRITE, outer + 1));
        }
    }
    trace
}

#[test]
fn a_part_that_is_chosen_while_a_trace_is_read_is_what_is_left_of_the_whole_trace() {
    let place = tempfile::tempdir().unwrap();
    let one = place.path().join("one.iot");
    let write = |trace: &Trace, path: &Path| {
        iolab_iot::write(trace, File::create(path).unwrap()).unwrap();
    };
    write(&nested(&[0, 1, 2]), &one);
    // Parts that follow each other, and parts whose ranks are mixed.
    for (name, parts) in [("apart", [&[0, 1][..], &[2, 3]]), ("mixed", [&[0, 2], &[1, 3]])] {
        let directory = place.path().join(name);
        fs::create_dir(&directory).unwrap();
        for (number, ranks) in parts.into_iter().enumerate() {
            write(&nested(ranks), &directory.join(format!("rank-{number}.iot")));
        }
    }
    let caused = sample("traces/hdtrace/partdiff-2009/partdiff-par.proj");
    for path in [one, place.path().join("apart"), place.path().join("mixed"), caused] {
        let choices: [fn(&Event) -> bool; 4] = [
            |_| true,
            |_| false,
            |event| event.function != Function::FWRITE,
            |event| event.rank == 1 && event.start.0 % 20 == 0,
        ];
        for wanted in choices {
            for (from, to) in [(0, u64::MAX), (95, 200), (0, 10), (1 << 40, u64::MAX)] {
                let source = Source::open(&path).unwrap();
                let mut whole = load(&path).unwrap();
                let first = whole.events.iter().map(|event| event.start).min();
                assert_eq!(source.first_start().unwrap(), first);
                let chosen = source.into_part((from, to), wanted).unwrap();
                assert_eq!(chosen.of, whole.events.len());
                let rows = whole.retain(|event| event.overlaps(from, to) && wanted(event));
                assert_eq!(chosen.rows, rows);
                assert_eq!(chosen.trace, whole, "{}", path.display());
            }
        }
    }
}

#[test]
fn a_directory_of_parts_is_one_trace_and_parts_of_a_job_that_was_cut_off_are_told() {
    let place = tempfile::tempdir().unwrap();
    let run = place.path().join("run.iot");
    let beside = parts::beside(&run);
    fs::create_dir(&beside).unwrap();
    for rank in 0..2 {
        written(&beside.join(format!("rank-{rank}.iot")), rank);
    }
    assert!(unfinished(&run).unwrap().contains("is not complete"));
    let source = Source::open(&run).unwrap();
    let mut bytes = 0;
    source.visit(|event| bytes += event.moved_bytes()).unwrap();
    assert_eq!((source.header().processes.len(), bytes), (2, 200));
    assert_eq!(load(&run).unwrap().events.len(), 2);
    written(&run, 0);
    assert_eq!(load(&run).unwrap().events.len(), 1);
    assert!(unfinished(&run).unwrap().contains("is older than"));
}

#[test]
fn what_is_no_trace_or_not_there_is_refused_by_name_with_a_way_out() {
    let place = tempfile::tempdir().unwrap();
    let text = place.path().join("notes.txt");
    fs::write(&text, "nothing").unwrap();
    let missing = place.path().join("missing.iot");
    let project = place.path().join("missing.proj");
    let empty = place.path().join("empty");
    fs::create_dir(&empty).unwrap();
    for path in [&text, &missing, &project, &empty] {
        for refusal in [load(path).unwrap_err(), Source::open(path).err().unwrap()] {
            assert!(refusal.message.contains(path.to_str().unwrap()), "{refusal}");
            assert!(!refusal.hint.is_empty(), "{refusal}");
        }
    }
}

#[test]
fn texts_of_recorder_are_ranks_by_name_and_a_trace_without_them_is_told_how_to_make_them() {
    let place = tempfile::tempdir().unwrap();
    let run = place.path().join("run");
    let texts = run.join("_text");
    fs::create_dir_all(&texts).unwrap();
    fs::write(run.join("recorder.mt"), "").unwrap();
    let refusal = load(&run).unwrap_err();
    assert!(refusal.message.contains("without its text"), "{refusal}");
    assert!(refusal.hint.contains("recorder2text"), "{refusal}");
    for rank in [10, 9, 0] {
        let line = format!("0.1 0.2 pwrite 0 0 ( /data/a 0x1 {} 4096 )\n", rank + 1);
        fs::write(texts.join(format!("{rank}.txt")), line.repeat(rank + 1)).unwrap();
    }
    assert_eq!(Format::of(&run), Some(Format::Recorder));
    let trace = load(&run).unwrap();
    let sum = |rank| {
        let of_rank = trace.events.iter().filter(move |event| event.rank == rank);
        of_rank.map(Event::moved_bytes).fold((0, 0), |(calls, sum), it| (calls + 1, sum + it))
    };
    assert_eq!([sum(0), sum(9), sum(10)], [(1, 1), (10, 100), (11, 121)]);
    let ranks: Vec<_> = trace.header.processes.iter().map(|process| process.rank).collect();
    assert_eq!(ranks, [0, 9, 10]);
    assert_eq!(load(&texts.join("9.txt")).unwrap().events.len(), 10);
}

#[test]
fn tables_of_recorder_are_read_where_there_is_no_text() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/recorder");
    let table = sample.join("_parquet/0_0.parquet");
    for path in [&sample, &sample.join("_parquet"), &table] {
        assert_eq!(Format::of(path), Some(Format::Recorder), "{}", path.display());
        assert_eq!(load(path).unwrap().events.len(), 19);
    }
    let place = tempfile::tempdir().unwrap();
    let tables = place.path().join("_parquet");
    fs::create_dir(&tables).unwrap();
    for name in ["10_0.parquet", "9_0.parquet"] {
        fs::copy(&table, tables.join(name)).unwrap();
    }
    assert_eq!(load(place.path()).unwrap().events.len(), 38);
    let whole = fs::read(&table).unwrap();
    fs::write(tables.join("9_0.parquet"), &whole[100..]).unwrap();
    let refusal = load(place.path()).unwrap_err();
    assert!(refusal.message.contains("9_0.parquet: this table of Recorder"), "{refusal}");
    let texts = place.path().join("_text");
    fs::create_dir(&texts).unwrap();
    fs::write(texts.join("0.txt"), "0.1 0.2 pwrite 0 0 ( /data/a 0x1 8 4096 )\n").unwrap();
    assert_eq!(load(place.path()).unwrap().events.len(), 1, "texts are finer");
}

#[test]
fn a_trace_of_dftracer_without_an_event_is_named_as_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("idle.pfw");
    fs::write(&path, "[\n").unwrap();
    for path in [&path, directory.path()] {
        assert_eq!(Format::of(path), Some(Format::Dftracer));
        let refusal = Format::Dftracer.load(path).unwrap_err().to_string();
        assert!(refusal.contains("has no event"), "{refusal}");
    }
}
