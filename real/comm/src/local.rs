//! Ranks on this machine without MPI: threads, or forked processes, around one shared board.
//!
//! The board is a few atomic words that all ranks see: a barrier (count and generation), a flag
//! for a lost rank, and a slot per rank through which gathered bytes pass in chunks. A waiter
//! yields for a short while, so that a barrier among running ranks costs about a microsecond,
//! then sleeps on the generation word and looks ten times a second whether someone died.

use crate::{Comm, CommError};
use iolab_host::fork::{Child, Life, fork, has_ended, leave, wait_for_loss};
use iolab_host::interruption::leave_interrupts_to_others;
use iolab_host::shared::{SharedWords, change, give_way, wait_for_change};
use iolab_vocab::Rank;
use std::cell::RefCell;
use std::io::PipeReader;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

/// What a local rank is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalKind {
    /// A thread of this process.
    Threads,
    /// A process forked from this one.
    Processes,
}

const ARRIVED: usize = 0;
const GENERATION: usize = 1;
/// 0, or 1 + the rank that was lost, with how it ended in the upper half.
const LOST: usize = 2;
/// 1 + the generation in which that was.
const LOST_IN: usize = 3;
const SLOTS: usize = 4;
/// Words of data in the slot of a rank, after the word that holds the length.
const SLOT_WORDS: usize = 1024;
const SPIN: Duration = Duration::from_micros(500);
const LOOK: Duration = Duration::from_millis(100);

struct Board {
    words: SharedWords,
    size: u32,
}

/// One local rank.
struct LocalRank<'a> {
    board: &'a Board,
    rank: Rank,
    /// Rank 0 of forked ranks watches the others.
    children: RefCell<Vec<(Rank, Child)>>,
    kind: LocalKind,
}

impl Board {
    fn new(size: u32) -> Result<Board, CommError> {
        let words = SharedWords::new(SLOTS + size as usize * (SLOT_WORDS + 1));
        words.map(|words| Board { words, size }).map_err(|e| CommError::Start(e.to_string()))
    }

    fn slot(&self, rank: u32) -> &[std::sync::atomic::AtomicU64] {
        let start = SLOTS + rank as usize * (SLOT_WORDS + 1);
        &self.words[start..start + SLOT_WORDS + 1]
    }

    /// Puts the total length and one chunk of it into a slot.
    fn say(&self, rank: u32, own: &[u8], from: usize) {
        let slot = self.slot(rank);
        slot[0].store(own.len() as u64, Relaxed);
        let rest = own.get(from..).unwrap_or(&[]);
        for (word, bytes) in slot[1..].iter().zip(rest.chunks(8)) {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_le_bytes(padded), Relaxed);
        }
    }

    /// Appends the chunk of a rank to what was heard of it; gives its total length.
    fn hear(&self, rank: u32, heard: &mut Vec<u8>) -> usize {
        let slot = self.slot(rank);
        let total = slot[0].load(Relaxed) as usize;
        for word in &slot[1..] {
            let missing = total - heard.len();
            if missing == 0 {
                break;
            }
            let bytes = word.load(Relaxed).to_le_bytes();
            heard.extend_from_slice(&bytes[..missing.min(8)]);
        }
        total
    }

    /// The first loss counts; those after it follow from it.
    fn declare_lost(&self, rank: Rank, end: Life) {
        let how = match end {
            Life::Running => 0,
            Life::Exited(code) => 0x1_0000 | u64::from(code as u8),
            Life::Killed(signal) => 0x2_0000 | u64::from(signal as u8),
        };
        let word = how << 32 | (u64::from(rank.0) + 1);
        let generation = &self.words[GENERATION];
        let now = generation.load(Acquire);
        let _ = self.words[LOST_IN].compare_exchange(0, now + 1, AcqRel, Acquire);
        let _ = self.words[LOST].compare_exchange(0, word, AcqRel, Acquire);
        change(generation, now + 1);
    }

    /// Whether a barrier of that generation was left because a rank was lost in it, and not because
    /// all had come: who has passed the last one may end.
    fn lost_in(&self, generation: u64) -> Result<(), CommError> {
        match self.words[LOST_IN].load(Acquire) {
            0 => Ok(()),
            word if word - 1 > generation => Ok(()),
            _ => self.lost(),
        }
    }

    fn lost(&self) -> Result<(), CommError> {
        match self.words[LOST].load(Acquire) {
            0 => Ok(()),
            word => {
                let value = (word >> 32 & 0xff) as i32;
                let end = match word >> 48 {
                    1 => Life::Exited(value),
                    2 => Life::Killed(value),
                    _ => Life::Running,
                };
                Err(CommError::RankLost { rank: Rank(word as u32 - 1), end: words_of(end) })
            }
        }
    }
}

