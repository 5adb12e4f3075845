//! Connections to parties, as those make them who ask.

use crate::channel::Channel;
use crate::instance::Place;
use iolab_pfs::Party;
use iolab_pfs::session::Hello;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

/// Connects to a party, and says hello. A party whose backlog is full is one that cannot be reached.
pub(crate) fn connect(place: &Place, to: Party, hello: Hello) -> Result<Channel, Errno> {
    reach(place, to).map(|socket| Channel::asking(socket, hello))
}

/// A socket that is connected to a party.
pub(crate) fn reach(place: &Place, to: Party) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    loop {
        match rustix::net::connect(&socket, &place.address(to)?) {
            Err(Errno::INTR) => {}
            connected => return connected.map(|()| socket),
        }
    }
}
