//! Flash, or the simple disk of the classic evaluation: a constant per access, then a rate.

use crate::{Access, Rate, Seek, Service, Time, nanos};
use serde::Deserialize;

/// A drive without positions.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct FlashModel {
    /// Cost of an access of any size.
    pub constant: Time,
    /// Transfer, bytes per second.
    pub rate: Rate,
}

impl FlashModel {
    /// Serves one access.
    pub fn serve(&self, access: Access) -> Service {
        let transfer_seconds = access.extent.length as f64 / self.rate.0;
        let duration = nanos(self.constant.0 + transfer_seconds);
        Service::with_transfer(duration, transfer_seconds, Seek::None)
    }
}
