package distill

import (
	"math"
	"strings"

	"github.com/mcompress/mcompress/pass"
)

// FineTune trains the weights of a model, on labels or on the outputs of a teacher. Without a teacher of its own the teacher is the source
// model before all steps, if an earlier step changed it. Elements that a step of this run pruned, or an earlier run by the metadata of the model, stay 0; zeros
// of other weights are trained, unless KeepZeros is set.
type FineTune struct {
	pass.Selection
	pass.Samples // the training data

	Epochs     int      `flag:"epochs" usage:"'number' of passes over the training samples (default: 3, and more for few samples, until they have 300 steps)"`
	Steps      int      `flag:"steps" usage:"'number' of training steps, instead of --epochs"`
	Time       Duration `flag:"time" usage:"'duration' of training such as 5m, instead of --epochs: the number of steps follows from the speed of the first ones, and reproduce repeats it"`
	Batch      int      `flag:"batch" usage:"'number' of samples per step (default: 32, and fewer if an epoch would have less than 8 steps)"`
	Accumulate int      `flag:"accumulate" default:"1" usage:"gradient accumulation: 'number' of micro-batches per step"`
	Seed       *uint64  `flag:"seed" default:"1" usage:"random seed 'number' for sample order, dropout and augmentation"`
	Validate   *float64 `flag:"validate" default:"0.1" usage:"'fraction' of the samples held out as the validation set"`
	Patience   *int     `flag:"patience" usage:"early stopping: stop after this number of 'epochs' without improvement on the validation set, 0 for never (default: a third of the epochs, and at least 3)"`

	Metric    string    `flag:"metric" usage:"'metric' of the validation set that chooses the weights that are kept, of equal ones those of lower loss: a metric of verify --metric, or agreement (top-1, with the labels, or the teacher without them; the default)"`
	Scores    pass.List `flag:"scores" list:"yes" usage:"comma-separated 'outputs' that labels or tokens belong to, which are trained and measured; several have the same labels, or one of as many labels of a sample each (default: the only suitable one; of --metric the first)"`
	Evaluator Evaluator // measures the validation set instead of Metric
	// EvaluatorID is what checkpoints recognize Evaluator by: its score is compared with those of an earlier run. May be empty.
	EvaluatorID string
	Recorder    *Recorder // measures time and memory of the steps; may be nil

	Optimizer   string   `flag:"optimizer" default:"adamw" enum:"adam,adamw,adam8,momentum,sgd" usage:"'name': adam, adamw, adam8, momentum, sgd"`
	LR          float64  `flag:"lr" usage:"learning 'rate' (default: the best of short trials on training samples; of fewer than 32 steps a fifth of the optimizer's: 0.0002, momentum and sgd 0.002)"`
	Momentum    *float64 `flag:"momentum" default:"0.9" usage:"momentum 'factor' of --optimizer momentum"`
	WeightDecay *float64 `flag:"weight-decay" usage:"weight decay 'coefficient' for weights of rank 2 or more (default: 0.01 with adamw, else 0)"`
	Clip        float64  `flag:"clip" usage:"gradient clipping: maximum L2 'norm' of all gradients (default: no clipping)"`
	Schedule    string   `flag:"schedule" default:"cosine" enum:"cosine,linear,step,constant" usage:"learning rate 'schedule': cosine, linear, step, constant"`
	Warmup      *float64 `flag:"warmup" default:"0.1" usage:"'fraction' of the steps with linear learning rate warmup"`
	EMA         float64  `flag:"ema" usage:"decay 'factor' of an exponential moving average of the weights such as 0.99, which is evaluated, too, and kept if it is better (default: none)"`

	Loss           string    `flag:"loss" default:"auto" enum:"auto,cross-entropy,next-token,kl,mse,cosine,none" usage:"loss 'function' of the outputs: auto, cross-entropy (labels), next-token (language models, of token ids without labels), kl, mse, cosine (teacher), none (intermediate values alone: --features, by default hidden and attention, or --match)"`
	Alpha          *float64  `flag:"alpha" usage:"'weight' of the cross-entropy with labels against the distillation loss, from 0 to 1 (default: distill 0; finetune 1, with --teacher 0.5)"`
	Temperature    float64   `flag:"temperature" default:"4" usage:"softmax 'temperature' of the kl loss"`
	LabelSmoothing float64   `flag:"label-smoothing" usage:"label smoothing 'factor'"`
	Teacher        pass.List `flag:"teacher" file:"yes" list:"yes" usage:"comma-separated 'paths' of teacher models, whose soft targets are averaged; comparisons are with the first one (default: the source model before all steps)"`
	TeacherWeights pass.List `flag:"teacher-weights" list:"yes" usage:"comma-separated 'weights' of several teachers (default: equal)"`
	Features       pass.List `flag:"features" list:"yes" usage:"comma-separated 'kinds' of intermediate values that the student learns, too: hidden (hidden states: hints), attention (attention maps), relations (MiniLM: relations of queries, keys and values of the last layer)"`
	FeatureWeight  float64   `flag:"feature-weight" default:"0.1" usage:"'weight' of each kind of --features against the loss of the outputs"`
	Match          pass.List `flag:"match" list:"yes" usage:"comma-separated pairs 'teacher=student' of intermediate values for feature distillation; with the prefix attention: or relations: of these kinds, otherwise hidden"`
	CacheTeacher   bool      `flag:"cache-teacher" usage:"cache the teacher's outputs of each sample in a temporary file"`

	Dropout         float64   `flag:"dropout" usage:"dropout 'probability' of the activations before linear layers"`
	MaxNorm         float64   `flag:"max-norm" usage:"maximum L2 'norm' of the weights of one unit (default: no limit)"`
	Augment         pass.List `flag:"augment" list:"yes" usage:"comma-separated image 'augmentations': shift=2 (pixels), flip"`
	Reinit          *int64    `flag:"reinit" usage:"train from scratch: initialize weights randomly from this 'seed'; pruned elements stay 0"`
	KeepZeros       bool      `flag:"keep-zeros" usage:"elements that are 0 stay 0 in all matrices and kernels, as in those that mcompress pruned"`
	BatchStatistics bool      `flag:"batch-statistics" usage:"normalize with batch statistics and update the running mean and variance of BatchNormalization (default with --reinit)"`
	QAT             string    `flag:"qat" usage:"quantization-aware training (QAT) for the quantization 'method' that follows, such as weight-int4 or static-int8: fake-quantizes weights and activations; on the command line with the options of the method, as in \"weight-int4 block=64 symmetric\""`

	MemoryBudget Size   `flag:"memory-budget" usage:"maximum resident memory 'size' of the process; chooses --checkpoint, --accumulate and --offload automatically"`
	Checkpoint   string `flag:"checkpoint" default:"none" usage:"activation checkpointing 'mode': recompute activations in the backward pass: none, light (cheap operators), sqrt, every=N, auto (minimum memory), or a pattern of blocks such as encoder.layer.*"`
	Storage      string `flag:"storage" default:"float32" enum:"float32,float16,int8" usage:"storage data 'type' of activations between the forward and backward passes, where it saves memory: float32, float16, int8 (blockwise, stochastic rounding)"`
	Offload      string `flag:"offload" default:"none" enum:"none,activations,optimizer,all" usage:"'state' offloaded to disk: none, activations, optimizer, all"`
	OnOOM        string `flag:"on-oom" default:"fail" enum:"fail,halve" usage:"'action' if no memory layout fits into --memory-budget: fail, halve (the batch size)"`

	Save      string `flag:"save" recipe:"no" usage:"checkpoint 'file' of the training: weights, optimizer state and history"`
	SaveEvery int    `flag:"save-every" recipe:"no" usage:"'number' of steps between checkpoints of the training (default: one epoch)"`
	Resume    bool   `flag:"resume" recipe:"no" usage:"resume from the checkpoint in --save; bit-identical to an uninterrupted run"`
}

