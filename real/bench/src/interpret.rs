//! What results say: saturation, alignment, caches, collective against independent, scaling,
//! slow ranks. Every sentence carries the numbers it was drawn from.

use crate::outcome::{Measurement, Outcome};
use crate::statistics::{Interval, interval_of_median, median};
use iolab_vocab::{Random, Seed, format_bytes};

/// Throughput over size of one pattern, phase and method.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Name of the pattern, without the swept size.
    pub pattern: String,
    /// Which phase.
    pub phase: String,
    /// By which method.
    pub method: String,
    /// On how many ranks.
    pub ranks: u32,
    /// Size, median MiB/s, interval.
    pub points: Vec<(u64, f64, Interval)>,
}

/// Something the results say.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Insight {
    /// What kind of thing.
    pub kind: &'static str,
    /// The sentence with its numbers.
    pub text: String,
}

fn insight(kind: &'static str, text: String) -> Insight {
    Insight { kind, text }
}

fn family(measurement: &Measurement) -> String {
    measurement.spatial.split(':').next().unwrap_or_default().to_owned()
}

/// Valid measurements without the first repetition, when there are others.
fn settled(outcomes: &[Outcome]) -> Vec<&Measurement> {
    let usable = outcomes.iter().flat_map(|outcome| {
        let several = outcome.measurements.iter().any(|m| m.repetition > 0);
        outcome.measurements.iter().filter(move |m| !several || m.repetition > 0)
    });
    usable.filter(|m| m.invalid.is_none() && m.bytes > 0).collect()
}

fn speeds<'a>(all: &[&'a Measurement], wanted: impl Fn(&'a Measurement) -> bool) -> Vec<f64> {
    all.iter().filter(|m| wanted(m)).map(|m| m.mib_per_second).collect()
}

/// All curves of all results, in order of appearance.
pub fn curves(outcomes: &[Outcome]) -> Vec<Curve> {
    let all = settled(outcomes);
    let mut curves: Vec<Curve> = Vec::new();
    for m in &all {
        let key = (family(m), m.phase.clone(), m.method.clone(), m.ranks);
        let same = |c: &&Curve| {
            (&c.pattern, &c.phase, &c.method, &c.ranks) == (&key.0, &key.1, &key.2, &key.3)
        };
        if curves.iter().any(|curve| same(&curve)) {
            continue;
        }
        let belongs = |o: &Measurement| {
            (family(o), &o.phase, &o.method, o.ranks) == (key.0.clone(), &key.1, &key.2, key.3)
        };
        let size = |o: &Measurement| o.size.unwrap_or(o.bytes / o.operations.max(1));
        let mut sizes: Vec<u64> = all.iter().filter(|o| belongs(o)).map(|o| size(o)).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let points = sizes
            .into_iter()
            .map(|wanted| {
                let values = speeds(&all, |o| belongs(o) && size(o) == wanted);
                (wanted, median(&values), interval_of_median(&values))
            })
            .collect();
        let (pattern, phase, method, ranks) = key;
        curves.push(Curve { pattern, phase, method, ranks, points });
    }
    curves
}

/// Everything the results say.
pub fn insights(outcomes: &[Outcome]) -> Vec<Insight> {
    let curves = curves(outcomes);
    let all = settled(outcomes);
    let mut found: Vec<Insight> = Vec::new();
    found.extend(curves.iter().filter_map(knee));
    found.extend(curves.iter().filter_map(alignment));
    found.extend(second_time(&all, "read", "re-read", "read-ahead and the page cache"));
    found.extend(second_time(&all, "write", "re-write", "allocation and write-behind"));
    found.extend(break_even(&curves));
    found.extend(scaling(&curves));
    found.extend(slow_ranks(&all));
    found
}

fn title(curve: &Curve) -> String {
    format!("{} of {} by {} on {} ranks", curve.phase, curve.pattern, curve.method, curve.ranks)
}

/// The smallest size that reaches 90 % of the best.
fn knee(curve: &Curve) -> Option<Insight> {
    if curve.points.len() < 4 {
        return None;
    }
    let best = curve.points.iter().map(|point| point.1).fold(0.0, f64::max);
    let &(size, speed, _) = curve.points.iter().find(|point| point.1 >= 0.9 * best)?;
    let last = curve.points.last()?.0;
    let text = match size == last {
        true => format!("{} still grows at {}", title(curve), format_bytes(last)),
        false => format!(
            "{} saturates at {}: {speed:.0} of at most {best:.0} MiB/s",
            title(curve),
            format_bytes(size)
        ),
    };
    Some(insight("saturation", text))
}

