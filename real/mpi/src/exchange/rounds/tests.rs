//! Every algorithm of the catalogue on ranks that are threads: what it decides is what it decides in the
//! simulator, which gives it lists of pieces, and the bytes are where they belong.

use super::*;
use iolab_pattern::Nest;
use iolab_policy::collective::Collective;
use iolab_policy::collective::catalog::{Build, Row};
use iolab_policy::collective::{CollectiveKind, FileCall, checked_file};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

/// A message: from whom, its tag, its bytes.
type Letter = (u32, u32, Vec<u8>);

/// A rank's letter box.
struct Post {
    rank: u32,
    boxes: Vec<Sender<Letter>>,
    came: Receiver<Letter>,
    early: VecDeque<Letter>,
    awaited: Vec<(u32, u32, *mut u8, usize)>,
}

impl Wire for Post {
    fn send(&mut self, to: u32, tag: u32, what: Source) -> Result<(), Trouble> {
        // SAFETY: the bytes are there until the call ends.
        let letter = (self.rank, tag, unsafe { what.bytes() }.to_vec());
        self.boxes[to as usize].send(letter).unwrap();
        Ok(())
    }

    unsafe fn receive(
        &mut self,
        from: u32,
        tag: u32,
        to: *mut u8,
        bytes: usize,
    ) -> Result<(), Trouble> {
        self.awaited.push((from, tag, to, bytes));
        Ok(())
    }

    fn receive_all(&mut self) -> Result<(), Trouble> {
        for (from, tag, to, bytes) in std::mem::take(&mut self.awaited) {
            let is_it = |letter: &Letter| (letter.0, letter.1) == (from, tag);
            let letter = match self.early.iter().position(is_it) {
                Some(at) => self.early.remove(at).unwrap(),
                None => loop {
                    let letter = self.came.recv().unwrap();
                    if is_it(&letter) {
                        break letter;
                    }
                    self.early.push_back(letter);
                },
            };
            assert_eq!(letter.2.len(), bytes, "from {from} to {}", self.rank);
            // SAFETY: the promise of `receive`.
            unsafe { to.copy_from(letter.2.as_ptr(), bytes) };
        }
        Ok(())
    }

    fn send_all_but(&mut self, _bytes: usize) -> Result<Vec<Vec<u8>>, Trouble> {
        Ok(Vec::new())
    }
}

/// A file in memory. What nobody may write is `HOLE`.
struct Memories<'a>(&'a Mutex<Vec<u8>>);

const HOLE: u8 = 0xee;

impl Storage for Memories<'_> {
    fn read(&mut self, offset: u64, to: &mut [u8]) -> Result<usize, Trouble> {
        let file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let from = file.get(offset as usize..).unwrap_or_default();
        let bytes = from.len().min(to.len());
        to[..bytes].copy_from_slice(&from[..bytes]);
        Ok(bytes)
    }

    fn write(&mut self, offset: u64, from: &[u8]) -> Result<(), Trouble> {
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        file[offset as usize..][..from.len()].copy_from_slice(from);
        Ok(())
    }
}

/// Memory of a call, in a row or not.
struct Room {
    bytes: Vec<u8>,
    is_row: bool,
}

impl Memory for Room {
    fn row(&self, at: u64, bytes: usize) -> Option<&[u8]> {
        self.is_row.then(|| &self.bytes[at as usize..][..bytes])
    }

    fn gather(&self, at: u64, to: &mut [u8]) {
        to.copy_from_slice(&self.bytes[at as usize..][..to.len()]);
    }

    fn scatter(&mut self, at: u64, from: &[u8]) {
        self.bytes[at as usize..][..from.len()].copy_from_slice(from);
    }

    fn zero(&mut self, at: u64, bytes: u64) {
        self.bytes[at as usize..][..bytes as usize].fill(0);
    }
}

impl Laid for Room {
    fn place(&self, at: u64, bytes: usize) -> Option<*mut u8> {
        self.row(at, bytes).map(|row| row.as_ptr().cast_mut())
    }
}

/// A machine whose decisions are written down.
struct Noted<'a> {
    machine: Box<dyn Collective>,
    decisions: &'a Mutex<Vec<Action>>,
}

impl Machine for Noted<'_> {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, now: Nanos, event: Event, out: &mut Vec<Action>) {
        let from = out.len();
        self.machine.step(now, event, out);
        self.decisions.lock().unwrap().extend_from_slice(&out[from..]);
    }
}

/// A rank's interval of its view.
type Interval = (Arc<Nest>, u64, u64);

fn stamp(rank: usize, at: u64) -> u8 {
    (at * 7 + rank as u64 * 31 + at / 251) as u8 & 0x7f
}

fn build(row: &Row, call: &FileCall) -> Box<dyn Collective> {
    let Build::File(build) = row.build else { unreachable!("a row of files") };
    checked_file(call, build(call.clone()))
}

