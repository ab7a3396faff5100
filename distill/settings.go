package distill

import (
	"flag"
	"math"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/pass"
)

// settings are the options of both methods, as they are given.
type settings struct {
	data dataset.Source // what is learned from
	kind kind

	epochs, steps     int
	batch, accumulate int
	seed              uint64
	validate          float64
	patience          int

	optimizer             string
	rate, momentum, decay float64
	clip                  float64
	schedule              string
	warmup                float64

	loss               string
	alpha, temperature float64
	smoothing          float64
	teacher, match     string
	layers             bool
	cache              bool

	dropout, maxNorm float64
	augment          string
	reinit           int64
	statistics       bool
	aware            string

	checkpoint, storage, offload, onOOM string
	budget                              size

	save   string
	every  int
	resume bool
}

// A kind is what tells the methods' defaults apart.
type kind struct {
	name  string
	rate  float64 // share of the optimiser's default rate
	alpha float64
}

func (s *settings) bind(fs *flag.FlagSet, k kind) {
	s.kind = k
	s.data.Bind(fs)
	fs.IntVar(&s.epochs, "epochs", 3, "`number` of times to go through the samples")
	fs.IntVar(&s.steps, "steps", 0, "`number` of steps, instead of --epochs")
	fs.IntVar(&s.batch, "batch", 32, "`number` of samples in a step")
	fs.IntVar(&s.accumulate, "accumulate", 1, "`number` of parts that the samples of a step are computed in, one after another")
	fs.Uint64Var(&s.seed, "seed", 1, "`number` that the order of samples, dropout and augmentation follow from")
	fs.Float64Var(&s.validate, "validate", 0.1, "`share` of the samples that is kept apart to judge by")
	fs.IntVar(&s.patience, "patience", 0, "stop after so many `epochs` that were not better (default: never)")
	s.course(fs, k)
	s.losses(fs, k)
	fs.Float64Var(&s.dropout, "dropout", 0, "`share` of the activations before Linear layers that is zeroed")
	fs.Float64Var(&s.maxNorm, "max-norm", 0, "largest L2 `norm` of the weights of one unit (default: no bound)")
	fs.StringVar(&s.augment, "augment", "", "`changes` of images, with commas: shift=2 (pixels), flip")
	fs.Int64Var(&s.reinit, "reinit", -1, "start from random weights made from this `seed`, not from those of the model")
	fs.BoolVar(&s.statistics, "batch-statistics", false, "normalise by the batch and learn the running statistics of BatchNormalization (default with --reinit)")
	fs.StringVar(&s.aware, "aware", "", "`method` that follows, such as weight-int4 or static-int8: steps compute with what it would make of weights and activations; on the command line its options stand behind its name, as in \"weight-int4 block=64 symmetric\"")
	s.memory(fs)
	fs.StringVar(&s.save, "save", "", "`file` to keep the state of training in")
	fs.IntVar(&s.every, "save-every", 0, "`number` of steps between two states (default: once an epoch)")
	fs.BoolVar(&s.resume, "resume", false, "go on from the state in --save, to the same bits as without a break")
}

func (s *settings) course(fs *flag.FlagSet, k kind) {
	fs.StringVar(&s.optimizer, "optimizer", "adam", "`name`: "+strings.Join(optimizerNames(), ", "))
	fs.Float64Var(&s.rate, "lr", 0, "learning `rate` (default: 1e-3, of sgd and momentum 1e-2; a fifth of that for models that are trained already)")
	fs.Float64Var(&s.momentum, "momentum", 0.9, "`share` of the last change that goes on, of sgd and momentum")
	fs.Float64Var(&s.decay, "weight-decay", 0, "weight decay, of weights of rank 2 and more")
	fs.Float64Var(&s.clip, "clip", 0, "largest L2 `norm` of all gradients (default: no bound)")
	fs.StringVar(&s.schedule, "schedule", "cosine", "how the rate goes down: "+strings.Join(scheduleNames(), ", "))
	fs.Float64Var(&s.warmup, "warmup", 0, "`share` of the steps in which the rate goes up first")
}

