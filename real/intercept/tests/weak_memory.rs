//! The words that threads of a program share, under every order that the memory model allows and no x86-64
//! shows: the very sources, compiled with the atomics of an explorer (loom).

#![allow(missing_docs, reason = "a test")]

mod atomic {
    pub(crate) use loom::sync::atomic::{AtomicU16, AtomicU32, Ordering};
}
#[path = "../src/lending.rs"]
mod lending;

use loom::sync::Arc;
use loom::sync::atomic::Ordering::Relaxed;
use loom::sync::atomic::{AtomicU16, AtomicU32};

const USUAL: u16 = 32;

/// One thread comes back from a child, another one lends its memory to the next.
#[test]
fn while_a_thread_lends_the_memory_no_moment_is_an_ordinary_one() {
    loom::model(|| {
        let words = Arc::new((AtomicU32::new(1), AtomicU16::new(1)));
        let theirs = words.clone();
        let lender = loom::thread::spawn(move || lending::lend(&theirs.0, &theirs.1, USUAL));
        lending::take_back(&words.0, 1, &words.1, USUAL, true);
        lender.join().unwrap();
        assert_eq!((words.0.load(Relaxed), words.1.load(Relaxed)), (1, 1));
    });
}

/// Two come back at once.
#[test]
fn when_the_last_one_has_come_back_moments_are_ordinary_again() {
    loom::model(|| {
        let words = Arc::new((AtomicU32::new(2), AtomicU16::new(1)));
        let theirs = words.clone();
        let back = move |words: &(AtomicU32, AtomicU16)| {
            lending::take_back(&words.0, 1, &words.1, USUAL, true);
        };
        let other = loom::thread::spawn(move || back(&theirs));
        back(&words);
        other.join().unwrap();
        assert_eq!((words.0.load(Relaxed), words.1.load(Relaxed)), (0, 1 | USUAL));
    });
}
