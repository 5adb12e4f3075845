//! Strategies of the layer MPI-IO on unmodified programs: every byte, count, pointer and error as without,
//! and what they did is told.

use super::{Guest, Left, same};
use std::path::Path;
use std::process::{Command, Output};

fn run(guest: &Guest, ranks: u32, stack: &str, arguments: &[&str]) -> (Left, String) {
    let mut words = vec!["run"];
    words.extend(stack.contains("cruel").then_some("--cruel"));
    words.extend(stack.contains("collect:").then_some("--allow=late-visibility"));
    words.extend(["--apply", stack, "--"]);
    let (left, output) = guest.run_by(ranks, &words, &[], arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{words:?} of {}: {said}", guest.family);
    (left, said)
}

#[test]
fn a_program_leaves_and_is_told_the_same_under_every_stack_of_the_layer() {
    for family in ["mpich", "openmpi"] {
        let guest = Guest::new(family, "apart.c");
        let (plain, _) = guest.run(2, true, &[]);
        for (stack, told) in [
            ("demote", "1 file, 11 collective accesses went out independently; 4 stayed"),
            ("demote", "(2 interleaved, 2 not to be judged)"),
            ("demote:when=never", "demote: 1 file, 0 collective accesses went out independently"),
            ("demote-cruel", "demote-cruel: 1 file"),
            ("demote-cruel:seed=5", "demote-cruel: 1 file"),
            ("hints:romio_cb_write=enable + write-back:paths=*.dat", "hints: 1 file"),
            ("null + hints:cb_nodes=1 + demote:paths=*.dat", "demote: 1 file"),
        ] {
            let (ours, said) = run(&guest, 2, stack, &[]);
            same(&plain, &ours, &format!("{stack} of {family}"));
            assert!(said.contains(told), "{stack} of {family}: {said}");
        }
    }
}

/// How much a read over the end of a file has got (`right`), the independent call of MPICH knows better than
/// its collective one.
fn without_ends(mut left: Left) -> Left {
    left.retain(|name, _| !name.to_string_lossy().starts_with("right"));
    left
}

/// Views of all kinds, ranks without a part, memory with gaps, Fortran.
#[test]
fn programs_of_all_kinds_leave_the_same_bytes() {
    for source in ["strides.c", "views.c", "arrays.f90"] {
        for family in ["mpich", "openmpi"] {
            let guest = Guest::new(family, source);
            let plain = without_ends(guest.run(2, true, &[]).0);
            let hinted = "hints:romio_cb_write=enable,cb_buffer_size=4096 + demote";
            let held = "collect:slow=0,paths=* + demote";
            for stack in [hinted, "demote-cruel", "demote:when=never", held, "collect-cruel"] {
                let (ours, said) = run(&guest, 2, stack, &[]);
                same(&plain, &without_ends(ours), &format!("{source}, {stack} of {family}"));
                let told = if stack.starts_with("collect") { " held" } else { "independently" };
                assert!(said.contains(told), "{said}");
            }
        }
    }
}

/// Independent writes, and whatever may come after one. Open MPI 4.1.4 by itself ends three ranks in an ordered write, and after
/// `MPI_File_preallocate` waits for ever in the next open of a file, in half of the runs on a busy machine: a rank takes
/// answers of one collective call for those of the next.
#[test]
fn writes_that_are_held_are_where_they_belong_before_anybody_may_look() {
    for (family, ranks, arguments, held) in [
        ("mpich", 3, &["two"][..], " were held and went out as 1"),
        // Non-blocking ones among them.
        ("openmpi", 2, &[], " 596 independent writes were held and went out as 1"),
    ] {
        let guest = Guest::new(family, "held.c");
        let (plain, _) = guest.run_with(ranks, true, &[], arguments);
        for (stack, told) in [
            ("collect:slow=0,paths=*.dat", held),
            ("collect:slow=0,paths=*.dat,buffer=4k,independent=99", " by a rank alone; "),
            ("collect:slow=1s,paths=*.dat", " because the storage answers quickly)"),
            ("collect:when=never,paths=*.dat", " 0 independent writes were held"),
            ("collect-cruel", " passed"),
            ("collect-cruel:seed=7,buffer=4k", " passed"),
            (
                "hints:cb_nodes=1 + demote + collect:slow=0,paths=*.dat + write-back:paths=*.dat",
                " held",
            ),
        ] {
            let (ours, said) = run(&guest, ranks, stack, arguments);
            same(&plain, &ours, &format!("{stack} of {family}"));
            assert!(said.contains(told), "{stack} of {family}: {said}");
        }
    }
}

/// Rank 1 may not make a file as large as that.
#[test]
fn an_error_of_bytes_that_go_out_late_is_told_by_the_next_call_that_may_tell_one() {
    let of_rank = |alone: &str| {
        format!(
            "write: done, handled 0\nsync: done, handled 0\n\
             write behind the limit: done, handled 0\nsync: error, handled 1\n\
             sync again: done, handled 0\n\
             write behind the limit: done, handled 0\nread: done, handled 0\n\
             write: {alone}\nwrite: done, handled 0\n\
             write behind the limit: done, handled 0\nread: done, handled 0\n\
             begun: {alone}\nwaited: done, handled 0\nview: done, handled 0\n\
             write behind the limit: done, handled 0\nclose: error, handled 1\nclosed: 1\n"
        )
    };
    for family in ["mpich", "openmpi"] {
        let guest = Guest::new(family, "late.c");
        let (left, told) = run(&guest, 2, "collect:slow=0,paths=*.dat", &[]);
        for (rank, alone) in [(0, "done, handled 0"), (1, "error, handled 1")] {
            let said = String::from_utf8_lossy(&left[Path::new(&format!("said.{rank}"))]);
            assert_eq!(said, of_rank(alone), "rank {rank} of {family}");
        }
        assert_eq!(told.matches("File too large").count(), 4, "{told}");
    }
}

#[test]
fn what_the_library_made_of_a_hint_is_told_beside_what_the_program_said() {
    let stack = "hints:romio_cb_write=enable,cb_nodes=2,romio_ds_write=perhaps,no_such_hint=1";
    let (_, said) = run(&Guest::new("mpich", "apart.c"), 2, stack, &["disable"]);
    for line in [
        "romio_cb_write=enable: in effect",
        "; the program said `disable`",
        "cb_nodes=2: not taken, in effect is `1`",
        "romio_ds_write=perhaps: not taken, in effect is `automatic`",
        "no_such_hint=1: MPICH 4",
        " does not know it",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let long = format!("{stack},{}=1", "a".repeat(60));
    let (_, said) = run(&Guest::new("openmpi", "apart.c"), 2, &long, &["disable"]);
    for line in [
        "cb_nodes=2: Open MPI 4",
        "reads it, and does not tell what is in effect",
        "no_such_hint=1: Open MPI 4",
        "is not known to read it",
        "a=1: too long for Open MPI 4",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
}

fn iolab(words: &[&str]) -> (Option<i32>, String) {
    let output: Output = Command::new(env!("CARGO_BIN_EXE_iolab")).args(words).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_program_that_never_comes_to_mpi_is_told_and_fails_a_strict_run() {
    let (code, said) = iolab(&["run", "--apply", "demote", "--", "sh", "-c", "exit 7"]);
    assert!(code == Some(7) && said.contains("demote: no program of the run has begun"), "{said}");
    let (code, said) = iolab(&["run", "--strict", "--apply", "hints:a=b", "--", "true"]);
    assert!(code == Some(3) && said.contains("hints: no program of the run"), "{said}");
    let (code, said) = iolab(&["run", "--strict", "--quiet", "--apply", "demote", "--", "true"]);
    assert!(code == Some(3) && said.contains("demote: no program of the run"), "{said}");
    let (code, said) = iolab(&["run", "--quiet", "--apply", "demote", "--", "true"]);
    assert_eq!((code, &*said), (Some(0), ""));
}

#[test]
fn a_stage_of_the_layer_is_refused_where_there_are_no_such_calls() {
    let workload =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples/workloads/interference.toml");
    for (words, wanted) in [
        (&["mount", "--apply", "demote", "/tmp", "/tmp/nowhere"][..], "a mount hears calls"),
        (&["run", "--via", "mount", "--apply", "demote:paths=/tmp/*", "--", "true"], "a mount"),
        (&["replay", "--into", "none", "--apply", "hints:a=b", "none.iot"], "replay and simul"),
        (
            &["simulate", "--apply", "demote", "--platform", "classic-hdd", "--workload", workload],
            "replay and simulation",
        ),
        (&["run", "--apply", "demote", "--collective", "two-phase", "--", "true"], "both own"),
        (&["run", "--apply", "demote-cruel", "--", "true"], "add --cruel"),
        (&["run", "--apply", "demote + demote", "--", "true"], "apply `demote` once"),
        (&["strategies", "--check", "hints"], "no hint is given"),
        (&["run", "--apply", "collect:paths=*", "--", "true"], "add --allow late-visibility"),
        (
            &["run", "--allow", "late-visibility", "--apply", "collect", "--", "true"],
            "for files you name",
        ),
        (&["run", "--apply", "collect:buffer=1", "--", "true"], "buffer: 1 bytes"),
    ] {
        let (code, said) = iolab(words);
        assert!(code == Some(1) && said.contains(wanted), "{words:?}: {code:?} {said}");
    }
    let allowed = Command::new(env!("CARGO_BIN_EXE_iolab"))
        .args(["strategies", "--check", "write-back + demote + hints:a=b"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&allowed.stdout), "allowed: demote + hints + write-back\n");
}
