//! File commands: what processes do together before, around and after their requests to servers.

use super::World;
use super::client::{self, Clients};
use super::message::Message;
use super::request::RequestId;
use crate::process::{Files, GroupId, MatchContext, Processes, Purpose, Work, Wrong, round};
use crate::program::{Command, File, FileOperation};
use crate::queue::EventQueue;
use crate::slab::Id;
use crate::world::{Event, TaskId};
use iolab_policy::Machine;
use iolab_policy::collective::{Action, BUFFER_BYTES, Collective, CollectiveKind, FileCall, Sizes};
use iolab_vocab::{Direction, Extent};

/// What a step has come to.
type Outcome = crate::process::Outcome<FileCollective>;

/// Payload of the broadcast by which an open spreads the file's handle.
const HANDLE_BYTES: u64 = 32;
/// Payload of the broadcast that tells whether a size could be set.
const RESULT_BYTES: u64 = 4;

/// Stripes of one access. It is laid over them at once, before anybody can stop the run.
const STRIPES_MAX: u64 = 1 << 28;

/// Whether a list cannot touch too many stripes, however small they are.
fn is_small(list: &[Extent]) -> bool {
    let bytes = list.iter().fold(0_u64, |sum, extent| sum.saturating_add(extent.length));
    bytes.saturating_add(2 * list.len() as u64) <= STRIPES_MAX
}

/// A collective access to a file.
pub(super) struct FileCollective {
    machine: Box<dyn Collective>,
    file: File,
    sizes: Sizes,
    /// Its write is announced to the servers.
    is_announced: bool,
}

impl Files for Clients {
    type Content = Message;
    type Work = FileCollective;

    fn file_count(&self) -> usize {
        self.files.len()
    }

    fn bytes_of(&self, file: File) -> u64 {
        self.files[file as usize].bytes
    }

    fn check(&self, operation: FileOperation, file: File, list: &[Extent]) -> Result<(), Wrong> {
        if !self.has_servers() && !list.is_empty() {
            return Err((
                "the platform has no server to hold the file's bytes".to_owned(),
                "give a group of nodes a `server`",
            ));
        }
        let Some(direction) = operation.direction().filter(|_| !is_small(list)) else {
            return Ok(());
        };
        match self.stripe_count(file, direction, list) {
            stripes if stripes > STRIPES_MAX => Err((
                format!("it goes over {stripes} stripes at once, of {STRIPES_MAX} at most"),
                "give the platform larger stripes, or the program smaller accesses",
            )),
            _ => Ok(()),
        }
    }

    /// Takes the next step of a file operation.
    fn step<Q: EventQueue<Event>>(
        processes: &mut Processes<'_, Self>,
        world: &mut World<Q>,
        id: TaskId,
        file: File,
        operation: FileOperation,
        step: u32,
    ) -> Outcome {
        match operation {
            FileOperation::Open => processes.open_step(id, file, step),
            FileOperation::Close => processes.close_step(world, id, file, step),
            FileOperation::Sync => processes.sync_servers(world, id, file),
            FileOperation::SetSize => processes.set_size_step(world, id, file, step),
            FileOperation::Read => {
                processes.request_reads(world, id, file);
                Outcome::WaitLast
            }
            FileOperation::Write => processes.write_step(world, id, file, step),
            FileOperation::ReadAll => processes.access_step(world, id, file, Direction::Read, step),
            FileOperation::WriteAll => {
                processes.access_step(world, id, file, Direction::Write, step)
            }
        }
    }

    /// The next round of a collective access.
    fn work_step<Q: EventQueue<Event>>(
        processes: &mut Processes<'_, Self>,
        world: &mut World<Q>,
        id: TaskId,
        step: u32,
    ) -> Outcome {
        let Work::Files(access) = &mut processes.top(id).work else {
            unreachable!("it is on top");
        };
        if std::mem::take(&mut access.is_announced) {
            processes.send_write_data(world, id);
            return Outcome::Wait;
        }
        processes.round_of_access(world, id, step)
    }
}

