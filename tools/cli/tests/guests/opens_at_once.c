/* Threads that open files of their own at once, while others make pipes: each writes a file's name into it. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define THREADS 6
#define FILES 120
static volatile int done;

static void *work(void *argument) {
    long number = (long)argument;
    char name[32];
    for (int i = 0; i < FILES; i++) {
        sprintf(name, "file.%ld.%d", number, i);
        int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0644);
        if (write(fd, name, strlen(name)) != (ssize_t)strlen(name) || close(fd) != 0) perror(name);
    }
    return NULL;
}

static void *make_pipes(void *argument) {
    int ends[2];
    char byte = 'x';
    while (!done) {
        if (pipe(ends) != 0) perror("pipe");
        if (write(ends[1], &byte, 1) != 1 || read(ends[0], &byte, 1) != 1) perror("through the pipe");
        if (close(ends[0]) != 0 || close(ends[1]) != 0) perror("close");
    }
    return argument;
}

int main(void) {
    pthread_t threads[THREADS], pipes;
    pthread_create(&pipes, NULL, make_pipes, NULL);
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    done = 1;
    pthread_join(pipes, NULL);
    return 0;
}
