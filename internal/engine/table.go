package engine

import (
	"slices"
	"sync"

	"github.com/mcompress/mcompress/internal/engine/backward"
	"github.com/mcompress/mcompress/internal/engine/conv"
	"github.com/mcompress/mcompress/internal/engine/elementwise"
	"github.com/mcompress/mcompress/internal/engine/half"
	"github.com/mcompress/mcompress/internal/engine/linear"
	"github.com/mcompress/mcompress/internal/engine/movement"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/engine/quant"
	"github.com/mcompress/mcompress/internal/engine/random"
	"github.com/mcompress/mcompress/internal/engine/recurrent"
	"github.com/mcompress/mcompress/internal/engine/reduce"
	"github.com/mcompress/mcompress/internal/engine/signal"
	"github.com/mcompress/mcompress/internal/engine/tabular"
	"github.com/mcompress/mcompress/internal/engine/text"
	"github.com/mcompress/mcompress/internal/engine/train"
	"github.com/mcompress/mcompress/ir"
)

// families lists the operators: one line per family.
var families = []func() []op.Op{
	control,
	backward.Ops,
	conv.Ops,
	elementwise.Ops,
	linear.Ops,
	movement.Ops,
	quant.Ops,
	random.Ops,
	recurrent.Ops,
	reduce.Ops,
	signal.Ops,
	tabular.Ops,
	text.Ops,
	train.Ops,
}

type opKey struct{ domain, typ string }

// table is every row by operator, newest first. It is built once and not changed.
var table = sync.OnceValue(func() rowsOf {
	rows := rowsOf{}
	for _, family := range families {
		rows.add(family())
	}
	for _, r := range rows {
		slices.SortStableFunc(r, func(a, b *op.Op) int { return int(b.Since - a.Since) })
	}
	rows.add(half.Ops(rows.lookup))
	return rows
})

type rowsOf map[opKey][]*op.Op

func (rows rowsOf) add(ops []op.Op) {
	for _, o := range ops {
		k := opKey{o.Domain, o.Type}
		rows[k] = append(rows[k], &o)
	}
}

// lookup is the row that implements id at that version of its domain, or nil.
func lookup(id ir.OpID, version int64) *op.Op { return table().lookup(id, version) }

func (rows rowsOf) lookup(id ir.OpID, version int64) *op.Op {
	domain := id.Domain
	if ir.DefaultDomain(domain) {
		domain = ""
	}
	for _, o := range rows[opKey{domain, id.Type}] {
		if o.Since <= version {
			return o
		}
	}
	return nil
}
