package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/digest"
	"github.com/mcompress/mcompress/internal/remote"
)

// prices are parameters of the costs, in dollars: of an hour of a core and of a GB of memory, and of 1000 requests that
// read and that write.
var prices = struct{ core, memory, reads, writes float64 }{0.04, 0.005, 0.0004, 0.005}

// A usage is what one run of a command took, and for how much.
type usage struct {
	cost
	models, tensors int
	bytes           int64
}

// cpu is the processor time.
func (c cost) cpu() float64 { return c.User + c.System }

// fleetCosts are the constants of the costs of a fleet.
type fleetCosts struct {
	small    usage // a list of small models, verified
	medium   usage // one of 438 MB, verified
	large    usage // one of 4.8 GB, not verified
	wide     usage // one of many small weights, not verified
	same     usage // 438 MB up to date
	listed   usage // a shard of a long list, without work
	worker   usage // the one of 8 workers that took longest, for 4.8 GB
	finalize usage
	wideEnd  usage    // finalize of many weights
	s3       usage    // 438 MB from bucket to bucket
	requests requests // of that
}

// requests are those of a run, by their prices: reads are GET and HEAD, writes are PUT, POST and LIST.
type requests struct{ reads, writes int }

// operation matches a request in the server's log.
var operation = regexp.MustCompile(` s3_(\w+) `)

const (
	smallModels  = 200
	longList     = 10000
	wideWeights  = 46080 // of a mixture of 60 layers of 256 experts of 3 matrices
	planWorkers  = 8
	gigabyte     = 1e9
	secondsAHour = 3600
)

// fleet measures the constants of fleets, and computes costs of large ones from them.
func (b *bench) fleet(ctx context.Context) (string, error) {
	c, err := b.fleetCosts(ctx)
	if err != nil {
		return "", err
	}
	var t strings.Builder
	t.WriteString("## Fleets: constants, and what follows from them\n\n")
	t.WriteString("One process each with `--workers 1`, page cache warm; processor seconds, as a fleet pays for cores.\n\n")
	t.WriteString("| measured | processor s | peak MiB | a unit |\n|---|---:|---:|---|\n")
	row := func(name string, s usage, unit string) {
		fmt.Fprintf(&t, "| %s | %.2f | %.0f | %s |\n", name, s.cpu(), s.Peak, unit)
	}
	each := func(s usage, n int) string { return fmt.Sprintf("%.2f ms", 1000*s.cpu()/float64(n)) }
	perGB := func(s usage) string { return fmt.Sprintf("%.2f s per GB", s.cpu()/(float64(s.bytes)/gigabyte)) }
	row(fmt.Sprintf("`quantize` of %d models of 0.5 MB, verified, with reports", smallModels), c.small,
		each(c.small, smallModels)+" a model")
	row("`quantize` of 438 MB, verified, with reports", c.medium, perGB(c.medium))
	row("the same from bucket to bucket", c.s3, fmt.Sprintf("%d reads, %d writes", c.requests.reads, c.requests.writes))
	row("the same with `--if-changed`, up to date", c.same, perGB(c.same))
	row("`quantize` of 4.8 GB with a report", c.large, perGB(c.large))
	row(fmt.Sprintf("`quantize` of %d weights of 64 elements with a report", wideWeights), c.wide,
		each(c.wide, wideWeights)+" a weight")
	row(fmt.Sprintf("shard of a list of %d models, `--dry-run`: the shard has one", longList), c.listed,
		each(c.listed, longList)+" a model of the list")
	row(fmt.Sprintf("`work`, 4.8 GB over %d: the longest, with the SHA-256 of the source", planWorkers), c.worker,
		perGB(c.worker))
	row("`finalize`, 4.8 GB", c.finalize, perGB(c.finalize))
	row(fmt.Sprintf("`finalize`, %d weights", wideWeights), c.wideEnd, each(c.wideEnd, wideWeights)+" a weight")
	c.paper(&t)
	return t.String(), nil
}

