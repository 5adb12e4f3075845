//! The line between a process and the keeper of the fast place: a socket in the directory of the copies,
//! one connection per question or per call that must not meet the end of a move. Descriptors go both ways.
//!
//! The keeper lets go of what a connection held when that ends, however the process does.

use super::{FastPlace, Inode, Path};
use crate::system::{Descriptor, system_call};
use std::ffi::{CStr, c_int};
use std::mem::{offset_of, zeroed};

/// Name of the socket.
const NAME: &[u8] = b"agent";
/// The longest path that goes with a question, in bytes.
const PATH_BYTES_MAX: usize = 4096;

/// What a process asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Question {
    /// The file is not to come home until the connection ends. With [`STILL`] as flags, a copy that goes on
    /// has ended when the answer comes.
    Hold = 1,
    /// The descriptor that comes along was opened on a file of that name, with these flags; strategies
    /// choose it.
    Begin = 2,
    /// The same, but strategies do not choose it: is it staged already?
    Join = 3,
    /// The file at home is to be as its copy is, and durable.
    Sync = 4,
    /// The file at home is to be as its copy is.
    Show = 5,
    /// All files at home are to be durable and as their copies are.
    SyncAll = 6,
    /// Files have other names now.
    Renamed = 7,
    /// A write by the descriptor that comes along met no room in the fast place.
    Full = 8,
    /// What the connection holds is let go of, with what was done to the real file since.
    LetGo = 9,
    /// All files at home are to be as their copies are.
    ShowAll = 10,
    /// The file of the descriptor that comes along is asked for what its copy cannot have.
    Leave = 11,
}

impl Question {
    const ALL: [Question; 11] = [
        Question::Hold,
        Question::Begin,
        Question::Join,
        Question::Sync,
        Question::Show,
        Question::SyncAll,
        Question::Renamed,
        Question::Full,
        Question::LetGo,
        Question::ShowAll,
        Question::Leave,
    ];
}

/// With [`Question::Hold`]: the real file is about to be changed, so it is to be still.
pub const STILL: c_int = 1;

/// A question with what belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What is asked.
    pub question: Question,
    /// `O_…` flags of an open.
    pub flags: c_int,
    /// The real file, where one is meant.
    pub home: Inode,
}

/// What the keeper answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Answer {
    /// Done; or it failed with the error number that comes along.
    Done = 1,
    /// The call goes on as it is.
    Pass = 2,
    /// The descriptor that comes along takes the place of the program's.
    Replace = 3,
    /// There may be room now.
    Again = 4,
}

/// An answer with what belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// What is answered.
    pub answer: Answer,
    /// Why it failed; 0 when it did not.
    pub errno: c_int,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Words {
    kind: u32,
    flags: i32,
    device: u64,
    inode: u64,
}

/// A connection of a process to the keeper.
pub struct Line(Descriptor);

impl Line {
    /// Calls the keeper. The line's number is a high one, where the process may have such: what it opens next
    /// gets the number that it would get without us.
    ///
    /// # Errors
    /// The error number: it is not there, or there are no descriptors.
    pub fn open(place: &FastPlace) -> Result<Line, c_int> {
        let line = out_of_the_way(socket()?);
        let (address, length) = address(&place.path_of(NAME));
        // SAFETY: the address lives through the call.
        let called =
            unsafe { system_call!(SYS_connect, line.number(), &raw const address, length) };
        if called < 0 { Err(-called as c_int) } else { Ok(Line(line)) }
    }

    /// Asks; waits for the answer. Signals should be blocked: one who does not come back leaves the line. A
    /// descriptor that is promised is to be [taken](Line::take).
    ///
    /// # Errors
    /// The error number; `EIO` where the keeper went away.
    pub fn ask(
        &self,
        request: &Request,
        descriptor: Option<c_int>,
        path: &[u8],
    ) -> Result<Reply, c_int> {
        let words = Words {
            kind: request.question as u32,
            flags: request.flags,
            device: request.home.0,
            inode: request.home.1,
        };
        send(&self.0, words, descriptor, &path[..path.len().min(PATH_BYTES_MAX)])?;
        let words = self.hear()?.0;
        let answer = match words.kind {
            1 => Answer::Done,
            2 => Answer::Pass,
            3 => Answer::Replace,
            4 => Answer::Again,
            _ => return Err(libc::EIO),
        };
        Ok(Reply { answer, errno: words.flags })
    }

