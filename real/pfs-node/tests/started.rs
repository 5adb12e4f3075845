//! Calls that go on beside the program.

use iolab_pattern::Nest;
use iolab_pfs::OpenWish;
use iolab_pfs::client::{Call, Done, FileNumber};
use iolab_pfs_node::instance::{Instance, Wish};
use iolab_pfs_node::node::Node;
use iolab_pfs_node::{Client, Memory, NoMemory};
use iolab_vocab::Direction;
use std::sync::{Arc, Mutex};

const TO_WRITE: OpenWish =
    OpenWish { writes: true, creates: true, mode: 0o600, ..OpenWish::TO_READ };

/// Bytes that the test looks at when the call is over.
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Memory for Shared {
    fn row(&self, _at: u64, _bytes: usize) -> Option<&[u8]> {
        None
    }

    fn gather(&self, at: u64, to: &mut [u8]) {
        to.copy_from_slice(&self.0.lock().unwrap()[at as usize..][..to.len()]);
    }

    fn scatter(&mut self, at: u64, from: &[u8]) {
        self.0.lock().unwrap()[at as usize..][..from.len()].copy_from_slice(from);
    }

    fn zero(&mut self, at: u64, bytes: u64) {
        self.0.lock().unwrap()[at as usize..][..bytes as usize].fill(0);
    }
}

fn served() -> (tempfile::TempDir, Node) {
    let directory = tempfile::tempdir().unwrap();
    let wish = Wish { servers: Some(3), ..Wish::default() };
    let node = Node::start(Instance::take(directory.path(), &wish).unwrap()).unwrap();
    (directory, node)
}

fn opened(client: &Client) -> FileNumber {
    let open = Call::Open { path: b"/f".to_vec(), wish: TO_WRITE };
    let Ok(Done::Opened(opened)) = client.call(open, &mut NoMemory) else { panic!("no file") };
    let adopt = Call::Adopt { opened, rank: 0, size: 1 };
    let Ok(Done::Adopted(file)) = client.call(adopt, &mut NoMemory) else { panic!("no file") };
    file
}

fn access(file: FileNumber, direction: Direction, from: u64, bytes: u64) -> Call {
    let view = Arc::new(Nest::WHOLE_FILE);
    Call::Access { file, direction, view, from, to: from + bytes, collective: false }
}

#[test]
fn calls_end_by_themselves_and_in_the_order_of_the_program_where_they_meet() {
    let (directory, node) = served();
    let client = Client::of(directory.path()).unwrap();
    let file = opened(&client);
    let memory = |byte: u8| Arc::new(Mutex::new(vec![byte; 2_000_000]));
    let start = |direction, from, memory: &Arc<Mutex<Vec<u8>>>| {
        let bytes = memory.lock().unwrap().len() as u64;
        client
            .start(access(file, direction, from, bytes), Box::new(Shared(memory.clone())))
            .unwrap()
    };
    let seen = memory(0);
    let calls = [
        start(Direction::Write, 0, &memory(1)),
        start(Direction::Write, 1_000_000, &memory(2)),
        start(Direction::Read, 500_000, &seen),
        start(Direction::Write, 0, &memory(3)),
    ];
    // Nobody waits in the client; one is given up, and carried out all the same.
    let [first, second, read, last] = calls;
    drop(second);
    let ended = loop {
        if let Some(outcome) = last.outcome() {
            break outcome;
        }
        client.pause();
    };
    assert_eq!(ended, Ok(Done::Bytes(2_000_000)));
    assert_eq!(read.wait(None), Ok(Done::Bytes(2_000_000)));
    assert_eq!(first.outcome(), Some(Ok(Done::Bytes(2_000_000))));
    let seen = seen.lock().unwrap();
    assert!(seen[..500_000] == [1; 500_000] && seen[500_000..] == [2; 1_500_000]);
    assert!(node.stop());
}

#[test]
fn a_forked_child_has_no_part_in_calls_of_its_parent() {
    let (directory, node) = served();
    let client = Client::of(directory.path()).unwrap();
    let file = opened(&client);
    let memory = Arc::new(Mutex::new(vec![7; 4_000_000]));
    let call = access(file, Direction::Write, 0, 4_000_000);
    let started = client.start(call, Box::new(Shared(memory))).unwrap();
    // SAFETY: the child uses only what this test hands it, and leaves without running anything else.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let refused = started.outcome().is_some_and(|outcome| outcome.is_err());
        let own = client.call(Call::Look { path: b"/f".to_vec() }, &mut NoMemory).is_ok();
        // SAFETY: ends the child, and nothing of the parent in it.
        unsafe { libc::_exit(if refused && own { 0 } else { 1 }) };
    }
    let mut status = 1;
    // SAFETY: waits for the child that was just made.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!((status, started.wait(None)), (0, Ok(Done::Bytes(4_000_000))));
    assert!(node.stop());
}
