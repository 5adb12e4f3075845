//! Starts a command with the preloaded library, waits for it, and ends as it ended.
//!
//! Signals sent to the launcher go on to the command (those of the terminal reach it anyway, being
//! in the same group); while it waits, the launcher calls its [`Watcher`] again and again.

use crate::{inherited, limits};
use iolab_trace::program::{self, Missed, Program};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;
use std::{env, fmt, io};

/// File name of the preloaded library.
pub const LIBRARY_NAME: &str = "libiolab_intercept.so";
/// File name of the library that sees calls of MPI.
pub const MPI_LIBRARY_NAME: &str = "libiolab_mpi.so";
/// File name of the library that sees calls of HDF5.
pub const HDF5_LIBRARY_NAME: &str = "libiolab_hdf5.so";
/// File name of the library that sees calls of NetCDF.
pub const NETCDF_LIBRARY_NAME: &str = "libiolab_netcdf.so";
/// File name of the library for calls by name on files of a file system.
pub const NAMES_LIBRARY_NAME: &str = "libiolab_names.so";
/// Variable that says where the library is, when it is not beside the program.
pub const LIBRARY_VARIABLE: &str = "IOLAB_LIBRARY";

/// Why a command could not be started.
#[derive(Debug)]
pub enum LaunchError {
    /// The library is in none of these places.
    NoLibrary(Vec<PathBuf>),
    /// Nothing says where this program is, so neither where its libraries are.
    NoProgram(io::Error),
    /// The loader cannot be told the library's path.
    NotPreloadable(PathBuf),
    /// There is no such command.
    NotFound(OsString),
    /// The command could not be started.
    Start(OsString, io::Error),
    /// It could not be waited for.
    Wait(io::Error),
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LaunchError::NoLibrary(places) => {
                let places: Vec<_> = places.iter().map(|it| it.display().to_string()).collect();
                write!(f, "the preloaded library is not at {}", places.join(" nor at "))
            }
            LaunchError::NoProgram(error) => {
                write!(f, "where the preloaded library is cannot be told: {error}")
            }
            LaunchError::NotPreloadable(library) => write!(
                f,
                "`{}` cannot be preloaded: the loader divides LD_PRELOAD at blanks and colons",
                library.display()
            ),
            LaunchError::NotFound(command) => {
                write!(f, "there is no command `{}`", command.to_string_lossy())
            }
            LaunchError::Start(command, error) => {
                write!(f, "`{}` could not be started: {error}", command.to_string_lossy())
            }
            LaunchError::Wait(error) => write!(f, "the command could not be waited for: {error}"),
        }
    }
}

impl std::error::Error for LaunchError {}

impl LaunchError {
    /// The exit code a shell would give: 127 where there is no such command, 126 where it is none.
    pub fn code(&self) -> u8 {
        match self {
            LaunchError::NotFound(_) => 127,
            LaunchError::Start(..) => 126,
            LaunchError::NoLibrary(_)
            | LaunchError::NoProgram(_)
            | LaunchError::NotPreloadable(_)
            | LaunchError::Wait(_) => 1,
        }
    }

    /// A way out.
    pub fn hint(&self) -> Option<String> {
        match self {
            LaunchError::NoLibrary(_) => Some(format!(
                "build it with `cargo build`, or set {LIBRARY_VARIABLE} to where {LIBRARY_NAME} is"
            )),
            LaunchError::NoProgram(_) => {
                Some(format!("mount /proc, or set {LIBRARY_VARIABLE} to where {LIBRARY_NAME} is"))
            }
            LaunchError::NotPreloadable(_) => Some(format!(
                "install iolab where the path has neither, or set {LIBRARY_VARIABLE} to {LIBRARY_NAME} \
                 behind a symbolic link to its folder"
            )),
            LaunchError::NotFound(_) => {
                Some("write the command after `--` as you would in a shell".to_owned())
            }
            LaunchError::Start(..) => Some("is it an executable file?".to_owned()),
            LaunchError::Wait(_) => None,
        }
    }
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With this exit code.
    Exited(u8),
    /// By this signal.
    Signalled(i32),
}

impl Ending {
    /// The exit code a shell would show.
    pub fn code(self) -> u8 {
        match self {
            Ending::Exited(code) => code,
            Ending::Signalled(signal) => (128 + signal) as u8,
        }
    }

