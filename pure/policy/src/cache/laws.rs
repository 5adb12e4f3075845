//! The discipline of cache layers, as far as one event after the other shows it.
//!
//! **The driver** reports as many bytes of a packet as were admitted, completes what is under way,
//! gives back what was delivered, and wakes no earlier than asked for. **The machine** answers each
//! offer once, and nothing else; starts no more transfers than the device takes, none while a
//! completed one is being settled, none longer than one access, and no two writes that overlap;
//! delivers what was asked for, once, and only what has just been read or is kept; and says that a
//! file is flushed when nothing of it waits or is under way.
//!
//! Which bytes a transfer carries, that all are written in the end and that memory suffices is held
//! against a model of the device by the family's conformance suite.

use super::{Action, Cache, Event, FlushId, Operation, Settings, Tag, Tails};
use crate::extents::Covered;
use crate::machine::{Checked, Laws};
use iolab_vocab::{Direction, Extent, FileId, Nanos};
use std::collections::BTreeMap;

/// One layer, as far as its discipline goes.
#[derive(Debug)]
pub struct CacheLaws {
    settings: Settings,
    /// Admitted, and not yet written.
    held_bytes: u64,
    /// Of these, not yet reported piece by piece.
    coming_bytes: u64,
    /// Asked for and not delivered.
    owed: BTreeMap<Tag, Vec<(FileId, Extent)>>,
    /// Delivered and not given back.
    delivered_bytes: u64,
    in_flight: BTreeMap<Operation, Transfer>,
    /// What has just been completed, until the device is ready.
    settling: Option<Transfer>,
    /// Came, and no transfer that carries it has started.
    unwritten: BTreeMap<FileId, Covered>,
    kept: BTreeMap<FileId, Covered>,
    flushes: Vec<(FlushId, FileId)>,
    announced: Vec<Tag>,
    wakes: Vec<Nanos>,
}

#[derive(Clone, Copy, Debug)]
struct Transfer {
    direction: Direction,
    file: FileId,
    extent: Extent,
}

/// Holds a layer of these settings to its discipline.
pub fn checked(settings: Settings, cache: Box<dyn Cache>) -> Box<dyn Cache> {
    Box::new(Checked::new(cache, CacheLaws::new(settings)))
}

impl<C: Cache> Cache for Checked<C, CacheLaws> {
    fn held_bytes(&self) -> u64 {
        self.machine.held_bytes()
    }

    fn queued_count(&self) -> usize {
        self.machine.queued_count()
    }
}

impl CacheLaws {
    /// Of a layer that has been told nothing yet.
    pub fn new(settings: Settings) -> CacheLaws {
        CacheLaws {
            settings,
            held_bytes: 0,
            coming_bytes: 0,
            owed: BTreeMap::new(),
            delivered_bytes: 0,
            in_flight: BTreeMap::new(),
            settling: None,
            unwritten: BTreeMap::new(),
            kept: BTreeMap::new(),
            flushes: Vec::new(),
            announced: Vec::new(),
            wakes: Vec::new(),
        }
    }

    /// Write data that was admitted and is not on the device, as far as it was not replaced.
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    fn told(&mut self, now: Nanos, event: &Event) -> Result<(), String> {
        match *event {
            Event::ReadArrived { tag, file, extent } => {
                self.owed.entry(tag).or_default().push((file, extent));
            }
            Event::WriteAnnounced { tag, .. } => self.announced.push(tag),
            Event::WriteOffered { .. } => {}
            Event::WriteArrived { file, extent, .. } => {
                let left = self.coming_bytes.checked_sub(extent.length);
                self.coming_bytes = left.ok_or_else(|| {
                    format!("{} B arrive, {} were admitted", extent.length, self.coming_bytes)
                })?;
                self.unwritten.entry(file).or_default().insert(extent);
            }
            Event::Completed { operation } => {
                let landed = self.in_flight.remove(&operation);
                let unknown = || format!("operation {} is completed, but never began", operation.0);
                let landed = landed.ok_or_else(unknown)?;
                if landed.direction == Direction::Write {
                    self.held_bytes = self.held_bytes.saturating_sub(landed.extent.length);
                }
                self.settling = Some(landed);
            }
            Event::DeviceReady => self.settling = None,
            Event::Released { bytes } => {
                let left = self.delivered_bytes.checked_sub(bytes);
                self.delivered_bytes = left.ok_or_else(|| {
                    format!("{bytes} B are given back of {} B delivered", self.delivered_bytes)
                })?;
            }
            Event::FlushArrived { flush, file } => {
                if self.flushes.iter().any(|(open, _)| *open == flush) {
                    return Err(format!("flush {} is open already", flush.0));
                }
                self.flushes.push((flush, file));
            }
            Event::Woke => {
                let due = self.wakes.iter().position(|time| *time <= now);
                self.wakes.swap_remove(due.ok_or("woken though no time was due")?);
            }
        }
        Ok(())
    }

