//! Every function of the table is seen, on the right file, with the right amounts.

use crate::{guest, library, name_of, need, record, trace, workshop};
use iolab_trace::function::TABLE;
use iolab_trace::{Event, Function, Layer, Trace};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// Functions that are about no file, or about one that another row names.
const WITHOUT_OWN_FILE: [&str; 14] = [
    "close_range",
    "sync",
    "fchdir",
    "fork",
    "vfork",
    "exec",
    "posix_spawn",
    "exit",
    "system",
    "io_uring_setup",
    "inherited",
    "popen",
    "wordexp",
    "clone",
];

fn file_of<'a>(trace: &'a Trace, event: &Event) -> &'a str {
    event.file.index().map_or("", |at| name_of(&trace.header.files[at].path))
}

#[test]
fn every_symbol_of_the_table_is_exported_by_the_library() {
    need("nm", "binutils");
    let listed = Command::new("nm").args(["-D", "--defined-only"]).arg(library()).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let exported: BTreeSet<_> =
        listed.lines().filter_map(|line| line.split_whitespace().last()).collect();
    let all = TABLE.iter().flat_map(|row| row.symbols.iter().chain(row.by_hand));
    let missing: Vec<_> = all.filter(|symbol| !exported.contains(*symbol)).collect();
    assert!(missing.is_empty(), "not exported: {missing:?}");
}

