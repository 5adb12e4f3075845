//! Times of several parts on one line, and what is said of them.

use crate::align::{self, OwnClock, Placement, Precedence};
use crate::{Header, MachineClock};
use iolab_vocab::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// How times of a part become times of the joined trace.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Times {
    /// The part's zero by the clock of its machine.
    own_ns: i64,
    placement: Placement,
    /// The trace's zero on the common line.
    zero_ns: i64,
}

impl Times {
    pub(super) fn of(&self, time: Nanos) -> Nanos {
        Nanos(self.of_ns(time.0))
    }

    pub(super) fn of_ns(&self, time: u64) -> u64 {
        let own = i64::try_from(time).unwrap_or(i64::MAX).saturating_add(self.own_ns);
        u64::try_from(self.placement.of(own).saturating_sub(self.zero_ns)).unwrap_or(0)
    }
}

/// A machine's clock.
#[derive(Clone, Debug)]
struct Machine {
    name: String,
    host: String,
    own: OwnClock,
}

/// The clocks of parts, of which there is one for each machine.
#[derive(Debug)]
pub(super) struct Clocks {
    machines: Vec<Machine>,
    /// Of each part: its machine, and its zero by the machine's clock.
    parts: Vec<(usize, i64)>,
    /// Unix time of 0 on the line of the first machine; monotonic time where that is the only one.
    base_ns: u64,
}

impl Clocks {
    pub(super) fn of(parts: &[Header]) -> Clocks {
        let names: Vec<String> =
            parts.iter().enumerate().map(|(at, part)| machine_of(part, at)).collect();
        let is_one = names.iter().collect::<BTreeSet<_>>().len() <= 1;
        let zero = |part: &Header| match is_one {
            true => part.clock.zero_monotonic_ns,
            false => part.clock.zero_unix_ns,
        };
        let base_ns = parts.iter().map(zero).min().unwrap_or(0);
        let mut clocks = Clocks { machines: Vec::new(), parts: Vec::new(), base_ns };
        // By machine: wall clock and monotonic clock of its first part.
        let mut firsts: BTreeMap<&str, (usize, u64, u64)> = BTreeMap::new();
        // By the first of those that called MPI others are placed.
        let mut order: Vec<usize> = (0..parts.len()).collect();
        order.sort_by_key(|&at| parts[at].communicators.is_empty());
        clocks.parts.resize(parts.len(), (0, 0));
        for (at, (part, name)) in order.into_iter().map(|at| (at, (&parts[at], &names[at]))) {
            let clock = &part.clock;
            let number = clocks.machines.len();
            let &mut (machine, wall, monotonic) = firsts.entry(name).or_insert_with(|| {
                let own = OwnClock { span_ns: (i64::MAX, i64::MIN), bound_ns: clock.unix_bound_ns };
                let host = host_of(part).to_owned();
                clocks.machines.push(Machine { name: name.clone(), host, own });
                (number, zero(part), clock.zero_monotonic_ns)
            });
            // One reading of the wall clock for all parts of a machine: it may have been set meanwhile.
            let own = ahead(wall, base_ns) + ahead(clock.zero_monotonic_ns, monotonic);
            clocks.parts[at] = (machine, own);
            let at = |time: u64| own.saturating_add(i64::try_from(time).unwrap_or(0));
            let span = &mut clocks.machines[machine].own.span_ns;
            for process in &part.processes {
                *span = (span.0.min(at(process.start_ns)), span.1.max(at(process.end_ns)));
            }
            *span = (span.0.min(own), span.1.max(own));
        }
        clocks
    }

    pub(super) fn is_one(&self) -> bool {
        self.machines.len() <= 1
    }

    /// A part's zero by the clock of its machine.
    pub(super) fn zero_of_part(&self, part: usize) -> i64 {
        self.parts[part].1
    }

    /// The machine of each rank that called MPI; none of one that did so on several.
    pub(super) fn machines_of_ranks(&self, parts: &[Header]) -> BTreeMap<u32, usize> {
        let mut machines: BTreeMap<u32, BTreeSet<usize>> = BTreeMap::new();
        let calling = parts.iter().zip(&self.parts).filter(|(it, _)| !it.communicators.is_empty());
        for (part, (machine, _)) in calling {
            for rank in part.processes.iter().filter_map(|it| u32::try_from(it.rank).ok()) {
                machines.entry(rank).or_default().insert(*machine);
            }
        }
        let only = |(rank, on): (u32, BTreeSet<usize>)| match on.len() {
            1 => on.first().map(|&machine| (rank, machine)),
            _ => None,
        };
        machines.into_iter().filter_map(only).collect()
    }