/// What the simulator would have decided: its machines are given lists.
fn simulated(row: &Row, all: &[Interval], direction: Direction, buffer: u64) -> Vec<Vec<Action>> {
    let list = |(view, from, to): &Interval| Wanted::new(view.cut(*from, *to).runs().collect());
    let access = Arc::new(Access { direction, wanted: all.iter().map(list).collect() });
    let of = |rank| {
        let call = FileCall { access: access.clone(), rank, buffer_bytes: buffer, costs: None };
        let (mut machine, mut decisions, mut event) = (build(row, &call), Vec::new(), Event::Began);
        while decisions.last() != Some(&Action::Finish) {
            machine.step(Nanos::ZERO, event, &mut decisions);
            event = Event::RoundCompleted;
        }
        decisions
    };
    (0..all.len() as u32).map(of).collect()
}

/// Carries out a call on threads; what each rank decided, and its memory.
fn live(
    row: &Row,
    all: &[Interval],
    direction: Direction,
    (buffer_bytes, is_row): (u64, bool),
    file: &Mutex<Vec<u8>>,
) -> Vec<(Vec<Action>, Vec<u8>)> {
    let part = |(view, from, to): &Interval| Wanted::of_view(view.clone(), *from, *to).unwrap();
    let access = Arc::new(Access { direction, wanted: all.iter().map(part).collect() });
    let (boxes, came): (Vec<_>, Vec<_>) = all.iter().map(|_| channel()).unzip();
    std::thread::scope(|scope| {
        let ranks = came.into_iter().enumerate().map(|(rank, came)| {
            let (access, boxes, (_, from, to)) = (access.clone(), boxes.clone(), all[rank].clone());
            scope.spawn(move || {
                let call = FileCall { access, rank: rank as u32, buffer_bytes, costs: None };
                let bytes = match direction {
                    Direction::Write => (from..to).map(|at| stamp(rank, at)).collect(),
                    Direction::Read => vec![0; (to - from) as usize],
                };
                let mut memory = Room { bytes, is_row };
                let post = Post {
                    rank: rank as u32,
                    boxes,
                    came,
                    early: VecDeque::new(),
                    awaited: Vec::new(),
                };
                let decisions = Mutex::new(Vec::new());
                let whose = (call.access.clone(), rank as u32, from);
                let storage = Memories(file);
                let mut rounds = Rounds::of(whose, &mut memory, post, storage, Vec::new());
                let machine = build(row, &call);
                rounds.run(Noted { machine, decisions: &decisions }).unwrap();
                drop(rounds);
                (decisions.into_inner().unwrap(), memory.bytes)
            })
        });
        let ranks: Vec<_> = ranks.collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

/// Views of ranks that have pieces in turn, in a row, or here and there; some want nothing.
fn scenes() -> Vec<Vec<Interval>> {
    let of = |text: &str, from, to| -> Interval { (Arc::new(text.parse().unwrap()), from, to) };
    vec![
        vec![of("3 every 6 from 5", 1, 200), of("3 every 6 from 8", 0, 301)],
        vec![
            of("7 every 28", 0, 70),
            of("7 every 28 from 7", 3, 3),
            of("7 every 28 from 14", 0, 99),
        ],
        vec![
            of("1 every 1", 0, 500),
            of("1 every 1", 500, 777),
            of("1 every 1 from 100", 700, 900),
        ],
        vec![
            of("2 x3/5 every 40 from 1", 0, 60),
            of("4 every 40 from 20", 0, 50),
            of("1 every 1", 0, 0),
            of("11 every 40 from 25", 5, 77),
        ],
        vec![of("1 every 1", 10, 99)],
    ]
}

#[test]
fn every_algorithm_decides_as_in_the_simulator_and_moves_every_byte() {
    for row in CollectiveKind::File.rows() {
        for (number, all) in scenes().iter().enumerate() {
            for how in [(16, true), (64, false), (1 << 20, true)] {
                let scene = format!("{} of scene {number}, {how:?}", row.name);
                let file = Mutex::new(vec![HOLE; 4096]);
                let mut expected = vec![HOLE; 4096];
                for (rank, (view, from, to)) in all.iter().enumerate() {
                    for at in *from..*to {
                        expected[view.at(at).unwrap() as usize] = stamp(rank, at);
                    }
                }
                for direction in [Direction::Write, Direction::Read] {
                    let decided = simulated(row, all, direction, how.0);
                    for (rank, done) in
                        live(row, all, direction, how, &file).into_iter().enumerate()
                    {
                        assert_eq!(done.0, decided[rank], "{scene}: {direction:?} by {rank}");
                        let (view, from, to) = &all[rank];
                        let there = (*from..*to).map(|at| expected[view.at(at).unwrap() as usize]);
                        let is_right = direction == Direction::Write || there.eq(done.1);
                        assert!(is_right, "{scene}: what rank {rank} has read");
                    }
                    assert!(*file.lock().unwrap() == expected, "{scene}: the file");
                }
            }
        }
    }
}
