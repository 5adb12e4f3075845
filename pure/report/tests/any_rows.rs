//! Rows as any file may hold them, damaged or of another tool, with numbers at the ends of their
//! range: they are explained, whatever they say.

use iolab_report::{Analysis, csv, report_page, text};
use iolab_trace::function::TABLE;
use iolab_trace::{Event, FileEntry, Header, ProcessEntry, Trace};
use iolab_vocab::{FileId, Nanos, Random, Seed};

/// Small, around a power of two, or anything.
fn number(random: &mut Random) -> i64 {
    match random.below(4) {
        0 | 1 => random.below(100) as i64 - 8,
        2 => (1_i64 << random.below(63)).wrapping_add(random.below(3) as i64 - 1),
        _ => random.bits() as i64,
    }
}

fn event(random: &mut Random, rows: u64) -> Event {
    let process = random.below(3) as u32;
    let file = random.below(4) as u32;
    let time = |random: &mut Random| Nanos(number(random).max(0) as u64);
    Event {
        rank: [0, 1, -1][process as usize],
        process,
        thread: random.below(3) as u32,
        file: if file < 3 { FileId(file) } else { FileId::NONE },
        fd: number(random) as i32,
        offset: number(random),
        length: number(random),
        argument: number(random),
        start: time(random),
        end: time(random),
        result: number(random),
        parent: random.below(rows + 1) as i64 - 1,
        ..Event::of(TABLE[random.below(TABLE.len() as u64) as usize].function)
    }
}

fn trace(random: &mut Random) -> Trace {
    let rows = random.below(20);
    let file = |name: &str| FileEntry { path: format!("/data/{name}"), ..FileEntry::default() };
    let process = |rank: i32| ProcessEntry { rank, end_ns: 9, ..ProcessEntry::default() };
    let header = Header {
        files: ["a", "b", "c"].map(file).into(),
        processes: [0, 1, -1].map(process).into(),
        communicators: vec![vec![0, 1], vec![1]],
        ..Header::default()
    };
    Trace { header, events: (0..rows).map(|_| event(random, rows)).collect(), ..Trace::default() }
}

#[test]
fn any_rows_are_explained() {
    let mut random = Random::new(Seed(1));
    for _ in 0..1_000 {
        let trace = trace(&mut random);
        let mut analysis = Analysis::new(trace.header.clone());
        trace.events.iter().for_each(|event| analysis.observe(event));
        let report = analysis.finish();
        assert!(!text::write(&report, text::Style::default()).is_empty());
        let _ = csv::files(&report);
        assert!(!report_page(&report, &trace).is_empty());
    }
}
