//! Names and order of processes and of their lanes.

use super::{Document, quoted};
use crate::{Event, Header, ProcessEntry, ProcessKind};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// The number a process has there; 0 means something else to some viewers.
pub(super) fn number(process: u32) -> u32 {
    process + 1
}

/// Writes names, labels and places of all processes.
pub(super) fn write(header: &Header, document: &mut Document<impl Write>) -> io::Result<()> {
    for (place, &index) in order(header).iter().enumerate() {
        let process = &header.processes[index];
        let pid = number(index as u32);
        let mut fact = |kind: &str, name: &str, value: &str| {
            write!(
                document.next()?,
                "{{\"ph\":\"M\",\"name\":\"{kind}\",\"pid\":{pid},\"args\":{{\"{name}\":{value}}}}}"
            )
        };
        fact("process_name", "name", &quoted(&name(index, process)))?;
        fact("process_sort_index", "sort_index", &place.to_string())?;
        let labels: Vec<&str> = [process.application.as_str(), process.host.as_str()]
            .into_iter()
            .filter(|label| !label.is_empty())
            .collect();
        if !labels.is_empty() {
            fact("process_labels", "labels", &quoted(&labels.join(", ")))?;
        }
    }
    Ok(())
}

fn name(index: usize, process: &ProcessEntry) -> String {
    match (process.name.as_str(), process.pid) {
        ("", 0) => format!("process {index}"),
        ("", pid) => format!("pid {pid}"),
        (name, 0) => name.to_owned(),
        (name, pid) => format!("{name} (pid {pid})"),
    }
}

/// Ranks, other processes, links of clients, then node by node what a server is made of.
fn order(header: &Header) -> Vec<usize> {
    let is_server = |kind| matches!(kind, ProcessKind::Server | ProcessKind::Device);
    let of_servers = |process: &&ProcessEntry| is_server(process.kind());
    let nodes: BTreeSet<&str> =
        header.processes.iter().filter(of_servers).map(|process| process.host.as_str()).collect();
    let mut first_of: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, process) in header.processes.iter().enumerate() {
        first_of.entry(&process.host).or_insert(index);
    }
    let place = |&index: &usize| {
        let process = &header.processes[index];
        let kind = process.kind();
        let group = match kind {
            ProcessKind::Rank => 0,
            ProcessKind::Process => 1,
            _ if is_server(kind) || nodes.contains(process.host.as_str()) => 3,
            _ => 2,
        };
        let node = if group < 2 { None } else { first_of.get(process.host.as_str()) };
        (group, node, process.rank, kind_place(kind), index)
    };
    let mut order: Vec<usize> = (0..header.processes.len()).collect();
    order.sort_by_cached_key(place);
    order
}

fn kind_place(kind: ProcessKind) -> u8 {
    match kind {
        ProcessKind::Rank | ProcessKind::Process => 0,
        ProcessKind::Server => 1,
        ProcessKind::Device => 2,
        ProcessKind::NicIn => 3,
        ProcessKind::NicOut => 4,
    }
}

/// Names a lane when its first row comes, and puts the lanes of a thread below each other.
pub(super) fn name_lane(
    event: &Event,
    track: u32,
    index: usize,
    document: &mut Document<impl Write>,
) -> io::Result<()> {
    let name = match (event.function.layer().is_component(), index) {
        (true, _) => format!("lane {}", index + 1),
        (false, 0) => format!("thread {}", event.thread),
        (false, _) => format!("thread {}, lane {}", event.thread, index + 1),
    };
    let place = u64::from(event.thread) << 16 | (index as u64).min(0xffff);
    let pid = number(event.process);
    write!(
        document.next()?,
        "{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{pid},\"tid\":{track},\"args\":{{\"name\":\"{name}\"}}}}"
    )?;
    write!(
        document.next()?,
        "{{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":{pid},\"tid\":{track},\"args\":{{\"sort_index\":{place}}}}}"
    )
}
