//! The files of a run: which it needs, that nothing else lies there, and that they go when it ends.
//!
//! A run removes and overwrites only what it made. Rank 0 makes every file before anything else is
//! done, by a call that fails where something exists, and enters device and inode into a register in
//! memory that also the process sees which cleans up after a run that was killed. Removed is what
//! the register holds, as long as it is still the same file; where somebody put another one into its
//! place, that one stays. Existing files are used only when the plan says so, and stay.

use crate::cell::{Abilities, refusal};
use crate::failure::{BenchError, Told, agree};
use crate::manner::Manner;
use crate::names::{Name, clear_names};
use crate::plan::{Plan, Temporal};
use iolab_backend::{Held, Identity, Needs, pfs};
use iolab_comm::Comm;
use iolab_host::shared::SharedWords;
use iolab_vocab::format_bytes;
use std::fs::{self, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// Which kinds of files a run needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Uses {
    /// One file of all ranks.
    pub(crate) shared: bool,
    /// A file for each rank.
    pub(crate) own: bool,
    /// A directory for metadata operations.
    pub(crate) metadata: bool,
    /// Files of the parallel file system, beside the plain ones.
    pub(crate) held: bool,
}

impl Uses {
    /// What the cases need that can be run here and touch files at all.
    pub(crate) fn of(plan: &Plan, ranks: u32, abilities: &Abilities) -> Uses {
        let mut uses = Uses::default();
        for case in &plan.cases {
            let acts = case.method.keeps_data && case.method.needs != Needs::Platform;
            if !acts || refusal(case, plan, ranks, abilities).is_some() {
                continue;
            }
            uses.held |= case.method.needs == Needs::FileSystem;
            match case.pattern(ranks, plan.seed) {
                _ if case.temporal == Temporal::Metadata => uses.metadata = true,
                Ok(pattern) if case.own_file(pattern.as_ref()) => uses.own = true,
                Ok(_) => uses.shared = true,
                Err(_) => {}
            }
        }
        uses
    }
}

/// Words of the register for one name: what is known of it, device, inode, inode in the parallel file system.
const WORDS: usize = 4;
/// This run made it.
const MADE: u64 = 1;
/// Another process of this run made it, on another host perhaps.
const TOLD: u64 = 2;

/// The names of a run and what it made of them. Clones and forked processes share the register.
#[derive(Clone)]
pub struct TestFiles {
    target: PathBuf,
    ranks: u32,
    manner: Manner,
    /// The directory of the parallel file system, if one is used.
    file_system: Option<PathBuf>,
    register: Arc<SharedWords>,
}

impl TestFiles {
    /// Of a run on so many ranks; nothing is touched.
    ///
    /// # Errors
    /// When there is no memory for the register.
    pub fn of(target: &Path, ranks: u32, manner: Manner) -> io::Result<TestFiles> {
        let register = Arc::new(SharedWords::new((ranks as usize + 2) * WORDS)?);
        Ok(TestFiles { target: target.to_owned(), ranks, manner, file_system: None, register })
    }

    /// The same with files in the parallel file system of that directory.
    pub fn held_in(self, file_system: Option<&Path>) -> TestFiles {
        TestFiles { file_system: file_system.map(Path::to_owned), ..self }
    }

    /// Removes what this run made, unless it is to be kept. A directory of metadata operations is
    /// never kept.
    pub fn remove(&self) {
        self.unmake(Name::Metadata);
        if !self.manner.keep {
            self.data_names().for_each(|name| self.unmake(name));
        }
    }

    /// Where a file lies.
    pub(crate) fn path(&self, name: Name) -> PathBuf {
        name.below(&self.target)
    }

    /// Whether existing files are read as they are.
    pub(crate) fn existing(&self) -> bool {
        self.manner.existing
    }

    /// Which file must lie there, if this run made it.
    pub(crate) fn identity(&self, name: Name) -> Option<Identity> {
        let [state, device, inode, _] = self.entry(name);
        let known = state.load(Acquire);
        (known != 0).then(|| Identity {
            device: (known == MADE).then(|| device.load(Relaxed)),
            inode: inode.load(Relaxed),
        })
    }

    /// Which file of the parallel file system it is, if one is used.
    pub(crate) fn held(&self, name: Name) -> Option<Held> {
        let [.., inode] = self.entry(name);
        let inode = Some(inode.load(Acquire)).filter(|&inode| inode != 0);
        self.file_system.clone().map(|directory| Held { directory, inode })
    }

