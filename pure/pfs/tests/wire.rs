//! Frames and connections, as somebody outside sees them.

use iolab_pfs::cache_manager::Counts;
use iolab_pfs::session::{Arrival, Broken, Frame, Greeting, Hello, Role, Session, Welcome};
use iolab_pfs::window::{Slot, Window};
use iolab_pfs::wire::{self, BODY_BYTES_MAX, HEADER_BYTES, Header, Mangled};
use iolab_pfs::{
    Access, Attributes, Code, Connected, Entry, HoldNumber, Incarnation, Inode, Kind, Layout,
    Message, OpenNumber, OpenWish, Opened, Party, Request, SessionId, ViewNumber,
};
use iolab_policy::placement::catalog as placement;
use iolab_policy::write_policy::catalog as write_policy;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

fn layouts() -> impl Strategy<Value = Layout> {
    (16u64..=1 << 30, 1u32..=4096, any::<u32>())
        .prop_map(|(unit, subfiles, start)| Layout::striped(unit, subfiles, start).unwrap())
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..40)
}

fn codes() -> impl Strategy<Value = Code> {
    any::<u16>().prop_map(Code)
}

fn kinds() -> impl Strategy<Value = Kind> {
    any::<bool>().prop_map(|is_file| if is_file { Kind::File } else { Kind::Directory })
}

fn attributes() -> impl Strategy<Value = Attributes> {
    (any::<u64>(), kinds(), any::<u32>(), option::of(layouts()), any::<bool>()).prop_map(
        |(inode, kind, mode, layout, is_open)| Attributes {
            inode: Inode(inode),
            kind,
            mode,
            layout,
            is_open,
        },
    )
}

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    vec((bytes(), attributes()).prop_map(|(name, attributes)| Entry { name, attributes }), 0..9)
}

fn accesses() -> impl Strategy<Value = Access> {
    any::<(u32, u32, u64, u64)>().prop_map(|(view, subfile, from, to)| Access {
        view: ViewNumber(view),
        subfile,
        from,
        to,
    })
}

fn wishes() -> impl Strategy<Value = OpenWish> {
    (any::<[bool; 4]>(), any::<u32>(), option::of(layouts())).prop_map(|(is, mode, layout)| {
        let [reads, writes, creates, exclusive] = is;
        OpenWish { reads, writes, creates, exclusive, mode, layout }
    })
}

/// Messages about names.
fn of_metadata() -> impl Strategy<Value = Message> {
    prop_oneof![
        Just(Message::Ping),
        Just(Message::Pong),
        Just(Message::Done),
        (codes(), ".{0,20}").prop_map(|(code, text)| Message::Failed { code, text }),
        (bytes(), wishes()).prop_map(|(path, wish)| Message::Open { path, wish }),
        (any::<(u64, u64)>(), layouts(), any::<bool>()).prop_map(
            |((open, inode), layout, created)| {
                let (open, inode) = (OpenNumber(open), Inode(inode));
                Message::Opened(Opened { open, inode, layout, created })
            }
        ),
        any::<u64>().prop_map(|open| Message::Close { open: OpenNumber(open) }),
        bytes().prop_map(|path| Message::Look { path }),
        attributes().prop_map(Message::Attributes),
        (bytes(), any::<u32>()).prop_map(|(path, mode)| Message::MakeDirectory { path, mode }),
        (bytes(), kinds()).prop_map(|(path, kind)| Message::Remove { path, kind }),
        (bytes(), bytes()).prop_map(|(from, to)| Message::Rename { from, to }),
        (bytes(), bytes()).prop_map(|(path, after)| Message::List { path, after }),
        (entries(), any::<bool>()).prop_map(|(entries, more)| Message::Entries { entries, more }),
        any::<(u64, u64, u64, u64)>().prop_map(|(open, setting, from, by)| {
            Message::Advance { open: OpenNumber(open), setting, from, by }
        }),
        any::<u64>().prop_map(|units| Message::Position { units }),
    ]
}

