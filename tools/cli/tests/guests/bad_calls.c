/* Calls that must fail, with the error each comes to, and that the file is none the worse. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#define TRY(call) do { errno = 0; long result = (call); printf("%s = %ld errno %d\n", #call, result, errno); } while (0)

int main(void) {
    int fd = open("f", O_RDWR | O_CREAT | O_TRUNC, 0644), reader = open("f", O_RDONLY);
    int writer = open("f", O_WRONLY);
    char bytes[64] = "some bytes";
    volatile int minus_one = -1;
    volatile size_t wild_address = 0x5000000000; /* kept from the compiler's eyes */
    void *wild = (void *)wild_address, *volatile nothing = NULL;
    TRY(write(fd, bytes, 10));
    TRY(write(fd, wild, 64));
    TRY(write(fd, nothing, 5));
    TRY(write(fd, bytes, 5));
    int second = open("second", O_RDWR | O_CREAT, 0644);
    TRY(pwrite(second, bytes, 10, 0));
    TRY(read(second, wild, 10));
    TRY(pread(second, nothing, 10, 0));
    TRY(lseek(second, 0, SEEK_CUR));
    char *two = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(two + 4096, 4096, PROT_NONE);
    int third = open("third", O_RDWR | O_CREAT, 0644);
    TRY(write(third, two + 4000, 200));
    TRY(lseek(third, 0, SEEK_CUR));
    TRY(write(reader, bytes, 1));
    TRY(read(writer, bytes, 1));
    TRY(write(99, bytes, 1));
    TRY(pwrite(fd, bytes, 1, -1));
    TRY(pread(fd, bytes, 1, -5));
    TRY(lseek(fd, -1, SEEK_SET));
    TRY(lseek(fd, -1000, SEEK_CUR));
    TRY(lseek(fd, 0, 77));
    TRY(lseek(fd, 1000000, SEEK_END));
    TRY(read(fd, bytes, 10));
    TRY(ftruncate(fd, -1));
    TRY(ftruncate(reader, 3));
    TRY(fallocate(fd, 0, -1, 5));
    TRY(fallocate(fd, 0, 0, 0));
    struct iovec parts[2] = {{bytes, 5}, {nothing, 5}};
    int fourth = open("fourth", O_RDWR | O_CREAT, 0644);
    TRY(writev(fourth, parts, 2));
    TRY(writev(fourth, parts, minus_one));
    TRY(writev(fourth, nothing, 2));
    TRY(writev(fourth, parts, 0));
    TRY(pwritev(fourth, parts, 1, -2));
    TRY(pwritev2(fourth, parts, 1, -1, 0));
    TRY(pwritev2(fourth, parts, 1, 100, RWF_DSYNC));
    TRY(pwritev2(fourth, parts, 1, 0, 0x40000000));
    TRY(preadv2(fourth, parts, 1, 0, 0));
    TRY(lseek(fourth, 0, SEEK_CUR));
    TRY(write(fd, bytes, 0));
    TRY(dup2(fd, -1));
    TRY(dup2(98, fd));
    TRY(write(fd, "still there", 11));
    TRY(close(98));
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){2000000, 2000000});
    int limited = open("limited", O_RDWR | O_CREAT, 0644);
    TRY(pwrite(limited, bytes, 20, 2000000) < 0 || fsync(limited) < 0);
    TRY(fsync(fd));
    return 0;
}