    /// Takes the descriptor that was promised instead of `fd`, which is closed first: closing a second descriptor
    /// of a file would drop the locks that the process has on it. The answer is its number, the lowest that is free,
    /// as that of any open: the number of `fd`, unless another thread was given that meanwhile.
    ///
    /// # Errors
    /// The error number, `EMFILE` where others took the last number; `fd` is closed then.
    pub fn take(&self, fd: c_int, is_closed_on_exec: bool) -> Result<c_int, c_int> {
        drop(Descriptor::of(fd));
        let number = self.hear()?.1.ok_or(libc::EMFILE)?.leaked();
        if !is_closed_on_exec {
            // SAFETY: no memory is involved.
            unsafe { system_call!(SYS_fcntl, number, libc::F_SETFD, 0) };
        }
        Ok(number)
    }

    /// The same, and it gets the number of `fd`. Where there is another thread, that may have been given to it.
    ///
    /// # Errors
    /// As those of [`Line::take`].
    pub fn take_as(&self, fd: c_int, is_closed_on_exec: bool) -> Result<(), c_int> {
        let taken = self.take(fd, is_closed_on_exec)?;
        if taken == fd {
            return Ok(());
        }
        let taken = Descriptor::of(taken);
        let flags = if is_closed_on_exec { libc::O_CLOEXEC } else { 0 };
        // SAFETY: no memory is involved.
        let done = unsafe { system_call!(SYS_dup3, taken.number(), fd, flags) };
        if done < 0 { Err(-done as c_int) } else { Ok(()) }
    }

    fn hear(&self) -> Result<(Words, Option<Descriptor>), c_int> {
        let (words, descriptor, _) = receive(&self.0, &mut [0; 1])?.ok_or(libc::EIO)?;
        Ok((words, descriptor))
    }
}

/// The same under a high number, where there is one.
fn out_of_the_way(line: Descriptor) -> Descriptor {
    /// Numbers that few programs get to, and many may have.
    const FIRST: [c_int; 3] = [768, 192, 48];
    for first in FIRST {
        // SAFETY: no memory is involved.
        let fd = unsafe { system_call!(SYS_fcntl, line.number(), libc::F_DUPFD_CLOEXEC, first) };
        if fd >= 0 {
            return Descriptor::of(fd as c_int);
        }
    }
    line
}

/// Where the keeper hears calls.
pub struct Listener(Descriptor);

impl Listener {
    /// Begins to listen in the directory of the copies.
    ///
    /// # Errors
    /// The error number.
    pub fn open(place: &FastPlace) -> Result<Listener, c_int> {
        const WAITING: c_int = 1024;
        let ear = socket()?;
        let (address, length) = address(&place.path_of(NAME));
        // SAFETY: the address lives through the call.
        let bound = unsafe { system_call!(SYS_bind, ear.number(), &raw const address, length) };
        // SAFETY: no memory is involved.
        let heard = unsafe { system_call!(SYS_listen, ear.number(), WAITING) };
        match bound.min(heard) {
            failed if failed < 0 => Err(-failed as c_int),
            _ => Ok(Listener(ear)),
        }
    }

    /// Waits for the next call.
    ///
    /// # Errors
    /// The error number, `EINVAL` once the ear was closed ([`Listener::close`]).
    pub fn accept(&self) -> Result<Talk, c_int> {
        loop {
            // SAFETY: no address is asked for.
            let fd =
                unsafe { system_call!(SYS_accept4, self.0.number(), 0, 0, libc::SOCK_CLOEXEC) };
            match fd {
                fd if fd >= 0 => return Ok(Talk(Descriptor::of(fd as c_int))),
                failed if failed == -(libc::EINTR as isize) => {}
                failed => return Err(-failed as c_int),
            }
        }
    }

