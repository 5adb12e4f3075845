//! Programs of a seed: what their ranks do, round for round.

use crate::dice::Dice;
use crate::views;
use crate::views::FILE_BYTES_MAX;
use iolab_pattern::Nest;
use iolab_pfs::{Kind, Layout, OpenWish};
use std::sync::Arc;

/// What the ranks of a group do; a process without a group is one of one rank.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) ranks: u32,
    pub(crate) rounds: Vec<Round>,
}

/// Steps of a program; each rank does its own and goes on.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    /// The place of the round in its program, masked ones counted.
    pub(crate) number: usize,
    pub(crate) steps: Vec<Step>,
}

/// What ranks do.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Rank 0 opens, then all adopt.
    Open { slot: usize, path: Vec<u8>, wish: OpenWish },
    /// Each rank its own access, all of them collectively; they may go on before the call has been answered.
    Collective { slot: usize, ranks: Vec<Access>, waits: bool },
    /// One rank by itself; it may go on before the call has been answered.
    Access { slot: usize, rank: u32, access: Access, waits: bool },
    /// From now on all accesses are atomic, or none is.
    SetAtomic { slot: usize, atomic: bool },
    /// One rank moves the pointer that all share.
    Advance { slot: usize, rank: u32, by: u64 },
    /// All put it somewhere.
    Put { slot: usize, to: u64 },
    /// All come together.
    Agree { slot: usize },
    /// All make their data durable.
    Sync { slot: usize },
    /// One rank asks how long the file is.
    Size { slot: usize, rank: u32 },
    /// One rank changes the length.
    Resize { slot: usize, rank: u32, bytes: u64 },
    /// All close.
    Close { slot: usize },
    /// One rank does something with names.
    Name { rank: u32, call: NameCall },
}

/// An access of one rank.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) writes: bool,
    pub(crate) view: Arc<Nest>,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// A call about names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NameCall {
    Look(Vec<u8>),
    MakeDirectory(Vec<u8>),
    Remove(Vec<u8>, Kind),
    Rename(Vec<u8>, Vec<u8>),
    List(Vec<u8>, Vec<u8>),
}

/// Names that programs use.
const FILES: [&str; 6] = ["/a", "/b", "/c", "/d/a", "/d/b", "/e/d/a"];
const DIRECTORIES: [&str; 3] = ["/d", "/e", "/e/d"];
/// How many files a process has open at a time.
pub(crate) const SLOTS: usize = 3;

/// In some runs, some collective accesses are started, and waited for later.
pub(super) fn start_collectives(dice: &mut Dice, programs: &mut [Program]) {
    if !dice.one_in(4) {
        return;
    }
    let rounds = programs.iter_mut().flat_map(|program| &mut program.rounds);
    for step in rounds.flat_map(|round| &mut round.steps) {
        if let Step::Collective { waits, .. } = step {
            *waits = dice.one_in(2);
        }
    }
}

pub(super) fn programs(dice: &mut Dice) -> Vec<Program> {
    let mut ranks_left = dice.between(1, 9);
    let mut programs = Vec::new();
    for _ in 0..dice.between(1, 3) {
        if ranks_left > 0 {
            let ranks = if dice.one_in(3) { 1 } else { dice.between(1, ranks_left) };
            ranks_left -= ranks;
            programs.push(program(dice, ranks as u32));
        }
    }
    programs
}

/// Rounds of a program: it keeps track of what will be open, and closes it at the end.
fn program(dice: &mut Dice, ranks: u32) -> Program {
    let mut open = [false; SLOTS];
    let mut rounds = Vec::new();
    // Some programs are mostly about names.
    let bookish = dice.one_in(4);
    // And some about the same few bytes.
    let contends = dice.one_in(4);
    let favourite = *dice.pick(&FILES[..3]);
    let views = views::family(dice, ranks);
    let count = dice.between(2, 24) as usize;
    for number in 0..count {
        let usual = dice.one_in(4);
        let steps = match open.iter().position(|open| *open) {
            Some(slot) if bookish && dice.one_in(4) => advances(dice, ranks, slot),
            _ if bookish && !usual => names(dice, ranks),
            Some(slot) if contends && !usual => contend(dice, ranks, slot),
            _ => round(dice, ranks, &mut open, favourite, &views),
        };
        rounds.push(Round { number, steps });
    }
    let last = (0..SLOTS).filter(|&slot| open[slot]).map(|slot| Step::Close { slot }).collect();
    rounds.push(Round { number: count, steps: last });
    Program { ranks, rounds }
}

