//! Traces of other tools as ours.

use iolab_trace::{Event, Origin, Trace, import};

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
