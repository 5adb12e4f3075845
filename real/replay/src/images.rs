//! Programs by the number of their process: several where one was executed in place of another, or the number was
//! given again.

use iolab_trace::{Event, ProcessEntry, Trace};
use iolab_vocab::Nanos;
use std::collections::BTreeMap;

/// By number: when each program made its first call, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Images {
    by_pid: BTreeMap<u32, Vec<(Nanos, u32)>>,
    parents: Vec<Option<u32>>,
}

impl Images {
    pub(crate) fn new(trace: &Trace) -> Images {
        let mut began = vec![Nanos(u64::MAX); trace.header.processes.len()];
        for event in &trace.events {
            if let Some(first) = began.get_mut(event.process as usize) {
                *first = event.start.min(*first);
            }
        }
        let mut by_pid: BTreeMap<u32, Vec<(Nanos, u32)>> = BTreeMap::new();
        for ((entry, began), process) in trace.header.processes.iter().zip(began).zip(0..) {
            by_pid.entry(entry.pid).or_default().push((began, process));
        }
        by_pid.values_mut().for_each(|images| images.sort_unstable());
        Images { by_pid, parents: parents(trace) }
    }

    /// The process one got its descriptors from.
    pub(crate) fn parent(&self, process: u32) -> Option<u32> {
        self.parents.get(process as usize).copied().flatten()
    }

    /// The child that a `fork` made: the first program of that number from then on. What the child executes comes later.
    pub(crate) fn child(&self, fork: &Event) -> Option<u32> {
        let images = self.by_pid.get(&u32::try_from(fork.result).ok()?)?;
        let first = images.partition_point(|&(began, _)| began < fork.start);
        images.get(first).map(|&(_, process)| process).filter(|&child| child != fork.process)
    }
}

fn parents(trace: &Trace) -> Vec<Option<u32>> {
    let mut latest = BTreeMap::new();
    let entries = trace.header.processes.iter().zip(0..);
    let parent_of = |(entry, process): (&ProcessEntry, u32)| {
        // A program that was executed in place has its predecessor's number.
        let predecessor = latest.insert(entry.pid, process);
        let parent = latest.get(&entry.parent_pid).copied().filter(|&parent| parent != process);
        predecessor.or(parent)
    };
    entries.map(parent_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_trace::Function;

    #[test]
    fn a_fork_makes_the_first_program_of_that_number_from_then_on() {
        let mut trace = Trace::default();
        let pids = [1, 7, 7, 7];
        trace.header.processes =
            pids.map(|pid| ProcessEntry { pid, ..ProcessEntry::default() }).to_vec();
        trace.events = (1..4)
            .map(|process| Event {
                process,
                start: Nanos(u64::from(process) * 100),
                ..Event::of(Function::CLOSE)
            })
            .collect();
        let images = Images::new(&trace);
        let fork =
            |start, result| Event { start: Nanos(start), result, ..Event::of(Function::FORK) };
        // The second program was executed by the first one, the third has got a number that was free again.
        assert_eq!(images.child(&fork(50, 7)), Some(1));
        assert_eq!(images.child(&fork(250, 7)), Some(3));
        assert_eq!(images.child(&fork(50, 8)), None);
    }
}
