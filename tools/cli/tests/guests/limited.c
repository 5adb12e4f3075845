/* A program at the limits the system sets it: numbers of descriptors, and the size of a file. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static char text[100];
static void limit(int which, rlim_t to) {
    if (setrlimit(which, &(struct rlimit){to, to})) exit(1);
}
static void tell(const char *what, long count) {
    printf("%s: %ld, %s\n", what, count, strerror(errno));
    fflush(stdout);
}
static int open_one(int index, int flags) {
    char name[20];
    sprintf(name, "f%d", index % 40);
    return open(name, flags, 0644);
}

/* Takes every number there is, by opens or by dups of an open file. */
static void take_all(int by_dup) {
    int count = 0, fd, first = open("first", O_RDWR | O_CREAT | O_TRUNC, 0644);
    write(first, "first ", 6);
    for (fd = first; fd >= 0; count++) {
        fd = by_dup && count > 10 ? dup(first) : open_one(count, O_RDWR | O_CREAT | O_APPEND);
        if (fd >= 0 && write(fd, "taken\n", 6) != 6) tell("not written", fd);
    }
    tell(by_dup ? "dups" : "opens", count);
    for (fd = first + 1; fd < first + count; fd++) if (write(fd, "again\n", 6) != 6) tell("not written again", fd);
    lseek(first, 2, SEEK_SET);
    write(first, "RST", 3);
    tell("position", lseek(first, 0, SEEK_CUR));
    for (fd = first + 1; fd < first + count; fd++) if (close(fd)) tell("not closed", fd);
    fd = open_one(1, O_RDONLY);
    tell("read", read(fd, text, 50));
    close(fd);
    fd = open("after", O_RDWR | O_CREAT | O_TRUNC, 0644);
    for (count = 0; count < 20; count++) write(fd, "after ", 6);
    tell("size", lseek(fd, 0, SEEK_END));
}

/* Each open gets the lowest number that is free. */
static void tell_numbers(void) {
    for (int index = 0; index < 30; index++) {
        errno = 0;
        int fd = open_one(index, O_RDWR | O_CREAT);
        tell("number", fd);
        if (fd < 0) break;
        write(fd, "numbered\n", 9);
        if (index % 4 == 3) close(fd - 1);
    }
}

/* A lock of its own stays its own, whatever is closed behind its back. */
static void keep_lock(void) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 5};
    int fd = open("locked", O_RDWR | O_CREAT, 0644), count = 0, status;
    if (fcntl(fd, F_SETLK, &lock)) exit(2);
    for (; count < 30; count++) if (open_one(count, O_RDWR | O_CREAT) < 0) break;
    if (!fork()) {
        struct flock asked = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 5};
        fcntl(fd, F_GETLK, &asked);
        _exit(asked.l_type == F_UNLCK ? 1 : 0);
    }
    wait(&status);
    errno = 0;
    tell("lock lost", status);
}

/* Writes until it may not. */
static void fill(const char *name) {
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644), count = 0;
    errno = 0;
    while (count < 60 && write(fd, text, sizeof text) == sizeof text) count++;
    tell(name, count);
    tell("position", lseek(fd, 0, SEEK_CUR));
    errno = 0;
    tell("beyond", pwrite(fd, text, sizeof text, 5000));
    _exit(0);
}
static void in_child(const char *name) {
    int status;
    if (!fork()) fill(name);
    wait(&status);
    errno = 0;
    tell("ended", status);
}

int main(int count, char **arguments) {
    const char *way = count > 1 ? arguments[1] : "";
    memset(text, 'x', sizeof text);
    if (!strcmp(way, "opens") || !strcmp(way, "dups")) take_all(way[0] == 'd');
    if (!strcmp(way, "lock")) keep_lock();
    if (!strcmp(way, "numbers")) tell_numbers();
    if (!strcmp(way, "lowered")) { open_one(0, O_RDWR | O_CREAT); limit(RLIMIT_NOFILE, 64); take_all(0); }
    if (!strcmp(way, "inherited")) { signal(SIGXFSZ, SIG_IGN); in_child("ignored"); signal(SIGXFSZ, SIG_DFL); in_child("killed"); }
    if (!strcmp(way, "size")) {
        int fd = open("before", O_RDWR | O_CREAT, 0644);
        write(fd, text, sizeof text);
        signal(SIGXFSZ, SIG_IGN);
        limit(RLIMIT_FSIZE, 3050);
        for (int index = 0; index < 40; index++) if (write(fd, text, sizeof text) != sizeof text) { tell("before", index); break; }
        in_child("ignored");
        signal(SIGXFSZ, SIG_DFL);
        in_child("killed");
    }
    return 0;
}
