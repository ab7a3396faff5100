package job_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/quantize"
)

// A source that another program writes during the run has no result: its report would be evidence about other bytes.
func TestSourceThatIsWrittenDuringTheRun(t *testing.T) {
	in := take(t, "mlp.onnx")
	content, err := os.ReadFile(in)
	if err != nil {
		t.Fatal(err)
	}
	before := time.Now().Add(-time.Minute) // file systems round times
	if err := os.Chtimes(in, before, before); err != nil {
		t.Fatal(err)
	}
	o := options(in, step(t, quantize.Methods()[0]))
	o.Output = filepath.Join(t.TempDir(), "q.onnx")
	written := false
	o.Progress = func(done, total int64) {
		if !written {
			written = true
			// The same bytes: what the run reads is right, but nobody knows that it is.
			f, err := os.OpenFile(in, os.O_WRONLY, 0)
			if err == nil {
				_, err = f.Write(content)
			}
			if err := errors.Join(err, f.Close()); err != nil {
				t.Error(err)
			}
		}
	}
	var changed *onnx.ChangedError
	if _, err := job.Run(context.Background(), o); !errors.As(err, &changed) || !written {
		t.Errorf("got %v", err)
	}
	if left := files(t, o.Output); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
	o.Progress = nil
	run(t, o)
}
