// Command guest is the first process of the emulated computer. It runs the test binaries of its root folder with the
// arguments of /tests, a line for each of them, reports on the console whether they passed, and switches the computer
// off.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/cpu"
	"golang.org/x/sys/unix"
)

func main() {
	if err := run(); err != nil {
		fmt.Println("guest:", err)
	} else {
		fmt.Println("guest: all tests passed with AVX-512 and VNNI")
	}
	// The kernel's own messages about switching off would interrupt what the console has not yet written.
	if err := unix.IoctlSetInt(1, unix.TCSBRK, 1); err != nil {
		fmt.Println("guest: cannot wait for the console:", err)
	}
	if err := syscall.Reboot(syscall.LINUX_REBOOT_CMD_POWER_OFF); err != nil {
		panic(err)
	}
}

func run() error {
	if !cpu.X86.HasAVX512F || !cpu.X86.HasAVX512BW || !cpu.X86.HasAVX512VL || !cpu.X86.HasAVX512VNNI {
		return fmt.Errorf("the CPU or its system has no AVX-512 with VNNI: %+v", cpu.X86)
	}
	for path, kind := range map[string]string{"/proc": "proc", "/dev": "devtmpfs", "/tmp": "tmpfs"} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
		if err := syscall.Mount(kind, path, kind, 0, ""); err != nil && err != syscall.EBUSY {
			return fmt.Errorf("mount %s: %w", path, err)
		}
	}
	tests, err := os.ReadFile("/tests")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(tests)) {
		args := strings.Fields(line)
		test := exec.Command("/"+args[0], args[1:]...)
		test.Stdout, test.Stderr = os.Stdout, os.Stdout
		// The garbage collector of Go 1.26, which scans with GFNI and AVX-512, finds invalid pointers in Bochs 2.7, in
		// programs without kernels too. The memory suffices without it.
		test.Env = append(os.Environ(), "GOGC=off")
		start := time.Now()
		if err := test.Run(); err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		fmt.Printf("guest: %s passed in %.0f s of the emulated clock\n", args[0], time.Since(start).Seconds())
	}
	return nil
}
