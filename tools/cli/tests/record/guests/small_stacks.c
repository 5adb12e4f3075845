/* Opens, writes and closes on the smallest stacks there are: a signal handler's of as many bytes as signal.h
   advises on the machine, a thread's of PTHREAD_STACK_MIN. Prints how deep the calls of each went, measured by a
   pattern in the stack. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* SIGSTKSZ of Linux; of AArch64's a frame takes 4.5 KiB, before there is a call. */
#ifdef __aarch64__
#define SIGNAL_STACK_BYTES 16384
#else
#define SIGNAL_STACK_BYTES 8192
#endif

static volatile int failed;

static void work(const char *name) {
    struct stat status;
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
    for (int i = 0; i < 3; i++)
        if (write(fd, "stack\n", 6) != 6) failed = 1;
    if (lseek(fd, 0, SEEK_SET) || fstat(fd, &status) || close(fd)) failed = 1;
    if (rename(name, "renamed") || unlink("renamed")) failed = 1;
    fd = open(name, O_WRONLY | O_CREAT, 0644);
    if (write(fd, "kept\n", 5) != 5 || close(fd)) failed = 1;
}

static void handler(int signal) { work(signal == SIGUSR1 ? "handler" : "other"); }

static void *thread(void *name) { work(name); return NULL; }

int main(void) {
    size_t size = SIGNAL_STACK_BYTES, page = sysconf(_SC_PAGESIZE);
    /* A page that nobody may touch below: too deep a stack is a crash, not a wrong byte elsewhere. */
    char *area = mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(area, page, PROT_NONE);
    memset(area + page, 0x5a, size);
    stack_t stack = {.ss_sp = area + page, .ss_size = size};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    if (sigaltstack(&stack, NULL)) return 2;
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    raise(SIGUSR1);
    size_t untouched = 0;
    while (untouched < size && area[page + untouched] == 0x5a) untouched++;
    if (getenv("TELL")) fprintf(stderr, "depth %zu\n", size - untouched);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN);
    for (int i = 0; i < 3; i++) {
        pthread_t id;
        char name[20];
        snprintf(name, sizeof name, "thread%d", i);
        if (pthread_create(&id, &attributes, thread, name) || pthread_join(id, NULL)) return 3;
    }
    printf("%s\n", failed ? "failed" : "fine");
    return failed;
}
