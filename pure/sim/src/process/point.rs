//! Messages between processes: eager up to a size, above it offered first.
//!
//! An eager message travels at once and is kept by its receiver until somebody asks for it. A
//! larger one is offered; whoever receives it replies, and only then the data goes. Receives match
//! on sender, tag and context, oldest first; a context keeps what belongs to a communicator's collective
//! operations, or to a file's, apart from the program's own messages.

use super::Unreceived;
use super::message::{Envelope, MatchContext, Message};
use super::{Event, Files, OfferId, Outcome, ProcessId, Processes};
use crate::program::ANY_TAG;
use crate::queue::EventQueue;
use crate::slab::Id;
use crate::world::{Target, TaskId, World};

/// Wire size of an offer, and of the reply to it.
const OFFER_BYTES: u64 = 100;

/// A message above the eager limit, from its offer until its data is there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer {
    /// Process that sends.
    pub(crate) from: ProcessId,
    /// Its task that does. In the background it may be gone before the data has arrived.
    pub(crate) sender: TaskId,
    /// Task that receives, once it is known.
    pub(crate) receiver: Option<TaskId>,
    /// Process that receives.
    pub(crate) to: ProcessId,
    pub(crate) tag: u32,
    bytes: u64,
}

/// Something that has arrived before anyone asked for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Early {
    envelope: Envelope,
    /// The offer, unless it is the message itself.
    offer: Option<OfferId>,
}

/// Where a message goes.
#[derive(Clone, Copy)]
pub(crate) struct Address {
    pub(crate) to: ProcessId,
    pub(crate) tag: u32,
    pub(crate) context: MatchContext,
}

/// Whether a message with this envelope is what a receive asks for.
fn matches(wanted: Envelope, envelope: Envelope) -> bool {
    wanted.context == envelope.context
        && (wanted.tag == envelope.tag || wanted.tag == ANY_TAG)
        && (wanted.from == envelope.from || wanted.from.is_none())
}

