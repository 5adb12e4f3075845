/* Processes that write one file together: ranks PATH PIECE COUNT RANKS LAYOUT PAUSE_US
 *
 * Each of RANKS processes writes COUNT pieces of PIECE bytes, PAUSE_US before each as one that computes would.
 * LAYOUT is `interleaved` (piece i of rank r is number i * RANKS + r of the file) or `segmented` (each rank
 * has a part of its own). Prints the seconds from the common start until the last has closed. */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    if (argc != 7) errx(2, "usage: ranks PATH PIECE COUNT RANKS LAYOUT PAUSE_US");
    size_t piece = strtoul(argv[2], 0, 10), count = strtoul(argv[3], 0, 10), ranks = strtoul(argv[4], 0, 10);
    int interleaved = !strcmp(argv[5], "interleaved");
    long pause_us = strtol(argv[6], 0, 10);
    int start[2];
    char go;
    if (pipe(start)) err(1, "pipe");
    for (size_t rank = 0; rank < ranks; rank++) {
        pid_t pid = fork();
        if (pid < 0) err(1, "fork");
        if (pid > 0) continue;
        int fd = open(argv[1], O_WRONLY | O_CREAT, 0644);
        if (fd < 0) err(1, "%s", argv[1]);
        char *bytes = malloc(piece);
        memset(bytes, 'a' + (int)rank, piece);
        close(start[1]);
        if (read(start[0], &go, 1) < 0) err(1, "start");
        for (size_t i = 0; i < count; i++) {
            struct timespec pause = {0, pause_us * 1000};
            if (pause_us) nanosleep(&pause, 0);
            size_t number = interleaved ? i * ranks + rank : rank * count + i;
            if (pwrite(fd, bytes, piece, number * piece) != (ssize_t)piece) err(1, "pwrite");
        }
        if (close(fd)) err(1, "close");
        _exit(0);
    }
    usleep(100000); /* all of them stand at the start */
    double begin = now();
    close(start[1]);
    for (int status; wait(&status) > 0;)
        if (status) errx(1, "a rank failed");
    printf("%f\n", now() - begin);
    return 0;
}