fn round(
    dice: &mut Dice,
    ranks: u32,
    open: &mut [bool; SLOTS],
    favourite: &str,
    views: &[Vec<Arc<Nest>>],
) -> Vec<Step> {
    let rank = dice.below(u64::from(ranks)) as u32;
    let slot = dice.below(SLOTS as u64) as usize;
    let Some(slot) = (0..SLOTS).map(|step| (slot + step) % SLOTS).find(|&slot| open[slot]) else {
        open[slot] = true;
        let path = if dice.one_in(3) { *dice.pick(&FILES) } else { favourite };
        let mut wish = wish(dice);
        if !dice.one_in(4) {
            // Without a file most rounds do nothing.
            wish = OpenWish { reads: true, writes: true, creates: true, exclusive: false, ..wish };
        }
        let mut steps = vec![Step::Open { slot, path: path.into(), wish }];
        if dice.one_in(2) {
            steps.push(Step::SetAtomic { slot, atomic: true });
        }
        return steps;
    };
    match dice.below(22) {
        0..6 => independent(dice, ranks, slot, views),
        6..13 => {
            let writes = dice.one_in(2);
            let odd = dice.one_in(8);
            let family = dice.pick(views);
            let one = |rank: u32| {
                let view = &family[rank as usize % family.len()];
                access(dice, writes ^ (odd && rank == 0), view)
            };
            let ranks = (0..ranks).map(one).collect();
            vec![Step::Collective { slot, ranks, waits: true }]
        }
        13 => vec![Step::Agree { slot }],
        14 => vec![Step::Sync { slot }, Step::Agree { slot }],
        15 => vec![Step::Size { slot, rank }],
        16 => {
            let resize = Step::Resize { slot, rank, bytes: dice.below(FILE_BYTES_MAX / 2) };
            if dice.one_in(2) { vec![resize] } else { vec![resize, Step::Agree { slot }] }
        }
        17 => {
            open[slot] = false;
            vec![Step::Close { slot }]
        }
        18 => match (0..SLOTS).find(|&slot| !open[slot]) {
            Some(slot) => {
                open[slot] = true;
                vec![Step::Open {
                    slot,
                    path: dice.pick(&FILES).as_bytes().into(),
                    wish: wish(dice),
                }]
            }
            None => vec![Step::Agree { slot }],
        },
        19 => names(dice, ranks),
        20 if dice.one_in(2) => vec![Step::SetAtomic { slot, atomic: dice.one_in(2) }],
        20 => vec![Step::Put { slot, to: dice.below(50) }],
        _ => advances(dice, ranks, slot),
    }
}

