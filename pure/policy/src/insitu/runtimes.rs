//! Files that parallel runtimes make for themselves: shared memory by another name, mapped by
//! several processes and never data of the program. No strategy is ever for them.

/// A runtime, and where its own files are: globs over absolute paths.
struct Runtime {
    name: &'static str,
    globs: &'static [&'static str],
}

/// One row per runtime.
const RUNTIMES: &[Runtime] = &[
    Runtime { name: "UCX", globs: &["/dev/shm/ucx_*", "/dev/shm/ucx_*/**"] },
    Runtime { name: "MPICH", globs: &["/dev/shm/mpich_*", "/tmp/mpich_*"] },
    Runtime {
        name: "Open MPI",
        globs: &[
            "/dev/shm/vader_*",
            "/dev/shm/sm_segment.*",
            "/dev/shm/osc_*",
            "/**/ompi.*/**",
            "/**/openmpi-sessions-*/**",
        ],
    },
    Runtime {
        name: "PMIx and PRRTE",
        globs: &["/**/prte.*/**", "/**/prterun.*/**", "/**/pmix_dstor_*/**", "/**/pmix.*/**"],
    },
    Runtime { name: "PSM", globs: &["/dev/shm/psm*_shm*", "/dev/shm/psm_shm*"] },
    Runtime { name: "Intel MPI", globs: &["/dev/shm/Intel_MPI_*"] },
    Runtime { name: "NCCL", globs: &["/dev/shm/nccl-*"] },
    Runtime { name: "POSIX semaphores", globs: &["/dev/shm/sem.*"] },
    // No more than what it makes itself: users call directories of theirs so, too.
    Runtime {
        name: "iolab",
        globs: &[
            "/**/iolab-run-*/segment",
            "/dev/shm/iolab-{run,spool}-*/**",
            "/dev/shm/iolab-[0-9]*/{outputs,cache}/**",
        ],
    },
];

/// The runtime whose own file that is, if any's.
pub fn owner_of(path: &str) -> Option<&'static str> {
    let is_own =
        |runtime: &&Runtime| runtime.globs.iter().any(|glob| fast_glob::glob_match(glob, path));
    RUNTIMES.iter().find(is_own).map(|runtime| runtime.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_runtimes_are_known_and_files_of_programs_are_not() {
        for (path, name) in [
            ("/dev/shm/ucx_shm_posix_1a2b", "UCX"),
            ("/dev/shm/mpich_shar_tmpAbc", "MPICH"),
            ("/dev/shm/vader_segment.host.0.1", "Open MPI"),
            (
                "/tmp/ompi.host.1000/pid.77/1/pmix_dstor_77/initial-pmix_shared-segment-0",
                "Open MPI",
            ),
            ("/scratch/x/prte.node7.0/dvm.1/1/file", "PMIx and PRRTE"),
            ("/dev/shm/psm2_shm.100", "PSM"),
            ("/dev/shm/sem.lock", "POSIX semaphores"),
            ("/dev/shm/iolab-spool-01ab/one", "iolab"),
            ("/dev/shm/iolab-1000/outputs/one", "iolab"),
            ("/scratch/iolab-run-01ab/segment", "iolab"),
        ] {
            assert_eq!(owner_of(path), Some(name), "{path}");
        }
        for path in [
            "/dev/shm/data.h5",
            "/home/me/ompi.txt",
            "/data/ucx_study/a",
            "/tmp/prte.log",
            "/dev/shm/iolab-results/one.h5",
        ] {
            assert_eq!(owner_of(path), None, "{path}");
        }
    }
}
