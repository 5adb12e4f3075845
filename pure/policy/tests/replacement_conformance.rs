//! The family's conformance suite: every replacement of the catalogue makes room whenever there can be some, with a
//! block that may leave, and knows no block that is not there. A new member is enrolled by its row. What members
//! are for is shown by the shares of hits on traces that are known to tell them apart.

use iolab_policy::Machine;
use iolab_policy::replacement::catalog::ROWS;
use iolab_policy::replacement::{Action, Block, Event, Place, Replacement, checked, find};
use iolab_vocab::{Nanos, Random, Seed};
use std::collections::BTreeMap;

fn block(number: u64) -> Block {
    Block { file: 1 + number % 2, offset: number * 100 }
}

fn make(name: &str, blocks: u64) -> Box<dyn Replacement> {
    checked(find(name).unwrap().make(Place { memory: 10 * blocks }))
}

/// Who leaves.
fn leaver(replacement: &mut dyn Replacement) -> Option<Block> {
    let mut out = Vec::new();
    replacement.step(Nanos::ZERO, Event::Full, &mut out);
    out.pop().map(|Action::Leave { block }| block)
}

#[test]
fn every_replacement_makes_room_while_any_block_may_leave() {
    for row in ROWS {
        for seed in 0..200 {
            let mut random = Random::new(Seed(seed));
            let blocks = 1 + random.below(12);
            let mut replacement = make(row.name, blocks);
            let mut there: BTreeMap<Block, bool> = BTreeMap::new();
            let mut tell = |event, out: &mut Vec<Action>| replacement.step(Nanos::ZERO, event, out);
            let mut out = Vec::new();
            for _ in 0..400 {
                let block = block(random.below(30));
                let held = there.get(&block).copied();
                match (random.below(6), held) {
                    (0 | 1, None) => {
                        if there.len() as u64 == blocks {
                            tell(Event::Full, &mut out);
                            let may = there.values().any(|held| !held);
                            assert_eq!(out.len(), usize::from(may), "{row:?} seed {seed}");
                            let Some(Action::Leave { block }) = out.pop() else { continue };
                            assert_eq!(there.remove(&block), Some(false), "{row:?} seed {seed}");
                        }
                        tell(Event::Came { block, bytes: 10 }, &mut out);
                        there.insert(block, false);
                    }
                    (0..4, Some(_)) => tell(Event::Used { block }, &mut out),
                    (4, Some(held)) => {
                        let event =
                            if held { Event::Freed { block } } else { Event::Held { block } };
                        tell(event, &mut out);
                        there.insert(block, !held);
                    }
                    (5, Some(_)) if random.below(4) == 0 => {
                        tell(Event::Gone { block }, &mut out);
                        there.remove(&block);
                    }
                    _ => {}
                }
                assert_eq!(out, [], "{row:?} answers what is no question");
            }
            there.iter().filter(|(_, held)| **held).for_each(|(&block, _)| {
                tell(Event::Freed { block }, &mut out);
            });
            // All leave, each once: the laws say so.
            for left in (0..there.len()).rev() {
                tell(Event::Full, &mut out);
                assert!(out.pop().is_some(), "{row:?} keeps {left}");
            }
            tell(Event::Full, &mut out);
            assert_eq!(out, [], "{row:?}");
        }
    }
}

/// How many of the blocks that are asked for one after the other are there, in a cache of so many.
fn hits(name: &str, blocks: u64, asked: impl Iterator<Item = u64>) -> usize {
    let mut replacement = make(name, blocks);
    let mut there = std::collections::BTreeSet::new();
    let mut hits = 0;
    for block in asked.map(block) {
        let mut out = Vec::new();
        if there.contains(&block) {
            hits += 1;
            replacement.step(Nanos::ZERO, Event::Used { block }, &mut out);
            continue;
        }
        if there.len() as u64 == blocks {
            there.remove(&leaver(&mut *replacement).unwrap());
        }
        there.insert(block);
        replacement.step(Nanos::ZERO, Event::Came { block, bytes: 10 }, &mut out);
    }
    hits
}

/// Ten blocks that are wanted again and again, between them a scan of others that are read once.
fn scanned() -> impl Iterator<Item = u64> {
    (0..40).flat_map(|round| (0..10).chain(1_000 + round * 30..1_030 + round * 30))
}

#[test]
fn a_scan_empties_lru_and_leaves_two_queues_what_comes_back() {
    let all = |name| hits(name, 32, scanned());
    assert_eq!([all("lru"), all("fifo"), all("clock")], [0, 0, 0]);
    // All ten in all rounds but the few in which they are found out.
    assert!(all("two-queue") >= 10 * 30, "{}", all("two-queue"));
}

#[test]
fn what_was_used_lately_stays_with_lru_and_clock_and_not_with_fifo() {
    // Two of four are used all the time, others come by.
    let trace = || (0..200).flat_map(|at| [1, 2, 10 + at]);
    let all = |name| hits(name, 4, trace());
    assert_eq!([all("lru"), all("clock")], [398, 398]);
    assert!(all("fifo") < 300, "{}", all("fifo"));
    assert!(all("cruel") <= all("fifo"), "{}", all("cruel"));
}

#[test]
fn blocks_leave_in_the_order_of_their_last_use_and_held_ones_when_they_are_free() {
    let mut lru = make("lru", 4);
    let tell = |lru: &mut dyn Replacement, event| lru.step(Nanos::ZERO, event, &mut Vec::new());
    (0..4).for_each(|at| tell(&mut *lru, Event::Came { block: block(at), bytes: 10 }));
    tell(&mut *lru, Event::Used { block: block(0) });
    tell(&mut *lru, Event::Held { block: block(1) });
    assert_eq!(leaver(&mut *lru), Some(block(2)));
    tell(&mut *lru, Event::Freed { block: block(1) });
    assert_eq!([leaver(&mut *lru), leaver(&mut *lru)], [Some(block(1)), Some(block(3))]);
    assert_eq!([leaver(&mut *lru), leaver(&mut *lru)], [Some(block(0)), None]);
}

#[test]
fn an_unknown_replacement_is_named_with_a_way_out() {
    let refusal = find("arc").unwrap_err();
    assert!(refusal.message.contains("arc") && refusal.hint.contains("two-queue"), "{refusal}");
}
