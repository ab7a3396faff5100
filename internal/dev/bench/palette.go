package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
)

// paletteModels are the shared models of the table; those without data have random inputs.
var paletteModels = []string{
	"transformer/minilm_l6_v2_vocab3086", "text/magika_v3_3", "vision/mlperf_resnet8", "vision/mnist_cnn_max3",
	"vision/mnist_softmax_head",
	"vision/mnist_sigmoid", "transformer/mnist_self_attention", "transformer/gpt2_tiny_fp32", "vision/yolox_nano",
	"text/byte_bidi_lstm",
	"vision/super_resolution", "vision/espcn_float", "vision/traffic_sign", "vision/cifar_wide_kw",
}

// A compressed is what the report of one result holds: bytes of the file, and SQNR of all its quantized weights
// together and of its worst output on held-out samples.
type compressed struct {
	bytes           int64
	weights, output float64
}

// palette compares palettes of 16 entries with 4-bit integers of at least their size.
func (b *bench) palette(ctx context.Context) (string, error) {
	folder := filepath.Join(b.dir, "palette")
	defer os.RemoveAll(folder)
	if err := b.realSamples(ctx, folder); err != nil {
		return "", err
	}
	var t strings.Builder
	t.WriteString("## Palettes and 4-bit integers\n\n`quantize --method palette` (16 entries, scales of blocks of 8) and `weight-int4` (blocks of 32), without samples. SQNR of weights is that of all\nquantized weights together; output SQNR is on held-out samples (all of them, 64 for models above 8 MiB), or random ones without such.\n\n")
	t.WriteString("| model | bytes: palette | int4 | SQNR of weights: palette | int4 | of outputs: palette | int4 |\n|---|---:|---:|---:|---:|---:|---:|\n")
	for _, name := range paletteModels {
		ours, err := b.compressed(ctx, folder, name, "palette")
		if err != nil {
			return "", err
		}
		theirs, err := b.compressed(ctx, folder, name, "weight-int4")
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&t, "| %s | %d | %d | %.2f dB | %.2f dB | %.2f dB | %.2f dB |\n", filepath.Base(name),
			ours.bytes, theirs.bytes, ours.weights, theirs.weights, ours.output, theirs.output)
	}
	return t.String(), nil
}

// compressed quantizes a shared model by a method and reads the report.
func (b *bench) compressed(ctx context.Context, folder, name, method string) (*compressed, error) {
	out, in := filepath.Join(folder, "out.onnx"), filepath.Join(b.shared, "fixtures", "models", name, "model.onnx")
	args := []string{"quantize", "--quiet", "--method", method, "-o", out, "--report", "json", in}
	samples := filepath.Join(folder, filepath.Base(name)+".test.npz")
	if _, err := os.Stat(samples); err == nil {
		limit := "5000" // one image of a hundred may have most of the squared error after Softmax
		if bytesOf(in) > 8<<20 {
			limit = "64"
		}
		args = append(args, "--data", samples, "--limit", limit)
	}
	if _, err := b.stdout(ctx, b.tool, args...); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	text, err := os.ReadFile(strings.TrimSuffix(out, ".onnx") + ".report.json")
	if err != nil {
		return nil, err
	}
	var report struct {
		Totals struct {
			FileBytes struct{ After int64 } `json:"file_bytes"`
		}
		Weights []struct {
			Tensor  string
			Changed bool
			Error   struct {
				SQNR *float64 `json:"sqnr_db"`
			}
		}
		Verification struct {
			Outputs []struct {
				Errors struct {
					SQNR *float64 `json:"sqnr_db"`
				}
			}
		}
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return nil, err
	}
	energy, err := energies(ctx, in)
	if err != nil {
		return nil, err
	}
	c, all, errors := &compressed{bytes: report.Totals.FileBytes.After, output: math.Inf(1)}, 0., 0.
	for _, w := range report.Weights {
		if !w.Changed {
			continue
		}
		all += energy[w.Tensor]
		if w.Error.SQNR != nil {
			errors += energy[w.Tensor] * math.Pow(10, -*w.Error.SQNR/10)
		}
	}
	c.weights = 10 * math.Log10(all/errors)
	for _, o := range report.Verification.Outputs {
		if o.Errors.SQNR != nil {
			c.output = min(c.output, *o.Errors.SQNR)
		}
	}
	return c, nil
}

// energies are the sums of the squares of a model's constants, by name.
func energies(ctx context.Context, path string) (map[string]float64, error) {
	f, err := onnx.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	e, energy := ir.NewEval(""), map[string]float64{}
	defer e.Close()
	for v := range f.Model.Values() {
		if v.Const == nil || v.Const.DType != ir.Float {
			continue
		}
		err := pass.Scan(ctx, e, v.Const, func(x []float32, _ int64) error {
			for _, y := range x {
				energy[v.Name] += float64(y) * float64(y)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return energy, nil
}

// paletteSpeed measures palettes of 16 entries.
func (b *bench) paletteSpeed(ctx context.Context) (string, error) {
	var t strings.Builder
	t.WriteString("## Speed of palettes\n\n`quantize --method palette --report none --no-verify --digest none --no-sync`, one worker, page cache warm; median seconds, bytes of input per second, peak resident memory.\n\n")
	t.WriteString("| model | s | GB/s | peak MiB |\n|---|---:|---:|---:|\n")
	out := filepath.Join(b.dir, "palette.onnx")
	defer os.Remove(out)
	for _, m := range []model{bert, llm} {
		in, err := b.file(ctx, m)
		if err != nil {
			return "", err
		}
		args := []string{b.tool, "quantize", in, "--method", "palette", "-o", out, "--report", "none",
			"--no-verify", "--workers", "1", "--quiet", "--digest", "none", "--no-sync"}
		s := command(fastName, args...)
		s.out = out
		got, err := b.medians(ctx, []subject{s})
		if err != nil {
			return "", err
		}
		r := got[fastName]
		fmt.Fprintf(&t, "| %s | %.2f | %.2f | %.0f |\n", m.name, r.Seconds, float64(bytesOf(in))/1e9/r.Seconds, r.Peak)
	}
	fmt.Fprintf(&t, "\n%d processors.\n", runtime.NumCPU())
	return t.String(), nil
}