/// Messages about bytes.
fn of_servers() -> impl Strategy<Value = Message> {
    prop_oneof![
        (any::<(u32, u64, u32, u32)>(), layouts(), bytes()).prop_map(
            |((view, inode, offset, total), layout, part)| {
                let (view, inode) = (ViewNumber(view), Inode(inode));
                Message::SetView { view, inode, layout, offset, total, part }
            }
        ),
        any::<u32>().prop_map(|view| Message::DropView { view: ViewNumber(view) }),
        accesses().prop_map(Message::Write),
        accesses().prop_map(Message::Read),
        any::<u64>().prop_map(|end| Message::Data { end }),
        any::<(u64, u32)>()
            .prop_map(|(inode, subfile)| Message::Measure { inode: Inode(inode), subfile }),
        any::<u64>().prop_map(|bytes| Message::End { bytes }),
        any::<(u64, u32, u64, bool)>().prop_map(|(inode, subfile, bytes, extends)| {
            Message::Resize { inode: Inode(inode), subfile, bytes, extends }
        }),
        any::<(u64, u32)>()
            .prop_map(|(inode, subfile)| Message::Sync { inode: Inode(inode), subfile }),
        any::<(u64, u32)>()
            .prop_map(|(inode, subfile)| Message::Resume { inode: Inode(inode), subfile }),
        any::<u64>().prop_map(|inode| Message::Discard { inode: Inode(inode) }),
        (any::<(u64, u32, u32, u64, bool)>(), codes(), codes()).prop_map(
            |((group, size, rank, sequence, last), result, previous)| {
                let group = OpenNumber(group);
                Message::Arrive { group, size, rank, sequence, result, previous, last }
            }
        ),
        (codes(), any::<u32>()).prop_map(|(result, rank)| Message::Verdict { result, rank }),
        any::<(u64, u64, u32, u64, u64, bool)>().prop_map(
            |(hold, inode, subfile, from, to, excludes)| {
                let (hold, inode) = (HoldNumber(hold), Inode(inode));
                Message::Hold { hold, inode, subfile, from, to, excludes }
            }
        ),
        any::<(u64, u64, u32)>().prop_map(|(hold, inode, subfile)| {
            let (hold, inode) = (HoldNumber(hold), Inode(inode));
            Message::Release { hold, inode, subfile }
        }),
        (any::<(u64, u32)>(), any::<[u64; 5]>()).prop_map(|((inode, subfile), numbers)| {
            let ([from, to, taken, bytes, more], inode) = (numbers, Inode(inode));
            Message::Grant { inode, subfile, from, to, taken, bytes, more }
        }),
        (any::<[u64; 3]>(), codes()).prop_map(|([bytes, missing, unit], refusal)| {
            Message::Granted { refusal, bytes, missing, unit }
        }),
        Just(Message::Status),
        Just(Message::Count),
        any::<u64>().prop_map(|pages| Message::Damage { pages }),
        any::<u64>().prop_map(|count| Message::Files { count }),
        any::<[u64; 8]>().prop_map(|all| {
            let [memory, used_bytes, reads, misses, fetches, flushes, ..] = all;
            let [.., unsaved_bytes, granted_bytes] = all;
            Message::Counts(Counts {
                memory,
                used_bytes,
                reads,
                misses,
                fetches,
                flushes,
                unsaved_bytes,
                granted_bytes,
            })
        }),
        vec((".{0,20}", any::<u64>()), 0..5).prop_map(|all| {
            let connected = |(name, window_bytes)| Connected { name, window_bytes };
            Message::Connected(all.into_iter().map(connected).collect())
        }),
    ]
}

/// Messages whose payload, or that of their reply, may be in a window.
fn with_payload() -> impl Strategy<Value = Message> {
    prop_oneof![
        accesses().prop_map(Message::Write),
        accesses().prop_map(Message::Read),
        any::<u64>().prop_map(|end| Message::Data { end }),
    ]
}

fn messages() -> impl Strategy<Value = Message> {
    prop_oneof![of_metadata(), of_servers()]
}

/// What is sent in one frame.
#[derive(Clone, Debug, PartialEq)]
struct Sent {
    request: Request,
    message: Message,
    payload: Vec<u8>,
}

/// A message with payload, if it may have some.
fn sent() -> impl Strategy<Value = Sent> {
    (any::<u64>(), messages(), vec(any::<u8>(), 0..70)).prop_map(|(request, message, payload)| {
        let has_payload = matches!(message, Message::Write(_) | Message::Data { .. });
        let payload = if has_payload { payload } else { vec![] };
        Sent { request: Request(request), message, payload }
    })
}

fn is_reply(message: &Message) -> bool {
    let frame =
        framed(&Sent { request: Request(0), message: message.clone(), payload: vec![] }, true);
    Header::decode(frame.first_chunk().unwrap()).unwrap().is_reply()
}

fn framed(sent: &Sent, is_summed: bool) -> Vec<u8> {
    let mut frame = vec![];
    let sum = is_summed.then(|| wire::payload_sum(&sent.payload));
    wire::encode(&sent.message, sent.request, sent.payload.len() as u32, sum, &mut frame);
    frame.extend_from_slice(&sent.payload);
    frame
}

/// A server's end that has welcomed a client.
fn open_server() -> Session {
    let mut session = Session::serving();
    let mut hello = vec![];
    Session::asking(a_hello(), &mut hello);
    let arrival = session.feed(&mut &hello[..], &mut vec![]);
    assert_eq!(arrival, Ok(Some(Arrival::Hello(a_hello()))));
    session.welcome(a_welcome(), &mut vec![]);
    session
}

/// A client's end that was welcomed.
fn open_client() -> Session {
    let mut session = Session::asking(a_hello(), &mut vec![]);
    let mut welcome = vec![];
    Greeting::Welcome(a_welcome()).encode(&mut welcome);
    let arrival = session.feed(&mut &welcome[..], &mut vec![]);
    assert_eq!(arrival, Ok(Some(Arrival::Welcome(a_welcome()))));
    session
}

fn a_hello() -> Hello {
    Hello { session: SessionId(0xfeed << 64), role: Role::Client, name: "rank 3".to_owned() }
}

