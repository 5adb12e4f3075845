//! A small trace with one of everything the exchange form has a rule for.

use iolab_trace::{
    Causes, Event, FileEntry, Function, Header, Links, Origin, PhaseEntry, ProcessEntry, Trace,
};
use iolab_vocab::{FileId, Nanos};

/// The trace behind `tools/viewer/test/golden`.
pub(crate) fn small() -> Trace {
    let at = |start: u64, end: u64, event: Event| Event {
        rank: 0,
        start: Nanos(start),
        end: Nanos(end),
        ..event
    };
    let data = FileId(0);
    let log = FileId(1);
    let write = Event { file: data, fd: 3, length: 64, result: 64, ..Event::of(Function::WRITE) };
    let read = Event { file: data, fd: 3, length: 4096, result: 100, ..Event::of(Function::PREAD) };
    let seek = Event { file: data, fd: 3, argument: 0, ..Event::of(Function::LSEEK) };
    let print = Event { file: log, fd: 4, length: 12, result: 12, ..Event::of(Function::FPRINTF) };
    let open =
        Event { file: data, length: 0, argument: 0o1102, result: 3, ..Event::of(Function::OPEN) };
    let events = vec![
        at(1_000, 21_000, open),
        at(21_100, 21_500, Event { offset: 0, ..write }),
        at(21_600, 22_000, Event { offset: 64, ..write }),
        at(22_100, 22_150, Event { offset: 0, result: 0, ..seek }),
        at(22_200, 22_900, Event { offset: 0, ..read }),
        at(30_000, 36_000, print),
        at(
            31_000,
            35_000,
            Event {
                file: log,
                fd: 4,
                length: 4096,
                result: -28,
                offset: 0,
                parent: 5,
                ..Event::of(Function::WRITE)
            },
        ),
        // A time and an offset far out, to cross 32 bits.
        at(5_000_000_000, 5_000_000_000, Event { offset: 1 << 40, ..write }),
        at(5_000_000_100, 5_700_000_000, Event { file: data, fd: 3, ..Event::of(Function::FSYNC) }),
        // Another process; it overlaps itself, as asynchronous calls do.
        Event { process: 1, rank: 1, ..at(2_000, 9_000, write) },
        Event { process: 1, rank: 1, ..at(4_000, 12_000, write) },
        Event { process: 1, rank: 1, thread: 2, ..at(4_000, 4_400, Event::of(Function::SYNC)) },
    ];
    // Some that point forwards, one with several causes, one with the same for both ends.
    let links = |pairs: &[(u32, u32)]| Links::from_pairs(pairs.to_vec());
    let causes = Causes {
        begun_by: links(&[(2, 1), (4, 0), (4, 3), (9, 0), (11, 10)]),
        ended_by: links(&[(1, 9), (4, 3), (8, 7), (10, 9)]),
    };
    Trace { header: header(), events, causes }
}

fn header() -> Header {
    let process = |rank: i32| ProcessEntry {
        name: "solver".to_owned(),
        pid: 100 + rank as u32,
        rank,
        command: vec!["./solver".to_owned(), "</script>".to_owned()],
        host: "node".to_owned(),
        start_ns: 500,
        end_ns: 5_800_000_000,
        ending: "exited".to_owned(),
        ..ProcessEntry::default()
    };
    let file = |path: &str| FileEntry { path: path.to_owned(), ..FileEntry::default() };
    Header {
        origin: Origin::Recorded,
        files: vec![file("/data/ü & <b>.bin"), file("/data/log.txt")],
        processes: vec![process(0), process(1)],
        phases: vec![PhaseEntry {
            name: "write".to_owned(),
            application: "solver".to_owned(),
            start_ns: 21_000,
            end_ns: 36_000,
        }],
        ..Header::default()
    }
}
