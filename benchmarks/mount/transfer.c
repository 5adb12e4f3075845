/* Reads or writes a file of SIZE bytes in pieces of BLOCK, ROUNDS times, and prints the least wall and
 * processor time of a round in ns per piece: transfer read|write FILE BLOCK SIZE ROUNDS. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int count, char **word) {
    if (count != 6) return 2;
    int is_write = word[1][0] == 'w', rounds = atoi(word[5]);
    long block = atol(word[3]), size = atol(word[4]);
    char *memory = aligned_alloc(4096, block);
    memset(memory, 'x', block);
    int fd = open(word[2], O_RDWR | O_CREAT, 0600);
    if (fd < 0) { perror(word[2]); return 1; }
    for (long at = 0; at < size; at += block)
        if (pwrite(fd, memory, block, at) != block) { perror("pwrite"); return 1; }
    double least = 1e300;
    for (int round = 0; round < rounds; round++) {
        double began = now(CLOCK_MONOTONIC);
        for (long at = 0; at < size; at += block) {
            long moved = is_write ? pwrite(fd, memory, block, at) : pread(fd, memory, block, at);
            if (moved != block) { perror("transfer"); return 1; }
        }
        double took = (now(CLOCK_MONOTONIC) - began) / (size / block);
        if (took < least) least = took;
    }
    printf("%.0f\n", least);
    return close(fd);
}
