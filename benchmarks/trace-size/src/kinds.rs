//! The kinds of traces: from a perfectly regular loop to 64 ranks in three phases.

use clap::ValueEnum;
use iolab_trace::{Event, FileEntry, Function, Header, ProcessEntry};
use iolab_vocab::{FileId, Nanos, Random, Seed};
use std::error::Error;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Instant;

const RANKS: u64 = 64;
const KIB: u64 = 1 << 10;
/// The loop's file is overwritten from here on, so that a long loop needs no large disk.
const LOOP_FILE_BYTES: u64 = 64 << 20;

/// What the calls are.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Kind {
    /// 64-byte writes in a row, each exactly as long as the others.
    Regular,
    /// 64-byte writes in a row, really made on a scratch file, with the times they took.
    Loop,
    /// Writes of 64 B to 4 KiB at random places, really made, with the times they took.
    Scattered,
    /// `fwrite` of 64 bytes, every 64th with a `write` inside; random times.
    Stdio,
    /// 64 ranks: strided writes, then random reads, then appends; random times.
    Mixed,
}

/// Makes one call after the other.
pub(crate) struct Calls {
    kind: Kind,
    random: Random,
    clock: Instant,
    scratch: File,
    now: u64,
}

impl Kind {
    pub(crate) fn calls(self) -> Result<Calls, Box<dyn Error>> {
        let scratch = tempfile::tempfile()?;
        let random = Random::new(Seed(7));
        Ok(Calls { kind: self, random, clock: Instant::now(), scratch, now: 0 })
    }
}

/// A header that fits every kind.
pub(crate) fn header() -> Header {
    let rank = |rank: u64| ProcessEntry {
        name: format!("rank {rank}"),
        rank: rank as i32,
        ..Default::default()
    };
    let file = |path: &str| FileEntry { path: path.to_owned(), ..Default::default() };
    Header {
        command: vec!["trace-size".to_owned()],
        processes: (0..RANKS).map(rank).collect(),
        files: vec![file("/data/shared"), file("/data/input"), file("/data/log")],
        ..Default::default()
    }
}

impl Calls {
    /// Call number `index` of `count`.
    pub(crate) fn next(&mut self, index: u64, count: u64) -> Result<Event, Box<dyn Error>> {
        Ok(match self.kind {
            Kind::Regular => regular(index),
            Kind::Loop => self.really_write(index * 64 % LOOP_FILE_BYTES, 64)?,
            Kind::Scattered => {
                let length = 64 + self.random.below(4032);
                let offset = self.random.below(LOOP_FILE_BYTES);
                self.really_write(offset, length)?
            }
            Kind::Stdio => self.stdio(index),
            Kind::Mixed => self.mixed(index, count),
        })
    }

    fn really_write(&mut self, offset: u64, length: u64) -> Result<Event, Box<dyn Error>> {
        let buffer = [0_u8; 4096];
        let start = self.clock.elapsed().as_nanos() as u64;
        self.scratch.write_all_at(&buffer[..length as usize], offset)?;
        let end = self.clock.elapsed().as_nanos() as u64;
        Ok(transfer(Function::PWRITE, offset, length, (start, end)))
    }

    fn stdio(&mut self, index: u64) -> Event {
        let (block, within) = (index / 65, index % 65);
        let start = self.now + 20 + self.random.below(20);
        let took = if within < 63 { 25 } else { 900 + self.random.below(300) };
        let inside = within == 64;
        self.now = if within == 63 { start } else { start + took };
        let offset = block * 4 * KIB + within * 64;
        match inside {
            true => Event {
                parent: index as i64 - 1,
                ..transfer(Function::WRITE, block * 4 * KIB, 4 * KIB, (start, start + took - 60))
            },
            false => transfer(Function::FWRITE, offset, 64, (start, start + took)),
        }
    }

    fn mixed(&mut self, index: u64, count: u64) -> Event {
        let rank = index % RANKS;
        let step = index / RANKS;
        if rank == 0 {
            self.now += 2_000 + self.random.below(3_000);
        }
        let start = self.now + self.random.below(2_000);
        let times = (start, start + 400 + self.random.below(1_200));
        let event = match index * 3 / count {
            0 => transfer(Function::PWRITE, (step * RANKS + rank) * 50 * KIB, 50 * KIB, times),
            1 => Event {
                file: FileId(1),
                ..transfer(Function::PREAD, self.random.below(1 << 34), 4 * KIB, times)
            },
            _ => {
                let length = 100 + self.random.below(100);
                Event { file: FileId(2), ..transfer(Function::WRITE, step * 150, length, times) }
            }
        };
        Event { rank: rank as i32, process: rank as u32, ..event }
    }
}

fn regular(index: u64) -> Event {
    transfer(Function::PWRITE, index * 64, 64, (index * 450, index * 450 + 430))
}

fn transfer(function: Function, offset: u64, length: u64, times: (u64, u64)) -> Event {
    Event {
        rank: 0,
        file: FileId(0),
        fd: 3,
        offset: offset as i64,
        length: length as i64,
        start: Nanos(times.0),
        end: Nanos(times.1),
        result: length as i64,
        ..Event::of(function)
    }
}
