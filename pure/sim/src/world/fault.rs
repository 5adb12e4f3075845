//! Faults at work: what a scenario does to the world while it runs.
//!
//! A fault begins and ends by events of its own, which move no clock: a run ends with its last
//! real event. While nothing is wrong a run pays one test per device transfer, nothing per packet:
//! a lossy link's hops get a role of their own.
//!
//! - A slow device takes longer for every transfer that starts meanwhile.
//! - A stalled server is the host's business.
//! - A lossy link loses whole packets. The sender notices after a timeout and sends again, until
//!   a packet gets through; each time takes the link again, right behind the first. Packets behind
//!   may overtake. A cut link loses all; without an end, what it loses is lost for good.
//! - What runs on a crashed node takes no further step, and its processors do nothing any more. What
//!   was handed to its NIC still leaves; what is sent to it arrives, and the host may forget it.

use super::event::Event;
use super::hop::Role;
use super::message::Content;
use super::{Host, Id, NodeId, ServerId, World};
use crate::queue::{EventQueue, Source};
use crate::scenario::{Effect, Faults, Laid, Link};
use iolab_vocab::{Nanos, Random, Seed};
use std::collections::BTreeMap;

/// Faults of a run, and where they stand.
pub(super) struct ActiveFaults {
    laid: Vec<Laid>,
    random: Random,
    /// By hop of a lossy link.
    links: BTreeMap<u32, Lossy>,
    has_losses: bool,
    lost_count: u64,
}

/// A hop whose link loses packets, or has just ceased to.
struct Lossy {
    /// Which fault; nothing when it is over and the last resend is still to come.
    fault: Option<usize>,
    /// While it sends again: how much later than a packet sent once this one arrives.
    resend: Option<Nanos>,
}

/// What becomes of a packet.
enum LossOutcome {
    Passes,
    /// After so many losses.
    Late(u64),
    Lost,
}

impl ActiveFaults {
    pub(super) fn none() -> ActiveFaults {
        ActiveFaults {
            laid: Vec::new(),
            random: Random::new(Seed(0)),
            links: BTreeMap::new(),
            has_losses: false,
            lost_count: 0,
        }
    }

    fn loss(&mut self, fault: usize, now: Nanos) -> LossOutcome {
        let Laid { until, effect: Effect::Loss { share, timeout, .. }, .. } = &self.laid[fault]
        else {
            unreachable!("only a loss makes a link lossy");
        };
        let left = until.map(|until| until.since(now).0.div_ceil(timeout.0));
        if *share >= 1.0 {
            return left.map_or(LossOutcome::Lost, LossOutcome::Late);
        }
        let threshold = (share * u64::MAX as f64) as u64;
        let most = left.unwrap_or(u64::MAX);
        let random = &mut self.random;
        match (0..most).take_while(|_| random.bits() < threshold).count() {
            0 => LossOutcome::Passes,
            count => LossOutcome::Late(count as u64),
        }
    }

    fn timeout(&self, fault: usize) -> Nanos {
        match &self.laid[fault].effect {
            Effect::Loss { timeout, .. } => *timeout,
            _ => Nanos::ZERO,
        }
    }
}

impl<Q: EventQueue<Event>, C: Content> World<Q, C> {
    /// Lets these faults happen. They must have been laid on the platform the world is built from.
    pub(crate) fn inject(&mut self, faults: &Faults) {
        self.active_faults.random = Random::new(faults.seed);
        self.active_faults.laid.clone_from(&faults.laid);
        let is_loss = |laid: &Laid| matches!(laid.effect, Effect::Loss { .. });
        self.active_faults.has_losses = faults.laid.iter().any(is_loss);
        let mut moments = Vec::new();
        for (laid, index) in faults.laid.iter().zip(0..) {
            moments.push((laid.from, true, index));
            moments.extend(laid.until.map(|until| (until, false, index)));
        }
        // What ends comes before what begins at the same time.
        moments.sort_unstable_by_key(|&(time, begins, index)| (time, begins, index));
        let source = (self.network.hops.len() + self.nodes.len() + self.devices.len()) as u32;
        for (time, begins, index) in moments {
            let event = if begins { Event::FaultBegan(index) } else { Event::FaultEnded(index) };
            self.calendar.queue.push(time, Source(source), event);
        }
    }

    pub(super) fn fault_began<H: Host<Q, C>>(&mut self, host: &mut H, index: u32) {
        match self.active_faults.laid[index as usize].effect {
            Effect::Slow { server, factor } => {
                self.devices[ServerId(server).index()].slowness.push(factor);
            }
            Effect::Stall { server } => host.stalled(self, ServerId(server), true),
            Effect::Loss { link, .. } => self.begin_losses(link, index as usize),
            Effect::Crash { node } => {
                self.nodes[node as usize].cpu.clear();
                host.crashed(self, NodeId(node));
            }
        }
    }

