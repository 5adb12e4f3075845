//! Which threads of a recorded program are clients of the cluster, and of which of its processes.

use crate::guest::program::What;
use crate::guest::setup::Setup;
use iolab_policy::insitu::Guest;
use iolab_trace::{Class, Event};
use std::collections::BTreeSet;

/// Which threads may have something for the servers: those that move or sync data themselves, and all
/// threads with calls in processes of which strategies choose a file.
fn clients(setup: &Setup) -> Vec<usize> {
    let Setup { trace, program, apply, .. } = setup;
    let is_chosen = |event: &&Event| {
        let file = event.file.index().map(|file| &trace.header.files[file]);
        file.is_some_and(|file| Guest::chosen(apply, &file.path).next().is_some())
    };
    let staged: BTreeSet<u32> =
        trace.events.iter().filter(is_chosen).map(|event| event.process).collect();
    let is_client = |thread: &usize| {
        let sequence = &program.sequences[*thread];
        sequence.moments.iter().any(|moment| match moment.what {
            What::Call(row) => staged.contains(&sequence.process) || asks_servers(setup, row),
            _ => false,
        })
    };
    (0..program.sequences.len()).filter(is_client).collect()
}

/// Which threads each client runs, one after another: a client each, or as few clients as there were
/// threads at once.
pub(super) fn lanes(setup: &Setup, client_count: u64) -> Vec<Vec<usize>> {
    let mut threads = clients(setup);
    if threads.len() as u64 <= client_count {
        return threads.into_iter().map(|thread| vec![thread]).collect();
    }
    let life = |thread: usize| setup.program.sequences[thread].life;
    threads.sort_by_key(|&thread| life(thread).0);
    let mut lanes: Vec<Vec<usize>> = Vec::new();
    for thread in threads {
        let is_free = |lane: &&mut Vec<usize>| {
            lane.last().is_none_or(|&before| life(before).1 < life(thread).0)
        };
        match lanes.iter_mut().find(is_free) {
            Some(lane) => lane.push(thread),
            None => lanes.push(vec![thread]),
        }
    }
    lanes
}

/// Whether a call is one that servers carry out, as it was recorded.
pub(super) fn asks_servers(setup: &Setup, row: usize) -> bool {
    let class = setup.trace.events[row].function.class();
    class.moves_data() || class == Class::Sync
}
