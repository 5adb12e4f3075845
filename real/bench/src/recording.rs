//! A recorded run as a pattern: the accesses to one file of a trace, rank by rank.
//!
//! `trace:RUN.iot` takes the file that moved most bytes; `file=END` another one, by how its path
//! ends; `calls=reads` or `writes` only some of its accesses. What counts is what reached the
//! kernel and moved data, in order of time. 16 bytes per access are kept, nothing else.

use iolab_pattern::{Access, Pattern, Recorded};
use iolab_trace::{Class, Event, Layer};
use iolab_traces::Source;
use iolab_vocab::{Extent, Random, Rank, Refusal, Seed};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Which accesses of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Calls {
    #[default]
    All,
    Reads,
    Writes,
}

impl Calls {
    fn parse(text: &str) -> Option<Calls> {
        match text {
            "all" => Some(Calls::All),
            "reads" => Some(Calls::Reads),
            "writes" => Some(Calls::Writes),
            _ => None,
        }
    }

    fn takes(self, class: Class) -> bool {
        match class {
            Class::Read => self != Calls::Writes,
            Class::Write => self != Calls::Reads,
            _ => false,
        }
    }
}

/// What is taken from which trace, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wanted {
    run: PathBuf,
    file: Option<String>,
    calls: Calls,
}

/// The accesses of a recorded run to one file.
#[derive(Clone)]
pub struct Recording {
    /// As written in the plan.
    pub text: String,
    /// How many ranks it was recorded on.
    pub ranks: u32,
    recorded: Recorded,
}

impl Recording {
    /// Reads what `RUN.iot,file=…,calls=…` names.
    ///
    /// # Errors
    /// When the trace cannot be read, or holds no such accesses.
    pub(crate) fn load(spec: &str) -> Result<Recording, Refusal> {
        let wanted = Wanted::parse(spec)?;
        let source = Source::open(&wanted.run)?;
        let file = wanted.choose_file(&source)?;
        let ranks = wanted.accesses(&source, file)?;
        let text = format!("trace:{spec}");
        Ok(Recording { text, ranks: ranks.len() as u32, recorded: Recorded::new(ranks) })
    }

    /// Tells recordings apart that are named alike.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut access = Access::new();
        let mut mixed = u64::from(self.ranks);
        for rank in (0..self.ranks).map(Rank) {
            for index in 0..self.recorded.operations(rank) {
                self.recorded.place(rank, index, &mut access);
                let end = access.file_end();
                mixed = Random::new(Seed(mixed ^ end.rotate_left(32) ^ access.bytes())).bits();
            }
        }
        mixed
    }

    /// The pattern, for exactly as many ranks as were recorded.
    pub(crate) fn make(&self, ranks: u32) -> Result<Box<dyn Pattern>, Refusal> {
        match ranks == self.ranks {
            true => Ok(Box::new(self.recorded.clone())),
            false => Err(Refusal::new(
                format!("{} was recorded on {} ranks, not {ranks}", self.text, self.ranks),
                format!("run it on {} ranks", self.ranks),
            )),
        }
    }
}

impl Wanted {
    fn parse(spec: &str) -> Result<Wanted, Refusal> {
        let mut parts = spec.split(',').map(str::trim);
        let run = parts.next().unwrap_or_default();
        let mut wanted = Wanted { run: run.into(), file: None, calls: Calls::All };
        let wrong = |what: String| {
            Refusal::new(what, "write trace:RUN.iot,file=END-OF-PATH,calls=reads|writes|all")
        };
        if run.is_empty() {
            return Err(wrong("pattern `trace` names no trace".to_owned()));
        }
        for part in parts {
            match part.split_once('=') {
                Some(("file", file)) => wanted.file = Some(file.to_owned()),
                Some(("calls", calls)) => {
                    let unknown = || wrong(format!("there are no calls `{calls}` of a trace"));
                    wanted.calls = Calls::parse(calls).ok_or_else(unknown)?;
                }
                _ => return Err(wrong(format!("`{part}` says nothing about a trace"))),
            }
        }
        Ok(wanted)
    }

    /// All that is taken, event by event.
    fn visit(&self, source: &Source, mut each: impl FnMut(&Event)) -> Result<(), Refusal> {
        source.visit(|event| {
            if self.takes(event) {
                each(event);
            }
        })
    }

    fn takes(&self, event: &Event) -> bool {
        let function = event.function;
        function.layer() == Layer::Posix
            && self.calls.takes(function.class())
            && event.moved_bytes() > 0
            && event.offset >= 0
    }

    /// The file that moved most bytes, among those whose path ends as wanted.
    fn choose_file(&self, source: &Source) -> Result<u32, Refusal> {
        let header = source.header();
        let named = |file: u32| match (&self.file, header.files.get(file as usize)) {
            (Some(end), Some(entry)) => entry.path.ends_with(end.as_str()),
            (wanted, entry) => wanted.is_none() && entry.is_some(),
        };
        let mut bytes: BTreeMap<u32, u64> = BTreeMap::new();
        self.visit(source, |event| {
            if named(event.file.0) {
                *bytes.entry(event.file.0).or_default() += event.moved_bytes();
            }
        })?;
        let most = bytes.into_iter().max_by_key(|&(file, bytes)| (bytes, std::cmp::Reverse(file)));
        most.map(|(file, _)| file).ok_or_else(|| {
            let which = match &self.file {
                Some(end) => format!("a file that ends in `{end}`"),
                None => "any file".to_owned(),
            };
            Refusal::new(
                format!("{} has no such accesses to {which}", self.run.display()),
                "`iolab report` shows the files of a trace and what was done to them",
            )
        })
    }

