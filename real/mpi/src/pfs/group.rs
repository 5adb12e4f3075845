//! The processes that have a file open together: a communicator of their own, which is used while the
//! file is opened and never for data.
//!
//! Waiting is asking again and giving the processor away: with more ranks than processors, a library
//! that polls would take milliseconds for each step. With as many processors as ranks it is asked longer, since
//! who is given the processor, of another program perhaps, keeps it for milliseconds.

use super::numbers::{Class, Numbers};
use super::trouble::Trouble;
use crate::call::Call;
use crate::family::Family;
use crate::profiling;
use std::sync::{Mutex, OnceLock, PoisonError};

/// A communicator of ours.
pub(crate) struct Group {
    pub(crate) communicator: usize,
    pub(crate) rank: u32,
    pub(crate) size: u32,
    /// How often is asked before the processor is given away.
    polls: u32,
}

/// Where every rank may have a processor: a question takes some 100 ns, so that this is less than a time slice.
const POLLS_ALONE: u32 = 1000;
/// Where ranks share them, perhaps; on several nodes there is mostly nobody to give a processor to.
const POLLS_SHARED: u32 = 20;

fn polls(ranks: u32) -> u32 {
    // libc opens a file for each question.
    static PROCESSORS: OnceLock<i64> = OnceLock::new();
    // Not those this rank is bound to: the others are bound elsewhere.
    // SAFETY: may be asked at any time.
    let processors = || unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    if i64::from(ranks) <= *PROCESSORS.get_or_init(processors) { POLLS_ALONE } else { POLLS_SHARED }
}

pub(crate) fn check(answer: i32, what: &str) -> Result<(), Trouble> {
    match answer {
        0 => Ok(()),
        code => Err(Trouble::new(Class::Other, format!("{what} fails with code {code}"))),
    }
}

/// Waits for a request; the processor is given away after so many questions.
pub(crate) fn wait(request: &mut usize, polls: u32) -> Result<(), Trouble> {
    let ignored = Numbers::here().ignored_status;
    loop {
        for _ in 0..polls {
            let mut done = 0i32;
            // SAFETY: a request that goes on, and room for the answer.
            let answer = unsafe {
                profiling::test(request as *mut usize as usize, &raw mut done as usize, ignored)
            };
            check(answer, "MPI_Test")?;
            if done != 0 {
                return Ok(());
            }
        }
        std::thread::yield_now();
    }
}

/// A communicator of ours with the processes of that one. Of a single process nobody is asked or waited for: MPICH 4.0 has
/// no network in a session of one, and ends in its own progress.
fn duplicate(communicator: usize, size: u32) -> Result<usize, Trouble> {
    let (mut own, mut request) = (0usize, 0usize);
    let to = &raw mut own as usize;
    if size == 1 {
        // SAFETY: the program's communicator, and room for the handle.
        check(unsafe { profiling::comm_dup(communicator, to) }, "MPI_Comm_dup")?;
        return Ok(own);
    }
    // SAFETY: the program's communicator, and room for both handles.
    let answer = unsafe { profiling::comm_idup(communicator, to, &raw mut request as usize) };
    check(answer, "MPI_Comm_idup")?;
    wait(&mut request, 1)?;
    Ok(own)
}

/// Whether a communicator is one whose processes can open files together: of one group, and while MPI is at work.
pub(crate) fn can_open(communicator: usize) -> bool {
    if !profiling::is_at_work() || communicator == Numbers::here().no_communicator {
        return false;
    }
    let mut is_inter = 0i32;
    // SAFETY: a communicator of the program's, and room for the answer.
    let answer = unsafe { profiling::is_inter(communicator, &raw mut is_inter as usize) };
    answer == 0 && is_inter == 0
}

/// A number that a rank tells the others, or the class of what kept it from finding one, from 1 on.
fn to_tell(own: &Result<u64, Trouble>) -> [u64; 2] {
    own.as_ref().map_or_else(|trouble| [trouble.class as u64 + 1, 0], |&number| [0, number])
}

