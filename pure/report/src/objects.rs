//! What calls of HDF5 and NetCDF come to below them: by dataset or variable, and for each file the rest, which is the
//! library's own: superblock or header, groups, attributes, whatever goes out when a file is flushed or closed.
//!
//! The cause of a call is the outermost call of these it was made inside of, in its thread: what NetCDF has HDF5 do is
//! the variable's, also what it does to its dataset when the file is synced or closed. Each call on a file of theirs has one, or counts as the library's own; so the bytes of a file's datasets and of its own row are
//! all that the trace has of it. Kept is per object, and per thread the calls under way.

use iolab_trace::{Class, Event, Function, Header, Layer, ObjectEntry};
use iolab_vocab::Direction;
use serde::Serialize;
use std::collections::BTreeMap;

/// A write below this is metadata, where it is not data.
const SMALL_BYTES: u64 = 4096;

/// Who caused a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    /// A dataset or variable, by its place in the header.
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
    /// The layer it is of: `hdf5`, or `netcdf` where that is above it.
    pub layer: &'static str,
    /// Name of the dataset or variable in it; none for what the library does for the file.
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

    /// The level of its own calls.
    pub(crate) fn top(&self) -> Option<&LevelRow> {
        self.levels.iter().find(|level| level.layer == self.layer)
    }

    /// Time of its own calls.
    pub(crate) fn time_ns(&self) -> u64 {
        self.top().map_or(0, |level| level.time_ns)
    }

    /// Bytes that moved at the lowest level.
    pub(crate) fn moved_bytes(&self) -> u64 {
        let above = [Layer::Hdf5.name(), Layer::Netcdf.name()];
        let lowest = self.levels.iter().rev().find(|level| !above.contains(&level.layer));
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
    /// The calls of HDF5 and NetCDF around it, or itself.
    by: Option<By>,
}

/// On whose behalf a call is made.
#[derive(Clone, Copy, Debug)]
struct By {
    cause: Cause,
    /// The call of the program.
    outermost: Function,
    /// The innermost of them.
    innermost: Function,
}

/// A file of such calls.
#[derive(Clone, Debug)]
pub(crate) struct OfFile {
    /// The highest layer of them.
    pub(crate) layer: Layer,
    pub(crate) between: Between,
}

/// The variables of NetCDF that datasets of HDF5 are, by the place of these.
#[derive(Clone, Debug, Default)]
struct Variables(BTreeMap<usize, Option<usize>>);

impl Variables {
    /// Whose a call of HDF5 is that NetCDF makes for a whole file (a sync, a close): of the variable whose dataset it is
    /// on, as when chunks leave the cache.
    fn of(&mut self, around: Cause, event: &Event, header: &Header) -> Option<Cause> {
        let (Cause::Own(_), Some(Cause::Dataset(at))) = (around, cause(event, header)) else {
            return None;
        };
        let of_dataset = || {
            let dataset = &header.objects[at];
            let is_it = |it: &ObjectEntry| {
                it.kind == "variable" && (it.file, &it.path) == (dataset.file, &dataset.path)
            };
            header.objects.iter().position(is_it)
        };
        self.0.entry(at).or_insert_with(of_dataset).map(Cause::Dataset)
    }
}

