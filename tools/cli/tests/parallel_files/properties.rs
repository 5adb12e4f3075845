//! `h5` on unmodified programs of HDF5, serial and parallel: their files are opened with the properties that a user gave,
//! hold the same data, and a failed open leaves the same account of what went wrong.

use super::need;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const WANTED: &str = "h5:alignment=4k,threshold=1k,meta-block=1m,chunk-cache=64m,coll-metadata=yes";
const AS_WANTED: &str = "alignment 4096 from 1024, metadata 1048576, cache 67108864 in 16411, 0.75";

/// The program, compiled by `compiler` for that kind of HDF5.
fn program(folder: &TempDir, compiler: &str, options: &[&str], kind: &str) -> PathBuf {
    let headers = format!("/usr/include/hdf5/{kind}");
    let library = format!("hdf5/{kind}/libhdf5.so");
    built(folder, compiler, "properties.c", (&headers, &library), options)
}

/// A program of this folder, compiled with those headers and that library of the system.
pub(super) fn built(
    folder: &TempDir,
    compiler: &str,
    source: &str,
    (headers, library): (&str, &str),
    options: &[&str],
) -> PathBuf {
    need(compiler);
    let library = Path::new("/usr/lib/x86_64-linux-gnu").join(library);
    for needed in [Path::new(headers), &library] {
        assert!(needed.exists(), "{needed:?} is not there: tools/setup/install test");
    }
    let program = folder.path().join("program");
    let built = Command::new(compiler)
        .args(["-w", "-I", headers, "-o"])
        .arg(&program)
        .args(options)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parallel_files").join(source))
        .arg(library)
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    program
}

pub(super) fn ran(words: &[&str], folder: &TempDir) -> Output {
    Command::new(words[0]).args(&words[1..]).current_dir(folder.path()).output().unwrap()
}

/// What a program prints and iolab says, with consent to what `nc` may leave undefined.
pub(super) fn under(apply: &str, words: &[&str], folder: &TempDir) -> (String, String) {
    let iolab = env!("CARGO_BIN_EXE_iolab");
    let consent: &[&str] =
        if apply.contains("nofill=yes") { &["--allow", "undefined-bytes"] } else { &[] };
    let run = [iolab, "run", "--strict", "--apply", apply];
    let all = [&run[..], consent, &["--"], words].concat();
    let output = ran(&all, folder);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{apply} {words:?}: {said}");
    (String::from_utf8(output.stdout).unwrap(), said)
}

/// What a program prints when its files have the wanted properties and it had those of `plain` without.
fn with_properties(plain: &str, as_wanted: &str) -> Vec<String> {
    let line = |line: &str| match line.split_once(": ") {
        Some((name, rest)) if rest.starts_with("alignment") => format!("{name}: {as_wanted}"),
        Some((name, rest)) if rest.starts_with("39999") => format!("{name}: 39999, 0"),
        _ => line.to_owned(),
    };
    plain.lines().map(line).collect()
}

/// A program that names the class of lists has the library's variable for it in itself.
#[test]
fn a_file_is_opened_with_them_whatever_list_the_program_gives() {
    for options in [&["-pie", "-fPIE"][..], &["-no-pie"]] {
        let folder = tempfile::tempdir().unwrap();
        let program = program(&folder, "gcc", options, "serial");
        let words = [program.to_str().unwrap()];
        let plain = ran(&words, &folder);
        assert!(plain.status.success() && plain.stderr.is_empty(), "{plain:?}");
        let plain = String::from_utf8(plain.stdout).unwrap();
        assert!(plain.contains("default.h5: alignment 1 from 1"), "{plain}");
        let (printed, said) = under(WANTED, &words, &folder);
        let wanted = with_properties(&plain, AS_WANTED);
        assert_eq!(printed.lines().collect::<Vec<_>>(), wanted, "{said}");
        assert_eq!(
            said.lines().collect::<Vec<_>>(),
            [
                "iolab: h5: 2 files",
                "iolab: h5: alignment=4k,threshold=1k: set",
                "iolab: h5: chunk-cache=64m: set",
                "iolab: h5: coll-metadata=yes: not set: the file was not opened by MPI-IO",
                "iolab: h5: meta-block=1m: set",
            ]
        );
        let (printed, said) = under("h5:meta-block=1m,paths=*.nc", &words, &folder);
        assert_eq!(printed, plain);
        assert_eq!(said, "iolab: h5: no file was opened with HDF5 that it is for\n");
    }
}

#[test]
fn ranks_read_and_write_metadata_together_when_that_is_wanted() {
    for family in ["mpich", "openmpi"] {
        let folder = tempfile::tempdir().unwrap();
        let program = program(&folder, &format!("mpicc.{family}"), &["-DRANKS"], family);
        let launcher = format!("mpiexec.{family}");
        let words = [&*launcher, "-n", "2", program.to_str().unwrap()];
        let plain = ran(&words, &folder);
        assert!(plain.status.success(), "{plain:?}");
        let plain = String::from_utf8(plain.stdout).unwrap();
        assert!(plain.contains(", together 0 0"), "{plain}");
        let (printed, said) = under(WANTED, &words, &folder);
        let wanted = with_properties(&plain, &format!("{AS_WANTED}, together 1 1"));
        assert_eq!(printed.lines().collect::<Vec<_>>(), wanted, "{said}");
        assert!(said.contains("h5: coll-metadata=yes: set"), "{said}");
        assert!(said.contains("h5: 2 files\n"), "{said}");
    }
}

#[test]
fn a_run_without_hdf5_is_told_and_fails_when_it_must_not() {
    let folder = tempfile::tempdir().unwrap();
    let iolab = env!("CARGO_BIN_EXE_iolab");
    let output =
        ran(&[iolab, "run", "--strict", "--apply", "h5:alignment=1m", "--", "true"], &folder);
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("no program of the run has opened a file with HDF5"), "{said}");
}
