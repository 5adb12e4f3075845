//! What no peer may do to a live node: end it, or make it grow.

use iolab_pattern::Nest;
use iolab_pfs::session::{Hello, Role, Session};
use iolab_pfs::window::Slot;
use iolab_pfs::{
    Access, Code, HoldNumber, Inode, Kind, Layout, Message, OpenNumber, OpenWish, Request,
    SessionId, ViewNumber, wire,
};
use iolab_pfs_node::Client;
use iolab_pfs_node::files::{self, OpenFile};
use iolab_pfs_node::instance::{Instance, Wish};
use iolab_pfs_node::node::Node;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Numbers without end; the same ones in each run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 29) ^ (self.0 << 7)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Small ones as a rule, impossible ones at times.
    fn size(&mut self) -> u64 {
        match self.below(4) {
            0 => self.next(),
            1 => 1 << self.below(63),
            _ => self.below(100_000),
        }
    }

    fn path(&mut self) -> Vec<u8> {
        let all: [&[u8]; 8] =
            [b"/", b"/a", b"/a/b", b"/kept", b"", b"//", b"/a/../..", b"\0\xff not a path"];
        all[self.below(8) as usize].to_vec()
    }

    /// A file, but none of those that others rely on: who is let in may change files.
    fn inode(&mut self) -> Inode {
        Inode(WELL.0 + 1 + self.below(5))
    }

    fn layout(&mut self) -> Layout {
        let layout = Layout::striped(16 << self.below(12), 1 + self.below(9) as u32, 0);
        layout.unwrap().starting_at(self.below(5) as u32)
    }

    fn access(&mut self) -> Access {
        let view = ViewNumber(self.below(4) as u32);
        Access { view, subfile: self.below(6) as u32, from: self.size(), to: self.size() }
    }

    fn view(&mut self) -> Message {
        let texts = ["1 every 1", "3 x1000/7 every 9000", "8 every 1000000", "5 x4/2"];
        let nest: Nest = texts[self.below(4) as usize].parse().unwrap();
        let mut part = Vec::new();
        nest.encode(&mut part);
        let total = part.len() as u32;
        if self.below(4) == 0 {
            let at = self.below(part.len() as u64) as usize;
            part[at] ^= 1 << self.below(8);
        }
        let (view, inode) = (ViewNumber(self.below(4) as u32), self.inode());
        let layout = self.layout();
        let (offset, total) = match self.below(8) {
            0 => (self.next() as u32, total),
            1 => (0, self.next() as u32),
            _ => (0, total),
        };
        Message::SetView { view, inode, layout, offset, total, part }
    }

    /// A slot as nobody who keeps count would have it: across others, and beyond the window at times.
    fn slot(&mut self) -> Slot {
        let offset = match self.below(20) {
            0 => self.size(),
            _ => self.below(4 << 20),
        };
        Slot { offset, bytes: 1 + self.below(100_000) as u32 }
    }

    /// A message that is well formed, whatever it asks for.
    fn message(&mut self) -> Message {
        let (inode, subfile) = (self.inode(), self.below(6) as u32);
        let kind = if self.below(2) == 0 { Kind::File } else { Kind::Directory };
        match self.below(20) {
            0 => [Message::Ping, Message::Status][self.below(2) as usize].clone(),
            1 => Message::Open {
                path: self.path(),
                wish: OpenWish {
                    reads: true,
                    writes: self.below(2) == 0,
                    creates: true,
                    exclusive: self.below(2) == 0,
                    mode: self.next() as u32,
                    layout: None,
                },
            },
            2 => Message::Close { open: OpenNumber(self.below(20)) },
            3 => Message::Look { path: self.path() },
            4 => Message::MakeDirectory { path: self.path(), mode: 0o700 },
            5 => Message::Remove { path: self.path(), kind },
            6 => Message::Rename { from: self.path(), to: self.path() },
            7 => Message::List { path: self.path(), after: self.path() },
            8 | 9 => self.view(),
            10 => Message::DropView { view: ViewNumber(self.below(4) as u32) },
            11 => Message::Write(self.access()),
            12 => Message::Read(self.access()),
            13 => Message::Measure { inode, subfile },
            // A file of another user of the disk that is as long as this may be is the disk's affair.
            14 => {
                Message::Resize { inode, subfile, bytes: self.size(), extends: self.below(2) == 0 }
            }
            15 => Message::Sync { inode, subfile },
            16 => Message::Hold {
                hold: HoldNumber(self.below(9)),
                inode,
                subfile,
                from: self.size(),
                to: self.size(),
                excludes: self.below(2) == 0,
            },
            17 => Message::Release { hold: HoldNumber(self.below(9)), inode, subfile },
            18 => Message::Advance {
                open: OpenNumber(self.below(20)),
                setting: self.below(3),
                from: self.size(),
                by: self.size(),
            },
            _ => Message::Arrive {
                group: OpenNumber(self.below(9)),
                size: self.size() as u32,
                rank: self.below(4) as u32,
                sequence: self.size(),
                result: Code(self.next() as u16),
                previous: Code(self.next() as u16),
                last: self.below(2) == 0,
            },
        }
    }

    /// A frame with a message, perhaps with payload.
    fn frame(&mut self, request: Request) -> Vec<u8> {
        let message = self.message();
        let mut bytes = Vec::new();
        if matches!(message, Message::Write(_) | Message::Read(_)) && self.below(3) > 0 {
            wire::encode_with_slot(&message, request, self.slot(), &mut bytes);
            return bytes;
        }
        let payload = match message {
            Message::Write(_) => self.below(5000) as u32,
            _ => 0,
        };
        wire::encode(&message, request, payload, None, &mut bytes);
        bytes.resize(bytes.len() + payload as usize, 7);
        bytes
    }
}

