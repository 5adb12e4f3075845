//! All processes of a recorded run as their strategies would have seen them: a [`Guest`] for each,
//! and who has which file open.
//!
//! What one process holds of a file, or keeps of it, must not be missed by another. So where a stack
//! does either, the rules of the preloaded library hold here as well (design note 6):
//!
//! * nothing is held of a file that two processes have open: what the first one held goes out when the
//!   second one opens it, whose calls pass. If the first one comes back before the second one has
//!   closed it, its calls pass as well, until it opens the file anew,
//! * who looks at a file by its name sees what another process holds of it: that goes out first.
//!
//! Strategies that hold and keep nothing are not concerned. Of what a child inherits a trace tells at
//! its first call on it; until then the child does not count as one that has the file open.

use super::guest::{Guest, Step};
use super::rules::{Effect, Files, effect};
use super::{StrategySpec, rules};
use iolab_trace::{Class, Event};
use iolab_vocab::FileId;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// What a driver does next, and by the stacks of which process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessStep {
    /// The process whose stack it is about. What a step costs, who made the call pays.
    pub process: u32,
    /// What is done.
    pub step: Step,
}

/// The staged descriptions of all processes of a run.
#[derive(Clone, Debug)]
pub struct Guests {
    specs: Vec<StrategySpec>,
    guests: BTreeMap<u32, Guest>,
    /// `None` if no strategy holds or keeps bytes.
    open_files: Option<OpenFiles>,
    steps: Vec<Step>,
}

impl Guests {
    /// No process has made a call yet; strategies top first.
    pub fn new(specs: &[StrategySpec]) -> Guests {
        Guests {
            specs: specs.to_vec(),
            guests: BTreeMap::new(),
            open_files: specs.iter().any(StrategySpec::owns_files).then(OpenFiles::default),
            steps: Vec::new(),
        }
    }

    /// What to do for `event`, as [`Guest::step`]; steps on stacks of other processes come first.
    pub fn step(&mut self, event: &Event, path: &str, out: &mut Vec<ProcessStep>) {
        let process = event.process;
        if self.specs.is_empty() {
            return out.push(ProcessStep { process, step: Step::Native });
        }
        let is_shared = self.seen_by_others(event, out);
        self.settle_in(event, out);
        let specs = &self.specs;
        let guest = self.guests.entry(process).or_insert_with(|| Guest::new(specs));
        guest.is_shared = is_shared;
        guest.step(event, path, &mut self.steps);
        self.hand_over(process, out);
        if let Some(open_files) = &mut self.open_files {
            open_files.follow(event);
        }
    }

    /// A process has made its last call. What it has not closed goes out, as it does at the end of a process.
    pub fn finish(&mut self, process: u32, out: &mut Vec<ProcessStep>) {
        if let Some(guest) = self.guests.get(&process) {
            guest.finish(&mut self.steps);
            self.hand_over(process, out);
        }
    }

    /// A process has ended: it has nothing open any more. It has finished before.
    pub fn ended(&mut self, process: u32) {
        if let Some(open_files) = &mut self.open_files {
            open_files.part_all(process);
        }
    }

    /// The steps of a process's guest are steps of the run.
    fn hand_over(&mut self, process: u32, out: &mut Vec<ProcessStep>) {
        out.extend(self.steps.drain(..).map(|step| ProcessStep { process, step }));
    }

    /// Before a call: what others hold of the files it names goes out. Whether others have the file open
    /// that it opens.
    fn seen_by_others(&mut self, event: &Event, out: &mut Vec<ProcessStep>) -> bool {
        let class = event.function.class();
        if event.result < 0 || class.moves_data() || matches!(class, Class::Seek | Class::Close) {
            return false;
        }
        if class == Class::Open {
            return event.length >= 0 && self.drain(event.file, event.process, out);
        }
        let Effect::Before(rules) = effect(event.function, rules::Detail::default()) else {
            return false;
        };
        for (_, files) in rules {
            match files {
                Files::Named => _ = self.drain(event.file, event.process, out),
                Files::Second => _ = self.drain(event.second_file(), event.process, out),
                Files::All | Files::HandedOn => {}
            }
        }
        self.follow_name(event);
        false
    }

