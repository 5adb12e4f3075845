//! What numbers in events stand for, and what follows from it: ranks, hosts, communicators.

use super::text::{Fields, Record, leading_number, number, numbers, reference, references};
use crate::Layer;
use std::collections::{BTreeMap, BTreeSet};

/// The definitions of an archive, as they stand there: a reference may lead nowhere.
#[derive(Default)]
pub(super) struct Definitions {
    strings: BTreeMap<u64, String>,
    /// Attributes that say where in its file an operation is.
    pub offset_attributes: BTreeSet<u64>,
    nodes: BTreeMap<u64, Node>,
    pub groups: BTreeMap<u64, Group>,
    /// The process of each location.
    pub locations: BTreeMap<u64, Option<u64>>,
    /// Events that all locations together should have.
    pub expected_events: u64,
    regions: BTreeMap<u64, u64>,
    files: BTreeMap<u64, String>,
    paradigms: BTreeMap<u64, String>,
    pub handles: BTreeMap<u64, Handle>,
    /// Ranks of groups, and of no number the locations of all ranks in order.
    ranks: BTreeMap<u64, Vec<u32>>,
    rank_locations: Vec<u64>,
    communicators: BTreeMap<u64, Option<u64>>,
    pub ticks_per_second: Option<u64>,
    pub first_ticks: Option<u64>,
}

struct Node {
    name: String,
    is_machine: bool,
    parent: Option<u64>,
}

/// A process, or whatever else locations belong to.
pub(super) struct Group {
    pub name: String,
    pub is_process: bool,
    parent: Option<u64>,
}

/// What is opened and closed.
pub(super) struct Handle {
    pub name: String,
    file: Option<u64>,
    paradigm: Option<u64>,
    pub communicator: Option<u64>,
}

/// Groups are at most so deep: of nodes that lie in each other in a circle none is the machine.
const DEPTH_MAX: usize = 64;

impl Definitions {
    pub(super) fn learn(&mut self, record: &Record) {
        let said = record.said;
        let Some(id) = record.id else {
            if record.kind == "CLOCK_PROPERTIES" {
                let [ticks, offset, _] =
                    said.split(["Ticks per Seconds", "Global Offset", "Length"]);
                self.ticks_per_second = number(ticks).filter(|ticks| *ticks > 0);
                self.first_ticks = number(offset);
            }
            return;
        };
        match record.kind {
            "STRING" => {
                let text = said.0.strip_prefix('"').unwrap_or(said.0);
                let text = text.strip_suffix('"').unwrap_or(text);
                self.strings.insert(id, text.to_owned());
            }
            "ATTRIBUTE" => {
                let [name, ..] = said.split(["Name", "Description", "Type"]);
                // As Score-P names it: the absolute offset within a file.
                if self.named(name) == "Offset" {
                    self.offset_attributes.insert(id);
                }
            }
            "SYSTEM_TREE_NODE" => {
                let [name, class, parent] = said.split(["Name", "Class", "Parent"]);
                let is_machine = self.named(class).eq_ignore_ascii_case("node");
                let name = self.named(name);
                self.nodes.insert(id, Node { name, is_machine, parent: reference(parent) });
            }
            "LOCATION_GROUP" => {
                let [name, kind, parent, _] = said.split(["Name", "Type", "Parent", "Creator"]);
                let name = self.named(name);
                let is_process = kind == "PROCESS";
                self.groups.insert(id, Group { name, is_process, parent: reference(parent) });
            }
            "LOCATION" => {
                let [_, _, events, group] = said.split(["Name", "Type", "# Events", "Group"]);
                self.locations.insert(id, reference(group));
                let events = number(events).unwrap_or(0);
                self.expected_events = self.expected_events.saturating_add(events);
            }
            "REGION" => {
                let [name, _] = said.split(["Name", "Descr."]);
                let name = name.rsplit_once(" (Aka. ").map_or(name, |(name, _)| name);
                self.regions.extend(reference(name).map(|name| (id, name)));
            }
            "IO_REGULAR_FILE" | "IO_DIRECTORY" => {
                let [name, _] = said.split(["Name", "Scope"]);
                let name = self.named(name);
                self.files.insert(id, name);
            }
            "IO_PARADIGM" => {
                let [name, _] = said.split(["Identification", "Name"]);
                let name = self.named(name);
                self.paradigms.insert(id, name);
            }
            "IO_HANDLE" => self.learn_handle(id, said),
            "GROUP" => self.learn_members(id, said),
            "COMM" => {
                let [_, group, _, _] = said.split(["Name", "Group", "Parent", "Flags"]);
                self.communicators.insert(id, reference(group));
            }
            _ => {}
        }
    }

    fn learn_handle(&mut self, id: u64, said: Fields) {
        let [name, file, paradigm, _, communicator, _] =
            said.split(["Name", "File", "I/O Paradigm", "Flags", "Communicator", "Parent"]);
        let handle = Handle {
            name: self.named(name),
            file: reference(file),
            paradigm: reference(paradigm),
            communicator: reference(communicator),
        };
        self.handles.insert(id, handle);
    }

