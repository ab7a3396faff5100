package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"image"
	_ "image/jpeg" // the shared pictures
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

//go:embed realdata.py
var realDataScript string

//go:embed realquality.py
var realQualityScript string

// A family is quantizers in one table: ours, and those of ONNX Runtime whose names begin so.
type family struct {
	title, theirs string
	ours          []string // methods and options of quantize, which get samples if they end so
}

// withSamples is the end of options that samples go with.
const withSamples = " DATA"

// families are the tables.
var families = []family{
	{"Dynamic int8, and 8-bit weights of all operators", "dynamic", []string{
		"dynamic-int8 --embeddings",
		"dynamic-int8 --embeddings --asymmetric --bias-correction DATA",
		"dynamic-int8 --embeddings --smooth auto DATA",
		"weight-int8",
		"weight-int8 --asymmetric --bias-correction DATA",
		"weight-int8 --per-tensor --asymmetric --bias-correction DATA",
		"weight-int8 --block 256 --weight-type uint8 --asymmetric --algo gptq --bias-correction DATA",
	}},
	{"Static int8", "static", []string{
		"static-int8 DATA",
		"static-int8 --float-bias DATA",
		"static-int8 --activation-sqnr 0 DATA",
	}},
	{"Weights in blocks", "int", []string{
		"weight-int4",
		"weight-int4 --symmetric",
		"weight-int4 --algo gptq --bias-correction DATA",
		"weight-int4 --algo gptq --bias-correction --only op:{MatMul,Gemm} DATA",
		"weight-int4 --block 128 --algo gptq --bias-correction DATA",
		"weight-int8 --block 32 --weight-type uint8 --asymmetric --form matmulnbits --algo gptq --bias-correction DATA",
		"weight-int8 --block 32 --weight-type uint8 --form matmulnbits --algo gptq DATA",
		"weight-int8 --block 32 --weight-type uint8 --form matmulnbits --algo gptq --only op:{MatMul,Gemm} DATA",
		"weight-int8 --block 32 --weight-type uint8 --asymmetric --form matmulnbits --only op:{MatMul,Gemm}",
	}},
}

// An outcome is a line of realquality.py.
type outcome struct {
	Name, Why string
	Size      float64
	Bytes     int64
	SQNR      *float64 // nil where nothing differs
	Right     *float64 // nil without labels
	Zeros     *float64 // of weights that a peer pruned
}

func (o *outcome) decibels() float64 {
	if o.SQNR == nil {
		return math.Inf(1)
	}
	return *o.SQNR
}

// right is the top-1 accuracy, at most that of the source: more is chance.
func (o *outcome) right(float *outcome) float64 {
	if o.Right == nil || float.Right == nil {
		return 0
	}
	return min(*o.Right, *float.Right)
}

// String is a cell of a table.
func (o *outcome) String() string {
	if o.Why != "" {
		return strings.SplitN(o.Why, ":", 2)[0]
	}
	s := fmt.Sprintf("%.3f", o.Size)
	if o.Right != nil {
		s += fmt.Sprintf(" %.1f %%", 100**o.Right)
	}
	if o.SQNR == nil {
		return s + " exact"
	}
	return s + fmt.Sprintf(" %.1f", *o.SQNR)
}

// What counts as no larger, and as no less.
const sizeSlack, decibelSlack = 1.01, 0.05

// A comparison is the result of one of their outcomes against ours.
type comparison int

const (
	won comparison = iota
	equal
	lost
)

// compareWith is won where theirs fails, makes nothing smaller, or one of ours is as good in all figures and better in
// one; lost where none of ours is as good in all figures.
func compareWith(float, theirs *outcome, ours []*outcome) comparison {
	v := lost
	if theirs.Why != "" || theirs.Size >= 1 {
		return won
	}
	for _, o := range ours {
		r, t := o.right(float), theirs.right(float)
		if o.Why != "" || o.Size > sizeSlack*theirs.Size || r < t || o.decibels() < theirs.decibels()-decibelSlack {
			continue
		}
		if o.Size*sizeSlack < theirs.Size || r > t || o.decibels() > theirs.decibels()+decibelSlack {
			return won
		}
		v = equal
	}
	return v
}

// A contest is the outcomes of one model, or why there are none.
type contest struct {
	name         string
	err          error
	float        *outcome
	ours, theirs []*outcome
	chosen       []*outcome // those of ours that --auto made
}

// quickBytes is the size up to which -quick compares models.
const quickBytes = 1 << 20

