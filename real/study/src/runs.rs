//! One run of the command: started in its place, watched, timed, its words kept.

use crate::tree::Span;
use crate::{StudyError, Watcher};
use rustix::fs::FileType;
use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How much of what a command says is kept for people.
const TAIL_BYTES: usize = 4096;

/// How a run went.
#[derive(Debug)]
pub(crate) struct Run {
    /// From before the start of the process to its end.
    pub(crate) seconds: f64,
    /// From before its place was made to after its end, for runs in a fresh place.
    pub(crate) span: Option<Span>,
    /// How it ended.
    pub(crate) status: ExitStatus,
    /// What it said on stdout.
    pub(crate) output: Words,
    /// What it said on stderr.
    pub(crate) errors: Words,
}

/// What came out of a pipe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Words {
    length: u64,
    hash: u64,
    /// Of all lines, in whichever order they came.
    lines: u64,
    tail: Vec<u8>,
}

impl Words {
    fn hear(mut pipe: impl Read) -> Words {
        let (mut words, mut hasher) = (Words::default(), DefaultHasher::new());
        let mut line = DefaultHasher::new();
        let mut buffer = [0; 8192];
        loop {
            match pipe.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => {
                    hasher.write(&buffer[..length]);
                    for byte in &buffer[..length] {
                        line.write_u8(*byte);
                        if *byte == b'\n' {
                            words.lines = words.lines.wrapping_add(line.finish());
                            line = DefaultHasher::new();
                        }
                    }
                    words.length += length as u64;
                    words.tail.extend_from_slice(&buffer[..length]);
                    let surplus = words.tail.len().saturating_sub(TAIL_BYTES);
                    words.tail.drain(..surplus);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        words.hash = hasher.finish();
        words.lines = words.lines.wrapping_add(line.finish());
        words
    }

    /// Whether the same lines were said, in another order perhaps: ranks say theirs when they come to it.
    pub(crate) fn has_lines_of(&self, other: &Words) -> bool {
        (self.length, self.lines) == (other.length, other.lines)
    }

    /// The last lines, for a message.
    pub(crate) fn last_lines(&self) -> String {
        let text = String::from_utf8_lossy(&self.tail);
        let lines: Vec<&str> = text.trim_end().lines().collect();
        lines[lines.len().saturating_sub(3)..].join(" / ")
    }
}

/// Starts commands, and ends them when the user interrupts the study.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runner {
    interrupted: Arc<AtomicBool>,
    child: Arc<AtomicI32>,
}

impl Runner {
    /// A runner that hears of Ctrl-C and termination.
    pub(crate) fn new() -> Result<Runner, StudyError> {
        let runner = Runner::default();
        let for_handler = runner.clone();
        ctrlc::set_handler(move || for_handler.interrupt()).map_err(StudyError::new)?;
        Ok(runner)
    }

    fn interrupt(&self) {
        self.interrupted.store(true, Ordering::SeqCst);
        // A terminal tells the whole group; a `kill` of the study alone must reach the child, too.
        if let Some(child) = rustix::process::Pid::from_raw(self.child.load(Ordering::SeqCst)) {
            let _ = rustix::process::kill_process(child, rustix::process::Signal::TERM);
        }
    }

    /// Fails when the user has interrupted the study.
    pub(crate) fn check(&self) -> Result<(), StudyError> {
        match self.interrupted.load(Ordering::SeqCst) {
            true => Err(StudyError::new("interrupted; the output directory is put back")),
            false => Ok(()),
        }
    }

