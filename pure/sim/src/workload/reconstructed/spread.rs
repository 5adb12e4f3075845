//! Who makes calls of a size, and where in the file they go.

use super::BEHIND;
use super::sizes::Group;
use iolab_vocab::Direction;

/// Beyond so many ranks a list of them is not for readers.
const MOST_LISTED: u32 = 64;

/// How the accesses of a rank lie in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shape {
    /// Each behind the one before, ranks side by side.
    Contiguous,
    /// Ascending: ranks take turns; of one rank, with gaps.
    Interleaved,
    /// Every block once, in a random order.
    Random,
    /// All ranks the same bytes.
    Same,
}

/// Some of the ranks, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ranks {
    list: Vec<u32>,
    all: u32,
    /// Least distance of two of them.
    apart: u32,
    is_spread: bool,
}

/// One command that moves data, without verb and file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Command {
    /// What says which bytes.
    bytes: String,
    /// How often, and how far on each time.
    repeat: Option<(u64, u64)>,
    only: String,
}

/// A file, as far as it is used up.
pub(super) struct Place {
    ranks: Ranks,
    is_alone: bool,
    is_per_rank: bool,
    rank_count: u32,
    /// Where the next group of reads, of writes goes.
    next: [u64; 2],
}

impl Ranks {
    /// So many ranks of a file that all have open, spread evenly.
    pub(super) fn spread(count: u32, all: u32) -> Ranks {
        let count = count.clamp(1, all);
        let list: Vec<u32> = match count <= MOST_LISTED {
            true => (0..count)
                .map(|at| (u64::from(at) * u64::from(all) / u64::from(count)) as u32)
                .collect(),
            // As a range it is one word.
            false => (0..count).collect(),
        };
        let apart = if count <= MOST_LISTED { all / count } else { 1 };
        Ranks { list, all, apart, is_spread: true }
    }

    /// These ranks.
    pub(super) fn of(mut list: Vec<u32>, all: u32) -> Ranks {
        list.sort_unstable();
        list.dedup();
        Ranks { list, all, apart: 1, is_spread: false }
    }

    pub(super) fn count(&self) -> u64 {
        self.list.len() as u64
    }

    /// Whether others have the file open, too.
    pub(super) fn is_some_of_a_shared_file(&self) -> bool {
        self.is_spread
    }

    /// Which ranks, as a key behind others; nothing for all.
    pub(super) fn only(&self) -> String {
        only(&self.list, self.all)
    }

    /// The same of the first few of them.
    fn only_first(&self, count: u64) -> String {
        only(&self.list[..(count as usize).min(self.list.len())], self.all)
    }
}

fn only(list: &[u32], all: u32) -> String {
    if list.len() == all as usize {
        return String::new();
    }
    let is_range = list.windows(2).all(|two| two[1] == two[0] + 1);
    match (list.first(), list.last()) {
        (Some(first), Some(last)) if is_range => format!(", only = \"{first}-{last}\""),
        _ => {
            let ranks: Vec<String> = list.iter().map(u32::to_string).collect();
            format!(", only = [{}]", ranks.join(", "))
        }
    }
}

impl Place {
    pub(super) fn new(ranks: Ranks, is_alone: bool, is_per_rank: bool, rank_count: u32) -> Place {
        Place { ranks, is_alone, is_per_rank, rank_count, next: [0; 2] }
    }

    /// How long the file must be for the reads so far.
    pub(super) fn read_end(&self) -> u64 {
        self.next[0].min(BEHIND)
    }

    /// The commands that make these calls. Those of a shared record are of all its ranks together, others of
    /// each rank.
    pub(super) fn place(
        &mut self,
        direction: Direction,
        shape: Shape,
        group: Group,
    ) -> Vec<Command> {
        let among = if self.ranks.is_spread { self.ranks.count() } else { 1 };
        let (each, more) = (group.calls / among, group.calls % among);
        let mut commands = Vec::new();
        if each > 0 {
            let only = self.ranks.only();
            commands.push(self.command(direction, shape, Group { calls: each, ..group }, only));
        }
        if more > 0 {
            let only = self.ranks.only_first(more);
            commands.push(self.command(direction, shape, Group { calls: 1, ..group }, only));
        }
        commands
    }

    fn command(
        &mut self,
        direction: Direction,
        shape: Shape,
        Group { bytes, calls }: Group,
        only: String,
    ) -> Command {
        let next = &mut self.next[usize::from(direction == Direction::Write)];
        if bytes == 0 {
            // A read behind the end brings nothing.
            return Command {
                bytes: format!("offset = {BEHIND}, bytes = 1"),
                repeat: Some((calls, 0)),
                only,
            };
        }
        let ranks = u64::from(self.rank_count);
        // Wrapped around in a file so long that offsets would leave it.
        let wide = u128::from(bytes) * u128::from(calls) * u128::from(ranks) * 2;
        let fits = wide + u128::from(*next) < u128::from(BEHIND);
        let offset = if fits { *next } else { 0 };
        let fixed = format!("offset = {offset}, bytes = {bytes}");
        let alone = self.is_alone || shape == Shape::Same || !fits;
        let rank_step = |stretch: u64| stretch.div_ceil(u64::from(self.ranks.apart.max(1)));
        let (bytes_text, repeat, used) = match (shape, alone) {
            (Shape::Random, _) if fits && calls > 1 => {
                let over = if self.is_per_rank { 1 } else { ranks };
                let pattern = format!("random-blocks:block={bytes},count={calls}");
                (format!("offset = {offset}, pattern = \"{pattern}\""), None, bytes * calls * over)
            }
            (Shape::Interleaved, true) if fits => {
                (fixed, Some((calls, 2 * bytes)), 2 * bytes * calls)
            }
            (Shape::Interleaved, false) => {
                let step = rank_step(bytes);
                (
                    format!("{fixed}, rank_step = {step}"),
                    Some((calls, step * ranks)),
                    step * ranks * calls,
                )
            }
            (_, true) => (format!("{fixed}, calls = {calls}"), None, bytes.saturating_mul(calls)),
            (_, false) => {
                let step = rank_step(bytes * calls);
                (format!("{fixed}, calls = {calls}, rank_step = {step}"), None, step * ranks)
            }
        };
        // Reads that ranks of a record do the same are in the same place.
        *next = (*next).max(offset.saturating_add(used));
        Command { bytes: bytes_text, repeat, only }
    }
}

impl Command {
    /// As a workload has it.
    pub(super) fn text(&self, verb: &str, file: &str) -> String {
        let Command { bytes, repeat, only } = self;
        match repeat {
            None => format!("{{ {verb} = {file}, {bytes}{only} }}"),
            Some((1, _)) => format!("{{ {verb} = {file}, {bytes}{only} }}"),
            Some((times, step)) => format!(
                "{{ repeat = {times}, commands = [ {{ {verb} = {file}, {bytes}, step = {step}{only} }} ] }}"
            ),
        }
    }
}
