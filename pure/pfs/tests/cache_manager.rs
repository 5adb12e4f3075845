//! What a cache manager asks of servers, and what it does not.

use iolab_pattern::Nest;
use iolab_pfs::cache_manager::{Action, CacheManager, Event, Settings};
use iolab_pfs::{
    Access, Buffer, Code, Incarnation, Inode, Layout, Message, Party, PartyAction, PartyEvent,
    Peer, PeerAction, PeerEvent, Request, SessionId, ViewNumber,
};
use iolab_policy::Machine;
use iolab_policy::placement;
use iolab_policy::write_policy;
use iolab_vocab::Nanos;

const UNIT: u64 = 64;
const PEER: Peer = Peer(1);
const FILE: Inode = Inode(5);

/// A manager with one client, whose view is the whole file, and one server that is connected.
struct Scene {
    manager: CacheManager,
    now: Nanos,
    last: u64,
}

impl Scene {
    fn new() -> Scene {
        Scene::with_grants(0)
    }

    /// Where servers must grant room, and so much of it is asked for beyond what is needed.
    fn with_grants(grant_bytes: u64) -> Scene {
        Scene::with(Scene::settings(grant_bytes))
    }

    fn settings(grant_bytes: u64) -> Settings {
        Settings { block_bytes: UNIT, grant_bytes, ..Settings::usual(0, 1, 1) }
    }

    fn with(settings: Settings) -> Scene {
        let (manager, now) = (CacheManager::new(settings), Nanos(1));
        let mut scene = Scene { manager, now, last: 0 };
        scene.hears(Event::Peer(PeerEvent::Up { peer: PEER, session: SessionId(1) }));
        let mut part = Vec::new();
        Nest::WHOLE_FILE.encode(&mut part);
        let layout = Layout::striped(UNIT, 1, 0).unwrap();
        let (view, total) = (ViewNumber(1), part.len() as u32);
        scene.asks(Message::SetView { view, inode: FILE, layout, offset: 0, total, part }, None);
        scene
    }

    fn hears(&mut self, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        self.manager.step(self.now, event, &mut actions);
        if actions.iter().any(|action| matches!(action, Action::Party(PartyAction::Connect { .. })))
        {
            self.manager.step(self.now, connected(Incarnation(1)), &mut actions);
        }
        actions
    }

    fn asks(&mut self, message: Message, bytes: Option<u64>) -> Vec<Action> {
        self.last += 1;
        let payload = bytes.map(|bytes| (Buffer(self.last), bytes));
        let request = Request(self.last);
        self.hears(Event::Peer(PeerEvent::Asked { peer: PEER, request, message, payload }))
    }

    fn writes(&mut self, from: u64, to: u64) -> Vec<Action> {
        self.asks(Message::Write(access(from, to)), Some(to - from))
    }

    /// The server answers a question of the manager.
    fn told(
        &mut self,
        question: &Action,
        message: Message,
        payload: Option<Buffer>,
    ) -> Vec<Action> {
        let Action::Party(PartyAction::Ask { to, request, .. }) = question else {
            panic!("{question:?}")
        };
        let (from, request) = (*to, *request);
        self.hears(Event::Party(PartyEvent::Replied { from, request, message, payload }))
    }
}

/// The server is there, in that life.
fn connected(incarnation: Incarnation) -> Event {
    Event::Party(PartyEvent::Connected { to: Party::Server(0), incarnation, known: false })
}

fn access(from: u64, to: u64) -> Access {
    Access { view: ViewNumber(1), subfile: 0, from, to }
}

/// The reads and writes that servers are asked for.
fn asked(actions: &[Action]) -> Vec<Action> {
    let is_asked = |action: &&Action| {
        let Action::Party(PartyAction::Ask { message, .. }) = action else { return false };
        matches!(message, Message::Read(_) | Message::Write(_))
    };
    actions.iter().filter(is_asked).cloned().collect()
}

fn replies(actions: &[Action]) -> Vec<&Message> {
    fn reply(action: &Action) -> Option<&Message> {
        match action {
            Action::Peer(PeerAction::Reply { message, .. }) => Some(message),
            _ => None,
        }
    }
    actions.iter().filter_map(reply).collect()
}

