//! Which parts are of one run: doubles are left out, and parts of other runs refused.

use crate::Header;
use iolab_vocab::Refusal;
use std::collections::{BTreeMap, BTreeSet};

/// Beginnings of names that are not known on every node, or not of one run alone: of a launcher's process,
/// of a session.
const WEAK: [&str; 2] = ["process ", SESSION];
/// What the name of a run begins with that nothing names but the session it was started in.
pub const SESSION: &str = "session ";

/// A part, by what a person calls it.
#[derive(Clone, Debug)]
pub struct Named {
    /// Its path.
    pub name: String,
    /// What it says of itself.
    pub header: Header,
}

/// Parts of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    /// Those to join, by index.
    pub kept: Vec<usize>,
    /// Those whose processes another one has, and that one.
    pub doubles: Vec<(usize, usize)>,
}

/// Leaves out doubles and sees that the rest is one run.
///
/// # Errors
/// That parts are of different runs, or that two of them have one rank.
pub fn choose(parts: &[Named]) -> Result<Chosen, Refusal> {
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(parts[at].header.processes.len()));
    let mut chosen = Chosen::default();
    for at in order {
        let holds = |&&other: &&usize| is_within(&parts[at].header, &parts[other].header);
        match chosen.kept.iter().find(holds) {
            Some(&other) => chosen.doubles.push((at, other)),
            None => chosen.kept.push(at),
        }
    }
    chosen.kept.sort_unstable();
    chosen.doubles.sort_unstable();
    let kept: Vec<&Named> = chosen.kept.iter().map(|&at| &parts[at]).collect();
    if let [first, others @ ..] = &kept[..]
        && !others.is_empty()
    {
        for part in &kept {
            if run_of(&part.header).is_none() {
                return Err(nameless(part));
            }
        }
        if let Some(other) = others.iter().find(|it| !is_one_run(&first.header, &it.header)) {
            return Err(different(first, other));
        }
    }
    ranks_are_once(&kept)?;
    Ok(chosen)
}

/// The name of the run a part is of.
fn run_of(header: &Header) -> Option<&str> {
    header.parts.first().map(|part| part.job.as_str()).filter(|job| !job.is_empty())
}

fn nameless(part: &Named) -> Refusal {
    Refusal::new(
        format!("{} names no run, so it cannot be told whether the others are of it", part.name),
        "parts are what a recorder below a launcher writes, or the library alone (`iolab env --record`); \
         a whole trace needs no merging",
    )
}

fn different(one: &Named, other: &Named) -> Refusal {
    let run = |part: &Named| run_of(&part.header).unwrap_or_default().to_owned();
    Refusal::new(
        format!(
            "{} and {} are of different runs (`{}` and `{}`)",
            one.name,
            other.name,
            run(one),
            run(other)
        ),
        "merge the parts of one run at a time: name them instead of their directory",
    )
}

/// Whether all processes of a part are processes of the other one.
fn is_within(one: &Header, other: &Header) -> bool {
    let processes = |header: &Header| -> BTreeSet<(String, u32, i32)> {
        let all = header.processes.iter();
        all.map(|it| (it.host.clone(), it.pid, it.rank)).collect()
    };
    let one_has = processes(one);
    run_of(one) == run_of(other) && !one_has.is_empty() && one_has.is_subset(&processes(other))
}

fn is_one_run(one: &Header, other: &Header) -> bool {
    let (Some(name), Some(other_name)) = (run_of(one), run_of(other)) else { return false };
    if name == other_name {
        return true;
    }
    let is_weak = |name: &str| WEAK.iter().any(|start| name.starts_with(start));
    let host = |header: &Header| header.parts.first().map(|part| part.host.clone());
    let size = |header: &Header| header.parts.iter().map(|part| part.size).max();
    let of_sessions = [name, other_name].iter().all(|name| name.starts_with(SESSION));
    is_weak(name)
        && is_weak(other_name)
        && (of_sessions || host(one) != host(other))
        && size(one) == size(other)
        && overlap(one, other)
}