    /// Ends this process the same way, without a second core file when it was by a signal. Where
    /// that cannot be, the answer is the code to end with.
    pub fn follow(self) -> u8 {
        if let Ending::Signalled(signal) = self {
            // SAFETY: plain settings of this process; the default action of a signal that ended
            // the command ends this one.
            unsafe {
                let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
                libc::setrlimit(libc::RLIMIT_CORE, &none);
                libc::prctl(libc::PR_SET_DUMPABLE, 0);
                let mut action = std::mem::zeroed::<libc::sigaction>();
                action.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(signal, &action, std::ptr::null_mut());
                let mut set = std::mem::zeroed::<libc::sigset_t>();
                libc::sigemptyset(&mut set);
                libc::sigaddset(&mut set, signal);
                libc::sigprocmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
                libc::kill(libc::getpid(), signal);
            }
        }
        self.code()
    }

    fn of(status: ExitStatus) -> Ending {
        match (status.code(), status.signal()) {
            (Some(code), _) => Ending::Exited(code as u8),
            (None, signal) => Ending::Signalled(signal.unwrap_or(0)),
        }
    }
}

/// Who looks after a running command.
pub trait Watcher {
    /// The command runs under this process number.
    fn started(&mut self, _pid: u32) {}

    /// Whether the command must not go on when this process is killed.
    fn is_needed(&self) -> bool {
        false
    }

    /// Called again and again; the answer is how long to wait until the next time.
    fn tick(&mut self) -> Duration {
        Duration::from_millis(100)
    }
}

/// Two look, each in its own time.
pub struct Both<'a>(pub &'a mut dyn Watcher, pub &'a mut dyn Watcher);

impl Watcher for Both<'_> {
    fn started(&mut self, pid: u32) {
        self.0.started(pid);
        self.1.started(pid);
    }

    fn is_needed(&self) -> bool {
        self.0.is_needed() || self.1.is_needed()
    }

    fn tick(&mut self) -> Duration {
        self.0.tick().min(self.1.tick())
    }
}

/// Nobody looks, but what is started is this process as far as others are concerned.
pub struct AsOne;

impl Watcher for AsOne {
    fn is_needed(&self) -> bool {
        true
    }
}

/// Nobody looks.
pub struct Unwatched;

impl Watcher for Unwatched {}

/// Finds the preloaded library: where `IOLAB_LIBRARY` says, beside the running program, in its
/// `deps` (while testing), in `../lib/iolab` (packages) or `../lib`. The newest counts: cargo builds it in
/// the first two.
pub fn find_library() -> Result<PathBuf, LaunchError> {
    find(LIBRARY_NAME)
}

/// Finds the library that sees calls of MPI, in the same places.
pub fn find_mpi_library() -> Result<PathBuf, LaunchError> {
    find(MPI_LIBRARY_NAME)
}

/// Finds the library that sees calls of HDF5, in the same places.
pub fn find_hdf5_library() -> Result<PathBuf, LaunchError> {
    find(HDF5_LIBRARY_NAME)
}

/// Finds the library that sees calls of NetCDF, in the same places.
pub fn find_netcdf_library() -> Result<PathBuf, LaunchError> {
    find(NETCDF_LIBRARY_NAME)
}

/// Finds the library for calls by name on files of a file system, in the same places.
pub fn find_names_library() -> Result<PathBuf, LaunchError> {
    find(NAMES_LIBRARY_NAME)
}

fn find(name: &str) -> Result<PathBuf, LaunchError> {
    let mut places = Vec::new();
    match env::var_os(LIBRARY_VARIABLE) {
        Some(place) if name == LIBRARY_NAME => places.push(PathBuf::from(place)),
        Some(place) => places.push(PathBuf::from(place).with_file_name(name)),
        None => {
            let program = env::current_exe().map_err(LaunchError::NoProgram)?;
            let folder = program.parent().unwrap_or(Path::new("."));
            for place in ["", "deps", "..", "../lib/iolab", "../lib"] {
                places.push(folder.join(place).join(name));
            }
        }
    }
    let built = |place: &&PathBuf| place.metadata().and_then(|it| it.modified()).ok();
    match places.iter().filter(|place| place.is_file()).max_by_key(built) {
        Some(place) => preloadable(place),
        None => Err(LaunchError::NoLibrary(places)),
    }
}

