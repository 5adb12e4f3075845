//! Files that a command writes: looked at before its work, there with all their content or not at
//! all afterwards.
//!
//! A file that the user named is replaced; a file that lies at a name which the user did not give
//! only where it is of the kind that iolab writes there. No command writes over what it reads.

use crate::failure::Failure;
use iolab_host::result_file::{ResultFile, Writing};
use iolab_iot::Reader;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// A file that will be written.
#[derive(Clone)]
pub(crate) struct Output {
    file: ResultFile,
    path: PathBuf,
    flag: &'static str,
}

/// What iolab writes at a name of its own choice.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Trace,
    Page,
    Platform,
    Document,
    Manual,
    Profile,
}

impl Output {
    /// Sees that it can be written, and that it is none of the files that are read; `flag` is what
    /// the user may change if not.
    pub(crate) fn begin(
        path: &Path,
        flag: &'static str,
        inputs: &[&Path],
    ) -> Result<Output, Failure> {
        let file = ResultFile::at(path).map_err(|error| failed(path, flag, &error))?;
        if inputs.iter().any(|input| file.is(input)) {
            return Err(Failure::new(format!("{} is both read and written", path.display()))
                .hint(format!("choose another {flag}")));
        }
        Ok(Output { file, path: path.to_owned(), flag })
    }

    /// The same where it is asked for at all.
    pub(crate) fn begin_if(
        path: Option<&Path>,
        flag: &'static str,
        inputs: &[&Path],
    ) -> Result<Option<Output>, Failure> {
        path.map(|path| Output::begin(path, flag, inputs)).transpose()
    }

    /// Of a name that iolab chose because the user gave none: what lies there must be of its kind.
    pub(crate) fn unnamed(
        path: &Path,
        flag: &'static str,
        kind: Kind,
        inputs: &[&Path],
    ) -> Result<Output, Failure> {
        let output = Output::begin(path, flag, inputs)?;
        match output.file.replaces() {
            Some(there) if !kind.is(there) => Err(Failure::new(format!(
                "{} exists and is not what iolab writes there",
                path.display()
            ))
            .hint(format!("name a file with {flag}; a file that is named is replaced"))),
            _ => Ok(output),
        }
    }

    /// Of the name that the user gave, else of that one.
    pub(crate) fn named_or(
        given: Option<&Path>,
        otherwise: &Path,
        flag: &'static str,
        kind: Kind,
        inputs: &[&Path],
    ) -> Result<Output, Failure> {
        match given {
            Some(path) => Output::begin(path, flag, inputs),
            None => Output::unnamed(otherwise, flag, kind, inputs),
        }
    }

    /// As the user named it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is the file of that name.
    pub(crate) fn is(&self, other: &Path) -> bool {
        self.file.is(other)
    }

    /// Whether the process that this one was forked from has written it; that it began is known.
    pub(crate) fn is_written(&self) -> bool {
        self.file.is_written()
    }

    /// Writes all of it.
    pub(crate) fn write(self, bytes: &[u8]) -> Result<(), Failure> {
        self.write_with(|file| file.write_all(bytes), |error| error).map(drop)
    }

    /// Lets `fill` write all of it; `make` of an error of the file one of `fill`'s. The answer is where
    /// the result lies now.
    pub(crate) fn write_with<E: std::fmt::Display>(
        self,
        fill: impl FnOnce(&mut Writing) -> Result<(), E>,
        make: impl Fn(io::Error) -> E,
    ) -> Result<PathBuf, Failure> {
        let Output { file, path, flag } = self;
        let written = file.begin().map_err(&make).and_then(|mut writing| {
            fill(&mut writing)?;
            writing.finish().map_err(&make)
        });
        match written {
            Ok(None) => Ok(path),
            Ok(Some(beside)) => {
                // Whoever listened may be gone, see `bench::conclusion`.
                let _ = writeln!(
                    io::stderr(),
                    "iolab: warning: a file came to lie at {} meanwhile and stays; the result is in {}",
                    path.display(),
                    beside.display()
                );
                Ok(beside)
            }
            Err(error) => Err(failed(&path, flag, &error)),
        }
    }
}

/// Writes the file; see [`Output`].
pub(crate) fn write(path: &Path, flag: &'static str, bytes: &[u8]) -> Result<(), Failure> {
    Output::begin(path, flag, &[])?.write(bytes)
}

/// Refuses two outputs of one name: the second would replace the first.
pub(crate) fn distinct(outputs: &[&Output]) -> Result<(), Failure> {
    for (index, output) in outputs.iter().enumerate() {
        if let Some(other) = outputs[..index].iter().find(|other| other.is(&output.path)) {
            return Err(Failure::new(format!(
                "{} and {} name the same file, {}",
                other.flag,
                output.flag,
                output.path.display()
            ))
            .hint("give each a file of its own"));
        }
    }
    Ok(())
}

impl Kind {
    /// Whether the file is one that iolab wrote, as far as its content tells.
    pub(crate) fn is(self, path: &Path) -> bool {
        let Ok(file) = File::open(path) else { return false };
        let mut start = Vec::new();
        let mut text = || {
            let _ = (&file).take(1 << 16).read_to_end(&mut start);
            String::from_utf8_lossy(&start).into_owned()
        };
        match self {
            Kind::Trace => Reader::new(file).is_ok(),
            Kind::Page => {
                let text = text();
                text.trim_start().to_ascii_lowercase().starts_with("<!doctype html")
                    && text.contains("iolab")
            }
            Kind::Platform => text().contains("name = \"this-machine\""),
            Kind::Document => {
                let text = text();
                text.starts_with('{') && text.contains("\"command\"")
            }
            Kind::Manual => text().contains("\n.TH iolab"),
            Kind::Profile => text().starts_with("# written by iolab"),
        }
    }

    /// Refuses a file at a name of iolab's own choice that is of no earlier `what`.
    pub(crate) fn refuse_foreign(self, path: &Path, what: &str) -> Result<(), Failure> {
        if std::fs::symlink_metadata(path).is_ok() && !self.is(path) {
            return Err(Failure::new(format!("{} is of no earlier {what}", path.display()))
                .hint("name another directory for the report with --results"));
        }
        Ok(())
    }
}

fn failed(path: &Path, flag: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(format!("cannot write {}: {error}", path.display()))
        .hint(format!("choose another {flag}"))
}
