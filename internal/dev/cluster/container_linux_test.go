package cluster

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// initName is the name under which this program runs as the first process of a container.
const initName = "container-init"

// failure is the file descriptor to which it writes why it cannot execute the command; it is closed by the execution.
const failure = 3

func TestMain(m *testing.M) {
	if os.Args[0] == initName {
		fmt.Fprint(os.NewFile(failure, ""), enter(os.Args[1]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// A process is a command with its root folder and limits: a container.
type process struct {
	Image    string // folder with the files of the image, which is not changed
	Base     string // empty folder, in which the root folder is mounted
	Mounts   []mount
	ReadOnly bool // the root folder, without its mounts
	User     int
	Group    int
	Groups   []int
	Memory   int64 // bytes, of a control group; 0 for no limit
	CPUs     []int // cores that it runs on; all if nil
	Dir      string
	Args     []string
	Env      []string

	ControlGroup string // folder of the control group, made by start
}

// A mount makes a file, a folder or a new file system available at a path.
type mount struct {
	Source, Target string
	ReadOnly       bool
	Kind, Options  string // of a new file system
}

// A usage is what an ended process has used.
type usage struct {
	Code        int // 128 + the signal, if one has ended it
	OutOfMemory bool
	Seconds     float64 // of the clock
	CPU         float64 // seconds, user and system
	Memory      int64   // largest resident memory in bytes, until at most memoryInterval before the end
}

// start runs a container and returns when its command is executed, so that signals reach the command. The channel then
// has its usage.
func (p process) start(stdout, stderr io.Writer) (*os.Process, <-chan usage, error) {
	var err error
	if p.Memory > 0 {
		if p.ControlGroup, err = limitedGroup(p.Memory); err != nil {
			return nil, nil, err
		}
	}
	text, err := json.Marshal(p)
	if err != nil {
		return nil, nil, err
	}
	c := exec.Command("/proc/self/exe", string(text))
	c.Args[0] = initName
	c.Stdout, c.Stderr, c.Env = stdout, stderr, []string{}
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	c.ExtraFiles = []*os.File{w}
	began := time.Now()
	err = c.Start()
	_ = w.Close()
	if err != nil {
		return nil, nil, err
	}
	if text, err := io.ReadAll(r); err != nil || len(text) > 0 {
		return nil, nil, errors.Join(err, errors.New(string(text)), c.Wait())
	}
	ended := make(chan usage, 1)
	go func() {
		peak := peakMemory(c)
		u := measured(c.ProcessState, time.Since(began))
		u.Memory = peak
		if p.ControlGroup != "" {
			u.OutOfMemory = outOfMemory(p.ControlGroup)
			_ = os.Remove(p.ControlGroup)
		}
		_ = os.Remove(p.Base)
		ended <- u
	}()
	return c.Process, ended, nil
}

// memoryInterval is the time between two measurements of memory.
const memoryInterval = 20 * time.Millisecond

// peakMemory waits for a process and returns its largest resident memory. That of its rusage would include the memory
// of this process, which it shares before its execution.
func peakMemory(c *exec.Cmd) (peak int64) {
	ended := make(chan struct{})
	go func() {
		_ = c.Wait()
		close(ended)
	}()
	for status := fmt.Sprintf("/proc/%d/status", c.Process.Pid); ; {
		text, _ := os.ReadFile(status)
		if _, after, ok := strings.Cut(string(text), "VmHWM:"); ok {
			var kib int64
			if _, err := fmt.Sscan(after, &kib); err == nil {
				peak = max(peak, kib<<10)
			}
		}
		select {
		case <-ended:
			return peak
		case <-time.After(memoryInterval):
		}
	}
}

// measured is the usage of an ended process.
func measured(s *os.ProcessState, d time.Duration) usage {
	u := usage{Code: s.ExitCode(), Seconds: d.Seconds(), CPU: (s.UserTime() + s.SystemTime()).Seconds()}
	if status := s.Sys().(syscall.WaitStatus); status.Signaled() {
		u.Code = 128 + int(status.Signal())
	}
	return u
}

// The names of a limit of memory and of its events in version 1 and 2 of control groups, whose files are below the
// folders.
var memoryGroups = []struct{ folder, limit, events string }{
	{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.oom_control"},
	{"/sys/fs/cgroup", "memory.max", "memory.events"},
}

// limitedGroup makes a control group with a limit of memory.
func limitedGroup(bytes int64) (string, error) {
	for _, g := range memoryGroups {
		folder, err := os.MkdirTemp(g.folder, "mcompress-")
		if err != nil {
			continue
		}
		return folder, os.WriteFile(filepath.Join(folder, g.limit), []byte(strconv.FormatInt(bytes, 10)), 0o600)
	}
	return "", errors.New("no control group for a limit of memory")
}

// outOfMemory reports whether the kernel has ended a process of the control group.
func outOfMemory(folder string) bool {
	for _, g := range memoryGroups {
		text, err := os.ReadFile(filepath.Join(folder, g.events))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if n, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok {
				return n != "0"
			}
		}
	}
	return false
}

// enter makes the root folder of a container and executes its command, in the first process of new namespaces.
func enter(text string) error {
	runtime.LockOSThread()
	syscall.CloseOnExec(failure)
	var p process
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return err
	}
	if p.ControlGroup != "" {
		if err := os.WriteFile(filepath.Join(p.ControlGroup, "cgroup.procs"), []byte("0"), 0o600); err != nil {
			return err
		}
	}
	if p.CPUs != nil {
		var set unix.CPUSet
		for _, i := range p.CPUs {
			set.Set(i)
		}
		if err := unix.SchedSetaffinity(0, &set); err != nil { // of this thread, which executes the command
			return err
		}
	}
	if err := p.makeRoot(); err != nil {
		return err
	}
	if err := os.Chdir(p.Dir); err != nil {
		return err
	}
	if err := errors.Join(syscall.Setgroups(p.Groups), syscall.Setgid(p.Group), syscall.Setuid(p.User)); err != nil {
		return err
	}
	// Setuid clears the signal of the parent's death.
	err := errors.Join(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
		unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0))
	if err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", p.Args[0], syscall.Exec(p.Args[0], p.Args, p.Env))
}

// makeRoot makes the root folder, the image below a file system in memory with the mounts of the container, and enters
// it.
func (p *process) makeRoot() error {
	root := filepath.Join(p.Base, "root")
	err := cmp.Or(
		syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""),
		syscall.Mount("tmpfs", p.Base, "tmpfs", 0, "mode=755"),
		os.Mkdir(filepath.Join(p.Base, "upper"), 0o755),
		os.Mkdir(filepath.Join(p.Base, "work"), 0o755),
		os.Mkdir(root, 0o755),
		syscall.Mount("overlay", root, "overlay", 0,
			fmt.Sprintf("lowerdir=%s,upperdir=%[2]s/upper,workdir=%[2]s/work", p.Image, p.Base)),
	)
	if err != nil {
		return err
	}
	for _, m := range slices.Concat(systemMounts, p.Mounts) {
		if err := m.in(root); err != nil {
			return fmt.Errorf("mount %s: %w", m.Target, err)
		}
	}
	if p.ReadOnly {
		if err := syscall.Mount("", root, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, ""); err != nil {
			return err
		}
	}
	return syscall.Chroot(root)
}

// systemMounts are those of every container.
var systemMounts = []mount{
	{Kind: "proc", Target: "/proc"},
	{Source: "/sys", Target: "/sys", ReadOnly: true},
	{Source: "/dev/null", Target: "/dev/null"},
	{Source: "/dev/zero", Target: "/dev/zero"},
	{Source: "/dev/random", Target: "/dev/random"},
	{Source: "/dev/urandom", Target: "/dev/urandom"},
}

// in mounts m below a root folder, in which it makes the target.
func (m mount) in(root string) error {
	target := filepath.Join(root, m.Target)
	if st, err := os.Stat(m.Source); m.Kind == "" && (err != nil || !st.IsDir()) {
		if err := cmp.Or(err, os.MkdirAll(filepath.Dir(target), 0o755), os.WriteFile(target, nil, 0o600)); err != nil {
			return err
		}
	} else if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	if m.Kind != "" {
		return syscall.Mount(m.Kind, target, m.Kind, 0, m.Options)
	}
	if err := syscall.Mount(m.Source, target, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil || !m.ReadOnly {
		return err
	}
	return syscall.Mount("", target, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, "")
}
