package prune

import (
	"context"

	"github.com/mcompress/mcompress/pass"
)

// Heads removes whole attention heads (Michel, Levy, Neubig, Are Sixteen Heads Really Better than One?, NeurIPS 2019,
// arXiv:1905.10650): their channels of queries, keys and values, and the rows of the output projection that read them.
// The query heads of one key and value head (grouped-query attention) are removed together with it. Past and present
// keys and values of removed heads are no inputs and outputs any more. Each attention loses the same fraction of its
// heads; of equal importance the lower head is removed first, and one is always kept.
type Heads struct {
	pass.Selection
	_ pass.SharedOptions[channelImportance]
	pass.Calibration

	// Amount is the fraction of the heads of each attention that is removed, above 0 up to 1, or None; 0 is the
	// default.
	Amount Amount `flag:"amount" default:"0.25" usage:"'fraction' of the heads of each attention that is removed, from 0 to 1"`
	// Amounts are other fractions for some weights, from 0 to 1.
	Amounts Amounts `flag:"amounts" list:"yes" usage:"other fractions by glob over the names of tensors, nodes and modules, as 'pattern=fraction',...; the last match counts"`
	// Importance is magnitude, taylor, or, of heads and neurons, wanda; empty for magnitude.
	Importance string
}

var headsMethod = &pass.Method{
	Name:    "heads",
	Command: "prune",
	Doc:     "remove whole attention heads, with their key and value heads",
	Stage:   pass.Prune,
	Shrinks: true,
	Repeats: true,
	New:     func() pass.Options { return &Heads{} },
}

// Method describes the method.
func (Heads) Method() *pass.Method { return headsMethod }

func (o Heads) channel() Channel {
	return Channel{Selection: o.Selection, Amount: o.Amount, Amounts: o.Amounts, Round: 1, removes: attentionHeads,
		Importance: o.Importance, Calibration: o.Calibration}
}

// Check reports amounts that are not fractions.
func (o Heads) Check() error { return o.channel().Check() }

// Run implements pass.Options.
func (o Heads) Run(ctx context.Context, s *pass.Step) error { return o.channel().remove(ctx, s) }
