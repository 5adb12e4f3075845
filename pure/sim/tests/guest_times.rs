//! Recorded programs in virtual time, with times one can add up by hand.

mod recorded_writer;

use iolab_sim::guest::{Durations, Prediction, Settings, predict};
use iolab_sim::platform::Platform;
use iolab_trace::{Event, FileEntry, Function, Origin, Trace};
use iolab_vocab::{FileId, Nanos, Seed};
use recorded_writer::{apply, call, process, small_writer, trace, write};

/// A machine with two cores and round costs: a write 1000 ns whatever its size, a fresh page 100,
/// a copy 7, a hook 2, a step 1, everything else 10.
const PLATFORM: &str = "
    name = 'round'
    [local]
    file_system = 'round'
    cores = 2
    [local.write]
    overwrite = [[0, 1000.0]]
    extend_ns = 0.0
    fresh_page = [[0, 100.0]]
    folio = [[0, 0.0]]
    [local.read]
    cached = [[0, 500.0]]
    [local.call]
    least_ns = 10.0
    seek_ns = 10.0
    open_create_ns = 10.0
    open_existing_ns = 10.0
    open_missing_ns = 10.0
    close_ns = 10.0
    stat_ns = 10.0
    truncate_ns = 10.0
    release_mib_ns = 0.0
    rename_ns = 10.0
    unlink_ns = 10.0
    directory_ns = 10.0
    [local.sync]
    clean_ns = 10.0
    overwrite_ns = 50000.0
    extend = [[0, 90000.0]]
    [local.intercept]
    hook_ns = 2.0
    step_ns = 1.0
    absorb_ns = 3.0
    open_ns = 2.0
    open_passed_ns = 2.0
    staging_page_ns = 0.0
    copy = [[0, 7.0]]
    load_ns = 0.0
    launch_ns = 0.0
    record_ns = 0.0
    process_ns = 0.0";

fn platform() -> Platform {
    Platform::parse(PLATFORM).unwrap()
}

fn simulate(trace: &Trace, strategies: &[&str], settings: &Settings) -> Prediction {
    predict(trace, &platform(), &apply(strategies), settings).unwrap()
}

fn model() -> Settings {
    Settings { durations: Durations::Model, ..Settings::default() }
}

#[test]
fn a_plain_run_at_recorded_durations_is_the_recorded_run() {
    let trace = small_writer(30);
    let run = simulate(&trace, &[], &Settings::default());
    assert_eq!(run.trace.events, trace.events);
    assert_eq!(run.wall, Nanos(trace.header.processes[0].end_ns));
    assert_eq!(run.trace.header.origin, Origin::Simulated);
    let clock = &run.trace.header.clock;
    assert_eq!((clock.source.as_str(), clock.resolution_ns), ("virtual", 1));
}

#[test]
fn a_plain_run_by_the_model_takes_gaps_and_costs() {
    let run = simulate(&small_writer(30), &[], &model());
    // Gaps: 100 before, 30 × 50 and 50 between, 30 after. Calls: open 10, writes, one page, close.
    assert_eq!(run.wall, Nanos(100 + 31 * 50 + 30 + 10 + 30 * 1000 + 100 + 10));
    assert_eq!(run.io, Nanos(10 + 30 * 1000 + 100 + 10));
}

#[test]
fn the_recorders_own_cost_is_taken_out_of_the_gaps() {
    let mut trace = small_writer(30);
    trace.header.overhead_ns = 20;
    let run = simulate(&trace, &[], &model());
    // 32 calls were recorded, 20 ns of each in the gap behind it.
    assert_eq!(run.wall, Nanos(100 + 31 * 30 + 10 + 10 + 30 * 1000 + 100 + 10));
}

/// A call that was only counted cost a hook where it was made.
#[test]
fn calls_that_were_counted_cost_less_than_those_that_were_recorded() {
    let wall = |counted: i64| {
        let mut trace = small_writer(30);
        trace.header.overhead_ns = 20;
        trace.header.origin = Origin::Recorded;
        let puts = Event {
            length: counted,
            result: counted,
            argument: counted,
            ..call(Function::FPUTC, 160, 160)
        };
        trace.events.insert(1, puts);
        simulate(&trace, &[], &model()).wall
    };
    let (few, many) = (wall(1), wall(8));
    assert_eq!(few.since(many), Nanos(7 * 2), "seven hooks more are taken out of the gap");
}

#[test]
fn write_back_turns_small_writes_into_copies_and_one_write() {
    let run = simulate(&small_writer(30), &["write-back"], &model());
    let writes = &run.trace.events[1..31];
    // Taking it in 3, copy 7.
    assert!(writes.iter().all(|write| write.duration() == Nanos(10)), "{writes:?}");
    assert_eq!((run.staged_calls, run.performed_calls), (30, 1));
    // The close waits for the write: hook, three steps, 1000 and a page, the close itself.
    assert_eq!(run.trace.events[31].duration(), Nanos(2 + 3 + 1100 + 10));
    assert!(run.trace.events.iter().all(|event| event.result >= 0));
}

