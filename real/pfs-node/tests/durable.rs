//! Class `device` on real files: this program has the system's calls that sync, and remembers what a device
//! would have after them. A power cut is a directory made of that alone.

use iolab_pfs::Code;
use iolab_pfs::OpenWish;
use iolab_pfs::client::{Call, Failure};
use iolab_pfs_node::files::{self, OpenFile};
use iolab_pfs_node::instance::{Instance, Wish};
use iolab_pfs_node::node::Node;
use iolab_pfs_node::plain;
use iolab_pfs_node::{Client, NoMemory};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;
use tempfile::TempDir;

const TO_WRITE: OpenWish =
    OpenWish { writes: true, creates: true, mode: 0o640, ..OpenWish::TO_READ };

/// The number of a file or directory, and when it was made: numbers are used again.
type Identity = (u64, Option<SystemTime>);

fn identity(of: &fs::Metadata) -> Identity {
    (of.ino(), of.created().ok())
}

/// What was synced: the bytes of each file, and the names of each directory with what they stand for.
struct Device {
    files: BTreeMap<Identity, Vec<u8>>,
    directories: BTreeMap<Identity, Vec<(OsString, Identity)>>,
    /// Files below these cannot be synced.
    broken: BTreeSet<PathBuf>,
}

static DEVICE: Mutex<Device> = Mutex::new(Device {
    files: BTreeMap::new(),
    directories: BTreeMap::new(),
    broken: BTreeSet::new(),
});

/// Whether files below a directory cannot be synced from here on.
fn breaks(directory: PathBuf, breaks: bool) {
    let broken = &mut DEVICE.lock().unwrap().broken;
    match breaks {
        true => broken.insert(directory),
        false => broken.remove(&directory),
    };
}

impl Device {
    fn sync(&mut self, path: &Path) -> bool {
        if self.broken.iter().any(|broken| path.starts_with(broken)) {
            return false;
        }
        let Ok(found) = fs::metadata(path) else { return true };
        if found.is_dir() {
            let entries = fs::read_dir(path).unwrap().flatten();
            let entry =
                |entry: fs::DirEntry| (entry.file_name(), identity(&entry.metadata().unwrap()));
            self.directories.insert(identity(&found), entries.map(entry).collect());
        } else {
            self.files.insert(identity(&found), fs::read(path).unwrap());
        }
        true
    }

    /// Makes a directory of what is left of one.
    fn cut(&self, of: Identity, to: &Path) {
        fs::create_dir(to).unwrap();
        for (name, it) in self.directories.get(&of).into_iter().flatten() {
            let to = to.join(name);
            match self.files.get(it) {
                Some(bytes) => fs::write(to, bytes).unwrap(),
                None if self.directories.contains_key(it) => self.cut(*it, &to),
                None => {}
            }
        }
    }
}

/// What a descriptor that is to be synced stands for goes to the device.
fn synced(descriptor: i32) -> i32 {
    let path = fs::read_link(format!("/proc/self/fd/{descriptor}")).unwrap();
    if DEVICE.lock().unwrap().sync(&path) {
        return 0;
    }
    // SAFETY: the error number of this thread.
    unsafe { *libc::__errno_location() = libc::EIO };
    -1
}

/// Instead of the system's.
// SAFETY: the same signature, and what it promises is what this test looks at.
#[unsafe(no_mangle)]
extern "C" fn fsync(descriptor: i32) -> i32 {
    synced(descriptor)
}

/// Instead of the system's.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn fdatasync(descriptor: i32) -> i32 {
    synced(descriptor)
}

/// Instead of the system's: of a file whose pages are dropped there is what the device has.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn posix_fadvise(descriptor: i32, from: i64, length: i64, advice: i32) -> i32 {
    assert_eq!((from, length, advice), (0, 0, libc::POSIX_FADV_DONTNEED));
    let path = fs::read_link(format!("/proc/self/fd/{descriptor}")).unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    let found = file.metadata().unwrap();
    let device = DEVICE.lock().unwrap();
    let mut stored = device.files.get(&identity(&found)).cloned().unwrap_or_default();
    stored.resize(found.len() as usize, 0);
    file.write_all_at(&stored, 0).unwrap();
    0
}

