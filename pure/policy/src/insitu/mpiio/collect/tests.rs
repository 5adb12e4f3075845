use super::*;
use crate::insitu::StrategySpec;
use crate::insitu::mpiio::MpiIoStage;

fn collect(text: &str) -> Collect {
    match StrategySpec::parse(text).unwrap().mpiio() {
        Some(MpiIoStage::Collect(collect)) => collect,
        other => panic!("{text}: {other:?}"),
    }
}

fn stepped(rank: &mut Collect, event: Event) -> Vec<Action> {
    let mut out = Vec::new();
    rank.step(Nanos(0), event, &mut out);
    out
}

fn write(rank: &mut Collect, extents: &[(u64, u64)]) -> Vec<Action> {
    let extents = extents.iter().map(|&(offset, length)| Extent::new(offset, length));
    stepped(rank, Event::WriteArrived(extents.collect()))
}

fn runs(nest: &Nest) -> Vec<(u64, u64)> {
    nest.cut(0, nest.size()).runs().map(|run| (run.offset, run.length)).collect()
}

fn bytes(nest: &Nest) -> impl Iterator<Item = u64> {
    runs(nest).into_iter().flat_map(|(offset, length)| offset..offset + length)
}

#[test]
fn what_a_rank_writes_is_held_sorted_and_goes_out_once() {
    let mut rank = collect("collect:slow=0");
    assert_eq!(
        write(&mut rank, &[(100, 10), (300, 10)]),
        [
            Action::Copy { from: 0, to: 0, length: 10 },
            Action::Copy { from: 10, to: 10, length: 10 },
            Action::Answer
        ]
    );
    write(&mut rank, &[(50, 50)]);
    assert_eq!(rank.share(), Share { bytes: 70, runs: 2, ..Share::default() });
    let batch = rank.take(Fate::Together).unwrap();
    assert_eq!(runs(&batch.file), [(50, 60), (300, 10)]);
    assert_eq!(runs(&batch.memory), [(20, 50), (0, 20)]);
    assert_eq!((rank.share(), rank.holds_bytes()), (Share::default(), false));
    assert_eq!(rank.counts(), Counts { held: 2, together: 1, ..Counts::default() });
}

#[test]
fn a_call_that_would_miss_held_bytes_has_them_written_out_before_it() {
    let held = || {
        let mut rank = collect("collect:slow=0");
        write(&mut rank, &[(100, 10)]);
        rank
    };
    let read = |offset, file_bytes| {
        stepped(&mut held(), Event::ReadArrived(vec![Extent::new(offset, 10)], file_bytes)).len()
    };
    // Bytes that are held, others, others in a file that ends before both, and behind all.
    assert_eq!([read(95, 200), read(80, 200), read(80, 0), read(80, 95)], [2, 1, 2, 1]);
    assert!(matches!(
        stepped(&mut held(), Event::OtherArrived)[..],
        [Action::WriteOut(_), Action::Pass]
    ));
    assert_eq!(stepped(&mut collect("collect"), Event::OtherArrived), [Action::Pass]);
}

#[test]
fn a_write_that_cannot_be_held_passes_behind_the_bytes_it_overwrites() {
    let mut rank = collect("collect:slow=0,buffer=4k");
    write(&mut rank, &[(0, 4000)]);
    assert!(matches!(write(&mut rank, &[(3000, 5000)])[..], [Action::WriteOut(_), Action::Pass]));
    write(&mut rank, &[(0, 4000)]);
    assert_eq!(write(&mut rank, &[(4000, 5000)]), [Action::Pass]);
    // Full: what is held goes out, and the write is held.
    let full = write(&mut rank, &[(4000, 100)]);
    assert!(matches!(full[..], [Action::WriteOut(_), Action::Copy { to: 0, .. }, Action::Answer]));
    stepped(&mut rank, Event::AtomicityChanged(true));
    assert_eq!(write(&mut rank, &[(0, 10)]), [Action::Pass]);
    stepped(&mut rank, Event::AtomicityChanged(false));
    assert_eq!(write(&mut rank, &[(0, 10)]).last(), Some(&Action::Answer));
    assert_eq!(write(&mut collect("collect:when=never"), &[(0, 10)]), [Action::Pass]);
}

