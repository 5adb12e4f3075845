/* A fork past every function of libc: parent and child go on with what both have open. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "past_libc.h"

int main(void) {
    char bytes[64] = {0};
    int fd = open("copied", O_RDWR | O_CREAT | O_TRUNC, 0644), status;
    pwrite(fd, "0123456789", 10, 0);
    long child = fork_past_libc();
    if (child == 0) {
        long seen = pread(fd, bytes, sizeof bytes, 0);
        pwrite(fd, "child", 5, 20);
        pwrite(fd, "more", 4, 25);
        int own = open("of the child", O_WRONLY | O_CREAT, 0644);
        write(own, "held", 4);
        _exit(seen >= 10 && !memcmp(bytes, "0123456789", 10) ? 0 : 1);
    }
    pwrite(fd, "parent", 6, 30);
    waitpid(child, &status, 0);
    pwrite(fd, "again", 5, 36);
    long seen = pread(fd, bytes, sizeof bytes, 0);
    printf("child %d, %ld bytes\n", status, seen);
    return close(fd);
}
