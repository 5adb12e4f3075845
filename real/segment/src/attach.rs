//! Making the segment of a run, and finding it in a process of the run.

use crate::layout::{MAGIC, SLABS, STAGES, TABLE_BYTES, Table, VERSION};
use crate::meeting::before_looking;
use crate::slab_layout;
use crate::system::{self, Descriptor, system_call};
use std::ffi::{CStr, CString};
use std::fmt;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32};

/// Why there is no segment to share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachError {
    /// The system said so, with this error number.
    System(i32),
    /// It belongs to another user, or others may use it.
    Foreign,
    /// It is of another version of iolab, or no segment at all.
    Version,
    /// It is about to be made, or was left while it was.
    Unfinished,
}

impl fmt::Display for AttachError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttachError::System(errno) => std::io::Error::from_raw_os_error(*errno).fmt(f),
            AttachError::Foreign => f.write_str("it is not this user's alone"),
            AttachError::Version => f.write_str("another version of iolab made it"),
            AttachError::Unfinished => f.write_str("it is not finished"),
        }
    }
}

/// What strategies of a run ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Staging memory that one stage needs at most.
    pub staging_bytes: u64,
}

/// The segment as this process sees it.
pub struct Run {
    base: *mut Table,
    path: CString,
    /// This process's slot plus one; 0 for none yet.
    pub(crate) slot: AtomicU32,
    /// This process cannot be made to listen.
    deaf: AtomicBool,
    /// Process numbers mean others here, or nobody can tell.
    far: AtomicBool,
    /// Where slabs lie in this process.
    pub(crate) mapped: [AtomicPtr<u8>; SLABS],
}

// SAFETY: everything behind `base` is atomic words, mapped for as long as the process lives.
unsafe impl Send for Run {}
// SAFETY: as above.
unsafe impl Sync for Run {}

impl Run {
    /// Makes the segment in `path`, which must not exist, for the launcher: its process is slot 0.
    ///
    /// # Errors
    /// What the system says, for example that there is no room.
    pub fn create(path: &CStr, shape: Shape) -> Result<Run, AttachError> {
        let flags =
            libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        // SAFETY: the path is terminated.
        let fd = unsafe { system_call!(SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0o600) };
        if fd < 0 {
            return Err(AttachError::System(-fd as i32));
        }
        let made = Run::fill(fd as i32, path, shape);
        // SAFETY: our own descriptor.
        unsafe { system_call!(SYS_close, fd) };
        if made.is_err() {
            // SAFETY: the path is terminated, and the file there was made just now.
            unsafe { system_call!(SYS_unlinkat, libc::AT_FDCWD, path.as_ptr(), 0) };
        }
        made
    }

    fn fill(fd: i32, path: &CStr, shape: Shape) -> Result<Run, AttachError> {
        let staging = shape.staging_bytes.next_multiple_of(crate::layout::PAGE);
        let records = slab_layout::records_for(staging);
        let bytes = TABLE_BYTES + SLABS as u64 * slab_layout::bytes(staging, records);
        // SAFETY: no memory is involved.
        unsafe {
            let sized = system_call!(SYS_ftruncate, fd, bytes);
            // Where the file system cannot (disks of old), touching pages has to do.
            let granted = system_call!(SYS_fallocate, fd, 0, 0, TABLE_BYTES);
            let refused = [sized, granted].into_iter().find(|&it| it < 0 && it != -95);
            if let Some(errno) = refused {
                return Err(AttachError::System(-errno as i32));
            }
        }
        let run = Run::mapped(fd, path).ok_or(AttachError::System(libc::ENOMEM))?;
        let header = &run.table().header;
        header.staging_bytes.store(staging, Relaxed);
        header.records.store(records, Relaxed);
        header.version.store(VERSION, Relaxed);
        header.launcher.store(system::own_pid(), Relaxed);
        header.pid_namespace.store(system::pid_namespace(), Relaxed);
        for (word, is) in header.names_in.iter().zip(system::names_in().unwrap_or_default()) {
            word.store(is, Relaxed);
        }
        header.names.store(1, Relaxed);
        header.processes_used.store(1, Relaxed);
        header.strict.store(u32::from(!system::make_all_listen()), Relaxed);
        let launcher = &run.table().processes[0];
        launcher.pid.store(system::own_pid(), Relaxed);
        run.introduce(launcher);
        run.slot.store(1, Relaxed);
        header.magic.store(MAGIC, Release);
        Ok(run)
    }

