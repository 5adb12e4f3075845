//! Parts of one's own in place of the catalogue's: prototypes, perhaps in another language.
//!
//! Whoever builds a cluster may hand over a maker; what it does not make comes from the catalogues
//! as chosen. A part must keep the discipline of its family, which the driver relies on.

use iolab_policy::cache::{Cache, Settings};
use iolab_policy::collective::{Collective, CollectiveKind, FileCall, Shape};

/// Makes parts for one run. The maker that makes nothing is `()`.
pub trait PolicyOverrides: Send {
    /// The cache layer of one server.
    fn cache(&self, _settings: Settings) -> Option<Box<dyn Cache>> {
        None
    }

    /// One rank's machine for a command of messages.
    fn messages(&self, _serves: CollectiveKind, _shape: Shape) -> Option<Box<dyn Collective>> {
        None
    }

    /// One rank's machine for a collective access.
    fn file(&self, _call: &FileCall) -> Option<Box<dyn Collective>> {
        None
    }
}

impl PolicyOverrides for () {}
