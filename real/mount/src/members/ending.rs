//! The end of a run: what the container has not yet, its index, and what is to be said of it.

use super::Members;
use super::containers::Containers;
use crate::open::Hosted;
use iolab_packs::{Writer, shown};
use iolab_policy::insitu::defer_close::{Call, Unpack};
use std::path::PathBuf;

/// What members came to.
#[derive(Debug)]
pub struct Packed {
    /// The container, if one was needed.
    pub pack: Option<PathBuf>,
    /// What is to become of it.
    pub unpack: Unpack,
    /// Files that were made as members.
    pub created: u64,
    /// Files of them that became real while the run went on.
    pub made: u64,
    /// Files that are members still.
    pub kept: u64,
    /// Bytes of the container.
    pub bytes: u64,
    /// What could be written neither to the container nor as a real file, with the reason.
    pub lost: Vec<String>,
}

impl Members {
    /// Nobody has a file open any more: the container gets what it has not, and its index.
    pub(crate) fn end(&self, hosted: &Hosted) -> Packed {
        let mut state = self.state();
        let mut lost = Vec::new();
        for id in state.names.dirty() {
            let place = state.names.place(id).cloned();
            if let Err(error) = self.carry_out(hosted, &mut state, &Call::Close(id)) {
                let name = place.map(|it| shown(&it.name));
                lost.push(format!("{}: {error}", name.unwrap_or_default()));
            }
        }
        let (created, made) = (state.created, state.made);
        let (kept, bytes) = (state.names.count() as u64, state.containers.own.writer.bytes());
        for what in state.containers.leave() {
            state.say(format!("defer-close: {what}"));
        }
        let ended = Containers::new(Writer::new(&self.source, None));
        let (pack, indexed) = std::mem::replace(&mut state.containers, ended).own.writer.end();
        if let Err(error) = indexed {
            state.say(format!("defer-close: the container has no index: {error}"));
        }
        Packed { pack, unpack: self.settings.unpack, created, made, kept, bytes, lost }
    }
}