    /// The accesses to the file: ranks in their order; processes without a rank follow, in theirs.
    fn accesses(&self, source: &Source, file: u32) -> Result<Vec<Vec<Extent>>, Refusal> {
        let mut ranks: BTreeMap<(bool, u32), Vec<(u64, Extent)>> = BTreeMap::new();
        self.visit(source, |event| {
            if event.file.0 == file {
                let rank = u32::try_from(event.rank).ok();
                let key = (rank.is_none(), rank.unwrap_or(event.process));
                let extent = Extent::new(event.offset as u64, event.moved_bytes());
                ranks.entry(key).or_default().push((event.start.0, extent));
            }
        })?;
        let in_time = |mut accesses: Vec<(u64, Extent)>| {
            accesses.sort_by_key(|&(start, _)| start);
            accesses.into_iter().map(|(_, extent)| extent).collect()
        };
        Ok(ranks.into_values().map(in_time).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_trace::{FileEntry, Function, Header, ProcessEntry, Trace};
    use iolab_vocab::{FileId, Nanos};
    use std::fs::File;
    use std::path::Path;

    fn event(rank: i32, file: u32, function: Function, place: (i64, i64), start: u64) -> Event {
        Event {
            rank,
            process: rank.max(0) as u32,
            file: FileId(file),
            offset: place.0,
            length: place.1,
            result: place.1,
            start: Nanos(start),
            end: Nanos(start + 1),
            ..Event::of(function)
        }
    }

    /// Two ranks write a large file and read a small one.
    fn trace(folder: &Path) -> PathBuf {
        let path = folder.join("run.iot");
        let files = ["/data/small", "/data/large"]
            .map(|path| FileEntry { path: path.to_owned(), ..FileEntry::default() });
        let process = |rank| ProcessEntry { rank, ..ProcessEntry::default() };
        let header = Header {
            files: files.into(),
            processes: vec![process(0), process(1)],
            ..Header::default()
        };
        let events = vec![
            event(0, 1, Function::PWRITE, (0, 100), 10),
            event(0, 0, Function::PREAD, (4, 8), 15),
            event(0, 1, Function::PWRITE, (200, 100), 20),
            event(1, 1, Function::PWRITE, (100, 100), 11),
            event(1, 1, Function::PREAD, (0, 50), 30),
        ];
        let file = File::create(&path).expect("a file");
        iolab_iot::write(&Trace { header, events, ..Trace::default() }, file).expect("written");
        path
    }

    fn load(spec: &str) -> Result<Recording, Refusal> {
        Recording::load(spec)
    }

    #[test]
    fn the_accesses_to_the_busiest_file_become_a_pattern_of_the_recorded_ranks() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = trace(folder.path());
        let recording = load(path.to_str().expect("plain")).expect("a recording");
        let pattern = recording.make(2).expect("two ranks");
        assert_eq!((pattern.operations(Rank(0)), pattern.operations(Rank(1))), (2, 2));
        assert_eq!((pattern.file_bytes(), pattern.memory_bytes()), (300, 100));
        let error = recording.make(4).err().expect("recorded on two");
        assert!(error.message.contains("2 ranks, not 4"), "{}", error.message);
    }

    #[test]
    fn the_trace_of_another_tool_becomes_a_pattern_as_well() {
        let log = "../../samples/darshan/mpi-io-test-x86_64-3.1.3.darshan";
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(log);
        let writes = load(&format!("{},calls=writes", path.display())).expect("a recording");
        let pattern = writes.make(4).expect("four ranks");
        assert_eq!(pattern.file_bytes(), 64 << 20);
    }

    #[test]
    fn a_file_and_a_kind_of_call_can_be_chosen_and_what_is_not_there_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = trace(folder.path());
        let run = path.to_str().expect("plain");
        let small = load(&format!("{run},file=small")).expect("a recording");
        assert_eq!(small.make(1).expect("one rank").file_bytes(), 12);
        let reads = load(&format!("{run},file=large,calls=reads")).expect("a recording");
        assert_eq!(reads.make(1).expect("one rank").file_bytes(), 50);
        for (spec, offender) in [
            (format!("{run},file=none"), "`none`"),
            (format!("{run},file=small,calls=writes"), "no such accesses"),
            (format!("{run},calls=some"), "`some`"),
            (format!("{run},colour=red"), "colour=red"),
            (String::new(), "names no trace"),
            ("/nowhere/run.iot".to_owned(), "/nowhere/run.iot"),
        ] {
            let error = load(&spec).err().expect("refused");
            assert!(error.message.contains(offender), "{spec}: {}", error.message);
        }
    }
}
