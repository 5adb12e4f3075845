//! Meetings: all processes of a group wait for the last one, without messages.

use super::{Event, Files, GroupId, Outcome, Processes};
use crate::cluster::hash_table;
use crate::program::File;
use crate::queue::EventQueue;
use crate::slab::Id;
use crate::world::{Order, TaskId, World};
use iolab_policy::collective::{Access, Wanted};
use iolab_vocab::{Direction, Extent};
use std::sync::Arc;

/// What a group meets for. Only those who come for the same thing meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Nothing but to have met.
    Barrier,
    /// To open a file.
    Open(File),
    /// To close it.
    Close(File),
    /// To give it another size.
    SetSize(File),
    /// To access a file together.
    Access(File, Direction),
}

/// A meeting that not everyone has come to yet.
#[derive(Debug)]
pub(crate) struct Meeting {
    pub(crate) purpose: Purpose,
    /// Tasks that wait, in order of arrival.
    pub(crate) waiting: Vec<TaskId>,
    /// Per rank, whether it has come. A rank that comes again opens the next meeting.
    pub(crate) present: Vec<bool>,
    /// What the ranks of a collective access want.
    wanted: Vec<Wanted>,
}

impl Meeting {
    fn new(purpose: Purpose, rank_count: usize) -> Meeting {
        Meeting {
            purpose,
            waiting: Vec::new(),
            present: vec![false; rank_count],
            wanted: Vec::new(),
        }
    }
}

/// What of a list lies before the end of its file.
fn cropped(list: &[Extent], file_bytes: u64) -> Vec<Extent> {
    let inside = |extent: &Extent| extent.intersection(Extent::new(0, file_bytes));
    list.iter().map(inside).filter(|extent| !extent.is_empty()).collect()
}

impl<F: Files> Processes<'_, F> {
    /// The task comes to its group's meeting; gives the meeting if it is the last one.
    fn come(&mut self, id: TaskId, group: GroupId, purpose: Purpose) -> Option<Meeting> {
        let process = self.tasks.get(id).process;
        let mut got = None;
        let group = &mut self.groups[group.index()];
        let rank = group.rank(process).expect("the command was checked") as usize;
        let rank_count = group.rank_count() as usize;
        let meets = |meeting: &Meeting| meeting.purpose == purpose && !meeting.present[rank];
        let place = group.meetings.iter().position(meets).unwrap_or_else(|| {
            group.meetings.push(Meeting::new(purpose, rank_count));
            group.meetings.len() - 1
        });
        let meeting = &mut group.meetings[place];
        if let Purpose::Access(file, direction) = purpose {
            let mut list = std::mem::take(&mut self.tasks.get_mut(id).list);
            if direction == Direction::Read {
                let bytes = cropped(&list, self.clients.bytes_of(file));
                got = Some(bytes.iter().map(|extent| extent.length).sum::<u64>());
                if self.order == Order::Documented {
                    list = bytes;
                }
            }
            meeting.wanted.resize(rank_count, Wanted::default());
            meeting.wanted[rank] = Wanted::new(list);
        }
        let is_last = meeting.waiting.len() + 1 == rank_count;
        if !is_last {
            meeting.present[rank] = true;
            meeting.waiting.push(id);
        }
        let met = is_last.then(|| group.meetings.remove(place));
        if let Some(bytes) = got {
            self.tell_got(id, bytes);
        }
        met
    }

    /// The last to come wakes the others and is done.
    pub(crate) fn meet<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q, F::Content>,
        id: TaskId,
        group: GroupId,
        purpose: Purpose,
    ) -> Outcome<F::Work> {
        let Some(meeting) = self.come(id, group, purpose) else { return Outcome::BlockedLast };
        let waiting = match self.order {
            Order::Published => self.in_hash_order(&meeting.waiting),
            Order::Documented => meeting.waiting,
        };
        waiting.into_iter().for_each(|other| self.go_on(world, other));
        Outcome::Done
    }

    /// All ranks of a collective access meet; the last one continues at once.
    pub(crate) fn meet_for<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q, F::Content>,
        id: TaskId,
        group: GroupId,
        file: File,
        direction: Direction,
    ) -> Outcome<F::Work> {
        let Some(meeting) = self.come(id, group, Purpose::Access(file, direction)) else {
            return Outcome::Blocked;
        };
        let access = Arc::new(Access { direction, wanted: meeting.wanted });
        for &other in meeting.waiting.iter().chain([&id]) {
            self.tasks.get_mut(other).access = Some(access.clone());
        }
        meeting.waiting.into_iter().for_each(|other| self.go_on(world, other));
        Outcome::Wait
    }

    fn in_hash_order(&self, tasks: &[TaskId]) -> Vec<TaskId> {
        let number = |id: &TaskId| hash_table::component(self.tasks.get(*id).process.0);
        let numbers: Vec<_> = tasks.iter().map(number).collect();
        hash_table::order(&numbers).into_iter().map(|index| tasks[index]).collect()
    }
}