fn a_welcome() -> Welcome {
    Welcome {
        incarnation: Incarnation(77),
        known: true,
        party: Party::Server(2),
        servers: 4,
        caches: 3,
        placement: placement::USUAL,
        write_policy: write_policy::USUAL,
    }
}

fn a_window() -> Window {
    Window::new(64, 256 << 10).unwrap()
}

/// Both ends with a window.
fn with_a_window() -> (Session, Session) {
    let (mut server, mut client, mut segment) = (open_server(), open_client(), vec![]);
    server.grant(a_window(), &mut segment);
    let arrival = client.feed(&mut &segment[..], &mut vec![]);
    assert_eq!(arrival, Ok(Some(Arrival::Segment(a_window()))));
    (server, client)
}

fn with_slot(message: &Message, slot: Slot) -> Vec<u8> {
    let mut frame = vec![];
    wire::encode_with_slot(message, Request(5), slot, &mut frame);
    frame
}

/// Feeds a chunk as a driver does. The last frame may still lack payload; one whose payload is wrong goes.
fn drive(
    session: &mut Session,
    mut chunk: &[u8],
    seen: &mut Vec<Sent>,
    out: &mut Vec<u8>,
) -> Result<(), Broken> {
    while !chunk.is_empty() {
        let wanted = (session.payload_bytes() as usize).min(chunk.len());
        if wanted > 0 {
            let (payload, rest) = chunk.split_at(wanted);
            session.payload(payload).inspect_err(|_| drop(seen.pop()))?;
            seen.last_mut().unwrap().payload.extend(payload);
            chunk = rest;
            continue;
        }
        match session.feed(&mut chunk, out)? {
            Some(Arrival::Frame(Frame { request, message, .. })) => {
                seen.push(Sent { request, message, payload: vec![] });
            }
            Some(other) => panic!("{other:?}"),
            None => {}
        }
    }
    Ok(())
}

/// Makes the sum of a header and its fields right.
fn mend(frame: &mut [u8], field_bytes: usize) {
    frame[20..24].fill(0);
    let sum = crc32c::crc32c(&frame[..HEADER_BYTES + field_bytes]);
    frame[20..24].copy_from_slice(&sum.to_le_bytes());
}