impl LocalRank<'_> {
    fn wait(&self, generation: u64) -> Result<(), CommError> {
        let word = &self.board.words[GENERATION];
        let start = Instant::now();
        while word.load(Acquire) == generation {
            if start.elapsed() < SPIN {
                give_way();
                continue;
            }
            wait_for_change(word, generation, LOOK);
            let lost = self.look_after_children();
            // A rank that passed this barrier may have ended properly meanwhile.
            if word.load(Acquire) == generation {
                lost?;
            }
        }
        self.board.lost_in(generation)
    }

    fn look_after_children(&self) -> Result<(), CommError> {
        for &(rank, child) in self.children.borrow().iter() {
            // The watching thread looks as well, so the end is not taken note of.
            match child.peek() {
                None | Some(Life::Running) => {}
                Some(end) => {
                    self.board.declare_lost(rank, end);
                    return self.board.lost();
                }
            }
        }
        Ok(())
    }
}

impl Comm for LocalRank<'_> {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.board.size
    }

    fn barrier(&self) -> Result<(), CommError> {
        self.board.lost()?;
        let generation = self.board.words[GENERATION].load(Acquire);
        let arrived = self.board.words[ARRIVED].fetch_add(1, AcqRel) + 1;
        if arrived < u64::from(self.board.size) {
            return self.wait(generation);
        }
        self.board.words[ARRIVED].store(0, Release);
        change(&self.board.words[GENERATION], generation + 1);
        Ok(())
    }

    fn gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
        let mut heard = vec![Vec::new(); self.board.size as usize];
        let mut from = 0;
        loop {
            self.board.say(self.rank.0, own, from);
            self.barrier()?;
            let totals = (0..self.board.size).zip(&mut heard);
            let longest = totals.map(|(rank, heard)| self.board.hear(rank, heard)).max();
            self.barrier()?;
            from += SLOT_WORDS * 8;
            if from >= longest.unwrap_or(0) {
                return Ok(heard);
            }
        }
    }

    fn kind(&self) -> &str {
        match self.kind {
            LocalKind::Threads => "threads",
            LocalKind::Processes => "processes",
        }
    }
}

/// Runs `work` as `size` local ranks and gives back what rank 0 returned. The caller is rank 0.
/// Of the other ranks only the success counts: `work` says so by what `succeeded` makes of it.
///
/// # Errors
/// When ranks cannot be started, or one is lost at the end.
pub fn run_local<T: Send>(
    kind: LocalKind,
    size: u32,
    work: impl Fn(&dyn Comm) -> T + Sync,
) -> Result<T, CommError> {
    run_local_or(kind, size, work, &|_| {})
}

/// The same, and `lost` is called, in a thread of its own, when a forked rank was lost and rank 0
/// has not ended its work a second later: it may be busy for hours.
///
/// # Errors
/// As of [`run_local`].
pub fn run_local_or<T: Send>(
    kind: LocalKind,
    size: u32,
    work: impl Fn(&dyn Comm) -> T + Sync,
    lost: &(dyn Fn(CommError) + Sync),
) -> Result<T, CommError> {
    let board = Board::new(size)?;
    match kind {
        LocalKind::Threads => Ok(run_threads(&board, &work)),
        LocalKind::Processes => run_processes(&board, &work, lost),
    }
}

fn rank_of(board: &Board, rank: u32, kind: LocalKind) -> LocalRank<'_> {
    LocalRank { board, rank: Rank(rank), children: RefCell::default(), kind }
}

fn run_threads<T: Send>(board: &Board, work: &(impl Fn(&dyn Comm) -> T + Sync)) -> T {
    std::thread::scope(|scope| {
        for rank in 1..board.size {
            scope.spawn(move || {
                let _partner = Partner { board, rank: Rank(rank) };
                work(&rank_of(board, rank, LocalKind::Threads));
            });
        }
        work(&rank_of(board, 0, LocalKind::Threads))
    })
}

/// The others do not wait for a thread that has panicked.
struct Partner<'a> {
    board: &'a Board,
    rank: Rank,
}