    /// Puts all clocks on one line and says so in the header; the answer is for each part.
    pub(super) fn place(&self, met: &[Precedence], joined: &mut Header) -> Vec<Times> {
        let own: Vec<OwnClock> = self.machines.iter().map(|it| it.own).collect();
        let placed = align::place(&own, met);
        let zeros = self.parts.iter().map(|&(machine, own)| placed[machine].of(own));
        let (first, zero_ns) = zeros.enumerate().min_by_key(|it| it.1).unwrap_or((0, 0));
        let times = |&(machine, own_ns): &(usize, i64)| Times {
            own_ns,
            placement: placed[machine],
            zero_ns,
        };
        if self.is_one() {
            let moved = ahead(self.base_ns, joined.clock.zero_monotonic_ns);
            joined.clock.zero_monotonic_ns = self.base_ns;
            let unix = joined.clock.zero_unix_ns.saturating_add_signed(moved);
            joined.clock.zero_unix_ns = unix;
            return self.parts.iter().map(times).collect();
        }
        joined.clock.zero_unix_ns = self.base_ns.saturating_add_signed(zero_ns);
        if self.parts[first].0 != 0 {
            // Of the first machine, whose clock was not read then.
            joined.clock.zero_monotonic_ns = 0;
        }
        joined.clock.machine = String::new();
        joined.clock.unix_bound_ns = self.machines[0].own.bound_ns;
        joined.clocks = self.machines.iter().zip(&placed).map(said).collect();
        joined.inferred.retain(|line| !line.starts_with(BETWEEN));
        joined.inferred.push(told(&joined.clocks, met.len()));
        self.parts.iter().map(times).collect()
    }
}

fn said((machine, placement): (&Machine, &Placement)) -> MachineClock {
    MachineClock {
        host: machine.host.clone(),
        machine: machine.name.clone(),
        offset_ns: placement.offset_ns.round() as i64,
        rate_ppm: placement.rate * 1e6,
        bound_ns: placement.bound_ns,
        by_messages: placement.by_precedence,
    }
}

const BETWEEN: &str = "times between ";

/// What a reader should know of times on different machines.
fn told(clocks: &[MachineClock], met: usize) -> String {
    let by_wall: Vec<&MachineClock> = clocks[1..].iter().filter(|it| !it.by_messages).collect();
    let by_messages: Vec<&MachineClock> = clocks.iter().filter(|it| it.by_messages).collect();
    let mut told = format!("{BETWEEN}{} machines", clocks.len());
    if !by_messages.is_empty() {
        let within = within(&by_messages);
        told.push_str(&format!(", aligned by {met} messages and collective calls: {within}"));
    }
    if !by_wall.is_empty() {
        let hosts: Vec<&str> = by_wall.iter().map(|it| it.host.as_str()).collect();
        let (hosts, within) = (hosts.join(", "), within(&by_wall));
        told.push_str(&match by_messages.is_empty() {
            true => format!(", aligned by their wall clocks alone: {within}"),
            false => format!("; those of {hosts} by wall clocks: {within}"),
        });
    }
    told
}

/// How far times of any two of these machines, or of one and the first, may be from each other.
fn within(clocks: &[&MachineClock]) -> String {
    let known: Option<Vec<u64>> = clocks.iter().map(|clock| clock.bound_ns).collect();
    let Some(mut known) = known else {
        return "by how much they are wrong is not known".to_owned();
    };
    known.sort_unstable();
    // Two may be wrong in opposite directions.
    format!("right within {}", duration(known.iter().rev().take(2).sum()))
}

fn duration(ns: u64) -> String {
    match ns {
        ..10_000 => format!("{ns} ns"),
        10_000..10_000_000 => format!("{} us", ns.div_ceil(1000)),
        _ => format!("{} ms", ns.div_ceil(1_000_000)),
    }
}

/// How far one reading is ahead of another.
fn ahead(of: u64, other: u64) -> i64 {
    of.wrapping_sub(other) as i64
}

fn host_of(part: &Header) -> &str {
    part.parts.first().map_or(part.host.as_str(), |it| it.host.as_str())
}

/// What tells a part's clock from others. Parts of one machine since it was started share it; what was
/// joined of several machines has a line of its own.
fn machine_of(part: &Header, at: usize) -> String {
    let machines: BTreeSet<&str> = part.parts.iter().map(|it| it.machine.as_str()).collect();
    match machines.len() {
        0 => part.clock.machine.clone(),
        1 => machines.into_iter().next().unwrap_or_default().to_owned(),
        count => format!("{count} machines of part {at}"),
    }
}
