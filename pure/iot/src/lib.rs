//! The `.iot` trace file.
