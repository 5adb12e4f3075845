//! Calls on streams that are counted instead of recorded one by one: nothing of them is lost, however
//! the program ends and whatever comes between.

use crate::{guest, record, trace, workshop};
use iolab_trace::{Event, Function, Layer, Trace};
use std::collections::BTreeMap;
use std::path::Path;

/// Calls and bytes by function.
type Tally = BTreeMap<String, (u64, u64)>;

/// What the program says of itself.
fn said(output: &[u8]) -> Tally {
    let mut tally = Tally::new();
    for line in String::from_utf8_lossy(output).lines() {
        let words: Vec<_> = line.split(' ').collect();
        let [name, calls, bytes] = words[..] else { panic!("{line}") };
        let sum = tally.entry(name.to_owned()).or_default();
        sum.0 += calls.parse::<u64>().unwrap();
        sum.1 += bytes.parse::<u64>().unwrap();
    }
    tally
}

/// What the trace says of the calls on streams that the program counts.
fn recorded(trace: &Trace, of: &Tally) -> Tally {
    let mut tally: Tally = of.keys().map(|name| (name.clone(), (0, 0))).collect();
    for event in &trace.events {
        if let Some(sum) = tally.get_mut(event.function.name())
            && event.function.layer() == Layer::Stdio
        {
            sum.0 += event.calls();
            sum.1 += event.moved_bytes();
        }
    }
    tally
}

fn run(directory: &Path, options: &[&str], way: &str, ending: &str) -> (Tally, Trace) {
    let program = guest("streams", directory);
    let work = directory.join("work");
    let words = [program.as_os_str(), work.as_os_str(), way.as_ref(), ending.as_ref()];
    let output = record(directory, options, &words);
    (said(&output.stdout), trace(directory))
}

fn written(trace: &Trace) -> u64 {
    let stdio = |event: &&Event| event.function.layer() == Layer::Stdio && event.parent < 0;
    trace.events.iter().filter(stdio).map(Event::moved_bytes).sum()
}

#[test]
fn totals_are_exact_in_every_way_of_recording_and_however_the_program_ends() {
    for ending in ["return", "_exit", "abort", "kill", "exec"] {
        for how in ["auto", "counts", "calls"] {
            let (directory, _) = workshop();
            let (said, trace) = run(directory.path(), &["--stdio", how], "mix", ending);
            assert!(said["fputc"].0 > 50_000 && said["getline"].0 > 100, "{said:?}");
            assert_eq!(recorded(&trace, &said), said, "{how}, {ending}");
            let rows = trace.events.iter().filter(|event| event.function.layer() == Layer::Stdio);
            let rows = rows.count() as u64;
            let calls: u64 = said.values().map(|(calls, _)| calls).sum();
            match how {
                "calls" => assert!(rows > calls, "{rows} of {calls}"),
                "auto" => assert!(rows < calls / 4, "{rows} of {calls}"),
                _ => assert!(rows < calls / 10, "{rows} of {calls}"),
            }
            assert!(trace.header.losses.lost_calls.is_empty(), "{:?}", trace.header.losses);
        }
    }
}

#[test]
fn signal_handlers_that_write_come_between_and_nothing_is_lost() {
    let (directory, _) = workshop();
    let (said, trace) = run(directory.path(), &["--stdio", "counts"], "signals", "return");
    assert_eq!(recorded(&trace, &said), said);
    // How often the handler comes depends on the time the program takes, which under emulation is long: a row for
    // each of its writes, at most two for what it does on its stream, and few for what the program itself does.
    let of_handler = |event: &&Event| {
        let path = || trace.header.files[event.file.0 as usize].path.as_str();
        event.function == Function::WRITE && event.parent < 0 && path().ends_with("out-3")
    };
    let handled = trace.events.iter().filter(of_handler).count() as u64;
    assert!(handled >= 40_000, "{handled}");
    let own = said["fputc"].0 - handled;
    let rows = trace.events.len() as u64;
    assert!(rows < 3 * handled + own / 10, "{rows} rows, {own} calls, {handled} in the handler");
}

#[test]
fn a_counted_row_is_a_moment_and_a_call_that_reaches_the_system_is_a_call() {
    let (directory, work) = workshop();
    // At `return`, libc would write out what is open without a call of the program's.
    let (_, trace) = run(directory.path(), &[], "mix", "_exit");
    let (mut counted, mut outer) = (0, 0);
    for event in &trace.events {
        if event.is_counted() {
            counted += 1;
            assert!(event.start == event.end && event.parent < 0, "{event:?}");
            assert_eq!(event.errno(), None);
        }
        // All of the program's writes and reads are made by its streams.
        let of_stream = [Function::WRITE, Function::READ].contains(&event.function);
        let path = || Path::new(&trace.header.files[event.file.0 as usize].path);
        if of_stream && path().starts_with(&work) {
            let parent = &trace.events[usize::try_from(event.parent).expect("a parent")];
            assert!(!parent.is_counted() && parent.function.layer() == Layer::Stdio);
            assert_eq!(parent.file, event.file);
            outer += 1;
        }
    }
    assert!(counted > 50 && outer > 50, "{counted} {outer}");
    assert!(written(&trace) > 400_000);
}

#[test]
fn offsets_of_one_function_on_a_stream_go_on_where_the_count_ends() {
    let (directory, _) = workshop();
    let (_, trace) = run(directory.path(), &[], "mix", "return");
    let other = |event: &&Event| {
        event.function == Function::FPUTC
            && event.file.index().is_some_and(|at| trace.header.files[at].path.ends_with("other-0"))
    };
    let mut at = 0;
    for event in trace.events.iter().filter(other) {
        assert_eq!(event.offset, at, "{event:?}");
        at += event.result;
    }
    assert_eq!(at, 5000);
}

#[test]
fn no_rows_of_streams_are_made_when_none_are_wanted() {
    let (directory, _) = workshop();
    let (_, trace) = run(directory.path(), &["--stdio", "none"], "mix", "return");
    assert!(trace.events.iter().all(|event| event.function.layer() != Layer::Stdio));
    assert!(trace.events.iter().any(|event| event.function == Function::WRITE));
}
