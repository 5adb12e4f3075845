//! The plots of the study: how much faster the other medium is, by test and cache layer.

use super::study::{Pair, Study};
use iolab_report::chart::{Axis, Chart, Mark, STYLE, Series, Unit};
use iolab_report::markup::plain_page;
use iolab_vocab::format_bytes;
use maud::html;

/// One page, a figure per operation and block size.
pub(super) fn page(study: &Study) -> String {
    let title = format!("Hard disks against {}", study.other);
    let mut groups: Vec<(&str, u64)> = study.pairs.iter().map(group).collect();
    groups.sort_unstable();
    groups.dedup();
    let of_group = |one| study.pairs.iter().filter(|pair| group(pair) == one).collect::<Vec<_>>();
    let body = html! {
        h1 { (title) }
        @for one in groups { (figure(one, &of_group(one)).figure()) "\n" }
    };
    plain_page(&title, STYLE, body)
}

fn group(pair: &Pair) -> (&'static str, u64) {
    (pair.case.operation.name(), pair.case.block_bytes)
}

fn figure((operation, block): (&str, u64), pairs: &[&Pair]) -> Chart {
    let mut tests: Vec<String> = pairs.iter().map(|pair| pair.case.test.name()).collect();
    tests.dedup();
    let mut caches: Vec<&str> = pairs.iter().map(|pair| pair.case.cache).collect();
    caches.sort_unstable();
    caches.dedup();
    let x = Axis::categories("test", tests.clone());
    let y = Axis::linear("times faster than on hard disks", Unit::Plain);
    let title = format!("{operation}, blocks of {}", format_bytes(block));
    let place = |pair: &&&Pair| {
        let name = pair.case.test.name();
        tests.iter().position(|test| *test == name).unwrap_or(0) as f64
    };
    let chart = Chart::new(title, x, y);
    caches.into_iter().fold(chart, |chart, cache| {
        let bars = pairs.iter().filter(|pair| pair.case.cache == cache);
        chart.with(Series::new(cache, Mark::Bars, bars.map(|pair| (place(&pair), pair.gain()))))
    })
}