    /// What others than this process hold of a file goes out; one at most holds any. Whether any of them has
    /// it open.
    fn drain(&mut self, file: FileId, than: u32, out: &mut Vec<ProcessStep>) -> bool {
        let Some(open_files) = &self.open_files else { return false };
        let others = open_files.others(file, than);
        for &process in &others {
            let Some(guest) = self.guests.get_mut(&process) else { continue };
            if guest.drain(file, &mut self.steps)
                && let Some(open_files) = &mut self.open_files
            {
                open_files.disturb(file, process);
            }
            self.hand_over(process, out);
        }
        !others.is_empty()
    }

    /// A process comes back to a file that another one has been at.
    fn settle_in(&mut self, event: &Event, out: &mut Vec<ProcessStep>) {
        let process = event.process;
        let Some(open_files) = &mut self.open_files else { return };
        for file in open_files.disturbed(event) {
            let is_shared = !open_files.others(file, process).is_empty();
            if let Some(guest) = self.guests.get_mut(&process) {
                guest.drained(file, is_shared, &mut self.steps);
            }
        }
        self.hand_over(process, out);
    }

    /// A file that others have open may change its name by this process's hand.
    fn follow_name(&mut self, event: &Event) {
        let Some(open_files) = &self.open_files else { return };
        if !matches!(event.function.class(), Class::Rename | Class::Unlink) {
            return;
        }
        let names = [event.file, event.second_file()].into_iter();
        let others: Vec<u32> =
            names.flat_map(|file| open_files.others(file, event.process)).collect();
        for other in others {
            if let Some(guest) = self.guests.get_mut(&other) {
                guest.follow_name(event);
            }
        }
    }
}

/// A regular file that some process has open.
#[derive(Clone, Debug)]
struct Entry {
    /// How many descriptors lead to it, by process.
    openers: BTreeMap<u32, u32>,
    /// Its name now.
    name: FileId,
    /// The process that held bytes of it when another one came, until it makes a call on it.
    disturbed: Option<u32>,
}

/// Which process has which file open by which descriptors.
#[derive(Clone, Debug, Default)]
struct OpenFiles {
    entries: BTreeMap<u64, Entry>,
    /// Numbers of entries are not used again: a name may lead to one that is gone.
    next_entry: u64,
    names: BTreeMap<FileId, u64>,
    descriptors: BTreeMap<(u32, i32), u64>,
    /// How many entries have a process that was disturbed.
    disturbed_count: usize,
}

impl OpenFiles {
    /// Who else has a file open.
    fn others(&self, file: FileId, process: u32) -> Vec<u32> {
        let entry = self.names.get(&file).and_then(|entry| self.entries.get(entry));
        let openers = entry.into_iter().flat_map(|entry| entry.openers.keys().copied());
        openers.filter(|opener| *opener != process).collect()
    }

    fn disturb(&mut self, file: FileId, process: u32) {
        let entry = self.names.get(&file).and_then(|entry| self.entries.get_mut(entry));
        if let Some(entry) = entry {
            self.disturbed_count += usize::from(entry.disturbed.is_none());
            entry.disturbed = Some(process);
        }
    }

    /// The files of a call whose process was disturbed at them; it is told once.
    fn disturbed(&mut self, event: &Event) -> Vec<FileId> {
        if self.disturbed_count == 0 {
            return Vec::new();
        }
        let by_descriptor = self.descriptors.get(&(event.process, event.fd)).copied();
        let named = [event.file, event.second_file()].map(|file| self.names.get(&file).copied());
        let mut files = Vec::new();
        for entry in named.into_iter().chain([by_descriptor]).flatten() {
            let Some(entry) = self.entries.get_mut(&entry) else { continue };
            if entry.disturbed == Some(event.process) {
                entry.disturbed = None;
                self.disturbed_count -= 1;
                files.push(entry.name);
            }
        }
        files
    }

