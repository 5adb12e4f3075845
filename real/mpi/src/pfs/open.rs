//! Opening, closing and deleting files.
//!
//! Rank 0 opens for all, and tells the others what it has got: a file of ours, an error, or that the
//! MPI library is to open a plain one. After that no transfer uses MPI.

use super::file::{self, File, mode};
use super::group::{Group, can_open};
use super::hints::{self, Given, Hints};
use super::names::{self, Name, shown};
use super::numbers::{Class, Numbers};
use super::session;
use super::trouble::{Trouble, say};
use super::{Answer, Carried};
use crate::call::Call;
use iolab_pfs::client;
use iolab_pfs::client::{Done, FileNumber};
use iolab_pfs::{Attributes, Code, Inode, Kind, Layout, OpenNumber, OpenWish, Opened};
use iolab_pfs_node::chosen::Chosen;
use iolab_pfs_node::instance::Description;
use iolab_pfs_node::{files, plain, stand_ins};
use std::ffi::{CStr, OsStr};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

/// What rank 0 has got.
#[derive(Clone, Debug, PartialEq)]
enum Found {
    /// The file is none of ours.
    Plain,
    Failed(Trouble),
    Open(Opened),
}

/// Bytes that rank 0 tells the others.
const TOLD: usize = 56;

/// `MPI_File_open(communicator, name, mode, info, file)`.
pub(super) fn open(call: &Call<'_>) -> Answer {
    let communicator = call.handle(0);
    let numbers = Numbers::here();
    if !can_open(communicator) {
        return None;
    }
    // SAFETY: the program's text.
    let name = unsafe { CStr::from_ptr(call.word(1) as *const _) };
    let name = names::ours(name.to_bytes(), call.family)?;
    let path = name.path.clone();
    let (handle, result) = match opened(call, communicator, name) {
        Ok(None) => return None,
        Ok(Some(file)) => (file::insert(file), Ok(())),
        Err(trouble) => (numbers.no_file, Err(about(&path, trouble))),
    };
    // SAFETY: the program's room for a file, which is a pointer everywhere.
    unsafe { (call.word(4) as *mut usize).write_unaligned(handle) };
    Some(Carried { file: None, result })
}

/// The same, naming a file that is not open.
fn about(path: &[u8], trouble: Trouble) -> Trouble {
    match trouble.text.is_empty() {
        true => trouble,
        false => Trouble { text: format!("{}: {}", shown(path), trouble.text), ..trouble },
    }
}

/// The file, if it is one of ours; all ranks of the communicator come here.
fn opened(call: &Call<'_>, communicator: usize, name: Name) -> Result<Option<File>, Trouble> {
    let said = call.int(2);
    let mode = call.family.mode(said);
    let group = Group::of(communicator)?;
    // SAFETY: the program's hints.
    let mut given = unsafe { hints::of_info(call.handle(3)) };
    let is_first = group.rank == 0;
    hints::add_of_site(&mut given, is_first);
    let found = if is_first { found(&name, mode, &given) } else { Found::Plain };
    let mut told = told(&found, hash_of(&name.path, mode));
    group.broadcast(&mut told)?;
    let (heard, hash) = heard(&told);
    let opened = match if is_first { found } else { heard } {
        Found::Plain => return Ok(None),
        Found::Failed(trouble) => return Err(trouble),
        Found::Open(opened) => opened,
    };
    let is_same = hash == hash_of(&name.path, mode);
    // By MPI: a rank that has no way to the file system could tell the others by no other, and they would wait for it.
    let agreed = group.found_by_all(ready(mode, is_same).map(|()| 0));
    if let Err(trouble) = agreed {
        if is_first {
            give_up(opened, &name);
        }
        return Err(trouble);
    }
    let number = adopted(opened, (group.rank, group.size))?;
    if is_first {
        hints::tell_unheeded(&given);
    }
    let hints = Hints::new(given, opened.layout);
    let file = File::new(name, number, group, (mode, said), hints);
    let begun = begin(&file);
    if begun.is_err() {
        // The group is through with it; its error is the one to tell.
        let _ = session::call(client::Call::Close { file: number });
    }
    begun.map(|()| Some(file))
}

