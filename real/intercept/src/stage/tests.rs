//! The stage on real files of this process, called as the hooks call it.

use super::memory::Direction;
use super::{calls, hooks, life, opening, rules, settings, shared, table};
use crate::call::{Call, Returns};
use iolab_policy::insitu::StrategySpec;
use iolab_policy::insitu::rules::Act;
use iolab_segment::{Run, Shape};
use iolab_trace::Function;
use std::ffi::{CString, c_int};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Once, OnceLock};

/// A file in a fresh directory, opened through the stage.
struct Guest {
    _directory: tempfile::TempDir,
    path: PathBuf,
}

static PLACE: OnceLock<tempfile::TempDir> = OnceLock::new();

extern "C" fn remove_place() {
    if let Some(place) = PLACE.get() {
        let _ = fs::remove_dir_all(place.path());
    }
}

/// `name` chooses the strategies: `*.wb` write-back, `*.small` with a tiny buffer, `*.cruel` over
/// a stage that shortens and fails transfers.
fn guest(name: &str) -> Guest {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let specs = [
            "write-back:buffer=64k,paths=*.wb",
            "write-back:buffer=100,largest=60,paths=*.small",
            "write-back:buffer=4k,paths=*.cruel",
            "cruel:short=1,seed=3,paths=*.cruel",
            "null:paths=*.null",
        ];
        settings::apply(specs.map(|text| StrategySpec::parse(text).unwrap()).to_vec());
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("segment");
        let path = CString::new(path.as_os_str().as_bytes()).unwrap();
        let run = Run::create(&path, Shape { staging_bytes: 64 << 10 }).unwrap();
        // Slabs are found by the path, so it has to stay until the end.
        let _ = PLACE.set(directory);
        // SAFETY: registers a function that takes nothing.
        unsafe { libc::atexit(remove_place) };
        shared::adopt(run);
    });
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    Guest { _directory: directory, path }
}

impl Guest {
    fn open(&self, flags: c_int) -> c_int {
        open(&self.path, flags)
    }

    fn below(&self) -> Vec<u8> {
        fs::read(&self.path).unwrap()
    }
}

fn open(path: &Path, flags: c_int) -> c_int {
    open_overtaken(path, flags, || ())
}

/// As `open`; `others` act between the system's open and the stage's.
fn open_overtaken(path: &Path, flags: c_int, others: impl FnOnce()) -> c_int {
    let name = CString::new(path.as_os_str().as_bytes()).unwrap();
    rules::on_path(Act::Flush, crate::call::ABSENT, name.as_ptr() as usize);
    // SAFETY: the name is terminated.
    let fd = unsafe { libc::open(name.as_ptr(), flags, 0o644) };
    assert!(fd >= 0);
    let status = super::kernel::status(fd).unwrap();
    others();
    opening::opened(fd, flags, name.as_bytes(), 0, &status);
    fd
}

fn write(fd: c_int, bytes: &[u8]) -> Option<isize> {
    // SAFETY: the bytes are valid.
    unsafe {
        calls::answer(Function::WRITE, [fd as usize, bytes.as_ptr() as usize, bytes.len(), 0])
    }
}

fn pwrite(fd: c_int, bytes: &[u8], offset: i64) -> Option<isize> {
    // SAFETY: the bytes are valid.
    unsafe {
        let a = [fd as usize, bytes.as_ptr() as usize, bytes.len(), offset as usize];
        calls::answer(Function::PWRITE, a)
    }
}

fn read(fd: c_int, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    // SAFETY: the bytes are valid.
    let moved = unsafe {
        calls::answer(Function::READ, [fd as usize, bytes.as_mut_ptr() as usize, length, 0])
    };
    bytes.truncate(moved.expect("staged") as usize);
    bytes
}

fn close(fd: c_int) -> isize {
    opening::close(fd, || ()).unwrap_or_else(|| super::kernel::close(fd))
}

const CREATE: c_int = libc::O_CREAT | libc::O_RDWR;

#[test]
fn a_file_that_its_owner_may_no_longer_write_is_not_held() {
    let guest = guest("read-only.wb");
    let fd = guest.open(CREATE);
    let chmod = |mode| {
        let next = &crate::next::fchmod;
        let mut call = Call::new(Function::FCHMOD, Returns::Int, next, [0; 6]);
        (call.fd, call.mode) = (fd as usize, mode);
        hooks::attribute(&call);
    };
    assert_eq!(write(fd, b"held"), Some(4));
    chmod(0o640);
    assert_eq!(guest.below(), b"held");
    assert_eq!(write(fd, b"again"), Some(5));
    chmod(0o444);
    assert_eq!(guest.below(), b"heldagain");
    assert_eq!(write(fd, b"passes"), None);
    assert_eq!(close(fd), 0);
}

