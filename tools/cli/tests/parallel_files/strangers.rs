//! What programs of others do beside reading and writing.

use super::{Guest, as_plain, same};
use std::path::Path;
use std::process::Command;

#[test]
fn names_lead_where_the_kernel_goes_or_nowhere() {
    for family in ["mpich", "openmpi"] {
        as_plain(family, "ways.c", &[1, 2], &[]);
    }
}

/// What a guest says with its files in the file system: with plain ones, MPICH loses count of references, and calls
/// handlers with the null file.
fn says(source: &str, wanted: &str) {
    for family in ["mpich", "openmpi"] {
        let (left, _) = Guest::new(family, source).run(1, false, &[]);
        assert_eq!(String::from_utf8_lossy(&left[Path::new("said.0")]), wanted, "{family}");
    }
}

#[test]
fn error_handlers_of_a_program_are_found_as_they_were_set_and_outlive_their_handles() {
    let told =
        ["inherited 1", "first, of it: 1", "set 1", "second, of it: 1", "null file returns 1", ""];
    says("handlers.c", &told.join("\n"));
}

/// Open MPI makes them past its function of C.
#[test]
fn error_handlers_made_in_fortran_are_called_with_a_number_of_fortran() {
    says("handlers.f90", " found:  T\n met, of it:  T T\n");
}

/// MPICH 4.0 itself opens no file in a session, and Open MPI 4 has no sessions.
#[test]
fn a_program_of_sessions_has_its_files_in_the_file_system() {
    for (ranks, parts) in [(1, "aa"), (2, "abab")] {
        let (left, _) = Guest::new("mpich", "sessions.c").run(ranks, false, &[]);
        let wanted: String = parts.chars().map(|part| part.to_string().repeat(5000)).collect();
        assert!(left[Path::new("data")] == wanted.as_bytes(), "{ranks} ranks");
    }
}

#[test]
fn a_profiling_tool_between_a_program_and_its_mpi_sees_calls_on_files_of_the_file_system() {
    for family in ["mpich", "openmpi"] {
        let guest = Guest::new(family, "tooled.c");
        link_with_tool(&guest);
        let [(plain, _), (ours, _)] = [true, false].map(|is_plain| guest.run(2, is_plain, &[]));
        same(&plain, &ours, family);
        let said = String::from_utf8_lossy(&ours[Path::new("said.0")]).into_owned();
        assert_eq!(said, "1 opens, 4 writes, 1 waits, 1 closes\n", "{family}");
    }
}

/// Links a guest anew, with a tool in a library of its own.
fn link_with_tool(guest: &Guest) {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parallel_files");
    let (folder, compiler) = (guest.folder.path(), format!("mpicc.{}", guest.family));
    let tool = folder.join("libtool.so");
    let search = format!("-Wl,-rpath,{}", folder.display());
    let builds = [
        Command::new(&compiler)
            .args(["-w", "-shared", "-fPIC", "-o"])
            .args([tool, sources.join("tool.c")])
            .output(),
        Command::new(&compiler)
            .args(["-w", &search, "-L"])
            .arg(folder)
            .arg("-o")
            .args([folder.join("program"), sources.join("tooled.c")])
            .args(["-Wl,--no-as-needed", "-ltool"])
            .output(),
    ];
    for built in builds {
        let built = built.unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    }
}