/// The library's path as the loader takes it from any directory: without links, or with those that lead
/// around a name that it would divide.
fn preloadable(library: &Path) -> Result<PathBuf, LaunchError> {
    let paths = [library.canonicalize(), std::path::absolute(library)];
    let is_whole =
        |path: &PathBuf| !path.as_os_str().as_bytes().iter().any(|byte| b" :".contains(byte));
    let found = paths.into_iter().flatten().find(is_whole);
    found.ok_or_else(|| LaunchError::NotPreloadable(library.to_owned()))
}

/// Has the loader put the libraries, that of the hooks first, in front of what the command preloads
/// anyway. A program that cannot live with them is started without, which one line says.
pub fn preload(command: &mut Command, libraries: &[PathBuf]) {
    let kind = kind_of(Path::new(command.get_program()), 4);
    let mut words: Vec<&OsStr> = libraries.iter().map(|library| library.as_os_str()).collect();
    match &kind {
        Program::Foreign => return left_out(command, "of another C library than glibc (musl?)"),
        Program::OtherMachine => return left_out(command, Missed::OtherMachine.words()),
        Program::After(first) => words.insert(0, OsStr::from_bytes(first.bytes())),
        _ => {}
    }
    let others = env::var_os("LD_PRELOAD").filter(|others| !others.is_empty());
    words.extend(others.as_deref());
    let list = words.join(OsStr::new(":"));
    command.env("LD_PRELOAD", list).env("IOLAB_FILTERS", filters().to_string());
    command.env("IOLAB_LAUNCHED", "1");
}

fn left_out(command: &Command, what_it_is: &str) {
    eprintln!(
        "iolab: {} is {what_it_is}: it runs without iolab's library, so neither it nor what it \
         starts is seen",
        command.get_program().to_string_lossy()
    );
}

/// How many filters of system calls this process lives under.
pub fn filters() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:"));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// The file of a command that will not load the library, and why.
pub fn missed(command: &Path) -> Option<(PathBuf, Missed)> {
    let file = found(command)?;
    let why = match kind_of(command, 4) {
        Program::Static => Missed::Static,
        Program::Foreign => Missed::ForeignLibc,
        Program::OtherMachine => Missed::OtherMachine,
        Program::Plain | Program::After(_) if has_other_rights(&file) => Missed::SetUser,
        _ => return None,
    };
    Some((file, why))
}

/// Whether a command may call HDF5: its file lists the library, or one that is built on it, or it is
/// Python, whose modules bring theirs.
pub fn may_call_hdf5(command: &Path) -> bool {
    may_call(command, &[b"libhdf5", b"libnetcdf"])
}

/// The same of NetCDF, or PnetCDF.
pub fn may_call_netcdf(command: &Path) -> bool {
    may_call(command, &[b"libnetcdf", b"libpnetcdf"])
}

/// Whether the file of a command lists a library whose name begins so, or is Python.
fn may_call(command: &Path, libraries: &[&[u8]]) -> bool {
    let mut program = command.to_owned();
    // A script is what starts it, as in `kind_of`.
    for _ in 0..4 {
        let Some(path) = found(&program) else { return false };
        // Also one that is a script itself, which chooses a version.
        if is_python(&path) {
            return true;
        }
        let Ok(file) = File::open(&path) else { return false };
        let read = |offset, to: &mut [u8]| file.read_at(to, offset).unwrap_or(0);
        match program::look(read) {
            Program::Script(by) if by.bytes().ends_with(b"/env") => return is_python_by_env(&file),
            Program::Script(by) => program = PathBuf::from(OsStr::from_bytes(by.bytes())),
            _ => {
                return program::needs(read, |name| {
                    libraries.iter().any(|library| name.starts_with(library))
                });
            }
        }
    }
    false
}

fn is_python(program: &Path) -> bool {
    program.file_name().is_some_and(|name| name.as_bytes().starts_with(b"python"))
}

/// Whether a script that `env` starts is one of Python: its first line says what.
fn is_python_by_env(script: &File) -> bool {
    let mut head = [0; 128];
    let length = script.read_at(&mut head, 0).unwrap_or(0);
    let line = head[..length].split(|&byte| byte == b'\n').next().unwrap_or_default();
    line.split(|byte| byte.is_ascii_whitespace()).any(|word| word.starts_with(b"python"))
}

