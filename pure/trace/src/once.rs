//! Which calls of a trace count, so that every transfer counts once.
//!
//! A call of a library and the system calls it makes both stand in a trace, and the bytes of a stream
//! reach the system in other calls than the program made, or never. What reached the system is exact, so
//! where a trace has system calls on a file, they count; calls of a library count on files of which it has
//! none (traces of MPI programs, of other tools). A system call inside another one (`system`, `popen`),
//! or inside a call that counted, is the outer one's.

use crate::{Class, Event, Function, Layer};
use iolab_vocab::FileId;
use std::collections::BTreeMap;

/// Takes the events of a trace in their order.
#[derive(Clone, Debug, Default)]
pub struct Once {
    /// Files on which there were system calls.
    reached: Vec<bool>,
    any_reached: bool,
    /// Whether what lies inside the last outermost call of each thread is counted with it.
    covered: BTreeMap<(u32, u32), bool>,
    last: Option<((u32, u32), bool)>,
}

impl Once {
    /// Whether the next event counts.
    pub fn counts(&mut self, event: &Event) -> bool {
        let layer = event.function.layer();
        if layer.is_component() || event.function.class() == Class::Piece {
            return false;
        }
        let thread = (event.process, event.thread);
        if event.parent >= 0 {
            if layer != Layer::Posix {
                return false;
            }
            self.reach(event);
            return !self.covered.get(&thread).copied().unwrap_or(false);
        }
        let counts = match layer {
            Layer::Posix => true,
            // Messages move nothing to or from files; what they do to files themselves counts.
            Layer::Mpi => false,
            // Whatever HDF5 and NetCDF are called for, they write metadata and data of other calls as well.
            _ if layer.names_objects() && !event.function.class().moves_data() => false,
            _ => !self.is_reached(event.file),
        };
        if layer == Layer::Posix {
            self.reach(event);
        }
        if self.last != Some((thread, counts)) {
            self.covered.insert(thread, counts);
            self.last = Some((thread, counts));
        }
        counts
    }

    /// Whether there was a system call on the file so far; of none in particular, any.
    pub fn is_reached(&self, file: FileId) -> bool {
        match file.index() {
            Some(index) => self.reached.get(index).copied().unwrap_or(false),
            None => self.any_reached,
        }
    }

    fn reach(&mut self, event: &Event) {
        if event.function == Function::INHERITED {
            // A descriptor that was there is no call.
            return;
        }
        self.any_reached = true;
        if let Some(index) = event.file.index() {
            if self.reached.len() <= index {
                self.reached.resize(index + 1, false);
            }
            self.reached[index] = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Function;

    fn call(function: Function, file: u32, parent: i64) -> Event {
        Event { file: FileId(file), parent, ..Event::of(function) }
    }

    #[test]
    fn what_reaches_the_system_counts_and_not_what_filled_its_buffer() {
        let mut once = Once::default();
        let rows = [
            (call(Function::FOPEN, 0, -1), true),
            (call(Function::OPEN, 0, 0), false),
            (call(Function::FPRINTF, 0, -1), false),
            (call(Function::FCLOSE, 0, -1), false),
            (call(Function::WRITE, 0, 3), true),
            // Flushed by nobody's call.
            (call(Function::WRITE, 0, -1), true),
        ];
        for (row, (event, counts)) in rows.iter().enumerate() {
            assert_eq!(once.counts(event), *counts, "row {row}");
        }
    }

    #[test]
    fn a_library_counts_where_the_trace_has_nothing_below() {
        let mut once = Once::default();
        assert!(once.counts(&call(Function::MPI_FILE_WRITE, 0, -1)));
        assert!(once.counts(&call(Function::WRITE, 1, -1)));
        assert!(once.counts(&call(Function::MPI_FILE_WRITE, 0, -1)));
        assert!(!once.counts(&call(Function::FWRITE, 1, -1)));
    }

    #[test]
    fn a_descriptor_that_was_there_hides_no_call() {
        let mut once = Once::default();
        assert!(once.counts(&call(Function::MPI_FILE_OPEN, 0, -1)));
        assert!(!once.counts(&call(Function::INHERITED, 0, 0)));
        assert!(once.counts(&call(Function::INHERITED, 0, -1)));
        assert!(once.counts(&call(Function::MPI_FILE_WRITE, 0, -1)));
    }

    #[test]
    fn system_calls_inside_a_message_count_for_themselves() {
        let mut once = Once::default();
        assert!(once.counts(&call(Function::WRITE, 0, -1)));
        assert!(!once.counts(&call(Function::MPI_INIT, u32::MAX, -1)));
        assert!(once.counts(&call(Function::WRITE, 1, 1)));
    }

    #[test]
    fn a_part_of_a_call_is_none() {
        let mut once = Once::default();
        assert!(once.counts(&call(Function::COPY_FILE_RANGE, 0, -1)));
        assert!(!once.counts(&call(Function::COPY_TARGET, 1, 0)));
    }

    #[test]
    fn what_a_library_reaches_while_it_opens_counts_for_itself() {
        let mut once = Once::default();
        assert!(!once.counts(&call(Function::H5F_CREATE, 0, -1)));
        assert!(once.counts(&call(Function::PWRITE, 0, 0)));
        assert!(!once.counts(&call(Function::H5D_WRITE, 0, -1)));
        assert!(once.counts(&call(Function::PWRITE, 0, 2)));
        assert!(once.counts(&call(Function::H5D_WRITE, 1, -1)), "nothing below it is known");
    }

    #[test]
    fn calls_inside_a_system_call_are_the_outer_ones() {
        let mut once = Once::default();
        assert!(once.counts(&call(Function::SYSTEM, 0, -1)));
        assert!(!once.counts(&call(Function::OPEN, 1, 0)));
    }
}
