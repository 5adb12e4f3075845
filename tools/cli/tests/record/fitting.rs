//! Programs that leave little room for a guest: other C libraries, sanitizers, filters of system calls,
//! limits, small stacks, changed users. They start, behave as bare, and what is not seen is said.

use crate::{guest, iolab, need, record, trace, workshop};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// The ways a program is run with the library in it.
const WAYS: [&[&str]; 5] = [
    &["record", "-o", "../run.iot", "--"],
    &["run", "--apply", "null", "--"],
    &["run", "--apply", "seek-elide", "--"],
    &["run", "--apply", "write-back", "--"],
    &["run", "--apply", "write-back", "--record", "../run.iot", "--"],
];

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs words bare and in every way, in an empty directory each; output, code and files are equal.
/// The answer is what was said on standard error in each way.
fn same_in_every_way(words: &[&str], work: &Path) -> Vec<String> {
    let fresh = |command: &mut Command| {
        fs::remove_dir_all(work).unwrap();
        fs::create_dir(work).unwrap();
        let output = command.current_dir(work).output().unwrap();
        (output, crate::transparency::files(work))
    };
    let (bare, files) = fresh(Command::new(words[0]).args(&words[1..]));
    let mut all = Vec::new();
    for way in WAYS {
        let (output, found) = fresh(iolab().args(way).args(words));
        let said = said(&output);
        assert_eq!(bare.status.code(), output.status.code(), "{way:?} {words:?}: {said}");
        assert_eq!(bare.stdout, output.stdout, "{way:?} {words:?}: {said}");
        assert!(files == found, "{way:?} {words:?}: files differ");
        all.push(said);
    }
    all
}

fn compiled(compiler: &str, options: &[&str], directory: &Path) -> String {
    let source = directory.join("writer.c");
    let text = "#include <stdio.h>\nint main(void) { FILE *f = fopen(\"lines\", \"w\"); \
                for (int i = 0; i < 100; i++) fprintf(f, \"%d\\n\", i); fclose(f); \
                puts(\"written\"); return 3; }";
    fs::write(&source, text).unwrap();
    let program = directory.join(format!("writer{}", options.join("")));
    let built = Command::new(compiler).args(options).arg("-o").arg(&program).arg(&source).status();
    assert!(built.unwrap().success(), "{compiler} {options:?}");
    program.to_string_lossy().into_owned()
}

#[test]
fn a_program_of_another_c_library_runs_without_ours_and_a_line_says_so() {
    need("musl-gcc", "musl-tools");
    let (directory, work) = workshop();
    let program = compiled("musl-gcc", &[], directory.path());
    for line in same_in_every_way(&[&program], &work) {
        assert!(line.contains("another C library"), "{line}");
    }
    for line in same_in_every_way(&["bash", "-c", &format!("{program}; echo $?")], &work) {
        assert!(line.contains("another C library"), "{line}");
    }
    let spawn = format!("import subprocess; print(subprocess.run(['{program}']).returncode)");
    same_in_every_way(&["python3", "-c", &spawn], &work);
    let script = directory.path().join("script");
    fs::write(&script, format!("#!{program}\n")).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    same_in_every_way(&[script.to_str().unwrap()], &work);
}

#[test]
fn sanitizers_start_first_and_what_they_start_is_recorded_too() {
    need("gcc", "gcc");
    let (directory, work) = workshop();
    for kind in ["-fsanitize=address", "-fsanitize=undefined", "-fsanitize=leak"] {
        let program = compiled("gcc", &[kind], directory.path());
        same_in_every_way(&[&program], &work);
        let script = format!("{program}; cat lines > copy; echo $?");
        same_in_every_way(&["sh", "-c", &script], &work);
        let found = trace(directory.path());
        let paths: Vec<_> = found.header.files.iter().map(|file| file.path.as_str()).collect();
        assert!(paths.iter().any(|path| path.ends_with("/lines")), "{kind}: {paths:?}");
        assert!(paths.iter().any(|path| path.ends_with("/copy")), "{kind}: {paths:?}");
    }
}

/// What this library does with its memory is no business of the program's.
#[test]
fn a_program_under_the_thread_sanitizer_hears_of_no_races_in_the_library() {
    need("gcc", "gcc");
    let (directory, work) = workshop();
    let program = directory.path().join("without_races");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/record/guests/without_races.c");
    let mut gcc = Command::new("gcc");
    gcc.args(["-g", "-fsanitize=thread", "-o"]).arg(&program).arg(source);
    assert!(gcc.status().unwrap().success(), "gcc -fsanitize=thread");
    for said in same_in_every_way(&[program.to_str().unwrap()], &work) {
        assert!(!said.contains("ThreadSanitizer"), "{said}");
    }
}

