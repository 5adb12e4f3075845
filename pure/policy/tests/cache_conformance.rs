//! The family's conformance suite: every cache layer of the catalogue, driven in every order its
//! discipline allows, must be indistinguishable from a server without one: what is read is what
//! was written last, what is admitted reaches the device, once, within capacity, and nobody waits
//! for ever. A new layer is enrolled by its row in the catalogue.

mod cache_model;

use cache_model::choice::Choice;
use cache_model::{Request, Scenario, World};
use iolab_policy::Machine;
use iolab_policy::cache::catalog::{ROWS, Row};
use iolab_policy::cache::{Action, Cache, Delay, Event, Settings};
use iolab_vocab::{Extent, FileId, Nanos, Random, Seed};

type Build = dyn Fn(Settings) -> Box<dyn Cache>;

/// Corners made frequent: little memory, short transfers, one or three in flight.
fn settings(random: &mut Random) -> Settings {
    let access_bytes = 4 + random.below(13);
    let ageing = (random.below(3) == 0).then(|| Nanos(1 + random.below(30)));
    let delay = Delay { age: Nanos(1 + random.below(50)), bytes: random.below(40) };
    Settings {
        capacity_bytes: 2 * access_bytes + 1 + random.below(60),
        access_bytes,
        depth: 1 + 2 * random.below(2) as u32,
        near_bytes: random.below(20),
        seek_bytes: random.below(8),
        hole_bytes: random.below(2) * random.below(8),
        delay: (random.below(3) == 0).then_some(delay),
        ageing,
        ..Settings::default()
    }
}

/// Requests that crowd on few bytes, so that they overlap and touch.
fn request(random: &mut Random, access_bytes: u64) -> Request {
    let file = FileId(random.below(2) as u32);
    let extent = Extent::new(random.below(40), 1 + random.below(2 * access_bytes));
    match random.below(9) {
        0..=3 => Request::Read(file, extent),
        4..=7 => Request::Write(file, extent),
        _ => Request::Flush(file),
    }
}

fn scenario(seed: u64) -> Scenario {
    let mut random = Random::new(Seed(seed));
    let settings = settings(&mut random);
    let count = 1 + random.below(30);
    let requests = (0..count).map(|_| request(&mut random, settings.access_bytes)).collect();
    Scenario { settings, packet_bytes: 1 + random.below(settings.access_bytes), requests }
}

/// Runs random scenarios in random orders.
fn explore(build: &Build, seeds: std::ops::Range<u64>) -> Result<(), String> {
    for seed in seeds {
        let scenario = scenario(seed);
        let cache = build(scenario.settings);
        let (outcome, _) = World::new(cache, scenario.clone(), Choice::chance(seed)).run();
        outcome.map_err(|broken| format!("seed {seed}: {broken}\n{scenario:?}"))?;
    }
    Ok(())
}

/// A layer that cuts transfers anywhere has more orders than one can wait for.
const ORDERS_OF_CRUEL: u64 = 5000;

/// Runs one scenario in every order there is. Returns how many there are.
fn exhaust(build: &Build, scenario: &Scenario, most: u64) -> Result<u64, String> {
    let (mut choice, mut count) = (Choice::first_path(), 0);
    loop {
        let cache = build(scenario.settings);
        let (outcome, walked) = World::new(cache, scenario.clone(), choice).run();
        outcome.map_err(|broken| format!("order {count}: {broken}\n{scenario:?}"))?;
        count += 1;
        match walked.next_path() {
            Some(next) if count < most => choice = next,
            _ => return Ok(count),
        }
    }
}

fn small(depth: u32, requests: &[Request]) -> Scenario {
    let settings = Settings {
        capacity_bytes: 13,
        access_bytes: 6,
        depth,
        near_bytes: 5,
        ..Settings::default()
    };
    Scenario { settings, packet_bytes: 4, requests: requests.to_vec() }
}

fn small_scenarios() -> Vec<Scenario> {
    let (one, other) = (FileId(0), FileId(1));
    let read = |file, offset, length| Request::Read(file, Extent::new(offset, length));
    let write = |file, offset, length| Request::Write(file, Extent::new(offset, length));
    let lists = [
        vec![write(one, 0, 4), write(one, 2, 4), read(one, 0, 6)],
        vec![write(one, 4, 4), write(one, 0, 4), write(one, 2, 3), Request::Flush(one)],
        vec![read(one, 0, 6), read(one, 6, 6), write(one, 3, 4), read(other, 0, 3)],
        vec![write(one, 0, 6), read(one, 0, 6), write(one, 5, 2)],
    ];
    lists.iter().flat_map(|list| [small(1, list), small(2, list)]).collect()
}

#[test]
fn every_layer_is_indistinguishable_from_none_in_any_order() {
    for row in ROWS {
        explore(&row.build, 0..3000).unwrap_or_else(|broken| panic!("{}: {broken}", row.name));
    }
}

