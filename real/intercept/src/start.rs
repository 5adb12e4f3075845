//! How the library comes to life: called by the loader before `main`, with the environment; and how
//! it does once more in a forked child.
//!
//! `IOLAB_SPOOL` names the directory to record into, or `IOLAB_RECORD` the one to make a spool in;
//! `IOLAB_APPLY` the strategies. Without any, or in a program that was not chosen, every call passes through
//! and libc stays as it is.

use crate::mode::{self, Mode};
use crate::{
    bytes, chosen, hook, moment, next, patch, path, process, recorder, roomy, stage, system,
};
use iolab_trace::spool::Unseen;
use std::ffi::c_char;
use std::sync::atomic::{AtomicPtr, Ordering};

#[used]
#[unsafe(link_section = ".init_array")]
static START: unsafe extern "C" fn(i32, *const *const c_char, *const *const c_char) = start;

#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;

static ENVIRONMENT: AtomicPtr<*const c_char> = AtomicPtr::new(std::ptr::null_mut());

unsafe extern "C" fn start(
    count: i32,
    arguments: *const *const c_char,
    environment: *const *const c_char,
) {
    ENVIRONMENT.store(environment.cast_mut(), Ordering::Relaxed);
    bytes::find();
    next::find_all();
    system::find_thread_flag();
    system::find_checker(variable(b"LD_PRELOAD"));
    // SAFETY: the loader's arguments.
    let chosen = unsafe { chosen::chosen(count, arguments, &variable) };
    if chosen == chosen::Chosen::Passed {
        return;
    }
    if hook::sandbox::is_inherited(variable(b"IOLAB_FILTERS")) {
        recorder::note_filtered(&variable);
        return;
    }
    process::start(enter_child);
    let records = recorder::start(count, arguments, &variable);
    let stages = chosen == chosen::Chosen::Staged && stage::start(&variable);
    if !records.has(Mode::RECORD) && !stages {
        return;
    }
    // SAFETY: registers a function of ours; a failure only means it is not called.
    unsafe { at_quick_exit(hook::process::at_quick_exit) };
    mode::add(records);
    mode::add(Mode::USUAL);
    if stages {
        mode::add(Mode::STAGE);
    }
    hook::fork::start();
    // After the mode: without one, hooks go on to libc, which from here on leads back to them.
    if variable(b"IOLAB_NO_PATCH").is_some() || !patch::all() {
        recorder::unseen(Unseen::Stdio);
        recorder::runs::choose(u32::MAX);
        stage::step_aside("calls inside libc cannot be seen here");
    } else {
        recorder::patched();
    }
}

/// Sets up what a forked child must have of its own.
#[cold]
fn enter_child() {
    process::settle();
    path::enter_child();
    roomy::enter_child();
    moment::forget_lending();
    mode::restore();
    recorder::enter_child();
    stage::enter_child();
}

unsafe extern "C" {
    fn at_quick_exit(function: extern "C" fn()) -> i32;
}

extern "C" fn end() {
    if mode::get() != Mode::NOTHING && process::owns_state() {
        stage::before_exit();
        recorder::ended();
    }
}

/// The value of an environment variable as it was at start; lives as long as the process.
fn variable(name: &[u8]) -> Option<&'static [u8]> {
    let value = |text: &'static [u8]| text.strip_prefix(name)?.strip_prefix(b"=");
    variables().find_map(value)
}

/// All variables as they were at start, `NAME=value`.
pub(crate) fn variables() -> impl Iterator<Item = &'static [u8]> {
    let mut at = ENVIRONMENT.load(Ordering::Relaxed);
    std::iter::from_fn(move || {
        // SAFETY: the loader's array of terminated texts, ended by null.
        unsafe {
            if at.is_null() || (*at).is_null() {
                return None;
            }
            let text = std::ffi::CStr::from_ptr(*at).to_bytes();
            at = at.add(1);
            Some(text)
        }
    })
}
