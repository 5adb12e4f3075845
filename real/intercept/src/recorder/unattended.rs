//! A spool without a launcher: made below the directory that `IOLAB_RECORD` names by the first process
//! of a run on a node, found by the others, finished by `iolab merge`.
//!
//! It is filled under another name and then gets its own, so that whoever finds it finds it whole.
//! What a launcher would write down is left in small files (`docs/format/spool.md`). Times are read
//! from `CLOCK_MONOTONIC`, since nobody is there to find out the rate of the counter.

use super::clock::nanoseconds;
use super::setup;
use super::text::Text;
use crate::{process, start, system};
use iolab_trace::launchers::SLURM_SPECIAL_STEPS;
use iolab_trace::spool::{
    CHUNK_BYTES, CONTROL_BYTES, CONTROL_MAGIC, SPOOL_VERSION, VARIABLES, control, layer,
    process_file_bytes,
};
use std::mem::MaybeUninit;

/// Names the directory.
pub(super) const VARIABLE: &[u8] = b"IOLAB_RECORD";
/// Names the layers, POSIX and stdio without it.
const LAYERS: &[u8] = b"IOLAB_LAYERS";
/// Raw records of a run on a node take no more than this.
const LIMIT_BYTES: u64 = 2 << 30;
/// Calls on a stream before they are counted, as in `iolab record`.
const STREAM_ROWS: u32 = 1000;
/// What names a run where nobody gave it a name: the jobs of launchers and batch systems.
const JOBS: [&[u8]; 7] = [
    b"PMIX_NAMESPACE",
    b"PALS_APID",
    b"FLUX_JOB_ID",
    b"PMI_JOBID",
    b"LSB_JOBID",
    b"PBS_JOBID",
    b"SLURM_JOB_ID",
];

type Variables<'a> = &'a dyn Fn(&[u8]) -> Option<&'static [u8]>;

/// Why nothing can be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    Relative,
    Long,
    Layers,
    Directory,
}

impl Problem {
    /// One line on standard error.
    pub(super) fn say(self) {
        let line: &[u8] = match self {
            Problem::Relative => b"iolab: not recorded: IOLAB_RECORD is no absolute path\n",
            Problem::Long => b"iolab: not recorded: IOLAB_RECORD or the name of the run is too long\n",
            Problem::Layers => {
                b"iolab: not recorded: IOLAB_LAYERS names a layer other than posix, stdio, mpi, hdf5, netcdf\n"
            }
            Problem::Directory => {
                b"iolab: not recorded: no spool can be made in the directory that IOLAB_RECORD names\n"
            }
        };
        system::say(line);
    }
}

static RUN: Text = Text::new();
static HOST: Text = Text::new();
static NAME: Text = Text::new();
static DRAFT: Text = Text::new();

/// Files of a spool that one process makes before others find it; `control` makes it whole.
const FILES: [&[u8]; 6] = [b"run", b"host", b"machine", b"environment", b"mounts", b"control"];

/// Puts the path of this run's spool on this node into `place`, and makes it if it is not there.
pub(super) fn find(place: &Text, parent: &[u8], variable: Variables<'_>) -> Result<(), Problem> {
    if parent.first() != Some(&b'/') {
        return Err(Problem::Relative);
    }
    let layers = layers(variable(LAYERS)).ok_or(Problem::Layers)?;
    let mut end = parent.len();
    while end > 1 && parent[end - 1] == b'/' {
        end -= 1;
    }
    let parent = &parent[..end];
    name_run(&RUN, variable);
    name_host(&HOST);
    // Room for the names of files in it.
    if parent.len() + HOST.text().len() + RUN.text().len() > 3800 {
        return Err(Problem::Long);
    }
    place.push(parent);
    place.push(b"/");
    push_plain(place, HOST.text());
    place.push(b"-");
    push_plain(place, RUN.text());
    if is_there(place) || make(place, parent, layers) {
        return Ok(());
    }
    Err(Problem::Directory)
}

