package text

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A counter is the attributes of TfIdfVectorizer.
type counter struct {
	mode                   string
	shortest, longest, max int // lengths of n-grams, and maximum number of skipped tokens
	columns                []int64
	weights                []float32 // of the columns; nil if all weights are equal
	width                  int64     // of the output
	ints                   trie[int64]
	words                  trie[string]
}

// A trie finds n-grams: each node is the n-gram of the tokens on its path.
type trie[T comparable] struct {
	next  map[edge[T]]int
	grams []int // by node, the position among all n-grams of the pool; -1 for prefixes of longer ones
}

type edge[T comparable] struct {
	from  int
	token T
}

func newTrie[T comparable]() trie[T] { return trie[T]{map[edge[T]]int{}, []int{-1}} }

func (t *trie[T]) add(tokens []T, gram int) {
	at := 0
	for _, token := range tokens {
		e := edge[T]{at, token}
		if _, ok := t.next[e]; !ok {
			t.next[e] = len(t.grams)
			t.grams = append(t.grams, -1)
		}
		at = t.next[e]
	}
	t.grams[at] = gram
}

// maxColumns bounds the size of the output for invalid indices.
const maxColumns = 1 << 28

func newCounter(n *op.Node) (*counter, error) {
	c := &counter{
		mode: n.Text("mode", ""), shortest: int(n.Int("min_gram_length", 1)),
		longest: int(n.Int("max_gram_length", 1)), max: int(n.Int("max_skip_count", 0)),
		columns: n.Ints("ngram_indexes"), ints: newTrie[int64](), words: newTrie[string](),
	}
	if !slices.Contains([]string{"TF", "IDF", "TFIDF"}, c.mode) {
		return nil, fmt.Errorf("mode is %q, want TF, IDF or TFIDF", c.mode)
	}
	if c.shortest < 1 || c.longest < c.shortest || c.max < 0 {
		return nil, fmt.Errorf("invalid n-grams of %d to %d tokens with up to %d skipped", c.shortest, c.longest, c.max)
	}
	if len(c.columns) == 0 || slices.Min(c.columns) < 0 || slices.Max(c.columns) >= maxColumns {
		return nil, errors.New("ngram_indexes are missing or out of range")
	}
	c.width = slices.Max(c.columns) + 1
	if err := c.weighed(n.Floats("weights")); err != nil {
		return nil, err
	}
	starts := n.Ints("ngram_counts")
	if err := fill(&c.ints, c, starts, n.Ints("pool_int64s")); err != nil {
		return nil, err
	}
	return c, fill(&c.words, c, starts, n.Texts("pool_strings"))
}

// weighed assigns the weights of the n-grams, which are in the order of the pool.
func (c *counter) weighed(weights []float32) error {
	if len(weights) == 0 {
		return nil
	}
	if len(weights) != len(c.columns) {
		return fmt.Errorf("%d weights for %d n-grams", len(weights), len(c.columns))
	}
	c.weights = make([]float32, c.width)
	for i, column := range c.columns {
		c.weights[column] = weights[i]
	}
	return nil
}

// fill inserts the n-grams of those lengths into t. pool holds all n-grams of one token, then those of two, and so on,
// from the offsets in starts.
func fill[T comparable](t *trie[T], c *counter, starts []int64, pool []T) error {
	if len(pool) == 0 {
		return nil // the tokens are of the other type
	}
	gram := 0
	for i, start := range starts {
		end := int64(len(pool))
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		if start < 0 || start > end || end > int64(len(pool)) {
			return fmt.Errorf("ngram_counts %v do not match a pool of %d tokens", starts, len(pool))
		}
		for tokens := pool[start:end]; len(tokens) > i; tokens = tokens[i+1:] {
			if gram >= len(c.columns) {
				return fmt.Errorf("the pool has more n-grams than the %d of ngram_indexes", len(c.columns))
			}
			if i+1 >= c.shortest && i+1 <= c.longest {
				t.add(tokens[:i+1], gram)
			}
			// Also for lengths that are not counted: ngram_indexes are of the whole pool.
			gram++
		}
	}
	return nil
}

func prepareCount(n *op.Node, _ []*ir.Array, _ *op.Pool) (*op.Prepared, error) {
	c, err := newCounter(n)
	if err != nil {
		return nil, err
	}
	return &op.Prepared{State: c}, nil
}

// counterOf is the prepared counter, or a new one.
func counterOf(n *op.Node) (*counter, error) {
	if c, ok := n.State.(*counter); ok {
		return c, nil
	}
	return newCounter(n)
}

func countShape(n *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	x, err := op.Tensor(in, 0, "X")
	if err != nil {
		return nil, err
	}
	c, err := counterOf(n)
	if err != nil {
		return nil, err
	}
	if len(x.Shape) > 2 {
		return nil, fmt.Errorf("X is %s, want [C] or [B,C]", x)
	}
	if x.DType != ir.String && x.DType != ir.Int32 && x.DType != ir.Int64 {
		return nil, fmt.Errorf("X is %s, want string, int32 or int64", x)
	}
	if len(x.Shape) == 2 {
		return op.One(ir.Float, x.Shape[0], c.width)
	}
	return op.One(ir.Float, c.width)
}

func runCount(c *op.Call) error {
	counter, err := counterOf(c.Node)
	if err != nil {
		return err
	}
	if c.In[0].DType == ir.String {
		count(c, counter, &counter.words, c.In[0].Text)
		return nil
	}
	tokens, err := op.Ints(c.In[0])
	if err != nil {
		return err
	}
	count(c, counter, &counter.ints, tokens)
	return nil
}

func count[T comparable](c *op.Call, k *counter, t *trie[T], tokens []T) {
	y := ir.View[float32](c.Out[0])
	clear(y)
	rows := len(y) / int(k.width)
	if rows == 0 {
		return
	}
	size := len(tokens) / rows
	c.Pool.For(rows, func(i int) {
		out := y[i*int(k.width) : (i+1)*int(k.width)]
		t.count(out, k, tokens[i*size:(i+1)*size])
		k.weigh(out)
	})
}

// count adds one for each n-gram in row, for every allowed distance between tokens; single tokens count once.
func (t *trie[T]) count(out []float32, k *counter, row []T) {
	// From the length of the row on, no second token is in reach.
	for distance := 1; distance <= k.max+1 && distance <= max(len(row), 1); distance++ {
		for start := range row {
			at := 0
			for n, i := 1, start; n <= k.longest && i < len(row); n, i = n+1, i+distance {
				next, ok := t.next[edge[T]{at, row[i]}]
				if !ok {
					break
				}
				at = next
				if gram := t.grams[at]; gram >= 0 && (n > 1 || distance == 1) {
					out[k.columns[gram]]++
				}
			}
		}
	}
}

// weigh converts counts by mode.
func (k *counter) weigh(out []float32) {
	if k.mode == "TF" {
		return
	}
	for i, n := range out {
		if k.mode == "IDF" {
			n = min(n, 1)
		}
		if k.weights != nil {
			n *= k.weights[i]
		}
		out[i] = n
	}
}
