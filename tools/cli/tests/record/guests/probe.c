/* Every mechanism of the function table once, each on a file that bears the name it has there.
 *
 *   probe DIRECTORY
 *
 * Ends with 0 when every call did what it should; the test then looks for each in the trace.
 */
#define _GNU_SOURCE
#include <aio.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/fanotify.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utime.h>
#include <wordexp.h>
#include "../../guests/past_libc.h"

extern char **environ;
static char buffer[4096];
static int failures;

#define MUST(condition) \
    do { \
        if (!(condition)) { \
            dprintf(2, "line %d: %s: %s\n", __LINE__, #condition, strerror(errno)); \
            failures++; \
        } \
    } while (0)

/* A file of that name with 100 bytes in it, open for both. */
static int file(const char *name) {
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
    MUST(fd >= 0);
    MUST(pwrite(fd, buffer, 100, 0) == 100);
    return fd;
}

static void opens(void) {
    int flags = O_RDWR | O_CREAT, fd;
    MUST((fd = open("open", flags, 0644)) >= 0 && close(fd) == 0);
    MUST((fd = openat(AT_FDCWD, "openat", flags, 0644)) >= 0 && close(fd) == 0);
    MUST((fd = creat("creat", 0644)) >= 0 && close(fd) == 0);
    fd = file("close");
    MUST(close(fd) == 0);
    fd = file("close_range");
    MUST(close_range(fd, fd, 0) == 0);
}

static void reads(void) {
    struct iovec two[2] = {{buffer, 10}, {buffer + 10, 20}};
    int fd = file("read");
    MUST(read(fd, buffer, 60) == 60 && read(fd, buffer, 60) == 40 && close(fd) == 0);
    fd = file("pread");
    MUST(pread(fd, buffer, 10, 50) == 10 && close(fd) == 0);
    fd = file("readv");
    MUST(readv(fd, two, 2) == 30 && close(fd) == 0);
    fd = file("preadv");
    MUST(preadv(fd, two, 2, 7) == 30 && close(fd) == 0);
    fd = file("preadv2");
    MUST(preadv2(fd, two, 2, 8, 0) == 30 && close(fd) == 0);
}

static void writes(void) {
    struct iovec two[2] = {{buffer, 10}, {buffer + 10, 20}};
    int fd = file("write");
    MUST(write(fd, buffer, 60) == 60 && write(fd, buffer, 5) == 5 && close(fd) == 0);
    fd = file("pwrite");
    MUST(pwrite(fd, buffer, 10, 500) == 10 && close(fd) == 0);
    fd = file("writev");
    MUST(writev(fd, two, 2) == 30 && close(fd) == 0);
    fd = file("pwritev");
    MUST(pwritev(fd, two, 2, 7) == 30 && close(fd) == 0);
    fd = file("pwritev2");
    MUST(pwritev2(fd, two, 2, 8, 0) == 30 && close(fd) == 0);
}

static void sizes(void) {
    int fd = file("lseek");
    MUST(lseek(fd, -10, SEEK_END) == 90 && close(fd) == 0);
    fd = file("fsync");
    MUST(fsync(fd) == 0 && close(fd) == 0);
    fd = file("fdatasync");
    MUST(fdatasync(fd) == 0 && close(fd) == 0);
    fd = file("sync_file_range");
    MUST(sync_file_range(fd, 0, 50, SYNC_FILE_RANGE_WRITE) == 0 && close(fd) == 0);
    fd = file("syncfs");
    MUST(syncfs(fd) == 0 && close(fd) == 0);
    fd = file("ftruncate");
    MUST(ftruncate(fd, 10) == 0 && close(fd) == 0);
    fd = file("truncate");
    MUST(close(fd) == 0 && truncate("truncate", 20) == 0);
    fd = file("fallocate");
    MUST(fallocate(fd, 0, 0, 8192) == 0 && close(fd) == 0);
    fd = file("posix_fallocate");
    MUST(posix_fallocate(fd, 0, 8192) == 0 && close(fd) == 0);
    fd = file("posix_fadvise");
    MUST(posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL) == 0 && close(fd) == 0);
    sync();
}

static void descriptors(void) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int other, fd = file("dup");
    MUST((other = dup(fd)) >= 0 && write(other, "x", 1) == 1 && close(other) == 0 && close(fd) == 0);
    fd = file("dup2");
    MUST(dup2(fd, 99) == 99 && write(99, "x", 1) == 1 && close(99) == 0 && close(fd) == 0);
    fd = file("dup3");
    MUST(dup3(fd, 99, O_CLOEXEC) == 99 && close(99) == 0 && close(fd) == 0);
    fd = file("fcntl(F_DUPFD)");
    MUST((other = fcntl(fd, F_DUPFD, 50)) >= 50 && close(other) == 0 && close(fd) == 0);
    fd = file("fcntl(F_SETLK)");
    MUST(fcntl(fd, F_SETLK, &lock) == 0 && close(fd) == 0);
    fd = file("fcntl(F_SETFL)");
    MUST(fcntl(fd, F_SETFL, O_APPEND) == 0 && close(fd) == 0);
    fd = file("flock");
    MUST(flock(fd, LOCK_EX) == 0 && close(fd) == 0);
    fd = file("lockf");
    MUST(lockf(fd, F_TLOCK, 0) == 0 && close(fd) == 0);
}

