//! What calls of HDF5 come to below them: by dataset, and for each file the rest, which is the library's
//! own: superblock, groups, attributes, whatever goes out when a file is flushed or closed.
//!
//! The cause of a call is the call of HDF5 it was made inside of, in its thread. Each call on a file of
//! HDF5 has one, or counts as the library's own; so the bytes of a file's datasets and of its own row are
//! all that the trace has of it. Kept is per object, and per thread the calls under way.

use iolab_trace::{Class, Event, Function, Header, Layer};
use iolab_vocab::Direction;
use serde::Serialize;
use std::collections::BTreeMap;

/// A write below this is metadata, where it is not data.
const SMALL_BYTES: u64 = 4096;

/// Who caused a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    /// A dataset, by its place in the header.
    Dataset(usize),
    /// The library, for a file.
    Own(usize),
}

/// Calls of one layer that have one cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[allow(missing_docs, reason = "each is what its name says")]
pub struct LevelRow {
    pub layer: &'static str,
    pub call_count: u64,
    pub read_count: u64,
    pub read_bytes: u64,
    pub write_count: u64,
    pub written_bytes: u64,
    pub time_ns: u64,
    /// Of this time what no call inside took.
    pub own_ns: u64,
}

/// What a dataset, or the library for a file, asked for and what it came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ObjectRow {
    /// Path of the file.
    pub file: String,
    /// Name of the dataset in it; none for what the library does for the file.
    pub dataset: Option<String>,
    /// Bytes of an element in the file.
    pub element_bytes: u64,
    /// Elements of a chunk by dimension.
    pub chunk: Vec<u64>,
    /// The layers, the highest first.
    pub levels: Vec<LevelRow>,
    /// Bytes read below for each that was asked for by reading.
    pub read_amplification: Option<f64>,
    /// Bytes written below, and read to be able to, for each that was asked for by writing.
    pub write_amplification: Option<f64>,
    /// Share of all bytes that moved on the file below, 0 to 1.
    pub share_of_file: f64,
}

impl ObjectRow {
    /// The level of a layer.
    pub fn level(&self, layer: Layer) -> Option<&LevelRow> {
        self.levels.iter().find(|level| level.layer == layer.name())
    }

    /// Time of its calls of HDF5.
    pub(crate) fn time_ns(&self) -> u64 {
        self.level(Layer::Hdf5).map_or(0, |level| level.time_ns)
    }

    /// Bytes that moved at the lowest level.
    pub(crate) fn moved_bytes(&self) -> u64 {
        let lowest = self.levels.iter().rev().find(|level| level.layer != Layer::Hdf5.name());
        lowest.map_or(0, |level| level.read_bytes.saturating_add(level.written_bytes))
    }
}

/// Accesses of a dataset in one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accesses {
    pub(crate) count: u64,
    pub(crate) asked_bytes: u64,
    /// Below.
    pub(crate) moved_bytes: u64,
    pub(crate) ns: u64,
    pub(crate) by_process: BTreeMap<u32, u64>,
    /// A row of the trace that shows it.
    pub(crate) row: Option<u64>,
}

impl Accesses {
    pub(crate) fn amplification(&self) -> Option<f64> {
        (self.asked_bytes > 0).then(|| self.moved_bytes as f64 / self.asked_bytes as f64)
    }
}

/// Small writes of the library's own between writes of data, in one file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Between {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    pub(crate) data_writes: u64,
    pub(crate) by_process: BTreeMap<u32, u64>,
    pub(crate) row: Option<u64>,
    /// By process: since its last write of data.
    since: BTreeMap<u32, (u64, u64, u64)>,
}

#[derive(Clone, Debug, Default)]
struct Tally {
    levels: BTreeMap<Layer, LevelRow>,
    nested_ns: BTreeMap<Layer, u64>,
    reads: Accesses,
    writes: Accesses,
}

/// A call under way.
#[derive(Clone, Copy, Debug)]
struct Under {
    row: u64,
    layer: Layer,
    /// The call of HDF5 around it, or itself.
    by: Option<(Cause, Function)>,
}

