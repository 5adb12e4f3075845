//! Which file and which process of one run is which of the other.
//!
//! Files go by path, by path below the directory the run was started in, by the last names of the path, by
//! the path with its numbers left out (scratch directories, process numbers), by what was done to them, and
//! at last those alone in their directory with calls of the same functions. Processes go by rank, else by command line, else by program; several of one kind in
//! the order of their beginning.

use super::calls::{Numbering, own};
use super::mixed;
use iolab_trace::{ProcessEntry, Trace};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// How the files and processes of one run are numbered in terms of another, which keeps its own numbers.
#[derive(Clone, Debug)]
pub(super) struct Pairing {
    pub(super) numbering: Numbering,
    /// Files of the two runs that are one although their paths differ.
    pub(super) renamed: Vec<(usize, usize)>,
    /// How many files both have.
    pub(super) common_files: usize,
}

/// What is left to be paired, in order.
struct Left {
    a: Vec<usize>,
    b: Vec<usize>,
    pairs: Vec<(usize, usize)>,
}

impl Left {
    /// Pairs what has the same key: the first with the first, or only what each side has once.
    fn pair<K: Ord>(
        &mut self,
        is_unique: bool,
        of_a: impl Fn(usize) -> Option<K>,
        of_b: impl Fn(usize) -> Option<K>,
    ) {
        let mut by_key: BTreeMap<K, [Vec<usize>; 2]> = BTreeMap::new();
        for (side, (all, of)) in [
            (&self.a, &of_a as &dyn Fn(usize) -> Option<K>),
            (&self.b, &of_b as &dyn Fn(usize) -> Option<K>),
        ]
        .into_iter()
        .enumerate()
        {
            for &one in all {
                if let Some(key) = of(one) {
                    by_key.entry(key).or_default()[side].push(one);
                }
            }
        }
        let fits =
            |sides: &&[Vec<usize>; 2]| !is_unique || sides.iter().all(|side| side.len() == 1);
        let mut found = Vec::new();
        for [of_a, of_b] in by_key.values().filter(fits) {
            found.extend(of_a.iter().copied().zip(of_b.iter().copied()));
        }
        let (taken_a, taken_b): (BTreeSet<usize>, BTreeSet<usize>) = found.iter().copied().unzip();
        self.a.retain(|one| !taken_a.contains(one));
        self.b.retain(|one| !taken_b.contains(one));
        self.pairs.extend(found);
    }
}

/// The numbers of the reference run itself.
pub(super) fn identity(trace: &Trace) -> Numbering {
    let count = |count: usize| (0..count as u32).collect();
    let processes = trace.events.iter().map(|event| event.process as usize + 1).max().unwrap_or(0);
    let processes = trace.header.processes.len().max(processes);
    Numbering { files: count(trace.header.files.len()), processes: count(processes) }
}

/// Pairs the files and processes of `b` with those of `a`.
pub(super) fn pair(a: &Trace, b: &Trace) -> Pairing {
    let (files, processes) = (files(a, b), processes(a, b));
    let numbered = |pairs: &[(usize, usize)], count_a: usize, count_b: usize| {
        // What only the second run has comes after all of the first.
        let mut numbers: Vec<u32> = (count_a..count_a + count_b).map(|at| at as u32).collect();
        for &(one, other) in pairs {
            numbers[other] = one as u32;
        }
        numbers
    };
    let (own_a, own_b) = (identity(a), identity(b));
    let path = |trace: &Trace, file: usize| trace.header.files[file].path.clone();
    let renamed = files.iter().filter(|(one, other)| path(a, *one) != path(b, *other));
    Pairing {
        numbering: Numbering {
            files: numbered(&files, own_a.files.len(), own_b.files.len()),
            processes: numbered(&processes, own_a.processes.len(), own_b.processes.len()),
        },
        renamed: renamed.copied().collect(),
        common_files: files.len(),
    }
}

fn files(a: &Trace, b: &Trace) -> Vec<(usize, usize)> {
    let deeds = [deeds(a), deeds(b)];
    let used = |deeds: &BTreeMap<usize, Deeds>| {
        let mut files: Vec<usize> = deeds.keys().copied().collect();
        files.sort_by_key(|file| deeds[file].row);
        files
    };
    let mut left = Left { a: used(&deeds[0]), b: used(&deeds[1]), pairs: Vec::new() };
    let of = |trace: &'_ Trace, file: usize| trace.header.files[file].path.clone();
    left.pair(false, |file| Some(of(a, file)), |file| Some(of(b, file)));
    let below = |trace: &Trace, file: usize| {
        let path = of(trace, file);
        let below = Path::new(&path).strip_prefix(&trace.header.working_directory).ok()?;
        Some(below.to_path_buf())
    };
    left.pair(false, |file| below(a, file), |file| below(b, file));
    for names in [3, 2, 1] {
        let ending = |path: String| {
            let parts: Vec<String> = path.rsplit('/').take(names).map(str::to_owned).collect();
            (parts.len() == names && !parts[0].is_empty()).then_some(parts)
        };
        left.pair(true, |file| ending(of(a, file)), |file| ending(of(b, file)));
    }
    let class = |path: String| Some(without_numbers(&path));
    left.pair(false, |file| class(of(a, file)), |file| class(of(b, file)));
    let print = |deeds: &BTreeMap<usize, Deeds>, file| Some(deeds.get(&file)?.print);
    left.pair(false, |file| print(&deeds[0], file), |file| print(&deeds[1], file));
    let beside = |deeds: &BTreeMap<usize, Deeds>, path: String, file| {
        let directory = Path::new(&path).parent()?.to_path_buf();
        Some((directory, deeds.get(&file)?.functions.clone()))
    };
    left.pair(
        true,
        |file| beside(&deeds[0], of(a, file), file),
        |file| beside(&deeds[1], of(b, file), file),
    );
    left.pairs
}

