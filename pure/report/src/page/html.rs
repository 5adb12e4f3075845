//! The HTML around the numbers. What comes from outside is escaped by `maud`, wherever it stands.

use super::order::{Order, order};
use super::sums::Fineness;
use super::timeline::{Encoded, encode_gathered, encode_ordered};
use super::{Finding, Jump, Page, Section, Timeline, overview};
use crate::chart::STYLE as CHARTS;
use crate::markup::{document, heading};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{Markup, PreEscaped, Render, html};
use serde::Serialize;
use std::collections::BTreeSet;

const SCRIPT: &str = include_str!("../../../../tools/viewer/dist/viewer.js");
const STYLE: &str = include_str!("../../../../tools/viewer/dist/viewer.css");

/// Says to the browser what the page promises: nothing is fetched from anywhere.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; worker-src blob:";

/// Beyond so many bytes a page takes browsers more than a few seconds.
pub const PAGE_MAX: u64 = 64 << 20;

/// A page of a bounded size.
#[derive(Debug)]
pub struct Rendered {
    /// The bytes of one HTML file.
    pub html: Vec<u8>,
    /// How many rows of its traces stand in sums, since single calls would not fit.
    pub gathered_count: usize,
}

/// The page as the bytes of one HTML file, of [`PAGE_MAX`] at most where sums of calls make it so small.
pub fn render(page: &Page<'_>) -> Vec<u8> {
    render_within(page, PAGE_MAX)
        .or_else(|| render_within(page, u64::MAX))
        .expect("a page of any size is one")
        .html
}

/// The page as the bytes of one HTML file of `most` at most: calls of traces that do not fit are gathered, as finely
/// as they do. Nothing where not even the coarsest sums fit.
///
/// Costs an encoding of the traces, a few of ever fewer sums more where they do not fit.
pub fn render_within(page: &Page<'_>, most: u64) -> Option<Rendered> {
    let mut jumps = Vec::new();
    let sections: Vec<Markup> =
        page.sections.iter().map(|section| shown(section, page, &mut jumps)).collect();
    let orders: Vec<Order> = page.timelines.iter().map(|timeline| order(timeline.trace)).collect();
    let timelines = || page.timelines.iter().zip(&orders);
    let overviews: Vec<Option<Vec<u8>>> =
        timelines().map(|(timeline, order)| overview::encode(timeline, order)).collect();
    let fitting = |timelines: Vec<Encoded>| {
        let html = assembled(page, &sections, &jumps, (&overviews, &timelines));
        let gathered_count = timelines.iter().map(|timeline| timeline.gathered_count).sum();
        (html.len() as u64 <= most).then_some(Rendered { html, gathered_count })
    };
    let events: u64 =
        page.timelines.iter().map(|timeline| timeline.trace.events.len() as u64).sum();
    // No trace was seen of which a page has less than half a byte for an event.
    if events / 2 <= most
        && let Some(rendered) =
            fitting(timelines().map(|(timeline, order)| encode_ordered(timeline, order)).collect())
    {
        return Some(rendered);
    }
    let kept: Vec<BTreeSet<u32>> =
        (0..).zip(&page.timelines).map(|(at, timeline)| kept(at, timeline, &jumps)).collect();
    let gathered = |fineness| {
        let timelines = timelines().zip(&kept).map(|((timeline, order), kept)| {
            encode_gathered(timeline, order, |row| kept.contains(&row), fineness)
        });
        fitting(timelines.collect())
    };
    let rows: Vec<usize> =
        orders.iter().flat_map(|order| order.rows.iter().map(|row| row.count)).collect();
    std::iter::successors(Some(Fineness::for_page(most, &rows)), |fineness| fineness.coarser())
        .find_map(gathered)
}

/// The rows of a timeline that somebody points at.
fn kept(number: usize, timeline: &Timeline<'_>, jumps: &[&Jump]) -> BTreeSet<u32> {
    let pointed = jumps.iter().filter(|jump| jump.timeline == number).filter_map(|jump| jump.row);
    pointed.chain(timeline.kept.iter().copied()).map(|row| row as u32).collect()
}

fn assembled(
    page: &Page<'_>,
    sections: &[Markup],
    jumps: &[&Jump],
    (overviews, timelines): (&[Option<Vec<u8>>], &[Encoded]),
) -> Vec<u8> {
    let placed = page.sections.iter().any(|section| matches!(section, Section::Timeline));
    let markup = html! {
        (PreEscaped("<!doctype html>\n"))
        html lang="en" {
            (head(page))
            body {
                main {
                    (opening(page))
                    @for section in sections { (section) "\n" }
                    @if !placed { (timeline_stage(page)) }
                }
                "\n"
                script type="application/json" id="jumps" { (json(&entries(jumps, timelines))) }
                // The script stands before the calls, so that it draws while the browser still reads these.
                @for overview in first_pictures(overviews, timelines) {
                    "\n"
                    script type="application/x-iolab-overview" { (Base64(overview)) }
                }
                "\n"
                script { (PreEscaped(SCRIPT)) }
                @for timeline in timelines {
                    "\n"
                    script type="application/x-iolab-timeline" { (Base64(&timeline.bytes)) }
                }
            }
        }
        "\n"
    };
    document(markup).into_bytes()
}

#[derive(Serialize)]
struct JumpEntry<'a> {
    timeline: usize,
    start_ns: u64,
    end_ns: u64,
    event: Option<u32>,
    filter: &'a str,
}

