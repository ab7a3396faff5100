package memory

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

// The limits of control groups of both versions bound what a process can get: of its own group and of each above it, less
// what is used, of which the page cache is none.
func TestControlGroups(t *testing.T) {
	const mib = 1 << 20
	for name, c := range map[string]struct {
		groups string
		files  map[string]string
		want   int64
	}{
		"none":    {"0::/\n", nil, math.MaxInt64},
		"no list": {"", map[string]string{"memory.max": "1"}, math.MaxInt64},
		"v2": {"0::/a/b\n", map[string]string{"a/b/memory.max": "104857600\n", "a/b/memory.current": "62914560\n",
			"a/b/memory.stat": "anon 1\nactive_file 1048576\ninactive_file 2097152\n"}, 43 * mib},
		"v2 max": {"0::/a\n", map[string]string{"a/memory.max": "max\n", "a/memory.current": "5\n"}, math.MaxInt64},
		"v2 nested": {"0::/a/b/c\n", map[string]string{"a/memory.max": "209715200\n", "a/memory.current": "104857600\n",
			"a/b/memory.max": "max\n", "a/b/c/memory.max": "1073741824\n"}, 100 * mib},
		"v2 high": {"0::/a\n", map[string]string{"a/memory.max": "max\n", "a/memory.high": "52428800\n"}, 50 * mib},
		"v2 in a container": {"0::/../../host/path\n", map[string]string{"memory.max": "52428800\n",
			"memory.current": "10485760\n"}, 40 * mib},
		"v1": {"5:cpu,cpuacct:/x\n4:memory:/a\n0::/a\n", map[string]string{"memory/a/memory.limit_in_bytes": "104857600\n",
			"memory/a/memory.usage_in_bytes": "52428800\n",
			"memory/a/memory.stat":           "cache 1\ntotal_active_file 1048576\ntotal_inactive_file 0\n"}, 51 * mib},
		"v1 unlimited": {"4:memory:/a\n", map[string]string{
			"memory/a/memory.limit_in_bytes": "9223372036854771712\n"}, 9223372036854771712},
		"v1 with other controllers, nested": {"4:hugetlb,memory:/a/b\n", map[string]string{
			"memory/a/b/memory.limit_in_bytes": "104857600\n", "memory/a/memory.limit_in_bytes": "20971520\n"}, 20 * mib},
		"v1 in a container": {"4:memory:/docker/0123\n", map[string]string{
			"memory/memory.limit_in_bytes": "20971520\n", "memory/memory.usage_in_bytes": "10485760\n"}, 10 * mib},
	} {
		root := t.TempDir()
		for file, text := range c.files {
			at := filepath.Join(root, file)
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := groupsLeave(root, c.groups); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}
