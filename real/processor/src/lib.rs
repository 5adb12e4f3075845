//! What differs between the processors that iolab runs on: how the system is called, which numbers
//! calls and flags have there, the counter of time, the size of pages.
//!
//! One file for each processor, all with the same names; nothing else of iolab asks which one it is,
//! but for the entry points of the preloaded library (`processor` in `real/intercept`) and a version of libc's
//! symbols (`real/layer`). Another processor is another such file.

#[cfg(target_arch = "aarch64")]
#[path = "aarch64.rs"]
mod one;
#[cfg(target_arch = "x86_64")]
#[path = "x86_64.rs"]
mod one;

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
compile_error!(
    "iolab knows Linux on x86-64 and AArch64; see real/processor for what another one takes"
);

mod pages;

pub use one::{
    COUNTER_NAME, LIBC_VERSION, PAGE_BYTES_MAX, SYS_RENAMEAT, WholePages, counter,
    is_counter_steady, native_open_flags, system_call, thread_pointer, traced_open_flags,
};
pub use pages::{page_bytes, whole_pages};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_by_number_answers_as_libc_does_and_says_what_is_wrong() {
        // SAFETY: no memory is involved.
        unsafe {
            assert_eq!(system_call(libc::SYS_getpid, [0; 6]), libc::getpid() as isize);
            let bad = system_call(libc::SYS_close, [usize::MAX, 0, 0, 0, 0, 0]);
            assert_eq!(bad, -(libc::EBADF as isize));
        }
    }

    #[test]
    fn all_six_arguments_arrive() {
        let (read, write) = (libc::PROT_READ as usize, libc::PROT_WRITE as usize);
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
        // SAFETY: a mapping of its own, which is given back.
        unsafe {
            let a = [0, page_bytes(), read | write, flags, usize::MAX, 0];
            let at = system_call(libc::SYS_mmap, a) as usize;
            assert_eq!(at % page_bytes(), 0);
            (at as *mut u8).write(7);
            assert_eq!(system_call(libc::SYS_munmap, [at, page_bytes(), 0, 0, 0, 0]), 0);
            let refused =
                system_call(libc::SYS_mmap, [0, page_bytes(), read, flags, usize::MAX, 1]);
            assert_eq!(refused, -(libc::EINVAL as isize), "the sixth is an offset of whole pages");
        }
    }

    #[test]
    fn the_counter_moves_on_and_threads_have_pointers_of_their_own() {
        let before = counter();
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(counter() > before);
        let other = std::thread::spawn(thread_pointer).join().unwrap();
        assert_ne!(thread_pointer(), other);
        assert_eq!(thread_pointer(), thread_pointer());
    }

    #[test]
    fn every_flag_of_open_has_its_number_in_traces_and_comes_back() {
        // Those of traces, which are those of x86-64 (`open_flags` of the policies).
        let numbers = [
            (libc::O_CREAT, 0o100),
            (libc::O_EXCL, 0o200),
            (libc::O_NOCTTY, 0o400),
            (libc::O_TRUNC, 0o1000),
            (libc::O_APPEND, 0o2000),
            (libc::O_NONBLOCK, 0o4000),
            (libc::O_DSYNC, 0o10000),
            (libc::O_DIRECT, 0o40000),
            (libc::O_DIRECTORY, 0o200000),
            (libc::O_NOFOLLOW, 0o400000),
            (libc::O_NOATIME, 0o1000000),
            (libc::O_CLOEXEC, 0o2000000),
            (libc::O_SYNC, 0o4010000),
            (libc::O_PATH, 0o10000000),
            (libc::O_TMPFILE, 0o20200000),
        ];
        for (native, traced) in numbers {
            assert_eq!(traced_open_flags(native | libc::O_RDWR), traced | 2, "{native:o}");
            assert_eq!(native_open_flags(traced | 2), native | libc::O_RDWR, "{traced:o}");
        }
        let all = numbers.iter().fold(0, |all, it| all | it.0);
        assert_eq!(native_open_flags(traced_open_flags(all)), all);
    }
}
