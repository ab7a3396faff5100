package metric

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/ir"
)

// A Metric is a row of the table: a measure of the outputs of a model.
type Metric struct {
	Name           string
	Doc            string
	HigherIsBetter bool
	Needs          Need
	Classes        bool              // depends on the order of class scores only
	Texts          bool              // labels may be texts
	Options        map[string]string // defaults of options

	new func(o options) (Scorer, error)
}

// A Need is the data that a metric requires besides the outputs of the model.
type Need uint8

// Needs of metrics.
const (
	Labels    Need = iota // labels of the samples
	Reference             // outputs of the reference model
	Tokens                // token ids, the targets of a language model
	// labels of the samples, or without any the outputs of the reference model in their place
	LabelsOrReference
)

// Table is all metrics.
func Table() []*Metric {
	return []*Metric{
		{Name: "top1", Doc: "fraction of labels whose class has the highest score", HigherIsBetter: true,
			Classes: true, new: top(1)},
		{Name: "top5", Doc: "fraction of labels whose class is among the 5 highest scores", HigherIsBetter: true,
			Classes: true, new: top(5)},
		{Name: "f1", Doc: "macro-averaged F1 of classes, or F1 of values above a threshold", HigherIsBetter: true,
			Classes: true, Options: map[string]string{"threshold": "0.5"}, new: newF1},
		{Name: "map", Doc: "mean average precision of boxes, averaged over IoU thresholds from 0.5 to 0.95 (COCO)",
			HigherIsBetter: true, Needs: LabelsOrReference, Options: map[string]string{"iou": "", "labels": ""}, new: newMeanAP},
		{Name: "box-agreement", Doc: "fraction of boxes that overlap one of the reference of the same class, " +
			"matched greedily", HigherIsBetter: true, Needs: Reference, Options: map[string]string{"iou": "0.5"},
			new: newBoxAgreement},
		{Name: "cer", Doc: "character error rate of texts, decoded greedily (CTC)", Texts: true,
			Options: map[string]string{"blank": "0", "charset": ""}, new: newCER},
		{Name: "spearman", Doc: "rank correlation of scores, or of cosine similarities of pairs, with labels",
			HigherIsBetter: true, new: newSpearman},
		{Name: "embedding-cosine", Doc: "mean cosine similarity of embeddings to those of the reference",
			HigherIsBetter: true, Needs: Reference, new: newEmbeddingCosine},
		{Name: "nearest-centroid", Doc: "fraction of embeddings that are nearest to the centroid of their class, " +
			"leaving one out", HigherIsBetter: true, new: newNearestCentroid},
		{Name: "perplexity", Doc: "exp of the mean negative log-likelihood of the next token", Needs: Tokens,
			new: newPerplexity},
	}
}

// Names are the names of all metrics.
func Names() []string {
	var names []string
	for _, m := range Table() {
		names = append(names, m.Name)
	}
	return names
}

// A Choice is a metric with values of its options.
type Choice struct {
	*Metric
	options options
}

