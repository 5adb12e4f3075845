//! Archives of OTF2: what they hold is what the trace does. Libotf2 and otf2-print are needed (Debian, Ubuntu:
//! otf2-tools).

use iolab_trace::{CallView, Class, Event, Function, Header, Layer, Partner, ProcessEntry, Trace};
use iolab_trace::{FileEntry, open_flags};
use iolab_vocab::{FileId, Nanos};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

fn iolab(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iolab"));
    command.args(arguments).current_dir(directory).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Two ranks and a process beside them; a file with an end of line and a backslash in its name.
fn trace() -> Trace {
    let process = |name: &str, rank, host: &str| ProcessEntry {
        name: name.to_owned(),
        rank,
        host: host.to_owned(),
        ..ProcessEntry::default()
    };
    let file = |path: &str| FileEntry { path: path.to_owned(), ..FileEntry::default() };
    let header = Header {
        command: vec!["./solver".to_owned()],
        host: "node0".to_owned(),
        processes: vec![
            process("helper", -1, ""),
            process("rank 0", 0, "node0"),
            process("rank 1", 1, "node1"),
        ],
        files: vec![file("/data/a"), file("/data/odd\n\\n, Mode: READ <3>")],
        ..Header::default()
    };
    let mut events = Vec::new();
    for process in 0..3_u32 {
        let rank = process as i32 - 1;
        let mut row = |function, times: (u64, u64), fields: Event| {
            let (start, end) = (Nanos(times.0), Nanos(times.1));
            events.push(Event { rank, process, function, start, end, ..fields });
        };
        let on = |file, fd| Event { file: FileId(file), fd, ..Event::of(Function::READ) };
        let flags = open_flags::CREATE | open_flags::TRUNCATE | 2;
        row(
            Function::OPEN,
            (10, 20),
            Event { fd: -1, argument: flags, result: 3, length: 0, ..on(0, -1) },
        );
        for at in 0..50_u64 {
            let access = Event { offset: 100 * at as i64, length: 100, result: 100, ..on(0, 3) };
            row(Function::PWRITE, (100 + 10 * at, 105 + 10 * at), access);
        }
        row(Function::LSEEK, (700, 710), Event { offset: 0, argument: 0, result: 0, ..on(0, 3) });
        let short = Event { offset: 0, length: 4_000, result: 1_234, ..on(0, 3) };
        row(Function::READ, (720, 730), short);
        row(
            Function::READ,
            (730, 740),
            Event { offset: 1_234, length: 10, result: -5, ..on(0, 3) },
        );
        row(Function::FSYNC, (740, 800), Event { result: 0, ..on(0, 3) });
        row(Function::CLOSE, (800, 801), Event { result: 0, ..on(0, 3) });
        row(Function::UNLINK, (810, 820), Event { result: 0, ..on(1, -1) });
        // A write that begins before the one before it has ended: it needs a location of its own.
        let beside = |offset| Event { offset, length: 7, result: 7, ..on(1, 9) };
        row(Function::PWRITE, (900, 950), beside(0));
        row(Function::PWRITE, (920, 990), beside(7));
    }
    // What a server does is no call.
    let of_a_server = Event { start: Nanos(5), end: Nanos(9), ..Event::of(Function::SERVE_READ) };
    events.push(Event { rank: 1, process: 2, ..of_a_server });
    Trace { header, events, ..Trace::default() }
}

fn save(trace: &Trace, path: &Path) {
    iolab_iot::write(trace, File::create(path).unwrap()).unwrap();
}

/// Calls, bytes, time, and the sum of offsets by rank and function.
type Sums = BTreeMap<(i32, &'static str), (u64, u64, u64, i64)>;

fn sums(trace: &Trace) -> Sums {
    let mut sums = Sums::new();
    for event in &trace.events {
        if !matches!(event.function.layer(), Layer::Posix | Layer::Stdio | Layer::Mpiio) {
            continue;
        }
        // A failure loses its number, a seek and an access keep their places.
        let offset = if event.function.class().moves_data() { event.offset } else { 0 };
        let sum = sums.entry((event.rank, event.function.name())).or_default();
        sum.0 += 1;
        sum.1 += event.moved_bytes();
        sum.2 += event.end.0 - event.start.0;
        sum.3 += offset;
    }
    sums
}

#[test]
fn an_archive_is_read_again_with_the_same_calls() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let trace = trace();
    save(&trace, &home.join("run.iot"));
    let words = ["export", "run.iot", "--to", "otf2", "-o", "archive"];
    let output = iolab(home, &words);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("left out: 1 row"), "{}", said(&output));
    let printed =
        Command::new("otf2-print").arg(home.join("archive/traces.otf2")).output().unwrap();
    assert!(printed.status.success(), "{}", said(&printed));
    let output = iolab(home, &["import", "archive", "-o", "back.iot"]);
    assert!(output.status.success(), "{}", said(&output));
    let back = iolab_iot::read(File::open(home.join("back.iot")).unwrap()).unwrap();
    assert_eq!(sums(&back), sums(&trace));
    let paths = |trace: &Trace| {
        let mut paths: Vec<_> = trace.header.files.iter().map(|it| it.path.clone()).collect();
        paths.sort();
        paths
    };
    assert_eq!(paths(&back), paths(&trace));
    assert!(back.header.losses.lost_calls.is_empty(), "{:?}", back.header.losses);
    let open = back.events.iter().find(|it| it.function.class() == Class::Open).unwrap();
    assert_eq!(open.argument, open_flags::CREATE | open_flags::TRUNCATE | 2);
    let failed = back.events.iter().filter(|event| event.result < 0).count();
    assert_eq!(failed, 3);
    let mut hosts: Vec<_> = back.header.processes.iter().map(|it| it.host.as_str()).collect();
    hosts.sort_unstable();
    assert_eq!(hosts, ["node0", "node0", "node1"]);
}

