//! A server without a cache layer's cleverness, and a driver that holds a layer against it.
//!
//! Every byte has a version: the number of the write it came with. `truth` is what has been
//! admitted, newest last; `memory` what the driver keeps over the device; `device` what a power cut
//! would leave. The driver does what the discipline of `policy::cache` says, in any order it
//! allows, and reports the first broken promise.

pub(crate) mod choice;

use choice::Choice;
use iolab_policy::cache::{Action, Cache, Event, Operation, Settings, Tag, Turns};
use iolab_vocab::{Direction, Extent, FileId, Nanos};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What a client asks of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Read(FileId, Extent),
    Write(FileId, Extent),
    Flush(FileId),
}

/// The smallest world in which everything can go wrong.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) settings: Settings,
    pub(crate) packet_bytes: u64,
    pub(crate) requests: Vec<Request>,
}

type Place = (FileId, u64);

struct Flight {
    operation: Operation,
    direction: Direction,
    file: FileId,
    extent: Extent,
    /// Versions a write carries, or a read has seen at its start.
    bytes: BTreeMap<u64, u32>,
    order: u64,
}

struct Reading {
    file: FileId,
    /// What has not been delivered, and the version the client knows to be there.
    missing: BTreeMap<u64, u32>,
    /// When it came, in turns.
    order: u64,
}

struct Packet {
    tag: Tag,
    file: FileId,
    extent: Extent,
}

/// The driver.
pub(crate) struct World {
    cache: Box<dyn Cache>,
    scenario: Scenario,
    choice: Choice,
    now: Nanos,
    order: u64,
    arrivals: VecDeque<Request>,
    packets: VecDeque<Packet>,
    /// Whose turn it is to send, where clients do not send by themselves, and what they would.
    turns: Option<Turns>,
    announced: BTreeMap<Tag, Vec<Packet>>,
    parked: VecDeque<Packet>,
    flights: Vec<Flight>,
    /// The transfer whose completion is being told.
    landed: Option<Flight>,
    readings: BTreeMap<Tag, Reading>,
    to_release: Vec<u64>,
    wakes: BTreeSet<Nanos>,
    flushes: BTreeMap<Tag, BTreeMap<Place, u32>>,
    versions: u32,
    tags: u32,
    truth: BTreeMap<Place, u32>,
    memory: BTreeMap<Place, u32>,
    device: BTreeMap<Place, u32>,
    /// What a read cache holds on to.
    kept: BTreeMap<Place, u32>,
    admissions: BTreeMap<Place, u32>,
    writes: BTreeMap<Place, u32>,
}

/// How often the world may turn before it counts as stuck.
const PATIENCE: u64 = 20_000;

impl World {
    pub(crate) fn new(cache: Box<dyn Cache>, scenario: Scenario, choice: Choice) -> World {
        World {
            cache,
            choice,
            now: Nanos::ZERO,
            order: 0,
            arrivals: scenario.requests.iter().copied().collect(),
            scenario,
            packets: VecDeque::new(),
            turns: None,
            announced: BTreeMap::new(),
            parked: VecDeque::new(),
            flights: Vec::new(),
            landed: None,
            readings: BTreeMap::new(),
            to_release: Vec::new(),
            wakes: BTreeSet::new(),
            flushes: BTreeMap::new(),
            versions: 0,
            tags: 0,
            truth: BTreeMap::new(),
            memory: BTreeMap::new(),
            device: BTreeMap::new(),
            kept: BTreeMap::new(),
            admissions: BTreeMap::new(),
            writes: BTreeMap::new(),
        }
    }

    /// Clients announce writes and send when the server says so.
    pub(crate) fn in_turns(mut self) -> World {
        self.turns = Some(Turns::default());
        self
    }

    /// Lets everything happen. Returns the decisions for the next path.
    pub(crate) fn run(mut self) -> (Result<(), String>, Choice) {
        let outcome = self.turn_until_over().and_then(|()| self.check_end());
        (outcome, self.choice)
    }

    fn turn_until_over(&mut self) -> Result<(), String> {
        for _ in 0..PATIENCE {
            if !self.turn()? {
                return Ok(());
            }
        }
        Err("the world never comes to rest".to_owned())
    }

