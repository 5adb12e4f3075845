//! Payload has the same fate whichever way it goes: through windows, through sockets, or both.

use iolab_pfs::OpenWish;
use iolab_pfs_node::Client;
use iolab_pfs_node::files::OpenFile;
use iolab_pfs_node::instance::{Instance, Wish};
use iolab_pfs_node::node::Node;
use iolab_pfs_node::status::connections;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

const TO_WRITE: OpenWish = OpenWish {
    reads: true,
    writes: true,
    creates: true,
    exclusive: false,
    mode: 0o600,
    layout: None,
};

/// No windows, one slot for all, room for a few, and as usual.
const BUDGETS: [Option<u64>; 4] = [Some(0), Some(256 << 10), Some(3 << 20), None];

fn serve(directory: &Path, window_memory: Option<u64>) -> Node {
    let wish = Wish {
        servers: Some(3),
        layout: Some("stripe:unit=4k".into()),
        window_memory,
        ..Wish::default()
    };
    Node::start(Instance::take(directory, &wish).unwrap()).unwrap()
}

/// A child has copies of all descriptors, those of other tests among them: while there is one, no lock of a
/// directory is free that a server has given back.
static CHILDREN: Mutex<()> = Mutex::new(());

fn byte(at: u64, salt: u64) -> u8 {
    ((at ^ salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// Where payload is too little for a slot, just enough, one transfer, and many.
const SIZES: [usize; 8] = [1, 2047, 2048, 6144, 262_144, 262_145, 800_000, 5_000_001];

/// Writes rows of all sizes over each other, reads them with what is around them, and tells what there is.
fn used(directory: &Path) -> Vec<(usize, Vec<u8>)> {
    let client = Client::of(directory).unwrap();
    let file = OpenFile::open(&client, b"/used", TO_WRITE).unwrap();
    let mut found = Vec::new();
    for (salt, &bytes) in SIZES.iter().enumerate().chain(SIZES.iter().rev().enumerate()) {
        let row: Vec<u8> = (0..bytes as u64).map(|at| byte(at, salt as u64)).collect();
        let at = 10_000 * salt as u64 + 77;
        file.write_at(at, &row).unwrap();
        let mut to = vec![0xee; bytes + 5000];
        let count = file.read_at(at - 50, &mut to).unwrap();
        assert!(to[50..50 + bytes] == row, "{bytes}");
        found.push((count, to));
    }
    let mut behind = vec![0xee; 300_000];
    found.push((file.read_at(5_000_000, &mut behind).unwrap(), behind));
    file.close().unwrap();
    found
}

#[test]
fn files_are_the_same_whichever_way_payload_goes() {
    let all = BUDGETS.map(|budget| {
        let directory = tempfile::tempdir().unwrap();
        let node = serve(directory.path(), budget);
        let found = used(directory.path());
        assert!(node.stop());
        found
    });
    assert!(all.iter().all(|found| *found == all[0]));
}

#[test]
fn servers_that_end_in_the_middle_of_transfers_leave_clients_and_their_bytes_well() {
    let _alone = CHILDREN.lock().unwrap_or_else(PoisonError::into_inner);
    for (budget, next) in BUDGETS.into_iter().zip([None, Some(0), Some(0), None]) {
        let directory = tempfile::tempdir().unwrap();
        let mut node = Some(serve(directory.path(), budget));
        let client = Client::of(directory.path()).unwrap();
        let file = OpenFile::open(&client, b"/f", TO_WRITE).unwrap();
        let rows: Vec<Vec<u8>> =
            (0..40).map(|salt| (0..2_000_000).map(|at| byte(at, salt)).collect()).collect();
        std::thread::scope(|scope| {
            let written = scope.spawn(|| {
                let mut to = vec![0; 2_000_000];
                for row in &rows {
                    file.write_at(13, row).unwrap();
                    assert_eq!(file.read_at(13, &mut to), Ok(2_000_000));
                    assert!(to == *row);
                }
            });
            while !written.is_finished() {
                node = None;
                node.get_or_insert_with(|| serve(directory.path(), next));
                std::thread::sleep(std::time::Duration::from_millis(30));
            }
        });
        drop(node);
    }
}

#[test]
fn clients_that_are_killed_in_the_middle_of_transfers_leave_servers_and_their_memory_well() {
    let _alone = CHILDREN.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    // Nothing is left for the next one if one that is gone keeps its windows.
    let node = serve(directory.path(), Some(3 * (256 << 10)));
    for round in 0..12u64 {
        // SAFETY: the child uses only what is made in it, until it is killed.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let client = Client::of(directory.path()).unwrap();
            let file = OpenFile::open(&client, b"/theirs", TO_WRITE).unwrap();
            let mut row = vec![5; 3_000_000];
            loop {
                let _ = file.write_at(0, &row).and_then(|()| file.read_at(0, &mut row));
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(20 + round * 7));
        let mut status = 0;
        // SAFETY: ends and waits for the child that was just made.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, &mut status, 0);
        }
        assert_eq!(libc::WTERMSIG(status), libc::SIGKILL);
        while !connections(directory.path()).unwrap().is_empty() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let client = Client::of(directory.path()).unwrap();
        let file = OpenFile::open(&client, b"/ours", TO_WRITE).unwrap();
        let row: Vec<u8> = (0..1_000_000).map(|at| byte(at, round)).collect();
        let mut to = vec![0; row.len()];
        file.write_at(0, &row).unwrap();
        assert_eq!(file.read_at(0, &mut to), Ok(row.len()));
        assert!(to == row);
        assert_eq!(windows(directory.path()), [256 << 10; 3], "in round {round}");
    }
    assert!(node.stop());
}

#[test]
fn a_process_whose_address_space_is_short_keeps_it_for_itself() {
    let _alone = CHILDREN.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let node = serve(directory.path(), None);
    // SAFETY: the child uses only what is made in it, and leaves without running anything else.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let limit = rustix::process::Rlimit { current: Some(1 << 29), maximum: Some(1 << 29) };
        rustix::process::setrlimit(rustix::process::Resource::As, limit).unwrap();
        let client = Client::of(directory.path()).unwrap();
        let file = OpenFile::open(&client, b"/f", TO_WRITE).unwrap();
        let (row, mut to) = (vec![5; 300_000], vec![0; 300_000]);
        file.write_at(0, &row).unwrap();
        file.read_at(0, &mut to).unwrap();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let is_well = to == row && !maps.contains("iolab window");
        // SAFETY: ends the child, and nothing of the parent in it.
        unsafe { libc::_exit(if is_well { 0 } else { 1 }) };
    }
    let mut status = 1;
    // SAFETY: waits for the child that was just made.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(status, 0);
    assert!(node.stop());
}

/// The windows of the only client.
fn windows(directory: &Path) -> Vec<u64> {
    let mut all = connections(directory).unwrap();
    let own = all.remove(&format!("process {}", std::process::id())).unwrap();
    assert!(all.is_empty(), "{all:?}");
    own
}

#[test]
fn servers_tell_who_is_connected_and_how_payload_goes() {
    for (budget, each) in [(Some(0), 0), (None, 4 << 20)] {
        let directory = tempfile::tempdir().unwrap();
        let node = serve(directory.path(), budget);
        assert!(connections(directory.path()).unwrap().is_empty());
        let client = Client::of(directory.path()).unwrap();
        let file = OpenFile::open(&client, b"/f", TO_WRITE).unwrap();
        file.write_at(0, &[1; 20_000]).unwrap();
        assert_eq!(windows(directory.path()), [each; 3]);
        drop(node);
        assert!(connections(directory.path()).is_err());
    }
}
