//! A read cache in the server's memory, over any other layer: what has been read stays, least
//! recently used first to go, and a read of what is there needs no device.
//!
//! It takes half of the memory, the layer below has the other half. Written bytes go through to
//! the layer below and into what is kept (the driver does that), so a hit is never old; what is
//! overwritten while it is being read is not kept at all, for nobody could say which of the two
//! came. Costs O(log n) per request in the number of stretches kept.

use super::lru_extents::LruExtents;
use super::{Action, Cache, Event, Operation, Settings};
use crate::machine::Machine;
use iolab_vocab::{Direction, Extent, FileId, Nanos};
use std::collections::BTreeMap;

struct ReadCache<C> {
    below: C,
    share_bytes: u64,
    kept: LruExtents,
    /// Delivered from here and not yet released.
    delivered_bytes: u64,
    /// Reads under way, and what of each may be kept.
    reads_in_flight: BTreeMap<Operation, (FileId, Vec<Extent>)>,
}

/// Half of the memory for what has been read, the other half for the layer below.
pub fn read_cache<C: Cache>(settings: Settings, below: impl FnOnce(Settings) -> C) -> impl Cache {
    let share_bytes = settings.capacity_bytes / 2;
    let capacity_bytes = settings.capacity_bytes - share_bytes;
    ReadCache {
        below: below(Settings { capacity_bytes, ..settings }),
        share_bytes,
        kept: LruExtents::default(),
        delivered_bytes: 0,
        reads_in_flight: BTreeMap::new(),
    }
}

impl<C: Cache> ReadCache<C> {
    /// Makes room for so many bytes, if there can be.
    fn make_room(&mut self, bytes: u64, out: &mut Vec<Action>) -> bool {
        if self.delivered_bytes + bytes > self.share_bytes {
            return false;
        }
        while self.kept.bytes() + self.delivered_bytes + bytes > self.share_bytes {
            let (file, extent) = self.kept.evict().expect("something is kept that is too much");
            out.push(Action::Drop { file, extent });
        }
        true
    }

    /// Whether all of it is there, and room to hold it until it has left.
    fn hit(&mut self, file: FileId, extent: Extent) -> bool {
        if !self.kept.missing(file, extent).is_empty() {
            return false;
        }
        self.kept.touch(file, extent);
        let fits = self.delivered_bytes + self.kept.bytes() + extent.length <= self.share_bytes;
        self.delivered_bytes += if fits { extent.length } else { 0 };
        fits
    }

    /// Bytes that are overwritten while they are read are not kept.
    fn overwritten(&mut self, file: FileId, new: Extent) {
        for (_, keepable) in self.reads_in_flight.values_mut().filter(|read| read.0 == file) {
            *keepable = keepable.iter().flat_map(|old| old.without(new)).collect();
        }
    }

    fn keep(&mut self, file: FileId, keepable: &[Extent], out: &mut Vec<Action>) {
        let missing = keepable.iter().flat_map(|one| self.kept.missing(file, *one));
        for extent in missing.collect::<Vec<_>>() {
            if self.make_room(extent.length, out) {
                self.kept.insert(file, extent);
                out.push(Action::Keep { file, extent });
            }
        }
    }

    fn pass_down(&mut self, now: Nanos, event: Event, out: &mut Vec<Action>) {
        let from = out.len();
        self.below.step(now, event, out);
        for action in &out[from..] {
            if let Action::Transfer { operation, direction: Direction::Read, file, extent } =
                *action
            {
                self.reads_in_flight.insert(operation, (file, vec![extent]));
            }
        }
    }

    fn released(&mut self, now: Nanos, bytes: u64, out: &mut Vec<Action>) {
        let own = bytes.min(self.delivered_bytes);
        self.delivered_bytes -= own;
        if bytes > own {
            self.pass_down(now, Event::Released { bytes: bytes - own }, out);
        }
    }
}

impl<C: Cache> Machine for ReadCache<C> {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, now: Nanos, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::ReadArrived { tag, file, extent } if self.hit(file, extent) => {
                out.push(Action::Deliver { tag, extent });
            }
            Event::Released { bytes } => self.released(now, bytes, out),
            Event::WriteArrived { file, extent, .. } => {
                self.overwritten(file, extent);
                self.pass_down(now, event, out);
            }
            Event::Completed { operation } => {
                let landed = self.reads_in_flight.remove(&operation);
                self.pass_down(now, event, out);
                if let Some((file, keepable)) = landed {
                    self.keep(file, &keepable, out);
                }
            }
            _ => self.pass_down(now, event, out),
        }
    }
}

impl<C: Cache> Cache for ReadCache<C> {
    fn held_bytes(&self) -> u64 {
        self.below.held_bytes() + self.kept.bytes() + self.delivered_bytes
    }

    fn queued_count(&self) -> usize {
        self.below.queued_count()
    }
}