    /// Members of a group of MPI: where the names in them hide how many there are, none is believed.
    fn learn_members(&mut self, id: u64, said: Fields) {
        let [_, kind, paradigm, flags] = said.split(["Name", "Type", "Paradigm", "Flags"]);
        // `NONE, 2 Members: …`
        let Some((count, members)) = flags
            .split_once(" Members: ")
            .and_then(|(before, members)| Some((before.rsplit(", ").next()?, members)))
            .and_then(|(count, members)| Some((count.parse::<usize>().ok()?, members)))
        else {
            return;
        };
        if paradigm != "MPI" {
            return;
        }
        match kind {
            "COMM_LOCATIONS" => {
                let locations = references(members);
                if locations.len() == count {
                    self.rank_locations = locations;
                }
            }
            "COMM_GROUP" => {
                let ranks = numbers(members);
                if ranks.len() == count {
                    let ranks = ranks.into_iter().filter_map(|rank| u32::try_from(rank).ok());
                    self.ranks.insert(id, ranks.collect());
                }
            }
            _ => {}
        }
    }

    /// The text that a reference to a string stands for.
    fn named(&self, value: &str) -> String {
        let text = reference(value).and_then(|id| self.strings.get(&id));
        text.cloned().unwrap_or_default()
    }

    pub(super) fn region(&self, region: u64) -> &str {
        let name = self.regions.get(&region).and_then(|name| self.strings.get(name));
        name.map_or("", String::as_str)
    }

    /// The ranks of processes by group, as MPI's locations are ordered, else as Score-P names the groups.
    pub(super) fn rank_of_groups(&self) -> BTreeMap<u64, i32> {
        let mut ranks = BTreeMap::new();
        for (rank, location) in (0..).zip(&self.rank_locations) {
            if let Some(Some(group)) = self.locations.get(location) {
                ranks.entry(*group).or_insert(rank);
            }
        }
        if ranks.is_empty() {
            let rank = |name: &str| name.strip_prefix("MPI Rank ")?.parse().ok();
            let named = |(id, group): (&u64, &Group)| Some((*id, rank(&group.name)?));
            ranks.extend(self.groups.iter().filter_map(named));
        }
        ranks
    }

    /// The machine a group is on.
    pub(super) fn host(&self, group: &Group) -> String {
        let nodes =
            std::iter::successors(group.parent.and_then(|id| self.nodes.get(&id)), |node| {
                node.parent.and_then(|id| self.nodes.get(&id))
            });
        let mut nodes = nodes.take(DEPTH_MAX).peekable();
        let innermost = nodes.peek().map(|node| node.name.clone());
        let machine = nodes.find(|node| node.is_machine).map(|node| node.name.clone());
        machine.or(innermost).unwrap_or_default()
    }

    /// The ranks of a communicator, in its order.
    pub(super) fn communicator(&self, id: u64) -> Option<&Vec<u32>> {
        self.ranks.get(self.communicators.get(&id)?.as_ref()?)
    }

    /// The layer whose calls use a handle.
    pub(super) fn layer_of_handle(&self, handle: u64) -> Option<Layer> {
        self.layer(self.handles.get(&handle)?.paradigm?)
    }

    /// The layer of a paradigm of I/O, by the names that OTF2 keeps for them.
    pub(super) fn layer(&self, paradigm: u64) -> Option<Layer> {
        match self.paradigms.get(&paradigm)?.as_str() {
            "POSIX" => Some(Layer::Posix),
            "ISOC" => Some(Layer::Stdio),
            "MPI-IO" => Some(Layer::Mpiio),
            _ => None,
        }
    }

    /// What a handle is of, in words.
    pub(super) fn paradigm_name(&self, handle: u64) -> &str {
        let paradigm = self.handles.get(&handle).and_then(|handle| handle.paradigm);
        let name = paradigm.and_then(|id| self.paradigms.get(&id));
        name.map_or("a kind that is not defined", String::as_str)
    }

    /// The path of the file of a handle; what else it is called where it has none.
    pub(super) fn path(&self, handle: u64) -> String {
        let Some(known) = self.handles.get(&handle) else { return format!("handle {handle}") };
        match known.file.and_then(|file| self.files.get(&file)) {
            Some(path) => path.clone(),
            None if known.name.is_empty() => format!("handle {handle}"),
            None => known.name.clone(),
        }
    }

    pub(super) fn file_path(&self, file: u64) -> String {
        self.files.get(&file).cloned().unwrap_or_else(|| format!("file {file}"))
    }
}

/// The rank in the whole program that a rank of a communicator (`1 ("name" <2>)`) is.
pub(super) fn rank_in(members: Option<&Vec<u32>>, value: &str) -> Option<u32> {
    let (rank, _) = leading_number(value)?;
    match members {
        Some(members) => members.get(usize::try_from(rank).ok()?).copied(),
        None => u32::try_from(rank).ok(),
    }
}
