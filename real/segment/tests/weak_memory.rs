//! The words that processes of a run say and look for, under every order that the memory model allows and no
//! x86-64 shows: the very sources, compiled with the atomics of an explorer (loom).

#![allow(missing_docs, reason = "a test")]

mod atomic {
    pub(crate) use loom::sync::atomic::{Ordering, fence};
}
#[path = "../src/meeting.rs"]
mod meeting;

use loom::sync::Arc;
use loom::sync::atomic::AtomicU32;
use loom::sync::atomic::Ordering::{AcqRel, Relaxed};
use meeting::before_looking;

/// One begins to hold bytes, the other to change names.
#[test]
fn of_two_who_say_and_then_look_one_finds_the_other() {
    loom::model(|| {
        let words = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let meet = |words: &[AtomicU32; 2], own: usize| {
            words[own].fetch_add(1, AcqRel);
            before_looking();
            words[1 - own].load(Relaxed)
        };
        let theirs = words.clone();
        let other = loom::thread::spawn(move || meet(&theirs, 1));
        let one = meet(&words, 0);
        assert!(one + other.join().unwrap() > 0, "neither has seen the other");
    });
}
