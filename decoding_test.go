package mcompress_test

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
)

// Tokens one by one have the logits that they have all at once.
func TestDecoding(t *testing.T) {
	ctx := context.Background()
	s, err := mcompress.NewSession(ctx, filepath.Join(conform.Shared(t), "fixtures", "models", "transformer",
		"gpt2_tiny_fp32", "model.onnx"), mcompress.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	tokens := [][]int64{{5, 17, 300, 2, 999}, {0, 1, 44, 512, 7}}
	whole, err := s.NewDecoding(2)
	if err != nil {
		t.Fatal(err)
	}
	all, err := whole.Run(ctx, tokens)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 || whole.Tokens() != 5 {
		t.Fatalf("outputs %v after %d tokens, want logits only after 5", all, whole.Tokens())
	}
	want := ir.View[float32](all["logits"])
	single, err := s.NewDecoding(2)
	if err != nil {
		t.Fatal(err)
	}
	const vocabulary = 1000
	for i := range 5 {
		out, err := single.Run(ctx, [][]int64{tokens[0][i : i+1], tokens[1][i : i+1]})
		if err != nil {
			t.Fatal(err)
		}
		got := ir.View[float32](out["logits"])
		for j := range got {
			w := want[(j/vocabulary*5+i)*vocabulary+j%vocabulary]
			if math.Abs(float64(got[j]-w)) > 1e-4*(1+math.Abs(float64(w))) {
				t.Fatalf("token %d, logit %d: %v, want %v", i, j, got[j], w)
			}
		}
		s.Recycle(out["logits"])
	}
	if _, err := single.Run(ctx, [][]int64{{1}, {2, 3}}); err == nil || single.Tokens() != 5 {
		t.Errorf("%v after %d tokens, want an error for sequences of different lengths", err, single.Tokens())
	}
}

func TestDecodingOfAnotherModel(t *testing.T) {
	s, err := mcompress.NewSession(context.Background(), "fixtures/mlp.onnx", mcompress.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.NewDecoding(1); err == nil {
		t.Error("a model without tokens is no error")
	}
}
