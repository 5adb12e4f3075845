//! Operations on files, as calls of the client machine.

use super::FileClients;
use crate::file_system::World;
use crate::file_system::parcel::Told;
use crate::process::{Files, GroupId, Processes, Reason, Reasons, Work, Wrong};
use crate::program::{Command, File, FileOperation, What};
use crate::queue::EventQueue;
use crate::slab::Id;
use crate::world::{Event, TaskId};
use iolab_pattern::{Nest, Node};
use iolab_pfs::client::{Call, Done, Failure, FileNumber};
use iolab_pfs::configuration::Durability;
use iolab_pfs::{Code, Inode, Layout, Message, OpenNumber, OpenWish, Opened, wire};
use iolab_policy::collective::CollectiveKind;
use iolab_vocab::{Direction, Extent, Refusal};
use std::convert::Infallible;
use std::sync::Arc;

/// What a step has come to.
type Outcome = crate::process::Outcome<Infallible>;

/// Extents of one access: more make a view that no server stores.
const EXTENTS_MAX: usize = 1 << 20;

impl Files for FileClients {
    type Content = Told;
    type Work = Infallible;

    fn file_count(&self) -> usize {
        self.files.len()
    }

    fn bytes_of(&self, file: File) -> u64 {
        self.files[file as usize].bytes
    }

    fn check(&self, operation: FileOperation, _: File, list: &[Extent]) -> Result<(), Wrong> {
        if list.iter().any(|extent| extent.end() > i64::MAX as u64) {
            return Err(("it ends beyond any file".to_owned(), "files end below 2^63 B"));
        }
        match operation.direction() {
            Some(_) if list.len() > EXTENTS_MAX => Err((
                format!("{} extents at once, of {EXTENTS_MAX} at most", list.len()),
                "give the program smaller accesses",
            )),
            _ => Ok(()),
        }
    }

    fn step<Q: EventQueue<Event>>(
        processes: &mut Processes<'_, Self>,
        world: &mut World<Q>,
        id: TaskId,
        file: File,
        operation: FileOperation,
        step: u32,
    ) -> Outcome {
        if operation == FileOperation::Open {
            return processes.open_step(world, id, file, step);
        }
        let process = processes.tasks.get(id).process;
        let open = processes.clients.numbers.get(&(process, file));
        let Some(&number) = open.and_then(|numbers| numbers.last()) else {
            return processes.refuse_step(world, id, "the rank has not opened it", "open it first");
        };
        let place = (file, number);
        match operation {
            FileOperation::Open => unreachable!("it was done above"),
            FileOperation::Close => processes.close_step(world, id, place, step),
            FileOperation::Sync => {
                processes.call(world, id, Call::Sync { file: number });
                Outcome::WaitLast
            }
            FileOperation::SetSize => processes.set_size_step(world, id, place, step),
            FileOperation::Read => processes.access(world, id, place, Direction::Read, false),
            FileOperation::Write => processes.access(world, id, place, Direction::Write, false),
            FileOperation::ReadAll => processes.access(world, id, place, Direction::Read, true),
            FileOperation::WriteAll => processes.access(world, id, place, Direction::Write, true),
        }
    }

    fn work_step<Q: EventQueue<Event>>(
        processes: &mut Processes<'_, Self>,
        _: &mut World<Q>,
        id: TaskId,
        _: u32,
    ) -> Outcome {
        match processes.top(id).work {
            Work::Files(never) => match never {},
            _ => unreachable!("this client has no work of its own"),
        }
    }
}

