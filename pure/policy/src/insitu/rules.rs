//! The rules: which call does what to the files that strategies serve. One table for everybody who
//! drives stacks: the preloaded library on a live program, replay and simulator on a recorded one.
//!
//! A description is *staged* when this process opened it, on a regular file whose path a strategy
//! chooses, no file of a parallel runtime ([`super::runtimes`]), not `O_SYNC`, `O_DSYNC`,
//! `O_DIRECT` or `O_PATH`. All staged descriptions of one file (inode) of one process share one
//! stack. What a call means to its own stack is [`Effect::Own`]: reads, writes, seeks, `fsync`,
//! `fdatasync`, sizes. Every other call passes, after what [`Effect::Before`] lists.
//!
//! The order matters: a driver does these things one after another, and all of them before the
//! call.

use iolab_trace::{Class, Function};

/// What is done with a file before a call passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// What is held is written out.
    Flush,
    /// That, and the position of each description is true below.
    Settle,
    /// That, and the file's calls pass from then on, until it is opened anew.
    Release,
}

/// Which files of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Files {
    /// The one the call is on, by a descriptor or a path.
    Named,
    /// The one the call names second: the target of a copy, the new name of a rename.
    Second,
    /// Those of which a description stays open in a program that is executed.
    HandedOn,
    /// All.
    All,
}

/// One thing to do before a call.
pub type Rule = (Act, Files);

/// What a call does to the files that strategies serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The stack of its descriptor answers it.
    Own,
    /// It passes, after these.
    Before(&'static [Rule]),
}

/// What decides beside the function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    /// Its descriptor is staged.
    pub is_staged: bool,
    /// Of `ioctl`: the request.
    pub request: u64,
    /// Of `preadv2` and `pwritev2`: there are flags.
    pub has_flags: bool,
    /// Of `posix_spawn`: there are file actions, which may do anything to descriptors.
    pub has_actions: bool,
}

/// The table.
pub fn effect(function: Function, detail: Detail) -> Effect {
    use Act::{Flush, Release, Settle};
    use Files::{All, HandedOn, Named, Second};
    const NOTHING: Effect = Effect::Before(&[]);
    const LOOK: Effect = Effect::Before(&[(Flush, Named)]);
    const GIVE_UP: Effect = Effect::Before(&[(Release, Named)]);
    const SHOW_ALL: Effect = Effect::Before(&[(Flush, All)]);
    let own_or = |foreign| if detail.is_staged { Effect::Own } else { foreign };
    match (function, function.class()) {
        (Function::AIO_READ | Function::AIO_WRITE, _) => GIVE_UP,
        (_, Class::Read | Class::Write) if detail.has_flags => GIVE_UP,
        (_, Class::Read | Class::Seek) => own_or(LOOK),
        (_, Class::Write | Class::Truncate | Class::Allocate) => own_or(GIVE_UP),

        (Function::FSYNC | Function::FDATASYNC, _) => own_or(LOOK),
        (Function::SYNC | Function::SYNCFS, _) => SHOW_ALL,
        (Function::MSYNC, _) => NOTHING,
        (_, Class::Sync | Class::Open) => LOOK,

        // That is how programs say that others may look, at this file or at any other; and a range
        // may count from the position.
        (Function::FLOCK, _) => SHOW_ALL,
        (_, Class::Lock) => Effect::Before(&[(Flush, All), (Settle, Named)]),

        (_, Class::Stat | Class::Rename | Class::Unlink | Class::Attribute) => {
            Effect::Before(&[(Flush, Named), (Flush, Second)])
        }
        (Function::IOCTL, _) => match Request::of(detail.request) {
            Request::Nothing => NOTHING,
            Request::Looks => LOOK,
            Request::Counts => Effect::Before(&[(Settle, Named)]),
            Request::Unknown => GIVE_UP,
        },
        // Maps, status flags, leases, watches.
        (_, Class::Map | Class::Control) => GIVE_UP,
        (_, Class::Copy) => Effect::Before(&[(Release, Named), (Release, Second)]),

        (Function::FORK | Function::CLONE | Function::EXEC, _) => Effect::Before(&[(Release, All)]),
        (Function::POSIX_SPAWN, _) if detail.has_actions => Effect::Before(&[(Release, All)]),
        (
            Function::VFORK
            | Function::POSIX_SPAWN
            | Function::SYSTEM
            | Function::POPEN
            | Function::WORDEXP,
            _,
        ) => Effect::Before(&[(Release, HandedOn), (Flush, All)]),
        (Function::EXIT, _) => SHOW_ALL,

        // Descriptors that come and go are the driver's to count.
        _ => NOTHING,
    }
}

