//go:build !unix

package metric

import (
	"os"
	"os/exec"
)

// group returns a function that kills c: there are no groups of processes.
func group(c *exec.Cmd) func() error {
	return func() error {
		if c.Process == nil {
			return os.ErrProcessDone
		}
		return c.Process.Kill()
	}
}