fn entries<'a>(jumps: &[&'a Jump], timelines: &[Encoded]) -> Vec<JumpEntry<'a>> {
    let entry = |jump: &&'a Jump| {
        let position = |row: usize| timelines.get(jump.timeline)?.positions.get(row).copied();
        JumpEntry {
            timeline: jump.timeline,
            start_ns: jump.start_ns,
            end_ns: jump.end_ns,
            event: jump.row.and_then(position),
            filter: &jump.filter,
        }
    };
    jumps.iter().map(entry).collect()
}

/// What is drawn first: of every timeline its overview, or itself when it is small; nothing when all are.
fn first_pictures<'a>(overviews: &'a [Option<Vec<u8>>], timelines: &'a [Encoded]) -> Vec<&'a [u8]> {
    if overviews.iter().all(Option::is_none) {
        return Vec::new();
    }
    let pairs = overviews.iter().zip(timelines);
    pairs.map(|(overview, timeline)| overview.as_deref().unwrap_or(&timeline.bytes)).collect()
}

/// Bytes, written as base64 where they stand.
struct Base64<'a>(&'a [u8]);

impl Render for Base64<'_> {
    fn render_to(&self, out: &mut String) {
        STANDARD.encode_string(self.0, out);
    }
}

/// JSON that may stand inside a script element, where nothing is escaped: no `<`, so no end tag either.
fn json(value: &impl Serialize) -> PreEscaped<String> {
    let text = serde_json::to_string(value).expect("only strings and numbers");
    PreEscaped(text.replace('<', "\\u003c"))
}

/// The text with numbers and their units held together at the end of a line.
fn unbroken(text: &str) -> String {
    const UNITS: [&str; 10] = ["B", "KiB", "MiB", "GiB", "TiB", "s", "ms", "µs", "ns", "%"];
    let mut out = String::with_capacity(text.len());
    for word in text.split(' ') {
        let is_unit = UNITS.contains(&word.trim_end_matches(['.', ',', ';', ':', ')']));
        let follows_number = out.ends_with(|c: char| c.is_ascii_digit());
        match (out.is_empty(), is_unit && follows_number) {
            (true, _) => {}
            (false, true) => out.push('\u{a0}'),
            (false, false) => out.push(' '),
        }
        out.push_str(word);
    }
    out
}

fn head(page: &Page<'_>) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta http-equiv="Content-Security-Policy" content=(POLICY);
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (page.title) }
            style { (PreEscaped(STYLE)) (PreEscaped(CHARTS)) }
        }
        "\n"
    }
}

fn opening(page: &Page<'_>) -> Markup {
    html! {
        header class="opening" {
            h1 { (page.title) }
            @if !page.headline.is_empty() { p class="headline" { (unbroken(&page.headline)) } }
            @if !page.facts.is_empty() {
                dl class="facts" {
                    @for (name, value) in &page.facts { div { dt { (name) } dd { (value) } } }
                }
            }
        }
        "\n"
    }
}

/// Where the script builds the timeline; nothing when there is no trace to draw.
fn timeline_stage(page: &Page<'_>) -> Markup {
    html! {
        @if !page.timelines.is_empty() {
            section class="wide" aria-labelledby="timeline-heading" {
                h2 id="timeline-heading" { "Timeline" }
                div id="timeline" {
                    p class="quiet" { "Unpacking events …" }
                    noscript {
                        p { "The timeline needs JavaScript; everything else on this page does not." }
                    }
                }
            }
        }
    }
}

fn shown<'a>(section: &'a Section, page: &Page<'_>, jumps: &mut Vec<&'a Jump>) -> Markup {
    match section {
        Section::Text { title, paragraphs } => text(title, paragraphs),
        Section::Table(table) => table.html(),
        Section::Findings(findings) => of_findings(findings, jumps),
        Section::Charts(charts) => html! {
            section class="charts" { @for chart in charts { (chart.figure()) "\n" } }
        },
        Section::Timeline => timeline_stage(page),
    }
}

fn text(title: &str, paragraphs: &[String]) -> Markup {
    html! {
        section {
            (heading(title))
            @for paragraph in paragraphs { p { (paragraph) } }
        }
    }
}

fn of_findings<'a>(findings: &'a [Finding], jumps: &mut Vec<&'a Jump>) -> Markup {
    html! {
        section {
            h2 { "Findings" }
            @if findings.is_empty() { p { "Nothing stood out." } }
            ol class="findings" { @for finding in findings { (of_finding(finding, jumps)) "\n" } }
        }
    }
}

/// A finding, with a button for each of its jumps, which joins the list of all.
fn of_finding<'a>(finding: &'a Finding, jumps: &mut Vec<&'a Jump>) -> Markup {
    let first = jumps.len();
    jumps.extend(&finding.jumps);
    html! {
        li class=(finding.tone.class()) {
            h3 { (finding.title) }
            p { (finding.evidence) }
            @if !finding.remedy.is_empty() { p class="remedy" { b { "Remedy" } " " (finding.remedy) } }
            @if !finding.gain.is_empty() { p class="gain" { b { "Gain" } " " (finding.gain) } }
            @for (number, jump) in (first..).zip(&finding.jumps) {
                button type="button" data-jump=(number) { (jump.label) }
                "\n"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_not_parted_from_its_unit() {
        assert_eq!(
            unbroken("moved 14.9 MiB in 1.5 s; all ms"),
            "moved 14.9\u{a0}MiB in 1.5\u{a0}s; all ms"
        );
    }
}