#[test]
fn a_partial_write_is_answered_without_a_server_and_read_back_where_it_wrote() {
    let mut scene = Scene::new();
    let actions = scene.writes(10, 20);
    assert_eq!((replies(&actions), asked(&actions)), (vec![&Message::Done], vec![]));
    let actions = scene.asks(Message::Read(access(12, 18)), None);
    assert_eq!(replies(&actions), [&Message::Data { end: 18 }]);
    assert!(asked(&actions).is_empty());
}

#[test]
fn what_is_missing_is_fetched_once_and_fills_only_the_gaps() {
    let mut scene = Scene::new();
    scene.writes(10, 20);
    let first = scene.asks(Message::Read(access(0, 30)), None);
    let second = scene.asks(Message::Read(access(0, 64)), None);
    assert_eq!((asked(&first).len(), asked(&second).len()), (1, 0));
    let actions = scene.told(&asked(&first)[0], Message::Data { end: 40 }, Some(Buffer(99)));
    let fill = actions.iter().find_map(|action| match action {
        Action::Fill { bytes, runs, .. } => Some((*bytes, runs.clone())),
        _ => None,
    });
    assert_eq!(fill, Some((40, vec![(0, 10), (20, 64)])));
    assert_eq!(replies(&actions), [&Message::Data { end: 30 }, &Message::Data { end: 40 }]);
}

#[test]
fn a_sync_waits_for_the_runs_that_were_written_and_for_those_written_meanwhile_before_it() {
    let mut scene = Scene::new();
    scene.writes(10, 20);
    scene.writes(30, 35);
    let sync = || Message::Sync { inode: FILE, subfile: 0 };
    let first = scene.asks(sync(), None);
    let writes = asked(&first);
    let span = |action: &Action| match action {
        Action::Party(PartyAction::Ask { message: Message::Write(access), .. }) => {
            (access.from, access.to)
        }
        _ => panic!("{action:?}"),
    };
    assert_eq!(writes.iter().map(span).collect::<Vec<_>>(), [(10, 20), (30, 35)]);
    scene.writes(20, 25);
    assert!(replies(&scene.asks(sync(), None)).is_empty());
    assert!(replies(&scene.told(&writes[0], Message::Done, None)).is_empty());
    let actions = scene.told(&writes[1], Message::Done, None);
    assert_eq!(replies(&actions), [&Message::Done]);
    let again = asked(&actions);
    assert_eq!(again.iter().map(span).collect::<Vec<_>>(), [(20, 25)]);
    assert_eq!(replies(&scene.told(&again[0], Message::Done, None)), [&Message::Done]);
    assert_eq!(scene.manager.counts().unsaved_bytes, 0);
}

#[test]
fn a_sync_over_data_that_the_server_does_not_take_fails_and_the_data_stays() {
    let mut scene = Scene::new();
    scene.writes(10, 20);
    let sync = scene.asks(Message::Sync { inode: FILE, subfile: 0 }, None);
    let full = Message::Failed { code: Code::NO_SPACE, text: String::new() };
    let actions = scene.told(&asked(&sync)[0], full, None);
    let codes: Vec<_> = replies(&actions)
        .into_iter()
        .map(|message| match message {
            Message::Failed { code, .. } => *code,
            _ => Code::OK,
        })
        .collect();
    assert_eq!(codes, [Code::NO_SPACE]);
    assert_eq!(scene.manager.counts().unsaved_bytes, UNIT);
    scene.now = scene.now.after(Nanos(6_000_000_000));
    assert_eq!(asked(&scene.hears(Event::Woke)).len(), 1);
}

fn cut() -> Message {
    Message::Resize { inode: FILE, subfile: 0, bytes: 30, extends: true }
}

#[test]
fn a_cut_over_data_that_the_server_does_not_take_fails_and_others_go_on_with_the_data() {
    let mut scene = Scene::new();
    scene.writes(0, 60);
    let flush = scene.asks(cut(), None);
    assert!(replies(&scene.asks(Message::Read(access(50, 60)), None)).is_empty());
    let full = || Message::Failed { code: Code::NO_SPACE, text: "full".into() };
    let actions = scene.told(&asked(&flush)[0], full(), None);
    let refused = Message::Failed { code: Code::NO_SPACE, text: "I/O server 0: full".into() };
    assert_eq!(replies(&actions), [&refused, &Message::Data { end: 60 }]);
    assert_eq!(scene.manager.counts().unsaved_bytes, UNIT);
}

