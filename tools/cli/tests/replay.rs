//! Recorded programs replayed on scratch files, from the command line.

use std::path::Path;
use std::process::{Command, Output};

fn iolab(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_iolab"))
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap()
}

fn succeeds(directory: &Path, arguments: &[&str]) -> String {
    let output = iolab(directory, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Records a script of the shell and of the programs it calls.
fn recorded(directory: &Path, script: &str) {
    succeeds(directory, &["record", "-o", "run.iot", "--", "sh", "-c", script]);
}

fn same_trees(directory: &Path, one: &str, other: &str) -> bool {
    let diff = Command::new("diff").args(["-r", one, other]).current_dir(directory).output();
    diff.unwrap().status.success()
}

const PROGRAM: &str = "seq 1 20000 > numbers; sort -rn numbers > sorted; \
    dd if=numbers of=copy bs=100 conv=fsync status=none; head -c 5000 copy >> sorted; \
    mkdir kept; mv copy kept/copy; rm numbers; cat missing; true";

#[test]
fn what_programs_did_comes_out_the_same_plain_and_under_strategies() {
    let place = tempfile::tempdir().unwrap();
    recorded(place.path(), PROGRAM);
    let said = succeeds(place.path(), &["replay", "run.iot", "--into", "plain"]);
    assert!(said.contains("came out as recorded"), "{said}");
    for strategy in ["null", "write-back", "write-back:buffer=4k", "seek-elide"] {
        let into = strategy.replace(':', "-");
        let arguments = ["replay", "run.iot", "--into", &into, "--apply", strategy, "--json"];
        let summary: serde_json::Value =
            serde_json::from_str(&succeeds(place.path(), &arguments)).unwrap();
        assert_eq!(summary["identical"], true);
        assert!(summary["decisions"].as_u64().unwrap() > 0, "{summary:#}");
        assert!(same_trees(place.path(), "plain", &into), "{strategy}");
    }
}

#[test]
fn a_cache_layer_is_refused_where_there_are_no_servers() {
    let place = tempfile::tempdir().unwrap();
    recorded(place.path(), "echo here > file");
    let simulate = |platform: &str| {
        let how = ["--cache", "write-behind", "--platform", platform];
        iolab(place.path(), &[&["simulate", "--trace", "run.iot"], &how[..]].concat())
    };
    let refused = simulate("local-ext4");
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && told.contains("--cache does nothing"), "{told}");
    assert!(simulate("classic-hdd").status.success());
}

#[test]
fn decisions_can_be_kept_as_a_trace() {
    let place = tempfile::tempdir().unwrap();
    recorded(place.path(), PROGRAM);
    let arguments = "replay run.iot --into scratch --apply write-back --decisions decided.iot";
    succeeds(place.path(), &arguments.split(' ').collect::<Vec<_>>());
    let file = std::fs::File::open(place.path().join("decided.iot")).unwrap();
    let decided = iolab_iot::read(file).unwrap();
    assert!(decided.events.iter().any(|event| event.function.name() == "perform"));
    assert_eq!(decided.header.strategies, ["write-back"]);
}

#[test]
fn a_timed_replay_takes_as_long_as_the_recording_did() {
    let place = tempfile::tempdir().unwrap();
    recorded(place.path(), "echo a > a; sleep 0.3; echo b > b");
    let summary =
        succeeds(place.path(), &["replay", "run.iot", "--into", "d", "--timed", "--json"]);
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert!(summary["elapsed_ns"].as_u64().unwrap() >= 290_000_000, "{summary:#}");
}

#[test]
fn a_trace_that_does_not_hold_together_fails_loudly_at_the_first_call() {
    let place = tempfile::tempdir().unwrap();
    recorded(place.path(), PROGRAM);
    let path = place.path().join("run.iot");
    let mut trace = iolab_iot::read(std::fs::File::open(&path).unwrap()).unwrap();
    let wrong = (trace.events.iter_mut())
        .find(|event| event.function.name() == "read" && event.result > 100)
        .unwrap();
    wrong.result -= 1;
    iolab_iot::write(&trace, std::fs::File::create(&path).unwrap()).unwrap();
    let output = iolab(place.path(), &["replay", "run.iot", "--into", "scratch"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && errors.contains("the replay differs: row"), "{errors}");
}

#[test]
fn slips_are_named_and_a_used_directory_is_left_alone() {
    let place = tempfile::tempdir().unwrap();
    recorded(place.path(), "echo a > a");
    std::fs::create_dir(place.path().join("used")).unwrap();
    std::fs::write(place.path().join("used/precious"), "mine").unwrap();
    std::fs::write(place.path().join("cut.iot"), "PAR1 and then nothing").unwrap();
    let cases: [(&[&str], &str); 5] = [
        (&["replay", "run.iot", "--into", "used"], "used is not empty"),
        (&["replay", "missing.iot", "--into", "new"], "missing.iot"),
        (&["replay", "cut.iot", "--into", "new"], "cut.iot"),
        (&["replay", "run.iot", "--into", "new", "--apply", "write-bakc"], "write-bakc"),
        (&["replay", "run.iot", "--into", "/proc/new"], "/proc/new"),
    ];
    for (arguments, offender) in cases {
        let output = iolab(place.path(), arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(errors.contains(offender) && errors.contains("error: "), "{errors}");
    }
    assert_eq!(std::fs::read_to_string(place.path().join("used/precious")).unwrap(), "mine");
}

/// The first call that finds no room is named, whether it wrote a part or nothing, and so is what would do.
#[test]
fn a_replay_on_a_full_disk_says_how_much_room_it_needs() {
    let place = tempfile::tempdir().unwrap();
    let scripts = [
        ("written", "head -c 100000 /dev/zero > a; rm a; head -c 300000 /dev/zero > b"),
        ("there", "cat old > /dev/null"),
    ];
    std::fs::write(place.path().join("old"), vec![1; 300_000]).unwrap();
    for (name, script) in scripts {
        recorded(place.path(), script);
        let small = format!("mkdir {name}; mount -t tmpfs -o size=200k none {name} && ");
        let replay = format!("{small} exec \"$IOLAB\" replay run.iot --into {name}/scratch --json");
        let mut command = std::process::Command::new("unshare");
        command.args(["-rm", "sh", "-c", &replay]).env("IOLAB", env!("CARGO_BIN_EXE_iolab"));
        let output = command.current_dir(place.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        if said.starts_with("unshare:") || said.starts_with("mount:") {
            return eprintln!("SKIPPED: {said}");
        }
        assert!(!output.status.success() && said.contains("No space left on device"), "{said}");
        let hint = "hint: the files take up to 293 KiB: name a directory with that much room";
        assert!(said.contains(hint), "{said}");
        std::fs::remove_file(place.path().join("run.iot")).unwrap();
    }
}

#[test]
fn a_vectored_transfer_at_the_position_is_replayed_at_the_position() {
    let place = tempfile::tempdir().unwrap();
    let script = "import os
f = os.open('x', os.O_RDWR | os.O_CREAT)
os.writev(f, [b'0123456789'] * 20); os.lseek(f, 100, 0)
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
class Vector(ctypes.Structure): _fields_ = [('at', ctypes.c_void_p), ('length', ctypes.c_size_t)]
room = ctypes.create_string_buffer(7)
one = Vector(ctypes.addressof(room), 7)
libc.preadv2.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_long, ctypes.c_int]
assert libc.preadv2(f, ctypes.addressof(one), 1, -1, 0) == 7
assert os.lseek(f, 0, 1) == 107
os.write(f, b'end')";
    let arguments = ["record", "-o", "run.iot", "--", "python3", "-c", script];
    succeeds(place.path(), &arguments);
    let said = succeeds(place.path(), &["replay", "run.iot", "--into", "plain"]);
    assert!(said.contains("came out as recorded"), "{said}");
}

#[test]
fn files_that_others_make_longer_or_shorter_are_replayed_with_the_size_that_an_open_found() {
    let place = tempfile::tempdir().unwrap();
    let unseen = "env -u LD_PRELOAD";
    let script = format!(
        "echo start > log; {unseen} bash -c 'echo unseen >> log'; cat log; echo more >> log; cat log; \
         {unseen} truncate -s 3 log; cat log; echo end >> log; cat log; mv log other; \
         {unseen} bash -c 'echo again >> other'; cat other"
    );
    recorded(place.path(), &script);
    let said = succeeds(place.path(), &["replay", "run.iot", "--into", "plain"]);
    assert!(said.contains("3 files had another size"), "{said}");
    let file = place.path().join("other");
    let again = place.path().join("plain").join(file.strip_prefix("/").unwrap());
    let bytes = |path: &Path| std::fs::metadata(path).unwrap().len();
    assert_eq!(bytes(&again), bytes(&file));
}

#[test]
fn what_a_daemon_writes_to_what_it_inherited_is_replayed_there() {
    let place = tempfile::tempdir().unwrap();
    let script = "import ctypes, os
f = os.open('x', os.O_RDWR | os.O_CREAT)
os.write(f, b'before')
told, tell = os.pipe()
if os.fork() == 0:
    ctypes.CDLL(None).daemon(1, 0)
    os.write(f, b'daemon')
    os._exit(0)
os.close(tell)
os.read(told, 1)
os.write(f, b'after')";
    let arguments = ["record", "-o", "run.iot", "--", "python3", "-c", script];
    succeeds(place.path(), &arguments);
    let said = succeeds(place.path(), &["replay", "run.iot", "--into", "plain"]);
    assert!(said.contains("came out as recorded"), "{said}");
    assert_eq!(std::fs::metadata(place.path().join("x")).unwrap().len(), 17);
}

#[test]
fn what_is_appended_by_whatever_call_is_replayed_at_the_end() {
    let place = tempfile::tempdir().unwrap();
    let script = "import os
f = os.open('x', os.O_RDWR | os.O_CREAT)
os.write(f, b'a' * 100)
os.lseek(f, 40, 0)
appends = 0x10
assert os.pwritev(f, [b'b' * 7], 3, appends) == 7
assert os.lseek(f, 0, 1) == 40
assert os.pwritev(f, [b'c' * 9], -1, appends) == 9
assert os.lseek(f, 0, 1) == 116
import fcntl
fcntl.fcntl(f, fcntl.F_SETFL, os.O_APPEND)
assert os.pwrite(f, b'd' * 5, 2) == 5
assert os.lseek(f, 0, 1) == 116
assert os.write(f, b'e' * 4) == 4
assert len(os.pread(f, 1000, 0)) == 125
os.lseek(f, 0, 0)
assert len(os.read(f, 1000)) == 125";
    let arguments = ["record", "-o", "run.iot", "--", "python3", "-c", script];
    succeeds(place.path(), &arguments);
    let said = succeeds(place.path(), &["replay", "run.iot", "--into", "plain"]);
    assert!(said.contains("came out as recorded"), "{said}");
}

#[test]
fn names_that_come_and_go_by_calls_that_are_not_recorded_do_not_stop_a_replay() {
    let place = tempfile::tempdir().unwrap();
    let script = "test -e p; mkfifo p; (echo bytes > p &); cat p; rm p; test -e x; env -u LD_PRELOAD cp /proc/version x; \
                  cat x; env -u LD_PRELOAD rm x; cat x; (set -C; echo new > x); test -e l; ln -s nowhere l; cat l; rm l; \
                  test -e y; env -u LD_PRELOAD mkdir y; echo in > y/f; rm -r y; mkdir y; rmdir y";
    recorded(place.path(), script);
    let said = succeeds(place.path(), &["replay", "run.iot", "--into", "plain"]);
    assert!(said.contains("names came or went by calls that the trace does not have"), "{said}");
}

#[test]
fn a_command_that_a_shell_executes_in_its_child_writes_where_the_child_had_led_it() {
    let place = tempfile::tempdir().unwrap();
    // What the shell itself writes to is a file as well, and the child has inherited it.
    let script = "exec > all; echo first; cat > f <<END\nsome bytes\nEND\ncat f; seq 9 > f; cat f; sort f | cat";
    recorded(place.path(), script);
    succeeds(place.path(), &["replay", "run.iot", "--into", "plain"]);
    for name in ["all", "f"] {
        let file = place.path().join(name);
        let again = place.path().join("plain").join(file.strip_prefix("/").unwrap());
        let bytes = |path: &Path| std::fs::metadata(path).unwrap().len();
        assert_eq!(bytes(&again), bytes(&file), "{name}");
    }
}

#[test]
fn calls_without_a_path_and_links_from_other_directories_come_out_as_recorded() {
    let place = tempfile::tempdir().unwrap();
    let script = "stat ''; mkdir d; ln -s ../b d/l; cat d/l; echo bytes > b; cat d/l; ln d/l hard; rm d/l; rmdir d";
    recorded(place.path(), script);
    let said = succeeds(place.path(), &["replay", "run.iot", "--into", "plain"]);
    assert!(said.contains("came out as recorded"), "{said}");
    let again = place.path().join("plain").join(place.path().strip_prefix("/").unwrap());
    assert_eq!(std::fs::read(again.join("b")).unwrap().len(), 6);
}

#[test]
fn names_that_are_taken_and_directories_that_are_not_there_come_out_as_recorded() {
    let place = tempfile::tempdir().unwrap();
    // `mv` asks first not to replace anything.
    let script = "echo one > a; echo second > b; mv a b; ln b l; ln b l; cat b; echo x > none/f; mkdir none/d; \
                  mkdir e; cat e/none/f; rmdir e; true";
    recorded(place.path(), script);
    let said = succeeds(place.path(), &["replay", "run.iot", "--into", "plain"]);
    assert!(said.contains("came out as recorded"), "{said}");
    let again = place.path().join("plain").join(place.path().strip_prefix("/").unwrap());
    assert_eq!(std::fs::metadata(again.join("b")).unwrap().len(), 4);
    assert!(!again.join("a").exists() && !again.join("none").exists());
}

#[test]
fn names_with_a_slash_behind_them_come_out_as_recorded() {
    let place = tempfile::tempdir().unwrap();
    for name in ["before", "beside"] {
        std::fs::write(place.path().join(name), name).unwrap();
    }
    let script = "import os
open('beside').read()
def fails(code, call, *arguments):
    try: call(*arguments)
    except OSError as error: assert error.errno == code, error
    else: assert False, call
fails(20, os.open, 'before/', os.O_RDONLY)
os.mkdir('h/')
open('h/f', 'w').write('one')
for call, arguments in [(os.open, [os.O_RDONLY]), (os.stat, []), (os.unlink, []), (os.rename, ['x']), (os.rmdir, [])]:
    fails(20, call, 'h/f/', *arguments)
fails(21, os.open, 'new/', os.O_CREAT | os.O_WRONLY)
fails(21, os.open, 'h/', os.O_CREAT | os.O_WRONLY)
os.rename('h/', 'g/')
assert open('before').read() == 'before'";
    succeeds(place.path(), &["record", "-o", "run.iot", "--", "python3", "-c", script]);
    let said = succeeds(place.path(), &["replay", "run.iot", "--into", "again"]);
    assert!(said.contains("came out as recorded"), "{said}");
    let again = place.path().join("again").join(place.path().strip_prefix("/").unwrap());
    assert_eq!(std::fs::metadata(again.join("g/f")).unwrap().len(), 3);
    assert!(again.join("before").is_file());
}

#[test]
fn a_file_that_calls_name_in_two_ways_is_one_file() {
    let place = tempfile::tempdir().unwrap();
    let script = "mkdir d; seq 500 > data; cd d; stat ../data; wc ../data; cat < ../data > ../d/copy; wc copy; ln -s d ../e; wc ../e/copy; \
                  mv ../d ../g; wc ../g/copy";
    recorded(place.path(), script);
    let said = succeeds(place.path(), &["replay", "run.iot", "--into", "plain"]);
    assert!(said.contains("came out as recorded"), "{said}");
}

#[test]
fn a_file_without_a_name_has_its_bytes_when_it_gets_one() {
    let place = tempfile::tempdir().unwrap();
    let script = "import ctypes, os
link = ctypes.CDLL(None, use_errno=True).linkat
def nameless(bytes):
    file = os.open('.', os.O_TMPFILE | os.O_RDWR)
    os.write(file, bytes)
    return file
one, other = nameless(b'some'), nameless(b'others')
assert link(-100, b'/proc/self/fd/%d' % one, -100, b'one', 0x400) == 0
assert link(other, b'', -100, b'other', 0x1000) == 0 or ctypes.get_errno() == 2
assert len(open('one').read()) == 4";
    succeeds(place.path(), &["record", "-o", "run.iot", "--", "python3", "-c", script]);
    succeeds(place.path(), &["replay", "run.iot", "--into", "again"]);
    let again = place.path().join("again").join(place.path().strip_prefix("/").unwrap());
    for (name, bytes) in [("one", 4), ("other", 6)] {
        let is_there = place.path().join(name).exists();
        let found = std::fs::metadata(again.join(name)).map_or(0, |found| found.len());
        assert_eq!(found, if is_there { bytes } else { 0 }, "{name}");
    }
    let names = std::fs::read_dir(&again).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.into_iter().all(|name| name == "one" || name == "other"));
}

#[test]
fn a_spawned_program_writes_where_its_parent_does_by_whatever_number() {
    let place = tempfile::tempdir().unwrap();
    let script = "import os
f = os.open('f', os.O_RDWR | os.O_CREAT)
os.write(f, b'parent first\\n')
def spawn(number, *command):
    actions = [(os.POSIX_SPAWN_DUP2, f, number), (os.POSIX_SPAWN_OPEN, 7, 'g', os.O_WRONLY | os.O_CREAT, 0o600)]
    os.waitpid(os.posix_spawn('/bin/sh', ['sh', '-c', *command], os.environ, file_actions=actions), 0)
spawn(1, 'echo child; echo seven >&7')
os.write(f, b'parent again\\n')
assert os.lseek(f, 0, 1) == 32
spawn(8, 'echo by another number >&8')
os.write(f, b'parent last\\n')
assert os.lseek(f, 0, 1) == 62";
    succeeds(place.path(), &["record", "-o", "run.iot", "--", "python3", "-c", script]);
    let said = succeeds(place.path(), &["replay", "run.iot", "--into", "again"]);
    assert!(said.contains("came out as recorded"), "{said}");
    let again = place.path().join("again").join(place.path().strip_prefix("/").unwrap());
    for (name, bytes) in [("f", 62), ("g", 6)] {
        assert_eq!(std::fs::metadata(again.join(name)).unwrap().len(), bytes, "{name}");
    }
}

#[test]
fn ranges_that_are_taken_out_of_a_file_or_put_in_and_copies_of_nothing_are_replayed() {
    let place = tempfile::tempdir().unwrap();
    let script = "import ctypes, os
fallocate = ctypes.CDLL(None, use_errno=True).fallocate
fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]
f = os.open('f', os.O_RDWR | os.O_CREAT)
for line in range(4000): os.write(f, b'line %d\\n' % line)
for mode in (0x08, 0x20):
    done = fallocate(f, mode, 4096, 4096)
    assert done == 0 or ctypes.get_errno() == 95, ctypes.get_errno()
    os.pread(f, 30000, 0)
end = os.lseek(f, 0, 2)
g = os.open('g', os.O_RDWR | os.O_CREAT)
appending = os.open('g', os.O_WRONLY | os.O_APPEND)
assert os.sendfile(g, f, None, 100) == 0 and os.lseek(f, 0, 1) == end
try: os.copy_file_range(f, appending, 10, 0)
except OSError as error: assert error.errno == 9
try: os.dup2(g, 1 << 30)
except OSError as error: assert error.errno == 9";
    succeeds(place.path(), &["record", "-o", "run.iot", "--", "python3", "-c", script]);
    let said = succeeds(place.path(), &["replay", "run.iot", "--into", "again"]);
    assert!(said.contains("came out as recorded"), "{said}");
}

#[test]
fn what_is_written_by_the_systems_names_for_open_files_is_in_the_trace() {
    let place = tempfile::tempdir().unwrap();
    let script = "exec 5> five; echo one > /dev/fd/5; echo second >> /proc/self/fd/5; (echo out > /dev/stdout) > out; \
                  cat five | tee -a /dev/stderr 2>> both > plain; cat /proc/self/cwd/plain > copy; rm plain";
    recorded(place.path(), script);
    let said = succeeds(place.path(), &["replay", "run.iot", "--into", "again"]);
    assert!(said.contains("came out as recorded"), "{said}");
    let again = place.path().join("again").join(place.path().strip_prefix("/").unwrap());
    for (name, bytes) in [("five", 11), ("out", 4), ("both", 11), ("copy", 11)] {
        assert_eq!(std::fs::metadata(again.join(name)).unwrap().len(), bytes, "{name}");
    }
}

#[test]
fn copies_inside_the_kernel_go_where_they_went_and_move_the_positions_they_moved() {
    let place = tempfile::tempdir().unwrap();
    let script = "import os
a = os.open('a', os.O_RDWR | os.O_CREAT); b = os.open('b', os.O_RDWR | os.O_CREAT)
first, last = os.pipe()
os.write(a, b'0123456789' * 100); os.lseek(a, 0, 0)
def moved(wanted, done): assert done == wanted, done
moved(100, os.copy_file_range(a, b, 100, 0, 0)); moved(100, os.copy_file_range(a, b, 100, 300, 700))
moved(50, os.copy_file_range(a, b, 50, None, 100)); moved(30, os.copy_file_range(a, b, 30, 0))
moved(20, os.sendfile(b, a, None, 20)); moved(20, os.sendfile(b, a, 5, 20))
moved(40, os.splice(a, last, 40)); moved(40, os.splice(first, b, 40))
os.write(last, b'z' * 10); moved(10, os.splice(first, b, 10, offset_dst=900))
moved(15, os.copy_file_range(a, b, 15))
assert (os.lseek(a, 0, 1), os.lseek(b, 0, 1)) == (125, 125)
os.write(b, b'end'); assert os.read(a, 5) == b'56789'";
    let script = format!(
        "{script}\nother = os.open('/dev/null', os.O_WRONLY); moved(9, os.sendfile(other, a, None, 9)); os.read(a, 1)"
    );
    succeeds(place.path(), &["record", "-o", "run.iot", "--", "python3", "-c", &script]);
    let again = |into: &str| place.path().join(into).join(place.path().strip_prefix("/").unwrap());
    for (into, strategies) in [("plain", &[][..]), ("held", &["--apply", "write-back"][..])] {
        let arguments = [&["replay", "run.iot", "--into", into][..], strategies].concat();
        let said = succeeds(place.path(), &arguments);
        assert!(said.contains("came out as recorded"), "{said}");
        let [a, b] = ["a", "b"].map(|name| std::fs::read(again(into).join(name)).unwrap());
        assert_eq!(b.len(), 910, "{into}");
        assert_eq!(a[300..400], b[700..800], "{into}");
        assert_eq!(a[28..50], b[128..150], "{into}: at the source's position");
        assert_eq!(a[50..70], b[30..50], "{into}: sent from the position to the position");
    }
    assert!(same_trees(place.path(), "plain", "held"));
}