/// Whether the file system may not have such a place in a file: the least that any for large files has is 2 TiB (ext4
/// without extents). How far it goes is not to be asked, so it is to answer itself: of a file with such a call what is
/// held goes out, and this call and all that follow pass.
#[inline]
pub const fn is_far(offset: u64) -> bool {
    const NEAR_BYTES: u64 = 1 << 41;
    offset >= NEAR_BYTES
}

/// What an `ioctl` on a regular file means to the strategies that serve it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// It concerns the descriptor, or is no request of regular files (terminals).
    Nothing,
    /// It looks at the file below: its extents, its flags.
    Looks,
    /// It counts from the file position (`FIONREAD`).
    Counts,
    /// It may share or change bytes (`FICLONE`), or is not known here.
    Unknown,
}

impl Request {
    /// By its number on Linux (x86-64 and AArch64 agree on these).
    pub fn of(number: u64) -> Request {
        // The second argument of `ioctl` is an unsigned 32-bit word to the kernel.
        match number as u32 {
            // FIONCLEX, FIOCLEX, FIONBIO, FIOASYNC; TCGETS to TIOCGSERIAL, of terminals.
            0x5450..=0x5452 | 0x5421 | 0x5401..=0x541a | 0x541c..=0x5420 => Request::Nothing,
            0x541b => Request::Counts,
            // FS_IOC_FIEMAP, FIBMAP, FIGETBSZ, FS_IOC_GETFLAGS, FS_IOC_FSGETXATTR,
            // FS_IOC_GETVERSION, FS_IOC_GETFSLABEL.
            0xc020_660b | 1 | 2 | 0x8008_6601 | 0x801c_581f | 0x8008_7601 | 0x8100_9431 => {
                Request::Looks
            }
            _ => Request::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_trace::function::TABLE;

    fn functions() -> impl Iterator<Item = Function> {
        TABLE.iter().map(|row| row.function)
    }

    #[test]
    fn what_a_stack_answers_itself_is_made_true_for_when_another_descriptor_asks() {
        let staged = Detail { is_staged: true, ..Detail::default() };
        let own: Vec<Function> =
            functions().filter(|&function| effect(function, staged) == Effect::Own).collect();
        assert!(
            [Function::PWRITEV, Function::FALLOCATE, Function::LSEEK, Function::FSYNC]
                .iter()
                .all(|function| own.contains(function))
        );
        for function in own {
            let changes =
                matches!(function.class(), Class::Write | Class::Truncate | Class::Allocate);
            let act = if changes { Act::Release } else { Act::Flush };
            match effect(function, Detail::default()) {
                Effect::Before(rules) => assert_eq!(rules, [(act, Files::Named)], "{function:?}"),
                Effect::Own => panic!("{function:?} without a stack"),
            }
        }
    }

    #[test]
    fn no_call_but_on_a_staged_descriptor_is_a_stacks_own() {
        let details = [
            Detail::default(),
            Detail { has_flags: true, ..Detail::default() },
            Detail { has_actions: true, ..Detail::default() },
        ];
        for (function, detail) in functions().flat_map(|it| details.map(|detail| (it, detail))) {
            assert_ne!(effect(function, detail), Effect::Own, "{function:?} {detail:?}");
        }
        let flags = Detail { is_staged: true, has_flags: true, ..Detail::default() };
        assert_eq!(
            effect(Function::PREADV, flags),
            Effect::Before(&[(Act::Release, Files::Named)])
        );
    }

    #[test]
    fn whatever_makes_a_process_lets_it_see_everything() {
        for function in [Function::FORK, Function::CLONE, Function::EXEC] {
            let all = Effect::Before(&[(Act::Release, Files::All)]);
            assert_eq!(effect(function, Detail::default()), all, "{function:?}");
        }
        for function in [Function::VFORK, Function::POSIX_SPAWN, Function::SYSTEM, Function::POPEN]
        {
            let Effect::Before(rules) = effect(function, Detail::default()) else {
                panic!("{function:?} is no stack's own")
            };
            let expected = [(Act::Release, Files::HandedOn), (Act::Flush, Files::All)];
            assert_eq!(rules, expected, "{function:?}");
        }
        let acts = Detail { has_actions: true, ..Detail::default() };
        let all = Effect::Before(&[(Act::Release, Files::All)]);
        assert_eq!(effect(Function::POSIX_SPAWN, acts), all);
        assert_ne!(effect(Function::SYSTEM, acts), all);
    }
}
