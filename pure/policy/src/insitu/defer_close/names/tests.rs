//! Every short sequence of calls on two names, with every one of its actions failing once or from then on, and a
//! crash after each: held against a plain map of files. They begin with nothing, or with containers that earlier
//! runs have left.

use super::*;
use std::collections::BTreeMap;

/// What a file holds: a number that no other write has.
type Bytes = u32;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Makes the file if it is not there, and writes to it.
    Write(u8),
    Close(u8),
    Sync,
    Unlink(u8),
    Rename(u8, u8),
    Exchange(u8, u8),
    Other(u8),
    MoveDirectory,
}

const STEPS: [Step; 13] = [
    Step::Write(0),
    Step::Write(1),
    Step::Close(0),
    Step::Close(1),
    Step::Sync,
    Step::Unlink(0),
    Step::Unlink(1),
    Step::Rename(0, 1),
    Step::Rename(1, 0),
    Step::Exchange(0, 1),
    Step::Other(0),
    Step::Other(1),
    Step::MoveDirectory,
];

/// Which of the actions that may fail does.
#[derive(Clone, Copy, Debug)]
enum Failing {
    Never,
    Once(usize),
    From(usize),
}

#[derive(Clone, Copy, Debug)]
enum Record {
    Contents(u8, Bytes),
    Renamed(u8, u8),
    Unlinked(u8),
    Moving(u8),
}

/// What there is before the first call: real files, then the newest container's, then older ones'.
#[derive(Clone, Copy, Debug)]
enum Left {
    Real(u8),
    Packed(u8, ContainerId),
    /// A real file was about to be made of it.
    Moving(u8, ContainerId),
}

type Before = &'static [Left];

const OLD: ContainerId = ContainerId(0);
const NEWER: ContainerId = ContainerId(1);

const BEFORE: [Before; 8] = [
    &[],
    &[Left::Packed(0, OLD)],
    &[Left::Packed(0, OLD), Left::Packed(1, OLD)],
    &[Left::Packed(0, NEWER), Left::Packed(1, OLD)],
    &[Left::Packed(0, NEWER), Left::Packed(0, OLD)],
    &[Left::Real(0), Left::Packed(0, NEWER), Left::Packed(1, NEWER), Left::Packed(0, OLD)],
    &[Left::Real(0), Left::Moving(0, OLD), Left::Packed(1, OLD)],
    &[Left::Moving(0, NEWER), Left::Moving(1, OLD)],
];

struct World {
    names: Names,
    bytes: BTreeMap<MemberId, Bytes>,
    real: BTreeMap<u8, Bytes>,
    containers: Vec<(ContainerId, Record)>,
    /// Files that others hid from the beginning.
    hidden: Vec<(u8, ContainerId)>,
    /// As a program sees it without any of this.
    plain: BTreeMap<u8, Bytes>,
    /// What a crash must not take: what was closed, synced, renamed or made real.
    promised: BTreeMap<u8, Bytes>,
    failing: Failing,
    performed: usize,
    next: Bytes,
}

fn place(name: u8) -> Place {
    Place { directory: 1, name: vec![name] }
}

fn name_of(place: &Place) -> u8 {
    place.name[0]
}

impl World {
    fn new(before: Before, failing: Failing) -> World {
        let mut world = World {
            names: Names::default(),
            bytes: BTreeMap::new(),
            real: BTreeMap::new(),
            containers: Vec::new(),
            hidden: Vec::new(),
            plain: BTreeMap::new(),
            promised: BTreeMap::new(),
            failing,
            performed: 0,
            next: 0,
        };
        before.iter().for_each(|&left| world.leave(left));
        world.promised = world.plain.clone();
        world
    }