proptest! {
    #[test]
    fn what_was_encoded_decodes_to_the_same_message(sent in sent(), is_summed: bool) {
        let frame = framed(&sent, is_summed);
        let header = Header::decode(frame.first_chunk().unwrap()).unwrap();
        let fields = &frame[HEADER_BYTES..frame.len() - sent.payload.len()];
        prop_assert_eq!(header.request, sent.request);
        prop_assert_eq!(header.payload_bytes() as usize, sent.payload.len());
        prop_assert_eq!(header.field_bytes() as usize, fields.len());
        prop_assert_eq!(wire::decode(&header, fields), Ok(sent.message.clone()));
        let bytes = wire::message_bytes(&sent.message) as usize;
        prop_assert_eq!(bytes, HEADER_BYTES + fields.len());
        let sum = (is_summed && !sent.payload.is_empty()).then(|| wire::payload_sum(&sent.payload));
        prop_assert_eq!(header.payload_sum(), sum);
    }

    #[test]
    fn however_the_stream_is_cut_the_same_frames_arrive(
        all in vec((sent(), any::<bool>()), 1..8), cuts in vec(1usize..60, 1..50), replies: bool,
    ) {
        let all: Vec<_> = all.into_iter().filter(|(sent, _)| is_reply(&sent.message) == replies).collect();
        let stream: Vec<u8> = all.iter().flat_map(|(sent, is_summed)| framed(sent, *is_summed)).collect();
        let mut session = if replies { open_client() } else { open_server() };
        let (mut seen, mut rest, mut cuts) = (vec![], &stream[..], cuts.iter().cycle());
        while !rest.is_empty() {
            let (chunk, more) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
            prop_assert_eq!(drive(&mut session, chunk, &mut seen, &mut vec![]), Ok(()));
            rest = more;
        }
        let all: Vec<_> = all.into_iter().map(|(sent, _)| sent).collect();
        prop_assert_eq!(seen, all);
    }

    #[test]
    fn who_reads_what_is_wanted_never_reads_payload_by_accident(sent in sent()) {
        let replies = is_reply(&sent.message);
        let mut session = if replies { open_client() } else { open_server() };
        let frame = framed(&sent, false);
        let mut rest = &frame[..];
        loop {
            let wants = session.wants();
            prop_assert!(wants > 0);
            let (chunk, more) = rest.split_at(wants);
            rest = more;
            let arrival = session.feed(&mut &chunk[..], &mut vec![]).unwrap();
            if let Some(arrival) = arrival {
                let payload_bytes = sent.payload.len() as u32;
                let Sent { request, message, .. } = sent.clone();
                let frame = Frame { request, message, payload_bytes, slot: None };
                prop_assert_eq!(arrival, Arrival::Frame(frame));
                break;
            }
        }
        prop_assert_eq!(rest, &sent.payload[..]);
        prop_assert_eq!(session.wants() == 0, !rest.is_empty());
        prop_assert_eq!(session.payload(rest), Ok(()));
        prop_assert_eq!(session.wants(), HEADER_BYTES);
    }

    #[test]
    fn a_slot_arrives_with_its_message_if_all_of_it_is_in_the_window(
        message in with_payload(), offset in 0u64..(16 << 20) + 9000, bytes in 1u32..=1 << 20, cut in 1usize..52,
    ) {
        let is_data = is_reply(&message);
        let slot = Slot { offset, bytes };
        let frame = with_slot(&message, slot);
        let (server, client) = with_a_window();
        let mut session = if is_data { client } else { server };
        let (first, rest) = frame.split_at(cut);
        prop_assert_eq!(session.feed(&mut &first[..], &mut vec![]), Ok(None));
        let arrived = session.feed(&mut &rest[..], &mut vec![]);
        let frame = Frame { request: Request(5), message, payload_bytes: 0, slot: Some(slot) };
        let wanted = match offset + u64::from(bytes) <= a_window().bytes() {
            true => Ok(Some(Arrival::Frame(frame))),
            false => Err(Broken::Mangled(Mangled::Slot)),
        };
        prop_assert_eq!(arrived, wanted);
    }

    #[test]
    fn a_flipped_bit_never_makes_another_message(sent in sent(), at: prop::sample::Index) {
        let mut frame = framed(&sent, true);
        let bit = at.index(frame.len() * 8);
        frame[bit / 8] ^= 1 << (bit % 8);
        frame.extend([0; 100]);
        let mut session = if is_reply(&sent.message) { open_client() } else { open_server() };
        let mut seen = vec![];
        let ended = drive(&mut session, &frame, &mut seen, &mut vec![]);
        if session.payload_bytes() > 0 {
            seen.pop();
        }
        prop_assert_eq!(seen, [], "{:?}", ended);
    }

    #[test]
    fn fields_that_decode_are_those_that_would_be_written(
        kind in prop_oneof![6u16..14, 32u16..42, 64u16..76, 120u16..125],
        flags in prop::sample::select(vec![0u16, 1, 3]),
        fields in vec(prop_oneof![Just(0u8), Just(1), Just(2), Just(16), any::<u8>()], 0..70),
    ) {
        let frame = raw(kind, flags, &fields, &[]);
        let header = Header::decode(frame.first_chunk().unwrap()).unwrap();
        if let Ok(message) = wire::decode(&header, &fields) {
            let mut again = vec![];
            wire::encode(&message, Request(9), 0, None, &mut again);
            prop_assert_eq!(again, frame);
        }
    }

    #[test]
    fn any_bytes_end_a_connection_or_wait_for_more(stream in vec(any::<u8>(), 0..300)) {
        for mut session in [Session::serving(), open_server(), open_client()] {
            let mut seen = vec![];
            let ended = drive(&mut session, &stream, &mut seen, &mut vec![]);
            prop_assert!(seen.is_empty());
            prop_assert!(ended.is_err() || stream.len() < 32 || session.wants() > 0);
        }
    }

    #[test]
    fn greetings_are_read_as_they_were_written(
        session: u128, name in ".{0,60}", incarnation: u64, known: bool, index: u32,
        role in 0usize..3, servers: u32, caches: u16, code in codes(), text in ".{0,250}",
    ) {
        let party = [Party::Metadata, Party::Server(index), Party::Cache(index)][role];
        let role = [Role::Metadata, Role::Client, Role::Cache][role];
        let incarnation = Incarnation(incarnation);
        for greeting in [
            Greeting::Hello(Hello { session: SessionId(session), role, name: name.clone() }),
            Greeting::Welcome(Welcome {
                incarnation,
                known,
                party,
                servers,
                caches: caches.into(),
                placement: &placement::ROWS[index as usize % placement::ROWS.len()],
                write_policy: &write_policy::ROWS[servers as usize % write_policy::ROWS.len()],
            }),
            Greeting::Refused { code, text: text.clone() },
            Greeting::Bye,
            Greeting::Segment(Window::new(1 + index % 64, 4096 << (servers % 9)).unwrap()),
        ] {
            let mut frame = vec![];
            greeting.encode(&mut frame);
            let header = Header::decode(frame.first_chunk().unwrap()).unwrap();
            prop_assert_eq!(Greeting::decode(&header, &frame[HEADER_BYTES..]), Ok(greeting));
        }
    }
}

/// A frame whose sum is right, whatever else it is.
fn raw(kind: u16, flags: u16, fields: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; HEADER_BYTES];
    frame[0..4].copy_from_slice(&((fields.len() + payload.len()) as u32).to_le_bytes());
    frame[4..6].copy_from_slice(&kind.to_le_bytes());
    frame[6..8].copy_from_slice(&flags.to_le_bytes());
    frame[8] = 9;
    frame[16..20].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    frame.extend(fields);
    mend(&mut frame, fields.len());
    frame.extend(payload);
    frame
}

