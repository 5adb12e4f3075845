//! A node's processors: jobs share them equally.

use iolab_device::nanos;
use iolab_vocab::Nanos;

#[derive(Debug)]
pub(super) struct Cpu {
    cpus: f64,
    instructions_per_second: f64,
    jobs: Vec<Job>,
    since: Nanos,
    /// An instruction takes less than a nanosecond, so what whole ones cut off is kept.
    carries: bool,
    /// Instructions that were cut off, for the next job.
    owed: f64,
}

#[derive(Clone, Copy, Debug)]
struct Job {
    task: u32,
    instructions: f64,
}

impl Cpu {
    pub(super) fn new(cpus: u32, instructions_per_second: f64) -> Cpu {
        let cpus = f64::from(cpus);
        let (jobs, since) = (Vec::new(), Nanos::ZERO);
        Cpu { cpus, instructions_per_second, jobs, since, carries: false, owed: 0.0 }
    }

    /// Work that whole nanoseconds cut off is done by the next job, where instructions are shorter.
    pub(super) fn carry_fractions(&mut self) {
        self.carries = self.instructions_per_second > 1e9;
    }

    pub(super) fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }

    /// All jobs are dropped.
    pub(super) fn clear(&mut self) {
        self.jobs.clear();
    }

    /// Speed of each job when all share the processors.
    fn speed_each(&self) -> f64 {
        self.instructions_per_second * (self.cpus / self.jobs.len() as f64).min(1.0)
    }

    /// A job comes in; returns how long until the first one ends.
    pub(super) fn add(&mut self, now: Nanos, task: u32, instructions: f64) -> Nanos {
        self.progress(now);
        let instructions = instructions + std::mem::take(&mut self.owed);
        self.jobs.push(Job { task, instructions });
        self.first_end().expect("a job was just added")
    }

    /// The job that ends now, unless all were dropped; and how long until the next one does.
    pub(super) fn finish(&mut self, now: Nanos) -> Option<(u32, Option<Nanos>)> {
        self.progress(now);
        let least = self.jobs.iter().enumerate();
        let (index, _) =
            least.min_by(|one, other| one.1.instructions.total_cmp(&other.1.instructions))?;
        let job = self.jobs.remove(index);
        if self.carries {
            self.owed += job.instructions;
        }
        Some((job.task, self.first_end()))
    }

    fn progress(&mut self, now: Nanos) {
        if !self.jobs.is_empty() {
            let done = now.since(self.since).seconds() * self.speed_each();
            for job in &mut self.jobs {
                job.instructions = (job.instructions - done).max(0.0);
            }
        }
        self.since = now;
    }

    fn first_end(&self) -> Option<Nanos> {
        let least = self.jobs.iter().map(|job| job.instructions).min_by(f64::total_cmp)?;
        Some(nanos(least / self.speed_each()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_jobs_on_one_processor_take_twice_as_long() {
        let mut cpu = Cpu::new(1, 1e6);
        assert_eq!(cpu.add(Nanos(0), 1, 1.0), Nanos(1000));
        assert_eq!(cpu.add(Nanos(0), 2, 1.0), Nanos(2000));
        assert_eq!(cpu.finish(Nanos(2000)), Some((1, Some(Nanos(0)))));
        assert_eq!(cpu.finish(Nanos(2000)), Some((2, None)));
        assert!(cpu.is_idle());
    }

    #[test]
    fn instructions_shorter_than_a_nanosecond_do_not_vanish() {
        let mut cpu = Cpu::new(1, 1e10);
        cpu.carry_fractions();
        let mut now = 0;
        for task in 0..1000 {
            now += cpu.add(Nanos(now), task, 1.0).0;
            cpu.finish(Nanos(now));
        }
        assert!((99..=100).contains(&now), "{now} ns for 1000 instructions of 0.1 ns");
    }

    #[test]
    fn two_processors_run_two_jobs_at_full_speed() {
        let mut cpu = Cpu::new(2, 1e6);
        cpu.add(Nanos(0), 1, 5.0);
        assert_eq!(cpu.add(Nanos(1000), 2, 1.0), Nanos(1000));
    }
}
