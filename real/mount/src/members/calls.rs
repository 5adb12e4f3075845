//! Calls on members and names, carried out as `Names` plans them.

use super::containers::Container;
use super::older::times;
use super::{Members, State};
use crate::open::Hosted;
use crate::tree::{Answer, Inode};
use iolab_pack::{Attributes, Record, Time};
use iolab_packs::{Made, make, shown, write_all};
use iolab_policy::insitu::defer_close::{Action, Append, Call, Ending, MemberId, Place, Target};
use rustix::fd::AsFd;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

impl Members {
    /// A descriptor was closed, or attributes were set of a file nobody writes: the container gets what it has not.
    pub(crate) fn close(&self, hosted: &Hosted, inode: &Inode) -> Answer<()> {
        let Some(member) = inode.member.as_ref().filter(|it| !it.is_real()) else { return Ok(()) };
        let mut state = self.state();
        if !state.names.is_dirty(member.id) {
            return Ok(());
        }
        self.carry_out(hosted, &mut state, &Call::Close(member.id)).map(|_| ())
    }

    /// Attributes of a member were set: who has been closed before hears of no other close.
    pub(crate) fn attributed(&self, hosted: &Hosted, inode: &Inode) -> Answer<()> {
        let Some(member) = inode.member.as_ref().filter(|it| !it.is_real()) else { return Ok(()) };
        self.note_dirty(member.id);
        let is_recorded = self.state().names.is_recorded(member.id);
        if is_recorded { self.close(hosted, inode) } else { Ok(()) }
    }

    /// Everything that was done so far becomes durable.
    pub(crate) fn sync(&self, hosted: &Hosted) -> Answer<()> {
        let mut state = self.state();
        self.carry_out(hosted, &mut state, &Call::Sync).map(|_| ())
    }

    /// The file is asked for something that only a real one has.
    pub(crate) fn materialise(&self, hosted: &Hosted, inode: &Inode) -> Answer<()> {
        let Some(member) = inode.member.as_ref().filter(|it| !it.is_real()) else { return Ok(()) };
        let mut state = self.state();
        self.carry_out(hosted, &mut state, &Call::Other(member.id)).map(|_| ())
    }

    /// A name is to go; true if the source is to be asked.
    pub(crate) fn unlink(&self, hosted: &Hosted, parent: &Inode, name: &OsStr) -> Answer<bool> {
        let mut state = self.state();
        let Some(place) = state.place(parent, name) else { return Ok(true) };
        self.carry_out(hosted, &mut state, &Call::Unlink(place))
    }

