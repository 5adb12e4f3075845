//! What a command must fulfil before it begins: whatever it names exists.

use super::error::Refused;
use super::{Event, Files, Processes, Work, Wrong};
use crate::program::{ANY_SOURCE, Command, Communicator, File, FileOperation, Ticket, What};
use crate::queue::EventQueue;
use crate::world::TaskId;
use crate::world::World;
use iolab_policy::collective::CollectiveKind;
use iolab_vocab::Extent;

impl<F: Files> Processes<'_, F> {
    /// Begins the command, or ends the run if it cannot be.
    pub(crate) fn begin_checked<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q, F::Content>,
        id: TaskId,
        command: Command,
    ) {
        self.tasks.get_mut(id).command = Some(command);
        match self.check(id, command) {
            Ok(()) => {
                self.note_command(world, id, command);
                self.begin(world, id, Work::Command(command));
            }
            Err(wrong) => {
                self.refuse(id, command, wrong);
                world.stop();
            }
        }
    }

    /// What a task is at has failed: the run ends.
    pub(crate) fn fail<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q, F::Content>,
        id: TaskId,
        wrong: Wrong,
    ) {
        let command = self.tasks.get(id).command.expect("a task at work has a command");
        self.refuse(id, command, wrong);
        world.stop();
    }

    /// Nothing more happens: no process begins anything, and what is under way is dropped.
    fn refuse(&mut self, id: TaskId, command: Command, (message, hint): Wrong) {
        let process = self.process_of(id);
        let (application, rank) = (process.application, process.rank);
        let hint = hint.to_owned();
        self.refused = Some(Refused { application, rank, command, message, hint });
    }

    fn check(&self, id: TaskId, command: Command) -> Result<(), Wrong> {
        if let Some(file) = command.file() {
            self.check_file(id, command, file)?;
        }
        if let Some(communicator) = command.what.communicator() {
            self.check_member(id, communicator)?;
            self.check_partners(id, command.what, communicator)?;
        }
        if let Some(ticket) = command.ticket {
            self.check_start(id, command.what, ticket)?;
        }
        match command.what {
            What::Wait(ticket) if !self.has_ticket(id, ticket) => {
                Err((format!("nothing was begun with ticket {ticket}"), "begin something with it"))
            }
            What::Alltoallv { communicator } => self.check_lengths(id, communicator),
            What::Compute { instructions }
                if !(instructions >= 0.0 && instructions.is_finite()) =>
            {
                Err((format!("{instructions} is no number of instructions"), "give 0 or more"))
            }
            What::Collective { kind: CollectiveKind::File, .. } => Err((
                "it names no file".to_owned(),
                "read or write a file with `read-all` or `write-all`",
            )),
            _ => Ok(()),
        }
    }

    fn check_start(&self, id: TaskId, what: What, ticket: Ticket) -> Result<(), Wrong> {
        if !what.can_start() {
            return Err((
                "it cannot go on in the background".to_owned(),
                "start reads, writes, sends and receives; do others without a ticket",
            ));
        }
        match self.has_ticket(id, ticket) {
            true => Err((format!("ticket {ticket} is in use"), "wait for it first")),
            false => Ok(()),
        }
    }

    fn check_lengths(&self, id: TaskId, communicator: Communicator) -> Result<(), Wrong> {
        let count = self.group(self.group_of(id, communicator)).rank_count() as usize;
        match self.tasks.get(id).list.len() {
            listed if listed == count => Ok(()),
            listed => Err((
                format!("{listed} lengths for {count} ranks"),
                "list an extent for each rank of the communicator, its own included",
            )),
        }
    }

    fn has_ticket(&self, id: TaskId, ticket: Ticket) -> bool {
        let process = self.process_of(id);
        process.tickets.iter().any(|held| held.0 == ticket)
    }

    fn check_file(&self, id: TaskId, command: Command, file: File) -> Result<(), Wrong> {
        let count = self.clients.file_count();
        if file as usize >= count {
            return Err((
                format!("there is no file {file} among {count}"),
                "name a file of the file table",
            ));
        }
        let task = self.tasks.get(id);
        if let Some(extent) =
            task.list.iter().find(|one| one.offset.checked_add(one.length).is_none())
        {
            let (offset, length) = (extent.offset, extent.length);
            return Err((
                format!("{length} B at {offset} end beyond any file"),
                "files end below 2^64 B",
            ));
        }
        if let What::File { operation, .. } = command.what {
            self.clients.check(operation, file, &task.list)?;
        }
        let is_size = matches!(command.what, What::File { operation: FileOperation::SetSize, .. });
        if is_size && !matches!(task.list[..], [Extent { offset: 0, .. }]) {
            return Err((
                format!("{} extents say no size", task.list.len()),
                "list one extent from byte 0 to the end",
            ));
        }
        match command.what {
            What::File { operation, .. } if operation.is_collective() => {
                self.check_member(id, self.communicator_of(id, file))
            }
            _ => Ok(()),
        }
    }

    fn check_member(&self, id: TaskId, communicator: Communicator) -> Result<(), Wrong> {
        let application = self.process_of(id).application;
        let count = self.applications[application as usize].group_count;
        if communicator >= count {
            return Err((
                format!("there is no communicator {communicator} among {count}"),
                "declare it with the program; 0 is the world of the application",
            ));
        }
        let group = self.group(self.group_of(id, communicator));
        match group.rank(self.tasks.get(id).process) {
            Some(_) => Ok(()),
            None => Err((
                format!("the rank is no member of communicator {communicator}"),
                "only members take part",
            )),
        }
    }

    /// Ranks that the command names must be in its communicator.
    fn check_partners(
        &self,
        id: TaskId,
        what: What,
        communicator: Communicator,
    ) -> Result<(), Wrong> {
        let sender = |from: u32| Some(from).filter(|from| *from != ANY_SOURCE);
        let partners = match what {
            What::Send { to, .. } => [Some(to), None],
            What::Receive { from, .. } => [None, sender(from)],
            What::SendReceive { to, from, .. } => [Some(to), sender(from)],
            What::Collective { root, .. } => [Some(root), None],
            _ => [None, None],
        };
        let count = self.group(self.group_of(id, communicator)).rank_count();
        match partners.into_iter().flatten().find(|rank| *rank >= count) {
            None => Ok(()),
            Some(rank) => Err((
                format!("communicator {communicator} has no rank {rank}, only {count} ranks"),
                "ranks count within the communicator, from 0",
            )),
        }
    }
}
