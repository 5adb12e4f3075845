//! How much of its device a server has taken: a sector for each that was ever written, and not cut since; and
//! who may meet one that is full.

use super::World;
use super::devices::{SECTOR_BYTES, Work};
use crate::marks::Mark;
use crate::plan::Rates;
use iolab_pfs::io_server::{Event, Operation, Subfile};
use iolab_pfs::{Code, Inode};
use std::collections::{BTreeMap, BTreeSet};

/// Sectors that are taken.
#[derive(Clone, Debug, Default)]
pub(super) struct Space {
    of: BTreeMap<Subfile, BTreeSet<usize>>,
}

impl Space {
    /// Bytes of all sectors.
    pub(super) fn used_bytes(&self) -> u64 {
        self.of.values().map(BTreeSet::len).sum::<usize>() as u64 * SECTOR_BYTES as u64
    }

    /// What it would take to write these places.
    pub(super) fn missing_bytes(&self, subfile: Subfile, places: impl Iterator<Item = u64>) -> u64 {
        let taken = self.of.get(&subfile);
        let sectors: BTreeSet<usize> = places.map(|place| place as usize / SECTOR_BYTES).collect();
        let is_missing = |sector: &&usize| taken.is_none_or(|taken| !taken.contains(sector));
        sectors.iter().filter(is_missing).count() as u64 * SECTOR_BYTES as u64
    }

    /// These places have their sectors.
    pub(super) fn take(&mut self, subfile: Subfile, places: impl Iterator<Item = u64>) {
        let sectors = places.map(|place| place as usize / SECTOR_BYTES);
        self.of.entry(subfile).or_default().extend(sectors);
    }

    /// A subfile ends earlier.
    pub(super) fn cut(&mut self, subfile: Subfile, bytes: usize) {
        if let Some(taken) = self.of.get_mut(&subfile) {
            taken.split_off(&bytes.div_ceil(SECTOR_BYTES));
        }
    }

    /// The subfiles of a file go.
    pub(super) fn discard(&mut self, inode: Inode) {
        self.of.retain(|subfile, _| subfile.inode != inode);
    }
}

impl World {
    /// Whether there is no room for a write that begins; takes its room, if there is some.
    pub(super) fn is_full_for(&mut self, at: u32, work: &mut Work) -> bool {
        let Work::Transfer(transfer) = work else { return false };
        if !transfer.writes || transfer.begun {
            return false;
        }
        let (subfile, space) = (transfer.subfile, &mut self.servers[at as usize].disk.space);
        let places = || transfer.places.iter().copied();
        let wanted = space.used_bytes() + space.missing_bytes(subfile, places());
        let Rates { device, capacity, .. } = self.plan.rates;
        if device > 0 && wanted > device {
            return true;
        }
        space.take(subfile, places());
        if capacity > 0 && wanted > capacity && !self.has_forgotten_grants(at) {
            self.fail(format!("server {at} uses {wanted} bytes, and may use {capacity}"));
        }
        false
    }

    /// A write has found no room. Nobody is promised some but cache managers, before they take data.
    pub(super) fn end_full(&mut self, at: u32, operation: u64, work: Work) {
        self.meet(Mark::DeviceFull);
        if let Work::Transfer(transfer) = work
            && let Some(buffer) = transfer.from
        {
            let brought = self.servers[at as usize].brought.get(&buffer.0);
            let is_of_cache = brought.is_some_and(|(session, _)| session.0 >> 64 > 0);
            if is_of_cache && !self.has_forgotten_grants(at) {
                self.fail(format!("server {at} has no room for what a cache manager has taken"));
            }
            self.take_buffer(at, buffer);
        }
        let (operation, result) = (Operation(operation), Err(Code::NO_SPACE));
        self.tell_server(at, Event::Done { operation, result });
    }

    /// Whether a server may not know any more what it has granted.
    pub(super) fn has_forgotten_grants(&self, at: u32) -> bool {
        self.servers[at as usize].life > 1 || self.marks.count(Mark::SessionExpired) > 0
    }
}