    /// An earlier run has left a file; whatever has the name already hides it.
    fn leave(&mut self, left: Left) {
        self.next += 1;
        let bytes = self.next;
        match left {
            Left::Real(name) => {
                self.real.insert(name, bytes);
                self.plain.insert(name, bytes);
            }
            Left::Packed(name, container) | Left::Moving(name, container) => {
                self.containers.push((container, Record::Contents(name, bytes)));
                if matches!(left, Left::Moving(..)) {
                    self.containers.push((container, Record::Moving(name)));
                }
                if self.real.contains_key(&name) {
                    self.names.hide(place(name), container);
                    self.hidden.push((name, container));
                } else if let Some(id) = self.names.adopt(place(name), container) {
                    self.bytes.insert(id, bytes);
                    self.plain.insert(name, bytes);
                } else {
                    self.hidden.push((name, container));
                }
            }
        }
    }

    fn fails(&mut self) -> bool {
        let at = self.performed;
        self.performed += 1;
        match self.failing {
            Failing::Never => false,
            Failing::Once(it) => at == it,
            Failing::From(it) => at >= it,
        }
    }

    /// Carries a call out; true if it goes on to the real files.
    fn carry_out(&mut self, call: &Call, may_be: &[BTreeMap<u8, Bytes>]) -> Result<bool, i32> {
        for _ in 0..20 {
            let mut actions: std::collections::VecDeque<_> = self.names.plan(call).into();
            let mut is_anew = false;
            while let Some(action) = actions.pop_front() {
                match action {
                    Action::Answer(answer) => return answer.map(|()| false),
                    Action::Pass => return Ok(true),
                    _ => {}
                }
                let ending = match self.fails() {
                    true => Ending::Failed(28),
                    false => self.perform(&action),
                };
                let instead = self.names.ended(&action, ending)?;
                self.survives_a_crash(may_be);
                if !instead.is_empty() {
                    (actions, is_anew) = (instead.into(), true);
                } else if is_anew && actions.is_empty() {
                    break;
                }
            }
        }
        panic!("a call that does not end: {call:?}");
    }

    fn perform(&mut self, action: &Action) -> Ending {
        match action {
            Action::Append(append) => {
                let name = |id: &MemberId| name_of(self.names.place(*id).unwrap());
                let (id, record) = match append {
                    Append::Contents(id) => (id, Record::Contents(name(id), self.bytes[id])),
                    Append::Renamed(id, to) => (id, Record::Renamed(name(id), name_of(to))),
                    Append::Moving(id) => (id, Record::Moving(name(id))),
                    Append::Unlinked(place, container) | Append::Made(place, container) => {
                        self.containers.push((*container, Record::Unlinked(name_of(place))));
                        return Ending::Done;
                    }
                };
                self.containers.push((self.names.container(*id).unwrap(), record));
            }
            Action::Make(id) => {
                let name = name_of(self.names.place(*id).unwrap());
                assert!(!self.real.contains_key(&name), "a real file is overwritten");
                self.real.insert(name, self.bytes[id]);
            }
            Action::Drop(_) | Action::Sync | Action::Answer(_) | Action::Pass => {}
        }
        Ending::Done
    }

    /// What is there after a crash now, for the next run that reads through, and once all containers were unpacked.
    fn recovered(&self) -> BTreeMap<u8, Bytes> {
        let mut packed: BTreeMap<ContainerId, BTreeMap<u8, (Bytes, bool)>> = BTreeMap::new();
        for (container, record) in &self.containers {
            let packed = packed.entry(*container).or_default();
            match *record {
                Record::Contents(name, bytes) => {
                    packed.insert(name, (bytes, false));
                }
                Record::Renamed(from, to) => {
                    let moved = packed.remove(&from).expect("renamed what the container has not");
                    packed.insert(to, moved);
                }
                Record::Unlinked(name) => {
                    packed.remove(&name).expect("unlinked what the container has not");
                }
                Record::Moving(name) => {
                    packed.get_mut(&name).expect("moved what the container has not").1 = true;
                }
            }
        }
        let mut all = self.real.clone();
        for (container, files) in packed.into_iter().rev() {
            for (name, (bytes, is_moving)) in files {
                let may_differ = is_moving || self.hidden.contains(&(name, container));
                match self.real.get(&name) {
                    Some(real) if !may_differ => {
                        assert_eq!(*real, bytes, "unpacking would meet another file");
                    }
                    _ => {}
                }
                all.entry(name).or_insert(bytes);
            }
        }
        all
    }

