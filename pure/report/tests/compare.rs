//! Comparisons of runs with planted differences: exactly these are named, in the order of their size, and nothing
//! where there is nothing.

use iolab_report::compare::{Comparison, Run, Sureness, compare};
use iolab_trace::{Event, FileEntry, Function, Header, Origin, ProcessEntry, Trace};
use iolab_vocab::{FileId, Nanos, Random, Seed};

const CALLS: u64 = 5_000;
const RANKS: u32 = 4;

/// What is planted: how long a call takes, whether it is made, and how late a rank is.
#[derive(Clone, Copy)]
struct Plan {
    slow: fn(u32, u64) -> u64,
    is_made: fn(u32, u64) -> bool,
    late_rank: Option<u32>,
    paths: [&'static str; 2],
    noise: Option<u64>,
}

const PLAIN: Plan = Plan {
    slow: |_, _| 1,
    is_made: |_, _| true,
    late_rank: None,
    paths: ["/run/data", "/run/log"],
    noise: None,
};

/// Four ranks; each writes to two files in turn, 10 µs a call and 10 µs between calls.
fn run(plan: Plan) -> Trace {
    let mut random = Random::new(Seed(plan.noise.unwrap_or(0)));
    // A run as a whole is up to 5 % faster or slower.
    let whole = 95 + random.below(11);
    let mut events = Vec::new();
    let mut processes = Vec::new();
    for rank in 0..RANKS {
        let mut now = if plan.late_rank == Some(rank) { 50_000_000 } else { 0 };
        for call in 0..CALLS {
            let file = (call % 2) as u32;
            if !(plan.is_made)(file, call) {
                continue;
            }
            let mut cost = 10_000 * (plan.slow)(file, call);
            if plan.noise.is_some() {
                cost = cost * whole / 100 * (90 + random.below(21)) / 100;
            }
            now += 10_000;
            events.push(Event {
                rank: rank as i32,
                process: rank,
                file: FileId(file),
                offset: (call * 64) as i64,
                length: 64,
                result: 64,
                start: Nanos(now),
                end: Nanos(now + cost),
                ..Event::of(Function::PWRITE)
            });
            now += cost;
        }
        let name = format!("rank {rank}");
        processes.push(ProcessEntry {
            name,
            rank: rank as i32,
            end_ns: now,
            ..ProcessEntry::default()
        });
    }
    let files = plan.paths.map(|path| FileEntry { path: path.to_owned(), ..FileEntry::default() });
    Trace {
        header: Header { files: files.to_vec(), processes, ..Header::default() },
        events,
        ..Trace::default()
    }
}

fn runs(traces: &[Trace]) -> Vec<Run<'_>> {
    traces.iter().map(|trace| Run { name: "run".to_owned(), trace }).collect()
}

fn compared(a: &[Trace], b: &[Trace]) -> Comparison {
    compare(&runs(a), &runs(b))
}

fn named(found: &Comparison) -> Vec<(&str, &str)> {
    found.differences.iter().map(|one| (one.kind, one.file.as_str())).collect()
}

#[test]
fn a_run_and_itself_have_no_difference() {
    let a = run(PLAIN);
    let found = compared(std::slice::from_ref(&a), std::slice::from_ref(&a));
    assert!(found.is_equal() && found.differences.is_empty(), "{}", found.text());
    assert!(found.text().contains("No difference."));
    let empty = compared(&[Trace::default()], &[Trace::default()]);
    assert!(empty.is_equal() && empty.notes.iter().any(|note| note == "A has no call"));
    assert!(compared(&[a], &[Trace::default()]).text().contains("B has no call"));
}

#[test]
fn a_run_recorded_with_calls_of_hdf5_is_the_same_as_without_them() {
    let plain = run(PLAIN);
    let mut with = plain.clone();
    with.events.clear();
    for call in &plain.events {
        let around = Event { start: Nanos(call.start.0 - 1_000), ..*call };
        let parent = with.events.len() as i64;
        with.events.push(Event { function: Function::H5D_WRITE, argument: 0, ..around });
        with.events.push(Event { parent, ..*call });
    }
    let found = compared(&[plain], &[with]);
    assert!(found.is_equal() && found.differences.is_empty(), "{}", found.text());
}

