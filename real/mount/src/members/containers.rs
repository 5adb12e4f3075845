//! The containers of a mount: the run's own, and those that earlier runs have left.

use crate::tree::Answer;
use iolab_pack::Record;
use iolab_packs::{Left, Writer};
use iolab_policy::insitu::defer_close::ContainerId;
use rustix::fs::AtFlags;
use rustix::io::Errno;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// One that records are added to.
pub(super) struct Container {
    pub(super) writer: Writer,
    /// Paths of directories that it knows.
    recorded: HashSet<Vec<u8>>,
}

/// One of an earlier run.
enum Older {
    /// It is as it was.
    Left(Box<Left>),
    /// It is gone on with.
    Changed(Box<Container>),
}

/// All of them, the older ones in the order of their time.
pub(super) struct Containers {
    pub(super) own: Container,
    older: Vec<Older>,
}

impl Container {
    fn new(writer: Writer) -> Container {
        let directories = writer.contents().directories.iter();
        let made = directories.filter(|(_, directory)| directory.made.is_some());
        Container { recorded: made.map(|(path, _)| path.clone()).collect(), writer }
    }

    /// Writes down that directories are there, the outermost first.
    pub(super) fn record_directories(&mut self, source: &Path, path: &[u8]) -> Answer<()> {
        let ends = path.iter().enumerate().filter(|(_, it)| **it == b'/').map(|(at, _)| at);
        let ends: Vec<usize> = ends.chain((!path.is_empty()).then_some(path.len())).collect();
        for end in ends {
            let path = &path[..end];
            if self.recorded.contains(path) {
                continue;
            }
            let place = source.join(OsStr::from_bytes(path));
            let stat = rustix::fs::statat(rustix::fs::CWD, &place, AtFlags::SYMLINK_NOFOLLOW)?;
            let (user, group) = (stat.st_uid, stat.st_gid);
            let mode = stat.st_mode & 0o7777;
            self.writer.append(&Record::Directory { path, mode, user, group })?;
            self.recorded.insert(path.to_vec());
        }
        Ok(())
    }
}

impl Containers {
    /// The run's own alone.
    pub(super) fn new(own: Writer) -> Containers {
        Containers { own: Container::new(own), older: Vec::new() }
    }

    /// Takes those of earlier runs, in the order of their time.
    pub(super) fn take(&mut self, older: Vec<Left>) {
        self.older.extend(older.into_iter().map(|left| Older::Left(Box::new(left))));
    }

    /// The one of that number, to be added to.
    ///
    /// # Errors
    /// It cannot be changed: why, for a program and for a person.
    pub(super) fn of(&mut self, id: ContainerId) -> Result<&mut Container, (Errno, String)> {
        if id == ContainerId::OWN {
            return Ok(&mut self.own);
        }
        let Some(older) = self.older.get_mut(id.0 as usize) else {
            return Err((Errno::IO, "there is no such container".to_owned()));
        };
        if let Older::Left(left) = older {
            *older = Older::Changed(Box::new(Container::new(left.go_on()?)));
        }
        match older {
            Older::Changed(container) => Ok(container),
            Older::Left(_) => Err((Errno::IO, "a container cannot be changed".to_owned())),
        }
    }

    /// Whether a sync has returned for what a container holds.
    pub(super) fn is_committed(&self, id: ContainerId) -> bool {
        match self.older.get(id.0 as usize) {
            None => self.own.writer.is_committed(),
            Some(Older::Left(left)) => left.scanned.is_committed,
            Some(Older::Changed(container)) => container.writer.is_committed(),
        }
    }

    /// Those that hold a time for a directory which the program sets now.
    pub(super) fn dated(&self, path: &[u8]) -> Vec<ContainerId> {
        let is_dated = |contents: &iolab_pack::Contents| {
            contents.directories.get(path).is_some_and(|it| it.changed_ns.is_some())
        };
        let older = self.older.iter().map(|older| match older {
            Older::Left(left) => left.contents(),
            Older::Changed(container) => container.writer.contents(),
        });
        let older = older.enumerate().filter(|(_, contents)| is_dated(contents));
        let older = older.map(|(number, _)| ContainerId(number as u32));
        let own = is_dated(self.own.writer.contents()).then_some(ContainerId::OWN);
        older.chain(own).collect()
    }

    /// All that was added so far becomes durable.
    pub(super) fn sync(&mut self) -> Answer<()> {
        for older in &mut self.older {
            if let Older::Changed(container) = older {
                container.writer.sync()?;
            }
        }
        self.own.writer.sync()
    }

    /// Those of earlier runs are left once more; what is in the way of that, for a person.
    pub(super) fn leave(&mut self) -> Vec<String> {
        let changed = std::mem::take(&mut self.older).into_iter().filter_map(|older| match older {
            Older::Changed(container) => Some(container.writer),
            Older::Left(left) => {
                left.release();
                None
            }
        });
        let left = changed.map(|writer| (writer.path(), writer.leave()));
        let failed = left.filter_map(|(path, outcome)| Some((path?, outcome.err()?)));
        failed.map(|(path, error)| format!("{} has no index: {error}", path.display())).collect()
    }
}
