//! What connections begin and end with: hello, welcome, refused, bye. Not for machines to see.

use crate::codec::{Reader, Sink, Wrong};
use crate::window::Window;
use crate::wire::{ERROR, Header, Mangled, REPLY, VERSION, seal};
use crate::{Code, Incarnation, Party, SessionId};
use iolab_policy::placement::catalog as placement;
use iolab_policy::write_policy::catalog as write_policy;

const HELLO: u16 = 1;
const WELCOME: u16 = 4;
const REFUSED: u16 = 5;
const BYE: u16 = 10;
const SEGMENT: u16 = 11;

/// The longest name of a process.
pub(crate) const NAME_BYTES_MAX: usize = 255;
/// The most that follows the header of a greeting: the text of a refusal takes at most 1,000 of it.
pub(crate) const GREETING_BYTES_MAX: u32 = 1024;
/// Characters of a refusal, so that it fits whatever they are.
const TEXT_CHARS_MAX: usize = 250;

/// What is said about a connection itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Greeting {
    /// First of all, by whoever made the connection.
    Hello(Hello),
    /// The answer, by a server: messages may follow.
    Welcome(Welcome),
    /// The other answer, or the reason of an end: nothing follows.
    Refused {
        /// Why.
        code: Code,
        /// The offence, for people.
        text: String,
    },
    /// The connection ends, as planned.
    Bye,
    /// By a server that has welcomed who asks: both have this window from now on. The descriptor of its
    /// memory comes beside the bytes.
    Segment(Window),
}

/// Who has made a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Whose views and answers the server is to know.
    pub session: SessionId,
    /// What it is.
    pub role: Role,
    /// What people know it as: at most 255 bytes.
    pub name: String,
}

/// What somebody who asks is to the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A process with files.
    Client,
    /// The metadata manager, of an I/O server or a cache manager.
    Metadata,
    /// A cache manager, of an I/O server.
    Cache,
    /// Somebody who looks after the servers.
    Observer,
}

/// Who was connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The life it is in.
    pub incarnation: Incarnation,
    /// Whether it knows the session.
    pub known: bool,
    /// Which one it is.
    pub party: Party,
    /// I/O servers of the instance.
    pub servers: u32,
    /// Cache managers of the instance.
    pub caches: u32,
    /// Which of them has which blocks.
    pub placement: &'static placement::Row,
    /// When they bring to servers what was written.
    pub write_policy: &'static write_policy::Row,
}

impl Greeting {
    /// Whether frames of that kind are greetings.
    pub(crate) fn has_kind(kind: u16) -> bool {
        matches!(kind, HELLO | WELCOME | REFUSED | BYE | SEGMENT)
    }

