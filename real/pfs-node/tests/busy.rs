//! A server whose thread runs but does not answer, as on a host with far more to do than processors, is waited
//! for. One whose thread sleeps, as if it were stopped, is given up, and told so when it is there again.

use iolab_pattern::Nest;
use iolab_pfs::client::{Call, Done, FileNumber};
use iolab_pfs::{Code, OpenWish};
use iolab_pfs_node::files::{From, OpenFile};
use iolab_pfs_node::instance::{Instance, Wish};
use iolab_pfs_node::node::Node;
use iolab_pfs_node::{Client, NoMemory};
use iolab_vocab::Direction;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const TO_WRITE: OpenWish =
    OpenWish { writes: true, creates: true, mode: 0o600, ..OpenWish::TO_READ };
/// Longer than a server may be silent that shows no other sign of life.
const RUNS_S: i64 = 10;
/// Longer than any other one is waited for, however late the machine lets it be noticed.
const SLEEPS_S: i64 = 60;

/// Threads of servers are found by their names, so there is one server at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn seconds() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place lives through the call.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec
}

extern "C" fn run(_signal: libc::c_int) {
    let end = seconds() + RUNS_S;
    while seconds() < end {}
}

extern "C" fn sleep(_signal: libc::c_int) {
    let time = libc::timespec { tv_sec: SLEEPS_S, tv_nsec: 0 };
    // SAFETY: the time is only read.
    unsafe { libc::nanosleep(&time, std::ptr::null_mut()) };
}

/// Ends the sleep.
extern "C" fn wake(_signal: libc::c_int) {}

/// Has the thread of the server do something else than serve.
fn disturb(signal: libc::c_int, by: extern "C" fn(libc::c_int)) {
    let thread = std::fs::read_dir("/proc/self/task").unwrap().find_map(|entry| {
        let place = entry.unwrap().path();
        let name = std::fs::read_to_string(place.join("comm")).ok()?;
        (name.trim_end() == "pfs-io-0").then(|| place.file_name().unwrap().to_owned())
    });
    let thread: libc::pid_t = thread.unwrap().to_str().unwrap().parse().unwrap();
    // SAFETY: the handlers make system calls only; the thread is one of this process.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = by as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(signal, &action, std::ptr::null_mut()), 0);
        assert_eq!(libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, signal), 0);
    }
}

#[test]
fn a_server_that_runs_is_waited_for_and_one_that_sleeps_is_given_up() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let wish = Wish { servers: Some(1), ..Wish::default() };
    let node = Node::start(Instance::take(directory.path(), &wish).unwrap()).unwrap();
    let client = Client::of(directory.path()).unwrap();
    let file = OpenFile::open(&client, b"/f", TO_WRITE).unwrap();
    file.write_at(0, &[1; 1000]).unwrap();

    disturb(libc::SIGUSR1, run);
    let began = Instant::now();
    assert_eq!(file.write_at(0, &[2; 1000]), Ok(()));
    assert!(began.elapsed() > Duration::from_secs(8), "it was not kept from answering");

    disturb(libc::SIGUSR2, sleep);
    let given_up = file.write_at(0, &[3; 1000]).map_err(|failure| failure.code);
    assert_eq!(given_up, Err(Code::TIMED_OUT));
    disturb(libc::SIGALRM, wake);
    assert!(node.stop());
}

/// Two processes of a group, and the file that they have open together.
fn pair(directory: &std::path::Path) -> [(Client, FileNumber); 2] {
    let clients = [0, 1].map(|_| Client::of(directory).unwrap());
    let open = Call::Open { path: b"/f".to_vec(), wish: TO_WRITE };
    let Ok(Done::Opened(opened)) = clients[0].call(open, &mut NoMemory) else { panic!("no file") };
    let numbers: Vec<FileNumber> = std::thread::scope(|scope| {
        let adopts = clients.iter().zip(0..).map(|(client, rank)| {
            let adopt = Call::Adopt { opened, rank, size: 2 };
            scope.spawn(move || match client.call(adopt, &mut NoMemory) {
                Ok(Done::Adopted(number)) => number,
                other => panic!("{other:?}"),
            })
        });
        let adopts: Vec<_> = adopts.collect();
        adopts.into_iter().map(|adopt| adopt.join().unwrap()).collect()
    });
    let mut numbers = numbers.into_iter();
    clients.map(|client| (client, numbers.next().unwrap()))
}

#[test]
fn a_rank_is_told_of_another_one_that_gave_a_collective_call_up_and_calls_nothing_since() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let wish = Wish { servers: Some(1), ..Wish::default() };
    let node = Node::start(Instance::take(directory.path(), &wish).unwrap()).unwrap();
    let [(first, first_file), (second, second_file)] = pair(directory.path());

    disturb(libc::SIGUSR2, sleep);
    assert_eq!(writes_together(&second, second_file), Err(Code::TIMED_OUT));
    disturb(libc::SIGALRM, wake);

    let (tell, told) = channel();
    std::thread::spawn(move || tell.send(writes_together(&first, first_file)));
    // Without the other rank it would wait for ever.
    let told = told.recv_timeout(Duration::from_secs(SLEEPS_S as u64));
    assert_eq!(told, Ok(Err(Code::TIMED_OUT)));
    drop(second);
    assert!(node.stop());
}

/// A collective write to the beginning of the file.
fn writes_together(client: &Client, file: FileNumber) -> Result<Done, Code> {
    let (direction, view) = (Direction::Write, Arc::new(Nest::WHOLE_FILE));
    let call = Call::Access { file, direction, view, from: 0, to: 1000, collective: true };
    client.call(call, &mut From(&[7; 1000])).map_err(|failure| failure.code)
}
