//! The parallel file system of `iolab fs`: each rank is a client of the instance, without MPI between.
//!
//! A contiguous operation is an interval of the whole file; one that is not sets the nest of its pieces as
//! its view; with `view`, the pattern of the rank is the view, and operations are intervals of it. In the
//! collective form all ranks that share the file come together in each operation, and at its close.
//!
//! The file has a name of its own in the file system ([`name_in`]), and a plain one beside it that other
//! calls find empty: what is prepared there is taken in, and what is to be looked at given out, by whole
//! reads and writes of a session of its own.

use crate::posix::{closed, replaced};
use crate::{Arena, Backend, Direction, Held, IoError, Moved, Opening, Ran, Verb};
use iolab_comm::Comm;
use iolab_pattern::{Access, Nest, Node, Piece, Strided};
use iolab_pfs::client::{Call, Done, Failure, FileNumber, Outcome};
use iolab_pfs::wire::{self, HEADER_BYTES, Header};
use iolab_pfs::{Message, OpenWish, Opened, Request};
use iolab_pfs_node::files::{self, From, Into, OpenFile, name_of};
use iolab_pfs_node::instance::Description;
use iolab_pfs_node::{Client, Memory, NoMemory};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that are taken in and given out at a time.
const CHUNK: usize = 1 << 20;

/// The name in the file system of a file with that plain name: its last part, at the top.
pub fn name_in(path: &Path) -> Vec<u8> {
    name_of(path.file_name().map_or(path, Path::new), Path::new("/"))
}

pub(crate) struct Pfs {
    arena: Arena,
    collective: bool,
    /// With the directory of its instance.
    client: Option<(PathBuf, Client)>,
    file: Option<FileNumber>,
    path: PathBuf,
    base: u64,
    whole: Option<(Strided, Arc<Nest>)>,
    /// Where bytes are put together that do not lie in a row.
    packed: Vec<u8>,
    ran: Ran,
}

/// Which bytes of which view an operation is about, and where they lie in the memory of the rank: one
/// behind the other from there on, or in pieces.
struct Aim {
    view: Arc<Nest>,
    from: u64,
    memory: Result<usize, Vec<Piece>>,
}

impl Pfs {
    pub(crate) fn new(arena: Arena, collective: bool) -> Pfs {
        Pfs {
            arena,
            collective,
            client: None,
            file: None,
            path: PathBuf::new(),
            base: 0,
            whole: None,
            packed: Vec::new(),
            ran: None,
        }
    }

    fn client(&mut self, held: &Held) -> Result<&Client, IoError> {
        if self.client.as_ref().is_none_or(|(directory, _)| *directory != held.directory) {
            self.client = Some((held.directory.clone(), session(held)?));
        }
        self.client.as_ref().map(|(_, client)| client).ok_or_else(closed)
    }

    fn call(&self, verb: Verb, call: Call, memory: &mut dyn Memory) -> Result<Done, IoError> {
        let (_, client) = self.client.as_ref().ok_or_else(closed)?;
        answered(verb, &self.path, client.call(call, memory))
    }

    /// Opens the file; the ranks that share it become a group.
    fn begin(&mut self, opening: &Opening, comm: &dyn Comm) -> Result<FileNumber, IoError> {
        let held = held(opening)?;
        self.client(held)?;
        let (rank, size) = if opening.shared { (comm.rank().0, comm.size()) } else { (0, 1) };
        let wish = OpenWish { writes: opening.write, ..OpenWish::TO_READ };
        let mine = (rank == 0).then(|| {
            let call = Call::Open { path: name_in(&opening.path), wish };
            match self.call(Verb::Open, call, &mut NoMemory)? {
                Done::Opened(opened) if held.inode.is_none_or(|it| it == opened.inode.0) => {
                    Ok(opened)
                }
                Done::Opened(_) => Err(served(Verb::Open, &self.path, replaced())),
                _ => Err(strange(&self.path)),
            }
        });
        let opened = match opening.shared {
            true => self.shared(mine, comm)?,
            false => mine.unwrap_or_else(|| Err(strange(&self.path)))?,
        };
        let call = Call::Adopt { opened, rank, size };
        match self.call(Verb::Open, call, &mut NoMemory)? {
            Done::Adopted(file) => Ok(file),
            _ => Err(strange(&self.path)),
        }
    }

