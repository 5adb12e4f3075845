/* CPU nanoseconds per call of a loop of writes, the close included; the least of some rounds.
 * Usage: loop FILE append|overwrite BYTES COUNT ROUNDS */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static double round_ns(const char *path, int append, const char *bytes, size_t length, long count) {
    enum { WINDOW = 65536 };
    if (append) unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT, 0644);
    double start = now_ns();
    for (long i = 0; i < count; i++) {
        off_t offset = append ? (off_t)(i * length) : (off_t)(i * length % WINDOW);
        if (pwrite(fd, bytes, length, offset) != (ssize_t)length) exit(1);
    }
    close(fd);
    return (now_ns() - start) / count;
}

int main(int count, char **arguments) {
    if (count != 6) return 2;
    size_t length = atol(arguments[3]);
    char *bytes = malloc(length);
    memset(bytes, 7, length);
    double least = 1e18;
    for (long i = atol(arguments[5]); i > 0; i--) {
        double ns = round_ns(arguments[1], arguments[2][0] == 'a', bytes, length, atol(arguments[4]));
        least = ns < least ? ns : least;
    }
    printf("%.1f\n", least);
    unlink(arguments[1]);
    return 0;
}
