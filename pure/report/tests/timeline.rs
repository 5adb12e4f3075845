//! The exchange form is what the document says and what the viewer's tests read.

mod sample;

use iolab_report::page::encode;

const GOLDEN: &[u8] = include_bytes!("../../../tools/viewer/test/golden/small.iotl");

#[test]
fn the_small_trace_is_encoded_as_the_viewer_has_it_on_file() {
    assert!(
        encode("small", &sample::small()) == GOLDEN,
        "the form has changed: raise its version if readers must notice, describe it in docs/format/timeline.md, \
         and run `cargo run -p iolab-report --example golden_timeline -- tools/viewer/test/golden`"
    );
}

#[test]
fn a_loop_of_writes_with_jitter_stays_below_four_bytes_per_event() {
    use iolab_trace::{Event, Function, Trace};
    use iolab_vocab::{Nanos, Random, Seed};
    let mut random = Random::new(Seed(1));
    let mut now = 0;
    let mut offset = 0;
    let mut next = |_| {
        let start = now + 60 + random.below(100);
        now = start + 400 + random.below(300);
        offset += 64;
        let write = Event { length: 64, result: 64, offset, ..Event::of(Function::WRITE) };
        Event { start: Nanos(start), end: Nanos(now), ..write }
    };
    let events: Vec<Event> = (0..20_000).map(&mut next).collect();
    let bytes = encode("loop", &Trace { events, ..Trace::default() }).len();
    assert!(bytes < 4 * 20_000, "{bytes} bytes for 20,000 events");
}

#[test]
fn a_trace_without_events_and_one_with_damaged_rows_are_still_encoded() {
    use iolab_trace::{Event, Function, Trace};
    use iolab_vocab::{FileId, Nanos};
    assert!(encode("empty", &Trace::default()).starts_with(b"IOTL"));
    let damaged = Event {
        process: 7,
        file: FileId(99),
        offset: i64::MIN,
        length: i64::MAX,
        argument: i64::MIN,
        start: Nanos(u64::MAX),
        end: Nanos(3),
        parent: i64::MAX,
        ..Event::of(Function(u16::MAX))
    };
    let trace = Trace { events: vec![damaged; 3], ..Trace::default() };
    assert!(encode("damaged", &trace).starts_with(b"IOTL"));
}
