//! Traces of DFTracer: public ones against a count of their lines, and what other ones may hold.

#![allow(clippy::disallowed_methods, reason = "samples are files")]

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use iolab_trace::import::{Dftracer, DftracerError, is_dftracer};
use iolab_trace::{Class, Event, Function, Trace, function};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;

const SAMPLES: [&str; 3] =
    ["cm1-2024-3537780.pfw.gz", "cm1-2024-3537781.pfw.gz", "unet3d-2023.pfw.gz"];

fn sample(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../samples/dftracer");
    fs::read(folder.join(name)).unwrap()
}

fn imported(files: &[&[u8]]) -> Result<Trace, DftracerError> {
    let mut run = Dftracer::default();
    for file in files {
        run.file(*file)?;
    }
    run.finish()
}

fn number(value: &Value) -> i64 {
    value.as_i64().or_else(|| value.as_str()?.parse().ok()).unwrap_or(0)
}

/// Calls and bytes of each function as the lines say, by our name of it.
fn counted(packed: &[u8]) -> BTreeMap<&'static str, (u64, i64)> {
    let mut text = String::new();
    MultiGzDecoder::new(packed).read_to_string(&mut text).unwrap();
    let mut counts: BTreeMap<_, (u64, i64)> = BTreeMap::new();
    for line in text.lines() {
        let Ok(line) = serde_json::from_str::<Value>(line.trim()) else { continue };
        if !["POSIX", "STDIO"].contains(&line["cat"].as_str().unwrap()) {
            continue;
        }
        let symbol = line["name"].as_str().unwrap();
        if let Some(row) = function::TABLE.iter().find(|row| row.symbols.contains(&symbol)) {
            let arguments = &line["args"];
            let item = arguments.get("size").map_or(1, number);
            let bytes = if row.class.moves_data() { number(&arguments["ret"]) * item } else { 0 };
            let count = counts.entry(row.name).or_default();
            *count = (count.0 + 1, count.1 + bytes.max(0));
        }
    }
    counts
}

#[test]
fn calls_and_bytes_of_each_function_are_those_of_the_lines() {
    for name in SAMPLES {
        let packed = sample(name);
        let trace = imported(&[&packed]).unwrap();
        let mut counts: BTreeMap<_, (u64, i64)> = BTreeMap::new();
        for event in &trace.events {
            let count = counts.entry(event.function.name()).or_default();
            *count = (count.0 + 1, count.1 + event.moved_bytes() as i64);
        }
        assert_eq!(counts, counted(&packed), "{name}");
        assert!(trace.header.losses.lost_calls.is_empty(), "{name}");
    }
}

#[test]
fn names_behind_hashes_and_ranks_are_found_wherever_their_rows_stand() {
    let files = SAMPLES.map(sample);
    let trace = imported(&[&files[0], &files[1]]).unwrap();
    let ranks: Vec<_> = trace.header.processes.iter().map(|it| (it.rank, it.pid)).collect();
    assert_eq!(ranks, [(0, 3_537_780), (1, 3_537_781)]);
    assert!(trace.header.processes.iter().all(|it| it.host == "corona173"));
    assert!(trace.header.processes.iter().all(|it| it.ending == "exited"));
    assert_eq!(trace.header.command, ["./cm1.exe"]);
    assert!(
        trace.header.files.iter().any(|file| file.path.ends_with("/etc/openmpi-mca-params.conf"))
    );
    assert!(trace.header.files.iter().all(|file| !file.path.starts_with("file ")));
    let of_2023 = imported(&[&files[2]]).unwrap();
    assert_eq!((of_2023.header.processes[0].rank, of_2023.header.processes.len()), (0, 1));
    assert_eq!(of_2023.header.processes[0].host, "ruby165");
}

#[test]
fn a_read_is_where_the_calls_before_it_led_to() {
    let trace = imported(&[&sample(SAMPLES[2])]).unwrap();
    let moves = |it: &&Event| matches!(it.function.class(), Class::Read | Class::Seek);
    let mut position = BTreeMap::new();
    let mut reads = 0;
    for event in trace.events.iter().filter(|it| moves(it) || it.function.class() == Class::Open) {
        let key = (event.process, event.thread, event.fd);
        match event.function.class() {
            Class::Open => drop(position.insert(key, 0)),
            Class::Seek => drop(position.insert(key, event.result)),
            _ => {
                let at = position.get_mut(&key).unwrap();
                assert_eq!(event.offset, *at);
                *at += event.result;
                reads += 1;
            }
        }
    }
    assert_eq!(reads, 5_734);
}

