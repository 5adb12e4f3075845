//! Advice as text and as JSON.

use super::{Candidate, Idle, NOTEWORTHY, Withheld};
use iolab_policy::insitu::StrategySpec;
use iolab_policy::insitu::classes::{Semantics, Visibility};
use iolab_sim::band::Band;
use serde_json::{Value, json};
use std::fmt::Write;

/// What is advised for a recorded program.
#[derive(Clone, Debug)]
pub struct Advice {
    /// The recorded command.
    pub command: Vec<String>,
    /// Name of what the predictions are for.
    pub platform: String,
    /// Predicted seconds without strategies.
    pub plain: Band,
    /// Stacks the trace gives reason for.
    pub candidate_count: usize,
    /// How many of them were simulated.
    pub simulated_count: usize,
    /// The best ones that are predicted to gain, best first.
    pub best: Vec<Advised>,
    /// Strategies that only a run can tell of, the plainest of each.
    pub unpredicted: Vec<Candidate>,
    /// What is left out for want of consent.
    pub withheld: Vec<Withheld>,
    /// Strategies that find nothing to do.
    pub idle: Vec<Idle>,
    /// What else to know, a sentence each.
    pub notes: Vec<String>,
}

/// A stack that would help.
#[derive(Clone, Debug)]
pub struct Advised {
    /// The stack with its reasons.
    pub candidate: Candidate,
    /// Predicted seconds.
    pub predicted: Band,
}

impl Advice {
    /// How many times as fast as plain a stack is predicted to be.
    pub fn speedup(&self, advised: &Advised) -> Band {
        self.plain.ratio(&advised.predicted)
    }

    /// Whether that is worth a word, in every order of simultaneous events.
    pub fn is_gain(plain: &Band, predicted: &Band) -> bool {
        let ratio = plain.ratio(predicted);
        ratio.median > 1.0 + NOTEWORTHY && ratio.low > 1.0
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n", self.command.join(" "));
        let _ = writeln!(
            text,
            "{} stacks have a reason in the trace, {} were simulated on {}; plain takes {} there\n",
            self.candidate_count,
            self.simulated_count,
            self.platform,
            seconds(self.plain),
        );
        for (number, advised) in self.best.iter().enumerate() {
            let candidate = &advised.candidate;
            let ratio = factor(self.speedup(advised));
            let _ = writeln!(text, "{}. {}: {ratio} as fast", number + 1, candidate.label());
            for reason in &candidate.reasons {
                let _ = writeln!(text, "   why: {reason}");
            }
            let _ = writeln!(text, "   changes: {}", changes(&candidate.stack));
            let _ = writeln!(text, "   needs: {}", needs(&candidate.stack));
            let _ = writeln!(text, "   run: {}", invocation(&candidate.stack));
        }
        if self.best.is_empty() {
            text += match self.candidate_count {
                0 => "nothing helps: the trace gives no strategy a reason\n",
                _ if self.simulated_count == 0 => "nothing could be predicted\n",
                _ => "nothing helps: no stack is predicted to gain more than 2 %\n",
            };
        }
        for candidate in &self.unpredicted {
            let _ = writeln!(text, "no simulation tells, `iolab tune` does: {}", candidate.label());
            for reason in &candidate.reasons {
                let _ = writeln!(text, "   why: {reason}");
            }
        }
        for Withheld { reason, flag } in &self.withheld {
            let _ = writeln!(text, "left out, {flag} would let it in: {reason}");
        }
        text += &idle_text(&self.idle);
        for note in &self.notes {
            let _ = writeln!(text, "note: {note}");
        }
        text
    }