    fn take(&mut self, now: Nanos, event: &Event, action: Action) -> Result<(), String> {
        match action {
            Action::Admit => {
                if let Event::WriteOffered { bytes } = event {
                    self.held_bytes += bytes;
                    self.coming_bytes += bytes;
                }
                Ok(())
            }
            Action::Refuse | Action::RetryRefused => Ok(()),
            Action::Transfer { operation, direction, file, extent } => {
                self.launch(operation, Transfer { direction, file, extent })
            }
            Action::Deliver { tag, extent } => self.deliver(tag, extent),
            Action::Keep { file, extent } => match self.settling {
                Some(read) if read.has_read(file, extent) => {
                    self.kept.entry(file).or_default().insert(extent);
                    Ok(())
                }
                _ => Err(format!("keeps {extent}, which was not read just now")),
            },
            Action::Drop { file, extent } => {
                let kept = self.kept.entry(file).or_default();
                if !kept.contains(extent) {
                    return Err(format!("drops {extent}, which was not kept"));
                }
                kept.remove(extent);
                Ok(())
            }
            Action::Flushed { flush } => self.flushed(flush),
            Action::Invite { tag } => {
                let index = self.announced.iter().position(|announced| *announced == tag);
                let unasked = || format!("invites request {}, which announced nothing", tag.0);
                self.announced.swap_remove(index.ok_or_else(unasked)?);
                Ok(())
            }
            // At this very moment it would be asked for ever.
            Action::WakeAt(time) if time <= now => {
                Err(format!("wants to be woken at {} ns, which is over", time.0))
            }
            Action::WakeAt(time) => {
                self.wakes.push(time);
                Ok(())
            }
        }
    }

    fn launch(&mut self, operation: Operation, transfer: Transfer) -> Result<(), String> {
        let Transfer { direction, file, extent } = transfer;
        let (most, depth) = (self.settings.access_bytes, self.settings.depth.max(1));
        if self.settling.is_some() {
            return Err(format!("starts {extent} before the device is ready"));
        }
        if extent.is_empty() || extent.length > most {
            return Err(format!("transfers {} B at once; 1 to {most} go", extent.length));
        }
        if self.in_flight.len() >= depth as usize {
            return Err(format!("more than {depth} transfers at once"));
        }
        if direction == Direction::Write {
            if self.in_flight.values().any(|other| other.writes_into(file, extent)) {
                return Err(format!("two writes of {extent} in flight"));
            }
            self.unwritten.entry(file).or_default().remove(extent);
        }
        match self.in_flight.insert(operation, transfer) {
            None => Ok(()),
            Some(_) => Err(format!("operation {} is under way already", operation.0)),
        }
    }

    fn deliver(&mut self, tag: Tag, extent: Extent) -> Result<(), String> {
        let not_its_own = || format!("delivers {extent} to request {}, not its own", tag.0);
        let owed = self.owed.get_mut(&tag).ok_or_else(not_its_own)?;
        let file = owed.first().map_or(FileId(0), |one| one.0);
        // Bytes asked for twice are delivered twice; which time is which nobody can tell.
        let mut left = vec![extent];
        while let Some(part) = left.pop() {
            let index = owed.iter().position(|one| one.1.overlaps(part)).ok_or_else(not_its_own)?;
            let (file, asked) = owed.swap_remove(index);
            let both = asked.intersection(part);
            owed.extend(asked.without(both).map(|rest| (file, rest)));
            left.extend(part.without(both));
        }
        if owed.is_empty() {
            self.owed.remove(&tag);
        }
        self.delivered_bytes += extent.length;
        let is_read = self.settling.is_some_and(|read| read.has_read(file, extent));
        let is_kept = || self.kept.get(&file).is_some_and(|kept| kept.contains(extent));
        match is_read || is_kept() {
            true => Ok(()),
            false => Err(format!("delivers {extent} to request {}, but has not read it", tag.0)),
        }
    }

