/* What programs may ask of Linux, and emulators may not give: `emulated WORD` ends 0 when it is as on Linux itself. */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int ended_with(pid_t pid) {
    int status = -1;
    return pid > 0 && waitpid(pid, &status, __WALL) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* A page is empty in a child where that was asked for. */
static int wiped_by_fork(void) {
    char *page = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || madvise(page, 65536, MADV_WIPEONFORK) != 0) return 0;
    *page = 1;
    pid_t pid = fork();
    if (pid == 0) _exit(*page);
    return ended_with(pid) == 0;
}

/* A child has its parent's memory until it executes a program. */
static int shared_by_vfork(void) {
    static volatile int said;
    pid_t pid = vfork();
    if (pid == 0) said = 1, _exit(0);
    return ended_with(pid) == 0 && said == 1;
}

static int ends_at_once(void *argument) {
    (void)argument;
    return 0;
}

/* A process may share memory with another one, and nothing else. */
static int shared_by_clone(void) {
    static char stack[65536] __attribute__((aligned(16)));
    return ended_with(clone(ends_at_once, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL)) == 0;
}

/* Nobody says on standard error that a signal ended a program. */
static int quiet_end(void) {
    struct rlimit none = {0, 0};
    int ends[2];
    char byte;
    if (pipe(ends) != 0) return 0;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], 2), close(ends[0]), close(ends[1]);
        setrlimit(RLIMIT_CORE, &none), signal(SIGABRT, SIG_DFL), raise(SIGABRT), _exit(0);
    }
    close(ends[1]);
    int is_quiet = read(ends[0], &byte, 1) == 0;
    ended_with(pid);
    return is_quiet;
}

/* A program of one thread gets a user namespace, where its user has one elsewhere. */
static int user_namespace(void) {
    return unshare(CLONE_NEWUSER) == 0;
}

/* A file may be given to another user. */
static int other_user(void) {
    char name[] = "/tmp/emulated-XXXXXX";
    int file = mkstemp(name);
    int is_given = file >= 0 && fchown(file, 65534, -1) == 0;
    unlink(name);
    return is_given;
}

/* A program may be traced. */
static int traced(void) {
    pid_t pid = fork();
    if (pid == 0) _exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0);
    return ended_with(pid) == 0;
}

/* A program may filter its system calls. */
static int filtered(void) {
    struct sock_filter all[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {1, all};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

/* Others see which program a process is. */
static int seen_by_name(void) {
    char own[4096] = "", seen[4096] = "", name[32];
    pid_t pid = fork();
    if (pid == 0) pause(), _exit(0);
    snprintf(name, sizeof name, "/proc/%d/exe", (int)pid);
    int is_seen = readlink("/proc/self/exe", own, sizeof own - 1) > 0 && readlink(name, seen, sizeof seen - 1) > 0;
    kill(pid, SIGKILL), waitpid(pid, NULL, 0);
    return is_seen && strcmp(own, seen) == 0;
}

/* A program is told its own state. */
static int own_state(void) {
    char state = '?';
    FILE *file = fopen("/proc/self/stat", "r");
    return file != NULL && fscanf(file, "%*d (%*[^)]) %c", &state) == 1 && state == 'R';
}

int main(int count, char **arguments) {
    static const struct {
        const char *word;
        int (*is_given)(void);
    } all[] = {
        {"wiped-by-fork", wiped_by_fork}, {"shared-by-vfork", shared_by_vfork}, {"shared-by-clone", shared_by_clone},
        {"quiet-end", quiet_end},         {"user-namespace", user_namespace},   {"other-user", other_user},
        {"traced", traced},               {"filtered", filtered},               {"seen-by-name", seen_by_name},
        {"own-state", own_state},
    };
    for (size_t i = 0; count == 2 && i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].word, arguments[1]) == 0) return all[i].is_given() ? 0 : 1;
    return 2;
}
