//! What the overlap benchmark is to measure, from TOML or from flags.
//!
//! `[global]` says where and how often; every `[[test]]` is a product of patterns, directions,
//! methods, ways and polling. A value that exists here is valid.

use crate::manner::Manner;
use crate::plan::{OneOrMany, SizeText, find_method};
use crate::spatial::{Spatial, SpatialText};
use iolab_backend::{Direction, Method};
use iolab_report::overlap::{AsyncMode, Load};
use iolab_vocab::{Refusal, Seed};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Compute over I/O of a sweep: the range in which overlap can matter.
pub const SWEEP: [f64; 9] = [0.1, 0.2, 0.5, 0.75, 1.0, 1.5, 2.0, 5.0, 10.0];

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct GlobalText {
    target: PathBuf,
    repetitions: u32,
    ranks: u32,
    seed: u64,
    existing: bool,
    overwrite: bool,
    count: u64,
    fill: u64,
    min_tries: u32,
    max_tries: u32,
    margin: f64,
    settle: f64,
}

impl Default for GlobalText {
    fn default() -> GlobalText {
        GlobalText {
            target: PathBuf::from("iolab-overlap.data"),
            repetitions: 3,
            ranks: 1,
            seed: 1,
            existing: false,
            overwrite: false,
            count: 20,
            fill: 5,
            min_tries: 3,
            max_tries: 20,
            margin: 0.05,
            settle: 0.0,
        }
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum DirectionText {
    Read,
    Write,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct TestText {
    name: Option<String>,
    spatial: OneOrMany<SpatialText>,
    direction: OneOrMany<DirectionText>,
    method: OneOrMany<String>,
    way: OneOrMany<AsyncMode>,
    poll: OneOrMany<bool>,
    ratio: OneOrMany<f64>,
    sweep: bool,
    throttle: Option<SizeText>,
    direct: bool,
    view: bool,
    load: Load,
    hints: BTreeMap<String, String>,
}

impl Default for TestText {
    fn default() -> TestText {
        TestText {
            name: None,
            spatial: OneOrMany::One(SpatialText::Spec("strided:strip=1m,stripes=25".to_owned())),
            direction: OneOrMany::One(DirectionText::Write),
            method: OneOrMany::One("posix".to_owned()),
            way: OneOrMany::One(AsyncMode::Thread),
            poll: OneOrMany::One(false),
            ratio: OneOrMany::One(1.0),
            sweep: false,
            throttle: None,
            direct: false,
            view: false,
            load: Load::Pattern,
            hints: BTreeMap::new(),
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanText {
    #[serde(default)]
    global: GlobalText,
    #[serde(default)]
    test: Vec<TestText>,
}

/// One operation made non-blocking in one way, with the ratios to measure it at.
#[derive(Clone)]
pub struct OverlapCase {
    /// Name of the test it came from.
    pub test: String,
    /// The pattern.
    pub spatial: Spatial,
    /// Read or write.
    pub direction: Direction,
    /// The access method.
    pub method: &'static Method,
    /// How it is made non-blocking.
    pub way: AsyncMode,
    /// Ask for progress while computing (MPI_Test).
    pub poll: bool,
    /// Wanted compute time over I/O time. 0 is I/O alone.
    pub ratios: Vec<f64>,
    /// Bytes per second that the device is slowed to.
    pub throttle: Option<f64>,
    /// Around the page cache.
    pub direct: bool,
    /// MPI-IO: one view for the whole rank.
    pub view: bool,
    /// What is transferred.
    pub load: Load,
    /// Hints for the library.
    pub hints: Vec<(String, String)>,
}

impl OverlapCase {
    /// Name of the direction.
    pub fn direction_name(&self) -> &'static str {
        if self.direction == Direction::Write { "write" } else { "read" }
    }

    /// Whether the file is written to.
    fn writes(&self) -> bool {
        self.direction == Direction::Write && self.method.keeps_data
    }

    /// What tells it from the others, in a few words.
    pub fn title(&self) -> String {
        let way = if self.way == AsyncMode::Thread { "in a thread" } else { "native" };
        let poll = if self.poll { ", polled" } else { "" };
        format!("{} {} {way}{poll}", self.method.name, self.direction_name())
    }

    /// Everything else it was measured under.
    fn settings(&self) -> String {
        let mut all = vec![self.spatial.text(), self.test.clone()];
        all.extend(self.throttle.map(|rate| format!("{rate} B/s")));
        all.extend(self.direct.then(|| "direct".to_owned()));
        all.extend(self.view.then(|| "view".to_owned()));
        all.extend((self.load != Load::Pattern).then(|| format!("{:?}", self.load)));
        all.extend(self.hints.iter().map(|(key, value)| format!("{key}={value}")));
        all.join(", ")
    }

    /// Whether the way of being non-blocking shows when an operation ended, however it went.
    pub(crate) fn sees_ends(&self) -> bool {
        self.way == AsyncMode::Thread || self.poll
    }

    /// Whether two threads of a rank work at once: a helper of ours, or one of the C or MPI library.
    pub(crate) fn has_helper(&self) -> bool {
        self.way == AsyncMode::Thread || self.method.name != "uring"
    }
}

/// A plan whose every value is valid.
#[derive(Clone)]
pub struct OverlapPlan {
    /// The file written and read; removed afterwards.
    pub target: PathBuf,
    /// What is done about files that exist.
    pub files: Manner,
    /// Repetitions of each ratio.
    pub repetitions: u32,
    /// How many ranks when iolab starts them itself.
    pub ranks: u32,
    /// Seed of patterns and data.
    pub seed: Seed,
    /// Operations per phase.
    pub count: u64,
    /// Operations before, untimed, to fill caches and servers.
    pub fill: u64,
    /// Calibration tries at least and at most.
    pub tries: (u32, u32),
    /// Calibration ends when every rank is this near.
    pub margin: f64,
    /// Seconds of rest between calibration and phases.
    pub settle: f64,
    /// What to measure, in order.
    pub cases: Vec<OverlapCase>,
    /// The plan as text, complete.
    pub text: String,
}

impl OverlapPlan {
    /// The title of a case, with all its settings where another case has the same.
    pub fn title_of(&self, case: &OverlapCase) -> String {
        let title = case.title();
        match self.cases.iter().filter(|other| other.title() == title).count() {
            0 | 1 => title,
            _ => format!("{title} [{}]", case.settings()),
        }
    }

    /// Reads and resolves a TOML plan.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn parse(text: &str) -> Result<OverlapPlan, Refusal> {
        let read: PlanText = toml::from_str(text).map_err(|error| {
            let message = format!("the plan is not well-formed: {}", error.to_string().trim_end());
            Refusal::new(message, "`iolab overlap --template` prints a plan with every key")
        })?;
        let text = toml::to_string(&read).unwrap_or_default();
        read.global.check(read.test.is_empty())?;
        let mut cases = Vec::new();
        for (index, test) in read.test.iter().enumerate() {
            let name = test.name.clone().unwrap_or_else(|| format!("test {}", index + 1));
            cases.extend(
                test.cases(&name).map_err(|error| {
                    Refusal::new(format!("{name}: {}", error.message), error.hint)
                })?,
            );
        }
        let global = read.global;
        let files = Manner { existing: global.existing, overwrite: global.overwrite, keep: false };
        let mut writers = cases.iter().filter(|case: &&OverlapCase| case.writes());
        if files.existing && !files.overwrite && writers.next().is_some() {
            return Err(Refusal::new(
                "the plan writes, and existing files (-E) are only read",
                "read only (--direction read), or allow it to write over them with --overwrite",
            ));
        }
        Ok(OverlapPlan {
            target: global.target,
            files,
            repetitions: global.repetitions,
            ranks: global.ranks,
            seed: Seed(global.seed),
            count: global.count,
            fill: global.fill,
            tries: (global.min_tries, global.max_tries),
            margin: global.margin,
            settle: global.settle,
            cases,
            text,
        })
    }
}

/// The first of these that is wrong.
fn refuse<const N: usize>(ranges: [(bool, &str); N], hint: &str) -> Result<(), Refusal> {
    match ranges.iter().find(|(wrong, _)| *wrong) {
        Some((_, what)) => Err(Refusal::new(format!("the plan has {what}"), hint)),
        None => Ok(()),
    }
}

impl GlobalText {
    fn check(&self, no_test: bool) -> Result<(), Refusal> {
        let ranges = [
            (no_test, "no [[test]]"),
            (self.target.as_os_str().is_empty(), "an empty target"),
            (self.repetitions == 0, "repetitions = 0"),
            (self.ranks == 0 || self.ranks > 4096, "ranks outside 1 to 4096"),
            (!(1..=1_000_000).contains(&self.count), "count outside 1 to 1000000"),
            (self.fill > 1_000_000, "fill above 1000000"),
            (!(0.0..=3600.0).contains(&self.settle), "settle outside 0 to 3600 seconds"),
            (self.max_tries == 0, "max-tries = 0"),
            (self.min_tries > self.max_tries, "min-tries above max-tries"),
            (!(self.margin > 0.0 && self.margin < 1.0), "margin outside 0 to 1 (both excluded)"),
        ];
        refuse(ranges, "see `iolab overlap --template`")
    }
}

impl TestText {
    fn check(&self, ratios: &[f64]) -> Result<(), Refusal> {
        let twice = |ratio: &f64| ratios.iter().filter(|other| *other == ratio).count() > 1;
        let ranges = [
            (self.spatial.list().is_empty(), "no spatial pattern"),
            (self.direction.list().is_empty(), "no direction"),
            (self.method.list().is_empty(), "no method"),
            (self.way.list().is_empty(), "no way"),
            (self.poll.list().is_empty(), "no poll"),
            (ratios.is_empty(), "no ratio"),
            (
                !ratios.iter().all(|ratio| (0.0..=1000.0).contains(ratio)),
                "a ratio outside 0 to 1000",
            ),
            (ratios.iter().any(twice), "a ratio twice"),
        ];
        refuse(ranges, "see `iolab overlap --template`")
    }

    fn ratios(&self) -> Result<Vec<f64>, Refusal> {
        let given = self.ratio.list();
        match self.sweep {
            true if given != [1.0] => Err(Refusal::new(
                "the plan has both a sweep and ratios",
                "give either; a sweep is compute/io from 0.1 to 10",
            )),
            true => Ok(SWEEP.to_vec()),
            false => Ok(given),
        }
    }

    fn throttle(&self) -> Result<Option<f64>, Refusal> {
        match self.throttle.as_ref().map(|rate| rate.bytes("throttle")).transpose()? {
            Some(0) => Err(Refusal::new("the plan has throttle = 0", "give bytes per second")),
            rate => Ok(rate.map(|rate| rate as f64)),
        }
    }

    fn cases(&self, test: &str) -> Result<Vec<OverlapCase>, Refusal> {
        let (ratios, throttle) = (self.ratios()?, self.throttle()?);
        self.check(&ratios)?;
        let mut cases = Vec::new();
        for spatial in self.spatial.list() {
            let spatial = spatial.resolve()?;
            spatial.makeable()?;
            for method in self.method.list() {
                let method = find_method(&method)?;
                for (way, poll, direction) in self.forms() {
                    cases.push(OverlapCase {
                        test: test.to_owned(),
                        spatial: spatial.clone(),
                        direction,
                        method,
                        way,
                        poll,
                        ratios: ratios.clone(),
                        throttle,
                        direct: self.direct,
                        view: self.view,
                        load: self.load,
                        hints: self.hints.clone().into_iter().collect(),
                    });
                }
            }
        }
        Ok(cases)
    }

    /// Every way, polled and not, in every direction.
    fn forms(&self) -> Vec<(AsyncMode, bool, Direction)> {
        let mut forms = Vec::new();
        for direction in self.direction.list() {
            let direction = match direction {
                DirectionText::Read => Direction::Read,
                DirectionText::Write => Direction::Write,
            };
            for way in self.way.list() {
                forms.extend(self.poll.list().iter().map(|poll| (way, *poll, direction)));
            }
        }
        forms
    }
}

/// A plan with every key, explained.
pub fn overlap_template() -> String {
    include_str!("template.toml").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_is_a_plan_and_names_every_key() {
        let plan = OverlapPlan::parse(&overlap_template()).expect("the template is valid");
        assert!(plan.cases.len() > 3);
        for line in plan.text.lines().filter_map(|line| line.split_once(" = ")) {
            assert!(overlap_template().contains(line.0), "no word about {}", line.0);
        }
    }

    #[test]
    fn a_test_is_the_product_of_its_lists() {
        let text = "[[test]]\nmethod=['posix','uring']\nway=['thread','native']\n\
                    poll=[true,false]\ndirection=['read','write']\nsweep=true";
        let cases = OverlapPlan::parse(text).expect("valid").cases;
        assert_eq!(cases.len(), 16);
        assert!(cases.iter().all(|case| case.ratios == SWEEP));
        assert_eq!(cases[0].title(), "posix read in a thread, polled");
        assert_eq!(cases[15].title(), "uring write native");
    }

    #[test]
    fn what_cannot_be_measured_is_refused_with_its_fault() {
        let faults = [
            ("", "no [[test]]"),
            ("[global]\nmargin=0.0\n[[test]]", "margin outside"),
            ("[global]\nmargin=1.0\n[[test]]", "margin outside"),
            ("[global]\nmargin=nan\n[[test]]", "margin outside"),
            ("[global]\nsettle=-1.0\n[[test]]", "settle outside"),
            ("[global]\ncount=0\n[[test]]", "count outside"),
            ("[global]\nrepetitions=0\n[[test]]", "repetitions = 0"),
            ("[global]\nranks=0\n[[test]]", "ranks outside"),
            ("[global]\nmin-tries=9\nmax-tries=3\n[[test]]", "min-tries above max-tries"),
            ("[global]\nmin-tries=0\nmax-tries=0\n[[test]]", "max-tries = 0"),
            ("[global]\ntarget=''\n[[test]]", "an empty target"),
            ("[[test]]\nratio=[]", "no ratio"),
            ("[[test]]\nratio=[1.0, -1.0]", "a ratio outside"),
            ("[[test]]\nratio=[1.0, nan]", "a ratio outside"),
            ("[[test]]\nratio=[1.0, inf]", "a ratio outside"),
            ("[[test]]\nratio=[2.0, 0.5, 2.0]", "a ratio twice"),
            ("[[test]]\nratio=[2.0]\nsweep=true", "both a sweep and ratios"),
            ("[[test]]\nratio='half'", "not well-formed"),
            ("[[test]]\nthrottle=0", "throttle = 0"),
            ("[[test]]\nthrottle='fast'", "throttle"),
            ("[[test]]\nmethod='iwrite'", "no method `iwrite`"),
            ("[[test]]\nway='magic'", "not well-formed"),
            ("[[test]]\nspatial='spiral'", "spiral"),
            ("[[test]]\nspeed=3", "not well-formed"),
        ];
        for (text, fault) in faults {
            let error = OverlapPlan::parse(text).err().unwrap_or_else(|| panic!("{text} passed"));
            assert!(error.message.contains(fault), "{text}: {error}");
            assert!(!error.hint.is_empty(), "{text}");
        }
    }
}