impl Drop for Partner<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.board.declare_lost(self.rank, Life::Running);
        }
    }
}

fn run_processes<T>(
    board: &Board,
    work: &impl Fn(&dyn Comm) -> T,
    lost: &(dyn Fn(CommError) + Sync),
) -> Result<T, CommError> {
    let first = rank_of(board, 0, LocalKind::Processes);
    for rank in 1..board.size {
        match fork() {
            Ok(Some(child)) => first.children.borrow_mut().push((Rank(rank), child)),
            Ok(None) => {
                leave_interrupts_to_others();
                work(&rank_of(board, rank, LocalKind::Processes));
                leave(0)
            }
            Err(error) => {
                end_all(&first.children.borrow());
                return Err(CommError::Start(error.to_string()));
            }
        }
    }
    let children = first.children.borrow().clone();
    let (ear, line) = std::io::pipe().map_err(|error| CommError::Start(error.to_string()))?;
    let result = std::thread::scope(|scope| {
        if !children.is_empty() {
            scope.spawn(|| watch(board, &children, ear, lost));
        }
        let result = work(&first);
        drop(line);
        result
    });
    end_all(&children);
    Ok(result)
}

/// Ends the others' waiting when a rank is lost, and calls `lost` if that is not enough.
fn watch(
    board: &Board,
    children: &[(Rank, Child)],
    ear: PipeReader,
    lost: &(dyn Fn(CommError) + Sync),
) {
    let processes: Vec<Child> = children.iter().map(|&(_, child)| child).collect();
    let Some((index, end)) = wait_for_loss(&processes, ear.as_fd()) else { return };
    let rank = children[index].0;
    board.declare_lost(rank, end);
    // With the patience of a second, the ear alone.
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(1) {
        if has_ended(ear.as_fd(), LOOK) {
            return;
        }
    }
    lost(CommError::RankLost { rank, end: words_of(end) });
}

fn words_of(end: Life) -> String {
    match end {
        Life::Killed(signal) => format!("was killed by signal {signal}"),
        Life::Exited(code) => format!("ended early with exit code {code}"),
        // A thread.
        Life::Running => "ended early".to_owned(),
    }
}

/// Gives the ranks a moment to end by themselves, then ends them.
fn end_all(children: &[(Rank, Child)]) {
    let deadline = Instant::now() + Duration::from_secs(1);
    for &(_, child) in children {
        while child.look() == Life::Running {
            if Instant::now() > deadline {
                child.kill();
                child.wait();
                break;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{gather_numbers, largest};

    #[test]
    fn a_rank_that_ends_after_the_last_barrier_is_not_lost_in_it() {
        let board = Board::new(2).unwrap();
        let first = rank_of(&board, 0, LocalKind::Processes);
        // All have come to the barrier; the other one ends before this one has looked.
        board.words[GENERATION].store(1, Release);
        board.declare_lost(Rank(1), Life::Exited(0));
        assert_eq!(first.wait(0), Ok(()));
        // In the next one it is missing.
        assert!(first.wait(1).is_err() && first.barrier().is_err());
    }

    #[test]
    fn every_rank_hears_what_every_rank_said_however_long() {
        for size in [1, 2, 5] {
            let say = |rank: u32| vec![rank as u8 + 1; rank as usize * 9001];
            let heard = run_local(LocalKind::Threads, size, |comm| {
                let first = comm.gather(&say(comm.rank().0));
                let numbers = gather_numbers(comm, u64::from(comm.rank().0) * 10);
                assert_eq!(largest(comm, u64::from(comm.rank().0)), Ok(u64::from(size) - 1));
                (first, numbers)
            });
            let (texts, numbers) = heard.expect("threads start");
            assert_eq!(texts, Ok((0..size).map(say).collect::<Vec<_>>()));
            assert_eq!(numbers, Ok((0..u64::from(size)).map(|n| n * 10).collect::<Vec<_>>()));
        }
    }

    #[test]
    fn no_rank_passes_a_barrier_before_the_last_one_has_come() {
        let come = std::sync::atomic::AtomicU32::new(0);
        let result = run_local(LocalKind::Threads, 4, |comm| {
            for round in 1..=200 {
                come.fetch_add(1, AcqRel);
                comm.barrier()?;
                assert!(come.load(Acquire) >= round * 4);
                comm.barrier()?;
            }
            Ok::<_, CommError>(())
        });
        assert_eq!(result, Ok(Ok(())));
    }
}
