package reduce

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/elementwise/block"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// embedOps is EmbedLayerNormalization, into which ONNX Runtime's optimizer fuses the first nodes of BERT: the
// normalized sum of word, position and segment embeddings, and the number of words in each row of the mask.
func embedOps() []op.Op {
	return []op.Op{{
		Domain: microsoft, Type: "EmbedLayerNormalization", Since: 1,
		Shape: embedShape, Run: runEmbed, Work: embedWork,
	}}
}

const embedded = block.Float | block.Halves

// An embedding is a table and the ids of the rows to look up.
type embedding struct {
	name       string
	table, ids int // inputs
}

// Position embeddings need no ids: positions are counted then. Segment embeddings are optional.
var embeddings = []embedding{
	{"word", 2, 0},
	{"position", 3, 8},
	{"segment", 4, 1},
}

const (
	embedGamma = 5
	embedBeta  = 6
	embedMask  = 7
)

func embedShape(_ *op.Node, in []*ir.Array) ([]ir.Spec, error) {
	ids, err := idsIn(in, 0)
	if err != nil {
		return nil, err
	}
	if ids == nil || len(ids.Shape) != 2 {
		return nil, fmt.Errorf("input input_ids is not batch × sequence")
	}
	words, err := embedded.Tensor(in, 2, "word_embedding")
	if err != nil {
		return nil, err
	}
	if len(words.Shape) != 2 {
		return nil, fmt.Errorf("input word_embedding is %s, want a table", words)
	}
	for _, e := range embeddings {
		if err := e.check(in, ids, words); err != nil {
			return nil, err
		}
	}
	for i, name := range []string{"gamma", "beta"} {
		if err := channelInput(in, embedGamma+i, name, words.Shape[1]); err != nil {
			return nil, err
		}
	}
	if mask, err := idsIn(in, embedMask); err != nil || mask != nil && mask.Elems() != ids.Elems() {
		return nil, fmt.Errorf("input mask does not have the shape of input_ids, %s", ids)
	}
	out := ir.Spec{DType: words.DType, Shape: []int64{ids.Shape[0], ids.Shape[1], words.Shape[1]}}
	return []ir.Spec{out, {DType: ir.Int32, Shape: ids.Shape[:1]}, out}, nil
}

// idsIn is input i, nil if absent.
func idsIn(in []*ir.Array, i int) (*ir.Array, error) {
	if op.Opt(in, i) == nil {
		return nil, nil
	}
	return block.Of(ir.Int32, ir.Int64).Tensor(in, i, fmt.Sprint(i))
}

func (e embedding) check(in []*ir.Array, ids, words *ir.Array) error {
	own, err := idsIn(in, e.ids)
	if err != nil || own == nil && e.name == "segment" {
		return err
	}
	table, err := block.Like(words, in, e.table, e.name+"_embedding")
	if err != nil {
		return err
	}
	if len(table.Shape) != 2 || table.Shape[1] != words.Shape[1] {
		return fmt.Errorf("input %s_embedding is %s, want rows of %d elements", e.name, table, words.Shape[1])
	}
	if own != nil && (len(own.Shape) != 2 || own.Shape[1] != ids.Shape[1] || own.Shape[0] != ids.Shape[0] &&
		own.Shape[0] != 1) {
		return fmt.Errorf("ids of the %s embedding are %s, those of words are %s", e.name, own, ids)
	}
	return nil
}

// rows are the row indices for count tokens in sequences of that length, nil if there is no such table.
func (e embedding) rows(c *op.Call, count, sequence int) ([]int64, error) {
	own := c.Opt(e.ids)
	if own == nil && e.name == "segment" {
		return nil, nil
	}
	rows, limit := make([]int64, count), c.In[e.table].Shape[0]
	var ids []int64
	if own != nil {
		var err error
		if ids, err = op.Ints(own); err != nil {
			return nil, err
		}
	}
	for i := range rows {
		rows[i] = int64(i % sequence)
		if own != nil {
			rows[i] = ids[i%len(ids)]
		}
		if rows[i] < 0 || rows[i] >= limit {
			return nil, fmt.Errorf("id %d of the %s embedding is %d, the table has %d rows", i, e.name, rows[i], limit)
		}
	}
	return rows, nil
}

// embedWork is the sum, the output, scale and bias of a row, and an addend.
func embedWork(_ *op.Node, in []*ir.Array, workers int) int64 {
	return int64(rowBuffers*workers) * block.Bytes[float32](int(in[2].Shape[1]))
}

func runEmbed(c *op.Call) error {
	count, n := int(c.In[0].Elems()), int(c.In[2].Shape[1])
	tables, err := rowTables(c, count)
	if err != nil {
		return err
	}
	countWords(c)
	gamma, beta := block.Read[float32](c.In[embedGamma]), block.Read[float32](c.In[embedBeta])
	out, sums := block.Write[float32](c.Out[0]), block.Write[float32](output(c, 2))
	eps := c.Float("epsilon", 1e-12)
	block.Parallel(c, count, block.Grain/max(4*n, 1), rowBuffers*block.Bytes[float32](n),
		func(s block.Scratch, from, to int) {
			var bufs [rowBuffers][]float32
			for i := range bufs {
				bufs[i] = block.Take[float32](&s, n)
			}
			for i := from; i < to && n > 0; i++ {
				sum := sums.Block(bufs[0], i*n, n)
				clear(sum)
				for _, t := range tables {
					kernel.Add(sum, sum, t.Block(bufs[1], int(t.rows[i])*n, n))
				}
				y := out.Block(bufs[2], i*n, n)
				normSingle(y, sum, gamma.Block(bufs[3], 0, n), beta.Block(bufs[4], 0, n), eps, true)
				sums.Done(i*n, sum)
				out.Done(i*n, y)
			}
		})
	return nil
}

// A rowTable is an embedding with the row index of each token.
type rowTable struct {
	block.Loader[float32]
	rows []int64
}

func rowTables(c *op.Call, count int) ([]rowTable, error) {
	var tables []rowTable
	for _, e := range embeddings {
		rows, err := e.rows(c, count, int(c.In[0].Shape[1]))
		if err != nil {
			return nil, err
		}
		if rows != nil {
			tables = append(tables, rowTable{block.Read[float32](c.In[e.table]), rows})
		}
	}
	return tables, nil
}

// countWords writes the number of ones in each row of the mask.
func countWords(c *op.Call) {
	y := output(c, 1)
	if y == nil {
		return
	}
	counts := ir.View[int32](y)
	clear(counts)
	mask := c.Opt(embedMask)
	if mask == nil || len(counts) == 0 {
		return
	}
	values, _ := op.Ints(mask)
	for i, v := range values {
		if v == 1 {
			counts[i/(len(values)/len(counts))]++
		}
	}
}
