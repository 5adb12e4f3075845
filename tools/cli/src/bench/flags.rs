//! The flags of `iolab bench`, and the plan they make.

use crate::failure::Failure;
use clap::Args;
use iolab_bench::Plan;
use iolab_vocab::parse_bytes;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// What can be said on the command line about a run.
#[derive(Args)]
pub(crate) struct Flags {
    /// Pattern as name:key=value,… or trace:RUN.iot; may be repeated. `--list` shows all.
    #[arg(short, long, value_name = "PATTERN", help_heading = "What")]
    pattern: Vec<String>,
    /// write, read, read-modify-write, read-then-write, re-read, re-write, mixed, metadata.
    #[arg(long, value_delimiter = ',', help_heading = "What")]
    temporal: Vec<String>,
    /// Write (IOR).
    #[arg(short, help_heading = "What")]
    write: bool,
    /// Read (IOR).
    #[arg(short, help_heading = "What")]
    read: bool,
    /// Bytes of a rank in one segment: a strip (IOR's block).
    #[arg(short, value_name = "BLOCK", help_heading = "What")]
    block: Option<String>,
    /// Bytes of one operation (IOR's transfer).
    #[arg(short, value_name = "TRANSFER", help_heading = "What")]
    transfer: Option<String>,
    /// How many segments (IOR).
    #[arg(short, value_name = "SEGMENTS", help_heading = "What")]
    segments: Option<u64>,
    /// Blocks in random order (IOR).
    #[arg(short = 'z', help_heading = "What")]
    random: bool,
    /// Sizes to sweep: replaces the size parameter of the pattern.
    #[arg(long, value_delimiter = ',', help_heading = "What")]
    sizes: Vec<String>,
    /// Share of reads of the mixed temporal pattern.
    #[arg(long, help_heading = "What")]
    read_share: Option<f64>,
    /// Files per rank of metadata operations.
    #[arg(long, help_heading = "What")]
    files: Option<u64>,

    /// Access method; may be repeated. IOR's POSIX, MPIIO and DUMMY are understood.
    #[arg(short = 'a', long, value_delimiter = ',', help_heading = "How")]
    method: Vec<String>,
    /// Collective MPI-IO (IOR).
    #[arg(short = 'c', help_heading = "How")]
    collective: bool,
    /// Directory of the file system that the methods pfs and pfs-collective use. [default: $IOLAB_FS]
    #[arg(long, value_name = "DIR", help_heading = "How")]
    file_system: Option<String>,
    /// Predict on this platform (a file or a preset) instead of running: methods sim and
    /// sim-collective.
    #[arg(long, value_name = "PLATFORM", help_heading = "How")]
    platform: Option<String>,
    /// A file per rank.
    #[arg(short = 'F', long, help_heading = "How")]
    file_per_rank: bool,
    /// Ranks read what their neighbour wrote.
    #[arg(short = 'C', long, help_heading = "How")]
    reorder: bool,
    /// Operations under way at once (uring, nonblocking).
    #[arg(long, help_heading = "How")]
    depth: Option<usize>,
    /// MPI-IO: one file view for the whole rank.
    #[arg(long, help_heading = "How")]
    view: bool,
    /// Bytes before the first byte of the pattern.
    #[arg(long, value_name = "BYTES", help_heading = "How")]
    header: Option<String>,
    /// A hint for MPI-IO, key=value; may be repeated.
    #[arg(long, value_name = "KEY=VALUE", help_heading = "How")]
    hint: Vec<String>,