    /// Makes all files that are needed, on rank 0, and tells everyone which they are.
    ///
    /// # Errors
    /// The first name at which something lies already, before anything is made.
    pub(crate) fn make(&self, comm: &dyn Comm, uses: Uses) -> Result<(), BenchError> {
        let first = comm.rank().0 == 0;
        agree(comm, if first { self.make_all(uses) } else { Ok(()) })?;
        let own = if first { self.entries() } else { Vec::new() };
        let said = serde_json::to_vec(&own).unwrap_or_default();
        let heard = comm.gather(&said)?;
        let known: Vec<(usize, u64)> =
            heard.first().and_then(|text| serde_json::from_slice(text).ok()).unwrap_or_default();
        // Threads and forked processes see the register itself.
        for (place, inode) in known.into_iter().filter(|_| !first && comm.mpi().is_some()) {
            self.register[place * WORDS + 2].store(inode, Relaxed);
            self.register[place * WORDS].store(TOLD, Release);
        }
        Ok(())
    }

    /// Removes the data files of the run before their time, so that others may make them.
    pub(crate) fn forget(&self, comm: &dyn Comm, own: bool) -> Result<(), BenchError> {
        if comm.rank().0 == 0 {
            match own {
                true => (0..self.ranks).for_each(|rank| self.unmake(Name::Own(rank))),
                false => self.unmake(Name::Shared),
            }
        }
        Ok(comm.barrier()?)
    }

    /// Enters a file on every rank that the ranks have made together, or each its own.
    pub(crate) fn learn(&self, comm: &dyn Comm, name: Name) -> Result<(), BenchError> {
        let own = fs::symlink_metadata(self.path(name)).ok().map(|facts| facts.ino());
        let said = serde_json::to_vec(&own).unwrap_or_default();
        let (first, shared) = (comm.rank().0 == 0, name == Name::Shared);
        for (rank, text) in comm.gather(&said)?.iter().enumerate() {
            let heard: Option<u64> = serde_json::from_slice(text).unwrap_or_default();
            let name = if shared { Name::Shared } else { Name::Own(rank as u32) };
            let Some(inode) = heard.filter(|_| !shared || rank == 0) else { continue };
            // Devices have numbers of their own on every host.
            match fs::symlink_metadata(self.path(name)) {
                Ok(facts) if first && facts.ino() == inode => {
                    self.enter(name, Identity::of(&facts))
                }
                _ if first || comm.mpi().is_none() => {}
                _ => {
                    self.entry(name)[2].store(inode, Relaxed);
                    self.entry(name)[0].store(TOLD, Release);
                }
            }
        }
        Ok(())
    }

    /// Sees that an existing file is long enough, as one that is too short ends the first reading.
    pub(crate) fn hold_enough(&self, name: Name, wanted: u64) -> Result<(), Told> {
        let path = self.path(name);
        let held = fs::metadata(&path).ok().filter(Metadata::is_file).map(|facts| facts.len());
        let Some(held) = held.filter(|held| *held < wanted) else { return Ok(()) };
        let (held, wanted) = (format_bytes(held), format_bytes(wanted));
        Err((
            format!("{} holds {held}, the pattern needs {wanted}", path.display()),
            "make the pattern smaller, or write the file with the same pattern first".to_owned(),
        ))
    }

    fn entries(&self) -> Vec<(usize, u64)> {
        let entries = self.register.chunks_exact(WORDS).enumerate();
        entries
            .filter(|(_, entry)| entry[0].load(Acquire) == MADE)
            .map(|(place, entry)| (place, entry[2].load(Relaxed)))
            .collect()
    }

    fn make_all(&self, uses: Uses) -> Result<(), Told> {
        let names: Vec<Name> = self.needed(uses).collect();
        names.iter().try_for_each(|&name| self.look(name))?;
        let made = names.iter().try_for_each(|&name| {
            self.make_one(name)?;
            if uses.held && name != Name::Metadata { self.make_held(name) } else { Ok(()) }
        });
        if made.is_err() {
            names.iter().for_each(|&name| self.unmake(name));
        }
        made
    }

