//! What an application does, as weights: a built-in profile, a TOML file, a recorded trace, or the
//! plan itself.

use crate::failure::Failure;
use iolab_bench::Outcome;
use iolab_report::bench::{Profile, Score, Share, plan_profile, profiles, scores};
use iolab_report::{FileRow, PartRow, Report};
use iolab_vocab::format_bytes;
use std::fmt::Write;
use std::path::Path;

/// The score of the results under what `name` names, as text.
pub(super) fn weighted(name: &str, outcomes: &[Outcome]) -> Result<String, Failure> {
    let profile = profile(name, outcomes)?;
    let scores = scores(&profile, outcomes);
    if scores.is_empty() {
        let wanted: Vec<_> = profile.shares.iter().map(Share::describe).collect();
        return Err(Failure::new(format!("the results hold nothing that {} weighs", profile.name))
            .hint(format!("measure {}", wanted.join(", "))));
    }
    let mut text =
        format!("{}, weighted by bytes\n  shares {}\n", profile.name, profile.provenance);
    scores.iter().for_each(|score| text += &table(score));
    Ok(text)
}

fn table(score: &Score) -> String {
    let Score { settings, speed, range, covered, parts } = score;
    let under = if settings.is_empty() { String::new() } else { format!("{settings}: ") };
    let whole = match *covered {
        covered if covered > 0.999 => String::new(),
        covered => format!(", of the {:.0} % of the bytes that were measured", covered * 100.0),
    };
    let mut text = format!(
        "{under}{speed:.1} MiB/s (shares at their slowest and fastest: {:.1} to {:.1}){whole}\n",
        range.0, range.1
    );
    for (share, measured) in parts {
        let percent = share.share * 100.0;
        let found = match measured {
            None => "not measured, left out".to_owned(),
            Some(part) => {
                let at = match share.size {
                    Some(wanted) if wanted != part.size => {
                        format!(", measured at {}", format_bytes(part.size))
                    }
                    None if part.sizes > 1 => format!(", over {} sizes", part.sizes),
                    _ => String::new(),
                };
                let (low, high) = (part.range.low, part.range.high);
                format!(
                    "{:.1} MiB/s (range {low:.1} to {high:.1}, n = {}){at}",
                    part.speed, part.values
                )
            }
        };
        let _ = writeln!(text, "  {percent:>5.1} %  {:<36} {found}", share.describe());
    }
    text
}

fn profile(name: &str, outcomes: &[Outcome]) -> Result<Profile, Failure> {
    if name == "plan" {
        return Ok(plan_profile(outcomes));
    }
    if let Some(found) = profiles().into_iter().find(|profile| profile.name == name) {
        return Ok(found);
    }
    match Path::new(name).extension().and_then(|end| end.to_str()) {
        Some("iot" | "proj") => of_trace(name),
        _ => of_toml(name),
    }
}

fn of_toml(name: &str) -> Result<Profile, Failure> {
    let wrong = |why: String| {
        let names: Vec<_> = profiles().into_iter().map(|profile| profile.name).collect();
        Failure::new(format!("weights `{name}`: {why}"))
            .hint(format!("take plan, {}, a trace or a TOML file", names.join(", ")))
    };
    let text = std::fs::read_to_string(name).map_err(|error| wrong(error.to_string()))?;
    Profile::parse(name, &text).map_err(wrong)
}

/// The mix of patterns of a recorded run, weighted by bytes.
fn of_trace(name: &str) -> Result<Profile, Failure> {
    let report = crate::report::analyse(Path::new(name))?;
    let mut shares: Vec<Share> = Vec::new();
    for (file, part) in parts(&report) {
        let (phase, pattern) = benchmark_name(file, part);
        let size = Some(part.request_bytes);
        let one = Share { phase: phase.into(), pattern: pattern.into(), size, share: 0.0 };
        let known = shares.iter().position(|share| share.describe() == one.describe());
        let index = known.unwrap_or_else(|| {
            shares.push(one);
            shares.len() - 1
        });
        shares[index].share += part.bytes as f64;
    }
    if shares.is_empty() {
        return Err(Failure::new(format!(
            "{name}: no data was moved, so there is nothing to weigh"
        ))
        .hint("`iolab report` shows what a trace holds"));
    }
    shares.sort_by(|a, b| b.share.total_cmp(&a.share));
    Ok(Profile { name: name.to_owned(), provenance: provenance(&report, name), shares })
}

fn parts(report: &Report) -> impl Iterator<Item = (&FileRow, &PartRow)> {
    let of_file = |file| move |part| (file, part);
    let all = report.files.iter().flat_map(move |file| file.parts.iter().map(of_file(file)));
    all.filter(|(_, part)| part.bytes > 0)
}

fn provenance(report: &Report, name: &str) -> String {
    let bytes: u64 = parts(report).map(|(_, part)| part.bytes).sum();
    let files = report.files.iter().filter(|file| file.parts.iter().any(|part| part.bytes > 0));
    let mut told: Vec<String> = Vec::new();
    for file in files.clone().take(3) {
        let patterns = [("read", &file.read_pattern), ("write", &file.write_pattern)];
        for (way, pattern) in patterns {
            let Some(pattern) = pattern else { continue };
            told.push(format!("{way} of {}: {}", file.path, pattern.description));
        }
    }
    let (count, bytes) = (files.count(), format_bytes(bytes));
    format!("recorded in {name}: {bytes} in {count} files; {}", told.join("; "))
}

/// How the benchmark calls what a part of a file saw. What the file's parts do together decides;
/// only where they differ does each count for itself.
fn benchmark_name(file: &FileRow, part: &PartRow) -> (&'static str, &'static str) {
    let (together, plain, again) = match part.direction {
        "read" => (&file.read_pattern, "read", "re-read"),
        _ => (&file.write_pattern, "write", "re-write"),
    };
    let alone = file.parts.iter().filter(|other| other.direction == part.direction).count() == 1;
    let name = match together {
        Some(pattern) if pattern.name != "mixed" => pattern.name.as_str(),
        _ => part.pattern.name(),
    };
    match name {
        "simple strided" => (plain, "strided"),
        "nested strided" => (plain, "nested"),
        "sequential" if alone => (plain, "random-strided"),
        "sequential" => (plain, "sequential"),
        "repeated" => (again, "segmented"),
        "backward" | "random" => (plain, "random-blocks"),
        _ => (plain, "segmented"),
    }
}