    /// The file to write and read; the run makes it and removes it afterwards, and nothing else may
    /// lie there.
    #[arg(short = 'o', long, value_name = "FILE", help_heading = "Run")]
    target: Option<PathBuf>,
    /// Read files that exist as they are, of an earlier run with -k perhaps; they are not cut and
    /// not removed (IOR).
    #[arg(short = 'E', long, help_heading = "Run")]
    existing: bool,
    /// Write over files that exist; they are not removed.
    #[arg(long, help_heading = "Run")]
    overwrite: bool,
    /// Local ranks, started by iolab itself. Under mpiexec its number counts.
    #[arg(short = 'N', long, help_heading = "Run")]
    pub(crate) ranks: Option<u32>,
    /// Local ranks are threads instead of processes.
    #[arg(long, help_heading = "Run")]
    pub(crate) threads: bool,
    /// How often every phase is run.
    #[arg(short = 'i', long, help_heading = "Run")]
    repetitions: Option<u32>,
    /// Leave the files.
    #[arg(short, long, help_heading = "Run")]
    keep: bool,
    /// Bring what was written to the device within the timed phase (IOR; the default).
    #[arg(short = 'e', long, help_heading = "Run")]
    sync: bool,
    /// Do not wait for the device within the timed phase.
    #[arg(long, conflicts_with = "sync", help_heading = "Run")]
    no_sync: bool,
    /// Read everything back and compare, outside the timed phase.
    #[arg(short = 'R', long, help_heading = "Run")]
    verify: bool,
    /// Caches before a timed read: cold, warm, or direct (O_DIRECT throughout).
    #[arg(long, help_heading = "Run")]
    cache: Option<String>,
    /// Seconds of rest before a phase.
    #[arg(long, help_heading = "Run")]
    settle: Option<f64>,
    /// Seconds until the ranks agree on a count and stop.
    #[arg(short = 'D', long, help_heading = "Run")]
    time_limit: Option<f64>,
    /// Seed of every random choice and of the data.
    #[arg(long, help_heading = "Run")]
    pub(crate) seed: Option<u64>,
    /// Write every single operation to this file, as Parquet; after each phase, not within.
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    records: Option<PathBuf>,
    /// Do not take the latency of every operation.
    #[arg(long, help_heading = "Run")]
    no_latencies: bool,
}

impl Flags {
    /// The plan of the file with what the flags say over it, or of the flags alone.
    pub(crate) fn plan(&self, file: Option<&Path>) -> Result<Plan, Failure> {
        let read = file.map(read_plan).transpose()?;
        let mut table = with_globals(read, |global| self.put_globals(global));
        if file.is_none() {
            table.insert("test".to_owned(), Value::Array(vec![Value::Table(self.test()?)]));
        } else if self.says_a_test() {
            return Err(Failure::new("a plan file and flags for a single test were given")
                .hint("give either; flags for the run (-o, -N, -i, …) go with both"));
        }
        let text = toml::to_string(&table).map_err(Failure::new)?;
        let mut plan = Plan::parse(&text).map_err(|error| Failure::of_file(file, error))?;
        // As they were given: TOML has no words for names that are no Unicode.
        plan.target = self.target.clone().unwrap_or(plan.target);
        plan.records = self.records.clone().or(plan.records);
        Ok(plan)
    }

    fn says_a_test(&self) -> bool {
        let lists = [&self.pattern, &self.temporal, &self.sizes, &self.method, &self.hint];
        let words = [&self.block, &self.transfer, &self.header];
        lists.iter().any(|list| !list.is_empty())
            || words.iter().any(|word| word.is_some())
            || self.write
            || self.read
            || self.collective
            || self.random
    }

