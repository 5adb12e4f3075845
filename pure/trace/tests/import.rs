//! Traces of other tools as ours.

use iolab_trace::{Event, Function, Origin, Trace, import};

const FORK_AND_THREAD: &str = include_str!("../../../samples/traces/strace/fork_and_thread.txt");

fn calls<'a>(trace: &'a Trace, path: &str) -> Vec<(&'static str, &'a Event)> {
    let on_path = |event: &&Event| {
        event.file.index().is_some_and(|index| trace.header.files[index].path == path)
    };
    trace.events.iter().filter(on_path).map(|event| (event.function.name(), event)).collect()
}

#[test]
fn a_trace_of_strace_has_the_offsets_the_program_never_said() {
    let trace = import::strace(FORK_AND_THREAD).unwrap();
    let transfers: Vec<_> = calls(&trace, "data/out.bin")
        .into_iter()
        .filter(|(_, event)| event.function.class().moves_data())
        .map(|(name, event)| (name, event.process, event.thread, event.offset, event.result))
        .collect();
    let wanted = [
        ("write", 0, 0, 0, 12),
        // After the seek, through the copy of the descriptor.
        ("read", 0, 0, 2, 4),
        ("pwrite", 0, 1, 1000, 6),
        // The child writes where the parent stopped: they share the position.
        ("write", 1, 0, 12, 5),
    ];
    assert_eq!(transfers, wanted);
}

#[test]
fn processes_threads_and_names_are_found() {
    let trace = import::strace(FORK_AND_THREAD).unwrap();
    let header = &trace.header;
    assert_eq!(header.origin, Origin::Imported);
    assert_eq!(header.command, ["./st"]);
    assert_eq!(header.processes.len(), 2, "a thread is no process");
    assert_eq!(header.processes[1].parent_pid, header.processes[0].pid);
    assert!(header.inferred[0].contains("offsets"));
    assert!(header.losses.left_out_calls["futex"] > 0);
}

#[test]
fn a_relative_path_is_followed_through_a_change_of_directory() {
    let trace = import::strace(FORK_AND_THREAD).unwrap();
    let names: Vec<_> = calls(&trace, "data/out.bin").iter().map(|call| call.0).collect();
    assert_eq!(names.last(), Some(&"write"), "the child's rows come last");
    assert!(names.contains(&"rename"), "{names:?}");
    let renamed =
        calls(&trace, "data/out.bin").into_iter().find(|call| call.0 == "rename").unwrap();
    let new = &trace.header.files[renamed.1.argument as usize];
    assert_eq!(new.path, "data/new.bin");
    assert_eq!(calls(&trace, "data/missing")[0].1.result, -2);
}

#[test]
fn copies_inside_the_kernel_have_a_source_and_a_target() {
    let lines = [
        "openat(AT_FDCWD, \"/in\", O_RDONLY) = 3",
        "openat(AT_FDCWD, \"/out\", O_WRONLY|O_CREAT|O_TRUNC, 0600) = 4",
        "copy_file_range(3, NULL, 4, NULL, 4096, 0) = 100",
        "sendfile(4, 3, [10] => [60], 50) = 50",
        "splice(3, NULL, 9, NULL, 20, 0) = 20",
        "splice(8, NULL, 4, [5], 7, 0) = 7",
        "write(4, \"x\", 1) = 1",
        "read(3, \"y\", 1) = 1",
        "splice(8, NULL, 9, NULL, 7, 0) = 7",
    ];
    let text: String = (lines.iter().enumerate())
        .map(|(at, line)| format!("7 1700000000.00001{at} {line} <0.000001>\n"))
        .collect();
    let trace = import::strace(&text).unwrap();
    let moved = trace.events.iter().filter(|event| event.function.class().moves_data());
    let rows: Vec<_> = moved
        .map(|event| (event.function.name(), event.file.index(), event.offset, event.argument))
        .collect();
    let wanted = [
        ("copy_file_range", Some(0), 0, 1),
        ("sendfile", Some(0), 10, 1),
        ("splice", Some(0), 100, -1),
        ("splice", None, -1, 1),
        ("write", Some(1), 150, -1),
        ("read", Some(0), 120, -1),
    ];
    assert_eq!(rows, wanted);
    assert_eq!((trace.events[2].length, trace.events[2].result), (4096, 100));
    let to: Vec<_> = (0..trace.events.len()).filter_map(|row| trace.copy_target(row)).collect();
    let targets: Vec<_> = to.iter().map(|to| (to.file.index(), to.offset, to.argument)).collect();
    assert_eq!(targets, [(Some(1), 0, 3), (Some(1), 100, 2), (None, -1, 3), (Some(1), 5, 1)]);
}

