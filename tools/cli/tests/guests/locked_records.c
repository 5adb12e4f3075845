/* Processes that lock correctly: `locked_records WAY PROCESSES RECORDS`. Each record is appended
 * under a lock: count it in the header, go to the end, write it. The lock is on the file itself
 * (own), or on another one (other), by fcntl, flock or lockf. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *way;

static void lock(int fd, int take) {
    if (strstr(way, "flock")) flock(fd, take ? LOCK_EX : LOCK_UN);
    else if (strstr(way, "lockf")) lseek(fd, 0, SEEK_SET), lockf(fd, take ? F_LOCK : F_ULOCK, 1);
    else {
        struct flock range = {.l_type = take ? F_WRLCK : F_UNLCK, .l_len = 1};
        fcntl(fd, strstr(way, "ofd") ? F_OFD_SETLKW : F_SETLKW, &range);
    }
}

static void worker(int number, int records, int reopens) {
    char text[64];
    int fd = open("records", O_RDWR), other = open("lock", O_RDWR);
    for (int i = 0; i < records; i++) {
        int locked = strstr(way, "other") ? other : fd;
        lock(locked, 1);
        if (reopens) close(fd), fd = open("records", O_RDWR);
        char header[9] = {0};
        pread(fd, header, 8, 0);
        sprintf(text, "%07d\n", atoi(header) + 1);
        pwrite(fd, text, 8, 0);
        lseek(fd, 0, SEEK_END);
        int length = sprintf(text, "record of %d\n", number);
        if (write(fd, text, length) != length) _exit(1);
        lock(locked, 0);
    }
    _exit(0);
}

int main(int argc, char **argv) {
    way = argv[1];
    int processes = atoi(argv[2]), records = atoi(argv[3]), status, bad = 0;
    int fd = open("records", O_RDWR | O_CREAT | O_TRUNC, 0644);
    write(fd, "0000000\n", 8);
    close(fd);
    close(open("lock", O_RDWR | O_CREAT, 0644));
    for (int i = 0; i < processes; i++)
        if (fork() == 0) worker(i, records, strstr(way, "reopen") != NULL);
    while (wait(&status) > 0) bad += status != 0;
    char header[9] = {0};
    int lines = 0, byte;
    FILE *file = fopen("records", "r");
    fread(header, 1, 8, file);
    while ((byte = getc(file)) != EOF) lines += byte == '\n';
    printf("%d bad, header %s, %d records\n", bad, strtok(header, "\n"), lines);
    unlink("records");
    return 0;
}
