//! By which names the kernel has come to files: of a directory and a name which file, of a file its names.
//!
//! Directories are not among them: each has one name, which the system tells whoever holds a descriptor of it.
//! Of a file with many names the latest are kept, so what all this takes grows with the files that the
//! kernel remembers, not with its names.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};

/// More names of one file are not kept. Programs come by few; those that make links in thousands do not
/// come back to each.
const NAMES_MAX: usize = 16;

/// A name in a directory, by the directory's number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) parent: u64,
    pub(crate) name: OsString,
}

impl Name {
    pub(crate) fn new(parent: u64, name: &OsStr) -> Name {
        Name { parent, name: name.to_owned() }
    }
}

/// All of them.
#[derive(Default)]
pub(super) struct Names {
    by_directory: BTreeMap<u64, BTreeMap<OsString, u64>>,
    by_file: HashMap<u64, Known>,
    /// How often a name was made to lead elsewhere.
    pub(super) changes: u64,
}

#[derive(Default)]
struct Known {
    /// With the thread that came by it last; the latest is at the end.
    names: Vec<(Name, u32)>,
    /// The last one that it had, where it has none.
    last: Option<Name>,
}

impl Names {
    /// A thread comes to a file by that name.
    pub(super) fn came(&mut self, name: Name, file: u64, thread: u32) {
        match self.leads_to(&name) {
            Some(known) if known == file => {}
            Some(_) => self.went(&name),
            None => {}
        }
        let directory = self.by_directory.entry(name.parent).or_default();
        directory.insert(name.name.clone(), file);
        let known = self.by_file.entry(file).or_default();
        known.last = None;
        known.names.retain(|(other, _)| *other != name);
        known.names.push((name, thread));
        if known.names.len() > NAMES_MAX {
            let (oldest, _) = known.names.remove(0);
            self.leads_nowhere(&oldest);
        }
    }

    /// A name leads nowhere.
    pub(super) fn went(&mut self, name: &Name) {
        let Some(known) = self.leads_nowhere(name).and_then(|file| self.by_file.get_mut(&file))
        else {
            return;
        };
        known.names.retain(|(other, _)| other != name);
        if known.names.is_empty() {
            known.last = Some(name.clone());
        }
    }

    /// A name is another one now, perhaps in place of what that led to.
    pub(super) fn moved(&mut self, from: &Name, to: &Name) {
        let (file, replaced) = (self.leads_to(from), self.leads_to(to));
        // Two names of one file stay what they are.
        if file.is_some() && file == replaced {
            return;
        }
        self.went(to);
        self.went(from);
        if let Some(file) = file {
            self.came(to.clone(), file, 0);
        }
    }

    /// Two names have changed places.
    pub(super) fn exchanged(&mut self, one: &Name, other: &Name) {
        let (first, second) = (self.leads_to(one), self.leads_to(other));
        self.went(one);
        self.went(other);
        for (file, name) in [(first, other), (second, one)] {
            if let Some(file) = file {
                self.came(name.clone(), file, 0);
            }
        }
    }

    /// The kernel has forgotten a file, or a directory.
    pub(super) fn forgotten(&mut self, number: u64) {
        let known = self.by_file.remove(&number).unwrap_or_default();
        for (name, _) in known.names {
            self.leads_nowhere(&name);
        }
        for (name, file) in self.by_directory.remove(&number).unwrap_or_default() {
            if let Some(known) = self.by_file.get_mut(&file) {
                let name = Name { parent: number, name };
                known.names.retain(|(other, _)| *other != name);
            }
        }
    }

    /// The names of a file: first those by which that thread came last, then the latest.
    pub(super) fn of(&self, file: u64, thread: u32) -> Vec<Name> {
        let Some(known) = self.by_file.get(&file) else { return Vec::new() };
        let latest = || known.names.iter().rev();
        let own = latest().filter(|(_, by)| *by == thread);
        let others = latest().filter(|(_, by)| *by != thread);
        own.chain(others).map(|(name, _)| name.clone()).collect()
    }

    /// The last name of a file that has none any more.
    pub(super) fn last(&self, file: u64) -> Option<Name> {
        self.by_file.get(&file)?.last.clone()
    }

    fn leads_to(&self, name: &Name) -> Option<u64> {
        self.by_directory.get(&name.parent)?.get(&name.name).copied()
    }

