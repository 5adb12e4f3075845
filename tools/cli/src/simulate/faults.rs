//! `iolab simulate --workload … --faults`: what a fault scenario costs, against the same run
//! without it.

use crate::failure::Failure;
use iolab_sim::scenario::{Scenario, ScenarioError};
use iolab_sim::workload::Outcome;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// A scenario, and the same run without it.
pub(crate) struct Faulted {
    pub(crate) scenario: Scenario,
    pub(crate) sound: Outcome,
}

impl From<ScenarioError> for Failure {
    fn from(error: ScenarioError) -> Failure {
        Failure::new(&error.message).hint(&error.hint)
    }
}

/// Reads a scenario file.
pub(crate) fn read_scenario(path: &Path) -> Result<Scenario, Failure> {
    let place = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::new(format!("{place}: {error}")).hint("docs/howto/faults.md shows a scenario")
    })?;
    Scenario::parse(&text)
        .map_err(|error| Failure::new(format!("{place}: {}", error.message)).hint(error.hint))
}

fn slow_down(sound: f64, faulty: f64) -> f64 {
    faulty / sound.max(1e-9)
}

impl Faulted {
    /// For people: the faults, and both times of the run and of each application.
    pub(super) fn text(&self, outcome: &Outcome) -> String {
        let mut text = format!("\nfaults: {}\n", self.name());
        for fault in &self.scenario.faults {
            let _ = writeln!(text, "  {fault}");
        }
        if outcome.lost_packet_count > 0 {
            let _ = writeln!(text, "  {} packets lost and sent again", outcome.lost_packet_count);
        }
        let titles = ["without s", "with s", "slow-down"];
        let _ = writeln!(text, "{:<30} {:>12} {:>12} {:>9}", "", titles[0], titles[1], titles[2]);
        let mut row = |name: &str, sound: f64, faulty: f64| {
            let factor = slow_down(sound, faulty);
            let _ = writeln!(text, "{name:<30} {sound:>12.6} {faulty:>12.6} {factor:>9.3}");
        };
        row("until all was over", self.sound.end.seconds(), outcome.end.seconds());
        for (sound, faulty) in self.sound.applications.iter().zip(&outcome.applications) {
            row(&faulty.name, sound.end.seconds(), faulty.end.seconds());
        }
        text
    }

    pub(super) fn json(&self, outcome: &Outcome) -> Value {
        let (sound, faulty) = (self.sound.end.seconds(), outcome.end.seconds());
        let applications = self.sound.applications.iter().zip(&outcome.applications);
        json!({
            "scenario": self.scenario.name,
            "seed": self.scenario.seed,
            "faults": self.scenario.faults.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "lost_packets": outcome.lost_packet_count,
            "seconds_without": sound,
            "slow_down": slow_down(sound, faulty),
            "applications": applications.map(|(sound, faulty)| json!({
                "name": faulty.name,
                "end_seconds_without": sound.end.seconds(),
                "slow_down": slow_down(sound.end.seconds(), faulty.end.seconds()),
            })).collect::<Vec<_>>(),
        })
    }

    fn name(&self) -> &str {
        if self.scenario.name.is_empty() { "(no name)" } else { &self.scenario.name }
    }
}
