//! Disks of the I/O servers: subfiles as bytes. A transfer happens in two halves, each of them any of its
//! bytes, so whatever is let in between is seen; a crash leaves any part of what was under way. A power cut
//! leaves of each sector what was synced last or what was written since, and of a subfile that was never
//! synced perhaps not even its name; a sync that fails drops what it was to write, so that no later one brings it.

use super::space::Space;
use super::sums::Sums;
use super::{Happening, Node, World};
use crate::dice::Dice;
use crate::marks::Mark;
use iolab_pfs::configuration::Durability;
use iolab_pfs::io_server::{Event, Operation, Outcome, Subfile};
use iolab_pfs::{Buffer, Code, Inode, Layout, Portion};
use iolab_vocab::{Direction, Extent};
use std::collections::{BTreeMap, BTreeSet};

/// What a disk writes or does not.
pub(super) const SECTOR_BYTES: usize = 32;
/// How many times as long as other works some reads take where files are cut meanwhile.
const SLOW_READ: u64 = 64;

/// What a server has on its disk.
#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    /// As its kernel has it.
    pub(super) subfiles: BTreeMap<Subfile, Vec<u8>>,
    /// As the disk has it, where nothing is dirty.
    synced: BTreeMap<Subfile, Vec<u8>>,
    /// Sectors that the disk may not have as the kernel has them.
    dirty: BTreeMap<Subfile, BTreeSet<usize>>,
    /// Where subfiles were cut since: of what the disk has behind that the kernel knows nothing any more.
    cut: BTreeMap<Subfile, usize>,
    /// What of it is taken.
    pub(super) space: Space,
    /// What it has to tell what was written from what was not.
    pub(super) sums: Sums,
    /// A sync has failed, and the server has not begun a new life since.
    pub(super) has_failed: bool,
    /// Syncs that have begun.
    syncs: u64,
}

/// What a sync that is under way writes: sectors as they were when it began, and how long the subfile was.
#[derive(Clone, Debug, Default)]
pub(super) struct Syncing {
    pub(super) sectors: BTreeMap<usize, Vec<u8>>,
    bytes: usize,
    /// Where the subfile had been cut that the disk may not know of.
    cut: Option<usize>,
    /// Its place in the order in which they began.
    number: u64,
}

impl Syncing {
    /// One that began later is over: nothing older is written over what it has written.
    pub(super) fn overtaken_by(&mut self, later: &Syncing) {
        if self.number < later.number && !later.sectors.is_empty() {
            self.bytes = later.bytes;
            for (at, sector) in &mut self.sectors {
                if let Some(newer) = later.sectors.get(at) {
                    sector.clone_from(newer);
                }
            }
        }
    }
}

/// What a device has to do.
#[derive(Clone, Debug)]
pub(super) enum Work {
    Transfer(Box<Transfer>),
    Measure { subfile: Subfile },
    Resize { subfile: Subfile, bytes: u64, extends: bool },
    Sync { subfile: Subfile, syncing: Syncing },
    Discard { inode: Inode },
    Room { subfile: Subfile, extents: Vec<Extent> },
    Strike { subfile: Subfile, extents: Vec<Extent>, is_whole: bool },
    Sum { subfile: Subfile, pages: Extent, syncing: Syncing },
}

/// Bytes under way.
#[derive(Clone, Debug)]
pub(super) struct Transfer {
    pub(super) writes: bool,
    pub(super) subfile: Subfile,
    pub(super) from: Option<Buffer>,
    /// Where in the subfile each byte of the portion lies.
    pub(super) places: Vec<u64>,
    /// What is read, or written.
    bytes: Vec<u8>,
    /// Which bytes are the first half: the low bits of a hash of this and their number.
    halves: u64,
    pub(super) begun: bool,
    /// It is to fail.
    is_spoiled: bool,
}

impl Transfer {
    fn is_in_first_half(&self, at: usize) -> bool {
        match self.halves % 4 {
            0 => true,
            1 => false,
            _ => (self.halves ^ at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 63 == 0,
        }
    }
}

impl Work {
    pub(super) fn is_spoiled(&self) -> bool {
        matches!(self, Work::Transfer(transfer) if transfer.is_spoiled)
    }

