//! The HTML around the numbers. Everything that comes from outside is escaped here, once.

use super::timeline::{Encoded, encode_with_positions};
use super::{Cell, Finding, Jump, Page, Section, Table, Tone};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use std::fmt::Write;

const SCRIPT: &str = include_str!("../../../../tools/viewer/dist/viewer.js");
use crate::chart::STYLE as CHARTS;
const STYLE: &str = include_str!("../../../../tools/viewer/dist/viewer.css");

/// Says to the browser what the page promises: nothing is fetched from anywhere.
const POLICY: &str =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:";

/// The page as the bytes of one HTML file.
pub fn render(page: &Page<'_>) -> Vec<u8> {
    let timelines: Vec<_> = page
        .timelines
        .iter()
        .map(|timeline| encode_with_positions(&timeline.label, timeline.trace))
        .collect();
    let mut out = String::new();
    out.push_str(&opening(page));
    let mut jumps = Vec::new();
    for section in &page.sections {
        write_section(&mut out, section, page, &mut jumps);
    }
    let placed = page.sections.iter().any(|section| matches!(section, Section::Timeline));
    if !placed {
        out.push_str(timeline_stage(page));
    }
    out.push_str("</main>\n");
    let entries: Vec<_> = jumps.iter().map(|jump| jump_entry(jump, &timelines)).collect();
    let _ =
        writeln!(out, "<script type=\"application/json\" id=\"jumps\">{}</script>", json(&entries));
    for timeline in &timelines {
        out.push_str("<script type=\"application/x-iolab-timeline\">");
        STANDARD.encode_string(&timeline.bytes, &mut out);
        out.push_str("</script>\n");
    }
    let _ = write!(out, "<script>{SCRIPT}</script>\n</body>\n</html>\n");
    out.into_bytes()
}

#[derive(Serialize)]
struct JumpEntry<'a> {
    timeline: usize,
    start_ns: u64,
    end_ns: u64,
    event: Option<u32>,
    filter: &'a str,
}

fn jump_entry<'a>(jump: &'a Jump, timelines: &[Encoded]) -> JumpEntry<'a> {
    let position = |row: usize| timelines.get(jump.timeline)?.positions.get(row).copied();
    JumpEntry {
        timeline: jump.timeline,
        start_ns: jump.start_ns,
        end_ns: jump.end_ns,
        event: jump.row.and_then(position),
        filter: &jump.filter,
    }
}

/// JSON that may stand inside a script element: no `<`, so no end tag either.
fn json(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).expect("only strings and numbers");
    text.replace('<', "\\u003c")
}

/// Text as HTML shows it literally, in elements and in quoted attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // Control characters cannot stand in HTML, not even escaped; names of files may hold them.
            c if c.is_control() && c != '\n' && c != '\t' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
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

fn opening(page: &Page<'_>) -> String {
    let title = escape(&page.title);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>{STYLE}{CHARTS}</style>\n</head>\n<body>\n<main>\n\
         <header class=\"opening\">\n<h1>{title}</h1>\n"
    );
    if !page.headline.is_empty() {
        let _ = writeln!(out, "<p class=\"headline\">{}</p>", unbroken(&escape(&page.headline)));
    }
    if !page.facts.is_empty() {
        out.push_str("<dl class=\"facts\">");
        for (name, value) in &page.facts {
            let _ = write!(out, "<div><dt>{}</dt><dd>{}</dd></div>", escape(name), escape(value));
        }
        out.push_str("</dl>\n");
    }
    out.push_str("</header>\n");
    out
}

/// Where the script builds the timeline; nothing when there is no trace to draw.
fn timeline_stage(page: &Page<'_>) -> &'static str {
    if page.timelines.is_empty() {
        return "";
    }
    "<section class=\"wide\" aria-labelledby=\"timeline-heading\">\n<h2 id=\"timeline-heading\">Timeline</h2>\n\
     <div id=\"timeline\"><p class=\"quiet\">Unpacking events …</p>\
     <noscript><p>The timeline needs JavaScript; everything else on this page does not.</p></noscript></div>\n</section>\n"
}

fn write_section<'a>(
    out: &mut String,
    section: &'a Section,
    page: &Page<'_>,
    jumps: &mut Vec<&'a Jump>,
) {
    match section {
        Section::Text { title, paragraphs } => write_text(out, title, paragraphs),
        Section::Table(table) => write_table(out, table),
        Section::Findings(findings) => write_findings(out, findings, jumps),
        Section::Charts(charts) => {
            out.push_str("<section class=\"charts\">\n");
            for chart in charts {
                let _ = writeln!(out, "{}", chart.figure());
            }
            out.push_str("</section>\n");
        }
        Section::Timeline => out.push_str(timeline_stage(page)),
    }
}

