package main

import (
	"errors"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// A live heap that is larger than the memory limit raises it.
func TestMemoryLimitIsAboveTheLiveHeap(t *testing.T) {
	const limit = 32 << 20
	defer limitMemory(debug.SetMemoryLimit(limit))
	raiseMemoryLimit()
	live := make([]byte, 3*limit)
	for range 100 {
		runtime.GC()
		if debug.SetMemoryLimit(-1) > int64(len(live)) {
			break
		}
		time.Sleep(10 * time.Millisecond) // cleanups run after the collection
	}
	if got := debug.SetMemoryLimit(-1); got < int64(len(live))*5/4 || got > int64(len(live))*5 {
		t.Errorf("the limit is %d for %d live bytes", got, len(live))
	}
	runtime.KeepAlive(live)
}

// A measuring process that dies is an I/O error with the reason of the Go runtime; one that ends has its own error.
func TestFailuresOfMeasuringProcesses(t *testing.T) {
	for _, c := range []struct {
		stderr string
		code   int
		want   string
		exit   int
	}{
		{"mcompress: warning\nmcompress: m.onnx: invalid", exitInput, "m.onnx: invalid", exitInput},
		{"runtime: out of memory: cannot allocate\nfatal error: out of memory\n\tgo.go:1", 2,
			"the measuring process ended: runtime: out of memory: cannot allocate", exitIO},
		{"", -1, "the measuring process ended: signal: killed", exitIO},
	} {
		err := childFailure(c.stderr, c.code, errors.New("signal: killed"))
		if err.Error() != c.want || exitCode(err) != c.exit {
			t.Errorf("%q: got %q, exit code %d", c.stderr, err, exitCode(err))
		}
	}
}
