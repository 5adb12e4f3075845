//! What a program may rely on, one guest program per group of promises.

use super::bench::{DATA_WAYS, WAYS, WAYS_AND_ALONE, Way, guest, iolab, need, same_everywhere};

fn check(name: &str, script: &str) {
    same_everywhere(script, Some(&guest(name)), WAYS);
}

#[test]
fn every_way_of_naming_a_file_sees_what_was_written_by_any_other() {
    check("one_file_many_ways", "\"$GUEST\"");
}

#[test]
fn calls_that_must_fail_fail_the_same_way_and_harm_nothing() {
    check("bad_calls", "\"$GUEST\"");
}

#[test]
fn places_that_files_cannot_have_are_refused_as_the_file_system_does() {
    // In a fast place files are as large as its file system has them.
    let held: &[Way] = &[
        Way::Record,
        Way::Run(&["seek-elide"]),
        Way::Run(&["write-back:buffer=300,largest=200"]),
        Way::Run(&["null", "write-back:buffer=8k", "null"]),
    ];
    for ways in [held, DATA_WAYS] {
        same_everywhere("\"$GUEST\"", Some(&guest("far_places")), ways);
    }
}

#[test]
fn processes_made_in_any_way_share_files_and_positions() {
    check("processes", "\"$GUEST\"");
}

#[test]
fn threads_keep_their_records_and_can_be_cancelled() {
    check("threads", "\"$GUEST\"");
}

#[test]
fn streams_whose_calls_are_no_cancellation_points_see_the_same_files() {
    check("quiet_streams", "\"$GUEST\"");
}

#[test]
fn threads_that_open_files_at_once_each_write_their_own() {
    check("opens_at_once", "\"$GUEST\"");
}

#[test]
fn a_signal_handler_may_write_to_the_file_its_program_is_writing() {
    check("alarm", "\"$GUEST\"");
}

#[test]
fn whatever_way_a_program_ends_its_files_are_whole() {
    let program = guest("endings");
    for way in ["return", "exit", "_exit", "quick_exit", "exec", "freopen", "handler"] {
        same_everywhere(&format!("exec \"$GUEST\" {way}"), Some(&program), WAYS);
    }
}

#[test]
fn a_program_has_all_the_numbers_of_descriptors_that_its_limit_lets_it() {
    let program = guest("limited");
    let cases = [
        (64, "opens"),
        (64, "dups"),
        (17, "opens"),
        (64, "lock"),
        (900, "lowered"),
        (8, "numbers"),
        (20, "numbers"),
    ];
    for (limit, way) in cases {
        // A fast place takes one number for a moment.
        let script = format!("ulimit -n {limit}; exec \"$GUEST\" {way}");
        same_everywhere(&script, Some(&program), &at_home(WAYS));
    }
}

#[test]
fn a_write_beyond_the_size_that_a_file_may_have_fails_at_once() {
    let program = guest("limited");
    for script in ["exec \"$GUEST\" size", "ulimit -S -f 3; \"$GUEST\" inherited"] {
        same_everywhere(script, Some(&program), WAYS);
    }
}

#[test]
fn what_was_closed_or_synced_is_there_after_a_kill() {
    let program = guest("endings");
    for way in ["close", "fsync", "dup2", "closefrom"] {
        same_everywhere(&format!("exec \"$GUEST\" {way}"), Some(&program), WAYS);
    }
}

#[test]
fn a_fatal_signal_leaves_what_a_bare_program_would_have_left() {
    let program = guest("endings");
    for way in ["abort", "term", "segv"] {
        same_everywhere(&format!("ulimit -c 0; exec \"$GUEST\" {way}"), Some(&program), WAYS);
    }
}

fn check_alone(name: &str, script: &str) {
    same_everywhere(script, Some(&guest(name)), WAYS_AND_ALONE);
}

/// As `check_alone`, but not in a fast place, which is of another file system with requests of its own, and
/// where a write takes no rights away from a file that its owner has given it before.
fn check_at_home(name: &str, script: &str) {
    same_everywhere(script, Some(&guest(name)), &at_home(WAYS_AND_ALONE));
}

/// The ways but that over a fast place.
fn at_home(ways: &[Way]) -> Vec<Way> {
    ways.iter().copied().filter(|way| !matches!(way, Way::Stage(_))).collect()
}

