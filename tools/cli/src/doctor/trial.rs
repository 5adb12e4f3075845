//! Capabilities, each used once.

use super::Check;
use crate::trace_file;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// No trial takes a second on an idle machine.
const PATIENCE: Duration = Duration::from_secs(60);
const PIECES: usize = 100;
const PIECE_BYTES: usize = 64;

/// How a trial went.
pub(super) enum Verdict {
    /// It does, with a remark or none.
    Works(String),
    /// It does not: what was seen, and what to do.
    Fails { seen: String, way_out: &'static str },
}

impl Verdict {
    pub(super) fn works(&self) -> bool {
        matches!(self, Verdict::Works(_))
    }

    pub(super) fn detail(&self) -> &str {
        match self {
            Verdict::Works(remark) => remark,
            Verdict::Fails { seen, .. } => seen,
        }
    }

    pub(super) fn way_out(&self) -> Option<&'static str> {
        match self {
            Verdict::Works(_) => None,
            Verdict::Fails { way_out, .. } => Some(way_out),
        }
    }
}

/// All of them, in `place`.
pub(super) fn all(place: &Path) -> Vec<Check> {
    let check =
        |name, purpose, is_essential, verdict| Check { name, purpose, is_essential, verdict };
    vec![
        check("record", "what programs do to files", true, records(place)),
        check("run", "strategies in programs", true, reshapes(place)),
        check(
            "run --via mount",
            "strategies in static, Go and io_uring programs",
            false,
            mounts(place),
        ),
        check(
            "record --layer mpi",
            "calls of MPI",
            false,
            library(iolab_host::launch::find_mpi_library()),
        ),
        check(
            "record --layer hdf5",
            "calls of HDF5",
            false,
            library(iolab_host::launch::find_hdf5_library()),
        ),
        check(
            "record --layer netcdf",
            "calls of NetCDF",
            false,
            library(iolab_host::launch::find_netcdf_library()),
        ),
        check("fs run", "the parallel file system", false, serves(place)),
        check("bench -a uring", "measuring with io_uring", false, queues()),
    ]
}

fn records(place: &Path) -> Verdict {
    const WAY_OUT: &str = "see what the command itself says: iolab record -o /tmp/run.iot -- ls";
    let (trace, data) = (place.join("run.iot"), place.join("recorded"));
    let command = iolab(place, &["record", "-o", "run.iot", "--"], "recorded");
    if let Err(seen) = carried_out(command, &data) {
        return Verdict::Fails { seen, way_out: WAY_OUT };
    }
    let calls = trace_file::load(&trace).map(|trace| {
        let files = &trace.header.files;
        let is_ours = |file: iolab_vocab::FileId| {
            files.get(file.0 as usize).is_some_and(|file| file.path.ends_with("/recorded"))
        };
        trace.events.iter().filter(|event| is_ours(event.file) && event.moved_bytes() > 0).count()
    });
    match calls {
        Ok(PIECES) => Verdict::Works(String::new()),
        Ok(calls) => Verdict::Fails {
            seen: format!("{calls} of {PIECES} writes were seen"),
            way_out: WAY_OUT,
        },
        Err(failure) => Verdict::Fails { seen: failure.message().to_owned(), way_out: WAY_OUT },
    }
}

fn reshapes(place: &Path) -> Verdict {
    const WAY_OUT: &str = "see what the command itself says: iolab run --apply null -- ls";
    if ["/dev", "/proc", "/sys"].iter().any(|system| place.starts_with(system)) {
        return Verdict::Fails {
            seen: "strategies leave the system's own directories alone".to_owned(),
            way_out: "name a directory that is not below /dev, /proc or /sys: iolab doctor DIR",
        };
    }
    let arguments = ["run", "--strict", "--apply", "write-back:paths=*reshaped", "--"];
    match carried_out(iolab(place, &arguments, "reshaped"), &place.join("reshaped")) {
        Ok(told) if told.contains("1 file,") => Verdict::Works(String::new()),
        Ok(told) => {
            let seen = format!("the strategy did not come to the file: {}", first_line(&told));
            Verdict::Fails { seen, way_out: WAY_OUT }
        }
        Err(seen) => Verdict::Fails { seen, way_out: WAY_OUT },
    }
}

