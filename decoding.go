package mcompress

import (
	"context"
	"errors"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/ir"
)

// A Decoding is sequences of tokens that a language model continues. It keeps the keys and values of the tokens so far
// (KV cache), so that a run computes those of the next tokens only. It must not be used concurrently; a session may
// have several.
type Decoding struct {
	session *Session
	decoder *dataset.Decoder
}

// NewDecoding begins sequences with a model whose outputs continue some of its inputs: present.0.key and
// past_key_values.0.key, as exporters name them, or states that Concat or an attention operator appends to. It is an
// error if the model has none, or inputs that do not follow from token ids.
func (s *Session) NewDecoding(sequences int) (*Decoding, error) {
	if s.graph == nil {
		return nil, errors.New("the session has no graph of one model")
	}
	d, err := dataset.NewDecoder(s.graph, int64(sequences), nil)
	if err != nil {
		return nil, err
	}
	return &Decoding{s, d}, nil
}

// Run runs the model on the next tokens of each sequence, equally many, and returns the outputs without keys and
// values: logits are [sequences, tokens, vocabulary]. After an error the sequences are as before.
func (d *Decoding) Run(ctx context.Context, tokens [][]int64) (map[string]*ir.Array, error) {
	inputs, err := d.decoder.Inputs(tokens)
	if err != nil {
		return nil, err
	}
	outputs, err := d.session.Run(ctx, inputs)
	if err == nil {
		d.session.Recycle(d.decoder.Keep(outputs, len(tokens[0]))...)
	}
	return outputs, err
}

// Tokens is the number of tokens of each sequence so far.
func (d *Decoding) Tokens() int { return int(d.decoder.Tokens()) }
