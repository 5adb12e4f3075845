//! Recorded programs of POSIX calls on clusters: strategies decide at the simulation's clock, and servers
//! carry out what comes of it.

mod recorded_writer;

use iolab_sim::guest::{Prediction, Settings, predict};
use iolab_sim::platform::Platform;
use iolab_trace::{Event, FileEntry, Function, ProcessEntry, Trace};
use iolab_vocab::{FileId, Nanos, Random, Seed};
use recorded_writer::{CREATE, apply, call, open, process, small_writer, trace, write};

/// On the classic cluster with nothing cached.
fn on_classic(trace: &Trace, strategies: &[&str]) -> Prediction {
    let cluster = Platform::preset("classic-hdd").unwrap();
    predict(trace, &cluster, &apply(strategies), &Settings::default()).unwrap()
}

/// The same trace, later, as another process.
fn as_process(trace: &Trace, process: u32, later: u64) -> Vec<Event> {
    let moved = |time: Nanos| time.after(Nanos(later));
    let move_one = |event: &Event| Event {
        process,
        start: moved(event.start),
        end: moved(event.end),
        ..*event
    };
    trace.events.iter().map(move_one).collect()
}

#[test]
fn children_that_followed_each_other_do_so_on_a_cluster() {
    let one = small_writer(5);
    let length = one.header.processes[0].end_ns;
    let second = 500 + length + 500;
    let mut events = [as_process(&one, 1, 500), as_process(&one, 2, second)].concat();
    // Forks; what they return is the number of the child.
    for (at, result) in [(450, 2), (second - 50, 3)] {
        events.push(Event { result, ..call(Function::FORK, at, at + 10) });
    }
    let end = second + length + 500;
    let processes = vec![
        process(1, 0, 0, end),
        process(2, 1, 500, 500 + length),
        process(3, 1, second, second + length),
    ];
    let run = on_classic(&trace(processes, events), &[]);
    let [parent, first, then] = &run.trace.header.processes[..] else { panic!("three processes") };
    // Five requests of the first take at least 4 ms, and the second waits for them; of the gaps around it
    // the recorder took something less than 100 ns.
    assert!(first.end_ns > 4_000_000, "{}", first.end_ns);
    assert!(then.start_ns >= first.end_ns + 400, "{} {}", then.start_ns, first.end_ns);
    assert!(parent.end_ns >= then.end_ns + 400, "{} {}", parent.end_ns, then.end_ns);
    // Nobody looks later than by a thousandth of the wait, or a microsecond.
    assert!(then.start_ns < first.end_ns + 500 + first.end_ns / 1000 + 2_000);
}

#[test]
fn a_strategy_with_a_clock_goes_by_the_simulations() {
    // Two calls of 100 B a microsecond apart, and in between reads of a file nobody chose.
    let slow = |n: u64| {
        let (offset, start) = (n as i64 * (1 << 20), 300 + 4 * n);
        let length = 1 << 20;
        let read = call(Function::PREAD, start + 1, start + 2);
        Event { file: FileId(1), fd: 4, offset, length, result: length, ..read }
    };
    let mut events = vec![open(100, 140)];
    let other =
        Event { file: FileId(1), result: 4, argument: 0, length: 1 << 30, ..open(150, 160) };
    events.push(other);
    for n in 0..20 {
        events.push(write(100 * n as i64, 100, 300 + 4 * n, 301 + 4 * n));
        events.push(slow(n));
    }
    events.push(call(Function::CLOSE, 400, 410));
    let mut trace = trace(vec![process(1, 0, 0, 500)], events);
    trace.header.files.push(FileEntry { path: "/d/other".to_owned(), ..FileEntry::default() });
    // By the recorded clock all is over in half a microsecond. A read of 1 MiB takes 10 ms and more here.
    let performed = |age: &str| {
        let spec = format!("write-back:paths=/d/file,age={age}");
        on_classic(&trace, &[&spec]).performed_calls
    };
    assert_eq!(performed("3600"), 1);
    assert!(performed("0.005") >= 10, "{}", performed("0.005"));
}

#[test]
fn a_sync_on_a_cluster_waits_for_the_servers_devices() {
    let mut trace = small_writer(0);
    trace.events.pop();
    // All on one server of the ten, and far from each other.
    let apart = 20 * (64 << 10);
    for n in 0..20 {
        let start = 200 + 5 * n as u64;
        trace.events.push(write(apart * n, 100, start, start + 5));
    }
    trace.events.push(call(Function::FSYNC, 400, 401));
    trace.events.push(call(Function::CLOSE, 500, 510));
    trace.header.processes[0].end_ns = 600;
    let cluster = Platform::preset("classic-hdd").unwrap();
    let sync = |cache: &str| {
        let settings = Settings { cache: Some(cache.to_owned()), ..Settings::default() };
        let run = predict(&trace, &cluster, &[], &settings).unwrap();
        run.trace.events[21].duration()
    };
    // With nothing cached the write itself has waited.
    assert!(sync("write-behind") > Nanos(10_000_000), "{}", sync("write-behind"));
    assert!(sync("none") < Nanos(10_000_000), "{}", sync("none"));
}