    /// Runs a command to its end, with the input of all runs.
    pub(crate) fn run(&self, command: &mut Command, directory: &Path) -> Result<Run, StudyError> {
        self.check()?;
        let program = command.get_program().to_string_lossy().into_owned();
        command.current_dir(directory);
        command
            .stdin(input(std::io::stdin().as_fd()))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let began = Instant::now();
        let mut child = command.spawn().map_err(|error| {
            StudyError::new(format!("cannot run `{program}`: {error}"))
                .hint("give a program of this machine and its arguments after `--`")
        })?;
        self.child.store(child.id() as i32, Ordering::SeqCst);
        let (output, errors) = listen(&mut child);
        let status = child.wait();
        let seconds = began.elapsed().as_secs_f64();
        self.child.store(0, Ordering::SeqCst);
        let status = status.map_err(|error| StudyError::new(format!("`{program}`: {error}")))?;
        self.check()?;
        Ok(Run { seconds, span: None, status, output: heard(output), errors: heard(errors) })
    }
}

/// Tells of the first run, and of the input that none can have.
pub(crate) fn begin(watcher: &dyn Watcher) {
    if let Some(lack) = lack_of_input(std::io::stdin().as_fd()) {
        watcher.step(lack);
    }
    watcher.step("running the command as it is");
}

/// What a person is told before the runs, if they cannot have the input that the study was given.
fn lack_of_input(own: BorrowedFd<'_>) -> Option<&'static str> {
    let status = rustix::fs::fstat(own).ok()?;
    FileType::from_raw_mode(status.st_mode)
        .is_fifo()
        .then_some("standard input is a pipe, of which no run gets anything: give a file, < FILE")
}

/// What a run reads: the file that is the study's own input, opened anew for each and from the same place on, so that
/// all of them read the same. Nothing where it is none: a pipe or a terminal says something once.
fn input(own: BorrowedFd<'_>) -> Stdio {
    let reopened = || -> std::io::Result<File> {
        if !FileType::from_raw_mode(rustix::fs::fstat(own)?.st_mode).is_file() {
            return Err(std::io::ErrorKind::InvalidInput.into());
        }
        let mut file = File::open(format!("/proc/self/fd/{}", own.as_raw_fd()))?;
        file.seek(SeekFrom::Start(rustix::fs::tell(own)?))?;
        Ok(file)
    };
    reopened().map_or_else(|_| Stdio::null(), Stdio::from)
}

type Listener = JoinHandle<Words>;

fn listen(child: &mut Child) -> (Option<Listener>, Option<Listener>) {
    let output = child.stdout.take().map(|pipe| std::thread::spawn(|| Words::hear(pipe)));
    let errors = child.stderr.take().map(|pipe| std::thread::spawn(|| Words::hear(pipe)));
    (output, errors)
}

/// What was said until the end. A process that was left behind may hold the pipe open for ever;
/// it is given a second.
fn heard(listener: Option<Listener>) -> Words {
    let Some(listener) = listener else { return Words::default() };
    let deadline = Instant::now() + Duration::from_secs(1);
    while !listener.is_finished() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_micros(200));
    }
    match listener.is_finished() {
        true => listener.join().unwrap_or_default(),
        false => Words::default(),
    }
}

/// How a process ended, in words.
pub(crate) fn ending(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown end".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_reads_the_file_that_is_the_input_from_the_same_place_on() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("input");
        std::fs::write(&path, "title\nfirst\n").unwrap();
        let mut file = File::open(&path).unwrap();
        file.seek(SeekFrom::Start(6)).unwrap();
        let read = |from: BorrowedFd<'_>| {
            let done = Command::new("cat").stdin(input(from)).output().unwrap();
            String::from_utf8(done.stdout).unwrap()
        };
        assert_eq!([read(file.as_fd()), read(file.as_fd())], ["first\n", "first\n"]);
        assert_eq!(lack_of_input(file.as_fd()), None);
        let (pipe, mut end) = std::io::pipe().unwrap();
        std::io::Write::write_all(&mut end, b"once").unwrap();
        assert_eq!(read(pipe.as_fd()), "", "what a pipe says nobody can read twice");
        assert!(lack_of_input(pipe.as_fd()).unwrap().contains("is a pipe"));
    }

    fn run(script: &str) -> Run {
        let runner = Runner::default();
        runner.run(Command::new("sh").args(["-c", script]), Path::new("/tmp")).unwrap()
    }

    #[test]
    fn a_run_is_timed_and_its_end_and_words_are_kept() {
        let run = run("echo said; echo complained >&2; sleep 0.05; exit 3");
        assert!(run.seconds >= 0.05);
        assert_eq!(ending(run.status), "exit code 3");
        assert_eq!(run.output.last_lines(), "said");
        assert_eq!(run.errors.last_lines(), "complained");
    }

    #[test]
    fn equal_words_are_equal_and_other_words_are_not() {
        assert_eq!(run("echo a").output, run("echo a").output);
        assert_ne!(run("echo a").output, run("echo b").output);
    }

    #[test]
    fn the_order_of_lines_is_told_from_what_they_say() {
        let (one, other) = (run("echo a; echo b").output, run("echo b; echo a").output);
        assert!(one != other && one.has_lines_of(&other));
        assert!(!one.has_lines_of(&run("echo a; echo c").output));
        assert!(!one.has_lines_of(&run("echo b; echo a; printf ' '").output));
    }

    #[test]
    fn a_command_that_does_not_exist_is_named() {
        let missing = Runner::default().run(&mut Command::new("no-such-program"), Path::new("/"));
        assert!(missing.unwrap_err().to_string().contains("no-such-program"));
    }

    #[test]
    fn an_interrupted_study_starts_nothing_more() {
        let runner = Runner::default();
        runner.interrupt();
        assert!(runner.run(&mut Command::new("true"), Path::new("/")).is_err());
    }
}