#[test]
fn pieces_are_bounded_as_bytes_are() {
    let mut rank = collect("collect:slow=0");
    let all: Vec<_> = (0..PIECES as u64).map(|at| (2 * at, 1)).collect();
    assert_eq!(write(&mut rank, &all).last(), Some(&Action::Answer));
    assert!(matches!(write(&mut rank, &[(1 << 30, 1)])[0], Action::WriteOut(_)));
    let more: Vec<_> = (0..=PIECES as u64).map(|at| (2 * at, 1)).collect();
    assert_eq!(write(&mut collect("collect:slow=0"), &more), [Action::Pass]);
}

#[test]
fn writes_pass_where_most_of_the_first_ones_came_back_quickly() {
    for (took, is_held) in [
        ([1, 1, 1, 90, 90], false),
        ([1, 1, 90, 90, 90], true),
        ([70, 70, 70, 70, 70], true),
        ([69, 69, 69, 1, 90], false),
    ] {
        // 20 µs, and 50 µs for the bytes.
        let mut rank = collect("collect");
        for micros in took {
            assert!(rank.is_probing());
            assert_eq!(write(&mut rank, &[(0, 50_000)]), [Action::Pass], "{took:?}");
            stepped(&mut rank, Event::WriteEnded(49_999, Nanos(micros * 1000)));
        }
        assert!(!rank.is_probing());
        let last = write(&mut rank, &[(0, 50_000)]).pop();
        assert_eq!(last == Some(Action::Answer), is_held, "{took:?}");
        assert_eq!(rank.counts().quick, u64::from(!is_held));
    }
    assert!(!collect("collect:slow=0").is_probing());
}

#[test]
fn large_runs_and_those_of_one_rank_alone_go_out_as_they_are() {
    let mut rank = collect("collect:independent=100");
    let mut fate = |shares: &[(u64, u64)]| {
        let share = |&(bytes, runs)| Share { bytes, runs, ..Share::default() };
        rank.judge(&shares.iter().map(share).collect::<Vec<_>>())
    };
    assert_eq!(fate(&[(0, 0), (0, 0)]), Fate::Nothing);
    assert_eq!(fate(&[(10, 2), (0, 0)]), Fate::Alone);
    assert_eq!(fate(&[(10, 2), (5, 1)]), Fate::Together);
    assert_eq!(fate(&[(100, 1), (200, 2)]), Fate::Alone);
    assert_eq!(fate(&[(100, 1), (199, 2)]), Fate::Together);
}

const RANKS: usize = 3;
const FILE_BYTES: usize = 700;

/// A program of some ranks on one file: what lies below, and what it would be without the stage.
struct Program {
    ranks: Vec<Collect>,
    staging: Vec<Vec<u8>>,
    below: Vec<u8>,
    plain: Vec<u8>,
    /// Who wrote each byte since the last call that all made.
    writers: Vec<Option<usize>>,
}

impl Program {
    fn new(stage: &Collect) -> Program {
        let ranks = (0..RANKS).map(|rank| stage.clone().of_rank(rank as u32)).collect();
        Program {
            ranks,
            staging: vec![vec![0; 1 << 16]; RANKS],
            below: vec![0; FILE_BYTES],
            plain: vec![0; FILE_BYTES],
            writers: vec![None; FILE_BYTES],
        }
    }

    fn write_out(&mut self, rank: usize, batch: &Batch) {
        let mut offsets = bytes(&batch.file);
        for at in bytes(&batch.memory) {
            self.below[offsets.next().unwrap() as usize] = self.staging[rank][at as usize];
        }
        assert_eq!(offsets.next(), None);
    }

    /// What is done about a call; true if it is the library's.
    fn done(&mut self, rank: usize, event: Event, bytes: &[u8]) -> bool {
        let actions = stepped(&mut self.ranks[rank], event);
        let (last, before) = actions.split_last().unwrap();
        for action in before {
            match action {
                Action::WriteOut(batch) => self.write_out(rank, batch),
                &Action::Copy { from, to, length } => {
                    let (from, to, length) = (from as usize, to as usize, length as usize);
                    self.staging[rank][to..to + length]
                        .copy_from_slice(&bytes[from..from + length]);
                }
                Action::Pass | Action::Answer => panic!("{actions:?} ends before its end"),
            }
        }
        *last == Action::Pass
    }

