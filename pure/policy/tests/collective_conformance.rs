//! The family's conformance suite. Commands of messages: everyone gets what they must, whatever
//! overtakes what, every send is received and nobody waits for ever. File accesses: every byte
//! any rank wants is moved exactly once for it, and never before it is there. What each algorithm
//! costs in messages, bytes and rounds stands in a golden table. A new member is enrolled by its
//! row in the catalogue.

mod collective_model;

use collective_model::{Deed, Outcome, World};
use iolab_policy::Machine;
use iolab_policy::collective::catalog::{Build, ROWS, Row};
use iolab_policy::collective::{
    Access, Action, Collective, CollectiveKind, CollectiveLaws, Event, FileCall, Payload, Ranks,
    Shape, Sizes, Wanted,
};
use iolab_vocab::{Direction, Extent, Nanos, Random, Seed};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

const EAGER_BYTES: u64 = 1000;

fn shape(rank: u32, rank_count: u32, root: u32, bytes: u64) -> Shape {
    Shape { rank, rank_count, root, bytes, eager_bytes: EAGER_BYTES }
}

type BuildMessages = dyn Fn(Shape) -> Box<dyn Collective>;

fn call(
    kind: CollectiveKind,
    build: &BuildMessages,
    ranks: u32,
    root: u32,
    bytes: u64,
    seed: u64,
) -> Result<Outcome, String> {
    let machine = |rank| {
        let shape = shape(rank, ranks, root, bytes);
        (build(shape), CollectiveLaws::new(kind, shape))
    };
    let sizes = Sizes::of(shape(0, ranks, root, bytes));
    World::new((0..ranks).map(machine).collect(), sizes, seed).run()
}

fn call_file(
    build: &BuildFile,
    access: Access,
    buffer_bytes: u64,
    seed: u64,
) -> Result<Outcome, String> {
    let access = Arc::new(access);
    let call = |rank| FileCall { access: access.clone(), rank, buffer_bytes, costs: None };
    let machine = |rank| (build(call(rank)), CollectiveLaws::of_file(&call(rank)));
    let ranks = access.wanted.len() as u32;
    World::new((0..ranks).map(machine).collect(), Sizes::of_file(&call(0)), seed).run()
}

/// Who must have whose data at the end, and how many blocks must have reached each rank.
fn check(
    kind: CollectiveKind,
    ranks: u32,
    root: u32,
    bytes: u64,
    outcome: &Outcome,
) -> Result<(), String> {
    let everyone: BTreeSet<u32> = (0..ranks).collect();
    for rank in 0..ranks {
        let (must, blocks) = match kind {
            CollectiveKind::Broadcast | CollectiveKind::Scatter if rank != root => {
                (BTreeSet::from([root]), 1)
            }
            CollectiveKind::Reduce if rank == root => (everyone.clone(), 1),
            CollectiveKind::Gather if rank == root => (everyone.clone(), u64::from(ranks) - 1),
            CollectiveKind::Allreduce => (everyone.clone(), 1),
            CollectiveKind::Allgather | CollectiveKind::Alltoall => {
                (everyone.clone(), u64::from(ranks) - 1)
            }
            CollectiveKind::Barrier => (everyone.clone(), 0),
            _ => (BTreeSet::new(), 0),
        };
        let knows = &outcome.knows[rank as usize];
        if !must.is_subset(knows) {
            return Err(format!("rank {rank} has {knows:?}, but must have {must:?}"));
        }
        let came = outcome.received.iter().filter(|(key, _)| key.1 == rank);
        let (came, blocks) = (came.map(|one| one.1).sum::<u64>(), blocks.min(u64::from(ranks) - 1));
        if came < blocks * bytes {
            return Err(format!("rank {rank} got {came} bytes of {blocks} blocks of {bytes}"));
        }
    }
    Ok(())
}

fn explore(kind: CollectiveKind, build: &BuildMessages) -> Result<(), String> {
    for ranks in 1..=9 {
        for root in 0..ranks {
            for bytes in [0, 8, EAGER_BYTES + 1, (3 << 20) + 5] {
                for seed in 0..12 {
                    let scene = format!("{ranks} ranks, root {root}, {bytes} bytes, seed {seed}");
                    let outcome = call(kind, build, ranks, root, bytes, seed);
                    let checked = outcome.and_then(|all| check(kind, ranks, root, bytes, &all));
                    checked.map_err(|broken| format!("{scene}: {broken}"))?;
                }
            }
        }
    }
    Ok(())
}