#[test]
fn copies_of_strategies_take_their_time_on_a_cluster_too() {
    let run = on_classic(&small_writer(1000), &["write-back"]);
    assert_eq!(run.performed_calls, 1);
    let writes = run.trace.events[1..1001].iter().map(Event::duration);
    let copied = Nanos(writes.map(Nanos::get).sum());
    assert!(copied > Nanos(10_000) && copied < Nanos(1_000_000), "{copied}");
}

#[test]
fn ranks_whose_calls_end_at_one_instant_do_not_wait_for_each_other() {
    let mut events = Vec::new();
    for rank in [0, 1] {
        for at in [100, 900_000] {
            let look = call(Function::FSTAT, at, at);
            events.push(Event { process: rank as u32, rank, ..look });
        }
    }
    let ranked = |rank: i32| ProcessEntry { rank, ..process(rank as u32 + 1, 0, 0, 1_000_000) };
    let run = on_classic(&trace(vec![ranked(0), ranked(1)], events), &[]);
    assert!(run.wall >= Nanos(1_000_000));
}

#[test]
fn on_a_cluster_write_back_saves_requests_and_a_write_behind_cache_saves_waiting() {
    let cluster = Platform::preset("classic-hdd").unwrap();
    let settings = |cache: &str| Settings { cache: Some(cache.to_owned()), ..Settings::default() };
    let wall = |strategies: &[&str], cache| {
        let trace = small_writer(100);
        let run = predict(&trace, &cluster, &apply(strategies), &settings(cache)).unwrap();
        assert!(run.stored.unwrap() > Nanos::ZERO);
        let rows = &run.trace.events;
        assert!(rows.windows(2).all(|pair| pair[0].end <= pair[1].start));
        assert!(rows.iter().all(|row| row.start <= row.end));
        run.wall
    };
    let (none, behind) = (wall(&[], "none"), wall(&[], "write-behind"));
    assert!(behind <= none);
    // A request and its answer take at least four latencies of 200 us.
    assert!(behind > Nanos(100 * 800_000), "{behind}");
    assert!(wall(&["write-back"], "none") < Nanos(none.get() / 20));
    let error = predict(&small_writer(2), &cluster, &[], &settings("wishful")).unwrap_err();
    assert!(error.message.contains("wishful"));
}

#[test]
fn transfers_take_their_time_and_gaps_are_kept_on_processors_of_any_speed() {
    for name in ["classic-hdd", "nvme", "burst-buffer"] {
        let cluster = Platform::preset(name).unwrap();
        let mut trace = small_writer(50);
        for (event, number) in trace.events.iter_mut().zip(1..) {
            let later = Nanos(number * 1_000_000);
            (event.start, event.end) = (event.start.after(later), event.end.after(later));
        }
        trace.header.processes[0].end_ns += 60_000_000;
        let run = predict(&trace, &cluster, &[], &Settings::default()).unwrap();
        let writes = run.trace.events.iter().filter(|row| row.moved_bytes() > 0);
        assert!(writes.clone().count() == 50, "{name}");
        assert!(writes.clone().all(|row| row.duration() > Nanos(1000)), "{name}");
        let rows: Vec<&Event> = writes.collect();
        let gap = |pair: &[&Event]| pair[1].start.since(pair[0].end);
        assert!(rows.windows(2).all(|pair| gap(pair) > Nanos(900_000)), "{name}");
    }
}

#[test]
fn a_cluster_with_fewer_clients_than_the_trace_has_writers_says_so() {
    let mut trace = small_writer(3);
    let writers = 11;
    for process in 1..writers {
        let mine = small_writer(3).events.into_iter();
        trace.events.extend(mine.map(|event| Event { process, ..event }));
        trace
            .header
            .processes
            .push(ProcessEntry { pid: process + 1, ..trace.header.processes[0].clone() });
    }
    let cluster = Platform::preset("classic-hdd").unwrap();
    let error = predict(&trace, &cluster, &[], &Settings::default()).unwrap_err();
    assert!(error.message.contains("11") && error.message.contains("10"), "{error}");
}

