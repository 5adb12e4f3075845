//! Frames of the parallel file system, at both ends of a connection.

use crate::{Target, seeds};
use iolab_pfs::session::{Arrival, Greeting, Hello, Role, Session, Welcome};
use iolab_pfs::window::Window;
use iolab_pfs::wire::{self, HEADER_BYTES, Header};
use iolab_pfs::{Incarnation, Party, SessionId};
use iolab_policy::{placement, write_policy};

/// What stands in front of a frame in an input: kind, flags, bytes of fields, bytes of payload.
const FRONT_BYTES: usize = 4;

/// Lengths and sums are made here, because mutation does not find right sums; the input gives the size of
/// chunks, and then kind, flags, fields and payload of each frame.
pub(crate) const FRAMES: Target = Target {
    name: "pfs-frames",
    seeds: documented,
    bytes_max: 600,
    run: |bytes| {
        let Some((&chunk_bytes, mut rest)) = bytes.split_first() else { return };
        let mut stream = Vec::new();
        while let Some((&[kind, flags, field_bytes, payload_bytes], more)) =
            rest.split_first_chunk::<FRONT_BYTES>()
        {
            let (fields, more) = more.split_at(usize::from(field_bytes).min(more.len()));
            let (payload, more) = more.split_at(usize::from(payload_bytes).min(more.len()));
            let frame = sealed(kind, flags, fields, payload);
            reads_back(&frame[..HEADER_BYTES + fields.len()]);
            stream.extend(frame);
            rest = more;
        }
        try_stream(&stream, usize::from(chunk_bytes).max(1));
    },
};

/// Bytes as they may come on any connection.
pub(crate) const STREAM: Target = Target {
    name: "pfs-stream",
    seeds: || {
        let frame = |seed: Vec<u8>| sealed(seed[1], seed[2], &seed[1 + FRONT_BYTES..], &[]);
        documented().into_iter().map(frame).collect()
    },
    bytes_max: 600,
    run: |bytes| try_stream(bytes, bytes.len().max(1)),
};

/// The frames that the document of the protocol lists.
fn documented() -> Vec<Vec<u8>> {
    let text = seeds::file("docs/format/pfs-wire.md");
    let text = std::str::from_utf8(&text).expect("a document is a text");
    let (_, block) = text.split_once("## One of each").expect("the document lists frames");
    let lines = block.split("```").nth(1).expect("a block").lines().skip(1);
    let seeds: Vec<_> = lines.map(seed).collect();
    let windowed: Vec<_> = seeds.iter().filter_map(|seed| in_window(seed)).collect();
    [seeds, windowed].concat()
}

/// The same input with its payload in a window, if it is of a kind that has such.
fn in_window(seed: &[u8]) -> Option<Vec<u8>> {
    let mut seed = seed.to_vec();
    seed[2] |= 8;
    seed[3] += 12;
    seed.extend([[0xff, 0, 0, 0], [0; 4], [4, 0, 0, 0]].concat());
    matches!(seed[1], 66..=68).then_some(seed)
}

/// An input of one frame: `kind flags`, in decimal, then the fields in hexadecimal.
fn seed(line: &str) -> Vec<u8> {
    let mut words = line.split_whitespace();
    let mut decimal = || words.next().and_then(|word| word.parse().ok()).expect("a number");
    let (kind, flags) = (decimal(), decimal());
    let fields: Vec<u8> =
        words.map(|word| u8::from_str_radix(word, 16).expect("hexadecimal")).collect();
    let front = [200, kind, flags, fields.len() as u8, 0];
    [&front[..], &fields].concat()
}

