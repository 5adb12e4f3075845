//! The end of a mount that kept small files in a container: real files are made of them, and what came of it is said.

use crate::failure::Failure;
use crate::say::number_of;
use iolab_mount::Packed;
use iolab_packs::{PackError, unpack};
use iolab_policy::insitu::StrategySpec;
use iolab_policy::insitu::defer_close::Unpack;
use iolab_vocab::format_bytes;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Files are made by so many threads at once: they wait for servers of metadata, not for processors.
const THREADS: usize = 16;
/// How often a person hears how far it is.
const TELL_EVERY: Duration = Duration::from_secs(5);

/// The places of containers that lie elsewhere, by their absolute names; the directories that are covered are none.
///
/// # Errors
/// When one is no directory, or lies in one of those.
pub(crate) fn resolve_places(
    specs: &mut [StrategySpec],
    covered: &[PathBuf],
) -> Result<(), Failure> {
    specs.iter_mut().try_for_each(|spec| resolve_place(spec, covered))
}

fn resolve_place(spec: &mut StrategySpec, covered: &[PathBuf]) -> Result<(), Failure> {
    let Some(to) = spec.deferral().and_then(|it| it.to) else { return Ok(()) };
    let refused = |why: String| {
        Err(Failure::new(format!("`{}`: to={to}: {why}", spec.name))
            .hint("name a directory that is there, outside of the one whose files are kept"))
    };
    let place = match Path::new(&to).canonicalize() {
        Ok(place) if place.is_dir() => place,
        Ok(_) => return refused("it is no directory".to_owned()),
        Err(error) => return refused(error.to_string()),
    };
    if covered.iter().any(|covered| place.starts_with(covered)) {
        return refused("its files are kept themselves".to_owned());
    }
    let place = place.to_string_lossy().into_owned();
    spec.parameters
        .iter_mut()
        .filter(|(key, _)| key == "to")
        .for_each(|it| it.1.clone_from(&place));
    Ok(())
}

/// What came of the container of one directory.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// Where it lies, if it still does.
    pack: Option<PathBuf>,
    created: u64,
    made: u64,
    kept: u64,
    bytes: u64,
    unpacked: u64,
    /// Seconds that took, if it was to be unpacked now.
    unpacking_s: Option<f64>,
    /// Nothing is missing.
    pub(crate) is_whole: bool,
}

/// Makes real files, if that is wanted now, and says what came of it. Whether nothing is missing.
pub(crate) fn settle(packed: &Packed) -> bool {
    let outcome = carry_out(packed, packed.unpack != Unpack::Never);
    if packed.created > 0 {
        eprintln!("iolab: defer-close: {}", outcome.words());
    }
    outcome.is_whole
}

/// The same for the server of a run, whose launcher is told where it waits.
pub(crate) fn serve_out(all: &[Packed], is_waited_for: bool) {
    let (now, later): (Vec<_>, Vec<_>) =
        all.iter().partition(|packed| packed.unpack != Unpack::Background);
    let mut outcomes: Vec<Outcome> = Vec::new();
    outcomes.extend(now.iter().map(|packed| carry_out(packed, packed.unpack == Unpack::End)));
    outcomes.extend(later.iter().map(|packed| carry_out(packed, false)));
    if is_waited_for {
        // A launcher that was killed hears nothing; the files are made all the same.
        let text = serde_json::to_string(&outcomes).unwrap_or_default() + "\n";
        let mut out = std::io::stdout();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        let nothing = std::fs::File::options().write(true).open("/dev/null");
        let _ = nothing.map(rustix::stdio::dup2_stdout);
    }
    for packed in later {
        carry_out(packed, true);
    }
}

fn carry_out(packed: &Packed, is_unpacked: bool) -> Outcome {
    let mut outcome = Outcome {
        pack: packed.pack.clone(),
        created: packed.created,
        made: packed.made,
        kept: packed.kept,
        bytes: packed.bytes,
        is_whole: packed.lost.is_empty(),
        ..Outcome::default()
    };
    for lost in &packed.lost {
        eprintln!("iolab: warning: defer-close: what was written last is lost of {lost}");
    }
    if let Some(pack) = packed.pack.as_deref().filter(|_| is_unpacked) {
        let begin = Instant::now();
        match unpacked(pack, None) {
            Ok(Some(files)) => (outcome.unpacked, outcome.pack) = (files, None),
            Ok(None) => outcome.is_whole = false,
            Err(error) => {
                eprintln!("iolab: warning: {}: {error}", pack.display());
                outcome.is_whole = false;
            }
        }
        outcome.unpacking_s = Some(begin.elapsed().as_secs_f64());
    }
    outcome
}

/// Makes real files of a pack's, and names what stays; how many there are, if nothing does.
///
/// # Errors
/// When the pack cannot be read, is none, or its run goes on: nothing was made then.
pub(crate) fn unpacked(pack: &Path, target: Option<&Path>) -> Result<Option<u64>, PackError> {
    let told = Mutex::new(Instant::now());
    let tell = |done: u64| {
        let mut last = told.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if last.elapsed() > TELL_EVERY {
            *last = Instant::now();
            eprintln!("iolab: {}: {} so far", pack.display(), number_of(done, "file", "files"));
        }
    };
    let unpacked = unpack(pack, target, THREADS, &tell)?;
    for left in &unpacked.left {
        eprintln!("iolab: warning: not unpacked: {left}");
    }
    let all = unpacked.made + unpacked.there;
    if unpacked.left.is_empty() {
        return Ok(Some(all));
    }
    eprintln!(
        "iolab: {} unpacked; nothing is lost: {1} stays. Mend that, then `iolab unpack {1}`",
        number_of(all, "file", "files"),
        pack.display()
    );
    Ok(None)
}

impl Outcome {
    /// What is said of it.
    pub(crate) fn words(&self) -> String {
        let mut words = format!("{} kept", number_of(self.created, "file was", "files were"));
        if self.made > 0 {
            words += &format!(", {} made at once after all", self.made);
        }
        match (&self.pack, self.unpacking_s) {
            (_, Some(seconds)) => {
                let unpacked = number_of(self.unpacked, "file", "files");
                words += &format!(", {unpacked} unpacked in {seconds:.1} s");
            }
            (Some(pack), None) => {
                let kept = number_of(self.kept, "file", "files");
                let bytes = format_bytes(self.bytes);
                words += &format!(", {kept} in {} ({bytes})", pack.display());
            }
            (None, None) => {}
        }
        words
    }

    /// Whether there is anything to say.
    pub(crate) fn is_worth_a_line(&self) -> bool {
        self.created > 0
    }

    /// The container is to be unpacked by hand, or is being unpacked.
    pub(crate) fn pack(&self) -> Option<&Path> {
        self.pack.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_came_of_the_files() {
        let kept = Outcome { created: 3, kept: 3, bytes: 4096, ..Outcome::default() };
        let kept = Outcome { pack: Some("x.pack".into()), ..kept };
        assert_eq!(
            kept.words(),
            format!("3 files were kept, 3 files in x.pack ({})", format_bytes(4096))
        );
        let unpacked = Outcome {
            created: 2,
            made: 1,
            unpacked: 1,
            unpacking_s: Some(0.25),
            ..Outcome::default()
        };
        assert_eq!(
            unpacked.words(),
            "2 files were kept, 1 made at once after all, 1 file unpacked in 0.2 s"
        );
    }
}
