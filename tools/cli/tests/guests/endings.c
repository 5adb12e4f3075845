/* Writes by descriptor and by stream and ends in the way asked for. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int fd;
static void at_end(void) { write(fd, "at exit\n", 8); }
static void on_signal(int number) {
    (void)number;
    write(fd, "handler\n", 8);
    _exit(7);
}

int main(int count, char **arguments) {
    const char *way = count > 1 ? arguments[1] : "return";
    fd = open("by_descriptor", O_WRONLY | O_CREAT, 0644);
    FILE *stream = fopen("by_stream", "w");
    for (int i = 0; i < 1000; i++) {
        dprintf(fd, "line %d\n", i);
        fprintf(stream, "line %d\n", i);
    }
    if (!strcmp(way, "return")) return 3;
    if (!strcmp(way, "exit")) { atexit(at_end); exit(4); }
    if (!strcmp(way, "_exit")) _exit(5);
    if (!strcmp(way, "quick_exit")) { at_quick_exit(at_end); quick_exit(6); }
    if (!strcmp(way, "abort")) abort();
    if (!strcmp(way, "close")) { close(fd); fclose(stream); kill(getpid(), SIGKILL); }
    if (!strcmp(way, "fsync")) { fsync(fd); fflush(stream); fsync(fileno(stream)); kill(getpid(), SIGKILL); }
    if (!strcmp(way, "dup2")) { dup2(2, fd); dup2(2, fileno(stream)); kill(getpid(), SIGKILL); }
    if (!strcmp(way, "handler")) { signal(SIGTERM, on_signal); raise(SIGTERM); }
    if (!strcmp(way, "term")) raise(SIGTERM);
    if (!strcmp(way, "segv")) raise(SIGSEGV);
    if (!strcmp(way, "exec")) execl("/bin/cat", "cat", "by_descriptor", "by_stream", (char *)NULL);
    if (!strcmp(way, "freopen")) { stream = freopen("other", "w", stream); fputs("other\n", stream); }
    if (!strcmp(way, "closefrom")) { fflush(stream); close_range(3, ~0u, 0); kill(getpid(), SIGKILL); }
    return 8;
}
