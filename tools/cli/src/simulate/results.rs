//! What a simulated workload came to: for people, as JSON, and as one flat table.

use super::workload::{Banded, Told};
use iolab_policy::collective::CollectiveKind;
use iolab_report::csv::{self, Plain};
use iolab_sim::band::Band;
use iolab_sim::cluster::{LinkKind, Order, ServerTotals};
use iolab_sim::program::PhaseTotals;
use iolab_sim::workload::{LinkOutcome, Outcome, ServerOutcome};
use iolab_vocab::{Nanos, format_bytes};
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write;

/// Servers and links a reader still reads; the rest is in the CSV.
const ROWS_MAX: usize = 32;

fn share(busy_nanos: u64, of: &Outcome) -> f64 {
    busy_nanos as f64 / of.end.0.max(1) as f64
}

fn seconds(nanos: u64) -> f64 {
    Nanos(nanos).seconds()
}

fn start(phase: &PhaseTotals) -> f64 {
    phase.start.unwrap_or(Nanos::ZERO).seconds()
}

fn order_name(order: Order) -> &'static str {
    match order {
        Order::Published => "published",
        Order::Documented => "documented",
    }
}

fn name_of(name: &str) -> &str {
    if name.is_empty() { "(no name)" } else { name }
}

/// ` 1.2 s (1.1 to 1.3 over 9 orders of simultaneous events)`, without the range where every order
/// came to the same.
pub(super) fn range(band: &Band) -> String {
    let Band { count, low, median, high } = band;
    match (count, band.is_one_value()) {
        (1, _) => format!(" {median:.9} s"),
        (_, true) => format!(" {median:.9} s (the same in {count} orders of simultaneous events)"),
        _ => format!(
            " {median:.9} s ({low:.6} to {high:.6} over {count} orders of simultaneous events)"
        ),
    }
}

/// For people.
pub(super) fn text(told: &Told) -> String {
    let Told { subject, platform, settings, outcome: banded, faulted, chosen } = told;
    let Banded { outcome, band, tie_seed } = banded;
    let mut text = format!("{} on {}", name_of(subject.name()), name_of(&platform.name));
    let cache = settings.cache.as_deref().unwrap_or("as the platform says");
    let collective = settings.collectives.of(CollectiveKind::File).name;
    let _ = writeln!(
        text,
        ", order {}, tie seed {tie_seed}, cache {cache}, collective access {collective}",
        order_name(settings.order),
    );
    let _ = writeln!(
        text,
        "{} until all was over, {} events",
        range(band).trim_start(),
        outcome.event_count
    );
    if band.count > 1 {
        let _ = writeln!(text, "the time is the median; all below is of that run");
    }
    if let Some(recorded) = subject.recorded() {
        let _ = writeln!(text, "the recorded run took {:.6} s", recorded.seconds());
    }
    let noted = outcome.applications.iter().flat_map(|application| application.notes.clone());
    for note in platform.notes().into_iter().chain(noted) {
        let _ = writeln!(text, "note: {note}");
    }
    text += &faulted.as_ref().map_or_else(String::new, |faulted| faulted.text(banded));
    text += &chosen.as_ref().map_or_else(String::new, |chosen| chosen.text(banded));
    text += &applications(outcome);
    text += &servers(outcome);
    text += &links(outcome);
    text
}

fn applications(outcome: &Outcome) -> String {
    let mut text = format!(
        "\n{:<30} {:>6} {:>12} {:>12} {:>12} {:>9} {:>10} {:>10}\n",
        "application, phase",
        "ranks",
        "start s",
        "end s",
        "mean rank s",
        "calls",
        "read",
        "written"
    );
    for application in &outcome.applications {
        let ranks = application.rank_count;
        let _ = writeln!(
            text,
            "{:<30} {ranks:>6} {:>12} {:>12.6}",
            application.name,
            "",
            application.end.seconds()
        );
        for phase in &application.phases {
            let name = format!("  {}", phase.name);
            let mean = seconds(phase.rank_nanos) / f64::from(ranks.max(1));
            let (read, written) =
                (format_bytes(phase.read_bytes), format_bytes(phase.written_bytes));
            let _ = writeln!(
                text,
                "{name:<30} {:>6} {:>12.6} {:>12.6} {mean:>12.6} {:>9} {read:>10} {written:>10}",
                "",
                start(phase),
                phase.end.seconds(),
                phase.calls,
            );
        }
    }
    text
}

