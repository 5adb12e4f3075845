//! One rank's part in a run: the plan, the other ranks, the clock and the files that every stage of a
//! case works with. What it does is in the file of each stage.

use crate::files::TestFiles;
use crate::plan::Plan;
use crate::progress::KeptRecords;
use iolab_comm::Comm;
use iolab_host::tick::TickClock;

/// One rank's part in a run.
pub(crate) struct Runner<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) comm: &'a dyn Comm,
    pub(crate) clock: TickClock,
    /// The stamps of all ranks are of one clock.
    pub(crate) one_clock: bool,
    pub(crate) barrier_cost_ns: u64,
    pub(crate) files: &'a TestFiles,
    /// Where single operations go, on rank 0.
    pub(crate) records: &'a KeptRecords,
}