/// Bits of the layers in a list.
fn layers(list: Option<&[u8]>) -> Option<u32> {
    let Some(list) = list else { return Some(1 << layer::POSIX | 1 << layer::STDIO) };
    let mut bits = 0;
    for name in list.split(|byte| b",:+ ".contains(byte)) {
        bits |= match name {
            b"posix" => 1 << layer::POSIX,
            b"stdio" => 1 << layer::STDIO,
            b"mpi" => 1 << layer::MPI,
            b"hdf5" => 1 << layer::HDF5,
            b"netcdf" => 1 << layer::NETCDF,
            b"" => 0,
            _ => return None,
        };
    }
    (bits != 0).then_some(bits)
}

/// What makes processes be of one run: what `IOLAB_RUN_ID` says, within a step of Slurm; else the job; else
/// the session they were started in.
fn name_run(run: &Text, variable: Variables<'_>) {
    let given = variable(b"IOLAB_RUN_ID").filter(|it| !it.is_empty());
    let step = step(variable);
    if let Some(given) = given {
        run.push(b"run ");
        run.push(given);
    }
    if let Some((job, step)) = step {
        run.push(if given.is_some() { b" step " } else { b"step " });
        run.push(job);
        run.push(b".");
        run.push(step);
    }
    if given.is_some() || step.is_some() {
        return;
    }
    let named = |name: &&[u8]| variable(name).filter(|it| !it.is_empty());
    match JOBS.iter().find_map(|name| Some((name, named(name)?))) {
        Some((name, value)) => {
            run.push(name);
            run.push(b" ");
            run.push(value);
        }
        None => name_session(run),
    }
}

/// Job and number of the step of Slurm whose task this is.
fn step(variable: Variables<'_>) -> Option<(&'static [u8], &'static [u8])> {
    let (job, step) = (variable(b"SLURM_JOB_ID")?, variable(b"SLURM_STEP_ID")?);
    let number: u64 = std::str::from_utf8(step).ok()?.parse().ok()?;
    (number < SLURM_SPECIAL_STEPS).then_some((job, step))
}

/// The session, and when the process began that it is named by: numbers come again.
fn name_session(run: &Text) {
    // SAFETY: asks about this process.
    let session = unsafe { system::raw3(libc::SYS_getsid, 0, 0, 0) };
    run.push(b"session ");
    run.push_decimal(u32::try_from(session).unwrap_or(0));
    NAME.clear();
    NAME.push(b"/proc/");
    NAME.push_decimal(u32::try_from(session).unwrap_or(0));
    NAME.push(b"/stat");
    let mut status = [0; 1024];
    let length = read_file(&NAME, &mut status);
    // Behind the name, which may hold anything; the start is the 22nd field.
    let rest = status[..length].rsplit(|&byte| byte == b')').next().unwrap_or_default();
    if let Some(start) = rest.split(|&byte| byte == b' ').nth(20).filter(|it| it.len() < 24) {
        run.push(b".");
        run.push(start);
    }
}

fn name_host(host: &Text) {
    // SAFETY: filled by the call; the name ends with NUL.
    unsafe {
        let mut names = MaybeUninit::<libc::utsname>::zeroed().assume_init();
        system::raw3(libc::SYS_uname, &raw mut names as usize, 0, 0);
        host.push(std::ffi::CStr::from_ptr(names.nodename.as_ptr()).to_bytes());
    }
}

/// Appends a name of which any byte that is none of a plain file name becomes an underscore.
fn push_plain(to: &Text, name: &[u8]) {
    for byte in name {
        let is_plain = byte.is_ascii_alphanumeric() || b"._-+@".contains(byte);
        to.push(&[if is_plain { *byte } else { b'_' }]);
    }
}

fn in_directory(directory: &Text, file: &[u8]) -> &'static Text {
    NAME.clear();
    NAME.push(directory.text());
    NAME.push(b"/");
    NAME.push(file);
    &NAME
}

fn is_there(place: &Text) -> bool {
    let a = [libc::AT_FDCWD as usize, in_directory(place, b"control").address(), 0, 0, 0, 0];
    // SAFETY: a terminated path.
    unsafe { system::raw(libc::SYS_faccessat, a) == 0 }
}

