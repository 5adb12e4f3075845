//! What a stage of this layer did in a run: as processes leave it, line by line, and as a launcher tells it.

use std::collections::{BTreeMap, BTreeSet};

/// What became of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// The file was opened with it.
    Set,
    /// This version of HDF5 has no function for it.
    Unknown,
    /// It is about ranks, and the file was not opened by MPI-IO.
    NotParallel,
    /// HDF5 does not take the value.
    Refused,
    /// The call does not wait for the open, and was left alone.
    Asynchronous,
}

impl Effect {
    const ALL: [(Effect, &str); 5] = [
        (Effect::Set, "set"),
        (Effect::Unknown, "unknown"),
        (Effect::NotParallel, "not-parallel"),
        (Effect::Refused, "refused"),
        (Effect::Asynchronous, "asynchronous"),
    ];

    fn word(self) -> &'static str {
        Effect::ALL.iter().find(|it| it.0 == self).map_or("", |it| it.1)
    }

    fn of(word: &str) -> Option<Effect> {
        Effect::ALL.iter().find(|it| it.1 == word).map(|it| it.0)
    }

    fn said(self, library: &str) -> String {
        match self {
            Effect::Set => "set".to_owned(),
            Effect::Unknown => format!("not set: {library} does not have it"),
            Effect::NotParallel => "not set: the file was not opened by MPI-IO".to_owned(),
            Effect::Refused => format!("not set: {library} does not take it"),
            Effect::Asynchronous => "not set: the call does not wait for the open".to_owned(),
        }
    }
}

/// One thing a process leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// It has come to HDF5, of this version.
    Began {
        /// As `HDF5 1.10.8`.
        library: String,
    },
    /// It has opened a file that the stage is for.
    Opened {
        /// The file's path.
        path: String,
    },
    /// What became of a property for a file; of several lines the last counts.
    Property {
        /// The file's path.
        path: String,
        /// The property, as a user writes it.
        asked: String,
        /// What became of it.
        effect: Effect,
    },
}

impl Line {
    /// As text, with its end.
    pub fn text(&self) -> String {
        let clean = |text: &str| text.replace(['\t', '\n'], " ");
        let words = match self {
            Line::Began { library } => vec!["began".to_owned(), clean(library)],
            Line::Opened { path } => vec!["opened".to_owned(), clean(path)],
            Line::Property { path, asked, effect } => {
                ["property", path, asked, effect.word()].map(clean).to_vec()
            }
        };
        words.join("\t") + "\n"
    }

    /// Reads a line without its end; none for what a process left that was killed while it wrote.
    pub fn read(text: &str) -> Option<Line> {
        let words: Vec<&str> = text.split('\t').collect();
        Some(match *words {
            ["began", library] => Line::Began { library: library.to_owned() },
            ["opened", path] => Line::Opened { path: path.to_owned() },
            ["property", path, asked, effect] => Line::Property {
                path: path.to_owned(),
                asked: asked.to_owned(),
                effect: Effect::of(effect)?,
            },
            _ => return None,
        })
    }
}

/// What the lines of a run come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    libraries: BTreeSet<String>,
    files: BTreeSet<String>,
    properties: BTreeMap<String, BTreeMap<String, Effect>>,
}

impl Account {
    /// Of the lines that processes left.
    pub fn of(text: &str) -> Account {
        let mut account = Account::default();
        for line in text.lines().filter_map(Line::read) {
            match line {
                Line::Began { library } => {
                    account.libraries.insert(library);
                }
                Line::Opened { path } => {
                    account.files.insert(path);
                }
                Line::Property { path, asked, effect } => {
                    account.properties.entry(asked).or_default().insert(path, effect);
                }
            }
        }
        account
    }

    /// Whether any process of the run came to HDF5.
    pub fn has_hdf5(&self) -> bool {
        !self.libraries.is_empty()
    }

    /// For people.
    pub fn lines(&self) -> Vec<String> {
        if !self.has_hdf5() {
            return vec![
                "h5: no program of the run has opened a file with HDF5 (linked statically with it, a \
                 program makes no call that is heard)"
                    .to_owned(),
            ];
        }
        if self.files.is_empty() {
            return vec!["h5: no file was opened with HDF5 that it is for".to_owned()];
        }
        let library = self.libraries.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let mut lines = vec![format!("h5: {}", files(self.files.len()))];
        for (asked, fates) in &self.properties {
            let mut counts: BTreeMap<Effect, usize> = BTreeMap::new();
            fates.values().for_each(|effect| *counts.entry(*effect).or_default() += 1);
            let is_mixed = counts.len() > 1;
            for (effect, count) in counts {
                let of = if is_mixed { format!(", for {}", files(count)) } else { String::new() };
                lines.push(format!("h5: {asked}: {}{of}", effect.said(&library)));
            }
        }
        lines
    }
}

fn files(count: usize) -> String {
    format!("{count} file{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn property(path: &str, effect: Effect) -> Line {
        Line::Property { path: path.to_owned(), asked: "meta-block=1m".to_owned(), effect }
    }

    #[test]
    fn a_line_is_read_as_it_was_written_and_half_a_line_not_at_all() {
        let began = Line::Began { library: "HDF5 1.10.8".to_owned() };
        let opened = Line::Opened { path: "/a b".to_owned() };
        let properties = Effect::ALL.map(|(effect, _)| property("/a b", effect));
        for line in properties.into_iter().chain([began, opened]) {
            let text = line.text();
            assert_eq!(Line::read(text.trim_end_matches('\n')), Some(line.clone()));
            if matches!(line, Line::Property { .. }) {
                assert_eq!(Line::read(&text[..text.len() / 2]), None, "{text}");
            }
        }
        assert_eq!(Line::Opened { path: "/a\tb\nc".to_owned() }.text(), "opened\t/a b c\n");
    }

    #[test]
    fn files_are_counted_and_what_became_of_properties_is_told_apart() {
        let account =
            |lines: &[Line]| Account::of(&lines.iter().map(Line::text).collect::<String>()).lines();
        let began = Line::Began { library: "HDF5 1.10.8".to_owned() };
        let opened = |path: &str| Line::Opened { path: path.to_owned() };
        let (a, b) = (opened("/a"), opened("/b"));
        let told = account(&[began.clone(), a.clone(), property("/a", Effect::Set)]);
        assert_eq!(told, ["h5: 1 file", "h5: meta-block=1m: set"]);
        let fates = [property("/a", Effect::Set), property("/b", Effect::Refused)];
        let told = account(&[&[began.clone(), a, b][..], &fates].concat());
        let refused = "h5: meta-block=1m: not set: HDF5 1.10.8 does not take it, for 1 file";
        assert_eq!(told, ["h5: 2 files", "h5: meta-block=1m: set, for 1 file", refused]);
        assert!(account(&[])[0].starts_with("h5: no program of the run has opened"));
        assert_eq!(account(&[began]), ["h5: no file was opened with HDF5 that it is for"]);
    }
}
