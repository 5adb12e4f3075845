/* Two separate programs share files and tell each other when: a writer that writes small records,
 * and a reader that looks at them in every way there is. `sharing TELL LOOK COUNT`: TELL is how
 * they tell each other (pipe, socket, memory, signal), LOOK how the reader looks. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *tell, *look;
static int in, out, passing = 20;
static volatile int *word;
static int me;
static pid_t other;
static int turn;
static volatile sig_atomic_t heard;

static void on_signal(int number) { heard++; }

static void fail(const char *what, int round) {
    printf("%s: %s by %s, round %d: %s\n", me ? "reader" : "writer", what, tell, round, strerror(errno));
    fflush(stdout);
    _exit(1);
}

static void say(void) {
    if (!strcmp(tell, "memory")) __atomic_store_n(word + me, ++turn, __ATOMIC_RELEASE);
    else if (!strcmp(tell, "signal")) kill(other, SIGUSR1);
    else if (write(out, "x", 1) != 1) fail("say", -1);
}

static void hear(void) {
    char byte;
    static int expected;
    expected++;
    if (!strcmp(tell, "memory")) {
        while (__atomic_load_n(word + !me, __ATOMIC_ACQUIRE) < expected) sched_yield();
    } else if (!strcmp(tell, "signal")) {
        sigset_t none;
        sigemptyset(&none);
        while (heard < expected) sigsuspend(&none);
    } else {
        ssize_t got = read(in, &byte, 1);
        if (got == 0) _exit(1);
        if (got != 1) fail("hear", -1);
    }
}

static void send_descriptor(int fd) {
    char byte = 'd', room[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec one = {&byte, 1};
    struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    if (sendmsg(passing, &message, 0) != 1) fail("send", -1);
}

static int receive_descriptor(void) {
    char byte, room[CMSG_SPACE(sizeof(int))];
    int fd = -1;
    struct iovec one = {&byte, 1};
    struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    if (recvmsg(passing + 1, &message, 0) != 1) fail("receive", -1);
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

static void expect(const char *got, long bytes, int round) {
    char wanted[64];
    int length = sprintf(wanted, "first %07d\nsecond %07d\n", round, round);
    if (bytes < length || memcmp(got, wanted, length)) {
        printf("%.*s instead of %s", (int)bytes, got, wanted);
        fail(look, round);
    }
}

static void writer(int count) {
    for (int round = 0; round < count; round++) {
        char text[64];
        int fd = open("shared", O_RDWR | O_CREAT | O_TRUNC, 0644);
        if (fd < 0) fail("open", round);
        if (strstr(look, "map") && ftruncate(fd, 4096)) fail("size", round);
        int length = sprintf(text, "first %07d\n", round);
        if (write(fd, text, length) != length) fail("write", round);
        say();
        hear();
        length = sprintf(text, "second %07d\n", round);
        if (write(fd, text, length) != length) fail("write", round);
        if (!strcmp(look, "passed")) send_descriptor(fd);
        if (!strcmp(look, "inherited")) {
            fflush(stdout);
            pid_t child = fork();
            if (child == 0) {
                char number[12], which[12];
                sprintf(number, "%d", fd), sprintf(which, "%d", round);
                execl("/proc/self/exe", "sharing", "-", "inherited", number, which, NULL);
                _exit(9);
            }
            int status;
            waitpid(child, &status, 0);
            if (status) fail("inherit", round);
        }
        say();
        hear();
        if (write(fd, "third\n", 6) != 6) fail("write", round);
        if (lseek(fd, 0, SEEK_CUR) != 35) fail("position", round);
        if (close(fd)) fail("close", round);
        say();
        hear();
    }
}

static void reader(int count) {
    for (int round = 0; round < count; round++) {
        int fd = -1;
        char *map = NULL, bytes[256];
        struct stat status;
        hear();
        if (!strcmp(look, "open") || !strcmp(look, "mapped")) fd = open("shared", O_RDONLY);
        if (!strcmp(look, "mapped")) map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0), close(fd), fd = -1;
        say();
        hear();
        if (!strcmp(look, "opens") || !strcmp(look, "maps")) fd = open("shared", O_RDONLY);
        if (!strcmp(look, "linked")) {
            unlink("other name");
            if (link("shared", "other name")) fail("link", round);
            fd = open("other name", O_RDONLY);
        }
        if (!strcmp(look, "streams")) {
            FILE *file = fopen("shared", "r");
            long got = fread(bytes, 1, sizeof bytes, file);
            expect(bytes, got, round);
            fclose(file);
        }
        if (!strcmp(look, "maps")) map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
        if (!strcmp(look, "passed")) {
            fd = receive_descriptor();
            if (lseek(fd, 0, SEEK_CUR) != 29) fail("position", round);
        }
        if (!strcmp(look, "stats")) {
            if (stat("shared", &status) || status.st_size != 29) fail("size", round);
        }
        if (!strcmp(look, "moves")) {
            unlink("moved");
            if (rename("shared", "moved") || link("moved", "shared")) fail("move", round);
            fd = open("moved", O_RDONLY);
        }
        if (map) expect(map, 4096, round), munmap(map, 4096);
        if (fd >= 0) {
            long got = pread(fd, bytes, sizeof bytes, 0);
            expect(bytes, got, round);
        }
        say();
        hear();
        if (fd >= 0) {
            long got = pread(fd, bytes, sizeof bytes, 0);
            if (!strstr(look, "map") && (got != 35 || memcmp(bytes + 29, "third\n", 6))) fail("end", round);
            close(fd);
        }
        say();
    }
}

int main(int argc, char **argv) {
    tell = argv[1], look = argv[2];
    if (!strcmp(tell, "-")) {
        char bytes[256];
        int fd = atoi(argv[3]);
        if (lseek(fd, 0, SEEK_CUR) != 29) fail("position", -1);
        expect(bytes, pread(fd, bytes, sizeof bytes, 0), atoi(argv[4]));
        return 0;
    }
    int count = atoi(argv[3]);
    if (argc > 4) {
        me = 1;
        in = 10, out = 13, other = getppid();
        word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, 22, 0);
    } else {
        int there[2], back[2], pair[2];
        if (!strcmp(tell, "socket")) socketpair(AF_UNIX, SOCK_STREAM, 0, there), socketpair(AF_UNIX, SOCK_STREAM, 0, back);
        else if (pipe(there) || pipe(back)) return 2;
        socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
        int memory = memfd_create("words", 0);
        if (ftruncate(memory, 4096)) return 2;
        dup2(there[0], 10), dup2(there[1], 11), dup2(back[0], 12), dup2(back[1], 13);
        dup2(pair[0], 20), dup2(pair[1], 21), dup2(memory, 22);
        in = 12, out = 11;
        word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, 22, 0);
    }
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t usr1;
    sigemptyset(&usr1), sigaddset(&usr1, SIGUSR1);
    if (!strcmp(tell, "signal")) sigprocmask(SIG_BLOCK, &usr1, NULL), sigaction(SIGUSR1, &action, NULL);
    if (me) {
        close(11), close(12);
        reader(count);
        return 0;
    }
    other = fork();
    if (other == 0) {
        execl("/proc/self/exe", "sharing", tell, look, argv[3], "reader", NULL);
        _exit(9);
    }
    close(10), close(13);
    writer(count);
    int status;
    waitpid(other, &status, 0);
    printf("%d rounds, reader %d\n", count, status);
    return 0;
}