/// Makes the spool, or finds that another process was faster.
fn make(place: &Text, parent: &[u8], layers: u32) -> bool {
    DRAFT.push(parent);
    // The last folder may be missing, on a node's own disk.
    make_directory(&DRAFT);
    DRAFT.push(b"/.begun-");
    push_plain(&DRAFT, HOST.text());
    DRAFT.push(b"-");
    DRAFT.push_decimal(process::number().max(system::process_number()));
    DRAFT.push(b"-");
    DRAFT.push_decimal(nanoseconds(libc::CLOCK_MONOTONIC) as u32);
    if !make_directory(&DRAFT) {
        return false;
    }
    // SAFETY: terminated paths.
    let is_made =
        is_filled(layers) && unsafe { system::rename(DRAFT.address(), place.address()) } == 0;
    if !is_made {
        remove_draft();
    }
    is_made || is_there(place)
}

const HERE: usize = libc::AT_FDCWD as usize;

fn make_directory(path: &Text) -> bool {
    // SAFETY: a terminated path.
    unsafe { system::raw3(libc::SYS_mkdirat, HERE, path.address(), 0o700) == 0 }
}

fn remove_draft() {
    for file in FILES {
        // SAFETY: a terminated path, of a file that this process has made.
        unsafe { system::raw3(libc::SYS_unlinkat, HERE, in_directory(&DRAFT, file).address(), 0) };
    }
    // SAFETY: as above.
    unsafe { system::raw3(libc::SYS_unlinkat, HERE, DRAFT.address(), libc::AT_REMOVEDIR as usize) };
}

fn is_filled(layers: u32) -> bool {
    let variables = || {
        start::variables().filter(|text| VARIABLES.iter().any(|it| text.starts_with(it.as_bytes())))
    };
    let written = |file: &[u8], fill: &mut dyn FnMut(usize) -> bool| {
        let Some(fd) = created(in_directory(&DRAFT, file)) else { return false };
        let is_whole = fill(fd);
        close(fd);
        is_whole
    };
    written(b"run", &mut |fd| write(fd, RUN.text()))
        && written(b"host", &mut |fd| write(fd, HOST.text()))
        && written(b"machine", &mut |fd| copied(c"/proc/sys/kernel/random/boot_id", fd))
        && written(b"environment", &mut |fd| {
            variables().all(|it| write(fd, it) && write(fd, b"\0"))
        })
        && written(b"mounts", &mut |fd| copied(c"/proc/self/mounts", fd))
        && written(b"control", &mut |fd| write(fd, &control_page(layers)))
}

