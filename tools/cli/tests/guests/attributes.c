/* Times, modes, owners and attributes set after a write stay as they were set. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

static char name[32];
static int number;
static int fresh(void) {
    sprintf(name, "attribute.%02d", ++number);
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
    for (int i = 0; i < 30; i++) write(fd, "some bytes ", 11);
    return fd;
}
static void look(const char *what, int fd) {
    close(fd);
    struct stat status;
    stat(name, &status);
    long time = status.st_mtime < 1600000000 ? status.st_mtime : -1;
    printf("%s: %o %ld.%09ld %d:%d %ld\n", what, status.st_mode, time, time < 0 ? 0 : status.st_mtim.tv_nsec, status.st_uid, status.st_gid, (long)status.st_size);
}

int main(void) {
    struct timespec precise[2] = {{1000000000, 123456789}, {1000000001, 987654321}};
    struct timeval coarse[2] = {{1100000000, 5}, {1100000001, 7}};
    struct utimbuf old = {1200000000, 1200000001};
    int fd;
    fd = fresh(), utime(name, &old), look("utime", fd);
    fd = fresh(), utimes(name, coarse), look("utimes", fd);
    fd = fresh(), lutimes(name, coarse), look("lutimes", fd);
    fd = fresh(), futimes(fd, coarse), look("futimes", fd);
    fd = fresh(), futimesat(AT_FDCWD, name, coarse), look("futimesat", fd);
    fd = fresh(), futimens(fd, precise), look("futimens", fd);
    fd = fresh(), utimensat(AT_FDCWD, name, precise, 0), look("utimensat", fd);
    fd = fresh(), utimensat(fd, NULL, precise, 0), look("utimensat of a descriptor", fd);
    fd = fresh(), futimens(fd, precise), lseek(fd, 0, SEEK_SET), read(fd, (char[9]){0}, 9), look("futimens, then read", fd);
    fd = fresh(), futimens(fd, precise), write(fd, "later", 5), look("futimens, then written", fd);
    fd = fresh(), write(fd, "x", 1), fchmod(fd, 06755), look("fchmod", fd);
    fd = fresh(), chmod(name, 04711), look("chmod", fd);
    fd = fresh(), fchmodat(AT_FDCWD, name, 02755, 0), look("fchmodat", fd);
    fd = fresh(), fchmod(fd, 04755), write(fd, "later", 5), look("fchmod, then written", fd);
    fd = fresh(), fchown(fd, geteuid(), getegid()), fchmod(fd, 0600), look("fchown", fd);
    if (geteuid() == 0) {
        fd = fresh(), chown(name, 1234, 4321), chmod(name, 04755), look("chown", fd);
        fd = fresh(), lchown(name, 1234, -1), look("lchown", fd);
        fd = fresh(), fchownat(AT_FDCWD, name, 1, 2, 0), fchmod(fd, 06755), look("fchownat", fd);
        /* version 2, CAP_NET_BIND_SERVICE: a write takes it away */
        char capability[20] = {1, 0, 0, 2, 0, 4}, found[40];
        fd = fresh();
        int set = fsetxattr(fd, "security.capability", capability, sizeof capability, 0);
        look("capability", fd);
        printf("%d\n", set == 0 && getxattr(name, "security.capability", found, sizeof found) == 20);
        fd = fresh(), set = setxattr(name, "security.capability", capability, sizeof capability, 0);
        write(fd, "later", 5);
        printf("%d\n", set == 0 && fgetxattr(fd, "security.capability", found, sizeof found) > 0), look("capability, then written", fd);
    }
    fd = fresh();
    if (setxattr(name, "user.kind", "test", 4, 0) == 0) removexattr(name, "user.kind"), fsetxattr(fd, "user.kind", "more", 4, 0);
    futimens(fd, precise), look("attributes", fd);
    fd = fresh(), fchmod(fd, 0444), write(fd, "x", 1), futimens(fd, precise), look("read-only", fd);
    FILE *stream = fopen("attribute.stream", "w");
    fputs("through a stream", stream), fflush(stream), futimens(fileno(stream), precise), strcpy(name, "attribute.stream");
    fd = dup(fileno(stream)), fclose(stream), look("stream", fd);
    return 0;
}