#[test]
fn calls_made_by_number_are_the_functions_calls() {
    check_alone("by_number", "\"$GUEST\"");
}

#[test]
fn whoever_looks_past_the_functions_sees_the_same_file() {
    check_at_home("views", "\"$GUEST\"");
}

#[test]
fn processes_made_without_fork_and_children_on_borrowed_memory_do_no_harm() {
    check_alone("descendants", "\"$GUEST\"");
}

#[test]
fn times_modes_owners_and_attributes_stay_as_the_program_set_them() {
    check_at_home("attributes", "\"$GUEST\"");
}

#[test]
fn every_signal_that_ends_a_program_leaves_its_files_whole() {
    let program = guest("deadly");
    for way in ["signal 5", "signal 16", "signal 29", "signal 30", "signal 31", "trap"] {
        same_everywhere(&format!("ulimit -c 0; exec \"$GUEST\" {way}"), Some(&program), WAYS);
    }
    for way in ["real-time 0", "real-time 7", "real-time 30"] {
        same_everywhere(&format!("exec \"$GUEST\" {way}"), Some(&program), WAYS);
    }
}

#[test]
fn every_way_to_set_a_handler_works_as_before() {
    let program = guest("deadly");
    for way in ["once", "sysv", "sigset", "'by number'", "interrupt"] {
        same_everywhere(&format!("exec \"$GUEST\" {way}"), Some(&program), WAYS);
    }
}

#[test]
fn a_buffer_that_was_good_once_and_is_gone_comes_to_efault() {
    let program = guest("deadly");
    for way in ["buffers", "'buffers, handled'"] {
        same_everywhere(&format!("exec \"$GUEST\" {way}"), Some(&program), WAYS);
    }
}

#[test]
fn threads_can_be_cancelled_at_once_or_at_a_call() {
    let program = guest("deadly");
    for way in ["asynchronous", "'asynchronous, ended'", "deferred"] {
        let script = format!("\"$GUEST\" {way}; code=$?; : > deadly.file; exit $code");
        same_everywhere(&script, Some(&program), WAYS);
    }
}

#[test]
fn a_program_with_a_way_around_the_hooks_has_its_files_as_they_are() {
    same_everywhere("\"$GUEST\" ring", Some(&guest("deadly")), WAYS_AND_ALONE);
}