    /// Appends its frame. The text of a refusal is cut to 250 characters.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let (kind, flags) = self.kind();
        seal(Header::bare(kind, flags), out, |out| self.put(out));
    }

    fn kind(&self) -> (u16, u16) {
        match self {
            Greeting::Hello(_) => (HELLO, 0),
            Greeting::Welcome(_) => (WELCOME, REPLY),
            Greeting::Refused { .. } => (REFUSED, REPLY | ERROR),
            Greeting::Bye => (BYE, 0),
            Greeting::Segment(_) => (SEGMENT, REPLY),
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Greeting::Hello(hello) => {
                assert!(hello.name.len() <= NAME_BYTES_MAX, "a process named {}", hello.name);
                out.u16(VERSION);
                out.u16(VERSION);
                out.u8(match hello.role {
                    Role::Client => 1,
                    Role::Metadata => 2,
                    Role::Cache => 3,
                    Role::Observer => 4,
                });
                out.u128(hello.session.0);
                out.bytes(hello.name.as_bytes());
            }
            Greeting::Welcome(welcome) => {
                let (role, index) = match welcome.party {
                    Party::Metadata => (1, 0),
                    Party::Server(index) => (2, index),
                    Party::Cache(index) => (3, index),
                };
                out.u16(VERSION);
                out.u64(welcome.incarnation.0);
                out.bool(welcome.known);
                out.u8(role);
                out.u32(index);
                out.u32(welcome.servers);
                // There are 4096 at most. In version 1 without policies it was one number of 32 bits: whoever
                // knows no other ones than the first understands the same, and takes others for too many.
                out.u16(welcome.caches as u16);
                out.u8(number_of(placement::ROWS, welcome.placement));
                out.u8(number_of(write_policy::ROWS, welcome.write_policy));
            }
            Greeting::Refused { code, text } => {
                let text: String = text.chars().take(TEXT_CHARS_MAX).collect();
                out.code(*code);
                out.bytes(text.as_bytes());
            }
            Greeting::Bye => {}
            Greeting::Segment(window) => {
                out.u32(window.slots());
                out.u32(window.slot_bytes());
            }
        }
    }

    /// Reads the greeting of a frame: `fields` is all that follows the header.
    pub fn decode(header: &Header, fields: &[u8]) -> Result<Greeting, Mangled> {
        header.check(fields)?;
        let mut read = Reader::new(fields);
        if let Some((min, max)) = versions(header.kind(), &mut read).map_err(Mangled::Fields)?
            && !(min..=max).contains(&VERSION)
        {
            return Err(Mangled::Version { min, max });
        }
        let greeting = Greeting::take(header.kind(), &mut read).map_err(Mangled::Fields)?;
        let greeting = greeting.ok_or(Mangled::Unknown { kind: header.kind() })?;
        read.end().map_err(Mangled::Fields)?;
        match (header.kind(), header.flags()) == greeting.kind() {
            true => Ok(greeting),
            false => Err(Mangled::Flags),
        }
    }

    /// Reads what follows the versions.
    fn take(kind: u16, read: &mut Reader) -> Result<Option<Greeting>, Wrong> {
        let greeting = match kind {
            HELLO => Greeting::Hello(take_hello(read)?),
            WELCOME => Greeting::Welcome(take_welcome(read)?),
            REFUSED => Greeting::Refused { code: read.code()?, text: read.text()?.to_owned() },
            BYE => Greeting::Bye,
            SEGMENT => Greeting::Segment(take_window(read)?),
            _ => return Ok(None),
        };
        Ok(Some(greeting))
    }
}

/// The versions that a greeting names; in all versions they come first.
fn versions(kind: u16, read: &mut Reader) -> Result<Option<(u16, u16)>, Wrong> {
    match kind {
        HELLO => Ok(Some((read.u16()?, read.u16()?))),
        WELCOME => {
            let version = read.u16()?;
            Ok(Some((version, version)))
        }
        _ => Ok(None),
    }
}

fn take_hello(read: &mut Reader) -> Result<Hello, Wrong> {
    let role = match read.u8()? {
        1 => Role::Client,
        2 => Role::Metadata,
        3 => Role::Cache,
        4 => Role::Observer,
        _ => return Err("there is no such role"),
    };
    let session = SessionId(read.u128()?);
    let name = read.text()?;
    match name.len() <= NAME_BYTES_MAX {
        true => Ok(Hello { session, role, name: name.to_owned() }),
        false => Err("the name of a process is too long"),
    }
}

fn take_welcome(read: &mut Reader) -> Result<Welcome, Wrong> {
    let (incarnation, known) = (Incarnation(read.u64()?), read.bool()?);
    let party = match (read.u8()?, read.u32()?) {
        (1, 0) => Party::Metadata,
        (2, index) => Party::Server(index),
        (3, index) => Party::Cache(index),
        _ => return Err("there is no such party"),
    };
    let (servers, caches) = (read.u32()?, u32::from(read.u16()?));
    let placement = placement::ROWS.get(usize::from(read.u8()?));
    let placement = placement.ok_or("there is no such placement")?;
    let policy = write_policy::ROWS.get(usize::from(read.u8()?));
    let write_policy = policy.ok_or("there is no such write policy")?;
    Ok(Welcome { incarnation, known, party, servers, caches, placement, write_policy })
}

/// The place of a row in its catalogue.
fn number_of<R: PartialEq>(rows: &[R], row: &R) -> u8 {
    rows.iter().position(|one| one == row).unwrap_or(0) as u8
}

fn take_window(read: &mut Reader) -> Result<Window, Wrong> {
    Window::new(read.u32()?, read.u32()?).ok_or("there is no such window")
}
