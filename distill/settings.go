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
	qat              string

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
	pass.Declare(fs, &s.data)
	fs.IntVar(&s.epochs, "epochs", 3, "`number` of passes over the training samples")
	fs.IntVar(&s.steps, "steps", 0, "`number` of training steps, instead of --epochs")
	fs.IntVar(&s.batch, "batch", 32, "`number` of samples per step")
	fs.IntVar(&s.accumulate, "accumulate", 1, "gradient accumulation: `number` of micro-batches per step")
	fs.Uint64Var(&s.seed, "seed", 1, "random seed `number` for sample order, dropout and augmentation")
	fs.Float64Var(&s.validate, "validate", 0.1, "`fraction` of the samples held out as the validation set")
	fs.IntVar(&s.patience, "patience", 0, "early stopping: stop after this number of `epochs` without improvement on the validation set (default: never)")
	s.course(fs, k)
	s.losses(fs, k)
	fs.Float64Var(&s.dropout, "dropout", 0, "dropout `probability` of the activations before linear layers")
	fs.Float64Var(&s.maxNorm, "max-norm", 0, "maximum L2 `norm` of the weights of one unit (default: no limit)")
	fs.StringVar(&s.augment, "augment", "", "comma-separated image `augmentations`: shift=2 (pixels), flip")
	fs.Int64Var(&s.reinit, "reinit", -1, "train from scratch: initialize weights randomly from this `seed`")
	fs.BoolVar(&s.statistics, "batch-statistics", false, "normalize with batch statistics and update the running mean and variance of BatchNormalization (default with --reinit)")
	fs.StringVar(&s.qat, "qat", "", "quantization-aware training (QAT) for the quantization `method` that follows, such as weight-int4 or static-int8: fake-quantizes weights and activations; on the command line with the options of the method, as in \"weight-int4 block=64 symmetric\"")
	s.memory(fs)
	fs.StringVar(&s.save, "save", "", "checkpoint `file` of the training: weights, optimizer state and history")
	fs.IntVar(&s.every, "save-every", 0, "`number` of steps between checkpoints of the training (default: one epoch)")
	fs.BoolVar(&s.resume, "resume", false, "resume from the checkpoint in --save; bit-identical to an uninterrupted run")
}

func (s *settings) course(fs *flag.FlagSet, k kind) {
	fs.StringVar(&s.optimizer, "optimizer", "adam", "`name`: "+strings.Join(optimizerNames(), ", "))
	fs.Float64Var(&s.rate, "lr", 0, "learning `rate` (default: 1e-3, with sgd and momentum 1e-2; finetune without --reinit: a fifth of that)")
	fs.Float64Var(&s.momentum, "momentum", 0.9, "momentum `factor` of --optimizer momentum")
	fs.Float64Var(&s.decay, "weight-decay", 0, "weight decay `coefficient` for weights of rank 2 or more")
	fs.Float64Var(&s.clip, "clip", 0, "gradient clipping: maximum L2 `norm` of all gradients (default: no clipping)")
	fs.StringVar(&s.schedule, "schedule", "cosine", "learning rate `schedule`: "+strings.Join(scheduleNames(), ", "))
	fs.Float64Var(&s.warmup, "warmup", 0, "`fraction` of the steps with linear learning rate warmup")
}

func (s *settings) losses(fs *flag.FlagSet, k kind) {
	fs.StringVar(&s.loss, "loss", "auto", "loss `function`: auto, cross-entropy (labels), kl, mse, cosine (teacher)")
	fs.Float64Var(&s.alpha, "alpha", k.alpha, "`weight` of the cross-entropy with labels against the distillation loss, from 0 to 1; -1 means 1 without --teacher and 0.5 with it")
	fs.Float64Var(&s.temperature, "temperature", 4, "softmax `temperature` of the kl loss")
	fs.Float64Var(&s.smoothing, "label-smoothing", 0, "label smoothing `factor`")
	fs.StringVar(&s.teacher, "teacher", "", "`path` of the teacher model (default: the source model before all steps)")
	fs.StringVar(&s.match, "match", "", "comma-separated pairs `teacher=student` of intermediate values for feature distillation with --loss mse or cosine")
	fs.BoolVar(&s.layers, "layers", false, "feature distillation on all layer outputs with the same name and width in both graphs")
	fs.BoolVar(&s.cache, "cache-teacher", false, "cache the teacher's outputs of each sample in a temporary file")
}

func (s *settings) memory(fs *flag.FlagSet) {
	fs.Var(&s.budget, "memory-budget", "maximum memory `size` of training; chooses --checkpoint, --accumulate and --offload automatically")
	fs.StringVar(&s.checkpoint, "checkpoint", "none", "activation checkpointing `mode`: recompute activations in the backward pass: none, light (cheap operators), sqrt, every=N, auto (minimum memory)")
	fs.StringVar(&s.storage, "storage", "float32", "storage data `type` of activations between the forward and backward passes: float32, float16")
	fs.StringVar(&s.offload, "offload", "none", "`state` offloaded to disk: none, activations, optimizer, all")
	fs.StringVar(&s.onOOM, "on-oom", "fail", "`action` if no memory layout fits into --memory-budget: fail, halve (the batch size)")
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
			return pass.OptionErrorf("--%s %s: unknown value; use one of %s", w.name, w.value, strings.Trim(strings.Join(w.known, ", "), ", "))
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
			return pass.OptionErrorf("--%s %v: must be between %v and %v", f.name, f.x, f.lo, f.hi)
		}
	}
	switch {
	case s.data.Path == "":
		return pass.OptionErrorf("training samples are missing; use --data")
	case s.batch%s.accumulate != 0:
		return pass.OptionErrorf("--batch %d is not a multiple of --accumulate %d", s.batch, s.accumulate)
	case s.resume && s.save == "":
		return pass.OptionErrorf("--resume requires --save with the checkpoint file")
	case s.patience > 0 && s.validate == 0:
		return pass.OptionErrorf("--patience requires a validation set; use --validate")
	}
	return nil
}