/// Two ranks that tell each other something, in every way there is.
fn conversation() -> Trace {
    let process = |rank| ProcessEntry { rank, ..ProcessEntry::default() };
    let header = Header {
        processes: vec![process(0), process(1)],
        // The second one turns them round.
        communicators: vec![vec![0, 1], vec![1, 0]],
        ..Header::default()
    };
    let mut events = Vec::new();
    for rank in 0..2_u32 {
        let other = Some(Partner { rank: Some(1 - rank), tag: Some(7) });
        let message = |to, bytes, from, communicator, request| CallView::Message {
            to,
            bytes,
            from,
            communicator,
            request,
        };
        let collective = |root, bytes| CallView::Collective { root, bytes, communicator: 1 };
        let talk = [
            (Function::MPI_SEND, message(other, 100, None, 0, None)),
            (Function::MPI_RECV, message(None, 0, other, 0, None)),
            (Function::MPI_IRECV, message(None, 0, other, 1, Some(3))),
            (Function::MPI_ISEND, message(other, 4_000, None, 1, Some(4))),
            (Function::MPI_WAIT, CallView::Wait { request: 3 }),
            (Function::MPI_WAIT, CallView::Wait { request: 4 }),
            (Function::MPI_SENDRECV, message(other, 8, other, 0, None)),
            (Function::MPI_BARRIER, collective(None, None)),
            (Function::MPI_BCAST, collective(Some(1), Some(512))),
            (Function::MPI_REDUCE, collective(Some(0), Some(16))),
            (Function::MPI_ALLREDUCE, collective(None, Some(24))),
        ];
        for (at, (function, view)) in (0_u64..).zip(talk) {
            let (start, end) = (Nanos(100 * at), Nanos(100 * at + 50));
            let row = Event { rank: rank as i32, process: rank, start, end, ..Event::of(function) };
            events.push(view.on(function, row));
        }
    }
    Trace { header, events, ..Trace::default() }
}

/// What each call says, by rank, in the order of time; communicators as who is in them, requests by their order.
fn said_by_calls(trace: &Trace) -> Vec<(i32, u64, String)> {
    let members = |at: i64| &trace.header.communicators[at as usize];
    let mut requests = BTreeMap::new();
    let mut named = |rank: i32, request: i64| {
        let next = requests.len();
        *requests.entry((rank, request)).or_insert(next)
    };
    let mut told: Vec<_> = (trace.events.iter())
        .map(|event| {
            let text = match CallView::of(event).unwrap() {
                CallView::Message { to, bytes, from, communicator, request } => {
                    let request = request.map(|request| named(event.rank, request));
                    format!("{to:?} {bytes} {from:?} {:?} {request:?}", members(communicator))
                }
                CallView::Collective { root, bytes, communicator } => {
                    format!("{root:?} {bytes:?} {:?}", members(communicator))
                }
                CallView::Wait { request } => format!("{}", named(event.rank, request)),
                other => format!("{other:?}"),
            };
            (event.rank, event.start.0, format!("{} {text}", event.function.name()))
        })
        .collect();
    told.sort();
    told
}

