/* A process looks at a file of which another one holds bytes, and has no means to write them out
 * itself. `lookers WAY`: what the looking process lacks, or how it looks (descriptors, root, memory,
 * user, filter, sealed, size, numbers, mapping, spawned), or what the writing one lacks (thread). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 4, RECORDS = 10 };
static const char *way, *path = "d/f";
static int to_looker[2], to_writer[2];
static int full[4096], used;
static char *mapping;
extern char **environ;

static int is(const char *name) { return !strcmp(way, name); }

static void say(const char *text) {
    if (write(1, text, strlen(text)) < 0) _exit(1);
}

static void give(int *pipe) {
    if (write(pipe[1], "x", 1) != 1) _exit(1);
}

static void wait_for(int *pipe) {
    char byte;
    if (read(pipe[0], &byte, 1) != 1) _exit(1);
}

static void limit(int what, rlim_t soft) {
    struct rlimit limit;
    getrlimit(what, &limit);
    limit.rlim_cur = soft;
    setrlimit(what, &limit);
}

static void lack(void) {
    close(open("/etc/passwd", O_RDONLY));
    if (is("descriptors")) limit(RLIMIT_NOFILE, 64);
    if (is("size")) limit(RLIMIT_FSIZE, 20);
    if (is("memory")) {
        long pages = 0;
        FILE *usage = fopen("/proc/self/statm", "r");
        if (!usage || fscanf(usage, "%ld", &pages) != 1) _exit(1);
        fclose(usage);
        limit(RLIMIT_AS, pages * 4096 + 8192);
    }
    if (is("root") && (chroot("d") || chdir("/"))) say("no other root here\n");
    if (is("root")) path = "/f";
    if (is("user") && (setgid(65534) || setuid(65534))) say("no other user here\n");
    if (is("filter") || is("sealed")) {
        struct sock_filter all[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
        struct sock_fprog program = {1, all};
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) say("no filter here\n");
    }
    if (is("mapping")) {
        int fd = open(path, O_RDWR);
        mapping = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
        /* Who mapped it ends; the child keeps the mapping. */
        if (fork()) _exit(0);
    }
}

static void look(int round) {
    char line[200], bytes[4096];
    struct stat status = {0};
    if (is("mapping")) {
        snprintf(line, sizeof line, "mapped: %.8s\n", mapping + 8 * RECORDS * round);
        say(line);
        memcpy(mapping + 8 * RECORDS * round, "LOOKER", 6);
        return;
    }
    if (is("spawned")) {
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        int cuts = round % 2;
        posix_spawn_file_actions_addopen(&actions, 1, path, O_WRONLY | (cuts ? O_TRUNC : O_APPEND), 0644);
        char *command[] = {cuts ? "true" : "echo", "spawned", 0};
        pid_t child;
        int end;
        if (posix_spawnp(&child, command[0], &actions, 0, command, environ)) _exit(1);
        waitpid(child, &end, 0);
        return;
    }
    if (is("descriptors")) while ((full[used] = dup(0)) >= 0) used++;
    stat(path, &status);
    while (used) close(full[--used]);
    int fd = open(path, O_RDONLY);
    long got = read(fd, bytes, sizeof bytes);
    snprintf(line, sizeof line, "stat %ld, read %ld\n", (long)status.st_size, got);
    close(fd);
    say(line);
}

static void *write_records(void *unused) {
    char record[16];
    int number = 0;
    if (is("thread")) usleep(50000);
    int flags = O_RDWR | O_CREAT | (is("mapping") ? 0 : O_APPEND);
    int fd = open(path, flags, 0644);
    /* The looking process closes itself off between the opening of the file and the first write. */
    if (is("sealed")) give(to_looker), wait_for(to_writer);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < RECORDS; i++) {
            snprintf(record, sizeof record, "%07d\n", number++);
            if (write(fd, record, 8) != 8) _exit(1);
        }
        give(to_looker);
        wait_for(to_writer);
        if (is("mapping") && pread(fd, record, 8, 8 * RECORDS * round) == 8) say(record);
    }
    close(fd);
    if (is("thread")) _exit(0);
    return unused;
}

static int looker(void) {
    if (is("numbers")) {
        /* The looking process is one of another space of process numbers. */
        if (unshare(CLONE_NEWPID | CLONE_NEWNS) || mount(0, "/", 0, MS_REC | MS_PRIVATE, 0))
            say("no other numbers here\n");
        pid_t child = fork();
        if (!child && mount("proc", "/proc", "proc", 0, 0)) say("no other processes here\n");
        if (child) {
            int end;
            waitpid(child, &end, 0);
            return WEXITSTATUS(end);
        }
    }
    if (is("sealed")) wait_for(to_looker);
    lack();
    if (is("sealed")) give(to_writer);
    for (int round = 0; round < ROUNDS; round++) {
        wait_for(to_looker);
        look(round);
        give(to_writer);
    }
    return 0;
}

int main(int count, char **arguments) {
    int end;
    way = arguments[1];
    mkdir("d", 0755);
    if (is("mapping")) {
        static char zeros[4096];
        int fd = open(path, O_WRONLY | O_CREAT, 0644);
        if (write(fd, zeros, sizeof zeros) < 0) return 1;
        close(fd);
    }
    if (pipe(to_looker) || pipe(to_writer)) return 1;
    /* With the writer's first thread its process seems to have ended. */
    int writes_in_child = is("thread");
    pid_t child = fork();
    if (!child && !writes_in_child) _exit(looker());
    if (!child) {
        pthread_t thread;
        pthread_create(&thread, 0, write_records, 0);
        pthread_exit(0);
    }
    if (is("mapping")) waitpid(child, &end, 0);
    if (writes_in_child) looker();
    else write_records(0);
    waitpid(child, &end, 0);
    printf("ended with %d\n", end);
    return count != 2;
}
