//! The study: every case on hard disks and on another medium, as bands over orders of simultaneous
//! events.

use iolab_sim::band::{Band, apart_by_chance_in};
use iolab_sim::evaluation::Case;

/// A case on both media.
pub(super) struct Pair {
    pub(super) case: Case,
    pub(super) hdd: Band,
    pub(super) other: Band,
}

impl Pair {
    /// How many times faster the other medium is.
    pub(super) fn gain(&self) -> f64 {
        self.hdd.median / self.other.median
    }
}

/// All cases, and what they ran on.
pub(super) struct Study {
    pub(super) pairs: Vec<Pair>,
    pub(super) other: String,
    /// The platforms are equal but for the devices of the servers.
    pub(super) differs_in_devices_only: bool,
    /// Random cases are means over so many.
    pub(super) draws: u64,
    /// Orders of simultaneous events of each case.
    pub(super) tie_seeds: u64,
}

impl Study {
    /// How far differences between bands can be trusted.
    pub(super) fn trust(&self) -> String {
        let (orders, one_in) = (self.tie_seeds, apart_by_chance_in(self.tie_seeds));
        match orders {
            1 => "Each case is a single order of simultaneous events: any difference below may be \
                  chance, and no verdict can be relied on."
                .to_owned(),
            _ => format!(
                "Ranges over {orders} orders of two cases that are alike are disjoint by chance once in {one_in:.0}."
            ),
        }
    }
}

/// `1.2345 (1.2001 to 1.3000)`, the median alone where all orders came to the same.
pub(super) fn ranged(band: &Band) -> String {
    match band.is_one_value() {
        true => format!("{:.4}", band.median),
        false => format!("{:.4} ({:.4} to {:.4})", band.median, band.low, band.high),
    }
}
