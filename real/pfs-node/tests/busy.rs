//! A server whose thread runs but does not answer, as on a host with far more to do than processors, is waited
//! for. One whose thread sleeps, as if it were stopped, is given up.

use iolab_pfs::{Code, OpenWish};
use iolab_pfs_node::Client;
use iolab_pfs_node::files::OpenFile;
use iolab_pfs_node::instance::{Instance, Wish};
use iolab_pfs_node::node::Node;
use std::time::{Duration, Instant};

const TO_WRITE: OpenWish =
    OpenWish { writes: true, creates: true, mode: 0o600, ..OpenWish::TO_READ };
/// Longer than a server may be silent that shows no other sign of life.
const RUNS_S: i64 = 10;
/// Longer than any other one is waited for, however late the machine lets it be noticed.
const SLEEPS_S: i64 = 60;

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