#[test]
fn planted_differences_are_named_in_the_order_of_their_size_and_nothing_else() {
    let planted = Plan {
        slow: |file, call| if file == 0 && (2_000..3_000).contains(&call) { 10 } else { 1 },
        is_made: |file, call| file == 0 || !(1_000..2_000).contains(&call),
        late_rank: Some(2),
        paths: ["/run/data", "/run/log.new"],
        ..PLAIN
    };
    let found = compared(&[run(PLAIN)], &[run(planted)]);
    // 2,000 calls 90 µs longer each; a rank 50 ms late; 2,000 calls of 10 µs less, with 10 µs before each.
    let first = &found.differences[0];
    assert_eq!(
        (first.kind, first.file.as_str(), first.difference_ns),
        ("slower", "/run/data", 180_000_000)
    );
    let stretch = first.stretch.unwrap();
    assert!(stretch.start_ns >= 39_000_000 && stretch.end_ns <= 61_000_000, "{stretch:?}");
    let second = &found.differences[1];
    assert_eq!((second.difference_ns, second.process.as_deref()), (45_000_000, Some("rank 2")));
    let third = &found.differences[2];
    assert_eq!(
        (third.kind, third.file.as_str(), third.calls.vanished),
        ("fewer-calls", "/run/log", 2_000)
    );
    assert!(third.calls_differ && third.difference_ns == -20_000_000);
    let others = &found.differences[3..];
    assert!(others.iter().all(|one| one.difference_ns == -5_000_000), "{}", found.text());
    assert_eq!(found.renamed.len(), 1);
    for process in &found.processes {
        let parts =
            process.calls_ns + process.waiting_ns + process.for_children_ns + process.outside_ns;
        assert_eq!(parts, process.b_ns as i64 - process.a_ns as i64);
    }
}

#[test]
fn small_writes_that_became_large_ones_are_merged_and_the_reverse_split() {
    let a = run(PLAIN);
    let mut b = a.clone();
    let rewritten = |trace: &mut Trace| {
        let mut rows = Vec::new();
        for rank in 0..RANKS as i32 {
            let of = |event: &&Event| event.rank == rank && event.file == FileId(0);
            let small: Vec<Event> = trace.events.iter().filter(of).copied().collect();
            for some in small.chunks(100) {
                let length = some[99].offset + 64 - some[0].offset;
                rows.push(Event { length, result: length, ..some[0] });
            }
        }
        trace.events.retain(|event| event.file != FileId(0));
        trace.events.extend(rows);
        trace.events.sort_by_key(|event| (event.rank, event.start));
    };
    rewritten(&mut b);
    let found = compared(std::slice::from_ref(&a), std::slice::from_ref(&b));
    let merged = found.differences.iter().find(|one| one.file == "/run/data").unwrap();
    assert_eq!(
        (merged.kind, merged.calls.merged_from, merged.calls.merged_to),
        ("merged", 10_000, 100)
    );
    let found = compared(&[b], &[a]);
    let split = found.differences.iter().find(|one| one.file == "/run/data").unwrap();
    assert_eq!((split.kind, split.calls.split_to), ("split", 10_000));
}

