//! Memory as a storage medium: latency and bandwidth.

use crate::{Access, Rate, Seek, Service, Time, nanos};
use serde::Deserialize;

/// Memory that a server stores in.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct RamModel {
    /// Before the first byte.
    pub latency: Time,
    /// Bytes per second.
    pub rate: Rate,
}

impl RamModel {
    /// Serves one access.
    pub fn serve(&self, access: Access) -> Service {
        let transfer_seconds = access.extent.length as f64 / self.rate.0;
        let duration = nanos(self.latency.0 + transfer_seconds);
        Service::with_transfer(duration, transfer_seconds, Seek::None)
    }
}
