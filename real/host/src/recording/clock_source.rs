//! The clock of a recording.

use std::fs;

/// The clock that times are read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockSource {
    /// The processor's time-stamp counter: 9 ns a reading.
    Counter,
    /// `CLOCK_MONOTONIC`: 20 ns a reading.
    Monotonic,
}

impl ClockSource {
    /// The counter where it ticks at one rate in all states of the processor.
    pub fn of_this_machine() -> ClockSource {
        let information = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let flags = information.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
        let has = |flag| flags.split_whitespace().any(|word| word == flag);
        if has("constant_tsc") && has("nonstop_tsc") {
            ClockSource::Counter
        } else {
            ClockSource::Monotonic
        }
    }
}
