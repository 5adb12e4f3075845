/* Ways to look at a file that do not pass the functions a program writes it by. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <ftw.h>
#include <fts.h>
#include <glob.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(const char *what, long value) { printf("%s %ld\n", what, value); }
static int visit(const char *path, const struct stat *status, int kind, struct FTW *where) {
    if (kind == FTW_F && strstr(path, "seen")) printf("nftw %s %ld\n", path, (long)status->st_size);
    return 0;
}
static int visit_old(const char *path, const struct stat *status, int kind) {
    if (kind == FTW_F && strstr(path, "seen")) printf("ftw %s %ld\n", path, (long)status->st_size);
    return 0;
}
static int by_name(const FTSENT **a, const FTSENT **b) { return strcmp((*a)->fts_name, (*b)->fts_name); }
static int held(const char *name) {
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
    for (int i = 0; i < 20; i++) write(fd, "some bytes", 10);
    return fd;
}
static void send_descriptor(int to, int fd) {
    char byte = 'x', room[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    sendmsg(to, &message, 0);
}
static int receive_descriptor(int from) {
    char byte, room[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    recvmsg(from, &message, 0);
    int fd;
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

int main(void) {
    setvbuf(stdout, NULL, _IOFBF, 65536);
    /* Streams ask for the size inside libc. */
    int fd = held("seen.stream");
    FILE *stream = fdopen(fd, "r+");
    say("fseek", fseek(stream, 0, SEEK_END)), say("ftell", ftell(stream));
    fputs("written at the end", stream), fflush(stream);
    FILE *other = fopen("seen.stream", "a+");
    say("append at", ftell(other));
    fputs("appended", other), fflush(other), say("then", ftell(other));
    fputs("held by the stream", stream);
    fseek(stream, -4, SEEK_END), fputs("END", stream), fflush(stream);
    FILE *reader = fopen("seen.stream", "rm");
    fseek(reader, 0, SEEK_END), say("reader", ftell(reader));
    char text[100] = {0};
    fseek(reader, 190, SEEK_SET), say(fgets(text, sizeof text, reader), 0), fclose(reader);

    /* Walks. */
    int a = held("seen.a"), b = held("seen.b");
    nftw(".", visit, 10, FTW_PHYS);
    write(a, "more", 4);
    ftw(".", visit_old, 10);
    write(b, "more!", 5);
    char *here[] = {".", NULL};
    FTS *walk = fts_open(here, FTS_PHYSICAL, by_name);
    for (FTSENT *entry; (entry = fts_read(walk));)
        if (entry->fts_info == FTS_F && strstr(entry->fts_name, "seen")) printf("fts %s %ld\n", entry->fts_name, (long)entry->fts_statp->st_size);
    fts_close(walk);
    glob_t found;
    glob("seen.*", GLOB_MARK, NULL, &found), say("glob", found.gl_pathc);

    /* Requests. */
    int waiting = -1;
    lseek(a, 10, SEEK_SET);
    say("FIONREAD", ioctl(a, FIONREAD, &waiting)), say("waiting", waiting);
    write(a, "0123456789", 10);
    say("FIONREAD", ioctl(a, FIONREAD, &waiting)), say("waiting", waiting);
    struct { struct fiemap map; struct fiemap_extent extents[4]; } extents = {.map = {.fm_length = ~0ull, .fm_flags = FIEMAP_FLAG_SYNC, .fm_extent_count = 4}};
    if (ioctl(b, FS_IOC_FIEMAP, &extents.map) == 0) say("FIEMAP", extents.map.fm_mapped_extents);
    write(b, "after", 5);
    int clone = open("seen.clone", O_RDWR | O_CREAT | O_TRUNC, 0644);
    write(clone, "own", 3);
    if (ioctl(clone, FICLONE, b) != 0) sendfile(clone, b, (off_t[]){0}, 40);
    write(clone, "tail", 4), say("clone", lseek(clone, 0, SEEK_END));

    /* Mapped before it is written, by a descriptor that is closed meanwhile. */
    fd = held("seen.mapped");
    char *shared = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0), *copy = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    fd = open("seen.mapped", O_RDWR);
    write(fd, "NEW", 3), pwrite(fd, "PLACED", 6, 100);
    printf("shared %.10s %.10s\n", shared, shared + 98);
    printf("private %.10s %.10s\n", copy, copy + 98);
    munmap(copy, 4096);
    write(fd, "AGAIN", 5), printf("shared %.10s\n", shared);
    munmap(shared, 4096);
    close(fd), fd = open("seen.mapped", O_RDWR), write(fd, "unmapped", 8), say("size", lseek(fd, 0, SEEK_END));

    /* Sent to another process, which reads, seeks and writes by it. */
    int pair[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        for (int round = 0; round < 3; round++) {
            int got = receive_descriptor(pair[1]);
            struct stat status;
            fstat(got, &status);
            printf("got %ld bytes at %ld\n", (long)status.st_size, (long)lseek(got, 0, SEEK_CUR)), fflush(stdout);
            write(got, "child ", 6), close(got), write(pair[1], "k", 1);
        }
        exit(0);
    }
    for (int round = 0; round < 3; round++) {
        fd = held(round == 0 ? "seen.sent0" : round == 1 ? "seen.sent1" : "seen.sent2");
        if (round == 1) lseek(fd, 50, SEEK_SET);
        send_descriptor(pair[0], fd);
        read(pair[0], text, 1);
        write(fd, "parent", 6), say("position", lseek(fd, 0, SEEK_CUR));
    }
    waitpid(pid, NULL, 0);

    /* Leases, watches. */
    int watch = inotify_init1(IN_NONBLOCK);
    fd = held("seen.watched");
    say("watch", inotify_add_watch(watch, "seen.watched", IN_MODIFY));
    write(fd, "one", 3);
    char events[1000];
    say("events", read(watch, events, sizeof events) > 0);
    write(fd, "two", 3), say("events", read(watch, events, sizeof events) > 0);
    fd = held("seen.leased");
    close(fd), fd = open("seen.leased", O_RDONLY);
    say("lease", fcntl(fd, F_SETLEASE, F_RDLCK) == 0 ? fcntl(fd, F_GETLEASE) : F_RDLCK), fcntl(fd, F_SETLEASE, F_UNLCK);
    fd = held("seen.append");
    lseek(fd, 0, SEEK_SET);
    say("flags", fcntl(fd, F_SETFL, O_APPEND)), write(fd, "at the end", 10), say("size", lseek(fd, 0, SEEK_CUR));
    say("fadvise", posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
    return 6;
}
