//! Writing out what another process holds: it is alive and someone looks at the file, or it died.

use crate::attach::Run;
use crate::claim::LOOK_EVERY;
use crate::layout::{Entry, Holds, Wanted};
use crate::meeting::before_looking;
use crate::slab::{NO_BASE, Slab};
use crate::system::{self, Descriptor, birth_of};
use std::ffi::{CStr, CString};
use std::fmt;
use std::os::unix::ffi::OsStringExt;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// Held bytes that could not be written out. They stay where they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritten {
    /// Where the file was last seen; empty when nobody said.
    pub path: Vec<u8>,
    /// How many bytes.
    pub bytes: u64,
    /// Why.
    pub errno: i32,
}

impl Unwritten {
    /// This process cannot see what is held.
    fn unreachable() -> Unwritten {
        Unwritten { path: Vec::new(), bytes: 0, errno: libc::EACCES }
    }
}

impl fmt::Display for Unwritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = String::from_utf8_lossy(&self.path);
        let why = std::io::Error::from_raw_os_error(self.errno);
        write!(f, "{} bytes of {path} could not be written out: {why}", self.bytes)
    }
}

/// Why a file is not as its program believes it to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undrained {
    /// Its owner does not come out of a call.
    Busy,
    /// What is held could not be written out.
    Unwritten(Unwritten),
}

/// How long the launcher is waited for, in pauses of 100 µs; with what else they take some 10 s.
const ASKS: u64 = 50_000;

impl Run {
    /// Writes out what the owner of an entry holds, whoever it is, and has it look up at its next
    /// call: others use the file now, or look at it.
    ///
    /// # Errors
    /// When that could not be done; then what is held stays held.
    pub fn disturb(&self, entry: &Entry) -> Result<(), Undrained> {
        let owner = entry.owner.load(Acquire);
        if owner == 0 {
            return Ok(());
        }
        let key = entry.key();
        let here = match self.me() {
            0 => Err(Undrained::Unwritten(Unwritten::unreachable())),
            _ => self.disturb_here(entry, key),
        };
        match here {
            Err(Undrained::Unwritten(why)) if !self.is_launcher() => {
                match self.ask_launcher(entry, key) {
                    true => Ok(()),
                    false => Err(Undrained::Unwritten(why)),
                }
            }
            done => done,
        }
    }

    /// Has the launcher do what this process cannot: it may have no descriptor, no memory, no
    /// permission, no `/proc` or no slot. The answer is whether that was done.
    fn ask_launcher(&self, entry: &Entry, key: (u64, u64)) -> bool {
        if !self.has_launcher() {
            return false;
        }
        entry.wanted.store(Wanted::Out as u32, Release);
        self.table().header.wanted.store(1, Release);
        for attempt in 0..ASKS {
            let wanted = entry.wanted.load(Acquire);
            let is_pending = [Wanted::Out, Wanted::Working].iter().any(|it| *it as u32 == wanted);
            if !is_pending || !entry.is(key.0, key.1) {
                return wanted != Wanted::Refused as u32;
            }
            if attempt % LOOK_EVERY == LOOK_EVERY - 1 && !self.has_launcher() {
                return false;
            }
            system::pause(attempt);
        }
        false
    }

    /// In the launcher: does what others asked for.
    pub fn answer(&self) {
        if self.table().header.wanted.swap(0, AcqRel) == 0 {
            return;
        }
        let turn = |entry: &Entry, from: Wanted, to: Wanted| {
            entry.wanted.compare_exchange(from as u32, to as u32, AcqRel, Relaxed).is_ok()
        };
        for entry in &self.table().entries {
            if turn(entry, Wanted::Out, Wanted::Working) {
                let done = self.disturb(entry);
                let answer = if done.is_ok() { Wanted::Nothing } else { Wanted::Refused };
                // Who asked meanwhile is answered next time.
                turn(entry, Wanted::Working, answer);
            }
        }
    }