    /// For programs; times in seconds.
    pub fn json(&self) -> Value {
        let band =
            |band: Band| json!({ "low": band.low, "median": band.median, "high": band.high });
        let best = self.best.iter().map(|advised| {
            json!({
                "stack": advised.candidate.label(),
                "apply": texts(&advised.candidate.stack),
                "reasons": advised.candidate.reasons,
                "changes": changes(&advised.candidate.stack),
                "needs": needs(&advised.candidate.stack),
                "predicted_s": band(advised.predicted),
                "speedup": band(self.speedup(advised)),
            })
        });
        let withheld = self.withheld.iter().map(withheld_json);
        json!({
            "command": self.command,
            "platform": self.platform,
            "plain_s": band(self.plain),
            "candidate_count": self.candidate_count,
            "simulated_count": self.simulated_count,
            "best": best.collect::<Vec<_>>(),
            "unpredicted": self.unpredicted.iter().map(unpredicted_json).collect::<Vec<_>>(),
            "withheld": withheld.collect::<Vec<_>>(),
            "idle": self.idle.iter().map(idle_json).collect::<Vec<_>>(),
            "notes": self.notes,
        })
    }
}

/// What is left out, for programs.
pub(crate) fn withheld_json(withheld: &Withheld) -> Value {
    json!({ "reason": withheld.reason, "flag": withheld.flag })
}

/// Who finds nothing to do, for programs.
pub(crate) fn idle_json(idle: &Idle) -> Value {
    json!({ "strategy": idle.strategy, "wants": idle.wants })
}

/// The same for people, in a line.
pub(crate) fn idle_text(idle: &[Idle]) -> String {
    let names: Vec<&str> = idle.iter().map(|idle| idle.strategy).collect();
    match names[..] {
        [] => String::new(),
        _ => format!("no reason in the trace for {} (what each wants: --json)\n", names.join(", ")),
    }
}

fn unpredicted_json(candidate: &Candidate) -> Value {
    json!({
        "stack": candidate.label(),
        "apply": texts(&candidate.stack),
        "reasons": candidate.reasons,
        "changes": changes(&candidate.stack),
        "needs": needs(&candidate.stack),
    })
}

fn texts(stack: &[StrategySpec]) -> Vec<&str> {
    stack.iter().map(|spec| spec.text.as_str()).collect()
}

/// What is different for the program and for others.
fn changes(stack: &[StrategySpec]) -> String {
    let mut said: Vec<String> = Vec::new();
    let mut say = |what: String| {
        if !said.contains(&what) {
            said.push(what);
        }
    };
    for spec in stack {
        let classes = &spec.row().classes;
        if classes.semantics != Semantics::Kept {
            say(classes.semantics.to_string());
        }
        if classes.visibility != Visibility::AtOnce {
            say(format!("others see what is written late (visibility: {})", classes.visibility));
        }
        if spec.parameters.iter().any(|(key, _)| key == "outsiders") {
            say("nobody outside of the run may write to these files".to_owned());
        }
    }
    if said.is_empty() { "nothing that can be seen".to_owned() } else { said.join("; ") }
}

fn needs(stack: &[StrategySpec]) -> String {
    let mut words: Vec<&str> =
        stack.iter().flat_map(|spec| spec.row().classes.needs).map(|need| need.word()).collect();
    words.sort_unstable();
    words.dedup();
    if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
}

/// The command line, quoted for a shell.
fn invocation(stack: &[StrategySpec]) -> String {
    let mut text = "iolab run".to_owned();
    for spec in stack {
        let _ = write!(text, " --apply '{}'", spec.text.replace('\'', "'\\''"));
    }
    for flag in iolab_policy::insitu::stacking::Consent::to(stack).flags() {
        let _ = write!(text, " {flag}");
    }
    text + " -- COMMAND"
}

fn seconds(band: Band) -> String {
    let time = |seconds: f64| match seconds {
        1.0.. => format!("{seconds:.2} s"),
        _ => format!("{:.1} ms", seconds * 1e3),
    };
    match band.is_one_value() {
        true => time(band.median),
        false => format!("{} ({} to {})", time(band.median), time(band.low), time(band.high)),
    }
}

fn factor(band: Band) -> String {
    match band.is_one_value() {
        true => format!("{:.2}×", band.median),
        false => format!("{:.2}× ({:.2} to {:.2})", band.median, band.low, band.high),
    }
}
