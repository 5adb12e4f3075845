//! `nc` on unmodified programs of NetCDF-C, PnetCDF and netCDF4-python: their files get the properties that a user gave,
//! hold the same data, and calls that fail or succeed do so as without.

use super::properties::{built, ran, under};
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const WANTED: &str = "nc:chunk-cache=64m,header-pad=64k,nofill=yes,paths=*.nc";
const CACHE: &str = "cache 67108864 in 16411, 0.75";

fn serial(folder: &TempDir) -> String {
    let library = ("/usr/include", "libnetcdf.so");
    built(folder, "gcc", "netcdf.c", library, &[]).to_str().unwrap().to_owned()
}

/// What it prints by itself.
fn plain(words: &[&str], folder: &TempDir) -> String {
    let output = ran(words, folder);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The lines that differ, of the second one.
fn changed<'a>(before: &str, after: &'a str) -> Vec<&'a str> {
    assert_eq!(before.lines().count(), after.lines().count(), "{after}");
    let both = before.lines().zip(after.lines());
    both.filter(|(before, after)| before != after).map(|it| it.1).collect()
}

#[test]
fn classic_files_and_those_in_chunks_get_what_is_theirs() {
    let folder = tempfile::tempdir().unwrap();
    let program = serial(&folder);
    let bare = plain(&[&program], &folder);
    for of_its_own in ["chunks.nc own: cache 123456 in 77, 0.5", "full.nc: 0", "missing: 2"] {
        assert!(bare.contains(of_its_own), "{bare}");
    }
    let (printed, said) = under(WANTED, &[&program], &folder);
    assert_eq!(
        changed(&bare, &printed),
        [
            "classic.nc: data at 65720",
            "classic.nc: data at 65720 with a longer header",
            "classic.nc: filled: 0",
            "large.nc: data at 65732",
            "large.nc: data at 65732 with a longer header",
            "large.nc: filled: 0",
            &format!("chunks.nc data: {CACHE}"),
            "chunks.nc: not filled: 256",
            &format!("chunks.nc data again: {CACHE}"),
            "chunks.nc: filled: 0",
        ]
    );
    assert_eq!(
        said.lines().collect::<Vec<_>>(),
        [
            "iolab: nc: 5 files",
            "iolab: nc: chunk-cache=64m: set, for 1 file",
            "iolab: nc: chunk-cache=64m: not set: the file is classic, which has no chunks, for 4 files",
            "iolab: nc: header-pad=64k: set, for 2 files",
            "iolab: nc: header-pad=64k: not set: the file is NetCDF-4, whose definitions move no data, for 1 file",
            "iolab: nc: header-pad=64k: not set: no definitions of variables were ended, for 1 file",
            "iolab: nc: header-pad=64k: not set: offsets of the file's format may end before its data does, for 1 file",
            "iolab: nc: nofill=yes: set",
        ]
    );
}

#[test]
fn files_it_is_not_for_are_as_without() {
    let folder = tempfile::tempdir().unwrap();
    let program = serial(&folder);
    let bare = plain(&[&program], &folder);
    let written = || {
        let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
        ["classic.nc", "large.nc", "unended.nc"].map(read)
    };
    let before = written();
    let (printed, said) = under("nc:header-pad=64k,paths=*.h5", &[&program], &folder);
    assert_eq!(printed, bare);
    assert!(written() == before, "files differ");
    assert_eq!(said, "iolab: nc: no file was opened with NetCDF that it is for\n");
    // `no` keeps fill values, and asks for nothing.
    let (printed, said) = under("nc:nofill=no,exclude=**/large.nc", &[&program], &folder);
    assert_eq!(printed, bare);
    assert!(written() == before, "files differ");
    assert_eq!(said, "iolab: nc: 4 files\niolab: nc: nofill=no: set\n");
    // It stands beside a recording.
    let iolab = env!("CARGO_BIN_EXE_iolab");
    let run = ["run", "--record", "run.iot", "--apply", "nc:header-pad=64k", "--"];
    let output = ran(&[&[iolab], &run[..], &[&program]].concat(), &folder);
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(changed(&bare, &printed).len(), 4, "{printed}");
}

