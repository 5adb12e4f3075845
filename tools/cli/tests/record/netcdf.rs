//! Calls of NetCDF as rows: what they cause in HDF5, MPI-IO and POSIX, and that the guest does not notice.

use crate::{iolab, need, record, trace, workshop};
use iolab_report::{Analysis, ObjectRow, Report};
use iolab_trace::{Class, Event, Layer, Trace};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const LAYERS: &str = "posix,stdio,hdf5,netcdf";
const LIBRARIES: &str = "/usr/lib/x86_64-linux-gnu";

fn guests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/record/guests")
}

/// Compiles a program of `guests/`; `needed` is a file of the package that it cannot do without.
fn compiled(compiler: &str, (from, to): (&str, &Path), options: &[&str], needed: &str) -> PathBuf {
    need(compiler, compiler);
    assert!(Path::new(needed).exists(), "{needed} is not there: tools/setup/install test");
    let mut command = Command::new(compiler);
    command.args(["-O1", "-w", "-o"]).arg(to).arg(guests().join(from)).args(options);
    let built = command.output().unwrap();
    assert!(built.status.success(), "{from}: {}", String::from_utf8_lossy(&built.stderr));
    to.to_owned()
}

fn serial_program(directory: &Path) -> PathBuf {
    let library = format!("{LIBRARIES}/libnetcdf.so");
    let to = directory.join("netcdf_calls");
    compiled("gcc", ("netcdf_calls.c", &to), &[&library], "/usr/include/netcdf.h")
}

/// Python with the NetCDF and HDF5 that its package brings.
fn python() -> PathBuf {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build/venv/bin/python");
    let has_it = Command::new(&python).args(["-c", "import netCDF4, xarray"]).output();
    assert!(
        has_it.is_ok_and(|output| output.status.success()),
        "no netCDF4 and xarray in build/venv: tools/setup/install test"
    );
    python
}

fn run(words: &[PathBuf], directory: &Path) -> Output {
    Command::new(&words[0]).args(&words[1..]).current_dir(directory).output().unwrap()
}

/// Runs bare and recorded; the trace, if nobody noticed.
fn recorded(words: &[PathBuf], layers: &str, (directory, work): (&Path, &Path)) -> Trace {
    let bare = run(words, work);
    let seen = record(directory, &["--layer", layers], words);
    let errors = String::from_utf8_lossy(&seen.stderr).into_owned();
    assert_eq!(seen.status.code(), bare.status.code(), "{errors}");
    assert_eq!(String::from_utf8_lossy(&seen.stdout), String::from_utf8_lossy(&bare.stdout));
    assert!(errors.starts_with(&*String::from_utf8_lossy(&bare.stderr)), "{errors}");
    let written = |place: &Path| fs::read(place.join("out.nc")).ok();
    assert!(written(directory) == written(work), "the file differs");
    trace(directory)
}

/// Calls of NetCDF of that name on that object, with the bytes they asked for.
fn calls(trace: &Trace, function: &str, object: &str) -> (usize, i64) {
    let is_it = |event: &&Event| {
        let on = usize::try_from(event.argument).ok().and_then(|at| trace.header.objects.get(at));
        event.function.layer() == Layer::Netcdf
            && event.function.name() == function
            && on.is_some_and(|on| on.path == object)
    };
    let found: Vec<_> = trace.events.iter().filter(is_it).collect();
    (found.len(), found.iter().map(|event| event.length).sum())
}

fn is_on_file(trace: &Trace, event: &Event) -> bool {
    let path = event.file.index().map_or("", |at| trace.header.files[at].path.as_str());
    path.ends_with("/out.nc")
}

/// Bytes of calls of a class in POSIX, on the file or (locks of MPI-IO) inside of a call on it.
fn moved(trace: &Trace, class: Class) -> u64 {
    let around = |event: &Event| usize::try_from(event.parent).ok().map(|at| &trace.events[at]);
    let is_inside = |event: &Event| {
        let all = std::iter::successors(around(event), |event| around(event));
        let above = all.filter(|it| it.function.layer() >= Layer::Hdf5).last();
        above.map(|it| is_on_file(trace, it))
    };
    let is_it = |event: &&Event| {
        event.function.layer() == Layer::Posix
            && event.function.class() == class
            && is_inside(event).unwrap_or_else(|| is_on_file(trace, event))
    };
    trace.events.iter().filter(is_it).map(Event::moved_bytes).sum()
}

/// Each byte that went to or from the file has one cause among the rows of the report.
fn assert_complete(trace: &Trace, report: &Report) {
    let rows = report.datasets.iter().filter(|row| row.file.ends_with("/out.nc"));
    let below: Vec<_> = rows.filter_map(|row| row.level(Layer::Posix)).collect();
    let written = moved(trace, Class::Write);
    assert!(written > 1000);
    assert_eq!(below.iter().map(|it| it.written_bytes).sum::<u64>(), written);
    assert_eq!(below.iter().map(|it| it.read_bytes).sum::<u64>(), moved(trace, Class::Read));
}

