//! What strategies, a cache layer or a collective algorithm on top of the platform change, against the
//! same run as the platform has it.

use super::{Banded, range};
use iolab_sim::workload::Outcome;
use serde_json::{Value, json};
use std::fmt::Write;

/// What was chosen, and the run without it.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The choices, as they were given: `--cache aggregation`.
    pub words: Vec<String>,
    /// The run as the platform has it.
    pub usual: Banded,
}

/// All servers together, and the one that is busy longest.
struct Servers {
    accesses: u64,
    read_bytes: u64,
    written_bytes: u64,
    busiest_seconds: f64,
}

impl Servers {
    fn of(outcome: &Outcome) -> Servers {
        let totals = || outcome.servers.iter().map(|server| &server.totals);
        let busiest = totals().map(|totals| totals.device.busy_nanos).max().unwrap_or(0);
        Servers {
            accesses: totals().map(|totals| totals.device.access_count()).sum(),
            read_bytes: totals().map(|totals| totals.device.read_bytes).sum(),
            written_bytes: totals().map(|totals| totals.device.written_bytes).sum(),
            busiest_seconds: busiest as f64 * 1e-9,
        }
    }
}

impl Chosen {
    /// Whether the choices matter: bands of several orders that do not overlap. Of single runs nobody
    /// knows.
    fn verdict(&self, chosen: &Banded) -> &'static str {
        let (usual, chosen) = (&self.usual.band, &chosen.band);
        match () {
            () if usual.count.min(chosen.count) < 2 => "single runs: see more orders (--seeds)",
            () if chosen.is_below(usual) => "faster",
            () if usual.is_below(chosen) => "slower",
            () => "no difference beyond that of the order of simultaneous events",
        }
    }

    /// For people.
    pub(super) fn text(&self, chosen: &Banded) -> String {
        let ratio = chosen.band.ratio(&self.usual.band);
        let (before, after) = (Servers::of(&self.usual.outcome), Servers::of(&chosen.outcome));
        let mut text = format!("\nchosen: {}\n", self.words.join(" "));
        let _ = writeln!(
            text,
            "  without{}, with{}: {} ({:.3} of the time, {:.3} to {:.3})",
            range(&self.usual.band),
            range(&chosen.band),
            self.verdict(chosen),
            chosen.band.median / self.usual.band.median.max(1e-9),
            ratio.low,
            ratio.high,
        );
        let _ = writeln!(text, "{:<30} {:>15} {:>15}", "", "without", "with");
        let mut row = |name: &str, before: String, after: String| {
            let _ = writeln!(text, "{name:<30} {before:>15} {after:>15}");
        };
        row("accesses of devices", before.accesses.to_string(), after.accesses.to_string());
        row("bytes read from devices", before.read_bytes.to_string(), after.read_bytes.to_string());
        row(
            "bytes written to devices",
            before.written_bytes.to_string(),
            after.written_bytes.to_string(),
        );
        row(
            "busiest server, s",
            format!("{:.6}", before.busiest_seconds),
            format!("{:.6}", after.busiest_seconds),
        );
        text
    }

    pub(super) fn json(&self, chosen: &Banded) -> Value {
        let ratio = chosen.band.ratio(&self.usual.band);
        let before = Servers::of(&self.usual.outcome);
        json!({
            "chosen": self.words,
            "verdict": self.verdict(chosen),
            "seconds_without": self.usual.band.median,
            "seconds_without_low": self.usual.band.low,
            "seconds_without_high": self.usual.band.high,
            "share": chosen.band.median / self.usual.band.median.max(1e-9),
            "share_low": ratio.low,
            "share_high": ratio.high,
            "device_accesses_without": before.accesses,
            "device_read_bytes_without": before.read_bytes,
            "device_written_bytes_without": before.written_bytes,
        })
    }
}