// realQuality compares quantizers on the shared real models, each at many settings.
func (b *bench) realQuality(ctx context.Context) (string, error) {
	folder := filepath.Join(b.dir, "real-quality")
	defer os.RemoveAll(folder)
	if err := b.realSamples(ctx, folder); err != nil {
		return "", err
	}
	paths, err := filepath.Glob(filepath.Join(b.shared, "fixtures", "models", "*", "*", "model.onnx"))
	if err != nil {
		return "", err
	}
	if b.quick {
		paths = slices.DeleteFunc(paths, func(path string) bool { return bytesOf(path) > quickBytes })
	}
	slices.SortFunc(paths, func(a, b string) int { return int(bytesOf(b) - bytesOf(a)) }) // the longest first
	contests := make([]*contest, len(paths))
	next := make(chan int)
	var running sync.WaitGroup
	for range 2 {
		running.Go(func() {
			for i := range next {
				c := &contest{name: filepath.Base(filepath.Dir(paths[i]))}
				if contests[i] = c; ctx.Err() == nil {
					c.err = b.hold(ctx, c, folder, paths[i])
				}
				fmt.Fprintln(os.Stderr, c.name, tally([]*contest{c}))
			}
		})
	}
	for i := range paths {
		next <- i
	}
	close(next)
	running.Wait()
	return realTables(contests), ctx.Err()
}

// realSamples makes a folder of calibration and held-out samples of the shared models.
func (b *bench) realSamples(ctx context.Context, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := b.pictures(folder); err != nil {
		return err
	}
	_, err := b.part(ctx, "realdata.py", realDataScript, []string{filepath.Join(b.shared, "fixtures"), folder, folder})
	return err
}

// pictures writes the shared pictures as PPM, which needs no library to read.
func (b *bench) pictures(folder string) error {
	paths, err := filepath.Glob(filepath.Join(b.shared, "fixtures", "datasets", "images", "*.jpg"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		m, _, err := image.Decode(f)
		_ = f.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".jpg") + ".ppm"
		if err := os.WriteFile(filepath.Join(folder, name), ppm(m), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func ppm(m image.Image) []byte {
	r := m.Bounds()
	out := fmt.Appendf(nil, "P6\n%d %d\n255\n", r.Dx(), r.Dy())
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			red, green, blue, _ := m.At(x, y).RGBA()
			out = append(out, byte(red>>8), byte(green>>8), byte(blue>>8))
		}
	}
	return out
}

// hold quantizes the model of c with ours and theirs, and where a setting of theirs is not met by one of ours, with
// what --auto makes of as many bytes. A model that does not run in ONNX Runtime has no outcomes.
func (b *bench) hold(ctx context.Context, c *contest, folder, model string) error {
	samples, out := filepath.Join(folder, c.name), filepath.Join(folder, c.name+".out")
	if _, err := os.Stat(samples + ".npz"); err != nil {
		return nil
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(out)
	args, failed := []string{"float=" + model}, []*outcome{}
	for _, f := range families {
		for i, name := range f.ours {
			path := filepath.Join(out, fmt.Sprintf("%s%d.onnx", f.theirs, i))
			options, sampled := strings.CutSuffix(name, withSamples)
			call := strings.Fields(options)
			if sampled {
				call = append(call, "--data", samples+".npz")
			}
			if why := b.quantized(ctx, model, path, append([]string{"--method"}, call...)); why != "" {
				failed = append(failed, &outcome{Name: options, Why: "fails: " + why})
				continue
			}
			args = append(args, options+"="+path)
		}
	}
	all, err := b.outcomes(ctx, append([]string{"peers", model, samples, out}, args...))
	if err != nil {
		return err
	}
	c.float, c.ours, c.theirs = all[0], append(all[1:len(args):len(args)], failed...), all[len(args):]
	for _, o := range c.theirs {
		if compareWith(c.float, o, c.ours) != lost {
			continue
		}
		// doc strings, which we keep, left out
		path, size := filepath.Join(out, "auto.onnx"), fmt.Sprint(o.Bytes+bytesOf(model)-c.float.Bytes)
		if why := b.quantized(ctx, model, path, []string{"--auto", "--target-size", size,
			"--data", samples + ".npz"}); why != "" {
			fmt.Fprintln(os.Stderr, c.name, o.Name, why)
			continue
		}
		auto, err := b.outcomes(ctx, []string{"evaluate", model, samples, out,
			fmt.Sprintf("--auto --target-size %d=%s", o.Bytes, path)})
		if err != nil {
			return err
		}
		c.ours, c.chosen = append(c.ours, auto...), append(c.chosen, auto...)
	}
	return nil
}

// outcomes are the lines of realquality.py.
func (b *bench) outcomes(ctx context.Context, args []string) ([]*outcome, error) {
	text, err := b.part(ctx, "realquality.py", realQualityScript, args)
	if err != nil {
		return nil, err
	}
	var all []*outcome
	for line := range strings.Lines(text) {
		o := &outcome{}
		if err := json.Unmarshal([]byte(line), o); err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}

// quantized runs quantize, and returns why it failed.
func (b *bench) quantized(ctx context.Context, model, out string, call []string) string {
	args := append([]string{"quantize", model, "-o", out}, call...)
	args = append(args, "--report", "none", "--no-verify", "--digest", "none", "--no-sync", "--workers", "1", "--quiet")
	if output, err := exec.CommandContext(ctx, b.tool, args...).CombinedOutput(); err != nil {
		return last(string(output))
	}
	return ""
}