fn hello(session: u128) -> Vec<u8> {
    let mut bytes = Vec::new();
    let name = "a test".to_owned();
    let hello = Hello { session: SessionId(session), role: Role::Client, name };
    let _ = Session::asking(hello, &mut bytes);
    bytes
}

fn served() -> (tempfile::TempDir, Node) {
    let directory = tempfile::tempdir().unwrap();
    let wish = Wish { servers: Some(2), ..Wish::default() };
    let node = Node::start(Instance::take(directory.path(), &wish).unwrap()).unwrap();
    is_well(directory.path());
    (directory, node)
}

fn connected(directory: &Path, socket: &str) -> UnixStream {
    let stream = UnixStream::connect(directory.join(socket)).unwrap();
    let patience = Some(Duration::from_secs(20));
    stream.set_read_timeout(patience).unwrap();
    stream.set_write_timeout(patience).unwrap();
    stream
}

/// The first file: that of a client who does nothing wrong.
const WELL: Inode = Inode(2);

/// Bytes of memory that this process has.
fn memory() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// Whether a client still gets what it should.
fn is_well(directory: &Path) {
    let client = Client::of(directory).unwrap();
    let wish = OpenWish { writes: true, creates: true, mode: 0o600, ..OpenWish::TO_READ };
    let file = OpenFile::open(&client, b"/well", wish).unwrap();
    file.write_at(0, b"well").unwrap();
    let mut to = [0; 10];
    assert_eq!((file.read_at(0, &mut to), &to[..4]), (Ok(4), &b"well"[..]));
    file.close().unwrap();
    assert_eq!(files::look(&client, b"/well").unwrap().unwrap().0.inode, WELL);
}

const SOCKETS: [&str; 3] = ["metadata.socket", "server-0.socket", "server-1.socket"];

#[test]
fn a_million_mangled_frames_end_no_server_and_take_no_memory() {
    let (directory, node) = served();
    let mut numbers = Numbers(1);
    let mut grown_from = 0;
    for connection in 0..100_000u64 {
        if connection == 3000 {
            grown_from = memory();
        }
        let mut stream = connected(directory.path(), SOCKETS[(connection % 3) as usize]);
        let mut bytes = if connection % 5 == 0 { Vec::new() } else { hello(connection.into()) };
        for request in 0..10 {
            let mut frame = numbers.frame(Request(request + 1));
            // All frames of most connections are intact but for the last one, which ends it.
            if request == 9 || connection % 5 < 2 {
                let at = numbers.below(frame.len() as u64) as usize;
                frame[at] ^= 1 << numbers.below(8);
            }
            if numbers.below(50) == 0 {
                frame.truncate(numbers.below(frame.len() as u64) as usize);
            }
            bytes.extend(frame);
        }
        // The server may have closed it before all was written.
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        if connection % 7 == 0 {
            // It answers what was intact, and then closes the connection.
            let _ = stream.read_to_end(&mut Vec::new()).map_err(|error| {
                assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "it is kept open");
            });
        }
    }
    is_well(directory.path());
    let grown = memory().saturating_sub(grown_from);
    assert!(grown < 64 << 20, "{grown} bytes more");
    assert!(node.stop());
}

#[test]
fn well_formed_requests_that_make_no_sense_are_answered() {
    let (directory, node) = served();
    let mut numbers = Numbers(2);
    for session in 0..60u64 {
        let mut stream = connected(directory.path(), SOCKETS[(session % 3) as usize]);
        stream.write_all(&hello(session.into())).unwrap();
        let mut reader = stream.try_clone().unwrap();
        let drain = std::thread::spawn(move || reader.read_to_end(&mut Vec::new()).is_ok());
        for request in 0..200 {
            if stream.write_all(&numbers.frame(Request(request + 1))).is_err() {
                break;
            }
        }
        let _ = stream.shutdown(std::net::Shutdown::Write);
        drain.join().unwrap();
        is_well(directory.path());
    }
    assert!(node.stop());
}

#[test]
fn who_says_nothing_is_shown_the_door_and_keeps_nobody_out() {
    let (directory, node) = served();
    let begin = Instant::now();
    let mut silent: Vec<_> =
        (0..200).map(|_| connected(directory.path(), "metadata.socket")).collect();
    is_well(directory.path());
    let mut nothing = [0; 10];
    assert_eq!(silent[0].read(&mut nothing).unwrap(), 0);
    assert!(begin.elapsed() >= Duration::from_secs(1));
    assert!(node.stop());
}

#[test]
fn who_takes_no_answers_is_not_heard_for_ever() {
    let (directory, node) = served();
    let mut deaf = connected(directory.path(), "metadata.socket");
    deaf.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    deaf.write_all(&hello(1)).unwrap();
    let mut ping = Vec::new();
    wire::encode(&Message::Ping, Request(1), 0, None, &mut ping);
    let pings = ping.repeat(1000);
    let before = memory();
    let mut heard = 0u64;
    while deaf.write_all(&pings).is_ok() {
        heard += 1;
        assert!(heard < 100_000, "it is heard without end");
    }
    assert!(memory().saturating_sub(before) < 64 << 20);
    is_well(directory.path());
    assert!(node.stop());
}
