/* Calls on streams of all kinds, counted by the program itself: `streams DIRECTORY WAY ENDING`.
 *
 * It says "FUNCTION CALLS BYTES" on standard output, in several lines for one function that are to be
 * added up. WAY is `mix` (three threads, a fork in the middle) or `signals` (a handler that writes
 * comes between), ENDING is `return`, `_exit`, `abort`, `kill` or `exec`.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FPUTC, FPRINTF, FPUTS, FWRITE, FGETC, FGETS, FREAD, GETLINE, FSEEK, FFLUSH, KINDS };
static const char *const names[KINDS] = {"fputc", "fprintf", "fputs",   "fwrite", "fgetc",
                                         "fgets", "fread",   "getline", "fseek",  "fflush"};
struct tally {
    long calls[KINDS], bytes[KINDS];
};
static const char *directory;
/* By pointers, since the compiler would put other functions in their place. */
static int (*volatile put_unlocked)(int, FILE *) = putc_unlocked;
static int (*volatile put_text)(const char *, FILE *) = fputs;

static void count(struct tally *tally, int kind, long bytes) {
    tally->calls[kind]++;
    tally->bytes[kind] += bytes;
}

static void say(const struct tally *tally) {
    char text[1024];
    int length = 0;
    for (int kind = 0; kind < KINDS; kind++)
        length += snprintf(text + length, sizeof text - length, "%s %ld %ld\n", names[kind],
                           tally->calls[kind], tally->bytes[kind]);
    if (write(1, text, length) != length) abort();
}

static FILE *opened(const char *name, int number, const char *mode) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s-%d", directory, name, number);
    FILE *stream = fopen(path, mode);
    if (!stream) abort();
    return stream;
}

/* Pieces of text of four functions on one stream, and now and then a flush. */
static void write_some(FILE *stream, long rounds, struct tally *tally) {
    for (long i = 0; i < rounds; i++) {
        count(tally, FPRINTF, fprintf(stream, "%ld", i));
        count(tally, FPUTC, (fputc(' ', stream), 1));
        count(tally, FPUTC, (put_unlocked('-', stream), 1));
        count(tally, FPUTS, (put_text("some text", stream), 9));
        count(tally, FWRITE, fwrite("line\n", 1, 5, stream));
        if (i % 1500 == 1499) count(tally, FFLUSH, (fflush(stream), 0));
        if (i % 1500 == 1499) count(tally, FFLUSH, (fflush(stream), 0));
    }
}

static void read_some(FILE *stream, struct tally *tally) {
    char text[64], *line = NULL;
    size_t room = 0;
    for (long i = 0; i < 2500; i++) {
        if (fgetc(stream) != EOF) count(tally, FGETC, 1);
        count(tally, FREAD, fread(text, 1, 3, stream));
        if (fgets(text, sizeof text, stream)) count(tally, FGETS, strlen(text));
        long got = getline(&line, &room, stream);
        if (got > 0) count(tally, GETLINE, got);
    }
    for (long i = 0; i < 1500; i++) {
        count(tally, FSEEK, (fseek(stream, i % 7, SEEK_SET), 0));
        if (fgetc(stream) != EOF) count(tally, FGETC, 1);
    }
    free(line);
}

static void *work(void *argument) {
    int number = (int)(long)argument;
    struct tally tally = {0};
    FILE *out = opened("out", number, "w"), *other = opened("other", number, "w");
    write_some(out, 5000, &tally);
    for (long i = 0; i < 5000; i++) {
        count(&tally, FPUTC, (fputc('a', out), 1));
        count(&tally, FPUTC, (fputc('b', other), 1));
    }
    fclose(out);
    FILE *in = opened("out", number, "r");
    read_some(in, &tally);
    /* `in` and `other` stay open. */
    say(&tally);
    return NULL;
}

static void mix(void) {
    pthread_t threads[2];
    struct tally tally = {0}, childs = {0};
    FILE *mine = opened("out", 7, "w");
    write_some(mine, 2000, &tally);
    fflush(mine);
    count(&tally, FFLUSH, 0);
    fputc('1', mine);
    count(&tally, FPUTC, 1);
    pid_t child = fork();
    if (child == 0) {
        FILE *own = opened("out", 8, "w");
        for (long i = 0; i < 3000; i++) count(&childs, FPUTC, (fputc('c', own), 1));
        fputc('2', mine);
        count(&childs, FPUTC, 1);
        say(&childs);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    write_some(mine, 2000, &tally);
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (long i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    work((void *)2L);
    write_some(mine, 10, &tally);
    say(&tally);
}

static FILE *handlers;
static int descriptor;
static struct tally handled;

static void handler(int signal) {
    (void)signal;
    for (int i = 0; i < 40; i++) {
        count(&handled, FPUTC, (fputc('h', handlers), 1));
        if (write(descriptor, "x", 1) != 1) abort();
    }
}

static void signals(void) {
    struct tally tally = {0};
    FILE *mine = opened("out", 1, "w");
    handlers = opened("out", 2, "w");
    descriptor = fileno(opened("out", 3, "w"));
    signal(SIGALRM, handler);
    struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    for (long i = 0; i < 20000000 || handled.calls[FPUTC] < 40000; i++) {
        fputc('m', mine);
        count(&tally, FPUTC, 1);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    say(&tally);
    say(&handled);
}

int main(int words, char **word) {
    if (words != 4) return 2;
    directory = word[1];
    if (!strcmp(word[2], "mix")) mix();
    if (!strcmp(word[2], "signals")) signals();
    const char *ending = word[3];
    if (!strcmp(ending, "_exit")) _exit(0);
    if (!strcmp(ending, "abort")) abort();
    if (!strcmp(ending, "kill")) raise(SIGKILL);
    if (!strcmp(ending, "exec")) execl("/bin/true", "true", (char *)NULL);
    return 0;
}
