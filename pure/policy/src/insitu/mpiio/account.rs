//! What stages of this layer did in a run: what a launcher makes of the lines that ranks leave.

use super::collect::Counts;
use super::demote::Judgement;
use super::line::{HintEffect, Line};
use std::collections::{BTreeMap, BTreeSet};

/// A hint, the program's own value, and what became of it.
type Fate = (Option<String>, HintEffect);

/// What the lines of a run come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    library: String,
    programs: u64,
    files: BTreeMap<String, BTreeSet<String>>,
    hints: BTreeMap<(String, String), BTreeMap<String, Fate>>,
    judged: [u64; Judgement::ALL.len()],
    collected: Counts,
}

impl Account {
    /// Of the lines that ranks left.
    pub fn of(text: &str) -> Account {
        let mut account = Account::default();
        text.lines().filter_map(Line::read).for_each(|line| account.take(line));
        account
    }

    fn take(&mut self, line: Line) {
        match line {
            Line::Began { library } => {
                self.programs += 1;
                self.library = library;
            }
            Line::Opened { stage, path } => {
                self.files.entry(stage).or_default().insert(path);
            }
            Line::Hint { path, key, asked, program, effect } => {
                let fate = self.hints.entry((key, asked)).or_default().entry(path);
                // A file may be opened by several parts of a program, of which one gave a value.
                let (said, last) = fate.or_insert((None, HintEffect::Unknown));
                *said = program.or(said.take());
                *last = effect;
            }
            Line::Judged { counts, .. } => {
                self.judged.iter_mut().zip(counts).for_each(|(sum, more)| *sum += more);
            }
            Line::Collected { counts, .. } => {
                self.collected.held += counts.held;
                self.collected.passed += counts.passed;
                self.collected.quick += counts.quick;
                self.collected.alone += counts.alone;
                self.collected.together += counts.together;
            }
        }
    }

    /// Whether any process of the run came to MPI.
    pub fn has_mpi(&self) -> bool {
        self.programs > 0
    }

    /// For people: what the stages of these names did.
    pub fn lines(&self, stages: &[&str]) -> Vec<String> {
        if !self.has_mpi() {
            let stages = stages.join(" + ");
            return vec![format!(
                "{stages}: no program of the run has begun with MPI (without it, or linked statically \
                 with it, a program makes no call that they hear)"
            )];
        }
        let mut lines = Vec::new();
        for stage in stages {
            let Some(files) = self.files.get(*stage) else {
                lines.push(format!("{stage}: no file was opened through MPI-IO that it is for"));
                continue;
            };
            let mut line = format!("{stage}: {}", counted(files.len() as u64, "file", "s"));
            match *stage {
                "demote" | "demote-cruel" => line += &self.judgements(),
                "collect" | "collect-cruel" => line += &self.collections(),
                _ => {}
            }
            lines.push(line);
            if *stage == "hints" {
                lines.extend(self.hint_lines());
            }
        }
        lines
    }

    fn judgements(&self) -> String {
        let [independent, others @ ..] = self.judged;
        let mut text =
            format!(", {} went out independently", counted(independent, "collective access", "es"));
        let stayed: u64 = others.iter().sum();
        if stayed > 0 {
            let whys = Judgement::ALL[1..].iter().zip(others).filter(|(_, count)| *count > 0);
            let whys: Vec<String> =
                whys.map(|(why, count)| format!("{count} {}", why.word())).collect();
            text += &format!("; {stayed} stayed collective ({})", whys.join(", "));
        }
        text
    }

    fn collections(&self) -> String {
        let Counts { held, passed, quick, alone, together } = self.collected;
        let mut text = format!(
            ", {} were held and went out as {}",
            counted(held, "independent write", "s"),
            counted(together, "collective access", "es")
        );
        if alone > 0 {
            text += &format!(", {} by a rank alone", counted(alone, "time", "s"));
        }
        if passed > 0 {
            text += &format!("; {passed} passed");
        }
        if quick > 0 {
            text += &format!(" ({quick} because the storage answers quickly)");
        }
        text
    }

