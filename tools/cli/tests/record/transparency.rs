//! A guest does not notice that it is recorded: output, exit code and files are the same.

use crate::{guest, need, record, trace, workshop};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};

/// Every file below a directory, with its contents and mode; links with their target.
pub(crate) fn files(directory: &Path) -> BTreeMap<String, (Vec<u8>, u32)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(directory).unwrap().to_string_lossy().into_owned();
            let kind = path.symlink_metadata().unwrap();
            let contents = if kind.is_symlink() {
                fs::read_link(&path).unwrap().to_string_lossy().into_owned().into_bytes()
            } else if kind.is_dir() {
                folders.push(path.clone());
                Vec::new()
            } else {
                fs::read(&path).unwrap()
            };
            found.insert(name, (contents, kind.permissions().mode()));
        }
    }
    found
}

/// Runs a script bare and recorded, each in a fresh directory of the same path, and compares all
/// that can be seen from outside. `forget` removes from both what differs from run to run anyway.
fn same(script: &str, forget: &dyn Fn(&Path)) -> iolab_trace::Trace {
    let (directory, work) = workshop();
    let words = ["bash", "-c", script];
    let bare = Command::new(words[0]).args(&words[1..]).current_dir(&work).output().unwrap();
    forget(&work);
    let bare_files = files(&work);
    fs::remove_dir_all(&work).unwrap();
    fs::create_dir(&work).unwrap();
    let options = ["-o", "../run.iot"];
    let recorded = crate::iolab()
        .arg("record")
        .args(options)
        .arg("--")
        .args(words)
        .current_dir(&work)
        .output()
        .unwrap();
    forget(&work);
    compare(&bare, &recorded);
    let recorded_files = files(&work);
    assert_eq!(
        bare_files.keys().collect::<Vec<_>>(),
        recorded_files.keys().collect::<Vec<_>>(),
        "{script}"
    );
    for (name, contents) in &bare_files {
        assert!(recorded_files[name] == *contents, "{name} differs after: {script}");
    }
    let trace = trace(directory.path());
    assert!(trace.header.losses.lost_calls.is_empty(), "{:?}", trace.header.losses);
    trace
}

fn compare(bare: &Output, recorded: &Output) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let own = |bytes: &[u8]| -> String {
        text(bytes)
            .lines()
            .filter(|line| !line.starts_with("iolab: "))
            .map(|l| format!("{l}\n"))
            .collect()
    };
    // A shell shows a signal as 128 + n, and so does iolab.
    let code = bare.status.code().or(bare.status.signal().map(|signal| 128 + signal));
    assert_eq!(code, recorded.status.code(), "{}", text(&recorded.stderr));
    assert_eq!(text(&bare.stdout), text(&recorded.stdout));
    assert_eq!(own(&bare.stderr), own(&recorded.stderr));
}

fn nothing(_: &Path) {}

macro_rules! scripts {
    ($($name:ident needs [$($tool:literal from $package:literal),*] $script:expr;)*) => {$(
        #[test]
        fn $name() {
            $(need($tool, $package);)*
            let trace = same($script, &nothing);
            assert!(!trace.events.is_empty());
        }
    )*};
}