#[test]
fn every_command_gives_everyone_what_they_must_get_whatever_overtakes_what() {
    for row in ROWS {
        let Build::Messages(build) = row.build else { continue };
        let outcome = explore(row.kind, &build);
        outcome.unwrap_or_else(|broken| panic!("{}={}: {broken}", row.kind.name(), row.name));
    }
}

type BuildFile = dyn Fn(FileCall) -> Box<dyn Collective>;

/// How often each byte is in a list.
fn counts<'a>(extents: impl IntoIterator<Item = &'a Extent>) -> BTreeMap<u64, u64> {
    let mut counts = BTreeMap::new();
    for at in extents.into_iter().flat_map(|extent| extent.offset..extent.end()) {
        *counts.entry(at).or_default() += 1;
    }
    counts
}

fn bytes_within(wanted: &[Extent], touched: &BTreeMap<u64, u64>) -> u64 {
    counts(wanted).iter().filter(|(at, _)| touched.contains_key(at)).map(|(_, count)| count).sum()
}

fn data_bytes(deeds: &[Deed], other: u32) -> (u64, u64) {
    deeds.iter().fold((0, 0), |(sent, received), deed| match *deed {
        Deed::Sent { to, tag, bytes } if to == other && tag % 2 == 0 => (sent + bytes, received),
        Deed::Received { from, tag, bytes } if from == other && tag % 2 == 0 => {
            (sent, received + bytes)
        }
        _ => (sent, received),
    })
}

fn touched(deeds: &[Deed], direction: Direction) -> BTreeMap<u64, u64> {
    let extents = deeds.iter().flat_map(|deed| match (deed, direction) {
        (Deed::Read(extents), Direction::Read) | (Deed::Wrote(extents), Direction::Write) => {
            extents.as_slice()
        }
        _ => &[],
    });
    counts(extents)
}

/// Every wanted byte is written as often as it is wanted, nothing else is, and what a rank writes
/// for another has come from there before.
fn check_write(lists: &[Vec<Extent>], outcome: &Outcome) -> Result<(), String> {
    let mut written: BTreeMap<u64, u64> = BTreeMap::new();
    for (rank, deeds) in outcome.history.iter().enumerate() {
        for (at, count) in touched(deeds, Direction::Write) {
            *written.entry(at).or_default() += count;
        }
        for (last, deed) in deeds.iter().enumerate() {
            if matches!(deed, Deed::Wrote(_)) {
                came_before_written(lists, rank, &deeds[..=last])?;
            }
        }
        for (other, list) in lists.iter().enumerate().filter(|(other, _)| *other != rank) {
            let needed = bytes_within(list, &touched(deeds, Direction::Write));
            let (_, came) = data_bytes(deeds, other as u32);
            if came > needed {
                return Err(format!("rank {rank} got {came} bytes of {other}, wrote {needed}"));
            }
        }
    }
    let wanted = counts(lists.iter().flatten());
    let wrong = wanted.iter().find(|(at, count)| written.get(at) != Some(count));
    match wrong.or_else(|| written.iter().find(|(at, _)| !wanted.contains_key(at))) {
        None => Ok(()),
        Some((at, _)) => Err(format!(
            "byte {at} is wanted {:?} times and written {:?} times",
            wanted.get(at),
            written.get(at)
        )),
    }
}

fn came_before_written(lists: &[Vec<Extent>], rank: usize, deeds: &[Deed]) -> Result<(), String> {
    let written = touched(deeds, Direction::Write);
    let own = bytes_within(&lists[rank], &written);
    let came: u64 = (0..lists.len())
        .filter(|other| *other != rank)
        .map(|o| data_bytes(deeds, o as u32).1)
        .sum();
    let total: u64 = written.values().sum();
    match total <= own + came {
        true => Ok(()),
        false => Err(format!("rank {rank} writes {total} bytes, has {own} and got {came}")),
    }
}

/// Every wanted byte reaches who wants it exactly once, from the file or from who has read it.
fn check_read(lists: &[Vec<Extent>], outcome: &Outcome) -> Result<(), String> {
    for (rank, list) in lists.iter().enumerate() {
        let mut got = bytes_within(list, &touched(&outcome.history[rank], Direction::Read));
        for (other, deeds) in outcome.history.iter().enumerate().filter(|(o, _)| *o != rank) {
            for (last, deed) in deeds.iter().enumerate() {
                if matches!(deed, Deed::Sent { .. }) {
                    read_before_sent(list, rank as u32, other, &deeds[..=last])?;
                }
            }
            got += data_bytes(deeds, rank as u32).0;
        }
        let wanted: u64 = list.iter().map(|extent| extent.length).sum();
        if got != wanted {
            return Err(format!("rank {rank} wants {wanted} bytes and got {got}"));
        }
    }
    Ok(())
}