    pub(super) fn fault_ended<H: Host<Q, C>>(&mut self, host: &mut H, index: u32) {
        match self.active_faults.laid[index as usize].effect {
            Effect::Slow { server, factor } => {
                let slowness = &mut self.devices[ServerId(server).index()].slowness;
                let place = slowness.iter().position(|one| *one == factor);
                slowness.swap_remove(place.expect("a fault ends after it began"));
            }
            Effect::Stall { server } => host.stalled(self, ServerId(server), false),
            Effect::Loss { link, .. } => self.end_losses(link),
            Effect::Crash { .. } => unreachable!("a crash has no end"),
        }
    }

    /// The hops at both ends of a link: what they send goes over it.
    fn hops_of(&self, link: Link) -> [u32; 2] {
        match link {
            Link::OfNode(node) => {
                let node = &self.nodes[node as usize];
                [node.departure, node.port]
            }
            Link::Cable(place) => {
                let first = self.first_cable_hop + 2 * place;
                [first, first + 1]
            }
        }
    }

    fn begin_losses(&mut self, link: Link, fault: usize) {
        for at in self.hops_of(link) {
            let hop = &mut self.network.hops[at as usize];
            hop.role = match hop.role {
                Role::Departure => Role::LossyDeparture,
                Role::Port => Role::LossyPort,
                lossy => lossy,
            };
            let lossy =
                self.active_faults.links.entry(at).or_insert(Lossy { fault: None, resend: None });
            lossy.fault = Some(fault);
        }
    }

    fn end_losses(&mut self, link: Link) {
        for at in self.hops_of(link) {
            let lossy = self.active_faults.links.get_mut(&at).expect("a fault ends after it began");
            lossy.fault = None;
            if lossy.resend.is_none() {
                self.heal(at);
            }
        }
    }

    fn heal(&mut self, at: u32) {
        self.active_faults.links.remove(&at);
        let hop = &mut self.network.hops[at as usize];
        hop.role = match hop.role {
            Role::LossyDeparture => Role::Departure,
            Role::LossyPort => Role::Port,
            sound => sound,
        };
    }

    /// A hop of a lossy link has carried its packet, perhaps in vain.
    pub(super) fn carried_with_losses<H: Host<Q, C>>(&mut self, host: &mut H, at: u32) {
        let hop = &self.network.hops[at as usize];
        let (packet, is_departure) = (hop.current, hop.role == Role::LossyDeparture);
        let lossy = self.active_faults.links.get_mut(&at).expect("a lossy hop has its fault");
        if let Some(delay) = lossy.resend.take() {
            if lossy.fault.is_none() {
                self.heal(at);
            }
            self.network.send_on(&mut self.calendar, at, packet, delay.0);
            return self.network.go_on(&mut self.calendar, at);
        }
        let fault = lossy.fault.expect("a hop without fault and resend is healed");
        if is_departure {
            self.depart(host, at, packet);
        }
        match self.active_faults.loss(fault, self.calendar.now) {
            LossOutcome::Passes => self.network.send_on(&mut self.calendar, at, packet, 0),
            LossOutcome::Lost => self.active_faults.lost_count += 1,
            LossOutcome::Late(count) => return self.send_again(at, packet, fault, count),
        }
        self.network.go_on(&mut self.calendar, at);
    }

    /// The packet gets through after so many losses; the hop is busy with it again for each,
    /// on a cut link only for the one that gets through.
    fn send_again(&mut self, at: u32, packet: u32, fault: usize, count: u64) {
        self.active_faults.lost_count += count;
        let delay = Nanos(count.saturating_mul(self.active_faults.timeout(fault).0));
        let is_cut = matches!(self.active_faults.laid[fault].effect, Effect::Loss { share, .. } if share >= 1.0);
        let times = if is_cut { 1 } else { count };
        let bytes = self.network.packets.get(packet).bytes;
        let hop = &mut self.network.hops[at as usize];
        let nanos = times.saturating_mul(hop.time(bytes));
        hop.totals.busy_nanos = hop.totals.busy_nanos.saturating_add(nanos);
        self.active_faults.links.entry(at).and_modify(|lossy| lossy.resend = Some(delay));
        self.calendar.post(nanos, at, Event::Carried(at));
    }
}

impl<Q, C: Content> World<Q, C> {
    /// Whether packets of a message can overtake each other by far.
    #[inline]
    pub(crate) fn loses_packets(&self) -> bool {
        self.active_faults.has_losses
    }

    /// Packets that links have lost so far; every one was sent again, or its link is cut for good.
    pub(crate) fn lost_packet_count(&self) -> u64 {
        self.active_faults.lost_count
    }

    /// Faults that never end, in the scenario's words.
    pub(crate) fn lasting_faults(&self) -> Vec<String> {
        let lasts = self.active_faults.laid.iter().filter(|laid| laid.until.is_none());
        lasts.map(|laid| laid.text.clone()).collect()
    }
}