#[test]
fn what_is_no_trace_is_refused_by_line_and_a_cut_one_says_what_it_lacks() {
    let error = import::strace("\nhello\n").unwrap_err();
    assert_eq!(error.to_string(), "line 2 is not what the format says: `hello`");
    let relative = "7     0.000000 close(3) = 0 <0.000001>";
    assert_eq!(import::strace(relative).unwrap_err().line, 1, "times from call to call");
    let timeless = import::strace("7 1700000000.000001 close(3) = 0").unwrap();
    assert!(timeless.header.inferred.iter().any(|fact| fact == import::NO_DURATIONS));
    assert!(!import::strace(FORK_AND_THREAD).unwrap().header.inferred[0].contains("no time"));
    for end in (0..FORK_AND_THREAD.len()).filter(|&end| FORK_AND_THREAD.is_char_boundary(end)) {
        // A cut trace is a shorter one, whatever the last line looks like.
        let _ = import::strace(&FORK_AND_THREAD[..end]);
    }
    let cut = FORK_AND_THREAD.find("<... wait4").unwrap();
    let trace = import::strace(&FORK_AND_THREAD[..cut]).unwrap();
    assert_eq!(trace.header.losses.lost_calls["calls without an end"], 1);
}

#[test]
fn positions_no_file_can_have_are_followed_without_an_overflow() {
    let text = "100 1700000000.5 openat(AT_FDCWD, \"f\", O_RDWR) = 3 <0.1>\n\
                100 1700000000.9 lseek(3, 9223372036854775807, SEEK_SET) = 9223372036854775807 <0.1>\n\
                100 1700000001.0 write(3, \"abc\", 3) = 3 <0.1>\n\
                100 1700000001.2 write(3, \"abc\", 3) = 3 <0.1>\n";
    let trace = import::strace(text).unwrap();
    let offsets: Vec<i64> = calls(&trace, "f").iter().map(|(_, event)| event.offset).collect();
    assert_eq!(offsets[2..], [i64::MAX, i64::MAX]);
}

#[test]
fn a_result_that_is_no_error_number_is_a_failure_all_the_same() {
    let failed = |result| Event { result, ..Event::of(iolab_trace::Function::WRITE) }.errno();
    assert_eq!(
        [failed(-9), failed(-4095), failed(i64::MIN), failed(0)],
        [Some(9), Some(4095), Some(4095), None]
    );
}

#[test]
fn times_that_no_clock_shows_make_a_line_unreadable_and_no_trace_that_cannot_be_kept() {
    let text = "100 1700000000.5 close(3) = 0 <0.1>\n\
                100 16000000001.5 close(3) = 0 <0.1>\n\
                100 1700000001.5 close(3) = 0 <16000000001.5>\n\
                100 1700000002.5 close(3) = 0 <0.1>\n";
    let trace = import::strace(text).unwrap();
    assert_eq!(trace.header.losses.lost_calls["unreadable lines"], 2);
    assert!(trace.events.iter().all(|event| event.end.0 < 3_000_000_000));
}

/// The rows of these calls, a second apart, each taking a tenth; 1700000000 is the first second.
fn rows(calls: &[&str]) -> (Trace, Vec<Event>) {
    let line = |(second, call)| format!("100 {}.0 {call} <0.1>\n", 1_700_000_000 + second);
    let text: String = calls.iter().enumerate().map(line).collect();
    let trace = import::strace(&text).unwrap();
    let events = trace.events.clone();
    (trace, events)
}

fn path(trace: &Trace, id: i64) -> &str {
    &trace.header.files[id as usize].path
}

#[test]
fn a_call_lies_where_its_clock_says() {
    let open = "openat(AT_FDCWD, \"f\", O_RDWR) = 3";
    let (trace, rows) = rows(&[open, "close(3) = 0"]);
    let times: Vec<_> = rows.iter().map(|row| (row.start.0, row.end.0)).collect();
    assert_eq!(times, [(0, 100_000_000), (1_000_000_000, 1_100_000_000)]);
    assert_eq!(trace.header.clock.zero_unix_ns, 1_700_000_000_000_000_000);
}