    fn flushed(&mut self, flush: FlushId) -> Result<(), String> {
        let Some(index) = self.flushes.iter().position(|(asked, _)| *asked == flush) else {
            return Err(format!("answers flush {}, which nobody asked for", flush.0));
        };
        let (_, file) = self.flushes.swap_remove(index);
        match self.is_written(file) {
            true => Ok(()),
            false => Err(format!("flush {} is answered before its bytes are written", flush.0)),
        }
    }

    /// Nothing of the file waits or is under way. Where tails are lost, what is lost never leaves.
    fn is_written(&self, file: FileId) -> bool {
        let is_under_way = |one: &Transfer| one.direction == Direction::Write && one.file == file;
        let waits = self.settings.tails == Tails::Kept
            && self.unwritten.get(&file).is_some_and(|bytes| !bytes.is_empty());
        !waits && !self.in_flight.values().any(is_under_way)
    }
}

impl Transfer {
    fn has_read(self, file: FileId, extent: Extent) -> bool {
        self.direction == Direction::Read && self.file == file && self.extent.contains(extent)
    }

    fn writes_into(self, file: FileId, extent: Extent) -> bool {
        self.direction == Direction::Write && self.file == file && self.extent.overlaps(extent)
    }
}

impl Laws for CacheLaws {
    type Event = Event;
    type Action = Action;

