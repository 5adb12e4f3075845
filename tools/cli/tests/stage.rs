//! Files in a fast place: what is visible when to whom, what a crash leaves, what is refused. That programs
//! do not notice is `transparency`'s to prove.

#[path = "built/mod.rs"]
mod built;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Has a shell run a command that sees files as others outside of the run do: it began before any file did, and the
/// run does not hear of what it starts.
const OUTSIDE: &str = "outside";
const OUTSIDER: &str = r#"
coproc OUTSIDER { env -i PATH="$PATH" LC_ALL=C bash; }
exec {ear}<&"${OUTSIDER[0]}" {mouth}>&"${OUTSIDER[1]}"
outside() {
    local line
    printf '%q ' "$@" >&$mouth
    echo '; echo "=ended $?"' >&$mouth
    while read -r line <&$ear; do
        case $line in "=ended "*) return "${line#=ended }" ;; *) echo "$line" ;; esac
    done
}
outside true
"#;

/// A home for files and a fast place for them.
struct Laboratory {
    home: tempfile::TempDir,
    fast: tempfile::TempDir,
}

impl Laboratory {
    fn new() -> Laboratory {
        built::library();
        let fast = tempfile::Builder::new().prefix("iolab-test-").tempdir_in("/dev/shm").unwrap();
        Laboratory { home: tempfile::tempdir().unwrap(), fast }
    }

    fn iolab(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_iolab"));
        command.current_dir(self.home.path()).env_remove("LD_PRELOAD");
        command
    }

    /// `iolab run` of a script with all files of the home staged, and `more` parameters.
    fn command(&self, more: &str, script: &str) -> Command {
        let mut command = self.iolab();
        let (to, home) = (self.fast.path().display(), self.home.path().display());
        let strategy = format!("stage:to={to},paths={home}/**{more}");
        command.args(["run", "--allow", "late-visibility", "--apply", &strategy]);
        let begin = if script.contains(OUTSIDE) { OUTSIDER } else { "" };
        command.args(["--", "bash", "-c", &format!("{begin}{script}")]);
        command
    }

    fn run(&self, more: &str, script: &str) -> Output {
        self.command(more, script).output().unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn is_fast_place_empty(&self) -> bool {
        fs::read_dir(self.fast.path()).unwrap().count() == 0
    }

    /// `iolab stage WHAT` on the fast place.
    fn stage(&self, what: &str) -> Output {
        self.iolab().args(["stage", what]).arg(self.fast.path()).output().unwrap()
    }
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what} does not come about");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_file_is_whole_for_the_run_at_once_and_for_others_when_it_was_moved() {
    let laboratory = Laboratory::new();
    let script = format!(
        "exec 3>a; echo checkpoint >&3; stat -c '%s %n' a; cat a; {OUTSIDE} stat -c '%s %n' a"
    );
    let output = laboratory.run("", &script);
    assert_eq!(out(&output), "11 a\ncheckpoint\n0 a\n", "{}", err(&output));
    assert!(err(&output).contains("iolab: stage: 1 file of 11 B moved home"), "{}", err(&output));
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(laboratory.read("a"), "checkpoint\n");
    assert!(laboratory.is_fast_place_empty());
}

