//! What an access still has to move, subfile by subfile, and which subfile is next.
//!
//! Each subfile is a lane with so many transfers in flight at most. Which lane begins one when several may
//! is the parallel schedule's to say (`iolab_policy::schedule`): by itself a process begins with the subfile
//! of its own rank and takes them in turn, so that not all begin at one server.
//!
//! Costs: a transfer looks once at each stripe, and is O(log n) of n lanes.

use crate::Portion;
use crate::plant::{Plant, is_planted};
use iolab_policy::schedule::catalog::Row;
use iolab_policy::schedule::{Action, Event, Place, Schedule};
use iolab_vocab::Nanos;

/// How the transfers of an access follow each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Which schedule.
    pub(super) schedule: &'static Row,
    /// Of whom, among how many subfiles.
    pub(super) place: Place,
    /// Payload of one transfer, about.
    pub(super) transfer_bytes: u64,
    /// Transfers in flight in one lane.
    pub(super) depth: u32,
}

/// What an access still has to do in one subfile.
#[derive(Debug)]
struct Lane {
    rest: Portion,
    in_flight: u32,
    is_offered: bool,
    is_done: bool,
}

/// All lanes of an access.
#[derive(Debug)]
pub(super) struct Lanes {
    pace: Pace,
    lanes: Vec<Lane>,
    schedule: Box<dyn Schedule>,
    /// What the schedule has answered.
    begun: Vec<Action>,
}

impl Lanes {
    /// One lane for each portion, in the order of subfiles.
    pub(super) fn new(pace: Pace, portions: impl Iterator<Item = Portion>) -> Lanes {
        let lane = |rest: Portion| Lane {
            in_flight: 0,
            is_offered: false,
            is_done: rest.from == rest.to,
            rest,
        };
        let schedule = pace.schedule.make(pace.place);
        let lanes: Vec<Lane> = portions.map(lane).collect();
        let mut lanes = Lanes { pace, lanes, schedule, begun: Vec::new() };
        (0..lanes.count()).for_each(|subfile| lanes.offer(subfile));
        lanes
    }

    /// How many there are.
    pub(super) fn count(&self) -> u32 {
        self.lanes.len() as u32
    }

    /// The next transfer, of the lane whose turn it is.
    pub(super) fn next(&mut self) -> Option<(Portion, u64)> {
        loop {
            self.schedule.step(Nanos::ZERO, Event::Turn, &mut self.begun);
            let Action::Begin { partner } = self.begun.pop()?;
            let lane = &mut self.lanes[partner as usize];
            lane.is_offered = false;
            if lane.is_done {
                continue;
            }
            match lane.rest.first_transfer(self.pace.transfer_bytes) {
                None => lane.is_done = true,
                Some((transfer, bytes)) => {
                    lane.rest = lane.rest.behind(transfer.to);
                    lane.in_flight += 1;
                    self.offer(partner);
                    return Some((transfer, bytes));
                }
            }
        }
    }

    /// The schedule is told that a transfer of this lane may begin, if it may.
    fn offer(&mut self, subfile: u32) {
        let Some(lane) = self.lanes.get_mut(subfile as usize) else { return };
        if !lane.is_done && !lane.is_offered && lane.in_flight < self.pace.depth {
            lane.is_offered = true;
            let event = Event::Offered { partner: subfile };
            self.schedule.step(Nanos::ZERO, event, &mut self.begun);
        }
    }

    /// A transfer of a subfile is over.
    pub(super) fn landed(&mut self, subfile: u32) {
        if let Some(lane) = self.lanes.get_mut(subfile as usize) {
            lane.in_flight = lane.in_flight.saturating_sub(1);
        }
        if !is_planted(Plant::LaneForgotten) {
            self.offer(subfile);
        }
    }

    /// A transfer begins that was none of the rest.
    pub(super) fn repeated(&mut self, subfile: u32) {
        if let Some(lane) = self.lanes.get_mut(subfile as usize) {
            lane.in_flight += 1;
        }
    }

    /// Nothing more is begun.
    pub(super) fn stop(&mut self) {
        self.lanes.iter_mut().for_each(|lane| lane.is_done = true);
    }
}
