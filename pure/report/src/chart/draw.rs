//! The SVG of a chart.
//!
//! Colours are classes, not attributes, so that one `STYLE` (in the page, or inside a document of its
//! own) serves light and dark. Eight series colours, chosen to be told apart by colour-blind eyes
//! (Okabe and Ito 2008, darkened or lightened for contrast of 3:1 against the ground).

use super::scale::Placed;
use super::{Chart, Mark, Point, Scale, Series};
use crate::markup::{Px, document};
use maud::{Markup, PreEscaped, html};
use std::fmt::Write;

/// How the classes in a chart look, light and dark.
pub const STYLE: &str = "\
.chart-svg{font:12px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;--c0:#0b6bb8;--c1:#c8560a;--c2:#0a8463;--c3:#a24f8d;--c4:#8a6d00;--c5:#2f8fbd;--c6:#b3372f;--c7:#5a6270;--ink:#1d2329;--soft:#59636e;--line:#d5dade}\
@media(prefers-color-scheme:dark){.chart-svg{--c0:#5aa9e6;--c1:#f0883e;--c2:#3fb98f;--c3:#d48cc0;--c4:#d4b13f;--c5:#7cc7ea;--c6:#f0736a;--c7:#a3adb8;--ink:#e6eaee;--soft:#9aa5b1;--line:#333b44}}\
.chart-svg text{fill:var(--soft)}.chart-svg .name{fill:var(--ink)}.chart-svg .grid{stroke:var(--line);stroke-width:1}.chart-svg .base{stroke:var(--soft);stroke-width:1}\
.chart-svg .line{fill:none;stroke:var(--c);stroke-width:2;stroke-linejoin:round;stroke-linecap:round}.chart-svg .dense{stroke-width:1}.chart-svg .area{fill:var(--c);opacity:.18}.chart-svg .fill{fill:var(--c)}.chart-svg .error{stroke:var(--c);stroke-width:1.5;fill:none}.chart-svg .bar-error{stroke:var(--ink);stroke-width:1.2;fill:none}\
.chart-svg .s0{--c:var(--c0)}.chart-svg .s1{--c:var(--c1)}.chart-svg .s2{--c:var(--c2)}.chart-svg .s3{--c:var(--c3)}.chart-svg .s4{--c:var(--c4)}.chart-svg .s5{--c:var(--c5)}.chart-svg .s6{--c:var(--c6)}.chart-svg .s7{--c:var(--c7)}";

/// Above this many values the single ones get no tooltip: the file would grow with the data.
const TOOLTIP_COUNT_MAX: usize = 300;

/// Above this many steps a thick line would fill the chart.
const DENSE_COUNT: usize = 80;

/// Rough width of a character of the 12 px font.
const CHARACTER_PX: f64 = 6.4;

struct Frame<'a> {
    chart: &'a Chart,
    x: Placed<'a>,
    y: Placed<'a>,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Chart {
    /// The drawing as an SVG document of its own.
    pub fn svg(&self) -> String {
        document(drawing(self))
    }

    /// The drawing as a `<figure>` with heading and caption, for a page that includes `STYLE`.
    pub fn figure(&self) -> Markup {
        figure(self)
    }
}

/// The chart as an SVG document of its own, with a title.
fn drawing(chart: &Chart) -> Markup {
    open(chart, html! { style { (PreEscaped(STYLE)) } (inside(chart)) })
}

/// The chart as a figure of a page.
fn figure(chart: &Chart) -> Markup {
    html! {
        figure class="chart" {
            figcaption { h3 { (chart.title) } }
            (open(chart, inside(chart)))
            @if !chart.caption.is_empty() { p class="caption" { (chart.caption) } }
        }
    }
}

fn open(chart: &Chart, inner: Markup) -> Markup {
    let (width, height) = chart.size;
    html! {
        svg xmlns="http://www.w3.org/2000/svg" class="chart-svg" viewBox={ "0 0 " (width) " " (height) }
            width=(width) height=(height) role="img" aria-label=(chart.title) { (inner) }
    }
}

fn inside(chart: &Chart) -> Markup {
    let frame = frame(chart);
    // A series without values takes no room beside the others.
    let has_bars = |series: &&Series| series.mark == Mark::Bars && !series.points.is_empty();
    let bars_before = |index| chart.series[..index].iter().filter(has_bars).count();
    let bars_count = bars_before(chart.series.len());
    html! {
        (axes(&frame))
        @for (index, series) in chart.series.iter().enumerate() {
            g class={ "s" (index % 8) } {
                @match series.mark {
                    Mark::Bars => (bars(&frame, series, bars_before(index), bars_count)),
                    Mark::Points => (dots(&frame, series)),
                    Mark::Line => (line(&frame, series)),
                    Mark::Steps | Mark::Area => (steps(&frame, series)),
                }
            }
        }
        (legend(chart))
    }
}

