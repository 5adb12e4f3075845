/* Fills a small file system with small records and says which call reports that it is full, and
 * that what was acknowledged before a successful sync can be read back. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **arguments) {
    char record[100];
    (void)count;
    int fd = open(arguments[1], O_RDWR | O_CREAT | O_TRUNC, 0644);
    int failures = 0;
    memset(record, 'r', sizeof record);
    for (long left = 800000; left > 0 && !failures;) {
        ssize_t written = write(fd, record, left < 100 ? left : 100);
        if (written <= 0) {
            printf("write errno %d\n", errno);
            failures++;
        }
        left -= written;
    }
    if (fsync(fd)) printf("fsync errno %d\n", errno), failures++;
    if (close(fd)) printf("close errno %d\n", errno), failures++;
    printf("%s\n", failures ? "told" : "not told");
    return 0;
}
