//! Messages between processes: eager up to a size, above it offered first.
//!
//! An eager message travels at once and is kept by its receiver until somebody asks for it. A
//! larger one is offered; whoever receives it replies, and only then the data goes. Receives match
//! on sender, tag and context, oldest first; a context keeps what belongs to a communicator's collective
//! operations, or to a file's, apart from the program's own messages.

use super::{Event, NONE, Outcome};
use crate::cluster::packet::{Envelope, Kind, MatchContext};
use crate::cluster::{Cluster, EventQueue, Unreceived};
use crate::program::{ANY_SOURCE, ANY_TAG};

/// Wire size of an offer, and of the reply to it.
const OFFER_BYTES: u64 = 100;

/// A message above the eager limit, from its offer until its data is there.
#[derive(Clone, Copy, Debug)]
pub(in crate::cluster) struct Offer {
    /// Task that sends.
    pub(in crate::cluster) sender: u32,
    /// Task that receives, once it is known.
    pub(in crate::cluster) receiver: u32,
    /// Process that receives.
    pub(in crate::cluster) to: u32,
    pub(in crate::cluster) tag: u32,
    bytes: u64,
}

/// Something that has arrived before anyone asked for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Early {
    envelope: Envelope,
    /// The offer, or `NONE` when it is the message itself.
    offer: u32,
}

/// Where a message goes.
#[derive(Clone, Copy)]
pub(super) struct Address {
    pub(super) to: u32,
    pub(super) tag: u32,
    pub(super) context: MatchContext,
}

/// Whether a message with this envelope is what a receive asks for.
fn matches(wanted: Envelope, envelope: Envelope) -> bool {
    wanted.context == envelope.context
        && (wanted.tag == envelope.tag || wanted.tag == ANY_TAG)
        && (wanted.from == envelope.from || wanted.from == ANY_SOURCE)
}

impl<Q: EventQueue<Event>> Cluster<Q> {
    /// One step of a send that may have to be offered first.
    pub(super) fn send_step(
        &mut self,
        id: u32,
        address: Address,
        bytes: u64,
        step: u32,
    ) -> Outcome {
        if bytes <= self.eager_bytes {
            self.send_point(id, address, bytes);
            return Outcome::WaitLast;
        }
        if step == 0 {
            self.send_offer(id, address, bytes);
            return Outcome::Wait;
        }
        self.send_offered(id);
        Outcome::WaitLast
    }

    /// One step of a receive: what comes is the message, or an offer to be replied to.
    pub(super) fn receive_step(&mut self, id: u32, wanted: Envelope, step: u32) -> Outcome {
        if step == 0 {
            return match self.receive_point(id, wanted) {
                Some(NONE) => Outcome::WaitLast,
                Some(offer) => {
                    self.tasks.get_mut(id).offer = offer;
                    Outcome::Wait
                }
                None => Outcome::Wait,
            };
        }
        self.reply_to_offer(id);
        Outcome::WaitLast
    }

    /// Sends to a process at once; the task waits until it has left.
    pub(super) fn send_point(&mut self, id: u32, address: Address, bytes: u64) {
        let envelope = self.envelope(id, address);
        self.send_from(id, address.to, bytes, Kind::Point { envelope });
    }

    fn envelope(&self, id: u32, address: Address) -> Envelope {
        let from = self.tasks.get(id).process;
        Envelope { from, tag: address.tag, context: address.context }
    }

    fn send_from(&mut self, id: u32, to: u32, bytes: u64, kind: Kind) {
        self.tasks.get_mut(id).pending += 1;
        self.send(self.node_of(id), to, id, bytes, kind);
    }

    fn send_offer(&mut self, id: u32, address: Address, bytes: u64) {
        let envelope = self.envelope(id, address);
        let Address { to, tag, .. } = address;
        let offer = self.offers.add(Offer { sender: id, receiver: NONE, to, tag, bytes });
        let task = self.tasks.get_mut(id);
        task.offer = offer;
        task.pending += 1;
        self.send_from(id, to, OFFER_BYTES, Kind::Offer { envelope, offer });
    }

    fn send_offered(&mut self, id: u32) {
        let offer = std::mem::replace(&mut self.tasks.get_mut(id).offer, NONE);
        let Offer { to, bytes, .. } = *self.offers.get(offer);
        self.send_from(id, to, bytes, Kind::Offered { offer });
    }

    fn reply_to_offer(&mut self, id: u32) {
        let offer = std::mem::replace(&mut self.tasks.get_mut(id).offer, NONE);
        let held = self.offers.get_mut(offer);
        held.receiver = id;
        let to = self.tasks.get(held.sender).process;
        self.tasks.get_mut(id).pending += 1;
        self.send_from(id, to, OFFER_BYTES, Kind::Reply { offer });
    }

    /// Awaits a message, unless it is here already: then gives the offer, or `NONE`.
    pub(super) fn receive_point(&mut self, id: u32, wanted: Envelope) -> Option<u32> {
        let task = self.tasks.get_mut(id);
        let process = &mut self.processes[task.process as usize];
        match process.early.iter().position(|early| matches(wanted, early.envelope)) {
            Some(index) => process.early.remove(index).map(|early| early.offer),
            None => {
                task.pending += 1;
                process.receives.push_back((wanted, id));
                None
            }
        }
    }

    /// A message, or an offer of one, has arrived at a process.
    pub(in crate::cluster) fn point_arrived(&mut self, to: u32, envelope: Envelope, offer: u32) {
        let process = &mut self.processes[to as usize];
        let place = process.receives.iter().position(|held| matches(held.0, envelope));
        let Some((_, task)) = place.and_then(|index| process.receives.remove(index)) else {
            return process.early.push_back(Early { envelope, offer });
        };
        if offer != NONE {
            self.tasks.get_mut(task).offer = offer;
        } else if let MatchContext::Point(_) = envelope.context {
            self.top(task).is_last = true;
        }
        self.settle_one(task);
    }

    /// The receiver is ready for an offered message.
    pub(in crate::cluster) fn reply_arrived(&mut self, offer: u32) {
        self.settle_one(self.offers.get(offer).sender);
    }

    /// The data of an offered message is there.
    pub(in crate::cluster) fn offered_arrived(&mut self, offer: u32) {
        let receiver = self.offers.get(offer).receiver;
        self.offers.remove(offer);
        self.settle_one(receiver);
    }

    /// A message of a program that has arrived and was never asked for.
    pub(in crate::cluster) fn unreceived(&self) -> Option<Unreceived> {
        let crashed = &self.active_faults.crashed;
        let alive = || self.processes.iter().zip(0..).filter(|(_, id)| !crashed.contains(id));
        let left = || alive().flat_map(|(to, _)| to.early.iter().map(move |one| (to, one)));
        let (to, early) = left().next()?;
        Some(Unreceived {
            application: to.program,
            rank: to.rank,
            from: self.processes[early.envelope.from as usize].rank,
            tag: early.envelope.tag,
            count: left().count() as u64,
        })
    }
}