/// The grid on which sizes are faster than the sizes between: a guess at the stripe or block size.
fn alignment(curve: &Curve) -> Option<Insight> {
    let candidates = (9..=26).map(|power| 1u64 << power);
    let ratio = |grid: u64| {
        let above: Vec<_> = curve.points.iter().filter(|point| point.0 > grid / 2).collect();
        let pick = |on: bool| -> Vec<f64> {
            above.iter().filter(|p| p.0.is_multiple_of(grid) == on).map(|p| p.1).collect()
        };
        let (on, off) = (pick(true), pick(false));
        // Fewer would be a guess of a guess.
        (on.len() >= 2 && off.len() >= 2).then(|| median(&on) / median(&off))
    };
    let rated = candidates.filter_map(|grid| ratio(grid).map(|ratio| (grid, ratio)));
    let (grid, ratio) = rated.max_by(|a, b| a.1.total_cmp(&b.1))?;
    (ratio >= 1.2).then(|| {
        let grid = format_bytes(grid);
        let text = format!(
            "{}: multiples of {grid} are {ratio:.2} times as fast as sizes between; {grid} may be \
             a stripe or block of the file system",
            title(curve)
        );
        insight("alignment", text)
    })
}

fn second_time(all: &[&Measurement], first: &str, second: &str, why: &str) -> Vec<Insight> {
    let mut keys: Vec<(&str, &str)> = all
        .iter()
        .filter(|m| m.phase == second)
        .map(|m| (m.spatial.as_str(), m.method.as_str()))
        .collect();
    keys.sort_unstable();
    keys.dedup();
    let compare = |(spatial, method): (&str, &str)| {
        let of = |phase: &str| {
            let same = |m: &Measurement| {
                m.phase == phase
                    && m.temporal == second
                    && m.spatial == spatial
                    && m.method == method
            };
            speeds(all, same)
        };
        let (before, after) = (of(first), of(second));
        let (ratio, interval) = ratio_of_medians(&after, &before)?;
        let verdict = verdict(&after, &before, interval);
        let text = format!(
            "{second}/{first} of {spatial} by {method} is {ratio:.2} ({:.2} to {:.2}): {verdict}; \
             that is the part of {why}",
            interval.low, interval.high
        );
        Some(insight("second time", text))
    };
    keys.into_iter().filter_map(compare).collect()
}

/// Where collective transfers become slower, or faster, than independent ones.
fn break_even(curves: &[Curve]) -> Vec<Insight> {
    let mut found = Vec::new();
    for curve in curves.iter().filter(|curve| curve.method == "collective") {
        let other = curves.iter().find(|other| {
            other.method == "independent"
                && (&other.pattern, &other.phase, other.ranks)
                    == (&curve.pattern, &curve.phase, curve.ranks)
        });
        let Some(other) = other else { continue };
        let ratios: Vec<(u64, f64)> = curve
            .points
            .iter()
            .filter_map(|point| {
                let same = other.points.iter().find(|p| p.0 == point.0)?;
                Some((point.0, point.1 / same.1))
            })
            .collect();
        let told: Vec<_> =
            ratios.iter().map(|(size, r)| format!("{} {r:.2}", format_bytes(*size))).collect();
        let crossing = ratios.windows(2).find(|pair| (pair[0].1 < 1.0) != (pair[1].1 < 1.0));
        let end = match crossing {
            Some(pair) => format!(
                "break-even between {} and {}",
                format_bytes(pair[0].0),
                format_bytes(pair[1].0)
            ),
            None => "no break-even among these sizes".to_owned(),
        };
        let (phase, pattern) = (&curve.phase, &curve.pattern);
        let text =
            format!("collective/independent {phase} of {pattern}: {}; {end}", told.join(", "));
        found.push(insight("collective", text));
    }
    found
}

fn scaling(curves: &[Curve]) -> Vec<Insight> {
    let mut found = Vec::new();
    for few in curves {
        for many in curves.iter().filter(|many| many.ranks > few.ranks) {
            let same = (&few.pattern, &few.phase, &few.method)
                == (&many.pattern, &many.phase, &many.method);
            let best = |c: &Curve| c.points.iter().map(|p| p.1).fold(0.0, f64::max);
            if same && best(few) > 0.0 {
                let growth = best(many) / best(few);
                let ideal = f64::from(many.ranks) / f64::from(few.ranks);
                let text = format!(
                    "{} of {} by {}: {} ranks are {growth:.2} times as fast as {} ({:.0} % of ideal)",
                    few.phase,
                    few.pattern,
                    few.method,
                    many.ranks,
                    few.ranks,
                    100.0 * growth / ideal
                );
                found.push(insight("scaling", text));
            }
        }
    }
    found
}