/// Whether a program gets rights that its starter does not have, so that the loader leaves
/// libraries out. The system heeds those bits in programs, not in scripts.
fn has_other_rights(file: &Path) -> bool {
    let is_script = File::open(file).is_ok_and(|file| {
        let kind = program::look(|offset, to| file.read_at(to, offset).unwrap_or(0));
        matches!(kind, Program::Script(_))
    });
    // SAFETY: they take nothing and cannot fail.
    let (user, group) = unsafe { (libc::getuid(), libc::getgid()) };
    let differs = |it: std::fs::Metadata| {
        it.mode() & libc::S_ISUID != 0 && it.uid() != user
            || it.mode() & libc::S_ISGID != 0 && it.gid() != group
    };
    !is_script && file.metadata().is_ok_and(differs)
}

/// The file a shell would start for a command.
fn found(program: &Path) -> Option<PathBuf> {
    match program.components().count() {
        0 => None,
        1 if !program.as_os_str().as_bytes().contains(&b'/') => {
            let path = env::var_os("PATH").unwrap_or_default();
            env::split_paths(&path).map(|folder| folder.join(program)).find(|it| it.is_file())
        }
        _ => Some(program.to_owned()),
    }
}

/// What kind of program a command is; scripts are what starts them.
fn kind_of(program: &Path, scripts: u32) -> Program {
    let found = found(program);
    let Some(file) = found.and_then(|path| File::open(path).ok()) else { return Program::Unknown };
    if !file.metadata().is_ok_and(|it| it.is_file()) {
        return Program::Unknown;
    }
    match program::look(|offset, to| file.read_at(to, offset).unwrap_or(0)) {
        Program::Script(by) if scripts > 0 => {
            kind_of(Path::new(OsStr::from_bytes(by.bytes())), scripts - 1)
        }
        found => found,
    }
}

/// Starts a command in a session of its own, as nobody's child: a program that waits for its children
/// does not meet it.
///
/// # Errors
/// When it cannot be started.
pub fn orphan(command: &mut Command) -> io::Result<()> {
    // SAFETY: between fork and exec only makes system calls; the process in between ends at once.
    unsafe {
        command.pre_exec(|| {
            libc::setsid();
            match libc::fork() {
                0 => Ok(()),
                -1 => Err(io::Error::last_os_error()),
                _ => libc::_exit(0),
            }
        })
    };
    command.spawn()?.wait().map(drop)
}

/// Programs that are started from now on get this descriptor, under its number.
///
/// # Errors
/// What the system says.
pub fn hand_down(descriptor: &impl AsRawFd) -> io::Result<()> {
    set_descriptor_flags(descriptor.as_raw_fd(), 0)
}

