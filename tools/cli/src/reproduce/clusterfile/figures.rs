//! The plots of the evaluation, as far as their cells were computed.

use super::claims::caches;
use super::plan::{
    Cell, Extent, METHODS, Measure, ROWS, Results, SERVERS, all_costs, costs_name, method_name,
};
use iolab_report::chart::{Axis, Chart, Mark, STYLE, Series, Unit};
use iolab_report::markup::plain_page;
use iolab_sim::evaluation::clusterfile::{Method, Work};
use iolab_sim::file_system::Costs;
use maud::html;

const TITLE: &str = "Clusterfile's evaluation, computed again";

/// One page with a figure for each operation and assumption.
pub(super) fn page(results: &Results) -> String {
    let mut charts = Vec::new();
    for costs in all_costs() {
        let name = costs_name(&costs);
        for measure in Measure::OPERATIONS {
            let grains = |method, servers, point: u64| {
                let cell = Cell::new(Work::Cyclic { run: point, rows: ROWS }, method, servers);
                (Cell { costs, ..cell }, point as f64)
            };
            let title = format!("CYCLIC(k) of 256 MiB: {}, memory costs {name}", measure.name());
            let x = Axis::log2("k", Unit::Bytes);
            charts.push(chart(
                results,
                (title, x),
                measure,
                Extent::Whole.runs(),
                &SERVERS,
                grains,
            ));
            let cubes = |method, servers, points: u64| {
                let cell = Cell::new(Work::Block(points), method, servers);
                (Cell { costs, ..cell }, (points.pow(3) * 16) as f64)
            };
            let title = format!("cubes in blocks: {}, memory costs {name}", measure.name());
            let x = Axis::log2("size of the cube", Unit::Bytes);
            charts.push(chart(results, (title, x), measure, Extent::Whole.cubes(), &[16], cubes));
            let sizes = |method, servers, rows: u64| {
                let cell = Cell::new(Work::Cyclic { run: 32, rows }, method, servers);
                (Cell { costs, ..cell }, (rows * rows) as f64)
            };
            let title = format!("CYCLIC(32): {}, memory costs {name}", measure.name());
            let x = Axis::log2("size of the matrix", Unit::Bytes);
            charts.push(chart(results, (title, x), measure, Extent::Whole.rows(), &[16], sizes));
        }
    }
    charts.extend(all_costs().map(|costs| global_cache(results, costs)));
    let body = html! {
        h1 { (TITLE) }
        @for chart in charts.iter().filter(|chart| !chart.series.is_empty()) { (chart.figure()) "\n" }
    };
    plain_page(TITLE, STYLE, body)
}

/// What a second read gets from more cache managers, a line for each matrix.
fn global_cache(results: &Results, costs: Costs) -> Chart {
    let title = format!("read from a warm global cache, memory costs {}", costs_name(&costs));
    let x = Axis::log2("cache managers", Unit::Plain);
    let mut chart = Chart::new(title, x, Axis::linear("throughput", Unit::BytesPerSecond));
    for work in caches::rows(Extent::Whole).iter().flat_map(|&rows| caches::works(rows)) {
        let cells = caches::CACHES.map(|count| (caches::read(work, count, costs), count));
        let known = cells.iter().filter(|(cell, _)| results.has(cell));
        let values: Vec<_> = known
            .map(|(cell, count)| {
                let seconds = results.band(cell, Measure::Again).median;
                (f64::from(*count), work.bytes() as f64 / seconds)
            })
            .collect();
        if !values.is_empty() {
            chart = chart.with(Series::new(work.name(), Mark::Line, values));
        }
    }
    chart
}

/// Throughput over points, a line for each way and number of servers.
fn chart(
    results: &Results,
    (title, x): (String, Axis),
    measure: Measure,
    points: &[u64],
    servers: &[u32],
    cell: impl Fn(Method, u32, u64) -> (Cell, f64),
) -> Chart {
    let mut chart = Chart::new(title, x, Axis::linear("throughput", Unit::BytesPerSecond));
    for method in METHODS {
        for &servers in servers {
            let cells = points.iter().map(|&point| cell(method, servers, point));
            let known = cells.filter(|(cell, _)| results.has(cell));
            let values: Vec<_> = known
                .map(|(cell, x)| {
                    let seconds = results.band(&cell, measure).median;
                    (x, cell.work.bytes() as f64 / seconds)
                })
                .collect();
            if !values.is_empty() {
                let label = format!("{}, {servers} servers", method_name(method));
                chart = chart.with(Series::new(label, Mark::Line, values));
            }
        }
    }
    chart
}
