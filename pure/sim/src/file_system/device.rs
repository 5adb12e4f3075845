//! A server's device: accesses wait their turn, as many under way as it takes at once.

use super::World;
use crate::queue::EventQueue;
use crate::world::{Event, RowId, ServerId};
use iolab_device::Access;
use iolab_vocab::{Direction, Extent, FileId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Accesses that belong together.
pub(super) type Batch = u32;

/// The device of a server, with what is to follow its batches.
#[derive(Debug)]
pub(super) struct Device<T> {
    server: ServerId,
    access_bytes: u64,
    depth: usize,
    /// With what they are a reaction to.
    waiting: VecDeque<(Access, Batch, RowId)>,
    under_way: usize,
    /// Accesses of each batch that are not over.
    left: BTreeMap<Batch, usize>,
    last: Batch,
    /// What follows once all of its batches are over, in the order in which it was said.
    then: Vec<(BTreeSet<Batch>, T)>,
}

impl<T> Device<T> {
    /// That of a server, with its largest access and how many it takes at once.
    pub(super) fn new(server: ServerId, access_bytes: u64, depth: usize) -> Device<T> {
        Device {
            server,
            access_bytes,
            depth,
            waiting: VecDeque::new(),
            under_way: 0,
            left: BTreeMap::new(),
            last: 0,
            then: Vec::new(),
        }
    }

    /// Which server's it is.
    pub(super) fn server(&self) -> ServerId {
        self.server
    }

    /// Stretches of a file are read or written. There must be some.
    pub(super) fn access<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        direction: Direction,
        file: FileId,
        extents: &[Extent],
    ) -> Batch {
        self.last = self.last.wrapping_add(1);
        let before = self.waiting.len();
        for extent in extents {
            for offset in (extent.offset..extent.end()).step_by(self.access_bytes as usize) {
                let length = self.access_bytes.min(extent.end() - offset);
                let extent = Extent::new(offset, length);
                let access = Access { direction, file, extent };
                self.waiting.push_back((access, self.last, world.cause()));
            }
        }
        let left = self.waiting.len() - before;
        assert!(left > 0, "an access of nothing would never end");
        self.left.insert(self.last, left);
        self.begin(world);
        self.last
    }

    /// What follows these batches, of which one at least is not over.
    pub(super) fn then(&mut self, after: impl IntoIterator<Item = Batch>, then: T) {
        self.then.push((after.into_iter().collect(), then));
    }

    fn begin<Q: EventQueue<Event>>(&mut self, world: &mut World<Q>) {
        while self.under_way < self.depth
            && let Some((access, batch, cause)) = self.waiting.pop_front()
        {
            self.under_way += 1;
            if let Some(recorder) = world.recorder() {
                recorder.join([cause]);
            }
            world.access(self.server, access, batch);
        }
    }

    /// An access is over. Tells whether its batch is.
    pub(super) fn ended<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q>,
        batch: Batch,
    ) -> bool {
        self.under_way -= 1;
        self.begin(world);
        let left = self.left.get_mut(&batch).expect("a batch under way has accesses left");
        *left -= 1;
        let is_over = *left == 0;
        if is_over {
            self.left.remove(&batch);
        }
        is_over
    }

    /// What follows now that a batch is over.
    pub(super) fn take_ready(&mut self, batch: Batch) -> Vec<T> {
        let mut ready = Vec::new();
        for (mut after, then) in std::mem::take(&mut self.then) {
            after.remove(&batch);
            match after.is_empty() {
                true => ready.push(then),
                false => self.then.push((after, then)),
            }
        }
        ready
    }

    /// Whether nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.left.is_empty()
    }
}
