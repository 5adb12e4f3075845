//! Files of ours, as calls find them.

use crate::run::Run;
use iolab_pfs::client::Failure;
use iolab_pfs::{Attributes, Code, Kind};
use iolab_pfs_node::stand_ins::Turn;
use iolab_pfs_node::{Client, files};

/// What is known of a file: whether somebody has it open, and how long it is.
pub(crate) struct Found {
    pub(crate) is_open: bool,
    pub(crate) bytes: u64,
}

/// What the file system has of a name, if it has a file. Whoever does not find it looks again when nobody
/// gives or takes the name any more.
pub(crate) fn found(run: &Run, client: &Client, name: &[u8]) -> Result<Option<Found>, Failure> {
    match look(client, name)? {
        Some(found) => Ok(Some(found)),
        None => {
            let _turn = turn(run, &[name])?;
            look(client, name)
        }
    }
}

/// The same, for who has the turn of the name.
pub(crate) fn look(client: &Client, name: &[u8]) -> Result<Option<Found>, Failure> {
    let of = |(attributes, bytes): (Attributes, u64)| {
        let is_open = attributes.is_open;
        (attributes.kind == Kind::File).then_some(Found { is_open, bytes })
    };
    Ok(files::look(client, name)?.and_then(of))
}

/// The turn of names.
pub(crate) fn turn(run: &Run, names: &[&[u8]]) -> Result<Turn, Failure> {
    run.stand_ins.turn(names).map_err(|error| Failure {
        code: Code(error.raw_os_error().unwrap_or(libc::EIO) as u16),
        text: format!("{}: no turn: {error}", shown(names[0])),
    })
}

/// A name for people.
pub(crate) fn shown(name: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(name)
}
