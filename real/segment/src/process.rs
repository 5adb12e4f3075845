//! The processes of a run: each has a slot, taken when it first has a file to tell of. A slot is
//! given up by whoever finds its process dead.

use crate::attach::Run;
use crate::layout::{PROCESSES, Process};
use crate::system;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

/// A process is another one than the one that came here when it started this much later.
const CLOCK_STEP_NS: u64 = 20_000_000;

impl Run {
    /// This process's slot plus one, taken now if it has none; 0 when all are taken.
    pub fn me(&self) -> u32 {
        match self.slot.load(Relaxed) {
            0 => self.take_slot(),
            slot => slot,
        }
    }

    #[cold]
    fn take_slot(&self) -> u32 {
        let pid = system::own_pid();
        if let Some(left) = self.slot_left_by(pid) {
            left.since.store(1, Release);
            self.sweep_processes();
        }
        let slot = self.free_slot(pid).or_else(|| {
            self.sweep_processes();
            self.free_slot(pid)
        });
        let slot = slot.unwrap_or(0);
        if slot == 0 {
            self.table().header.crowded.store(1, Release);
        }
        self.slot.store(slot, Relaxed);
        slot
    }

    /// What an earlier program of this same process (before it executed another) had.
    fn slot_left_by(&self, pid: u32) -> Option<&Process> {
        let used = self.table().header.processes_used.load(Acquire) as usize;
        let mut processes = self.table().processes.iter().take(used).skip(1);
        processes.find(|process| process.pid.load(Relaxed) == pid)
    }

    /// At the start of a program: an earlier one of this same process may have left things
    /// undone, in the middle of which another thread executed this one.
    pub fn follow_earlier_program(&self) {
        if !self.is_far() && self.slot_left_by(system::own_pid()).is_some() {
            self.me();
        }
    }

    fn free_slot(&self, pid: u32) -> Option<u32> {
        for (at, process) in self.table().processes.iter().enumerate().skip(1) {
            if process.pid.load(Relaxed) == 0
                && process.pid.compare_exchange(0, pid, AcqRel, Relaxed).is_ok()
            {
                self.introduce(process);
                self.table().header.processes_used.fetch_max(at as u32 + 1, AcqRel);
                return Some(at as u32 + 1);
            }
        }
        None
    }

    pub(crate) fn introduce(&self, process: &Process) {
        let space = system::pid_namespace();
        let is_foreign = space != self.table().header.pid_namespace.load(Relaxed);
        process.is_foreign.store(u32::from(is_foreign), Relaxed);
        process.sees_otherwise.store(u32::from(self.sees_otherwise()), Relaxed);
        process.moving.store(0, SeqCst);
        process.since.store(system::since_boot_ns(), Release);
    }

    fn sees_otherwise(&self) -> bool {
        let names_in = self.table().header.names_in.each_ref().map(|word| word.load(Relaxed));
        system::names_in() != Some(names_in)
    }

    /// A thread of this process may have gone to another root or another space of mounts; where one
    /// has gone, the process counts as gone for good.
    pub fn look_around(&self) {
        if let Some(process) = self.process(self.slot.load(Relaxed))
            && self.sees_otherwise()
        {
            process.sees_otherwise.store(1, Relaxed);
        }
    }

    /// In a forked child: it has to take a slot of its own.
    pub fn forget_slot(&self) {
        self.slot.store(0, Relaxed);
    }

    /// Whether this process may own files: others must be able to see whether it lives, and to find
    /// its files by their names when it does not.
    pub fn can_own(&self) -> bool {
        let me = self.me();
        self.process(me).is_some_and(|process| {
            process.is_foreign.load(Relaxed) == 0 && process.sees_otherwise.load(Relaxed) == 0
        })
    }

    pub(crate) fn process(&self, slot: u32) -> Option<&Process> {
        self.table().processes.get((slot as usize).checked_sub(1)?)
    }

    /// The number of a process, if it has one that means something here.
    pub(crate) fn pid_of(&self, slot: u32) -> Option<u32> {
        let process = self.process(slot)?;
        let pid = process.pid.load(Relaxed);
        (pid != 0 && process.is_foreign.load(Relaxed) == 0).then_some(pid)
    }

    /// Whether a process has ended for certain.
    pub(crate) fn is_dead(&self, slot: u32) -> bool {
        let Some(process) = self.process(slot) else { return true };
        let (pid, since) = (process.pid.load(Acquire), process.since.load(Acquire));
        if pid == 0 {
            return true;
        }
        // Still coming, or of a place from where nobody can tell.
        if since == 0 || process.is_foreign.load(Relaxed) != 0 || self.is_far() {
            return false;
        }
        match system::process_status(pid) {
            // This process may have no descriptor left, or no `/proc`.
            None => system::is_gone(pid),
            Some((state, threads, started)) => {
                let is_gone = matches!(state, b'Z' | b'X') && threads <= 1;
                is_gone || started > since + CLOCK_STEP_NS
            }
        }
    }

    /// Whether launcher and processes have all ended for certain.
    pub fn is_abandoned(&self) -> bool {
        let header = &self.table().header;
        let used = (header.processes_used.load(Acquire) as usize).min(PROCESSES);
        // A number of another space means another process here.
        let space = system::pid_namespace();
        space != 0
            && header.pid_namespace.load(Relaxed) == space
            && (1..=used as u32).all(|slot| self.is_dead(slot))
    }

    /// Looks for processes that have ended, and gives up what they had.
    pub fn sweep_processes(&self) {
        let sweeper = &self.table().header.sweeper;
        let pid = system::own_pid();
        if let Err(other) = sweeper.compare_exchange(0, pid, AcqRel, Relaxed) {
            // One at a time; the one that died at it is relieved.
            let is_gone =
                system::process_status(other).is_none_or(|it| matches!(it.0, b'Z' | b'X'));
            if !is_gone || sweeper.compare_exchange(other, pid, AcqRel, Relaxed).is_err() {
                return;
            }
        }
        self.sweep_all();
        sweeper.store(0, Release);
    }

    fn sweep_all(&self) {
        let used = self.table().header.processes_used.load(Acquire) as usize;
        for at in 1..used.min(PROCESSES) {
            if self.table().processes[at].pid.load(Relaxed) != 0 && self.is_dead(at as u32 + 1) {
                self.bury(at as u32 + 1);
            }
        }
    }

    /// Gives up what a dead process had. What it held and nobody could write out stays, and so
    /// does its slot.
    fn bury(&self, slot: u32) {
        let Some(process) = self.process(slot) else { return };
        let pid = process.pid.load(Relaxed);
        let mut is_empty = true;
        for entry in &self.table().entries {
            if !entry.is_used() {
                continue;
            }
            if entry.owner.load(Relaxed) == slot {
                let _ = self.disturb(entry);
                is_empty &= entry.owner.load(Relaxed) != slot;
            }
            self.forget_user(entry, slot, pid);
            self.forget_claim(entry, slot);
        }
        if process.moving.load(SeqCst) != 0 {
            // It ended in the middle of a call that changes names, which may have changed.
            self.table().header.names.fetch_add(1, SeqCst);
            process.moving.store(0, SeqCst);
        }
        if is_empty {
            self.free_slabs_of(slot);
            process.since.store(0, Relaxed);
            let _ = process.pid.compare_exchange(pid, 0, AcqRel, Relaxed);
        }
    }
}