static void controls(void) {
    int waiting = 0, pair[2], fd = file("ioctl");
    MUST(ioctl(fd, FIONREAD, &waiting) == 0 && waiting == 100 && close(fd) == 0);
    fd = file("fcntl(F_SETLEASE)");
    fcntl(fd, F_SETLEASE, F_WRLCK), close(fd);
    close(file("inotify_add_watch")), close(file("fanotify_mark"));
    int watch = inotify_init();
    MUST(inotify_add_watch(watch, "inotify_add_watch", IN_MODIFY) >= 0 && close(watch) == 0);
    fanotify_mark(-1, FAN_MARK_ADD, FAN_MODIFY, AT_FDCWD, "fanotify_mark");
    char byte = 'x', room[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    fd = file("sendmsg(SCM_RIGHTS)");
    head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && sendmsg(pair[0], &message, 0) == 1);
    close(fd), close(pair[0]), close(pair[1]);
}

static void attributes(void) {
    struct timespec times[2] = {{1, 2}, {3, 4}};
    struct timeval coarse[2] = {{1, 2}, {3, 4}};
    struct utimbuf old = {1, 2};
    const char *made[] = {"utime", "utimensat", "chmod", "fchmodat", "chown", "fchownat", "setxattr", "removexattr", "getxattr"};
    for (int index = 0; index < 9; index++) close(file(made[index]));
    MUST(utime("utime", &old) == 0 && utimes("utime", coarse) == 0);
    MUST(utimensat(AT_FDCWD, "utimensat", times, 0) == 0);
    MUST(chmod("chmod", 0600) == 0 && fchmodat(AT_FDCWD, "fchmodat", 0600, 0) == 0);
    MUST(chown("chown", -1, -1) == 0 && fchownat(AT_FDCWD, "fchownat", -1, -1, 0) == 0);
    /* Not every file system has extended attributes; the calls are made all the same. */
    setxattr("setxattr", "user.a", "b", 1, 0), removexattr("removexattr", "user.a"), getxattr("getxattr", "user.a", buffer, 1);
    int fd = file("futimens");
    MUST(futimens(fd, times) == 0 && close(fd) == 0);
    fd = file("fchmod");
    MUST(fchmod(fd, 0600) == 0 && close(fd) == 0);
    fd = file("fchown");
    MUST(fchown(fd, -1, -1) == 0 && close(fd) == 0);
    fd = file("fsetxattr"), fsetxattr(fd, "user.a", "b", 1, 0), close(fd);
    fd = file("fremovexattr"), fremovexattr(fd, "user.a"), close(fd);
    fd = file("fgetxattr"), fgetxattr(fd, "user.a", buffer, 1), close(fd);
    memset(buffer, 'p', sizeof buffer);
}

/* By number: the file is closed, and the socket that gets its number is no file. */
static void by_number(void) {
    int pair[2], fd = file("closed by number");
    MUST(syscall(SYS_write, fd, buffer, 9L) == 9 && syscall(SYS_close, fd) == 0);
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && pair[0] == fd);
    MUST(write(pair[0], buffer, 500) == 500 && close(pair[0]) == 0 && close(pair[1]) == 0);
    /* An inline close is seen by nobody; the socket is no file all the same. */
    fd = file("closed inline");
    long closed = past_libc(SYS_close, fd, 0, 0);
    MUST(closed == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && pair[0] == fd);
    MUST(write(pair[0], buffer, 500) == 500 && close(pair[0]) == 0 && close(pair[1]) == 0);
}

static int in_clone(void *argument) {
    return *(int *)argument;
}

static void maps(void) {
    for (int turn = 0; turn < 3; turn++) {
        const char *names[] = {"mmap", "msync", "munmap"};
        int fd = file(names[turn]);
        char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        MUST(memory != MAP_FAILED && close(fd) == 0);
        memory[0] = 'm';
        MUST(msync(memory, 4096, MS_SYNC) == 0 && munmap(memory, 4096) == 0);
    }
}

