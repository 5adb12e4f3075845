/* Writes numbered records and tells on standard output what it has synced or closed: to be killed
 * at any instant. Usage: checkpoints DIRECTORY */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **arguments) {
    char line[64], path[64];
    (void)count;
    if (chdir(arguments[1])) return 1;
    int fd = open("synced", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    for (long i = 0;; i++) {
        long record[8] = {i, i * 3, i * 5, i * 7, i * 11, i * 13, i * 17, i * 19};
        if (write(fd, record, sizeof record) != sizeof record) return 2;
        if (i % 37 == 0) {
            if (fsync(fd)) return 3;
            if (write(1, line, sprintf(line, "synced %ld\n", i + 1)) < 0) return 4;
        }
        if (i % 53 == 0) {
            sprintf(path, "closed.%ld", i);
            int other = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
            for (int j = 0; j < 50; j++)
                if (write(other, path, strlen(path)) < 0) return 5;
            if (close(other)) return 6;
            if (write(1, line, sprintf(line, "closed %ld\n", i)) < 0) return 7;
        }
    }
}