/// Communicators of ours that are there.
static THERE: Mutex<Vec<usize>> = Mutex::new(Vec::new());

fn there<T>(work: impl FnOnce(&mut Vec<usize>) -> T) -> T {
    work(&mut THERE.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Group {
    /// A communicator to call what is about all of MPI's: that of all processes, or where sessions know of none, one of ours.
    pub(crate) fn everybody() -> usize {
        let world = Family::here().world;
        if !profiling::is_in_session() || profiling::has_world() {
            return world;
        }
        Group::with_any(|communicator| communicator).unwrap_or(world)
    }

    /// What is done with a communicator of ours, on which errors are returned; none if there is none. It stays meanwhile.
    pub(crate) fn with_any<T>(work: impl FnOnce(usize) -> T) -> Option<T> {
        there(|there| there.last().map(|&communicator| work(communicator)))
    }

    /// The processes that call `MPI_File_open(communicator, …)`, all of which come here; none: the call is for the
    /// library to judge.
    pub(crate) fn of_open(call: &Call<'_>) -> Option<Group> {
        let communicator = call.handle(0);
        can_open(communicator).then(|| Group::of(communicator).ok()).flatten()
    }

    /// The processes of a communicator of one group. All of them come here.
    pub(crate) fn of(communicator: usize) -> Result<Group, Trouble> {
        let (mut rank, mut size) = (0i32, 0i32);
        // SAFETY: a communicator, and room for the answers.
        let answers = unsafe {
            [
                profiling::comm_rank(communicator, &raw mut rank as usize),
                profiling::comm_size(communicator, &raw mut size as usize),
            ]
        };
        check(answers[0].max(answers[1]), "MPI_Comm_rank")?;
        let (rank, size) = (rank as u32, size as u32);
        let own = duplicate(communicator, size)?;
        // A duplicate has the error handler of what it is one of, and what goes wrong here is ours to tell.
        let errors_return = Numbers::here().errors_return;
        // SAFETY: a communicator of ours, and a handler that is always there.
        let answer = unsafe { profiling::comm_set_errhandler(own, errors_return) };
        check(answer, "MPI_Comm_set_errhandler")?;
        there(|there| there.push(own));
        Ok(Group { communicator: own, rank, size, polls: polls(size) })
    }

    /// Gives all ranks the bytes of rank 0.
    pub(crate) fn broadcast(&self, bytes: &mut [u8]) -> Result<(), Trouble> {
        if self.size == 1 {
            return Ok(());
        }
        let (mut request, byte) = (0usize, Family::here().byte);
        let (address, count) = (bytes.as_mut_ptr() as usize, bytes.len());
        // SAFETY: the bytes stay until the request is done.
        let answer = unsafe {
            profiling::ibcast(address, count, byte, 0, self.communicator, &raw mut request as usize)
        };
        check(answer, "MPI_Ibcast")?;
        wait(&mut request, self.polls)
    }

    /// A number that rank 0 finds, for all ranks; if it finds none, all fail.
    pub(crate) fn found_by_first(
        &self,
        find: impl FnOnce() -> Result<u64, Trouble>,
    ) -> Result<u64, Trouble> {
        let own = if self.rank == 0 { find() } else { Ok(0) };
        let [class, number] = to_tell(&own);
        let mut told = [class.to_ne_bytes(), number.to_ne_bytes()];
        self.broadcast(told.as_flattened_mut())?;
        own?;
        let [class, number] = told.map(u64::from_ne_bytes);
        match class {
            0 => Ok(number),
            class => Err(Trouble::new(Class::told(class - 1), "")),
        }
    }

    /// What every rank has found, in their order; if one has failed, all do, with the class of the lowest that has.
    pub(crate) fn found_by_all(&self, own: Result<u64, Trouble>) -> Result<Vec<u64>, Trouble> {
        let all = self.gather_words(to_tell(&own))?;
        match all.iter().find(|[class, _]| *class != 0) {
            None => own.map(|_| all.iter().map(|[_, number]| *number).collect()),
            Some([class, _]) => {
                let class = Class::told(class - 1);
                Err(own.err().unwrap_or(Trouble::new(class, "")).of_all(class))
            }
        }
    }

    /// Whether all ranks mean the same; all of them come here.
    pub(crate) fn check_same<const N: usize>(
        &self,
        own: [u64; N],
        what: &str,
    ) -> Result<(), Trouble> {
        let all = self.gather_words(own)?;
        match all.iter().all(|other| *other == own) {
            true => Ok(()),
            false if self.rank == 0 => {
                Err(Trouble::new(Class::Arg, format!("ranks differ in {what}")))
            }
            false => Err(Trouble::new(Class::Arg, "")),
        }
    }

    /// A number of every rank, in their order.
    pub(crate) fn gather(&self, own: u64) -> Result<Vec<u64>, Trouble> {
        let mut all = vec![own; self.size as usize];
        self.gather_bytes(&own.to_ne_bytes(), |at, bytes| {
            all[at] = u64::from_ne_bytes(bytes.try_into().expect("a word has 8 bytes"));
        })?;
        Ok(all)
    }

    /// Some numbers of every rank, in the order of ranks.
    pub(crate) fn gather_words<const N: usize>(
        &self,
        own: [u64; N],
    ) -> Result<Vec<[u64; N]>, Trouble> {
        let mut all = vec![own; self.size as usize];
        let bytes: Vec<u8> = own.iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.gather_bytes(&bytes, |at, bytes| {
            for (to, word) in all[at].iter_mut().zip(bytes.chunks_exact(8)) {
                *to = u64::from_ne_bytes(word.try_into().expect("a word has 8 bytes"));
            }
        })?;
        Ok(all)
    }

    /// Gives `take` the bytes of every rank, as many of each; those of a group of one stay where they are.
    pub(crate) fn gather_bytes(
        &self,
        own: &[u8],
        mut take: impl FnMut(usize, &[u8]),
    ) -> Result<(), Trouble> {
        if self.size == 1 || own.is_empty() {
            return Ok(());
        }
        let mut all = vec![0u8; own.len() * self.size as usize];
        let (mut request, byte) = (0usize, Family::here().byte);
        let to = all.as_mut_ptr() as usize;
        // SAFETY: both places stay until the request is done.
        let answer = unsafe {
            profiling::iallgather(
                own.as_ptr() as usize,
                own.len(),
                byte,
                to,
                own.len(),
                byte,
                self.communicator,
                &raw mut request as usize,
            )
        };
        check(answer, "MPI_Iallgather")?;
        wait(&mut request, self.polls)?;
        all.chunks_exact(own.len()).enumerate().for_each(|(at, bytes)| take(at, bytes));
        Ok(())
    }

    /// `MPI_File_get_group`: writes a handle of the group to an address.
    ///
    /// # Safety
    /// There must be room for a handle.
    pub(crate) unsafe fn give(&self, address: usize) -> Result<(), Trouble> {
        // SAFETY: a communicator, and the caller's promise.
        check(unsafe { profiling::comm_group(self.communicator, address) }, "MPI_Comm_group")
    }

    /// Writes a handle of a predefined error handler to an address: a reference, as MPI gives it.
    ///
    /// # Safety
    /// There must be room for a handle.
    pub(crate) unsafe fn give_handler(&self, handler: usize, to: usize) -> Result<(), Trouble> {
        let usual = Numbers::here().errors_return;
        // SAFETY: a communicator of ours, and the caller's promise.
        let answers = unsafe {
            [
                profiling::comm_set_errhandler(self.communicator, handler),
                profiling::comm_get_errhandler(self.communicator, to),
                profiling::comm_set_errhandler(self.communicator, usual),
            ]
        };
        check(answers.into_iter().max().unwrap_or(0), "MPI_Comm_get_errhandler")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // SAFETY: a communicator of ours; without MPI there is nothing to give back.
        unsafe {
            there(|there| there.retain(|it| *it != self.communicator));
            if profiling::is_at_work() {
                profiling::comm_free(&raw mut self.communicator as usize);
            }
        }
    }
}
