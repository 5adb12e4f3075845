//! Measured ratios over compute/io on a logarithmic axis, with theory as a line: SVG.
//!
//! A series is a case of a run; what several runs found goes into one picture. Dots are points,
//! hollow when not averaged; a bar is the range of the usable repetitions, or the interval of their
//! median where there are enough.

use super::{CaseEntry, Found, OverlapOutcome, OverlapPoint, OverlapSummary, theory};
use crate::markup::{Px, document};
use maud::{Markup, html};

const WIDTH: f64 = 560.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 50.0;
const HEIGHT: f64 = 300.0;
/// Compute over I/O at the ends of the axis.
const RANGE: (f64, f64) = (0.05, 20.0);
/// Told apart also by those who confuse red and green (Okabe and Ito 2008).
const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];

fn x(compute_over_io: f64) -> f64 {
    let (low, high) = (RANGE.0.log10(), RANGE.1.log10());
    LEFT + (compute_over_io.clamp(RANGE.0, RANGE.1).log10() - low) / (high - low) * WIDTH
}

/// The vertical axis, high enough for what was found.
struct Axis {
    top: f64,
}

impl Axis {
    fn y(&self, ratio: f64) -> f64 {
        TOP + HEIGHT - ratio.clamp(0.0, self.top) / self.top * HEIGHT
    }
}

/// One picture of all cases of all outcomes, as SVG.
pub fn overlap_plot(outcomes: &[OverlapOutcome]) -> String {
    let ratios = outcomes.iter().flat_map(|outcome| &outcome.points).map(OverlapPoint::gain);
    let top = ratios.filter(|ratio| ratio.is_finite()).fold(1.25, f64::max);
    let axis = Axis { top: (top * 4.0).ceil() / 4.0 };
    let drawn: Vec<Drawn> = outcomes.iter().flat_map(drawn).collect();
    let coloured = || drawn.iter().zip(COLOURS.iter().cycle());
    let below = TOP + HEIGHT;
    let height = below + 66.0 + drawn.len() as f64 * 16.0;
    document(html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format_args!("0 0 640 {height:.0}"))
            font-family="sans-serif" font-size="12" {
            "\n"
            rect width="640" height=(format_args!("{height:.0}")) fill="#fff" {}
            "\n"
            text x=(LEFT) y="18" font-weight="bold" { "time non-blocking / blocking" }
            "\n"
            text x=(LEFT) y="34" {
                "line: max(c, io) / (c + io); hollow: not averaged; grey band: published 2007 (PVFS2)"
            }
            "\n"
            (grid(&axis))
            (reference(outcomes, &axis))
            (line(&axis))
            @for (case, colour) in coloured() {
                (series(&case.points, &axis, colour))
                @for summary in &case.summaries { (bar(summary, &axis, colour)) }
            }
            text x="340" y=(format_args!("{:.0}", below + 38.0)) text-anchor="middle" { "compute / io" }
            "\n"
            @for (row, (case, colour)) in coloured().enumerate() {
                @let y = below + 62.0 + row as f64 * 16.0;
                circle cx=(LEFT) cy=(Px(y - 4.0)) r="4" fill=(colour) {}
                text x=(LEFT + 10.0) y=(Px(y)) { (case.name) }
                "\n"
            }
        }
        "\n"
    })
}

/// A case with something to draw.
struct Drawn<'a> {
    name: String,
    points: Vec<&'a OverlapPoint>,
    summaries: Vec<&'a OverlapSummary>,
}

fn drawn(outcome: &OverlapOutcome) -> impl Iterator<Item = Drawn<'_>> {
    let (kind, ranks) = (&outcome.communication, outcome.ranks);
    let plural = if ranks == 1 { "" } else { "s" };
    let of_case = move |(index, case): (usize, &CaseEntry)| Drawn {
        name: format!("{} ({kind}, {ranks} rank{plural})", case.title),
        points: outcome.points.iter().filter(|point| point.case == index).collect(),
        summaries: outcome.summaries.iter().filter(|summary| summary.case == index).collect(),
    };
    outcome.cases.iter().enumerate().map(of_case).filter(|case| !case.points.is_empty())
}

