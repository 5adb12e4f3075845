//! The parallel job a process belongs to, told by its launcher's variables.
//!
//! Two processes are of one job when the key is the same. Most launchers give a job a name that all
//! its nodes know; Hydra does not, but its proxy's command line names the job's control port. What
//! is left is the process that started the ranks of this node: good enough on one node, and weak
//! across nodes (see [`Job::same_as`]).

use crate::recording::boot;
use iolab_trace::launchers::{LAUNCHERS, SLURM_SPECIAL_STEPS};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::{env, fs};

/// A process's place in its parallel job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Job {
    /// Equal for all processes of the job that this key can reach.
    pub key: String,
    /// Whether the key is known on every node of the job.
    pub everywhere: bool,
    /// Rank of this process.
    pub rank: u32,
    /// Ranks of the job; 0 when the launcher does not say.
    pub size: u32,
    /// Ranks of the job on this node; 0 when the launcher does not say.
    pub local_size: u32,
    /// Name of this node.
    pub host: String,
    /// This machine since it was started: equal for all that share clock and files.
    pub machine: String,
}

impl Job {
    /// The job of this process; `None` when it is alone.
    pub fn find() -> Option<Job> {
        let mut job = Job::of(&|name| env::var(name).ok())?;
        if job.key.is_empty() {
            (job.key, job.everywhere) = launcher_key(&job.machine);
        }
        Some(job)
    }

    /// The same from given variables; an empty key when they name no job.
    fn of(variable: &dyn Fn(&str) -> Option<String>) -> Option<Job> {
        let number = |name: &str| variable(name)?.trim().parse::<u32>().ok();
        let found = LAUNCHERS.iter().find_map(|it| Some((it, number(it.rank)?)));
        let (launcher, rank) = found?;
        if launcher.rank == "SLURM_PROCID" && !is_step(variable) {
            return None;
        }
        let first = |names: &[&str]| names.iter().find_map(|name| number(name)).unwrap_or(0);
        let size = first(launcher.sizes);
        let names: Option<Vec<String>> =
            launcher.names.iter().map(|name| variable(name).filter(|it| !it.is_empty())).collect();
        let names = names.filter(|names| !names.is_empty());
        let host = host(variable);
        let job = Job {
            everywhere: names.is_some(),
            key: names
                .map(|names| format!("{} {}", launcher.rank, names.join(".")))
                .unwrap_or_default(),
            rank,
            size,
            local_size: first(launcher.local_sizes),
            host,
            machine: boot(),
        };
        (size != 1).then_some(job)
    }

    /// Whether all ranks are known to be on this node.
    pub fn is_on_one_node(&self) -> bool {
        self.size == 0 || self.local_size == self.size
    }

    /// Whether a part of `other` and one of this job belong together. Where a key is not known on
    /// every node, jobs of one size whose times overlap are taken for one.
    pub fn same_as(&self, other: &Job, times_overlap: bool) -> bool {
        self.key == other.key
            || (!(self.everywhere && other.everywhere)
                && self.host != other.host
                && self.size == other.size
                && times_overlap)
    }
}

fn is_step(variable: &dyn Fn(&str) -> Option<String>) -> bool {
    let step = variable("SLURM_STEP_ID").and_then(|step| step.parse::<u64>().ok());
    step.is_some_and(|step| step < SLURM_SPECIAL_STEPS)
}

/// The node as its launcher calls it, or as it calls itself.
fn host(variable: &dyn Fn(&str) -> Option<String>) -> String {
    let own = || fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let named = variable("SLURMD_NODENAME").filter(|name| !name.is_empty()).or_else(own);
    named.unwrap_or_default().trim().replace('/', "_")
}

