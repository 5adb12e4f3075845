//! The container in another directory, files made after the run, and calls in a trace beside.

use super::*;

#[test]
fn a_container_lies_elsewhere_and_a_link_leads_there() {
    let Some(home) = home() else { return };
    let away = tempfile::tempdir().unwrap();
    let more = format!(",unpack=never,to={}", away.path().display());
    let output = run(home.path(), &more, &format!("{HUNDRED}; ls -a"));
    assert_eq!(words(&output.stdout), "100\n.\n..\nr\n", "{}", words(&output.stderr));
    let (link, there) = (pack(home.path()), pack(away.path()));
    assert_eq!(fs::read_link(&link).unwrap(), there.canonicalize().unwrap());
    let list = iolab().args(["pack", "list"]).arg(&link).output().unwrap();
    assert_eq!(words(&list.stdout).lines().count(), 100);
    // Read through and changed by the link alone.
    let later = run(home.path(), "", "cat r/f7; rm r/f8; echo x >> r/f9; ls -a; ls r | wc -l");
    assert_eq!(words(&later.stdout), "file 7\n.\n..\nr\n99\n", "{}", words(&later.stderr));
    assert!(link.is_symlink() && there.exists());
    let output = iolab().arg("unpack").arg(&link).output().unwrap();
    assert!(output.status.success(), "{}", words(&output.stderr));
    assert_eq!(files(&home.path().join("r")).len(), 99);
    assert_eq!(fs::read(home.path().join("r/f9")).unwrap(), b"file 9\nx\n");
    assert!(packs(home.path()).is_empty() && packs(away.path()).is_empty());
    // By itself at the end of a run.
    let more = format!(",to={}", away.path().display());
    let output = run(home.path(), &more, "mkdir s; echo 1 > s/a");
    assert!(output.status.success(), "{}", words(&output.stderr));
    assert!(home.path().join("s/a").exists() && packs(away.path()).is_empty());
    assert!(packs(home.path()).is_empty());
    for (to, why) in [("/no/such/place", "No such file"), ("/etc/hostname", "no directory")] {
        let refused = run(home.path(), &format!(",to={to}"), "true");
        let told = words(&refused.stderr);
        assert!(
            !refused.status.success() && told.contains(why) && told.contains("hint: "),
            "{told}"
        );
    }
    let inside = run(home.path(), &format!(",to={}", home.path().display()), "true");
    assert!(words(&inside.stderr).contains("are kept themselves"), "{}", words(&inside.stderr));
}

/// A link that somebody has put there leads to no file of anybody else's, and is not removed.
#[test]
fn a_link_that_is_none_of_ours_is_not_followed() {
    let Some(home) = home() else { return };
    let away = tempfile::tempdir().unwrap();
    assert!(run(away.path(), ",unpack=never", "mkdir r; echo a > r/a").status.success());
    let there = pack(away.path());
    let link = home.path().join("iolab-1-x.pack");
    symlink(&there, &link).unwrap();
    let output = run(home.path(), "", "ls");
    assert_eq!(
        words(&output.stdout),
        "iolab-1-x.pack\n",
        "another name: {}",
        words(&output.stderr)
    );
    let output = iolab().arg("unpack").arg(&link).output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", words(&output.stderr));
    assert!(link.is_symlink() && there.exists());
}

#[test]
fn files_are_made_after_a_run_that_does_not_wait_for_them() {
    let Some(home) = home() else { return };
    let output = run(home.path(), ",unpack=background", HUNDRED);
    let told = words(&output.stderr);
    assert!(output.status.success() && told.contains("100 files in "), "{told}");
    let begin = Instant::now();
    while !packs(home.path()).is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(60), "they are never made");
        std::thread::sleep(Duration::from_millis(5));
    }
    let files = files(home.path());
    assert_eq!(files.len(), 100, "{:?}", files.keys());
    assert_eq!(files[Path::new("r/f42")].0, b"file 42\n");
}

#[test]
fn calls_on_kept_files_are_recorded_by_their_names() {
    let Some(home) = home() else { return };
    let trace = tempfile::tempdir().unwrap();
    let trace = trace.path().join("run.iot");
    for (script, names) in [(HUNDRED, "r/f42"), ("cat r/f7 > /dev/null; echo more >> r/f8", "r/f8")]
    {
        let mut command = command(home.path(), ",unpack=never", script);
        let at = command.get_args().position(|it| it == "--").unwrap();
        let all: Vec<_> = command.get_args().map(std::ffi::OsStr::to_owned).collect();
        command = iolab();
        command
            .current_dir(home.path())
            .args(&all[..at])
            .arg("--record")
            .arg(&trace)
            .args(&all[at..]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", words(&output.stderr));
        let rows = iolab().args(["export", "--to", "csv", "-o", "-"]).arg(&trace).output().unwrap();
        let rows = words(&rows.stdout);
        for function in ["open", "pwrite", "close"] {
            let is_there = rows.lines().any(|row| row.contains(names) && row.contains(function));
            assert!(is_there, "{function} of {names}:\n{rows}");
        }
        fs::remove_file(&trace).unwrap();
    }
}