/// A descriptor that the process which started this one handed down, by its number; programs that this one starts do
/// not get it. Nobody else in this process may have it.
///
/// # Errors
/// When there is none of that number.
pub fn handed_down(number: RawFd) -> io::Result<OwnedFd> {
    set_descriptor_flags(number, libc::FD_CLOEXEC)?;
    // SAFETY: it is open, and nobody else's as the caller promises.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

fn set_descriptor_flags(number: RawFd, flags: libc::c_int) -> io::Result<()> {
    // SAFETY: takes numbers.
    match unsafe { libc::fcntl(number, libc::F_SETFD, flags) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Runs the command to its end.
pub fn run(command: &mut Command, watcher: &mut dyn Watcher) -> Result<Ending, LaunchError> {
    let name = command.get_program().to_owned();
    inherited::hand_on(command);
    if let Some(limits) = limits::inherited() {
        // SAFETY: only makes system calls between fork and exec.
        unsafe {
            command.pre_exec(move || {
                limits.restore();
                Ok(())
            })
        };
    }
    if watcher.is_needed() {
        end_with_us(command);
    }
    let mut child = command.spawn().map_err(|error| start_error(&name, error))?;
    let forwarding = Forwarding::to(child.id());
    watcher.started(child.id());
    let status = wait(&mut child, watcher);
    drop(forwarding);
    status.map(Ending::of).map_err(LaunchError::Wait)
}

/// A command that is killed when the thread that starts it ends, killed itself or not: for one that is waited for there.
pub fn end_with_us(command: &mut Command) {
    // SAFETY: takes nothing.
    let launcher = unsafe { libc::getpid() };
    // SAFETY: only makes system calls between fork and exec.
    unsafe { command.pre_exec(move || end_with(launcher)) };
}

/// In the command's process to be: it is killed when the launcher is, as if they were one.
fn end_with(launcher: libc::pid_t) -> io::Result<()> {
    // SAFETY: plain settings and questions of this process.
    unsafe {
        if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
            return Err(io::Error::last_os_error());
        }
        if libc::getppid() != launcher {
            // The launcher was killed before.
            libc::_exit(128 + libc::SIGKILL);
        }
    }
    Ok(())
}

/// Why a command that was to be started was not.
pub fn start_error(name: &OsStr, error: io::Error) -> LaunchError {
    match error.kind() {
        io::ErrorKind::NotFound if !is_script(name) => LaunchError::NotFound(name.to_owned()),
        _ => LaunchError::Start(name.to_owned(), error),
    }
}

/// Whether there is a file of that name, so that what was not found is what should start it.
fn is_script(name: &OsStr) -> bool {
    name.as_bytes().contains(&b'/') && Path::new(name).exists()
}

/// Waits, at most a tick at a time. A process descriptor wakes at the end of the command; where
/// the kernel has none, the tick must do.
fn wait(child: &mut Child, watcher: &mut dyn Watcher) -> io::Result<ExitStatus> {
    // SAFETY: asks for a descriptor of our own child.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, child.id(), 0) } as i32;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        let pause = watcher.tick();
        sleep_or_end(fd, pause);
    };
    if fd >= 0 {
        // SAFETY: our own descriptor.
        unsafe { libc::close(fd) };
    }
    Ok(status)
}

fn sleep_or_end(fd: i32, pause: Duration) {
    let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one structure; a negative descriptor in it is ignored and only the time counts.
    unsafe { libc::poll(&mut poll, 1, pause.as_millis().max(1) as i32) };
}

const FORWARDED: [i32; 6] =
    [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2];

/// The child signals go to; 0 for none.
static CHILD: AtomicI32 = AtomicI32::new(0);

/// While it lives, signals to this process go on to the child.
struct Forwarding {
    before: Vec<(i32, libc::sigaction)>,
}

impl Forwarding {
    fn to(pid: u32) -> Forwarding {
        CHILD.store(pid as i32, Ordering::Relaxed);
        let before = FORWARDED.iter().map(|&signal| (signal, handle(signal))).collect();
        Forwarding { before }
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        for (signal, action) in &self.before {
            // SAFETY: puts back what was there.
            unsafe { libc::sigaction(*signal, action, std::ptr::null_mut()) };
        }
        CHILD.store(0, Ordering::Relaxed);
    }
}

/// Handles one signal; the answer is the action before. A signal that was ignored stays ignored.
fn handle(signal: i32) -> libc::sigaction {
    // SAFETY: plain structures; the handler only calls kill, which a handler may.
    unsafe {
        let mut before = std::mem::zeroed::<libc::sigaction>();
        let mut action = std::mem::zeroed::<libc::sigaction>();
        action.sa_sigaction = forward as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigaction(signal, std::ptr::null(), &mut before);
        if before.sa_sigaction != libc::SIG_IGN {
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
        before
    }
}

extern "C" fn forward(signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    let child = CHILD.load(Ordering::Relaxed);
    // SAFETY: the kernel hands over a valid structure. What the kernel itself sends (the
    // terminal's Ctrl-C) went to the whole group, so to the child as well.
    unsafe {
        if child > 0 && (*info).si_code <= 0 {
            libc::kill(child, signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_ends_as_a_shell_would_show_it() {
        let run = |script| run(Command::new("sh").args(["-c", script]), &mut Unwatched).unwrap();
        assert_eq!(run("exit 7"), Ending::Exited(7));
        assert_eq!(run("kill -9 $$"), Ending::Signalled(9));
        assert_eq!(run("kill -9 $$").code(), 137);
    }

    #[test]
    fn an_orphan_is_started_and_no_child_of_this_process() {
        let (mut ear, line) = io::pipe().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "echo $PPID"]).stdout(line);
        orphan(&mut command).unwrap();
        drop(command);
        let mut parent = String::new();
        io::Read::read_to_string(&mut ear, &mut parent).unwrap();
        assert_ne!(parent.trim(), std::process::id().to_string());
        assert!(orphan(&mut Command::new("no-such-command-here")).is_err());
    }

    #[test]
    fn a_missing_command_is_named() {
        let error = run(&mut Command::new("no-such-command-here"), &mut Unwatched).unwrap_err();
        assert!(error.to_string().contains("no-such-command-here"), "{error}");
        assert!(error.hint().is_some());
    }
}
