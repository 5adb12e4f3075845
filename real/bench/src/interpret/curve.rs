//! Throughput over size: where it saturates, which sizes lie on a grid, who is faster from where.

use super::{Insight, insight, settled, shape, size, speeds};
use crate::outcome::{Measurement, Outcome};
use crate::statistics::{Interval, interval_of_median, median};
use iolab_vocab::format_bytes;

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

/// All curves of all results, in order of appearance.
pub fn curves(outcomes: &[Outcome]) -> Vec<Curve> {
    let mut groups: Vec<Vec<&Measurement>> = Vec::new();
    for m in settled(outcomes) {
        let same = |group: &&mut Vec<&Measurement>| key(group[0]) == key(m);
        match groups.iter_mut().find(same) {
            Some(group) => group.push(m),
            None => groups.push(vec![m]),
        }
    }
    groups.iter().map(|group| curve(group)).collect()
}

fn key(m: &Measurement) -> (&str, &str, &str, u32) {
    (shape(m), &m.phase, &m.method, m.ranks)
}

fn curve(group: &[&Measurement]) -> Curve {
    let mut sizes: Vec<u64> = group.iter().map(|m| size(m)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let point = |wanted: u64| {
        let values = speeds(group, |m| size(m) == wanted);
        (wanted, median(&values), interval_of_median(&values))
    };
    let (pattern, phase, method, ranks) = key(group[0]);
    Curve {
        pattern: pattern.to_owned(),
        phase: phase.to_owned(),
        method: method.to_owned(),
        ranks,
        points: sizes.into_iter().map(point).collect(),
    }
}

/// What the curves say.
pub(super) fn insights(curves: &[Curve]) -> Vec<Insight> {
    let mut found: Vec<Insight> = curves.iter().filter_map(knee).collect();
    found.extend(curves.iter().filter_map(alignment));
    found.extend(break_even(curves));
    found.extend(scaling(curves));
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
}