    /// What the first rank has opened, told to all as a message of the file system.
    fn shared(
        &self,
        mine: Option<Result<Opened, IoError>>,
        comm: &dyn Comm,
    ) -> Result<Opened, IoError> {
        let mut said = Vec::new();
        if let Some(Ok(opened)) = mine {
            wire::encode(&Message::Opened(opened), Request(0), 0, None, &mut said);
        }
        let heard = comm.gather(&said).map_err(|error| served(Verb::Open, &self.path, error))?;
        if let Some(Err(error)) = mine {
            return Err(error);
        }
        let front = heard.first().and_then(|said| said.split_first_chunk::<HEADER_BYTES>());
        let message = front.and_then(|(header, fields)| {
            let header = Header::decode(header).ok()?;
            wire::decode(&header, fields).ok()
        });
        match message {
            Some(Message::Opened(opened)) => Ok(opened),
            _ => Err(served(Verb::Open, &self.path, "the first rank could not open it")),
        }
    }

    fn aim(&self, access: &Access, at: usize) -> Result<Aim, IoError> {
        let wrong = |refusal: iolab_vocab::Refusal| IoError::Cannot(refusal.message);
        let in_row = match access.memory() {
            [] => Some(at),
            [one] if one.levels().is_empty() => Some(at + one.offset as usize),
            _ => None,
        };
        let memory = |at: Option<usize>| at.ok_or_else(|| access.pieces().collect());
        let start = access.file().first().map_or(0, |first| first.offset);
        if let Some((whole, view)) = &self.whole {
            let from = if access.file().is_empty() { 0 } else { whole.position_of(start) };
            return Ok(Aim { view: view.clone(), from, memory: memory(in_row) });
        }
        match access.file() {
            [] => return Ok(Aim { view: Arc::new(Nest::WHOLE_FILE), from: 0, memory: Ok(at) }),
            [one] if one.levels().is_empty() => {
                let (view, from) = (Arc::new(Nest::WHOLE_FILE), self.base + start);
                return Ok(Aim { view, from, memory: memory(in_row) });
            }
            [one] => {
                let nest = Nest::of_strided(&one.at(self.base + one.offset)).map_err(wrong)?;
                if nest.proper() {
                    return Ok(Aim { view: Arc::new(nest), from: 0, memory: memory(in_row) });
                }
            }
            _ => {}
        }
        // Sets may interleave; a view goes forward, and the memory with it.
        let mut pieces: Vec<Piece> = access.pieces().collect();
        pieces.sort_by_key(|piece| piece.file);
        let part = |piece: &Piece| Ok((piece.file, Node::bytes(piece.length)?));
        let parts = pieces.iter().map(part).collect::<Result<Vec<_>, _>>().map_err(wrong)?;
        let view = Arc::new(Nest::of_parts(self.base, 0, parts).map_err(wrong)?);
        Ok(Aim { view, from: 0, memory: Err(pieces) })
    }

    /// Carries out an access with a row of memory; so many bytes were there.
    fn transfer(
        &self,
        way: Direction,
        aim: &Aim,
        bytes: u64,
        memory: &mut dyn Memory,
    ) -> Result<u64, IoError> {
        let file = self.file.ok_or_else(closed)?;
        let (from, to) = (aim.from, aim.from + bytes);
        let (view, collective) = (aim.view.clone(), self.collective);
        let call = Call::Access { file, direction: way, view, from, to, collective };
        match self.call(crate::posix::verb(way), call, memory)? {
            Done::Bytes(moved) => Ok(moved),
            _ => Err(strange(&self.path)),
        }
    }

    /// Takes in, or gives out, all of a file by a session of its own; of a shared file the first rank does.
    fn copy(
        &self,
        opening: &Opening,
        comm: &dyn Comm,
        copy: impl FnOnce(&OpenFile, &File) -> Result<(), IoError>,
    ) -> Result<(), IoError> {
        let copied = match opening.shared && comm.rank().0 > 0 {
            true => Ok(()),
            false => self.copy_alone(opening, copy),
        };
        if opening.shared {
            // A lost partner shows at the next agreement.
            let _ = comm.barrier();
        }
        copied
    }

