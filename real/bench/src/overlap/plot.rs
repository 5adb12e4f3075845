//! Measured ratios over compute/io on a logarithmic axis, with theory as a line: SVG.
//!
//! A series is a case of a run; what several runs found goes into one picture. Dots are points,
//! hollow when not averaged; a bar is the range of the usable repetitions, or the interval of their
//! median where there are enough.

use super::OverlapOutcome;
use iolab_report::overlap::{Found, OverlapPoint, OverlapSummary, theory};
use std::fmt::Write;

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

/// One picture of all cases of all outcomes.
pub fn overlap_plot(outcomes: &[OverlapOutcome]) -> String {
    let ratios = outcomes.iter().flat_map(|outcome| &outcome.points).map(OverlapPoint::gain);
    let top = ratios.filter(|ratio| ratio.is_finite()).fold(1.25, f64::max);
    let axis = Axis { top: (top * 4.0).ceil() / 4.0 };
    let mut body = grid(&axis) + &reference(outcomes, &axis) + &line(&axis);
    let mut legend = String::new();
    let mut colours = COLOURS.iter().cycle();
    let mut rows = 0.0;
    for outcome in outcomes {
        for (index, case) in outcome.cases.iter().enumerate() {
            let points: Vec<_> = outcome.points.iter().filter(|p| p.case == index).collect();
            if points.is_empty() {
                continue;
            }
            let colour = colours.next().expect("a cycle has no end");
            body += &series(&points, &axis, colour);
            let summaries = outcome.summaries.iter().filter(|summary| summary.case == index);
            body += &summaries.map(|summary| bar(summary, &axis, colour)).collect::<String>();
            let name = escaped(&format!(
                "{} ({}, {} rank{})",
                case.title,
                outcome.communication,
                outcome.ranks,
                if outcome.ranks == 1 { "" } else { "s" }
            ));
            let y = TOP + HEIGHT + 62.0 + rows * 16.0;
            let _ = writeln!(
                legend,
                "<circle cx=\"{LEFT}\" cy=\"{:.1}\" r=\"4\" fill=\"{colour}\"/>\
                 <text x=\"{}\" y=\"{y:.1}\">{name}</text>",
                y - 4.0,
                LEFT + 10.0
            );
            rows += 1.0;
        }
    }
    let height = TOP + HEIGHT + 66.0 + rows * 16.0;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 {height:.0}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"640\" height=\"{height:.0}\" fill=\"#fff\"/>\n\
         <text x=\"{LEFT}\" y=\"18\" font-weight=\"bold\">time non-blocking / blocking</text>\n\
         <text x=\"{LEFT}\" y=\"34\">line: max(c, io) / (c + io); hollow: not averaged; \
         grey band: published 2007 (PVFS2)</text>\n\
         {body}<text x=\"340\" y=\"{:.0}\" text-anchor=\"middle\">compute / io</text>\n{legend}</svg>\n",
        TOP + HEIGHT + 38.0
    )
}

fn grid(axis: &Axis) -> String {
    let mut text = String::new();
    for c_over_io in [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0] {
        let (x, y) = (x(c_over_io), TOP + HEIGHT + 16.0);
        let _ = writeln!(
            text,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{c_over_io}</text>"
        );
    }
    let steps = (axis.top / 0.25).round() as u32;
    for ratio in (0..=steps).map(|step| f64::from(step) * 0.25) {
        let y = axis.y(ratio);
        let _ = writeln!(
            text,
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>\
             <text x=\"52\" y=\"{:.1}\" text-anchor=\"end\">{ratio}</text>",
            LEFT + WIDTH,
            y + 4.0
        );
    }
    text
}

/// What was published, at equality.
fn reference(outcomes: &[OverlapOutcome], axis: &Axis) -> String {
    let Some(outcome) = outcomes.first() else { return String::new() };
    let (top, bottom) =
        (axis.y(outcome.reference.ratios.high), axis.y(outcome.reference.ratios.low));
    let (left, right) = (x(0.9), x(1.0 / 0.9));
    format!(
        "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"#ccc\">\
         <title>{}: {}</title></rect>\n",
        right - left,
        bottom - top,
        escaped(&outcome.reference.source),
        escaped(&outcome.reference.settings)
    )
}

fn line(axis: &Axis) -> String {
    let (low, high) = (RANGE.0.log10(), RANGE.1.log10());
    let points: Vec<String> = (0..=100)
        .map(|step| 10f64.powf(low + (high - low) * f64::from(step) / 100.0))
        .map(|c| format!("{:.1},{:.1}", x(c), axis.y(theory(c, 1.0))))
        .collect();
    format!(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"#888\" stroke-width=\"2\"/>\n",
        points.join(" ")
    )
}

fn series(points: &[&OverlapPoint], axis: &Axis, colour: &str) -> String {
    let dot = |point: &&OverlapPoint| {
        let (cx, cy) = (x(point.compute_over_io?), axis.y(point.gain()));
        let fill = if point.usable { colour } else { "none" };
        Some(format!(
            "<circle cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"2\" fill=\"{fill}\" fill-opacity=\"0.5\" \
             stroke=\"{colour}\" stroke-opacity=\"0.5\"/>\n"
        ))
    };
    points.iter().filter_map(dot).collect()
}

fn bar(summary: &OverlapSummary, axis: &Axis, colour: &str) -> String {
    let Some(Found { compute_over_io: Some(c_over_io), ratio, .. }) = &summary.found else {
        return String::new();
    };
    let (x, low, high) = (x(*c_over_io), axis.y(ratio.interval.low), axis.y(ratio.interval.high));
    let y = axis.y(ratio.median);
    format!(
        "<path d=\"M{x:.1},{low:.1}V{high:.1}M{:.1},{y:.1}h12\" stroke=\"{colour}\" \
         stroke-width=\"2\" fill=\"none\"/>\n",
        x - 6.0
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