/// Whether there was a time when both were recorded, by their wall clocks.
fn overlap(one: &Header, other: &Header) -> bool {
    let times = |header: &Header| {
        let at = |time: u64| header.clock.zero_unix_ns.saturating_add(time);
        let start = header.processes.iter().map(|it| at(it.start_ns)).min();
        (start.unwrap_or(0), header.processes.iter().map(|it| at(it.end_ns)).max().unwrap_or(0))
    };
    let (one, other) = (times(one), times(other));
    one.0 <= other.1 && other.0 <= one.1
}

/// A rank is on one node only, where names do not say that it is of one run: what starts it in a container has
/// its number on another host.
fn ranks_are_once(parts: &[&Named]) -> Result<(), Refusal> {
    let mut seen: BTreeMap<u32, (&str, &str)> = BTreeMap::new();
    let runs: BTreeSet<_> = parts.iter().map(|named| run_of(&named.header)).collect();
    for named in parts.iter().filter(|_| runs.len() > 1) {
        for part in named.header.parts.iter().filter(|part| part.size > 0) {
            let here = (part.host.as_str(), named.name.as_str());
            let first = *seen.entry(part.rank).or_insert(here);
            if first.0 != here.0 {
                return Err(Refusal::new(
                    format!(
                        "rank {} ran on {} by {} and on {} by {}",
                        part.rank, first.0, first.1, here.0, here.1
                    ),
                    "they are of different runs: leave out one of them",
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Part, ProcessEntry};

    fn named(name: &str, job: &str, host: &str, ranks: &[i32], from_s: u64) -> Named {
        let mut header = Header::default();
        header.clock.zero_unix_ns = from_s * 1_000_000_000;
        for &rank in ranks {
            header.processes.push(ProcessEntry {
                pid: 100 + rank as u32,
                host: host.into(),
                rank,
                end_ns: 5_000_000_000,
                ..ProcessEntry::default()
            });
            header.parts.push(Part {
                job: job.into(),
                rank: rank as u32,
                size: 4,
                host: host.into(),
                machine: host.into(),
            });
        }
        Named { name: name.into(), header }
    }

    #[test]
    fn parts_of_one_run_are_kept_and_doubles_go_also_where_they_are_part_of_a_larger_one() {
        let parts = [
            named("a", "j", "n1", &[0], 0),
            named("ab", "j", "n1", &[0, 1], 0),
            named("c", "j", "n2", &[2], 0),
            named("c again", "j", "n2", &[2], 0),
        ];
        let chosen = choose(&parts).unwrap();
        assert_eq!(chosen, Chosen { kept: vec![1, 2], doubles: vec![(0, 1), (3, 2)] });
    }

    #[test]
    fn parts_of_different_runs_are_refused_by_name() {
        let parts = [named("a", "j", "n1", &[0], 0), named("b", "k", "n2", &[1], 0)];
        let problem = choose(&parts).unwrap_err().to_string();
        assert!(problem.contains("a and b are of different runs (`j` and `k`)"), "{problem}");
        let mut parts = [named("a", "j", "n1", &[0], 0), named("b", "j", "n2", &[1], 0)];
        parts[1].header.parts.clear();
        assert!(choose(&parts).unwrap_err().to_string().contains("b names no run"));
        let of_rank = |name, host| named(name, &format!("process {name}"), host, &[0], 0);
        let problem = choose(&[of_rank("a", "n1"), of_rank("b", "n2")]).unwrap_err().to_string();
        assert!(problem.contains("rank 0 ran on n1 by a and on n2 by b"), "{problem}");
    }

    #[test]
    fn names_that_are_not_known_everywhere_count_as_one_where_times_overlap() {
        let of = |job: &str, host, rank, from| named(host, job, host, &[rank], from);
        let both = |one: Named, other: Named| choose(&[one, other]).is_ok();
        assert!(both(of("process 1", "n1", 0, 0), of("process 2", "n2", 1, 3)));
        assert!(!both(of("process 1", "n1", 0, 0), of("process 2", "n2", 1, 9)));
        assert!(!both(of("process 1", "n1", 0, 0), of("process 2", "n1", 1, 3)));
        assert!(both(of("session 1", "n1", 0, 0), of("session 2", "n1", 1, 3)));
        assert!(!both(of("session 1", "n1", 0, 0), of("j", "n2", 1, 3)));
    }
}
