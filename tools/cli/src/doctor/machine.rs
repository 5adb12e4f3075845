//! What there is to know of a machine without trying anything.

use iolab_host::file_system_of;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Name and value of each fact, for people.
pub(super) fn facts(place: &Path) -> Vec<(&'static str, String)> {
    let system = rustix::system::uname();
    let word = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    let mut facts = vec![
        ("iolab", env!("CARGO_PKG_VERSION").to_owned()),
        ("kernel", format!("{} {}", word(system.sysname()), word(system.release()))),
        ("machine", word(system.machine())),
        ("C library", c_library()),
        ("processors", std::thread::available_parallelism().map_or(1, usize::from).to_string()),
        ("clock", clock()),
        ("storage tried", storage(place)),
        ("memory for recordings", storage(Path::new("/dev/shm"))),
    ];
    facts.extend(launchers().into_iter().map(|launcher| ("launcher", launcher)));
    facts
}

fn c_library() -> String {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").stderr(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        }
        _ => "not glibc, or without getconf".to_owned(),
    }
}

/// Reading the processor's counter is what makes recording cheap; the kernel trusts it or does not.
fn clock() -> String {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    fs::read_to_string(path).map_or("unknown".to_owned(), |text| text.trim().to_owned())
}

/// Kind and free space.
fn storage(path: &Path) -> String {
    let Ok(kind) = file_system_of(path) else { return format!("no {}", path.display()) };
    match rustix::fs::statvfs(path) {
        Ok(status) => {
            let free = iolab_vocab::format_bytes(status.f_bavail.saturating_mul(status.f_frsize));
            format!("{kind}, {free} free")
        }
        Err(_) => kind,
    }
}

/// Launchers of parallel programs on the path, once each, with what they say of themselves.
fn launchers() -> Vec<String> {
    let mut seen = Vec::new();
    let mut found = Vec::new();
    let path = std::env::var_os("PATH").unwrap_or_default();
    for name in ["mpiexec", "mpirun", "srun", "mpiexec.mpich", "mpiexec.openmpi"] {
        let files = std::env::split_paths(&path).map(|folder| folder.join(name));
        let Some(file) = files.filter_map(|file| file.canonicalize().ok()).next() else { continue };
        if !seen.contains(&file) {
            found.push(format!("{name}: {}", version(&file)));
            seen.push(file);
        }
    }
    found
}

fn version(launcher: &Path) -> String {
    let output = super::trial::ended(Command::new(launcher).arg("--version"));
    let text = output.map(|(_, text)| text).unwrap_or_default();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    // MPICH's says its version in the second line.
    let numbered = lines.iter().find(|line| line.contains(|letter: char| letter.is_ascii_digit()));
    match (lines.first(), numbered) {
        (Some(first), Some(line)) if first == line => (*first).to_owned(),
        (Some(first), Some(line)) => {
            format!("{first} {line}").split_whitespace().collect::<Vec<_>>().join(" ")
        }
        _ => launcher.display().to_string(),
    }
}