/// Whether this rank can take its part in the file that rank 0 has opened.
fn ready(mode: i32, is_same: bool) -> Result<(), Trouble> {
    check_mode(mode)?;
    if !is_same {
        return Err(Trouble::new(Class::NotSame, "ranks differ in its name or in the mode"));
    }
    session::client().map(drop)
}

/// The part of a rank in a file that is open, in a group of so many.
fn adopted(opened: Opened, (rank, size): (u32, u32)) -> Result<FileNumber, Trouble> {
    match session::call(client::Call::Adopt { opened, rank, size })? {
        Done::Adopted(number) => Ok(number),
        other => Err(session::strange(&other)),
    }
}

/// Rank 0 has opened a file that nobody gets: one that came to be by that goes again.
fn give_up(opened: Opened, name: &Name) {
    // The group's error is the one to tell.
    let _ = adopted(opened, (0, 1)).map(|file| session::call(client::Call::Close { file }));
    if opened.created {
        let _ = remove(name);
    }
}

/// All ranks begin at the file's end if they wish so.
fn begin(file: &File) -> Result<(), Trouble> {
    if file.is(mode::APPEND) {
        // As rank 0 sees it: another rank may write by the time that a later one looks.
        let end = file.group.found_by_first(|| file.size())?;
        let mut state = file.state();
        state.pointer = end;
        state.shared.put(end);
    }
    Ok(())
}

fn hash_of(path: &[u8], mode: i32) -> u64 {
    let mut hasher = DefaultHasher::new();
    (path, mode).hash(&mut hasher);
    hasher.finish()
}

fn told(found: &Found, hash: u64) -> [u8; TOLD] {
    let words: [u64; TOLD / 8] = match found {
        Found::Plain => [0, 0, 0, 0, 0, 0, 0],
        Found::Failed(trouble) => [1, trouble.class as u64, 0, 0, 0, 0, 0],
        Found::Open(opened) => {
            let layout = opened.layout;
            let places = u64::from(layout.subfiles()) << 32 | u64::from(layout.start());
            let created = u64::from(opened.created);
            [2, hash, opened.open.0, opened.inode.0, layout.unit_bytes(), places, created]
        }
    };
    let mut bytes = [0; TOLD];
    for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
        to.copy_from_slice(&word.to_ne_bytes());
    }
    bytes
}

fn heard(bytes: &[u8; TOLD]) -> (Found, u64) {
    let word = |at: usize| {
        let word = bytes[8 * at..][..8].try_into();
        u64::from_ne_bytes(word.expect("a word has 8 bytes"))
    };
    let strange = || Trouble::new(Class::Other, "rank 0 told something strange");
    match word(0) {
        0 => (Found::Plain, 0),
        1 => (Found::Failed(Trouble::new(Class::told(word(1)), "")), 0),
        _ => match Layout::striped(word(4), (word(5) >> 32) as u32, word(5) as u32) {
            Err(_) => (Found::Failed(strange()), 0),
            Ok(layout) => {
                let (open, inode) = (OpenNumber(word(2)), Inode(word(3)));
                let opened = Opened { open, inode, layout, created: word(6) != 0 };
                (Found::Open(opened), word(1))
            }
        },
    }
}

/// What rank 0 finds.
fn found(name: &Name, mode: i32, given: &Given) -> Found {
    match looked_up(name, mode, given) {
        Ok(Some(opened)) => Found::Open(opened),
        Ok(None) => Found::Plain,
        Err(trouble) => Found::Failed(trouble),
    }
}

fn check_mode(mode: i32) -> Result<(), Trouble> {
    let ways = mode & (mode::READ_ONLY | mode::WRITE_ONLY | mode::READ_WRITE);
    let wrong = match ways {
        mode::READ_ONLY if mode & (mode::CREATE | mode::EXCLUSIVE) != 0 => {
            "a file that is only read cannot be created"
        }
        mode::READ_WRITE if mode & mode::SEQUENTIAL != 0 => {
            "a sequential file is either read or written"
        }
        mode::READ_ONLY | mode::WRITE_ONLY | mode::READ_WRITE => return Ok(()),
        _ => "one of RDONLY, WRONLY and RDWR is needed",
    };
    Err(Trouble::new(Class::Amode, wrong))
}

