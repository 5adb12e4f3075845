/* Writes and reads one file by every way a process has of naming it, and prints what each sees. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

static void show(const char *what, int fd) {
    char bytes[300] = {0};
    ssize_t count = pread(fd, bytes, sizeof bytes - 1, 0);
    printf("%s: %zd [%s] at %ld\n", what, count, bytes, (long)lseek(fd, 0, SEEK_CUR));
}

static void sizes(const char *what, const char *path, int fd) {
    struct stat a, b, c;
    struct statx d;
    stat(path, &a), fstat(fd, &b), lstat(path, &c);
    statx(AT_FDCWD, path, 0, STATX_SIZE, &d);
    printf("%s: stat %ld fstat %ld lstat %ld statx %llu end %ld\n", what, (long)a.st_size,
           (long)b.st_size, (long)c.st_size, (unsigned long long)d.stx_size, (long)lseek(fd, 0, SEEK_END));
}

int main(void) {
    int a = open("f", O_RDWR | O_CREAT | O_TRUNC, 0644), b = open("f", O_RDWR), c = dup(a);
    int appending = open("f", O_WRONLY | O_APPEND), raw = open("f", O_RDWR | O_SYNC);
    write(a, "alpha ", 6);
    show("second open", b);
    write(c, "beta ", 5);
    show("after dup", b);
    write(appending, "gamma ", 6);
    show("after append", a);
    pwrite(b, "ALPHA", 5, 0);
    show("after overwrite", c);
    write(raw, "aLPHa", 5);
    show("after raw", a);
    sizes("sizes", "f", a);

    FILE *stream = fopen("f", "r+");
    char line[64] = {0};
    fread(line, 1, 11, stream);
    printf("stream read [%s]\n", line);
    fseek(stream, 0, SEEK_END);
    fputs("delta ", stream);
    show("before flush", a);
    fflush(stream);
    show("after flush", a);
    printf("closed %d\n", fclose(stream));
    write(appending, "epsilon ", 8);

    struct stat status;
    fstat(a, &status);
    char *mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, a, 0);
    printf("mapped [%.*s]\n", (int)status.st_size, mapped);
    memcpy(mapped, "MAPPED", 6);
    show("after a store", b);
    pwrite(a, "written", 7, 2);
    printf("mapped [%.10s]\n", mapped);
    msync(mapped, 4096, MS_SYNC);
    munmap(mapped, 4096);

    int fresh = open("g", O_RDWR | O_CREAT, 0644);
    write(fresh, "0123456789", 10);
    printf("truncate %d\n", ftruncate(fresh, 4));
    write(fresh, "x", 1);
    show("after truncate", fresh);
    sizes("sizes", "g", fresh);
    printf("allocate %d\n", fallocate(fresh, 0, 0, 100));
    sizes("sizes", "g", fresh);
    printf("posix_fallocate %d\n", posix_fallocate(fresh, 0, 200));
    sizes("sizes", "g", fresh);
    write(fresh, "end", 3);
    printf("truncate by path %d\n", truncate("g", 5));
    sizes("sizes", "g", fresh);
    int emptied = open("g", O_WRONLY | O_TRUNC);
    sizes("after O_TRUNC", "g", fresh);
    write(emptied, "anew", 4);
    show("anew", fresh);

    write(fresh, "tail", 4);
    printf("rename %d\n", rename("g", "h"));
    sizes("renamed", "h", fresh);
    write(fresh, "more", 4);
    printf("link %d\n", link("h", "i"));
    sizes("linked", "i", fresh);
    int other = open("i", O_RDWR);
    write(other, "OTHER", 5);
    show("by the other name", fresh);
    printf("unlink %d %d\n", unlink("h"), unlink("i"));
    write(fresh, "gone", 4);
    show("unlinked", other);

    int copy = open("copy", O_RDWR | O_CREAT, 0644);
    off_t from = 0;
    write(a, "for sendfile", 12);
    printf("sendfile %zd\n", sendfile(copy, a, &from, 1000));
    show("copied", copy);
    from = 0;
    write(b, "for copy_file_range", 19);
    printf("copy_file_range %zd\n", copy_file_range(b, &from, copy, NULL, 1000, 0));
    show("copied twice", copy);
    int pipes[2];
    pipe(pipes);
    from = 0;
    printf("splice %zd\n", splice(copy, &from, pipes[1], NULL, 50, 0));
    char spliced[64] = {0};
    printf("read %zd", read(pipes[0], spliced, 50));
    printf(" [%s]\n", spliced);

    printf("flock %d\n", flock(a, LOCK_EX));
    struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_CUR, .l_len = 1};
    printf("fcntl %d lockf %d\n", fcntl(a, F_SETLK, &range), lockf(a, F_TLOCK, 1));

    write(b, "replaced", 8);
    printf("dup2 %d\n", dup2(copy, b) == b);
    write(b, "!", 1);
    show("the other file now", b);
    printf("append by flag %d\n", fcntl(a, F_SETFL, O_APPEND));
    write(a, "appended", 8);
    show("appended", a);
    printf("sync %d %d %d\n", fsync(a), fdatasync(a), sync_file_range(a, 0, 0, SYNC_FILE_RANGE_WRITE));
    sync();
    printf("close %d %d %d\n", close(a), close(b), close(c));
    printf("closed again %d %d\n", close(a), errno);
    return 0;
}
