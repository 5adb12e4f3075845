//! Tools of everyday use.

use super::bench::{MOUNTED, WAYS, WAYS_AND_CRUEL, can_mount, need, same_everywhere};

/// Text that takes a few hundred kilobytes and compresses badly enough.
const MATERIAL: &str =
    "seq 1 30000 > numbers; for i in {1..40}; do echo \"$i of 40\" > small.$i; done\n";

fn check(script: &str, needs: &[(&str, &str)]) {
    needs.iter().for_each(|(tool, package)| need(tool, package));
    same_everywhere(&format!("{MATERIAL}{script}"), None, WAYS);
}

/// As `check`, and through a mount that holds.
fn check_mounted(script: &str, needs: &[(&str, &str)]) {
    check(script, needs);
    if can_mount() {
        same_everywhere(&format!("{MATERIAL}{script}"), None, &MOUNTED[2..]);
    }
}

#[test]
fn dd() {
    let script = "dd if=numbers of=a bs=77 status=none; dd if=numbers of=b bs=64k status=none
        dd if=numbers of=a bs=10 seek=100 count=20 conv=notrunc status=none
        dd if=a of=c bs=512 conv=fsync oflag=append status=none; dd if=b of=d bs=4k oflag=dsync status=none
        dd if=/dev/zero of=sparse bs=1k seek=100 count=1 status=none";
    check(script, &[]);
}

#[test]
fn copying_and_joining() {
    let script = "cp numbers a; cat numbers small.* > b; cat b >> a; cp -r . ../copy 2>/dev/null && mv ../copy copy
        sort -r numbers -o sorted; sed -i s/7/seven/ b; head -c 1000 b > c; tee d e < numbers | wc -c; cmp numbers d
        split -b 10000 numbers part.; cat part.* | cmp - numbers; gzip -nk numbers; gunzip -c numbers.gz | md5sum";
    same_everywhere(&format!("{MATERIAL}{script}"), None, WAYS_AND_CRUEL);
}

#[test]
fn valgrind_finds_no_errors_of_ours_in_programs() {
    let script = "check() { valgrind -q --error-exitcode=9 \"$@\"; echo $?; }
        check dd if=numbers of=a bs=7777 count=9 status=none; check sort --parallel=2 small.1 small.2 numbers -o sorted; check cat a small.*";
    check(script, &[("valgrind", "valgrind")]);
}

#[test]
fn tar() {
    check_mounted(
        "tar --sort=name --mtime=@0 --owner=0 --group=0 -cf ../a.tar . && mv ../a.tar . && mkdir x && tar -xf a.tar -C x
        tar --sort=name --mtime=@0 --owner=0 --group=0 -czf b.tgz numbers && tar -tzf b.tgz && tar --mtime=@0 -rf a.tar small.1 && tar -tf a.tar | wc -l",
        &[("tar", "tar")],
    );
}

#[test]
fn git() {
    let script = "git init -q -b main repo && mv numbers small.* repo && cd repo && git add . && git commit -qm one
        echo more >> numbers && git commit -qam two && git log --format='%h %s' && git status --short
        git checkout -q -b side HEAD~1 && echo side > side && git add side && git commit -qm side && git merge -q -m merge main
        git fsck --strict && git gc -q && git log --stat --format=%H | tail -5 && git archive HEAD | md5sum
        # What differs from run to run by nature: times and inodes of files, and logs of them.
        rm -f .git/index .git/ORIG_HEAD";
    check_mounted(script, &[("git", "git")]);
}

#[test]
fn sqlite3() {
    let script = "for mode in delete wal truncate; do
        sqlite3 $mode.db \"pragma journal_mode=$mode; create table t(a integer primary key, b text);\"
        seq 1 300 | sed \"s/.*/insert into t(b) values('row &');/\" | sqlite3 $mode.db
        sqlite3 $mode.db \"begin; update t set b = b || '!' where a % 3 = 0; delete from t where a % 7 = 0; commit; select count(*), max(b) from t; pragma integrity_check; vacuum;\"
        sqlite3 $mode.db .dump | md5sum; done; rm -f *-shm";
    check(script, &[("sqlite3", "sqlite3")]);
}

