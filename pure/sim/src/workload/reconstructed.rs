//! A workload from what a log of Darshan counts: the text of a TOML file that `iolab simulate --workload`
//! takes, in which whatever the counters do not say is listed as inferred.
//!
//! Promised is that reads, writes and their bytes come out as they were counted, in total and by file. What
//! is told besides is kept as far as it determines anything: sizes ([`sizes`]), how many ranks took part
//! (from the variance of their bytes), whether accesses followed each other, and when a file was used
//! ([`phases`]). Memory is that of the records; files that ranks use alike are one file `per_rank`.

mod phases;
mod sizes;
mod spread;

use crate::workload::Workload;
use iolab_trace::import::counted::{Counted, Module, Record, Way};
use iolab_vocab::{Direction, Refusal, format_bytes};
use phases::Phases;
use sizes::Group;
use spread::{Place, Ranks, Shape};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// More commands, times ranks that each of them asks, are written more coarsely.
const MOST_QUESTIONS: u64 = 1 << 27;
/// As many processes a workload may have.
const MOST_RANKS: u32 = 1_000_000;
/// Up to so many ranks a workload is read back before it is handed out; each of its commands has a list of them.
const READ_BACK_RANKS: u32 = 4_096;
/// As many files a workload may have, those of every rank counted; some are left for others.
const MOST_FILES: u64 = 900_000;
/// Where a read finds no byte: behind whatever a file may have.
const BEHIND: u64 = 1 << 59;

/// How much of what was counted is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detail {
    /// Sizes by bins, phases by times.
    Fine,
    /// One size, one phase.
    Coarse,
}

/// The text of a workload that makes the accesses a log counts.
///
/// # Errors
/// A run of more ranks than a workload may have, or of none; numbers that a workload cannot have.
pub fn reconstruct(counted: &Counted, name: &str) -> Result<String, Refusal> {
    if !(1..=MOST_RANKS).contains(&counted.ranks) {
        return Refusal::refuse(
            format!("{} ranks", counted.ranks),
            "a workload has 1 to 1,000,000 ranks",
        );
    }
    let fine = Draft::of(counted, Detail::Fine);
    let draft = match fine.questions() > MOST_QUESTIONS {
        true => Draft::of(counted, Detail::Coarse),
        false => fine,
    };
    let text = draft.text(counted, name);
    // A damaged log may count what no workload can have: more calls than repeats, centuries of waiting.
    if counted.ranks <= READ_BACK_RANKS
        && let Err(error) = Workload::parse(&text)
    {
        return Refusal::refuse(
            format!("what it counts makes no workload: {}", error.message),
            "see whether darshan-parser finds the log whole",
        );
    }
    Ok(text)
}

/// The records that are made accesses of.
fn chosen(counted: &Counted) -> impl Iterator<Item = &Record> + Clone {
    counted.records.iter().filter(|record| counted.is_lowest(record.module))
}

/// What is done to a file in a phase, in one direction.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    phase: usize,
    direction: Direction,
    shape: Shape,
    groups: Vec<Group>,
}

/// All that a record comes to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Usage {
    /// Opens and closes of each rank beside those around the accesses.
    more_opens: u64,
    /// First and last phase.
    span: (usize, usize),
    /// Accesses, by phase.
    parts: Vec<Part>,
}

/// A file of the workload: of all ranks, of one, or of every rank its own.
struct Target {
    name: String,
    comment: String,
    bytes: u64,
    is_per_rank: bool,
    ranks: Ranks,
    usage: Usage,
    first_ns: u64,
}

struct Draft {
    phases: Phases,
    targets: Vec<Target>,
    detail: Detail,
    rank_count: u32,
    /// Writes of no bytes, which no simulated call is.
    empty_writes: u64,
    notes: BTreeSet<&'static str>,
}

impl Draft {
    fn of(counted: &Counted, detail: Detail) -> Draft {
        let phases = match detail {
            Detail::Fine => Phases::of(counted, chosen(counted)),
            Detail::Coarse => Phases::one(counted, chosen(counted)),
        };
        let mut draft = Draft {
            phases,
            targets: Vec::new(),
            detail,
            rank_count: counted.ranks,
            empty_writes: 0,
            notes: BTreeSet::new(),
        };
        // Records of one rank that come to the same, with their ranks and files.
        let mut alike: BTreeMap<(Module, Usage), Vec<(u32, &Record)>> = BTreeMap::new();
        for record in chosen(counted) {
            let Some(usage) = draft.usage(record) else { continue };
            match record.rank {
                Some(rank) => alike.entry((record.module, usage)).or_default().push((rank, record)),
                None => draft.shared(counted, record, usage),
            }
        }
        let mut file_count = draft.targets.len() as u64;
        for ((_, usage), members) in alike {
            draft.own(counted, usage, members, &mut file_count);
        }
        draft.targets.sort_by_key(|target| target.first_ns);
        draft.name_apart();
        draft
    }

