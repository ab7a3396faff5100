package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

//go:embed pack.py
var packScript string

// packTypes are the float types of the table, with the method that writes them; the models are float32.
var packTypes = []struct{ name, method string }{{"float32", ""}, {"float16", "float16"}, {"bfloat16", "bfloat16"}}

// packPeers are the compressors that are compared with pack, in the order of the columns.
var packPeers = []struct {
	name    string
	command []string // that reads standard input
}{
	{"zstd -3", []string{"zstd", "-3", "-c", "-q"}},
	{"zstd -19 --long", []string{"zstd", "-19", "--long", "-c", "-q"}},
	{"xz", []string{"xz", "-c"}},
	{zipnnFile, nil}, // by pack.py
	{zipnnFloats, nil},
}

const zipnnFile, zipnnFloats = "ZipNN", "ZipNN, floats"

// pack compares packed sizes of real models and speeds with those of general compressors and of ZipNN.
func (b *bench) pack(ctx context.Context) (string, error) {
	dir := filepath.Join(b.dir, "pack")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	known, err := openResults(filepath.Join(dir, "results"))
	if err != nil {
		return "", err
	}
	models, err := filepath.Glob(filepath.Join(b.shared, "fixtures", "models", "*", "*", "model.onnx"))
	if err != nil {
		return "", err
	}
	slices.Sort(models)
	var t strings.Builder
	t.WriteString("## Packing: sizes of float models\n\n")
	t.WriteString("Bytes relative to the model. float16 and bfloat16 are `quantize --method float16` and `bfloat16`. The last column is a bound,\n")
	t.WriteString("not a file: ZipNN for all float tensors in one piece, aligned and without names and places, and `zstd -19` for the rest. **Bold**: a peer is smaller.\n\n")
	t.WriteString("| model | type | bytes | mcompress pack |")
	for _, p := range packPeers {
		fmt.Fprintf(&t, " %s |", p.name)
	}
	t.WriteString("\n|---|---|---:|---:|" + strings.Repeat("---:|", len(packPeers)) + "\n")
	all, err := b.packInputs(ctx, dir, models)
	if err != nil {
		return "", err
	}
	if err := b.zipnn(ctx, known, all); err != nil {
		return "", fmt.Errorf("ZipNN: %w", err)
	}
	var until time.Time
	if b.limit > 0 {
		until = time.Now().Add(b.limit)
	}
	for _, p := range all {
		row, err := b.packRow(ctx, known, dir, p, until)
		if err != nil {
			return "", fmt.Errorf("%s: %w", p, err)
		}
		t.WriteString(row)
	}
	integers, err := b.packIntegers(ctx, dir, models)
	return t.String() + integers, err
}

// A packed is a float model in a type.
type packed struct {
	name, dtype, path string
}

// String is what its results are called.
func (p packed) String() string { return p.name + "." + p.dtype }

// packInputs converts the models to each type. Those that a method does not change are left out.
func (b *bench) packInputs(ctx context.Context, dir string, models []string) ([]packed, error) {
	var all []packed
	for _, m := range models {
		for _, f := range packTypes {
			p := packed{filepath.Base(filepath.Dir(m)), f.name, m}
			if f.method != "" {
				p.path = filepath.Join(dir, p.String()+".onnx")
				if changed, err := b.converted(ctx, m, p.path, f.method); err != nil {
					return nil, err
				} else if !changed {
					continue
				}
			}
			all = append(all, p)
		}
	}
	slices.SortStableFunc(all, func(a, b packed) int { return int(bytesOf(a.path) - bytesOf(b.path)) })
	return all, nil
}

// zipnn adds the bytes of float tensors to known, and what ZipNN makes of them.
func (b *bench) zipnn(ctx context.Context, known *results, all []packed) error {
	args := []string{"-c", packScript, "zipnn"}
	var missing []packed
	for _, p := range all {
		if _, ok := known.known(p.String() + "." + zipnnFloats); !ok {
			missing, args = append(missing, p), append(args, p.path, p.dtype)
		}
	}
	if missing == nil {
		return nil
	}
	text, err := b.stdout(ctx, b.python, args...)
	if err != nil {
		return err
	}
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		name, got := missing[i].String()+".", [3]float64{}
		if _, err := fmt.Sscan(line, &got[0], &got[1], &got[2]); err != nil {
			return err
		}
		if err := errors.Join(known.add(name+"floats", got[0]), known.add(name+zipnnFile, got[1]),
			known.add(name+zipnnFloats, got[2])); err != nil {
			return err
		}
	}
	return nil
}

