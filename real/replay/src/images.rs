//! Programs by the number of their process: several where one was executed in place of another, or the number was
//! given again.

use iolab_trace::{Event, Function, ProcessEntry, Trace};
use iolab_vocab::Nanos;
use std::collections::BTreeMap;

/// By number: when each program made its first call, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Images {
    by_pid: BTreeMap<u32, Vec<(Nanos, u32)>>,
    /// The same by the number of the parent, where that has left nothing in the trace.
    by_unseen_parent: BTreeMap<u32, Vec<(Nanos, u32)>>,
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
        let mut by_unseen_parent: BTreeMap<u32, Vec<(Nanos, u32)>> = BTreeMap::new();
        for images in by_pid.values() {
            // What was executed in its place comes later.
            let Some(&first) = images.first() else { continue };
            let parent = trace.header.processes[first.1 as usize].parent_pid;
            if parent != 0 && !by_pid.contains_key(&parent) {
                by_unseen_parent.entry(parent).or_default().push(first);
            }
        }
        by_unseen_parent.values_mut().for_each(|images| images.sort_unstable());
        Images { by_pid, by_unseen_parent, parents: parents(trace) }
    }

    /// The process one got its descriptors from.
    pub(crate) fn parent(&self, process: u32) -> Option<u32> {
        self.parents.get(process as usize).copied().flatten()
    }

    /// The child that a `fork` made: the first program of that number from then on. What the child executes comes later.
    /// One that did nothing but fork (`daemon`, a shell's background) has left nothing: then its children.
    pub(crate) fn children(&self, fork: &Event) -> Vec<u32> {
        let Ok(pid) = u32::try_from(fork.result) else { return Vec::new() };
        let later = |images: &[(Nanos, u32)]| -> Vec<u32> {
            let first = images.partition_point(|&(began, _)| began < fork.start);
            images[first..].iter().map(|&(_, process)| process).collect()
        };
        let of = |all: &BTreeMap<u32, Vec<(Nanos, u32)>>| all.get(&pid).map(|images| later(images));
        match of(&self.by_pid).unwrap_or_default().first() {
            Some(&child) if child == fork.process => Vec::new(),
            Some(&child) => vec![child],
            None => of(&self.by_unseen_parent).unwrap_or_default(),
        }
    }
}

fn parents(trace: &Trace) -> Vec<Option<u32>> {
    let forks = trace.events.iter().filter(|event| event.function == Function::FORK);
    let forked: BTreeMap<u32, u32> =
        forks.filter_map(|fork| Some((u32::try_from(fork.result).ok()?, fork.process))).collect();
    let mut latest = BTreeMap::new();
    let entries = trace.header.processes.iter().zip(0..);
    let parent_of = |(entry, process): (&ProcessEntry, u32)| {
        // A program that was executed in place has its predecessor's number.
        let predecessor = latest.insert(entry.pid, process);
        let parent = latest.get(&entry.parent_pid).or_else(|| forked.get(&entry.parent_pid));
        predecessor.or(parent.copied().filter(|&parent| parent != process))
    };
    entries.map(parent_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(images.children(&fork(50, 7)), [1]);
        assert_eq!(images.children(&fork(250, 7)), [3]);
        assert_eq!(images.children(&fork(50, 8)), [0; 0]);
    }

    #[test]
    fn what_a_child_that_left_nothing_has_made_has_its_descriptors_from_who_made_the_child() {
        let mut trace = Trace::default();
        // 7 is forked, does nothing but fork 8, and ends; 9 is its child as well, of an earlier use of the number.
        trace.header.processes = [(1, 0), (9, 7), (8, 7)]
            .map(|(pid, parent_pid)| ProcessEntry { pid, parent_pid, ..ProcessEntry::default() })
            .to_vec();
        let row = |process, start, function| Event {
            process,
            start: Nanos(start),
            result: 7,
            ..Event::of(function)
        };
        let fork = row(0, 50, Function::FORK);
        trace.events = vec![row(1, 10, Function::CLOSE), fork, row(2, 60, Function::CLOSE)];
        let images = Images::new(&trace);
        assert_eq!(images.children(&fork), [2]);
        assert_eq!(images.parent(2), Some(0));
    }
}
