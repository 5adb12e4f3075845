/* Writes 64 bytes again and again and keeps the count of completed calls where it outlives the
 * process: in a file mapped by the parent as well.
 *
 *   counter COUNT-FILE DATA-FILE THREADS
 *
 * One count of 8 bytes per thread, each on a cache line of its own. Runs until it is killed.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LINE = 64, MOST_THREADS = 16 };

static char *counts;
static int data;

static void *work(void *argument) {
    long thread = (long)argument;
    _Atomic long *count = (_Atomic long *)(counts + thread * LINE);
    char buffer[64] = {0};
    for (long call = 0;; call++) {
        if (pwrite(data, buffer, sizeof buffer, (thread << 20) + call % 1024 * 64) != 64) exit(1);
        atomic_store(count, call + 1);
    }
    return NULL;
}

int main(int count, char **arguments) {
    if (count != 4) return 2;
    long threads = atol(arguments[3]);
    int file = open(arguments[1], O_RDWR);
    counts = mmap(NULL, MOST_THREADS * LINE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    data = open(arguments[2], O_RDWR | O_CREAT, 0644);
    if (file < 0 || counts == MAP_FAILED || data < 0 || threads > MOST_THREADS) return 2;
    pthread_t ids[MOST_THREADS];
    for (long index = 1; index < threads; index++) pthread_create(&ids[index], NULL, work, (void *)index);
    work(NULL);
    return 0;
}