/// A frame whose sums are right.
fn sealed(kind: u8, flags: u8, fields: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; HEADER_BYTES];
    frame[0..4].copy_from_slice(&((fields.len() + payload.len()) as u32).to_le_bytes());
    (frame[4], frame[6]) = (kind, flags);
    frame[16..20].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    if flags & 32 == 0 {
        frame[24..28].copy_from_slice(&crc32c::crc32c(payload).to_le_bytes());
    }
    frame.extend_from_slice(fields);
    let sum = crc32c::crc32c(&frame);
    frame[20..24].copy_from_slice(&sum.to_le_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// What decodes is written as the same bytes.
fn reads_back(frame: &[u8]) {
    let (front, fields) = frame.split_first_chunk().expect("a header");
    let Ok(header) = Header::decode(front) else { return };
    let mut again = Vec::new();
    if let Ok((message, slot)) = wire::decode_with_slot(&header, fields) {
        match slot {
            None => {
                let (payload_bytes, sum) = (header.payload_bytes(), header.payload_sum());
                wire::encode(&message, header.request, payload_bytes, sum, &mut again);
                assert_eq!(wire::message_bytes(&message), again.len() as u64);
            }
            Some(slot) => wire::encode_with_slot(&message, header.request, slot, &mut again),
        }
        assert_eq!(again, frame);
    }
    if let Ok(greeting) = Greeting::decode(&header, fields) {
        greeting.encode(&mut again);
        let mut once_more = Vec::new();
        let front = again.first_chunk().expect("a header");
        let header = Header::decode(front).expect("it was written");
        let read = Greeting::decode(&header, &again[HEADER_BYTES..]).expect("it was written");
        read.encode(&mut once_more);
        assert_eq!(once_more, again);
    }
}

/// Both ends take or refuse a stream, the same whole and in chunks.
fn try_stream(stream: &[u8], chunk_bytes: usize) {
    for end in [server, open_server, open_client] {
        let whole = driven(end(), stream, stream.len().max(1));
        assert_eq!(driven(end(), stream, chunk_bytes), whole);
    }
}

/// All that a driver sees of a stream.
fn driven(
    mut session: Session,
    stream: &[u8],
    chunk_bytes: usize,
) -> (Vec<Arrival>, Vec<u8>, bool) {
    let (mut arrivals, mut out) = (Vec::new(), Vec::new());
    for mut chunk in stream.chunks(chunk_bytes) {
        while !chunk.is_empty() {
            let bytes = (session.payload_bytes() as usize).min(chunk.len());
            let (payload, rest) = chunk.split_at(bytes);
            chunk = rest;
            if bytes > 0 && session.payload(payload).is_err() {
                return (arrivals, out, true);
            }
            if session.payload_bytes() > 0 {
                continue;
            }
            match session.feed(&mut chunk, &mut out) {
                Err(broken) => {
                    assert!(!broken.to_string().is_empty() && session.wants() == 0);
                    return (arrivals, out, true);
                }
                Ok(found) => {
                    if let Some(Arrival::Hello(_)) = found {
                        session.welcome(welcome(), &mut out);
                    }
                    arrivals.extend(found);
                }
            }
        }
    }
    (arrivals, out, false)
}

fn server() -> Session {
    Session::serving()
}

fn open_server() -> Session {
    let (mut hello, mut session) = (Vec::new(), Session::serving());
    Session::asking(self::hello(), &mut hello);
    session.feed(&mut &hello[..], &mut Vec::new()).expect("a hello");
    session.welcome(welcome(), &mut Vec::new());
    session.grant(window(), &mut Vec::new());
    session
}

fn open_client() -> Session {
    let mut session = Session::asking(hello(), &mut Vec::new());
    let mut answer = Vec::new();
    Greeting::Welcome(welcome()).encode(&mut answer);
    session.feed(&mut &answer[..], &mut Vec::new()).expect("a welcome");
    let mut segment = Vec::new();
    Greeting::Segment(window()).encode(&mut segment);
    session.feed(&mut &segment[..], &mut Vec::new()).expect("a window");
    session
}

fn hello() -> Hello {
    Hello { session: SessionId(7), role: Role::Client, name: "fuzz".to_owned() }
}

/// So small that made-up slots are often at its end.
fn window() -> Window {
    Window::new(1, 4096).expect("a page")
}

fn welcome() -> Welcome {
    Welcome {
        incarnation: Incarnation(1),
        known: false,
        party: Party::Server(0),
        servers: 1,
        caches: 0,
        placement: placement::catalog::USUAL,
        write_policy: write_policy::catalog::USUAL,
    }
}