#[test]
fn whoever_changes_the_length_holds_others_back_until_it_lets_them_go_on() {
    let mut scene = Scene::new();
    scene.writes(0, 60);
    let flush = scene.asks(cut(), None);
    assert!(replies(&flush).is_empty(), "the server does not have what is cut");
    assert!(replies(&scene.writes(50, 55)).is_empty());
    assert_eq!(replies(&scene.told(&asked(&flush)[0], Message::Done, None)), [&Message::Done]);
    let resume = || Message::Resume { inode: FILE, subfile: 0 };
    let actions = scene.asks(resume(), None);
    assert_eq!(replies(&actions), [&Message::Done, &Message::Done]);
    let refused = scene.asks(resume(), None);
    let codes = replies(&refused);
    assert!(matches!(codes[..], [Message::Failed { code: Code::SESSION_LOST, .. }]), "{codes:?}");
    let length = scene.asks(Message::Measure { inode: FILE, subfile: 0 }, None);
    assert_eq!(replies(&length), [&Message::End { bytes: 55 }]);
}

/// The wishes for room in them: what is in use, and what is needed in all.
fn wishes(actions: &[Action]) -> Vec<(Action, u64, u64)> {
    let wish = |action: &Action| match action {
        Action::Party(PartyAction::Ask {
            message: Message::Grant { taken, bytes, .. }, ..
        }) => Some((action.clone(), *taken, *bytes)),
        _ => None,
    };
    actions.iter().filter_map(wish).collect()
}

fn granted(bytes: u64, missing: u64) -> Message {
    Message::Granted { bytes, missing, unit: UNIT, refusal: Code::NO_SPACE }
}

fn is_full(message: &Message) -> bool {
    matches!(message, Message::Failed { code: Code::NO_SPACE, .. })
}

#[test]
fn a_write_is_answered_once_its_server_has_room_for_it_and_the_next_ones_need_not_ask() {
    let mut scene = Scene::with_grants(2 * UNIT);
    let actions = scene.writes(10, 20);
    assert_eq!((replies(&actions).len(), wishes(&actions).len()), (0, 1));
    let actions = scene.told(&wishes(&actions)[0].0, granted(3 * UNIT, UNIT), None);
    assert_eq!(replies(&actions), [&Message::Done]);
    for from in [UNIT, 2 * UNIT, 10] {
        let actions = scene.writes(from, from + 8);
        assert_eq!((replies(&actions), wishes(&actions)), (vec![&Message::Done], vec![]));
    }
    let actions = scene.writes(3 * UNIT, 3 * UNIT + 1);
    let (_, taken, bytes) = wishes(&actions)[0];
    assert_eq!((taken, replies(&actions).len()), (3 * UNIT, 0));
    assert_eq!(bytes, 4 * UNIT);
    assert_eq!(scene.manager.counts().unsaved_bytes, 3 * UNIT);
}

#[test]
fn a_write_that_its_server_has_no_room_for_is_told_so_and_leaves_nothing_to_be_flushed() {
    let mut scene = Scene::with_grants(2 * UNIT);
    let actions = scene.writes(10, 20);
    let actions = scene.told(&wishes(&actions)[0].0, granted(0, UNIT), None);
    assert!(is_full(replies(&actions)[0]), "{actions:?}");
    assert_eq!(scene.manager.counts().unsaved_bytes, 0);
    // Room has been made since.
    let actions = scene.writes(10, 20);
    let actions = scene.told(&wishes(&actions)[0].0, granted(UNIT, UNIT), None);
    assert_eq!(replies(&actions), [&Message::Done]);
}

#[test]
fn a_write_that_a_server_has_no_room_for_is_told_what_the_server_says_of_it() {
    let mut scene = Scene::with_grants(2 * UNIT);
    let actions = scene.writes(10, 20);
    let none = Message::Granted { bytes: 0, missing: UNIT, unit: UNIT, refusal: Code::QUOTA };
    let actions = scene.told(&wishes(&actions)[0].0, none, None);
    let Message::Failed { code, .. } = replies(&actions)[0] else { panic!("{actions:?}") };
    assert_eq!(*code, Code::QUOTA);
}

