//! Opening and closing files.

use crate::caller::Caller;
use crate::files::{Numbered, OpenDirectory, OpenFile};
use crate::hosting::{Hosting, Opened};
use crate::members::{Members, Packed, Wanted};
use crate::rules;
use crate::session::Source;
use crate::staged::Staged;
use crate::tree::{Answer, Inode, Name, Tree};
use crate::writers::Writers;
use fuser::{BackingId, FopenFlags, Request};
use iolab_host::recording::Teller;
use iolab_policy::insitu::{Access, Guest, Null, Stack, Strategy, StrategySpec, Totals};
use iolab_processor::traced_open_flags;
use iolab_trace::Function;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, Stat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// A source directory and who has what of it open: all that the requests of a mount are about.
pub(crate) struct Hosted {
    pub(crate) tree: Tree,
    pub(crate) files: Numbered<OpenFile>,
    pub(crate) directories: Numbered<OpenDirectory>,
    strategies: Vec<StrategySpec>,
    /// Who writes for those that hand over.
    writers: Option<Writers>,
    /// Where the source is.
    source: PathBuf,
    /// Where programs see it, by each name that globs may know.
    seen_at: Vec<PathBuf>,
    /// User and group all files show as, where the kernel knows no others.
    pub(crate) own: Option<(u32, u32)>,
    /// Whether the kernel takes files to serve by itself.
    passes_through: AtomicBool,
    /// Nothing is staged any more.
    is_ending: AtomicBool,
    /// What strategies that count have counted of files nobody has open any more.
    pub(crate) counted: Arc<Mutex<Totals>>,
    /// Who is told of calls.
    pub(crate) teller: Option<Arc<Teller>>,
    /// Small files that are kept in a container.
    pub(crate) members: Option<Members>,
}

/// What an open came to.
pub(crate) struct Grant {
    pub(crate) number: u64,
    pub(crate) flags: FopenFlags,
    pub(crate) backing: Option<Arc<BackingId>>,
}