#[test]
fn bash_scripts() {
    let script = r#"exec 3>out 4<numbers 5<>both; for i in {1..200}; do echo "line $i" >&3; printf x; done
        echo more >&3; read -u 4 a; read -u 4 b; echo "$a $b"; (echo child >&3; exec 3>&-; echo gone) ; echo parent >&3
        { echo one; ls small.1; echo two; } > group 2>&1; cat < group; echo here <<< string; cat <<< "a here string" >> out
        while read -r n; do [ "$n" -gt 50 ] && break; echo "$((n * n))"; done < numbers > squares
        echo to both >&5; exec 5>&-; wc -c < both; set -o noclobber; echo no > out; echo "status $?"
        trap 'echo trapped >> out' EXIT; $(exit 3); echo $? > status; exit 9"#;
    check(script, &[]);
}

#[test]
fn python3() {
    let script = r#"cat > program.py <<'END'
import array, io, json, mmap, os, pickle, shutil, struct, subprocess, sys, tempfile, zipfile
with open("text", "w") as f:
    for i in range(3000): print(i, "line", file=f)
    f.seek(10); f.write("overwritten"); print(f.tell())
with open("binary", "wb", buffering=0) as f:
    for i in range(3000): f.write(struct.pack("<qd", i, i / 7))
with open("binary", "r+b") as f:
    f.seek(1600); record = f.read(16); f.seek(32); f.write(record); f.truncate(40000); f.seek(0, 2); print(f.tell())
    view = mmap.mmap(f.fileno(), 0); view[0:4] = b"mmap"; print(bytes(view[32:48]) == record); view.close()
    f.write(b"after the map")
array.array("d", range(1000)).tofile(open("array", "wb"))
pickle.dump({"a": list(range(500))}, open("pickle", "wb")); print(len(pickle.load(open("pickle", "rb"))["a"]))
json.dump([{"n": i} for i in range(500)], open("json", "w"))
fd = os.open("raw", os.O_RDWR | os.O_CREAT | os.O_APPEND)
for i in range(500): os.write(fd, b"%d," % i)
os.pwrite(fd, b"!", 3); print(os.lseek(fd, 0, os.SEEK_CUR), os.fstat(fd).st_size, os.pread(fd, 9, 0))
other = os.dup(fd); os.close(fd); os.writev(other, [b"a", b"bc", b"def"]); os.fsync(other); os.close(other)
with open("child", "w") as f:
    f.write("before\n"); f.flush(); subprocess.run(["echo", "from the child"], stdout=f); f.write("after\n")
with open("unflushed", "w") as f:
    f.write("held in python\n"); subprocess.run("echo from a shell", shell=True, stdout=f)
if os.fork() == 0:
    with open("fork", "w") as f: f.write("child")
    os._exit(0)
os.wait()
with zipfile.ZipFile("zip", "w") as z: z.writestr(zipfile.ZipInfo("a"), b"x" * 9000)
print(zipfile.ZipFile("zip").testzip(), os.path.getsize("zip"))
with tempfile.NamedTemporaryFile("w+") as t: t.write("temporary"); t.flush(); print(open(t.name).read())
shutil.copy("text", "copy"); os.rename("copy", "renamed"); os.link("renamed", "linked"); os.unlink("renamed")
try: open("text", "x")
except FileExistsError as e: print(e)
try: os.write(os.open("text", os.O_RDONLY), b"x")
except OSError as e: print(e)
leak = open("never closed", "w"); leak.write("goes out at exit")
sys.exit(4)
END
python3 program.py"#;
    check_mounted(script, &[("python3", "python3")]);
}

