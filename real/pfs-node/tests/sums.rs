//! A device that changes what was written to it: whoever reads that is told, and nobody else.

use iolab_pfs::client::Failure;
use iolab_pfs::{Code, OpenWish};
use iolab_pfs_node::Client;
use iolab_pfs_node::check::{Fault, check};
use iolab_pfs_node::files::OpenFile;
use iolab_pfs_node::instance::{Instance, Wish};
use iolab_pfs_node::node::Node;
use iolab_pfs_node::offline::Offline;
use iolab_pfs_node::rescue::rescue;
use iolab_pfs_node::status::damaged_pages;
use iolab_vocab::Extent;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const TO_WRITE: OpenWish =
    OpenWish { writes: true, creates: true, mode: 0o640, ..OpenWish::TO_READ };
const BYTES: usize = 100_000;
/// Its second page is damaged.
const DAMAGED: u64 = 5000;

fn serve(directory: &Path, sums: Option<bool>) -> Node {
    let wish = Wish { servers: Some(1), sums, ..Wish::default() };
    Node::start(Instance::take(directory, &wish).unwrap()).unwrap()
}

/// The only file in the folders of a directory.
fn only(directory: &Path) -> Option<PathBuf> {
    let below = |of: PathBuf| fs::read_dir(of).into_iter().flatten().flatten().map(|it| it.path());
    let mut files = below(directory.to_owned()).flat_map(below);
    let first = files.next();
    assert_eq!(files.next(), None);
    first
}

