//! One pass over the events of a trace; what is kept is per file and thread, never per event.
//!
//! Two levels are kept apart. The system level is what reaches the kernel: POSIX calls, also those
//! made inside a stdio call; patterns and findings are about these. Times and totals are of the calls
//! that [`Once`] names: what reached the system where the trace has that, so nothing counts twice.

use crate::lane::Lane;
use crate::objects::Objects;
use crate::parts::{Ways, cluster::Cluster};
use crate::sizes::Sizes;
use crate::stream::{Level, Stream, StreamKey};
use crate::timeline::Timeline;
use crate::totals::Totals;
use iolab_trace::{Class, Event, Function, Header, Layer, Once};
use iolab_vocab::FileId;
use std::collections::BTreeMap;

/// A process while its calls go by.
#[derive(Clone, Debug)]
pub(crate) struct ProcessState {
    pub(crate) rank: i32,
    pub(crate) totals: Totals,
    pub(crate) threads: u32,
    pub(crate) first_ns: Option<u64>,
    pub(crate) last_ns: u64,
    /// It became another program, which is another process of the trace.
    pub(crate) replaced: bool,
}

impl Default for ProcessState {
    fn default() -> ProcessState {
        let totals = Totals::default();
        ProcessState { rank: -1, totals, threads: 0, first_ns: None, last_ns: 0, replaced: false }
    }
}

/// Collects what a report needs. Events come in the order of the trace file.
#[derive(Debug)]
pub struct Analysis {
    pub(crate) header: Header,
    pub(crate) rows: u64,
    /// Calls that were counted and have no times.
    pub(crate) counted: u64,
    pub(crate) layers: BTreeMap<Layer, Totals>,
    pub(crate) files: Vec<Totals>,
    pub(crate) processes: Vec<ProcessState>,
    /// By process: what the devices of a simulated cluster did.
    pub(crate) devices: BTreeMap<u32, Totals>,
    pub(crate) streams: BTreeMap<StreamKey, usize>,
    pub(crate) stream_states: Vec<Stream>,
    pub(crate) read_sizes: Sizes,
    pub(crate) write_sizes: Sizes,
    pub(crate) timeline: Timeline,
    pub(crate) once: Once,
    pub(crate) objects: Objects,
    /// Only of traces that are seen whole: causes lead anywhere.
    pub(crate) cluster: Option<Cluster>,
    lanes: BTreeMap<(u32, u32), usize>,
    lane_states: Vec<Lane>,
    last_lane: Option<((u32, u32), usize)>,
    last_stream: Option<(StreamKey, usize)>,
}

impl Analysis {
    /// Begins with the header of the trace.
    pub fn new(header: Header) -> Analysis {
        Analysis {
            rows: 0,
            counted: 0,
            layers: BTreeMap::new(),
            files: vec![Totals::default(); header.files.len()],
            processes: vec![ProcessState::default(); header.processes.len()],
            devices: BTreeMap::new(),
            streams: BTreeMap::new(),
            stream_states: Vec::new(),
            read_sizes: Sizes::default(),
            write_sizes: Sizes::default(),
            timeline: Timeline::default(),
            once: Once::default(),
            objects: Objects::default(),
            cluster: None,
            lanes: BTreeMap::new(),
            lane_states: Vec::new(),
            last_lane: None,
            last_stream: None,
            header,
        }
    }

    /// Whether a report says more of a trace that is seen whole ([`Analysis::of`]) than of one that goes by.
    pub fn needs_all(header: &Header) -> bool {
        Ways::may_have(header)
    }

