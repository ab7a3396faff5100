package registry

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// Read and Open return content that is verified to the end: other bytes, fewer and more are errors, however the reader
// is used.
func TestStoredContentIsVerified(t *testing.T) {
	content := []byte("content of a file")
	sum := sha256.Sum256(content)
	f := File{Name: "m.onnx", Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:])}
	for name, served := range map[string][]byte{
		"same":    content,
		"changed": bytes.Replace(content, []byte("f"), []byte("g"), 1),
		"shorter": content[:5],
		"longer":  append(bytes.Clone(content), '.'),
		"empty":   nil,
	} {
		s := &Stored{open: func(context.Context, File, int64) (io.ReadCloser, int64, error) {
			return io.NopCloser(bytes.NewReader(served)), 0, nil
		}}
		var wrong *ContentError
		got, err := s.Read(t.Context(), f, 100)
		if right := name == "same"; right && (err != nil || !bytes.Equal(got, content)) || !right && !errors.As(err, &wrong) {
			t.Errorf("%s: read %q, %v", name, got, err)
		}
	}
	s := &Stored{open: func(context.Context, File, int64) (io.ReadCloser, int64, error) {
		t.Error("a file above the limit is opened")
		return nil, 0, io.EOF
	}}
	var large *ContentError
	if _, err := s.Read(t.Context(), f, f.Size-1); !errors.As(err, &large) {
		t.Errorf("a file above the limit: %v", err)
	}
}

// A watchdog ends what does not reset it in time, rests while it is paused, and names the cause.
func TestWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, d := newWatchdog(t.Context(), time.Minute)
		for range 5 {
			time.Sleep(50 * time.Second)
			d.reset()
		}
		if err := ctx.Err(); err != nil {
			t.Fatalf("ended although it was reset in time: %v", err)
		}
		d.pause()
		time.Sleep(time.Hour)
		if err := ctx.Err(); err != nil {
			t.Fatalf("ended while it was paused: %v", err)
		}
		if err := d.cause(io.ErrUnexpectedEOF); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cause %v", err)
		}
		d.reset()
		time.Sleep(time.Minute + time.Second)
		if !errors.Is(context.Cause(ctx), errStalled) || !errors.Is(d.cause(io.ErrUnexpectedEOF), errStalled) {
			t.Errorf("not ended: %v, %v", context.Cause(ctx), d.cause(io.ErrUnexpectedEOF))
		}
		d.stop()

		ctx, d = newWatchdog(t.Context(), time.Minute)
		d.stop()
		if err := d.cause(io.EOF); ctx.Err() == nil || !errors.Is(err, io.EOF) {
			t.Errorf("after stop: %v, %v", ctx.Err(), err)
		}
		body := &watchedBody{io.NopCloser(bytes.NewReader(make([]byte, 3))), nil}
		ctx, body.watch = newWatchdog(t.Context(), time.Minute)
		for range 3 {
			time.Sleep(50 * time.Second)
			if _, err := body.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
		if err := ctx.Err(); err != nil {
			t.Errorf("reading does not reset the watchdog: %v", err)
		}
		body.watch.stop()
	})
}