#[test]
fn a_request_of_an_unknown_kind_is_answered_and_its_payload_skipped() {
    let mut stream = raw(81, 32, b"what is this", &[7; 90]);
    let ping = Sent { request: Request(10), message: Message::Ping, payload: vec![] };
    stream.extend(framed(&ping, true));
    for chunk_bytes in [1, 50, 1000] {
        let (mut session, mut seen, mut out) = (open_server(), vec![], vec![]);
        for chunk in stream.chunks(chunk_bytes) {
            assert_eq!(drive(&mut session, chunk, &mut seen, &mut out), Ok(()));
        }
        assert_eq!(seen, std::slice::from_ref(&ping));
        let mut replies = vec![];
        assert_eq!(drive(&mut open_client(), &out, &mut replies, &mut vec![]), Ok(()));
        let text = "request of kind 81".to_owned();
        let message = Message::Failed { code: Code::UNSUPPORTED, text };
        assert_eq!(replies, [Sent { request: Request(9), message, payload: vec![] }]);
    }
}

/// What a fresh server, one with an open session, and a client say to a stream.
fn ends(stream: &[u8]) -> [Option<Broken>; 3] {
    [Session::serving(), open_server(), open_client()].map(|mut session| {
        let (mut bytes, mut out) = (stream, vec![]);
        let ended = session.feed(&mut bytes, &mut out).err();
        if ended.is_some() {
            assert!(bytes.is_empty() && session.wants() == 0);
            assert_eq!(
                session.feed(&mut &stream[..], &mut vec![]),
                Ok(None),
                "nothing after the end"
            );
        }
        ended
    })
}

fn mangled(what: Mangled) -> Option<Broken> {
    Some(Broken::Mangled(what))
}

#[test]
fn what_has_no_place_ends_the_connection() {
    let frame = |message| framed(&Sent { request: Request(1), message, payload: vec![] }, true);
    let early = Some(Broken::Unexpected("a message before the handshake was over"));
    let of_server = Some(Broken::Unexpected("a request from a server"));
    let of_client = Some(Broken::Unexpected("a reply from somebody who asks"));
    let greeting = Some(Broken::Unexpected("a greeting that has no place here"));
    assert_eq!(ends(&frame(Message::Ping)), [early.clone(), None, of_server]);
    assert_eq!(ends(&frame(Message::Pong)), [early.clone(), of_client, None]);
    let mut hello = vec![];
    Greeting::Hello(a_hello()).encode(&mut hello);
    assert_eq!(ends(&hello), [None, greeting.clone(), greeting.clone()]);
    let mut welcome = vec![];
    Greeting::Welcome(a_welcome()).encode(&mut welcome);
    assert_eq!(ends(&welcome), [greeting.clone(), greeting.clone(), greeting]);
    let unknown = mangled(Mangled::Unknown { kind: 90 });
    assert_eq!(ends(&raw(90, 1, b"", b""))[2], unknown);
    assert_eq!(ends(&raw(90, 1, b"", b""))[0], early);
}

#[test]
fn a_client_that_does_not_wait_for_the_welcome_is_refused() {
    let mut stream = vec![];
    let mut session = Session::serving();
    Greeting::Hello(a_hello()).encode(&mut stream);
    wire::encode(&Message::Ping, Request(1), 0, None, &mut stream);
    let (mut bytes, mut out) = (&stream[..], vec![]);
    assert!(matches!(session.feed(&mut bytes, &mut out), Ok(Some(Arrival::Hello(_)))));
    assert!(session.feed(&mut bytes, &mut out).is_err());
    let header = Header::decode(out.first_chunk().unwrap()).unwrap();
    let told = Greeting::decode(&header, &out[HEADER_BYTES..]);
    assert!(matches!(told, Ok(Greeting::Refused { code: Code::BAD_MESSAGE, .. })), "{told:?}");
}

#[test]
fn impossible_lengths_and_flags_end_the_connection() {
    let ping = raw(6, 0, b"", b"");
    let changed = |at: usize, bytes: &[u8]| {
        let mut frame = ping.clone();
        frame[at..at + bytes.len()].copy_from_slice(bytes);
        mend(&mut frame, 0);
        ends(&frame)[1].clone()
    };
    assert_eq!(changed(0, &(BODY_BYTES_MAX + 1).to_le_bytes()), mangled(Mangled::Length));
    assert_eq!(changed(0, &BODY_BYTES_MAX.to_le_bytes()), None, "it waits for the rest");
    assert_eq!(changed(16, &[1]), mangled(Mangled::Length), "more payload than body");
    assert_eq!(changed(24, &[1]), mangled(Mangled::Flags), "a sum without payload");
    for flag in [2u16, 4, 16, 32, 64, 1 << 15] {
        assert_eq!(changed(6, &flag.to_le_bytes()), mangled(Mangled::Flags), "{flag}");
    }
    let mut summed = raw(68, 1 | 32, &[0; 8], b"payload");
    summed[24] = 1;
    mend(&mut summed, 8);
    assert_eq!(ends(&summed)[2], mangled(Mangled::Flags), "a sum in spite of the flag");
    assert_eq!(ends(&raw(6, 32, b"", b"payload"))[1], mangled(Mangled::Payload));
    assert_eq!(ends(&raw(10, 32, b"", b"payload"))[1], mangled(Mangled::Payload));
    let nowhere = raw(6, 8, b"", b"");
    assert_eq!(ends(&nowhere)[1], mangled(Mangled::Fields("it ends too early")), "no slot");
    assert_eq!(ends(&raw(6, 8, &[1; 12], b""))[1], mangled(Mangled::Payload), "a ping in a window");
    assert_eq!(ends(&raw(66, 8, &[1; 36], b"payload"))[1], mangled(Mangled::Flags), "in both");
    assert_eq!(ends(&raw(66, 8, &[0; 36], b""))[1], mangled(Mangled::Slot), "a slot of no bytes");
    let write = Message::Write(Access { view: ViewNumber(0), subfile: 0, from: 0, to: 0 });
    let early = with_slot(&write, Slot { offset: 0, bytes: 1 });
    assert_eq!(ends(&early)[1], mangled(Mangled::Slot), "a slot without a window");
    let large = ends(&raw(1, 0, &[0; 1025], b""));
    assert_eq!(large[0], mangled(Mangled::Length), "a greeting of more than 1 KiB");
}