fn grid(axis: &Axis) -> Markup {
    let steps = (axis.top / 0.25).round() as u32;
    html! {
        @for c_over_io in [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0] {
            text x=(Px(x(c_over_io))) y=(Px(TOP + HEIGHT + 16.0)) text-anchor="middle" { (c_over_io) }
            "\n"
        }
        @for ratio in (0..=steps).map(|step| f64::from(step) * 0.25) {
            @let y = axis.y(ratio);
            line x1=(LEFT) x2=(LEFT + WIDTH) y1=(Px(y)) y2=(Px(y)) stroke="#ddd" {}
            text x="52" y=(Px(y + 4.0)) text-anchor="end" { (ratio) }
            "\n"
        }
    }
}

/// What was published, at equality.
fn reference(outcomes: &[OverlapOutcome], axis: &Axis) -> Markup {
    let (left, right) = (x(0.9), x(1.0 / 0.9));
    html! {
        @if let Some(OverlapOutcome { reference, .. }) = outcomes.first() {
            @let (top, bottom) = (axis.y(reference.ratios.high), axis.y(reference.ratios.low));
            rect x=(Px(left)) y=(Px(top)) width=(Px(right - left)) height=(Px(bottom - top))
                fill="#ccc" { title { (reference.source) ": " (reference.settings) } }
            "\n"
        }
    }
}

fn line(axis: &Axis) -> Markup {
    let (low, high) = (RANGE.0.log10(), RANGE.1.log10());
    let points: Vec<String> = (0..=100)
        .map(|step| 10f64.powf(low + (high - low) * f64::from(step) / 100.0))
        .map(|c| format!("{:.1},{:.1}", x(c), axis.y(theory(c, 1.0))))
        .collect();
    html! {
        polyline points=(points.join(" ")) fill="none" stroke="#888" stroke-width="2" {}
        "\n"
    }
}

fn series(points: &[&OverlapPoint], axis: &Axis, colour: &str) -> Markup {
    html! {
        @for point in points {
            @if let Some(compute_over_io) = point.compute_over_io {
                circle cx=(Px(x(compute_over_io))) cy=(Px(axis.y(point.gain()))) r="2"
                    fill=(if point.usable { colour } else { "none" }) fill-opacity="0.5"
                    stroke=(colour) stroke-opacity="0.5" {}
                "\n"
            }
        }
    }
}

fn bar(summary: &OverlapSummary, axis: &Axis, colour: &str) -> Markup {
    html! {
        @if let Some(Found { compute_over_io: Some(c_over_io), ratio, .. }) = &summary.found {
            @let (low, high) = (axis.y(ratio.interval.low), axis.y(ratio.interval.high));
            @let (x, y) = (x(*c_over_io), axis.y(ratio.median));
            path d=(format_args!("M{x:.1},{low:.1}V{high:.1}M{:.1},{y:.1}h12", x - 6.0))
                stroke=(colour) stroke-width="2" fill="none" {}
            "\n"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equality_is_in_the_middle_and_the_ends_of_the_axis_at_its_ends() {
        assert_eq!([x(RANGE.0), x(RANGE.1)], [LEFT, LEFT + WIDTH]);
        assert!((x(1.0) - (LEFT + WIDTH / 2.0)).abs() < 1e-9);
        assert_eq!([x(0.0), x(1e9)], [LEFT, LEFT + WIDTH], "what is beyond stands at the end");
        let axis = Axis { top: 1.25 };
        assert_eq!([axis.y(0.0), axis.y(1.25), axis.y(9.0)], [TOP + HEIGHT, TOP, TOP]);
    }

    #[test]
    fn theory_goes_from_end_to_end_by_a_half_at_equality() {
        let drawn = line(&Axis { top: 1.0 }).into_string();
        let points = drawn.split('"').nth(1).unwrap_or("");
        let points: Vec<&str> = points.split(' ').collect();
        // 0.05 and 20 to 1 leave 20 / 21 of the time; half of 300 pixels lies at 200.
        assert_eq!(
            (points[0], points[50], points[100]),
            ("60.0,64.3", "340.0,200.0", "620.0,64.3")
        );
    }

    #[test]
    fn a_picture_of_nothing_has_room_for_its_words() {
        let svg = overlap_plot(&[]);
        assert!(svg.contains(r#"viewBox="0 0 640 416""#), "{svg}");
        assert!(svg.contains(r#"y="388" text-anchor="middle">compute / io<"#), "{svg}");
    }
}