    pub(super) fn transfer(
        direction: Direction,
        subfile: Subfile,
        portion: Portion,
        from: Option<Buffer>,
    ) -> Work {
        let places = places_of(&portion);
        let bytes = vec![0; places.len()];
        let writes = direction == Direction::Write;
        Work::Transfer(Box::new(Transfer {
            writes,
            subfile,
            from,
            places,
            bytes,
            halves: 0,
            begun: false,
            is_spoiled: false,
        }))
    }
}

/// Where in its subfile each byte of a portion lies.
fn places_of(portion: &Portion) -> Vec<u64> {
    let mut places = Vec::new();
    for piece in portion.pieces() {
        for y in piece.from..piece.to {
            let x = portion.view.at(y).expect("a piece lies in its view");
            places.push(x - piece.stripe.offset + piece.place);
        }
    }
    places
}

impl World {
    pub(super) fn begin_work(&mut self, at: u32, operation: Operation, mut work: Work) {
        if let Work::Transfer(transfer) = &mut work {
            transfer.halves = self.dice.bits();
            if let Err(what) = self.check_transfer(at, transfer) {
                return self.fail(what);
            }
        }
        let is_for_device = self.plan.durability == Durability::Device;
        match &mut work {
            Work::Sum { .. } if !is_for_device => {}
            Work::Sync { subfile, syncing } | Work::Sum { subfile, syncing, .. } => {
                *syncing = self.servers[at as usize].begin_sync(*subfile);
            }
            _ => {}
        }
        let times = match &work {
            Work::Sync { .. } | Work::Sum { .. } => self.plan.slow_syncs,
            Work::Transfer(it) if !it.writes && self.trouble(self.plan.rates.fetch) => SLOW_READ,
            _ => 1,
        };
        let life = self.servers[at as usize].life;
        if self.servers[at as usize].works.insert(operation.0, work).is_some() {
            return self.fail(format!("server {at} uses the number of {operation:?} twice"));
        }
        let mut delay = self.delay();
        delay += delay.min(self.plan.pace_ns) * (times - 1);
        self.later(delay, Happening::Works { server: at, life, operation: operation.0 });
    }

