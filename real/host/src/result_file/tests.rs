use super::unnamed::suffixed;
use super::*;
use std::fs::Permissions;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::symlink;
use std::thread;
use tempfile::tempdir;

fn write(path: &Path, text: &str) -> io::Result<Option<PathBuf>> {
    ResultFile::at(path)?.write(text.as_bytes())
}

fn names(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

#[test]
fn a_file_is_new_or_replaced_whole_and_keeps_its_permissions() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("result");
    assert_eq!(write(&path, "first").unwrap(), None);
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    let mut writing = ResultFile::at(&path).unwrap().begin().unwrap();
    writing.write_all(b"half of the sec").unwrap();
    writing.flush().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"first");
    drop(writing);
    assert_eq!((fs::read(&path).unwrap(), names(folder.path())), (b"first".to_vec(), 1));
    assert_eq!(write(&path, "second").unwrap(), None);
    assert_eq!(fs::read(&path).unwrap(), b"second");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o640);
    assert_eq!(names(folder.path()), 1);
}

#[test]
fn links_are_followed_to_files_that_exist_and_that_do_not() {
    let folder = tempdir().unwrap();
    let deep = folder.path().join("deep");
    fs::create_dir(&deep).unwrap();
    fs::write(deep.join("old"), "old").unwrap();
    for name in ["old", "new"] {
        let link = folder.path().join(format!("to-{name}"));
        symlink(format!("deep/{name}"), &link).unwrap();
        symlink(format!("to-{name}"), folder.path().join(format!("twice-{name}"))).unwrap();
        write(&folder.path().join(format!("twice-{name}")), "text").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(deep.join(name)).unwrap(), b"text");
    }
    symlink("round", folder.path().join("round")).unwrap();
    assert!(write(&folder.path().join("round"), "text").is_err());
}

#[test]
fn pipes_and_descriptors_are_written_through() {
    let folder = tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let name = terminated(&pipe).unwrap();
    // SAFETY: the name is terminated.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let reader = thread::spawn({
        let pipe = pipe.clone();
        move || fs::read(pipe).unwrap()
    });
    write(&pipe, "through").unwrap();
    assert_eq!(reader.join().unwrap(), b"through");
    assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());

    let path = folder.path().join("open");
    let mut open = File::create(&path).unwrap();
    open.write_all(b"before, ").unwrap();
    let descriptor = format!("/proc/self/fd/{}", open.as_raw_fd());
    let link = folder.path().join("link");
    symlink(&descriptor, &link).unwrap();
    write(&link, "through, ").unwrap();
    open.write_all(b"after").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"before, through, after");
    let closed = format!("/dev/fd/{}", 999_983);
    assert!(ResultFile::at(Path::new(&closed)).is_err());
    let reading = File::open(&path).unwrap();
    let descriptor = format!("/dev/fd/{}", reading.as_raw_fd());
    assert!(ResultFile::at(Path::new(&descriptor)).is_err());
}

#[test]
fn a_device_stays_one_and_a_full_one_is_an_error() {
    write(Path::new("/dev/null"), "text").unwrap();
    assert!(fs::symlink_metadata("/dev/null").unwrap().file_type().is_char_device());
    let error = write(Path::new("/dev/full"), "text").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
}

#[test]
fn what_cannot_be_written_is_known_before_anything_is_written() {
    let folder = tempdir().unwrap();
    let path = folder.path();
    for wrong in [path.to_owned(), path.join("none/x"), path.join("x/"), PathBuf::new()] {
        assert!(ResultFile::at(&wrong).is_err(), "{}", wrong.display());
    }
    let long = path.join("n".repeat(256));
    assert!(ResultFile::at(&long).is_err());
    assert_eq!(names(path), 0);
}

#[test]
fn what_came_to_lie_there_meanwhile_stays() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("result");
    for round in 1..3 {
        let late = ResultFile::at(&path).unwrap().begin().unwrap();
        let aside = folder.path().join(format!("aside-{round}"));
        if round == 2 {
            fs::rename(&path, aside).unwrap();
        }
        fs::write(&path, "mine").unwrap();
        let beside = late.finish().unwrap().expect("another name");
        assert_eq!(beside, fs::canonicalize(suffixed(&path, round)).unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"mine");
    }
}

#[test]
fn an_input_is_recognised_under_its_other_names() {
    let folder = tempdir().unwrap();
    let (file, link) = (folder.path().join("in"), folder.path().join("link"));
    fs::write(&file, "text").unwrap();
    symlink("in", &link).unwrap();
    let result = ResultFile::at(&link).unwrap();
    assert!(result.is(&file) && !result.is(&folder.path().join("other")));
    let new = ResultFile::at(&folder.path().join("new")).unwrap();
    assert!(new.is(&folder.path().join(".").join("new")));
}

#[test]
fn whether_another_who_looked_has_written_is_told() {
    let folder = tempdir().unwrap();
    let (fresh, old) = (folder.path().join("fresh"), folder.path().join("old"));
    fs::write(&old, "old").unwrap();
    for path in [&fresh, &old] {
        let looked = ResultFile::at(path).unwrap();
        assert!(!looked.is_written());
        let mut writing = looked.clone().begin().unwrap();
        writing.write_all(b"new").unwrap();
        assert!(!looked.is_written(), "not before it is whole");
        writing.finish().unwrap();
        assert!(looked.is_written());
    }
}
