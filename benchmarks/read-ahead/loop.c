/* Nanoseconds per call of a loop of reads, the least of some rounds: processor time, or with WALL elapsed.
 * Usage: loop FILE pread|read|backward|strided|seek BYTES COUNT STEP ROUNDS [WALL]
 * FILE is made, COUNT * STEP bytes long. `strided` reads BYTES every STEP bytes; `seek` asks for the end and
 * goes back before each read. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now_ns(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static void make(const char *path, long bytes) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    char block[65536];
    for (long at = 0; at < bytes; at += sizeof block) {
        for (size_t i = 0; i < sizeof block; i++) block[i] = (char)((at + i) * 31 >> 3);
        size_t length = bytes - at < (long)sizeof block ? bytes - at : sizeof block;
        if (write(fd, block, length) != (ssize_t)length) exit(1);
    }
    close(fd);
}

int main(int argument_count, char **arguments) {
    if (argument_count < 7) return 2;
    const char *path = arguments[1], *kind = arguments[2];
    long bytes = atol(arguments[3]), count = atol(arguments[4]), step = atol(arguments[5]);
    clockid_t clock = argument_count > 7 ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID;
    char *buffer = malloc(bytes);
    memset(buffer, 0, bytes);
    make(path, count * step);
    unsigned long sum = 0;
    double least = 1e18;
    for (long round = atol(arguments[6]); round > 0; round--) {
        int fd = open(path, O_RDONLY);
        double start = now_ns(clock);
        for (long i = 0; i < count; i++) {
            ssize_t got;
            if (kind[0] == 'r') {
                got = read(fd, buffer, bytes);
            } else if (kind[0] == 's' && kind[1] == 'e') {
                lseek(fd, 0, SEEK_END);
                lseek(fd, i * step, SEEK_SET);
                got = read(fd, buffer, bytes);
            } else {
                got = pread(fd, buffer, bytes, (kind[0] == 'b' ? count - 1 - i : i) * step);
            }
            if (got != bytes) return 1;
            sum += buffer[0] + buffer[bytes - 1];
        }
        double ns = (now_ns(clock) - start) / count;
        close(fd);
        least = ns < least ? ns : least;
    }
    printf("%.1f %lu\n", least, sum);
    unlink(path);
    return 0;
}