#[test]
fn what_others_wrote_during_the_open_is_known_when_bytes_are_held() {
    let guest = guest("overtaken.wb");
    let fd = open_overtaken(&guest.path, CREATE, || fs::write(&guest.path, [7; 100]).unwrap());
    assert_eq!(pwrite(fd, b"header", 0), Some(6));
    assert_eq!(calls::seek(fd, 0, libc::SEEK_END), Some(100));
    assert_eq!(write(fd, b"behind"), Some(6));
    assert_eq!(close(fd), 0);
    assert_eq!(guest.below(), [b"header", &[7; 94][..], b"behind"].concat());
}

/// Descriptors of this process that lead to a file.
fn descriptors_to(path: &Path) -> usize {
    let all = fs::read_dir("/proc/self/fd").unwrap().flatten();
    all.filter(|entry| fs::read_link(entry.path()).is_ok_and(|to| to == path)).count()
}

/// With a second descriptor of the description the kernel locks the position at each call.
#[test]
fn a_stack_that_only_passes_has_no_descriptor_of_its_own_until_the_program_has_two() {
    let guest = guest("borrowed.null");
    let first = guest.open(CREATE);
    assert_eq!(descriptors_to(&guest.path), 1);
    // SAFETY: takes no memory.
    let second = unsafe { libc::dup(first) };
    opening::duplicated(first, second);
    assert_eq!(descriptors_to(&guest.path), 3);
    assert_eq!(close(first), 0);
    let staged = table::lookup(second).expect("it is served");
    assert!(staged.own() != first && super::kernel::status(staged.own()).is_some());
    assert_eq!(close(second), 0);
    assert_eq!(descriptors_to(&guest.path), 0);
    let held = self::guest("owned.wb");
    let fd = held.open(CREATE);
    assert_eq!(descriptors_to(&held.path), 2);
    assert_eq!(close(fd), 0);
}

#[test]
fn small_writes_are_held_until_the_close() {
    let guest = guest("a.wb");
    let fd = guest.open(CREATE);
    for i in 0..100u8 {
        assert_eq!(write(fd, &[i; 10]), Some(10));
    }
    assert_eq!(guest.below(), b"");
    assert_eq!(close(fd), 0);
    let expected: Vec<u8> = (0..100u8).flat_map(|i| [i; 10]).collect();
    assert_eq!(guest.below(), expected);
}

#[test]
fn a_file_no_strategy_chooses_is_not_staged() {
    let guest = guest("a.plain");
    let fd = guest.open(CREATE);
    assert_eq!(write(fd, b"x"), None);
    assert_eq!(calls::seek(fd, 0, libc::SEEK_CUR), None);
    super::kernel::close(fd);
}

#[test]
fn descriptors_of_one_file_see_each_others_writes() {
    let guest = guest("b.wb");
    let (first, second) = (guest.open(CREATE), guest.open(libc::O_RDWR));
    write(first, b"hello world");
    assert_eq!(read(second, 5), b"hello");
    pwrite(second, b"J", 0);
    assert_eq!(calls::seek(first, 0, libc::SEEK_SET), Some(0));
    assert_eq!(read(first, 100), b"Jello world");
    // SAFETY: plain descriptors.
    let third = unsafe { libc::dup(first) };
    opening::duplicated(first, third);
    assert_eq!(close(first), 0);
    assert_eq!(calls::seek(third, 0, libc::SEEK_CUR), Some(11));
    write(third, b"!");
    assert_eq!((close(third), close(second)), (0, 0));
    assert_eq!(guest.below(), b"Jello world!");
}

#[test]
fn wild_addresses_come_to_efault_and_not_to_a_crash() {
    let guest = guest("c.wb");
    let fd = guest.open(CREATE);
    write(fd, b"before");
    let wild = 0x10 as *const std::ffi::c_void;
    // SAFETY: any address may be given.
    let result = unsafe { calls::answer(Function::WRITE, [fd as usize, wild as usize, 64, 0]) };
    // The file is released: the caller asks the kernel, which knows best.
    assert_eq!(result, None);
    assert_eq!(super::kernel::seek(fd, 0, libc::SEEK_CUR), 6);
    close(fd);
    assert_eq!(guest.below(), b"before");
}

#[test]
fn vectors_go_in_and_come_out_whole() {
    for name in ["d.wb", "d.small", "d.cruel", "d.null"] {
        let guest = guest(name);
        let fd = guest.open(CREATE);
        let (a, b) = (vec![1u8; 70], vec![2u8; 50]);
        let part = |bytes: &[u8]| libc::iovec {
            iov_base: bytes.as_ptr().cast_mut().cast(),
            iov_len: bytes.len(),
        };
        let vector = [part(&a), part(&b)];
        let mut written = 0;
        // SAFETY: the vector is valid.
        let moved = unsafe {
            let taken = calls::vector(Direction::Out, fd, vector.as_ptr(), 2, None);
            // A call that changes nothing in any strategy is left to whoever asks.
            assert_eq!(taken.is_none(), name == "d.null");
            taken.unwrap_or_else(|| libc::writev(fd, vector.as_ptr(), 2))
        };
        written += moved as usize;
        let all = [a.clone(), b.clone()].concat();
        while written < 120 {
            written += write(fd, &all[written..]).unwrap().max(0) as usize;
        }
        close(fd);
        assert_eq!(guest.below(), all, "{name}");
    }
}

