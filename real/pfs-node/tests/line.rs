//! Lines from inside of a program. Alone in this binary: a forked child has all that other tests have open.

use iolab_pfs_node::say_in_guest;

#[test]
fn a_line_that_nobody_reads_ends_no_program_and_leaves_it_its_own_signals() {
    let mut ends = [0; 2];
    // SAFETY: there is room for two descriptors and the sets; one thread uses this process's memory.
    let (status, child) = unsafe {
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
        let child = libc::fork();
        if child == 0 {
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            libc::close(ends[0]);
            libc::dup2(ends[1], libc::STDERR_FILENO);
            libc::close(ends[1]);
            say_in_guest("lost");
            // What the program has pending by itself stays so.
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGPIPE);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            libc::raise(libc::SIGPIPE);
            say_in_guest("lost");
            libc::sigpending(&raw mut set);
            libc::_exit(10 + libc::sigismember(&raw const set, libc::SIGPIPE));
        }
        libc::close(ends[0]);
        libc::close(ends[1]);
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        (status, child)
    };
    assert!(child > 0 && libc::WIFEXITED(status), "ended by signal {}", libc::WTERMSIG(status));
    assert_eq!(libc::WEXITSTATUS(status), 11);
}
