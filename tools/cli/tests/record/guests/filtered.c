/* Writes a file, then lives under a filter of system calls that ends the process for anything but what
   a program of its kind makes: the library must not make a call of its own any more. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Calls that newer machines do without: there, the nearest one they have. */
#ifndef __NR_arch_prctl
#define __NR_arch_prctl __NR_prctl
#endif
#ifndef __NR_access
#define __NR_access __NR_faccessat
#endif

#define ALLOW(name) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void filter(int by_system_call) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(read), ALLOW(write), ALLOW(openat), ALLOW(close), ALLOW(lseek), ALLOW(newfstatat),
        ALLOW(brk), ALLOW(exit_group), ALLOW(pwrite64), ALLOW(mmap), ALLOW(munmap), ALLOW(mprotect),
        ALLOW(execve), ALLOW(arch_prctl), ALLOW(set_tid_address), ALLOW(set_robust_list),
        ALLOW(rseq), ALLOW(prlimit64), ALLOW(pread64), ALLOW(access), ALLOW(futex), ALLOW(fstat),
        ALLOW(getrandom),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    int failed = by_system_call ? (int)syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)
                                : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
    if (failed) exit(77);
}

int main(int count, char **arguments) {
    if (count > 1 && !strcmp(arguments[1], "child")) {
        FILE *file = fopen("child", "w");
        fputs("child\n", file);
        return fclose(file) ? 1 : 6;
    }
    int fd = open("before", O_RDWR | O_CREAT | O_TRUNC, 0644);
    FILE *stream = fopen("stream", "w");
    for (int i = 0; i < 100; i++) {
        if (pwrite(fd, "0123456789", 10, i * 10) != 10) return 1;
        fprintf(stream, "line %d\n", i);
    }
    filter(count > 1 && !strcmp(arguments[1], "syscall"));
    for (int i = 100; i < 5000; i++)
        if (pwrite(fd, "abcdefghij", 10, i * 10) != 10) return 2;
    if (lseek(fd, 0, SEEK_END) != 50000) return 3;
    char buffer[10];
    lseek(fd, 0, SEEK_SET);
    if (read(fd, buffer, 10) != 10 || memcmp(buffer, "0123456789", 10)) return 4;
    for (int i = 0; i < 20; i++) {
        int more = open("after", O_RDWR | O_CREAT | O_APPEND, 0644);
        if (more < 0 || write(more, "more\n", 5) != 5 || close(more)) return 5;
    }
    fprintf(stream, "end\n");
    fclose(stream);
    close(fd);
    FILE *last = fopen("last", "w");
    fputs("last\n", last);
    fclose(last);
    if (count > 1 && !strcmp(arguments[1], "exec")) execl("/proc/self/exe", "filtered", "child", NULL);
    if (count > 1 && !strcmp(arguments[1], "exec")) return 8;
    puts("filtered");
    return 5;
}