// Distill trains a student to reproduce the outputs of a teacher (Hinton, Vinyals, Dean: Distilling the Knowledge in a Neural Network,
// 2015, arXiv:1503.02531). The student is the model as earlier steps left it. Its options are those of FineTune.
type Distill FineTune

// Check reports invalid values and combinations.
func (o *FineTune) Check() error {
	if err := o.checkRanges(); err != nil {
		return err
	}
	if _, err := o.measure(); err != nil {
		return err
	}
	switch {
	case o.Steps > 0 && o.Time > 0:
		return pass.OptionErrorf("--steps and --time exclude each other")
	case o.Batch%o.Accumulate != 0:
		return pass.OptionErrorf("--batch %d is not a multiple of --accumulate %d", o.Batch, o.Accumulate)
	case o.Resume && o.Save == "":
		return pass.OptionErrorf("--resume requires --save with the checkpoint file")
	case valueOr(o.Patience, 0) > 0 && *o.Validate == 0:
		return pass.OptionErrorf("--patience requires a validation set; use --validate")
	case o.EMA > 0 && *o.Validate == 0:
		return pass.OptionErrorf("--ema requires a validation set; use --validate")
	}
	return o.checkDistillation()
}

// Check reports invalid values and combinations.
func (o *Distill) Check() error { return (*FineTune)(o).Check() }

func (o *FineTune) checkRanges() error {
	for _, f := range []struct {
		name            string
		x, least, limit float64
	}{
		{"validate", *o.Validate, 0, 0.9}, {"label-smoothing", o.LabelSmoothing, 0, 0.99}, {"dropout", o.Dropout, 0, 0.95},
		{"warmup", *o.Warmup, 0, 1}, {"momentum", *o.Momentum, 0, 0.9999}, {"lr", o.LR, 0, 100}, {"weight-decay", valueOr(o.WeightDecay, 0), 0, 100},
		{"ema", o.EMA, 0, 0.999999},
		{"clip", o.Clip, 0, math.MaxFloat32}, {"max-norm", o.MaxNorm, 0, math.MaxFloat32}, {"temperature", o.Temperature, 0.01, 1000},
		{"feature-weight", o.FeatureWeight, 0, 1e9},
		{"epochs", float64(o.Epochs), 0, 1e6}, {"steps", float64(o.Steps), 0, 1e9}, {"batch", float64(o.Batch), 0, 1e6},
		{"accumulate", float64(o.Accumulate), 1, largestBatch(o.Batch)}, {"patience", float64(valueOr(o.Patience, 0)), 0, 1e6}, {"save-every", float64(o.SaveEvery), 0, 1e9},
		{"alpha", valueOr(o.Alpha, 0), 0, 1}, {"reinit", float64(valueOr(o.Reinit, 0)), 0, math.MaxInt64},
	} {
		if !(f.x >= f.least && f.x <= f.limit) {
			return pass.OptionErrorf("--%s %v: must be between %v and %v", f.name, f.x, f.least, f.limit)
		}
	}
	return nil
}

// valueOr returns *p, or the default if p is nil.
func valueOr[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// items splits a comma-separated list.
func items(text pass.List) []string {
	if text == "" {
		return nil
	}
	return strings.Split(string(text), ",")
}