    /// What a record comes to; nothing if it opened nothing and moved nothing.
    fn usage(&mut self, record: &Record) -> Option<Usage> {
        let mut parts = Vec::new();
        for direction in [Direction::Read, Direction::Write] {
            let (way, other) = match direction {
                Direction::Read => (&record.reads, &record.writes),
                Direction::Write => (&record.writes, &record.reads),
            };
            let mut groups = match self.detail {
                Detail::Fine => sizes::groups(way, other, &record.common, direction),
                Detail::Coarse => sizes::even(way.calls, way.bytes),
            };
            if direction == Direction::Write {
                let empty: u64 = groups.iter().filter(|it| it.bytes == 0).map(|it| it.calls).sum();
                self.empty_writes = self.empty_writes.saturating_add(empty);
                groups.retain(|group| group.bytes > 0);
            }
            if groups.is_empty() {
                continue;
            }
            let shape = self.shape(record, way, direction);
            let split = self.phases.split(way, direction, &groups);
            parts.extend(split.into_iter().map(|(phase, groups)| Part {
                phase,
                direction,
                shape,
                groups,
            }));
        }
        let users = if record.rank.is_some() { 1 } else { u64::from(self.rank_count) };
        if parts.is_empty() && record.opens == 0 {
            return None;
        }
        parts.sort();
        let at_open = record.opened.map_or(0, |moment| self.phases.at(moment));
        let used = parts.iter().map(|part| part.phase);
        let span = (used.clone().min().unwrap_or(at_open), used.max().unwrap_or(at_open));
        Some(Usage { more_opens: (record.opens / users).saturating_sub(1), span, parts })
    }

    fn shape(&mut self, record: &Record, way: &Way, direction: Direction) -> Shape {
        let movers = u64::from(record.movers(self.rank_count));
        let others = way.calls.saturating_sub(movers);
        let is_counted = record.module == Module::Posix && others > 0;
        let is_most = |part: u64| part.saturating_mul(2) >= others;
        let is_repeated = way.end.is_some_and(|end| end > 0 && way.bytes / 3 * 2 >= end);
        if record.rank.is_none() && movers > 1 && direction == Direction::Read && is_repeated {
            self.notes.insert(
                "that ranks which read more than a shared file has read the same bytes of it",
            );
            return Shape::Same;
        }
        // From the beginning of the file on, as far as the bytes go.
        let is_whole = way.end.is_some_and(|end| end <= way.bytes.saturating_add(way.bytes / 8));
        if record.rank.is_some()
            && direction == Direction::Read
            && is_whole
            && is_most(way.consecutive)
        {
            return Shape::Same;
        }
        match (is_counted, is_most(way.consecutive), is_most(way.sequential)) {
            (false, ..) | (_, true, _) => Shape::Contiguous,
            (_, _, true) => {
                self.notes.insert(
                    "that accesses in order with gaps take turns by rank, or leave gaps as long as themselves",
                );
                Shape::Interleaved
            }
            _ => {
                self.notes
                    .insert("where accesses out of order go: every block once, in a random order");
                Shape::Random
            }
        }
    }

    fn shared(&mut self, counted: &Counted, record: &Record, usage: Usage) {
        let movers = record.movers(counted.ranks);
        if movers < counted.ranks && record.bytes() > 0 {
            self.notes.insert(
                "how many ranks moved bytes of a shared file, from the variance of their bytes, and which: they are \
                 spread evenly",
            );
        }
        self.notes.insert("that ranks which share a file moved the same each");
        let ranks = Ranks::spread(movers, counted.ranks);
        let comment = format!(
            "all ranks opened it, {} moved bytes: {}",
            match movers == counted.ranks {
                true => "all".to_owned(),
                false => movers.to_string(),
            },
            in_words(record)
        );
        let name = counted.files[record.file].path.clone();
        self.target(name, comment, false, ranks, usage, record);
    }