/// Waits until all pages of the only file but its last have sums.
fn wait_for_sums(directory: &Path) {
    let is_summed = |path: &PathBuf| {
        let sums = fs::read(path).unwrap();
        sums.len() >= BYTES / 4096 * 8 && sums.chunks(8).all(|entry| entry != [0; 8])
    };
    while !only(&directory.join("server-0/sums")).as_ref().is_some_and(is_summed) {
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn damage(directory: &Path) {
    let path = only(&directory.join("server-0/data")).unwrap();
    let file = File::options().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, DAMAGED).unwrap();
    file.write_all_at(&[byte[0] ^ 1], DAMAGED).unwrap();
}

fn told(result: Result<impl std::fmt::Debug, Failure>) {
    let failure = result.unwrap_err();
    assert_eq!(failure.code, Code::IO);
    assert!(failure.text.contains("bytes 4096 to 8192"), "{}", failure.text);
}

#[test]
fn bytes_that_a_device_has_changed_are_told_to_who_reads_them_and_go_when_all_is_written_anew() {
    let parent = tempfile::tempdir().unwrap();
    let directory = &parent.path().join("fs");
    let node = serve(directory, Some(true));
    let client = Client::of(directory).unwrap();
    let file = OpenFile::open(&client, b"/file", TO_WRITE).unwrap();
    let content: Vec<u8> = (0..BYTES).map(|at| (at * 7 % 251) as u8).collect();
    file.write_at(0, &content).unwrap();
    wait_for_sums(directory);
    damage(directory);
    let mut seen = vec![0; BYTES];
    told(file.read_at(0, &mut seen));
    told(file.read_at(8000, &mut seen[..10]));
    assert_eq!(file.read_at(8192, &mut seen).unwrap(), BYTES - 8192);
    assert!(seen[..BYTES - 8192] == content[8192..]);
    // It would be summed again as if it were right.
    told(file.write_at(8000, b"beside"));
    told(file.resize(7000).map(|_| ()));
    // Told once, however often it is met.
    assert_eq!(damaged_pages(directory).unwrap(), [Some(1)]);
    file.close().unwrap();
    drop(client);
    assert!(node.stop());

    let offline = Offline::take(directory).unwrap();
    let notes = check(&offline).unwrap().notes;
    assert_eq!(notes.len(), 1);
    assert_eq!(notes[0].what, Fault::Changed { pages: 1 });
    let hurt = notes[0].hurt.as_ref().unwrap();
    assert_eq!(
        (hurt.path.as_slice(), hurt.extents.as_slice()),
        (&b"/file"[..], &[Extent::new(4096, 4096)][..])
    );
    let mut rescued = Vec::new();
    rescue(&offline, &parent.path().join("out"), &mut |it| rescued.push(it)).unwrap();
    assert!(rescued.len() == 1 && rescued[0].changed == 1 && !rescued[0].is_whole());
    drop(offline);

    let node = serve(directory, None);
    let client = Client::of(directory).unwrap();
    let file = OpenFile::open(&client, b"/file", TO_WRITE).unwrap();
    told(file.read_at(0, &mut seen));
    assert_eq!(damaged_pages(directory).unwrap(), [Some(1)]);
    file.write_at(4000, &content[4000..9000]).unwrap();
    assert_eq!(damaged_pages(directory).unwrap(), [Some(0)]);
    assert_eq!(file.read_at(0, &mut seen).unwrap(), BYTES);
    assert!(seen == content);
    file.close().unwrap();
    drop(client);
    assert!(node.stop());
}

#[test]
fn damaged_pages_are_named_by_their_places_in_the_file() {
    let parent = tempfile::tempdir().unwrap();
    let directory = &parent.path().join("fs");
    let layout = Some("stripe:unit=12k".to_owned());
    let wish = Wish { servers: Some(2), sums: Some(true), layout, ..Wish::default() };
    let node = Node::start(Instance::take(directory, &wish).unwrap()).unwrap();
    let client = Client::of(directory).unwrap();
    let file = OpenFile::open(&client, b"/file", TO_WRITE).unwrap();
    let content: Vec<u8> = (0..60_000u64)
        .flat_map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32).to_le_bytes())
        .collect();
    file.write_at(0, &content).unwrap();
    file.close().unwrap();
    drop(client);
    let sums = |server| only(&directory.join(format!("server-{server}/sums")));
    let is_summed = |server| sums(server).is_some_and(|it| fs::read(it).unwrap().len() > 400);
    while !(is_summed(0) && is_summed(1)) {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(node.stop());
    let path = only(&directory.join("server-1/data")).unwrap();
    let mut subfile = fs::read(&path).unwrap();
    // Two pages on both sides of the end of a stripe, and one alone.
    let expected = [2, 3, 7].map(|page| {
        let own = &subfile[page * 4096..(page + 1) * 4096];
        let at = content.windows(4096).position(|it| it == own).unwrap();
        Extent::new(at as u64, 4096)
    });
    for page in [2, 3, 7] {
        subfile[page * 4096 + 9] ^= 1;
    }
    fs::write(&path, subfile).unwrap();
    let notes = check(&Offline::take(directory).unwrap()).unwrap().notes;
    assert_eq!((notes.len(), notes[0].what), (1, Fault::Changed { pages: 3 }));
    assert_eq!(notes[0].hurt.as_ref().unwrap().extents, expected);
}

#[test]
fn who_keeps_no_sums_any_more_has_none_that_could_accuse_later() {
    let parent = tempfile::tempdir().unwrap();
    let directory = &parent.path().join("fs");
    let written = |sums, content: &[u8]| {
        let node = serve(directory, sums);
        let client = Client::of(directory).unwrap();
        let file = OpenFile::open(&client, b"/file", TO_WRITE).unwrap();
        file.write_at(0, content).unwrap();
        let mut seen = vec![0; BYTES];
        assert_eq!(file.read_at(0, &mut seen).unwrap(), BYTES);
        assert!(seen[..content.len()] == *content);
        // What had none has some when it was read.
        if sums == Some(true) {
            wait_for_sums(directory);
        }
        file.close().unwrap();
        drop(client);
        assert!(node.stop());
    };
    written(Some(true), &[1; BYTES]);
    written(Some(false), &[2; 50_000]);
    assert!(!directory.join("server-0/sums").exists());
    written(Some(true), &[3; 10]);
}