/// What the kernel would not take, though the name without its `..` and slashes is one of a file.
fn check_way(said: &Path) -> Result<(), Trouble> {
    let is_directory = said.as_os_str().as_bytes().ends_with(b"/");
    let climbs = said.components().any(|it| it == Component::ParentDir);
    if (is_directory || climbs) && !said.parent().is_some_and(plain::is_directory) {
        return Err(no_directory(said));
    }
    match is_directory {
        true => Err(Trouble::new(Class::BadFile, "a slash at the end is for directories")),
        false => Ok(()),
    }
}

/// A name has no directory to be in.
fn no_directory(name: &Path) -> Trouble {
    match plain::leads_through_file(name) {
        true => Trouble::new(Class::BadFile, "a part of its name is a file, no directory"),
        false => Trouble::new(Class::NoSuchFile, "there is no such directory"),
    }
}

/// Opens what is there, creates what is wished, brings in what the host has. None: a plain file.
fn looked_up(name: &Name, mode: i32, given: &Given) -> Result<Option<Opened>, Trouble> {
    check_mode(mode)?;
    let client = session::client()?;
    let stand_ins = session::stand_ins().filter(|_| !name.only_here);
    // Nobody takes the file out of the file system meanwhile.
    let turn = stand_ins.map(|it| it.turn(&[&name.path])).transpose();
    let _turn = turn.map_err(|error| of_plain(&error))?;
    let is_there = files::look(client, &name.path)?.is_some();
    let creates = mode & mode::CREATE != 0;
    let host = Path::new(OsStr::from_bytes(&name.path));
    if !name.only_here && (is_there || mode & mode::READ_ONLY == 0) {
        check_way(&name.host)?;
    }
    let comes_in = !is_there && !name.only_here && plain::is_there(host);
    if !is_there && !name.only_here {
        if mode & mode::READ_ONLY != 0 {
            return Ok(None);
        }
        // Without `MPI_MODE_CREATE`, the other mode says nothing.
        if comes_in && creates && mode & mode::EXCLUSIVE != 0 {
            return Err(Trouble::new(Class::FileExists, "the file exists"));
        }
        if comes_in && plain::has_several_names(host) {
            let name = shown(&name.path);
            say(&format!("{name} has a second name (link), so it stays a plain file"));
            return Ok(None);
        }
        if host.parent().is_some_and(|parent| !plain::is_directory(parent)) {
            return Err(no_directory(host));
        }
    }
    let permissions = permissions(given);
    let is_new = match stand_ins {
        Some(stand_ins) if is_there || comes_in || creates => {
            let stood = stand_ins.stand(&name.path, permissions, &Chosen::here());
            stood.map_err(|error| of_plain(&error))?
        }
        _ => false,
    };
    if comes_in {
        plain::import_file(client, host, &name.path)?;
    }
    let wish = OpenWish {
        reads: mode & mode::WRITE_ONLY == 0,
        writes: mode & mode::READ_ONLY == 0,
        creates,
        exclusive: mode & mode::EXCLUSIVE != 0,
        mode: permissions,
        layout: wished_layout(given),
    };
    let open = || session::call(client::Call::Open { path: name.path.clone(), wish });
    let mut answer = open();
    // Directories are asked for when they are missed: mostly they are there.
    if creates && answer.as_ref().is_err_and(|trouble| trouble.class == Class::NoSuchFile) {
        files::make_parents(client, &name.path)?;
        answer = open();
    }
    match answer {
        Ok(Done::Opened(opened)) => Ok(Some(opened)),
        Ok(other) => Err(session::strange(&other)),
        Err(trouble) => {
            if is_new {
                stand_ins::withdraw(&name.path);
            }
            Err(trouble)
        }
    }
}

/// What went wrong with the plain file of a name.
fn of_plain(error: &std::io::Error) -> Trouble {
    let code = Code(error.raw_os_error().unwrap_or(libc::EIO) as u16);
    client::Failure { code, text: error.to_string() }.into()
}

fn wished_layout(given: &Given) -> Option<Layout> {
    let shaping = ["iolab_layout", "striping_unit", "striping_factor"];
    shaping.iter().find(|&&name| given.contains_key(name))?;
    let description = Description::read(session::directory()?).ok()?;
    hints::layout(given, description.servers)
}