/// Registers a file with the kernel.
pub(crate) type Register<'a> = &'a dyn Fn(BorrowedFd<'_>) -> std::io::Result<BackingId>;

impl Hosted {
    /// Serves `source` as it is seen at a place of one or more names.
    pub(crate) fn new(
        source: Source<'_>,
        seen_at: Vec<PathBuf>,
        strategies: Vec<StrategySpec>,
        own: Option<(u32, u32)>,
        teller: Option<Arc<Teller>>,
    ) -> Answer<Hosted> {
        let tree = Tree::new(source.path)?;
        let members = Members::new(source, &strategies, &tree);
        let writers = strategies.iter().filter_map(StrategySpec::writers).max();
        let writers = writers.map(Writers::start).transpose();
        Ok(Hosted {
            writers: writers
                .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::AGAIN))?,
            tree,
            members,
            files: Numbered::default(),
            directories: Numbered::default(),
            strategies,
            source: source.path.to_owned(),
            seen_at,
            own,
            passes_through: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
            counted: Arc::default(),
            teller,
        })
    }

    /// The kernel can serve files by itself.
    pub(crate) fn allow_pass_through(&self) {
        self.passes_through.store(true, Ordering::Relaxed);
    }

    /// The stack of a file that strategies choose, by one of its names.
    fn stage(&self, inode: &Inode, thread: u32) -> Option<Staged> {
        if self.strategies.is_empty() && self.teller.is_none()
            || self.is_ending.load(Ordering::Relaxed)
        {
            return None;
        }
        let places = self.places_of(inode, thread);
        let staged = |strategies: Vec<Box<dyn Strategy>>, name: &str, hands_over: bool| {
            let writers = self.writers.as_ref().filter(|_| hands_over).map(Writers::queue);
            let (stack, counted) = (Stack::new(strategies), self.counted.clone());
            Staged::new(stack, inode.path(), name.to_owned(), counted, writers)
        };
        let names = || places.iter().flat_map(|place| self.seen_names(place));
        let chosen = names().find_map(|name| {
            let mut above: Vec<_> = Guest::chosen(&self.strategies, &name).collect();
            if above.is_empty() {
                return None;
            }
            let handover = above.iter().position(|spec| spec.writers().is_some());
            let below = handover.map_or(Vec::new(), |at| above.split_off(at + 1));
            let build = |specs: &[&StrategySpec]| {
                let built = specs.iter().map(|spec| spec.build_for(&name)).collect();
                staged(built, &name, handover.is_some())
            };
            let host = build(&above);
            Some(if below.is_empty() { host } else { host.above(build(&below)) })
        });
        // Only of what comes here somebody can be told.
        let listened = || {
            let name = self.teller.as_ref().and_then(|_| names().next())?;
            Some(staged(vec![Box::new(Null::DEAF)], &name, false))
        };
        chosen.or_else(listened)
    }

    /// Where a file is in the source by its names, first by that by which a thread has come. Of one that has lost
    /// all its names, the last.
    pub(crate) fn places_of(&self, inode: &Inode, thread: u32) -> Vec<PathBuf> {
        let is_in_memory = inode.member.as_ref().is_some_and(|member| !member.is_real());
        let place_of = |name: &Name| self.place_in(name.parent, &name.name);
        let mut places = Vec::new();
        if !is_in_memory {
            places.extend(self.tree.names_of(inode, thread).iter().filter_map(place_of));
        }
        let last = || {
            let mut last = place_of(&self.tree.last_name_of(inode)?)?.into_os_string();
            last.push(" (deleted)");
            Some(PathBuf::from(last))
        };
        if places.is_empty() {
            let system = || Some(PathBuf::from(inode.place().ok()?));
            places.extend(last().filter(|_| !is_in_memory).or_else(system));
        }
        places
    }

    /// Where a name in a directory is in the source.
    pub(crate) fn place_in(&self, directory: u64, name: &OsStr) -> Option<PathBuf> {
        Some(Path::new(&self.tree.get(directory).ok()?.place().ok()?).join(name))
    }

    /// What programs call a place of the source.
    fn seen_names(&self, place: &Path) -> impl Iterator<Item = String> {
        let below = place.strip_prefix(&self.source).ok();
        let seen_at = self.seen_at.iter();
        seen_at.filter_map(move |at| Some(at.join(below?).to_string_lossy().into_owned()))
    }

    /// Its first name.
    pub(crate) fn seen_name(&self, place: &Path) -> Option<String> {
        self.seen_names(place).next()
    }

    /// Opens a file that exists.
    pub(crate) fn open(
        &self,
        request: &Request,
        number: u64,
        flags: i32,
        register: Register<'_>,
    ) -> Answer<Grant> {
        let inode = self.tree.get(number)?;
        rules::before(Function::OPEN, Some(&inode), None);
        let wanted = OFlags::from_bits_retain(flags as u32);
        if wanted.contains(OFlags::TRUNC) && request.uid() != 0 {
            strip_privileges(&inode);
        }
        if let Some(grant) = self.open_member(request, &inode, flags, register)? {
            return Ok(grant);
        }
        let mut opened = inode.opened();
        // Between here and the stack's hearing of it nobody writes.
        if wanted.contains(OFlags::TRUNC)
            && let Some(staged) = opened.staged()
        {
            staged.flush();
        }
        let fd = inode.open(below(wanted))?;
        Ok(self.grant(request, &inode, &mut opened, (fd, flags), register))
    }

    /// Opens a member.
    fn open_member(
        &self,
        request: &Request,
        inode: &Arc<Inode>,
        flags: i32,
        register: Register<'_>,
    ) -> Answer<Option<Grant>> {
        let Some(members) = &self.members else { return Ok(None) };
        let wanted = OFlags::from_bits_retain(flags as u32);
        members.opens(inode, wanted, || {
            let fd = inode.open(below(wanted) - OFlags::TRUNC)?;
            Ok(self.grant(request, inode, &mut inode.opened(), (fd, flags), register))
        })
    }

    /// A new file as a member, if it is to be one.
    fn create_member(
        &self,
        request: &Request,
        (parent, name): (&Arc<Inode>, &OsStr),
        mode: u32,
        flags: i32,
        register: Register<'_>,
    ) -> Answer<Option<(Arc<Inode>, Stat, Grant)>> {
        let Some(members) = &self.members else { return Ok(None) };
        if self.is_ending.load(Ordering::Relaxed) {
            return Ok(None);
        }
        // A directory whose path is too long to be said has no members.
        let Ok(place) = parent.place() else { return Ok(None) };
        let seen: Vec<String> = self.seen_names(&PathBuf::from(place).join(name)).collect();
        let wanted = OFlags::from_bits_retain(flags as u32);
        if let Some(there) = members.find(&self.tree, parent, name)? {
            let is_refused = wanted.contains(OFlags::EXCL).then_some(Err(Errno::EXIST));
            let opened =
                is_refused.unwrap_or_else(|| self.open(request, there.number, flags, register));
            if opened.is_err() {
                self.forget(there.number, 1);
            }
            return Ok(Some((there.clone(), there.stat()?, opened?)));
        }
        self.is_ours(parent, name)?;
        let is_servers = self.own.is_some() || !rustix::process::geteuid().is_root();
        let new = Wanted { parent, name, seen: &seen, mode, flags: wanted, is_servers };
        let Some(inode) = members.create(&self.tree, request, &new)? else { return Ok(None) };
        let begun = members.opens(&inode, OFlags::empty(), || {
            // Whoever makes a file may write to it, whatever its mode.
            let fd = inode.as_fd().try_clone_to_owned().map_err(|_| Errno::MFILE)?;
            Ok(self.grant(request, &inode, &mut inode.opened(), (fd, flags), register))
        });
        // It may have become real at once, where a sync found no room in the container.
        let grant = match begun? {
            Some(grant) => grant,
            None => self.open(request, inode.number, flags, register)?,
        };
        let stat = inode.stat()?;
        Ok(Some((inode, stat, grant)))
    }

    /// Makes a file, if there is none, and opens it.
    pub(crate) fn create(
        &self,
        request: &Request,
        (parent, name): (u64, &OsStr),
        (mode, mask): (u32, u32),
        flags: i32,
        register: Register<'_>,
    ) -> Answer<(Arc<Inode>, Stat, Grant)> {
        let parent = self.tree.get(parent)?;
        let wanted = OFlags::from_bits_retain(flags as u32);
        let permissions = mode & !mask;
        let begun = self.create_member(request, (&parent, name), permissions, flags, register)?;
        let changes = self.tree.changes();
        if let Some(begun) = begun {
            self.tree.came((&parent, name), (&begun.0, &begun.1), (request.pid(), changes));
            return Ok(begun);
        }
        if let Some(known) = self.tree.known(&parent, name) {
            rules::before(Function::OPEN, Some(&known), None);
        }
        let kept = wanted & (OFlags::EXCL | OFlags::CREATE);
        let how = below(wanted) | kept | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = {
            let _caller = Caller::of(request, mask);
            rustix::fs::openat(&parent, name, how, Mode::from_raw_mode(mode))?
        };
        let same = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&fd));
        let bare = rustix::fs::open(same, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let (inode, stat) = self.tree.remember(bare)?;
        self.tree.came((&parent, name), (&inode, &stat), (request.pid(), changes));
        let grant = self.grant(request, &inode, &mut inode.opened(), (fd, flags), register);
        Ok((inode, stat, grant))
    }

    fn grant(
        &self,
        request: &Request,
        inode: &Arc<Inode>,
        opened: &mut Opened,
        (fd, flags): (OwnedFd, i32),
        register: Register<'_>,
    ) -> Grant {
        let fd = Arc::new(fd);
        let access = Access::from_flags(i64::from(traced_open_flags(flags)));
        let hosting =
            opened.hosting.get_or_insert_with(|| match self.stage(inode, request.pid()) {
                Some(staged) => Hosting::Staged(Box::new(staged)),
                // What it leads to may change while it is open.
                None if inode.member.is_some() => Hosting::Cached,
                None => self.unstaged(inode, &fd, flags, register),
            });
        opened.count += 1;
        let (handle, flags, backing) = match hosting {
            Hosting::Staged(staged) => {
                (Some(staged.open(fd.clone(), access)), FopenFlags::FOPEN_DIRECT_IO, None)
            }
            Hosting::Kernel(backing) => {
                (None, FopenFlags::FOPEN_PASSTHROUGH, Some(backing.clone()))
            }
            // Who tells of calls hears each of them.
            Hosting::Cached if self.teller.is_some() && inode.member.is_some() => {
                (None, FopenFlags::FOPEN_DIRECT_IO, None)
            }
            // Who only reads a member has nothing to hear at its close.
            Hosting::Cached if inode.member.is_some() && !access.write => {
                (None, FopenFlags::FOPEN_NOFLUSH, None)
            }
            Hosting::Cached => (None, FopenFlags::empty(), None),
        };
        let told = AtomicU32::new(0);
        let opener = request.pid();
        let file = OpenFile { inode: inode.clone(), fd, access, handle, told, opener };
        Grant { number: self.files.insert(file), flags, backing }
    }

    /// By the kernel itself, or through its page cache: where it refuses (no right to, a source that is
    /// stacked too high), where a write by another user is to take set-user-id bits away, which it
    /// leaves to the server, and where direct access is asked for, which it would not end with the
    /// flag.
    fn unstaged(&self, inode: &Inode, fd: &OwnedFd, flags: i32, register: Register<'_>) -> Hosting {
        let is_direct = OFlags::from_bits_retain(flags as u32).contains(OFlags::DIRECT);
        let has_set_id = inode.stat().map_or(true, |stat| stat.st_mode & 0o6000 != 0);
        if !self.passes_through.load(Ordering::Relaxed) || is_direct || has_set_id {
            return Hosting::Cached;
        }
        match register(fd.as_fd()) {
            Ok(backing) => Hosting::Kernel(Arc::new(backing)),
            Err(_) => Hosting::Cached,
        }
    }

    /// One descriptor of a description was closed; its process hears how its bytes fared.
    pub(crate) fn close(&self, number: u64) -> Answer<()> {
        let file = self.files.get(number)?;
        if let Some(members) = &self.members {
            members.close(self, &file.inode)?;
        }
        let Some(handle) = file.handle else { return Ok(()) };
        match file.inode.opened().staged() {
            Some(staged) => staged.close(handle).map(|_| ()).map_err(system),
            None => Ok(()),
        }
    }

    /// The last one was.
    pub(crate) fn release(&self, number: u64) {
        let Some(file) = self.files.remove(number) else { return };
        if let Some(members) = &self.members {
            // As below; what is left is tried again at the end of the run.
            let _ = members.close(self, &file.inode);
        }
        let mut opened = file.inode.opened();
        if let (Some(handle), Some(staged)) = (file.handle, opened.staged()) {
            // Whoever closed it has heard of failures; nobody hears of this one.
            let _ = staged.release(handle);
        }
        opened.forget_one();
        drop(opened);
        if let Some(members) = &self.members {
            members.rest(&file.inode);
        }
    }

    /// The kernel has forgotten a file as often as that.
    pub(crate) fn forget(&self, number: u64, times: u64) {
        let forgotten = self.tree.forget(number, times);
        if let (Some(members), Some(inode)) = (&self.members, forgotten) {
            members.forgotten(&self.tree, &inode);
        }
    }

    /// What became of small files, when nobody has one open any more.
    pub(crate) fn packed(&self) -> Option<Packed> {
        self.members.as_ref().map(|members| members.end(self))
    }

    /// Nothing is staged from now on; what is held goes out. How many files are open still?
    pub(crate) fn end(&self) -> usize {
        self.is_ending.store(true, Ordering::Relaxed);
        for inode in self.tree.all() {
            if let Some(staged) = inode.opened().staged() {
                staged.retire();
            }
        }
        self.files.count()
    }
}

/// How a file is opened below: as it was asked for, but for what the kernel has seen to already, and
/// for direct access, which the server's memory is not aligned for.
fn below(flags: OFlags) -> OFlags {
    flags - (OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::DIRECT)
}

/// Takes the set-user-id and set-group-id bits from a file that somebody without the right to keep
/// them changes.
pub(crate) fn strip_privileges(inode: &Inode) {
    let Ok(stat) = inode.stat() else { return };
    let is_group_executable = stat.st_mode & 0o010 != 0;
    let bits = if is_group_executable { 0o6000 } else { 0o4000 };
    if stat.st_mode & bits != 0 {
        let mode = Mode::from_raw_mode(stat.st_mode & 0o7777 & !bits);
        let _ = rustix::fs::chmod(inode.path(), mode);
    }
}

/// An error of strategies as one of the system.
pub(crate) fn system(error: iolab_policy::insitu::Errno) -> Errno {
    Errno::from_raw_os_error(error.0)
}