#[test]
fn calls_on_descriptors_say_what_they_were_asked() {
    let open = "openat(AT_FDCWD, \"f\", O_RDWR) = 3";
    let asked = |call: &str| {
        let (_, rows) = rows(&[open, call]);
        let row = rows[1];
        assert_eq!((row.fd, row.file.0), (3, 0), "{call}");
        (row.function.name(), row.offset, row.length, row.argument)
    };
    for (call, wanted) in [
        ("lseek(3, 7, SEEK_SET) = 7", ("lseek", 7, -1, 0)),
        ("lseek(3, 7, SEEK_CUR) = 7", ("lseek", 7, -1, 1)),
        ("lseek(3, -7, SEEK_END) = 93", ("lseek", -7, -1, 2)),
        ("lseek(3, 7, SEEK_HOLE) = 7", ("lseek", 7, -1, -1)),
        ("dup2(3, 9) = 9", ("dup2", -1, -1, 9)),
        ("dup(3) = 4", ("dup", -1, -1, -1)),
        ("ftruncate(3, 50) = 0", ("ftruncate", -1, 50, -1)),
        ("fallocate(3, 1, 40, 50) = 0", ("fallocate", 40, 50, 1)),
        ("fadvise64(3, 40, 50, POSIX_FADV_WILLNEED) = 0", ("posix_fadvise", 40, 50, -1)),
        ("pread64(3, \"abc\", 8, 40) = 3", ("pread", 40, 8, -1)),
        ("read(3, \"abc\", 8) = 3", ("read", 0, 8, -1)),
        ("fsync(3) = 0", ("fsync", -1, -1, -1)),
        ("newfstatat(3, \"\", {st_size=1}, AT_EMPTY_PATH) = 0", ("fstatat", -1, -1, -1)),
    ] {
        assert_eq!(asked(call), wanted, "{call}");
    }
}

#[test]
fn appending_to_what_was_there_has_no_known_place_and_to_what_was_cut_has() {
    let offsets = |flags: &str| {
        let open = format!("openat(AT_FDCWD, \"f\", {flags}) = 3");
        let write = "write(3, \"abc\", 3) = 3";
        let (_, rows) = rows(&[&open, write, write]);
        (rows[0].argument, rows[1].offset, rows[2].offset)
    };
    assert_eq!(offsets("O_WRONLY|O_APPEND"), (0o2001, -1, -1));
    assert_eq!(offsets("O_WRONLY|O_CREAT|O_TRUNC|O_APPEND"), (0o3101, 0, 3));
    assert_eq!(offsets("O_RDWR"), (0o2, 0, 3));
}

#[test]
fn every_call_that_renames_names_both_files() {
    for (call, function) in [
        ("rename(\"a\", \"b\") = 0", Function::RENAME),
        ("renameat(AT_FDCWD, \"a\", AT_FDCWD, \"b\") = 0", Function::RENAMEAT),
        ("renameat2(AT_FDCWD, \"a\", AT_FDCWD, \"b\", 0) = 0", Function::RENAMEAT),
        (
            "renameat2(AT_FDCWD, \"a\", AT_FDCWD, \"b\", RENAME_NOREPLACE) = 0",
            Function::RENAME_NOREPLACE,
        ),
        (
            "renameat2(AT_FDCWD, \"a\", AT_FDCWD, \"b\", RENAME_EXCHANGE) = 0",
            Function::RENAME_EXCHANGE,
        ),
    ] {
        let (trace, rows) = rows(&[call]);
        assert_eq!((rows.len(), rows[0].function), (1, function), "{call}");
        let (old, new) = (i64::from(rows[0].file.0), rows[0].argument);
        assert_eq!((path(&trace, old), path(&trace, new)), ("a", "b"), "{call}");
    }
}

#[test]
fn a_path_beside_a_descriptor_counts_from_its_directory() {
    let (trace, rows) = rows(&[
        "openat(AT_FDCWD, \"/d\", O_RDONLY|O_DIRECTORY) = 5",
        "newfstatat(5, \"x\", {st_size=1}, 0) = 0",
        "unlinkat(5, \"y\", 0) = 0",
        "stat(\"z\", {st_size=1}) = 0",
        "mkdir(\"m\", 0777) = 0",
    ]);
    let paths: Vec<_> = rows.iter().map(|row| path(&trace, i64::from(row.file.0))).collect();
    assert_eq!(paths, ["/d", "/d/x", "/d/y", "z", "m"]);
}

