//! A hop of the network: one server, one FIFO queue, whole packets, and a limit per target.
//!
//! NIC, switch and switch port are all this, with different figures. A hop keeps, per final
//! target, the sum of its own processing times of packets it has started and the next hop has not.
//! At the limit, packets for that target wait beside the queue, so a slow receiver holds back
//! what is meant for it and nothing else.

use super::flow::{Flow, Flows};
use super::packet::PacketQueue;
use iolab_device::nanos;

/// What kind of hop it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A node's NIC on the way out: cuts messages into packets.
    Departure,
    /// A switch: `routes[next][target]` tells the port.
    Switch,
    /// A switch port towards a node or another switch.
    Port,
    /// A node's NIC on the way in: delivers.
    Arrival,
    /// Inside a node: cuts and delivers.
    Internal,
    /// A departure whose link loses packets.
    LossyDeparture,
    /// A port whose link loses packets.
    LossyPort,
}

/// A part of the network as results call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// A switch.
    Switch,
    /// A node's NIC, outwards.
    NicOut,
    /// A node's NIC, inwards; it takes no time of its own.
    NicIn,
    /// A switch port towards a node or another switch.
    Port,
    /// Between the processes of one node.
    Internal,
}

impl LinkKind {
    /// As results write it.
    pub fn name(self) -> &'static str {
        match self {
            LinkKind::Switch => "switch",
            LinkKind::NicOut => "nic-out",
            LinkKind::NicIn => "nic-in",
            LinkKind::Port => "port",
            LinkKind::Internal => "internal",
        }
    }
}

impl Role {
    pub(super) fn kind(self) -> LinkKind {
        match self {
            Role::Departure | Role::LossyDeparture => LinkKind::NicOut,
            Role::Switch => LinkKind::Switch,
            Role::Port | Role::LossyPort => LinkKind::Port,
            Role::Arrival => LinkKind::NicIn,
            Role::Internal => LinkKind::Internal,
        }
    }
}

/// What a hop has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HopTotals {
    /// Packets it has carried.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Time it was busy.
    pub busy_nanos: u64,
}

#[derive(Debug)]
pub(super) struct Hop {
    pub(super) role: Role,
    /// The next hop, or for a switch its row of routes; for an arrival its node.
    pub(super) next: u32,
    pub(super) latency_nanos: u64,
    pub(super) limit_nanos: u64,
    pub(super) queue: PacketQueue,
    pub(super) current: u32,
    pub(super) totals: HopTotals,
    flows: Flows,
    rate: f64,
    /// What whole nanoseconds cut off so far, on a hop so fast that it matters.
    fraction: Option<f64>,
    full: (u32, u64),
    memo: (u32, u64),
}

impl Hop {
    pub(super) fn new(role: Role, rate: f64, latency: f64, packet_bytes: u32) -> Hop {
        let full_nanos = nanos(f64::from(packet_bytes) / rate).0;
        let latency_nanos = nanos(latency).0;
        Hop {
            role,
            next: super::packet::NONE,
            latency_nanos,
            // One packet may always pass, however short it is.
            limit_nanos: latency_nanos.saturating_add(full_nanos).max(1),
            queue: PacketQueue::EMPTY,
            current: super::packet::NONE,
            totals: HopTotals::default(),
            flows: Flows::default(),
            rate,
            fraction: None,
            full: (packet_bytes, full_nanos),
            memo: (0, 0),
        }
    }

    /// Where a full packet takes less than this, cut-off fractions would be more than a thousandth.
    const FAST_NANOS: u64 = 1000;

    /// On a fast hop fractions of nanoseconds are kept for the packets that follow.
    pub(super) fn carry_fractions(&mut self) {
        let is_fast = self.rate.is_finite() && self.full.1 < Hop::FAST_NANOS;
        self.fraction = is_fast.then_some(0.0);
    }

    /// How long it is busy with the next packet, of so many bytes: the time it needs, and the
    /// nanoseconds that fractions have added up to.
    #[inline]
    pub(super) fn busy_time(&mut self, bytes: u32, nanos: u64) -> u64 {
        match self.fraction {
            None => nanos,
            Some(fraction) => {
                let exact = f64::from(bytes) / self.rate * 1e9 + fraction;
                self.fraction = Some(exact.fract());
                exact as u64
            }
        }
    }

    /// Time this hop needs for so many bytes.
    #[inline]
    pub(super) fn time(&mut self, bytes: u32) -> u64 {
        if bytes == self.full.0 {
            return self.full.1;
        }
        if bytes != self.memo.0 {
            self.memo = (bytes, nanos(f64::from(bytes) / self.rate).0);
        }
        self.memo.1
    }

    #[inline]
    pub(super) fn flow(&mut self, target: u32) -> &mut Flow {
        self.flows.of(target)
    }

    /// Whether a sum of times started ahead of the next hop exists here at all.
    #[inline]
    pub(super) fn is_limited(&self) -> bool {
        !matches!(self.role, Role::Arrival | Role::Internal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_shorter_than_a_nanosecond_add_up_and_one_may_always_pass() {
        let mut hop = Hop::new(Role::Port, 1e12, 0.0, 300);
        hop.carry_fractions();
        assert!(hop.limit_nanos > 0 && hop.time(300) == 0);
        let total: u64 = (0..1000).map(|_| hop.busy_time(300, 0)).sum();
        assert!((299..=300).contains(&total), "{total} ns for 1000 packets of 0.3 ns");
    }

    #[test]
    fn the_classic_hops_cut_fractions_as_published() {
        let mut hop = Hop::new(Role::Switch, 1000.0 * 1048576.0, 0.0, 102_400);
        hop.carry_fractions();
        let nanos = hop.time(102_400);
        assert_eq!((0..1000).map(|_| hop.busy_time(102_400, nanos)).sum::<u64>(), 97_656_000);
    }
}