static void copies(void) {
    int target = file("target"), ends[2], fd = file("sendfile");
    off_t offset = 10;
    loff_t from = 20, to = 30;
    MUST(sendfile(target, fd, &offset, 50) == 50 && offset == 60 && close(fd) == 0);
    fd = file("copy_file_range");
    MUST(copy_file_range(fd, &from, target, &to, 40, 0) == 40 && close(fd) == 0);
    fd = file("splice");
    MUST(pipe(ends) == 0 && splice(fd, NULL, ends[1], NULL, 30, 0) == 30 && close(fd) == 0);
    MUST(close(ends[0]) == 0 && close(ends[1]) == 0 && close(target) == 0);
}

static void status(void) {
    struct stat found;
    struct statx more;
    char text[64];
    int fd = file("fstat");
    MUST(fstat(fd, &found) == 0 && found.st_size == 100 && close(fd) == 0);
    const char *names[] = {"stat", "lstat", "fstatat", "statx", "access", "faccessat"};
    for (int index = 0; index < 6; index++) close(file(names[index]));
    MUST(stat("stat", &found) == 0 && lstat("lstat", &found) == 0);
    MUST(fstatat(AT_FDCWD, "fstatat", &found, 0) == 0);
    MUST(statx(AT_FDCWD, "statx", 0, STATX_SIZE, &more) == 0 && more.stx_size == 100);
    MUST(access("access", R_OK) == 0 && faccessat(AT_FDCWD, "faccessat", R_OK, 0) == 0);
    MUST(access("missing", R_OK) == -1 && errno == ENOENT);
    MUST(symlink("symlink", "symlinked") == 0 && symlink("stat", "readlink") == 0);
    MUST(symlinkat("symlinkat", AT_FDCWD, "symlinked at") == 0);
    MUST(readlink("readlink", text, sizeof text) == 4);
    MUST(symlink("stat", "readlinkat") == 0);
    MUST(readlinkat(AT_FDCWD, "readlinkat", text, sizeof text) == 4);
}

static void names(void) {
    const char *made[] = {"rename", "renameat", "link", "linkat", "unlink", "unlinkat", "remove"};
    for (int index = 0; index < 7; index++) close(file(made[index]));
    MUST(rename("rename", "renamed") == 0);
    MUST(renameat(AT_FDCWD, "renameat", AT_FDCWD, "renamedat") == 0);
    close(file("renameat2(RENAME_EXCHANGE)"));
    close(file("renameat2(RENAME_NOREPLACE)"));
    int here = AT_FDCWD;
    MUST(renameat2(here, "renameat2(RENAME_EXCHANGE)", here, "renamed", RENAME_EXCHANGE) == 0);
    MUST(renameat2(here, "renameat2(RENAME_NOREPLACE)", here, "free", RENAME_NOREPLACE) == 0);
    MUST(link("link", "linked") == 0 && linkat(AT_FDCWD, "linkat", AT_FDCWD, "linkedat", 0) == 0);
    MUST(unlink("unlink") == 0 && unlinkat(AT_FDCWD, "unlinkat", 0) == 0 && remove("remove") == 0);
    MUST(mkdir("mkdir", 0755) == 0 && mkdirat(AT_FDCWD, "mkdirat", 0755) == 0);
    MUST(mkdir("rmdir", 0755) == 0 && rmdir("rmdir") == 0);
    DIR *list = opendir("mkdir");
    MUST(list != NULL && closedir(list) == 0);
    MUST(mkdir("opendir", 0755) == 0 && (list = opendir("opendir")) != NULL && closedir(list) == 0);
    here = open(".", O_RDONLY | O_DIRECTORY);
    MUST(mkdir("chdir", 0755) == 0 && chdir("chdir") == 0 && fchdir(here) == 0 && close(here) == 0);
}

static void asynchronous(void) {
    struct aiocb block = {.aio_buf = buffer, .aio_nbytes = 40, .aio_offset = 5};
    const struct aiocb *list[] = {&block};
    block.aio_fildes = file("aio_read");
    MUST(aio_read(&block) == 0 && aio_suspend(list, 1, NULL) == 0 && aio_return(&block) == 40);
    close(block.aio_fildes);
    block.aio_fildes = file("aio_write");
    MUST(aio_write(&block) == 0 && aio_suspend(list, 1, NULL) == 0 && aio_return(&block) == 40);
    close(block.aio_fildes);
    long ring = syscall(SYS_io_uring_setup, 1, buffer);
    if (ring >= 0) close((int)ring);
}

static void print_list(FILE *stream, const char *format, ...) {
    va_list list;
    va_start(list, format);
    MUST(vfprintf(stream, format, list) > 0);
    va_end(list);
}