impl Processes<'_, Clients> {
    fn round_of_access<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        id: TaskId,
        step: u32,
    ) -> Outcome {
        let mut moves = std::mem::take(&mut self.moves);
        let Work::Files(access) = &mut self.top(id).work else { unreachable!("it is on top") };
        access.machine.step(world.now(), round(step), &mut moves);
        access.is_announced = moves.iter().any(|action| matches!(action, Action::WriteFile(_)));
        let (file, sizes) = (access.file, access.sizes.clone());
        let (group, context) = (self.group_of_file(id, file), MatchContext::File(file));
        let mut outcome = Outcome::Wait;
        for action in moves.drain(..) {
            match action {
                Action::ReadFile(extents) => {
                    self.tasks.get_mut(id).list = extents;
                    self.request_reads(world, id, file);
                }
                Action::WriteFile(extents) => self.announce_writes(world, id, file, extents),
                Action::PostWrite(extents) => {
                    self.announce_writes(world, id, file, extents);
                    self.send_write_data(world, id);
                }
                Action::Finish => outcome = Outcome::WaitLast,
                action => self.carry_out(world, id, group, context, &sizes, action),
            }
        }
        self.moves = moves;
        outcome
    }

    fn announce_writes<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        id: TaskId,
        file: File,
        extents: Vec<Extent>,
    ) {
        self.clients.grow(file, &extents);
        self.tasks.get_mut(id).list = extents;
        self.request_writes(world, id, file);
    }

    fn open_step(&mut self, id: TaskId, file: File, step: u32) -> Outcome {
        let group = self.group_of_file(id, file);
        if step == 0 {
            return Outcome::Nested(Work::Meet(group, Purpose::Open(file)));
        }
        Outcome::NestedLast(self.messages(id, group, CollectiveKind::Broadcast, 0, HANDLE_BYTES))
    }

    /// All meet, then rank 0 tells the servers.
    fn close_step<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        id: TaskId,
        file: File,
        step: u32,
    ) -> Outcome {
        let group = self.group_of_file(id, file);
        if step == 0 {
            return Outcome::Nested(Work::Meet(group, Purpose::Close(file)));
        }
        if self.rank_in(id, group) != 0 {
            return Outcome::Done;
        }
        self.tell_servers(world, id, Message::Flush { file });
        Outcome::WaitLast
    }

    /// Every server answers when it holds nothing any more that is not on its device.
    fn sync_servers<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        id: TaskId,
        file: File,
    ) -> Outcome {
        self.tasks.get_mut(id).pending += world.server_count() as u32;
        self.tell_servers(world, id, Message::Sync { file, from: self.caller(id) });
        Outcome::WaitLast
    }

    /// All meet, rank 0 tells the servers and awaits their answers, then the others that it is so.
    fn set_size_step<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        id: TaskId,
        file: File,
        step: u32,
    ) -> Outcome {
        let group = self.group_of_file(id, file);
        let is_first = self.rank_in(id, group) == 0;
        match step {
            0 => return Outcome::Nested(Work::Meet(group, Purpose::SetSize(file))),
            1 if is_first => {
                self.tasks.get_mut(id).pending += world.server_count() as u32;
                self.tell_servers(world, id, Message::Resize { from: self.caller(id) });
                return Outcome::Wait;
            }
            _ if is_first => {
                let bytes = self.tasks.get(id).list[0].end();
                self.clients.files[file as usize].bytes = bytes;
            }
            _ => {}
        }
        Outcome::NestedLast(self.messages(id, group, CollectiveKind::Broadcast, 0, RESULT_BYTES))
    }

    fn tell_servers<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        id: TaskId,
        message: Message,
    ) {
        self.tasks.get_mut(id).pending += world.server_count() as u32;
        client::tell_servers(world, self.node_of(id), id, message);
    }

    /// Announce, send the data and await the answers, note the new size.
    fn write_step<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        id: TaskId,
        file: File,
        step: u32,
    ) -> Outcome {
        match step {
            0 => self.request_writes(world, id, file),
            1 => self.send_write_data(world, id),
            _ => {
                self.clients.grow(file, &self.tasks.get(id).list);
                return Outcome::Done;
            }
        }
        Outcome::Wait
    }

    /// A collective access: meet, exchange spans, then together or each for himself.
    fn access_step<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        id: TaskId,
        file: File,
        direction: Direction,
        step: u32,
    ) -> Outcome {
        let group = self.group_of_file(id, file);
        match step {
            0 => self.meet_for(world, id, group, file, direction),
            1 => self.exchange_spans(id, group),
            _ => self.access_together(id, group, file),
        }
    }

    fn access_together(&mut self, id: TaskId, group: GroupId, file: File) -> Outcome {
        let rank = self.rank_in(id, group);
        let task = self.tasks.get_mut(id);
        let access = task.access.take().expect("the ranks have met");
        if !access.is_interleaved() {
            let wanted = &access.wanted[rank as usize];
            task.list.extend(wanted.within(wanted.span()));
            let alone = FileOperation::access(access.direction, false);
            return Outcome::NestedLast(Work::Command(alone.of(file)));
        }
        let call = FileCall { access, rank, buffer_bytes: BUFFER_BYTES, costs: self.costs };
        let (machine, sizes) = (self.file_machine(&call), Sizes::of_file(&call));
        let frame = self.top(id);
        let work = FileCollective { machine, file, sizes, is_announced: false };
        (frame.work, frame.step) = (Work::Files(work), 0);
        Outcome::Wait
    }

    /// Makes requests of the task's list.
    fn split<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        id: TaskId,
        file: File,
        direction: Direction,
    ) -> Vec<RequestId> {
        let from = self.caller(id);
        let task = self.tasks.get_mut(id);
        let mut requests = std::mem::take(&mut task.requests);
        self.clients.split(world, from, file, direction, &task.list, &mut requests);
        requests
    }

    /// Asks the servers for the task's list, cropped to the file, and awaits the data.
    pub(crate) fn request_reads<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        id: TaskId,
        file: File,
    ) {
        let requests = self.split(world, id, file, Direction::Read);
        // Of a collective read the ranks have been told when they met.
        let is_alone = |command: Command| command.is(FileOperation::Read);
        if self.tasks.get(id).command.is_some_and(is_alone) {
            let bytes = requests.iter().map(|&request| world.payloads.get(request).bytes).sum();
            self.tell_got(id, bytes);
        }
        let node = self.node_of(id);
        let task = self.tasks.get_mut(id);
        for &request in &requests {
            task.pending += 2;
            client::send_request(world, node, request);
        }
        task.requests = requests;
    }

    /// Announces the task's list to the servers. Where these invite, the data and its answer
    /// are awaited from now on, for the invitation may come at any time.
    pub(crate) fn request_writes<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        id: TaskId,
        file: File,
    ) {
        let mut requests = self.split(world, id, file, Direction::Write);
        let node = self.node_of(id);
        let task = self.tasks.get_mut(id);
        for &request in &requests {
            client::send_request(world, node, request);
            task.pending += if self.clients.awaits_invitation(world, request) { 3 } else { 1 };
        }
        requests.retain(|request| !self.clients.awaits_invitation(world, *request));
        task.requests = requests;
    }

    /// Sends the data of what was announced, and awaits each server's answer.
    pub(crate) fn send_write_data<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        id: TaskId,
    ) {
        let node = self.node_of(id);
        let task = self.tasks.get_mut(id);
        for &request in &task.requests {
            task.pending += 2;
            client::send_write_data(world, node, request);
        }
    }

    /// A server wants the data of a write now.
    pub(crate) fn invitation_arrived<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        request: RequestId,
    ) {
        let from = world.payloads.get(request).from;
        client::send_write_data(world, self.processes[from.process.index()].node, request);
    }
}
