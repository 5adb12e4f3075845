//! Which requests a server's device works for, in a run that is recorded.
//!
//! Cache layers speak of extents; who wanted them is remembered here, so that an access of the device finds the
//! requests it joins, however the layer has cut or merged them.

use crate::world::RowId;
use iolab_vocab::{Direction, Extent, FileId};
use std::collections::BTreeMap;

/// What a stretch of a file waits for the device for.
type Key = (FileId, u64, RowId);

/// Stretches that wait for the device.
#[derive(Debug, Default)]
pub(super) struct Joined {
    /// Asked for: their lengths, by whose they are.
    reads: BTreeMap<Key, u64>,
    /// In memory: their lengths, and the row of the message they came in.
    writes: BTreeMap<Key, (u64, RowId)>,
}

impl Joined {
    pub(super) fn asked(&mut self, file: FileId, extent: Extent, request: RowId) {
        self.reads.insert((file, extent.offset, request), extent.length);
    }

    pub(super) fn answered(&mut self, file: FileId, extent: Extent, request: RowId) {
        self.reads.remove(&(file, extent.offset, request));
    }

    pub(super) fn written(&mut self, file: FileId, extent: Extent, request: RowId, data: RowId) {
        self.writes.insert((file, extent.offset, request), (extent.length, data));
    }

    /// The rows that an access is for. No stretch is longer than `most`; what is written waits no longer.
    pub(super) fn take(
        &mut self,
        direction: Direction,
        file: FileId,
        extent: Extent,
        most: u64,
    ) -> Vec<RowId> {
        let first = (file, extent.offset.saturating_sub(most), RowId::FIRST);
        let end = (file, extent.end(), RowId::FIRST);
        let touches = |offset: u64, length: u64| Extent::new(offset, length).overlaps(extent);
        match direction {
            Direction::Read => {
                let near = self.reads.range(first..end);
                near.filter(|((_, offset, _), length)| touches(*offset, **length))
                    .map(|((_, _, request), _)| *request)
                    .collect()
            }
            Direction::Write => {
                let near = self.writes.range(first..end);
                let found: Vec<(Key, (u64, RowId))> = near
                    .filter(|((_, offset, _), (length, _))| touches(*offset, *length))
                    .map(|(key, value)| (*key, *value))
                    .collect();
                for (key, (length, _)) in &found {
                    if extent.offset <= key.1 && key.1 + length <= extent.end() {
                        self.writes.remove(key);
                    }
                }
                found.iter().flat_map(|((_, _, request), (_, data))| [*request, *data]).collect()
            }
        }
    }
}
