/* Writes to one descriptor by the library and past it, which nobody can put in order again. */
#include <fcntl.h>
#include <unistd.h>
#include "past_libc.h"

int main(void) {
    int fd = open("mixed", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    write(fd, "one ", 4);
    past_libc(SYS_write, fd, (long)"raw ", 4);
    write(fd, "two ", 4);
    fsync(fd);
    write(fd, "three", 5);
    return close(fd);
}
