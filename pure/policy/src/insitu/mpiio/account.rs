//! What stages of this layer did in a run: lines that ranks leave, and what a launcher makes of them.

use super::demote::Judgement;
use std::collections::{BTreeMap, BTreeSet};

/// What the MPI library made of a hint, as it says itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HintEffect {
    /// It tells the value that was asked for.
    InEffect,
    /// It tells another value.
    Other(String),
    /// It hands every hint back as it came, and is known to read this one.
    Echoed,
    /// It hands every hint back as it came, and is not known to read this one.
    EchoedUnread,
    /// It tells nothing of it.
    Unknown,
    /// It takes no name, or no value, of that length.
    TooLong,
}

impl HintEffect {
    /// From the value that was asked for and the one that is told; none for a library that tells nothing of it.
    pub fn of(asked: &str, told: Option<&str>) -> HintEffect {
        match told {
            None => HintEffect::Unknown,
            Some(told) if told == asked => HintEffect::InEffect,
            Some(told) => HintEffect::Other(told.to_owned()),
        }
    }

    fn words(&self) -> (&'static str, &str) {
        match self {
            HintEffect::InEffect => ("in-effect", ""),
            HintEffect::Other(value) => ("other", value),
            HintEffect::Echoed => ("echoed", ""),
            HintEffect::EchoedUnread => ("echoed-unread", ""),
            HintEffect::Unknown => ("unknown", ""),
            HintEffect::TooLong => ("too-long", ""),
        }
    }

    fn of_words(word: &str, value: &str) -> Option<HintEffect> {
        Some(match word {
            "in-effect" => HintEffect::InEffect,
            "other" => HintEffect::Other(value.to_owned()),
            "echoed" => HintEffect::Echoed,
            "echoed-unread" => HintEffect::EchoedUnread,
            "unknown" => HintEffect::Unknown,
            "too-long" => HintEffect::TooLong,
            _ => return None,
        })
    }

    /// For people.
    fn said(&self, library: &str) -> String {
        match self {
            HintEffect::InEffect => "in effect".to_owned(),
            HintEffect::Other(value) => format!("not taken, in effect is `{value}`"),
            HintEffect::Echoed => {
                format!("{library} reads it, and does not tell what is in effect")
            }
            HintEffect::EchoedUnread => format!("{library} is not known to read it"),
            HintEffect::Unknown => format!("{library} does not know it"),
            HintEffect::TooLong => format!("too long for {library}, so not given"),
        }
    }
}

/// One thing a rank leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A process began with MPI: the library, by name and version.
    Began {
        /// As `MPICH 4.0.2`.
        library: String,
    },
    /// A stage is for a file that was opened.
    Opened {
        /// The stage's name.
        stage: String,
        /// The file's path.
        path: String,
    },
    /// What became of a hint for a file; of several lines on one file and hint the last effect counts.
    Hint {
        /// The file's path.
        path: String,
        /// The hint's name.
        key: String,
        /// What was asked for.
        asked: String,
        /// Another value, which the program gave.
        program: Option<String>,
        /// What the library made of it.
        effect: HintEffect,
    },
    /// How often calls on a file were judged so, in the order of [`Judgement::ALL`].
    Judged {
        /// The file's path.
        path: String,
        /// How often.
        counts: [u64; Judgement::ALL.len()],
    },
}

impl Line {
    /// As text, with its end.
    pub fn text(&self) -> String {
        let clean = |text: &str| text.replace(['\t', '\n'], " ");
        let words: Vec<String> = match self {
            Line::Began { library } => vec!["began".to_owned(), clean(library)],
            Line::Opened { stage, path } => vec!["opened".to_owned(), clean(stage), clean(path)],
            Line::Hint { path, key, asked, program, effect } => {
                let (word, value) = effect.words();
                let has_own = if program.is_some() { "own" } else { "none" };
                let own = program.as_deref().unwrap_or_default();
                ["hint", path, key, asked, has_own, own, word, value].map(clean).to_vec()
            }
            Line::Judged { path, counts } => {
                let counts = counts.iter().map(u64::to_string);
                ["judged".to_owned(), clean(path)].into_iter().chain(counts).collect()
            }
        };
        words.join("\t") + "\n"
    }

    /// Reads a line without its end; none for what a rank left that was killed while it wrote.
    pub fn read(text: &str) -> Option<Line> {
        let words: Vec<&str> = text.split('\t').collect();
        let own = |text: &str| text.to_owned();
        Some(match *words {
            ["began", library] => Line::Began { library: own(library) },
            ["opened", stage, path] => Line::Opened { stage: own(stage), path: own(path) },
            ["hint", path, key, asked, has_own, program, word, value] => Line::Hint {
                path: own(path),
                key: own(key),
                asked: own(asked),
                program: (has_own == "own").then(|| own(program)),
                effect: HintEffect::of_words(word, value)?,
            },
            ["judged", path, a, b, c, d] => {
                let mut counts = [0; 4];
                for (count, word) in counts.iter_mut().zip([a, b, c, d]) {
                    *count = word.parse().ok()?;
                }
                Line::Judged { path: own(path), counts }
            }
            _ => return None,
        })
    }
}

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
            if stage.starts_with("demote") {
                line += &self.judgements();
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
    fn a_line_is_read_as_it_was_written_and_half_a_line_not_at_all() {
        let effects = [
            HintEffect::InEffect,
            HintEffect::Other("x y".to_owned()),
            HintEffect::Echoed,
            HintEffect::EchoedUnread,
            HintEffect::Unknown,
            HintEffect::TooLong,
        ];
        let hints = effects.map(|effect| hint("/a b", Some(""), effect));
        let judged = Line::Judged { path: "/a".to_owned(), counts: [1, 2, 3, 4] };
        assert_eq!(Line::read(began().text().trim_end()), Some(began()));
        for line in hints.into_iter().chain([judged, opened("demote", "/é")]) {
            let text = line.text();
            assert_eq!(Line::read(text.trim_end_matches('\n')), Some(line));
            assert_eq!(Line::read(&text[..text.len() / 2]), None, "{text}");
        }
        assert_eq!(opened("demote", "/a\tb\nc").text(), "opened\tdemote\t/a b c\n");
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