fn read_before_sent(
    list: &[Extent],
    rank: u32,
    other: usize,
    deeds: &[Deed],
) -> Result<(), String> {
    let has = bytes_within(list, &touched(deeds, Direction::Read));
    let (sent, _) = data_bytes(deeds, rank);
    match sent <= has {
        true => Ok(()),
        false => Err(format!("rank {other} sent {sent} bytes to {rank}, but has read {has}")),
    }
}

fn list(random: &mut Random) -> Vec<Extent> {
    let count = random.below(6);
    let mut list: Vec<Extent> =
        (0..count).map(|_| Extent::new(random.below(90), 1 + random.below(25))).collect();
    if random.below(2) == 0 {
        list.sort();
        list.dedup_by(|next, one| one.overlaps(*next));
    }
    list
}

fn access_file(
    build: &BuildFile,
    direction: Direction,
    ranks: u64,
    seed: u64,
) -> Result<(), String> {
    let mut random = Random::new(Seed(seed * 10 + ranks));
    let lists: Vec<Vec<Extent>> = (0..ranks).map(|_| list(&mut random)).collect();
    let buffer_bytes = 1 + random.below(60);
    let wanted = lists.iter().cloned().map(Wanted::new).collect();
    let outcome = call_file(build, Access { direction, wanted }, buffer_bytes, seed);
    let checked = outcome.and_then(|outcome| match direction {
        Direction::Read => check_read(&lists, &outcome),
        Direction::Write => check_write(&lists, &outcome),
    });
    checked.map_err(|broken| {
        format!("{direction:?}, seed {seed}, buffer {buffer_bytes}: {broken}\n{lists:?}")
    })
}

fn explore_files(build: &BuildFile) -> Result<(), String> {
    for direction in [Direction::Read, Direction::Write] {
        for ranks in 1..=9 {
            for seed in 0..120 {
                access_file(build, direction, ranks, seed)?;
            }
        }
    }
    Ok(())
}

#[test]
fn every_access_moves_each_byte_exactly_once_in_all_worlds_of_1_to_9_ranks() {
    for row in ROWS {
        let Build::File(build) = row.build else { continue };
        explore_files(&build).unwrap_or_else(|broken| panic!("{}: {broken}", row.name));
    }
}

fn costs(row: &Row, build: &BuildMessages) -> String {
    let mut lines = String::new();
    for ranks in [2, 3, 5, 8, 9] {
        for bytes in [8, 4096] {
            let outcome = call(row.kind, build, ranks, 0, bytes, 1).expect("the row conforms");
            let Outcome { messages, wire_bytes, rounds, .. } = outcome;
            let (kind, name) = (row.kind.name(), row.name);
            let _ =
                writeln!(lines, "{kind} {name} {ranks} {bytes} {messages} {wire_bytes} {rounds}");
        }
    }
    lines
}

/// Every rank wants every `ranks`-th block of 10 bytes, ten of them; 40 bytes of buffer.
fn file_costs(row: &Row, build: &BuildFile) -> String {
    let mut lines = String::new();
    for direction in [Direction::Read, Direction::Write] {
        for ranks in [2, 5, 9_u32] {
            let block = |rank, index| Extent::new(u64::from(index * ranks + rank) * 10, 10);
            let list = |rank| Wanted::new((0..10).map(|index| block(rank, index)).collect());
            let access = Access { direction, wanted: (0..ranks).map(list).collect() };
            let outcome = call_file(build, access, 40, 1);
            let Outcome { messages, wire_bytes, rounds, .. } = outcome.expect("the row conforms");
            let _ = writeln!(
                lines,
                "file-{direction:?} {} {ranks} 10 {messages} {wire_bytes} {rounds}",
                row.name
            );
        }
    }
    lines
}

#[test]
fn messages_bytes_and_rounds_of_every_algorithm_are_those_of_the_golden_table() {
    let mut table = "command algorithm ranks bytes messages wire_bytes rounds\n".to_owned();
    for row in ROWS {
        match row.build {
            Build::Messages(build) => table.push_str(&costs(row, &build)),
            Build::File(build) => table.push_str(&file_costs(row, &build)),
            Build::Meeting => {}
        }
    }
    let golden = include_str!("golden/collectives.txt");
    let is_new = |line: &&str| !golden.lines().any(|old| old == *line);
    let new: Vec<&str> = table.lines().filter(is_new).collect();
    assert!(table == golden, "not in the golden table: {new:#?}; the table is now\n{table}");
}

