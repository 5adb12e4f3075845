//! The project file: which files, processes, communicators and datatypes a trace has.

use super::HdtraceError;
use super::datatype::Datatypes;
use super::xml::{Document, Element};
use iolab_vocab::parse_bytes;
use std::collections::BTreeMap;

/// A process's thread, which has a trace file of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Thread {
    /// Names on the way down the topology, host first; they make the name of the trace file.
    pub(super) path: Vec<String>,
    pub(super) host: String,
    pub(super) rank: u32,
    pub(super) thread: u32,
}

/// What a `.proj` file says.
#[derive(Debug, Default)]
pub struct Project {
    /// Its name, for errors.
    pub(super) file: String,
    /// Name of the application.
    pub(super) application: String,
    /// Files of the program with their sizes at the start.
    pub(super) files: Vec<(String, u64)>,
    pub(super) threads: Vec<Thread>,
    pub(super) communicators: Vec<Vec<u32>>,
    /// By rank and the number it knows a communicator by.
    pub(super) communicator_of: BTreeMap<(u32, i64), usize>,
    pub(super) datatypes: BTreeMap<u32, Datatypes>,
}

impl Project {
    /// Reads a project file called `file`.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Project, HdtraceError> {
        let mut document = Document::open(file, bytes)?;
        let root = document.root();
        if root.name != "Application" {
            let what = "is not a project of HDTrace, which begins with <Application>";
            return Err(root.wrong(file, what));
        }
        let application = root.attribute("name").unwrap_or("").to_owned();
        let mut project = Project { file: file.to_owned(), application, ..Project::default() };
        while let Some(section) = document.child()? {
            match section.name.as_str() {
                "FileList" => project.add_files(&section)?,
                "Topology" => project.add_topology(&section)?,
                "CommunicatorList" => project.add_communicators(&section)?,
                "Datatypes" => project.add_datatypes(&section)?,
                _ => {}
            }
        }
        if project.threads.is_empty() {
            return Err(HdtraceError::at(file, 1, "the topology names no process".to_owned()));
        }
        project.threads.sort_by_key(|thread| (thread.rank, thread.thread));
        Ok(project)
    }

    /// Names of the trace files that belong to it, when it is called `stem.proj`.
    pub fn trace_names(&self, stem: &str) -> Vec<String> {
        let name = |thread: &Thread| format!("{stem}_{}.trc", thread.path.join("_"));
        self.threads.iter().map(name).collect()
    }

    fn add_files(&mut self, section: &Element) -> Result<(), HdtraceError> {
        for file in section.named("File") {
            let name = file.wanted(&self.file, "name")?.to_owned();
            let size = match file.named("InitialSize").next() {
                Some(size) => {
                    parse_bytes(size.text()).map_err(|error| size.wrong(&self.file, error))?
                }
                None => 0,
            };
            self.files.push((name, size));
        }
        Ok(())
    }

    fn add_topology(&mut self, section: &Element) -> Result<(), HdtraceError> {
        let mut levels = Vec::new();
        let mut level = section.named("Level").next();
        while let Some(one) = level {
            levels.push(one.attribute("type").unwrap_or("").to_owned());
            level = one.named("Level").next();
        }
        let mut path = Vec::new();
        section.named("Node").try_for_each(|node| self.add_node(node, &levels, &mut path))
    }

    /// Descends the topology; the document's depth is bounded, so the recursion is.
    fn add_node(
        &mut self,
        node: &Element,
        levels: &[String],
        path: &mut Vec<String>,
    ) -> Result<(), HdtraceError> {
        path.push(node.wanted(&self.file, "name")?.to_owned());
        let mut is_leaf = true;
        for child in node.named("Node") {
            is_leaf = false;
            self.add_node(child, levels, path)?;
        }
        if is_leaf {
            let thread = self.thread(node, levels, path)?;
            self.threads.push(thread);
        }
        path.pop();
        Ok(())
    }

    fn thread(
        &self,
        node: &Element,
        levels: &[String],
        path: &[String],
    ) -> Result<Thread, HdtraceError> {
        let level = |name: &str| levels.iter().position(|level| level == name);
        let at = |name: &str| level(name).and_then(|index| path.get(index));
        let number = |name: &str| match at(name) {
            None => Ok(None),
            Some(text) => text
                .parse::<u32>()
                .map(Some)
                .map_err(|_| node.wrong(&self.file, format!("{name} `{text}` is no number"))),
        };
        let Some(rank) = number("Rank")? else {
            return Err(node.wrong(&self.file, "this place of the topology has no rank"));
        };
        let host = at("Hostname").cloned().unwrap_or_default();
        Ok(Thread { path: path.to_vec(), host, rank, thread: number("Thread")?.unwrap_or(0) })
    }

    fn add_communicators(&mut self, section: &Element) -> Result<(), HdtraceError> {
        for communicator in section.named("Communicator") {
            let mut members = Vec::new();
            for member in communicator.named("Rank") {
                let rank = |name: &str| {
                    let number = member.number(&self.file, name)?;
                    u32::try_from(number).map_err(|_| {
                        member.wrong(&self.file, format!("{name}='{number}' is no rank"))
                    })
                };
                let (global, local) = (rank("global")?, rank("local")?);
                members.push((local, global));
                let key = (global, member.number(&self.file, "cid")?);
                self.communicator_of.insert(key, self.communicators.len());
            }
            members.sort_unstable();
            self.communicators.push(members.into_iter().map(|(_, global)| global).collect());
        }
        Ok(())
    }

    fn add_datatypes(&mut self, section: &Element) -> Result<(), HdtraceError> {
        for rank in section.named("Rank") {
            let number = rank.number(&self.file, "name")?;
            let types = self.datatypes.entry(number.try_into().unwrap_or(u32::MAX)).or_default();
            for element in &rank.children {
                types.add(&self.file, element)?;
            }
        }
        Ok(())
    }
}
