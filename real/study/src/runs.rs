//! One run of the command: started in its place, watched, timed, its words kept.

use crate::StudyError;
use crate::tree::Span;
use std::hash::{DefaultHasher, Hasher};
use std::io::Read;
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

    /// Runs a command to its end, without input.
    pub(crate) fn run(&self, command: &mut Command, directory: &Path) -> Result<Run, StudyError> {
        self.check()?;
        let program = command.get_program().to_string_lossy().into_owned();
        command.current_dir(directory);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
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