    /// What a call that has been made leaves open.
    fn follow(&mut self, event: &Event) {
        if event.result < 0 {
            return;
        }
        let process = event.process;
        match event.function.class() {
            Class::Open if event.length >= 0 && event.file != FileId::NONE => {
                let known = self.names.get(&event.file).copied();
                let entry = known.filter(|entry| self.entries.contains_key(entry));
                let entry = entry.unwrap_or_else(|| self.begin(event.file));
                self.join(process, event.result as i32, entry);
            }
            Class::Dup => match self.descriptors.get(&(process, event.fd)).copied() {
                Some(entry) if event.result != i64::from(event.fd) => {
                    self.join(process, event.result as i32, entry);
                }
                _ => {}
            },
            Class::Close => self.part_range(process, event.closed_descriptors()),
            Class::Rename if event.function.exchanges() => {
                let names = [event.file, event.second_file()];
                let entries = names.map(|name| self.names.remove(&name));
                for (name, entry) in names.into_iter().zip(entries.into_iter().rev()) {
                    if let Some(entry) = entry {
                        self.names.insert(name, entry);
                        self.rename(entry, name);
                    }
                }
            }
            Class::Rename => {
                let new_name = event.second_file();
                let keeps_name = event.function.keeps_name();
                let named = match keeps_name {
                    true => self.names.get(&event.file).copied(),
                    false => self.names.remove(&event.file),
                };
                match named {
                    Some(entry) => _ = self.names.insert(new_name, entry),
                    None => _ = self.names.remove(&new_name),
                }
                if let Some(entry) = named.filter(|_| !keeps_name) {
                    self.rename(entry, new_name);
                }
            }
            Class::Unlink => {
                if let Some(entry) = self.names.remove(&event.file) {
                    self.rename(entry, FileId::NONE);
                }
            }
            _ => {}
        }
    }

    fn begin(&mut self, file: FileId) -> u64 {
        let entry = self.next_entry;
        self.next_entry += 1;
        let opened = Entry { openers: BTreeMap::new(), name: file, disturbed: None };
        self.entries.insert(entry, opened);
        self.names.insert(file, entry);
        entry
    }

    fn rename(&mut self, entry: u64, name: FileId) {
        if let Some(opened) = self.entries.get_mut(&entry) {
            opened.name = name;
        }
    }

    fn join(&mut self, process: u32, fd: i32, entry: u64) {
        if let Some(opened) = self.entries.get_mut(&entry) {
            *opened.openers.entry(process).or_default() += 1;
        }
        // A number that is used again was closed, seen or not.
        if let Some(before) = self.descriptors.insert((process, fd), entry) {
            self.leave(process, before);
        }
    }

    fn part_range(&mut self, process: u32, descriptors: RangeInclusive<i32>) {
        let (first, last) = descriptors.into_inner();
        let range = self.descriptors.range((process, first)..=(process, last));
        let closed: Vec<i32> = range.map(|((_, fd), _)| *fd).collect();
        for fd in closed {
            if let Some(entry) = self.descriptors.remove(&(process, fd)) {
                self.leave(process, entry);
            }
        }
    }

    fn part_all(&mut self, process: u32) {
        self.part_range(process, i32::MIN..=i32::MAX);
    }

    fn leave(&mut self, process: u32, entry: u64) {
        let Some(opened) = self.entries.get_mut(&entry) else { return };
        if let Some(count) = opened.openers.get_mut(&process) {
            *count -= 1;
            if *count == 0 {
                opened.openers.remove(&process);
            }
        }
        if opened.openers.is_empty()
            && let Some(gone) = self.entries.remove(&entry)
        {
            self.disturbed_count -= usize::from(gone.disturbed.is_some());
        }
    }
}