    /// A directory is to go; true if the source is to be asked.
    pub(crate) fn remove_directory(
        &self,
        hosted: &Hosted,
        parent: &Inode,
        name: &OsStr,
    ) -> Answer<bool> {
        let Ok(stat) = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) else {
            return Ok(true);
        };
        let identity = crate::tree::Identity::of(&stat);
        let mut state = self.state();
        if let Some(&number) = state.numbers.get(&identity) {
            if !self.carry_out(hosted, &mut state, &Call::RemoveDirectory(number))? {
                return Ok(false);
            }
            state.numbers.remove(&identity);
            state.directories.remove(&number);
        }
        state.own.remove(&identity);
        state.without_access.remove(&identity);
        Ok(true)
    }

    /// A name is to be another one; true if the source is to be asked.
    pub(crate) fn rename(
        &self,
        hosted: &Hosted,
        (parent, name): (&Arc<Inode>, &OsStr),
        (new_parent, new_name): (&Arc<Inode>, &OsStr),
        flags: RenameFlags,
    ) -> Answer<bool> {
        let mut state = self.state();
        let from = state.place(parent, name);
        let is_member = from.as_ref().is_some_and(|from| state.names.find(from).is_some());
        if !is_member {
            self.move_directories(hosted, &mut state, (parent, name), (new_parent, new_name))?;
        }
        let Some(from) = from else {
            // Only what is replaced may be a member.
            let replaced = state.place(new_parent, new_name);
            let replaced = replaced.and_then(|to| state.names.find(&to));
            let Some(id) = replaced else { return Ok(true) };
            return self.carry_out(hosted, &mut state, &Call::Other(id));
        };
        let may_lie_there = self.settings.is_exclusive || state.is_own(new_parent);
        let there = AtFlags::SYMLINK_NOFOLLOW;
        let is_free = is_member
            && may_lie_there
            && rustix::fs::statat(&**new_parent, new_name, there).err() == Some(Errno::NOENT);
        // A name in a directory without members gets its number only if a member comes there.
        let directory = match is_free {
            true => state.number(new_parent),
            false => state.numbers.get(&new_parent.identity()).copied().unwrap_or(0),
        };
        let call = Call::Rename {
            from,
            to: Place { directory, name: new_name.as_bytes().to_vec() },
            target: if is_free { Target::Free } else { Target::Real },
            keeps_target: flags.contains(RenameFlags::NOREPLACE),
            is_special: !(flags - RenameFlags::NOREPLACE).is_empty(),
        };
        self.carry_out(hosted, &mut state, &call)
    }

    /// Members below a directory that is moved, or replaced, have real files before.
    fn move_directories(
        &self,
        hosted: &Hosted,
        state: &mut State,
        (parent, name): (&Inode, &OsStr),
        (new_parent, new_name): (&Inode, &OsStr),
    ) -> Answer<()> {
        let moved = self.directories_below(state, parent, name)?;
        let replaced = self.directories_below(state, new_parent, new_name)?;
        let all: Vec<u64> = moved.into_iter().chain(replaced).collect();
        if !all.is_empty() {
            self.carry_out(hosted, state, &Call::MoveDirectories(all))?;
        }
        Ok(())
    }

    /// Directories with members at a name and below it.
    fn directories_below(&self, state: &State, parent: &Inode, name: &OsStr) -> Answer<Vec<u64>> {
        if state.names.is_empty() {
            return Ok(Vec::new());
        }
        match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir() => {}
            _ => return Ok(Vec::new()),
        }
        let top = self.path_in(parent, name.as_bytes())?;
        let mut below = Vec::new();
        for (&number, directory) in &state.directories {
            let path = self.path_of(&directory.inode).unwrap_or_default();
            let is_below = path.strip_prefix(&top[..]);
            if is_below.is_some_and(|rest| rest.is_empty() || rest[0] == b'/') {
                below.push(number);
            }
        }
        Ok(below)
    }

    /// Does what a call needs; true if it is to go where it would have gone.
    pub(super) fn carry_out(
        &self,
        hosted: &Hosted,
        state: &mut State,
        call: &Call,
    ) -> Answer<bool> {
        let is_sync = matches!(call, Call::Sync);
        loop {
            let mut actions: VecDeque<Action> = state.names.plan(call).into();
            let mut is_replaced = false;
            while let Some(action) = actions.pop_front() {
                let performed = match &action {
                    Action::Answer(answer) => {
                        return answer.map(|()| false).map_err(Errno::from_raw_os_error);
                    }
                    Action::Pass => return Ok(true),
                    Action::Append(append) => self.append(state, append),
                    Action::Sync => state.containers.sync(),
                    Action::Make(id) => self.make(hosted, state, *id, is_sync),
                    Action::Drop(place) => {
                        self.removed(state, place);
                        Ok(())
                    }
                };
                let ending = match performed {
                    Ok(()) => Ending::Done,
                    Err(error) => Ending::Failed(error.raw_os_error()),
                };
                let instead =
                    state.names.ended(&action, ending).map_err(Errno::from_raw_os_error)?;
                if !instead.is_empty() {
                    (actions, is_replaced) = (instead.into(), true);
                }
            }
            // What came instead has changed what the call needs.
            if !is_replaced {
                return Err(Errno::IO);
            }
        }
    }

    /// The name of a member goes.
    fn removed(&self, state: &mut State, place: &Place) {
        let id = state.names.find(place);
        id.map(|id| state.older.remove(&id));
        if let Some(id) = id
            && let Some(inode) = state.inodes.remove(&id)
            && let Some(member) = &inode.member
        {
            member.lose_name();
            if let Some(mut body) = member.body() {
                let size = std::mem::take(&mut body.size);
                self.count_bytes(size, 0);
            }
        }
        state.touch(place.directory);
    }

    fn append(&self, state: &mut State, append: &Append) -> Answer<()> {
        match append {
            Append::Contents(id) => self.append_contents(state, *id),
            Append::Renamed(id, to) => {
                let from = state.names.place(*id).cloned().ok_or(Errno::NOENT)?;
                let paths = (self.path_at(state, &from)?, self.path_at(state, to)?);
                let target = self.directory_at(state, to)?;
                let directory = self.path_of(&target)?;
                let container = state.container_of(*id)?;
                container.record_directories(&self.source, &directory)?;
                container.writer.append(&Record::Rename { from: &paths.0, to: &paths.1 })?;
                self.removed(state, to);
                state.touch(from.directory);
                Ok(())
            }
            Append::Unlinked(place, id) | Append::Made(place, id) => {
                let path = self.path_at(state, place)?;
                state.container(*id)?.writer.append(&Record::Unlink { path: &path })?;
                let stays = matches!(append, Append::Made(..)) && state.is_settled(place.directory);
                let member = state.names.find(place);
                // What was hidden below a name does not take it along.
                if member.is_some_and(|member| state.names.container(member) == Some(*id)) {
                    self.removed(state, place);
                }
                if stays {
                    state.touch(place.directory);
                    self.settle(state, place.directory);
                }
                Ok(())
            }
            Append::Moving(id) => {
                let place = state.names.place(*id).cloned().ok_or(Errno::NOENT)?;
                let path = self.path_at(state, &place)?;
                state.container_of(*id)?.writer.append(&Record::Moving { path: &path })
            }
        }
    }

    fn directory_at(&self, state: &State, place: &Place) -> Answer<Arc<Inode>> {
        let directory = state.directories.get(&place.directory).ok_or(Errno::NOENT)?;
        Ok(directory.inode.clone())
    }

    fn path_at(&self, state: &State, place: &Place) -> Answer<Vec<u8>> {
        self.path_in(&*self.directory_at(state, place)?, &place.name)
    }

    fn append_contents(&self, state: &mut State, id: MemberId) -> Answer<()> {
        let inode = state.inodes.get(&id).cloned().ok_or(Errno::NOENT)?;
        let place = state.names.place(id).cloned().ok_or(Errno::NOENT)?;
        let directory = self.directory_at(state, &place)?;
        let below = self.path_of(&directory)?;
        state.container_of(id)?.record_directories(&self.source, &below)?;
        let path = self.path_at(state, &place)?;
        let Some(mut body) = inode.member.as_ref().and_then(|it| it.body()) else { return Ok(()) };
        let stat = inode.stat()?;
        let size = stat.st_size as u64;
        // What the container does not know at all it gets as a whole.
        let range = match state.names.is_recorded(id) {
            true => body.unwritten.clone().unwrap_or(0..0),
            false => 0..size,
        };
        let range = range.start.min(size)..range.end.min(size);
        let mut bytes = vec![0; (range.end - range.start) as usize];
        read_all(&inode, range.start, &mut bytes)?;
        let attributes = attributes(&stat);
        let offset = range.start;
        let data = Record::Data { path: &path, attributes, size, offset, bytes: &bytes };
        state.container_of(id)?.writer.append(&data)?;
        body.unwritten = None;
        Ok(())
    }

    /// A real file takes a member's place: it has all there is before it has its name, and is the same file to
    /// programs.
    fn make(
        &self,
        hosted: &Hosted,
        state: &mut State,
        id: MemberId,
        is_durable: bool,
    ) -> Answer<()> {
        let inode = self.bring(state, id)?;
        let place = state.names.place(id).cloned().ok_or(Errno::NOENT)?;
        let directory = self.directory_at(state, &place)?;
        let Some(member) = &inode.member else { return Err(Errno::IO) };
        let Some(mut body) = member.body() else { return Ok(()) };
        self.load(member, &mut body, &inode)?;
        // What a sync has returned for stays durable.
        let container = state.names.container(id).filter(|_| state.names.is_recorded(id));
        let is_durable =
            is_durable || container.is_some_and(|it| state.containers.is_committed(it));
        let stat = inode.stat()?;
        let (size, name) = (stat.st_size as u64, &place.name[..]);
        // To the program nothing changes in the directory.
        let is_settled = state.is_settled(place.directory);
        let settled = is_settled.then(|| directory.stat()).transpose()?;
        let made = Made { name, attributes: &attributes(&stat), size, is_durable };
        let real = make(directory.as_fd(), self.run, &made, |fd| {
            let mut bytes = vec![0; size as usize];
            read_all(&inode, 0, &mut bytes)?;
            write_all(fd, 0, &bytes)
        });
        let real = match real {
            Err(Errno::EXIST) => {
                let name = shown(name);
                let place = directory.place().unwrap_or_default();
                state.say(format!(
                    "defer-close: {place}/{name}: somebody outside of the run has made a file of \
                     that name; it is not overwritten"
                ));
                return Err(Errno::EXIST);
            }
            other => other?,
        };
        if let Some(stat) = settled {
            // Nothing but a time is lost.
            let _ = rustix::fs::utimensat(CWD, directory.path(), &times(&stat), AtFlags::empty());
        }
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&real));
        let bare = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        hosted.tree.lead(&inode, &bare)?;
        for file in hosted.files.all() {
            if Arc::ptr_eq(&file.inode, &inode) {
                let replaced = iolab_host::replace(file.fd.as_fd(), real.as_fd());
                replaced.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
            }
        }
        member.become_real();
        let size = std::mem::take(&mut body.size);
        drop(body);
        self.count_bytes(size, 0);
        state.inodes.remove(&id);
        state.older.remove(&id);
        state.made += 1;
        Ok(())
    }
}

