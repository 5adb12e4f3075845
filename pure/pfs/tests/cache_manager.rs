//! What a cache manager asks of servers, and what it does not.

use iolab_pattern::Nest;
use iolab_pfs::cache_manager::{Action, CacheManager, Event, Settings};
use iolab_pfs::{
    Access, Buffer, Code, Incarnation, Inode, Layout, Message, Party, Peer, Request, SessionId,
    ViewNumber,
};
use iolab_policy::Machine;
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
        let settings = Settings { block_bytes: UNIT, ..Settings::usual(0, 1, 1) };
        let (manager, now) = (CacheManager::new(settings), Nanos(1));
        let mut scene = Scene { manager, now, last: 0 };
        scene.hears(Event::PeerUp { peer: PEER, session: SessionId(1) });
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
        if actions.iter().any(|action| matches!(action, Action::Connect { .. })) {
            let incarnation = Incarnation(1);
            let up = Event::Connected { to: Party::Server(0), incarnation, known: false };
            self.manager.step(self.now, up, &mut actions);
        }
        actions
    }

    fn asks(&mut self, message: Message, bytes: Option<u64>) -> Vec<Action> {
        self.last += 1;
        let payload = bytes.map(|bytes| (Buffer(self.last), bytes));
        let request = Request(self.last);
        self.hears(Event::Asked { peer: PEER, request, message, payload })
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
        let Action::Ask { to, request, .. } = question else { panic!("{question:?}") };
        self.hears(Event::Replied { from: *to, request: *request, message, payload })
    }
}

fn access(from: u64, to: u64) -> Access {
    Access { view: ViewNumber(1), subfile: 0, from, to }
}

/// The reads and writes that servers are asked for.
fn asked(actions: &[Action]) -> Vec<Action> {
    let is_asked = |action: &&Action| {
        matches!(action, Action::Ask { message: Message::Read(_) | Message::Write(_), .. })
    };
    actions.iter().filter(is_asked).cloned().collect()
}

fn replies(actions: &[Action]) -> Vec<&Message> {
    fn reply(action: &Action) -> Option<&Message> {
        match action {
            Action::Reply { message, .. } => Some(message),
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
        Action::Ask { message: Message::Write(access), .. } => (access.from, access.to),
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