fn row_of<'a>(report: &'a Report, name: &str) -> &'a ObjectRow {
    let row = report.datasets.iter().find(|row| row.dataset.as_deref() == Some(name));
    row.unwrap_or_else(|| panic!("no {name} in {:?}", report.datasets))
}

/// The layers of a row.
fn layers_of(row: &ObjectRow) -> Vec<&'static str> {
    row.levels.iter().map(|level| level.layer).collect()
}

const FIELD: i64 = 32 * 64;

fn assert_calls(trace: &Trace) {
    assert_eq!(calls(trace, "nc_put_vara", "/temperature"), (8, 8 * FIELD * 8));
    assert_eq!(calls(trace, "nc_put_var", "/plain"), (1, FIELD * 8));
    assert_eq!(calls(trace, "nc_put_var", "/point"), (1, 4));
    // All of int but one of double, which does not fit, one of short, and one that is outside of the variable.
    assert_eq!(calls(trace, "nc_put_var1", "/count"), (19, 16 * 4 + 8 + 2 - 1));
    assert_eq!(calls(trace, "nc_put_vars", "/count"), (1, 16 * 8));
    assert_eq!(calls(trace, "nc_put_varm", "/count"), (1, 16 * 8));
    assert_eq!(calls(trace, "nc_get_vara", "/temperature"), (1, FIELD * 4));
    assert_eq!(calls(trace, "nc_get_var", "/count"), (1, 32 * 2));
    assert_eq!(calls(trace, "nc_put_att", "/temperature@units"), (1, 6));
    assert_eq!(calls(trace, "nc_put_att", "/temperature@valid_range"), (1, 16));
    assert_eq!(calls(trace, "nc_put_att", "/@title"), (1, 5));
    assert_eq!(calls(trace, "nc_get_att", "/temperature@units"), (1, 6));
    let of_layer = |event: &&Event| event.function.layer() == Layer::Netcdf;
    let failed = trace.events.iter().filter(of_layer).filter(|event| event.result < 0);
    let failed: Vec<_> = failed.map(|it| (it.function.name(), it.result)).collect();
    assert_eq!(failed, [("nc_put_var1", -5), ("nc_sync", -5), ("nc_open", -2)]);
}

#[test]
fn variables_of_a_classic_file_have_their_calls_and_all_that_posix_moved() {
    let (directory, work) = workshop();
    let words = [serial_program(directory.path()), "3".into()];
    let trace = recorded(&words, LAYERS, (directory.path(), &work));
    assert_calls(&trace);
    let report = Analysis::of(&trace);
    assert_complete(&trace, &report);
    let row = row_of(&report, "/temperature");
    assert_eq!(layers_of(row), ["netcdf", "posix"]);
    assert_eq!((row.layer, row.element_bytes, row.chunk.as_slice()), ("netcdf", 4, &[][..]));
    assert_eq!(row.level(Layer::Netcdf).unwrap().written_bytes, 8 * FIELD as u64 * 8);
    let is_of_hdf5 = |it: &Event| it.function.layer() == Layer::Hdf5;
    assert!(!trace.events.iter().any(is_of_hdf5), "a classic file is none of HDF5");
}

#[test]
fn variables_of_netcdf_4_have_their_calls_of_hdf5_and_all_that_posix_moved() {
    for format in ["4", "4c"] {
        let (directory, work) = workshop();
        let words = [serial_program(directory.path()), format.into()];
        let trace = recorded(&words, LAYERS, (directory.path(), &work));
        assert_calls(&trace);
        let report = Analysis::of(&trace);
        assert_complete(&trace, &report);
        let row = row_of(&report, "/temperature");
        assert_eq!(layers_of(row), ["netcdf", "hdf5", "posix"]);
        assert_eq!(row.chunk, [1, 16, 64]);
        if format == "4" {
            assert_eq!(calls(&trace, "nc_put_var", "/model/inner"), (1, 32 * 8));
            assert_eq!(calls(&trace, "nc_put_att", "/model@note"), (1, 2));
        }
        // What HDF5 does for it is in no row of its own.
        let of_hdf5 = report.datasets.iter().filter(|it| it.layer == "hdf5");
        assert_eq!(of_hdf5.count(), 0, "{:?}", report.datasets);
    }
}

