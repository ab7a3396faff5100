package interop

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// decodeEnv names the model that the test binary, started again, decodes instead of
// running tests.
const decodeEnv = "MCOMPRESS_INTEROP_DECODE"

func TestMain(m *testing.M) {
	path := os.Getenv(decodeEnv)
	if path == "" {
		os.Exit(m.Run())
	}
	out := bufio.NewWriter(os.Stdout)
	err := describe(out, path)
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// decoded is what onnx-go understands of the model, or why it decodes nothing.
func decoded(t *testing.T, path string) ([]byte, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), decodeEnv+"="+path)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		why, _, _ := strings.Cut(stderr.String(), "\n")
		return nil, fmt.Errorf("%w: %s", err, why)
	}
	return out, nil
}

func TestOwnModelsDecodeAfterARoundTrip(t *testing.T) {
	root, err := conform.Root()
	if err != nil {
		t.Fatal(err)
	}
	roundTrips(t, filepath.Join(root, "fixtures"), 15)
}

func TestSharedModelsDecodeAfterARoundTrip(t *testing.T) {
	roundTrips(t, filepath.Join(conform.Shared(t), "fixtures", "models"), 33)
}

func TestSmallModelsDecodeAfterARoundTrip(t *testing.T) {
	roundTrips(t, filepath.Join(conform.Shared(t), "fixtures", "conformance", "small"), 479)
}

// A comparison that misses a changed weight would prove nothing.
func TestDecodedShowsAChangedWeight(t *testing.T) {
	root, err := conform.Root()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "fixtures", "mlp.onnx")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1 // the file is weights for the most part
	changed := filepath.Join(t.TempDir(), "changed.onnx")
	if err := os.WriteFile(changed, data, 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := decoded(t, path)
	if err != nil {
		t.Fatal(err)
	}
	after, err := decoded(t, changed)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(before, after) {
		t.Error("a model with another weight decodes to the same")
	}
	if why := firstDifference(before, after); !strings.Contains(why, "value") {
		t.Errorf("the difference is %s, want one of a value", why)
	}
}

// roundTrips puts every model below dir through Open and Save. Of those that onnx-go
// decodes, at least atLeast, it must understand the same afterwards.
func roundTrips(t *testing.T, dir string, atLeast int) {
	found := 0
	for _, path := range conform.ModelsBelow(t, dir) {
		before, err := decoded(t, path)
		if err != nil {
			continue // an operator, type or form that onnx-go does not know
		}
		found++
		saved := filepath.Join(t.TempDir(), "saved.onnx")
		if err := save(t, path, saved); err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		after, err := decoded(t, saved)
		if err != nil {
			t.Errorf("%s: decodes before the round trip, not after it: %v", path, err)
		} else if !bytes.Equal(before, after) {
			t.Errorf("%s: %s", path, firstDifference(before, after))
		}
	}
	if found < atLeast {
		t.Errorf("onnx-go decodes %d models of %s, %d at least were expected", found, dir, atLeast)
	}
}

func save(t *testing.T, from, to string) error {
	f, err := onnx.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	eval := ir.NewEval(t.TempDir())
	defer eval.Close()
	_, err = onnx.Save(t.Context(), f.Model, to, onnx.SaveOptions{Workers: 2, Memory: 64 << 20, Eval: eval})
	return err
}

func firstDifference(before, after []byte) string {
	a, b := strings.Split(string(before), "\n"), strings.Split(string(after), "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d was %q and is %q", i+1, a[i], b[i])
		}
	}
	return fmt.Sprintf("%d lines became %d", len(a), len(b))
}
