//! Hops joined to a network: packets enter, wait, are carried, and relieve the hop behind.

use super::calendar::Calendar;
use super::event::Event;
use super::hop::{Hop, Role};
use super::packet::{NONE, Packets};
use crate::queue::EventQueue;
use std::collections::BTreeMap;

#[derive(Debug)]
pub(super) struct Network {
    pub(super) hops: Vec<Hop>,
    pub(super) packets: Packets,
    /// Per switch, the port to take for each target, or [`SEVERAL`] and the number of a choice.
    pub(super) routes: Vec<Vec<u32>>,
    choices: Vec<Choice>,
}

/// Marks a route that is a choice among ports.
const SEVERAL: u32 = 1 << 31;

/// Ports that lead to a target in equally many cables: parallel cables, or ways through different
/// switches.
#[derive(Debug)]
struct Choice {
    ports: Vec<u32>,
    /// Of each flow, by the hop where it entered and its target, the place of its port.
    taken: BTreeMap<(u32, u32), u32>,
}

impl Choice {
    /// What goes from one node to one target always takes the same port, so it stays in sequence.
    /// Each new such flow takes the next port, so that all ports have equally many, whatever the
    /// pattern of who speaks to whom.
    #[cold]
    fn port(&mut self, entry: u32, target: u32) -> u32 {
        let next = (self.taken.len() % self.ports.len()) as u32;
        let place = *self.taken.entry((entry, target)).or_insert(next);
        self.ports[place as usize]
    }
}

impl Network {
    /// Without a part.
    pub(super) fn new() -> Network {
        let (hops, routes) = (Vec::new(), Vec::new());
        Network { hops, packets: Packets::new(), routes, choices: Vec::new() }
    }

    /// The route that takes these ports alike.
    pub(super) fn route_among(&mut self, ports: &[u32]) -> u32 {
        if let [port] = *ports {
            return port;
        }
        let known = self.choices.iter().position(|choice| choice.ports == ports);
        let number = known.unwrap_or(self.choices.len());
        if known.is_none() {
            self.choices.push(Choice { ports: ports.to_vec(), taken: BTreeMap::new() });
        }
        SEVERAL | number as u32
    }

    /// A packet comes into a hop's queue.
    #[inline]
    pub(super) fn enter<Q: EventQueue<Event>>(&mut self, calendar: &mut Calendar<Q>, packet: u32) {
        let at = self.packets.get(packet).hop;
        let hop = &mut self.hops[at as usize];
        hop.queue.push(&mut self.packets, packet);
        if hop.current == NONE {
            self.start_next(calendar, at);
        }
    }

    /// The hop has ended its packet: it is idle, and starts the next one it may.
    #[inline]
    pub(super) fn go_on<Q: EventQueue<Event>>(&mut self, calendar: &mut Calendar<Q>, at: u32) {
        self.hops[at as usize].current = NONE;
        self.start_next(calendar, at);
    }

    fn start_next<Q: EventQueue<Event>>(&mut self, calendar: &mut Calendar<Q>, at: u32) {
        loop {
            let hop = &mut self.hops[at as usize];
            let Some(packet) = hop.queue.pop(&self.packets) else { return };
            let (target, bytes, previous) = {
                let packet = self.packets.get(packet);
                (packet.target, packet.bytes, packet.previous)
            };
            let nanos = hop.time(bytes);
            let (limit, limited) = (hop.limit_nanos, hop.is_limited());
            let flow = hop.flow(target);
            if flow.blocked || limited && flow.ahead_nanos >= limit {
                flow.waiting.push(&mut self.packets, packet);
                continue;
            }
            let mut pulled = None;
            if limited {
                flow.ahead_nanos = flow.ahead_nanos.saturating_add(nanos);
            } else {
                pulled = flow.waiting.pop(&self.packets);
            }
            hop.current = packet;
            hop.totals.packets += 1;
            hop.totals.bytes += u64::from(bytes);
            let busy = hop.busy_time(bytes, nanos);
            hop.totals.busy_nanos = hop.totals.busy_nanos.saturating_add(busy);
            if let Some(pulled) = pulled {
                hop.queue.push(&mut self.packets, pulled);
            }
            if previous != NONE {
                self.relieve(calendar, previous, target, bytes);
            }
            calendar.post(busy, at, Event::Carried(at));
            return;
        }
    }

    /// The hop ahead of `at` has started a packet that `at` had sent on.
    #[inline]
    fn relieve<Q: EventQueue<Event>>(
        &mut self,
        calendar: &mut Calendar<Q>,
        at: u32,
        target: u32,
        bytes: u32,
    ) {
        let hop = &mut self.hops[at as usize];
        let nanos = hop.time(bytes);
        let limit = hop.limit_nanos;
        let flow = hop.flow(target);
        flow.ahead_nanos = flow.ahead_nanos.saturating_sub(nanos);
        if flow.ahead_nanos < limit
            && let Some(packet) = flow.waiting.pop(&self.packets)
        {
            hop.queue.push(&mut self.packets, packet);
            if hop.current == NONE {
                self.start_next(calendar, at);
            }
        }
    }

    /// The packet that `at` has ended goes to the next hop, so much later than the latency says.
    #[inline]
    pub(super) fn send_on<Q: EventQueue<Event>>(
        &mut self,
        calendar: &mut Calendar<Q>,
        at: u32,
        packet: u32,
        delay: u64,
    ) {
        let hop = &self.hops[at as usize];
        let next = match hop.role {
            Role::Switch => {
                let target = self.packets.get(packet).target;
                let port = self.routes[hop.next as usize][target as usize];
                match port & SEVERAL {
                    0 => port,
                    _ => {
                        let entry = self.packets.get(packet).entry;
                        self.choices[(port & !SEVERAL) as usize].port(entry, target)
                    }
                }
            }
            _ => hop.next,
        };
        let latency = hop.latency_nanos;
        self.packets.move_on(packet, at, next);
        calendar.post(latency.saturating_add(delay), at, Event::Arrived(packet));
    }

    /// From now on packets for `target` wait at this hop.
    pub(super) fn block(&mut self, at: u32, target: u32) {
        self.hops[at as usize].flow(target).blocked = true;
    }

    /// Packets for `target` may pass again; each one started pulls the next. While the hop carries
    /// somebody else's packet, the first that waits goes back into the queue: nobody else pulls it.
    pub(super) fn unblock<Q: EventQueue<Event>>(
        &mut self,
        calendar: &mut Calendar<Q>,
        at: u32,
        target: u32,
    ) {
        let hop = &mut self.hops[at as usize];
        let current = hop.current;
        let flow = hop.flow(target);
        flow.blocked = false;
        let pulls_by_itself = current != NONE && self.packets.get(current).target == target;
        if !pulls_by_itself && let Some(packet) = flow.waiting.pop(&self.packets) {
            hop.queue.push(&mut self.packets, packet);
            if current == NONE {
                self.start_next(calendar, at);
            }
        }
    }
}
