//! Where the time of a run went: one cell for each kind of call on a file, for each way of waiting, and for
//! what each process does outside of calls. The cells of a run add up to the time of all its threads.

use super::calls::{Between, Call, Lane, is_waiting};
use iolab_trace::{Class, Function};
use std::collections::BTreeMap;

/// What time is spent with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// Calls of a class on a file.
    Calls(Class),
    /// Messages and collective calls: waiting for other ranks, as far as they are not moving data.
    Waiting(Function),
    /// No call, while a child process ran.
    ForChildren,
    /// No call.
    Outside,
}

/// One cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) what: What,
    /// A file; of time outside of calls a process.
    pub(super) place: u32,
}

/// The place of all files, or processes, that are too small to stand alone.
pub(super) const FOLDED: u32 = u32::MAX - 1;
/// No place.
pub(super) const NOWHERE: u32 = u32::MAX;

/// What a run has in a cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) calls: u64,
    pub(super) bytes: u64,
    pub(super) ns: u64,
    pub(super) functions: Vec<Function>,
}

impl Amount {
    pub(super) fn merge(&mut self, other: &Amount) {
        self.calls = self.calls.saturating_add(other.calls);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.ns = self.ns.saturating_add(other.ns);
        other.functions.iter().for_each(|&function| self.name(function));
    }

    fn name(&mut self, function: Function) {
        if !self.functions.contains(&function) {
            self.functions.push(function);
            self.functions.sort_unstable_by_key(|function| function.0);
        }
    }
}

/// All cells of a run.
pub(super) type Cells = BTreeMap<Key, Amount>;

/// The cell of a call.
pub(super) fn of(call: &Call) -> Key {
    match is_waiting(call.function) {
        true => Key { what: What::Waiting(call.function), place: NOWHERE },
        false => Key { what: What::Calls(call.function.class()), place: call.file },
    }
}

/// The cells of time without calls.
pub(super) fn of_between(process: u32, between: Between) -> [(Key, u64); 2] {
    let outside = Key { what: What::Outside, place: process };
    let for_children = Key { what: What::ForChildren, place: NOWHERE };
    [(outside, between.outside), (for_children, between.for_children)]
}

/// Adds up the time of all threads.
pub(super) fn cells(lanes: &[Lane]) -> Cells {
    let mut cells = Cells::new();
    for lane in lanes {
        let mut add = |between| {
            for (key, ns) in of_between(lane.process, between).into_iter().filter(|one| one.1 > 0) {
                let time = &mut cells.entry(key).or_default().ns;
                *time = time.saturating_add(ns);
            }
        };
        add(lane.after);
        lane.calls.iter().for_each(|call| add(call.before));
        for call in &lane.calls {
            let cell = cells.entry(of(call)).or_default();
            cell.calls = cell.calls.saturating_add(call.count);
            cell.bytes = cell.bytes.saturating_add(call.bytes);
            cell.ns = cell.ns.saturating_add(call.cost);
            cell.name(call.function);
        }
    }
    cells
}
