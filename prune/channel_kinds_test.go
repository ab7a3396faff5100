package prune

import (
	"reflect"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/pass"
)

// The neurons of a transformer are counted although no head of its attention can be followed, those of layers that are
// as before included, and by the submodel that the names of inputs tell.
func TestConfigValues(t *testing.T) {
	for _, c := range []struct {
		name, input string
		step        pass.Options
		want        []pass.ConfigValue
	}{
		{"channel", "input_ids", &Channel{Amount: 0.25, Round: 1},
			[]pass.ConfigValue{{Name: pass.IntermediateSize, Submodel: pass.Text, From: 16, To: []int{12}}}},
		{"ffn", "encoder_hidden_states", &FFN{Amount: 0.5, Round: 1},
			[]pass.ConfigValue{{Name: pass.IntermediateSize, Submodel: pass.Decoder, From: 16, To: []int{8}}}},
		{"one layer", "pixel_values", &FFN{Amount: 0.5, Round: 1, Amounts: Amounts{{Pattern: "layer0.*", Amount: 0}}},
			[]pass.ConfigValue{{Name: pass.IntermediateSize, Submodel: pass.Vision, From: 16, To: []int{8, 16}}}},
		{"none", "x", &FFN{Amount: 0.01, Round: 1}, nil},
	} {
		b := newBench(t)
		b.transformer(c.input, 2)
		res, err := pass.Run(t.Context(), b.step.Model, b.step.Eval, b.step.Env, []pass.Options{c.step})
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.DeleteFunc(res.Config, func(v pass.ConfigValue) bool {
			return !v.Changed()
		}); !reflect.DeepEqual(got, c.want) && len(got)+len(c.want) > 0 {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// Layers that are removed one after the other, and what other steps change, have numbers in that order.
func TestChangesAreNumbered(t *testing.T) {
	b := newBench(t)
	b.transformer("decoder_input_ids", 4)
	res, err := pass.Run(t.Context(), b.step.Model, b.step.Eval, b.step.Env,
		[]pass.Options{&Layers{Amount: 0.5}, &FFN{Amount: 0.5, Round: 1}, &Layers{Amount: 0.5}})
	if err != nil {
		t.Fatal(err)
	}
	want := []pass.RemovedLayers{{Layers: 4, Removed: []int{1, 2}, Submodel: pass.Decoder},
		{Layers: 2, Removed: []int{0}, Submodel: pass.Decoder, Change: 2}}
	if !reflect.DeepEqual(res.Layers, want) || len(res.Config) == 0 ||
		slices.ContainsFunc(res.Config, func(v pass.ConfigValue) bool {
			return v.Change != 1
		}) {
		t.Errorf("got %+v, %+v", res.Layers, res.Config)
	}
}
