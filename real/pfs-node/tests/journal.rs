//! The journal of names does not grow without end: it begins anew with what there is.

use iolab_pfs::client::Call;
use iolab_pfs::{Kind, OpenWish};
use iolab_pfs_node::files::{self, OpenFile};
use iolab_pfs_node::instance::{Instance, Wish};
use iolab_pfs_node::node::Node;
use iolab_pfs_node::offline::Offline;
use iolab_pfs_node::{Client, NoMemory};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

const TO_WRITE: OpenWish =
    OpenWish { writes: true, creates: true, mode: 0o640, ..OpenWish::TO_READ };
/// Bytes after which it begins anew here.
const LONG: u64 = 8 << 10;

fn serve(directory: &Path, journal: Option<u64>) -> Node {
    let wish = Wish { servers: Some(2), journal, ..Wish::default() };
    Node::start(Instance::take(directory, &wish).unwrap()).unwrap()
}

fn journal(directory: &Path) -> Vec<u8> {
    fs::read(directory.join("metadata/journal-1")).unwrap()
}

/// Whether a journal begins with a state.
fn begins_with_state(journal: &[u8]) -> bool {
    journal[8] == 2
}

/// The number of the first record behind that.
fn first(journal: &[u8]) -> u64 {
    u64::from_le_bytes(*journal[40..].first_chunk().unwrap())
}

/// A file that is there for a moment, `count` times, and one that stays.
fn work(client: &Client, name: &str, count: u32) {
    let path = |name: &str| format!("/d/{name}").into_bytes();
    files::make_parents(client, b"/d/x").unwrap();
    for _ in 0..count {
        OpenFile::open(client, &path("passing"), TO_WRITE).unwrap().close().unwrap();
        let rename = Call::Rename { from: path("passing"), to: path("moved") };
        client.call(rename, &mut NoMemory).unwrap();
        let remove = Call::Remove { path: path("moved"), kind: Kind::File };
        client.call(remove, &mut NoMemory).unwrap();
    }
    let file = OpenFile::open(client, &path(name), TO_WRITE).unwrap();
    file.write_at(0, name.as_bytes()).unwrap();
    file.close().unwrap();
}

fn holds(client: &Client, name: &str) -> bool {
    let path = format!("/d/{name}").into_bytes();
    let Ok(file) = OpenFile::open(client, &path, OpenWish::TO_READ) else { return false };
    let mut seen = vec![0; name.len() + 1];
    file.read_at(0, &mut seen) == Ok(name.len()) && seen.starts_with(name.as_bytes())
}

/// Waits until something is so: what is asked of servers may be under way.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(100);
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn a_journal_of_many_changes_is_as_long_as_what_they_have_left() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let node = serve(directory, Some(LONG));
    let client = Client::of(directory).unwrap();
    let open = OpenFile::open(&client, b"/open", TO_WRITE).unwrap();
    open.write_at(0, b"before").unwrap();
    work(&client, "first", 400);
    let remove = Call::Remove { path: b"/open".to_vec(), kind: Kind::File };
    client.call(remove, &mut NoMemory).unwrap();
    work(&client, "second", 400);
    // Some 500 bytes are recorded each time; of the answers, 64 are kept. A device may take long for a journal,
    // while records go on to the other.
    wait_until("the journal stays long", || {
        files::look(&client, b"/d").unwrap();
        let journal = journal(directory);
        begins_with_state(&journal) && (journal.len() as u64) < 8 * LONG && first(&journal) > 2000
    });
    // The file without a name is still open, and as long as it was.
    open.write_at(6, b" and behind").unwrap();
    let mut seen = [0; 20];
    assert_eq!(open.read_at(0, &mut seen), Ok(17));
    assert!(seen.starts_with(b"before and behind"));
    assert!(node.stop());
    let node = serve(directory, None);
    assert_eq!(
        open.read_at(0, &mut seen),
        Ok(17),
        "an open outlives a manager whose journal began anew"
    );
    open.close().unwrap();
    assert!(holds(&client, "first") && holds(&client, "second") && !holds(&client, "moved"));
    drop(client);
    assert!(node.stop());
    let offline = Offline::take(directory).unwrap();
    let names: Vec<_> = offline.inventory.named.keys().map(|it| it.as_slice()).collect();
    assert_eq!(names, [&b"/d"[..], b"/d/first", b"/d/second"]);
}

#[test]
fn a_directory_of_before_is_read_and_begins_anew_when_it_is_served() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let node = serve(directory, None);
    let client = Client::of(directory).unwrap();
    work(&client, "kept", 200);
    drop(client);
    assert!(node.stop());
    let before = journal(directory);
    // What a version writes that does not know how to begin with a state.
    assert!(!begins_with_state(&before) && before[48..60].iter().all(|&byte| byte == 0));
    assert!(before.len() as u64 > 8 * LONG);
    // What a crash left beside it does not count.
    let beside = directory.join("metadata/journal-1.new");
    fs::write(&beside, &before[..before.len() / 2]).unwrap();
    let node = serve(directory, Some(LONG));
    wait_until("it has not begun anew", || begins_with_state(&journal(directory)));
    assert!(journal(directory).len() < before.len() / 2 && !beside.exists());
    let client = Client::of(directory).unwrap();
    assert!(holds(&client, "kept"));
    work(&client, "new", 1);
    drop(client);
    assert!(node.stop());
    let node = serve(directory, Some(0));
    let client = Client::of(directory).unwrap();
    assert!(holds(&client, "kept") && holds(&client, "new"));
    drop(client);
    assert!(node.stop());
    let told = fs::read_to_string(directory.join("instance.toml")).unwrap();
    assert!(!told.contains("journal"), "older versions refuse what they do not know: {told}");
}

#[test]
fn where_no_other_journal_can_be_written_the_one_there_is_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let node = serve(directory, Some(LONG));
    // No file can be made of this name; root makes files wherever it wants.
    let beside = directory.join("metadata/journal-1.new");
    fs::create_dir(&beside).unwrap();
    fs::set_permissions(&beside, fs::Permissions::from_mode(0o700)).unwrap();
    let client = Client::of(directory).unwrap();
    work(&client, "kept", 200);
    let length = journal(directory).len();
    assert!(!begins_with_state(&journal(directory)) && length as u64 > 8 * LONG);
    fs::remove_dir(&beside).unwrap();
    work(&client, "new", 1);
    wait_until("it is not tried again", || {
        work(&client, "new", 1);
        begins_with_state(&journal(directory))
    });
    drop(client);
    assert!(node.stop());
    let node = serve(directory, None);
    let client = Client::of(directory).unwrap();
    assert!(holds(&client, "kept") && holds(&client, "new"));
    drop(client);
    assert!(node.stop());
}
