/* Small programs with a fault in their I/O, and their near misses: `faults NAME faulty|near`, in the
 * current directory. Each does little enough to read and enough of it to be a habit. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char buffer[1 << 21];

static void must(int fine, const char *what) {
    if (!fine) {
        perror(what);
        exit(1);
    }
}

static int scratch(const char *name) {
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    must(fd >= 0, name);
    return fd;
}

/* A record at a time, against 64 KiB at a time. */
static void tiny_sequential_writes(int near) {
    int fd = scratch("out");
    for (int i = 0; i < 500; i++)
        must(write(fd, buffer, near ? 65536 : 64) > 0, "write");
    close(fd);
}

/* Records all over a table, against whole blocks of 64 KiB all over it. */
static void tiny_random_writes(int near) {
    int fd = scratch("table");
    for (long i = 0; i < 500; i++)
        must(pwrite(fd, buffer, near ? 65536 : 100, i * 7919 % 500 * 65536) > 0, "pwrite");
    close(fd);
}

/* A record at a time, against a stream that reads ahead. */
static void tiny_sequential_reads(int near) {
    int fd = scratch("in");
    must(write(fd, buffer, sizeof buffer) > 0, "write");
    close(fd);
    FILE *stream = fopen("in", "r");
    setvbuf(stream, NULL, near ? _IOFBF : _IONBF, near ? 65536 : 0);
    for (int i = 0; i < 2000; i++)
        must(fread(buffer, 128, 1, stream) == 1, "fread");
    fclose(stream);
}

/* Seeks to where the position is anyway, against seeks over a gap. */
static void redundant_seeks(int near) {
    int fd = scratch("in");
    must(ftruncate(fd, 64 << 20) == 0, "ftruncate");
    for (long i = 0; i < 500; i++) {
        lseek(fd, near ? i * 80000 : i * 65536, SEEK_SET);
        must(read(fd, buffer, 65536) > 0, "read");
    }
    close(fd);
}

/* A sync after each line, against one after each MiB. */
static void fsync_storm(int near) {
    int fd = scratch("log");
    for (int i = 0; i < 25; i++) {
        must(write(fd, buffer, near ? 1 << 20 : 80) > 0, "write");
        must(fsync(fd) == 0, "fsync");
    }
    close(fd);
}

/* Reads back each block at once, against writing all and then reading all. */
static void read_after_write(int near) {
    int fd = scratch("scratch");
    for (long i = 0; i < 300; i++) {
        must(pwrite(fd, buffer, 32768, i * 32768) > 0, "pwrite");
        if (!near)
            must(pread(fd, buffer, 32768, i * 32768) > 0, "pread");
    }
    for (long i = 0; i < 300 && near; i++)
        must(pread(fd, buffer, 32768, i * 32768) > 0, "pread");
    close(fd);
}

/* Asks for the same file again and again, against each file of a directory once. */
static void stat_storm(int near) {
    char name[32];
    struct stat status;
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "part.%d", near ? i : 0);
        close(scratch(near || i == 0 ? name : "other"));
        must(stat(name, &status) == 0, name);
    }
}

/* Flushes each line, against letting the stream decide. */
static void flush_after_each_print(int near) {
    FILE *stream = fopen("log", "w");
    for (int i = 0; i < 500; i++) {
        fprintf(stream, "step %d done, residual %g\n", i, 1.0 / (i + 1));
        if (!near)
            fflush(stream);
    }
    fclose(stream);
}

static void rank_work(const char *rank) {
    char name[32];
    snprintf(name, sizeof name, "out.%s", rank);
    int fd = scratch(name);
    for (int i = 0; i < 20000; i++)
        must(pwrite(fd, buffer, 16384, i % 64 * 16384) > 0, "pwrite");
    close(fd);
}

/* Four ranks with the same work, one of which is held up again and again by something outside. */
static void one_slow_rank(int near, char *self) {
    const char *ranks[] = {"0", "1", "2", "3"};
    for (int rank = 0; rank < 4; rank++) {
        pid_t child = fork();
        if (child == 0) {
            setenv("PMI_RANK", ranks[rank], 1);
            setenv("PMI_SIZE", "4", 1);
            execl(self, self, "rank", ranks[rank], (char *)0);
            _exit(127);
        }
        int status = 0;
        /* Held up while it works, not while it starts. */
        while (rank == 2 && !near && access("out.2", F_OK) != 0)
            usleep(1000);
        for (int pause = 0; rank == 2 && !near && pause < 40; pause++) {
            usleep(1000);
            kill(child, SIGSTOP);
            usleep(40000);
            kill(child, SIGCONT);
        }
        must(waitpid(child, &status, 0) == child && status == 0, "rank");
    }
}

int main(int count, char **arguments) {
    must(count == 3, "usage: faults NAME faulty|near");
    const char *name = arguments[1];
    int near = strcmp(arguments[2], "near") == 0;
    struct {
        const char *name;
        void (*run)(int near);
    } cases[] = {
        {"small-sequential-writes", tiny_sequential_writes},
        {"small-random-writes", tiny_random_writes},
        {"small-sequential-reads", tiny_sequential_reads},
        {"redundant-seeks", redundant_seeks},
        {"fsync-storm", fsync_storm},
        {"read-after-write", read_after_write},
        {"stat-storm", stat_storm},
        {"flush-after-each-print", flush_after_each_print},
    };
    if (strcmp(name, "rank") == 0)
        return rank_work(arguments[2]), 0;
    if (strcmp(name, "one-slow-rank") == 0)
        return one_slow_rank(near, arguments[0]), 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(name, cases[i].name) == 0)
            return cases[i].run(near), 0;
    fprintf(stderr, "no case %s\n", name);
    return 1;
}