#[test]
fn a_program_that_is_started_without_the_library_sees_what_was_written_until_then() {
    let laboratory = Laboratory::new();
    let script = r#"python3 -c "
import os, subprocess, sys
file = open('a', 'w')
def say(what):
    file.write(what + '\n'); file.flush()
    return ['cat', 'a']
def fork(run):
    child = os.fork()
    if not child: run()
    os.waitpid(child, 0)
command = say('spawn')
os.waitpid(os.posix_spawn('/bin/cat', command, {}), 0)
command = say('exec')
fork(lambda: os.execve('/bin/cat', command, {}))
command = say('descriptor')
program = os.open('/bin/cat', os.O_RDONLY)
fork(lambda: os.execve(program, command, {}))
say('action')
opens = [(os.POSIX_SPAWN_OPEN, 0, 'a', os.O_RDONLY, 0)]
os.waitpid(os.posix_spawn('/bin/cat', ['cat'], os.environ, file_actions=opens), 0)
command = say('subprocess')
subprocess.run(command, env={})
os.unsetenv('LD_PRELOAD')
say('shell')
os.system('cat a')
"; exec 3>b; echo bash >&3; (unset LD_PRELOAD; cat b); env -i cat b"#;
    let output = laboratory.run("", script);
    let says = ["spawn", "exec", "descriptor", "action", "subprocess", "shell"];
    let all = (1..=says.len()).flat_map(|count| says[..count].iter().copied());
    let expected: Vec<_> = all.chain(["bash", "bash"]).collect();
    assert_eq!(out(&output).lines().collect::<Vec<_>>(), expected, "{}", err(&output));
    assert_eq!(laboratory.read("a").lines().collect::<Vec<_>>(), says);
}

#[test]
fn ranges_are_zeroed_taken_out_and_put_in_where_home_does_that() {
    let laboratory = Laboratory::new();
    let script = r#"python3 -c "
import ctypes, hashlib, os
fallocate = ctypes.CDLL(None, use_errno=True).fallocate64
fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
fd = os.open('a', os.O_CREAT | os.O_WRONLY | os.O_APPEND)
for number in range(1200): os.write(fd, b'%4d' % number * 1024)
for mode in (0x10, 0x11, 0x08, 0x20):
    for offset, length in ((4096, 8192), (100, 5000), (0, 4096), (1200 * 4096 - 4096, 20000), (1 << 23, 4096), (8192, 3 << 20)):
        failed = fallocate(fd, mode, offset, length)
        print(mode, offset, length, failed and os.strerror(ctypes.get_errno()), os.fstat(fd).st_size,
            hashlib.md5(open('a', 'rb').read()).hexdigest())
""#;
    let bare = tempfile::tempdir().unwrap();
    let mut plain = Command::new("bash");
    plain.args(["-c", script]).current_dir(bare.path()).env_remove("LD_PRELOAD");
    let plain = plain.output().unwrap();
    let output = laboratory.run("", script);
    assert!(err(&output).contains("moved home"), "{}", err(&output));
    assert_eq!(out(&output), out(&plain), "{}", err(&output));
    assert_eq!(fs::read(bare.path().join("a")).unwrap(), fs::read(laboratory.path("a")).unwrap());
}

#[test]
fn what_was_synced_is_at_home() {
    let laboratory = Laboratory::new();
    let script = format!(
        "exec 3>a; echo one >&3; wc -c < /proc/self/fd/3 > /dev/null
        dd if=/dev/zero of=b bs=1000 count=3 conv=fsync status=none; {OUTSIDE} stat -c %s b
        echo two > c; sync c; {OUTSIDE} cat c; sync; {OUTSIDE} cat a"
    );
    let output = laboratory.run("", &script);
    assert_eq!(out(&output), "3000\ntwo\none\n", "{}", err(&output));
}

#[test]
fn names_modes_and_times_are_the_real_files() {
    let laboratory = Laboratory::new();
    let script = format!(
        "echo 1 > a; mv a b; ln b c; chmod 604 b; touch -d @7 c; stat -c '%s %h %a %Y' b
        {OUTSIDE} stat -c '%h %a' b; exec 4>d; rm d; echo gone >&4; exec 4>&-; cat c"
    );
    let output = laboratory.run(",rate=10", &script);
    assert_eq!(out(&output), "2 2 604 7\n2 604\n1\n", "{}", err(&output));
    let status = fs::metadata(laboratory.path("b")).unwrap();
    assert_eq!((status.mode() & 0o777, status.mtime(), status.nlink()), (0o604, 7, 2));
    assert!(!laboratory.path("d").exists() && laboratory.is_fast_place_empty());
}

