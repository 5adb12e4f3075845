//! Both ends of a connection in one thread.

use super::*;
use crate::outgoing::NoRows;
use iolab_pfs::session::Role;
use iolab_pfs::{Access, Incarnation, Party, SessionId, ViewNumber};
use iolab_policy::placement::catalog as placement;
use iolab_policy::write_policy::catalog as write_policy;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

const ACCESS: Access = Access { view: ViewNumber(0), subfile: 0, from: 0, to: 1 << 30 };

/// Somebody who asks, and a server that gives them a window of that budget, after the handshake.
fn connected(bytes: u64, buffers: &mut Buffers) -> (Channel, Channel) {
    let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
    let ends = rustix::net::socketpair(family, kind, SocketFlags::CLOEXEC, None).unwrap();
    let name = "a test".to_owned();
    let hello = Hello { session: SessionId(1), role: Role::Client, name };
    let (mut asker, mut server) = (Channel::asking(ends.0, hello), Channel::serving(ends.1));
    asker.send(&NoRows, buffers).unwrap();
    assert!(matches!(server.receive(buffers), Ok(Some(Received::Hello(_)))));
    assert!(matches!(server.receive(buffers), Ok(None)));
    let (incarnation, party) = (Incarnation(1), Party::Server(0));
    let welcome = Welcome {
        incarnation,
        known: false,
        party,
        servers: 1,
        caches: 0,
        placement: placement::USUAL,
        write_policy: write_policy::USUAL,
    };
    server.welcome(welcome, Some(&Budget::of(Some(bytes))));
    server.send(&NoRows, buffers).unwrap();
    assert!(matches!(asker.receive(buffers), Ok(Some(Received::Welcome(_)))));
    assert!(matches!(asker.receive(buffers), Ok(None)));
    (asker, server)
}

fn sent(from: &mut Channel, to: &mut Channel, buffers: &mut Buffers) -> Result<Payload, Lost> {
    from.send(&NoRows, buffers).unwrap();
    let received = to.receive(buffers)?.expect("all of it is there");
    assert!(matches!(to.receive(buffers), Ok(None)));
    match received {
        Received::Message { payload: Some((buffer, _)), .. } => Ok(buffers.claim(buffer)),
        Received::Message { payload: None, .. } => Ok(Payload::Buffer(Vec::new(), 0)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn payload_of_writes_and_replies_goes_through_the_window_and_slots_are_used_again() {
    let (buffers, data) = (&mut Buffers::default(), Message::Data { end: 0 });
    let (mut asker, mut server) = connected(64 << 20, buffers);
    for round in 0..3u8 {
        let (write, read) = (Request(u64::from(round) * 2), Request(u64::from(round) * 2 + 1));
        let mut slot = asker.slot_for(200_000).unwrap();
        assert_eq!(slot.slot().offset, 0);
        slot.bytes_mut().fill(round);
        asker.push_with_slot(write, &Message::Write(ACCESS), slot);
        let payload = sent(&mut asker, &mut server, buffers).unwrap();
        assert!(payload.bytes() == [round; 200_000]);
        server.reply(write, &Message::Done, None);
        sent(&mut server, &mut asker, buffers).unwrap();

        let room = asker.room_for(ACCESS.to).unwrap();
        assert_eq!(room.slot(), Slot { offset: 0, bytes: 256 << 10 });
        asker.push_with_slot(read, &Message::Read(ACCESS), room);
        sent(&mut asker, &mut server, buffers).unwrap();
        assert!(server.room(read, (256 << 10) + 1).is_none());
        assert!(server.room(Request(99), 1).is_none());
        let mut to = server.room(read, 70_000).unwrap();
        to.bytes_mut().fill(round + 100);
        server.reply(read, &data, Some(Payload::Stretch(to)));
        assert!(server.rooms.is_empty());
        let payload = sent(&mut server, &mut asker, buffers).unwrap();
        assert!(payload.bytes() == [round + 100; 70_000]);
        assert!(matches!(payload, Payload::Stretch(_)));
    }
}

#[test]
fn a_reply_anywhere_but_in_the_front_of_its_slot_is_the_end_of_the_connection() {
    let wrong = |asks: bool, slot: Slot| {
        let buffers = &mut Buffers::default();
        let (mut asker, mut server) = connected(64 << 20, buffers);
        if asks {
            let room = asker.room_for(10_000).unwrap();
            asker.push_with_slot(Request(1), &Message::Read(ACCESS), room);
        }
        server.push_head(Request(1), &Message::Data { end: 0 }, slot);
        sent(&mut server, &mut asker, buffers).map(drop)
    };
    assert!(wrong(true, Slot { offset: 0, bytes: 10_000 }).is_ok());
    for (asks, offset, bytes) in
        [(false, 0, 10), (true, 1, 10), (true, 0, 10_001), (true, 256 << 10, 10)]
    {
        let lost = wrong(asks, Slot { offset, bytes });
        assert!(matches!(lost, Err(Lost::Broken(_))), "{offset} {bytes}: {lost:?}");
    }
}

#[test]
fn a_reply_from_the_window_of_a_lost_connection_comes_through_the_socket() {
    let buffers = &mut Buffers::default();
    let (_, before) = connected(64 << 20, buffers);
    let (mut asker, mut server) = connected(64 << 20, buffers);
    let slot = Slot { offset: 4096, bytes: 5000 };
    let mut stretch = before.window.as_ref().unwrap().stretch(slot).unwrap();
    stretch.bytes_mut().fill(3);
    drop(before);
    server.reply(Request(1), &Message::Data { end: 0 }, Some(Payload::Stretch(stretch)));
    let payload = sent(&mut server, &mut asker, buffers).unwrap();
    assert!(payload.bytes() == [3; 5000] && matches!(payload, Payload::Buffer(..)));
}

#[test]
fn who_gets_no_window_has_no_slots_and_little_payload_needs_none() {
    let buffers = &mut Buffers::default();
    let (asker, server) = connected(0, buffers);
    assert!(asker.slot_for(1 << 20).is_none() && server.room(Request(1), 1).is_none());
    let (asker, _server) = connected(64 << 20, buffers);
    assert!(asker.slot_for(IN_WINDOW_BYTES_MIN - 1).is_none() && asker.room_for(8).is_none());
    let all: Vec<_> = std::iter::from_fn(|| asker.slot_for(256 << 10)).collect();
    assert_eq!(all.len(), 16);
}