/// Ranks that need half as long again as the median rank, in most repetitions of a phase.
fn slow_ranks(all: &[&Measurement]) -> Vec<Insight> {
    let mut counts: std::collections::BTreeMap<(String, usize), (u32, u32)> = Default::default();
    for m in all.iter().filter(|m| m.done_by_rank_ns.len() >= 3) {
        let times: Vec<f64> = m.done_by_rank_ns.iter().map(|&ns| ns as f64).collect();
        let middle = median(&times);
        for (rank, &time) in times.iter().enumerate() {
            let name = format!("{} of {} by {}", m.phase, m.spatial, m.method);
            let slot = counts.entry((name, rank)).or_default();
            slot.0 += u32::from(time > 1.5 * middle);
            slot.1 += 1;
        }
    }
    let often = counts.into_iter().filter(|(_, (slow, runs))| *slow * 2 > *runs && *runs >= 2);
    often
        .map(|((name, rank), (slow, runs))| {
            let text = format!("rank {rank} was 1.5 times slower than the median rank in {slow} of {runs} runs: {name}");
            insight("slow rank", text)
        })
        .collect()
}

/// The ratio of two medians with its 95 % bootstrap interval; `None` without samples.
pub fn ratio_of_medians(above: &[f64], below: &[f64]) -> Option<(f64, Interval)> {
    const DRAWS: usize = 2000;
    if above.is_empty() || below.is_empty() || median(below) <= 0.0 {
        return None;
    }
    let mut random = Random::new(Seed(1));
    let mut draw = |values: &[f64]| {
        let pick: Vec<f64> =
            values.iter().map(|_| values[random.below(values.len() as u64) as usize]).collect();
        median(&pick)
    };
    let mut ratios: Vec<f64> = (0..DRAWS).map(|_| draw(above) / draw(below)).collect();
    ratios.sort_by(f64::total_cmp);
    let interval = Interval { low: ratios[DRAWS / 40], high: ratios[DRAWS - 1 - DRAWS / 40] };
    Some((median(above) / median(below), interval))
}

/// Whether the samples show a difference. Two repetitions agree or differ by chance: at least
/// three are asked for on both sides.
pub fn verdict(above: &[f64], below: &[f64], interval: Interval) -> &'static str {
    match interval {
        _ if above.len().min(below.len()) < 3 => "too few repetitions for a verdict",
        Interval { low, .. } if low > 1.0 => "faster",
        Interval { high, .. } if high < 1.0 => "slower",
        _ => "no difference shown",
    }
}

/// One line of a comparison of two results.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Phase, pattern and method.
    pub what: String,
    /// Median of the second over that of the first.
    pub ratio: f64,
    /// Its interval.
    pub interval: Interval,
    /// What follows.
    pub verdict: &'static str,
}

/// The second result against the first, for everything both have measured.
pub fn compare(first: &Outcome, second: &Outcome) -> Vec<Comparison> {
    let (before, after) = (std::slice::from_ref(first), std::slice::from_ref(second));
    let (before, after) = (settled(before), settled(after));
    let name = |m: &Measurement| format!("{} of {} by {}", m.phase, m.spatial, m.method);
    let mut names: Vec<String> = Vec::new();
    for m in &before {
        if !names.contains(&name(m)) {
            names.push(name(m));
        }
    }
    let line = |what: String| {
        let of = |all: &[&Measurement]| -> Vec<f64> {
            all.iter().filter(|m| name(m) == what).map(|m| m.mib_per_second).collect()
        };
        let (above, below) = (of(&after), of(&before));
        let (ratio, interval) = ratio_of_medians(&above, &below)?;
        let verdict = verdict(&above, &below, interval);
        Some(Comparison { what, ratio, interval, verdict })
    };
    names.into_iter().filter_map(line).collect()
}

/// What an application does, as shares of the bytes it moves: phase, pattern, share.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// Where the shares come from.
    pub provenance: String,
    /// Phase, pattern, share.
    pub shares: Vec<(String, String, f64)>,
}