    fn copy_alone(
        &self,
        opening: &Opening,
        copy: impl FnOnce(&OpenFile, &File) -> Result<(), IoError>,
    ) -> Result<(), IoError> {
        let path = &opening.path;
        let client = session(held(opening)?)?;
        let wish = OpenWish { writes: true, ..OpenWish::TO_READ };
        let name = name_in(path);
        let file = answered(Verb::Open, path, OpenFile::open(&client, &name, wish))?;
        let plain = plain(opening)?;
        copy(&file, &plain)?;
        answered(Verb::Close, path, file.close())
    }
}

fn session(held: &Held) -> Result<Client, IoError> {
    Client::of(&held.directory).map_err(|refusal| IoError::Cannot(refusal.message))
}

fn held(opening: &Opening) -> Result<&Held, IoError> {
    let none = || IoError::Cannot("no file system is named".to_owned());
    opening.held.as_ref().ok_or_else(none)
}

/// The plain file beside, which must be the one that is known.
fn plain(opening: &Opening) -> Result<File, IoError> {
    let failed = |error: io::Error| IoError::system(Verb::Open, &opening.path, (0, 0), &error);
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).custom_flags(libc::O_NOFOLLOW);
    let file = options.open(&opening.path).map_err(failed)?;
    let facts = file.metadata().map_err(failed)?;
    match opening.identity.is_some_and(|identity| !identity.is(&facts)) {
        true => Err(failed(replaced())),
        false => Ok(file),
    }
}

fn answered<T>(verb: Verb, path: &Path, result: Result<T, Failure>) -> Result<T, IoError> {
    result.map_err(|failure| {
        let Failure { code, text } = failure;
        let code = code.to_string();
        served(verb, path, if text.contains(&code) { text } else { format!("{text}: {code}") })
    })
}

fn served(verb: Verb, path: &Path, error: impl ToString) -> IoError {
    IoError::Served { verb, path: path.to_owned(), error: error.to_string() }
}

fn strange(path: &Path) -> IoError {
    served(Verb::Open, path, "the answer is one to another call")
}

impl Backend for Pfs {
    fn arena(&mut self) -> &mut Arena {
        &mut self.arena
    }

    fn open(&mut self, opening: &Opening, comm: &dyn Comm) -> Result<(), IoError> {
        self.path.clone_from(&opening.path);
        (self.base, self.whole) = (opening.base, None);
        if let Some(whole) = opening.view {
            let nest = Nest::of_strided(&whole.at(self.base + whole.offset));
            let nest = nest.map_err(|refusal| IoError::Cannot(refusal.message))?;
            self.whole = Some((whole, Arc::new(nest)));
        }
        let begun = self.begin(opening, comm);
        let cuts = opening.write && opening.truncate;
        let alone = !opening.shared || comm.rank().0 == 0;
        let opened = begun.and_then(|file| match cuts && alone {
            true => {
                let call = Call::Resize { file, bytes: 0 };
                self.call(Verb::Open, call, &mut NoMemory).map(|_| file)
            }
            false => Ok(file),
        });
        if opening.shared {
            // Nobody writes before it is cut.
            let _ = comm.barrier();
        }
        self.file = Some(opened?);
        Ok(())
    }

    fn run(&mut self, way: Direction, access: &Access, at: usize) -> Result<Moved, IoError> {
        let bytes = access.bytes();
        if bytes == 0 && !self.collective {
            return Ok(Moved::default());
        }
        let aim = self.aim(access, at)?;
        let mut arena = std::mem::take(&mut self.packed);
        let moved = match &aim.memory {
            Ok(start) => {
                let row = *start..*start + bytes as usize;
                match way {
                    Direction::Write => {
                        self.transfer(way, &aim, bytes, &mut From(&self.arena[row]))
                    }
                    Direction::Read => {
                        let mut own = std::mem::take(&mut self.arena);
                        let moved = self.transfer(way, &aim, bytes, &mut Into(&mut own[row]));
                        self.arena = own;
                        moved
                    }
                }
            }
            Err(pieces) => {
                arena.resize(bytes as usize, 0);
                self.packed_transfer(way, &aim, (pieces, at), &mut arena)
            }
        };
        self.packed = arena;
        match moved? {
            moved if moved < bytes => {
                let offset = self.base + access.file().first().map_or(0, |first| first.offset);
                Err(IoError::End { path: self.path.clone(), offset, wanted: bytes - moved })
            }
            moved => Ok(Moved { bytes: moved, short: 0 }),
        }
    }

    fn ran(&mut self) -> Option<&mut Ran> {
        Some(&mut self.ran)
    }