#[test]
fn a_write_through_is_answered_when_its_server_has_it_and_told_if_that_does_not_take_it() {
    let mut scene = Scene::with(Settings {
        write_policy: write_policy::find("through").unwrap(),
        ..Scene::settings(0)
    });
    let actions = scene.writes(10, 20);
    let flush = asked(&actions);
    assert_eq!((replies(&actions).len(), flush.len()), (0, 1));
    // Nobody reads what a crash could take back.
    let reads = scene.asks(Message::Read(access(12, 18)), None);
    assert!(replies(&reads).is_empty() && asked(&reads).is_empty(), "{reads:?}");
    let actions = scene.told(&flush[0], Message::Done, None);
    assert_eq!(replies(&actions), [&Message::Done, &Message::Data { end: 18 }]);
    assert_eq!(scene.manager.counts().unsaved_bytes, 0);
    let flush = asked(&scene.writes(30, 40));
    let broken = Message::Failed { code: Code::IO, text: "broken".to_owned() };
    let actions = scene.told(&flush[0], broken, None);
    assert!(matches!(replies(&actions)[0], Message::Failed { code: Code::IO, .. }), "{actions:?}");
}

#[test]
fn a_manager_refuses_what_the_placement_gives_to_another_one() {
    let whose = |placement: &str| {
        let placement = placement::find(placement).unwrap();
        let mut scene =
            Scene::with(Settings { placement, index: 1, caches: 2, ..Scene::settings(0) });
        let actions = scene.writes(10, 20);
        matches!(replies(&actions)[0], Message::Done)
    };
    // Byte 0 is the first manager's, or nobody's.
    let refused = ["modulo", "at-servers", "local", "cruel"].map(whose);
    assert_eq!(refused, [false; 4]);
}

#[test]
fn what_replaces_data_on_a_full_device_needs_no_room() {
    let mut scene = Scene::with_grants(2 * UNIT);
    let actions = scene.writes(10, 20);
    let actions = scene.told(&wishes(&actions)[0].0, granted(0, 0), None);
    assert_eq!(replies(&actions), [&Message::Done]);
    assert_eq!(scene.manager.counts().unsaved_bytes, UNIT);
}

#[test]
fn blocks_are_flushed_before_a_write_is_refused_and_what_they_took_is_spent() {
    let mut scene = Scene::with_grants(UNIT);
    let actions = scene.writes(0, 8);
    scene.told(&wishes(&actions)[0].0, granted(UNIT, UNIT), None);
    let actions = scene.writes(UNIT, UNIT + 8);
    let actions = scene.told(&wishes(&actions)[0].0, granted(UNIT, UNIT), None);
    let flush = asked(&actions);
    assert_eq!((flush.len(), replies(&actions).len()), (1, 0));
    let actions = scene.told(&flush[0], Message::Done, None);
    let (again, taken, bytes) = wishes(&actions).remove(0);
    assert_eq!((taken, bytes), (0, UNIT));
    let actions = scene.told(&again, granted(UNIT - 1, UNIT), None);
    assert!(is_full(replies(&actions)[0]), "{actions:?}");
    assert_eq!(scene.manager.counts().unsaved_bytes, 0);
}

#[test]
fn room_that_nobody_uses_goes_back() {
    let mut scene = Scene::with_grants(7 * UNIT);
    let actions = scene.writes(0, 8);
    scene.told(&wishes(&actions)[0].0, granted(8 * UNIT, UNIT), None);
    assert_eq!(scene.manager.counts().granted_bytes, 8 * UNIT);
    let actions = scene.asks(Message::Sync { inode: FILE, subfile: 0 }, None);
    scene.told(&asked(&actions)[0], Message::Done, None);
    assert_eq!(scene.manager.counts().granted_bytes, 7 * UNIT);
    scene.now = Nanos(5_000_000_000);
    assert_eq!(wishes(&scene.hears(Event::Woke)), [], "not yet");
    scene.now = Nanos(5_000_000_001);
    let back = wishes(&scene.hears(Event::Woke));
    assert_eq!((back.len(), back[0].1, back[0].2), (1, 0, 0));
    scene.told(&back[0].0, granted(0, 0), None);
    assert_eq!(scene.manager.counts().granted_bytes, 0);
}

#[test]
fn a_server_in_a_new_life_is_asked_for_what_is_in_use() {
    let mut scene = Scene::with_grants(7 * UNIT);
    let actions = scene.writes(0, 8);
    scene.told(&wishes(&actions)[0].0, granted(8 * UNIT, UNIT), None);
    scene.hears(Event::Party(PartyEvent::Disconnected { from: Party::Server(0) }));
    let asked = wishes(&scene.hears(connected(Incarnation(2))));
    assert_eq!((asked.len(), asked[0].1, asked[0].2), (1, UNIT, UNIT));
}