// packRow is the row of a model, empty if most of it is no floats. Results of peers are kept in known; after the limit
// of time, others are left out.
func (b *bench) packRow(ctx context.Context, known *results, dir string, p packed, until time.Time) (string, error) {
	out := filepath.Join(dir, "out.mcz")
	if _, err := b.stdout(ctx, b.tool, "pack", "--no-sync", "-o", out, p.path); err != nil {
		return "", err
	}
	size, ours := float64(bytesOf(p.path)), float64(bytesOf(out))
	if floats, _ := known.known(p.String() + ".floats"); floats < size/2 {
		return "", nil
	}
	row := fmt.Sprintf("| %s | %s | %.0f | %.3f |", p.name, p.dtype, size, ours/size)
	for _, c := range packPeers {
		name := p.String() + "." + c.name
		theirs, ok := known.known(name)
		if !ok && (until.IsZero() || time.Now().Before(until)) {
			var err error
			if theirs, err = known.once(name, func() (float64,
				error) {
				return compressedBy(ctx, c.command, p.path)
			}); err != nil {
				return "", err
			}
			ok = true
		}
		mark := ""
		if theirs < ours {
			mark = "**"
		}
		switch {
		case !ok:
			row += " |"
		case math.IsNaN(theirs):
			row += " aborts |"
		default:
			row += fmt.Sprintf(" %s%.3f%s |", mark, theirs/size, mark)
		}
	}
	return row + "\n", nil
}

// converted writes a model after a method of quantize. It reports false if the method has nothing to convert, or
// quantize rejects the model.
func (b *bench) converted(ctx context.Context, m, out, method string) (bool, error) {
	if _, err := os.Stat(out); err == nil {
		return true, nil
	}
	_, err := b.stdout(ctx, b.tool, "quantize", "--quiet", "--method", method, "--no-verify", "--report", "none",
		"--no-sync", "-o", out, m)
	if _, missing := os.Stat(out); missing != nil {
		return false, nil
	}
	return true, err
}

// compressedBy is the number of bytes that a command writes for the file.
func compressedBy(ctx context.Context, command []string, in string) (float64, error) {
	f, err := os.Open(in)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var n counter
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout = f, &n
	return float64(n), cmd.Run()
}

// A counter counts the bytes that are written to it.
type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

// packIntegers compares packed quantized tensors with the entropy of their values.
func (b *bench) packIntegers(ctx context.Context, dir string, models []string) (string, error) {
	var t strings.Builder
	t.WriteString("\n### Quantized models\n\nBytes of the packed integer tensors of 64 KiB or more relative to the order-0 entropy of their values, headers and tables included.\n\n")
	t.WriteString("| model | method | packed bytes | above the entropy |\n|---|---|---:|---:|\n")
	args := []string{"-c", packScript, "entropy"}
	var rows []string
	for _, m := range models {
		for _, method := range []string{"dynamic-int8", "weight-int4"} {
			name := filepath.Base(filepath.Dir(m)) + "." + method
			in, out := filepath.Join(dir, name+".onnx"), filepath.Join(dir, name+".mcz")
			if changed, err := b.converted(ctx, m, in, method); err != nil {
				return "", err
			} else if !changed {
				continue
			}
			if _, err := b.stdout(ctx, b.tool, "pack", "--no-sync", "-o", out, in); err != nil {
				return "", err
			}
			rows, args = append(rows, strings.Replace(name, ".", " | ", 1)), append(args, in, out)
		}
	}
	text, err := b.stdout(ctx, b.python, args...)
	if err != nil {
		return "", err
	}
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		var packed, entropy float64
		if _, err := fmt.Sscan(line, &packed, &entropy); err != nil {
			return "", err
		}
		if entropy > 0 {
			fmt.Fprintf(&t, "| %s | %.0f | %+.2f %% |\n", rows[i], packed, 100*(packed/entropy-1))
		}
	}
	return t.String(), nil
}

