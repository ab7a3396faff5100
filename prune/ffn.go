package prune

import (
	"context"

	"github.com/mcompress/mcompress/pass"
)

// FFN removes intermediate neurons of feed-forward networks: between linear layers, with the gate of gated ones
// (SwiGLU). It is Channel limited to these: a network loses the neurons of least importance, those of the layers that
// are multiplied with one another together.
type FFN struct {
	pass.Selection
	_ pass.SharedOptions[channelImportance]
	pass.Calibration

	// Amount is the fraction of the neurons of each network that is removed, above 0 up to 1, or None; 0 is the
	// default.
	Amount Amount `flag:"amount" default:"0.25" usage:"'fraction' of the neurons of each network that is removed, from 0 to 1"`
	// Amounts are other fractions for some weights, from 0 to 1.
	Amounts Amounts `flag:"amounts" list:"yes" usage:"other fractions by glob over the names of tensors, nodes and modules, as 'pattern=fraction',...; the last match counts"`
	// Round is the number of which the neurons that are kept are a multiple; 0 for 1.
	Round int `flag:"round" default:"1" usage:"keep a multiple of this 'number' of neurons"`
	// Importance is magnitude, taylor, or, of heads and neurons, wanda; empty for magnitude.
	Importance string
}

var ffnMethod = &pass.Method{
	Name:    "ffn",
	Command: "prune",
	Doc:     "remove intermediate neurons of feed-forward networks, gated ones too",
	Stage:   pass.Prune,
	Shrinks: true,
	Repeats: true,
	New:     func() pass.Options { return &FFN{} },
}

// Method describes the method.
func (FFN) Method() *pass.Method { return ffnMethod }

func (o FFN) channel() Channel {
	return Channel{Selection: o.Selection, Amount: o.Amount, Amounts: o.Amounts, Round: o.Round, removes: neurons,
		Importance: o.Importance, Calibration: o.Calibration}
}

// Check reports options that are out of range.
func (o FFN) Check() error { return o.channel().Check() }

// Run implements pass.Options.
func (o FFN) Run(ctx context.Context, s *pass.Step) error { return o.channel().remove(ctx, s) }
