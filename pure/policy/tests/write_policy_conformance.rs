//! The family's conformance suite: every write policy of the catalogue flushes what it is offered and nothing else,
//! something whenever it must, and all of it sooner or later where it says so. A new member is enrolled by its row.

use iolab_policy::Machine;
use iolab_policy::replacement::Block;
use iolab_policy::write_policy::catalog::{Answer, ROWS};
use iolab_policy::write_policy::{Action, Event, Place, WritePolicy, checked, find};
use iolab_vocab::{Nanos, Random, Seed};
use std::collections::BTreeMap;

const SECOND: u64 = 1_000_000_000;
const MEMORY: u64 = 1_000;

fn make(name: &str) -> Box<dyn WritePolicy> {
    let place = Place { age: Nanos(5 * SECOND), seed: Seed(3) };
    checked(find(name).unwrap().make(place))
}

fn block(number: u64) -> Block {
    Block { file: 1, offset: number * 100 }
}

/// A policy, and what it was offered; bytes of a block are a tenth of the memory.
struct Cache {
    policy: Box<dyn WritePolicy>,
    offered: BTreeMap<Block, u64>,
    order: u64,
}

impl Cache {
    fn of(name: &str) -> Cache {
        Cache { policy: make(name), offered: BTreeMap::new(), order: 0 }
    }

    fn write(&mut self, now: u64, block: Block) {
        self.order += 1;
        let (since, order) = (Nanos(now), self.order);
        self.policy.step(since, Event::Offered { block, since, order }, &mut Vec::new());
        self.offered.insert(block, now);
    }

    /// The next block that is flushed, if one is.
    fn turn(&mut self, now: u64, must: bool) -> Option<Block> {
        let dirty_bytes = self.offered.len() as u64 * MEMORY / 10;
        let mut out = Vec::new();
        let turn = Event::Turn { must, dirty_bytes, memory: MEMORY };
        self.policy.step(Nanos(now), turn, &mut out);
        let Some(Action::Flush { block }) = out.pop() else { return None };
        self.policy.step(Nanos(now), Event::Withdrawn { block }, &mut out);
        assert!(self.offered.remove(&block).is_some(), "{block:?} was not offered");
        Some(block)
    }

    fn wakes_at(&mut self, now: u64) -> Option<u64> {
        let mut out = Vec::new();
        self.policy.step(Nanos(now), Event::Rested, &mut out);
        out.pop().map(|action| match action {
            Action::WakeAt(at) => at.0,
            other => panic!("{other:?}"),
        })
    }
}

#[test]
fn every_policy_flushes_when_it_must_until_nothing_is_left() {
    for row in ROWS {
        for seed in 0..100 {
            let mut random = Random::new(Seed(seed));
            let mut cache = Cache::of(row.name);
            let mut now = 0;
            for _ in 0..60 {
                now += random.below(SECOND);
                let block = block(random.below(20));
                if !cache.offered.contains_key(&block) {
                    cache.write(now, block);
                }
                let must = random.below(4) == 0;
                let was_empty = cache.offered.is_empty();
                let flushed = cache.turn(now, must);
                assert!(!must || was_empty || flushed.is_some(), "{row:?} seed {seed}");
                cache.wakes_at(now);
            }
            while !cache.offered.is_empty() {
                assert!(cache.turn(now, true).is_some(), "{row:?} seed {seed}");
            }
            assert_eq!(cache.turn(now, true), None, "{row:?} seed {seed}");
        }
    }
}

#[test]
fn policies_that_say_so_flush_everything_by_themselves_when_they_are_woken_as_they_wish() {
    for row in ROWS {
        let mut cache = Cache::of(row.name);
        // Less than half of the memory, so that only time can be a reason.
        (0..4).for_each(|at| cache.write(at, block(at)));
        let mut now = 4;
        let mut wakes = 0;
        loop {
            while cache.turn(now, false).is_some() {}
            let Some(at) = cache.wakes_at(now) else { break };
            (now, wakes) = (at, wakes + 1);
            assert!(wakes < 100, "{row:?} is woken for nothing");
        }
        assert_eq!(cache.offered.is_empty(), row.flushes_all, "{row:?} {:?}", cache.offered);
        assert!(now <= 10 * SECOND, "{row:?} takes {now} ns");
    }
}

#[test]
fn delayed_waits_five_seconds_or_for_half_of_the_memory_and_takes_the_oldest_first() {
    let mut cache = Cache::of("delayed");
    cache.write(0, block(9));
    cache.write(SECOND, block(1));
    assert_eq!((cache.turn(SECOND, false), cache.wakes_at(SECOND)), (None, Some(5 * SECOND)));
    assert_eq!(cache.turn(5 * SECOND, false), Some(block(9)));
    assert_eq!(cache.turn(5 * SECOND, false), None);
    assert_eq!(cache.wakes_at(5 * SECOND), Some(6 * SECOND));
    (2..6).for_each(|at| cache.write(5 * SECOND, block(at)));
    assert_eq!(cache.turn(5 * SECOND, false), None, "half is not more than half");
    cache.write(5 * SECOND, block(0));
    assert_eq!(cache.turn(5 * SECOND, false), Some(block(1)));
    assert_eq!(cache.turn(5 * SECOND, false), None);
}

#[test]
fn through_waits_for_nothing_and_on_sync_for_ever() {
    let mut through = Cache::of("through");
    through.write(7, block(2));
    assert_eq!((through.turn(7, false), through.wakes_at(7)), (Some(block(2)), None));
    let mut on_sync = Cache::of("on-sync");
    (0..10).for_each(|at| on_sync.write(0, block(at)));
    assert_eq!((on_sync.turn(u64::MAX / 2, false), on_sync.wakes_at(0)), (None, None));
    assert_eq!(on_sync.turn(0, true), Some(block(0)));
}

#[test]
fn cruel_flushes_in_no_order_and_repeats_with_its_seed() {
    let order = || {
        let mut cache = Cache::of("cruel");
        (0..10).for_each(|at| cache.write(at, block(at)));
        std::iter::from_fn(|| cache.turn(10, true)).collect::<Vec<_>>()
    };
    let sorted: Vec<Block> = (0..10).map(block).collect();
    assert_eq!(order(), order());
    assert_ne!(order(), sorted);
}

#[test]
fn only_through_says_more_than_that_the_cache_has_it() {
    let saved: Vec<_> = ROWS.iter().filter(|row| row.answer == Answer::Saved).collect();
    assert_eq!(saved, [find("through").unwrap()]);
}

#[test]
fn an_unknown_write_policy_is_named_with_a_way_out() {
    let refusal = find("never").unwrap_err();
    assert!(refusal.message.contains("never") && refusal.hint.contains("through"), "{refusal}");
}
