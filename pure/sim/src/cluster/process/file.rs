//! File commands: what processes do together before, around and after their requests to servers.

use super::meeting::Purpose;
use super::{Event, GroupId, Outcome, Processes, Work};
use crate::cluster::World;
use crate::cluster::client;
use crate::cluster::message::Message;
use crate::cluster::request::RequestId;
use crate::program::{Command, File, FileOperation};
use crate::queue::EventQueue;
use crate::slab::Id;
use crate::world::TaskId;
use iolab_policy::collective::{CollectiveKind, FileCall, Sizes};
use iolab_vocab::Direction;

/// Payload of the broadcast by which an open spreads the file's handle.
const HANDLE_BYTES: u64 = 32;
/// Payload of the broadcast that tells whether a size could be set.
const RESULT_BYTES: u64 = 4;
/// Buffer of each rank in two-phase I/O.
const BUFFER_BYTES: u64 = 8 << 20;

impl Processes<'_> {
    /// Takes the next step of a file operation.
    pub(super) fn file_step<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        id: TaskId,
        file: File,
        operation: FileOperation,
        step: u32,
    ) -> Outcome {
        match operation {
            FileOperation::Open => self.open_step(id, file, step),
            FileOperation::Close => self.close_step(world, id, file, step),
            FileOperation::Sync => self.sync_servers(world, id, file),
            FileOperation::SetSize => self.set_size_step(world, id, file, step),
            FileOperation::Read => {
                self.request_reads(world, id, file);
                Outcome::WaitLast
            }
            FileOperation::Write => self.write_step(world, id, file, step),
            FileOperation::ReadAll => self.access_step(world, id, file, Direction::Read, step),
            FileOperation::WriteAll => self.access_step(world, id, file, Direction::Write, step),
        }
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
        (frame.work, frame.step) = (Work::FileCollective(machine, file, sizes, false), 0);
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
    pub(super) fn request_reads<Q: EventQueue<Event>>(
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
    pub(super) fn request_writes<Q: EventQueue<Event>>(
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
    pub(super) fn send_write_data<Q: EventQueue<Event>>(
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
    pub(in crate::cluster) fn invitation_arrived<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        request: RequestId,
    ) {
        let from = world.payloads.get(request).from;
        client::send_write_data(world, self.processes[from.process.index()].node, request);
    }

    /// Tells program and recorder how much of a read the file has.
    pub(super) fn tell_got(&mut self, id: TaskId, bytes: u64) {
        let number = self.tasks.get(id).process;
        let process = &self.processes[number.index()];
        self.applications[process.application as usize].program.got(process.rank, bytes);
        let is_in_background = id != number.task();
        if let Some(notes) = self.notes.as_mut().filter(|_| !is_in_background) {
            notes.got(number, bytes);
        }
    }
}
