//! The table of rules (`iolab_policy::insitu::rules`) on a mount: what is done before a call passes that
//! no stack answers.
//!
//! A stack serves everybody who has the file open, so one thing is left of flush, settle and release:
//! what is held goes out. Positions are the kernel's own.

use crate::tree::Inode;
use iolab_policy::insitu::rules::{Detail, Effect, Files, effect};
use iolab_trace::Function;

/// Does what the table lists for the files a call names first and second.
pub(crate) fn before(function: Function, named: Option<&Inode>, second: Option<&Inode>) {
    let Effect::Before(rules) = effect(function, Detail::default()) else { return };
    for &(_, files) in rules {
        let file = match files {
            Files::Named => named,
            Files::Second => second,
            // Programs come and go here without being noticed; whom they are to read with is served
            // by the same stack.
            Files::HandedOn | Files::All => None,
        };
        if let Some(file) = file
            && let Some(staged) = file.opened().staged()
        {
            staged.flush();
        }
    }
}