// Parse parses NAME or NAME:OPTION=VALUE:OPTION=VALUE.
func Parse(text string) (*Choice, error) {
	name, rest, _ := strings.Cut(text, ":")
	table := Table()
	i := slices.IndexFunc(table, func(m *Metric) bool { return m.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("unknown metric %q; metrics are %s", name, strings.Join(Names(), ", "))
	}
	c := &Choice{Metric: table[i], options: options{}}
	for k, v := range table[i].Options {
		c.options[k] = v
	}
	for rest != "" {
		var word string
		word, rest, _ = strings.Cut(rest, ":")
		k, v, ok := strings.Cut(word, "=")
		if _, known := c.options[k]; !known || !ok {
			return nil, fmt.Errorf("metric %s: %q is not one of its options%s", name, word, table[i].optionNames())
		}
		c.options[k] = v
	}
	// A trial finds invalid values of options before anything is run.
	if _, err := c.new(c.options); err != nil {
		return nil, fmt.Errorf("metric %s: %w", name, err)
	}
	return c, nil
}

func (m *Metric) optionNames() string {
	var names []string
	for k := range m.Options {
		names = append(names, k+"=VALUE")
	}
	slices.Sort(names)
	if names == nil {
		return ": it has none"
	}
	return ": " + strings.Join(names, ", ")
}

// New starts a measurement.
func (c *Choice) New() (Scorer, error) {
	s, err := c.new(c.options)
	if err != nil {
		return nil, err
	}
	return &namedScorer{s, c.Metric}, nil
}

// A Batch is the outputs of one run of one or two models.
type Batch struct {
	Inputs  map[string]*ir.Array
	Want    map[string]*ir.Array // outputs of the reference; nil without one
	Got     map[string]*ir.Array // outputs of the model that is measured
	Outputs []string             // names of the outputs to consider, in order
	Labels  *ir.Array            // first axis samples; may be nil
	Targets [][]int64            // for each sample the token after each token of the run; negative ones do not count
	First   int                  // number of samples before it
	N       int                  // samples
}

// A Score is a metric of a reference and of another model.
type Score struct {
	Name           string
	HigherIsBetter bool
	Before, After  float64 // NaN if undefined; Before is NaN without a reference
	Error          float64 // standard error of After - Before over samples; NaN if unknown
}

// A Scorer accumulates a metric.
type Scorer interface {
	// Add accumulates a batch. An *Inapplicable means that the metric cannot measure such outputs or labels.
	Add(ctx context.Context, b *Batch) error
	// Score is the metric over all batches.
	Score(ctx context.Context) (Score, error)
	// Close releases temporary files.
	Close() error
}

// Inapplicable is the error of outputs or labels that a metric does not measure.
type Inapplicable struct{ Why string }

// Error is why.
func (e *Inapplicable) Error() string { return e.Why }

func inapplicable(format string, args ...any) error {
	return &Inapplicable{fmt.Sprintf(format, args...)}
}

// namedScorer adds the metric's name and direction.
type namedScorer struct {
	Scorer
	*Metric
}

// Add implements Scorer.
func (n *namedScorer) Add(ctx context.Context, b *Batch) error {
	var err error
	switch {
	case n.Needs == Labels && b.Labels == nil:
		err = inapplicable("the data has no labels; name them with --labels")
	case n.Needs == LabelsOrReference && b.Labels == nil && b.Want == nil:
		err = inapplicable("the data has no labels, and without a model to compare there are no detections in their " +
			"place; name labels with --labels")
	case n.Needs == Tokens && b.Targets == nil:
		err = inapplicable("the data has no token ids of sequences")
	case n.Needs == Reference && b.Want == nil:
		err = inapplicable("it compares two models")
	default:
		err = n.Scorer.Add(ctx, b)
	}
	if err != nil {
		return fmt.Errorf("metric %s: %w", n.Name, err)
	}
	return nil
}

// Score implements Scorer.
func (n *namedScorer) Score(ctx context.Context) (Score, error) {
	s, err := n.Scorer.Score(ctx)
	// A scorer whose options make it another quantity has set a name.
	s.Name, s.HigherIsBetter = cmp.Or(s.Name, n.Name), n.HigherIsBetter
	return s, err
}

// outputs are those of one model.
type outputs map[string]*ir.Array

// sides are the outputs of the reference, nil without one, and of the model.
func (b *Batch) sides() [2]outputs { return [2]outputs{b.Want, b.Got} }

// A Measure starts measurements: a Choice, or an evaluator of the user.
type Measure interface {
	New() (Scorer, error)
	// OfClasses reports whether only the order of class scores counts.
	OfClasses() bool
	// Verbatim reports whether labels that are words or one-hot are read as they are, not as classes.
	Verbatim() bool
}

// OfClasses implements Measure.
func (c *Choice) OfClasses() bool { return c.Classes }

// Verbatim implements Measure.
func (c *Choice) Verbatim() bool { return c.Texts }