/// Permissions of a new file: those hinted, or all but what the process's mask takes.
fn permissions(given: &Given) -> u32 {
    let octal = |text: &str| u32::from_str_radix(text.trim(), 8).ok();
    if let Some(permissions) = given.get("file_perm").and_then(|text| octal(text)) {
        return permissions & 0o7777;
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| octal(line.strip_prefix("Umask:")?));
    0o666 & !mask.unwrap_or(0o022)
}

/// `MPI_File_close(file)`.
pub(super) fn close(call: &Call<'_>) -> Answer {
    let place = call.word(0) as *mut usize;
    if place.is_null() {
        return None;
    }
    // SAFETY: the program's handle.
    let file = file::find(unsafe { place.read_unaligned() })?;
    // What the program has not waited for ends first: nothing of it may be lost.
    file.settle();
    let result = closed(&file);
    super::request::tidy();
    file::remove(file.handle());
    // SAFETY: as above.
    unsafe { place.write_unaligned(Numbers::here().no_file) };
    Some(Carried { file: Some(file), result })
}

fn closed(file: &File) -> Result<(), Trouble> {
    let mut result = file.agree(Ok(()));
    if file.is(mode::DELETE_ON_CLOSE) {
        let removed = if file.group.rank == 0 { remove(&file.name) } else { Ok(()) };
        // Who has removed it before has done what was wished.
        let removed = match removed {
            Err(Trouble { class: Class::NoSuchFile, .. }) => Ok(()),
            removed => removed,
        };
        result = result.and(file.agree(removed));
    }
    let ended = session::call(client::Call::Close { file: file.number });
    let is_written = file.group.rank == 0 && !file.is(mode::READ_ONLY | mode::DELETE_ON_CLOSE);
    if is_written && !file.name.only_here && session::stand_ins().is_some() {
        stand_ins::touch(&file.name.path);
    }
    result.and(ended.map(drop))
}

/// `MPI_File_delete(name, info)`.
pub(super) fn delete(call: &Call<'_>) -> Answer {
    if call.word(0) == 0 {
        return None;
    }
    // SAFETY: the program's text.
    let name = unsafe { CStr::from_ptr(call.word(0) as *const _) };
    let name = names::ours(name.to_bytes(), call.family)?;
    let result = deleted(&name);
    if result == Ok(false) {
        return None;
    }
    let result = result.map(drop).map_err(|trouble| about(&name.path, trouble));
    Some(Carried { file: None, result })
}

/// Whether it was one of ours.
fn deleted(name: &Name) -> Result<bool, Trouble> {
    let is_file = |(attributes, _): (Attributes, u64)| attributes.kind == Kind::File;
    let is_there = files::look(session::client()?, &name.path)?.is_some_and(is_file);
    if !is_there && !name.only_here {
        return Ok(false);
    }
    remove(name).map(|()| true)
}

/// Removes a file, and the plain one that it came from; of a name that is a link, the link.
fn remove(name: &Name) -> Result<(), Trouble> {
    if name.only_here {
        return Ok(plain::forget(session::client()?, &name.path)?);
    }
    match plain::remove_link(&name.host)? {
        true => Ok(()),
        false => Ok(plain::remove(session::client()?, &name.path, session::stand_ins())?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_others_hear_what_rank_0_has_found() {
        let layout = Layout::striped(65536, 3, 2).unwrap();
        let opened = Opened { open: OpenNumber(7), inode: Inode(9), layout, created: true };
        assert_eq!(heard(&told(&Found::Open(opened), 42)), (Found::Open(opened), 42));
        assert_eq!(heard(&told(&Found::Plain, 42)).0, Found::Plain);
        let quota = Trouble::new(Class::Quota, "full");
        let quiet = Found::Failed(quota.clone().told());
        assert_eq!(heard(&told(&Found::Failed(quota), 0)).0, quiet);
    }

    #[test]
    fn a_mode_has_one_way_and_creates_nothing_to_read() {
        assert_eq!(check_mode(mode::READ_WRITE | mode::CREATE | mode::EXCLUSIVE), Ok(()));
        for wrong in [
            mode::CREATE,
            mode::READ_ONLY | mode::READ_WRITE,
            mode::READ_ONLY | mode::CREATE,
            mode::READ_WRITE | mode::SEQUENTIAL,
        ] {
            assert_eq!(check_mode(wrong).unwrap_err().class, Class::Amode, "{wrong}");
        }
    }
}
