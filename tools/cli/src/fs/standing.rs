//! What stands in for files of a run follows what tools do to their names within it.

use super::shown;
use iolab_pfs::Kind;
use iolab_pfs_node::chosen::Chosen;
use iolab_pfs_node::stand_ins::{self, StandIns};
use iolab_pfs_node::{Client, files};

/// The names of a run and what stands in for their files; none outside of runs.
pub(super) struct Standing<'a> {
    client: &'a Client,
    stand_ins: StandIns,
    chosen: Chosen,
}

impl<'a> Standing<'a> {
    pub(super) fn of(client: &'a Client) -> Option<Standing<'a>> {
        let stand_ins = StandIns::of(client.directory())?;
        Some(Standing { client, stand_ins, chosen: Chosen::here() })
    }

    /// A file has this name now.
    pub(super) fn came(&self, path: &[u8]) {
        if !self.chosen.holds(path) {
            return;
        }
        let Ok(Some((attributes, _))) = files::look(self.client, path) else { return };
        if attributes.kind == Kind::File
            && let Err(error) = self.stand_ins.stand(path, attributes.mode, &self.chosen)
        {
            eprintln!("iolab: warning: {} is not seen by POSIX calls: {error}", shown(path));
        }
    }

    /// No file has this name any more.
    pub(super) fn went(&self, path: &[u8]) {
        if self.chosen.holds(path) {
            stand_ins::withdraw(path);
        }
    }
}