#[test]
fn a_python_program_s_variables_have_theirs_of_the_package_s_own_libraries() {
    let (directory, work) = workshop();
    let words = [python(), guests().join("netcdf_calls.py")];
    let trace = recorded(&words, LAYERS, (directory.path(), &work));
    let report = Analysis::of(&trace);
    assert_complete(&trace, &report);
    for (name, chunk) in [("/plain", vec![]), ("/in chunks", vec![16, 32])] {
        let row = row_of(&report, name);
        assert_eq!(row.level(Layer::Netcdf).unwrap().written_bytes, 64 * 256 * 8, "{name}");
        assert_eq!((&row.chunk, row.element_bytes), (&chunk, 8), "{name}");
        assert_eq!(layers_of(row), ["netcdf", "hdf5", "posix"], "{name}");
    }
    // Some of HDF5's metadata goes out with it. What is in chunks stays in their cache until all is flushed.
    let written = row_of(&report, "/plain").level(Layer::Posix).unwrap().written_bytes;
    assert!((64 * 256 * 8..64 * 256 * 9).contains(&written), "{written}");
}

#[test]
fn xarray_s_files_are_seen_as_well() {
    let (directory, work) = workshop();
    let script = "import numpy as np, xarray as xr\n\
                  data = xr.Dataset({'t': (('x', 'y'), np.arange(12.0).reshape(3, 4))})\n\
                  data.to_netcdf('out.nc', engine='netcdf4')\n\
                  print(float(xr.open_dataset('out.nc', engine='netcdf4').t.sum()))\n";
    let words = [python(), "-c".into(), script.into()];
    let trace = recorded(&words, LAYERS, (directory.path(), &work));
    let report = Analysis::of(&trace);
    let row = row_of(&report, "/t");
    assert_eq!(
        (
            row.level(Layer::Netcdf).unwrap().written_bytes,
            row.level(Layer::Netcdf).unwrap().read_bytes
        ),
        (96, 96)
    );
    assert_complete(&trace, &report);
}

/// Programs that were not written for this.
#[test]
fn strangers_say_and_write_the_same() {
    let (directory, work) = workshop();
    let program = serial_program(directory.path());
    let here = directory.path();
    for format in ["3", "4"] {
        run(&[program.clone(), format.into()], here);
        fs::copy(here.join("out.nc"), here.join("in.nc")).unwrap();
        fs::copy(here.join("out.nc"), work.join("in.nc")).unwrap();
        need("ncdump", "netcdf-bin");
        need("cdo", "cdo");
        for words in [
            &["ncdump", "in.nc"][..],
            &["nccopy", "in.nc", "out.nc"],
            &["cdo", "-s", "--reduce_dim", "infon", "-selname,plain", "in.nc"],
        ] {
            let words: Vec<PathBuf> = words.iter().map(PathBuf::from).collect();
            for place in [here, work.as_path()] {
                _ = fs::remove_file(place.join("out.nc"));
            }
            let trace = recorded(&words, LAYERS, (here, &work));
            let of_layer = |it: &&Event| it.function.layer() == Layer::Netcdf;
            let read = |it: &&Event| it.function.class() == Class::Read && it.result > 0;
            assert!(trace.events.iter().filter(of_layer).filter(read).count() > 0, "{words:?}");
        }
    }
}

#[test]
fn ranks_variables_have_what_they_came_to_in_mpi_io_and_posix() {
    for (options, needed, libraries) in [
        (
            &["-I", "/usr/lib/x86_64-linux-gnu/netcdf/mpi/include"][..],
            "/usr/lib/x86_64-linux-gnu/netcdf/mpi/include/netcdf_par.h",
            "libnetcdf_mpi.so",
        ),
        (&["-DPNETCDF"], "/usr/include/pnetcdf.h", "libpnetcdf.so"),
    ] {
        let (directory, work) = workshop();
        let to = directory.path().join("netcdf_ranks");
        // Debian has both for Open MPI.
        let library = format!("{LIBRARIES}/{libraries}");
        let options = [options, &[&library]].concat();
        let program = compiled("mpicc.openmpi", ("netcdf_ranks.c", &to), &options, needed);
        let words = ["mpiexec.openmpi".into(), "-n".into(), "2".into(), program];
        let layers = "posix,stdio,mpi,hdf5,netcdf";
        let trace = recorded(&words, layers, (directory.path(), &work));
        let report = Analysis::of(&trace);
        assert_complete(&trace, &report);
        let row = row_of(&report, "/together");
        let asked = 2 * 16 * 256 * 4;
        let top = row.level(Layer::Netcdf).unwrap();
        assert_eq!((top.written_bytes, top.read_bytes), (asked, asked), "{libraries}");
        // Parallel NetCDF-4 writes what stands for elements nobody has written when definitions end; PnetCDF does not.
        let amplification = if libraries == "libpnetcdf.so" { 1.0 } else { 2.0 };
        assert_eq!(row.write_amplification, Some(amplification), "{libraries}");
        let layers = layers_of(row);
        match libraries {
            "libpnetcdf.so" => {
                assert_eq!((layers[0], layers.last()), ("netcdf", Some(&"posix")));
                assert!(layers.contains(&"mpiio") && !layers.contains(&"hdf5"));
                assert_eq!(calls(&trace, "ncmpi_put_all", "/together"), (2, asked as i64));
                assert_eq!(calls(&trace, "ncmpi_put", "/alone"), (2, asked as i64));
                assert_eq!(calls(&trace, "ncmpi_iput", "/later"), (6, asked as i64 * 3 / 2));
                assert_eq!(calls(&trace, "ncmpi_iput", "/other"), (2, asked as i64));
                // One wait is for pieces of one variable, the other for pieces of two.
                assert_eq!(calls(&trace, "ncmpi_wait_all", "/later"), (2, asked as i64));
                let several = calls(&trace, "ncmpi_wait_all", "/other, /later");
                assert_eq!(several, (2, asked as i64 * 3 / 2));
            }
            _ => {
                assert!(layers.contains(&"hdf5") && layers.contains(&"mpiio"), "{layers:?}");
                assert_eq!(calls(&trace, "nc_put_vara", "/alone"), (2, asked as i64));
            }
        }
    }
}

