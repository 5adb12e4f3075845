/* Writes to one descriptor by the library and past it, which nobody can put in order again. */
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

static long raw_write(int fd, const void *bytes, long length) {
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(SYS_write), "D"(fd), "S"(bytes), "d"(length)
                     : "rcx", "r11", "memory");
    return result;
}

int main(void) {
    int fd = open("mixed", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    write(fd, "one ", 4);
    raw_write(fd, "raw ", 4);
    write(fd, "two ", 4);
    fsync(fd);
    write(fd, "three", 5);
    return close(fd);
}
