/* Many small writes and nothing else: what one recorded call costs.
 *
 *   loop THREADS CALLS DIRECTORY
 *
 * Each thread overwrites a 64 KiB window of a file of its own, 64 bytes at a time. Prints the CPU
 * time per call in nanoseconds, user and system, of the threads together.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 64, WINDOW = 65536, MOST_THREADS = 64 };

static long calls;
static const char *directory;
static double cpu_ns[MOST_THREADS];

static double thread_cpu_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}

static void *work(void *argument) {
    long index = (long)argument;
    char path[4096], buffer[BYTES] = {0};
    snprintf(path, sizeof path, "%s/loop-%d-%ld", directory, (int)getpid(), index);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || unlink(path) != 0) {
        perror(path);
        exit(1);
    }
    for (long offset = 0; offset < WINDOW; offset += BYTES)
        if (pwrite(fd, buffer, BYTES, offset) != BYTES) exit(1);
    double start = thread_cpu_ns();
    for (long call = 0; call < calls; call++)
        if (pwrite(fd, buffer, BYTES, call * BYTES % WINDOW) != BYTES) exit(1);
    cpu_ns[index] = thread_cpu_ns() - start;
    close(fd);
    return NULL;
}

int main(int count, char **arguments) {
    long threads = count > 1 ? atol(arguments[1]) : 0;
    calls = count > 2 ? atol(arguments[2]) : 0;
    directory = count > 3 ? arguments[3] : NULL;
    if (threads < 1 || threads > MOST_THREADS || calls < 1 || !directory) {
        fprintf(stderr, "usage: %s THREADS CALLS DIRECTORY\n", arguments[0]);
        return 2;
    }
    pthread_t ids[MOST_THREADS];
    for (long index = 0; index < threads; index++)
        pthread_create(&ids[index], NULL, work, (void *)index);
    double sum = 0;
    for (long index = 0; index < threads; index++) {
        pthread_join(ids[index], NULL);
        sum += cpu_ns[index];
    }
    printf("%.2f\n", sum / threads / calls);
    return 0;
}
