//! The flags of `iolab overlap`, and the plan they make.

use crate::bench::flags::with_globals;
use crate::failure::Failure;
use clap::Args;
use iolab_bench::OverlapPlan;
use iolab_vocab::parse_bytes;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// What can be said on the command line about a run.
#[derive(Args)]
pub(crate) struct Flags {
    /// Bytes of one operation (of a strided pattern). 0: nothing is moved, nothing can overlap.
    #[arg(short, long, conflicts_with = "pattern", help_heading = "What")]
    bytes: Option<String>,
    /// A pattern instead, as for `iolab bench`; may be repeated.
    #[arg(short, long, help_heading = "What")]
    pattern: Vec<String>,
    /// write, read, or both.
    #[arg(long, value_delimiter = ',', help_heading = "What")]
    direction: Vec<String>,
    /// Compute time over I/O time; 0 is I/O alone. [default: 1]
    #[arg(long, value_delimiter = ',', help_heading = "What")]
    ratio: Vec<f64>,
    /// Compute over I/O from 0.1 to 10.
    #[arg(long, conflicts_with = "ratio", help_heading = "What")]
    sweep: bool,
    /// No I/O at all: the sanity check that computation alone gives 1.
    #[arg(long, help_heading = "What")]
    compute_only: bool,

    /// Access methods, as for `iolab bench`. [default: posix]
    #[arg(short = 'a', long, value_delimiter = ',', help_heading = "How")]
    method: Vec<String>,
    /// thread: a helper thread around the blocking call; native: what the method offers (uring,
    /// aio, nonblocking, nonblocking-collective). [default: thread]
    #[arg(long, value_delimiter = ',', help_heading = "How")]
    way: Vec<String>,
    /// Ask for progress (MPI_Test) while computing.
    #[arg(long, help_heading = "How")]
    poll: bool,
    /// Around the page cache (O_DIRECT).
    #[arg(long, help_heading = "How")]
    direct: bool,
    /// MPI-IO: one file view for the whole rank.
    #[arg(long, help_heading = "How")]
    view: bool,
    /// Slow the device to this many bytes per second.
    #[arg(long, value_name = "BYTES", help_heading = "How")]
    throttle: Option<String>,
    /// A hint for MPI-IO, key=value; may be repeated.
    #[arg(long, value_name = "KEY=VALUE", help_heading = "How")]
    hint: Vec<String>,

    /// Operations per phase. [default: 20]
    #[arg(long, help_heading = "Run")]
    count: Option<u64>,
    /// Untimed operations before, to fill caches and servers. [default: 5]
    #[arg(long, help_heading = "Run")]
    fill: Option<u64>,
    /// Repetitions of each ratio. [default: 3]
    #[arg(short = 'i', long, help_heading = "Run")]
    repetitions: Option<u32>,
    /// Calibration tries at least. [default: 3]
    #[arg(long, help_heading = "Run")]
    min_tries: Option<u32>,
    /// Calibration tries at most. [default: 20]
    #[arg(long, help_heading = "Run")]
    max_tries: Option<u32>,
    /// Calibration ends when every rank is this near. [default: 0.05]
    #[arg(long, help_heading = "Run")]
    margin: Option<f64>,
    /// Seconds of rest between calibration and the phases.
    #[arg(long, help_heading = "Run")]
    settle: Option<f64>,
    /// Local ranks; under mpiexec its number counts. [default: 1]
    #[arg(short = 'N', long, help_heading = "Run")]
    ranks: Option<u32>,
    /// Seed of patterns and data.
    #[arg(long, help_heading = "Run")]
    seed: Option<u64>,
    /// The file; the run makes it and removes it afterwards, and nothing else may lie there.
    #[arg(short = 'o', long, value_name = "FILE", help_heading = "Run")]
    target: Option<PathBuf>,
    /// Read a file that exists as it is; it is not cut and not removed.
    #[arg(short = 'E', long, help_heading = "Run")]
    existing: bool,
    /// Write over a file that exists; it is not removed.
    #[arg(long, help_heading = "Run")]
    overwrite: bool,
}