    /// Whoever waits in [`Listener::accept`] comes back.
    pub fn close(&self) {
        // SAFETY: no memory is involved.
        unsafe { system_call!(SYS_shutdown, self.0.number(), libc::SHUT_RDWR) };
    }
}

/// The keeper's end of a line.
pub struct Talk(Descriptor);

impl Talk {
    /// The next question with descriptor and path; `None` when the line has ended or makes no sense.
    pub fn hear(&self) -> Option<(Request, Option<Descriptor>, Vec<u8>)> {
        let mut path = vec![0; PATH_BYTES_MAX];
        let (words, descriptor, bytes) = receive(&self.0, &mut path).ok()??;
        path.truncate(bytes);
        let question = Question::ALL.into_iter().find(|it| *it as u32 == words.kind)?;
        let home = (words.device, words.inode);
        Some((Request { question, flags: words.flags, home }, descriptor, path))
    }

    /// Answers, and sends a promised descriptor after it. Whoever has gone hears nothing.
    pub fn answer(&self, reply: Reply, descriptor: Option<c_int>) {
        let kind = reply.answer as u32;
        let words = Words { kind, flags: reply.errno, device: 0, inode: 0 };
        let _gone = send(&self.0, words, None, &[]);
        if descriptor.is_some() {
            let _gone = send(&self.0, words, descriptor, &[]);
        }
    }

    /// The process at the other end.
    pub fn process(&self) -> Option<u32> {
        let mut who = libc::ucred { pid: 0, uid: 0, gid: 0 };
        let mut length = size_of::<libc::ucred>() as libc::socklen_t;
        // SAFETY: both live through the call, which fills no more than that.
        let asked = unsafe {
            let (fd, level, option) = (self.0.number(), libc::SOL_SOCKET, libc::SO_PEERCRED);
            let (who, length) = (&raw mut who, &raw mut length);
            system_call!(SYS_getsockopt, fd, level, option, who, length)
        };
        (asked == 0 && who.pid > 0).then_some(who.pid as u32)
    }
}

fn socket() -> Result<Descriptor, c_int> {
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: no memory is involved.
    let fd = unsafe { system_call!(SYS_socket, libc::AF_UNIX, kind, 0) };
    if fd < 0 { Err(-fd as c_int) } else { Ok(Descriptor::of(fd as c_int)) }
}

fn address(path: &Path) -> (libc::sockaddr_un, usize) {
    let mut address = libc::sockaddr_un { sun_family: libc::AF_UNIX as u16, sun_path: [0; 108] };
    let text: &CStr = path.c_text();
    // The last byte stays 0: a directory is no longer than that (`DIRECTORY_BYTES_MAX`).
    for (to, &byte) in address.sun_path[..107].iter_mut().zip(text.to_bytes()) {
        *to = byte as libc::c_char;
    }
    (address, offset_of!(libc::sockaddr_un, sun_path) + text.to_bytes().len().min(107) + 1)
}

/// Room for one descriptor in a message, aligned as the system wants it.
#[repr(C)]
struct Control {
    header: libc::cmsghdr,
    descriptor: c_int,
    rest: c_int,
}

impl Control {
    /// Bytes of the header and one descriptor, as the system counts them.
    const USED: usize = size_of::<libc::cmsghdr>() + size_of::<c_int>();
}