#[test]
fn where_libc_cannot_be_overwritten_strategies_step_aside() {
    let wrapper = r#"cat > wrapper.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
ssize_t write(int fd, const void *from, size_t length) {
    return ((ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write"))(fd, from, length);
}
END
        cc -shared -fPIC -o wrapper.so wrapper.c -ldl
        LD_PRELOAD="$LD_PRELOAD:$PWD/wrapper.so" "$GUEST""#;
    check_at_home("views", wrapper);
    // Memory that was writable once must not be executed: PR_SET_MDWE, where there is such a thing.
    let refused = r#"cat > refused.c <<'END'
#include <sys/prctl.h>
#include <unistd.h>
int main(int count, char **words) { prctl(65, 1, 0, 0, 0); execv(words[1], words + 1); return 99; }
END
        cc -o refused refused.c; rm -f refused.c; ./refused "$GUEST""#;
    check_at_home("views", refused);
}

/// A library that has functions of libc's names and does their work by number, as tcmalloc's `mmap` does; `swipl`
/// is linked with that.
const BY_NUMBER: &str = r#"cat > own.c <<'END'
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>
void *mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset) {
    return (void *)syscall(SYS_mmap, at, length, protection, flags, fd, offset);
}
int munmap(void *at, size_t length) { return syscall(SYS_munmap, at, length); }
ssize_t readv(int fd, const void *vector, int count) { return syscall(SYS_readv, fd, vector, count); }
int renameat2(int at, const char *from, int there, const char *to, unsigned flags) {
    return syscall(SYS_renameat2, at, from, there, to, flags);
}
int rename(const char *from, const char *to) { return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }
END
        cc -shared -fPIC -w -o own.so own.c && rm own.c
        export LD_PRELOAD="$LD_PRELOAD:$PWD/own.so"
"#;

#[test]
fn a_library_that_does_its_functions_work_by_number_is_not_called_by_it_again() {
    for guest in ["views", "one_file_many_ways"] {
        check_at_home(guest, &format!("{BY_NUMBER}\"$GUEST\""));
    }
}

/// A library that stands before iolab's, as fakeroot's does, and says when it is called; a program that leaves its
/// calls to libc, which calls nobody.
const FIRST: &str = r#"cat > first.c <<'END'
#define _GNU_SOURCE
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
static void say(void) { syscall(SYS_write, 2, "libc calls it\n", 14); }
ssize_t write(int fd, const void *from, size_t length) {
    say();
    return syscall(SYS_write, fd, from, length);
}
int fstat64(int fd, struct stat64 *status) {
    say();
    return syscall(SYS_fstat, fd, status);
}
END
cat > guest.c <<'END'
#include <stdio.h>
int main(void) {
    char line[20];
    FILE *file = fopen("data", "w+");
    for (int i = 0; i < 2000; i++) fprintf(file, "%d\n", i);
    rewind(file);
    fgets(line, sizeof line, file);
    return fclose(file);
}
END
        cc -shared -fPIC -w -o first.so first.c && cc -w -o guest guest.c && rm first.c guest.c
        LD_PRELOAD="$PWD/first.so:$LD_PRELOAD" ./guest"#;

#[test]
fn libcs_own_calls_reach_no_library_that_stands_before() {
    check_at_home("views", FIRST);
}

/// A library whose initialiser starts a thread, and both write, as OpenBLAS and others do; a program that needs it.
const EARLY: &str = r#"cat > early.c <<'END'
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static FILE *log;
static pthread_t thread;
void line(int number) {
    pthread_mutex_lock(&mutex);
    fprintf(log, "%d\n", number);
    pthread_mutex_unlock(&mutex);
}
static void *writer(void *unused) {
    for (int i = 0; i < 5000; i++) line(1);
    return unused;
}
__attribute__((constructor)) static void begin(void) {
    log = fopen("early.log", "w");
    line(0);
    pthread_create(&thread, NULL, writer, NULL);
}
__attribute__((destructor)) static void end(void) {
    pthread_join(thread, NULL);
    fclose(log);
}
END
cat > main.c <<'END'
#include <stdio.h>
void line(int number);
int main(void) {
    FILE *file = fopen("main.out", "w+");
    for (int i = 0; i < 5000; i++) {
        line(2);
        fprintf(file, "%d\n", i);
        if (i % 100 == 0) fseek(file, 0, SEEK_END);
    }
    return fclose(file);
}
END
cc -shared -fPIC -pthread -o libearly.so early.c && cc -o main main.c -L. -learly -Wl,-rpath,. &&
rm -f *.c && ./main && sort early.log | uniq -c && rm -f early.log main libearly.so"#;

#[test]
fn a_library_may_start_threads_before_main() {
    need("cc", "gcc");
    same_everywhere(EARLY, None, WAYS);
    let folder = tempfile::tempdir().unwrap();
    let mut run = iolab();
    run.args(["run", "--apply", "write-back", "--", "bash", "-c", EARLY]);
    let output = run.current_dir(folder.path()).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !told.contains("switched off"), "{told}");
}

#[test]
fn random_calls_come_to_the_same_for_many_seeds() {
    let program = guest("random_calls");
    for seed in 0..25 {
        same_everywhere(&format!("\"$GUEST\" {seed} 400"), Some(&program), WAYS);
    }
}

#[test]
fn strategies_for_readers_and_align_change_nothing() {
    let random = guest("random_calls");
    for seed in 200..210 {
        same_everywhere(&format!("\"$GUEST\" {seed} 400"), Some(&random), DATA_WAYS);
    }
    for name in ["one_file_many_ways", "bad_calls", "threads"] {
        same_everywhere("\"$GUEST\"", Some(&guest(name)), DATA_WAYS);
    }
}

#[test]
fn processes_made_in_any_way_share_files_under_strategies_for_readers_and_align() {
    same_everywhere("\"$GUEST\"", Some(&guest("processes")), DATA_WAYS);
}

#[test]
fn the_null_strategy_changes_nothing() {
    let program = guest("random_calls");
    for seed in 100..110 {
        let ways = [Way::Run(&["null"]), Way::Run(&["seek-elide"])];
        same_everywhere(&format!("\"$GUEST\" {seed} 400"), Some(&program), &ways);
    }
}
