//! A server without a cache layer's cleverness, and a driver that holds a layer against it.
//!
//! Every byte has a version: the number of the write it came with. `truth` is what has been
//! admitted, newest last; `memory` what the driver keeps over the device; `device` what a power cut
//! would leave. The driver does what the discipline of `policy::cache` says, in any order it
//! allows, and reports the first broken law or promise.

pub(crate) mod choice;

use choice::Choice;
use iolab_policy::Laws;
use iolab_policy::cache::{Action, Cache, CacheLaws, Event, FlushId, Operation, Settings, Tag};
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
    laws: CacheLaws,
    scenario: Scenario,
    choice: Choice,
    now: Nanos,
    order: u64,
    arrivals: VecDeque<Request>,
    packets: VecDeque<Packet>,
    /// What clients would send, where they wait to be invited.
    announced: Option<BTreeMap<Tag, Vec<Packet>>>,
    parked: VecDeque<Packet>,
    flights: Vec<Flight>,
    /// The transfer whose completion is being told.
    landed: Option<Flight>,
    readings: BTreeMap<Tag, Reading>,
    to_release: Vec<u64>,
    wakes: BTreeSet<Nanos>,
    flushes: BTreeMap<FlushId, BTreeMap<Place, u32>>,
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
            laws: CacheLaws::new(scenario.settings),
            choice,
            now: Nanos::ZERO,
            order: 0,
            arrivals: scenario.requests.iter().copied().collect(),
            scenario,
            packets: VecDeque::new(),
            announced: None,
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

    /// Clients send what they have announced when they are invited.
    pub(crate) fn by_invitation(mut self) -> World {
        self.announced = Some(BTreeMap::new());
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
        self.laws.check(self.now, &event, &out)?;
        let (mut answer, mut retries) = (None, false);
        for action in out {
            match action {
                Action::Admit => answer = Some(true),
                Action::Refuse => answer = Some(false),
                Action::RetryRefused => retries = true,
                Action::Transfer { operation, direction, file, extent } => {
                    self.start(operation, direction, file, extent)?;
                }
                Action::Deliver { tag, extent } => self.deliver(tag, extent)?,
                Action::Flushed { flush } => self.flushed(flush)?,
                Action::Invite { tag } => self.invited(tag)?,
                Action::Keep { file, extent } => self.keep(file, extent)?,
                Action::Drop { file, extent } => self.let_go(file, extent)?,
                Action::WakeAt(time) => _ = self.wakes.insert(time),
            }
        }
        let (held, capacity) = (self.cache.held_bytes(), self.scenario.settings.capacity_bytes);
        if held > capacity {
            return Err(format!("{held} bytes held, {capacity} there are, after {event:?}"));
        }
        if retries {
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
                match &mut self.announced {
                    None => self.packets.extend(packets),
                    Some(announced) => _ = announced.insert(tag, packets.collect()),
                }
                self.tell(Event::WriteAnnounced { tag, file, extent }).map(drop)
            }
            Request::Flush(file) => {
                let of_file = self.truth.iter().filter(|(place, _)| place.0 == file);
                let flush = FlushId(self.tags);
                self.flushes.insert(flush, of_file.map(|(place, at)| (*place, *at)).collect());
                self.tell(Event::FlushArrived { flush, file }).map(drop)
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

    /// Where clients send by themselves, an invitation changes nothing.
    fn invited(&mut self, tag: Tag) -> Result<(), String> {
        let Some(announced) = &mut self.announced else { return Ok(()) };
        let packets = announced.remove(&tag).ok_or_else(|| format!("{tag:?} was invited twice"))?;
        self.packets.extend(packets);
        Ok(())
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

    /// What is delivered must have been read after the read came, or be kept; and be new enough.
    fn deliver(&mut self, tag: Tag, extent: Extent) -> Result<(), String> {
        let reading = self.readings.get_mut(&tag).expect("the laws know who asked");
        let source: BTreeMap<u64, u32> = match &self.landed {
            Some(flight) if flight.order >= reading.order => seen_by(flight, &self.memory),
            Some(_) => return Err(format!("{tag:?} delivered from a transfer older than itself")),
            None => {
                let of_file = self.kept.iter().filter(|(place, _)| place.0 == reading.file);
                of_file.map(|(place, version)| (place.1, *version)).collect()
            }
        };
        for at in extent.offset..extent.end() {
            let known = reading.missing.remove(&at).ok_or_else(|| format!("{at} comes twice"))?;
            match source.get(&at) {
                None => return Err(format!("byte {at} is delivered from nowhere")),
                Some(seen) if *seen < known => {
                    return Err(format!("{tag:?} got bytes older than what it could know of"));
                }
                Some(_) => {}
            }
        }
        self.to_release.push(extent.length);
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

    fn flushed(&mut self, flush: FlushId) -> Result<(), String> {
        let promised = self.flushes.remove(&flush).expect("the laws know who flushes");
        let is_there = |(place, version): (&Place, &u32)| {
            self.device.get(place).is_some_and(|there| there >= version)
        };
        match promised.iter().all(is_there) {
            true => Ok(()),
            false => Err(format!("{flush:?} was told before its bytes were there")),
        }
    }

    fn check_end(&self) -> Result<(), String> {
        let unread = self.readings.values().filter(|reading| !reading.missing.is_empty()).count();
        let is_nobody_left = self.announced.as_ref().is_none_or(BTreeMap::is_empty);
        let checks = [
            (is_nobody_left, "whoever announced a write was never invited".to_owned()),
            (self.parked.is_empty(), "a refused packet was never retried".to_owned()),
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
