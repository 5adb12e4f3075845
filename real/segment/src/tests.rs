//! Two processes of a run, both in this one: each has the segment mapped for itself.

use crate::{Entry, Ledger, Run, Shape, Undrained};
use std::ffi::CString;
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

struct Scene {
    directory: tempfile::TempDir,
    segment: PathBuf,
    owner: Run,
}

fn c(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

fn scene() -> Scene {
    let directory = tempfile::tempdir().unwrap();
    let segment = directory.path().join("segment");
    let owner = Run::create(&c(&segment), Shape { staging_bytes: 64 << 10 }).unwrap();
    Scene { directory, segment, owner }
}

impl Scene {
    fn file(&self) -> (PathBuf, fs::File) {
        let path = self.directory.path().join("file");
        let file = fs::OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        (path, file.unwrap())
    }

    /// Another process, as the tables see it.
    fn other(&self) -> Run {
        let run = Run::attach(&c(&self.segment)).unwrap();
        // Its process number is this one's, which lives as well.
        assert!(run.me() > 1);
        run
    }
}

/// What an owner does to hold `bytes` at `offset`.
fn hold(run: &Run, ledger: &mut Ledger, bytes: &[u8], offset: u64, appending: bool) {
    let (slab, at) = (ledger.slab(), ledger.fill());
    assert!(slab.grant(run, at + bytes.len() as u64));
    // SAFETY: granted just now.
    unsafe { slab.staging().add(at as usize).copy_from(bytes.as_ptr(), bytes.len()) };
    let (fill, end) = (at + bytes.len() as u64, offset + bytes.len() as u64);
    assert!(ledger.add(run, fill, end, appending));
}

/// A file that the owner has open, and the memory to hold bytes of it.
struct Owned<'a> {
    run: &'a Run,
    path: PathBuf,
    file: fs::File,
    entry: &'a Entry,
    /// What the entry's word was.
    expected: u64,
    ledger: Ledger,
}

impl Owned<'_> {
    fn show_path(&self, path: &Path, birth: u64) {
        self.ledger.slab().set_path(path.as_os_str().as_bytes(), self.run.names(), birth);
    }

    /// Holds bytes by a call that does not come to its end.
    fn begin_to_hold(&mut self, bytes: &[u8], offset: u64, appending: bool) {
        hold(self.run, &mut self.ledger, bytes, offset, appending);
        self.run.note_held(self.entry, true);
    }

    fn hold(&mut self, bytes: &[u8], offset: u64, appending: bool) {
        self.begin_to_hold(bytes, offset, appending);
        self.run.confirm_held(self.entry);
    }
}

impl Scene {
    fn owned(&self) -> Owned<'_> {
        let (path, file) = self.file();
        let (run, status) = (&self.owner, file.metadata().unwrap());
        let joined = run.join(status.dev(), status.ino(), true).unwrap();
        assert!(joined.is_owner);
        let ledger = Ledger::new(run.take_slab(1000).unwrap());
        run.show_slabs(joined.entry, &[ledger.slab().word()]);
        let birth = crate::birth_of(file.as_raw_fd());
        let (entry, expected) = (joined.entry, joined.expected);
        let owned = Owned { run, path, file, entry, expected, ledger };
        owned.show_path(&owned.path, birth);
        owned
    }

    /// A process ends: none has its number any more.
    fn end(&self, slot: u32) {
        let processes = &self.owner.table().processes;
        processes[slot as usize - 1].pid.store(u32::MAX >> 1, Relaxed);
    }
}

#[test]
fn who_looks_writes_out_what_the_owner_holds_newer_bytes_over_older_ones() {
    let scene = scene();
    let mut owned = scene.owned();
    let (entry, expected) = (owned.entry, owned.expected);
    let (path, status) = (owned.path.clone(), owned.file.metadata().unwrap());
    owned.run.show_descriptor(entry, owned.file.as_raw_fd());
    owned.hold(b"0123456789", 0, false);
    owned.hold(b"abcd", 3, false);
    owned.hold(b"ef", 7, false);
    assert!(fs::read(&path).unwrap().is_empty());
    assert!(entry.enter(expected, true));
    entry.leave();

    let other = scene.other();
    assert!(other.is_any_holding());
    let joined = other.join(status.dev(), status.ino(), true).unwrap();
    assert!(!joined.is_owner);
    assert_eq!(other.disturb(joined.entry), Ok(()));
    assert_eq!(fs::read(&path).unwrap(), b"012abcdef9");
    assert!(!other.is_any_holding() && owned.ledger.slab().is_empty());
    assert!(!entry.enter(expected, true), "the owner is told");
    entry.leave();
    assert!(scene.owner.is_shared(entry));
    other.part(joined.entry);
    assert!(!scene.owner.is_shared(entry));
}

#[test]
fn an_owner_that_was_overtaken_before_it_first_looked_is_told() {
    let scene = scene();
    let (_, file) = scene.file();
    let status = file.metadata().unwrap();
    let joined = scene.owner.join(status.dev(), status.ino(), true).unwrap();
    let other = scene.other();
    let overtaking = other.join(status.dev(), status.ino(), true).unwrap();
    assert_eq!(other.disturb(overtaking.entry), Ok(()));
    assert!(!joined.entry.enter(joined.expected, true), "however late it looks");
    joined.entry.leave();
}

#[test]
fn an_append_that_was_cut_off_goes_out_once() {
    let scene = scene();
    let mut owned = scene.owned();
    fs::write(&owned.path, b"before ").unwrap();
    owned.run.show_descriptor(owned.entry, owned.file.as_raw_fd());
    owned.hold(b"appended", 7, true);
    // The owner wrote half of it and was cut off.
    owned.ledger.set_base(7);
    fs::write(&owned.path, b"before appe").unwrap();
    assert_eq!(scene.other().disturb(owned.entry), Ok(()));
    assert_eq!(fs::read(&owned.path).unwrap(), b"before appended");
}

