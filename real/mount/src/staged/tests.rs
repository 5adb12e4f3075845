use super::*;
use iolab_policy::Machine;
use iolab_policy::insitu::{Action, Event, Holding, Strategy, StrategySpec};
use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;

const READ_WRITE: Access = Access { read: true, write: true, append: false, synchronous: false };

fn write_back() -> Box<dyn Strategy> {
    StrategySpec::parse("write-back").unwrap().build()
}

fn staged(file: &File, strategy: Box<dyn Strategy>) -> Staged {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    Staged::new(Stack::new(vec![strategy]), path, "a file".to_owned(), Arc::default())
}

fn fd(file: &File) -> Arc<OwnedFd> {
    Arc::new(file.try_clone().unwrap().into())
}

fn write(offset: u64, bytes: &[u8]) -> (Call, Memory<'_>) {
    let call = Call::Write { at: At::Offset(offset), length: bytes.len() as u64 };
    (call, Memory::Written(bytes))
}

/// A temporary file, its stack with write-back, and a description of it.
fn scene() -> (tempfile::NamedTempFile, Staged, Handle) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut staged = staged(file.as_file(), write_back());
    let handle = staged.open(fd(file.as_file()), READ_WRITE);
    (file, staged, handle)
}

#[test]
fn what_one_description_holds_another_one_reads() {
    let (file, mut staged, one) = scene();
    let other = staged.open(fd(file.as_file()), READ_WRITE);
    let (call, memory) = write(3, b"held");
    assert_eq!(staged.call(one, call, memory), Ok(4));
    assert_eq!(fs::read(file.path()).unwrap(), b"");
    let mut room = [1; 10];
    let call = Call::Read { at: At::Offset(0), length: 10 };
    assert_eq!(staged.call(other, call, Memory::Read(&mut room)), Ok(7));
    assert_eq!(&room[..7], b"\0\0\0held");
}

#[test]
fn a_closed_description_that_is_used_after_all_goes_on() {
    let (file, mut staged, handle) = scene();
    for (offset, bytes) in [(0, b"one"), (3, b"two")] {
        let (call, memory) = write(offset, bytes);
        assert_eq!(staged.call(handle, call, memory), Ok(3));
        assert_eq!(staged.close(handle), Ok(0));
    }
    assert_eq!(fs::read(file.path()).unwrap(), b"onetwo");
    assert_eq!(staged.release(handle), Ok(0));
    assert_eq!(staged.close(handle), Err(EBADF));
}

#[test]
fn whoever_closes_hears_that_bytes_found_no_room() {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut staged = staged(&full, write_back());
    let handle = staged.open(fd(&full), READ_WRITE);
    let (call, memory) = write(0, b"no room");
    assert_eq!(staged.call(handle, call, memory), Ok(7));
    staged.flush();
    assert_eq!(staged.close(handle), Err(Errno(28)));
}

#[test]
fn a_write_by_nobodys_description_lies_above_what_is_held() {
    let (file, mut staged, handle) = scene();
    let (call, memory) = write(0, b"older");
    staged.call(handle, call, memory).unwrap();
    let (call, memory) = write(2, b"NEW");
    assert_eq!(staged.visit(call, memory), Ok(3));
    staged.close(handle).unwrap();
    assert_eq!(fs::read(file.path()).unwrap(), b"olNEW");
}

#[test]
fn a_synchronous_write_lies_above_what_is_held() {
    let (file, mut staged, handle) = scene();
    let raw = Access { synchronous: true, ..READ_WRITE };
    let synchronous = staged.open(fd(file.as_file()), raw);
    let (call, memory) = write(0, b"older");
    staged.call(handle, call, memory).unwrap();
    let (call, memory) = write(2, b"NEW");
    assert_eq!(staged.call(synchronous, call, memory), Ok(3));
    assert_eq!(fs::read(file.path()).unwrap(), b"olNEW");
    staged.close(handle).unwrap();
    assert_eq!(fs::read(file.path()).unwrap(), b"olNEW");
}

#[test]
fn after_it_is_retired_nothing_is_held() {
    let (file, mut staged, handle) = scene();
    let (call, memory) = write(0, b"held");
    staged.call(handle, call, memory).unwrap();
    staged.retire();
    assert_eq!(fs::read(file.path()).unwrap(), b"held");
    let (call, memory) = write(4, b" not");
    staged.call(handle, call, memory).unwrap();
    assert_eq!(fs::read(file.path()).unwrap(), b"held not");
}

/// Write-back that breaks down at a sync.
struct Defective(Box<dyn Strategy>);

impl Machine for Defective {
    type Event = Event;
    type Action = Action;

    fn step(&mut self, now: Nanos, event: Event, out: &mut Vec<Action>) {
        assert!(!matches!(event, Event::Arrived { call: Call::Sync { .. }, .. }), "a defect");
        self.0.step(now, event, out);
    }
}

impl Strategy for Defective {
    fn staging_bytes(&self) -> u64 {
        self.0.staging_bytes()
    }

    fn holding_bytes(&self) -> u64 {
        self.0.holding_bytes()
    }

    fn holding(&self) -> Holding {
        self.0.holding()
    }

    fn held_pieces(&self, show: &mut dyn FnMut(HeldPiece)) {
        self.0.held_pieces(show);
    }

    fn held_bytes(&self) -> u64 {
        self.0.held_bytes()
    }
}

#[test]
fn a_defect_of_a_strategy_costs_one_call_and_no_bytes() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut staged = staged(file.as_file(), Box::new(Defective(write_back())));
    let handle = staged.open(fd(file.as_file()), READ_WRITE);
    let (call, memory) = write(1, b"held");
    staged.call(handle, call, memory).unwrap();
    let sync = Call::Sync { data_only: false };
    assert_eq!(staged.call(handle, sync, Memory::Nothing), Err(EIO));
    assert_eq!(fs::read(file.path()).unwrap(), b"\0held");
    assert_eq!(staged.call(handle, sync, Memory::Nothing), Ok(0));
    let (call, memory) = write(0, b"x");
    assert_eq!(staged.call(handle, call, memory), Ok(1));
    assert_eq!(staged.release(handle), Ok(0));
    assert_eq!(fs::read(file.path()).unwrap(), b"xheld");
}
