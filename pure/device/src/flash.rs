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
        let seconds = self.constant.0 + access.extent.length as f64 / self.rate.0;
        Service { duration: nanos(seconds), seek: Seek::None }
    }
}
