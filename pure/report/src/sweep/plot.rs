//! The comparison of a sweep: run time over one parameter, a series for each value of another, and
//! what the remaining ones do to it as error bars.

use super::{Line, Results};
use crate::chart::{Axis, Chart, Mark, STYLE, Series, Unit};
use crate::markup::plain_page;
use maud::html;

impl Results<'_> {
    /// A page with the figure.
    pub fn page(&self) -> String {
        let title = if self.sweep.name.is_empty() { "sweep" } else { &self.sweep.name };
        let body = html! {
            h1 { (title) }
            @match figure(self, title) {
                Some(chart) => (chart.figure()),
                None => p { "No parameter has several values." },
            }
        };
        plain_page(title, STYLE, body)
    }
}

fn figure(results: &Results, title: &str) -> Option<Chart> {
    let Results { sweep, lines } = results;
    let names = sweep.names();
    let several = |name: &&&str| sweep.values_of(name).len() > 1;
    let asked =
        |wish: &Option<String>| names.iter().position(|name| Some(*name) == wish.as_deref());
    let first = |but: Option<usize>| {
        let found =
            names.iter().filter(several).find(|name| but.is_none_or(|but| names[but] != **name));
        found.and_then(|found| names.iter().position(|name| name == found))
    };
    let series = asked(&sweep.plot.series);
    let x = asked(&sweep.plot.x).or_else(|| first(series))?;
    let series = series.or_else(|| first(Some(x)));
    let places = sweep.values_of(names[x]);
    let mut chart = Chart::new(
        format!("{title}: run time by {}", names[x]),
        Axis::categories(names[x], places.clone()),
        Axis::linear("run time", Unit::Seconds),
    )
    .caption(
        "Mean over all other parameters of the medians over orders of simultaneous events; bars \
         span their lowest and highest run.",
    )
    .size(720, 360);
    let labels =
        series.map_or_else(|| vec![String::new()], |series| sweep.values_of(names[series]));
    for label in labels {
        let name = series
            .map_or_else(|| "run time".to_owned(), |series| format!("{} = {label}", names[series]));
        let mut drawn = Series::new(name, Mark::Points, []);
        for (place, value) in places.iter().enumerate() {
            let ranges: Vec<[f64; 3]> = lines
                .iter()
                .filter(|line| {
                    let values = results.values(line);
                    values[x] == *value && series.is_none_or(|series| values[series] == label)
                })
                .filter_map(Line::range)
                .collect();
            if ranges.is_empty() {
                continue;
            }
            let mean = ranges.iter().map(|range| range[1]).sum::<f64>() / ranges.len() as f64;
            let low = ranges.iter().map(|range| range[0]).fold(f64::INFINITY, f64::min);
            let high = ranges.iter().map(|range| range[2]).fold(0.0, f64::max);
            drawn = drawn.point_with_error(place as f64, mean, low, high);
        }
        chart = chart.with(drawn);
    }
    Some(chart)
}
