//! Separate programs on the same files, and programs that end in ways nobody can handle: what a
//! write returned for is there for everybody who looks, as without us.

use super::bench::{WAYS, Way, guest, iolab, need, run_place, same_everywhere};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The strategies that hold or move anything.
const STRATEGIES: &[Way] = &[
    Way::Run(&["write-back"]),
    Way::Run(&["write-back:buffer=300,largest=200"]),
    Way::Run(&["null", "write-back:buffer=8k", "null"]),
];
const LOOKS: [&str; 10] = [
    "opens",
    "open",
    "maps",
    "mapped",
    "stats",
    "linked",
    "streams",
    "passed",
    "moves",
    "inherited",
];
const TELLS: [&str; 4] = ["pipe", "socket", "memory", "signal"];

#[test]
fn a_reader_sees_what_a_writer_told_it_of_however_it_looks() {
    let program = guest("sharing");
    let round = |look: &str, tell: &str| format!("\"$GUEST\" {tell} {look} 25;");
    let script: String =
        LOOKS.iter().flat_map(|look| TELLS.map(|tell| round(look, tell))).collect();
    same_everywhere(&script, Some(&program), STRATEGIES);
}

#[test]
#[ignore = "takes minutes; run with make test-long"]
fn a_reader_sees_what_a_writer_told_it_of_ten_thousand_times() {
    let program = guest("sharing");
    for look in LOOKS {
        for tell in TELLS {
            let count = if look == "inherited" { 500 } else { 10_000 };
            let script = format!("\"$GUEST\" {tell} {look} {count}");
            same_everywhere(&script, Some(&program), &STRATEGIES[..1]);
        }
    }
}

#[test]
fn programs_that_lock_lose_no_record() {
    let program = guest("locked_records");
    for way in ["own", "own-flock", "own-lockf", "own-ofd", "other", "other-flock", "other-reopen"]
    {
        let script = format!("\"$GUEST\" {way} 3 60");
        same_everywhere(&script, Some(&program), STRATEGIES);
    }
}

