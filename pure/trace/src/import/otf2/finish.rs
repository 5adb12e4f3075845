//! What can be said of rows only when all are there: their order, what lies in what, offsets from below.

use super::calls::Calls;
use crate::finish::adopt;
use crate::import::shared::{WITHOUT_FILE, end_processes, leave_out};
use crate::{Class, Clock, Event, Function, Layer, Origin, Trace, event};

/// Whether a row says nothing without a file.
fn is_about_a_file(function: Function) -> bool {
    let is_io = matches!(function.layer(), Layer::Posix | Layer::Stdio | Layer::Mpiio);
    is_io && function.class() != Class::Process && function != Function::SYNC
}

impl Calls {
    pub(super) fn into_trace(mut self) -> Trace {
        let before = self.rows.len();
        self.rows.retain(|row| row.file.index().is_some() || !is_about_a_file(row.function));
        let nameless = (before - self.rows.len()) as u64;
        if nameless > 0 {
            leave_out(&mut self.header, WITHOUT_FILE, nameless);
        }
        let mut events = std::mem::take(&mut self.rows);
        event::sort(&mut events);
        adopt(&mut events);
        let from_below = place_from_below(&mut events);
        self.tell(from_below);
        let mut header = self.header;
        end_processes(&mut header, &events);
        header.origin = Origin::Imported;
        header.interposer = "otf2".to_owned();
        header.host =
            header.processes.first().map(|process| process.host.clone()).unwrap_or_default();
        header.clock = Clock { source: "otf2".to_owned(), ..header.clock };
        Trace { header, events, ..Trace::default() }
    }

    /// Says what was inferred, and what is not there.
    fn tell(&mut self, from_below: bool) {
        let inferred = &mut self.header.inferred;
        let mut infer = |is_so: bool, what: &str| {
            if is_so {
                inferred.push(what.to_owned());
            }
        };
        infer(
            true,
            "offsets of accesses that tell none, from opens, seeks and accesses before them",
        );
        infer(from_below, "offsets of MPI-IO, from the first access of POSIX inside");
        infer(true, "numbers of descriptors; that calls which tell no result succeeded");
        infer(self.noticed.outside, "functions of operations that no call is around");
        infer(
            self.noticed.collective_bytes,
            "bytes of collective calls, from what a rank sent to and received from all together",
        );
        infer(self.noticed.no_clock, "that the ticks of the clock are nanoseconds");
        let unfinished = self.pending.values().map(Vec::len).sum::<usize>() as u64;
        let unseen = &mut self.header.losses.unseen;
        unseen.push("stores through mmap, and calls that failed before they had a file".to_owned());
        for (count, what) in [
            (self.noticed.without_end, "calls whose end is missing: they end with their thread"),
            (unfinished, "accesses whose end is missing: they moved nothing"),
            (self.noticed.before_zero, "events before the beginning of the clock: put there"),
        ] {
            if count > 0 {
                unseen.push(format!("{count} {what}"));
            }
        }
    }
}

/// Accesses of MPI-IO whose place is not told begin where the lowest access of POSIX inside does.
fn place_from_below(events: &mut [Event]) -> bool {
    let mut lowest = std::collections::BTreeMap::new();
    for event in events.iter() {
        let Ok(parent) = usize::try_from(event.parent) else { continue };
        let outer = &events[parent];
        let is_placed = event.offset >= 0 && event.function.layer() == Layer::Posix;
        let is_wanted = outer.function.layer() == Layer::Mpiio
            && outer.offset < 0
            && outer.function.class().moves_data()
            && outer.function.class() == event.function.class();
        if is_placed && is_wanted {
            let place = lowest.entry(parent).or_insert(event.offset);
            *place = event.offset.min(*place);
        }
    }
    for (row, offset) in &lowest {
        events[*row].offset = *offset;
    }
    !lowest.is_empty()
}