fn write_heading(out: &mut String, title: &str) {
    if !title.is_empty() {
        let _ = writeln!(out, "<h2>{}</h2>", escape(title));
    }
}

fn write_text(out: &mut String, title: &str, paragraphs: &[String]) {
    out.push_str("<section>\n");
    write_heading(out, title);
    for paragraph in paragraphs {
        let _ = writeln!(out, "<p>{}</p>", escape(paragraph));
    }
    out.push_str("</section>\n");
}

/// Whether every filled cell of a column begins like a number.
fn is_numeric(table: &Table, column: usize) -> bool {
    let begins_a_number =
        |text: &str| text.starts_with(|c: char| c.is_ascii_digit() || "+-−±<≤~–—".contains(c));
    let mut cells =
        table.rows.iter().filter_map(|row| row.get(column)).filter(|cell| !cell.text.is_empty());
    let any =
        table.rows.iter().any(|row| row.get(column).is_some_and(|cell| !cell.text.is_empty()));
    any && cells.all(|cell| begins_a_number(&cell.text))
}

fn write_table(out: &mut String, table: &Table) {
    let numeric: Vec<bool> = (0..table.columns.len()).map(|at| is_numeric(table, at)).collect();
    out.push_str("<section>\n");
    write_heading(out, &table.title);
    out.push_str("<div class=\"scroll\" tabindex=\"0\" role=\"region\"");
    let _ = write!(out, " aria-label=\"{}\"><table>\n<thead><tr>", escape(&table.title));
    for (column, name) in table.columns.iter().enumerate() {
        let class = if numeric[column] { " class=\"number\"" } else { "" };
        let _ = write!(out, "<th scope=\"col\"{class}>{}</th>", escape(name));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        out.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            write_cell(out, cell, numeric.get(column).copied().unwrap_or(false));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    if !table.caption.is_empty() {
        let _ = writeln!(out, "<p class=\"caption\">{}</p>", escape(&table.caption));
    }
    out.push_str("</section>\n");
}

fn tone_class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "plain",
        Tone::Good => "good",
        Tone::Doubtful => "doubtful",
        Tone::Bad => "bad",
        Tone::Quiet => "quiet",
    }
}

fn write_cell(out: &mut String, cell: &Cell, numeric: bool) {
    let number = if numeric { " number" } else { "" };
    let _ = write!(out, "<td class=\"{}{number}\"", tone_class(cell.tone));
    if let Some(share) = cell.bar {
        let percent = share.clamp(0.0, 1.0) * 100.0;
        let _ = write!(out, " style=\"--bar:{percent:.1}%\"");
    }
    let _ = write!(out, "><span>{}</span></td>", escape(&cell.text));
}

fn write_findings<'a>(out: &mut String, findings: &'a [Finding], jumps: &mut Vec<&'a Jump>) {
    out.push_str("<section>\n<h2>Findings</h2>\n");
    if findings.is_empty() {
        out.push_str("<p>Nothing stood out.</p>\n");
    }
    out.push_str("<ol class=\"findings\">\n");
    for finding in findings {
        write_finding(out, finding, jumps);
    }
    out.push_str("</ol>\n</section>\n");
}

fn write_finding<'a>(out: &mut String, finding: &'a Finding, jumps: &mut Vec<&'a Jump>) {
    let _ = write!(
        out,
        "<li class=\"{}\"><h3>{}</h3>\n<p>{}</p>\n",
        tone_class(finding.tone),
        escape(&finding.title),
        escape(&finding.evidence)
    );
    if !finding.remedy.is_empty() {
        let _ = writeln!(out, "<p class=\"remedy\"><b>Remedy</b> {}</p>", escape(&finding.remedy));
    }
    if !finding.gain.is_empty() {
        let _ = writeln!(out, "<p class=\"gain\"><b>Gain</b> {}</p>", escape(&finding.gain));
    }
    for jump in &finding.jumps {
        let number = jumps.len();
        let label = escape(&jump.label);
        let _ = writeln!(out, "<button type=\"button\" data-jump=\"{number}\">{label}</button>");
        jumps.push(jump);
    }
    out.push_str("</li>\n");
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

    #[test]
    fn a_column_is_set_as_numbers_only_when_all_its_cells_are() {
        let table = Table::new("", ["a", "b"]).row(["1.2 s", "+3 %"]).row(["none", "−4 %"]);
        assert!(!is_numeric(&table, 0) && is_numeric(&table, 1));
    }
}
