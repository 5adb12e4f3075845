/* Streams whose calls are no cancellation points (`c` in the mode, also that of `,ccs=`), beside calls of the
   usual kind on the same files. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

static void tell(const char *what, FILE *stream) {
    char text[100] = "";
    size_t length = stream ? fread(text, 1, sizeof text - 1, stream) : 0;
    printf("%s: %zu %s\n", what, length, text);
    if (stream) fclose(stream);
}

int main(void) {
    setlocale(LC_ALL, "C.UTF-8");
    FILE *stream = fopen("new", "wc");
    fputs("quietly made", stream);
    fclose(stream);
    tell("made", fopen("new", "r"));
    stream = fopen("new", "ae");
    fputs(" and gone on with", stream);
    fclose(stream);
    tell("gone on with", fopen("new", "rc"));

    stream = fopen("wide", "w");
    fputs("a\xc3\xa9\n", stream);
    fclose(stream);
    stream = fopen("wide", "r+,ccs=UTF-8");
    printf("wide: %d", (int)fgetwc(stream));
    printf(" %d\n", (int)fgetwc(stream));
    fseek(stream, 0, SEEK_END);
    fputwc(0x4e2d, stream);
    fclose(stream);
    tell("wide", fopen("wide", "r"));

    int fd = open("cut", O_RDWR | O_CREAT | O_TRUNC, 0644);
    write(fd, "held before the cut", 19);
    tell("before", fopen("cut", "rc"));
    stream = fopen("cut", "wc");
    struct stat status;
    fstat(fd, &status);
    printf("cut: %ld\n", (long)status.st_size);
    fputs("by the stream", stream);
    fflush(stream);
    char text[20] = "";
    printf("read: %zd %s\n", pread(fd, text, 19, 0), text);
    pwrite(fd, "BY", 2, 0);
    fclose(stream);
    close(fd);
    tell("after", fopen("cut", "r"));
    tell("none", fopen("none", "rc"));
    tell("taken", fopen("cut", "wxc"));
    return 0;
}
