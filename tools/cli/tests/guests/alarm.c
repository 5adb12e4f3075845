/* A signal handler that writes every 200 us into the very file the program is writing. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define MINE 300000
static int fd;
static volatile long handled, failed;

static void on_alarm(int number) {
    (void)number;
    long record[2] = {-1, handled};
    if (pwrite(fd, record, 16, (MINE + handled) * 16L) != 16) failed++;
    handled++;
}

int main(void) {
    fd = open("f", O_RDWR | O_CREAT | O_TRUNC, 0644);
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 200}, {0, 200}}, NULL);
    for (long i = 0; i < MINE; i++) {
        long record[2] = {i, i * i};
        if (write(fd, record, 16) != 16) failed++;
    }
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
    long bad = failed, record[2];
    for (long i = 0; i < MINE; i++)
        if (pread(fd, record, 16, i * 16) != 16 || record[0] != i || record[1] != i * i) bad++;
    for (long i = 0; i < handled; i++)
        if (pread(fd, record, 16, (MINE + i) * 16) != 16 || record[0] != -1 || record[1] != i) bad++;
    if (lseek(fd, 0, SEEK_CUR) != MINE * 16L) bad++;
    printf("bad records %ld, handler ran %s\n", bad, handled > 0 ? "yes" : "no");
    ftruncate(fd, MINE * 16L);
    return bad != 0;
}
