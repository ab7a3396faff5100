package distill

import (
	"math"

	"github.com/mcompress/mcompress/pass"
)

// FineTune trains the weights of a model, on labels or on the outputs of a teacher. Without a teacher of its own the
// teacher is the source model before all steps, if an earlier step changed it. Elements that a step of this run pruned,
// or an earlier run by the metadata of the model, stay 0; zeros of other weights are trained, unless KeepZeros is set.
type FineTune struct {
	pass.Selection
	pass.Samples // the training data

	// Epochs is the number of passes over the training samples; 0 to derive it from the number of samples.
	Epochs int `flag:"epochs" usage:"'number' of passes over the training samples (default: 3, and more for few samples, until they have 300 steps)"`
	// Steps is the number of training steps, instead of Epochs.
	Steps int `flag:"steps" usage:"'number' of training steps, instead of --epochs"`
	// Time is the duration of training, instead of Epochs: the number of steps follows from the speed of the first
	// ones.
	Time Duration `flag:"time" usage:"'duration' of training such as 5m, instead of --epochs: the number of steps follows from the speed of the first ones, and reproduce repeats it"`
	// Batch is the number of samples per step; 0 to derive it from the number of samples.
	Batch int `flag:"batch" usage:"'number' of samples per step (default: 32, and fewer if an epoch would have less than 8 steps)"`
	// Accumulate is the number of micro-batches per step (gradient accumulation); 0 for 1.
	Accumulate int `flag:"accumulate" default:"1" usage:"gradient accumulation: 'number' of micro-batches per step"`
	// Seed is that of sample order, dropout and augmentation; nil for 1.
	Seed *uint64 `flag:"seed" default:"1" usage:"random seed 'number' for sample order, dropout and augmentation"`
	// Validate is the fraction of the samples held out as the validation set; nil for 0.1.
	Validate *float64 `flag:"validate" default:"0.1" usage:"'fraction' of the samples held out as the validation set"`
	// Patience is the number of epochs without improvement after which training stops, 0 for never; nil for a third of
	// the epochs.
	Patience *int `flag:"patience" usage:"early stopping: stop after this number of 'epochs' without improvement on the validation set, 0 for never (default: a third of the epochs, and at least 3)"`

	// Metric of the validation set chooses the weights that are kept; empty for Agreement.
	Metric string `flag:"metric" usage:"'metric' of the validation set that chooses the weights that are kept, of equal ones those of lower loss: a metric of verify --metric, or agreement (top-1, with the labels, or the teacher without them; the default)"`
	// Scores are the outputs that labels or tokens belong to; empty for the only suitable one.
	Scores    pass.List `flag:"scores" list:"yes" usage:"comma-separated 'outputs' that labels or tokens belong to, which are trained and measured; several have the same labels, or one of as many labels of a sample each (default: the only suitable one; of --metric the first)"`
	Evaluator Evaluator // measures the validation set instead of Metric
	// EvaluatorID is what checkpoints recognize Evaluator by: its score is compared with those of an earlier run. May
	// be empty.
	EvaluatorID string
	Recorder    *Recorder // measures time and memory of the steps; may be nil

	// Optimizer is adam, adamw, adam8, momentum or sgd; empty for adamw.
	Optimizer string `flag:"optimizer" default:"adamw" enum:"adam,adamw,adam8,momentum,sgd" usage:"'name': adam, adamw, adam8, momentum, sgd"`
	// LR is the learning rate; 0 to choose it by short trials on training samples.
	LR float64 `flag:"lr" usage:"learning 'rate' (default: the best of short trials on training samples; of fewer than 32 steps a fifth of the optimizer's: 0.0002, momentum and sgd 0.002)"`
	// Momentum is the factor of the optimizer momentum; nil for 0.9.
	Momentum *float64 `flag:"momentum" default:"0.9" usage:"momentum 'factor' of --optimizer momentum"`
	// WeightDecay is the coefficient for weights of rank 2 or more; nil for 0.01 with adamw, else 0.
	WeightDecay *float64 `flag:"weight-decay" usage:"weight decay 'coefficient' for weights of rank 2 or more (default: 0.01 with adamw, else 0)"`
	// Clip is the maximum L2 norm of all gradients (gradient clipping); 0 for none.
	Clip float64 `flag:"clip" usage:"gradient clipping: maximum L2 'norm' of all gradients (default: no clipping)"`
	// Schedule of the learning rate is cosine, linear, step or constant; empty for cosine.
	Schedule string `flag:"schedule" default:"cosine" enum:"cosine,linear,step,constant" usage:"learning rate 'schedule': cosine, linear, step, constant"`
	// Warmup is the fraction of the steps with linear learning rate warmup; nil for 0.1.
	Warmup *float64 `flag:"warmup" default:"0.1" usage:"'fraction' of the steps with linear learning rate warmup"`
	// EMA is the decay factor of an exponential moving average of the weights, which is kept if it is better; 0 for
	// none.
	EMA float64 `flag:"ema" usage:"decay 'factor' of an exponential moving average of the weights such as 0.99, which is evaluated, too, and kept if it is better (default: none)"`

	// Loss function of the outputs is auto, cross-entropy, next-token, kl, mse, cosine or none; empty for auto.
	Loss string `flag:"loss" default:"auto" enum:"auto,cross-entropy,next-token,kl,mse,cosine,none" usage:"loss 'function' of the outputs: auto, cross-entropy (labels), next-token (language models, of token ids without labels), kl, mse, cosine (teacher), none (intermediate values alone: --features, by default hidden and attention, or --match)"`
	// Alpha is the weight of the cross-entropy with labels against the distillation loss, from 0 to 1; nil for the
	// default of the method.
	Alpha *float64 `flag:"alpha" usage:"'weight' of the cross-entropy with labels against the distillation loss, from 0 to 1 (default: distill 0; finetune 1, with --teacher 0.5)"`
	// Temperature is that of softmax in the kl loss; 0 for 4.
	Temperature float64 `flag:"temperature" default:"4" usage:"softmax 'temperature' of the kl loss"`
	// LabelSmoothing is the factor of label smoothing.
	LabelSmoothing float64 `flag:"label-smoothing" usage:"label smoothing 'factor'"`
	// Teacher are the paths of teacher models, whose soft targets are averaged; empty for the source model before all
	// steps.
	Teacher pass.List `flag:"teacher" file:"yes" list:"yes" usage:"comma-separated 'paths' of teacher models, whose soft targets are averaged; comparisons are with the first one (default: the source model before all steps)"`
	// TeacherWeights are numbers, one for each of several teachers; empty for equal ones.
	TeacherWeights pass.List `flag:"teacher-weights" list:"yes" usage:"comma-separated 'weights' of several teachers (default: equal)"`
	// Features are the kinds of intermediate values that the student learns, too: hidden, attention and relations.
	Features pass.List `flag:"features" list:"yes" usage:"comma-separated 'kinds' of intermediate values that the student learns, too: hidden (hidden states: hints), attention (attention maps), relations (MiniLM: relations of queries, keys and values of the last layer)"`
	// FeatureWeight is the weight of each kind of Features against the loss of the outputs; 0 for 0.1.
	FeatureWeight float64 `flag:"feature-weight" default:"0.1" usage:"'weight' of each kind of --features against the loss of the outputs"`
	// Match are pairs of intermediate values for feature distillation, as teacher=student.
	Match pass.List `flag:"match" list:"yes" usage:"comma-separated pairs 'teacher=student' of intermediate values for feature distillation; with the prefix attention: or relations: of these kinds, otherwise hidden"`
	// CacheTeacher caches the outputs of the teacher of each sample in a temporary file.
	CacheTeacher bool `flag:"cache-teacher" usage:"cache the teacher's outputs of each sample in a temporary file"`

	// Dropout is the probability of dropout of the activations before linear layers.
	Dropout float64 `flag:"dropout" usage:"dropout 'probability' of the activations before linear layers"`
	// MaxNorm is the maximum L2 norm of the weights of one unit; 0 for no limit.
	MaxNorm float64 `flag:"max-norm" usage:"maximum L2 'norm' of the weights of one unit (default: no limit)"`
	// Augment are image augmentations, such as shift=2 (pixels) and flip.
	Augment pass.List `flag:"augment" list:"yes" usage:"comma-separated image 'augmentations': shift=2 (pixels), flip"`
	// Reinit initializes weights randomly from this seed, to train from scratch; nil to train the weights of the model.
	Reinit *int64 `flag:"reinit" usage:"train from scratch: initialize weights randomly from this 'seed'; pruned elements stay 0"`
	// KeepZeros keeps elements at 0 that are 0 in any matrix and kernel.
	KeepZeros bool `flag:"keep-zeros" usage:"elements that are 0 stay 0 in all matrices and kernels, as in those that mcompress pruned"`
	// BatchStatistics normalizes with the statistics of batches and updates running mean and variance of
	// BatchNormalization.
	BatchStatistics bool `flag:"batch-statistics" usage:"normalize with batch statistics and update the running mean and variance of BatchNormalization (default with --reinit)"`
	// QAT is the quantization method of a later step for which weights and activations are fake-quantized
	// (quantization-aware training).
	QAT string `flag:"qat" usage:"quantization-aware training (QAT) for the quantization 'method' that follows, such as weight-int4 or static-int8: fake-quantizes weights and activations; on the command line with the options of the method, as in \"weight-int4 block=64 symmetric\""`

	// MemoryBudget is the maximum resident memory of the process, within which memory savings are chosen; 0 for none.
	MemoryBudget Size `flag:"memory-budget" usage:"maximum resident memory 'size' of the process; chooses --checkpoint, --accumulate and --offload automatically"`
	// Checkpoint is the mode of activation checkpointing: none, light, sqrt, every=N, auto, or a pattern of blocks;
	// empty for none.
	Checkpoint string `flag:"checkpoint" default:"none" usage:"activation checkpointing 'mode': recompute activations in the backward pass: none, light (cheap operators), sqrt, every=N, auto (minimum memory), or a pattern of blocks such as encoder.layer.*"`
	// Storage is the type of activations between forward and backward pass: float32, float16 or int8; empty for
	// float32.
	Storage string `flag:"storage" default:"float32" enum:"float32,float16,int8" usage:"storage data 'type' of activations between the forward and backward passes, where it saves memory: float32, float16, int8 (blockwise, stochastic rounding)"`
	// Offload is the state that is stored on disk: none, activations, optimizer or all; empty for none.
	Offload string `flag:"offload" default:"none" enum:"none,activations,optimizer,all" usage:"'state' offloaded to disk: none, activations, optimizer, all"`
	// OnOOM is the action if no memory layout fits into MemoryBudget: fail, or halve (the batch size); empty for fail.
	OnOOM string `flag:"on-oom" default:"fail" enum:"fail,halve" usage:"'action' if no memory layout fits into --memory-budget: fail, halve (the batch size)"`

	// Save is the file of checkpoints of the training; empty for none.
	Save string `flag:"save" recipe:"no" usage:"checkpoint 'file' of the training: weights, optimizer state and history"`
	// SaveEvery is the number of steps between checkpoints; 0 for one of each epoch.
	SaveEvery int `flag:"save-every" recipe:"no" usage:"'number' of steps between checkpoints of the training (default: one epoch)"`
	// Resume continues from the checkpoint in Save, if the file exists.
	Resume bool `flag:"resume" recipe:"no" usage:"resume from the checkpoint in --save; bit-identical to an uninterrupted run"`
}

// Distill trains a student to reproduce the outputs of a teacher (Hinton, Vinyals, Dean: Distilling the Knowledge in a
// Neural Network, 2015, arXiv:1503.02531). The student is the model as earlier steps left it. Its options are those of
// FineTune.
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
		{"warmup", *o.Warmup, 0, 1}, {"momentum", *o.Momentum, 0, 0.9999}, {"lr", o.LR, 0, 100},
		{"weight-decay", valueOr(o.WeightDecay, 0), 0, 100},
		{"ema", o.EMA, 0, 0.999999},
		{"clip", o.Clip, 0, math.MaxFloat32}, {"max-norm", o.MaxNorm, 0, math.MaxFloat32},
		{"temperature", o.Temperature, 0.01, 1000},
		{"feature-weight", o.FeatureWeight, 0, 1e9},
		{"epochs", float64(o.Epochs), 0, 1e6}, {"steps", float64(o.Steps), 0, 1e9}, {"batch", float64(o.Batch), 0, 1e6},
		{"accumulate", float64(o.Accumulate), 1, largestBatch(o.Batch)}, {"patience", float64(valueOr(o.Patience, 0)), 0,
			1e6}, {"save-every", float64(o.SaveEvery), 0, 1e9},
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
