//! Which cells there are, and what they came to.

use crate::failure::Failure;
use crate::parallel;
use iolab_sim::band::Band;
use iolab_sim::evaluation::clusterfile::{Class, MEMORY_OF_TODAY, Method, Work, fitted};
use iolab_sim::file_system::Costs;
use iolab_vocab::{Refusal, Seed};
use std::collections::BTreeMap;

pub(super) use iolab_sim::evaluation::clusterfile::{Buffers, Cell, Cooperation, Outcome, Ways};

/// How much is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    Whole,
    Quick,
}

/// What is measured of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    Write,
    Read,
    /// A second read of cold cache managers.
    Again,
    DiskWrite,
    WriteShuffle,
    ReadShuffle,
}

impl Measure {
    /// The operations of the evaluation.
    pub(super) const OPERATIONS: [Measure; 3] = [Measure::Write, Measure::Read, Measure::DiskWrite];

    pub(super) fn name(self) -> &'static str {
        match self {
            Measure::Write => "write to buffer cache",
            Measure::Read => "read from buffer cache",
            Measure::Again => "second read",
            Measure::DiskWrite => "write to disk",
            Measure::WriteShuffle => "exchange of a write",
            Measure::ReadShuffle => "exchange of a read",
        }
    }

    fn of(self, outcome: &Outcome) -> f64 {
        match self {
            Measure::Write => outcome.write_seconds,
            Measure::Read => outcome.read_seconds,
            Measure::Again => outcome.again_seconds,
            Measure::DiskWrite => outcome.disk_write_seconds(),
            Measure::WriteShuffle => outcome.write_shuffle_seconds,
            Measure::ReadShuffle => outcome.read_shuffle_seconds,
        }
    }
}

/// Both ways of collective I/O, ours first.
pub(super) const METHODS: [Method; 2] = [Method::Direct, Method::TwoPhase];
/// Numbers of servers that the evaluation has.
pub(super) const SERVERS: [u32; 3] = [4, 8, 16];

/// Both assumptions about memory, that of today first.
pub(super) fn all_costs() -> [Costs; 2] {
    [MEMORY_OF_TODAY, fitted()]
}

impl Extent {
    pub(super) fn runs(self) -> &'static [u64] {
        match self {
            Extent::Whole => &[8, 16, 32, 64, 128, 256],
            Extent::Quick => &[64, 256],
        }
    }

    pub(super) fn classes(self) -> &'static [Class] {
        match self {
            Extent::Whole => &Class::ALL,
            Extent::Quick => &Class::ALL[..2],
        }
    }

    pub(super) fn cubes(self) -> &'static [u64] {
        match self {
            Extent::Whole => &[128, 256, 512],
            Extent::Quick => &[128],
        }
    }

    /// Rows of square matrices of 1 MiB to 256 MiB.
    pub(super) fn rows(self) -> &'static [u64] {
        match self {
            Extent::Whole => &[1024, 2048, 4096, 8192, 16384],
            Extent::Quick => &[1024, 4096],
        }
    }
}

/// Rows of the matrix of 256 MiB.
pub(super) const ROWS: u64 = 16384;

/// Orders of simultaneous events of the largest class at most.
pub(super) const ORDERS_OF_LARGEST: usize = 3;

/// A matrix of 256 MiB in runs of so many bytes.
pub(super) fn cyclic(run: u64) -> Work {
    Work::Cyclic { run, rows: ROWS }
}

/// What is assumed of what is not published or not clear: the costs of memory, and whether there are cache
/// managers, as many as servers and cold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Assumption {
    costs: Costs,
    cooperates: bool,
}

impl Assumption {
    /// Both costs without cache managers, then both with them.
    pub(super) fn all() -> [Assumption; 4] {
        let [today, fitted] = all_costs();
        [(today, false), (fitted, false), (today, true), (fitted, true)]
            .map(|(costs, cooperates)| Assumption { costs, cooperates })
    }

    /// Both costs without cache managers.
    pub(super) fn alone() -> [Assumption; 2] {
        all_costs().map(|costs| Assumption { costs, cooperates: false })
    }

    pub(super) fn name(self) -> String {
        let with = if self.cooperates { ", cold cache managers" } else { "" };
        format!("memory costs {}{with}", costs_name(&self.costs))
    }

    /// A program by both ways: the rival has no cache managers.
    pub(super) fn pair(self, work: Work, servers: u32) -> [Cell; 2] {
        let [ours, rival] = pair(work, servers, self.costs);
        match self.cooperates {
            false => [ours, rival],
            true => [with_caches(ours, servers, Buffers::Cold), rival],
        }
    }

    /// What is measured: cold cache managers do not change what reaches devices.
    pub(super) fn operations(self) -> &'static [Measure] {
        if self.cooperates { &Measure::OPERATIONS[..2] } else { &Measure::OPERATIONS }
    }
}

/// The same with so many cache managers.
pub(super) fn with_caches(cell: Cell, caches: u32, buffers: Buffers) -> Cell {
    Cell { cooperation: Some(Cooperation { caches, buffers }), ..cell }
}