/// A key from the process that started this node's ranks: the nearest ancestor that is no rank.
fn launcher_key(machine: &str) -> (String, bool) {
    let mut pid = std::process::id();
    loop {
        match parent_of(pid) {
            Some(parent) if parent > 1 && is_rank(parent) => pid = parent,
            Some(parent) => return key_of(parent, machine),
            None => return (format!("process {pid} {machine}"), false),
        }
    }
}

fn key_of(launcher: u32, machine: &str) -> (String, bool) {
    let words = fs::read(format!("/proc/{launcher}/cmdline")).unwrap_or_default();
    let words: Vec<&[u8]> = words.split(|&byte| byte == 0).collect();
    let port = words.windows(2).find(|two| two[0] == b"--control-port").map(|two| two[1]);
    match port {
        Some(port) => (format!("hydra {}", String::from_utf8_lossy(port)), true),
        None => (format!("process {launcher} {} {machine}", started(launcher)), false),
    }
}

/// Fields of `/proc/PID/stat` after the name, which may hold anything.
fn status_fields(pid: u32) -> Vec<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    rest.split_whitespace().map(str::to_owned).collect()
}

fn parent_of(pid: u32) -> Option<u32> {
    status_fields(pid).get(1)?.parse().ok()
}

fn started(pid: u32) -> String {
    status_fields(pid).get(19).cloned().unwrap_or_default()
}

/// Whether a process has a rank of its own; one whose environment is not ours to read has not.
fn is_rank(pid: u32) -> bool {
    let path = format!("/proc/{pid}/environ");
    let environment = fs::read(Path::new(&path)).unwrap_or_default();
    environment.split(|&byte| byte == 0).any(|variable| {
        LAUNCHERS.iter().any(|launcher| {
            variable
                .strip_prefix(launcher.rank.as_bytes())
                .is_some_and(|rest| rest.starts_with(b"="))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(variables: &[(&str, &str)]) -> Option<Job> {
        Job::of(&|name| {
            variables.iter().find(|(it, _)| *it == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn each_launcher_tells_rank_size_and_name() {
        let slurm = [
            ("SLURM_PROCID", "1"),
            ("SLURM_STEP_NUM_TASKS", "4"),
            ("SLURM_JOB_ID", "77"),
            ("SLURM_STEP_ID", "0"),
        ];
        let found = job(&slurm).unwrap();
        assert_eq!((found.rank, found.size, found.everywhere), (1, 4, true));
        let open_mpi = [
            ("PMIX_RANK", "0"),
            ("PMIX_NAMESPACE", "9"),
            ("OMPI_COMM_WORLD_SIZE", "2"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
        ];
        assert!(job(&open_mpi).unwrap().is_on_one_node());
        let hydra = job(&[("PMI_RANK", "3"), ("PMI_SIZE", "8")]).unwrap();
        assert!(hydra.key.is_empty() && !hydra.is_on_one_node());
    }

    #[test]
    fn a_batch_script_and_a_job_of_one_rank_are_no_job() {
        assert_eq!(
            job(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4"), ("SLURM_JOB_ID", "7")]),
            None
        );
        let batch = [
            ("SLURM_PROCID", "0"),
            ("SLURM_NTASKS", "4"),
            ("SLURM_JOB_ID", "7"),
            ("SLURM_STEP_ID", "4294967291"),
        ];
        assert_eq!(job(&batch), None);
        assert_eq!(job(&[("PMI_RANK", "0"), ("PMI_SIZE", "1")]), None);
        assert_eq!(job(&[]), None);
    }

    #[test]
    fn jobs_without_a_common_name_are_one_when_their_times_overlap_on_other_nodes() {
        let a = Job { key: "process 7".into(), size: 2, host: "a".into(), ..Job::default() };
        let b = Job { key: "process 9".into(), host: "b".into(), ..a.clone() };
        assert!(a.same_as(&b, true) && !a.same_as(&b, false));
        let c = Job { key: "process 9".into(), ..a.clone() };
        assert!(!a.same_as(&c, true), "two launchers on one node are two jobs");
    }
}
