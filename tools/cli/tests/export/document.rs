//! A document of trace events as Perfetto reads it, and what must hold of it.

use iolab_trace::{Causes, Event, Function};
use serde_json::Value;
use std::collections::BTreeMap;

/// An event with a duration, as a viewer reads it.
#[derive(Clone, Debug)]
pub(crate) struct Slice {
    row: usize,
    start: u64,
    end: u64,
}

/// Process and track.
pub(crate) type Track = (u64, u64);

enum Moment {
    Begins(Slice),
    /// A flow, by its number, has its start (0) or its end (1).
    Flow(u64, usize),
}

/// A document of trace events.
#[derive(Default)]
pub(crate) struct Document {
    /// What happens on which track, by time and place in the file.
    moments: BTreeMap<(u64, usize), (Track, Moment)>,
    /// By process and track, in the order of the file.
    pub(crate) tracks: BTreeMap<Track, Vec<Slice>>,
    names: BTreeMap<Track, String>,
    pub(crate) processes: BTreeMap<u64, String>,
    pub(crate) counters: BTreeMap<u64, Vec<(u64, i64, i64)>>,
}

fn nanos(time: &Value) -> u64 {
    (time.as_f64().unwrap() * 1000.0).round() as u64
}

impl Document {
    pub(crate) fn parse(bytes: &[u8]) -> Document {
        let json: Value = serde_json::from_slice(bytes).unwrap();
        let mut document = Document::default();
        for event in json["traceEvents"].as_array().unwrap() {
            document.take(event);
        }
        document
    }

    fn take(&mut self, event: &Value) {
        let pid = event["pid"].as_u64().unwrap();
        let track = (pid, event["tid"].as_u64().unwrap_or(0));
        let name = || event["args"]["name"].as_str().unwrap().to_owned();
        match (event["ph"].as_str().unwrap(), event["name"].as_str().unwrap()) {
            (phase @ ("X" | "i"), name) => {
                assert_eq!(phase == "i", name == "piece", "{event}");
                let took = if phase == "i" { 0 } else { nanos(&event["dur"]) };
                let start = nanos(&event["ts"]);
                let row = event["args"]["row"].as_u64().unwrap() as usize;
                let slice = Slice { row, start, end: start + took };
                self.moments
                    .insert((start, self.moments.len()), (track, Moment::Begins(slice.clone())));
                self.tracks.entry(track).or_default().push(slice);
            }
            (phase @ ("s" | "f"), _) => {
                assert!(phase == "s" || event["bp"] == "e", "{event}");
                let id = event["id"].as_u64().unwrap();
                let flow = Moment::Flow(id, usize::from(phase == "f"));
                let time = nanos(&event["ts"]);
                self.moments.insert((time, self.moments.len()), (track, flow));
            }
            ("C", _) => {
                let [requests, bytes] = ["requests", "bytes"].map(|it| event["args"][it].as_i64());
                let value = (nanos(&event["ts"]), requests.unwrap(), bytes.unwrap());
                self.counters.entry(pid).or_default().push(value);
            }
            ("M", "thread_name") => assert_eq!(self.names.insert(track, name()), None),
            ("M", "process_name") => assert_eq!(self.processes.insert(pid, name()), None),
            ("M", "process_sort_index" | "thread_sort_index" | "process_labels") => {}
            other => panic!("{other:?} in {event}"),
        }
    }

    /// Holds the document against its trace; tells how many flows it has.
    pub(crate) fn check(&self, events: &[Event], causes: &Causes) -> usize {
        let mut rows: Vec<usize> = self.tracks.values().flatten().map(|slice| slice.row).collect();
        rows.sort_unstable();
        assert_eq!(rows, (0..events.len()).collect::<Vec<_>>(), "each row is drawn once");
        for (track, slices) in &self.tracks {
            assert!(self.names.contains_key(track) && self.processes.contains_key(&track.0));
            self.check_track(slices, events);
        }
        self.check_flows(causes)
    }

    /// No two overlap but a call and what was made inside of it; times are exact.
    fn check_track(&self, slices: &[Slice], events: &[Event]) {
        let mut slices = slices.to_vec();
        slices.sort_by_key(|slice| (slice.start, std::cmp::Reverse(slice.end)));
        let mut open: Vec<Slice> = Vec::new();
        for slice in slices {
            let event = &events[slice.row];
            let is_piece = event.function == Function::VIEW_PIECE;
            let end = if is_piece { event.start } else { event.end };
            assert_eq!((slice.start, slice.end), (event.start.0, end.0), "{event:?}");
            open.retain(|around| around.end > slice.start);
            if let Some(around) = open.last().filter(|_| slice.start < slice.end) {
                assert!(slice.end <= around.end, "{slice:?} leaves {around:?}");
                assert_eq!(event.parent, around.row as i64, "{slice:?} is not made in {around:?}");
            }
            open.push(slice);
        }
    }

    /// Each leads from the cause to what it caused, as Perfetto reads it: an end is tied to the event that
    /// began last on its track, and a flow that ends has begun.
    fn check_flows(&self, causes: &Causes) -> usize {
        let mut latest: BTreeMap<Track, &Slice> = BTreeMap::new();
        let mut begun = BTreeMap::new();
        let mut found = Vec::new();
        for (&(time, _), (track, moment)) in &self.moments {
            match moment {
                Moment::Begins(slice) => drop(latest.insert(*track, slice)),
                Moment::Flow(id, end) => {
                    let slice = latest[track];
                    assert!(slice.start <= time && time <= slice.end, "flow {id} misses {slice:?}");
                    match end {
                        0 => {
                            assert_eq!(begun.insert(id, slice.row), None, "flow {id} begins twice")
                        }
                        _ => found.push((slice.row as u32, begun.remove(id).unwrap() as u32)),
                    }
                }
            }
        }
        assert!(begun.is_empty(), "flows without an end: {begun:?}");
        let mut wanted: Vec<(u32, u32)> =
            causes.begun_by.pairs().chain(causes.ended_by.pairs()).collect();
        found.sort_unstable();
        wanted.sort_unstable();
        let missing = wanted.iter().find(|pair| found.binary_search(pair).is_err());
        assert_eq!(missing, None, "a flow for each cause");
        assert_eq!(found.len(), wanted.len());
        found.len()
    }
}