/// Without `-o` the first process has no number while it is alone, and strace breaks into its lines.
#[test]
fn a_process_keeps_its_descriptors_when_strace_begins_to_say_its_number_and_when_it_ceases_to() {
    let alone = "1700000000.0 openat(AT_FDCWD, \"f\", O_RDWR) = 3 <0.1>\n\
                 1700000000.2 write(3, \"abc\", 3) = 3 <0.1>\n";
    let after = "[pid  70] 1700000002.0 write(3, \"ghi\", 3) = 3 <0.1>\n\
                 [pid  71] 1700000002.2 +++ exited with 0 +++\n\
                 1700000002.4 write(3, \"jkl\", 3) = 3 <0.1>\n\
                 1700000002.6 +++ exited with 0 +++\n";
    let child = "[pid  71] 1700000001.0 write(3, \"def\", 3) = 3 <0.1>\n";
    let broken = "1700000000.5 clone(child_stack=NULL, flags=SIGCHLDstrace: Process 71 attached\n\
                  , child_tidptr=0x7) = 71 <0.1>\n";
    let begun = "1700000000.5 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>\n";
    let resumed = "[pid  70] 1700000001.5 <... clone resumed>, child_tidptr=0x7) = 71 <1.0>\n";
    let attached = "strace: Process 71 attached\n";
    for text in [
        format!("{alone}{broken}{child}{after}"),
        format!("{alone}{begun}{attached}{child}{resumed}{after}"),
        format!("{alone}{begun}{resumed}{child}{after}"),
    ] {
        let trace = import::strace(&text).unwrap();
        let written = trace.events.iter().filter(|it| it.function.name() == "write");
        let places: Vec<_> = written.map(|it| (it.process, it.offset)).collect();
        assert_eq!(places, [(0, 0), (0, 6), (0, 9), (1, 3)], "{text}");
        assert!(trace.header.losses.lost_calls.is_empty(), "{:?}", trace.header.losses);
        let pids: Vec<_> =
            trace.header.processes.iter().map(|it| (it.pid, it.parent_pid)).collect();
        assert_eq!(pids, [(70, 0), (71, 70)], "{text}");
        assert_eq!(trace.header.processes[0].name, "process 70");
    }
}

#[test]
fn paths_that_are_shown_as_addresses_are_said_to_be_lost() {
    let text = "100 1700000000.0 openat(0xffffff9c, 0x7f68a0a0f0b1, 0x80000, 0) = 0x3 <0.1>\n\
                100 1700000000.5 access(0x7f68a0a102a0, 0x4) = -1 ENOENT (No such file) <0.1>\n\
                100 1700000000.7 access(0x1, R_OK) = -1 EFAULT (Bad address) <0.1>\n\
                100 1700000000.9 read(0x3, 0x7ffe, 0x340) = 0x340 <0.1>\n";
    let trace = import::strace(text).unwrap();
    let lost = &trace.header.losses.lost_calls;
    assert_eq!(lost["calls whose path strace showed as an address (-e raw)"], 2, "{lost:?}");
}

#[test]
fn signals_and_exits_are_notices_and_no_calls() {
    let text = "100 1700000000.0 openat(AT_FDCWD, \"f\", O_RDWR) = 3 <0.1>\n\
                100 1700000000.5 --- SIGCHLD {si_signo=SIGCHLD} ---\n\
                100 1700000000.6 +++ exited with 0 +++\n";
    let trace = import::strace(text).unwrap();
    assert_eq!(trace.events.len(), 1);
    assert!(trace.header.losses.lost_calls.is_empty(), "{:?}", trace.header.losses);
    let nonsense = format!("{text}100 1700000000.7 *** what ***\n");
    let lost = import::strace(&nonsense).unwrap().header.losses.lost_calls;
    assert_eq!(lost, [("unreadable lines".to_owned(), 1)].into());
}