    /// What is written has as many bytes as it should, and was not written before in this life.
    fn check_transfer(&mut self, at: u32, transfer: &mut Transfer) -> Result<(), String> {
        let Some(buffer) = transfer.from else { return Ok(()) };
        let server = &mut self.servers[at as usize];
        let Some(bytes) = server.buffers.get(&buffer.0) else {
            return Err(format!("server {at} writes buffer {buffer}, which it has not"));
        };
        if bytes.len() != transfer.places.len() {
            let (has, wants) = (bytes.len(), transfer.places.len());
            return Err(format!("server {at} writes {wants} bytes of a buffer that has {has}"));
        }
        transfer.bytes.clone_from(bytes);
        match server.brought.get(&buffer.0) {
            Some(&request) if !server.written.insert(request) => {
                Err(format!("server {at} writes for {request:?} a second time in one life"))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn work(&mut self, at: u32, life: u32, operation: u64) {
        if self.servers[at as usize].life != life || !self.servers[at as usize].up {
            return;
        }
        let Some(mut work) = self.servers[at as usize].works.remove(&operation) else { return };
        self.log(&[u64::from(at), operation]);
        let fails = self.fails(&work);
        if self.is_full_for(at, &mut work) {
            return self.end_full(at, operation, work);
        }
        if let Work::Transfer(transfer) = &mut work
            && !transfer.begun
        {
            transfer.begun = true;
            let result = self.servers[at as usize].disk.half(transfer, true);
            self.check(result);
            if !fails {
                self.servers[at as usize].works.insert(operation, work);
                let delay = self.delay();
                return self.later(delay, Happening::Works { server: at, life, operation });
            }
        }
        if let Work::Sync { subfile, syncing } | Work::Sum { subfile, syncing, .. } = &work
            && fails
        {
            self.meet(Mark::SyncFailed);
            self.servers[at as usize].sync_failed(*subfile, syncing);
        }
        let result = if fails { Err(self.device_failure()) } else { self.finish(at, &mut work) };
        if let Work::Transfer(transfer) = &work
            && let Some(buffer) = transfer.from
        {
            self.take_buffer(at, buffer);
        }
        let operation = Operation(operation);
        let asker = self.servers[at as usize].asker(operation);
        self.tell_server(at, Event::Done { operation, result });
        if let (Work::Transfer(transfer), Some((peer, _))) = (work, asker)
            && transfer.is_spoiled
            && !self.servers[at as usize].has_spoiled(peer)
        {
            self.hold_up(peer);
        }
    }

    /// A file is to be cut while a cache manager fetches from it: of what is under way for that, some parts fail,
    /// so that whoever waits for them all waits no longer, and what servers have read of the others comes late.
    pub(super) fn spoil_fetches(&mut self, cache: u32, inode: Inode) {
        if !self.trouble(self.plan.rates.fetch) {
            return;
        }
        let mut fetches = Vec::new();
        for (at, server) in self.servers.iter().enumerate() {
            let fetch = |(&number, work): (&u64, &Work)| {
                let Work::Transfer(transfer) = work else { return None };
                let (peer, _) = server.asker(Operation(number))?;
                let is_meant = !transfer.writes && transfer.subfile.inode == inode;
                (is_meant && self.asks(Node::Cache(cache), peer)).then_some((at, number, peer))
            };
            fetches.extend(server.works.iter().filter_map(fetch));
        }
        let first = self.dice.below(fetches.len() as u64) as usize;
        for (place, &(at, number, _)) in fetches.iter().enumerate() {
            // Of two or more, one at least is left that comes late.
            let is_left = place == (first + 1) % fetches.len();
            if place != first && (is_left || self.dice.one_in(2)) {
                continue;
            }
            if let Some(Work::Transfer(transfer)) = self.servers[at].works.get_mut(&number) {
                transfer.is_spoiled = true;
                let (server, life) = (at as u32, self.servers[at].life);
                self.later(0, Happening::Works { server, life, operation: number });
            }
        }
        for (at, _, peer) in fetches {
            if !self.servers[at].has_spoiled(peer) {
                self.hold_up(peer);
            }
        }
    }

    /// Whether the device fails to do it now.
    fn fails(&mut self, work: &Work) -> bool {
        let rates = self.plan.rates;
        let (disturbs, special) = match work {
            Work::Discard { .. } => (false, 0),
            Work::Sync { .. } | Work::Sum { .. } => {
                (self.plan.durability == Durability::Device, rates.sync)
            }
            Work::Strike { .. } => (false, 0),
            Work::Resize { .. } => (true, rates.cut),
            Work::Transfer(transfer) if transfer.is_spoiled => return true,
            Work::Transfer(_) | Work::Measure { .. } | Work::Room { .. } => (true, 0),
        };
        disturbs && self.trouble(rates.disk) || self.trouble(special)
    }

    fn device_failure(&mut self) -> Code {
        self.meet(Mark::DeviceFailed);
        *self.dice.pick(&[Code::IO, Code::NO_SPACE])
    }

    fn finish(&mut self, at: u32, work: &mut Work) -> Result<Outcome, Code> {
        let disk = &mut self.servers[at as usize].disk;
        match work {
            Work::Transfer(transfer) => {
                let result = disk.half(transfer, false);
                self.check(result);
                if transfer.writes {
                    return Ok(Outcome::Nothing);
                }
                let buffer = self.fresh();
                let (subfile, disk) = (transfer.subfile, &self.servers[at as usize].disk);
                let outcome = disk.look_at_sums(subfile, &transfer.places, buffer);
                if let Outcome::Damaged { from, to } = outcome {
                    self.damage_found(at, subfile, (from, to));
                    return Ok(outcome);
                }
                let bytes = std::mem::take(&mut transfer.bytes);
                self.servers[at as usize].buffers.insert(buffer, bytes);
                Ok(outcome)
            }
            Work::Strike { subfile, extents, is_whole } => {
                if let Some(outcome) = disk.check_kept(*subfile, extents, *is_whole) {
                    if let Outcome::Damaged { from, to } = outcome {
                        self.damage_found(at, *subfile, (from, to));
                    }
                    return Ok(outcome);
                }
                if disk.strike(*subfile, extents) {
                    disk.sync_sums(*subfile);
                }
                Ok(Outcome::Nothing)
            }
            Work::Sum { subfile, pages, syncing } => {
                let server = &mut self.servers[at as usize];
                if self.plan.durability == Durability::Device {
                    server.end_sync(*subfile, std::mem::take(syncing));
                }
                server.disk.sum(*subfile, *pages);
                self.meet(Mark::PagesSummed);
                if self.trouble(self.plan.rates.rot) {
                    let World { servers, dice, .. } = self;
                    let busy = servers[at as usize].sectors_under_way(*subfile);
                    if let Some(byte) = servers[at as usize].disk.rot(*subfile, &busy, dice) {
                        let what = || format!("server {at}: byte {byte} of {subfile:?} is changed");
                        self.tell(&what);
                        self.meet(Mark::Rotten);
                    }
                }
                Ok(Outcome::Nothing)
            }
            Work::Measure { subfile } => {
                let bytes = disk.subfiles.get(subfile).map_or(0, Vec::len);
                Ok(Outcome::Length(bytes as u64))
            }
            Work::Resize { subfile, bytes, extends } => {
                let bytes = *bytes as usize;
                disk.rot_is_cut(*subfile, bytes);
                disk.space.cut(*subfile, bytes);
                let entry = disk.subfiles.entry(*subfile).or_default();
                if bytes < entry.len() || *extends {
                    let (before, after) = (entry.len(), bytes.min(1 << 20));
                    entry.resize(after, 0);
                    disk.is_cut(*subfile, after);
                    disk.soil(*subfile, before.min(after), before.max(after));
                }
                Ok(Outcome::Nothing)
            }
            Work::Room { subfile, extents } => {
                let places = extents.iter().flat_map(|extent| extent.offset..extent.end());
                let missing = disk.space.missing_bytes(*subfile, places);
                let (used, device) = (disk.space.used_bytes(), self.plan.rates.device);
                let free = if device > 0 { device.saturating_sub(used) } else { u64::MAX };
                Ok(Outcome::Room { free, used, missing, unit: SECTOR_BYTES as u64 })
            }
            Work::Sync { subfile, syncing } => {
                self.servers[at as usize].end_sync(*subfile, std::mem::take(syncing));
                Ok(Outcome::Nothing)
            }
            Work::Discard { inode } => {
                disk.subfiles.retain(|subfile, _| subfile.inode != *inode);
                disk.synced.retain(|subfile, _| subfile.inode != *inode);
                disk.dirty.retain(|subfile, _| subfile.inode != *inode);
                disk.cut.retain(|subfile, _| subfile.inode != *inode);
                disk.space.discard(*inode);
                disk.discard_sums(*inode);
                Ok(Outcome::Nothing)
            }
        }
    }

    /// A page did not have its sum: then the device must have changed it.
    fn damage_found(&mut self, at: u32, subfile: Subfile, (from, to): (u64, u64)) {
        self.meet(Mark::DamageFound);
        if !self.servers[at as usize].disk.is_rotten(subfile, from, to) {
            let text = format!("server {at} takes bytes {from} to {to} of {subfile:?} for damaged");
            self.fail(text);
        }
    }

    /// A file as it is on the disks, holes as zeros.
    pub(super) fn on_disks(&self, inode: Inode, layout: Layout) -> Vec<(u32, u8)> {
        let mut file = Vec::new();
        for index in 0..layout.subfiles() {
            let server = layout.server_of(index, self.plan.servers);
            let subfile = Subfile { inode, index };
            let Some(bytes) = self.servers[server as usize].disk.subfiles.get(&subfile) else {
                continue;
            };
            for (&byte, y) in bytes.iter().zip(0..) {
                let x = layout.byte_at(index, y).expect("files are small") as usize;
                if file.len() <= x {
                    file.resize(x + 1, 0);
                }
                file[x] = byte;
            }
        }
        (0..).zip(file).collect()
    }

    /// What is under way when a server crashes happens in any part, or not.
    pub(super) fn crash_works(&mut self, at: u32) {
        let works = std::mem::take(&mut self.servers[at as usize].works);
        for (_, mut work) in works {
            let happens = self.dice.one_in(2);
            match &mut work {
                Work::Transfer(transfer) if transfer.writes => {
                    self.meet(Mark::CrashedAtWork);
                    let halves = std::mem::replace(&mut transfer.halves, self.dice.bits());
                    transfer.halves = if happens { transfer.halves } else { halves };
                    let disk = &mut self.servers[at as usize].disk;
                    let result = disk.half(transfer, self.dice.one_in(2));
                    self.check(result);
                }
                Work::Resize { .. } | Work::Discard { .. } if happens => {
                    // Nobody hears of it.
                    let _ = self.finish(at, &mut work);
                }
                Work::Strike { subfile, extents, .. } if happens => {
                    let is_synced = self.dice.one_in(2);
                    let disk = &mut self.servers[at as usize].disk;
                    if disk.check_kept(*subfile, extents, false).is_none() {
                        disk.strike(*subfile, extents);
                        if is_synced {
                            disk.sync_sums(*subfile);
                        }
                    }
                }
                // The kernel goes on with it.
                Work::Sync { subfile, syncing } | Work::Sum { subfile, syncing, .. } => {
                    let disk = &mut self.servers[at as usize].disk;
                    disk.is_left(*subfile, syncing);
                    disk.dirty.entry(*subfile).or_default().extend(syncing.sectors.keys());
                }
                _ => {}
            }
        }
    }
}

impl Disk {
    /// Bytes `[from, to)` of a subfile are not what the disk has; nor may its length be.
    fn soil(&mut self, subfile: Subfile, from: usize, to: usize) {
        let sectors = from / SECTOR_BYTES..to.div_ceil(SECTOR_BYTES);
        self.dirty.entry(subfile).or_default().extend(sectors);
    }

    /// A subfile ends here now, unless that is behind what it had.
    fn is_cut(&mut self, subfile: Subfile, bytes: usize) {
        let cut = self.cut.entry(subfile).or_insert(bytes);
        *cut = bytes.min(*cut);
    }

    /// A sync has not come to an end.
    pub(super) fn is_left(&mut self, subfile: Subfile, syncing: &Syncing) {
        if let Some(cut) = syncing.cut {
            self.is_cut(subfile, cut);
        }
    }

    /// Whether the disk may not have a file as the kernel has it.
    pub(super) fn has_dirt(&self, inode: Inode) -> bool {
        self.dirty.iter().any(|(subfile, sectors)| subfile.inode == inode && !sectors.is_empty())
    }

    /// Whether the disk has a byte as the kernel has it, and nobody wants it to have another.
    pub(super) fn is_at_rest(&self, subfile: Subfile, at: usize) -> bool {
        let dirty = self.dirty.get(&subfile);
        let is_dirty = dirty.is_some_and(|dirty| dirty.contains(&(at / SECTOR_BYTES)));
        let byte = |of: &BTreeMap<Subfile, Vec<u8>>| of.get(&subfile)?.get(at).copied();
        !is_dirty && byte(&self.subfiles) == byte(&self.synced)
    }

    /// What the kernel has is forgotten where it has nothing to write: what a sync that failed has dropped is no more.
    /// Gives the subfiles of which that is something.
    pub(super) fn drop_cached(&mut self) -> BTreeSet<Subfile> {
        let mut changed = BTreeSet::new();
        for (&subfile, kernel) in &mut self.subfiles {
            let stored = self.synced.get(&subfile).map_or(&[][..], Vec::as_slice);
            let cut = self.cut.get(&subfile).map_or(stored.len(), |&at| at.min(stored.len()));
            let stored = &stored[..cut];
            let is_dirty = |at| self.dirty.get(&subfile).is_some_and(|dirty| dirty.contains(&at));
            for at in (0..kernel.len().div_ceil(SECTOR_BYTES)).filter(|&at| !is_dirty(at)) {
                let before = sector_of(kernel, at).to_vec();
                lay(kernel, at, sector_of(stored, at));
                if before != sector_of(kernel, at) {
                    changed.insert(subfile);
                }
            }
        }
        changed
    }

    /// The disk has another byte than it had.
    pub(super) fn put_stored(&mut self, subfile: Subfile, at: usize, to: u8) {
        if let Some(byte) = self.synced.get_mut(&subfile).and_then(|bytes| bytes.get_mut(at)) {
            *byte = to;
        }
    }

    /// Changes a byte at rest. Gives what it was.
    pub(super) fn put_byte(&mut self, subfile: Subfile, at: usize, to: impl Fn(u8) -> u8) -> u8 {
        let mut was = 0;
        for copy in [&mut self.synced, &mut self.subfiles] {
            if let Some(byte) = copy.get_mut(&subfile).and_then(|bytes| bytes.get_mut(at)) {
                was = std::mem::replace(byte, to(*byte));
            }
        }
        was
    }

    /// Begins to sync a subfile; of what others sync meanwhile it waits for these sectors, too.
    pub(super) fn begin_sync(&mut self, subfile: Subfile, others: BTreeSet<usize>) -> Syncing {
        let mut dirty = self.dirty.remove(&subfile).unwrap_or_default();
        dirty.extend(others);
        let bytes = self.subfiles.get(&subfile).map_or(&[][..], Vec::as_slice);
        let sector = |at: usize| sector_of(bytes, at).to_vec();
        let sectors = dirty.into_iter().map(|at| (at, sector(at))).collect();
        self.syncs += 1;
        let (bytes, cut) = (bytes.len(), self.cut.remove(&subfile));
        Syncing { sectors, bytes, cut, number: self.syncs }
    }

    pub(super) fn end_sync(&mut self, subfile: Subfile, syncing: Syncing) {
        let Syncing { sectors, bytes, .. } = syncing;
        if !self.subfiles.contains_key(&subfile) {
            return;
        }
        let synced = self.synced.entry(subfile).or_default();
        if !sectors.is_empty() {
            synced.resize(bytes, 0);
        }
        for (at, sector) in sectors {
            lay(synced, at, &sector);
        }
    }

    /// The power goes: the disk has of each dirty sector either state. Tells whether anything is lost.
    pub(super) fn cut(&mut self, dice: &mut Dice) -> bool {
        let before = std::mem::take(&mut self.subfiles);
        let dirty = std::mem::take(&mut self.dirty);
        for (&subfile, kernel) in &before {
            let Some(synced) = self.synced.get(&subfile) else {
                let has_name = dirty.contains_key(&subfile) && dice.one_in(2);
                if !has_name {
                    continue;
                }
                self.synced.insert(subfile, Vec::new());
                self.subfiles.insert(subfile, Vec::new());
                continue;
            };
            let Some(dirty) = dirty.get(&subfile) else {
                self.subfiles.insert(subfile, synced.clone());
                continue;
            };
            let bytes = if dice.one_in(2) { synced.len() } else { kernel.len() };
            let mut left = synced.clone();
            left.resize(bytes, 0);
            for &at in dirty {
                let of = if dice.one_in(2) { kernel } else { synced };
                lay(&mut left, at, sector_of(of, at));
            }
            self.synced.insert(subfile, left.clone());
            self.subfiles.insert(subfile, left);
        }
        self.has_failed = false;
        self.cut.clear();
        self.sums.cut(dice);
        for subfile in before.keys() {
            let bytes = self.subfiles.get(subfile).map_or(0, Vec::len);
            self.space.cut(*subfile, bytes);
            self.rot_is_cut(*subfile, bytes);
        }
        self.heal_untold();
        self.subfiles != before
    }

    /// Moves one half of the bytes of a transfer.
    fn half(&mut self, transfer: &mut Transfer, first: bool) -> Result<(), String> {
        let bytes = match transfer.writes {
            true => self.subfiles.entry(transfer.subfile).or_default(),
            false => match self.subfiles.get_mut(&transfer.subfile) {
                Some(bytes) => bytes,
                None => &mut Vec::new(),
            },
        };
        let mut soiled = Vec::new();
        for at in 0..transfer.places.len() {
            if transfer.is_in_first_half(at) != first {
                continue;
            }
            let place = transfer.places[at] as usize;
            if transfer.writes {
                soiled.push((place.min(bytes.len()), place + 1));
                if bytes.len() <= place {
                    bytes.resize(place + 1, 0);
                }
                bytes[place] = transfer.bytes[at];
            } else {
                let (subfile, end) = (transfer.subfile, bytes.len());
                transfer.bytes[at] = *bytes.get(place).ok_or_else(|| {
                    format!("byte {place} of {subfile:?} is read, but it ends at {end}")
                })?;
            }
        }
        for (from, to) in soiled {
            self.soil(transfer.subfile, from, to);
            self.overwritten(transfer.subfile, to - 1);
        }
        Ok(())
    }
}

/// What there is of a sector.
fn sector_of(bytes: &[u8], at: usize) -> &[u8] {
    let from = (at * SECTOR_BYTES).min(bytes.len());
    &bytes[from..bytes.len().min(from + SECTOR_BYTES)]
}

/// Writes a sector, as far as there is room for it; what it has not is zeros.
fn lay(bytes: &mut [u8], at: usize, sector: &[u8]) {
    let from = (at * SECTOR_BYTES).min(bytes.len());
    let room = (bytes.len() - from).min(SECTOR_BYTES);
    let room = &mut bytes[from..from + room];
    let there = sector.len().min(room.len());
    room[..there].copy_from_slice(&sector[..there]);
    room[there..].fill(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_that_began_earlier_and_ends_later_brings_back_nothing_older() {
        let subfile = Subfile { inode: Inode(1), index: 0 };
        let mut disk = Disk::default();
        let write = |disk: &mut Disk, bytes: &[u8]| {
            disk.subfiles.insert(subfile, bytes.to_vec());
            disk.soil(subfile, 0, bytes.len());
            disk.begin_sync(subfile, BTreeSet::new())
        };
        let mut earlier = write(&mut disk, &[1; 40]);
        let later = write(&mut disk, &[2; 70]);
        earlier.overtaken_by(&later);
        disk.end_sync(subfile, later);
        disk.end_sync(subfile, earlier);
        assert_eq!(disk.synced[&subfile], [2; 70]);
    }
}