    /// Each name leads to what was promised of it, to something written since, or to what may be there as well;
    /// what nobody promised may be missing.
    fn survives_a_crash(&self, may_be: &[BTreeMap<u8, Bytes>]) {
        let recovered = self.recovered();
        for name in 0..2 {
            let is = recovered.get(&name);
            let promised = self.promised.get(&name);
            let is_expected = match (is, self.plain.get(&name)) {
                (None, _) => promised.is_none(),
                (Some(is), Some(newest)) => promised.is_none_or(|it| it <= is) && is <= newest,
                (Some(_), None) => false,
            };
            let is_coming = may_be.iter().any(|state| state.get(&name) == is);
            assert!(is_expected || is_coming, "{name} is {is:?}: {:?}", self.containers);
        }
    }

    fn step(&mut self, step: Step) {
        let before = self.plain.clone();
        match step {
            Step::Write(name) => {
                self.next += 1;
                let member = self.names.find(&place(name));
                if let Some(bytes) = self.real.get_mut(&name) {
                    assert_eq!(member, None, "a name is both");
                    *bytes = self.next;
                    self.promised.insert(name, self.next);
                } else {
                    let id = member.unwrap_or_else(|| self.names.create(place(name)));
                    self.names.changed(id);
                    self.bytes.insert(id, self.next);
                }
                self.plain.insert(name, self.next);
            }
            Step::Close(name) => {
                let Some(id) = self.names.find(&place(name)) else { return };
                if self.carry_out(&Call::Close(id), &[]).is_ok() {
                    self.promised.insert(name, self.plain[&name]);
                }
            }
            Step::Sync => {
                if self.carry_out(&Call::Sync, &[]).is_ok() {
                    self.promised = before.clone();
                }
            }
            Step::Unlink(name) => {
                let mut after = before.clone();
                after.remove(&name);
                match self.carry_out(&Call::Unlink(place(name)), std::slice::from_ref(&after)) {
                    Ok(passes) => {
                        if passes {
                            self.real.remove(&name);
                        }
                        self.plain = after;
                        self.promised.remove(&name);
                    }
                    Err(error) => assert_eq!(error, 28),
                }
            }
            Step::Rename(from, to) => self.rename(from, to, false),
            Step::Exchange(from, to) => self.rename(from, to, true),
            Step::Other(name) => {
                let Some(id) = self.names.find(&place(name)) else { return };
                if self.carry_out(&Call::Other(id), &[]).is_ok() {
                    assert_eq!(self.real.get(&name), before.get(&name), "it is not real");
                    self.promised.insert(name, before[&name]);
                }
            }
            Step::MoveDirectory => {
                if self.carry_out(&Call::MoveDirectories(vec![1]), &[]).is_ok() {
                    assert_eq!(self.real, before, "not all is real");
                    self.promised = before.clone();
                }
            }
        }
        self.is_as_plain();
        self.survives_a_crash(&[]);
    }

    fn rename(&mut self, from: u8, to: u8, is_exchange: bool) {
        let Some(&moved) = self.plain.get(&from) else { return };
        if is_exchange && !self.plain.contains_key(&to) {
            return;
        }
        let mut after = self.plain.clone();
        let replaced = after.insert(to, moved);
        match replaced {
            Some(replaced) if is_exchange => after.insert(from, replaced),
            _ => after.remove(&from),
        };
        let is_real = self.real.contains_key(&to);
        let target = if is_real { Target::Real } else { Target::Free };
        let (from_place, to_place) = (place(from), place(to));
        let call = Call::Rename {
            from: from_place,
            to: to_place,
            target,
            keeps_target: false,
            is_special: is_exchange,
        };
        match self.carry_out(&call, std::slice::from_ref(&after)) {
            Ok(passes) => {
                if passes {
                    let bytes = self.real.remove(&from).expect("a real file is renamed");
                    let replaced = self.real.insert(to, bytes);
                    if is_exchange {
                        self.real.insert(from, replaced.expect("and exchanged"));
                    }
                }
                self.plain = after;
                self.promised.remove(&from);
                for name in [from, to] {
                    if let Some(&bytes) = self.plain.get(&name) {
                        self.promised.insert(name, bytes);
                    }
                }
            }
            Err(error) => assert_eq!(error, 28),
        }
    }

