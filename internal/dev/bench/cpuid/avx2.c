// Library for LD_PRELOAD that hides AVX-512, AMX and AVX-VNNI from the CPUID instructions of ONNX Runtime and DeepSparse,
// so that a processor which has them runs their AVX2 kernels. From the moment one of the two is loaded, CPUID faults in each
// thread (arch_prctl(2), ARCH_CPUID), and the handler of the fault answers for it. The program that loads them is not changed.
#define _GNU_SOURCE
#include <cpuid.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { arch_set_cpuid = 0x1012 };

static struct sigaction former; // the handler of SIGSEGV of the program
static atomic_int masked;       // threads in which CPUID faults

static void die(const char *what) {
  fprintf(stderr, "avx2.c: %s: %s\n", what, strerror(errno));
  _exit(1);
}

static int next_sigaction(int sig, const struct sigaction *a, struct sigaction *old) {
  static int (*next)(int, const struct sigaction *, struct sigaction *);
  if (!next) next = (int (*)(int, const struct sigaction *, struct sigaction *))dlsym(RTLD_NEXT, "sigaction");
  return next(sig, a, old);
}

// Bits of Intel's Software Developer's Manual, volume 2A, CPUID, leaf 7.
static void hide(unsigned leaf, unsigned sub, unsigned r[4]) {
  if (leaf != 7) return;
  if (sub == 0) {
    r[1] &= ~(1u << 16 | 1u << 17 | 1u << 21 | 1u << 26 | 1u << 27 | 1u << 28 | 1u << 30 | 1u << 31);
    r[2] &= ~(1u << 1 | 1u << 6 | 1u << 11 | 1u << 12 | 1u << 14);
    r[3] &= ~(1u << 2 | 1u << 3 | 1u << 8 | 1u << 22 | 1u << 23 | 1u << 24 | 1u << 25);
  } else if (sub == 1) {
    r[0] &= ~(1u << 4 | 1u << 5 | 1u << 21 | 1u << 23);
    r[3] &= ~(1u << 4 | 1u << 5 | 1u << 10 | 1u << 19);
  }
}

static void answer(int sig, siginfo_t *info, void *context) {
  int kept = errno;
  greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
  const unsigned char *at = (const unsigned char *)g[REG_RIP];
  if (info->si_code == SI_TKILL && info->si_pid == getpid()) { // from mask_all
    if (syscall(SYS_arch_prctl, arch_set_cpuid, 0)) die("CPUID cannot fault here");
    atomic_fetch_add(&masked, 1);
  } else if (info->si_code == SI_KERNEL && at[0] == 0x0f && at[1] == 0xa2) {
    unsigned leaf = g[REG_RAX], sub = g[REG_RCX], r[4];
    syscall(SYS_arch_prctl, arch_set_cpuid, 1);
    __cpuid_count(leaf, sub, r[0], r[1], r[2], r[3]);
    syscall(SYS_arch_prctl, arch_set_cpuid, 0);
    hide(leaf, sub, r);
    g[REG_RAX] = r[0], g[REG_RBX] = r[1], g[REG_RCX] = r[2], g[REG_RDX] = r[3];
    g[REG_RIP] += 2;
  } else if (former.sa_flags & SA_SIGINFO) { // another fault: to the former handler, or to the end
    former.sa_sigaction(sig, info, context);
  } else {
    next_sigaction(SIGSEGV, &former, 0);
  }
  errno = kept;
}

// Lets CPUID fault in the threads that there are; threads that they start inherit it. SIGSEGV is the signal that none blocks.
static void mask_all(void) {
  struct sigaction a = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
  if (next_sigaction(SIGSEGV, &a, &former)) die("sigaction");
  DIR *threads = opendir("/proc/self/task");
  if (!threads) die("threads");
  int sent = 0;
  for (struct dirent *t; (t = readdir(threads));) {
    if (t->d_name[0] == '.') continue;
    if (syscall(SYS_tgkill, getpid(), atoi(t->d_name), SIGSEGV)) die("tgkill");
    sent++;
  }
  closedir(threads);
  while (atomic_load(&masked) < sent) usleep(100);
}

void *dlopen(const char *path, int flags) {
  static void *(*next)(const char *, int);
  if (!next) next = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
  if (path && !atomic_load(&masked) && (strstr(path, "onnxruntime") || strstr(path, "deepsparse"))) mask_all();
  return next(path, flags);
}

// DeepSparse installs a handler of SIGSEGV.
int sigaction(int sig, const struct sigaction *a, struct sigaction *old) {
  if (sig != SIGSEGV || !atomic_load(&masked)) return next_sigaction(sig, a, old);
  if (old) *old = former;
  if (a) former = *a;
  return 0;
}

sighandler_t signal(int sig, sighandler_t handler) {
  struct sigaction a = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;
  return sigaction(sig, &a, &old) ? SIG_ERR : old.sa_handler;
}
