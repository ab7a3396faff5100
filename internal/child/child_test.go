package child

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
)

// TestMain runs the job of a process, where Run starts the tests.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "job" {
		if err := Serve(context.Background(), os.Stdin, os.Stdout, double, func(error) int { return 4 }); err != nil {
			panic(err)
		}
		return
	}
	if len(os.Args) == 2 && os.Args[1] == "dies" {
		os.Stderr.WriteString("fatal error: out of memory\n\tgo.go:1\n")
		os.Exit(2)
	}
	os.Exit(m.Run())
}

// double is a job.
func double(_ context.Context, x int) (int, error) {
	if x < 0 {
		return 0, errors.New("a negative number")
	}
	return 2 * x, nil
}

// A result, an error with its exit code, and the end of a process without an answer arrive in the process that started it.
func TestRun(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	got := 0
	if err := Run(t.Context(), []string{self, "job"}, 21, &got); err != nil || got != 42 {
		t.Errorf("%d, %v", got, err)
	}
	var failed *Error
	if err := Run(t.Context(), []string{self, "job"}, -1, &got); !errors.As(err, &failed) || failed.Code != 4 || failed.Text != "a negative number" {
		t.Errorf("an error of a job: %v", err)
	}
	want := "the measuring process ended: fatal error: out of memory"
	if err := Run(t.Context(), []string{self, "dies"}, 1, &got); !errors.As(err, &failed) || failed.Code != 0 || err.Error() != want {
		t.Errorf("the end of a process: %v", err)
	}
	if err := Run(t.Context(), []string{self, "-test.run=^$"}, 1, &got); err == nil {
		t.Error("output that is no answer is none")
	}
}

// Input that is no job is an error of the process.
func TestServeDamagedJob(t *testing.T) {
	var out bytes.Buffer
	if err := Serve(t.Context(), strings.NewReader("{"), &out, double, func(error) int { return 1 }); err == nil || out.Len() > 0 {
		t.Errorf("%v, %q", err, &out)
	}
}
