//! What a run is made of, whichever machines it has: those of a cluster or of a parallel file system.

use crate::cluster::{Cluster, HopTotals, LinkKind, Progress, Recording, RunError, ServerTotals};
use crate::file_system::{CacheTotals, FileSystem, TrafficTotals};
use crate::program::Program;
use crate::queue::EventQueue;
use crate::scenario::Faults;
use crate::world::Event;
use iolab_vocab::Nanos;

/// A run that can be begun, watched, and asked what came of it.
pub(super) trait Run {
    fn inject(&mut self, faults: &Faults);
    fn record(&mut self);
    fn start(&mut self);
    fn advance(&mut self, event_count: u64) -> bool;
    fn progress(&self) -> Progress;
    fn verdict(&mut self) -> Result<Nanos, RunError>;
    fn take_recording(&mut self) -> Option<Recording>;
    fn event_count(&self) -> u64;
    fn event_hash(&self) -> u64;
    fn lost_packet_count(&self) -> u64;
    fn applications(&self) -> Vec<(&dyn Program, Nanos)>;
    fn server_totals(&self) -> Vec<ServerTotals>;
    fn link_totals(&self) -> Vec<(LinkKind, HopTotals)>;
    /// What servers of a file system were asked, by their places among the platform's.
    fn traffic(&self) -> Vec<(usize, TrafficTotals)>;
    /// What its cache managers did, by the nodes of the platform.
    fn caches(&self) -> Vec<(usize, CacheTotals)>;
}

macro_rules! run {
    ($kind:ident, $traffic:expr, $caches:expr) => {
        impl<Q: EventQueue<Event>> Run for $kind<'_, Q> {
            fn inject(&mut self, faults: &Faults) {
                $kind::inject(self, faults);
            }

            fn record(&mut self) {
                $kind::record(self);
            }

            fn start(&mut self) {
                $kind::start(self);
            }

            fn advance(&mut self, event_count: u64) -> bool {
                $kind::advance(self, event_count)
            }

            fn progress(&self) -> Progress {
                $kind::progress(self)
            }

            fn verdict(&mut self) -> Result<Nanos, RunError> {
                $kind::verdict(self)
            }

            fn take_recording(&mut self) -> Option<Recording> {
                $kind::take_recording(self)
            }

            fn event_count(&self) -> u64 {
                $kind::event_count(self)
            }

            fn event_hash(&self) -> u64 {
                $kind::event_hash(self)
            }

            fn lost_packet_count(&self) -> u64 {
                $kind::lost_packet_count(self)
            }

            fn applications(&self) -> Vec<(&dyn Program, Nanos)> {
                $kind::applications(self).collect()
            }

            fn server_totals(&self) -> Vec<ServerTotals> {
                $kind::server_totals(self).collect()
            }

            fn link_totals(&self) -> Vec<(LinkKind, HopTotals)> {
                $kind::link_totals(self).collect()
            }

            fn traffic(&self) -> Vec<(usize, TrafficTotals)> {
                $traffic(self)
            }

            fn caches(&self) -> Vec<(usize, CacheTotals)> {
                $caches(self)
            }
        }
    };
}

run!(Cluster, |_| Vec::new(), |_| Vec::new());
run!(FileSystem, |run: &Self| FileSystem::traffic(run).collect(), |run: &Self| {
    FileSystem::cache_totals(run).collect()
});