/// Some rounds in which ranks only come together, or also access a file, become others, in which one cuts the
/// file that all use.
pub(super) fn cut_while_used(dice: &mut Dice, program: &mut Program, is_often: bool) {
    for round in &mut program.rounds {
        let slot = match *round.steps.as_slice() {
            [Step::Agree { slot }] => slot,
            [Step::Collective { slot, .. }] if is_often => slot,
            [Step::Access { slot, .. }, ..] if is_often => slot,
            _ => continue,
        };
        let cutter = dice.below(u64::from(program.ranks)) as u32;
        if is_often && program.ranks > 1 && !dice.one_in(3) {
            round.steps = cut_while_read(dice, program.ranks, cutter, slot);
            continue;
        }
        let mut steps = Vec::new();
        // Where the file is short, or all write, nothing is fetched.
        if is_often && program.ranks > 1 {
            let (view, to) = (Arc::new(Nest::WHOLE_FILE), dice.magnitude(256, 2048));
            let access = Access { writes: true, view, from: 0, to };
            let rank = (cutter + 1) % program.ranks;
            steps.push(Step::Access { slot, rank, access, waits: true });
            steps.push(Step::Agree { slot });
        }
        let writes_of_8 = dice.between(1, 7);
        for rank in (0..program.ranks).filter(|&rank| rank != cutter) {
            for _ in 0..dice.magnitude(1, 8) {
                let (from, length) = (dice.below(300), dice.magnitude(1, 1024));
                let (writes, view) = (dice.below(8) < writes_of_8, Arc::new(Nest::WHOLE_FILE));
                let access = Access { writes, view, from, to: from + length };
                steps.push(Step::Access { slot, rank, access, waits: true });
            }
        }
        for _ in 0..dice.between(1, 3) {
            steps.push(Step::Resize { slot, rank: cutter, bytes: dice.below(300) });
        }
        steps.push(Step::Agree { slot });
        round.steps = steps;
    }
}

/// One rank reads what is on servers while another cuts it, and looks whether what was cut off comes back, also
/// when the file gets longer.
fn cut_while_read(dice: &mut Dice, ranks: u32, cutter: u32, slot: usize) -> Vec<Step> {
    let reader = (cutter + 1) % ranks;
    let mut steps = Vec::new();
    let access = |steps: &mut Vec<Step>, rank, writes, from, to| {
        let access = Access { writes, view: Arc::new(Nest::WHOLE_FILE), from, to };
        steps.push(Step::Access { slot, rank, access, waits: true });
    };
    access(&mut steps, reader, true, 0, dice.between(512, 2048));
    steps.extend([Step::Sync { slot }, Step::Agree { slot }]);
    for _ in 0..dice.between(1, 3) {
        let from = dice.below(300);
        access(&mut steps, reader, false, from, from + dice.between(256, 1024));
    }
    for _ in 0..dice.between(1, 2) {
        let bytes = dice.below(300);
        steps.push(Step::Resize { slot, rank: cutter, bytes });
        if dice.one_in(2) {
            let bytes = bytes + dice.between(32, 512);
            steps.push(Step::Resize { slot, rank: cutter, bytes });
        }
        // At once, and not more than stays in memory.
        access(&mut steps, cutter, false, bytes, bytes + dice.between(32, 256));
    }
    steps.push(Step::Agree { slot });
    steps
}

/// Rounds in which ranks come together become others, in which each does so while others write.
pub(super) fn sync_while_written(dice: &mut Dice, program: &mut Program) {
    for round in &mut program.rounds {
        let slot = match *round.steps.as_slice() {
            [Step::Agree { slot }] | [Step::Sync { slot }, ..] => slot,
            [Step::Collective { slot, .. }] | [Step::Access { slot, .. }, ..] if dice.one_in(2) => {
                slot
            }
            _ => continue,
        };
        let mut steps = Vec::new();
        for _ in 0..dice.between(1, 4) {
            for rank in 0..program.ranks {
                // So that some sync while others still write.
                for _ in 0..dice.below(4) {
                    let from = dice.below(300);
                    let (view, to) = (Arc::new(Nest::WHOLE_FILE), from + dice.magnitude(1, 64));
                    let access = Access { writes: true, view, from, to };
                    steps.push(Step::Access { slot, rank, access, waits: true });
                }
            }
            steps.push(Step::Sync { slot });
        }
        steps.push(Step::Agree { slot });
        round.steps = steps;
    }
}

/// Ranks move the shared pointer, without waiting for each other.
fn advances(dice: &mut Dice, ranks: u32, slot: usize) -> Vec<Step> {
    let advance = |dice: &mut Dice| {
        let rank = dice.below(u64::from(ranks)) as u32;
        Step::Advance { slot, rank, by: dice.below(5) }
    };
    (0..4 * ranks).map(|_| advance(dice)).collect()
}