#[test]
fn what_a_strategy_leaves_alone_keeps_its_recorded_duration() {
    let run = simulate(&small_writer(3), &["null"], &Settings::default());
    // Hook 2, two steps 2, and the recorded 1200.
    assert!(run.trace.events[1..4].iter().all(|write| write.duration() == Nanos(1204)));
    let other =
        simulate(&small_writer(3), &["write-back:paths=/elsewhere/*"], &Settings::default());
    assert!(other.trace.events[1..4].iter().all(|write| write.duration() == Nanos(1202)));
}

#[test]
fn a_call_costs_by_how_far_it_comes() {
    let text = PLATFORM.replace("step_ns = 1.0", "pass_ns = 40.0\n    step_ns = 300.0");
    let platform = Platform::parse(&text).unwrap();
    // Hook 2 in any case; then nothing, as far as the stack, an arrival and a return, or both of two stages.
    for (stack, more_ns) in [
        (&["null:hear=nothing"][..], 2),
        (&["null"], 42),
        (&["null", "null"], 42),
        (&["null:hear=steps"], 602),
        (&["null:hear=steps", "null", "null:hear=steps"], 1202),
        // Nobody reads the file.
        (&["read-ahead"], 2),
        // It gives the write its place at once.
        (&["seek-elide"], 42),
    ] {
        let run =
            predict(&small_writer(3), &platform, &apply(stack), &Settings::default()).unwrap();
        let durations: Vec<u64> =
            run.trace.events[1..4].iter().map(|write| write.duration().get()).collect();
        assert_eq!(durations, [1200 + more_ns; 3], "{stack:?}");
    }
}

#[test]
fn costs_not_recorded_are_scaled_by_how_slow_the_recorded_run_was() {
    let mut trace = small_writer(0);
    trace.events.pop();
    let mut now = 140;
    for n in 0..100 {
        // Twice what the model says: 2 × 1000, and 2 × 100 for each of the pages.
        let pages = u64::from(n * 64 % 4096 == 0);
        trace.events.push(write(n * 64, 64, now, now + 2000 + 200 * pages));
        now += 2000 + 200 * pages;
    }
    trace.events.push(call(Function::CLOSE, now, now + 20));
    trace.header.processes[0].end_ns = now + 20;
    let run = simulate(&trace, &["write-back"], &Settings::default());
    let close = run.trace.events.last().unwrap();
    // Hook, three steps, twice (1000 and two pages), the recorded close.
    assert_eq!(close.duration(), Nanos(2 + 3 + 2 * 1200 + 20));
}

#[test]
fn a_sync_waits_for_the_medium_and_writes_out_what_is_held() {
    let mut trace = small_writer(2);
    let close = trace.events.pop().unwrap();
    let start = close.start.0;
    trace.events.push(call(Function::FSYNC, start, start + 80_000));
    trace.events.push(call(Function::CLOSE, start + 80_050, start + 80_070));
    trace.header.processes[0].end_ns = start + 80_100;
    let run = simulate(&trace, &["write-back"], &model());
    // Hook; a step each for the call and for what came of the write and of the sync.
    assert_eq!(run.trace.events[3].duration(), Nanos(2 + 3 + 1100 + 90_000));
}

#[test]
fn names_that_change_places_lead_to_each_others_files() {
    let synced = |rename| {
        let mut trace = small_writer(2);
        let mut now = trace.events.pop().unwrap().start.0;
        trace.header.files.push(FileEntry { path: "/d/other".into(), ..FileEntry::default() });
        let renamed = Event { fd: -1, argument: 1, ..call(rename, 0, 0) };
        let opened = Event { fd: -1, result: 5, length: 0, ..call(Function::OPEN, 0, 0) };
        let synced = Event { fd: 5, ..call(Function::FSYNC, 0, 0) };
        for event in [renamed, opened, synced] {
            trace.events.push(Event { start: Nanos(now), end: Nanos(now + 80), ..event });
            now += 100;
        }
        trace.header.processes[0].end_ns = now;
        simulate(&trace, &[], &model()).trace.events.last().unwrap().duration()
    };
    // The first name leads to another file then, of which nothing was written, or to none.
    assert_eq!(synced(Function::RENAME_EXCHANGE), Nanos(10));
    assert_eq!(synced(Function::LINK), Nanos(90_000));
}