#[test]
fn processes_that_followed_each_other_share_clients_where_there_are_not_enough() {
    let one = small_writer(2);
    let length = one.header.processes[0].end_ns;
    let mut events = Vec::new();
    let mut processes = Vec::new();
    let mut now = 0;
    for child in 1..=30 {
        let fork = call(Function::FORK, now + 10, now + 20);
        events.push(Event { result: i64::from(child) + 1, ..fork });
        events.extend(as_process(&one, child, now + 100));
        processes.push(process(child + 1, 1, now + 100, now + 100 + length));
        now += 200 + length;
    }
    processes.insert(0, process(1, 0, 0, now + 10));
    let run = on_classic(&trace(processes, events), &[]);
    let children = &run.trace.header.processes[1..];
    // Of ten clients; each child makes two requests of at least 800 us.
    assert!(children.windows(2).all(|pair| pair[0].end_ns <= pair[1].start_ns));
    assert!(children.iter().all(|child| child.end_ns - child.start_ns > 1_600_000));
    assert!(run.wall > Nanos(30 * 1_600_000));
}

/// A call that some program might have made: of a few descriptors, files, sizes.
fn any_call(random: &mut Random, now: u64, took: u64) -> Event {
    let fd = 3 + random.below(3) as i32;
    let file = FileId(random.below(3) as u32);
    let (offset, length) = (random.below(1 << 20) as i64, 1 + random.below(200_000) as i64);
    let call = |function| Event { fd, file, ..call(function, now, now + took) };
    let transfer = |function| Event { offset, length, result: length, ..call(function) };
    let rename = |function, second| Event { fd: -1, argument: second, ..call(function) };
    match random.below(17) {
        0 | 1 => Event { fd: -1, argument: CREATE, result: fd.into(), ..call(Function::OPEN) },
        2 => call(Function::CLOSE),
        3..6 => transfer(Function::PWRITE),
        6 | 7 => transfer(Function::WRITE),
        8 | 9 => transfer(Function::PREAD),
        10 => Event { result: 0, length: 0, ..transfer(Function::READ) },
        11 => Event { length: offset, ..call(Function::FTRUNCATE) },
        12 => call(Function::FSYNC),
        13 => rename(Function::RENAME, random.below(3) as i64),
        16 => rename(Function::RENAME_EXCHANGE, random.below(3) as i64),
        14 => Event { fd: -1, ..call(Function::UNLINK) },
        _ => Event { result: i64::from(fd) + 1, ..call(Function::DUP) },
    }
}

/// Processes with threads, some started by others, on three files.
fn any_trace(random: &mut Random) -> Trace {
    let count = 1 + random.below(5) as u32;
    let (mut processes, mut events) = (Vec::new(), Vec::new());
    for index in 0..count {
        let start = random.below(50) * 1000;
        let mut end = start;
        for thread in 0..1 + random.below(2) as u32 {
            let mut now = start;
            for _ in 0..random.below(30) {
                now += random.below(3) * random.below(200_000);
                let took = 1 + random.below(5_000);
                let call = any_call(random, now, took);
                events.push(Event { process: index, thread, ..call });
                now += took;
            }
            end = end.max(now);
        }
        let parent = random.below(u64::from(index) + 1) as u32;
        processes.push(process(index + 1, parent, start, end));
    }
    let mut trace = trace(processes, events);
    for path in ["/d/second", "/d/third"] {
        trace.header.files.push(FileEntry { path: path.to_owned(), ..FileEntry::default() });
    }
    trace
}

#[test]
fn any_program_comes_to_its_end_with_its_calls_in_order() {
    let cluster = Platform::preset("classic-hdd").unwrap();
    let choices: [&[&str]; 4] = [
        &[],
        &["write-back:buffer=64k,age=2ms"],
        &["seek-elide", "write-back:paths=*/file"],
        &["throttle:latency=1ms", "null"],
    ];
    for seed in 0..400 {
        let mut random = Random::new(Seed(seed));
        let trace = any_trace(&mut random);
        let strategies = choices[random.below(4) as usize];
        let cache = ["none", "write-behind", "aggregation"][random.below(3) as usize];
        let settings = Settings { cache: Some(cache.to_owned()), ..Settings::default() };
        let run = || predict(&trace, &cluster, &apply(strategies), &settings).unwrap();
        let first = run();
        assert_eq!(first, run(), "seed {seed}");
        for (index, event) in first.trace.events.iter().enumerate() {
            assert!(
                event.start <= event.end && event.end <= first.wall,
                "seed {seed}, row {index}"
            );
        }
        // Recorded order of calls is kept within each thread; overlapping ones are part of the first.
        let own = |index: &usize| (trace.events[*index].process, trace.events[*index].thread);
        let mut rows: Vec<usize> = (0..trace.events.len()).collect();
        rows.sort_by_key(|index| (own(index), trace.events[*index].start, *index));
        for pair in rows.windows(2).filter(|pair| own(&pair[0]) == own(&pair[1])) {
            let (one, next) = (&first.trace.events[pair[0]], &first.trace.events[pair[1]]);
            assert!(
                one.end <= next.start,
                "seed {seed}, rows {pair:?}: {} {}",
                one.end,
                next.start
            );
        }
    }
}