#[test]
fn noise_is_not_named_and_a_difference_beyond_it_is() {
    let noisy = |seed: u64, plan: Plan| run(Plan { noise: Some(seed), ..plan });
    let several = |from: u64, plan: Plan| -> Vec<Trace> {
        (from..from + 8).map(|seed| noisy(seed, plan)).collect()
    };
    for seed in [100, 200, 300] {
        let found = compared(&several(seed, PLAIN), &several(seed + 50, PLAIN));
        assert!(found.differences.is_empty(), "{}", found.text());
        assert!(found.text().contains("By kind of call, in the first run of each side\n"));
        assert_eq!(found.run_ratio_is_by_chance, Some(true), "{:?}", found.run_ratio_interval);
        assert!(found.text().contains("95 % interval), which chance may explain\n"));
    }
    let single = compared(&[noisy(1, PLAIN)], &[noisy(2, PLAIN)]).text();
    assert!(
        single.contains("By kind of call\n") && !single.contains("chance may explain"),
        "{single}"
    );
    let slow = Plan { slow: |file, _| 1 + u64::from(file), ..PLAIN };
    let found = compared(&several(100, PLAIN), &several(200, slow));
    assert_eq!(named(&found), [("slower", "/run/log")]);
    assert!(
        found.run_ratio_is_by_chance == Some(false) && found.slower_by() > 0.2,
        "{}",
        found.text()
    );
    let ends = found.run_ratio_interval.expect("several runs");
    assert!(ends.low > 1.0 && ends.low <= 1.0 + found.slower_by(), "{ends:?}");
    let one = &found.differences[0];
    assert_eq!(one.time, Sureness::Tested);
    assert!(one.ratio_interval.is_some_and(|ends| ends.low > 1.7 && ends.high < 2.3));
    let few = |from| several(from, PLAIN).into_iter().take(2).collect::<Vec<_>>();
    let found = compared(&few(100), &several(200, slow)[..2]);
    assert!(found.differences.iter().all(|one| one.time == Sureness::Seen), "{}", found.text());
    assert!(found.notes.iter().any(|note| note.contains("too few")), "{:?}", found.notes);
    // Two runs on each side are no test: it counts whether they overlap.
    assert_eq!(found.run_ratio_is_by_chance, Some(false), "{:?}", found.run_ratio_interval);
}

#[test]
fn text_fits_the_terminal_and_a_page_has_three_timelines() {
    let slow = Plan { slow: |_, call| 1 + call % 2, ..PLAIN };
    let (a, b) = (run(PLAIN), run(slow));
    let found = compared(std::slice::from_ref(&a), std::slice::from_ref(&b));
    assert!(found.text().lines().all(|line| line.chars().count() <= 100), "{}", found.text());
    let (a, b) = ([a], [b]);
    let page = String::from_utf8(found.page(&runs(&a)[0], &runs(&b)[0])).unwrap();
    assert_eq!(page.matches("application/x-iolab-timeline\">").count(), 3);
    assert!(page.contains("data-jump"));
}

#[test]
fn a_simulation_is_told_in_which_call_it_is_furthest_off() {
    let mut simulated = run(Plan { slow: |_, _| 3, ..PLAIN });
    simulated.header.origin = Origin::Simulated;
    let found = compared(&[run(PLAIN)], &[simulated]);
    let off =
        |note: &&String| note.contains("furthest off in pwrite: 600 ms instead of 200 ms (+200 %)");
    assert!(found.notes.iter().any(|note| off(&note)), "{:?}", found.notes);
    assert!(found.text().contains("the change is the error of the simulation"));
}

#[test]
fn what_a_damaged_trace_says_ends_no_comparison() {
    let mut broken = run(PLAIN);
    for (at, event) in broken.events.iter_mut().enumerate().step_by(7) {
        event.start = Nanos(u64::MAX - at as u64);
        event.end = Nanos(3);
        event.result = i64::MAX;
        event.offset = i64::MAX - 5;
        event.process = at as u32 % 9;
        event.file = FileId(at as u32 % 5);
    }
    let found = compared(&[run(PLAIN)], std::slice::from_ref(&broken));
    assert!(!found.differences.is_empty());
    assert!(!compared(std::slice::from_ref(&broken), &[run(PLAIN)]).text().is_empty());
    let traces = ([broken], [run(PLAIN)]);
    assert!(!found.page(&runs(&traces.1)[0], &runs(&traces.0)[0]).is_empty());
}

/// Whoever names a file moves no cursor, ends no line and turns no writing of a terminal.
#[test]
fn names_that_others_gave_write_nothing_but_themselves() {
    let named = |paths| run(Plan { paths, ..PLAIN });
    let evil = ["/run/a\u{1b}[2J", "/run/b\u{202e}\nx"];
    let slow = Plan { slow: |_, _| 3, paths: evil, ..PLAIN };
    let text = compared(&[named(evil)], &[run(slow)]).text();
    assert!(text.contains("/run/a\\u{1b}[2J") && text.contains("/run/b\\u{202e}"), "{text}");
    assert!(!text.contains(|c: char| c != '\n' && c.is_control()), "{text:?}");
    let table = iolab_report::table::Table::new("", ["name"]).row([evil[0]]).text();
    assert_eq!(table, "name\n/run/a\\u{1b}[2J\n");
}
