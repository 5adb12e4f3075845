//! Which files of several parts are one.

use crate::{FileEntry, Header};
use iolab_vocab::FileId;
use std::collections::BTreeMap;

/// File systems that several machines may share; any other is each machine's own.
const SHARED_FILE_SYSTEMS: [&str; 14] = [
    "nfs", "lustre", "gpfs", "beegfs", "ceph", "panfs", "cifs", "smb", "orangefs", "pvfs", "9p",
    "fuse", "dvs", "afs",
];

/// Files of the joined trace by what makes two of them one.
pub(super) struct Files {
    by_name: BTreeMap<(String, String), FileId>,
    one_machine: bool,
}

impl Files {
    pub(super) fn new(one_machine: bool) -> Files {
        Files { by_name: BTreeMap::new(), one_machine }
    }

    pub(super) fn place(
        &mut self,
        entry: &FileEntry,
        machine: &str,
        joined: &mut Header,
    ) -> FileId {
        let kind = entry.file_system.as_str();
        let shared = self.one_machine
            || kind.is_empty()
            || SHARED_FILE_SYSTEMS.iter().any(|it| kind.starts_with(it));
        let owner = if shared { "" } else { machine };
        let key = (owner.to_owned(), entry.path.clone());
        if let Some(&id) = self.by_name.get(&key) {
            return id;
        }
        let taken = joined.files.iter().any(|it| it.path == entry.path);
        let path = match taken {
            true => format!("/{owner}:{}", entry.path),
            false => entry.path.clone(),
        };
        let id = FileId(joined.files.len() as u32);
        joined.files.push(FileEntry { path, ..entry.clone() });
        self.by_name.insert(key, id);
        id
    }
}