scripts! {
    dd_cp_and_cat_copy_the_same needs ["dd" from "coreutils"]
        "dd if=/dev/zero bs=1000 count=300 status=none | tr '\\0' 'x' > a; cp a b; cat a b > c; \
         dd if=c of=d bs=7k skip=3 seek=2 conv=notrunc status=none; cmp a b; rm a; ls";
    tar_packs_and_unpacks_the_same needs ["tar" from "tar", "gzip" from "gzip"]
        "mkdir t; for i in 1 2 3 4 5; do seq $((i * 1000)) > t/$i; done; ln -s 1 t/link; \
         tar --mtime=@0 --owner=0 --group=0 --sort=name -czf t.tar.gz t; mkdir u; \
         tar -C u -xzf t.tar.gz; diff -r t u && echo same; \
         find . -exec touch -h -d @0 {} +";
    git_keeps_the_same_history needs ["git" from "git"]
        "export GIT_CONFIG_NOSYSTEM=1 HOME=$PWD GIT_AUTHOR_DATE='2000-01-01T00:00:00Z' \
         GIT_COMMITTER_DATE='2000-01-01T00:00:00Z'; \
         git init -q -b main r; cd r; git config user.name n; git config user.email e; \
         git config gc.auto 0; for i in 1 2 3; do seq $((i * 500)) > f$i; git add .; \
         git commit -qm c$i; done; git log --format=%H; git gc -q; git fsck; git status --short; \
         rm -f .git/index";
    sqlite_holds_the_same_rows needs ["sqlite3" from "sqlite3"]
        "sqlite3 a.db 'create table t(x integer primary key, y text); \
         with recursive c(i) as (select 1 union all select i + 1 from c where i < 500) \
         insert into t select i, hex(i) from c; update t set y = y || 1 where x % 7 = 0; \
         delete from t where x % 5 = 0; select count(*), sum(length(y)) from t;'; \
         sqlite3 w.db 'pragma journal_mode=wal; create table t(x); insert into t values(1), (2); \
         select * from t; pragma wal_checkpoint(truncate);'";
    bash_scripts_write_the_same needs ["bash" from "bash"]
        "exec 5> log; for i in {1..200}; do echo line $i >&5; echo more >> other; done; exec 5>&-; \
         { echo a; echo b; } > both; cat <<< here > here; read -r first < log; echo $first; \
         (cd /; pwd); wc -c < log; echo x > sub; false";
    sort_sed_and_awk_are_the_same needs ["awk" from "mawk", "sed" from "sed"]
        "seq 20000 | sort -R --random-source=<(yes) > r; sort -n -S 64k -T . -o s r; head -c 50 s; \
         sed -i 's/7/seven/' s; awk '{ n += length($0) } END { print n > \"sum\" }' s; cat sum";
    python_writes_the_same_in_several_ways needs ["python3" from "python3"]
        "python3 -c '
import os, subprocess, tempfile, mmap, shutil
with open(\"text\", \"w\") as f: f.writelines(f\"{i}\\n\" for i in range(5000))
with open(\"bytes\", \"wb\", buffering=0) as f: [f.write(bytes([i % 256]) * 10) for i in range(500)]
with open(\"text\", \"r+b\") as f:
    f.seek(100); f.write(b\"here\"); f.seek(0, 2); f.write(b\"end\"); f.truncate(2000)
fd = os.open(\"raw\", os.O_RDWR | os.O_CREAT); os.pwrite(fd, b\"abc\", 4096); os.ftruncate(fd, 9000)
m = mmap.mmap(fd, 0); m[10:13] = b\"map\"; m.flush(); print(os.fstat(fd).st_size); os.close(fd)
with tempfile.TemporaryFile(dir=\".\") as f: f.write(b\"x\" * 10000); f.seek(5); print(len(f.read()))
shutil.copyfile(\"raw\", \"copy\"); os.rename(\"bytes\", \"renamed\")
print(subprocess.run([\"cat\", \"text\"], capture_output=True).stdout[:20])
try: open(\"/nonexistent/file\")
except OSError as e: print(e)
'";
    fio_verifies_what_it_wrote needs ["fio" from "fio"]
        "for e in psync vsync sync pvsync2 posixaio mmap; do \
         fio --name=j --filename=f.$e --ioengine=$e --rw=randwrite --bs=4k --size=2m --verify=crc32c \
         --do_verify=1 --randseed=5 --output=/dev/null || echo $e failed; done; \
         rm -f *.state; ls | wc -l; rm -f f.*";
    gcc_compiles_the_same needs ["gcc" from "gcc"]
        "printf '#include <stdio.h>\\nint main(void){printf(\"built\\\\n\");return 5;}' > p.c; \
         gcc -O2 -c -o p.o p.c; gcc -o p p.o; ./p; echo $?; gcc broken.c; echo $?; rm p p.o";
    make_like_pipelines_end_with_the_same_code needs ["bash" from "bash"]
        "set -o pipefail; yes | head -n 100000 | tee copy | wc -l; kill -USR1 $$";
}

#[test]
fn the_probe_of_all_mechanisms_ends_the_same() {
    let (directory, _) = workshop();
    let probe = guest("probe", directory.path());
    let script = format!("mkdir p; {} p; echo $?", probe.display());
    same(&script, &nothing);
}

#[test]
fn awkward_programs_behave_the_same() {
    let (directory, _) = workshop();
    let awkward = guest("awkward", directory.path());
    for part in ["cancel", "signals", "threads", "close-all", "destructors", "deep-fork", "abort"] {
        same(&format!("exec {} {part}", awkward.display()), &nothing);
    }
}

#[test]
fn a_signal_handler_that_writes_loses_no_record() {
    let (directory, _) = workshop();
    let awkward = guest("awkward", directory.path());
    let output = record(directory.path(), &[], &[awkward.to_str().unwrap(), "signals", "tell"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let written: u64 = said.trim().strip_prefix("calls ").unwrap().parse().unwrap();
    let trace = trace(directory.path());
    let found = trace.events.iter().filter(|e| e.function == iolab_trace::Function::PWRITE).count();
    assert_eq!(found as u64, written);
}
