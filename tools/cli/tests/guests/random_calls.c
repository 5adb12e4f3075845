/* Makes random calls on a few files by several descriptors and prints what every call came to.
 * Usage: random_calls SEED COUNT. Whatever stands between a program and its files must not change a
 * line of the output nor a byte of the files. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILES 3
#define DESCRIPTORS 8

static unsigned long long state;
static unsigned pick(unsigned n) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(state >> 33) % n;
}

static int fds[DESCRIPTORS];
static char data[70000], back[70000];

static unsigned checksum(const char *bytes, long count) {
    unsigned sum = 0;
    for (long i = 0; i < count; i++) sum = sum * 31 + (unsigned char)bytes[i];
    return sum;
}

static void say(const char *what, int index, long result, int moved) {
    printf("%s %d -> %ld", what, index, result);
    if (result < 0) printf(" errno %d", errno);
    if (moved && result > 0) printf(" sum %u", checksum(back, result));
    putchar('\n');
}

static const char *name_of(unsigned file) {
    static const char *names[FILES] = {"one", "two", "three"};
    return names[file];
}

static void open_one(int index) {
    static const int ways[] = {O_RDWR, O_RDWR, O_RDWR, O_WRONLY, O_RDONLY, O_RDWR | O_APPEND,
                               O_WRONLY | O_APPEND, O_RDWR | O_TRUNC, O_RDWR | O_SYNC};
    if (fds[index] >= 0) say("close", index, close(fds[index]), 0);
    fds[index] = open(name_of(pick(FILES)), ways[pick(9)] | O_CREAT | (pick(2) ? O_CLOEXEC : 0), 0644);
    say("open", index, fds[index] >= 0, 0);
}

static void vector(int index, int fd) {
    struct iovec parts[3];
    size_t a = pick(400), b = pick(5), c = pick(3000);
    int out = pick(2), positioned = pick(2);
    char *base = out ? data : back;
    parts[0] = (struct iovec){base, a};
    parts[1] = (struct iovec){base + a, b};
    parts[2] = (struct iovec){base + a + b, c};
    off_t offset = pick(9000);
    ssize_t result = out ? (positioned ? pwritev(fd, parts, 3, offset) : writev(fd, parts, 3))
                         : (positioned ? preadv(fd, parts, 3, offset) : readv(fd, parts, 3));
    say(out ? "vector out" : "vector in", index, result, !out);
}

static void child(int index, int fd) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        if (write(fd, data, 77) < 0 && errno != EBADF) _exit(1);
        long at = lseek(fd, 0, SEEK_CUR);
        _exit(at & 63);
    }
    int status;
    waitpid(pid, &status, 0);
    say("child", index, WEXITSTATUS(status), 0);
}

static void copy(int index, int fd) {
    int other = fds[pick(DESCRIPTORS)];
    off_t from = pick(2000);
    switch (pick(3)) {
    case 0: say("sendfile", index, sendfile(fd, other, &from, pick(3000)), 0); break;
    case 1: say("sendfile at position", index, sendfile(fd, other, NULL, pick(3000)), 0); break;
    default: {
        struct stat a, b;
        fstat(fd, &a), fstat(other, &b);
        off_t to = pick(2000);
        if (a.st_ino != b.st_ino)
            say("copy_file_range", index, copy_file_range(other, &from, fd, &to, pick(3000), 0), 0);
    }
    }
}

static void map(int index, int fd) {
    struct stat status;
    if (fstat(fd, &status) || status.st_size == 0) return;
    char *bytes = mmap(NULL, status.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED) { say("map", index, -1, 0); return; }
    printf("map %d sum %u\n", index, checksum(bytes, status.st_size));
    munmap(bytes, status.st_size);
}

static void stream(int index) {
    FILE *file = fopen(name_of(pick(FILES)), pick(2) ? "r+" : "a+");
    char line[200];
    if (!file) { say("fopen", index, -1, 0); return; }
    fseek(file, pick(3000), SEEK_SET);
    printf("stream %d read %zu\n", index, fread(line, 1, pick(200), file));
    fseek(file, 0, pick(2) ? SEEK_CUR : SEEK_END);
    fprintf(file, "line %u of a stream\n", pick(1000));
    long at = ftell(file);
    printf("stream %d at %ld closed %d\n", index, at, fclose(file));
}

static size_t some_length(void) {
    switch (pick(12)) {
    case 0: return 0;
    case 1: return pick(60000);
    case 2: return 4096;
    default: return 1 + pick(300);
    }
}

static void step(void) {
    int index = pick(DESCRIPTORS), fd = fds[index];
    struct stat status;
    size_t length = some_length();
    memset(data, 'a' + pick(26), 64);
    switch (pick(34)) {
    case 0: open_one(index); break;
    case 1: case 2: case 3: case 4: case 5: case 6: case 7: case 8:
        say("write", index, write(fd, data, length), 0); break;
    case 9: case 10: case 11: case 12:
        say("pwrite", index, pwrite(fd, data, length, pick(9000)), 0); break;
    case 13: case 14: case 15: say("read", index, read(fd, back, length), 1); break;
    case 16: case 17: say("pread", index, pread(fd, back, length, pick(9000)), 1); break;
    case 18: say("seek start", index, lseek(fd, pick(9000), SEEK_SET), 0); break;
    case 19: say("seek current", index, lseek(fd, (int)pick(400) - 200, SEEK_CUR), 0); break;
    case 20: say("seek end", index, lseek(fd, (int)pick(400) - 200, SEEK_END), 0); break;
    case 21: say("fstat", index, fstat(fd, &status) ? -1 : status.st_size, 0); break;
    case 22: say("stat", index, stat(name_of(pick(FILES)), &status) ? -1 : status.st_size, 0); break;
    case 23: say("ftruncate", index, ftruncate(fd, pick(9000)), 0); break;
    case 24: say("fsync", index, pick(2) ? fsync(fd) : fdatasync(fd), 0); break;
    case 25: vector(index, fd); break;
    case 26: {
        int other = pick(DESCRIPTORS);
        say("dup2", index, dup2(fd, fds[other]) >= 0, 0);
        break;
    }
    case 27: {
        int other = pick(DESCRIPTORS);
        if (other == index) break;
        close(fds[other]);
        fds[other] = fcntl(fd, F_DUPFD, 20 + other);
        break;
    }
    case 28: if (!pick(12)) child(index, fd); break;
    case 29: if (!pick(3)) copy(index, fd); break;
    case 30: if (!pick(8)) map(index, fd); break;
    case 31: stream(index); break;
    case 32: say("fallocate", index, fallocate(fd, pick(2) ? FALLOC_FL_KEEP_SIZE : 0, pick(3000), 1 + pick(6000)), 0); break;
    case 33: say("truncate", index, truncate(name_of(pick(FILES)), pick(9000)), 0); break;
    }
}

int main(int count, char **arguments) {
    state = strtoull(arguments[1], NULL, 10) * 7919 + 1;
    long steps = count > 2 ? atol(arguments[2]) : 300;
    for (size_t i = 0; i < sizeof data; i++) data[i] = (char)(i * 7 + i / 251);
    for (int i = 0; i < DESCRIPTORS; i++) fds[i] = -1;
    for (int i = 0; i < DESCRIPTORS; i++) open_one(i);
    for (long i = 0; i < steps; i++) step();
    return 0;
}