    fn put_globals(&self, global: &mut Table) {
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                global.insert(key.to_owned(), value);
            }
        };
        let number = |n: u64| Value::Integer(i64::try_from(n).unwrap_or(i64::MAX));
        let flag = |on: bool, value: bool| on.then_some(Value::Boolean(value));
        put("target", self.target.as_ref().map(|p| Value::String(p.display().to_string())));
        put("file-system", self.file_system.clone().map(Value::String));
        put("platform", self.platform.clone().map(Value::String));
        put("records", self.records.as_ref().map(|p| Value::String(p.display().to_string())));
        put("ranks", self.ranks.map(|n| number(n.into())));
        put("repetitions", self.repetitions.map(|n| number(n.into())));
        put("seed", self.seed.map(number));
        put("keep", flag(self.keep, true));
        put("existing", flag(self.existing, true));
        put("overwrite", flag(self.overwrite, true));
        put("sync", flag(self.sync, true).or(flag(self.no_sync, false)));
        put("verify", flag(self.verify, true));
        put("latencies", flag(self.no_latencies, false));
        put("cache", self.cache.clone().map(Value::String));
        put("settle", self.settle.map(Value::Float));
        put("time-limit", self.time_limit.map(Value::Float));
    }

    fn test(&self) -> Result<Table, Failure> {
        let mut test = Table::new();
        let mut put = |key: &str, value: Value| _ = test.insert(key.to_owned(), value);
        let texts = |list: &[String]| {
            Value::Array(list.iter().cloned().map(Value::String).collect::<Vec<_>>())
        };
        put("spatial", texts(&self.patterns()?));
        put("temporal", texts(&self.temporals()));
        put("method", texts(&self.methods()));
        put("sizes", texts(&self.sizes));
        put("file-per-rank", Value::Boolean(self.file_per_rank));
        put("reorder", Value::Boolean(self.reorder));
        put("view", Value::Boolean(self.view));
        if let Some(share) = self.read_share {
            put("read-share", Value::Float(share));
        }
        if let Some(files) = self.files {
            put("files", Value::Integer(i64::try_from(files).unwrap_or(i64::MAX)));
        }
        if let Some(depth) = self.depth {
            put("depth", Value::Integer(i64::try_from(depth).unwrap_or(i64::MAX)));
        }
        if let Some(header) = &self.header {
            put("header", Value::String(header.clone()));
        }
        let mut hints = Table::new();
        for hint in &self.hint {
            let (key, value) = hint.split_once('=').ok_or_else(|| {
                Failure::new(format!("hint `{hint}` has no value")).hint("write --hint key=value")
            })?;
            hints.insert(key.to_owned(), Value::String(value.to_owned()));
        }
        put("hints", Value::Table(hints));
        Ok(test)
    }

    /// The patterns given, else the geometry that IOR's letters describe.
    fn patterns(&self) -> Result<Vec<String>, Failure> {
        let letters = self.block.is_some() || self.transfer.is_some() || self.segments.is_some();
        if !self.pattern.is_empty() {
            return match letters || self.random {
                false => Ok(self.pattern.clone()),
                true => Err(Failure::new("-p and -b, -t, -s or -z were given")
                    .hint("put sizes into the pattern, as in -p strided:strip=1m,request=64k")),
            };
        }
        let size = |text: &Option<String>, otherwise: u64| match text {
            Some(text) => parse_bytes(text).map_err(Failure::new),
            None => Ok(otherwise),
        };
        // IOR's defaults: blocks of 1 MiB, transfers of 256 KiB, one segment.
        let block = size(&self.block, 1 << 20)?;
        let transfer = size(&self.transfer, (256 << 10).min(block))?;
        let segments = self.segments.unwrap_or(1);
        if transfer == 0 || block < transfer {
            return Err(Failure::new(format!(
                "a block of {block} holds no transfer of {transfer}"
            ))
            .hint("make -b a multiple of -t"));
        }
        let count = (block / transfer).saturating_mul(segments);
        Ok(vec![match self.random {
            true => format!("random-blocks:block={transfer},count={count}"),
            false => format!("strided:strip={block},stripes={segments},request={transfer}"),
        }])
    }

    fn temporals(&self) -> Vec<String> {
        let letters = [(self.write, "write"), (self.read, "read")];
        let mut list = self.temporal.clone();
        list.extend(letters.iter().filter(|(on, _)| *on).map(|(_, name)| (*name).to_owned()));
        if list.is_empty() {
            list = vec!["write".to_owned(), "read".to_owned()];
        }
        list
    }

    fn methods(&self) -> Vec<String> {
        let mpi = if self.collective { "collective" } else { "independent" };
        let name = |text: &String| match text.to_ascii_uppercase().as_str() {
            "MPIIO" => mpi.to_owned(),
            "DUMMY" => "null".to_owned(),
            "POSIX" => "posix".to_owned(),
            _ => text.clone(),
        };
        match (self.method.is_empty(), self.collective) {
            (true, collective) if self.platform.is_some() => {
                vec![if collective { "sim-collective" } else { "sim" }.to_owned()]
            }
            (true, true) => vec![mpi.to_owned()],
            (true, false) => vec!["posix".to_owned()],
            _ => self.method.iter().map(name).collect(),
        }
    }
}

/// The plan that was read, or an empty one, with what `put` lays over its global part.
pub(crate) fn with_globals(read: Option<Table>, put: impl FnOnce(&mut Table)) -> Table {
    let mut table = read.unwrap_or_default();
    let global = table.entry("global").or_insert_with(|| Value::Table(Table::new()));
    if let Value::Table(global) = global {
        put(global);
    }
    table
}

fn read_plan(file: &Path) -> Result<Table, Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        Failure::new(format!("cannot read {}: {error}", file.display()))
            .hint("`iolab bench --template` prints a plan to start from")
    })?;
    let wrong = |message: &str, hint: &str| {
        Failure::new(format!("{}: {message}", file.display())).hint(hint)
    };
    Plan::check_form(&text).map_err(|error| wrong(&error.message, &error.hint))?;
    text.parse::<Table>().map_err(|error| wrong(&error.to_string(), "see --template"))
}
