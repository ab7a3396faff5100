package cli

import (
	"strings"
	"testing"

	"github.com/mcompress/mcompress/report/partition"
)

func TestStagesAreATable(t *testing.T) {
	p := &partition.Plan{
		By: "weights", Unknown: 1,
		Stages: []*partition.Stage{
			{Nodes: 2, First: "a", Last: "b", Weights: 1 << 20, Peak: 1 << 10, Handed: 2 << 10, Crosses: []partition.Port{{Name: "v"}, {Name: "w"}, {Name: "x"}, {Name: "y"}, {Name: "z"}}},
			{Nodes: 1, First: "c", Last: "c"},
		},
		Shared: []partition.Shared{{Name: "tied", Bytes: 4 << 10, Stages: []int{1, 2}}, {Name: "one", Bytes: 4, Stages: []int{1, 2}}},
		Parallel: []partition.Pair{
			{
				Columns:   []partition.Cut{{Weight: "up", Type: "float[4,8]", Axis: 1, PerDevice: 64, Even: true}},
				Row:       partition.Cut{Weight: "down", Type: "float[8,4]", PerDevice: 64},
				AllReduce: partition.Port{Name: "sum", Bytes: 16},
			},
			{}, {},
		},
	}
	var b strings.Builder
	if err := Partition(&b, Style{}, "m.onnx", p, 1); err != nil {
		t.Fatal(err)
	}
	want := `m.onnx in 2 stages, balanced by weights
  stage  nodes  weights     peak  transfer  values           first and last node
      1      2  1.0 MiB  1.0 KiB   2.0 KiB  v, w, x, 2 more  a → b
      2      1        –        –         –  –                c → c
  values of data-dependent size, not counted: 1
weights replicated in several stages
  tied            4.0 KiB  stages 1 and 2
  below 1 KiB: 1      4 B
tensor-parallel cuts over 2 devices
  weight                    cut                 per device
  up            float[4,8]  by columns, axis 1        64 B
  down          float[8,4]  by rows, axis 0           64 B  then all-reduce 16 B of sum; unevenly
  2 more pairs
`
	if b.String() != want {
		t.Errorf("got\n%s", b.String())
	}
}