impl<F: Files> Processes<'_, F> {
    /// One step of a send that may have to be offered first.
    pub(crate) fn send_step<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q, F::Content>,
        id: TaskId,
        address: Address,
        bytes: u64,
        step: u32,
    ) -> Outcome<F::Work> {
        if bytes <= self.eager_bytes {
            self.send_point(world, id, address, bytes);
            return Outcome::WaitLast;
        }
        if step == 0 {
            self.send_offer(world, id, address, bytes);
            return Outcome::Wait;
        }
        self.send_offered(world, id);
        Outcome::WaitLast
    }

    /// One step of a receive: what comes is the message, or an offer to be replied to.
    pub(crate) fn receive_step<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q, F::Content>,
        id: TaskId,
        wanted: Envelope,
        step: u32,
    ) -> Outcome<F::Work> {
        if step == 0 {
            return match self.receive_point(id, wanted) {
                Some(None) => Outcome::WaitLast,
                Some(offer) => {
                    self.tasks.get_mut(id).offer = offer;
                    Outcome::Wait
                }
                None => Outcome::Wait,
            };
        }
        self.reply_to_offer(world, id);
        Outcome::WaitLast
    }

    /// Sends to a process at once; the task waits until it has left.
    pub(crate) fn send_point<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q, F::Content>,
        id: TaskId,
        address: Address,
        bytes: u64,
    ) {
        let envelope = self.envelope(id, address);
        self.send_from(world, id, address.to, bytes, Message::Point { envelope });
    }

    fn envelope(&self, id: TaskId, address: Address) -> Envelope {
        let from = Some(self.tasks.get(id).process);
        Envelope { from, tag: address.tag, context: address.context }
    }

    fn send_from<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q, F::Content>,
        id: TaskId,
        to: ProcessId,
        bytes: u64,
        message: Message,
    ) {
        self.tasks.get_mut(id).pending += 1;
        world.send(self.node_of(id), to.target(), Some(id), bytes, message.into());
    }

    fn send_offer<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q, F::Content>,
        id: TaskId,
        address: Address,
        bytes: u64,
    ) {
        let envelope = self.envelope(id, address);
        let Address { to, tag, .. } = address;
        let from = self.tasks.get(id).process;
        let offer = self.offers.add(Offer { from, sender: id, receiver: None, to, tag, bytes });
        let task = self.tasks.get_mut(id);
        task.offer = Some(offer);
        task.pending += 1;
        self.send_from(world, id, to, OFFER_BYTES, Message::Offer { envelope, offer });
    }

    fn send_offered<Q: EventQueue<Event>>(&mut self, world: &mut World<Q, F::Content>, id: TaskId) {
        let offer = self.take_offer(id);
        let Offer { to, bytes, .. } = *self.offers.get(offer);
        self.send_from(world, id, to, bytes, Message::Offered { offer });
    }

    fn take_offer(&mut self, id: TaskId) -> OfferId {
        self.tasks.get_mut(id).offer.take().expect("the step before has come to an offer")
    }

    fn reply_to_offer<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q, F::Content>,
        id: TaskId,
    ) {
        let offer = self.take_offer(id);
        let held = self.offers.get_mut(offer);
        held.receiver = Some(id);
        let to = held.from;
        self.tasks.get_mut(id).pending += 1;
        self.send_from(world, id, to, OFFER_BYTES, Message::Reply { offer });
    }

    /// Awaits a message, unless it, or an offer of it, is here already.
    pub(crate) fn receive_point(
        &mut self,
        id: TaskId,
        wanted: Envelope,
    ) -> Option<Option<OfferId>> {
        let task = self.tasks.get_mut(id);
        let process = &mut self.processes[task.process.index()];
        match process.early.iter().position(|early| matches(wanted, early.envelope)) {
            Some(index) => process.early.remove(index).map(|early| early.offer),
            None => {
                task.pending += 1;
                process.receives.push_back((wanted, id));
                None
            }
        }
    }

    /// A message from another process has arrived.
    pub(crate) fn message_arrived<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q, F::Content>,
        target: Target,
        message: Message,
    ) {
        let to = ProcessId(target.0);
        match message {
            Message::Point { envelope } => self.point_arrived(world, to, envelope, None),
            Message::Offer { envelope, offer } => {
                self.point_arrived(world, to, envelope, Some(offer));
            }
            // The receiver is ready for an offered message.
            Message::Reply { offer } => {
                let sender = self.offers.get(offer).sender;
                self.settle_one(world, sender);
            }
            // Its data is there.
            Message::Offered { offer } => {
                let receiver = self.offers.get(offer).receiver;
                self.offers.remove(offer);
                self.settle_one(world, receiver.expect("data comes after the reply"));
            }
        }
    }

    /// A message, or an offer of one, has arrived at a process.
    fn point_arrived<Q: EventQueue<Event>>(
        &mut self,
        world: &mut World<Q, F::Content>,
        to: ProcessId,
        envelope: Envelope,
        offer: Option<OfferId>,
    ) {
        let process = &mut self.processes[to.index()];
        let place = process.receives.iter().position(|held| matches(held.0, envelope));
        let Some((_, task)) = place.and_then(|index| process.receives.remove(index)) else {
            return process.early.push_back(Early { envelope, offer });
        };
        if offer.is_some() {
            self.tasks.get_mut(task).offer = offer;
        } else if let MatchContext::Point(_) = envelope.context {
            self.top(task).is_last = true;
        }
        self.settle_one(world, task);
    }

    /// A message of a program that has arrived and was never asked for.
    pub(crate) fn unreceived(&self) -> Option<Unreceived> {
        let is_alive = |id: u32| !self.crashed.contains(&ProcessId(id));
        let alive = || self.processes.iter().zip(0..).filter(|(_, id)| is_alive(*id));
        let left = || alive().flat_map(|(to, _)| to.early.iter().map(move |one| (to, one)));
        let (to, early) = left().next()?;
        Some(Unreceived {
            application: to.application,
            rank: to.rank,
            from: self.rank_of(early.envelope.from?),
            tag: early.envelope.tag,
            count: left().count() as u64,
        })
    }
}