fn send(
    to: &Descriptor,
    words: Words,
    descriptor: Option<c_int>,
    path: &[u8],
) -> Result<(), c_int> {
    let pieces = [
        libc::iovec { iov_base: (&raw const words).cast_mut().cast(), iov_len: size_of::<Words>() },
        libc::iovec { iov_base: path.as_ptr().cast_mut().cast(), iov_len: path.len() },
    ];
    let control = Control {
        header: libc::cmsghdr {
            cmsg_len: Control::USED,
            cmsg_level: libc::SOL_SOCKET,
            cmsg_type: libc::SCM_RIGHTS,
        },
        descriptor: descriptor.unwrap_or(-1),
        rest: 0,
    };
    // SAFETY: a plain structure.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = pieces.as_ptr().cast_mut();
    message.msg_iovlen = pieces.len();
    if descriptor.is_some() {
        message.msg_control = (&raw const control).cast_mut().cast();
        message.msg_controllen = size_of::<Control>();
    }
    loop {
        // SAFETY: the message and all that it leads to live through the call, which only reads.
        let sent = unsafe {
            system_call!(SYS_sendmsg, to.number(), &raw const message, libc::MSG_NOSIGNAL)
        };
        match sent {
            sent if sent >= 0 => return Ok(()),
            failed if failed == -(libc::EINTR as isize) => {}
            failed => return Err(-failed as c_int),
        }
    }
}

/// The words, a descriptor if one came, and how much of `path` was filled; `None` at the end.
fn receive(
    from: &Descriptor,
    path: &mut [u8],
) -> Result<Option<(Words, Option<Descriptor>, usize)>, c_int> {
    let mut words = Words { kind: 0, flags: 0, device: 0, inode: 0 };
    let pieces = [
        libc::iovec { iov_base: (&raw mut words).cast(), iov_len: size_of::<Words>() },
        libc::iovec { iov_base: path.as_mut_ptr().cast(), iov_len: path.len() },
    ];
    // SAFETY: plain structures.
    let (mut control, mut message): (Control, libc::msghdr) = unsafe { (zeroed(), zeroed()) };
    message.msg_iov = pieces.as_ptr().cast_mut();
    message.msg_iovlen = pieces.len();
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = size_of::<Control>();
    let received = loop {
        // SAFETY: the message and all that it leads to live through the call.
        let received = unsafe {
            system_call!(SYS_recvmsg, from.number(), &raw mut message, libc::MSG_CMSG_CLOEXEC)
        };
        match received {
            failed if failed == -(libc::EINTR as isize) => {}
            failed if failed < 0 => return Err(-failed as c_int),
            received => break received as usize,
        }
    };
    let has_one = message.msg_controllen >= Control::USED
        && control.header.cmsg_type == libc::SCM_RIGHTS
        && control.header.cmsg_level == libc::SOL_SOCKET;
    let descriptor = has_one.then(|| Descriptor::of(control.descriptor));
    match received.checked_sub(size_of::<Words>()) {
        Some(bytes) => Ok(Some((words, descriptor, bytes))),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_and_answers_cross_the_line_with_their_descriptors() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().to_str().unwrap().as_bytes();
        let (place, _) = FastPlace::create(directory, 1).unwrap();
        assert_eq!(Line::open(place).err(), Some(libc::ENOENT));
        let listener = Listener::open(place).unwrap();
        let request = Request { question: Question::Begin, flags: libc::O_RDWR, home: (3, 4) };
        let keeper = std::thread::spawn(move || {
            let talk = listener.accept().unwrap();
            let (heard, descriptor, path) = talk.hear().unwrap();
            assert_eq!((heard, &path[..]), (request, &b"/data/a"[..]));
            assert_eq!(talk.process(), Some(std::process::id()));
            let descriptor = descriptor.unwrap();
            talk.answer(Reply { answer: Answer::Replace, errno: 5 }, Some(descriptor.number()));
            assert!(talk.hear().is_none(), "the line has ended");
        });
        let line = Line::open(place).unwrap();
        let file = std::fs::File::open(folder.path()).unwrap();
        let fd = std::os::fd::IntoRawFd::into_raw_fd(file.try_clone().unwrap());
        let reply = line.ask(&request, Some(fd), b"/data/a").unwrap();
        assert_eq!(reply, Reply { answer: Answer::Replace, errno: 5 });
        let taken = line.take(fd, true).unwrap();
        let its = |fd| crate::system::status(fd).unwrap().st_ino;
        assert_eq!(its(taken), its(std::os::fd::AsRawFd::as_raw_fd(&file)));
        drop((line, Descriptor::of(taken)));
        keeper.join().unwrap();
    }
}
