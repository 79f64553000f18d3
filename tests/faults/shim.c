/* Preloaded into a process that is tested: at its n-th call that changes a file, something goes wrong, or another
 * program writes to the file that is worked on. Calls on pipes, terminals and devices are not counted. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { COUNT, KILL, TERM, FAIL_EIO, FAIL_ENOSPC, SHORT, AGENT_APPENDS, AGENT_HOLDS, AGENT_REPLACES };

/* Shared with the process that watches. */
struct shared { int calls; int records; int working; };

static struct shared *state;
static int armed_pid, mode, at;
static char target[4096], record[1024];

struct shared *fault_begin(void) {
    if (!state) state = mmap(0, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    memset(state, 0, sizeof *state);
    return state;
}

/* `when`: the number of the call, from 1; 0: at every call. `line`: what the agent writes, with %d for its number. */
void fault_arm(int what, int when, const char *path, const char *line) {
    mode = what;
    at = when;
    snprintf(target, sizeof target, "%s", path);
    snprintf(record, sizeof record, "%s", line);
    armed_pid = getpid();
}

static void put(int fd, const char *data, size_t size) {
    while (size) {
        ssize_t done = syscall(SYS_write, fd, data, size);
        if (done <= 0) break;
        data += done, size -= done;
    }
}

static void replace(const char *line, size_t size) {
    char other[4200], data[65536];
    snprintf(other, sizeof other, "%s.agent", target);
    int from = syscall(SYS_openat, AT_FDCWD, target, O_RDONLY);
    int to = syscall(SYS_openat, AT_FDCWD, other, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ssize_t got;
    while ((got = syscall(SYS_read, from, data, sizeof data)) > 0) put(to, data, got);
    put(to, line, size);
    syscall(SYS_close, from);
    syscall(SYS_close, to);
    syscall(SYS_renameat2, AT_FDCWD, other, AT_FDCWD, target, 0);
}

static void agent(void) {
    char line[1100];
    int size = snprintf(line, sizeof line, record, __sync_add_and_fetch(&state->records, 1));
    __sync_add_and_fetch(&state->working, 1);
    pid_t child = fork();
    if (child < 0) abort();
    if (!child) {
        armed_pid = 0;
        syscall(SYS_close_range, 3, ~0U, 0);
        if (mode == AGENT_REPLACES) replace(line, size);
        else {
            /* A lease on the file lets this wait. */
            int fd = syscall(SYS_openat, AT_FDCWD, target, O_WRONLY | O_APPEND);
            if (mode == AGENT_HOLDS) usleep(40000);
            if (fd >= 0) put(fd, line, size);
        }
        __sync_sub_and_fetch(&state->working, 1);
        _exit(0);
    }
    /* An agent of its own: it goes on while the process under test does. */
    int wait_ms = mode == AGENT_HOLDS ? 2 : 20;
    while (wait_ms-- && waitpid(child, 0, WNOHANG) == 0) usleep(1000);
}

/* What is to become of this call: 0 go on, -1 it has failed, 1 it is to write less. */
static int step(void) {
    if (!armed_pid || armed_pid != getpid()) return 0;
    int now = ++state->calls;
    if (mode == COUNT || (at && now != at)) return 0;
    switch (mode) {
    case KILL: syscall(SYS_kill, getpid(), SIGKILL); return 0;
    case TERM: syscall(SYS_kill, getpid(), SIGTERM); return 0;
    case FAIL_EIO: errno = EIO; return -1;
    case FAIL_ENOSPC: errno = ENOSPC; return -1;
    case SHORT: return 1;
    }
    int kept = armed_pid;
    armed_pid = 0;
    agent();
    armed_pid = kept;
    return 0;
}

static int is_file(int fd) {
    struct stat status;
    return fstat(fd, &status) == 0 && (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode));
}

#define REAL(type, name, ...) static type (*real)(__VA_ARGS__); if (!real) real = dlsym(RTLD_NEXT, name)
#define CHANGES(flags) (((flags) & O_ACCMODE) != O_RDONLY || (flags) & (O_CREAT | O_TRUNC))

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        REAL(int, #name, const char *, int, ...); \
        va_list rest; va_start(rest, flags); mode_t bits = va_arg(rest, mode_t); va_end(rest); \
        if (CHANGES(flags) && strncmp(path, "/dev/", 5) && step() < 0) return -1; \
        return real(path, flags, bits); \
    }
OPEN(open) OPEN(open64)

#define OPENAT(name) \
    int name(int folder, const char *path, int flags, ...) { \
        REAL(int, #name, int, const char *, int, ...); \
        va_list rest; va_start(rest, flags); mode_t bits = va_arg(rest, mode_t); va_end(rest); \
        if (CHANGES(flags) && strncmp(path, "/dev/", 5) && step() < 0) return -1; \
        return real(folder, path, flags, bits); \
    }
OPENAT(openat) OPENAT(openat64)

ssize_t write(int fd, const void *data, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    int what = is_file(fd) ? step() : 0;
    return what < 0 ? -1 : real(fd, data, what && size > 1 ? size / 2 : size);
}

#define PWRITE(name, offset_type) \
    ssize_t name(int fd, const void *data, size_t size, offset_type offset) { \
        REAL(ssize_t, #name, int, const void *, size_t, offset_type); \
        int what = is_file(fd) ? step() : 0; \
        return what < 0 ? -1 : real(fd, data, what && size > 1 ? size / 2 : size, offset); \
    }
PWRITE(pwrite, off_t) PWRITE(pwrite64, off64_t)

#define PLAIN(type, name, parameters, arguments, types) \
    type name parameters { REAL(type, #name, types); return step() < 0 ? -1 : real arguments; }
#define TYPES(...) __VA_ARGS__
PLAIN(int, rename, (const char *a, const char *b), (a, b), TYPES(const char *, const char *))
PLAIN(int, renameat, (int x, const char *a, int y, const char *b), (x, a, y, b), TYPES(int, const char *, int, const char *))
PLAIN(int, renameat2, (int x, const char *a, int y, const char *b, unsigned f), (x, a, y, b, f), TYPES(int, const char *, int, const char *, unsigned))
PLAIN(int, unlink, (const char *a), (a), TYPES(const char *))
PLAIN(int, unlinkat, (int x, const char *a, int f), (x, a, f), TYPES(int, const char *, int))
PLAIN(int, rmdir, (const char *a), (a), TYPES(const char *))
PLAIN(int, link, (const char *a, const char *b), (a, b), TYPES(const char *, const char *))
PLAIN(int, linkat, (int x, const char *a, int y, const char *b, int f), (x, a, y, b, f), TYPES(int, const char *, int, const char *, int))
PLAIN(int, mkdir, (const char *a, mode_t m), (a, m), TYPES(const char *, mode_t))
PLAIN(int, mkdirat, (int x, const char *a, mode_t m), (x, a, m), TYPES(int, const char *, mode_t))
PLAIN(int, ftruncate, (int x, off_t s), (x, s), TYPES(int, off_t))
PLAIN(int, ftruncate64, (int x, off64_t s), (x, s), TYPES(int, off64_t))
PLAIN(int, truncate, (const char *a, off_t s), (a, s), TYPES(const char *, off_t))
PLAIN(int, fsync, (int x), (x), TYPES(int))
PLAIN(int, fdatasync, (int x), (x), TYPES(int))
PLAIN(int, fchmod, (int x, mode_t m), (x, m), TYPES(int, mode_t))
PLAIN(int, fchown, (int x, uid_t u, gid_t g), (x, u, g), TYPES(int, uid_t, gid_t))
PLAIN(ssize_t, copy_file_range, (int x, off64_t *a, int y, off64_t *b, size_t n, unsigned f), (x, a, y, b, n, f), TYPES(int, off64_t *, int, off64_t *, size_t, unsigned))
PLAIN(ssize_t, sendfile, (int x, int y, off_t *a, size_t n), (x, y, a, n), TYPES(int, int, off_t *, size_t))
