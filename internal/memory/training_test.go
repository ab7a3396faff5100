package memory

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func states(t interface{ Fatal(...any) }, params int64, how Training) States {
	s, err := how.States(params)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The bytes per parameter of gradients, weights and the states of each optimizer.
func TestStatesOfABillionParameters(t *testing.T) {
	const b = 1e9
	for _, c := range []struct {
		optimizer, precision  string
		params, grads, states int64
	}{
		{"sgd", "float32", 4 * b, 4 * b, 0},
		{"momentum", "float32", 4 * b, 4 * b, 4 * b},
		{"adam", "float32", 4 * b, 4 * b, 8 * b},
		{"sgd", "mixed", 2 * b, 2 * b, 4 * b},
		{"adam", "mixed", 2 * b, 2 * b, 12 * b},
		{"adam", "bfloat16", 2 * b, 2 * b, 4 * b},
		{"adam8", "float32", 4 * b, 4 * b, 2*b + 2*4*3906250}, // 3,906,250 blocks of 256
	} {
		s := states(t, b, Training{Optimizer: c.optimizer, Precision: c.precision})
		if s.Parameters != c.params || s.Gradients != c.grads || s.Optimizer != c.states {
			t.Errorf("%s in %s: %+v", c.optimizer, c.precision, s)
		}
	}
}

// Figure 1 of the ZeRO paper: 7.5 B parameters, Adam in mixed precision, 64 devices.
func TestStagesOfZeRO(t *testing.T) {
	for stage, want := range []float64{120, 31.4, 16.6, 1.9} {
		got := states(t, 7.5e9, Training{Optimizer: "adam", Precision: "mixed", ZeRO: stage, Devices: 64}).Total()
		if gb := float64(got) / 1e9; gb < want-0.05 || gb > want+0.05 {
			t.Errorf("stage %d: %.2f GB, want %.1f", stage, gb, want)
		}
	}
}

// The devices together need at least the memory of a single one, and little more.
func TestDevicesTogetherHoldAllStates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		params := rapid.Int64Range(0, 1e12).Draw(t, "params")
		how := Training{
			Optimizer: rapid.SampledFrom(optimizerNames()).Draw(t, "optimizer"),
			Precision: rapid.SampledFrom(PrecisionNames()).Draw(t, "precision"),
			ZeRO:      rapid.IntRange(0, 3).Draw(t, "zero"), Devices: rapid.IntRange(0, 1000).Draw(t, "devices"),
		}
		here := states(t, params, how)
		alone := states(t, params, Training{Optimizer: how.Optimizer, Precision: how.Precision})
		n := int64(max(1, how.Devices))
		for stage, pair := range [][2]int64{{alone.Optimizer, here.Optimizer}, {alone.Gradients, here.Gradients},
			{alone.Parameters, here.Parameters}} {
			whole, part := pair[0], pair[1]
			if how.ZeRO <= stage && part != whole || part*n < whole || how.ZeRO > stage && part*n >= whole+n {
				t.Fatalf("%+v: %d of %d", how, part, whole)
			}
		}
	})
}

func TestInvalidTraining(t *testing.T) {
	good := Training{Optimizer: "adam", Precision: "mixed"}
	for want, change := range map[string]func(*Training){
		"optimizer \"lion\" is not one of sgd, momentum, adam, adamw, adam8": func(t *Training) { t.Optimizer = "lion" },
		"precision \"\" is not one of float32, mixed, bfloat16":              func(t *Training) { t.Precision = "" },
		"ZeRO has stages 0 to 3, not 4":                                      func(t *Training) { t.ZeRO = 4 },
		"-1 devices":                                                         func(t *Training) { t.Devices = -1 },
	} {
		how := good
		change(&how)
		if _, err := how.States(1); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := good.States(-1); err == nil {
		t.Error("fewer parameters than none")
	}
}
