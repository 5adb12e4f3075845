//! What every part of a cluster did and when, kept on request as rows of a trace.
//!
//! Client processes give their commands, servers their requests from arrival to answer, devices
//! their transfers, NICs the messages they sent and received. Nothing is kept per packet, so a run
//! that is not recorded pays a test per message, and one that is some hundred bytes per message,
//! up to a limit; what is beyond it is counted.

use super::group::Group;
use super::packet::Kind;
use super::{Cluster, EventQueue};
use crate::program::{ANY_SOURCE, ANY_TAG, Command, FileOperation, What, function_of};
use iolab_device::{Access, Seek};
use iolab_policy::collective::CollectiveKind;
use iolab_trace::{CallView, Event as Row, Function, Partner};
use iolab_vocab::{Direction, Extent, FileId, Nanos};
use std::collections::BTreeMap;

/// Rows kept; about 400 MB.
const ROWS_MAX: usize = 4_000_000;

/// Rows of a trace and what is missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// By process, then start; the pieces of an access follow it. Processes are numbered as
    /// [`Cluster::record`] says.
    pub rows: Vec<Row>,
    /// The communicators that rows name, as ranks of their application.
    pub communicators: Vec<Vec<u32>>,
    /// Rows beyond the limit.
    pub lost_count: u64,
}

/// A command that is not over.
struct UnderWay {
    command: Command,
    /// Its row, but for end and result.
    row: Row,
    /// What it touches, if that is more than one extent.
    pieces: Vec<Extent>,
    /// How much of a read the file had.
    got: Option<u64>,
}

/// The recording under way.
pub(super) struct Recorder {
    recording: Recording,
    /// Pieces by the place of their access among the rows.
    pieces: Vec<(usize, Vec<Extent>)>,
    /// Of all pieces.
    piece_count: usize,
    /// By process.
    commands: Vec<Option<UnderWay>>,
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
        match self.recording.rows.len() + self.piece_count < ROWS_MAX {
            true => self.recording.rows.push(row),
            false => self.recording.lost_count += 1,
        }
    }

    /// So much of what the process reads is in the file; of a read in the background, whose row has
    /// been written, nobody asks any more.
    pub(super) fn got(&mut self, process: u32, bytes: u64) {
        let waits = |command: Command| {
            command.is(FileOperation::Read) || command.is(FileOperation::ReadAll)
        };
        if let Some(under_way) = &mut self.commands[process as usize]
            && waits(under_way.command)
        {
            under_way.got = Some(bytes);
        }
    }

    pub(super) fn command_ended(&mut self, process: u32, now: Nanos) {
        let Some(UnderWay { row, pieces, got, .. }) = self.commands[process as usize].take() else {
            return;
        };
        let asked = if row.function.class().moves_data() { row.length } else { 0 };
        let result = got.map_or(asked, |bytes| bytes as i64);
        let place = self.recording.rows.len();
        self.keep(Row { result, end: now, ..row });
        if pieces.is_empty() || self.recording.rows.len() == place {
            return;
        }
        // An access without its pieces would be another one.
        match self.recording.rows.len() + self.piece_count + pieces.len() <= ROWS_MAX {
            true => {
                self.piece_count += pieces.len();
                self.pieces.push((place, pieces));
            }
            false => self.recording.lost_count += pieces.len() as u64,
        }
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

    /// Everything in order, with the pieces of each access behind it.
    fn finish(self) -> Recording {
        let Recorder { recording, pieces, piece_count, .. } = self;
        let mut pieces: BTreeMap<usize, Vec<Extent>> = pieces.into_iter().collect();
        let mut found: Vec<(usize, Row)> = recording.rows.into_iter().enumerate().collect();
        found.sort_by_key(|(_, row)| (row.process, row.start, row.end));
        let mut rows = Vec::with_capacity(found.len() + piece_count);
        for (place, row) in found {
            let parent = rows.len() as i64;
            rows.push(row);
            let pieces = pieces.remove(&place).unwrap_or_default();
            rows.extend(pieces.into_iter().map(|extent| Row {
                function: Function::VIEW_PIECE,
                offset: extent.offset as i64,
                length: extent.length as i64,
                argument: -1,
                result: 0,
                parent,
                ..row
            }));
        }
        Recording { rows, ..recording }
    }
}

impl Kind {
    /// What a message carries, as the trace's `argument`: 0 request, 1 write data, 2 read data,
    /// 3 completion, 4 flush, 5 message between processes, 6 its arrangement.
    fn number(self) -> i64 {
        match self {
            Kind::Request { .. } | Kind::Resize { .. } => 0,
            Kind::WriteData { .. } => 1,
            Kind::ReadData { .. } => 2,
            Kind::WriteDone { .. } | Kind::Done { .. } | Kind::Invitation { .. } => 3,
            Kind::Flush { .. } | Kind::Sync { .. } => 4,
            Kind::Point { .. } | Kind::Offered { .. } => 5,
            Kind::Offer { .. } | Kind::Reply { .. } => 6,
        }
    }
}