impl Processes<'_, FileClients> {
    /// The task calls its client and waits for the answer.
    fn call<Q: EventQueue<Event>>(&mut self, world: &mut World<Q>, id: TaskId, what: Call) {
        let task = self.tasks.get_mut(id);
        task.pending += 1;
        let place = task.process.index();
        self.clients.call(world, place, id, what);
    }

    /// The task cannot go on; the run ends.
    fn refuse_step<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        id: TaskId,
        message: &str,
        hint: &'static str,
    ) -> Outcome {
        self.fail(world, id, (message.to_owned(), hint));
        Outcome::Blocked
    }

    /// The first rank opens and tells the others, as MPI libraries do; then all adopt what was opened.
    fn open_step<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        id: TaskId,
        file: File,
        step: u32,
    ) -> Outcome {
        let group = self.group_of_file(id, file);
        let rank = self.rank_in(id, group);
        match step + u32::from(rank > 0) {
            0 => {
                let path = self.clients.files[file as usize].path.clone();
                let wish =
                    OpenWish { writes: true, creates: true, mode: 0o644, ..OpenWish::TO_READ };
                self.call(world, id, Call::Open { path, wish });
                Outcome::Wait
            }
            1 => {
                let kind = CollectiveKind::Broadcast;
                Outcome::Nested(self.messages(id, group, kind, 0, handle_bytes()))
            }
            _ => self.adopt(world, id, (group, rank), file),
        }
    }

    fn adopt<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        id: TaskId,
        (group, rank): (GroupId, u32),
        file: File,
    ) -> Outcome {
        let process = self.tasks.get(id).process;
        let adopted = self.clients.adopted.entry((process, file)).or_default();
        let all = self.clients.opened.get(&(group, file));
        let Some(&opened) = all.and_then(|all| all.get(*adopted)) else {
            let why = "what the first rank has broadcast is no open of this file";
            let hint = "let all ranks come to their collective commands in the same order";
            return self.refuse_step(world, id, why, hint);
        };
        *adopted += 1;
        self.takes_part(id, file);
        let size = self.group(group).rank_count();
        self.call(world, id, Call::Adopt { opened, rank, size });
        Outcome::WaitLast
    }

    /// What class `process` promises is so when a write is answered; a device must be told.
    fn close_step<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        id: TaskId,
        (file, number): (File, FileNumber),
        step: u32,
    ) -> Outcome {
        if step == 0 && self.clients.durability == Durability::Device {
            self.call(world, id, Call::Sync { file: number });
            return Outcome::Wait;
        }
        self.takes_part(id, file);
        let process = self.tasks.get(id).process;
        self.clients.numbers.entry((process, file)).and_modify(|numbers| _ = numbers.pop());
        self.call(world, id, Call::Close { file: number });
        Outcome::WaitLast
    }

    /// All come, the first rank sets the size, and all hear what came of it.
    fn set_size_step<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        id: TaskId,
        (file, number): (File, FileNumber),
        step: u32,
    ) -> Outcome {
        let agree = Call::Agree { file: number, result: Code::OK };
        match step {
            0 => {
                self.takes_part(id, file);
                self.call(world, id, agree);
                Outcome::Wait
            }
            1 => {
                if self.rank_in(id, self.group_of_file(id, file)) == 0 {
                    let bytes = self.tasks.get(id).list[0].end();
                    self.clients.files[file as usize].bytes = bytes;
                    self.call(world, id, Call::Resize { file: number, bytes });
                }
                Outcome::Wait
            }
            _ => {
                self.takes_part(id, file);
                self.call(world, id, agree);
                Outcome::WaitLast
            }
        }
    }

    fn access<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        id: TaskId,
        (file, number): (File, FileNumber),
        direction: Direction,
        collective: bool,
    ) -> Outcome {
        let list = &self.tasks.get(id).list;
        let own = list.is_empty().then(|| self.view_of_program(id)).flatten();
        let (view, from, to) = match own.map_or_else(|| view_of(list), Ok) {
            Ok(stretch) => stretch,
            Err(refusal) => {
                let hint = "give the program smaller or more regular accesses";
                return self.refuse_step(world, id, &refusal.message, hint);
            }
        };
        if collective {
            self.takes_part(id, file);
        }
        if direction == Direction::Write && from < to {
            let last = view.at(to - 1).unwrap_or(0);
            let known = &mut self.clients.files[file as usize].bytes;
            *known = (last + 1).max(*known);
        }
        let view = Arc::new(view);
        let call = Call::Access { file: number, direction, view, from, to, collective };
        self.call(world, id, call);
        Outcome::WaitLast
    }

    /// The task comes to a collective operation on a file.
    fn takes_part(&mut self, id: TaskId, file: File) {
        let process = self.tasks.get(id).process;
        *self.clients.come.entry((process, file)).or_default() += 1;
    }

    /// Tasks hear what came of their calls; `opens` hears which file of the program an open file is.
    pub(in crate::file_system) fn settle_calls<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        mut opens: impl FnMut(Inode, File),
    ) {
        while let Some((id, outcome)) = self.clients.answered.pop_front() {
            if !self.tasks.get(id).is_at_work() {
                continue;
            }
            match outcome {
                Ok(done) => self.call_done(id, done, &mut opens),
                Err(failure) => return self.fail(world, id, told(failure)),
            }
            self.settle_one(world, id);
        }
    }

    fn call_done(&mut self, id: TaskId, done: Done, opens: &mut impl FnMut(Inode, File)) {
        let task = self.tasks.get(id);
        let process = task.process;
        let Some(Command { what: What::File { file, operation }, .. }) = task.command else {
            return;
        };
        match done {
            Done::Opened(opened) => {
                opens(opened.inode, file);
                let group = self.group_of_file(id, file);
                self.clients.opened.entry((group, file)).or_default().push(opened);
            }
            Done::Adopted(number) => {
                self.clients.numbers.entry((process, file)).or_default().push(number);
            }
            Done::Bytes(bytes) if operation.direction() == Some(Direction::Read) => {
                self.tell_got(id, bytes);
            }
            _ => {}
        }
    }

    /// Who waits for the file system: for other ranks, where not all have come, else for its answer.
    pub(in crate::file_system) fn tell_of_calls(&self, reasons: &mut Reasons) {
        for &id in self.clients.calls.values() {
            let task = self.tasks.get(id);
            let Some(Command { what: What::File { file, operation }, .. }) = task.command else {
                continue;
            };
            let come = |process| self.clients.come.get(&(process, file)).copied().unwrap_or(0);
            let mut missing = Vec::new();
            if operation.is_collective() {
                let group = self.group(self.group_of_file(id, file));
                let members = (0..group.rank_count()).map(|rank| group.process(rank));
                let late = members.filter(|other| come(*other) < come(task.process));
                missing.extend(late.map(|other| self.rank_of(other)));
            }
            let purpose = format!("{} of file {file}", operation.name());
            reasons.entry(id).or_default().push(match missing.is_empty() {
                true => Reason::FileSystem,
                false => Reason::Meeting { purpose, missing },
            });
        }
    }
}

