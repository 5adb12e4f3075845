//! Archives of OTF2: what their text comes to, and that no text is too bad. That counts and bytes are those of
//! archives on disk is tested where those are read.

#![allow(clippy::disallowed_methods, reason = "samples are files")]

mod rows;

use iolab_trace::import::{Otf2, Otf2Error, is_otf2};
use iolab_trace::{CallView, Function, Partner, Trace};
use rows::only;
use std::fs;
use std::path::PathBuf;

/// An archive that has each event of I/O and of messages once, also without regions around them.
fn sample() -> Vec<u8> {
    let path = "../../samples/otf2/small.txt";
    fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

fn imported(text: &[u8]) -> Result<Trace, Otf2Error> {
    let mut archive = Otf2::default();
    archive.text(text)?;
    archive.finish()
}

#[test]
fn regions_give_names_and_times_and_events_inside_them_files_bytes_and_places() {
    let trace = imported(&sample()).unwrap();
    let open = only(&trace, Function::OPEN);
    assert_eq!((open.start.0, open.end.0, open.argument, open.fd), (1, 3, 0o1102, 3));
    assert_eq!(open.result, 3);
    let path = &trace.header.files[open.file.index().unwrap()].path;
    assert_eq!(path, "/d/a\nb \"q\" <7>");
    let pwrite = only(&trace, Function::PWRITE);
    assert_eq!((pwrite.start.0, pwrite.end.0), (4, 7));
    assert_eq!((pwrite.offset, pwrite.length, pwrite.result), (512, 4096, 4096));
    let seek = only(&trace, Function::LSEEK);
    assert_eq!((seek.offset, seek.argument, seek.result), (-5, 2, 4091));
    // Called off, and begun where the seek led to.
    let read = only(&trace, Function::READ);
    assert_eq!((read.offset, read.length, read.result, read.end.0), (4091, 4096, -125, 10));
    assert_eq!(only(&trace, Function::DUP).result, 4);
    assert_eq!(only(&trace, Function::UNLINK).file, open.file);
    assert_eq!(only(&trace, Function::CLOSE).fd, open.fd);
    // Nobody told the file that this thread reads.
    assert!(trace.events.iter().all(|event| event.function != Function::FREAD));
    assert_eq!(trace.header.losses.left_out_calls["calls on what has no name"], 1);
}

#[test]
fn messages_name_ranks_of_the_program_and_requests_are_waited_for() {
    let trace = imported(&sample()).unwrap();
    let partner = |rank| Some(Partner { rank: Some(rank), tag: Some(5) });
    let view = |function| CallView::of(&only(&trace, function)).unwrap();
    let message =
        |to, bytes, from, request| CallView::Message { to, bytes, from, communicator: 0, request };
    assert_eq!(view(Function::MPI_SEND), message(partner(1), 100, None, None));
    assert_eq!(view(Function::MPI_RECV), message(None, 0, partner(0), None));
    assert_eq!(view(Function::MPI_ISEND), message(partner(1), 100, None, Some(0)));
    assert_eq!(view(Function::MPI_IRECV), message(None, 0, partner(0), Some(0)));
    let collective = |root, bytes| CallView::Collective { root, bytes, communicator: 0 };
    assert_eq!(view(Function::MPI_BARRIER), collective(None, None));
    assert_eq!(view(Function::MPI_BCAST), collective(Some(0), Some(20)));
    assert_eq!(trace.header.communicators, [[0, 1]]);
    let waits = trace.events.iter().filter(|event| event.function == Function::MPI_WAIT);
    let waits: Vec<_> = waits.map(|event| (event.rank, event.argument)).collect();
    assert_eq!(waits, [(0, 0), (1, 0)]);
}

#[test]
fn locations_are_threads_of_ranks_on_their_hosts() {
    let trace = imported(&sample()).unwrap();
    let processes: Vec<_> = trace
        .header
        .processes
        .iter()
        .map(|process| (process.rank, process.name.as_str(), process.host.as_str()))
        .collect();
    assert_eq!(processes, [(0, "rank 0", "host1"), (1, "rank 1", "host1")]);
    assert!(trace.header.processes.iter().all(|process| process.ending == "exited"));
    assert_eq!(trace.header.clock.resolution_ns, 1);
}

#[test]
fn an_anchor_is_told_by_its_first_bytes() {
    assert!(is_otf2(b"\x03BOTF2\x00\x03") && is_otf2(b"\x03#OTF2"));
    for other in [&b"OTF2"[..], b"", b"\x03BOTF", b"\x03BOTF3"] {
        assert!(!is_otf2(other));
    }
}

#[test]
fn an_archive_without_events_or_calls_is_refused_and_a_missing_end_is_told() {
    let text = String::from_utf8(sample()).unwrap();
    let (definitions, events) = text.split_once("=== Events").unwrap();
    assert!(matches!(imported(b""), Err(Otf2Error::NoEvents)));
    assert!(matches!(imported(definitions.as_bytes()), Err(Otf2Error::NoEvents)));
    let program = format!("{definitions}=== Events\nENTER 0 1000  Region: \"main\" <4>\n");
    assert!(matches!(imported(program.as_bytes()), Err(Otf2Error::NoCalls(1))));
    let until = events.find("IO_OPERATION_COMPLETE").unwrap();
    let cut = format!("{definitions}=== Events{}", &events[..until]);
    let trace = imported(cut.as_bytes()).unwrap();
    let losses = &trace.header.losses;
    assert_eq!(losses.lost_calls["events that could not be read"], 31 - 7);
    assert!(losses.unseen.iter().any(|line| line.starts_with("1 accesses whose end is missing")));
    assert_eq!(trace.header.processes[0].ending, "cut");
}

/// What readers of traces rely on.
fn is_sound(trace: &Trace) {
    for (row, event) in trace.events.iter().enumerate() {
        assert!((event.process as usize) < trace.header.processes.len());
        assert!(event.file.index().is_none_or(|file| file < trace.header.files.len()));
        assert!(event.start <= event.end && event.parent < row as i64);
        let is_member = |rank: &u32| *rank < i32::MAX as u32;
        assert!(trace.header.communicators.iter().flatten().all(is_member));
    }
}

#[test]
fn no_text_is_too_bad() {
    let good = sample();
    let text = String::from_utf8(good.clone()).unwrap();
    let mut bad: Vec<Vec<u8>> = (0..good.len()).step_by(37).map(|at| good[..at].to_vec()).collect();
    let huge = "18446744073709551615";
    for (from, to) in [
        ("1000000000", "0"),
        ("1000000000", huge),
        ("Global Offset: 1000", "Global Offset: 99999"),
        ("  100", huge),
        ("  1005  ", "  18446744073709551614  "),
        ("<0>", "<99>"),
        ("<0>", ""),
        ("<1>", "<18446744073709551616>"),
        (": 4096", ": 9223372036854775807"),
        (": 4096", ": -4096"),
        ("Matching Id: 7", "Matching Id: 8"),
        ("LEAVE", "ENTER"),
        ("ENTER", "LEAVE"),
        ("IO_CREATE_HANDLE", "IO_DESTROY_HANDLE"),
        ("IO_OPERATION_BEGIN", "IO_OPERATION_COMPLETE"),
        ("MPI_ISEND ", "MPI_IRECV "),
        ("MPI_COLLECTIVE_BEGIN", "MPI_COLLECTIVE_END"),
        ("2 Members", "3 Members"),
        ("Members: 0 (", "Members: 18446744073709551615 ("),
        ("Receiver: 1 ", "Receiver: 18446744073709551615 "),
        ("Root: 0 ", "Root: SELF "),
        ("Parent: UNDEFINED", "Parent: \"x\" <1>"),
        ("\n", "\r\n"),
        ("\"", "\"\n"),
        (", ", "\u{202e}"),
    ] {
        bad.push(text.replace(from, to).into_bytes());
    }
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    lines.reverse();
    bad.push(lines.concat().into_bytes());
    bad.push(good.iter().map(|byte| byte ^ 0x80).collect());
    assert!(bad.len() > 200, "{}", bad.len());
    for bytes in bad {
        match imported(&bytes) {
            Ok(trace) => is_sound(&trace),
            Err(error) => assert!(!error.to_string().is_empty() && !error.hint().is_empty()),
        }
    }
}
