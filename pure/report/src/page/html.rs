//! The HTML around the numbers. What comes from outside is escaped by `maud`, wherever it stands.

use super::timeline::{Encoded, encode_with_positions};
use super::{Finding, Jump, Page, Section};
use crate::chart::STYLE as CHARTS;
use crate::markup::{document, heading};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{Markup, PreEscaped, Render, html};
use serde::Serialize;

const SCRIPT: &str = include_str!("../../../../tools/viewer/dist/viewer.js");
const STYLE: &str = include_str!("../../../../tools/viewer/dist/viewer.css");

/// Says to the browser what the page promises: nothing is fetched from anywhere.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; worker-src blob:";

/// The page as the bytes of one HTML file.
pub fn render(page: &Page<'_>) -> Vec<u8> {
    let timelines: Vec<_> = page.timelines.iter().map(encode_with_positions).collect();
    let placed = page.sections.iter().any(|section| matches!(section, Section::Timeline));
    let mut jumps = Vec::new();
    let markup = html! {
        (PreEscaped("<!doctype html>\n"))
        html lang="en" {
            (head(page))
            body {
                main {
                    (opening(page))
                    @for section in &page.sections { (shown(section, page, &mut jumps)) "\n" }
                    @if !placed { (timeline_stage(page)) }
                }
                "\n"
                script type="application/json" id="jumps" { (json(&entries(&jumps, &timelines))) }
                // The script stands before the calls, so that it draws while the browser still reads these.
                @for overview in overviews(&timelines) {
                    "\n"
                    script type="application/x-iolab-overview" { (Base64(overview)) }
                }
                "\n"
                script { (PreEscaped(SCRIPT)) }
                @for timeline in &timelines {
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
fn overviews(timelines: &[Encoded]) -> Vec<&[u8]> {
    if timelines.iter().all(|timeline| timeline.overview.is_none()) {
        return Vec::new();
    }
    timelines
        .iter()
        .map(|timeline| timeline.overview.as_deref().unwrap_or(&timeline.bytes))
        .collect()
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