#[test]
fn the_library_is_loaded_where_netcdf_can_be_and_on_request() {
    let (directory, work) = workshop();
    let loads = |options: &[&str], words: &[&str]| {
        let output = record(directory.path(), options, words);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).contains("libiolab_netcdf.so")
    };
    assert!(!loads(&[], &["sh", "-c", "echo $LD_PRELOAD"]));
    assert!(!loads(&["--layer", "posix,hdf5"], &["sh", "-c", "echo $LD_PRELOAD"]));
    assert!(loads(&["--layer", "posix,netcdf"], &["sh", "-c", "echo $LD_PRELOAD"]));
    assert!(loads(&[], &["python3", "-c", "import os; print(os.environ['LD_PRELOAD'])"]));
    // The default of a program that lists it, also in the report.
    let program = serial_program(directory.path());
    let output = record(&work, &[], &[program, "4".into()]);
    assert_eq!(output.status.code(), Some(3));
    let told = |options: &[&str]| {
        let output =
            iolab().arg("report").args(options).arg(work.join("run.iot")).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let tree = told(&["--by", "dataset"]);
    assert!(tree.starts_with("Variables of NetCDF, with what they come to below"), "{tree}");
    assert!(tree.contains("out.nc:/temperature in chunks of 1 × 16 × 64"), "{tree}");
    assert!(tree.contains("  hdf5\n") && tree.contains("  posix\n"), "{tree}");
    assert!(tree.contains("out.nc: NetCDF's own"), "{tree}");
    assert!(told(&["--json"]).contains("\"layer\": \"netcdf\""));
}

#[test]
fn names_looked_up_at_run_time_are_those_that_are_there() {
    let (directory, work) = workshop();
    let to = directory.path().join("names");
    let source = "#include <dlfcn.h>\n#include <stdio.h>\n\
                  int main(int count, char **words) {\n\
                  \tprintf(\"%d\", !!dlsym(RTLD_DEFAULT, \"nc_open\") + !!dlsym(RTLD_DEFAULT, \"ncmpi_open\"));\n\
                  \tvoid *library = dlopen(words[1], RTLD_NOW | RTLD_GLOBAL);\n\
                  \tint (*open)(const char *, int, int *) = dlsym(RTLD_DEFAULT, \"nc_open\");\n\
                  \tint file = 0;\n\
                  \tprintf(\" %d\", open ? open(\"out.nc\", 0, &file) : 7);\n\
                  \tprintf(\" %d\\n\", !!dlsym(library, \"ncmpi_open\"));\n}\n";
    fs::write(directory.path().join("names.c"), source).unwrap();
    need("gcc", "gcc");
    let from = directory.path().join("names.c");
    let built = Command::new("gcc").arg("-w").arg("-o").arg(&to).arg(from).arg("-ldl").status();
    assert!(built.unwrap().success());
    run(&[serial_program(directory.path()), "3".into()], &work);
    fs::copy(work.join("out.nc"), directory.path().join("out.nc")).unwrap();
    let words = [to, format!("{LIBRARIES}/libnetcdf.so").into()];
    let trace = recorded(&words, LAYERS, (directory.path(), &work));
    assert_eq!(String::from_utf8_lossy(&run(&words, &work).stdout), "0 0 0\n");
    let is_open = |it: &&Event| it.function.name() == "nc_open";
    assert_eq!(trace.events.iter().filter(is_open).count(), 1);
}
