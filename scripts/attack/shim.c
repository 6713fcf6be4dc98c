/* Counts the file operations of a process below one folder, and kills the process or fails an
   operation at a chosen one. Loaded with LD_PRELOAD; see shim.py. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MODE_COUNT, MODE_KILL, MODE_TORN, MODE_FULL, MODE_FAIL };
/* What an operation does to the disk: a full disk refuses those that take room. */
enum { TAKES_ROOM = 1, IS_WRITE = 2 };

struct state {
    atomic_long count;
};

static char root[4096];
static size_t root_length;
static long at;
static int mode;
static int trace = -1;
static struct state own, *state = &own;

/* Begin: operations below `folder` count from now on. `shared` is a file of 8 bytes that receives
   the count, `log` one that receives a line per operation, or "". */
void attack_arm(const char *folder, long number, int what, const char *shared, const char *log)
{
    int handle = (int)syscall(SYS_openat, AT_FDCWD, shared, O_RDWR, 0);

    if (handle >= 0) {
        void *map = mmap(0, sizeof(struct state), PROT_READ | PROT_WRITE, MAP_SHARED, handle, 0);
        if (map != MAP_FAILED) {
            state = map;
        }
        syscall(SYS_close, handle);
    }
    if (log[0]) {
        trace = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    }
    at = number;
    mode = what;
    snprintf(root, sizeof root, "%s", folder);
    root_length = strlen(root);
}

static int below(const char *path)
{
    return root_length && !strncmp(path, root, root_length)
        && (path[root_length] == '/' || !path[root_length]);
}

/* Write the absolute path of `path` as seen from `folder`, a handle. */
static void resolve(int folder, const char *path, char *out, size_t size)
{
    char base[4096] = "", link[64];
    ssize_t n;

    if (path[0] == '/') {
        snprintf(out, size, "%s", path);
        return;
    }
    if (folder == AT_FDCWD) {
        snprintf(link, sizeof link, "/proc/self/cwd");
    } else {
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    }
    n = readlink(link, base, sizeof base - 1);
    base[n > 0 ? n : 0] = 0;
    snprintf(out, size, "%s/%s", base, path);
}

static int handle_below(int handle)
{
    char link[64], path[4096];
    ssize_t n;

    if (!root_length) {
        return 0;
    }
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    return below(path);
}

/* Count an operation; return 0 to go on, 1 to die after half of it, or the error it fails with. */
static int step(const char *name, int flags)
{
    long number = atomic_fetch_add(&state->count, 1) + 1;

    if (trace >= 0) {
        char line[64];
        int n = snprintf(line, sizeof line, "%s\n", name);
        syscall(SYS_write, trace, line, n);
    }
    if (mode == MODE_KILL && number == at) {
        kill(0, SIGKILL);
    }
    if (mode == MODE_TORN && number == at) {
        return flags & IS_WRITE ? -1 : (kill(0, SIGKILL), 0);
    }
    if (mode == MODE_FULL && number >= at && flags & TAKES_ROOM) {
        return ENOSPC;
    }
    if (mode == MODE_FAIL && number == at) {
        return EIO;
    }
    return 0;
}

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) { \
        real = (__typeof__(&name))dlsym(RTLD_NEXT, #name); \
    }
#define FAIL_IF(error) \
    do { \
        int failed = (error); \
        if (failed > 0) { \
            errno = failed; \
            return -1; \
        } \
    } while (0)

static int opened(const char *name, int folder, const char *path, int flags)
{
    char whole[8192];

    if (!root_length || !(flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC))) {
        return 0;
    }
    resolve(folder, path, whole, sizeof whole);
    return below(whole) ? step(name, flags & O_CREAT ? TAKES_ROOM : 0) : 0;
}

