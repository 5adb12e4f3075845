//! A tuning as text, as JSON and as a profile.

use super::{Exit, Outcome, Verdict};
use crate::advice::{Candidate, Idle, Withheld, idle_json, idle_text, withheld_json};
use crate::page::Table;
use crate::profile::{Evidence, Guards, Profile, Speedup};
use crate::statistics::median;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Everything a tuning found out.
#[derive(Clone, Debug)]
pub struct Tuned {
    /// The command with its arguments.
    pub command: Vec<String>,
    /// Where it writes.
    pub directory: String,
    /// Name of what the predictions are for.
    pub platform: String,
    /// Ranks of the recorded run; 0 where it has none.
    pub rank_count: u32,
    /// Stacks the trace gives reason for, and how many of them were simulated.
    pub candidate_count: usize,
    /// See `candidate_count`.
    pub simulated_count: usize,
    /// How many of them there are of each kind, by the names of their strategies.
    pub kinds: BTreeMap<String, usize>,
    /// Who ran for real, best prediction first.
    pub field: Vec<Entered>,
    /// What came of it.
    pub outcome: Outcome,
    /// Seconds of all plain runs.
    pub plain_s: Vec<f64>,
    /// Runs of the command in all, the first and the recorded ones too.
    pub run_count: usize,
    /// What is left out for want of consent.
    pub withheld: Vec<Withheld>,
    /// Strategies that find nothing to do.
    pub idle: Vec<Idle>,
    /// Outputs in which plain runs differ among themselves, so nobody can be held to them.
    pub not_compared: Vec<String>,
    /// What else to know, a sentence each.
    pub notes: Vec<String>,
    /// Why there are fewer runs than planned, if there are.
    pub incomplete: Option<String>,
}

/// A stack that ran for real.
#[derive(Clone, Debug)]
pub struct Entered {
    /// What it is.
    pub candidate: Candidate,
    /// How many times as fast as plain, by the simulator.
    pub predicted: Option<f64>,
    /// The same in the runs of the selection.
    pub ratios: Vec<f64>,
    /// Why it is out, if it is.
    pub exit: Option<Exit>,
}

impl Tuned {
    fn winner(&self) -> Option<&Entered> {
        self.field.get(self.outcome.winner?)
    }

    /// The stack to recommend.
    pub fn recommended(&self) -> Option<&Entered> {
        self.winner().filter(|_| self.outcome.verdict == Verdict::Helps)
    }

