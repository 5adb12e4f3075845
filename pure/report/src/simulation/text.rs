//! A simulation for people at a terminal: what it took, then a table of each kind of part.

use super::{Banded, Compared, Simulation, name_of, order_name, range, seconds, share, start};
use iolab_policy::collective::CollectiveKind;
use iolab_sim::cluster::{DeviceTotals, LinkKind, ServerTotals};
use iolab_sim::workload::{CacheOutcome, FileSystemOutcome, LinkOutcome, Outcome, TrafficOutcome};
use iolab_vocab::format_bytes;
use std::fmt::Write;

/// Servers and links a reader still reads; the rest is in the CSV.
const ROWS_MAX: usize = 32;

impl Simulation<'_> {
    /// For people: the time with its range, what to know, then applications, servers and links.
    pub fn text(&self) -> String {
        let Simulation { subject, platform, settings, outcome: banded, faulted, chosen, compared } =
            self;
        let Banded { outcome, band, tie_seed } = banded;
        let mut text = format!("{} on {}", name_of(subject.name), name_of(&platform.name));
        let _ = write!(text, ", order {}, tie seed {tie_seed}, ", order_name(settings.order));
        text += &match &outcome.file_system {
            Some(file_system) => told(file_system),
            None => {
                let cache = settings.cache.as_deref().unwrap_or("as the platform says");
                let collective = settings.collectives.of(CollectiveKind::File).name;
                format!("cache {cache}, collective access {collective}\n")
            }
        };
        let _ = writeln!(
            text,
            "{} until all was over, {} events",
            range(band).trim_start(),
            outcome.event_count
        );
        if band.count > 1 {
            let _ = writeln!(text, "the time is the median; all below is of that run");
        }
        if let Some(recorded) = subject.recorded {
            let _ = writeln!(text, "the recorded run took {:.6} s", recorded.seconds());
        }
        let noted = outcome.applications.iter().flat_map(|application| application.notes.clone());
        for note in platform.notes().into_iter().chain(noted) {
            let _ = writeln!(text, "note: {note}");
        }
        text += &faulted.as_ref().map_or_else(String::new, |faulted| faulted.text(banded));
        text += &chosen.as_ref().map_or_else(String::new, |chosen| chosen.text(banded));
        text += &compared.map_or_else(String::new, Compared::text);
        text += &applications(outcome);
        text += &servers(outcome);
        text += &outcome.file_system.as_ref().map_or_else(String::new, traffic);
        text += &links(outcome);
        text
    }
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
        let ServerTotals { device, queue_max, .. } = server.totals;
        let DeviceTotals { no_seek_count, near_count, far_count, busy_nanos, .. } = device;
        let DeviceTotals { read_bytes, written_bytes, .. } = device;
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
    text += &left_out(outcome.servers.len(), "servers");
    text + &found(outcome)
}

/// `file system scratch (4 servers, class device, stripe:unit=256k,count=4)`.
fn told(file_system: &FileSystemOutcome) -> String {
    let FileSystemOutcome { name, durability, layout, servers, caches } = file_system;
    let count = match caches.len() {
        0 => format!("{} servers", servers.len()),
        caches => format!("{} servers, {caches} cache managers", servers.len()),
    };
    format!("file system {name} ({count}, class {durability}, {layout})\n")
}

/// What servers and cache managers of a file system were asked, and the bytes of files that went each way.
fn traffic(file_system: &FileSystemOutcome) -> String {
    let (asker, answered) = match file_system.caches.is_empty() {
        true => ("from clients", "to clients"),
        false => ("from caches", "to caches"),
    };
    let mut text = format!(
        "\n{:<20} {:>9} {:>14} {:>14} {:>6}\n",
        "server of files", "requests", asker, answered, "queue"
    );
    for TrafficOutcome { name, totals } in file_system.servers.iter().take(ROWS_MAX) {
        let (received, sent) =
            (format_bytes(totals.received_bytes), format_bytes(totals.sent_bytes));
        let _ = writeln!(
            text,
            "{name:<20} {:>9} {received:>14} {sent:>14} {:>6}",
            totals.request_count, totals.queue_max,
        );
    }
    text + &left_out(file_system.servers.len(), "servers") + &caches(&file_system.caches)
}

/// What cache managers were asked, what of it they had, and what went between them and servers.
fn caches(caches: &[CacheOutcome]) -> String {
    if caches.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "\n{:<20} {:>9} {:>14} {:>14} {:>9} {:>9} {:>10} {:>10} {:>10}\n",
        "cache manager",
        "requests",
        "from clients",
        "to clients",
        "hits",
        "misses",
        "fetched",
        "flushed",
        "dirty max"
    );
    for CacheOutcome { name, totals } in caches.iter().take(ROWS_MAX) {
        let traffic = totals.traffic;
        let _ = writeln!(
            text,
            "{name:<20} {:>9} {:>14} {:>14} {:>9} {:>9} {:>10} {:>10} {:>10}",
            traffic.request_count,
            format_bytes(traffic.received_bytes),
            format_bytes(traffic.sent_bytes),
            totals.hit_count,
            totals.miss_count,
            format_bytes(totals.fetched_bytes),
            format_bytes(totals.flushed_bytes),
            format_bytes(totals.unsaved_bytes_max),
        );
    }
    text + &left_out(caches.len(), "cache managers")
}

/// What reads found in the memory of servers, if any cache layer keeps something.
fn found(outcome: &Outcome) -> String {
    let memory = || outcome.servers.iter().map(|server| server.totals.memory);
    let kept: u64 = memory().map(|memory| memory.kept_bytes_max).max().unwrap_or(0);
    let found: u64 = memory().map(|memory| memory.found_bytes).sum();
    match kept {
        0 => String::new(),
        _ => format!(
            "reads found {} in the servers' memory, of which each kept {} at most\n",
            format_bytes(found),
            format_bytes(kept)
        ),
    }
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