#[test]
fn attributes_are_the_real_files_and_copied_with_it() {
    let laboratory = Laboratory::new();
    let script = "python3 -c \"import os
f = os.open('a', os.O_RDWR | os.O_CREAT); os.write(f, b'bytes'); os.setxattr(f, 'user.kind', b'value')
print(os.listxattr(f), os.getxattr(f, 'user.kind'), os.listxattr('a'))\"
        cp --preserve=all a b; python3 -c \"import os; print(os.listxattr('b'), os.getxattr('b', 'user.kind'))\"";
    let output = laboratory.run(",rate=10", script);
    let wanted = "['user.kind'] b'value' ['user.kind']\n['user.kind'] b'value'\n";
    assert_eq!(out(&output), wanted, "{}", err(&output));
    assert!(laboratory.is_fast_place_empty());
}

#[test]
fn who_opens_a_file_by_number_or_handle_gets_its_copy() {
    let laboratory = Laboratory::new();
    let script = "python3 -c \"import ctypes, os, struct
libc = ctypes.CDLL(None, use_errno=True)
f = os.open('a', os.O_RDWR | os.O_CREAT); os.write(f, b'first ')
flags = os.O_RDWR | os.O_APPEND
g = libc.syscall(437, -100, b'a', ctypes.create_string_buffer(struct.pack('QQQ', flags, 0, 0)), ctypes.c_size_t(24))
g = g if g >= 0 else os.open('a', flags)
os.write(g, b'second ')
handle = ctypes.create_string_buffer(struct.pack('II', 128, 0), 136)
home = os.open('.', os.O_RDONLY)
mount = ctypes.c_int()
h = -1 if libc.name_to_handle_at(-100, b'a', handle, ctypes.byref(mount), 0) else libc.open_by_handle_at(home, handle, flags)
h = h if h >= 0 else os.open('a', flags)
os.write(h, b'third '); os.lseek(f, 0, 2); os.write(f, b'last')
print(open('a').read(), os.fstat(g).st_size == os.fstat(h).st_size == 23)\"";
    let output = laboratory.run(",rate=10", script);
    assert_eq!(out(&output), "first second third last True\n", "{}", err(&output));
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(laboratory.read("a"), "first second third last");
}

#[test]
fn who_opens_a_name_that_is_given_to_one_file_after_the_other_finds_each_whole() {
    let laboratory = Laboratory::new();
    let script = "python3 -c \"import os, threading
ended, strange = False, []
def publish():
    global ended
    for count in range(3000):
        with open('new', 'wb') as file: file.write(bytes([65 + count % 26]) * 1000)
        os.rename('new', 'name')
    ended = True
def read():
    while not ended:
        try: found = open('name', 'rb').read()
        except FileNotFoundError: continue
        if len(found) != 1000 or len(set(found)) != 1: strange.append(len(found))
threads = [threading.Thread(target=target) for target in (publish, read, read, read)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(strange)\"";
    let output = laboratory.run("", script);
    assert_eq!(out(&output), "[]\n", "{}", err(&output));
}

#[test]
fn a_file_that_existed_or_was_asked_to_be_synced_each_time_stays_at_home() {
    let laboratory = Laboratory::new();
    fs::write(laboratory.path("old"), "old ").unwrap();
    let script = format!(
        "echo more >> old; {OUTSIDE} cat old
        dd if=/dev/zero of=direct bs=512 count=1 oflag=dsync status=none; {OUTSIDE} stat -c %s direct"
    );
    let output = laboratory.run(",rate=1", &script);
    assert_eq!(out(&output), "old more\n512\n", "{}", err(&output));
    assert!(err(&output).contains("no file was chosen"), "{}", err(&output));
}

#[test]
fn a_file_that_somebody_else_has_open_stays_at_home() {
    let laboratory = Laboratory::new();
    fs::write(laboratory.path("a"), "").unwrap();
    let reader = fs::File::open(laboratory.path("a")).unwrap();
    let output = laboratory.run(",rate=1", &format!("echo 1 > a; {OUTSIDE} cat a"));
    assert_eq!(out(&output), "1\n");
    assert!(err(&output).contains("a passes, others have it open"), "{}", err(&output));
    drop(reader);
}

#[test]
fn a_file_of_which_a_lease_is_asked_goes_on_at_home_with_its_position() {
    let laboratory = Laboratory::new();
    let script = r#"python3 -c '
import fcntl, os
f = os.open("leased", os.O_RDWR | os.O_CREAT)
os.write(f, b"before ")
fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK)
assert fcntl.fcntl(f, fcntl.F_GETLEASE) == fcntl.F_WRLCK
os.write(f, b"after")
os.close(f)'; cat leased"#;
    let output = laboratory.run("", script);
    assert_eq!(out(&output), "before after", "{output:?}");
    assert!(err(&output).contains("leased goes on at home"), "{output:?}");
    assert!(err(&output).contains("1 file of 7 B moved home"), "{output:?}");
}

