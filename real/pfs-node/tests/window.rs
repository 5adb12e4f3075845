//! Payload has the same fate whichever way it goes: through windows, through sockets, or both.

use iolab_pfs::OpenWish;
use iolab_pfs_node::Client;
use iolab_pfs_node::files::OpenFile;
use iolab_pfs_node::instance::{Instance, Wish};
use iolab_pfs_node::node::Node;
use std::path::Path;

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
    let wish = Wish { servers: Some(3), layout: Some("stripe:unit=4k".into()), window_memory };
    Node::start(Instance::take(directory, &wish).unwrap()).unwrap()
}

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