    fn write(&mut self, rank: usize, extents: Vec<Extent>, random: &mut Random) {
        let offsets = |extents: &[Extent]| -> Vec<usize> {
            let all = extents.iter().flat_map(|it| it.offset..it.end());
            all.map(|at| at as usize).collect()
        };
        // Ranks that write the same bytes between two calls of all get any of them.
        let is_free = |&at: &usize| self.writers[at].is_none_or(|it| it == rank);
        if !offsets(&extents).iter().all(is_free) {
            return;
        }
        let bytes: Vec<u8> = offsets(&extents).iter().map(|_| random.bits() as u8).collect();
        let mut twin = self.ranks[rank].clone();
        let at_once = twin.passes_at_once();
        let passes = self.done(rank, Event::WriteArrived(extents.clone()), &bytes);
        if at_once {
            assert!(passes && twin.counts() == self.ranks[rank].counts());
        }
        for (at, byte) in offsets(&extents).into_iter().zip(&bytes) {
            self.writers[at] = Some(rank);
            self.plain[at] = *byte;
            if passes {
                self.below[at] = *byte;
            }
        }
        if passes && self.ranks[rank].is_probing() {
            let took = Nanos(random.below(40_000));
            let ended = Event::WriteEnded(bytes.len() as u64, took);
            stepped(&mut self.ranks[rank], ended);
        }
    }

    fn read(&mut self, rank: usize, extent: Extent) {
        let event = Event::ReadArrived(vec![extent], FILE_BYTES as u64);
        assert!(self.done(rank, event, &[]));
        for at in extent.offset as usize..extent.end() as usize {
            let is_others = self.writers[at].is_some_and(|it| it != rank);
            assert!(is_others || self.below[at] == self.plain[at], "byte {at} of rank {rank}");
        }
    }

    fn together(&mut self) -> Fate {
        let shares: Vec<Share> = self.ranks.iter().map(Collect::share).collect();
        let fates: Vec<Fate> = self.ranks.iter_mut().map(|it| it.judge(&shares)).collect();
        assert!(fates.iter().all(|fate| *fate == fates[0]), "{fates:?}");
        for rank in (0..RANKS).rev() {
            let batch = self.ranks[rank].take(fates[0]).unwrap();
            self.write_out(rank, &batch);
        }
        assert!(self.below == self.plain, "after a call that all made");
        self.writers.fill(None);
        fates[0]
    }
}

/// Against the plainest model there is, every member: own bytes at once, those of others after the next call of all.
#[test]
fn a_program_finds_its_own_bytes_at_once_and_all_of_them_after_a_call_of_all() {
    let mut random = Random::new(Seed(11));
    for text in [
        "collect:slow=0",
        "collect:slow=0,buffer=4k,independent=9",
        "collect",
        "collect:when=never",
        "collect-cruel:buffer=4k",
        "collect-cruel:seed=3",
    ] {
        let (mut fates, mut counts) = ([0; 3], Counts::default());
        for _ in 0..60 {
            let mut program = Program::new(&collect(text));
            for _ in 0..150 {
                let rank = random.below(RANKS as u64) as usize;
                let first = random.below(FILE_BYTES as u64 - 90);
                match random.below(20) {
                    0 => fates[program.together() as usize] += 1,
                    1..4 => program.read(rank, Extent::new(first, random.below(90))),
                    4 => assert!(program.done(rank, Event::OtherArrived, &[])),
                    5..7 => {
                        let step = 1 + random.below(9);
                        let extents = (0..4).map(|at| Extent::new(first + at * 2 * step, step));
                        program.write(rank, extents.collect(), &mut random);
                    }
                    _ => {
                        let extent = Extent::new(first, random.below(60));
                        program.write(rank, vec![extent], &mut random);
                    }
                }
            }
            program.together();
            let one = program.ranks[0].counts();
            counts.held += one.held;
            counts.passed += one.passed;
            counts.alone += one.alone;
            counts.together += one.together;
        }
        let is_null = text.ends_with("never");
        assert_eq!(counts.held == 0, is_null, "{text}: {counts:?}");
        assert_eq!(fates[Fate::Together as usize] == 0, is_null, "{text}: {fates:?}");
        assert!(counts.passed > 0, "{text}: {counts:?}");
        assert_eq!(counts.alone == 0, is_null, "{text}: {counts:?}");
    }
}