// packSpeeds measures one worker.
func (b *bench) packSpeeds(ctx context.Context) (string, error) {
	dir := filepath.Join(b.dir, "pack")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	in, err := b.file(ctx, bert)
	if err != nil {
		return "", err
	}
	var t strings.Builder
	t.WriteString("## Packing: speed, one worker\n\nGB of the model per second; page cache warm, output to the page cache, SHA-256 of the files included.\n\n")
	t.WriteString("| model | command | GB/s | GB per second of processor time | peak MiB |\n|---|---|---:|---:|---:|\n")
	for _, f := range packTypes {
		model := in
		if f.method != "" {
			model = filepath.Join(dir, "bert."+f.name+".onnx")
			if _, err := b.converted(ctx, in, model, f.method); err != nil {
				return "", err
			}
		}
		packed, back := filepath.Join(dir, "speed.mcz"), filepath.Join(dir, "back.onnx")
		subjects := []subject{
			{name: "mcompress pack", args: command("", b.tool, "pack", "--workers", "1",
				"--no-sync", "--quiet", "-o", packed, model).args, out: packed},
			{name: "mcompress unpack", args: command("", b.tool, "unpack", "--workers", "1",
				"--no-sync", "--quiet", "-o", back, packed).args, out: back},
			{name: "zstd -3", args: command("", "zstd", "-3", "-f", "-q", "--single-thread", "-o", packed+".zst",
				model).args, out: packed + ".zst"},
			{name: "zstd -d", args: command("", "zstd", "-d", "-f", "-q", "--single-thread", "-o", back,
				packed+".zst").args, out: back},
			{name: "ZipNN", args: command("", b.python, "-c", packScript, "compress", model, f.name,
				packed+".znn").args, out: packed + ".znn"},
			{name: "ZipNN, decompress", args: command("", b.python, "-c", packScript, "decompress", packed+".znn",
				f.name, back).args, out: back},
		}
		got, err := b.medians(ctx, subjects)
		if err != nil {
			return "", err
		}
		size := float64(bytesOf(model)) / 1e9
		for _, s := range subjects {
			c := got[s.name]
			fmt.Fprintf(&t, "| %s, %s | %s | %.2f | %.2f | %.0f |\n", strings.TrimSuffix(bert.name, ", 438 MB"),
				f.name, s.name, size/c.Seconds, size/(c.User+c.System), c.Peak)
		}
	}
	text, err := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "Chunk/.*/.*code",
		"-benchtime", "300ms", "-count", "3", "./internal/pack").Output()
	if err != nil {
		return "", fmt.Errorf("benchmark of chunks: %w", err)
	}
	t.WriteString("\nThe codecs alone, a chunk of normally distributed values, one core; best of three runs.\n\n| | GB/s |\n|---|---:|\n")
	return t.String() + bestSpeeds(string(text)), nil
}

// packLarge pipes a model that is larger than memory from pack into unpack, and compares digests.
func (b *bench) packLarge(ctx context.Context) (string, error) {
	dir := filepath.Join(b.dir, "large")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return "", err
	}
	const layer = 640 << 20 // and some space for others
	layers := min(48, int(disk.Bavail*uint64(disk.Bsize)*2/5/layer))
	in, out := filepath.Join(dir, "decoder.onnx"), filepath.Join(dir, "copy", "decoder.onnx")
	if text, err := exec.CommandContext(ctx, "go", "run", "./internal/dev/scale", "-kind", "decoder",
		"-n", fmt.Sprint(layers), in).CombinedOutput(); err != nil {
		return "", fmt.Errorf("make the model: %w: %s", err, last(string(text)))
	}
	pipe := fmt.Sprintf("set -o pipefail; %[1]s pack --workers 2 --quiet --memory-limit 128MiB -o - %[2]s | tee >(wc -c >%[4]s) | %[1]s unpack --workers 2 --quiet --memory-limit 128MiB --no-sync -o %[3]s -", b.tool, in, out, out+".size")
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return "", err
	}
	c, err := b.peer(ctx, command("", "bash", "-c", pipe).args...)
	if err != nil {
		return "", err
	}
	for i, p := range parts(in) {
		if err := exec.CommandContext(ctx, "cmp", p, parts(out)[i]).Run(); err != nil {
			return "", fmt.Errorf("%s differs after unpack: %w", p, err)
		}
	}
	text, err := os.ReadFile(out + ".size")
	if err != nil {
		return "", err
	}
	size := float64(bytesOf(in)) / 1e9
	return fmt.Sprintf("## Packing a model of %.0f GB in a pipe\n\nA decoder of %d layers in float16 with random weights, the largest of up to 48 layers that fits on the disk twice: `mcompress pack -o - | mcompress unpack`, with\n"+
		"`--memory-limit 128MiB --workers 2` each. All files are identical afterwards.\n\n| bytes | packed | peak MiB of a process |\n|---:|---:|---:|\n| %d | %s | %.0f |\n",
		size, layers, bytesOf(in), strings.TrimSpace(string(text)), c.Peak), nil
}
