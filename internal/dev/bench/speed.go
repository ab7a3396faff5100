package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/cpu"
)

// A model is one that the shared makers make, or train.py if maker is empty.
type model struct {
	name, what string
	path       string // in the bench's folder
	maker      []string
	net        string // verb of train.py
	netSizes   []string
	external   bool
	peerRuns   int
}

var (
	mlp  = model{name: "MLP, 7.5 MB", path: "mlp.onnx", maker: []string{"mlp"}}
	bert = model{name: "BERT-base shape, 438 MB", path: "bert.onnx", maker: []string{"bert"}, peerRuns: 3}
	llm  = model{name: "1.2 B parameters, 4.8 GB", path: "llm/llm.onnx", external: true, peerRuns: 1,
		maker: []string{"llm", "--hidden", "2048", "--layers", "16", "--vocab", "32000", "--ffn", "8192",
			"--heads", "32"}}
)

// file makes the model if it is not there, brings it into the page cache, and returns
// its path.
func (b *bench) file(ctx context.Context, m model) (string, error) {
	path := filepath.Join(b.dir, m.path)
	if _, err := os.Stat(path); err != nil {
		if err := b.make(ctx, m, path); err != nil {
			_ = os.Remove(path) // an incomplete file
			return "", fmt.Errorf("make %s: %w", m.path, err)
		}
	}
	for _, f := range parts(path) {
		if err := exec.CommandContext(ctx, "cat", f).Run(); err != nil {
			return "", err
		}
	}
	return path, nil
}

// make writes m to path.
func (b *bench) make(ctx context.Context, m model, path string) error {
	if m.net != "" {
		_, err := b.helper(ctx, append([]string{m.net, path}, m.netSizes...)...)
		return err
	}
	args := append([]string{filepath.Join(b.shared, "tools", "make_models.py")}, m.maker...)
	_, err := b.stdout(ctx, b.python, append(args, "-o", path)...)
	return err
}

// parts are the files of the model at path.
func parts(path string) []string {
	if _, err := os.Stat(path + ".data"); err == nil {
		return []string{path, path + ".data"}
	}
	return []string{path}
}

func bytesOf(path string) int64 {
	n := int64(0)
	for _, p := range parts(path) {
		n += fileSize(p)
	}
	return n
}

// fileSize is the number of bytes of one file, 0 if it is not there.
func fileSize(path string) int64 {
	st, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return st.Size()
}

// The names of the subjects in the tables.
const (
	peerName  = "ONNX Runtime quantize_dynamic"
	fastName  = "mcompress --digest none --no-sync"
	plainName = "mcompress, with digest and fsync"
	allName   = "mcompress, all defaults"
	catName   = "cat of the input"
	ddName    = "dd of the output's size"
	syncName  = "dd of the output's size with fsync"
	sumName   = "SHA-256 of input and output on two cores"
)

// sumScript digests the files of its arguments on two cores by OpenSSL, which uses the CPU's SHA instructions, unlike
// some builds of sha256sum.
const sumScript = `import concurrent.futures, hashlib, sys
def digest(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()
print(*concurrent.futures.ThreadPoolExecutor(2).map(digest, sys.argv[1:]), file=sys.stderr)`

func (b *bench) speed(ctx context.Context) (string, error) {
	var t strings.Builder
	t.WriteString("## Dynamic int8, per channel\n\n")
	t.WriteString("`--report none --no-verify --workers 2`, and all defaults, which measure the error of each weight and write reports; page cache warm; median seconds, peak resident memory.\n\n")
	t.WriteString("| model | tool | s | peak MiB | output bytes | ORT time ÷ this time |\n|---|---|---:|---:|---:|---:|\n")
	for _, m := range []model{mlp, bert, llm} {
		rows, err := b.quantize(ctx, m)
		if err != nil {
			return "", err
		}
		t.WriteString(rows)
	}
	return t.String(), nil
}

// quantize measures one model with every tool that can take it.
func (b *bench) quantize(ctx context.Context, m model) (string, error) {
	in, err := b.file(ctx, m)
	if err != nil {
		return "", err
	}
	ours, theirs := filepath.Join(b.dir, "out", "ours.onnx"), filepath.Join(b.dir, "out", "theirs.onnx")
	if err := os.MkdirAll(filepath.Dir(ours), 0o755); err != nil {
		return "", err
	}
	defer os.RemoveAll(filepath.Dir(ours))
	args := []string{b.tool, "quantize", in, "-o", ours, "--report", "none", "--no-verify", "--workers", "2", "--quiet"}
	subjects := []subject{
		command(fastName, append(args, "--digest", "none", "--no-sync")...),
		command(plainName, args...),
	}
	if m.external {
		subjects = append(subjects, command(allName, b.tool, "quantize", in, "-o", ours, "--quiet"))
	}
	for i := range subjects {
		subjects[i].out = ours
	}
	peer := subject{name: peerName, runs: m.peerRuns, out: theirs,
		args: []string{"dynamic", in, theirs, "per_channel=1"}}
	if m.external {
		peer.args = append(peer.args, "external=1")
	}
	got, err := b.medians(ctx, subjects)
	if err != nil {
		return "", err
	}
	size := bytesOf(ours)
	if m.external {
		if err := b.copies(ctx, in, ours, size, got); err != nil {
			return "", err
		}
	}
	// The peer comes last: what it takes of memory pushes the input out of the cache.
	theirCost, err := b.medians(ctx, []subject{peer})
	if err != nil {
		return "", err
	}
	got[peerName] = theirCost[peerName]
	return speedRows(m, got, size, bytesOf(theirs)), nil
}

