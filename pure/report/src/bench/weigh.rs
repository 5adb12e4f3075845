//! One number for an application: results weighted by what the application does.

use super::outcome::Outcome;
use super::rows::{Labels, Row, Settings, rows};
use crate::statistics::{Interval, median};
use iolab_vocab::{format_bytes, parse_bytes};

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

impl Profile {
    /// Reads a TOML file with `provenance` and `[[share]]`; the error says what is wrong with it.
    ///
    /// # Errors
    /// No TOML, no shares, or one that lacks something.
    pub fn parse(name: &str, text: &str) -> Result<Profile, String> {
        let table: toml::Table = text.parse().map_err(|error| format!("{error}"))?;
        let shares = table.get("share").and_then(toml::Value::as_array).ok_or("no [[share]]")?;
        let shares: Option<Vec<_>> = shares.iter().map(share).collect();
        let shares = shares.ok_or("a [[share]] needs phase, pattern and share above 0")?;
        let provenance = table.get("provenance").and_then(toml::Value::as_str);
        let provenance = provenance.unwrap_or("not told");
        Ok(Profile { name: name.to_owned(), provenance: provenance.to_owned(), shares })
    }
}

/// A `[[share]]`: phase, pattern, share, and size if the application has one.
fn share(row: &toml::Value) -> Option<Share> {
    let text = |key: &str| row.get(key)?.as_str().map(str::to_owned);
    let number = row.get("share")?;
    let share = number.as_float().or_else(|| number.as_integer().map(|n| n as f64))?;
    let size = match row.get("size") {
        None => None,
        Some(toml::Value::Integer(bytes)) => Some(u64::try_from(*bytes).ok()?),
        Some(size) => Some(parse_bytes(size.as_str()?).ok()?),
    };
    let is_share = share > 0.0 && share.is_finite();
    is_share.then_some(Share { phase: text("phase")?, pattern: text("pattern")?, size, share })
}

/// What a profile comes to under one set of settings: nothing measured under others is mixed in.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// What tells these settings from those of the other scores; empty when there is only one.
    pub settings: String,
    /// The bandwidth that the application would see, in MiB/s, of what was measured.
    pub speed: f64,
    /// The same if all shares came out at the low, or the high, end of their range.
    pub range: (f64, f64),
    /// How much of the application's bytes what was measured covers, as a part of 1.
    pub covered: f64,
    /// Each share, as a part of 1, with what was measured for it: size, MiB/s, range, repetitions.
    pub parts: Vec<(Share, Option<Part>)>,
}

/// What was measured for a share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// At which size.
    pub size: u64,
    /// The median, in MiB/s.
    pub speed: f64,
    /// The smallest and the largest.
    pub range: Interval,
    /// Of how many repetitions.
    pub values: usize,
    /// At how many sizes: more than one where the share has none.
    pub sizes: usize,
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
    let all = rows(outcomes);
    for row in all.iter().filter(|row| row.unit() == "MiB/s") {
        let Some((_, m)) = row.measurements.first().filter(|(_, m)| m.weight > 0.0) else {
            continue;
        };
        let (phase, pattern) = (m.phase.clone(), row.family().to_owned());
        let share = Share { phase, pattern, size: Some(row.size()), share: 0.0 };
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

/// What differs between the rows of one score: what the application does.
const ONE_APPLICATION: [&str; 9] = [
    "phase",
    "temporal",
    "pattern",
    "test",
    "size",
    "cache found",
    "allocation",
    "data",
    "read-share",
];

/// The bandwidth that the profile would see: the harmonic mean, weighted by bytes, of what the
/// results cover. One score for each set of settings that something was measured under.
pub fn scores(profile: &Profile, outcomes: &[Outcome]) -> Vec<Score> {
    let all = rows(outcomes);
    let surroundings = |row: &Row| -> Settings {
        let told = row.settings.iter().filter(|(key, _)| !ONE_APPLICATION.contains(&key.as_str()));
        told.map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    let mut groups: Vec<(Settings, Vec<&Row>)> = Vec::new();
    for row in all.iter().filter(|row| row.unit() == "MiB/s") {
        let own = surroundings(row);
        match groups.iter_mut().find(|(settings, _)| *settings == own) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((own, vec![row])),
        }
    }
    let labels = Labels::of(groups.iter().map(|(settings, _)| settings));
    let several = groups.len() > 1;
    let score = |(settings, rows): &(Settings, Vec<&Row>)| {
        let method = settings.get("method").cloned().unwrap_or_default();
        let told = [method, labels.extra(settings)]
            .iter()
            .filter(|t| !t.is_empty())
            .cloned()
            .collect::<Vec<_>>();
        score(profile, rows, if several { told.join(", ") } else { String::new() })
    };
    groups.iter().filter_map(score).collect()
}

fn score(profile: &Profile, rows: &[&Row], settings: String) -> Option<Score> {
    let whole: f64 = profile.shares.iter().map(|share| share.share).sum();
    let part = |share: &Share| {
        let normal = Share { share: share.share / whole, ..share.clone() };
        (normal, measured(share, rows))
    };
    let parts: Vec<_> = profile.shares.iter().map(part).collect();
    let covered: f64 = parts.iter().filter(|(_, part)| part.is_some()).map(|(s, _)| s.share).sum();
    let mean = |speed: fn(&Part) -> f64| {
        let time = |(share, part): &(Share, Option<Part>)| {
            part.as_ref().map_or(0.0, |part| share.share / speed(part))
        };
        covered / parts.iter().map(time).sum::<f64>()
    };
    let range = (mean(|part| part.range.low), mean(|part| part.range.high));
    let speed = mean(|part| part.speed);
    (covered > 0.0).then_some(Score { settings, speed, range, covered, parts })
}

/// What was measured for a share, at the nearest size where it has one.
fn measured(share: &Share, rows: &[&Row]) -> Option<Part> {
    let fits = |row: &&&Row| row.setting("phase") == share.phase && row.family() == share.pattern;
    let distance = |one: u64| {
        let wanted = share.size.unwrap_or(one).max(1);
        ((one.max(1) as f64).log2() - (wanted as f64).log2()).abs()
    };
    let fitting: Vec<&&Row> = rows.iter().filter(fits).collect();
    let sizes = fitting.iter().map(|row| row.size());
    let nearest = sizes.min_by(|a, b| distance(*a).total_cmp(&distance(*b)).then(a.cmp(b)))?;
    // Where the share has no size, every size that was measured stands for a part of it.
    let counts = |row: &&&&Row| share.size.is_none() || row.size() == nearest;
    let sizes: std::collections::BTreeSet<u64> =
        fitting.iter().filter(counts).map(|row| row.size()).collect();
    let speeds: Vec<f64> = (fitting.iter().filter(counts))
        .flat_map(|row| row.samples())
        .map(|sample| sample.value)
        .collect();
    let (speed, range) = (median(&speeds), Interval::range(&speeds));
    (range.low > 0.0).then_some(Part {
        size: nearest,
        speed,
        range,
        values: speeds.len(),
        sizes: sizes.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_a_number_above_zero() {
        let parsed = |share: &str| {
            let text =
                format!("[[share]]\nphase='write'\npattern='strided'\nshare={share}\nsize='4k'");
            Profile::parse("mine", &text)
        };
        let profile = parsed("2").unwrap();
        assert_eq!((profile.shares[0].share, profile.shares[0].size), (2.0, Some(4096)));
        for share in ["0", "-1", "nan", "inf", "'a'"] {
            assert!(parsed(share).unwrap_err().contains("share above 0"), "{share}");
        }
    }
}
