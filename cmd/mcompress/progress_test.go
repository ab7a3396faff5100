package main

import (
	"bytes"
	"io"
	"sync"
	"testing"
	"time"
)

func TestNoBarWithoutTerminal(t *testing.T) {
	if p := newTool(io.Discard, &bytes.Buffer{}).newProgress("m.onnx"); p != nil {
		t.Error("there is a bar without a terminal")
	}
}

// A bar is shown after barDelay, is updated from several goroutines, and may be stopped at any time.
func TestBarStartsLate(t *testing.T) {
	early := &progress{w: io.Discard, name: "m.onnx", began: time.Now()}
	early.show(1, 2)
	if early.bar != nil {
		t.Error("there is a bar at once")
	}
	early.stop()
	late := &progress{w: io.Discard, name: "m.onnx", began: time.Now().Add(-2 * barDelay)}
	var all sync.WaitGroup
	for i := range int64(8) {
		all.Go(func() { late.show(i, 100) })
	}
	all.Wait()
	if late.bar == nil {
		t.Error("there is no bar")
	}
	late.stop()
}