    /// Files of one rank each.
    fn own(
        &mut self,
        counted: &Counted,
        usage: Usage,
        members: Vec<(u32, &Record)>,
        file_count: &mut u64,
    ) {
        // The first file of each rank, the second of each, and so on.
        let mut rounds: Vec<Vec<(u32, &Record)>> = Vec::new();
        let mut seen: BTreeMap<u32, usize> = BTreeMap::new();
        for (rank, record) in members {
            let round = seen.entry(rank).or_default();
            if rounds.len() == *round {
                rounds.push(Vec::new());
            }
            rounds[*round].push((rank, record));
            *round += 1;
        }
        for round in rounds {
            let paths: BTreeSet<usize> = round.iter().map(|(_, record)| record.file).collect();
            let path = |record: &Record| counted.files[record.file].path.clone();
            let whole = *file_count + u64::from(counted.ranks);
            let record = round[0].1;
            // Ranks that use a file that not all of them opened use it each for themselves.
            let is_one_file = paths.len() == 1;
            if round.len() > 1 && (is_one_file || whole <= MOST_FILES) {
                *file_count = if is_one_file { *file_count + 1 } else { whole };
                let comment = match is_one_file {
                    true => format!("{} ranks: {} each", round.len(), in_words(record)),
                    false => {
                        format!("{} files like this one: {} each", paths.len(), in_words(record))
                    }
                };
                let ranks = Ranks::of(round.iter().map(|(rank, _)| *rank).collect(), counted.ranks);
                self.target(path(record), comment, !is_one_file, ranks, usage.clone(), record);
            } else {
                let ranks = |rank| Ranks::of(vec![rank], counted.ranks);
                for (rank, record) in round {
                    *file_count += 1;
                    let comment = format!("rank {rank}: {}", in_words(record));
                    self.target(path(record), comment, false, ranks(rank), usage.clone(), record);
                }
            }
        }
    }

    fn target(
        &mut self,
        name: String,
        comment: String,
        is_per_rank: bool,
        ranks: Ranks,
        usage: Usage,
        record: &Record,
    ) {
        let moments = [record.opened, record.reads.first, record.writes.first];
        let first_ns = moments.into_iter().flatten().min().map_or(0, |moment| moment.0);
        let mut target = Target { name, comment, bytes: 0, is_per_rank, ranks, usage, first_ns };
        // As long as reads need it: bytes that were counted were there.
        let mut layout = target.layout(self.rank_count);
        for part in target.usage.parts.iter().filter(|part| part.direction == Direction::Read) {
            part.groups
                .iter()
                .for_each(|group| drop(layout.place(part.direction, part.shape, *group)));
        }
        target.bytes = layout.read_end();
        self.targets.push(target);
    }

    /// Names of files must differ.
    fn name_apart(&mut self) {
        let mut taken: BTreeSet<String> = BTreeSet::new();
        for target in &mut self.targets {
            let mut name = target.name.clone();
            let mut number = 1;
            while name.is_empty() || taken.contains(&name) {
                number += 1;
                name = format!("{} ({number})", target.name);
            }
            taken.insert(name.clone());
            target.name = name;
        }
    }

    /// How many times a rank is asked whether it takes part in a command.
    fn questions(&self) -> u64 {
        let parts = self.targets.iter().flat_map(|target| &target.usage.parts);
        let commands = parts.map(|part| 2 * part.groups.len() as u64).sum::<u64>();
        (commands + 3 * self.targets.len() as u64) * u64::from(self.rank_count)
    }

    fn text(&self, counted: &Counted, name: &str) -> String {
        let mut text = self.heading(counted);
        _ = writeln!(text, "name = {}", quoted(name));
        for target in &self.targets {
            _ = write!(
                text,
                "\n# {}\n[[files]]\nname = {}\n",
                target.comment,
                quoted(&target.name)
            );
            if target.bytes > 0 {
                _ = writeln!(text, "size = {}", target.bytes);
            }
            if target.is_per_rank {
                text.push_str("per_rank = true\n");
            }
        }
        let program = counted.command.first().map_or("program", String::as_str);
        let program =
            program.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("program");
        _ = write!(
            text,
            "\n[[applications]]\nname = {}\nranks = {}\n",
            quoted(program),
            counted.ranks
        );
        let mut layouts: Vec<Place> =
            self.targets.iter().map(|target| target.layout(self.rank_count)).collect();
        for phase in 0..self.phases.count() {
            let (from, until) = self.phases.span(phase);
            _ = write!(
                text,
                "\n# {:.3} s to {:.3} s\n[[applications.phases]]\nname = \"phase {}\"\ncommands = [\n",
                from as f64 / 1e9,
                until as f64 / 1e9,
                phase + 1
            );
            _ = writeln!(
                text,
                "  {{ compute = \"{:.9}s\" }},",
                self.phases.idle_ns(phase) as f64 / 1e9
            );
            for (target, layout) in self.targets.iter().zip(&mut layouts) {
                target.commands(phase, layout, &mut text);
            }
            text.push_str("]\n");
        }
        let rest = self.phases.rest_ns() as f64 / 1e9;
        _ = write!(
            text,
            "\n[[applications.phases]]\nname = \"rest\"\ncommands = [\n  {{ compute = \"{rest:.9}s\" }},\n]\n"
        );
        text
    }

