//! Finds what cannot have come later in the rows of MPI of all parts: sends and receives that match, and
//! collective calls.
//!
//! The n-th message of a channel (communicator, sender, receiver, tag) is the n-th that is received, as MPI
//! promises. A channel with more than one thread on a side, with receives from anyone or of any tag, or
//! with other numbers on its two sides tells nothing. Of a collective call only what each operation implies is
//! taken: all ranks of a barrier wait for all, those of a broadcast for its root.
//!
//! Memory: of a channel every n-th message is kept, so that there are at most [`KEPT`], and as many collective calls
//! of a communicator.

use super::Precedence;
use crate::{CallView, Event, Function, Partner};
use std::collections::{BTreeMap, BTreeSet};

/// What is kept of a channel or communicator, spread over the run.
const KEPT: usize = 512;
/// Receives under way that are looked for; a program that never waits for its requests has more.
const PENDING: usize = 1 << 20;

/// Communicator, sender, receiver, tag; ranks of the whole program.
type Channel = (i64, u32, u32, u32);

/// Rows of all parts, as far as they tell of other machines.
#[derive(Debug, Default)]
pub(crate) struct Precedences {
    /// The machine of each rank.
    machines: BTreeMap<u32, usize>,
    sends: BTreeMap<Channel, Side>,
    receives: BTreeMap<Channel, Side>,
    /// Receives under way: by process and request, the channel and the how many-th of it.
    pending: BTreeMap<(u32, i64), (Channel, u64)>,
    /// Who received from anyone: communicator and receiver.
    from_anyone: BTreeSet<(i64, u32)>,
    /// Who received any tag: communicator, sender, receiver.
    any_tag: BTreeSet<(i64, u32, u32)>,
    collectives: BTreeMap<i64, Collectives>,
}

/// One side of a channel.
#[derive(Debug, Default)]
struct Side {
    count: u64,
    thread: Option<u32>,
    is_shared: bool,
    kept: Sparse<i64>,
}

/// Values by number, of which every n-th is kept.
#[derive(Debug)]
struct Sparse<T> {
    step: u64,
    values: BTreeMap<u64, T>,
}

impl<T> Default for Sparse<T> {
    fn default() -> Sparse<T> {
        Sparse { step: 1, values: BTreeMap::new() }
    }
}

impl<T> Sparse<T> {
    fn keeps(&self, number: u64) -> bool {
        number.is_multiple_of(self.step)
    }

    /// The value of a number, if it is one to keep.
    fn entry(&mut self, number: u64, otherwise: impl FnOnce() -> T) -> Option<&mut T> {
        while self.values.len() >= KEPT && !self.values.contains_key(&number) && self.keeps(number)
        {
            self.step *= 2;
            let step = self.step;
            self.values.retain(|number, _| number.is_multiple_of(step));
        }
        let keeps = self.keeps(number);
        keeps.then(|| self.values.entry(number).or_insert_with(otherwise))
    }
}

/// The collective calls of a communicator.
#[derive(Debug, Default)]
struct Collectives {
    by_rank: BTreeMap<u32, (u64, u32)>,
    calls: Sparse<Call>,
    is_confused: bool,
}

/// A collective call: when the last rank that others need came to each machine, and when the first one
/// that needs others left it.
#[derive(Debug)]
struct Call {
    function: Function,
    machines: BTreeMap<usize, (Option<i64>, Option<i64>)>,
}

impl Side {
    /// The how many-th message this is.
    fn next(&mut self, thread: u32) -> u64 {
        self.is_shared |= *self.thread.get_or_insert(thread) != thread;
        self.count += 1;
        self.count - 1
    }
}

impl Precedences {
    pub(crate) fn new(machines: BTreeMap<u32, usize>) -> Precedences {
        Precedences { machines, ..Precedences::default() }
    }

    /// Sees a row: `communicator` and `process` are those of all parts together, `shift` makes its times
    /// those of its machine. Rows of a thread come in their order.
    pub(crate) fn see(&mut self, row: &Event, (process, communicator): (u32, i64), shift: i64) {
        let Ok(rank) = u32::try_from(row.rank) else { return };
        let at = |time: u64| i64::try_from(time).unwrap_or(i64::MAX).saturating_add(shift);
        let (start, end) = (at(row.start.0), at(row.end.0));
        match CallView::of(row) {
            Some(CallView::Message { to, from, request, .. }) if communicator >= 0 => {
                if let Some(to) = to {
                    self.send((communicator, rank, to), row.thread, start);
                }
                if let Some(from) = from {
                    let under_way = request.map(|request| (process, request));
                    self.receive((communicator, rank, from), row.thread, end, under_way);
                }
            }
            Some(CallView::Wait { request }) => {
                if let Some((channel, number)) = self.pending.remove(&(process, request))
                    && let Some(side) = self.receives.get_mut(&channel)
                {
                    side.kept.entry(number, || end);
                }
            }
            Some(CallView::Collective { root, bytes, .. }) if communicator >= 0 => {
                self.collective(row, (communicator, rank), (root, bytes), (start, end));
            }
            _ => {}
        }
    }