func (s *settings) losses(fs *flag.FlagSet, k kind) {
	fs.StringVar(&s.loss, "loss", "auto", "what goes down: auto, cross-entropy (labels), kl, mse, cosine (teacher)")
	fs.Float64Var(&s.alpha, "alpha", k.alpha, "`share` of the labels' cross-entropy beside the teacher, from 0 to 1; -1 takes 1 without a named teacher and 0.5 beside one")
	fs.Float64Var(&s.temperature, "temperature", 4, "what scores are divided by for kl")
	fs.Float64Var(&s.smoothing, "label-smoothing", 0, "`share` of a label that is spread over all classes")
	fs.StringVar(&s.teacher, "teacher", "", "`path` of the teacher (default: the model as it was before any step)")
	fs.StringVar(&s.match, "match", "", "`teacher=student` values inside the graphs to bring near each other by --loss mse or cosine, with commas")
	fs.BoolVar(&s.layers, "layers", false, "match all values that both graphs have under one name and in one shape")
	fs.BoolVar(&s.cache, "cache-teacher", false, "keep what the teacher says of each sample in a temporary file")
}

func (s *settings) memory(fs *flag.FlagSet) {
	fs.Var(&s.budget, "memory-budget", "`size` that training is to take at most; picks what follows by itself")
	fs.StringVar(&s.checkpoint, "checkpoint", "none", "compute activations again on the way back: none, light (what costs little), sqrt, every=N, auto (the least memory)")
	fs.StringVar(&s.storage, "storage", "float32", "how activations are kept: float32, float16")
	fs.StringVar(&s.offload, "offload", "none", "what is kept on disk: none, activations, optimizer, all")
	fs.StringVar(&s.onOOM, "on-oom", "fail", "what to do if the budget would break: fail, halve (the batch)")
}

// check finds options that make no sense.
func (s *settings) check() error {
	for _, w := range []struct {
		name, value string
		known       []string
	}{
		{"optimizer", s.optimizer, optimizerNames()},
		{"schedule", s.schedule, scheduleNames()},
		{"loss", s.loss, []string{"auto", "cross-entropy", "kl", "mse", "cosine"}},
		{"storage", s.storage, []string{"float32", "float16"}},
		{"offload", s.offload, []string{"none", "activations", "optimizer", "all"}},
		{"on-oom", s.onOOM, []string{"fail", "halve"}},
	} {
		if !slices.Contains(w.known, w.value) {
			return pass.OptionErrorf("--%s %s: there are %s", w.name, w.value, strings.Trim(strings.Join(w.known, ", "), ", "))
		}
	}
	for _, f := range []struct {
		name      string
		x, lo, hi float64
	}{
		{"validate", s.validate, 0, 0.9}, {"alpha", max(s.alpha, 0), 0, 1}, {"label-smoothing", s.smoothing, 0, 0.99}, {"dropout", s.dropout, 0, 0.95},
		{"warmup", s.warmup, 0, 1}, {"momentum", s.momentum, 0, 0.9999}, {"lr", s.rate, 0, 100}, {"weight-decay", s.decay, 0, 100},
		{"clip", s.clip, 0, math.MaxFloat32}, {"max-norm", s.maxNorm, 0, math.MaxFloat32}, {"temperature", s.temperature, 0.01, 1000},
		{"epochs", float64(s.epochs), 0, 1e6}, {"steps", float64(s.steps), 0, 1e9}, {"batch", float64(s.batch), 1, 1e6},
		{"accumulate", float64(s.accumulate), 1, float64(s.batch)}, {"patience", float64(s.patience), 0, 1e6}, {"save-every", float64(s.every), 0, 1e9},
	} {
		if !(f.x >= f.lo && f.x <= f.hi) {
			return pass.OptionErrorf("--%s %v: it goes from %v to %v", f.name, f.x, f.lo, f.hi)
		}
	}
	switch {
	case s.data.Path == "":
		return pass.OptionErrorf("samples to learn from are missing: give --data")
	case s.batch%s.accumulate != 0:
		return pass.OptionErrorf("--batch %d is no multiple of --accumulate %d", s.batch, s.accumulate)
	case s.resume && s.save == "":
		return pass.OptionErrorf("--resume goes on from the state in --save: give its file")
	case s.patience > 0 && s.validate == 0:
		return pass.OptionErrorf("--patience goes by samples that are kept apart: give --validate")
	}
	return nil
}
