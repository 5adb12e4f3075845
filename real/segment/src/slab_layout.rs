//! What lies where in a slab: its head, two lists of records, staging memory.

use crate::layout::PAGE;
use std::sync::atomic::{AtomicU32, AtomicU64};

pub(crate) const HEAD_BYTES: u64 = 2 * PAGE;
pub(crate) const PATH_ROOM: usize = 4096;
const RECORDS_MAX: u64 = 16_384;

/// Before the lists.
#[repr(C)]
pub(crate) struct Head {
    /// Bit 0: which list counts; bit 1: it goes out by appending; upper half: its records.
    pub(crate) selector: AtomicU64,
    /// Staging memory that the system has given for certain, from its front.
    pub(crate) granted: AtomicU64,
    /// As much of each list.
    pub(crate) granted_list: [AtomicU64; 2],
    /// What `names` was when the path was looked up.
    pub(crate) path_names: AtomicU32,
    pub(crate) path_length: AtomicU32,
    /// When the file of that path came to be; 0 when nobody can tell.
    pub(crate) birth: AtomicU64,
    pub(crate) path: [AtomicU32; PATH_ROOM / 4],
}

/// Before the records of a list.
#[repr(C, align(64))]
pub(crate) struct ListHead {
    /// Size of the file before the records went out by appending.
    pub(crate) base: AtomicU64,
}

/// One extent of the file in staging memory.
#[repr(C)]
pub(crate) struct Record {
    pub(crate) offset: AtomicU64,
    pub(crate) length: AtomicU64,
    pub(crate) at: AtomicU64,
}

/// How many records the lists of slabs with that much staging memory have.
pub(crate) fn records_for(staging_bytes: u64) -> u64 {
    (staging_bytes / 64).clamp(256, RECORDS_MAX)
}

/// Bytes of one list.
pub(crate) fn list_bytes(records: u64) -> u64 {
    (size_of::<ListHead>() as u64 + records * size_of::<Record>() as u64).next_multiple_of(PAGE)
}

/// Bytes of a slab.
pub(crate) fn bytes(staging_bytes: u64, records: u64) -> u64 {
    HEAD_BYTES + 2 * list_bytes(records) + staging_bytes
}
