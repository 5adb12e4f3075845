//! What stages of this layer did in a run, as ranks leave it: line by line.

use super::collect::Counts;
use super::demote::Judgement;

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
    pub(super) fn said(&self, library: &str) -> String {
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
    /// What became of a rank's independent writes; accesses of all ranks are counted by the first.
    Collected {
        /// The file's path.
        path: String,
        /// How often what happened.
        counts: Counts,
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
            Line::Collected { path, counts } => {
                let Counts { held, passed, quick, alone, together } = counts;
                let counts = [held, passed, quick, alone, together].map(u64::to_string);
                ["collected".to_owned(), clean(path)].into_iter().chain(counts).collect()
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
            ["collected", path, held, passed, quick, alone, together] => {
                let count = |word: &str| word.parse().ok();
                let counts = Counts {
                    held: count(held)?,
                    passed: count(passed)?,
                    quick: count(quick)?,
                    alone: count(alone)?,
                    together: count(together)?,
                };
                Line::Collected { path: own(path), counts }
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written_and_half_a_line_not_at_all() {
        let began = Line::Began { library: "MPICH 4.0.2".to_owned() };
        let opened =
            |path: &str| Line::Opened { stage: "demote".to_owned(), path: path.to_owned() };
        let effects = [
            HintEffect::InEffect,
            HintEffect::Other("x y".to_owned()),
            HintEffect::Echoed,
            HintEffect::EchoedUnread,
            HintEffect::Unknown,
            HintEffect::TooLong,
        ];
        let hints = effects.map(|effect| Line::Hint {
            path: "/a b".to_owned(),
            key: "cb_nodes".to_owned(),
            asked: "2".to_owned(),
            program: Some(String::new()),
            effect,
        });
        let judged = Line::Judged { path: "/a".to_owned(), counts: [1, 2, 3, 4] };
        let counts = Counts { held: 1, passed: 2, quick: 3, alone: 4, together: 5 };
        let collected = Line::Collected { path: "/a".to_owned(), counts };
        assert_eq!(Line::read(began.clone().text().trim_end()), Some(began.clone()));
        for line in hints.into_iter().chain([judged, collected, opened("/é")]) {
            let text = line.text();
            assert_eq!(Line::read(text.trim_end_matches('\n')), Some(line));
            assert_eq!(Line::read(&text[..text.len() / 2]), None, "{text}");
        }
        assert_eq!(opened("/a\tb\nc").text(), "opened\tdemote\t/a b c\n");
    }
}