/// Whether a cell's writes end in the servers' memory, and its second read is measured.
pub(super) fn is_cold(cell: &Cell) -> bool {
    cell.cooperation.is_some_and(|one| one.buffers == Buffers::Cold)
}

pub(super) fn buffers_name(cell: &Cell) -> &'static str {
    match cell.cooperation.map(|one| one.buffers) {
        None => "none",
        Some(Buffers::Cold) => "cold",
        Some(Buffers::Warm) => "warm",
    }
}

/// A program by both ways, on so many servers, with these costs.
pub(super) fn pair(work: Work, servers: u32, costs: Costs) -> [Cell; 2] {
    METHODS.map(|method| Cell { costs, ..Cell::new(work, method, servers) })
}

pub(super) fn method_name(method: Method) -> &'static str {
    match method {
        Method::Direct => "direct",
        Method::TwoPhase => "two-phase",
    }
}

pub(super) fn costs_name(costs: &Costs) -> &'static str {
    if *costs == MEMORY_OF_TODAY { "today" } else { "fitted" }
}

/// A cell in words.
pub(super) fn name_of(cell: &Cell) -> String {
    let caches = match &cell.cooperation {
        None => String::new(),
        Some(one) => format!("{} cache managers ({}), ", one.caches, buffers_name(cell)),
    };
    format!(
        "{}, {}, {} servers, {caches}disks {:.0} MB/s, {} MiB of memory, costs {}, {}",
        cell.work.name(),
        method_name(cell.method),
        cell.servers,
        cell.disk_rate / 1e6,
        cell.memory_bytes >> 20,
        costs_name(&cell.costs),
        match cell.ways {
            Ways::Both => cell.schedule.name,
            Ways::Write => "write only",
            Ways::Read => "read only",
        },
    )
}

/// Every cell with its outcomes, one for each tie seed.
pub(super) struct Results {
    cells: Vec<(Cell, Vec<Outcome>)>,
    at: BTreeMap<String, usize>,
}

/// What tells a cell from all others.
fn key(cell: &Cell) -> String {
    format!("{cell:?}")
}

impl Results {
    /// Runs all cells, each once however often it is there.
    pub(super) fn compute(
        all: Vec<Cell>,
        seeds: &[Seed],
        threads: usize,
    ) -> Result<Results, Failure> {
        let mut results = Results { cells: Vec::new(), at: BTreeMap::new() };
        for cell in all {
            let next = results.cells.len();
            results.at.entry(key(&cell)).or_insert_with(|| {
                results.cells.push((cell, Vec::new()));
                next
            });
        }
        let cells = results.cells.iter().enumerate();
        let mut jobs: Vec<_> = cells
            .flat_map(|(at, (cell, _))| {
                orders_of(cell, seeds).iter().map(move |&seed| (at, cell.clone(), seed))
            })
            .collect();
        // The longest first, so that no core waits for the last one.
        jobs.sort_by_key(|(_, cell, _)| std::cmp::Reverse(effort(cell)));
        eprintln!("{} cells, {} orders each", results.cells.len(), seeds.len());
        let runs = parallel::run_all(&jobs, threads, |(_, cell, seed)| cell.run(*seed));
        let runs = runs.into_iter().collect::<Result<Vec<Outcome>, Refusal>>()?;
        for ((at, ..), outcome) in jobs.iter().zip(runs) {
            results.cells[*at].1.push(outcome);
        }
        Ok(results)
    }

    pub(super) fn count(&self) -> usize {
        self.cells.len()
    }

    /// Every cell, with its outcome in the order of simultaneous events as it stands.
    pub(super) fn cells(&self) -> impl Iterator<Item = (&Cell, &Outcome)> {
        self.cells.iter().map(|(cell, outcomes)| (cell, &outcomes[0]))
    }

    fn outcomes(&self, cell: &Cell) -> &[Outcome] {
        let at = self.at.get(&key(cell));
        at.map_or(&[], |&at| &self.cells[at].1)
    }

    /// What a cell that was computed came to, in the order of simultaneous events as it stands.
    pub(super) fn one(&self, cell: &Cell) -> &Outcome {
        &self.outcomes(cell)[0]
    }

    /// Over the orders of simultaneous events.
    pub(super) fn band(&self, cell: &Cell, measure: Measure) -> Band {
        let all: Vec<f64> = self.outcomes(cell).iter().map(|one| measure.of(one)).collect();
        Band::of(&all).expect("every cell that a claim asks for was computed")
    }

    pub(super) fn has(&self, cell: &Cell) -> bool {
        self.at.contains_key(&key(cell))
    }
}

/// The orders that a cell is run in: of what takes long, a few.
fn orders_of<'a>(cell: &Cell, seeds: &'a [Seed]) -> &'a [Seed] {
    match cell.work {
        Work::BlockTridiagonal(Class::C) => &seeds[..seeds.len().min(ORDERS_OF_LARGEST)],
        _ => seeds,
    }
}

/// About how long a cell takes.
fn effort(cell: &Cell) -> u64 {
    match cell.method {
        Method::Direct => cell.work.bytes() * 4,
        Method::TwoPhase => cell.work.bytes(),
    }
}
