//! What a stage of HDF5 or NetCDF, which gives files other properties, did in a run: as processes leave it, line by line,
//! and as a launcher tells it.

use std::collections::{BTreeMap, BTreeSet};

/// What became of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// The file has it.
    Set,
    /// This version of the library has no function for it.
    Unknown,
    /// It is about ranks, and the file was not opened by MPI-IO.
    NotParallel,
    /// The library does not take the value.
    Refused,
    /// The call does not wait for the open, and was left alone.
    Asynchronous,
    /// It is about chunks, and the file is a classic one of NetCDF.
    NoChunks,
    /// It is about the header of a classic file, and the file is one of HDF5.
    NoHeader,
    /// It is about a new file, and this one was there before.
    NotNew,
    /// It comes when definitions of variables end, and the program has ended none.
    NothingDefined,
    /// It makes data begin later, where offsets of the file's format may end.
    NoRoom,
    /// It is about what is written, and the file is open for reading.
    OnlyRead,
    /// The file has it without.
    Already,
}

impl Effect {
    const ALL: [(Effect, &str); 12] = [
        (Effect::Set, "set"),
        (Effect::Unknown, "unknown"),
        (Effect::NotParallel, "not-parallel"),
        (Effect::Refused, "refused"),
        (Effect::Asynchronous, "asynchronous"),
        (Effect::NoChunks, "no-chunks"),
        (Effect::NoHeader, "no-header"),
        (Effect::NotNew, "not-new"),
        (Effect::NothingDefined, "nothing-defined"),
        (Effect::NoRoom, "no-room"),
        (Effect::OnlyRead, "only-read"),
        (Effect::Already, "already"),
    ];

    /// Whether it is about one opening of a file, and says nothing against what became of the property at another.
    fn is_of_one_opening(self) -> bool {
        matches!(self, Effect::NotNew | Effect::NothingDefined | Effect::OnlyRead)
    }

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
            Effect::NoChunks => "not set: the file is classic, which has no chunks".to_owned(),
            Effect::NoHeader => {
                "not set: the file is NetCDF-4, whose definitions move no data".to_owned()
            }
            Effect::NotNew => {
                "not set: the file was there before, and its data would move".to_owned()
            }
            Effect::NothingDefined => "not set: no definitions of variables were ended".to_owned(),
            Effect::NoRoom => {
                "not set: offsets of the file's format may end before its data does".to_owned()
            }
            Effect::OnlyRead => "not set: the file is open for reading".to_owned(),
            Effect::Already => format!("so without: {library} does it of itself"),
        }
    }
}

/// One thing a process leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// It has come to the library, of this version.
    Began {
        /// As `HDF5 1.10.8`.
        library: String,
    },
    /// It has opened a file that the stage is for.
    Opened {
        /// The file's path.
        path: String,
    },
    /// What became of a property for a file; of several lines the last counts that is not about one opening only.
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
                    let fates = account.properties.entry(asked).or_default();
                    if !(effect.is_of_one_opening() && fates.contains_key(&path)) {
                        fates.insert(path, effect);
                    }
                }
            }
        }
        account
    }

    /// Whether any process of the run came to the library.
    pub fn has_library(&self) -> bool {
        !self.libraries.is_empty()
    }

    /// For people, of a stage of that name for that library.
    pub fn lines(&self, stage: &str, of: &str) -> Vec<String> {
        if !self.has_library() {
            return vec![format!(
                "{stage}: no program of the run has opened a file with {of} (linked statically with it, a \
                 program makes no call that is heard)"
            )];
        }
        if self.files.is_empty() {
            return vec![format!("{stage}: no file was opened with {of} that it is for")];
        }
        let library = self.libraries.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let mut lines = vec![format!("{stage}: {}", files(self.files.len()))];
        for (asked, fates) in &self.properties {
            let mut counts: BTreeMap<Effect, usize> = BTreeMap::new();
            fates.values().for_each(|effect| *counts.entry(*effect).or_default() += 1);
            let is_mixed = counts.len() > 1;
            for (effect, count) in counts {
                let many = if is_mixed { format!(", for {}", files(count)) } else { String::new() };
                lines.push(format!("{stage}: {asked}: {}{many}", effect.said(&library)));
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
        let account = |lines: &[Line]| {
            Account::of(&lines.iter().map(Line::text).collect::<String>()).lines("h5", "HDF5")
        };
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

    #[test]
    fn a_file_that_got_a_property_has_it_when_it_is_opened_again() {
        let told = |effects: &[Effect]| {
            let began = Line::Began { library: "NetCDF 4.9.0".to_owned() };
            let opened = Line::Opened { path: "/a".to_owned() };
            let fates = effects.iter().map(|effect| property("/a", *effect));
            let lines: String =
                [began, opened].into_iter().chain(fates).map(|it| it.text()).collect();
            Account::of(&lines).lines("nc", "NetCDF").remove(1)
        };
        let ended = [Effect::NothingDefined, Effect::Set, Effect::NothingDefined, Effect::NotNew];
        assert_eq!(told(&ended), "nc: meta-block=1m: set");
        assert_eq!(
            told(&[Effect::OnlyRead, Effect::Set, Effect::OnlyRead]),
            "nc: meta-block=1m: set"
        );
        assert!(told(&[Effect::Set, Effect::Refused]).ends_with("NetCDF 4.9.0 does not take it"));
        assert!(told(&[Effect::NotNew]).ends_with("was there before, and its data would move"));
    }
}
