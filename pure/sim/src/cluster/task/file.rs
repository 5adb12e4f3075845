//! File commands: what processes do together before, around and after their requests to servers.

use super::meeting::Purpose;
use super::{Event, Outcome, Work};
use crate::cluster::packet::Kind;
use crate::cluster::{Cluster, EventQueue};
use crate::program::{File, FileOperation};
use iolab_policy::collective::{CollectiveKind, FileCall, Sizes};
use iolab_vocab::Direction;

/// Payload of the broadcast by which an open spreads the file's handle.
const HANDLE_BYTES: u64 = 32;
/// Payload of the broadcast that tells whether a size could be set.
const RESULT_BYTES: u64 = 4;
/// Wire size of a flush.
const FLUSH_BYTES: u64 = 20;
/// Buffer of each rank in two-phase I/O.
const BUFFER_BYTES: u64 = 8 << 20;

impl<Q: EventQueue<Event>> Cluster<Q> {
    /// Takes the next step of a file operation.
    pub(super) fn file_step(
        &mut self,
        id: u32,
        file: File,
        operation: FileOperation,
        step: u32,
    ) -> Outcome {
        match operation {
            FileOperation::Open => self.open_step(id, file, step),
            FileOperation::Close => self.close_step(id, file, step),
            FileOperation::Sync => self.sync_servers(id, file),
            FileOperation::SetSize => self.set_size_step(id, file, step),
            FileOperation::Read => {
                self.request_reads(id, file);
                Outcome::WaitLast
            }
            FileOperation::Write => self.write_step(id, file, step),
            FileOperation::ReadAll => self.access_step(id, file, Direction::Read, step),
            FileOperation::WriteAll => self.access_step(id, file, Direction::Write, step),
        }
    }

    /// The group that opens, closes and collectively accesses a file with this task.
    pub(in crate::cluster) fn group_of_file(&self, id: u32, file: File) -> u32 {
        let process = &self.processes[self.tasks.get(id).process as usize];
        let program = &self.programs[process.program as usize];
        self.group_of(id, program.communicator_of(process.rank, file))
    }

    fn open_step(&mut self, id: u32, file: File, step: u32) -> Outcome {
        let group = self.group_of_file(id, file);
        if step == 0 {
            return Outcome::Nested(Work::Meet(group, Purpose::Open(file)));
        }
        Outcome::NestedLast(self.messages(id, group, CollectiveKind::Broadcast, 0, HANDLE_BYTES))
    }

    /// All meet, then rank 0 tells the servers.
    fn close_step(&mut self, id: u32, file: File, step: u32) -> Outcome {
        let group = self.group_of_file(id, file);
        if step == 0 {
            return Outcome::Nested(Work::Meet(group, Purpose::Close(file)));
        }
        let process = self.tasks.get(id).process;
        if self.groups[group as usize].rank(process) != Some(0) {
            return Outcome::Done;
        }
        self.tell_servers(id, Kind::Flush { file });
        Outcome::WaitLast
    }

    /// Every server answers when it holds nothing any more that is not on its device.
    fn sync_servers(&mut self, id: u32, file: File) -> Outcome {
        self.tasks.get_mut(id).pending += self.servers.len() as u32;
        self.tell_servers(id, Kind::Sync { file, task: id });
        Outcome::WaitLast
    }

    /// All meet, rank 0 tells the servers and awaits their answers, then the others that it is so.
    fn set_size_step(&mut self, id: u32, file: File, step: u32) -> Outcome {
        let group = self.group_of_file(id, file);
        let process = self.tasks.get(id).process;
        let is_first = self.groups[group as usize].rank(process) == Some(0);
        match step {
            0 => return Outcome::Nested(Work::Meet(group, Purpose::SetSize(file))),
            1 if is_first => {
                self.tasks.get_mut(id).pending += self.servers.len() as u32;
                self.tell_servers(id, Kind::Resize { task: id });
                return Outcome::Wait;
            }
            _ if is_first => self.files[file as usize].bytes = self.tasks.get(id).list[0].end(),
            _ => {}
        }
        Outcome::NestedLast(self.messages(id, group, CollectiveKind::Broadcast, 0, RESULT_BYTES))
    }

    fn tell_servers(&mut self, id: u32, kind: Kind) {
        let node = self.node_of(id);
        for server in 0..self.servers.len() {
            let target = self.servers[server].target;
            self.tasks.get_mut(id).pending += 1;
            self.send(node, target, id, FLUSH_BYTES, kind);
        }
    }

    /// Announce, send the data and await the answers, note the new size.
    fn write_step(&mut self, id: u32, file: File, step: u32) -> Outcome {
        match step {
            0 => self.request_writes(id, file),
            1 => self.send_write_data(id),
            _ => {
                self.grow_file(id, file);
                return Outcome::Done;
            }
        }
        Outcome::Wait
    }

    /// A collective access: meet, exchange spans, then together or each for himself.
    fn access_step(&mut self, id: u32, file: File, direction: Direction, step: u32) -> Outcome {
        let group = self.group_of_file(id, file);
        match step {
            0 => self.meet_for(id, group, file, direction),
            1 => self.exchange_spans(id, group),
            _ => self.access_together(id, group, file),
        }
    }

    fn access_together(&mut self, id: u32, group: u32, file: File) -> Outcome {
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
}