const LINES: &str = r#"[
{"id":0,"name":"start","cat":"dftracer","pid":7,"tid":7,"ts":100,"dur":0,"ph":"X","args":{"hhash":"h1","cmd_hash":"c1","ppid":3}}
{"id":1,"name":"fopen","cat":"STDIO","pid":7,"tid":7,"ts":100,"dur":5,"ph":"X","args":{"hhash":"h1","fhash":"ab","mode":"w+"}}
{"id":2,"name":"fwrite","cat":"STDIO","pid":7,"tid":7,"ts":110,"dur":5,"ph":"X","args":{"hhash":"h1","fhash":"ab","size":8,"count":4,"ret":3}}
{"id":3,"name":"fseek","cat":"STDIO","pid":7,"tid":7,"ts":120,"dur":1,"ph":"X","args":{"hhash":"h1","fhash":"ab","offset":-4,"whence":1,"ret":0}}
{"id":4,"name":"fread","cat":"STDIO","pid":7,"tid":7,"ts":130,"dur":1,"ph":"X","args":{"hhash":"h1","fhash":"ab","size":4,"count":2,"ret":1}}
{"id":5,"name":"open64","cat":"POSIX","pid":7,"tid":8,"ts":140,"dur":1,"ph":"X","args":{"hhash":"h1","fhash":"cd","flags":0,"ret":-1}}
{"id":6,"name":"compute","cat":"app","pid":7,"tid":7,"ts":1,"dur":900,"ph":"X","args":{}}
{"id":7,"name":"dup","cat":"POSIX","pid":7,"tid":7,"ts":150,"dur":0,"ph":"X","args":{"hhash":"h1","fhash":"ab"}}
{"id":8,"name":"FH","cat":"dftracer","pid":7,"tid":7,"ph":"M","args":{"name":"/d/a","value":"ab"}}
{"id":9,"name":"HH","cat":"dftracer","pid":7,"tid":7,"ph":"M","args":{"name":"node","value":"h1"}}
{"id":10,"name":"SH","cat":"dftracer","pid":7,"tid":7,"ph":"M","args":{"name":"./prog -x","value":"c1"}}
{"id":11,"name":"write","cat":"POSIX","pid":7,"ti"#;

#[test]
fn streams_failures_and_a_cut_end_are_taken_as_they_are() {
    let trace = imported(&[LINES.as_bytes()]).unwrap();
    let rows: Vec<_> = trace
        .events
        .iter()
        .map(|it| (it.function, it.thread, it.offset, it.length, it.result, it.start.0))
        .collect();
    let stream = trace.events[0].result;
    assert_eq!(
        rows,
        [
            (Function::FOPEN, 0, -1, -1, stream, 0),
            (Function::FWRITE, 0, 0, 32, 24, 10_000),
            (Function::FSEEK, 0, -4, -1, 20, 20_000),
            (Function::FREAD, 0, 20, 8, 4, 30_000),
            (Function::OPEN, 1, -1, -1, -4_095, 40_000),
        ]
    );
    assert!(trace.events[..4].iter().all(|it| i64::from(it.fd) == stream));
    assert_eq!((trace.events[0].argument, trace.events[4].fd), (0o1102, -1));
    let files: Vec<_> = trace.header.files.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(files, ["/d/a", "file cd"]);
    let process = &trace.header.processes[0];
    assert_eq!((process.rank, process.parent_pid, process.ending.as_str()), (-1, 3, "cut"));
    assert_eq!(
        (process.host.as_str(), trace.header.command.join(" ").as_str()),
        ("node", "./prog -x")
    );
    let losses = &trace.header.losses;
    assert_eq!(losses.lost_calls, BTreeMap::from([("unreadable lines".to_owned(), 1)]));
    let left_out = [("dup".to_owned(), 1), ("events of app".to_owned(), 1)];
    assert_eq!(losses.left_out_calls, BTreeMap::from(left_out));
    assert_eq!(trace.header.clock.zero_unix_ns, 100_000);
}

#[test]
fn a_compressed_trace_of_many_members_is_the_plain_one_and_a_damaged_one_is_refused() {
    let pack = |text: &str| {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(text.as_bytes()).unwrap();
        packed.finish().unwrap()
    };
    let (head, tail) = LINES.split_at(500);
    let packed = [pack(head), pack(tail)].concat();
    assert_eq!(imported(&[&packed]).unwrap(), imported(&[LINES.as_bytes()]).unwrap());
    let mut damaged = packed.clone();
    // Its checksum.
    *damaged.iter_mut().nth_back(5).unwrap() ^= 1;
    assert!(matches!(imported(&[&damaged]), Err(DftracerError::Io(_))));
    assert!(is_dftracer(LINES.as_bytes()) && is_dftracer(&packed));
    assert!(SAMPLES.iter().all(|name| is_dftracer(&sample(name)[..4_096])));
    assert!(is_dftracer(LINES_OF_2.replace("ARGS", "").as_bytes()));
    for other in [&b"[\n]\n"[..], b"", b"PAR1", b"{\"traceEvents\":[]}", b"\x1f\x8b nothing"] {
        assert!(!is_dftracer(other));
    }
    assert!(matches!(imported(&[b"[\n]\n"]), Err(DftracerError::NoEvents)));
    let far = r#"{"id":1,"name":"close","cat":"POSIX","pid":1,"tid":1,"ts":9223372036854775807,"dur":9223372036854775807,"ph":"X","args":{"fname":"/a","fd":3,"ret":0}}"#;
    let lost = imported(&[far.as_bytes()]).unwrap().header.losses.lost_calls;
    assert_eq!(lost.values().sum::<u64>(), 1);
}

#[test]
fn a_compressed_trace_that_is_cut_is_taken_up_to_there_and_told_as_cut() {
    let lines: Vec<String> = (0..2_000)
        .map(|at| {
            format!(
                r#"{{"id":{at},"name":"write","cat":"POSIX","pid":1,"tid":1,"ts":{at},"dur":1,"ph":"X","args":{{"fname":"/a{}","fd":3,"count":8,"ret":8}}}}"#,
                at * 7_919 % 1_009
            )
        })
        .collect();
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(lines.join("\n").as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    let whole = imported(&[&packed]).unwrap();
    assert_eq!((whole.events.len(), whole.header.losses.lost_calls.len()), (2_000, 0));
    let mut before = 0;
    for part in 1..16 {
        let trace = imported(&[&packed[..packed.len() * part / 16]]).unwrap();
        let calls = trace.events.len();
        assert!(calls > before && calls < 2_000, "{calls} calls of {part} parts");
        assert_eq!(trace.events, whole.events[..calls], "{part} parts");
        assert_eq!(trace.header.processes[0].ending, "cut");
        let lost = trace.header.losses.lost_calls;
        assert_eq!(lost, BTreeMap::from([(CUT.to_owned(), 1)]));
        before = calls;
    }
    // Another process's file is whole.
    let both = imported(&[&packed[..packed.len() / 2], LINES.replace(":7,", ":8,").as_bytes()]);
    assert!(both.unwrap().events.len() > 5);
    let nothing = imported(&[&packed[..packed.len().min(12)]]);
    assert!(matches!(nothing, Err(DftracerError::NoEvents)));
}

const CUT: &str = "at the cut end of a compressed file, at least";

/// As release 2.2 writes them.
const LINES_OF_2: &str = r#"[
{"name":"HH","cat":"dftracer","type":1,"pid":9,"tid":9,"ph":4,"args":{"hhash":"68","name":"vm","value":"68"}}
{"id":1,"name":"start","cat":"dftracer","type":1,"pid":9,"tid":9,"ts":1000,"dur":0,"ph":1}
{"id":2,"name":"open","cat":"POSIX","type":3,"pid":9,"tid":9,"ts":1001,"dur":15,"ph":1ARGS}
{"id":3,"name":"end","cat":"dftracer","type":1,"pid":9,"tid":9,"ts":1100,"dur":0,"ph":1}
]"#;

#[test]
fn events_of_release_2_are_read_and_those_without_arguments_are_refused_with_the_way_out() {
    let with =
        LINES_OF_2.replace("ARGS", r#","args":{"hhash":"68","fhash":"f9","flags":2,"ret":4}"#);
    let trace = imported(&[with.as_bytes()]).unwrap();
    assert_eq!((trace.events.len(), trace.events[0].fd, trace.events[0].start.0), (1, 4, 0));
    assert_eq!(trace.header.processes[0].host, "vm");
    let untold = LINES_OF_2.replace("ARGS", r#","args":{"hhash":"68","fhash":"f9","flags":2}"#);
    let untold = imported(&[untold.as_bytes()]).unwrap().events[0];
    assert!(untold.fd > 1_000_000 && untold.result == i64::from(untold.fd));
    let refused = imported(&[LINES_OF_2.replace("ARGS", "").as_bytes()]).unwrap_err();
    assert!(matches!(refused, DftracerError::NoFiles(1)));
    assert!(refused.hint().contains("DFTRACER_INC_METADATA=1"));
}
