//! What a seed stands for: an instance, the programs that run on it, and what will go wrong.
//!
//! All of it is drawn before the first step, so parts can be masked ([`Mask`]) without shifting the rest.

mod faults;
mod programs;

pub use faults::Fault;
pub(crate) use faults::{Event, Rates, What};
pub(crate) use programs::{Access, NameCall, Program, Round, SLOTS, Step};

use crate::dice::Dice;
use iolab_pfs::configuration::Durability;
use iolab_pfs::io_server::{Limit, Summing};
use iolab_pfs::{Layout, Managers};
use iolab_policy::placement::catalog as placement;
use iolab_policy::replacement::catalog as replacement;
use iolab_policy::schedule::catalog as schedule;
use iolab_policy::write_policy::catalog as write_policy;
use iolab_policy::write_policy::catalog::Answer;
use iolab_vocab::Nanos;
use std::collections::BTreeSet;
use std::fmt;

/// Which parts of a seed are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mask {
    /// Faults that do not happen.
    pub without: BTreeSet<Fault>,
    /// Programs that do not run.
    pub idle: BTreeSet<usize>,
    /// How many rounds of each program are run.
    pub rounds: Option<usize>,
    /// Rounds that are left out, of all programs.
    pub skipped: BTreeSet<usize>,
}

impl fmt::Display for Mask {
    /// As options of the command.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |items: Vec<String>| items.join(",");
        if !self.without.is_empty() {
            let names = self.without.iter().map(|fault| fault.name().to_owned());
            write!(f, " --without {}", list(names.collect()))?;
        }
        if !self.idle.is_empty() {
            write!(f, " --idle {}", list(self.idle.iter().map(usize::to_string).collect()))?;
        }
        if let Some(rounds) = self.rounds {
            write!(f, " --rounds {rounds}")?;
        }
        if !self.skipped.is_empty() {
            write!(f, " --skip {}", list(self.skipped.iter().map(usize::to_string).collect()))?;
        }
        Ok(())
    }
}

/// An instance, its programs and its faults.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) servers: u32,
    /// Cache managers, the bytes of each one's memory, and of a block at most.
    pub(crate) caches: u32,
    pub(crate) cache_memory: u64,
    pub(crate) placement: &'static placement::Row,
    pub(crate) replacement: &'static replacement::Row,
    pub(crate) write_policy: &'static write_policy::Row,
    pub(crate) block_bytes: u64,
    pub(crate) grant_bytes: u64,
    /// Whether what servers may use at most is told as a quota.
    pub(crate) is_quota: bool,
    /// Files and directories that there may be.
    pub(crate) files_quota: Option<u64>,
    pub(crate) durability: Durability,
    /// Bytes of records after which the journal begins anew.
    pub(crate) journal_bytes: u64,
    /// The sums that servers keep, if they do.
    pub(crate) summing: Option<Summing>,
    /// How many times as long as other works of devices syncs take.
    pub(crate) slow_syncs: u64,
    pub(crate) layout: Layout,
    pub(crate) transfer_bytes: u64,
    pub(crate) depth: u32,
    pub(crate) schedule: &'static schedule::Row,
    pub(crate) view_bytes_max: u64,
    /// The longest delay of an ordinary message and of ordinary work of a device, in ns.
    pub(crate) pace_ns: u64,
    pub(crate) programs: Vec<Program>,
    pub(crate) rates: Rates,
    pub(crate) events: Vec<Event>,
}

