//! Small traces for the tests of the codec.

use iolab_trace::{Event, FileEntry, Function, Header, ProcessEntry, Trace};
use iolab_vocab::{FileId, Nanos, Random, Seed};

/// A header with two files and two processes.
pub(crate) fn header() -> Header {
    let file = |path: &str| FileEntry { path: path.to_owned(), file_system: "ext4".to_owned() };
    let process = |name: &str| ProcessEntry { name: name.to_owned(), ..Default::default() };
    Header {
        format_version: iolab_trace::FORMAT_VERSION,
        command: vec!["./solver".to_owned(), "--steps=3".to_owned()],
        files: vec![file("/data/a"), file("/data/ü b")],
        processes: vec![process("rank 0"), process("rank 1")],
        ..Default::default()
    }
}

/// `count` events of two processes with random times, sorted as the writer sorts them.
pub(crate) fn trace(count: usize, seed: u64) -> Trace {
    let mut random = Random::new(Seed(seed));
    let functions = [Function::WRITE, Function::PREAD, Function::LSEEK, Function::FWRITE];
    let mut now = 0;
    let mut events: Vec<Event> = (0..count)
        .map(|index| {
            now += random.below(5_000);
            Event {
                rank: (index * 2 / count) as i32,
                process: (index * 2 / count) as u32,
                file: [FileId(0), FileId(1), FileId::NONE][random.below(3) as usize],
                fd: random.below(9) as i32 - 1,
                offset: random.below(1 << 40) as i64 - 1,
                length: random.below(1 << 20) as i64,
                argument: -1,
                start: Nanos(now),
                end: Nanos(now + random.below(3_000)),
                result: random.below(1 << 20) as i64 - 40,
                ..Event::of(functions[random.below(4) as usize])
            }
        })
        .collect();
    for index in (1..count).filter(|index| index % 7 == 0) {
        events[index].parent = index as i64 - 1;
    }
    Trace { header: header(), events, ..Trace::default() }
}

/// The file a trace becomes.
pub(crate) fn bytes(trace: &Trace) -> Vec<u8> {
    let mut file = Vec::new();
    iolab_iot::write(trace, &mut file).unwrap();
    file
}