    fn check(&mut self, now: Nanos, event: &Event, actions: &[Action]) -> Result<(), String> {
        self.told(now, event)?;
        let is_answer = |action: &&Action| matches!(action, Action::Admit | Action::Refuse);
        match (event, actions.iter().filter(is_answer).count()) {
            (Event::WriteOffered { .. }, 1) => {}
            (Event::WriteOffered { .. }, count) => {
                return Err(format!("an offered write needs one Admit or Refuse, not {count}"));
            }
            (_, 0) => {}
            _ => return Err("Admit and Refuse only answer an offered write".to_owned()),
        }
        actions.iter().try_for_each(|action| self.take(now, event, *action))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: FileId = FileId(0);

    fn transfer(operation: u32, direction: Direction, from: u64, length: u64) -> Action {
        let (operation, extent) = (Operation(operation), Extent::new(from, length));
        Action::Transfer { operation, direction, file: FILE, extent }
    }

    fn completed(operation: u32) -> Event {
        Event::Completed { operation: Operation(operation) }
    }

    fn deliver(from: u64, length: u64) -> Action {
        Action::Deliver { tag: Tag(7), extent: Extent::new(from, length) }
    }

    type Steps<'a> = &'a [(u64, Event, &'a [Action])];

    /// What a layer that may transfer 10 B at once, two at a time, breaks by these steps.
    fn broken(steps: Steps<'_>) -> Option<String> {
        let settings = Settings { access_bytes: 10, depth: 2, ..Settings::default() };
        let mut laws = CacheLaws::new(settings);
        steps.iter().find_map(|(now, event, out)| laws.check(Nanos(*now), event, out).err())
    }

    const READ: Event = Event::ReadArrived { tag: Tag(7), file: FILE, extent: Extent::new(0, 10) };
    const WRITE: Event =
        Event::WriteArrived { tag: Tag(8), file: FILE, extent: Extent::new(0, 10) };
    const OFFERED: Event = Event::WriteOffered { bytes: 10 };
    const FLUSH: Event = Event::FlushArrived { flush: FlushId(3), file: FILE };
    const FLUSHED: Action = Action::Flushed { flush: FlushId(3) };

    #[test]
    fn a_read_a_write_and_a_flush_that_are_served_break_nothing() {
        use Direction::{Read, Write};
        let kept = Action::Keep { file: FILE, extent: Extent::new(0, 10) };
        let steps: Steps = &[
            (0, READ, &[transfer(0, Read, 0, 10)]),
            (1, OFFERED, &[Action::Admit]),
            (1, WRITE, &[transfer(1, Write, 0, 10)]),
            (2, FLUSH, &[]),
            (3, completed(0), &[deliver(0, 4), deliver(4, 6), kept]),
            (3, Event::DeviceReady, &[Action::WakeAt(Nanos(5))]),
            (4, completed(1), &[FLUSHED]),
            (4, Event::DeviceReady, &[]),
            (5, Event::Woke, &[]),
            (6, Event::Released { bytes: 10 }, &[]),
            (7, READ, &[deliver(0, 10)]),
            (
                8,
                Event::Released { bytes: 10 },
                &[Action::Drop { file: FILE, extent: Extent::new(0, 10) }],
            ),
        ];
        assert_eq!(broken(steps), None);
    }

    #[test]
    fn each_law_that_a_layer_breaks_is_named() {
        use Direction::{Read, Write};
        let read = transfer(0, Read, 0, 10);
        let write = transfer(0, Write, 0, 10);
        let invite = Action::Invite { tag: Tag(7) };
        let keep = |from| Action::Keep { file: FILE, extent: Extent::new(from, 5) };
        let drop = Action::Drop { file: FILE, extent: Extent::new(0, 5) };
        let many: [(Steps, &str); 20] = [
            (&[(0, OFFERED, &[])], "one Admit or Refuse, not 0"),
            (&[(0, OFFERED, &[Action::Admit, Action::Refuse])], "not 2"),
            (&[(0, READ, &[Action::Admit])], "only answer an offered write"),
            (&[(0, READ, &[transfer(0, Read, 0, 0)])], "transfers 0 B at once"),
            (&[(0, READ, &[transfer(0, Read, 0, 11)])], "transfers 11 B at once"),
            (&[(0, READ, &[read, read])], "under way already"),
            (
                &[(0, READ, &[read, transfer(1, Read, 0, 1), transfer(2, Read, 0, 1)])],
                "more than 2",
            ),
            (&[(0, READ, &[write, transfer(1, Write, 9, 1)])], "two writes"),
            (&[(0, READ, &[read]), (1, completed(0), &[read])], "before the device is ready"),
            (&[(0, READ, &[deliver(0, 10)])], "has not read it"),
            (&[(0, READ, &[read]), (1, completed(0), &[deliver(5, 6)])], "not its own"),
            (
                &[(0, READ, &[read]), (1, completed(0), &[deliver(0, 10), deliver(0, 1)])],
                "not its own",
            ),
            (&[(0, READ, &[write]), (1, completed(0), &[deliver(0, 10)])], "has not read it"),
            (&[(0, READ, &[read]), (1, completed(0), &[keep(6)])], "not read just now"),
            (&[(0, READ, &[drop])], "was not kept"),
            (&[(0, READ, &[FLUSHED])], "nobody asked for"),
            (
                &[(0, OFFERED, &[Action::Admit]), (0, WRITE, &[]), (1, FLUSH, &[FLUSHED])],
                "before its bytes",
            ),
            (&[(0, READ, &[write]), (1, FLUSH, &[FLUSHED])], "before its bytes"),
            (&[(0, READ, &[invite])], "announced nothing"),
            (&[(5, READ, &[Action::WakeAt(Nanos(4))])], "which is over"),
        ];
        for (steps, law) in many {
            let told = broken(steps).unwrap_or_else(|| panic!("{law}: {steps:?}"));
            assert!(told.contains(law), "{told} instead of {law}");
        }
    }

    #[test]
    fn each_law_that_a_driver_breaks_is_named() {
        let wake = Action::WakeAt(Nanos(5));
        let many: [(Steps, &str); 6] = [
            (&[(0, FLUSH, &[]), (1, FLUSH, &[])], "open already"),
            (&[(0, WRITE, &[])], "10 B arrive, 0 were admitted"),
            (&[(0, completed(0), &[])], "never began"),
            (&[(0, Event::Released { bytes: 1 }, &[])], "given back"),
            (&[(0, Event::Woke, &[])], "no time was due"),
            (&[(0, READ, &[wake]), (4, Event::Woke, &[])], "no time was due"),
        ];
        for (steps, law) in many {
            let told = broken(steps).unwrap_or_else(|| panic!("{law}: {steps:?}"));
            assert!(told.contains(law), "{told} instead of {law}");
        }
    }
}
