/* Threads that sync one file, and what may come between: the file is closed below one that waits, a handler
 * jumps out of a wait, the process forks. `syncs THREADS ROUNDS` */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int fd, other;
static long rounds;
static sigjmp_buf before;
static volatile sig_atomic_t may_jump;

static void need(int holds) {
    if (!holds) abort();
}

static void *writer(void *number) {
    for (long i = 0; i < rounds; i++) {
        need(pwrite(fd, &i, sizeof i, (intptr_t)number * sizeof i) == sizeof i);
        need(fsync(fd) == 0);
    }
    return NULL;
}

static void *asks(void *nothing) {
    /* On a loaded machine the file may be closed before it comes to this. */
    need(fsync(other) == 0 || errno == EBADF);
    return nothing;
}

static void jump(int signal) {
    siglongjmp(before, signal);
}

static void *jumps(void *nothing) {
    struct sigaction action = {.sa_handler = jump};
    sigaction(SIGUSR1, &action, NULL);
    if (sigsetjmp(before, 1) == 0)
        for (may_jump = 1;;) need(fdatasync(fd) == 0);
    return nothing;
}

int main(int count, char **words) {
    need(count == 3);
    long threads = atol(words[1]);
    rounds = atol(words[2]);
    need((fd = open("synced", O_RDWR | O_CREAT, 0644)) >= 0);
    pthread_t all[threads], one;
    for (intptr_t i = 0; i < threads; i++) need(pthread_create(&all[i], NULL, writer, (void *)i) == 0);
    for (long i = 0; i < threads; i++) need(pthread_join(all[i], NULL) == 0);

    need((other = open("closed", O_RDWR | O_CREAT, 0644)) >= 0);
    need(write(other, "x", 1) == 1);
    need(pthread_create(&one, NULL, asks, NULL) == 0);
    usleep(3000);
    need(close(other) == 0);
    need(pthread_join(one, NULL) == 0);

    need(pthread_create(&one, NULL, jumps, NULL) == 0);
    while (!may_jump) usleep(100);
    usleep(3000);
    need(pthread_kill(one, SIGUSR1) == 0);
    need(pthread_join(one, NULL) == 0);

    need(pthread_create(&one, NULL, writer, (void *)threads) == 0);
    pid_t child = fork();
    need(child >= 0);
    if (child == 0) _exit(fsync(fd) == 0 ? 0 : 1);
    int end;
    need(waitpid(child, &end, 0) == child && end == 0);
    need(pthread_join(one, NULL) == 0);
    need(pwrite(fd, "end", 3, 0) == 3 && fsync(fd) == 0);
    return 0;
}