fn mounts(place: &Path) -> Verdict {
    let over = place.join("mounted");
    if let Err(error) = fs::create_dir(&over) {
        return Verdict::Fails {
            seen: error.to_string(),
            way_out: "name another directory: iolab doctor DIR",
        };
    }
    let arguments = [
        "run",
        "--via",
        "mount",
        "--over",
        "mounted",
        "--apply",
        "write-back:paths=*reshaped",
        "--",
    ];
    match carried_out(iolab(place, &arguments, "mounted/reshaped"), &over.join("reshaped")) {
        Ok(_) => Verdict::Works(String::new()),
        Err(seen) => Verdict::Fails {
            seen,
            way_out: "it takes /dev/fuse and, unless you are root, user namespaces (user.max_user_namespaces, \
                kernel.unprivileged_userns_clone): ask who runs the machine, or use programs that can be preloaded",
        },
    }
}

fn library(found: Result<std::path::PathBuf, iolab_host::launch::LaunchError>) -> Verdict {
    match found {
        Ok(_) => {
            Verdict::Works("its library is there; what it sees depends on the program".to_owned())
        }
        Err(error) => Verdict::Fails {
            seen: error.to_string(),
            way_out: "take the whole of lib/iolab along, or build all: cargo build --release --workspace",
        },
    }
}

fn serves(place: &Path) -> Verdict {
    let mut command = Command::new(std::env::current_exe().unwrap_or_default());
    command.current_dir(place).args(["fs", "run", "--servers", "2", "--", "true"]);
    match ended(&mut command) {
        Ok((true, _)) => Verdict::Works(String::new()),
        Ok((false, told)) => Verdict::Fails {
            seen: first_line(&told),
            way_out: "see what the command itself says: iolab fs run --servers 2 -- true",
        },
        Err(error) => Verdict::Fails {
            seen: error.to_string(),
            way_out: "name another directory: iolab doctor DIR",
        },
    }
}

fn queues() -> Verdict {
    match iolab_host::uring::works() {
        true => Verdict::Works(String::new()),
        false => Verdict::Fails {
            seen: "the kernel refuses a queue".to_owned(),
            way_out: "kernel.io_uring_disabled or a filter of a container forbids it; -a posix and -a aio need none",
        },
    }
}

/// This command with `arguments`, around a program that writes `name` in pieces.
fn iolab(place: &Path, arguments: &[&str], name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap_or_default());
    command.current_dir(place).args(arguments).args([
        "dd",
        "if=/dev/zero",
        &format!("of={name}"),
        &format!("bs={PIECE_BYTES}"),
        &format!("count={PIECES}"),
        "status=none",
    ]);
    command
}

/// Runs it; what it told, where the file is as it has to be.
fn carried_out(mut command: Command, file: &Path) -> Result<String, String> {
    let (is_success, told) = ended(&mut command).map_err(|error| error.to_string())?;
    if !is_success {
        return Err(first_line(&told));
    }
    match fs::read(file) {
        Ok(bytes) if bytes == [0; PIECES * PIECE_BYTES] => Ok(told),
        Ok(bytes) => {
            Err(format!("the file came out with {} bytes that are not the program's", bytes.len()))
        }
        Err(error) => Err(format!("no file came out: {error}")),
    }
}

/// Runs a command to its end, or to that of our patience: whether it succeeded, and all it said.
pub(super) fn ended(command: &mut Command) -> io::Result<(bool, String)> {
    // A file takes any amount without anybody reading it.
    let mut said: File = tempfile::tempfile()?;
    let both = (Stdio::from(said.try_clone()?), Stdio::from(said.try_clone()?));
    let mut child = command.stdin(Stdio::null()).stdout(both.0).stderr(both.1).spawn()?;
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if began.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            break None;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let mut bytes = Vec::new();
    said.rewind()?;
    said.read_to_end(&mut bytes)?;
    let told = String::from_utf8_lossy(&bytes).into_owned();
    Ok(match status {
        Some(status) => (status.success(), told),
        None => (false, format!("it did not end within {} s\n{told}", PATIENCE.as_secs())),
    })
}

fn first_line(told: &str) -> String {
    let line = told.lines().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
    line.trim_start_matches("error: ").trim_start_matches("iolab: ").to_owned()
}