    fn heading(&self, counted: &Counted) -> String {
        let mut text = String::new();
        let command = counted.command.join(" ");
        let mut say =
            |line: &str| _ = writeln!(text, "# {}", line.replace(|c: char| c.is_control(), " "));
        say(
            "Reconstructed from the counters of a log of Darshan: no single call of this was recorded.",
        );
        say(&format!(
            "Command: {command} ({} ranks, {:.3} s, log format {}).",
            counted.ranks,
            counted.took_ns as f64 / 1e9,
            counted.format
        ));
        say(
            "Counted: how many reads and writes, their bytes, by file and rank or all ranks together.",
        );
        say("Inferred:");
        let mut inferred: Vec<String> = Vec::new();
        inferred.push(match self.detail {
            Detail::Fine => {
                "sizes, from histograms and the four most frequent ones, so that the bytes come out"
                    .to_owned()
            }
            Detail::Coarse => "sizes: all of a record alike, as there are many records".to_owned(),
        });
        inferred.push(self.phases.source().to_owned());
        inferred.push(
            "that ranks compute while no file is in use, and that no rank waits for another"
                .to_owned(),
        );
        inferred.extend(self.notes.iter().map(|note| (*note).to_owned()));
        match counted.modules.contains(&Module::Posix) {
            true if counted.modules.contains(&Module::MpiIo) => inferred.push(
                "nothing of what was collective: these are the accesses that MPI-IO made of its calls".to_owned(),
            ),
            false if counted.modules.contains(&Module::MpiIo) => inferred.push(
                "that no call of MPI-IO was collective; the log has no counters of POSIX".to_owned(),
            ),
            _ => {}
        }
        inferred.push("that files are as long before the run as what is read of them".to_owned());
        inferred.iter().for_each(|what| say(&format!("- {what}")));
        let left_out = chosen(counted).fold([0_u64; 4], |sums, it| {
            let more = [it.seeks, it.stats, it.syncs, it.maps];
            std::array::from_fn(|at| sums[at].saturating_add(more[at]))
        });
        let [seeks, stats, syncs, maps] = left_out;
        say(&format!("Left out: {seeks} seeks, {stats} stats, {syncs} syncs, {maps} mappings."));
        if self.empty_writes > 0 {
            say(&format!("Left out: {} writes of no bytes.", self.empty_writes));
        }
        counted.lacks.iter().for_each(|what| say(&format!("The log lacks: {what}.")));
        text.push('\n');
        text
    }
}

impl Target {
    fn layout(&self, rank_count: u32) -> Place {
        let is_alone = self.is_per_rank || self.ranks.count() == 1;
        Place::new(self.ranks.clone(), is_alone, self.is_per_rank, rank_count)
    }

    /// What is done to the file in a phase.
    fn commands(&self, phase: usize, layout: &mut Place, text: &mut String) {
        let (first, last) = self.usage.span;
        if !(first..=last).contains(&phase) {
            return;
        }
        let name = quoted(&self.name);
        let within = if self.is_per_rank { "" } else { ", within = \"alone\"" };
        // A file that all ranks share is opened by all of them.
        let only = match self.ranks.is_some_of_a_shared_file() {
            true => String::new(),
            false => self.ranks.only(),
        };
        let open = format!("{{ open = {name}{within}{only} }}");
        let close = format!("{{ close = {name}{within}{only} }}");
        if phase == first {
            if self.usage.more_opens > 0 {
                let times = self.usage.more_opens;
                _ = writeln!(text, "  {{ repeat = {times}, commands = [ {open}, {close} ] }},");
            }
            _ = writeln!(text, "  {open},");
        }
        for part in self.usage.parts.iter().filter(|part| part.phase == phase) {
            let verb = match part.direction {
                Direction::Read => "read",
                Direction::Write => "write",
            };
            for group in &part.groups {
                for command in layout.place(part.direction, part.shape, *group) {
                    _ = writeln!(text, "  {},", command.text(verb, &name));
                }
            }
        }
        if phase == last {
            _ = writeln!(text, "  {close},");
        }
    }
}

fn in_words(record: &Record) -> String {
    let words = |way: &Way, verb: &str| {
        (way.calls > 0).then(|| format!("{} {verb} of {}", way.calls, format_bytes(way.bytes)))
    };
    let all = [words(&record.reads, "reads"), words(&record.writes, "writes")];
    let all: Vec<String> = all.into_iter().flatten().collect();
    match all.is_empty() {
        true => format!("{} opens", record.opens),
        false => format!("{} ({})", all.join(", "), record.module),
    }
}

/// Text as TOML has it.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
