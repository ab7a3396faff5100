//go:build unix

package metric

import (
	"os"
	"os/exec"
	"syscall"
)

// group lets c lead a group of processes when it is started. It returns a function that kills the group.
func group(c *exec.Cmd) func() error {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return func() error {
		if c.Process == nil {
			return os.ErrProcessDone
		}
		// The number of the group is that of its leader. It is not reused as long as a member is left, and without one
		// there is nothing to kill.
		if err := syscall.Kill(-c.Process.Pid, syscall.SIGKILL); err != nil {
			return os.ErrProcessDone
		}
		return nil
	}
}