    /// Takes a name out of its directory, and the directory if it was the only one.
    fn leads_nowhere(&mut self, name: &Name) -> Option<u64> {
        let directory = self.by_directory.get_mut(&name.parent)?;
        let file = directory.remove(&name.name);
        if directory.is_empty() {
            self.by_directory.remove(&name.parent);
        }
        file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const D: u64 = 1;
    const E: u64 = 2;
    const FILE: u64 = 10;
    const OTHER: u64 = 11;

    fn name(parent: u64, name: &str) -> Name {
        Name::new(parent, OsStr::new(name))
    }

    fn came(names: &mut Names, places: &[(&str, u64)]) {
        for &(place, file) in places {
            names.came(name(D, place), file, 7);
        }
    }

    fn of(names: &Names, file: u64) -> Vec<String> {
        let found = names.of(file, 0).into_iter();
        found.map(|it| format!("{}/{}", it.parent, it.name.to_string_lossy())).collect()
    }

    #[test]
    fn a_file_keeps_the_name_that_is_left_when_its_first_one_goes() {
        let mut names = Names::default();
        came(&mut names, &[("a", FILE), ("b", FILE)]);
        names.went(&name(D, "a"));
        assert_eq!(of(&names, FILE), ["1/b"]);
        names.went(&name(D, "b"));
        assert_eq!((of(&names, FILE).len(), names.last(FILE)), (0, Some(name(D, "b"))));
    }

    #[test]
    fn a_renamed_file_has_the_new_name_and_what_it_replaced_has_none() {
        let mut names = Names::default();
        came(&mut names, &[("a", FILE), ("b", OTHER)]);
        names.moved(&name(D, "a"), &name(D, "b"));
        assert_eq!(of(&names, FILE), ["1/b"]);
        assert_eq!((of(&names, OTHER).len(), names.last(OTHER)), (0, Some(name(D, "b"))));
        names.moved(&name(D, "b"), &name(E, "c"));
        assert_eq!(of(&names, FILE), ["2/c"]);
    }

    #[test]
    fn a_file_renamed_to_another_name_of_its_own_keeps_both() {
        let mut names = Names::default();
        came(&mut names, &[("a", FILE), ("b", FILE)]);
        names.moved(&name(D, "a"), &name(D, "b"));
        assert_eq!(of(&names, FILE), ["1/b", "1/a"]);
    }

    #[test]
    fn names_that_change_places_lead_to_each_others_files() {
        let mut names = Names::default();
        came(&mut names, &[("a", FILE), ("b", OTHER)]);
        names.exchanged(&name(D, "a"), &name(D, "b"));
        assert_eq!((of(&names, FILE), of(&names, OTHER)), (vec!["1/b".into()], vec!["1/a".into()]));
        // A directory, which is not among them, in the place of a file.
        names.exchanged(&name(D, "b"), &name(E, "d"));
        assert_eq!((of(&names, FILE), of(&names, OTHER)), (vec!["2/d".into()], vec!["1/a".into()]));
    }

    #[test]
    fn a_name_that_leads_to_another_file_is_the_first_ones_no_more() {
        let mut names = Names::default();
        came(&mut names, &[("a", FILE), ("a", OTHER)]);
        assert_eq!((of(&names, FILE).len(), of(&names, OTHER)), (0, vec!["1/a".into()]));
    }

    #[test]
    fn the_name_by_which_a_thread_came_is_its_first_one() {
        let mut names = Names::default();
        names.came(name(D, "a"), FILE, 7);
        names.came(name(D, "b"), FILE, 8);
        assert_eq!(names.of(FILE, 7)[0], name(D, "a"));
        assert_eq!(names.of(FILE, 8)[0], name(D, "b"));
        assert_eq!(names.of(FILE, 9)[0], name(D, "b"));
    }

    #[test]
    fn what_the_kernel_forgets_leaves_nothing_and_of_many_names_few_are_kept() {
        let mut names = Names::default();
        for at in 0..1000 {
            names.came(name(D, &at.to_string()), FILE, 7);
        }
        assert_eq!((of(&names, FILE).len(), names.by_directory[&D].len()), (NAMES_MAX, NAMES_MAX));
        came(&mut names, &[("a", OTHER)]);
        names.forgotten(FILE);
        names.forgotten(D);
        assert_eq!(of(&names, OTHER).len(), 0);
        names.forgotten(OTHER);
        assert!(names.by_directory.is_empty() && names.by_file.is_empty());
    }
}
