/* A program counts, in shared memory, the writes that have returned; another kills it at a random
 * moment and looks whether they are there. `counted ROUNDS` */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RECORD = 48, RECORDS = 20000 };
static const char *ways[] = {"placed", "appended", "scattered", "rewritten"};

static long place(int way, long i) { return way == 2 ? i * 7919 % RECORDS : way == 3 ? i % 100 : i; }

static void text(char *to, long i) {
    memset(to, 'a' + i % 26, RECORD);
    sprintf(to, "%ld", i);
}

static void child(int way, long first) {
    volatile long *count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, 9, 0);
    int fd = open("counted", O_RDWR | O_CREAT | (way == 1 ? O_APPEND : 0), 0644);
    char record[RECORD + 16];
    for (long i = 0; i < RECORDS; i++) {
        text(record, i);
        long done = way == 1 ? write(fd, record, RECORD) : pwrite(fd, record, RECORD, place(way, i) * RECORD);
        if (done != RECORD) _exit(3);
        *count = i + 1;
    }
    *count = RECORDS + 1;
    for (;;) pause();
}

int main(int argc, char **argv) {
    if (argc > 2) child(atoi(argv[2]), 0);
    int memory = memfd_create("count", 0), bad = 0;
    if (ftruncate(memory, 4096)) return 2;
    dup2(memory, 9);
    volatile long *count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, 9, 0);
    for (int round = 0; round < atoi(argv[1]); round++) {
        int way = round % 4;
        unlink("counted");
        *count = 0;
        pid_t pid = fork();
        if (pid == 0) {
            char number[8];
            sprintf(number, "%d", way);
            execl("/proc/self/exe", "counted", argv[1], number, NULL);
            _exit(9);
        }
        while (!*count) usleep(50);
        usleep((round * 7919L) % 4000);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        long returned = *count > RECORDS ? RECORDS : *count;
        int fd = open("counted", O_RDONLY);
        char record[RECORD + 16], found[RECORD];
        for (long i = way == 3 && returned > 100 ? returned - 99 : 0; i < returned; i++) {
            text(record, i);
            /* The write that was under way may be there or not, in whole or in part. */
            if (place(way, i) == place(way, returned)) continue;
            if (pread(fd, found, RECORD, place(way, i) * RECORD) != RECORD || memcmp(found, record, RECORD)) {
                printf("round %d, %s: record %ld of %ld is not there\n", round, ways[way], i, returned);
                bad++;
                break;
            }
        }
        close(fd);
    }
    unlink("counted");
    printf("%d rounds with losses\n", bad);
    return bad != 0;
}
