//! No room: while members are added, while they are unpacked, for the one user's quota; nothing is lost, and who must know is
//! told once.

use super::*;

/// A script with a small file system of its own on `$1/small`; nothing where this user mounts none.
fn small(home: &Path, options: &str, script: &str) -> Option<Output> {
    fs::create_dir_all(home.join("small")).unwrap();
    let whole =
        format!("mount -t tmpfs -o {options} small $1/small || exit 99; cd $1/small; {script}");
    let mut command = Command::new("unshare");
    command.args(["-m", "bash", "-c", &whole, "bash"]).arg(home).env("LC_ALL", "C");
    command.env("FORTY", FORTY).env("LATER", LATER);
    let output = command.env("IOLAB", env!("CARGO_BIN_EXE_iolab")).output().ok()?;
    if matches!(output.status.code(), Some(1 | 99)) && words(&output.stdout).is_empty() {
        eprintln!("SKIPPED without a file system of its own: {}", words(&output.stderr));
        return None;
    }
    Some(output)
}

/// `$RUN more script` runs it with the files of the small file system kept; `$KEEP` is a place that has room.
const RUN: &str = r#"KEEP=$(mktemp -d); run() { "$IOLAB" run --allow late-visibility --apply "defer-close:paths=$PWD/**$1" -- bash -c "$2"; }"#;

/// Forty files of 20,000 bytes; says which have been closed without a word of failure.
const FORTY: &str = r"mkdir r; for i in $(seq 40); do
    head -c 20000 /dev/zero | tr '\0' $((i % 10)) 2>/dev/null > r/f$i && echo kept $i; done; true";

/// What a later run changes of them, and how it fares.
const LATER: &str =
    "dd if=/dev/zero of=r/f1 bs=15000 count=1 conv=notrunc status=none; echo code $?
    cat r/f2 | wc -c; rm r/f3; echo code $?; ls r | wc -l";

#[test]
fn a_close_that_finds_no_room_says_so_and_what_was_closed_before_stays() {
    let Some(home) = home() else { return };
    let script = format!(
        r#"{RUN}; run ,unpack=never "$FORTY"; echo "code $?"
        "$IOLAB" unpack *.pack -C $KEEP; echo "unpacked $?"
        for f in $KEEP/r/f*; do i=${{f##*f}}
            [ "$(tr -d $((i % 10)) < $f | wc -c) $(stat -c %s $f)" = '0 20000' ] && echo whole $i; done"#
    );
    let Some(output) = small(home.path(), "size=600k", &script) else {
        return;
    };
    let (said, told) = (words(&output.stdout), words(&output.stderr));
    let all = |word: &str| -> Vec<u32> {
        let lines = said.lines().filter_map(|line| line.strip_prefix(word)?.parse().ok());
        let mut lines: Vec<u32> = lines.collect();
        lines.sort_unstable();
        lines
    };
    let (kept, whole) = (all("kept "), all("whole "));
    assert!((10..35).contains(&kept.len()), "{said}{told}");
    assert!(kept.iter().all(|it| whole.contains(it)), "{said}{told}");
    assert!(told.contains("No space left on device"), "{told}");
    assert!(said.contains("unpacked 0"), "{said}{told}");
}

#[test]
fn unpacking_without_room_loses_nothing_and_is_finished_later() {
    let Some(home) = home() else { return };
    let script = format!(
        r#"{RUN}; run "" "$FORTY"; echo "code $?"; ls *.pack | wc -l; ls r | wc -l
        "$IOLAB" unpack *.pack; echo "again $?"; mount -o remount,size=8m .; "$IOLAB" unpack *.pack; echo "room $?"
        ls *.pack 2>/dev/null | wc -l; ls r | wc -l; cat r/f* | wc -c; cat r/f7 | tr -d 7 | wc -c"#
    );
    let Some(output) = small(home.path(), "size=1100k", &script) else {
        return;
    };
    let (said, told) = (words(&output.stdout), words(&output.stderr));
    let lines: Vec<&str> = said.lines().filter(|line| !line.starts_with("kept ")).collect();
    assert_eq!(said.matches("kept ").count(), 40, "{said}{told}");
    assert_eq!(lines[..2], ["code 4", "1"], "{said}{told}");
    let made: u32 = lines[2].parse().unwrap();
    assert!((1..40).contains(&made), "{said}{told}");
    assert_eq!(lines[3..], ["again 4", "room 0", "0", "40", "800000", "0"], "{said}{told}");
    assert!(told.contains("not unpacked: r/f") && told.contains("No space left"), "{told}");
    assert!(told.contains("nothing is lost"), "{told}");
}

#[test]
fn what_is_changed_of_an_older_container_without_room_says_so_at_the_close() {
    let Some(home) = home() else { return };
    let script = format!(
        r#"{RUN}; run ,unpack=never "$FORTY" > /dev/null; head -c 2000000 /dev/zero > fill 2>/dev/null
        run "" "$LATER"; rm fill; run "" 'tr -d 1 < r/f1 | wc -c; cat r/f* | wc -c'; "$IOLAB" pack check *.pack >&2; echo $?"#
    );
    let Some(output) = small(home.path(), "size=1100k", &script) else {
        return;
    };
    let (said, told) = (words(&output.stdout), words(&output.stderr));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[..2], ["code 1", "20000"], "{said}{told}");
    assert!(told.contains("No space left on device"), "{told}");
    // The small record of a removal may find room or not; either way it is as it was said.
    let (removed, left) = (lines[2] == "code 0", lines[3]);
    assert_eq!(left, if removed { "39" } else { "40" }, "{said}{told}");
    assert_eq!(lines[4], "0", "what could not be written has changed nothing: {said}{told}");
    assert_eq!(lines[5], if removed { "780000" } else { "800000" }, "{said}{told}");
    assert_eq!(lines[6], "0", "{said}{told}");
}

/// Below lies storage that says at random that the quota is exceeded, for the container and for real files.
#[test]
fn a_quota_that_is_exceeded_now_and_then_takes_nothing_that_was_closed() {
    let Some(_) = home() else { return };
    let (mut kept_count, mut refused_count) = (0, 0);
    for seed in 0..6 {
        let (home, point) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let strategy = format!("fail:percent=30,errno=122,seed={seed},paths=**");
        let below = ["--cruel", "--apply", &strategy];
        let mount = super::left::mounted(&below, home.path(), point.path());
        let output = run(point.path(), ",unpack=never", FORTY);
        super::left::ended(mount);
        let (said, told) = (words(&output.stdout), words(&output.stderr));
        refused_count += told.matches("Disk quota exceeded").count();
        for pack in packs(home.path()) {
            let output = iolab().arg("unpack").arg(&pack).output().unwrap();
            assert!(output.status.success(), "{seed}: {}{told}", words(&output.stderr));
        }
        for number in said.lines().filter_map(|line| line.strip_prefix("kept ")) {
            let bytes = fs::read(home.path().join("r").join(format!("f{number}"))).unwrap();
            let digit = number.as_bytes()[number.len() - 1];
            assert!(bytes == vec![digit; 20_000], "{seed}: {number}: {} bytes", bytes.len());
            kept_count += 1;
        }
    }
    // The program says nothing of others: their close has failed.
    assert!((60..220).contains(&kept_count) && refused_count > 0, "{kept_count}, {refused_count}");
}