#[test]
fn a_program_that_is_executed_is_at_home() {
    let laboratory = Laboratory::new();
    let script =
        "printf '#!/bin/sh\\necho I am $1\\n' > s; chmod +x s; ./s a; cp /bin/true t; ./t; echo $?
        cp /bin/true u; (exec ./u); echo $?; env ./s b";
    let output = laboratory.run(",rate=200k", script);
    assert_eq!(out(&output), "I am a\n0\n0\nI am b\n", "{}", err(&output));
}

#[test]
fn what_a_killed_program_wrote_comes_home() {
    let laboratory = Laboratory::new();
    let output = laboratory.run(",rate=2k", "seq 1 100 > a; exec 3>b; seq 1 50 >&3; kill -9 $$");
    assert_eq!(output.status.code(), None, "{}", err(&output));
    let lines = |name| laboratory.read(name).lines().count();
    assert_eq!((lines("a"), lines("b")), (100, 50));
    assert!(laboratory.is_fast_place_empty());
}

/// Starts a run whose files take long to come home, and waits until its script has ended.
fn slow_run(laboratory: &Laboratory, script: &str) -> Child {
    let done = laboratory.fast.path().join("done");
    // The script says that it is over by a file that is none of those.
    let over = format!("{script}; echo over > {}", done.display());
    let mut command = laboratory.command(",rate=100k", &over);
    let child = command.stderr(Stdio::null()).spawn().unwrap();
    wait_for("the end of the script", || done.exists());
    fs::remove_file(done).unwrap();
    child
}

#[test]
fn what_a_killed_keeper_left_is_recovered_byte_for_byte() {
    let laboratory = Laboratory::new();
    let script = "seq 1 40000 > first; mkdir d; seq 1 30000 > x; mv x 'd/a name'; touch -d @5 first; chmod 600 first";
    for milliseconds in [0, 30, 300, 900] {
        let mut child = slow_run(&laboratory, script);
        std::thread::sleep(Duration::from_millis(milliseconds));
        child.kill().unwrap();
        child.wait().unwrap();
        let told = out(&laboratory.stage("status"));
        assert!(told.contains("its run has ended") && told.contains("d/a name"), "{told}");
        let recovered = laboratory.stage("recover");
        assert_eq!(recovered.status.code(), Some(0), "{}", err(&recovered));
        let last = |name: &str| laboratory.read(name).lines().last().unwrap().to_owned();
        assert_eq!((last("first"), last("d/a name")), ("40000".to_owned(), "30000".to_owned()));
        let status = fs::metadata(laboratory.path("first")).unwrap();
        assert_eq!((status.mode() & 0o777, status.mtime()), (0o600, 5));
        assert!(laboratory.is_fast_place_empty());
        // Once more is no harm.
        let again = laboratory.stage("recover");
        assert!(again.status.success() && err(&again).contains("nothing was left"), "{again:?}");
        fs::remove_dir_all(laboratory.path("d")).unwrap();
        fs::remove_file(laboratory.path("first")).unwrap();
    }
}