impl<Q: EventQueue<super::Event>> Cluster<Q> {
    /// From now on keeps what every part does; to be asked before the start. Rows name as their
    /// process: each client process, each server, each server's device, then for each node its
    /// NIC out and its NIC in.
    pub fn record(&mut self) {
        self.recorder = Some(Box::new(Recorder {
            recording: Recording::default(),
            pieces: Vec::new(),
            piece_count: 0,
            commands: self.processes.iter().map(|_| None).collect(),
            sent: Vec::new(),
            received: Vec::new(),
            requested: Vec::new(),
            client_count: self.processes.len() as u32,
            server_count: self.servers.len() as u32,
        }));
    }

    /// What was kept, in order; nothing if nobody asked.
    pub fn take_recording(&mut self) -> Option<Recording> {
        let mut recorder = self.recorder.take()?;
        // Of a process that has crashed: what it was at.
        for process in 0..self.processes.len() as u32 {
            recorder.command_ended(process, self.calendar.now);
        }
        let recording = recorder.finish();
        let members = |group: &Group| {
            let ranks = 0..group.rank_count();
            ranks.map(|rank| self.processes[group.process(rank) as usize].rank).collect()
        };
        Some(Recording { communicators: self.groups.iter().map(members).collect(), ..recording })
    }

    /// A process begins a command of its task `id`.
    pub(super) fn note_command(&mut self, id: u32, command: Command) {
        if self.recorder.is_none() {
            return;
        }
        let task = self.tasks.get(id);
        let process = task.process;
        let row = Row {
            rank: self.processes[process as usize].rank as i32,
            process,
            file: command.file().map_or(FileId::NONE, FileId),
            start: self.calendar.now,
            ..Row::of(function_of(command))
        };
        let row = self.view_of(id, command).map_or(row, |view| view.on(row.function, row));
        let moves = row.function.class().moves_data();
        let pieces = if moves && task.list.len() > 1 { task.list.clone() } else { Vec::new() };
        if let Some(recorder) = &mut self.recorder {
            let under_way = UnderWay { command, row, pieces, got: None };
            recorder.commands[process as usize] = Some(under_way);
        }
    }

    /// What a command's row says. Communicators are numbered as all groups of the simulation are.
    fn view_of(&self, id: u32, command: Command) -> Option<CallView> {
        let request = command.ticket.map(i64::from);
        let group = |communicator| self.group_of(id, communicator);
        let rank_of = |communicator, rank| {
            let process = self.groups[group(communicator) as usize].process(rank);
            self.processes[process as usize].rank
        };
        let to = |communicator, to, tag| {
            Some(Partner { rank: Some(rank_of(communicator, to)), tag: Some(tag) })
        };
        let from = |communicator, from, tag| {
            let rank = (from != ANY_SOURCE).then(|| rank_of(communicator, from));
            Some(Partner { rank, tag: (tag != ANY_TAG).then_some(tag) })
        };
        let message = |to, bytes, from, communicator| {
            let communicator = i64::from(group(communicator));
            Some(CallView::Message { to, bytes, from, communicator, request })
        };
        let list = &self.tasks.get(id).list;
        let listed_bytes = list.iter().map(|extent| extent.length).sum::<u64>();
        match command.what {
            What::Compute { instructions } => {
                let fraction = (instructions.fract() * CallView::FRACTIONS) as u64;
                Some(CallView::Compute { instructions: instructions as u64, fraction })
            }
            What::Idle { nanos } => Some(CallView::Idle { nanos }),
            What::File { file, operation: FileOperation::Open } => Some(CallView::Open {
                communicator: self.group_of_file(id, file).into(),
                size_bytes: self.files[file as usize].bytes as i64,
                mode: -1,
            }),
            What::File { operation: FileOperation::SetSize, .. } => {
                Some(CallView::SetSize { bytes: listed_bytes })
            }
            What::File { operation, .. } => operation.direction().map(|_| CallView::Data {
                extent: (list.iter().map(|extent| extent.offset).min(), listed_bytes),
                request,
            }),
            What::Send { to: rank, tag, bytes, communicator } => {
                message(to(communicator, rank, tag), bytes, None, communicator)
            }
            What::Receive { from: rank, tag, communicator } => {
                message(None, 0, from(communicator, rank, tag), communicator)
            }
            What::SendReceive {
                to: taker,
                send_tag,
                bytes,
                from: giver,
                receive_tag,
                communicator,
            } => {
                let taker = to(communicator, taker, send_tag);
                message(taker, bytes, from(communicator, giver, receive_tag), communicator)
            }
            What::Collective { kind, root, bytes, communicator } => Some(CallView::Collective {
                root: kind.has_root().then(|| rank_of(communicator, root)),
                bytes: (kind != CollectiveKind::Barrier).then_some(bytes),
                communicator: group(communicator).into(),
            }),
            // A row has one length; the mean stands for those of all.
            What::Alltoallv { communicator } => Some(CallView::Collective {
                root: None,
                bytes: Some(listed_bytes / list.len().max(1) as u64),
                communicator: group(communicator).into(),
            }),
            What::Wait(ticket) => Some(CallView::Wait { request: ticket.into() }),
        }
    }

    /// The node whose NIC or inside a hop is: switches come first, then four for each node.
    pub(super) fn node_of_hop(&self, hop: u32) -> u32 {
        (hop - self.network.routes.len() as u32) / 4
    }
}