#[test]
fn a_window_is_given_once_by_a_server_to_whom_it_has_welcomed() {
    let segment = greeted(&Greeting::Segment(a_window()));
    let greeting = Some(Broken::Unexpected("a greeting that has no place here"));
    assert_eq!(ends(&segment), [greeting.clone(), greeting.clone(), None]);
    let mut waiting = Session::asking(a_hello(), &mut vec![]);
    assert_eq!(waiting.feed(&mut &segment[..], &mut vec![]).err(), greeting);
    let (_, mut client) = with_a_window();
    assert_eq!(client.feed(&mut &segment[..], &mut vec![]).err(), greeting);
}

#[test]
fn another_version_is_refused_by_name_whatever_else_it_says() {
    let mut session = Session::serving();
    let mut out = vec![];
    let broken = session.feed(&mut &raw(1, 0, &[2, 0, 5, 0, 99], b"")[..], &mut out).unwrap_err();
    assert_eq!(broken, Broken::Mangled(Mangled::Version { min: 2, max: 5 }));
    let mut client = Session::asking(a_hello(), &mut vec![]);
    let told = client.feed(&mut &out[..], &mut vec![]).unwrap_err();
    let text = "versions 2 to 5 of the protocol; version 1 is spoken here".to_owned();
    assert_eq!(told, Broken::Refused { code: Code::UNSUPPORTED, text });
    let range = [&[0, 0, 7, 0, 1][..], &[0; 16], &[0; 4]].concat();
    assert_eq!(ends(&raw(1, 0, &range, b""))[0], None, "a range that has ours");
}

#[test]
fn a_claimed_count_takes_no_memory() {
    let claims = [&u32::MAX.to_le_bytes()[..], &[0; 40]].concat();
    for kind in [13, 32, 35, 37, 38, 39, 40, 41, 124] {
        let flags = if kind == 13 { 3 } else { u16::from(kind == 41 || kind == 124) };
        let frame = raw(kind, flags, &claims, b"");
        let header = Header::decode(frame.first_chunk().unwrap()).unwrap();
        let ended = wire::decode(&header, &claims);
        let early = Err(Mangled::Fields("it ends too early"));
        assert!(kind == 13 || ended == early, "{kind}: {ended:?}");
    }
}

#[test]
fn payload_that_was_changed_is_told_at_its_end() {
    let access = Access { view: ViewNumber(1), subfile: 0, from: 0, to: 4 };
    let sent = Sent { request: Request(1), message: Message::Write(access), payload: vec![1; 4] };
    let mut frame = framed(&sent, true);
    *frame.last_mut().unwrap() = 9;
    let mut session = open_server();
    let mut bytes = &frame[..];
    assert!(matches!(session.feed(&mut bytes, &mut vec![]), Ok(Some(Arrival::Frame(_)))));
    assert_eq!(session.payload(&bytes[..3]), Ok(()));
    assert_eq!(session.payload(&bytes[3..]), Err(Broken::Mangled(Mangled::PayloadSum)));
    assert_eq!(session.wants(), 0);
}

#[test]
fn a_bye_ends_the_connection_without_an_error() {
    let (mut client, mut bye) = (open_client(), vec![]);
    client.bye(&mut bye);
    assert_eq!(client.wants(), 0);
    let mut server = open_server();
    assert_eq!(server.feed(&mut &bye[..], &mut vec![]), Ok(Some(Arrival::Bye)));
    assert_eq!(server.wants(), 0);
}

#[test]
fn a_refusal_fits_however_long_its_text_is() {
    let mut out = vec![];
    Session::serving().refuse(Code::ACCESS, &"\u{1f512}".repeat(5000), &mut out);
    let told = Session::asking(a_hello(), &mut vec![]).feed(&mut &out[..], &mut vec![]);
    let text = "\u{1f512}".repeat(250);
    assert_eq!(told, Err(Broken::Refused { code: Code::ACCESS, text }));
}