#[test]
fn a_run_that_goes_on_is_told_of_and_let_be() {
    let laboratory = Laboratory::new();
    let mut child = slow_run(&laboratory, "seq 1 100000 > a");
    assert!(out(&laboratory.stage("status")).contains("its run goes on, 1 file"));
    let recovered = laboratory.stage("recover");
    assert!(err(&recovered).contains("its run goes on, let be"), "{recovered:?}");
    assert!(child.wait().unwrap().success());
    assert_eq!(laboratory.read("a").lines().count(), 100_000);
}

#[test]
fn a_file_that_somebody_outside_wrote_to_is_not_overwritten() {
    let laboratory = Laboratory::new();
    let script = format!("exec 3>a; echo ours >&3; {OUTSIDE} sh -c 'echo theirs is longer > a'");
    let output = laboratory.run("", &script);
    assert_eq!(output.status.code(), Some(4), "{}", err(&output));
    assert!(err(&output).contains("somebody outside of the run has written to it"));
    assert!(err(&output).contains("iolab stage recover"), "{}", err(&output));
    assert_eq!(laboratory.read("a"), "theirs is longer\n");
    assert!(out(&laboratory.stage("status")).contains("a: 5 B"));
    let failed = laboratory.run("", "exec 3>b; echo 1 >&3; env -i sh -c 'echo 22 > b'; exit 7");
    assert_eq!(failed.status.code(), Some(7), "the program's own code counts");
}

