//! Changes that happen on both sides: to the plain names, by the program's own call, and in the file system.
//!
//! The call comes first, since it knows what is allowed; all the while nobody else takes or gives the names.

use crate::open::come_home;
use crate::ours::{self, shown, turn};
use crate::place::Place;
use crate::run::{Run, fail, run, work};
use iolab_pfs::client::{Call, Done, Failure};
use iolab_pfs::{Code, Kind, OpenWish};
use iolab_pfs_node::files::{self, OpenFile};
use iolab_pfs_node::{Client, NoMemory, plain, stand_ins};
use rustix::fs::{FileType, Stat};
use std::ffi::c_int;

/// A call of libc's, which fails with `errno`.
fn done(go: impl FnOnce() -> c_int) -> Result<c_int, c_int> {
    match go() {
        // SAFETY: the thread's own variable.
        -1 => Err(unsafe { *libc::__errno_location() }),
        value => Ok(value),
    }
}

/// What a call comes to: its own answer, or none if it is to be made as it is.
type Worked = Option<Result<Result<c_int, c_int>, i32>>;

fn answered(worked: Worked, go: impl FnOnce() -> c_int) -> c_int {
    match worked {
        None => go(),
        Some(Ok(Ok(value))) => value,
        Some(Ok(Err(number)) | Err(number)) => fail(number),
    }
}

/// Removes a name by `go`: a file's, or that of an empty directory.
pub(crate) fn removed(place: Place, go: impl Fn() -> c_int) -> c_int {
    let candidate = run().and_then(|run| Some((run, place.itself().candidate(run)?)));
    let Some((run, (status, kind))) = candidate else { return go() };
    let worked = work(|| {
        let Some(name) = place.itself().chosen(run) else { return Ok(done(&go)) };
        let Some(client) = run.client()? else { return Ok(done(&go)) };
        let _turn = turn(run, &[&name])?;
        let removed = done(&go);
        if removed.is_ok() {
            run.stand_ins.strike(status.st_dev, status.st_ino);
            match kind {
                FileType::RegularFile => gone(plain::forget(&client, &name))?,
                // The file system may not have it, and what it has in it has gone before.
                _ => drop(remove_directory(&client, &name)),
            }
        }
        Ok(removed)
    });
    answered(worked, go)
}

/// What is not there any more has been removed.
fn gone(removed: Result<(), Failure>) -> Result<(), Failure> {
    match removed {
        Err(Failure { code: Code::NO_ENTRY, .. }) => Ok(()),
        removed => removed,
    }
}

fn remove_directory(client: &Client, name: &[u8]) -> Result<Done, Failure> {
    client.call(Call::Remove { path: name.to_vec(), kind: Kind::Directory }, &mut NoMemory)
}

/// Gives a file a length, or has `go` do it.
pub(crate) fn truncated(place: Place, bytes: i64, go: impl Fn() -> c_int) -> c_int {
    let candidate = run().filter(|_| bytes >= 0).and_then(|run| Some((run, place.candidate(run)?)));
    let Some((run, (_, FileType::RegularFile))) = candidate else { return go() };
    let worked = work(|| {
        if !place.is_open_to(false, true) {
            return Ok(done(&go));
        }
        let Some(name) = place.chosen(run) else { return Ok(done(&go)) };
        let Some(client) = run.client()? else { return Ok(done(&go)) };
        let _turn = turn(run, &[&name])?;
        if ours::look(&client, &name)?.is_none() {
            return Ok(done(&go));
        }
        let wish = OpenWish { reads: false, writes: true, ..OpenWish::TO_READ };
        let file = OpenFile::open(&client, &name, wish)?;
        let resized = file.resize(bytes as u64);
        file.close()?;
        resized?;
        stand_ins::touch(&name);
        Ok(Ok(0))
    });
    answered(worked, go)
}

/// Gives a file a second name by `go`: it comes home first, since one in the file system has one name.
pub(crate) fn linked(place: Place, go: impl Fn() -> c_int) -> c_int {
    let candidate = run().and_then(|run| Some((run, place.candidate(run)?)));
    let Some((run, (_, FileType::RegularFile))) = candidate else { return go() };
    let worked = work(|| {
        let Some(name) = place.chosen(run) else { return Ok(done(&go)) };
        let Some(client) = run.client()? else { return Ok(done(&go)) };
        let _turn = turn(run, &[&name])?;
        come_home(run, &client, &name)?;
        Ok(done(&go))
    });
    answered(worked, go)
}