/// Collects it while the events of a trace go by in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Objects {
    lanes: BTreeMap<(u32, u32), Vec<Under>>,
    tallies: BTreeMap<Cause, Tally>,
    /// Files that calls of HDF5 name.
    is_hdf5: BTreeMap<usize, Between>,
}

impl Objects {
    /// Takes in a call.
    pub(crate) fn observe(&mut self, row: u64, event: &Event, header: &Header) {
        if header.objects.is_empty() {
            return;
        }
        let layer = event.function.layer();
        let lane = self.lanes.entry((event.process, event.thread)).or_default();
        while lane.pop_if(|call| i64::try_from(call.row) != Ok(event.parent)).is_some() {}
        let above = lane.last().copied();
        let by = match layer {
            Layer::Hdf5 => cause(event, header).map(|cause| (cause, event.function)),
            _ => above.and_then(|call| call.by),
        };
        lane.push(Under { row, layer, by });
        if let Some((Under { layer: above, by: Some((cause, _)), .. }, _)) = above.zip(by) {
            let nested = self.tallies.entry(cause).or_default().nested_ns.entry(above).or_default();
            *nested = nested.saturating_add(event.duration().0);
        }
        if layer == Layer::Hdf5
            && let Some(file) = event.file.index()
        {
            self.is_hdf5.entry(file).or_default();
        }
        // A message about an error goes to the terminal.
        let is_message = layer == Layer::Posix && (0..=2).contains(&event.fd);
        let own = || event.file.index().map(Cause::Own);
        match by.map(|it| it.0).or_else(own) {
            Some(cause) if !is_message => self.add(row, event, cause, by.map(|it| it.1)),
            _ => {}
        }
    }

    fn add(&mut self, row: u64, event: &Event, cause: Cause, by: Option<Function>) {
        let layer = event.function.layer();
        let (class, moved, ns) = (event.function.class(), event.moved_bytes(), event.duration().0);
        let tally = self.tallies.entry(cause).or_default();
        let level = tally.levels.entry(layer).or_default();
        level.call_count = level.call_count.saturating_add(event.calls());
        level.time_ns = level.time_ns.saturating_add(ns);
        match class {
            Class::Read => {
                level.read_count += event.calls();
                level.read_bytes = level.read_bytes.saturating_add(moved);
            }
            Class::Write => {
                level.write_count += event.calls();
                level.written_bytes = level.written_bytes.saturating_add(moved);
            }
            _ => {}
        }
        let of_call = by.map(Function::class);
        let accesses = match (layer, class) {
            (Layer::Hdf5, Class::Read) => &mut tally.reads,
            (Layer::Hdf5, Class::Write) => &mut tally.writes,
            // Chunks go out when there is no more room for them, and at the latest at the end.
            (Layer::Posix, Class::Write) => &mut tally.writes,
            (Layer::Posix, Class::Read) if of_call == Some(Class::Write) => &mut tally.writes,
            (Layer::Posix, Class::Read) => &mut tally.reads,
            _ => return,
        };
        match layer {
            Layer::Hdf5 => {
                accesses.count += 1;
                accesses.asked_bytes = accesses.asked_bytes.saturating_add(moved);
                accesses.ns = accesses.ns.saturating_add(ns);
                *accesses.by_process.entry(event.process).or_default() += ns;
                accesses.row.get_or_insert(row);
            }
            _ => accesses.moved_bytes = accesses.moved_bytes.saturating_add(moved),
        }
        if (layer, class) == (Layer::Posix, Class::Write)
            && let Some(between) = event.file.index().and_then(|at| self.is_hdf5.get_mut(&at))
        {
            let is_data = matches!(cause, Cause::Dataset(_)) && of_call == Some(Class::Write);
            between.add(row, event, is_data);
        }
    }