fn independent(dice: &mut Dice, ranks: u32, slot: usize, views: &[Vec<Arc<Nest>>]) -> Vec<Step> {
    let mut steps = Vec::new();
    for rank in 0..ranks {
        for _ in 0..dice.below(4) {
            let family = dice.pick(views);
            let view = family[dice.below(family.len() as u64) as usize].clone();
            let writes = dice.one_in(2);
            let access = access(dice, writes, &view);
            steps.push(Step::Access { slot, rank, access, waits: !dice.one_in(4) });
        }
    }
    steps
}

/// Atomic accesses of all ranks to the same bytes.
fn contend(dice: &mut Dice, ranks: u32, slot: usize) -> Vec<Step> {
    let mut steps = vec![Step::SetAtomic { slot, atomic: true }];
    for _ in 0..dice.between(1, 4) {
        for rank in 0..ranks {
            let (from, length) = (dice.below(100), dice.magnitude(16, 1024));
            let (writes, view) = (dice.one_in(2), Arc::new(Nest::WHOLE_FILE));
            let access = Access { writes, view, from, to: from + length };
            steps.push(Step::Access { slot, rank, access, waits: dice.one_in(2) });
        }
    }
    steps
}

fn access(dice: &mut Dice, writes: bool, view: &Arc<Nest>) -> Access {
    let size = view.size().min(view.rank(FILE_BYTES_MAX).unwrap_or(0));
    let from = if dice.one_in(2) { dice.below(size + 1) } else { dice.below(size.min(200) + 1) };
    let length = match dice.below(12) {
        0 => 0,
        1..6 => dice.magnitude(1, 64),
        _ => dice.magnitude(1, 1024),
    };
    Access { writes, view: view.clone(), from, to: (from + length).min(size) }
}

fn wish(dice: &mut Dice) -> OpenWish {
    let creates = !dice.one_in(5);
    let exclusive = creates && dice.one_in(6);
    let unit = dice.magnitude(16, 4096);
    let subfiles = if dice.one_in(8) { dice.between(9, 120) } else { dice.between(1, 8) };
    let layout = Layout::striped(unit, subfiles as u32, 0).expect("in range");
    let layout = dice.one_in(2).then_some(layout);
    let reads = !dice.one_in(12);
    let writes = !reads || !dice.one_in(12);
    OpenWish { reads, writes, creates, exclusive, mode: 0o644, layout }
}

fn names(dice: &mut Dice, ranks: u32) -> Vec<Step> {
    let call = |dice: &mut Dice| {
        let files = &FILES[..];
        let path = |dice: &mut Dice| -> Vec<u8> {
            let of = if dice.one_in(3) { &DIRECTORIES[..] } else { files };
            dice.pick(of).as_bytes().into()
        };
        match dice.below(12) {
            10.. => NameCall::Rename(path(dice), path(dice)),
            0..2 => NameCall::Look(path(dice)),
            2..5 => NameCall::MakeDirectory(dice.pick(&DIRECTORIES).as_bytes().into()),
            5 => NameCall::Remove(path(dice), *dice.pick(&[Kind::File, Kind::Directory])),
            6 => NameCall::Remove(dice.pick(files).as_bytes().into(), Kind::File),
            7 => NameCall::Rename(path(dice), path(dice)),
            8 => {
                let (from, to) = (*dice.pick(files), *dice.pick(files));
                NameCall::Rename(from.into(), to.into())
            }
            _ => {
                let after = if dice.one_in(3) { b"a".to_vec() } else { Vec::new() };
                let of = if dice.one_in(2) { "/" } else { *dice.pick(&DIRECTORIES) };
                NameCall::List(of.into(), after)
            }
        }
    };
    let count = dice.between(1, 5);
    let rank = |dice: &mut Dice| dice.below(u64::from(ranks)) as u32;
    (0..count).map(|_| Step::Name { rank: rank(dice), call: call(dice) }).collect()
}