#[test]
fn messages_and_collective_calls_have_their_partners_in_the_archive() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let trace = conversation();
    save(&trace, &home.join("run.iot"));
    let output = iolab(home, &["export", "run.iot", "--to", "otf2", "-o", "archive"]);
    assert!(output.status.success(), "{}", said(&output));
    let printed =
        Command::new("otf2-print").arg(home.join("archive/traces.otf2")).output().unwrap();
    let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
    let count = |word: &str| printed.lines().filter(|line| line.starts_with(word)).count();
    let counts = [
        ("MPI_SEND ", 4),
        ("MPI_RECV ", 4),
        ("MPI_ISEND ", 2),
        ("MPI_ISEND_COMPLETE", 2),
        ("MPI_IRECV_REQUEST", 2),
        ("MPI_IRECV ", 2),
        ("MPI_COLLECTIVE_BEGIN", 8),
        ("MPI_COLLECTIVE_END", 8),
    ];
    for (word, wanted) in counts {
        assert_eq!(count(word), wanted, "{word}\n{printed}");
    }
    let output = iolab(home, &["import", "archive", "-o", "back.iot"]);
    assert!(output.status.success(), "{}", said(&output));
    let back = iolab_iot::read(File::open(home.join("back.iot")).unwrap()).unwrap();
    assert_eq!(said_by_calls(&back), said_by_calls(&trace));
}

/// A reader in whose place stands one that says who it is and waits.
#[test]
fn a_reader_of_an_archive_ends_with_who_asked_it_to_read() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    save(&trace(), &home.join("run.iot"));
    assert!(iolab(home, &["export", "run.iot", "--to", "otf2", "-o", "archive"]).status.success());
    let reader = home.join("otf2-print");
    fs::write(&reader, "#!/bin/sh\necho $$ > pid.part\nmv pid.part pid\nexec sleep 600\n").unwrap();
    fs::set_permissions(&reader, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", home.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_iolab"));
    command.args(["report", "archive"]).current_dir(home).env("PATH", path);
    let mut asking = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let until = |what: &str, is_so: &dyn Fn() -> bool| {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
            thread::sleep(Duration::from_millis(10));
        }
    };
    until("the reader is started", &|| home.join("pid").exists());
    let pid = fs::read_to_string(home.join("pid")).unwrap();
    let command_line = PathBuf::from(format!("/proc/{}/cmdline", pid.trim()));
    let is_there = || fs::read(&command_line).is_ok_and(|words| words.starts_with(b"sleep"));
    until("the reader waits", &is_there);
    asking.kill().unwrap();
    asking.wait().unwrap();
    until("the reader has ended", &|| !is_there());
}

#[test]
fn what_is_there_stays_and_nothing_is_left_of_an_archive_that_fails() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    save(&trace(), &home.join("run.iot"));
    let names = || {
        let entries = fs::read_dir(home).unwrap();
        let mut names: Vec<_> = entries.map(|it| it.unwrap().file_name()).collect();
        names.sort();
        names
    };
    fs::create_dir(home.join("full")).unwrap();
    fs::write(home.join("full/mine"), "").unwrap();
    let before = names();
    let refused = |words: &[&str], problem: &str| {
        let output = iolab(home, words);
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        assert!(
            said(&output).contains(problem) && said(&output).contains("hint: "),
            "{}",
            said(&output)
        );
        assert_eq!(names(), before, "{words:?}");
    };
    refused(&["export", "run.iot", "--to", "otf2", "-o", "full"], "full exists");
    refused(&["export", "run.iot", "--to", "otf2"], "is a directory, not a file");
    let whole = fs::read(home.join("run.iot")).unwrap();
    // A byte of the rows, which are read when the archive has begun.
    let mut damaged = whole.clone();
    damaged[100] ^= 1;
    fs::write(home.join("run.iot"), damaged).unwrap();
    refused(&["export", "run.iot", "--to", "otf2", "-o", "archive"], "damaged");
    fs::write(home.join("run.iot"), whole).unwrap();
    fs::create_dir(home.join("empty")).unwrap();
    let output = iolab(home, &["export", "run.iot", "--to", "otf2", "-o", "empty"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(home.join("empty/traces.otf2").is_file());
}