    fn take_in(&mut self, opening: &Opening, comm: &dyn Comm) -> Result<(), IoError> {
        self.copy(opening, comm, |file, plain| {
            let path = &opening.path;
            let failed = |error: io::Error| IoError::system(Verb::Read, path, (0, 0), &error);
            let mut chunk = vec![0; CHUNK];
            let mut at = 0;
            loop {
                let read = plain.read_at(&mut chunk, at).map_err(failed)?;
                if read == 0 {
                    return answered(Verb::Write, path, file.resize(at));
                }
                answered(Verb::Write, path, file.write_at(at, &chunk[..read]))?;
                at += read as u64;
            }
        })
    }

    fn give_out(&mut self, opening: &Opening, comm: &dyn Comm) -> Result<(), IoError> {
        self.copy(opening, comm, |file, plain| {
            let path = &opening.path;
            let failed = |error: io::Error| IoError::system(Verb::Write, path, (0, 0), &error);
            plain.set_len(0).map_err(failed)?;
            let mut chunk = vec![0; CHUNK];
            let mut at = 0;
            loop {
                let read = answered(Verb::Read, path, file.read_at(at, &mut chunk))?;
                if read == 0 {
                    return Ok(());
                }
                plain.write_all_at(&chunk[..read], at).map_err(failed)?;
                at += read as u64;
            }
        })
    }

    fn sync(&mut self) -> Result<(), IoError> {
        let file = self.file.ok_or_else(closed)?;
        self.call(Verb::Sync, Call::Sync { file }, &mut NoMemory).map(drop)
    }

    fn close(&mut self) -> Result<(), IoError> {
        let file = self.file.take().ok_or_else(closed)?;
        self.call(Verb::Close, Call::Close { file }, &mut NoMemory).map(drop)
    }
}

impl Pfs {
    /// The same with a row of bytes between file and memory.
    fn packed_transfer(
        &mut self,
        way: Direction,
        aim: &Aim,
        (pieces, at): (&[Piece], usize),
        row: &mut [u8],
    ) -> Result<u64, IoError> {
        let bytes = row.len() as u64;
        let place = |piece: &Piece| {
            let start = at + piece.memory as usize;
            start..start + piece.length as usize
        };
        if way == Direction::Write {
            let mut rest = &mut row[..];
            for piece in pieces {
                let (to, behind) = rest.split_at_mut(piece.length as usize);
                to.copy_from_slice(&self.arena[place(piece)]);
                rest = behind;
            }
            return self.transfer(way, aim, bytes, &mut From(row));
        }
        let moved = self.transfer(way, aim, bytes, &mut Into(row))?;
        let mut rest = &row[..];
        for piece in pieces {
            let (from, behind) = rest.split_at(piece.length as usize);
            self.arena[place(piece)].copy_from_slice(from);
            rest = behind;
        }
        Ok(moved)
    }
}

/// What the instance in a directory is, for results.
pub fn description(directory: &Path) -> Option<String> {
    let Description { servers, caches, layout, schedule, .. } =
        Description::read(directory).ok()?;
    Some(format!("{servers} servers, {caches} caches, {layout}, {}", schedule.name))
}

/// Makes the file of a plain name, where none of its name is; its number.
pub fn make(held: &Path, path: &Path) -> Result<u64, IoError> {
    let held = Held { directory: held.to_owned(), inode: None };
    let (client, name) = (session(&held)?, name_in(path));
    let (creates, exclusive, mode) = (true, true, 0o600);
    let wish = OpenWish { writes: true, creates, exclusive, mode, ..OpenWish::TO_READ };
    let file = answered(Verb::Open, path, OpenFile::open(&client, &name, wish))?;
    answered(Verb::Close, path, file.close())?;
    let found = answered(Verb::Open, path, files::look(&client, &name))?;
    found.map(|(attributes, _)| attributes.inode.0).ok_or_else(|| strange(path))
}

/// Removes the file of a plain name if it is the one of that number.
pub fn unmake(held: &Path, path: &Path, inode: u64) {
    let Ok(client) = Client::of(held) else { return };
    let name = name_in(path);
    if let Ok(Some((found, _))) = files::look(&client, &name)
        && found.inode.0 == inode
    {
        let call = Call::Remove { path: name, kind: found.kind };
        // Nobody hears of it any more: the run is over.
        let _: Outcome = client.call(call, &mut NoMemory);
    }
}