#[test]
fn a_parent_that_waited_for_its_child_ends_earlier_when_the_child_does() {
    let child = small_writer(30);
    let length = child.header.processes[0].end_ns;
    let mut events = child.events;
    for event in &mut events {
        (event.start, event.end) = (event.start.after(Nanos(500)), event.end.after(Nanos(500)));
        event.process = 1;
    }
    let processes = vec![process(1, 0, 0, 700 + length), process(2, 1, 500, 500 + length)];
    let trace = trace(processes, events);
    let plain = simulate(&trace, &[], &Settings::default());
    assert_eq!(plain.wall, Nanos(700 + length));
    let fast = simulate(&trace, &["write-back"], &Settings::default());
    let child_end = fast.trace.header.processes[1].end_ns;
    assert!(child_end < length / 2);
    assert_eq!(fast.wall, Nanos(child_end + 200));
    assert!(!fast.trace.header.inferred.is_empty());
}

#[test]
fn four_threads_on_two_cores_share_them_again_in_the_simulation() {
    // Each thread had a core half of the time: 1000 ns of a write took 2000.
    let mut events = Vec::new();
    for thread in 0..4 {
        let length = 100;
        let file = FileId(0);
        let base =
            Event { thread, file, fd: 3, length, result: length, ..Event::of(Function::PWRITE) };
        for n in 0..10 {
            let offset = i64::from(thread) * 4096 + n;
            let (start, end) = (Nanos(2000 * n as u64), Nanos(2000 * n as u64 + 2000));
            events.push(Event { offset, start, end, ..base });
        }
    }
    let trace = trace(vec![process(1, 0, 0, 20_000)], events);
    let plain = simulate(&trace, &[], &Settings::default());
    assert_eq!(plain.wall, Nanos(20_000));
    let by_model = simulate(&trace, &[], &model());
    // 40 writes of 1000 and four pages on two cores.
    assert_eq!(by_model.wall, Nanos((40 * 1000 + 400) / 2));
}

#[test]
fn a_rank_that_waited_for_the_others_io_goes_on_when_that_is_over() {
    let writer = small_writer(200);
    let length = writer.header.processes[0].end_ns;
    let mut events = writer.events;
    events.iter_mut().for_each(|event| event.rank = 0);
    // Rank 1 looks at the clock of a file before and after the long wait.
    for (start, end) in [(100, 110), (length + 1000, length + 1010)] {
        let look = Event { process: 1, rank: 1, ..call(Function::FSTAT, start, end) };
        events.push(look);
    }
    let mut processes = vec![process(1, 0, 0, length), process(2, 0, 0, length + 1100)];
    (processes[0].rank, processes[1].rank) = (0, 1);
    let trace = trace(processes, events);
    let plain = simulate(&trace, &[], &Settings::default());
    assert_eq!(plain.wall, Nanos(length + 1100));
    let fast = simulate(&trace, &["write-back:paths=/d/*"], &Settings::default());
    assert!(fast.wall < Nanos(length / 2), "{}", fast.wall);
}

#[test]
fn equal_seeds_give_equal_events_and_decisions_are_kept_when_asked_for() {
    let settings = Settings { keep_decisions: true, seed: Seed(7), ..Settings::default() };
    let runs = [(); 2].map(|()| simulate(&small_writer(50), &["write-back"], &settings));
    assert_eq!(runs[0], runs[1]);
    // Opening, 50 × (copy, answer), and what the close brings about.
    assert!(runs[0].decisions.events.len() > 100);
    let unseen = simulate(&small_writer(50), &["write-back"], &Settings::default());
    assert!(unseen.decisions.events.is_empty());
    assert_eq!(unseen.event_hash, runs[0].event_hash);
}

#[test]
fn a_call_inside_a_stream_call_is_charged_once_and_the_outer_one_follows() {
    let mut trace = small_writer(1);
    let inner = trace.events[1];
    let outer = Event {
        start: Nanos(inner.start.0 - 30),
        end: Nanos(inner.end.0 + 40),
        ..call(Function::FWRITE, 0, 0)
    };
    trace.events.insert(1, outer);
    let run = simulate(&trace, &[], &model());
    assert_eq!(run.trace.events[1].duration(), Nanos(30 + 1100 + 40));
    assert_eq!(run.trace.events[2].duration(), Nanos(1100));
}

#[test]
fn a_call_inside_another_keeps_its_place_in_it() {
    let mut trace = small_writer(1);
    let outer = trace.events[1];
    // libc looks at the file from a quarter to a half of the write.
    let (start, end) = (outer.start.0 + 300, outer.start.0 + 600);
    trace.events.insert(2, call(Function::FSTAT, start, end));
    let run = simulate(&trace, &[], &model());
    let [_, write, look, ..] = &run.trace.events[..] else { panic!("three rows") };
    assert_eq!(write.duration(), Nanos(1100));
    assert_eq!(look.start, write.start.after(Nanos(275)));
    assert_eq!(look.end, write.start.after(Nanos(550)));
}

