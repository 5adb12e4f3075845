//! Whether a party that does not answer runs all the same: its thread is on a processor or in line for one, or
//! waits for a device, which no signal ends. The kernel of this host tells, of parties it can name.
//!
//! Costs: nothing as long as answers come; then a small file a second.

use iolab_pfs::Party;
use rustix::fd::AsFd;
use rustix::fs::{Dir, Mode, OFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;

/// A line of `/proc` that is looked at is no longer.
const LINE_BYTES: usize = 1024;

/// The name of the thread that serves as a party: the kernel keeps 15 bytes.
pub(crate) fn thread_name(party: Party) -> String {
    match party {
        Party::Metadata => "pfs-metadata".to_owned(),
        Party::Server(index) => format!("pfs-io-{index}"),
        Party::Cache(index) => format!("pfs-cm-{index}"),
    }
}

/// The threads of parties that did not answer for a while, as they were seen last.
#[derive(Debug, Default)]
pub(crate) struct Threads(BTreeMap<Party, Thread>);

#[derive(Debug)]
struct Thread {
    /// Its line in `/proc`.
    stat: String,
    /// Processor time it had when it was looked at last, ticks.
    ticks: u64,
}

impl Threads {
    /// Those of some silent parties that run, by the sockets of connections.
    pub(crate) fn running<S: AsFd>(
        &mut self,
        silent: Vec<Party>,
        sockets: &BTreeMap<Party, S>,
    ) -> Vec<Party> {
        let mut parties = silent;
        parties.retain(|party| {
            sockets.get(party).is_some_and(|socket| self.is_running(*party, socket))
        });
        parties
    }

    /// Whether a party runs, which is at the other end of a socket, or has run since it was looked at last.
    fn is_running(&mut self, party: Party, socket: impl AsFd) -> bool {
        let seen = self.0.get_mut(&party).and_then(|thread| {
            let (state, ticks) = looked_at(&thread.stat)?;
            let before = std::mem::replace(&mut thread.ticks, ticks);
            Some(is_running(state) || ticks != before)
        });
        // It was not looked at before, or has begun anew.
        seen.unwrap_or_else(|| {
            let found = process_of(socket).and_then(|process| thread_of(process, party));
            let Some((thread, state)) = found else { return false };
            self.0.insert(party, thread);
            is_running(state)
        })
    }
}

/// Who listens at the other end, if it has a number here.
fn process_of(socket: impl AsFd) -> Option<i32> {
    let peer = rustix::net::sockopt::socket_peercred(socket).ok()?;
    Some(peer.pid.as_raw_nonzero().get())
}

fn thread_of(process: i32, party: Party) -> Option<(Thread, char)> {
    let tasks = format!("/proc/{process}/task");
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(&*tasks, flags, Mode::empty()).ok()?;
    let name = thread_name(party);
    Dir::new(folder).ok()?.filter_map(Result::ok).find_map(|entry| {
        let place = format!("{tasks}/{}", entry.file_name().to_str().ok()?);
        if line(&format!("{place}/comm"))?.trim_end() != name {
            return None;
        }
        let stat = format!("{place}/stat");
        looked_at(&stat).map(|(state, ticks)| (Thread { stat, ticks }, state))
    })
}

/// State and processor time of a thread.
fn looked_at(stat: &str) -> Option<(char, u64)> {
    let line = line(stat)?;
    // The name may hold anything; what follows it are words.
    let mut words = line[line.rfind(')')? + 1..].split_ascii_whitespace();
    let state = words.next()?.chars().next()?;
    // Behind the state: 10 numbers, then time in the program and in the kernel.
    let [own, kernel] = [words.nth(10)?, words.next()?].map(str::parse::<u64>);
    Some((state, own.ok()?.wrapping_add(kernel.ok()?)))
}

/// Not who sleeps until somebody wakes it, is stopped, or has ended.
fn is_running(state: char) -> bool {
    matches!(state, 'R' | 'D')
}

/// The first line of a file. By system calls of its own: in a program, the C library's may be observed.
fn line(path: &str) -> Option<String> {
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut bytes = [0; LINE_BYTES];
    let read = loop {
        match rustix::io::read(&file, &mut bytes[..]) {
            Err(Errno::INTR) => {}
            read => break read.ok()?,
        }
    };
    String::from_utf8(bytes[..read].to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn named<T: Send>(
        name: &str,
        work: impl FnOnce() -> T + Send,
        then: impl FnOnce() + Send,
    ) -> T {
        std::thread::scope(|scope| {
            let builder = std::thread::Builder::new().name(name.to_owned());
            let thread = builder.spawn_scoped(scope, work).unwrap();
            then();
            thread.join().unwrap()
        })
    }

    #[test]
    fn names_of_threads_are_whole_in_the_kernel_and_differ() {
        let all = [Party::Metadata, Party::Server(99_999), Party::Cache(99_999)].map(thread_name);
        assert!(all.iter().all(|name| name.len() <= 15), "{all:?}");
        assert_ne!(thread_name(Party::Server(1)), thread_name(Party::Server(12)));
    }

    #[test]
    fn a_thread_that_works_runs_and_one_that_sleeps_does_not() {
        let (near, _far) = UnixStream::pair().unwrap();
        // One that has ended may be there for a moment: each has a name of its own.
        let [party, sleeper, nobody] = [4711, 4712, 4713].map(Party::Server);
        let (stop, ready) = (AtomicBool::new(false), Barrier::new(2));
        let work = || {
            ready.wait();
            while !stop.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        };
        named(&thread_name(party), work, || {
            ready.wait();
            let mut threads = Threads::default();
            assert!(threads.is_running(party, &near));
            assert!(threads.is_running(party, &near), "as it was seen before");
            stop.store(true, Ordering::Relaxed);
        });
        let asleep = Barrier::new(2);
        named(
            &thread_name(sleeper),
            || asleep.wait(),
            || {
                let mut threads = Threads::default();
                // Until it has begun to sleep it may be seen running, and the time that took once; and until it is named,
                // not at all.
                let quiet = (1..=10_000).find(|_| {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                    !threads.is_running(sleeper, &near) && !threads.0.is_empty()
                });
                assert!(quiet.is_some());
                asleep.wait();
            },
        );
        assert!(!Threads::default().is_running(nobody, &near), "nobody has that name");
    }

    #[test]
    fn a_line_of_proc_is_read_whatever_the_name_holds() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("stat");
        let rest = "1 2 3 4 5 6 7 8 9 10 30 12 13";
        for (line, told) in [
            (format!("7 (a) R 1) D {rest}"), Some(('D', 42))),
            (format!("7 (pfs-io-1) T {rest}"), Some(('T', 42))),
            ("7 (pfs-io-1) S 1 2".to_owned(), None),
            (String::new(), None),
        ] {
            std::fs::write(&path, &line).unwrap();
            assert_eq!(looked_at(path.to_str().unwrap()), told, "{line}");
        }
        let counts: String = "RDSTtZXI".chars().filter(|&state| is_running(state)).collect();
        assert_eq!(counts, "RD");
    }
}
