//! An instance that may use little of its device: who writes is told when it is full, and nobody else.

use iolab_pfs::client::Call;
use iolab_pfs::{Code, Kind, OpenWish};
use iolab_pfs_node::files::OpenFile;
use iolab_pfs_node::instance::{Instance, Wish};
use iolab_pfs_node::node::Node;
use iolab_pfs_node::{Client, NoMemory};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

const TO_WRITE: OpenWish =
    OpenWish { writes: true, creates: true, mode: 0o640, ..OpenWish::TO_READ };
const CAPACITY: u64 = 4 << 20;
const PIECE: u64 = 100_000;

fn serve(directory: &Path, caches: u32, capacity: Option<u64>) -> Node {
    serve_with(directory, Wish { caches: Some(caches), capacity, ..Wish::default() })
}

fn serve_with(directory: &Path, wish: Wish) -> Node {
    let layout = Some("stripe:unit=64k".to_owned());
    let wish = Wish { servers: Some(2), layout, ..wish };
    Node::start(Instance::take(directory, &wish).unwrap()).unwrap()
}

fn used(directory: &Path) -> u64 {
    let files = |folder: &Path| -> Vec<_> {
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let servers = (0..2).map(|server| directory.join(format!("server-{server}/data")));
    let folders = servers.flat_map(|data| files(&data));
    folders.flat_map(|folder| files(&folder)).map(|it| it.metadata().unwrap().blocks() * 512).sum()
}

/// Writes pieces of a file until one is refused, with that code. Gives how many were not.
fn fill(file: &OpenFile<'_>, code: Code) -> u64 {
    let piece = vec![7; PIECE as usize];
    for count in 0..2 * CAPACITY / PIECE {
        match file.write_at(count * PIECE, &piece) {
            Ok(_) => {}
            Err(failure) => {
                assert_eq!(failure.code, code, "{failure:?}");
                return count;
            }
        }
    }
    panic!("{CAPACITY} bytes were never full");
}

#[test]
fn a_write_beyond_the_quota_is_told_so_and_one_beyond_the_capacity_that() {
    for (caches, capacity, quota, code) in [
        (0, None, Some(CAPACITY), Code::QUOTA),
        (2, None, Some(CAPACITY), Code::QUOTA),
        (0, Some(2 * CAPACITY), Some(CAPACITY), Code::QUOTA),
        (2, Some(CAPACITY), Some(2 * CAPACITY), Code::NO_SPACE),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let wish = Wish { caches: Some(caches), capacity, quota, ..Wish::default() };
        let node = serve_with(directory.path(), wish);
        let client = Client::of(directory.path()).unwrap();
        let file = OpenFile::open(&client, b"/full", TO_WRITE).unwrap();
        let count = fill(&file, code);
        assert!(count * PIECE > CAPACITY / 4 * 3, "{count} pieces, {caches} caches");
        file.sync().unwrap();
        assert!((count * PIECE..=CAPACITY).contains(&used(directory.path())));
        file.resize(0).unwrap();
        assert!(fill(&file, code) > 0, "what was cut is free again");
        drop(file);
        assert!(node.stop());
    }
}

#[test]
fn a_write_without_room_is_told_so_and_a_sync_behind_it_succeeds() {
    for caches in [0, 2] {
        let directory = tempfile::tempdir().unwrap();
        let node = serve(directory.path(), caches, Some(CAPACITY));
        let client = Client::of(directory.path()).unwrap();
        let file = OpenFile::open(&client, b"/full", TO_WRITE).unwrap();
        let count = fill(&file, Code::NO_SPACE);
        assert!(count * PIECE > CAPACITY / 4 * 3, "{count} pieces, {caches} caches");
        file.sync().unwrap();
        assert!((count * PIECE..=CAPACITY).contains(&used(directory.path())));
        // What replaces other bytes needs no more room.
        file.write_at(0, &vec![8; (count * PIECE) as usize]).unwrap();
        file.sync().unwrap();
        let mut seen = vec![0; (count * PIECE) as usize];
        assert_eq!(file.read_at(0, &mut seen), Ok(seen.len()));
        assert!(seen.iter().all(|&byte| byte == 8));
        file.close().unwrap();
        drop(client);
        assert!(node.stop());
        // It is known again what is used, and a file that goes makes room.
        let node = serve(directory.path(), caches, None);
        let client = Client::of(directory.path()).unwrap();
        let other = OpenFile::open(&client, b"/other", TO_WRITE).unwrap();
        let small = vec![9; CAPACITY as usize / 2];
        assert_eq!(other.write_at(0, &small).unwrap_err().code, Code::NO_SPACE);
        let remove = Call::Remove { path: b"/full".to_vec(), kind: Kind::File };
        client.call(remove, &mut NoMemory).unwrap();
        let end = Instant::now() + Duration::from_secs(100);
        while let Err(failure) = other.write_at(0, &small) {
            assert_eq!(failure.code, Code::NO_SPACE, "{failure:?}");
            assert!(Instant::now() < end, "removed bytes are still in the way");
            std::thread::yield_now();
        }
        other.close().unwrap();
        drop(client);
        assert!(node.stop());
    }
}

#[test]
fn what_an_instance_may_use_stays_with_it_and_may_be_changed() {
    let directory = tempfile::tempdir().unwrap();
    let taken = |capacity| {
        let wish = Wish { servers: Some(2), capacity, ..Wish::default() };
        Instance::take(directory.path(), &wish).map(|taken| taken.description.capacity)
    };
    let text = || std::fs::read_to_string(directory.path().join("instance.toml")).unwrap();
    assert_eq!(taken(None), Ok(None));
    assert!(!text().contains("capacity"), "older versions refuse what they do not know");
    let refusal = taken(Some(100)).unwrap_err();
    assert!(refusal.message.contains("100 B for 2 servers"), "{refusal}");
    assert_eq!(taken(Some(CAPACITY)), Ok(Some(CAPACITY)));
    assert_eq!(taken(None), Ok(Some(CAPACITY)));
    assert_eq!(taken(Some(0)), Ok(None));
    assert!(!text().contains("capacity"));
}
