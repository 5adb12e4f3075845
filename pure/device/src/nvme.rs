//! An NVMe drive: many requests at once, each on one flash channel, all through one bus.
//!
//! A request waits for the channel that is free first, occupies it for the flash latency, then
//! the shared bus for its bytes. So small requests scale with queue depth up to the number of
//! channels over the latency, large ones up to the rate. See `docs/models/nvme.md`.

use crate::{Access, Direction, Rate, Seek, Service, Time, nanos};
use iolab_vocab::Nanos;
use serde::Deserialize;

/// An NVMe drive as a platform file describes it.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct NvmeModel {
    /// Flash latency of a read.
    pub read_latency: Time,
    /// Latency of a write into the drive's cache.
    pub write_latency: Time,
    /// Bytes per second read.
    pub read_rate: Rate,
    /// Bytes per second written.
    pub write_rate: Rate,
    /// Requests the server keeps in flight.
    pub queue_depth: u32,
    /// Requests the flash works on at once.
    pub channels: u32,
}

/// A drive at work.
#[derive(Clone, Debug)]
pub struct Nvme {
    model: NvmeModel,
    channel_free_at: Vec<Nanos>,
    bus_free_at: Nanos,
}

impl Nvme {
    /// An idle drive.
    pub fn new(model: NvmeModel) -> Nvme {
        let channels = model.channels.max(1) as usize;
        Nvme { model, channel_free_at: vec![Nanos::ZERO; channels], bus_free_at: Nanos::ZERO }
    }

    /// Serves one access that arrives at `now`, beside those still under way.
    pub fn serve(&mut self, now: Nanos, access: Access) -> Service {
        let (latency, rate) = match access.direction {
            Direction::Read => (self.model.read_latency, self.model.read_rate),
            Direction::Write => (self.model.write_latency, self.model.write_rate),
        };
        let channel =
            self.channel_free_at.iter_mut().min().expect("a drive has at least one channel");
        let flash_done = (*channel).max(now).after(nanos(latency.0));
        *channel = flash_done;
        let transfer_seconds = access.extent.length as f64 / rate.0;
        self.bus_free_at = self.bus_free_at.max(flash_done).after(nanos(transfer_seconds));
        Service::with_transfer(self.bus_free_at.since(now), transfer_seconds, Seek::None)
    }

    /// Requests it wants in flight.
    pub fn queue_depth(&self) -> u32 {
        self.model.queue_depth
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_vocab::{Extent, FileId};

    #[test]
    fn small_reads_scale_with_channels_and_large_ones_share_the_bus() {
        let model = NvmeModel {
            read_latency: Time(1e-4),
            write_latency: Time(1e-5),
            read_rate: Rate(1e9),
            write_rate: Rate(1e9),
            queue_depth: 8,
            channels: 4,
        };
        let mut drive = Nvme::new(model);
        let mut read = |length| {
            let extent = Extent::new(0, length);
            drive.serve(Nanos(0), Access { direction: Direction::Read, file: FileId(0), extent })
        };
        let last = (0..8).map(|_| read(0).duration).last();
        assert_eq!(last, Some(Nanos(200_000)), "eight reads on four channels take two rounds");
        assert_eq!(read(1_000_000_000).duration, Nanos(1_000_300_000));
    }
}
