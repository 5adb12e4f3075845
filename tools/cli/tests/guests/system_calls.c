/* Counts system calls. `system_calls COMMAND…`: those of the command, from its start as a program to its
 * end, of its first thread. `system_calls opens N FILE`: opens and closes a file as often. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static void check(int good) {
    if (!good) perror("system_calls"), exit(1);
}

static void opens(long count, const char *path) {
    while (count-- > 0) {
        int fd = open(path, O_RDWR);
        check(fd >= 0 && close(fd) == 0);
    }
}

int main(int count, char **arguments) {
    if (count == 4 && strcmp(arguments[1], "opens") == 0) return opens(atol(arguments[2]), arguments[3]), 0;
    pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        check(ptrace(PTRACE_TRACEME, 0, 0, 0) == 0);
        execv(arguments[1], arguments + 1);
        check(0);
    }
    int status;
    long stops = 0;
    check(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
    check(ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) == 0);
    while (WIFSTOPPED(status)) {
        int signal = WSTOPSIG(status);
        if (signal == (SIGTRAP | 0x80)) stops++;
        int passes = signal != SIGTRAP && signal != (SIGTRAP | 0x80);
        check(ptrace(PTRACE_SYSCALL, child, 0, passes ? signal : 0) == 0);
        check(waitpid(child, &status, 0) == child);
    }
    check(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    /* One stop before each call and one after it; the last one does not come back. */
    printf("%ld\n", (stops + 1) / 2);
    return 0;
}