    /// Datasets with what their accesses came to.
    pub(crate) fn datasets(&self) -> impl Iterator<Item = (usize, [(Direction, &Accesses); 2])> {
        self.tallies.iter().filter_map(|(cause, tally)| match cause {
            Cause::Dataset(at) => {
                let both = [(Direction::Read, &tally.reads), (Direction::Write, &tally.writes)];
                Some((*at, both))
            }
            Cause::Own(_) => None,
        })
    }

    /// Files of HDF5 with the library's own writes between data.
    pub(crate) fn files(&self) -> impl Iterator<Item = (usize, &Between)> {
        self.is_hdf5.iter().map(|(file, between)| (*file, between))
    }

    /// The rows of a report: by file, the dataset that took longest first, the library's own last.
    pub(crate) fn rows(&self, header: &Header) -> Vec<ObjectRow> {
        let mut rows: Vec<ObjectRow> = self
            .tallies
            .iter()
            .filter(|(cause, _)| match cause {
                Cause::Dataset(_) => true,
                Cause::Own(file) => self.is_hdf5.contains_key(file),
            })
            .map(|(cause, tally)| tally.row(*cause, header))
            .collect();
        let mut of_file: BTreeMap<String, u64> = BTreeMap::new();
        for row in &rows {
            *of_file.entry(row.file.clone()).or_default() += row.moved_bytes();
        }
        for row in &mut rows {
            let all = of_file.get(&row.file).copied().unwrap_or(0);
            row.share_of_file = row.moved_bytes() as f64 / all.max(1) as f64;
        }
        rows.sort_by(|a, b| {
            let order = |row: &ObjectRow| {
                (row.file.clone(), row.dataset.is_none(), std::cmp::Reverse(row.time_ns()))
            };
            (order(a), &a.dataset).cmp(&(order(b), &b.dataset))
        });
        rows
    }
}

impl Between {
    fn add(&mut self, row: u64, event: &Event, is_data: bool) {
        let since = self.since.get_mut(&event.process);
        match (is_data, since) {
            (true, since) => {
                let (count, bytes, ns) = since.map_or((0, 0, 0), |it| *it);
                self.count += count;
                self.bytes += bytes;
                self.data_writes += 1;
                *self.by_process.entry(event.process).or_default() += ns;
                self.since.insert(event.process, (0, 0, 0));
            }
            (false, Some(since)) if event.moved_bytes() < SMALL_BYTES => {
                self.row.get_or_insert(row);
                since.0 += 1;
                since.1 += event.moved_bytes();
                since.2 += event.duration().0;
            }
            _ => {}
        }
    }
}

impl Tally {
    fn row(&self, cause: Cause, header: &Header) -> ObjectRow {
        let levels = self.levels.iter().rev().map(|(&layer, level)| {
            let nested = self.nested_ns.get(&layer).copied().unwrap_or(0);
            LevelRow { layer: layer.name(), own_ns: level.time_ns.saturating_sub(nested), ..*level }
        });
        let path = |file: usize| header.files.get(file).map_or("?", |it| it.path.as_str());
        let mut row = ObjectRow { levels: levels.collect(), ..ObjectRow::default() };
        match cause {
            Cause::Own(file) => row.file = path(file).to_owned(),
            Cause::Dataset(at) => {
                let object = header.objects.get(at).cloned().unwrap_or_default();
                row.file = path(object.file as usize).to_owned();
                row.dataset = Some(object.path);
                row.element_bytes = object.element_bytes;
                row.chunk = object.chunk;
                if self.levels.len() > 1 {
                    row.read_amplification = self.reads.amplification();
                    row.write_amplification = self.writes.amplification();
                }
            }
        }
        row
    }
}

/// What a call of HDF5 is on: a dataset, or something of its file.
fn cause(event: &Event, header: &Header) -> Option<Cause> {
    let at = usize::try_from(event.argument).ok();
    let is_dataset =
        |at: &usize| header.objects.get(*at).is_some_and(|object| object.kind == "dataset");
    at.filter(is_dataset).map(Cause::Dataset).or(event.file.index().map(Cause::Own))
}