/// A name on one side of a renaming.
struct Side {
    status: Option<(Stat, FileType)>,
    /// What it is called in the file system; none if it is not chosen.
    name: Option<Vec<u8>>,
}

impl Side {
    fn of(run: &Run, place: Place) -> Side {
        let status = place.candidate(run);
        let name = if status.is_some() { place.chosen(run) } else { place.name_to_be(run) };
        Side { status, name }
    }

    fn is(&self, kind: FileType) -> bool {
        self.status.is_some_and(|(_, it)| it == kind)
    }
}

/// Renames by `go`.
pub(crate) fn renamed(from: Place, to: Place, flags: u32, go: impl Fn() -> c_int) -> c_int {
    let (from, to) = (from.itself(), to.itself());
    let is_none = |run: &&Run| from.candidate(run).is_none() && to.candidate(run).is_none();
    let Some(run) = run().filter(|run| !is_none(run)) else { return go() };
    let worked = work(|| {
        let (from, to) = (Side::of(run, from), Side::of(run, to));
        let Some(client) = run.client()? else { return Ok(done(&go)) };
        let names: Vec<&[u8]> = [&from, &to].iter().filter_map(|it| it.name.as_deref()).collect();
        let _turn = if names.is_empty() { None } else { Some(turn(run, &names)?) };
        let exchanges = flags & libc::RENAME_EXCHANGE != 0;
        if exchanges || to.name.is_none() {
            // Where they go, or for a swap, they are plain files.
            for side in [&from, &to] {
                home_from(run, &client, side)?;
            }
            return Ok(done(&go));
        }
        let renamed = done(&go);
        if renamed.is_ok() {
            moved(run, &client, &from, &to)?;
        }
        Ok(renamed)
    });
    answered(worked, go)
}

/// Everything on one side becomes plain.
fn home_from(run: &Run, client: &Client, side: &Side) -> Result<(), Failure> {
    let Some(name) = &side.name else { return Ok(()) };
    if side.is(FileType::RegularFile) {
        return come_home(run, client, name);
    }
    if !side.is(FileType::Directory) || files::look(client, name)?.is_none() {
        return Ok(());
    }
    let below = files::walk(client, name)?;
    for (file, _) in below.iter().filter(|(_, it)| it.kind == Kind::File) {
        let _turn = turn(run, &[file])?;
        come_home(run, client, file)?;
    }
    remove_empty(client, name)
}

/// Follows in the file system what was renamed among plain names.
fn moved(run: &Run, client: &Client, from: &Side, to: &Side) -> Result<(), Failure> {
    let Some(new) = &to.name else { return Ok(()) };
    if from.name.as_ref() == Some(new) {
        return Ok(());
    }
    let is_ours = match &from.name {
        Some(old) if from.status.is_some() => files::look(client, old)?.is_some(),
        _ => false,
    };
    // What stood there is no more.
    if let Some((status, kind)) = to.status {
        run.stand_ins.strike(status.st_dev, status.st_ino);
        match kind {
            FileType::RegularFile => gone(plain::forget(client, new))?,
            _ => remove_empty(client, new)?,
        }
    }
    let Some(old) = from.name.as_ref().filter(|_| is_ours) else { return Ok(()) };
    files::make_parents(client, new)?;
    let call = Call::Rename { from: old.clone(), to: new.clone() };
    client.call(call, &mut NoMemory).map_err(|Failure { code, text }| {
        let text = format!("{} has its old name in the file system: {text}", shown(old));
        Failure { code, text }
    })?;
    run.stand_ins
        .lead_to(new, &run.chosen)
        .map_err(|error| Failure { code: Code::IO, text: format!("{}: {error}", shown(new)) })
}

/// Removes a directory of the file system with all directories in it, where there is no file.
fn remove_empty(client: &Client, name: &[u8]) -> Result<(), Failure> {
    if files::look(client, name)?.is_none() {
        return Ok(());
    }
    let below = files::walk(client, name)?;
    let directories = below.iter().rev().filter(|(_, it)| it.kind == Kind::Directory);
    for (directory, _) in directories {
        remove_directory(client, directory)?;
    }
    remove_directory(client, name).map(drop)
}
