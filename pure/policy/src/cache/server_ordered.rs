//! The server orders the clients' data: who has announced a write sends it when it is told to.
//!
//! After disk-directed I/O (Kotz 1994) and Panda's server-directed I/O (Seamons et al. 1995). With
//! memory for a part of what clients want to write, whoever comes first fills it, and the device
//! gets pieces from everywhere. Here turns are given in the order of the file, onward from the last
//! one, and only as many as memory is free for; so what is in memory together belongs together.
//! One is always under way, however large. Costs one small message and its way per write.

use super::{Action, Cache, Event, Settings, Tag};
use crate::machine::Machine;
use iolab_vocab::{FileId, Nanos};
use std::collections::BTreeMap;

struct ServerOrdered<C> {
    below: C,
    capacity_bytes: u64,
    turns: Turns,
}

/// Another layer, with clients that send in the order the server wants.
pub fn server_ordered<C: Cache>(
    settings: Settings,
    below: impl FnOnce(Settings) -> C,
) -> impl Cache {
    ServerOrdered {
        below: below(settings),
        capacity_bytes: settings.capacity_bytes,
        turns: Turns::default(),
    }
}

impl<C: Cache> ServerOrdered<C> {
    fn invite(&mut self, out: &mut Vec<Action>) {
        let free_bytes = self.capacity_bytes.saturating_sub(self.below.held_bytes());
        while let Some(tag) = self.turns.next(free_bytes) {
            out.push(Action::Invite { tag });
        }
    }
}

impl<C: Cache> Machine for ServerOrdered<C> {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, now: Nanos, event: Event, out: &mut Vec<Action>) {
        self.below.step(now, event, out);
        match event {
            Event::WriteAnnounced { tag, file, extent } => {
                self.turns.announced(tag, file, extent.offset, extent.length);
            }
            // What comes in is told piece by piece.
            Event::WriteArrived { extent, .. } => self.turns.arrived(extent.length),
            Event::Released { .. } | Event::DeviceReady => {}
            _ => return,
        }
        self.invite(out);
    }
}

impl<C: Cache> Cache for ServerOrdered<C> {
    fn held_bytes(&self) -> u64 {
        self.below.held_bytes()
    }

    fn queued_count(&self) -> usize {
        self.below.queued_count()
    }
}

/// Who waits for a turn at one server.
#[derive(Debug, Default)]
struct Turns {
    /// By place: how much each wants to send.
    waiting: BTreeMap<(FileId, u64, Tag), u64>,
    /// Allowed and not yet here.
    granted_bytes: u64,
    last: (FileId, u64),
}

impl Turns {
    /// A write of so many bytes from `offset` on wants to come.
    fn announced(&mut self, tag: Tag, file: FileId, offset: u64, bytes: u64) {
        self.waiting.insert((file, offset, tag), bytes);
    }

    /// So many allowed bytes have been admitted.
    fn arrived(&mut self, bytes: u64) {
        self.granted_bytes = self.granted_bytes.saturating_sub(bytes);
    }

    /// Whose turn it is, if anyone's, with so much memory free.
    fn next(&mut self, free_bytes: u64) -> Option<Tag> {
        let (file, offset) = self.last;
        let onward = self.waiting.range((file, offset, Tag(0))..).next();
        let (&place, &bytes) = onward.or_else(|| self.waiting.first_key_value())?;
        let fits = self.granted_bytes + bytes < free_bytes;
        if self.granted_bytes > 0 && !fits {
            return None;
        }
        self.waiting.remove(&place);
        self.granted_bytes += bytes;
        self.last = (place.0, place.1);
        Some(place.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_go_onward_through_the_file_as_memory_allows_and_then_around() {
        let (mut turns, file) = (Turns::default(), FileId(0));
        for (tag, offset) in [(1, 50), (2, 10), (3, 90)] {
            turns.announced(Tag(tag), file, offset, 40);
        }
        assert_eq!(
            [turns.next(100), turns.next(100), turns.next(100)],
            [Some(Tag(2)), Some(Tag(1)), None]
        );
        turns.announced(Tag(4), file, 0, 40);
        turns.arrived(40);
        assert_eq!(turns.next(100), Some(Tag(3)));
        turns.arrived(80);
        assert_eq!((turns.next(100), turns.next(100)), (Some(Tag(4)), None));
    }

    #[test]
    fn one_is_always_allowed_however_little_memory_there_is() {
        let mut turns = Turns::default();
        turns.announced(Tag(1), FileId(0), 0, 1000);
        turns.announced(Tag(2), FileId(0), 1, 1);
        assert_eq!((turns.next(0), turns.next(0)), (Some(Tag(1)), None));
        turns.arrived(1000);
        assert_eq!(turns.next(0), Some(Tag(2)));
    }
}