/// One message of each kind, with values by which fields can be told apart.
fn one_of_each() -> Vec<Message> {
    let layout = Layout::striped(0x1000, 2, 3).unwrap();
    let attributes = |layout| {
        let (inode, kind, is_open) = (Inode(4), Kind::Directory, false);
        Attributes { inode, kind, mode: 0o755, layout, is_open }
    };
    let wish = OpenWish {
        reads: false,
        writes: true,
        creates: true,
        exclusive: false,
        mode: 0o644,
        layout: Some(layout),
    };
    let access = Access { view: ViewNumber(5), subfile: 6, from: 7, to: 8 };
    let (open, view, inode) = (OpenNumber(9), ViewNumber(5), Inode(4));
    let hold = HoldNumber(3);
    let file = Attributes { kind: Kind::File, is_open: true, ..attributes(Some(layout)) };
    let entries = vec![
        Entry { name: b"d".to_vec(), attributes: attributes(None) },
        Entry { name: b"f".to_vec(), attributes: file },
    ];
    vec![
        Message::Ping,
        Message::Pong,
        Message::Done,
        Message::Failed { code: Code::NO_ENTRY, text: "/a".to_owned() },
        Message::Open { path: b"/a".to_vec(), wish },
        Message::Opened(Opened { open, inode, layout, created: true }),
        Message::Close { open },
        Message::Look { path: b"/a".to_vec() },
        Message::Attributes(attributes(None)),
        Message::MakeDirectory { path: b"/d".to_vec(), mode: 0o755 },
        Message::Remove { path: b"/a".to_vec(), kind: Kind::File },
        Message::Rename { from: b"/a".to_vec(), to: b"/b".to_vec() },
        Message::List { path: b"/d".to_vec(), after: b"x".to_vec() },
        Message::Entries { entries, more: true },
        Message::Advance { open, setting: 1, from: 2, by: 3 },
        Message::Position { units: 5 },
        Message::SetView { view, inode, layout, offset: 10, total: 12, part: vec![0xaa, 0xbb] },
        Message::DropView { view },
        Message::Write(access),
        Message::Read(access),
        Message::Data { end: 8 },
        Message::Measure { inode, subfile: 6 },
        Message::End { bytes: 11 },
        Message::Resize { inode, subfile: 6, bytes: 11, extends: true },
        Message::Sync { inode, subfile: 6 },
        Message::Discard { inode },
        Message::Arrive {
            group: open,
            size: 4,
            rank: 3,
            sequence: 2,
            result: Code::IO,
            previous: Code::RANK_FAILED,
            last: true,
        },
        Message::Verdict { result: Code::IO, rank: 3 },
        Message::Hold { hold, inode, subfile: 6, from: 7, to: 8, excludes: true },
        Message::Release { hold, inode, subfile: 6 },
        Message::Resume { inode, subfile: 6 },
        Message::Grant { inode, subfile: 6, from: 7, to: 8, taken: 9, bytes: 10, more: 11 },
        Message::Granted { bytes: 11, missing: 12, unit: 13, refusal: Code::QUOTA },
        Message::Status,
        Message::Count,
        Message::Connected(vec![Connected { name: "rank 3".to_owned(), window_bytes: 7 }]),
        Message::Counts(Counts {
            memory: 9,
            used_bytes: 8,
            reads: 7,
            misses: 6,
            fetches: 5,
            flushes: 4,
            unsaved_bytes: 3,
            granted_bytes: 2,
        }),
        Message::Damage { pages: 8 },
        Message::Files { count: 7 },
    ]
}

fn hex(bytes: &[u8]) -> String {
    let pairs: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    pairs.join(" ")
}

/// The lines of a block of the document, up to its end, from the line that follows `title` on.
fn documented(title: &str) -> Vec<&'static str> {
    let text = include_str!("../../../docs/format/pfs-wire.md");
    let (_, behind) = text.split_once(title).expect("the document has it");
    let block = behind.split("```").nth(1).expect("a block follows");
    block.lines().skip(1).collect()
}

/// Kind, flags and fields, as the document lists them.
fn listed(frame: &[u8]) -> String {
    let [kind, flags] = [4, 6].map(|at| u16::from_le_bytes([frame[at], frame[at + 1]]));
    format!("{kind:2} {flags} {}", hex(&frame[HEADER_BYTES..])).trim_end().to_owned()
}

/// A frame of each kind, in the order of kinds.
fn all_frames() -> Vec<Vec<u8>> {
    let greetings = [
        Greeting::Hello(a_hello()),
        Greeting::Welcome(a_welcome()),
        Greeting::Refused { code: Code::ACCESS, text: "no".to_owned() },
        Greeting::Bye,
        Greeting::Segment(a_window()),
    ];
    let messages = one_of_each().into_iter();
    let sent = messages.map(|message| Sent { request: Request(9), message, payload: vec![] });
    let mut all: Vec<_> = greetings.iter().map(greeted).collect();
    all.extend(sent.map(|sent| framed(&sent, true)));
    all.sort_by_key(|frame| frame[4]);
    all
}

