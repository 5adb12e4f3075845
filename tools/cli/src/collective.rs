//! `--collective file=NAME` of commands that run a program: which algorithm its collective accesses are
//! carried out by, and what came of it.

use crate::failure::Failure;
use crate::lines::Lines;
use crate::say::number_of;
use clap::{ArgGroup, Args};
use iolab_policy::collective::{CollectiveKind, catalog};
use iolab_policy::insitu::StrategySpec;
use iolab_policy::insitu::classes::Owned;
use iolab_vocab::format_bytes;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::process::Command;

/// The algorithm of a program's collective accesses.
#[derive(Args)]
#[command(group(ArgGroup::new("changed").multiple(true)))]
pub(crate) struct Collective {
    /// Carry out the collective MPI-IO accesses of the program by this algorithm of the simulator's, for
    /// example `file=double-buffered-two-phase`; on any file of the host.
    #[arg(id = "collective", long = "collective", value_name = "file=NAME", group = "changed")]
    wish: Option<String>,
    /// Take what is there to make trouble, too: the algorithm `cruel`, cruel strategies.
    #[arg(long, requires = "changed")]
    pub(crate) cruel: bool,
}

/// An algorithm that was chosen for a run.
pub(crate) struct Applied {
    name: &'static str,
    /// What the ranks leave of each file, a line each, if there is room for it.
    lines: Option<Lines>,
}

impl Collective {
    /// Whether an algorithm was asked for.
    pub(crate) fn is_given(&self) -> bool {
        self.wish.is_some()
    }

    /// Refuses a stack that would decide about collective accesses, too.
    pub(crate) fn goes_with(&self, specs: &[StrategySpec]) -> Result<(), Failure> {
        let owns = |spec: &&StrategySpec| spec.classes().owns(Owned::Exchange);
        match (&self.wish, specs.iter().find(owns)) {
            (Some(wish), Some(spec)) => Err(Failure::new(format!(
                "`{}` and --collective {wish} both own {}",
                spec.name,
                Owned::Exchange
            ))
            .hint(format!(
                "leave `{}` out: with --collective each rank accesses its own pieces where nothing \
                 interleaves, too",
                spec.name
            ))),
            _ => Ok(()),
        }
    }

    /// What was chosen, if anything was.
    pub(crate) fn applied(&self) -> Result<Option<Applied>, Failure> {
        let Some(wish) = &self.wish else { return Ok(None) };
        let (kind, name) = wish.split_once('=').unwrap_or((CollectiveKind::File.name(), wish));
        if kind != CollectiveKind::File.name() {
            return Err(Failure::new(format!(
                "`{wish}`: of a running program, only collective accesses to files can be changed"
            ))
            .hint("write --collective file=NAME; `iolab simulate --collective` takes the others"));
        }
        let row = catalog::find(CollectiveKind::File, name)?;
        if row.name == "cruel" && !self.cruel {
            return Err(Failure::new("`file=cruel` is there to test what stands on it")
                .hint("add --cruel if that is what you want"));
        }
        let lines = Lines::begin("iolab-collective");
        if let Err(error) = &lines {
            eprintln!("iolab: warning: nothing will be told of collective accesses: {error}");
        }
        Ok(Some(Applied { name: row.name, lines: lines.ok() }))
    }
}

/// What the ranks of this host told.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    files: usize,
    carried: u64,
    passed: u64,
    bytes: u64,
}

impl Told {
    fn of(text: &str) -> Told {
        let (mut told, mut files) = (Told::default(), BTreeSet::new());
        for line in text.lines() {
            let mut words = line.splitn(5, ' ');
            let mut number = || words.next()?.parse::<u64>().ok();
            // A line of a rank that was killed while it wrote.
            let Some([rank, carried, passed, bytes]) =
                (|| Some([number()?, number()?, number()?, number()?]))()
            else {
                continue;
            };
            if rank == 0 {
                told.carried += carried;
                told.passed += passed;
            }
            told.bytes += bytes;
            files.insert(words.next().unwrap_or_default().to_owned());
        }
        told.files = files.len();
        told
    }
}

impl Applied {
    /// Hands the choice on to the command.
    pub(crate) fn prepare(&self, command: &mut Command) {
        command.env("IOLAB_COLLECTIVE", self.name);
        if let Some(lines) = &self.lines {
            command.env("IOLAB_COLLECTIVE_LOG", lines.place());
        }
    }

    /// Tells what came of it.
    pub(crate) fn end(mut self, program: &OsStr) {
        match self.lines.take().map(Lines::end) {
            None => {}
            Some(Ok(text)) => eprintln!("iolab: {}", self.line(&Told::of(&text), program)),
            Some(Err(error)) => {
                eprintln!("iolab: warning: nothing is known of the run: {error}");
            }
        }
    }

    fn line(&self, told: &Told, program: &OsStr) -> String {
        let Told { files, carried, passed, bytes } = told;
        if *files == 0 {
            return format!(
                "no file was opened that file={} could serve: {} did not open any through MPI-IO, did \
                 not close it, or is linked statically, which a preloaded library does not reach",
                self.name,
                program.to_string_lossy()
            );
        }
        let (accesses, files) = (
            number_of(*carried, "collective access", "collective accesses"),
            number_of(*files as u64, "file", "files"),
        );
        let mut line = format!(
            "file={} carried out {accesses} of {files}; {} went from rank to rank",
            self.name,
            format_bytes(*bytes)
        );
        if *passed > 0 {
            line +=
                &format!("; {} stayed with the MPI library", number_of(*passed, "call", "calls"));
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_count_once_and_bytes_of_every_rank() {
        let text = "0 3 1 100 /a b\n1 3 1 50 /a b\n0 1 0 0 /c\n1 1 0 7";
        let told = Told::of(text);
        assert_eq!(told, Told { files: 3, carried: 4, passed: 1, bytes: 157 });
        let applied = Applied { name: "two-phase", lines: None };
        assert_eq!(
            applied.line(&told, OsStr::new("prog")),
            "file=two-phase carried out 4 collective accesses of 3 files; 157 B went from rank to rank; 1 \
             call stayed with the MPI library"
        );
        assert!(applied.line(&Told::of("0 x\n"), OsStr::new("prog")).contains("prog did not"));
    }
}
