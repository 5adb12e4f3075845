//! Commands as rows of a trace, on request: from the moment a process begins one until it is over.

use super::{Files, ProcessId, Processes};
use crate::program::{ANY_SOURCE, ANY_TAG, Command, FileOperation, What, function_of};
use crate::queue::EventQueue;
use crate::slab::Id;
use crate::world::{Event, Recorder, RowId, TaskId, World};
use iolab_policy::collective::CollectiveKind;
use iolab_trace::{CallView, Event as Row, Partner};
use iolab_vocab::{Extent, FileId, Nanos};

/// A command that is not over.
struct UnderWay {
    command: Command,
    id: RowId,
    /// Its row, but for end and result.
    row: Row,
    /// What it touches, if that is more than one extent.
    pieces: Vec<Extent>,
    /// How much of a read the file had.
    got: Option<u64>,
}

/// Commands under way, by process.
pub(crate) struct Notes(Vec<Option<UnderWay>>);

impl Notes {
    /// So much of what the process reads is in the file; of a read in the background, whose row has
    /// been written, nobody asks any more.
    pub(crate) fn got(&mut self, process: ProcessId, bytes: u64) {
        let waits = |command: Command| {
            command.is(FileOperation::Read) || command.is(FileOperation::ReadAll)
        };
        if let Some(under_way) = &mut self.0[process.index()]
            && waits(under_way.command)
        {
            under_way.got = Some(bytes);
        }
    }

    pub(crate) fn command_ended(
        &mut self,
        recorder: &mut Recorder,
        process: ProcessId,
        now: Nanos,
    ) {
        let Some(UnderWay { id, row, pieces, got, .. }) = self.0[process.index()].take() else {
            return;
        };
        let asked = if row.function.class().moves_data() { row.length } else { 0 };
        let result = got.map_or(asked, |bytes| bytes as i64);
        recorder.ends(id);
        recorder.keep_pieces(id, Row { result, end: now, ..row }, pieces);
    }
}

impl<F: Files> Processes<'_, F> {
    /// From now on commands are noted; answers how many processes there are.
    pub(crate) fn record(&mut self) -> u32 {
        self.notes = Some(Notes(self.processes.iter().map(|_| None).collect()));
        self.processes.len() as u32
    }

    /// Of a process that has crashed: what it was at.
    pub(crate) fn note_unfinished(&mut self, recorder: &mut Recorder, now: Nanos) {
        if let Some(notes) = &mut self.notes {
            (0..self.processes.len())
                .for_each(|process| notes.command_ended(recorder, ProcessId::of(process), now));
        }
    }

    /// A process begins a command of its task `id`: it is the cause of what happens next.
    pub(crate) fn note_command<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q, F::Content>,
        id: TaskId,
        command: Command,
    ) {
        if self.notes.is_none() {
            return;
        }
        let now = world.now();
        let task = self.tasks.get(id);
        let process = task.process;
        let row = Row {
            rank: self.processes[process.index()].rank as i32,
            process: process.0,
            file: command.file().map_or(FileId::NONE, FileId),
            start: now,
            ..Row::of(function_of(command))
        };
        let row = self.view_of(id, command).map_or(row, |view| view.on(row.function, row));
        let moves = row.function.class().moves_data();
        let pieces = if moves && task.list.len() > 1 { task.list.clone() } else { Vec::new() };
        let opened = world.recorder().map_or(RowId::NONE, Recorder::open_first);
        world.because(opened);
        if let Some(Notes(commands)) = &mut self.notes {
            let under_way = UnderWay { command, id: opened, row, pieces, got: None };
            commands[process.index()] = Some(under_way);
        }
    }

    /// What a command's row says. Communicators are numbered as all groups of the simulation are.
    fn view_of(&self, id: TaskId, command: Command) -> Option<CallView> {
        let request = command.ticket.map(i64::from);
        let group = |communicator| self.group_of(id, communicator);
        let rank_of = |communicator, rank| {
            let process = self.group(group(communicator)).process(rank);
            self.processes[process.index()].rank
        };
        let to = |communicator, to, tag| {
            Some(Partner { rank: Some(rank_of(communicator, to)), tag: Some(tag) })
        };
        let from = |communicator, from, tag| {
            let rank = (from != ANY_SOURCE).then(|| rank_of(communicator, from));
            Some(Partner { rank, tag: (tag != ANY_TAG).then_some(tag) })
        };
        let message = |to, bytes, from, communicator| {
            let communicator = i64::from(group(communicator).0);
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
                communicator: self.group_of_file(id, file).0.into(),
                size_bytes: self.clients.bytes_of(file) as i64,
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
                communicator: group(communicator).0.into(),
            }),
            // A row has one length; the mean stands for those of all.
            What::Alltoallv { communicator } => Some(CallView::Collective {
                root: None,
                bytes: Some(listed_bytes / list.len().max(1) as u64),
                communicator: group(communicator).0.into(),
            }),
            What::Wait(ticket) => Some(CallView::Wait { request: ticket.into() }),
        }
    }
}
