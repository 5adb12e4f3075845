//! Collective accesses of unmodified programs, carried out by the algorithms of the catalogue on plain
//! files: every byte, count, pointer and error as without.

use super::{Guest, Left, same};
use iolab_policy::collective::CollectiveKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn run(guest: &Guest, ranks: u32, name: &str, arguments: &[&str]) -> (Left, String) {
    let wish = format!("file={name}");
    let mut words = vec!["run", "--collective", &wish];
    words.extend((name == "cruel").then_some("--cruel"));
    words.push("--");
    let (left, output) = guest.run_by(ranks, &words, &[], arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{words:?} of {}: {said}", guest.family);
    (left, said)
}

/// Takes out what libraries are wrong about: how much a read over the end of a file has got.
fn without_ends(left: Left) -> (Left, Vec<Vec<u8>>) {
    let is_right = |(name, _): &(PathBuf, Vec<u8>)| name.to_string_lossy().starts_with("right.");
    let (ends, others): (Vec<_>, Vec<_>) = left.into_iter().partition(is_right);
    (others.into_iter().collect(), ends.into_iter().map(|(_, text)| text).collect())
}

#[test]
fn every_algorithm_leaves_what_the_library_leaves() {
    let [openmpi, mpich] = ["openmpi", "mpich"].map(|family| Guest::new(family, "strides.c"));
    let names: Vec<_> = CollectiveKind::File.rows().map(|row| row.name).collect();
    let some = ["double-buffered-two-phase", "cruel"];
    for (guest, ranks, names) in
        [(&mpich, 2, &names[..]), (&openmpi, 3, &some[..]), (&openmpi, 1, &some[..1])]
    {
        let (plain, _) = without_ends(openmpi.run(ranks, true, &[]).0);
        for name in names {
            let (ours, said) = run(guest, ranks, name, &[]);
            let (ours, ends) = without_ends(ours);
            let right = b"over the end: 0 0\nuntouched: 0 0\nbehind the end: 0 0\n";
            assert!(
                ends.len() == ranks as usize && ends.iter().all(|text| text == right),
                "{said}"
            );
            same(&plain, &ours, &format!("{name} on {ranks} ranks of {}", guest.family));
            let told = format!("file={name} carried out 19 collective accesses of 6 files");
            assert!(said.contains(&told), "{said}");
            assert!(said.contains("2 calls stayed with the MPI library"), "{said}");
            let moves = ranks > 1 && *name != "direct";
            assert_eq!(said.contains("; 0 B went from rank to rank"), !moves, "{said}");
        }
    }
}

#[test]
fn one_ranks_mistake_is_everybodys_error_and_the_next_call_goes_well() {
    for family in ["mpich", "openmpi"] {
        let (left, _) = run(&Guest::new(family, "strides.c"), 2, "two-phase", &["mistakes"]);
        for rank in 0..2 {
            let said = String::from_utf8_lossy(&left[Path::new(&format!("said.{rank}"))]);
            assert!(said.ends_with("read-only: 1 0\noffset: 1 0\nafter it: 0 8\n"), "{said}");
        }
    }
}

/// The measure is MPICH, whose ranks leave a collective write together; the guest does not wait for others.
#[test]
fn views_of_all_kinds_and_fortran_programs_leave_the_same() {
    for source in ["views.c", "arrays.f90"] {
        let guests = ["mpich", "openmpi"].map(|family| Guest::new(family, source));
        let (plain, _) = guests[0].run(2, true, &[]);
        for (guest, name) in
            guests.iter().zip(["interleaved-two-phase", "double-buffered-two-phase"])
        {
            let (ours, said) = run(guest, 2, name, &[]);
            same(&plain, &ours, &format!("{source} of {}", guest.family));
            assert!(said.contains(&format!("file={name} carried out")), "{said}");
        }
    }
}

fn iolab(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_iolab")).args(words).output().unwrap()
}

#[test]
fn what_cannot_be_is_told_with_a_way_out() {
    let said = |words: &[&str]| {
        let output = iolab(&[&["run", "--collective"], words].concat());
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (words, wanted) in [
        (["file=three-phase", "--", "true"], "choose from two-phase"),
        (["allgather=ring", "--", "true"], "only collective accesses to files"),
        (["cruel", "--", "true"], "add --cruel"),
    ] {
        let (code, text) = said(&words);
        assert!(code == Some(1) && text.contains(wanted), "{words:?}: {code:?} {text}");
    }
    let (code, text) = said(&["two-phase", "--", "sh", "-c", "exit 7"]);
    assert!(code == Some(7) && text.contains("sh did not open any through MPI-IO"), "{text}");
}
