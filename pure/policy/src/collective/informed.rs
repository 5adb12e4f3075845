//! Two-phase or each for himself, decided by what either would cost on these devices and links.
//!
//! Two-phase trades positionings for messages. Where positioning costs next to nothing, as on
//! flash, or pieces are large, the exchange is all it adds. Every rank knows all lists and the same
//! figures, so all come to the same decision without a further message.

use super::{Access, Collective, DirectAccess, FileCall, TwoPhase};

/// The few figures of a platform by which accesses are weighed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// Servers that the file is laid over.
    pub server_count: u32,
    /// Bytes on one before the next one's turn.
    pub stripe_bytes: u64,
    /// Seconds before a device's access near the last one.
    pub near_seconds: f64,
    /// Seconds before an access anywhere.
    pub far_seconds: f64,
    /// Bytes per second of a device.
    pub device_rate: f64,
    /// Largest access, where servers join pieces by themselves.
    pub join_bytes: Option<u64>,
    /// Bytes per second of a process's link.
    pub link_rate: f64,
    /// Seconds from one end of a link to the other.
    pub link_seconds: f64,
}

impl Costs {
    /// Seconds that each for himself would take: all pieces are positioned for, unless servers
    /// join them.
    pub fn direct_seconds(&self, access: &Access) -> f64 {
        let servers = f64::from(self.server_count);
        let bytes = bytes_of(access);
        let pieces: f64 = access
            .wanted
            .iter()
            .flat_map(|wanted| wanted.within(wanted.span()))
            .map(|piece| {
                piece.length.div_ceil(self.stripe_bytes).min(u64::from(self.server_count)) as f64
            })
            .sum();
        let joined = |most: u64| (bytes / servers / most as f64).ceil() * servers;
        let pieces = self.join_bytes.map_or(pieces, |most| pieces.min(joined(most)));
        let devices = pieces / servers * self.near_seconds + bytes / servers / self.device_rate;
        devices.max(self.link(bytes / access.wanted.len() as f64))
    }

    /// Seconds of two-phase: fewer positionings, but everything travels twice, one after the other.
    pub fn two_phase_seconds(&self, access: &Access, buffer_bytes: u64) -> f64 {
        let (servers, ranks) = (f64::from(self.server_count), access.wanted.len() as f64);
        let bytes = bytes_of(access);
        let each = access.span().length as f64 / ranks;
        let rounds = (each / buffer_bytes as f64).ceil();
        let devices = ranks * rounds * self.far_seconds + bytes / servers / self.device_rate;
        let exchange = self.link(bytes / ranks * (ranks - 1.0) / ranks);
        let latencies = rounds * 4.0 * self.link_seconds;
        devices.max(self.link(bytes / ranks)) + exchange + latencies
    }

    fn link(&self, bytes: f64) -> f64 {
        bytes / self.link_rate
    }
}

fn bytes_of(access: &Access) -> f64 {
    access.wanted.iter().map(|wanted| wanted.measure(wanted.span()).0 as f64).sum()
}

/// The cheaper of direct and two-phase; two-phase where no costs are known.
pub fn informed(call: FileCall) -> Box<dyn Collective> {
    let is_direct = call.costs.is_some_and(|costs| {
        let two_phase = costs.two_phase_seconds(&call.access, call.buffer_bytes);
        costs.direct_seconds(&call.access) <= two_phase
    });
    match is_direct {
        true => Box::new(DirectAccess::new(call)),
        false => Box::new(TwoPhase::domains(call)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::Wanted;
    use iolab_vocab::{Direction, Extent};

    fn access(block: u64) -> Access {
        let blocks = (10 << 20) / block / 4;
        let list = |rank| {
            Wanted::new((0..blocks).map(|i| Extent::new((i * 4 + rank) * block, block)).collect())
        };
        Access { direction: Direction::Write, wanted: (0..4).map(list).collect() }
    }

    fn costs(seek: f64) -> Costs {
        Costs {
            server_count: 2,
            stripe_bytes: 65_536,
            near_seconds: seek,
            far_seconds: 2.0 * seek,
            device_rate: 50e6,
            join_bytes: None,
            link_rate: 100e6,
            link_seconds: 1e-4,
        }
    }

    #[test]
    fn devices_that_seek_make_two_phase_cheap_and_others_make_it_dear() {
        let is_direct = |block, seek| {
            let (access, costs) = (access(block), costs(seek));
            costs.direct_seconds(&access) < costs.two_phase_seconds(&access, 8 << 20)
        };
        assert!(!is_direct(4096, 5e-3));
        assert!(is_direct(4096, 0.0));
        assert!(is_direct(1 << 20, 1e-4));
    }

    #[test]
    fn servers_that_join_do_by_themselves_what_two_phase_is_for() {
        let (access, costs) = (access(4096), Costs { join_bytes: Some(10 << 20), ..costs(5e-3) });
        assert!(costs.direct_seconds(&access) < costs.two_phase_seconds(&access, 8 << 20));
    }

    #[test]
    fn the_estimates_are_what_one_computes_by_hand() {
        let one = Access {
            direction: Direction::Read,
            wanted: (0..2).map(|rank| Wanted::new(vec![Extent::new(rank * 1000, 1000)])).collect(),
        };
        // Two pieces on two servers: one positioning, 1000 B each at 50 MB/s.
        assert!((costs(1e-3).direct_seconds(&one) - (1e-3 + 20e-6)).abs() < 1e-12);
        // Two ranks position far on each server; half of 1000 B is exchanged; four latencies.
        let expected = 2.0 * 2e-3 + 20e-6 + 5e-6 + 4e-4;
        assert!((costs(1e-3).two_phase_seconds(&one, 8 << 20) - expected).abs() < 1e-12);
    }
}
