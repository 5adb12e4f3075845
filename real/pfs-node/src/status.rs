//! Who is connected to the servers of an instance, how their payload goes, how many files there are, what cache managers have
//! done, and what servers have found damaged.

use crate::buffers::Buffers;
use crate::channel::Received;
use crate::instance::{self, Description, Place};
use crate::link;
use crate::outgoing::NoRows;
use iolab_pfs::cache_manager::Counts;
use iolab_pfs::session::{Hello, Role};
use iolab_pfs::{Connected, Message, Party, Request, SessionId};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::path::Path;

/// How long a server may take to say anything.
const PATIENCE: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

/// A process that uses an instance: its name, and for each server that it is connected to the bytes of
/// their window, 0 if they have none.
pub type Connections = BTreeMap<String, Vec<u64>>;

/// All processes that are connected to I/O servers of the instance in a directory.
pub fn connections(directory: &Path) -> std::io::Result<Connections> {
    let servers = Description::read(directory).map_err(std::io::Error::other)?.servers;
    let place = Place::of(&directory.canonicalize()?)?;
    let mut all = Connections::new();
    for server in 0..servers {
        let Message::Connected(connected) = asked(&place, Party::Server(server), &Message::Status)?
        else {
            return Err(Errno::PROTO.into());
        };
        for Connected { name, window_bytes } in connected {
            all.entry(name).or_default().push(window_bytes);
        }
    }
    Ok(all)
}

/// What the cache managers of the instance in a directory have done, in their order; nothing of those that
/// do not answer.
pub fn counts(directory: &Path) -> std::io::Result<Vec<Option<Counts>>> {
    let caches = Description::read(directory).map_err(std::io::Error::other)?.caches;
    let place = Place::of(&directory.canonicalize()?)?;
    let counts = |index| match asked(&place, Party::Cache(index), &Message::Count) {
        Ok(Message::Counts(counts)) => Some(counts),
        Ok(_) | Err(_) => None,
    };
    Ok((0..caches).map(counts).collect())
}

/// How many files and directories the instance in a directory has; nothing if its manager does not answer.
pub fn files(directory: &Path) -> std::io::Result<Option<u64>> {
    let place = Place::of(&directory.canonicalize()?)?;
    Ok(match asked(&place, Party::Metadata, &Message::Count) {
        Ok(Message::Files { count }) => Some(count),
        Ok(_) | Err(_) => None,
    })
}

/// How many pages each I/O server has found changed by its device since it began, and nobody has written anew; nothing of
/// those that do not answer.
pub fn damaged_pages(directory: &Path) -> std::io::Result<Vec<Option<u64>>> {
    let servers = Description::read(directory).map_err(std::io::Error::other)?.servers;
    let place = Place::of(&directory.canonicalize()?)?;
    let pages = |index| match asked(&place, Party::Server(index), &Message::Count) {
        Ok(Message::Damage { pages }) => Some(pages),
        Ok(_) | Err(_) => None,
    };
    Ok((0..servers).map(pages).collect())
}

/// Asks one party something.
fn asked(place: &Place, to: Party, question: &Message) -> Result<Message, Errno> {
    let session = SessionId(instance::random());
    let hello = Hello { session, role: Role::Observer, name: "status".to_owned() };
    let mut link = link::connect(place, to, hello)?;
    let buffers = &mut Buffers::default();
    loop {
        link.send(&NoRows, buffers).map_err(|_| Errno::CONNRESET)?;
        match rustix::event::poll(&mut [PollFd::new(&link, PollFlags::IN)], Some(&PATIENCE)) {
            Ok(0) => return Err(Errno::TIMEDOUT),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        while let Some(received) = link.receive(buffers).map_err(|_| Errno::CONNRESET)? {
            match received {
                Received::Message { message, .. } => return Ok(message),
                Received::Welcome(_) => link.push(Request(1), question, Vec::new(), 0),
                Received::Hello(_) => return Err(Errno::PROTO),
            }
        }
    }
}