/// A script that runs with file systems of its own; `None` where this user may not.
fn with_own_mounts(laboratory: &Laboratory, script: &str) -> Option<Output> {
    let mut may = Command::new("unshare");
    let may = may.args(["-m", "sh", "-c", "mount -t tmpfs none /mnt"]).output();
    if !may.is_ok_and(|it| it.status.success()) {
        eprintln!("SKIPPED: no file systems of one's own here");
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(["-m", "bash", "-c", script]).current_dir(laboratory.home.path());
    command.env("IOLAB", env!("CARGO_BIN_EXE_iolab")).env_remove("LD_PRELOAD");
    command.env("FAST", laboratory.fast.path()).env("HOME", laboratory.home.path());
    Some(command.output().unwrap())
}

#[test]
fn where_the_fast_place_is_full_others_come_home_and_a_file_goes_on_there() {
    let laboratory = Laboratory::new();
    let script = "mount -t tmpfs -o size=1m none $FAST
        $IOLAB run --allow late-visibility --apply \"stage:to=$FAST,spare=0,paths=$HOME/**\" -- bash -c '
            dd if=/dev/urandom of=a bs=600k count=1 status=none; dd if=/dev/urandom of=b bs=600k count=1 status=none
            md5sum a b > sums; seq 1 400000 > large; echo $?; tail -n 1 large; wc -l < large
            exec 3>c; seq 1 300000 2> /dev/null >&3; echo $?'
        echo ended $?; md5sum -c sums; wc -l large; ls $FAST";
    let Some(output) = with_own_mounts(&laboratory, script) else { return };
    let told = out(&output);
    // A descriptor that two processes have cannot be led home: they hear of it.
    let said = "0\n400000\n400000\n1\nended 0\na: OK\nb: OK\n400000 large\n";
    assert_eq!(told, said, "{}", err(&output));
    assert!(err(&output).contains("large goes on at home, the fast place is full"), "{output:?}");
}

#[test]
fn where_home_is_full_the_copy_stays_and_is_recovered_when_there_is_room() {
    let laboratory = Laboratory::new();
    let script = "mkdir small; mount -t tmpfs -o size=1m none small
        dd if=/dev/zero of=small/ballast bs=600k count=1 status=none
        $IOLAB run --allow late-visibility --apply \"stage:to=$FAST,paths=$HOME/small/**\" -- bash -c 'seq 1 100000 > small/a'
        echo ended $?; rm small/ballast; $IOLAB stage recover $FAST; echo $?; tail -n 1 small/a; ls $FAST";
    let Some(output) = with_own_mounts(&laboratory, script) else { return };
    assert_eq!(out(&output), "ended 4\n0\n100000\n", "{}", err(&output));
    assert!(err(&output).contains("cannot be moved home and stays in"), "{}", err(&output));
}

fn refused(command: &mut Command, says: &[&str]) {
    let output = command.output().unwrap();
    let told = err(&output);
    assert!(!output.status.success() && out(&output).is_empty(), "{output:?}");
    assert!(told.starts_with("error: ") && told.contains("\nhint: "), "{told}");
    says.iter().for_each(|says| assert!(told.contains(says), "`{says}` is not in: {told}"));
}

/// As in a container that has a `/dev/shm` of its own.
#[test]
fn a_process_from_which_the_fast_place_cannot_be_reached_says_so_and_nothing_else() {
    let laboratory = Laboratory::new();
    let output = laboratory.run("", "IOLAB_STAGE=/nowhere sh -c 'echo here > file'; cat file");
    assert_eq!(out(&output), "here\n");
    let told = err(&output);
    assert!(told.contains("the fast place of the run cannot be reached"), "{told}");
    assert!(!told.contains("needs a run"), "{told}");
}

#[test]
fn what_would_do_harm_is_refused_with_a_way_out() {
    let laboratory = Laboratory::new();
    let fast = laboratory.fast.path().display().to_string();
    let run = |strategy: &str| {
        let mut command = laboratory.iolab();
        command.args(["run", "--allow", "late-visibility", "--apply", strategy, "--", "echo", "x"]);
        command
    };
    let good = format!("stage:to={fast},paths=*.chk");
    refused(&mut run(&format!("stage:to={fast}/nowhere,paths=*")), &["nowhere", "No such file"]);
    refused(&mut run("stage:to=/proc,paths=*"), &["the fast place /proc"]);
    refused(&mut run(&format!("stage:to={fast}")), &["for files you name", "paths=GLOB"]);
    refused(&mut run("stage:paths=*"), &["where the fast place is"]);
    refused(&mut run(&format!("{good} + write-back:paths=*")), &["does not hear of a file"]);
    let two = format!("{good} + stage:to={fast},paths=*.x");
    refused(&mut run(&two), &["a run has one fast place"]);
    refused(run(&good).env("IOLAB_NEVER", "cat"), &["IOLAB_NEVER", "find files empty"]);
    refused(run(&good).env("IOLAB_STAGE", "/x"), &["has a fast place already"]);
    refused(run(&good).env("PMI_RANK", "0").env("PMI_SIZE", "2"), &["every rank has"]);
    let mut unasked = laboratory.iolab();
    unasked.args(["run", "--apply", &good, "--", "true"]);
    refused(&mut unasked, &["--allow late-visibility"]);
    let mut mounted = laboratory.iolab();
    let mount =
        ["run", "--via", "mount", "--allow", "late-visibility", "--apply", &good, "--", "true"];
    refused(mounted.args(mount), &["needs somebody who moves files home", "without --via mount"]);
    refused(laboratory.iolab().args(["stage", "recover", "nowhere"]), &["nowhere", "stage:to=DIR"]);
    assert!(laboratory.is_fast_place_empty());
}

/// Copies of a keeper that was killed are this user's alone.
#[test]
fn copies_are_private() {
    let laboratory = Laboratory::new();
    let mut child = slow_run(&laboratory, "umask 0; seq 1 100000 > a");
    let directory = fs::read_dir(laboratory.fast.path()).unwrap().next().unwrap().unwrap().path();
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    assert_eq!(mode(&laboratory.path("a")), 0o666);
    assert!(child.wait().unwrap().success());
}
