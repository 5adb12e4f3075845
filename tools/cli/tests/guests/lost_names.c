/* A process that is killed has written what its writes returned for, whatever its file is called by
 * then. `lost_names WAY`: what happens to the name (directory, file, link, removed, again,
 * exchanged), or where
 * the process is (root, mounts, moved). `slowly`: it is killed while the rename goes on, which takes
 * its time where somebody delays the call. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *way;
static int done[2], go[2];

static int is(const char *name) { return !strcmp(way, name); }

static void give(int *pipe) {
    if (write(pipe[1], "x", 1) != 1) _exit(1);
}

static void wait_for(int *pipe) {
    char byte;
    if (read(pipe[0], &byte, 1) != 1) _exit(1);
}

static void leave_root(void) {
    if (chroot("d") || chdir("/")) puts("no other root here");
}

static void write_records(int fd, int first) {
    char record[16];
    for (int i = first; i < first + 10; i++) {
        snprintf(record, sizeof record, "%07d\n", i);
        if (write(fd, record, 8) != 8) _exit(1);
    }
}

static void writer(void) {
    const char *path = "d/f";
    if (is("root")) {
        leave_root();
        path = "/f";
    }
    if (is("mounts")) {
        if (unshare(CLONE_NEWNS) || mount(0, "/", 0, MS_REC | MS_PRIVATE, 0) || mount("d", "m", 0, MS_BIND, 0)) {
            puts("no other mounts here");
            rmdir("m");
            symlink("d", "m");
        }
        path = "m/f";
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
    write_records(fd, 0);
    if (is("moved")) {
        leave_root();
        write_records(fd, 10);
        close(open("/g", O_WRONLY | O_CREAT, 0644));
        int other = open("/g", O_WRONLY | O_APPEND);
        write_records(other, 50);
    }
    give(done);
    wait_for(go);
    write_records(fd, 20);
    give(done);
    pause();
}

static void show(const char *path) {
    char bytes[4096];
    struct stat status = {0};
    stat(path, &status);
    int fd = open(path, O_RDONLY);
    long got = read(fd, bytes, sizeof bytes);
    close(fd);
    printf("%s: stat %ld, read %ld\n", path, (long)status.st_size, got);
}

static void rename_slowly(void) {
    volatile long *written = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct stat status;
    int end;
    pid_t child = fork();
    if (!child) {
        int fd = open("d/f", O_WRONLY | O_CREAT | O_APPEND, 0644);
        for (;; ++*written) {
            write_records(fd, 0);
            usleep(100);
        }
    }
    pid_t killer = fork();
    if (!killer) {
        while (stat("e/f", &status)) usleep(1000);
        usleep(20000);
        kill(child, SIGKILL);
        _exit(0);
    }
    while (*written < 10) usleep(1000);
    rename("d", "e");
    waitpid(killer, &end, 0);
    waitpid(child, &end, 0);
    stat("e/f", &status);
    puts(status.st_size >= *written * 80 ? "nothing lost" : "lost");
    unlink("e/f");
}

int main(int count, char **arguments) {
    const char *path = "d/f";
    int end;
    way = arguments[1];
    setbuf(stdout, 0);
    mkdir("d", 0755);
    mkdir("m", 0755);
    if (is("slowly")) {
        rename_slowly();
        return 0;
    }
    if (is("link")) {
        close(open("d/f", O_WRONLY | O_CREAT, 0644));
        if (link("d/f", "other")) return 1;
        path = "other";
    }
    if (pipe(done) || pipe(go)) return 1;
    pid_t child = fork();
    if (!child) writer();
    wait_for(done);
    if (is("directory")) rename("d", "e");
    if (is("directory")) path = "e/f";
    if (is("exchanged")) {
        close(open("a", O_WRONLY | O_CREAT, 0644));
        renameat2(AT_FDCWD, "a", AT_FDCWD, "d", RENAME_EXCHANGE);
        path = "a/f";
    }
    if (is("file")) rename("d/f", path = "d/g");
    if (is("link") || is("removed") || is("again")) unlink("d/f");
    give(go);
    wait_for(done);
    kill(child, SIGKILL);
    waitpid(child, &end, 0);
    if (is("again")) {
        /* Likely to get the number of the file that has gone. */
        for (int i = 0; i < 20; i++) {
            int fd = open(path, O_WRONLY | O_CREAT, 0644);
            if (write(fd, "new", 3) != 3) return 1;
            close(fd);
            show(path);
            unlink(path);
        }
    }
    if (!is("removed") && !is("again")) show(path);
    if (is("moved")) show("d/g");
    printf("ended with %d\n", end);
    return count != 2;
}