fn frame(chart: &Chart) -> Frame<'_> {
    let (width, height) = (f64::from(chart.size.0), f64::from(chart.size.1));
    let points = || chart.series.iter().flat_map(|series| series.points.iter());
    let heights = || points().flat_map(|point| [Some(point.y), point.error.map(|ends| ends.1)]);
    let legend = if chart.series.len() > 1 { 20.0 } else { 0.0 };
    let (top, bottom) = (30.0 + legend, height - 40.0);
    let y = Placed::new(&chart.y, heights().flatten(), (bottom, top), true);
    let widest = y.ticks(5).iter().map(|tick| tick.1.chars().count()).max().unwrap_or(0);
    let left = 14.0 + widest as f64 * CHARACTER_PX;
    let right = width - 16.0;
    let x = Placed::new(&chart.x, points().map(|point| point.x), (left, right), false);
    Frame { chart, x, y, left, right, top, bottom }
}

fn axes(frame: &Frame<'_>) -> Markup {
    let &Frame { chart, left, right, top, bottom, .. } = frame;
    let ticks = frame.x.ticks(7);
    let stride = crowding(&ticks, right - left);
    html! {
        @for (at, text) in frame.y.ticks(5) {
            path class="grid" d={ "M" (Px(left)) " " (Px(at)) "H" (Px(right)) } {}
            text x=(Px(left - 7.0)) y=(Px(at + 4.0)) text-anchor="end" { (text) }
        }
        @for (at, text) in ticks.iter().step_by(stride) {
            text x=(Px(*at)) y=(Px(bottom + 16.0)) text-anchor="middle" { (text) }
        }
        path class="base" d={ "M" (Px(left)) " " (Px(frame.y.base())) "H" (Px(right)) } {}
        text class="name" x="4" y=(Px(top - 15.0)) { (chart.y.label) }
        text class="name" x=(Px(right)) y=(Px(bottom + 33.0)) text-anchor="end" { (chart.x.label) }
    }
}

/// Every how many ticks a text fits.
fn crowding(ticks: &[(f64, String)], width: f64) -> usize {
    let longest = ticks.iter().map(|tick| tick.1.chars().count()).max().unwrap_or(0);
    let needed = (longest as f64 + 1.5) * CHARACTER_PX * ticks.len() as f64;
    ((needed / width).ceil() as usize).max(1)
}

/// Pixels of the points both axes can show.
fn places<'a>(
    frame: &'a Frame<'_>,
    series: &'a Series,
) -> impl Iterator<Item = (f64, f64, &'a Point)> {
    let place = |point: &'a Point| Some((frame.x.place(point.x)?, frame.y.place(point.y)?, point));
    series.points.iter().filter_map(place)
}

/// What the value is, for who points at it.
fn tooltip(frame: &Frame<'_>, series: &Series, point: &Point) -> Markup {
    let x = match &frame.chart.x.scale {
        Scale::Categories(names) => names.get(point.x as usize).cloned().unwrap_or_default(),
        _ => frame.chart.x.unit.format(point.x),
    };
    let unit = frame.chart.y.unit;
    html! {
        @if series.points.len() <= TOOLTIP_COUNT_MAX {
            title {
                (series.label) ": " (x) ", " (unit.format(point.y))
                @if let Some((low, high)) = point.error {
                    " (" (unit.format(low)) " to " (unit.format(high)) ")"
                }
            }
        }
    }
}

fn line(frame: &Frame<'_>, series: &Series) -> Markup {
    let mut path = String::new();
    for (x, y, _) in places(frame, series) {
        let _ = write!(path, "{}{x:.1} {y:.1}", if path.is_empty() { 'M' } else { 'L' });
    }
    html! {
        path class="line" d=(path) {}
        @if series.points.len() <= 40 { (dots(frame, series)) }
    }
}

fn dots(frame: &Frame<'_>, series: &Series) -> Markup {
    html! {
        @for (x, y, point) in places(frame, series) {
            (error_bar(frame, "error", x, point))
            circle class="fill" cx=(Px(x)) cy=(Px(y)) r="3.2" { (tooltip(frame, series, point)) }
        }
    }
}

fn error_bar(frame: &Frame<'_>, class: &str, x: f64, point: &Point) -> Markup {
    let ends =
        point.error.and_then(|(low, high)| Some((frame.y.place(low)?, frame.y.place(high)?)));
    let left = x - 4.0;
    html! {
        @if let Some((low, high)) = ends {
            path class=(class)
                d=(format_args!("M{left:.1} {low:.1}h8m-4 0V{high:.1}m-4 0h8")) {}
        }
    }
}

fn steps(frame: &Frame<'_>, series: &Series) -> Markup {
    let mut path = String::new();
    let mut ends = None;
    for point in &series.points {
        let Some(x) = frame.x.place(point.x) else { continue };
        // Nothing at all is below every logarithmic axis: it is drawn at the axis, not left out,
        // or the step before it would seem to go on.
        let y = frame.y.place(point.y).unwrap_or_else(|| frame.y.base());
        match ends {
            None => {
                let _ = write!(path, "M{x:.1} {y:.1}");
                ends = Some((x, x));
            }
            Some((first, _)) => {
                let _ = write!(path, "H{x:.1}V{y:.1}");
                ends = Some((first, x));
            }
        }
    }
    let base = Px(frame.y.base());
    let is_dense = series.points.len() > DENSE_COUNT;
    html! {
        @if let (Mark::Area, Some((first, last))) = (series.mark, ends) {
            path class="area" d={ (path) "H" (Px(last)) "V" (base) "H" (Px(first)) "Z" } {}
        }
        path class={ "line" @if is_dense { " dense" } } d=(path) {}
    }
}

