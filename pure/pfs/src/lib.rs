//! The parallel file system as machines that decide: the client of a process, the cache manager with its
//! blocks, the I/O server with its subfiles, the metadata manager with its names. Three drivers run them unchanged: real sockets and files
//! (`real/pfs-node`), the simulated cluster (`pure/sim`), and the explorer that attacks them (`pure/explore`).
//!
//! Payload never passes through a machine: messages and actions name buffers, and a [`Portion`] says which
//! bytes of a view they hold. After Clusterfile (Isaila, Malpohl, Olaru, Szeder, Tichy, ICS 2004): servers
//! keep views, so a request for any pattern is an interval of a view.

mod change;
mod codec;
mod division;
mod greeting;
mod ids;
pub mod inventory;
mod layout;
mod message;
#[cfg(feature = "plant")]
pub mod plant;
#[cfg(not(feature = "plant"))]
mod plant;
mod portion;

pub mod cache_manager;
pub mod client;
pub mod configuration;
mod connections;
pub mod io_server;
pub mod journal;
mod links;
pub mod metadata;
pub mod recording;
mod serving;
pub mod session;
mod sessions;
pub mod window;
pub mod wire;

pub use connections::{PartyAction, PartyEvent, PeerAction, PeerEvent};
pub use division::{Division, Managers};
pub use ids::{
    Buffer, HoldNumber, Incarnation, Inode, OpenNumber, Party, Peer, Request, SessionId, ViewNumber,
};
pub use layout::{Layout, SUBFILES_MAX, UNIT_BYTES_MAX, UNIT_BYTES_MIN};
pub use message::{Access, Attributes, Code, Connected, Entry, Kind, Message, OpenWish, Opened};
pub use portion::{Piece, Portion};
