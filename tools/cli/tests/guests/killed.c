/* A program that ends in a way nobody can handle; what its writes returned for must be there.
 * `killed HOW ENDING`: HOW is placed, appended, streamed or scattered; ENDING a signal's number,
 * overflow (of the stack), raw (an exit past the library) or both (with its launcher). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "past_libc.h"

static volatile char sink;
static int deeper(int level) {
    char room[4096];
    memset(room, level, sizeof room);
    sink = room[level & 4095];
    return deeper(level + 1) + room[7];
}

int main(int argc, char **argv) {
    int append = !strcmp(argv[1], "appended") ? O_APPEND : 0;
    int fd = open("left behind", O_WRONLY | O_CREAT | append, 0644);
    int second = open("second", O_RDWR | O_CREAT, 0644);
    char text[32];
    if (!strcmp(argv[1], "scattered")) {
        for (int i = 0; i < 3000; i++) {
            int length = sprintf(text, "%05d %05d;", i, i * 7919 % 3001);
            if (pwrite(fd, text, length, i * 7919 % 3001 * 9) != length) return 2;
        }
    } else {
        for (int i = 0; i < 3000; i++) {
            int length = sprintf(text, "record %d\n", i);
            if (write(fd, text, length) != length) return 2;
        }
        if (!append && pwrite(fd, "RECORD", 6, 9000) != 6) return 2;
    }
    if (write(second, "and the other file\n", 19) != 19) return 2;
    if (!strcmp(argv[2], "overflow")) return deeper(0);
    if (!strcmp(argv[2], "both")) {
        /* Whoever looks after it goes first. */
        printf("%s\n", getenv("IOLAB_RUN"));
        fflush(stdout);
        kill(getppid(), SIGKILL);
        kill(getpid(), SIGKILL);
    }
    if (!strcmp(argv[2], "raw")) {
        past_libc(SYS_exit_group, 7, 0, 0);
    }
    signal(atoi(argv[2]), SIG_DFL);
    kill(getpid(), atoi(argv[2]));
    pause();
}