#define OPEN(name) \
    int name(const char *path, int flags, ...) \
    { \
        int bits = 0; \
        va_list rest; \
        REAL(name) \
        if (flags & (O_CREAT | O_TMPFILE)) { \
            va_start(rest, flags); \
            bits = va_arg(rest, int); \
            va_end(rest); \
        } \
        FAIL_IF(opened("open", AT_FDCWD, path, flags)); \
        return real(path, flags, bits); \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name) \
    int name(int folder, const char *path, int flags, ...) \
    { \
        int bits = 0; \
        va_list rest; \
        REAL(name) \
        if (flags & (O_CREAT | O_TMPFILE)) { \
            va_start(rest, flags); \
            bits = va_arg(rest, int); \
            va_end(rest); \
        } \
        FAIL_IF(opened("open", folder, path, flags)); \
        return real(folder, path, flags, bits); \
    }
OPENAT(openat)
OPENAT(openat64)

#define WRITE(name, parameters, half, arguments) \
    ssize_t name parameters \
    { \
        REAL(name) \
        if (handle_below(handle)) { \
            int failed = step("write", TAKES_ROOM | IS_WRITE); \
            if (failed < 0) { \
                (void)!real half; \
                kill(0, SIGKILL); \
            } \
            FAIL_IF(failed); \
        } \
        return real arguments; \
    }
WRITE(write, (int handle, const void *from, size_t n), (handle, from, n / 2), (handle, from, n))
WRITE(pwrite, (int handle, const void *from, size_t n, off_t where),
    (handle, from, n / 2, where), (handle, from, n, where))
WRITE(pwrite64, (int handle, const void *from, size_t n, off64_t where),
    (handle, from, n / 2, where), (handle, from, n, where))
WRITE(writev, (int handle, const struct iovec *from, int n),
    (handle, from, n / 2), (handle, from, n))

/* Copies between files, which the system makes by itself. */
WRITE(sendfile, (int handle, int from, off_t *where, size_t n), (handle, from, where, n / 2),
    (handle, from, where, n))
WRITE(sendfile64, (int handle, int from, off64_t *where, size_t n), (handle, from, where, n / 2),
    (handle, from, where, n))
WRITE(copy_file_range,
    (int from, off64_t *begin, int handle, off64_t *where, size_t n, unsigned flags),
    (from, begin, handle, where, n / 2, flags), (from, begin, handle, where, n, flags))

#define ON_HANDLE(name, flags, parameters, arguments) \
    int name parameters \
    { \
        REAL(name) \
        if (handle_below(handle)) { \
            FAIL_IF(step(#name, flags)); \
        } \
        return real arguments; \
    }
ON_HANDLE(fsync, 0, (int handle), (handle))
ON_HANDLE(fdatasync, 0, (int handle), (handle))
ON_HANDLE(ftruncate, TAKES_ROOM, (int handle, off_t size), (handle, size))
ON_HANDLE(ftruncate64, TAKES_ROOM, (int handle, off64_t size), (handle, size))

#define ON_PATH(name, folder, path, flags, parameters, arguments) \
    int name parameters \
    { \
        char whole[8192]; \
        REAL(name) \
        if (root_length) { \
            resolve(folder, path, whole, sizeof whole); \
            if (below(whole)) { \
                FAIL_IF(step(#name, flags)); \
            } \
        } \
        return real arguments; \
    }
ON_PATH(rename, AT_FDCWD, to, 0, (const char *from, const char *to), (from, to))
ON_PATH(renameat, there, to, 0, (int here, const char *from, int there, const char *to),
    (here, from, there, to))
ON_PATH(unlink, AT_FDCWD, path, 0, (const char *path), (path))
ON_PATH(unlinkat, folder, path, 0, (int folder, const char *path, int flags),
    (folder, path, flags))
ON_PATH(rmdir, AT_FDCWD, path, 0, (const char *path), (path))
ON_PATH(mkdir, AT_FDCWD, path, TAKES_ROOM, (const char *path, mode_t bits), (path, bits))
ON_PATH(mkdirat, folder, path, TAKES_ROOM, (int folder, const char *path, mode_t bits),
    (folder, path, bits))
ON_PATH(link, AT_FDCWD, to, TAKES_ROOM, (const char *from, const char *to), (from, to))
ON_PATH(symlink, AT_FDCWD, to, TAKES_ROOM, (const char *from, const char *to), (from, to))
