//! Which ranks and nodes of a job left no part.

use crate::Header;
use std::collections::BTreeSet;

/// What the joined header says of a rank that left no part.
pub(super) const NO_PART: &str = "of its job, which left no part of this trace";

/// Says how many nodes a step of Slurm has.
const NODE_COUNT: &str = "SLURM_STEP_NUM_NODES";

/// Says which ranks of the job are not there.
pub(super) fn with_missing(mut header: Header) -> Header {
    header.losses.unseen.retain(|line| !line.ends_with(NO_PART));
    let size = header.parts.iter().map(|part| part.size).max().unwrap_or(0);
    let there: BTreeSet<u32> = header.parts.iter().map(|part| part.rank).collect();
    let missing: Vec<u32> = (0..size).filter(|rank| !there.contains(rank)).collect();
    if let (Some(first), Some(last)) = (missing.first(), missing.last()) {
        let ranks = match missing.len() as u32 {
            1 => format!("rank {first}"),
            count if count == last - first + 1 => format!("ranks {first} to {last}"),
            count => format!("{count} ranks between {first} and {last}"),
        };
        header.losses.unseen.push(format!("{ranks} of {size} {NO_PART}"));
    }
    let hosts: BTreeSet<&str> = header.parts.iter().map(|part| part.host.as_str()).collect();
    let nodes = header.environment.get(NODE_COUNT).and_then(|count| count.parse::<usize>().ok());
    if let Some(nodes @ 2..) = nodes.filter(|&nodes| !hosts.is_empty() && hosts.len() < nodes) {
        let there = hosts.into_iter().collect::<Vec<_>>().join(", ");
        let line = format!("all but {there} of {nodes} nodes {NO_PART}");
        header.losses.unseen.push(line);
    }
    header
}