/// A machine with one thing wrong.
struct Defective {
    inner: Box<dyn Collective>,
    defect: Defect,
    rank: u32,
    held: Option<Action>,
}

#[derive(Clone, Copy, Debug)]
enum Defect {
    /// Rank 1 never sends its last message of a round.
    LosesASend,
    /// Rank 1 sends one thing twice.
    SendsTwice,
    /// Rank 1 does not wait for one message.
    ForgetsAReceive,
    /// Rank 1 sends a part of what it should.
    SendsShort,
    /// Rank 1 leaves out its first access.
    SkipsTheFile,
    /// Rank 1 accesses the same extents again.
    AccessesTwice,
}

impl Defective {
    fn spoil(&mut self, action: Action, out: &mut Vec<Action>) {
        let is_file = match &action {
            Action::ReadFile(extents) | Action::WriteFile(extents) | Action::PostWrite(extents) => {
                !extents.is_empty()
            }
            _ => false,
        };
        match (self.defect, action) {
            (Defect::LosesASend, action @ Action::Send { .. }) if self.held.is_none() => {
                self.held = Some(action);
            }
            (Defect::SendsTwice, action @ Action::Send { .. }) => {
                out.extend([action.clone(), action]);
            }
            (Defect::ForgetsAReceive, action @ Action::Receive { .. }) if self.held.is_none() => {
                self.held = Some(action);
            }
            (Defect::SendsShort, Action::Send { to, tag, what }) => {
                out.push(Action::Send { to, tag, what: shortened(what) });
            }
            (Defect::SkipsTheFile, action) if is_file && self.held.is_none() => {
                self.held = Some(action);
            }
            (Defect::AccessesTwice, action) if is_file => out.extend([action.clone(), action]),
            (_, action) => out.push(action),
        }
    }
}

/// A part of it, where it has parts.
fn shortened(what: Payload) -> Payload {
    let short = |extent: Extent| Extent::new(extent.offset, extent.length.saturating_sub(1));
    let fewer = |ranks: Ranks| Ranks { count: ranks.count - 1, ..ranks };
    match what {
        Payload::Vector(part) => Payload::Vector(short(part)),
        Payload::Combined(ranks) => Payload::Combined(fewer(ranks)),
        Payload::Blocks(ranks) => Payload::Blocks(fewer(ranks)),
        Payload::Pieces { of, within } => Payload::Pieces { of, within: short(within) },
        Payload::List { of, within } => Payload::List { of, within: short(within) },
        Payload::Nothing | Payload::Opaque(_) => what,
    }
}

impl Machine for Defective {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, now: Nanos, event: Event, out: &mut Vec<Action>) {
        let mut actions = Vec::new();
        self.inner.step(now, event, &mut actions);
        match self.rank {
            1 => actions.into_iter().for_each(|action| self.spoil(action, out)),
            _ => out.extend(actions),
        }
    }
}

fn spoiled(inner: Box<dyn Collective>, rank: u32, defect: Defect) -> Box<dyn Collective> {
    Box::new(Defective { inner, defect, rank, held: None })
}

#[test]
fn the_suite_finds_every_defect_in_every_command() {
    use Defect::{ForgetsAReceive, LosesASend, SendsShort, SendsTwice};
    for row in ROWS {
        let Build::Messages(build) = row.build else { continue };
        for defect in [LosesASend, SendsTwice, ForgetsAReceive, SendsShort] {
            let is_no_harm = matches!((row.kind, defect), (CollectiveKind::Barrier, SendsShort));
            let broken = move |shape: Shape| spoiled(build(shape), shape.rank, defect);
            let found = explore(row.kind, &broken).is_err();
            assert!(found || is_no_harm, "{}: {defect:?} was not noticed", row.name);
        }
    }
}

#[test]
fn the_suite_finds_every_defect_in_every_file_access() {
    use Defect::{
        AccessesTwice, ForgetsAReceive, LosesASend, SendsShort, SendsTwice, SkipsTheFile,
    };
    for row in ROWS {
        let Build::File(build) = row.build else { continue };
        let of_messages = [LosesASend, SendsTwice, ForgetsAReceive, SendsShort];
        let of_messages = if row.name == "direct" { &[][..] } else { &of_messages[..] };
        for &defect in of_messages.iter().chain(&[SkipsTheFile, AccessesTwice]) {
            let broken = move |call: FileCall| {
                let rank = call.rank;
                spoiled(build(call), rank, defect)
            };
            let found = explore_files(&broken).is_err();
            assert!(found, "{}: {defect:?} was not noticed", row.name);
        }
    }
}