// paper computes the costs of three fleets.
func (c *fleetCosts) paper(t *strings.Builder) {
	fmt.Fprintf(t, "\nComputed from these: a core costs $%g and a GB of memory $%g an hour, 1000 reads $%g, 1000 writes $%g.\n\n", prices.core, prices.memory, prices.reads, prices.writes)
	t.WriteString("| fleet | workers of one core | processor hours | hours | memory of each, MiB | reads | writes | dollars | hours on one node of 16 cores |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	row := func(name string, workers int, total, longest, peak, reads, writes float64) {
		hours := total / secondsAHour
		dollars := hours*prices.core + hours*peak/1024*prices.memory + reads/1000*prices.reads +
			writes/1000*prices.writes
		fmt.Fprintf(t, "| %s | %d | %.1f | %.2f | %.0f | %.0f | %.0f | %.2f | %.2f |\n", name, workers, hours,
			longest/secondsAHour, peak, reads, writes, dollars, total/16/secondsAHour)
	}
	scale := 500e6 / float64(c.medium.bytes)
	one, skipped := c.medium.cpu()*scale, c.same.cpu()*scale
	for _, workers := range []int{100, 1000} {
		listing := c.listed.cpu() * float64(workers)
		reads := longList*float64(c.requests.reads)*scale + longList*float64(workers)
		row("10,000 models of 500 MB", workers, longList*one+listing, longList*one/float64(workers)+c.listed.cpu(),
			c.medium.Peak, reads, longList*float64(c.requests.writes)*scale)
	}
	row("the same, 1 % changed", 100, longList*(skipped+one/100)+c.listed.cpu()*100, longList*(skipped+one/100)/100,
		c.medium.Peak, longList*float64(c.requests.reads)*scale/2, longList/100*float64(c.requests.writes)*scale)
	reads := float64(c.requests.reads) / float64(c.s3.bytes)
	writes := float64(c.requests.writes) / float64(c.s3.bytes)
	tensor, end := c.wide.cpu()/wideWeights, c.wideEnd.cpu()/wideWeights
	bytes := c.large.cpu() / float64(c.large.bytes)
	final := c.finalize.cpu() / float64(c.finalize.bytes)
	for _, m := range []struct {
		name    string
		bytes   float64
		tensors float64
		workers int
	}{{"one model of 500 GB, 1,500 weights", 500e9, 1500, 64},
		{"one mixture of experts of 1.5 TB, 46,080 weights", 1.5e12, wideWeights, 256}} {
		work := m.bytes*bytes + m.tensors*tensor
		finalize := m.bytes*final + m.tensors*end
		peak := c.finalize.Peak + m.tensors*(c.wideEnd.Peak-c.finalize.Peak)/wideWeights
		row(m.name, m.workers, work+finalize, work/float64(m.workers)+finalize, peak, m.bytes*reads, m.bytes*writes)
	}
}

