//! What caused what in a run that is recorded.
//!
//! Everything that happens is a reaction to something that has just happened: a message has come, a device is
//! through, a processor has done what a task waited for. So the world keeps one row as *the cause* of what machines do
//! now, and whatever they begin is begun by it: messages, computations, accesses. A computation hands the
//! cause on to the moment when it is done. Machines say more only where they know better: which
//! requests a device access joins, what a command or a request was ended by.

use super::{ServerId, TaskId, TransferId};
use crate::slab::Id;
use std::collections::BTreeMap;

/// A row that has begun; it is kept when it ends, or never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RowId(pub(super) u32);

impl RowId {
    /// No row: nothing is recorded, or nobody knows.
    pub(crate) const NONE: RowId = RowId(u32::MAX);
    /// None is less.
    pub(crate) const FIRST: RowId = RowId(0);

    fn index(self) -> usize {
        self.0 as usize
    }
}

impl Default for RowId {
    fn default() -> RowId {
        RowId::NONE
    }
}

/// Rows by the index of what they are about.
#[derive(Default)]
pub(super) struct ByIndex(Vec<RowId>);

impl ByIndex {
    pub(super) fn set(&mut self, index: usize, row: RowId) {
        if index >= self.0.len() {
            self.0.resize(index + 1, RowId::NONE);
        }
        self.0[index] = row;
    }

    pub(super) fn of(&self, index: usize) -> RowId {
        self.0.get(index).copied().unwrap_or_default()
    }
}

/// Causes as they are found.
#[derive(Default)]
pub(super) struct Found {
    /// What has just happened.
    pub(super) current: RowId,
    /// Of all rows that have begun, the place of each among those kept.
    places: Vec<Option<u32>>,
    /// Pairs of a row and what began it.
    begun_by: Vec<(RowId, RowId)>,
    /// Pairs of a row and what ended it.
    ended_by: Vec<(RowId, RowId)>,
    /// What the next access of a device joins.
    joined: Vec<RowId>,
    tasks: BTreeMap<TaskId, RowId>,
    wakes: BTreeMap<ServerId, RowId>,
    transfers: ByIndex,
}

impl Found {
    /// A row begins.
    pub(super) fn open(&mut self) -> RowId {
        self.places.push(None);
        RowId(self.places.len() as u32 - 1)
    }

    pub(super) fn kept(&mut self, row: RowId, place: usize) {
        if let Some(slot) = self.places.get_mut(row.index()) {
            *slot = Some(place as u32);
        }
    }

    pub(super) fn begun_by(&mut self, row: RowId, cause: RowId) {
        link(&mut self.begun_by, row, cause);
    }

    pub(super) fn ended_by(&mut self, row: RowId, cause: RowId) {
        link(&mut self.ended_by, row, cause);
    }

    pub(super) fn join(&mut self, rows: impl IntoIterator<Item = RowId>) {
        self.joined.extend(rows);
    }

    /// An access of a device begins: because of what it joins, or else of what has just happened.
    pub(super) fn access_began(&mut self, transfer: TransferId, row: RowId) {
        let mut joined = std::mem::take(&mut self.joined);
        joined.retain(|cause| *cause != RowId::NONE);
        match joined.is_empty() {
            true => self.begun_by(row, self.current),
            false => joined.iter().for_each(|&cause| self.begun_by(row, cause)),
        }
        self.transfers.set(transfer.index(), row);
    }

    pub(super) fn access_ended(&mut self, transfer: TransferId) {
        self.current = self.transfers.of(transfer.index());
    }

    /// A task waits for its processor, or for a time to pass.
    pub(super) fn task_waits(&mut self, task: TaskId) {
        self.tasks.insert(task, self.current);
    }

    pub(super) fn task_goes_on(&mut self, task: TaskId) {
        self.current = self.tasks.remove(&task).unwrap_or_default();
    }

    pub(super) fn server_waits(&mut self, server: ServerId) {
        self.wakes.insert(server, self.current);
    }

    pub(super) fn server_goes_on(&mut self, server: ServerId) {
        self.current = self.wakes.get(&server).copied().unwrap_or_default();
    }

    /// Pairs of what began and of what ended, by the places that rows have in the end.
    pub(super) fn finish(self, row_at: &[u32]) -> [Vec<(u32, u32)>; 2] {
        let row_of = |row: RowId| {
            let place = (*self.places.get(row.index())?)?;
            row_at.get(place as usize).copied()
        };
        [&self.begun_by, &self.ended_by].map(|pairs| {
            let pair = |&(row, cause): &(RowId, RowId)| Some((row_of(row)?, row_of(cause)?));
            pairs.iter().filter_map(pair).collect()
        })
    }
}

/// Notes a pair of a row and its cause, if both are known and two.
fn link(pairs: &mut Vec<(RowId, RowId)>, row: RowId, cause: RowId) {
    if row != RowId::NONE && cause != RowId::NONE && row != cause {
        pairs.push((row, cause));
    }
}