#[test]
fn parameters_nobody_knows_are_refused_and_named() {
    for (text, offender) in [
        ("collect:when=always", "`always`"),
        ("collect:seed=1", "`seed`"),
        ("collect:buffer=1", "buffer: 1 bytes"),
        ("collect:buffer=2g", "buffer: 2147483648 bytes"),
        ("collect:independent=0", "independent: 0 bytes"),
        ("collect:slow=soon", "`soon`"),
        ("collect-cruel:seed=x", "`x`"),
        ("collect-cruel:slow=1s", "`slow`"),
    ] {
        let refused = StrategySpec::parse(text).unwrap_err();
        assert!(refused.message.contains(offender), "{text}: {refused}");
    }
}

#[test]
fn it_has_to_be_asked_for_and_files_named() {
    use crate::insitu::stacking::{Consent, Setting, check, given_up};
    let consent = Consent::of(&["late-visibility".to_owned()], false, false).unwrap();
    let specs = |text: &str| vec![StrategySpec::parse(text).unwrap()];
    let none = check(&specs("collect:paths=*"), Setting::Live, Consent::default()).unwrap_err();
    assert!(none.hint.contains("--allow late-visibility"), "{none}");
    let all = check(&specs("collect"), Setting::Live, consent).unwrap_err();
    assert!(all.message.contains("files you name"), "{all}");
    assert!(check(&specs("collect:paths=*"), Setting::Live, consent).is_ok());
    assert_eq!(given_up(&specs("collect:paths=*")), ["late visibility"]);
}

#[test]
fn ranks_take_storage_alike_for_quick_or_slow_once_they_have_met() {
    let after = |times: &[u64]| {
        let mut rank = collect("collect:slow=20us");
        for (&time, at) in times.iter().zip(0..) {
            assert_eq!(write(&mut rank, &[(at, 1)]), [Action::Pass]);
            stepped(&mut rank, Event::WriteEnded(1, Nanos(time)));
        }
        rank
    };
    let meet = |ranks: &mut [Collect]| {
        let shares: Vec<Share> = ranks.iter().map(Collect::share).collect();
        ranks.iter_mut().map(|rank| rank.judge(&shares)).collect::<Vec<Fate>>()
    };
    let (slow, quick) = (1_000_000, 1_000);
    // One of them was told of a storage that it only seems to be.
    let mut ranks = [after(&[slow; 5]), after(&[quick, quick, slow, quick, slow]), after(&[slow])];
    let holds = |ranks: &mut [Collect]| -> Vec<bool> {
        ranks.iter_mut().map(|rank| write(rank, &[(90, 1)]).contains(&Action::Answer)).collect()
    };
    assert_eq!(holds(&mut ranks), [true, false, false]);
    assert_eq!(meet(&mut ranks), [Fate::Alone; 3]);
    ranks.iter_mut().for_each(|rank| drop(rank.take(Fate::Alone).unwrap()));
    assert_eq!(holds(&mut ranks), [true; 3]);
    // It stays so, and fresh writes of all decide where nobody has enough.
    for _ in 0..200 {
        assert_eq!(meet(&mut ranks), [Fate::Together; 3]);
        assert_eq!(holds(&mut ranks), [true; 3]);
    }
    let mut ranks = [after(&[quick, slow, quick]), after(&[quick, quick, slow])];
    assert_eq!(meet(&mut ranks), [Fate::Nothing; 2]);
    assert!(holds(&mut ranks) == [false; 2] && ranks.iter().all(|rank| !rank.is_probing()));
}