    /// What a program sees: members, and real files.
    fn is_as_plain(&self) {
        let mut seen = self.real.clone();
        for (name, id) in self.names.list(1) {
            assert!(seen.insert(name[0], self.bytes[&id]).is_none(), "a name is both");
        }
        assert_eq!(seen, self.plain);
    }
}

fn run(before: Before, steps: &[Step], failing: Failing) -> usize {
    let mut world = World::new(before, failing);
    steps.iter().for_each(|&step| world.step(step));
    world.performed
}

/// All sequences of so many calls; how many worlds these were.
fn explore(before: Before, length: u32) -> u64 {
    let mut worlds = 0;
    for number in 0..STEPS.len().pow(length) {
        let digits = (0..length).map(|at| number / STEPS.len().pow(at) % STEPS.len());
        let steps: Vec<Step> = digits.map(|digit| STEPS[digit]).collect();
        // Where there is nothing, the first call that does something makes a file.
        if before.is_empty() && !matches!(steps[0], Step::Write(0)) {
            continue;
        }
        let actions = run(before, &steps, Failing::Never);
        worlds += 1;
        for at in 0..actions {
            run(before, &steps, Failing::Once(at));
            run(before, &steps, Failing::From(at));
            worlds += 2;
        }
    }
    worlds
}

#[test]
fn no_sequence_of_calls_failures_and_a_crash_loses_or_confuses_a_file() {
    let worlds = explore(&[], 5);
    assert!(worlds > 100_000, "{worlds}");
}

#[test]
fn none_of_what_earlier_runs_have_left_is_lost_confused_or_brought_back() {
    for before in BEFORE {
        let worlds = explore(before, 3);
        assert!(before.is_empty() || worlds > 10_000, "{worlds}");
    }
    // Here every kind of hiding comes together.
    let worlds = explore(BEFORE[5], 4);
    assert!(worlds > 100_000, "{worlds}");
}

#[test]
fn the_newest_container_counts_and_what_it_hides_stays_until_the_name_goes() {
    let mut names = Names::default();
    let id = names.adopt(place(0), NEWER).unwrap();
    assert_eq!(names.adopt(place(0), OLD), None);
    assert_eq!((names.find(&place(0)), names.dirty()), (Some(id), Vec::new()));
    names.changed(id);
    let close = [Action::Append(Append::Contents(id)), Action::Answer(Ok(()))];
    assert_eq!(names.plan(&Call::Close(id)), close);
    let unlinked = |container| Action::Append(Append::Unlinked(place(0), container));
    let unlink = [unlinked(OLD), unlinked(NEWER), Action::Answer(Ok(()))];
    assert_eq!(names.plan(&Call::Unlink(place(0))), unlink);
}

#[test]
fn many_syncs_cost_one_when_nothing_was_written_since() {
    let mut names = Names::default();
    for name in 0..5 {
        names.create(place(name));
    }
    let plan = names.plan(&Call::Sync);
    assert_eq!(plan.len(), 5 + 2, "{plan:?}");
    for action in &plan[..6] {
        names.ended(action, Ending::Done).unwrap();
    }
    assert_eq!(names.plan(&Call::Sync), [Action::Sync, Action::Answer(Ok(()))]);
}

#[test]
fn a_directory_with_members_is_not_empty() {
    let mut names = Names::default();
    names.create(place(0));
    let answer = |directory| names.plan(&Call::RemoveDirectory(directory));
    assert_eq!(answer(1), [Action::Answer(Err(ENOTEMPTY))]);
    assert_eq!(answer(2), [Action::Pass]);
}