    /// Finds the segment another process made.
    ///
    /// # Errors
    /// When it is not there, not this user's alone, or of another version.
    pub fn attach(path: &CStr) -> Result<Run, AttachError> {
        let file =
            Descriptor::open(path, libc::O_RDWR | libc::O_NOFOLLOW).map_err(AttachError::System)?;
        let status = file.status().ok_or(AttachError::System(libc::EIO))?;
        if status.st_uid != system::own_user() || status.st_mode & 0o077 != 0 {
            return Err(AttachError::Foreign);
        }
        if status.st_mode & libc::S_IFMT == libc::S_IFREG && status.st_size == 0 {
            return Err(AttachError::Unfinished);
        }
        if status.st_mode & libc::S_IFMT != libc::S_IFREG || (status.st_size as u64) < TABLE_BYTES {
            return Err(AttachError::Version);
        }
        let run = Run::mapped(file.number(), path).ok_or(AttachError::System(libc::ENOMEM))?;
        let header = &run.table().header;
        if header.magic.load(Acquire) == 0 {
            return Err(AttachError::Unfinished);
        }
        let staging = header.staging_bytes.load(Relaxed);
        let records = header.records.load(Relaxed);
        let fits = staging < 1 << 45
            && records < 1 << 20
            && TABLE_BYTES + SLABS as u64 * slab_layout::bytes(staging, records)
                <= status.st_size as u64;
        if header.magic.load(Acquire) != MAGIC || header.version.load(Relaxed) != VERSION || !fits {
            return Err(AttachError::Version);
        }
        run.listen();
        Ok(run)
    }

    fn mapped(fd: i32, path: &CStr) -> Option<Run> {
        let base = system::map_shared(fd, 0, TABLE_BYTES)?.cast::<Table>();
        Some(Run {
            base,
            path: path.to_owned(),
            slot: AtomicU32::new(0),
            deaf: AtomicBool::new(false),
            far: AtomicBool::new(false),
            mapped: [const { AtomicPtr::new(std::ptr::null_mut()) }; SLABS],
        })
    }

    /// Lets others make this process listen; in a forked child, too.
    pub fn listen(&self) {
        self.deaf.store(!system::register_to_listen(), Relaxed);
        let space = self.table().header.pid_namespace.load(Relaxed);
        self.far.store(system::pid_namespace() != space, Relaxed);
    }

    /// Whether process numbers of the run mean others to this process.
    pub(crate) fn is_far(&self) -> bool {
        self.far.load(Relaxed)
    }

    /// Whether this is the process that looks after the run.
    pub(crate) fn is_launcher(&self) -> bool {
        self.slot.load(Relaxed) == 1
    }

    /// Whether this process has to look up by itself at each call.
    #[inline(always)]
    pub fn must_look_up(&self) -> bool {
        self.deaf.load(Relaxed) || self.table().header.strict.load(Relaxed) != 0
    }

    #[inline(always)]
    pub(crate) fn table(&self) -> &Table {
        // SAFETY: mapped with that many bytes, all of them atomic words, never unmapped.
        unsafe { &*self.base }
    }

    pub(crate) fn open(&self) -> Option<Descriptor> {
        Descriptor::open(&self.path, libc::O_RDWR | libc::O_NOFOLLOW).ok()
    }

    /// Whether any process holds anything back.
    #[inline(always)]
    pub fn is_any_holding(&self) -> bool {
        self.table().header.holding.load(Relaxed) != 0
    }

    /// Whether nothing may be held any more: the launcher has gone, or the tables are full.
    #[inline(always)]
    pub fn must_pass(&self) -> bool {
        let header = &self.table().header;
        header.closing.load(Relaxed) | header.crowded.load(Relaxed) != 0
    }

    /// Whether bytes may be held, by stages of that size.
    pub fn can_hold(&self, staging_bytes: u64) -> bool {
        let room = self.table().header.staging_bytes.load(Relaxed);
        staging_bytes <= room && !self.must_pass() && self.has_launcher()
    }

    /// Whether the launcher lives. Costs a system call.
    pub fn has_launcher(&self) -> bool {
        if self.is_far() {
            return true; // Nobody here can tell.
        }
        !system::is_gone(self.table().header.launcher.load(Relaxed))
    }

    /// Names are about to change: until [`Run::end_move`] nobody begins to hold bytes, since where
    /// files lie is not sure. The caller disturbs who holds some already.
    pub fn begin_move(&self) {
        // Without a slot nothing is held in the run any more.
        if let Some(process) = self.process(self.me()) {
            process.moving.fetch_add(1, Release);
            before_looking();
        }
    }

    /// The names have changed: recorded paths are no longer sure.
    pub fn end_move(&self) {
        self.table().header.names.fetch_add(1, SeqCst);
        if let Some(process) = self.process(self.me()) {
            process.moving.fetch_sub(1, SeqCst);
        }
    }

    /// Whether names are being changed. An owner asks once it has said that it holds. There is no
    /// sum of all processes, which one that is killed between two counts would spoil.
    pub fn is_moving(&self) -> bool {
        before_looking();
        let used = self.table().header.processes_used.load(Acquire) as usize;
        let mut processes = self.table().processes.iter().take(used);
        processes.any(|process| process.moving.load(Acquire) != 0)
    }

    /// Stages of one stack that may hold.
    pub const STAGES: usize = STAGES;
}
