//! An instance with cache managers on real sockets and files: the same files as without.

use iolab_pattern::Nest;
use iolab_pfs::client::{Call, Done, FileNumber};
use iolab_pfs::{Layout, OpenWish, Opened};
use iolab_pfs_node::files::OpenFile;
use iolab_pfs_node::instance::{Instance, Wish};
use iolab_pfs_node::node::Node;
use iolab_pfs_node::{Client, Memory, NoMemory};
use iolab_vocab::Direction;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

const TO_WRITE: OpenWish =
    OpenWish { writes: true, creates: true, mode: 0o640, ..OpenWish::TO_READ };

fn serve(directory: &Path, caches: u32) -> Node {
    serve_with(directory, Wish { caches: Some(caches), ..Wish::default() })
}

fn serve_with(directory: &Path, wish: Wish) -> Node {
    let layout = Some("stripe:unit=4k".to_owned());
    let wish = Wish { servers: Some(3), layout, ..wish };
    Node::start(Instance::take(directory, &wish).unwrap()).unwrap()
}

fn served(caches: u32) -> (TempDir, Node) {
    let directory = tempfile::tempdir().unwrap();
    let node = serve(directory.path(), caches);
    (directory, node)
}

fn byte(at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// Bytes in a row.
struct Row(Vec<u8>);

impl Memory for Row {
    fn row(&self, at: u64, bytes: usize) -> Option<&[u8]> {
        self.0.get(at as usize..at as usize + bytes)
    }

    fn gather(&self, at: u64, to: &mut [u8]) {
        to.copy_from_slice(&self.0[at as usize..at as usize + to.len()]);
    }

    fn scatter(&mut self, at: u64, from: &[u8]) {
        self.0[at as usize..at as usize + from.len()].copy_from_slice(from);
    }

    fn zero(&mut self, at: u64, bytes: u64) {
        self.0[at as usize..(at + bytes) as usize].fill(0);
    }
}

fn done(client: &Client, call: Call, memory: &mut dyn Memory) -> Done {
    client.call(call, memory).unwrap_or_else(|failure| panic!("{failure:?}"))
}

/// Each rank writes the runs of a view of its own; together they are the first `bytes` bytes.
fn write_interleaved(directory: &Path, opened: Opened, ranks: u64, bytes: u64) {
    std::thread::scope(|scope| {
        for rank in 0..ranks {
            scope.spawn(move || {
                let client = Client::of(directory).unwrap();
                let adopt = Call::Adopt { opened, rank: rank as u32, size: ranks as u32 };
                let Done::Adopted(file) = done(&client, adopt, &mut NoMemory) else { panic!() };
                let text = format!("7 every {} from {}", 7 * ranks, 7 * rank);
                let view: Arc<Nest> = Arc::new(text.parse().unwrap());
                let own = view.rank(bytes).unwrap();
                let mut memory = Row((0..own).map(|y| byte(view.at(y).unwrap())).collect());
                write(&client, (file, view), own, &mut memory);
                done(&client, Call::Sync { file }, &mut NoMemory);
            });
        }
    });
}

fn write(client: &Client, (file, view): (FileNumber, Arc<Nest>), to: u64, memory: &mut Row) {
    let (direction, from, collective) = (Direction::Write, 0, true);
    let call = Call::Access { file, direction, view, from, to, collective };
    assert_eq!(done(client, call, memory), Done::Bytes(to));
}

fn check(directory: &Path, bytes: u64) {
    let client = Client::of(directory).unwrap();
    let file = OpenFile::open(&client, b"/matrix", OpenWish::TO_READ).unwrap();
    assert_eq!(file.size(), Ok(bytes));
    let mut seen = vec![0xEE; bytes as usize + 10];
    assert_eq!(file.read_at(0, &mut seen), Ok(bytes as usize));
    let wrong = (0..bytes).find(|&at| seen[at as usize] != byte(at));
    assert_eq!(wrong, None);
}

#[test]
fn what_is_written_through_caches_is_read_with_and_without_them() {
    for (caches, layout) in [(1, 3), (2, 3), (3, 3), (5, 1)] {
        let (directory, node) = served(caches);
        let (ranks, bytes) = (3, 700_001);
        let client = Client::of(directory.path()).unwrap();
        let layout = Some(Layout::striped(4096, layout, 0).unwrap());
        let open = Call::Open { path: b"/matrix".to_vec(), wish: OpenWish { layout, ..TO_WRITE } };
        let Done::Opened(opened) = done(&client, open, &mut NoMemory) else { panic!() };
        write_interleaved(directory.path(), opened, ranks, bytes);
        check(directory.path(), bytes);
        assert!(node.stop());
        for caches in [0, 4] {
            let node = serve(directory.path(), caches);
            check(directory.path(), bytes);
            assert!(node.stop());
        }
    }
}

#[test]
fn files_are_the_same_whatever_policies_caches_go_by() {
    let named = |row: usize, of: &[&'static str]| of.get(row).map(|name| (*name).to_owned());
    let placements = ["modulo", "at-servers", "rendezvous", "local", "cruel"];
    let replacements = ["lru", "two-queue", "clock", "fifo", "cruel"];
    let policies = ["delayed", "through", "on-sync", "cruel"];
    for row in 0..5 {
        let directory = tempfile::tempdir().unwrap();
        // 24 MB do not fit two times 8 MiB.
        let (bytes, memory) = (24_000_001, Some(8 << 20));
        let wish = Wish {
            caches: Some(2),
            cache_memory: memory,
            placement: named(row, &placements),
            replacement: named(row, &replacements),
            write_policy: named(row, &policies),
            ..Wish::default()
        };
        let node = serve_with(directory.path(), wish);
        let client = Client::of(directory.path()).unwrap();
        let file = OpenFile::open(&client, b"/matrix", TO_WRITE).unwrap();
        let content: Vec<u8> = (0..bytes).map(byte).collect();
        // Not in order, and in pieces that divide nothing.
        let pieces = content.chunks(1_234_567).enumerate();
        let (even, odd): (Vec<_>, Vec<_>) = pieces.partition(|(at, _)| at % 2 == 0);
        for (at, piece) in odd.into_iter().chain(even) {
            file.write_at(at as u64 * 1_234_567, piece).unwrap();
        }
        check(directory.path(), bytes);
        file.sync().unwrap();
        check(directory.path(), bytes);
        assert!(node.stop(), "{row}");
        // Names stay with the directory.
        let node = serve_with(directory.path(), Wish::default());
        check(directory.path(), bytes);
        assert!(node.stop(), "{row}");
        let node = serve(directory.path(), 0);
        check(directory.path(), bytes);
        assert!(node.stop(), "{row}");
    }
}

#[test]
fn a_client_that_looks_for_blocks_elsewhere_is_not_served() {
    let (directory, node) = served(3);
    let client = Client::of(directory.path()).unwrap();
    let file = OpenFile::open(&client, b"/matrix", TO_WRITE).unwrap();
    file.write_at(0, &[7; 50_000]).unwrap();
    file.sync().unwrap();
    assert!(node.stop());
    for (placement, write_policy) in [("rendezvous", "delayed"), ("modulo", "through")] {
        let (placement, write_policy) = (Some(placement.into()), Some(write_policy.into()));
        let wish = Wish { placement, write_policy, ..Wish::default() };
        let node = serve_with(directory.path(), wish);
        // Other bytes would be worse than none.
        assert!(file.read_at(0, &mut [0; 50_000]).is_err());
        let client = Client::of(directory.path()).unwrap();
        let again = OpenFile::open(&client, b"/matrix", OpenWish::TO_READ).unwrap();
        assert_eq!(again.size(), Ok(50_000));
        drop(again);
        assert!(node.stop());
    }
}

#[test]
fn servers_have_what_nobody_has_synced_when_the_instance_ends_in_order() {
    let (directory, node) = served(2);
    let client = Client::of(directory.path()).unwrap();
    let file = OpenFile::open(&client, b"/matrix", TO_WRITE).unwrap();
    let content: Vec<u8> = (0..100_000).map(byte).collect();
    file.write_at(0, &content).unwrap();
    assert!(node.stop());
    let node = serve(directory.path(), 0);
    check(directory.path(), 100_000);
    assert!(node.stop());
}

#[test]
fn a_file_that_was_cut_ends_there_for_everybody() {
    let (directory, _node) = served(2);
    let clients = [0, 1].map(|_| Client::of(directory.path()).unwrap());
    let files = clients.each_ref().map(|one| OpenFile::open(one, b"/cut", TO_WRITE).unwrap());
    files[0].write_at(0, &[7; 50_000]).unwrap();
    let mut seen = vec![0; 50_000];
    assert_eq!(files[1].read_at(0, &mut seen), Ok(50_000));
    files[1].resize(10_001).unwrap();
    assert_eq!(files[0].size(), Ok(10_001));
    files[0].write_at(30_000, b"far").unwrap();
    assert_eq!(files[1].read_at(0, &mut seen), Ok(30_003));
    assert!(seen[..10_001].iter().all(|&byte| byte == 7));
    assert!(seen[10_001..30_000].iter().all(|&byte| byte == 0));
    assert_eq!(&seen[30_000..30_003], b"far");
}
