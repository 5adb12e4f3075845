//! A command whose small files are kept in a container: waited for, and told what became of them.

use super::Arguments;
use crate::failure::{Failure, LEFT};
use crate::mounted::{Manner, Server, beside};
use crate::packed::Outcome;
use crate::record::spool_failure;
use iolab_host::launch::AsOne;
use iolab_host::recording::Recording;
use iolab_packs::left_in;
use iolab_policy::insitu::StrategySpec;
use std::ffi::OsString;
use std::io::{ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How often a person hears what is waited for.
const TELL_EVERY: Duration = Duration::from_secs(5);

/// Runs the command with its directories covered, its calls told to a recording if there is one, and waits until its
/// files are real, if that is wanted. Its exit code, and whether it has come to be.
pub(super) fn run(
    (arguments, command): (&Arguments, &[OsString]),
    specs: &[StrategySpec],
    directories: &[PathBuf],
    mut recording: Option<&mut Recording>,
) -> Result<(ExitCode, bool), Failure> {
    if let Some(recording) = &mut recording {
        recording.note_mounts(directories).map_err(|error| spool_failure(&error))?;
    }
    let spool = recording.as_ref().map(|it| it.directory().to_owned());
    let manner = Manner { is_waited_for: true, is_quiet: arguments.quiet };
    let server = Server::start(specs, directories, spool.as_deref(), manner)?;
    let begin = Instant::now();
    let ended = match recording {
        Some(recording) => beside(&server, directories, command, recording)?,
        None => beside(&server, directories, command, &mut AsOne)?,
    };
    let took = begin.elapsed();
    let code = ended.ending.follow();
    if !ended.has_started {
        // What was in the way has been said.
        return Ok((ExitCode::from(code), false));
    }
    // By then the server has written down what it was told.
    let heard = hear(server.into_listener());
    let Some(outcomes) = heard else {
        eprintln!("iolab: warning: defer-close: the server of the files was killed");
        for left in directories.iter().flat_map(|it| left_in(it)) {
            eprintln!("iolab: what was closed is in {0}: `iolab unpack {0}`", left.display());
        }
        return Ok((ExitCode::from(if code == 0 { LEFT } else { code }), true));
    };
    if !arguments.quiet {
        for outcome in outcomes.iter().filter(|outcome| outcome.is_worth_a_line()) {
            let seconds = took.as_secs_f64();
            eprintln!("iolab: defer-close: the program took {seconds:.1} s; {}", outcome.words());
            if let Some(pack) = outcome.pack().filter(|_| !outcome.is_whole) {
                eprintln!("iolab: {} stays", pack.display());
            }
        }
    }
    let is_whole = outcomes.iter().all(|outcome| outcome.is_whole);
    Ok((ExitCode::from(if code == 0 && !is_whole { LEFT } else { code }), true))
}

/// What the server says at its end; nothing if it did not come to that.
fn hear(mut server: UnixStream) -> Option<Vec<Outcome>> {
    let _ = server.set_read_timeout(Some(TELL_EVERY));
    let (mut text, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        match server.read(&mut piece) {
            Ok(0) => break,
            Ok(moved) => {
                text.extend_from_slice(&piece[..moved]);
                if text.ends_with(b"\n") {
                    break;
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                eprintln!(
                    "iolab: waiting for files to be unpacked, and for processes that go on; \
                     interrupt to leave that to the server of the files"
                );
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    serde_json::from_slice(&text).ok()
}