/// Payload of the broadcast by which an open spreads: as much as the manager's answer.
fn handle_bytes() -> u64 {
    let (open, inode, layout) = (OpenNumber(0), Inode(0), Layout::usual(1));
    wire::message_bytes(&Message::Opened(Opened { open, inode, layout, created: false }))
}

/// Why a run ends with a call that failed.
fn told(failure: Failure) -> Wrong {
    let hint = match failure.code {
        Code::TIMED_OUT => {
            "a party without any sign of life for 8 s is given up: end its fault before, or leave it out"
        }
        Code::RANK_FAILED => "what all ranks do together fails with the first of them: it crashed",
        _ => "the file system's machines refuse it, as they would in a real run",
    };
    (failure.text, hint)
}

/// A set of extents as a view, and the bytes of it that are meant. One extent is a stretch of the view of
/// the whole file, so that it needs no view of its own.
fn view_of(list: &[Extent]) -> Result<(Nest, u64, u64), Refusal> {
    let mut sorted: Vec<Extent> = list.iter().copied().filter(|one| !one.is_empty()).collect();
    sorted.sort_unstable();
    let mut set: Vec<Extent> = Vec::with_capacity(sorted.len());
    for extent in sorted {
        match set.last_mut() {
            Some(last) if extent.offset <= last.end() => {
                last.length = last.end().max(extent.end()) - last.offset;
            }
            _ => set.push(extent),
        }
    }
    if let [] | [_] = set[..] {
        let stretch = set.first().copied().unwrap_or_default();
        return Ok((Nest::WHOLE_FILE, stretch.offset, stretch.end()));
    }
    let part = |extent: &Extent| Ok((extent.offset, Node::bytes(extent.length)?));
    let parts = set.iter().map(part).collect::<Result<Vec<_>, Refusal>>()?;
    let view = Nest::of_parts(0, 0, parts)?;
    let bytes = view.size();
    Ok((view, 0, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extents(list: &[(u64, u64)]) -> Vec<Extent> {
        list.iter().map(|&(offset, length)| Extent::new(offset, length)).collect()
    }

    #[test]
    fn a_regular_list_is_a_small_view_whatever_its_order() {
        let mut list: Vec<Extent> = (0..1000).map(|at| Extent::new(7 + at * 32, 8)).collect();
        list.reverse();
        let (view, from, to) = view_of(&list).unwrap();
        assert_eq!((from, to, view.at(8)), (0, 8000, Some(39)));
        assert!(view.proper() && view.root().nodes() == 2, "{view:?}");
    }

    #[test]
    fn one_stretch_is_part_of_the_whole_file() {
        let (view, from, to) = view_of(&extents(&[(10, 5), (15, 5), (12, 4)])).unwrap();
        assert_eq!((from, to, view.at(from)), (10, 20, Some(10)));
        let (view, from, to) = view_of(&extents(&[(3, 0)])).unwrap();
        assert!(from == to && view.proper());
    }
}
