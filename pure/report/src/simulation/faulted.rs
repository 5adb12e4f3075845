//! What a fault scenario costs, against the same run without it.

use super::{Banded, name_of, range};
use iolab_sim::scenario::Scenario;
use serde_json::{Value, json};
use std::fmt::Write;

/// A scenario, and the same run without it.
#[derive(Clone, Debug)]
pub struct Faulted {
    /// What went wrong.
    pub scenario: Scenario,
    /// The run in which nothing did.
    pub sound: Banded,
}

fn slow_down(sound: f64, faulty: f64) -> f64 {
    faulty / sound.max(1e-9)
}

impl Faulted {
    /// For people: the faults, and both times of the run and of each application.
    pub(super) fn text(&self, faulty: &Banded) -> String {
        let mut text = format!("\nfaults: {}\n", name_of(&self.scenario.name));
        for fault in &self.scenario.faults {
            let _ = writeln!(text, "  {fault}");
        }
        let outcome = &faulty.outcome;
        if outcome.lost_packet_count > 0 {
            let _ = writeln!(text, "  {} packets lost and sent again", outcome.lost_packet_count);
        }
        let _ = writeln!(
            text,
            "  without them{}, with them{}",
            range(&self.sound.band),
            range(&faulty.band)
        );
        let titles = ["without s", "with s", "slow-down"];
        let _ = writeln!(text, "{:<30} {:>12} {:>12} {:>9}", "", titles[0], titles[1], titles[2]);
        let mut row = |name: &str, sound: f64, faulty: f64| {
            let factor = slow_down(sound, faulty);
            let _ = writeln!(text, "{name:<30} {sound:>12.6} {faulty:>12.6} {factor:>9.3}");
        };
        row("until all was over", self.sound.band.median, faulty.band.median);
        for (sound, faulty) in self.sound.outcome.applications.iter().zip(&outcome.applications) {
            row(&faulty.name, sound.end.seconds(), faulty.end.seconds());
        }
        text
    }

    pub(super) fn json(&self, faulty: &Banded) -> Value {
        let outcome = &faulty.outcome;
        let applications = self.sound.outcome.applications.iter().zip(&outcome.applications);
        let ratio = faulty.band.ratio(&self.sound.band);
        json!({
            "scenario": self.scenario.name,
            "seed": self.scenario.seed,
            "faults": self.scenario.faults.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "lost_packets": outcome.lost_packet_count,
            "seconds_without": self.sound.band.median,
            "seconds_without_low": self.sound.band.low,
            "seconds_without_high": self.sound.band.high,
            "slow_down": slow_down(self.sound.band.median, faulty.band.median),
            "slow_down_low": ratio.low,
            "slow_down_high": ratio.high,
            "applications": applications.map(|(sound, faulty)| json!({
                "name": faulty.name,
                "end_seconds_without": sound.end.seconds(),
                "slow_down": slow_down(sound.end.seconds(), faulty.end.seconds()),
            })).collect::<Vec<_>>(),
        })
    }
}
