//! No cache: one write on the device, at most one packet's worth queued behind it.
//!
//! This is the null member and the template. After Kuhn 2009. A second packet is refused until
//! the queue of writes is empty, so clients wait for the device. It does join queued writes that
//! continue each other, which the original text denies and its code does.

use super::fifo::Fifo;
use super::layer::Layer;
use super::{Cache, Settings};

/// A server that holds nothing back.
pub fn no_cache(settings: Settings) -> impl Cache {
    Layer::new(settings, Fifo::new(false))
}