#[test]
fn a_file_that_another_program_cuts_or_extends_is_as_long_as_that_left_it() {
    need("python3", "python3");
    let script = "cat > cutter.py <<'E'
import os, sys
for line in sys.stdin:
    os.truncate('x', int(line))
    print('done', flush=True)
E
python3 - <<'E'
import os, sys, subprocess
cutter = subprocess.Popen([sys.executable, 'cutter.py'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
def cut(length):
    cutter.stdin.write('%d\\n' % length); cutter.stdin.flush(); cutter.stdout.readline()
f = os.open('x', os.O_RDWR | os.O_CREAT)
for sync in (True, False):
    for length in (0, 50, 200, 30, 77):
        os.write(f, b'a' * 100)
        if sync: os.fsync(f)
        cut(length)
        os.pwrite(f, b'b' * 10, 3)
        print(length, os.lseek(f, 0, os.SEEK_END), os.write(f, b'c'), os.lseek(f, 0, os.SEEK_CUR))
cutter.stdin.close(); cutter.wait()
E";
    same_everywhere(script, None, STRATEGIES);
}

/// Strategies that answer reads and seeks from what they know of the file.
const KEEPERS: &[Way] = &[
    Way::Run(&["read-ahead"]),
    Way::Run(&["read-ahead:via=buffer,outsiders=none"]),
    Way::Run(&["data-sieve:outsiders=none", "seek-elide:outsiders=none"]),
    Way::Run(&["align:block=64", "read-ahead:via=buffer,outsiders=none,window=1k,largest=64"]),
];

#[test]
fn a_reader_of_a_stream_sees_what_another_program_did_to_the_file_meanwhile() {
    need("python3", "python3");
    let script = "cat > writer.py <<'E'
import mmap, os, sys
held = None
for line in sys.stdin:
    how, at, byte = line.split()
    at, new = int(at), byte.encode() * 40
    if how == 'truncate': os.truncate('x', at)
    elif how == 'append': f = os.open('x', os.O_WRONLY | os.O_APPEND); os.write(f, new); os.close(f)
    elif how == 'cut': os.close(os.open('x', os.O_WRONLY | os.O_TRUNC))
    elif how == 'map':
        f = os.open('x', os.O_RDWR); m = mmap.mmap(f, 0); m[at:at + 40] = new; m.close(); os.close(f)
    else:
        held = os.open('x', os.O_WRONLY); os.pwrite(held, new, at)
        if how != 'held': os.close(held)
    print('done', flush=True)
E
python3 - <<'E'
import os, sys, subprocess
writer = subprocess.Popen([sys.executable, 'writer.py'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
def change(how, at, byte):
    writer.stdin.write('%s %d %s\\n' % (how, at, byte)); writer.stdin.flush(); writer.stdout.readline()
for how in ('write', 'append', 'truncate', 'cut', 'map', 'write', 'held'):
    for step in (10, 15, -10):
        f = os.open('x', os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        os.write(f, bytes(range(250)) * 20)
        os.close(f)
        f = os.open('x', os.O_RDONLY)
        at = 2000
        for number in range(30):
            got = os.pread(f, 10, at) if number % 3 else (os.lseek(f, at, 0), os.read(f, 10))[1]
            at += step
            if number in (8, 14): change(how, at - 10, 'ab'[number == 14])
            if number > 7: print(how, number, got, os.lseek(f, 0, os.SEEK_END))
        os.close(f)
writer.stdin.close(); writer.wait()
E";
    same_everywhere(script, None, KEEPERS);
}

#[test]
fn a_run_within_a_run_sees_what_the_programs_around_it_wrote() {
    need("python3", "python3");
    let script = format!(
        "cat > inner.py <<'E'
print(open('out').read())
open('other', 'ab', 0).write(b'inner, ')
E
python3 - <<'E'
import os, subprocess
inner = ['{}', 'run', '--apply', 'write-back', '--', 'python3', 'inner.py']
f = os.open('out', os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
for i in range(5):
    os.write(f, b'outer %d, ' % i)
    subprocess.run(inner)
    print(os.stat('other').st_size)
E",
        env!("CARGO_BIN_EXE_iolab")
    );
    same_everywhere(&script, None, STRATEGIES);
}

#[test]
fn a_program_that_is_ended_by_any_means_has_written_what_its_writes_returned_for() {
    let program = guest("killed");
    let (real_time, raw) = ("37", "raw");
    for how in ["placed", "appended", "scattered"] {
        for end in ["9", "5", "16", "29", "30", real_time, "overflow", raw] {
            // The shell that ran it sees the files, and so does whoever looks after the run.
            let script =
                format!("ulimit -c 0; exec 2>/dev/null; \"$GUEST\" {how} {end}; echo $?; cat *");
            same_everywhere(&script, Some(&program), &STRATEGIES[..2]);
        }
        let script = format!("ulimit -c 0; exec \"$GUEST\" {how} 9");
        same_everywhere(&script, Some(&program), STRATEGIES);
    }
}

#[test]
fn writes_that_returned_are_there_after_a_kill_at_any_moment() {
    let program = guest("counted");
    same_everywhere("\"$GUEST\" 40", Some(&program), STRATEGIES);
    same_everywhere("\"$GUEST\" 40", Some(&program), &[Way::Run(&["write-back:buffer=20k"])]);
}

#[test]
#[ignore = "takes minutes; run with make test-long"]
fn writes_that_returned_are_there_after_two_thousand_kills() {
    let program = guest("counted");
    same_everywhere("\"$GUEST\" 2000", Some(&program), STRATEGIES);
}

#[test]
fn a_child_before_its_exec_leaves_its_parents_files_alone() {
    need("python3", "python3");
    let script = "python3 - <<'E'
import subprocess, os
f = open('out', 'w+b', buffering=0)
for i in range(4):
    f.write(b'before %d\\n' % i)
    subprocess.run(['true'])
    f.write(b'after %d\\n' % i)
    subprocess.run(['sh', '-c', 'echo child'], stdout=f)
    f.write(b'end %d\\n' % i)
    subprocess.run(['sh', '-c', 'wc -c < out >> sizes'])
    subprocess.run(['sh', '-c', 'echo passed >&%d' % f.fileno()], pass_fds=[f.fileno()])
    f.seek(0, 2)
    f.write(b'again\\n')
print(f.tell())
E";
    same_everywhere(script, None, WAYS);
    same_everywhere(script, None, &[Way::Run(&["seek-elide"])]);
}

#[test]
fn readers_and_writers_of_one_data_base_wait_for_each_other() {
    need("python3", "python3");
    let script = "python3 - <<'E'
import sqlite3, os
def work(number):
    base = sqlite3.connect('base', timeout=60, isolation_level=None)
    base.execute('pragma synchronous=off')
    for i in range(40):
        base.execute('begin immediate')
        base.execute('update total set n = n + 1')
        base.execute('insert into record values (?, ?)', (number, i))
        base.execute('commit')
    base.close()
base = sqlite3.connect('base', isolation_level=None)
base.execute('pragma journal_mode=wal')
base.execute('create table total (n)'); base.execute('insert into total values (0)')
base.execute('create table record (a, b)')
base.close()
children = []
for number in range(4):
    child = os.fork()
    if child == 0:
        work(number); os._exit(0)
    children.append(child)
print([os.waitpid(child, 0)[1] for child in children])
base = sqlite3.connect('base')
print(base.execute('select n from total').fetchall(), base.execute('select count(*) from record').fetchall())
print(base.execute('pragma integrity_check').fetchall())
base.close()
os.remove('base')
E";
    same_everywhere(script, None, STRATEGIES);
}

#[test]
fn a_program_that_outlives_its_launcher_loses_nothing() {
    need("python3", "python3");
    for early in ["", "f = open('late', 'wb', buffering=0); f.write(b'early')"] {
        let script = format!(
            "python3 - <<'E'
import os, time
{early}
if os.fork():
    os._exit(0)
f = open('late', 'ab', buffering=0)
for i in range(50):
    f.write(b'record %d\\n' % i)
    time.sleep(0.01)
E"
        );
        same_everywhere(&script, None, STRATEGIES);
    }
}

#[test]
fn what_a_killed_launcher_leaves_is_written_out_by_recover() {
    let program = guest("killed");
    for how in ["placed", "appended", "scattered"] {
        let (bare, under) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        Command::new(&program).args([how, "9"]).current_dir(&bare).status().unwrap();
        let mut run = iolab();
        let place = run_place();
        run.env("IOLAB_RUN_PLACE", place.path());
        run.args(["run", "--apply", "write-back", "--"]).arg(&program).args([how, "both"]);
        let output = run.current_dir(&under).output().unwrap();
        let segment = String::from_utf8(output.stdout).unwrap();
        let directory = Path::new(segment.trim()).parent().unwrap();
        assert!(fs::read(under.path().join("second")).unwrap().is_empty(), "it was held");
        assert!(iolab().arg("recover").arg(directory).status().unwrap().success());
        for name in ["left behind", "second"] {
            let read = |home: &tempfile::TempDir| fs::read(home.path().join(name)).unwrap();
            assert!(read(&bare) == read(&under), "{how}: {name}");
        }
        assert!(!directory.exists(), "nothing is left of the run");
    }
}

#[test]
fn a_program_that_writes_past_the_library_is_told_of_and_the_file_passes() {
    let (home, place) = (tempfile::tempdir().unwrap(), run_place());
    let (mut run, program) = (iolab(), guest("past_the_library"));
    run.env("IOLAB_RUN_PLACE", place.path());
    run.args(["run", "--quiet", "--apply", "write-back", "--"]).arg(&program);
    let output = run.current_dir(&home).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("past the library") && said.contains("/mixed"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    let left = fs::read_to_string(home.path().join("mixed")).unwrap();
    assert!(left.ends_with("two three"), "{left}");
}

#[test]
fn a_fork_past_the_library_takes_nothing_from_parent_or_child() {
    same_everywhere("\"$GUEST\"", Some(&guest("copies")), STRATEGIES);
}
