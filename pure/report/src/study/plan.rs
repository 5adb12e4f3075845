//! What a study will run: which strategies, and in which order.
//!
//! Strategies are the null one, what the user asks for, what findings recommend and what the calls of
//! the trace suggest, each once. Every round runs everything once, beginning further along, so that
//! no turn always follows the same one.

use iolab_policy::insitu::StrategySpec;
use iolab_policy::insitu::stacking::{self, Consent, Setting};
use iolab_trace::{Class, Layer, Trace};
use iolab_vocab::Refusal;

/// A stack of strategies to try.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// As people read it: without the paths a study adds.
    pub label: String,
    /// Top first.
    pub stack: Vec<StrategySpec>,
    /// Why it is tried.
    pub reason: &'static str,
}

impl Candidate {
    /// Reads `A` or `A + B` (A on top), which must be allowed. Strategies that name no paths are kept to
    /// `directory`: what a study does not compare it does not reshape.
    pub fn parse(text: &str, directory: &str, reason: &'static str) -> Result<Candidate, Refusal> {
        let stack = StrategySpec::parse_each(&[text])?;
        let stack = stack.into_iter().map(|spec| kept_to(spec, directory));
        let stack = stack.collect::<Result<Vec<_>, _>>()?;
        stacking::check(&stack, Setting::Compared, Consent::default())?;
        Ok(Candidate { label: text.to_owned(), stack, reason })
    }

    /// The strategies as `iolab run --apply` takes them.
    pub fn texts(&self) -> Vec<String> {
        self.stack.iter().map(|spec| spec.text.clone()).collect()
    }
}

fn kept_to(spec: StrategySpec, directory: &str) -> Result<StrategySpec, Refusal> {
    let literal = !directory.contains(['*', '?', '[', ']', '{', '}', ',', '\\', '=', '+']);
    if !spec.selection.paths.is_empty() || !literal {
        return Ok(spec);
    }
    let text = &spec.text;
    let joint = if text.contains(':') { ',' } else { ':' };
    StrategySpec::parse(&format!("{text}{joint}paths={}/**", directory.trim_end_matches('/')))
}

/// The null strategy, what the user asks for, what the findings recommend, and what the calls of
/// the trace suggest; each once.
pub fn candidates(
    wanted: &[String],
    remedies: &[String],
    trace: &Trace,
    directory: &str,
) -> Result<Vec<Candidate>, Refusal> {
    let mut chosen = vec![Candidate::parse("null", directory, "what the machinery costs")?];
    let asked = wanted.iter().map(|text| (text.as_str(), "asked for"));
    // A remedy names the files of its finding; a study tries it on all output at once.
    let found =
        remedies.iter().map(|text| text.split_once(":paths=").map_or(text.as_str(), |p| p.0));
    let found = found.map(|text| (text, "remedy of a finding"));
    let suggested = suggested(trace).into_iter().map(|text| (text, "suggested by the calls"));
    for (text, reason) in asked.chain(found).chain(suggested) {
        let candidate = Candidate::parse(text, directory, reason)?;
        if chosen.iter().all(|known| known.texts() != candidate.texts()) {
            chosen.push(candidate);
        }
    }
    Ok(chosen)
}

/// Calls fewer than this are not worth a strategy, whatever they are.
const WORTHWHILE_CALLS: usize = 500;
/// Write-back leaves larger writes alone; measured, see the strategy.
const SMALL_WRITE_BYTES: i64 = 16 << 10;

fn suggested(trace: &Trace) -> Vec<&'static str> {
    let posix = || trace.events.iter().filter(|event| event.function.layer() == Layer::Posix);
    let count = |class| posix().filter(|event| event.function.class() == class).count();
    let small = |length| (1..SMALL_WRITE_BYTES).contains(&length);
    let small_writes =
        posix().filter(|e| e.function.class() == Class::Write && small(e.length)).count();
    let seeks = (count(Class::Seek) >= WORTHWHILE_CALLS).then_some("seek-elide");
    let writes = (small_writes >= WORTHWHILE_CALLS).then_some("write-back");
    seeks.into_iter().chain(writes).collect()
}

/// One run of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The command as it is.
    Plain,
    /// The command under this candidate.
    Under(usize),
}

/// The runs of a round: everything once, and each round begins one further along, so that no turn
/// always follows the same one.
pub fn round(number: usize, candidate_count: usize) -> Vec<Turn> {
    let mut turns: Vec<Turn> = (0..candidate_count).map(Turn::Under).collect();
    turns.insert(0, Turn::Plain);
    let ahead = number % turns.len();
    turns.rotate_left(ahead);
    if number % 2 == 1 {
        turns.reverse();
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_trace::{Event, Function};

    #[test]
    fn each_round_runs_everything_once_in_another_order() {
        let rounds: Vec<Vec<Turn>> = (0..4).map(|number| round(number, 3)).collect();
        for turns in &rounds {
            for turn in [Turn::Plain, Turn::Under(0), Turn::Under(1), Turn::Under(2)] {
                assert_eq!(turns.iter().filter(|&&other| other == turn).count(), 1);
            }
        }
        assert!(rounds.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn strategies_are_kept_to_the_output_directory_unless_they_name_paths() {
        let parse = |text| Candidate::parse(text, "/out", "test").unwrap().texts();
        assert_eq!(parse("write-back"), ["write-back:paths=/out/**"]);
        assert_eq!(parse("write-back:buffer=4k"), ["write-back:buffer=4k,paths=/out/**"]);
        assert_eq!(parse("write-back:paths=*.dat"), ["write-back:paths=*.dat"]);
        assert_eq!(
            parse("fsync-relax + write-back:paths=*.dat"),
            ["fsync-relax:paths=/out/**", "write-back:paths=*.dat"]
        );
        for refused in ["write-bakc", "seek-elide + write-back", "seek-free", "null +"] {
            assert!(Candidate::parse(refused, "/out", "test").is_err(), "{refused}");
        }
    }

    #[test]
    fn a_strategy_is_tried_once_although_several_findings_recommend_it() {
        let event = Event { length: 64, ..Event::of(Function::WRITE) };
        let trace = Trace { events: vec![event; 1000], ..Trace::default() };
        let remedies = ["write-back".to_owned(), "write-back".to_owned()];
        let chosen = candidates(&["write-back".to_owned()], &remedies, &trace, "/out").unwrap();
        let labels: Vec<_> = chosen.iter().map(|candidate| candidate.label.as_str()).collect();
        assert_eq!(labels, ["null", "write-back"]);
        assert_eq!(chosen[1].reason, "asked for");
    }

    #[test]
    fn many_seeks_and_small_writes_suggest_strategies_and_large_writes_do_not() {
        let seek = Event::of(Function::LSEEK);
        let write = |length| Event { length, ..Event::of(Function::PWRITE) };
        let trace = |event| Trace { events: vec![event; 600], ..Trace::default() };
        assert_eq!(suggested(&trace(seek)), ["seek-elide"]);
        assert_eq!(suggested(&trace(write(100))), ["write-back"]);
        assert!(suggested(&trace(write(1 << 20))).is_empty());
    }
}