    /// The tuning on a terminal.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n\n", self.command.join(" "));
        if !self.field.is_empty() {
            let columns = ["stack", "predicted", "measured", "rounds", "what became of it"];
            let mut table = Table::new("", columns);
            for (at, entered) in self.field.iter().enumerate() {
                table = table.row([
                    entered.candidate.label(),
                    entered.predicted.map_or("–".to_owned(), |factor| format!("{factor:.2}×")),
                    match entered.ratios.is_empty() {
                        true => "–".to_owned(),
                        false => format!("{:.2}×", median(&entered.ratios)),
                    },
                    entered.ratios.len().to_string(),
                    self.became(at, entered),
                ]);
            }
            text += &table.text();
        }
        let _ = writeln!(
            text,
            "{} stacks have a reason in the trace, {} were simulated, {} ran; {} runs of the command",
            self.candidate_count,
            self.simulated_count,
            self.field.len(),
            self.run_count
        );
        for Withheld { reason, flag } in &self.withheld {
            let _ = writeln!(text, "left out, {flag} would let it in: {reason}");
        }
        text += &idle_text(&self.idle);
        for note in &self.notes {
            let _ = writeln!(text, "note: {note}");
        }
        let _ = writeln!(text, "\n{}", self.headline());
        text
    }

    fn became(&self, at: usize, entered: &Entered) -> String {
        match &entered.exit {
            Some(Exit::Wrong(what)) => format!("WRONG: {what}"),
            Some(Exit::Failed(what)) => format!("FAILED: {what}"),
            Some(Exit::Slower) => "others were faster".to_owned(),
            None if self.outcome.winner == Some(at) => "the winner".to_owned(),
            None => "still in".to_owned(),
        }
    }

    /// What came of it, in a sentence.
    pub fn headline(&self) -> String {
        let held = self.outcome.speedup.map(|(middle, interval)| {
            let (name, low, high) = (interval.name(), interval.low, interval.high);
            format!("{middle:.2}× as fast as plain in runs of confirmation ({name} {low:.2} to {high:.2})")
        });
        let label = self.winner().map(|winner| winner.candidate.label());
        match (self.outcome.verdict, label, held) {
            (Verdict::Helps, Some(label), Some(held)) => {
                let but = match self.not_compared.len() {
                    0 => String::new(),
                    _ => format!(
                        "; whether it is right is not known of {}, in which plain runs differ, too",
                        self.not_compared.join(", ")
                    ),
                };
                format!("{label}: {held}{but}")
            }
            (Verdict::NothingHelps, Some(label), Some(held)) => {
                format!("nothing helps beyond chance: the best was {label}, {held}")
            }
            (Verdict::NothingHelps, Some(label), None) => {
                format!("nothing helps: the best was {label}, which was no faster than plain")
            }
            (Verdict::Undecided, Some(label), held) => {
                let held = held.map_or(String::new(), |held| format!(", {held}"));
                format!("too few runs to tell; so far the best is {label}{held}")
            }
            (Verdict::Undecided, None, _) => "too few runs to tell".to_owned(),
            (..) => "nothing helps".to_owned(),
        }
    }

    /// The tuning for programs; times in seconds.
    pub fn json(&self) -> Value {
        let field = self.field.iter().enumerate().map(|(at, entered)| {
            let texts: Vec<&str> =
                entered.candidate.stack.iter().map(|spec| spec.text.as_str()).collect();
            json!({
                "stack": entered.candidate.label(),
                "apply": texts,
                "reasons": entered.candidate.reasons,
                "predicted_speedup": entered.predicted,
                "speedup_by_round": entered.ratios,
                "became": self.became(at, entered),
            })
        });
        let verdict = match self.outcome.verdict {
            Verdict::Helps => "helps",
            Verdict::NothingHelps => "nothing-helps",
            Verdict::Undecided => "undecided",
        };
        json!({
            "command": self.command,
            "output_directory": self.directory,
            "platform": self.platform,
            "candidate_count": self.candidate_count,
            "candidates_by_kind": self.kinds,
            "simulated_count": self.simulated_count,
            "run_count": self.run_count,
            "plain_s": self.plain_s,
            "field": field.collect::<Vec<_>>(),
            "verdict": verdict,
            "winner": self.winner().map(|winner| winner.candidate.label()),
            "speedup": self.outcome.speedup.map(|(middle, interval)| {
                json!({ "median": middle, "interval": interval })
            }),
            "not_compared": self.not_compared,
            "idle": self.idle.iter().map(idle_json).collect::<Vec<_>>(),
            "withheld": self.withheld.iter().map(withheld_json).collect::<Vec<_>>(),
            "notes": self.notes,
            "incomplete": self.incomplete,
            "headline": self.headline(),
        })
    }

    /// The winner as a profile, where it may be recommended. `file_system` is that of the output
    /// directory; the evidence is completed by who knows host and date.
    pub fn profile(&self, file_system: Option<String>, known: Evidence) -> Option<Profile> {
        let winner = self.recommended()?;
        let (median, interval) = self.outcome.speedup?;
        let guards = Guards {
            file_systems: file_system.into_iter().collect(),
            ranks: if self.rank_count > 0 { vec![self.rank_count] } else { Vec::new() },
        };
        let mut profile = Profile::of(&winner.candidate.stack, Some(&self.directory), guards);
        let one = |factor| Speedup { low: factor, median: factor, high: factor, count: 1 };
        profile.evidence = Some(Evidence {
            command: self.command.clone(),
            platform: self.platform.clone(),
            reasons: winner.candidate.reasons.clone(),
            predicted: winner.predicted.map(one),
            measured: Some(Speedup {
                low: interval.low,
                median,
                high: interval.high,
                count: self.outcome.confirmed,
            }),
            ..known
        });
        Some(profile)
    }
}
