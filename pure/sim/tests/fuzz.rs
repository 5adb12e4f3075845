//! Every parser of the simulator under mutated input: it answers or refuses, and never panics.
//!
//! Inputs are the presets, the template, samples and the malformed corpus, changed by a seeded
//! generator: bytes flipped, cut out, doubled; lines moved; numbers made extreme; pieces of other
//! inputs put in. What still is a workload or a platform is run for a while.
#![allow(clippy::disallowed_methods, reason = "inputs are a directory of files")]

use iolab_sim::platform::{PRESETS, Platform};
use iolab_sim::scenario::Scenario;
use iolab_sim::sweep::Sweep;
use iolab_sim::workload::{Settings, TEMPLATE, Workload, run_watched};
use iolab_vocab::{Random, Seed};
use std::ops::ControlFlow;
use std::path::Path;

const EXTREMES: [&str; 14] = [
    "0",
    "1",
    "-1",
    "255",
    "65536",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "1e308",
    "nan",
    "-inf",
    "\"99999999t\"",
    "\"1us\"",
];

struct Mutator {
    random: Random,
    inputs: Vec<String>,
}

impl Mutator {
    fn below(&mut self, limit: usize) -> usize {
        self.random.below(limit.max(1) as u64) as usize
    }

    fn input(&mut self) -> String {
        let index = self.below(self.inputs.len());
        let mut bytes = self.inputs[index].clone().into_bytes();
        for _ in 0..=self.below(4) {
            bytes = self.changed(bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn changed(&mut self, mut bytes: Vec<u8>) -> Vec<u8> {
        let (from, to) = (self.below(bytes.len()), self.below(bytes.len()));
        let (from, to) = (from.min(to), from.max(to).min(from.min(to) + 40));
        match self.below(7) {
            0 if !bytes.is_empty() => bytes[from] ^= 1 << self.below(8),
            1 => drop(bytes.drain(from..to)),
            2 => {
                let piece = bytes[from..to].to_vec();
                bytes.splice(to..to, piece);
            }
            3 => bytes.truncate(from),
            4 => {
                let other = self.below(self.inputs.len());
                let other = self.inputs[other].clone().into_bytes();
                let at = self.below(other.len());
                let piece = other[at..other.len().min(at + 60)].to_vec();
                bytes.splice(from..from, piece);
            }
            _ => return self.with_extreme(bytes),
        }
        bytes
    }

    /// A number becomes another one.
    fn with_extreme(&mut self, mut bytes: Vec<u8>) -> Vec<u8> {
        let digits: Vec<usize> =
            (0..bytes.len()).filter(|&at| bytes[at].is_ascii_digit()).collect();
        if digits.is_empty() {
            return bytes;
        }
        let at = digits[self.below(digits.len())];
        let end = (at..bytes.len()).find(|&at| !bytes[at].is_ascii_digit()).unwrap_or(bytes.len());
        let extreme = EXTREMES[self.below(EXTREMES.len())];
        bytes.splice(at..end, extreme.bytes());
        bytes
    }
}

/// The inputs: those given, and files of directories of the repository.
fn mutator(seed: u64, given: &[&str], directories: &[&str]) -> Mutator {
    let mut inputs: Vec<String> = given.iter().map(|&text| text.to_owned()).collect();
    for directory in directories {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
        let mut paths: Vec<_> =
            std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths.retain(|path| path.extension().is_some_and(|end| end == "toml"));
        inputs.extend(paths.iter().map(|path| std::fs::read_to_string(path).unwrap()));
    }
    Mutator { random: Random::new(Seed(seed)), inputs }
}

fn workloads(seed: u64) -> Mutator {
    let directories = ["tests/malformed/workloads", "../../samples/workloads"];
    mutator(seed, &[TEMPLATE; 40], &directories)
}

fn platforms(seed: u64) -> Mutator {
    let presets: Vec<&str> = PRESETS.iter().map(|preset| preset.1).collect();
    mutator(seed, &presets, &["tests/malformed/platforms"])
}

/// Runs what is small enough for at most a few looks.
fn try_run(workload: &Workload, platform: &Platform, settings: &Settings) {
    let nodes: u64 = platform.nodes.iter().map(|group| u64::from(group.count)).sum();
    if workload.rank_count() > 64 || workload.files.len() > 1000 || nodes > 1000 {
        return;
    }
    let mut stop = |_| ControlFlow::Break(());
    if let Err(error) = run_watched(workload, platform, settings, &mut stop) {
        assert!(!error.message.is_empty() && !error.hint.is_empty());
    }
}

fn fuzz_workloads(seed: u64, count: usize) {
    let mut mutator = workloads(seed);
    let classic = Platform::preset("classic-hdd").unwrap();
    let mut valid = 0;
    for _ in 0..count {
        let text = mutator.input();
        match Workload::parse(&text) {
            Err(error) => assert!(!error.message.is_empty() && !error.hint.is_empty(), "{text}"),
            Ok(workload) => {
                valid += 1;
                if valid % 8 == 0 {
                    try_run(&workload, &classic, &Settings::default());
                }
            }
        }
    }
    assert!(valid > count / 100, "only {valid} of {count} were still workloads");
}

fn fuzz_platforms(seed: u64, count: usize) {
    let mut mutator = platforms(seed);
    let template = Workload::parse(TEMPLATE).unwrap();
    for _ in 0..count {
        let text = mutator.input();
        match Platform::parse(&text) {
            Err(error) => assert!(!error.message.is_empty() && !error.hint.is_empty(), "{text}"),
            Ok(platform) => {
                try_run(&template, &platform, &Settings::default());
                if platform.nodes.iter().map(|group| u64::from(group.count)).sum::<u64>() < 100 {
                    assert!(
                        !platform.draw_text().is_empty()
                            && !platform.draw_svg().into_string().is_empty()
                    );
                }
            }
        }
    }
}

fn fuzz_scenarios(seed: u64, count: usize) {
    let mut mutator = mutator(seed, &[], &["../../samples/scenarios", "tests/malformed/scenarios"]);
    let (classic, template) =
        (Platform::preset("classic-hdd").unwrap(), Workload::parse(TEMPLATE).unwrap());
    let mut valid = 0;
    for _ in 0..count {
        let Ok(scenario) = Scenario::parse(&mutator.input()) else { continue };
        valid += 1;
        if valid % 20 == 0 && scenario.resolve(&classic).is_ok() {
            let settings = Settings { faults: Some(scenario), ..Settings::default() };
            try_run(&template, &classic, &settings);
        }
    }
    assert!(valid > 0);
}

fn fuzz_sweeps(seed: u64, count: usize) {
    let mut mutator = mutator(seed, &[], &["../../samples/sweeps"]);
    for _ in 0..count {
        let text = mutator.input();
        match Sweep::parse(&text) {
            Err(error) => assert!(!error.message.is_empty() && !error.hint.is_empty(), "{text}"),
            Ok(sweep) if sweep.is_empty() => {}
            Ok(sweep) => {
                if let Err(error) = sweep.case(sweep.len() - 1, TEMPLATE, PRESETS[0].1) {
                    assert!(!error.message.is_empty() && !error.hint.is_empty(), "{text}");
                }
            }
        }
    }
}

#[test]
fn mutated_sweeps_never_panic() {
    fuzz_sweeps(4, 1000);
}

#[test]
fn mutated_workloads_never_panic() {
    fuzz_workloads(1, 4000);
}

#[test]
fn mutated_platforms_never_panic() {
    fuzz_platforms(2, 1500);
}

#[test]
fn mutated_scenarios_never_panic() {
    fuzz_scenarios(3, 1500);
}

#[test]
#[ignore = "long: tens of thousands of mutations"]
fn many_more_mutations_never_panic() {
    fuzz_workloads(11, 20_000);
    fuzz_platforms(12, 8_000);
    fuzz_scenarios(13, 8_000);
}
