//! Who keeps the files of a fast place: hears the questions of processes, hands descriptors out, moves what
//! nobody has open any more.
//!
//! One lock is over all files and held for no longer than a few system calls; bytes are copied outside of it,
//! one copy of a file at a time. Lock order: a file's work, then the files.

mod room;

use super::home::{self, Pace};
use super::journal::{Entry, Journal};
use crate::file_system::free_bytes;
use crate::run::c_path;
use iolab_policy::insitu::Stage;
use iolab_policy::insitu::stage::{Event, Opened, Passes, Residence, Step};
use iolab_segment::{Answer, FastPlace, Inode, Listener, Question, Reply, Request, STILL, Talk};
use iolab_vocab::format_bytes;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long the mover rests between two looks at what nobody has open.
const LOOK_EVERY: Duration = Duration::from_millis(4);
/// How often the journal says that its keeper lives, while bytes are copied (`recover` counts on it).
const BEAT_EVERY: Duration = Duration::from_millis(500);
/// Flags of an open that mean the same for the copy. All others are about names, or were done with when the
/// real file was opened.
const KEPT_FLAGS: i32 = libc::O_ACCMODE | libc::O_APPEND | libc::O_NONBLOCK | libc::O_TRUNC;

/// See the module.
pub(super) struct Keeper {
    stage: Stage,
    table: &'static FastPlace,
    directory: PathBuf,
    is_quiet: bool,
    files: Mutex<Files>,
    pub(super) stop: AtomicBool,
    pub(super) moved_files: AtomicU64,
    pub(super) moved_bytes: AtomicU64,
    pub(super) passed_files: AtomicU64,
}

struct Files {
    staged: BTreeMap<Inode, Staged>,
    journal: Journal,
    /// Reasons to pass that a person has heard.
    said: Vec<Passes>,
}

/// A file in the fast place.
struct Staged {
    home: Arc<File>,
    copy: Arc<File>,
    copy_inode: Inode,
    name: PathBuf,
    residence: Residence,
    /// How we left the real file: who finds it otherwise was not alone.
    left: Left,
    /// Why its last copy failed.
    failure: String,
    /// Who copies bytes of it.
    work: Arc<Mutex<()>>,
}

/// Length and time of change of a real file, in bytes and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Left {
    bytes: u64,
    changed: (i64, i64),
}

impl Left {
    fn of(home: &File) -> Left {
        home.metadata().map_or(Left { bytes: 0, changed: (0, 0) }, |it| Left {
            bytes: it.len(),
            changed: (it.mtime(), it.mtime_nsec()),
        })
    }

    /// Whether somebody else has changed bytes since. A file of no length has none.
    fn was_touched(self, now: Left) -> bool {
        now.bytes != self.bytes || (now.bytes > 0 && now.changed != self.changed)
    }
}

/// What an attempt to move a file came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    /// It is at home, or gone.
    Over,
    /// Somebody has it open, or it failed before.
    NotNow,
    /// Somebody is in a call on it, or copies it.
    Busy,
    /// Its copy was spoiled.
    InVain,
}

/// Files a connection holds; they are let go of when it ends.
struct Holds<'a> {
    keeper: &'a Keeper,
    held: Vec<Inode>,
}

impl Holds<'_> {
    fn add(&mut self, inode: Inode) {
        if self.keeper.hold(inode) {
            self.held.push(inode);
        }
    }
}

impl Drop for Holds<'_> {
    fn drop(&mut self) {
        self.held.iter().for_each(|&inode| self.keeper.let_go(inode));
    }
}

/// Hears calls until the ear is closed; each is answered in a thread of its own.
pub(super) fn hear(listener: &Listener, keeper: &Arc<Keeper>) {
    loop {
        match listener.accept() {
            Ok(talk) => {
                let keeper = Arc::clone(keeper);
                // Where there is no thread, the caller meets the end of the line.
                let _refused = thread::Builder::new().spawn(move || keeper.answer_all(&talk));
            }
            Err(libc::EINVAL | libc::EBADF) => return,
            // No descriptors, no memory: others end first.
            Err(_) => thread::sleep(Duration::from_millis(1)),
        }
    }
}

const DONE: Reply = Reply { answer: Answer::Done, errno: 0 };
const PASS: Reply = Reply { answer: Answer::Pass, errno: 0 };

