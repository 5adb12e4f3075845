//! Plans: what is to be run, from TOML or from flags.
//!
//! `[global]` says where and how often; every `[[test]]` names spatial patterns, temporal patterns
//! and methods (one or a list each) and the sizes to sweep; their product is the list of
//! [`Case`]s. A value that exists here is valid: names, sizes and patterns are checked while
//! resolving, and what is wrong is named with its test.

use crate::cache::CacheState;
use crate::manner::Manner;
use crate::spatial::{Spatial, SpatialText};
use iolab_backend::{Catalog as Methods, Method, Needs};
use iolab_pattern::Pattern;
use iolab_vocab::{Rank, Refusal, Seed, parse_bytes};
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What is done to the data, and what of it is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Temporal {
    Write,
    Read,
    /// Read a buffer, write it back changed, next buffer.
    ReadModifyWrite,
    /// Read the whole pattern, then write all of it.
    ReadThenWrite,
    /// Read twice; the second time is the result.
    ReRead,
    /// Write twice; the second time is the result.
    ReWrite,
    /// Reads and writes in one phase, by a given share.
    Mixed,
    /// Create, stat, open and close, unlink, make and remove directories.
    Metadata,
}

impl Temporal {
    /// All of them, in the order of documentation.
    pub const ALL: [Temporal; 8] = [
        Temporal::Write,
        Temporal::Read,
        Temporal::ReadModifyWrite,
        Temporal::ReadThenWrite,
        Temporal::ReRead,
        Temporal::ReWrite,
        Temporal::Mixed,
        Temporal::Metadata,
    ];

    /// Whether any phase of it writes.
    pub(crate) fn writes(self) -> bool {
        !matches!(self, Temporal::Read | Temporal::ReRead)
    }

    /// Name on the command line and in plans.
    pub fn name(self) -> &'static str {
        match self {
            Temporal::Write => "write",
            Temporal::Read => "read",
            Temporal::ReadModifyWrite => "read-modify-write",
            Temporal::ReadThenWrite => "read-then-write",
            Temporal::ReRead => "re-read",
            Temporal::ReWrite => "re-write",
            Temporal::Mixed => "mixed",
            Temporal::Metadata => "metadata",
        }
    }
}

#[derive(Clone, Debug, Serialize, PartialEq)]
#[serde(untagged)]
pub(crate) enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

/// Not derived: that would say of a wrong word only that nothing matched.
impl<'de, T: DeserializeOwned> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<OneOrMany<T>, D::Error> {
        let read = match toml::Value::deserialize(source)? {
            toml::Value::Array(list) => {
                let list: Result<_, _> = list.into_iter().map(toml::Value::try_into).collect();
                list.map(OneOrMany::Many)
            }
            one => one.try_into().map(OneOrMany::One),
        };
        read.map_err(|error| D::Error::custom(error.message()))
    }
}

impl<T: Clone> OneOrMany<T> {
    pub(crate) fn list(&self) -> Vec<T> {
        match self {
            OneOrMany::One(one) => vec![one.clone()],
            OneOrMany::Many(many) => many.clone(),
        }
    }
}

/// A size: a number of bytes, or text with a suffix.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(untagged)]
pub(crate) enum SizeText {
    Number(u64),
    Text(String),
}

