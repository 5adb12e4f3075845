//! Starts and ends the process that serves an instance.
//!
//! The process has a session of its own, so that signals of a terminal do not reach it, and keeps no
//! descriptor of who started it. It says on a pipe that it is ready, or why it cannot be.

use crate::instance::{self, Wish};
use iolab_vocab::Refusal;
use rustix::process::{Pid, PidfdFlags, Signal};
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a node may take to answer a signal before it counts as stuck.
const STOP_PATIENCE: Duration = Duration::from_secs(10);
/// The first word of a node that is ready; anything else is why it is not.
const READY: &str = "ready";

/// Who outlives whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// The node goes on when the process that started it ends.
    Detached,
    /// It ends soon after that process has, however that went.
    Bound,
}

/// A node that was started and is ready.
#[derive(Debug)]
pub struct Started {
    child: Child,
    /// As long as this end is open, a bound node lives.
    _bond: Option<ChildStdin>,
}

impl Started {
    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Ends it, and waits until it has.
    pub fn stop(mut self) -> Result<(), Refusal> {
        let pid = Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, Signal::TERM);
        let ended = patiently(|| self.has_ended());
        if ended { Ok(()) } else { Err(stuck(self.pid())) }
    }
}

/// Starts a node by `program`, which gets `--dir DIR` and the wishes as arguments behind its own, and
/// waits until it is ready.
pub fn start(
    program: &mut Command,
    directory: &Path,
    wish: &Wish,
    life: Life,
) -> Result<Started, Refusal> {
    // All by name, so that no wish is left out.
    let Wish {
        servers,
        caches,
        cache_memory,
        placement,
        replacement,
        write_policy,
        layout,
        schedule,
        durability,
        sums,
        capacity,
        quota,
        quota_files,
        journal,
        window_memory,
        events,
    } = wish;
    program.arg("--dir").arg(directory);
    if let Some(servers) = servers {
        program.args(["--servers", &servers.to_string()]);
    }
    if let Some(caches) = caches {
        program.args(["--caches", &caches.to_string()]);
    }
    if let Some(bytes) = cache_memory {
        program.args(["--cache-memory", &bytes.to_string()]);
    }
    let named = [
        ("--placement", placement),
        ("--replacement", replacement),
        ("--write-policy", write_policy),
    ];
    for (option, name) in named {
        program.args(name.iter().flat_map(|name| [option, name]));
    }
    if let Some(layout) = layout {
        program.args(["--layout", layout]);
    }
    if let Some(schedule) = schedule {
        program.args(["--schedule", schedule]);
    }
    if let Some(durability) = durability {
        program.args(["--durability", durability]);
    }
    if let Some(sums) = sums {
        program.args(["--sums", if *sums { "on" } else { "off" }]);
    }
    if let Some(bytes) = capacity {
        program.args(["--capacity", &bytes.to_string()]);
    }
    if let Some(bytes) = quota {
        program.args(["--quota", &bytes.to_string()]);
    }
    if let Some(files) = quota_files {
        program.args(["--quota-files", &files.to_string()]);
    }
    if let Some(bytes) = journal {
        program.args(["--journal", &bytes.to_string()]);
    }
    if let Some(bytes) = window_memory {
        program.args(["--window-memory", &bytes.to_string()]);
    }
    if let Some(events) = events {
        program.arg("--events").arg(events);
    }
    if life == Life::Bound {
        program.arg("--bound");
    }
    let input = if life == Life::Bound { Stdio::piped() } else { Stdio::null() };
    program.stdin(input).stdout(Stdio::piped()).env_remove("LD_PRELOAD");
    // SAFETY: only makes system calls between fork and exec.
    unsafe { program.pre_exec(leave_terminal) };
    let mut child = program.spawn().map_err(|error| {
        let name = program.get_program().to_string_lossy();
        Refusal::new(format!("{name}: {error}"), "a process must be allowed to start another one")
    })?;
    let bond = child.stdin.take();
    let mut said = BufReader::new(child.stdout.take().expect("it is a pipe"));
    match heard(&mut said) {
        Ok(()) => Ok(Started { child, _bond: bond }),
        Err(refusal) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(refusal)
        }
    }
}

/// In the process to be: a session of its own, and no descriptors but the three.
fn leave_terminal() -> io::Result<()> {
    rustix::process::setsid()?;
    // SAFETY: marks descriptors of this process, which has no other thread; none is closed before exec.
    // Kernels before 5.11 refuse, and then the node inherits what its parent left open.
    unsafe { libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    Ok(())
}

/// What a node says first.
fn heard(said: &mut impl BufRead) -> Result<(), Refusal> {
    let mut words = String::new();
    let mut line = String::new();
    while said.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
        if line.trim_end() == READY {
            return Ok(());
        }
        words.push_str(&line);
        line.clear();
    }
    let (message, hint) = words.split_once("\nhint: ").unwrap_or((&words, ""));
    if message.trim().is_empty() {
        return Refusal::refuse("the servers ended before they were ready", "see DIR/node.log");
    }
    Refusal::refuse(message.trim(), hint.trim())
}

/// What the started process says on its standard output: that it is ready, or why it is not.
pub fn announcement(outcome: &Result<(), Refusal>) -> String {
    match outcome {
        Ok(()) => format!("{READY}\n"),
        Err(refusal) => format!("{refusal}\n"),
    }
}

/// Ends whoever serves a directory, and waits until it has; the answer is its process number.
pub fn stop(directory: &Path) -> Result<u32, Refusal> {
    let nobody = || {
        Refusal::new(
            format!("nobody serves {}", directory.display()),
            "`iolab fs up --dir DIR` starts servers",
        )
    };
    let pid = instance::serving(directory)?.ok_or_else(nobody)?;
    let number = Pid::from_raw(pid as i32).ok_or_else(nobody)?;
    let failed = |error: rustix::io::Errno| {
        let error = io::Error::from(error);
        Refusal::new(format!("process {pid}: {error}"), "only who started it may end it")
    };
    let process = rustix::process::pidfd_open(number, PidfdFlags::empty()).map_err(failed)?;
    // The descriptor stands for the process that has the number now; is it still the one that serves?
    if instance::serving(directory)? != Some(pid) {
        return Err(nobody());
    }
    rustix::process::pidfd_send_signal(&process, Signal::TERM).map_err(failed)?;
    let ended = patiently(|| matches!(instance::serving(directory), Ok(None)));
    if ended { Ok(pid) } else { Err(stuck(pid)) }
}

fn stuck(pid: u32) -> Refusal {
    Refusal::new(
        format!("process {pid} did not end within {} s", STOP_PATIENCE.as_secs()),
        format!("`kill -9 {pid}` ends it; what was answered is in the kernel and stays"),
    )
}

/// Asks again and again, until patience ends.
fn patiently(mut done: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < STOP_PATIENCE {
        if done() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    done()
}