/// The control page, as a launcher fills it.
fn control_page(layers: u32) -> [u8; CONTROL_BYTES] {
    let mut page = [0; CONTROL_BYTES];
    let chunk = CHUNK_BYTES as u64;
    let process_bytes =
        process_file_bytes(LIMIT_BYTES).min(setup::limit(libc::RLIMIT_FSIZE)) / chunk * chunk;
    let words = [
        (control::VERSION, SPOOL_VERSION),
        (control::CLOCK, 1),
        (control::NUMBER, 1),
        (control::LAYERS, layers),
        (control::STREAM_ROWS, STREAM_ROWS),
    ];
    for (at, word) in words {
        page[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }
    let (before, unix) = (nanoseconds(libc::CLOCK_MONOTONIC), nanoseconds(libc::CLOCK_REALTIME));
    let after = nanoseconds(libc::CLOCK_MONOTONIC);
    let now = before + after.saturating_sub(before) / 2;
    let doubles = [
        (control::MAGIC, CONTROL_MAGIC),
        (control::LIMIT, LIMIT_BYTES),
        (control::PROCESS_BYTES, process_bytes),
        (control::CALIBRATION, now),
        (control::CALIBRATION + 8, now),
        (control::CALIBRATION + 16, unix),
        (control::LATEST, now),
        (control::LATEST + 8, now),
        (control::LATEST + 16, unix),
        (control::UNIX_BOUND, unix_bound()),
    ];
    for (at, word) in doubles {
        page[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }
    page
}

/// As [`control::UNIX_BOUND`].
fn unix_bound() -> u64 {
    // SAFETY: plain numbers, of which those that say what to change are 0; filled by the call.
    unsafe {
        let mut time = MaybeUninit::<libc::timex>::zeroed().assume_init();
        let state = system::raw3(libc::SYS_adjtimex, &raw mut time as usize, 0, 0);
        control::unix_bound(state as i64, time.maxerror)
    }
}

fn created(path: &Text) -> Option<usize> {
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
    open(path.address(), flags)
}

fn open(path: usize, flags: i32) -> Option<usize> {
    let a = [libc::AT_FDCWD as usize, path, flags as usize, 0o600, 0, 0];
    // SAFETY: a terminated path.
    usize::try_from(unsafe { system::raw(libc::SYS_openat, a) }).ok()
}

fn close(fd: usize) {
    // SAFETY: a descriptor of ours.
    unsafe { system::raw3(libc::SYS_close, fd, 0, 0) };
}

fn read(fd: usize, buffer: &mut [u8]) -> usize {
    let to = buffer.as_mut_ptr() as usize;
    // SAFETY: a descriptor of ours and a buffer of the caller's.
    usize::try_from(unsafe { system::raw3(libc::SYS_read, fd, to, buffer.len()) }).unwrap_or(0)
}

fn write(fd: usize, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        // SAFETY: a descriptor of ours, bytes of the caller's.
        let done =
            unsafe { system::raw3(libc::SYS_write, fd, bytes.as_ptr() as usize, bytes.len()) };
        match usize::try_from(done) {
            Ok(count @ 1..) => bytes = bytes.get(count..).unwrap_or_default(),
            _ => return false,
        }
    }
    true
}

/// The beginning of a file, as much of it as one call gives; nothing when it cannot be read.
fn read_file(path: &Text, buffer: &mut [u8]) -> usize {
    let Some(fd) = open(path.address(), libc::O_RDONLY | libc::O_CLOEXEC) else { return 0 };
    let length = read(fd, buffer);
    close(fd);
    length
}

/// Copies a file of the kernel's; one that cannot be read is empty.
fn copied(path: &std::ffi::CStr, to: usize) -> bool {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    let Some(from) = open(path.as_ptr() as usize, flags) else { return true };
    let mut buffer = [0; 4096];
    let mut is_written = true;
    loop {
        let length = read(from, &mut buffer);
        if length == 0 || !is_written {
            close(from);
            return is_written;
        }
        is_written = write(to, &buffer[..length]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_read_and_others_refused() {
        assert_eq!(layers(None), Some(3));
        assert_eq!(layers(Some(b"posix,mpi")), Some(1 << layer::POSIX | 1 << layer::MPI));
        assert_eq!(layers(Some(b"posix:hdf5")), Some(1 << layer::POSIX | 1 << layer::HDF5));
        assert_eq!(layers(Some(b"posix:netcdf")), Some(1 << layer::POSIX | 1 << layer::NETCDF));
        assert_eq!((layers(Some(b"posix,mpo")), layers(Some(b""))), (None, None));
    }

    fn run_named(variables: &'static [(&'static str, &'static str)]) -> String {
        let run = Text::new();
        name_run(&run, &|name| {
            let found = variables.iter().find(|(it, _)| it.as_bytes() == name);
            found.map(|(_, value)| value.as_bytes())
        });
        String::from_utf8(run.text().to_vec()).unwrap()
    }

    #[test]
    fn a_run_is_named_by_whoever_gave_it_a_name_then_its_job_then_its_session() {
        const STEP: [(&str, &str); 2] = [("SLURM_JOB_ID", "77"), ("SLURM_STEP_ID", "3")];
        assert_eq!(run_named(&[("IOLAB_RUN_ID", "ab")]), "run ab");
        assert_eq!(run_named(&STEP), "step 77.3");
        assert_eq!(run_named(&[("IOLAB_RUN_ID", "ab"), STEP[0], STEP[1]]), "run ab step 77.3");
        assert_eq!(run_named(&[STEP[0], ("SLURM_STEP_ID", "4294967291")]), "SLURM_JOB_ID 77");
        assert_eq!(run_named(&[("PMIX_NAMESPACE", "9"), STEP[0]]), "PMIX_NAMESPACE 9");
        let session = run_named(&[]);
        let numbers = session.strip_prefix("session ").unwrap();
        assert!(numbers.split('.').all(|it| it.parse::<u64>().is_ok()), "{session}");
    }

    #[test]
    fn names_of_places_are_plain() {
        let place = Text::new();
        push_plain(&place, b"run a/../b c");
        assert_eq!(place.text(), b"run_a_.._b_c");
    }
}