/// Files that took the place of others before all that is in them was synced.
static UNSYNCED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Instead of the system's: what takes the place of something else is looked at.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn rename(from: *const libc::c_char, to: *const libc::c_char) -> i32 {
    // SAFETY: both are names that end with a zero byte, as the function's callers promise.
    let name = unsafe { std::ffi::CStr::from_ptr(from) };
    let path = Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()));
    if let (Ok(found), Ok(bytes)) = (fs::metadata(path), fs::read(path))
        && DEVICE.lock().unwrap().files.get(&identity(&found)) != Some(&bytes)
    {
        UNSYNCED.lock().unwrap().push(path.to_owned());
    }
    // SAFETY: as above.
    unsafe { libc::renameat(libc::AT_FDCWD, from, libc::AT_FDCWD, to) }
}

fn serve(directory: &Path, caches: u32) -> Node {
    serve_with(directory, caches, None)
}

fn serve_with(directory: &Path, caches: u32, journal: Option<u64>) -> Node {
    let wish = Wish {
        journal,
        servers: Some(3),
        caches: Some(caches),
        layout: Some("stripe:unit=4k".into()),
        durability: Some("device".into()),
        ..Wish::default()
    };
    Node::start(Instance::take(directory, &wish).unwrap()).unwrap()
}

/// What a power cut leaves of a directory.
fn after_power_cut(directory: &Path) -> (TempDir, PathBuf) {
    let parent = tempfile::tempdir().unwrap();
    let left = parent.path().join("fs");
    DEVICE.lock().unwrap().cut(identity(&fs::metadata(directory).unwrap()), &left);
    (parent, left)
}