impl Plan {
    /// What a seed stands for, without what is masked.
    pub(crate) fn of(seed: u64, mask: &Mask) -> Plan {
        let mut dice = Dice::new(seed, 1);
        let servers = dice.between(1, 6) as u32;
        let unit = dice.magnitude(16, 4096);
        let subfiles = dice.between(1, u64::from(servers) + 2) as u32;
        let layout = Layout::striped(unit, subfiles, 0).expect("in range");
        let mut transfer_bytes = dice.magnitude(32, 4096);
        let depth = dice.between(1, 4) as u32;
        let view_bytes_max = if dice.one_in(3) { 400 } else { 64 << 20 };
        // Of the seed itself, so that the rest of the plan stays as it was without schedules.
        let schedule = &schedule::ROWS[(seed % schedule::ROWS.len() as u64) as usize];
        let pace_ns = dice.magnitude(1_000, 20_000_000);
        let mut programs = programs::programs(&mut dice);
        programs::start_collectives(&mut Dice::new(seed, 6), &mut programs);
        // Of draws of their own, so that instances without caches stay as they are.
        let mut own = Dice::new(seed, 5);
        let caches = if own.one_in(2) { 0 } else { own.between(1, 4) as u32 };
        let mut block_bytes = own.magnitude(16, 4096);
        let mut cache_memory = block_bytes * own.between(8, 32);
        let durability = match own.below(8) {
            0 => Durability::None,
            1..4 => Durability::Process,
            _ => Durability::Device,
        };
        let mut slow_syncs = own.magnitude(1, 64);
        let mut grant_bytes = Dice::new(seed, 7).magnitude(16, 4096);
        // The same: one in two has the usual ones, as all had before there were others.
        let mut own_policies = Dice::new(seed, 8);
        let is_usual = own_policies.one_in(2);
        let mut drawn = |count: usize| {
            let drawn = own_policies.below(count as u64) as usize;
            if is_usual { 0 } else { drawn }
        };
        let placement = &placement::ROWS[drawn(placement::ROWS.len())];
        let replacement = &replacement::ROWS[drawn(replacement::ROWS.len())];
        let write_policy = &write_policy::ROWS[drawn(write_policy::ROWS.len())];
        let clients = programs.iter().map(|program| program.ranks).sum();
        let (mut rates, mut events) =
            faults::faults(&mut Dice::new(seed, 2), (servers, caches), clients, &mask.without);
        if caches > 0 {
            let is_often = rates.cut > 0;
            if is_often {
                // Little memory: much is fetched, several blocks for one request.
                block_bytes = own.magnitude(16, 32);
                cache_memory = block_bytes * own.between(8, 16);
                transfer_bytes = transfer_bytes.max(8 * block_bytes);
                // Who is refused, or asks for room with every few bytes, has few fetches under way
                // when a cut comes; other seeds cut where room is short.
                rates = Rates { device: 0, capacity: 0, ..rates };
                grant_bytes = 0;
            }
            let cut = |program| programs::cut_while_used(&mut own, program, is_often);
            programs.iter_mut().for_each(cut);
        }
        for (at, program) in programs.iter_mut().enumerate() {
            let idle = mask.idle.contains(&at);
            let ends = mask.rounds.unwrap_or(usize::MAX);
            let runs = |round: &Round| {
                !idle && round.number < ends && !mask.skipped.contains(&round.number)
            };
            program.rounds.retain(runs);
        }
        // Only devices promise anything of a power cut.
        events.retain(|event| {
            durability == Durability::Device || !matches!(event.what, What::PowerCut)
        });
        if durability != Durability::Device {
            rates = Rates { sync: 0, power: 0, ..rates };
        }
        let mut own_syncs = Dice::new(seed, 13);
        if rates.power > 0 && own_syncs.one_in(2) {
            // Long enough for others to write meanwhile.
            slow_syncs = slow_syncs.max(16);
            let write = |program| programs::sync_while_written(&mut own_syncs, program);
            programs.iter_mut().for_each(write);
        }
        let crashes = events.iter().any(|event| matches!(event.what, What::CrashCache { .. }));
        if crashes && write_policy.answer == Answer::Saved {
            rates.answer = own_policies.magnitude(1, 8);
        }
        let mut own_sums = Dice::new(seed, 10);
        let summing = own_sums.one_in(2).then(|| Summing {
            page_bytes: own_sums.magnitude(16, 256),
            settle: Nanos(own_sums.magnitude(1_000, 2_000_000_000)),
        });
        if summing.is_none() {
            rates = Rates { rot: 0, ..rates };
        }
        Plan {
            servers,
            caches,
            cache_memory,
            placement,
            replacement,
            write_policy,
            block_bytes,
            grant_bytes,
            is_quota: Dice::new(seed, 9).one_in(2),
            files_quota: {
                let mut own = Dice::new(seed, 12);
                own.one_in(4).then(|| own.between(1, 6))
            },
            journal_bytes: Dice::new(seed, 11).magnitude(128, 4 << 10),
            durability,
            summing,
            slow_syncs,
            layout,
            transfer_bytes,
            depth,
            schedule,
            view_bytes_max,
            pace_ns,
            programs,
            rates,
            events,
        }
    }

    /// Who has what of files.
    pub(crate) fn managers(&self) -> Managers {
        Managers { count: self.caches, servers: self.servers, placement: self.placement }
    }

    /// What servers may use at most.
    pub(crate) fn limit(&self) -> Option<Limit> {
        let limit = if self.is_quota { Limit::Quota } else { Limit::Capacity };
        (self.rates.capacity > 0).then(|| limit(self.rates.capacity))
    }

    /// Whether a write that was answered outlives the cache manager that took it.
    pub(crate) fn outlives_caches(&self) -> bool {
        self.write_policy.answer == Answer::Saved && self.durability != Durability::Device
    }

    /// Whether nothing goes wrong.
    pub(crate) fn peaceful(&self) -> bool {
        self.events.is_empty() && self.rates.peaceful()
    }
}