    fn disturb_here(&self, entry: &Entry, key: (u64, u64)) -> Result<(), Undrained> {
        let mut claim = self.claim(entry).ok_or(Undrained::Busy)?;
        if !entry.is(key.0, key.1) {
            return Ok(());
        }
        claim.tell();
        let owner = entry.owner.load(Acquire);
        let is_dead = owner != 0 && self.is_dead(owner);
        let written = self.write_out(entry, if is_dead { 0 } else { owner });
        if is_dead && written.is_ok() {
            self.clear_owner(entry);
        }
        written.map_err(Undrained::Unwritten)
    }

    /// The file was cut to nothing by who opened it: what a dead owner held of it is from before, and
    /// would come back behind what is written now.
    pub fn forget_cut(&self, entry: &Entry) {
        let (key, owner) = (entry.key(), entry.owner.load(Acquire));
        if owner == 0 || !self.is_dead(owner) {
            return;
        }
        let Some(mut claim) = self.claim(entry) else { return };
        if entry.is(key.0, key.1) && entry.owner.load(Acquire) == owner {
            claim.tell();
            self.drop_held(entry);
            self.clear_owner(entry);
        }
    }

    /// What is held goes nowhere. Under a claim.
    fn drop_held(&self, entry: &Entry) {
        self.slabs_of(entry).flatten().for_each(|slab| slab.clear());
        self.note_held(entry, false);
    }

    /// The slabs of an entry, top first; `None` for one that cannot be mapped here.
    fn slabs_of(&self, entry: &Entry) -> impl Iterator<Item = Option<Slab>> {
        let words = entry.slabs.iter().filter_map(|word| word.load(Acquire).checked_sub(1));
        words.map(|index| self.slab(index))
    }

    /// Writes out what any process holds.
    ///
    /// # Errors
    /// What could not be written out.
    pub fn disturb_all(&self) -> Vec<Undrained> {
        let holds = |entry: &&Entry| entry.is_used() && entry.holds.load(Relaxed) != 0;
        let mut failures = Vec::new();
        for entry in self.table().entries.iter().filter(holds) {
            failures.extend(self.disturb(entry).err());
        }
        failures
    }

    /// The launcher goes: nobody holds anything any more.
    ///
    /// # Errors
    /// What could not be written out.
    pub fn close(&self) -> Vec<Undrained> {
        // Who begins to hold says so first as well, and looks here then.
        self.table().header.closing.store(1, Release);
        before_looking();
        let owned = |entry: &&Entry| entry.is_used() && entry.owner.load(Relaxed) != 0;
        let entries = self.table().entries.iter();
        entries.filter(owned).filter_map(|entry| self.disturb(entry).err()).collect()
    }

    /// The process that makes the rest of the run's ends its own: after a launcher that was killed.
    pub fn inherit(&self) {
        self.table().header.launcher.store(system::own_pid(), Relaxed);
        self.table().processes[0].pid.store(system::own_pid(), Relaxed);
        self.slot.store(1, Relaxed);
    }

    /// Notes whether bytes of the entry's file are held. The call that holds the first ones is not
    /// over before [`Run::confirm_held`].
    pub fn note_held(&self, entry: &Entry, holds: bool) {
        let state = if holds { Holds::Begun } else { Holds::Nothing };
        let before = entry.holds.swap(state as u32, AcqRel);
        match (before != Holds::Nothing as u32, holds) {
            (false, true) => self.table().header.holding.fetch_add(1, AcqRel),
            (true, false) => self.table().header.holding.fetch_sub(1, AcqRel),
            _ => 0,
        };
    }

    /// What is held will be found under the path that was shown: the call that held it may return.
    pub fn confirm_held(&self, entry: &Entry) {
        let (begun, some) = (Holds::Begun as u32, Holds::Some as u32);
        let _ = entry.holds.compare_exchange(begun, some, AcqRel, Relaxed);
    }

