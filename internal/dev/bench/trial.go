package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/mcompress/mcompress/distill"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// A trial is a training of some steps, in this process or in one of its own.
type trial struct {
	Model, Output  string
	Threads, Steps int // the first step is not measured
	Options        map[string]string
}

// A trialResult is the result of a trial.
type trialResult struct {
	Wall, CPU []float64 // seconds of each step but the first
	Loss      float64   // of the last step
	Peak      float64   // MiB resident
	Memory    []pass.Size
}

// arena is the planned bytes of a step.
func (o trialResult) arena() int64 { return o.size("activations and gradients") }

// need is the planned bytes of all.
func (o trialResult) need() (n int64) {
	for _, s := range o.Memory {
		n += s.Bytes
	}
	return n
}

func (o trialResult) size(names ...string) (n int64) {
	for _, s := range o.Memory {
		if slices.Contains(names, s.Name) {
			n += s.Bytes
		}
	}
	return n
}

// above is the peak resident memory, in MiB, without program, weights, teacher and samples, which all options need.
func (o trialResult) above() float64 {
	return o.Peak - mib(o.size("program", "weights", "frozen weights", "teacher", "samples", "batches"))
}

// trial is that of tr with further options.
func (b *bench) trial(ctx context.Context, tr training, threads, steps int, more map[string]string) (t trial,
	err error) {
	t = trial{Output: filepath.Join(b.dir, "train", "out.onnx"), Threads: threads, Steps: steps + 1,
		Options: map[string]string{}}
	var data string
	if t.Model, data, err = b.materials(ctx, tr); err != nil {
		return t, err
	}
	for _, set := range []map[string]string{{"data": data, "batch": strconv.Itoa(tr.batch), "validate": "0",
		"steps": strconv.Itoa(t.Steps)}, tr.set, more} {
		for name, value := range set {
			t.Options[name] = value
		}
	}
	if tr.tokens {
		t.Options["teacher"] = b.wholeMiniLM()
	}
	return t, nil
}

// apart runs the trial in a process of its own, with further variables of the environment.
func (t trial) apart(ctx context.Context, env ...string) (o trialResult, err error) {
	self, err := os.Executable()
	if err != nil {
		return o, err
	}
	text, err := json.Marshal(t)
	if err != nil {
		return o, err
	}
	cmd := exec.CommandContext(ctx, self, "-trial", string(text))
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return o, fmt.Errorf("%w: %s", err, last(stderr.String()))
	}
	return o, json.Unmarshal(out, &o)
}

// runTrial prints the result of a trial.
func runTrial(ctx context.Context, text string) error {
	var t trial
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return err
	}
	o, err := t.run(ctx)
	_, peak := report.Resident()
	o.Peak = mib(peak)
	return errors.Join(err, json.NewEncoder(os.Stdout).Encode(o))
}

func (t trial) run(ctx context.Context) (o trialResult, err error) {
	step, err := pass.NewStep(distill.FineTune{}.Method(), func(fs *flag.FlagSet) error {
		for name, value := range t.Options {
			if err := fs.Set(name, value); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	})
	if err != nil {
		return o, err
	}
	var last time.Time
	var used float64
	res, err := job.Run(ctx, job.Options{
		Input: t.Model, Output: t.Output, Label: "finetune", Steps: []pass.Options{step}, Workers: t.Threads,
		Memory: 1 << 30, Exclusive: true,
		TrainingProgress: func(p pass.Progress) {
			if p.Step > 1 && !p.Done {
				o.Wall, o.CPU = append(o.Wall, time.Since(last).Seconds()), append(o.CPU, cpuTime()-used)
			}
			o.Loss, last, used = p.Loss, time.Now(), cpuTime()
		},
	})
	if err == nil {
		o.Memory = res.Report.Training[0].Memory
	}
	return o, err
}
