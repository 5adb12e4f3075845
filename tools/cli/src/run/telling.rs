//! What `iolab run` says at its end: what was applied, and what the strategies did not reach.

use super::staging;
use crate::say::number_of;
use iolab_host::job::Job;
use iolab_host::launch;
use iolab_policy::insitu::StrategySpec;
use iolab_policy::insitu::classes::Layer;
use iolab_segment::{Figures, TALLY_VARIABLE, Tally};
use iolab_trace::spool::Unseen;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

/// The exit code of `--strict` when something was not reached.
pub(super) const NOT_REACHED: u8 = 3;

/// What goes past the library and is said; what is mapped goes past it, too, but strategies let go of
/// such files.
const PAST: [Unseen; 6] = [
    Unseen::IoUring,
    Unseen::Aio,
    Unseen::RawCalls,
    Unseen::Stdio,
    Unseen::SpawnFailed,
    Unseen::Filtered,
];

/// The counters of a run, and how much is to be said of them.
pub(super) struct Telling {
    tally: Tally,
    strategies: String,
    is_quiet: bool,
}

impl Telling {
    /// Counters for the processes of a command, which finds them by its environment. None where nobody
    /// asked, or where they could not be made.
    pub(super) fn begin(
        command: &mut Command,
        specs: &[StrategySpec],
        is_quiet: bool,
        is_strict: bool,
    ) -> Option<Telling> {
        // What stages of other layers do is told by the libraries of those (`above`).
        let specs = || specs.iter().filter(|spec| spec.layer() == Layer::Posix);
        let is_wanted = specs().next().is_some() && (is_strict || !is_quiet && !is_inside_a_run());
        let (tally, place) = match is_wanted.then(Tally::create)? {
            Ok(made) => made,
            Err(errno) => {
                let error = std::io::Error::from_raw_os_error(errno);
                eprintln!("iolab: warning: nothing will be told of strategies: {error}");
                return None;
            }
        };
        command.env(TALLY_VARIABLE, place);
        if let Some((program, why)) = launch::missed(Path::new(command.get_program())) {
            tally.miss(program.as_os_str().as_bytes(), why);
        }
        // So is what came of files that begin elsewhere (`staging`).
        let here = specs().filter(|spec| !staging::is_placed(spec));
        let mut names: Vec<&str> = here.map(|spec| spec.name).collect();
        names.dedup();
        Some(Telling { tally, strategies: names.join(" + "), is_quiet })
    }

    /// Says it, once for all ranks of a job that have a run each; true when everything was reached.
    pub(super) fn end(self, is_strict: bool) -> bool {
        let figures = self.tally.figures();
        let not_reached = not_reached(&figures);
        if Job::find().is_none_or(|job| job.rank == 0) {
            if !self.is_quiet && !self.strategies.is_empty() {
                eprintln!("iolab: {}", applied(&figures, &self.strategies));
            }
            if !self.is_quiet || is_strict {
                for what in &not_reached {
                    eprintln!("iolab: not reached by the strategies: {what}");
                }
            }
        }
        not_reached.is_empty()
    }
}

/// Whether a run around this one tells of all.
fn is_inside_a_run() -> bool {
    let place = std::env::var_os(TALLY_VARIABLE);
    let place =
        place.and_then(|place: std::ffi::OsString| CString::new(OsStr::as_bytes(&place)).ok());
    place.is_some_and(|place| Tally::attach(&place).is_some())
}

fn applied(figures: &Figures, strategies: &str) -> String {
    if figures.files == 0 {
        return match figures.processes {
            0 => format!("{strategies}: no program has said that it loaded the library"),
            programs => format!(
                "{strategies}: no file was chosen, in {}",
                number_of(programs, "program", "programs")
            ),
        };
    }
    let saved = match figures.heard.checked_sub(figures.below) {
        Some(saved) => format!("{saved} saved"),
        None => format!("{} more came out", figures.below - figures.heard),
    };
    let about = if figures.files_are_estimated { "about " } else { "" };
    format!(
        "{strategies}: {about}{}, {} heard, {saved}",
        number_of(figures.files, "file", "files"),
        number_of(figures.heard, "call", "calls")
    )
}

fn not_reached(figures: &Figures) -> Vec<String> {
    let named = figures.missed.iter().map(|(program, why)| format!("{program} ({})", why.words()));
    let more = (figures.missed_more > 0)
        .then(|| format!("{} starts of further programs", figures.missed_more));
    let is_noticed = |what: &&Unseen| figures.noticed & 1 << **what as u32 != 0;
    let noticed = PAST.iter().filter(is_noticed).map(|what| what.text().to_owned());
    named.chain(more).chain(noticed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_trace::program::Missed;

    #[test]
    fn a_line_says_what_was_applied() {
        let figures = |processes, files, heard, below| Figures {
            processes,
            files,
            heard,
            below,
            ..Figures::default()
        };
        for (figures, line) in [
            (figures(1, 1, 1000, 2), "s: 1 file, 1000 calls heard, 998 saved"),
            (figures(2, 3, 1, 1), "s: 3 files, 1 call heard, 0 saved"),
            (figures(1, 1, 3, 5), "s: 1 file, 3 calls heard, 2 more came out"),
            (figures(1, 0, 0, 0), "s: no file was chosen, in 1 program"),
            (figures(0, 0, 0, 0), "s: no program has said that it loaded the library"),
        ] {
            assert_eq!(applied(&figures, "s"), line);
        }
        let many = Figures { files_are_estimated: true, ..figures(1, 50_123, 9, 9) };
        assert_eq!(applied(&many, "s"), "s: about 50123 files, 9 calls heard, 0 saved");
    }

    #[test]
    fn what_was_not_reached_is_named() {
        let mut figures = Figures::default();
        assert_eq!(not_reached(&figures), [""; 0]);
        figures.noticed = 1 << Unseen::MappedStores as u32;
        assert_eq!(not_reached(&figures), [""; 0], "such files are let go of");
        figures.noticed |= 1 << Unseen::IoUring as u32;
        figures.missed = vec![("/bin/busybox".to_owned(), Missed::Static)];
        figures.missed_more = 2;
        let told = not_reached(&figures);
        assert_eq!(told[0], "/bin/busybox (statically linked)");
        assert_eq!(told[1], "2 starts of further programs");
        assert_eq!(told[2], Unseen::IoUring.text());
    }
}