    /// One thing happens, of all that could. A timer may ring late, as timers do.
    fn turn(&mut self) -> Result<bool, String> {
        self.order += 1;
        self.now = self.now.after(Nanos(1));
        self.give_turns();
        let sources = [
            self.arrivals.len().min(1),
            self.packets.len().min(1),
            self.flights.len(),
            self.to_release.len().min(1),
            self.wakes.len().min(1),
        ];
        let count: usize = sources.iter().sum();
        if count == 0 {
            return Ok(false);
        }
        let mut index = self.choice.below(count as u64) as usize;
        let source = sources.iter().position(|&size| {
            let is_it = index < size;
            index -= if is_it { 0 } else { size };
            is_it
        });
        match source.expect("the index is below the sum") {
            0 => self.arrive()?,
            1 => self.packet_arrives()?,
            2 => self.complete(index)?,
            3 => self.release()?,
            _ => self.wake()?,
        }
        Ok(true)
    }

    fn tell(&mut self, event: Event) -> Result<bool, String> {
        let mut out = Vec::new();
        self.cache.step(self.now, event, &mut out);
        let (mut answer, mut is_welcome) = (None, false);
        for action in out {
            match action {
                Action::Admit => answer = Some(true),
                Action::Refuse => answer = Some(false),
                Action::Welcome => is_welcome = true,
                Action::Transfer { operation, direction, file, extent } => {
                    self.start(operation, direction, file, extent)?;
                }
                Action::Deliver { tag, bytes } => self.deliver(tag, bytes, event)?,
                Action::Flushed { tag } => self.flushed(tag)?,
                Action::Keep { file, extent } => self.keep(file, extent)?,
                Action::Drop { file, extent } => self.let_go(file, extent)?,
                Action::WakeAt(time) => _ = self.wakes.insert(time),
            }
        }
        if answer.is_some() != matches!(event, Event::WriteOffered { .. }) {
            return Err(format!("{event:?} was answered by {answer:?}"));
        }
        let (held, capacity) = (self.cache.held_bytes(), self.scenario.settings.capacity_bytes);
        if held > capacity {
            return Err(format!("{held} bytes held, {capacity} there are, after {event:?}"));
        }
        if is_welcome {
            self.offer_parked()?;
        }
        Ok(answer == Some(true))
    }

    fn arrive(&mut self) -> Result<(), String> {
        let request = self.arrivals.pop_front().expect("one waits");
        self.tags += 1;
        let tag = Tag(self.tags);
        match request {
            Request::Read(file, extent) => self.read(file, extent),
            Request::Write(file, extent) => {
                let cut = cut(extent, self.scenario.packet_bytes);
                let packets = cut.map(|extent| Packet { tag, file, extent });
                match &mut self.turns {
                    None => self.packets.extend(packets),
                    Some(turns) => {
                        turns.announced(tag, file, extent.offset, extent.length);
                        self.announced.insert(tag, packets.collect());
                    }
                }
                Ok(())
            }
            Request::Flush(file) => {
                let of_file = self.truth.iter().filter(|(place, _)| place.0 == file);
                self.flushes.insert(tag, of_file.map(|(place, at)| (*place, *at)).collect());
                self.tell(Event::FlushArrived { tag, file }).map(drop)
            }
        }
    }

    fn read(&mut self, file: FileId, extent: Extent) -> Result<(), String> {
        for extent in cut(extent, self.scenario.settings.access_bytes) {
            self.tags += 1;
            let tag = Tag(self.tags);
            let known = |at| self.truth.get(&(file, at)).copied().unwrap_or(0);
            let missing = (extent.offset..extent.end()).map(|at| (at, known(at))).collect();
            self.readings.insert(tag, Reading { file, missing, order: self.order });
            self.tell(Event::ReadArrived { tag, file, extent })?;
        }
        Ok(())
    }

    fn give_turns(&mut self) {
        let free_bytes = self.scenario.settings.capacity_bytes - self.cache.held_bytes();
        while let Some(turns) = &mut self.turns
            && let Some(tag) = turns.next(free_bytes)
        {
            self.packets.extend(self.announced.remove(&tag).expect("each has one turn"));
        }
    }

    fn packet_arrives(&mut self) -> Result<(), String> {
        let packet = self.packets.pop_front().expect("one is on its way");
        if self.offer(&packet)? {
            return Ok(());
        }
        self.parked.push_back(packet);
        Ok(())
    }