#[test]
fn a_new_program_inherits_what_was_not_marked_to_be_closed() {
    let (trace, rows) = rows(&[
        "openat(AT_FDCWD, \"/kept\", O_RDWR) = 3",
        "openat(AT_FDCWD, \"/closed\", O_RDWR|O_CLOEXEC) = 4",
        "execve(\"/bin/next\", [\"next\", \"-v\"], 0x7ff) = 0",
        "write(3, \"abc\", 3) = 3",
        "write(4, \"abc\", 3) = -1 EBADF (Bad file descriptor)",
    ]);
    let written: Vec<_> = rows[2..].iter().map(|row| (row.function.name(), row.fd)).collect();
    assert_eq!(written, [("write", 3)]);
    let process = &trace.header.processes[0];
    assert_eq!(
        (process.name.as_str(), &process.command[..]),
        ("next", &["next".into(), "-v".into()][..])
    );
    assert_eq!(trace.header.losses.left_out_calls.values().sum::<u64>(), 1);
}

/// Function, path, offset and argument of the rows of these calls.
fn told(lines: &[&str]) -> Vec<(&'static str, String, i64, i64)> {
    let (trace, events) = rows(lines);
    let path = |event: &Event| event.file.index().map(|file| trace.header.files[file].path.clone());
    let row = |event: &Event| {
        (event.function.name(), path(event).unwrap_or_default(), event.offset, event.argument)
    };
    events.iter().map(row).collect()
}

fn written(lines: &[&str]) -> Vec<String> {
    let writes = told(lines).into_iter().filter(|row| row.0 == "write");
    writes.map(|(_, path, offset, _)| format!("{path} {offset}")).collect()
}

/// As shells do it for `echo > file`: the number of the file is standard output's again afterwards.
#[test]
fn a_number_stands_for_what_was_copied_to_it_last() {
    let lines = [
        "openat(AT_FDCWD, \"/out\", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3",
        "fcntl(1, F_DUPFD, 10) = 10",
        "fcntl(10, F_SETFD, FD_CLOEXEC) = 0",
        "dup2(3, 1) = 1",
        "close(3) = 0",
        "write(1, \"x\", 1) = 1",
        "fcntl(1, F_DUPFD_CLOEXEC, 20) = 20",
        "write(20, \"x\", 1) = 1",
        "dup2(10, 1) = 1",
        "write(1, \"no file\", 7) = 7",
        "execve(\"/bin/x\", [\"x\"], 0x7) = 0",
        "write(20, \"closed\", 6) = 6",
    ];
    assert_eq!(written(&lines), ["/out 0", "/out 1"]);
    let ranges = [
        "openat(AT_FDCWD, \"/out\", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3",
        "close_range(3, 4294967295, 0) = 0",
        "write(3, \"a pipe\", 6) = 6",
    ];
    assert_eq!(written(&ranges), [""; 0]);
}

#[test]
fn numbers_of_raw_and_verbose_traces_say_what_names_say() {
    let by_name = [
        "openat(AT_FDCWD, \"/in\", O_RDONLY|O_CLOEXEC) = 3",
        "lseek(3, 5, SEEK_CUR) = 5",
        "openat2(AT_FDCWD, \"/in\", {flags=O_RDONLY|O_CLOEXEC, resolve=0}, 24) = 4",
        "truncate(\"/in\", 7) = 0",
    ];
    let raw = [
        "openat(-100, \"/in\", 0x80000) = 3",
        "lseek(3, 5, 0x1) = 0x5",
        "openat2(-100, \"/in\", {flags=0x80000, resolve=0}, 24) = 4",
        "truncate(\"/in\", 7) = 0",
    ];
    let verbose = [
        "openat(-100 /* AT_FDCWD */, \"/in\", 0x80000 /* O_RDONLY|O_CLOEXEC */) = 3",
        "lseek(3, 5, 0x1 /* SEEK_CUR */) = 5",
        "openat2(-100 /* AT_FDCWD */, \"/in\", {flags=0x80000 /* O_RDONLY|O_CLOEXEC */, resolve=0}, 24) = 4",
        "truncate(\"/in\", 7) = 0",
    ];
    let wanted = [
        ("openat", "/in".to_owned(), -1, 0o2000000),
        ("lseek", "/in".to_owned(), 5, 1),
        ("openat", "/in".to_owned(), -1, 0o2000000),
        ("truncate", "/in".to_owned(), -1, -1),
    ];
    for lines in [by_name, raw, verbose] {
        assert_eq!(told(&lines), wanted);
    }
}