#[test]
fn a_layer_that_invites_invites_everyone() {
    let mut count = 0;
    for row in ROWS.iter().filter(|row| row.invites) {
        for seed in 0..3000 {
            let scenario = scenario(seed);
            let cache = (row.build)(scenario.settings);
            let world = World::new(cache, scenario.clone(), Choice::chance(seed)).by_invitation();
            world.run().0.unwrap_or_else(|broken| panic!("{}: {broken}\n{scenario:?}", row.name));
            count += 1;
        }
    }
    assert!(count > 0, "no layer invites");
}

#[test]
fn every_layer_keeps_its_promises_in_all_orders_of_small_worlds() {
    for row in ROWS {
        for scenario in small_scenarios() {
            let most = if row.name == "cruel" { ORDERS_OF_CRUEL } else { u64::MAX };
            let count = exhaust(&row.build, &scenario, most);
            let count = count.unwrap_or_else(|broken| panic!("{}: {broken}", row.name));
            assert!(count > 10, "{}: only {count} orders of {scenario:?}", row.name);
        }
    }
}

/// A layer with one thing wrong.
struct Defective {
    inner: Box<dyn Cache>,
    defect: Defect,
    count: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Defect {
    /// Forgets every fifth write.
    LosesWrites,
    /// Delivers every fifth read twice.
    DeliversTwice,
    /// Delivers a read before the device has been asked.
    DeliversUnread,
    /// Takes packets beyond its memory.
    AdmitsBeyondMemory,
    /// Says a file is on the device as soon as it is asked.
    FlushesInWords,
    /// Never says that a refused packet may come again.
    NeverRetries,
    /// Writes every fifth transfer elsewhere.
    WritesElsewhere,
    /// Never asks to be woken.
    Oversleeps,
}

const DEFECTS: [Defect; 8] = [
    Defect::LosesWrites,
    Defect::DeliversTwice,
    Defect::DeliversUnread,
    Defect::AdmitsBeyondMemory,
    Defect::FlushesInWords,
    Defect::NeverRetries,
    Defect::WritesElsewhere,
    Defect::Oversleeps,
];

impl Defective {
    fn is_fifth(&mut self) -> bool {
        self.count += 1;
        self.count.is_multiple_of(5)
    }

    fn spoil(&mut self, action: Action, out: &mut Vec<Action>) {
        match (self.defect, action) {
            (Defect::DeliversTwice, Action::Deliver { .. }) if self.is_fifth() => {
                out.extend([action, action]);
            }
            (Defect::NeverRetries, Action::RetryRefused) => {}
            (Defect::Oversleeps, Action::WakeAt(_)) => {}
            (Defect::FlushesInWords, Action::Flushed { .. }) => {}
            (Defect::AdmitsBeyondMemory, Action::Refuse) => out.push(Action::Admit),
            (
                Defect::WritesElsewhere,
                Action::Transfer { operation, direction, file, mut extent },
            ) => {
                extent.offset += u64::from(self.is_fifth());
                out.push(Action::Transfer { operation, direction, file, extent });
            }
            _ => out.push(action),
        }
    }
}

impl Machine for Defective {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, now: Nanos, event: Event, out: &mut Vec<Action>) {
        match (self.defect, event) {
            (Defect::LosesWrites, Event::WriteArrived { .. }) if self.is_fifth() => return,
            (Defect::DeliversUnread, Event::ReadArrived { tag, extent, .. }) if self.is_fifth() => {
                return out.push(Action::Deliver { tag, extent });
            }
            (Defect::FlushesInWords, Event::FlushArrived { flush, .. }) => {
                out.push(Action::Flushed { flush });
            }
            _ => {}
        }
        let mut actions = Vec::new();
        self.inner.step(now, event, &mut actions);
        actions.into_iter().for_each(|action| self.spoil(action, out));
    }
}

impl Cache for Defective {
    fn held_bytes(&self) -> u64 {
        self.inner.held_bytes()
    }

    fn queued_count(&self) -> usize {
        self.inner.queued_count()
    }
}

fn spoiled(row: &'static Row, defect: Defect) -> impl Fn(Settings) -> Box<dyn Cache> {
    move |settings| Box::new(Defective { inner: (row.build)(settings), defect, count: 0 })
}

/// The suite is worth as much as the defects it finds.
#[test]
fn the_suite_finds_every_defect_in_every_layer_that_can_have_it() {
    for row in ROWS {
        for defect in DEFECTS {
            let build = spoiled(row, defect);
            let outcome = std::panic::catch_unwind(|| explore(&build, 0..3000));
            let found = !matches!(outcome, Ok(Ok(())));
            assert!(found, "{}: {defect:?} was not noticed", row.name);
        }
    }
}