#[test]
fn ranks_files_get_them_too() {
    let headers = "/usr/lib/x86_64-linux-gnu/netcdf/mpi/include";
    for (library, options, expected, told) in [
        (
            (headers, "libnetcdf_mpi.so"),
            &["-DRANKS"][..],
            &[
                &*format!("chunks.nc data: {CACHE}"),
                "chunks.nc: not filled: 256",
                &format!("chunks.nc data again: {CACHE}"),
                "chunks.nc: filled: 0",
            ][..],
            "nc: nofill=yes: set\n",
        ),
        (
            ("/usr/include", "libpnetcdf.so"),
            &["-DRANKS", "-DPNETCDF"],
            &["classic.nc: data at 66048", "classic.nc: data at 66048 with a longer header"],
            "nc: header-pad=64k: set\n",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        // Debian has both for Open MPI.
        let program = built(&folder, "mpicc.openmpi", "netcdf.c", library, options);
        let words = ["mpiexec.openmpi", "-n", "2", program.to_str().unwrap()];
        let bare = plain(&words, &folder);
        let (printed, said) = under(WANTED, &words, &folder);
        assert_eq!(changed(&bare, &printed), expected, "{said}");
        assert!(said.contains("nc: 1 file\n") && said.contains(told), "{said}");
        if library.1 == "libpnetcdf.so" {
            assert!(said.contains("nofill=yes: so without: PnetCDF "), "{said}");
        }
    }
}

/// Python, with the NetCDF that its package brings.
#[test]
fn a_python_program_s_files_get_them_from_the_package_s_own_library() {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build/venv/bin/python");
    let has_it = Command::new(&python).args(["-c", "import netCDF4"]).output();
    assert!(
        has_it.is_ok_and(|output| output.status.success()),
        "no netCDF4 in build/venv: tools/setup/install test"
    );
    let script = "import netCDF4, numpy as np\n\
                  for name, kind in (('old.nc', 'NETCDF3_64BIT_OFFSET'), ('new.nc', 'NETCDF4')):\n\
                  \x20   with netCDF4.Dataset(name, 'w', format=kind) as file:\n\
                  \x20       file.createDimension('x', 100)\n\
                  \x20       more = {'chunksizes': (10,)} if kind == 'NETCDF4' else {}\n\
                  \x20       data = file.createVariable('data', 'f8', ('x',), **more)\n\
                  \x20       data[:] = np.full(100, 4711.25)\n\
                  \x20       print(name, data[7], data.get_var_chunk_cache() if more else '')\n\
                  \x20   print(open(name, 'rb').read().find(np.array(4711.25, '>f8').tobytes()))\n\
                  print(netCDF4.get_chunk_cache()[0])\n";
    let folder = tempfile::tempdir().unwrap();
    let words = [python.to_str().unwrap(), "-c", script];
    let bare = plain(&words, &folder);
    let (printed, said) = under("nc:chunk-cache=32m,header-pad=64k", &words, &folder);
    let changed = changed(&bare, &printed);
    assert_eq!(changed.len(), 2, "{printed}{said}");
    assert!(changed[0].parse::<u64>().unwrap() >= 64 << 10, "{printed}");
    assert!(changed[1].starts_with("new.nc 4711.25 (33554432, "), "{printed}");
    for told in ["nc: 2 files\n", "header-pad=64k: set, for 1 file\n"] {
        assert!(said.contains(told), "{said}");
    }
}

#[test]
fn what_it_may_not_do_is_refused_and_a_run_without_netcdf_told() {
    let folder = tempfile::tempdir().unwrap();
    let iolab = env!("CARGO_BIN_EXE_iolab");
    for (words, told) in [
        (
            &["run", "--apply", "nc:nofill=yes,paths=*.nc", "--", "true"][..],
            "--allow undefined-bytes",
        ),
        (
            &["run", "--allow", "undefined-bytes", "--apply", "nc:nofill=yes", "--", "true"],
            "say which by paths=",
        ),
        (&["run", "--apply", "nc:header-pad=2g", "--", "true"], "header-pad"),
    ] {
        let output = ran(&[&[iolab], words].concat(), &folder);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(told), "{words:?}: {said}");
    }
    let output =
        ran(&[iolab, "run", "--strict", "--apply", "nc:header-pad=64k", "--", "true"], &folder);
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("no program of the run has opened a file with NetCDF"), "{said}");
}
