//! Faults at work: what a scenario does to a cluster while it runs.
//!
//! A fault begins and ends by events of its own, which move no clock: a run ends with its last
//! real event. While nothing is wrong a run pays one test per step of a cache layer and one per
//! device transfer, nothing per packet: a lossy link's hops get a role of their own.
//!
//! - A slow device takes longer for every transfer that starts meanwhile.
//! - A stalled server's cache layer is told nothing: what arrives or completes is told at the end,
//!   in order. Write data is not admitted, so its NIC backs up; what is at its NIC still leaves.
//! - A lossy link loses whole packets. The sender notices after a timeout and sends again, until
//!   a packet gets through; each time takes the link again, right behind the first. Packets behind
//!   may overtake. A cut link loses all; without an end, what it loses is lost for good.
//! - A crashed client's processes take no further step. What they handed to their NIC still
//!   leaves, what is sent to them is taken in and forgotten, meetings wait for them in vain.

use super::event::Event;
use super::hop::Role;
use super::{Cluster, EventQueue};
use crate::queue::Source;
use crate::scenario::{Effect, Faults, Laid, Link};
use iolab_policy::cache::Event as CacheEvent;
use iolab_vocab::{Nanos, Random, Seed};
use std::collections::BTreeMap;

/// Faults of a run, and where they stand.
pub(super) struct ActiveFaults {
    laid: Vec<Laid>,
    random: Random,
    /// By hop of a lossy link.
    links: BTreeMap<u32, Lossy>,
    /// Whether packets of a message can overtake each other by far.
    pub(super) has_losses: bool,
    lost_count: u64,
    /// Processes that stopped before their end.
    pub(super) crashed: Vec<u32>,
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
            crashed: Vec::new(),
        }
    }

    /// What never ends, in the scenario's words.
    pub(super) fn lasting(&self) -> Vec<String> {
        let lasts = self.laid.iter().filter(|laid| laid.until.is_none());
        lasts.map(|laid| laid.text.clone()).collect()
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

impl<Q: EventQueue<Event>> Cluster<Q> {
    /// Lets these faults happen. They must have been laid on the platform the cluster is built
    /// from.
    pub fn inject(&mut self, faults: &Faults) {
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
        let source = (self.network.hops.len() + self.nodes.len() + self.servers.len()) as u32;
        for (time, begins, index) in moments {
            let event = if begins { Event::FaultBegan(index) } else { Event::FaultEnded(index) };
            self.calendar.queue.push(time, Source(source), event);
        }
    }

    /// Packets that links have lost so far; every one was sent again, or its link is cut for good.
    pub fn lost_packet_count(&self) -> u64 {
        self.active_faults.lost_count
    }

    pub(super) fn fault_began(&mut self, index: u32) {
        match self.active_faults.laid[index as usize].effect {
            Effect::Slow { server, factor } => {
                self.servers[server as usize].slowness.push(factor);
            }
            Effect::Stall { server } => self.servers[server as usize].stall_count += 1,
            Effect::Loss { link, .. } => self.begin_losses(link, index as usize),
            Effect::Crash { node } => self.crash(node),
        }
    }

    pub(super) fn fault_ended(&mut self, index: u32) {
        match self.active_faults.laid[index as usize].effect {
            Effect::Slow { server, factor } => {
                let slowness = &mut self.servers[server as usize].slowness;
                let place = slowness.iter().position(|one| *one == factor);
                slowness.swap_remove(place.expect("a fault ends after it began"));
            }
            Effect::Stall { server } => self.end_stall(server),
            Effect::Loss { link, .. } => self.end_losses(link),
            Effect::Crash { .. } => unreachable!("a crash has no end"),
        }
    }

    /// Tells the server's cache layer what has happened meanwhile.
    fn end_stall(&mut self, index: u32) {
        let server = &mut self.servers[index as usize];
        server.stall_count -= 1;
        if server.stall_count > 0 {
            return;
        }
        for event in std::mem::take(&mut server.held) {
            match event {
                CacheEvent::Woke => {
                    self.woke(index);
                }
                CacheEvent::Completed { .. } => {
                    self.tell(index, event);
                    self.take_parked(index);
                }
                _ => {
                    self.tell(index, event);
                }
            }
        }
        self.take_parked(index);
        self.release_parts(index);
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
    pub(super) fn carried_with_losses(&mut self, at: u32) {
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
            self.departed(at, packet);
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

    /// All processes of a node stop where they are.
    fn crash(&mut self, node: u32) {
        self.nodes[node as usize].cpu.clear();
        let dead = |process: u32| self.processes[process as usize].node == node;
        let tasks: Vec<u32> = self
            .tasks
            .all()
            .filter(|(_, task)| dead(task.process) && !task.frames.is_empty())
            .map(|(id, _)| id)
            .collect();
        tasks.into_iter().for_each(|id| self.stop_task(id));
    }

    /// The task waits for more than ever comes, and nobody finds it anywhere.
    fn stop_task(&mut self, id: u32) {
        let task = self.tasks.get_mut(id);
        task.frames.clear();
        task.pending = u32::MAX;
        let process = task.process;
        if id == process {
            self.running_count -= 1;
        }
        if !self.active_faults.crashed.contains(&process) {
            self.active_faults.crashed.push(process);
        }
        self.processes[process as usize].receives.clear();
        for group in &mut self.groups {
            let rank = group.rank(process);
            for meeting in &mut group.meetings {
                if let Some(place) = meeting.waiting.iter().position(|one| *one == id) {
                    meeting.waiting.remove(place);
                    meeting.present[rank.expect("only members come") as usize] = false;
                }
            }
        }
    }
}