#[test]
fn a_program_that_filters_its_system_calls_is_not_killed_by_ours() {
    let (directory, work) = workshop();
    let program = guest("filtered", directory.path());
    let program = program.to_str().unwrap();
    for how in ["prctl", "syscall", "exec"] {
        for (index, line) in same_in_every_way(&[program, how], &work).iter().enumerate() {
            assert!(line.contains("seccomp"), "{how}, way {index}: {line}");
        }
    }
}

#[test]
fn small_stacks_hold_a_recorded_call() {
    let (directory, work) = workshop();
    let program = guest("small_stacks", directory.path());
    same_in_every_way(&[program.to_str().unwrap()], &work);
}

#[test]
fn limits_of_the_program_bind_neither_recorder_nor_make_it_fail() {
    let (directory, work) = workshop();
    let program = guest("limits", directory.path());
    let program = program.to_str().unwrap();
    for (which, limit) in [
        ("file", "65536"),
        ("file", "4096"),
        ("space", "100000000"),
        ("files", "5"),
        ("files", "20"),
    ] {
        is_recorded_whole(directory.path(), &work, [program, which, limit]);
    }
    // Limits of the shell that iolab itself is started in.
    for limit in ["ulimit -f 64", "ulimit -v 600000", "ulimit -n 16"] {
        let script = format!(
            "{limit}; {} record -o ../run.iot -- {program} none 1000000",
            env!("CARGO_BIN_EXE_iolab")
        );
        let mut command = Command::new("bash");
        command.args(["-c", &script]).env("IOLAB_LIBRARY", crate::library()).current_dir(&work);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{limit}: {}", said(&output));
    }
}

#[test]
fn a_program_that_uses_all_its_descriptors_but_one_is_recorded_with_its_child() {
    let (directory, work) = workshop();
    let program = guest("limits", directory.path());
    is_recorded_whole(directory.path(), &work, [program.to_str().unwrap(), "full", "20"]);
}

/// Of `limits` all calls are there, those of its child too.
#[track_caller]
fn is_recorded_whole(directory: &Path, work: &Path, words: [&str; 3]) {
    let whole = |way: &str| {
        let trace = trace(directory);
        let calls = trace.events.iter().filter(|e| e.function == iolab_trace::Function::PWRITE);
        assert_eq!(calls.count(), 40_000, "{words:?}, {way}: {:?}", trace.header.losses);
    };
    same_in_every_way(&words, work);
    whole("below strategies");
    let output = record(directory, &[], &words);
    assert_eq!(output.status.code(), Some(4), "{words:?}: {}", said(&output));
    whole("recorded");
}

#[test]
fn nobody_else_may_read_what_is_recorded() {
    let (directory, work) = workshop();
    let spool = directory.path().join("spool");
    fs::create_dir(&spool).unwrap();
    fs::set_permissions(&spool, fs::Permissions::from_mode(0o777)).unwrap();
    let script = "find ../spool -mindepth 1 -printf '%m %f\\n'; readlink -f ../spool/*/drained";
    let output = crate::record(&work, &["--spool", "../spool"], &["bash", "-c", script]);
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(listed.lines().count() >= 4, "{listed}");
    for line in listed.lines().filter(|line| !line.starts_with('/')) {
        let mode = line.split(' ').next().unwrap();
        assert!(mode == "700" || mode == "600", "{listed}");
    }
    assert_eq!(fs::read_dir(&spool).unwrap().count(), 0, "nothing is left");
}

#[test]
fn a_process_that_changes_its_user_is_recorded_to_its_end() {
    let (directory, work) = workshop();
    if fs::metadata("/proc/self").is_ok_and(|it| std::os::unix::fs::MetadataExt::uid(&it) != 0) {
        return; // Only root can change its user.
    }
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(&work, fs::Permissions::from_mode(0o777)).unwrap();
    let script = "import os; os.setgid(65534); os.setuid(65534); f = os.open('own', os.O_CREAT | os.O_WRONLY)\n\
                  for i in range(30000): os.pwrite(f, b'12345678', i)";
    let words = ["record", "-o", "../run.iot", "--", "python3", "-c", script];
    let output = iolab().args(words).current_dir(&work).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let trace = trace(directory.path());
    let calls = trace.events.iter().filter(|e| e.function == iolab_trace::Function::PWRITE);
    assert_eq!(calls.count(), 30_000, "{:?}", trace.header.losses);
}

#[test]
fn what_outlives_a_recording_is_said_and_leaves_nothing() {
    let (directory, _) = workshop();
    let spool = directory.path().join("spool");
    fs::create_dir(&spool).unwrap();
    let script = "setsid sh -c 'for i in 1 2 3; do sleep 0.3; echo $i > late$i; done; touch done' \
                  > /dev/null 2>&1 & sleep 0.1";
    let output = record(directory.path(), &["--spool", "spool"], &["bash", "-c", script]);
    assert!(said(&output).contains("outlived the recording"), "{}", said(&output));
    for _ in 0..500 {
        if directory.path().join("done").exists() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(directory.path().join("late3").exists());
    assert_eq!(fs::read_dir(&spool).unwrap().count(), 0);
}
