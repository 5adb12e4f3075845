//! Messages and collective calls, as the events by which tools of OTF2 draw lines between ranks.
//!
//! OTF2 names a partner by its place in a communicator, a communicator by a group of places among all ranks, and
//! these by the location of each. What names no partner (a receive from whoever came) has no event. A rank counts
//! its bytes as Score-P does: those to each rank of the communicator together, itself included.

use crate::{CallView, Event, Function, Header, Partner};
use std::collections::BTreeMap;

/// `OTF2_UNDEFINED_LOCATION`, `OTF2_UNDEFINED_UINT32`.
const UNDEFINED: i64 = -1;

/// A line of the clerk holds so many; more than any trace has that a tool could draw.
const RANKS_MAX: u32 = 100_000;

/// Operations by their numbers there (`OTF2_COLLECTIVE_OP_…`).
const COLLECTIVES: [(Function, u32); 10] = [
    (Function::MPI_BARRIER, 0),
    (Function::MPI_BCAST, 1),
    (Function::MPI_GATHER, 2),
    (Function::MPI_SCATTER, 4),
    (Function::MPI_ALLGATHER, 6),
    (Function::MPI_ALLTOALL, 8),
    (Function::MPI_ALLREDUCE, 11),
    (Function::MPI_REDUCE, 12),
    (Function::MPI_REDUCE_SCATTER, 13),
    (Function::MPI_SCAN, 14),
];

/// A request that is waited for: what ends it.
enum Pending {
    Sent,
    /// From the sender, through the communicator, with the tag.
    Received([i64; 3]),
}

/// The ranks of a run and what goes on between them.
pub(super) struct Messages {
    /// Ranks by communicator, and all of them last: of what was in none that was declared.
    communicators: Vec<Vec<u32>>,
    /// The first location of each rank.
    locations: BTreeMap<u32, u64>,
    /// By process and number in the trace: the number in the archive.
    requests: BTreeMap<(u32, i64), (u64, Pending)>,
    numbered: u64,
    /// Ranks of several programs have the same numbers: nobody can tell them apart.
    is_one_program: bool,
}

impl Messages {
    pub(super) fn new(header: &Header) -> Messages {
        let ranks: Vec<u32> = header
            .processes
            .iter()
            .filter_map(|process| u32::try_from(process.rank).ok())
            .collect();
        let highest = ranks.iter().max().map_or(0, |rank| rank + 1);
        let mut different = ranks.clone();
        different.sort_unstable();
        different.dedup();
        let is_one_program = different.len() == ranks.len() && highest <= RANKS_MAX;
        let everybody = if is_one_program { (0..highest).collect() } else { Vec::new() };
        let communicators = header.communicators.iter().cloned().chain([everybody]).collect();
        let (locations, requests) = (BTreeMap::new(), BTreeMap::new());
        Messages { communicators, locations, requests, numbered: 0, is_one_program }
    }

    /// A rank has a location: its first one is where its partners look for it.
    pub(super) fn located(&mut self, rank: i32, location: u64) {
        if let Ok(rank) = u32::try_from(rank) {
            self.locations.entry(rank).or_insert(location);
        }
    }

    /// The number of a communicator there: that of all ranks for one that was not declared.
    fn communicator(&self, communicator: i64) -> usize {
        let last = self.communicators.len() - 1;
        usize::try_from(communicator).ok().filter(|at| *at < last).unwrap_or(last)
    }

    /// The number of a communicator there, and a rank's place in it.
    fn place(&self, communicator: i64, rank: u32) -> Option<(usize, i64)> {
        let at = self.communicator(communicator);
        let place = self.communicators[at].iter().position(|member| *member == rank)?;
        Some((at, place as i64))
    }

    fn partner(&self, communicator: i64, partner: Option<Partner>) -> Option<[i64; 3]> {
        let Partner { rank, tag } = partner?;
        let (communicator, place) = self.place(communicator, rank?)?;
        Some([place, communicator as i64, tag.map_or(UNDEFINED, i64::from)])
    }