#[test]
fn every_function_is_seen_on_the_file_of_its_name() {
    let (directory, work) = workshop();
    let probe = guest("probe", directory.path());
    let output = record(directory.path(), &[], &[probe.as_os_str(), work.as_os_str()]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let trace = trace(directory.path());
    let seen: BTreeSet<_> =
        trace.events.iter().map(|event| (event.function.name(), file_of(&trace, event))).collect();
    for row in TABLE.iter().filter(|row| row.symbols.len() + row.by_hand.len() > 0) {
        let found = match row.function {
            // Reported instead: its transfers never pass a hook.
            Function::IO_URING_SETUP => said.contains("io_uring"),
            // They only say that a number is no file's any more; see `by_number` of the probe.
            Function::FRESH_DESCRIPTOR => true,
            _ if WITHOUT_OWN_FILE.contains(&row.name) => {
                seen.iter().any(|(name, _)| *name == row.name)
            }
            _ => seen.contains(&(row.name, row.name)),
        };
        assert!(found, "{} is not seen on a file of its name: {seen:?}", row.name);
    }
    assert!(said.contains("stores into mapped files"), "{said}");
    assert!(said.contains("/bin/sh did not load the library"), "{said}");
}

#[test]
fn a_change_of_directory_is_told_by_where_it_leads() {
    need("python3", "python3");
    let (directory, work) = workshop();
    let program = "import os
os.mkdir('inner'); os.chdir('inner'); os.chdir('..'); os.symlink('inner', 'link'); os.chdir('link')
try: os.chdir('none')
except FileNotFoundError: os.chdir('/')";
    let words = ["sh", "-c", "cd \"$1\" && exec python3 -c \"$2\"", "sh"].map(OsStr::new);
    let words = [&words[..], &[work.as_os_str(), OsStr::new(program)]].concat();
    assert!(record(directory.path(), &[], &words).status.success());
    let trace = trace(directory.path());
    let changes = trace.events.iter().filter(|event| event.function == Function::CHDIR);
    let led_to: Vec<_> = changes
        .filter_map(|event| event.file.index())
        .map(|at| Path::new(&trace.header.files[at].path))
        .collect();
    let work = work.canonicalize().unwrap();
    let [inner, none] = ["inner", "inner/none"].map(|name| work.join(name));
    assert_eq!(led_to, [&*work, &*inner, &*work, &*inner, &*none, Path::new("/")]);
}

#[test]
fn amounts_offsets_and_errors_are_those_of_the_call() {
    let (directory, work) = workshop();
    let probe = guest("probe", directory.path());
    assert!(record(directory.path(), &[], &[probe.as_os_str(), work.as_os_str()]).status.success());
    let trace = trace(directory.path());
    let on = |file: &str, function: Function| -> Vec<(i64, i64, i64)> {
        let fits = |event: &&Event| event.function == function && file_of(&trace, event) == file;
        let amounts = |event: &Event| (event.offset, event.length, event.result);
        trace.events.iter().filter(fits).map(amounts).collect()
    };
    assert_eq!(on("write", Function::WRITE), [(0, 60, 60), (60, 5, 5)]);
    assert_eq!(on("read", Function::READ), [(0, 60, 60), (60, 60, 40)]);
    assert_eq!(on("pwrite", Function::PWRITE)[1], (500, 10, 10));
    assert_eq!(on("pwritev", Function::PWRITEV), [(7, 30, 30)]);
    assert_eq!(on("preadv2", Function::PREADV2), [(8, 30, 30)]);
    assert_eq!(on("lseek", Function::LSEEK)[0].2, 90);
    assert_eq!(on("dup", Function::WRITE), [(0, 1, 1)]);
    assert_eq!(on("sendfile", Function::SENDFILE), [(10, 50, 50)]);
    assert_eq!(on("missing", Function::ACCESS)[0].2, -i64::from(libc_enoent()));
    assert_eq!(on("fork", Function::WRITE), [(0, 7, 7)]);
    assert_eq!(on("thread", Function::WRITE), [(0, 8, 8)]);
    assert_eq!(on("fwrite", Function::FWRITE), [(0, 30, 30)]);
    assert_eq!(on("closed by number", Function::WRITE), [(0, 9, 9)]);
    assert_eq!(on("closed by number", Function::CLOSE).len(), 1);
    assert_eq!(on("closed inline", Function::WRITE), []);
    // What libc does inside `fclose`.
    assert_eq!(on("fclose", Function::CLOSE).len(), 1);
}

const fn libc_enoent() -> i32 {
    2
}

#[test]
fn the_writes_inside_stdio_are_children_of_the_stream_calls() {
    let (directory, _) = workshop();
    need("sort", "coreutils");
    let input: String = (0..3000).map(|i| format!("{}\n", i * 7919 % 3001)).collect();
    std::fs::write(directory.path().join("input"), input).unwrap();
    assert!(record(directory.path(), &[], &["sort", "-o", "sorted", "input"]).status.success());
    let trace = trace(directory.path());
    let written: i64 = trace
        .events
        .iter()
        .filter(|e| e.function == Function::WRITE && file_of(&trace, e) == "sorted")
        .inspect(|event| {
            let parent = &trace.events[usize::try_from(event.parent).expect("a parent")];
            assert_eq!(parent.function.layer(), Layer::Stdio);
            assert!(parent.start <= event.start && event.end <= parent.end);
        })
        .map(|event| event.result)
        .sum();
    let size = std::fs::metadata(directory.path().join("sorted")).unwrap().len();
    assert_eq!(written as u64, size);
}

#[test]
fn ranks_come_from_the_environment_of_the_launcher() {
    let (directory, _) = workshop();
    let script = "PMI_RANK=3 dd if=/dev/zero of=a bs=1k count=2 2>/dev/null";
    assert!(record(directory.path(), &[], &["sh", "-c", script]).status.success());
    let trace = trace(directory.path());
    let ranked: Vec<_> = trace.events.iter().filter(|event| event.rank == 3).collect();
    assert_eq!(ranked.iter().filter(|event| event.function == Function::WRITE).count(), 2);
    assert!(trace.header.processes.iter().any(|process| process.name == "rank 3"));
}

#[test]
fn only_the_layers_asked_for_are_recorded() {
    let (directory, _) = workshop();
    let words = ["sh", "-c", "echo text > file; sort -o sorted file"];
    for (layer, wanted) in [("posix", Layer::Posix), ("stdio", Layer::Stdio)] {
        assert!(record(directory.path(), &["--layer", layer], &words).status.success());
        let trace = trace(directory.path());
        assert!(!trace.events.is_empty(), "{layer}");
        let opens = [Function::INHERITED];
        let others: Vec<_> = trace
            .events
            .iter()
            .filter(|e| e.function.layer() != wanted && !opens.contains(&e.function))
            .collect();
        assert!(others.is_empty(), "{layer}: {others:?}");
    }
}

/// A library whose `mmap` and `readv` are the system calls by number, as those of allocators are.
const BY_NUMBER: &str = r#"cat > own.c <<'END'
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>
void *mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset) {
    return (void *)syscall(SYS_mmap, at, length, protection, flags, fd, offset);
}
ssize_t readv(int fd, const void *vector, int count) { return syscall(SYS_readv, fd, vector, count); }
END
cat > guest.c <<'END'
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
int main(void) {
    char bytes[5];
    struct iovec vector = {bytes, sizeof bytes};
    int fd = open("data", O_RDONLY);
    char *map = mmap(0, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    return readv(fd, &vector, 1) != 5 || map[0] != bytes[0];
}
END
cc -shared -fPIC -w -o own.so own.c && cc -w -o guest guest.c && echo some data > data
LD_PRELOAD="$LD_PRELOAD:$PWD/own.so" ./guest"#;

#[test]
fn a_call_that_another_library_does_by_number_is_one_call() {
    need("cc", "gcc");
    let home = tempfile::tempdir().unwrap();
    let output = record(home.path(), &[], &["bash", "-c", BY_NUMBER]);
    assert!(output.status.success(), "{output:?}");
    let trace = trace(home.path());
    let data = |event: &&iolab_trace::Event| {
        let path = event.file.index().map(|at| trace.header.files[at].path.as_str());
        path.is_some_and(|path| path.ends_with("/data"))
    };
    for name in ["mmap", "readv"] {
        let calls = trace.events.iter().filter(data).filter(|it| it.function.name() == name);
        assert_eq!(calls.count(), 1, "{name}");
    }
}
