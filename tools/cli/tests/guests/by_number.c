/* Every call on files made by its number, through `syscall`, mixed with the functions. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <linux/stat.h>
#include <unistd.h>

static void say(const char *what, long value) { printf("%s %ld\n", what, value); }
static char bytes[200];

int main(void) {
    memset(bytes, 'x', sizeof bytes);
    /* Closed by number: the bytes are in the file, and the number is free for a socket. */
    int fd = open("closed", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    write(fd, "by function\n", 12);
    say("close", syscall(SYS_close, fd));
    int pair[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    say("same number", pair[0] == fd);
    say("to the socket", write(pair[0], "message", 7));
    say("from the socket", read(pair[1], bytes + 100, 50));
    say("seek on the socket", lseek(pair[0], 0, SEEK_CUR));
    syscall(SYS_close, pair[0]), close(pair[1]);

    /* Written, read, sought by both. */
    fd = syscall(SYS_openat, AT_FDCWD, "mixed", O_RDWR | O_CREAT | O_TRUNC, 0640);
    for (int i = 0; i < 50; i++) {
        write(fd, "function ", 9);
        syscall(SYS_write, fd, "number ", 7);
        if (i % 10 == 3) say("seek", syscall(SYS_lseek, fd, -3L, SEEK_CUR));
        if (i % 10 == 7) say("pwrite", syscall(SYS_pwrite64, fd, "placed", 6, (long)i * 3));
    }
    struct stat status;
    syscall(SYS_fstat, fd, &status), say("size", status.st_size);
    struct statx extended;
    syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_SIZE, &extended), say("statx", extended.stx_size);
    syscall(SYS_newfstatat, AT_FDCWD, "mixed", &status, 0), say("fstatat", status.st_size);
#ifdef SYS_stat
    syscall(SYS_stat, "mixed", &status), say("stat", status.st_size);
#endif
    memset(bytes, 0, sizeof bytes);
    say("pread", syscall(SYS_pread64, fd, bytes, 40, 5L)), say(bytes, 0);
    struct iovec vector[2] = {{"one ", 4}, {"two ", 4}};
    say("writev", syscall(SYS_writev, fd, vector, 2));
    say("pwritev", syscall(SYS_pwritev, fd, vector, 2, 11L, 0L));
    say("pwritev2", syscall(SYS_pwritev2, fd, vector, 2, 31L, 0L, 0));
    say("truncate", syscall(SYS_ftruncate, fd, 500L));
    say("fallocate", syscall(SYS_fallocate, fd, 0, 0L, 700L));
    int twin = syscall(SYS_dup, fd);
    write(fd, "before ", 7), syscall(SYS_write, twin, "after ", 6);
    say("fcntl dup", syscall(SYS_fcntl, fd, F_DUPFD, 30));
    write(30, "thirty ", 7);
    say("append", syscall(SYS_fcntl, fd, F_SETFL, O_APPEND));
    write(fd, "appended ", 9);
    say("position", syscall(SYS_lseek, twin, 0L, SEEK_CUR));
    say("end", syscall(SYS_lseek, twin, 0L, SEEK_END));
    int out = open("copied", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    write(out, "head ", 5);
    long from = 3;
    say("copy", syscall(SYS_copy_file_range, fd, &from, out, NULL, 60, 0));
    write(out, " tail", 5);
    from = 0;
    say("sendfile", syscall(SYS_sendfile, out, fd, &from, 30));
    write(out, " end", 4);
    say("fsync", syscall(SYS_fsync, out));
    say("close range", syscall(SYS_close_range, out, out, 0));
    say("bad", write(out, "x", 1));
    char *map = (char *)syscall(SYS_mmap, NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    write(fd, "after the map ", 14);
    lseek(fd, 0, SEEK_SET);
    printf("mapped %.20s %.20s\n", map, map + 700);
    say("munmap", syscall(SYS_munmap, map, 4096L));
    syscall(SYS_close, twin), syscall(SYS_close, 30);

    fd = open("named", O_WRONLY | O_CREAT, 0644);
    write(fd, "held", 4);
    say("rename", syscall(SYS_renameat2, AT_FDCWD, "named", AT_FDCWD, "renamed", 0));
    write(fd, " more", 5);
    say("truncate by path", syscall(SYS_truncate, "renamed", 6L));
    write(fd, " and more", 9);
    say("chmod", syscall(SYS_fchmod, fd, 04755));
#ifdef SYS_dup2
    say("dup2", syscall(SYS_dup2, 1, fd));
#else
    say("dup3", syscall(SYS_dup3, 1, fd, 0));
#endif
    stat("renamed", &status), say("renamed", status.st_size), say("mode", status.st_mode);

    /* A copy made by number shares files and positions. */
    fd = open("shared", O_RDWR | O_CREAT | O_TRUNC, 0644);
    write(fd, "parent ", 7);
    fflush(stdout);
#ifdef SYS_fork
    int pid = syscall(SYS_fork);
#else
    int pid = syscall(SYS_clone, 17L, 0, 0, 0, 0);
#endif
    if (pid == 0) { write(fd, "fork ", 5); syscall(SYS_exit_group, 3); }
    int ended; waitpid(pid, &ended, 0), say("fork", WEXITSTATUS(ended));
    write(fd, "between ", 8);
    fflush(stdout);
    pid = syscall(SYS_clone, 17L, 0, 0, 0, 0);
    if (pid == 0) { syscall(SYS_write, fd, "clone ", 6); _exit(4); }
    waitpid(pid, &ended, 0), say("clone", WEXITSTATUS(ended));
    write(fd, "after ", 6);
    say("exit", 0), fflush(stdout);
    write(fd, "last", 4);
    syscall(SYS_exit_group, 5);
}
