//! What every part of a cluster did and when, kept on request as rows of a trace.
//!
//! Client processes give their commands, servers their requests from arrival to answer, devices
//! their transfers, NICs the messages they sent and received. Nothing is kept per packet, so a run
//! that is not recorded pays a test per message, and one that is some hundred bytes per message,
//! up to a limit; what is beyond it is counted.

use super::packet::Kind;
use super::{Cluster, EventQueue};
use crate::program::{Command, FileOperation, What, function_of};
use iolab_device::{Access, Seek};
use iolab_policy::collective::CollectiveKind;
use iolab_trace::{Event as Row, Function};
use iolab_vocab::{Direction, Extent, FileId, Nanos};

/// Rows kept; about 400 MB.
const ROWS_MAX: usize = 4_000_000;

/// Rows of a trace and what is missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// By process, then start. Processes are numbered as [`Cluster::record`] says.
    pub rows: Vec<Row>,
    /// Rows beyond the limit.
    pub lost_count: u64,
}

/// The recording under way.
pub(super) struct Recorder {
    recording: Recording,
    /// By process: its command, what it touches, and since when.
    commands: Vec<Option<(Command, Extent, Nanos)>>,
    /// By process: how much of a read the file had.
    results: Vec<Option<u64>>,
    /// By message: since when it is being sent and received.
    sent: Vec<Nanos>,
    received: Vec<Nanos>,
    /// By request: since when the server has it.
    requested: Vec<Nanos>,
    client_count: u32,
    server_count: u32,
}

fn set(times: &mut Vec<Nanos>, index: u32, now: Nanos) {
    let index = index as usize;
    if index >= times.len() {
        times.resize(index + 1, Nanos::ZERO);
    }
    times[index] = now;
}

impl Recorder {
    fn keep(&mut self, row: Row) {
        match self.recording.rows.len() < ROWS_MAX {
            true => self.recording.rows.push(row),
            false => self.recording.lost_count += 1,
        }
    }

    pub(super) fn command_began(
        &mut self,
        process: u32,
        command: Command,
        list: &[Extent],
        now: Nanos,
    ) {
        let first = list.iter().map(|extent| extent.offset).min().unwrap_or(0);
        let bytes = list.iter().map(|extent| extent.length).sum();
        self.commands[process as usize] = Some((command, Extent::new(first, bytes), now));
    }

    /// So much of what the process reads is in the file; of a read in the background, whose row has
    /// been written, nobody asks any more.
    pub(super) fn got(&mut self, process: u32, bytes: u64) {
        let asked = self.commands[process as usize].as_ref();
        let waits = |command: Command| {
            command.is(FileOperation::Read) || command.is(FileOperation::ReadAll)
        };
        if asked.is_some_and(|(command, ..)| waits(*command)) {
            self.results[process as usize] = Some(bytes);
        }
    }

    pub(super) fn command_ended(&mut self, process: u32, rank: u32, now: Nanos) {
        let Some((command, touched, start)) = self.commands[process as usize].take() else {
            return;
        };
        let file = command.file().map_or(FileId::NONE, FileId);
        let result = self.results[process as usize].take();
        let function = function_of(command);
        let length = length_of(command.what, touched.length);
        let is_data = function.class().moves_data();
        self.keep(Row {
            rank: rank as i32,
            process,
            file,
            offset: if is_data { touched.offset as i64 } else { -1 },
            length,
            result: result.map_or(length.max(0), |bytes| bytes as i64),
            start,
            end: now,
            ..Row::of(function)
        });
    }

    pub(super) fn transfer(
        &mut self,
        server: u32,
        access: Access,
        seek: Seek,
        start: Nanos,
        end: Nanos,
    ) {
        let function = match access.direction {
            Direction::Read => Function::DEVICE_READ,
            Direction::Write => Function::DEVICE_WRITE,
        };
        self.keep(Row {
            process: self.client_count + self.server_count + server,
            file: access.file,
            offset: access.extent.offset as i64,
            length: access.extent.length as i64,
            result: access.extent.length as i64,
            argument: match seek {
                Seek::None => 0,
                Seek::Near => 1,
                Seek::Far => 2,
            },
            start,
            end,
            ..Row::of(function)
        });
    }

    pub(super) fn requested(&mut self, request: u32, now: Nanos) {
        set(&mut self.requested, request, now);
    }

