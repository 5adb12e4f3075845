/* Lowers a limit on itself, then works. With "full", its child has one descriptor to use. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int work(const char *name) {
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
    for (int i = 0; i < 20000; i++)
        if (pwrite(fd, "12345678", 8, i % 100 * 8) != 8) return 1;
    char *memory = malloc(1 << 20);
    if (!memory) return 2;
    memset(memory, 1, 1 << 20);
    free(memory);
    return close(fd);
}

int main(int count, char **arguments) {
    struct rlimit limit;
    int which = !strcmp(arguments[1], "file") ? RLIMIT_FSIZE : !strcmp(arguments[1], "space") ? RLIMIT_AS : RLIMIT_NOFILE;
    if (count < 3) return 9;
    limit.rlim_cur = limit.rlim_max = strtoull(arguments[2], NULL, 0);
    if (strcmp(arguments[1], "none") && setrlimit(which, &limit)) return 8;
    int failed = work("own");
    fflush(NULL);
    if (!strcmp(arguments[1], "full")) {
        int last = 0;
        for (int fd; (fd = dup(0)) >= 0;) last = fd;
        close(last);
    }
    pid_t child = fork();
    if (child == 0) _exit(work("child"));
    int status = 0;
    waitpid(child, &status, 0);
    printf("%d %d\n", failed, status);
    return failed || status ? 1 : 4;
}