fn servers(outcome: &Outcome) -> String {
    let mut text = format!(
        "\n{:<20} {:>9} {:>9} {:>9} {:>10} {:>10} {:>10} {:>7} {:>6}\n",
        "server", "no seek", "near", "far", "read", "written", "busy s", "busy", "queue"
    );
    for server in outcome.servers.iter().take(ROWS_MAX) {
        let ServerTotals {
            no_seek_count,
            near_count,
            far_count,
            read_bytes,
            written_bytes,
            busy_nanos,
            queue_max,
            ..
        } = server.totals;
        let (read, written) = (format_bytes(read_bytes), format_bytes(written_bytes));
        let _ = writeln!(
            text,
            "{:<20} {no_seek_count:>9} {near_count:>9} {far_count:>9} {read:>10} {written:>10} \
             {:>10.4} {:>6.1}% {queue_max:>6}",
            server.name,
            seconds(busy_nanos),
            share(busy_nanos, outcome) * 100.0,
        );
    }
    text + &left_out(outcome.servers.len(), "servers")
}

fn left_out(count: usize, what: &str) -> String {
    match count.saturating_sub(ROWS_MAX) {
        0 => String::new(),
        more => format!("… and {more} more {what}; --csv lists all\n"),
    }
}

/// The links that carried anything, the busiest first.
fn links(outcome: &Outcome) -> String {
    let mut used: Vec<&LinkOutcome> = outcome
        .links
        .iter()
        .filter(|link| link.totals.packets > 0 && link.kind != LinkKind::NicIn)
        .collect();
    used.sort_by_key(|link| std::cmp::Reverse(link.totals.busy_nanos));
    let mut text = format!(
        "\n{:<30} {:>10} {:>10} {:>10} {:>7}\n",
        "link, switch (busiest first)", "packets", "bytes", "busy s", "busy"
    );
    for link in used.iter().take(ROWS_MAX) {
        let _ = writeln!(
            text,
            "{:<30} {:>10} {:>10} {:>10.4} {:>6.1}%",
            link.name,
            link.totals.packets,
            format_bytes(link.totals.bytes),
            seconds(link.totals.busy_nanos),
            share(link.totals.busy_nanos, outcome) * 100.0,
        );
    }
    text + &left_out(used.len(), "links")
}

/// Everything, as one document.
pub(super) fn json(told: &Told) -> Value {
    let Told { subject, platform, settings, outcome: banded, faulted, chosen } = told;
    let Banded { outcome, band, tie_seed } = banded;
    let collectives: serde_json::Map<String, Value> = CollectiveKind::ALL
        .iter()
        .map(|&serves| (serves.name().to_owned(), json!(settings.collectives.of(serves).name)))
        .collect();
    json!({
        "workload": subject.name(),
        "platform": platform.name,
        "order": order_name(settings.order),
        "seed": subject.seed().map(|seed| seed.0),
        "recorded_seconds": subject.recorded().map(Nanos::seconds),
        "tie_seed": tie_seed.0,
        "cache": settings.cache,
        "collectives": collectives,
        "seconds": outcome.end.seconds(),
        "end_ns": outcome.end.0,
        "event_count": outcome.event_count,
        "event_hash": format!("{:016x}", outcome.event_hash),
        "band": (band.count > 1).then(|| json!({
            "tie_seeds": band.count, "low": band.low, "median": band.median, "high": band.high,
        })),
        "notes": platform.notes(),
        "choices": chosen.as_ref().map(|chosen| chosen.json(banded)),
        "faults": faulted.as_ref().map(|faulted| faulted.json(banded)),
        "applications": outcome.applications.iter().map(|one| json!({
            "name": one.name,
            "ranks": one.rank_count,
            "end_seconds": one.end.seconds(),
            "phases": one.phases.iter().map(phase_json).collect::<Vec<_>>(),
            "notes": one.notes,
        })).collect::<Vec<_>>(),
        "servers": outcome.servers.iter().map(|server| {
            server_json(&server.name, &server.totals, share(server.totals.busy_nanos, outcome))
        }).collect::<Vec<_>>(),
        "links": outcome.links.iter().map(|link| json!({
            "name": link.name,
            "kind": link.kind.name(),
            "packets": link.totals.packets,
            "bytes": link.totals.bytes,
            "busy_seconds": seconds(link.totals.busy_nanos),
            "busy_share": share(link.totals.busy_nanos, outcome),
        })).collect::<Vec<_>>(),
    })
}