static void streams(void) {
    char text[64], *line = NULL;
    size_t room = 0;
    FILE *stream = fopen("fopen", "w");
    MUST(stream != NULL && fclose(stream) == 0);
    stream = fdopen(file("fdopen"), "r+");
    MUST(stream != NULL && fclose(stream) == 0);
    stream = fopen("fopen", "w");
    MUST((stream = freopen("freopen", "w", stream)) != NULL && fclose(stream) == 0);
    stream = fopen("fclose", "w");
    MUST(fclose(stream) == 0);
    stream = fopen("fwrite", "w");
    MUST(fwrite(buffer, 10, 3, stream) == 3 && fclose(stream) == 0);
    stream = fopen("fputs", "w");
    MUST(fputs("one line\n", stream) >= 0 && fclose(stream) == 0);
    stream = fopen("fputc", "w");
    MUST(fputc('a', stream) == 'a' && putc('b', stream) == 'b' && fclose(stream) == 0);
    stream = fopen("fprintf", "w");
    MUST(fprintf(stream, "%d %s %.1f %d %d %d %d %d %.2f\n", 1, "two", 3.0, 4, 5, 6, 7, 8, 9.25) == 25);
    print_list(stream, "%s\n", "list");
    MUST(fflush(stream) == 0 && fclose(stream) == 0);
    stream = fopen("fprintf", "r");
    MUST(fgets(text, sizeof text, stream) && !strcmp(text, "1 two 3.0 4 5 6 7 8 9.25\n"));
    fclose(stream);
    const char *names[] = {"fread", "fgets", "fgetc", "getline", "fseek", "rewind", "fflush"};
    for (int index = 0; index < 7; index++) {
        stream = fopen(names[index], "w+");
        MUST(fputs("first\nsecond\n", stream) >= 0);
        MUST(fflush(stream) == 0);
        rewind(stream);
        if (index == 0) MUST(fread(text, 1, 5, stream) == 5);
        if (index == 1) MUST(fgets(text, sizeof text, stream) != NULL && !strcmp(text, "first\n"));
        if (index == 2) MUST(fgetc(stream) == 'f' && getc(stream) == 'i');
        if (index == 3) MUST(getline(&line, &room, stream) == 6);
        if (index == 4) MUST(fseek(stream, 6, SEEK_SET) == 0 && fgetc(stream) == 's');
        MUST(fclose(stream) == 0);
    }
    free(line);
}

static void children(void) {
    char *arguments[] = {"/bin/true", NULL};
    int ended;
    pid_t child = fork();
    if (child == 0) {
        int fd = open("fork", O_WRONLY | O_CREAT, 0644);
        _exit(write(fd, buffer, 7) == 7 ? 0 : 1);
    }
    MUST(waitpid(child, &ended, 0) == child && ended == 0);
    child = vfork();
    if (child == 0) {
        execv("/bin/true", arguments);
        _exit(127);
    }
    MUST(waitpid(child, &ended, 0) == child && ended == 0);
    MUST(posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ) == 0);
    MUST(waitpid(child, &ended, 0) == child && ended == 0);
    MUST(system("exit 3") == 3 << 8);
    FILE *pipe = popen("exit 4", "r");
    MUST(pipe != NULL && pclose(pipe) == 4 << 8);
    wordexp_t words;
    MUST(wordexp("$(echo a b)", &words, 0) == 0 && words.we_wordc == 2);
    static char stack[65536];
    int code = 6;
    child = clone(in_clone, stack + sizeof stack, SIGCHLD, &code);
    MUST(waitpid(child, &ended, 0) == child && ended == 6 << 8);
    if ((child = fork()) == 0) execl("/bin/sh", "sh", "-c", "test \"$*\" = '1 2 3 4 5 6 7 8 9'", "sh",
                                     "1", "2", "3", "4", "5", "6", "7", "8", "9", NULL);
    MUST(waitpid(child, &ended, 0) == child && ended == 0);
    if ((child = fork()) == 0) execlp("no-such-program-anywhere", "x", NULL), _exit(errno);
    MUST(waitpid(child, &ended, 0) == child && ended == ENOENT << 8);
    char *environment[] = {"ONLY=this", NULL};
    if ((child = fork()) == 0)
        execle("/bin/sh", "sh", "-c", "test \"$ONLY-$HOME\" = this-", NULL, environment);
    MUST(waitpid(child, &ended, 0) == child && ended == 0);
}

static void *in_thread(void *unused) {
    int fd = open("thread", O_WRONLY | O_CREAT, 0644);
    MUST(write(fd, buffer, 8) == 8 && close(fd) == 0);
    return unused;
}

int main(int count, char **arguments) {
    if (count != 2 || chdir(arguments[1]) != 0) return 2;
    memset(buffer, 'p', sizeof buffer);
    opens();
    reads();
    writes();
    sizes();
    descriptors();
    controls();
    attributes();
    by_number();
    maps();
    copies();
    status();
    names();
    asynchronous();
    streams();
    children();
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, in_thread, NULL) == 0 && pthread_join(thread, NULL) == 0);
    _exit(failures != 0);
}
