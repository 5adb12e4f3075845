/* Ends and bad moments that are rarer than those of `endings`. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "past_libc.h"

static int fd;
static void put(const char *text) { write(fd, text, strlen(text)); }
static void once(int number) { (void)number; put("handler "); }
static void fault(int number) { put("fault "); _exit(number); }
static int deep(int level) { volatile char room[4096]; room[0] = level; return level < 0 ? 0 : deep(level + 1) + room[0]; }
static void *idle(void *argument) {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    for (long i = 0;; i++) if (argument) write(fd, "asynchronous ", 13);
    return NULL;
}
static void *deferred(void *argument) {
    for (;;) write(*(int *)argument, "deferred\n", 9);
    return NULL;
}
static void bad(const char *what, ssize_t result) { printf("%s %zd %d\n", what, result, result < 0 ? errno : 0); }

static void buffers(void) {
    long page = 4096;
    char *room = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(room, 'a', 4 * page);
    for (int i = 0; i < 10; i++) write(fd, room, 100), write(fd, room + 2 * page, 100);
    munmap(room, page);
    bad("unmapped", write(fd, room, 100)), bad("still there", write(fd, room + 2 * page, 100));
    bad("into its end", write(fd, room + page - 50, 100));
    mprotect(room + 2 * page, page, PROT_NONE);
    bad("protected", write(fd, room + 2 * page, 100)), bad("across", write(fd, room + 2 * page - 50, 100));
    bad("pwrite across", pwrite(fd, room + 2 * page - 50, 100, 7));
    mprotect(room + 2 * page, page, PROT_READ | PROT_WRITE);
    bad("again", write(fd, room + 2 * page, 100));
    int other = open("deadly.other", O_RDWR | O_CREAT | O_TRUNC, 0644);
    for (int i = 0; i < 10; i++) write(other, room + 2 * page, 100);
    lseek(other, 0, SEEK_SET);
    bad("read", read(other, room + page, 200));
    write(other, "held", 4), lseek(other, 0, SEEK_SET);
    mprotect(room + page, page, PROT_READ);
    bad("read into what is protected", read(other, room + page, 200));
    munmap(room + page, page);
    lseek(other, 0, SEEK_SET), bad("read into nothing", read(other, room + page, 200));
    void *top = sbrk(3 * page);
    memset(top, 'b', 3 * page), bad("break", write(other, top, 100)), bad("break", write(other, top, 100));
    sbrk(-3 * page), bad("break gone", write(other, (char *)top + page, 100));
}

static void trap(void) {
#ifdef __aarch64__
    __asm__ volatile("brk 0");
#else
    __asm__ volatile("int3");
#endif
}

/* What the kernel says, past every hook. */
static long size_below(void) {
    struct stat status;
    long result = past_libc(SYS_fstat, fd, (long)&status, 0);
    return result < 0 ? result : status.st_size;
}

int main(int count, char **arguments) {
    const char *way = arguments[1];
    fd = open("deadly.file", O_RDWR | O_CREAT | O_TRUNC, 0644);
    for (int i = 0; i < 100; i++) put("written ");
    if (!strcmp(way, "signal")) raise(atoi(arguments[2]));
    if (!strcmp(way, "real-time")) raise(SIGRTMIN + atoi(arguments[2]));
    if (!strcmp(way, "trap")) trap();
    if (!strcmp(way, "overflow")) deep(0);
    if (!strcmp(way, "once")) {
        struct sigaction action = {.sa_handler = once, .sa_flags = SA_RESETHAND}, found;
        sigaction(SIGUSR1, &action, NULL), sigaction(SIGUSR1, NULL, &found);
        printf("flags %d\n", (found.sa_flags & SA_RESETHAND) != 0), fflush(stdout);
        raise(SIGUSR1), put("between ");
        sigaction(SIGUSR1, NULL, &found);
        printf("default %d\n", found.sa_handler == SIG_DFL), fflush(stdout);
        raise(SIGUSR1);
    }
    if (!strcmp(way, "sysv")) {
        printf("%d\n", sysv_signal(SIGTERM, once) == SIG_DFL), fflush(stdout);
        raise(SIGTERM), put("between "), raise(SIGTERM);
    }
    if (!strcmp(way, "sigset")) {
        printf("%d\n", sigset(SIGTERM, once) == SIG_DFL);
        raise(SIGTERM), put("between ");
        printf("%d\n", sigset(SIGTERM, SIG_DFL) == once), fflush(stdout);
        raise(SIGTERM);
    }
    if (!strcmp(way, "by number")) {
        struct { void *handler; unsigned long flags; void *restorer; unsigned long mask; } action = {SIG_DFL}, found = {once};
        printf("%ld", syscall(SYS_rt_sigaction, SIGTERM, &action, &found, 8)), printf(" %d\n", found.handler == SIG_DFL), fflush(stdout);
        raise(SIGTERM);
    }
    if (!strcmp(way, "ring")) {
        char parameters[256] = {0};
        syscall(SYS_io_uring_setup, 4, parameters);
        printf("%ld", size_below()), put("more "), printf(" %ld\n", size_below());
        return 2;
    }
    if (!strcmp(way, "interrupt")) { siginterrupt(SIGINT, 1), raise(SIGINT); }
    if (!strcmp(way, "buffers")) { buffers(); return 3; }
    if (!strcmp(way, "buffers, handled")) { signal(SIGSEGV, fault), signal(SIGBUS, fault), buffers(), put("end"); *(volatile int *)8 = 1; }
    pthread_t thread;
    if (!strcmp(way, "asynchronous")) {
        pthread_create(&thread, NULL, idle, NULL), usleep(1000), put("beside it "), pthread_cancel(thread), pthread_join(thread, NULL);
        put("after it");
        pclose(popen("echo a child", "w"));
        return 5;
    }
    if (!strcmp(way, "asynchronous, ended")) { pthread_create(&thread, NULL, idle, NULL), usleep(1000), put("beside it "), raise(SIGTERM); }
    if (!strcmp(way, "deferred")) {
        for (int i = 0; i < 20; i++) {
            int mine = open("deadly.mine", O_WRONLY | O_CREAT | O_TRUNC, 0644);
            pthread_create(&thread, NULL, deferred, &mine), usleep(200), pthread_cancel(thread), pthread_join(thread, NULL);
            write(mine, "joined", 6);
            long size = lseek(mine, 0, SEEK_END);
            printf("%ld\n", (size - 6) % 9), ftruncate(mine, 0), close(mine);
        }
        return 6;
    }
    return 9;
}