#[test]
fn what_is_held_is_found_by_a_read_that_was_not_heard_before() {
    let guest = guest("interest.wb");
    let fd = guest.open(CREATE);
    let look = |bytes: &mut [u8]| {
        let a = [fd as usize, bytes.as_mut_ptr() as usize, bytes.len(), 0];
        // SAFETY: the bytes are valid.
        unsafe { calls::answer(Function::PREAD, a) }
    };
    let mut bytes = [0; 4];
    assert_eq!(look(&mut bytes), None, "nothing is held, nobody hears it");
    assert_eq!(write(fd, b"held"), Some(4));
    assert_eq!(look(&mut bytes), Some(4));
    assert_eq!(&bytes, b"held");
    life::flush(table::lookup(fd).unwrap().file);
    assert_eq!(look(&mut bytes), None, "nothing is held any more");
    assert_eq!(guest.below(), b"held");
    close(fd);
}

#[test]
fn a_released_file_is_true_below_and_passes() {
    let guest = guest("e.wb");
    let fd = guest.open(CREATE);
    write(fd, b"0123456789");
    calls::seek(fd, 4, libc::SEEK_SET);
    life::release_where(|file| {
        table::lookup(fd).is_some_and(|staged| std::ptr::eq(staged.file, file))
    });
    assert_eq!(guest.below(), b"0123456789");
    assert_eq!(super::kernel::seek(fd, 0, libc::SEEK_CUR), 4);
    assert_eq!(write(fd, b"x"), None);
    close(fd);
}

#[test]
fn a_descriptor_that_passes_sees_what_others_hold_back() {
    let guest = guest("f.wb");
    let fd = guest.open(CREATE);
    write(fd, b"held");
    let name = CString::new(guest.path.as_os_str().as_bytes()).unwrap();
    // SAFETY: the name is terminated. Opened unseen, as an inherited descriptor would be.
    let unseen = unsafe { libc::open(name.as_ptr(), libc::O_RDONLY) };
    let mut bytes = [0u8; 8];
    // SAFETY: the bytes are valid.
    unsafe {
        let a = [unseen as usize, bytes.as_mut_ptr() as usize, 8, 0];
        assert_eq!(calls::answer(Function::READ, a), None);
        assert_eq!(libc::read(unseen, bytes.as_mut_ptr().cast(), 8), 4);
        libc::close(unseen);
    }
    assert_eq!(&bytes[..4], b"held");
    close(fd);
}

#[test]
fn a_call_that_comes_while_its_own_thread_is_inside_is_made_afterwards() {
    let guest = guest("g.wb");
    let fd = guest.open(CREATE);
    write(fd, b"aaaaaaaa");
    let file = table::lookup(fd).unwrap().file;
    assert!(file.enter());
    assert_eq!(pwrite(fd, b"bb", 2), Some(2), "as from a signal handler");
    file.leave();
    assert_eq!(write(fd, b"c"), Some(1));
    close(fd);
    assert_eq!(guest.below(), b"aabbaaaac");
}

#[test]
fn threads_write_to_one_file_without_losing_a_record() {
    let guest = guest("h.wb");
    let fd = guest.open(CREATE);
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            scope.spawn(move || {
                for i in 0..2000 {
                    let offset = (i * 4 + i64::from(thread)) * 16;
                    assert_eq!(pwrite(fd, &[thread + 1; 16], offset), Some(16));
                }
            });
        }
    });
    close(fd);
    let below = guest.below();
    assert_eq!(below.len(), 4 * 2000 * 16);
    for (index, record) in below.chunks(16).enumerate() {
        assert!(record.iter().all(|&byte| byte == (index % 4) as u8 + 1), "record {index}");
    }
}

#[test]
fn thousands_of_opens_and_closes_leave_no_entry_behind() {
    let guest = guest("i.wb");
    for i in 0..5_000 {
        let fd = guest.open(CREATE | libc::O_TRUNC);
        write(fd, &[i as u8; 3]);
        close(fd);
    }
    let status = fs::metadata(&guest.path).unwrap();
    use std::os::unix::fs::MetadataExt;
    assert!(table::find(status.dev(), status.ino()).is_none());
    assert_eq!(guest.below(), [(4_999 % 256) as u8; 3]);
}
