package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// storageCPU compares the CPU time of storage types: a smaller one that costs time is used for its memory only.
func (b *bench) storageCPU(ctx context.Context) (string, error) {
	var t strings.Builder
	fmt.Fprintf(&t, "### CPU time of storage types\n\nMinimum CPU time of a step on one thread, in ms, with AVX-512 and without (`GODEBUG=cpu.avx512f=off`), rounds: %d, interleaved; PyTorch in float32 and with\nautocast to bfloat16.\n\n", b.runs)
	t.WriteString("| model | AVX-512 | float32 | float16 | ÷ float32 | int8 | ÷ float32 | PyTorch, float32 | PyTorch, bfloat16 |\n|---|---|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, tr := range []training{smallMLP, smallCNN, resnet, minilm} {
		rows, err := b.cpuRows(ctx, tr)
		if err != nil {
			return "", fmt.Errorf("%s: %w", tr.name, err)
		}
		t.WriteString(rows)
	}
	return t.String(), nil
}

// cpuRows are the rows of a model with AVX-512 and without.
func (b *bench) cpuRows(ctx context.Context, tr training) (string, error) {
	const without = "GODEBUG=cpu.avx512f=off"
	cpu := map[string][]float64{}
	for range b.runs {
		for _, env := range []string{"", without} {
			for _, storage := range []string{"float32", "float16", "int8"} {
				t, err := b.trial(ctx, tr, 1, b.stepsOf(tr), map[string]string{"storage": storage})
				if err != nil {
					return "", err
				}
				o, err := t.apart(ctx, env)
				if err != nil {
					return "", err
				}
				cpu[env+storage] = append(cpu[env+storage], o.CPU...)
			}
		}
		for _, compute := range []string{"float32", "bfloat16"} {
			took, err := b.torchCPU(ctx, tr, compute)
			if err != nil {
				return "", err
			}
			cpu["PyTorch"+compute] = append(cpu["PyTorch"+compute], took...)
		}
	}
	ms := func(key string) float64 { return 1e3 * slices.Min(cpu[key]) }
	var t strings.Builder
	for _, env := range []string{"", without} {
		vectors, float32s := "yes", ms(env+"float32")
		if env != "" {
			vectors = "no"
		}
		fmt.Fprintf(&t, "| %s | %s | %.2f | %.2f | %.2f | %.2f | %.2f |", tr.name, vectors, float32s,
			ms(env+"float16"), ms(env+"float16")/float32s, ms(env+"int8"), ms(env+"int8")/float32s)
		if env == "" {
			fmt.Fprintf(&t, " %.2f | %.2f |\n", ms("PyTorchfloat32"), ms("PyTorchbfloat16"))
		} else {
			t.WriteString(" | |\n")
		}
	}
	return t.String(), nil
}

func (b *bench) torchCPU(ctx context.Context, tr training, compute string) ([]float64, error) {
	peer, err := b.pytorch(ctx, tr, 1, compute)
	if err != nil {
		return nil, err
	}
	defer peer.close()
	took, err := peer.steps(b.stepsOf(tr))
	return took.cpu, err
}