fn content(salt: u64, bytes: u64) -> Vec<u8> {
    (0..bytes).map(|at| ((at ^ salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

fn write(client: &Client, path: &[u8], bytes: &[u8]) {
    let file = OpenFile::open(client, path, TO_WRITE).unwrap();
    file.write_at(0, bytes).unwrap();
    file.close().unwrap();
}

fn read(client: &Client, path: &[u8], bytes: usize) -> Vec<u8> {
    let file = OpenFile::open(client, path, OpenWish::TO_READ).unwrap();
    let mut seen = vec![0; bytes];
    let count = file.read_at(0, &mut seen).unwrap();
    seen.truncate(count);
    seen
}

#[test]
fn what_was_synced_or_closed_and_names_that_were_answered_outlive_a_power_cut() {
    for caches in [0, 2] {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("fs");
        let node = serve(&directory, caches);
        let client = Client::of(&directory).unwrap();
        let (first, second) = (content(1, 100_001), content(2, 50_000));
        write(&client, b"/closed", &first);
        files::make_parents(&client, b"/d/x").unwrap();
        let file = OpenFile::open(&client, b"/d/synced", TO_WRITE).unwrap();
        file.write_at(0, &second).unwrap();
        file.sync().unwrap();
        let rename = Call::Rename { from: b"/closed".into(), to: b"/d/moved".into() };
        client.call(rename, &mut NoMemory).unwrap();
        // Nobody has asked for this one.
        let unsynced = OpenFile::open(&client, b"/unsynced", TO_WRITE).unwrap();
        unsynced.write_at(0, &first).unwrap();

        let (_parent, left) = after_power_cut(&directory);
        let again = serve(&left, caches);
        let client = Client::of(&left).unwrap();
        assert!(read(&client, b"/d/moved", 200_000) == first);
        assert!(read(&client, b"/d/synced", 200_000) == second);
        assert!(files::look(&client, b"/closed").unwrap().is_none());
        assert!(read(&client, b"/unsynced", 200_000).is_empty());
        assert!(again.stop() && node.stop());
    }
}

#[test]
fn names_that_were_answered_outlive_a_power_cut_while_their_journal_begins_anew() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("fs");
    let node = serve_with(&directory, 0, Some(1 << 10));
    let client = Client::of(&directory).unwrap();
    let journal = |of: &Path| fs::read(of.join("metadata/journal-1")).unwrap();
    let (mut lives, mut last) = (0, 0);
    for count in 0..120 {
        write(&client, format!("/{count}").as_bytes(), &content(count, 100));
        if count > 0 {
            let remove = Call::Remove {
                path: format!("/{}", count - 1).into_bytes(),
                kind: iolab_pfs::Kind::File,
            };
            client.call(remove, &mut NoMemory).unwrap();
        }
        if count % 8 != 7 {
            continue;
        }
        let (_parent, left) = after_power_cut(&directory);
        let first = journal(&left)[40..48].to_vec();
        let first = u64::from_le_bytes(first.try_into().unwrap());
        lives += u32::from(first > last);
        last = first;
        let again = serve(&left, 0);
        let client = Client::of(&left).unwrap();
        let name = format!("/{count}");
        assert!(read(&client, name.as_bytes(), 200) == content(count, 100), "{count}");
        assert!(files::look(&client, format!("/{}", count - 1).as_bytes()).unwrap().is_none());
        drop(client);
        assert!(again.stop());
    }
    assert!(lives > 2, "the journal has begun anew {lives} times");
    assert_eq!(*UNSYNCED.lock().unwrap(), Vec::<PathBuf>::new());
    assert!(node.stop());
}

/// Whether each page that subfiles of a directory had sums of has one, as whoever serves it has it.
fn is_summed(directory: &Path) -> bool {
    let below = |of: PathBuf| fs::read_dir(of).into_iter().flatten().flatten().map(|it| it.path());
    let folders = (0..3).flat_map(|server| below(directory.join(format!("server-{server}/sums"))));
    let files: Vec<PathBuf> = folders.flat_map(below).collect();
    let has_all = |it: &PathBuf| {
        let sums = fs::read(it).unwrap();
        !sums.is_empty() && sums.chunks(8).all(|sum| sum.iter().any(|byte| *byte != 0))
    };
    !files.is_empty() && files.iter().all(has_all)
}

/// The sums of a directory's subfiles go to the device, as they may at any time.
fn sync_sums(directory: &Path) {
    for server in 0..3 {
        for folder in fs::read_dir(directory.join(format!("server-{server}/sums"))).unwrap() {
            let folder = folder.unwrap().path();
            let files = fs::read_dir(&folder).unwrap().map(|it| it.unwrap().path());
            let up = [folder.clone(), folder.parent().unwrap().to_owned()];
            let up = up.into_iter().chain([folder.ancestors().nth(2).unwrap().to_owned()]);
            files.chain(up).for_each(|it| assert!(DEVICE.lock().unwrap().sync(&it)));
        }
    }
}

#[test]
fn what_is_written_over_pages_with_sums_accuses_no_device_after_a_power_cut() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("fs");
    let node = serve(&directory, 0);
    let client = Client::of(&directory).unwrap();
    write(&client, b"/file", &content(1, 60_000));
    while !is_summed(&directory) {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    sync_sums(&directory);
    let file = OpenFile::open(&client, b"/file", TO_WRITE).unwrap();
    file.write_at(1000, &content(2, 30_000)).unwrap();
    file.sync().unwrap();
    let (_parent, left) = after_power_cut(&directory);
    assert!(left.join("server-0/sums").is_dir(), "the test proves nothing without sums");
    let again = serve(&left, 0);
    let client = Client::of(&left).unwrap();
    let seen = read(&client, b"/file", 70_000);
    let whole = [&content(1, 60_000)[..1000], &content(2, 30_000), &content(1, 60_000)[31_000..]];
    assert!(seen == whole.concat());
    assert!(again.stop() && node.stop());
}

#[test]
fn a_server_whose_device_cannot_sync_writes_nothing_more_and_says_so() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("fs");
    let node = serve(&directory, 0);
    let client = Client::of(&directory).unwrap();
    write(&client, b"/before", &content(1, 20_000));
    let file = OpenFile::open(&client, b"/lost", TO_WRITE).unwrap();
    let other = OpenFile::open(&client, b"/other", TO_WRITE).unwrap();
    file.write_at(0, &content(2, 20_000)).unwrap();
    other.write_at(0, &content(3, 20_000)).unwrap();
    breaks(directory.join("server-1"), true);
    let failed = |result: Result<(), Failure>| result.unwrap_err();
    let told = failed(file.sync());
    assert_eq!(told.code, Code::IO);
    assert!(told.text.contains("could not sync"), "{}", told.text);
    // Even if the next sync of the device would succeed, what it lost is not there.
    breaks(directory.join("server-1"), false);
    assert_eq!(failed(file.sync()).code, Code::IO);
    assert_eq!(failed(other.sync()).code, Code::IO);
    assert_eq!(failed(other.write_at(0, &content(4, 20_000))).code, Code::IO);
    assert_eq!(failed(other.close()).code, Code::IO);
    assert!(read(&client, b"/before", 30_000) == content(1, 20_000));
    assert!(node.stop());
}

#[test]
fn a_server_after_one_that_could_not_sync_takes_for_written_what_the_device_has() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("fs");
    let node = serve(&directory, 0);
    let client = Client::of(&directory).unwrap();
    let (old, new) = (content(1, 24_576), content(2, 24_576));
    write(&client, b"/file", &old);
    let file = OpenFile::open(&client, b"/file", TO_WRITE).unwrap();
    file.write_at(0, &new).unwrap();
    breaks(directory.join("server-1"), true);
    assert_eq!(file.sync().unwrap_err().code, Code::IO);
    breaks(directory.join("server-1"), false);
    assert!(directory.join("server-1/unsynced").exists());
    assert!(read(&client, b"/file", 30_000) == new);
    // Of a file that cannot be brought whole nothing is left.
    let source = parent.path().join("plain");
    fs::write(&source, &new).unwrap();
    assert_eq!(plain::import_file(&client, &source, b"/brought").unwrap_err().code, Code::IO);
    assert!(files::look(&client, b"/brought.iolab-import").unwrap().is_none());
    drop(file);
    drop(client);
    node.stop();

    let again = serve(&directory, 0);
    assert!(!directory.join("server-1/unsynced").exists());
    let client = Client::of(&directory).unwrap();
    let seen = read(&client, b"/file", 30_000);
    let stripes = |of: &[u8]| of.chunks(4096).map(<[u8]>::to_vec).collect::<Vec<_>>();
    let (left, old, new) = (stripes(&seen), stripes(&old), stripes(&new));
    let lost: Vec<usize> = (0..6).filter(|&at| left[at] == old[at]).collect();
    assert!(lost.len() == 2 && lost[1] == lost[0] + 3, "{lost:?}");
    assert!((0..6).all(|at| lost.contains(&at) || left[at] == new[at]));
    // What was read has sums now; they are of what a power cut leaves.
    while !is_summed(&directory) {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    sync_sums(&directory);
    let (_parent, cut) = after_power_cut(&directory);
    let last = serve(&cut, 0);
    assert!(read(&Client::of(&cut).unwrap(), b"/file", 30_000) == seen);
    assert!(last.stop() && again.stop());
}

#[test]
fn a_manager_after_one_whose_journal_could_not_be_synced_goes_on_from_what_the_device_has() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("fs");
    let node = serve(&directory, 0);
    let client = Client::of(&directory).unwrap();
    write(&client, b"/before", b"first");
    breaks(directory.join("metadata"), true);
    assert_eq!(OpenFile::open(&client, b"/lost", TO_WRITE).err().unwrap().code, Code::IO);
    breaks(directory.join("metadata"), false);
    assert!(directory.join("metadata/unsynced").exists());
    drop(client);
    node.stop();

    let again = serve(&directory, 0);
    assert!(!directory.join("metadata/unsynced").exists());
    let client = Client::of(&directory).unwrap();
    assert!(files::look(&client, b"/lost").unwrap().is_none());
    write(&client, b"/behind", b"second");
    let (_parent, cut) = after_power_cut(&directory);
    let last = serve(&cut, 0);
    let client = Client::of(&cut).unwrap();
    assert_eq!(read(&client, b"/before", 9), b"first");
    assert_eq!(read(&client, b"/behind", 9), b"second");
    assert!(last.stop() && again.stop());
}

#[test]
fn where_sums_cannot_be_kept_what_was_to_be_summed_is_synced_all_the_same() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("fs");
    let node = serve(&directory, 0);
    for server in 0..3 {
        fs::remove_dir(directory.join(format!("server-{server}/sums"))).unwrap();
    }
    let client = Client::of(&directory).unwrap();
    let file = OpenFile::open(&client, b"/file", TO_WRITE).unwrap();
    file.write_at(0, &content(1, 20_000)).unwrap();
    // Long enough for pages that are left alone to be summed.
    std::thread::sleep(std::time::Duration::from_secs(3));
    file.sync().unwrap();
    let (_parent, left) = after_power_cut(&directory);
    let again = serve(&left, 0);
    assert!(read(&Client::of(&left).unwrap(), b"/file", 30_000) == content(1, 20_000));
    drop(file);
    assert!(again.stop() && node.stop());
}