    /// What to write behind the beginning of a call, without location and time: words and what follows them.
    pub(super) fn begun(&mut self, event: &Event) -> Vec<(&'static str, Vec<i64>)> {
        let mut told = Vec::new();
        match self.view_of(event) {
            Some(CallView::Message { to, bytes, from, communicator, request }) => {
                let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
                if let Some(to) = self.partner(communicator, to) {
                    let number = request.map(|request| self.number(event, request, Pending::Sent));
                    told.push((
                        "send",
                        [to.as_slice(), &[bytes, number.unwrap_or(UNDEFINED)]].concat(),
                    ));
                }
                if let (Some(from), Some(request)) = (self.partner(communicator, from), request) {
                    let number = self.number(event, request, Pending::Received(from));
                    told.push(("expect", vec![number]));
                }
            }
            Some(CallView::Collective { .. }) => told.push(("gather", Vec::new())),
            _ => {}
        }
        told
    }

    /// What to write before the end of a call.
    pub(super) fn ended(&mut self, event: &Event) -> Option<(&'static str, Vec<i64>)> {
        match self.view_of(event)? {
            CallView::Message { from, communicator, request: None, .. } => {
                let from = self.partner(communicator, from)?;
                Some(("receive", [from.as_slice(), &[0, UNDEFINED]].concat()))
            }
            CallView::Wait { request } => {
                let (number, pending) = self.requests.remove(&(event.process, request))?;
                Some(match pending {
                    Pending::Sent => ("sent", vec![number as i64]),
                    Pending::Received(from) => {
                        ("receive", [from.as_slice(), &[0, number as i64]].concat())
                    }
                })
            }
            CallView::Collective { root, bytes, communicator } => {
                Some(("gathered", self.gathered(event, root, bytes, communicator)))
            }
            _ => None,
        }
    }

    fn view_of(&self, event: &Event) -> Option<CallView> {
        let is_of_a_rank = self.is_one_program && event.rank >= 0;
        CallView::of(event).filter(|_| is_of_a_rank)
    }

    fn number(&mut self, event: &Event, request: i64, pending: Pending) -> i64 {
        self.numbered += 1;
        self.requests.insert((event.process, request), (self.numbered, pending));
        self.numbered as i64
    }

    /// Operation, communicator, root, bytes sent and received.
    fn gathered(
        &self,
        event: &Event,
        root: Option<u32>,
        bytes: Option<u64>,
        communicator: i64,
    ) -> Vec<i64> {
        let known = COLLECTIVES.iter().find(|row| row.0 == event.function);
        let operation = known.map_or(0, |row| row.1);
        let at = self.communicator(communicator);
        let each = i64::try_from(bytes.unwrap_or(0)).unwrap_or(i64::MAX);
        let all = each.saturating_mul(self.communicators[at].len() as i64);
        let is_root = root.map(i64::from) == Some(i64::from(event.rank));
        let (sent, received) = match event.function {
            Function::MPI_BCAST | Function::MPI_SCATTER => (if is_root { all } else { 0 }, each),
            Function::MPI_REDUCE | Function::MPI_GATHER => (each, if is_root { all } else { 0 }),
            Function::MPI_REDUCE_SCATTER => (each, each),
            _ => (all, all),
        };
        let place = root.and_then(|root| self.place(communicator, root));
        vec![operation.into(), at as i64, place.map_or(UNDEFINED, |place| place.1), sent, received]
    }

    /// Groups of ranks, the first with the location of each, then communicators by name and group.
    pub(super) fn definitions(&self) -> Vec<(String, Vec<i64>)> {
        let Some(everybody) = self.communicators.last().filter(|all| !all.is_empty()) else {
            return Vec::new();
        };
        let location = |rank: &u32| self.locations.get(rank).map_or(UNDEFINED, |at| *at as i64);
        let mut groups = vec![(String::new(), everybody.iter().map(location).collect())];
        for (at, members) in self.communicators.iter().enumerate() {
            let is_whole = members == everybody;
            let name =
                if is_whole { "MPI_COMM_WORLD".to_owned() } else { format!("communicator {at}") };
            groups.push((name, members.iter().map(|rank| i64::from(*rank)).collect()));
        }
        groups
    }
}