#[test]
fn a_list_made_anew_counts_only_when_it_is_whole() {
    let scene = scene();
    let mut ledger = Ledger::new(scene.owner.take_slab(1000).unwrap());
    hold(&scene.owner, &mut ledger, b"0123456789", 0, false);
    ledger.begin(false);
    assert!(ledger.piece(&scene.owner, 5, 2, 5));
    let held = |ledger: &Ledger| {
        let pieces = ledger.slab().held().0;
        pieces.iter().map(|held| (held.offset, held.length, held.at)).collect::<Vec<_>>()
    };
    assert_eq!(held(&ledger), [(0, 10, 0)]);
    ledger.end(10);
    assert_eq!(held(&ledger), [(5, 2, 5)]);
    hold(&scene.owner, &mut ledger, b"xy", 7, false);
    assert_eq!(held(&ledger), [(5, 2, 5), (7, 2, 10)]);
}

#[test]
fn a_file_that_has_gone_keeps_its_bytes_and_names_its_place() {
    let scene = scene();
    let mut owned = scene.owned();
    owned.hold(b"bytes", 0, false);
    fs::rename(&owned.path, scene.directory.path().join("elsewhere")).unwrap();
    // Who cannot write out asks the launcher, who cannot either.
    let other = scene.other();
    let asked = std::thread::scope(|scope| {
        let asking = scope.spawn(|| other.disturb(owned.entry));
        while !asking.is_finished() {
            scene.owner.answer();
            std::thread::yield_now();
        }
        asking.join().unwrap()
    });
    match asked {
        Err(Undrained::Unwritten(it)) => {
            assert_eq!((it.bytes, it.errno), (5, libc::ENOENT));
            assert_eq!(it.path, owned.path.as_os_str().as_bytes());
        }
        other => panic!("{other:?}"),
    }
    assert!(!owned.ledger.slab().is_empty());
}

#[test]
fn bytes_of_a_file_without_a_name_go_with_their_owner() {
    let scene = scene();
    let mut owned = scene.owned();
    owned.show_path(Path::new(""), 0);
    owned.hold(b"bytes", 0, false);
    fs::remove_file(&owned.path).unwrap();
    scene.end(1);
    assert_eq!(scene.owner.disturb(owned.entry), Ok(()));
    assert!(owned.ledger.slab().is_empty() && !scene.owner.is_any_holding());
}

#[test]
fn bytes_go_to_no_other_file_of_the_same_number_and_name() {
    let scene = scene();
    let mut owned = scene.owned();
    // The file that was held came to be at another time than the one that is there.
    owned.show_path(&owned.path, 1);
    owned.hold(b"bytes", 0, false);
    scene.end(1);
    assert!(scene.owner.disturb(owned.entry).is_err());
    assert!(fs::read(&owned.path).unwrap().is_empty() && !owned.ledger.slab().is_empty());
}

#[test]
fn what_a_dead_owner_held_does_not_come_back_into_a_file_that_was_cut() {
    let scene = scene();
    let mut owned = scene.owned();
    owned.hold(b"bytes", 0, false);
    let other = scene.other();
    other.forget_cut(owned.entry);
    assert!(scene.owner.is_any_holding(), "its owner lives");
    scene.end(1);
    other.forget_cut(owned.entry);
    assert!(owned.ledger.slab().is_empty() && !scene.owner.is_any_holding());
    assert!(fs::read(&owned.path).unwrap().is_empty());
}

#[test]
fn names_that_a_killed_process_was_changing_are_sure_again_once_it_is_found() {
    let scene = scene();
    let other = scene.other();
    other.begin_move();
    assert!(scene.owner.is_moving());
    let names = scene.owner.names();
    scene.end(other.me());
    scene.owner.sweep_processes();
    assert!(!scene.owner.is_moving());
    assert_ne!(scene.owner.names(), names, "its call may have changed names");
}

#[test]
fn what_a_killed_owner_was_about_to_hold_is_written_nowhere() {
    let scene = scene();
    let mut owned = scene.owned();
    // The call did not come to its end.
    owned.begin_to_hold(b"bytes", 0, false);
    scene.end(1);
    assert_eq!(scene.owner.disturb(owned.entry), Ok(()));
    assert!(owned.ledger.slab().is_empty());
    assert!(fs::read(&owned.path).unwrap().is_empty());
}

#[test]
fn a_mapping_keeps_a_file_shared_and_full_tables_end_all_holding() {
    let scene = scene();
    let entry = scene.owner.join(7, 7, false).unwrap().entry;
    scene.owner.map(entry, true);
    scene.owner.part(entry);
    assert!(scene.owner.find(7, 7).is_some() && scene.owner.is_shared(entry));
    scene.owner.map(entry, false);
    assert!(scene.owner.find(7, 7).is_none());
    let joined = (0..100_000).take_while(|&inode| scene.owner.join(1, inode, true).is_some());
    assert!(joined.count() > 2000);
    assert!(scene.owner.must_pass());
}

#[test]
fn a_segment_of_another_version_or_for_all_to_read_is_refused() {
    use crate::AttachError;
    use std::os::unix::fs::PermissionsExt;
    let scene = scene();
    fs::set_permissions(&scene.segment, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(Run::attach(&c(&scene.segment)).err(), Some(AttachError::Foreign));
    fs::set_permissions(&scene.segment, fs::Permissions::from_mode(0o600)).unwrap();
    scene.owner.table().header.version.store(99, Relaxed);
    assert_eq!(Run::attach(&c(&scene.segment)).err(), Some(AttachError::Version));
}