/// Collects it while the events of a trace go by in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Objects {
    lanes: BTreeMap<(u32, u32), Vec<Under>>,
    tallies: BTreeMap<Cause, Tally>,
    /// Files that calls of HDF5 and NetCDF name.
    files: BTreeMap<usize, OfFile>,
    variables: Variables,
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
        let (around, function) = (above.and_then(|call| call.by), event.function);
        let by = match (layer.names_objects(), around) {
            (false, around) => around,
            (true, Some(around)) => {
                let cause = self.variables.of(around.cause, event, header).unwrap_or(around.cause);
                Some(By { cause, innermost: function, ..around })
            }
            (true, None) => cause(event, header).map(|cause| By {
                cause,
                outermost: function,
                innermost: function,
            }),
        };
        lane.push(Under { row, layer, by });
        if let Some(Under { layer: above, by: Some(By { cause, .. }), .. }) = above {
            let nested = self.tallies.entry(cause).or_default().nested_ns.entry(above).or_default();
            *nested = nested.saturating_add(event.duration().0);
        }
        if layer.names_objects()
            && let Some(file) = event.file.index()
        {
            let of_file = || OfFile { layer, between: Between::default() };
            let of_file = self.files.entry(file).or_insert_with(of_file);
            of_file.layer = of_file.layer.max(layer);
        }
        // A message about an error goes to the terminal.
        let is_message = layer == Layer::Posix && (0..=2).contains(&event.fd);
        let own = || event.file.index().map(Cause::Own);
        match by.map(|it| it.cause).or_else(own) {
            Some(cause) if !is_message => self.add(row, event, cause, by, around.is_none()),
            _ => {}
        }
    }

    /// A call with its cause, which nothing of HDF5 or NetCDF is around where `is_outermost`.
    fn add(&mut self, row: u64, event: &Event, cause: Cause, by: Option<By>, is_outermost: bool) {
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
        let of_call = by.map(|by| by.outermost.class());
        let is_asked = layer.names_objects() && is_outermost;
        let accesses = match (layer, class) {
            (_, Class::Read) if is_asked => &mut tally.reads,
            (_, Class::Write) if is_asked => &mut tally.writes,
            // Chunks go out when there is no more room for them, and at the latest at the end.
            (Layer::Posix, Class::Write) => &mut tally.writes,
            (Layer::Posix, Class::Read) if of_call == Some(Class::Write) => &mut tally.writes,
            (Layer::Posix, Class::Read) => &mut tally.reads,
            _ => return,
        };
        match is_asked {
            true => {
                accesses.count += 1;
                accesses.asked_bytes = accesses.asked_bytes.saturating_add(moved);
                accesses.ns = accesses.ns.saturating_add(ns);
                *accesses.by_process.entry(event.process).or_default() += ns;
                accesses.row.get_or_insert(row);
            }
            false => accesses.moved_bytes = accesses.moved_bytes.saturating_add(moved),
        }
        if (layer, class) == (Layer::Posix, Class::Write)
            && let Some(of_file) = event.file.index().and_then(|at| self.files.get_mut(&at))
        {
            let is_data = matches!(cause, Cause::Dataset(_))
                && by.is_some_and(|by| writes_data(by.innermost));
            of_file.between.add(row, event, is_data);
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

    /// Files of HDF5 and NetCDF with the library's own writes between data.
    pub(crate) fn files(&self) -> impl Iterator<Item = (usize, &OfFile)> {
        self.files.iter().map(|(file, of_file)| (*file, of_file))
    }

    fn row(&self, cause: Cause, tally: &Tally, header: &Header) -> ObjectRow {
        let path = |file: usize| header.files.get(file).map_or("?", |it| it.path.as_str());
        let mut row = ObjectRow { levels: tally.levels(), ..ObjectRow::default() };
        match cause {
            Cause::Own(file) => {
                row.file = path(file).to_owned();
                row.layer = self.files.get(&file).map_or(Layer::Hdf5, |it| it.layer).name();
            }
            Cause::Dataset(at) => {
                let object = header.objects.get(at).cloned().unwrap_or_default();
                row.file = path(object.file as usize).to_owned();
                row.layer = layer_of(&object).name();
                row.dataset = Some(object.path);
                row.element_bytes = object.element_bytes;
                row.chunk = object.chunk;
                if tally.levels.len() > 1 {
                    row.read_amplification = tally.reads.amplification();
                    row.write_amplification = tally.writes.amplification();
                }
            }
        }
        row
    }

    /// The rows of a report: by file, the dataset that took longest first, the library's own last.
    pub(crate) fn rows(&self, header: &Header) -> Vec<ObjectRow> {
        let mut rows: Vec<ObjectRow> = self
            .tallies
            .iter()
            .filter(|(cause, _)| match cause {
                Cause::Dataset(_) => true,
                Cause::Own(file) => self.files.contains_key(file),
            })
            .map(|(cause, tally)| self.row(*cause, tally, header))
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

/// Whether such a call moves data of what it is on: posted accesses of PnetCDF are carried out when waited for.
fn writes_data(function: Function) -> bool {
    function.class() == Class::Write
        || matches!(function, Function::NCMPI_WAIT | Function::NCMPI_WAIT_ALL)
}

impl Tally {
    fn levels(&self) -> Vec<LevelRow> {
        let levels = self.levels.iter().rev().map(|(&layer, level)| {
            let nested = self.nested_ns.get(&layer).copied().unwrap_or(0);
            LevelRow { layer: layer.name(), own_ns: level.time_ns.saturating_sub(nested), ..*level }
        });
        levels.collect()
    }
}

/// The layer an object is of, by its kind.
fn layer_of(object: &ObjectEntry) -> Layer {
    match object.kind.as_str() {
        "variable" | "variables" => Layer::Netcdf,
        _ => Layer::Hdf5,
    }
}

/// What a call of HDF5 or NetCDF is on: a dataset or variable, or something of its file.
fn cause(event: &Event, header: &Header) -> Option<Cause> {
    let at = usize::try_from(event.argument).ok();
    let is_dataset = |at: &usize| {
        let object = header.objects.get(*at);
        object.is_some_and(|it| matches!(it.kind.as_str(), "dataset" | "variable" | "variables"))
    };
    at.filter(is_dataset).map(Cause::Dataset).or(event.file.index().map(Cause::Own))
}
