//! Devices: each server has one, which carries out what it is given and may be slowed by faults.

use super::event::Event;
use super::message::Content;
use super::{Access, Id, ServerId, TransferId, World};
use crate::queue::EventQueue;
use iolab_device::Seek;
use iolab_vocab::{Direction, Nanos};

/// A server's device.
pub(super) struct Device {
    model: iolab_device::Device,
    totals: DeviceTotals,
    /// Factors by which faults slow it down.
    pub(super) slowness: Vec<f64>,
}

/// What a device has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceTotals {
    /// Transfers that continued the last one.
    pub no_seek_count: u64,
    /// Transfers near the last one.
    pub near_count: u64,
    /// Transfers elsewhere.
    pub far_count: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Time at least one transfer was under way, summed over transfers.
    pub busy_nanos: u64,
}

impl DeviceTotals {
    /// All transfers.
    pub fn access_count(&self) -> u64 {
        self.no_seek_count + self.near_count + self.far_count
    }

    fn count(&mut self, access: Access, seek: Seek, nanos: u64) {
        match seek {
            Seek::None => self.no_seek_count += 1,
            Seek::Near => self.near_count += 1,
            Seek::Far => self.far_count += 1,
        }
        match access.direction {
            Direction::Read => self.read_bytes += access.extent.length,
            Direction::Write => self.written_bytes += access.extent.length,
        }
        self.busy_nanos = self.busy_nanos.saturating_add(nanos);
    }
}

/// An access under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    pub(super) server: ServerId,
    pub(super) direction: Direction,
    /// The server's number for it.
    pub(super) ticket: u32,
}

impl Device {
    pub(super) fn new(model: iolab_device::Device) -> Device {
        Device { model, totals: DeviceTotals::default(), slowness: Vec::new() }
    }

    /// What it needs for a transfer, faults included.
    fn slowed(&self, duration: Nanos) -> Nanos {
        match self.slowness.is_empty() {
            true => duration,
            false => Nanos((duration.0 as f64 * self.slowness.iter().product::<f64>()) as u64),
        }
    }
}

impl<Q: EventQueue<Event>, C: Content> World<Q, C> {
    /// A server's device begins an access; its end is told with the ticket.
    pub(crate) fn access(&mut self, server: ServerId, access: Access, ticket: u32) {
        let id = self.transfers.add(Transfer { server, direction: access.direction, ticket });
        let source = self.source_of(server);
        let now = self.calendar.now;
        let device = &mut self.devices[server.index()];
        let service = device.model.serve(now, access);
        // No access takes no time at all, however fast the device.
        let least = u64::from(!access.extent.is_empty());
        let duration = device.slowed(service.duration).0.max(least);
        device.totals.count(access, service.seek, duration);
        if let Some(recorder) = &mut self.recorder {
            let positioning = Nanos(device.slowed(service.positioning).0.min(duration));
            let seek = (service.seek, positioning);
            recorder.transfer((id, server), access, seek, now, now.after(Nanos(duration)));
        }
        self.calendar.post(duration, source, Event::Transferred(id.0));
    }

    pub(super) fn end_transfer(&mut self, id: TransferId) -> Transfer {
        let transfer = *self.transfers.get(id);
        self.transfers.remove(id);
        transfer
    }
}

impl<Q, C: Content> World<Q, C> {
    /// What each device has done so far.
    pub(crate) fn device_totals(&self) -> impl Iterator<Item = DeviceTotals> + '_ {
        self.devices.iter().map(|device| device.totals)
    }
}
