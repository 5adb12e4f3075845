//! Clients and servers of an instance on real sockets and files.

use iolab_pattern::Nest;
use iolab_pfs::client::{Call, Done, Failure, FileNumber};
use iolab_pfs::{Code, Kind, OpenWish, Opened};
use iolab_pfs_node::files::{self, OpenFile};
use iolab_pfs_node::instance::{Instance, Wish};
use iolab_pfs_node::node::Node;
use iolab_pfs_node::plain;
use iolab_pfs_node::{Client, Memory, NoMemory};
use iolab_vocab::Direction;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

const TO_WRITE: OpenWish = OpenWish {
    reads: true,
    writes: true,
    creates: true,
    exclusive: false,
    mode: 0o640,
    layout: None,
};

/// An instance of some servers with small stripes, so that there are many of them.
fn served(servers: u32) -> (TempDir, Node) {
    let directory = tempfile::tempdir().unwrap();
    let layout = Some("stripe:unit=4k".to_owned());
    let node = serve(directory.path(), &Wish { servers: Some(servers), layout, ..Wish::default() });
    (directory, node)
}

fn serve(directory: &Path, wish: &Wish) -> Node {
    Node::start(Instance::take(directory, wish).unwrap()).unwrap()
}

fn byte(at: u64, salt: u64) -> u8 {
    ((at ^ salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

fn open(client: &Client, path: &str) -> Opened {
    let call = Call::Open { path: path.into(), wish: TO_WRITE };
    match client.call(call, &mut NoMemory) {
        Ok(Done::Opened(opened)) => opened,
        other => panic!("{other:?}"),
    }
}

fn adopt(client: &Client, opened: Opened, rank: u32, size: u32) -> FileNumber {
    match client.call(Call::Adopt { opened, rank, size }, &mut NoMemory) {
        Ok(Done::Adopted(file)) => file,
        other => panic!("{other:?}"),
    }
}

/// Memory whose bytes lie in pairs with gaps between: never in a row.
struct Gapped(Vec<u8>);

impl Memory for Gapped {
    fn row(&self, _at: u64, _bytes: usize) -> Option<&[u8]> {
        None
    }

    fn gather(&self, at: u64, to: &mut [u8]) {
        (at..).zip(to).for_each(|(at, to)| *to = self.0[(at / 2 * 5 + at % 2) as usize]);
    }

    fn scatter(&mut self, at: u64, from: &[u8]) {
        (at..).zip(from).for_each(|(at, from)| self.0[(at / 2 * 5 + at % 2) as usize] = *from);
    }

    fn zero(&mut self, at: u64, bytes: u64) {
        (at..at + bytes).for_each(|at| self.0[(at / 2 * 5 + at % 2) as usize] = 0);
    }
}

fn access(
    client: &Client,
    (file, view): (FileNumber, &Arc<Nest>),
    direction: Direction,
    (from, to): (u64, u64),
    memory: &mut dyn Memory,
) -> u64 {
    let view = view.clone();
    let call = Call::Access { file, direction, view, from, to, collective: false };
    match client.call(call, memory) {
        Ok(Done::Bytes(bytes)) => bytes,
        other => panic!("{other:?}"),
    }
}

#[test]
fn strided_views_of_several_clients_are_one_file() {
    let (directory, node) = served(3);
    let ranks = 4u64;
    let bytes = 300_000u64;
    let first = Client::of(directory.path()).unwrap();
    let opened = open(&first, "/matrix");
    let views: Vec<Arc<Nest>> = (0..ranks)
        .map(|rank| Arc::new(format!("7 every 28 from {}", 100 + rank * 7).parse().unwrap()))
        .collect();
    std::thread::scope(|scope| {
        for rank in 0..ranks {
            let (views, path) = (&views, directory.path());
            scope.spawn(move || {
                let client = Client::of(path).unwrap();
                let file = adopt(&client, opened, rank as u32, ranks as u32);
                let view = &views[rank as usize];
                let mut own: Vec<u8> = (0..bytes).map(|y| byte(y, rank)).collect();
                let mut gapped = Gapped(vec![0; (bytes * 5 / 2 + 5) as usize]);
                gapped.scatter(0, &own);
                let collective = |direction, memory: &mut dyn Memory| {
                    let call = Call::Access {
                        file,
                        direction,
                        view: view.clone(),
                        from: 0,
                        to: bytes,
                        collective: true,
                    };
                    assert_eq!(client.call(call, memory), Ok(Done::Bytes(bytes)));
                };
                match rank % 2 {
                    0 => collective(Direction::Write, &mut files::From(&own)),
                    _ => collective(Direction::Write, &mut gapped),
                }
                // What another rank has written is there as soon as the collective is over.
                let other = (rank + 1) % ranks;
                let want: Vec<u8> = (0..bytes).map(|y| byte(y, other)).collect();
                let of_other = (file, &views[other as usize]);
                own.fill(0xee);
                let whole = (0, bytes);
                let read = &mut files::Into(&mut own);
                assert_eq!(access(&client, of_other, Direction::Read, whole, read), bytes);
                assert!(own == want);
                gapped.0.fill(0);
                access(&client, of_other, Direction::Read, whole, &mut gapped);
                own.fill(0);
                gapped.gather(0, &mut own);
                assert!(own == want);
            });
        }
    });
    let file = OpenFile::open(&first, b"/matrix", OpenWish::TO_READ).unwrap();
    let ends = views.iter().map(|view| view.at(bytes - 1).unwrap() + 1);
    assert_eq!(file.size().ok(), ends.max());
    drop(first);
    assert!(node.stop());
}

#[test]
fn reads_end_where_the_file_does_and_holes_are_zeros() {
    let (directory, _node) = served(4);
    let client = Client::of(directory.path()).unwrap();
    let file = OpenFile::open(&client, b"/sparse", TO_WRITE).unwrap();
    file.write_at(1_000_000, b"end").unwrap();
    assert_eq!(file.size(), Ok(1_000_003));
    let mut to = vec![9; 1_100_000];
    assert_eq!(file.read_at(0, &mut to), Ok(1_000_003));
    assert!(to[..1_000_000].iter().all(|&byte| byte == 0));
    assert_eq!(&to[1_000_000..1_000_003], b"end");
    assert!(to[1_000_003..].iter().all(|&byte| byte == 9));
    assert_eq!(file.read_at(2_000_000, &mut to), Ok(0));
    file.resize(10_000).unwrap();
    assert_eq!(file.size(), Ok(10_000));
    assert_eq!(file.read_at(9_000, &mut to), Ok(1000));
    file.resize(20_000).unwrap();
    assert_eq!(file.read_at(0, &mut to), Ok(20_000));
    file.close().unwrap();
}

#[test]
fn names_are_made_listed_moved_and_removed() {
    let (directory, _node) = served(2);
    let client = Client::of(directory.path()).unwrap();
    files::make_parents(&client, b"/a/b/file").unwrap();
    for number in 0..40 {
        let path = format!("/a/b/file{number:02}");
        let file = OpenFile::open(&client, path.as_bytes(), TO_WRITE).unwrap();
        file.write_at(0, path.as_bytes()).unwrap();
        file.close().unwrap();
    }
    let call = Call::Rename { from: b"/a/b/file00".to_vec(), to: b"/a/moved".to_vec() };
    client.call(call, &mut NoMemory).unwrap();
    let call = Call::Remove { path: b"/a/b/file01".to_vec(), kind: Kind::File };
    client.call(call, &mut NoMemory).unwrap();
    let all = files::walk(&client, b"/").unwrap();
    let names: Vec<_> = all.iter().map(|(path, _)| String::from_utf8_lossy(path)).collect();
    assert_eq!(
        (names.len(), &*names[0], &*names[1], &*names[2]),
        (41, "/a", "/a/b", "/a/b/file02")
    );
    assert_eq!(files::look(&client, b"/a/b/file00"), Ok(None));
    assert_eq!(files::look(&client, b"/a/moved").unwrap().unwrap().1, 11);
}

#[test]
fn plain_files_come_in_once_and_go_out_whole() {
    let (directory, _node) = served(3);
    let plain = tempfile::tempdir().unwrap();
    let (source, target) = (plain.path().join("in"), plain.path().join("deep/er/out"));
    let bytes: Vec<u8> =
        (0..5_000_000).map(|at| if at < 900_000 { 0 } else { byte(at, 5) }).collect();
    std::fs::write(&source, &bytes).unwrap();
    let imports: usize = std::thread::scope(|scope| {
        let import = || {
            let client = Client::of(directory.path()).unwrap();
            usize::from(plain::import_file(&client, &source, b"/x/in").unwrap())
        };
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(import)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(imports, 1);
    let client = Client::of(directory.path()).unwrap();
    assert_eq!(files::walk(&client, b"/x").unwrap().len(), 1);
    assert_eq!(plain::export_file(&client, b"/x/in", &target), Ok(5_000_000));
    assert!(std::fs::read(&target).unwrap() == bytes);
    let missing = plain::export_file(&client, b"/x/none", &target);
    assert!(matches!(missing, Err(Failure { code: Code::NO_ENTRY, .. })));
    let beside = std::fs::read_dir(target.parent().unwrap()).unwrap().count();
    assert_eq!(beside, 1);
}

#[test]
fn threads_of_a_process_wait_for_other_processes_at_the_same_time() {
    let (directory, _node) = served(2);
    let clients = [(); 2].map(|()| Client::of(directory.path()).unwrap());
    let opens = [open(&clients[0], "/one"), open(&clients[0], "/two")];
    // Each process has a thread for each of two files, and every call waits for the other process.
    std::thread::scope(|scope| {
        for (rank, client) in clients.iter().enumerate() {
            for (index, opened) in opens.iter().enumerate() {
                scope.spawn(move || {
                    let file = adopt(client, *opened, rank as u32, 2);
                    for round in 0..50 {
                        let result = if round == 40 && rank == index { Code::IO } else { Code::OK };
                        let outcome = client.call(Call::Agree { file, result }, &mut NoMemory);
                        assert_eq!(outcome.is_ok(), round != 40, "{outcome:?}");
                    }
                });
            }
        }
    });
}

#[test]
fn answered_data_is_there_after_the_servers_have_begun_a_new_life() {
    let (directory, node) = served(3);
    let client = Client::of(directory.path()).unwrap();
    let file = OpenFile::open(&client, b"/kept", TO_WRITE).unwrap();
    let bytes: Vec<u8> = (0..200_000).map(|at| byte(at, 1)).collect();
    file.write_at(5, &bytes).unwrap();
    drop(node);
    let _node = serve(directory.path(), &Wish::default());
    let mut to = vec![0; 200_000];
    // The same client, the same open.
    assert_eq!(file.read_at(5, &mut to), Ok(200_000));
    assert!(to == bytes);
    file.write_at(0, b"again").unwrap();
    assert_eq!(file.size(), Ok(200_005));
}

#[test]
fn directories_may_have_longer_names_than_addresses() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("a directory whose name is long".repeat(5));
    let _node = serve(&directory, &Wish { servers: Some(2), ..Wish::default() });
    let client = Client::of(&directory).unwrap();
    let file = OpenFile::open(&client, b"/a", TO_WRITE).unwrap();
    file.write_at(300_000, b"far").unwrap();
    assert_eq!(file.size(), Ok(300_003));
}

#[test]
fn limits_are_errors_of_the_call_that_meets_them() {
    let (directory, _node) = served(2);
    let client = Client::of(directory.path()).unwrap();
    let file = OpenFile::open(&client, b"/a", TO_WRITE).unwrap();
    let failed = file.write_at(i64::MAX as u64 - 2, b"beyond");
    assert!(failed.is_err(), "{failed:?}");
    file.write_at(0, b"well").unwrap();
    assert_eq!(file.size(), Ok(4));
}

#[test]
fn a_rank_that_waits_for_others_looks_after_its_own_affairs() {
    let (directory, _node) = served(2);
    let clients = [0, 1].map(|_| Client::of(directory.path()).unwrap());
    let opened = open(&clients[0], "/waited");
    let looks = std::cell::Cell::new(0);
    let look = || looks.set(looks.get() + 1);
    std::thread::scope(|scope| {
        let late = &clients[1];
        scope.spawn(move || {
            let file = adopt(late, opened, 1, 2);
            std::thread::sleep(std::time::Duration::from_millis(50));
            late.call(Call::Agree { file, result: Code::OK }, &mut NoMemory).unwrap();
        });
        let file = adopt(&clients[0], opened, 0, 2);
        let agree = Call::Agree { file, result: Code::OK };
        clients[0].call_with(agree, &mut NoMemory, Some(&look)).unwrap();
    });
    assert!(looks.get() > 10, "{} looks in 50 ms", looks.get());
}
