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

#[test]
fn a_close_that_finds_no_room_says_so_and_what_was_closed_before_stays() {
    let Some(home) = home() else { return };
    let script = format!(
        r#"{RUN}; run ,unpack=never {FORTY:?}; echo "code $?"
        "$IOLAB" unpack *.pack -C $KEEP; echo "unpacked $?"
        for f in $KEEP/r/f*; do i=${{f##*f}}
            [ "$(tr -d $((i % 10)) < $f | wc -c) $(stat -c %s $f)" = '0 20000' ] && echo whole $i; done"#
    );
    let Some(output) = small(home.path(), "size=600k", &script.replace("\\\\0", "\\0")) else {
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
        r#"{RUN}; run "" {FORTY:?}; echo "code $?"; ls *.pack | wc -l; ls r | wc -l
        "$IOLAB" unpack *.pack; echo "again $?"; mount -o remount,size=8m .; "$IOLAB" unpack *.pack; echo "room $?"
        ls *.pack 2>/dev/null | wc -l; ls r | wc -l; cat r/f* | wc -c; cat r/f7 | tr -d 7 | wc -c"#
    );
    let Some(output) = small(home.path(), "size=1100k", &script.replace("\\\\0", "\\0")) else {
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
    let later = "head -c 15000 /dev/zero > r/f1; echo code $?; cat r/f2 | wc -c; rm r/f3; echo code $?; ls r | wc -l";
    let script = format!(
        r#"{RUN}; run ,unpack=never {FORTY:?} > /dev/null; head -c 2000000 /dev/zero > fill 2>/dev/null
        run "" {later:?}; rm fill; run "" 'cat r/f1 | wc -c; cat r/f* | wc -c'; "$IOLAB" pack check *.pack >&2; echo $?"#
    );
    let Some(output) = small(home.path(), "size=1100k", &script.replace("\\\\0", "\\0")) else {
        return;
    };
    let (said, told) = (words(&output.stdout), words(&output.stderr));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[..2], ["code 1", "20000"], "{said}{told}");
    assert!(told.contains("No space left on device"), "{told}");
    // The small record of a removal may find room or not; either way it is as it was said.
    let (removed, left) = (lines[2] == "code 0", lines[3]);
    assert_eq!(left, if removed { "39" } else { "40" }, "{said}{told}");
    assert_eq!(lines[4], "20000", "what could not be written has changed nothing: {said}{told}");
    assert_eq!(lines[5], if removed { "780000" } else { "800000" }, "{said}{told}");
    assert_eq!(lines[6], "0", "{said}{told}");
}

/// Quotas bind whoever has not the right to pass them.
#[test]
fn a_quota_is_told_as_a_full_file_system_is() {
    let Some(home) = home() else { return };
    let script = format!(
        r#"chmod 777 .; {RUN}
        setpriv --bounding-set=-sys_resource --inh-caps=-sys_resource "$IOLAB" run --allow late-visibility \
            --apply "defer-close:paths=$PWD/**,unpack=never" -- bash -c {FORTY:?}
        echo "code $?"; "$IOLAB" unpack *.pack -C $KEEP; echo "unpacked $?"; cat $KEEP/r/f* | wc -c"#
    );
    let options = "size=8m,usrquota_block_hardlimit=400k";
    let Some(output) = small(home.path(), options, &script.replace("\\\\0", "\\0")) else { return };
    let (said, told) = (words(&output.stdout), words(&output.stderr));
    let kept = said.matches("kept ").count();
    assert!((5..30).contains(&kept), "{said}{told}");
    assert!(told.contains("Disk quota exceeded") && said.contains("unpacked 0"), "{said}{told}");
    let bytes: usize = said.lines().last().unwrap().parse().unwrap();
    assert!(bytes >= kept * 20000, "{said}{told}");
}