    fn needed(&self, uses: Uses) -> impl Iterator<Item = Name> {
        let shared = uses.shared.then_some(Name::Shared);
        let metadata = uses.metadata.then_some(Name::Metadata);
        let own = if uses.own { self.ranks } else { 0 };
        shared.into_iter().chain(metadata).chain((0..own).map(Name::Own))
    }

    fn data_names(&self) -> impl Iterator<Item = Name> {
        std::iter::once(Name::Shared).chain((0..self.ranks).map(Name::Own))
    }

    /// What lies there is what the plan allows to lie there.
    fn look(&self, name: Name) -> Result<(), Told> {
        let path = self.path(name);
        let shown = path.display();
        let Ok(found) = fs::symlink_metadata(&path) else {
            return match self.manner.existing && name != Name::Metadata {
                true => Err((
                    format!("{shown} does not exist, and -E uses existing files only"),
                    "write it with -k first, or leave -E".to_owned(),
                )),
                false => Ok(()),
            };
        };
        let through = fs::metadata(&path);
        let usable = through.as_ref().is_ok_and(|facts| {
            let kind = facts.file_type();
            kind.is_file() || kind.is_block_device() || kind.is_char_device()
        });
        let empty = through.as_ref().is_ok_and(holds_nothing) && !found.is_symlink();
        let allowed = self.manner.existing || self.manner.overwrite || empty;
        match (name, allowed && usable) {
            (Name::Metadata, _) | (_, false) => Err(self.in_the_way(name, &found)),
            (_, true) => Ok(()),
        }
    }

    fn in_the_way(&self, name: Name, found: &Metadata) -> Told {
        let kind = found.file_type();
        let what = match () {
            () if kind.is_dir() => "a directory",
            () if kind.is_symlink() => "a symbolic link",
            () if kind.is_file() => "a file",
            () if kind.is_fifo() => "a pipe",
            () if kind.is_socket() => "a socket",
            () => "a device",
        };
        let path = self.path(name);
        let message = format!(
            "{} exists already ({what}), and a run removes and overwrites only what it made",
            path.display()
        );
        let flags = name != Name::Metadata && !kind.is_dir() && !kind.is_fifo();
        let hint = match flags && !self.manner.overwrite {
            true => {
                "-E reads it as it is, --overwrite writes over it; or name another file with -o"
            }
            false => "name another file with -o",
        };
        (message, hint.to_owned())
    }

    /// Makes one file or the directory, where nothing is, and enters it.
    fn make_one(&self, name: Name) -> Result<(), Told> {
        let path = self.path(name);
        if name != Name::Metadata && fs::symlink_metadata(&path).is_ok() {
            return self.look(name); // It exists and may be used.
        }
        let made = match name {
            Name::Metadata => fs::create_dir(&path).and_then(|()| fs::symlink_metadata(&path)),
            _ => {
                let mut options = OpenOptions::new();
                options.write(true).create_new(true).custom_flags(libc::O_NOFOLLOW);
                options.open(&path).and_then(|file| file.metadata())
            }
        };
        let facts = made.map_err(|error| {
            let message = format!("cannot make {}: {error}", path.display());
            (message, "choose a target that you may write to".to_owned())
        })?;
        self.enter(name, Identity::of(&facts));
        Ok(())
    }

    /// Makes one file in the parallel file system, where none of its name is, and enters it.
    fn make_held(&self, name: Name) -> Result<(), Told> {
        let Some(directory) = &self.file_system else { return Ok(()) };
        let made = pfs::make(directory, &self.path(name)).map_err(|error| {
            let hint =
                "give --file-system what `iolab fs up --dir` serves, and -o a name that is free there";
            (error.to_string(), hint.to_owned())
        })?;
        let [.., inode] = self.entry(name);
        inode.store(made, Release);
        Ok(())
    }

    fn enter(&self, name: Name, identity: Identity) {
        let [state, device, inode, _] = self.entry(name);
        device.store(identity.device.unwrap_or(0), Relaxed);
        inode.store(identity.inode, Relaxed);
        state.store(MADE, Release);
    }

