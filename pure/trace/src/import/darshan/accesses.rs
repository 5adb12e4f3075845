//! Single accesses, as DXT keeps them: offset, length and times of each, without opens and closes.

use super::DarshanError;
use super::log::{Log, damaged};
use super::module::Module;
use super::stream::Fields;
use crate::import::shared::TIME_END_NS;
use iolab_vocab::{Direction, Nanos};

/// As many accesses are taken at most: what a few bytes unpack to must not fill the memory.
const MOST_ACCESSES: usize = 1 << 26;

/// Number of the file, rank, shared, host, writes, reads.
const HEAD: usize = 104;

/// One access.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Access {
    /// Number of its file.
    pub(super) file: u64,
    /// Who made it.
    pub(super) rank: u32,
    /// Number of the thread, 0 where the version has none.
    pub(super) thread: u64,
    /// Which way bytes went.
    pub(super) direction: Direction,
    /// Where; negative if it is not known.
    pub(super) offset: i64,
    /// How much.
    pub(super) length: i64,
    /// When it began, since the rank's own start.
    pub(super) start: Nanos,
    /// When it ended.
    pub(super) end: Nanos,
}

/// All accesses of a module.
#[derive(Debug, Default)]
pub(super) struct Accesses {
    /// In the order of the log.
    pub(super) list: Vec<Access>,
    /// Hosts by rank, as far as told.
    pub(super) hosts: Vec<(u32, String)>,
    /// Those that no clock shows, or of a negative length.
    pub(super) impossible: u64,
    /// Those that end before they begin: they end where they begin.
    pub(super) backwards: u64,
}

/// Reads a module of DXT; nothing if the log has none.
pub(super) fn read(log: &Log<'_>, module: Module) -> Result<Accesses, DarshanError> {
    let mut accesses = Accesses::default();
    let Some(version) = log.version(module) else { return Ok(accesses) };
    let with_thread = match module {
        Module::DxtPosix => 2,
        _ => 3,
    };
    if !(1..=with_thread).contains(&version) {
        return Err(DarshanError::Format(format!("{} {version}", module.name())));
    }
    let bytes = if version == with_thread { 40 } else { 32 };
    // Version 1 of DXT_MPIIO writes 0 for every offset.
    let has_offsets = module == Module::DxtPosix || version > 1;
    let mut stream = log.records(module)?;
    while let Some(head) = stream.take(HEAD)? {
        let file = head.u64(0);
        let rank = head.i64(8);
        let host = head.text(24, 88);
        let (writes, reads) = (head.i64(88), head.i64(96));
        let rank = u32::try_from(rank).ok().filter(|rank| u64::from(*rank) < log.job.processes);
        let Some(rank) = rank else {
            let (rank, processes) = (head.i64(8), log.job.processes);
            return Err(damaged(format!("an access of rank {rank}, of {processes} processes")));
        };
        if accesses.hosts.last().is_none_or(|last| last.0 != rank) {
            accesses.hosts.push((rank, host));
        }
        for (direction, count) in [(Direction::Write, writes), (Direction::Read, reads)] {
            let count = u64::try_from(count)
                .map_err(|_| damaged(format!("a file with {count} accesses")))?;
            for _ in 0..count {
                let segment = stream.need(bytes)?;
                accesses.take(&segment, bytes, has_offsets, (file, rank, direction))?;
            }
        }
    }
    Ok(accesses)
}

impl Accesses {
    fn take(
        &mut self,
        segment: &Fields<'_>,
        bytes: usize,
        has_offsets: bool,
        (file, rank, direction): (u64, u32, Direction),
    ) -> Result<(), DarshanError> {
        let offset = if has_offsets { segment.i64(0).max(-1) } else { -1 };
        let length = segment.i64(8);
        let times = nanos(segment.f64(16)).zip(nanos(segment.f64(24)));
        let Some((start, end)) = times.filter(|_| length >= 0) else {
            self.impossible += 1;
            return Ok(());
        };
        if self.list.len() == MOST_ACCESSES {
            return Err(DarshanError::TooLarge(MOST_ACCESSES));
        }
        self.backwards += u64::from(end < start);
        let thread = if bytes == 40 { segment.u64(32) } else { 0 };
        let end = end.max(start);
        self.list.push(Access { file, rank, thread, direction, offset, length, start, end });
        Ok(())
    }
}

/// Seconds as nanoseconds; none for what no clock shows. No access begins at 0, so that there is a moment
/// before the first one, in which its file is opened.
fn nanos(seconds: f64) -> Option<Nanos> {
    let nanos = seconds * 1e9;
    (nanos >= 0.0 && nanos < TIME_END_NS as f64).then(|| Nanos((nanos.round() as u64).max(1)))
}
