/* What calls cost: CPU nanoseconds per call of each kind, the least of some rounds. With the argument
 * `start`: nanoseconds from the start of /bin/true to its end, the least of all.
 * Usage: loop FILE ROUNDS [start] */
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { LENGTH = 64, WINDOW = 65536, LARGE = 1 << 20 };
static char bytes[LARGE];
static const char *path;

static double now_ns(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static void check(int good) {
    if (!good) perror("loop"), exit(1);
}

static void seek(int fd, long i) { check(lseek(fd, i % WINDOW, SEEK_SET) >= 0); }
static void get(int fd, long i) { check(pread(fd, bytes, LENGTH, i * LENGTH % WINDOW) == LENGTH); }
static void put(int fd, long i) { check(pwrite(fd, bytes, LENGTH, i * LENGTH % WINDOW) == LENGTH); }
static void append(int fd, long i) { check(pwrite(fd, bytes, LENGTH, i * LENGTH) == LENGTH); }
static void append_large(int fd, long i) {
    if (i % (LARGE / LENGTH) == 0) check(pwrite(fd, bytes, LARGE, i * LENGTH) == LARGE);
}
static void open_close(int fd, long i) {
    (void)fd, (void)i;
    int other = open(path, O_RDWR);
    check(other >= 0 && close(other) == 0);
}

static const struct kind {
    const char *name;
    void (*call)(int fd, long i);
    long count;
    int threads, fresh;
} KINDS[] = {
    {"lseek", seek, 400000, 1, 0},
    {"pread", get, 400000, 1, 0},
    {"pwrite", put, 400000, 1, 0},
    {"append", append, 16 * (LARGE / LENGTH), 1, 1},
    {"append in 1 MiB", append_large, 16 * (LARGE / LENGTH), 1, 1},
    {"pwrite, 2 threads", put, 200000, 2, 0},
    {"pwrite, 4 threads", put, 100000, 4, 0},
    {"pread, 2 threads", get, 200000, 2, 0},
    {"open + close", open_close, 20000, 1, 0},
};

struct work {
    const struct kind *kind;
    int fd;
};

static void *run(void *argument) {
    struct work *work = argument;
    for (long i = 0; i < work->kind->count; i++) work->kind->call(work->fd, i);
    return 0;
}

static double round_ns(const struct kind *kind) {
    if (kind->fresh) unlink(path);
    struct work work = {kind, open(path, O_RDWR | O_CREAT, 0644)};
    check(work.fd >= 0);
    if (!kind->fresh) check(pwrite(work.fd, bytes, WINDOW, 0) == WINDOW);
    pthread_t thread[8];
    double start = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 1; i < kind->threads; i++) check(pthread_create(&thread[i], 0, run, &work) == 0);
    run(&work);
    for (int i = 1; i < kind->threads; i++) check(pthread_join(thread[i], 0) == 0);
    check(close(work.fd) == 0);
    return (now_ns(CLOCK_PROCESS_CPUTIME_ID) - start) / kind->count / kind->threads;
}

static double start_ns(void) {
    char *command[] = {"/bin/true", 0};
    pid_t child;
    int status;
    double start = now_ns(CLOCK_MONOTONIC);
    check(posix_spawn(&child, command[0], 0, 0, command, environ) == 0);
    check(waitpid(child, &status, 0) == child && status == 0);
    return now_ns(CLOCK_MONOTONIC) - start;
}

static double least_of(int rounds, double (*measure)(const void *), const void *argument) {
    double least = 1e18;
    while (rounds-- > 0) {
        double ns = measure(argument);
        least = ns < least ? ns : least;
    }
    return least;
}

static double of_start(const void *argument) {
    (void)argument;
    return start_ns();
}

static double of_kind(const void *argument) { return round_ns(argument); }

int main(int count, char **arguments) {
    if (count < 3) return 2;
    path = arguments[1];
    int rounds = atoi(arguments[2]);
    memset(bytes, 7, sizeof bytes);
    if (count > 3) {
        printf("start of a process\t%.1f\n", least_of(rounds * 50, of_start, 0));
        return 0;
    }
    /* With several threads from here on libc's flag of a single one is gone: single ones first. */
    for (unsigned i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (KINDS[i].threads == 1) printf("%s\t%.1f\n", KINDS[i].name, least_of(rounds, of_kind, &KINDS[i]));
    for (unsigned i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (KINDS[i].threads > 1) printf("%s\t%.1f\n", KINDS[i].name, least_of(rounds, of_kind, &KINDS[i]));
    unlink(path);
    return 0;
}
