//! Containers that earlier runs have left: seen as the files they are, changed, locked, damaged, killed.

use super::*;

/// Files of all kinds in a container that stays.
const MADE: &str = r"
    mkdir r r/d; umask 022; for i in $(seq 60); do echo file $i > r/f$i; done
    head -c 70000 /dev/urandom > r/big; truncate -s 9000 r/hole; echo end >> r/hole; : > r/empty
    printf '#!/bin/sh\necho ran $0\n' > r/script; chmod 755 r/script; chmod 640 r/f3
    touch -d '2001-02-03 04:05:06' r/f4; echo x > 'r/d/a b'; ln -s f5 r/link";

/// What is read of them, by programs nobody here wrote.
const READ: &str = r#"
    ls -a; ls -la --time-style=+%s%N r | awk '{print $1, $2, $3, $5, $6, $7}' | grep -v ' \.*$'
    find . -type f -printf '%y %s %m %p\n' | sort; cat r/f7 r/link 'r/d/a b'; r/script
    sha256sum r/* 2>/dev/null | sort; tar cf - --sort=name r | sha256sum; grep -rl 'file 1' r | sort
    python3 -c "
import mmap
with open('r/big', 'rb') as f:
    m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
    print(len(m), sum(m[::4096]))"
    [ -e r/f61 ]; echo $?; test -x r/f1; echo $?; cd r/d; ls; pwd | tail -c 5; du --apparent-size -b ."#;

fn succeeded(output: &Output) -> String {
    assert!(output.status.success(), "{}{}", words(&output.stdout), words(&output.stderr));
    words(&output.stdout)
}

/// The same script without any of this.
fn bare(home: &Path, script: &str) -> Output {
    let mut bare = Command::new("bash");
    bare.env("LC_ALL", "C").current_dir(home).args(["-c", script]).output().unwrap()
}

/// A directory whose files lie in a container.
fn left(script: &str) -> Option<tempfile::TempDir> {
    let home = home()?;
    succeeded(&run(home.path(), ",unpack=never,exclusive=yes", script));
    Some(home)
}

fn unpack_all(home: &Path) {
    for pack in packs(home) {
        succeeded(&iolab().arg("unpack").arg(&pack).output().unwrap());
    }
}

#[test]
fn a_later_run_reads_the_files_of_a_container_as_the_files_they_are() {
    let Some(home) = left(MADE) else { return };
    let bytes = fs::read(pack(home.path())).unwrap();
    let output = run(home.path(), "", READ);
    let read = succeeded(&output);
    let told = words(&output.stderr);
    assert!(
        told.contains("65 files in ") && told.contains("are seen as the files they are"),
        "{told}"
    );
    assert_eq!(fs::read(pack(home.path())).unwrap(), bytes, "who reads changes nothing");
    unpack_all(home.path());
    assert_eq!(read, succeeded(&bare(home.path(), READ)));
}

/// Changes of many kinds: bytes, attributes, names, and what makes real files.
const CHANGED: &str = r"
    cd r; umask 022; echo more >> f1; truncate -s 3 f2; chmod 600 f3; mv f4 g4; mv f5 f6; rm f7
    rm f8; echo new > f8; ln f9 l9; echo t > t10; mv t10 f10; touch -d '2002-03-04 05:06:07' f11
    exec 7< f12; rm f12; cat <&7; exec 7<&-; echo over > f13; cp f14 c14; mv f15 d/f15; mv f16 ../f16
    dd if=/dev/zero of=big bs=1 seek=10 count=5 conv=notrunc status=none; sed -i s/file/line/ f17
    mv d e; rmdir e 2>/dev/null; echo $?; mkdir d; rm link; (set -C; echo no > f18) 2>/dev/null; echo $?
    mv -n f19 f20; rm -f f21 f22 f23; mv g4 f23; mkdir f24 2>/dev/null; echo $?; ls; cat f* | sha256sum";

#[test]
fn changes_of_a_later_run_are_those_of_any_program() {
    for more in ["", ",exclusive=yes", ",unpack=never", ",unpack=never,exclusive=yes"] {
        let Some(home) = left(MADE) else { return };
        let plain = tempfile::tempdir().unwrap();
        fs::copy(pack(home.path()), plain.path().join("iolab-1-n.pack")).unwrap();
        unpack_all(plain.path());
        fs::remove_file(plain.path().join("r/link")).ok();
        symlink("f5", plain.path().join("r/link")).unwrap();
        let expected = succeeded(&bare(plain.path(), CHANGED));
        let output = run(home.path(), more, CHANGED);
        assert_eq!(succeeded(&output), expected, "{more}: {}", words(&output.stderr));
        // Read through by another run, and unpacked.
        let seen = run(home.path(), "", "find . -type f | sort | xargs -d '\\n' sha256sum");
        let plain_seen = bare(plain.path(), "find . -type f | sort | xargs -d '\\n' sha256sum");
        assert_eq!(words(&seen.stdout), words(&plain_seen.stdout), "{more}");
        unpack_all(home.path());
        let (is, expected) = (files(home.path()), files(plain.path()));
        assert!(is == expected, "{more}: {:?}\n{:?}", is.keys(), expected.keys());
        let time = |place: &Path| fs::metadata(place.join("r/f11")).unwrap().mtime();
        assert_eq!(time(home.path()), time(plain.path()));
    }
}

#[test]
fn of_two_files_of_one_name_the_newer_is_seen_and_the_older_never_comes_back() {
    let Some(home) = left("mkdir r; echo 1 > r/a; echo 1 > r/b") else { return };
    let (first, away) = (pack(home.path()), home.path().join("away"));
    fs::rename(&first, &away).unwrap();
    let more = ",unpack=never,exclusive=yes";
    succeeded(&run(home.path(), more, "echo 2 > r/a; echo 2 > r/c"));
    fs::rename(&away, &first).unwrap();
    fs::write(home.path().join("r/b"), "real\n").unwrap();
    let output = run(home.path(), more, "cat r/a r/b r/c; ls r");
    assert_eq!(succeeded(&output), "2\nreal\n2\na\nb\nc\n");
    assert!(words(&output.stderr).contains("2 are not, others have their names"));
    succeeded(&run(home.path(), more, "rm r/a; mv r/b r/x; echo 3 > r/c"));
    assert_eq!(succeeded(&run(home.path(), more, "cat r/x r/c; ls r")), "real\n3\nc\nx\n");
    assert!(!first.exists(), "a container without files goes");
    unpack_all(home.path());
    assert_eq!(files(&home.path().join("r")).len(), 2);
}

#[test]
fn what_can_be_read_of_a_damaged_container_is_read_and_nothing_of_it_is_changed() {
    let Some(home) = left(HUNDRED) else { return };
    let pack = pack(home.path());
    let mut bytes = fs::read(&pack).unwrap();
    let middle = bytes.len() / 3;
    bytes[middle] ^= 1;
    fs::write(&pack, &bytes).unwrap();
    let script = "ls r | wc -l; cat r/f1; echo x >> r/f1; echo $?; rm r/f2; echo $?; chmod 700 r/f3; echo $?";
    let output = run(home.path(), "", script);
    let (read, told) = (words(&output.stdout), words(&output.stderr));
    let lines: Vec<&str> = read.lines().collect();
    let count: u32 = lines[0].parse().unwrap();
    assert!((10..90).contains(&count), "{read}");
    assert_eq!(lines[1..], ["file 1", "1", "1", "1"], "{read}");
    assert!(told.contains("Read-only file system"), "{told}");
    assert!(told.contains("cut or was changed; what is before that is read"), "{told}");
    assert!(told.contains("can be read, but not changed"), "{told}");
    assert_eq!(fs::read(&pack).unwrap(), bytes);
    fs::write(&pack, &bytes[..40]).unwrap();
    let output = run(home.path(), "", "ls; ls r | wc -l");
    let name = pack.file_name().unwrap().to_str().unwrap();
    assert_eq!(succeeded(&output), format!("{name}\nr\n0\n"), "what cannot be read is a file");
    assert!(words(&output.stderr).contains("are not seen, it is shown as a file: it is no pack"));
}

/// A mount and its first line.
pub(super) fn mounted(arguments: &[&str], home: &Path, point: &Path) -> Child {
    let mut mount = iolab();
    mount.arg("mount").args(arguments).arg(home).arg(point);
    let mut mount = mount.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut ready = String::new();
    BufReader::new(mount.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    assert!(ready.starts_with("ready"), "{ready}");
    mount
}

pub(super) fn ended(mount: Child) -> String {
    Command::new("kill").arg(mount.id().to_string()).status().unwrap();
    let output = mount.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", words(&output.stderr));
    words(&output.stderr)
}

#[test]
fn a_mount_only_to_read_shows_files_of_containers_and_lets_nothing_be_changed() {
    let Some(home) = left(MADE) else { return };
    let points = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let bytes = fs::read(pack(home.path())).unwrap();
    let mounts = points.each_ref().map(|point| mounted(&["--packs"], home.path(), point.path()));
    let read = points.each_ref().map(|point| words(&bare(point.path(), READ).stdout));
    let script =
        "for what in 'rm r/f1' 'touch r/f2' 'mkdir x' 'mv r/f3 r/y' 'chmod 7 r/f4'; do $what; done";
    let refused = words(&bare(points[0].path(), script).stderr);
    assert_eq!(refused.matches("Read-only file system").count(), 5, "{refused}");
    let unpack = iolab().arg("unpack").arg(pack(home.path())).output().unwrap();
    assert!(words(&unpack.stderr).contains("its run goes on"), "{}", words(&unpack.stderr));
    let changed = run(home.path(), "", "echo x >> r/f1");
    let told = words(&changed.stderr);
    assert!(!changed.status.success() && told.contains("another run reads them"), "{told}");
    mounts.into_iter().for_each(|mount| assert!(ended(mount).contains("are seen")));
    assert_eq!(fs::read(pack(home.path())).unwrap(), bytes);
    unpack_all(home.path());
    let real = succeeded(&bare(home.path(), READ));
    read.iter().for_each(|read| assert_eq!(*read, real));
    let empty = mounted(&["--packs"], home.path(), points[0].path());
    assert!(ended(empty).contains("warning: there is no container"));
}

#[test]
fn nobody_makes_a_file_in_the_place_of_a_container_that_is_not_seen() {
    let Some(home) = left(HUNDRED) else { return };
    let (pack, bytes) = (pack(home.path()), fs::read(pack(home.path())).unwrap());
    let name = pack.file_name().unwrap().to_str().unwrap();
    let script = format!(
        "cat {name}; : > {name}; echo $?; mkdir {name}; echo $?; echo x > x; mv x {name}; echo $?
         ln x {name}; echo $?; rm x; rm {name}; echo $?"
    );
    let output = run(home.path(), "", &script);
    assert_eq!(succeeded(&output), "1\n".repeat(5), "{}", words(&output.stderr));
    assert_eq!(fs::read(&pack).unwrap(), bytes);
}

#[test]
fn directories_that_are_gone_are_made_again_but_not_where_one_only_reads() {
    let Some(home) = left("mkdir r r/d; chmod 750 r/d; echo a > r/d/a; echo b > b") else { return };
    fs::remove_dir_all(home.path().join("r")).unwrap();
    let point = tempfile::tempdir().unwrap();
    let mount = mounted(&["--packs"], home.path(), point.path());
    let seen = succeeded(&bare(point.path(), "ls; cat b"));
    let told = ended(mount);
    assert_eq!(seen, "b\nb\n");
    assert!(
        told.contains("1 files in ") && told.contains("1 are not, their directories"),
        "{told}"
    );
    assert!(!home.path().join("r").exists());
    let output = run(home.path(), "", "cat r/d/a; stat -c %a r/d");
    assert_eq!(succeeded(&output), "a\n750\n");
}

#[test]
fn files_of_a_run_that_goes_on_are_not_seen_and_that_is_said() {
    let Some(home) = home() else { return };
    let script = "mkdir r; echo a > r/a; echo ready; read line; cat r/a";
    let mut first = command(home.path(), ",unpack=never", script);
    let mut first = first.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(first.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    let second = run(home.path(), "", "ls r | wc -l");
    assert_eq!(succeeded(&second), "0\n");
    assert!(words(&second.stderr).contains("its run goes on"), "{}", words(&second.stderr));
    drop(first.stdin.take());
    assert!(first.wait().unwrap().success());
}

/// Who may write to a directory plants no file of somebody else's there.
#[test]
fn a_container_is_believed_as_far_as_its_owner_may() {
    let Some(home) = left("mkdir r; echo a > r/a; chmod 6755 r/a") else { return };
    let look = || succeeded(&run(home.path(), "", "stat -c '%a %u %g' r/a"));
    let uid = fs::metadata(home.path()).unwrap().uid();
    assert!(look().starts_with("6755 "));
    if uid == 0 {
        std::os::unix::fs::chown(pack(home.path()), Some(1234), Some(1235)).unwrap();
        assert_eq!(look(), "755 1234 1235\n");
    }
}

/// A program that changes old files without end, and says what it has done.
const ENDLESS: &str = r"echo $$; cd r; for ((i = 1; i <= 60; i++)); do
    echo changed $i >> f$i || exit; echo c $i
    mv f$i g$i || exit; echo m $i
    if ((i % 3 == 0)); then rm g$i || exit; echo r $i; fi
    if ((i % 3 == 1)); then echo new $i > t && mv t g$i || exit; echo n $i; fi
    if ((i % 3 == 2 && i % 5 == 2)); then ln g$i l$i || exit; echo l $i; fi; done";

#[test]
fn nothing_of_an_older_container_is_lost_or_comes_back_after_a_kill() {
    let Some(_) = home() else { return };
    for round in 0..18_u64 {
        let home = left(MADE).unwrap();
        let more = if round % 2 == 0 { ",unpack=never,exclusive=yes" } else { ",unpack=never" };
        let mut child = command(home.path(), more, ENDLESS);
        let mut child = child.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let program: u32 = line.trim().parse().unwrap();
        let mut done = Vec::new();
        while done.len() < (round * 11 % 83) as usize {
            let mut line = String::new();
            assert_ne!(out.read_line(&mut line).unwrap(), 0, "it has ended by itself");
            done.push(line);
        }
        let victim = match round % 3 {
            0 => program,
            1 => child.id(),
            _ => packs(home.path()).iter().find_map(|pack| holder(pack)).unwrap_or(program),
        };
        kill(victim);
        done.extend(out.lines().map_while(Result::ok));
        child.wait().unwrap();
        let begin = Instant::now();
        while packs(home.path()).iter().any(|pack| holder(pack).is_some()) {
            assert!(begin.elapsed() < Duration::from_secs(60), "the server does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
        let seen = succeeded(&run(
            home.path(),
            "",
            "cd r; for f in f? f?? g*; do echo $f $(cat $f); done",
        ));
        let seen: BTreeMap<&str, &str> =
            seen.lines().filter_map(|line| line.split_once(' ')).collect();
        let mut packs = packs(home.path());
        let output = iolab().arg("unpack").args(&packs).output().unwrap();
        assert!(output.status.success(), "{round}: {}", words(&output.stderr));
        packs.clear();
        let mut last = BTreeMap::new();
        for line in &done {
            let (what, number) = line.trim().split_once(' ').unwrap();
            last.insert(number.parse::<u32>().unwrap(), what.to_owned());
        }
        let newest = last.keys().max().copied().unwrap_or(0);
        let read = |name: &str| {
            let bytes = fs::read_to_string(home.path().join("r").join(name)).ok()?;
            Some(bytes.replace('\n', " ").trim().to_owned())
        };
        for i in 1..=60 {
            let (old, new) = (read(&format!("f{i}")), read(&format!("g{i}")));
            for (name, bytes) in [(format!("f{i}"), &old), (format!("g{i}"), &new)] {
                let seen = seen.get(&name[..]).map(|it| (*it).to_owned());
                assert_eq!(seen, *bytes, "{round}: {name}: a later run and unpacking differ");
            }
            // What comes after the last word said may have happened or not.
            if i > newest + 1 {
                assert_eq!((old, new), (Some(format!("file {i}")), None), "{round}: {i}");
            } else if i < newest {
                let expected = match i % 3 {
                    0 => None,
                    1 => Some(format!("new {i}")),
                    _ => Some(format!("file {i} changed {i}")),
                };
                assert_eq!((old, new), (None, expected), "{round}: {i}");
            }
        }
    }
}

/// Programs nobody here wrote, on files of a container.
#[test]
fn git_python_and_make_work_in_a_container() {
    let script = r"mkdir r; cd r; git init -q . && git config user.email a@b && git config user.name a
        for i in $(seq 40); do echo line $i > s$i; done; git add . && git commit -qm one
        mkdir p; echo 'from p.b import x' > p/a.py; : > p/__init__.py; echo 'x = 7' > p/b.py
        printf 'out: s1 s2\n\tcat s1 s2 > out\n' > Makefile; make -s";
    let Some(home) = left(script) else { return };
    let later = r"cd r; git status --porcelain | sort; git fsck --strict 2>&1; git log --oneline | wc -l
        git rm -q s1; git commit -qm two; git checkout -q HEAD~1; cat s1; python3 -c 'import p.a; print(p.a.x)'
        make -q; echo $?; touch s2; make -s; cat out; git gc -q; git fsck 2>&1; mkdir ../copy
        tar cf - . | tar xf - -C ../copy; diff -r . ../copy && echo same";
    let plain = tempfile::tempdir().unwrap();
    succeeded(&bare(plain.path(), script));
    let expected = succeeded(&bare(plain.path(), later));
    let output = run(home.path(), ",unpack=never,exclusive=yes", later);
    assert_eq!(succeeded(&output), expected, "{}", words(&output.stderr));
    let again =
        succeeded(&run(home.path(), "", "cd r; git fsck 2>&1; git status --porcelain; cat out"));
    assert_eq!(
        again,
        succeeded(&bare(plain.path(), "cd r; git fsck 2>&1; git status --porcelain; cat out"))
    );
}