    fn offer(&mut self, packet: &Packet) -> Result<bool, String> {
        if !self.tell(Event::WriteOffered { bytes: packet.extent.length })? {
            return Ok(false);
        }
        if let Some(turns) = &mut self.turns {
            turns.arrived(packet.extent.length);
        }
        let (tag, file) = (packet.tag, packet.file);
        for extent in cut(packet.extent, self.scenario.settings.access_bytes) {
            self.versions += 1;
            for at in extent.offset..extent.end() {
                self.truth.insert((file, at), self.versions);
                self.memory.insert((file, at), self.versions);
                if let Some(kept) = self.kept.get_mut(&(file, at)) {
                    *kept = self.versions;
                }
                *self.admissions.entry((file, at)).or_default() += 1;
            }
            self.tell(Event::WriteArrived { tag, file, extent })?;
        }
        Ok(true)
    }

    fn offer_parked(&mut self) -> Result<(), String> {
        while let Some(packet) = self.parked.pop_front() {
            if !self.offer(&packet)? {
                self.parked.push_front(packet);
                break;
            }
        }
        Ok(())
    }

    fn start(
        &mut self,
        operation: Operation,
        direction: Direction,
        file: FileId,
        extent: Extent,
    ) -> Result<(), String> {
        let settings = self.scenario.settings;
        let is_double = self.flights.iter().any(|flight| flight.operation == operation);
        if is_double || self.flights.len() >= settings.depth as usize {
            return Err(format!("{operation:?} is one too many on the device"));
        }
        if extent.is_empty() || extent.length > settings.access_bytes {
            return Err(format!("a transfer of {extent} where {} are most", settings.access_bytes));
        }
        let mut bytes = versions_in(&self.memory, file, extent);
        match direction {
            Direction::Write => self.check_write(file, extent)?,
            Direction::Read => {
                for (at, version) in versions_in(&self.device, file, extent) {
                    bytes.entry(at).or_insert(version);
                }
            }
        }
        let order = self.order;
        self.flights.push(Flight { operation, direction, file, extent, bytes, order });
        Ok(())
    }

    fn check_write(&mut self, file: FileId, extent: Extent) -> Result<(), String> {
        let is_write = |flight: &&Flight| flight.direction == Direction::Write;
        let mut others = self.flights.iter().filter(is_write);
        if others.any(|other| other.file == file && other.extent.overlaps(extent)) {
            return Err(format!("two writes of {extent} are in flight at once"));
        }
        for at in extent.offset..extent.end() {
            let written = self.writes.entry((file, at)).or_default();
            *written += 1;
            if *written > self.admissions.get(&(file, at)).copied().unwrap_or(0) {
                return Err(format!("byte {at} is written more often than it came"));
            }
        }
        Ok(())
    }

    fn complete(&mut self, index: usize) -> Result<(), String> {
        let flight = self.flights.remove(index);
        let (operation, direction) = (flight.operation, flight.direction);
        if direction == Direction::Write {
            self.settle_write(&flight);
        }
        self.landed = Some(flight);
        self.tell(Event::Completed { operation })?;
        self.landed = None;
        if direction == Direction::Write {
            self.offer_parked()?;
        }
        self.tell(Event::DeviceReady).map(drop)
    }

    fn settle_write(&mut self, flight: &Flight) {
        for (at, version) in &flight.bytes {
            let place = (flight.file, *at);
            self.device.insert(place, *version);
            if self.memory.get(&place) == Some(version) {
                self.memory.remove(&place);
            }
        }
    }

    /// What is delivered must just have been read, after the read came, or be kept; and be new
    /// enough.
    fn deliver(&mut self, tag: Tag, bytes: u64, event: Event) -> Result<(), String> {
        let Some(reading) = self.readings.get_mut(&tag) else {
            return Err(format!("{bytes} bytes delivered to {tag:?}, who did not ask"));
        };
        let source: BTreeMap<u64, u32> = match &self.landed {
            Some(flight)
                if flight.direction == Direction::Read
                    && flight.file == reading.file
                    && flight.order >= reading.order =>
            {
                seen_by(flight, &self.memory)
            }
            Some(_) => return Err(format!("{tag:?} delivered from a transfer not its own")),
            None => {
                let of_file = self.kept.iter().filter(|(place, _)| place.0 == reading.file);
                of_file.map(|(place, version)| (place.1, *version)).collect()
            }
        };
        let (before, mut is_stale) = (reading.missing.len(), false);
        reading.missing.retain(|at, known| {
            let seen = source.get(at);
            is_stale |= seen.is_some_and(|seen| seen < known);
            seen.is_none()
        });
        if is_stale {
            return Err(format!("{tag:?} got bytes older than what it could know of"));
        }
        if before - reading.missing.len() != bytes as usize {
            return Err(format!("{bytes} bytes delivered to {tag:?} on {event:?}, not its own"));
        }
        self.to_release.push(bytes);
        Ok(())
    }