    fn is_between_machines(&self, one: u32, two: u32) -> bool {
        let (one, two) = (self.machines.get(&one), self.machines.get(&two));
        one.is_some() && two.is_some() && one != two
    }

    fn send(&mut self, (communicator, rank, to): (i64, u32, Partner), thread: u32, start: i64) {
        let (Some(other), Some(tag)) = (to.rank, to.tag) else { return };
        if self.is_between_machines(rank, other) {
            let side = self.sends.entry((communicator, rank, other, tag)).or_default();
            let number = side.next(thread);
            side.kept.entry(number, || start);
        }
    }

    fn receive(
        &mut self,
        (communicator, rank, from): (i64, u32, Partner),
        thread: u32,
        end: i64,
        under_way: Option<(u32, i64)>,
    ) {
        let Some(other) = from.rank else {
            self.from_anyone.insert((communicator, rank));
            return;
        };
        let Some(tag) = from.tag else {
            self.any_tag.insert((communicator, other, rank));
            return;
        };
        if !self.is_between_machines(rank, other) {
            return;
        }
        let channel = (communicator, other, rank, tag);
        let side = self.receives.entry(channel).or_default();
        let number = side.next(thread);
        match under_way {
            None => {
                side.kept.entry(number, || end);
            }
            Some(request) if side.kept.keeps(number) && self.pending.len() < PENDING => {
                self.pending.insert(request, (channel, number));
            }
            Some(_) => {}
        }
    }

    fn collective(
        &mut self,
        row: &Event,
        (communicator, rank): (i64, u32),
        (root, bytes): (Option<u32>, Option<u64>),
        (start, end): (i64, i64),
    ) {
        let Some(&machine) = self.machines.get(&rank) else { return };
        let calls = self.collectives.entry(communicator).or_default();
        let (count, thread) = calls.by_rank.entry(rank).or_insert((0, row.thread));
        calls.is_confused |= *thread != row.thread;
        let number = *count;
        *count += 1;
        let fresh = || Call { function: row.function, machines: BTreeMap::new() };
        let Some(call) = calls.calls.entry(number, fresh) else { return };
        calls.is_confused |= call.function != row.function;
        let (gives, takes) = roles(row.function, root == Some(rank), bytes.unwrap_or(0) > 0);
        let (came, left) = call.machines.entry(machine).or_default();
        if gives {
            *came = Some(came.map_or(start, |time| time.max(start)));
        }
        if takes {
            *left = Some(left.map_or(end, |time| time.min(end)));
        }
    }

    /// All that was found.
    pub(crate) fn found(&self) -> Vec<Precedence> {
        let mut found = Vec::new();
        for (channel, sends) in &self.sends {
            let &(communicator, from, to, _) = channel;
            let Some(receives) = self.receives.get(channel) else { continue };
            let is_told = sends.count == receives.count
                && !sends.is_shared
                && !receives.is_shared
                && !self.from_anyone.contains(&(communicator, to))
                && !self.any_tag.contains(&(communicator, from, to));
            if is_told {
                let (a, b) = (self.machines[&from], self.machines[&to]);
                found.extend(sends.kept.values.iter().filter_map(|(number, &sent)| {
                    let received = *receives.kept.values.get(number)?;
                    Some(Precedence { before: (a, sent), after: (b, received) })
                }));
            }
        }
        let told = self.collectives.values().filter(|calls| !calls.is_confused);
        told.flat_map(|calls| calls.calls.values.values()).for_each(|call| call.tell(&mut found));
        found
    }
}

impl Call {
    /// What came on one machine before something left another; by way of the first machine where all wait
    /// for all.
    fn tell(&self, found: &mut Vec<Precedence>) {
        let came = || self.machines.iter().filter_map(|(&at, (came, _))| Some((at, (*came)?)));
        let left = || self.machines.iter().filter_map(|(&at, (_, left))| Some((at, (*left)?)));
        let first = came().map(|(at, _)| at).min();
        let is_star = came().count() > 1 && left().count() > 1;
        for before in came() {
            let others = left().filter(|after| after.0 != before.0);
            let wanted = |after: &(usize, i64)| {
                !is_star || Some(before.0) == first || Some(after.0) == first
            };
            found.extend(others.filter(wanted).map(|after| Precedence { before, after }));
        }
    }
}

/// Whether others wait for this rank, and whether it waits for others, in a collective call with data.
fn roles(function: Function, is_root: bool, has_bytes: bool) -> (bool, bool) {
    match function {
        Function::MPI_BARRIER => (true, true),
        Function::MPI_ALLREDUCE => (has_bytes, has_bytes),
        // Of the form with counts this rank may give nothing, and gets from others all the same.
        Function::MPI_ALLGATHER => (has_bytes, true),
        Function::MPI_BCAST | Function::MPI_SCATTER => {
            (is_root && has_bytes, !is_root && has_bytes)
        }
        Function::MPI_REDUCE | Function::MPI_GATHER => (!is_root && has_bytes, is_root),
        // All to all with counts: any two may have nothing to say to each other.
        _ => (false, false),
    }
}
