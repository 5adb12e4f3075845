/* Threads that write one shared file at their own offsets, one by appending, and files of their
 * own; some are cancelled while they wait for input. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 8
#define RECORDS 2000
static int shared, appended, pipes[2];

static void *work(void *argument) {
    long number = (long)argument;
    char name[32], record[64];
    sprintf(name, "own.%ld", number);
    int own = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
    for (long i = 0; i < RECORDS; i++) {
        memset(record, 'a' + (int)((number + i) % 26), sizeof record);
        record[63] = '\n';
        pwrite(shared, record, 64, (i * THREADS + number) * 64);
        write(own, record, 1 + i % 64);
        write(appended, "0123456789abcdef", 16);
        if (i % 500 == 0) pread(shared, record, 64, 0);
    }
    close(own);
    return NULL;
}

static void *wait_for_input(void *argument) {
    char byte;
    read(pipes[0], &byte, 1);
    return argument;
}

int main(void) {
    pthread_t threads[THREADS], waiting;
    shared = open("shared", O_RDWR | O_CREAT | O_TRUNC, 0644);
    appended = open("appended", O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0644);
    pipe(pipes);
    pthread_create(&waiting, NULL, wait_for_input, NULL);
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    pthread_cancel(waiting);
    void *result;
    pthread_join(waiting, &result);
    printf("cancelled %d, appended %ld bytes\n", result == PTHREAD_CANCELED, (long)lseek(appended, 0, SEEK_END));
    return 0;
}