impl Flags {
    /// The plan of the file with what the flags say over it, or of the flags alone.
    pub(super) fn plan(&self, file: Option<&Path>) -> Result<OverlapPlan, Failure> {
        let read = file.map(read_plan).transpose()?;
        let mut table = with_globals(read, |global| self.put_globals(global));
        let test = self.test()?;
        match file {
            None => drop(table.insert("test".to_owned(), Value::Array(vec![test.into()]))),
            Some(_) if !test.is_empty() => {
                return Err(Failure::new("a plan file and flags for a single test were given")
                    .hint("give either; flags for the run (-o, -N, -i, …) go with both"));
            }
            Some(_) => {}
        }
        let text = toml::to_string(&table).map_err(Failure::new)?;
        let mut plan = OverlapPlan::parse(&text).map_err(|error| Failure::of_file(file, error))?;
        // As it was given: TOML has no words for names that are no Unicode.
        plan.target = self.target.clone().unwrap_or(plan.target);
        Ok(plan)
    }

    fn put_globals(&self, global: &mut Table) {
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                global.insert(key.to_owned(), value);
            }
        };
        let number = |n: u64| Value::Integer(i64::try_from(n).unwrap_or(i64::MAX));
        put("target", self.target.as_ref().map(|path| Value::String(path.display().to_string())));
        put("existing", self.existing.then_some(Value::Boolean(true)));
        put("overwrite", self.overwrite.then_some(Value::Boolean(true)));
        put("repetitions", self.repetitions.map(|n| number(n.into())));
        put("ranks", self.ranks.map(|n| number(n.into())));
        put("seed", self.seed.map(number));
        put("count", self.count.map(number));
        put("fill", self.fill.map(number));
        put("min-tries", self.min_tries.map(|n| number(n.into())));
        put("max-tries", self.max_tries.map(|n| number(n.into())));
        put("margin", self.margin.map(Value::Float));
        put("settle", self.settle.map(Value::Float));
    }

    /// The one test that the flags say; empty when they say none.
    fn test(&self) -> Result<Table, Failure> {
        let mut test = Table::new();
        let texts = |list: &[String]| list.iter().cloned().map(Value::String).collect::<Vec<_>>();
        let lists = [
            ("spatial", &self.pattern),
            ("direction", &self.direction),
            ("method", &self.method),
            ("way", &self.way),
        ];
        for (key, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
            test.insert(key.to_owned(), texts(list).into());
        }
        if !self.ratio.is_empty() {
            test.insert("ratio".to_owned(), self.ratio.clone().into());
        }
        let switches = [
            ("sweep", self.sweep),
            ("poll", self.poll),
            ("direct", self.direct),
            ("view", self.view),
        ];
        for (key, _) in switches.into_iter().filter(|(_, on)| *on) {
            test.insert(key.to_owned(), true.into());
        }
        test.extend(self.throttle.iter().map(|rate| ("throttle".to_owned(), rate.clone().into())));
        self.put_load(&mut test)?;
        self.put_hints(&mut test)?;
        Ok(test)
    }

    /// Zero bytes are no pattern, but a load.
    fn put_load(&self, test: &mut Table) -> Result<(), Failure> {
        let bytes =
            self.bytes.as_deref().map(parse_bytes).transpose().map_err(|error| {
                Failure::new(format!("--bytes: {error}")).hint("as in --bytes 64k")
            })?;
        let load = match bytes {
            Some(0) => Some("zero-bytes"),
            _ if self.compute_only => Some("none"),
            _ => None,
        };
        test.extend(load.map(|load| ("load".to_owned(), load.into())));
        if let Some(bytes) = bytes.filter(|&bytes| bytes > 0) {
            let stripes = self.count.unwrap_or(20).saturating_add(self.fill.unwrap_or(5));
            let spec = format!("strided:strip={bytes},stripes={}", stripes.clamp(1, 256));
            test.insert("spatial".to_owned(), spec.into());
        }
        Ok(())
    }

    fn put_hints(&self, test: &mut Table) -> Result<(), Failure> {
        let mut hints = Table::new();
        for hint in &self.hint {
            let (key, value) = hint.split_once('=').ok_or_else(|| {
                Failure::new(format!("`{hint}` is no hint")).hint("as in --hint cb_nodes=2")
            })?;
            hints.insert(key.to_owned(), value.into());
        }
        if !hints.is_empty() {
            test.insert("hints".to_owned(), hints.into());
        }
        Ok(())
    }
}

fn read_plan(file: &Path) -> Result<Table, Failure> {
    let hint = "`iolab overlap --template` prints a plan to start from";
    let text = std::fs::read_to_string(file).map_err(|error| {
        Failure::new(format!("cannot read {}: {error}", file.display())).hint(hint)
    })?;
    let table = text.parse::<Table>();
    table.map_err(|error| Failure::new(format!("{}: {error}", file.display())).hint(hint))
}