// largest quantizes a model larger than memory, once with each command: the peers cannot. The model is deleted, as it
// takes 30 GB.
func (b *bench) largest(ctx context.Context) (string, error) {
	dir := filepath.Join(b.dir, "large")
	in, out := filepath.Join(dir, "decoder.onnx"), filepath.Join(dir, "out.onnx")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	if err := b.scaled(ctx, "decoder", 48, in); err != nil {
		return "", err
	}
	var t strings.Builder
	t.WriteString("## 14 B parameters in float16, 30 GB: larger than memory\n\n")
	t.WriteString("A decoder of 48 layers with random weights, in the form of onnxruntime-genai's builder (`internal/dev/scale`). One run each, `--workers 2`.\n\n")
	t.WriteString("| options of quantize | s | peak MiB | bytes before | after |\n|---|---:|---:|---:|---:|\n")
	for _, options := range []string{
		"--method weight-int4 --target genai --no-verify --report none",
		"--method weight-int4 --target genai --no-verify",
		"--method dynamic-int8 --no-verify --report none",
	} {
		args := append([]string{b.tool, "quantize", in, "-o", out, "--workers", "2", "--quiet"},
			strings.Fields(options)...)
		c, err := b.peer(ctx, command("", args...).args...)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&t, "| `%s` | %.0f | %.0f | %d | %d |\n", options, c.Seconds, c.Peak, bytesOf(in), bytesOf(out))
		made, err := filepath.Glob(filepath.Join(dir, "out.*"))
		if err != nil {
			return "", err
		}
		for _, f := range made {
			_ = os.Remove(f)
		}
	}
	return t.String(), nil
}

// copies measures reading the input, digesting input and output, and writing as many bytes as the output has.
func (b *bench) copies(ctx context.Context, in, out string, size int64, got map[string]cost) error {
	target := filepath.Join(b.dir, "out", "dd")
	args := []string{"dd", "if=/dev/zero", "of=" + target, "bs=1M", fmt.Sprintf("count=%d", size>>20), "status=none"}
	dd, flushed := command(ddName, args...), command(syncName, append(args, "conv=fsync")...)
	dd.out, flushed.out = target, target
	files := append(parts(in), parts(out)...)
	slices.SortFunc(files, func(x, y string) int { return cmp.Compare(fileSize(y), fileSize(x)) })
	more, err := b.medians(ctx, []subject{
		command(catName, append([]string{"sh", "-c", `cat "$@" > /dev/null`, "sh"}, parts(in)...)...),
		dd, flushed,
		command(sumName, append([]string{b.python, "-c", sumScript}, files...)...),
	})
	for name, c := range more {
		got[name] = c
	}
	return err
}

func speedRows(m model, got map[string]cost, ours, theirs int64) string {
	var t strings.Builder
	for _, name := range []string{peerName, fastName, plainName, allName, catName, ddName, syncName, sumName} {
		c, ok := got[name]
		if !ok {
			continue
		}
		size, ratio := "", ""
		switch name {
		case peerName:
			size = fmt.Sprint(theirs)
		case fastName, plainName, allName:
			size = fmt.Sprint(ours)
			if p, ok := got[peerName]; ok {
				ratio = fmt.Sprintf("%.1f", p.Seconds/c.Seconds)
			}
		}
		fmt.Fprintf(&t, "| %s | %s | %.3f | %.0f | %s | %s |\n", m.name, name, c.Seconds, c.Peak, size, ratio)
	}
	if cat, ok := got[catName]; ok {
		floor := cat.Seconds + got[ddName].Seconds
		fmt.Fprintf(&t, "| %s | %s ÷ (cat + dd) | %.2f× | | | |\n", m.name, fastName, got[fastName].Seconds/floor)
		floor = max(got[sumName].Seconds, got[syncName].Seconds)
		fmt.Fprintf(&t, "| %s | %s ÷ the longer one of %s and %s | %.2f× | | | |\n", m.name, allName, sumName,
			syncName, got[allName].Seconds/floor)
	}
	return t.String()
}

func (b *bench) head(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, b.python, "-c",
		"import onnx, onnxruntime, sys; print('Python', sys.version.split()[0] + ', onnx', onnx.__version__ + ', onnxruntime', onnxruntime.__version__)").Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w; make test installs it", b.python, err)
	}
	return fmt.Sprintf(`# Benchmarks

Generated by %s. Peers and mcompress ran in turn on one machine, one process each: %d cores, %s.
Seconds differ from machine to machine; only ratios within one run are comparable.

`, "`make bench`", runtime.NumCPU(), strings.TrimSpace(string(out))), nil
}

// processor is the instruction set that tables were measured with, which decides about kernels of the engine and of its
// peers.
func processor() string {
	switch {
	case cpu.X86.HasAMXInt8 && cpu.X86.HasAVX512VNNI && cpu.X86.HasAVX512BW:
		return "AVX-512 with VNNI, and AMX"
	case cpu.X86.HasAVX512VNNI && cpu.X86.HasAVX512BW:
		return "AVX-512 with VNNI"
	case cpu.X86.HasAVX512BW:
		return "AVX-512"
	case cpu.X86.HasAVX2 && hasAVX512():
		return "one with AVX-512, which was hidden from all programs: AVX2"
	case cpu.X86.HasAVX2:
		return "AVX2"
	}
	return runtime.GOARCH
}

// hasAVX512 is what Linux reports of the processor, which neither GODEBUG nor a fault of CPUID changes.
func hasAVX512() bool {
	text, err := os.ReadFile("/proc/cpuinfo")
	return err == nil && strings.Contains(string(text), "avx512f")
}
