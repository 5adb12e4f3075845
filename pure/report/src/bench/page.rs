//! Curves of the benchmark and what they say, as a page.

use super::{Curve, Observation};
use crate::chart::{Axis, Chart, Mark, STYLE, Series, Unit};
use crate::markup::plain_page;
use maud::html;

/// How the page looks beside its charts.
const PAGE_STYLE: &str =
    "body{font:15px sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}";

/// A chart for each phase of a pattern, below what all of them say.
pub fn page(curves: &[Curve], observations: &[Observation]) -> String {
    let mut groups: Vec<(&str, &str, &str)> = Vec::new();
    for curve in curves {
        if !groups.contains(&group(curve)) {
            groups.push(group(curve));
        }
    }
    let body = html! {
        h1 { "Benchmark" }
        h2 { "What the results say" }
        ul {
            @for one in observations { li { b { (one.kind) } " " (one.text) } "\n" }
        }
        h2 { "Throughput by size" }
        @for group in groups { (chart(group, curves).figure()) "\n" }
    };
    plain_page("iolab bench", &format!("{PAGE_STYLE}{STYLE}"), body)
}

/// What is drawn into one chart: a phase of a pattern, in one unit.
fn group(curve: &Curve) -> (&str, &str, &str) {
    let of = |key: &str| curve.settings.get(key).map_or("", String::as_str);
    let pattern = if of("temporal") == "metadata" { "metadata" } else { of("pattern") };
    (pattern, of("phase"), curve.unit)
}

fn chart(shown: (&str, &str, &str), curves: &[Curve]) -> Chart {
    let (pattern, phase, unit) = shown;
    let x = Axis::log2("size", Unit::Bytes);
    let (y, factor) = match unit {
        "op/s" => (Axis::linear("operations per second", Unit::Plain), 1.0),
        _ => (Axis::linear("throughput", Unit::BytesPerSecond), f64::from(1 << 20)),
    };
    let mut chart = Chart::new(format!("{phase} of {pattern}"), x, y);
    for curve in curves.iter().filter(|curve| group(curve) == shown) {
        let mut series = Series::new(curve.label.clone(), Mark::Line, []);
        for point in &curve.points {
            let interval = point.interval();
            let (low, high) = (interval.low * factor, interval.high * factor);
            series = series.point_with_error(point.size as f64, point.median() * factor, low, high);
        }
        chart = chart.with(series);
    }
    chart
}
