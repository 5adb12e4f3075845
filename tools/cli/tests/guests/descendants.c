/* Ways to make a process that do not pass `fork`, each while files are being written. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <pty.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utmp.h>
#include <wordexp.h>
#include "past_libc.h"

extern char **environ;
static int fd;
static void put(const char *text) { write(fd, text, strlen(text)); }
static void end(const char *what, pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    printf("%s: %d at %ld\n", what, WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status), (long)lseek(fd, 0, SEEK_CUR));
    fflush(stdout);
}
static int renew(const char *name, int flags) {
    if (fd > 0) close(fd);
    fd = open(name, O_RDWR | O_CREAT | O_TRUNC | flags, 0644);
    put("parent ");
    return fd;
}
static int in_clone(void *argument) { put(argument); return 7; }
static char stack[65536];

int main(int count, char **arguments) {
    if (count > 1) { /* a program started with our descriptors */
        printf("%s: file %ld bytes at %ld\n", arguments[1], (long)lseek(atoi(arguments[2]), 0, SEEK_END), 0L);
        return 0;
    }
    pid_t pid;
    renew("made._Fork", 0);
    if ((pid = _Fork()) == 0) { put("child "); _exit(1); }
    end("_Fork", pid), put("parent again");

    renew("made.clone", 0);
    pid = clone(in_clone, stack + sizeof stack, SIGCHLD, "child ");
    end("clone", pid), put("parent again");

    renew("made.clone_vfork", 0);
    pid = clone(in_clone, stack + sizeof stack, SIGCHLD | CLONE_VM | CLONE_VFORK, "child ");
    end("clone vfork", pid), put("parent again");

    /* Seen by nobody; the child touches nothing of its parent's. */
    renew("made.inline", 0);
    put("released "), lseek(fd, 0, SEEK_CUR), fsync(fd);
    int mode = fcntl(fd, F_SETFL, 0);
    if ((pid = fork_past_libc()) == 0) {
        int mine = open("made.by_the_child", O_WRONLY | O_CREAT | O_TRUNC, 0644);
        for (int i = 0; i < 100; i++) write(mine, "child ", 6);
        put("child ");
        syscall(SYS_exit_group, mode);
    }
    end("inline fork", pid), put("parent again");
    int held = open("made.held", O_RDWR | O_CREAT | O_TRUNC, 0644);
    write(held, "held by the parent", 18);
    if ((pid = fork_past_libc()) == 0) {
        struct stat status;
        write(open("made.other", O_WRONLY | O_CREAT, 0644), "x", 1);
        _exit(lseek(held, 0, SEEK_SET));
    }
    end("inline fork with held bytes", pid), close(held);

    renew("made.popen", O_CLOEXEC);
    FILE *stream = popen("wc -c < made.popen", "r");
    char text[100] = {0};
    fgets(text, sizeof text, stream), printf("popen %s", text), pclose(stream);
    put("parent again");
    wordexp_t words;
    printf("wordexp %d", wordexp("$(cat made.popen | tr ' ' _)", &words, 0)), printf(" %s\n", words.we_wordv[0]);
    put("and again"), fflush(stdout);

    renew("made.forkpty", 0);
    int terminal;
    if ((pid = forkpty(&terminal, NULL, NULL, NULL)) == 0) { put("child "); _exit(2); }
    end("forkpty", pid), put("parent again"), close(terminal);

    renew("made.daemon", 0);
    fflush(stdout);
    if ((pid = fork()) == 0) {
        put("before ");
        int pipes[2];
        pipe(pipes);
        int mine = open("made.daemons_own", O_WRONLY | O_CREAT | O_TRUNC, 0644);
        write(mine, "before ", 7);
        if (fork() == 0) { daemon(1, 1); put("daemon "), write(mine, "daemon ", 7), close(mine); write(pipes[1], "k", 1); _exit(0); }
        char byte; read(pipes[0], &byte, 1);
        _exit(3);
    }
    end("daemon", pid), put("parent again");

    /* A child of vfork changes its own table only. */
    renew("made.vfork", O_CLOEXEC);
    int second = open("made.second", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    write(second, "one ", 4);
    fflush(stdout);
    if ((pid = vfork()) == 0) {
        dup2(second, fd), close(second), close_range(20, 100, 0);
        int opened = open("made.second", O_RDONLY);
        (void)opened;
        execl("/bin/true", "true", (char *)NULL);
        _exit(9);
    }
    end("vfork", pid), put("parent again"), write(second, "two", 3), close(second);
    renew("made.vfork_output", O_CLOEXEC);
    for (int round = 0; round < 3; round++) {
        put("<");
        if ((pid = vfork()) == 0) { dup2(fd, 1); for (int i = 3; i < 50; i++) close(i); execl("/bin/echo", "echo", "-n", "child", (char *)NULL); _exit(9); }
        end("vfork with output", pid), put(">");
    }
    renew("made.vfork_kept", O_CLOEXEC);
    char number[10];
    sprintf(number, "%d", fd);
    if ((pid = vfork()) == 0) { fcntl(fd, F_SETFD, 0); execl(arguments[0], "x", "kept", number, (char *)NULL); _exit(9); }
    end("vfork handing on", pid), put("parent again");
    renew("made.vfork_write", O_CLOEXEC);
    if ((pid = vfork()) == 0) { put("child "); _exit(4); }
    end("vfork writing", pid), put("parent again");

    renew("made.spawn", O_CLOEXEC);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addclose(&actions, fd);
    posix_spawn_file_actions_addopen(&actions, 40, "made.spawned", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    posix_spawn_file_actions_adddup2(&actions, 40, 1);
    char *echo[] = {"echo", "spawned", NULL};
    posix_spawnp(&pid, "echo", &actions, NULL, echo, environ);
    end("spawn", pid), put("parent again");
    printf("system %d\n", system("wc -c < made.spawn")), fflush(stdout);
    put(" last");
    return 8;
}