impl State {
    /// The container a member is in.
    fn container_of(&mut self, id: MemberId) -> Answer<&mut Container> {
        let container = self.names.container(id).ok_or(Errno::NOENT)?;
        self.container(container)
    }
}

/// Reads from a member's memory. That is no access of a program's: who looks for new mail compares both times.
fn read_all(inode: &Inode, mut offset: u64, mut bytes: &mut [u8]) -> Answer<()> {
    // A mode may forbid it, where the descriptor that there is allows it.
    let again = inode.open(OFlags::RDONLY | OFlags::NOATIME).ok();
    let memory = again.as_ref().map_or(inode.as_fd(), |fd| fd.as_fd());
    while !bytes.is_empty() {
        match rustix::io::pread(memory, &mut *bytes, offset)? {
            0 => return Err(Errno::IO),
            moved => {
                bytes = &mut bytes[moved..];
                offset += moved as u64;
            }
        }
    }
    Ok(())
}

fn attributes(stat: &Stat) -> Attributes {
    let time = |seconds: i64, nanoseconds: u64| Time { seconds, nanoseconds: nanoseconds as u32 };
    Attributes {
        mode: stat.st_mode & 0o7777,
        user: stat.st_uid,
        group: stat.st_gid,
        accessed: time(stat.st_atime, stat.st_atime_nsec),
        modified: time(stat.st_mtime, stat.st_mtime_nsec),
    }
}