    /// Takes in the next event.
    pub fn observe(&mut self, event: &Event) {
        let row = self.rows;
        self.rows += 1;
        if event.is_counted() {
            self.counted = self.counted.saturating_add(event.calls());
        }
        let layer = event.function.layer();
        if event.function.class() == Class::Piece {
            // A part of a call that is a row itself.
            return;
        }
        self.layers.entry(layer).or_default().add(row, event);
        if layer == Layer::Device {
            self.devices.entry(event.process).or_default().add(row, event);
        }
        let is_call = matches!(layer, Layer::Posix | Layer::Stdio | Layer::Mpiio | Layer::Mpi)
            || layer.names_objects();
        if !is_call {
            return;
        }
        self.objects.observe(row, event, &self.header);
        let lane = self.lane(event);
        let in_objects = || self.lane_states[lane].outer_layer.is_some_and(Layer::names_objects);
        // What HDF5 and NetCDF call is the program's I/O as if nothing were above it.
        let outermost = event.parent < 0 || layer == Layer::Mpiio && in_objects();
        if event.parent < 0 {
            self.lane_states[lane].outer_layer = Some(layer);
        }
        if self.once.counts(event) {
            self.count(row, event);
        }
        let inside_posix = !outermost && self.lane_states[lane].outer_layer == Some(Layer::Posix);
        match layer {
            Layer::Mpi | Layer::Hdf5 | Layer::Netcdf => {}
            Layer::Posix if !inside_posix => self.system(row, event, lane),
            Layer::Posix => {}
            // A flush is judged by the writes it causes, so it stands beside them.
            _ if event.function.class() == Class::Flush => {
                self.stream(Level::System, event).observe(row, event);
            }
            _ if outermost => self.stream(Level::Library, event).observe(row, event),
            _ => {}
        }
    }

    fn count(&mut self, row: u64, event: &Event) {
        let is_copy = event.function.class() == Class::Copy;
        let source = event.file.index();
        if let Some(totals) = source.and_then(|index| self.files.get_mut(index)) {
            match is_copy {
                true => totals.copied_from(row, event),
                false => totals.add(row, event),
            }
        }
        if is_copy
            && let Some(target) = event.second_file().index()
            && let Some(totals) = self.files.get_mut(target)
        {
            totals.copied_to(row, event);
        }
        let process = self.process(event);
        process.totals.add(row, event);
        process.first_ns = Some(process.first_ns.unwrap_or(u64::MAX).min(event.start.0));
        process.last_ns = process.last_ns.max(event.end.0);
        if event.function == Function::EXEC {
            process.replaced = event.result >= 0;
        }
        match event.function.class() {
            Class::Read => self.timeline.add(event.start, event.end, event.moved_bytes(), 0),
            Class::Write => self.timeline.add(event.start, event.end, 0, event.moved_bytes()),
            Class::Copy => {
                let bytes = event.moved_bytes();
                let written = if event.argument >= 0 { bytes } else { 0 };
                self.timeline.add(event.start, event.end, bytes, written);
            }
            Class::Process => {}
            _ => self.timeline.add_metadata(event.start, event.end, event.calls()),
        }
    }

    fn system(&mut self, row: u64, event: &Event, lane: usize) {
        match event.function.class() {
            Class::Read if event.result > 0 => self.read_sizes.add(event.moved_bytes()),
            Class::Write if event.result > 0 => self.write_sizes.add(event.moved_bytes()),
            _ => {}
        }
        let redundant = self.lane_states[lane].redundant_seek(row, event);
        let flags = self.lane_states[lane].flags(event.fd);
        let stream = self.stream(Level::System, event);
        stream.redundant_seeks.merge(redundant);
        stream.observe(row, event);
        if event.function.class() == Class::Write {
            stream.wrote_by(flags, row, event);
        }
    }

    fn process(&mut self, event: &Event) -> &mut ProcessState {
        let index = event.process as usize;
        if self.processes.len() <= index {
            self.processes.resize(index + 1, ProcessState::default());
        }
        let process = &mut self.processes[index];
        process.rank = process.rank.max(event.rank);
        process.threads = process.threads.max(event.thread + 1);
        process
    }

    fn lane(&mut self, event: &Event) -> usize {
        let key = (event.process, event.thread);
        if let Some((last, index)) = self.last_lane
            && last == key
        {
            return index;
        }
        let fresh = self.lane_states.len();
        let index = *self.lanes.entry(key).or_insert(fresh);
        if index == fresh {
            self.lane_states.push(Lane::default());
        }
        self.last_lane = Some((key, index));
        index
    }

    fn stream(&mut self, level: Level, event: &Event) -> &mut Stream {
        let FileId(file) = event.file;
        let key = StreamKey { file, level, process: event.process, thread: event.thread };
        let index = match self.last_stream {
            Some((last, index)) if last == key => index,
            _ => self.find_stream(key),
        };
        self.last_stream = Some((key, index));
        &mut self.stream_states[index]
    }

    fn find_stream(&mut self, key: StreamKey) -> usize {
        let fresh = self.stream_states.len();
        let index = *self.streams.entry(key).or_insert(fresh);
        if index == fresh {
            self.stream_states.push(Stream::default());
        }
        index
    }
}