/// Profiles that need no file. Shares are typical mixes, to be replaced by one's own.
pub fn profiles() -> Vec<Profile> {
    let profile = |name: &str, provenance: &str, shares: &[(&str, &str, f64)]| Profile {
        name: name.to_owned(),
        provenance: provenance.to_owned(),
        shares: shares.iter().map(|(a, b, c)| ((*a).to_owned(), (*b).to_owned(), *c)).collect(),
    };
    vec![
        profile(
            "checkpoint",
            "assumed: ten checkpoints per restart, a third of the bytes strided",
            &[("write", "segmented", 0.6), ("write", "strided", 0.3), ("read", "segmented", 0.1)],
        ),
        profile(
            "out-of-core",
            "assumed: a solver that reads each block twice for each write",
            &[
                ("read", "segmented", 0.4),
                ("re-read", "segmented", 0.3),
                ("re-write", "segmented", 0.3),
            ],
        ),
        profile(
            "visualisation",
            "assumed: strided planes of a field, read once, some again",
            &[("read", "strided", 0.5), ("read", "tiled", 0.3), ("re-read", "strided", 0.2)],
        ),
        profile(
            "climate",
            "assumed: NetCDF fields by blocks, appended records, post-processing reads",
            &[("write", "hpf", 0.5), ("write", "interleaved", 0.2), ("read", "hpf", 0.3)],
        ),
        profile(
            "ai-training",
            "assumed: shuffled samples over epochs, a checkpoint now and then",
            &[
                ("read", "random-blocks", 0.6),
                ("re-read", "random-blocks", 0.3),
                ("write", "segmented", 0.1),
            ],
        ),
        profile(
            "database",
            "assumed: random pages, two reads for a write",
            &[("read", "database", 0.5), ("mixed", "database", 0.3), ("write", "database", 0.2)],
        ),
    ]
}

/// The bandwidth that the profile would see: the harmonic mean weighted by bytes, with the shares
/// that the results do not cover. `None` when they cover nothing.
pub fn score(profile: &Profile, outcomes: &[Outcome]) -> Option<(f64, Vec<String>)> {
    let all = settled(outcomes);
    let (mut covered, mut time, mut missing) = (0.0, 0.0, Vec::new());
    for (phase, pattern, share) in &profile.shares {
        let speed = median(&speeds(&all, |m| m.phase == *phase && family(m) == *pattern));
        if speed > 0.0 {
            covered += share;
            time += share / speed;
        } else {
            missing.push(format!("{phase} of {pattern} ({:.0} %)", share * 100.0));
        }
    }
    (time > 0.0).then(|| (covered / time, missing))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(method: &str, points: &[(u64, f64)]) -> Curve {
        let points = points
            .iter()
            .map(|&(size, speed)| (size, speed, Interval { low: speed, high: speed }))
            .collect();
        let (pattern, phase) = ("strided".to_owned(), "write".to_owned());
        Curve { pattern, phase, method: method.to_owned(), ranks: 2, points }
    }

    #[test]
    fn saturation_is_found_where_the_curve_bends_and_not_where_it_still_grows() {
        let bent = curve("posix", &[(1024, 10.0), (4096, 40.0), (16384, 95.0), (65536, 100.0)]);
        assert!(knee(&bent).expect("a knee").text.contains("saturates at 16 KiB"));
        let grows = curve("posix", &[(1024, 10.0), (4096, 20.0), (16384, 40.0), (65536, 80.0)]);
        assert!(knee(&grows).expect("a curve").text.contains("still grows"));
        assert_eq!(knee(&curve("posix", &[(1024, 10.0)])), None);
    }

    #[test]
    fn a_stripe_shows_as_a_grid_of_fast_sizes() {
        let points =
            [(65536, 90.0), (70000, 40.0), (131072, 100.0), (140000, 45.0), (196608, 95.0)];
        let found = alignment(&curve("posix", &points)).expect("a grid");
        assert!(found.text.contains("multiples of 64 KiB"), "{}", found.text);
        let even = points.map(|(size, _)| (size, 50.0));
        assert_eq!(alignment(&curve("posix", &even)), None);
    }

    #[test]
    fn break_even_lies_between_the_sizes_where_the_ratio_crosses_one() {
        let curves = [
            curve("collective", &[(1024, 30.0), (65536, 60.0)]),
            curve("independent", &[(1024, 10.0), (65536, 90.0)]),
        ];
        let found = break_even(&curves);
        assert!(found[0].text.contains("break-even between 1 KiB and 64 KiB"), "{}", found[0].text);
    }

    #[test]
    fn equal_samples_show_no_difference_and_separate_ones_do() {
        let (low, high) = ([10.0, 11.0, 10.5, 9.8, 10.2], [20.0, 21.0, 19.5, 20.4, 20.1]);
        let verdict_of = |a: &[f64], b: &[f64]| {
            let (_, interval) = ratio_of_medians(a, b).expect("samples");
            verdict(a, b, interval)
        };
        assert!(verdict_of(&high[..2], &low).starts_with("too few"));
        assert_eq!(verdict_of(&low, &low), "no difference shown");
        assert_eq!(verdict_of(&high, &low), "faster");
        assert_eq!(verdict_of(&low, &high), "slower");
        assert_eq!(ratio_of_medians(&[], &low), None);
    }
}