    /// Removes what lies there if this process or one it was forked from made it.
    fn unmake(&self, name: Name) {
        let [state, device, inode, held] = self.entry(name);
        let path = self.path(name);
        let held = held.swap(0, AcqRel);
        if let Some(directory) = self.file_system.as_ref().filter(|_| held != 0) {
            pfs::unmake(directory, &path, held);
        }
        if state.load(Acquire) != MADE {
            return;
        }
        let (device, inode) = (Some(device.load(Relaxed)), inode.load(Relaxed));
        let identity = Identity { device, inode };
        if !fs::symlink_metadata(&path).is_ok_and(|found| identity.is(&found)) {
            return;
        }
        match name {
            Name::Metadata => {
                clear_names(&path, self.ranks);
                let _ = fs::remove_dir(&path);
            }
            _ => _ = fs::remove_file(&path),
        }
        // What could not be removed may be tried again.
        if fs::symlink_metadata(&path).is_err() {
            state.store(0, Release);
        }
    }

    fn entry(&self, name: Name) -> [&std::sync::atomic::AtomicU64; WORDS] {
        let place = match name {
            Name::Shared => 0,
            Name::Metadata => 1,
            Name::Own(rank) => rank as usize + 2,
        };
        [0, 1, 2, 3].map(|word| &self.register[place * WORDS + word])
    }
}

/// Removes the files when the run ends, however it ends.
pub(crate) struct Cleaning<'a>(pub(crate) Option<&'a TestFiles>);

impl Drop for Cleaning<'_> {
    fn drop(&mut self) {
        if let Some(files) = &self.0 {
            files.remove();
        }
    }
}

/// `/dev/null`, `/dev/zero`, `/dev/full`: nothing is lost by writing there.
fn holds_nothing(facts: &Metadata) -> bool {
    let number = (libc::major(facts.rdev()), libc::minor(facts.rdev()));
    facts.file_type().is_char_device() && matches!(number, (1, 3 | 5 | 7))
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_comm::PredictedComm;

    const ALL: Uses = Uses { shared: true, own: true, metadata: true, held: false };
    const ALONE: PredictedComm = PredictedComm { ranks: 2 };

    fn files(folder: &Path, manner: Manner) -> TestFiles {
        TestFiles::of(&folder.join("t"), 2, manner).expect("memory")
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder").flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_a_run_made_goes_and_what_was_put_in_its_place_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = files(folder.path(), Manner::default());
        files.make(&ALONE, ALL).expect("made");
        assert_eq!(names(folder.path()), ["t", "t.0", "t.1", "t.meta"]);
        // Another file under the old name; the old one lives on, so that its number is not reused.
        fs::rename(folder.path().join("t.0"), folder.path().join("moved")).expect("moved");
        fs::write(folder.path().join("t.0"), "mine").expect("written");
        fs::write(folder.path().join("t.meta/0.7"), "").expect("written");
        fs::create_dir(folder.path().join("t.meta/rank-1")).expect("made");
        fs::write(folder.path().join("t.meta/rank-1/1.2"), "").expect("written");
        fs::write(folder.path().join("t.meta/precious"), "mine").expect("written");
        files.remove();
        assert_eq!(names(folder.path()), ["moved", "t.0", "t.meta"]);
        assert_eq!(names(&folder.path().join("t.meta")), ["precious"]);
    }

    #[test]
    fn nothing_is_made_when_any_name_is_taken_by_whatever() {
        let takers: [fn(&Path); 4] = [
            |path| fs::write(path, "mine").expect("written"),
            |path| fs::create_dir(path).expect("made"),
            |path| std::os::unix::fs::symlink("nowhere", path).expect("linked"),
            |path| std::os::unix::fs::symlink(".", path).expect("linked"),
        ];
        for name in ["t", "t.0", "t.1", "t.meta"] {
            for take in takers {
                let folder = tempfile::tempdir().expect("a folder");
                take(&folder.path().join(name));
                let files = files(folder.path(), Manner::default());
                let error = files.make(&ALONE, ALL).expect_err("taken").to_string();
                assert!(error.contains(&format!("{name} exists already")), "{error}");
                files.remove();
                assert_eq!(names(folder.path()), [name]);
            }
        }
    }

    #[test]
    fn existing_files_are_used_when_that_is_said_and_stay() {
        for manner in [
            Manner { existing: true, ..Manner::default() },
            Manner { overwrite: true, ..Manner::default() },
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            fs::write(folder.path().join("t"), "mine").expect("written");
            let files = files(folder.path(), manner);
            let uses = Uses { shared: true, ..Uses::default() };
            files.make(&ALONE, uses).expect("allowed");
            assert_eq!(files.identity(Name::Shared), None);
            files.remove();
            assert_eq!(names(folder.path()), ["t"]);
        }
    }
}