/// A medium with a latency of 1 ms that moves a byte in 1 ns; 96 reads of 64 KiB, 50 us between.
#[test]
fn what_is_read_ahead_comes_while_the_program_does_something_else_but_does_not_come_for_nothing() {
    let cold_reads = "cached = [[0, 500.0]]\n    cold = [[0, 1e6], [16777216, 17777216.0]]";
    let platform = Platform::parse(&PLATFORM.replace("cached = [[0, 500.0]]", cold_reads)).unwrap();
    const READ: i64 = 65_536;
    let mut events = vec![Event {
        fd: -1,
        argument: 0,
        length: 96 * READ,
        result: 3,
        ..call(Function::OPEN, 100, 140)
    }];
    for number in 0..96 {
        let start = 50_140 + number * 51_000;
        let row = call(Function::PREAD, start, start + 1000);
        events.push(Event { offset: number as i64 * READ, length: READ, result: READ, ..row });
    }
    events.push(call(Function::CLOSE, 5_000_000, 5_000_100));
    let trace = trace(vec![process(1, 0, 0, 5_000_200)], events);
    let wall = |strategies: &[&str], cold| {
        let settings = Settings { cold, ..model() };
        predict(&trace, &platform, &apply(strategies), &settings).unwrap().wall.get()
    };
    let (plain, ahead) = (wall(&[], true), wall(&["read-ahead"], true));
    assert!((107_000_000..109_000_000).contains(&plain), "latency, bytes and pauses: {plain}");
    assert!(ahead < plain / 5, "{ahead} of {plain}");
    assert!(ahead > 96 * 65_536 + 3_000_000, "bytes, and three reads that nobody foresaw: {ahead}");
    let (plain, ahead) = (wall(&[], false), wall(&["read-ahead"], false));
    assert!(ahead < plain + 1000, "nothing is to be fetched: {ahead}, {plain}");
}

#[test]
fn damaged_traces_and_unsuitable_platforms_are_refused_by_name() {
    let refusal = |trace: &Trace| predict(trace, &platform(), &[], &model()).unwrap_err();
    let mut foreign = small_writer(2);
    foreign.events[1].process = 9;
    assert!(refusal(&foreign).message.contains("process 9"));
    let mut backwards = small_writer(2);
    backwards.events[2].end = Nanos(1);
    assert!(refusal(&backwards).message.contains("row 2"));
    let mut nameless = small_writer(2);
    nameless.events[0].file = FileId(5);
    assert!(refusal(&nameless).message.contains("file 5"));
    let bare = Platform::parse("name = 'bare'").unwrap();
    let error = predict(&small_writer(2), &bare, &[], &model()).unwrap_err();
    assert!(error.message.contains("bare") && error.hint.contains("calibrate"));
}

#[test]
fn a_platform_with_an_unknown_key_or_a_negative_cost_names_it() {
    let refusal = |from, to| Platform::parse(&PLATFORM.replace(from, to)).unwrap_err().message;
    assert!(refusal("seek_ns", "seek_nss").contains("seek_nss"));
    assert!(refusal("seek_ns = 10.0", "seek_ns = -3.0").contains("call.seek_ns"));
    assert!(refusal("[[0, 500.0]]", "[[-4, 500.0]]").contains("-4"));
}

/// The second thread asks 2,000 ns after the first one; both return when the sync has been made that begins
/// 5,000 ns after the first asked. A third asks later and has one of its own.
#[test]
fn threads_that_sync_a_file_within_a_time_share_a_sync() {
    let sync =
        |thread: u32, start: u64| Event { thread, ..call(Function::FSYNC, start, start + 10) };
    let mut events = small_writer(1).events[..2].to_vec();
    for thread in 1..3 {
        let start = 2000 * u64::from(thread);
        events.push(Event { thread, ..write(0, 10, start, start + 1000) });
    }
    let begin = 10_000;
    events.extend([sync(0, begin), sync(1, begin + 2000), sync(2, begin + 90_000)]);
    let trace = trace(vec![process(1, 0, 0, 200_000)], events);
    let run = simulate(&trace, &["fsync-relax:join=5us"], &model());
    let syncs = &run.trace.events[4..];
    assert!(syncs[0].end.since(syncs[1].end) <= Nanos(2), "but for a hook: {syncs:?}");
    assert!(syncs[1].end > Nanos(begin + 5000 + 50_000), "{syncs:?}");
    assert!(syncs[0].duration() > Nanos(5000 + 50_000), "{syncs:?}");
    assert!(syncs[2].duration() >= Nanos(5000), "{syncs:?}");
    // Three writes and three syncs in, three writes and two syncs out.
    assert_eq!((run.staged_calls, run.performed_calls), (6, 5));
    let alone = simulate(&trace, &["fsync-relax:syncs=drop"], &model());
    assert_eq!(alone.performed_calls, 3);
}
