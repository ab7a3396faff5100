package job

import (
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/memory"
)

func TestVerificationLimits(t *testing.T) {
	small := Verification{Backend: Backend{Limits: memory.Limits{Memory: 1 << 20}}}
	forced := Verification{Backend: small.Backend, Force: true}
	for _, c := range []struct {
		v    Verification
		cost cost
		why  string // empty if the models are run
	}{
		{small, cost{weights: maxDefaultWeights}, ""},
		{small, cost{weights: maxDefaultWeights + 1}, "512 MiB of weights"},
		{forced, cost{weights: maxDefaultWeights + 1}, ""},
		{small, cost{arena: 1 << 20, known: true}, ""},
		{small, cost{arena: 2 << 20, known: true}, "2.0 MiB in addition to the weights, the limit for one model is 1.0 MiB"},
		{forced, cost{arena: 2 << 20, known: true}, ""},
		{Verification{}, cost{arena: 1 << 40, known: true}, ""},
	} {
		why := ""
		if err := c.v.checkLimits(c.cost); err != nil {
			why = err.Error()
		}
		if (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%+v: got %q, want %q", c.cost, why, c.why)
		}
	}
}

func TestLargeModelsRunOnFewerRandomSamples(t *testing.T) {
	for _, c := range []struct {
		v    Verification
		cost cost
		want int
	}{
		{Verification{}, cost{weights: 1000, computed: 1000, known: true}, maxSamples},
		{Verification{}, cost{weights: runBytes / 4, known: true}, 4},
		{Verification{}, cost{computed: runBytes / 2 / valueCost, known: true}, 2},
		{Verification{}, cost{weights: 1 << 40, known: true}, 1},
		{Verification{}, cost{}, 1},
		{Verification{Data: Data{Samples: 100}}, cost{weights: 1 << 40}, 100},
	} {
		if got := c.v.samples(c.cost); got != c.want {
			t.Errorf("%+v: %d samples, want %d", c.cost, got, c.want)
		}
	}
}
