//! The plots of the evaluation: throughput of each client by cache layer, one per test.

use super::result::Result;
use iolab_report::chart::{Axis, Chart, Mark, STYLE, Series, Unit};
use iolab_report::markup::plain_page;
use iolab_vocab::format_bytes;
use maud::html;

/// Clients of the evaluation.
const CLIENTS: f64 = 10.0;

const TITLE: &str = "PIOsimHD's evaluation, computed again";

/// One page with a figure per test and operation.
pub(crate) fn page(results: &[Result]) -> String {
    let body = html! {
        h1 { (TITLE) }
        @for (test, operation) in groups(results) {
            (figure(&test, operation, results).figure())
            "\n"
        }
    };
    plain_page(TITLE, STYLE, body)
}

/// Tests and operations in the order of the table.
fn groups(results: &[Result]) -> Vec<(String, &'static str)> {
    let mut groups: Vec<(String, &'static str)> = Vec::new();
    for result in results {
        let group = (result.case.test.name(), result.case.operation.name());
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups
}

fn figure(test: &str, operation: &str, results: &[Result]) -> Chart {
    let of_group: Vec<&Result> = results
        .iter()
        .filter(|one| one.case.test.name() == test && one.case.operation.name() == operation)
        .collect();
    let mut caches: Vec<&str> = of_group.iter().map(|one| one.case.published_cache()).collect();
    caches.dedup();
    let mut blocks: Vec<u64> = of_group.iter().map(|one| one.case.block_bytes).collect();
    blocks.sort_unstable();
    blocks.dedup();
    let place = |name: &str| caches.iter().position(|cache| *cache == name).unwrap_or(0) as f64;
    let x = Axis::categories("cache layer", caches.clone());
    let y = Axis::linear("throughput of each client", Unit::BytesPerSecond);
    let mut chart = Chart::new(format!("{test}, {operation}"), x, y);
    for block in blocks {
        let bars = of_group.iter().filter(|one| one.case.block_bytes == block);
        let value = |one: &&Result| {
            let throughput = one.case.total_bytes() as f64 / one.seconds / CLIENTS;
            (place(one.case.published_cache()), throughput)
        };
        chart = chart.with(Series::new(format_bytes(block), Mark::Bars, bars.map(value)));
    }
    chart
}
