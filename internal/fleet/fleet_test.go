package fleet

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestReadList(t *testing.T) {
	for text, want := range map[string][]string{
		"":                        {},
		"a.onnx\nb c.onnx\r\n\n":  {"a.onnx", "b c.onnx"},
		"a\nb.onnx\x00c.onnx\x00": {"a\nb.onnx", "c.onnx"},
	} {
		got, err := ReadList(strings.NewReader(text))
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
	if _, err := ReadList(strings.NewReader(strings.Repeat("a", MaxList+1))); err == nil {
		t.Error("a list that is too long is no error")
	}
}

func TestExpand(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"b.onnx", "a.onnx", "sub/c.onnx", "[x].onnx", "a.txt"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Expand([]string{"[x].onnx", "[ab].onnx", "**/c.onnx", "missing.onnx"})
	want := []string{"[x].onnx", "a.onnx", "b.onnx", filepath.FromSlash("sub/c.onnx"), "missing.onnx"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	for _, pattern := range []string{"*.bin", "{a", strings.Repeat("{a,b}", 30) + ".onnx"} {
		if _, err := Expand([]string{pattern}); err == nil {
			t.Errorf("%s is no error", pattern)
		}
	}
}

func TestFromEnvironment(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want string // empty for an error
		from string
	}{
		{nil, "0/1", ""},
		{map[string]string{"JOB_COMPLETION_INDEX": "3", "JOB_COMPLETIONS": "16"}, "3/16", "JOB_COMPLETION_INDEX"},
		{map[string]string{"JOB_COMPLETION_INDEX": "3"}, "0/1", ""},
		{map[string]string{"JOB_COMPLETION_INDEX": "16", "JOB_COMPLETIONS": "16"}, "", ""},
		{map[string]string{"JOB_COMPLETION_INDEX": "x", "JOB_COMPLETIONS": "16"}, "", ""},
		{map[string]string{"SLURM_ARRAY_TASK_ID": "14", "SLURM_ARRAY_TASK_MIN": "10", "SLURM_ARRAY_TASK_STEP": "2", "SLURM_ARRAY_TASK_COUNT": "4"}, "2/4", "SLURM_ARRAY_TASK_ID"},
		{map[string]string{"SLURM_ARRAY_TASK_ID": "7", "SLURM_ARRAY_TASK_MIN": "1", "SLURM_ARRAY_TASK_STEP": "1", "SLURM_ARRAY_TASK_COUNT": "3"}, "", ""}, // --array=1,3,7
		{map[string]string{"SLURM_ARRAY_TASK_ID": "13", "SLURM_ARRAY_TASK_MIN": "10", "SLURM_ARRAY_TASK_STEP": "2", "SLURM_ARRAY_TASK_COUNT": "4"}, "", ""},
		{map[string]string{"CI_NODE_INDEX": "1", "CI_NODE_TOTAL": "5"}, "0/5", "CI_NODE_INDEX"},
		{map[string]string{"CI_NODE_TOTAL": "1"}, "0/1", ""},
		{map[string]string{"AWS_BATCH_JOB_ARRAY_INDEX": "0", "AWS_BATCH_JOB_ARRAY_SIZE": "2"}, "0/2", "AWS_BATCH_JOB_ARRAY_INDEX"},
	} {
		got, err := FromEnvironment(func(name string) string { return c.env[name] })
		if (err == nil) != (c.want != "") || err == nil && (got.String() != c.want || got.From != c.from) {
			t.Errorf("%v: %v from %q, %v, want %q from %q", c.env, got, got.From, err, c.want, c.from)
		}
	}
}

func TestParseShard(t *testing.T) {
	for text, valid := range map[string]bool{"0/1": true, "15/16": true, "16/16": false, "-1/4": false, "1": false, "a/b": false, "0/0": false, "0/1/2": false} {
		if s, err := ParseShard(text); (err == nil) != valid || valid && s.String() != text {
			t.Errorf("%s: %v, %v", text, s, err)
		}
	}
}

// Appended items change no assignment, every item has a shard, and no shard has more than the mean and the largest
// item.
func TestAssign(t *testing.T) {
	sizes := make([]int64, 500)
	var sum, largest int64
	for i := range sizes {
		sizes[i] = int64((i*7919)%1000) * int64(i%17)
		sum += max(sizes[i], 1)
		largest = max(largest, sizes[i])
	}
	for _, n := range []int{1, 2, 7, 16} {
		of := Assign(sizes, n)
		if before := Assign(sizes[:300], n); !slices.Equal(before, of[:300]) {
			t.Errorf("%d shards: appended items change the assignment", n)
		}
		loads := make([]int64, n)
		for i, s := range of {
			loads[s] += max(sizes[i], 1)
		}
		if most := slices.Max(loads); most > sum/int64(n)+largest {
			t.Errorf("%d shards: one has %d bytes of %d", n, most, sum)
		}
	}
	if of := Assign(make([]int64, 4), 2); !slices.Equal(of, []int{0, 1, 0, 1}) {
		t.Errorf("empty items: %v", of)
	}
}