func (b *bench) fleetCosts(ctx context.Context) (*fleetCosts, error) {
	dir := filepath.Join(b.dir, "fleet")
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	c := &fleetCosts{}
	for _, measure := range []func(context.Context, string, *fleetCosts) error{b.bucket, b.lists, b.sizesOfFleet,
		b.divided} {
		if err := measure(ctx, dir, c); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// alone runs mcompress with one worker thread.
func (b *bench) alone(ctx context.Context, args ...string) (usage, error) {
	c, err := b.peer(ctx, command("", append([]string{b.tool, "--workers", "1", "--quiet"}, args...)...).args...)
	return usage{cost: c}, err
}

// lists measures lists of small models.
func (b *bench) lists(ctx context.Context, dir string, c *fleetCosts) (err error) {
	model, err := os.ReadFile("fixtures/mlp.onnx")
	if err != nil {
		return err
	}
	var list, long bytes.Buffer
	for i := range longList {
		path := filepath.Join(dir, "list", fmt.Sprintf("%02d", i/1000), fmt.Sprintf("%05d.onnx", i))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if i < smallModels {
			err = os.WriteFile(path, model, 0o644)
			fmt.Fprintln(&list, path)
		} else {
			err = os.Link(filepath.Join(dir, "list", "00", "00000.onnx"), path)
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(&long, path)
	}
	for name, text := range map[string]*bytes.Buffer{"small.txt": &list, "long.txt": &long} {
		if err := os.WriteFile(filepath.Join(dir, name), text.Bytes(), 0o644); err != nil {
			return err
		}
	}
	if c.small, err = b.alone(ctx, "quantize", "--files-from", filepath.Join(dir, "small.txt"),
		"-o", filepath.Join(dir, "small")); err != nil {
		return err
	}
	c.listed, err = b.alone(ctx, "quantize", "--files-from", filepath.Join(dir, "long.txt"),
		"-o", filepath.Join(dir, "long"), "--dry-run", "--shard", fmt.Sprintf("0/%d", longList))
	return err
}

// sizesOfFleet measures one model each.
func (b *bench) sizesOfFleet(ctx context.Context, dir string, c *fleetCosts) error {
	wide := filepath.Join(dir, "wide.onnx")
	if text, err := exec.CommandContext(ctx, "go", "run", "./internal/dev/scale", "-kind", "layers",
		"-n", fmt.Sprint(wideWeights), wide).CombinedOutput(); err != nil {
		return fmt.Errorf("make the model: %w: %s", err, last(string(text)))
	}
	for _, m := range []struct {
		model model
		path  string
		into  *usage
		flags []string
	}{
		{bert, "", &c.medium, nil}, {bert, "", &c.same, []string{"--if-changed"}}, {llm, "", &c.large, nil},
		{model{}, wide, &c.wide, []string{"--no-verify", "--method", "weight-int8"}},
	} {
		path, err := m.path, error(nil)
		if path == "" {
			if path, err = b.file(ctx, m.model); err != nil {
				return err
			}
		}
		args := append([]string{"quantize", path, "-o", filepath.Join(dir, "one") + "/"}, m.flags...)
		if m.into == &c.same { // the run before did not record its options
			if _, err := b.alone(ctx, args...); err != nil {
				return err
			}
		}
		if *m.into, err = b.alone(ctx, args...); err != nil {
			return err
		}
		m.into.bytes = bytesOf(path)
	}
	return os.RemoveAll(filepath.Join(dir, "one"))
}

// divided measures the processes of plans.
func (b *bench) divided(ctx context.Context, dir string, c *fleetCosts) error {
	large, err := b.file(ctx, llm)
	if err != nil {
		return err
	}
	if c.worker, c.finalize, err = b.ofPlan(ctx, filepath.Join(dir, "plan"), large,
		"--method", "weight-int8"); err != nil {
		return err
	}
	_, c.wideEnd, err = b.ofPlan(ctx, filepath.Join(dir, "wideplan"), filepath.Join(dir, "wide.onnx"),
		"--method", "weight-int8", "--no-verify")
	return err
}

// ofPlan runs a plan: the longest worker, and the finalizer.
func (b *bench) ofPlan(ctx context.Context, dir, path string, flags ...string) (longest, finalize usage, err error) {
	args := append([]string{"plan", "-n", fmt.Sprint(planWorkers), "-o", dir, "--", "quantize"}, flags...)
	if _, err := b.alone(ctx, append(args, path)...); err != nil {
		return longest, finalize, err
	}
	for i := range planWorkers {
		s, err := b.alone(ctx, "work", dir, "--index", fmt.Sprint(i))
		if err != nil {
			return longest, finalize, err
		}
		if s.cpu() > longest.cpu() {
			longest = s
		}
	}
	finalize, err = b.alone(ctx, "finalize", dir)
	longest.bytes, finalize.bytes = bytesOf(path), bytesOf(path)
	return longest, finalize, err
}

// bucket measures a model from bucket to bucket, and counts the requests.
func (b *bench) bucket(ctx context.Context, dir string, c *fleetCosts) error {
	path, err := b.file(ctx, bert)
	if err != nil {
		return err
	}
	buckets, metadata, log := filepath.Join(dir, "buckets"), filepath.Join(dir, "metadata"),
		filepath.Join(dir, "requests.log")
	for _, d := range []string{filepath.Join(buckets, "models"), metadata} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	paths := []string{buckets, metadata, log}
	for i, p := range paths {
		if paths[i], err = filepath.Abs(p); err != nil {
			return err
		}
	}
	endpoint, stop, err := conform.ServeS3(paths[0], paths[1], "-access-log", paths[2])
	if err != nil {
		return err
	}
	defer stop()
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": endpoint, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": conform.S3AccessKey,
		"AWS_SECRET_ACCESS_KEY": conform.S3SecretKey,
		"XDG_CACHE_HOME":        filepath.Join(paths[0], "..", "cache"),
	} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	sum, _, err := digest.File(ctx, path, nil)
	if err != nil {
		return err
	}
	if err := remote.Publish(ctx, []remote.Upload{{Path: path, URL: "s3://models/bert.onnx",
		SHA256: sum}}); err != nil {
		return err
	}
	before, err := os.ReadFile(paths[2])
	if err != nil {
		return err
	}
	if c.s3, err = b.alone(ctx, "quantize", "s3://models/bert.onnx", "-o", "s3://models/out/"); err != nil {
		return err
	}
	c.s3.bytes = bytesOf(path)
	text, err := os.ReadFile(paths[2])
	if err != nil {
		return err
	}
	text = text[len(before):]
	for _, m := range operation.FindAllSubmatch(text, -1) {
		switch name := string(m[1]); {
		case name == "GetObject" || name == "HeadObject":
			c.requests.reads++
		case !strings.HasPrefix(name, "Delete") && !strings.HasPrefix(name, "Abort"): // which cost nothing
			c.requests.writes++
		}
	}
	if c.requests.reads == 0 || c.requests.writes == 0 {
		return fmt.Errorf("no requests in %s: %s", log, last(string(text)))
	}
	return nil
}