/// The bars of a series, which is number `index` of `count` that have bars.
fn bars(frame: &Frame<'_>, series: &Series, index: usize, count: usize) -> Markup {
    let slot = match frame.chart.x.scale {
        Scale::Categories(_) => frame.x.category_width(),
        _ => (frame.right - frame.left) / series.points.len().max(1) as f64,
    };
    let width = (slot * 0.72 / count as f64).clamp(1.0, 64.0);
    let base = frame.y.base();
    html! {
        @for (x, y, point) in places(frame, series) {
            @let left = x + (index as f64 - count as f64 / 2.0) * width;
            rect class="fill" x=(Px(left)) y=(Px(y.min(base))) width=(Px((width - 1.0).max(1.0)))
                height=(Px((base - y).abs().max(0.5))) rx="1.5" { (tooltip(frame, series, point)) }
            (error_bar(frame, "bar-error", left + width / 2.0, point))
        }
    }
}

fn legend(chart: &Chart) -> Markup {
    let series = if chart.series.len() < 2 { &[][..] } else { &chart.series };
    let mut next = 4.0;
    let mut place = |series: &Series| {
        let x = next;
        next += 34.0 + series.label.chars().count() as f64 * CHARACTER_PX;
        x
    };
    html! {
        @for (index, series) in series.iter().enumerate() {
            @let x = place(series);
            g class={ "s" (index % 8) } {
                rect class="fill" x=(Px(x)) y="4" width="10" height="10" rx="2" {}
            }
            text class="name" x=(Px(x + 15.0)) y="13" { (series.label) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Axis, Unit};
    use super::*;

    fn chart(mark: Mark, values: &[(f64, f64)]) -> String {
        let series = Series::new("a <b>", mark, values.iter().copied());
        let axis = Axis::log10("count", Unit::Plain);
        Chart::new("t", Axis::linear("x", Unit::Plain), axis).with(series).svg()
    }

    #[test]
    fn a_step_of_nothing_on_a_logarithmic_axis_falls_to_the_axis() {
        let svg = chart(Mark::Steps, &[(0.0, 10.0), (1.0, 0.0), (2.0, 10.0)]);
        let path = svg.split("class=\"line\" d=\"").nth(1).unwrap_or("");
        assert_eq!(path.split('"').next().unwrap_or("").matches('V').count(), 2, "{path}");
        assert!(path.contains("V230.0"), "{path}");
    }

    #[test]
    fn values_that_are_no_numbers_leave_no_mark_and_no_broken_path() {
        for mark in [Mark::Line, Mark::Steps, Mark::Area, Mark::Points, Mark::Bars] {
            for values in [&[][..], &[(f64::NAN, 1.0), (1.0, f64::INFINITY)][..]] {
                let svg = chart(mark, values);
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{mark:?}: {svg}");
            }
        }
    }

    #[test]
    fn one_series_needs_no_legend_and_two_do() {
        let with = |labels: &[&str]| {
            let axis = || Axis::linear("v", Unit::Plain);
            let empty = Chart::new("t", axis(), axis());
            let add = |chart: Chart, label: &&str| chart.with(Series::new(*label, Mark::Line, []));
            labels.iter().fold(empty, add).svg()
        };
        assert!(!with(&["alone"]).contains(">alone</text>"));
        let two = with(&["first", "second"]);
        // Five letters of 6.4 pixels after the mark of the first.
        assert!(two.contains(r#"x="19.0" y="13">first</text>"#), "{two}");
        assert!(two.contains(r#"x="85.0" y="13">second</text>"#), "{two}");
    }

    #[test]
    fn the_drawing_begins_right_of_the_longest_tick() {
        let left = |high: f64| {
            let y = Axis::linear("y", Unit::Seconds).range(0.0, high);
            let svg = Chart::new("t", Axis::linear("x", Unit::Plain), y).svg();
            let path = svg.split(r#"class="base" d="M"#).nth(1).unwrap_or("").to_owned();
            path.split(' ').next().unwrap_or("").parse::<f64>().unwrap()
        };
        // `5 s` and `500 ms` of 6.4 pixels a letter, seven of them free beside the axis.
        assert_eq!(
            [left(5.0), left(0.5)],
            [14.0 + 3.0 * 6.4, 14.0 + 6.0 * 6.4].map(|px: f64| (px * 10.0).round() / 10.0)
        );
    }

    #[test]
    fn names_are_escaped_and_a_document_stands_alone() {
        let svg = chart(Mark::Points, &[(1.0, 5.0)]);
        assert!(svg.contains("a &lt;b&gt;: 1, 5") && svg.contains("<style>"));
    }
}
