/* Every way of making a process, each while a file is being written. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void wait_for(const char *what, pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    printf("%s: %d\n", what, WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status));
    fflush(stdout);
}

int main(int count, char **arguments) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (count > 1) { /* what a child sees: its arguments and the file */
        for (int i = 1; i < count; i++) printf("argument %d [%s]\n", i, arguments[i]);
        int fd = open("shared", O_RDONLY);
        char bytes[4096];
        ssize_t length = read(fd, bytes, sizeof bytes);
        printf("%.*s|\n", (int)length, bytes);
        return count;
    }
    int kept = open("shared", O_RDWR | O_CREAT | O_TRUNC, 0644);
    int hidden = open("hidden", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    write(kept, "start ", 6), write(hidden, "hidden ", 7);

    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) { /* shares the file position */
        write(kept, "child ", 6), write(hidden, "child ", 6);
        exit(11);
    }
    wait_for("fork", pid);
    write(kept, "parent ", 7), write(hidden, "parent ", 7);

    int fresh = open("fresh", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    write(fresh, "before vfork ", 13);
    pid = vfork();
    if (pid == 0) { /* hands a close-on-exec file on as standard output, as Python does */
        dup2(fresh, 1);
        execl("/bin/echo", "echo", "from", "the", "child", "a6", "a7", "a8", "a9", (char *)NULL);
        _exit(99);
    }
    wait_for("vfork", pid);
    write(fresh, "after vfork ", 12);

    int spawned = open("spawned", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    write(spawned, "before spawn ", 13);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, spawned, 1);
    char *words[] = {"echo", "spawned", NULL};
    posix_spawnp(&pid, "echo", &actions, NULL, words, environ);
    wait_for("spawn", pid);
    write(spawned, "after spawn ", 12);

    int more = open("shared", O_WRONLY | O_APPEND);
    write(more, "appended ", 9);
    char *again[] = {arguments[0], "one", "two words", "", NULL};
    posix_spawn(&pid, arguments[0], NULL, NULL, again, environ);
    wait_for("spawn self", pid);
    write(more, "system ", 7);
    printf("system %d\n", system("cat shared; echo; exit 5"));
    write(more, "popen ", 6);
    FILE *pipe = popen("cat shared", "r");
    char text[400] = {0};
    size_t length = fread(text, 1, sizeof text - 1, pipe);
    printf("popen [%.*s] %d\n", (int)length, text, pclose(pipe));
    write(more, "exec failed ", 12);
    printf("exec %d\n", execl("/no/such/program", "x", (char *)NULL));
    write(more, "exec ", 5);
    execlp(arguments[0], arguments[0], "1", "2", "3", "4", "5", "6", "7", (char *)NULL);
    return 1;
}
