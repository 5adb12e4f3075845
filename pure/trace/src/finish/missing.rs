//! What the trace lacks, said in its header: losses, calls left out, things hooks cannot see, and
//! programs that never loaded the library.

use super::Spools;
use super::gather::{Gathered, Process};
use crate::program::Foreseen;
use crate::spool::{LeftOut, Lost, Unseen, control, read_u32, read_u64};
use crate::{Event, Function, Header};
use iolab_vocab::Nanos;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn tell(spools: &Spools<'_>, gathered: &Gathered, header: &mut Header) {
    let counter = |at: usize, index: usize| read_u64(spools.control, at + index * 8);
    let absent = absent_programs(spools, gathered, header);
    let losses = &mut header.losses;
    for (index, reason) in Lost::ALL.iter().enumerate() {
        put(&mut losses.lost_calls, reason.text(), counter(control::LOST, index));
    }
    put(&mut losses.lost_calls, "damaged spool file", gathered.damaged);
    put(&mut losses.lost_calls, "damaged records", gathered.damaged_records);
    for (index, reason) in LeftOut::ALL.iter().enumerate() {
        put(&mut losses.left_out_calls, reason.text(), counter(control::LEFT_OUT, index));
    }
    let bits = read_u32(spools.control, control::UNSEEN);
    for (index, what) in Unseen::ALL.iter().enumerate() {
        if bits & 1 << index != 0 {
            losses.unseen.push(what.text().to_owned());
        }
    }
    losses.unseen.extend(absent);
    losses.unseen.extend(beside_mount(&spools.launch.mounted_over));
}

fn put(counts: &mut BTreeMap<String, u64>, reason: &str, count: u64) {
    if count > 0 {
        counts.insert(reason.to_owned(), count);
    }
}

/// What a mount is not asked for.
fn beside_mount(directories: &[String]) -> Option<String> {
    if directories.is_empty() {
        return None;
    }
    Some(format!(
        "files outside of {}, and what the kernel answers by itself (seeks, status, names it remembers)",
        directories.join(", ")
    ))
}

/// Programs that were started and of which there is no trace: statically linked, set-uid, or
/// started with an environment that lacks the library.
fn absent_programs(spools: &Spools<'_>, gathered: &Gathered, header: &Header) -> Vec<String> {
    let images = images(&gathered.processes);
    let mut absent = BTreeSet::new();
    let pid = spools.launch.pid;
    let is_preloaded = spools.launch.mounted_over.is_empty();
    if is_preloaded && pid != 0 && !images.contains_key(&pid) {
        let path = spools.launch.command.first().cloned().unwrap_or_default();
        absent.insert((path, why(Foreseen::Unknown)));
    }
    for event in started(&gathered.events) {
        let pid = event.argument as u32;
        let loaded =
            images.get(&pid).is_some_and(|starts| starts.range(event.start..).next().is_some());
        if event.argument > 0 && !loaded {
            let path = event.file.index().and_then(|at| header.files.get(at));
            let path = path.map_or("?".to_owned(), |file| file.path.clone());
            absent.insert((path, why(Foreseen::of_code(event.offset))));
        }
    }
    absent
        .into_iter()
        .map(|(path, why)| format!("{path} did not load the library ({why})"))
        .collect()
}

/// Why a program may have left nothing.
fn why(foreseen: Foreseen) -> &'static str {
    match foreseen {
        Foreseen::Misses(why) => why.words(),
        Foreseen::Loads => "ended before it could, or its loader left it out",
        Foreseen::Unknown => "static, set-uid, or without its environment",
    }
}

/// What was only written down for [`tell`].
pub(super) fn forget(events: &mut [Event]) {
    let starts = events.iter_mut().filter(|event| starts_program(event.function));
    starts.for_each(|event| event.offset = -1);
}

fn starts_program(function: Function) -> bool {
    matches!(function, Function::EXEC | Function::POSIX_SPAWN)
}

/// When each process number began a new image.
fn images(processes: &[Process]) -> BTreeMap<u32, BTreeSet<Nanos>> {
    let mut images: BTreeMap<u32, BTreeSet<Nanos>> = BTreeMap::new();
    for process in processes.iter().filter(|process| !process.forked) {
        images.entry(process.pid).or_default().insert(process.start);
    }
    images
}

/// The starts of programs that did not fail, in order of time.
fn started(events: &[Event]) -> Vec<&Event> {
    let mut pending: BTreeMap<i64, &Event> = BTreeMap::new();
    let mut done = Vec::new();
    for event in events {
        match event.function {
            // An exec is recorded before it is tried; one that failed is followed by its result.
            Function::EXEC if event.result < 0 => drop(pending.remove(&event.argument)),
            Function::EXEC => done.extend(pending.insert(event.argument, event)),
            Function::POSIX_SPAWN if event.result == 0 => done.push(event),
            _ => {}
        }
    }
    done.extend(pending.into_values());
    done
}