impl Keeper {
    pub(super) fn begin(
        stage: Stage,
        table: &'static FastPlace,
        directory: &Path,
        is_quiet: bool,
    ) -> io::Result<Keeper> {
        let journal = Journal::create(directory)?;
        Ok(Keeper {
            stage,
            table,
            directory: directory.to_owned(),
            is_quiet,
            files: Mutex::new(Files { staged: BTreeMap::new(), journal, said: Vec::new() }),
            stop: AtomicBool::new(false),
            moved_files: AtomicU64::new(0),
            moved_bytes: AtomicU64::new(0),
            passed_files: AtomicU64::new(0),
        })
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer_all(&self, talk: &Talk) {
        let mut holds = Holds { keeper: self, held: Vec::new() };
        while let Some((request, descriptor, path)) = talk.hear() {
            // A second descriptor of the same description, which closes by itself as any file.
            let file = descriptor.and_then(|it| duplicate(it.number()));
            let (reply, replacement) = self.answer(&request, file, &path, talk, &mut holds);
            talk.answer(reply, replacement.as_ref().map(AsRawFd::as_raw_fd));
        }
    }

    fn answer(
        &self,
        request: &Request,
        file: Option<File>,
        path: &[u8],
        talk: &Talk,
        holds: &mut Holds<'_>,
    ) -> (Reply, Option<File>) {
        match request.question {
            Question::Hold => {
                holds.add(request.home);
                if request.flags == STILL {
                    self.wait_for_copy(request.home);
                }
                (DONE, None)
            }
            Question::Begin | Question::Join => match file {
                Some(file) => {
                    let name = (request.question == Question::Begin).then_some(path);
                    replaced(self.opened(file, request.flags, name))
                }
                None => (PASS, None),
            },
            Question::Sync => (done(self.sync(request.home)), None),
            Question::Show => (done(self.show(request.home)), None),
            Question::SyncAll => (done(self.all(|inode| self.sync(inode))), None),
            Question::ShowAll => (done(self.all(|inode| self.show(inode))), None),
            Question::LetGo => {
                holds.held.drain(..).for_each(|inode| self.let_go(inode));
                (DONE, None)
            }
            Question::Renamed => {
                self.note_names();
                (DONE, None)
            }
            Question::Full => match file.zip(talk.process()) {
                Some((file, process)) => replaced(self.full(file, request.flags, process)),
                None => (PASS, None),
            },
            Question::Leave => match file.zip(talk.process()) {
                Some((file, process)) => replaced(self.leave(file, request.flags, process)),
                None => (PASS, None),
            },
        }
    }

    /// The file is not to come home until it is let go of. False where it is at home.
    fn hold(&self, inode: Inode) -> bool {
        match self.files().staged.get_mut(&inode) {
            Some(staged) => {
                staged.residence.step(Event::Held);
                true
            }
            None => false,
        }
    }

    /// Returns when no copy of a held file goes on.
    fn wait_for_copy(&self, inode: Inode) {
        let work = self.files().staged.get(&inode).map(|it| Arc::clone(&it.work));
        if let Some(work) = work {
            drop(work.lock());
        }
    }

    fn let_go(&self, inode: Inode) {
        if let Some(staged) = self.files().staged.get_mut(&inode) {
            // What a process of the run did to the real file within its call is known to us.
            staged.left = Left::of(&staged.home);
            staged.residence.step(Event::LetGo);
        }
    }

    /// A file was opened by that name, if strategies choose it; the answer takes its place.
    fn opened(&self, file: File, flags: i32, chosen: Option<&[u8]>) -> io::Result<Option<File>> {
        let status = file.metadata()?;
        let inode = (status.dev(), status.ino());
        let mut files = self.files();
        if let Some(staged) = files.staged.get_mut(&inode) {
            let copy = open_copy(&self.copy_path(inode), flags)?;
            staged.residence.step(Event::Opened);
            // The open may have cut the real file.
            staged.left = Left::of(&staged.home);
            return Ok(Some(copy));
        }
        let Some(name) = chosen else { return Ok(None) };
        let name = PathBuf::from(OsStr::from_bytes(name));
        match self.begin_file(&mut files, file, inode, &name, flags) {
            Ok(copy) => Ok(Some(copy)),
            Err(passes) => {
                self.passed_files.fetch_add(1, Relaxed);
                if let Some(why) = passes.words().filter(|_| !self.is_quiet)
                    && !files.said.contains(&passes)
                {
                    files.said.push(passes);
                    eprintln!("iolab: stage: {} passes, {why}", name.display());
                }
                Ok(None)
            }
        }
    }

    /// Has a file begin in the fast place, if it may. It is found by others from before it is looked
    /// whether any has it open, so none comes in between.
    fn begin_file(
        &self,
        files: &mut Files,
        file: File,
        inode: Inode,
        name: &Path,
        flags: i32,
    ) -> Result<File, Passes> {
        // Where nobody says what is free, nothing is.
        let free_bytes = free_bytes(&self.directory).unwrap_or(0);
        let judged = |is_alone: bool| {
            let status = file.metadata().map_err(|_| Passes::NotNew)?;
            self.stage.begins(&Opened {
                is_regular: status.is_file(),
                is_writable: flags & libc::O_ACCMODE != libc::O_RDONLY,
                bytes: status.len(),
                links: status.nlink(),
                is_alone,
                is_fast_already: status.dev() == self.table.device(),
                free_bytes,
            })
        };
        judged(true)?;
        let path = self.copy_path(inode);
        let created = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(|_| Passes::NoRoom)?;
        let undo = |why: Passes| {
            let _gone = fs::remove_file(&path);
            why
        };
        let copy_inode = created.metadata().map(|it| (it.dev(), it.ino()));
        let copy_inode = copy_inode.map_err(|_| undo(Passes::NoRoom))?;
        if !self.table.insert(inode, copy_inode, file.as_raw_fd()) {
            return Err(undo(Passes::NoRoom));
        }
        let undo = |why: Passes| {
            self.table.remove(inode, copy_inode);
            undo(why)
        };
        const EXCLUSIVE: i32 = libc::O_CREAT | libc::O_EXCL;
        let is_alone = home::is_alone(&file).unwrap_or(flags & EXCLUSIVE == EXCLUSIVE);
        judged(is_alone).map_err(undo)?;
        home::give_times(&file, &created).map_err(|_| undo(Passes::Shared))?;
        let handed = open_copy(&path, flags).map_err(|_| undo(Passes::NoRoom))?;
        let entry = Entry::At(inode, name.to_owned());
        files.journal.add(&entry).map_err(|_| undo(Passes::NoRoom))?;
        let left = Left::of(&file);
        files.staged.insert(
            inode,
            Staged {
                home: Arc::new(file),
                copy: Arc::new(created),
                copy_inode,
                name: name.to_owned(),
                residence: Residence::default(),
                left,
                failure: String::new(),
                work: Arc::default(),
            },
        );
        Ok(handed)
    }

    fn copy_path(&self, inode: Inode) -> PathBuf {
        PathBuf::from(OsStr::from_bytes(self.table.copy_of(inode).bytes()))
    }

    /// The file at home becomes as its copy is, and durable. It stays in the fast place.
    fn sync(&self, inode: Inode) -> io::Result<()> {
        match self.refresh(inode)? {
            Some(home) => home.sync_all(),
            None => Ok(()),
        }
    }

    /// Copies all bytes home of a file that stays in the fast place; `None` where it is at home.
    fn refresh(&self, inode: Inode) -> io::Result<Option<Arc<File>>> {
        if !self.hold(inode) {
            return Ok(None);
        }
        let brought = self.bring(inode, &|| true);
        self.let_go(inode);
        brought.map(|(home, _)| Some(home))
    }

    /// Copies bytes home, one at a time. The answer is the real file, and whether the copy is whole.
    fn bring(&self, inode: Inode, goes_on: &dyn Fn() -> bool) -> io::Result<(Arc<File>, bool)> {
        let gone = || io::Error::from_raw_os_error(libc::ESTALE);
        let work = self.files().staged.get(&inode).map(|it| Arc::clone(&it.work));
        let work = work.ok_or_else(gone)?;
        let _alone = work.lock().unwrap_or_else(PoisonError::into_inner);
        let (home, copy) = {
            let files = self.files();
            let staged = files.staged.get(&inode).ok_or_else(gone)?;
            if staged.left.was_touched(Left::of(&staged.home)) {
                return Err(io::Error::other("somebody outside of the run has written to it"));
            }
            (Arc::clone(&staged.home), Arc::clone(&staged.copy))
        };
        home::place_freely(&home);
        let (mode, capabilities) = (home.metadata()?.mode(), home::capabilities(&home));
        let beat = Cell::new(Instant::now());
        let goes_on = || {
            if beat.get().elapsed() > BEAT_EVERY {
                beat.set(Instant::now());
                self.files().journal.touch();
            }
            goes_on()
        };
        let pace = Pace { bytes_per_second: self.stage.bytes_per_second, goes_on: &goes_on };
        let brought = home::bring(&copy, &home, &pace);
        give_back_bits(&home, mode)?;
        home::give_capabilities(&home, capabilities)?;
        let timed = home::give_times(&copy, &home);
        let mut files = self.files();
        files.journal.touch();
        if let Some(staged) = files.staged.get_mut(&inode) {
            staged.left = Left::of(&home);
        }
        drop(files);
        let is_whole = brought?;
        timed?;
        Ok((home, is_whole))
    }

    /// Does that with every file, also behind one that fails; the answer is the first failure.
    fn all(&self, each: impl Fn(Inode) -> io::Result<()>) -> io::Result<()> {
        let all: Vec<Inode> = self.files().staged.keys().copied().collect();
        all.into_iter().map(each).fold(Ok(()), io::Result::and)
    }

    /// The file is to be seen at home by who does not ask us: it is moved, or, where somebody has it open,
    /// made as its copy is.
    fn show(&self, inode: Inode) -> io::Result<()> {
        loop {
            match self.attempt(inode) {
                Attempt::Over => return Ok(()),
                Attempt::InVain => {}
                Attempt::Busy => thread::sleep(Duration::from_millis(1)),
                Attempt::NotNow => return self.refresh(inode).map(drop),
            }
        }
    }

    /// Moves a file home, if it can be.
    fn attempt(&self, inode: Inode) -> Attempt {
        let (step, is_busy) = {
            let mut files = self.files();
            let Some(staged) = files.staged.get_mut(&inode) else { return Attempt::Over };
            let is_busy = staged.residence.is_busy();
            if home::is_alone(&staged.copy) != Some(true) {
                return Attempt::NotNow;
            }
            let links = staged.home.metadata().map_or(1, |it| it.nlink());
            let step = staged.residence.step(Event::Unused { links });
            if step == Step::Drop {
                self.forget(&mut files, inode, &Entry::Dropped(inode));
                return Attempt::Over;
            }
            (step, is_busy)
        };
        match step {
            Step::Copy => {}
            _ if is_busy => return Attempt::Busy,
            _ => return Attempt::NotNow,
        }
        let goes_on = || {
            let files = self.files();
            files.staged.get(&inode).is_some_and(|it| !it.residence.is_spoiled())
        };
        let brought = self.bring(inode, &goes_on);
        self.copied(inode, brought.map(|(_, is_whole)| is_whole))
    }

    /// A copy is at home with all its bytes.
    fn count_moved(&self, staged: &Staged) {
        let bytes = staged.copy.metadata().map_or(0, |it| it.len());
        self.moved_files.fetch_add(1, Relaxed);
        self.moved_bytes.fetch_add(bytes, Relaxed);
    }

    fn copied(&self, inode: Inode, brought: io::Result<bool>) -> Attempt {
        let mut files = self.files();
        let Some(staged) = files.staged.get_mut(&inode) else { return Attempt::Over };
        let is_whole = matches!(brought, Ok(true));
        match staged.residence.step(Event::Copied { is_whole }) {
            Step::Finish => {
                self.count_moved(staged);
                self.forget(&mut files, inode, &Entry::Home(inode));
                Attempt::Over
            }
            Step::Keep => {
                staged.failure = match brought {
                    Err(error) => error.to_string(),
                    Ok(_) => "it changes without being open".to_owned(),
                };
                eprintln!(
                    "iolab: stage: {} cannot be moved home and stays in {}: {}",
                    staged.name.display(),
                    self.copy_path(inode).display(),
                    staged.failure
                );
                Attempt::NotNow
            }
            _ => Attempt::InVain,
        }
    }

    /// The copy goes. Whoever looks finds the real file from the moment that the table says so.
    fn forget(&self, files: &mut Files, inode: Inode, entry: &Entry) {
        // A line that is missing has a later recovery look at a copy that is not there.
        let _said = files.journal.add(entry);
        if let Some(staged) = files.staged.remove(&inode) {
            self.table.remove(inode, staged.copy_inode);
            let _gone = fs::remove_file(self.copy_path(inode));
        }
    }

    /// Files have other names now.
    fn note_names(&self) {
        let mut files = self.files();
        let Files { staged, journal, .. } = &mut *files;
        for (&inode, staged) in staged {
            let link = format!("/proc/self/fd/{}", staged.home.as_raw_fd());
            let Ok(name) = fs::read_link(link) else { continue };
            let has_name = staged.home.metadata().is_ok_and(|it| it.nlink() > 0);
            if has_name && name != staged.name {
                let _said = journal.add(&Entry::At(inode, name.clone()));
                staged.name = name;
            }
        }
    }

    /// The mover: goes over the files again and again until it is stopped.
    pub(super) fn move_files(&self) {
        while !self.stop.load(Relaxed) {
            let all: Vec<Inode> = self.files().staged.keys().copied().collect();
            let over = all.iter().filter(|&&inode| self.attempt(inode) == Attempt::Over).count();
            if over == 0 {
                thread::sleep(LOOK_EVERY.max(Duration::from_micros(all.len() as u64 * 20)));
            }
        }
    }

    /// Failures are forgotten: the reason may be gone.
    pub(super) fn retry(&self) {
        for staged in self.files().staged.values_mut() {
            staged.residence.step(Event::Retried);
        }
    }

    /// Whether nothing is left that comes home by itself.
    pub(super) fn is_settled(&self) -> bool {
        self.files().staged.values().all(|staged| staged.residence.has_failed())
    }

    /// How many files are on their way, for a person.
    pub(super) fn standing(&self) -> String {
        let files = self.files();
        let (mut count, mut open, mut bytes) = (0, 0, 0);
        for staged in files.staged.values().filter(|it| !it.residence.has_failed()) {
            count += 1;
            open += u32::from(home::is_alone(&staged.copy) == Some(false));
            bytes += staged.copy.metadata().map_or(0, |it| it.len());
        }
        let open = match open {
            0 => String::new(),
            open => format!(", {open} of them open in a process that goes on"),
        };
        format!("files still to come home: {count} with {}{open}", format_bytes(bytes))
    }

    /// What stays in the fast place, and why.
    pub(super) fn left(&self) -> Vec<String> {
        let files = self.files();
        let line = |staged: &Staged| format!("{}: {}", staged.name.display(), staged.failure);
        files.staged.values().map(line).collect()
    }
}

fn done(outcome: io::Result<()>) -> Reply {
    let errno = |error: io::Error| error.raw_os_error().unwrap_or(libc::EIO);
    Reply { errno: outcome.err().map_or(0, errno), ..DONE }
}

/// A descriptor takes the place of the program's, or the call goes on; `EAGAIN` says that there may be room.
fn replaced(outcome: io::Result<Option<File>>) -> (Reply, Option<File>) {
    match outcome {
        Ok(Some(file)) => (Reply { answer: Answer::Replace, errno: 0 }, Some(file)),
        Ok(None) => (PASS, None),
        Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => {
            (Reply { answer: Answer::Again, errno: 0 }, None)
        }
        Err(error) => (done(Err(error)), None),
    }
}

/// A write takes set-user-id bits away, which were set after the program's own writes. Whoever has set a mode
/// meanwhile means that one.
fn give_back_bits(home: &File, before: u32) -> io::Result<()> {
    const ACCESS: u32 = 0o777;
    const ALL: u32 = 0o7777;
    let now = home.metadata()?.mode();
    match now != before && now & ACCESS == before & ACCESS {
        true => home.set_permissions(fs::Permissions::from_mode(before & ALL)),
        false => Ok(()),
    }
}

fn open_copy(path: &Path, flags: i32) -> io::Result<File> {
    let path = c_path(path);
    // SAFETY: a terminated path; the result is a descriptor of ours.
    unsafe {
        match libc::open(path.as_ptr(), flags & KEPT_FLAGS | libc::O_CLOEXEC) {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(File::from_raw_fd(fd)),
        }
    }
}

fn duplicate(fd: i32) -> Option<File> {
    // SAFETY: no memory is involved; the result is a descriptor of ours.
    unsafe {
        match libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3) {
            -1 => None,
            fd => Some(File::from_raw_fd(fd)),
        }
    }
}