fn phase_json(phase: &PhaseTotals) -> Value {
    json!({
        "name": phase.name,
        "start_seconds": phase.start.map(Nanos::seconds),
        "end_seconds": phase.end.seconds(),
        "rank_seconds": seconds(phase.rank_nanos),
        "calls": phase.calls,
        "read_bytes": phase.read_bytes,
        "written_bytes": phase.written_bytes,
    })
}

fn server_json(name: &str, totals: &ServerTotals, share: f64) -> Value {
    json!({
        "name": name,
        "no_seek": totals.no_seek_count,
        "near": totals.near_count,
        "far": totals.far_count,
        "read_bytes": totals.read_bytes,
        "written_bytes": totals.written_bytes,
        "busy_seconds": seconds(totals.busy_nanos),
        "busy_share": share,
        "queue_max": totals.queue_max,
    })
}

/// A line of the table. What a part does not have stays empty.
#[derive(Default, Serialize)]
struct Row<'a> {
    part: &'a str,
    name: &'a str,
    kind: &'a str,
    count: u64,
    start_seconds: Option<Plain>,
    end_seconds: Option<Plain>,
    read_bytes: Option<u64>,
    written_bytes: Option<u64>,
    bytes: Option<u64>,
    busy_seconds: Option<Plain>,
    busy_share: Option<Plain>,
    no_seek: Option<u64>,
    near: Option<u64>,
    far: Option<u64>,
    queue_max: Option<u64>,
}

impl<'a> Row<'a> {
    fn timed(part: &'a str, name: &'a str, count: u64, start: f64, end: f64) -> Row<'a> {
        let (start_seconds, end_seconds) = (Some(Plain(start)), Some(Plain(end)));
        Row { part, name, count, start_seconds, end_seconds, ..Row::default() }
    }

    fn phase(phase: &'a PhaseTotals, application: &'a str) -> Row<'a> {
        let (start, end) = (start(phase), phase.end.seconds());
        Row {
            kind: application,
            read_bytes: Some(phase.read_bytes),
            written_bytes: Some(phase.written_bytes),
            ..Row::timed("phase", &phase.name, phase.calls, start, end)
        }
    }

    fn server(server: &'a ServerOutcome, of: &Outcome) -> Row<'a> {
        let totals = &server.totals;
        Row {
            part: "server",
            name: &server.name,
            count: totals.access_count(),
            read_bytes: Some(totals.read_bytes),
            written_bytes: Some(totals.written_bytes),
            bytes: Some(totals.read_bytes + totals.written_bytes),
            busy_seconds: Some(Plain(seconds(totals.busy_nanos))),
            busy_share: Some(Plain(share(totals.busy_nanos, of))),
            no_seek: Some(totals.no_seek_count),
            near: Some(totals.near_count),
            far: Some(totals.far_count),
            queue_max: Some(totals.queue_max),
            ..Row::default()
        }
    }

    fn link(link: &'a LinkOutcome, of: &Outcome) -> Row<'a> {
        Row {
            part: "link",
            name: &link.name,
            kind: link.kind.name(),
            count: link.totals.packets,
            bytes: Some(link.totals.bytes),
            busy_seconds: Some(Plain(seconds(link.totals.busy_nanos))),
            busy_share: Some(Plain(share(link.totals.busy_nanos, of))),
            ..Row::default()
        }
    }
}

/// Everything, as one table: rows of the run, its applications, phases, servers and links.
pub(super) fn csv(told: &Told) -> String {
    let Told { subject, outcome: Banded { outcome, band, .. }, faulted, .. } = told;
    let run = |part, of: &Outcome| {
        Row::timed(part, subject.name(), of.event_count, 0.0, of.end.seconds())
    };
    let end_of_band = |part, end| {
        let row = Row::timed(part, subject.name(), band.count, 0.0, end);
        Row { kind: "tie-seeds", ..row }
    };
    let mut rows = vec![
        run("run", outcome),
        end_of_band("run-low", band.low),
        end_of_band("run-high", band.high),
    ];
    rows.extend(faulted.iter().map(|one| run("run-without-faults", &one.sound.outcome)));
    for one in &outcome.applications {
        let (ranks, end) = (u64::from(one.rank_count), one.end.seconds());
        let row = Row::timed("application", &one.name, ranks, 0.0, end);
        rows.push(Row { start_seconds: None, ..row });
        rows.extend(one.phases.iter().map(|phase| Row::phase(phase, &one.name)));
    }
    rows.extend(outcome.servers.iter().map(|server| Row::server(server, outcome)));
    rows.extend(outcome.links.iter().map(|link| Row::link(link, outcome)));
    csv::rows(rows)
}
