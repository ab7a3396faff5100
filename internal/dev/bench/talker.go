package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// A talker is a process that answers each line with one.
type talker struct {
	cmd  *exec.Cmd
	to   io.WriteCloser
	from *bufio.Scanner
}

// talk starts the process.
func talk(cmd *exec.Cmd) (t talker, err error) {
	t.cmd = cmd
	cmd.Stderr = os.Stderr
	if t.to, err = cmd.StdinPipe(); err != nil {
		return t, err
	}
	from, err := cmd.StdoutPipe()
	if err != nil {
		return t, err
	}
	t.from = bufio.NewScanner(from)
	return t, cmd.Start()
}

// ask is the answer to a line.
func (t *talker) ask(text string) (string, error) {
	if _, err := fmt.Fprintln(t.to, text); err != nil {
		return "", err
	}
	return t.line()
}

func (t *talker) line() (string, error) {
	if !t.from.Scan() {
		return "", fmt.Errorf("the process ended: %w", io.ErrUnexpectedEOF)
	}
	return t.from.Text(), nil
}

// close ends the process, which reads until there is no more.
func (t *talker) close() {
	_ = t.to.Close()
	_ = t.cmd.Wait()
}
