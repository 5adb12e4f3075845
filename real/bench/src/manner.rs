//! Manner: what a run may do to files that exist, and what becomes of its own.

/// How a run stands to files that exist, and to its own when it ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// What exists is read as it is, never cut, never removed.
    pub existing: bool,
    /// What exists may be written to; it stays.
    pub overwrite: bool,
    /// What the run made stays, too.
    pub keep: bool,
}
