package metric

import "os/exec"

// runGroup runs c, which is not started, in a group of processes, and ends all of them that are left when c has ended,
// or was killed because its context ended. Else programs that c started, such as a data loader, would go on for ever. On
// Windows only c itself ends.
func runGroup(c *exec.Cmd) error {
	end := group(c)
	c.Cancel = end
	err := c.Run()
	_ = end() // none is left, usually
	return err
}