fn greeted(greeting: &Greeting) -> Vec<u8> {
    let mut frame = vec![];
    greeting.encode(&mut frame);
    frame
}

/// The frame that is written for what a frame with the right sum says, if it says anything.
fn written_again(kind: u16, flags: u16, fields: &[u8]) -> Option<Vec<u8>> {
    let frame = raw(kind, flags, fields, b"");
    let header = Header::decode(frame.first_chunk().unwrap()).unwrap();
    let mut again = vec![];
    match wire::decode(&header, fields) {
        Ok(message) => wire::encode(&message, header.request, 0, None, &mut again),
        Err(_) => again = greeted(&Greeting::decode(&header, fields).ok()?),
    }
    Some(again)
}

#[test]
fn fields_have_one_length_and_one_form() {
    for frame in all_frames() {
        let (kind, flags) = (frame[4].into(), frame[6].into());
        let fields = &frame[HEADER_BYTES..];
        for bytes in 0..fields.len() {
            assert_eq!(written_again(kind, flags, &fields[..bytes]), None, "{kind} {bytes}");
        }
        assert_eq!(written_again(kind, flags, &[fields, &[0]].concat()), None, "{kind}");
        for (at, value) in (0..fields.len()).flat_map(|at| [0, 1, 2, 3, 255].map(|to| (at, to))) {
            let mut changed = fields.to_vec();
            changed[at] = value;
            if let Some(again) = written_again(kind, flags, &changed) {
                let is_greeted_range = kind == 1 && at < 4;
                let is_same = again[HEADER_BYTES..] == changed;
                assert!(is_same || is_greeted_range, "{kind}: {changed:?}");
            }
        }
        for wrong in [0, 1, 3].into_iter().filter(|wrong| *wrong != flags) {
            assert_eq!(written_again(kind, wrong, fields), None, "{kind} with flags {wrong}");
        }
    }
}

#[test]
fn a_process_has_a_name_of_at_most_255_bytes() {
    let hello = |bytes| Hello { name: "n".repeat(bytes), ..a_hello() };
    let longest = greeted(&Greeting::Hello(hello(255)));
    assert!(written_again(1, 0, &longest[HEADER_BYTES..]).is_some());
    let mut longer = [&longest[HEADER_BYTES..], b"n"].concat();
    longer[21] = 0;
    longer[22] = 1;
    assert_eq!(written_again(1, 0, &longer), None);
}

#[test]
fn only_servers_refuse_and_only_welcomed_sessions_are_open() {
    let refused = greeted(&Greeting::Refused { code: Code::ACCESS, text: String::new() });
    let greeting = Some(Broken::Unexpected("a greeting that has no place here"));
    let told = Some(Broken::Refused { code: Code::ACCESS, text: String::new() });
    assert_eq!(ends(&refused), [greeting.clone(), greeting, told]);
    let mut client = open_client();
    let mut out = vec![];
    assert!(client.is_open());
    client.refuse(Code::BAD_MESSAGE, "", &mut out);
    assert!(out.is_empty() && !client.is_open());
    let mut server = Session::serving();
    assert!(!server.is_open());
    let hello = greeted(&Greeting::Hello(a_hello()));
    server.feed(&mut &hello[..], &mut out).unwrap();
    assert!(!server.is_open());
    server.welcome(a_welcome(), &mut out);
    assert!(server.is_open());
}

#[test]
fn payload_that_nobody_wants_is_wanted_to_be_skipped() {
    let (mut server, frame) = (open_server(), raw(81, 32, b"", &[7; 90]));
    let mut front = &frame[..HEADER_BYTES];
    assert_eq!(server.feed(&mut front, &mut vec![]), Ok(None));
    assert_eq!((server.wants(), server.payload_bytes()), (90, 0));
    assert_eq!(server.feed(&mut &frame[HEADER_BYTES..], &mut vec![]), Ok(None));
    assert_eq!(server.wants(), HEADER_BYTES);
}

#[test]
fn every_kind_has_the_bytes_that_the_document_says() {
    let all: Vec<_> = all_frames().iter().map(|frame| listed(frame)).collect();
    assert_eq!(documented("## One of each"), all, "\n{}", all.join("\n"));
}

/// The bytes of an example of the document.
fn worked_example(title: &str) -> String {
    let bytes = documented(title).into_iter().map(|line| line.split("  ").next().unwrap());
    bytes.collect::<Vec<_>>().join(" ")
}

#[test]
fn the_worked_example_of_the_document_is_what_is_sent() {
    let access = Access { view: ViewNumber(1), subfile: 0, from: 10, to: 14 };
    let message = Message::Write(access);
    let write = Sent { request: Request(5), message, payload: b"abcd".to_vec() };
    for (title, is_summed) in [("### With a sum", true), ("### Without a sum", false)] {
        assert_eq!(worked_example(title), hex(&framed(&write, is_summed)), "{title}");
    }
    let in_window = with_slot(&write.message, Slot { offset: 256 << 10, bytes: 4 });
    assert_eq!(worked_example("### In a window"), hex(&in_window));
}
