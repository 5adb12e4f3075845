//! Variables by which launchers of parallel programs tell a process its place.

/// Variables of one kind of launcher.
pub struct Launcher {
    /// The process's rank.
    pub rank: &'static str,
    /// How many ranks there are; the first that is set counts, here and below.
    pub sizes: &'static [&'static str],
    /// How many of them are on this node.
    pub local_sizes: &'static [&'static str],
    /// All of them together name the job; none when there is no such name.
    pub names: &'static [&'static str],
}

/// In the order of preference: a launcher below another one (mpiexec inside a Slurm job) counts.
pub static LAUNCHERS: [Launcher; 8] = [
    Launcher {
        rank: "PMI_RANK",
        sizes: &["PMI_SIZE"],
        local_sizes: &["MPI_LOCALNRANKS"],
        names: &["PMI_JOBID"],
    },
    Launcher {
        rank: "PMIX_RANK",
        sizes: &["OMPI_COMM_WORLD_SIZE", "PMIX_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"],
        local_sizes: &["OMPI_COMM_WORLD_LOCAL_SIZE"],
        names: &["PMIX_NAMESPACE"],
    },
    Launcher {
        rank: "OMPI_COMM_WORLD_RANK",
        sizes: &["OMPI_COMM_WORLD_SIZE"],
        local_sizes: &["OMPI_COMM_WORLD_LOCAL_SIZE"],
        names: &["OMPI_MCA_orte_precondition_transports", "OMPI_MCA_ess_base_jobid"],
    },
    Launcher {
        rank: "MV2_COMM_WORLD_RANK",
        sizes: &["MV2_COMM_WORLD_SIZE"],
        local_sizes: &["MV2_COMM_WORLD_LOCAL_SIZE"],
        names: &[],
    },
    Launcher {
        rank: "PALS_RANKID",
        sizes: &["PALS_SIZE", "PMI_SIZE"],
        local_sizes: &["PALS_LOCAL_SIZE"],
        names: &["PALS_APID"],
    },
    Launcher {
        rank: "FLUX_TASK_RANK",
        sizes: &["FLUX_JOB_SIZE"],
        local_sizes: &[],
        names: &["FLUX_JOB_ID"],
    },
    Launcher {
        rank: "JSM_NAMESPACE_RANK",
        sizes: &["JSM_NAMESPACE_SIZE"],
        local_sizes: &["JSM_NAMESPACE_LOCAL_SIZE"],
        names: &["LSB_JOBID", "JSM_JSRUN_JSM_ID"],
    },
    Launcher {
        rank: "SLURM_PROCID",
        sizes: &["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"],
        local_sizes: &[],
        names: &["SLURM_JOB_ID", "SLURM_STEP_ID"],
    },
];

/// Step numbers from here on are no steps of tasks but Slurm's own (batch script, interactive).
pub const SLURM_SPECIAL_STEPS: u64 = 0xffff_fff0;