#[test]
fn fio_verifies_what_it_wrote() {
    let script = "for engine in psync vsync pvsync posixaio mmap; do
        fio --name=job --filename=f.$engine --size=1m --bs=1k --rw=randwrite --ioengine=$engine --iodepth=4 --randseed=7 \
            --verify=crc32c --do_verify=1 --verify_fatal=1 --output=/dev/null && echo verified $engine
        fio --name=job --filename=f.$engine --size=1m --bs=512 --rw=randrw --ioengine=$engine --randseed=7 --output=/dev/null --fsync=100; done
        rm -f local-* *.state f.*";
    check(script, &[("fio", "fio")]);
}

#[test]
fn gcc_compiles() {
    let script = r#"cat > program.c <<'END'
#include <stdio.h>
#include <math.h>
int main(void) { FILE *f = fopen("table", "w"); for (int i = 0; i < 999; i++) fprintf(f, "%d %g\n", i, sqrt(i)); return fclose(f); }
END
    gcc -O2 -S program.c && gcc -O2 -c -save-temps program.c && ar rcsD lib.a program.o && gcc -o program program.o -lm && ./program && tail -1 table
    gcc -fsyntax-only -x c - <<< 'int f( {' 2>&1 | head -3"#;
    check_mounted(script, &[("gcc", "gcc"), ("ar", "binutils")]);
}

#[test]
fn other_languages() {
    let script = r#"awk '{ print $1 * 2 > ("out." $1 % 3) } END { close("out.1"); while ((getline line < "out.1") > 0) n++; print n }' numbers
        perl -e 'open(F, "+>", "perl"); for (1..5000) { print F "$_\n" } seek(F, 10, 0); read(F, $x, 5); print $x; truncate(F, 999); close F; print -s "perl"'
        find . -name 'small.*' -newer numbers | wc -l | tr -d ' ' > /dev/null; ls -l numbers | cut -d' ' -f5; du -b perl; stat -c %s out.1"#;
    check(script, &[("perl", "perl"), ("awk", "mawk")]);
}

#[test]
fn archives_and_copies_keep_times_modes_and_attributes() {
    let script = r#"touch -d 2001-02-03T04:05:06.789 numbers small.*; chmod 4711 small.3; chmod 0444 small.4
        tar -cf a.tar numbers small.* && mkdir x && tar -xpf a.tar -C x && tar -tvf a.tar
        xz -k numbers && xz -dkc numbers.xz | cmp - numbers; gzip -kn numbers
        cp -p numbers copy; mkdir sub; cp -a small.* sub; install -m 4755 numbers installed; touch -r small.1 installed
        mkdir -p p/DEBIAN p/bin; printf 'Package: x\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b>\nDescription: x\n' > p/DEBIAN/control
        cp -p small.3 p/bin; chmod 755 p p/DEBIAN; SOURCE_DATE_EPOCH=1000000000 dpkg-deb -b p x.deb && dpkg-deb -x x.deb y && dpkg-deb -c x.deb"#;
    check(script, &[("tar", "tar"), ("xz", "xz-utils"), ("dpkg-deb", "dpkg")]);
}

#[test]
fn python3_with_children_between_writes() {
    let script = r#"python3 - <<'END'
import os, subprocess
with open("f", "w") as f:
    for i in range(5):
        f.write("line %d\n" % i); f.flush(); subprocess.run(["true"]); subprocess.run(["echo", "child"], stdout=f)
        f.write("held "); subprocess.run("wc -c < f", shell=True); f.seek(0, 2)
with open("g", "wb", buffering=0) as g:
    for i in range(50):
        g.write(b"abc"); g.seek(-1, 1)
        if i % 10 == 0: subprocess.Popen(["true"], pass_fds=[g.fileno()]).wait()
os.utime("g", (1, 1)); print(open("f").read())
END"#;
    check(script, &[("python3", "python3")]);
}