/// What was done to a file.
#[derive(Default)]
struct Deeds {
    /// A fingerprint of its calls in their order.
    print: u64,
    /// When first.
    row: usize,
    functions: BTreeSet<u16>,
}

fn deeds(trace: &Trace) -> BTreeMap<usize, Deeds> {
    let mut deeds: BTreeMap<usize, Deeds> = BTreeMap::new();
    for (row, event) in own(trace) {
        let Some(file) = event.file.index().filter(|&file| file < trace.header.files.len()) else {
            continue;
        };
        let deed = deeds.entry(file).or_insert_with(|| Deeds { row, ..Deeds::default() });
        let parts = [u64::from(event.function.0), event.offset as u64, event.moved_bytes()];
        deed.print = parts.into_iter().fold(deed.print, mixed);
        deed.functions.insert(event.function.0);
    }
    deeds
}

/// The path with every run of digits as one sign.
fn without_numbers(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for character in path.chars() {
        match character.is_ascii_digit() {
            true if text.ends_with('#') => {}
            true => text.push('#'),
            false => text.push(character),
        }
    }
    text
}

fn processes(a: &Trace, b: &Trace) -> Vec<(usize, usize)> {
    let of = |trace: &Trace| {
        let mut used: BTreeSet<usize> =
            own(trace).map(|(_, event)| event.process as usize).collect();
        used.retain(|&process| process < trace.header.processes.len());
        let mut used: Vec<usize> = used.into_iter().collect();
        used.sort_by_key(|&process| trace.header.processes[process].start_ns);
        used
    };
    let mut left = Left { a: of(a), b: of(b), pairs: Vec::new() };
    let entry = |trace: &'_ Trace, process: usize| trace.header.processes[process].clone();
    let ranked = |entry: ProcessEntry| (entry.rank >= 0).then(|| (entry.rank, program(&entry)));
    left.pair(false, |one| ranked(entry(a, one)), |one| ranked(entry(b, one)));
    let rank = |entry: ProcessEntry| (entry.rank >= 0).then_some(entry.rank);
    left.pair(false, |one| rank(entry(a, one)), |one| rank(entry(b, one)));
    let command = |entry: ProcessEntry| (entry.rank < 0).then_some((entry.command, entry.name));
    left.pair(false, |one| command(entry(a, one)), |one| command(entry(b, one)));
    let kind = |entry: ProcessEntry| (entry.rank < 0).then(|| program(&entry));
    left.pair(false, |one| kind(entry(a, one)), |one| kind(entry(b, one)));
    let any = |entry: ProcessEntry| (entry.rank < 0).then_some(());
    left.pair(true, |one| any(entry(a, one)), |one| any(entry(b, one)));
    left.pairs
}

/// Name of the program, without its directory.
fn program(entry: &ProcessEntry) -> String {
    let named = entry.command.first().map_or(entry.name.as_str(), String::as_str);
    without_numbers(named.rsplit('/').next().unwrap_or(named))
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_trace::{Event, FileEntry, Function, Header};
    use iolab_vocab::FileId;

    fn run(directory: &str, paths: &[&str], lengths: &[i64]) -> Trace {
        let entry = |path: &&str| FileEntry { path: path.to_string(), ..FileEntry::default() };
        let header = Header {
            working_directory: directory.to_owned(),
            files: paths.iter().map(entry).collect(),
            processes: vec![ProcessEntry::default()],
            ..Header::default()
        };
        let event = |(file, &length): (usize, &i64)| Event {
            file: FileId(file as u32),
            length,
            result: length,
            ..Event::of(Function::WRITE)
        };
        Trace {
            header,
            events: lengths.iter().enumerate().map(event).collect(),
            ..Trace::default()
        }
    }

    #[test]
    fn files_are_found_again_under_other_names() {
        let a = run(
            "/a",
            &["/etc/x", "/a/out/1", "/t/etilqs_Xq", "/p/s.12/log", "/q/only"],
            &[1, 2, 77, 4, 5],
        );
        let b = run("/b", &["/p/s.9987/log", "/b/out/1", "/t/etilqs_kA", "/etc/x"], &[4, 9, 77, 1]);
        let found = pair(&a, &b);
        assert_eq!(found.numbering.files, [3, 1, 2, 0]);
        assert_eq!((found.common_files, found.renamed.len()), (4, 3));
    }

    #[test]
    fn files_that_nothing_joins_stay_apart() {
        let found = pair(&run("", &["/a/x"], &[1]), &run("", &["/b/y"], &[2]));
        assert_eq!((found.common_files, found.numbering.files[0]), (0, 1));
    }

    #[test]
    fn ranks_are_paired_by_number_and_other_processes_by_what_they_run() {
        let process = |rank: i32, program: &str| ProcessEntry {
            rank,
            command: vec![program.to_owned()],
            ..ProcessEntry::default()
        };
        let trace = |processes: Vec<ProcessEntry>| {
            let event = |process| Event { process, ..Event::of(Function::WRITE) };
            let events = (0..processes.len() as u32).map(event).collect();
            Trace { header: Header { processes, ..Header::default() }, events, ..Trace::default() }
        };
        let a = trace(vec![process(-1, "sh"), process(0, "/x/s"), process(1, "/x/s")]);
        let b = trace(vec![process(1, "/y/s"), process(2, "/y/s"), process(-1, "sh")]);
        assert_eq!(pair(&a, &b).numbering.processes, [2, 4, 0]);
    }
}
