/* Places that a file system may not have in a file: who asks for them hears what it says. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define TRY(call) do { errno = 0; long long result = (call); \
    printf("%s = %lld %s\n", #call, result, result < 0 ? strerror(errno) : ""); } while (0)

int main(void) {
    const off_t last = 0x7fffffffffffffff, ends[] = {1LL << 41, 1LL << 42, 1LL << 44, 1LL << 60, last};
    for (unsigned index = 0; index < sizeof ends / sizeof *ends; index++) {
        char name[20], bytes[8] = "";
        sprintf(name, "far%u", index);
        int fd = open(name, O_CREAT | O_RDWR, 0644);
        off_t end = ends[index];
        TRY(write(fd, "near", 4));
        TRY(lseek(fd, 1, SEEK_SET));
        TRY(pwrite(fd, "x", 1, end));
        TRY(pread(fd, bytes, 4, end));
        struct iovec part = {"yy", 2};
        TRY(pwritev(fd, &part, 1, end));
        TRY(lseek(fd, end, SEEK_SET));
        TRY(write(fd, "z", 1));
        TRY(lseek(fd, -1, SEEK_CUR));
        TRY(lseek(fd, end, SEEK_CUR));
        TRY(lseek(fd, end, SEEK_END));
        TRY(lseek(fd, -end, SEEK_END));
        TRY(lseek(fd, 2, SEEK_SET));
        TRY(write(fd, "NEAR", 4));
        TRY(pread(fd, bytes, 6, 0));
        printf("%.6s %lld\n", bytes, (long long)lseek(fd, 0, SEEK_CUR));
        TRY(ftruncate(fd, 6));
        TRY(close(fd));
    }
    return 0;
}
