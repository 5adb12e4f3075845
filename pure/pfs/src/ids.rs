//! Numbers of what machines name to each other.

use std::fmt;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number!(
    /// A file or directory; never used again for another one.
    Inode(u64)
);
number!(
    /// An open of a file at the metadata manager. Also names the group of processes that share it.
    OpenNumber(u64)
);
number!(
    /// A view, as a client numbers those it has stored at servers.
    ViewNumber(u32)
);
number!(
    /// What one call holds, as a client numbers its calls; in each subfile it is another hold.
    HoldNumber(u64)
);
number!(
    /// A request, ascending for each session and party; its reply has the same number.
    Request(u64)
);
number!(
    /// A connection to a server, as its driver numbers them; never used again.
    Peer(u32)
);
number!(
    /// What a process is to the file system, over all its connections.
    SessionId(u128)
);
number!(
    /// One life of a server; changes with each start.
    Incarnation(u64)
);
number!(
    /// Payload in the driver's memory. Whoever is told of one owns it until an action takes it.
    Buffer(u64)
);

/// Whom a client, or the metadata manager, asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Party {
    /// The metadata manager.
    Metadata,
    /// An I/O server, by its place in the map.
    Server(u32),
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Party::Metadata => f.write_str("metadata manager"),
            Party::Server(index) => write!(f, "I/O server {index}"),
        }
    }
}