    fn write_out(&self, entry: &Entry, living_owner: u32) -> Result<(), Unwritten> {
        let holds = entry.holds.load(Acquire);
        if holds != Holds::Some as u32 && living_owner == 0 {
            // Of a call that never returned, whose owner was killed inside.
            self.drop_held(entry);
            return Ok(());
        }
        if holds == Holds::Nothing as u32 {
            return Ok(());
        }
        let slabs: Option<Vec<Slab>> = self.slabs_of(entry).collect();
        let slabs = slabs.ok_or_else(Unwritten::unreachable)?;
        let (path, birth) =
            slabs.first().map(|slab| (slab.path(), slab.birth())).unwrap_or_default();
        // Lower stages first: what an upper one holds is newer.
        let holding = || slabs.iter().rev().filter(|slab| !slab.is_empty());
        let mut bytes = 0;
        for slab in holding() {
            bytes += slab.held().0.iter().map(|held| held.length).sum::<u64>();
        }
        if bytes > 0 && !self.is_launcher() && system::limits_files() {
            return Err(Unwritten::unreachable());
        }
        let failed = |errno| Unwritten { path: path.clone(), bytes, errno };
        match (bytes > 0).then(|| self.reopen(entry, living_owner, &path, birth)) {
            None => {}
            // A file without a name went with its last descriptor.
            Some(Err(_)) if living_owner == 0 && path.is_empty() => {}
            Some(Err(errno)) => return Err(failed(errno)),
            Some(Ok(file)) => {
                for slab in holding() {
                    write_slab(slab, &file).map_err(failed)?;
                }
            }
        }
        slabs.iter().for_each(Slab::clear);
        self.note_held(entry, false);
        Ok(())
    }

    /// The file, by the owner's own descriptor while it lives, or by where it was last seen.
    fn reopen(
        &self,
        entry: &Entry,
        living_owner: u32,
        path: &[u8],
        birth: u64,
    ) -> Result<Descriptor, i32> {
        let is_it = |file: &Descriptor| {
            file.status().is_some_and(|status| (status.st_dev, status.st_ino) == entry.key())
        };
        let number = entry.descriptor.load(Acquire);
        if let Some(pid) = self.pid_of(living_owner).filter(|_| number >= 0)
            && let Ok(file) = by_owner(pid, number as u32)
            && is_it(&file)
        {
            return Ok(file);
        }
        if self.is_launcher()
            && let Some(pid) = self.pid_of(living_owner)
            && let Some(file) = by_any_thread(pid, number).filter(|file| is_it(file))
        {
            return Ok(file);
        }
        let path = CString::new(path).map_err(|_| libc::ENOENT)?;
        let file = Descriptor::open(&path, libc::O_WRONLY | libc::O_NOFOLLOW)?;
        // A number may be another file's by now.
        let is_as_old = birth == 0 || birth_of(file.number()) == birth;
        if is_it(&file) && is_as_old { Ok(file) } else { Err(libc::ESTALE) }
    }
}

/// The first thread of a process may have ended before the others, and its descriptors with it.
fn by_any_thread(pid: u32, number: i32) -> Option<Descriptor> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    threads.flatten().find_map(|thread| {
        let path = thread.path().join("fd").join(number.to_string());
        let path = CString::new(path.into_os_string().into_vec()).ok()?;
        Descriptor::open(&path, libc::O_WRONLY).ok()
    })
}

fn by_owner(pid: u32, number: u32) -> Result<Descriptor, i32> {
    let mut path = [0u8; 40];
    let mut end = 0;
    let (mut a, mut b) = ([0; 10], [0; 10]);
    for part in
        [&b"/proc/"[..], system::decimal(pid, &mut a), b"/fd/", system::decimal(number, &mut b)]
    {
        path[end..end + part.len()].copy_from_slice(part);
        end += part.len();
    }
    let path = CStr::from_bytes_until_nul(&path).map_err(|_| libc::ENOENT)?;
    Descriptor::open(path, libc::O_WRONLY)
}

/// Writing a second time what a first one has begun comes to the same: extents have their place,
/// and what is appended begins at the size the file had before.
fn write_slab(slab: &Slab, file: &Descriptor) -> Result<(), i32> {
    let (held, appending) = slab.held();
    let mut append_at = 0;
    if appending {
        let base = slab.base();
        if base.load(Acquire) == NO_BASE {
            base.store(file.status().ok_or(libc::EIO)?.st_size as u64, Release);
        }
        append_at = base.load(Acquire);
    }
    for piece in held {
        let from = slab.staging().wrapping_add(piece.at as usize);
        let offset = if appending { append_at } else { piece.offset };
        // SAFETY: the piece lies in the staging memory of the slab.
        unsafe { file.write_all(from, piece.length, offset)? };
        append_at += piece.length;
    }
    Ok(())
}