    fn hint_lines(&self) -> impl Iterator<Item = String> + '_ {
        self.hints.iter().flat_map(move |((key, asked), files)| {
            let mut fates: BTreeMap<&HintEffect, (u64, BTreeSet<&str>)> = BTreeMap::new();
            for (program, effect) in files.values() {
                let fate = fates.entry(effect).or_default();
                fate.0 += 1;
                fate.1.extend(program.as_deref());
            }
            let is_mixed = fates.len() > 1;
            fates.into_iter().map(move |(effect, (count, programs))| {
                let said = effect.said(&self.library);
                let mut line = format!("hints: {key}={asked}: {said}");
                if is_mixed {
                    line += &format!(", for {}", counted(count, "file", "s"));
                }
                if !programs.is_empty() {
                    let values: Vec<&str> = programs.into_iter().collect();
                    line += &format!("; the program said `{}`", values.join("`, `"));
                }
                line
            })
        })
    }
}

fn counted(count: u64, noun: &str, plural: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { plural })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(path: &str, program: Option<&str>, effect: HintEffect) -> Line {
        let (path, key) = (path.to_owned(), "cb_nodes".to_owned());
        Line::Hint { path, key, asked: "2".to_owned(), program: program.map(str::to_owned), effect }
    }

    fn began() -> Line {
        Line::Began { library: "MPICH 4.0.2".to_owned() }
    }

    fn opened(stage: &str, path: &str) -> Line {
        Line::Opened { stage: stage.to_owned(), path: path.to_owned() }
    }

    fn account(lines: &[Line]) -> Account {
        Account::of(&lines.iter().map(Line::text).collect::<String>())
    }

    #[test]
    fn what_became_of_a_hint_is_told_once_for_all_files_it_became_so() {
        let other = || HintEffect::Other("1".to_owned());
        let told = account(&[
            began(),
            opened("hints", "/a"),
            opened("hints", "/b"),
            hint("/a", None, HintEffect::InEffect),
            hint("/a", Some("4"), other()),
            hint("/b", None, other()),
        ]);
        assert_eq!(
            told.lines(&["hints"]),
            [
                "hints: 2 files",
                "hints: cb_nodes=2: not taken, in effect is `1`; the program said `4`"
            ]
        );
        let told = account(&[
            began(),
            opened("hints", "/a"),
            hint("/a", None, HintEffect::InEffect),
            hint("/b", None, HintEffect::Unknown),
        ]);
        assert_eq!(
            told.lines(&["hints"])[1..],
            [
                "hints: cb_nodes=2: in effect, for 1 file",
                "hints: cb_nodes=2: MPICH 4.0.2 does not know it, for 1 file"
            ]
        );
    }

    #[test]
    fn what_went_out_independently_is_counted_and_why_the_rest_did_not() {
        let judged = |counts| Line::Judged { path: "/a".to_owned(), counts };
        let told =
            account(&[began(), opened("demote", "/a"), judged([1, 0, 0, 0]), judged([9, 2, 1, 0])]);
        assert_eq!(
            told.lines(&["demote"]),
            ["demote: 1 file, 10 collective accesses went out independently; 3 stayed collective \
              (2 interleaved, 1 not to be judged)"]
        );
    }

    #[test]
    fn what_was_held_is_counted_and_how_it_went_out() {
        let collected = |held, passed, quick, alone, together| Line::Collected {
            path: "/a".to_owned(),
            counts: Counts { held, passed, quick, alone, together },
        };
        let lines = [began(), opened("collect", "/a"), collected(8, 0, 0, 0, 1)];
        let told = account(&lines).lines(&["collect"]);
        let wanted = "1 file, 8 independent writes were held and went out as 1 collective access";
        assert_eq!(told, [format!("collect: {wanted}")]);
        let told = account(&[&lines[..], &[collected(1, 7, 2, 3, 0)]].concat()).lines(&["collect"]);
        assert_eq!(
            told,
            [
                "collect: 1 file, 9 independent writes were held and went out as 1 collective access, \
              3 times by a rank alone; 7 passed (2 because the storage answers quickly)"
            ]
        );
    }

    #[test]
    fn a_run_without_mpi_and_one_without_such_files_are_told_apart() {
        let told = account(&[]);
        assert!(!told.has_mpi());
        let lines = told.lines(&["hints", "demote"]);
        assert!(lines[0].starts_with("hints + demote: no program of the run has"), "{lines:?}");
        assert_eq!(lines.len(), 1);
        let told = account(&[began(), opened("hints", "/a")]);
        assert!(told.has_mpi());
        let line = "demote: no file was opened through MPI-IO that it is for";
        assert_eq!(told.lines(&["hints", "demote"]), ["hints: 1 file", line]);
    }
}
