//! One number for an application: results weighted by what the application does.

use super::{family, settled, size};
use crate::outcome::{Measurement, Outcome};
use crate::statistics::median;
use iolab_vocab::format_bytes;

/// A share of the bytes that an application moves.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// Which phase.
    pub phase: String,
    /// Name of the pattern.
    pub pattern: String,
    /// Bytes of an operation, where that is known: the nearest size measured counts.
    pub size: Option<u64>,
    /// How large a share, of any whole.
    pub share: f64,
}

impl Share {
    /// For people.
    pub fn describe(&self) -> String {
        let size = self.size.map_or(String::new(), |size| format!(" at {}", format_bytes(size)));
        format!("{} of {}{size}", self.phase, self.pattern)
    }
}

/// What an application does, as shares of the bytes it moves.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// Where the shares come from.
    pub provenance: String,
    /// What it moves.
    pub shares: Vec<Share>,
}

/// What a profile comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// The bandwidth that the application would see, in MiB/s, of what was measured.
    pub speed: f64,
    /// Each share, as a part of 1, with what was measured for it: size and MiB/s.
    pub parts: Vec<(Share, Option<(u64, f64)>)>,
}

/// The built-in profiles: name, provenance, shares.
type BuiltIn = (&'static str, &'static str, &'static [(&'static str, &'static str, f64)]);

/// Typical mixes, to be replaced by one's own.
const BUILT_IN: [BuiltIn; 6] = [
    (
        "checkpoint",
        "assumed: ten checkpoints per restart, a third of the bytes strided",
        &[("write", "segmented", 0.6), ("write", "strided", 0.3), ("read", "segmented", 0.1)],
    ),
    (
        "out-of-core",
        "assumed: a solver that reads each block twice for each write",
        &[
            ("read", "segmented", 0.4),
            ("re-read", "segmented", 0.3),
            ("re-write", "segmented", 0.3),
        ],
    ),
    (
        "visualisation",
        "assumed: strided planes of a field, read once, some again",
        &[("read", "strided", 0.5), ("read", "tiled", 0.3), ("re-read", "strided", 0.2)],
    ),
    (
        "climate",
        "assumed: NetCDF fields by blocks, appended records, post-processing reads",
        &[("write", "hpf", 0.5), ("write", "interleaved", 0.2), ("read", "hpf", 0.3)],
    ),
    (
        "ai-training",
        "assumed: shuffled samples over epochs, a checkpoint now and then",
        &[
            ("read", "random-blocks", 0.6),
            ("re-read", "random-blocks", 0.3),
            ("write", "segmented", 0.1),
        ],
    ),
    (
        "database",
        "assumed: random pages, two reads for a write",
        &[("read", "database", 0.5), ("mixed", "database", 0.3), ("write", "database", 0.2)],
    ),
];

/// Profiles that need no file.
pub fn profiles() -> Vec<Profile> {
    let of = |&(phase, pattern, share): &(&str, &str, f64)| {
        let (phase, pattern) = (phase.to_owned(), pattern.to_owned());
        Share { phase, pattern, size: None, share }
    };
    let profile = |&(name, provenance, shares): &BuiltIn| Profile {
        name: name.to_owned(),
        provenance: provenance.to_owned(),
        shares: shares.iter().map(of).collect(),
    };
    BUILT_IN.iter().map(profile).collect()
}

/// The weights of the plan that was run: each test's weight over its measured rows.
pub fn plan_profile(outcomes: &[Outcome]) -> Profile {
    let mut shares: Vec<(String, Share, f64)> = Vec::new();
    for m in settled(outcomes).iter().filter(|m| m.weight > 0.0) {
        let size = Some(size(m));
        let share = Share { phase: m.phase.clone(), pattern: family(m), size, share: 0.0 };
        if !shares.iter().any(|(test, known, _)| (test, known) == (&m.test, &share)) {
            shares.push((m.test.clone(), share, m.weight));
        }
    }
    let rows = |test: &String| shares.iter().filter(|(other, ..)| other == test).count() as f64;
    let weighed = shares.iter().map(|(test, share, weight)| {
        let share = share.clone();
        Share { share: weight / rows(test), ..share }
    });
    Profile {
        name: "plan".to_owned(),
        provenance: "the weights of the plan's tests, evenly over the rows of each".to_owned(),
        shares: weighed.collect(),
    }
}

/// The bandwidth that the profile would see: the harmonic mean, weighted by bytes, of what the
/// results cover. `None` when they cover nothing.
pub fn score(profile: &Profile, outcomes: &[Outcome]) -> Option<Score> {
    let all = settled(outcomes);
    let whole: f64 = profile.shares.iter().map(|share| share.share).sum();
    let part = |share: &Share| {
        let normal = Share { share: share.share / whole, ..share.clone() };
        (normal, measured(share, &all))
    };
    let parts: Vec<_> = profile.shares.iter().map(part).collect();
    let (mut covered, mut time) = (0.0, 0.0);
    for (share, measured) in &parts {
        if let Some((_, speed)) = measured {
            covered += share.share;
            time += share.share / speed;
        }
    }
    (time > 0.0).then(|| Score { speed: covered / time, parts })
}

/// The median of what was measured for a share, at the nearest size where it has one.
fn measured(share: &Share, all: &[&Measurement]) -> Option<(u64, f64)> {
    let fits = |m: &&&Measurement| m.phase == share.phase && family(m) == share.pattern;
    let distance = |one: u64| {
        let wanted = share.size.unwrap_or(one).max(1);
        ((one.max(1) as f64).log2() - (wanted as f64).log2()).abs()
    };
    let fitting: Vec<&&Measurement> = all.iter().filter(fits).collect();
    let sizes = fitting.iter().map(|m| size(m));
    let nearest = sizes.min_by(|a, b| distance(*a).total_cmp(&distance(*b)).then(a.cmp(b)))?;
    let counts = |m: &&&&Measurement| share.size.is_none() || size(m) == nearest;
    let speeds: Vec<f64> = fitting.iter().filter(counts).map(|m| m.mib_per_second).collect();
    Some((nearest, median(&speeds))).filter(|(_, speed)| *speed > 0.0)
}
