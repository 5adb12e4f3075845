//! The clock of a recording.

use std::fs;

/// The clock that times are read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockSource {
    /// The processor's counter: 9 ns a reading.
    Counter,
    /// `CLOCK_MONOTONIC`: 20 ns a reading.
    Monotonic,
}

impl ClockSource {
    /// The counter where it ticks at one rate in all states of the processor.
    pub fn of_this_machine() -> ClockSource {
        let information = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        match iolab_processor::is_counter_steady(&information) {
            true => ClockSource::Counter,
            false => ClockSource::Monotonic,
        }
    }
}