    fn keep(&mut self, file: FileId, extent: Extent) -> Result<(), String> {
        let Some(flight) = &self.landed else { return Err(format!("{extent} was not read")) };
        if flight.direction != Direction::Read || flight.file != file {
            return Err(format!("{extent} was not read"));
        }
        let seen = seen_by(flight, &self.memory);
        for at in extent.offset..extent.end() {
            let Some(version) = seen.get(&at) else { return Err(format!("{at} was not read")) };
            let truth = self.truth.get(&(file, at)).copied().unwrap_or(0);
            if *version < truth {
                return Err(format!("byte {at} is kept as of {version}, but is {truth}"));
            }
            if self.kept.insert((file, at), *version).is_some() {
                return Err(format!("byte {at} is kept twice"));
            }
        }
        Ok(())
    }

    fn let_go(&mut self, file: FileId, extent: Extent) -> Result<(), String> {
        let mut all = extent.offset..extent.end();
        match all.all(|at| self.kept.remove(&(file, at)).is_some()) {
            true => Ok(()),
            false => Err(format!("{extent} is dropped, but was not kept")),
        }
    }

    fn release(&mut self) -> Result<(), String> {
        let bytes = self.to_release.pop().expect("some memory is to be given back");
        self.tell(Event::Released { bytes }).map(drop)
    }

    fn wake(&mut self) -> Result<(), String> {
        let time = self.wakes.pop_first().expect("a timer runs");
        self.now = self.now.max(time);
        self.tell(Event::Woke).map(drop)
    }

    fn flushed(&mut self, tag: Tag) -> Result<(), String> {
        let Some(promised) = self.flushes.remove(&tag) else {
            return Err(format!("{tag:?} did not flush"));
        };
        let is_there = |(place, version): (&Place, &u32)| {
            self.device.get(place).is_some_and(|there| there >= version)
        };
        match promised.iter().all(is_there) {
            true => Ok(()),
            false => Err(format!("{tag:?} was told of a flush before its bytes were there")),
        }
    }

    fn check_end(&self) -> Result<(), String> {
        let unread = self.readings.values().filter(|reading| !reading.missing.is_empty()).count();
        let checks = [
            (self.announced.is_empty(), "whoever announced a write never had a turn".to_owned()),
            (self.parked.is_empty(), "a refused packet was never welcomed again".to_owned()),
            (unread == 0, format!("{unread} reads were never answered")),
            (self.flushes.is_empty(), "a flush was never answered".to_owned()),
            (self.memory.is_empty(), "admitted bytes were never written".to_owned()),
            (self.device == self.truth, "the device does not hold what was written".to_owned()),
            (self.cache.queued_count() == 0, "requests wait though all is done".to_owned()),
            (self.cache.held_bytes() == self.kept.len() as u64, "memory was lost".to_owned()),
        ];
        match checks.into_iter().find(|(holds, _)| !holds) {
            Some((_, broken)) => Err(broken),
            None => Ok(()),
        }
    }
}

/// What a read got, byte by byte: the device's bytes under those in memory, at its start or now.
fn seen_by(flight: &Flight, memory: &BTreeMap<Place, u32>) -> BTreeMap<u64, u32> {
    let version = |at: u64| {
        let in_memory = memory.get(&(flight.file, at));
        flight.bytes.get(&at).max(in_memory).copied().unwrap_or(0)
    };
    (flight.extent.offset..flight.extent.end()).map(|at| (at, version(at))).collect()
}

fn versions_in(all: &BTreeMap<Place, u32>, file: FileId, extent: Extent) -> BTreeMap<u64, u32> {
    let range = all.range((file, extent.offset)..(file, extent.end()));
    range.map(|(place, version)| (place.1, *version)).collect()
}

fn cut(extent: Extent, most: u64) -> impl Iterator<Item = Extent> {
    let starts = (extent.offset..extent.end()).step_by(most as usize);
    starts.map(move |start| Extent::new(start, most.min(extent.end() - start)))
}