impl SizeText {
    pub(crate) fn bytes(&self, what: &str) -> Result<u64, Refusal> {
        match self {
            SizeText::Number(bytes) => Ok(*bytes),
            SizeText::Text(text) => parse_bytes(text)
                .map_err(|error| Refusal::new(format!("{what}: {error}"), "as in \"64k\"")),
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct GlobalText {
    target: PathBuf,
    repetitions: u32,
    ranks: u32,
    seed: u64,
    settle: f64,
    sync: bool,
    verify: bool,
    keep: bool,
    existing: bool,
    overwrite: bool,
    cache: CacheState,
    latencies: bool,
    time_limit: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    records: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_system: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    platform: Option<String>,
}

impl Default for GlobalText {
    fn default() -> GlobalText {
        GlobalText {
            target: PathBuf::from("iolab-bench.data"),
            repetitions: 3,
            ranks: 1,
            seed: 1,
            settle: 0.0,
            sync: true,
            verify: false,
            keep: false,
            existing: false,
            overwrite: false,
            cache: CacheState::Cold,
            latencies: true,
            time_limit: 0.0,
            records: None,
            file_system: None,
            platform: None,
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct TestText {
    #[serde(default)]
    name: Option<String>,
    #[serde(alias = "pattern")]
    spatial: OneOrMany<SpatialText>,
    temporal: OneOrMany<Temporal>,
    #[serde(default = "posix")]
    method: OneOrMany<String>,
    #[serde(default)]
    sizes: Vec<SizeText>,
    #[serde(default)]
    header: Option<SizeText>,
    #[serde(default)]
    hints: BTreeMap<String, String>,
    #[serde(default = "one")]
    weight: f64,
    #[serde(default)]
    file_per_rank: bool,
    #[serde(default = "half")]
    read_share: f64,
    #[serde(default = "hundred")]
    files: u64,
    #[serde(default = "one_operation")]
    depth: usize,
    #[serde(default)]
    view: bool,
    #[serde(default)]
    reorder: bool,
}

fn posix() -> OneOrMany<String> {
    OneOrMany::One("posix".to_owned())
}

fn one() -> f64 {
    1.0
}

fn half() -> f64 {
    0.5
}

fn hundred() -> u64 {
    100
}

fn one_operation() -> usize {
    1
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanText {
    #[serde(default)]
    global: GlobalText,
    #[serde(default)]
    test: Vec<TestText>,
}

/// One thing to measure: a pattern, what is done, by which method.
#[derive(Clone)]
pub struct Case {
    /// Name of the test it came from.
    pub test: String,
    /// The pattern.
    pub spatial: Spatial,
    /// What is done.
    pub temporal: Temporal,
    /// How.
    pub method: &'static Method,
    /// The swept size, if sizes were given.
    pub size: Option<u64>,
    /// Bytes before the pattern.
    pub header: u64,
    /// Hints for the library.
    pub hints: Vec<(String, String)>,
    /// Share in a weighted score.
    pub weight: f64,
    /// Every rank has a file of its own.
    pub file_per_rank: bool,
    /// Share of reads of a mixed phase.
    pub read_share: f64,
    /// Files per rank of metadata operations.
    pub files: u64,
    /// Operations under way at once.
    pub depth: usize,
    /// MPI-IO: non-contiguous sets as one view of the whole rank, set once.
    pub view: bool,
    /// Ranks read what their neighbour wrote.
    pub reorder: bool,
}

impl Case {
    /// Whether all ranks have to take part in every operation: collective methods, and MPI-IO
    /// that sets a view for each because some are not contiguous.
    pub(crate) fn together(&self, noncontiguous: bool) -> bool {
        self.method.collective || (self.method.needs == Needs::Mpi && noncontiguous)
    }

    /// Whether every rank has a file of its own.
    pub(crate) fn own_file(&self, pattern: &dyn Pattern) -> bool {
        self.file_per_rank || (self.temporal.writes() && pattern.writes_own_file())
    }

    /// Whose data a rank handles: reading reordered, its neighbour's.
    pub(crate) fn player(&self, rank: Rank, ranks: u32, reading: bool) -> Rank {
        if self.reorder && reading { Rank((rank.0 + 1) % ranks) } else { rank }
    }

    /// The rank of the pattern that a rank plays.
    pub(crate) fn rank(&self, rank: Rank) -> Rank {
        if self.file_per_rank { Rank(0) } else { rank }
    }

    /// Whether this case reads what the one before it wrote, as IOR's `-w -r` does, instead of a file
    /// that is made for it.
    pub(crate) fn reads_what(&self, before: &Case, plan: &Plan) -> bool {
        let reads = matches!(self.temporal, Temporal::Read | Temporal::ReRead);
        let same_data = self.test == before.test
            && self.spatial.text() == before.spatial.text()
            && (self.method.name, self.header) == (before.method.name, before.header)
            && self.file_per_rank == before.file_per_rank;
        // A phase that ended at its time limit has not written all.
        let whole = before.temporal == Temporal::Write && plan.time_limit <= 0.0;
        // Some patterns are written to a file of each rank, and read from one.
        let one_file = self.file_per_rank
            || self.pattern(1, plan.seed).is_ok_and(|pattern| !pattern.writes_own_file());
        reads && same_data && whole && one_file && self.method.keeps_data
    }

    /// Every setting that the case is measured under, by its name in plans: the case's own and the run's.
    pub(crate) fn settings(&self, plan: &Plan) -> Vec<(String, String)> {
        let mut all = Vec::new();
        let mut put = |key: &str, value: String| all.push((key.to_owned(), value));
        put("header", self.header.to_string());
        let hint = |(key, value): &(String, String)| format!("{key}={value}");
        put("hints", self.hints.iter().map(hint).collect::<Vec<_>>().join(" "));
        put("file-per-rank", self.file_per_rank.to_string());
        put("depth", self.depth.to_string());
        put("view", self.view.to_string());
        put("reorder", self.reorder.to_string());
        match self.temporal {
            Temporal::Mixed => put("read-share", self.read_share.to_string()),
            Temporal::Metadata => put("files", self.files.to_string()),
            _ => {}
        }
        put("cache", format!("{:?}", plan.cache).to_lowercase());
        put("sync", plan.sync.to_string());
        put("settle", plan.settle.to_string());
        put("time-limit", plan.time_limit.to_string());
        put("latencies", plan.latencies.to_string());
        put("verify", plan.verify.to_string());
        put("records", plan.records.is_some().to_string());
        all
    }

    /// The pattern for that many ranks. With a file per rank every rank runs it alone.
    pub fn pattern(&self, ranks: u32, seed: Seed) -> Result<Box<dyn Pattern>, Refusal> {
        self.spatial.make(if self.file_per_rank { 1 } else { ranks }, seed)
    }
}

/// A plan whose every value is valid.
#[derive(Clone)]
pub struct Plan {
    /// The file written and read; ranks and directories get suffixes.
    pub target: PathBuf,
    /// How often every phase is run.
    pub repetitions: u32,
    /// How many ranks when iolab starts them itself.
    pub ranks: u32,
    /// Seed of every random choice and of the data.
    pub seed: Seed,
    /// Seconds of rest before a phase.
    pub settle: f64,
    /// Writes are brought to the device within the timed phase.
    pub sync: bool,
    /// Everything written is read back and compared, outside the timed phase.
    pub verify: bool,
    /// What is done about files that exist, and whether those of the run stay.
    pub files: Manner,
    /// The state of the caches before a timed read.
    pub cache: CacheState,
    /// Latencies of single operations are taken.
    pub latencies: bool,
    /// Seconds after which ranks agree on a count and stop; 0 for none.
    pub time_limit: f64,
    /// Where every single operation is written to, as Parquet.
    pub records: Option<PathBuf>,
    /// The directory of the file system that `pfs` uses.
    pub file_system: Option<PathBuf>,
    /// The platform that `sim` predicts on: a preset or a file.
    pub platform: Option<String>,
    /// What to measure, in order.
    pub cases: Vec<Case>,
    /// The plan as text, complete.
    pub text: String,
}

impl Plan {
    /// Whether nothing of it is run, all predicted.
    pub fn is_prediction(&self) -> bool {
        self.cases.iter().all(|case| case.method.needs == Needs::Platform)
    }

    /// Every name that a run on so many ranks may use.
    pub fn names(&self, ranks: u32) -> Vec<PathBuf> {
        crate::names::names(&self.target, ranks)
    }

    /// Reads and resolves a TOML plan.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn parse(text: &str) -> Result<Plan, Refusal> {
        Plan::resolve(read(text)?)
    }

    /// Only sees whether the text has the form of a plan: for a text that others will be put over,
    /// whose places a user would not know.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn check_form(text: &str) -> Result<(), Refusal> {
        read(text).map(drop)
    }

    fn resolve(read: PlanText) -> Result<Plan, Refusal> {
        let text = toml::to_string(&read).unwrap_or_default();
        let global = read.global;
        let ranges = [
            (global.repetitions == 0, "repetitions = 0"),
            (global.ranks == 0 || global.ranks > 4096, "ranks outside 1 to 4096"),
            (!(0.0..=3600.0).contains(&global.settle), "settle outside 0 to 3600 seconds"),
            (!(0.0..=1e6).contains(&global.time_limit), "time-limit outside 0 to 1000000 seconds"),
            (read.test.is_empty(), "no [[test]]"),
            (global.target.as_os_str().is_empty(), "an empty target"),
        ];
        if let Some((_, what)) = ranges.iter().find(|(wrong, _)| *wrong) {
            return Err(Refusal::new(format!("the plan has {what}"), "see --template"));
        }
        let files =
            Manner { existing: global.existing, overwrite: global.overwrite, keep: global.keep };
        let mut cases: Vec<Case> = Vec::new();
        for (index, test) in read.test.iter().enumerate() {
            let name = test.name.clone().unwrap_or_else(|| format!("test {}", index + 1));
            cases.extend(
                test.cases(&name).map_err(|error| {
                    Refusal::new(format!("{name}: {}", error.message), error.hint)
                })?,
            );
        }
        let writer = cases.iter().find(|case| case.temporal.writes() && case.method.keeps_data);
        if let Some(case) = writer.filter(|_| files.existing && !files.overwrite) {
            return Err(Refusal::new(
                format!("{} writes, and existing files (-E) are only read", case.temporal.name()),
                "read only (-r), or allow it to write over them with --overwrite",
            ));
        }
        Ok(Plan {
            target: global.target,
            repetitions: global.repetitions,
            ranks: global.ranks,
            seed: Seed(global.seed),
            settle: global.settle,
            sync: global.sync,
            verify: global.verify,
            files,
            cache: global.cache,
            latencies: global.latencies,
            time_limit: global.time_limit,
            records: global.records,
            file_system: global.file_system,
            platform: global.platform,
            cases,
            text,
        })
    }
}

fn read(text: &str) -> Result<PlanText, Refusal> {
    toml::from_str(text).map_err(|error| {
        Refusal::new(
            format!("the plan is not well-formed: {}", error.to_string().trim_end()),
            "`iolab bench --template` prints a plan with every key",
        )
    })
}

impl TestText {
    fn check(&self) -> Result<(), Refusal> {
        let ranges = [
            (!(0.0..=1.0).contains(&self.read_share), "read-share outside 0 to 1"),
            (!(1..=4096).contains(&self.depth), "depth outside 1 to 4096"),
            (!(self.weight >= 0.0 && self.weight.is_finite()), "a negative weight"),
            (!(1..=100_000_000).contains(&self.files), "files outside 1 to 100000000"),
            (self.spatial.list().is_empty(), "no spatial pattern"),
            (self.temporal.list().is_empty(), "no temporal pattern"),
            (self.method.list().is_empty(), "no method"),
        ];
        match ranges.iter().find(|(wrong, _)| *wrong) {
            Some((_, what)) => Err(Refusal::new(format!("it has {what}"), "see --template")),
            None => Ok(()),
        }
    }

    fn cases(&self, name: &str) -> Result<Vec<Case>, Refusal> {
        self.check()?;
        let header = self.header.as_ref().map_or(Ok(0), |size| size.bytes("header"))?;
        if header > 1 << 60 {
            return Err(Refusal::new(format!("a header of {header} bytes"), "make it smaller"));
        }
        let mut sizes = Vec::new();
        for size in &self.sizes {
            sizes.push(Some(size.bytes("sizes")?));
        }
        if sizes.is_empty() {
            sizes.push(None);
        }
        let mut cases = Vec::new();
        for spatial in self.spatial.list() {
            let spatial = spatial.resolve()?;
            for method in self.method.list() {
                let method = find_method(&method)?;
                for &size in &sizes {
                    for temporal in self.temporal.list() {
                        let spatial = spatial.with_size(size)?;
                        spatial.makeable()?;
                        cases.push(self.case(name, spatial, temporal, method, size, header));
                    }
                }
            }
        }
        Ok(cases)
    }

    fn case(
        &self,
        test: &str,
        spatial: Spatial,
        temporal: Temporal,
        method: &'static Method,
        size: Option<u64>,
        header: u64,
    ) -> Case {
        Case {
            test: test.to_owned(),
            spatial,
            temporal,
            method,
            size,
            header,
            hints: self.hints.clone().into_iter().collect(),
            weight: self.weight,
            file_per_rank: self.file_per_rank,
            read_share: self.read_share,
            files: self.files,
            depth: if method.queues { self.depth } else { 1 },
            view: self.view,
            reorder: self.reorder,
        }
    }
}

pub(crate) fn find_method(name: &str) -> Result<&'static Method, Refusal> {
    Methods::find(name).ok_or_else(|| {
        let names: Vec<_> = Methods::ROWS.iter().map(|row| row.name).collect();
        let hint = format!("choose from {}", names.join(", "));
        Refusal::new(format!("there is no method `{name}`"), hint)
    })
}

/// A plan with every key, explained.
pub fn template() -> String {
    include_str!("template.toml").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_is_a_plan_and_names_every_key() {
        let plan = Plan::parse(&template()).expect("the template is valid");
        assert!(!plan.cases.is_empty());
        for line in plan.text.lines().filter_map(|line| line.split_once(" = ")) {
            assert!(template().contains(line.0), "the template does not mention {}", line.0);
        }
    }

    #[test]
    fn a_list_of_sizes_patterns_and_temporals_becomes_their_product() {
        let plan = Plan::parse(
            "[[test]]\nspatial=['strided','segmented:count=3']\ntemporal=['write','read']\n\
             sizes=['4k',512]",
        );
        let cases = plan.expect("valid").cases;
        let told: Vec<_> = cases.iter().map(|case| (case.spatial.text(), case.temporal)).collect();
        assert_eq!(told.len(), 8);
        assert_eq!(told[0], ("strided:strip=4096".to_owned(), Temporal::Write));
        assert_eq!(told[7], ("segmented:count=3,request=512".to_owned(), Temporal::Read));
    }
}