    /// A request is answered: its first piece in the server's own part of the file, its bytes.
    pub(super) fn answered(
        &mut self,
        request: u32,
        server: u32,
        of: (u32, bool),
        touched: Extent,
        now: Nanos,
    ) {
        let (file, is_write) = of;
        let function = if is_write { Function::SERVE_WRITE } else { Function::SERVE_READ };
        self.keep(Row {
            process: self.client_count + server,
            file: FileId(file),
            offset: touched.offset as i64,
            length: touched.length as i64,
            result: touched.length as i64,
            start: self.requested[request as usize],
            end: now,
            ..Row::of(function)
        });
    }

    pub(super) fn send_began(&mut self, message: u32, now: Nanos) {
        set(&mut self.sent, message, now);
    }

    pub(super) fn receive_began(&mut self, message: u32, now: Nanos) {
        set(&mut self.received, message, now);
    }

    pub(super) fn sent(&mut self, message: u32, node: u32, bytes: u64, kind: Kind, now: Nanos) {
        let start = self.sent[message as usize];
        self.message(Function::SEND, self.nic(node), bytes, kind, start, now);
    }

    pub(super) fn received(&mut self, message: u32, node: u32, bytes: u64, kind: Kind, now: Nanos) {
        let start = self.received[message as usize];
        self.message(Function::RECEIVE, self.nic(node) + 1, bytes, kind, start, now);
    }

    fn nic(&self, node: u32) -> u32 {
        self.client_count + 2 * self.server_count + 2 * node
    }

    fn message(
        &mut self,
        function: Function,
        process: u32,
        bytes: u64,
        kind: Kind,
        start: Nanos,
        end: Nanos,
    ) {
        let (length, argument) = (bytes as i64, kind.number());
        self.keep(Row {
            process,
            length,
            argument,
            result: length,
            start,
            end,
            ..Row::of(function)
        });
    }

    fn finish(mut self) -> Recording {
        self.recording.rows.sort_by_key(|row| (row.process, row.start, row.end));
        self.recording
    }
}

impl Kind {
    /// What a message carries, as the trace's `argument`: 0 request, 1 write data, 2 read data,
    /// 3 completion, 4 flush, 5 message between processes, 6 its arrangement.
    fn number(self) -> i64 {
        match self {
            Kind::Request { .. } => 0,
            Kind::WriteData { .. } => 1,
            Kind::ReadData { .. } => 2,
            Kind::WriteDone { .. } | Kind::SyncDone { .. } | Kind::Invitation { .. } => 3,
            Kind::Flush { .. } | Kind::Sync { .. } => 4,
            Kind::Point { .. } | Kind::Offered { .. } => 5,
            Kind::Offer { .. } | Kind::Reply { .. } => 6,
        }
    }
}

/// The bytes a command has in a trace.
fn length_of(what: What, touched_bytes: u64) -> i64 {
    match what {
        What::File { operation, .. } if operation.direction().is_some() => touched_bytes as i64,
        What::Alltoallv { .. } => touched_bytes as i64,
        What::Collective { kind: CollectiveKind::Barrier, .. } => -1,
        What::Send { bytes, .. }
        | What::SendReceive { bytes, .. }
        | What::Collective { bytes, .. } => bytes as i64,
        What::Compute { .. }
        | What::Idle { .. }
        | What::File { .. }
        | What::Receive { .. }
        | What::Wait(_) => -1,
    }
}

impl<Q: EventQueue<super::Event>> Cluster<Q> {
    /// From now on keeps what every part does; to be asked before the start. Rows name as their
    /// process: each client process, each server, each server's device, then for each node its
    /// NIC out and its NIC in.
    pub fn record(&mut self) {
        self.recorder = Some(Box::new(Recorder {
            recording: Recording::default(),
            commands: vec![None; self.processes.len()],
            results: vec![None; self.processes.len()],
            sent: Vec::new(),
            received: Vec::new(),
            requested: Vec::new(),
            client_count: self.processes.len() as u32,
            server_count: self.servers.len() as u32,
        }));
    }

    /// What was kept, in order; nothing if nobody asked.
    pub fn take_recording(&mut self) -> Option<Recording> {
        self.recorder.take().map(|recorder| recorder.finish())
    }

    /// The node whose NIC or inside a hop is: switches come first, then four for each node.
    pub(super) fn node_of_hop(&self, hop: u32) -> u32 {
        (hop - self.network.routes.len() as u32) / 4
    }
}
