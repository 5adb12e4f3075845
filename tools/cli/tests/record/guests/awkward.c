/* Programs that go wrong when somebody interposes carelessly. The argument chooses one. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static int file;
static volatile long handled;
static int tell;

static void *blocked_read(void *pipe_end) {
    char byte;
    return (void *)(long)read(*(int *)pipe_end, &byte, 1);
}

static void *endless_write(void *unused) {
    for (;;)
        if (pwrite(file, "x", 1, 0) != 1) return unused;
}

/* A thread that waits in read, and one that never waits, are both cancelled. */
static int cancel(void) {
    int ends[2];
    void *result;
    pthread_t thread;
    if (pipe(ends) != 0) return 1;
    pthread_create(&thread, NULL, blocked_read, &ends[0]);
    usleep(20000);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    if (result != PTHREAD_CANCELED) return 2;
    pthread_create(&thread, NULL, endless_write, NULL);
    usleep(20000);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    return result == PTHREAD_CANCELED ? 0 : 3;
}

static void on_alarm(int signal) {
    int saved = errno;
    if (pwrite(file, &signal, 1, 7) == 1) handled++;
    errno = saved;
}

/* Writes under a storm of signals whose handler writes as well. */
static int signals(void) {
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    struct itimerval storm = {{0, 200}, {0, 200}}, calm = {{0, 0}, {0, 0}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &storm, NULL);
    long calls = 0;
    for (; calls < 300000; calls++)
        if (pwrite(file, "0123456789abcdef", 16, calls % 100 * 16) != 16) return 1;
    setitimer(ITIMER_REAL, &calm, NULL);
    /* Which of the two wrote byte 7 last is chance. */
    if (handled == 0 || unlink("file") != 0) return 2;
    if (tell) printf("calls %ld\n", calls + handled);
    return 0;
}

static void *one_file(void *number) {
    char name[32];
    snprintf(name, sizeof name, "t%ld", (long)number);
    int fd = open(name, O_RDWR | O_CREAT, 0644);
    for (int index = 0; index < 50; index++)
        if (write(fd, name, strlen(name)) < 1) return number;
    close(fd);
    unlink(name);
    return NULL;
}

/* A thousand threads, eight at a time. */
static int threads(void) {
    pthread_t ids[8];
    for (long round = 0; round < 125; round++) {
        for (long index = 0; index < 8; index++)
            pthread_create(&ids[index], NULL, one_file, (void *)(round * 8 + index + 1));
        for (long index = 0; index < 8; index++) {
            void *result;
            pthread_join(ids[index], &result);
            if (result != NULL) return 1;
        }
    }
    return 0;
}

/* A daemon's habit, then work as if nothing had happened. */
static int close_all(void) {
    int kept = dup(1);
    for (int fd = 3; fd < 1024; fd++)
        if (fd != kept) close(fd);
    close_range(200, 1000, 0);
    int fd = open("after", O_RDWR | O_CREAT, 0644);
    for (int index = 0; index < 5000; index++)
        if (write(fd, "y", 1) != 1) return 1;
    return dprintf(kept, "closed all\n") == 11 ? 0 : 2;
}

static pthread_key_t key;

static void late(void *value) {
    if (write(file, "k", 1) == 1 && (long)value < 3) pthread_setspecific(key, (char *)value + 1);
}

static void *with_key(void *unused) {
    pthread_setspecific(key, (void *)1);
    return unused;
}

static void at_end(void) {
    FILE *stream = fopen("at-end", "w");
    fprintf(stream, "%s\n", "last words");
    /* not closed: libc writes it when it ends */
}

/* Writes in destructors of threads, in atexit and in destructors of the program. */
static int destructors(void) {
    pthread_t thread;
    pthread_key_create(&key, late);
    pthread_create(&thread, NULL, with_key, NULL);
    pthread_join(thread, NULL);
    atexit(at_end);
    return 0;
}

__attribute__((constructor)) static void early(void) {
    int fd = open("early", O_RDWR | O_CREAT, 0644);
    if (write(fd, "early\n", 6) != 6 || close(fd) != 0) abort();
}

__attribute__((destructor)) static void very_late(void) {
    if (file > 0 && write(file, "end", 3) != 3) abort();
}

/* Children of children, by fork and by a raw clone that libc does not know of. */
static int deep_fork(void) {
    for (int depth = 0; depth < 6; depth++) {
        long child = depth % 2 ? fork() : syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (child != 0) {
            int ended;
            if (waitpid(child, &ended, 0) != child || (ended != 0 && WEXITSTATUS(ended) != depth)) return 99;
            return depth ? depth - 1 : 0;
        }
        char name[16];
        snprintf(name, sizeof name, "depth%d", depth);
        int fd = open(name, O_WRONLY | O_CREAT, 0644);
        if (write(fd, name, 6) != 6 || pwrite(file, name, 6, depth * 6) != 6) return 98;
    }
    return 5;
}

int main(int count, char **arguments) {
    const char *part = count > 1 ? arguments[1] : "";
    tell = count > 2;
    file = open("file", O_RDWR | O_CREAT, 0644);
    if (!strcmp(part, "cancel")) return cancel();
    if (!strcmp(part, "signals")) return signals();
    if (!strcmp(part, "threads")) return threads();
    if (!strcmp(part, "close-all")) return close_all();
    if (!strcmp(part, "destructors")) return destructors();
    if (!strcmp(part, "deep-fork")) return deep_fork();
    if (!strcmp(part, "abort")) abort();
    return 100;
}
