//! Models of media: a request and the time of its start go in, its completion comes out.
//!
//! Each model is one file with a page in `docs/models/` that says where its numbers come from and
//! how far they can be trusted. [`DeviceModel`] is what a platform file says; [`Device`] is one
//! drive at work, made from it.

mod catalog;
mod cost_table;
mod flash;
mod ftl;
mod hdd;
mod hdd_zoned;
pub mod local;
mod nvme;
mod ram;
mod ssd;
mod units;

pub use catalog::{Device, DeviceModel, Figures};
pub use cost_table::{CostTable, CostTableError};
pub use flash::FlashModel;
pub use hdd::{Hdd, HddModel};
pub use hdd_zoned::{ZonedHdd, ZonedHddModel};
pub use nvme::{Nvme, NvmeModel};
pub use ram::RamModel;
pub use ssd::{Ssd, SsdModel};
pub use units::{Rate, Size, Time};

pub use iolab_vocab::Direction;
use iolab_vocab::{Extent, FileId, Nanos};

/// One request to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Which way.
    pub direction: Direction,
    /// Which file (or region) of the device.
    pub file: FileId,
    /// Which bytes of it.
    pub extent: Extent,
}

/// How far the device had to move before it could transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Seek {
    /// Not at all: the access continues the last one.
    #[default]
    None,
    /// A little: rotation and a track-to-track seek.
    Near,
    /// Anywhere.
    Far,
}

/// What serving one request comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// From start to completion.
    pub duration: Nanos,
    /// How much of it passes before the first byte moves: behind accesses under way, positioning, latency.
    pub positioning: Nanos,
    /// How far the device had to move.
    pub seek: Seek,
}

impl Service {
    /// That takes so long, of which so many seconds move bytes.
    fn with_transfer(duration: Nanos, transfer_seconds: f64, seek: Seek) -> Service {
        Service { duration, positioning: duration.since(nanos(transfer_seconds)), seek }
    }
}

/// Nanoseconds of a duration computed in double precision: whole seconds and fraction apart, the
/// fraction cut off, never rounded. The published evaluation depends on this digit.
pub fn nanos(seconds: f64) -> Nanos {
    // Casts cut off like trunc() and take no call of the mathematical library.
    let whole = seconds as u64;
    let fraction = ((seconds - whole as f64) * 1e9) as u64;
    Nanos(whole.saturating_mul(1_000_000_000).saturating_add(fraction))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_packet_takes_the_published_time() {
        assert_eq!(nanos(102_400.0 / 104_857_600.0), Nanos(976_562));
        assert_eq!(nanos(102_400.0 / 1_048_576_000.0), Nanos(97_656));
    }
}
